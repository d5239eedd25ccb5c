/* SPDX-License-Identifier: MIT
 *
 * vm/sys/file.h: whole files, and descriptors that travel.
 */
#ifndef CY_SYS_FILE_H
#define CY_SYS_FILE_H

#include "vm/base/builder.h"
#include "vm/base/error.h"

/* Appends the whole file. NOT_FOUND, PERMISSION, TOO_LARGE past `bytes_max`, SYSTEM; a directory is IS_FOLDER. */
CY_NODISCARD cy_err file_read(const char *path, size_t bytes_max, struct builder *out);
/* Writes a new file and renames it over `path`, so that readers see the old or the new one. */
CY_NODISCARD cy_err file_write(const char *path, cy_bytes bytes);
/* An anonymous file with these bytes that nobody can change any more (memfd with seals; elsewhere an unlinked file). */
CY_NODISCARD cy_err file_sealed(const char *label, cy_bytes bytes, int *descriptor_out);
/* An anonymous file to write into and read from, close-on-exec: what a child has to say beyond its exit code. */
CY_NODISCARD cy_err file_scratch(const char *label, int *descriptor_out);
/* Appends everything from the start of a descriptor (does not move its offset). */
CY_NODISCARD cy_err file_read_descriptor(int descriptor, size_t bytes_max, struct builder *out);
/* Appends what a descriptor still gives, to its end: for pipes and stdin. Errors as file_read. May wait. */
CY_NODISCARD cy_err file_read_stream(int descriptor, size_t bytes_max, struct builder *out);
/* What a caller wants to hear of while a file is read or written. */
struct file_patience {
    void *context;
    cy_err (*grow)(void *context, size_t bytes);                  /* before memory is taken */
    cy_err (*wait)(void *context, int descriptor, bool to_write); /* it would block: a pipe, a terminal */
};
CY_NODISCARD cy_err file_read_patient(int descriptor, size_t bytes_max, const struct file_patience *patience,
                                      struct builder *out);
CY_NODISCARD cy_err file_write_patient(int descriptor, cy_bytes bytes, const struct file_patience *patience);
CY_NODISCARD cy_err file_write_all(int descriptor, cy_bytes bytes); /* loops over short writes and EINTR */

#endif
