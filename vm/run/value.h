/* SPDX-License-Identifier: MIT
 *
 * vm/run/value.h: the 16-byte value and who owns it.
 *
 * In:   tag + payload. gcc passes one in two registers.
 * Out:  counting references, and the small constructors.
 * Ownership: a cy_value in a slot, list, map or record owns one reference when its tag is TAG_HEAP or above.
 *       Functions that take `owned_x` take that reference on success and on failure; plain parameters are borrowed.
 * Invariant: a heap object that is not shared (refs == 1) may be written in place; a shared one never (values, not
 *       references). TAG_REF is the one exception: its cell is written however many hold it.
 * Threads: none; a VM and its values belong to one thread, so counts are plain.
 */
#ifndef CY_RUN_VALUE_H
#define CY_RUN_VALUE_H

#include "vm/base/base.h"
#include "vm/base/check.h"

struct vm;

enum value_tag {
    TAG_NIL,
    TAG_ABSENT, /* an argument that was not given: LOCAL_DEFAULT tells it from nil, nothing else does */
    TAG_BOOL,
    TAG_INT,
    TAG_FLOAT,
    TAG_HANDLE,  /* index and generation into the VM's handle table; owns nothing */
    TAG_INTLOOP, /* the rest below TAG_HEAP are slots that programs cannot name */
    TAG_ITER_INDEX,
    TAG_HANDLER,
    TAG_STOP, /* a pending stop (enum cy_err_code in the payload); in PENDING slots only */
    TAG_HEAP, /* first tag whose payload is a struct object * */
    TAG_STR = TAG_HEAP,
    TAG_LIST,
    TAG_MAP,
    TAG_RANGE,
    TAG_RECORD,
    TAG_FUNCTION,
    TAG_REF,
    TAG_OPAQUE,
    TAG_COUNT
};

/* Zeroed memory is nil; one comparison tells nil and absent from the rest, one what holds a reference. */
_Static_assert(TAG_NIL == 0 && TAG_ABSENT == 1, "value_is_nil compares once");
_Static_assert(TAG_BOOL < TAG_FLOAT && TAG_INT < TAG_FLOAT, "value_truthy looks at payloads up to TAG_FLOAT");
_Static_assert(TAG_STOP + 1 == TAG_HEAP && TAG_STR == TAG_HEAP && TAG_OPAQUE + 1 == TAG_COUNT,
               "objects are the last tags, and all of them");

/* Head of everything on the VM's heap. The tag stands in the value, and here again for freeing. */
struct object {
    uint32_t refs;
    uint8_t tag;
    uint8_t flags;   /* private to the owner of the tag */
    uint16_t detail; /* the same; records of errors keep their enum cy_err_code here */
};

typedef struct cy_value {
    uint64_t tag; /* enum value_tag */
    union {
        bool b;
        int64_t i;
        double f;
        uint64_t handle; /* generation << 32 | index */
        struct object *object;
    } as;
} cy_value;

static inline cy_value value_nil(void) { return (cy_value){TAG_NIL, {.i = 0}}; }
static inline cy_value value_absent(void) { return (cy_value){TAG_ABSENT, {.i = 0}}; }
static inline cy_value value_bool(bool b)
{
    return (cy_value){TAG_BOOL, {.i = b}};
} /* the whole payload is 0 or 1 */
static inline cy_value value_int(int64_t i) { return (cy_value){TAG_INT, {.i = i}}; }
static inline cy_value value_float(double f) { return (cy_value){TAG_FLOAT, {.f = f}}; }
static inline cy_value value_object(enum value_tag tag, struct object *object)
{
    return (cy_value){tag, {.object = object}};
}

static inline bool value_is_heap(cy_value value) { return value.tag >= TAG_HEAP; }
/* nil, or an argument that was not given, which reads as nil. The payload says nothing: moving a value out
 * of a slot leaves it there. */
static inline bool value_is_nil(cy_value value) { return value.tag <= TAG_ABSENT; }
/* False are nil, false, 0 and 0.0. */
static inline bool value_truthy(cy_value value)
{
    if (value.tag == TAG_FLOAT) return value.as.f != 0.0;
    return value.tag > TAG_ABSENT && (value.tag > TAG_FLOAT || value.as.i != 0);
}

/* Adds a reference; returns the value for chaining. */
static inline cy_value value_ref(cy_value value)
{
    if (value_is_heap(value)) value.as.object->refs++;
    return value;
}
/* Frees an object whose count reached 0, and what only it held, without recursion; large frees go on over later
 * turns. */
void value_free(struct vm *vm, cy_value value);
static inline void value_unref(struct vm *vm, cy_value owned_value)
{
    if (value_is_heap(owned_value) && --owned_value.as.object->refs == 0) value_free(vm, owned_value);
}
static inline bool value_is_unshared(cy_value value)
{
    return value_is_heap(value) && value.as.object->refs == 1;
}

#endif
