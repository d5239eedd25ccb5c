/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/heap_stats_test.c: proves that the walk counts each reachable object once, with its bytes to the last
 * one, that a cycle shows as the remainder, and that walking costs the VM nothing afterwards, also without memory.
 */
#include "vm/run/heap_stats.h"

#include "tests/unit/run/run_host.h"
#include "vm/base/mem.h"
#include "vm/run/code.h"
#include "vm/run/vm_internal.h"

#include <check.h>

#define OK(expression) ck_assert_msg(!cy_failed(expression), "%s", #expression)

static struct run_host host;

/* A program with one module variable, which is the root of what a test makes. */
static void open_host(void)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t global = pb_global(b, "root");
    pb_export(b, "main", EXPORT_FUNCTION, pb_function(b, "main", 0, 0, 0));
    pb_line(b, 1, 1);
    pb_op(b, OP_GLOBAL_GET, global);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
}
static const struct heap_stats_row *row(const struct heap_stats *stats, const char *name)
{
    static const struct heap_stats_row none;
    for (uint32_t i = 0; i < stats->row_count; i++)
        if (strcmp(stats->rows[i].name, name) == 0) return &stats->rows[i];
    return &none;
}

START_TEST(test_each_object_once_with_its_bytes)
{
    open_host();
    struct heap_stats before, after;
    OK(heap_stats_collect(host.vm, &before));
    uint64_t heap_bytes = host.vm->heap_bytes;
    cy_value root, ints, text, map, cell;
    OK(list_new(host.vm, 0, &root));
    OK(list_new(host.vm, 100, &ints));
    OK(list_append(host.vm, &ints, value_int(1)));
    OK(string_new(host.vm, CY_BYTES("하나"), &text));
    OK(map_new(host.vm, 20, &map));
    OK(map_set_text(host.vm, &map, CY_BYTES("key"), value_int(1)));
    OK(ref_new(host.vm, value_ref(text), &cell));
    OK(list_append(host.vm, &root, value_ref(ints)));
    OK(list_append(host.vm, &root, ints));
    OK(list_append(host.vm, &root, text));
    OK(list_append(host.vm, &root, map));
    OK(list_append(host.vm, &root, cell));
    host.instance->globals[0] = root;
    uint64_t made_bytes = host.vm->heap_bytes - heap_bytes;
    OK(heap_stats_collect(host.vm, &after));
    ck_assert_uint_eq(after.object_bytes - before.object_bytes, made_bytes);
    ck_assert_uint_eq(row(&after, "list of int")->count, 1);
    ck_assert_uint_eq(row(&after, "list of any")->count, 1);
    ck_assert_uint_eq(row(&after, "map")->count, 1);
    ck_assert_uint_eq(row(&after, "ref")->count, 1);
    ck_assert_uint_eq(row(&after, "str")->count - row(&before, "str")->count, 2);
    ck_assert_uint_eq(after.object_count, after.heap_objects);
    heap_stats_fini(&before);
    heap_stats_fini(&after);
    run_host_close(&host);
}
END_TEST

START_TEST(test_a_cycle_is_the_remainder)
{
    open_host();
    cy_value cell, list;
    OK(ref_new(host.vm, value_nil(), &cell));
    OK(list_new(host.vm, 0, &list));
    OK(list_append(host.vm, &list, value_ref(cell)));
    ref_of(cell)->value = list;
    value_unref(host.vm, cell);
    struct heap_stats stats;
    OK(heap_stats_collect(host.vm, &stats));
    ck_assert_uint_eq(stats.heap_objects - stats.object_count, 2);
    builder_clear(&host.output);
    heap_stats_describe(host.vm, &stats, false, &host.output);
    ck_assert_ptr_nonnull(strstr(run_host_printed(&host), "not reached                             2\n"));
    heap_stats_fini(&stats);
    run_host_close(&host);
}
END_TEST

/* What a task that waits holds is reached too. */
START_TEST(test_stacks_are_roots)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    uint32_t sleep = pb_native(b, "task.sleep");
    pb_export(b, "main", EXPORT_FUNCTION, pb_function(b, "main", 0, 0, 1));
    pb_line(b, 1, 1);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_NATIVE, sleep, 1);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert(!end.ended);
    struct heap_stats stats;
    OK(heap_stats_collect(host.vm, &stats));
    ck_assert_uint_eq(row(&stats, "list of int")->count, 1);
    heap_stats_fini(&stats);
    run_host_close(&host);
}
END_TEST

START_TEST(test_without_memory_nothing_is_left)
{
    open_host();
    uint64_t bytes = host.vm->heap_bytes, peak = host.vm->heap_bytes_peak;
    bool worked = false;
    for (uint64_t n = 0; !worked && n < 100; n++) {
        struct heap_stats stats;
        mem_fail_after(n);
        cy_err err = heap_stats_collect(host.vm, &stats);
        mem_fail_never();
        worked = !cy_failed(err);
        if (worked) heap_stats_fini(&stats);
        ck_assert_uint_eq(host.vm->heap_bytes, bytes);
        ck_assert_uint_eq(host.vm->heap_bytes_peak, peak);
    }
    ck_assert(worked);
    run_host_close(&host);
}
END_TEST

START_TEST(test_peak_stays_when_memory_goes)
{
    open_host();
    struct vm_counters counters;
    cy_value text;
    uint8_t *data;
    uint64_t bytes = host.vm->heap_bytes;
    OK(string_new_blank(host.vm, 1 << 20, &text, &data));
    value_unref(host.vm, text);
    vm_read_counters(host.vm, &counters);
    ck_assert_uint_eq(counters.heap_bytes, bytes);
    ck_assert_uint_ge(counters.heap_bytes_peak, bytes + (1 << 20));
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_heap_stats(void);
Suite *unit_suite_run_heap_stats(void)
{
    Suite *suite = suite_create("run_heap_stats");
    TCase *tests = tcase_create("heap_stats");
    tcase_add_test(tests, test_each_object_once_with_its_bytes);
    tcase_add_test(tests, test_a_cycle_is_the_remainder);
    tcase_add_test(tests, test_stacks_are_roots);
    tcase_add_test(tests, test_without_memory_nothing_is_left);
    tcase_add_test(tests, test_peak_stays_when_memory_goes);
    suite_add_tcase(suite, tests);
    return suite;
}
