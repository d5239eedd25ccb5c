/* SPDX-License-Identifier: MIT
 *
 * vm/sys/beneath.c: see beneath.h.
 *
 *   walk:  rest "a/link/x" ─► part ─► fstatat ─ link ──► its text goes in front of the rest
 *                              ▲          ├─ folder ─► openat O_NOFOLLOW, one deeper; ".." closes it again
 *                              └──────────┘ last ────► folder and name
 *
 * Invariant: of a walk only the folders from the root down are open, each opened from the one before by one name
 *       without following it. So whatever others rename meanwhile, nothing above the root is ever reached.
 */
#include "vm/sys/beneath.h"

#include "vm/base/limits.h"
#include "vm/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#endif

#ifdef O_PATH
#define BENEATH_FOLDER_FLAGS (O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#else
#define BENEATH_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#endif
#define BENEATH_LINKS_MAX 40 /* as Linux follows */
#define BENEATH_RACES_MAX 64 /* openat2 says EAGAIN when something was renamed meanwhile */

/* ELOOP from O_NOFOLLOW, EXDEV from RESOLVE_BENEATH: the path leads where it must not. */
static cy_err beneath_error(int error_number)
{
    if (error_number == EXDEV) return CY_ERR(PERMISSION);
    return cy_err_from_errno(error_number);
}

static bool beneath_is_procfs(int descriptor)
{
#ifdef __linux__
    struct statfs system;
    return fstatfs(descriptor, &system) != 0 || system.f_type == PROC_SUPER_MAGIC; /* in doubt it is */
#else
    (void)descriptor;
    return false;
#endif
}

/* -- the walk -------------------------------------------------------------------------------------------- */

struct beneath_walk {
    const struct beneath_root *root;
    uint32_t depth;
    uint32_t link_count;
    int folders[LIMIT_PATH_DEPTH];
    char rest[2 * LIMIT_PATH_BYTES + 2];
};

static int beneath_here(const struct beneath_walk *walk)
{
    return walk->depth > 0 ? walk->folders[walk->depth - 1] : walk->root->descriptor;
}
static void beneath_up_to(struct beneath_walk *walk, uint32_t depth)
{
    while (walk->depth > depth) close(walk->folders[--walk->depth]);
}

static bool beneath_is_denied(const struct beneath_root *root, const struct stat *status)
{
    for (uint32_t i = 0; i < root->denied_count; i++)
        if (root->denied[i].device == status->st_dev && root->denied[i].inode == status->st_ino) return true;
    return false;
}

static cy_err beneath_enter(struct beneath_walk *walk, const char *name)
{
    struct stat status;
    if (walk->depth == LIMIT_PATH_DEPTH) return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_DEPTH);
    int folder = openat(beneath_here(walk), name, BENEATH_FOLDER_FLAGS);
    if (folder < 0) return beneath_error(errno);
    if (walk->root->denied_count > 0 &&
        (fstat(folder, &status) != 0 || beneath_is_denied(walk->root, &status))) {
        close(folder);
        return CY_ERR(PERMISSION);
    }
    walk->folders[walk->depth++] = folder;
    return CY_OK;
}

/* Puts the link's text in front of what is left. */
static cy_err beneath_follow(struct beneath_walk *walk, const char *name, cy_bytes rest)
{
    char text[2 * LIMIT_PATH_BYTES + 2];
    if (++walk->link_count > BENEATH_LINKS_MAX) return CY_ERR_DETAIL(SYSTEM, ELOOP);
    /* What a link of the kernel says is not where it leads. */
    if (beneath_is_procfs(beneath_here(walk)) && !beneath_is_procfs(walk->root->descriptor))
        return CY_ERR(PERMISSION);
    ssize_t count = readlinkat(beneath_here(walk), name, text, LIMIT_PATH_BYTES);
    if (count < 0) return beneath_error(errno);
    if (count == 0 || count == LIMIT_PATH_BYTES || (size_t)count + rest.count + 2 > sizeof text)
        return CY_ERR_DETAIL(SYSTEM, ENAMETOOLONG);
    if (text[0] == '/') {
        if (!walk->root->is_top) return CY_ERR(PERMISSION);
        beneath_up_to(walk, 0);
    }
    text[count++] = '/';
    if (rest.count > 0)
        memcpy(text + count, rest.data, rest.count); /* rest lies in walk->rest: not moved yet */
    count += (ssize_t)rest.count;
    memcpy(walk->rest, text, (size_t)count);
    walk->rest[count] = 0;
    return CY_OK;
}

/* One part. `*last_out`: `name` is the end of the path and lies in the present folder. */
static cy_err beneath_step(struct beneath_walk *walk, bool follow_last, beneath_name name, bool *last_out)
{
    cy_bytes rest = cy_bytes_from_text(walk->rest), after;
    cy_bytes part = path_next(&rest);
    after = rest;
    bool is_last = path_next(&after).count == 0;
    *last_out = true;
    if (part.count == 0 || cy_bytes_equal(part, CY_BYTES(".")) || cy_bytes_equal(part, CY_BYTES(".."))) {
        if (part.count == 2 && walk->depth == 0 && !walk->root->is_top) return CY_ERR(PERMISSION);
        if (part.count == 2 && walk->depth > 0) beneath_up_to(walk, walk->depth - 1);
        memcpy(name, ".", 2);
        *last_out = is_last;
    } else {
        struct stat status;
        if (part.count > NAME_MAX) return CY_ERR_DETAIL(SYSTEM, ENAMETOOLONG);
        memcpy(name, part.data, part.count);
        name[part.count] = 0;
        bool exists = fstatat(beneath_here(walk), name, &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!exists && !(errno == ENOENT && is_last)) return beneath_error(errno);
        if (exists && S_ISLNK(status.st_mode) && (!is_last || follow_last)) {
            *last_out = false;
            return beneath_follow(walk, name, rest);
        }
        if (exists && S_ISDIR(status.st_mode) && beneath_is_denied(walk->root, &status))
            return CY_ERR(PERMISSION);
        if (is_last) return CY_OK;
        *last_out = false;
        CY_TRY(beneath_enter(walk, name));
    }
    memmove(walk->rest, rest.data, rest.count);
    walk->rest[rest.count] = 0;
    return CY_OK;
}

/* Walks to the folder of the last part; the walk's folders stay open until beneath_end. */
static cy_err beneath_walk_to(struct beneath_walk *walk, const struct beneath_root *root, const char *path,
                              bool follow_last, beneath_name name)
{
    size_t count = strlen(path);
    walk->root = root;
    walk->depth = walk->link_count = 0;
    if (count > LIMIT_PATH_BYTES) return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_BYTES);
    memcpy(walk->rest, path, count + 1);
    for (bool last = false; !last;) {
        cy_err err = beneath_step(walk, follow_last, name, &last);
        if (!cy_failed(err)) continue;
        beneath_up_to(walk, 0);
        return err;
    }
    return CY_OK;
}

static cy_err beneath_walk_open(const struct beneath_root *root, const char *path, int flags, mode_t mode,
                                int *descriptor_out)
{
    struct beneath_walk walk;
    beneath_name name;
    /* Something may become a link after the walk looked at it: then open says ELOOP, and the walk begins anew. */
    for (int i = 0; i < BENEATH_RACES_MAX; i++) {
        CY_TRY(beneath_walk_to(&walk, root, path, !(flags & (O_NOFOLLOW | O_EXCL)), name));
        int descriptor = openat(beneath_here(&walk), name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
        int error_number = errno;
        beneath_up_to(&walk, 0);
        struct stat status;
        if (descriptor >= 0 && root->denied_count > 0 && fstat(descriptor, &status) == 0 &&
            S_ISDIR(status.st_mode) && beneath_is_denied(root, &status)) {
            close(descriptor); /* it was renamed to this place just now */
            return CY_ERR(PERMISSION);
        }
        if (descriptor >= 0) {
            *descriptor_out = descriptor;
            return CY_OK;
        }
        if (error_number != ELOOP) return beneath_error(error_number);
    }
    return CY_ERR_DETAIL(SYSTEM, ELOOP);
}

/* -- openat2 --------------------------------------------------------------------------------------------- */

/* False when the system has no such call, or forbids it (old containers): the walk serves then. */
static bool beneath_open2(const struct beneath_root *root, const char *path, int flags, mode_t mode,
                          int *descriptor_out, cy_err *err_out)
{
#if defined(__linux__) && defined(SYS_openat2)
    if (root->walk || root->denied_count > 0) return false;
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = (root->is_top ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | RESOLVE_NO_MAGICLINKS,
    };
    long result = -1;
    for (int i = 0; i < BENEATH_RACES_MAX; i++) {
        result = syscall(SYS_openat2, root->descriptor, path, &how, sizeof how);
        if (result >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    if (result < 0 && (errno == ENOSYS || errno == EPERM)) return false;
    *descriptor_out = (int)result;
    *err_out = result < 0 ? beneath_error(errno) : CY_OK;
    return true;
#else
    (void)root, (void)path, (void)flags, (void)mode, (void)descriptor_out, (void)err_out;
    return false;
#endif
}

/* -- procfs ---------------------------------------------------------------------------------------------- */

/* A process's environment, memory and descriptors lie there as files: a rule must name a folder of it. */
static cy_err beneath_check_procfs(const struct beneath_root *root, int descriptor)
{
    if (!beneath_is_procfs(descriptor)) return CY_OK;
    if (root->descriptor != AT_FDCWD && beneath_is_procfs(root->descriptor)) return CY_OK;
    return CY_ERR(PERMISSION);
}

/* Without a folder. Links of the kernel (/dev/fd/3, /proc/1/root) lead to what other processes hold open: not followed,
 * but for the input that we were given. */
static cy_err beneath_open_free(const char *path, int flags, mode_t mode, int *descriptor_out)
{
    int descriptor = -1;
    errno = ENOSYS;
#if defined(__linux__) && defined(SYS_openat2)
    struct open_how how = {.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                           .mode = flags & O_CREAT ? mode : 0,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    if (strcmp(path, "/dev/stdin") != 0)
        descriptor = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (descriptor < 0 && errno == ELOOP) return CY_ERR(PERMISSION);
#endif
    if (descriptor < 0 && (errno == ENOSYS || errno == EPERM))
        descriptor = open(path, flags | O_CLOEXEC, mode);
    *descriptor_out = descriptor;
    return descriptor < 0 ? cy_err_from_errno(errno) : CY_OK;
}

/* -- for users ------------------------------------------------------------------------------------------- */

cy_err beneath_open(const struct beneath_root *root, const char *path, int flags, mode_t mode,
                    int *descriptor_out)
{
    cy_err err;
    if (root->descriptor == AT_FDCWD)
        err = beneath_open_free(path, flags, mode, descriptor_out);
    else if (!beneath_open2(root, path, flags, mode, descriptor_out, &err))
        err = beneath_walk_open(root, path, flags, mode, descriptor_out);
    CY_TRY(err);
    err = beneath_check_procfs(root, *descriptor_out);
    if (cy_failed(err)) close(*descriptor_out);
    return err;
}

cy_err beneath_stat(const struct beneath_root *root, const char *path, struct stat *status_out)
{
    if (root->descriptor == AT_FDCWD) return cy_err_from_errno(stat(path, status_out) == 0 ? 0 : errno);
#ifdef O_PATH
    int descriptor;
    cy_err err;
    if (beneath_open2(root, path, O_PATH, 0, &descriptor, &err)) {
        CY_TRY(err);
        err = cy_err_from_errno(fstat(descriptor, status_out) == 0 ? 0 : errno);
        close(descriptor);
        return err;
    }
#endif
    struct beneath_walk walk;
    beneath_name name;
    CY_TRY(beneath_walk_to(&walk, root, path, true, name));
    int result = fstatat(beneath_here(&walk), name, status_out, AT_SYMLINK_NOFOLLOW);
    int error_number = result == 0 ? 0 : errno;
    beneath_up_to(&walk, 0);
    return beneath_error(error_number);
}

/* The text up to the last part. */
static cy_err beneath_open_folder(const struct beneath_root *root, cy_bytes parent, int *folder_out)
{
    char text[LIMIT_PATH_BYTES + 1];
    memcpy(text, parent.data, parent.count);
    text[parent.count] = 0;
    return beneath_open(root, text, BENEATH_FOLDER_FLAGS & ~O_NOFOLLOW, 0, folder_out);
}

cy_err beneath_parent(const struct beneath_root *root, const char *path, int *folder_out,
                      beneath_name name_out)
{
    cy_bytes whole = cy_bytes_from_text(path), name = path_name(whole);
    if (whole.count > LIMIT_PATH_BYTES) return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_BYTES);
    if (name.count == 0 || cy_bytes_equal(name, CY_BYTES(".")) || cy_bytes_equal(name, CY_BYTES("..")))
        return CY_ERR(VALUE);
    if (name.count > NAME_MAX) return CY_ERR_DETAIL(SYSTEM, ENAMETOOLONG);
    memcpy(name_out, name.data, name.count);
    name_out[name.count] = 0;
    CY_TRY(beneath_open_folder(root, path_parent(whole), folder_out));
    struct stat status;
    if (root->denied_count > 0 && fstatat(*folder_out, name_out, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode) && beneath_is_denied(root, &status)) {
        close(*folder_out);
        return CY_ERR(PERMISSION);
    }
    return CY_OK;
}

#undef BENEATH_FOLDER_FLAGS
#undef BENEATH_LINKS_MAX
#undef BENEATH_RACES_MAX
