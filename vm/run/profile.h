/* SPDX-License-Identifier: MIT
 *
 * vm/run/profile.h: where a program's time goes: samples of stacks, summed up in a tree of frames.
 *
 * In:   turns of fibers, told by fiber.c. Out: folded stacks, which flame-graph tools read, or an SVG flame graph.
 * Method: a sample is taken at a safepoint (a back edge, a call, or behind a native that charged) whenever the
 *       profile's period of budget steps is used up, by whichever fiber uses up the last one: what is left of a period
 *       goes over from turn to turn, so that calls much shorter than a period are seen as often as they run. A sample
 *       weighs what the thread's CPU clock counted in turns since the last one, or the period's steps, which are the
 *       same on every run.
 * Invariant: the tree has at most frames_max frames and LIMIT_PROFILE_DEPTH levels; what does not fit is counted where
 *       it left the tree. Functions are known by address: programs must outlive the profile.
 */
#ifndef CY_RUN_PROFILE_H
#define CY_RUN_PROFILE_H

#include "vm/base/builder.h"
#include "vm/base/error.h"

struct fiber;
struct profile;

enum profile_unit { PROFILE_TIME, PROFILE_STEPS };

/* `period_steps` 0: LIMIT_PROFILE_STEPS; `frames_max` 0: LIMIT_PROFILE_FRAMES. */
CY_NODISCARD cy_err profile_new(enum profile_unit unit, uint32_t period_steps, uint32_t frames_max,
                                struct profile **profile_out);
void profile_free(struct profile **profile);
/* Forgets all samples: a worker begins with its own. */
void profile_clear(struct profile *profile);

uint64_t profile_sample_count(const struct profile *profile);
/* Samples of which a part did not fit into the tree. */
uint64_t profile_cut_count(const struct profile *profile);

/* "main;handle;find 123" one line for each stack, sorted; the number is nanoseconds or steps. */
void profile_write_folded(const struct profile *profile, struct builder *out);
/* A flame graph as one SVG file: no script, no font of its own; a frame's title says its name and share. */
void profile_write_svg(const struct profile *profile, cy_bytes title, bool korean, struct builder *out);

/* -- for fiber.c ----------------------------------------------------------------------------------------- */
/* Steps that the next turn may take. */
int64_t profile_budget(const struct profile *profile);
/* The clock is looked at only when the profile counts time. */
bool profile_wants_time(const struct profile *profile);
/* A turn took `steps` (it may be more than its budget) and `spent_ns`. When the period is used up, the fiber's stack is
 * the sample; it is NULL when the fiber has none any more. */
void profile_turn(struct profile *profile, const struct fiber *fiber, uint64_t steps, uint64_t spent_ns);

#endif
