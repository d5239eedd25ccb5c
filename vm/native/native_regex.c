/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_regex.c: module regex: the natives over regex.h.
 *
 * In:   a compiled pattern (opaque) or its text, which is then compiled for this one call. Out: maps, lists, texts.
 * Invariant: memory of patterns and matches comes from the VM's heap; every call charges the budget by the time it
 *       took, and pauses when its turn is over, between matches and within one.
 * Not here: replacement texts (native_regex_replace.c), how pcre2 is bounded (regex.c).
 */
#include "vm/native/native_regex.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"
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
    native_fail_reason(call, err, native);
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

/* -- one call ----------------------------------------------------------------------------------------------- */

static bool native_regex_begin(struct native_call *call, struct native_regex_work *work)
{
    static const struct regex_options plain = {0};
    cy_value pattern = call->args[0];
    if (pattern.tag == TAG_STR) {
        if (!native_regex_make(call, work->native, string_bytes(pattern), &plain, &work->owned)) return false;
        work->regex = work->owned;
    } else {
        work->regex = opaque_payload(pattern, &native_regex_type);
        if (!work->regex) {
            native_fail(call, CY_ERR(TYPE), "%s: pattern must be a regex or its text, not %s", work->native,
                        value_kind_text(call->vm, pattern));
            return false;
        }
    }
    cy_err err = regex_search_init(&work->search, work->regex, string_bytes(call->args[1]));
    if (!cy_failed(err)) return true;
    regex_free(&work->owned);
    return native_regex_failed(call, work->native, err);
}

static void native_regex_fini(struct vm *vm, struct native_regex_work *work)
{
    regex_search_fini(&work->search);
    regex_free(&work->owned);
    value_unref(vm, work->result);
    heap_free(vm, work->out, work->out_capacity);
}
static void native_regex_free_work(struct vm *vm, void *work)
{
    native_regex_fini(vm, work);
    heap_free(vm, work, sizeof(struct native_regex_work));
}

/* Moves it to where it can stay. NULL: failed. */
static struct native_regex_work *native_regex_keep(struct native_call *call,
                                                   const struct native_regex_work *here)
{
    struct native_regex_work *work = heap_alloc(call->vm, sizeof *work);
    if (!work) {
        native_regex_failed(call, here->native, CY_ERR(NO_MEMORY));
        return NULL;
    }
    *work = *here;
    if (call->fiber) native_keep_work(call, work, native_regex_free_work);
    return work;
}

/* About a step for 20 ns, as those of the interpreter: who searches long yields soon, and its allowance is looked
 * at. */
enum { NATIVE_REGEX_NS_PER_STEP = 20 };

enum native_outcome native_regex_run(struct native_call *call, const char *native, int64_t left,
                                     native_regex_body body)
{
    struct native_regex_work here, *work = call->fiber ? native_work(call) : NULL;
    if (work) {
        regex_search_begin_piece(&work->search);
    } else {
        here = (struct native_regex_work){.native = native, .left = left, .result = value_nil()};
        if (!native_regex_begin(call, &here)) return NATIVE_FAIL;
        work = &here;
    }
    enum native_outcome outcome;
    for (;;) {
        outcome = body(call, work);
        native_charge(call, regex_search_end_piece(&work->search) / NATIVE_REGEX_NS_PER_STEP);
        if (outcome != NATIVE_AGAIN) break;
        struct native_regex_work *kept = work == &here ? native_regex_keep(call, work) : work;
        outcome = NATIVE_FAIL;
        if (!kept) break;
        work = kept;
        if (native_turn_over(call)) return NATIVE_AGAIN;
        regex_search_begin_piece(&work->search);
    }
    if (work == &here)
        native_regex_fini(call->vm, work);
    else if (!call->fiber)
        native_regex_free_work(call->vm, work);
    return outcome;
}

static enum native_regex_step native_regex_bound(struct native_call *call, const char *native, cy_err err,
                                                 enum regex_bound bound)
{
    switch (bound) {
    case REGEX_BOUND_STEPS:
        native_fail(call, err, "%s: the pattern backtracks too much on this text (REGEX_MATCH_STEPS: %d)",
                    native, LIMIT_REGEX_MATCH_STEPS);
        break;
    case REGEX_BOUND_DEPTH:
        native_fail(call, err, "%s: too deep (REGEX_DEPTH: %d)", native, LIMIT_REGEX_DEPTH);
        break;
    case REGEX_BOUND_HEAP:
        native_fail(call, err, "%s: too much memory for backtracking (REGEX_HEAP_KIB: %d)", native,
                    LIMIT_REGEX_HEAP_KIB);
        break;
    case REGEX_BOUND_TIME:
        native_fail(call, err, "%s: the pattern takes too long on this text (REGEX_CALL_MS: %d)", native,
                    LIMIT_REGEX_CALL_MS);
        break;
    default: native_regex_failed(call, native, err);
    }
    return NATIVE_REGEX_FAILED;
}

static enum native_regex_step native_regex_next(struct native_call *call, struct native_regex_work *work,
                                                size_t from, enum regex_mode mode)
{
    enum regex_bound bound;
    bool over, found;
    cy_err err = regex_search_step(&work->search, from, mode, &over, &found, &bound);
    if (cy_failed(err)) return native_regex_bound(call, work->native, err, bound);
    if (!over) return NATIVE_REGEX_AGAIN;
    return found ? NATIVE_REGEX_FOUND : NATIVE_REGEX_NONE;
}

enum native_regex_step native_regex_each(struct native_call *call, struct native_regex_work *work)
{
    struct native_regex_walk *walk = &work->walk;
    cy_bytes text = work->search.text;
    while (walk->from <= text.count) {
        enum regex_mode mode = walk->after_empty ? REGEX_NOT_EMPTY_HERE : REGEX_FIND;
        enum native_regex_step step = native_regex_next(call, work, walk->from, mode);
        if (step == NATIVE_REGEX_FOUND) {
            CHECK(regex_search_group(&work->search, 0, &walk->begin, &walk->end));
            walk->after_empty = walk->begin == walk->end;
            walk->from = walk->end;
        }
        if (step != NATIVE_REGEX_NONE || !walk->after_empty) return step;
        /* Behind an empty match: nothing longer begins there, so go on one letter further. */
        walk->after_empty = false;
        do walk->from++;
        while (!regex_is_boundary(text, walk->from));
    }
    return NATIVE_REGEX_NONE;
}

/* What a body returns when there is nothing to return yet. */
static enum native_outcome native_regex_outcome(enum native_regex_step step)
{
    return step == NATIVE_REGEX_AGAIN ? NATIVE_AGAIN : NATIVE_FAIL;
}
static bool native_regex_is_over(enum native_regex_step step)
{
    return step == NATIVE_REGEX_FOUND || step == NATIVE_REGEX_NONE;
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
    cy_err err = opaque_new(call->vm, &native_regex_type, regex, 0, &value);
    if (cy_failed(err)) return native_regex_failed(call, "regex.compile", err), NATIVE_FAIL;
    return native_return(call, value);
}

/* -- matches as values -------------------------------------------------------------------------------------- */

/* {start, end, text} of a group; nil when it took no part. */
static cy_err native_regex_span(struct native_call *call, const struct native_regex_work *work,
                                uint32_t group, cy_value *owned_out)
{
    size_t begin, end;
    cy_value map, text;
    *owned_out = value_nil();
    if (!regex_search_group(&work->search, group, &begin, &end)) return CY_OK;
    CY_TRY(map_new(call->vm, 3, &map));
    cy_err err = map_set_text(call->vm, &map, CY_BYTES("start"), value_int((int64_t)begin));
    if (!cy_failed(err)) err = map_set_text(call->vm, &map, CY_BYTES("end"), value_int((int64_t)end));
    if (!cy_failed(err)) err = string_new(call->vm, cy_bytes_slice(work->search.text, begin, end), &text);
    if (!cy_failed(err)) err = map_set_text(call->vm, &map, CY_BYTES("text"), text);
    if (cy_failed(err))
        value_unref(call->vm, map);
    else
        *owned_out = map;
    return err;
}

static cy_err native_regex_groups(struct native_call *call, const struct native_regex_work *work,
                                  cy_value *owned_out)
{
    cy_value list, span;
    uint32_t count = regex_group_count(work->regex);
    CY_TRY(list_new(call->vm, count + 1, &list));
    for (uint32_t group = 0; group <= count; group++) {
        cy_err err = native_regex_span(call, work, group, &span);
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
static cy_err native_regex_names(struct native_call *call, const struct native_regex_work *work,
                                 cy_value groups, cy_value *owned_out)
{
    cy_value map, known;
    cy_bytes name;
    uint32_t group;
    CY_TRY(map_new(call->vm, 0, &map));
    for (uint32_t i = 0; regex_name_at(work->regex, i, &name, &group); i++) {
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
static cy_err native_regex_match_map(struct native_call *call, const struct native_regex_work *work,
                                     cy_value *owned_out)
{
    cy_value map, groups, names;
    CY_TRY(native_regex_span(call, work, 0, &map));
    cy_err err = native_regex_groups(call, work, &groups);
    if (!cy_failed(err)) {
        err = native_regex_names(call, work, groups, &names);
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

static enum native_outcome native_regex_test_body(struct native_call *call, struct native_regex_work *work)
{
    enum native_regex_step step = native_regex_next(call, work, 0, REGEX_FIND);
    if (!native_regex_is_over(step)) return native_regex_outcome(step);
    return native_return(call, value_bool(step == NATIVE_REGEX_FOUND));
}
enum native_outcome native_regex_test(struct native_call *call)
{
    return native_regex_run(call, "regex.test", 1, native_regex_test_body);
}

static enum native_outcome native_regex_one(struct native_call *call, struct native_regex_work *work,
                                            size_t from, enum regex_mode mode)
{
    cy_value result = value_nil();
    enum native_regex_step step = native_regex_next(call, work, from, mode);
    if (!native_regex_is_over(step)) return native_regex_outcome(step);
    cy_err err = step == NATIVE_REGEX_FOUND ? native_regex_match_map(call, work, &result) : CY_OK;
    if (!cy_failed(err)) return native_return(call, result);
    native_regex_failed(call, work->native, err);
    return NATIVE_FAIL;
}

static enum native_outcome native_regex_match_body(struct native_call *call, struct native_regex_work *work)
{
    return native_regex_one(call, work, 0, REGEX_WHOLE);
}
enum native_outcome native_regex_match(struct native_call *call)
{
    return native_regex_run(call, "regex.match", 1, native_regex_match_body);
}

static int64_t native_regex_from(const struct native_call *call)
{
    return native_has_arg(call, 2) ? call->args[2].as.i : 0;
}
static enum native_outcome native_regex_find_body(struct native_call *call, struct native_regex_work *work)
{
    return native_regex_one(call, work, (size_t)native_regex_from(call), REGEX_FIND);
}
/* A byte that only looks like the inside of a letter, in text that is not UTF-8, is a place as any other. */
static bool native_regex_in_letter(cy_bytes text, size_t offset)
{
    if (regex_is_boundary(text, offset)) return false;
    for (size_t back = 1; back <= 3 && back <= offset; back++) {
        uint32_t code_point;
        size_t length;
        if (!regex_is_boundary(text, offset - back)) continue;
        return text_decode(cy_bytes_skip(text, offset - back), &code_point, &length) && length > back;
    }
    return false;
}

enum native_outcome native_regex_find(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[1]);
    int64_t from = native_regex_from(call);
    if (from < 0 || (uint64_t)from > text.count || native_regex_in_letter(text, (size_t)from))
        return native_fail(call, CY_ERR(INDEX), "regex.find: from %lld is outside 0..%zu, or inside a letter",
                           (long long)from, text.count);
    return native_regex_run(call, "regex.find", 1, native_regex_find_body);
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

/* Gives the list that was made. */
static enum native_outcome native_regex_give(struct native_call *call, struct native_regex_work *work,
                                             cy_err err)
{
    if (cy_failed(err)) {
        native_regex_failed(call, work->native, err);
        return NATIVE_FAIL;
    }
    cy_value list = work->result;
    work->result = value_nil();
    return native_return(call, list);
}
static cy_err native_regex_begin_list(struct native_call *call, struct native_regex_work *work)
{
    if (work->began) return CY_OK;
    CY_TRY(list_new(call->vm, 0, &work->result));
    work->began = true;
    return CY_OK;
}

static enum native_outcome native_regex_find_all_body(struct native_call *call,
                                                      struct native_regex_work *work)
{
    cy_value match;
    cy_err err = native_regex_begin_list(call, work);
    while (!cy_failed(err) && work->left > 0) {
        enum native_regex_step step = native_regex_each(call, work);
        if (!native_regex_is_over(step)) return native_regex_outcome(step);
        if (step == NATIVE_REGEX_NONE) break;
        work->left--;
        err = native_regex_match_map(call, work, &match);
        if (!cy_failed(err)) err = list_append(call->vm, &work->result, match);
    }
    return native_regex_give(call, work, err);
}
enum native_outcome native_regex_find_all(struct native_call *call)
{
    int64_t count;
    if (!native_regex_count(call, 2, "regex.find_all", "count", &count)) return NATIVE_FAIL;
    return native_regex_run(call, "regex.find_all", count, native_regex_find_all_body);
}

static enum native_outcome native_regex_split_body(struct native_call *call, struct native_regex_work *work)
{
    cy_bytes text = work->search.text;
    const struct native_regex_walk *walk = &work->walk;
    cy_value part;
    cy_err err = native_regex_begin_list(call, work);
    enum native_regex_step step = NATIVE_REGEX_FOUND;
    while (!cy_failed(err) && step == NATIVE_REGEX_FOUND) {
        step = work->left > 1 ? native_regex_each(call, work) : NATIVE_REGEX_NONE;
        if (!native_regex_is_over(step)) return native_regex_outcome(step);
        bool found = step == NATIVE_REGEX_FOUND;
        /* An empty match at either end separates nothing. */
        if (found && walk->begin == walk->end && (walk->begin == 0 || walk->end == text.count)) continue;
        work->left--;
        err =
            string_new(call->vm, cy_bytes_slice(text, work->copied, found ? walk->begin : text.count), &part);
        if (!cy_failed(err)) err = list_append(call->vm, &work->result, part);
        work->copied = walk->end;
    }
    return native_regex_give(call, work, err);
}
enum native_outcome native_regex_split(struct native_call *call)
{
    int64_t count;
    if (!native_regex_count(call, 2, "regex.split", "count", &count)) return NATIVE_FAIL;
    return native_regex_run(call, "regex.split", count, native_regex_split_body);
}
