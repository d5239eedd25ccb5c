/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/relay_test.c: proves that a body keeps its bytes through every change of framing, however
 * the input is split, that tiny chunks do not cost a part each, and that trailers arrive without the fields
 * they must not set.
 */
#include "vm/base/builder.h"
#include "vm/base/limits.h"
#include "vm/http/relay.h"

#include <check.h>
#include <stdio.h>

static void relay_collect(const struct loop_send *send, struct builder *out)
{
    for (uint32_t i = 0; i < send->part_count; i++) builder_bytes(out, send->parts[i]);
}

/* Feeds `input` in buffers of `step` bytes; gives what goes out. Returns the number of writes. */
static unsigned relay_run(cy_bytes input, size_t step, const struct http_framing *framing, bool chunked_out,
                          struct builder *out, enum relay_result *result_out)
{
    struct buffer_pool *pool;
    struct relay relay;
    unsigned writes = 0;
    ck_assert(!cy_failed(buffer_pool_new(4, NULL, &pool)));
    relay_begin(&relay, framing, chunked_out);
    enum relay_result result = RELAY_GOES_ON;
    for (size_t begin = 0; begin < input.count && result == RELAY_GOES_ON; begin += step) {
        struct buffer *buffer = buffer_take_sized(pool, step);
        cy_bytes part = cy_bytes_slice(input, begin, begin + step);
        memcpy(buffer->data, part.data, part.count);
        buffer->end = (uint32_t)part.count;
        while (result == RELAY_GOES_ON && buffer->begin < buffer->end) {
            struct loop_send send = {.part_count = 0};
            struct relay_hold hold = {.buffers = {NULL}};
            result = relay_fill(&relay, buffer, &send, &hold);
            if (result != RELAY_FAULT) relay_collect(&send, out);
            if (send.part_count) writes++;
            relay_hold_release(&hold);
        }
        buffer_unref(&buffer);
    }
    if (result == RELAY_GOES_ON) {
        struct loop_send send = {.part_count = 0};
        struct relay_hold hold = {.buffers = {NULL}};
        if (relay_finish(&relay, &send, &hold)) result = RELAY_ENDED;
        relay_collect(&send, out);
    }
    relay_end(&relay);
    buffer_pool_free(&pool); /* CHECKs that no buffer is left */
    *result_out = result;
    return writes;
}

static void relay_check(const char *input_text, const struct http_framing *framing, bool chunked_out,
                        const char *whole_out, const char *data)
{
    cy_bytes input = cy_bytes_from_text(input_text);
    for (size_t step = 1; step <= input.count; step++) {
        struct builder out, again;
        enum relay_result result;
        builder_init(&out);
        builder_init(&again);
        relay_run(input, step, framing, chunked_out, &out, &result);
        ck_assert_int_eq(result, RELAY_ENDED);
        if (step == input.count)
            ck_assert_msg(cy_bytes_equal(builder_view(&out), cy_bytes_from_text(whole_out)), "%.*s",
                          CY_BYTES_ARG(builder_view(&out)));
        const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
        if (chunked_out)
            relay_run(builder_view(&out), out.count, &chunked, false, &again, &result);
        else
            builder_bytes(&again, builder_view(&out));
        ck_assert_msg(cy_bytes_equal(builder_view(&again), cy_bytes_from_text(data)), "step %zu: %.*s", step,
                      CY_BYTES_ARG(builder_view(&again)));
        builder_fini(&out);
        builder_fini(&again);
    }
}

START_TEST(test_framings_change_and_bytes_stay)
{
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0}, close = {HTTP_BODY_UNTIL_CLOSE, 0},
                              length = {HTTP_BODY_LENGTH, 11};
    const char *chunks = "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
    relay_check(chunks, &chunked, true, "b\r\nhello world\r\n0\r\n\r\n", "hello world");
    relay_check(chunks, &chunked, false, "hello world", "hello world");
    relay_check("hello world", &close, true, "b\r\nhello world\r\n0\r\n\r\n", "hello world");
    relay_check("hello world", &close, false, "hello world", "hello world");
    relay_check("hello world", &length, false, "hello world", "hello world");
    relay_check("0\r\n\r\n", &chunked, true, "0\r\n\r\n", "");
}
END_TEST

START_TEST(test_trailers_arrive_filtered)
{
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    const char *input = "1\r\na\r\n0\r\nX-Sum: 1\r\nContent-Length: 5\r\nHost: evil\r\nX_Forwarded_For: "
                        "1.2.3.4\r\nB: \r\n\r\n";
    relay_check(input, &chunked, true, "1\r\na\r\n0\r\nX-Sum: 1\r\nB: \r\n\r\n", "a");
    relay_check(input, &chunked, false, "a", "a");
}
END_TEST

/* RFC 9110 section 6.5.1: what a trailer says comes too late for framing, routing, authentication, caching, conditions
 * and processing, and a reader that made it one with the head would be told another thing than those before it. */
START_TEST(test_what_only_a_head_may_say_is_no_trailer)
{
    const char *dropped[] = {
        "Host",
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Content-Length",
        "Upgrade",
        "HTTP2-Settings",
        "Expect",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Forwarded-Proto",
        "X-Forwarded-Port",
        "X-Real-IP",
        "Content_Length",
        "Transfer_Encoding",
        "Keep_Alive",
        "Date",
        "Content-Type",
        "Content-Encoding",
        "Content-Range",
        "Location",
        "Cookie",
        "Set-Cookie",
        "set-cookie",
        "Authorization",
        "WWW-Authenticate",
        "Proxy-Authorization",
        "Proxy-Authenticate",
        "Cache-Control",
        "Age",
        "Expires",
        "Pragma",
        "Warning",
        "Vary",
        "If-Match",
        "If-None-Match",
        "If-Modified-Since",
        "If-Unmodified-Since",
        "If-Range",
        "Range",
        "Origin",
        "Max-Forwards",
        "Retry-After",
    };
    const char *kept[] = {"ETag", "X-Sum", "Grpc-Status", "Server-Timing", "Digest", "Authentication-Info",
                          "Agee"};
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    char input[256], wanted[256];
    for (size_t i = 0; i < CY_COUNT_OF(dropped); i++) {
        snprintf(input, sizeof input, "1\r\na\r\n0\r\nX-Sum: 1\r\n%s: 2\r\nB: 3\r\n\r\n", dropped[i]);
        relay_check(input, &chunked, true, "1\r\na\r\n0\r\nX-Sum: 1\r\nB: 3\r\n\r\n", "a");
    }
    for (size_t i = 0; i < CY_COUNT_OF(kept); i++) {
        snprintf(input, sizeof input, "1\r\na\r\n0\r\nX-One: 1\r\n%s: 2\r\n\r\n", kept[i]);
        snprintf(wanted, sizeof wanted, "1\r\na\r\n0\r\nX-One: 1\r\n%s: 2\r\n\r\n", kept[i]);
        relay_check(input, &chunked, true, wanted, "a");
    }
}
END_TEST

START_TEST(test_a_fault_is_passed_up)
{
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    struct builder out;
    enum relay_result result;
    builder_init(&out);
    relay_run(CY_BYTES("5\r\nhello\r\nX"), 100, &chunked, true, &out, &result);
    ck_assert_int_eq(result, RELAY_FAULT);
    builder_fini(&out);
}
END_TEST

/* 16 KiB in chunks of one byte: one write, because the bytes are moved together. Chunks too large for that:
 * one write for each eleven. */
START_TEST(test_small_chunks_are_moved_together)
{
    const struct http_framing chunked = {HTTP_BODY_CHUNKED, 0};
    struct builder input, out;
    enum relay_result result;
    builder_init(&input);
    builder_init(&out);
    for (int i = 0; i < 2000; i++) builder_text(&input, "1\r\nx\r\n");
    builder_text(&input, "0\r\n\r\n");
    ck_assert_uint_eq(relay_run(builder_view(&input), input.count, &chunked, true, &out, &result), 1);
    ck_assert_int_eq(result, RELAY_ENDED);
    ck_assert_uint_eq(out.count, 2000 + sizeof "7d0\r\n\r\n0\r\n\r\n" - 1);
    builder_clear(&input);
    builder_clear(&out);
    for (int i = 0; i < 33; i++) {
        builder_text(&input, "258\r\n");
        for (int k = 0; k < 0x258; k++) builder_u8(&input, 'x');
        builder_text(&input, "\r\n");
    }
    ck_assert_uint_le(relay_run(builder_view(&input), input.count, &chunked, false, &out, &result), 4);
    ck_assert_uint_eq(out.count, 33 * 0x258);
    builder_fini(&input);
    builder_fini(&out);
}
END_TEST

static void relay_test_release(struct buffer *buffer) { ++*(unsigned *)buffer->context; }

/* What is lent is sent as it lies there: pieces are not moved together in memory that is somebody else's. */
START_TEST(test_foreign_memory_is_not_written)
{
    static const uint8_t body[] =
        "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"; /* read only: a write is a crash */
    struct buffer_pool *pool;
    unsigned released = 0;
    ck_assert(!cy_failed(buffer_pool_new(4, NULL, &pool)));
    struct buffer *buffer = buffer_wrap(pool, body, sizeof body - 1, relay_test_release, &released);
    struct relay relay;
    struct loop_send send = {.part_count = 0};
    struct relay_hold hold = {.buffers = {NULL}};
    relay_begin(&relay, &(struct http_framing){HTTP_BODY_CHUNKED, 0}, false);
    ck_assert_int_eq(relay_fill(&relay, buffer, &send, &hold), RELAY_ENDED);
    ck_assert_uint_eq(send.part_count, 3);
    relay_hold_add(&hold, buffer);
    struct builder out;
    builder_init(&out);
    relay_collect(&send, &out);
    ck_assert(cy_bytes_equal(builder_view(&out), CY_BYTES("abc")));
    builder_fini(&out);
    ck_assert_uint_eq(released, 0);
    relay_hold_release(&hold);
    ck_assert_uint_eq(released, 1);
    relay_end(&relay);
    buffer_pool_free(&pool);
}
END_TEST

Suite *unit_suite_http_relay(void);
Suite *unit_suite_http_relay(void)
{
    Suite *suite = suite_create("http_relay");
    TCase *cases = tcase_create("relay");
    tcase_add_test(cases, test_foreign_memory_is_not_written);
    tcase_add_test(cases, test_framings_change_and_bytes_stay);
    tcase_add_test(cases, test_trailers_arrive_filtered);
    tcase_add_test(cases, test_what_only_a_head_may_say_is_no_trailer);
    tcase_add_test(cases, test_a_fault_is_passed_up);
    tcase_add_test(cases, test_small_chunks_are_moved_together);
    suite_add_tcase(suite, cases);
    return suite;
}
