/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/generation_test.c: proves that a generation which is read holds the files that were asked for, byte
 * for byte, and that no block which it grew out of, or read a file into, goes back with a key in it. What generations
 * mean to a server is in tests/system/generation_test.py.
 */
#include "tests/support/secrets.h"
#include "vm/native/generation.h"
#include "vm/sys/file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECRET "-----BEGIN PRIVATE KEY----- 900150983cd24fb0"

struct generation_world {
    char path[64];
    struct builder file; /* what lies there */
    struct generation_plan plan;
};

static void generation_test_open(struct generation_world *world, size_t bytes)
{
    *world = (struct generation_world){.path = "/tmp/crownyc-generation-test.XXXXXX"};
    int descriptor = mkstemp(world->path);
    ck_assert_int_ge(descriptor, 0);
    builder_init(&world->file);
    while (world->file.count < bytes) builder_text(&world->file, SECRET);
    ck_assert(!cy_failed(file_write_all(descriptor, builder_view(&world->file))));
    close(descriptor);
    world->plan.program = CY_BYTES("program");
    world->plan.sources[0] = (struct generation_source){.name = "conf", .path = world->path};
    world->plan.source_count = 1;
}

static void generation_test_close(struct generation_world *world)
{
    unlink(world->path);
    builder_fini(&world->file);
}

static void generation_test_load(struct generation_world *world)
{
    struct builder bytes, wanted, message;
    struct generation generation = {0};
    cy_bytes content;
    cy_err err;
    builder_init_secret(&bytes);
    builder_init(&wanted);
    builder_init(&message);
    generation_want(&wanted, cy_bytes_from_text(world->path));
    ck_assert(!cy_failed(generation_load(&world->plan, builder_view(&wanted), &bytes, &message)));
    ck_assert(!cy_failed(generation_parse(builder_view(&bytes), &generation)));
    ck_assert_uint_eq(generation.file_count, 1);
    ck_assert(cy_bytes_equal(generation.files[0].content, builder_view(&world->file)));
    ck_assert(generation_find_extra(generation.extras, cy_bytes_from_text(world->path), &content, &err));
    ck_assert(!cy_failed(err) && cy_bytes_equal(content, builder_view(&world->file)));
    builder_fini(&message);
    builder_fini(&wanted);
    builder_fini(&bytes);
}

#ifdef __linux__
START_TEST(test_no_block_goes_back_with_a_key)
{
    struct generation_world world;
    struct secrets_watch watch;
    generation_test_open(&world, 100000);
    secrets_watch_begin(&watch, CY_BYTES(SECRET));
    generation_test_load(&world);
    ck_assert_uint_eq(secrets_watch_end(&watch), 0);
    generation_test_close(&world);
}
END_TEST
#endif

Suite *unit_suite_native_generation(void);
Suite *unit_suite_native_generation(void)
{
    Suite *suite = suite_create("native_generation");
    TCase *tests = tcase_create("load");
#ifdef __linux__
    tcase_add_test(tests, test_no_block_goes_back_with_a_key);
#endif
    suite_add_tcase(suite, tests);
    return suite;
}
