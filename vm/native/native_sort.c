/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_sort.c: list.sort, which pauses when the task's turn is over.
 *
 * In:   a list of numbers, or of str. Out: a new one in rising order; equal items keep theirs.
 * Method: runs of doubling width are merged between two halves of a scratch array; where it stands is kept between turns.
 * Invariant: the list lives as an argument until the body has returned, so the scratch array borrows its items.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

enum { NATIVE_SORT_SLICE = 1024 }; /* items between two looks at the budget */

struct native_sort {
    size_t count;
    size_t copied; /* items looked at and put into `from` */
    cy_value *from;
    cy_value *to;
    size_t width; /* of the runs in `from`; from `count` on it is sorted */
    size_t
        begin; /* of the pair of runs being merged, `left` and `right` the next item of each, `out` where it goes */
    size_t left, right, out;
    size_t put; /* items in the result */
    cy_value result;
    uint64_t steps;
    cy_value memory[]; /* two halves */
};

static size_t native_sort_bytes(size_t count)
{
    return sizeof(struct native_sort) + 2 * count * sizeof(cy_value);
}

static void native_sort_free(struct vm *vm, void *work)
{
    struct native_sort *sort = work;
    value_unref(vm, sort->result);
    heap_free(vm, sort, native_sort_bytes(sort->count));
}

static enum native_outcome native_sort_failed(struct native_call *call, cy_err err)
{
    const char *why = cy_err_text(err, vm_korean(call->vm));
    if (!cy_is(err, CY_ERR_LIMIT)) return native_fail(call, err, "list.sort: %s", why);
    return native_fail(call, err, "list.sort: %s (WALK_STEPS: %d)", why, LIMIT_WALK_STEPS);
}

/* Whether b comes before a. Both are numbers but NaN, or both are str. `*steps` counts comparisons and long texts. */
static bool native_sort_is_before(cy_value b, cy_value a, uint64_t *steps)
{
    ++*steps;
    if (a.tag == TAG_STR) {
        if (a.as.object == b.as.object) return false;
        cy_bytes a_text = string_bytes(a), b_text = string_bytes(b);
        *steps += cy_min_size(a_text.count, b_text.count) / 16;
        return cy_bytes_compare(b_text, a_text) < 0;
    }
    if (a.tag == TAG_INT && b.tag == TAG_INT) return b.as.i < a.as.i;
    if (a.tag == TAG_FLOAT && b.tag == TAG_FLOAT) return b.as.f < a.as.f;
    if (b.tag == TAG_INT) return arith_compare_int_float(b.as.i, a.as.f) < 0;
    return arith_compare_int_float(a.as.i, b.as.f) > 0;
}

static bool native_sort_fits(struct native_call *call, cy_value first, cy_value item, size_t index)
{
    bool numbers = first.tag == TAG_INT || first.tag == TAG_FLOAT;
    bool fits = numbers ? item.tag == TAG_INT || item.tag == TAG_FLOAT : item.tag == TAG_STR;
    if (fits && (item.tag != TAG_FLOAT || item.as.f == item.as.f)) return true;
    const char *kind = fits ? "NaN" : value_kind_text(call->vm, item);
    native_fail(call, CY_ERR(TYPE), "list.sort: item %zu is %s; all items must be numbers, or all str", index,
                kind);
    return false;
}

/* -- the three parts; each does at most a slice and says whether it is done ---------------------------------- */

static enum native_outcome native_sort_copy(struct native_call *call, struct native_sort *sort)
{
    size_t end = cy_min_size(sort->copied + NATIVE_SORT_SLICE, sort->count);
    native_charge(call, (end - sort->copied) / 8);
    for (; sort->copied < end; sort->copied++) {
        cy_value item = list_get(call->args[0], sort->copied);
        if (!native_sort_fits(call, list_get(call->args[0], 0), item, sort->copied)) return NATIVE_FAIL;
        sort->from[sort->copied] = item;
    }
    return sort->copied == sort->count ? NATIVE_DONE : NATIVE_AGAIN;
}

static void native_sort_begin_pair(struct native_sort *sort, size_t begin)
{
    sort->begin = sort->left = sort->out = begin;
    sort->right = cy_min_size(begin + sort->width, sort->count);
}

static void native_sort_next_width(struct native_sort *sort)
{
    cy_value *swap = sort->from;
    sort->from = sort->to;
    sort->to = swap;
    sort->width *= 2;
    native_sort_begin_pair(sort, 0);
}

static enum native_outcome native_sort_merge(struct native_call *call, struct native_sort *sort)
{
    uint64_t steps_before = sort->steps;
    size_t middle = cy_min_size(sort->begin + sort->width, sort->count);
    size_t end = cy_min_size(sort->begin + 2 * sort->width, sort->count);
    size_t stop = cy_min_size(end, sort->out + NATIVE_SORT_SLICE);
    for (; sort->out < stop && sort->steps <= LIMIT_WALK_STEPS; sort->out++) {
        bool take_right = sort->right < end && (sort->left == middle ||
                                                native_sort_is_before(sort->from[sort->right],
                                                                      sort->from[sort->left], &sort->steps));
        sort->to[sort->out] = take_right ? sort->from[sort->right++] : sort->from[sort->left++];
    }
    native_charge(call, (sort->steps - steps_before) / 8);
    if (sort->steps > LIMIT_WALK_STEPS) return native_sort_failed(call, CY_ERR(LIMIT));
    if (sort->out < end) return NATIVE_AGAIN;
    if (end < sort->count)
        native_sort_begin_pair(sort, end);
    else
        native_sort_next_width(sort);
    return sort->width >= sort->count ? NATIVE_DONE : NATIVE_AGAIN;
}

static enum native_outcome native_sort_put(struct native_call *call, struct native_sort *sort)
{
    cy_err err = CY_OK;
    if (sort->result.tag == TAG_NIL) err = list_new(call->vm, 0, &sort->result);
    size_t end = cy_min_size(sort->put + NATIVE_SORT_SLICE, sort->count);
    native_charge(call, (end - sort->put) / 8);
    for (; sort->put < end && !cy_failed(err); sort->put++)
        err = list_append(call->vm, &sort->result, value_ref(sort->from[sort->put]));
    if (cy_failed(err)) return native_sort_failed(call, err);
    return sort->put == sort->count ? NATIVE_DONE : NATIVE_AGAIN;
}

/* Until it is sorted, or the turn is over. */
static enum native_outcome native_sort_go(struct native_call *call, struct native_sort *sort)
{
    enum native_outcome outcome = NATIVE_AGAIN;
    while (outcome == NATIVE_AGAIN) {
        if (sort->copied < sort->count)
            outcome = native_sort_copy(call, sort);
        else if (sort->width < sort->count)
            outcome = native_sort_merge(call, sort);
        else
            outcome = native_sort_put(call, sort);
        bool last = outcome == NATIVE_DONE && sort->put == sort->count && sort->result.tag != TAG_NIL;
        if (outcome == NATIVE_FAIL || last) return outcome;
        outcome = NATIVE_AGAIN;
        if (native_turn_over(call)) return outcome;
    }
    return outcome;
}

static cy_err native_sort_new(struct native_call *call, struct native_sort **sort_out)
{
    size_t count = list_count(call->args[0]);
    struct native_sort *sort = heap_alloc(call->vm, native_sort_bytes(count));
    if (!sort) return CY_ERR(NO_MEMORY);
    *sort = (struct native_sort){.count = count, .width = 1, .result = value_nil()};
    sort->from = sort->memory;
    sort->to = sort->memory + count;
    native_sort_begin_pair(sort, 0);
    *sort_out = sort;
    return CY_OK;
}

enum native_outcome native_list_sort(struct native_call *call)
{
    struct native_sort *sort = call->fiber ? native_work(call) : NULL;
    bool kept = sort != NULL;
    cy_err err = kept ? CY_OK : native_sort_new(call, &sort);
    if (cy_failed(err)) return native_sort_failed(call, err);
    enum native_outcome outcome = native_sort_go(call, sort);
    if (outcome == NATIVE_DONE) {
        call->result = sort->result;
        sort->result = value_nil();
    }
    if (outcome == NATIVE_AGAIN && !kept) native_keep_work(call, sort, native_sort_free);
    if (outcome != NATIVE_AGAIN && !kept) native_sort_free(call->vm, sort);
    return outcome;
}
