/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim_upstream.c: servers behind the proxy, which read requests with the model and answer as planned, or do
 * what the plan calls a fault.
 *
 * Whatever an upstream does is written into the request's `want` before a byte of it can reach the client.
 */
#include "tests/sim/sim.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

#include <stdio.h>

static void upstream_read(struct sim_upstream_connection *connection);
static void upstream_take(struct sim_upstream_connection *connection, cy_bytes rest);
static void upstream_write(struct sim_upstream_connection *connection);

/* -- the end ------------------------------------------------------------------------------------------------ */

static void upstream_close(struct sim_upstream_connection *connection, bool resets)
{
    if (!connection->stream) return;
    sim_trace(connection->world, "upstream %u: %s", connection->upstream, resets ? "resets" : "closes");
    loop_timer_clear(connection->world->loop, &connection->timer);
    if (resets) stream_abort_on_close(connection->stream);
    stream_close(&connection->stream);
}

/* FIN, and what still comes is read and dropped: closing over unread bytes would destroy the answer. */
static void upstream_linger(struct sim_upstream_connection *connection)
{
    sim_trace(connection->world, "upstream %u: ends its stream", connection->upstream);
    connection->lingering = true;
    stream_shutdown_write(connection->stream);
    upstream_read(connection);
}

/* -- answers ------------------------------------------------------------------------------------------------ */

static void upstream_put_head(struct builder *out, const struct sim_request *request)
{
    builder_printf(out, "HTTP/1.%u %u Planned\r\nX-Id: %u\r\n", request->answer_old ? 0 : 1, request->status,
                   request->id);
    if (request->id % 5 == 0)
        builder_printf(out, "Connection: X-Hop%s\r\nX-Hop: 1\r\nKeep-Alive: timeout=60\r\n",
                       request->answer_closes ? ", close" : "");
    if (request->id % 3 == 0) builder_text(out, "Date: Tue, 15 Nov 1994 08:12:31 GMT\r\n");
    if (request->answer_old && !request->answer_closes) builder_text(out, "Connection: keep-alive\r\n");
    if (request->answer_closes && request->id % 5 != 0) builder_text(out, "Connection: close\r\n");
    bool may_have_length = request->status != 204 && request->status != 304;
    if (request->answer_body == SIM_BODY_LENGTH && may_have_length)
        builder_printf(out, "Content-Length: %u\r\n", request->answer_bytes);
    else if (request->answer_body == SIM_BODY_CHUNKED && may_have_length)
        builder_text(out, "Transfer-Encoding: chunked\r\n");
    builder_text(out, "\r\n");
}

static void upstream_put_interims(struct builder *out, struct sim_request *request)
{
    for (unsigned i = 0; i < request->interims; i++)
        builder_printf(out, "HTTP/1.1 %u Soon\r\nX-Id: %u\r\n\r\n", i % 2 ? 102 : 103, request->id);
    request->interims_sent += request->interims;
}

/* Where in the `count` bytes behind `begin` the fault strikes: never behind the last one. */
static size_t upstream_cut(const struct sim_request *request, size_t begin, size_t count)
{
    return begin + count * request->fault_part / 1000;
}

static void upstream_spoil_head(struct builder *out, const struct sim_request *request)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX y: z\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    };
    builder_text(out, heads[request->fault_part % CY_COUNT_OF(heads)]);
}

/* Would the proxy send it again when this connection breaks without an answer? */
static bool upstream_comes_again(const struct sim_upstream_connection *connection,
                                 const struct sim_request *request)
{
    return connection->served > 0 && request->arrivals == 1 && request->is_idempotent &&
           sim_is_bodyless(request);
}

/* The answer's bytes as the plan has them, up to where the fault strikes. */
static void upstream_put_answer(struct sim_upstream_connection *connection, struct sim_request *request)
{
    struct builder *out = &connection->out;
    uint8_t fault = request->arrivals == 1 ? request->fault : SIM_FAULT_NONE;
    upstream_put_interims(out, request);
    size_t head_begin = out->count;
    if (fault == SIM_FAULT_BAD_HEAD) {
        upstream_spoil_head(out, request);
        request->want = SIM_502;
        connection->ends_after = true;
        return;
    }
    upstream_put_head(out, request);
    size_t body_begin = out->count;
    bool bare = sim_answer_is_bare(request);
    if (!bare && request->answer_body == SIM_BODY_CHUNKED)
        sim_put_chunks(connection->world, out, request->id, true, request->answer_bytes,
                       request->answer_trailer);
    else if (!bare)
        sim_put_body(out, request->id, true, 0, request->answer_bytes);
    size_t body_bytes = out->count - body_begin;
    connection->ends_after =
        request->answer_closes || (!bare && request->answer_body == SIM_BODY_UNTIL_CLOSE);
    switch (fault) {
    case SIM_FAULT_CUT_HEAD:
    case SIM_FAULT_STALL_HEAD:
        out->count = upstream_cut(request, head_begin, body_begin - head_begin);
        connection->stalls_after = fault == SIM_FAULT_STALL_HEAD;
        request->want = connection->stalls_after ? SIM_504 : SIM_502;
        break;
    case SIM_FAULT_CUT_BODY:
    case SIM_FAULT_STALL_BODY:
        out->count = upstream_cut(request, body_begin, body_bytes);
        connection->stalls_after = fault == SIM_FAULT_STALL_BODY;
        request->want = SIM_SHORT;
        break;
    case SIM_FAULT_BAD_CHUNK:
        out->count = body_begin;
        builder_text(out, request->fault_part % 2 ? "1\r\n" : "0x1\r\n");
        sim_put_body(out, request->id, true, 0, 1);
        builder_text(out, request->fault_part % 2 ? "X\r\n0\r\n\r\n" : "\r\n0\r\n\r\n");
        request->want = SIM_SHORT;
        break;
    case SIM_FAULT_STRAY:
        connection->strayed = true;
        builder_printf(out, "HTTP/1.1 200 OK\r\nX-Id: %u\r\nContent-Length: 0\r\n\r\n", request->id);
        break;
    default: break;
    }
    bool cut = fault == SIM_FAULT_CUT_HEAD || fault == SIM_FAULT_CUT_BODY || fault == SIM_FAULT_BAD_CHUNK;
    bool until_close = request->answer_body == SIM_BODY_UNTIL_CLOSE;
    if (cut) connection->ends_after = true;
    connection->resets_after = fault == SIM_FAULT_CUT_BODY
                                   ? until_close || request->fault_resets
                                   : fault == SIM_FAULT_CUT_HEAD && request->fault_resets;
    if (connection->resets_after || fault == SIM_FAULT_BAD_CHUNK) request->also = 1 << SIM_502;
    bool nothing_came = out->count == 0 || connection->resets_after;
    if (cut && nothing_came && upstream_comes_again(connection, request)) request->also |= 1 << SIM_EXACT;
    if (cut && out->count == 0 && request->also & 1 << SIM_EXACT) request->want = SIM_EXACT;
}

static void upstream_answer(struct sim_upstream_connection *connection)
{
    struct sim_request *request = connection->request;
    struct sim_world *world = connection->world;
    sim_trace(world, "upstream %u: answers request %u (fault %d)", connection->upstream, request->id,
              request->arrivals == 1 ? request->fault : 0);
    connection->answering = true;
    if (connection->writing) return; /* the 100, out of `out`: then */
    connection->slices_left = request->slices;
    connection->continuing = false;
    if (request->arrivals == 1 && request->fault == SIM_FAULT_CLOSE) {
        if (!upstream_comes_again(connection, request)) request->want = SIM_502;
        upstream_close(connection, request->fault_resets);
        return;
    }
    upstream_put_answer(connection, request);
    CHECK(!connection->out.failed);
    upstream_write(connection);
}

/* -- requests ----------------------------------------------------------------------------------------------- */

static void upstream_check_field(const struct sim_upstream_connection *connection, const char *name,
                                 unsigned wanted)
{
    uint32_t count;
    http_model_field(&connection->model, name, &count);
    if (count != wanted)
        sim_fail(connection->world, "upstream %u: request %u has %u fields %s, not %u", connection->upstream,
                 connection->request->id, count, name, wanted);
}

static void upstream_check_head(struct sim_upstream_connection *connection)
{
    struct sim_world *world = connection->world;
    const struct http_model *model = &connection->model;
    const struct sim_request *request = connection->request;
    SIM_CHECK(world, cy_bytes_equal(model->method, cy_bytes_from_text(request->method)));
    SIM_CHECK(world, model->minor_version == 1);
    SIM_CHECK(world, request->verdict == SIM_PROXY && request->upstream == connection->upstream);
    SIM_CHECK(world, request->handled == 1);
    SIM_CHECK(world, cy_bytes_equal(http_model_field(model, "X-Forwarded-For", NULL), CY_BYTES("192.0.2.1")));
    SIM_CHECK(world, cy_bytes_equal(http_model_field(model, "Host", NULL), CY_BYTES("sim.test")));
    upstream_check_field(connection, "Forwarded", 0);
    upstream_check_field(connection, "X-Hop", 0);
    upstream_check_field(connection, "X-Id", 1);
    static const enum http_model_body bodies[] = {[SIM_BODY_NONE] = HTTP_MODEL_BODY_NONE,
                                                  [SIM_BODY_LENGTH] = HTTP_MODEL_BODY_LENGTH,
                                                  [SIM_BODY_CHUNKED] = HTTP_MODEL_BODY_CHUNKED};
    enum http_model_body body = bodies[request->body];
    if (body == HTTP_MODEL_BODY_LENGTH && request->body_bytes == 0) body = HTTP_MODEL_BODY_NONE;
    SIM_CHECK(world, model->body == body);
    if (model->has_length) SIM_CHECK(world, model->length == request->body_bytes);
    /* With a body it may come again when one buffer held all that had been taken of that. */
    bool repeats = request->is_idempotent && request->body_bytes <= LIMIT_BUFFER_BYTES;
    if (request->arrivals > (repeats ? 2u : 1u))
        sim_fail(world, "upstream %u: %s request %u came %u times", connection->upstream, request->method,
                 request->id, request->arrivals);
}

static void upstream_on_head(struct sim_upstream_connection *connection)
{
    struct sim_world *world = connection->world;
    struct sim_request *request = sim_find_request(world, connection->model.target);
    SIM_CHECK(world, request != NULL);
    SIM_CHECK(world, !connection->strayed); /* it has said something that nobody asked for: never again */
    connection->request = request;
    connection->body_bytes = 0;
    connection->request_whole = connection->answered = false;
    if (connection->served) world->stats->reused++;
    if (request->arrivals++) {
        world->stats->retries++;
        request->want = SIM_EXACT; /* what comes again is served well */
    }
    sim_trace(world, "upstream %u: head of request %u", connection->upstream, request->id);
    upstream_check_head(connection);
    if (request->arrivals == 1 && request->fault == SIM_FAULT_RESET) {
        if (!upstream_comes_again(connection, request)) request->want = SIM_502;
        upstream_close(connection, true);
        return;
    }
    bool expects =
        cy_bytes_equal(http_model_field(&connection->model, "Expect", NULL), CY_BYTES("100-continue"));
    SIM_CHECK(world, !expects || request->expects);
    if (request->early) {
        upstream_answer(connection);
    } else if (request->sends_continue && (expects || (request->id % 7 == 0 && !request->fault))) {
        builder_text(&connection->out, "HTTP/1.1 100 Continue\r\n\r\n");
        connection->continuing = true;
        upstream_write(connection);
    }
}

/* Both ways are done: the next request, or the end. */
static void upstream_next(struct sim_upstream_connection *connection)
{
    struct sim_world *world = connection->world;
    if (!connection->request_whole || !connection->answered || connection->lingering) return;
    connection->served++;
    connection->request = NULL;
    connection->answering = connection->request_whole = connection->answered = false;
    http_model_begin(&connection->model);
    if (world->row->idle_closes && sim_chance(world, 40))
        loop_timer_set(world->loop, &connection->timer, 1 + (uint32_t)sim_random(world, 300));
}

static void upstream_on_whole(struct sim_upstream_connection *connection)
{
    struct sim_request *request = connection->request;
    struct sim_world *world = connection->world;
    const struct builder *trailer = &connection->model.trailer;
    SIM_CHECK(world, connection->body_bytes == request->body_bytes);
    if (request->has_trailer) {
        char text[32];
        snprintf(text, sizeof text, "X-Trailer: %u\r\n", request->id);
        SIM_CHECK(world, cy_bytes_equal(builder_view(trailer), cy_bytes_from_text(text)));
    } else {
        SIM_CHECK(world, trailer->count == 0);
    }
    sim_trace(world, "upstream %u: request %u is whole", connection->upstream, request->id);
    connection->request_whole = true;
    request->executions++;
    if (!connection->answering)
        upstream_answer(connection);
    else
        upstream_next(connection);
}

static void upstream_take(struct sim_upstream_connection *connection, cy_bytes rest)
{
    struct sim_world *world = connection->world;
    cy_bytes piece;
    while (connection->stream && !connection->lingering) {
        if (connection->request_whole && rest.count)
            sim_fail(world, "upstream %u: %zu bytes before the answer to request %u was done",
                     connection->upstream, rest.count, connection->request->id);
        if (connection->request_whole) return;
        switch (http_model_step(&connection->model, &rest, &piece)) {
        case HTTP_MODEL_MORE: return;
        case HTTP_MODEL_FAULT:
            sim_fail(world, "upstream %u: the request breaks the rules: %s", connection->upstream,
                     connection->model.fault);
        case HTTP_MODEL_HEAD:
            loop_timer_clear(world->loop, &connection->timer);
            upstream_on_head(connection);
            break;
        case HTTP_MODEL_DATA:
            SIM_CHECK(world, connection->body_bytes + piece.count <= connection->request->body_bytes);
            SIM_CHECK(world, sim_is_body(piece, connection->request->id, false, connection->body_bytes));
            connection->body_bytes += piece.count;
            break;
        case HTTP_MODEL_END: upstream_on_whole(connection); break;
        }
    }
}

static void upstream_on_read(struct stream_read *read)
{
    struct sim_upstream_connection *connection = CY_CONTAINER_OF(read, struct sim_upstream_connection, read);
    struct sim_world *world = connection->world;
    struct buffer *buffer = read->buffer; /* what is done with it may begin the next read */
    connection->reading = false;
    if (connection->stream && !buffer) upstream_close(connection, false); /* gone, or done with us */
    bool is_idle = connection->served > 0 && !http_model_has_begun(&connection->model);
    if (connection->stream && world->row->idle_closes && is_idle && sim_chance(world, 15)) {
        /* It hung up before this came, as far as anybody can tell. */
        world->stats->hangups++;
        upstream_close(connection, sim_chance(world, 50));
    }
    if (connection->stream && !connection->lingering) upstream_take(connection, buffer_view(buffer));
    buffer_unref(&buffer);
    if (connection->stream) upstream_read(connection);
}

static void upstream_read(struct sim_upstream_connection *connection)
{
    if (connection->reading || !connection->stream) return;
    connection->reading = true;
    stream_read_start(connection->stream, &connection->read);
}

/* -- writing ------------------------------------------------------------------------------------------------ */

static void upstream_on_answered(struct sim_upstream_connection *connection)
{
    if (connection->stalls_after) return; /* until the other side has had enough */
    if (connection->resets_after) {
        upstream_close(connection, true);
        return;
    }
    connection->answered = true;
    connection->request->answers++;
    if (connection->ends_after)
        upstream_linger(connection);
    else
        upstream_next(connection);
}

static void upstream_on_written(struct stream_write *write)
{
    struct sim_upstream_connection *connection =
        CY_CONTAINER_OF(write, struct sim_upstream_connection, write);
    connection->writing = false;
    if (!connection->stream) return;
    if (cy_failed(write->err)) {
        upstream_close(connection, false);
        return;
    }
    connection->out_begin += write->send.sent_bytes;
    if (connection->out_begin < connection->out.count) {
        uint32_t gap_ms = connection->request ? connection->request->gap_ms : 0;
        loop_timer_set(connection->world->loop, &connection->timer, gap_ms + 1);
        return;
    }
    builder_clear(&connection->out);
    connection->out_begin = 0;
    if (!connection->answering) return;
    if (connection->continuing)
        upstream_answer(connection);
    else
        upstream_on_answered(connection);
}

/* What waits in `out`, or with slices left a part of it. */
static void upstream_write(struct sim_upstream_connection *connection)
{
    if (connection->writing || !connection->stream) return;
    size_t left = connection->out.count - connection->out_begin;
    if (left == 0) {
        if (connection->answering) upstream_on_answered(connection);
        return;
    }
    size_t count = left;
    if (connection->slices_left > 1) {
        connection->slices_left--;
        count = 1 + (size_t)sim_random(connection->world, left);
    }
    connection->writing = true;
    connection->write.send.parts[0] = cy_bytes_of(connection->out.data + connection->out_begin, count);
    connection->write.send.part_count = 1;
    stream_write_start(connection->stream, &connection->write);
}

/* -- the beginning ------------------------------------------------------------------------------------------ */

/* The next slice, or a hang-up while nothing is asked. */
static void upstream_on_timer(struct timer *timer)
{
    struct sim_upstream_connection *connection =
        CY_CONTAINER_OF(timer, struct sim_upstream_connection, timer);
    if (!connection->stream) return;
    if (connection->out.count > connection->out_begin)
        upstream_write(connection);
    else if (!connection->request && !http_model_has_begun(&connection->model))
        upstream_close(connection, sim_chance(connection->world, 30));
}

static void upstream_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct sim_upstream *upstream = CY_CONTAINER_OF(accept, struct sim_upstream, accept);
    struct sim_world *world = upstream->world;
    struct loop_socket *socket;
    if (cy_failed(op->err)) return;
    struct sim_upstream_connection *connection = mem_alloc_zeroed(sizeof *connection);
    CHECK(connection != NULL);
    connection->world = world;
    connection->upstream = upstream->index;
    connection->next = world->connections;
    world->connections = connection;
    http_model_init(&connection->model, false);
    builder_init(&connection->out);
    connection->read.done = upstream_on_read;
    connection->write.done = upstream_on_written;
    connection->timer.fire = upstream_on_timer;
    CHECK(!cy_failed(loop_socket_open(world->loop, accept->descriptor, &socket)));
    CHECK(!cy_failed(stream_tcp_new(world->loop, socket, &connection->stream)));
    sim_trace(world, "upstream %u: accepts", upstream->index);
    upstream_read(connection);
}

void sim_upstream_start(struct sim_upstream *upstream)
{
    struct sim_world *world = upstream->world;
    struct address address;
    char text[32];
    snprintf(text, sizeof text, "10.1.0.%u", upstream->index + 1);
    CHECK(!cy_failed(address_from_ip(cy_bytes_from_text(text), 80, &address)));
    CHECK(!cy_failed(
        loop_socket_open(world->loop, loop_sim_listen(world->sim, &address), &upstream->listener)));
    upstream->accept.op.done = upstream_on_accept;
    loop_accept(upstream->listener, &upstream->accept);
    snprintf(text, sizeof text, "http://10.1.0.%u", upstream->index + 1);
    CHECK(!cy_failed(upstream_open(world->client, cy_bytes_from_text(text), &upstream->upstream, NULL)));
    CHECK(!cy_failed(
        http_verdict_proxy(upstream->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &upstream->verdict, NULL)));
}

void sim_upstream_stop(struct sim_upstream *upstream)
{
    http_verdict_unref(&upstream->verdict);
    upstream_unref(&upstream->upstream);
    loop_socket_close(&upstream->listener);
    struct sim_upstream_connection *connection = upstream->world->connections;
    for (; connection; connection = connection->next)
        if (connection->upstream == upstream->index) upstream_close(connection, false);
}

void sim_upstream_free_connections(struct sim_world *world)
{
    while (world->connections) {
        struct sim_upstream_connection *connection = world->connections;
        world->connections = connection->next;
        CHECK(!connection->reading && !connection->writing);
        http_model_fini(&connection->model);
        builder_fini(&connection->out);
        mem_free(connection);
    }
}
