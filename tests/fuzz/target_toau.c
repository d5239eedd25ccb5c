/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_toau.c: a .toau file from anybody.
 *
 * Promise: what is refused names a rule. What is accepted has one encoding only, the given one, and runs within
 *          bounds.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/code/toau.h"
#include "vm/code/verify.h"

bool fuzz_toau_repair(uint8_t *file, size_t count)
{
    if (count < 4) return false;
    uint32_t sum = crc32c(0, cy_bytes_of(file, count - 4));
    for (uint32_t i = 0; i < 4; i++) file[count - 4 + i] = (uint8_t)(sum >> 8 * i);
    return true;
}

void fuzz_target_toau(cy_bytes input)
{
    struct program *program;
    struct code_failure failure = {0};
    cy_err err = toau_load(input, &program, &failure);
    struct builder text;
    builder_init(&text);
    if (cy_failed(err)) {
        CHECK(failure.rule != CODE_RULE_NONE || cy_is(err, CY_ERR_NO_MEMORY));
        code_failure_describe(&failure, false, &text);
    } else {
        CHECK(!cy_failed(toau_write(program, &text)));
        CHECK(cy_bytes_equal(builder_view(&text), input));
        fuzz_run_program(program);
        program_free(&program);
    }
    builder_fini(&text);
}
