/* SPDX-License-Identifier: MIT
 *
 * vm/net/master_listen.c: the listening descriptors that the master keeps, one per address and worker slot.
 *
 *   positions of an address with 2 workers:   0 1 | 2 3 | 4      slot 0 serves 0, 2 and 4, slot 1 serves 1 and 3
 *
 * In:   addresses as workers write them; what a master before this one opened. Out: borrowed descriptors.
 * Invariant: a port that another process listens on is never shared: the first time an address is asked for it is
 *       bound without SO_REUSEPORT, which fails then. Port 0 is decided once, so all slots share one port. A socket
 *       that the kernel gives clients to is served by some slot: with fewer workers than before some serve several.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop.h"
#include "vm/net/master_internal.h"
#include "vm/net/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define MASTER_LISTEN_PORT_TRIES 8 /* another process may take the port that 0 became before we open it */

struct master_listener {
    cy_bytes text; /* owned */
    struct address address;
    cy_bytes path; /* of a UNIX socket: part of `text`; empty: none */
    struct unix_socket_file file;
    bool shared;      /* one descriptor, at position 0, for all slots: "fd@N", UNIX sockets */
    bool borrowed;    /* "fd@N": not ours to close */
    bool claimed;     /* a worker of ours has asked for it */
    uint32_t count;   /* positions, at least one per slot */
    int *descriptors; /* by position, -1: not opened */
};
struct master_listeners {
    uint32_t slot_count;
    uint32_t count;
    struct master_listener rows[LIMIT_LISTENERS];
};

cy_err master_listeners_new(uint32_t slot_count, struct master_listeners **listeners_out)
{
    struct master_listeners *listeners = mem_alloc_zeroed(sizeof *listeners);
    if (!listeners) return CY_ERR(NO_MEMORY);
    listeners->slot_count = slot_count;
    *listeners_out = listeners;
    return CY_OK;
}

static void master_listener_fini(struct master_listener *row, bool last)
{
    if (last && row->path.count > 0) unix_socket_remove(row->path, row->file);
    for (uint32_t i = 0; row->descriptors && i < row->count && !row->borrowed; i++)
        if (row->descriptors[i] >= 0) close(row->descriptors[i]);
    mem_free(row->descriptors);
    mem_free((void *)(uintptr_t)row->text.data);
}

void master_listeners_free(struct master_listeners **listeners_pointer, bool last)
{
    struct master_listeners *listeners = *listeners_pointer;
    if (!listeners) return;
    *listeners_pointer = NULL;
    for (uint32_t i = 0; i < listeners->count; i++) master_listener_fini(&listeners->rows[i], last);
    mem_free(listeners);
}

/* -- new addresses --------------------------------------------------------------------------------------- */

/* A number from a worker's text is only as good as what it names: a socket that listens. */
static cy_err master_listen_check(int descriptor, struct address *address_out)
{
    int listening = 0;
    socklen_t bytes = sizeof listening;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || !listening)
        return CY_ERR(BAD_ADDRESS);
    return socket_local_address(descriptor, address_out);
}

static cy_err master_listen_unix(struct master_listener *row, int mode)
{
    CY_TRY(address_from_path(row->path, &row->address));
    CY_TRY(unix_socket_listen(row->path, mode, LIMIT_LISTEN_BACKLOG, &row->descriptors[0]));
    row->file = unix_socket_file(row->path);
    return CY_OK;
}

/* Fills slot `slot` of a new row. */
static cy_err master_listen_first(struct master_listener *row, uint32_t slot, const struct address *wanted)
{
    cy_err err = CY_OK;
    for (int i = 0; i < MASTER_LISTEN_PORT_TRIES; i++) {
        CY_TRY(listen_probe(wanted, &row->address));
        err = listen_open(&row->address, true, LIMIT_LISTEN_BACKLOG, &row->descriptors[slot]);
        if (!cy_is(err, CY_ERR_ADDRESS_IN_USE) || address_port(wanted) != 0) break;
    }
    return err;
}

static bool master_listener_grow(struct master_listener *row, uint32_t count)
{
    if (count <= row->count) return true;
    int *descriptors = mem_resize(row->descriptors, count * sizeof *descriptors);
    if (!descriptors) return false;
    for (uint32_t i = row->count; i < count; i++) descriptors[i] = -1;
    row->descriptors = descriptors;
    row->count = count;
    return true;
}

/* An empty row of this text, at the end of the list. */
static cy_err master_listen_row(struct master_listeners *listeners, cy_bytes text,
                                struct master_listener **row_out)
{
    if (listeners->count == LIMIT_LISTENERS) return CY_ERR(TOO_MANY);
    if (!address_can_listen(text)) return CY_ERR(BAD_ADDRESS);
    struct master_listener *row = &listeners->rows[listeners->count];
    *row = (struct master_listener){.count = 0};
    uint8_t *copy = mem_alloc(text.count);
    if (copy) {
        memcpy(copy, text.data, text.count);
        row->text = cy_bytes_of(copy, text.count);
    }
    if (!copy || !master_listener_grow(row, listeners->slot_count)) {
        master_listener_fini(row, false);
        return CY_ERR(NO_MEMORY);
    }
    int number;
    if (!address_split_unix(row->text, &row->path, &number)) row->path = CY_BYTES_NONE;
    row->borrowed = address_is_inherited(text, &number);
    row->shared = row->borrowed || row->path.count > 0;
    *row_out = row;
    return CY_OK;
}

static cy_err master_listen_add(struct master_listeners *listeners, uint32_t slot, cy_bytes text)
{
    struct master_listener *row;
    CY_TRY(master_listen_row(listeners, text, &row));
    int number;
    struct address wanted;
    cy_err err;
    if (row->borrowed && address_is_inherited(text, &number)) {
        err = master_listen_check(number, &row->address);
        if (!cy_failed(err)) row->descriptors[0] = number;
    } else if (address_split_unix(row->text, &row->path, &number)) {
        err = master_listen_unix(row, number);
    } else {
        err = address_from_text(text, &wanted);
        if (!cy_failed(err)) err = master_listen_first(row, slot, &wanted);
    }
    if (cy_failed(err))
        master_listener_fini(row, false);
    else
        listeners->count++;
    return err;
}

/* -- asking ---------------------------------------------------------------------------------------------- */

static uint32_t master_listen_find(const struct master_listeners *listeners, cy_bytes text)
{
    uint32_t i = 0;
    while (i < listeners->count && !cy_bytes_equal(listeners->rows[i].text, text)) i++;
    return i;
}

bool master_listeners_have(const struct master_listeners *listeners, cy_bytes text)
{
    return master_listen_find(listeners, text) < listeners->count;
}

cy_err master_listeners_get(struct master_listeners *listeners, uint32_t slot, uint32_t index, cy_bytes text,
                            int *descriptor_out, struct address *actual_out)
{
    CHECK(slot < listeners->slot_count);
    uint32_t i = master_listen_find(listeners, text);
    if (i == listeners->count) {
        if (index > 0) return CY_ERR(NOT_FOUND);
        CY_TRY(master_listen_add(listeners, slot, text));
    }
    struct master_listener *row = &listeners->rows[i];
    uint64_t position = row->shared ? index : slot + (uint64_t)index * listeners->slot_count;
    if (position >= row->count || (index > 0 && row->descriptors[position] < 0)) return CY_ERR(NOT_FOUND);
    row->claimed = true;
    if (row->descriptors[position] < 0)
        CY_TRY(listen_open(&row->address, true, LIMIT_LISTEN_BACKLOG, &row->descriptors[position]));
    *descriptor_out = row->descriptors[position];
    *actual_out = row->address;
    return CY_OK;
}

/* -- from one master to the next ------------------------------------------------------------------------- */

static cy_err master_listen_put(struct master_listeners *listeners, uint32_t position, cy_bytes text,
                                const struct address *address, int descriptor)
{
    uint32_t i = master_listen_find(listeners, text);
    struct master_listener *row = &listeners->rows[i];
    bool is_new = i == listeners->count;
    if (is_new) CY_TRY(master_listen_row(listeners, text, &row));
    cy_err err = CY_OK;
    if (position >= LIMIT_WORKERS || (row->shared && position > 0))
        err = CY_ERR(BAD_FORMAT);
    else if (!master_listener_grow(row, position + 1))
        err = CY_ERR(NO_MEMORY);
    else if (row->descriptors[position] >= 0)
        err = CY_ERR(BAD_FORMAT);
    if (cy_failed(err)) {
        if (is_new) master_listener_fini(row, false);
        return err;
    }
    row->descriptors[position] = descriptor;
    row->address = *address;
    if (row->path.count > 0) row->file = unix_socket_file(row->path);
    if (is_new) listeners->count++;
    return CY_OK;
}

cy_err master_listeners_adopt(struct master_listeners *listeners, uint32_t position, cy_bytes text,
                              int owned_descriptor)
{
    struct address address;
    int number;
    CY_TRY(master_listen_check(owned_descriptor, &address));
    if (address_is_inherited(text, &number) && number != owned_descriptor) return CY_ERR(BAD_FORMAT);
    return master_listen_put(listeners, position, text, &address, owned_descriptor);
}

void master_listeners_drop_unclaimed(struct master_listeners *listeners)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (listeners->rows[i].claimed)
            listeners->rows[kept++] = listeners->rows[i];
        else
            master_listener_fini(&listeners->rows[i], true);
    }
    listeners->count = kept;
}

void master_listeners_each(const struct master_listeners *listeners,
                           void (*each)(void *context, uint32_t position, cy_bytes text, int descriptor),
                           void *context)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct master_listener *row = &listeners->rows[i];
        for (uint32_t k = 0; k < row->count; k++)
            if (row->descriptors[k] >= 0) each(context, k, row->text, row->descriptors[k]);
    }
}

#undef MASTER_LISTEN_PORT_TRIES
