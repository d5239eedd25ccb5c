/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/rpn_judge.h: reads RPN text of which nothing is known, and judges what the reader made of it.
 *
 * Promise: a text that is refused has messages and the line that counts unknown words. One that is accepted has no
 *          unknown word and is a program whose .toau loads, and whose own text gives the same bytes in both spellings.
 */
#ifndef CY_TESTS_FUZZ_RPN_JUDGE_H
#define CY_TESTS_FUZZ_RPN_JUDGE_H

#include "vm/base/bytes.h"
#include "vm/code/program.h"

struct rpn_judgement {
    const char *wrong; /* NULL: the promise was kept */
    bool accepted;
    uint32_t unknown_count;
};
/* `korean`: the messages. */
void rpn_judge(cy_bytes text, bool korean, struct rpn_judgement *judgement_out);
/* The program written as text and read back is `wanted`; else false, and stderr has the messages. */
bool rpn_judge_same_bytes(const struct program *program, bool korean, cy_bytes wanted);

#endif
