/* SPDX-License-Identifier: MIT
 *
 * vm/net/proxy_protocol.c: see proxy_protocol.h.
 *
 *   version 1:  "PROXY " TCP4|TCP6 " " source " " destination " " port " " port CR LF      or "PROXY UNKNOWN" ... CR LF
 *   version 2:  12 bytes of signature | version, command | family, transport | length u16 | addresses | TLVs
 */
#include "vm/net/proxy_protocol.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define PROXY_PROTOCOL_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define PROXY_PROTOCOL_SIGNATURE_BYTES 12
#define PROXY_PROTOCOL_V2_FIXED_BYTES 16
#define PROXY_PROTOCOL_V4_BYTES 12 /* two addresses, two ports */
#define PROXY_PROTOCOL_V6_BYTES 36

static enum proxy_protocol_step proxy_protocol_bad(struct proxy_protocol *header, const char *fault)
{
    header->fault = fault;
    return PROXY_PROTOCOL_BAD;
}

/* -- version 1 ------------------------------------------------------------------------------------------- */

static bool proxy_protocol_word(cy_bytes *line, cy_bytes *word_out)
{
    size_t space = cy_bytes_find(*line, ' ');
    *word_out = cy_bytes_slice(*line, 0, space);
    *line = space < line->count ? cy_bytes_skip(*line, space + 1) : CY_BYTES_NONE;
    return word_out->count > 0;
}

/* Decimal without leading zeros, as the specification has it. */
static bool proxy_protocol_port(cy_bytes word, uint16_t *port_out)
{
    uint64_t number;
    if (word.count > 1 && word.data[0] == '0') return false;
    if (!cy_bytes_parse_u64(word, UINT16_MAX, &number)) return false;
    *port_out = (uint16_t)number;
    return true;
}

static enum proxy_protocol_step proxy_protocol_line(cy_bytes line, struct proxy_protocol *header)
{
    cy_bytes family, source, destination, source_port;
    uint16_t from = 0, to = 0;
    if (!proxy_protocol_word(&line, &family))
        return proxy_protocol_bad(header, "no family in the PROXY line");
    if (cy_bytes_equal(family, CY_BYTES("UNKNOWN")))
        return PROXY_PROTOCOL_DONE; /* the rest is to be ignored */
    bool is_v4 = cy_bytes_equal(family, CY_BYTES("TCP4"));
    if (!is_v4 && !cy_bytes_equal(family, CY_BYTES("TCP6")))
        return proxy_protocol_bad(header, "the PROXY line's family is not TCP4, TCP6 or UNKNOWN");
    bool good = proxy_protocol_word(&line, &source) && proxy_protocol_word(&line, &destination) &&
                proxy_protocol_word(&line, &source_port) && proxy_protocol_port(source_port, &from) &&
                proxy_protocol_port(line, &to) &&
                !cy_failed(address_from_ip(source, from, &header->source)) &&
                !cy_failed(address_from_ip(destination, to, &header->destination));
    sa_family_t family_wanted = is_v4 ? AF_INET : AF_INET6;
    good = good && header->source.storage.ss_family == family_wanted &&
           header->destination.storage.ss_family == family_wanted;
    if (!good) return proxy_protocol_bad(header, "malformed addresses in the PROXY line");
    header->has_addresses = true;
    return PROXY_PROTOCOL_DONE;
}

static enum proxy_protocol_step proxy_protocol_parse_v1(cy_bytes input, struct proxy_protocol *header)
{
    cy_bytes line = cy_bytes_slice(input, 0, cy_min_size(input.count, PROXY_PROTOCOL_V1_BYTES));
    size_t end = cy_bytes_find(line, '\r');
    if (end + 1 >= line.count)
        return line.count < PROXY_PROTOCOL_V1_BYTES
                   ? PROXY_PROTOCOL_MORE
                   : proxy_protocol_bad(header, "the PROXY line is too long");
    if (line.data[end + 1] != '\n') return proxy_protocol_bad(header, "CR without LF in the PROXY line");
    header->used_bytes = end + 2;
    return proxy_protocol_line(cy_bytes_slice(line, sizeof "PROXY " - 1, end), header);
}

/* -- version 2 ------------------------------------------------------------------------------------------- */

static void proxy_protocol_set(struct address *address, bool is_v4, const uint8_t *ip, const uint8_t *port)
{
    memset(address, 0, sizeof *address);
    if (is_v4) {
        struct sockaddr_in *name = (struct sockaddr_in *)&address->storage;
        name->sin_family = AF_INET;
        memcpy(&name->sin_addr, ip, 4);
        memcpy(&name->sin_port, port, 2);
        address->bytes = sizeof *name;
    } else {
        struct sockaddr_in6 *name = (struct sockaddr_in6 *)&address->storage;
        name->sin6_family = AF_INET6;
        memcpy(&name->sin6_addr, ip, 16);
        memcpy(&name->sin6_port, port, 2);
        address->bytes = sizeof *name;
    }
}

static enum proxy_protocol_step proxy_protocol_parse_v2(cy_bytes input, struct proxy_protocol *header)
{
    if (input.count > 12 && (input.data[12] >> 4) != 2)
        return proxy_protocol_bad(header, "the PROXY header's version is not 2");
    if (input.count > 12 && (input.data[12] & 15) > 1)
        return proxy_protocol_bad(header, "the PROXY header's command is neither LOCAL nor PROXY");
    if (input.count < PROXY_PROTOCOL_V2_FIXED_BYTES) return PROXY_PROTOCOL_MORE;
    size_t length = (size_t)input.data[14] << 8 | input.data[15];
    bool is_local = (input.data[12] & 15) == 0;
    uint8_t family = input.data[13];
    if (length + PROXY_PROTOCOL_V2_FIXED_BYTES > LIMIT_PROXY_PROTOCOL_BYTES)
        return proxy_protocol_bad(header, "the PROXY header is longer than PROXY_PROTOCOL_BYTES (2048)");
    bool is_v4 = family == 0x11, is_v6 = family == 0x21;
    size_t needed = is_v4 ? PROXY_PROTOCOL_V4_BYTES : is_v6 ? PROXY_PROTOCOL_V6_BYTES : 0;
    if (!is_local && length < needed)
        return proxy_protocol_bad(header, "the PROXY header is too short for its addresses");
    if (!is_local && ((family >> 4) > 3 || (family & 15) > 2))
        return proxy_protocol_bad(header, "the PROXY header's family or transport does not exist");
    header->used_bytes = PROXY_PROTOCOL_V2_FIXED_BYTES + length;
    if (input.count < header->used_bytes) return PROXY_PROTOCOL_MORE;
    if (is_local || needed == 0)
        return PROXY_PROTOCOL_DONE; /* unspecified, UNIX, datagrams: accepted, not used */
    const uint8_t *data = input.data + PROXY_PROTOCOL_V2_FIXED_BYTES;
    size_t ip_bytes = is_v4 ? 4 : 16;
    proxy_protocol_set(&header->source, is_v4, data, data + 2 * ip_bytes);
    proxy_protocol_set(&header->destination, is_v4, data + ip_bytes, data + 2 * ip_bytes + 2);
    header->has_addresses = true;
    return PROXY_PROTOCOL_DONE;
}

/* -- both ------------------------------------------------------------------------------------------------ */

static bool proxy_protocol_may_become(cy_bytes input, cy_bytes beginning)
{
    size_t count = cy_min_size(input.count, beginning.count);
    return cy_bytes_equal(cy_bytes_slice(input, 0, count), cy_bytes_slice(beginning, 0, count));
}

enum proxy_protocol_step proxy_protocol_parse(cy_bytes input, struct proxy_protocol *header)
{
    cy_bytes v1 = CY_BYTES("PROXY "),
             v2 = cy_bytes_of(PROXY_PROTOCOL_SIGNATURE, PROXY_PROTOCOL_SIGNATURE_BYTES);
    memset(header, 0, sizeof *header);
    if (proxy_protocol_may_become(input, v1))
        return input.count < v1.count ? PROXY_PROTOCOL_MORE : proxy_protocol_parse_v1(input, header);
    if (proxy_protocol_may_become(input, v2))
        return input.count < v2.count ? PROXY_PROTOCOL_MORE : proxy_protocol_parse_v2(input, header);
    return proxy_protocol_bad(header, "it does not begin with a PROXY header");
}

/* An IPv4 client of a listener for both families. */
static struct address proxy_protocol_plain(const struct address *address)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    struct address plain = *address;
    if (address->bytes == 0 || address->storage.ss_family != AF_INET6 ||
        !IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return plain;
    proxy_protocol_set(&plain, true, v6->sin6_addr.s6_addr + 12, (const uint8_t *)&v6->sin6_port);
    return plain;
}

static void proxy_protocol_write_v2(const struct address *source, const struct address *destination,
                                    int family, struct builder *out)
{
    static const uint8_t local[] = {0x20, 0, 0, 0}, v4[] = {0x21, 0x11, 0, PROXY_PROTOCOL_V4_BYTES},
                         v6[] = {0x21, 0x21, 0, PROXY_PROTOCOL_V6_BYTES};
    builder_bytes(out, cy_bytes_of(PROXY_PROTOCOL_SIGNATURE, PROXY_PROTOCOL_SIGNATURE_BYTES));
    if (family == AF_INET) {
        const struct sockaddr_in *a = (const struct sockaddr_in *)&source->storage;
        const struct sockaddr_in *b = (const struct sockaddr_in *)&destination->storage;
        builder_bytes(out, cy_bytes_of(v4, sizeof v4));
        builder_bytes(out, cy_bytes_of(&a->sin_addr, 4));
        builder_bytes(out, cy_bytes_of(&b->sin_addr, 4));
        builder_bytes(out, cy_bytes_of(&a->sin_port, 2));
        builder_bytes(out, cy_bytes_of(&b->sin_port, 2));
    } else if (family == AF_INET6) {
        const struct sockaddr_in6 *a = (const struct sockaddr_in6 *)&source->storage;
        const struct sockaddr_in6 *b = (const struct sockaddr_in6 *)&destination->storage;
        builder_bytes(out, cy_bytes_of(v6, sizeof v6));
        builder_bytes(out, cy_bytes_of(&a->sin6_addr, 16));
        builder_bytes(out, cy_bytes_of(&b->sin6_addr, 16));
        builder_bytes(out, cy_bytes_of(&a->sin6_port, 2));
        builder_bytes(out, cy_bytes_of(&b->sin6_port, 2));
    } else {
        builder_bytes(out, cy_bytes_of(local, sizeof local));
    }
}

/* As the family has it, unlike address_format. */
static void proxy_protocol_write_ip(const struct address *address, struct builder *out)
{
    char text[INET6_ADDRSTRLEN];
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    int family = address->storage.ss_family;
    const void *ip = family == AF_INET ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr;
    CHECK(inet_ntop(family, ip, text, sizeof text));
    builder_text(out, text);
}

void proxy_protocol_write(uint8_t version, const struct address *source, const struct address *destination,
                          struct builder *out)
{
    struct address from = proxy_protocol_plain(source), to = proxy_protocol_plain(destination);
    if (from.bytes != to.bytes) from = *source, to = *destination; /* one of them is IPv6: then both are */
    int family = from.bytes ? from.storage.ss_family : AF_UNSPEC;
    if (to.bytes == 0 || to.storage.ss_family != family || (family != AF_INET && family != AF_INET6))
        family = AF_UNSPEC;
    if (version == 2) {
        proxy_protocol_write_v2(&from, &to, family, out);
        return;
    }
    if (family == AF_UNSPEC) {
        builder_text(out, "PROXY UNKNOWN\r\n");
        return;
    }
    builder_text(out, family == AF_INET ? "PROXY TCP4 " : "PROXY TCP6 ");
    proxy_protocol_write_ip(&from, out);
    builder_text(out, " ");
    proxy_protocol_write_ip(&to, out);
    builder_printf(out, " %u %u\r\n", address_port(&from), address_port(&to));
}

#undef PROXY_PROTOCOL_SIGNATURE
#undef PROXY_PROTOCOL_SIGNATURE_BYTES
#undef PROXY_PROTOCOL_V2_FIXED_BYTES
#undef PROXY_PROTOCOL_V4_BYTES
#undef PROXY_PROTOCOL_V6_BYTES
