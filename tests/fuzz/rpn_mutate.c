/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/rpn_mutate.c: the command `rpn_mutate [--seed N] [--budget-ms N] FILE...`: damages RPN texts.
 *
 * In:   .toau files, whose texts in both spellings are damaged, and .rpn files.
 * Out:  counts, and "N passed, N failed"; exit code 1 when a text was judged wrongly. The same seed and files give the
 *       same texts.
 *
 * What is asserted of each text is in rpn_judge.h.
 */
#include "tests/fuzz/rpn_judge.h"
#include "tests/unit/code/program_spoil.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/code/opcode.h"
#include "vm/code/rpn.h"
#include "vm/code/rpn_word.h"
#include "vm/code/toau.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum { RPN_MUTATE_FILES_MAX = 512, RPN_MUTATE_SAMPLE_BYTES = 1 << 15 };

struct rpn_mutate {
    struct builder texts[RPN_MUTATE_FILES_MAX];
    size_t text_count;
    uint64_t seed, budget_ms;
    uint64_t tried, accepted, unknown, failed;
    struct spoil_random random;
};

static uint32_t rpn_mutate_below(struct rpn_mutate *mutate, size_t end)
{
    return spoil_random_below(&mutate->random, (uint32_t)cy_min_size(end, UINT32_MAX));
}

static uint64_t rpn_mutate_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* -- damage ---------------------------------------------------------------------------------------------- */

/* Words that mean something, and numbers at edges. */
static void rpn_mutate_word(struct rpn_mutate *mutate, struct builder *out)
{
    static const char *const words[] = {
        "0",          "-1",  "127",   "128",  "255",   "256",    "65535",       "65536",
        "0x1p+0",     "nan", "-inf",  "0.1",  "\"\"",  "f0",     "f1",          "g0",
        "r0",         "L1",  "L1:",   "L2:",  "@1:1",  "@0:",    "int",         "function",
        "4294967296", "#",   "\"\\x", "\xff", "1e400", "record", "\"a\" CONST", "\n"};
    const struct opcode_row *row;
    switch (rpn_mutate_below(mutate, 3)) {
    case 0:
        row = opcode_row((uint8_t)rpn_mutate_below(mutate, 256));
        if (row->name) builder_text(out, rpn_opcode_text(row, rpn_mutate_below(mutate, 2)));
        break;
    case 1:
        builder_text(out, rpn_word_text((enum rpn_word)(1 + rpn_mutate_below(mutate, RPN_WORD_COUNT - 1)),
                                        rpn_mutate_below(mutate, 2)));
        break;
    default: builder_text(out, words[rpn_mutate_below(mutate, CY_COUNT_OF(words))]);
    }
}

static bool rpn_mutate_is_gap(uint8_t byte) { return byte == ' ' || byte == '\n'; }

/* A gap between words at or behind a random place. */
static size_t rpn_mutate_gap(struct rpn_mutate *mutate, cy_bytes text)
{
    size_t at = rpn_mutate_below(mutate, text.count + 1);
    while (at < text.count && !rpn_mutate_is_gap(text.data[at])) at++;
    return at;
}

/* One change: bytes, a word put in, words taken out, doubled or moved, the rest cut off. */
static void rpn_mutate_change(struct rpn_mutate *mutate, cy_bytes text, struct builder *out)
{
    size_t a = rpn_mutate_gap(mutate, text), b = a + rpn_mutate_below(mutate, 40);
    while (b < text.count && !rpn_mutate_is_gap(text.data[b])) b++;
    b = cy_min_size(b, text.count);
    size_t c = rpn_mutate_gap(mutate, text);
    cy_bytes part = cy_bytes_slice(text, a, b);
    switch (rpn_mutate_below(mutate, 8)) {
    case 0:
        builder_bytes(out, text);
        if (out->count && !out->failed)
            out->data[rpn_mutate_below(mutate, out->count)] = (uint8_t)spoil_random_next(&mutate->random);
        return;
    case 1:
        builder_bytes(out, cy_bytes_slice(text, 0, a));
        builder_u8(out, ' ');
        rpn_mutate_word(mutate, out);
        builder_u8(out, ' ');
        builder_bytes(out, cy_bytes_skip(text, a));
        return;
    case 2: /* another word instead of some */
        builder_bytes(out, cy_bytes_slice(text, 0, a));
        builder_u8(out, ' ');
        rpn_mutate_word(mutate, out);
        builder_u8(out, ' ');
        builder_bytes(out, cy_bytes_skip(text, b));
        return;
    case 3:
        builder_bytes(out, cy_bytes_slice(text, 0, a));
        builder_bytes(out, cy_bytes_skip(text, b));
        return;
    case 4: builder_bytes(out, cy_bytes_slice(text, 0, rpn_mutate_below(mutate, 8) ? text.count : a)); return;
    default: /* a copy elsewhere */
        builder_bytes(out, cy_bytes_slice(text, 0, c));
        builder_bytes(out, part);
        builder_u8(out, '\n');
        builder_bytes(out, cy_bytes_skip(text, c));
    }
}

/* -- judging --------------------------------------------------------------------------------------------- */

static void rpn_mutate_complain(struct rpn_mutate *mutate, cy_bytes text, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "mutant-%" PRIu64 ".rpn", mutate->tried);
    FILE *kept = fopen(path, "wb");
    if (kept) {
        fwrite(text.data, 1, text.count, kept);
        fclose(kept);
    }
    fprintf(stderr, "text %" PRIu64 " of seed %" PRIu64 ": %s (%s)\n", mutate->tried, mutate->seed, what,
            path);
    mutate->failed++;
}

static void rpn_mutate_judge(struct rpn_mutate *mutate, cy_bytes text)
{
    struct rpn_judgement judgement;
    mutate->tried++;
    rpn_judge(text, mutate->tried & 1, &judgement);
    if (judgement.wrong) rpn_mutate_complain(mutate, text, judgement.wrong);
    mutate->unknown += judgement.unknown_count;
    mutate->accepted += judgement.accepted;
}

/* -- texts ----------------------------------------------------------------------------------------------- */

static bool rpn_mutate_load(const char *path, struct builder *file)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    uint8_t *room;
    size_t got = 1;
    while (got && (room = builder_reserve(file, 65536))) file->count += got = fread(room, 1, 65536, stream);
    bool read_all = !ferror(stream) && !file->failed;
    fclose(stream);
    return read_all;
}

/* Large texts are judged once and damaged no further: a mutant should take a millisecond. */
static void rpn_mutate_add(struct rpn_mutate *mutate, cy_bytes text)
{
    CHECK(mutate->text_count < RPN_MUTATE_FILES_MAX);
    rpn_mutate_judge(mutate, text);
    if (text.count <= RPN_MUTATE_SAMPLE_BYTES) builder_bytes(&mutate->texts[mutate->text_count++], text);
}

static bool rpn_mutate_take(struct rpn_mutate *mutate, const char *path)
{
    struct builder file, text;
    builder_init(&file), builder_init(&text);
    bool usable = rpn_mutate_load(path, &file);
    bool is_text = strlen(path) > 4 && strcmp(path + strlen(path) - 4, ".rpn") == 0;
    struct program *program = NULL;
    struct code_failure failure;
    if (usable && is_text) rpn_mutate_add(mutate, builder_view(&file));
    if (usable && !is_text) usable = !cy_failed(toau_load(builder_view(&file), &program, &failure));
    for (int korean = 0; usable && !is_text && korean < 2; korean++) {
        builder_clear(&text);
        cy_err err = korean ? rpn_write_korean(program, PROGRAM_NO_INDEX, &text)
                            : rpn_write(program, PROGRAM_NO_INDEX, &text);
        CHECK(!cy_failed(err));
        rpn_mutate_add(mutate, builder_view(&text));
        if (!rpn_judge_same_bytes(program, korean, builder_view(&file)))
            rpn_mutate_complain(mutate, builder_view(&text), "the text of a file gives other bytes");
    }
    program_free(&program);
    builder_fini(&text), builder_fini(&file);
    return usable;
}

static void rpn_mutate_once(struct rpn_mutate *mutate)
{
    struct builder now, next;
    builder_init(&now), builder_init(&next);
    builder_bytes(&now, builder_view(&mutate->texts[rpn_mutate_below(mutate, mutate->text_count)]));
    for (uint32_t changes = 1 + rpn_mutate_below(mutate, 4); changes > 0; changes--) {
        builder_clear(&next);
        rpn_mutate_change(mutate, builder_view(&now), &next);
        builder_clear(&now);
        builder_bytes(&now, builder_view(&next));
    }
    rpn_mutate_judge(mutate, builder_view(&now));
    builder_fini(&now), builder_fini(&next);
}

int main(int argc, char **argv)
{
    static struct rpn_mutate mutate = {.seed = 20261130, .budget_ms = 10000};
    int at = 1;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        uint64_t *number = strcmp(argv[at], "--seed") == 0 ? &mutate.seed : &mutate.budget_ms;
        if (!cy_bytes_parse_u64(cy_bytes_from_text(argv[at + 1]), UINT64_MAX, number)) return 2;
    }
    mutate.random.state = mutate.seed;
    fprintf(stderr, "seed %" PRIu64 "\n", mutate.seed);
    for (; at < argc; at++) {
        if (rpn_mutate_take(&mutate, argv[at])) continue;
        fprintf(stderr, "rpn_mutate: %s cannot be read\n", argv[at]);
        return 2;
    }
    CHECK(mutate.text_count > 0);
    uint64_t originals = mutate.tried, end_ms = rpn_mutate_now_ms() + mutate.budget_ms;
    while (rpn_mutate_now_ms() < end_ms) rpn_mutate_once(&mutate);
    for (size_t i = 0; i < mutate.text_count; i++) builder_fini(&mutate.texts[i]);
    uint64_t mutants = mutate.tried - originals;
    printf("seed %" PRIu64 ": %" PRIu64 " texts, %" PRIu64 " damaged; accepted %" PRIu64
           "; unknown words %" PRIu64 "\n",
           mutate.seed, originals, mutants, mutate.accepted, mutate.unknown);
    bool some = mutants > 0 && mutate.accepted > originals && mutate.unknown > 0;
    uint64_t failed = mutate.failed + (some ? 0 : 1);
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", mutate.tried - mutate.failed, failed);
    return failed ? 1 : 0;
}
