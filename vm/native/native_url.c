/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_url.c: module url: the natives over vm/base/url.h.
 *
 * In:   texts of at most LIMIT_PARSED_URL_BYTES (percent coding alone: any str). Out: maps and texts.
 * Invariant: what url.build and url.build_query give is parsed again to the same parts, or they fail.
 */
#include "vm/base/limits.h"
#include "vm/base/url.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static enum native_outcome native_url_failed(struct native_call *call, cy_err err, const char *native)
{
    return native_fail_reason(call, err, native);
}

/* Returns what a builder holds, or how it failed; the builder is gone afterwards. */
static enum native_outcome native_url_text(struct native_call *call, const char *native, struct builder *text)
{
    cy_value value;
    cy_err err = builder_error(text);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(text), &value);
    builder_fini(text);
    return cy_failed(err) ? native_url_failed(call, err, native) : native_return(call, value);
}

static bool native_url_fits(struct native_call *call, const char *native, cy_bytes text)
{
    native_charge(call, text.count / 20);
    if (text.count <= LIMIT_PARSED_URL_BYTES) return true;
    native_fail(call, CY_ERR(LIMIT), "%s: the URL has %zu bytes, at most %d are taken (PARSED_URL_BYTES)",
                native, text.count, LIMIT_PARSED_URL_BYTES);
    return false;
}

static bool native_url_take(struct native_call *call, const char *native, cy_bytes text,
                            struct url_parts *parts)
{
    if (!native_url_fits(call, native, text)) return false;
    size_t offset;
    const char *fault = url_parse(text, parts, &offset);
    if (!fault) return true;
    cy_bytes shown = cy_bytes_slice(text, 0, 64);
    native_fail(call, CY_ERR(BAD_FORMAT), "%s: expected %s at byte %zu: \"%.*s\"", native,
                vm_text(call->vm, fault), offset, CY_BYTES_ARG(shown));
    return false;
}

/* -- parts as a map ----------------------------------------------------------------------------------------- */

enum {
    NATIVE_URL_SCHEME,
    NATIVE_URL_USERINFO,
    NATIVE_URL_HOST,
    NATIVE_URL_PORT,
    NATIVE_URL_PATH,
    NATIVE_URL_QUERY,
    NATIVE_URL_FRAGMENT,
    NATIVE_URL_PART_COUNT
};
static const char *const native_url_names[NATIVE_URL_PART_COUNT] = {
    [NATIVE_URL_SCHEME] = "scheme",     [NATIVE_URL_USERINFO] = "userinfo", [NATIVE_URL_HOST] = "host",
    [NATIVE_URL_PORT] = "port",         [NATIVE_URL_PATH] = "path",         [NATIVE_URL_QUERY] = "query",
    [NATIVE_URL_FRAGMENT] = "fragment",
};

static cy_err native_url_part(struct vm *vm, const struct url_parts *parts, size_t part, cy_value *owned_out)
{
    const struct {
        bool is_there;
        cy_bytes text;
    } texts[NATIVE_URL_PART_COUNT] = {
        [NATIVE_URL_SCHEME] = {parts->has_scheme, parts->scheme},
        [NATIVE_URL_USERINFO] = {parts->has_userinfo, parts->userinfo},
        [NATIVE_URL_HOST] = {parts->has_authority, parts->host},
        [NATIVE_URL_PATH] = {true, parts->path},
        [NATIVE_URL_QUERY] = {parts->has_query, parts->query},
        [NATIVE_URL_FRAGMENT] = {parts->has_fragment, parts->fragment},
    };
    *owned_out = value_nil();
    if (part == NATIVE_URL_PORT && parts->has_port) *owned_out = value_int(parts->port);
    return texts[part].is_there ? string_new(vm, texts[part].text, owned_out) : CY_OK;
}

enum native_outcome native_url_parse(struct native_call *call)
{
    static const struct option_row rows[] = {{.name = "userinfo", .kind = OPTION_BOOL}};
    cy_value given[CY_COUNT_OF(rows)], map, value;
    struct url_parts parts;
    if (!option_read(call, 1, "url.parse", rows, CY_COUNT_OF(rows), given)) return NATIVE_FAIL;
    if (!native_url_take(call, "url.parse", string_bytes(call->args[0]), &parts)) return NATIVE_FAIL;
    if (parts.has_userinfo && !(given[0].tag == TAG_BOOL && given[0].as.b))
        return native_fail(call, CY_ERR(BAD_FORMAT),
                           "url.parse: a user before '@' is refused; the option userinfo: true lets it in");
    cy_err err = map_new(call->vm, NATIVE_URL_PART_COUNT, &map);
    if (cy_failed(err)) return native_url_failed(call, err, "url.parse");
    for (size_t part = 0; part < NATIVE_URL_PART_COUNT && !cy_failed(err); part++) {
        err = native_url_part(call->vm, &parts, part, &value);
        if (!cy_failed(err))
            err = map_set_text(call->vm, &map, cy_bytes_from_text(native_url_names[part]), value);
    }
    if (!cy_failed(err)) return native_return(call, map);
    value_unref(call->vm, map);
    return native_url_failed(call, err, "url.parse");
}

static bool native_url_same(bool has_a, cy_bytes a, bool has_b, cy_bytes b)
{
    return has_a == has_b && (!has_a || cy_bytes_equal(a, b));
}

/* The name of the first part that two texts do not share; NULL when all are equal. */
static const char *native_url_difference(const struct url_parts *a, const struct url_parts *b)
{
    if (!native_url_same(a->has_scheme, a->scheme, b->has_scheme, b->scheme)) return "scheme";
    if (!native_url_same(a->has_userinfo, a->userinfo, b->has_userinfo, b->userinfo)) return "userinfo";
    if (!native_url_same(a->has_authority, a->host, b->has_authority, b->host)) return "host";
    if (a->has_port != b->has_port || a->port != b->port) return "port";
    if (!cy_bytes_equal(a->path, b->path)) return "path";
    if (!native_url_same(a->has_query, a->query, b->has_query, b->query)) return "query";
    if (!native_url_same(a->has_fragment, a->fragment, b->has_fragment, b->fragment)) return "fragment";
    return NULL;
}

static cy_bytes native_url_given(cy_value value, bool *is_there_out)
{
    *is_there_out = value.tag == TAG_STR;
    return *is_there_out ? string_bytes(value) : CY_BYTES_NONE;
}

enum native_outcome native_url_build(struct native_call *call)
{
    static const struct option_row rows[NATIVE_URL_PART_COUNT] = {
        [NATIVE_URL_SCHEME] = {.name = "scheme", .kind = OPTION_STR_OR_NIL},
        [NATIVE_URL_USERINFO] = {.name = "userinfo", .kind = OPTION_STR_OR_NIL},
        [NATIVE_URL_HOST] = {.name = "host", .kind = OPTION_STR_OR_NIL},
        [NATIVE_URL_PORT] = {.name = "port", .kind = OPTION_INT_OR_NIL, .min = 0, .max = UINT16_MAX},
        [NATIVE_URL_PATH] = {.name = "path", .kind = OPTION_STR_OR_NIL},
        [NATIVE_URL_QUERY] = {.name = "query", .kind = OPTION_STR_OR_NIL},
        [NATIVE_URL_FRAGMENT] = {.name = "fragment", .kind = OPTION_STR_OR_NIL},
    };
    cy_value given[NATIVE_URL_PART_COUNT];
    struct url_parts parts = {0}, again;
    size_t offset;
    bool has_path;
    if (!option_read(call, 0, "url.build", rows, NATIVE_URL_PART_COUNT, given)) return NATIVE_FAIL;
    parts.scheme = native_url_given(given[NATIVE_URL_SCHEME], &parts.has_scheme);
    parts.userinfo = native_url_given(given[NATIVE_URL_USERINFO], &parts.has_userinfo);
    parts.host = native_url_given(given[NATIVE_URL_HOST], &parts.has_authority);
    parts.path = native_url_given(given[NATIVE_URL_PATH], &has_path);
    parts.query = native_url_given(given[NATIVE_URL_QUERY], &parts.has_query);
    parts.fragment = native_url_given(given[NATIVE_URL_FRAGMENT], &parts.has_fragment);
    parts.has_port = given[NATIVE_URL_PORT].tag == TAG_INT;
    if (parts.has_port) parts.port = (uint16_t)given[NATIVE_URL_PORT].as.i;
    if (!parts.has_authority && (parts.has_port || parts.has_userinfo))
        return native_fail(call, CY_ERR(VALUE), "url.build: %s needs a host",
                           parts.has_port ? "port" : "userinfo");
    struct builder text;
    builder_init(&text);
    text.count_max = LIMIT_PARSED_URL_BYTES;
    url_write(&text, &parts);
    if (text.past_max) {
        builder_fini(&text);
        return native_fail(call, CY_ERR(LIMIT), "url.build: more than %d bytes (PARSED_URL_BYTES)",
                           LIMIT_PARSED_URL_BYTES);
    }
    if (text.failed) return native_url_text(call, "url.build", &text);
    native_charge(call, text.count / 20);
    const char *fault = url_parse(builder_view(&text), &again, &offset);
    const char *difference = fault ? NULL : native_url_difference(&parts, &again);
    if (!fault && !difference) return native_url_text(call, "url.build", &text);
    builder_fini(&text);
    if (fault)
        return native_fail(call, CY_ERR(VALUE), "url.build: expected %s at byte %zu",
                           vm_text(call->vm, fault), offset);
    return native_fail(call, CY_ERR(VALUE), "url.build: this %s would be read as another part", difference);
}

enum native_outcome native_url_normalise(struct native_call *call)
{
    struct url_parts parts;
    if (!native_url_take(call, "url.normalise", string_bytes(call->args[0]), &parts)) return NATIVE_FAIL;
    struct builder text;
    builder_init(&text);
    url_write_normalised(&text, &parts);
    return native_url_text(call, "url.normalise", &text);
}

enum native_outcome native_url_resolve(struct native_call *call)
{
    struct url_parts base, reference;
    if (!native_url_take(call, "url.resolve", string_bytes(call->args[0]), &base)) return NATIVE_FAIL;
    if (!native_url_take(call, "url.resolve", string_bytes(call->args[1]), &reference)) return NATIVE_FAIL;
    if (!base.has_scheme) return native_fail(call, CY_ERR(VALUE), "url.resolve: the base has no scheme");
    struct builder text;
    builder_init(&text);
    url_write_resolved(&text, &base, &reference);
    return native_url_text(call, "url.resolve", &text);
}

/* -- percent coding ----------------------------------------------------------------------------------------- */

static enum native_outcome native_url_encoded(struct native_call *call, const char *native, const char *kept)
{
    cy_bytes text = string_bytes(call->args[0]);
    struct builder out;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
    native_charge(call, text.count / 20);
    url_encode(&out, text, kept);
    return native_url_text(call, native, &out);
}

enum native_outcome native_url_encode(struct native_call *call)
{
    return native_url_encoded(call, "url.encode", "");
}
enum native_outcome native_url_encode_path(struct native_call *call)
{
    return native_url_encoded(call, "url.encode_path", "/");
}

static bool native_url_decoded(struct native_call *call, const char *native, struct builder *out,
                               cy_bytes text, bool plus_is_space)
{
    size_t offset;
    if (url_decode(out, text, plus_is_space, &offset)) return true;
    cy_bytes shown = cy_bytes_slice(text, offset, offset + 3);
    native_fail(call, CY_ERR(BAD_FORMAT), "%s: expected two hex digits behind %% at byte %zu: \"%.*s\"",
                native, offset, CY_BYTES_ARG(shown));
    return false;
}

enum native_outcome native_url_decode(struct native_call *call)
{
    cy_bytes text = string_bytes(call->args[0]);
    struct builder out;
    builder_init(&out);
    out.count_max = cy_max_size(vm_memory_left(call->vm, LIMIT_STRING_BYTES), 1);
    native_charge(call, text.count / 20);
    if (native_url_decoded(call, "url.decode", &out, text, native_has_arg(call, 1) && call->args[1].as.b))
        return native_url_text(call, "url.decode", &out);
    builder_fini(&out);
    return NATIVE_FAIL;
}

/* -- queries ------------------------------------------------------------------------------------------------ */

static cy_err native_url_str(struct native_call *call, const struct builder *text, cy_value *owned_out)
{
    CY_TRY(builder_error(text));
    return string_new(call->vm, builder_view(text), owned_out);
}

/* Appends a value to the list of its name; takes both. */
static cy_err native_url_add(struct native_call *call, cy_value *map, cy_value owned_name,
                             cy_value owned_value)
{
    struct vm *vm = call->vm;
    bool found;
    cy_value list;
    cy_err err = map_get(vm, *map, owned_name, &found, &list);
    if (!cy_failed(err) && found) {
        /* Out of the map first, so that the list has one holder and grows in place. */
        value_ref(list);
        err = map_set(vm, map, value_ref(owned_name), value_nil());
    } else if (!cy_failed(err)) {
        err = list_new(vm, 1, &list);
    }
    if (cy_failed(err)) {
        if (found) value_unref(vm, list);
        value_unref(vm, owned_value);
        value_unref(vm, owned_name);
        return err;
    }
    err = list_append(vm, &list, owned_value);
    if (!cy_failed(err)) return map_set(vm, map, owned_name, list);
    value_unref(vm, list);
    value_unref(vm, owned_name);
    return err;
}

/* One "name=value", in `scratch` first. A false result has failed the call. */
static bool native_url_pair(struct native_call *call, cy_bytes pair, struct builder *scratch, cy_value *map)
{
    size_t equals = cy_bytes_find(pair, '=');
    cy_value name, value;
    builder_clear(scratch);
    if (!native_url_decoded(call, "url.parse_query", scratch, cy_bytes_slice(pair, 0, equals), true))
        return false;
    cy_err err = native_url_str(call, scratch, &name);
    if (!cy_failed(err)) {
        builder_clear(scratch);
        if (!native_url_decoded(call, "url.parse_query", scratch, cy_bytes_skip(pair, equals + 1), true)) {
            value_unref(call->vm, name);
            return false;
        }
        err = native_url_str(call, scratch, &value);
        if (cy_failed(err))
            value_unref(call->vm, name);
        else
            err = native_url_add(call, map, name, value);
    }
    if (cy_failed(err)) native_url_failed(call, err, "url.parse_query");
    return !cy_failed(err);
}

enum native_outcome native_url_parse_query(struct native_call *call)
{
    cy_bytes rest = string_bytes(call->args[0]);
    cy_value map;
    size_t pairs = 0;
    if (!native_url_fits(call, "url.parse_query", rest)) return NATIVE_FAIL;
    cy_err err = map_new(call->vm, 4, &map);
    if (cy_failed(err)) return native_url_failed(call, err, "url.parse_query");
    struct builder scratch;
    builder_init(&scratch);
    bool good = true;
    while (good && rest.count > 0) {
        cy_bytes pair = cy_bytes_slice(rest, 0, cy_bytes_find(rest, '&'));
        rest = cy_bytes_skip(rest, pair.count + 1);
        if (pair.count == 0) continue;
        if (++pairs > LIMIT_QUERY_PAIRS) {
            native_fail(call, CY_ERR(LIMIT), "url.parse_query: more than %d pairs (QUERY_PAIRS)",
                        LIMIT_QUERY_PAIRS);
            good = false;
        } else {
            good = native_url_pair(call, pair, &scratch, &map);
        }
    }
    builder_fini(&scratch);
    if (good) return native_return(call, map);
    value_unref(call->vm, map);
    return NATIVE_FAIL;
}

/* "name=value" for a value without contents. */
static bool native_url_write_pair(struct native_call *call, struct builder *out, cy_bytes name,
                                  cy_value value)
{
    struct builder text;
    if (value.tag != TAG_STR && value.tag != TAG_INT && value.tag != TAG_FLOAT && value.tag != TAG_BOOL) {
        native_fail(call, CY_ERR(TYPE),
                    "url.build_query: the value of \"%.40s\" must be str, number, bool or a list of "
                    "those, not %s",
                    name.count ? (const char *)name.data : "", value_kind_text(call->vm, value));
        return false;
    }
    if (out->count > 0) builder_u8(out, '&');
    url_encode(out, name, "");
    builder_u8(out, '=');
    builder_init(&text);
    value_format(call->vm, value, false, &text);
    if (text.failed) out->failed = true;
    url_encode(out, builder_view(&text), "");
    builder_fini(&text);
    return true;
}

static bool native_url_write_entry(struct native_call *call, struct builder *out, cy_value key,
                                   cy_value value)
{
    if (key.tag != TAG_STR) {
        native_fail(call, CY_ERR(TYPE), "url.build_query: names must be str, not %s",
                    value_kind_text(call->vm, key));
        return false;
    }
    if (value.tag != TAG_LIST) return native_url_write_pair(call, out, string_bytes(key), value);
    for (size_t i = 0; i < list_count(value) && !out->failed; i++)
        if (!native_url_write_pair(call, out, string_bytes(key), list_get(value, i))) return false;
    return true;
}

enum native_outcome native_url_build_query(struct native_call *call)
{
    cy_value key, value;
    size_t cursor = 0;
    struct builder out;
    builder_init(&out);
    out.count_max = LIMIT_PARSED_URL_BYTES;
    bool good = true;
    while (good && !out.failed && map_next(call->args[0], &cursor, &key, &value))
        good = native_url_write_entry(call, &out, key, value);
    native_charge(call, out.count / 20);
    if (good && out.past_max) {
        native_fail(call, CY_ERR(LIMIT), "url.build_query: more than %d bytes (PARSED_URL_BYTES)",
                    LIMIT_PARSED_URL_BYTES);
        good = false;
    }
    if (good) return native_url_text(call, "url.build_query", &out);
    builder_fini(&out);
    return NATIVE_FAIL;
}
