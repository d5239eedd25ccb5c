/* SPDX-License-Identifier: MIT
 *
 * vm/http/load_h1.c: HTTP/1 for the load generator: one request at a time on a connection.
 *
 * In:   rows, fields and a body. Out: their bytes, made once (load_request.c); then the answers, read as strictly as
 *       the proxy reads its upstreams'.
 * Invariant: a head is parsed in one go, from its first byte, into the run's one table of fields; a head that comes in
 *       pieces (rare) is kept and parsed again. So ten thousand connections need no table each.
 * Not here:  what an answer must be like (load.c).
 */
#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/http/h1.h"
#include "vm/http/head_write.h"
#include "vm/http/load_internal.h"

/* -- requests -------------------------------------------------------------------------------------------- */

static void load_h1_put(struct builder *out, const char *name, cy_bytes value)
{
    builder_printf(out, "%s: ", name);
    builder_bytes(out, value);
    builder_text(out, "\r\n");
}

static void load_h1_write_head(const struct load_options *options, const struct load_row *row,
                               struct builder *out)
{
    builder_bytes(out, row->method.count ? row->method : CY_BYTES("GET"));
    builder_u8(out, ' ');
    builder_bytes(out, row->target.count ? row->target : CY_BYTES("/"));
    builder_text(out, options->http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    if (options->http10 && options->keeping == LOAD_KEEP)
        load_h1_put(out, "Connection", CY_BYTES("Keep-Alive"));
    if (!options->http10 && options->keeping == LOAD_NEW) load_h1_put(out, "Connection", CY_BYTES("close"));
    if (!load_request_has_field(options, "Host")) load_h1_put(out, "Host", row->authority);
    if (!load_request_has_field(options, "User-Agent"))
        load_h1_put(out, "User-Agent", CY_BYTES("crownyc-load"));
    if (!load_request_has_field(options, "Accept")) load_h1_put(out, "Accept", CY_BYTES("*/*"));
    for (uint32_t i = 0; i < options->field_count; i++) {
        builder_bytes(out, options->fields[i].name);
        builder_text(out, ": ");
        builder_bytes(out, options->fields[i].value);
        builder_text(out, "\r\n");
    }
    if (options->body.count) builder_printf(out, "Content-Length: %zu\r\n", options->body.count);
    builder_text(out, "\r\n");
}

static cy_err load_h1_prepare(struct load *load, struct builder *fault)
{
    return load_request_make(load, load_h1_write_head, fault);
}

static void load_h1_send(struct load_slot *slot)
{
    struct load_connection *connection = slot->connection;
    struct load *load = connection->load;
    struct loop_send *send = &connection->write.send;
    send->parts[0] = load->requests[slot->row].head;
    send->part_count = 1;
    if (load->body.count) send->parts[send->part_count++] = load->body;
    connection->in_body = false;
    load_connection_write(connection);
}

static void load_h1_on_timeout(struct load_slot *slot)
{
    load_connection_lose(slot->connection, LOAD_FAULT_TIMEOUT);
}

/* -- answers --------------------------------------------------------------------------------------------- */

static void load_h1_finish(struct load_connection *connection, bool server_ended)
{
    struct load_slot *slot = &connection->slots[0];
    bool keeps = connection->keeps && !server_ended && !connection->writing &&
                 connection->load->options.keeping == LOAD_KEEP;
    connection->in_body = false;
    load_slot_end(slot, LOAD_FAULT_NONE);
    if (connection->state != LOAD_CONNECTION_OPEN)
        return; /* that was the last one, and all is being closed */
    if (keeps)
        load_slot_free(slot);
    else
        load_connection_close(connection, !server_ended);
}

enum load_h1_step { LOAD_H1_MORE, LOAD_H1_BODY, LOAD_H1_FAULT };

/* Takes heads off the front of `buffer` until there is a final one. */
static enum load_h1_step load_h1_read_head(struct load_connection *connection, struct buffer *buffer)
{
    struct load *load = connection->load;
    struct load_slot *slot = &connection->slots[0];
    while (buffer->begin < buffer->end) {
        struct h1_head head;
        struct h1_response response;
        h1_parse_begin_response(&head, load->fields);
        enum h1_parse_result result = h1_parse_head(&head, buffer_view(buffer));
        if (result == H1_PARSE_MORE) return LOAD_H1_MORE;
        if (result == H1_PARSE_FAULT || head.status == 101) return LOAD_H1_FAULT;
        if (h1_judge_response(&head, load->requests[slot->row].is_head, &response)) return LOAD_H1_FAULT;
        buffer->begin += (uint32_t)head.used_bytes;
        if (head.status < 200) continue;
        slot->status = head.status;
        connection->keeps = response.keep_alive;
        connection->in_body = true;
        h1_body_begin(&connection->body, &response.body);
        return LOAD_H1_BODY;
    }
    return LOAD_H1_MORE;
}

/* True when the connection's bytes are used up and nothing has ended. */
static void load_h1_read_body(struct load_connection *connection, struct buffer *buffer)
{
    struct load_slot *slot = &connection->slots[0];
    cy_bytes rest = buffer_view(buffer), piece;
    for (;;) {
        enum h1_body_step step = h1_body_step(&connection->body, &rest, &piece);
        switch (step) {
        case H1_BODY_DATA:
            slot->body_bytes += piece.count;
            if (connection->load->wants_crc32c) slot->crc32c = crc32c(slot->crc32c, piece);
            break;
        case H1_BODY_TRAILER: break;
        case H1_BODY_MORE: return;
        case H1_BODY_END:
            if (rest.count == 0)
                load_h1_finish(connection, false);
            else
                load_connection_lose(connection, LOAD_FAULT_SYNTAX); /* bytes that nobody asked for */
            return;
        case H1_BODY_FAULT: load_connection_lose(connection, LOAD_FAULT_SYNTAX); return;
        }
    }
}

static void load_h1_on_read(struct load_connection *connection, struct buffer *owned_buffer)
{
    if (!connection->slots[0].busy) { /* nothing was asked for */
        buffer_unref(&owned_buffer);
        load_connection_lose(connection, LOAD_FAULT_SYNTAX);
        return;
    }
    struct buffer *buffer = owned_buffer;
    if (!connection->in_body) {
        if (connection->input) {
            struct buffer_pool *pool = loop_buffers(connection->load->options.loop);
            if (cy_failed(input_append(&connection->input, buffer, pool))) {
                load_connection_lose(connection, LOAD_FAULT_LOCAL);
                return;
            }
            buffer = connection->input;
            connection->input = NULL;
        }
        enum load_h1_step step = load_h1_read_head(connection, buffer);
        if (step == LOAD_H1_MORE && buffer->begin < buffer->end) {
            connection->input = buffer;
            return;
        }
        if (step == LOAD_H1_FAULT) load_connection_lose(connection, LOAD_FAULT_SYNTAX);
        if (step != LOAD_H1_BODY) {
            buffer_unref(&buffer);
            return;
        }
    }
    load_h1_read_body(connection, buffer);
    buffer_unref(&buffer);
}

static void load_h1_on_end(struct load_connection *connection)
{
    struct load_slot *slot = &connection->slots[0];
    if (slot->busy && connection->in_body && h1_body_end_of_stream(&connection->body)) {
        load_h1_finish(connection, true);
        return;
    }
    bool inside = connection->in_body || connection->input;
    load_connection_lose(connection, inside ? LOAD_FAULT_CUT : LOAD_FAULT_CLOSED);
}

const struct load_protocol load_http1 = {
    .name = "http/1",
    .alpn = {(const uint8_t *)"http/1.1", 8},
    .prepare = load_h1_prepare,
    .send = load_h1_send,
    .on_timeout = load_h1_on_timeout,
    .on_read = load_h1_on_read,
    .on_end = load_h1_on_end,
};
