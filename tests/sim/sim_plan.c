/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim_plan.c: draws what shall happen in a schedule, and the bytes of its bodies.
 *
 * The plan depends on seed and row alone, not on the order in which things then happen.
 */
#include "tests/sim/sim.h"

#include "vm/base/limits.h"

const struct sim_row sim_rows[] = {
    /* name, share, pieces, reorder, resets, window, upstream faults, idle closes, client faults, stray, server ends */
    {"calm", 15, false, false, 0, 65536, false, false, false, false, false},
    {"pieces", 17, true, true, 0, 20000, false, false, false, false, false},
    {"narrow", 4, true, true, 0, 700, false, false, false, false, false},
    {"upstreams", 20, true, true, 0, 20000, true, false, false, false, false},
    {"idle", 10, true, true, 0, 20000, false, true, false, false, false},
    {"stray", 5, false, true, 0, 65536, true, false, false, true, false},
    {"clients", 10, true, true, 0, 20000, false, false, true, false, false},
    {"resets", 7, true, true, 3000, 20000, false, false, false, false, false},
    {"ends", 4, true, true, 0, 20000, false, false, false, false, true},
    {"all", 3, true, true, 1000, 9000, true, true, true, false, true},
    {"drains", 5, true, true, 0, 20000, false, false, false, false, true},
    {NULL, 0, false, false, 0, 0, false, false, false, false, false},
};

/* splitmix64, as the network has it, with a state of its own. */
uint64_t sim_random(struct sim_world *world, uint64_t below)
{
    uint64_t z = world->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return below ? z % below : 0;
}
bool sim_chance(struct sim_world *world, unsigned percent) { return sim_random(world, 100) < percent; }

/* -- bodies ------------------------------------------------------------------------------------------------- */

/* Four bytes at a time; any value, CR and LF too. */
static uint32_t sim_body_word(uint32_t id, bool is_answer, uint64_t word)
{
    uint32_t z = (id * 2 + is_answer + 1) * 0x9e3779b1u + (uint32_t)word * 0x85ebca6bu;
    z = (z ^ z >> 15) * 0xc2b2ae35u;
    return z ^ z >> 13;
}
static uint8_t sim_body_byte(uint32_t id, bool is_answer, uint64_t offset)
{
    return (uint8_t)(sim_body_word(id, is_answer, offset / 4) >> offset % 4 * 8);
}

void sim_put_body(struct builder *out, uint32_t id, bool is_answer, uint64_t offset, size_t count)
{
    uint8_t *room = builder_reserve(out, count);
    if (!room) return;
    for (size_t i = 0; i < count; i++) room[i] = sim_body_byte(id, is_answer, offset + i);
    out->count += count;
}

bool sim_is_body(cy_bytes bytes, uint32_t id, bool is_answer, uint64_t offset)
{
    for (size_t i = 0; i < bytes.count; i++)
        if (bytes.data[i] != sim_body_byte(id, is_answer, offset + i)) return false;
    return true;
}

void sim_put_chunks(struct sim_world *world, struct builder *out, uint32_t id, bool is_answer, uint32_t count,
                    bool has_trailer)
{
    struct builder piece, trailer;
    builder_init(&piece);
    builder_init(&trailer);
    for (uint32_t at = 0, bytes; at < count; at += bytes) {
        bytes =
            1 + (uint32_t)sim_random(world, sim_chance(world, 70) ? count - at : 1 + (count - at - 1) % 40);
        builder_clear(&piece);
        sim_put_body(&piece, id, is_answer, at, bytes);
        http_model_put_chunk(out, builder_view(&piece));
    }
    if (has_trailer) builder_printf(&trailer, "X-Trailer: %u\r\n", id);
    http_model_put_last_chunk(out, builder_view(&trailer));
    builder_fini(&piece);
    builder_fini(&trailer);
}

struct sim_request *sim_find_request(struct sim_world *world, cy_bytes target)
{
    uint32_t id = 0;
    if (target.count < 4 || memcmp(target.data, "/r/", 3) != 0) return NULL;
    for (size_t i = 3; i < target.count && target.data[i] != '?'; i++) {
        if (target.data[i] < '0' || target.data[i] > '9' || id > SIM_REQUESTS_MAX) return NULL;
        id = id * 10 + (uint32_t)(target.data[i] - '0');
    }
    return id < world->request_count ? &world->requests[id] : NULL;
}

bool sim_answer_is_bare(const struct sim_request *request)
{
    return request->is_head || request->status == 204 || request->status == 304;
}

bool sim_is_bodyless(const struct sim_request *request)
{
    return request->body != SIM_BODY_CHUNKED && request->body_bytes == 0;
}

/* -- drawing ------------------------------------------------------------------------------------------------ */

static uint32_t sim_plan_size(struct sim_world *world)
{
    bool narrow = world->row->window_bytes < 10000;
    switch (sim_random(world, 16)) {
    case 0: return 0;
    case 1: return 1;
    case 2:
    case 3: return (uint32_t)sim_random(world, narrow ? 9000 : 60000);
    case 4:
        return narrow ? 1400
                      : LIMIT_BUFFER_BYTES - 300 + (uint32_t)sim_random(world, 600); /* round a buffer */
    case 5:
        return (uint32_t)sim_random(world, 8) || narrow ? 500 : 300000 + (uint32_t)sim_random(world, 100000);
    default: return (uint32_t)sim_random(world, 1500);
    }
}

static void sim_plan_question(struct sim_world *world, struct sim_client *client, struct sim_request *request)
{
    static const struct {
        const char *name;
        unsigned share;
        bool has_body, is_idempotent;
    } methods[] = {{"GET", 40, false, true}, {"HEAD", 10, false, true},  {"POST", 25, true, false},
                   {"PUT", 13, true, true},  {"DELETE", 6, false, true}, {"OPTIONS", 3, false, true},
                   {"PATCH", 3, true, false}};
    unsigned row = 0, at = (unsigned)sim_random(world, 100);
    while (at >= methods[row].share) at -= methods[row++].share;
    request->method = methods[row].name;
    request->is_head = row == 1;
    request->is_idempotent = methods[row].is_idempotent;
    request->minor_version = client->minor_version;
    request->keeps = sim_chance(world, client->minor_version ? 94 : 60);
    if (methods[row].has_body && sim_chance(world, 85)) {
        request->body = client->minor_version && sim_chance(world, 50) ? SIM_BODY_CHUNKED : SIM_BODY_LENGTH;
        request->body_bytes = sim_plan_size(world);
        request->has_trailer = request->body == SIM_BODY_CHUNKED && sim_chance(world, 30);
        request->expects = client->minor_version && request->body_bytes && sim_chance(world, 20);
        if (request->expects && sim_chance(world, 40))
            request->patience_ms = 1 + (uint32_t)sim_random(world, 2000);
    }
    request->claims = sim_chance(world, 20);
    request->lists_hop = sim_chance(world, 20);
    if (sim_chance(world, 20)) request->pause_ms = 1 + (uint32_t)sim_random(world, 700);
    if (world->drains) request->pause_ms = (uint32_t)sim_random(world, 60); /* one is always on its way */
}

static void sim_plan_fault(struct sim_world *world, struct sim_request *request)
{
    bool has_body = !sim_answer_is_bare(request) && request->answer_bytes > 0;
    request->fault_part = (uint32_t)sim_random(world, 1000);
    request->fault_resets = sim_chance(world, 40);
    if (world->row->stray) {
        if (sim_chance(world, 50) && request->answer_body != SIM_BODY_UNTIL_CLOSE &&
            request->answer_bytes < 20000) {
            request->fault = SIM_FAULT_STRAY;
            request->slices = 1;
            request->early = false;
        }
        return;
    }
    uint8_t fault = 1 + (uint8_t)sim_random(world, SIM_FAULT_STRAY - 1);
    bool in_body =
        fault == SIM_FAULT_CUT_BODY || fault == SIM_FAULT_STALL_BODY || fault == SIM_FAULT_BAD_CHUNK;
    if (in_body && !has_body) fault = SIM_FAULT_CLOSE;
    if (fault == SIM_FAULT_BAD_CHUNK && request->answer_body != SIM_BODY_CHUNKED) fault = SIM_FAULT_CUT_BODY;
    request->fault = fault;
    if (fault != SIM_FAULT_CUT_BODY && fault != SIM_FAULT_STALL_BODY) request->early = false;
}

static void sim_plan_answer(struct sim_world *world, struct sim_request *request)
{
    static const unsigned statuses[] = {200, 200, 200, 200, 200, 200, 201, 204, 302, 304, 404, 500};
    unsigned verdict = (unsigned)sim_random(world, 100);
    request->verdict = verdict < 27 ? SIM_RESPOND : verdict < 30 ? SIM_FAIL : SIM_PROXY;
    if (sim_chance(world, 25)) request->think_ms = 1 + (uint32_t)sim_random(world, 300);
    if (world->drains) request->think_ms %= 60;
    request->upstream = (uint32_t)sim_random(world, SIM_UPSTREAMS);
    request->status = statuses[sim_random(world, CY_COUNT_OF(statuses))];
    request->answer_bytes = request->status == 204 || request->status == 304 ? 0 : sim_plan_size(world);
    if (request->verdict != SIM_PROXY) {
        request->want = request->verdict == SIM_FAIL ? SIM_500 : SIM_EXACT;
        return;
    }
    unsigned framing = (unsigned)sim_random(world, 100);
    request->answer_body = framing < 45   ? SIM_BODY_LENGTH
                           : framing < 85 ? SIM_BODY_CHUNKED
                                          : SIM_BODY_UNTIL_CLOSE;
    request->answer_old = request->answer_body != SIM_BODY_CHUNKED && sim_chance(world, 8);
    request->answer_trailer = request->answer_body == SIM_BODY_CHUNKED && sim_chance(world, 30);
    request->answer_closes = sim_chance(world, 8);
    request->early = request->body_bytes > 0 && sim_chance(world, 20);
    request->sends_continue = sim_chance(world, 60);
    if (sim_chance(world, 20)) request->interims = 1 + (unsigned)sim_random(world, 3);
    request->slices = sim_chance(world, 25) ? 1 + (unsigned)sim_random(world, 5) : 1;
    request->gap_ms = (uint32_t)sim_random(world, 300);
    if ((world->row->upstream_faults || world->row->stray) && sim_chance(world, 25))
        sim_plan_fault(world, request);
}

static void sim_plan_client(struct sim_world *world, struct sim_client *client)
{
    client->minor_version = sim_chance(world, 85);
    client->depth = client->minor_version == 0 || sim_chance(world, 50)
                        ? 1
                        : 1 + (uint32_t)sim_random(world, SIM_CLIENT_REQUESTS_MAX);
    client->request_count = 1 + (uint32_t)sim_random(world, SIM_CLIENT_REQUESTS_MAX);
    if (world->drains) client->depth = SIM_CLIENT_REQUESTS_MAX;
    client->start_ms = sim_chance(world, 60) || world->drains ? 0 : (uint32_t)sim_random(world, 1500);
    client->linger_ms = sim_chance(world, 50) ? 0 : (uint32_t)sim_random(world, 1000);
    if (sim_chance(world, 20)) {
        client->slow_reads = 1 + (uint32_t)sim_random(world, 6);
        client->slow_ms = 1 + (uint32_t)sim_random(world, 200);
    }
    if (sim_chance(world, 15)) client->fault = SIM_CLIENT_HALF_CLOSE;
    if (world->row->client_faults && sim_chance(world, 60)) {
        client->fault = SIM_CLIENT_LEAVES_SENT + (uint8_t)sim_random(world, 4);
        client->fault_bytes = sim_random(world, sim_chance(world, 50) ? 1000 : 20000);
        client->fault_resets = sim_chance(world, 50);
    }
    for (uint32_t i = 0; i < client->request_count; i++) {
        struct sim_request *request = &world->requests[world->request_count];
        request->id = world->request_count++;
        request->world = world;
        request->client = client;
        request->outcome = SIM_NO_ANSWER;
        client->requests[i] = request;
        sim_plan_question(world, client, request);
        sim_plan_answer(world, request);
    }
}

void sim_plan(struct sim_world *world)
{
    world->client_count = 1 + (uint32_t)sim_random(world, SIM_CLIENTS_MAX);
    world->drains = strcmp(world->row->name, "drains") == 0;
    if (world->drains) {
        world->end_ms = 1 + (uint32_t)sim_random(world, 200);
    } else if (world->row->server_ends && sim_chance(world, 80)) {
        world->end_ms = 1 + (uint32_t)sim_random(world, 1500);
        world->end_cuts = sim_chance(world, 40);
    }
    for (uint32_t i = 0; i < world->client_count; i++) {
        world->clients[i].world = world;
        world->clients[i].index = i;
        sim_plan_client(world, &world->clients[i]);
    }
}
