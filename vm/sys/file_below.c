/* SPDX-License-Identifier: MIT
 *
 * vm/sys/file_below.c: see file_below.h.
 *
 * Invariant: after beneath_open or beneath_parent everything goes by descriptor and one name, so a path is resolved
 * once.
 */
#include "vm/sys/file_below.h"

#include "vm/base/limits.h"
#include "vm/base/path.h"
#include "vm/sys/file.h"
#include "vm/sys/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* A pipe that nobody writes to must not hold up the open; the read then waits, as it does for any reader. */
static cy_err file_below_open_to_read(const struct beneath_root *root, const char *path, bool patient,
                                      int *descriptor_out)
{
    CY_TRY(beneath_open(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, descriptor_out));
    struct stat status;
    if (fstat(*descriptor_out, &status) == 0 && S_ISDIR(status.st_mode)) {
        close(*descriptor_out);
        return CY_ERR(IS_FOLDER);
    }
    int flags = fcntl(*descriptor_out, F_GETFL);
    if (flags >= 0 && !patient) fcntl(*descriptor_out, F_SETFL, flags & ~O_NONBLOCK);
    return CY_OK;
}

cy_err file_below_read(const struct beneath_root *root, const char *path, size_t bytes_max,
                       const struct file_patience *patience, struct builder *out)
{
    int descriptor;
    CY_TRY(file_below_open_to_read(root, path, patience != NULL, &descriptor));
    cy_err err = file_read_patient(descriptor, bytes_max, patience, out);
    close(descriptor);
    return err;
}

/* O_NONBLOCK: a pipe without a reader is an error (ENXIO), not a wait for ever. */
static cy_err file_below_open_to_write(const struct beneath_root *root, const char *path, int flags,
                                       bool patient, int *descriptor_out)
{
    cy_err err =
        beneath_open(root, path, O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | flags, 0666, descriptor_out);
    CY_TRY(err);
    int now = fcntl(*descriptor_out, F_GETFL);
    if (now >= 0 && !patient) fcntl(*descriptor_out, F_SETFL, now & ~O_NONBLOCK);
    return CY_OK;
}

cy_err file_below_write(const struct beneath_root *root, const char *path, cy_bytes content,
                        enum file_write_mode mode, const struct file_patience *patience)
{
    int descriptor;
    CY_TRY(file_below_open_to_write(root, path, mode == FILE_WRITE_APPEND ? O_APPEND : O_TRUNC,
                                    patience != NULL, &descriptor));
    cy_err err = file_write_patient(descriptor, content, patience);
    if (close(descriptor) != 0 && !cy_failed(err)) err = cy_err_from_errno(errno);
    return err;
}

/* "name.<16 digits>.new", cut so that it is a name. */
static cy_err file_below_new_name(const char *name, const char *ending, beneath_name name_out)
{
    uint64_t number;
    CY_TRY(random_bytes(&number, sizeof number));
    snprintf(name_out, sizeof(beneath_name), "%.200s%s%016llx%s", name, *name ? "." : "",
             (unsigned long long)number, ending);
    return CY_OK;
}

static cy_err file_below_sync_folder(int folder)
{
    int descriptor = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* O_PATH cannot sync */
    if (descriptor < 0) return cy_err_from_errno(errno);
    int result = fsync(descriptor);
    int error_number = errno;
    close(descriptor);
    /* Some file systems cannot sync a folder; they say EINVAL, and then there is nothing to wait for. */
    return result == 0 || error_number == EINVAL ? CY_OK : cy_err_from_errno(error_number);
}

static cy_err file_below_fill(int folder, const char *name, const char *over, cy_bytes content)
{
    struct stat status;
    bool exists = fstatat(folder, over, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && S_ISDIR(status.st_mode)) return CY_ERR(IS_FOLDER);
    int descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0) return cy_err_from_errno(errno);
    cy_err err = file_write_all(descriptor, content);
    if (!cy_failed(err) && exists && S_ISREG(status.st_mode) &&
        fchmod(descriptor, status.st_mode & 07777) != 0)
        err = cy_err_from_errno(errno);
    if (!cy_failed(err) && fsync(descriptor) != 0) err = cy_err_from_errno(errno);
    if (close(descriptor) != 0 && !cy_failed(err)) err = cy_err_from_errno(errno);
    if (!cy_failed(err) && renameat(folder, name, folder, over) != 0) err = cy_err_from_errno(errno);
    if (cy_failed(err)) unlinkat(folder, name, 0);
    return err;
}

cy_err file_below_write_atomic(const struct beneath_root *root, const char *path, cy_bytes content)
{
    beneath_name name, fresh;
    int folder;
    CY_TRY(beneath_parent(root, path, &folder, name));
    cy_err err = file_below_new_name(name, ".new", fresh);
    if (!cy_failed(err)) err = file_below_fill(folder, fresh, name, content);
    if (!cy_failed(err)) err = file_below_sync_folder(folder);
    close(folder);
    return err;
}

cy_err file_below_stat(const struct beneath_root *root, const char *path, struct file_status *out)
{
    struct stat status;
    CY_TRY(beneath_stat(root, path, &status));
    out->bytes = (int64_t)status.st_size;
#ifdef __APPLE__
    out->modified_ms = (int64_t)status.st_mtimespec.tv_sec * 1000 + status.st_mtimespec.tv_nsec / 1000000;
#else
    out->modified_ms = (int64_t)status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1000000;
#endif
    out->kind = S_ISREG(status.st_mode)   ? FILE_KIND_FILE
                : S_ISDIR(status.st_mode) ? FILE_KIND_FOLDER
                                          : FILE_KIND_OTHER;
    return CY_OK;
}

cy_err file_below_list(const struct beneath_root *root, const char *path, size_t count_max,
                       struct builder *names, size_t *count_out)
{
    int descriptor;
    CY_TRY(beneath_open(root, path, O_RDONLY | O_DIRECTORY, 0, &descriptor));
    DIR *folder = fdopendir(descriptor);
    if (!folder) {
        cy_err err = cy_err_from_errno(errno);
        close(descriptor);
        return err;
    }
    cy_err err = CY_OK;
    size_t count = 0;
    errno = 0;
    for (struct dirent *entry; !cy_failed(err) && (entry = readdir(folder)); errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (count++ == count_max) {
            err = CY_ERR_DETAIL(LIMIT, (int)count_max);
        } else {
            builder_bytes(names, cy_bytes_of(entry->d_name, strlen(entry->d_name) + 1));
            err = builder_error(names);
        }
    }
    if (!cy_failed(err) && errno != 0) err = cy_err_from_errno(errno);
    closedir(folder);
    *count_out = count;
    return err;
}

static cy_err file_below_make_one(const struct beneath_root *root, const char *path)
{
    beneath_name name;
    int folder;
    CY_TRY(beneath_parent(root, path, &folder, name));
    int result = mkdirat(folder, name, 0777);
    cy_err err = cy_err_from_errno(result == 0 ? 0 : errno);
    close(folder);
    return err;
}

/* From the top down; what is there already must be a folder. */
static cy_err file_below_make_all(const struct beneath_root *root, const char *path)
{
    char part[LIMIT_PATH_BYTES + 1];
    size_t count = strlen(path);
    if (count > LIMIT_PATH_BYTES) return CY_ERR_DETAIL(LIMIT, LIMIT_PATH_BYTES);
    for (size_t end = 1; end <= count; end++) {
        if (path[end] != '/' && path[end] != 0) continue;
        if (path[end - 1] == '/') continue;
        memcpy(part, path, end);
        part[end] = 0;
        cy_err err = file_below_make_one(root, part);
        struct file_status status;
        bool there =
            cy_is(err, CY_ERR_EXISTS) || cy_is(err, CY_ERR_VALUE); /* VALUE: "." and ".." are there */
        /* Above a folder that may be written there may be ones that may not, but exist. */
        if (cy_failed(err) && !there && cy_failed(file_below_stat(root, part, &status))) return err;
        if (cy_failed(err)) CY_TRY(file_below_stat(root, part, &status));
        if (cy_failed(err) && status.kind != FILE_KIND_FOLDER) return CY_ERR(EXISTS);
    }
    return CY_OK;
}

cy_err file_below_make_folder(const struct beneath_root *root, const char *path, bool parents)
{
    return parents ? file_below_make_all(root, path) : file_below_make_one(root, path);
}

cy_err file_below_remove(const struct beneath_root *root, const char *path)
{
    beneath_name name;
    int folder;
    CY_TRY(beneath_parent(root, path, &folder, name));
    struct stat status;
    int result = fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
    if (result == 0) result = unlinkat(folder, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
    cy_err err = cy_err_from_errno(result == 0 ? 0 : errno);
    /* rmdir's EEXIST and ENOTEMPTY are one thing. */
    if (cy_is(err, CY_ERR_EXISTS)) err = CY_ERR_DETAIL(SYSTEM, ENOTEMPTY);
    close(folder);
    return err;
}

/* The path leads below `root` to the very folder that is open already. */
static cy_err file_below_check_same(const struct beneath_root *root, const char *path, int folder)
{
    beneath_name name;
    struct stat here, there;
    int other;
    CY_TRY(beneath_parent(root, path, &other, name));
    bool same = fstat(folder, &here) == 0 && fstat(other, &there) == 0 && here.st_dev == there.st_dev &&
                here.st_ino == there.st_ino;
    close(other);
    return same ? CY_OK : CY_ERR(PERMISSION);
}

cy_err file_below_rename(const struct beneath_root *from_root, const char *from,
                         const struct beneath_root *read_root, const char *read,
                         const struct beneath_root *to_root, const char *to)
{
    beneath_name from_name, to_name;
    int from_folder, to_folder;
    CY_TRY(beneath_parent(from_root, from, &from_folder, from_name));
    cy_err err = file_below_check_same(read_root, read, from_folder);
    if (cy_failed(err)) {
        close(from_folder);
        return err;
    }
    err = beneath_parent(to_root, to, &to_folder, to_name);
    if (!cy_failed(err)) {
        int result = renameat(from_folder, from_name, to_folder, to_name);
        err = cy_err_from_errno(result == 0 ? 0 : errno);
        close(to_folder);
    }
    close(from_folder);
    return err;
}

cy_err file_below_temporary(const struct beneath_root *root, const char *folder_path, bool is_folder,
                            struct builder *name_out)
{
    beneath_name name;
    int folder;
    if (!builder_reserve(name_out, sizeof name))
        return CY_ERR(NO_MEMORY); /* what was made must not stay nameless */
    CY_TRY(beneath_open(root, folder_path, O_RDONLY | O_DIRECTORY, 0, &folder));
    cy_err err = file_below_new_name("crownyc", ".tmp", name);
    if (!cy_failed(err) && is_folder) {
        if (mkdirat(folder, name, 0700) != 0) err = cy_err_from_errno(errno);
    } else if (!cy_failed(err)) {
        int descriptor = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (descriptor < 0) err = cy_err_from_errno(errno);
        if (descriptor >= 0) close(descriptor);
    }
    close(folder);
    builder_text(name_out, name);
    return err;
}
