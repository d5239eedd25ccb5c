/* SPDX-License-Identifier: MIT
 *
 * vm/run/format.c: the text that print shows.
 *
 *   nil  true  42  1.5  text  [1, "a"]  {"key": 1}  0..10  Route(name: "a", weight: 1)  <request>  ref(1)
 *   function name
 *
 * Method: one level of a container per entry of an own stack, no recursion; deeper than LIMIT_VALUE_DEPTH
 *       is shown as "…". A long text takes several turns (format_go): where it stands is a struct that can be kept.
 *       What is being shown cannot change meanwhile: whoever asked holds the value, and what somebody holds is copied
 *       by whoever writes to it. The content of a cell is the exception, and is held here.
 * Invariant: a ref inside a ref is shown as ref(…), because cells may form cycles.
 */
#include "vm/run/format.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/run/code.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

/* A number's text takes some 50 ns, a step of the interpreter a few: print of a million must show in the budget. */
enum { FORMAT_STEPS_PER_CONTENT = 4 };

/* Text from `*at` on without quotes around it, at most to `end`. */
static void format_escaped(cy_bytes text, size_t *at, size_t end, struct builder *out)
{
    size_t plain = *at;
    for (size_t i = *at; i < end; i++) {
        uint8_t byte = text.data[i];
        if (CY_LIKELY(byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f)) continue;
        builder_bytes(out, cy_bytes_slice(text, plain, i));
        plain = i + 1;
        switch (byte) {
        case '"': builder_text(out, "\\\""); break;
        case '\\': builder_text(out, "\\\\"); break;
        case '\n': builder_text(out, "\\n"); break;
        case '\r': builder_text(out, "\\r"); break;
        case '\t': builder_text(out, "\\t"); break;
        default: builder_printf(out, "\\x%02x", byte);
        }
    }
    builder_bytes(out, cy_bytes_slice(text, plain, end));
    *at = end;
}

static void format_function(const struct function_object *function, struct builder *out)
{
    const struct instance *instance = function->instance;
    builder_text(out, "function");
    if (function->native) {
        builder_printf(out, " %s", instance->natives[function->index].row->english);
        return;
    }
    cy_bytes name = program_string(instance->program, instance->functions[function->index].source->name);
    if (name.count) builder_u8(out, ' ');
    builder_bytes(out, name);
}

/* All of a value without contents, or the opening of one with. True when its contents follow. */
static bool format_open(struct vm *vm, cy_value value, bool quote, struct builder *out)
{
    char room[STRING_NUMBER_BYTES];
    cy_bytes text;
    switch (value.tag) {
    case TAG_STR: /* the quotes; the rest is format_text_piece's */
        if (quote) builder_u8(out, '"');
        return false;
    case TAG_BOOL:
    case TAG_INT:
    case TAG_FLOAT:
        if (string_text_of(value, room, &text)) builder_bytes(out, text);
        return false;
    case TAG_RANGE:
        builder_printf(out, "%lld..%lld", (long long)range_of(value)->from, (long long)range_of(value)->to);
        return false;
    case TAG_LIST: builder_u8(out, '['); return true;
    case TAG_MAP: builder_u8(out, '{'); return true;
    case TAG_RECORD:
        error_settle_places(vm, value);
        builder_printf(out, "%s(", value_kind_text(vm, value));
        return true;
    case TAG_REF: builder_text(out, "ref("); return true;
    case TAG_FUNCTION: format_function(function_of(value), out); return false;
    case TAG_HANDLE:
    case TAG_OPAQUE: builder_printf(out, "<%s>", value_kind_text(vm, value)); return false;
    default: builder_text(out, "nil"); return false;
    }
}

static void format_close(cy_value container, struct builder *out)
{
    builder_u8(out, container.tag == TAG_LIST ? ']' : container.tag == TAG_MAP ? '}' : ')');
}

/* The next content of a level, its label written before it; false when there are no more. A map's keys and
 * values are contents in turn: index 2n is entry n's key, 2n+1 its value. */
static bool format_next(const struct format_walk *walk, struct format_level *level, struct builder *out,
                        cy_value *content_out)
{
    uint32_t index = level->index++;
    const char *comma = level->first ? "" : ", ";
    level->first = false;
    switch (level->container.tag) {
    case TAG_LIST: {
        const struct list *list = list_of(level->container);
        if (index >= list->count) return false;
        builder_text(out, comma);
        *content_out = list_item(list, index);
        return true;
    }
    case TAG_RECORD: {
        const struct record *record = record_of(level->container);
        if (index >= record->shape->field_count) return false;
        builder_text(out, comma);
        builder_bytes(out, string_bytes(record->shape->fields[index]));
        builder_text(out, ": ");
        *content_out = record->fields[index];
        return true;
    }
    case TAG_MAP: {
        const struct map_object *map = map_object_of(level->container);
        bool is_value = index & 1;
        index /= 2;
        if (!map_object_seek(map, &index)) return false;
        level->index = index * 2 + (is_value ? 2 : 1);
        builder_text(out, is_value ? ": " : comma);
        *content_out = is_value ? map->entries[index].value : map_object_key(&map->entries[index]);
        return true;
    }
    default:
        if (index > 0) return false;
        *content_out = walk->held;
        return true;
    }
}

static bool format_push(struct vm *vm, struct format_walk *walk, cy_value container, struct builder *out)
{
    bool is_ref = container.tag == TAG_REF;
    if (walk->depth == LIMIT_VALUE_DEPTH || (is_ref && walk->ref_depth > 0)) return false;
    if (walk->depth == walk->capacity) {
        uint32_t capacity = walk->capacity ? walk->capacity * 2 : 8;
        struct format_level *levels = mem_resize(walk->levels, capacity * sizeof *levels);
        if (!levels) {
            out->failed = true; /* not "…": that says LIMIT_VALUE_DEPTH */
            return false;
        }
        walk->levels = levels;
        walk->capacity = capacity;
    }
    if (is_ref) {
        walk->ref_depth = 1;
        walk->held = value_ref(ref_touch(vm, container)->value);
    }
    walk->levels[walk->depth++] = (struct format_level){container, 0, true};
    return true;
}

static void format_enter(struct vm *vm, struct format_walk *walk, cy_value value, bool quote,
                         struct builder *out)
{
    if (!format_open(vm, value, quote, out)) {
        if (value.tag == TAG_STR) {
            walk->text = value;
            walk->text_at = 0;
            walk->text_quoted = quote;
        }
        return;
    }
    if (format_push(vm, walk, value, out)) return;
    builder_text(out, "…");
    format_close(value, out);
}

enum { FORMAT_PIECE_BYTES = 16 << 10, FORMAT_PIECE_CONTENTS = 64 };

/* The rest of the text under way, or a piece of it. */
static void format_text_piece(struct format_walk *walk, struct builder *out)
{
    cy_bytes text = string_bytes(walk->text);
    size_t end = cy_min_size(text.count, walk->text_at + FORMAT_PIECE_BYTES);
    if (walk->text_quoted)
        format_escaped(text, &walk->text_at, end, out);
    else
        builder_bytes(out, cy_bytes_slice(text, walk->text_at, end));
    walk->text_at = end;
    if (end < text.count) return;
    if (walk->text_quoted) builder_u8(out, '"');
    walk->text = value_nil();
}

static void format_pop(struct vm *vm, struct format_walk *walk, struct builder *out)
{
    cy_value container = walk->levels[--walk->depth].container;
    format_close(container, out);
    if (container.tag != TAG_REF) return;
    walk->ref_depth = 0;
    value_unref(vm, walk->held);
    walk->held = value_nil();
}

/* One content, or one piece of a text. */
static void format_step(struct vm *vm, struct format_walk *walk, struct builder *out)
{
    cy_value content;
    if (walk->text.tag == TAG_STR)
        format_text_piece(walk, out);
    else if (format_next(walk, &walk->levels[walk->depth - 1], out, &content)) {
        walk->contents++;
        format_enter(vm, walk, content, true, out);
    } else
        format_pop(vm, walk, out);
}

static inline bool format_has_more(const struct format_walk *walk, const struct builder *out)
{
    return (walk->depth > 0 || walk->text.tag == TAG_STR) && !out->failed;
}

static void format_walk_end(struct vm *vm, struct format_walk *walk)
{
    mem_free(walk->levels);
    value_unref(vm, walk->held);
    *walk = (struct format_walk){.text = value_nil(), .held = value_nil()};
}

/* -- in one go ------------------------------------------------------------------------------------------- */

void format_begin(struct vm *vm, struct builder *out)
{
    builder_init(out);
    out->count_max = cy_max_size(vm_memory_left(vm, LIMIT_FORMAT_BYTES), 1); /* 0 would mean no bound */
}

cy_err format_end(struct vm *vm, const struct builder *out)
{
    vm_charge_bytes(vm, out->count);
    if (!out->failed) return CY_OK;
    return out->past_max && out->count_max == LIMIT_FORMAT_BYTES
               ? CY_ERR_DETAIL(TOO_LARGE, LIMIT_FORMAT_BYTES)
               : CY_ERR(NO_MEMORY);
}

void value_format(struct vm *vm, cy_value value, bool quote, struct builder *out)
{
    struct format_walk walk = {.text = value_nil(), .held = value_nil()};
    format_enter(vm, &walk, value, quote, out);
    while (format_has_more(&walk, out)) format_step(vm, &walk, out);
    vm_charge(vm, walk.contents * FORMAT_STEPS_PER_CONTENT);
    format_walk_end(vm, &walk);
}

/* -- in turns -------------------------------------------------------------------------------------------- */

void format_text_begin(struct vm *vm, struct format_text *text)
{
    text->index = 0;
    text->inside = false;
    text->walk = (struct format_walk){.text = value_nil(), .held = value_nil()};
    string_build(vm, &text->out, LIMIT_FORMAT_BYTES);
    text->charged_bytes = text->out.count;
    text->counted_bytes = 0;
}

static void format_text_charge(struct vm *vm, struct format_text *text)
{
    vm_charge(vm, text->walk.contents * FORMAT_STEPS_PER_CONTENT);
    vm_charge_bytes(vm, text->out.count - text->charged_bytes);
    text->walk.contents = 0;
    text->charged_bytes = text->out.count;
}

/* Between two turns the memory counts: many tasks may be in the middle of a text. Without room for that it fails. */
static bool format_text_keep(struct vm *vm, struct format_text *text)
{
    size_t bytes = text->out.capacity + text->walk.capacity * sizeof *text->walk.levels;
    if (heap_count(vm, bytes)) {
        text->counted_bytes = bytes;
        return true;
    }
    text->out.failed = true;
    return false;
}

static void format_text_back(struct vm *vm, struct format_text *text)
{
    heap_uncount(vm, text->counted_bytes);
    text->counted_bytes = 0;
}

bool format_text_go(struct vm *vm, struct format_text *text, const cy_value *values, uint32_t count,
                    enum format_way way)
{
    format_text_back(vm, text);
    for (uint32_t steps = 0; !text->out.failed;) {
        if (text->inside && !format_has_more(&text->walk, &text->out)) {
            text->inside = false;
            text->index++;
        } else if (text->inside) {
            format_step(vm, &text->walk, &text->out);
            if (++steps % FORMAT_PIECE_CONTENTS != 0 && text->walk.text.tag != TAG_STR) continue;
            format_text_charge(vm, text);
            if (vm->running && vm->budget < 0 && format_text_keep(vm, text)) return false;
        } else if (text->index < count) {
            if (way == FORMAT_LINE && text->index > 0) builder_u8(&text->out, ' ');
            format_enter(vm, &text->walk, values[text->index], way == FORMAT_QUOTED, &text->out);
            text->inside = true;
        } else
            break;
    }
    if (way == FORMAT_LINE) builder_u8(&text->out, '\n');
    format_text_charge(vm, text);
    format_walk_end(vm, &text->walk);
    return true;
}

cy_err format_text_error(const struct format_text *text)
{
    if (!text->out.failed) return CY_OK;
    return text->out.past_max && string_build_is_full(&text->out, LIMIT_FORMAT_BYTES)
               ? CY_ERR_DETAIL(TOO_LARGE, LIMIT_FORMAT_BYTES)
               : CY_ERR(NO_MEMORY);
}

cy_err format_text_end(struct vm *vm, struct format_text *text, cy_value *owned_out)
{
    return string_build_end(vm, &text->out, LIMIT_FORMAT_BYTES, owned_out);
}

void format_text_drop(struct vm *vm, void *state)
{
    struct format_text *text = state;
    format_text_back(vm, text);
    format_walk_end(vm, &text->walk);
    builder_fini(&text->out);
}
