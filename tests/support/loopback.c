/* SPDX-License-Identifier: MIT
 *
 * tests/support/loopback.c: see loopback.h.
 *
 *     a.write ──► b.inbound (at most LOOPBACK_INBOUND_BYTES) ──► b.read
 *
 * Invariant: an end's struct lives until it is closed and its last completion was delivered; the other end may
 *       outlive it and then sees the end of the stream, or a reset.
 */
#include "tests/support/loopback.h"

#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#define LOOPBACK_INBOUND_BYTES 65536

struct loopback {
    struct stream stream;  /* first */
    struct loopback *peer; /* NULL: closed */
    struct timer pump;
    struct builder inbound;
    size_t taken_bytes; /* from the front of inbound */
    size_t read_bytes_max;
    bool ended; /* no more will come in */
    bool reset;
    bool abort_on_close;
    bool shut; /* we have written our last */
    bool closed;
    struct stream_read *read;
    struct stream_write *write;
    bool read_cancelled;
    bool spoil;
    uint64_t write_count, written_bytes;
    struct stream_info info; /* as the test set it; a test may pretend anything */
};

static struct loopback *loopback_of(struct stream *stream) { return (struct loopback *)stream; }

static void loopback_wake(struct loopback *end)
{
    if (!timer_is_set(&end->pump)) loop_timer_set(end->stream.loop, &end->pump, 0);
}

static size_t loopback_there(const struct loopback *end) { return end->inbound.count - end->taken_bytes; }

static void loopback_give(struct stream_read *read, struct buffer *buffer, cy_err err)
{
    read->err = err;
    read->buffer = buffer;
    read->done(read);
}

/* Completes the read when there is something to say. `done` may start the next one, or close. */
static void loopback_pump_read(struct loopback *end)
{
    struct stream_read *read = end->read;
    if (!read) return;
    size_t there = loopback_there(end);
    if (end->closed || end->read_cancelled) {
        end->read = NULL;
        end->read_cancelled = false;
        loopback_give(read, NULL, CY_ERR(CANCELLED));
    } else if (there > 0) {
        struct buffer *buffer = buffer_take(loop_buffers(end->stream.loop));
        end->read = NULL;
        if (!buffer) {
            loopback_give(read, NULL, CY_ERR(NO_MEMORY));
            return;
        }
        size_t count = cy_min_size(cy_min_size(there, buffer->capacity), end->read_bytes_max);
        memcpy(buffer->data, end->inbound.data + end->taken_bytes, count);
        buffer->end = (uint32_t)count;
        if (end->spoil) buffer->data[count - 1] ^= 1;
        end->spoil = false;
        end->taken_bytes += count;
        if (loopback_there(end) == 0) {
            builder_clear(&end->inbound);
            end->taken_bytes = 0;
        }
        if (end->peer) loopback_wake(end->peer); /* there is room again */
        loopback_give(read, buffer, CY_OK);
    } else if (end->reset || end->ended) {
        end->read = NULL;
        loopback_give(read, NULL, end->reset ? CY_ERR(RESET) : CY_OK);
    }
}

/* Moves what fits; false when the peer has no room for the rest. */
static bool loopback_move(struct loopback *end, struct loop_send *send)
{
    while (send->part_index < send->part_count) {
        cy_bytes rest = cy_bytes_skip(send->parts[send->part_index], send->part_offset);
        size_t room = LOOPBACK_INBOUND_BYTES - loopback_there(end->peer);
        size_t count = cy_min_size(rest.count, room);
        builder_bytes(&end->peer->inbound, cy_bytes_slice(rest, 0, count));
        send->sent_bytes += count;
        end->written_bytes += count;
        send->part_offset += count;
        if (count) loopback_wake(end->peer);
        if (count < rest.count) return false;
        send->part_index++;
        send->part_offset = 0;
    }
    return true;
}

static void loopback_pump_write(struct loopback *end)
{
    struct stream_write *write = end->write;
    if (!write) return;
    cy_err err = CY_OK;
    if (end->closed)
        err = CY_ERR(CANCELLED);
    else if (end->reset)
        err = CY_ERR(RESET);
    else if (!end->peer || end->shut)
        err = CY_ERR(CLOSED);
    else if (!loopback_move(end, &write->send))
        return;
    end->write = NULL;
    write->send.ends = false;
    write->err = err;
    write->done(write);
}

static void loopback_on_pump(struct timer *timer)
{
    struct loopback *end = CY_CONTAINER_OF(timer, struct loopback, pump);
    /* Before the callbacks: they may close this end, and it must not go while we are in it. */
    bool was_closed = end->closed;
    loopback_pump_write(end);
    loopback_pump_read(end);
    if (was_closed) {
        builder_fini(&end->inbound);
        mem_free(end);
    }
}

static void loopback_read(struct stream *stream, struct stream_read *read)
{
    struct loopback *end = loopback_of(stream);
    CHECK(!end->closed && !end->read);
    read->buffer = NULL;
    end->read = read;
    loopback_wake(end);
}
static void loopback_read_cancel(struct stream *stream)
{
    struct loopback *end = loopback_of(stream);
    if (!end->read) return;
    end->read_cancelled = true;
    loopback_wake(end);
}
static void loopback_write(struct stream *stream, struct stream_write *write)
{
    struct loopback *end = loopback_of(stream);
    CHECK(!end->closed && !end->write);
    write->send.sent_bytes = 0;
    write->send.part_index = 0;
    write->send.part_offset = 0;
    end->write = write;
    end->write_count++;
    loopback_wake(end);
}
static const struct stream_info *loopback_info(struct stream *stream, bool with_local)
{
    (void)with_local;
    return &loopback_of(stream)->info;
}
static void loopback_set_addresses(struct stream *stream, const struct address *peer,
                                   const struct address *local)
{
    if (peer) loopback_of(stream)->info.peer = *peer;
    if (local) loopback_of(stream)->info.local = *local;
}
static bool loopback_is_quiet(struct stream *stream)
{
    struct loopback *end = loopback_of(stream);
    return loopback_there(end) == 0 && !end->ended && !end->reset;
}
static bool loopback_has_come(struct stream *stream) { return !loopback_is_quiet(stream); }
static void loopback_end_peer(struct loopback *end)
{
    if (!end->peer) return;
    end->peer->ended = true;
    loopback_wake(end->peer);
}
static void loopback_shutdown_write(struct stream *stream)
{
    loopback_of(stream)->shut = true;
    loopback_end_peer(loopback_of(stream));
}
static void loopback_abort_on_close(struct stream *stream) { loopback_of(stream)->abort_on_close = true; }
static void loopback_close(struct stream *stream)
{
    struct loopback *end = loopback_of(stream);
    CHECK(!end->closed);
    /* What a kernel would have taken when the write was started is on its way. */
    if (end->write && end->peer && !end->shut) (void)loopback_move(end, &end->write->send);
    end->closed = true;
    loopback_end_peer(end);
    if (end->peer) {
        if (end->abort_on_close || loopback_there(end) > 0) end->peer->reset = true;
        end->peer->peer = NULL;
        end->peer = NULL;
    }
    loopback_wake(end); /* the pump delivers what is outstanding and frees */
}

static const struct stream_type loopback_type = {
    .name = "loopback",
    .read = loopback_read,
    .read_cancel = loopback_read_cancel,
    .write = loopback_write,
    .ready = stream_ready_at_once,
    .info = loopback_info,
    .set_addresses = loopback_set_addresses,
    .is_quiet = loopback_is_quiet,
    .has_come = loopback_has_come,
    .shutdown_write = loopback_shutdown_write,
    .abort_on_close = loopback_abort_on_close,
    .close = loopback_close,
};

static struct loopback *loopback_new(struct loop *loop, size_t read_bytes_max)
{
    struct loopback *end = mem_alloc_zeroed(sizeof *end);
    if (!end) return NULL;
    end->stream = (struct stream){.type = &loopback_type, .loop = loop};
    end->info.descriptor = -1;
    end->pump.fire = loopback_on_pump;
    end->read_bytes_max = read_bytes_max ? read_bytes_max : SIZE_MAX;
    builder_init(&end->inbound);
    return end;
}

cy_err loopback_pair(struct loop *loop, size_t read_bytes_max, struct stream **a_out, struct stream **b_out)
{
    struct loopback *a = loopback_new(loop, read_bytes_max);
    struct loopback *b = loopback_new(loop, read_bytes_max);
    if (!a || !b) {
        mem_free(a);
        mem_free(b);
        return CY_ERR(NO_MEMORY);
    }
    a->peer = b;
    b->peer = a;
    *a_out = &a->stream;
    *b_out = &b->stream;
    return CY_OK;
}

uint64_t loopback_write_count(struct stream *stream) { return loopback_of(stream)->write_count; }
uint64_t loopback_written_bytes(struct stream *stream) { return loopback_of(stream)->written_bytes; }
void loopback_spoil(struct stream *stream) { loopback_of(stream)->spoil = true; }

void loopback_set_info(struct stream *stream, const struct stream_info *info)
{
    loopback_of(stream)->info = *info;
}

#undef LOOPBACK_INBOUND_BYTES
