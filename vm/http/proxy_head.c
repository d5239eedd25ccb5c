/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy_head.c: the heads that a proxied request and its response leave with.
 *
 * In:   a judged request or response. Out: one buffer.
 * Invariant: no framing field and no hop-by-hop field leaves as it came in; where a request came from is said
 *            by us alone.
 *
 * Not forwarded: fields of kind HOP and FRAMING, what Connection names (Upgrade is written anew where an upgrade is on
 * its way), and, towards the upstream, every claim about forwarding: no proxy
 * in front of us is trusted.
 */
#include "vm/http/field.h"
#include "vm/http/server_internal.h"

/* Everything but what is counted below: request line, our fields, lengths. */
#define PROXY_HEAD_FIXED_BYTES 512

static bool proxy_head_is_set(const struct http_verdict *verdict, cy_bytes name)
{
    for (uint32_t i = 0; i < verdict->field_count; i++)
        if (cy_bytes_equal_nocase(verdict->fields[i].name, name)) return true;
    return false;
}

static bool proxy_head_is_replaced(const struct http_verdict *verdict, cy_bytes name)
{
    for (uint32_t i = 0; i < verdict->remove_count; i++)
        if (cy_bytes_equal_nocase(verdict->remove[i], name)) return true;
    return proxy_head_is_set(verdict, name);
}

static bool proxy_head_passes(const struct http_exchange *exchange, const struct http_field *field)
{
    const struct http_request *request = &exchange->request;
    const struct http_verdict *verdict = exchange->verdict;
    if (field->hop || field_is_for_one_hop(field->name, field->known)) return false;
    if (field->known == HTTP_FIELD_HOST || field->known == HTTP_FIELD_EXPECT) return false;
    if (field->known == HTTP_FIELD_MAX_FORWARDS && exchange->proxy.counts_forwards) return false;
    if (field->known == HTTP_FIELD_TRAILER && request->body.kind != HTTP_BODY_CHUNKED &&
        request->body.kind != HTTP_BODY_UNTIL_CLOSE)
        return false;
    if (field_is_forwarding(field->name, field->known)) return false;
    if (verdict->field_count + verdict->remove_count > 0 && proxy_head_is_replaced(verdict, field->name))
        return false;
    return true;
}

static cy_bytes proxy_head_host(const struct http_exchange *exchange)
{
    if (exchange->verdict->host.count) return exchange->verdict->host;
    if (exchange->request.authority.count) return exchange->request.authority;
    return exchange->verdict->upstream->authority;
}

static void proxy_head_put_ours(struct upstream_carrier *upstream, struct head_writer *writer, uint8_t id,
                                cy_bytes value, const struct http_verdict *verdict)
{
    if (value.count == 0) return;
    if (verdict->field_count > 0 && proxy_head_is_set(verdict, field_name(id))) return;
    upstream_put_field(upstream, writer, field_name(id), value);
}

static bool proxy_head_has_length(const struct http_request *request)
{
    for (uint32_t i = 0; i < request->field_count; i++)
        if (request->fields[i].known == HTTP_FIELD_CONTENT_LENGTH) return true;
    return false;
}

/* For this connection alone, so its field is always beside it. */
static void proxy_head_put_upgrade(struct head_writer *writer, const struct http_field *fields,
                                   uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].known != HTTP_FIELD_UPGRADE) continue;
        head_put_field(writer, CY_BYTES("Upgrade"), fields[i].value);
        any = true;
    }
    if (any) head_put_field(writer, CY_BYTES("Connection"), CY_BYTES("upgrade"));
}

/* How the body's end will be known; a body that goes without chunks and length ends as its carrier ends bodies. */
static void proxy_head_put_request_framing(struct http_exchange *exchange, struct head_writer *writer)
{
    struct upstream_carrier *carrier = exchange->proxy.upstream;
    const struct http_request *request = &exchange->request;
    uint8_t digits[HEAD_DIGITS_MAX];
    if (exchange->request_body.chunked_out)
        head_put(writer, CY_BYTES("Transfer-Encoding: chunked\r\n"));
    else if (request->body.kind == HTTP_BODY_LENGTH ||
             (request->body.kind == HTTP_BODY_NONE && proxy_head_has_length(request)))
        upstream_put_field(carrier, writer, CY_BYTES("Content-Length"),
                           head_format_u64(digits, request->body.length));
}

/* TE is for one hop; of what it may say only this has a meaning to both (RFC 9113 section 8.2.2), and gRPC insists. */
static bool proxy_head_wants_trailers(const struct http_request *request)
{
    for (uint32_t i = 0; i < request->field_count; i++) {
        if (request->fields[i].known != HTTP_FIELD_TE) continue;
        cy_bytes value = request->fields[i].value, element;
        while (value.count && field_next_element(&value, &element))
            if (cy_bytes_equal_nocase(element, CY_BYTES("trailers"))) return true;
    }
    return false;
}

struct buffer *proxy_write_request_head(struct http_exchange *exchange)
{
    struct upstream_carrier *carrier = exchange->proxy.upstream;
    const struct http_request *request = &exchange->request;
    const struct http_verdict *verdict = exchange->verdict;
    const struct upstream *upstream = verdict->upstream;
    struct head_writer writer;
    size_t bytes_max = PROXY_HEAD_FIXED_BYTES + exchange->head_bytes + 2 * request->authority.count +
                       upstream->base_path.count + upstream->authority.count + verdict->host.count;
    for (uint32_t i = 0; i < verdict->field_count; i++)
        bytes_max += verdict->fields[i].name.count + verdict->fields[i].value.count;
    bytes_max += (request->field_count + verdict->field_count) * CARRIER_FIELD_EXTRA_BYTES;
    head_open(&writer, server_buffers(exchange->carrier->server), bytes_max);
    cy_bytes base_path = request->target.data[0] == '/' ? upstream->base_path : CY_BYTES_NONE;
    carrier->type->put_request(carrier, &writer, request->method, base_path, request->target,
                               proxy_head_host(exchange));
    for (uint32_t i = 0; i < request->field_count; i++)
        if (proxy_head_passes(exchange, &request->fields[i]))
            upstream_put_field(carrier, &writer, request->fields[i].name, request->fields[i].value);
    proxy_head_put_request_framing(exchange, &writer);
    if (carrier->type->takes_trailers && proxy_head_wants_trailers(request))
        upstream_put_field(carrier, &writer, CY_BYTES("TE"), CY_BYTES("trailers"));
    if (CY_UNLIKELY(exchange->proxy.counts_forwards)) {
        uint8_t digits[HEAD_DIGITS_MAX];
        upstream_put_field(carrier, &writer, CY_BYTES("Max-Forwards"),
                           head_format_u64(digits, exchange->proxy.forwards_left));
    }
    if (CY_UNLIKELY(exchange->proxy.upgrade_sent))
        proxy_head_put_upgrade(&writer, request->fields, request->field_count);
    if (exchange->continue_waiting)
        upstream_put_field(carrier, &writer, CY_BYTES("Expect"), CY_BYTES("100-continue"));
    proxy_head_put_ours(carrier, &writer, HTTP_FIELD_X_FORWARDED_FOR, carrier_peer_text(exchange->carrier),
                        verdict);
    proxy_head_put_ours(carrier, &writer, HTTP_FIELD_X_FORWARDED_PROTO,
                        request->secure ? CY_BYTES("https") : CY_BYTES("http"), verdict);
    proxy_head_put_ours(carrier, &writer, HTTP_FIELD_X_FORWARDED_HOST, request->authority, verdict);
    for (uint32_t i = 0; i < verdict->field_count; i++)
        upstream_put_field(carrier, &writer, verdict->fields[i].name, verdict->fields[i].value);
    carrier->type->put_end(carrier, &writer);
    return head_close(&writer);
}

static void proxy_head_put_response_framing(struct http_exchange *exchange, struct head_writer *writer)
{
    struct exchange_carrier *carrier = exchange->carrier;
    const struct http_response *answer = &exchange->proxy.answer;
    bool may_have_body = !exchange->request.is_head && answer->status != 204 && answer->status != 304;
    if (answer->declared_length.count)
        carrier_put_field(carrier, writer, CY_BYTES("Content-Length"), answer->declared_length);
    else if (exchange->proxy.response.chunked_out)
        head_put(writer, CY_BYTES("Transfer-Encoding: chunked\r\n"));
    else if (answer->body.kind == HTTP_BODY_LENGTH ||
             (answer->body.kind == HTTP_BODY_NONE && may_have_body && !carrier->type->takes_trailers))
        carrier_put_length(carrier, writer, answer->body.length);
}

static void proxy_head_put_passing(struct exchange_carrier *carrier, struct head_writer *writer,
                                   const struct http_response *answer, bool trailer_passes)
{
    for (uint32_t i = 0; i < answer->field_count; i++) {
        const struct http_field *field = &answer->fields[i];
        if (field->hop || field_is_for_one_hop(field->name, field->known)) continue;
        if (field->known == HTTP_FIELD_TRAILER && !trailer_passes) continue;
        carrier_put_field(carrier, writer, field->name, field->value);
    }
}

struct buffer *proxy_write_switch_head(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    const struct http_response *answer = &exchange->proxy.answer;
    struct head_writer writer;
    head_open(&writer, server_buffers(carrier->server),
              PROXY_HEAD_FIXED_BYTES + answer->head_bytes + answer->field_count * CARRIER_FIELD_EXTRA_BYTES);
    carrier->type->put_status(carrier, &writer, answer->status, answer->reason);
    proxy_head_put_passing(carrier, &writer, answer, false);
    proxy_head_put_upgrade(&writer, answer->fields, answer->field_count);
    carrier->type->put_end(carrier, &writer, true);
    return head_close(&writer);
}

struct buffer *proxy_write_response_head(struct http_exchange *exchange)
{
    struct exchange_carrier *carrier = exchange->carrier;
    struct http_server *server = carrier->server;
    const struct http_response *answer = &exchange->proxy.answer;
    struct head_writer writer;
    head_open(&writer, server_buffers(server),
              PROXY_HEAD_FIXED_BYTES + answer->head_bytes + answer->field_count * CARRIER_FIELD_EXTRA_BYTES);
    carrier->type->put_status(carrier, &writer, answer->status, answer->reason);
    if (!answer->has_date) carrier_put_field(carrier, &writer, CY_BYTES("Date"), server_date(server));
    proxy_head_put_passing(carrier, &writer, answer,
                           exchange->proxy.response.chunked_out || carrier->type->takes_trailers);
    proxy_head_put_response_framing(exchange, &writer);
    if (CY_UNLIKELY(answer->status == 426) && carrier->type->shutdown)
        proxy_head_put_upgrade(&writer, answer->fields, answer->field_count);
    carrier->type->put_end(carrier, &writer, false);
    return head_close(&writer);
}

#undef PROXY_HEAD_FIXED_BYTES
