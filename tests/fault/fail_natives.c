/* SPDX-License-Identifier: MIT
 *
 * tests/fault/fail_natives.c: the command `fail_natives [--differs WORDS] FILE.toau...`: runs each file in the
 * complete runtime, on real files, sockets and processes, with the n-th allocation failing, for rising n.
 *
 * In:   .toau files; the working folder is theirs to write in. `--differs` in front of one: its source says
 *       ("// without memory, says `WORDS`: ...") why it then goes another way, without a word of memory, and what it
 *       says
 *       then: one of WORDS, which "|" divides, stands in what it prints or in its error.
 * Out:  "N passed, N failed"; each failure names file, walk and n. Exit code 1 when anything failed.
 *
 * Two walks over each file:
 *   once    the n-th allocation fails alone: handlers, defers and what waits find memory again
 *   after   the n-th and all later ones fail: nothing gets better
 *
 * What is asserted of each step: it ends as it does with memory enough, or says that there was none, in its error or,
 * when it caught that, in what it prints; it ends at all; never a crash, never a leak (the VM's heap is empty when it
 * is freed, the leak checker looks after every file), never a descriptor that stays open.
 * Method: a child works, the parent says how it died. What a step writes goes to files in memory that stand in for
 *       stdout and stderr. Allocations of OpenSSL, libyaml and pcre2 are counted and fail like ours; those of other
 *       threads, of libc and of libffi do not fail.
 * Invariant: a walk ends with the first n that no allocation of the run reached.
 */
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/code/opcode.h"
#include "vm/code/toau.h"
#include "vm/native/runtime.h"
#include "vm/sys/crypto.h"
#include "vm/sys/path_rules.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum {
    NATIVES_STEP_FINE_END = 400,
    NATIVES_STEP_PARTS = 32,
    NATIVES_STEP_S_MAX = 60,  /* far from what a step takes: only one that hangs gets there */
    NATIVES_EXIT_CRASHED = 1, /* what sanitizers exit with */
    NATIVES_EXIT_FAILED = 3
};

enum native_walk { WALK_NONE, WALK_ONCE, WALK_AFTER };
static const char *const natives_walk_names[] = {"run", "once", "after"};

/* How a run ended. */
struct natives_end {
    int exit_code;
    struct builder out, err;
};

struct natives_file {
    const char *path;
    cy_bytes bytes;
    bool catches;
    const char *words; /* NULL: memory is told */
    struct natives_end usual;
    uint64_t allocation_count;
    unsigned passed, failed;
};

/* Where this process's own words go, and the files in memory. */
static struct {
    int said, out, err;
    int said_out;
} natives_fd;

/* -- libraries ------------------------------------------------------------------------------------------- */

/* libyaml calls these through the dynamic linker, which finds ours first. */
void *yaml_malloc(size_t bytes);
void *yaml_realloc(void *block, size_t bytes);
void *yaml_malloc(size_t bytes) { return mem_alloc(bytes); }
void *yaml_realloc(void *block, size_t bytes) { return block ? mem_resize(block, bytes) : mem_alloc(bytes); }

/* -- saying ---------------------------------------------------------------------------------------------- */

static void natives_complain(struct natives_file *file, enum native_walk walk, uint64_t n, const char *what,
                             const struct natives_end *end)
{
    dprintf(natives_fd.said, "%s: %s, n = %" PRIu64 ": %s\n", file->path, natives_walk_names[walk], n, what);
    if (end)
        dprintf(natives_fd.said, "  exit code %d\n  stdout: %.*s\n  stderr: %.*s\n", end->exit_code,
                CY_BYTES_ARG(builder_view(&end->out)), CY_BYTES_ARG(builder_view(&end->err)));
    file->failed++;
}

/* -- one run --------------------------------------------------------------------------------------------- */

static void natives_take(int descriptor, struct builder *out)
{
    off_t bytes = lseek(descriptor, 0, SEEK_END);
    uint8_t *room = bytes > 0 ? builder_reserve(out, (size_t)bytes) : NULL;
    if (room && pread(descriptor, room, (size_t)bytes, 0) == bytes) out->count += (size_t)bytes;
    CHECK(ftruncate(descriptor, 0) == 0);
    CHECK(lseek(descriptor, 0, SEEK_SET) == 0);
}

static void natives_run(const struct natives_file *file, enum native_walk walk, uint64_t n,
                        struct natives_end *end, uint64_t *allocation_count)
{
    static const struct path_rule rules[] = {{.allow = true, .access = PATH_WRITE, .folder = NULL}};
    const struct runtime_options options = {
        .program_name = "fail_natives",
        .program = file->bytes,
        .capabilities = UINT32_MAX,
        .path_rules = rules,
        .path_rule_count = CY_COUNT_OF(rules),
        .cpu_burst_ms = UINT64_MAX,
    };
    uint64_t before = mem_request_count();
    alarm(NATIVES_STEP_S_MAX);
    if (walk == WALK_ONCE) mem_fail_once(n);
    if (walk == WALK_AFTER) mem_fail_after(n);
    end->exit_code = runtime_run(&options);
    mem_fail_never();
    alarm(0);
    *allocation_count = mem_request_count() - before;
    fflush(stdout);
    fflush(stderr);
    natives_take(natives_fd.out, &end->out);
    natives_take(natives_fd.err, &end->err);
}

static void natives_end_init(struct natives_end *end)
{
    end->exit_code = 0;
    builder_init(&end->out);
    builder_init(&end->err);
}
static void natives_end_fini(struct natives_end *end)
{
    builder_fini(&end->out);
    builder_fini(&end->err);
}

/* -- judging --------------------------------------------------------------------------------------------- */

static bool natives_says_memory(const struct builder *text)
{
    return text->count && memmem(text->data, text->count, "memory", 6);
}

static bool natives_contains(const struct builder *text, const char *word, size_t count)
{
    return text->count && memmem(text->data, text->count, word, count);
}

/* One of the words that the source allows instead of memory's. */
static bool natives_says_words(const struct natives_file *file, const struct natives_end *end)
{
    for (const char *word = file->words; word && *word;) {
        size_t count = strcspn(word, "|");
        if (natives_contains(&end->out, word, count) || natives_contains(&end->err, word, count)) return true;
        word += count + (word[count] == '|');
    }
    return false;
}

static void natives_judge(struct natives_file *file, enum native_walk walk, uint64_t n,
                          const struct natives_end *end)
{
    const struct natives_end *usual = &file->usual;
    bool same_out = cy_bytes_equal(builder_view(&end->out), builder_view(&usual->out));
    bool told = file->catches && natives_says_memory(&end->out) && !natives_says_memory(&usual->out);
    bool same_err = cy_bytes_equal(builder_view(&end->err), builder_view(&usual->err));
    bool may_differ = told || natives_says_words(file, end);
    if (end->exit_code == EXIT_CODE_OK && (same_out || may_differ)) {
        if (usual->exit_code == EXIT_CODE_OK || may_differ) return;
        natives_complain(file, walk, n, "no error, where there is one with memory enough", end);
    } else if (end->exit_code == EXIT_CODE_OK) {
        natives_complain(file, walk, n, "another answer", end);
    } else if (!(natives_says_memory(&end->err) && !natives_says_memory(&usual->err)) && !may_differ &&
               !(end->exit_code == usual->exit_code && same_out && same_err)) {
        natives_complain(file, walk, n, "an error that is not memory's", end);
    }
}

static unsigned natives_open_descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

static void natives_walk(struct natives_file *file, enum native_walk walk)
{
    unsigned descriptors = natives_open_descriptors();
    bool reached = true;
    for (uint64_t n = 0; reached; n += n < NATIVES_STEP_FINE_END ? 1 : n / NATIVES_STEP_PARTS) {
        struct natives_end end;
        uint64_t allocation_count;
        natives_end_init(&end);
        natives_run(file, walk, n, &end, &allocation_count);
        natives_judge(file, walk, n, &end);
        reached = n < allocation_count;
        natives_end_fini(&end);
        if (natives_open_descriptors() == descriptors) continue;
        natives_complain(file, walk, n, "a descriptor stays open", NULL);
        descriptors = natives_open_descriptors();
    }
#ifdef __SANITIZE_ADDRESS__
    if (__lsan_do_recoverable_leak_check()) natives_complain(file, walk, UINT64_MAX, "memory was lost", NULL);
#endif
    file->passed++;
}

/* -- files ----------------------------------------------------------------------------------------------- */

static bool natives_read(const char *path, struct builder *bytes)
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

static bool natives_catches(const struct program *program)
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

static void natives_walk_all(struct natives_file *file)
{
    struct program *program;
    struct code_failure failure;
    if (cy_failed(toau_load(file->bytes, &program, &failure))) {
        natives_complain(file, WALK_NONE, 0, code_rule_name(failure.rule), NULL);
        return;
    }
    file->catches = natives_catches(program);
    program_free(&program);
    /* Twice: what libraries set up on first use is not the program's. */
    for (int round = 0; round < 2; round++) {
        natives_end_fini(&file->usual);
        natives_run(file, WALK_NONE, 0, &file->usual, &file->allocation_count);
    }
    natives_walk(file, WALK_ONCE);
    natives_walk(file, WALK_AFTER);
}

static void natives_redirect(void)
{
    natives_fd.said = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    natives_fd.said_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    natives_fd.out = memfd_create("stdout", MFD_CLOEXEC);
    natives_fd.err = memfd_create("stderr", MFD_CLOEXEC);
    CHECK(natives_fd.said >= 0 && natives_fd.said_out >= 0 && natives_fd.out >= 0 && natives_fd.err >= 0);
}

/* What a failed CHECK or a sanitizer said lies in the file that stands in for stderr. */
static int natives_watch(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) != NATIVES_EXIT_CRASHED) return WEXITSTATUS(status);
    char piece[4096];
    ssize_t got;
    for (off_t at = 0; (got = pread(natives_fd.err, piece, sizeof piece, at)) > 0; at += got)
        dprintf(natives_fd.said, "%.*s", (int)got, piece);
    if (WIFSIGNALED(status))
        dprintf(natives_fd.said, "%s\n",
                WTERMSIG(status) == SIGALRM ? "a step does not end" : strsignal(WTERMSIG(status)));
    return 1;
}

static int natives_run_files(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    CHECK(dup2(natives_fd.out, STDOUT_FILENO) >= 0 && dup2(natives_fd.err, STDERR_FILENO) >= 0);
    for (int i = 1; i < argc; i++) {
        const char *words = NULL;
        if (strcmp(argv[i], "--differs") == 0 && i + 2 < argc) {
            words = argv[i + 1];
            i += 2;
        }
        struct natives_file file = {.path = argv[i], .words = words};
        struct builder bytes;
        builder_init(&bytes);
        natives_end_init(&file.usual);
        dprintf(natives_fd.said, "%s\n", argv[i]); /* now: who crashes says nothing afterwards */
        if (natives_read(argv[i], &bytes)) {
            file.bytes = builder_view(&bytes);
            natives_walk_all(&file);
        } else
            natives_complain(&file, WALK_NONE, 0, "cannot be read", NULL);
        natives_end_fini(&file.usual);
        builder_fini(&bytes);
        passed += file.passed;
        failed += file.failed;
    }
    dprintf(natives_fd.said_out, "%u passed, %u failed\n", passed, failed);
    return failed ? NATIVES_EXIT_FAILED : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: fail_natives [--differs WORDS] FILE.toau...\n", stderr);
        return 2;
    }
    CHECK(crypto_use_mem());
    natives_redirect();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return natives_watch(child);
    return natives_run_files(argc, argv);
}
