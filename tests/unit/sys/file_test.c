/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/file_test.c: proves that whole files are read within their bound (at it and one past it), that
 * writing replaces without a moment of half a file, and that a sealed file cannot be changed by anybody.
 */
#include "vm/sys/file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char file_test_folder[64];
static char file_test_path[128];

static void file_test_begin(void)
{
    snprintf(file_test_folder, sizeof file_test_folder, "/tmp/crownyc-file-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(file_test_folder));
    snprintf(file_test_path, sizeof file_test_path, "%s/name", file_test_folder);
}
static void file_test_end(void)
{
    unlink(file_test_path);
    ck_assert_int_eq(rmdir(file_test_folder), 0); /* fails when a temporary file was left */
}

START_TEST(test_read_at_and_past_the_bound)
{
    struct builder out;
    builder_init(&out);
    ck_assert(!cy_failed(file_write(file_test_path, CY_BYTES("0123456789"))));
    ck_assert(!cy_failed(file_read(file_test_path, 10, &out)));
    ck_assert(cy_bytes_equal(builder_view(&out), CY_BYTES("0123456789")));
    ck_assert(cy_is(file_read(file_test_path, 9, &out), CY_ERR_TOO_LARGE));
    ck_assert_uint_eq(out.count, 10); /* a failed read appends nothing */
    ck_assert(cy_is(file_read(file_test_folder, 100, &out), CY_ERR_IS_FOLDER));
    ck_assert(cy_is(file_read("/no/such/file", 100, &out), CY_ERR_NOT_FOUND));
    builder_fini(&out);
}
END_TEST

START_TEST(test_read_what_has_no_size)
{
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(file_write_all(ends[1], CY_BYTES("through a pipe"))));
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    struct builder out;
    builder_init(&out);
    ck_assert(!cy_failed(file_read(path, 100, &out)));
    ck_assert(cy_bytes_equal(builder_view(&out), CY_BYTES("through a pipe")));
    builder_fini(&out);
    close(ends[0]);
}
END_TEST

START_TEST(test_write_replaces_and_keeps_the_mode)
{
    ck_assert(!cy_failed(file_write(file_test_path, CY_BYTES("old and longer"))));
    ck_assert_int_eq(chmod(file_test_path, 0640), 0);
    int reader = open(file_test_path, O_RDONLY);
    ck_assert(!cy_failed(file_write(file_test_path, CY_BYTES("new"))));
    struct builder old, new;
    builder_init(&old);
    builder_init(&new);
    ck_assert(
        !cy_failed(file_read_descriptor(reader, 100, &old))); /* who had it open sees all of the old one */
    ck_assert(!cy_failed(file_read(file_test_path, 100, &new)));
    ck_assert(cy_bytes_equal(builder_view(&old), CY_BYTES("old and longer")));
    ck_assert(cy_bytes_equal(builder_view(&new), CY_BYTES("new")));
    struct stat status;
    ck_assert_int_eq(stat(file_test_path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0640);
    builder_fini(&old);
    builder_fini(&new);
    close(reader);
}
END_TEST

START_TEST(test_write_through_a_link_and_to_a_device)
{
    char link_path[160];
    snprintf(link_path, sizeof link_path, "%s.link", file_test_path);
    ck_assert(!cy_failed(file_write(file_test_path, CY_BYTES("1"))));
    ck_assert_int_eq(symlink(file_test_path, link_path), 0);
    ck_assert(!cy_failed(file_write(link_path, CY_BYTES("22"))));
    struct stat status;
    ck_assert_int_eq(lstat(link_path, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    ck_assert_int_eq(stat(file_test_path, &status), 0);
    ck_assert_int_eq(status.st_size, 2);
    ck_assert_int_eq(unlink(link_path), 0);
    ck_assert(!cy_failed(file_write("/dev/null", CY_BYTES("gone"))));
    ck_assert_int_eq(stat("/dev/null", &status), 0);
    ck_assert(S_ISCHR(status.st_mode));
    ck_assert(cy_failed(file_write("/no/such/folder/file", CY_BYTES("x"))));
    ck_assert(cy_is(file_write(file_test_folder, CY_BYTES("x")), CY_ERR_IS_FOLDER));
}
END_TEST

START_TEST(test_sealed)
{
    int descriptor = -1;
    ck_assert(!cy_failed(file_sealed("test", CY_BYTES("accepted"), &descriptor)));
    struct builder out;
    builder_init(&out);
    for (int i = 0; i < 2; i++) { /* reading does not move the offset that all holders share */
        builder_clear(&out);
        ck_assert(!cy_failed(file_read_descriptor(descriptor, 100, &out)));
        ck_assert(cy_bytes_equal(builder_view(&out), CY_BYTES("accepted")));
    }
    ck_assert_int_lt(write(descriptor, "x", 1), 0);
    ck_assert_int_lt(pwrite(descriptor, "x", 1, 0), 0);
    ck_assert_int_lt(ftruncate(descriptor, 0), 0);
    ck_assert_int_lt(ftruncate(descriptor, 100), 0);
    ck_assert_ptr_eq(mmap(NULL, 8, PROT_WRITE, MAP_SHARED, descriptor, 0), MAP_FAILED);
    ck_assert_int_ne(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    builder_fini(&out);
    close(descriptor);
}
END_TEST

Suite *unit_suite_sys_file(void);
Suite *unit_suite_sys_file(void)
{
    Suite *suite = suite_create("sys/file");
    TCase *tests = tcase_create("files");
    tcase_add_checked_fixture(tests, file_test_begin, file_test_end);
    tcase_add_test(tests, test_read_at_and_past_the_bound);
    tcase_add_test(tests, test_read_what_has_no_size);
    tcase_add_test(tests, test_write_replaces_and_keeps_the_mode);
    tcase_add_test(tests, test_write_through_a_link_and_to_a_device);
    tcase_add_test(tests, test_sealed);
    suite_add_tcase(suite, tests);
    return suite;
}
