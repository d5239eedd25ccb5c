/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_path.c: the module "path": paths as text.
 *
 * In:   strs. Out: strs in normal form C where a path is made, parts as they are where it is taken apart.
 * Not here: files (native_fs.c), the rules about which may be opened (vm/sys/path_rules.c).
 */
#include "vm/base/path.h"
#include "vm/base/text.h"
#include "vm/native/native_bodies.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

static enum native_outcome native_path_text(struct native_call *call, const char *name, cy_err err,
                                            const struct builder *text)
{
    cy_value result;
    if (!cy_failed(err)) err = builder_error(text);
    if (!cy_failed(err)) err = string_new(call->vm, builder_view(text), &result);
    if (cy_failed(err)) return native_fail_reason(call, err, name);
    return native_return(call, result);
}

static enum native_outcome native_path_part(struct native_call *call, const char *name, cy_bytes part)
{
    cy_value result;
    cy_err err = string_new(call->vm, part, &result);
    if (cy_failed(err)) return native_fail_reason(call, err, name);
    return native_return(call, result);
}

/* Appends the normal form of a path, letters in normal form C. */
static cy_err native_path_form(struct native_call *call, cy_bytes path, struct builder *out)
{
    struct builder letters;
    builder_init(&letters);
    native_charge(call, 1 + path.count / 64);
    cy_err err = text_to_nfc(path, &letters);
    if (!cy_failed(err)) path_normalise(builder_view(&letters), out);
    builder_fini(&letters);
    return err;
}

enum native_outcome native_path_normalise(struct native_call *call)
{
    struct builder out;
    builder_init(&out);
    cy_err err = native_path_form(call, string_bytes(call->args[0]), &out);
    enum native_outcome outcome = native_path_text(call, "path.normalise", err, &out);
    builder_fini(&out);
    return outcome;
}

enum native_outcome native_path_join(struct native_call *call)
{
    struct builder joined, out;
    builder_init(&joined);
    builder_init(&out);
    path_join(string_bytes(call->args[0]), string_bytes(call->args[1]), &joined);
    cy_err err = builder_error(&joined);
    if (!cy_failed(err)) err = native_path_form(call, builder_view(&joined), &out);
    enum native_outcome outcome = native_path_text(call, "path.join", err, &out);
    builder_fini(&joined);
    builder_fini(&out);
    return outcome;
}

enum native_outcome native_path_split(struct native_call *call)
{
    cy_bytes rest = string_bytes(call->args[0]),
             part = path_is_absolute(rest) ? CY_BYTES("/") : path_next(&rest);
    cy_value list;
    native_charge(call, 1 + rest.count / 64);
    cy_err err = list_new(call->vm, 0, &list);
    if (cy_failed(err)) return native_fail_reason(call, err, "path.split");
    for (; part.count > 0 && !cy_failed(err); part = path_next(&rest)) {
        cy_value text;
        err = string_new(call->vm, part, &text);
        if (!cy_failed(err)) err = list_append(call->vm, &list, text);
    }
    if (!cy_failed(err)) return native_return(call, list);
    value_unref(call->vm, list);
    return native_fail(call, err, "path.split: %s", cy_err_text(err, vm_korean(call->vm)));
}

enum native_outcome native_path_name(struct native_call *call)
{
    cy_bytes path = string_bytes(call->args[0]);
    return native_path_part(call, "path.name", path_name(path));
}

enum native_outcome native_path_extension(struct native_call *call)
{
    return native_path_part(call, "path.extension", path_extension(string_bytes(call->args[0])));
}

enum native_outcome native_path_parent(struct native_call *call)
{
    return native_path_part(call, "path.parent", path_parent(string_bytes(call->args[0])));
}

enum native_outcome native_path_is_absolute(struct native_call *call)
{
    return native_return(call, value_bool(path_is_absolute(string_bytes(call->args[0]))));
}

enum native_outcome native_path_relative(struct native_call *call)
{
    struct builder path, base, out;
    builder_init(&path);
    builder_init(&base);
    builder_init(&out);
    enum native_outcome outcome;
    cy_err err = native_path_form(call, string_bytes(call->args[0]), &path);
    if (!cy_failed(err)) err = native_path_form(call, string_bytes(call->args[1]), &base);
    if (!cy_failed(err) && !path_relative(builder_view(&path), builder_view(&base), &out))
        outcome = native_fail(call, CY_ERR(VALUE),
                              "path.relative: there is no way from \"%.*s\" to \"%.*s\" that the "
                              "text tells",
                              CY_BYTES_ARG(builder_view(&base)), CY_BYTES_ARG(builder_view(&path)));
    else
        outcome = native_path_text(call, "path.relative", err, &out);
    builder_fini(&path);
    builder_fini(&base);
    builder_fini(&out);
    return outcome;
}
