/* SPDX-License-Identifier: MIT
 *
 * tests/fault/fail_allocations.c: the command `fail_allocations [--differs] FILE.toau...`: runs each file with the
 * n-th allocation failing, for rising n, until nothing fails any more.
 *
 * In:   .toau files of programs that need natives of group CORE only. `--differs` in front of one: its source says
 *       ("// without memory: ...") that it catches memory's error and then does something else, without a word of it.
 * Out:  "N passed, N failed"; each failure names file, walk and n. Exit code 1 when anything failed.
 *
 * Four walks over each file:
 *   load      toau_load                     with the n-th and all later allocations failing
 *   rewrite   program_canonicalise, write   the same
 *   run       a VM, main, to its end        the same
 *   limit     a VM, main, to its end        under a memory limit of n bytes: memory comes back when something
 *                                           is let go, so handlers and defers run on
 *
 * What is asserted of each step: it ends as it does with memory enough, or says that there was none, in its error
 * or, when it caught that, in what it prints; never
 * a crash (sanitizers), never a leak (the VM's heap is empty when it is freed; the leak checker sees the rest).
 * Invariant: once a walk has succeeded it has gone through every allocation its action makes, up to the
 *       steps that grow by 1/16 past the first hundred, which keeps a long program from taking n squared. A
 *       walk that has taken a second goes on in doublings: a few programs work for that long each time.
 */
#include "tests/fuzz/toau_run.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/code/opcode.h"
#include "vm/code/toau.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
    FAIL_STEP_FINE_END = 100,
    FAIL_STEP_PARTS = 16,
    FAIL_LIMIT_STEP_BYTES = 256,
    FAIL_WALK_FINE_S = 1,
    FAIL_RECORD_BYTES = 1 << 16
};

struct fail_file {
    const char *path;
    cy_bytes bytes;
    struct program *program;
    bool catches; /* some function has a handler */
    bool differs; /* and the source says that it then goes another way */
    /* How it ends with memory enough. */
    enum toau_run_end end;
    struct builder printed, error;
    /* Of all walks. */
    unsigned passed, failed;
};

static const struct toau_run_bounds fail_bounds = {
    .memory_bytes_max = 1 << 24, .turns_max = 100, .cpu_burst_ms = 200, .call_exports = false};

static void fail_complain(struct fail_file *file, const char *walk, uint64_t n, const char *what,
                          const struct builder *error)
{
    fprintf(stderr, "%s: %s, n = %" PRIu64 ": %s", file->path, walk, n, what);
    if (error && error->count) fprintf(stderr, ": %.*s", (int)error->count, (const char *)error->data);
    fputc('\n', stderr);
    file->failed++;
}

/* One walk: the n it is at, and how long it has been going on. */
struct fail_walk {
    uint64_t n;
    clock_t start;
};

static void fail_next(struct fail_walk *walk)
{
    bool fine = clock() - walk->start < FAIL_WALK_FINE_S * CLOCKS_PER_SEC;
    walk->n += !fine ? walk->n + 1 : walk->n < FAIL_STEP_FINE_END ? 1 : walk->n / FAIL_STEP_PARTS;
}

/* -- loading and writing --------------------------------------------------------------------------------- */

static void fail_walk_load(struct fail_file *file)
{
    cy_err err = CY_ERR(NO_MEMORY);
    for (struct fail_walk walk = {0, clock()}; cy_failed(err); fail_next(&walk)) {
        uint64_t n = walk.n;
        struct program *program = NULL;
        struct code_failure failure;
        mem_fail_after(n);
        err = toau_load(file->bytes, &program, &failure);
        mem_fail_never();
        if (!cy_failed(err)) program_free(&program);
        if (cy_failed(err) && !cy_is(err, CY_ERR_NO_MEMORY))
            fail_complain(file, "load", n, cy_err_text(err, false), NULL);
        if (cy_failed(err) && program) fail_complain(file, "load", n, "failed, but gave a program", NULL);
    }
    file->passed++;
}

static void fail_walk_rewrite(struct fail_file *file)
{
    cy_err err = CY_ERR(NO_MEMORY);
    for (struct fail_walk walk = {0, clock()}; cy_failed(err); fail_next(&walk)) {
        uint64_t n = walk.n;
        struct program *program;
        struct code_failure failure;
        struct builder out;
        err = toau_load(file->bytes, &program, &failure);
        CHECK(!cy_failed(err));
        builder_init(&out);
        mem_fail_after(n);
        err = program_canonicalise(program);
        if (!cy_failed(err)) err = toau_write(program, &out);
        mem_fail_never();
        if (cy_failed(err) && !cy_is(err, CY_ERR_NO_MEMORY))
            fail_complain(file, "rewrite", n, cy_err_text(err, false), NULL);
        if (!cy_failed(err) && !cy_bytes_equal(builder_view(&out), file->bytes))
            fail_complain(file, "rewrite", n, "other bytes", NULL);
        builder_fini(&out);
        program_free(&program);
    }
    file->passed++;
}

/* -- running --------------------------------------------------------------------------------------------- */

static bool fail_same(const struct builder *a, const struct builder *b)
{
    return cy_bytes_equal(builder_view(a), builder_view(b));
}

static bool fail_says_memory(const struct builder *error)
{
    return error->failed || (error->count && memmem(error->data, error->count, "memory", 6));
}

static cy_bytes fail_first_line(const struct builder *text)
{
    cy_bytes view = builder_view(text);
    return cy_bytes_of(view.data, cy_bytes_find(view, '\n'));
}

/* The error it ends with anyway; where it came from may be missing, for want of memory. */
static bool fail_is_usual_error(const struct fail_file *file, enum toau_run_end end,
                                const struct builder *error)
{
    return end == file->end && error->count &&
           cy_bytes_equal(fail_first_line(error), fail_first_line(&file->error));
}

/* Only a program that catches can go on without memory, and then what it prints tells, or its source does. */
static bool fail_may_differ(const struct fail_file *file, const struct builder *printed)
{
    if (!file->catches) return false;
    return file->differs || (fail_says_memory(printed) && !fail_says_memory(&file->printed));
}

/* True when this run ended as it does with memory enough. */
static bool fail_judge(struct fail_file *file, const char *walk, uint64_t n, enum toau_run_end end,
                       const struct builder *printed, const struct builder *error)
{
    if (end == file->end && fail_same(printed, &file->printed) && fail_same(error, &file->error)) return true;
    switch (end) {
    case TOAU_RUN_NO_VM: return false;
    case TOAU_RUN_REFUSED:
    case TOAU_RUN_FAILED:
        if (!fail_says_memory(error) && !fail_is_usual_error(file, end, error) &&
            !fail_may_differ(file, printed))
            fail_complain(file, walk, n, "an error that is not memory's", error);
        return false;
    case TOAU_RUN_RETURNED:
        if (!fail_may_differ(file, printed)) fail_complain(file, walk, n, "another answer", printed);
        return false;
    case TOAU_RUN_STOPPED: /* as usual, or because it goes on and on after an error that it caught */
        if (file->end != TOAU_RUN_STOPPED && !fail_says_memory(error) && !fail_may_differ(file, printed))
            fail_complain(file, walk, n, toau_run_end_text(end), error);
        return false;
    case TOAU_RUN_NO_MAIN:
    case TOAU_RUN_UNENDED:
    default: fail_complain(file, walk, n, toau_run_end_text(end), error); return false;
    }
}

static bool fail_run_once(struct fail_file *file, const char *walk, uint64_t n,
                          const struct toau_run_bounds *bounds, bool fail_allocations)
{
    struct builder printed, error;
    builder_init(&printed);
    builder_init(&error);
    /* What we record must not fail in the program's place. */
    CHECK(builder_reserve(&printed, FAIL_RECORD_BYTES) && builder_reserve(&error, FAIL_RECORD_BYTES));
    if (fail_allocations) mem_fail_after(n);
    enum toau_run_end end = toau_run(file->program, bounds, &printed, &error);
    mem_fail_never();
    bool same = fail_judge(file, walk, n, end, &printed, &error);
    builder_fini(&printed);
    builder_fini(&error);
    return same;
}

static void fail_walk_run(struct fail_file *file)
{
    struct fail_walk walk = {0, clock()};
    while (!fail_run_once(file, "run", walk.n, &fail_bounds, true)) fail_next(&walk);
    file->passed++;
}

static void fail_walk_limit(struct fail_file *file)
{
    struct toau_run_bounds bounds = fail_bounds;
    bool same = false;
    for (struct fail_walk walk = {1, clock()}; !same; fail_next(&walk)) {
        bounds.memory_bytes_max = (uint64_t)cy_min_size((size_t)walk.n * FAIL_LIMIT_STEP_BYTES,
                                                        (size_t)fail_bounds.memory_bytes_max);
        same = fail_run_once(file, "limit", bounds.memory_bytes_max, &bounds, false);
        if (bounds.memory_bytes_max == fail_bounds.memory_bytes_max) break;
    }
    file->passed++;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static bool fail_read(const char *path, struct builder *bytes)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    uint8_t *room;
    size_t got = 1;
    while (got && (room = builder_reserve(bytes, 65536))) bytes->count += got = fread(room, 1, 65536, stream);
    bool read_all = !ferror(stream) && !bytes->failed;
    fclose(stream);
    return read_all;
}

static bool fail_catches(const struct program *program)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        cy_bytes code = cy_bytes_of(program->functions[i].code, program->functions[i].code_bytes);
        struct instruction instruction;
        for (uint32_t offset = 0; offset < code.count && opcode_decode(code, offset, &instruction);
             offset = instruction.next_offset)
            if (instruction.opcode == OP_TRY_BEGIN) return true;
    }
    return false;
}

static void fail_walk_all(struct fail_file *file)
{
    struct code_failure failure;
    cy_err err = toau_load(file->bytes, &file->program, &failure);
    if (cy_failed(err)) {
        fail_complain(file, "load", UINT64_MAX, code_rule_name(failure.rule), NULL);
        return;
    }
    file->catches = fail_catches(file->program);
    fail_walk_load(file);
    fail_walk_rewrite(file);
    file->end = toau_run(file->program, &fail_bounds, &file->printed, &file->error);
    if (file->end == TOAU_RUN_NO_VM || file->end == TOAU_RUN_UNENDED || file->end == TOAU_RUN_NO_MAIN)
        fail_complain(file, "run", UINT64_MAX, toau_run_end_text(file->end), &file->error);
    else {
        fail_walk_run(file);
        fail_walk_limit(file);
    }
    program_free(&file->program);
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    if (argc < 2) {
        fputs("usage: fail_allocations [--differs] FILE.toau...\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        bool differs = strcmp(argv[i], "--differs") == 0 && i + 1 < argc;
        if (differs) i++;
        struct fail_file file = {.path = argv[i], .differs = differs};
        struct builder bytes;
        builder_init(&bytes);
        builder_init(&file.printed);
        builder_init(&file.error);
        fprintf(stderr, "%s\n", argv[i]); /* now: a sanitizer lets nobody speak afterwards */
        if (fail_read(argv[i], &bytes)) {
            file.bytes = builder_view(&bytes);
            fail_walk_all(&file);
        } else
            fail_complain(&file, "read", 0, "cannot be read", NULL);
        builder_fini(&file.error);
        builder_fini(&file.printed);
        builder_fini(&bytes);
        passed += file.passed;
        failed += file.failed;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed ? 1 : 0;
}
