/* SPDX-License-Identifier: MIT
 *
 * compiler/source_file.c: reads a source file through stdio, so that the compiler needs libc only.
 *
 * In:   a path. Out: its bytes, or why not.
 * Invariant: on failure nothing was appended.
 * Not here: which path to read (module_graph.c).
 */
#include "compiler/source_file.h"

#include "vm/base/limits.h"

#include <errno.h>
#include <stdio.h>

enum { SOURCE_FILE_PIECE_BYTES = 64 << 10 };

static cy_err source_file_read_all(FILE *file, struct builder *out)
{
    size_t start = out->count;
    for (;;) {
        uint8_t *room = builder_reserve(out, SOURCE_FILE_PIECE_BYTES);
        if (!room) return CY_ERR(NO_MEMORY);
        errno = 0;
        size_t count = fread(room, 1, SOURCE_FILE_PIECE_BYTES, file);
        out->count += count;
        if (out->count - start > LIMIT_SOURCE_BYTES) {
            out->count = start;
            return CY_ERR(TOO_LARGE);
        }
        if (count < SOURCE_FILE_PIECE_BYTES) break;
    }
    if (!ferror(file)) return CY_OK;
    int error_number = errno ? errno : EIO; /* a folder opens, and then fails to read with EISDIR */
    out->count = start;
    return cy_err_from_errno(error_number);
}

cy_err source_file_read(void *context, const char *path, struct builder *out)
{
    (void)context;
    FILE *file = fopen(path, "rb");
    if (!file) return cy_err_from_errno(errno);
    cy_err err = source_file_read_all(file, out);
    (void)fclose(file); /* opened for reading: closing loses nothing */
    return err;
}
