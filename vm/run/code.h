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

enum run_op_flags {
    RUN_FLAG_JUMP = 1,
    RUN_FLAG_INT_C = 2,
    RUN_FLAG_K_B = 4,
    RUN_FLAG_K_C = 8,
    RUN_FLAG_A = 16,
    RUN_FLAG_B = 32,
    RUN_FLAG_C = 64,
    RUN_FLAG_V = 128
};
/* Flags by enum run_op. */
extern const uint8_t run_op_flags[RUN_OP_COUNT];

/* Six comparisons, EQ NE LT LE GT GE, against a slot, an int or a constant; as a value, a jump unless or if, or the end
 * of a loop. */
enum { RUN_COMPARE_COUNT = 6, RUN_COMPARE_FORMS = 3 * RUN_COMPARE_COUNT };
_Static_assert(RUN_GE == RUN_EQ + 5 && RUN_EQ_INT == RUN_EQ + 6 && RUN_EQ_CONSTANT == RUN_EQ + 12 &&
                   RUN_UNLESS_EQ == RUN_EQ + RUN_COMPARE_FORMS &&
                   RUN_IF_EQ == RUN_UNLESS_EQ + RUN_COMPARE_FORMS &&
                   RUN_LOOP_EQ == RUN_IF_EQ + RUN_COMPARE_FORMS &&
                   RUN_LOOP_GE_CONSTANT + 1 == RUN_LOOP_EQ + RUN_COMPARE_FORMS,
               "forms of comparisons are found by their distance");
/* Steps that leave a place for the next step instead of a value, and steps that take such a place. */
enum { RUN_BORROW = RUN_INDEX_BORROW - RUN_INDEX_GET, RUN_CELL = RUN_CELL_INDEX_GET - RUN_INDEX_GET };
_Static_assert(RUN_CAPTURE + RUN_BORROW == RUN_CAPTURE_BORROW &&
                   RUN_FIELD_GET + RUN_CELL == RUN_CELL_FIELD_GET &&
                   RUN_CELL_FIELD_BORROW - RUN_CELL_FIELD_GET == 3,
               "forms of reading are found by their distance");
_Static_assert(RUN_LOCAL_INDEX_SET - RUN_INDEX_SET == 6 && RUN_FIELD_APPEND - RUN_INDEX_SET == 5,
               "forms of writing are found by their distance");

/* a is the destination slot, or the target of a jump; b and c operands; x small counts and OWN flags. */
struct run_step {
    uint16_t op;
    uint16_t x;
    uint32_t a;
    uint32_t b;
    uint32_t c;
};
/* In x. OWN: the operand's slot is let go by the instruction (a stack slot or a local at its last use). SWAPPED: c is
 * the left side. NUMBER, CONSTANT: the operand is no slot but an int, or a constant. */
enum {
    RUN_OWN_B = 1,
    RUN_OWN_C = 2,
    RUN_SWAPPED = 4,
    RUN_NUMBER_B = 8,
    RUN_NUMBER_C = 16,
    RUN_CONSTANT_C = 32
};

/* What an operand of prepared code names, in the frame that begins at `r`, or in the constants `k`. */
static inline cy_value *run_slot(cy_value *r, uint32_t operand) { return (cy_value *)((char *)r + operand); }
static inline const cy_value *run_constant(const cy_value *k, uint32_t operand)
{
    return (const cy_value *)((const char *)k + operand);
}

/* Behind a step with a field, in the space of one step: where the field was last time. */
struct run_cache {
    const void *shape; /* struct record_shape of a record, NULL for a map, &run_cache_ref for a ref */
    uint32_t index;
    uint32_t kind; /* what a record's field may hold: enum value_kind, or RUN_CACHE_ANY, or RUN_CACHE_ASK */
};
enum { RUN_CACHE_ASK = 0xfe, RUN_CACHE_ANY = 0xff };
/* Stands as the shape of a cell (ref), whose only field is `value`. */
extern const char run_cache_ref;
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
