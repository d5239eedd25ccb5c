/* SPDX-License-Identifier: MIT
 *
 * vm/sys/file.c: whole files in and out, and anonymous files that nobody can change.
 *
 * In:   paths and descriptors, which may name anything: pipes, devices, folders, files that grow while they are read.
 * Out:  bytes, bounded by the caller's maximum.
 * Invariant: a reader of a file written here sees the old bytes or the new ones, never a part (file_write).
 * Not here:  the store's log, which has its own rules about syncing.
 */
#include "vm/sys/file.h"

#include "vm/base/limits.h"
#include "vm/sys/random.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define FILE_READ_STEP_BYTES 65536 /* room per read when the size is not known (pipes, /proc) */

static ssize_t file_read_step(int descriptor, void *room, size_t bytes, off_t offset)
{
    for (;;) {
        ssize_t count = offset < 0 ? read(descriptor, room, bytes) : pread(descriptor, room, bytes, offset);
        if (count >= 0 || errno != EINTR) return count;
    }
}

/* Reads to the end: from the current place when `offset` is -1, else from there without moving. */
static cy_err file_read_rest(int descriptor, off_t offset, size_t bytes_max,
                             const struct file_patience *patience, struct builder *out)
{
    struct stat status;
    size_t expected_bytes = 0;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        expected_bytes = cy_min_size((size_t)status.st_size, bytes_max);
    size_t total_bytes = 0;
    for (;;) {
        /* One byte more than expected: a file of known size is then read by one read and one that sees the end. */
        size_t step = expected_bytes > total_bytes ? expected_bytes - total_bytes + 1 : FILE_READ_STEP_BYTES;
        if (step > bytes_max - total_bytes)
            step = bytes_max - total_bytes + 1; /* sees one byte past the limit */
        size_t free_bytes = out->capacity - out->count;
        if (patience && step > free_bytes)
            CY_TRY(patience->grow(patience->context, cy_max_size(step - free_bytes, out->capacity)));
        uint8_t *room = builder_reserve(out, step);
        if (!room) return CY_ERR(NO_MEMORY);
        ssize_t count = file_read_step(descriptor, room, step, offset < 0 ? -1 : offset + (off_t)total_bytes);
        if (count < 0 && patience && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            CY_TRY(patience->wait(patience->context, descriptor, false));
            continue;
        }
        if (count < 0) return cy_err_from_errno(errno);
        if (count == 0) return CY_OK;
        total_bytes += (size_t)count;
        if (total_bytes > bytes_max) return CY_ERR(TOO_LARGE);
        out->count += (size_t)count;
    }
}

cy_err file_read(const char *path, size_t bytes_max, struct builder *out)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return cy_err_from_errno(errno);
    size_t count_before = out->count;
    cy_err err = file_read_rest(descriptor, -1, bytes_max, NULL, out);
    if (cy_failed(err)) out->count = count_before;
    close(descriptor);
    return err;
}

cy_err file_read_descriptor(int descriptor, size_t bytes_max, struct builder *out)
{
    size_t count_before = out->count;
    cy_err err = file_read_rest(descriptor, 0, bytes_max, NULL, out);
    if (cy_failed(err)) out->count = count_before;
    return err;
}

cy_err file_read_stream(int descriptor, size_t bytes_max, struct builder *out)
{
    size_t count_before = out->count;
    cy_err err = file_read_rest(descriptor, -1, bytes_max, NULL, out);
    if (cy_failed(err)) out->count = count_before;
    return err;
}

cy_err file_read_patient(int descriptor, size_t bytes_max, const struct file_patience *patience,
                         struct builder *out)
{
    size_t count_before = out->count;
    cy_err err = file_read_rest(descriptor, -1, bytes_max, patience, out);
    if (cy_failed(err)) out->count = count_before;
    return err;
}

cy_err file_write_all(int descriptor, cy_bytes bytes) { return file_write_patient(descriptor, bytes, NULL); }

cy_err file_write_patient(int descriptor, cy_bytes bytes, const struct file_patience *patience)
{
    while (bytes.count > 0) {
        ssize_t count = write(descriptor, bytes.data, bytes.count);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && patience && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            CY_TRY(patience->wait(patience->context, descriptor, true));
            continue;
        }
        if (count < 0) return cy_err_from_errno(errno);
        bytes = cy_bytes_skip(bytes, (size_t)count);
    }
    return CY_OK;
}

/* For what rename must not replace: /dev/null, /dev/stdout, a named pipe. */
static cy_err file_write_in_place(const char *path, cy_bytes bytes)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return cy_err_from_errno(errno);
    cy_err err = file_write_all(descriptor, bytes);
    if (close(descriptor) != 0 && !cy_failed(err)) err = cy_err_from_errno(errno);
    return err;
}

/* Creates "path.<random>.new" beside `path`: the same file system, so that rename is one step. */
static cy_err file_open_beside(const char *path, char *name, size_t name_bytes, int *descriptor_out)
{
    uint64_t number;
    CY_TRY(random_bytes(&number, sizeof number));
    int count = snprintf(name, name_bytes, "%s.%016llx.new", path, (unsigned long long)number);
    if (count < 0 || (size_t)count >= name_bytes) return CY_ERR_DETAIL(SYSTEM, ENAMETOOLONG);
    *descriptor_out = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return *descriptor_out < 0 ? cy_err_from_errno(errno) : CY_OK;
}

cy_err file_write(const char *path, cy_bytes bytes)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) return CY_ERR(IS_FOLDER);
    if (exists && !S_ISREG(status.st_mode)) return file_write_in_place(path, bytes);

    /* A symbolic link stays one: its target is what is replaced. */
    char target[LIMIT_PATH_BYTES], name[LIMIT_PATH_BYTES];
    if (exists && strlen(path) < sizeof target && realpath(path, target)) path = target;
    int descriptor;
    CY_TRY(file_open_beside(path, name, sizeof name, &descriptor));
    cy_err err = file_write_all(descriptor, bytes);
    if (!cy_failed(err) && exists && fchmod(descriptor, status.st_mode & 07777) != 0)
        err = cy_err_from_errno(errno);
    if (!cy_failed(err) && fsync(descriptor) != 0) err = cy_err_from_errno(errno);
    if (close(descriptor) != 0 && !cy_failed(err)) err = cy_err_from_errno(errno);
    if (!cy_failed(err) && rename(name, path) != 0) err = cy_err_from_errno(errno);
    if (cy_failed(err)) unlink(name);
    return err;
}

#ifdef __linux__
cy_err file_scratch(const char *label, int *descriptor_out)
{
    *descriptor_out = memfd_create(label, MFD_CLOEXEC);
    return *descriptor_out < 0 ? cy_err_from_errno(errno) : CY_OK;
}

cy_err file_sealed(const char *label, cy_bytes bytes, int *descriptor_out)
{
    int descriptor = memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0) return cy_err_from_errno(errno);
    cy_err err = file_write_all(descriptor, bytes);
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    if (!cy_failed(err) && fcntl(descriptor, F_ADD_SEALS, seals) != 0) err = cy_err_from_errno(errno);
    if (cy_failed(err)) {
        close(descriptor);
        return err;
    }
    *descriptor_out = descriptor;
    return CY_OK;
}
#else
cy_err file_scratch(const char *label, int *descriptor_out)
{
    (void)label;
    char name[] = "/tmp/crownyc.XXXXXX";
    *descriptor_out = mkostemp(name, O_CLOEXEC);
    if (*descriptor_out < 0) return cy_err_from_errno(errno);
    unlink(name);
    return CY_OK;
}

/* Without seals the protection is that no name leads to the file and that the descriptor handed out cannot write. */
cy_err file_sealed(const char *label, cy_bytes bytes, int *descriptor_out)
{
    (void)label;
    char name[] = "/tmp/crownyc.XXXXXX";
    int writable = mkstemp(name);
    if (writable < 0) return cy_err_from_errno(errno);
    cy_err err = file_write_all(writable, bytes);
    int read_only = open(name, O_RDONLY | O_CLOEXEC);
    if (read_only < 0 && !cy_failed(err)) err = cy_err_from_errno(errno);
    unlink(name);
    close(writable);
    if (cy_failed(err)) {
        if (read_only >= 0) close(read_only);
        return err;
    }
    *descriptor_out = read_only;
    return CY_OK;
}
#endif

#undef FILE_READ_STEP_BYTES
