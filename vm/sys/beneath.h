/* SPDX-License-Identifier: MIT
 *
 * vm/sys/beneath.h: opens what lies below a folder and nothing else, whatever links, ".." and races say.
 *
 * In:   a folder held open, and a path below it. Out: descriptors, or PERMISSION when the path leads out.
 * Links that stay below the folder are followed; absolute ones lead out, but where the folder is "/".
 * Two ways: openat2 with RESOLVE_BENEATH on Linux, and a walk from part to part with O_NOFOLLOW, which also serves
 * where folders inside are forbidden: those are known by device and inode, so no other name leads into them.
 */
#ifndef CY_SYS_BENEATH_H
#define CY_SYS_BENEATH_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

#include <limits.h>
#include <sys/stat.h>
#include <sys/types.h>

struct beneath_place {
    dev_t device;
    ino_t inode;
};
struct beneath_root {
    int descriptor; /* of the folder; AT_FDCWD: no folder, no rule: paths are the system's */
    bool is_top;    /* the folder is "/" */
    bool walk;      /* never openat2 */
    const struct beneath_place *denied; /* folders that must not be entered; they force the walk */
    uint32_t denied_count;
};
typedef char beneath_name[NAME_MAX + 1];

/* As open(2) with O_CLOEXEC. PERMISSION when the path leads out, into what is denied, or into procfs, which the root's
 * folder is not of; the errno's rows. */
CY_NODISCARD cy_err beneath_open(const struct beneath_root *root, const char *path, int flags, mode_t mode,
                                 int *descriptor_out);
/* What the path names, links followed. */
CY_NODISCARD cy_err beneath_stat(const struct beneath_root *root, const char *path, struct stat *status_out);
/* The folder that the last part lies in, and that part, which is not looked at: it need not exist and may be a link.
 * VALUE when there is no such part ("/", "."). */
CY_NODISCARD cy_err beneath_parent(const struct beneath_root *root, const char *path, int *folder_out,
                                   beneath_name name_out);

#endif
