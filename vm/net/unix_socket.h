/* SPDX-License-Identifier: MIT
 *
 * vm/net/unix_socket.h: listening sockets in the file system.
 *
 * A socket's file outlives its process. One that nobody answers on is removed; one that somebody listens on, and a file
 * that is no socket, are left alone.
 */
#ifndef CY_NET_UNIX_SOCKET_H
#define CY_NET_UNIX_SOCKET_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

/* A listening, non-blocking, close-on-exec descriptor. `mode` -1: as the umask has it. ADDRESS_IN_USE when another
 * process listens there, EXISTS when what lies there is no socket, PERMISSION, NOT_FOUND, ... */
CY_NODISCARD cy_err unix_socket_listen(cy_bytes path, int mode, int backlog, int *descriptor_out);
/* Which file lies at a path now. All zero: none. */
struct unix_socket_file {
    uint64_t device, inode;
};
struct unix_socket_file unix_socket_file(cy_bytes path);
/* Removes the file, when it is still that one. */
void unix_socket_remove(cy_bytes path, struct unix_socket_file file);

#endif
