/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/prepare_test.c: proves what lowering may not change: what a handler sees of moved locals, what an
 * argument that was not given is, that code which no compiler writes means what its instructions say, and that
 * preparing is linear in the code.
 */
#include "tests/unit/run/run_host.h"
#include "vm/run/vm_internal.h"

#include <check.h>

static struct run_host host;
static struct program_builder *b;

static void build_function(const char *name, uint8_t required, uint8_t params, uint16_t locals)
{
    uint32_t index = pb_function(b, name, required, params, locals);
    pb_export(b, name, EXPORT_FUNCTION, index);
    pb_line(b, 10, 5);
}
static void build_begin(void)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
}
static void build_open(void) { ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0)); }

/* The result's text, or the error's message, borrowed until the next call. */
static const char *run_text(const char *name, const cy_value *args, uint32_t arg_count)
{
    struct run_end end;
    ck_assert(!cy_failed(run_host_start(&host, name, args, arg_count, &end, NULL)));
    while (vm_run(host.vm)) {}
    ck_assert(end.ended);
    static char text[256];
    cy_bytes shown = cy_bytes_from_text(run_host_text(&host, end.value));
    if (end.outcome == CALL_FAILED) shown = error_message(host.vm, end.value);
    ck_assert_uint_lt(shown.count, sizeof text);
    memcpy(text, shown.data, shown.count);
    text[shown.count] = 0;
    run_end_clear(&end);
    return text;
}

/* LOCAL_TAKE leaves nil, also when the next instruction fails before it consumed the value. */
START_TEST(test_a_handler_sees_moved_locals_as_nil)
{
    build_begin();
    build_function("below", 1, 1, 2); /* the moved value lies below the operand that fails */
    uint32_t caught = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NEG);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    pb_place(b, caught);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    build_function("check", 1, 1, 2); /* the moved value itself is refused */
    caught = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_CHECK_KIND, KIND_INT);
    pb_op(b, OP_RETURN);
    pb_place(b, caught);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    build_open();
    cy_value text;
    for (int i = 0; i < 2; i++) {
        ck_assert(!cy_failed(string_new(host.vm, CY_BYTES("old"), &text)));
        ck_assert_str_eq(run_text(i ? "check" : "below", &text, 1), "nil");
    }
    run_host_close(&host);
}
END_TEST

/* A function that captures a moved local captures nil: the move is not left out because nobody else reads it. */
START_TEST(test_a_closure_sees_a_moved_local_as_nil)
{
    build_begin();
    build_function("main", 1, 1, 2);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_ADD);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_CLOSURE, 1);
    pb_op(b, OP_CALL, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    uint32_t child = pb_function(b, "child", 0, 0, 0);
    ck_assert_uint_eq(child, 1);
    pb_parent(b, 0);
    pb_capture(b, true, 0);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(7)}, 1), "[nil, 8]");
    run_host_close(&host);
}
END_TEST

/* A value that was pushed before its local is appended to is the one from before. */
START_TEST(test_a_push_before_an_append)
{
    build_begin();
    build_function("main", 1, 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_LOCAL_APPEND, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_open();
    cy_value list;
    ck_assert(!cy_failed(list_new(host.vm, 0, &list)));
    ck_assert(!cy_failed(list_append(host.vm, &list, value_int(1))));
    ck_assert_str_eq(run_text("main", &list, 1), "[[1], [1, 5]]");
    run_host_close(&host);
}
END_TEST

/* What moving leaves behind is as false as any nil, whatever the payload was. */
START_TEST(test_a_moved_local_is_false)
{
    build_begin();
    build_function("main", 1, 1, 2);
    uint32_t no = pb_label(b);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_JUMP_IF_FALSE, no);
    pb_op(b, OP_TRUE);
    pb_op(b, OP_RETURN);
    pb_place(b, no);
    pb_op(b, OP_FALSE);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(7)}, 1), "false");
    run_host_close(&host);
}
END_TEST

/* An argument that was not given: false, equal to nil, of kind nil, printed as nil, alone and in containers. */
START_TEST(test_absent_reads_as_nil)
{
    build_begin();
    build_function("main", 0, 1, 1); /* never defaulted: local 0 is absent */
    uint32_t given = pb_label(b);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_NOT);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_EQ);
    pb_op(b, OP_NIL);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_EQ);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_IS_KIND, KIND_NIL);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ABSENT);
    pb_op(b, OP_NIL);
    pb_op(b, OP_NE);
    pb_op(b, OP_LIST, 6);
    pb_op(b, OP_LOCAL_DEFAULT, 0, given); /* and yet it is told from nil here */
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_RETURN);
    pb_place(b, given);
    pb_op(b, OP_RETURN);
    build_function("key", 0, 1, 1); /* {[nil]: 5}[[absent]] */
    pb_op(b, OP_NIL);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_MAP, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_INDEX_GET);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", NULL, 0), "[[true, true, true, true, nil, false]]");
    ck_assert_str_eq(run_text("key", NULL, 0), "5");
    run_host_close(&host);
}
END_TEST

/* Passing it on where an argument is required is a wrong call: of a function by name or by value, of a task, of the
 * host, of a native. */
START_TEST(test_absent_is_no_required_argument)
{
    build_begin();
    uint32_t two = pb_function(b, "two", 2, 2, 2);
    pb_export(b, "two", EXPORT_FUNCTION, two);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_RETURN);
    build_function("known", 0, 0, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_ABSENT);
    pb_op(b, OP_CALL_FUNCTION, two, 2);
    pb_op(b, OP_RETURN);
    static const uint8_t calls[] = {OP_CALL, OP_SPAWN};
    for (int i = 0; i < 2; i++) {
        build_function(i ? "spawned" : "value", 0, 0, 0);
        pb_op(b, OP_CLOSURE, two);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_ABSENT);
        pb_op(b, calls[i], 2);
        pb_op(b, OP_RETURN);
    }
    build_function("native", 0, 0, 0);
    pb_op(b, OP_ABSENT);
    pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
    pb_op(b, OP_RETURN);
    build_function("print", 0, 0, 0); /* any number of any values: nil */
    pb_op(b, OP_ABSENT);
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("known", NULL, 0), "two: argument 2 is required");
    ck_assert_str_eq(run_text("value", NULL, 0), "two: argument 2 is required");
    ck_assert_str_eq(run_text("spawned", NULL, 0), "two: argument 2 is required");
    ck_assert_str_eq(run_text("native", NULL, 0), "task.wait: argument 1 is required");
    ck_assert_str_eq(run_text("print", NULL, 0), "nil");
    struct run_end end;
    const cy_value args[2] = {value_absent(), value_int(1)};
    ck_assert(cy_is(run_host_start(&host, "two", args, 2, &end, NULL), CY_ERR_CALL));
    run_host_close(&host);
}
END_TEST

/* Preparing looks at a bounded number of stack entries for each instruction, however many there are, and also where
 * jumps arrive. */
START_TEST(test_preparing_is_linear)
{
    enum { DEPTH = 20000, TIMES = 20000 };
    build_begin();
    build_function("main", 0, 0, 1);
    for (int i = 0; i < DEPTH / 2; i++) {
        pb_op(b, OP_NIL);
        pb_op(b, OP_LOCAL_GET, 0);
    }
    for (int i = 0; i < TIMES; i++) {
        pb_op(b, OP_TRUE);
        pb_op(b, OP_LOCAL_SET, 0);
    }
    for (int i = 0; i < TIMES; i++) { /* a target that nothing falls into */
        uint32_t next = pb_label(b);
        pb_op(b, OP_JUMP, next);
        pb_place(b, next);
    }
    pb_op(b, OP_RETURN);
    build_open();
    uint64_t instructions = DEPTH + 3 * TIMES + 1;
    ck_assert_uint_lt(host.vm->prepare_looks, 100 * instructions);
    ck_assert_str_eq(run_text("main", NULL, 0), "nil");
    run_host_close(&host);
}
END_TEST

/* More notes than the model keeps: the oldest are made real, in order, and all values arrive. */
START_TEST(test_many_pending_values)
{
    build_begin();
    build_function("main", 1, 1, 1);
    for (int i = 0; i < 100; i++) pb_op(b, OP_INT8, i);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_LOCAL_SET, 0); /* the value read before stays */
    pb_op(b, OP_LIST, 101);
    pb_op(b, OP_INT8, 100);
    pb_op(b, OP_INDEX_GET);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(42)}, 1), "42");
    run_host_close(&host);
}
END_TEST

/* A local that was moved is nil to whoever reads it later, behind a loop or a jump, although a step could have taken
 * the number from where it was; one that is set first may keep what it had. */
START_TEST(test_a_moved_number_is_nil_where_it_is_read)
{
    static const uint8_t uses[] = {OP_ADD, OP_LT, OP_INDEX_GET};
    build_begin();
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"add", "less", "index"};
        build_function(names[i], 1, 1, 3);
        uint32_t end = pb_label(b), out = pb_label(b), top = pb_label(b);
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_INTLOOP_BEGIN);
        pb_place(b, top);
        pb_op(b, OP_INTLOOP_NEXT, 1, out);
        if (i == 2) {
            pb_op(b, OP_INT8, 7);
            pb_op(b, OP_LIST, 1);
            pb_op(b, OP_LOCAL_TAKE, 0);
        } else {
            pb_op(b, OP_LOCAL_TAKE, 0);
            pb_op(b, OP_INT8, 7);
        }
        pb_op(b, uses[i]);
        pb_op(b, OP_LOCAL_SET, 2);
        pb_op(b, OP_LOOP, top);
        pb_place(b, out);
        pb_op(b, OP_INTLOOP_END);
        pb_op(b, OP_LOCAL_GET, 2);
        pb_op(b, OP_JUMP_IF_FALSE, end);
        pb_place(b, end);
        pb_op(b, OP_LOCAL_GET, 2);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_LIST, 2);
        pb_op(b, OP_RETURN);
    }
    build_open();
    ck_assert_str_eq(run_text("add", (cy_value[]){value_int(5)}, 1), "[12, nil]");
    ck_assert_str_eq(run_text("less", (cy_value[]){value_int(5)}, 1), "[true, nil]");
    ck_assert_str_eq(run_text("index", (cy_value[]){value_int(0)}, 1), "[7, nil]");
    run_host_close(&host);
}
END_TEST

/* A value that a write takes from a local leaves nil there, as the key does; a number too. */
START_TEST(test_a_write_moves_its_value)
{
    build_begin();
    build_function("main", 1, 1, 2);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_LOCAL_TAKE, 0);
    pb_op(b, OP_LOCAL_PATH_SET, 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 1);
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(5)}, 1), "[nil, [5]]");
    run_host_close(&host);
}
END_TEST

/* A module variable is read where the code reads it: what is written between the push and the use does not count. */
START_TEST(test_a_module_variable_is_read_where_it_stands)
{
    build_begin();
    uint32_t g = pb_global(b, "g"), h = pb_global(b, "h");
    uint32_t writer = pb_function(b, "writer", 0, 0, 0);
    pb_op(b, OP_INT8, 9);
    pb_op(b, OP_LIST, 1);
    pb_op(b, OP_GLOBAL_SET, g);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_RETURN);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"set", "call", "append", "plain"};
        build_function(names[i], 0, 0, 1);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_LIST, 1);
        pb_op(b, OP_GLOBAL_SET, g);
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_GLOBAL_SET, h);
        pb_op(b, OP_GLOBAL_GET, g);
        if (i == 0) {
            pb_op(b, OP_INT8, 2);
            pb_op(b, OP_LIST, 1);
            pb_op(b, OP_GLOBAL_SET, g);
        }
        if (i == 1)
            pb_op(b, OP_CALL_FUNCTION, writer, 0);
        else if (i == 2) {
            pb_op(b, OP_GLOBAL_GET, h);
            pb_op(b, OP_GLOBAL_GET, g);
            pb_op(b, OP_GLOBAL_APPEND, g);
        } else
            pb_op(b, OP_GLOBAL_GET, h);
        pb_op(b, OP_INDEX_GET);
        pb_op(b, OP_GLOBAL_GET, g);
        pb_op(b, OP_LIST, 2);
        pb_op(b, OP_RETURN);
    }
    build_open();
    ck_assert_str_eq(run_text("set", NULL, 0), "[1, [2]]");
    ck_assert_str_eq(run_text("call", NULL, 0), "[1, [9]]");
    ck_assert_str_eq(run_text("append", NULL, 0), "[1, [1, [1]]]");
    ck_assert_str_eq(run_text("plain", NULL, 0), "[1, [1]]");
    run_host_close(&host);
}
END_TEST

/* Looking whether a local is read again stops after a while, however often and wherever a local is moved. */
START_TEST(test_looking_for_readers_is_linear)
{
    enum { TIMES = 20000 };
    build_begin();
    build_function("main", 1, 1, 1);
    for (int i = 0; i < TIMES; i++) {
        uint32_t next = pb_label(b);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_LOCAL_TAKE, 0);
        pb_op(b, OP_EQ);
        pb_op(b, OP_JUMP_IF_FALSE, next);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_LOCAL_SET, 0);
        pb_place(b, next);
    }
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    build_open();
    ck_assert_uint_lt(host.vm->prepare_looks, 100 * (6 * TIMES + 2));
    ck_assert_str_eq(run_text("main", (cy_value[]){value_int(1)}, 1), "1");
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_prepare(void);
Suite *unit_suite_run_prepare(void)
{
    Suite *suite = suite_create("run_prepare");
    TCase *tests = tcase_create("prepare");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_a_handler_sees_moved_locals_as_nil);
    tcase_add_test(tests, test_a_moved_local_is_false);
    tcase_add_test(tests, test_a_closure_sees_a_moved_local_as_nil);
    tcase_add_test(tests, test_a_push_before_an_append);
    tcase_add_test(tests, test_absent_reads_as_nil);
    tcase_add_test(tests, test_absent_is_no_required_argument);
    tcase_add_test(tests, test_preparing_is_linear);
    tcase_add_test(tests, test_many_pending_values);
    tcase_add_test(tests, test_a_moved_number_is_nil_where_it_is_read);
    tcase_add_test(tests, test_a_write_moves_its_value);
    tcase_add_test(tests, test_a_module_variable_is_read_where_it_stands);
    tcase_add_test(tests, test_looking_for_readers_is_linear);
    suite_add_tcase(suite, tests);
    return suite;
}
