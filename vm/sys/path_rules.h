/* SPDX-License-Identifier: MIT
 *
 * vm/sys/path_rules.h: which files a program may read and write.
 *
 * In:   rules from the command line, fixed before the program runs. Out: for a path, the folder that it must stay
 * below.
 *
 *   reading   everywhere; with --allow read=DIR below these folders only
 *   writing   nowhere; with --allow write below the working folder, with --allow write=DIR below these
 *   --deny read=DIR, write=DIR   takes a folder out again, by whatever name it is reached
 *
 * A path is taken in its normal form (".." in the text goes before links are followed). The longest folder of a rule
 * that it lies below in the text is the one that it may then not leave (vm/sys/beneath.h).
 */
#ifndef CY_SYS_PATH_RULES_H
#define CY_SYS_PATH_RULES_H

#include "vm/base/builder.h"
#include "vm/sys/beneath.h"

enum path_access { PATH_READ, PATH_WRITE, PATH_ACCESS_COUNT };

struct path_rule {
    bool allow;
    uint8_t access;     /* enum path_access */
    const char *folder; /* NULL, with allow and PATH_WRITE: the working folder */
};
struct path_rules;

/* Opens the folders of the rules. `fault_out` is the folder that could not be. LIMIT past LIMIT_PATH_RULES. `walk`:
 * never openat2. */
CY_NODISCARD cy_err path_rules_new(const struct path_rule *rules, uint32_t rule_count, bool walk,
                                   struct path_rules **rules_out, const char **fault_out);
void path_rules_free(struct path_rules **rules);
/* The root for `path` (borrowed from the rules), and the path below it, appended with a NUL behind it. PERMISSION
 * when no rule allows it, VALUE when it is no path (empty, a NUL inside), LIMIT past LIMIT_PATH_BYTES. */
CY_NODISCARD cy_err path_rules_find(const struct path_rules *rules, enum path_access access, cy_bytes path,
                                    const struct beneath_root **root_out, struct builder *below_out);

#endif
