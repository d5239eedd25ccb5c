/* SPDX-License-Identifier: MIT
 *
 * vm/net/address.h: where to listen and where to connect.
 *
 * Text forms: "127.0.0.1:80", "[::1]:80", ":80" (every address, both families), "fd@3" (an inherited listening
 * socket).
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
/* "127.0.0.1:80", "[::1]:80". */
void address_format(const struct address *address, bool with_port, struct builder *out);
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);
bool address_equal(const struct address *a, const struct address *b);

#endif
