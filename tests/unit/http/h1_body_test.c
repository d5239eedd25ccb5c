/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h1_body_test.c: proves that bodies give the same bytes and the same end at every split,
 * that malformed chunks are refused for their own reason, and that nothing behind a body's end is taken.
 */
#include "vm/base/builder.h"
#include "vm/http/h1_body.h"

#include <check.h>

struct body_case {
    const char *input;
    uint8_t fault;
    const char *data, *trailer; /* when accepted */
    size_t left;                /* bytes that belong to the next message */
};

/* Feeds the input `step` bytes at a time. */
static enum h1_body_step body_feed(struct h1_body *body, cy_bytes input, size_t step_bytes,
                                   struct builder *data, struct builder *trailer, size_t *left_out)
{
    enum h1_body_step step = H1_BODY_MORE;
    for (size_t begin = 0; begin < input.count && step == H1_BODY_MORE; begin += step_bytes) {
        cy_bytes part = cy_bytes_slice(input, begin, begin + step_bytes), piece;
        size_t end = begin + part.count;
        while ((step = h1_body_step(body, &part, &piece)) == H1_BODY_DATA || step == H1_BODY_TRAILER)
            builder_bytes(step == H1_BODY_DATA ? data : trailer, piece);
        *left_out = input.count - end + part.count;
    }
    return step;
}

static void body_check(const struct body_case *row, const struct http_framing *framing)
{
    cy_bytes input = cy_bytes_from_text(row->input);
    for (size_t step_bytes = 1; step_bytes <= input.count; step_bytes++) {
        struct h1_body body;
        struct builder data, trailer;
        size_t left = 0;
        builder_init(&data);
        builder_init(&trailer);
        h1_body_begin(&body, framing);
        enum h1_body_step step = body_feed(&body, input, step_bytes, &data, &trailer, &left);
        ck_assert_msg(body.fault == row->fault, "step %zu of %s: %s", step_bytes, row->input,
                      h1_fault_text(body.fault));
        ck_assert_int_eq(step, row->fault ? H1_BODY_FAULT : H1_BODY_END);
        if (!row->fault) {
            ck_assert(cy_bytes_equal(builder_view(&data), cy_bytes_from_text(row->data)));
            ck_assert(cy_bytes_equal(builder_view(&trailer), cy_bytes_from_text(row->trailer)));
            ck_assert_uint_eq(left, row->left);
        }
        builder_fini(&data);
        builder_fini(&trailer);
    }
}

START_TEST(test_chunked_bodies_at_every_split)
{
    static const struct body_case rows[] = {
        {"0\r\n\r\n", 0, "", "", 0},
        {"5\r\nhello\r\n0\r\n\r\nGET /", 0, "hello", "", 5},
        {"5\r\nhello\r\n00A\r\n0123456789\r\n000\r\n\r\n", 0, "hello0123456789", "", 0},
        {"a;x;y=z;q=\"a\\\" ;\"\r\n0123456789\r\n0;last\r\n\r\n", 0, "0123456789", "", 0},
        {"1\r\n\n\r\n0\r\nA: b\r\nC:\r\n\r\n.", 0, "\n", "A: b\r\nC:\r\n", 1},
        {"0\r\n\r\nX: y\r\n", 0, "", "", 6},
        {"\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"g\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {" 5\r\nhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"5 \r\nhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"0x5\r\nhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"-5\r\nhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"5\nhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"5\rhello\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"8000000000000000\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"00000000000000001\r\n", H1_FAULT_CHUNK_SIZE, 0, 0, 0},
        {"5;\r\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5; a\r\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5;a=\r\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5;a\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5;a=\"x\r\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5;a=\"x\"y\r\nhello\r\n", H1_FAULT_CHUNK_EXTENSION, 0, 0, 0},
        {"5\r\nhelloX\r\n", H1_FAULT_CHUNK_END, 0, 0, 0},
        {"5\r\nhello\n0\r\n\r\n", H1_FAULT_CHUNK_END, 0, 0, 0},
        {"5\r\nhello\r0\r\n\r\n", H1_FAULT_CHUNK_END, 0, 0, 0},
        {"0\r\n\n", H1_FAULT_TRAILER, 0, 0, 0},
        {"0\r\nA : b\r\n\r\n", H1_FAULT_TRAILER, 0, 0, 0},
        {"0\r\n A: b\r\n\r\n", H1_FAULT_TRAILER, 0, 0, 0},
        {"0\r\nA: b\n\r\n", H1_FAULT_TRAILER, 0, 0, 0},
        {"0\r\nA\r\n\r\n", H1_FAULT_TRAILER, 0, 0, 0},
        {"0\r\n\rX", H1_FAULT_TRAILER, 0, 0, 0},
    };
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) body_check(&rows[i], &chunked);
}
END_TEST

START_TEST(test_length_takes_exactly_its_bytes)
{
    const struct body_case row = {"hello\r\nGET", 0, "hello", "", 5};
    const struct http_framing framing = {HTTP_BODY_LENGTH, 5};
    body_check(&row, &framing);
}
END_TEST

START_TEST(test_end_of_stream_ends_only_until_close)
{
    const struct http_framing until_close = {HTTP_BODY_UNTIL_CLOSE, 0}, length = {HTTP_BODY_LENGTH, 5};
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0}, none = {HTTP_BODY_NONE, 0};
    struct h1_body body;
    cy_bytes input = CY_BYTES("all of it"), piece;
    h1_body_begin(&body, &until_close);
    ck_assert_int_eq(h1_body_step(&body, &input, &piece), H1_BODY_DATA);
    ck_assert_uint_eq(piece.count, 9);
    ck_assert(!body.ended);
    ck_assert(h1_body_end_of_stream(&body));
    h1_body_begin(&body, &length);
    ck_assert(!h1_body_end_of_stream(&body));
    h1_body_begin(&body, &chunked);
    ck_assert(!h1_body_end_of_stream(&body));
    h1_body_begin(&body, &none);
    ck_assert(h1_body_end_of_stream(&body));
}
END_TEST

static uint8_t body_repeat(const char *begin, const char *filler, size_t count, const char *end)
{
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    struct h1_body body;
    struct builder input;
    builder_init(&input);
    builder_text(&input, begin);
    for (size_t i = 0; i < count; i++) builder_text(&input, filler);
    builder_text(&input, end);
    cy_bytes rest = builder_view(&input), piece;
    h1_body_begin(&body, &chunked);
    enum h1_body_step step;
    while ((step = h1_body_step(&body, &rest, &piece)) == H1_BODY_DATA || step == H1_BODY_TRAILER) continue;
    builder_fini(&input);
    return step == H1_BODY_FAULT ? body.fault : 0;
}

START_TEST(test_limits_hold_at_their_value_and_one_past_it)
{
    /* "1;" and CR count; the LF does not. */
    ck_assert_uint_eq(body_repeat("1;", "x", LIMIT_HTTP_CHUNK_LINE_BYTES - 3, "\r\na\r\n"), 0);
    ck_assert_uint_eq(body_repeat("1;", "x", LIMIT_HTTP_CHUNK_LINE_BYTES - 2, "\r\na\r\n"),
                      H1_FAULT_CHUNK_LINE_LONG);
    /* "A:" and CR LF, then the CR of the empty line. */
    ck_assert_uint_eq(body_repeat("0\r\nA:", "x", LIMIT_HTTP_TRAILER_BYTES - 5, "\r\n\r\n"), 0);
    ck_assert_uint_eq(body_repeat("0\r\nA:", "x", LIMIT_HTTP_TRAILER_BYTES - 4, "\r\n\r\n"),
                      H1_FAULT_TRAILER_LONG);
}
END_TEST

Suite *unit_suite_http_h1_body(void);
Suite *unit_suite_http_h1_body(void)
{
    Suite *suite = suite_create("http_h1_body");
    TCase *cases = tcase_create("h1_body");
    tcase_add_test(cases, test_chunked_bodies_at_every_split);
    tcase_add_test(cases, test_length_takes_exactly_its_bytes);
    tcase_add_test(cases, test_end_of_stream_ends_only_until_close);
    tcase_add_test(cases, test_limits_hold_at_their_value_and_one_past_it);
    suite_add_tcase(suite, cases);
    return suite;
}
