/* SPDX-License-Identifier: MIT
 *
 * vm/http/respond.c: answers that come from here: a verdict's, a refusal's, an interim one.
 *
 * In:   an exchange whose carrier has no write outstanding. Out: writes; head and the first slice of the
 *       body in one.
 * Invariant: Content-Length is written for every answer that may have a body, and only there.
 */
#include "vm/http/server_internal.h"

#include "vm/base/check.h"
#include "vm/http/field.h"
#include "vm/http/status.h"

/* Status line, Date, Content-Length, Content-Type and Connection: more than these need. */
#define RESPOND_FIXED_BYTES 512

/* The head goes first; the hold takes it. */
static void respond_begin_write(struct http_exchange *exchange, struct buffer *owned_head,
                                enum exchange_write write)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct loop_send *send = carrier->send;
    send->part_count = 1;
    send->more = false;
    send->parts[0] = buffer_view(owned_head);
    relay_hold_add(&carrier->hold, owned_head);
    exchange->write = (uint8_t)write;
}

/* -- verdicts -------------------------------------------------------------------------------------------- */

static void respond_put_length(struct exchange_carrier *carrier, struct head_writer *writer, uint16_t status,
                               size_t body_bytes)
{
    if (status == 204 || status == 304) return;
    carrier_put_length(carrier, writer, body_bytes);
}

static struct buffer *respond_write_head(struct http_exchange *exchange)
{
    const struct http_verdict *verdict = exchange->verdict;
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_server *server = carrier->server;
    struct head_writer writer;
    size_t bytes_max = RESPOND_FIXED_BYTES;
    bool has_date = false;
    for (uint32_t i = 0; i < verdict->field_count; i++) {
        bytes_max +=
            verdict->fields[i].name.count + verdict->fields[i].value.count + CARRIER_FIELD_EXTRA_BYTES;
        if (field_identify(verdict->fields[i].name) == HTTP_FIELD_DATE) has_date = true;
    }
    head_open(&writer, server_buffers(server), bytes_max);
    carrier->type->put_status(carrier, &writer, verdict->status, status_reason(verdict->status));
    if (!has_date) carrier_put_field(carrier, &writer, CY_BYTES("Date"), server_date(server));
    for (uint32_t i = 0; i < verdict->field_count; i++)
        carrier_put_field(carrier, &writer, verdict->fields[i].name, verdict->fields[i].value);
    respond_put_length(carrier, &writer, verdict->status, verdict->body.count);
    carrier->type->put_end(carrier, &writer, false);
    return head_close(&writer);
}

/* A long body goes out in slices, so that the timer sees a slow reader's progress. */
static void respond_add_slice(struct http_exchange *exchange)
{
    struct loop_send *send = exchange->carrier->send;
    if (exchange->request.is_head) return;
    size_t end = exchange->body_offset + LIMIT_HTTP_WRITE_SLICE_BYTES;
    cy_bytes slice = cy_bytes_slice(exchange->verdict->body, exchange->body_offset, end);
    if (slice.count == 0) return;
    send->parts[send->part_count++] = slice;
    exchange->body_offset += slice.count;
}

static bool respond_is_last(const struct http_exchange *exchange)
{
    return exchange->request.is_head || exchange->body_offset >= exchange->verdict->body.count;
}

void respond_verdict(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    exchange->keep_alive = carrier->type->may_keep(carrier, true);
    struct buffer *head = respond_write_head(exchange);
    if (!head) {
        carrier_end(carrier, CARRIER_END_ABORT);
        return;
    }
    exchange->status = exchange->verdict->status;
    respond_begin_write(exchange, head, EXCHANGE_WRITE_RESPOND);
    respond_add_slice(exchange);
    carrier_write(carrier, carrier->send->parts[0].count, respond_is_last(exchange));
}

void respond_continue(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    carrier->send->part_count = 0;
    if (exchange->verdict && exchange->verdict->kind == HTTP_VERDICT_RESPOND) respond_add_slice(exchange);
    if (carrier->send->part_count == 0) {
        exchange_answered(exchange);
        return;
    }
    exchange->write = EXCHANGE_WRITE_RESPOND;
    carrier_write(carrier, 0, respond_is_last(exchange));
}

/* -- short texts ----------------------------------------------------------------------------------------- */

bool respond_text(struct http_exchange *exchange, uint16_t status, const char *text)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_server *server = carrier->server;
    cy_bytes reason = status_reason(status), detail = text ? cy_bytes_from_text(text) : CY_BYTES_NONE;
    size_t body_bytes = sizeof "500 \n" - 1 + reason.count + (text ? detail.count + 2 : 0);
    struct head_writer writer;
    /* Else its body would be sent behind this (respond_continue). */
    DCHECK(!exchange->verdict || exchange->verdict->kind != HTTP_VERDICT_RESPOND);
    exchange->keep_alive = carrier->type->may_keep(carrier, true);
    head_open(&writer, server_buffers(server), RESPOND_FIXED_BYTES + body_bytes);
    carrier->type->put_status(carrier, &writer, status, reason);
    carrier_put_field(carrier, &writer, CY_BYTES("Date"), server_date(server));
    carrier_put_field(carrier, &writer, CY_BYTES("Content-Type"), CY_BYTES("text/plain; charset=utf-8"));
    respond_put_length(carrier, &writer, status, body_bytes);
    carrier->type->put_end(carrier, &writer, false);
    const uint8_t *head_end = writer.next;
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
    respond_begin_write(exchange, head, EXCHANGE_WRITE_RESPOND);
    carrier_write(carrier, (size_t)(head_end - head->data), true);
    return true;
}

/* -- interim answers ------------------------------------------------------------------------------------- */

bool respond_interim(struct http_exchange *exchange, uint16_t status, cy_bytes reason,
                     const struct http_field *fields, uint32_t field_count)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct head_writer writer;
    size_t bytes_max = RESPOND_FIXED_BYTES + reason.count;
    for (uint32_t i = 0; i < field_count; i++)
        bytes_max += fields[i].name.count + fields[i].value.count + CARRIER_FIELD_EXTRA_BYTES;
    head_open(&writer, server_buffers(carrier->server), bytes_max);
    carrier->type->put_status(carrier, &writer, status, reason);
    for (uint32_t i = 0; i < field_count; i++) {
        if (fields[i].hop || field_is_for_one_hop(fields[i].name, fields[i].known)) continue;
        carrier_put_field(carrier, &writer, fields[i].name, fields[i].value);
    }
    carrier->type->put_end(carrier, &writer, true);
    struct buffer *head = head_close(&writer);
    if (!head) return false;
    respond_begin_write(exchange, head, EXCHANGE_WRITE_INTERIM);
    carrier_write(carrier, carrier->send->parts[0].count, false);
    return true;
}

#undef RESPOND_FIXED_BYTES
