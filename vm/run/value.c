/* SPDX-License-Identifier: MIT
 *
 * vm/run/value.c: kinds and equality of any value.
 *
 * In:   values, borrowed. Out: answers.
 * Method: == keeps a stack of pairs instead of recursing, however deep the values are. Long walks remember which
 *       objects they took for equal (visited.h), so shared parts cost once. A task's walk pauses when its budget is
 *       used up, and the step that wanted it is run again in the next turn (fiber->work).
 * Invariant: only keys of maps nest on the C stack, at most LIMIT_KEY_NESTING deep.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/code/opcode.h"
#include "vm/run/code.h"
#include "vm/run/fiber.h"
#include "vm/run/handle.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/visited.h"
#include "vm/run/vm_internal.h"

const uint8_t value_kind_by_tag[TAG_COUNT] = {
    [TAG_NIL] = KIND_NIL,           [TAG_BOOL] = KIND_BOOL,     [TAG_INT] = KIND_INT,
    [TAG_FLOAT] = KIND_FLOAT,       [TAG_HANDLE] = KIND_HANDLE, [TAG_STR] = KIND_STR,
    [TAG_LIST] = KIND_LIST,         [TAG_MAP] = KIND_MAP,       [TAG_RANGE] = KIND_RANGE,
    [TAG_RECORD] = KIND_RECORD,     [TAG_REF] = KIND_REF,       [TAG_OPAQUE] = KIND_OPAQUE,
    [TAG_FUNCTION] = KIND_FUNCTION,
};

const char *value_kind_text(struct vm *vm, cy_value value)
{
    switch (value.tag) {
    case TAG_RECORD: return (const char *)string_of(record_of(value)->shape->name)->data;
    case TAG_OPAQUE: return opaque_of(value)->type->name;
    case TAG_HANDLE: return handle_type_name(vm, value);
    default: return kind_name((enum value_kind)value_kind_by_tag[value.tag], false);
    }
}

/* What two values without looking inside say: 0 differ, 1 equal, 2 compare their contents. */
static int value_equal_outside(struct vm *vm, cy_value a, cy_value b)
{
    if (a.tag != b.tag) {
        if (value_is_nil(a) && value_is_nil(b)) return 1;
        if (a.tag == TAG_INT && b.tag == TAG_FLOAT) return arith_compare_int_float(a.as.i, b.as.f) == 0;
        if (a.tag == TAG_FLOAT && b.tag == TAG_INT) return arith_compare_int_float(b.as.i, a.as.f) == 0;
        return 0;
    }
    switch (a.tag) {
    case TAG_NIL:
    case TAG_ABSENT: return 1;
    case TAG_BOOL: return a.as.b == b.as.b;
    case TAG_FLOAT: return a.as.f == b.as.f;
    case TAG_STR:
        if (a.as.object == b.as.object) return 1;
        if (string_of(a)->count != string_of(b)->count) return 0;
        vm_charge_bytes(vm, string_of(a)->count);
        return cy_bytes_equal(string_view(string_of(a)), string_view(string_of(b)));
    case TAG_RANGE: {
        const struct range *x = range_of(a), *y = range_of(b);
        return x->from == y->from && x->to == y->to;
    }
    case TAG_LIST:
        if (a.as.object == b.as.object) return 1; /* a container equals itself, also with a NaN inside */
        return list_of(a)->count == list_of(b)->count ? 2 : 0;
    case TAG_MAP:
        if (a.as.object == b.as.object) return 1;
        return map_object_of(a)->live_count == map_object_of(b)->live_count ? 2 : 0;
    case TAG_RECORD:
        if (a.as.object == b.as.object) return 1;
        return record_of(a)->shape == record_of(b)->shape ? 2 : 0;
    default: return a.as.i == b.as.i; /* int, handle; function, ref, opaque by identity */
    }
}

struct value_pair {
    cy_value a, b;
    uint32_t index; /* of the contents to compare next */
};

/* The next two contents, `*more_out` false when there are none. `*missing_out`: a key of one map is not in the
 * other. */
static cy_err value_next_pair(struct vm *vm, struct value_pair *pair, cy_value *a_out, cy_value *b_out,
                              bool *more_out, bool *missing_out)
{
    *more_out = false;
    switch (pair->a.tag) {
    case TAG_LIST: {
        const struct list *a = list_of(pair->a), *b = list_of(pair->b);
        if (pair->index >= a->count) return CY_OK;
        *a_out = list_item(a, pair->index);
        *b_out = list_item(b, pair->index++);
        *more_out = true;
        return CY_OK;
    }
    case TAG_RECORD: {
        const struct record *a = record_of(pair->a), *b = record_of(pair->b);
        if (pair->index >= a->shape->field_count) return CY_OK;
        if (pair->index == 0) error_settle_places(vm, pair->a);
        if (pair->index == 0) error_settle_places(vm, pair->b);
        *a_out = a->fields[pair->index];
        *b_out = b->fields[pair->index++];
        *more_out = true;
        return CY_OK;
    }
    default: {
        const struct map_object *a = map_object_of(pair->a), *b = map_object_of(pair->b);
        if (!map_object_seek(a, &pair->index)) return CY_OK;
        const struct map_object_entry *entry = &a->entries[pair->index++];
        uint32_t at;
        CY_TRY(map_object_find(vm, b, map_object_key(entry), entry->hash, &at));
        *missing_out = at == MAP_OBJECT_NONE;
        *a_out = entry->value;
        *b_out = *missing_out ? value_nil() : b->entries[at].value;
        *more_out = true;
        return CY_OK;
    }
    }
}

enum {
    VALUE_PAIRS_INLINE = 16,     /* what ordinary data needs, on the C stack */
    VALUE_STEPS_PER_TURN = 1024, /* at least, or a task without budget would never get on */
};

/* One == with all that it compares; `visited` has classes of objects that were compared or are being compared. Taking
 * those for equal is right: if one of them is not, the whole == says so. */
struct value_walk {
    uint64_t steps;
    uint64_t steps_max;   /* LIMIT_WALK_STEPS, or of a key what it may take in one go */
    uint64_t pause_steps; /* from then on it may pause */
    uint32_t nesting;     /* of keys */
    struct visited visited;
    struct value_pair *pairs, *owned_pairs; /* the second is NULL while they lie in inline_pairs */
    uint32_t depth, capacity;
    bool equal;
    struct value_pair inline_pairs[VALUE_PAIRS_INLINE];
};

static void value_walk_begin(struct value_walk *walk, cy_value a, cy_value b)
{
    walk->pairs = walk->inline_pairs;
    walk->owned_pairs = NULL;
    walk->capacity = VALUE_PAIRS_INLINE;
    walk->pairs[0] = (struct value_pair){a, b, 0};
    walk->depth = 1;
    walk->equal = true;
}

static void value_walk_end(struct vm *vm, struct value_walk *walk)
{
    if (walk->owned_pairs) heap_free(vm, walk->owned_pairs, walk->capacity * sizeof *walk->owned_pairs);
    walk->owned_pairs = NULL;
    visited_fini(vm, &walk->visited);
}

/* Room for twice as many pairs. */
static cy_err value_walk_grow(struct vm *vm, struct value_walk *walk)
{
    size_t bytes_old = walk->capacity * sizeof *walk->pairs;
    struct value_pair *more = walk->owned_pairs ? heap_resize(vm, walk->owned_pairs, bytes_old, 2 * bytes_old)
                                                : heap_alloc(vm, 2 * bytes_old);
    if (!more) return CY_ERR(NO_MEMORY);
    if (!walk->owned_pairs) memcpy(more, walk->inline_pairs, bytes_old);
    walk->pairs = walk->owned_pairs = more;
    walk->capacity *= 2;
    return CY_OK;
}

/* Whether two containers must be walked: not when they are known to be equal if all else is. A pair that nobody else
 * holds is met once anyway. */
static cy_err value_must_enter(struct vm *vm, struct value_walk *walk, cy_value a, cy_value b, bool *must_out)
{
    bool same = false;
    bool shared = a.as.object->refs > 1 || b.as.object->refs > 1;
    if (shared && walk->steps >= VISITED_STEPS_FIRST)
        CY_TRY(visited_join(vm, &walk->visited, a.as.object, b.as.object, &same));
    *must_out = !same;
    return CY_OK;
}

/* One pair of contents of the pair on top. */
static cy_err value_walk_step(struct vm *vm, struct value_walk *walk)
{
    bool missing = false, more;
    cy_value a, b;
    CY_TRY(value_next_pair(vm, &walk->pairs[walk->depth - 1], &a, &b, &more, &missing));
    CY_TRY(visited_step(vm, &walk->steps));
    if (walk->steps > walk->steps_max) return (cy_err){CY_ERR_LIMIT, LIMIT_KEY_STEPS};
    if (!more) {
        walk->depth--;
        return CY_OK;
    }
    int outside = missing ? 0 : value_equal_outside(vm, a, b);
    walk->equal = outside != 0;
    if (outside != 2) return CY_OK;
    bool enter;
    CY_TRY(value_must_enter(vm, walk, a, b, &enter));
    if (!enter) return CY_OK;
    if (walk->depth == walk->capacity) CY_TRY(value_walk_grow(vm, walk));
    walk->pairs[walk->depth++] = (struct value_pair){a, b, 0};
    return CY_OK;
}

/* Until it is decided, or until the turn is over; `*paused_out` says which. */
static cy_err value_walk_go(struct vm *vm, struct value_walk *walk, bool may_pause, bool *paused_out)
{
    *paused_out = false;
    walk->pause_steps = walk->steps + VALUE_STEPS_PER_TURN;
    while (walk->depth > 0 && walk->equal) {
        if (may_pause && vm->budget < 0 && walk->steps >= walk->pause_steps) {
            *paused_out = true;
            return CY_OK;
        }
        CY_TRY(value_walk_step(vm, walk));
    }
    return CY_OK;
}

/* Keys of maps inside the == under way: with the same step count and, while they are equal, the same classes. They do
 * not pause, so what one may take is bounded on its own. */
static cy_err value_compare_key(struct vm *vm, cy_value a, cy_value b, bool *equal_out)
{
    struct value_walk *outer = vm->compare, walk;
    bool enter, paused;
    CY_TRY(value_must_enter(vm, outer, a, b, &enter));
    *equal_out = true;
    if (!enter) return CY_OK;
    if (outer->nesting == LIMIT_KEY_NESTING) return (cy_err){CY_ERR_DEPTH, LIMIT_KEY_NESTING};
    value_walk_begin(&walk, a, b);
    walk.steps = outer->steps;
    walk.steps_max = outer->steps + LIMIT_KEY_STEPS;
    walk.nesting = outer->nesting + 1;
    walk.visited = outer->visited;
    vm->compare = &walk;
    cy_err err = value_walk_go(vm, &walk, false, &paused);
    vm->compare = outer;
    *equal_out = walk.equal;
    outer->steps = walk.steps;
    outer->visited = walk.visited;
    walk.visited = (struct visited){0};
    value_walk_end(vm, &walk);
    /* Two keys with one hash that differ do not end the ==, so what was taken for equal here may not be. */
    if (!*equal_out) visited_fini(vm, &outer->visited);
    return err;
}

/* A whole walk in one go. */
static cy_err value_compare_inside(struct vm *vm, cy_value a, cy_value b, uint64_t steps_max, bool *equal_out)
{
    struct value_walk walk = {.steps_max = steps_max};
    bool paused;
    value_walk_begin(&walk, a, b);
    vm->compare = &walk;
    cy_err err = value_walk_go(vm, &walk, false, &paused);
    vm->compare = NULL;
    *equal_out = walk.equal;
    value_walk_end(vm, &walk);
    return err;
}

cy_err value_compare(struct vm *vm, cy_value a, cy_value b, bool *equal_out)
{
    int outside = value_equal_outside(vm, a, b);
    *equal_out = outside == 1;
    if (outside != 2) return CY_OK;
    return vm->compare ? value_compare_key(vm, a, b, equal_out)
                       : value_compare_inside(vm, a, b, LIMIT_KEY_STEPS, equal_out);
}

/* -- walks that pause ------------------------------------------------------------------------------------ */

/* What a fiber keeps of one between its turns. */
struct value_search {
    struct value_walk walk;
    uint32_t index; /* list_find: of the item */
};

static void value_search_free(struct vm *vm, void *work)
{
    struct value_search *search = work;
    value_walk_end(vm, &search->walk);
    heap_free(vm, search, sizeof *search);
}

/* Keeps the state for the next turn; the first time it moves from the C stack. */
static cy_err value_search_keep(struct vm *vm, const struct value_search *search)
{
    struct fiber *fiber = vm->running;
    if (fiber->work) return CY_OK;
    struct value_search *kept = heap_alloc(vm, sizeof *kept);
    if (!kept) return CY_ERR(NO_MEMORY);
    *kept = *search;
    if (!kept->walk.owned_pairs) kept->walk.pairs = kept->walk.inline_pairs;
    fiber->work = kept;
    fiber->work_free = value_search_free;
    return CY_OK;
}

/* What a paused walk left, or a new one on the C stack. */
static struct value_search *value_search_resume(struct vm *vm, struct value_search *fresh)
{
    struct fiber *fiber = vm->running;
    if (!fiber || !fiber->work) return fresh;
    CHECK(fiber->work_free == value_search_free);
    return fiber->work;
}

static void value_search_end(struct vm *vm, struct value_search *search, struct value_search *fresh)
{
    if (search == fresh)
        value_walk_end(vm, &search->walk);
    else
        fiber_drop_work(vm, vm->running);
}

cy_err value_compare_or_pause(struct vm *vm, cy_value a, cy_value b, bool *equal_out, bool *paused_out)
{
    struct value_search fresh, *search = value_search_resume(vm, &fresh);
    *paused_out = false;
    if (search == &fresh) {
        int outside = value_equal_outside(vm, a, b);
        *equal_out = outside == 1;
        if (outside != 2) return CY_OK;
        fresh.walk.steps = 0;
        fresh.walk.steps_max = LIMIT_WALK_STEPS;
        fresh.walk.nesting = 0;
        fresh.walk.visited = (struct visited){0};
        value_walk_begin(&fresh.walk, a, b);
    }
    vm->compare = &search->walk;
    cy_err err = value_walk_go(vm, &search->walk, vm->running != NULL, paused_out);
    vm->compare = NULL;
    if (!cy_failed(err) && *paused_out) {
        err = value_search_keep(vm, search);
        if (!cy_failed(err)) return CY_OK;
        *paused_out = false;
    }
    *equal_out = search->walk.equal;
    value_search_end(vm, search, &fresh);
    return err;
}

/* Goes on with the item at search->index. */
static cy_err value_find_item(struct vm *vm, struct value_search *search, cy_value list, cy_value item,
                              bool *paused_out)
{
    struct value_walk *walk = &search->walk;
    *paused_out = false;
    if (walk->depth == 0) {
        cy_value other = list_item(list_of(list), search->index);
        int outside = value_equal_outside(vm, other, item);
        walk->equal = outside == 1;
        CY_TRY(visited_step(vm, &walk->steps));
        if (outside != 2) return CY_OK;
        value_walk_begin(walk, other, item);
    }
    vm->compare = walk;
    cy_err err = value_walk_go(vm, walk, vm->running != NULL, paused_out);
    vm->compare = NULL;
    if (*paused_out || cy_failed(err)) return err;
    value_walk_end(vm, walk); /* what was taken for equal is, or is not, with this item only */
    walk->depth = 0;
    return CY_OK;
}

cy_err list_find(struct vm *vm, cy_value list, cy_value item, int64_t *index_out, bool *paused_out)
{
    struct value_search fresh = {.walk.steps_max = LIMIT_WALK_STEPS},
                        *search = value_search_resume(vm, &fresh);
    uint32_t count = list_of(list)->count, last = search->index + VALUE_STEPS_PER_TURN;
    cy_err err = CY_OK;
    CHECK(!vm->compare);
    *index_out = -1;
    *paused_out = false;
    while (search->index < count && *index_out < 0 && !cy_failed(err)) {
        *paused_out = vm->running && vm->budget < 0 && search->index >= last && search->walk.depth == 0;
        if (!*paused_out) err = value_find_item(vm, search, list, item, paused_out);
        if (!cy_failed(err) && *paused_out) {
            err = value_search_keep(vm, search);
            if (!cy_failed(err)) return CY_OK;
            *paused_out = false;
            break;
        }
        if (!cy_failed(err) && search->walk.equal) *index_out = search->index;
        search->index++;
    }
    value_search_end(vm, search, &fresh);
    return err;
}

bool value_equal(struct vm *vm, cy_value a, cy_value b)
{
    int outside = value_equal_outside(vm, a, b);
    bool equal = outside == 1;
    CHECK(!vm->compare);
    if (outside == 2 && cy_failed(value_compare_inside(vm, a, b, LIMIT_WALK_STEPS, &equal))) return false;
    return equal;
}
