/* SPDX-License-Identifier: MIT
 *
 * vm/run/code.h: prepared code and the program instance it belongs to. Private to vm/run.
 *
 * The file's stack code is lowered to three-address code over a frame of slots:
 *
 *   slot 0 .. local_count-1            locals, parameters first
 *   slot local_count .. slot_count-1   the stack of the file's code: height h lives in slot local_count +
 *   h - 1
 *
 * Invariant of slots: what the stack code has popped holds no reference (any plain value may be left
 *       there). So unwinding lets go of whatever is a heap value in a frame, without knowing the height,
 *       and a call finds clean slots.
 */
#ifndef CY_RUN_CODE_H
#define CY_RUN_CODE_H

#include "vm/code/native_table.h"
#include "vm/run/record.h"
#include "vm/run/vm.h"

enum run_op {
#define RUN_OP(name, flags, meaning) RUN_##name,
#include "vm/run/run_op.def"
#undef RUN_OP
    RUN_OP_COUNT
};

enum run_op_flags { RUN_FLAG_JUMP = 1, RUN_FLAG_INT_C = 2 };
/* Flags by enum run_op. */
extern const uint8_t run_op_flags[RUN_OP_COUNT];

/* Six comparisons in one order, four times: EQ NE LT LE GT GE. */
#define RUN_COMPARISON_FORM(first_)                                                                          \
    _Static_assert(RUN_##first_##EQ + 1 == RUN_##first_##NE && RUN_##first_##EQ + 2 == RUN_##first_##LT &&   \
                       RUN_##first_##EQ + 3 == RUN_##first_##LE &&                                           \
                       RUN_##first_##EQ + 4 == RUN_##first_##GT && RUN_##first_##EQ + 5 == RUN_##first_##GE, \
                   "forms of comparisons are found by their distance")
#define RUN_COMPARISON_FORM_INT(first_)                                    \
    _Static_assert(RUN_##first_##EQ_INT == RUN_##first_##GE + 1 &&         \
                       RUN_##first_##EQ_INT + 1 == RUN_##first_##NE_INT && \
                       RUN_##first_##EQ_INT + 2 == RUN_##first_##LT_INT && \
                       RUN_##first_##EQ_INT + 3 == RUN_##first_##LE_INT && \
                       RUN_##first_##EQ_INT + 4 == RUN_##first_##GT_INT && \
                       RUN_##first_##EQ_INT + 5 == RUN_##first_##GE_INT,   \
                   "forms of comparisons are found by their distance")
RUN_COMPARISON_FORM();
RUN_COMPARISON_FORM_INT();
RUN_COMPARISON_FORM(UNLESS_);
RUN_COMPARISON_FORM_INT(UNLESS_);
#undef RUN_COMPARISON_FORM
#undef RUN_COMPARISON_FORM_INT
_Static_assert(RUN_UNLESS_EQ == RUN_GE_INT + 1 && RUN_EQ_CONSTANT == RUN_UNLESS_GE_INT + 1 &&
                   RUN_UNLESS_NE_CONSTANT == RUN_EQ_CONSTANT + 3,
               "slow_compare tells the forms apart by their ranges");
_Static_assert(RUN_LOCAL_PATH_SET + 2 == RUN_LOCAL_PATH_APPEND,
               "preparing tells paths of locals by their range");

/* a is the destination slot, or the target of a jump; b and c operands; x small counts and OWN flags. */
struct run_step {
    uint16_t op;
    uint16_t x;
    uint32_t a;
    uint32_t b;
    uint32_t c;
};
/* x: the operand's slot is let go by the instruction (a stack slot or a local at its last use). */
enum { RUN_OWN_B = 1, RUN_OWN_C = 2 };

/* Behind a FIELD_GET, in the space of one step: where the field was last time. */
struct run_cache {
    const void *shape; /* struct record_shape of a record, NULL for a map */
    uint32_t index;
    uint32_t unused;
};
_Static_assert(sizeof(struct run_cache) <= sizeof(struct run_step), "a cache takes one step");

struct code_function {
    struct run_step *code;
    uint32_t code_count;
    uint32_t slot_count;
    uint32_t local_count;
    uint32_t call_steps; /* what a call charges: 1, and more for frames whose slots take time to clear */
    uint32_t *offsets;   /* by step: offset in the file's code */
    const struct function *source;
    uint8_t param_count;
    uint8_t required_count;
};

struct native_link {
    const struct native_row *row;
    native_body body;
    struct native_signature signature;
    cy_value function; /* the native as a value, made on first use; owned */
};

/* Constants 0..constant_count-1 are the program's; these follow. */
enum { CODE_CONSTANT_NIL, CODE_CONSTANT_FALSE, CODE_CONSTANT_TRUE, CODE_CONSTANT_ABSENT, CODE_CONSTANTS_OWN };

struct instance {
    struct instance *next;
    struct instance **link;  /* what points at this one */
    uint32_t refs;           /* hosts and fibers */
    uint32_t function_count; /* function values alive; they keep the code, not the variables */
    struct vm *vm;
    const struct program *program;
    cy_value *constants;
    cy_value *globals;
    cy_value *function_values; /* of functions that capture nothing, made on first use; owned */
    struct code_function *functions;
    struct record_shape **shapes;
    struct native_link *natives;
    bool open; /* refs never reached 0 */
};

/* The kind a value has for IS_KIND and signatures; internal tags count as nil, as TAG_ABSENT does. */
extern const uint8_t value_kind_by_tag[TAG_COUNT];
static inline uint32_t value_kind_bit(cy_value value) { return 1u << value_kind_by_tag[value.tag]; }

/* prepare.c */
CY_NODISCARD cy_err prepare_function(struct instance *instance, uint32_t index, struct code_function *out);
void prepare_free(struct vm *vm, struct code_function *function);

/* instance.c */
void instance_function_dropped(struct vm *vm, struct instance *instance);
/* The end of the VM: variables first, code when no function value is left. */
void instance_shut_all(struct vm *vm);
void instance_free_all(struct vm *vm);

#endif
