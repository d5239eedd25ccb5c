/* SPDX-License-Identifier: MIT
 *
 * vm/http/client.c: the worker's HTTP client and its upstreams.
 *
 * Invariant: an upstream's texts live in the same block as its struct and never change.
 * Not here:  connections (pool.c), how they are made (connector.c), what goes over them (proxy.c).
 */
#include "vm/http/client.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/h2.h"
#include "vm/http/uri.h"

/* Below the 5 s after which common servers hang up an idle connection. */
#define CLIENT_KEEP_ALIVE_MS 4000
#define CLIENT_WAIT_MS 60000
#define CLIENT_UNIX "http://unix:"

static void client_default(uint32_t *value, uint32_t when_zero)
{
    if (*value == 0) *value = when_zero;
}

cy_err http_client_new(const struct http_client_options *options, struct http_client **client_out)
{
    CHECK(options->loop && options->log);
    struct http_client *client = mem_alloc_zeroed(sizeof *client);
    if (!client) return CY_ERR(NO_MEMORY);
    client->options = *options;
    client_default(&client->options.connect_timeout_ms, LIMIT_CONNECT_TIMEOUT_MS);
    client_default(&client->options.first_byte_timeout_ms, CLIENT_WAIT_MS);
    client_default(&client->options.idle_timeout_ms, CLIENT_WAIT_MS);
    client_default(&client->options.keep_alive_ms, CLIENT_KEEP_ALIVE_MS);
    client_default(&client->options.tunnel_timeout_ms, LIMIT_HTTP_TUNNEL_IDLE_MS);
    client_default(&client->options.pool_idle_max, LIMIT_HTTP_POOL_IDLE);
    struct spare_watch *watch = loop_spares(options->loop);
    spare_init(&client->spare_connections, watch, sizeof(struct upstream_connection), LIMIT_HTTP_SPARE);
    spare_init(&client->spare_connectors, watch, sizeof(struct http_connector), LIMIT_HTTP_SPARE);
    *client_out = client;
    return CY_OK;
}

static void client_free_memory(struct http_client *client)
{
    spare_fini(&client->spare_connections);
    spare_fini(&client->spare_connectors);
    h2_client_fini(client);
    mem_free(client);
}

void client_release(struct http_client *client)
{
    CHECK(client->live_count > 0);
    if (--client->live_count == 0 && client->freed) client_free_memory(client);
}

static void client_close_idle(struct http_client *client)
{
    for (size_t i = 0; i < CLIENT_POOL_BUCKETS; i++) {
        for (struct http_pool *pool = client->buckets[i], *next; pool; pool = next) {
            next = pool->next;
            pool_ref(pool); /* the last idle connection would take it along */
            h2_client_close_idle(pool);
            pool_close_all_idle(pool);
            pool_unref(&pool);
        }
    }
}

void http_client_free(struct http_client **client_pointer)
{
    struct http_client *client = *client_pointer;
    if (!client) return;
    *client_pointer = NULL;
    client->live_count++; /* keeps the memory while idle connections are closed */
    client_close_idle(client);
    tls_client_unref(&client->system_trust);
    client->freed = true;
    client_release(client);
}

/* -- upstreams ------------------------------------------------------------------------------------------- */

struct client_url {
    struct pool_server server;
    cy_bytes host_text; /* with brackets */
    bool secure, is_default_port;
    bool is_unix; /* server.host is the socket's path */
    cy_bytes base_path;
};

static cy_err client_bad_url(const char *fault, const char **fault_out)
{
    if (fault_out) *fault_out = fault;
    return CY_ERR(BAD_ADDRESS);
}

static bool client_is_path(cy_bytes path)
{
    for (size_t i = 0; i < path.count; i++) {
        uint8_t byte = path.data[i];
        if (byte <= ' ' || byte >= 0x7f || byte == '?' || byte == '#' || byte == '\\' || byte == '"')
            return false;
    }
    return true;
}

static cy_err client_check_path(cy_bytes *path, const char **fault_out)
{
    if (!client_is_path(*path))
        return client_bad_url(
            "the path of an upstream's URL has no query, fragment, space or control character", fault_out);
    while (path->count && path->data[path->count - 1] == '/') path->count--;
    return CY_OK;
}

/* "http://unix:/path:/base": a colon behind the socket's path begins the base path. */
static cy_err client_parse_unix(cy_bytes rest, struct client_url *url_out, const char **fault_out)
{
    size_t colon = cy_bytes_find(rest, ':');
    struct address ignored;
    *url_out = (struct client_url){.server.host = cy_bytes_slice(rest, 0, colon), .is_unix = true};
    if (colon < rest.count) url_out->base_path = cy_bytes_skip(rest, colon + 1);
    bool has_base = url_out->base_path.count > 0;
    if (cy_failed(address_from_path(url_out->server.host, &ignored)) ||
        (has_base && url_out->base_path.data[0] != '/'))
        return client_bad_url("a UNIX socket is written http://unix:/path[:/base], the path below 108 bytes",
                              fault_out);
    return client_check_path(&url_out->base_path, fault_out);
}

static bool client_take_scheme(cy_bytes url, cy_bytes scheme, cy_bytes *rest_out)
{
    if (!cy_bytes_equal_nocase(cy_bytes_slice(url, 0, scheme.count), scheme)) return false;
    *rest_out = cy_bytes_skip(url, scheme.count);
    return true;
}

/* `space` is for the lower-cased host. */
static cy_err client_parse_url(cy_bytes url, uint8_t *space, struct client_url *url_out,
                               const char **fault_out)
{
    cy_bytes authority, path, rest;
    struct uri_host parts;
    if (cy_bytes_start_with(url, CY_BYTES(CLIENT_UNIX "/")))
        return client_parse_unix(cy_bytes_skip(url, sizeof CLIENT_UNIX - 1), url_out, fault_out);
    url_out->secure = client_take_scheme(url, CY_BYTES("h2://"), &rest);
    url_out->server.speaks_h2 = url_out->secure || client_take_scheme(url, CY_BYTES("h2c://"), &rest);
    if (url_out->server.speaks_h2) {
        uri_split_authority(rest, &authority, &path);
    } else if (!uri_split_absolute(url, &url_out->secure, &authority, &path)) {
        return client_bad_url(
            "an upstream is written http://host[:port][/path], https://, h2:// for HTTP/2 over TLS, "
            "or h2c:// for HTTP/2 without TLS",
            fault_out);
    }
    if (cy_bytes_find(authority, '@') < authority.count)
        return client_bad_url("a user name or password cannot stand in an upstream's URL", fault_out);
    if (authority.count > LIMIT_NAME_BYTES + 8 || uri_normalise_host(authority, space, &parts) ||
        parts.host.count == 0)
        return client_bad_url("the host or port of the upstream's URL is malformed", fault_out);
    CY_TRY(client_check_path(&path, fault_out));
    url_out->is_unix = false;
    url_out->server.is_v6 = parts.host.data[0] == '[';
    url_out->host_text = parts.host;
    url_out->server.host =
        url_out->server.is_v6 ? cy_bytes_slice(parts.host, 1, parts.host.count - 1) : parts.host;
    uint16_t default_port = url_out->secure ? 443 : 80;
    url_out->server.port = parts.port ? parts.port : default_port;
    url_out->is_default_port = url_out->server.port == default_port;
    url_out->base_path = path;
    return CY_OK;
}

/* Reading the system's authorities takes milliseconds, once. */
static cy_err client_system_trust(struct http_client *client, struct tls_client **trust_out,
                                  const char **fault_out)
{
    if (!client->system_trust) {
        struct tls_client_options options = {.use_system = true};
        struct builder fault;
        builder_init(&fault);
        cy_err err = tls_client_new(&options, &client->system_trust, &fault);
        builder_fini(&fault);
        if (cy_failed(err) && fault_out) *fault_out = "the system's certificate authorities cannot be read";
        CY_TRY(err);
    }
    *trust_out = client->system_trust;
    return CY_OK;
}

cy_err upstream_open(struct http_client *client, cy_bytes url, struct upstream **upstream_out,
                     const char **fault_out)
{
    return upstream_open_tls(client, url, NULL, CY_BYTES_NONE, upstream_out, fault_out);
}

cy_err upstream_open_tls(struct http_client *client, cy_bytes url, struct tls_client *trust, cy_bytes name,
                         struct upstream **upstream_out, const char **fault_out)
{
    uint8_t space[LIMIT_NAME_BYTES + 8];
    struct client_url parts;
    if (fault_out) *fault_out = NULL;
    CY_TRY(client_parse_url(url, space, &parts, fault_out));
    if (!parts.secure && (trust || name.count > 0))
        return client_bad_url("trust and name are for https:// and h2:// only", fault_out);
    if (parts.secure && !trust) CY_TRY(client_system_trust(client, &trust, fault_out));
    if (name.count == 0) name = parts.server.host;
    struct upstream *upstream = mem_alloc(sizeof *upstream + parts.base_path.count);
    if (!upstream) return CY_ERR(NO_MEMORY);
    struct http_pool *pool;
    cy_err err = pool_open(client, &parts.server, trust, name, &pool);
    if (cy_failed(err)) {
        mem_free(upstream);
        if (cy_is(err, CY_ERR_BAD_ADDRESS))
            return client_bad_url("the IPv6 address or the name of the upstream is malformed", fault_out);
        return err;
    }
    uint8_t *path = (uint8_t *)(upstream + 1);
    if (parts.base_path.count) memcpy(path, parts.base_path.data, parts.base_path.count);
    upstream->refs = 1;
    upstream->proxy_protocol = 0;
    upstream->pool = pool;
    upstream->base_path = cy_bytes_of(path, parts.base_path.count);
    if (parts.is_unix)
        upstream->authority = CY_BYTES("localhost"); /* a socket has no name of its own */
    else
        upstream->authority =
            parts.is_default_port ? cy_bytes_slice(pool->text, 0, parts.host_text.count) : pool->text;
    upstream->times = (struct http_times){.connect_ms = client->options.connect_timeout_ms,
                                          .first_byte_ms = client->options.first_byte_timeout_ms,
                                          .idle_ms = client->options.idle_timeout_ms,
                                          .keep_alive_ms = client->options.keep_alive_ms,
                                          .tunnel_ms = client->options.tunnel_timeout_ms};
    *upstream_out = upstream;
    return CY_OK;
}

cy_err upstream_set_proxy_protocol(struct upstream *upstream, uint8_t version)
{
    CHECK(version <= 2);
    if (version && (upstream->pool->speaks_h2 || upstream->pool->tls)) return CY_ERR(UNSUPPORTED);
    upstream->proxy_protocol = version;
    return CY_OK;
}

void http_times_override(struct http_times *times, const struct http_times *with)
{
    if (with->connect_ms) times->connect_ms = with->connect_ms;
    if (with->first_byte_ms) times->first_byte_ms = with->first_byte_ms;
    if (with->idle_ms) times->idle_ms = with->idle_ms;
    if (with->keep_alive_ms) times->keep_alive_ms = with->keep_alive_ms;
    if (with->tunnel_ms) times->tunnel_ms = with->tunnel_ms;
    if (with->total_ms) times->total_ms = with->total_ms;
}

void upstream_set_times(struct upstream *upstream, const struct http_times *times)
{
    http_times_override(&upstream->times, times);
}

struct upstream *upstream_ref(struct upstream *upstream)
{
    CHECK(upstream->refs > 0);
    upstream->refs++;
    return upstream;
}

void upstream_unref(struct upstream **upstream)
{
    struct upstream *which = *upstream;
    *upstream = NULL;
    if (!which) return;
    CHECK(which->refs > 0);
    if (--which->refs > 0) return;
    pool_unref(&which->pool);
    mem_free(which);
}

size_t upstream_memory_bytes(const struct upstream *upstream)
{
    return sizeof *upstream + upstream->base_path.count + sizeof *upstream->pool +
           2 * upstream->pool->text.count;
}

cy_bytes upstream_text(const struct upstream *upstream) { return upstream->pool->text; }

#undef CLIENT_KEEP_ALIVE_MS
#undef CLIENT_WAIT_MS
#undef CLIENT_UNIX
