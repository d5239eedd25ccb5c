/* SPDX-License-Identifier: MIT
 *
 * vm/run/refs.c: finds cells that hold each other and that nobody else holds, and empties them.
 *
 * Why:  values cannot form cycles: lists, maps, records and captures are values. Only a cell can lead back to itself,
 *       so a cycle is garbage exactly when every reference to its cells comes from inside of it.
 * Method: trial counting over the cells, in slices between turns, while the program goes on.
 *
 *   COUNTING  each cell that exists is looked at once: its content gets one counted reference. A container whose
 *             counted references are all it has (count == refs) is *inside*: nobody but cells and other inside
 *             containers holds it. Its contents are counted in turn.
 *   CHECKING  a cell whose references were not all counted is held from outside: it lives, as does what it leads to.
 *   FREEING   the other cells are emptied; their memory goes by reference counts, as any.
 *
 * Why the program may go on meanwhile: what is inside can only be reached by reading a cell. A cell that was looked at
 * and is read, written or dies (refs_touched, refs_dying) lives, and the content it had until then is held by us, which
 * makes it immutable: whoever writes to a shared value copies it. So all that was counted stays as it was until the
 * search ends, what the program could have taken out is found again from the held contents, and garbage, which nobody
 * can reach, cannot change anyway.
 *
 * Invariant: an object with a number of this search is alive until the search ends. The number lies where a dead
 *       container keeps its link, so a dead one (refs == 0) is never given one.
 * Cost: steps are paid for by cells made and written and by turns (credit), so that searching takes a small part of the
 *       time, however much there is to look at. Without memory for its lists a search gives up; the next one begins.
 * Not seen: what opaque values of natives hold counts as held from outside.
 */
#include "vm/run/refs.h"

#include "vm/base/mem.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"

enum {
    REFS_SLICE_STEPS = 4096,       /* about 50 us */
    REFS_SLICE_STEPS_MAX = 131072, /* about a millisecond, where cells are made as fast as a program can */
    REFS_STEPS_MIN = 512,          /* a search is worth at least so much: 32 cells */
    REFS_GROWTH_BYTES = 1 << 20,
};

/* container.search: epoch (32) | flags (3) | counted references (29) */
#define REFS_INSIDE 0x80000000u /* a cell that was looked at, or a container that only such hold */
#define REFS_LIVE 0x40000000u
#define REFS_TOUCHED 0x20000000u /* cells: its content then is held */
#define REFS_COUNT 0x1fffffffu

static struct container *refs_container(struct object *object) { return (struct container *)object; }

static uint32_t refs_word(const struct vm *vm, struct object *object)
{
    uint64_t search = refs_container(object)->search;
    return search >> 32 == vm->search.epoch ? (uint32_t)search : 0;
}
static void refs_set_word(const struct vm *vm, struct object *object, uint32_t word)
{
    DCHECK(object->refs > 0);
    refs_container(object)->search = (uint64_t)vm->search.epoch << 32 | word;
}

/* Whether a value can lead to a cell. */
static bool refs_leads_on(cy_value value)
{
    switch (value.tag) {
    case TAG_LIST: return list_kind_of(list_of(value)) == LIST_ANY;
    case TAG_FUNCTION: return function_of(value)->capture_count > 0;
    case TAG_MAP:
    case TAG_RECORD:
    case TAG_REF: return true;
    default: return false;
    }
}

/* The content at `*index` of a container and moves on; false past the last. Keys of maps hold no cells. */
static bool refs_next(struct object *object, uint32_t *index, cy_value *content_out)
{
    switch (object->tag) {
    case TAG_LIST: {
        const struct list *list = (struct list *)object;
        if (list_kind_of(list) != LIST_ANY || *index >= list->count) return false;
        *content_out = list->items.any[(*index)++];
        return true;
    }
    case TAG_MAP: {
        const struct map_object *map = (struct map_object *)object;
        if (*index >= map->entry_count) return false;
        *content_out = map->entries[(*index)++].value; /* of a hole: absent */
        return true;
    }
    case TAG_RECORD: {
        const struct record *record = (struct record *)object;
        if (*index >= record->shape->field_count) return false;
        *content_out = record->fields[(*index)++];
        return true;
    }
    default: {
        CHECK(object->tag == TAG_FUNCTION);
        const struct function_object *function = (struct function_object *)object;
        if (*index >= function->capture_count) return false;
        *content_out = function->captures[(*index)++];
        return true;
    }
    }
}

/* -- the lists of a search ------------------------------------------------------------------------------- */

static void refs_give_up(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    search->phase = REFS_RELEASING;
    search->watching = false;
    search->stack_count = 0;
}

/* Room for one more; false, and the search given up, without memory. */
static bool refs_grow(struct vm *vm, void **items, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
    if (count < *capacity) return true;
    size_t more = *capacity ? (size_t)*capacity * 2 : 64;
    void *moved = more > UINT32_MAX ? NULL : mem_resize(*items, more * item_bytes);
    if (!moved) {
        refs_give_up(vm);
        return false;
    }
    *items = moved;
    *capacity = (uint32_t)more;
    return true;
}

static void refs_push(struct vm *vm, struct object *object)
{
    struct refs_search *search = &vm->search;
    if (refs_grow(vm, (void **)&search->stack, search->stack_count, &search->stack_capacity,
                  sizeof *search->stack))
        search->stack[search->stack_count++] = (struct refs_work){object, 0};
}

static void refs_hold(struct vm *vm, cy_value value)
{
    struct refs_search *search = &vm->search;
    if (!refs_leads_on(value)) return;
    if (refs_grow(vm, (void **)&search->held, search->held_count, &search->held_capacity,
                  sizeof *search->held))
        search->held[search->held_count++] = value_ref(value);
}

/* -- what the program does meanwhile --------------------------------------------------------------------- */

void refs_touched(struct vm *vm, struct ref *ref)
{
    uint32_t word = refs_word(vm, &ref->container.head);
    if (!(word & REFS_INSIDE) || (word & REFS_TOUCHED)) return;
    refs_set_word(vm, &ref->container.head, word | REFS_LIVE | REFS_TOUCHED);
    refs_hold(vm, ref->value);
}

void refs_dying(struct vm *vm, struct ref *ref)
{
    uint32_t word = refs_word(vm, &ref->container.head);
    if ((word & REFS_INSIDE) && !(word & REFS_TOUCHED)) refs_hold(vm, ref->value);
}

/* -- counting -------------------------------------------------------------------------------------------- */

static void refs_count(struct vm *vm, cy_value value)
{
    if (!refs_leads_on(value)) return;
    struct object *object = value.as.object;
    uint32_t word = refs_word(vm, object);
    if ((word & REFS_COUNT) == REFS_COUNT) return; /* never all of them then: it lives */
    refs_set_word(vm, object, ++word);
    if (value.tag == TAG_REF || (word & REFS_INSIDE) || (word & REFS_COUNT) != object->refs) return;
    refs_set_word(vm, object, word | REFS_INSIDE);
    refs_push(vm, object);
}

/* One content of the container on top of the stack. */
static void refs_pass_on(struct vm *vm, void (*each)(struct vm *vm, cy_value content))
{
    struct refs_search *search = &vm->search;
    struct refs_work *work = &search->stack[search->stack_count - 1];
    cy_value content;
    if (refs_next(work->object, &work->index, &content))
        each(vm, content); /* the stack may move */
    else
        search->stack_count--;
}

static void refs_count_step(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    if (search->stack_count > 0) {
        refs_pass_on(vm, refs_count);
        return;
    }
    struct ref *ref = search->cursor;
    if (!ref) {
        search->phase = REFS_CHECKING;
        search->cursor = vm->refs;
        return;
    }
    search->cursor = ref->next;
    if (ref->container.head.refs == 0) return; /* dead and not freed yet */
    refs_set_word(vm, &ref->container.head, refs_word(vm, &ref->container.head) | REFS_INSIDE);
    refs_count(vm, ref->value);
}

/* -- checking -------------------------------------------------------------------------------------------- */

static void refs_mark(struct vm *vm, cy_value value);

static void refs_mark_cell(struct vm *vm, struct ref *ref, uint32_t word)
{
    refs_set_word(vm, &ref->container.head, word | REFS_LIVE);
    /* A cell in a cell waits its turn: a long chain of them is not to be walked in one step. */
    if (ref->value.tag == TAG_REF)
        refs_hold(vm, ref->value);
    else
        refs_mark(vm, ref->value);
}

/* Whatever a living value leads to lives. What is not inside is held by somebody, and was never counted on. */
static void refs_mark(struct vm *vm, cy_value value)
{
    if (!refs_leads_on(value)) return;
    uint32_t word = refs_word(vm, value.as.object);
    if (!(word & REFS_INSIDE) || (word & REFS_LIVE)) return;
    if (value.tag == TAG_REF) {
        refs_mark_cell(vm, ref_of(value), word);
        return;
    }
    refs_set_word(vm, value.as.object, word | REFS_LIVE);
    refs_push(vm, value.as.object);
}

static void refs_check_step(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    if (search->stack_count > 0) {
        refs_pass_on(vm, refs_mark);
    } else if (search->held_marked < search->held_count) {
        refs_mark(vm, search->held[search->held_marked++]);
    } else if (search->cursor) {
        struct ref *ref = search->cursor;
        search->cursor = ref->next;
        if (ref->container.head.refs == 0) return;
        uint32_t word = refs_word(vm, &ref->container.head);
        bool outside = (word & REFS_INSIDE) && !(word & REFS_LIVE);
        if (outside && (word & REFS_COUNT) != ref->container.head.refs) refs_mark_cell(vm, ref, word);
    } else {
        search->phase = REFS_FREEING; /* nobody can reach what is left, so nobody needs watching */
        search->watching = false;
        search->cursor = vm->refs;
    }
}

/* -- freeing --------------------------------------------------------------------------------------------- */

/* Empties one cell; gives what that took. */
static size_t refs_free_step(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    struct ref *ref = search->cursor;
    if (!ref) {
        search->phase = REFS_RELEASING;
        return 1;
    }
    search->cursor = ref->next;
    if (ref->container.head.refs == 0) return 1;
    uint32_t word = refs_word(vm, &ref->container.head);
    if (!(word & REFS_INSIDE) || (word & REFS_LIVE)) return 1;
    uint64_t objects_before = vm->heap_objects;
    cy_value cell = value_ref(value_object(TAG_REF, &ref->container.head)), content = ref->value;
    ref->value = value_nil();
    search->found_count++;
    value_unref(vm, content);
    value_unref(vm, cell);
    return 1 + (size_t)(objects_before - vm->heap_objects);
}

static void refs_release_step(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    if (search->held_count > 0) {
        value_unref(vm, search->held[--search->held_count]);
        return;
    }
    mem_free(search->stack);
    mem_free(search->held);
    search->stack = NULL;
    search->held = NULL;
    search->stack_capacity = search->held_capacity = search->held_marked = 0;
    search->steps_last = search->steps;
    search->heap_bytes_last = vm->heap_bytes;
    search->search_count++;
    search->phase = REFS_RESTING;
}

/* -- one search, and when -------------------------------------------------------------------------------- */

void refs_begin(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    CHECK(search->phase == REFS_RESTING);
    search->phase = REFS_COUNTING;
    search->watching = true;
    if (++search->epoch == 0) search->epoch = 1; /* 0 stands in new objects */
    search->cursor = vm->refs;
    search->steps = search->credit = search->credit_seen = 0;
    search->stack_count = search->held_count = search->held_marked = 0;
}

bool refs_slice(struct vm *vm, size_t steps)
{
    struct refs_search *search = &vm->search;
    for (size_t done = 0; done < steps && search->phase != REFS_RESTING;) {
        size_t taken = 1;
        switch (search->phase) {
        case REFS_COUNTING: refs_count_step(vm); break;
        case REFS_CHECKING: refs_check_step(vm); break;
        case REFS_FREEING:
            if (vm->dead && heap_drain(vm, steps - done)) return true;
            taken = refs_free_step(vm);
            break;
        default: refs_release_step(vm); break;
        }
        done += taken;
        search->steps += taken;
    }
    return search->phase != REFS_RESTING;
}

static bool refs_is_due(const struct vm *vm, bool idle)
{
    const struct refs_search *search = &vm->search;
    if (!vm->refs) return false;
    uint64_t price = search->steps_last > REFS_STEPS_MIN ? search->steps_last : REFS_STEPS_MIN;
    if (search->credit >= (idle ? price : 2 * price)) return true;
    bool grown = vm->heap_bytes / 2 > search->heap_bytes_last + REFS_GROWTH_BYTES;
    return grown && search->credit >= price / 8 && search->credit >= REFS_STEPS_MIN;
}

/* As much as keeps up with the program: looking at a cell and its content takes a few steps. */
static size_t refs_slice_steps(struct vm *vm)
{
    struct refs_search *search = &vm->search;
    uint64_t paid = (search->credit - search->credit_seen) / 2;
    search->credit_seen = search->credit;
    if (paid > REFS_SLICE_STEPS_MAX) return REFS_SLICE_STEPS_MAX;
    return paid > REFS_SLICE_STEPS ? (size_t)paid : REFS_SLICE_STEPS;
}

bool refs_work(struct vm *vm, bool idle)
{
    struct refs_search *search = &vm->search;
    if (search->phase == REFS_RESTING) {
        if (!refs_is_due(vm, idle)) return false;
        refs_begin(vm);
    }
    uint64_t heap_bytes = vm->heap_bytes;
    bool more = refs_slice(vm, refs_slice_steps(vm));
    if (search->group && search->group->serial == search->group_serial)
        search->group->memory_bytes -= (int64_t)(heap_bytes - vm->heap_bytes);
    return more;
}

void refs_abort(struct vm *vm)
{
    if (vm->search.phase != REFS_RESTING) refs_give_up(vm);
    while (vm->search.phase != REFS_RESTING) refs_release_step(vm);
}

#undef REFS_INSIDE
#undef REFS_LIVE
#undef REFS_TOUCHED
#undef REFS_COUNT
