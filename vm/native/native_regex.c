/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_regex.c: module regex: the natives over regex.h.
 *
 * In:   a compiled pattern (opaque) or its text, which is then compiled for this one call. Out: maps, lists, texts.
 * Invariant: memory of patterns and matches comes from the VM's heap; every call charges the budget by the time it
 *       took.
 * Not here: replacement texts (native_regex_replace.c), how pcre2 is bounded (regex.c).
 */
#include "vm/native/native_regex.h"
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/heap.h"
#include "vm/run/vm.h"

/* -- memory of the VM --------------------------------------------------------------------------------------- */

/* heap_free wants to be told sizes: each block begins with its own. */
enum { NATIVE_REGEX_HEAD_BYTES = 16 };

static void *native_regex_alloc(size_t bytes, void *context)
{
    size_t all;
    if (cy_add_overflows(bytes, NATIVE_REGEX_HEAD_BYTES, &all)) return NULL;
    uint8_t *block = heap_alloc(context, all);
    if (!block) return NULL;
    memcpy(block, &all, sizeof all);
    return block + NATIVE_REGEX_HEAD_BYTES;
}

static void native_regex_free(void *memory, void *context)
{
    if (!memory) return;
    uint8_t *block = (uint8_t *)memory - NATIVE_REGEX_HEAD_BYTES;
    size_t all;
    memcpy(&all, block, sizeof all);
    heap_free(context, block, all);
}

static void native_regex_free_payload(struct vm *vm, void *payload)
{
    struct regex *regex = payload;
    (void)vm;
    regex_free(&regex);
}

static const struct opaque_type native_regex_type = {.name = "regex", .free = native_regex_free_payload};

/* -- patterns ----------------------------------------------------------------------------------------------- */

static bool native_regex_failed(struct native_call *call, const char *native, cy_err err)
{
    native_fail(call, err, "%s: %s", native, cy_err_text(err, vm_korean(call->vm)));
    return false;
}

static bool native_regex_make(struct native_call *call, const char *native, cy_bytes pattern,
                              const struct regex_options *options, struct regex **regex_out)
{
    struct regex_memory memory = {native_regex_alloc, native_regex_free, call->vm};
    struct regex_fault fault;
    cy_err err = regex_new(pattern, options, &memory, regex_out, &fault);
    native_charge(call, 20 + cy_min_size(pattern.count, LIMIT_REGEX_PATTERN_BYTES));
    if (!cy_failed(err)) return true;
    if (cy_is(err, CY_ERR_BAD_FORMAT))
        native_fail(call, err, "%s: the pattern is wrong at byte %zu: %s", native, fault.offset,
                    fault.message);
    else if (cy_is(err, CY_ERR_LIMIT))
        native_fail(call, err, "%s: a pattern of more than %d bytes (REGEX_PATTERN_BYTES)", native,
                    LIMIT_REGEX_PATTERN_BYTES);
    else
        native_regex_failed(call, native, err);
    return false;
}

bool native_regex_begin(struct native_call *call, const char *native, struct native_regex_use *use)
{
    static const struct regex_options plain = {0};
    cy_value pattern = call->args[0];
    *use = (struct native_regex_use){.native = native};
    if (pattern.tag == TAG_STR) {
        if (!native_regex_make(call, native, string_bytes(pattern), &plain, &use->owned)) return false;
        use->regex = use->owned;
    } else {
        use->regex = opaque_payload(pattern, &native_regex_type);
        if (!use->regex) {
            native_fail(call, CY_ERR(TYPE), "%s: pattern must be a regex or its text, not %s", native,
                        value_kind_text(call->vm, pattern));
            return false;
        }
    }
    cy_err err = regex_search_init(&use->search, use->regex, string_bytes(call->args[1]));
    if (!cy_failed(err)) return true;
    regex_free(&use->owned);
    return native_regex_failed(call, native, err);
}

/* About a step for 20 ns, as those of the interpreter: who searches long yields soon, and its allowance is looked
 * at. */
enum { NATIVE_REGEX_NS_PER_STEP = 20 };

void native_regex_end(struct native_call *call, struct native_regex_use *use)
{
    native_charge(call, regex_search_elapsed_ns(&use->search) / NATIVE_REGEX_NS_PER_STEP);
    regex_search_fini(&use->search);
    regex_free(&use->owned);
}

bool native_regex_next(struct native_call *call, struct native_regex_use *use, size_t from,
                       enum regex_mode mode, bool *found_out)
{
    enum regex_bound bound;
    cy_err err = regex_search_next(&use->search, from, mode, found_out, &bound);
    if (!cy_failed(err)) return true;
    switch (bound) {
    case REGEX_BOUND_STEPS:
        native_fail(call, err, "%s: the pattern backtracks too much on this text (REGEX_MATCH_STEPS: %d)",
                    use->native, LIMIT_REGEX_MATCH_STEPS);
        return false;
    case REGEX_BOUND_DEPTH:
        native_fail(call, err, "%s: too deep (REGEX_DEPTH: %d)", use->native, LIMIT_REGEX_DEPTH);
        return false;
    case REGEX_BOUND_HEAP:
        native_fail(call, err, "%s: too much memory for backtracking (REGEX_HEAP_KIB: %d)", use->native,
                    LIMIT_REGEX_HEAP_KIB);
        return false;
    case REGEX_BOUND_TIME:
        native_fail(call, err, "%s: the pattern takes too long on this text (REGEX_CALL_MS: %d)", use->native,
                    LIMIT_REGEX_CALL_MS);
        return false;
    default: return native_regex_failed(call, use->native, err);
    }
}

bool native_regex_each(struct native_call *call, struct native_regex_use *use, struct native_regex_walk *walk,
                       bool *found_out)
{
    cy_bytes text = use->search.text;
    *found_out = false;
    while (walk->from <= text.count) {
        enum regex_mode mode = walk->after_empty ? REGEX_NOT_EMPTY_HERE : REGEX_FIND;
        if (!native_regex_next(call, use, walk->from, mode, found_out)) return false;
        if (*found_out) break;
        if (!walk->after_empty) return true;
        /* Behind an empty match: nothing longer begins there, so go on one letter further. */
        walk->after_empty = false;
        do walk->from++;
        while (!regex_is_boundary(text, walk->from));
    }
    if (!*found_out) return true;
    CHECK(regex_search_group(&use->search, 0, &walk->begin, &walk->end));
    walk->after_empty = walk->begin == walk->end;
    walk->from = walk->end;
    return true;
}

enum native_outcome native_regex_compile(struct native_call *call)
{
    static const struct option_row rows[] = {
        {.name = "ignore_case", .kind = OPTION_BOOL}, {.name = "multi_line", .kind = OPTION_BOOL},
        {.name = "dot_all", .kind = OPTION_BOOL},     {.name = "extended", .kind = OPTION_BOOL},
        {.name = "unicode", .kind = OPTION_BOOL},
    };
    cy_value given[CY_COUNT_OF(rows)], value;
    struct regex *regex;
    if (!option_read(call, 1, "regex.compile", rows, CY_COUNT_OF(rows), given)) return NATIVE_FAIL;
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++)
        if (given[i].tag == TAG_NIL) given[i] = value_bool(false);
    struct regex_options options = {given[0].as.b, given[1].as.b, given[2].as.b, given[3].as.b,
                                    given[4].as.b};
    if (!native_regex_make(call, "regex.compile", string_bytes(call->args[0]), &options, &regex))
        return NATIVE_FAIL;
    cy_err err = opaque_new(call->vm, &native_regex_type, regex, &value);
    if (cy_failed(err)) return native_regex_failed(call, "regex.compile", err), NATIVE_FAIL;
    return native_return(call, value);
}

/* -- matches as values -------------------------------------------------------------------------------------- */

/* {start, end, text} of a group; nil when it took no part. */
static cy_err native_regex_span(struct native_call *call, const struct native_regex_use *use, uint32_t group,
                                cy_value *owned_out)
{
    size_t begin, end;
    cy_value map, text;
    *owned_out = value_nil();
    if (!regex_search_group(&use->search, group, &begin, &end)) return CY_OK;
    CY_TRY(map_new(call->vm, 3, &map));
    cy_err err = map_set_text(call->vm, &map, CY_BYTES("start"), value_int((int64_t)begin));
    if (!cy_failed(err)) err = map_set_text(call->vm, &map, CY_BYTES("end"), value_int((int64_t)end));
    if (!cy_failed(err)) err = string_new(call->vm, cy_bytes_slice(use->search.text, begin, end), &text);
    if (!cy_failed(err)) err = map_set_text(call->vm, &map, CY_BYTES("text"), text);
    if (cy_failed(err))
        value_unref(call->vm, map);
    else
        *owned_out = map;
    return err;
}

static cy_err native_regex_groups(struct native_call *call, const struct native_regex_use *use,
                                  cy_value *owned_out)
{
    cy_value list, span;
    uint32_t count = regex_group_count(use->regex);
    CY_TRY(list_new(call->vm, count + 1, &list));
    for (uint32_t group = 0; group <= count; group++) {
        cy_err err = native_regex_span(call, use, group, &span);
        if (!cy_failed(err)) err = list_append(call->vm, &list, span);
        if (cy_failed(err)) {
            value_unref(call->vm, list);
            return err;
        }
    }
    *owned_out = list;
    return CY_OK;
}

/* Names and the same spans; where a pattern uses a name twice, the group that took part. */
static cy_err native_regex_names(struct native_call *call, const struct native_regex_use *use,
                                 cy_value groups, cy_value *owned_out)
{
    cy_value map, known;
    cy_bytes name;
    uint32_t group;
    CY_TRY(map_new(call->vm, 0, &map));
    for (uint32_t i = 0; regex_name_at(use->regex, i, &name, &group); i++) {
        cy_value span = list_get(groups, group);
        if (map_get_text(call->vm, map, name, &known) && (value_is_nil(span) || !value_is_nil(known)))
            continue;
        cy_err err = map_set_text(call->vm, &map, name, value_ref(span));
        if (cy_failed(err)) {
            value_unref(call->vm, map);
            return err;
        }
    }
    *owned_out = map;
    return CY_OK;
}

/* {start, end, text, groups, names}: the span of the whole match, and the parts. */
static cy_err native_regex_match_map(struct native_call *call, const struct native_regex_use *use,
                                     cy_value *owned_out)
{
    cy_value map, groups, names;
    CY_TRY(native_regex_span(call, use, 0, &map));
    cy_err err = native_regex_groups(call, use, &groups);
    if (!cy_failed(err)) {
        err = native_regex_names(call, use, groups, &names);
        if (cy_failed(err)) {
            value_unref(call->vm, groups);
        } else {
            err = map_set_text(call->vm, &map, CY_BYTES("groups"), groups);
            if (cy_failed(err))
                value_unref(call->vm, names);
            else
                err = map_set_text(call->vm, &map, CY_BYTES("names"), names);
        }
    }
    if (cy_failed(err))
        value_unref(call->vm, map);
    else
        *owned_out = map;
    return err;
}

/* -- natives ------------------------------------------------------------------------------------------------ */

enum native_outcome native_regex_test(struct native_call *call)
{
    struct native_regex_use use;
    bool found;
    if (!native_regex_begin(call, "regex.test", &use)) return NATIVE_FAIL;
    bool good = native_regex_next(call, &use, 0, REGEX_FIND, &found);
    native_regex_end(call, &use);
    return good ? native_return(call, value_bool(found)) : NATIVE_FAIL;
}

static enum native_outcome native_regex_one(struct native_call *call, const char *native, size_t from,
                                            enum regex_mode mode)
{
    struct native_regex_use use;
    cy_value result = value_nil();
    bool found;
    if (!native_regex_begin(call, native, &use)) return NATIVE_FAIL;
    bool good = native_regex_next(call, &use, from, mode, &found);
    cy_err err = good && found ? native_regex_match_map(call, &use, &result) : CY_OK;
    native_regex_end(call, &use);
    if (cy_failed(err)) good = native_regex_failed(call, native, err);
    return good ? native_return(call, result) : NATIVE_FAIL;
}

enum native_outcome native_regex_match(struct native_call *call)
{
    return native_regex_one(call, "regex.match", 0, REGEX_WHOLE);
}

enum native_outcome native_regex_find(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[1]);
    int64_t from = native_has_arg(call, 2) ? call->args[2].as.i : 0;
    if (from < 0 || (uint64_t)from > text.count || !regex_is_boundary(text, (size_t)from))
        return native_fail(call, CY_ERR(INDEX), "regex.find: from %lld is outside 0..%zu, or inside a letter",
                           (long long)from, text.count);
    return native_regex_one(call, "regex.find", (size_t)from, REGEX_FIND);
}

/* The optional count at `index`; INT64_MAX when it is absent. */
bool native_regex_count(struct native_call *call, uint32_t index, const char *native, const char *name,
                        int64_t *count_out)
{
    *count_out = native_has_arg(call, index) ? call->args[index].as.i : INT64_MAX;
    if (*count_out > 0) return true;
    native_fail(call, CY_ERR(VALUE), "%s: %s must be 1 or more, not %lld", native, name,
                (long long)*count_out);
    return false;
}

enum native_outcome native_regex_find_all(struct native_call *call)
{
    struct native_regex_use use;
    struct native_regex_walk walk = {0};
    int64_t count;
    cy_value list, match;
    bool found, good = true;
    if (!native_regex_count(call, 2, "regex.find_all", "count", &count)) return NATIVE_FAIL;
    if (!native_regex_begin(call, "regex.find_all", &use)) return NATIVE_FAIL;
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) list = value_nil();
    while (!cy_failed(err) && count-- > 0) {
        good = native_regex_each(call, &use, &walk, &found);
        if (!good || !found) break;
        err = native_regex_match_map(call, &use, &match);
        if (!cy_failed(err)) err = list_append(call->vm, &list, match);
    }
    native_regex_end(call, &use);
    if (good && !cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    if (cy_failed(err)) native_regex_failed(call, "regex.find_all", err);
    return NATIVE_FAIL;
}

enum native_outcome native_regex_split(struct native_call *call)
{
    struct native_regex_use use;
    struct native_regex_walk walk = {0};
    cy_bytes text = string_bytes(call->args[1]);
    int64_t count;
    size_t part_begin = 0;
    cy_value list, part;
    bool found = true, good = true;
    if (!native_regex_count(call, 2, "regex.split", "count", &count)) return NATIVE_FAIL;
    if (!native_regex_begin(call, "regex.split", &use)) return NATIVE_FAIL;
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) list = value_nil();
    while (!cy_failed(err) && found) {
        found = false;
        if (--count > 0) good = native_regex_each(call, &use, &walk, &found);
        if (!good) break;
        /* An empty match at either end separates nothing. */
        if (found && walk.begin == walk.end && (walk.begin == 0 || walk.end == text.count)) {
            count++;
            continue;
        }
        err = string_new(call->vm, cy_bytes_slice(text, part_begin, found ? walk.begin : text.count), &part);
        if (!cy_failed(err)) err = list_append(call->vm, &list, part);
        part_begin = walk.end;
    }
    native_regex_end(call, &use);
    if (good && !cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    if (cy_failed(err)) native_regex_failed(call, "regex.split", err);
    return NATIVE_FAIL;
}
