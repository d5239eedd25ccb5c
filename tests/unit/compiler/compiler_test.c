/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/compiler_test.c: proves that the same sources give the same bytes, that big programs compile, and
 * how modules are found and named.
 */
#include "compiler/compiler.h"

#include "tests/unit/compiler/compile_text.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/toau.h"

#include <check.h>
#include <stdio.h>

static void compiler_test_bytes(struct compile_text *test, struct builder *out)
{
    compile_text_run(test);
    ck_assert_msg(test->program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test->messages)));
    ck_assert(!cy_failed(toau_write(test->program, out)));
}

static const char compiler_test_main[] =
    "import \"./lib/관리\"\nimport \"text\"\n"
    "record P { x: int = 1, m: map = {a: [1, 2.5]} }\nlet top = [P(), \"s\"]\n"
    "export fn main(args) { print(관리.하나(), top, text.count(\"x\"), 1.5, 300, \"s\") }\n";
static const char compiler_test_lib[] = "내보내기 함수 하나() { 반환 fn (x) { return [x, 1.5, \"s\"] } }\n";

/* Where the files lie must not show. */
START_TEST(test_two_folders_give_the_same_bytes)
{
    static const char *const folders[] = {"", "./", "/somewhere/else/", "a/b/../c/"};
    struct builder first;
    builder_init(&first);
    for (size_t i = 0; i < CY_COUNT_OF(folders); i++) {
        char main_path[64], lib_path[64];
        (void)snprintf(main_path, sizeof main_path, "%smain.han", folders[i]);
        (void)snprintf(lib_path, sizeof lib_path, "%slib/관리.han", folders[i]);
        struct compile_text test;
        compile_text_init(&test, cy_bytes_from_text(compiler_test_main));
        test.files[0].path = main_path;
        compile_text_add(&test, lib_path, cy_bytes_from_text(compiler_test_lib));
        struct builder bytes;
        builder_init(&bytes);
        compiler_test_bytes(&test, &bytes);
        if (i == 0) builder_bytes(&first, builder_view(&bytes));
        ck_assert(cy_bytes_equal(builder_view(&first), builder_view(&bytes)));
        ck_assert(cy_bytes_equal(program_string(test.program, test.program->modules[0].name),
                                 CY_BYTES("lib/관리")));
        ck_assert(cy_bytes_equal(program_string(test.program, test.program->modules[1].file),
                                 CY_BYTES("main.han")));
        builder_fini(&bytes);
        compile_text_fini(&test);
    }
    builder_fini(&first);
}
END_TEST

/* A decomposed import and a decomposed file name, as some file systems have them, are the same module. */
START_TEST(test_decomposed_names_are_the_same_file)
{
    struct builder source, path, composed, decomposed;
    builder_init(&source);
    builder_init(&path);
    builder_init(&composed);
    builder_init(&decomposed);
    ck_assert(!cy_failed(text_to_nfd(cy_bytes_from_text(compiler_test_main), &source)));
    ck_assert(!cy_failed(text_to_nfd(CY_BYTES("lib/관리.han"), &path)));
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(compiler_test_main));
    compile_text_add(&test, "lib/관리.han", cy_bytes_from_text(compiler_test_lib));
    compiler_test_bytes(&test, &composed);
    compile_text_fini(&test);

    compile_text_init(&test, builder_view(&source));
    compile_text_add(&test, builder_text_view(&path), cy_bytes_from_text(compiler_test_lib));
    compile_text_run(&test);
    ck_assert_msg(test.program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test.messages)));
    ck_assert(cy_bytes_equal(program_string(test.program, test.program->modules[0].file),
                             CY_BYTES("lib/관리.han")));
    compile_text_fini(&test);
    builder_fini(&source);
    builder_fini(&path);
    builder_fini(&composed);
    builder_fini(&decomposed);
}
END_TEST

START_TEST(test_seventy_thousand_functions)
{
    struct builder text, bytes;
    builder_init(&text);
    builder_init(&bytes);
    for (int i = 0; i < 70000; i++)
        builder_printf(&text, "fn f%d(a) { return %s%d }\n", i, i % 2 ? "a + " : "", i);
    builder_text(&text, "export fn main(args) { print(f0(1), f69999(2), f65536) }\n");
    struct compile_text test;
    compile_text_init(&test, builder_view(&text));
    compiler_test_bytes(&test, &bytes);
    ck_assert_uint_eq(test.program->function_count, 70001);
    compile_text_fini(&test);
    builder_fini(&text);
    builder_fini(&bytes);
}
END_TEST

START_TEST(test_a_hundred_thousand_strings)
{
    struct builder text, bytes;
    builder_init(&text);
    builder_init(&bytes);
    builder_text(&text, "export fn main(args) { print([");
    for (int i = 0; i < 100000; i++) builder_printf(&text, "\"s%d\",", i);
    builder_text(&text, "]) }\n");
    struct compile_text test;
    compile_text_init(&test, builder_view(&text));
    compiler_test_bytes(&test, &bytes);
    ck_assert_uint_eq(test.program->constant_count, 100000);
    compile_text_fini(&test);
    builder_fini(&text);
    builder_fini(&bytes);
}
END_TEST

START_TEST(test_std_modules_stand_beside_natives)
{
    static const char source[] = "import \"text\"\nexport fn tenfold(s) { return text.count(s) * 10 }\n";
    static const struct stdlib_module stdlib[] = {{"text", (const unsigned char *)source, sizeof source - 1}};
    struct compile_text test;
    compile_text_init(
        &test,
        CY_BYTES("import \"text\"\nexport fn main(args) { print(text.tenfold(\"a\"), text.trim(\" \")) }\n"));
    test.stdlib = stdlib;
    test.stdlib_count = 1;
    compile_text_run(&test);
    ck_assert_msg(test.program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test.messages)));
    ck_assert_uint_eq(test.program->module_count, 2);
    ck_assert(
        cy_bytes_equal(program_string(test.program, test.program->modules[0].name), CY_BYTES("std:text")));
    ck_assert_uint_eq(test.program->native_count, 3); /* text.count, text.trim, print */
    compile_text_fini(&test);
}
END_TEST

START_TEST(test_bad_import_paths_are_refused)
{
    static const char *const paths[] = {"./", "../", "./a//b", "./a\\\\b", "./..", "./a\\nb", "./c:d"};
    for (size_t i = 0; i < CY_COUNT_OF(paths); i++) {
        struct builder text;
        builder_init(&text);
        builder_printf(&text, "import x = \"%s\"\nexport fn main(args) { }\n", paths[i]);
        struct compile_text test;
        compile_text_init(&test, builder_view(&text));
        compile_text_run(&test);
        ck_assert_msg(test.error_count == 1, "%s: %u", paths[i], test.error_count);
        ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), "E0087"));
        compile_text_fini(&test);
        builder_fini(&text);
    }
}
END_TEST

START_TEST(test_a_missing_main_file_is_said)
{
    struct compile_text test;
    compile_text_init(&test, CY_BYTES_NONE);
    test.files[0].path = "main.han";
    struct compile_text other = test;
    other.file_count = 0; /* the path is named, but nothing is there */
    compile_text_run(&other);
    ck_assert_uint_eq(other.error_count, 1);
    ck_assert_ptr_nonnull(
        strstr(builder_text_view(&other.messages), "E0083: `main.han` cannot be read: not found"));
    compile_text_fini(&other);
}
END_TEST

/* What the compiler decided, seen in the code: constants folded, short jumps, in-place updates, moves. */
START_TEST(test_code_of_common_shapes)
{
    static const struct {
        const char *body;
        const char *wanted[4];
        const char *unwanted;
    } rows[] = {
        {"print(1 + 2 * 3)", {"7 INT8"}, "ADD"},
        {"let xs = [] xs = xs + [1] print(xs)", {"LOCAL_APPEND", "LOCAL_TAKE"}, "ADD"},
        {"let s = \"\" s = s + \"a\" + args print(s)", {"LOCAL_ADD"}, NULL},
        {"let m = {} m.a.b = 1 print(m)", {"LOCAL_PATH_SET"}, NULL},
        {"let m = {} m.a.b = m.a.b + [1] print(m)", {"2 LOCAL_PATH_APPEND"}, "FIELD_GET"},
        {"let m = {} m[\"a\"][args] = m[\"a\"][args] + 1 + \"\" print(m)",
         {"INDEX_GET", "LOCAL_PATH_SET"},
         NULL},
        {"let m = {} m[\"a\"][args] = m[\"a\"][args] + \"-\" + 1 print(m)", {"POP", "LOCAL_PATH_ADD"}, NULL},
        {"let m = {} m.a[args.x] = m.a[args.x] + [1] print(m)", {"LOCAL_PATH_SET"}, "LOCAL_PATH_APPEND"},
        {"let m = {} m.a[1] = m.a[2] + [1] print(m)", {"LOCAL_PATH_SET"}, "LOCAL_PATH_APPEND"},
        {"let m = {} m.a = m.a + [args()] print(m)", {"POP", "LOCAL_PATH_APPEND"}, "LOCAL_PATH_SET"},
        {"let m = {} m.value = m.value + [args()] print(m)", {"LOCAL_PATH_SET"}, "LOCAL_PATH_APPEND"},
        {"const c = ref([]) c.value = c.value + [1] print(c)", {"LOCAL_PATH_APPEND"}, "LOCAL_PATH_SET"},
        {"let a = 1 let b = 2", {"LOCAL_SET"}, NULL}, /* what nobody reads is no error */
        {"for i in 0..9 { print(i) }", {"INTLOOP_BEGIN", "INTLOOP_NEXT", "INTLOOP_END"}, "RANGE"},
        {"if !(args and args.x) { print(1) }", {"JUMP_IF_TRUE"}, "NOT"},
        {"let x = args let f = fn () { return x } print(x, f)", {"CLOSURE", "LOCAL_TAKE"}, NULL},
        {"while true { return 1 } print(2)", {"RETURN"}, "print"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct builder text, rpn;
        builder_init(&text);
        builder_init(&rpn);
        builder_printf(&text, "export fn main(args) { %s }\n", rows[i].body);
        compile_text_rpn(builder_text_view(&text), "main", &rpn);
        const char *code = builder_text_view(&rpn);
        for (size_t k = 0; k < CY_COUNT_OF(rows[i].wanted) && rows[i].wanted[k]; k++)
            ck_assert_msg(strstr(code, rows[i].wanted[k]) != NULL, "%s\n%s", rows[i].body, code);
        if (rows[i].unwanted) {
            char word[32];
            (void)snprintf(word, sizeof word, " %s\n", rows[i].unwanted);
            ck_assert_msg(!strstr(code, word), "%s\n%s", rows[i].body, code);
        }
        builder_fini(&text);
        builder_fini(&rpn);
    }
}
END_TEST

/* -- limits: at them and one past ---------------------------------------------------------------------------------- */

static void compiler_test_params(struct builder *text, int count)
{
    builder_text(text, "fn f(");
    for (int i = 0; i < count; i++) builder_printf(text, "a%d,", i);
    builder_text(text, ") { }\nexport fn main(args) { }\n");
}
static void compiler_test_fields(struct builder *text, int count)
{
    builder_text(text, "record R {");
    for (int i = 0; i < count; i++) builder_printf(text, "a%d = 0,", i);
    builder_text(text, "}\nexport fn main(args) { print(R()) }\n");
}
static void compiler_test_locals(struct builder *text, int count)
{
    builder_text(text, "export fn main(args) {"); /* args is one */
    for (int i = 1; i < count; i++) builder_printf(text, "let a%d = args\n", i);
    builder_text(text, "}\n");
}
static void compiler_test_defers(struct builder *text, int count)
{
    builder_text(text, "export fn main(args) {");
    for (int i = 0; i < count; i++) builder_text(text, "defer { ");
    for (int i = 0; i < count; i++) builder_text(text, "}");
    builder_text(text, "}\n");
}
/* Read by the innermost of three functions, the middle one of which passes most of them on. */
static void compiler_test_captures(struct builder *text, int count)
{
    int outer = LIMIT_FUNCTION_LOCALS - 1000;
    builder_text(text, "export fn main(args) {");
    for (int i = 0; i < outer; i++) builder_printf(text, "let a%d = args\n", i);
    builder_text(text, "return fn () {");
    for (int i = outer; i < count; i++) builder_printf(text, "let a%d = 1\n", i);
    builder_text(text, "return fn () { return [");
    for (int i = 0; i < count; i++) builder_printf(text, "a%d,", i);
    builder_text(text, "] } } }\n");
}
static void compiler_test_name(struct builder *text, int count)
{
    builder_text(text, "export fn main(args) { let ");
    for (int i = 0; i < count; i++) builder_text(text, "n");
    builder_text(text, " = 1 }\n");
}

START_TEST(test_limits_at_and_past)
{
    static const struct {
        void (*write)(struct builder *text, int count);
        int limit;
        const char *name;
    } rows[] = {{compiler_test_params, LIMIT_FUNCTION_PARAMS, "FUNCTION_PARAMS"},
                {compiler_test_fields, LIMIT_RECORD_FIELDS, "RECORD_FIELDS"},
                {compiler_test_locals, LIMIT_FUNCTION_LOCALS, "FUNCTION_LOCALS"},
                {compiler_test_captures, LIMIT_FUNCTION_CAPTURES, "FUNCTION_CAPTURES"},
                {compiler_test_defers, LIMIT_DEFER_DEPTH, "DEFER_DEPTH"},
                {compiler_test_name, LIMIT_PROGRAM_NAME_BYTES, "PROGRAM_NAME_BYTES"}};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        for (int past = 0; past < 2; past++) {
            struct builder text;
            builder_init(&text);
            rows[i].write(&text, rows[i].limit + past);
            struct compile_text test;
            compile_text_init(&test, builder_view(&text));
            compile_text_run(&test);
            ck_assert_msg(test.error_count == (uint32_t)past, "%s: %u errors %d past the limit", rows[i].name,
                          test.error_count, past);
            if (past) ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), rows[i].name));
            compile_text_fini(&test);
            builder_fini(&text);
        }
    }
}
END_TEST

/* Lists in lists pile their items up on the stack; defers multiply code by the ways out. Both end in a message. */
START_TEST(test_stack_and_code_are_bounded)
{
    struct builder text;
    builder_init(&text);
    builder_text(&text, "export fn main(args) { print(");
    for (int level = 0; level < 20; level++) {
        builder_text(&text, "[");
        for (int i = 0; i < 4000; i++) builder_text(&text, "1,");
    }
    for (int level = 0; level < 20; level++) builder_text(&text, "]");
    builder_text(&text, ") }\n");
    struct compile_text test;
    compile_text_init(&test, builder_view(&text));
    compile_text_run(&test);
    ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), "FUNCTION_STACK"));
    compile_text_fini(&test);

    builder_clear(&text);
    builder_text(&text, "export fn main(args) {");
    for (int i = 0; i < 2500; i++) builder_text(&text, "defer { print(args) }\nif args { return 1 }\n");
    builder_text(&text, "}\n");
    compile_text_init(&test, builder_view(&text));
    compile_text_run(&test);
    ck_assert_ptr_nonnull(strstr(builder_text_view(&test.messages), "FUNCTION_CODE_BYTES"));
    compile_text_fini(&test);
    builder_fini(&text);
}
END_TEST

Suite *unit_suite_compiler_compiler(void);
Suite *unit_suite_compiler_compiler(void)
{
    Suite *suite = suite_create("compiler/compiler");
    TCase *tests = tcase_create("compiler");
    tcase_set_timeout(tests, 60); /* the big programs, under sanitizers */
    tcase_add_test(tests, test_two_folders_give_the_same_bytes);
    tcase_add_test(tests, test_decomposed_names_are_the_same_file);
    tcase_add_test(tests, test_seventy_thousand_functions);
    tcase_add_test(tests, test_a_hundred_thousand_strings);
    tcase_add_test(tests, test_std_modules_stand_beside_natives);
    tcase_add_test(tests, test_bad_import_paths_are_refused);
    tcase_add_test(tests, test_a_missing_main_file_is_said);
    tcase_add_test(tests, test_code_of_common_shapes);
    tcase_add_test(tests, test_limits_at_and_past);
    tcase_add_test(tests, test_stack_and_code_are_bounded);
    suite_add_tcase(suite, tests);
    return suite;
}
