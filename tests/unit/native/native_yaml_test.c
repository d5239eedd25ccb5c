/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/native_yaml_test.c: proves that a document becomes the nodes that native.def promises, that
 * whatever allocation fails nothing is left behind, and that the deepest document is read.
 */
#include "vm/native/native_yaml.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

#include <check.h>

static const native_body native_yaml_test_natives[NATIVE_NUMBER_END];

static uint64_t native_yaml_test_clock(void *host)
{
    (void)host;
    return 0;
}

static struct vm *native_yaml_test_vm(struct log *log)
{
    log_init(log);
    struct vm_options options = {
        .natives = native_yaml_test_natives,
        .seed = {1, 2},
        .log = log,
        .clock_ns = native_yaml_test_clock,
    };
    struct vm *vm = NULL;
    ck_assert(!cy_failed(vm_new(&options, &vm)));
    return vm;
}

static uint64_t native_yaml_test_objects(struct vm *vm)
{
    struct vm_counters counters;
    while (vm_idle(vm)) continue;
    vm_read_counters(vm, &counters);
    return counters.heap_objects;
}

static cy_err native_yaml_test_read(struct vm *vm, cy_bytes text, cy_value *owned_out)
{
    struct yaml_walk_fault fault;
    yaml_walk_fault_init(&fault);
    cy_err err = native_yaml_read(vm, text, false, &fault, owned_out);
    yaml_walk_fault_fini(&fault);
    return err;
}

struct native_yaml_case {
    const char *yaml;
    const char *printed;
};
static const struct native_yaml_case native_yaml_test_cases[] = {
    {"", "nil"},
    {"a", "{\"kind\": \"scalar\", \"line\": 1, \"column\": 1, \"value\": \"a\", \"quoted\": false}"},
    {" 'a'", "{\"kind\": \"scalar\", \"line\": 1, \"column\": 2, \"value\": \"a\", \"quoted\": true}"},
    {"[]", "{\"kind\": \"list\", \"line\": 1, \"column\": 1, \"items\": []}"},
    {"{}", "{\"kind\": \"map\", \"line\": 1, \"column\": 1, \"entries\": []}"},
    {"- k: v\n", "{\"kind\": \"list\", \"line\": 1, \"column\": 1, \"items\": [{\"kind\": \"map\", \"line\": "
                 "1, \"column\": 3, "
                 "\"entries\": [{\"key\": {\"kind\": \"scalar\", \"line\": 1, \"column\": 3, \"value\": "
                 "\"k\", \"quoted\": false}, "
                 "\"value\": {\"kind\": \"scalar\", \"line\": 1, \"column\": 6, \"value\": \"v\", "
                 "\"quoted\": false}}]}]}"},
};

START_TEST(test_nodes)
{
    const struct native_yaml_case *row = &native_yaml_test_cases[_i];
    struct log log;
    struct vm *vm = native_yaml_test_vm(&log);
    cy_value root;
    struct builder printed;
    builder_init(&printed);
    ck_assert(!cy_failed(native_yaml_test_read(vm, cy_bytes_from_text(row->yaml), &root)));
    value_format(vm, root, true, &printed);
    /* How print separates a key from its value is not this test's business. */
    ck_assert_str_eq(builder_text_view(&printed), row->printed);
    value_unref(vm, root);
    builder_fini(&printed);
    vm_free(&vm);
}
END_TEST

START_TEST(test_whatever_allocation_fails_nothing_is_left)
{
    struct log log;
    struct vm *vm = native_yaml_test_vm(&log);
    cy_bytes text = CY_BYTES("services:\n- name: a\n  domain: [b, 'c', {d: [e]}]\n- name: 나\n  domain: z\n");
    uint64_t before = native_yaml_test_objects(vm);
    cy_err err = CY_ERR(NO_MEMORY);
    uint64_t n = 0;
    for (; cy_failed(err); n++) {
        cy_value root = value_nil();
        mem_fail_after(n);
        err = native_yaml_test_read(vm, text, &root);
        mem_fail_never();
        if (cy_failed(err))
            ck_assert_msg(cy_is(err, CY_ERR_NO_MEMORY), "allocation %u: %s", (unsigned)n, cy_err_name(err));
        value_unref(vm, root);
        ck_assert_uint_eq(native_yaml_test_objects(vm), before);
        ck_assert_uint_lt(n, 10000);
    }
    ck_assert_uint_gt(n, 20); /* that many allocations at least were made to fail */
    vm_free(&vm);
}
END_TEST

START_TEST(test_a_fault_in_the_middle_leaves_nothing)
{
    struct log log;
    struct vm *vm = native_yaml_test_vm(&log);
    uint64_t before = native_yaml_test_objects(vm);
    cy_value root = value_nil();
    ck_assert(
        cy_is(native_yaml_test_read(vm, CY_BYTES("- a: [b, {c: d}]\n- e: *f\n"), &root), CY_ERR_BAD_FORMAT));
    ck_assert_uint_eq(root.tag, TAG_NIL);
    ck_assert_uint_eq(native_yaml_test_objects(vm), before);
    vm_free(&vm);
}
END_TEST

START_TEST(test_the_deepest_document)
{
    struct log log;
    struct vm *vm = native_yaml_test_vm(&log);
    struct builder text;
    builder_init(&text);
    for (int i = 0; i < LIMIT_YAML_DEPTH / 2; i++) builder_text(&text, "{a: [");
    for (int i = 0; i < LIMIT_YAML_DEPTH / 2; i++) builder_text(&text, "]}");
    cy_value root, node;
    ck_assert(!cy_failed(native_yaml_test_read(vm, builder_view(&text), &root)));
    node = root;
    uint32_t depth = 0;
    for (cy_value next;; node = next) {
        if (map_get_text(vm, node, CY_BYTES("entries"), &next)) {
            ck_assert(map_get_text(vm, list_get(next, 0), CY_BYTES("value"), &next));
        } else {
            ck_assert(map_get_text(vm, node, CY_BYTES("items"), &next));
            if (list_count(next) == 0) break;
            next = list_get(next, 0);
        }
        depth++;
    }
    ck_assert_uint_eq(depth, LIMIT_YAML_DEPTH - 1);
    value_unref(vm, root);
    builder_fini(&text);
    vm_free(&vm);
}
END_TEST

Suite *unit_suite_native_native_yaml(void);
Suite *unit_suite_native_native_yaml(void)
{
    Suite *suite = suite_create("native_native_yaml");
    TCase *tcase = tcase_create("all");
    tcase_add_loop_test(tcase, test_nodes, 0, CY_COUNT_OF(native_yaml_test_cases));
    tcase_add_test(tcase, test_whatever_allocation_fails_nothing_is_left);
    tcase_add_test(tcase, test_a_fault_in_the_middle_leaves_nothing);
    tcase_add_test(tcase, test_the_deepest_document);
    suite_add_tcase(suite, tcase);
    return suite;
}
