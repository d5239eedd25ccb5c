/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/doc_test.c: proves which declaration a run of `///` lines belongs to, and what its text is.
 */
#include "compiler/unit.h"

#include <check.h>

struct doc_test {
    struct compile_options options;
    struct compilation compilation;
    struct unit unit;
};

static void doc_test_init(struct doc_test *test, const char *text)
{
    *test = (struct doc_test){0};
    compilation_init(&test->compilation, &test->options);
    test->unit.source = (struct source){.file = CY_BYTES("main.han"), .text = cy_bytes_from_text(text)};
    map_init(&test->unit.names, (hash_seed){0, 0});
    parse_unit(&test->compilation, &test->unit);
    ck_assert_uint_eq(test->compilation.diags.count, 0);
}

static void doc_test_fini(struct doc_test *test)
{
    map_fini(&test->unit.names);
    compilation_fini(&test->compilation);
}

static void doc_test_want(cy_bytes doc, const char *text)
{
    ck_assert_msg(cy_bytes_equal(doc, cy_bytes_from_text(text)), "\"%.*s\", not \"%s\"", CY_BYTES_ARG(doc),
                  text);
}

START_TEST(test_lines_belong_to_what_stands_below_them)
{
    struct doc_test test;
    doc_test_init(&test, "/// About the file.\r\n"
                         "///  Indented.\n"
                         "\n"
                         "import \"text\" /// behind code: no documentation\n"
                         "/// Adds.\n"
                         "///\n"
                         "/// Slowly.\n"
                         "export fn add(a, b) { return a + b }\n"
                         "/// lost\n"
                         "\n"
                         "fn none() { }\n"
                         "/// lost too\n"
                         "// because of this\n"
                         "fn none_either() { }\n"
                         "//// four slashes are a comment\n"
                         "let zero = 0\n"
                         "/// 점.\n"
                         "record Point {\n"
                         "    /// to the right\n"
                         "    x,\n"
                         "    y,\n"
                         "}\n"
                         "    /// One.\n"
                         "const ONE = 1\n");
    struct node *const *nodes = test.unit.declarations.items;
    ck_assert_uint_eq(test.unit.declarations.count, 7);
    doc_test_want(test.unit.doc, "About the file.\n Indented.");
    doc_test_want(nodes[1]->as.function->doc, "Adds.\n\nSlowly.");
    doc_test_want(nodes[2]->as.function->doc, "");
    doc_test_want(nodes[3]->as.function->doc, "");
    doc_test_want(nodes[4]->as.let.doc, "");
    doc_test_want(nodes[5]->as.record->doc, "점.");
    doc_test_want(nodes[5]->as.record->fields[0].doc, "to the right");
    doc_test_want(nodes[5]->as.record->fields[1].doc, "");
    doc_test_want(nodes[6]->as.let.doc, "One.");
    doc_test_fini(&test);
}
END_TEST

START_TEST(test_first_lines_are_about_the_file_or_the_first_declaration)
{
    static const struct {
        const char *text, *file, *function;
    } rows[] = {
        {"/// f\nfn f() { }\n", "", "f"},
        {"/// file\n\n/// f\nfn f() { }\n", "file", "f"},
        {"// SPDX\n\n/// file\nimport \"text\"\n/// f\nfn f() { }\n", "file", "f"},
        {"// nothing\nfn f() { }\n/// late\n", "", ""},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct doc_test test;
        doc_test_init(&test, rows[i].text);
        const struct node *last = test.unit.declarations.items[test.unit.declarations.count - 1];
        doc_test_want(test.unit.doc, rows[i].file);
        doc_test_want(last->as.function->doc, rows[i].function);
        doc_test_fini(&test);
    }
}
END_TEST

Suite *unit_suite_compiler_doc(void);
Suite *unit_suite_compiler_doc(void)
{
    Suite *suite = suite_create("compiler/doc");
    TCase *tests = tcase_create("doc");
    tcase_add_test(tests, test_lines_belong_to_what_stands_below_them);
    tcase_add_test(tests, test_first_lines_are_about_the_file_or_the_first_declaration);
    suite_add_tcase(suite, tests);
    return suite;
}
