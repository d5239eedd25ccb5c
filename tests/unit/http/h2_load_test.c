/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_load_test.c: proves the load generator over HTTP/2 on a simulated network and clock: streams at
 * once as many as were asked for, what the server refuses, resets, cuts or leaves unanswered is counted as that, a
 * GOAWAY costs only what it refuses, and no allocation that fails is lost sight of. The server is h2_peer.c, frame by
 * frame.
 */
#include "tests/support/loop_sim.h"
#include "tests/unit/http/h2_peer.h"
#include "vm/base/mem.h"
#include "vm/http/load_internal.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define H2_LOAD_TURNS_MAX 400000
#define H2_LOAD_PREFACE_BYTES 24
#define H2_LOAD_STREAMS_MAX 256 /* held at once */

enum h2_load_way {
    H2_LOAD_ANSWER,
    H2_LOAD_HOLD,
    H2_LOAD_REFUSE,
    H2_LOAD_RESET,
    H2_LOAD_GOAWAY,
    H2_LOAD_CLOSE
};

struct h2_load_far {
    struct h2_load_far *next;
    struct h2_peer peer;
    bool greeted, closed;
    unsigned request_count;
    uint32_t held[H2_LOAD_STREAMS_MAX];
    unsigned held_count;
};

static struct loop *loop;
static struct loop_sim *sim;
static struct loop_socket *listener;
static struct loop_accept accepting;
static struct h2_load_far *fars;
static struct {
    enum h2_load_way (*way)(const struct h2_load_far *far, unsigned request);
    uint64_t stall_begin_ms, stall_end_ms;
    bool speaks_http1, is_silent;
    const char *answer;
    unsigned connection_count, request_count, at_once_max, cancel_count;
    struct builder head; /* of the first request */
} server;
static bool done;

static enum h2_load_way h2_load_always(const struct h2_load_far *far, unsigned request)
{
    (void)far;
    (void)request;
    return H2_LOAD_ANSWER;
}

static void h2_load_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct loop_socket *socket;
    struct stream *stream;
    if (cy_failed(op->err)) return;
    struct h2_load_far *far = mem_alloc_zeroed(sizeof *far);
    ck_assert_ptr_nonnull(far);
    ck_assert(!cy_failed(loop_socket_open(loop, accept->descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &stream)));
    h2_peer_open(&far->peer, loop, stream);
    far->next = fars;
    fars = far;
    server.connection_count++;
}

static void h2_load_answer(struct h2_load_far *far, uint32_t id)
{
    h2_peer_head(&far->peer, 0, id, ":status: 200\n");
    h2_peer_frame(&far->peer, PEER_DATA, PEER_END_STREAM, id, cy_bytes_from_text(server.answer));
}

static void h2_load_goaway(struct h2_load_far *far, uint32_t last_id)
{
    uint8_t payload[8] = {0, 0, 0, (uint8_t)last_id};
    h2_peer_frame(&far->peer, PEER_GOAWAY, 0, 0, cy_bytes_of(payload, sizeof payload));
}

static void h2_load_on_request(struct h2_load_far *far, const struct h2_frame *frame)
{
    if (server.request_count++ == 0) builder_bytes(&server.head, frame->payload);
    switch (server.way(far, far->request_count++)) {
    case H2_LOAD_HOLD:
        ck_assert_uint_lt(far->held_count, H2_LOAD_STREAMS_MAX);
        far->held[far->held_count++] = frame->id;
        if (far->held_count > server.at_once_max) server.at_once_max = far->held_count;
        return;
    case H2_LOAD_REFUSE: h2_peer_u32(&far->peer, PEER_RST, frame->id, NGHTTP2_REFUSED_STREAM); return;
    case H2_LOAD_RESET: h2_peer_u32(&far->peer, PEER_RST, frame->id, NGHTTP2_INTERNAL_ERROR); return;
    case H2_LOAD_GOAWAY:
        h2_load_goaway(far, frame->id);
        h2_load_answer(far, frame->id);
        return;
    case H2_LOAD_CLOSE:
        far->closed = true;
        stream_close(&far->peer.stream);
        return;
    case H2_LOAD_ANSWER: h2_load_answer(far, frame->id); return;
    }
}

/* True when something came. */
static bool h2_load_serve(struct h2_load_far *far)
{
    struct h2_frame frame;
    bool some = false;
    if (far->closed) return false;
    if (!far->greeted) {
        if (far->peer.received.count < H2_LOAD_PREFACE_BYTES || server.is_silent) return false;
        far->greeted = true;
        far->peer.parsed = H2_LOAD_PREFACE_BYTES;
        if (server.speaks_http1) {
            h2_peer_bytes(&far->peer, CY_BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
            return true;
        }
        h2_peer_frame(&far->peer, PEER_SETTINGS, 0, 0, CY_BYTES_NONE);
    }
    uint64_t now_ms = loop_now_ms(loop);
    if (server.speaks_http1 || (now_ms >= server.stall_begin_ms && now_ms < server.stall_end_ms))
        return false;
    while (!far->closed && h2_peer_next(&far->peer, false, &frame)) {
        some = true;
        if (frame.type == PEER_HEADERS) h2_load_on_request(far, &frame);
        if (frame.type == PEER_RST) server.cancel_count++;
    }
    return some;
}

/* Everybody's turn, until nothing moves; then the clock's. */
static void h2_load_turn(void)
{
    for (unsigned quiet = 0; quiet < 4 && !done; quiet++) {
        for (struct h2_load_far *far = fars; far; far = far->next) {
            if (h2_load_serve(far)) quiet = 0;
            if (!far->closed) h2_peer_turn(&far->peer);
        }
        loop_wake(loop);
        if (!done) ck_assert(!cy_failed(loop_turn(loop)));
    }
    if (!done) ck_assert(!cy_failed(loop_turn(loop)));
}

static void h2_load_begin(struct address *address_out)
{
    static const struct loop_sim_options calm = {.seed = 7};
    ck_assert(!cy_failed(loop_sim_new(&calm, &loop, &sim)));
    ck_assert(!cy_failed(address_from_text(CY_BYTES("10.0.0.1:80"), address_out)));
    ck_assert(!cy_failed(loop_socket_open(loop, loop_sim_listen(sim, address_out), &listener)));
    accepting.op.done = h2_load_on_accept;
    loop_accept(listener, &accepting);
    memset(&server, 0, sizeof server);
    builder_init(&server.head);
    server.way = h2_load_always;
    server.answer = "hello";
    fars = NULL;
    done = false;
}

static void h2_load_finish(void)
{
    while (fars) {
        struct h2_load_far *far = fars;
        fars = far->next;
        h2_peer_close(&far->peer);
        mem_free(far);
    }
    loop_socket_close(&listener);
    ck_assert(!cy_failed(loop_flush(loop)));
    builder_fini(&server.head);
    loop_free(&loop); /* CHECKs that nothing is open and no buffer is lent */
}

static void h2_load_on_done(void *owner)
{
    (void)owner;
    done = true;
}

static const struct load_row row_plain = {.authority = {(const uint8_t *)"a.test", 6}, .weight = 1};

static void h2_load_fill(struct load_options *options)
{
    options->loop = loop;
    options->protocol = &load_http2;
    options->done = h2_load_on_done;
    options->rows = &row_plain;
    options->row_count = 1;
}

static struct load_result h2_load_run(struct load_options options)
{
    static struct load_result result;
    struct load *load;
    h2_load_fill(&options);
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_start(load);
    for (unsigned turns = 0; !done; turns++) {
        ck_assert_uint_lt(turns, H2_LOAD_TURNS_MAX);
        h2_load_turn();
    }
    result = *load_read(load);
    load_free(&load);
    uint64_t counted = result.well_count;
    for (unsigned i = 0; i < LOAD_FAULT_COUNT; i++) counted += result.faults[i];
    ck_assert_uint_eq(counted, result.measured_count); /* each once */
    return result;
}

START_TEST(test_each_request_is_answered_once)
{
    struct load_options options = {
        .connections = 3, .streams = 5, .request_count_max = 200, .same_body = true};
    h2_load_begin(&options.address);
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 200);
    ck_assert_uint_eq(result.statuses[200], 200);
    ck_assert_uint_eq(result.opened_count, 3);
    ck_assert_uint_eq(server.connection_count, 3);
    ck_assert_uint_eq(server.request_count, 200);
    ck_assert_uint_gt(result.received_bytes, 200 * 5);
    cy_bytes head = builder_view(&server.head);
    ck_assert(h2_peer_has(head, ":method: GET\n:scheme: http\n:authority: a.test\n:path: /\n"));
    ck_assert(h2_peer_has(head, "user-agent: crownyc-load\n"));
    h2_load_finish();
}
END_TEST

START_TEST(test_a_connection_for_each_request)
{
    struct load_options options = {.connections = 3, .keeping = LOAD_NEW, .request_count_max = 50};
    h2_load_begin(&options.address);
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 50);
    ck_assert_uint_eq(server.connection_count, 50);
    h2_load_finish();
}
END_TEST

static enum h2_load_way h2_load_hold_all(const struct h2_load_far *far, unsigned request)
{
    (void)far;
    (void)request;
    return H2_LOAD_HOLD;
}

/* So many streams are open at once, not one more; a server that says nothing at all costs the connection. */
START_TEST(test_a_silent_server_is_left)
{
    struct load_options options = {
        .connections = 1, .streams = 7, .request_count_max = 7, .timeout_ms = 500, .drain_ms = 5000};
    h2_load_begin(&options.address);
    server.way = h2_load_hold_all;
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(server.at_once_max, 7);
    ck_assert_uint_eq(result.faults[LOAD_FAULT_TIMEOUT], 7);
    ck_assert_uint_ge(histogram_quantile(&result.latency, 10000), 490000000);
    h2_load_finish();
}
END_TEST

static enum h2_load_way h2_load_hold_first(const struct h2_load_far *far, unsigned request)
{
    (void)far;
    return request == 0 ? H2_LOAD_HOLD : H2_LOAD_ANSWER;
}

/* One stream without an answer among others that have one: it alone is given up, with RST_STREAM. */
START_TEST(test_a_stream_that_times_out_leaves_its_connection)
{
    struct load_options options = {
        .connections = 1, .streams = 2, .duration_ms = 2000, .rate_per_s = 100, .timeout_ms = 500};
    h2_load_begin(&options.address);
    server.way = h2_load_hold_first;
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.faults[LOAD_FAULT_TIMEOUT], 1);
    ck_assert_uint_eq(result.well_count, 199);
    ck_assert_uint_eq(server.connection_count, 1);
    ck_assert_uint_eq(server.cancel_count, 1);
    h2_load_finish();
}
END_TEST

static enum h2_load_way h2_load_in_turn(const struct h2_load_far *far, unsigned request)
{
    static const enum h2_load_way ways[] = {H2_LOAD_ANSWER, H2_LOAD_REFUSE, H2_LOAD_ANSWER, H2_LOAD_RESET};
    (void)far;
    return ways[request % CY_COUNT_OF(ways)];
}

START_TEST(test_refused_and_reset_streams_are_counted_as_such)
{
    struct load_options options = {.connections = 1, .streams = 4, .request_count_max = 100};
    h2_load_begin(&options.address);
    server.way = h2_load_in_turn;
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 50);
    ck_assert_uint_eq(result.faults[LOAD_FAULT_REFUSED], 25);
    ck_assert_uint_eq(result.faults[LOAD_FAULT_STREAM], 25);
    ck_assert_uint_eq(server.connection_count, 1);
    h2_load_finish();
}
END_TEST

static enum h2_load_way h2_load_goaway_tenth(const struct h2_load_far *far, unsigned request)
{
    (void)far;
    return request == 9 ? H2_LOAD_GOAWAY : H2_LOAD_ANSWER;
}

/* What came before it is answered; what came after it is refused; then there is a new connection. */
START_TEST(test_goaway_costs_what_it_refuses)
{
    struct load_options options = {.connections = 1, .streams = 1, .request_count_max = 100};
    h2_load_begin(&options.address);
    server.way = h2_load_goaway_tenth;
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 100);
    ck_assert_uint_eq(result.opened_count, 10 + (server.connection_count > 10));
    ck_assert_uint_ge(result.goaway_count, 10);
    h2_load_finish();
    options = (struct load_options){.connections = 1, .streams = 4, .request_count_max = 100};
    h2_load_begin(&options.address);
    server.way = h2_load_goaway_tenth;
    result = h2_load_run(options);
    ck_assert_uint_gt(result.faults[LOAD_FAULT_REFUSED], 0);
    ck_assert_uint_eq(result.well_count + result.faults[LOAD_FAULT_REFUSED], 100);
    h2_load_finish();
}
END_TEST

static enum h2_load_way h2_load_close_fifth(const struct h2_load_far *far, unsigned request)
{
    (void)far;
    return request == 4 ? H2_LOAD_CLOSE : H2_LOAD_ANSWER;
}

START_TEST(test_a_server_that_hangs_up_is_found_again)
{
    struct load_options options = {.connections = 2, .streams = 1, .request_count_max = 50};
    h2_load_begin(&options.address);
    server.way = h2_load_close_fifth;
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 40);
    ck_assert_uint_eq(result.faults[LOAD_FAULT_CLOSED] + result.faults[LOAD_FAULT_RESET], 10);
    h2_load_finish();
}
END_TEST

static void h2_load_on_stall_end(struct timer *timer) { (void)timer; /* the clock stops here: that is all */ }

/* The second that the server stalls is in the latencies of all that were due in it. */
START_TEST(test_a_stall_is_not_omitted)
{
    struct load_options options = {
        .connections = 2, .streams = 4, .rate_per_s = 100, .duration_ms = 10000, .drain_ms = 5000};
    h2_load_begin(&options.address);
    server.stall_begin_ms = loop_now_ms(loop) + 3000;
    server.stall_end_ms = server.stall_begin_ms + 1000;
    struct timer stall_end = {.fire = h2_load_on_stall_end};
    loop_timer_set(loop, &stall_end, 4000);
    struct load_result result = h2_load_run(options);
    ck_assert_uint_eq(result.well_count, 1000);
    ck_assert_uint_gt(result.queued_count, 80); /* eight streams wait, the others are due all the same */
    ck_assert_uint_ge(histogram_quantile(&result.latency, 990000), 800000000);
    ck_assert_uint_ge(histogram_quantile(&result.latency, 950000), 400000000);
    ck_assert_uint_le(histogram_quantile(&result.latency, 850000), 20000000);
    h2_load_finish();
}
END_TEST

START_TEST(test_a_server_of_http1_is_said)
{
    struct load_options options = {.connections = 2, .request_count_max = 10};
    h2_load_begin(&options.address);
    server.speaks_http1 = true;
    struct load_result result = h2_load_run(options);
    ck_assert(cy_is(result.err, CY_ERR_HTTP2_NO_SETTINGS));
    ck_assert_uint_eq(result.opened_count, 0);
    h2_load_finish();
}
END_TEST

START_TEST(test_a_server_that_never_greets_times_out)
{
    struct load_options options = {.connections = 2, .request_count_max = 10, .timeout_ms = 300};
    h2_load_begin(&options.address);
    server.is_silent = true;
    struct load_result result = h2_load_run(options);
    ck_assert(cy_is(result.err, CY_ERR_TIMEOUT));
    h2_load_finish();
}
END_TEST

START_TEST(test_fields_of_http1_are_refused)
{
    struct load_options options = {.connections = 1, .request_count_max = 1, .field_count = 1};
    static const struct load_field bad[] = {{CY_BYTES("TE"), CY_BYTES("trailers")},
                                            {CY_BYTES("keep-alive"), CY_BYTES("1")},
                                            {CY_BYTES("Upgrade"), CY_BYTES("x")}};
    h2_load_begin(&options.address);
    h2_load_fill(&options);
    for (size_t i = 0; i < CY_COUNT_OF(bad); i++) {
        struct load *load;
        struct builder fault;
        builder_init(&fault);
        options.fields = &bad[i];
        ck_assert(cy_is(load_new(&options, &load, &fault), CY_ERR_VALUE));
        ck_assert_uint_gt(fault.count, 0);
        builder_fini(&fault);
    }
    h2_load_finish();
}
END_TEST

/* Refused with `wanted`, and with the limit's row and value. */
static void h2_load_must_pass_limit(const struct load_options *options, enum cy_err_code wanted,
                                    const char *row, unsigned limit)
{
    struct load *load;
    struct builder fault;
    char text[64];
    snprintf(text, sizeof text, " than %s = %u", row, limit);
    builder_init(&fault);
    ck_assert(cy_is(load_new(options, &load, &fault), wanted));
    builder_u8(&fault, 0);
    ck_assert_msg(strstr((const char *)fault.data, text) != NULL, "%s, not%s", (const char *)fault.data,
                  text);
    builder_fini(&fault);
}

START_TEST(test_limits_hold_at_their_value_and_one_past_it)
{
    struct load_options options = {
        .connections = LIMIT_LOAD_SLOTS / 100, .streams = 100, .request_count_max = 1};
    struct load *load;
    h2_load_begin(&options.address);
    h2_load_fill(&options);
    ck_assert_uint_eq(options.connections * options.streams, LIMIT_LOAD_SLOTS);
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_free(&load);
    options.connections++;
    h2_load_must_pass_limit(&options, CY_ERR_TOO_MANY, "LOAD_SLOTS", LIMIT_LOAD_SLOTS);
    options.connections = 1;
    options.streams = LIMIT_HTTP2_STREAMS;
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_free(&load);
    options.streams++;
    h2_load_must_pass_limit(&options, CY_ERR_TOO_MANY, "HTTP2_STREAMS", LIMIT_HTTP2_STREAMS);
    options.streams = 1;
    static struct load_field fields[LIMIT_HTTP_FIELDS + 1];
    for (size_t i = 0; i < CY_COUNT_OF(fields); i++)
        fields[i] = (struct load_field){CY_BYTES("a"), CY_BYTES("b")};
    options.fields = fields;
    options.field_count = LIMIT_HTTP_FIELDS;
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_free(&load);
    options.field_count++;
    h2_load_must_pass_limit(&options, CY_ERR_VALUE, "HTTP_FIELDS", LIMIT_HTTP_FIELDS);
    h2_load_finish();
}
END_TEST

Suite *unit_suite_http_h2_load(void);
Suite *unit_suite_http_h2_load(void)
{
    Suite *suite = suite_create("http_h2_load");
    TCase *cases = tcase_create("h2_load");
    tcase_add_test(cases, test_each_request_is_answered_once);
    tcase_add_test(cases, test_a_connection_for_each_request);
    tcase_add_test(cases, test_a_silent_server_is_left);
    tcase_add_test(cases, test_a_stream_that_times_out_leaves_its_connection);
    tcase_add_test(cases, test_refused_and_reset_streams_are_counted_as_such);
    tcase_add_test(cases, test_goaway_costs_what_it_refuses);
    tcase_add_test(cases, test_a_server_that_hangs_up_is_found_again);
    tcase_add_test(cases, test_a_stall_is_not_omitted);
    tcase_add_test(cases, test_a_server_of_http1_is_said);
    tcase_add_test(cases, test_a_server_that_never_greets_times_out);
    tcase_add_test(cases, test_fields_of_http1_are_refused);
    tcase_add_test(cases, test_limits_hold_at_their_value_and_one_past_it);
    suite_add_tcase(suite, cases);
    return suite;
}
