/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/refs_test.c: proves the search for cycles through cells: all that nobody reaches is freed, nothing
 * else is, whatever the program does between two slices of the search.
 */
#include "tests/unit/run/run_source.h"
#include "vm/base/mem.h"
#include "vm/run/code.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/refs.h"
#include "vm/run/vm_internal.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static struct run_host host;

static void refs_open(void)
{
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    pb_export(b, "main", EXPORT_FUNCTION, pb_function(b, "main", 0, 0, 0));
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
}

static cy_value cell_of(cy_value owned_content)
{
    cy_value cell;
    ck_assert(!cy_failed(ref_new(host.vm, owned_content, &cell)));
    return cell;
}
static void cell_write(cy_value cell, cy_value owned_content)
{
    struct ref *ref = ref_touch_to_write(host.vm, cell);
    cy_value before = ref->value;
    ref->value = owned_content;
    value_unref(host.vm, before);
}
static cy_value list_of_two(cy_value owned_a, cy_value owned_b)
{
    cy_value list;
    ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
    ck_assert(!cy_failed(list_append(host.vm, &list, owned_a)));
    ck_assert(!cy_failed(list_append(host.vm, &list, owned_b)));
    return list;
}
static cy_value map_with(cy_value owned_value)
{
    cy_value map;
    ck_assert(!cy_failed(map_new(host.vm, 0, &map)));
    ck_assert(!cy_failed(map_set_text(host.vm, &map, CY_BYTES("k"), owned_value)));
    return map;
}
static cy_value record_with(cy_value owned_value)
{
    cy_value record;
    ck_assert(!cy_failed(error_new(host.vm, CY_ERR(VALUE), CY_BYTES("m"), owned_value, &record)));
    return record;
}
static cy_value closure_over(cy_value owned_value)
{
    cy_value function;
    ck_assert(!cy_failed(function_new(host.vm, host.instance, 0, false, 1, &function)));
    function_of(function)->captures[0] = owned_value;
    return function;
}

static void search_all(void)
{
    while (refs_slice(host.vm, 1000)) {}
    refs_begin(host.vm);
    while (refs_slice(host.vm, 7)) {}
    while (heap_drain(host.vm, 1000)) {}
}

/* Each kind of container between a cell and itself. */
START_TEST(test_every_kind_of_cycle)
{
    refs_open();
    for (int kind = 0; kind < 7; kind++) {
        cy_value cell = cell_of(value_int(1)), content = value_ref(cell);
        switch (kind) {
        case 0: break;
        case 1: content = list_of_two(content, value_int(2)); break;
        case 2: content = map_with(content); break;
        case 3: content = record_with(content); break;
        case 4: content = closure_over(content); break;
        case 5: content = cell_of(content); break; /* two cells */
        default:
            content = closure_over(map_with(record_with(list_of_two(cell_of(content), value_int(3)))));
            break;
        }
        cell_write(cell, content);
        search_all();
        ck_assert_msg(host.vm->ref_count > 0 && ref_of(cell)->value.tag != TAG_NIL, "kind %d", kind);
        value_unref(host.vm, cell);
        ck_assert_uint_gt(host.vm->ref_count, 0);
        search_all();
        ck_assert_msg(host.vm->ref_count == 0, "kind %d: %d cells left", kind, (int)host.vm->ref_count);
    }
    run_host_close(&host);
}
END_TEST

/* A cycle that something in the middle is held of lives, also by a part of its content alone. */
START_TEST(test_held_from_outside)
{
    refs_open();
    cy_value a = cell_of(value_int(1)), list = list_of_two(value_ref(a), value_int(5));
    cy_value b = cell_of(value_ref(list));
    cell_write(a, map_with(b));
    value_unref(host.vm, a); /* only the list is ours: list -> a -> map -> b -> list */
    search_all();
    ck_assert_uint_eq(host.vm->ref_count, 2);
    ck_assert_int_eq(ref_of(list_get(list, 0))->value.tag, TAG_MAP);
    value_unref(host.vm, list);
    search_all();
    ck_assert_uint_eq(host.vm->ref_count, 0);
    run_host_close(&host);
}
END_TEST

/* A chain of a hundred thousand cells in cells that closes: no recursion, and no slice is longer than asked for. */
START_TEST(test_long_chain_in_slices)
{
    refs_open();
    cy_value first = cell_of(value_int(0)), last = value_ref(first);
    for (int i = 0; i < 100000; i++) last = cell_of(last);
    cell_write(first, last);
    refs_begin(host.vm);
    int slices = 0;
    while (refs_slice(host.vm, 1000)) slices++;
    ck_assert_int_gt(slices, 200); /* two looks at each */
    ck_assert_uint_eq(host.vm->ref_count, 100001);
    value_unref(host.vm, first);
    search_all();
    ck_assert_uint_eq(host.vm->ref_count, 0);
    run_host_close(&host);
}
END_TEST

/* In the middle of a search the program takes something out of a cell that was looked at, and lets go of the rest. */
START_TEST(test_taken_out_meanwhile)
{
    for (size_t slice = 1; slice < 24; slice++) {
        refs_open();
        cy_value inner = cell_of(value_int(7)), root = cell_of(value_int(1));
        cell_write(inner, list_of_two(value_ref(inner), value_int(7))); /* a cycle of its own */
        cell_write(root, list_of_two(inner, value_int(1)));
        refs_begin(host.vm);
        refs_slice(host.vm, slice);
        cy_value taken = value_ref(list_get(ref_touch(host.vm, root)->value, 0));
        cell_write(root, value_int(0));
        value_unref(host.vm, root);
        while (refs_slice(host.vm, 1)) {}
        ck_assert_msg(ref_of(taken)->value.tag == TAG_LIST, "slice %zu", slice);
        ck_assert_int_eq(list_get(ref_of(taken)->value, 1).as.i, 7);
        search_all();
        ck_assert_uint_eq(host.vm->ref_count, 1);
        value_unref(host.vm, taken);
        search_all();
        ck_assert_uint_eq(host.vm->ref_count, 0);
        run_host_close(&host);
    }
}
END_TEST

/* -- random graphs against a model of what is reachable ---------------------------------------------------- */

enum { VARIABLES = 24, OPERATIONS = 4000 };
static cy_value variables[VARIABLES];
static uint64_t random_state;

static uint32_t random_below(uint32_t bound)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % bound;
}
static cy_value *any_variable(void) { return &variables[random_below(VARIABLES)]; }
static void assign(cy_value *variable, cy_value owned)
{
    cy_value before = *variable;
    *variable = owned;
    value_unref(host.vm, before);
}
/* Contents of cells are never nil: a cell that is nil was emptied. */
static cy_value some_content(void)
{
    cy_value value = *any_variable();
    return value.tag == TAG_NIL ? value_int(1) : value_ref(value);
}

static void operate(void)
{
    cy_value *to = any_variable(), from = *any_variable();
    switch (random_below(13)) {
    case 0:
    case 1: assign(to, cell_of(some_content())); break;
    case 2: assign(to, list_of_two(some_content(), some_content())); break;
    case 3: assign(to, map_with(some_content())); break;
    case 4: assign(to, record_with(some_content())); break;
    case 5: assign(to, closure_over(some_content())); break;
    case 6:
    case 7: assign(to, value_nil()); break;
    case 8: assign(to, value_ref(from)); break;
    case 9:
        if (from.tag == TAG_REF) assign(to, value_ref(ref_touch(host.vm, from)->value));
        break;
    case 10:
    case 11:
        if (from.tag == TAG_REF) cell_write(from, some_content());
        break;
    default: /* writes where it is, when nobody else holds it */
        if (to->tag == TAG_LIST && list_count(*to) < 5)
            ck_assert(!cy_failed(list_append(host.vm, to, some_content())));
        else if (from.tag == TAG_LIST)
            assign(to, value_ref(list_get(from, random_below((uint32_t)list_count(from)))));
        break;
    }
}

/* The model: every cell that the variables lead to, found by walking, with a table of what was seen. */
static struct object *seen[20000];
static size_t seen_count;
static size_t cell_count;

static void walk(cy_value value)
{
    if (value.tag != TAG_LIST && value.tag != TAG_MAP && value.tag != TAG_RECORD &&
        value.tag != TAG_FUNCTION && value.tag != TAG_REF)
        return;
    ck_assert_uint_gt(value.as.object->refs, 0);
    for (size_t i = 0; i < seen_count; i++)
        if (seen[i] == value.as.object) return;
    ck_assert_uint_lt(seen_count, CY_COUNT_OF(seen));
    seen[seen_count++] = value.as.object;
    cy_value key, content;
    size_t cursor = 0;
    switch (value.tag) {
    case TAG_LIST:
        for (size_t i = 0; i < list_count(value); i++) walk(list_get(value, i));
        break;
    case TAG_MAP:
        while (map_next(value, &cursor, &key, &content)) walk(content);
        break;
    case TAG_RECORD: walk(error_data(host.vm, value)); break;
    case TAG_FUNCTION: walk(function_of(value)->captures[0]); break;
    default:
        cell_count++;
        ck_assert_msg(ref_of(value)->value.tag != TAG_NIL, "a cell that can be reached was emptied");
        walk(ref_of(value)->value);
        break;
    }
}

static size_t reachable_cells(void)
{
    seen_count = cell_count = 0;
    for (int i = 0; i < VARIABLES; i++) walk(variables[i]);
    return cell_count;
}

static void run_random(uint64_t seed)
{
    random_state = seed;
    refs_open();
    for (int i = 0; i < VARIABLES; i++) variables[i] = value_nil();
    for (int i = 0; i < OPERATIONS; i++) {
        operate();
        if (random_below(3) == 0 && !refs_slice(host.vm, 1 + random_below(6)) && random_below(20) == 0)
            refs_begin(host.vm);
        if (random_below(400) == 0) (void)reachable_cells();
        if (random_below(150) == 0) /* lets go of much, so that there is garbage */
            for (int k = 0; k < VARIABLES; k++)
                if (random_below(2)) assign(&variables[k], value_nil());
    }
    search_all();
    ck_assert_msg(host.vm->ref_count == reachable_cells(), "seed %llu: %llu cells, %zu can be reached",
                  (unsigned long long)seed, (unsigned long long)host.vm->ref_count, cell_count);
    for (int i = 0; i < VARIABLES; i++) assign(&variables[i], value_nil());
    search_all();
    ck_assert_uint_eq(host.vm->ref_count, 0);
    run_host_close(&host);
}

START_TEST(test_random_graphs)
{
    for (uint64_t seed = 1; seed <= 150; seed++) run_random(seed * 7919);
}
END_TEST

/* The search gives up without memory for its own lists, frees nothing then, and the next one does its work. */
START_TEST(test_without_memory)
{
    refs_open();
    for (uint64_t fail = 0; fail < 5; fail++) {
        cy_value cell = cell_of(value_int(1));
        cell_write(cell, closure_over(map_with(list_of_two(value_ref(cell), value_int(1)))));
        refs_begin(host.vm);
        mem_fail_after(fail);
        while (refs_slice(host.vm, 5)) (void)ref_touch(host.vm, cell);
        mem_fail_never();
        ck_assert_int_eq(ref_of(cell)->value.tag, TAG_FUNCTION);
        value_unref(host.vm, cell);
        search_all();
        ck_assert_uint_eq(host.vm->ref_count, 0);
    }
    run_host_close(&host);
}
END_TEST

/* By itself: cycles made again and again do not pile up; a search that finds nothing is not repeated for nothing. */
START_TEST(test_it_begins_by_itself)
{
    refs_open();
    cy_value kept = cell_of(value_int(1));
    for (int i = 0; i < 200000; i++) {
        cy_value cell = cell_of(value_int(1));
        cell_write(cell, list_of_two(value_ref(cell), value_int(1)));
        value_unref(host.vm, cell);
        if (i % 100 == 0)
            while (vm_idle(host.vm)) {}
        ck_assert_uint_lt(host.vm->ref_count, 4000);
    }
    while (vm_idle(host.vm)) {}
    struct vm_counters before, after;
    vm_read_counters(host.vm, &before);
    for (int i = 0; i < 500; i++) (void)vm_idle(host.vm);
    vm_read_counters(host.vm, &after);
    ck_assert_uint_le(after.searches, before.searches + 1);
    ck_assert_uint_gt(after.cells_found, 190000);
    value_unref(host.vm, kept);
    run_host_close(&host);
}
END_TEST

/* The step of function i that knows where a cell's field is; NULL when there is none. */
static const struct run_step *step_that_knows_cells(uint32_t i)
{
    const struct code_function *function = &host.instance->functions[i];
    for (uint32_t at = 0; at + 1 < function->code_count; at++) {
        const struct run_step *step = &function->code[at];
        if (((const struct run_cache *)(step + 1))->shape == &run_cache_ref) return step;
    }
    return NULL;
}

/* Whether the search that ran last was told of the cell. */
static bool was_touched(cy_value cell)
{
    const struct container *container = &ref_of(cell)->container;
    return container->search >> 32 == host.vm->search.epoch && (container->search & 0x20000000u);
}

static void call_with(const char *name, cy_value cell)
{
    struct run_end end;
    cy_value argument = value_ref(cell);
    ck_assert(!cy_failed(run_host_start(&host, name, &argument, 1, &end, NULL)));
    while (!end.ended) (void)vm_run(host.vm);
    ck_assert_int_eq(end.outcome, CALL_RETURNED);
    run_end_clear(&end);
}

/* Reading or writing a cell where the step knows already that it is one (its inline cache) tells the search as the
 * first time does: else what is read could leave the garbage unseen. */
START_TEST(test_cached_steps_tell_the_search)
{
    static const char *const rows[] = {"read", "inside", "write"}; /* functions 0, 1, 2 */
    run_source_open(&host,
                    "export fn read(c) { return c.value }\n"
                    "export fn inside(c) { return c.value[0] }\n"
                    "export fn write(c) { c.value = [[2]] return 1 }\n"
                    "export fn main(args) { }\n",
                    0, UINT64_MAX);
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        cy_value cell = cell_of(list_of_two(map_with(value_nil()), value_int(1)));
        cy_value other = cell_of(list_of_two(map_with(value_nil()), value_int(1)));
        call_with(rows[i], other);
        ck_assert_msg(step_that_knows_cells((uint32_t)i), "%s has no cache", rows[i]);
        while (refs_slice(host.vm, 1000)) {}
        refs_begin(host.vm);
        while (host.vm->search.phase == REFS_COUNTING) (void)refs_slice(host.vm, 1);
        ck_assert(host.vm->search.watching && !was_touched(cell) && !was_touched(other));
        call_with(rows[i], cell);
        ck_assert_msg(was_touched(cell), "%s", rows[i]);
        ck_assert(!was_touched(other));
        while (refs_slice(host.vm, 1000)) {}
        value_unref(host.vm, cell);
        value_unref(host.vm, other);
    }
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_refs(void);
Suite *unit_suite_run_refs(void)
{
    Suite *suite = suite_create("run_refs");
    TCase *tests = tcase_create("refs");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_every_kind_of_cycle);
    tcase_add_test(tests, test_held_from_outside);
    tcase_add_test(tests, test_long_chain_in_slices);
    tcase_add_test(tests, test_taken_out_meanwhile);
    tcase_add_test(tests, test_random_graphs);
    tcase_add_test(tests, test_without_memory);
    tcase_add_test(tests, test_it_begins_by_itself);
    tcase_add_test(tests, test_cached_steps_tell_the_search);
    suite_add_tcase(suite, tests);
    return suite;
}
