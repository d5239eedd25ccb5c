/* SPDX-License-Identifier: MIT
 *
 * vm/run/profile_internal.h: the tree of frames, shared by profile.c and profile_svg.c.
 *
 * Invariant: frames[0] is the root, which stands for all; a parent has a smaller index than its children.
 */
#ifndef CY_RUN_PROFILE_INTERNAL_H
#define CY_RUN_PROFILE_INTERNAL_H

#include "vm/run/profile.h"

struct program;

#define PROFILE_NO_FRAME UINT32_MAX

enum profile_frame_kind { PROFILE_ROOT, PROFILE_FUNCTION, PROFILE_NATIVE };

struct profile_frame {
    const void *key; /* struct function or struct native_row */
    const struct program *program;
    uint8_t kind; /* enum profile_frame_kind */
    uint32_t parent;
    uint32_t child; /* first of its children */
    uint32_t sibling;
    uint64_t self;  /* weight of samples that end here */
    uint64_t total; /* with those below; filled by profile_sum */
};

struct profile {
    enum profile_unit unit;
    int64_t period_steps;
    int64_t left_steps; /* until the next sample */
    uint64_t pending;   /* weight since the last one */
    uint64_t sample_count;
    uint64_t cut_count;
    struct profile_frame *frames;
    uint32_t frame_count;
    uint32_t frame_capacity;
    uint32_t frames_max;
};

/* Appends the frame's name: "find", "routes.find", "list.map", a native's English name, "fn@12" for a function without
 * a name. */
void profile_frame_name(const struct profile_frame *frame, struct builder *out);
/* Fills every frame's total, on a copy of the frames. */
void profile_sum(struct profile_frame *frames, uint32_t frame_count);

#endif
