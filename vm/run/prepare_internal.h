/* SPDX-License-Identifier: MIT
 *
 * vm/run/prepare_internal.h: what prepare.c (instructions) and prepare_flow.c (targets, jumps) share.
 */
#ifndef CY_RUN_PREPARE_INTERNAL_H
#define CY_RUN_PREPARE_INTERNAL_H

#include "vm/code/opcode.h"
#include "vm/run/code.h"

#define PREPARE_NO_STEP UINT32_MAX
enum { PREPARE_NOTES_MAX = 32 }; /* more than any expression has; the oldest is settled past it */

/* What the model knows of a stack entry. All but SLOT are only noted: no step was emitted for the push. */
enum prepare_note {
    NOTE_SLOT,     /* in its slot */
    NOTE_LOCAL,    /* the value of local `index`, borrowed */
    NOTE_TAKE,     /* local `index`, to be moved */
    NOTE_INT,      /* an int that fits 32 bits */
    NOTE_CONSTANT, /* constant `index` */
    NOTE_GLOBAL,   /* module variable `index`; settled by whatever is no plain push and does not take it */
};
struct prepare_entry {
    enum prepare_note kind;
    uint32_t index;
};

struct prepare {
    struct vm *vm;
    struct instance *instance;
    const struct function *source;
    struct run_step *code; /* grows here; the function gets a copy that fits */
    uint32_t *offsets;
    uint32_t step_count;
    uint32_t step_capacity;
    cy_err err;

    struct prepare_entry *stack; /* stack_max entries */
    uint32_t height;
    /* Every position whose kind is not NOTE_SLOT, rising; some may be settled or popped by now. Few, so that no
     * instruction looks at more than these: a hostile function may have 65,535 values on its stack. */
    uint32_t noted[PREPARE_NOTES_MAX];
    uint32_t noted_count;
    uint32_t *heights; /* by offset: height + 1 where a jump arrives, else 0 */
    uint32_t *steps;   /* by offset: step of a jump target */
    bool has_handlers;
    uint32_t
        slice_offset; /* where the RANGE was that is the key of the instruction at hand; UINT32_MAX: none */
    bool has_globals; /* a NOTE_GLOBAL may be among the entries */

    struct instruction instruction; /* the one being lowered */
    uint32_t fusable_step; /* the step behind which nothing was emitted and whose result is the top entry */
};

uint32_t prepare_emit(struct prepare *p, enum run_op op, uint32_t x, uint32_t a, uint32_t b, uint32_t c);
void prepare_push(struct prepare *p, enum prepare_note kind, uint32_t index);
void prepare_settle(struct prepare *p, uint32_t position);
void prepare_settle_all(struct prepare *p);
/* At a jump target that nothing falls into: every entry below `height` is in its slot. */
void prepare_forget(struct prepare *p, uint32_t height);
uint32_t prepare_operand(struct prepare *p, uint32_t position, uint32_t own, uint32_t *x);
/* prepare_live.c: nobody can see what is left in `local` after the instruction at hand has moved it. */
bool prepare_is_dead(const struct prepare *p, uint32_t local);
void prepare_instruction(struct prepare *p);
bool prepare_has_cache(enum run_op op);

#endif
