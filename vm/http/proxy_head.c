/* SPDX-License-Identifier: MIT
 *
 * vm/http/proxy_head.c: the heads that a proxied request and its response leave with.
 *
 * In:   a judged request or response. Out: one buffer.
 * Invariant: no framing field and no hop-by-hop field leaves as it came in; where a request came from is said
 *            by us alone.
 *
 * Not forwarded: fields of kind HOP and FRAMING, what Connection names, Upgrade (upgrades are not there yet:
 * the upstream sees an ordinary request), and, towards the upstream, every claim about forwarding: no proxy
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
    unsigned flags = field_flags(field->known);
    if (flags & (HTTP_FIELD_FLAG_HOP | HTTP_FIELD_FLAG_FRAMING)) return false;
    if (field->known == HTTP_FIELD_HOST || field->known == HTTP_FIELD_EXPECT) return false;
    if (field->known == HTTP_FIELD_TRAILER && request->body.kind != HTTP_BODY_CHUNKED) return false;
    if (field_is_forwarding(field->name, field->known)) return false;
    if (request->lists_fields && h1_connection_lists(request->fields, request->field_count, field->name))
        return false;
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

static void proxy_head_put_ours(struct head_writer *writer, uint8_t id, cy_bytes value,
                                const struct http_verdict *verdict)
{
    if (value.count == 0) return;
    if (verdict->field_count > 0 && proxy_head_is_set(verdict, field_name(id))) return;
    head_put_field(writer, field_name(id), value);
}

static void proxy_head_put_framing(struct head_writer *writer, const struct http_framing *body, bool chunked)
{
    if (chunked) {
        head_put(writer, CY_BYTES("Transfer-Encoding: chunked\r\n"));
        return;
    }
    head_put(writer, CY_BYTES("Content-Length: "));
    head_put_u64(writer, body->length);
    head_put(writer, CY_BYTES("\r\n"));
}

static bool proxy_head_has_length(const struct http_request *request)
{
    for (uint32_t i = 0; i < request->field_count; i++)
        if (request->fields[i].known == HTTP_FIELD_CONTENT_LENGTH) return true;
    return false;
}

struct buffer *proxy_write_request_head(struct http_exchange *exchange)
{
    struct http_connection *connection = exchange->connection;
    const struct http_request *request = &exchange->request;
    const struct http_verdict *verdict = exchange->verdict;
    const struct upstream *upstream = verdict->upstream;
    struct head_writer writer;
    size_t bytes_max = PROXY_HEAD_FIXED_BYTES + exchange->head.used_bytes + 2 * request->authority.count +
                       upstream->base_path.count + upstream->authority.count + verdict->host.count;
    for (uint32_t i = 0; i < verdict->field_count; i++)
        bytes_max += verdict->fields[i].name.count + verdict->fields[i].value.count + 4;
    /* "Name:value" grows by the space behind the colon. */
    bytes_max += request->field_count;
    head_open(&writer, server_buffers(connection->server), bytes_max);
    head_put(&writer, request->method);
    head_put(&writer, CY_BYTES(" "));
    if (request->target.data[0] == '/') head_put(&writer, upstream->base_path);
    head_put(&writer, request->target);
    head_put(&writer, CY_BYTES(" HTTP/1.1\r\n"));
    head_put_field(&writer, CY_BYTES("Host"), proxy_head_host(exchange));
    for (uint32_t i = 0; i < request->field_count; i++)
        if (proxy_head_passes(exchange, &request->fields[i]))
            head_put_field(&writer, request->fields[i].name, request->fields[i].value);
    if (request->body.kind != HTTP_BODY_NONE || proxy_head_has_length(request))
        proxy_head_put_framing(&writer, &request->body, request->body.kind == HTTP_BODY_CHUNKED);
    if (exchange->continue_waiting) head_put(&writer, CY_BYTES("Expect: 100-continue\r\n"));
    proxy_head_put_ours(&writer, HTTP_FIELD_X_FORWARDED_FOR, connection_peer_text(connection), verdict);
    proxy_head_put_ours(&writer, HTTP_FIELD_X_FORWARDED_PROTO,
                        request->secure ? CY_BYTES("https") : CY_BYTES("http"), verdict);
    proxy_head_put_ours(&writer, HTTP_FIELD_X_FORWARDED_HOST, request->authority, verdict);
    for (uint32_t i = 0; i < verdict->field_count; i++)
        head_put_field(&writer, verdict->fields[i].name, verdict->fields[i].value);
    head_put(&writer, CY_BYTES("\r\n"));
    return head_close(&writer);
}

struct buffer *proxy_write_response_head(struct http_exchange *exchange)
{
    struct http_server *server = exchange->connection->server;
    struct http_proxy *proxy = &exchange->proxy;
    const struct h1_head *head = &proxy->head;
    const struct h1_response *answer = &proxy->answer;
    bool chunked = proxy->response.chunked_out;
    struct head_writer writer;
    head_open(&writer, server_buffers(server), PROXY_HEAD_FIXED_BYTES + head->used_bytes + head->field_count);
    respond_put_status(&writer, head->status, head->reason);
    if (!answer->has_date) head_put_field(&writer, CY_BYTES("Date"), server_date(server));
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field_flags(field->known) & (HTTP_FIELD_FLAG_HOP | HTTP_FIELD_FLAG_FRAMING)) continue;
        if (field->known == HTTP_FIELD_TRAILER && !chunked) continue;
        if (answer->lists_fields && h1_connection_lists(head->fields, head->field_count, field->name))
            continue;
        head_put_field(&writer, field->name, field->value);
    }
    bool may_have_body = !exchange->request.is_head && head->status != 204 && head->status != 304;
    bool has_length =
        answer->body.kind == HTTP_BODY_LENGTH || (answer->body.kind == HTTP_BODY_NONE && may_have_body);
    if (answer->declared_length.count)
        head_put_field(&writer, CY_BYTES("Content-Length"), answer->declared_length);
    else if (chunked || has_length)
        proxy_head_put_framing(&writer, &answer->body, chunked);
    respond_put_connection(&writer, exchange);
    head_put(&writer, CY_BYTES("\r\n"));
    return head_close(&writer);
}

#undef PROXY_HEAD_FIXED_BYTES
