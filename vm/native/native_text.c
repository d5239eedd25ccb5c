/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_text.c: module text: looking, taking apart, joining. Work on str as bytes.
 *
 * In:   arguments already checked against native.def. Out: new str values.
 * Invariant: work that grows with its input charges the budget, about one step per 100 bytes. A result of known size
 *            is written where it stays.
 * Not here: letters and columns (native_text_unicode.c), numbers (native_text_form.c).
 */
#define _GNU_SOURCE /* memmem */
#include "vm/base/limits.h"
#include "vm/native/native_text_internal.h"
#include "vm/run/heap.h"

enum native_outcome native_text_return(struct native_call *call, cy_bytes text, const char *native)
{
    if (call->args[0].tag == TAG_STR && text.count == native_text_arg(call, 0).count &&
        text.data == native_text_arg(call, 0).data)
        return native_return(call, native_take_arg(call, 0));
    cy_value value;
    cy_err err = string_new(call->vm, text, &value);
    return cy_failed(err) ? native_fail_reason(call, err, native) : native_return(call, value);
}

void native_text_build(struct native_call *call, struct builder *builder)
{
    builder_init(builder);
    builder->count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
}

enum native_outcome native_text_return_built(struct native_call *call, struct builder *built,
                                             const char *native)
{
    bool full = built->past_max && built->count_max == LIMIT_STRING_BYTES;
    cy_err err = full ? CY_ERR(TOO_LARGE) : builder_error(built);
    native_text_charge(call, built->count);
    enum native_outcome outcome = cy_failed(err) ? native_fail_reason(call, err, native)
                                                 : native_text_return(call, builder_view(built), native);
    builder_fini(built);
    return outcome;
}

size_t native_text_index(cy_bytes text, cy_bytes part, size_t from)
{
    if (from > text.count) return SIZE_MAX;
    if (part.count == 0) return from;
    /* Looking for the first byte is the fastest way as long as it seldom misleads; memmem is linear for any part. */
    size_t misled = 0;
    for (; text.count - from >= part.count; from++) {
        const uint8_t *found = memchr(text.data + from, part.data[0], text.count - from - part.count + 1);
        if (!found) return SIZE_MAX;
        from = (size_t)(found - text.data);
        if (memcmp(found, part.data, part.count) == 0) return from;
        if (++misled < 8) continue;
        found = memmem(found, text.count - from, part.data, part.count);
        return found ? (size_t)(found - text.data) : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* Where a part occurs. Offsets fit in 32 bits: LIMIT_STRING_BYTES is 2^30. */
struct native_text_places {
    struct vm *vm;
    uint32_t *items;
    size_t count, capacity;
    size_t from; /* where looking goes on */
    bool complete;
    uint32_t first[256]; /* so that short texts allocate nothing */
};
/* What is looked through, or copied, between two looks at the budget. */
enum { NATIVE_TEXT_PIECE_BYTES = 256 << 10, NATIVE_TEXT_PIECE_ITEMS = 1024 };

/* After the struct was moved. */
static void native_text_places_moved(struct native_text_places *places)
{
    if (places->capacity == CY_COUNT_OF(places->first)) places->items = places->first;
}

static void native_text_places_fini(struct native_text_places *places)
{
    if (places->capacity != CY_COUNT_OF(places->first))
        heap_free(places->vm, places->items, places->capacity * sizeof *places->items);
}

static bool native_text_places_grow(struct native_text_places *places)
{
    size_t capacity = places->capacity * 2;
    uint32_t *items = heap_alloc(places->vm, capacity * sizeof *items);
    if (!items) return false;
    memcpy(items, places->items, places->count * sizeof *items);
    native_text_places_fini(places);
    places->items = items;
    places->capacity = capacity;
    return true;
}

static void native_text_places_init(struct native_call *call, struct native_text_places *places)
{
    places->vm = call->vm;
    places->items = places->first;
    places->count = places->from = 0;
    places->capacity = CY_COUNT_OF(places->first);
    places->complete = false;
}

/* As native_text_index, but looks through a piece: SIZE_MAX with `*from` moved on when there is none in it. `*from`
 * past
 * text.count: there is none at all. */
static size_t native_text_index_piece(struct native_call *call, cy_bytes text, cy_bytes part, size_t *from)
{
    size_t begin = *from, reach = NATIVE_TEXT_PIECE_BYTES + part.count;
    size_t end = reach < text.count - begin ? begin + reach : text.count;
    size_t found = native_text_index(cy_bytes_slice(text, 0, end), part, begin);
    if (found == SIZE_MAX) *from = end == text.count ? SIZE_MAX : end - part.count + 1;
    native_text_charge(call, (found == SIZE_MAX ? end : found) - begin);
    return found;
}

/* The first `max` occurrences of `part`, which is not empty, without overlapping: all, or until the turn is over
 * (`complete` says which). The caller calls fini, also after a failure. */
static cy_err native_text_find_places(struct native_call *call, cy_bytes text, cy_bytes part, size_t max,
                                      struct native_text_places *places)
{
    size_t least = places->count + NATIVE_TEXT_PIECE_ITEMS, skipped = 0;
    while (places->count < max && places->from <= text.count) {
        size_t found = native_text_index_piece(call, text, part, &places->from);
        if (found == SIZE_MAX && places->from == SIZE_MAX) break;
        bool look = found == SIZE_MAX ? ++skipped > 1 : places->count >= least;
        if (found != SIZE_MAX) {
            if (places->count == places->capacity && !native_text_places_grow(places))
                return CY_ERR(NO_MEMORY);
            places->items[places->count++] = (uint32_t)found;
            places->from = found + part.count;
        }
        if (look) {
            least = places->count + NATIVE_TEXT_PIECE_ITEMS;
            native_charge(call, NATIVE_TEXT_PIECE_ITEMS / 8);
            if (native_turn_over(call)) return CY_OK;
        }
    }
    places->complete = true;
    return CY_OK;
}

cy_err native_text_put(struct native_call *call, cy_value *place, cy_bytes text, size_t begin, size_t end)
{
    cy_value part;
    CY_TRY(string_new(call->vm, cy_bytes_slice(text, begin, end), &part));
    *place = part;
    return CY_OK;
}

/* -- looking ------------------------------------------------------------------------------------------- */

/* Looks for args[1] in args[0] from `*from` on, or from where an earlier turn has left. False when the turn is over. */
static bool native_text_search(struct native_call *call, size_t *from, size_t *found_out)
{
    cy_bytes text = native_text_arg(call, 0), part = native_text_arg(call, 1);
    (void)native_resume(call, from, sizeof *from);
    while (*from <= text.count) {
        *found_out = native_text_index_piece(call, text, part, from);
        if (*found_out != SIZE_MAX) return true;
        if (*from != SIZE_MAX && native_turn_over(call)) return false;
    }
    *found_out = SIZE_MAX;
    return true;
}

enum native_outcome native_text_contains(struct native_call *call)
{
    size_t found, from = 0;
    if (!native_text_search(call, &from, &found))
        return native_pause(call, &from, sizeof from, NULL, "text.contains");
    return native_return(call, value_bool(found != SIZE_MAX));
}

enum native_outcome native_text_starts(struct native_call *call)
{
    return native_return(call,
                         value_bool(cy_bytes_start_with(native_text_arg(call, 0), native_text_arg(call, 1))));
}

enum native_outcome native_text_ends(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), end = native_text_arg(call, 1);
    bool ends = text.count >= end.count && cy_bytes_equal(cy_bytes_skip(text, text.count - end.count), end);
    return native_return(call, value_bool(ends));
}

enum native_outcome native_text_find(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t from = native_has_arg(call, 2) ? call->args[2].as.i : 0;
    if (from < 0 || (uint64_t)from > text.count)
        return native_fail(call, CY_ERR(INDEX), "text.find: from %lld is outside 0..%zu", (long long)from,
                           text.count);
    size_t index, at = (size_t)from;
    if (!native_text_search(call, &at, &index)) return native_pause(call, &at, sizeof at, NULL, "text.find");
    return native_return(call, value_int(index == SIZE_MAX ? -1 : (int64_t)index));
}

enum native_outcome native_text_find_last(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), part = native_text_arg(call, 1);
    if (part.count == 0) return native_return(call, value_int((int64_t)text.count));
    if (part.count > text.count) return native_return(call, value_int(-1));
    native_text_charge(call, 2 * text.count);
    /* The first occurrence from the other side: memmem takes linear time for any part, comparing everywhere not. */
    size_t scratch_bytes = text.count + part.count;
    uint8_t *scratch = heap_alloc(call->vm, scratch_bytes);
    if (!scratch) return native_fail_reason(call, CY_ERR(NO_MEMORY), "text.find_last");
    for (size_t i = 0; i < text.count; i++) scratch[i] = text.data[text.count - 1 - i];
    for (size_t i = 0; i < part.count; i++) scratch[text.count + i] = part.data[part.count - 1 - i];
    size_t at =
        native_text_index(cy_bytes_of(scratch, text.count), cy_bytes_of(scratch + text.count, part.count), 0);
    heap_free(call->vm, scratch, scratch_bytes);
    return native_return(call, value_int(at == SIZE_MAX ? -1 : (int64_t)(text.count - part.count - at)));
}

/* An empty part occurs nowhere: counting it would be a riddle. */
static bool native_text_part_given(struct native_call *call, const char *native)
{
    if (native_text_arg(call, 1).count > 0) return true;
    (void)native_fail(call, CY_ERR(VALUE), "%s: the part is empty", native);
    return false;
}

enum native_outcome native_text_count_of(struct native_call *call)
{
    if (!native_text_part_given(call, "text.count_of")) return NATIVE_FAIL;
    cy_bytes text = native_text_arg(call, 0), part = native_text_arg(call, 1);
    int64_t count = 0;
    native_text_charge(call, text.count);
    for (size_t at = 0; (at = native_text_index(text, part, at)) != SIZE_MAX; at += part.count) count++;
    return native_return(call, value_int(count));
}

static void native_text_places_drop(struct vm *vm, void *state)
{
    (void)vm;
    native_text_places_moved(state);
    native_text_places_fini(state);
}

enum native_outcome native_text_find_all(struct native_call *call)
{
    if (!native_text_part_given(call, "text.find_all")) return NATIVE_FAIL;
    struct native_text_places places;
    cy_value found;
    int64_t *to;
    if (native_resume(call, &places, sizeof places))
        native_text_places_moved(&places);
    else
        native_text_places_init(call, &places);
    cy_err err =
        native_text_find_places(call, native_text_arg(call, 0), native_text_arg(call, 1), SIZE_MAX, &places);
    if (!cy_failed(err) && !places.complete)
        return native_pause(call, &places, sizeof places, native_text_places_drop, "text.find_all");
    if (!cy_failed(err)) err = list_new_ints(call->vm, places.count, &found, &to);
    for (size_t i = 0; i < places.count && !cy_failed(err); i++) to[i] = places.items[i];
    native_text_places_fini(&places);
    return cy_failed(err) ? native_fail_reason(call, err, "text.find_all") : native_return(call, found);
}

enum native_outcome native_text_compare(struct native_call *call)
{
    cy_bytes a = native_text_arg(call, 0), b = native_text_arg(call, 1);
    native_text_charge(call, cy_min_size(a.count, b.count));
    int order = cy_bytes_compare(a, b);
    return native_return(call, value_int((order > 0) - (order < 0)));
}

/* The distance of two words takes the product of their lengths; a letter pair is a few ns. */
enum { NATIVE_TEXT_PAIRS_PER_STEP = 8 };

/* Between two turns, which end between two words. What `nearest` points at is the call's arguments. */
struct native_text_nearing {
    struct nearest nearest;
    size_t index; /* of the next word */
    size_t best_index;
    uint64_t steps;
};

/* Offers the next word. NATIVE_FAIL when it cannot be compared. */
static enum native_outcome native_text_near(struct native_call *call, struct native_text_nearing *nearing)
{
    struct nearest *nearest = &nearing->nearest;
    cy_value word = list_get(call->args[1], nearing->index);
    if (word.tag != TAG_STR)
        return native_fail(call, CY_ERR(TYPE), "text.nearest: item %zu must be str, not %s", nearing->index,
                           value_kind_text(call->vm, word));
    size_t bytes = string_bytes(word).count, wanted_bytes = nearest->wanted.count;
    if (bytes > 0 && wanted_bytes > LIMIT_NEAREST_PAIRS / bytes)
        return native_fail(call, CY_ERR(LIMIT),
                           "text.nearest: item %zu and the word are too long: %zu and %zu bytes "
                           "(NEAREST_PAIRS: %d, multiplied)",
                           nearing->index, bytes, wanted_bytes, LIMIT_NEAREST_PAIRS);
    uint64_t steps = 1 + wanted_bytes * bytes / NATIVE_TEXT_PAIRS_PER_STEP;
    nearing->steps += steps;
    if (nearing->steps > LIMIT_WALK_STEPS) return native_fail_reason(call, CY_ERR(LIMIT), "text.nearest");
    native_charge(call, steps);
    size_t distance = nearest->best.count ? nearest->best_distance : SIZE_MAX;
    nearest_offer(nearest, string_bytes(word));
    if (nearest->no_memory) return native_fail_reason(call, CY_ERR(NO_MEMORY), "text.nearest");
    if (nearest->best.count && nearest->best_distance < distance) nearing->best_index = nearing->index;
    nearing->index++;
    return NATIVE_DONE;
}

enum native_outcome native_text_nearest(struct native_call *call)
{
    struct native_text_nearing nearing;
    if (!native_resume(call, &nearing, sizeof nearing)) {
        nearing.index = nearing.best_index = nearing.steps = 0;
        nearest_init(&nearing.nearest, native_text_arg(call, 0));
        nearing.nearest.bytes_max = SIZE_MAX; /* an answer, which is charged, and no hint */
    }
    while (nearing.index < list_count(call->args[1])) {
        if (native_text_near(call, &nearing) == NATIVE_FAIL) return NATIVE_FAIL;
        if (native_turn_over(call)) return native_pause(call, &nearing, sizeof nearing, NULL, "text.nearest");
    }
    if (!nearing.nearest.best.count) return native_return(call, value_nil());
    return native_return(call, value_ref(list_get(call->args[1], nearing.best_index)));
}

/* -- taking apart and joining -------------------------------------------------------------------------- */

/* `limit` of split and replace: 0 is none. False, failed, when it is negative. */
static bool native_text_limit(struct native_call *call, uint32_t index, const char *native, size_t *limit_out)
{
    int64_t limit = native_has_arg(call, index) ? call->args[index].as.i : 0;
    *limit_out = limit == 0 ? SIZE_MAX : (size_t)limit;
    if (limit >= 0) return true;
    (void)native_fail(call, CY_ERR(VALUE), "%s: limit must be 0 or more, not %lld", native, (long long)limit);
    return false;
}

/* Columns of a table repeat: short parts that were made before, by a hash of their bytes. What is here is held by the
 * list in the making. */
enum { NATIVE_TEXT_RECENT = 2048, NATIVE_TEXT_RECENT_BYTES = 16, NATIVE_TEXT_RECENT_MIN = 256 };
struct native_text_recent {
    cy_value made[NATIVE_TEXT_RECENT];
};

static uint32_t native_text_recent_slot(cy_bytes part)
{
    uint64_t a = 0, b = 0;
    memcpy(&a, part.data, cy_min_size(part.count, 8));
    if (part.count > 8) memcpy(&b, part.data + 8, part.count - 8);
    return (uint32_t)(((a ^ (b + part.count) * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu) >> 40) %
           NATIVE_TEXT_RECENT;
}

static cy_err native_text_put_recent(struct native_call *call, struct native_text_recent *recent,
                                     cy_value *place, cy_bytes text, size_t begin, size_t end)
{
    if (end - begin > NATIVE_TEXT_RECENT_BYTES) return native_text_put(call, place, text, begin, end);
    cy_bytes part = cy_bytes_slice(text, begin, end);
    cy_value *made = &recent->made[native_text_recent_slot(part)];
    if (made->tag == TAG_STR && cy_bytes_equal(string_bytes(*made), part)) {
        *place = value_ref(*made);
        return CY_OK;
    }
    CY_TRY(native_text_put(call, place, text, begin, end));
    *made = *place;
    return CY_OK;
}

/* Split between two turns. */
struct native_text_splitting {
    struct native_text_places places;
    cy_value list; /* owned, nil until all places are known */
    size_t index;  /* of the part made next */
    size_t from;
};

static void native_text_splitting_drop(struct vm *vm, void *state)
{
    struct native_text_splitting *splitting = state;
    native_text_places_drop(vm, &splitting->places);
    value_unref(vm, splitting->list);
}

/* The parts between places, each separator of `separator_bytes`: all, or until the turn is over. */
static cy_err native_text_cut_at(struct native_call *call, cy_bytes text,
                                 struct native_text_splitting *splitting, size_t separator_bytes)
{
    const struct native_text_places *places = &splitting->places;
    cy_value *parts = (cy_value *)list_values(splitting->list); /* nobody else has it yet */
    struct native_text_recent recent;
    bool many = places->count - splitting->index >= NATIVE_TEXT_RECENT_MIN;
    if (many) memset(&recent, 0, sizeof recent);
    while (splitting->index <= places->count) {
        size_t i = splitting->index++, end = i < places->count ? places->items[i] : text.count;
        CY_TRY(many ? native_text_put_recent(call, &recent, &parts[i], text, splitting->from, end)
                    : native_text_put(call, &parts[i], text, splitting->from, end));
        splitting->from = end + separator_bytes;
        if (splitting->index % NATIVE_TEXT_PIECE_ITEMS != 0) continue;
        native_charge(call, NATIVE_TEXT_PIECE_ITEMS / 2);
        if (native_turn_over(call)) return CY_OK;
    }
    return CY_OK;
}

enum native_outcome native_text_split(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), separator = native_text_arg(call, 1);
    size_t limit;
    if (separator.count == 0) return native_fail(call, CY_ERR(VALUE), "text.split: the separator is empty");
    if (!native_text_limit(call, 2, "text.split", &limit)) return NATIVE_FAIL;
    struct native_text_splitting splitting;
    struct native_text_places *places = &splitting.places;
    cy_value *parts;
    cy_err err = CY_OK;
    if (native_resume(call, &splitting, sizeof splitting))
        native_text_places_moved(places);
    else {
        native_text_places_init(call, places);
        splitting.list = value_nil();
        splitting.index = splitting.from = 0;
    }
    if (!places->complete)
        err = native_text_find_places(call, text, separator, limit == SIZE_MAX ? limit : limit - 1, places);
    if (!cy_failed(err) && places->complete && splitting.list.tag == TAG_NIL)
        err = list_new_values(call->vm, places->count + 1, &splitting.list, &parts);
    if (!cy_failed(err) && places->complete)
        err = native_text_cut_at(call, text, &splitting, separator.count);
    if (!cy_failed(err) && (!places->complete || splitting.index <= places->count))
        return native_pause(call, &splitting, sizeof splitting, native_text_splitting_drop, "text.split");
    native_text_places_fini(places);
    if (!cy_failed(err)) return native_return(call, splitting.list);
    value_unref(call->vm, splitting.list);
    return native_fail_reason(call, err, "text.split");
}

enum native_outcome native_text_split_once(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), separator = native_text_arg(call, 1);
    if (separator.count == 0)
        return native_fail(call, CY_ERR(VALUE), "text.split_once: the separator is empty");
    native_text_charge(call, text.count);
    size_t at = native_text_index(text, separator, 0);
    if (at == SIZE_MAX) return native_return(call, value_nil());
    cy_value parts, *places;
    cy_err err = list_new_values(call->vm, 2, &parts, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.split_once");
    err = native_text_put(call, &places[0], text, 0, at);
    if (!cy_failed(err)) err = native_text_put(call, &places[1], text, at + separator.count, text.count);
    if (!cy_failed(err)) return native_return(call, parts);
    value_unref(call->vm, parts);
    return native_fail_reason(call, err, "text.split_once");
}

/* The next line of `text` at `*at`, which moves behind its end; false past the last. */
static bool native_text_next_line(cy_bytes text, size_t *at, size_t *begin_out, size_t *end_out)
{
    if (*at >= text.count) return false;
    size_t end = *at + cy_bytes_find(cy_bytes_skip(text, *at), '\n');
    *begin_out = *at;
    *at = end + 1;
    *end_out = end < text.count && end > *begin_out && text.data[end - 1] == '\r' ? end - 1 : end;
    return true;
}

/* The next run of what is no white space. */
static bool native_text_next_word(cy_bytes text, size_t *at, size_t *begin_out, size_t *end_out)
{
    bool inside = false;
    while (*at < text.count) {
        uint32_t code_point;
        size_t length;
        bool space = text_decode(cy_bytes_skip(text, *at), &code_point, &length) && text_is_space(code_point);
        if (space && inside) break;
        if (!space && !inside) *begin_out = *at;
        inside = inside || !space;
        *at += length;
    }
    *end_out = *at;
    return inside;
}

static enum native_outcome native_text_walk(struct native_call *call, const char *native,
                                            bool (*next)(cy_bytes, size_t *, size_t *, size_t *))
{
    cy_bytes text = native_text_arg(call, 0);
    size_t at = 0, count = 0, begin, end;
    while (next(text, &at, &begin, &end)) count++;
    native_text_charge(call, 2 * text.count);
    cy_value parts, *places;
    cy_err err = list_new_values(call->vm, count, &parts, &places);
    if (cy_failed(err)) return native_fail_reason(call, err, native);
    at = 0;
    for (size_t i = 0; i < count && !cy_failed(err) && next(text, &at, &begin, &end); i++)
        err = native_text_put(call, &places[i], text, begin, end);
    if (!cy_failed(err)) return native_return(call, parts);
    value_unref(call->vm, parts);
    return native_fail_reason(call, err, native);
}
enum native_outcome native_text_lines(struct native_call *call)
{
    return native_text_walk(call, "text.lines", native_text_next_line);
}
enum native_outcome native_text_words(struct native_call *call)
{
    return native_text_walk(call, "text.words", native_text_next_word);
}

/* A str that is filled over several turns. */
struct native_text_filling {
    cy_value made; /* owned, nil while its size is not known */
    size_t bytes;  /* its size, as far as it is known */
    size_t filled;
    size_t index; /* of the part that comes next */
    size_t part_at;
};

static void native_text_filling_drop(struct vm *vm, void *state)
{
    value_unref(vm, ((struct native_text_filling *)state)->made);
}
static uint8_t *native_text_filling_to(const struct native_text_filling *filling)
{
    return (uint8_t *)string_bytes(filling->made).data + filling->filled; /* nobody else has it yet */
}

/* Copies as much of `from`, from part_at on, as a piece holds; true when that was the rest. */
static bool native_text_fill(struct native_text_filling *filling, cy_bytes from)
{
    size_t count = cy_min_size(from.count - filling->part_at, NATIVE_TEXT_PIECE_BYTES);
    if (count) memcpy(native_text_filling_to(filling), from.data + filling->part_at, count);
    filling->filled += count;
    filling->part_at += count;
    if (filling->part_at < from.count) return false;
    filling->part_at = 0;
    return true;
}

/* Adds up the sizes of parts. False, failed, when one is no str. */
static bool native_text_join_measure(struct native_call *call, size_t separator_bytes,
                                     struct native_text_filling *filling)
{
    cy_value parts = call->args[0];
    size_t count = list_count(parts);
    while (filling->index < count) {
        size_t i = filling->index++;
        cy_value part = list_get(parts, i);
        if (part.tag != TAG_STR) {
            (void)native_fail(call, CY_ERR(TYPE), "text.join: item %zu must be str, not %s", i,
                              value_kind_text(call->vm, part));
            return false;
        }
        filling->bytes += string_bytes(part).count +
                          (i > 0 ? separator_bytes : 0); /* below 2^28 items of 2^30 bytes: fits */
        if (filling->index % NATIVE_TEXT_PIECE_ITEMS != 0) continue;
        native_charge(call, NATIVE_TEXT_PIECE_ITEMS / 16);
        if (native_turn_over(call)) return true;
    }
    return true;
}

/* Parts and separators, in turn: index 2i is part i, 2i + 1 the separator behind it. True when all are there. */
static bool native_text_join_fill(struct native_call *call, cy_bytes separator,
                                  struct native_text_filling *filling)
{
    size_t count = list_count(call->args[0]), charged = filling->filled;
    for (uint32_t steps = 1; filling->index + 1 < 2 * count; steps++) {
        bool is_part = filling->index % 2 == 0;
        cy_bytes from = is_part ? string_bytes(list_get(call->args[0], filling->index / 2)) : separator;
        if (native_text_fill(filling, from)) filling->index++;
        if (steps % NATIVE_TEXT_PIECE_ITEMS != 0 && filling->part_at == 0) continue;
        native_text_charge(call, filling->filled - charged + 8 * NATIVE_TEXT_PIECE_ITEMS);
        charged = filling->filled;
        if (native_turn_over(call)) return false;
    }
    return true;
}

enum native_outcome native_text_join(struct native_call *call)
{
    cy_bytes separator = native_has_arg(call, 1) ? native_text_arg(call, 1) : CY_BYTES_NONE;
    struct native_text_filling filling;
    uint8_t *to;
    if (!native_resume(call, &filling, sizeof filling))
        filling = (struct native_text_filling){.made = value_nil()};
    if (filling.made.tag == TAG_NIL) {
        if (!native_text_join_measure(call, separator.count, &filling)) return NATIVE_FAIL;
        if (filling.index < list_count(call->args[0]))
            return native_pause(call, &filling, sizeof filling, native_text_filling_drop, "text.join");
        cy_err err = string_new_blank(call->vm, filling.bytes, &filling.made, &to);
        if (cy_failed(err)) return native_fail_reason(call, err, "text.join");
        filling.index = 0;
    }
    if (!native_text_join_fill(call, separator, &filling))
        return native_pause(call, &filling, sizeof filling, native_text_filling_drop, "text.join");
    CHECK(filling.filled == filling.bytes);
    return native_return(call, filling.made);
}

/* Whether the code point at the start of `at` is one of `letters`; `*length_out` is its length. */
static bool native_text_starts_in(cy_bytes at, cy_bytes letters, size_t *length_out)
{
    uint32_t code_point;
    return text_decode(at, &code_point, length_out) &&
           native_text_index(letters, cy_bytes_slice(at, 0, *length_out), 0) != SIZE_MAX;
}

/* Without the code points of args[1], or spaces, tabs, CR and LF, at the sides asked for. */
static enum native_outcome native_text_cut(struct native_call *call, bool start, bool end, const char *native)
{
    cy_bytes text = native_text_arg(call, 0);
    cy_bytes letters = native_has_arg(call, 1) ? native_text_arg(call, 1) : CY_BYTES(" \t\r\n");
    size_t length;
    uint64_t looked = 0;
    while (start && text.count > 0 && looked <= LIMIT_WALK_STEPS) {
        if (!native_text_starts_in(text, letters, &length)) break;
        text = cy_bytes_skip(text, length);
        looked += 1 + letters.count / 16;
    }
    while (end && text.count > 0 && looked <= LIMIT_WALK_STEPS) {
        size_t at = text.count - 1;
        while (at > 0 && text.count - at < 4 && (text.data[at] & 0xc0) == 0x80) at--;
        if (!native_text_starts_in(cy_bytes_skip(text, at), letters, &length) || at + length != text.count)
            break;
        text.count = at;
        looked += 1 + letters.count / 16;
    }
    native_charge(call, looked / 16);
    if (looked > LIMIT_WALK_STEPS) return native_fail_reason(call, CY_ERR(LIMIT), native);
    return native_text_return(call, text, native);
}
enum native_outcome native_text_trim(struct native_call *call)
{
    return native_text_cut(call, true, true, "text.trim");
}
enum native_outcome native_text_trim_start(struct native_call *call)
{
    return native_text_cut(call, true, false, "text.trim_start");
}
enum native_outcome native_text_trim_end(struct native_call *call)
{
    return native_text_cut(call, false, true, "text.trim_end");
}

enum native_outcome native_text_remove_prefix(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), start = native_text_arg(call, 1);
    bool there = cy_bytes_start_with(text, start);
    return native_text_return(call, there ? cy_bytes_skip(text, start.count) : text, "text.remove_prefix");
}

enum native_outcome native_text_remove_suffix(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), end = native_text_arg(call, 1);
    bool there = text.count >= end.count && cy_bytes_equal(cy_bytes_skip(text, text.count - end.count), end);
    return native_text_return(call, cy_bytes_slice(text, 0, text.count - (there ? end.count : 0)),
                              "text.remove_suffix");
}

/* Replace between two turns. */
struct native_text_replacing {
    struct native_text_places places;
    struct native_text_filling filling;
    size_t from; /* of the text, behind what is written */
};

static void native_text_replacing_drop(struct vm *vm, void *state)
{
    struct native_text_replacing *replacing = state;
    native_text_places_drop(vm, &replacing->places);
    native_text_filling_drop(vm, &replacing->filling);
}

static cy_err native_text_replace_size(cy_bytes text, size_t old_bytes, cy_bytes with,
                                       const struct native_text_places *places, size_t *bytes_out)
{
    if (cy_mul_overflows(places->count, with.count, bytes_out) ||
        cy_add_overflows(*bytes_out, text.count - places->count * old_bytes, bytes_out))
        return CY_ERR(TOO_LARGE);
    return CY_OK;
}

/* Index 2i is the text before place i, 2i + 1 what stands there now; the last is the rest. True when all is there. */
static bool native_text_replace_fill(struct native_call *call, cy_bytes text, size_t old_bytes, cy_bytes with,
                                     struct native_text_replacing *replacing)
{
    const struct native_text_places *places = &replacing->places;
    struct native_text_filling *filling = &replacing->filling;
    size_t charged = filling->filled;
    for (uint32_t steps = 1; filling->index <= 2 * places->count; steps++) {
        size_t place = filling->index / 2, end = place < places->count ? places->items[place] : text.count;
        bool before = filling->index % 2 == 0;
        if (native_text_fill(filling, before ? cy_bytes_slice(text, replacing->from, end) : with)) {
            filling->index++;
            if (!before) replacing->from = places->items[place] + old_bytes;
        }
        if (steps % NATIVE_TEXT_PIECE_ITEMS != 0 && filling->part_at == 0) continue;
        native_text_charge(call, filling->filled - charged + 8 * NATIVE_TEXT_PIECE_ITEMS);
        charged = filling->filled;
        if (native_turn_over(call)) return filling->index > 2 * places->count;
    }
    return true;
}

enum native_outcome native_text_replace(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0), old = native_text_arg(call, 1), with = native_text_arg(call, 2);
    size_t limit;
    if (old.count == 0) return native_fail(call, CY_ERR(VALUE), "text.replace: old is empty");
    if (!native_text_limit(call, 3, "text.replace", &limit)) return NATIVE_FAIL;
    struct native_text_replacing replacing;
    struct native_text_places *places = &replacing.places;
    struct native_text_filling *filling = &replacing.filling;
    uint8_t *to;
    cy_err err = CY_OK;
    if (native_resume(call, &replacing, sizeof replacing))
        native_text_places_moved(places);
    else {
        native_text_places_init(call, places);
        *filling = (struct native_text_filling){.made = value_nil()};
        replacing.from = 0;
    }
    if (!places->complete) err = native_text_find_places(call, text, old, limit, places);
    bool complete = !cy_failed(err) && places->complete, none = complete && places->count == 0;
    if (complete && !none && filling->made.tag == TAG_NIL) {
        err = native_text_replace_size(text, old.count, with, places, &filling->bytes);
        if (!cy_failed(err)) err = string_new_blank(call->vm, filling->bytes, &filling->made, &to);
    }
    bool done = cy_failed(err) || none ||
                (complete && native_text_replace_fill(call, text, old.count, with, &replacing));
    if (!done)
        return native_pause(call, &replacing, sizeof replacing, native_text_replacing_drop, "text.replace");
    native_text_places_fini(places);
    if (cy_failed(err)) return native_fail_reason(call, err, "text.replace");
    return native_return(call, none ? native_take_arg(call, 0) : filling->made);
}

/* Copies what is there already behind itself, which begins with a piece of any phase of the text. */
static void native_text_repeat_more(struct native_text_filling *filling, cy_bytes text)
{
    uint8_t *to = native_text_filling_to(filling);
    bool first = filling->filled < text.count; /* a long text takes several pieces */
    size_t phase = filling->filled % text.count;
    size_t count = first ? text.count - phase : filling->filled - phase;
    count = cy_min_size(cy_min_size(count, filling->bytes - filling->filled), NATIVE_TEXT_PIECE_BYTES);
    memcpy(to, (first ? text.data : to - filling->filled) + phase, count);
    filling->filled += count;
}

enum native_outcome native_text_repeat(struct native_call *call)
{
    cy_bytes text = native_text_arg(call, 0);
    int64_t times = call->args[1].as.i;
    struct native_text_filling filling;
    uint8_t *to;
    if (times < 0)
        return native_fail(call, CY_ERR(VALUE), "text.repeat: times must be 0 or more, not %lld",
                           (long long)times);
    if (!native_resume(call, &filling, sizeof filling)) {
        filling = (struct native_text_filling){.made = value_nil()};
        cy_err err = cy_mul_overflows(text.count, (size_t)times, &filling.bytes)
                         ? CY_ERR(TOO_LARGE)
                         : string_new_blank(call->vm, filling.bytes, &filling.made, &to);
        if (cy_failed(err)) return native_fail_reason(call, err, "text.repeat");
    }
    while (filling.filled < filling.bytes) {
        size_t before = filling.filled;
        native_text_repeat_more(&filling, text);
        native_text_charge(call, filling.filled - before);
        if (filling.filled - before == NATIVE_TEXT_PIECE_BYTES && filling.filled < filling.bytes &&
            native_turn_over(call))
            return native_pause(call, &filling, sizeof filling, native_text_filling_drop, "text.repeat");
    }
    return native_return(call, filling.made);
}
