/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/program_spoil_internal.h: what program_spoil.c and program_spoil_code.c share.
 */
#ifndef CY_TESTS_CODE_PROGRAM_SPOIL_INTERNAL_H
#define CY_TESTS_CODE_PROGRAM_SPOIL_INTERNAL_H

#include "tests/unit/code/program_spoil.h"

void *spoil_alloc(struct program *program, size_t bytes);
/* As memcpy, but nothing may come from nowhere. */
void spoil_copy(void *to, const void *from, size_t bytes);
void spoil_u32(uint8_t *at, uint32_t number);
struct function *spoil_any_function(struct program *program, struct spoil_random *random);
/* The first function from a random place on that does or does not capture; PROGRAM_NO_INDEX for none. */
uint32_t spoil_find_function(struct program *program, struct spoil_random *random, bool captures);
/* Puts bytes in front of a function's code. Always true. */
bool spoil_prepend(struct program *program, struct function *function, const uint8_t *bytes, size_t count);
#define SPOIL_PREPEND(program, function, ...) \
    spoil_prepend(program, function, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define SPOIL_U16(number) (uint8_t)(number), (uint8_t)((number) >> 8)

/* Rows about code and line tables; NULL past the last. */
const struct spoil *spoil_code_at(size_t index);

#endif
