/* SPDX-License-Identifier: MIT
 *
 * vm/net/proxy_protocol.h: the header by which a load balancer says for whom a connection is.
 *
 * In:   the first bytes of a connection. Out: both addresses, and how many bytes the header took; or such a header.
 * Spec: haproxy.org, doc/proxy-protocol.txt, versions 1 and 2. Extensions of version 2 (TLVs) are skipped, not judged.
 * Invariant: nothing is read past `input`; a header is complete or the answer is MORE, and no prefix of a good
 *       header is BAD.
 */
#ifndef CY_NET_PROXY_PROTOCOL_H
#define CY_NET_PROXY_PROTOCOL_H

#include "vm/base/builder.h"
#include "vm/net/address.h"

#define PROXY_PROTOCOL_V1_BYTES 107 /* the longest line of version 1, with its CR LF */

enum proxy_protocol_step { PROXY_PROTOCOL_MORE, PROXY_PROTOCOL_DONE, PROXY_PROTOCOL_BAD };

struct proxy_protocol {
    bool
        has_addresses; /* false: LOCAL, UNKNOWN, or a family that is not IP: the socket's own addresses stand */
    struct address source, destination;
    size_t used_bytes;
    const char *fault; /* BAD: why, in English; static */
};
/* MORE: ask again with more bytes behind the same ones; at most LIMIT_PROXY_PROTOCOL_BYTES of them. */
enum proxy_protocol_step proxy_protocol_parse(cy_bytes input, struct proxy_protocol *header_out);

/* Appends a header of version 1 or 2; addresses that are not both of one IP family: UNKNOWN, or LOCAL. */
void proxy_protocol_write(uint8_t version, const struct address *source, const struct address *destination,
                          struct builder *out);

#endif
