/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/h2_world.c: see h2_world.h.
 */
#include "tests/unit/http/h2_world.h"

#include "tests/support/loopback.h"
#include "tests/unit/net/certificates.h"
#include "vm/base/mem.h"

#include <check.h>

void h2_world_respond(struct h2_world *world, struct http_exchange *exchange, uint16_t status, size_t bytes)
{
    struct http_verdict *verdict;
    ck_assert(
        !cy_failed(http_verdict_respond(status, cy_bytes_of(world->body, bytes), NULL, 0, &verdict, NULL)));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void h2_world_on_request(void *context, struct http_exchange *exchange)
{
    struct h2_world *world = context;
    const struct http_request *request = http_exchange_request(exchange);
    uint64_t number = 5;
    world->request_count++;
    if (world->verdict) {
        http_exchange_answer(exchange, world->verdict);
        return;
    }
    builder_clear(&world->seen);
    builder_printf(&world->seen, "%.*s %.*s %.*s\n", CY_BYTES_ARG(request->method),
                   CY_BYTES_ARG(request->host), CY_BYTES_ARG(request->path));
    for (uint32_t i = 0; i < request->field_count; i++)
        builder_printf(&world->seen, "%.*s: %.*s\n", CY_BYTES_ARG(request->fields[i].name),
                       CY_BYTES_ARG(request->fields[i].value));
    if (cy_bytes_equal(request->path, CY_BYTES("/wait"))) {
        ck_assert_uint_lt(world->waiting_count, H2_WORLD_WAITING_MAX);
        world->waiting[world->waiting_count++] = exchange;
    } else if (cy_bytes_equal(request->path, CY_BYTES("/204"))) {
        h2_world_respond(world, exchange, 204, 0);
    } else if (cy_bytes_equal(request->path, CY_BYTES("/304"))) {
        h2_world_respond(world, exchange, 304, 0);
    } else {
        (void)!cy_bytes_parse_u64(cy_bytes_skip(request->path, 1), H2_WORLD_BODY_BYTES, &number);
        h2_world_respond(world, exchange, 200, (size_t)number);
    }
}

static void h2_world_on_gone(void *context, struct http_exchange *exchange)
{
    struct h2_world *world = context;
    world->gone_count++;
    for (unsigned i = 0; i < world->waiting_count; i++)
        if (world->waiting[i] == exchange) world->waiting[i] = world->waiting[--world->waiting_count];
}

void h2_world_on_drained(void *context) { ((struct h2_world *)context)->drained = true; }

void h2_world_connect(struct h2_world *world, const struct stream_info *info, size_t read_bytes_max)
{
    struct stream *near, *far;
    ck_assert(!cy_failed(loopback_pair(world->loop, read_bytes_max, &near, &far)));
    if (info) loopback_set_info(far, info);
    ck_assert(!cy_failed(http_server_adopt(world->server, far)));
    h2_peer_open(&world->peer, world->loop, near);
}

static void h2_world_make_tls(struct h2_world *world)
{
    struct certificate *authority =
        certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    struct certificate *own = certificate_new(
        &(struct certificate_options){.name = "a.example", .names = "DNS:a.example", .issuer = authority});
    struct tls_certificate pair = {.chain = certificate_file("cert.pem", certificate_pem(own)),
                                   .key = certificate_file("key.pem", certificate_key_pem(own))};
    struct tls_server_options server = {.certificates = &pair, .certificate_count = 1};
    struct tls_client_options options = {.ca = certificate_file("ca.pem", certificate_pem(authority))};
    struct tls_client *client;
    struct builder fault;
    builder_init(&fault);
    ck_assert(!cy_failed(tls_server_new(&server, &world->tls, &fault)));
    ck_assert(!cy_failed(tls_client_new(&options, &client, &fault)));
    ck_assert(!cy_failed(tls_target_new(client, CY_BYTES("a.example"), CY_BYTES("\x02h2"), &world->target)));
    builder_fini(&fault);
    tls_client_unref(&client);
    certificate_free(&own);
    certificate_free(&authority);
}

static void h2_world_on_ready(struct stream_ready *ready)
{
    ck_assert(!cy_failed(ready->err) || cy_is(ready->err, CY_ERR_CANCELLED));
}

void h2_world_connect_tls(struct h2_world *world, size_t read_bytes_max)
{
    struct stream *near, *far;
    if (!world->tls) h2_world_make_tls(world);
    ck_assert(!cy_failed(loopback_pair(world->loop, read_bytes_max, &near, &far)));
    ck_assert(!cy_failed(tls_server_stream(world->tls, CY_BYTES("\x02h2"), far, &far)));
    ck_assert(!cy_failed(tls_target_stream(world->target, near, &near)));
    ck_assert(!cy_failed(http_server_adopt(world->server, far)));
    world->ready.done = h2_world_on_ready;
    stream_ready_start(near, &world->ready);
    h2_peer_open(&world->peer, world->loop, near);
}

void h2_world_open(struct h2_world *world, struct loop *owned_loop, const struct http_server_options *times)
{
    memset(world, 0, sizeof *world);
    world->loop = owned_loop;
    if (!owned_loop) ck_assert(!cy_failed(loop_new("poll", &world->loop)));
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1;
    builder_init(&world->seen);
    world->body = mem_alloc(H2_WORLD_BODY_BYTES);
    for (uint32_t i = 0; i < H2_WORLD_BODY_BYTES; i++)
        world->body[i] = (uint8_t)('a' + i % 26 + i / 1000 % 3);
    struct http_server_options options = {0};
    if (times) options = *times;
    options.loop = world->loop;
    options.log = &world->log;
    options.context = world;
    options.on_request = h2_world_on_request;
    options.on_gone = h2_world_on_gone;
    ck_assert(!cy_failed(http_server_new(&options, &world->server)));
    h2_world_connect(world, NULL, 0);
}

void h2_world_close(struct h2_world *world)
{
    h2_peer_close(&world->peer);
    http_server_free(&world->server);
    tls_server_unref(&world->tls);
    tls_target_unref(&world->target);
    ck_assert(!cy_failed(loop_flush(world->loop)));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(world->loop)), 0);
    loop_free(&world->loop);
    builder_fini(&world->seen);
    mem_free(world->body);
}
