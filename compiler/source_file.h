/* SPDX-License-Identifier: MIT
 *
 * compiler/source_file.h: source text from the disk.
 */
#ifndef CY_COMPILER_SOURCE_FILE_H
#define CY_COMPILER_SOURCE_FILE_H

#include "vm/base/builder.h"

/* For struct compile_options. `context` is not used. NOT_FOUND when there is no such file, TOO_LARGE past
 * LIMIT_SOURCE_BYTES, else what the system said. Blocks on the disk. */
cy_err source_file_read(void *context, const char *path, struct builder *out);

#endif
