/* SPDX-License-Identifier: MIT
 *
 * vm/http/fetch.c: see fetch.h.
 *
 *   start ─► idle connection, or connector ─► head and body in one write ─► head ─► body into memory ─► done
 *                  └ a reused one died before any byte of an answer: once more on a new one
 *
 * Invariant: exactly one of connector and carrier is set until `ended`; afterwards none.
 */
#include "vm/http/fetch.h"

#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/field.h"
#include "vm/http/h1_body.h"
#include "vm/http/uri.h"

#define FETCH_HEAD_FIXED_BYTES 512 /* request line and our fields, without what is counted */
#define FETCH_BODY_ROOM_BYTES 1024 /* of the first piece of a body */

struct http_fetch {
    struct http_client *client;
    struct http_verdict *request; /* upstream, fields and host: checked and copied as for proxying */
    cy_bytes method, target;      /* owned, in one block with the struct */
    struct buffer *body;          /* NULL: none. Sent as it is: a write may outlive the fetch. */
    size_t body_bytes_max;
    void *owner;
    cy_err (*on_grow)(void *owner, size_t bytes);
    void (*done)(void *owner, cy_err err);
    struct timer timer;
    struct http_connector *connector;
    struct upstream_carrier *carrier;
    struct buffer *head; /* that `response` points into */
    struct http_response response;
    struct h1_body framing;
    struct builder content;
    uint32_t interim_count;
    bool head_complete, received_any, retried, ended, written;
    struct http_field fields[LIMIT_HTTP_FIELDS];
};

static void fetch_on_read(void *owner, struct buffer *owned_buffer, cy_err err);
static void fetch_on_written(void *owner, cy_err err, size_t sent_bytes);
static void fetch_on_timeout(void *owner);
static const struct upstream_events fetch_events = {fetch_on_read, fetch_on_written, fetch_on_timeout};

/* -- ending ---------------------------------------------------------------------------------------------- */

static void fetch_let_go(struct http_fetch *fetch)
{
    fetch->ended = true;
    loop_timer_clear(fetch->client->options.loop, &fetch->timer);
    if (fetch->connector) connector_cancel(&fetch->connector);
    if (fetch->carrier) fetch->carrier->type->close(&fetch->carrier);
}

static void fetch_fail(struct http_fetch *fetch, cy_err err)
{
    fetch_let_go(fetch);
    fetch->done(fetch->owner, err);
}

static void fetch_succeed(struct http_fetch *fetch, bool clean)
{
    if (fetch->carrier) {
        upstream_clear_timer(fetch->carrier);
        clean = clean && fetch->written && !fetch->carrier->input;
        fetch->carrier->type->release(&fetch->carrier, clean);
    }
    fetch_let_go(fetch);
    fetch->done(fetch->owner, CY_OK);
}

static void fetch_on_deadline(struct timer *timer)
{
    fetch_fail(CY_CONTAINER_OF(timer, struct http_fetch, timer), CY_ERR(TIMEOUT));
}
static void fetch_on_timeout(void *owner) { fetch_fail(owner, CY_ERR(TIMEOUT)); }

/* -- the request ----------------------------------------------------------------------------------------- */

static bool fetch_wants_length(const struct http_fetch *fetch)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH"};
    for (size_t i = 0; i < CY_COUNT_OF(methods); i++)
        if (cy_bytes_equal(fetch->method, cy_bytes_from_text(methods[i]))) return true;
    return fetch->body != NULL;
}

static struct buffer *fetch_write_head(struct http_fetch *fetch)
{
    struct upstream_carrier *carrier = fetch->carrier;
    const struct http_verdict *request = fetch->request;
    const struct upstream *upstream = request->upstream;
    struct head_writer writer;
    size_t bytes_max = FETCH_HEAD_FIXED_BYTES + fetch->method.count + fetch->target.count +
                       upstream->base_path.count + upstream->authority.count + request->host.count;
    for (uint32_t i = 0; i < request->field_count; i++)
        bytes_max += request->fields[i].name.count + request->fields[i].value.count + 16;
    head_open(&writer, loop_buffers(fetch->client->options.loop), bytes_max);
    carrier->type->put_request(carrier, &writer, fetch->method, upstream->base_path, fetch->target,
                               request->host.count ? request->host : upstream->authority);
    for (uint32_t i = 0; i < request->field_count; i++)
        upstream_put_field(carrier, &writer, request->fields[i].name, request->fields[i].value);
    if (fetch_wants_length(fetch)) {
        uint8_t digits[HEAD_DIGITS_MAX];
        upstream_put_field(carrier, &writer, CY_BYTES("Content-Length"),
                           head_format_u64(digits, fetch->body ? buffer_view(fetch->body).count : 0));
    }
    carrier->type->put_end(carrier, &writer);
    return head_close(&writer);
}

static cy_err fetch_send(struct http_fetch *fetch)
{
    struct upstream_carrier *carrier = fetch->carrier;
    struct buffer *head = fetch_write_head(fetch);
    if (!head) return CY_ERR(NO_MEMORY);
    size_t head_bytes = buffer_view(head).count;
    carrier->send->part_count = 0;
    carrier->send->more = false;
    carrier->send->parts[carrier->send->part_count++] = buffer_view(head);
    relay_hold_add(&carrier->hold, head);
    if (fetch->body) {
        carrier->send->parts[carrier->send->part_count++] = buffer_view(fetch->body);
        relay_hold_add(&carrier->hold, buffer_ref(fetch->body));
    }
    carrier->type->write(carrier, head_bytes, true);
    carrier->type->want_input(carrier);
    return CY_OK;
}

static cy_err fetch_use(struct http_fetch *fetch, struct upstream_carrier *carrier)
{
    fetch->carrier = carrier;
    fetch->written = false;
    carrier->type->begin(carrier, fetch->fields);
    return fetch_send(fetch);
}

static void fetch_on_connected(void *owner, struct upstream_carrier *carrier, cy_err err)
{
    struct http_fetch *fetch = owner;
    fetch->connector = NULL;
    if (!cy_failed(err)) {
        carrier->owner = fetch;
        carrier->events = &fetch_events;
        err = fetch_use(fetch, carrier);
    }
    if (cy_failed(err)) fetch_fail(fetch, err);
}

static void fetch_on_written(void *owner, cy_err err, size_t sent_bytes)
{
    struct http_fetch *fetch = owner;
    (void)sent_bytes;
    /* A failure: an answer, a refusal perhaps, may have come before; the outstanding read tells. */
    fetch->written = !cy_failed(err);
}

/* A reused connection may have been closed while the request was on its way. */
static bool fetch_retry(struct http_fetch *fetch)
{
    if (fetch->retried || fetch->received_any || !fetch->carrier->used_before) return false;
    if (!http_method_is_idempotent(fetch->method)) return false;
    fetch->retried = true;
    fetch->carrier->type->close(&fetch->carrier);
    cy_err err = connector_start(fetch->request->upstream->pool, fetch->request->terms.times.connect_ms,
                                 fetch, fetch_on_connected, &fetch->connector);
    if (cy_failed(err)) fetch_fail(fetch, err);
    return true;
}

/* -- the answer ------------------------------------------------------------------------------------------ */

enum fetch_step { FETCH_MORE, FETCH_GOES_ON, FETCH_GONE /* `done` was called: the fetch may be freed */ };

static enum fetch_step fetch_read_head(struct http_fetch *fetch)
{
    struct upstream_carrier *carrier = fetch->carrier;
    uint8_t fault = H1_FAULT_NONE;
    bool is_head = cy_bytes_equal(fetch->method, CY_BYTES("HEAD"));
    switch (carrier->type->read_head(carrier, is_head, &fetch->response, &fault)) {
    case UPSTREAM_HEAD_MORE: return FETCH_MORE;
    case UPSTREAM_HEAD_INTERIM:
        upstream_drop_empty_input(carrier);
        if (fetch->response.status == 101) fault = H1_FAULT_STATUS_UNEXPECTED;
        if (++fetch->interim_count > LIMIT_HTTP_INTERIM_RESPONSES) fault = H1_FAULT_INTERIM_MANY;
        if (!fault) return FETCH_GOES_ON;
        break;
    case UPSTREAM_HEAD_FINAL:
        fetch->head_complete = true;
        /* The views point into this buffer; what comes later may land behind them, never on them. */
        if (carrier->input) fetch->head = buffer_ref(carrier->input);
        h1_body_begin(&fetch->framing, &fetch->response.body);
        return FETCH_GOES_ON;
    case UPSTREAM_HEAD_FAULT: break;
    }
    fetch_fail(fetch, CY_ERR_DETAIL(HTTP_SYNTAX, fault));
    return FETCH_GONE;
}

static void fetch_finish_stream(struct http_fetch *fetch, cy_err err)
{
    if (!fetch->head_complete && !cy_failed(err) && fetch_retry(fetch)) return;
    if (!fetch->head_complete && (cy_is(err, CY_ERR_RESET) || cy_is(err, CY_ERR_TLS_TRUNCATED)) &&
        fetch_retry(fetch))
        return;
    if (cy_failed(err))
        fetch_fail(fetch, err);
    else if (fetch->head_complete && h1_body_end_of_stream(&fetch->framing))
        fetch_succeed(fetch, false);
    else
        fetch_fail(fetch, CY_ERR(HTTP_EARLY_END));
}

/* Room for a piece; whoever counts memory is asked before there is more of it. */
static cy_err fetch_make_room(struct http_fetch *fetch, size_t bytes)
{
    struct builder *content = &fetch->content;
    if (bytes > fetch->body_bytes_max - content->count) return CY_ERR(TOO_LARGE);
    size_t needed = content->count + bytes, capacity = cy_max_size(content->capacity, FETCH_BODY_ROOM_BYTES);
    while (capacity < needed) capacity *= 2; /* builder.c grows like this */
    if (capacity > content->capacity && fetch->on_grow)
        CY_TRY(fetch->on_grow(fetch->owner, capacity - content->capacity));
    return builder_reserve(content, cy_max_size(capacity - content->count, bytes)) ? CY_OK
                                                                                   : CY_ERR(NO_MEMORY);
}

/* Takes what has come of the body. True when more has to come. */
static bool fetch_read_body(struct http_fetch *fetch)
{
    struct upstream_carrier *carrier = fetch->carrier;
    cy_bytes input = carrier->input ? buffer_view(carrier->input) : CY_BYTES_NONE, piece;
    for (;;) {
        enum h1_body_step step = h1_body_step(&fetch->framing, &input, &piece);
        if (carrier->input) carrier->input->begin = carrier->input->end - (uint32_t)input.count;
        if (step == H1_BODY_MORE) break;
        if (step == H1_BODY_TRAILER) continue; /* nobody asked for them */
        if (step == H1_BODY_DATA) {
            cy_err err = fetch_make_room(fetch, piece.count);
            if (!cy_failed(err)) {
                builder_bytes(&fetch->content, piece);
                continue;
            }
            fetch_fail(fetch, err);
            return false;
        }
        upstream_drop_empty_input(carrier);
        if (step == H1_BODY_END)
            fetch_succeed(fetch, true);
        else
            fetch_fail(fetch, CY_ERR_DETAIL(HTTP_SYNTAX, fetch->framing.fault));
        return false;
    }
    upstream_drop_empty_input(carrier);
    return true;
}

static void fetch_on_read(void *owner, struct buffer *owned_buffer, cy_err err)
{
    struct http_fetch *fetch = owner;
    if (!owned_buffer) {
        fetch_finish_stream(fetch, err);
        return;
    }
    fetch->received_any = true;
    /* While the head's views are in use its buffer must stay as it is: later input begins a buffer of its own. */
    struct upstream_carrier *carrier = fetch->carrier;
    err = input_append(&carrier->input, owned_buffer, loop_buffers(fetch->client->options.loop));
    if (cy_failed(err)) {
        fetch_fail(fetch, err);
        return;
    }
    enum fetch_step step = FETCH_GOES_ON;
    while (step == FETCH_GOES_ON && !fetch->head_complete && carrier->input) step = fetch_read_head(fetch);
    if (step == FETCH_GONE) return;
    if (fetch->head_complete && !fetch_read_body(fetch)) return;
    carrier->type->want_input(carrier);
}

/* -- for owners ------------------------------------------------------------------------------------------ */

static bool fetch_is_target(cy_bytes target)
{
    if (target.count > LIMIT_HTTP_TARGET_BYTES || target.data[0] != '/') return false;
    for (size_t i = 0; i < target.count; i++) {
        uint8_t byte = target.data[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '#' || byte == '\\' || byte == '"') return false;
    }
    return !uri_climbs(cy_bytes_slice(target, 0, cy_bytes_find(target, '?')));
}

static cy_err fetch_check(const struct http_fetch_options *options, cy_bytes target, cy_bytes *fault_out)
{
    *fault_out = options->method;
    if (!field_is_token(options->method) || options->method.count > LIMIT_HTTP_METHOD_BYTES)
        return CY_ERR(VALUE);
    if (cy_bytes_equal(options->method, CY_BYTES("CONNECT"))) return CY_ERR(UNSUPPORTED);
    *fault_out = target;
    if (!fetch_is_target(target)) return CY_ERR(VALUE);
    *fault_out = CY_BYTES_NONE;
    return options->body.count > UINT32_MAX ? CY_ERR(TOO_LARGE) : CY_OK;
}

static cy_bytes fetch_copy(uint8_t **space, cy_bytes bytes)
{
    cy_bytes copy = cy_bytes_of(*space, bytes.count);
    if (bytes.count) memcpy(*space, bytes.data, bytes.count);
    *space += bytes.count;
    return copy;
}

/* What will be held until the fetch is freed, before it is taken. */
static cy_err fetch_ask(const struct http_fetch_options *options, cy_bytes target,
                        const struct http_verdict *request)
{
    if (!options->on_grow) return CY_OK;
    return options->on_grow(options->owner, sizeof(struct http_fetch) + options->method.count + target.count +
                                                http_verdict_memory_bytes(request) + options->body.count);
}

static cy_err fetch_keep_body(struct http_fetch *fetch, cy_bytes body)
{
    if (body.count == 0) return CY_OK;
    fetch->body = buffer_take_sized(loop_buffers(fetch->client->options.loop), body.count);
    if (!fetch->body) return CY_ERR(NO_MEMORY);
    memcpy(fetch->body->data, body.data, body.count);
    fetch->body->end = (uint32_t)body.count;
    return CY_OK;
}

cy_err http_fetch_start(struct http_client *client, const struct http_fetch_options *options,
                        struct http_fetch **fetch_out, cy_bytes *fault_out)
{
    cy_bytes target = options->target.count ? options->target : CY_BYTES("/");
    struct http_verdict *request;
    CY_TRY(fetch_check(options, target, fault_out));
    CY_TRY(http_verdict_proxy(options->upstream, options->fields, options->field_count, NULL, 0,
                              options->host, &request, fault_out));
    cy_err err = fetch_ask(options, target, request);
    struct http_fetch *fetch =
        cy_failed(err) ? NULL : mem_alloc(sizeof *fetch + options->method.count + target.count);
    if (!fetch) {
        http_verdict_unref(&request);
        return cy_failed(err) ? err : CY_ERR(NO_MEMORY);
    }
    memset(fetch, 0, sizeof *fetch);
    uint8_t *space = (uint8_t *)(fetch + 1);
    fetch->client = client;
    fetch->request = request;
    fetch->method = fetch_copy(&space, options->method);
    fetch->target = fetch_copy(&space, target);
    fetch->body_bytes_max = options->body_bytes_max;
    fetch->owner = options->owner;
    fetch->on_grow = options->on_grow;
    fetch->done = options->done;
    fetch->timer.fire = fetch_on_deadline;
    builder_init(&fetch->content);
    err = fetch_keep_body(fetch, options->body);
    if (cy_failed(err)) {
        http_fetch_free(&fetch);
        return err;
    }
    loop_timer_set(client->options.loop, &fetch->timer, options->timeout_ms);
    struct http_pool *pool = request->upstream->pool;
    if (request->upstream->proxy_protocol) { /* it would have to name a client */
        http_fetch_free(&fetch);
        return CY_ERR(UNSUPPORTED);
    }
    struct upstream_carrier *carrier = pool_take(pool, fetch, &fetch_events);
    if (carrier) upstream_clear_timer(carrier);
    err = carrier ? fetch_use(fetch, carrier)
                  : connector_start(pool, request->terms.times.connect_ms, fetch, fetch_on_connected,
                                    &fetch->connector);
    if (cy_failed(err)) {
        http_fetch_free(&fetch);
        return err;
    }
    *fetch_out = fetch;
    return CY_OK;
}

const struct http_response *http_fetch_response(const struct http_fetch *fetch) { return &fetch->response; }
cy_bytes http_fetch_body(const struct http_fetch *fetch) { return builder_view(&fetch->content); }

void http_fetch_free(struct http_fetch **fetch_pointer)
{
    struct http_fetch *fetch = *fetch_pointer;
    *fetch_pointer = NULL;
    if (!fetch) return;
    fetch_let_go(fetch);
    buffer_unref(&fetch->head);
    buffer_unref(&fetch->body);
    builder_fini(&fetch->content);
    http_verdict_unref(&fetch->request);
    mem_free(fetch);
}

#undef FETCH_HEAD_FIXED_BYTES
#undef FETCH_BODY_ROOM_BYTES
