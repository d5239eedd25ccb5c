/* SPDX-License-Identifier: MIT
 *
 * vm/run/record.c: records and their shapes, ranges, cells, functions, opaque values.
 *
 * In:   field values, bounds, captures. Out: owned values.
 * Invariant: a shape is counted by its instance and by every record of it.
 */
#include "vm/run/record.h"

#include "vm/code/opcode.h"
#include "vm/run/code.h"
#include "vm/run/fiber.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

/* -- shapes ---------------------------------------------------------------------------------------------- */

static size_t record_shape_bytes(uint32_t field_count)
{
    return sizeof(struct record_shape) + field_count * sizeof(cy_value);
}

cy_err record_shape_new(struct vm *vm, const void *owner, cy_bytes name, const cy_bytes *field_names,
                        uint32_t field_count, struct record_shape **shape_out)
{
    struct record_shape *shape = heap_alloc(vm, record_shape_bytes(field_count));
    if (!shape) return CY_ERR(NO_MEMORY);
    shape->owner = owner;
    shape->serial = ++vm->shape_serial;
    shape->rules = NULL;
    shape->refs = 1;
    shape->field_count = field_count;
    shape->name = value_nil();
    for (uint32_t i = 0; i < field_count; i++) shape->fields[i] = value_nil();
    cy_err err = string_new(vm, name, &shape->name);
    for (uint32_t i = 0; i < field_count && !cy_failed(err); i++)
        err = string_new(vm, field_names[i], &shape->fields[i]);
    if (cy_failed(err)) {
        record_shape_unref(vm, shape);
        return err;
    }
    *shape_out = shape;
    return CY_OK;
}

void record_shape_unref(struct vm *vm, struct record_shape *shape)
{
    if (!shape || --shape->refs > 0) return;
    value_unref(vm, shape->name);
    for (uint32_t i = 0; i < shape->field_count; i++) value_unref(vm, shape->fields[i]);
    for (uint32_t i = 0; shape->rules && i < shape->field_count; i++)
        value_unref(vm, shape->rules[i].type_name);
    heap_free(vm, shape->rules, shape->field_count * sizeof *shape->rules);
    heap_free(vm, shape, record_shape_bytes(shape->field_count));
}

cy_err record_shape_rule(struct vm *vm, struct record_shape *shape, uint32_t field, uint32_t kinds,
                         const struct record_shape *type)
{
    CHECK(field < shape->field_count);
    if (!shape->rules) {
        shape->rules = heap_alloc(vm, shape->field_count * sizeof *shape->rules);
        if (!shape->rules) return CY_ERR(NO_MEMORY);
        for (uint32_t i = 0; i < shape->field_count; i++)
            shape->rules[i] = (struct record_rule){.kinds = RECORD_FIELD_ANY, .type_name = value_nil()};
    }
    struct record_rule *rule = &shape->rules[field];
    rule->kinds = kinds;
    if (type) {
        rule->serial = type->serial;
        rule->type_name = value_ref(type->name);
    }
    return CY_OK;
}

/* "str|nil": what the field takes, in the order of kind.def but for nil, which comes last. */
static void record_describe_rule(const struct record_rule *rule, struct builder *out)
{
    for (unsigned i = 1; i <= KIND_COUNT; i++) {
        unsigned kind = i % KIND_COUNT;
        if (!(rule->kinds & RECORD_FIELD_KIND(kind))) continue;
        if (out->count) builder_u8(out, '|');
        if (kind == KIND_RECORD && rule->serial)
            builder_bytes(out, string_bytes(rule->type_name));
        else
            builder_text(out, kind_name((enum value_kind)kind, false));
    }
}

bool record_check_field(struct vm *vm, const struct record_shape *shape, uint32_t field, cy_value value)
{
    if (!shape->rules) return true;
    const struct record_rule *rule = &shape->rules[field];
    uint32_t kind = value_kind_by_tag[value.tag];
    bool fits = rule->kinds & RECORD_FIELD_KIND(kind) &&
                (kind != KIND_RECORD || rule->serial == 0 || record_of(value)->shape->serial == rule->serial);
    if (CY_LIKELY(fits)) return true;
    struct builder wanted;
    builder_init(&wanted);
    record_describe_rule(rule, &wanted);
    bool raised = error_raise(vm, CY_ERR(TYPE), MESSAGE_FIELD_KIND, CY_BYTES_ARG(string_bytes(shape->name)),
                              CY_BYTES_ARG(string_bytes(shape->fields[field])),
                              CY_BYTES_ARG(builder_view(&wanted)), value_kind_text(vm, value));
    builder_fini(&wanted);
    return raised;
}

uint32_t record_shape_find(const struct record_shape *shape, cy_bytes field)
{
    for (uint32_t i = 0; i < shape->field_count; i++)
        if (cy_bytes_equal(string_bytes(shape->fields[i]), field)) return i;
    return UINT32_MAX;
}

/* -- records --------------------------------------------------------------------------------------------- */

static size_t record_bytes(const struct record_shape *shape)
{
    return sizeof(struct record) + shape->field_count * sizeof(cy_value);
}

cy_err record_new(struct vm *vm, struct record_shape *shape, const cy_value *fields, cy_value *owned_out)
{
    struct record *record = heap_new_object(vm, TAG_RECORD, record_bytes(shape));
    if (!record) return CY_ERR(NO_MEMORY);
    shape->refs++;
    record->shape = shape;
    record->live_count = shape->field_count;
    for (uint32_t i = 0; i < shape->field_count; i++) record->fields[i] = fields[i];
    *owned_out = value_object(TAG_RECORD, &record->container.head);
    return CY_OK;
}

cy_err record_copy(struct vm *vm, cy_value record, cy_value *owned_out)
{
    struct record *from = record_of(record);
    CY_TRY(record_new(vm, from->shape, from->fields, owned_out));
    for (uint32_t i = 0; i < from->shape->field_count; i++) value_ref(from->fields[i]);
    owned_out->as.object->detail = from->container.head.detail; /* an error stays the row it was made from */
    return CY_OK;
}

bool record_field_at(struct vm *vm, cy_value value, size_t index, cy_value *name_out, cy_value *value_out)
{
    CHECK(value.tag == TAG_RECORD);
    const struct record *record = record_of(value);
    if (index >= record->shape->field_count) return false;
    if (index == 0) error_settle_places(vm, value);
    *name_out = record->shape->fields[index];
    *value_out = record->fields[index];
    return true;
}

void record_free(struct vm *vm, struct record *record)
{
    struct record_shape *shape = record->shape;
    heap_free_object(vm, &record->container.head, record_bytes(shape));
    record_shape_unref(vm, shape);
}

/* -- ranges, cells --------------------------------------------------------------------------------------- */

cy_err range_new(struct vm *vm, int64_t from, int64_t to, cy_value *owned_out)
{
    struct range *range = heap_new_object(vm, TAG_RANGE, sizeof *range);
    if (!range) return CY_ERR(NO_MEMORY);
    range->from = from;
    range->to = to;
    *owned_out = value_object(TAG_RANGE, &range->head);
    return CY_OK;
}

uint64_t range_item_count(cy_value range)
{
    CHECK(range.tag == TAG_RANGE);
    return range_count(range_of(range));
}

int64_t range_first(cy_value range)
{
    CHECK(range.tag == TAG_RANGE);
    return range_of(range)->from;
}

cy_err ref_new(struct vm *vm, cy_value owned_value, cy_value *owned_out)
{
    struct ref *ref = heap_new_object(vm, TAG_REF, sizeof *ref);
    if (!ref) {
        value_unref(vm, owned_value);
        return CY_ERR(NO_MEMORY);
    }
    ref->value = owned_value;
    ref->previous = NULL;
    ref->next = vm->refs;
    if (ref->next) ref->next->previous = ref;
    vm->refs = ref;
    vm->ref_count++;
    vm->search.credit += REF_CREDIT;
    if (vm->running) {
        vm->search.group = vm->running->group;
        vm->search.group_serial = vm->search.group->serial;
    }
    *owned_out = value_object(TAG_REF, &ref->container.head);
    return CY_OK;
}

void ref_free(struct vm *vm, struct ref *ref)
{
    if (vm->search.cursor == ref) vm->search.cursor = ref->next;
    vm->ref_count--;
    if (ref->next) ref->next->previous = ref->previous;
    if (ref->previous)
        ref->previous->next = ref->next;
    else
        vm->refs = ref->next;
    heap_free_object(vm, &ref->container.head, sizeof *ref);
}

/* -- functions ------------------------------------------------------------------------------------------- */

static size_t function_bytes(uint32_t capture_count)
{
    return sizeof(struct function_object) + capture_count * sizeof(cy_value);
}

cy_err function_new(struct vm *vm, struct instance *instance, uint32_t index, bool native,
                    uint32_t capture_count, cy_value *owned_out)
{
    struct function_object *function = heap_new_object(vm, TAG_FUNCTION, function_bytes(capture_count));
    if (!function) return CY_ERR(NO_MEMORY);
    function->instance = instance;
    function->index = index;
    function->native = native;
    function->capture_count = function->capture_capacity = capture_count;
    for (uint32_t i = 0; i < capture_count; i++) function->captures[i] = value_nil();
    instance->function_count++;
    *owned_out = value_object(TAG_FUNCTION, &function->container.head);
    return CY_OK;
}

void function_free(struct vm *vm, struct function_object *function)
{
    struct instance *instance = function->instance;
    heap_free_object(vm, &function->container.head, function_bytes(function->capture_capacity));
    instance_function_dropped(vm, instance);
}

/* -- opaque ---------------------------------------------------------------------------------------------- */

cy_err opaque_new(struct vm *vm, const struct opaque_type *type, void *owned_payload, size_t payload_bytes,
                  cy_value *owned_out)
{
    bool counted = heap_count(vm, payload_bytes);
    struct opaque *opaque = counted ? heap_new_object(vm, TAG_OPAQUE, sizeof *opaque) : NULL;
    if (!opaque) {
        if (counted) heap_uncount(vm, payload_bytes);
        if (type->free) type->free(vm, owned_payload);
        return CY_ERR(NO_MEMORY);
    }
    opaque->type = type;
    opaque->payload = owned_payload;
    opaque->payload_bytes = payload_bytes;
    *owned_out = value_object(TAG_OPAQUE, &opaque->container.head);
    return CY_OK;
}

void *opaque_payload(cy_value value, const struct opaque_type *type)
{
    if (value.tag != TAG_OPAQUE || opaque_of(value)->type != type) return NULL;
    return opaque_of(value)->payload;
}

void opaque_free(struct vm *vm, struct opaque *opaque)
{
    if (opaque->type->free) opaque->type->free(vm, opaque->payload);
    heap_uncount(vm, opaque->payload_bytes);
    heap_free_object(vm, &opaque->container.head, sizeof *opaque);
}
