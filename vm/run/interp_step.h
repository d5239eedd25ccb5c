/* SPDX-License-Identifier: MIT
 *
 * vm/run/interp_step.h: the words that the steps of interp.c are written in. For interp.c alone, which undefines them.
 *
 * In:   the variables of interp_run: vm, instance, k, r, step, cell, truth; its labels raise and yield.
 * Method: two ints or two floats are worked on where the macro stands, numbers of both kinds too; the rest goes to
 *       interp_slow.c. Each step ends in a jump of its own to the next one: with one common jump the processor
 *       guesses half as well.
 */
#ifndef CY_RUN_INTERP_STEP_H
#define CY_RUN_INTERP_STEP_H

#include "vm/run/interp_slow.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"

/* -- for the macros below, and for steps ------------------------------------------------------------------ */

static __attribute__((noinline)) void interp_drop(struct vm *vm, cy_value *slot) { slow_clear(vm, slot); }

/* Two numbers as floats. Two ints come here too when their result did not fit: no floats then. */
static inline bool interp_floats(const cy_value *b, const cy_value *c, double *b_out, double *c_out)
{
    if (b->tag == TAG_FLOAT && c->tag == TAG_INT) {
        *b_out = b->as.f;
        *c_out = (double)c->as.i;
        return true;
    }
    if (b->tag != TAG_INT || c->tag != TAG_FLOAT) return false;
    *b_out = (double)b->as.i;
    *c_out = c->as.f;
    return true;
}

/* r[b] == k: 0 or 1; 2 when that takes looking inside, or at a float. */
static inline int interp_equals_constant(const cy_value *b, const cy_value *k)
{
    if (k->tag <= TAG_ABSENT) return value_is_nil(*b);
    if (k->tag == TAG_BOOL) return b->tag == TAG_BOOL && b->as.i == k->as.i;
    if (k->tag != TAG_STR) return 2;
    if (b->tag != TAG_STR) return 0;
    const struct string *x = string_of(*b), *y = string_of(*k);
    if (x == y) return 1;
    if (x->count != y->count) return 0;
    if (x->count > 64) return 2; /* charges */
    return memcmp(x->data, y->data, x->count) == 0;
}

/* An item of a list, or a byte of a str, that is there: with a reference of its own. */
static inline bool interp_item(const cy_value *container, int64_t index, cy_value *owned_out)
{
    if (container->tag == TAG_LIST) {
        const struct list *list = list_of(*container);
        if (CY_UNLIKELY((uint64_t)index >= list->count)) return false;
        if (list_kind_of(list) == LIST_ANY)
            *owned_out = value_ref(list->items.any[index]);
        else if (list_kind_of(list) == LIST_FLOAT64)
            *owned_out = value_float(list->items.floats[index]);
        else if (list_kind_of(list) == LIST_INT64)
            *owned_out = value_int(list->items.ints[index]);
        else /* bytes and bools */
            *owned_out = (cy_value){list_kind_of(list) == LIST_BOOL ? TAG_BOOL : TAG_INT,
                                    {.i = list->items.bytes[index]}};
        return true;
    }
    if (container->tag != TAG_STR || (uint64_t)index >= string_of(*container)->count) return false;
    *owned_out = value_int(string_of(*container)->data[index]);
    return true;
}

/* The place of an item; NULL when it is not there, or has none because the list holds bare numbers. */
static inline cy_value *interp_item_place(const cy_value *container, int64_t index)
{
    if (container->tag != TAG_LIST) return NULL;
    const struct list *list = list_of(*container);
    return list_kind_of(list) == LIST_ANY && (uint64_t)index < list->count ? &list->items.any[index] : NULL;
}

/* A field whose place the cache knows; NULL when it does not. */
static inline cy_value *interp_field_place(struct vm *vm, const cy_value *container,
                                           const struct run_cache *cache, const cy_value *name, bool to_write)
{
    if (CY_LIKELY(container->tag == TAG_RECORD)) {
        struct record *record = record_of(*container);
        return record->shape == cache->shape ? &record->fields[cache->index] : NULL;
    }
    if (container->tag == TAG_REF) {
        if (cache->shape != &run_cache_ref) return NULL;
        return to_write ? &ref_touch_to_write(vm, *container)->value : &ref_touch(vm, *container)->value;
    }
    if (container->tag != TAG_MAP || cache->shape) return NULL;
    const struct map_object *map = map_object_of(*container);
    if (cache->index >= map->entry_count) return NULL;
    struct map_object_entry *entry = &map->entries[cache->index];
    return entry->key_tag == TAG_STR && entry->key_payload == name->as.i ? &entry->value : NULL;
}

/* Whether what a cell holds may be written where it is. */
static inline bool interp_is_mine(const cy_value *cell)
{
    return cell->as.object->refs == 1 || cell->tag == TAG_REF;
}

/* The step's v, borrowed: `room` holds it when it is an int. */
static inline const cy_value *interp_borrow(cy_value *r, const cy_value *k, const struct run_step *step,
                                            cy_value *room)
{
    if (step->x & RUN_NUMBER_C) {
        *room = value_int((int32_t)step->c);
        return room;
    }
    return step->x & RUN_CONSTANT_C ? run_constant(k, step->c) : run_slot(r, step->c);
}

/* *cell = *cell + [value] without moving anything; false when there is more to do. */
static inline bool interp_append(cy_value *cell, cy_value owned)
{
    if (cell->tag != TAG_LIST || cell->as.object->refs != 1) return false;
    struct list *list = list_of(*cell);
    if (CY_UNLIKELY(list->count == list->capacity)) return false;
    enum list_kind kind = list_kind_of(list);
    if (kind == LIST_ANY)
        list->items.any[list->count++] = owned;
    else if (kind == LIST_INT64 && owned.tag == TAG_INT)
        list->items.ints[list->count++] = owned.as.i;
    else if (kind == LIST_FLOAT64 && owned.tag == TAG_FLOAT)
        list->items.floats[list->count++] = owned.as.f;
    else if (kind == LIST_BOOL && owned.tag == TAG_BOOL)
        list->items.bytes[list->count++] = (uint8_t)owned.as.i;
    else
        return false;
    return true;
}

static inline bool interp_append_item(struct vm *vm, const cy_value *container, int64_t index, cy_value owned)
{
    (void)vm;
    cy_value *place = interp_item_place(container, index);
    return place && container->as.object->refs == 1 && interp_append(place, owned);
}

/* Writes a plain value into a list that nobody else holds and that stores such a value as it is. */
static inline bool interp_set_item(const cy_value *container, int64_t index, cy_value plain)
{
    if (container->tag != TAG_LIST || container->as.object->refs != 1) return false;
    struct list *list = list_of(*container);
    if (CY_UNLIKELY((uint64_t)index >= list->count)) return false;
    enum list_kind kind = list_kind_of(list);
    if (kind == LIST_INT64 && plain.tag == TAG_INT)
        list->items.ints[index] = plain.as.i;
    else if (kind == LIST_FLOAT64 && plain.tag == TAG_FLOAT)
        list->items.floats[index] = plain.as.f;
    else if (kind == LIST_BOOL && plain.tag == TAG_BOOL)
        list->items.bytes[index] = (uint8_t)plain.as.i;
    else if (kind == LIST_ANY && plain.tag < TAG_HEAP && list->items.any[index].tag < TAG_HEAP)
        list->items.any[index] = plain;
    else
        return false;
    return true;
}

/* The same for any value where the list stores values. */
static inline bool interp_put_item(struct vm *vm, const cy_value *container, int64_t index, cy_value owned)
{
    cy_value *place = interp_item_place(container, index);
    if (!place || container->as.object->refs != 1) return false;
    slow_put(vm, place, owned);
    return true;
}

/* *place = *place + more for two ints or two floats. */
static inline bool interp_add_number(cy_value *place, cy_value more)
{
    if (place->tag != more.tag) return false;
    if (more.tag == TAG_FLOAT) {
        place->as.f += more.as.f;
        return true;
    }
    int64_t sum;
    if (more.tag != TAG_INT || __builtin_add_overflow(place->as.i, more.as.i, &sum)) return false;
    place->as.i = sum;
    return true;
}

static inline bool interp_add_item(const cy_value *container, int64_t index, cy_value more)
{
    if (container->tag != TAG_LIST || container->as.object->refs != 1) return false;
    struct list *list = list_of(*container);
    if (CY_UNLIKELY((uint64_t)index >= list->count)) return false;
    enum list_kind kind = list_kind_of(list);
    if (kind == LIST_ANY) return interp_add_number(&list->items.any[index], more);
    if (kind == LIST_FLOAT64 && more.tag == TAG_FLOAT) {
        list->items.floats[index] += more.as.f;
        return true;
    }
    int64_t sum;
    if (kind != LIST_INT64 || more.tag != TAG_INT ||
        __builtin_add_overflow(list->items.ints[index], more.as.i, &sum))
        return false;
    list->items.ints[index] = sum;
    return true;
}

/* Whether a value may go into a field that the cache knows, without asking record_check_field. */
static inline bool interp_fits(const struct run_cache *cache, cy_value value)
{
    return cache->kind == RUN_CACHE_ANY || cache->kind == value_kind_by_tag[value.tag];
}

/* -- steps ------------------------------------------------------------------------------------------------ */

/* Steps are fixed in size, a target is a signed distance. */
#define TARGET(step_) ((step_) + (int32_t)(step_)->a)
#define STEP(name) label_##name
/* Release builds jump from the end of each step to the next. Debug builds jump from one place: over 200 times 200 edges
 * clang 14 with sanitizers takes three minutes, this way half of one. */
#ifdef CY_DEBUG
#define DISPATCH() goto dispatch
#else
#define DISPATCH() goto *labels[step->op]
#endif
#define GO(step_)       \
    do {                \
        step = (step_); \
        DISPATCH();     \
    } while (0)
#define NEXT() GO(step + 1)
#define SLOT(operand_) run_slot(r, step->operand_)
#define CONSTANT(operand_) run_constant(k, step->operand_)
/* Two 8-byte moves: a 16-byte one would wait for the two 8-byte stores that made the value. */
#define COPY(to_, from_)                      \
    do {                                      \
        uint64_t copy_tag = (from_)->tag;     \
        int64_t copy_payload = (from_)->as.i; \
        (to_)->tag = copy_tag;                \
        (to_)->as.i = copy_payload;           \
    } while (0)
/* Stores a plain value; what the slot held goes first (the operands were read). */
#define SET(slot_, tag_, member_, value_)                                  \
    do {                                                                   \
        cy_value *set_to = run_slot(r, slot_);                             \
        if (CY_UNLIKELY(set_to->tag >= TAG_HEAP)) interp_drop(vm, set_to); \
        set_to->tag = (tag_);                                              \
        set_to->as.member_ = (value_);                                     \
    } while (0)
/* Stores an owned value. */
#define PUT(slot_, owned_)                                                 \
    do {                                                                   \
        cy_value put_value = (owned_);                                     \
        cy_value *put_to = run_slot(r, slot_);                             \
        if (CY_UNLIKELY(put_to->tag >= TAG_HEAP)) interp_drop(vm, put_to); \
        put_to->tag = put_value.tag;                                       \
        put_to->as.i = put_value.as.i;                                     \
    } while (0)
#define BOTH(tag_, b_, c_) ((b_)->tag == (tag_) && (c_)->tag == (tag_))
/* To the next step after work out of line, which may have charged the budget. */
#define NEXT_CHARGED(step_)                          \
    do {                                             \
        step = (step_);                              \
        if (CY_UNLIKELY(vm->budget < 0)) goto yield; \
        DISPATCH();                                  \
    } while (0)
/* A call out of line that may fail. */
#define SLOW(call_)                            \
    do {                                       \
        if (CY_UNLIKELY(!(call_))) goto raise; \
        NEXT_CHARGED(step + 1);                \
    } while (0)

/* Behind a step that has a cache. */
#define SLOW_CACHED(call_)                     \
    do {                                       \
        if (CY_UNLIKELY(!(call_))) goto raise; \
        NEXT_CHARGED(step + 2);                \
    } while (0)
#define INT_C ((int64_t)(int32_t)step->c)

/* r[a] = b sign c. */
#define ARITHMETIC(name_, checked_, sign_)                         \
    STEP(name_) :                                                  \
    {                                                              \
        const cy_value *b = SLOT(b), *c = SLOT(c);                 \
        int64_t number;                                            \
        double x, y;                                               \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {                      \
            if (CY_LIKELY(!checked_(b->as.i, c->as.i, &number))) { \
                SET(step->a, TAG_INT, i, number);                  \
                NEXT();                                            \
            }                                                      \
        } else if (BOTH(TAG_FLOAT, b, c)) {                        \
            double result = b->as.f sign_ c->as.f;                 \
            SET(step->a, TAG_FLOAT, f, result);                    \
            NEXT();                                                \
        } else if (interp_floats(b, c, &x, &y)) {                  \
            SET(step->a, TAG_FLOAT, f, x sign_ y);                 \
            NEXT();                                                \
        }                                                          \
        SLOW(slow_arithmetic(vm, r, k, step));                     \
    }                                                              \
    STEP(name_##_INT) :                                            \
    {                                                              \
        const cy_value *b = SLOT(b);                               \
        int64_t number;                                            \
        if (CY_LIKELY(b->tag == TAG_INT)) {                        \
            if (CY_LIKELY(!checked_(b->as.i, INT_C, &number))) {   \
                SET(step->a, TAG_INT, i, number);                  \
                NEXT();                                            \
            }                                                      \
        } else if (b->tag == TAG_FLOAT) {                          \
            double result = b->as.f sign_(double) INT_C;           \
            SET(step->a, TAG_FLOAT, f, result);                    \
            NEXT();                                                \
        }                                                          \
        SLOW(slow_arithmetic(vm, r, k, step));                     \
    }                                                              \
    ARITHMETIC_CONSTANT(name_, sign_)
/* b sign k[c], which is a float. Two steps of 14 less in mandelbrot. */
#define ARITHMETIC_CONSTANT(name_, sign_)                                                              \
    STEP(name_##_CONSTANT) :                                                                           \
    {                                                                                                  \
        const cy_value *b = SLOT(b);                                                                   \
        if (CY_LIKELY(b->tag == TAG_FLOAT || b->tag == TAG_INT)) {                                     \
            double result = (b->tag == TAG_FLOAT ? b->as.f : (double)b->as.i) sign_ CONSTANT(c)->as.f; \
            SET(step->a, TAG_FLOAT, f, result);                                                        \
            NEXT();                                                                                    \
        }                                                                                              \
        SLOW(slow_arithmetic(vm, r, k, step));                                                         \
    }
#define DIVISION(name_, sign_)                                          \
    STEP(name_) :                                                       \
    {                                                                   \
        const cy_value *b = SLOT(b), *c = SLOT(c);                      \
        if (CY_LIKELY(BOTH(TAG_INT, b, c)) && CY_LIKELY(c->as.i > 0)) { \
            int64_t number = b->as.i sign_ c->as.i;                     \
            SET(step->a, TAG_INT, i, number);                           \
            NEXT();                                                     \
        }                                                               \
        DIVIDE_FLOATS_##name_(b, c);                                    \
        SLOW(slow_arithmetic(vm, r, k, step));                          \
    }                                                                   \
    STEP(name_##_INT) :                                                 \
    {                                                                   \
        const cy_value *b = SLOT(b);                                    \
        if (CY_LIKELY(b->tag == TAG_INT)) {                             \
            int64_t number = b->as.i sign_ INT_C;                       \
            SET(step->a, TAG_INT, i, number);                           \
            NEXT();                                                     \
        }                                                               \
        SLOW(slow_arithmetic(vm, r, k, step));                          \
    }
#define DIVIDE_FLOATS_DIV(b_, c_)                  \
    do {                                           \
        double x = 0, y = 0;                       \
        if (BOTH(TAG_FLOAT, b_, c_)) {             \
            x = (b_)->as.f;                        \
            y = (c_)->as.f;                        \
        } else if (!interp_floats(b_, c_, &x, &y)) \
            y = 0;                                 \
        if (CY_LIKELY(y != 0.0)) {                 \
            SET(step->a, TAG_FLOAT, f, x / y);     \
            NEXT();                                \
        }                                          \
    } while (0)
#define DIVIDE_FLOATS_MOD(b_, c_) (void)0
#define BITS(name_, sign_)                          \
    STEP(name_) :                                   \
    {                                               \
        const cy_value *b = SLOT(b), *c = SLOT(c);  \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {       \
            int64_t number = b->as.i sign_ c->as.i; \
            SET(step->a, TAG_INT, i, number);       \
            NEXT();                                 \
        }                                           \
        SLOW(slow_arithmetic(vm, r, k, step));      \
    }                                               \
    STEP(name_##_INT) :                             \
    {                                               \
        const cy_value *b = SLOT(b);                \
        if (CY_LIKELY(b->tag == TAG_INT)) {         \
            int64_t number = b->as.i sign_ INT_C;   \
            SET(step->a, TAG_INT, i, number);       \
            NEXT();                                 \
        }                                           \
        SLOW(slow_arithmetic(vm, r, k, step));      \
    }
/* `cast_` as arith_shift_* do it. */
#define SHIFT(name_, cast_, sign_)                                                  \
    STEP(name_) :                                                                   \
    {                                                                               \
        const cy_value *b = SLOT(b), *c = SLOT(c);                                  \
        if (CY_LIKELY(BOTH(TAG_INT, b, c)) && CY_LIKELY((uint64_t)c->as.i <= 63)) { \
            int64_t number = (int64_t)((cast_)b->as.i sign_ c->as.i);               \
            SET(step->a, TAG_INT, i, number);                                       \
            NEXT();                                                                 \
        }                                                                           \
        SLOW(slow_arithmetic(vm, r, k, step));                                      \
    }                                                                               \
    STEP(name_##_INT) :                                                             \
    {                                                                               \
        const cy_value *b = SLOT(b);                                                \
        if (CY_LIKELY(b->tag == TAG_INT)) {                                         \
            int64_t number = (int64_t)((cast_)b->as.i sign_(step->c & 63));         \
            SET(step->a, TAG_INT, i, number);                                       \
            NEXT();                                                                 \
        }                                                                           \
        SLOW(slow_arithmetic(vm, r, k, step));                                      \
    }

/* How a comparison ends: as a value, or as a jump; `go_` is GO or NEXT_CHARGED. */
#define AS_VALUE(condition_, go_)                     \
    do {                                              \
        bool as_value = (condition_);                 \
        SET(step->a, TAG_BOOL, i, (int64_t)as_value); \
        go_(step + 1);                                \
    } while (0)
#define AS_UNLESS(condition_, go_)     \
    do {                               \
        if (condition_) go_(step + 1); \
        go_(TARGET(step));             \
    } while (0)
#define AS_IF(condition_, go_)            \
    do {                                  \
        if (!(condition_)) go_(step + 1); \
        go_(TARGET(step));                \
    } while (0)
/* A back edge: counts, whichever way it goes. */
#define BACK(step_)                                    \
    do {                                               \
        step = (step_);                                \
        if (CY_UNLIKELY(--vm->budget < 0)) goto yield; \
        DISPATCH();                                    \
    } while (0)
#define AS_LOOP(condition_, go_)            \
    do {                                    \
        if (condition_) BACK(TARGET(step)); \
        BACK(step + 1);                     \
    } while (0)
/* The rest of a comparison: what is no pair of two ints or floats. */
#define COMPARE_SLOW(end_)                                     \
    do {                                                       \
        if (!slow_compare(vm, r, k, step, &truth)) goto raise; \
        end_(truth, NEXT_CHARGED);                             \
    } while (0)
#define COMPARE_FORMS(form_, end_, name_, sign_, CONSTANT_)                  \
    STEP(form_##name_) :                                                     \
    {                                                                        \
        const cy_value *b = SLOT(b), *c = SLOT(c);                           \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) end_(b->as.i sign_ c->as.i, GO); \
        if (BOTH(TAG_FLOAT, b, c)) end_(b->as.f sign_ c->as.f, GO);          \
        COMPARE_SLOW(end_);                                                  \
    }                                                                        \
    STEP(form_##name_##_INT) :                                               \
    {                                                                        \
        const cy_value *b = SLOT(b);                                         \
        if (CY_LIKELY(b->tag == TAG_INT)) end_(b->as.i sign_ INT_C, GO);     \
        if (b->tag == TAG_FLOAT) end_(b->as.f sign_(double) INT_C, GO);      \
        COMPARE_SLOW(end_);                                                  \
    }                                                                        \
    STEP(form_##name_##_CONSTANT) :                                          \
    {                                                                        \
        const cy_value *b = SLOT(b), *c = CONSTANT(c);                       \
        if (BOTH(TAG_FLOAT, b, c)) end_(b->as.f sign_ c->as.f, GO);          \
        CONSTANT_(end_, sign_);                                              \
        COMPARE_SLOW(end_);                                                  \
    }
/* == and != with nil, true, "text" know their answer without a call, unless there is something to let go of. */
#define COMPARE_EQUAL(end_, sign_)                                                     \
    do {                                                                               \
        int equal = interp_equals_constant(b, c);                                      \
        if (CY_LIKELY(equal != 2)) {                                                   \
            if ((step->x & RUN_OWN_B) && b->tag >= TAG_HEAP) interp_drop(vm, SLOT(b)); \
            end_(equal sign_ 1, GO);                                                   \
        }                                                                              \
    } while (0)
#define COMPARE_ORDER(end_, sign_) (void)0
#define COMPARE(name_, sign_, CONSTANT_)                       \
    COMPARE_FORMS(, AS_VALUE, name_, sign_, CONSTANT_)         \
    COMPARE_FORMS(UNLESS_, AS_UNLESS, name_, sign_, CONSTANT_) \
    COMPARE_FORMS(IF_, AS_IF, name_, sign_, CONSTANT_)         \
    COMPARE_FORMS(LOOP_, AS_LOOP, name_, sign_, CONSTANT_)

/* r[a] = an item of a list, or a byte of a str. One branch and one end for each kind of list: the processor guesses the
 * kind by where it is, and numbers cost no look at their references. Falls through when it is not there. */
#define ITEM(container_, index_, let_go_)                                                \
    do {                                                                                 \
        const cy_value *from = (container_);                                             \
        uint64_t at = (uint64_t)(index_);                                                \
        if (CY_LIKELY(from->tag == TAG_LIST) && CY_LIKELY(at < list_of(*from)->count)) { \
            const struct list *list = list_of(*from);                                    \
            if (list_kind_of(list) == LIST_INT64) {                                      \
                int64_t number = list->items.ints[at];                                   \
                let_go_;                                                                 \
                SET(step->a, TAG_INT, i, number);                                        \
                NEXT();                                                                  \
            }                                                                            \
            if (list_kind_of(list) == LIST_FLOAT64) {                                    \
                double number = list->items.floats[at];                                  \
                let_go_;                                                                 \
                SET(step->a, TAG_FLOAT, f, number);                                      \
                NEXT();                                                                  \
            }                                                                            \
        }                                                                                \
        cy_value item;                                                                   \
        if (CY_LIKELY(interp_item(from, (int64_t)at, &item))) {                          \
            let_go_;                                                                     \
            PUT(step->a, item);                                                          \
            NEXT();                                                                      \
        }                                                                                \
    } while (0)
/* Four forms of reading an item: from a slot or a cell, as a value or as the place of one. */
#define READ_ITEM(name_, suffix_, is_int_, index_)                                               \
    STEP(name_##GET##suffix_) :                                                                  \
    {                                                                                            \
        cy_value *b = SLOT(b);                                                                   \
        if (CY_LIKELY(is_int_)) ITEM(b, index_, if (step->x & RUN_OWN_B) slow_clear(vm, b));     \
        SLOW(slow_index_get(vm, r, step));                                                       \
    }                                                                                            \
    STEP(CELL_##name_##GET##suffix_) :                                                           \
    {                                                                                            \
        if (CY_LIKELY(cell != SLOT(b) && (is_int_))) ITEM(cell, index_, (void)0);                \
        slow_settle_cell(cell, SLOT(b));                                                         \
        SLOW(slow_index_get(vm, r, step));                                                       \
    }                                                                                            \
    STEP(name_##BORROW##suffix_) :                                                               \
    {                                                                                            \
        cy_value *place = (is_int_) ? interp_item_place(SLOT(b), index_) : NULL;                 \
        if (CY_UNLIKELY(!place)) {                                                               \
            if (!slow_index_get(vm, r, step)) goto raise;                                        \
            place = SLOT(a);                                                                     \
        }                                                                                        \
        cell = place;                                                                            \
        NEXT();                                                                                  \
    }                                                                                            \
    STEP(CELL_##name_##BORROW##suffix_) :                                                        \
    {                                                                                            \
        cy_value *place = cell != SLOT(b) && (is_int_) ? interp_item_place(cell, index_) : NULL; \
        if (CY_UNLIKELY(!place)) {                                                               \
            slow_settle_cell(cell, SLOT(b));                                                     \
            if (!slow_index_get(vm, r, step)) goto raise;                                        \
            place = SLOT(a);                                                                     \
        }                                                                                        \
        cell = place;                                                                            \
        NEXT();                                                                                  \
    }
/* What a native's own step leaves to the native. */
#define NATIVE_SLOW(number_, arg_count_)                                    \
    do {                                                                    \
        frame->step = step;                                                 \
        fiber->frame = frame;                                               \
        SLOW(slow_native(fiber, r, k, step, NATIVE_##number_, arg_count_)); \
    } while (0)
/* A native of two ints that wraps around. */
#define WRAPPING(name_, number_, sign_)                                            \
    STEP(WRAPPING_##name_) :                                                       \
    {                                                                              \
        cy_value room;                                                             \
        const cy_value *b = SLOT(b), *c = interp_borrow(r, k, step, &room);        \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {                                      \
            int64_t number = (int64_t)((uint64_t)b->as.i sign_(uint64_t) c->as.i); \
            if (step->x & RUN_OWN_C) SLOT(c)->tag = TAG_NIL;                       \
            SET(step->a, TAG_INT, i, number);                                      \
            NEXT();                                                                \
        }                                                                          \
        NATIVE_SLOW(number_, 2);                                                   \
    }
#define CACHE ((struct run_cache *)(step + 1))

/* A write through `cell` into an item (the index in b) or a field (its name in b). */
#define WRITE_ITEM(name_, plain_, owned_, slow_)                            \
    STEP(LOCAL_INDEX_##name_) : cell = SLOT(a);                             \
    STEP(INDEX_##name_) :                                                   \
    {                                                                       \
        cy_value room;                                                      \
        const cy_value *b = SLOT(b), *c = interp_borrow(r, k, step, &room); \
        bool number = step->x & RUN_NUMBER_B;                               \
        if (CY_LIKELY(number || b->tag == TAG_INT)) {                       \
            int64_t index = number ? (int32_t)step->b : b->as.i;            \
            if (CY_LIKELY(plain_(cell, index, *c))) {                       \
                if (step->x & RUN_OWN_C) SLOT(c)->tag = TAG_NIL;            \
                NEXT();                                                     \
            }                                                               \
            cy_value value = slow_value(r, k, step);                        \
            if (owned_(vm, cell, index, value)) NEXT();                     \
            SLOW(slow_(vm, r, cell, step, value));                          \
        }                                                                   \
        SLOW(slow_(vm, r, cell, step, slow_value(r, k, step)));             \
    }
#define NOT_PLAIN(container_, index_, plain_) ((void)(plain_), false)
#define NOT_OWNED(vm_, container_, index_, owned_) false
#define WRITE_FIELD(name_, quick_, slow_)                                                \
    STEP(LOCAL_FIELD_##name_) : cell = SLOT(a);                                          \
    STEP(FIELD_##name_) :                                                                \
    {                                                                                    \
        cy_value value = slow_value(r, k, step);                                         \
        cy_value *place = interp_field_place(vm, cell, CACHE, &k[step->b], true);        \
        if (CY_LIKELY(place && interp_is_mine(cell)) && CY_LIKELY(quick_)) GO(step + 2); \
        SLOW_CACHED(slow_(vm, cell, instance, (struct run_step *)step, value));          \
    }

#endif
