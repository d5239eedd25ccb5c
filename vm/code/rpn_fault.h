/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_fault.h: messages about RPN text, collected first and shown in one go.
 *
 * In:   a row of rpn_fault.def, a place in the text, arguments.
 * Out:  text like
 *
 *           gateway.rpn:7:7: error: unknown word `LOCL_GET`
 *               0 LOCL_GET
 *                 ^^^^^^^^
 *             hint: did you mean `LOCAL_GET`?
 *           1 error
 *           미인식 단어: 1건 (unknown words: 1)
 *
 * Invariant: sorted by place; at most LIMIT_COMPILE_ERRORS are kept, the others are counted. Unknown words are all
 *            counted. Characters of the text that could steer a terminal are not passed on.
 */
#ifndef CY_CODE_RPN_FAULT_H
#define CY_CODE_RPN_FAULT_H

#include "vm/base/builder.h"

enum rpn_fault {
#define RPN_FAULT(name, korean, english) RPN_FAULT_##name,
#include "vm/code/rpn_fault.def"
#undef RPN_FAULT
    RPN_FAULT_COUNT
};

struct rpn_place {
    size_t offset; /* bytes */
    size_t bytes;  /* of what is underlined */
    uint32_t line; /* from 1; 0: the text as a whole */
    uint32_t column;
};

struct rpn_faults {
    cy_bytes file; /* as messages show it */
    cy_bytes text;
    bool korean;
    struct builder items; /* struct rpn_fault_item */
    struct builder texts;
    uint32_t kept_count, error_count, unknown_count;
    bool no_memory;
};

void rpn_faults_init(struct rpn_faults *faults, cy_bytes file, cy_bytes text, bool korean);
void rpn_faults_fini(struct rpn_faults *faults);
/* FLOAT_ROUNDED is a note, all others are errors; UNKNOWN_WORD counts as such too. */
void rpn_fault_report(struct rpn_faults *faults, struct rpn_place place, enum rpn_fault fault,
                      cy_bytes argument_0, cy_bytes argument_1, cy_bytes argument_2, cy_bytes nearest);
/* True while looking for a nearest word is still worth its time. */
bool rpn_faults_want_nearest(const struct rpn_faults *faults);
/* Everything, and the lines that count. */
void rpn_faults_render(struct rpn_faults *faults, struct builder *out);

#endif
