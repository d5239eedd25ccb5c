/* SPDX-License-Identifier: MIT
 *
 * vm/base/url.c: URI references taken apart, and percent coding.
 *
 * In, Out, Invariant: url.h.
 *
 *      scheme ":" [ "//" [ userinfo "@" ] host [ ":" port ] ] path [ "?" query ] [ "#" fragment ]
 */
#include "vm/base/url.h"

#include "vm/base/check.h"

#include <arpa/inet.h>

/* -- classes of bytes (RFC 3986 section 2) ------------------------------------------------------------------ */

static bool url_is_letter(uint8_t byte) { return (uint8_t)((byte | 0x20) - 'a') < 26; }
static bool url_is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }

bool url_is_unreserved(uint8_t byte)
{
    return url_is_letter(byte) || url_is_digit(byte) || byte == '-' || byte == '.' || byte == '_' ||
           byte == '~';
}

static bool url_is_in(const char *set, uint8_t byte) { return byte != 0 && strchr(set, byte) != NULL; }
#define URL_SUB_DELIMITERS "!$&'()*+,;="

int url_hex_digit(uint8_t byte)
{
    if (url_is_digit(byte)) return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool url_is_escape(cy_bytes text, size_t at)
{
    return text.count - at >= 3 && url_hex_digit(text.data[at + 1]) >= 0 &&
           url_hex_digit(text.data[at + 2]) >= 0;
}

/* Offset of the first byte that may not stand in a component of unreserved bytes, sub-delimiters, escapes and `more`;
 * the count when all may. */
static size_t url_scan(cy_bytes text, const char *more)
{
    size_t at = 0;
    while (at < text.count) {
        uint8_t byte = text.data[at];
        if (byte == '%') {
            if (!url_is_escape(text, at)) return at;
            at += 3;
        } else if (url_is_unreserved(byte) || url_is_in(URL_SUB_DELIMITERS, byte) || url_is_in(more, byte)) {
            at++;
        } else {
            return at;
        }
    }
    return at;
}

/* -- taking apart ------------------------------------------------------------------------------------------- */

struct url_parse {
    cy_bytes text;
    const char *fault;
    size_t offset;
};

static bool url_fail(struct url_parse *parse, const char *expected, const uint8_t *where)
{
    parse->fault = expected;
    parse->offset = where ? (size_t)(where - parse->text.data) : 0;
    return false;
}

static bool url_component(struct url_parse *parse, cy_bytes part, const char *more)
{
    size_t at = url_scan(part, more);
    if (at == part.count) return true;
    return url_fail(
        parse, part.data[at] == '%' ? "two hex digits behind %" : "a byte that URLs allow here, or an escape",
        part.data + at);
}

static bool url_ipv6(struct url_parse *parse, cy_bytes host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    cy_bytes inside = cy_bytes_slice(host, 1, host.count - 1);
    if (inside.count < sizeof text) {
        memcpy(text, inside.data, inside.count);
        text[inside.count] = 0;
        if (!memchr(text, 0, inside.count) && inet_pton(AF_INET6, text, &address) == 1) return true;
    }
    return url_fail(parse, "an IPv6 address in brackets", host.data);
}

static bool url_port(struct url_parse *parse, cy_bytes digits, struct url_parts *parts)
{
    uint64_t port = 0;
    if (digits.count == 0) return true; /* "host:" says nothing */
    if (!cy_bytes_parse_u64(digits, UINT16_MAX, &port))
        return url_fail(parse, "a port 0..65535", digits.data);
    parts->has_port = true;
    parts->port = (uint16_t)port;
    return true;
}

static bool url_authority(struct url_parse *parse, cy_bytes authority, struct url_parts *parts)
{
    size_t at = cy_bytes_find(authority, '@');
    parts->has_authority = true;
    if (at < authority.count) {
        parts->has_userinfo = true;
        parts->userinfo = cy_bytes_slice(authority, 0, at);
        authority = cy_bytes_skip(authority, at + 1);
        if (!url_component(parse, parts->userinfo, ":")) return false;
    }
    bool literal = authority.count > 0 && authority.data[0] == '[';
    size_t end = cy_bytes_find(authority, literal ? ']' : ':');
    if (literal && end == authority.count)
        return url_fail(parse, "']' behind the address", authority.data + end);
    end += literal;
    parts->host = cy_bytes_slice(authority, 0, end);
    if (literal ? !url_ipv6(parse, parts->host) : !url_component(parse, parts->host, "")) return false;
    if (end == authority.count) return true;
    if (authority.data[end] != ':')
        return url_fail(parse, "':' and a port behind the address", authority.data + end);
    return url_port(parse, cy_bytes_skip(authority, end + 1), parts);
}

/* Count of bytes of a scheme that a ':' ends; 0 when the text does not begin with one. */
static size_t url_scheme_count(cy_bytes text)
{
    size_t at = 0;
    if (text.count == 0 || !url_is_letter(text.data[0])) return 0;
    while (at < text.count &&
           (url_is_letter(text.data[at]) || url_is_digit(text.data[at]) || url_is_in("+-.", text.data[at])))
        at++;
    return at < text.count && text.data[at] == ':' ? at : 0;
}

static cy_bytes url_until(cy_bytes *rest, const char *ends)
{
    size_t at = 0;
    while (at < rest->count && !url_is_in(ends, rest->data[at])) at++;
    cy_bytes part = cy_bytes_slice(*rest, 0, at);
    *rest = cy_bytes_skip(*rest, at);
    return part;
}

static bool url_take(struct url_parse *parse, struct url_parts *parts)
{
    cy_bytes rest = parse->text;
    size_t scheme_count = url_scheme_count(rest);
    if (scheme_count > 0) {
        parts->has_scheme = true;
        parts->scheme = cy_bytes_slice(rest, 0, scheme_count);
        rest = cy_bytes_skip(rest, scheme_count + 1);
    }
    if (cy_bytes_start_with(rest, CY_BYTES("//"))) {
        rest = cy_bytes_skip(rest, 2);
        if (!url_authority(parse, url_until(&rest, "/?#"), parts)) return false;
    }
    parts->path = url_until(&rest, "?#");
    if (!url_component(parse, parts->path, ":@/")) return false;
    /* Without a scheme a colon in the first segment would read as one. */
    if (!parts->has_scheme && !parts->has_authority) {
        size_t colon = cy_bytes_find(parts->path, ':');
        if (colon < cy_bytes_find(parts->path, '/'))
            return url_fail(parse, "a scheme before ':'", parts->path.data);
    }
    if (rest.count > 0 && rest.data[0] == '?') {
        parts->has_query = true;
        rest = cy_bytes_skip(rest, 1);
        parts->query = url_until(&rest, "#");
        if (!url_component(parse, parts->query, ":@/?")) return false;
    }
    if (rest.count > 0) {
        parts->has_fragment = true;
        parts->fragment = cy_bytes_skip(rest, 1);
        return url_component(parse, parts->fragment, ":@/?");
    }
    return true;
}

const char *url_parse(cy_bytes text, struct url_parts *parts_out, size_t *offset_out)
{
    struct url_parse parse = {.text = text};
    *parts_out = (struct url_parts){0};
    if (url_take(&parse, parts_out)) return NULL;
    *offset_out = parse.offset;
    return parse.fault;
}

/* -- percent coding ----------------------------------------------------------------------------------------- */

void url_encode(struct builder *out, cy_bytes text, const char *kept)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        if (url_is_unreserved(byte) || url_is_in(kept, byte)) {
            builder_u8(out, byte);
            continue;
        }
        builder_u8(out, '%');
        builder_u8(out, (uint8_t)digits[byte >> 4]);
        builder_u8(out, (uint8_t)digits[byte & 15]);
    }
}

bool url_decode(struct builder *out, cy_bytes text, bool plus_is_space, size_t *offset_out)
{
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        if (byte == '%') {
            if (!url_is_escape(text, i)) {
                *offset_out = i;
                return false;
            }
            byte = (uint8_t)(url_hex_digit(text.data[i + 1]) << 4 | url_hex_digit(text.data[i + 2]));
            i += 2;
        } else if (byte == '+' && plus_is_space) {
            byte = ' ';
        }
        builder_u8(out, byte);
    }
    return true;
}

/* -- dot segments ------------------------------------------------------------------------------------------- */

/* What steps 2A and 2D take from the beginning of a path without '/' in front. */
static size_t url_leading_dots(const uint8_t *path, size_t count)
{
    size_t at = 0;
    for (;;) {
        cy_bytes rest = cy_bytes_of(path + at, count - at);
        if (cy_bytes_start_with(rest, CY_BYTES("../")))
            at += 3;
        else if (cy_bytes_start_with(rest, CY_BYTES("./")))
            at += 2;
        else if (cy_bytes_equal(rest, CY_BYTES(".")) || cy_bytes_equal(rest, CY_BYTES("..")))
            return count;
        else
            return at;
    }
}

size_t url_remove_dot_segments(uint8_t *path, size_t count)
{
    size_t kept = 0, i = 0;
    if (count > 0 && path[0] != '/') {
        i = url_leading_dots(path, count);
        size_t end = i;
        while (end < count && path[end] != '/') end++;
        memmove(path, path + i, end - i);
        kept = end - i;
        i = end;
    }
    while (i < count) {
        DCHECK(path[i] == '/');
        size_t end = i + 1;
        while (end < count && path[end] != '/') end++;
        size_t length = end - i - 1;
        bool one_dot = length == 1 && path[i + 1] == '.';
        bool two_dots = length == 2 && path[i + 1] == '.' && path[i + 2] == '.';
        if (two_dots) {
            while (kept > 0 && path[--kept] != '/') continue;
        }
        if (one_dot || two_dots) {
            if (end == count) path[kept++] = '/'; /* a dot segment at the end leaves its slash */
        } else {
            memmove(path + kept, path + i, length + 1);
            kept += length + 1;
        }
        i = end;
    }
    return kept;
}

#undef URL_SUB_DELIMITERS
