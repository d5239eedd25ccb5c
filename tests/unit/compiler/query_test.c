/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/query_test.c: proves what a query tells of places: uses that resolving folds away or rewrites are
 * found, each once; half-typed programs are answered about; completion hides what is hidden.
 */
#include "compiler/query.h"
#include "vm/base/mem.h"

#include <check.h>

struct query_test {
    cy_bytes text;
    struct query *query;
    struct arena arena;
};

static cy_err query_test_read(void *context, const char *path, struct builder *out)
{
    const struct query_test *test = context;
    if (strcmp(path, "main.han") != 0) return CY_ERR(NOT_FOUND);
    builder_bytes(out, test->text);
    return CY_OK;
}

static void query_test_init(struct query_test *test, const char *text)
{
    struct compile_options options = {.path = "main.han", .read_source = query_test_read, .context = test};
    *test = (struct query_test){.text = cy_bytes_from_text(text)};
    arena_init(&test->arena, 0);
    test->arena.exit_when_exhausted = true;
    test->query = query_open(&options);
}

static void query_test_fini(struct query_test *test)
{
    query_close(&test->query);
    arena_fini(&test->arena);
}

static uint32_t query_test_find(const struct query_test *test, const char *part)
{
    const char *found = strstr((const char *)test->text.data, part);
    ck_assert_ptr_nonnull(found);
    return (uint32_t)(found - (const char *)test->text.data);
}

/* How many places mention what stands at `part`; each must be that word. */
static uint32_t query_test_uses(struct query_test *test, const char *part, const char *word)
{
    struct query_target target;
    struct query_place place;
    uint32_t count, last = 0;
    ck_assert(query_target_at(test->query, 0, query_test_find(test, part), &target, &place));
    const struct query_place *places = query_references(test->query, &target, &test->arena, &count);
    for (uint32_t i = 0; i < count; i++) {
        cy_bytes found = cy_bytes_slice(test->text, places[i].start, places[i].end);
        ck_assert_msg(cy_bytes_equal(found, cy_bytes_from_text(word)), "%.*s", CY_BYTES_ARG(found));
        ck_assert(i == 0 || places[i].start > last);
        last = places[i].start;
    }
    return count;
}

START_TEST(test_folded_and_rewritten_uses_are_found)
{
    struct query_test test;
    query_test_init(&test, "const size = 4\n"
                           "record Box { width: int = 1 }\n"
                           "fn put(box: Box, by: int = size) -> Box {\n"
                           "    let total = size + 1\n"
                           "    total = total + by\n"
                           "    box.width = box.width + total\n"
                           "    return box\n"
                           "}\n"
                           "export fn main(args) {\n"
                           "    match len(args) { size { print(put(Box(width: 2), by: size)) } else { } }\n"
                           "    fn inner() { return args }\n"
                           "    print(inner())\n"
                           "}\n");
    ck_assert(!query_has_errors(test.query));
    ck_assert_uint_eq(query_test_uses(&test, "size", "size"), 5);
    ck_assert_uint_eq(query_test_uses(&test, "total", "total"), 4);
    ck_assert_uint_eq(query_test_uses(&test, "by", "by"), 3);
    ck_assert_uint_eq(query_test_uses(&test, "box:", "box"), 4);
    ck_assert_uint_eq(query_test_uses(&test, "width", "width"), 4);
    ck_assert_uint_eq(query_test_uses(&test, "Box {", "Box"), 4);
    ck_assert_uint_eq(query_test_uses(&test, "args", "args"), 3);
    query_test_fini(&test);
}
END_TEST

/* As many times as the name is offered: 1 or 0. */
static uint32_t query_test_offers(struct query_test *test, uint32_t offset, const char *name)
{
    uint32_t count, found = 0;
    const struct query_item *items = query_complete(test->query, 0, offset, &test->arena, &count);
    for (uint32_t i = 0; i < count; i++) found += cy_bytes_equal(items[i].name, cy_bytes_from_text(name));
    return found;
}

START_TEST(test_half_typed_programs_are_answered_about)
{
    struct query_test test;
    query_test_init(&test, "record Box { width: int = 1 }\n"
                           "export fn main(args) {\n"
                           "    let box = Box()\n"
                           "    { let hidden = 1 }\n"
                           "    box.\n"
                           "    if args {\n"
                           "        let args = 1\n"
                           "        ar\n");
    ck_assert(query_has_errors(test.query));
    ck_assert_uint_eq(query_test_offers(&test, query_test_find(&test, "box.\n") + 4, "width"), 1);
    ck_assert_uint_eq(query_test_offers(&test, query_test_find(&test, "box.\n") + 4, "box"), 0);
    uint32_t end = (uint32_t)test.text.count - 1;
    ck_assert_uint_eq(query_test_offers(&test, end, "args"), 1);
    ck_assert_uint_eq(query_test_offers(&test, end, "box"), 1);
    ck_assert_uint_eq(query_test_offers(&test, end, "let"), 1);
    ck_assert_uint_eq(query_test_offers(&test, query_test_find(&test, "export"), "box"), 0);
    query_test_fini(&test);
}
END_TEST

START_TEST(test_names)
{
    ck_assert(query_is_name(CY_BYTES("값1")));
    ck_assert(!query_is_name(CY_BYTES("")));
    ck_assert(!query_is_name(CY_BYTES("1a")));
    ck_assert(!query_is_name(CY_BYTES("a b")));
    ck_assert(!query_is_name(CY_BYTES("반환")));
    ck_assert(!query_is_name(CY_BYTES("\xe1\x84\x80\xe1\x85\xa1"))); /* decomposed */
    ck_assert(!query_is_name(CY_BYTES("a\xff")));
}
END_TEST

Suite *unit_suite_compiler_query(void);
Suite *unit_suite_compiler_query(void)
{
    Suite *suite = suite_create("compiler_query");
    TCase *tcase = tcase_create("places");
    tcase_add_test(tcase, test_folded_and_rewritten_uses_are_found);
    tcase_add_test(tcase, test_half_typed_programs_are_answered_about);
    tcase_add_test(tcase, test_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
