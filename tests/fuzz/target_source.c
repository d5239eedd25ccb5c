/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_source.c: source text from anybody, as the only file of a program.
 *
 * Promise: the compiler gives a program or messages, never both and never neither. A program is written, read back
 *          and run within bounds. What parses is formatted; formatting it again changes nothing.
 */
#include "compiler/compiler.h"
#include "compiler/fmt.h"
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/code/toau.h"
#include "vm/code/verify.h"

#include <string.h>

static cy_err fuzz_source_read(void *context, const char *path, struct builder *out)
{
    const cy_bytes *input = context;
    if (strcmp(path, "main.han") != 0) return CY_ERR(NOT_FOUND);
    builder_bytes(out, *input);
    return builder_error(out);
}

static void fuzz_source_format(cy_bytes input, enum fmt_keywords keywords)
{
    struct builder once, twice, messages;
    struct fmt_options options = {.keywords = keywords};
    builder_init(&once), builder_init(&twice), builder_init(&messages);
    cy_err err = fmt_source(CY_BYTES("main.han"), input, &options, &once, &messages);
    CHECK(!cy_is(err, CY_ERR_INTERNAL));
    CHECK(cy_failed(err) == (messages.count > 0));
    if (!cy_failed(err)) {
        CHECK(!cy_failed(fmt_source(CY_BYTES("main.han"), builder_view(&once), &options, &twice, &messages)));
        CHECK(cy_bytes_equal(builder_view(&once), builder_view(&twice)));
    }
    builder_fini(&messages), builder_fini(&twice), builder_fini(&once);
}

static void fuzz_source_run(const struct program *program)
{
    struct builder toau;
    struct program *again;
    struct code_failure failure;
    builder_init(&toau);
    CHECK(!cy_failed(toau_write(program, &toau)));
    CHECK(!cy_failed(toau_load(builder_view(&toau), &again, &failure)));
    fuzz_run_program(again);
    program_free(&again);
    builder_fini(&toau);
}

void fuzz_target_source(cy_bytes input)
{
    struct compile_options options = {
        .path = "main.han",
        .stdlib = stdlib_modules,
        .stdlib_count = stdlib_module_count,
        .korean = input.count & 1,
        .tests = input.count & 2,
        .read_source = fuzz_source_read,
        .context = &input,
    };
    struct program *program;
    struct builder messages;
    uint32_t error_count;
    builder_init(&messages);
    cy_err err = compile_program(&options, &program, &messages, &error_count);
    CHECK(!cy_is(err, CY_ERR_INTERNAL));
    CHECK(cy_failed(err) == (error_count > 0) && cy_failed(err) == (messages.count > 0));
    if (!cy_failed(err)) fuzz_source_run(program);
    program_free(&program);
    builder_fini(&messages);
    fuzz_source_format(input, (enum fmt_keywords)(input.count % 3));
}
