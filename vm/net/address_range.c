/* SPDX-License-Identifier: MIT
 *
 * vm/net/address_range.c: see address_range.h.
 */
#include "vm/net/address_range.h"

#include <netinet/in.h>

#define ADDRESS_RANGE_V4_BITS 96 /* before an IPv4 address in an IPv6 one */

static bool address_range_bytes(const struct address *address, uint8_t bytes[16])
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    int family = address->bytes ? address->storage.ss_family : AF_UNSPEC;
    if (family == AF_INET) {
        memcpy(bytes, mapped, sizeof mapped);
        memcpy(bytes + 12, &((const struct sockaddr_in *)&address->storage)->sin_addr, 4);
    } else if (family == AF_INET6) {
        memcpy(bytes, &((const struct sockaddr_in6 *)&address->storage)->sin6_addr, 16);
    }
    return family == AF_INET || family == AF_INET6;
}

/* Are they equal in their first `bits`? */
static bool address_range_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0) return false;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

cy_err address_range_from_text(cy_bytes text, struct address_range *range_out)
{
    size_t slash = cy_bytes_find(text, '/');
    struct address address;
    CY_TRY(address_from_ip(cy_bytes_slice(text, 0, slash), 0, &address));
    bool is_v4 = address.storage.ss_family == AF_INET;
    uint64_t bits = is_v4 ? 32 : 128;
    if (slash < text.count && !cy_bytes_parse_u64(cy_bytes_skip(text, slash + 1), bits, &bits))
        return CY_ERR(BAD_ADDRESS);
    if (!address_range_bytes(&address, range_out->bytes)) return CY_ERR(BAD_ADDRESS);
    range_out->bits = (uint8_t)(bits + (is_v4 ? ADDRESS_RANGE_V4_BITS : 0));
    for (unsigned i = range_out->bits; i < 128; i++)
        if (range_out->bytes[i / 8] >> (7 - i % 8) & 1) return CY_ERR(BAD_ADDRESS);
    return CY_OK;
}

bool address_range_has(const struct address_range *range, const struct address *address)
{
    uint8_t bytes[16];
    return address_range_bytes(address, bytes) && address_range_equal(bytes, range->bytes, range->bits);
}

#undef ADDRESS_RANGE_V4_BITS
