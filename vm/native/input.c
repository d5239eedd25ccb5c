/* SPDX-License-Identifier: MIT
 *
 * vm/native/input.c: standard input for programs: a line, or all of it.
 *
 *   call ─► in the buffer already? ─► give it
 *              └─ no ─► readable now? ─► read a piece ─► again
 *                          └─ no ─► park the task; the loop tells ─► read ─► wake it
 *
 * In:   descriptor 0: a pipe, a terminal, a file. It is shared with whoever started us, so it is not made
 *       non-blocking: it is read only when it is readable, which does not block, because nobody else reads it here.
 * Out:  str. Lines lose their end, "\n" or "\r\n".
 * Invariant: one task waits at a time; what was read and not given stays for the next call, also of another task, and
 *            also when the waiting one was stopped. At most LIMIT_INPUT_BYTES are kept; they count as memory of the
 *            VM.
 */
#include "vm/native/input.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { INPUT_PIECE_BYTES = 64 << 10, INPUT_PIECES_PER_TURN = 16 };

void input_init(struct input *input)
{
    *input = (struct input){0};
    builder_init(&input->buffer);
}

void input_close(struct runtime *runtime)
{
    runtime->input_stream.waiting = false;
    if (runtime->input_stream.socket) loop_socket_close(&runtime->input_stream.socket);
}

void input_fini(struct runtime *runtime) { builder_fini(&runtime->input_stream.buffer); }

/* -- reading ----------------------------------------------------------------------------------------------- */

/* What is kept lies at the front again, and there is room for a piece. */
static cy_err input_make_room(struct runtime *runtime)
{
    struct input *input = &runtime->input_stream;
    struct builder *buffer = &input->buffer;
    if (input->start > 0 && input->start >= buffer->count / 2) {
        memmove(buffer->data, buffer->data + input->start, buffer->count - input->start);
        buffer->count -= input->start;
        input->scanned -= cy_min_size(input->scanned, input->start);
        input->start = 0;
    }
    if (buffer->count - input->start >= LIMIT_INPUT_BYTES) return CY_ERR(LIMIT);
    if (!input->hold.vm) memory_hold_begin_for_vm(runtime->vm, &input->hold);
    size_t capacity = cy_max_size(buffer->capacity, INPUT_PIECE_BYTES);
    while (capacity < buffer->count + INPUT_PIECE_BYTES) capacity *= 2; /* builder.c grows like this */
    if (capacity > input->hold.bytes) CY_TRY(memory_hold_grow(&input->hold, capacity - input->hold.bytes));
    if (builder_reserve(buffer, capacity - buffer->count)) return CY_OK;
    buffer->failed =
        false; /* nothing was lost: what is kept can be given, and more be read, once there is memory */
    return CY_ERR(NO_MEMORY);
}

/* Gives the memory of an empty buffer back. */
static void input_drop(struct runtime *runtime)
{
    struct input *input = &runtime->input_stream;
    if (input->start < input->buffer.count) return;
    if (input->hold.vm) memory_hold_end(&input->hold, 0);
    builder_fini(&input->buffer);
    builder_init(&input->buffer);
    input->start = input->scanned = 0;
}

/* One piece when there is one now. `*more_out`: something came, or the end. */
static cy_err input_read(struct runtime *runtime, bool *more_out)
{
    struct input *input = &runtime->input_stream;
    struct pollfd ask = {.fd = STDIN_FILENO, .events = POLLIN};
    *more_out = false;
    if (input->ended || poll(&ask, 1, 0) <= 0) return CY_OK;
    CY_TRY(input_make_room(runtime));
    ssize_t count = read(STDIN_FILENO, input->buffer.data + input->buffer.count, INPUT_PIECE_BYTES);
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return CY_OK;
    /* Descriptor 0 may have been closed before we began. */
    if (count < 0 && errno != EBADF) return cy_err_from_errno(errno);
    if (count <= 0) input->ended = true;
    if (count > 0) input->buffer.count += (size_t)count;
    *more_out = true;
    return CY_OK;
}

/* -- giving ------------------------------------------------------------------------------------------------ */

/* True with the bytes to give and how many are used up; an empty `*text_out` with 0 used is the end. */
static bool input_find(struct input *input, bool whole, cy_bytes *text_out, size_t *used_out)
{
    cy_bytes rest = cy_bytes_skip(builder_view(&input->buffer), input->start);
    *text_out = rest;
    *used_out = rest.count;
    if (whole) return input->ended;
    size_t from = input->scanned > input->start ? input->scanned - input->start : 0;
    size_t end = from + cy_bytes_find(cy_bytes_skip(rest, from), '\n');
    input->scanned = input->start + cy_min_size(end, rest.count);
    if (end >= rest.count) return input->ended;
    *used_out = end + 1;
    if (end > 0 && rest.data[end - 1] == '\r') end--;
    *text_out = cy_bytes_slice(rest, 0, end);
    return true;
}

/* False: not there yet. With an error in `*err_out` nothing was taken. */
static bool input_give(struct runtime *runtime, bool whole, cy_value *owned_out, cy_err *err_out)
{
    struct input *input = &runtime->input_stream;
    cy_bytes text;
    size_t used;
    *err_out = CY_OK;
    if (!input_find(input, whole, &text, &used)) return false;
    *owned_out = value_nil();
    if (whole || used > 0) *err_out = string_new(runtime->vm, text, owned_out);
    if (cy_failed(*err_out)) return true;
    input->start += used;
    input_drop(runtime);
    return true;
}

static const char *input_name(bool whole) { return whole ? "process.read_all" : "process.read_line"; }

static void input_describe(struct runtime *runtime, bool whole, cy_err err, struct builder *out)
{
    char why[128];
    builder_printf(out, "%s: %s", input_name(whole),
                   cy_err_describe(err, vm_korean(runtime->vm), why, sizeof why));
    if (cy_is(err, CY_ERR_LIMIT)) builder_printf(out, " (INPUT_BYTES: %d)", LIMIT_INPUT_BYTES);
}

/* Reads until there is an answer, nothing more comes now, or the turn is long enough. */
static bool input_try(struct runtime *runtime, bool whole, cy_value *owned_out, cy_err *err_out,
                      bool *more_out)
{
    *more_out = true;
    for (int i = 0; i < INPUT_PIECES_PER_TURN; i++) {
        if (input_give(runtime, whole, owned_out, err_out)) return true;
        *err_out = input_read(runtime, more_out);
        if (cy_failed(*err_out)) return true;
        if (!*more_out) return false;
    }
    return false;
}

/* -- waiting ----------------------------------------------------------------------------------------------- */

static void input_ready(struct loop_op *op)
{
    struct runtime *runtime =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct runtime, input_stream.ready);
    struct input *input = &runtime->input_stream;
    cy_value value;
    cy_err err = op->err;
    bool more;
    input->pending = false;
    if (!input->waiting) return;
    if (!cy_failed(err) && !input_try(runtime, input->whole, &value, &err, &more)) {
        input->pending = true;
        loop_ready(input->socket, &input->ready);
        return;
    }
    input->waiting = false;
    if (!cy_failed(err)) {
        vm_complete(runtime->vm, input->ticket, value);
        return;
    }
    struct builder text;
    builder_init(&text);
    input_describe(runtime, input->whole, err, &text);
    vm_complete_failed(runtime->vm, input->ticket, err, builder_view(&text));
    builder_fini(&text);
}

static void input_cancel(void *operation) { ((struct input *)operation)->waiting = false; }

static cy_err input_watch(struct runtime *runtime)
{
    struct input *input = &runtime->input_stream;
    CY_TRY(runtime_need_loop(runtime));
    if (!input->socket) CY_TRY(loop_socket_watch(runtime->loop, STDIN_FILENO, &input->socket));
    input->ready.op.done = input_ready;
    input->ready.want_read = true;
    if (!input->pending) loop_ready(input->socket, &input->ready);
    input->pending = true;
    return CY_OK;
}

static enum native_outcome input_fail(struct native_call *call, bool whole, cy_err err)
{
    struct builder text;
    builder_init(&text);
    input_describe(runtime_of(call->vm), whole, err, &text);
    native_fail(call, err, "%.*s", CY_BYTES_ARG(builder_view(&text)));
    builder_fini(&text);
    return NATIVE_FAIL;
}

/* What was read is in the runtime's own buffer, whatever becomes of the task. */
static void input_keep_nothing(struct vm *vm, void *work) { (void)vm, (void)work; }

static enum native_outcome input_call(struct native_call *call, bool whole)
{
    struct runtime *runtime = runtime_of(call->vm);
    struct input *input = &runtime->input_stream;
    cy_value value;
    cy_err err;
    bool more;
    if (runtime_is_configuring(runtime, call->instance))
        return native_fail(call, CY_ERR(UNSUPPORTED), "%s: not in configure", input_name(whole));
    if (input->waiting)
        return native_fail(call, CY_ERR(UNSUPPORTED), "%s: another task reads standard input",
                           input_name(whole));
    size_t before = input->buffer.count;
    bool done = input_try(runtime, whole, &value, &err, &more);
    native_charge(call, (input->buffer.count > before ? input->buffer.count - before : 0) / 100);
    if (done) return cy_failed(err) ? input_fail(call, whole, err) : native_return(call, value);
    if (more) { /* a file, or a fast writer: others get their turn */
        if (!native_work(call)) native_keep_work(call, input, input_keep_nothing);
        return NATIVE_AGAIN;
    }
    err = input_watch(runtime);
    if (cy_failed(err)) return input_fail(call, whole, err);
    input->whole = whole;
    input->waiting = true;
    input->ticket = native_wait(call, input_cancel, input);
    return NATIVE_WAIT;
}

enum native_outcome native_process_read_line(struct native_call *call) { return input_call(call, false); }
enum native_outcome native_process_read_all(struct native_call *call) { return input_call(call, true); }
