/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_connect.c: net.connect, and where UNIX sockets lie.
 *
 *   start ─► numeric or unix ──────────► connect ─ok─► a handle
 *     └────► name ─► look-up ─► address 0 ─┘ │failed
 *                                            └► next address, none left: the last failure
 *
 * Invariant: one timer for all of it; the memory stays until the loop has completed its connect.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/native_net.h"
#include "vm/run/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct native_connect {
    struct runtime *runtime;
    struct fiber *fiber;
    wait_ticket ticket;
    struct timer timer;
    struct loop_connect connect;
    struct dns_query query; /* its addresses, also of one that needed no look-up */
    uint32_t address_index;
    uint16_t port;
    int folder; /* of a UNIX socket: held until the connect has completed */
    bool waiting, connecting, resolving;
    cy_err err; /* of the last address */
    struct builder text;
};

/* -- UNIX sockets ---------------------------------------------------------------------------------------- */

/* Where a rule holds, the path in the address goes through the folder's descriptor: so it is short, and leads where the
 * rule looked. */
static int native_connect_unix_path(const struct native_net_unix *place, bool ruled, cy_bytes path,
                                    char *text, size_t text_bytes)
{
    if (!ruled && path.count < text_bytes) return snprintf(text, text_bytes, "%.*s", CY_BYTES_ARG(path));
#ifdef __linux__
    return snprintf(text, text_bytes, "/proc/self/fd/%d/%s", place->folder, place->name);
#else
    (void)place;
    return -1;
#endif
}

cy_err native_net_find_unix(struct runtime *runtime, enum path_access access, cy_bytes path,
                            struct native_net_unix *place)
{
    const struct beneath_root *root;
    struct builder below;
    struct stat status;
    builder_init(&below);
    cy_err err = path_rules_find(runtime->rules, access, path, &root, &below);
    if (!cy_failed(err)) err = beneath_parent(root, (const char *)below.data, &place->folder, place->name);
    builder_fini(&below);
    CY_TRY(err);
    memset(&place->address, 0, sizeof place->address);
    struct sockaddr_un *name = (struct sockaddr_un *)&place->address.storage;
    bool ruled = root->descriptor != AT_FDCWD;
    name->sun_family = AF_UNIX;
    place->address.bytes = sizeof *name;
    int count = native_connect_unix_path(place, ruled, path, name->sun_path, sizeof name->sun_path);
    if (count < 0) err = CY_ERR(UNSUPPORTED);
    if (count >= (int)sizeof name->sun_path) err = CY_ERR_DETAIL(SYSTEM, ENAMETOOLONG);
    /* connect would follow a link in the last place. */
    if (ruled && fstatat(place->folder, place->name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(status.st_mode))
        err = CY_ERR(PERMISSION);
    if (cy_failed(err)) close(place->folder);
    return err;
}

/* -- connecting ------------------------------------------------------------------------------------------ */

static void native_connect_release(struct native_connect *one)
{
    if (one->connecting || one->waiting) return;
    if (one->folder >= 0) close(one->folder);
    builder_fini(&one->text);
    mem_free(one);
}

/* Ends the waiting of the loop and of the look-up; the task is answered by the caller. */
static void native_connect_stop(struct native_connect *one)
{
    one->waiting = false;
    loop_timer_clear(one->runtime->loop, &one->timer);
    if (one->resolving) dns_cancel(&one->query);
    one->resolving = false;
    if (one->connecting) loop_connect_cancel(one->runtime->loop, &one->connect);
    native_connect_release(one);
}

static void native_connect_fail(struct native_connect *one, cy_err err)
{
    struct builder text;
    char why[128];
    bool korean = vm_korean(one->runtime->vm);
    builder_init(&text);
    builder_printf(&text, "net.connect: \"%.*s\": %s", CY_BYTES_ARG(builder_view(&one->text)),
                   cy_err_describe(err, korean, why, sizeof why));
    vm_complete_failed(one->runtime->vm, one->ticket, err, text.failed ? CY_BYTES_NONE : builder_view(&text));
    builder_fini(&text);
    native_connect_stop(one);
}

static void native_connect_try(struct native_connect *one);

static void native_connect_done(struct loop_op *op)
{
    struct loop_connect *connect = CY_CONTAINER_OF(op, struct loop_connect, op);
    struct native_connect *one = CY_CONTAINER_OF(connect, struct native_connect, connect);
    cy_value connection;
    one->connecting = false;
    if (!one->waiting) {
        if (!cy_failed(op->err)) loop_socket_close(&connect->socket);
        native_connect_release(one);
        return;
    }
    if (cy_failed(op->err)) {
        one->err = op->err;
        native_connect_try(one);
        return;
    }
    cy_err err = native_net_adopt(one->runtime, connect->socket, one->fiber, &connection);
    if (cy_failed(err)) {
        native_connect_fail(one, err);
        return;
    }
    vm_complete(one->runtime->vm, one->ticket, connection);
    native_connect_stop(one);
}

static void native_connect_try(struct native_connect *one)
{
    if (one->address_index == one->query.address_count) {
        native_connect_fail(one, one->err);
        return;
    }
    struct address *address = &one->query.addresses[one->address_index++];
    if (one->folder < 0) address_set_port(address, one->port);
    one->connecting = true;
    one->connect.op.done = native_connect_done;
    loop_connect(one->runtime->loop, address, &one->connect);
}

static void native_connect_resolved(struct dns_query *query)
{
    struct native_connect *one = CY_CONTAINER_OF(query, struct native_connect, query);
    one->resolving = false;
    if (cy_failed(query->err))
        native_connect_fail(one, query->err);
    else
        native_connect_try(one);
}

static void native_connect_timeout(struct timer *timer)
{
    native_connect_fail(CY_CONTAINER_OF(timer, struct native_connect, timer), CY_ERR(TIMEOUT));
}
static void native_connect_cancel(void *operation) { native_connect_stop(operation); }

/* Where it leads: addresses at once, or a look-up that begins. */
static cy_err native_connect_find(struct native_connect *one, cy_bytes text)
{
    struct runtime *runtime = one->runtime;
    cy_bytes host;
    CY_TRY(runtime_need_loop(runtime));
    if (cy_bytes_start_with(text, CY_BYTES("unix:"))) {
        struct native_net_unix place;
        /* Writing, as the system sees it: services of the machine take orders there that are as good as run. */
        CY_TRY(native_net_find_unix(runtime, PATH_WRITE, cy_bytes_skip(text, 5), &place));
        one->folder = place.folder;
        one->query.addresses[0] = place.address;
        one->query.address_count = 1;
        return CY_OK;
    }
    CY_TRY(address_split(text, &host, &one->port));
    if (host.count == 0 || one->port == 0 || host.count > LIMIT_NAME_BYTES) return CY_ERR(BAD_ADDRESS);
    if (!cy_failed(address_from_ip(host, one->port, &one->query.addresses[0]))) {
        one->query.address_count = 1;
        return CY_OK;
    }
    if (!runtime->dns) CY_TRY(dns_new(runtime->loop, &runtime->dns));
    one->resolving = true;
    one->query.done = native_connect_resolved;
    dns_resolve(runtime->dns, host, &one->query);
    return CY_OK;
}

enum native_outcome native_net_connect(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_bytes text = string_bytes(call->args[0]);
    int64_t timeout_ms = native_has_arg(call, 1) ? call->args[1].as.i : LIMIT_CONNECT_TIMEOUT_MS;
    char why[128];
    if (timeout_ms < 1 || timeout_ms > LIMIT_TIMEOUT_MS)
        return native_fail(call, CY_ERR(VALUE),
                           "net.connect: timeout_ms must be 1..%d (TIMEOUT_MS), not %lld", LIMIT_TIMEOUT_MS,
                           (long long)timeout_ms);
    if (runtime_is_configuring(runtime, call->instance))
        return native_fail(call, CY_ERR(UNSUPPORTED), "net.connect: not in configure");
    struct native_connect *one = mem_alloc_zeroed(sizeof *one);
    if (!one) return native_fail_reason(call, CY_ERR(NO_MEMORY), "net.connect");
    one->runtime = runtime;
    one->fiber = call->fiber;
    one->folder = -1;
    one->err = CY_ERR(UNREACHABLE);
    builder_init(&one->text);
    builder_bytes(&one->text, cy_bytes_slice(text, 0, 512));
    cy_err err = native_connect_find(one, text);
    if (cy_failed(err)) {
        native_connect_release(one);
        return native_fail(call, err, "net.connect: \"%.*s\": %s", CY_BYTES_ARG(cy_bytes_slice(text, 0, 512)),
                           cy_err_describe(err, vm_korean(call->vm), why, sizeof why));
    }
    one->waiting = true;
    one->timer.fire = native_connect_timeout;
    loop_timer_set(runtime->loop, &one->timer, (uint64_t)timeout_ms);
    one->ticket = native_wait(call, native_connect_cancel, one);
    if (!one->resolving) native_connect_try(one);
    return NATIVE_WAIT;
}
