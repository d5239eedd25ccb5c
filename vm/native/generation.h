/* SPDX-License-Identifier: MIT
 *
 * vm/native/generation.h: the bytes of one generation: program, configuration files.
 *
 * In:   a plan (where they come from). Out: one block of bytes that a sealed memfd carries to the workers, and its
 *       parts.
 * Layout: "CYGN", u32 version 1, u32 program bytes, program, u32 file count, per file: u32+name, u32+path,
 *         u32+content. Little-endian. Read with the same care as any file: a worker trusts the master, but checks.
 */
#ifndef CY_NATIVE_GENERATION_H
#define CY_NATIVE_GENERATION_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/base/limits.h"

struct generation_source {
    char *name; /* as configure sees it: input.files.<name>; owned */
    char *path; /* owned */
};
struct path_rules;
struct generation_plan {
    const struct path_rules *rules; /* which files may be read; borrowed */
    const char *program_path;       /* NULL: `program` never changes */
    cy_bytes program;
    struct generation_source sources[LIMIT_GENERATION_FILES];
    uint32_t source_count;
};

struct generation_file {
    cy_bytes name, path, content;
};
/* Views into the bytes it was parsed from. */
struct generation {
    uint32_t number;
    cy_bytes program;
    uint32_t file_count;
    struct generation_file files[LIMIT_GENERATION_FILES];
};

/* Reads program and files anew. `message` gets the text for people when one cannot be read. */
CY_NODISCARD cy_err generation_load(const struct generation_plan *plan, struct builder *bytes_out,
                                    struct builder *message);
CY_NODISCARD cy_err generation_parse(cy_bytes bytes, struct generation *generation_out);
void generation_plan_fini(struct generation_plan *plan);

#endif
