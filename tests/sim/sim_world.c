/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim_world.c: one schedule from its first byte to the last free, the handler, and what must hold at the end.
 *
 * At the end: every request has an outcome that the model allows, the server's counters say the same, no connection, no
 * exchange and no buffer is left (loop_free CHECKs sockets and buffers once more).
 */
#include "tests/sim/sim.h"

#include "vm/base/check.h"

#define SIM_TURNS_MAX 400000
#define SIM_MS_MAX 600000

/* -- the handler -------------------------------------------------------------------------------------------- */

static void world_answer(struct sim_request *request)
{
    struct sim_world *world = request->world;
    struct http_exchange *exchange = request->exchange;
    request->exchange = NULL;
    request->answered_late = world->draining;
    if (request->verdict == SIM_FAIL) {
        http_exchange_fail(exchange, CY_BYTES("planned"));
        return;
    }
    if (request->verdict == SIM_PROXY) {
        http_exchange_answer(exchange, world->upstreams[request->upstream].verdict);
        return;
    }
    struct builder body, id;
    builder_init(&body);
    builder_init(&id);
    sim_put_body(&body, request->id, true, 0, request->answer_bytes);
    builder_printf(&id, "%u", request->id);
    const struct http_verdict_field field = {CY_BYTES("X-Id"), builder_view(&id)};
    struct http_verdict *verdict;
    CHECK(!cy_failed(
        http_verdict_respond((uint16_t)request->status, builder_view(&body), &field, 1, &verdict, NULL)));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
    builder_fini(&body);
    builder_fini(&id);
}

static void world_on_think(struct timer *timer)
{
    world_answer(CY_CONTAINER_OF(timer, struct sim_request, think));
}

static void world_on_request(void *context, struct http_exchange *exchange)
{
    struct sim_world *world = context;
    const struct http_request *seen = http_exchange_request(exchange);
    struct sim_request *request = sim_find_request(world, seen->target);
    SIM_CHECK(world, request && request->started);
    sim_trace(world, "handler: request %u", request->id);
    SIM_CHECK(world, ++request->handled == 1);
    SIM_CHECK(world, cy_bytes_equal(seen->method, cy_bytes_from_text(request->method)));
    SIM_CHECK(world, seen->protocol == (request->minor_version ? HTTP_1_1 : HTTP_1_0));
    SIM_CHECK(world, (seen->body.kind == HTTP_BODY_CHUNKED) == (request->body == SIM_BODY_CHUNKED));
    if (request->body == SIM_BODY_LENGTH) SIM_CHECK(world, seen->body.length == request->body_bytes);
    world->handled_count++;
    request->exchange = exchange;
    request->think.fire = world_on_think;
    http_exchange_set_context(exchange, request);
    if (request->think_ms)
        loop_timer_set(world->loop, &request->think, request->think_ms);
    else
        world_answer(request);
}

static void world_on_gone(void *context, struct http_exchange *exchange)
{
    struct sim_world *world = context;
    struct sim_request *request = http_exchange_context(exchange);
    SIM_CHECK(world, request && request->exchange == exchange);
    sim_trace(world, "handler: request %u is gone", request->id);
    loop_timer_clear(world->loop, &request->think);
    request->exchange = NULL;
    request->given_up = true;
    world->gone_count++;
}

/* -- the server's end in the middle --------------------------------------------------------------------- */

static void world_on_drained(void *context)
{
    struct sim_world *world = context;
    sim_trace(world, "server: drained");
    SIM_CHECK(world, world->draining && !world->drained);
    world->drained = true;
}

static void world_on_end(struct timer *timer)
{
    struct sim_world *world = CY_CONTAINER_OF(timer, struct sim_world, end_timer);
    sim_trace(world, "server: %s", world->end_cuts ? "is cut off" : "drains");
    world->draining = true;
    if (!world->end_cuts) {
        http_server_drain(world->server, world_on_drained);
        return;
    }
    world->cut = true;
    http_server_free(&world->server);
}

/* -- the beginning ------------------------------------------------------------------------------------------ */

static void world_open(struct sim_world *world)
{
    const struct sim_row *row = world->row;
    const struct loop_sim_options options = {.seed = world->seed,
                                             .pieces = row->pieces,
                                             .reorder = row->reorder,
                                             .resets_per_million = row->resets_per_million,
                                             .window_bytes = row->window_bytes};
    CHECK(!cy_failed(loop_sim_new(&options, &world->loop, &world->sim)));
    log_init(&world->log);
    world->log.level_min = world->trace ? 0 : LOG_ERROR + 1; /* broken connections are the point here */
    const struct http_client_options client = {.loop = world->loop,
                                               .log = &world->log,
                                               .connect_timeout_ms = 1000,
                                               .first_byte_timeout_ms = 5000,
                                               .idle_timeout_ms = 4000, /* less than body_idle_timeout_ms */
                                               .keep_alive_ms = 4000,
                                               .pool_idle_max = 4};
    CHECK(!cy_failed(http_client_new(&client, &world->client)));
    const struct http_server_options server = {.loop = world->loop,
                                               .log = &world->log,
                                               .client = world->client,
                                               .context = world,
                                               .on_request = world_on_request,
                                               .on_gone = world_on_gone,
                                               .header_timeout_ms = 6000,
                                               .keep_alive_ms = 8000,
                                               .body_idle_timeout_ms = 5000,
                                               /* longer than any of its upstreams and handlers thinks */
                                               .half_close_ms = 60000};
    CHECK(!cy_failed(http_server_new(&server, &world->server)));
    CHECK(!cy_failed(address_from_ip(CY_BYTES("10.0.0.1"), 80, &world->server_address)));
    CHECK(!cy_failed(http_server_listen(world->server, loop_sim_listen(world->sim, &world->server_address))));
    for (uint32_t i = 0; i < SIM_UPSTREAMS; i++) {
        world->upstreams[i].world = world;
        world->upstreams[i].index = i;
        sim_upstream_start(&world->upstreams[i]);
    }
    world->end_timer.fire = world_on_end;
    if (world->end_ms) loop_timer_set(world->loop, &world->end_timer, world->end_ms);
    for (uint32_t i = 0; i < world->client_count; i++) sim_client_start(&world->clients[i]);
}

/* -- the end ------------------------------------------------------------------------------------------------ */

static void world_turn(struct sim_world *world)
{
    if (cy_failed(loop_turn(world->loop))) sim_fail(world, "everybody waits for somebody else");
    SIM_CHECK(world, ++world->stats->turns % SIM_TURNS_MAX != 0 || loop_now_ms(world->loop) < SIM_MS_MAX);
    if (loop_now_ms(world->loop) > SIM_MS_MAX)
        sim_fail(world, "no end: %u of %u clients are done", world->done_count, world->client_count);
}

/* Each request counts once, as answered, as given up by its client, or as cut off. */
static void world_check_counters(struct sim_world *world, const struct http_server_counters *counters)
{
    const struct sim_row *row = world->row;
    uint64_t responses = 0, shorts = 0;
    for (uint32_t i = 0; i < CY_COUNT_OF(counters->responses_by_class); i++)
        responses += counters->responses_by_class[i];
    for (uint32_t i = 0; i < world->request_count; i++) {
        const struct sim_request *request = &world->requests[i];
        bool all_lost =
            request->want == SIM_SHORT && request->outcome == SIM_NO_ANSWER && request->arrivals > 0;
        shorts += request->outcome == SIM_SHORT || all_lost;
    }
    sim_trace(world, "server: %llu requests, %llu responses, %llu aborts, %llu upstream failures, %llu short",
              (unsigned long long)counters->requests, (unsigned long long)responses,
              (unsigned long long)counters->client_aborts, (unsigned long long)counters->upstream_failures,
              (unsigned long long)shorts);
    SIM_CHECK(world, counters->requests == world->handled_count);
    SIM_CHECK(world, counters->exchanges_open == 0);
    SIM_CHECK(world, counters->connections_open == 0);
    if (row->resets_per_million || row->client_faults || row->server_ends) {
        SIM_CHECK(world,
                  counters->requests <= responses + counters->client_aborts + counters->upstream_failures);
        return;
    }
    SIM_CHECK(world, counters->client_aborts == 0);
    SIM_CHECK(world, counters->requests == responses + shorts);
    if (!row->upstream_faults && !row->idle_closes) SIM_CHECK(world, counters->upstream_failures == 0);
}

static void world_settle(struct sim_world *world)
{
    struct http_server_counters counters = {.connections_open = 1};
    while (world->server) {
        http_server_read_counters(world->server, &counters);
        if (counters.connections_open == 0) break;
        world_turn(world);
    }
    if (world->server) world_check_counters(world, &counters);
    while (world->draining && !world->cut && !world->drained) world_turn(world);
    for (uint32_t i = 0; i < world->request_count; i++) {
        const struct sim_request *request = &world->requests[i];
        SIM_CHECK(world, request->exchange == NULL);
        SIM_CHECK(world, request->executions <= request->arrivals);
        SIM_CHECK(world, request->handled <= 1 && (request->arrivals == 0 || request->handled == 1));
    }
}

static void world_close(struct sim_world *world)
{
    loop_timer_clear(world->loop, &world->end_timer);
    if (world->server) http_server_free(&world->server);
    for (uint32_t i = 0; i < SIM_UPSTREAMS; i++) sim_upstream_stop(&world->upstreams[i]);
    http_client_free(&world->client);
    CHECK(!cy_failed(loop_flush(world->loop)));
    SIM_CHECK(world, buffer_pool_lent(loop_buffers(world->loop)) == 0);
    for (uint32_t i = 0; i < world->client_count; i++) sim_client_free(&world->clients[i]);
    sim_upstream_free_connections(world);
    world->stats->simulated_ms += loop_now_ms(world->loop);
    loop_free(&world->loop);
}

void sim_run(struct sim_world *world)
{
    sim_plan(world);
    world_open(world);
    while (world->done_count < world->client_count) world_turn(world);
    world_settle(world);
    world->stats->schedules++;
    world->stats->requests += world->request_count;
    world_close(world);
}

#undef SIM_TURNS_MAX
#undef SIM_MS_MAX
