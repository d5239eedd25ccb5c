/* SPDX-License-Identifier: MIT
 *
 * vm/sys/path_rules.c: see path_rules.h.
 *
 * Invariant: a folder's text is absolute and normalised, and what opens below it is the descriptor opened at the start,
 *       so a folder that is renamed later stays the folder that was allowed.
 */
#include "vm/sys/path_rules.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef O_PATH
#define PATH_RULES_FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)
#else
#define PATH_RULES_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#endif
#define PATH_RULES_LEVELS 4096 /* up from a folder to "/" */

struct path_rules_folder {
    struct beneath_root root;
    struct builder given, real; /* as it was written, and without links */
};
struct path_rules_side {
    struct path_rules_folder folders[LIMIT_PATH_RULES + 1];
    uint32_t folder_count;
    struct beneath_place denied[LIMIT_PATH_RULES];
    uint32_t denied_count;
};
struct path_rules {
    struct builder here; /* the working folder */
    struct path_rules_side sides[PATH_ACCESS_COUNT];
};

/* The absolute normal form of a path from the working folder. */
static void path_rules_absolute(const struct path_rules *rules, cy_bytes path, struct builder *out)
{
    path_join(builder_view(&rules->here), path, out);
}

static cy_err path_rules_add(struct path_rules *rules, struct path_rules_side *side, const char *folder)
{
    struct path_rules_folder *added = &side->folders[side->folder_count];
    builder_init(&added->given);
    builder_init(&added->real);
    added->root = (struct beneath_root){.descriptor = -1};
    side->folder_count++;
    path_rules_absolute(rules, folder ? cy_bytes_from_text(folder) : CY_BYTES("."), &added->given);
    const char *given = builder_text_view(&added->given);
    char real[PATH_MAX];
    if (!given) return CY_ERR(NO_MEMORY);
    if (!realpath(given, real)) return cy_err_from_errno(errno);
    builder_text(&added->real, real);
    const char *text = builder_text_view(&added->real);
    if (!text) return CY_ERR(NO_MEMORY);
    added->root.descriptor = open(text, PATH_RULES_FOLDER);
    if (added->root.descriptor < 0) return cy_err_from_errno(errno);
    added->root.is_top = added->real.count == 1;
    return CY_OK;
}

static cy_err path_rules_deny(struct path_rules_side *side, const char *folder)
{
    struct stat status;
    if (stat(folder, &status) != 0) return cy_err_from_errno(errno);
    if (!S_ISDIR(status.st_mode)) return CY_ERR(NOT_FOLDER);
    side->denied[side->denied_count++] = (struct beneath_place){status.st_dev, status.st_ino};
    return CY_OK;
}

static bool path_rules_is_denied(const struct path_rules_side *side, const struct stat *status)
{
    for (uint32_t i = 0; i < side->denied_count; i++)
        if (side->denied[i].device == status->st_dev && side->denied[i].inode == status->st_ino) return true;
    return false;
}

/* Whether the folder is one that is denied, or lies below one. */
static bool path_rules_inside_denied(const struct path_rules_side *side, int folder)
{
    struct stat status, above;
    int here = dup(folder);
    bool denied = here < 0 || fstat(here, &status) != 0; /* in doubt it is */
    for (int level = 0; !denied && level < PATH_RULES_LEVELS; level++) {
        denied = path_rules_is_denied(side, &status);
        int up = denied ? -1 : openat(here, "..", PATH_RULES_FOLDER);
        if (!denied && (up < 0 || fstat(up, &above) != 0)) denied = true;
        close(here);
        here = up;
        if (denied || (above.st_dev == status.st_dev && above.st_ino == status.st_ino)) break;
        status = above;
    }
    if (here >= 0) close(here);
    return denied;
}

/* Folders inside a denied one allow nothing; the others get the list. */
static void path_rules_apply_denied(struct path_rules_side *side, bool walk)
{
    for (uint32_t i = 0; i < side->folder_count; i++) {
        struct beneath_root *root = &side->folders[i].root;
        root->walk = walk;
        root->denied = side->denied;
        root->denied_count = side->denied_count;
        if (side->denied_count == 0 || !path_rules_inside_denied(side, root->descriptor)) continue;
        close(root->descriptor);
        root->descriptor = -1;
    }
}

static cy_err path_rules_read_one(struct path_rules *rules, const struct path_rule *rule)
{
    struct path_rules_side *side = &rules->sides[rule->access];
    CHECK(rule->access < PATH_ACCESS_COUNT && (rule->folder || rule->allow));
    if (rule->allow ? side->folder_count == LIMIT_PATH_RULES : side->denied_count == LIMIT_PATH_RULES)
        return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_RULES);
    return rule->allow ? path_rules_add(rules, side, rule->folder) : path_rules_deny(side, rule->folder);
}

cy_err path_rules_new(const struct path_rule *list, uint32_t count, bool walk, struct path_rules **rules_out,
                      const char **fault_out)
{
    struct path_rules *rules = mem_alloc_zeroed(sizeof *rules);
    *fault_out = ".";
    if (!rules) return CY_ERR(NO_MEMORY);
    builder_init(&rules->here);
    char here[PATH_MAX];
    builder_text(&rules->here, getcwd(here, sizeof here) ? here : "/");
    cy_err err = builder_error(&rules->here);
    for (uint32_t i = 0; i < count && !cy_failed(err); i++) {
        *fault_out = list[i].folder ? list[i].folder : ".";
        err = path_rules_read_one(rules, &list[i]);
    }
    struct path_rules_side *reading = &rules->sides[PATH_READ];
    if (!cy_failed(err) && reading->folder_count == 0 && reading->denied_count > 0)
        err = path_rules_add(rules, reading, "/");
    if (cy_failed(err)) {
        path_rules_free(&rules);
        return err;
    }
    for (int access = 0; access < PATH_ACCESS_COUNT; access++)
        path_rules_apply_denied(&rules->sides[access], walk);
    *rules_out = rules;
    return CY_OK;
}

void path_rules_free(struct path_rules **rules_pointer)
{
    struct path_rules *rules = *rules_pointer;
    *rules_pointer = NULL;
    if (!rules) return;
    for (int access = 0; access < PATH_ACCESS_COUNT; access++) {
        struct path_rules_side *side = &rules->sides[access];
        for (uint32_t i = 0; i < side->folder_count; i++) {
            if (side->folders[i].root.descriptor >= 0) close(side->folders[i].root.descriptor);
            builder_fini(&side->folders[i].given);
            builder_fini(&side->folders[i].real);
        }
    }
    builder_fini(&rules->here);
    mem_free(rules);
}

/* Looks whether the folder holds the path under one of its two names, and for longer than the best so far. */
static void path_rules_offer(const struct path_rules_folder *folder, const struct builder *name,
                             cy_bytes path, size_t *best_bytes, const struct beneath_root **root,
                             cy_bytes *below)
{
    cy_bytes rest;
    if (!path_is_below(path, builder_view(name), &rest) || name->count < *best_bytes) return;
    *best_bytes = name->count;
    *root = &folder->root;
    *below = rest;
}

cy_err path_rules_find(const struct path_rules *rules, enum path_access access, cy_bytes path,
                       const struct beneath_root **root_out, struct builder *below_out)
{
    static const struct beneath_root free_root = {.descriptor = AT_FDCWD};
    const struct path_rules_side *side = &rules->sides[access];
    if (path.count == 0 || memchr(path.data, 0, path.count)) return CY_ERR(VALUE);
    if (path.count > LIMIT_PATH_BYTES) return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_BYTES);
    if (access == PATH_READ && side->folder_count == 0) {
        *root_out = &free_root;
        builder_bytes(below_out, path);
    } else {
        struct builder whole;
        builder_init(&whole);
        path_rules_absolute(rules, path, &whole);
        const struct beneath_root *root = NULL;
        cy_bytes below = CY_BYTES_NONE;
        size_t best_bytes = 0;
        for (uint32_t i = 0; i < side->folder_count && !whole.failed; i++) {
            const struct path_rules_folder *folder = &side->folders[i];
            path_rules_offer(folder, &folder->given, builder_view(&whole), &best_bytes, &root, &below);
            path_rules_offer(folder, &folder->real, builder_view(&whole), &best_bytes, &root, &below);
        }
        bool failed = whole.failed;
        if (root) builder_bytes(below_out, below);
        builder_fini(&whole);
        if (failed) return CY_ERR(NO_MEMORY);
        if (!root || root->descriptor < 0) return CY_ERR(PERMISSION);
        *root_out = root;
    }
    return builder_text_view(below_out) ? CY_OK : CY_ERR(NO_MEMORY);
}

#undef PATH_RULES_FOLDER
#undef PATH_RULES_LEVELS
