/* SPDX-License-Identifier: MIT
 *
 * vm/run/handle.h: things with identity that a program holds: requests, sockets, files, tasks.
 *
 * Invariant: a handle value is index + generation. Its object is owned by one fiber (the task that opened it or got
 *       it by spawn or handle_give); when that fiber ends or someone closes it, the generation moves on and every
 *       copy is `closed`. So a stale handle is an error, never a dangling pointer.
 */
#ifndef CY_RUN_HANDLE_H
#define CY_RUN_HANDLE_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/run/value.h"

struct fiber;

struct handle_type {
    const char *name; /* "request" */
    /* Called once, when the handle is closed or its owner ends. May be NULL: somebody else owns the object. */
    void (*close)(struct vm *vm, void *object);
    /* x.name, as in request.host; false when there is no such field. `*err_out` is CY_OK before the call and looked at
     * first: when it is set there is no value, whatever was returned. May be NULL. */
    bool (*get_field)(struct vm *vm, void *object, cy_bytes name, cy_value *owned_out, cy_err *err_out);
};

/* `owner` NULL: not bound to a fiber; the opener closes it. */
CY_NODISCARD cy_err handle_open(struct vm *vm, const struct handle_type *type, void *object,
                                struct fiber *owner, cy_value *out);
/* The object, or NULL when the value is no handle of that type or is closed. */
void *handle_object(struct vm *vm, cy_value handle, const struct handle_type *type);
void handle_close(struct vm *vm, cy_value handle); /* closing twice is harmless */
/* Makes `owner` the one with which the handle closes, whoever was before; NULL: nobody. So an event of the outside
 * becomes the property of the task started for it, and `spawn f(handle)` moves it on. Harmless on a closed one. */
void handle_give(struct vm *vm, cy_value handle, struct fiber *owner);
/* The type's name also after closing; NULL when it is no handle. */
const char *handle_type_name(struct vm *vm, cy_value handle);

#endif
