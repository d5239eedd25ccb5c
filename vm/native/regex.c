/* SPDX-License-Identifier: MIT
 *
 * vm/native/regex.c: pcre2, held within bounds.
 *
 * In, Out, Invariant: regex.h.
 *
 * Bounds: pcre2's own limits count backtracking from one start and begin anew at the next one; loops over a single
 *       class are not counted at all. `[a-z]+\d` over n letters takes n^2 / 2 steps and none of them is a "match".
 *       So the clock is looked at, from callouts: one at the start of the pattern for short texts, where what lies
 *       between two starts is small; for longer ones a second compilation with a callout before every item, made when
 *       it is first needed.
 * Pieces: a match begins in place, with REGEX_PIECE_STEPS and until the piece's end, and is nearly always over then.
 *       One that is not begins again, with all its steps, as a coroutine, which a callout pauses at each piece's end;
 *       so do the matches that follow it. pcre2 does not recurse while it matches, so a small stack does.
 *
 *         step ─► in place ─► over               step ─► resume ─► ... callout: time! ─► pause ─► not over
 *                    └ too much ─► not over      step ─► resume ─► ... result ─► over
 *
 * JIT:  off. Its code memory is writable and executable at once, which we allow nowhere; and it counts its limits in
 *       another way, so an error would depend on the machine.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "vm/native/regex.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/sys/clock.h"
#include "vm/sys/coroutine.h"

#include <pcre2.h>
#include <stdio.h>

/* A text up to this takes the compilation with one callout. Between two looks at the clock lie that many starts, each
 * of at most REGEX_PIECE_STEPS; in the other compilation so many items as together may look at REGEX_BYTES_PER_LOOK.
 * UTF-8 is checked in chunks of some 20 us. */
enum { REGEX_SHORT_BYTES = 1024, REGEX_STARTS_PER_LOOK = 8, REGEX_BYTES_PER_LOOK = 50000 };
enum { REGEX_CHUNK_BYTES = 16384, REGEX_PARENTHESES_MAX = 250 };
#define REGEX_CALL_NS ((uint64_t)LIMIT_REGEX_CALL_MS * 1000000u)
#define REGEX_PIECE_NS ((uint64_t)LIMIT_REGEX_PIECE_US * 1000u)
#define REGEX_MATCH_NS ((uint64_t)LIMIT_REGEX_MATCH_US * 1000u)

/* Bits of an index: a callout before every item, not only at each start; for texts that are not UTF-8. With the latter
 * pcre2 looks through the rest of the text before each match, whatever it is told, so a text that is UTF-8 is never
 * given to it. */
enum { REGEX_CODE_LONG = 1, REGEX_CODE_INVALID = 2, REGEX_CODE_COUNT = 4 };

struct regex {
    struct regex_memory memory;
    pcre2_general_context *general;
    pcre2_code *codes[REGEX_CODE_COUNT]; /* made when they are first needed, but the first */
    bool long_is_too_large;              /* for pcre2 */
    uint32_t options;                    /* of pcre2 */
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
    uint32_t bits = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_DOLLAR_ENDONLY;
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
    CHECK(pcre2_pattern_info(regex->codes[0], PCRE2_INFO_CAPTURECOUNT, &regex->group_count) == 0);
    CHECK(pcre2_pattern_info(regex->codes[0], PCRE2_INFO_NAMECOUNT, &regex->name_count) == 0);
    CHECK(pcre2_pattern_info(regex->codes[0], PCRE2_INFO_NAMEENTRYSIZE, &regex->name_entry_bytes) == 0);
    CHECK(pcre2_pattern_info(regex->codes[0], PCRE2_INFO_NAMETABLE, &names) == 0);
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
    cy_err err =
        regex->general ? regex_compile(regex, 0, &regex->codes[0], &error, &offset) : CY_ERR(NO_MEMORY);
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
    for (int i = 0; i < REGEX_CODE_COUNT; i++) pcre2_code_free(gone->codes[i]);
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

/* 0, or what ends a match: the piece is over and this one began in place, or it is to give up. */
static int regex_on_callout(pcre2_callout_block *block, void *context)
{
    struct regex_search *search = context;
    (void)block;
    if (++search->ticks < search->ticks_per_look) return 0;
    search->ticks = 0;
    if (clock_monotonic_ns() < search->piece_deadline_ns) return 0;
    if (!search->under_way) return PCRE2_ERROR_CALLOUT;
    coroutine_pause(search->coroutine);
    return search->ending ? PCRE2_ERROR_CALLOUT : 0;
}

static void regex_begin_time(struct regex_search *search)
{
    search->piece_started_ns = clock_monotonic_ns();
    search->piece_deadline_ns = search->piece_started_ns + REGEX_PIECE_NS;
}

void regex_search_begin_piece(struct regex_search *search)
{
    regex_begin_time(search);
    search->cpu_started_ns = clock_thread_cpu_ns();
}

/* What counts is CPU: a busy machine does not turn a good pattern into an error. In the first piece, which is most
 * often the only one, it is not asked for: there, what is far past the piece's end is taken for somebody else's. */
uint64_t regex_search_end_piece(struct regex_search *search)
{
    uint64_t ns = clock_monotonic_ns() - search->piece_started_ns;
    if (search->cpu_started_ns)
        ns = clock_thread_cpu_ns() - search->cpu_started_ns;
    else if (ns > 4 * REGEX_PIECE_NS)
        ns = 4 * REGEX_PIECE_NS;
    search->used_ns += ns;
    return ns;
}

/* The compilation for this text, and for now. */
static int regex_code_index(const struct regex_search *search)
{
    bool is_long = search->in_pieces || search->text.count > REGEX_SHORT_BYTES;
    return (is_long ? REGEX_CODE_LONG : 0) | (search->is_utf8 ? 0 : REGEX_CODE_INVALID);
}

/* The same pattern with more callouts may become too large for pcre2 (64 KiB): then one at the start must do. */
static cy_err regex_need_code(const struct regex_search *search, const pcre2_code **code_out)
{
    struct regex *regex = search->regex;
    int index = regex_code_index(search), error;
    size_t offset;
    for (;;) {
        if (regex->long_is_too_large) index &= ~REGEX_CODE_LONG;
        pcre2_code **code = &regex->codes[index];
        uint32_t callouts = index & REGEX_CODE_LONG ? PCRE2_AUTO_CALLOUT : 0;
        uint32_t invalid = index & REGEX_CODE_INVALID ? PCRE2_MATCH_INVALID_UTF : 0;
        cy_err err = *code ? CY_OK : regex_compile(regex, callouts | invalid, code, &error, &offset);
        *code_out = *code;
        if (!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY) || !callouts) return err;
        regex->long_is_too_large = true;
    }
}

cy_err regex_search_init(struct regex_search *search, struct regex *regex, cy_bytes text)
{
    *search = (struct regex_search){.regex = regex, .text = text, .is_utf8 = true};
    search->allowed_ns = REGEX_CALL_NS;
    search->ticks_per_look = REGEX_STARTS_PER_LOOK;
    regex_begin_time(search);
    if (text.count > REGEX_SHORT_BYTES)
        search->ticks_per_look = (uint32_t)(1 + REGEX_BYTES_PER_LOOK / text.count);
    pcre2_match_context *context = pcre2_match_context_create(regex->general);
    search->match_context = context;
    search->match_data = pcre2_match_data_create_from_pattern(regex->codes[0], regex->general);
    if (!context || !search->match_data) {
        regex_search_fini(search);
        return CY_ERR(NO_MEMORY);
    }
    pcre2_set_match_limit(context, LIMIT_REGEX_PIECE_STEPS);
    pcre2_set_depth_limit(context, LIMIT_REGEX_DEPTH);
    pcre2_set_heap_limit(context, LIMIT_REGEX_HEAP_KIB);
    return CY_OK;
}

/* A paused match holds memory of pcre2 and is told to give up; one more resume, and it has. */
static void regex_end_match(struct regex_search *search)
{
    search->ending = true;
    if (search->under_way) coroutine_resume(search->coroutine);
    CHECK(!search->under_way);
}

void regex_search_fini(struct regex_search *search)
{
    regex_end_match(search);
    if (search->coroutine) search->regex->memory.free(search->coroutine, search->regex->memory.context);
    pcre2_match_data_free(search->match_data);
    pcre2_match_context_free(search->match_context);
    search->match_data = search->match_context = NULL;
    search->coroutine = NULL;
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

static int regex_match(struct regex_search *search)
{
    const uint8_t *data = search->text.count ? search->text.data : (const uint8_t *)"";
    return pcre2_match(search->code, data, search->text.count, search->from,
                       search->mode_bits | (search->is_utf8 ? PCRE2_NO_UTF_CHECK : 0), search->match_data,
                       search->match_context);
}

/* One match after the other, each from a resume to the pause behind it. */
static void regex_run(struct coroutine *coroutine, void *context)
{
    struct regex_search *search = context;
    for (;;) {
        search->result = regex_match(search);
        search->under_way = false;
        coroutine_pause(coroutine);
    }
}

static cy_err regex_need_coroutine(struct regex_search *search)
{
    const struct regex_memory *memory = &search->regex->memory;
    if (search->coroutine) return CY_OK;
    void *block = memory->alloc(coroutine_bytes(), memory->context);
    if (!block) return CY_ERR(NO_MEMORY);
    search->coroutine = coroutine_begin(block, regex_run, search);
    search->ticks_per_look =
        (uint32_t)(1 + REGEX_BYTES_PER_LOOK / cy_max_size(search->text.count, REGEX_SHORT_BYTES));
    pcre2_set_match_limit(search->match_context, LIMIT_REGEX_MATCH_STEPS);
    return CY_OK;
}

/* Looks on whether the text is UTF-8. False: the piece is over first. */
static bool regex_check_text(struct regex_search *search)
{
    cy_bytes text = search->text;
    while (search->is_utf8 && search->checked_count < text.count) {
        size_t end = cy_min_size(text.count, search->checked_count + REGEX_CHUNK_BYTES);
        for (int i = 0; i < 3 && !regex_is_boundary(text, end); i++) end--;
        search->is_utf8 = text_is_utf8(cy_bytes_slice(text, search->checked_count, end), NULL);
        search->checked_count = end;
        if (text.count > REGEX_CHUNK_BYTES && clock_monotonic_ns() >= search->piece_deadline_ns) return false;
    }
    return true;
}

/* Begins a match. False: it is not over. */
static bool regex_begin_match(struct regex_search *search)
{
    /* Many short matches call out too seldom for the clock: it is looked at here too. */
    if (regex_on_callout(NULL, search) != 0) return false;
    if (search->in_pieces) {
        search->under_way = true;
        return true;
    }
    search->result = regex_match(search);
    search->in_pieces = search->result == PCRE2_ERROR_MATCHLIMIT || search->result == PCRE2_ERROR_CALLOUT;
    return !search->in_pieces;
}

cy_err regex_search_step(struct regex_search *search, size_t from, enum regex_mode mode, bool *over_out,
                         bool *found_out, enum regex_bound *bound_out)
{
    static const uint32_t modes[] = {
        [REGEX_FIND] = 0,
        [REGEX_WHOLE] = PCRE2_ANCHORED | PCRE2_ENDANCHORED,
        [REGEX_NOT_EMPTY_HERE] = PCRE2_ANCHORED | PCRE2_NOTEMPTY_ATSTART,
    };
    CHECK(from <= search->text.count && !search->ending);
    *found_out = *over_out = false;
    *bound_out = REGEX_BOUND_NONE;
    if (search->used_ns >= search->allowed_ns) {
        regex_end_match(search);
        return regex_failed(PCRE2_ERROR_CALLOUT, bound_out);
    }
    if (!regex_check_text(search)) return CY_OK;
    if (search->in_pieces) CY_TRY(regex_need_coroutine(search));
    if (!search->under_way) {
        const pcre2_code *code;
        CY_TRY(regex_need_code(search, &code));
        search->code = code;
        search->from = from;
        search->mode_bits = modes[mode];
        pcre2_set_callout(search->match_context, regex_on_callout, search);
        if (!regex_begin_match(search)) return CY_OK;
    }
    CHECK(search->from == from && search->mode_bits == modes[mode]);
    if (search->under_way) coroutine_resume(search->coroutine);
    if (search->under_way) return CY_OK;
    *over_out = true;
    *found_out = search->result > 0;
    if (*found_out) search->allowed_ns += REGEX_MATCH_NS;
    if (*found_out || search->result == PCRE2_ERROR_NOMATCH) return CY_OK;
    return regex_failed(search->result, bound_out);
}

cy_err regex_search_next(struct regex_search *search, size_t from, enum regex_mode mode, bool *found_out,
                         enum regex_bound *bound_out)
{
    for (bool over;;) {
        CY_TRY(regex_search_step(search, from, mode, &over, found_out, bound_out));
        if (over) return CY_OK;
        (void)regex_search_end_piece(search);
        regex_search_begin_piece(search);
    }
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
#undef REGEX_PIECE_NS
#undef REGEX_MATCH_NS
#undef PCRE2_CODE_UNIT_WIDTH
