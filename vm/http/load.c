/* SPDX-License-Identifier: MIT
 *
 * vm/http/load.c: a load run: its phases, when each request is due, and what is counted.
 *
 * In:   options. Out: load_result.
 * Invariant: a request is measured when it was due in [begin_ns, end_ns), however it ended, and is then in exactly one
 *       of `well_count` and `faults`. Requests per second and CPU are of what ended between the two samples.
 * Not here:  connections (load_connection.c), the form of requests and answers (load_h1.c).
 */
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/load_internal.h"
#include "vm/sys/alarm.h"

#include <unistd.h>

#define LOAD_TIMEOUT_MS 10000u
#define LOAD_DRAIN_MS 2000u

static void load_dispatch(struct load *load, uint64_t now_ns);
static void load_begin_measuring(struct load *load);
static void load_begin_warm_up(struct load *load);
static void load_finish(struct load *load);

static bool load_is_open_loop(const struct load *load) { return load->options.rate_per_s > 0; }

static bool load_has_started_all(const struct load *load)
{
    uint64_t count_max = load->options.request_count_max;
    return count_max > 0 && load->measured_started_count >= count_max;
}

/* Open loop: a request of the measurement (or of the warm-up) is still to be sent, now or later. */
static bool load_has_due(const struct load *load)
{
    return load_is_open_loop(load) && load->next_due_ns < load->end_ns && !load_has_started_all(load);
}

/* -- counting -------------------------------------------------------------------------------------------- */

static enum load_fault load_judge(struct load *load, const struct load_slot *slot)
{
    struct load_request *request = &load->requests[slot->row];
    struct load_expectation *expect = &request->expect;
    if (expect->status ? slot->status != expect->status : slot->status < 200 || slot->status > 399)
        return LOAD_FAULT_STATUS;
    if (load->options.same_body && !expect->has_crc32c) {
        expect->has_crc32c = expect->has_length = true;
        expect->crc32c = slot->crc32c;
        expect->length = slot->body_bytes;
    }
    if (expect->has_length && !request->is_head && slot->body_bytes != expect->length)
        return LOAD_FAULT_LENGTH;
    if (expect->has_crc32c && !request->is_head && slot->crc32c != expect->crc32c) return LOAD_FAULT_CONTENT;
    return LOAD_FAULT_NONE;
}

/* `connection` NULL: on none. */
static void load_tell_failure(struct load *load, const struct load_connection *connection,
                              enum load_fault fault, uint16_t status)
{
    if (!load->options.on_failure) return;
    struct load_failure failure = {
        .fault = fault, .status = status, .failed_ns = loop_now_ns(load->options.loop)};
    if (connection) {
        failure.local_port = connection->local_port;
        failure.began_ns = connection->began_ns;
    }
    load->options.on_failure(load->options.owner, &failure);
}

static void load_count(struct load *load, uint64_t due_ns, uint64_t now_ns, enum load_fault fault)
{
    struct load_result *result = &load->result;
    if (due_ns < load->begin_ns || due_ns >= load->end_ns) return;
    result->measured_count++;
    if (fault == LOAD_FAULT_NONE)
        result->well_count++;
    else
        result->faults[fault]++;
    if (fault == LOAD_FAULT_NONE || fault == LOAD_FAULT_TIMEOUT || fault == LOAD_FAULT_UNANSWERED)
        histogram_add(&result->latency, now_ns > due_ns ? now_ns - due_ns : 0);
}

void load_count_received(struct load *load, size_t count)
{
    if (load->phase == LOAD_PHASE_MEASURING) load->result.received_bytes += count;
}

static cy_err load_read_watched(const struct load *load, struct cpu_usage *sum_out)
{
    *sum_out = (struct cpu_usage){0, 0};
    for (uint32_t i = 0; i < load->options.watched_count; i++) {
        struct cpu_usage one;
        CY_TRY(usage_of_process(load->options.watched[i], &one));
        sum_out->user_us += one.user_us;
        sum_out->system_us += one.system_us;
    }
    return CY_OK;
}

static void load_sample_begin(struct load *load)
{
    load->result.has_watched =
        load->options.watched_count > 0 && !cy_failed(load_read_watched(load, &load->watched_begin));
    if (cy_failed(usage_of_self(&load->self_begin))) load->self_begin = (struct cpu_usage){0, 0};
    load->sample_ns = loop_now_ns(load->options.loop);
}

static void load_sample_end(struct load *load)
{
    struct load_result *result = &load->result;
    struct cpu_usage self, watched;
    result->elapsed_ns = loop_now_ns(load->options.loop) - load->sample_ns;
    if (!cy_failed(usage_of_self(&self))) {
        result->self.user_us = self.user_us - load->self_begin.user_us;
        result->self.system_us = self.system_us - load->self_begin.system_us;
    }
    if (result->has_watched && cy_failed(load_read_watched(load, &watched))) result->has_watched = false;
    if (!result->has_watched) return;
    result->watched.user_us = watched.user_us - load->watched_begin.user_us;
    result->watched.system_us = watched.system_us - load->watched_begin.system_us;
}

/* -- slots ----------------------------------------------------------------------------------------------- */

static bool load_may_start(const struct load *load)
{
    return load->phase == LOAD_PHASE_WARM_UP ||
           (load->phase == LOAD_PHASE_MEASURING && !load_has_started_all(load));
}

static void load_slot_on_timer(struct timer *timer)
{
    struct load_slot *slot = CY_CONTAINER_OF(timer, struct load_slot, timer);
    if (slot->busy && slot->connection->state == LOAD_CONNECTION_OPEN)
        slot->connection->load->protocol->on_timeout(slot);
}

static void load_slot_send(struct load_slot *slot)
{
    struct load *load = slot->connection->load;
    slot->timer.fire = load_slot_on_timer;
    loop_timer_set(load->options.loop, &slot->timer, load->options.timeout_ms);
    load->protocol->send(slot);
}

static void load_slot_begin(struct load_slot *slot, uint64_t due_ns)
{
    struct load *load = slot->connection->load;
    DCHECK(!slot->busy);
    slot->busy = true;
    slot->due_ns = due_ns;
    slot->row = load_mix_next(&load->mix);
    slot->status = 0;
    slot->body_bytes = 0;
    slot->crc32c = 0;
    load->busy_count++;
    if (load->phase >= LOAD_PHASE_MEASURING) load->measured_started_count++;
    if (slot->connection->state == LOAD_CONNECTION_OPEN)
        load_slot_send(slot);
    else
        load_connection_open(slot->connection); /* load_on_open sends */
}

void load_slot_end(struct load_slot *slot, enum load_fault fault)
{
    struct load *load = slot->connection->load;
    uint64_t now_ns = loop_now_ns(load->options.loop);
    DCHECK(slot->busy);
    slot->busy = false;
    load->busy_count--;
    load->finished_count++;
    if (fault == LOAD_FAULT_NONE) fault = load_judge(load, slot);
    if (fault != LOAD_FAULT_NONE) load_tell_failure(load, slot->connection, fault, slot->status);
    if (load->phase == LOAD_PHASE_MEASURING && fault == LOAD_FAULT_NONE) load->result.answered_count++;
    if (slot->status && slot->due_ns >= load->begin_ns && slot->due_ns < load->end_ns)
        load->result.statuses[cy_min_size(slot->status, 599)]++;
    load_count(load, slot->due_ns, now_ns, fault);
    /* What was counted on has ended: the last one, or the last one that was on its way. */
    if (load->busy_count > 0 || load->options.idle) return;
    if (load->phase == LOAD_PHASE_MEASURING && !load_may_start(load)) load_stop(load);
    if (load->phase == LOAD_PHASE_DRAINING && !load_has_due(load)) load_finish(load);
}

static bool load_slot_is_usable(const struct load_slot *slot)
{
    const struct load_protocol *protocol = slot->connection->load->protocol;
    uint8_t state = slot->connection->state;
    if (slot->busy) return false;
    if (state == LOAD_CONNECTION_OPEN) return !protocol->has_room || protocol->has_room(slot->connection);
    return slot->connection->load->options.keeping == LOAD_NEW && state == LOAD_CONNECTION_CLOSED;
}

static void load_slot_queue(struct load_slot *slot)
{
    struct load *load = slot->connection->load;
    if (slot->queued) return;
    slot->queued = true;
    slot->next = NULL;
    if (load->free_last)
        load->free_last->next = slot;
    else
        load->free_first = slot;
    load->free_last = slot;
}

/* A usable slot, NULL when there is none. */
static struct load_slot *load_slot_take(struct load *load)
{
    while (load->free_first) {
        struct load_slot *slot = load->free_first;
        load->free_first = slot->next;
        if (!load->free_first) load->free_last = NULL;
        slot->queued = false;
        if (load_slot_is_usable(slot))
            return slot; /* else its connection was lost: it comes back when that does */
    }
    return NULL;
}

static void load_idle_answered(struct load *load)
{
    if (++load->answered_idle < load->options.connections || load->phase != LOAD_PHASE_OPENING) return;
    load_begin_measuring(load);
    if (load->options.on_idle) load->options.on_idle(load->options.owner);
}

void load_slot_free(struct load_slot *slot)
{
    struct load *load = slot->connection->load;
    if (load->options.idle) {
        load_idle_answered(load);
    } else if (load_is_open_loop(load)) {
        load_slot_queue(slot);
        load_dispatch(load, loop_now_ns(load->options.loop));
    } else if (load_may_start(load)) {
        load_slot_begin(slot, loop_now_ns(load->options.loop));
    }
}

/* -- the schedule ---------------------------------------------------------------------------------------- */

static void load_schedule_advance(struct load *load)
{
    load->schedule_index++;
    load->next_due_ns =
        load->schedule_begin_ns + (uint64_t)((double)load->schedule_index * 1e9 / load->options.rate_per_s);
}

static void load_one_closed(struct load *load)
{
    if (--load->unclosed_count > 0) return;
    load->phase = LOAD_PHASE_ENDED;
    load->options.done(load->options.owner);
}

static void load_alarm_on_ready(struct loop_op *op)
{
    struct load *load = CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct load, alarm_ready);
    load->alarm_outstanding = false;
    load->alarm_ns = 0;
    if (load->phase == LOAD_PHASE_STOPPING)
        load_one_closed(load);
    else if (!cy_failed(op->err))
        load_dispatch(load, loop_now_ns(load->options.loop));
}

static void load_on_pace(struct timer *timer)
{
    struct load *load = CY_CONTAINER_OF(timer, struct load, pace_timer);
    load_dispatch(load, loop_now_ns(load->options.loop));
}

/* Wakes us at the next due time. */
static void load_pace(struct load *load, uint64_t now_ns)
{
    struct loop *loop = load->options.loop;
    if (load->alarm_ns == load->next_due_ns) return;
    if (!load->alarm || cy_failed(alarm_set(load->alarm_descriptor, load->next_due_ns))) {
        loop_timer_set(loop, &load->pace_timer, (load->next_due_ns - now_ns + 999999u) / 1000000u);
        return;
    }
    load->alarm_ns = load->next_due_ns;
    if (load->alarm_outstanding) return;
    load->alarm_outstanding = true;
    load->alarm_ready.want_read = true;
    loop_ready(load->alarm, &load->alarm_ready);
}

/* Sends what is due while there are slots. After the end, what was due before it. */
static void load_dispatch(struct load *load, uint64_t now_ns)
{
    bool draining = load->phase == LOAD_PHASE_DRAINING;
    bool starved = load->starved;
    load->starved = false;
    while ((draining || load_may_start(load)) && load_has_due(load) && load->next_due_ns <= now_ns) {
        struct load_slot *slot = load_slot_take(load);
        if (!slot) {
            load->starved = true;
            return; /* load_slot_free comes back here */
        }
        uint64_t due_ns = load->next_due_ns;
        load_schedule_advance(load);
        if (due_ns >= load->begin_ns) {
            if (starved)
                load->result.queued_count++;
            else
                histogram_add(&load->result.lag, now_ns - due_ns);
        }
        load_slot_begin(slot, due_ns);
    }
    if (load_may_start(load)) load_pace(load, now_ns);
}

/* -- connections tell ------------------------------------------------------------------------------------ */

static void load_open_more(struct load *load)
{
    while (load->phase == LOAD_PHASE_OPENING && load->opening_count < LIMIT_LOAD_OPENING &&
           load->opening_next < load->options.connections) {
        load->opening_count++;
        load_connection_open(&load->connections[load->opening_next++]);
    }
}

void load_on_open(struct load_connection *connection)
{
    struct load *load = connection->load;
    uint32_t slot_count = load->slot_count;
    if (load->phase == LOAD_PHASE_OPENING) {
        load->opening_count--;
        if (load->options.idle) load_slot_begin(&connection->slots[0], loop_now_ns(load->options.loop));
        load_open_more(load);
        if (!load->options.idle && load->open_count == load->options.connections) load_begin_warm_up(load);
        return;
    }
    for (uint32_t i = 0; i < slot_count && connection->state == LOAD_CONNECTION_OPEN; i++) {
        struct load_slot *slot = &connection->slots[i];
        if (slot->busy)
            load_slot_send(slot);
        else
            load_slot_free(slot);
    }
}

void load_on_connect_failed(struct load_connection *connection, enum load_fault fault, cy_err err)
{
    struct load *load = connection->load;
    if (load->phase == LOAD_PHASE_OPENING) {
        load_tell_failure(load, connection, fault, 0);
        load->result.err = err;
        load_finish(load);
        return;
    }
    if (load->options.keeping == LOAD_KEEP) load_tell_failure(load, connection, fault, 0);
    if (load->options.keeping == LOAD_KEEP && load->phase == LOAD_PHASE_MEASURING) {
        /* No request is on it, but it stands for one: else a run of N requests might never end. */
        load->measured_started_count++;
        load->result.measured_count++;
        load->result.faults[fault]++;
        if (load_has_started_all(load) && load->busy_count == 0) load_stop(load);
    }
}

void load_on_closed(struct load_connection *connection)
{
    struct load *load = connection->load;
    if (load->phase == LOAD_PHASE_STOPPING) {
        load_one_closed(load);
    } else if (load->options.idle) {
        load->result.faults[LOAD_FAULT_CLOSED]++;
        load->result.measured_count++;
        load_tell_failure(load, connection, LOAD_FAULT_CLOSED, 0);
        if (load->phase == LOAD_PHASE_OPENING) load_idle_answered(load);
    } else if (connection->has_failed && (load->options.keeping == LOAD_KEEP || !load_is_open_loop(load))) {
        load_connection_pause(connection);
    } else if (load->options.keeping == LOAD_KEEP) {
        if (load->phase == LOAD_PHASE_OPENING) load->opening_count++; /* lost before all were open */
        load_connection_open(connection);
    } else {
        load_slot_free(connection->slots);
    }
}

/* -- phases ---------------------------------------------------------------------------------------------- */

static void load_start_traffic(struct load *load)
{
    uint64_t now_ns = loop_now_ns(load->options.loop);
    size_t slot_count = (size_t)load->options.connections * load->slot_count;
    load->schedule_begin_ns = load->next_due_ns = now_ns;
    load->schedule_index = 0;
    for (size_t i = 0; i < slot_count; i++) {
        struct load_slot *slot = &load->slots[i];
        if (load_is_open_loop(load))
            load_slot_queue(slot);
        else if (load_may_start(load) && load_slot_is_usable(slot))
            load_slot_begin(slot, now_ns);
    }
    if (load_is_open_loop(load)) load_dispatch(load, now_ns);
}

static void load_begin_measuring(struct load *load)
{
    load->phase = LOAD_PHASE_MEASURING;
    load->begin_ns = load->options.idle ? 0 : loop_now_ns(load->options.loop);
    load->end_ns = UINT64_MAX;
    load_sample_begin(load);
    if (load->options.duration_ms == 0) return;
    if (!load->options.idle) load->end_ns = load->begin_ns + load->options.duration_ms * 1000000ull;
    loop_timer_set(load->options.loop, &load->timer, load->options.duration_ms);
}

static void load_begin_warm_up(struct load *load)
{
    load->phase = LOAD_PHASE_WARM_UP;
    if (load->options.warm_up_ms == 0)
        load_begin_measuring(load);
    else
        loop_timer_set(load->options.loop, &load->timer, load->options.warm_up_ms);
    load_start_traffic(load);
}

static void load_begin_draining(struct load *load)
{
    uint64_t now_ns = loop_now_ns(load->options.loop);
    load->phase = LOAD_PHASE_DRAINING;
    load_sample_end(load);
    if (now_ns < load->end_ns) load->end_ns = now_ns;
    if (load->busy_count == 0 && !load_has_due(load)) {
        load_finish(load);
        return;
    }
    loop_timer_set(load->options.loop, &load->timer, load->options.drain_ms);
    if (load_is_open_loop(load)) load_dispatch(load, now_ns);
}

static void load_on_timer(struct timer *timer)
{
    struct load *load = CY_CONTAINER_OF(timer, struct load, timer);
    switch (load->phase) {
    case LOAD_PHASE_WARM_UP: load_begin_measuring(load); return;
    case LOAD_PHASE_MEASURING: load_stop(load); return;
    case LOAD_PHASE_DRAINING: load_finish(load); return;
    default: return;
    }
}

void load_stop(struct load *load)
{
    if (load->phase < LOAD_PHASE_MEASURING) {
        load_finish(load);
    } else if (load->phase == LOAD_PHASE_MEASURING && load->options.idle) {
        load_sample_end(load);
        load_finish(load);
    } else if (load->phase == LOAD_PHASE_MEASURING) {
        load_begin_draining(load);
    }
}

/* What was due and is not answered has waited until now, at least. */
static void load_count_unanswered(struct load *load)
{
    uint64_t now_ns = loop_now_ns(load->options.loop);
    size_t slot_count = (size_t)load->options.connections * load->slot_count;
    for (size_t i = 0; i < slot_count; i++) {
        struct load_slot *slot = &load->slots[i];
        if (!slot->busy) continue;
        slot->busy = false;
        load->busy_count--;
        load_count(load, slot->due_ns, now_ns, LOAD_FAULT_UNANSWERED);
        load_tell_failure(load, slot->connection, LOAD_FAULT_UNANSWERED, slot->status);
    }
    if (load->begin_ns == UINT64_MAX) return;
    for (; load_has_due(load) && load->next_due_ns <= now_ns; load_schedule_advance(load)) {
        load->measured_started_count++;
        load_count(load, load->next_due_ns, now_ns, LOAD_FAULT_UNANSWERED);
        load_tell_failure(load, NULL, LOAD_FAULT_UNANSWERED, 0);
    }
}

static void load_finish(struct load *load)
{
    struct loop *loop = load->options.loop;
    load_count_unanswered(load);
    load->phase = LOAD_PHASE_STOPPING;
    loop_timer_clear(loop, &load->timer);
    loop_timer_clear(loop, &load->pace_timer);
    /* One more than there are: whatever closes at once must not end the run before the last one was asked to. */
    load->unclosed_count = 1;
    if (load->alarm) {
        if (load->alarm_outstanding) load->unclosed_count++;
        loop_socket_close(&load->alarm);
    }
    for (uint32_t i = 0; i < load->options.connections; i++)
        if (load->connections[i].state != LOAD_CONNECTION_CLOSED) load->unclosed_count++;
    size_t slot_count = (size_t)load->options.connections * load->slot_count;
    for (size_t i = 0; i < slot_count; i++) loop_timer_clear(loop, &load->slots[i].timer);
    for (uint32_t i = 0; i < load->options.connections; i++) {
        uint8_t state = load->connections[i].state;
        if (state != LOAD_CONNECTION_CLOSED && state != LOAD_CONNECTION_CLOSING)
            load_connection_close(&load->connections[i], load->options.keeping == LOAD_NEW);
    }
    load_one_closed(load);
}

/* -- the run --------------------------------------------------------------------------------------------- */

static cy_err load_open_alarm(struct load *load)
{
    if (!load->options.fine_pacing || !load_is_open_loop(load)) return CY_OK;
    cy_err err = alarm_open(&load->alarm_descriptor);
    if (cy_is(err, CY_ERR_UNSUPPORTED)) return CY_OK; /* milliseconds then */
    if (cy_failed(err)) return err;
    load->alarm_ready.op.done = load_alarm_on_ready;
    return loop_socket_watch(load->options.loop, load->alarm_descriptor, &load->alarm);
}

static cy_err load_prepare(struct load *load, struct builder *fault)
{
    const struct load_options *options = &load->options;
    size_t slot_count = (size_t)options->connections * load->slot_count;
    CY_TRY(load_mix_init(&load->mix, options->rows, options->row_count, options->seed));
    load->requests = mem_alloc_zeroed(options->row_count * sizeof *load->requests);
    load->connections = mem_alloc_zeroed(options->connections * sizeof *load->connections);
    load->slots = mem_alloc_zeroed(slot_count * sizeof *load->slots);
    if (!load->requests || !load->connections || !load->slots) return CY_ERR(NO_MEMORY);
    load->wants_crc32c = options->same_body;
    for (uint32_t i = 0; i < options->row_count; i++) {
        load->requests[i].expect = options->rows[i].expect;
        load->wants_crc32c |= options->rows[i].expect.has_crc32c;
    }
    for (uint32_t i = 0; i < options->connections; i++) {
        struct load_connection *connection = &load->connections[i];
        connection->load = load;
        connection->slots = &load->slots[(size_t)i * load->slot_count];
        for (uint32_t k = 0; k < load->slot_count; k++) connection->slots[k].connection = connection;
    }
    CY_TRY(load_open_alarm(load));
    return load->protocol->prepare(load, fault);
}

bool load_slots_fit(uint64_t connections, uint64_t streams)
{
    return connections <= LIMIT_LOAD_SLOTS / (streams > 1 ? streams : 1);
}

static cy_err load_check_limits(const struct load_options *options, struct builder *fault)
{
    const struct {
        bool past;
        const char *what, *row;
        unsigned limit;
    } rows[] = {
        {options->connections > LIMIT_LOAD_CONNECTIONS, "connections", "LOAD_CONNECTIONS",
         LIMIT_LOAD_CONNECTIONS},
        {options->streams > LIMIT_HTTP2_STREAMS, "streams on a connection", "HTTP2_STREAMS",
         LIMIT_HTTP2_STREAMS},
        {!load_slots_fit(options->connections, options->streams), "connections times streams", "LOAD_SLOTS",
         LIMIT_LOAD_SLOTS},
        {options->row_count > LIMIT_LOAD_ROWS, "requests to choose from", "LOAD_ROWS", LIMIT_LOAD_ROWS},
        {options->rate_per_s > LIMIT_LOAD_RATE, "requests a second", "LOAD_RATE", LIMIT_LOAD_RATE},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        if (!rows[i].past) continue;
        builder_printf(fault, "more %s than %s = %u", rows[i].what, rows[i].row, rows[i].limit);
        return CY_ERR(TOO_MANY);
    }
    return CY_OK;
}

static cy_err load_make(const struct load_options *options, struct load **load_out, struct builder *fault)
{
    CY_TRY(load_check_limits(options, fault));
    struct load *load = mem_alloc_zeroed(sizeof *load);
    if (!load) return CY_ERR(NO_MEMORY);
    load->options = *options;
    load->protocol = options->protocol ? options->protocol : &load_http1;
    load->slot_count = options->streams ? options->streams : 1;
    if (!load->options.timeout_ms) load->options.timeout_ms = LOAD_TIMEOUT_MS;
    if (!load->options.drain_ms) load->options.drain_ms = LOAD_DRAIN_MS;
    load->begin_ns = load->end_ns = UINT64_MAX;
    load->alarm_descriptor = -1;
    load->timer.fire = load_on_timer;
    load->pace_timer.fire = load_on_pace;
    builder_init(&load->bytes);
    histogram_clear(&load->result.latency);
    histogram_clear(&load->result.lag);
    cy_err err = load_prepare(load, fault);
    load->options.rows = NULL; /* the caller's: from here on only what was made of them */
    load->options.fields = NULL;
    if (cy_failed(err)) load_free(&load);
    *load_out = load;
    return err;
}

cy_err load_new(const struct load_options *options, struct load **load_out, struct builder *fault)
{
    CHECK(options->row_count > 0 && options->connections > 0 && options->done);
    CHECK(options->duration_ms > 0 || options->request_count_max > 0);
    CHECK(options->streams <= 1 || (options->protocol && options->protocol->has_streams));
    CHECK(options->streams <= 1 || options->keeping == LOAD_KEEP); /* a connection per request carries one */
    struct builder unheard;
    builder_init(&unheard);
    *load_out = NULL;
    cy_err err = load_make(options, load_out, fault ? fault : &unheard);
    builder_fini(&unheard);
    return err;
}

void load_start(struct load *load)
{
    CHECK(load->phase == LOAD_PHASE_NEW);
    load->phase = LOAD_PHASE_OPENING;
    if (load->options.idle) load->begin_ns = 0; /* the one request of each is measured */
    if (load->options.keeping == LOAD_KEEP)
        load_open_more(load);
    else
        load_begin_warm_up(load);
}

const struct load_result *load_read(const struct load *load) { return &load->result; }
uint64_t load_finished_count(const struct load *load) { return load->finished_count; }
uint32_t load_open_count(const struct load *load) { return load->open_count; }
bool load_is_measuring(const struct load *load) { return load->phase == LOAD_PHASE_MEASURING; }

void load_free(struct load **load_pointer)
{
    struct load *load = *load_pointer;
    *load_pointer = NULL;
    if (!load) return;
    CHECK(load->phase == LOAD_PHASE_NEW || load->phase == LOAD_PHASE_ENDED);
    CHECK(!load->alarm_outstanding);
    if (load->alarm) loop_socket_close(&load->alarm);
    if (load->alarm_descriptor >= 0) close(load->alarm_descriptor);
    if (load->protocol->fini) load->protocol->fini(load);
    load_mix_fini(&load->mix);
    mem_free(load->requests);
    mem_free(load->connections);
    mem_free(load->slots);
    builder_fini(&load->bytes);
    mem_free(load);
}

/* -- faults ---------------------------------------------------------------------------------------------- */

struct load_fault_row {
    const char *word, *english, *korean;
};
static const struct load_fault_row load_fault_rows[LOAD_FAULT_COUNT] = {
    {"none", "none", "없음"},
#define LOAD_FAULT(name, word, english, korean) {word, english, korean},
#include "vm/http/load_fault.def"
#undef LOAD_FAULT
};

const char *load_fault_word(unsigned fault)
{
    CHECK(fault < LOAD_FAULT_COUNT);
    return load_fault_rows[fault].word;
}

const char *load_fault_text(unsigned fault, bool korean)
{
    CHECK(fault < LOAD_FAULT_COUNT);
    return korean ? load_fault_rows[fault].korean : load_fault_rows[fault].english;
}

#undef LOAD_TIMEOUT_MS
#undef LOAD_DRAIN_MS
