/* SPDX-License-Identifier: MIT
 *
 * vm/http/pool.c: HTTP/1 connections to servers, and the idle ones of each (host, port, protocol).
 *
 * In:   streams from the connector. Out: connections that were quiet a moment ago.
 * Reuse is last in first out: the newest idle connection is the one the server has least reason to have
 *       closed, and the oldest ones age out.
 * Invariant: an idle connection has no owner, no unread input, and one read outstanding.
 */
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/h2.h"

/* -- pools ----------------------------------------------------------------------------------------------- */

static uint8_t pool_bucket(cy_bytes host, uint16_t port)
{
    return (uint8_t)((crc32c(0, host) ^ port) %
                     CLIENT_POOL_BUCKETS); /* keys come from the configuration, not from peers */
}

static bool pool_is_for(const struct http_pool *pool, const struct tls_client *trust, cy_bytes name)
{
    if (!pool->tls || !trust) return !pool->tls && !trust;
    return tls_target_is(pool->tls, trust, name);
}

static struct http_pool *pool_find(struct http_client *client, const struct pool_server *server,
                                   const struct tls_client *trust, cy_bytes name)
{
    struct http_pool *pool = client->buckets[pool_bucket(server->host, server->port)];
    for (; pool; pool = pool->next)
        if (pool->port == server->port && pool->speaks_h2 == server->speaks_h2 &&
            cy_bytes_equal(pool->host, server->host) && pool_is_for(pool, trust, name))
            return pool;
    return NULL;
}

/* "host:port", "[v6]:port" behind the host. False when there is no memory. */
static bool pool_format_text(struct http_pool *pool, uint8_t *space, size_t space_bytes, bool is_v6)
{
    struct builder text;
    builder_init(&text);
    if (pool->host.data[0] == '/')
        builder_printf(&text, "unix:%.*s", CY_BYTES_ARG(pool->host));
    else
        builder_printf(&text, is_v6 ? "[%.*s]:%u" : "%.*s:%u", CY_BYTES_ARG(pool->host),
                       (unsigned)pool->port);
    bool ok = !text.failed && text.count <= space_bytes;
    if (ok) {
        memcpy(space, text.data, text.count);
        pool->text = cy_bytes_of(space, text.count);
    }
    builder_fini(&text);
    return ok;
}

/* HTTP/2 shares one connection and its window among all requests, and gRPC needs it: who wants it says so, and then
 * nothing else will do. */
static cy_bytes pool_alpn(const struct pool_server *server)
{
    return server->speaks_h2 ? CY_BYTES("\x02h2") : CY_BYTES("\x08http/1.1");
}

cy_err pool_open(struct http_client *client, const struct pool_server *server, struct tls_client *trust,
                 cy_bytes name, struct http_pool **pool_out)
{
    struct http_pool *pool = pool_find(client, server, trust, name);
    cy_bytes host = server->host;
    if (pool) {
        *pool_out = pool_ref(pool);
        return CY_OK;
    }
    struct address numeric;
    bool is_unix = host.count > 0 && host.data[0] == '/'; /* no name of a host has one */
    bool is_numeric = !cy_failed(is_unix ? address_from_path(host, &numeric)
                                         : address_from_ip(host, server->port, &numeric));
    if (is_unix && !is_numeric) return CY_ERR(BAD_ADDRESS);
    if (server->is_v6 && !is_numeric) return CY_ERR(BAD_ADDRESS);
    size_t text_bytes = host.count + sizeof "[]:65535";
    pool = mem_alloc_zeroed(sizeof *pool + host.count + 1 + text_bytes);
    if (!pool) return CY_ERR(NO_MEMORY);
    uint8_t *space = (uint8_t *)(pool + 1);
    memcpy(space, host.data, host.count);
    pool->client = client;
    pool->refs = 1;
    pool->host = cy_bytes_of(space, host.count);
    pool->port = server->port;
    pool->speaks_h2 = server->speaks_h2;
    pool->is_numeric = is_numeric;
    if (is_numeric) pool->numeric = numeric;
    cy_err err = CY_OK;
    if (!pool_format_text(pool, space + host.count + 1, text_bytes, server->is_v6)) err = CY_ERR(NO_MEMORY);
    if (!cy_failed(err) && trust) err = tls_target_new(trust, name, pool_alpn(server), &pool->tls);
    if (cy_failed(err)) {
        mem_free(pool);
        return err;
    }
    pool->bucket = pool_bucket(host, server->port);
    pool->next = client->buckets[pool->bucket];
    client->buckets[pool->bucket] = pool;
    client->live_count++;
    *pool_out = pool;
    return CY_OK;
}

struct http_pool *pool_ref(struct http_pool *pool)
{
    pool->refs++;
    return pool;
}

void pool_unref(struct http_pool **pool_pointer)
{
    struct http_pool *pool = *pool_pointer;
    *pool_pointer = NULL;
    CHECK(pool->refs > 0);
    if (--pool->refs > 0) return;
    DCHECK(pool->idle_count == 0);
    struct http_client *client = pool->client;
    struct http_pool **link = &client->buckets[pool->bucket];
    while (*link != pool) link = &(*link)->next;
    *link = pool->next;
    tls_target_unref(&pool->tls);
    mem_free(pool);
    client_release(client);
}

/* -- the idle list ------------------------------------------------------------------------------------ */

static void pool_link(struct http_pool *pool, struct upstream_connection *connection)
{
    connection->previous = NULL;
    connection->next = pool->idle_newest;
    if (connection->next)
        connection->next->previous = connection;
    else
        pool->idle_oldest = connection;
    pool->idle_newest = connection;
    pool->idle_count++;
    pool->client->idle_count++;
}

static void pool_unlink(struct http_pool *pool, struct upstream_connection *connection)
{
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        pool->idle_newest = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    else
        pool->idle_oldest = connection->previous;
    CHECK(pool->idle_count > 0 && pool->client->idle_count > 0);
    pool->idle_count--;
    pool->client->idle_count--;
}

/* -- connections ----------------------------------------------------------------------------------------- */

static struct upstream_connection *pool_connection(struct upstream_carrier *carrier)
{
    return (struct upstream_connection *)carrier;
}

/* The last completion of a closed connection has come. */
static void pool_recycle(struct upstream_connection *connection)
{
    if (connection->stream || connection->reading || connection->carrier.writing) return;
    struct http_client *client = connection->pool->client;
    DCHECK(!connection->carrier.input);
    pool_unref(&connection->pool);
    spare_put(&client->spare_connections, connection);
    client_release(client);
}

static void pool_close(struct upstream_carrier **carrier_pointer)
{
    struct upstream_carrier *carrier = *carrier_pointer;
    struct upstream_connection *connection = pool_connection(carrier);
    *carrier_pointer = NULL;
    carrier->owner = NULL;
    upstream_clear_timer(carrier);
    stream_close(&connection->stream);
    buffer_unref(&carrier->input);
    pool_recycle(connection);
}

static void pool_close_idle(struct upstream_connection *connection)
{
    struct upstream_carrier *carrier = &connection->carrier;
    pool_unlink(connection->pool, connection);
    pool_close(&carrier);
}

void pool_close_all_idle(struct http_pool *pool)
{
    while (pool->idle_oldest) pool_close_idle(pool->idle_oldest);
}

/* Of all pools, closes the idle connection whose time is over first. Looks at each pool: nobody keeps an order of all
 * of them for the day on which descriptors run out. */
static bool pool_close_first_to_go(struct http_client *client)
{
    struct http_pool *first = NULL;
    bool first_is_h2 = false;
    uint64_t first_due_ms = UINT64_MAX, due_ms;
    if (client->idle_count == 0 && !client->h2) return false;
    for (size_t i = 0; i < CLIENT_POOL_BUCKETS; i++)
        for (struct http_pool *pool = client->buckets[i]; pool; pool = pool->next) {
            if (pool->idle_oldest && pool->idle_oldest->carrier.timer.due_ms < first_due_ms) {
                first = pool;
                first_is_h2 = false;
                first_due_ms = pool->idle_oldest->carrier.timer.due_ms;
            }
            if (pool->h2_newest && h2_client_oldest_idle(pool, false, &due_ms) && due_ms < first_due_ms) {
                first = pool;
                first_is_h2 = true;
                first_due_ms = due_ms;
            }
        }
    if (!first) return false;
    if (first_is_h2) return h2_client_oldest_idle(first, true, &due_ms);
    pool_close_idle(first->idle_oldest);
    return true;
}

uint32_t pool_make_room(struct http_client *client, uint32_t count)
{
    static const char why[] = "descriptors ran out: closed";
    uint32_t closed = 0;
    while (closed < count && pool_close_first_to_go(client)) closed++;
    if (closed)
        log_write_keyed(client->options.log, LOG_WARN, why, "%s %u idle connection%s of upstreams", why,
                        (unsigned)closed, closed == 1 ? "" : "s");
    return closed;
}

struct upstream_carrier *pool_take(struct http_pool *pool, void *owner, const struct upstream_events *events)
{
    CHECK(owner != NULL);
    if (CY_UNLIKELY(pool->h2_newest != NULL)) {
        struct upstream_carrier *carrier = h2_client_take(pool, owner, events);
        if (carrier) return carrier;
    }
    while (pool->idle_newest) {
        struct upstream_connection *connection = pool->idle_newest;
        struct upstream_carrier *carrier = &connection->carrier;
        pool_unlink(pool, connection);
        carrier->owner = owner;
        carrier->events = events;
        carrier->used_before = true;
        if (stream_is_quiet(connection->stream)) return carrier;
        pool_close(&carrier);
    }
    return NULL;
}

static void pool_on_read(struct stream_read *read)
{
    struct upstream_connection *connection = CY_CONTAINER_OF(read, struct upstream_connection, read);
    struct upstream_carrier *carrier = &connection->carrier;
    connection->reading = false;
    if (!connection->stream) {
        buffer_unref(&read->buffer);
        pool_recycle(connection);
        return;
    }
    if (carrier->owner) {
        carrier->events->on_read(carrier->owner, read->buffer, read->err);
        return;
    }
    /* An idle connection: the server hung up, or said something that nobody asked for. */
    buffer_unref(&read->buffer);
    pool_close_idle(connection);
}

static void pool_on_written(struct stream_write *write)
{
    struct upstream_connection *connection = CY_CONTAINER_OF(write, struct upstream_connection, write);
    struct upstream_carrier *carrier = &connection->carrier;
    carrier->writing = false;
    relay_hold_release(&carrier->hold);
    if (!connection->stream) {
        pool_recycle(connection);
        return;
    }
    CHECK(carrier->owner != NULL); /* nothing is kept with a write outstanding */
    carrier->events->on_written(carrier->owner, write->err, write->send.sent_bytes);
}

static void pool_on_timer(struct timer *timer)
{
    struct upstream_carrier *carrier = CY_CONTAINER_OF(timer, struct upstream_carrier, timer);
    if (carrier->owner)
        carrier->events->on_timeout(carrier->owner);
    else
        pool_close_idle(pool_connection(carrier));
}

static const struct upstream_carrier_type pool_carrier_type;

cy_err pool_add(struct http_pool *pool, struct stream *owned_stream, struct upstream_carrier **carrier_out)
{
    struct http_client *client = pool->client;
    if (pool->speaks_h2) return h2_client_add(pool, owned_stream, carrier_out);
    struct upstream_connection *connection = spare_take(&client->spare_connections);
    if (!connection) connection = mem_alloc(sizeof *connection);
    if (!connection) {
        stream_close(&owned_stream);
        return CY_ERR(NO_MEMORY);
    }
    memset(connection, 0, sizeof *connection);
    client->live_count++;
    connection->carrier.type = &pool_carrier_type;
    connection->carrier.options = &client->options;
    connection->carrier.send = &connection->write.send;
    connection->carrier.timer.fire = pool_on_timer;
    connection->pool = pool_ref(pool);
    connection->stream = owned_stream;
    connection->read.done = pool_on_read;
    connection->write.done = pool_on_written;
    *carrier_out = &connection->carrier;
    return CY_OK;
}

/* -- what a request's owner may ask of its carrier ------------------------------------------------------- */

static void pool_begin(struct upstream_carrier *carrier, struct http_field *fields)
{
    h1_parse_begin_response(&pool_connection(carrier)->head, fields);
}

static void pool_put_request(struct upstream_carrier *carrier, struct head_writer *writer, cy_bytes method,
                             cy_bytes base_path, cy_bytes target, cy_bytes host)
{
    (void)carrier;
    head_put(writer, method);
    head_put(writer, CY_BYTES(" "));
    if (base_path.count) head_put(writer, base_path);
    head_put(writer, target);
    head_put(writer, CY_BYTES(" HTTP/1.1\r\nHost: "));
    head_put(writer, host);
    head_put(writer, CY_BYTES("\r\n"));
}

static void pool_put_end(struct upstream_carrier *carrier, struct head_writer *writer)
{
    (void)carrier;
    head_put(writer, CY_BYTES("\r\n"));
}

static void pool_write(struct upstream_carrier *carrier, size_t head_bytes, bool last)
{
    struct upstream_connection *connection = pool_connection(carrier);
    (void)head_bytes;
    (void)last;
    CHECK(!carrier->writing);
    DCHECK(carrier->send->part_count > 0);
    carrier->writing = true;
    stream_write_start(connection->stream, &connection->write);
}

static void pool_want_input(struct upstream_carrier *carrier)
{
    struct upstream_connection *connection = pool_connection(carrier);
    uint32_t pipe_bytes_max = carrier->pipe_bytes_max;
    carrier->pipe_bytes_max = 0;
    if (connection->reading) return;
    connection->reading = true;
    connection->read.receive.pipe_bytes_max = pipe_bytes_max;
    stream_read_start(connection->stream, &connection->read);
}

static bool pool_takes_pipes(const struct upstream_carrier *carrier)
{
    return stream_takes_pipes(((const struct upstream_connection *)carrier)->stream);
}

static enum upstream_head pool_read_head(struct upstream_carrier *carrier, bool request_is_head,
                                         struct http_response *response_out, uint8_t *fault_out)
{
    struct upstream_connection *connection = pool_connection(carrier);
    struct h1_head *head = &connection->head;
    switch (h1_parse_head(head, buffer_view(carrier->input))) {
    case H1_PARSE_MORE: return UPSTREAM_HEAD_MORE;
    case H1_PARSE_FAULT: *fault_out = head->fault; return UPSTREAM_HEAD_FAULT;
    case H1_PARSE_DONE: break;
    }
    carrier->input->begin += (uint32_t)head->used_bytes;
    response_out->status = head->status;
    response_out->reason = head->reason;
    response_out->head_bytes = head->used_bytes;
    response_out->field_count = head->field_count;
    response_out->fields = head->fields;
    if (head->status < 200) {
        h1_mark_listed(head);
        h1_parse_begin_response(head, head->fields);
        return UPSTREAM_HEAD_INTERIM;
    }
    struct h1_response judged;
    *fault_out = h1_judge_response(head, request_is_head, &judged);
    if (*fault_out) return UPSTREAM_HEAD_FAULT;
    response_out->body = judged.body;
    response_out->has_date = judged.has_date;
    response_out->declared_length = judged.declared_length;
    connection->keep_alive = judged.keep_alive;
    connection->keep_alive_s = judged.keep_alive_s;
    return UPSTREAM_HEAD_FINAL;
}

static uint32_t pool_keep_ms(const struct upstream_connection *connection)
{
    const struct upstream_carrier *carrier = &connection->carrier;
    uint32_t keep_ms = carrier->keep_alive_ms ? carrier->keep_alive_ms : carrier->options->keep_alive_ms;
    uint64_t promised_ms = connection->keep_alive_s * UINT64_C(1000);
    /* A second less than the server says: a request must not meet its hang-up. */
    if (promised_ms && promised_ms < keep_ms + UINT64_C(1000))
        keep_ms = promised_ms > 1000 ? (uint32_t)(promised_ms - 1000) : 0;
    return keep_ms;
}

static void pool_shutdown(struct upstream_carrier *carrier, bool abort)
{
    struct upstream_connection *connection = pool_connection(carrier);
    if (abort)
        stream_abort_on_close(connection->stream);
    else
        stream_shutdown_write(connection->stream);
}

static void pool_release(struct upstream_carrier **carrier_pointer, bool clean)
{
    struct upstream_carrier *carrier = *carrier_pointer;
    struct upstream_connection *connection = pool_connection(carrier);
    struct http_pool *pool = connection->pool;
    uint32_t keep_ms = clean && connection->keep_alive ? pool_keep_ms(connection) : 0;
    if (keep_ms == 0 || pool->client->freed || carrier->writing || carrier->input) {
        pool_close(carrier_pointer);
        return;
    }
    *carrier_pointer = NULL;
    carrier->owner = NULL;
    carrier->events = NULL;
    pool_link(pool, connection);
    upstream_set_timer(carrier, keep_ms);
    pool_want_input(carrier);
    if (pool->idle_count > carrier->options->pool_idle_max) pool_close_idle(pool->idle_oldest);
}

static const struct upstream_carrier_type pool_carrier_type = {
    .name = "http/1",
    .takes_pipes = pool_takes_pipes,
    .uses_chunks = true,
    .begin = pool_begin,
    .put_request = pool_put_request,
    .put_end = pool_put_end,
    .write = pool_write,
    .want_input = pool_want_input,
    .read_head = pool_read_head,
    .shutdown = pool_shutdown,
    .release = pool_release,
    .close = pool_close,
};
