/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/exchange_record_test.c: proves what is left of an exchange when it has ended, in whichever way: one
 * line of the access log that names the client, one count, and a time only where an answer went out.
 *
 *   client (here) ── server ── proxy ── upstream (here)      on a simulated network
 */
#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/http/access_log.h"
#include "vm/http/server.h"

#include <check.h>

enum { RECORD_TURNS_MAX = 100000, RECORD_BODY_MS = 4000 };

struct record_peer {
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    bool writing, ended;
};

static struct loop *loop;
static struct loop_sim *sim;
static struct log logger;
static struct http_client *client;
static struct http_server *server;
static struct http_server_counters counters;
static struct upstream *upstream;
static struct http_verdict *answer, *proxy;
static struct access_log *access_log;
static struct builder lines;
static struct loop_socket *listener;
static struct loop_accept accepting;
static struct record_peer back;

static bool record_put(void *context, cy_bytes more)
{
    (void)context;
    builder_bytes(&lines, more);
    return true;
}

static void record_on_read(struct stream_read *read)
{
    struct record_peer *peer = CY_CONTAINER_OF(read, struct record_peer, read);
    peer->ended = !read->buffer;
    if (!read->buffer) return;
    builder_bytes(&peer->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    stream_read_start(peer->stream, &peer->read);
}

static void record_on_written(struct stream_write *write)
{
    CY_CONTAINER_OF(write, struct record_peer, write)->writing = false;
}

static void record_turn(unsigned *turns)
{
    ck_assert_uint_lt((*turns)++, RECORD_TURNS_MAX);
    ck_assert(!cy_failed(loop_turn(loop)));
}

static void record_open_peer(struct record_peer *peer, int owned_descriptor)
{
    struct loop_socket *socket;
    *peer = (struct record_peer){.read.done = record_on_read, .write.done = record_on_written};
    builder_init(&peer->received);
    ck_assert(!cy_failed(loop_socket_open(loop, owned_descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &peer->stream)));
    stream_read_start(peer->stream, &peer->read);
}

static void record_close_peer(struct record_peer *peer)
{
    if (!peer->stream) return;
    stream_close(&peer->stream);
    for (unsigned turns = 0; !peer->ended;) {
        loop_wake(loop);
        record_turn(&turns);
    }
    builder_fini(&peer->received);
}

static void record_say(struct record_peer *peer, const char *text)
{
    peer->write.send = (struct loop_send){.parts = {cy_bytes_from_text(text)}, .part_count = 1};
    peer->writing = true;
    stream_write_start(peer->stream, &peer->write);
    for (unsigned turns = 0; peer->writing;) record_turn(&turns);
}

static void record_await(struct record_peer *peer, const char *text)
{
    cy_bytes wanted = cy_bytes_from_text(text);
    for (unsigned turns = 0;;) {
        cy_bytes got = builder_view(&peer->received);
        if (peer->stream && got.count && memmem(got.data, got.count, wanted.data, wanted.count)) return;
        record_turn(&turns);
    }
}

/* Until no exchange is open: the last one has been recorded. */
static void record_await_end(void)
{
    for (unsigned turns = 0; counters.exchanges_open > 0;) {
        loop_wake(loop);
        record_turn(&turns);
    }
}

static void record_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    if (accept->descriptor >= 0) record_open_peer(&back, accept->descriptor);
}

static void record_on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    bool here = cy_bytes_equal(http_exchange_request(exchange)->path, CY_BYTES("/here"));
    http_exchange_answer(exchange, here ? answer : proxy);
}

static void record_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
}

static void record_open(struct record_peer *peer)
{
    const struct loop_sim_options options = {.seed = 17};
    struct address at;
    struct loop_socket *socket;
    struct stream *far;
    int near_end, far_end;
    back = (struct record_peer){0};
    counters = (struct http_server_counters){0};
    builder_init(&lines);
    log_init(&logger);
    logger.level_min = LOG_ERROR + 1;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &at)));
    ck_assert(!cy_failed(loop_socket_open(loop, loop_sim_listen(sim, &at), &listener)));
    accepting = (struct loop_accept){.op.done = record_on_accept};
    loop_accept(listener, &accepting);
    const struct http_client_options client_options = {.loop = loop, .log = &logger};
    ck_assert(!cy_failed(http_client_new(&client_options, &client)));
    ck_assert(!cy_failed(upstream_open(client, CY_BYTES("http://10.0.0.1"), &upstream, NULL)));
    ck_assert(!cy_failed(http_verdict_proxy(upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &proxy, NULL)));
    ck_assert(!cy_failed(http_verdict_respond(200, CY_BYTES("x\n"), NULL, 0, &answer, NULL)));
    const struct access_log_options log_options = {.loop = loop,
                                                   .format = ACCESS_LOG_COMMON,
                                                   .counters = &counters,
                                                   .owned_descriptor = -1,
                                                   .put = record_put};
    ck_assert(!cy_failed(access_log_new(&log_options, &access_log)));
    const struct http_server_options server_options = {.loop = loop,
                                                       .log = &logger,
                                                       .client = client,
                                                       .on_request = record_on_request,
                                                       .on_gone = record_on_gone,
                                                       .body_idle_timeout_ms = RECORD_BODY_MS,
                                                       .counters = &counters,
                                                       .access_log = access_log};
    ck_assert(!cy_failed(http_server_new(&server_options, &server)));
    loop_sim_pair(sim, &near_end, &far_end);
    record_open_peer(peer, near_end);
    ck_assert(!cy_failed(loop_socket_open(loop, far_end, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &far)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.2"), 1, &at)));
    stream_set_addresses(far, &at, NULL);
    ck_assert(!cy_failed(http_server_adopt(server, far)));
}

/* `line`: how the one line of the log begins, and what stands in it. */
static void record_close(struct record_peer *peer, const char *part)
{
    record_close_peer(peer);
    record_close_peer(&back);
    http_server_free(&server);
    http_verdict_unref(&proxy);
    http_verdict_unref(&answer);
    upstream_unref(&upstream);
    http_client_free(&client);
    loop_socket_close(&listener);
    ck_assert(!cy_failed(loop_flush(loop)));
    access_log_free(&access_log);
    const char *text = builder_text_view(&lines);
    ck_assert_uint_eq(counters.log_lines, 1);
    ck_assert_msg(strncmp(text, "10.0.0.2 ", 9) == 0, "whose line is this: %s", text);
    ck_assert_msg(strstr(text, part) != NULL, "%s is not in: %s", part, text);
    builder_fini(&lines);
    loop_free(&loop); /* CHECKs that nothing is left */
}

static uint64_t record_latency_count(void)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < HTTP_LATENCY_SLOTS; i++) count += counters.latency[i];
    return count;
}

/* -- tests ----------------------------------------------------------------------------------------------- */

#define RECORD_POST "POST /here HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhe"

/* It was answered; that the rest of its body never came, or that it left instead of sending it, is no abort. */
START_TEST(test_who_leaves_behind_an_answer_was_answered)
{
    for (int leaves = 0; leaves < 2; leaves++) {
        struct record_peer peer;
        record_open(&peer);
        record_say(&peer, RECORD_POST);
        record_await(&peer, "\r\n\r\nx\n");
        if (leaves) {
            stream_abort_on_close(peer.stream);
            record_close_peer(&peer);
        }
        for (unsigned turns = 0; counters.exchanges_open > 0;) record_turn(&turns);
        ck_assert_uint_eq(counters.responses_by_class[2], 1);
        ck_assert_uint_eq(counters.client_aborts, 0);
        ck_assert_uint_eq(record_latency_count(), 1);
        record_close(&peer, "\" 200 ");
    }
}
END_TEST

START_TEST(test_who_leaves_before_an_answer_is_499)
{
    struct record_peer peer;
    record_open(&peer);
    record_say(&peer, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    record_await(&back, "\r\n\r\n");
    stream_abort_on_close(peer.stream);
    record_close_peer(&peer);
    record_await_end();
    ck_assert_uint_eq(counters.client_aborts, 1);
    ck_assert_uint_eq(record_latency_count(), 0);
    record_close(&peer, "\" 499 ");
}
END_TEST

/* Cut off by us in the middle of a request that has not been sent on. */
START_TEST(test_who_is_cut_off_is_named)
{
    struct record_peer peer;
    record_open(&peer);
    record_say(&peer, RECORD_POST);
    record_await(&peer, "\r\n\r\nx\n");
    http_server_free(&server);
    ck_assert(!cy_failed(loop_flush(loop)));
    record_close(&peer, "\" 200 ");
}
END_TEST

/* RFC 9110 section 15: a status that is none of the five classes is as one of the last. */
START_TEST(test_a_status_of_no_class)
{
    struct record_peer peer;
    record_open(&peer);
    record_say(&peer, "GET /odd HTTP/1.1\r\nHost: a\r\n\r\n");
    record_await(&back, "\r\n\r\n");
    record_say(&back, "HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n");
    record_await(&peer, "HTTP/1.1 999 Odd\r\n");
    record_await_end();
    ck_assert_uint_eq(counters.responses_by_class[5], 1);
    ck_assert_uint_eq(counters.responses_by_class[3], 0);
    record_close(&peer, "\" 999 ");
}
END_TEST

Suite *unit_suite_http_exchange_record(void);
Suite *unit_suite_http_exchange_record(void)
{
    Suite *suite = suite_create("http_exchange_record");
    TCase *tests = tcase_create("record");
    tcase_add_test(tests, test_who_leaves_behind_an_answer_was_answered);
    tcase_add_test(tests, test_who_leaves_before_an_answer_is_499);
    tcase_add_test(tests, test_who_is_cut_off_is_named);
    tcase_add_test(tests, test_a_status_of_no_class);
    suite_add_tcase(suite, tests);
    return suite;
}
