/* SPDX-License-Identifier: MIT
 *
 * vm/net/master_listen.c: the listening descriptors that the master keeps, one per address and worker slot.
 *
 * In:   addresses as workers write them. Out: borrowed descriptors.
 * Invariant: a port that another process listens on is never shared: the first time an address is asked for it is
 *       bound without SO_REUSEPORT, which fails then. Port 0 is decided once, so all slots share one port.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop.h"
#include "vm/net/master_internal.h"

#include <sys/socket.h>
#include <unistd.h>

#define MASTER_LISTEN_PORT_TRIES 8 /* another process may take the port that 0 became before we open it */

struct master_listener {
    cy_bytes text; /* owned */
    struct address address;
    bool inherited;   /* "fd@N": one descriptor for all, not ours to close */
    int *descriptors; /* by slot, -1: not opened yet */
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

static void master_listener_fini(struct master_listener *row, uint32_t slot_count)
{
    for (uint32_t slot = 0; row->descriptors && slot < slot_count && !row->inherited; slot++)
        if (row->descriptors[slot] >= 0) close(row->descriptors[slot]);
    mem_free(row->descriptors);
    mem_free((void *)(uintptr_t)row->text.data);
}

void master_listeners_free(struct master_listeners **listeners_pointer)
{
    struct master_listeners *listeners = *listeners_pointer;
    if (!listeners) return;
    *listeners_pointer = NULL;
    for (uint32_t i = 0; i < listeners->count; i++)
        master_listener_fini(&listeners->rows[i], listeners->slot_count);
    mem_free(listeners);
}

/* A number from a worker's text is only as good as what it names: a socket that listens. */
static cy_err master_listen_inherit(struct master_listener *row, uint32_t slot_count, int descriptor)
{
    int listening = 0;
    socklen_t bytes = sizeof listening;
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) != 0 || !listening)
        return CY_ERR(BAD_ADDRESS);
    row->inherited = true;
    for (uint32_t slot = 0; slot < slot_count; slot++) row->descriptors[slot] = descriptor;
    return socket_local_address(descriptor, &row->address);
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

static cy_err master_listen_add(struct master_listeners *listeners, uint32_t slot, cy_bytes text)
{
    if (listeners->count == LIMIT_LISTENERS) return CY_ERR(TOO_MANY);
    struct master_listener row = {.descriptors = mem_alloc(listeners->slot_count * sizeof(int))};
    uint8_t *copy = mem_alloc(text.count);
    cy_err err = row.descriptors && copy ? CY_OK : CY_ERR(NO_MEMORY);
    row.text = cy_bytes_of(copy, text.count);
    int inherited;
    struct address wanted;
    if (!cy_failed(err)) {
        memcpy(copy, text.data, text.count);
        for (uint32_t i = 0; i < listeners->slot_count; i++) row.descriptors[i] = -1;
        if (address_is_inherited(text, &inherited)) {
            err = master_listen_inherit(&row, listeners->slot_count, inherited);
        } else {
            err = address_from_text(text, &wanted);
            if (!cy_failed(err)) err = master_listen_first(&row, slot, &wanted);
        }
    }
    if (cy_failed(err)) {
        master_listener_fini(&row, listeners->slot_count);
        return err;
    }
    listeners->rows[listeners->count++] = row;
    return CY_OK;
}

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

cy_err master_listeners_get(struct master_listeners *listeners, uint32_t slot, cy_bytes text,
                            int *descriptor_out, struct address *actual_out)
{
    CHECK(slot < listeners->slot_count);
    uint32_t i = master_listen_find(listeners, text);
    if (i == listeners->count) CY_TRY(master_listen_add(listeners, slot, text));
    struct master_listener *row = &listeners->rows[i];
    if (row->descriptors[slot] < 0)
        CY_TRY(listen_open(&row->address, true, LIMIT_LISTEN_BACKLOG, &row->descriptors[slot]));
    *descriptor_out = row->descriptors[slot];
    *actual_out = row->address;
    return CY_OK;
}

#undef MASTER_LISTEN_PORT_TRIES
