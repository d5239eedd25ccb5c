/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_list_sort.c: module list: order: sort, order, min and max, searching what is sorted.
 *
 * In:   lists of numbers, of str, or of lists of those (compared item by item, the shorter first). NaN has no place.
 * Out:  new lists; equal items keep their order.
 * Method: an item becomes an entry of 16 bytes: a prefix of 64 bits whose order is that of the item as far as it
 *         goes, and the item's index. Merging compares prefixes; only when those are equal and do not say all (text
 *         longer than 8 bytes, an int beside a float) it looks at the items. Ints stored bare are their own prefix,
 *         and are sorted by its bytes instead (radix), which takes time linear in their number.
 *         Sorting by comparing pauses when the task's turn is over; where it stands is the call's work (native_work).
 * Invariant: comparisons are counted; past LIMIT_WALK_STEPS sorting fails instead of going on for ever. The list lives
 *         as an argument until the body has returned, so what is kept between turns borrows its items.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/native/native_data_internal.h"

struct native_list_sort_entry {
    uint64_t prefix;
    uint32_t index;
};
struct native_list_sort {
    cy_value items;
    bool descending;
    bool prefix_is_all; /* equal prefixes mean equal items */
    uint64_t steps;
    size_t count;
    size_t runs;  /* items that lie in sorted runs so far */
    size_t width; /* of the runs being merged, from `from` to `to` */
    size_t begin; /* of the pair being merged; `left` and `right` are next in it, and go to `out` */
    size_t left, right, out;
    bool merging; /* in the middle of a pair */
    struct native_list_sort_entry *from, *to;
    struct native_list_sort_entry entries[]; /* two halves */
};

/* -- comparing ----------------------------------------------------------------------------------------- */

/* <0, 0, >0 for two numbers but NaN, two str, or two lists of those, which native_list_sort_fits has seen. */
static int native_list_sort_compare_flat(cy_value a, cy_value b, uint64_t *steps)
{
    ++*steps;
    if (a.tag == TAG_STR) {
        if (a.as.object == b.as.object) return 0;
        cy_bytes a_text = string_bytes(a), b_text = string_bytes(b);
        *steps += cy_min_size(a_text.count, b_text.count) / 16;
        return cy_bytes_compare(a_text, b_text);
    }
    if (a.tag == TAG_INT && b.tag == TAG_INT) return (a.as.i > b.as.i) - (a.as.i < b.as.i);
    if (a.tag == TAG_FLOAT && b.tag == TAG_FLOAT) return (a.as.f > b.as.f) - (a.as.f < b.as.f);
    if (a.tag == TAG_INT) return arith_compare_int_float(a.as.i, b.as.f);
    return -arith_compare_int_float(b.as.i, a.as.f);
}

static int native_list_sort_compare(cy_value a, cy_value b, uint64_t *steps)
{
    if (a.tag != TAG_LIST) return native_list_sort_compare_flat(a, b, steps);
    size_t a_count = list_count(a), b_count = list_count(b);
    for (size_t i = 0; i < a_count && i < b_count; i++) {
        int order = native_list_sort_compare_flat(list_get(a, i), list_get(b, i), steps);
        if (order) return order;
    }
    return (a_count > b_count) - (a_count < b_count);
}

static bool native_list_sort_alike(cy_value a, cy_value b)
{
    bool number = a.tag == TAG_INT || a.tag == TAG_FLOAT;
    return number ? b.tag == TAG_INT || b.tag == TAG_FLOAT : a.tag == b.tag;
}

/* Whether `item` has an order beside `first`: the same kind, no NaN, and lists of such alike place by place. */
static bool native_list_sort_fits(cy_value first, cy_value item, uint64_t *steps)
{
    ++*steps;
    if (!native_list_sort_alike(first, item) || (item.tag == TAG_FLOAT && item.as.f != item.as.f))
        return false;
    if (item.tag != TAG_LIST) return item.tag == TAG_INT || item.tag == TAG_FLOAT || item.tag == TAG_STR;
    for (size_t i = 0; i < list_count(item) && *steps <= LIMIT_WALK_STEPS; i++) {
        cy_value part = list_get(item, i), part_first = i < list_count(first) ? list_get(first, i) : part;
        *steps += 3; /* a part costs about four times what an item costs that is alone */
        if (part.tag == TAG_LIST || !native_list_sort_fits(part_first, part, steps)) return false;
    }
    return true;
}

static bool native_list_sort_check(struct native_call *call, cy_value items, const char *native)
{
    size_t count = list_count(items);
    if (list_ints(items)) return true;
    uint64_t steps = 0;
    cy_value longest = count ? list_get(items, 0) : value_nil();
    for (size_t i = 0; i < count && steps <= LIMIT_WALK_STEPS; i++) {
        cy_value item = list_get(items, i);
        if (native_list_sort_fits(longest, item, &steps)) {
            if (item.tag == TAG_LIST && list_count(item) > list_count(longest)) longest = item;
            continue;
        }
        bool nan = item.tag == TAG_FLOAT && item.as.f != item.as.f;
        (void)native_fail(call, CY_ERR(TYPE),
                          "%s: item %zu is %s; all items must be numbers, or all str, or all lists of those",
                          native, i, nan ? "NaN" : value_kind_text(call->vm, item));
        return false;
    }
    native_charge(call, steps / 16);
    if (steps > LIMIT_WALK_STEPS) (void)native_fail_reason(call, CY_ERR(LIMIT), native);
    return steps <= LIMIT_WALK_STEPS;
}

/* -- entries ------------------------------------------------------------------------------------------- */

static uint64_t native_list_sort_int_key(int64_t number) { return (uint64_t)number ^ (uint64_t)1 << 63; }

/* Order of doubles as order of bits; both zeros are one. */
static uint64_t native_list_sort_float_key(double number)
{
    uint64_t bits;
    number += 0.0; /* -0.0 + 0.0 is 0.0 */
    memcpy(&bits, &number, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t native_list_sort_text_key(cy_bytes text)
{
    uint8_t first[8] = {0};
    memcpy(first, text.data, cy_min_size(text.count, sizeof first));
    uint64_t key = 0;
    for (int i = 0; i < 8; i++) key = key << 8 | first[i];
    return key;
}

/* The prefix of an item. Ints beside floats go by the nearest float, which keeps the order and can tie. */
static uint64_t native_list_sort_prefix(cy_value item, bool all_ints)
{
    switch (item.tag) {
    case TAG_INT:
        return all_ints ? native_list_sort_int_key(item.as.i) : native_list_sort_float_key((double)item.as.i);
    case TAG_FLOAT: return native_list_sort_float_key(item.as.f);
    case TAG_STR: return native_list_sort_text_key(string_bytes(item));
    default: return 0;
    }
}

static void native_list_sort_begin(struct native_list_sort *sort)
{
    struct native_list_sort_entry *entries = sort->entries;
    size_t count = list_count(sort->items), ints = 0, floats = 0;
    for (size_t i = 0; i < count; i++) {
        cy_value item = list_get(sort->items, i);
        ints += item.tag == TAG_INT;
        floats += item.tag == TAG_FLOAT;
    }
    sort->prefix_is_all = ints == count || floats == count;
    for (size_t i = 0; i < count; i++) {
        uint64_t prefix = native_list_sort_prefix(list_get(sort->items, i), ints == count);
        entries[i] = (struct native_list_sort_entry){sort->descending ? ~prefix : prefix, (uint32_t)i};
    }
}

/* Whether b, which stood behind a, comes before it. */
static inline bool native_list_sort_is_before(struct native_list_sort *sort,
                                              const struct native_list_sort_entry *b,
                                              const struct native_list_sort_entry *a)
{
    sort->steps++;
    if (b->prefix != a->prefix) return b->prefix < a->prefix;
    if (sort->prefix_is_all) return false;
    int order = native_list_sort_compare(list_get(sort->items, b->index), list_get(sort->items, a->index),
                                         &sort->steps);
    return sort->descending ? order > 0 : order < 0;
}

/* -- sorting ------------------------------------------------------------------------------------------- */

enum {
    NATIVE_LIST_SORT_RUN = 12,
    NATIVE_LIST_SORT_SLICE = 1020, /* items between two looks at the budget; whole runs */
};

static size_t native_list_sort_bytes(size_t count)
{
    return sizeof(struct native_list_sort) + 2 * count * sizeof(struct native_list_sort_entry);
}
static void native_list_sort_free(struct vm *vm, void *work)
{
    struct native_list_sort *sort = work;
    heap_free(vm, sort, native_list_sort_bytes(sort->count));
}

static void native_list_sort_insert(struct native_list_sort *sort, struct native_list_sort_entry *entries,
                                    size_t count)
{
    for (size_t i = 1; i < count && sort->steps <= LIMIT_WALK_STEPS; i++) {
        struct native_list_sort_entry entry = entries[i];
        size_t to = i;
        for (; to > 0 && native_list_sort_is_before(sort, &entry, &entries[to - 1]); to--)
            entries[to] = entries[to - 1];
        entries[to] = entry;
    }
}

/* Some runs more. */
static void native_list_sort_runs(struct native_list_sort *sort)
{
    size_t end = cy_min_size(sort->runs + NATIVE_LIST_SORT_SLICE, sort->count);
    for (; sort->runs < end; sort->runs += NATIVE_LIST_SORT_RUN)
        native_list_sort_insert(sort, sort->from + sort->runs,
                                cy_min_size(NATIVE_LIST_SORT_RUN, sort->count - sort->runs));
}

/* A part of [begin, middle) and [middle, end) of `from` into the same places of `to`; whether that was the rest. */
static bool native_list_sort_merge(struct native_list_sort *sort, size_t middle, size_t end)
{
    const struct native_list_sort_entry *from = sort->from;
    struct native_list_sort_entry *to = sort->to;
    size_t left = sort->left, right = sort->right, out = sort->out;
    size_t stop = cy_min_size(end, out + NATIVE_LIST_SORT_SLICE);
    while (left < middle && right < end && out < stop && sort->steps <= LIMIT_WALK_STEPS)
        to[out++] =
            native_list_sort_is_before(sort, &from[right], &from[left]) ? from[right++] : from[left++];
    if (left < middle && right < end) {
        sort->left = left;
        sort->right = right;
        sort->out = out;
        return false;
    }
    memcpy(to + out, from + left, (middle - left) * sizeof *to);
    out += middle - left;
    memcpy(to + out, from + right, (end - right) * sizeof *to);
    return true;
}

/* A pair of runs, or a part of it; then the next pair, or the next width. */
static void native_list_sort_pair(struct native_list_sort *sort)
{
    size_t middle = cy_min_size(sort->begin + sort->width, sort->count);
    size_t end = cy_min_size(sort->begin + 2 * sort->width, sort->count);
    if (!sort->merging) {
        sort->left = sort->out = sort->begin;
        sort->right = middle;
        sort->merging =
            middle < end && native_list_sort_is_before(sort, &sort->from[middle], &sort->from[middle - 1]);
        if (!sort->merging) /* in order already */
            memcpy(sort->to + sort->begin, sort->from + sort->begin, (end - sort->begin) * sizeof *sort->to);
    }
    if (sort->merging && !native_list_sort_merge(sort, middle, end)) return;
    sort->merging = false;
    sort->begin = end;
    if (end < sort->count) return;
    struct native_list_sort_entry *swap = sort->from;
    sort->from = sort->to;
    sort->to = swap;
    sort->width *= 2;
    sort->begin = 0;
}

/* Sorts until it is done, or the turn is over; `from` then has the entries. */
static enum native_outcome native_list_sort_go(struct native_call *call, struct native_list_sort *sort)
{
    while (sort->runs < sort->count || sort->width < sort->count) {
        uint64_t steps_before = sort->steps;
        if (sort->runs < sort->count)
            native_list_sort_runs(sort);
        else
            native_list_sort_pair(sort);
        native_charge(call, (sort->steps - steps_before) / 8);
        if (sort->steps > LIMIT_WALK_STEPS) return NATIVE_DONE;
        if (native_turn_over(call)) return NATIVE_AGAIN;
    }
    return NATIVE_DONE;
}

/* Keys by their bytes, the lowest first; a byte that all share costs a count only. Gives the half with the result. */
static uint64_t *native_list_sort_radix(uint64_t *keys, size_t count)
{
    uint64_t *from = keys, *to = keys + count;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t starts[256] = {0}, start = 0;
        for (size_t i = 0; i < count; i++) starts[from[i] >> shift & 255]++;
        if (starts[from[0] >> shift & 255] == count) continue;
        for (int byte = 0; byte < 256; byte++) {
            size_t here = starts[byte];
            starts[byte] = start;
            start += here;
        }
        for (size_t i = 0; i < count; i++) to[starts[from[i] >> shift & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    return from;
}

/* Below this, comparing is faster than eight counts. */
enum { NATIVE_LIST_SORT_RADIX_MIN = 256 };

static enum native_outcome native_list_sort_ints(struct native_call *call, bool descending)
{
    size_t count = list_count(call->args[0]), scratch_bytes = 2 * count * sizeof(uint64_t);
    const int64_t *ints = list_ints(call->args[0]);
    cy_value sorted;
    int64_t *to;
    uint64_t *keys = heap_alloc(call->vm, scratch_bytes), flip = descending ? UINT64_MAX : 0;
    if (!keys) return native_fail_reason(call, CY_ERR(NO_MEMORY), "list.sort");
    cy_err err = list_new_ints(call->vm, count, &sorted, &to);
    if (!cy_failed(err)) {
        for (size_t i = 0; i < count; i++) keys[i] = native_list_sort_int_key(ints[i]) ^ flip;
        const uint64_t *from = native_list_sort_radix(keys, count);
        for (size_t i = 0; i < count; i++)
            to[i] = (int64_t)native_list_sort_int_key((int64_t)(from[i] ^ flip));
        native_charge(call, count / 4);
    }
    heap_free(call->vm, keys, scratch_bytes);
    return cy_failed(err) ? native_fail_reason(call, err, "list.sort") : native_return(call, sorted);
}

/* Items of `items` in the order of entries. */
static cy_err native_list_sort_gather(struct native_call *call, cy_value items,
                                      const struct native_list_sort_entry *entries, size_t count,
                                      cy_value *owned_out)
{
    const int64_t *ints = list_ints(items);
    const double *floats = list_floats(items);
    int64_t *ints_to;
    double *floats_to;
    cy_value *values;
    CY_TRY(ints     ? list_new_ints(call->vm, count, owned_out, &ints_to)
           : floats ? list_new_floats(call->vm, count, owned_out, &floats_to)
                    : list_new_values(call->vm, count, owned_out, &values));
    for (size_t i = 0; i < count; i++) {
        if (ints)
            ints_to[i] = ints[entries[i].index];
        else if (floats)
            floats_to[i] = floats[entries[i].index];
        else
            values[i] = value_ref(list_get(items, entries[i].index));
    }
    return CY_OK;
}

static cy_err native_list_sort_indices(struct native_call *call, const struct native_list_sort_entry *entries,
                                       size_t count, cy_value *owned_out)
{
    int64_t *to;
    CY_TRY(list_new_ints(call->vm, count, owned_out, &to));
    for (size_t i = 0; i < count; i++) to[i] = entries[i].index;
    return CY_OK;
}

/* The state of a new sort; NULL, failed, without memory. */
static struct native_list_sort *native_list_sort_new(struct native_call *call, bool descending,
                                                     const char *native)
{
    size_t count = list_count(call->args[0]);
    struct native_list_sort *sort = heap_alloc(call->vm, native_list_sort_bytes(count));
    if (!sort) {
        (void)native_fail_reason(call, CY_ERR(NO_MEMORY), native);
        return NULL;
    }
    *sort = (struct native_list_sort){.items = call->args[0],
                                      .descending = descending,
                                      .count = count,
                                      .width = NATIVE_LIST_SORT_RUN,
                                      .from = sort->entries,
                                      .to = sort->entries + count};
    native_list_sort_begin(sort);
    return sort;
}

static enum native_outcome native_list_sort_result(struct native_call *call,
                                                   const struct native_list_sort *sort, bool indices,
                                                   const char *native)
{
    cy_value result;
    cy_err err = sort->steps > LIMIT_WALK_STEPS ? CY_ERR(LIMIT)
                 : indices ? native_list_sort_indices(call, sort->from, sort->count, &result)
                           : native_list_sort_gather(call, sort->items, sort->from, sort->count, &result);
    return cy_failed(err) ? native_fail_reason(call, err, native) : native_return(call, result);
}

static enum native_outcome native_list_sort_run(struct native_call *call, bool indices, const char *native)
{
    struct native_list_sort *sort = call->fiber ? native_work(call) : NULL;
    bool kept = sort != NULL, descending = native_has_arg(call, 1) && call->args[1].as.b;
    if (!kept) {
        size_t count = list_count(call->args[0]);
        if (!native_list_sort_check(call, call->args[0], native)) return NATIVE_FAIL;
        if (count < 2 && !indices) return native_return(call, native_take_arg(call, 0));
        if (!indices && list_ints(call->args[0]) && count >= NATIVE_LIST_SORT_RADIX_MIN)
            return native_list_sort_ints(call, descending);
        sort = native_list_sort_new(call, descending, native);
        if (!sort) return NATIVE_FAIL;
    }
    enum native_outcome outcome = native_list_sort_go(call, sort);
    if (outcome == NATIVE_AGAIN) {
        if (!kept) native_keep_work(call, sort, native_list_sort_free);
        return outcome;
    }
    outcome = native_list_sort_result(call, sort, indices, native);
    if (!kept) native_list_sort_free(call->vm, sort);
    return outcome;
}
enum native_outcome native_list_sort(struct native_call *call)
{
    return native_list_sort_run(call, false, "list.sort");
}
enum native_outcome native_list_order(struct native_call *call)
{
    return native_list_sort_run(call, true, "list.order");
}

/* -- what needs no whole order ------------------------------------------------------------------------------------
 * */

static enum native_outcome native_list_sort_extreme(struct native_call *call, bool largest,
                                                    const char *native)
{
    cy_value items = call->args[0];
    size_t best = 0, count = list_count(items);
    uint64_t steps = 0;
    if (count == 0 && native_has_arg(call, 1)) return native_return(call, value_ref(call->args[1]));
    if (count == 0) return native_fail(call, CY_ERR(VALUE), "%s: the list is empty", native);
    if (!native_list_sort_check(call, items, native)) return NATIVE_FAIL;
    for (size_t i = 1; i < count && steps <= LIMIT_WALK_STEPS; i++) {
        int order = native_list_sort_compare(list_get(items, i), list_get(items, best), &steps);
        if (largest ? order > 0 : order < 0) best = i;
    }
    native_charge(call, steps / 16);
    if (steps > LIMIT_WALK_STEPS) return native_fail_reason(call, CY_ERR(LIMIT), native);
    return native_return(call, value_ref(list_get(items, best)));
}
enum native_outcome native_list_min(struct native_call *call)
{
    return native_list_sort_extreme(call, false, "list.min");
}
enum native_outcome native_list_max(struct native_call *call)
{
    return native_list_sort_extreme(call, true, "list.max");
}

/* The first index whose item is not before args[1]; false, failed, for items that have no order beside it. */
static bool native_list_sort_place(struct native_call *call, const char *native, size_t *index_out,
                                   bool *equal_out)
{
    cy_value items = call->args[0], item = call->args[1];
    size_t low = 0, high = list_count(items);
    uint64_t steps = 0;
    *equal_out = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        cy_value there = list_get(items, middle);
        if (!native_list_sort_fits(item, item, &steps) || !native_list_sort_fits(item, there, &steps)) {
            (void)native_fail(call, CY_ERR(TYPE), "%s: %s and %s have no order", native,
                              value_kind_text(call->vm, item), value_kind_text(call->vm, there));
            return false;
        }
        int order = native_list_sort_compare(there, item, &steps);
        if (order == 0) *equal_out = true; /* the first equal one is here or further down */
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    native_charge(call, steps / 16);
    *index_out = low;
    return true;
}
enum native_outcome native_list_lower_bound(struct native_call *call)
{
    size_t index;
    bool equal;
    if (!native_list_sort_place(call, "list.lower_bound", &index, &equal)) return NATIVE_FAIL;
    return native_return(call, value_int((int64_t)index));
}
enum native_outcome native_list_binary_search(struct native_call *call)
{
    size_t index;
    bool equal;
    if (!native_list_sort_place(call, "list.binary_search", &index, &equal)) return NATIVE_FAIL;
    return native_return(call, value_int(equal ? (int64_t)index : -1));
}
