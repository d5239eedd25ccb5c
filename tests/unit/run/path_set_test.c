/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/path_set_test.c: proves that a field of a handle or an opaque value that could not be made is an
 * error.
 */
#include "tests/unit/run/run_host.h"
#include "vm/run/handle.h"

#include <check.h>

static struct run_host host;

/* As bodies are written: the value failed, the field exists. */
static bool path_field(struct vm *vm, void *object, cy_bytes name, cy_value *owned_out, cy_err *err_out)
{
    (void)vm;
    (void)object;
    (void)owned_out;
    if (!cy_bytes_equal(name, CY_BYTES("text"))) return false;
    *err_out = CY_ERR(NO_MEMORY);
    return true;
}

START_TEST(test_a_field_that_cannot_be_made)
{
    static const struct handle_type handle_type = {"thing", NULL, path_field};
    static const struct opaque_type opaque_type = {"thing", NULL, path_field};
    struct program_builder *b = program_builder_new();
    pb_module(b, "main", "main.han");
    static const char *const fields[] = {"text", "other"};
    for (int i = 0; i < 2; i++) {
        pb_export(b, fields[i], EXPORT_FUNCTION, pb_function(b, fields[i], 1, 1, 1));
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_FIELD_GET, pb_str(b, fields[i]));
        pb_op(b, OP_RETURN);
    }
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    cy_value values[2];
    ck_assert(!cy_failed(handle_open(host.vm, &handle_type, &host, NULL, &values[0])));
    ck_assert(!cy_failed(opaque_new(host.vm, &opaque_type, &host, 0, &values[1])));
    for (int i = 0; i < 4; i++) {
        struct run_end end;
        cy_value arg = value_ref(values[i / 2]);
        ck_assert(!cy_failed(run_host_start(&host, fields[i & 1], &arg, 1, &end, NULL)));
        while (vm_run(host.vm)) {}
        ck_assert(end.ended && end.outcome == CALL_FAILED);
        ck_assert(cy_is(error_reason(host.vm, end.value), i & 1 ? CY_ERR_FIELD : CY_ERR_NO_MEMORY));
        run_end_clear(&end);
    }
    value_unref(host.vm, values[1]);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_path_set(void);
Suite *unit_suite_run_path_set(void)
{
    Suite *suite = suite_create("run_path_set");
    TCase *tests = tcase_create("path_set");
    tcase_add_test(tests, test_a_field_that_cannot_be_made);
    suite_add_tcase(suite, tests);
    return suite;
}
