/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/rpn_judge.c: see rpn_judge.h.
 */
#include "tests/fuzz/rpn_judge.h"

#include "vm/base/builder.h"
#include "vm/code/rpn.h"
#include "vm/code/toau.h"

#include <stdio.h>

static cy_err rpn_judge_read(cy_bytes text, bool korean, struct program **program_out,
                             struct builder *messages, uint32_t *unknown_out)
{
    struct rpn_options options = {.file = CY_BYTES("mutant.rpn"),
                                  .module_name = CY_BYTES("mutant"),
                                  .module_file = CY_BYTES("mutant.rpn"),
                                  .korean = korean};
    return rpn_read(&options, text, program_out, messages, unknown_out);
}

bool rpn_judge_same_bytes(const struct program *program, bool korean, cy_bytes wanted)
{
    struct builder text, toau, messages;
    struct program *again = NULL;
    uint32_t unknown = 0;
    builder_init(&text), builder_init(&toau), builder_init(&messages);
    cy_err err = korean ? rpn_write_korean(program, PROGRAM_NO_INDEX, &text)
                        : rpn_write(program, PROGRAM_NO_INDEX, &text);
    if (!cy_failed(err)) err = rpn_judge_read(builder_view(&text), korean, &again, &messages, &unknown);
    if (!cy_failed(err)) err = toau_write(again, &toau);
    bool same = !cy_failed(err) && cy_bytes_equal(builder_view(&toau), wanted);
    if (!same) fwrite(messages.data, 1, messages.count, stderr);
    program_free(&again);
    builder_fini(&messages), builder_fini(&toau), builder_fini(&text);
    return same;
}

/* NULL, or what is wrong. */
static const char *rpn_judge_accepted(const struct program *program)
{
    struct builder toau;
    struct program *loaded = NULL;
    struct code_failure failure;
    const char *wrong = NULL;
    builder_init(&toau);
    if (cy_failed(toau_write(program, &toau)))
        wrong = "accepted, but not written";
    else if (cy_failed(toau_load(builder_view(&toau), &loaded, &failure)))
        wrong = "accepted, but its file is refused";
    else if (!rpn_judge_same_bytes(loaded, false, builder_view(&toau)) ||
             !rpn_judge_same_bytes(loaded, true, builder_view(&toau)))
        wrong = "accepted, but its text gives other bytes";
    program_free(&loaded);
    builder_fini(&toau);
    return wrong;
}

void rpn_judge(cy_bytes text, bool korean, struct rpn_judgement *judgement_out)
{
    struct builder messages, closing;
    struct program *program = NULL;
    uint32_t unknown = 0;
    builder_init(&messages), builder_init(&closing);
    cy_err err = rpn_judge_read(text, korean, &program, &messages, &unknown);
    *judgement_out = (struct rpn_judgement){.accepted = !cy_failed(err), .unknown_count = unknown};
    builder_printf(&closing, "미인식 단어: %u건 (unknown words: %u)\n", unknown, unknown);
    cy_bytes said = builder_view(&messages);
    cy_bytes end = cy_bytes_skip(said, said.count - cy_min_size(said.count, closing.count));
    if (!cy_bytes_equal(end, builder_view(&closing)))
        judgement_out->wrong = "the count of unknown words does not close the log";
    else if (cy_failed(err) && (!cy_is(err, CY_ERR_BAD_FORMAT) || said.count == closing.count))
        judgement_out->wrong = "refused without a reason";
    else if (!cy_failed(err) && unknown)
        judgement_out->wrong = "accepted with unknown words";
    else if (!cy_failed(err))
        judgement_out->wrong = rpn_judge_accepted(program);
    program_free(&program);
    builder_fini(&closing), builder_fini(&messages);
}
