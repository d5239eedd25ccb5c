/* SPDX-License-Identifier: MIT
 *
 * vm/net/address.c: text to socket addresses and back.
 *
 * In:   text from configuration and from peers. Out: struct address, or BAD_ADDRESS.
 * Invariant: an address made here has its unused bytes zeroed and `bytes` set to the size of its family.
 * Not here:  names (dns.c).
 */
#include "vm/net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

#define ADDRESS_TEXT_BYTES 64 /* the longest is "[8 groups of 4]%scope", INET6_ADDRSTRLEN is 46 */

static struct sockaddr_in *address_v4(struct address *address)
{
    return (struct sockaddr_in *)&address->storage;
}
static struct sockaddr_in6 *address_v6(struct address *address)
{
    return (struct sockaddr_in6 *)&address->storage;
}

cy_err address_from_ip(cy_bytes ip, uint16_t port, struct address *address_out)
{
    char text[ADDRESS_TEXT_BYTES];
    if (ip.count == 0 || ip.count >= sizeof text || memchr(ip.data, 0, ip.count)) return CY_ERR(BAD_ADDRESS);
    memcpy(text, ip.data, ip.count);
    text[ip.count] = 0;
    memset(address_out, 0, sizeof *address_out);
    if (inet_pton(AF_INET, text, &address_v4(address_out)->sin_addr) == 1) {
        address_v4(address_out)->sin_family = AF_INET;
        address_out->bytes = sizeof(struct sockaddr_in);
    } else if (inet_pton(AF_INET6, text, &address_v6(address_out)->sin6_addr) == 1) {
        address_v6(address_out)->sin6_family = AF_INET6;
        address_out->bytes = sizeof(struct sockaddr_in6);
    } else {
        return CY_ERR(BAD_ADDRESS);
    }
    address_set_port(address_out, port);
    return CY_OK;
}

cy_err address_split(cy_bytes text, cy_bytes *host_out, uint16_t *port_out)
{
    size_t colon; /* the one before the port */
    cy_bytes host;
    if (text.count > 0 && text.data[0] == '[') {
        size_t close = cy_bytes_find(text, ']');
        if (close == text.count) return CY_ERR(BAD_ADDRESS);
        host = cy_bytes_slice(text, 1, close);
        struct address ignored;
        if (cy_failed(address_from_ip(host, 0, &ignored)) || cy_bytes_find(host, ':') == host.count)
            return CY_ERR(BAD_ADDRESS); /* brackets hold an IPv6 address and nothing else */
        colon = close + 1;
    } else {
        colon = cy_bytes_find(text, ':');
        host = cy_bytes_slice(text, 0, colon);
    }
    if (colon >= text.count || text.data[colon] != ':') return CY_ERR(BAD_ADDRESS);
    uint64_t port;
    /* A second colon (an IPv6 address without brackets) is no digit and fails here. */
    if (!cy_bytes_parse_u64(cy_bytes_skip(text, colon + 1), UINT16_MAX, &port)) return CY_ERR(BAD_ADDRESS);
    *host_out = host;
    *port_out = (uint16_t)port;
    return CY_OK;
}

cy_err address_from_text(cy_bytes text, struct address *address_out)
{
    cy_bytes host;
    uint16_t port;
    CY_TRY(address_split(text, &host, &port));
    return address_from_ip(host.count ? host : CY_BYTES("::"), port, address_out);
}

bool address_is_inherited(cy_bytes text, int *descriptor_out)
{
    uint64_t number;
    if (!cy_bytes_start_with(text, CY_BYTES("fd@"))) return false;
    if (!cy_bytes_parse_u64(cy_bytes_skip(text, 3), INT32_MAX, &number)) return false;
    *descriptor_out = (int)number;
    return true;
}

cy_err address_from_path(cy_bytes path, struct address *address_out)
{
    struct sockaddr_un *name = (struct sockaddr_un *)&address_out->storage;
    if (path.count == 0 || path.count >= sizeof name->sun_path || memchr(path.data, 0, path.count))
        return CY_ERR(BAD_ADDRESS);
    memset(address_out, 0, sizeof *address_out);
    name->sun_family = AF_UNIX;
    memcpy(name->sun_path, path.data, path.count);
    address_out->bytes = sizeof *name;
    return CY_OK;
}

bool address_split_unix(cy_bytes text, cy_bytes *path_out, int *mode_out)
{
    if (!cy_bytes_start_with(text, CY_BYTES("unix:"))) return false;
    cy_bytes path = cy_bytes_skip(text, 5);
    size_t query = cy_bytes_find(path, '?');
    *mode_out = -1;
    if (query < path.count) {
        cy_bytes option = cy_bytes_skip(path, query + 1), word = CY_BYTES("mode=");
        path = cy_bytes_slice(path, 0, query);
        if (!cy_bytes_start_with(option, word)) return false;
        option = cy_bytes_skip(option, word.count);
        if (option.count < 3 || option.count > 4) return false;
        *mode_out = 0;
        for (size_t i = 0; i < option.count; i++) {
            if (option.data[i] < '0' || option.data[i] > '7') return false;
            *mode_out = *mode_out * 8 + (option.data[i] - '0');
        }
        if (*mode_out > 0777) return false;
    }
    struct address ignored;
    if (path.count == 0 || path.data[0] != '/' || cy_bytes_find(path, '\n') < path.count) return false;
    *path_out = path;
    return !cy_failed(address_from_path(path, &ignored));
}

bool address_can_listen(cy_bytes text)
{
    cy_bytes part;
    uint16_t port;
    int number;
    if (cy_bytes_start_with(text, CY_BYTES("unix:"))) return address_split_unix(text, &part, &number);
    if (cy_bytes_start_with(text, CY_BYTES("fd@"))) return address_is_inherited(text, &number);
    return !cy_failed(address_split(text, &part, &port));
}

void address_format(const struct address *address, bool with_port, struct builder *out)
{
    char text[ADDRESS_TEXT_BYTES];
    int family = address->bytes ? address->storage.ss_family : AF_UNSPEC;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    if (family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text)) {
        builder_text(out, text);
    } else if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
               inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, text, sizeof text)) {
        builder_text(out, text); /* an IPv4 peer of a dual-stack listener is shown as what it is */
    } else if (family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text)) {
        builder_printf(out, with_port ? "[%s]" : "%s", text);
    } else {
        const struct sockaddr_un *local = (const struct sockaddr_un *)&address->storage;
        bool has_path = family == AF_UNIX && address->bytes > offsetof(struct sockaddr_un, sun_path) &&
                        local->sun_path[0] != 0;
        builder_text(out, family == AF_UNIX ? "unix" : "-");
        if (has_path && with_port) /* the kernel does not promise a NUL */
            builder_printf(out, ":%.*s", (int)sizeof local->sun_path, local->sun_path);
        return;
    }
    if (with_port) builder_printf(out, ":%u", address_port(address));
}

uint16_t address_port(const struct address *address)
{
    if (address->bytes == 0) return 0;
    if (address->storage.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
    if (address->storage.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
    return 0;
}

void address_set_port(struct address *address, uint16_t port)
{
    if (address->storage.ss_family == AF_INET) address_v4(address)->sin_port = htons(port);
    if (address->storage.ss_family == AF_INET6) address_v6(address)->sin6_port = htons(port);
}

bool address_equal(const struct address *a, const struct address *b)
{
    if (a->bytes == 0 || b->bytes == 0) return a->bytes == b->bytes;
    if (a->storage.ss_family != b->storage.ss_family || address_port(a) != address_port(b)) return false;
    if (a->storage.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&a->storage)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)&b->storage)->sin_addr.s_addr;
    if (a->storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const struct sockaddr_in6 *)&a->storage;
        const struct sockaddr_in6 *y = (const struct sockaddr_in6 *)&b->storage;
        return memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0 &&
               x->sin6_scope_id == y->sin6_scope_id;
    }
    return a->bytes == b->bytes && memcmp(&a->storage, &b->storage, a->bytes) == 0;
}

#undef ADDRESS_TEXT_BYTES
