/* SPDX-License-Identifier: MIT
 *
 * vm/net/address.h: where to listen and where to connect.
 *
 * Text forms: "127.0.0.1:80", "[::1]:80", ":80" (every address, both families), "fd@3" (an inherited listening
 * socket), "unix:/run/a.sock" and "unix:/run/a.sock?mode=660" (for listening).
 */
#ifndef CY_NET_ADDRESS_H
#define CY_NET_ADDRESS_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"

#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t bytes; /* 0: none */
};

/* A numeric IPv4 or IPv6 address (no brackets) with a port in host order. BAD_ADDRESS otherwise. */
CY_NODISCARD cy_err address_from_ip(cy_bytes ip, uint16_t port, struct address *address_out);
/* "host:port" or "[v6]:port" or ":port" taken apart; the host is borrowed and may be a name or empty. Port 0 is
 * allowed. */
CY_NODISCARD cy_err address_split(cy_bytes text, cy_bytes *host_out, uint16_t *port_out);
/* The numeric forms above; ":80" is the IPv6 address of all, which listen_open takes for both families. */
CY_NODISCARD cy_err address_from_text(cy_bytes text, struct address *address_out);
/* "fd@3": true and the descriptor's number. */
CY_NODISCARD bool address_is_inherited(cy_bytes text, int *descriptor_out);
/* The address of a UNIX socket; the path holds no NUL and fits into sun_path. BAD_ADDRESS otherwise. */
CY_NODISCARD cy_err address_from_path(cy_bytes path, struct address *address_out);
/* "unix:/path[?mode=OCTAL]" taken apart; `mode_out` -1 when none is written. False: it is none, or malformed. */
CY_NODISCARD bool address_split_unix(cy_bytes text, cy_bytes *path_out, int *mode_out);
/* May this stand in a `listen` option? */
CY_NODISCARD bool address_can_listen(cy_bytes text);
/* "127.0.0.1:80", "[::1]:80"; "unix:/path", where the path is known, else "unix". */
void address_format(const struct address *address, bool with_port, struct builder *out);
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);
bool address_equal(const struct address *a, const struct address *b);

#endif
