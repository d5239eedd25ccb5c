/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/fuzz_replay.c: gives files to a fuzz target: fuzz_replay TARGET FILE...
 *
 * For the corpora in the tree, which are so a part of the suite, and for a file that libFuzzer left behind.
 */
#include "tests/fuzz/target.h"
#include "vm/base/builder.h"
#include "vm/sys/file.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    const struct fuzz_target *target = argc > 1 ? fuzz_target_find(argv[1]) : NULL;
    if (!target) {
        fprintf(stderr, "usage: fuzz_replay TARGET FILE...\n");
        for (size_t i = 0; i < fuzz_target_count; i++)
            fprintf(stderr, "  %-8s %s\n", fuzz_targets[i].name, fuzz_targets[i].meaning);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        struct builder input;
        builder_init(&input);
        if (cy_failed(file_read(argv[i], 1 << 20, &input))) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 2;
        }
        fprintf(stderr, "%s\n", argv[i]); /* now: a sanitizer lets nobody speak afterwards */
        target->call(builder_view(&input));
        builder_fini(&input);
    }
    printf("%d files\n", argc - 2);
    return 0;
}
