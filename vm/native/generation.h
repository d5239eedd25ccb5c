/* SPDX-License-Identifier: MIT
 *
 * vm/native/generation.h: the bytes of one generation: program, configuration files.
 *
 * In:   a plan (where they come from). Out: one block of bytes that a sealed memfd carries to the workers, and its
 *       parts.
 * Layout: "CYGN", u32 version 2, u32 program bytes, program, u32 file count, per file: u32+name, u32+path,
 *         u32+content; u32 count of extra files, per file: u32 error code, u32 detail, u32+path, u32+content.
 *         Little-endian. Read with the same care as any file: a worker trusts the master, but checks.
 * Extra files are those that the configuration itself names (certificates, keys): configure asks for one by its path;
 *         the checker that does not have it ends with MASTER_CHECK_WANTS, and the master reads it and checks again. One
 *         that cannot be read stands there with the reason, so that configure can say where it was named.
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
    cy_bytes extras; /* for generation_find_extra */
};

/* Reads program and files anew, into a builder of secrets. `message` gets the text for people when one cannot be read.
 */
CY_NODISCARD cy_err generation_load(const struct generation_plan *plan, cy_bytes wanted,
                                    struct builder *bytes_out, struct builder *message);
/* `wanted` of the above: paths, each with a NUL behind it. */
void generation_want(struct builder *wanted, cy_bytes path);
/* False when it is not among them. `err_out`: why it could not be read. */
CY_NODISCARD bool generation_find_extra(cy_bytes extras, cy_bytes path, cy_bytes *content_out,
                                        cy_err *err_out);
/* One file, as generation_load reads those of the plan, into a builder of secrets. */
CY_NODISCARD cy_err generation_read_file(const struct generation_plan *plan, const char *path,
                                         struct builder *content_out);
CY_NODISCARD cy_err generation_parse(cy_bytes bytes, struct generation *generation_out);
void generation_plan_fini(struct generation_plan *plan);

#endif
