/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_spoil.h: for each rule of rule.def, a way to break it and nothing before it.
 *
 * In:   a program that was accepted, or the bytes of one.
 * Out:  the same, spoiled: reading and verifying must name the rule. False when this program has no place
 *       for it.
 */
#ifndef CY_TESTS_CODE_PROGRAM_SPOIL_H
#define CY_TESTS_CODE_PROGRAM_SPOIL_H

#include "vm/base/builder.h"
#include "vm/code/program.h"
#include "vm/code/verify.h"

/* splitmix64: the same numbers everywhere. */
struct spoil_random {
    uint64_t state;
};
uint64_t spoil_random_next(struct spoil_random *random);
/* 0..end-1; end > 0. */
uint32_t spoil_random_below(struct spoil_random *random, uint32_t end);

struct spoil {
    enum code_rule rule;
    bool (*program)(struct program *program, struct spoil_random *random); /* one of the two is set */
    bool (*file)(struct builder *file, struct spoil_random *random);
};
/* NULL past the last. READ_SIZE has no row: it needs a gigabyte. */
const struct spoil *spoil_at(size_t index);

/* Makes the checksum (and nothing else) right again. */
void spoil_repair_checksum(struct builder *file);
/* Puts bytes into a function's code; jumps and line tables follow. `at` is an instruction start or the end. */
void spoil_insert_code(struct program *program, struct function *function, uint32_t at, cy_bytes bytes);

#endif
