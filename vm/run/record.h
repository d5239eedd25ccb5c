/* SPDX-License-Identifier: MIT
 *
 * vm/run/record.h: records, their shapes, and the small objects: range, ref, function, opaque. Private to
 * vm/run.
 *
 * Invariant: a record's shape never changes; records of one type share it, so a cached (shape, index) pair
 *       answers a field access. Shapes are counted because a record may outlive the instance that declared
 *       its type.
 */
#ifndef CY_RUN_RECORD_H
#define CY_RUN_RECORD_H

#include "vm/run/heap.h"
#include "vm/run/object.h"

/* What a field may hold, for ever. A type is known by its serial: counting references here would tie types that
 * name each other into a circle, and an address may be used again. */
struct record_rule {
    uint32_t kinds;     /* as in struct record_field */
    uint64_t serial;    /* of the only shape of a record; 0: any record */
    cy_value type_name; /* str, or nil */
};
struct record_shape {
    /* The instance that declared it, NULL for the VM's own: how long a cache may trust its address. */
    const void *owner;
    uint64_t serial; /* no other shape of this VM ever has it */
    uint32_t refs;
    uint32_t field_count;
    struct record_rule *rules; /* by field; NULL: every field holds anything */
    cy_value name;             /* str */
    cy_value fields[];         /* str */
};
struct record {
    struct container container;
    struct record_shape *shape;
    uint32_t live_count; /* fields not yet let go; falls only while the record is being freed */
    cy_value fields[];
};
static inline struct record *record_of(cy_value value)
{
    DCHECK(value.tag == TAG_RECORD);
    return (struct record *)value.as.object;
}

/* `field_names` are copied. */
CY_NODISCARD cy_err record_shape_new(struct vm *vm, const void *owner, cy_bytes name,
                                     const cy_bytes *field_names, uint32_t field_count,
                                     struct record_shape **shape_out);
/* Before the first record of it. `type` (NULL: any) goes with KIND_RECORD among the kinds. */
CY_NODISCARD cy_err record_shape_rule(struct vm *vm, struct record_shape *shape, uint32_t field,
                                      uint32_t kinds, const struct record_shape *type);
/* False, with the error raised, when the value is not of the field's kind. */
bool record_check_field(struct vm *vm, const struct record_shape *shape, uint32_t field, cy_value value);
void record_shape_unref(struct vm *vm, struct record_shape *shape);
/* The field's index or UINT32_MAX. */
uint32_t record_shape_find(const struct record_shape *shape, cy_bytes field);
/* Takes the fields on success only. Whoever lets a program choose them has checked each with record_check_field. */
CY_NODISCARD cy_err record_new(struct vm *vm, struct record_shape *shape, const cy_value *fields,
                               cy_value *owned_out);
CY_NODISCARD cy_err record_copy(struct vm *vm, cy_value record, cy_value *owned_out);
void record_free(struct vm *vm, struct record *record);

struct range {
    struct object head;
    int64_t from;
    int64_t to; /* not included */
};
static inline struct range *range_of(cy_value value)
{
    DCHECK(value.tag == TAG_RANGE);
    return (struct range *)value.as.object;
}
CY_NODISCARD cy_err range_new(struct vm *vm, int64_t from, int64_t to, cy_value *owned_out);
static inline uint64_t range_count(const struct range *range)
{
    return range->to > range->from ? (uint64_t)range->to - (uint64_t)range->from : 0;
}

/* The one shared mutable cell. All live cells are linked, so that refs.c and vm_free find and break cycles. */
struct ref {
    struct container container;
    struct ref *previous;
    struct ref *next;
    cy_value value;
};
static inline struct ref *ref_of(cy_value value)
{
    DCHECK(value.tag == TAG_REF);
    return (struct ref *)value.as.object;
}
/* What making or writing a cell pays for a later search (refs.c), in steps of it. */
enum { REF_CREDIT = 16 };
CY_NODISCARD cy_err ref_new(struct vm *vm, cy_value owned_value, cy_value *owned_out);
void ref_free(struct vm *vm, struct ref *ref);

struct instance;
/* A function as a value: code of an instance with its captures, or a native. */
struct function_object {
    struct container container;
    struct instance *instance; /* counted as a holder that does not keep module variables alive */
    uint32_t index;            /* of the function, or of the native import */
    bool native;
    uint32_t capture_count; /* falls while it is being freed */
    uint32_t capture_capacity;
    cy_value captures[];
};
static inline struct function_object *function_of(cy_value value)
{
    DCHECK(value.tag == TAG_FUNCTION);
    return (struct function_object *)value.as.object;
}
/* Captures are nil until the caller sets them. */
CY_NODISCARD cy_err function_new(struct vm *vm, struct instance *instance, uint32_t index, bool native,
                                 uint32_t capture_count, cy_value *owned_out);
void function_free(struct vm *vm, struct function_object *function);

struct opaque {
    struct container container;
    const struct opaque_type *type;
    void *payload;
    size_t payload_bytes; /* counted as the heap's */
};
static inline struct opaque *opaque_of(cy_value value)
{
    DCHECK(value.tag == TAG_OPAQUE);
    return (struct opaque *)value.as.object;
}
void opaque_free(struct vm *vm, struct opaque *opaque);

#endif
