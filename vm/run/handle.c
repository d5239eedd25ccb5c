/* SPDX-License-Identifier: MIT
 *
 * vm/run/handle.c: the table of things with identity.
 *
 * In:   objects of C with a type. Out: handle values: generation << 32 | index.
 * Invariant: a slot's generation moves on when it is closed, so a stale value matches nothing. The slots
 *       of one owner are linked, so that its end closes them in the opposite order of opening.
 */
#include "vm/run/handle.h"

#include "vm/base/limits.h"
#include "vm/run/fiber.h"

struct handle_slot {
    const struct handle_type *type; /* stays after closing, for messages, until the slot is used again */
    void *object;
    struct fiber *owner;
    uint32_t generation; /* from 1 */
    uint32_t previous;   /* index + 1 in the owner's list */
    uint32_t next;       /* index + 1 in the owner's list, or in the free list */
    bool open;
};

static cy_value handle_value(uint32_t index, uint32_t generation)
{
    return (cy_value){TAG_HANDLE, {.handle = (uint64_t)generation << 32 | index}};
}

/* The slot of a handle value, also a closed one's last; NULL when the value is no handle of this VM. */
static struct handle_slot *handle_slot_of(struct vm *vm, cy_value handle)
{
    uint32_t index = (uint32_t)handle.as.handle;
    if (handle.tag != TAG_HANDLE || index >= vm->handle_count) return NULL;
    return &vm->handles[index];
}

static struct handle_slot *handle_open_slot(struct vm *vm, cy_value handle)
{
    struct handle_slot *slot = handle_slot_of(vm, handle);
    return slot && slot->open && slot->generation == handle.as.handle >> 32 ? slot : NULL;
}

static void handle_link(struct vm *vm, uint32_t index, struct fiber *owner)
{
    struct handle_slot *slot = &vm->handles[index];
    slot->owner = owner;
    slot->previous = 0;
    slot->next = owner ? owner->handle_first : 0;
    if (!owner) return;
    if (slot->next) vm->handles[slot->next - 1].previous = index + 1;
    owner->handle_first = index + 1;
}

static void handle_unlink(struct vm *vm, uint32_t index)
{
    struct handle_slot *slot = &vm->handles[index];
    if (slot->next) vm->handles[slot->next - 1].previous = slot->previous;
    if (slot->previous)
        vm->handles[slot->previous - 1].next = slot->next;
    else if (slot->owner)
        slot->owner->handle_first = slot->next;
    slot->owner = NULL;
}

static cy_err handle_take_slot(struct vm *vm, uint32_t *index_out)
{
    if (vm->handle_free) {
        *index_out = vm->handle_free - 1;
        vm->handle_free = vm->handles[*index_out].next;
        return CY_OK;
    }
    if (vm->handle_count == vm->handle_capacity) {
        if (vm->handle_count >= LIMIT_HANDLES) return CY_ERR(TOO_MANY);
        uint32_t capacity = vm->handle_capacity ? vm->handle_capacity * 2 : 16;
        struct handle_slot *slots =
            heap_resize(vm, vm->handles, vm->handle_capacity * sizeof *slots, capacity * sizeof *slots);
        if (!slots) return CY_ERR(NO_MEMORY);
        vm->handles = slots;
        vm->handle_capacity = capacity;
    }
    *index_out = vm->handle_count++;
    vm->handles[*index_out] = (struct handle_slot){.generation = 1};
    return CY_OK;
}

cy_err handle_open(struct vm *vm, const struct handle_type *type, void *object, struct fiber *owner,
                   cy_value *out)
{
    uint32_t index;
    CY_TRY(handle_take_slot(vm, &index));
    struct handle_slot *slot = &vm->handles[index];
    slot->type = type;
    slot->object = object;
    slot->open = true;
    handle_link(vm, index, owner);
    *out = handle_value(index, slot->generation);
    return CY_OK;
}

void *handle_object(struct vm *vm, cy_value handle, const struct handle_type *type)
{
    struct handle_slot *slot = handle_open_slot(vm, handle);
    return slot && slot->type == type ? slot->object : NULL;
}

void handle_close(struct vm *vm, cy_value handle)
{
    struct handle_slot *slot = handle_open_slot(vm, handle);
    if (!slot) return;
    uint32_t index = (uint32_t)handle.as.handle;
    const struct handle_type *type = slot->type;
    void *object = slot->object;
    handle_unlink(vm, index);
    slot->open = false;
    slot->object = NULL;
    slot->generation++;
    /* A slot whose generations are used up is retired: a value from 2^32 closes ago must not match. */
    if (slot->generation != 0) {
        slot->next = vm->handle_free;
        vm->handle_free = index + 1;
    }
    if (type->close) type->close(vm, object); /* last: it may open and close others */
}

void handle_close_all(struct vm *vm, struct fiber *owner)
{
    while (owner->handle_first) {
        uint32_t index = owner->handle_first - 1;
        handle_close(vm, handle_value(index, vm->handles[index].generation));
    }
}

void handle_give(struct vm *vm, cy_value handle, struct fiber *owner)
{
    if (!handle_open_slot(vm, handle)) return;
    CHECK(!owner || owner->vm == vm);
    handle_unlink(vm, (uint32_t)handle.as.handle);
    handle_link(vm, (uint32_t)handle.as.handle, owner);
}

void handle_move(struct vm *vm, cy_value handle, struct fiber *from, struct fiber *to)
{
    struct handle_slot *slot = handle_open_slot(vm, handle);
    if (!slot || slot->owner != from) return; /* a borrowed handle stays borrowed */
    handle_unlink(vm, (uint32_t)handle.as.handle);
    handle_link(vm, (uint32_t)handle.as.handle, to);
}

const char *handle_type_name(struct vm *vm, cy_value handle)
{
    if (handle.tag != TAG_HANDLE) return NULL;
    struct handle_slot *slot = handle_slot_of(vm, handle);
    if (!slot || !slot->type) return "handle";
    uint32_t generation = (uint32_t)(handle.as.handle >> 32);
    bool last_closed = !slot->open && slot->generation == generation + 1;
    return last_closed || slot->generation == generation ? slot->type->name : "handle";
}

bool handle_get_field(struct vm *vm, cy_value handle, cy_bytes name, cy_value *owned_out, cy_err *err_out)
{
    struct handle_slot *slot = handle_open_slot(vm, handle);
    *err_out = CY_OK;
    if (!slot) {
        *err_out = CY_ERR(CLOSED);
        return false;
    }
    return slot->type->get_field && slot->type->get_field(vm, slot->object, name, owned_out, err_out);
}

void handle_table_free(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->handle_count; i++)
        if (vm->handles[i].open) handle_close(vm, handle_value(i, vm->handles[i].generation));
    heap_free(vm, vm->handles, vm->handle_capacity * sizeof *vm->handles);
    vm->handles = NULL;
    vm->handle_count = vm->handle_capacity = 0;
}
