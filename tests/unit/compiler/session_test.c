/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/session_test.c: proves that a session's programs begin like the ones before them, that inputs see
 * what stands before them and only that, and where a text is open.
 */
#include "compiler/session.h"

#include "vm/base/limits.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { INPUTS_MAX = 8 };

static struct session_input inputs[INPUTS_MAX];
static uint32_t input_count;
static const char *main_text;
static struct builder messages;
static struct session_result result;

static cy_err read_source(void *context, const char *path, struct builder *out)
{
    (void)context;
    if (path[0] != '[') return CY_ERR(NOT_FOUND);
    builder_text(out, main_text);
    return CY_OK;
}

/* The program with `text` behind the inputs so far, NULL when it is refused. */
static struct program *compile(const char *text, uint32_t skip_bytes)
{
    char path[16];
    snprintf(path, sizeof path, "[%u]", input_count);
    struct compile_session session = {inputs, input_count, skip_bytes, &result};
    struct compile_options options = {.path = path,
                                      .stdlib = stdlib_modules,
                                      .stdlib_count = stdlib_module_count,
                                      .session = &session,
                                      .read_source = read_source};
    struct program *program;
    uint32_t error_count;
    main_text = text;
    builder_clear(&messages);
    cy_err err = compile_program(&options, &program, &messages, &error_count);
    ck_assert(cy_failed(err) == (program == NULL));
    return program;
}

static void accept(const char *text, uint32_t skip_bytes, bool hidden)
{
    static const char *const names[INPUTS_MAX] = {"[0]", "[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[7]"};
    struct program *program = compile(text, skip_bytes);
    ck_assert_msg(program != NULL, "%s", builder_text_view(&messages));
    program_free(&program);
    inputs[input_count] = (struct session_input){cy_bytes_from_text(names[input_count]),
                                                 cy_bytes_from_text(text), skip_bytes, hidden};
    input_count++;
}

static void begin(void)
{
    builder_init(&messages);
    input_count = 0;
    accept("", 0, false);
}
static void end(void) { builder_fini(&messages); }

static void refused(const char *text, const char *why)
{
    struct program *program = compile(text, 0);
    ck_assert_ptr_null(program);
    ck_assert_msg(strstr(builder_text_view(&messages), why), "%s", builder_text_view(&messages));
}

START_TEST(test_programs_begin_like_the_ones_before)
{
    begin();
    accept("let x = 1 fn f(a) { return [a, x, \"text\"] }", 0, false);
    accept("list.map([1], fn (v) { return v + 1 })", 0, false);
    struct program *before = compile("let y = f(2)", 0);
    accept("let y = f(2)", 0, false);
    struct program *after = compile("list.filter(map.keys({a: \"text\", b: 2.5}), f)", 0);
    ck_assert(before && after);
    ck_assert_uint_gt(after->module_count, before->module_count);
    ck_assert_uint_gt(after->function_count, before->function_count);
    for (uint32_t i = 0; i < before->function_count; i++) {
        const struct function *a = &before->functions[i], *b = &after->functions[i];
        ck_assert_uint_eq(a->code_bytes, b->code_bytes);
        ck_assert_mem_eq(a->code, b->code, a->code_bytes);
    }
    for (uint32_t i = 0; i < before->native_count; i++)
        ck_assert(cy_bytes_equal(program_string(before, before->natives[i].name),
                                 program_string(after, after->natives[i].name)));
    program_free(&before);
    program_free(&after);
    end();
}
END_TEST

START_TEST(test_one_input_at_a_time)
{
    static const char text[] = "let a = 1 fn f() { return a } f() a + 1 // end";
    begin();
    accept(text, 0, false);
    ck_assert_int_eq(result.kind, SESSION_DECLARATIONS);
    ck_assert_str_eq(text + result.end_bytes, "f() a + 1 // end");
    accept(text, result.end_bytes, false);
    ck_assert_int_eq(result.kind, SESSION_STATEMENT);
    ck_assert_str_eq(text + result.end_bytes, "a + 1 // end");
    accept(text, result.end_bytes, false);
    ck_assert_uint_eq(result.end_bytes, sizeof text - 1);
    accept("// nothing", 0, false);
    ck_assert_int_eq(result.kind, SESSION_NOTHING);
    end();
}
END_TEST

START_TEST(test_names)
{
    begin();
    accept("let x = 1 const c = 2 record P { a: int }", 0, false);
    accept("let x = x + 1", 0, false); /* the x before */
    accept("let broken = 1 fn uses() { return broken }", 0, true);
    refused("broken", "unknown name `broken`");
    refused("c = 3", "c");
    refused("P(b: 1)", "b");
    refused("let z = nowhere", "[4]:1:9");
    accept("x = \"any kind\"", 0, false);
    accept("fn take(p: P) { return p.a }", 0, false);
    ck_assert_ptr_null(compile("let x = 1 let x = 2", 0)); /* twice in one input */
    end();
}
END_TEST

START_TEST(test_open_texts)
{
    static const char *const open[] = {"fn f() {",        "[1,",  "print(", "let t = `raw",
                                       "if a { b(\"}\")", "{a: ["};
    static const char *const closed[] = {"",        "1",    "}",   "f()",       "\"not ended",
                                         "\"{[(\"", "// {", "`{`", "print(\"x", "[1])"};
    for (size_t i = 0; i < CY_COUNT_OF(open); i++)
        ck_assert_msg(session_is_open(cy_bytes_from_text(open[i])), "%s", open[i]);
    for (size_t i = 0; i < CY_COUNT_OF(closed); i++)
        ck_assert_msg(!session_is_open(cy_bytes_from_text(closed[i])), "%s", closed[i]);
}
END_TEST

Suite *unit_suite_compiler_session(void);
Suite *unit_suite_compiler_session(void)
{
    Suite *suite = suite_create("compiler_session");
    TCase *tests = tcase_create("session");
    tcase_add_test(tests, test_programs_begin_like_the_ones_before);
    tcase_add_test(tests, test_one_input_at_a_time);
    tcase_add_test(tests, test_names);
    tcase_add_test(tests, test_open_texts);
    suite_add_tcase(suite, tests);
    return suite;
}
