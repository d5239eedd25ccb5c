/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_address.c: from the text of an address to listening descriptors, with a master or without one.
 *
 * In:   "127.0.0.1:80", ":80", "[::1]:80", "fd@3", "unix:/path[?mode=660]". Out: descriptors, for whoever listens.
 * Invariant: the file of a UNIX socket lies where the program may write.
 */
#include "vm/code/native_table.h"
#include "vm/native/runtime_internal.h"
#include "vm/sys/path_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

cy_err serve_address_may(const struct runtime *runtime, cy_bytes path)
{
    const struct beneath_root *root;
    struct builder below;
    if (!(runtime->options->capabilities & CAPABILITY_WRITE)) return CY_ERR(CAPABILITY);
    builder_init(&below);
    cy_err err = path_rules_find(runtime->rules, PATH_WRITE, path, &root, &below);
    builder_fini(&below);
    return err;
}

/* -- without a master ------------------------------------------------------------------------------------ */

static cy_err serve_address_unix(struct runtime *runtime, cy_bytes path, int mode, int *descriptor_out)
{
    struct serving *serving = &runtime->serving;
    CHECK(serving->socket_count < CY_COUNT_OF(serving->sockets));
    CY_TRY(unix_socket_listen(path, mode, LIMIT_LISTEN_BACKLOG, descriptor_out));
    struct serve_socket *socket = &serving->sockets[serving->socket_count++];
    builder_init(&socket->path);
    builder_bytes(&socket->path, path);
    socket->file = unix_socket_file(path);
    return CY_OK;
}

/* A copy, so that what was inherited stays whose it was. */
static cy_err serve_address_inherit(int number, int *descriptor_out)
{
    int listening = 0;
    socklen_t bytes = sizeof listening;
    if (getsockopt(number, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || !listening)
        return CY_ERR(BAD_ADDRESS);
    *descriptor_out = fcntl(number, F_DUPFD_CLOEXEC, 3);
    return *descriptor_out < 0 ? cy_err_from_errno(errno) : CY_OK;
}

static cy_err serve_address_alone(struct runtime *runtime, cy_bytes text, int *descriptor_out)
{
    int number;
    cy_bytes path;
    struct address address;
    if (address_split_unix(text, &path, &number))
        return serve_address_unix(runtime, path, number, descriptor_out);
    if (address_is_inherited(text, &number)) return serve_address_inherit(number, descriptor_out);
    CY_TRY(address_from_text(text, &address));
    return listen_open(&address, false, LIMIT_LISTEN_BACKLOG, descriptor_out);
}

void serve_addresses_close(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    for (uint32_t i = 0; i < serving->socket_count; i++) {
        unix_socket_remove(builder_view(&serving->sockets[i].path), serving->sockets[i].file);
        builder_fini(&serving->sockets[i].path);
    }
    serving->socket_count = 0;
}

/* -- both ------------------------------------------------------------------------------------------------ */

static cy_err serve_address_open_all(struct runtime *runtime, cy_bytes text,
                                     cy_err (*take)(void *context, int owned_descriptor), void *context)
{
    int descriptor, mode;
    cy_bytes path;
    struct address address;
    if (address_split_unix(text, &path, &mode)) CY_TRY(serve_address_may(runtime, path));
    if (!runtime->link) {
        CY_TRY(serve_address_alone(runtime, text, &descriptor));
        return take(context, descriptor);
    }
    for (uint32_t i = 0;; i++) {
        cy_err err = worker_listen(runtime->link, text, i, &descriptor, &address);
        if (i > 0 && cy_is(err, CY_ERR_NOT_FOUND)) return CY_OK;
        CY_TRY(err);
        CY_TRY(take(context, descriptor));
    }
}

bool serve_address_open(struct runtime *runtime, const char *text,
                        cy_err (*take)(void *context, int owned_descriptor), void *context)
{
    cy_err err = serve_address_open_all(runtime, cy_bytes_from_text(text), take, context);
    if (!cy_failed(err)) return true;
    runtime_request_exit(runtime, EXIT_CODE_CANNOT_LISTEN);
    /* Every worker meets a port in use; one says so. */
    if (cy_is(err, CY_ERR_ADDRESS_IN_USE) && runtime->link && runtime->worker_index > 0) return false;
    char why[128];
    fprintf(stderr,
            runtime->options->korean ? "%s: %s에서 기다릴 수 없습니다: %s\n"
                                     : "%s: cannot listen on %s: %s\n",
            runtime->options->program_name, text,
            cy_err_describe(err, runtime->options->korean, why, sizeof why));
    return false;
}
