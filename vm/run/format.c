/* SPDX-License-Identifier: MIT
 *
 * vm/run/format.c: the text that print shows.
 *
 *   nil  true  42  1.5  text  [1, "a"]  {"key": 1}  0..10  Route(name: "a", weight: 1)  <request>  ref(1)
 *   function name
 *
 * Method: one level of a container per entry of an own stack, no recursion; deeper than LIMIT_VALUE_DEPTH
 *       is shown as "…".
 * Invariant: a ref inside a ref is shown as ref(…), because cells may form cycles.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/run/code.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/vm_internal.h"

/* A number's text takes some 50 ns, a step of the interpreter a few: print of a million must show in the budget. */
enum { FORMAT_STEPS_PER_CONTENT = 4 };

struct format_level {
    cy_value container;
    uint32_t index;
    bool first;
};

static void format_quoted(cy_bytes text, struct builder *out)
{
    builder_u8(out, '"');
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        switch (byte) {
        case '"': builder_text(out, "\\\""); break;
        case '\\': builder_text(out, "\\\\"); break;
        case '\n': builder_text(out, "\\n"); break;
        case '\r': builder_text(out, "\\r"); break;
        case '\t': builder_text(out, "\\t"); break;
        default:
            if (byte < 0x20 || byte == 0x7f)
                builder_printf(out, "\\x%02x", byte);
            else
                builder_u8(out, byte);
        }
    }
    builder_u8(out, '"');
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
    case TAG_STR:
        if (quote) {
            format_quoted(string_bytes(value), out);
            return false;
        }
        __attribute__((fallthrough));
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
static bool format_next(struct format_level *level, struct builder *out, cy_value *content_out)
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
        *content_out = is_value ? map->entries[index].value : map->entries[index].key;
        return true;
    }
    default:
        if (index > 0) return false;
        *content_out = ref_of(level->container)->value;
        return true;
    }
}

struct format_stack {
    struct format_level *levels;
    uint32_t depth;
    uint32_t capacity;
    uint32_t ref_depth;
};

static bool format_push(struct format_stack *stack, cy_value container, struct builder *out)
{
    bool is_ref = container.tag == TAG_REF;
    if (stack->depth == LIMIT_VALUE_DEPTH || (is_ref && stack->ref_depth > 0)) return false;
    if (stack->depth == stack->capacity) {
        uint32_t capacity = stack->capacity ? stack->capacity * 2 : 8;
        struct format_level *levels = mem_resize(stack->levels, capacity * sizeof *levels);
        if (!levels) {
            out->failed = true; /* not "…": that says LIMIT_VALUE_DEPTH */
            return false;
        }
        stack->levels = levels;
        stack->capacity = capacity;
    }
    stack->ref_depth += is_ref;
    stack->levels[stack->depth++] = (struct format_level){container, 0, true};
    return true;
}

static void format_enter(struct vm *vm, struct format_stack *stack, cy_value value, bool quote,
                         struct builder *out)
{
    if (!format_open(vm, value, quote, out)) return;
    if (format_push(stack, value, out)) return;
    builder_text(out, "…");
    format_close(value, out);
}

void format_begin(struct vm *vm, struct builder *out)
{
    builder_init(out);
    out->count_max = cy_max_size(vm_memory_left(vm, LIMIT_FORMAT_BYTES), 1); /* 0 would mean no bound */
}

cy_err format_end(struct vm *vm, const struct builder *out)
{
    vm_charge_bytes(vm, out->count);
    if (!out->failed) return CY_OK;
    return out->past_max && out->count_max == LIMIT_FORMAT_BYTES ? CY_ERR(TOO_LARGE) : CY_ERR(NO_MEMORY);
}

void value_format(struct vm *vm, cy_value value, bool quote, struct builder *out)
{
    struct format_stack stack = {0};
    uint64_t contents = 0;
    format_enter(vm, &stack, value, quote, out);
    while (stack.depth > 0 && !out->failed) {
        struct format_level *level = &stack.levels[stack.depth - 1];
        cy_value content;
        if (format_next(level, out, &content)) {
            contents++;
            format_enter(vm, &stack, content, true, out);
            continue;
        }
        format_close(level->container, out);
        stack.ref_depth -= level->container.tag == TAG_REF;
        stack.depth--;
    }
    mem_free(stack.levels);
    vm_charge(vm, contents * FORMAT_STEPS_PER_CONTENT);
}
