/* SPDX-License-Identifier: MIT
 *
 * vm/sys/file_below.h: what one does with files, below a folder that cannot be left (beneath.h).
 *
 * All of these may wait for the disk: for helper threads. Paths end in NUL. Errors: PERMISSION also for a path that
 * leads out; NOT_FOUND, EXISTS, TOO_LARGE, IS_FOLDER where a file is wanted, NOT_FOLDER the other way round, SYSTEM.
 */
#ifndef CY_SYS_FILE_BELOW_H
#define CY_SYS_FILE_BELOW_H

#include "vm/base/builder.h"
#include "vm/sys/beneath.h"

struct file_patience;
struct file_status {
    int64_t bytes;
    int64_t modified_ms; /* since 1970 */
    uint8_t kind;        /* enum file_kind */
};
enum file_kind { FILE_KIND_FILE, FILE_KIND_FOLDER, FILE_KIND_OTHER };
enum file_write_mode { FILE_WRITE_REPLACE, FILE_WRITE_APPEND };

/* `patience` (file.h) NULL: a pipe is waited for in the read. */
CY_NODISCARD cy_err file_below_read(const struct beneath_root *root, const char *path, size_t bytes_max,
                                    const struct file_patience *patience, struct builder *out);
CY_NODISCARD cy_err file_below_write(const struct beneath_root *root, const char *path, cy_bytes content,
                                     enum file_write_mode mode, const struct file_patience *patience);
/* A new file, synced, renamed over the path, and the folder synced. */
CY_NODISCARD cy_err file_below_write_atomic(const struct beneath_root *root, const char *path,
                                            cy_bytes content);
CY_NODISCARD cy_err file_below_stat(const struct beneath_root *root, const char *path,
                                    struct file_status *status_out);
/* Appends the names in no order, each with a NUL behind it. LIMIT past `count_max`. */
CY_NODISCARD cy_err file_below_list(const struct beneath_root *root, const char *path, size_t count_max,
                                    struct builder *names_out, size_t *count_out);
/* `parents`: also those above it, and none of them need be new. */
CY_NODISCARD cy_err file_below_make_folder(const struct beneath_root *root, const char *path, bool parents);
CY_NODISCARD cy_err file_below_remove(const struct beneath_root *root,
                                      const char *path); /* a file, link, empty folder */
/* What moves may be read at its new place, so the source must lie in one folder by both its roots: PERMISSION. */
CY_NODISCARD cy_err file_below_rename(const struct beneath_root *from_root, const char *from,
                                      const struct beneath_root *read_root, const char *read,
                                      const struct beneath_root *to_root, const char *to);
/* A new file or folder with an unguessable name in the folder; appends the name. */
CY_NODISCARD cy_err file_below_temporary(const struct beneath_root *root, const char *folder, bool is_folder,
                                         struct builder *name_out);

#endif
