/* SPDX-License-Identifier: MIT
 *
 * vm/http/exchange_record.c: what is left of an exchange: its time in the histogram, its line in the access log.
 *
 * Times: a request begins with the turn of the loop that completed its head, and ends with the turn that saw its last
 *       byte sent. Only where both are one turn is the clock asked again.
 */
#include "vm/http/access_log.h"
#include "vm/http/field.h"
#include "vm/http/server_internal.h"

static uint64_t record_now_ns(const struct http_exchange *exchange)
{
    struct loop *loop = exchange->carrier->server->options.loop;
    uint64_t turn_ns = loop_turn_ns(loop);
    return turn_ns == exchange->start_ns ? loop_now_ns(loop) : turn_ns;
}

static cy_bytes record_field(const struct http_request *request, uint8_t known)
{
    for (uint32_t i = 0; i < request->field_count; i++)
        if (request->fields[i].known == known) return request->fields[i].value;
    return CY_BYTES_NONE;
}

static const char *record_protocol(const struct http_exchange *exchange)
{
    static const char *const names[] = {
        [HTTP_1_0] = "HTTP/1.0", [HTTP_1_1] = "HTTP/1.1", [HTTP_2] = "HTTP/2.0"};
    if (exchange->start_ns == 0) return NULL; /* refused before anything of it could be trusted */
    return names[exchange->request.protocol];
}

static void record_line(struct http_exchange *exchange, uint16_t status, uint64_t duration_us)
{
    const struct http_request *request = &exchange->request;
    const struct http_proxy *proxy = &exchange->proxy;
    struct access_log_entry entry = {
        .client = carrier_peer_text(exchange->carrier),
        .protocol = record_protocol(exchange),
        .status = status,
        .bytes = exchange->sent_bytes,
        .duration_us = duration_us,
        .upstream_us = UINT64_MAX,
    };
    if (entry.protocol) {
        entry.method = request->method;
        entry.host = request->host;
        entry.target = request->target;
        entry.referer = record_field(request, HTTP_FIELD_REFERER);
        entry.user_agent = record_field(request, HTTP_FIELD_USER_AGENT);
    }
    if (proxy->start_ns && exchange->verdict) {
        entry.upstream = upstream_text(exchange->verdict->upstream);
        if (proxy->head_ns) entry.upstream_us = (proxy->head_ns - proxy->start_ns) / 1000;
    }
    access_log_write(exchange->carrier->server->options.access_log, &entry);
}

void exchange_record(struct http_exchange *exchange)
{
    struct http_server *server = exchange->carrier->server;
    uint64_t duration_us = exchange->start_ns ? (record_now_ns(exchange) - exchange->start_ns) / 1000 : 0;
    uint16_t status = exchange->status ? exchange->status : 499;
    if (exchange->status && !exchange->client_gone) http_latency_add(server->counters, duration_us);
    if (server->options.access_log) record_line(exchange, status, duration_us);
}
