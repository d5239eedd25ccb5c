/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_rpn.c: RPN text from anybody.
 *
 * Promise: that of rpn_judge.h.
 */
#include "tests/fuzz/rpn_judge.h"
#include "tests/fuzz/target.h"
#include "vm/base/check.h"

#include <stdio.h>

void fuzz_target_rpn(cy_bytes input)
{
    struct rpn_judgement judgement;
    rpn_judge(input, input.count & 1, &judgement);
    if (judgement.wrong) fprintf(stderr, "%s\n", judgement.wrong);
    CHECK(!judgement.wrong);
}
