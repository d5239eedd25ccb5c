/* SPDX-License-Identifier: MIT
 *
 * vm/net/unix_socket.c: see unix_socket.h.
 *
 *   lstat ─socket─► connect ─refused─► unlink ─► bind ─► chmod ─► listen
 *           ├─nothing there──────────────────────────┘
 *           └─anything else: EXISTS
 *
 * Two processes that start at the same moment over one stale file can both find it stale, and the later bind then
 * takes the name: whoever needs more uses a folder of its own. Between bind and listen nobody can connect, so the mode
 * holds from the first connection on.
 */
#include "vm/net/unix_socket.h"

#include "vm/net/address.h"
#include "vm/net/loop_internal.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static cy_err unix_socket_open(int *descriptor_out)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0) return cy_err_from_errno(errno);
    cy_err err = loop_system_prepare(descriptor);
    if (cy_failed(err))
        close(descriptor);
    else
        *descriptor_out = descriptor;
    return err;
}

/* Makes room for a new socket's file. */
static cy_err unix_socket_clear(const struct address *address, const char *path)
{
    struct stat file;
    if (lstat(path, &file) != 0) return errno == ENOENT ? CY_OK : cy_err_from_errno(errno);
    if (!S_ISSOCK(file.st_mode)) return CY_ERR(EXISTS);
    int probe;
    CY_TRY(unix_socket_open(&probe));
    int result = connect(probe, (const struct sockaddr *)&address->storage, address->bytes);
    int why = errno;
    close(probe);
    /* EAGAIN: its queue is full, so somebody listens. */
    if (result == 0 || why != ECONNREFUSED) return CY_ERR(ADDRESS_IN_USE);
    return unlink(path) == 0 || errno == ENOENT ? CY_OK : cy_err_from_errno(errno);
}

cy_err unix_socket_listen(cy_bytes path, int mode, int backlog, int *descriptor_out)
{
    struct address address;
    CY_TRY(address_from_path(path, &address));
    const char *name = ((const struct sockaddr_un *)&address.storage)->sun_path;
    CY_TRY(unix_socket_clear(&address, name));
    int descriptor;
    CY_TRY(unix_socket_open(&descriptor));
    bool bound = bind(descriptor, (const struct sockaddr *)&address.storage, address.bytes) == 0;
    bool done = bound && (mode < 0 || chmod(name, (mode_t)mode) == 0) && listen(descriptor, backlog) == 0;
    if (done) {
        *descriptor_out = descriptor;
        return CY_OK;
    }
    cy_err err = cy_err_from_errno(errno);
    if (bound) unlink(name);
    close(descriptor);
    return err;
}

struct unix_socket_file unix_socket_file(cy_bytes path)
{
    struct address address;
    struct stat file;
    if (cy_failed(address_from_path(path, &address)) ||
        lstat(((const struct sockaddr_un *)&address.storage)->sun_path, &file) != 0)
        return (struct unix_socket_file){0, 0};
    return (struct unix_socket_file){(uint64_t)file.st_dev, (uint64_t)file.st_ino};
}

void unix_socket_remove(cy_bytes path, struct unix_socket_file file)
{
    struct address address;
    struct unix_socket_file now = unix_socket_file(path);
    if (file.inode == 0 || now.device != file.device || now.inode != file.inode)
        return; /* another's by now */
    if (cy_failed(address_from_path(path, &address))) return;
    unlink(((const struct sockaddr_un *)&address.storage)->sun_path);
}
