/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_h2.c: HTTP/2 connections: a client that says anything to our server, and a server that says
 * anything to our client.
 *
 *   h2_request:   input ──► near ── loopback ── server ── RESPOND, or PROXY ──► client ── far: an answer of HTTP/1
 *   h2_response:  a POST and a GET ──► near ── server ── PROXY ──► client ── far ◄── input
 *
 * In:   a byte that says into which pieces reads are cut (bits 0..2), whether the rest is sent as it is (bit 3) and
 *       whether the sender then hangs up (bit 4). Else the rest is frames: type, flags, stream, count, payload, of one
 *       byte each but the payload, so that lengths fit what is there. A type with bit 7 repeats the frame before it
 *       `flags` times (floods), a count above FUZZ_H2_COUNT_LITERAL is that many KiB of zeros (windows). The preface
 *       and an empty SETTINGS go in front.
 * All of it on a network that exists in memory, whose clock moves when everybody waits: time-outs take no time.
 * Promise: whatever comes, everything ends, no buffer and no request is left, and what we send is HTTP/2: whole frames
 *          within 16,384 bytes, heads that HPACK can read, only answers, and to streams that were begun; what becomes a
 *          request is one as HTTP/1 would have it.
 */
#include "tests/fuzz/target.h"
#include "tests/support/loop_sim.h"
#include "tests/support/loopback.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/field.h"
#include "vm/http/server.h"

#include <nghttp2/nghttp2.h>
#include <string.h>

#define FUZZ_H2_AS_IT_IS 8
#define FUZZ_H2_HANGS_UP 16
#define FUZZ_H2_COUNT_LITERAL 0xf0
#define FUZZ_H2_SENT_BYTES_MAX (1 << 18)
#define FUZZ_H2_SENT_READS_MAX 20000 /* fewer bytes where each read gives few */
#define FUZZ_H2_FARS_MAX 4
#define FUZZ_H2_WAITING_MAX (2 * LIMIT_HTTP2_STREAMS)
#define FUZZ_H2_BODY_BYTES_MAX 100000
#define FUZZ_H2_THINK_MS 1000
#define FUZZ_H2_MS_MAX 600000
#define FUZZ_H2_TURNS_MAX 200000
#define FUZZ_H2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* An end of a connection that sends what it was given and reads all that comes. */
struct fuzz_h2_end {
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    cy_bytes sending;
    bool reading, writing, ended, hangs_up;
};

struct fuzz_h2 {
    struct loop *loop;
    struct loop_sim *sim;
    struct log log;
    struct http_client *client;
    struct http_server *server;
    struct upstream *upstream;
    struct http_verdict *proxied;
    struct loop_socket *listener;
    struct loop_accept accept;
    struct fuzz_h2_end near, fars[FUZZ_H2_FARS_MAX];
    unsigned far_count;
    cy_bytes far_says; /* to each connection */
    bool far_hangs_up;
    struct timer think;
    struct http_exchange *waiting[FUZZ_H2_WAITING_MAX];
    unsigned waiting_count, request_count;
};

/* -- ends of connections --------------------------------------------------------------------------------- */

static void fuzz_h2_read(struct fuzz_h2_end *end)
{
    if (end->reading || end->ended || !end->stream) return;
    end->reading = true;
    stream_read_start(end->stream, &end->read);
}

static void fuzz_h2_on_read(struct stream_read *read)
{
    struct fuzz_h2_end *end = CY_CONTAINER_OF(read, struct fuzz_h2_end, read);
    end->reading = false;
    if (!read->buffer) {
        end->ended = true;
        return;
    }
    builder_bytes(&end->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    fuzz_h2_read(end);
}

static void fuzz_h2_on_written(struct stream_write *write)
{
    struct fuzz_h2_end *end = CY_CONTAINER_OF(write, struct fuzz_h2_end, write);
    end->writing = false;
    if (!cy_failed(write->err) && end->hangs_up && end->stream) stream_shutdown_write(end->stream);
}

static void fuzz_h2_end_open(struct fuzz_h2_end *end, struct stream *owned_stream, cy_bytes says)
{
    end->stream = owned_stream;
    end->sending = says;
    end->read.done = fuzz_h2_on_read;
    end->write.done = fuzz_h2_on_written;
    builder_init(&end->received);
    fuzz_h2_read(end);
    if (says.count == 0) return;
    end->writing = true;
    end->write.send.parts[0] = end->sending;
    end->write.send.part_count = 1;
    stream_write_start(owned_stream, &end->write);
}

/* -- the world ------------------------------------------------------------------------------------------- */

static void fuzz_h2_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct fuzz_h2 *world = CY_CONTAINER_OF(accept, struct fuzz_h2, accept);
    struct loop_socket *socket;
    struct stream *stream;
    if (cy_failed(op->err)) return;
    CHECK(!cy_failed(loop_socket_open(world->loop, accept->descriptor, &socket)));
    if (world->far_count == FUZZ_H2_FARS_MAX) {
        loop_socket_close(&socket);
        return;
    }
    CHECK(!cy_failed(stream_tcp_new(world->loop, socket, &stream)));
    struct fuzz_h2_end *far = &world->fars[world->far_count++];
    far->hangs_up = world->far_hangs_up;
    fuzz_h2_end_open(far, stream, world->far_says);
}

static void fuzz_h2_respond(struct http_exchange *exchange, size_t bytes)
{
    static const uint8_t body[FUZZ_H2_BODY_BYTES_MAX];
    struct http_verdict *verdict;
    CHECK(!cy_failed(http_verdict_respond(200, cy_bytes_of(body, bytes), NULL, 0, &verdict, NULL)));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

/* The handler has thought long enough: all that wait are answered. */
static void fuzz_h2_on_think(struct timer *timer)
{
    struct fuzz_h2 *world = CY_CONTAINER_OF(timer, struct fuzz_h2, think);
    while (world->waiting_count > 0) fuzz_h2_respond(world->waiting[--world->waiting_count], 10);
}

static void fuzz_h2_check_request(const struct http_request *request)
{
    CHECK(request->method.count > 0 && field_is_token(request->method));
    CHECK(request->target.count > 0 && request->path.count > 0);
    CHECK(request->path.data[0] == '/' || cy_bytes_equal(request->path, CY_BYTES("*")));
    /* In HTTP/2 the stream's end is the body's; nothing is chunked there. */
    CHECK(request->body.kind != (request->protocol == HTTP_2 ? HTTP_BODY_CHUNKED : HTTP_BODY_UNTIL_CLOSE));
    CHECK(request->field_count <= LIMIT_HTTP_FIELDS);
    for (uint32_t i = 0; i < request->field_count; i++)
        CHECK(field_is_token(request->fields[i].name) && field_is_value(request->fields[i].value));
    for (size_t i = 0; i < request->target.count; i++)
        CHECK(request->target.data[i] > ' ' && request->target.data[i] != 0x7f);
}

/* The last byte of a path says what becomes of the request. */
static void fuzz_h2_on_request(void *context, struct http_exchange *exchange)
{
    struct fuzz_h2 *world = context;
    const struct http_request *request = http_exchange_request(exchange);
    world->request_count++;
    fuzz_h2_check_request(request);
    switch (request->path.data[request->path.count - 1]) {
    case 'w':
        CHECK(world->waiting_count < FUZZ_H2_WAITING_MAX);
        world->waiting[world->waiting_count++] = exchange;
        if (!timer_is_set(&world->think)) loop_timer_set(world->loop, &world->think, FUZZ_H2_THINK_MS);
        return;
    case 'f': http_exchange_fail(exchange, CY_BYTES("wanted")); return;
    case 'p': http_exchange_answer(exchange, world->proxied); return;
    case '9': fuzz_h2_respond(exchange, FUZZ_H2_BODY_BYTES_MAX); return;
    case '0': fuzz_h2_respond(exchange, 0); return;
    default: fuzz_h2_respond(exchange, 100);
    }
}

static void fuzz_h2_on_gone(void *context, struct http_exchange *exchange)
{
    struct fuzz_h2 *world = context;
    for (unsigned i = 0; i < world->waiting_count; i++) {
        if (world->waiting[i] != exchange) continue;
        world->waiting[i] = world->waiting[--world->waiting_count];
        return;
    }
}

static void fuzz_h2_open(struct fuzz_h2 *world, const char *upstream, bool pieces)
{
    const struct loop_sim_options sim = {.seed = 1, .pieces = pieces, .ends_max = 32};
    struct address address;
    CHECK(!cy_failed(loop_sim_new(&sim, &world->loop, &world->sim)));
    CHECK(!cy_failed(address_from_ip(CY_BYTES("127.0.0.1"), 80, &address)));
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1;
    CHECK(!cy_failed(loop_socket_open(world->loop, loop_sim_listen(world->sim, &address), &world->listener)));
    world->accept.op.done = fuzz_h2_on_accept;
    loop_accept(world->listener, &world->accept);
    const struct http_client_options client = {.loop = world->loop, .log = &world->log};
    CHECK(!cy_failed(http_client_new(&client, &world->client)));
    CHECK(!cy_failed(upstream_open(world->client, cy_bytes_from_text(upstream), &world->upstream, NULL)));
    CHECK(!cy_failed(
        http_verdict_proxy(world->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &world->proxied, NULL)));
    const struct http_server_options server = {.loop = world->loop,
                                               .log = &world->log,
                                               .client = world->client,
                                               .context = world,
                                               .on_request = fuzz_h2_on_request,
                                               .on_gone = fuzz_h2_on_gone};
    CHECK(!cy_failed(http_server_new(&server, &world->server)));
    world->think.fire = fuzz_h2_on_think;
}

static void fuzz_h2_connect(struct fuzz_h2 *world, cy_bytes says, bool hangs_up, size_t read_bytes_max)
{
    struct stream *near, *far;
    CHECK(!cy_failed(loopback_pair(world->loop, read_bytes_max, &near, &far)));
    CHECK(!cy_failed(http_server_adopt(world->server, far)));
    world->near.hangs_up = hangs_up;
    fuzz_h2_end_open(&world->near, near, says);
}

/* Until the server has closed: what is idle, or late, it closes by itself. */
static void fuzz_h2_run(struct fuzz_h2 *world)
{
    uint64_t began_ms = loop_now_ms(world->loop);
    for (unsigned turns = 0; !world->near.ended; turns++) {
        CHECK(turns < FUZZ_H2_TURNS_MAX && loop_now_ms(world->loop) - began_ms < FUZZ_H2_MS_MAX);
        CHECK(!cy_failed(loop_turn(world->loop)));
    }
}

static void fuzz_h2_close(struct fuzz_h2 *world)
{
    loop_timer_clear(world->loop, &world->think);
    stream_close(&world->near.stream);
    for (unsigned i = 0; i < world->far_count; i++) stream_close(&world->fars[i].stream);
    http_verdict_unref(&world->proxied);
    upstream_unref(&world->upstream);
    loop_socket_close(&world->listener);
    http_server_free(&world->server);
    http_client_free(&world->client);
    CHECK(!cy_failed(loop_flush(world->loop)));
    CHECK(!world->near.reading && !world->near.writing && world->waiting_count == 0);
    CHECK(buffer_pool_lent(loop_buffers(world->loop)) == 0);
    builder_fini(&world->near.received);
    for (unsigned i = 0; i < world->far_count; i++) builder_fini(&world->fars[i].received);
    loop_free(&world->loop);
}

/* -- what was sent --------------------------------------------------------------------------------------- */

static uint32_t fuzz_h2_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void fuzz_h2_inflate(nghttp2_hd_inflater *inflater, cy_bytes block, bool is_server, bool is_first)
{
    bool pseudo = false;
    for (;;) {
        nghttp2_nv pair;
        int flags = 0;
        ssize_t used = nghttp2_hd_inflate_hd2(inflater, &pair, &flags, block.data, block.count, 1);
        CHECK(used >= 0);
        block = cy_bytes_skip(block, (size_t)used);
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            cy_bytes name = cy_bytes_of(pair.name, pair.namelen);
            CHECK(field_is_value(cy_bytes_of(pair.value, pair.valuelen)));
            for (size_t i = 0; i < name.count; i++) CHECK(name.data[i] < 'A' || name.data[i] > 'Z');
            if (name.count > 0 && name.data[0] == ':') {
                CHECK(!is_server || cy_bytes_equal(name, CY_BYTES(":status")));
                pseudo = true;
            } else {
                CHECK(field_is_token(name));
            }
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
        CHECK(used > 0 || (flags & NGHTTP2_HD_INFLATE_EMIT));
    }
    CHECK(pseudo || !is_first);
    CHECK(nghttp2_hd_inflate_end_headers(inflater) == 0);
}

/* Streams that have had a head, one bit each; past the end nothing is known of them. */
struct fuzz_h2_seen {
    uint8_t heads[8192 / 8];
};

/* All that one of our ends has sent, from its first byte. Cut off at its end, where the connection was. */
static void fuzz_h2_judge(cy_bytes sent, bool is_server)
{
    nghttp2_hd_inflater *inflater;
    struct fuzz_h2_seen seen = {{0}};
    struct builder block;
    bool first = true, in_block = false;
    CHECK(nghttp2_hd_inflate_new(&inflater) == 0);
    builder_init(&block);
    while (sent.count >= 9) {
        size_t count = (size_t)sent.data[0] << 16 | (size_t)sent.data[1] << 8 | sent.data[2];
        uint8_t type = sent.data[3], flags = sent.data[4];
        uint32_t id = fuzz_h2_u32(sent.data + 5);
        CHECK(count <= 16384 && type <= NGHTTP2_CONTINUATION && id < 1u << 31);
        CHECK(!first || type == NGHTTP2_SETTINGS);
        CHECK(in_block == (type == NGHTTP2_CONTINUATION));
        if (sent.count < 9 + count) break;
        cy_bytes payload = cy_bytes_slice(sent, 9, 9 + count);
        bool is_head = type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION;
        if (is_head || type == NGHTTP2_DATA) CHECK(id & 1);
        if (type == NGHTTP2_DATA && id / 2 < 8 * sizeof seen.heads)
            CHECK(seen.heads[id / 16] >> (id / 2 % 8) & 1);
        CHECK(type != NGHTTP2_PUSH_PROMISE);
        if (type == NGHTTP2_HEADERS) CHECK(!(flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)));
        if (is_head) {
            builder_bytes(&block, payload);
            in_block = !(flags & NGHTTP2_FLAG_END_HEADERS);
            if (!in_block) {
                bool known = id / 2 < 8 * sizeof seen.heads;
                bool is_first = known && !(seen.heads[id / 16] >> (id / 2 % 8) & 1);
                fuzz_h2_inflate(inflater, builder_view(&block), is_server, is_first);
                if (known) seen.heads[id / 16] |= (uint8_t)(1 << id / 2 % 8);
                builder_clear(&block);
            }
        }
        first = false;
        sent = cy_bytes_skip(sent, 9 + count);
    }
    builder_fini(&block);
    nghttp2_hd_inflate_del(inflater);
}

/* -- what is said ---------------------------------------------------------------------------------------- */

static void fuzz_h2_frame(struct builder *out, uint8_t type, uint8_t flags, uint32_t id, cy_bytes payload)
{
    const uint8_t head[] = {(uint8_t)(payload.count >> 16),
                            (uint8_t)(payload.count >> 8),
                            (uint8_t)payload.count,
                            type,
                            flags,
                            0,
                            0,
                            (uint8_t)(id >> 8),
                            (uint8_t)id};
    builder_bytes(out, cy_bytes_of(head, sizeof head));
    builder_bytes(out, payload);
}

static void fuzz_h2_frames(cy_bytes rest, size_t bytes_max, struct builder *out)
{
    static const uint8_t zeros[(UINT8_MAX - FUZZ_H2_COUNT_LITERAL) * 1024];
    cy_bytes before = CY_BYTES_NONE;
    struct builder frame;
    builder_init(&frame);
    fuzz_h2_frame(out, NGHTTP2_SETTINGS, 0, 0, CY_BYTES_NONE);
    while (rest.count >= 4 && out->count < bytes_max) {
        uint8_t type = rest.data[0], flags = rest.data[1], id = rest.data[2], count = rest.data[3];
        if (type & 0x80) {
            for (; flags > 0 && out->count < bytes_max; flags--) builder_bytes(out, before);
            rest = cy_bytes_skip(rest, 2);
            continue;
        }
        rest = cy_bytes_skip(rest, 4);
        cy_bytes payload = count > FUZZ_H2_COUNT_LITERAL
                               ? cy_bytes_of(zeros, (size_t)(count - FUZZ_H2_COUNT_LITERAL) * 1024)
                               : cy_bytes_slice(rest, 0, cy_min_size(count, rest.count));
        builder_clear(&frame);
        fuzz_h2_frame(&frame, type, flags, id, payload);
        before = builder_view(&frame);
        builder_bytes(out, before);
        if (count <= FUZZ_H2_COUNT_LITERAL) rest = cy_bytes_skip(rest, payload.count);
    }
    builder_fini(&frame);
}

static void fuzz_h2(cy_bytes input, bool is_response)
{
    static const size_t pieces[8] = {0, 1, 2, 9, 24, 100, 1000, 5000};
    if (input.count < 2) return;
    uint8_t bits = input.data[0];
    struct builder says;
    struct fuzz_h2 *world = mem_alloc_zeroed(sizeof *world);
    CHECK(world);
    builder_init(&says);
    if (bits & FUZZ_H2_AS_IT_IS) {
        builder_bytes(&says, cy_bytes_skip(input, 1));
    } else {
        if (!is_response) builder_text(&says, FUZZ_H2_PREFACE);
        size_t piece = pieces[bits & 7];
        size_t bytes_max = piece ? cy_min_size(piece * FUZZ_H2_SENT_READS_MAX, FUZZ_H2_SENT_BYTES_MAX)
                                 : FUZZ_H2_SENT_BYTES_MAX;
        fuzz_h2_frames(cy_bytes_skip(input, 1), bytes_max, &says);
    }
    CHECK(!cy_failed(builder_error(&says)));
    world->far_hangs_up = is_response && (bits & FUZZ_H2_HANGS_UP);
    world->far_says = is_response ? builder_view(&says)
                                  : CY_BYTES("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
                                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                                             "Trailer: X-T\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n");
    fuzz_h2_open(world, is_response ? "h2c://127.0.0.1:80/base" : "http://127.0.0.1:80/base", bits & 7);
    fuzz_h2_connect(world,
                    is_response ? CY_BYTES("POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
                                           "GET /p HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                                : builder_view(&says),
                    !is_response && (bits & FUZZ_H2_HANGS_UP), pieces[bits & 7]);
    fuzz_h2_run(world);
    cy_bytes sent = builder_view(&world->near.received);
    bool is_http1 = cy_bytes_start_with(sent, CY_BYTES("HTTP/1.1 "));
    if (is_response)
        CHECK(is_http1 || sent.count == 0);
    else if (!is_http1)
        fuzz_h2_judge(sent, true);
    for (unsigned i = 0; is_response && i < world->far_count; i++) {
        cy_bytes asked = builder_view(&world->fars[i].received), preface = CY_BYTES(FUZZ_H2_PREFACE);
        if (asked.count < preface.count) continue;
        CHECK(cy_bytes_start_with(asked, preface));
        fuzz_h2_judge(cy_bytes_skip(asked, preface.count), false);
    }
    fuzz_h2_close(world);
    builder_fini(&says);
    mem_free(world);
}

void fuzz_target_h2_request(cy_bytes input) { fuzz_h2(input, false); }
void fuzz_target_h2_response(cy_bytes input) { fuzz_h2(input, true); }
