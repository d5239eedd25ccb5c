/* SPDX-License-Identifier: MIT
 *
 * vm/base/url_write.c: URI references put together: as they are, normalised, resolved.
 *
 * In:   parts that url_parse gave. Out: text appended to a builder.
 * Order: escapes first, dot segments second, so that %2e%2e is a dot segment for us as it is for a server.
 */
#include "vm/base/check.h"
#include "vm/base/url.h"

void url_write(struct builder *out, const struct url_parts *parts)
{
    if (parts->has_scheme) {
        builder_bytes(out, parts->scheme);
        builder_u8(out, ':');
    }
    if (parts->has_authority) {
        builder_text(out, "//");
        if (parts->has_userinfo) {
            builder_bytes(out, parts->userinfo);
            builder_u8(out, '@');
        }
        builder_bytes(out, parts->host);
        if (parts->has_port) builder_printf(out, ":%u", parts->port);
    }
    builder_bytes(out, parts->path);
    if (parts->has_query) {
        builder_u8(out, '?');
        builder_bytes(out, parts->query);
    }
    if (parts->has_fragment) {
        builder_u8(out, '#');
        builder_bytes(out, parts->fragment);
    }
}

/* -- normal form -------------------------------------------------------------------------------------------- */

static const struct {
    const char *scheme;
    uint16_t port;
} url_write_schemes[] = {{"http", 80}, {"https", 443}, {"ws", 80}, {"wss", 443}, {"ftp", 21}};

/* The scheme's default port; 0 when we know none. */
static uint16_t url_write_default_port(const struct url_parts *parts)
{
    for (size_t i = 0; parts->has_scheme && i < CY_COUNT_OF(url_write_schemes); i++)
        if (cy_bytes_equal_nocase(parts->scheme, cy_bytes_from_text(url_write_schemes[i].scheme)))
            return url_write_schemes[i].port;
    return 0;
}

/* Escapes in capitals, none for unreserved bytes; letters outside of escapes small when `lower`. */
static void url_write_escapes(struct builder *out, cy_bytes part, bool lower)
{
    for (size_t i = 0; i < part.count; i++) {
        uint8_t byte = part.data[i];
        bool escaped = byte == '%';
        if (escaped) {
            byte = (uint8_t)(url_hex_digit(part.data[i + 1]) << 4 | url_hex_digit(part.data[i + 2]));
            i += 2;
            if (!url_is_unreserved(byte)) {
                builder_printf(out, "%%%02X", byte);
                continue;
            }
        }
        builder_u8(out, lower && byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte);
    }
}

/* Removes the dot segments of what stands behind `begin`. Without an authority a path must not come out with "//" in
 * front, which would read as one. */
static void url_write_undot(struct builder *out, size_t begin, bool has_authority)
{
    if (out->failed || out->count == begin) return;
    out->count = begin + url_remove_dot_segments(out->data + begin, out->count - begin);
    bool doubled = out->count - begin >= 2 && out->data[begin] == '/' && out->data[begin + 1] == '/';
    if (has_authority || !doubled) return;
    if (!builder_reserve(out, 2)) return;
    memmove(out->data + begin + 2, out->data + begin, out->count - begin);
    memcpy(out->data + begin, "/.", 2);
    out->count += 2;
}

void url_write_normalised(struct builder *out, const struct url_parts *parts)
{
    uint16_t default_port = url_write_default_port(parts);
    if (parts->has_scheme) {
        url_write_escapes(out, parts->scheme, true);
        builder_u8(out, ':');
    }
    if (parts->has_authority) {
        builder_text(out, "//");
        if (parts->has_userinfo) {
            url_write_escapes(out, parts->userinfo, false);
            builder_u8(out, '@');
        }
        url_write_escapes(out, parts->host, true);
        if (parts->has_port && (default_port == 0 || parts->port != default_port))
            builder_printf(out, ":%u", parts->port);
    }
    size_t begin = out->count;
    url_write_escapes(out, parts->path, false);
    if (parts->path.count > 0 && parts->path.data[0] == '/')
        url_write_undot(out, begin, parts->has_authority);
    if (parts->path.count == 0 && parts->has_authority && default_port != 0) builder_u8(out, '/');
    if (parts->has_query) {
        builder_u8(out, '?');
        url_write_escapes(out, parts->query, false);
    }
    if (parts->has_fragment) {
        builder_u8(out, '#');
        url_write_escapes(out, parts->fragment, false);
    }
}

/* -- resolution --------------------------------------------------------------------------------------------- */

/* RFC 3986 section 5.2.3: the reference's path behind the last '/' of the base's. */
static void url_write_merged(struct builder *out, const struct url_parts *base, cy_bytes path)
{
    if (base->has_authority && base->path.count == 0) {
        builder_u8(out, '/');
    } else {
        size_t count = base->path.count;
        while (count > 0 && base->path.data[count - 1] != '/') count--;
        builder_bytes(out, cy_bytes_slice(base->path, 0, count));
    }
    builder_bytes(out, path);
}

void url_write_resolved(struct builder *out, const struct url_parts *base, const struct url_parts *reference)
{
    CHECK(base->has_scheme);
    struct url_parts target = *reference;
    bool merge = false, undot = true;
    if (!reference->has_scheme) {
        target.has_scheme = true;
        target.scheme = base->scheme;
    }
    if (!reference->has_scheme && !reference->has_authority) {
        target.has_authority = base->has_authority;
        target.has_userinfo = base->has_userinfo;
        target.userinfo = base->userinfo;
        target.host = base->host;
        target.has_port = base->has_port;
        target.port = base->port;
        if (reference->path.count == 0) {
            target.path = base->path;
            undot = false;
            if (!reference->has_query) {
                target.has_query = base->has_query;
                target.query = base->query;
            }
        } else {
            merge = reference->path.data[0] != '/';
        }
    }
    struct url_parts front = target, back = {0};
    front.path = CY_BYTES_NONE;
    front.has_query = front.has_fragment = false;
    url_write(out, &front);
    size_t begin = out->count;
    if (merge)
        url_write_merged(out, base, target.path);
    else
        builder_bytes(out, target.path);
    if (undot) url_write_undot(out, begin, target.has_authority);
    back.has_query = target.has_query;
    back.query = target.query;
    back.has_fragment = reference->has_fragment;
    back.fragment = reference->fragment;
    url_write(out, &back);
}
