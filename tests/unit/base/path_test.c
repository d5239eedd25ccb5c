/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/path_test.c: proves that paths have one normal form, that joining and taking apart agree, and that a
 * folder holds its own paths and not those of a folder whose name it begins.
 */
#include "vm/base/path.h"

#include <check.h>

static const char *text_of(struct builder *out)
{
    static char text[256];
    ck_assert_uint_lt(out->count, sizeof text);
    if (out->count) memcpy(text, out->data, out->count);
    text[out->count] = 0;
    builder_fini(out);
    return text;
}
static const char *normal(const char *path)
{
    struct builder out;
    builder_init(&out);
    path_normalise(cy_bytes_from_text(path), &out);
    return text_of(&out);
}
static const char *join(const char *base, const char *more)
{
    struct builder out;
    builder_init(&out);
    path_join(cy_bytes_from_text(base), cy_bytes_from_text(more), &out);
    return text_of(&out);
}
static const char *relative(const char *path, const char *base)
{
    struct builder out;
    builder_init(&out);
    if (!path_relative(cy_bytes_from_text(path), cy_bytes_from_text(base), &out)) {
        builder_fini(&out);
        return "(none)";
    }
    return text_of(&out);
}

START_TEST(test_normal_forms)
{
    static const char *const pairs[][2] = {
        {"", "."},          {".", "."},         {"./", "."},        {"/", "/"},
        {"//", "/"},        {"/..", "/"},       {"/../../a", "/a"}, {"a/..", "."},
        {"a/../..", ".."},  {"../..", "../.."}, {"../a/..", ".."},  {"a//b/", "a/b"},
        {"/a/./b", "/a/b"}, {"/a/b/..", "/a"},  {"/a/..", "/"},     {"a/b/../../c", "c"},
        {"...", "..."},     {"a/...", "a/..."}, {"..a/..", "."},    {"/a/b/../../../c", "/c"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(pairs); i++) {
        ck_assert_str_eq(normal(pairs[i][0]), pairs[i][1]);
        ck_assert_str_eq(normal(pairs[i][1]), pairs[i][1]); /* a normal form is its own */
    }
}
END_TEST

START_TEST(test_normalising_appends)
{
    struct builder out;
    builder_init(&out);
    builder_text(&out, "x/y:");
    path_normalise(CY_BYTES("../a"), &out);
    ck_assert_str_eq(text_of(&out), "x/y:../a");
}
END_TEST

START_TEST(test_join)
{
    ck_assert_str_eq(join("a", "b"), "a/b");
    ck_assert_str_eq(join("a/", "../b"), "b");
    ck_assert_str_eq(join("/a", "/b"), "/b");
    ck_assert_str_eq(join("", "b"), "b");
    ck_assert_str_eq(join("a", ""), "a");
    ck_assert_str_eq(join("/", ".."), "/");
}
END_TEST

static bool is(cy_bytes found, const char *wanted)
{
    return cy_bytes_equal(found, cy_bytes_from_text(wanted));
}

START_TEST(test_parts)
{
    ck_assert(is(path_name(CY_BYTES("/a/b")), "b") && is(path_parent(CY_BYTES("/a/b")), "/a"));
    ck_assert(is(path_name(CY_BYTES("/a/b//")), "b") && is(path_parent(CY_BYTES("/a/b//")), "/a"));
    ck_assert(is(path_name(CY_BYTES("a")), "a") && is(path_parent(CY_BYTES("a")), "."));
    ck_assert(is(path_name(CY_BYTES("/")), "") && is(path_parent(CY_BYTES("/")), "/"));
    ck_assert(is(path_name(CY_BYTES("/a")), "a") && is(path_parent(CY_BYTES("/a")), "/"));
    ck_assert(is(path_parent(CY_BYTES("//a")), "/"));
    ck_assert(is(path_extension(CY_BYTES("x.tar.gz")), ".gz") && is(path_extension(CY_BYTES("a.b/c")), ""));
    ck_assert(is(path_extension(CY_BYTES(".profile")), "") && is(path_extension(CY_BYTES("a.")), ""));
    ck_assert(is(path_extension(CY_BYTES("..")), "") && is(path_extension(CY_BYTES("..a")), ".a"));
}
END_TEST

START_TEST(test_below)
{
    cy_bytes rest;
    ck_assert(path_is_below(CY_BYTES("/a/b"), CY_BYTES("/a"), &rest) && is(rest, "b"));
    ck_assert(path_is_below(CY_BYTES("/a"), CY_BYTES("/a"), &rest) && is(rest, "."));
    ck_assert(path_is_below(CY_BYTES("/a"), CY_BYTES("/"), &rest) && is(rest, "a"));
    ck_assert(!path_is_below(CY_BYTES("/ab"), CY_BYTES("/a"), &rest));
    ck_assert(!path_is_below(CY_BYTES("/"), CY_BYTES("/a"), &rest));
}
END_TEST

START_TEST(test_relative)
{
    ck_assert_str_eq(relative("/a/b/c", "/a/b"), "c");
    ck_assert_str_eq(relative("/a", "/a"), ".");
    ck_assert_str_eq(relative("/a", "/"), "a");
    ck_assert_str_eq(relative("/", "/a/b"), "../..");
    ck_assert_str_eq(relative("/ab", "/a"), "../ab");
    ck_assert_str_eq(relative("a", "."), "a");
    ck_assert_str_eq(relative(".", "a"), "..");
    ck_assert_str_eq(relative("../x", "../y"), "../x");
    ck_assert_str_eq(relative("x", "../y"), "(none)");
    ck_assert_str_eq(relative("/x", "y"), "(none)");
}
END_TEST

Suite *unit_suite_base_path(void);
Suite *unit_suite_base_path(void)
{
    Suite *suite = suite_create("base_path");
    TCase *tcase = tcase_create("path");
    tcase_add_test(tcase, test_normal_forms);
    tcase_add_test(tcase, test_normalising_appends);
    tcase_add_test(tcase, test_join);
    tcase_add_test(tcase, test_parts);
    tcase_add_test(tcase, test_below);
    tcase_add_test(tcase, test_relative);
    suite_add_tcase(suite, tcase);
    return suite;
}
