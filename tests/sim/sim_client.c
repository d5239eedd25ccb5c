/* SPDX-License-Identifier: MIT
 *
 * tests/sim/sim_client.c: a client that sends its requests as planned and judges each answer.
 *
 * Sending: the next request goes out while fewer than `depth` are unanswered; a body behind Expect waits for 100 or for
 *       the client's patience to end. Receiving: every byte goes through the model; what is left over is a fault.
 */
#include "tests/sim/sim.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"

#include <stdio.h>

static void client_pump(struct sim_client *client);
static void client_read(struct sim_client *client);

const char *sim_outcome_name(unsigned outcome)
{
    static const char *const names[SIM_OUTCOMES] = {"exact", "500",   "502",      "504",
                                                    "408",   "short", "no answer"};
    return names[outcome];
}

static struct sim_request *client_current(struct sim_client *client)
{
    return client->answered < client->request_count ? client->requests[client->answered] : NULL;
}

/* -- judging ------------------------------------------------------------------------------------------------ */

/* May this become of a request for which `want` was planned? */
static bool client_allows(const struct sim_client *client, const struct sim_request *request,
                          unsigned outcome)
{
    const struct sim_row *row = client->world->row;
    bool repeats = request->is_idempotent && sim_is_bodyless(request);
    bool leaves = client->fault == SIM_CLIENT_LEAVES_SENT || client->fault == SIM_CLIENT_LEAVES_READ;
    if (outcome == request->want || request->also >> outcome & 1) return true;
    if (row->idle_closes && outcome == SIM_502 && !repeats) return true;
    if (row->resets_per_million && request->verdict == SIM_PROXY &&
        (outcome == SIM_502 || outcome == SIM_SHORT))
        return true;
    if (row->resets_per_million && (outcome == SIM_NO_ANSWER || outcome == SIM_SHORT)) return true;
    if (leaves && (outcome == SIM_NO_ANSWER || outcome == SIM_SHORT)) return true;
    if (client->fault == SIM_CLIENT_STALLS_READING && (outcome == SIM_NO_ANSWER || outcome == SIM_SHORT))
        return true;
    if (client->stalled && outcome == SIM_408) return true;
    if (client->fault == SIM_CLIENT_STALLS_SENDING && client->stalled && outcome == SIM_NO_ANSWER)
        return true;
    if (client->world->draining && outcome == SIM_NO_ANSWER) return client->world->cut || !request->handled;
    if (client->world->cut && outcome == SIM_SHORT) return true;
    /* An answer that is cut off may end with a reset, which can destroy what came before. */
    if (request->want == SIM_SHORT && outcome == SIM_NO_ANSWER) return true;
    return outcome == SIM_NO_ANSWER && client->ending == SIM_ENDED_BY_ANSWER;
}

/* Why an answer may say that the connection ends behind it. */
static bool client_allows_close(const struct sim_client *client, const struct sim_request *request,
                                unsigned outcome)
{
    bool unknown_length = request->verdict == SIM_PROXY && request->answer_body != SIM_BODY_LENGTH;
    bool stays_away = request->body_bytes > 0 && (request->expects || request->early || outcome != SIM_EXACT);
    return !request->keeps || stays_away || request->body_bytes > LIMIT_HTTP_DRAIN_BYTES ||
           client->fault == SIM_CLIENT_HALF_CLOSE || client->stalled || client->world->draining ||
           (client->minor_version == 0 && unknown_length && !sim_answer_is_bare(request)) ||
           outcome == SIM_408;
}

static void client_record(struct sim_client *client, struct sim_request *request, unsigned outcome)
{
    struct sim_world *world = client->world;
    request->outcome = (uint8_t)outcome;
    world->stats->outcomes[outcome]++;
    sim_trace(world, "client %u: request %u ends: %s", client->index, request->id, sim_outcome_name(outcome));
    if (!client_allows(client, request, outcome))
        sim_fail(world, "client %u, request %u: %s, but the model wants %s", client->index, request->id,
                 sim_outcome_name(outcome), sim_outcome_name(request->want));
}

/* -- the end ------------------------------------------------------------------------------------------------ */

static void client_finish(struct sim_client *client, enum sim_ending ending)
{
    struct sim_world *world = client->world;
    if (client->done) return;
    client->done = true;
    world->done_count++;
    bool by_answer = (client->closing || client->overfull) && ending != SIM_ENDED_ITSELF;
    client->ending = by_answer ? SIM_ENDED_BY_ANSWER : (uint8_t)ending;
    sim_trace(world, "client %u: connection ends (%d)", client->index, client->ending);
    if (client_current(client) && http_model_has_begun(&client->model) && !client->closing) {
        struct sim_request *request = client_current(client);
        client_record(client, request, SIM_SHORT);
        client->answered++;
        client->ending = SIM_ENDED_BY_ANSWER; /* the answer that was cut off ended it */
    }
    for (uint32_t i = client->answered; i < client->request_count; i++) {
        client_record(client, client->requests[i], SIM_NO_ANSWER);
        if (client->requests[i]->want == SIM_SHORT)
            client->ending = SIM_ENDED_BY_ANSWER; /* all of it was lost */
    }
    loop_timer_clear(world->loop, &client->timer);
    loop_timer_clear(world->loop, &client->read_timer);
    if (client->stream) stream_close(&client->stream);
}

static void client_leave(struct sim_client *client)
{
    if (client->fault_resets) stream_abort_on_close(client->stream);
    client_finish(client, SIM_ENDED_ITSELF);
}

/* -- answers ------------------------------------------------------------------------------------------------ */

static uint32_t client_read_id(const struct sim_client *client)
{
    cy_bytes value = http_model_field(&client->model, "X-Id", NULL);
    uint32_t id = 0;
    for (size_t i = 0; i < value.count; i++) id = id * 10 + (uint32_t)(value.data[i] - '0');
    return value.count ? id : UINT32_MAX;
}

static void client_on_interim(struct sim_client *client, struct sim_request *request)
{
    struct sim_world *world = client->world;
    SIM_CHECK(world, client->minor_version == 1);
    if (client->model.status == 100) {
        SIM_CHECK(world, request->expects);
        SIM_CHECK(world, client->continues++ == 0);
        world->stats->continues++;
        if (client->sending != client->answered) return; /* it was sent already, out of patience */
        client->may_send_body = true;
        client_pump(client);
        return;
    }
    SIM_CHECK(world, client_read_id(client) == request->id);
    SIM_CHECK(world, ++client->interims <= request->interims);
    world->stats->interims++;
}

/* A final head with the request's number in it. */
static void client_on_planned(struct sim_client *client, struct sim_request *request)
{
    const struct http_model *model = &client->model;
    struct sim_world *world = client->world;
    uint32_t count;
    SIM_CHECK(world, client_read_id(client) == request->id);
    SIM_CHECK(world, model->status == request->status);
    SIM_CHECK(world,
              request->verdict == SIM_RESPOND || (request->verdict == SIM_PROXY && request->arrivals > 0));
    http_model_field(model, "Date", &count);
    SIM_CHECK(world, count == 1);
    http_model_field(model, "X-Hop", &count);
    SIM_CHECK(world, count == 0);
    http_model_field(model, "Keep-Alive", &count);
    SIM_CHECK(world, count == 0);
    bool has_length = request->verdict == SIM_RESPOND || request->answer_body == SIM_BODY_LENGTH;
    bool bare = sim_answer_is_bare(request);
    if (has_length && request->status != 204 && request->status != 304)
        SIM_CHECK(world, model->has_length && model->length == request->answer_bytes);
    SIM_CHECK(world, bare || model->body != HTTP_MODEL_BODY_NONE || request->answer_bytes == 0);
    SIM_CHECK(world, model->body != HTTP_MODEL_BODY_CHUNKED || client->minor_version == 1);
    SIM_CHECK(world, model->body != HTTP_MODEL_BODY_UNTIL_CLOSE || client->minor_version == 0);
}

static void client_on_head(struct sim_client *client)
{
    struct sim_world *world = client->world;
    struct sim_request *request = client_current(client);
    const struct http_model *model = &client->model;
    sim_trace(world, "client %u: head %u for request %d", client->index, model->status,
              request ? (int)request->id : -1);
    SIM_CHECK(world, request && request->started); /* else: an answer that nobody asked for */
    if (model->status < 200) {
        client_on_interim(client, request);
        return;
    }
    client->body_bytes = 0;
    client->is_ours = client_read_id(client) != UINT32_MAX;
    if (client->is_ours) client_on_planned(client, request);
}

static enum sim_outcome client_outcome(const struct sim_client *client)
{
    if (client->is_ours) return SIM_EXACT;
    switch (client->model.status) {
    case 500: return SIM_500;
    case 502: return SIM_502;
    case 504: return SIM_504;
    case 408: return SIM_408;
    default:
        sim_fail(client->world, "client %u: status %u, which nobody planned", client->index,
                 client->model.status);
    }
}

static void client_check_whole(const struct sim_client *client, const struct sim_request *request)
{
    const struct http_model *model = &client->model;
    struct sim_world *world = client->world;
    bool bare = sim_answer_is_bare(request);
    SIM_CHECK(world, client->body_bytes == (bare ? 0 : request->answer_bytes));
    if (model->body == HTTP_MODEL_BODY_CHUNKED && request->answer_trailer) {
        char trailer[32];
        snprintf(trailer, sizeof trailer, "X-Trailer: %u\r\n", request->id);
        SIM_CHECK(world, cy_bytes_equal(builder_view(&model->trailer), cy_bytes_from_text(trailer)));
    } else {
        SIM_CHECK(world, model->trailer.count == 0);
    }
    if (request->verdict == SIM_PROXY && request->arrivals == 1)
        SIM_CHECK(world, client->interims == (client->minor_version ? request->interims_sent : 0));
    if (request->verdict == SIM_PROXY && !request->early) SIM_CHECK(world, request->executions > 0);
}

/* An answer is complete. */
static void client_on_answer(struct sim_client *client)
{
    struct sim_world *world = client->world;
    struct sim_request *request = client_current(client);
    enum sim_outcome outcome = client_outcome(client);
    if (outcome == SIM_EXACT) client_check_whole(client, request);
    client_record(client, request, outcome);
    bool closes = client->model.closes, unsent = client->sending == client->answered && client->head_sent;
    if (!request->keeps || request->answered_late) SIM_CHECK(world, closes);
    if (closes && !client_allows_close(client, request, outcome))
        sim_fail(world, "client %u: the answer to request %u closes the connection without a reason",
                 client->index, request->id);
    if (unsent && request->expects && !client->may_send_body)
        SIM_CHECK(world, closes); /* where would the body be? */
    client->closing = closes;
    /* Answered early, and more of its body follows than the server reads for the sake of the next request. */
    client->overfull |= request->body_bytes > LIMIT_HTTP_DRAIN_BYTES;
    client->answered++;
    client->interims = client->continues = 0;
    http_model_begin(&client->model);
    if (!client_current(client)) {
        if (!closes) loop_timer_set(world->loop, &client->timer, client->linger_ms + 1);
        return;
    }
    client->model.answers_head = client_current(client)->is_head;
    if (!closes) client_pump(client);
}

static void client_take(struct sim_client *client, cy_bytes rest)
{
    struct sim_world *world = client->world;
    cy_bytes piece;
    while (!client->done) {
        /* A HEAD that stopped in the middle is answered with a body: its method was not known yet. */
        if (client->closing && client->stalled) return;
        if (rest.count && (client->closing || !client_current(client)))
            sim_fail(world, "client %u: %zu bytes behind the last answer", client->index, rest.count);
        switch (http_model_step(&client->model, &rest, &piece)) {
        case HTTP_MODEL_MORE: return;
        case HTTP_MODEL_FAULT:
            sim_fail(world, "client %u, request %d: the answer breaks the rules: %s", client->index,
                     client_current(client) ? (int)client_current(client)->id : -1, client->model.fault);
        case HTTP_MODEL_HEAD: client_on_head(client); break;
        case HTTP_MODEL_DATA:
            if (client->is_ours) {
                const struct sim_request *request = client_current(client);
                SIM_CHECK(world, client->body_bytes + piece.count <= request->answer_bytes);
                SIM_CHECK(world, sim_is_body(piece, request->id, true, client->body_bytes));
            }
            client->body_bytes += piece.count;
            break;
        case HTTP_MODEL_END:
            if (client->model.status >= 200) {
                client_on_answer(client);
                break;
            }
            http_model_begin(&client->model);
            break;
        }
    }
}

static void client_on_end(struct sim_client *client, cy_err err)
{
    sim_trace(client->world, "client %u: stream ends (%s)", client->index, cy_failed(err) ? "reset" : "fin");
    bool until_close = http_model_has_begun(&client->model) && http_model_may_end(&client->model);
    if (!cy_failed(err) && until_close && client_current(client)) client_on_answer(client);
    client_finish(client, cy_failed(err) ? SIM_ENDED_BY_RESET : SIM_ENDED_BY_FIN);
}

static void client_on_read(struct stream_read *read)
{
    struct sim_client *client = CY_CONTAINER_OF(read, struct sim_client, read);
    client->reading = false;
    if (!client->stream) {
        buffer_unref(&read->buffer);
        return;
    }
    if (!read->buffer) {
        client_on_end(client, read->err);
        return;
    }
    client->received_bytes += read->buffer->end - read->buffer->begin;
    client_take(client, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    if (client->done) return;
    bool enough = client->received_bytes >= client->fault_bytes;
    if (enough && client->fault == SIM_CLIENT_LEAVES_READ) {
        client_leave(client);
        return;
    }
    uint32_t pause_ms = client->slow_reads ? client->slow_ms : 0;
    if (client->slow_reads) client->slow_reads--;
    if (enough && client->fault == SIM_CLIENT_STALLS_READING && !client->stalled) {
        client->stalled = true;
        pause_ms = 20000;
    }
    if (pause_ms)
        loop_timer_set(client->world->loop, &client->read_timer, pause_ms);
    else
        client_read(client);
}

static void client_read(struct sim_client *client)
{
    if (client->reading || client->done) return;
    client->reading = true;
    stream_read_start(client->stream, &client->read);
}
static void client_on_read_timer(struct timer *timer)
{
    client_read(CY_CONTAINER_OF(timer, struct sim_client, read_timer));
}

/* -- questions ---------------------------------------------------------------------------------------------- */

static void client_put_body(struct sim_client *client, struct sim_request *request)
{
    if (request->body == SIM_BODY_LENGTH)
        sim_put_body(&client->out, request->id, false, 0, request->body_bytes);
    else if (request->body == SIM_BODY_CHUNKED)
        sim_put_chunks(client->world, &client->out, request->id, false, request->body_bytes,
                       request->has_trailer);
}

static void client_put_head(struct sim_client *client, struct sim_request *request)
{
    struct builder *out = &client->out;
    builder_printf(out, "%s /r/%u?x=%u HTTP/1.%u\r\nHost: sim.test\r\nX-Id: %u\r\n", request->method,
                   request->id, request->id * 7, client->minor_version, request->id);
    if (request->body == SIM_BODY_LENGTH ||
        (request->body == SIM_BODY_NONE && strcmp(request->method, "POST") == 0))
        builder_printf(out, "Content-Length: %u\r\n", request->body_bytes);
    else if (request->body == SIM_BODY_CHUNKED)
        builder_text(out, "Transfer-Encoding: chunked\r\n");
    if (request->expects) builder_text(out, "Expect: 100-continue\r\n");
    if (request->claims) builder_text(out, "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n");
    if (request->lists_hop) builder_text(out, "X-Hop: 1\r\n");
    bool says_close = client->minor_version == 1 && !request->keeps;
    bool says_keep = client->minor_version == 0 && request->keeps;
    if (says_close || says_keep || request->lists_hop)
        builder_printf(out, "Connection: %s%s%s\r\n", request->lists_hop ? "X-Hop" : "",
                       request->lists_hop && (says_close || says_keep) ? ", " : "",
                       says_close  ? "close"
                       : says_keep ? "keep-alive"
                                   : "");
    builder_text(out, "\r\n");
}

static void client_on_written(struct stream_write *write)
{
    struct sim_client *client = CY_CONTAINER_OF(write, struct sim_client, write);
    struct sim_world *world = client->world;
    client->writing = false;
    if (!client->stream) return;
    client->sent_bytes += write->send.sent_bytes;
    if (cy_failed(write->err)) {
        client->write_failed = true; /* the read tells what became of it */
        return;
    }
    bool enough = client->sent_bytes >= client->fault_bytes;
    if (enough && client->fault == SIM_CLIENT_LEAVES_SENT) {
        client_leave(client);
        return;
    }
    if (enough && client->fault == SIM_CLIENT_STALLS_SENDING) {
        sim_trace(world, "client %u: stalls", client->index);
        client->stalled = true;
        return;
    }
    struct sim_request *request = client->requests[client->sending];
    if (request->expects && !client->sending_body) { /* the head is out */
        if (client->may_send_body)
            client_pump(client);
        else if (request->patience_ms)
            loop_timer_set(world->loop, &client->timer, request->patience_ms);
        return;
    }
    request->whole = true;
    client->head_sent = client->sending_body = client->may_send_body = client->waiting = false;
    client->sending++;
    if (client->sending == client->request_count && client->fault == SIM_CLIENT_HALF_CLOSE)
        stream_shutdown_write(client->stream);
    client_pump(client);
}

static void client_write(struct sim_client *client)
{
    size_t count = client->out.count;
    CHECK(!client->out.failed);
    if (client->fault == SIM_CLIENT_LEAVES_SENT || client->fault == SIM_CLIENT_STALLS_SENDING) {
        uint64_t left =
            client->fault_bytes > client->sent_bytes ? client->fault_bytes - client->sent_bytes : 1;
        count = cy_min_size(count, (size_t)(left ? left : 1));
    }
    client->writing = true;
    client->write.send.parts[0] = cy_bytes_of(client->out.data, count);
    client->write.send.part_count = 1;
    stream_write_start(client->stream, &client->write);
}

static void client_pump(struct sim_client *client)
{
    struct sim_world *world = client->world;
    if (client->writing || client->stalled || client->closing || client->write_failed || client->done) return;
    if (client->sending == client->request_count || !client->stream) return;
    struct sim_request *request = client->requests[client->sending];
    if (client->head_sent) {
        if (!client->may_send_body) return;
        builder_clear(&client->out);
        client_put_body(client, request);
        client->sending_body = true;
        client_write(client);
        return;
    }
    if ((int)client->sending - (int)client->answered >= (int)client->depth) return;
    if (client->sending > 0 && !client->requests[client->sending - 1]->keeps)
        return; /* it has said that it goes */
    if (request->pause_ms && !client->waiting) {
        client->waiting = true;
        loop_timer_set(world->loop, &client->timer, request->pause_ms);
        return;
    }
    if (client->waiting && timer_is_set(&client->timer)) return;
    sim_trace(world, "client %u: sends %s request %u, body %u bytes", client->index, request->method,
              request->id, request->body_bytes);
    request->started = client->head_sent = true;
    builder_clear(&client->out);
    client_put_head(client, request);
    if (!request->expects) client_put_body(client, request);
    client_write(client);
}

/* -- the beginning ------------------------------------------------------------------------------------------ */

static void client_on_connected(struct loop_op *op)
{
    struct loop_connect *connect = CY_CONTAINER_OF(op, struct loop_connect, op);
    struct sim_client *client = CY_CONTAINER_OF(connect, struct sim_client, connect);
    if (cy_failed(op->err)) {
        client_finish(client, SIM_ENDED_BY_RESET);
        return;
    }
    CHECK(!cy_failed(stream_tcp_new(client->world->loop, connect->socket, &client->stream)));
    client_read(client);
    client_pump(client);
}

/* One timer: to begin, to go on sending, or to go. */
static void client_on_timer(struct timer *timer)
{
    struct sim_client *client = CY_CONTAINER_OF(timer, struct sim_client, timer);
    if (client->done) return;
    if (!client->stream) {
        loop_connect(client->world->loop, &client->world->server_address, &client->connect);
        return;
    }
    if (!client_current(client)) {
        client_leave(client);
        return;
    }
    if (client->head_sent && !client->writing) client->may_send_body = true; /* out of patience */
    client_pump(client);
}

void sim_client_start(struct sim_client *client)
{
    http_model_init(&client->model, true);
    client->model.answers_head = client->requests[0]->is_head;
    builder_init(&client->out);
    client->connect.op.done = client_on_connected;
    client->read.done = client_on_read;
    client->write.done = client_on_written;
    client->timer.fire = client_on_timer;
    client->read_timer.fire = client_on_read_timer;
    loop_timer_set(client->world->loop, &client->timer, client->start_ms + 1);
}

void sim_client_free(struct sim_client *client)
{
    http_model_fini(&client->model);
    builder_fini(&client->out);
}
