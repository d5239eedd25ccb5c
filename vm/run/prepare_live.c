/* SPDX-License-Identifier: MIT
 *
 * vm/run/prepare_live.c: whether what is left in a local can still be read.
 *
 * In:   verified code and the instruction at hand. Out: true only when it is certain.
 * Method: follows the code from there, both ways at jumps, for a bounded number of instructions.
 */
#include "vm/run/prepare_internal.h"
#include "vm/run/vm_internal.h"

/* How far prepare_is_dead looks: instructions in all, and jumps whose targets it remembers. Constants, so that
 * preparing stays linear. */
enum { PREPARE_LIVE_LOOKS = 48, PREPARE_LIVE_PATHS_MAX = 8 };
struct prepare_live_paths {
    uint32_t offsets[PREPARE_LIVE_PATHS_MAX];
    uint32_t count;
    uint32_t followed;
};

static bool prepare_live_add_path(struct prepare_live_paths *paths, uint32_t offset)
{
    for (uint32_t i = 0; i < paths->count; i++)
        if (paths->offsets[i] == offset) return true; /* what follows from there is looked at already */
    if (paths->count == PREPARE_LIVE_PATHS_MAX) return false;
    paths->offsets[paths->count++] = offset;
    return true;
}

enum prepare_live_use { PREPARE_LIVE_NONE, PREPARE_LIVE_ENDS, PREPARE_LIVE_READS };

/* What an instruction does to a local: nothing, end its life, or read it (or that is not worth knowing). */
static enum prepare_live_use prepare_live_use_of(const struct instruction *instruction, uint32_t local)
{
    const struct format_row *format =
        format_row((enum operand_format)opcode_row(instruction->opcode)->format);
    switch (instruction->opcode) {
    case OP_RETURN:
    case OP_THROW:
    case OP_RETHROW: return PREPARE_LIVE_ENDS;
    case OP_LOCAL_SET:
    case OP_LOCAL_SET_WIDE: return instruction->operands[0] == local ? PREPARE_LIVE_ENDS : PREPARE_LIVE_NONE;
    case OP_CLOSURE:
    case OP_CLOSURE_WIDE: return PREPARE_LIVE_READS;
    case OP_INTLOOP_NEXT:
    case OP_ITER_NEXT:
    case OP_ITER_NEXT_PAIR: return PREPARE_LIVE_NONE; /* sets it on one of its ways: prepare_is_dead */
    default: break;
    }
    for (int i = 0; i < format->operand_count; i++)
        if (format->operands[i].kind == OPERAND_SLOT && instruction->operands[i] == local)
            return PREPARE_LIVE_READS;
    return PREPARE_LIVE_NONE;
}

/* On every way from here the local is set again before it is read, or the call ends. Without this every last use of a
 * number in a loop would cost a step that moves it first (one of six in matmul's inner loop). */
bool prepare_is_dead(const struct prepare *p, uint32_t local)
{
    if (p->has_handlers) return false;
    cy_bytes code = cy_bytes_of(p->source->code, p->source->code_bytes);
    struct prepare_live_paths paths = {.offsets = {p->instruction.next_offset}, .count = 1};
    for (int looks = 0; paths.followed < paths.count; paths.followed++) {
        bool ended = false;
        for (uint32_t offset = paths.offsets[paths.followed]; !ended;) {
            struct instruction next;
            p->vm->prepare_looks++;
            if (looks++ == PREPARE_LIVE_LOOKS || !opcode_decode(code, offset, &next)) return false;
            enum prepare_live_use use = prepare_live_use_of(&next, local);
            if (use == PREPARE_LIVE_READS) return false;
            ended = use == PREPARE_LIVE_ENDS || opcode_row(next.opcode)->flags & OPF_END;
            const struct format_row *format =
                format_row((enum operand_format)opcode_row(next.opcode)->format);
            for (int i = 0; i < format->operand_count && use != PREPARE_LIVE_ENDS; i++) {
                uint8_t kind = format->operands[i].kind;
                bool jump = kind == OPERAND_FORWARD || kind == OPERAND_BACKWARD;
                if (jump && !prepare_live_add_path(&paths, (uint32_t)next.operands[i])) return false;
                bool sets = kind == OPERAND_SLOT && next.operands[i] == local; /* of a loop's next */
                ended |= sets;
            }
            offset = next.next_offset;
        }
    }
    return true;
}
