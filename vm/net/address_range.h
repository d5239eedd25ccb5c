/* SPDX-License-Identifier: MIT
 *
 * vm/net/address_range.h: blocks of addresses: "10.0.0.0/8", "2001:db8::/32", "192.0.2.7".
 */
#ifndef CY_NET_ADDRESS_RANGE_H
#define CY_NET_ADDRESS_RANGE_H

#include "vm/net/address.h"

struct address_range {
    uint8_t bytes[16]; /* in network order; an IPv4 block as ::ffff:0:0/96 and on */
    uint8_t bits;      /* 0..128 that must be equal */
};

/* BAD_ADDRESS for a length past the family's, and for bits set behind it: "10.0.0.1/8" is a slip of the pen. */
CY_NODISCARD cy_err address_range_from_text(cy_bytes text, struct address_range *range_out);
/* False for what is no IP address. An IPv4 peer of a listener for both families is an IPv4 address. */
bool address_range_has(const struct address_range *range, const struct address *address);

#endif
