/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/load_test.c: proves the load generator on a simulated network and clock: requests are due at their
 * rate and measured from then (a server that stalls for a second shows in the 99th percentile), each kind of fault is
 * counted as what it is, bounds are met exactly, weights are kept, and under broken networks every request is counted
 * once.
 */
#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/base/hash.h"
#include "vm/base/mem.h"
#include "vm/http/load_internal.h"

#include <check.h>

enum { LOAD_TURNS_MAX = 4000000 };
static const char load_answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/* -- a server -------------------------------------------------------------------------------------------- */

/* One connection of it. Each request is answered with `text` once the stall is over. */
struct load_peer {
    struct load_peer *next;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct timer timer;
    uint32_t tail; /* the last four bytes */
    uint32_t waiting;
    bool reading, writing, ended;
};

static struct loop *loop;
static struct loop_sim *sim;
static struct loop_socket *listener;
static struct loop_accept listener_accept;
static struct load_peer *peers;
static struct {
    const char *text; /* NULL: none */
    bool closes;      /* after an answer, or in place of it */
    uint32_t refused; /* so many first connections are closed as soon as they are there */
    uint64_t stall_begin_ms, stall_end_ms;
    uint64_t request_count, connection_count;
    struct builder received;
} server;
static bool load_done, load_idle_told;
static uint64_t load_told[LOAD_FAULT_COUNT]; /* failures, by on_failure */
static struct load_failure load_told_last;

static void load_peer_answer(struct load_peer *peer);

static void load_peer_settle(struct load_peer *peer)
{
    if (!peer->ended || peer->writing || !peer->stream) return;
    loop_timer_clear(loop, &peer->timer);
    stream_close(&peer->stream);
}

static void load_peer_on_read(struct stream_read *read)
{
    struct load_peer *peer = CY_CONTAINER_OF(read, struct load_peer, read);
    peer->reading = false;
    if (!read->buffer) {
        peer->ended = true;
        load_peer_settle(peer);
        return;
    }
    cy_bytes bytes = buffer_view(read->buffer);
    if (server.received.count < 4096) builder_bytes(&server.received, bytes);
    for (size_t i = 0; i < bytes.count; i++) {
        peer->tail = peer->tail << 8 | bytes.data[i];
        if (peer->tail != 0x0d0a0d0a) continue;
        peer->waiting++;
        server.request_count++;
    }
    buffer_unref(&read->buffer);
    load_peer_answer(peer);
    if (!peer->stream || peer->ended) return;
    peer->reading = true;
    stream_read_start(peer->stream, &peer->read);
}

static void load_peer_on_written(struct stream_write *write)
{
    struct load_peer *peer = CY_CONTAINER_OF(write, struct load_peer, write);
    peer->writing = false;
    if (server.closes) peer->ended = true;
    if (peer->ended)
        load_peer_settle(peer);
    else if (peer->stream)
        load_peer_answer(peer);
}

static void load_peer_on_timer(struct timer *timer)
{
    load_peer_answer(CY_CONTAINER_OF(timer, struct load_peer, timer));
}

static void load_peer_answer(struct load_peer *peer)
{
    if (!peer->stream || peer->ended || peer->writing || !peer->waiting) return;
    uint64_t now_ms = loop_now_ms(loop);
    if (now_ms >= server.stall_begin_ms && now_ms < server.stall_end_ms) {
        if (server.stall_end_ms != UINT64_MAX)
            loop_timer_set(loop, &peer->timer, server.stall_end_ms - now_ms);
        return;
    }
    peer->waiting--;
    if (!server.text) {
        peer->ended = server.closes;
        load_peer_settle(peer);
        return;
    }
    peer->write.send = (struct loop_send){.parts = {cy_bytes_from_text(server.text)}, .part_count = 1};
    peer->writing = true;
    stream_write_start(peer->stream, &peer->write);
}

static void load_peer_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    if (cy_failed(op->err)) return;
    struct load_peer *peer = mem_alloc_zeroed(sizeof *peer);
    struct loop_socket *socket;
    ck_assert(peer != NULL);
    ck_assert(!cy_failed(loop_socket_open(loop, accept->descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(loop, socket, &peer->stream)));
    peer->read.done = load_peer_on_read;
    peer->write.done = load_peer_on_written;
    peer->timer.fire = load_peer_on_timer;
    peer->next = peers;
    peers = peer;
    if (++server.connection_count <= server.refused) {
        peer->ended = true;
        load_peer_settle(peer);
        return;
    }
    peer->reading = true;
    stream_read_start(peer->stream, &peer->read);
}

/* -- a run ----------------------------------------------------------------------------------------------- */

static void load_world_begin(const struct loop_sim_options *options, struct address *address_out)
{
    static const struct loop_sim_options calm = {.seed = 7};
    ck_assert(!cy_failed(loop_sim_new(options ? options : &calm, &loop, &sim)));
    ck_assert(!cy_failed(address_from_text(CY_BYTES("10.0.0.1:80"), address_out)));
    ck_assert(!cy_failed(loop_socket_open(loop, loop_sim_listen(sim, address_out), &listener)));
    listener_accept.op.done = load_peer_on_accept;
    loop_accept(listener, &listener_accept);
    memset(&server, 0, sizeof server);
    builder_init(&server.received);
    server.text = load_answer;
    peers = NULL;
    load_done = load_idle_told = false;
    memset(load_told, 0, sizeof load_told);
}

static void load_world_end(void)
{
    for (struct load_peer *peer = peers; peer; peer = peer->next) {
        loop_timer_clear(loop, &peer->timer);
        peer->ended = true;
        if (peer->stream) stream_close(&peer->stream);
    }
    if (listener) loop_socket_close(&listener);
    ck_assert(!cy_failed(loop_flush(loop)));
    while (peers) {
        struct load_peer *next = peers->next;
        mem_free(peers);
        peers = next;
    }
    builder_fini(&server.received);
    loop_free(&loop); /* CHECKs that nothing is open and no buffer is lent */
}

static void load_on_done(void *owner)
{
    (void)owner;
    load_done = true;
}
static void load_on_idle(void *owner)
{
    (void)owner;
    load_idle_told = true;
}

static void load_on_failure(void *owner, const struct load_failure *failure)
{
    (void)owner;
    ck_assert_uint_le(failure->began_ns, failure->failed_ns);
    load_told[failure->fault]++;
    load_told_last = *failure;
}

static const struct load_row load_row_plain = {.authority = {(const uint8_t *)"a.test", 6}, .weight = 1};

/* Runs to the end; the result is the caller's to free. */
static struct load_result *load_run(struct load_options options)
{
    struct load *load;
    options.loop = loop;
    options.done = load_on_done;
    options.on_idle = load_on_idle;
    options.on_failure = load_on_failure;
    if (!options.rows) {
        options.rows = &load_row_plain;
        options.row_count = 1;
    }
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_start(load);
    for (unsigned turns = 0; !load_done; turns++) {
        ck_assert_uint_lt(turns, LOAD_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    struct load_result *result = mem_alloc(sizeof *result);
    ck_assert(result != NULL);
    *result = *load_read(load);
    load_free(&load);
    uint64_t sum = result->well_count;
    for (unsigned i = 0; i < LOAD_FAULT_COUNT; i++) sum += result->faults[i];
    ck_assert_uint_eq(sum, result->measured_count);
    for (unsigned i = 0; !options.warm_up_ms && !cy_failed(result->err) && i < LOAD_FAULT_COUNT; i++)
        ck_assert_uint_eq(load_told[i], result->faults[i]);
    return result;
}

static uint64_t load_quantile_ms(const struct load_result *result, uint32_t parts_per_million)
{
    return histogram_quantile(&result->latency, parts_per_million) / 1000000u;
}

/* -- when requests are due ------------------------------------------------------------------------------- */

START_TEST(test_the_open_loop_sends_at_its_rate)
{
    struct load_options options = {
        .connections = 10, .rate_per_s = 1000, .warm_up_ms = 500, .duration_ms = 4000};
    load_world_begin(NULL, &options.address);
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->measured_count, 4000);
    ck_assert_uint_eq(result->well_count, 4000);
    ck_assert_uint_eq(result->queued_count, 0);
    ck_assert_uint_ge(server.request_count, 4500); /* the warm-up's too */
    ck_assert_uint_le(server.request_count, 4502);
    ck_assert_uint_le(histogram_quantile(&result->lag, 1000000), 2000000); /* timers of milliseconds */
    ck_assert_uint_le(load_quantile_ms(result, 1000000), 3);
    ck_assert_uint_eq(result->opened_count, 10);
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_a_stall_of_a_second_shows_in_the_open_loop)
{
    struct load_options options = {.connections = 10, .rate_per_s = 1000, .duration_ms = 10000};
    load_world_begin(NULL, &options.address);
    server.stall_begin_ms = loop_now_ms(loop) + 3000;
    server.stall_end_ms = server.stall_begin_ms + 1000;
    struct load_result *result = load_run(options);
    /* A thousand of ten thousand were due in that second and waited for half of it on average. */
    ck_assert_uint_eq(result->measured_count, 10000);
    ck_assert_uint_eq(result->well_count, 10000);
    ck_assert_uint_ge(load_quantile_ms(result, 990000), 850);
    ck_assert_uint_ge(load_quantile_ms(result, 950000), 400);
    ck_assert_uint_le(load_quantile_ms(result, 890000), 5);
    ck_assert_uint_ge(load_quantile_ms(result, 1000000), 990);
    ck_assert_uint_ge(result->queued_count,
                      980); /* ten were sent, the others were due without a connection */
    mem_free(result);
    load_world_end();
}
END_TEST

/* The contrast, which is why the report warns: of the same stall a closed loop notices ten requests. */
START_TEST(test_a_closed_loop_hides_the_same_stall)
{
    struct load_options options = {.connections = 10, .request_count_max = 20000};
    load_world_begin(NULL, &options.address);
    server.stall_begin_ms = loop_now_ms(loop) + 1;
    server.stall_end_ms = server.stall_begin_ms + 1000;
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->well_count, 20000);
    ck_assert_uint_le(load_quantile_ms(result, 999000), 5);
    ck_assert_uint_ge(load_quantile_ms(result, 1000000), 990);
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_what_a_dead_server_leaves_unanswered_is_counted_with_its_age)
{
    struct load_options options = {.connections = 4, .rate_per_s = 100, .duration_ms = 2000, .drain_ms = 500};
    load_world_begin(NULL, &options.address);
    server.stall_begin_ms = loop_now_ms(loop) + 1000;
    server.stall_end_ms = UINT64_MAX;
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->measured_count, 200);
    ck_assert_uint_ge(result->faults[LOAD_FAULT_UNANSWERED], 98);
    ck_assert_uint_le(result->faults[LOAD_FAULT_UNANSWERED], 101);
    ck_assert_uint_ge(load_quantile_ms(result, 1000000), 1490); /* due after a second, seen until 2.5 s */
    ck_assert_uint_ge(load_quantile_ms(result, 600000), 500);
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_requests_that_time_out_count_their_time)
{
    struct load_options options = {
        .connections = 2, .rate_per_s = 10, .duration_ms = 3000, .timeout_ms = 700, .drain_ms = 5000};
    load_world_begin(NULL, &options.address);
    server.stall_end_ms = UINT64_MAX; /* from the start */
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->measured_count, 30);
    ck_assert_uint_eq(result->well_count, 0);
    ck_assert_uint_gt(result->faults[LOAD_FAULT_TIMEOUT], 10);
    ck_assert_uint_eq(result->faults[LOAD_FAULT_TIMEOUT] + result->faults[LOAD_FAULT_UNANSWERED], 30);
    ck_assert_uint_ge(load_quantile_ms(result, 0), 699);
    mem_free(result);
    load_world_end();
}
END_TEST

/* -- bounds and connections ------------------------------------------------------------------------------ */

START_TEST(test_a_count_is_met_exactly)
{
    static const uint32_t counts[] = {1, 3, 1000};
    for (size_t i = 0; i < CY_COUNT_OF(counts); i++) {
        for (unsigned rate = 0; rate <= 500; rate += 500) {
            struct load_options options = {
                .connections = 8, .request_count_max = counts[i], .rate_per_s = rate};
            load_world_begin(NULL, &options.address);
            struct load_result *result = load_run(options);
            ck_assert_uint_eq(result->measured_count, counts[i]);
            ck_assert_uint_eq(result->answered_count, counts[i]);
            ck_assert_uint_eq(result->statuses[200], counts[i]);
            ck_assert_uint_eq(server.request_count, counts[i]);
            mem_free(result);
            load_world_end();
        }
    }
}
END_TEST

START_TEST(test_new_connections)
{
    for (unsigned rate = 0; rate <= 500; rate += 500) {
        struct load_options options = {
            .connections = 5, .request_count_max = 300, .keeping = LOAD_NEW, .rate_per_s = rate};
        load_world_begin(NULL, &options.address);
        struct load_result *result = load_run(options);
        ck_assert_uint_eq(result->well_count, 300);
        ck_assert_uint_eq(result->opened_count, 300);
        ck_assert_ptr_nonnull(
            memmem(server.received.data, server.received.count, "Connection: close\r\n", 19));
        mem_free(result);
        load_world_end();
    }
}
END_TEST

START_TEST(test_http10_as_ab_speaks_it)
{
    struct load_options options = {.connections = 1, .request_count_max = 2, .http10 = true};
    load_world_begin(NULL, &options.address);
    server.text = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok";
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->opened_count, 1);
    ck_assert(cy_bytes_start_with(builder_view(&server.received),
                                  CY_BYTES("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: a.test\r\n")));
    mem_free(result);
    load_world_end();

    options.keeping = LOAD_NEW;
    load_world_begin(NULL, &options.address);
    server.text = "HTTP/1.0 200 OK\r\n\r\nuntil the end";
    server.closes = true;
    result = load_run(options);
    ck_assert_uint_eq(result->well_count, 2);
    ck_assert_uint_eq(result->opened_count, 2);
    ck_assert_ptr_null(memmem(server.received.data, server.received.count, "Connection", 10));
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_idle_connections_are_held)
{
    struct load_options options = {.connections = 300, .idle = true, .duration_ms = 5000};
    load_world_begin(NULL, &options.address);
    uint64_t begin_ms = loop_now_ms(loop);
    struct load_result *result = load_run(options);
    ck_assert(load_idle_told);
    ck_assert_uint_eq(result->well_count, 300);
    ck_assert_uint_eq(result->measured_count, 300);
    ck_assert_uint_eq(server.request_count, 300);
    ck_assert_uint_ge(loop_now_ms(loop) - begin_ms, 5000);
    mem_free(result);
    load_world_end();
}
END_TEST

/* -- faults ---------------------------------------------------------------------------------------------- */

static struct load_result *load_run_against(const char *text, bool closes, struct load_row row)
{
    struct load_options options = {
        .connections = 2, .request_count_max = 10, .timeout_ms = 500, .rows = &row, .row_count = 1};
    load_world_begin(NULL, &options.address);
    server.text = text;
    server.closes = closes;
    struct load_result *result = load_run(options);
    load_world_end();
    return result;
}

static void load_check_fault(const char *text, bool closes, struct load_row row, enum load_fault fault)
{
    struct load_result *result = load_run_against(text, closes, row);
    if (fault == LOAD_FAULT_NONE)
        ck_assert_uint_eq(result->well_count, 10);
    else
        ck_assert_msg(result->faults[fault] == 10, "%s: %llu of 10", load_fault_word(fault),
                      (unsigned long long)result->faults[fault]);
    mem_free(result);
}

START_TEST(test_each_fault_is_counted_as_what_it_is)
{
    struct load_row plain = load_row_plain, row = plain;
    const char *five = load_answer;
    load_check_fault(five, false, plain, LOAD_FAULT_NONE);
    load_check_fault("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false, plain, LOAD_FAULT_STATUS);
    row.expect.status = 404;
    load_check_fault("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", false, row, LOAD_FAULT_NONE);
    load_check_fault(five, false, row, LOAD_FAULT_STATUS);
    row = plain;
    row.expect.has_length = true;
    row.expect.length = 4;
    load_check_fault(five, false, row, LOAD_FAULT_LENGTH);
    row.expect.length = 5;
    load_check_fault(five, false, row, LOAD_FAULT_NONE);
    row.expect.has_crc32c = true;
    row.expect.crc32c = crc32c(0, CY_BYTES("hello"));
    load_check_fault(five, false, row, LOAD_FAULT_NONE);
    load_check_fault("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                     false, row, LOAD_FAULT_NONE);
    load_check_fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhallo", false, row, LOAD_FAULT_CONTENT);
    load_check_fault("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false,
                     plain, LOAD_FAULT_NONE);
    load_check_fault("HTTP/1.1 200 OK\nContent-Length: 0\n\n", false, plain, LOAD_FAULT_SYNTAX);
    load_check_fault("HTTP/1.1 101 Switching Protocols\r\n\r\n", false, plain, LOAD_FAULT_SYNTAX);
    load_check_fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more", false, plain,
                     LOAD_FAULT_SYNTAX);
    load_check_fault("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", true, plain, LOAD_FAULT_CUT);
    load_check_fault("HTTP/1.1 200 OK\r\nContent-Le", true, plain, LOAD_FAULT_CUT);
    load_check_fault(NULL, true, plain, LOAD_FAULT_CLOSED);
    load_check_fault(NULL, false, plain, LOAD_FAULT_TIMEOUT);
    row = plain;
    row.method = CY_BYTES("HEAD");
    load_check_fault("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, row, LOAD_FAULT_NONE);
}
END_TEST

START_TEST(test_the_same_body_is_demanded)
{
    struct load_options options = {.connections = 1, .request_count_max = 10, .same_body = true};
    load_world_begin(NULL, &options.address);
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->well_count, 10);
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_nobody_listens)
{
    for (unsigned keeping = LOAD_KEEP; keeping <= LOAD_NEW; keeping++) {
        struct load_options options = {
            .connections = 3, .request_count_max = 10, .keeping = (uint8_t)keeping};
        load_world_begin(NULL, &options.address);
        ck_assert(!cy_failed(address_from_text(CY_BYTES("10.0.0.2:80"), &options.address)));
        struct load_result *result = load_run(options);
        if (keeping == LOAD_KEEP)
            ck_assert(cy_failed(result->err)); /* while opening: there is nothing to measure */
        else
            ck_assert_uint_eq(result->faults[LOAD_FAULT_CONNECT], 10);
        mem_free(result);
        load_world_end();
    }
}
END_TEST

START_TEST(test_what_cannot_stand_in_a_request_is_refused)
{
    static const struct load_field bad_name = {{(const uint8_t *)"a b", 3}, {(const uint8_t *)"c", 1}};
    static const struct load_field bad_value = {{(const uint8_t *)"a", 1}, {(const uint8_t *)"c\r\nd: e", 8}};
    static const struct load_field own = {{(const uint8_t *)"content-length", 14}, {(const uint8_t *)"3", 1}};
    const struct load_field *fields[] = {&bad_name, &bad_value, &own};
    struct load_options options = {.connections = 1, .request_count_max = 1, .done = load_on_done};
    load_world_begin(NULL, &options.address);
    struct load_row rows[] = {load_row_plain, load_row_plain, load_row_plain};
    rows[0].target = CY_BYTES("/a b");
    rows[1].method = CY_BYTES("GE T");
    rows[2].authority = CY_BYTES("a\r\nb");
    struct load *load;
    struct builder fault;
    builder_init(&fault);
    options.loop = loop;
    options.row_count = 1;
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        options.rows = &rows[i];
        builder_clear(&fault);
        ck_assert(cy_is(load_new(&options, &load, &fault), CY_ERR_VALUE));
        ck_assert_uint_gt(fault.count, 0);
        ck_assert_ptr_null(load);
    }
    options.rows = &load_row_plain;
    options.field_count = 1;
    for (size_t i = 0; i < CY_COUNT_OF(fields); i++) {
        options.fields = fields[i];
        builder_clear(&fault);
        ck_assert(cy_is(load_new(&options, &load, &fault), CY_ERR_VALUE));
        ck_assert_uint_gt(fault.count, 0);
    }
    builder_fini(&fault);
    load_world_end();
}
END_TEST

START_TEST(test_limits_hold_at_their_value_and_one_past_it)
{
    struct load_options options = {.connections = LIMIT_LOAD_CONNECTIONS,
                                   .request_count_max = 1,
                                   .rate_per_s = LIMIT_LOAD_RATE,
                                   .done = load_on_done,
                                   .row_count = LIMIT_LOAD_ROWS};
    load_world_begin(NULL, &options.address);
    struct load_row *rows = mem_alloc(((size_t)LIMIT_LOAD_ROWS + 1) * sizeof *rows);
    struct load *load;
    ck_assert(rows != NULL);
    for (size_t i = 0; i <= LIMIT_LOAD_ROWS; i++) rows[i] = load_row_plain;
    options.loop = loop;
    options.rows = rows;
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_free(&load);
    struct load_options past = options;
    past.connections++;
    ck_assert(cy_is(load_new(&past, &load, NULL), CY_ERR_TOO_MANY));
    past = options;
    past.row_count++;
    ck_assert(cy_is(load_new(&past, &load, NULL), CY_ERR_TOO_MANY));
    past = options;
    past.rate_per_s += 1;
    ck_assert(cy_is(load_new(&past, &load, NULL), CY_ERR_TOO_MANY));
    mem_free(rows);
    load_world_end();
}
END_TEST

/* A server that dies while connections are opened takes those along that are open already: they are opened again. */
START_TEST(test_connections_that_are_lost_while_others_are_opened)
{
    struct load_options options = {.connections = 2 * LIMIT_LOAD_OPENING + 1, .request_count_max = 1000};
    load_world_begin(NULL, &options.address);
    server.refused = 3;
    struct load_result *result = load_run(options);
    ck_assert_uint_eq(result->well_count, 1000);
    ck_assert_uint_eq(result->opened_count, options.connections + 3);
    mem_free(result);
    load_world_end();
}
END_TEST

START_TEST(test_failures_are_told_with_their_connection)
{
    struct load_options options = {.connections = 1, .request_count_max = 1};
    load_world_begin(NULL, &options.address);
    server.text = "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n";
    uint64_t begin_ns = loop_now_ns(loop);
    struct load_result *result = load_run(options);
    ck_assert_int_eq(load_told_last.fault, LOAD_FAULT_STATUS);
    ck_assert_uint_eq(load_told_last.status, 503);
    ck_assert_uint_ge(load_told_last.began_ns, begin_ns);
    mem_free(result);
    load_world_end();
}
END_TEST

/* Never more than LIMIT_LOAD_OPENING are under way: a listener's queue of that length loses none. */
START_TEST(test_opening_is_bounded)
{
    struct load_options options = {.connections = 2 * LIMIT_LOAD_OPENING + 1, .request_count_max = 1000};
    load_world_begin(NULL, &options.address);
    struct load *load;
    options.loop = loop;
    options.done = load_on_done;
    options.rows = &load_row_plain;
    options.row_count = 1;
    ck_assert(!cy_failed(load_new(&options, &load, NULL)));
    load_start(load);
    uint32_t most = 0;
    while (!load_done) {
        if (load->phase == LOAD_PHASE_OPENING && load->opening_count > most) most = load->opening_count;
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert_uint_eq(most, LIMIT_LOAD_OPENING);
    ck_assert_uint_eq(load_read(load)->opened_count, options.connections);
    load_free(&load);
    load_world_end();
}
END_TEST

/* A server that refuses is asked again after LIMIT_LOAD_PAUSE_MS, not in a circle. */
START_TEST(test_a_failure_is_followed_by_a_pause)
{
    struct load_options options = {
        .connections = 1, .duration_ms = 100 * LIMIT_LOAD_PAUSE_MS, .keeping = LOAD_NEW};
    load_world_begin(NULL, &options.address);
    ck_assert(!cy_failed(address_from_text(CY_BYTES("10.0.0.2:80"), &options.address)));
    struct load_result *result = load_run(options);
    ck_assert_uint_ge(result->faults[LOAD_FAULT_CONNECT], 50);
    ck_assert_uint_le(result->faults[LOAD_FAULT_CONNECT], 101);
    mem_free(result);
    load_world_end();
}
END_TEST

/* -- which request comes next ---------------------------------------------------------------------------- */

START_TEST(test_weights_are_kept)
{
    static const uint32_t weights[][5] = {
        {1, 1, 1, 1, 1}, {1, 2, 3, 4, 90}, {1000000, 1, 1, 1, 1}, {7, 7, 1, 7, 7}};
    enum { DRAWS = 400000 };
    for (size_t w = 0; w < CY_COUNT_OF(weights); w++) {
        struct load_row rows[5];
        uint64_t counts[5] = {0}, total = 0;
        struct load_mix mix;
        for (size_t i = 0; i < 5; i++) {
            rows[i] = load_row_plain;
            rows[i].weight = weights[w][i];
            total += weights[w][i];
        }
        ck_assert(!cy_failed(load_mix_init(&mix, rows, 5, 42)));
        /* Exactly, from the table itself: each place is 1/5 of the draws. */
        double shares[5] = {0};
        for (uint32_t i = 0; i < 5; i++) {
            double own = mix.places[i].alias == i ? 1 : mix.places[i].threshold / 4294967296.0;
            shares[i] += own / 5;
            shares[mix.places[i].alias] += (1 - own) / 5;
        }
        for (unsigned i = 0; i < DRAWS; i++) counts[load_mix_next(&mix)]++;
        for (size_t i = 0; i < 5; i++) {
            double share = (double)weights[w][i] / (double)total, drawn = (double)counts[i] / DRAWS;
            ck_assert_double_eq_tol(shares[i], share, 1e-6);
            ck_assert_double_eq_tol(drawn, share, 0.005);
        }
        load_mix_fini(&mix);
    }
}
END_TEST

START_TEST(test_the_same_seed_chooses_the_same)
{
    struct load_row rows[3] = {load_row_plain, load_row_plain, load_row_plain};
    struct load_mix a, b;
    ck_assert(!cy_failed(load_mix_init(&a, rows, 3, 9)) && !cy_failed(load_mix_init(&b, rows, 3, 9)));
    for (unsigned i = 0; i < 1000; i++) ck_assert_uint_eq(load_mix_next(&a), load_mix_next(&b));
    load_mix_fini(&a);
    load_mix_fini(&b);
}
END_TEST

/* -- broken networks ------------------------------------------------------------------------------------- */

START_TEST(test_on_broken_networks_every_request_is_counted_once)
{
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct loop_sim_options world = {
            .seed = seed, .pieces = true, .reorder = true, .resets_per_million = seed % 3 ? 3000 : 0};
        struct load_options options = {.connections = 1 + (uint32_t)seed % 7,
                                       .request_count_max = 200,
                                       .keeping = (uint8_t)(seed % 2),
                                       .rate_per_s = seed % 5 ? 0 : 2000,
                                       .timeout_ms = 3000,
                                       .duration_ms = 60000};
        load_world_begin(&world, &options.address);
        struct load_result *result = load_run(options); /* compares the sums */
        if (!cy_failed(result->err)) {
            ck_assert_msg(result->measured_count == 200, "seed %llu: %llu", (unsigned long long)seed,
                          (unsigned long long)result->measured_count);
            if (!world.resets_per_million) ck_assert_uint_eq(result->well_count, 200);
            ck_assert_uint_eq(result->faults[LOAD_FAULT_SYNTAX], 0);
        }
        mem_free(result);
        load_world_end();
    }
}
END_TEST

START_TEST(test_stopping_early_at_any_moment)
{
    for (unsigned turns = 0; turns < 60; turns++) {
        struct load_options options = {.connections = 6,
                                       .duration_ms = 60000,
                                       .warm_up_ms = 3,
                                       .loop = NULL,
                                       .keeping = turns % 2,
                                       .rate_per_s = turns % 3 ? 0 : 5000};
        struct load *load;
        load_world_begin(NULL, &options.address);
        options.loop = loop;
        options.done = load_on_done;
        options.rows = &load_row_plain;
        options.row_count = 1;
        ck_assert(!cy_failed(load_new(&options, &load, NULL)));
        load_start(load);
        for (unsigned i = 0; i < turns; i++) ck_assert(!cy_failed(loop_turn(loop)));
        load_stop(load);
        while (!load_done) ck_assert(!cy_failed(loop_turn(loop)));
        load_free(&load);
        load_world_end();
    }
}
END_TEST

Suite *unit_suite_http_load(void);
Suite *unit_suite_http_load(void)
{
    Suite *suite = suite_create("http_load");
    TCase *tests = tcase_create("load");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_the_open_loop_sends_at_its_rate);
    tcase_add_test(tests, test_a_stall_of_a_second_shows_in_the_open_loop);
    tcase_add_test(tests, test_a_closed_loop_hides_the_same_stall);
    tcase_add_test(tests, test_what_a_dead_server_leaves_unanswered_is_counted_with_its_age);
    tcase_add_test(tests, test_requests_that_time_out_count_their_time);
    tcase_add_test(tests, test_a_count_is_met_exactly);
    tcase_add_test(tests, test_new_connections);
    tcase_add_test(tests, test_http10_as_ab_speaks_it);
    tcase_add_test(tests, test_idle_connections_are_held);
    tcase_add_test(tests, test_each_fault_is_counted_as_what_it_is);
    tcase_add_test(tests, test_the_same_body_is_demanded);
    tcase_add_test(tests, test_nobody_listens);
    tcase_add_test(tests, test_what_cannot_stand_in_a_request_is_refused);
    tcase_add_test(tests, test_limits_hold_at_their_value_and_one_past_it);
    tcase_add_test(tests, test_connections_that_are_lost_while_others_are_opened);
    tcase_add_test(tests, test_failures_are_told_with_their_connection);
    tcase_add_test(tests, test_opening_is_bounded);
    tcase_add_test(tests, test_a_failure_is_followed_by_a_pause);
    tcase_add_test(tests, test_weights_are_kept);
    tcase_add_test(tests, test_the_same_seed_chooses_the_same);
    tcase_add_test(tests, test_on_broken_networks_every_request_is_counted_once);
    tcase_add_test(tests, test_stopping_early_at_any_moment);
    suite_add_tcase(suite, tests);
    return suite;
}
