/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_net.h: what native_net.c and native_connect.c share.
 */
#ifndef CY_NATIVE_NATIVE_NET_H
#define CY_NATIVE_NATIVE_NET_H

#include "vm/native/runtime_internal.h"
#include "vm/sys/beneath.h"

/* Makes a connection handle of `owner` of a connected socket, which it takes, also on failure. */
CY_NODISCARD cy_err native_net_adopt(struct runtime *runtime, struct loop_socket *owned_socket,
                                     struct fiber *owner, cy_value *connection_out);

/* Where the file of a UNIX socket lies, found by the path rules. */
struct native_net_unix {
    struct address address; /* leads to `name` in `folder`, however long the path is */
    int folder;             /* owned by the caller */
    beneath_name name;
};
CY_NODISCARD cy_err native_net_find_unix(struct runtime *runtime, enum path_access access, cy_bytes path,
                                         struct native_net_unix *place_out);

#endif
