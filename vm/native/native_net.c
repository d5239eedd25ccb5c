/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_net.c: the module "net": connections and listeners as handles.
 *
 *   connection:  net.connect or net.accept ─► read, write, each one task at a time ─► close, or its owner's end
 *
 * Back-pressure: a read gives one buffer and the next is received only when the program asks again; a write ends when
 *       the kernel has it all.
 * Invariant: a connection's memory stays until the handle is closed and every operation on it has completed. A write
 *       that was cut off closes the connection: how much of it went out is not known. Its handle stays, and says so.
 * Not here: names and addresses of connecting (native_connect.c), sockets (vm/net).
 */
#include "vm/native/native_net.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/run/handle.h"
#include "vm/run/object.h"

#include <unistd.h>

/* One direction of a connection, or the accepting of a listener. */
struct native_net_wait {
    struct native_net_object *object;
    wait_ticket ticket;
    struct timer timer;
    bool waiting;     /* a task */
    bool outstanding; /* the loop has the operation */
};
struct native_net_object {
    struct runtime *runtime;
    bool closed; /* the descriptors */
    bool let_go; /* by the handle table, which until then leads here */
    uint8_t is_listener;
    /* connection */
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct buffer *unread; /* came while nobody waited: a read that was given up */
    cy_value content;      /* of the write, held */
    bool finished;         /* the peer */
    cy_err finished_err;
    struct native_net_wait reading, writing;
    /* listener */
    struct loop_socket *socket;
    struct loop_ready ready;
    struct fiber *acceptor; /* while it waits */
    int descriptor;
    struct address address;
    struct builder path; /* of a UNIX socket, as it was given */
    int folder;          /* that its file lies in; -1: none */
    beneath_name name;
};

static void native_net_object_release(struct native_net_object *object)
{
    if (!object->let_go || object->reading.outstanding || object->writing.outstanding) return;
    CHECK(object->closed);
    buffer_unref(&object->unread);
    builder_fini(&object->path);
    mem_free(object);
}

/* Answers the task that waits, if any. */
static void native_net_answer(struct native_net_wait *wait, cy_value owned_result)
{
    struct runtime *runtime = wait->object->runtime;
    loop_timer_clear(runtime->loop, &wait->timer);
    if (wait->waiting)
        vm_complete(runtime->vm, wait->ticket, owned_result);
    else
        value_unref(runtime->vm, owned_result);
    wait->waiting = false;
}
static void native_net_answer_failed(struct native_net_wait *wait, const char *name, cy_err err)
{
    struct runtime *runtime = wait->object->runtime;
    struct builder text;
    char why[128];
    if (!wait->waiting) return; /* nor is its timer set; where there was no memory there may be no loop */
    loop_timer_clear(runtime->loop, &wait->timer);
    wait->waiting = false;
    builder_init(&text);
    builder_printf(&text, "%s: %s", name, cy_err_describe(err, vm_korean(runtime->vm), why, sizeof why));
    vm_complete_failed(runtime->vm, wait->ticket, err, text.failed ? CY_BYTES_NONE : builder_view(&text));
    builder_fini(&text);
}

static void native_net_shut(struct native_net_object *object)
{
    struct vm *vm = object->runtime->vm;
    if (object->closed) return;
    object->closed = true;
    if (object->stream) stream_close(&object->stream);
    if (object->socket) loop_socket_close(&object->socket);
    if (object->descriptor >= 0) close(object->descriptor);
    if (object->folder >= 0) {
        unlinkat(object->folder, object->name, 0);
        close(object->folder);
    }
    native_net_answer_failed(&object->reading, object->is_listener ? "net.accept" : "net.read",
                             CY_ERR(CLOSED));
    native_net_answer_failed(&object->writing, "net.write", CY_ERR(CLOSED));
    if (!object->writing.outstanding) {
        value_unref(vm, object->content);
        object->content = value_nil();
    }
}

/* The last word of whoever holds the object: the handle table, or the native that failed to make a handle. */
static void native_net_let_go(struct native_net_object *object)
{
    native_net_shut(object);
    object->let_go = true;
    native_net_object_release(object);
}

static void native_net_close_handle(struct vm *vm, void *object)
{
    (void)vm;
    native_net_let_go(object);
}

/* -- fields ---------------------------------------------------------------------------------------------- */

static cy_err native_net_address_text(struct vm *vm, const struct address *address, cy_value *out)
{
    struct builder text;
    builder_init(&text);
    address_format(address, true, &text);
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = string_new(vm, builder_view(&text), out);
    builder_fini(&text);
    return err;
}

static bool native_net_connection_field(struct vm *vm, void *payload, cy_bytes name, cy_value *owned_out,
                                        cy_err *err_out)
{
    struct native_net_object *object = payload;
    bool peer = cy_bytes_equal(name, CY_BYTES("peer"));
    if (!peer && !cy_bytes_equal(name, CY_BYTES("local"))) return false;
    if (object->closed) {
        *err_out = CY_ERR(CLOSED);
        return true;
    }
    const struct stream_info *info = stream_info_with_local(object->stream);
    *err_out = native_net_address_text(vm, peer ? &info->peer : &info->local, owned_out);
    return true;
}

static bool native_net_listener_field(struct vm *vm, void *payload, cy_bytes name, cy_value *owned_out,
                                      cy_err *err_out)
{
    struct native_net_object *object = payload;
    if (!cy_bytes_equal(name, CY_BYTES("address"))) return false;
    if (object->path.count > 0) {
        struct builder text;
        builder_init(&text);
        builder_printf(&text, "unix:%.*s", CY_BYTES_ARG(builder_view(&object->path)));
        *err_out = builder_error(&text);
        if (!cy_failed(*err_out)) *err_out = string_new(vm, builder_view(&text), owned_out);
        builder_fini(&text);
    } else {
        *err_out = native_net_address_text(vm, &object->address, owned_out);
    }
    return true;
}

static const struct handle_type native_net_connection_type = {"connection", native_net_close_handle,
                                                              native_net_connection_field};
static const struct handle_type native_net_listener_type = {"listener", native_net_close_handle,
                                                            native_net_listener_field};

/* -- reading --------------------------------------------------------------------------------------------- */

static void native_net_give(struct native_net_object *object, struct buffer *owned_buffer)
{
    cy_value text;
    cy_err err = string_new(object->runtime->vm, buffer_view(owned_buffer), &text);
    if (cy_failed(err)) {
        object->unread = owned_buffer; /* want of memory may pass: the stream must not have a hole */
        native_net_answer_failed(&object->reading, "net.read", err);
        return;
    }
    buffer_unref(&owned_buffer);
    native_net_answer(&object->reading, text);
}

static void native_net_on_read(struct stream_read *read)
{
    struct native_net_object *object = CY_CONTAINER_OF(read, struct native_net_object, read);
    object->reading.outstanding = false;
    if (object->closed) {
        buffer_unref(&read->buffer);
        native_net_object_release(object);
        return;
    }
    if (read->buffer) {
        if (object->reading.waiting)
            native_net_give(object, read->buffer);
        else
            object->unread = read->buffer; /* the task that asked has gone: the next one gets it */
        return;
    }
    object->finished = true;
    object->finished_err = read->err;
    if (cy_failed(read->err))
        native_net_answer_failed(&object->reading, "net.read", read->err);
    else
        native_net_answer(&object->reading, value_nil());
}

/* The receive goes on: what it brings is for the next reader. */
static void native_net_cancel_read(void *operation)
{
    struct native_net_object *object = operation;
    object->reading.waiting = false;
    loop_timer_clear(object->runtime->loop, &object->reading.timer);
}
static void native_net_read_timeout(struct timer *timer)
{
    native_net_answer_failed(CY_CONTAINER_OF(timer, struct native_net_wait, timer), "net.read",
                             CY_ERR(TIMEOUT));
}

static bool native_net_timeout(struct native_call *call, const char *name, uint32_t index, int64_t usual,
                               int64_t least, uint32_t *timeout_out)
{
    int64_t timeout_ms = native_has_arg(call, index) ? call->args[index].as.i : usual;
    if (timeout_ms < least || timeout_ms > LIMIT_TIMEOUT_MS) {
        native_fail(call, CY_ERR(VALUE), "%s: timeout_ms must be %d..%d (TIMEOUT_MS), not %lld", name,
                    (int)least, LIMIT_TIMEOUT_MS, (long long)timeout_ms);
        return false;
    }
    *timeout_out = (uint32_t)timeout_ms;
    return true;
}

static struct native_net_object *native_net_object_of(struct native_call *call, const char *name,
                                                      const struct handle_type *type)
{
    struct native_net_object *object = handle_object(call->vm, call->args[0], type);
    if (object && !object->closed) return object;
    const char *found = handle_type_name(call->vm, call->args[0]);
    if (found && strcmp(found, type->name) != 0)
        native_fail(call, CY_ERR(TYPE), "%s: argument 1 must be a %s, not a %s", name, type->name, found);
    else
        native_fail(call, CY_ERR(CLOSED), "%s: the %s is closed", name, type->name);
    return NULL;
}

static void native_net_park(struct native_call *call, struct native_net_wait *wait, uint32_t timeout_ms,
                            void (*on_timeout)(struct timer *timer), void (*cancel)(void *operation))
{
    wait->waiting = true;
    wait->timer.fire = on_timeout;
    if (timeout_ms > 0) loop_timer_set(wait->object->runtime->loop, &wait->timer, timeout_ms);
    wait->ticket = native_wait(call, cancel, wait->object);
}

enum native_outcome native_net_read(struct native_call *call)
{
    struct native_net_object *object = native_net_object_of(call, "net.read", &native_net_connection_type);
    uint32_t timeout_ms;
    if (!object || !native_net_timeout(call, "net.read", 1, LIMIT_NET_TIMEOUT_MS, 1, &timeout_ms))
        return NATIVE_FAIL;
    if (object->reading.waiting)
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.read: another task reads from this connection");
    if (object->unread) {
        cy_value text;
        cy_err err = string_new(call->vm, buffer_view(object->unread), &text);
        if (cy_failed(err)) return native_fail_reason(call, err, "net.read");
        buffer_unref(&object->unread);
        return native_return(call, text);
    }
    if (object->finished && !cy_failed(object->finished_err)) return NATIVE_DONE;
    if (object->finished)
        return native_fail(call, object->finished_err, "net.read: %s",
                           cy_err_text(object->finished_err, vm_korean(call->vm)));
    native_net_park(call, &object->reading, timeout_ms, native_net_read_timeout, native_net_cancel_read);
    if (!object->reading.outstanding) {
        object->reading.outstanding = true;
        object->read.done = native_net_on_read;
        stream_read_start(object->stream, &object->read);
    }
    return NATIVE_WAIT;
}

/* -- writing --------------------------------------------------------------------------------------------- */

static void native_net_on_written(struct stream_write *write)
{
    struct native_net_object *object = CY_CONTAINER_OF(write, struct native_net_object, write);
    object->writing.outstanding = false;
    value_unref(object->runtime->vm, object->content);
    object->content = value_nil();
    if (object->closed) {
        native_net_object_release(object);
        return;
    }
    if (cy_failed(write->err))
        native_net_answer_failed(&object->writing, "net.write", write->err);
    else
        native_net_answer(&object->writing, value_nil());
}

/* How much of it the peer got is not known, so nothing may follow. */
static void native_net_cut_off(struct native_net_object *object)
{
    stream_abort_on_close(object->stream);
    native_net_shut(object);
}
static void native_net_cancel_write(void *operation)
{
    struct native_net_object *object = operation;
    object->writing.waiting = false;
    loop_timer_clear(object->runtime->loop, &object->writing.timer);
    native_net_cut_off(object);
}
static void native_net_write_timeout(struct timer *timer)
{
    struct native_net_wait *wait = CY_CONTAINER_OF(timer, struct native_net_wait, timer);
    native_net_answer_failed(wait, "net.write", CY_ERR(TIMEOUT));
    native_net_cut_off(wait->object);
}

enum native_outcome native_net_write(struct native_call *call)
{
    struct native_net_object *object = native_net_object_of(call, "net.write", &native_net_connection_type);
    uint32_t timeout_ms;
    if (!object || !native_net_timeout(call, "net.write", 2, LIMIT_NET_TIMEOUT_MS, 1, &timeout_ms))
        return NATIVE_FAIL;
    if (object->writing.waiting || object->writing.outstanding)
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.write: another task writes to this connection");
    if (string_bytes(call->args[1]).count == 0) return NATIVE_DONE;
    object->content = value_ref(call->args[1]); /* its bytes stay as they are while we hold it */
    object->write.done = native_net_on_written;
    object->write.send.parts[0] = string_bytes(object->content);
    object->write.send.part_count = 1;
    object->write.send.more = false;
    native_net_park(call, &object->writing, timeout_ms, native_net_write_timeout, native_net_cancel_write);
    object->writing.outstanding = true;
    stream_write_start(object->stream, &object->write);
    return NATIVE_WAIT;
}

enum native_outcome native_net_finish(struct native_call *call)
{
    struct native_net_object *object = native_net_object_of(call, "net.finish", &native_net_connection_type);
    if (!object) return NATIVE_FAIL;
    if (object->writing.waiting)
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.finish: a task writes to this connection");
    stream_shutdown_write(object->stream);
    return NATIVE_DONE;
}

enum native_outcome native_net_close(struct native_call *call)
{
    const char *type = handle_type_name(call->vm, call->args[0]);
    if (!type || (strcmp(type, "connection") != 0 && strcmp(type, "listener") != 0))
        return native_fail(call, CY_ERR(TYPE),
                           "net.close: argument 1 must be a connection or listener, not %s",
                           value_kind_text(call->vm, call->args[0]));
    handle_close(call->vm, call->args[0]);
    return NATIVE_DONE;
}

/* -- making connections and listeners -------------------------------------------------------------------- */

static struct native_net_object *native_net_new(struct runtime *runtime)
{
    struct native_net_object *object = mem_alloc_zeroed(sizeof *object);
    if (!object) return NULL;
    object->runtime = runtime;
    object->content = value_nil();
    object->descriptor = object->folder = -1;
    builder_init(&object->path);
    object->reading.object = object->writing.object = object;
    return object;
}

cy_err native_net_adopt(struct runtime *runtime, struct loop_socket *owned_socket, struct fiber *owner,
                        cy_value *out)
{
    struct native_net_object *object = native_net_new(runtime);
    if (!object) {
        loop_socket_close(&owned_socket);
        return CY_ERR(NO_MEMORY);
    }
    cy_err err = stream_tcp_new(runtime->loop, owned_socket, &object->stream);
    if (!cy_failed(err)) err = handle_open(runtime->vm, &native_net_connection_type, object, owner, out);
    if (cy_failed(err)) {
        if (object->stream) stream_close(&object->stream);
        mem_free(object);
    }
    return err;
}

/* -- accepting ------------------------------------------------------------------------------------------- */

/* One connection out of the kernel's queue, which is where the others wait: nothing is accepted that nobody asked for.
 * `*connection_out` is nil when there is none. */
static cy_err native_net_take(struct native_net_object *object, struct fiber *owner, cy_value *connection_out)
{
    struct loop_socket *socket;
    int descriptor;
    *connection_out = value_nil();
    CY_TRY(listen_accept(loop_socket_descriptor(object->socket), &descriptor));
    if (descriptor < 0) return CY_OK;
    CY_TRY(loop_socket_open(object->runtime->loop, descriptor, &socket));
    return native_net_adopt(object->runtime, socket, owner, connection_out);
}

static void native_net_wait_ready(struct native_net_object *object)
{
    object->reading.outstanding = true;
    object->ready.want_read = true;
    loop_ready(object->socket, &object->ready);
}

static void native_net_on_ready(struct loop_op *op)
{
    struct native_net_object *object =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct native_net_object, ready);
    cy_value connection;
    object->reading.outstanding = false;
    if (object->closed) {
        native_net_object_release(object);
        return;
    }
    if (!object->reading.waiting) return;
    cy_err err = op->err;
    if (!cy_failed(err)) err = native_net_take(object, object->acceptor, &connection);
    if (cy_failed(err))
        native_net_answer_failed(&object->reading, "net.accept", err);
    else if (connection.tag == TAG_NIL) /* somebody else took it, or it has gone again */
        native_net_wait_ready(object);
    else
        native_net_answer(&object->reading, connection);
}

static void native_net_accept_timeout(struct timer *timer)
{
    native_net_answer_failed(CY_CONTAINER_OF(timer, struct native_net_wait, timer), "net.accept",
                             CY_ERR(TIMEOUT));
}

enum native_outcome native_net_accept(struct native_call *call)
{
    struct native_net_object *object = native_net_object_of(call, "net.accept", &native_net_listener_type);
    uint32_t timeout_ms;
    cy_value connection;
    if (!object || !native_net_timeout(call, "net.accept", 1, 0, 0, &timeout_ms)) return NATIVE_FAIL;
    if (object->reading.waiting)
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.accept: another task accepts from this listener");
    cy_err err = native_net_take(object, call->fiber, &connection);
    if (cy_failed(err))
        return native_fail(call, err, "net.accept: %s", cy_err_text(err, vm_korean(call->vm)));
    if (connection.tag != TAG_NIL) return native_return(call, connection);
    object->acceptor = call->fiber;
    native_net_park(call, &object->reading, timeout_ms, native_net_accept_timeout, native_net_cancel_read);
    if (!object->reading.outstanding) native_net_wait_ready(object);
    return NATIVE_WAIT;
}

/* -- listening ------------------------------------------------------------------------------------------- */

/* Makes the socket's file below what may be written, and remembers how to remove it. */
static cy_err native_net_listen_unix(struct native_net_object *object, cy_bytes path, int *descriptor_out)
{
    struct native_net_unix place;
    CY_TRY(native_net_find_unix(object->runtime, PATH_WRITE, path, &place));
    cy_err err = listen_open(&place.address, false, LIMIT_LISTEN_BACKLOG, descriptor_out);
    if (cy_failed(err)) {
        close(place.folder);
        return err;
    }
    object->folder = place.folder;
    memcpy(object->name, place.name, sizeof object->name);
    builder_bytes(&object->path, path);
    return builder_error(&object->path);
}

static cy_err native_net_open_listener(struct native_net_object *object, cy_bytes text)
{
    int descriptor = -1;
    cy_err err = runtime_need_loop(object->runtime);
    if (cy_failed(err)) return err;
    if (cy_bytes_start_with(text, CY_BYTES("unix:"))) {
        err = native_net_listen_unix(object, cy_bytes_skip(text, 5), &descriptor);
    } else {
        err = address_from_text(text, &object->address);
        if (!cy_failed(err)) err = listen_open(&object->address, false, LIMIT_LISTEN_BACKLOG, &descriptor);
        if (!cy_failed(err)) err = socket_local_address(descriptor, &object->address);
    }
    if (cy_failed(err)) {
        if (descriptor >= 0) close(descriptor);
        return err;
    }
    /* Watched, not owned: then each wait asks the system anew, which is what accepting one by one needs. */
    object->descriptor = descriptor;
    return loop_socket_watch(object->runtime->loop, descriptor, &object->socket);
}

enum native_outcome native_net_listen(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_bytes text = string_bytes(call->args[0]);
    cy_value handle;
    char why[128];
    if (runtime_is_configuring(runtime, call->instance))
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.listen: not in configure");
    struct native_net_object *object = native_net_new(runtime);
    if (!object) return native_fail_reason(call, CY_ERR(NO_MEMORY), "net.listen");
    object->is_listener = true;
    object->ready.op.done = native_net_on_ready;
    cy_err err = native_net_open_listener(object, text);
    if (!cy_failed(err)) err = handle_open(call->vm, &native_net_listener_type, object, call->fiber, &handle);
    if (cy_failed(err)) {
        native_net_let_go(object);
        return native_fail(call, err, "net.listen: \"%.*s\": %s", CY_BYTES_ARG(cy_bytes_slice(text, 0, 256)),
                           cy_err_describe(err, vm_korean(call->vm), why, sizeof why));
    }
    runtime_output_detach(runtime); /* a server from here on */
    return native_return(call, handle);
}
