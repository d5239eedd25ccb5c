/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/url_test.c: proves RFC 3986: its examples of resolution (section 5.4), its grammar, its normal form,
 * and that normalising twice changes nothing.
 */
#include "vm/base/url.h"

#include <check.h>

static const char *url_test_resolve(struct builder *out, const char *base_text, const char *reference_text)
{
    struct url_parts base, reference;
    size_t offset;
    builder_clear(out);
    ck_assert_ptr_null(url_parse(cy_bytes_from_text(base_text), &base, &offset));
    ck_assert_ptr_null(url_parse(cy_bytes_from_text(reference_text), &reference, &offset));
    url_write_resolved(out, &base, &reference);
    return builder_text_view(out);
}

START_TEST(test_examples_of_resolution)
{
    static const char *const rows[][2] = {
        /* 5.4.1 */
        {"g:h", "g:h"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        /* 5.4.2 */
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "http:g"}, /* strict */
    };
    struct builder out;
    builder_init(&out);
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        ck_assert_str_eq(url_test_resolve(&out, "http://a/b/c/d;p?q", rows[i][0]), rows[i][1]);
    ck_assert_str_eq(url_test_resolve(&out, "http://a", "b"), "http://a/b");
    ck_assert_str_eq(url_test_resolve(&out, "http://u@a:1?x", "?y"), "http://u@a:1?y");
    ck_assert_str_eq(url_test_resolve(&out, "mailto:a/b", "../../c"), "mailto:/c");
    ck_assert_str_eq(url_test_resolve(&out, "x:/a/b", "/.//c"), "x:/.//c"); /* not x://c */
    builder_fini(&out);
}
END_TEST

START_TEST(test_parts)
{
    struct url_parts parts;
    size_t offset;
    cy_bytes text = CY_BYTES("https://user:pw@[2001:db8::1]:8443/a/%2Fb;c?x=1&y=/?#top/?");
    ck_assert_ptr_null(url_parse(text, &parts, &offset));
    ck_assert(cy_bytes_equal(parts.scheme, CY_BYTES("https")));
    ck_assert(parts.has_userinfo && cy_bytes_equal(parts.userinfo, CY_BYTES("user:pw")));
    ck_assert(cy_bytes_equal(parts.host, CY_BYTES("[2001:db8::1]")));
    ck_assert(parts.has_port && parts.port == 8443);
    ck_assert(cy_bytes_equal(parts.path, CY_BYTES("/a/%2Fb;c")));
    ck_assert(cy_bytes_equal(parts.query, CY_BYTES("x=1&y=/?")));
    ck_assert(cy_bytes_equal(parts.fragment, CY_BYTES("top/?")));
    ck_assert_ptr_null(url_parse(CY_BYTES("file:///etc"), &parts, &offset));
    ck_assert(parts.has_authority && parts.host.count == 0 && !parts.has_port);
    ck_assert_ptr_null(url_parse(CY_BYTES("urn:a:b"), &parts, &offset));
    ck_assert(!parts.has_authority && cy_bytes_equal(parts.path, CY_BYTES("a:b")));
    ck_assert_ptr_null(url_parse(CY_BYTES("./a:b"), &parts, &offset));
    ck_assert(!parts.has_scheme);
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *text;
        size_t offset;
    } rows[] = {
        {"http://a b/", 8},
        {"http://a/b c", 10},
        {"http://a/%", 9},
        {"http://a/%4g", 9},
        {"http://a/\x01", 9},
        {"http://\xed\x95\x9c/", 7},
        {"http://a:70000/", 9},
        {"http://a:x/", 9},
        {"http://[::1/", 11},
        {"http://[1.2.3.4]/", 7},
        {"http://[::1]x/", 12},
        {"http://[fe80::1%25e]/", 7},
        {"http://a@b@c/", 10},
        {"1a:b", 0},
        {":b", 0},
        {"http://a/\\", 9},
        {"http://a/?q=<x>", 12},
        {"http://a/#a#b", 11},
        {"http://a[b/", 8},
        {"http://a/[", 9},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct url_parts parts;
        size_t offset = 999;
        const char *fault = url_parse(cy_bytes_from_text(rows[i].text), &parts, &offset);
        ck_assert_msg(fault && offset == rows[i].offset, "%s: %s at %zu", rows[i].text, fault, offset);
    }
}
END_TEST

START_TEST(test_normal_form)
{
    static const char *const rows[][2] = {
        {"HTTP://EXAMPLE.com:80", "http://example.com/"},
        {"https://a:443/%7euser/%2fx/%c3%a9", "https://a/~user/%2Fx/%C3%A9"},
        {"https://a:80/", "https://a:80/"},
        {"http://a:/b/./c/../d/%2E%2E/e", "http://a/b/e"},
        {"http://a/b?%41=%3f#%42", "http://a/b?A=%3F#B"},
        {"http://A%2DB/", "http://a-b/"},
        {"../a/./b", "../a/./b"}, /* a relative path keeps its dots: where it leads is not known */
        {"x:/.//a", "x:/.//a"},
        {"x:/a/..//b", "x:/.//b"},
        {"mailto:A@B", "mailto:A@B"},
        {"http://[2001:DB8::A]:80/", "http://[2001:db8::a]/"},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct url_parts parts;
        struct builder once, twice;
        size_t offset;
        builder_init(&once);
        builder_init(&twice);
        ck_assert_ptr_null(url_parse(cy_bytes_from_text(rows[i][0]), &parts, &offset));
        url_write_normalised(&once, &parts);
        ck_assert_str_eq(builder_text_view(&once), rows[i][1]);
        ck_assert_ptr_null(url_parse(builder_view(&once), &parts, &offset));
        url_write_normalised(&twice, &parts);
        ck_assert_str_eq(builder_text_view(&twice), rows[i][1]);
        builder_fini(&once);
        builder_fini(&twice);
    }
}
END_TEST

START_TEST(test_every_byte_goes_there_and_back)
{
    uint8_t bytes[256];
    struct builder encoded, decoded;
    size_t offset;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    builder_init(&encoded);
    builder_init(&decoded);
    url_encode(&encoded, cy_bytes_of(bytes, sizeof bytes), "");
    ck_assert_uint_eq(encoded.count, 66 + 3 * (256 - 66));
    ck_assert(url_decode(&decoded, builder_view(&encoded), true, &offset));
    ck_assert(cy_bytes_equal(builder_view(&decoded), cy_bytes_of(bytes, sizeof bytes)));
    ck_assert(!url_decode(&decoded, CY_BYTES("ab%4"), false, &offset));
    ck_assert_uint_eq(offset, 2);
    builder_fini(&encoded);
    builder_fini(&decoded);
}
END_TEST

Suite *unit_suite_base_url(void)
{
    Suite *suite = suite_create("base_url");
    TCase *tcase = tcase_create("url");
    tcase_add_test(tcase, test_examples_of_resolution);
    tcase_add_test(tcase, test_parts);
    tcase_add_test(tcase, test_refused);
    tcase_add_test(tcase, test_normal_form);
    tcase_add_test(tcase, test_every_byte_goes_there_and_back);
    suite_add_tcase(suite, tcase);
    return suite;
}
