/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/half_close_test.c: proves that an HTTP/1 client that leaves with a FIN is noticed in its time, and
 * that one that has only finished sending gets each answer that begins in it.
 */
#include "tests/unit/http/timeout_world.h"

/* A client that leaves with a FIN, as close() sends it behind a whole request. */
static void timeout_expect_left(struct timeout_peer *peer, uint64_t begin_ms, uint64_t ms)
{
    struct http_server_counters counters;
    timeout_await_end(peer);
    timeout_expect_after(peer, begin_ms, ms);
    http_server_read_counters(server, &counters);
    ck_assert_uint_eq(counters.client_aborts, 1);
    ck_assert_uint_eq(counters.upstream_failures, 0);
    ck_assert_uint_eq(counters.exchanges_open, 0);
    ck_assert_uint_eq(counters.connections_open, 0);
}

START_TEST(test_a_client_that_leaves_with_a_fin_cancels_its_upstream)
{
    static const char *const requests[] = {
        "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /slow HTTP/1.0\r\nHost: a\r\n\r\n",
        "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST /slow HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "GET /slow HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    };
    for (size_t i = 0; i < CY_COUNT_OF(requests); i++) {
        struct timeout_peer peer;
        timeout_open();
        timeout_connect(&peer);
        timeout_send(&peer, requests[i]);
        timeout_await(&back, "\r\n\r\n");
        timeout_pause(2000); /* also when the request has been under way for long */
        uint64_t begin_ms = loop_now_ms(loop);
        stream_shutdown_write(peer.stream);
        timeout_expect_left(&peer, begin_ms, HALF_CLOSE_MS);
        timeout_await_end(&back);
        timeout_expect_after(&back, begin_ms, HALF_CLOSE_MS);
        timeout_peer_close(&peer);
        timeout_close();
    }
}
END_TEST

START_TEST(test_a_client_that_leaves_with_a_fin_cancels_its_handler)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    uint64_t begin_ms = loop_now_ms(loop);
    timeout_send(&peer, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
    stream_shutdown_write(peer.stream);
    timeout_expect_left(&peer, begin_ms, HALF_CLOSE_MS);
    ck_assert_uint_eq(gone_count, 1);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* What has begun within the time runs on for as long as it takes, and is whole. */
START_TEST(test_a_client_that_has_finished_sending_gets_an_answer_that_begins_in_time)
{
    struct timeout_peer peer;
    struct http_server_counters counters;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    stream_shutdown_write(peer.stream);
    timeout_await(&back, "\r\n\r\n");
    timeout_pause(HALF_CLOSE_MS - 10);
    timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
    timeout_await(&peer, "\r\n\r\nhello");
    timeout_pause(5 * HALF_CLOSE_MS);
    timeout_send(&back, "world");
    timeout_await(&peer, "world");
    timeout_await_end(&peer);
    ck_assert(peer.clean);
    http_server_read_counters(server, &counters);
    ck_assert_uint_eq(counters.client_aborts, 0);
    ck_assert_uint_eq(counters.responses_by_class[2], 1);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Nor does the time begin anew with each of them. */
START_TEST(test_interim_answers_give_who_has_finished_sending_no_more_time)
{
    struct timeout_peer peer;
    timeout_open();
    timeout_connect(&peer);
    timeout_send(&peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    stream_shutdown_write(peer.stream);
    for (int i = 0; i < 2; i++) {
        timeout_pause(HALF_CLOSE_MS / 3);
        timeout_send(&back, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
        timeout_await(&peer, "Link: x\r\n\r\n");
    }
    timeout_expect_left(&peer, begin_ms, HALF_CLOSE_MS);
    timeout_await_end(&back);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

START_TEST(test_without_time_for_a_half_close_a_fin_is_a_client_that_has_left)
{
    struct timeout_peer peer;
    struct http_server_options bounds = timeout_bounds;
    timeout_open();
    bounds.half_close_ms = HTTP_HALF_CLOSE_NONE;
    http_server_set_bounds(server, &bounds);
    timeout_connect(&peer);
    timeout_send(&peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    timeout_await(&back, "\r\n\r\n");
    uint64_t begin_ms = loop_now_ms(loop);
    stream_shutdown_write(peer.stream);
    timeout_expect_left(&peer, begin_ms, 0);
    timeout_await_end(&back);
    timeout_expect_after(&back, begin_ms, 0);
    timeout_peer_close(&peer);
    timeout_close();
}
END_TEST

/* Whatever ends the connection while that time runs, it ends nothing else: its memory may be another's by then. */
START_TEST(test_a_half_close_that_ends_before_its_time_leaves_nothing_behind)
{
    for (int ends = 0; ends < 3; ends++) {
        struct timeout_peer peer;
        struct http_server_counters counters;
        timeout_open();
        timeout_connect(&peer);
        timeout_send(&peer, ends == 0 ? "GET /never HTTP/1.1\r\nHost: a\r\n\r\n"
                                      : "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        stream_shutdown_write(peer.stream);
        timeout_pause(HALF_CLOSE_MS / 2);
        if (ends == 0) {
            http_server_free(&server);
            timeout_await_end(&peer);
            timeout_pause(HALF_CLOSE_MS);
        } else {
            struct timeout_peer next;
            if (ends == 1) timeout_send(&back, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
            if (ends == 2) stream_close(&back.stream);
            timeout_await_end(&peer);
            timeout_connect(&next); /* with what the first one had */
            timeout_send(&next, "GET /never HTTP/1.1\r\nHost: a\r\n\r\n");
            timeout_pause(2 * HALF_CLOSE_MS);
            ck_assert(!next.ended);
            http_server_read_counters(server, &counters);
            ck_assert_uint_eq(counters.client_aborts, 0);
            ck_assert_uint_eq(counters.responses_by_class[ends == 1 ? 2 : 5], 1);
            http_server_free(&server);
            timeout_peer_close(&next);
        }
        timeout_peer_close(&peer);
        timeout_close();
    }
}
END_TEST

Suite *unit_suite_http_half_close(void);
Suite *unit_suite_http_half_close(void)
{
    Suite *suite = suite_create("http_half_close");
    TCase *tests = tcase_create("half_close");
    tcase_add_test(tests, test_a_client_that_leaves_with_a_fin_cancels_its_upstream);
    tcase_add_test(tests, test_a_client_that_leaves_with_a_fin_cancels_its_handler);
    tcase_add_test(tests, test_a_client_that_has_finished_sending_gets_an_answer_that_begins_in_time);
    tcase_add_test(tests, test_interim_answers_give_who_has_finished_sending_no_more_time);
    tcase_add_test(tests, test_without_time_for_a_half_close_a_fin_is_a_client_that_has_left);
    tcase_add_test(tests, test_a_half_close_that_ends_before_its_time_leaves_nothing_behind);
    suite_add_tcase(suite, tests);
    return suite;
}
