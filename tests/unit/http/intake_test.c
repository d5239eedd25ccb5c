/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/intake_test.c: proves, on a simulated network, that a connection which still owes its PROXY header is
 * a client like any other: served when others take over meanwhile, closed by a stop and when its time is over, counted,
 * and the first to go where room is needed. Where nobody can go the next client waits until somebody has left.
 */
#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/base/limits.h"
#include "vm/http/server.h"

#include <check.h>

#define INTAKE_HEADER "PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n"
#define INTAKE_REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

enum { INTAKE_IDLE_MS = 3000, INTAKE_CONNECTIONS = 3, INTAKE_TURNS_MAX = 100000 };

static struct loop *loop;
static struct loop_sim *sim;
static struct log logger;
static struct http_client *client;
static struct http_server *server;
static struct http_verdict *answer;
static struct address at;
static bool drained, holds; /* holds: nobody is answered */

struct intake_client {
    struct loop_connect connect;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    bool connected, writing, ended;
};

static void intake_on_connected(struct loop_op *op)
{
    struct loop_connect *connect = CY_CONTAINER_OF(op, struct loop_connect, op);
    ck_assert(!cy_failed(op->err));
    CY_CONTAINER_OF(connect, struct intake_client, connect)->connected = true;
}

static void intake_on_read(struct stream_read *read)
{
    struct intake_client *self = CY_CONTAINER_OF(read, struct intake_client, read);
    self->ended = !read->buffer;
    if (!read->buffer) return;
    builder_bytes(&self->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    stream_read_start(self->stream, &self->read);
}

static void intake_on_written(struct stream_write *write)
{
    CY_CONTAINER_OF(write, struct intake_client, write)->writing = false;
}

/* Turns until `*what` is `wanted`. */
static void intake_turn_until(const bool *what, bool wanted)
{
    for (unsigned turns = 0; *what != wanted; turns++) {
        ck_assert_uint_lt(turns, INTAKE_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
}

static void intake_connect(struct intake_client *self)
{
    *self = (struct intake_client){
        .connect.op.done = intake_on_connected, .read.done = intake_on_read, .write.done = intake_on_written};
    builder_init(&self->received);
    loop_connect(loop, &at, &self->connect);
    intake_turn_until(&self->connected, true);
    ck_assert(!cy_failed(stream_tcp_new(loop, self->connect.socket, &self->stream)));
    stream_read_start(self->stream, &self->read);
}

static uint64_t intake_open_count(void)
{
    struct http_server_counters counters;
    http_server_read_counters(server, &counters);
    return counters.connections_open;
}

/* The server has accepted it. */
static void intake_await_open(uint64_t count)
{
    for (unsigned turns = 0; intake_open_count() != count; turns++) {
        ck_assert_uint_lt(turns, INTAKE_TURNS_MAX);
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
}

static void intake_say(struct intake_client *self, const char *text)
{
    self->write.send = (struct loop_send){.parts = {cy_bytes_from_text(text)}, .part_count = 1};
    self->writing = true;
    stream_write_start(self->stream, &self->write);
    intake_turn_until(&self->writing, false);
}

/* What came until the server closed. */
static void intake_expect(struct intake_client *self, const char *part)
{
    intake_turn_until(&self->ended, true);
    cy_bytes wanted = cy_bytes_from_text(part), got = builder_view(&self->received);
    if (wanted.count == 0)
        ck_assert_uint_eq(got.count, 0);
    else
        ck_assert_msg(got.count && memmem(got.data, got.count, wanted.data, wanted.count),
                      "\"%s\" is not in \"%.*s\"", part, CY_BYTES_ARG(got));
}

static void intake_leave(struct intake_client *self)
{
    stream_close(&self->stream);
    for (unsigned turns = 0; !self->ended; turns++) {
        ck_assert_uint_lt(turns, INTAKE_TURNS_MAX);
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    builder_fini(&self->received);
}

static void intake_on_request(void *context, struct http_exchange *exchange)
{
    (void)context;
    if (!holds) http_exchange_answer(exchange, answer);
}

static void intake_on_gone(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
}

static void intake_on_drained(void *context)
{
    (void)context;
    drained = true;
}

static void intake_open_for(uint64_t connections_max)
{
    const struct loop_sim_options options = {.seed = 11};
    drained = holds = false;
    log_init(&logger);
    logger.level_min = LOG_ERROR + 1;
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &at)));
    const struct http_client_options client_options = {.loop = loop, .log = &logger};
    ck_assert(!cy_failed(http_client_new(&client_options, &client)));
    ck_assert(!cy_failed(http_verdict_respond(200, CY_BYTES("x\n"), NULL, 0, &answer, NULL)));
    const struct http_server_options server_options = {.loop = loop,
                                                       .log = &logger,
                                                       .client = client,
                                                       .on_request = intake_on_request,
                                                       .on_gone = intake_on_gone,
                                                       .connections_max = connections_max};
    ck_assert(!cy_failed(http_server_new(&server_options, &server)));
}

static void intake_listen(int descriptor, bool wants_header)
{
    struct http_listener *listener;
    ck_assert(!cy_failed(http_server_listen_tls(server, descriptor, NULL, &listener)));
    if (wants_header) ck_assert(!cy_failed(http_listener_want_header(listener, NULL, 0)));
}

static void intake_open(void)
{
    intake_open_for(INTAKE_CONNECTIONS);
    intake_listen(loop_sim_listen(sim, &at), true);
}

static void intake_close(void)
{
    http_server_free(&server);
    http_verdict_unref(&answer);
    http_client_free(&client);
    ck_assert(!cy_failed(loop_flush(loop)));
    loop_free(&loop); /* CHECKs that nothing is left */
}

/* -- tests ----------------------------------------------------------------------------------------------- */

START_TEST(test_a_header_that_comes_while_others_take_over_is_served)
{
    struct intake_client self;
    intake_open();
    intake_connect(&self);
    intake_await_open(1);
    http_server_hand_over(server, INTAKE_IDLE_MS, intake_on_drained);
    intake_say(&self, INTAKE_HEADER INTAKE_REQUEST);
    intake_expect(&self, "HTTP/1.1 200 OK\r\n");
    intake_expect(&self, "Connection: close\r\n");
    stream_shutdown_write(self.stream); /* the server reads on behind its last answer until we end */
    intake_turn_until(&drained, true);
    intake_leave(&self);
    intake_close();
}
END_TEST

START_TEST(test_who_says_nothing_does_not_keep_the_end_from_coming)
{
    for (int hand_over = 0; hand_over < 2; hand_over++) {
        struct intake_client self;
        intake_open();
        intake_connect(&self);
        intake_await_open(1);
        uint64_t begin_ms = loop_now_ms(loop);
        if (hand_over)
            http_server_hand_over(server, INTAKE_IDLE_MS, intake_on_drained);
        else
            http_server_drain(server, intake_on_drained);
        intake_expect(&self, "");
        intake_turn_until(&drained, true);
        uint64_t after_ms = hand_over ? INTAKE_IDLE_MS : 0;
        ck_assert_uint_ge(loop_now_ms(loop) - begin_ms, after_ms);
        ck_assert_uint_le(loop_now_ms(loop) - begin_ms, after_ms + 10);
        intake_leave(&self);
        intake_close();
    }
}
END_TEST

START_TEST(test_its_time_is_bounded)
{
    struct intake_client self;
    intake_open();
    intake_connect(&self);
    intake_await_open(1);
    uint64_t begin_ms = loop_now_ms(loop);
    intake_say(&self, "PROXY ");
    intake_expect(&self, "");
    ck_assert_uint_ge(loop_now_ms(loop) - begin_ms, LIMIT_PROXY_PROTOCOL_MS);
    ck_assert_uint_le(loop_now_ms(loop) - begin_ms, LIMIT_PROXY_PROTOCOL_MS + 10);
    ck_assert_uint_eq(intake_open_count(), 0);
    intake_leave(&self);
    intake_close();
}
END_TEST

/* As many as may be, one of them without its header: the next client is served, and those that waited longest go. */
START_TEST(test_it_makes_room_as_others_do)
{
    struct intake_client silent, others[INTAKE_CONNECTIONS - 1], next;
    struct http_server_counters counters;
    intake_open();
    intake_connect(&silent);
    intake_await_open(1);
    for (uint64_t i = 0; i < INTAKE_CONNECTIONS - 1; i++) {
        intake_connect(&others[i]);
        intake_say(&others[i], INTAKE_HEADER "GET / HTTP/1.1\r\n");
        intake_await_open(i + 2);
    }
    uint64_t begin_ms = loop_now_ms(loop);
    intake_connect(&next);
    intake_say(&next, INTAKE_HEADER INTAKE_REQUEST);
    intake_expect(&silent, "");
    for (size_t i = 0; i < INTAKE_CONNECTIONS - 1; i++) intake_expect(&others[i], "");
    ck_assert_uint_ge(loop_now_ms(loop) - begin_ms, LIMIT_HTTP_QUIET_MS);
    http_server_read_counters(server, &counters);
    ck_assert_uint_eq(counters.evictions, INTAKE_CONNECTIONS);
    ck_assert_uint_eq(counters.connections_open, 1);
    http_server_drain(server, intake_on_drained);
    intake_expect(&next, "HTTP/1.1 200 OK\r\n");
    for (size_t i = 0; i < INTAKE_CONNECTIONS - 1; i++) intake_leave(&others[i]);
    intake_leave(&silent);
    intake_leave(&next);
    intake_close();
}
END_TEST

/* Two clients have asked before the server listens, which has one place: whoever is let in first has said all, though
 * nobody has looked, when the other listener wants its place. */
START_TEST(test_who_was_not_looked_at_has_not_let_us_wait)
{
    for (int wants_header = 0; wants_header < 2; wants_header++) {
        struct intake_client clients[2];
        struct http_server_counters counters;
        int descriptors[2];
        intake_open_for(1);
        for (uint16_t i = 0; i < 2; i++) {
            ck_assert(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), (uint16_t)(80 + i), &at)));
            descriptors[i] = loop_sim_listen(sim, &at);
            intake_connect(&clients[i]);
            intake_say(&clients[i], wants_header ? INTAKE_HEADER INTAKE_REQUEST : INTAKE_REQUEST);
            stream_shutdown_write(clients[i].stream);
        }
        for (int i = 0; i < 2; i++) intake_listen(descriptors[i], wants_header);
        for (int i = 0; i < 2; i++) intake_expect(&clients[i], "HTTP/1.1 200 OK\r\n");
        http_server_read_counters(server, &counters);
        ck_assert_uint_eq(counters.evictions, 0);
        ck_assert_uint_eq(counters.requests, 2);
        for (int i = 0; i < 2; i++) intake_leave(&clients[i]);
        intake_close();
    }
}
END_TEST

/* As many as may be, each with a request that is not answered yet: the next client is neither reset nor let in before
 * one of them has left, and then it is served. */
START_TEST(test_where_nobody_can_go_the_next_one_waits)
{
    struct intake_client others[INTAKE_CONNECTIONS], next;
    struct http_server_counters counters;
    intake_open();
    holds = true;
    for (uint64_t i = 0; i < INTAKE_CONNECTIONS; i++) {
        intake_connect(&others[i]);
        intake_say(&others[i], INTAKE_HEADER INTAKE_REQUEST);
        intake_await_open(i + 1);
    }
    for (counters.requests = 0; counters.requests < INTAKE_CONNECTIONS;) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
        http_server_read_counters(server, &counters);
    }
    holds = false;
    intake_connect(&next);
    intake_say(&next, INTAKE_HEADER INTAKE_REQUEST);
    uint64_t begin_ms = loop_now_ms(loop);
    while (loop_now_ms(loop) - begin_ms < 10 * LIMIT_ACCEPT_PAUSE_MS) ck_assert(!cy_failed(loop_turn(loop)));
    ck_assert(!next.ended);
    http_server_read_counters(server, &counters);
    ck_assert_uint_eq(counters.connections, INTAKE_CONNECTIONS);
    stream_abort_on_close(
        others[0].stream); /* an end alone could be that of a request, whose answer it awaits */
    intake_leave(&others[0]);
    stream_shutdown_write(next.stream);
    intake_expect(&next, "HTTP/1.1 200 OK\r\n");
    http_server_read_counters(server, &counters);
    ck_assert_uint_eq(counters.evictions, 0);
    ck_assert_uint_eq(counters.connections, INTAKE_CONNECTIONS + 1);
    for (size_t i = 1; i < INTAKE_CONNECTIONS; i++) intake_leave(&others[i]);
    intake_leave(&next);
    intake_close();
}
END_TEST

Suite *unit_suite_http_intake(void);
Suite *unit_suite_http_intake(void)
{
    Suite *suite = suite_create("http_intake");
    TCase *tcase = tcase_create("intake");
    tcase_add_test(tcase, test_a_header_that_comes_while_others_take_over_is_served);
    tcase_add_test(tcase, test_who_says_nothing_does_not_keep_the_end_from_coming);
    tcase_add_test(tcase, test_its_time_is_bounded);
    tcase_add_test(tcase, test_it_makes_room_as_others_do);
    tcase_add_test(tcase, test_who_was_not_looked_at_has_not_let_us_wait);
    tcase_add_test(tcase, test_where_nobody_can_go_the_next_one_waits);
    suite_add_tcase(suite, tcase);
    return suite;
}
