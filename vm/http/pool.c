/* SPDX-License-Identifier: MIT
 *
 * vm/http/pool.c: connections to servers, and the idle ones of each (host, port).
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

/* -- pools ----------------------------------------------------------------------------------------------- */

static uint8_t pool_bucket(cy_bytes host, uint16_t port)
{
    return (uint8_t)((crc32c(0, host) ^ port) %
                     CLIENT_POOL_BUCKETS); /* keys come from the configuration, not from peers */
}

static struct http_pool *pool_find(struct http_client *client, cy_bytes host, uint16_t port)
{
    for (struct http_pool *pool = client->buckets[pool_bucket(host, port)]; pool; pool = pool->next)
        if (pool->port == port && cy_bytes_equal(pool->host, host)) return pool;
    return NULL;
}

/* "host:port", "[v6]:port" behind the host. False when there is no memory. */
static bool pool_format_text(struct http_pool *pool, uint8_t *space, size_t space_bytes, bool is_v6)
{
    struct builder text;
    builder_init(&text);
    builder_printf(&text, is_v6 ? "[%.*s]:%u" : "%.*s:%u", CY_BYTES_ARG(pool->host), (unsigned)pool->port);
    bool ok = !text.failed && text.count <= space_bytes;
    if (ok) {
        memcpy(space, text.data, text.count);
        pool->text = cy_bytes_of(space, text.count);
    }
    builder_fini(&text);
    return ok;
}

cy_err pool_open(struct http_client *client, cy_bytes host, uint16_t port, bool is_v6,
                 struct http_pool **pool_out)
{
    struct http_pool *pool = pool_find(client, host, port);
    if (pool) {
        *pool_out = pool_ref(pool);
        return CY_OK;
    }
    struct address numeric;
    bool is_numeric = !cy_failed(address_from_ip(host, port, &numeric));
    if (is_v6 && !is_numeric) return CY_ERR(BAD_ADDRESS);
    size_t text_bytes = host.count + sizeof "[]:65535";
    pool = mem_alloc_zeroed(sizeof *pool + host.count + 1 + text_bytes);
    if (!pool) return CY_ERR(NO_MEMORY);
    uint8_t *space = (uint8_t *)(pool + 1);
    memcpy(space, host.data, host.count);
    pool->client = client;
    pool->refs = 1;
    pool->host = cy_bytes_of(space, host.count);
    pool->port = port;
    pool->is_numeric = is_numeric;
    if (is_numeric) pool->numeric = numeric;
    if (!pool_format_text(pool, space + host.count + 1, text_bytes, is_v6)) {
        mem_free(pool);
        return CY_ERR(NO_MEMORY);
    }
    pool->bucket = pool_bucket(host, port);
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
    CHECK(pool->idle_count > 0);
    pool->idle_count--;
}

struct upstream_connection *pool_take(struct http_pool *pool, void *owner,
                                      const struct upstream_events *events)
{
    CHECK(owner != NULL);
    while (pool->idle_newest) {
        struct upstream_connection *connection = pool->idle_newest;
        pool_unlink(pool, connection);
        connection->owner = owner;
        connection->events = events;
        connection->used_before = true;
        if (stream_is_quiet(connection->stream)) return connection;
        upstream_connection_close(&connection);
    }
    return NULL;
}

/* -- connections ----------------------------------------------------------------------------------------- */

/* The last completion of a closed connection has come. */
static void pool_recycle(struct upstream_connection *connection)
{
    if (connection->stream || connection->reading || connection->writing) return;
    struct http_client *client = connection->pool->client;
    DCHECK(!connection->input);
    pool_unref(&connection->pool);
    connection->next = client->free_connections;
    client->free_connections = connection;
    client_release(client);
}

static void pool_on_read(struct stream_read *read)
{
    struct upstream_connection *connection = CY_CONTAINER_OF(read, struct upstream_connection, read);
    connection->reading = false;
    if (!connection->stream) {
        buffer_unref(&read->buffer);
        pool_recycle(connection);
        return;
    }
    if (connection->owner) {
        connection->events->on_read(connection->owner, read->buffer, read->err);
        return;
    }
    /* An idle connection: the server hung up, or said something that nobody asked for. */
    buffer_unref(&read->buffer);
    pool_unlink(connection->pool, connection);
    upstream_connection_close(&connection);
}

static void pool_on_written(struct stream_write *write)
{
    struct upstream_connection *connection = CY_CONTAINER_OF(write, struct upstream_connection, write);
    connection->writing = false;
    relay_hold_release(&connection->hold);
    if (!connection->stream) {
        pool_recycle(connection);
        return;
    }
    CHECK(connection->owner != NULL); /* nothing is kept with a write outstanding */
    connection->events->on_written(connection->owner, write->err, write->send.sent_bytes);
}

static void pool_on_timer(struct timer *timer)
{
    struct upstream_connection *connection = CY_CONTAINER_OF(timer, struct upstream_connection, timer);
    if (connection->owner) {
        connection->events->on_timeout(connection->owner);
        return;
    }
    pool_unlink(connection->pool, connection);
    upstream_connection_close(&connection);
}

cy_err upstream_connection_new(struct http_pool *pool, struct stream *owned_stream,
                               struct upstream_connection **connection_out)
{
    struct http_client *client = pool->client;
    struct upstream_connection *connection = client->free_connections;
    if (connection) {
        client->free_connections = connection->next;
    } else {
        connection = mem_alloc(sizeof *connection);
        if (!connection) {
            stream_close(&owned_stream);
            return CY_ERR(NO_MEMORY);
        }
    }
    memset(connection, 0, sizeof *connection);
    client->live_count++;
    connection->pool = pool_ref(pool);
    connection->stream = owned_stream;
    connection->read.done = pool_on_read;
    connection->write.done = pool_on_written;
    connection->timer.fire = pool_on_timer;
    *connection_out = connection;
    return CY_OK;
}

void upstream_connection_read(struct upstream_connection *connection)
{
    if (connection->reading) return;
    connection->reading = true;
    stream_read_start(connection->stream, &connection->read);
}

void upstream_connection_write(struct upstream_connection *connection)
{
    CHECK(!connection->writing);
    DCHECK(connection->write.send.part_count > 0);
    connection->writing = true;
    stream_write_start(connection->stream, &connection->write);
}

void upstream_connection_set_timer(struct upstream_connection *connection, uint32_t after_ms)
{
    loop_timer_set(connection->stream->loop, &connection->timer, after_ms);
}

void upstream_connection_keep(struct upstream_connection **connection_pointer, uint32_t keep_ms)
{
    struct upstream_connection *connection = *connection_pointer;
    struct http_pool *pool = connection->pool;
    uint32_t idle_max = pool->client->options.pool_idle_max;
    if (keep_ms == 0 || pool->client->freed || connection->writing || connection->input) {
        upstream_connection_close(connection_pointer);
        return;
    }
    *connection_pointer = NULL;
    connection->owner = NULL;
    connection->events = NULL;
    pool_link(pool, connection);
    upstream_connection_set_timer(connection, keep_ms);
    upstream_connection_read(connection);
    if (pool->idle_count > idle_max) {
        struct upstream_connection *oldest = pool->idle_oldest;
        pool_unlink(pool, oldest);
        upstream_connection_close(&oldest);
    }
}

void upstream_connection_close(struct upstream_connection **connection_pointer)
{
    struct upstream_connection *connection = *connection_pointer;
    *connection_pointer = NULL;
    connection->owner = NULL;
    loop_timer_clear(connection->stream->loop, &connection->timer);
    stream_close(&connection->stream);
    buffer_unref(&connection->input);
    pool_recycle(connection);
}
