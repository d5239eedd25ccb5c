/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h1_scan_test.c: proves that a head means the same whether its lines are scanned or parsed: 20,000
 * heads, made of usual lines and then damaged, are given whole (scanned) and byte by byte (parsed), and must come out
 * with the same fault or the same fields. And that usual lines are scanned at all.
 */
#include "vm/base/mem.h"
#include "vm/http/field.h"
#include "vm/http/h1_parse.h"
#include "vm/http/h1_scan.h"

#include <check.h>
#include <stdio.h>

static uint64_t scan_test_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A field line: a known name in random case, or another one; a value of 0 to 39 bytes. */
static size_t scan_test_put_line(uint64_t *state, uint8_t *at)
{
    uint8_t id = (uint8_t)(scan_test_next(state) % (HTTP_FIELD_COUNT + 4));
    cy_bytes name =
        id == HTTP_FIELD_NONE || id >= HTTP_FIELD_COUNT ? CY_BYTES("X-Something~Else") : field_name(id);
    size_t count = 0;
    for (size_t i = 0; i < name.count; i++) {
        uint8_t byte = name.data[i];
        bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
        at[count++] = is_letter && scan_test_next(state) % 4 == 0 ? byte ^ 0x20 : byte;
    }
    at[count++] = ':';
    if (scan_test_next(state) % 8) at[count++] = ' ';
    for (size_t left = scan_test_next(state) % 40; left > 0; left--)
        at[count++] = (uint8_t)(' ' + scan_test_next(state) % 95);
    memcpy(at + count, "\r\n", 2);
    return count + 2;
}

static size_t scan_test_put_head(uint64_t *state, uint8_t *at)
{
    static const char line[] = "GET / HTTP/1.1\r\n";
    size_t count = sizeof line - 1;
    memcpy(at, line, count);
    for (size_t lines = scan_test_next(state) % 6; lines > 0; lines--)
        count += scan_test_put_line(state, at + count);
    memcpy(at + count, "\r\n", 2);
    count += 2;
    for (size_t damages = scan_test_next(state) % 3; damages > 0; damages--) {
        static const uint8_t bytes[] = "\r\n\t :\0\x7f\x80\xff-_aZ\x0d\x1f";
        size_t place = sizeof line - 1 + scan_test_next(state) % (count - sizeof line);
        at[place] = bytes[scan_test_next(state) % (sizeof bytes - 1)];
    }
    return count;
}

/* Every input has memory of its own and of its own size, so that the sanitizer sees a read behind it. */
static enum h1_parse_result scan_test_parse(cy_bytes input, size_t step, struct h1_head *head,
                                            uint8_t **block)
{
    enum h1_parse_result result = H1_PARSE_MORE;
    *block = NULL;
    for (size_t count = 0; result == H1_PARSE_MORE && count < input.count;) {
        count = cy_min_size(count + step, input.count);
        uint8_t *moved = mem_alloc(count);
        memcpy(moved, input.data, count);
        result = h1_parse_head(head, cy_bytes_of(moved, count));
        mem_free(*block);
        *block = moved;
    }
    return result;
}

START_TEST(test_scanned_and_parsed_heads_are_the_same)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[1024];
        cy_bytes input = cy_bytes_of(bytes, scan_test_put_head(&state, bytes));
        static struct http_field whole_fields[LIMIT_HTTP_FIELDS], split_fields[LIMIT_HTTP_FIELDS];
        struct h1_head whole, split;
        uint8_t *whole_block, *split_block;
        h1_parse_begin_request(&whole, whole_fields);
        h1_parse_begin_request(&split, split_fields);
        enum h1_parse_result scanned = scan_test_parse(input, input.count, &whole, &whole_block);
        enum h1_parse_result parsed = scan_test_parse(input, 1, &split, &split_block);
        ck_assert_msg(scanned == parsed && whole.fault == split.fault, "head %d: %d %s, %d %s: %.*s", i,
                      scanned, h1_fault_text(whole.fault), parsed, h1_fault_text(split.fault),
                      CY_BYTES_ARG(input));
        ck_assert_uint_eq(whole.field_count, split.field_count);
        for (uint32_t f = 0; f < whole.field_count; f++) {
            ck_assert(cy_bytes_equal(whole_fields[f].name, split_fields[f].name));
            ck_assert(cy_bytes_equal(whole_fields[f].value, split_fields[f].value));
            ck_assert_uint_eq(whole_fields[f].known, split_fields[f].known);
        }
        mem_free(whole_block);
        mem_free(split_block);
    }
}
END_TEST

#if defined(__SSE2__)
START_TEST(test_usual_lines_are_scanned)
{
    struct http_field field;
    cy_bytes line = CY_BYTES("content-LENGTH: 12\r\n\r\n");
    ck_assert_uint_eq(h1_scan_field(line, &field), line.count - 2);
    ck_assert_uint_eq(field.known, HTTP_FIELD_CONTENT_LENGTH);
    ck_assert(cy_bytes_equal(field.value, CY_BYTES("12")));
    line = CY_BYTES("X-A:\r\n");
    ck_assert_uint_eq(h1_scan_field(line, &field), line.count);
    ck_assert_uint_eq(field.value.count, 0);
    ck_assert_uint_eq(h1_scan_field(CY_BYTES("X-A: b \r\n"), &field), 0);
    ck_assert_uint_eq(h1_scan_field(CY_BYTES("X-A : b\r\n"), &field), 0);
    ck_assert_uint_eq(h1_scan_field(CY_BYTES("Ho\x13t: b\r\n"), &field), 0); /* 0x13 | 0x20 is '3' */
    ck_assert_uint_eq(h1_scan_field(CY_BYTES("HTTP\x12-Settings: b\r\n"), &field), 0); /* ... and 0x12 '2' */
    ck_assert_uint_eq(h1_scan_field(CY_BYTES("If\rRange: b\r\n"), &field), 0);         /* ... and CR '-' */
}
END_TEST
#endif

Suite *unit_suite_http_h1_scan(void);
Suite *unit_suite_http_h1_scan(void)
{
    Suite *suite = suite_create("http_h1_scan");
    TCase *cases = tcase_create("h1_scan");
    tcase_add_test(cases, test_scanned_and_parsed_heads_are_the_same);
#if defined(__SSE2__)
    tcase_add_test(cases, test_usual_lines_are_scanned);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}
