/* SPDX-License-Identifier: MIT
 *
 * vm/http/uri.c: normal forms of paths and hosts (RFC 3986 section 6.2.2).
 *
 * In, Out, Invariant: uri.h.
 * Order: escapes first, dot segments second, so that %2e%2e is a dot segment for us as it is for the server
 *        behind us.
 */
#include "vm/http/uri.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/url.h"

/* True when nothing in the path can need a change: no '%', no backslash, no segment that begins with a
 * dot. */
static bool uri_is_plain_path(cy_bytes path)
{
    uint8_t before = 0;
    for (size_t i = 0; i < path.count; i++) {
        uint8_t byte = path.data[i];
        if (byte == '%' || byte == '\\' || (byte == '.' && before == '/')) return false;
        before = byte;
    }
    return true;
}

static uint8_t uri_decode(cy_bytes path, uint8_t *space, size_t *count_out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t count = 0;
    for (size_t i = 0; i < path.count; i++) {
        uint8_t byte = path.data[i];
        if (byte == '\\') return H1_FAULT_TARGET_BACKSLASH;
        if (byte != '%') {
            space[count++] = byte;
            continue;
        }
        if (path.count - i < 3) return H1_FAULT_TARGET_ESCAPE;
        int high = url_hex_digit(path.data[i + 1]), low = url_hex_digit(path.data[i + 2]);
        if (high < 0 || low < 0 || (high == 0 && low == 0)) return H1_FAULT_TARGET_ESCAPE;
        i += 2;
        uint8_t decoded = (uint8_t)(high << 4 | low);
        if (url_is_unreserved(decoded)) {
            space[count++] = decoded;
        } else {
            space[count++] = '%';
            space[count++] = (uint8_t)digits[high];
            space[count++] = (uint8_t)digits[low];
        }
    }
    *count_out = count;
    return H1_FAULT_NONE;
}

uint8_t uri_normalise_path(cy_bytes path, uint8_t *space, cy_bytes *path_out)
{
    if (path.count == 0 || path.data[0] != '/') return H1_FAULT_TARGET;
    *path_out = path;
    if (uri_is_plain_path(path)) return H1_FAULT_NONE;
    size_t count;
    uint8_t fault = uri_decode(path, space, &count);
    if (fault) return fault;
    *path_out = cy_bytes_of(space, url_remove_dot_segments(space, count));
    CHECK(path_out->count > 0 && path_out->count <= path.count);
    return H1_FAULT_NONE;
}

bool uri_climbs(cy_bytes path)
{
    for (size_t i = 0; i < path.count;) {
        size_t dots = 0;
        for (;;) {
            cy_bytes rest = cy_bytes_skip(path, i);
            bool plain = rest.count >= 1 && rest.data[0] == '.';
            bool escaped =
                rest.count >= 3 && rest.data[0] == '%' && rest.data[1] == '2' && (rest.data[2] | 0x20) == 'e';
            if (!plain && !escaped) break;
            dots++;
            i += plain ? 1 : 3;
        }
        if (dots == 2 && (i == path.count || path.data[i] == '/')) return true;
        while (i < path.count && path.data[i] != '/') i++;
        i++;
    }
    return false;
}

/* Everything RFC 3986 allows in a reg-name except escapes and the sub-delimiters, which no resolver takes. */
static bool uri_is_name_byte(uint8_t byte) { return url_is_unreserved(byte) && byte != '~'; }
static bool uri_is_v6_byte(uint8_t byte) { return url_hex_digit(byte) >= 0 || byte == ':' || byte == '.'; }

static uint8_t uri_parse_port(cy_bytes text, uint16_t *port_out)
{
    uint64_t port = 0;
    if (text.count == 0) return H1_FAULT_NONE; /* "host:" is allowed and means the default port */
    if (text.count > 5 || !cy_bytes_parse_u64(text, 65535, &port) || port == 0) return H1_FAULT_HOST;
    *port_out = (uint16_t)port;
    return H1_FAULT_NONE;
}

uint8_t uri_normalise_host(cy_bytes authority, uint8_t *space, struct uri_host *host_out)
{
    *host_out = (struct uri_host){CY_BYTES_NONE, 0};
    size_t end;
    bool is_v6 = authority.count > 0 && authority.data[0] == '[', change = false;
    if (is_v6) {
        end = cy_bytes_find(authority, ']') + 1;
        if (end > authority.count || end < 4) return H1_FAULT_HOST;
    } else {
        end = cy_bytes_find(authority, ':');
    }
    cy_bytes host = cy_bytes_slice(authority, 0, end);
    for (size_t i = is_v6; i < end - is_v6; i++) {
        uint8_t byte = host.data[i];
        if (is_v6 ? !uri_is_v6_byte(byte) : !uri_is_name_byte(byte)) return H1_FAULT_HOST;
        if (byte >= 'A' && byte <= 'Z') change = true;
        if (byte == '.' && !is_v6 && i > 0 && host.data[i - 1] == '.')
            return H1_FAULT_HOST; /* an empty label */
    }
    if (end < authority.count) {
        if (authority.data[end] != ':' || end == 0) return H1_FAULT_HOST;
        uint8_t fault = uri_parse_port(cy_bytes_skip(authority, end + 1), &host_out->port);
        if (fault) return fault;
    }
    if (!is_v6 && host.count > 0 && host.data[host.count - 1] == '.') {
        host.count--;
        if (host.count == 0) return H1_FAULT_HOST;
    }
    if (host.count > LIMIT_NAME_BYTES) return H1_FAULT_HOST;
    if (change) {
        for (size_t i = 0; i < host.count; i++)
            space[i] =
                host.data[i] >= 'A' && host.data[i] <= 'Z' ? (uint8_t)(host.data[i] | 0x20) : host.data[i];
        host.data = space;
    }
    host_out->host = host;
    return H1_FAULT_NONE;
}

void uri_split_authority(cy_bytes text, cy_bytes *authority_out, cy_bytes *rest_out)
{
    size_t end = 0;
    while (end < text.count && text.data[end] != '/' && text.data[end] != '?') end++;
    *authority_out = cy_bytes_slice(text, 0, end);
    *rest_out = cy_bytes_skip(text, end);
}

bool uri_split_absolute(cy_bytes target, bool *secure_out, cy_bytes *authority_out, cy_bytes *rest_out)
{
    if (target.count >= 7 && cy_bytes_equal_nocase(cy_bytes_slice(target, 0, 7), CY_BYTES("http://"))) {
        *secure_out = false;
        *rest_out = cy_bytes_skip(target, 7);
    } else if (target.count >= 8 &&
               cy_bytes_equal_nocase(cy_bytes_slice(target, 0, 8), CY_BYTES("https://"))) {
        *secure_out = true;
        *rest_out = cy_bytes_skip(target, 8);
    } else {
        return false;
    }
    uri_split_authority(*rest_out, authority_out, rest_out);
    return true;
}
