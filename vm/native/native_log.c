/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_log.c: the module "log".
 *
 * In:   a level, a text, fields. Out: one line: text name=value name="value with spaces".
 * Not here: repeated lines (vm/base/log.c), readers that stop reading (runtime_output.c).
 */
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"

static bool native_log_is_bare(cy_bytes text)
{
    for (size_t i = 0; i < text.count; i++)
        if (text.data[i] <= ' ' || text.data[i] == '"' || text.data[i] == '=' || text.data[i] == 0x7f)
            return false;
    return text.count > 0;
}

static void native_log_put_text(struct builder *out, cy_bytes text)
{
    if (native_log_is_bare(text)) {
        builder_bytes(out, text);
        return;
    }
    builder_u8(out, '"');
    for (size_t i = 0; i < text.count; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\') builder_u8(out, '\\');
        builder_u8(out, text.data[i]);
    }
    builder_u8(out, '"');
}

/* More than a line holds, and room for one piece of a long text inside of a list (format.c). */
enum { NATIVE_LOG_VALUE_BYTES = 128 << 10 };

/* A line holds LIMIT_LOG_LINE_BYTES: what lies behind that is not even formatted. */
static enum native_outcome native_log_put_field(struct native_call *call, const char *name, cy_value key,
                                                cy_value value, struct builder *out)
{
    struct builder text;
    if (key.tag != TAG_STR)
        return native_fail(call, CY_ERR(TYPE), "%s: names of fields are str, not %s", name,
                           value_kind_text(call->vm, key));
    builder_u8(out, ' ');
    native_log_put_text(out, cy_bytes_slice(string_bytes(key), 0, LIMIT_LOG_LINE_BYTES));
    builder_u8(out, '=');
    if (value.tag == TAG_STR) {
        native_log_put_text(out, cy_bytes_slice(string_bytes(value), 0, LIMIT_LOG_LINE_BYTES));
        return NATIVE_DONE;
    }
    builder_init(&text);
    text.count_max = NATIVE_LOG_VALUE_BYTES;
    value_format(call->vm, value, false, &text);
    native_charge(call, text.count / 100);
    cy_err err = text.past_max ? CY_OK : builder_error(&text);
    if (!cy_failed(err))
        native_log_put_text(out, cy_bytes_slice(builder_view(&text), 0, LIMIT_LOG_LINE_BYTES));
    builder_fini(&text);
    return cy_failed(err) ? native_fail_reason(call, err, name) : NATIVE_DONE;
}

static enum native_outcome native_log_line(struct native_call *call, const char *name, enum log_level level,
                                           uint32_t first)
{
    struct log *log = vm_log(call->vm);
    cy_bytes text = cy_bytes_slice(string_bytes(call->args[first]), 0, LIMIT_LOG_LINE_BYTES);
    if (!native_has_arg(call, first + 1)) {
        log_write(log, level, "%.*s", CY_BYTES_ARG(text));
        return NATIVE_DONE;
    }
    cy_value fields = call->args[first + 1], key, value;
    if (map_object_count(fields) > LIMIT_LOG_FIELDS)
        return native_fail(call, CY_ERR(LIMIT), "%s: at most LOG_FIELDS = %d fields", name, LIMIT_LOG_FIELDS);
    struct builder line;
    enum native_outcome outcome = NATIVE_DONE;
    size_t cursor = 0;
    builder_init(&line);
    builder_bytes(&line, text);
    while (outcome == NATIVE_DONE && map_next(fields, &cursor, &key, &value))
        outcome = native_log_put_field(call, name, key, value, &line);
    if (outcome == NATIVE_DONE && line.failed) outcome = native_fail_reason(call, CY_ERR(NO_MEMORY), name);
    if (outcome == NATIVE_DONE)
        log_write(log, level, "%.*s",
                  CY_BYTES_ARG(cy_bytes_slice(builder_view(&line), 0, 2 * LIMIT_LOG_LINE_BYTES)));
    builder_fini(&line);
    return outcome;
}

enum native_outcome native_log_write(struct native_call *call)
{
    enum log_level level;
    if (log_level_find(string_bytes(call->args[0]), &level))
        return native_log_line(call, "log.write", level, 1);
    return native_fail(call, CY_ERR(VALUE),
                       "log.write: the level must be debug, info, warn or error, not \"%.*s\"",
                       CY_BYTES_ARG(string_bytes(call->args[0])));
}
enum native_outcome native_log_debug(struct native_call *call)
{
    return native_log_line(call, "log.debug", LOG_DEBUG, 0);
}
enum native_outcome native_log_info(struct native_call *call)
{
    return native_log_line(call, "log.info", LOG_INFO, 0);
}
enum native_outcome native_log_warn(struct native_call *call)
{
    return native_log_line(call, "log.warn", LOG_WARN, 0);
}
enum native_outcome native_log_error(struct native_call *call)
{
    return native_log_line(call, "log.error", LOG_ERROR, 0);
}

enum native_outcome native_log_dropped(struct native_call *call)
{
    return native_return(call, value_int((int64_t)runtime_output_dropped(runtime_of(call->vm))));
}
