/* SPDX-License-Identifier: MIT
 *
 * vm/http/respond.c: answers that come from here: a verdict's, a refusal's, an interim one.
 *
 * In:   an exchange whose connection has no write outstanding. Out: writes; head and the first slice of the
 *       body in one.
 * Invariant: Content-Length is written for every answer that may have a body, and only there.
 */
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/http/field.h"
#include "vm/http/status.h"

/* Status line, Date, Content-Length, Content-Type and Connection: more than these need. */
#define RESPOND_FIXED_BYTES 512

void respond_put_status(struct head_writer *writer, uint16_t status, cy_bytes reason)
{
    head_put(writer, CY_BYTES("HTTP/1.1 "));
    head_put_u64(writer, status);
    head_put(writer, CY_BYTES(" "));
    head_put(writer, reason);
    head_put(writer, CY_BYTES("\r\n"));
}

void respond_put_connection(struct head_writer *writer, const struct http_exchange *exchange)
{
    if (!exchange->keep_alive)
        head_put(writer, CY_BYTES("Connection: close\r\n"));
    else if (exchange->request.minor_version == 0)
        head_put(writer, CY_BYTES("Connection: keep-alive\r\n"));
}

static void respond_put_length(struct head_writer *writer, uint16_t status, size_t body_bytes)
{
    if (status == 204 || status == 304) return;
    head_put(writer, CY_BYTES("Content-Length: "));
    head_put_u64(writer, body_bytes);
    head_put(writer, CY_BYTES("\r\n"));
}

/* The head goes first; the hold takes it. */
static void respond_begin_write(struct http_exchange *exchange, struct buffer *owned_head,
                                enum exchange_write write)
{
    struct http_connection *connection = exchange->connection;
    struct loop_send *send = &connection->write.send;
    send->part_count = 1;
    send->more = false;
    send->parts[0] = buffer_view(owned_head);
    relay_hold_add(&connection->hold, owned_head);
    exchange->write = (uint8_t)write;
}

/* -- verdicts -------------------------------------------------------------------------------------------- */

static struct buffer *respond_write_head(struct http_exchange *exchange)
{
    const struct http_verdict *verdict = exchange->verdict;
    struct http_server *server = exchange->connection->server;
    struct head_writer writer;
    size_t bytes_max = RESPOND_FIXED_BYTES;
    bool has_date = false;
    for (uint32_t i = 0; i < verdict->field_count; i++) {
        bytes_max += verdict->fields[i].name.count + verdict->fields[i].value.count + 4;
        if (field_identify(verdict->fields[i].name) == HTTP_FIELD_DATE) has_date = true;
    }
    head_open(&writer, server_buffers(server), bytes_max);
    respond_put_status(&writer, verdict->status, status_reason(verdict->status));
    if (!has_date) head_put_field(&writer, CY_BYTES("Date"), server_date(server));
    for (uint32_t i = 0; i < verdict->field_count; i++)
        head_put_field(&writer, verdict->fields[i].name, verdict->fields[i].value);
    respond_put_length(&writer, verdict->status, verdict->body.count);
    respond_put_connection(&writer, exchange);
    head_put(&writer, CY_BYTES("\r\n"));
    return head_close(&writer);
}

/* A long body goes out in slices, so that the timer sees a slow reader's progress. */
static void respond_add_slice(struct http_exchange *exchange)
{
    struct loop_send *send = &exchange->connection->write.send;
    if (exchange->request.is_head) return;
    size_t end = exchange->body_offset + LIMIT_HTTP_WRITE_SLICE_BYTES;
    cy_bytes slice = cy_bytes_slice(exchange->verdict->body, exchange->body_offset, end);
    if (slice.count == 0) return;
    send->parts[send->part_count++] = slice;
    exchange->body_offset += slice.count;
}

void respond_verdict(struct http_exchange *exchange)
{
    exchange->keep_alive = respond_may_keep(exchange, true);
    struct buffer *head = respond_write_head(exchange);
    if (!head) {
        connection_abort(exchange->connection);
        return;
    }
    exchange->status = exchange->verdict->status;
    respond_begin_write(exchange, head, EXCHANGE_WRITE_RESPOND);
    respond_add_slice(exchange);
    connection_write(exchange->connection);
}

void respond_continue(struct http_exchange *exchange)
{
    struct loop_send *send = &exchange->connection->write.send;
    send->part_count = 0;
    if (exchange->verdict && exchange->verdict->kind == HTTP_VERDICT_RESPOND) respond_add_slice(exchange);
    if (send->part_count == 0) {
        exchange_answered(exchange);
        return;
    }
    exchange->write = EXCHANGE_WRITE_RESPOND;
    connection_write(exchange->connection);
}

/* -- short texts ----------------------------------------------------------------------------------------- */

bool respond_text(struct http_exchange *exchange, uint16_t status, const char *text)
{
    struct http_server *server = exchange->connection->server;
    cy_bytes reason = status_reason(status), detail = text ? cy_bytes_from_text(text) : CY_BYTES_NONE;
    size_t body_bytes = sizeof "500 \n" - 1 + reason.count + (text ? detail.count + 2 : 0);
    struct head_writer writer;
    exchange->keep_alive = respond_may_keep(exchange, true);
    head_open(&writer, server_buffers(server), RESPOND_FIXED_BYTES + body_bytes);
    respond_put_status(&writer, status, reason);
    head_put_field(&writer, CY_BYTES("Date"), server_date(server));
    head_put_field(&writer, CY_BYTES("Content-Type"), CY_BYTES("text/plain; charset=utf-8"));
    respond_put_length(&writer, status, body_bytes);
    respond_put_connection(&writer, exchange);
    head_put(&writer, CY_BYTES("\r\n"));
    if (!exchange->request.is_head) {
        head_put_u64(&writer, status);
        head_put(&writer, CY_BYTES(" "));
        head_put(&writer, reason);
        if (text) head_put(&writer, CY_BYTES(": "));
        head_put(&writer, detail);
        head_put(&writer, CY_BYTES("\n"));
    }
    struct buffer *head = head_close(&writer);
    if (!head) return false;
    exchange->status = status;
    exchange->body_offset =
        SIZE_MAX - LIMIT_HTTP_WRITE_SLICE_BYTES; /* a verdict's body is not sent behind this */
    respond_begin_write(exchange, head, EXCHANGE_WRITE_RESPOND);
    connection_write(exchange->connection);
    return true;
}

/* -- interim answers ------------------------------------------------------------------------------------- */

bool respond_interim(struct http_exchange *exchange, uint16_t status, cy_bytes reason,
                     const struct http_field *fields, uint32_t field_count)
{
    struct head_writer writer;
    size_t bytes_max = RESPOND_FIXED_BYTES + reason.count;
    for (uint32_t i = 0; i < field_count; i++) bytes_max += fields[i].name.count + fields[i].value.count + 4;
    head_open(&writer, server_buffers(exchange->connection->server), bytes_max);
    respond_put_status(&writer, status, reason);
    for (uint32_t i = 0; i < field_count; i++) {
        unsigned flags = field_flags(fields[i].known);
        if (flags & (HTTP_FIELD_FLAG_HOP | HTTP_FIELD_FLAG_FRAMING)) continue;
        if (h1_connection_lists(fields, field_count, fields[i].name)) continue;
        head_put_field(&writer, fields[i].name, fields[i].value);
    }
    head_put(&writer, CY_BYTES("\r\n"));
    struct buffer *head = head_close(&writer);
    if (!head) return false;
    respond_begin_write(exchange, head, EXCHANGE_WRITE_INTERIM);
    connection_write(exchange->connection);
    return true;
}

#undef RESPOND_FIXED_BYTES
