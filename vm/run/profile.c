/* SPDX-License-Identifier: MIT
 *
 * vm/run/profile.c: samples into a tree of frames, and the tree as folded stacks.
 *
 * In:   turns of fibers. Out: text.
 * Invariant: no sample is lost: without memory, or past a limit, its weight goes to the innermost frame that is there.
 * Not here: when a sample is due (fiber.c tells of every turn), the flame graph (profile_svg.c).
 */
#include "vm/run/profile.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/run/fiber.h"
#include "vm/run/profile_internal.h"

#include <stdlib.h>

/* -- making ---------------------------------------------------------------------------------------------- */

void profile_clear(struct profile *profile)
{
    profile->frames[0] = (struct profile_frame){.kind = PROFILE_ROOT,
                                                .parent = PROFILE_NO_FRAME,
                                                .child = PROFILE_NO_FRAME,
                                                .sibling = PROFILE_NO_FRAME};
    profile->frame_count = 1;
    profile->left_steps = profile->period_steps;
    profile->pending = profile->sample_count = profile->cut_count = 0;
}

cy_err profile_new(enum profile_unit unit, uint32_t period_steps, uint32_t frames_max,
                   struct profile **profile_out)
{
    struct profile *profile = mem_alloc_zeroed(sizeof *profile);
    if (!profile) return CY_ERR(NO_MEMORY);
    profile->unit = unit;
    profile->period_steps = period_steps ? period_steps : LIMIT_PROFILE_STEPS;
    profile->frames_max = frames_max ? frames_max : LIMIT_PROFILE_FRAMES;
    profile->frame_capacity = 64;
    profile->frames = mem_alloc(profile->frame_capacity * sizeof *profile->frames);
    if (!profile->frames) {
        mem_free(profile);
        return CY_ERR(NO_MEMORY);
    }
    profile_clear(profile);
    *profile_out = profile;
    return CY_OK;
}

void profile_free(struct profile **profile)
{
    if (!*profile) return;
    mem_free((*profile)->frames);
    mem_free(*profile);
    *profile = NULL;
}

uint64_t profile_sample_count(const struct profile *profile) { return profile->sample_count; }
uint64_t profile_cut_count(const struct profile *profile) { return profile->cut_count; }

/* -- samples --------------------------------------------------------------------------------------------- */

static uint32_t profile_add_frame(struct profile *profile, uint32_t parent, struct profile_frame frame)
{
    if (profile->frame_count == profile->frames_max) return PROFILE_NO_FRAME;
    if (profile->frame_count == profile->frame_capacity) {
        uint32_t capacity = profile->frame_capacity * 2;
        struct profile_frame *frames = mem_resize(profile->frames, capacity * sizeof *frames);
        if (!frames) return PROFILE_NO_FRAME;
        profile->frames = frames;
        profile->frame_capacity = capacity;
    }
    frame.parent = parent;
    frame.child = PROFILE_NO_FRAME;
    frame.sibling = profile->frames[parent].child;
    profile->frames[parent].child = profile->frame_count;
    profile->frames[profile->frame_count] = frame;
    return profile->frame_count++;
}

/* The child of `parent` with this key, made when it is new. PROFILE_NO_FRAME when there is no room for it. */
static uint32_t profile_enter(struct profile *profile, uint32_t parent, struct profile_frame frame)
{
    struct profile_frame *frames = profile->frames;
    uint32_t *link = &frames[parent].child;
    while (*link != PROFILE_NO_FRAME && frames[*link].key != frame.key) link = &frames[*link].sibling;
    uint32_t found = *link;
    if (found == PROFILE_NO_FRAME) return profile_add_frame(profile, parent, frame);
    /* To the front: the next sample most likely goes the same way. */
    *link = frames[found].sibling;
    frames[found].sibling = frames[parent].child;
    frames[parent].child = found;
    return found;
}

/* The native that used up the budget, when it was one: it charged more than a back edge or a short call does, and its
 * step is the one before. NULL for bytecode. */
static const struct native_row *profile_native(const struct fiber *fiber, uint64_t past_steps)
{
    const struct frame *frame = fiber->frame;
    if (past_steps < 2 || frame->step <= frame->function->code) return NULL;
    const struct run_step *step = frame->step - 1;
    return step->op == RUN_NATIVE ? fiber->instance->natives[step->c].row : NULL;
}

static void profile_sample(struct profile *profile, const struct fiber *fiber, uint64_t past_steps)
{
    uint32_t at = 0, depth = 0, next = 0;
    const struct program *program = fiber ? fiber->instance->program : NULL;
    const struct frame *frame = fiber && fiber->frame ? fiber->frames : NULL;
    for (; frame && frame <= fiber->frame && depth < LIMIT_PROFILE_DEPTH; frame++, depth++) {
        struct profile_frame entry = {
            .key = frame->function->source, .program = program, .kind = PROFILE_FUNCTION};
        next = profile_enter(profile, at, entry);
        if (next == PROFILE_NO_FRAME) break;
        at = next;
    }
    bool whole = !frame || frame > fiber->frame;
    const struct native_row *native = frame && whole ? profile_native(fiber, past_steps) : NULL;
    if (native) {
        struct profile_frame entry = {.key = native, .program = program, .kind = PROFILE_NATIVE};
        next = profile_enter(profile, at, entry);
        if (next == PROFILE_NO_FRAME)
            whole = false;
        else
            at = next;
    }
    profile->frames[at].self += profile->pending;
    profile->pending = 0;
    profile->sample_count++;
    if (!whole) profile->cut_count++;
}

int64_t profile_budget(const struct profile *profile) { return profile->left_steps; }
bool profile_wants_time(const struct profile *profile) { return profile->unit == PROFILE_TIME; }

void profile_turn(struct profile *profile, const struct fiber *fiber, uint64_t steps, uint64_t spent_ns)
{
    profile->pending += profile->unit == PROFILE_TIME ? spent_ns : steps;
    if (steps <= (uint64_t)profile->left_steps) {
        profile->left_steps -= (int64_t)steps;
        return;
    }
    profile_sample(profile, fiber, steps - (uint64_t)profile->left_steps);
    profile->left_steps = profile->period_steps;
}

/* -- names ----------------------------------------------------------------------------------------------- */

/* The last segment of a module's name: "list" of "std:list", "table" of "routes/table". */
static cy_bytes profile_module_word(cy_bytes name)
{
    size_t start = name.count;
    while (start > 0 && name.data[start - 1] != ':' && name.data[start - 1] != '/') start--;
    return cy_bytes_skip(name, start);
}

void profile_frame_name(const struct profile_frame *frame, struct builder *out)
{
    if (frame->kind == PROFILE_ROOT) {
        builder_text(out, "all");
        return;
    }
    if (frame->kind == PROFILE_NATIVE) {
        builder_text(out, ((const struct native_row *)frame->key)->english);
        return;
    }
    const struct program *program = frame->program;
    const struct function *function = frame->key;
    bool is_main = function->module + 1 == program->module_count;
    if (!is_main) {
        builder_bytes(out,
                      profile_module_word(program_string(program, program->modules[function->module].name)));
        builder_u8(out, '.');
    }
    cy_bytes name = program_string(program, function->name);
    bool is_init =
        program->modules[function->module].init_function == (uint32_t)(function - program->functions);
    if (is_init)
        builder_text(out, "(initialisers)");
    else if (name.count > 0)
        builder_bytes(out, name);
    else
        builder_printf(out, "fn@%u", function->line_count ? function->lines[0].line : 0);
}

/* -- folded stacks --------------------------------------------------------------------------------------- */

void profile_sum(struct profile_frame *frames, uint32_t frame_count)
{
    for (uint32_t i = 0; i < frame_count; i++) frames[i].total = frames[i].self;
    for (uint32_t i = frame_count; i-- > 1;) frames[frames[i].parent].total += frames[i].total;
}

/* What ends a frame or a line in the format must not stand in a name: a test's may hold anything. */
static void profile_folded_name(const struct profile_frame *frame, struct builder *out)
{
    size_t start = out->count;
    profile_frame_name(frame, out);
    for (size_t i = start; i < out->count; i++)
        if (out->data[i] == ';' || out->data[i] < 0x20) out->data[i] = '_';
}

static void profile_folded_line(const struct profile *profile, uint32_t index, struct builder *out)
{
    uint32_t path[LIMIT_PROFILE_DEPTH + 2], depth = 0;
    for (uint32_t at = index; at != 0; at = profile->frames[at].parent) path[depth++] = at;
    if (depth == 0) builder_text(out, "(no frame)");
    while (depth > 0) {
        profile_folded_name(&profile->frames[path[--depth]], out);
        if (depth > 0) builder_u8(out, ';');
    }
    builder_printf(out, " %llu\n", (unsigned long long)profile->frames[index].self);
}

static int profile_compare_lines(const void *a, const void *b)
{
    const cy_bytes *x = a, *y = b;
    int order = memcmp(x->data, y->data, cy_min_size(x->count, y->count));
    return order ? order : (x->count > y->count) - (x->count < y->count);
}

/* Sorted, so that equal profiles are equal files. Without memory for that, as they come. */
static void profile_sort_lines(struct builder *out, size_t start, uint32_t line_count)
{
    struct builder copy;
    builder_init(&copy);
    builder_bytes(&copy, cy_bytes_skip(builder_view(out), start));
    cy_bytes *lines = mem_alloc((size_t)line_count * sizeof *lines);
    if (lines && !copy.failed && !out->failed) {
        cy_bytes rest = builder_view(&copy);
        for (uint32_t i = 0; i < line_count; i++) {
            lines[i] = cy_bytes_slice(rest, 0, cy_bytes_find(rest, '\n') + 1);
            rest = cy_bytes_skip(rest, lines[i].count);
        }
        qsort(lines, line_count, sizeof *lines, profile_compare_lines);
        out->count = start;
        for (uint32_t i = 0; i < line_count; i++) builder_bytes(out, lines[i]);
    }
    mem_free(lines);
    builder_fini(&copy);
}

void profile_write_folded(const struct profile *profile, struct builder *out)
{
    size_t start = out->count;
    uint32_t line_count = 0;
    for (uint32_t i = 0; i < profile->frame_count; i++) {
        if (profile->frames[i].self == 0) continue;
        profile_folded_line(profile, i, out);
        line_count++;
    }
    profile_sort_lines(out, start, line_count);
}
