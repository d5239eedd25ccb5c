/* SPDX-License-Identifier: MIT
 *
 * vm/native/regex.c: pcre2, held within bounds.
 *
 * In, Out, Invariant: regex.h.
 *
 * Bounds: pcre2's own limits count backtracking from one start and begin anew at the next one; loops over a single
 *       class are not counted at all. `[a-z]+\d` over n letters takes n^2 / 2 steps and none of them is a "match".
 *       So the clock is looked at, from callouts: one at the start of the pattern for short texts, where what lies
 *       between two starts is small; for longer ones a second compilation with a callout before every item, made
 * when it is first needed. JIT:  off. Its code memory is writable and executable at once, which we allow nowhere;
 *       and it counts its limits in another way, so an error would depend on the machine.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "vm/native/regex.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/sys/clock.h"

#include <pcre2.h>
#include <stdio.h>

/* A text up to this takes the compilation with one callout. */
enum { REGEX_SHORT_BYTES = 1024, REGEX_PARENTHESES_MAX = 250, REGEX_STEPS_BETWEEN_LOOKS = 100000 };
#define REGEX_CALL_NS ((uint64_t)LIMIT_REGEX_CALL_MS * 1000000u)

struct regex {
    struct regex_memory memory;
    pcre2_general_context *general;
    pcre2_code *code;      /* a callout at each start */
    pcre2_code *long_code; /* a callout before each item; NULL until a long text comes */
    uint32_t options;      /* of pcre2 */
    uint32_t group_count;
    uint32_t name_count;
    uint32_t name_entry_bytes;
    const uint8_t *names; /* in the code: group u16 big-endian, name, NUL */
    size_t pattern_count;
    uint8_t pattern[]; /* with the callout in it, and a NUL */
};

static void *regex_plain_alloc(size_t bytes, void *context)
{
    (void)context;
    return mem_alloc(bytes);
}
static void regex_plain_free(void *block, void *context)
{
    (void)context;
    mem_free(block);
}

/* -- compiling ---------------------------------------------------------------------------------------------- */

/* Bytes of the verbs "(*UCP)(*CR)" that must stay in front of everything. */
static size_t regex_verbs_count(cy_bytes pattern)
{
    size_t at = 0;
    while (pattern.count - at >= 3 && pattern.data[at] == '(' && pattern.data[at + 1] == '*') {
        size_t end = at + 2;
        while (end < pattern.count && ((pattern.data[end] >= 'A' && pattern.data[end] <= 'Z') ||
                                       (pattern.data[end] >= '0' && pattern.data[end] <= '9') ||
                                       pattern.data[end] == '_' || pattern.data[end] == '='))
            end++;
        if (end >= pattern.count || pattern.data[end] != ')') break;
        at = end + 1;
    }
    return at;
}

static uint32_t regex_pcre2_options(const struct regex_options *options)
{
    uint32_t bits = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
    if (options->ignore_case) bits |= PCRE2_CASELESS;
    if (options->multi_line) bits |= PCRE2_MULTILINE;
    if (options->dot_all) bits |= PCRE2_DOTALL;
    if (options->extended) bits |= PCRE2_EXTENDED;
    if (options->unicode) bits |= PCRE2_UCP;
    return bits;
}

static cy_err regex_compile(struct regex *regex, uint32_t more_options, pcre2_code **code_out, int *error_out,
                            size_t *offset_out)
{
    pcre2_compile_context *context = pcre2_compile_context_create(regex->general);
    if (!context) return CY_ERR(NO_MEMORY);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, REGEX_PARENTHESES_MAX);
    *code_out = pcre2_compile(regex->pattern, regex->pattern_count, regex->options | more_options, error_out,
                              offset_out, context);
    pcre2_compile_context_free(context);
    if (*code_out) return CY_OK;
    return *error_out == PCRE2_ERROR_HEAP_FAILED ? CY_ERR(NO_MEMORY) : CY_ERR(BAD_FORMAT);
}

static void regex_read_names(struct regex *regex)
{
    PCRE2_SPTR names;
    CHECK(pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->group_count) == 0);
    CHECK(pcre2_pattern_info(regex->code, PCRE2_INFO_NAMECOUNT, &regex->name_count) == 0);
    CHECK(pcre2_pattern_info(regex->code, PCRE2_INFO_NAMEENTRYSIZE, &regex->name_entry_bytes) == 0);
    CHECK(pcre2_pattern_info(regex->code, PCRE2_INFO_NAMETABLE, &names) == 0);
    regex->names = names;
}

/* Says what pcre2 found wrong, with the place in the pattern as it was given. */
static void regex_say(struct regex_fault *fault, int error, size_t offset, size_t verbs_count,
                      size_t callout_count)
{
    if (pcre2_get_error_message(error, (PCRE2_UCHAR *)fault->message, sizeof fault->message) < 0)
        snprintf(fault->message, sizeof fault->message, "pcre2 error %d", error);
    fault->offset = offset > verbs_count ? offset - cy_min_size(callout_count, offset - verbs_count) : offset;
}

cy_err regex_new(cy_bytes pattern, const struct regex_options *options, const struct regex_memory *memory,
                 struct regex **regex_out, struct regex_fault *fault_out)
{
    static const cy_bytes callout = {(const uint8_t *)"(?C1)", 5};
    *fault_out = (struct regex_fault){0};
    if (pattern.count > LIMIT_REGEX_PATTERN_BYTES) return CY_ERR(LIMIT);
    struct regex_memory plain = {regex_plain_alloc, regex_plain_free, NULL};
    if (!memory || !memory->alloc) memory = &plain;
    size_t count = pattern.count + callout.count, verbs_count = regex_verbs_count(pattern);
    struct regex *regex = memory->alloc(sizeof *regex + count + 1, memory->context);
    if (!regex) return CY_ERR(NO_MEMORY);
    *regex =
        (struct regex){.memory = *memory, .options = regex_pcre2_options(options), .pattern_count = count};
    uint8_t *to = regex->pattern;
    if (verbs_count) memcpy(to, pattern.data, verbs_count);
    memcpy(to + verbs_count, callout.data, callout.count);
    cy_bytes rest = cy_bytes_skip(pattern, verbs_count);
    if (rest.count) memcpy(to + verbs_count + callout.count, rest.data, rest.count);
    to[count] = 0;
    regex->general = pcre2_general_context_create(memory->alloc, memory->free, memory->context);
    int error = 0;
    size_t offset = 0;
    cy_err err = regex->general ? regex_compile(regex, 0, &regex->code, &error, &offset) : CY_ERR(NO_MEMORY);
    if (cy_failed(err)) {
        if (cy_is(err, CY_ERR_BAD_FORMAT)) regex_say(fault_out, error, offset, verbs_count, callout.count);
        regex_free(&regex);
        return err;
    }
    regex_read_names(regex);
    *regex_out = regex;
    return CY_OK;
}

void regex_free(struct regex **regex)
{
    struct regex *gone = *regex;
    if (!gone) return;
    pcre2_code_free(gone->code);
    pcre2_code_free(gone->long_code);
    pcre2_general_context_free(gone->general);
    gone->memory.free(gone, gone->memory.context);
    *regex = NULL;
}

uint32_t regex_group_count(const struct regex *regex) { return regex->group_count; }

bool regex_name_at(const struct regex *regex, uint32_t index, cy_bytes *name_out, uint32_t *group_out)
{
    if (index >= regex->name_count) return false;
    const uint8_t *entry = regex->names + (size_t)index * regex->name_entry_bytes;
    *group_out = (uint32_t)entry[0] << 8 | entry[1];
    *name_out = cy_bytes_from_text((const char *)entry + 2);
    return true;
}

/* -- searching ---------------------------------------------------------------------------------------------- */

/* Whether the call has used its time. Wall time is looked at first, because it is cheap; what counts is CPU. */
static bool regex_is_late(struct regex_search *search)
{
    uint64_t now = clock_monotonic_ns();
    if (now < search->deadline_ns) return false;
    uint64_t cpu = clock_thread_cpu_ns();
    if (search->cpu_started_ns == 0) {
        search->cpu_started_ns =
            cpu > REGEX_CALL_NS / 2 ? cpu - REGEX_CALL_NS / 2 : 1; /* half of it has passed */
        search->deadline_ns = now + REGEX_CALL_NS / 2;
        return false;
    }
    uint64_t used = cpu - search->cpu_started_ns;
    if (used >= REGEX_CALL_NS) return true;
    search->deadline_ns = now + (REGEX_CALL_NS - used);
    return false;
}

static int regex_on_callout(pcre2_callout_block *block, void *context)
{
    struct regex_search *search = context;
    (void)block;
    if (++search->ticks < search->ticks_per_look) return 0;
    search->ticks = 0;
    return regex_is_late(search) ? PCRE2_ERROR_CALLOUT : 0;
}

cy_err regex_search_init(struct regex_search *search, struct regex *regex, cy_bytes text)
{
    *search = (struct regex_search){.regex = regex, .text = text};
    search->started_ns = clock_monotonic_ns();
    search->deadline_ns = search->started_ns + REGEX_CALL_NS / 2;
    search->ticks_per_look = (uint32_t)(1 + REGEX_STEPS_BETWEEN_LOOKS / cy_max_size(text.count, 1000));
    search->is_utf8 = text_is_utf8(text, NULL);
    if (text.count > REGEX_SHORT_BYTES && !regex->long_code) {
        int error;
        size_t offset;
        /* The same pattern with more callouts may become too large for pcre2 (64 KiB): then one at the start must
         * do. */
        cy_err err = regex_compile(regex, PCRE2_AUTO_CALLOUT, &regex->long_code, &error, &offset);
        if (cy_is(err, CY_ERR_NO_MEMORY)) return err;
    }
    pcre2_match_context *context = pcre2_match_context_create(regex->general);
    search->match_context = context;
    search->match_data = pcre2_match_data_create_from_pattern(regex->code, regex->general);
    if (!context || !search->match_data) {
        regex_search_fini(search);
        return CY_ERR(NO_MEMORY);
    }
    pcre2_set_match_limit(context, LIMIT_REGEX_MATCH_STEPS);
    pcre2_set_depth_limit(context, LIMIT_REGEX_DEPTH);
    pcre2_set_heap_limit(context, LIMIT_REGEX_HEAP_KIB);
    pcre2_set_callout(context, regex_on_callout, search);
    return CY_OK;
}

void regex_search_fini(struct regex_search *search)
{
    pcre2_match_data_free(search->match_data);
    pcre2_match_context_free(search->match_context);
    search->match_data = search->match_context = NULL;
}

uint64_t regex_search_elapsed_ns(const struct regex_search *search)
{
    return clock_monotonic_ns() - search->started_ns;
}

static cy_err regex_failed(int result, enum regex_bound *bound_out)
{
    switch (result) {
    case PCRE2_ERROR_MATCHLIMIT: *bound_out = REGEX_BOUND_STEPS; return CY_ERR(LIMIT);
    case PCRE2_ERROR_DEPTHLIMIT: *bound_out = REGEX_BOUND_DEPTH; return CY_ERR(LIMIT);
    case PCRE2_ERROR_HEAPLIMIT: *bound_out = REGEX_BOUND_HEAP; return CY_ERR(LIMIT);
    case PCRE2_ERROR_CALLOUT: *bound_out = REGEX_BOUND_TIME; return CY_ERR(LIMIT);
    case PCRE2_ERROR_RECURSELOOP: *bound_out = REGEX_BOUND_DEPTH; return CY_ERR(LIMIT);
    case PCRE2_ERROR_NOMEMORY: return CY_ERR(NO_MEMORY);
    default: return CY_ERR(INTERNAL);
    }
}

cy_err regex_search_next(struct regex_search *search, size_t from, enum regex_mode mode, bool *found_out,
                         enum regex_bound *bound_out)
{
    static const uint32_t modes[] = {
        [REGEX_FIND] = 0,
        [REGEX_WHOLE] = PCRE2_ANCHORED | PCRE2_ENDANCHORED,
        [REGEX_NOT_EMPTY_HERE] = PCRE2_ANCHORED | PCRE2_NOTEMPTY_ATSTART,
    };
    CHECK(from <= search->text.count);
    *found_out = false;
    *bound_out = REGEX_BOUND_NONE;
    /* Many short matches call out too seldom for the clock: it is looked at here too. */
    if (regex_on_callout(NULL, search) != 0) return regex_failed(PCRE2_ERROR_CALLOUT, bound_out);
    const pcre2_code *code = search->regex->code;
    if (search->text.count > REGEX_SHORT_BYTES && search->regex->long_code) code = search->regex->long_code;
    uint32_t options = modes[mode] | (search->is_utf8 ? PCRE2_NO_UTF_CHECK : 0);
    const uint8_t *data = search->text.count ? search->text.data : (const uint8_t *)"";
    int result =
        pcre2_match(code, data, search->text.count, from, options, search->match_data, search->match_context);
    *found_out = result > 0;
    return result > 0 || result == PCRE2_ERROR_NOMATCH ? CY_OK : regex_failed(result, bound_out);
}

bool regex_search_group(const struct regex_search *search, uint32_t group, size_t *begin_out, size_t *end_out)
{
    const size_t *offsets = pcre2_get_ovector_pointer(search->match_data);
    CHECK(group < pcre2_get_ovector_count(search->match_data));
    if (offsets[2 * group] == PCRE2_UNSET) return false;
    *begin_out = offsets[2 * group];
    *end_out = offsets[2 * group + 1];
    CHECK(*begin_out <= *end_out && *end_out <= search->text.count);
    return true;
}

bool regex_is_boundary(cy_bytes text, size_t offset)
{
    return offset >= text.count || (text.data[offset] & 0xc0) != 0x80;
}

#undef REGEX_CALL_NS
#undef PCRE2_CODE_UNIT_WIDTH
