/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_url.c: URI references, request targets, hosts and percent coding, from anybody.
 *
 * In:   a text; where it has a line feed, the first line is a base and the rest a reference.
 * Promise: views lie in the text. What was taken apart is written as it was; the normal form is a URI with the same
 *          normal form, and so is a resolved one. A request's path and host have one normal form, which is its own.
 *          What is encoded is decoded to the same bytes.
 */
#include "tests/fuzz/target.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/url.h"
#include "vm/http/uri.h"

#include <string.h>

static void fuzz_url_inside(cy_bytes outer, cy_bytes view)
{
    if (view.count == 0) return;
    CHECK(view.data >= outer.data && view.data + view.count <= outer.data + outer.count);
}

static bool fuzz_url_parse(cy_bytes text, struct url_parts *parts)
{
    size_t offset = 0;
    const char *expected = url_parse(text, parts, &offset);
    if (expected) {
        CHECK(expected[0] && offset <= text.count);
        return false;
    }
    const cy_bytes views[] = {parts->scheme, parts->userinfo, parts->host,
                              parts->path,   parts->query,    parts->fragment};
    for (size_t i = 0; i < CY_COUNT_OF(views); i++) fuzz_url_inside(text, views[i]);
    return true;
}

/* Normal, and normal again: the same text. */
static void fuzz_url_normal(const struct url_parts *parts)
{
    struct builder once, twice;
    struct url_parts again;
    builder_init(&once), builder_init(&twice);
    url_write_normalised(&once, parts);
    CHECK(!cy_failed(builder_error(&once)));
    CHECK(fuzz_url_parse(builder_view(&once), &again));
    CHECK(again.has_scheme == parts->has_scheme && again.has_authority == parts->has_authority);
    CHECK(again.has_query == parts->has_query && again.has_fragment == parts->has_fragment);
    url_write_normalised(&twice, &again);
    CHECK(cy_bytes_equal(builder_view(&once), builder_view(&twice)));
    builder_fini(&twice), builder_fini(&once);
}

static void fuzz_url_text(cy_bytes text)
{
    struct url_parts parts, again;
    struct builder written;
    if (!fuzz_url_parse(text, &parts)) return;
    builder_init(&written);
    url_write(&written, &parts);
    /* "host:" and "host:080" lose what says nothing; all else is as it was. */
    CHECK(written.count <= text.count);
    if (!parts.has_port && !parts.has_authority) CHECK(cy_bytes_equal(builder_view(&written), text));
    CHECK(fuzz_url_parse(builder_view(&written), &again));
    CHECK(cy_bytes_equal(parts.path, again.path) && cy_bytes_equal(parts.host, again.host));
    CHECK(parts.has_port == again.has_port && parts.port == again.port);
    builder_fini(&written);
    fuzz_url_normal(&parts);
}

static void fuzz_url_resolve(cy_bytes base_text, cy_bytes reference_text)
{
    struct url_parts base, reference, result;
    struct builder written;
    if (!fuzz_url_parse(base_text, &base) || !base.has_scheme) return;
    if (!fuzz_url_parse(reference_text, &reference)) return;
    builder_init(&written);
    url_write_resolved(&written, &base, &reference);
    CHECK(!cy_failed(builder_error(&written)));
    CHECK(fuzz_url_parse(builder_view(&written), &result));
    CHECK(result.has_scheme && result.has_fragment == reference.has_fragment);
    CHECK(result.has_authority ==
          (reference.has_scheme || reference.has_authority ? reference.has_authority : base.has_authority));
    fuzz_url_normal(&result);
    builder_fini(&written);
}

static void fuzz_url_coding(cy_bytes text)
{
    struct builder encoded, decoded;
    size_t offset = 0;
    builder_init(&encoded), builder_init(&decoded);
    url_encode(&encoded, text, "/");
    CHECK(url_decode(&decoded, builder_view(&encoded), text.count & 1, &offset));
    CHECK(cy_bytes_equal(builder_view(&decoded), text));
    builder_clear(&decoded);
    if (!url_decode(&decoded, text, false, &offset)) CHECK(offset < text.count && text.data[offset] == '%');
    builder_fini(&decoded), builder_fini(&encoded);
}

/* -- as requests have them ------------------------------------------------------------------------------- */

/* Rooms of exactly the promised size, so that sanitizers see a byte more. */
static void fuzz_url_path(cy_bytes path)
{
    uint8_t *room = mem_alloc(path.count), *second_room = mem_alloc(path.count);
    cy_bytes normal, again;
    CHECK(room && second_room);
    (void)uri_climbs(path);
    if (uri_normalise_path(path, room, &normal) == H1_FAULT_NONE) {
        CHECK(normal.count > 0 && normal.count <= path.count && normal.data[0] == '/');
        CHECK(!memchr(normal.data, '\\', normal.count) && !memchr(normal.data, 0, normal.count));
        CHECK(!memmem(normal.data, normal.count, "/../", 4) && !memmem(normal.data, normal.count, "/./", 3));
        CHECK(!uri_climbs(normal));
        CHECK(uri_normalise_path(normal, second_room, &again) == H1_FAULT_NONE);
        CHECK(cy_bytes_equal(normal, again));
    }
    mem_free(second_room), mem_free(room);
}

static void fuzz_url_host(cy_bytes authority)
{
    uint8_t *room = mem_alloc(authority.count + 1), *second_room = mem_alloc(authority.count + 1);
    struct uri_host host, again;
    CHECK(room && second_room);
    if (uri_normalise_host(authority, room, &host) == H1_FAULT_NONE) {
        CHECK(host.host.count <= authority.count);
        CHECK(uri_normalise_host(host.host, second_room, &again) == H1_FAULT_NONE);
        CHECK(again.port == 0 && cy_bytes_equal(host.host, again.host));
    }
    mem_free(second_room), mem_free(room);
}

void fuzz_target_url(cy_bytes input)
{
    size_t line_end = cy_bytes_find(input, '\n');
    bool secure, is_plain = input.count > 0;
    cy_bytes authority, rest;
    fuzz_url_coding(input);
    if (line_end < input.count) {
        fuzz_url_resolve(cy_bytes_slice(input, 0, line_end), cy_bytes_skip(input, line_end + 1));
        return;
    }
    fuzz_url_text(input);
    for (size_t i = 0; i < input.count; i++) /* what the head parser lets through */
        if (input.data[i] <= ' ' || input.data[i] == 0x7f || input.data[i] == '#') is_plain = false;
    if (!is_plain) return;
    if (input.data[0] == '/' && !memchr(input.data, '?', input.count)) fuzz_url_path(input);
    fuzz_url_host(input);
    if (uri_split_absolute(input, &secure, &authority, &rest)) {
        fuzz_url_inside(input, authority), fuzz_url_inside(input, rest);
        CHECK(rest.count == 0 || rest.data[0] == '/' || rest.data[0] == '?');
        fuzz_url_host(authority);
    }
}
