/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/beneath_test.c: proves that no path leaves its folder, whatever links and ".." say, that what stays
 * in it is found, and that a denied folder cannot be entered under another name. Everything runs by openat2 and by
 * the walk.
 *
 *   T/secret            outside
 *   T/root/file
 *   T/root/sub/deep
 *   T/root/in    -> sub/deep         T/root/in_up -> sub/../file        T/root/dir -> sub
 *   T/root/out   -> ../secret        T/root/absolute -> /etc/passwd     T/root/loop -> loop
 *   T/root/up    -> ..               T/root/sub/out -> ../../secret     T/root/chain -> dir/out
 */
#include "vm/sys/beneath.h"

#include "vm/base/limits.h"
#include "vm/sys/file_below.h"
#include "vm/sys/path_rules.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char top[64];
static struct beneath_root root;

static void make_file(const char *path, const char *text)
{
    int descriptor = openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void begin(void)
{
    static const char *const links[][2] = {
        {"sub/deep", "in"},          {"sub/../file", "in_up"}, {"sub", "dir"}, {"../secret", "out"},
        {"/etc/passwd", "absolute"}, {"loop", "loop"},         {"..", "up"},   {"dir/out", "chain"},
        {"new", "to_new"},           {"../new", "to_new_out"},
    };
    snprintf(top, sizeof top, "/tmp/crownyc-beneath-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    ck_assert_int_eq(chdir(top), 0);
    make_file("secret", "secret");
    ck_assert_int_eq(mkdir("root", 0700) | mkdir("root/sub", 0700), 0);
    make_file("root/file", "file");
    make_file("root/sub/deep", "deep");
    ck_assert_int_eq(chdir("root"), 0);
    for (size_t i = 0; i < CY_COUNT_OF(links); i++) ck_assert_int_eq(symlink(links[i][0], links[i][1]), 0);
    ck_assert_int_eq(symlink("../../secret", "sub/out"), 0);
    root = (struct beneath_root){.descriptor = open(".", O_RDONLY | O_DIRECTORY)};
    ck_assert_int_ge(root.descriptor, 0);
}

static void end(void)
{
    char command[128];
    close(root.descriptor);
    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -rf %s", top);
    ck_assert_int_eq(system(command), 0);
}

/* What is read, or the error's name. */
static const char *read_it(const char *path)
{
    static char text[64];
    struct builder out;
    builder_init(&out);
    cy_err err = file_below_read(&root, path, 1000, NULL, &out);
    snprintf(text, sizeof text, "%.*s", CY_BYTES_ARG(builder_view(&out)));
    builder_fini(&out);
    return cy_failed(err) ? cy_err_name(err) : text;
}

START_TEST(test_what_stays_inside_is_found)
{
    root.walk = _i;
    ck_assert_str_eq(read_it("file"), "file");
    ck_assert_str_eq(read_it("sub/deep"), "deep");
    ck_assert_str_eq(read_it("in"), "deep");
    ck_assert_str_eq(read_it("in_up"), "file");
    ck_assert_str_eq(read_it("dir/deep"), "deep");
    ck_assert_str_eq(read_it("sub/../file"), "file");
    ck_assert_str_eq(read_it("no"), "NOT_FOUND");
    ck_assert_str_eq(read_it("file/x"), "NOT_FOLDER");
    ck_assert_str_eq(read_it("sub"), "IS_FOLDER");
    ck_assert_str_eq(read_it("."), "IS_FOLDER");
}
END_TEST

START_TEST(test_what_leads_out_is_refused)
{
    static const char *const ways[] = {"../secret", "out",          "sub/out",   "chain",
                                       "up/secret", "up",           "absolute",  "sub/../../secret",
                                       "dir/out",   "up/root/file", "to_new_out"};
    root.walk = _i;
    for (size_t i = 0; i < CY_COUNT_OF(ways); i++) ck_assert_str_eq(read_it(ways[i]), "PERMISSION");
    ck_assert_str_eq(read_it("loop"), "SYSTEM"); /* ELOOP */
}
END_TEST

START_TEST(test_writing_stays_inside)
{
    struct stat status;
    root.walk = _i;
    ck_assert(!cy_failed(file_below_write(&root, "in", CY_BYTES("new"), FILE_WRITE_REPLACE, NULL)));
    ck_assert_str_eq(read_it("sub/deep"), "new");
    ck_assert(!cy_failed(file_below_write(&root, "to_new", CY_BYTES("x"), FILE_WRITE_REPLACE, NULL)));
    ck_assert_str_eq(read_it("new"), "x");
    ck_assert(!cy_failed(file_below_write(&root, "new", CY_BYTES("y"), FILE_WRITE_APPEND, NULL)));
    ck_assert_str_eq(read_it("new"), "xy");
    ck_assert(cy_is(file_below_write(&root, "to_new_out", CY_BYTES("x"), FILE_WRITE_REPLACE, NULL),
                    CY_ERR_PERMISSION));
    ck_assert(
        cy_is(file_below_write(&root, "out", CY_BYTES("x"), FILE_WRITE_REPLACE, NULL), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_write_atomic(&root, "up/new", CY_BYTES("x")), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_make_folder(&root, "up/new", false), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_make_folder(&root, "up/a/b", true), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_rename(&root, "file", &root, "file", &root, "up/file"), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_remove(&root, "up/secret"), CY_ERR_PERMISSION));
    ck_assert_int_ne(stat("../new", &status), 0);
    ck_assert_int_eq(stat("../secret", &status), 0);
    ck_assert_int_eq(status.st_size, 6);
}
END_TEST

/* The link is what is removed, renamed and replaced, never what it leads to. */
START_TEST(test_the_last_name_is_not_followed)
{
    struct stat status;
    root.walk = _i;
    ck_assert(!cy_failed(file_below_write_atomic(&root, "out", CY_BYTES("mine"))));
    ck_assert_str_eq(read_it("out"), "mine");
    ck_assert(!cy_failed(file_below_remove(&root, "up")));
    ck_assert(!cy_failed(file_below_rename(&root, "absolute", &root, "absolute", &root, "moved")));
    ck_assert_int_eq(lstat("moved", &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    ck_assert_int_eq(stat("../secret", &status), 0);
    ck_assert(cy_is(file_below_remove(&root, "."), CY_ERR_VALUE));
    ck_assert(cy_is(file_below_remove(&root, "sub/.."), CY_ERR_VALUE));
}
END_TEST

START_TEST(test_a_denied_folder_is_not_entered)
{
    struct stat status;
    ck_assert_int_eq(stat("sub", &status), 0);
    struct beneath_place denied = {status.st_dev, status.st_ino};
    root.denied = &denied;
    root.denied_count = 1;
    ck_assert_str_eq(read_it("file"), "file");
    ck_assert_str_eq(read_it("sub/deep"), "PERMISSION");
    ck_assert_str_eq(read_it("dir/deep"), "PERMISSION");
    ck_assert_str_eq(read_it("in"), "PERMISSION");
    ck_assert_str_eq(read_it("sub"), "PERMISSION");
    ck_assert(cy_is(file_below_rename(&root, "sub", &root, "sub", &root, "other"), CY_ERR_PERMISSION));
    ck_assert(cy_is(file_below_remove(&root, "sub"), CY_ERR_PERMISSION));
    ck_assert(cy_is(beneath_stat(&root, "dir", &status), CY_ERR_PERMISSION));
}
END_TEST

/* Links become folders and back while others read through them: a path is inside or refused, never outside. */
static void *swapper(void *context)
{
    const bool *stop = context;
    while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
        if (rename("swap_link", "swap") == 0) rename("swap", "swap_link");
        if (rename("swap_folder", "swap") == 0) rename("swap", "swap_folder");
    }
    return NULL;
}

START_TEST(test_races_do_not_lead_out)
{
    pthread_t thread;
    bool stop = false;
    root.walk = _i;
    ck_assert_int_eq(symlink("..", "swap_link") | mkdir("swap_folder", 0700), 0);
    make_file("swap_folder/secret", "inside");
    ck_assert_int_eq(pthread_create(&thread, NULL, swapper, &stop), 0);
    for (int i = 0; i < 20000; i++) ck_assert_str_ne(read_it("swap/secret"), "secret");
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}
END_TEST

/* PATH_BYTES and PATH_DEPTH, at and one past. */
START_TEST(test_limits_of_a_path)
{
    char path[LIMIT_PATH_BYTES + 8];
    int descriptor;
    root.walk = true;
    memset(path, '/', sizeof path);
    memcpy(path + LIMIT_PATH_BYTES - 4, "file", 5);
    path[0] = '.';
    ck_assert(!cy_failed(beneath_open(&root, path, O_RDONLY, 0, &descriptor)));
    close(descriptor);
    memset(path, '/', sizeof path);
    path[0] = '.';
    memcpy(path + LIMIT_PATH_BYTES - 3, "file", 5);
    cy_err err = beneath_open(&root, path, O_RDONLY, 0, &descriptor);
    ck_assert(cy_is(err, CY_ERR_LIMIT) && err.detail == LIMIT_PATH_BYTES);

    char deep[2 * LIMIT_PATH_DEPTH + 16] = "";
    for (int i = 0; i < LIMIT_PATH_DEPTH; i++) {
        strncat(deep, i == 0 ? "n" : "/n", sizeof deep - strlen(deep) - 1);
        ck_assert_int_eq(mkdir(deep, 0700), 0);
    }
    char inside[sizeof deep + 8], past[sizeof deep + 8];
    snprintf(inside, sizeof inside, "%s/f", deep);
    make_file(inside, "bottom");
    ck_assert_str_eq(read_it(inside), "bottom");
    snprintf(past, sizeof past, "%s/n", deep);
    ck_assert_int_eq(mkdir(past, 0700), 0);
    snprintf(past, sizeof past, "%s/n/f", deep);
    ck_assert_str_eq(read_it(past), "LIMIT");
}
END_TEST

/* -- the rules ------------------------------------------------------------------------------------------- */

static const char *find(const struct path_rules *rules, enum path_access access, const char *path)
{
    static char text[128];
    const struct beneath_root *found = NULL; /* stays so where no rule allows */
    struct builder below;
    builder_init(&below);
    cy_err err = path_rules_find(rules, access, cy_bytes_from_text(path), &found, &below);
    if (!cy_failed(err))
        snprintf(text, sizeof text, "%.*s%s", CY_BYTES_ARG(builder_view(&below)),
                 found->descriptor < 0 ? " free" : "");
    builder_fini(&below);
    return cy_failed(err) ? cy_err_name(err) : text;
}

START_TEST(test_rules)
{
    struct path_rules *rules;
    const char *fault;
    char sub[128], elsewhere[128];
    snprintf(sub, sizeof sub, "%s/root/sub", top);
    snprintf(elsewhere, sizeof elsewhere, "%s/rootx", top);
    struct path_rule list[] = {{true, PATH_WRITE, NULL}, {true, PATH_WRITE, "sub"}};
    ck_assert(!cy_failed(path_rules_new(list, 0, false, &rules, &fault)));
    ck_assert_str_eq(find(rules, PATH_READ, "/etc/passwd"), "/etc/passwd free");
    ck_assert_str_eq(find(rules, PATH_WRITE, "x"), "PERMISSION");
    ck_assert_str_eq(find(rules, PATH_READ, ""), "VALUE");
    path_rules_free(&rules);
    ck_assert(!cy_failed(path_rules_new(list, 1, false, &rules, &fault)));
    ck_assert_str_eq(find(rules, PATH_WRITE, "x/../y"), "y");
    ck_assert_str_eq(find(rules, PATH_WRITE, "../x"), "PERMISSION");
    ck_assert_str_eq(find(rules, PATH_WRITE, elsewhere), "PERMISSION");
    ck_assert_str_eq(find(rules, PATH_WRITE, sub), "sub");
    path_rules_free(&rules);
    ck_assert(!cy_failed(path_rules_new(list, 2, false, &rules, &fault)));
    ck_assert_str_eq(find(rules, PATH_WRITE, "sub/x"), "x"); /* the longest folder rules */
    path_rules_free(&rules);
    struct path_rule missing = {true, PATH_READ, "no/such"};
    ck_assert(cy_is(path_rules_new(&missing, 1, false, &rules, &fault), CY_ERR_NOT_FOUND));
    ck_assert_str_eq(fault, "no/such");
}
END_TEST

/* What lies in a denied folder is allowed by no other rule; what lies above it is, without it. */
START_TEST(test_denied_rules)
{
    struct path_rules *rules;
    const char *fault;
    const struct beneath_root *found;
    struct builder below;
    struct path_rule list[] = {{false, PATH_READ, "."}, {true, PATH_READ, "sub"}, {false, PATH_READ, "sub"}};
    ck_assert(!cy_failed(path_rules_new(list, 2, false, &rules, &fault)));
    ck_assert_str_eq(find(rules, PATH_READ, "sub/deep"), "PERMISSION");
    path_rules_free(&rules);
    ck_assert(!cy_failed(path_rules_new(list + 2, 1, false, &rules, &fault)));
    static const struct {
        const char *path;
        enum cy_err_code code;
    } cases[] = {{"file", CY_ERR_NONE},
                 {"sub/deep", CY_ERR_PERMISSION},
                 {"in", CY_ERR_PERMISSION},
                 {"/etc/passwd", CY_ERR_NONE},
                 {"absolute", CY_ERR_NONE}};
    for (size_t i = 0; i < CY_COUNT_OF(cases); i++) {
        int descriptor = -1;
        builder_init(&below);
        ck_assert(
            !cy_failed(path_rules_find(rules, PATH_READ, cy_bytes_from_text(cases[i].path), &found, &below)));
        cy_err err = beneath_open(found, (const char *)below.data, O_RDONLY, 0, &descriptor);
        ck_assert_msg(cy_is(err, cases[i].code), "%s: %s", cases[i].path, cy_err_name(err));
        if (descriptor >= 0) close(descriptor);
        builder_fini(&below);
    }
    path_rules_free(&rules);
}
END_TEST

/* PATH_RULES, at and one past. */
START_TEST(test_rules_are_bounded)
{
    struct path_rule list[LIMIT_PATH_RULES + 1];
    struct path_rules *rules;
    const char *fault;
    for (int i = 0; i <= LIMIT_PATH_RULES; i++) list[i] = (struct path_rule){true, PATH_READ, "sub"};
    ck_assert(!cy_failed(path_rules_new(list, LIMIT_PATH_RULES, false, &rules, &fault)));
    path_rules_free(&rules);
    cy_err err = path_rules_new(list, LIMIT_PATH_RULES + 1, false, &rules, &fault);
    ck_assert(cy_is(err, CY_ERR_LIMIT) && err.detail == LIMIT_PATH_RULES);
}
END_TEST

/* -- what is done with files ----------------------------------------------------------------------------- */

START_TEST(test_files)
{
    struct builder names;
    size_t count;
    struct file_status status;
    root.walk = _i;
    ck_assert(!cy_failed(file_below_make_folder(&root, "a/b/c", true)));
    ck_assert(!cy_failed(file_below_make_folder(&root, "a/b/c", true)));
    ck_assert(cy_is(file_below_make_folder(&root, "a/b", false), CY_ERR_EXISTS));
    ck_assert(cy_is(file_below_make_folder(&root, "file/b", true), CY_ERR_EXISTS));
    ck_assert(!cy_failed(file_below_write(&root, "a/b/x", CY_BYTES("12345"), FILE_WRITE_REPLACE, NULL)));
    ck_assert_int_eq(chmod("a/b/x", 0640), 0);
    ck_assert(!cy_failed(file_below_write_atomic(&root, "a/b/x", CY_BYTES("123"))));
    struct stat mode;
    ck_assert_int_eq(stat("a/b/x", &mode), 0);
    ck_assert_int_eq(mode.st_mode & 07777, 0640);
    ck_assert(!cy_failed(file_below_stat(&root, "a/b/x", &status)));
    ck_assert_int_eq(status.bytes, 3);
    ck_assert_int_eq(status.kind, FILE_KIND_FILE);
    ck_assert(cy_is(file_below_write_atomic(&root, "a/b", CY_BYTES("")), CY_ERR_IS_FOLDER));
    ck_assert(
        cy_is(file_below_write(&root, "a/b", CY_BYTES(""), FILE_WRITE_REPLACE, NULL), CY_ERR_IS_FOLDER));
    builder_init(&names);
    ck_assert(!cy_failed(file_below_list(&root, "a/b", 2, &names, &count)));
    ck_assert_uint_eq(count, 2); /* c and x: nothing of the atomic write is left */
    builder_fini(&names);
    builder_init(&names);
    ck_assert(cy_is(file_below_list(&root, "a/b", 1, &names, &count), CY_ERR_LIMIT));
    builder_fini(&names);
    ck_assert(cy_is(file_below_remove(&root, "a/b"), CY_ERR_SYSTEM));
    ck_assert(!cy_failed(file_below_remove(&root, "a/b/x")));
    ck_assert(!cy_failed(file_below_remove(&root, "a/b/c")));
    ck_assert(cy_is(file_below_remove(&root, "a/b/c"), CY_ERR_NOT_FOUND));
}
END_TEST

Suite *unit_suite_sys_beneath(void);
Suite *unit_suite_sys_beneath(void)
{
    Suite *suite = suite_create("sys_beneath");
    TCase *tcase = tcase_create("beneath");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_loop_test(tcase, test_what_stays_inside_is_found, 0, 2);
    tcase_add_loop_test(tcase, test_what_leads_out_is_refused, 0, 2);
    tcase_add_loop_test(tcase, test_writing_stays_inside, 0, 2);
    tcase_add_loop_test(tcase, test_the_last_name_is_not_followed, 0, 2);
    tcase_add_test(tcase, test_a_denied_folder_is_not_entered);
    tcase_add_loop_test(tcase, test_races_do_not_lead_out, 0, 2);
    tcase_add_test(tcase, test_limits_of_a_path);
    tcase_add_test(tcase, test_rules);
    tcase_add_test(tcase, test_denied_rules);
    tcase_add_test(tcase, test_rules_are_bounded);
    tcase_add_loop_test(tcase, test_files, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
