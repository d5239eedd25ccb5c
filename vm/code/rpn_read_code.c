/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_read_code.c: the body of one function, words to code.
 *
 * In:   a lexer at the body; all declarations.
 * Out:  instructions in their wide forms (canonical.c makes them short), the place of each in the text, line table.
 * Invariant: operands are read by their kind in format.def, so a new row of opcode.def can be read the day it is
 *            written. Words wait in a window of OPERANDS_MAX until an opcode takes them; what falls out of it is used
 *            by none. After any message the code is never run, so it only has to keep its shape.
 */
#include "vm/code/rpn_read_internal.h"

#include "vm/base/limits.h"

#include <inttypes.h>
#include <stdio.h>

#define RPN_CODE_UNPLACED UINT64_MAX

struct rpn_code_fixup {
    uint32_t offset, label;
    uint8_t bytes;
};
struct rpn_code {
    struct rpn_read *read;
    struct rpn_function *function;
    uint32_t index;
    struct rpn_lexer lexer;
    struct map labels;             /* number: code offset, RPN_CODE_UNPLACED */
    struct rpn_table label_places; /* by entry of labels */
    struct rpn_table fixups;
    struct rpn_token window[OPERANDS_MAX];
    uint32_t window_count;
    struct rpn_token stray; /* the first word that nothing used */
    bool has_stray;
    bool is_excused; /* what is wrong with this instruction was said */
    struct rpn_token opcode;
};

static uint32_t rpn_code_offset(const struct rpn_code *code)
{
    return (uint32_t)(code->read->code.count - code->function->code_start);
}

/* -- what no instruction uses ---------------------------------------------------------------------------- */

/* An unknown word was probably meant as an opcode: then what stands before it was meant for that. */
static void rpn_code_stray(struct rpn_code *code, const struct rpn_token *token)
{
    uint32_t slot;
    bool unknown = token->kind == RPN_TOKEN_WORD && !map_find(&code->labels, token->value) &&
                   !rpn_name_find_local(code->read, code->index, token->value, &slot) &&
                   rpn_name_is_unknown(code->read, code->function->module, token);
    if (unknown) rpn_name_report_unknown(code->read, token, RPN_SCOPE_COUNT, NULL);
    if (unknown || token->kind == RPN_TOKEN_BAD) {
        code->has_stray = false;
    } else if (!code->has_stray) {
        code->has_stray = true;
        code->stray = *token;
    }
}

static void rpn_code_drop_window(struct rpn_code *code, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) rpn_code_stray(code, &code->window[i]);
    for (uint32_t i = count; i < code->window_count; i++) code->window[i - count] = code->window[i];
    code->window_count -= count;
}

static void rpn_code_report_stray(struct rpn_code *code)
{
    if (code->has_stray)
        rpn_report(code->read, code->stray.place, RPN_FAULT_STRAY, code->stray.raw, CY_BYTES_NONE,
                   CY_BYTES_NONE);
    code->has_stray = false;
}

/* Nothing may wait where a label, a place or the end stands. */
static void rpn_code_flush(struct rpn_code *code)
{
    rpn_code_drop_window(code, code->window_count);
    rpn_code_report_stray(code);
}

static void rpn_code_push(struct rpn_code *code, const struct rpn_token *token)
{
    if (code->window_count == OPERANDS_MAX) rpn_code_drop_window(code, 1);
    code->window[code->window_count++] = *token;
}

/* -- operands -------------------------------------------------------------------------------------------- */

static const struct {
    const char *english, *korean;
} rpn_code_needs[] = {
    [OPERAND_COUNT] = {"a count", "개수가"},
    [OPERAND_IMMEDIATE] = {"a small int", "작은 정수가"},
    [OPERAND_SLOT] = {"a local's number or name", "지역 변수의 번호나 이름이"},
    [OPERAND_CAPTURE] = {"a capture's number", "붙잡은 값의 번호가"},
    [OPERAND_CONSTANT] = {"an int, a float or a string", "정수, 실수 또는 문자열이"},
    [OPERAND_NAME] = {"a string", "문자열이"},
    [OPERAND_GLOBAL] = {"a module variable (g0 or its name)", "모듈 변수(g0 또는 이름)가"},
    [OPERAND_FUNCTION] = {"a function (f0 or its name)", "함수(f0 또는 이름)가"},
    [OPERAND_NATIVE] = {"a native's name", "네이티브의 이름이"},
    [OPERAND_RECORD] = {"a record (r0 or its name)", "자료형(r0 또는 이름)이"},
    [OPERAND_KIND] = {"a kind", "종류가"},
    [OPERAND_FORWARD] = {"a label", "이름표가"},
    [OPERAND_BACKWARD] = {"a label", "이름표가"},
};

static const char *rpn_code_need(const struct rpn_code *code, uint8_t kind)
{
    const char *text = NULL;
    if (kind < CY_COUNT_OF(rpn_code_needs))
        text = code->read->options->korean ? rpn_code_needs[kind].korean : rpn_code_needs[kind].english;
    return text ? text : "?";
}

static void rpn_code_wrong(struct rpn_code *code, const struct rpn_token *token, uint8_t kind)
{
    code->is_excused = true;
    if (token->kind == RPN_TOKEN_BAD) return;
    rpn_report(code->read, token->place, RPN_FAULT_OPERAND, token->raw,
               cy_bytes_from_text(rpn_code_need(code, kind)), CY_BYTES_NONE);
}

/* A word that is not what is needed: perhaps it is nothing at all. */
static void rpn_code_wrong_word(struct rpn_code *code, const struct rpn_token *token, uint8_t kind,
                                enum rpn_scope scope, const struct map *prefer)
{
    uint32_t slot;
    bool known = token->kind != RPN_TOKEN_WORD || map_find(&code->labels, token->value) ||
                 rpn_name_find_local(code->read, code->index, token->value, &slot) ||
                 !rpn_name_is_unknown(code->read, code->function->module, token);
    code->is_excused = true;
    if (known)
        rpn_code_wrong(code, token, kind);
    else
        rpn_name_report_unknown(code->read, token, scope, prefer);
}

static int64_t rpn_code_number(struct rpn_code *code, const struct rpn_token *token, uint8_t kind,
                               int64_t min, int64_t max)
{
    if (token->kind != RPN_TOKEN_INT) {
        rpn_code_wrong_word(code, token, kind, RPN_SCOPE_COUNT, NULL);
        return 0;
    }
    if (token->integer >= min && token->integer <= max) return token->integer;
    char range[96];
    const char *none =
        code->read->options->korean ? "%s 와야 하지만 하나도 없습니다" : "%s, and there is none";
    int count = max < min ? snprintf(range, sizeof range, none, rpn_code_need(code, kind))
                          : snprintf(range, sizeof range, "%" PRId64 "..%" PRId64, min, max);
    rpn_report(code->read, token->place, RPN_FAULT_NUMBER_RANGE, token->raw,
               cy_bytes_of(range, (size_t)count), CY_BYTES_NONE);
    code->is_excused = true;
    return 0;
}

static int64_t rpn_code_slot(struct rpn_code *code, const struct rpn_token *token, int64_t max)
{
    uint32_t slot = 0;
    struct rpn_function *function = code->function;
    bool named =
        token->kind == RPN_TOKEN_WORD && rpn_name_find_local(code->read, code->index, token->value, &slot);
    if (!named) {
        if (function->locals != RPN_NONE && (int64_t)function->locals - 1 < max)
            max = (int64_t)function->locals - 1;
        if (max >= LIMIT_FUNCTION_LOCALS) max = LIMIT_FUNCTION_LOCALS - 1;
        slot = (uint32_t)rpn_code_number(code, token, OPERAND_SLOT, 0, max);
    }
    if (slot + 1 > function->slots_used) function->slots_used = slot + 1;
    return slot;
}

static int64_t rpn_code_constant(struct rpn_code *code, const struct rpn_token *token, uint8_t kind)
{
    struct constant constant = {0};
    if (token->kind == RPN_TOKEN_STRING) {
        constant.kind = CONSTANT_STR;
        constant.as.string = rpn_string(code->read, token->value);
    } else if (token->kind == RPN_TOKEN_INT && kind == OPERAND_CONSTANT) {
        constant.kind = CONSTANT_INT;
        constant.as.i = token->integer;
    } else if (token->kind == RPN_TOKEN_FLOAT && kind == OPERAND_CONSTANT) {
        constant.kind = CONSTANT_FLOAT;
        constant.as.f = token->real;
    } else {
        rpn_code_wrong_word(code, token, kind, RPN_SCOPE_COUNT, NULL);
        return 0;
    }
    return rpn_table_push(code->read, &code->read->constants, &constant);
}

/* The final number of a function, variable or record. */
static int64_t rpn_code_named(struct rpn_code *code, const struct rpn_token *token, uint8_t kind,
                              enum rpn_scope scope)
{
    struct rpn_read *read = code->read;
    if (token->kind != RPN_TOKEN_WORD && token->kind != RPN_TOKEN_STRING) {
        rpn_code_wrong(code, token, kind);
        return 0;
    }
    uint32_t index = rpn_name_resolve(read, scope, code->function->module, token, false);
    if (index == RPN_NONE) {
        code->is_excused = true;
        if (rpn_name_is_unknown(read, code->function->module, token) || token->kind == RPN_TOKEN_STRING)
            rpn_name_report_unknown(read, token, scope, NULL);
        else if (!rpn_dictionary_word(&read->dictionary, token->value))
            (void)rpn_name_resolve(read, scope, code->function->module, token, true);
        else
            rpn_code_wrong(code, token, kind);
        return 0;
    }
    if (scope == RPN_FUNCTION) return rpn_function_at(read, index)->final;
    if (scope == RPN_GLOBAL) return ((struct rpn_global *)rpn_table_at(&read->globals, index))->final;
    return index;
}

static int64_t rpn_code_native(struct rpn_code *code, const struct rpn_token *token,
                               const struct native_row **row_out)
{
    struct rpn_read *read = code->read;
    const struct native_row *row = NULL;
    if (token->kind == RPN_TOKEN_WORD) row = rpn_dictionary_native(&read->dictionary, token->value);
    *row_out = row;
    if (!row) {
        rpn_code_wrong_word(code, token, OPERAND_NATIVE, RPN_SCOPE_COUNT, &read->dictionary.natives);
        return 0;
    }
    bool is_new;
    struct map_entry *entry = map_insert(&read->native_numbers, cy_bytes_from_text(row->english), &is_new);
    if (!entry) read->no_memory = true;
    if (!entry) return 0;
    if (is_new) {
        struct native_import native = {.name = rpn_string(read, cy_bytes_from_text(row->english))};
        entry->value.number = rpn_table_push(read, &read->natives, &native);
    }
    return (int64_t)entry->value.number;
}

static int64_t rpn_code_kind(struct rpn_code *code, const struct rpn_token *token)
{
    enum value_kind kind = KIND_NIL;
    if (token->kind != RPN_TOKEN_WORD || !kind_find(token->value, &kind))
        rpn_code_wrong_word(code, token, OPERAND_KIND, RPN_SCOPE_COUNT, NULL);
    return kind;
}

static void rpn_code_label(struct rpn_code *code, const struct rpn_token *token, uint8_t kind,
                           uint32_t offset, uint8_t bytes)
{
    const struct map_entry *entry =
        token->kind == RPN_TOKEN_WORD ? map_find(&code->labels, token->value) : NULL;
    if (!entry) {
        rpn_code_wrong_word(code, token, kind, RPN_SCOPE_COUNT, &code->labels);
        return;
    }
    struct rpn_code_fixup fixup = {offset, (uint32_t)(entry - code->labels.entries), bytes};
    (void)rpn_table_push(code->read, &code->fixups, &fixup);
}

/* -- counts that follow from what they belong to ---------------------------------------------------------- */

struct rpn_code_owner {
    uint8_t kind; /* enum operand_kind; NONE: there is no owner whose count is known */
    const struct native_row *native;
    uint32_t index; /* final, of a function; of a record */
};

/* False when the owner has no bounds of its own: a path is as long as it is. */
static bool rpn_code_count_range(const struct rpn_code *code, const struct rpn_code_owner *owner,
                                 int64_t *min_out, int64_t *max_out)
{
    const struct rpn_read *read = code->read;
    if (owner->kind == OPERAND_NATIVE && owner->native) {
        struct native_signature signature;
        native_signature_parse(owner->native, &signature);
        *min_out = signature.required_count;
        *max_out = signature.param_count;
        return true;
    }
    if (owner->kind == OPERAND_RECORD && owner->index < read->records.count) {
        const struct rpn_record *record = rpn_table_at(&read->records, owner->index);
        *min_out = *max_out = record->field_count;
        return true;
    }
    if (owner->kind != OPERAND_FUNCTION || owner->index == RPN_NONE) return false;
    const struct rpn_function *function = rpn_function_at(read, owner->index);
    *min_out = rpn_function_required(function);
    *max_out = rpn_function_params(function);
    return true;
}

static void rpn_code_check_count(struct rpn_code *code, const struct rpn_code_owner *owner,
                                 const struct rpn_token *token, int64_t count)
{
    int64_t min, max;
    if (code->is_excused || !rpn_code_count_range(code, owner, &min, &max)) return;
    bool fits = count >= min && (count <= max || (owner->kind == OPERAND_NATIVE && max == NATIVE_ARGS_ANY));
    if (fits) return;
    char range[48], given[24];
    int range_count = min == max ? snprintf(range, sizeof range, "%" PRId64, min)
                                 : snprintf(range, sizeof range, "%" PRId64 "..%" PRId64, min, max);
    int given_count = snprintf(given, sizeof given, "%" PRId64, count);
    rpn_report(code->read, token->place, RPN_FAULT_ARGUMENTS, code->opcode.raw,
               cy_bytes_of(range, (size_t)range_count), cy_bytes_of(given, (size_t)given_count));
    code->is_excused = true;
}

/* -- instructions ---------------------------------------------------------------------------------------- */

static void rpn_code_put(struct rpn_code *code, int64_t number, uint8_t bytes)
{
    for (uint8_t i = 0; i < bytes; i++) builder_u8(&code->read->code, (uint8_t)((uint64_t)number >> (8 * i)));
}

static int64_t rpn_code_operand_max(uint8_t bytes) { return (INT64_C(1) << (8 * bytes)) - 1; }

/* Reads one operand and appends it. */
static void rpn_code_operand(struct rpn_code *code, uint8_t kind, uint8_t bytes,
                             const struct rpn_token *token, struct rpn_code_owner *owner)
{
    int64_t max = rpn_code_operand_max(bytes), value = 0;
    switch ((enum operand_kind)kind) {
    case OPERAND_COUNT:
        value = rpn_code_number(code, token, kind, 0, max);
        rpn_code_check_count(code, owner, token, value);
        break;
    case OPERAND_IMMEDIATE: value = rpn_code_number(code, token, kind, -(max / 2) - 1, max / 2); break;
    case OPERAND_SLOT: value = rpn_code_slot(code, token, max); break;
    case OPERAND_CAPTURE:
        value = rpn_code_number(code, token, kind, 0, (int64_t)code->function->capture_count - 1);
        break;
    case OPERAND_CONSTANT:
    case OPERAND_NAME: value = rpn_code_constant(code, token, kind); break;
    case OPERAND_GLOBAL: value = rpn_code_named(code, token, kind, RPN_GLOBAL); break;
    case OPERAND_FUNCTION:
        value = rpn_code_named(code, token, kind, RPN_FUNCTION);
        owner->index = code->is_excused
                           ? RPN_NONE
                           : rpn_name_resolve(code->read, RPN_FUNCTION, code->function->module, token, false);
        break;
    case OPERAND_RECORD:
        value = rpn_code_named(code, token, kind, RPN_RECORD);
        owner->index = (uint32_t)value;
        break;
    case OPERAND_NATIVE: value = rpn_code_native(code, token, &owner->native); break;
    case OPERAND_KIND: value = rpn_code_kind(code, token); break;
    case OPERAND_FORWARD:
    case OPERAND_BACKWARD: rpn_code_label(code, token, kind, rpn_code_offset(code), bytes); break;
    case OPERAND_NONE: UNREACHABLE();
    }
    if (kind != OPERAND_COUNT) owner->kind = kind;
    if (value > max) { /* more entries than this opcode can name */
        rpn_report(code->read, token->place, RPN_FAULT_OPERAND, token->raw,
                   cy_bytes_from_text(rpn_code_need(code, kind)), CY_BYTES_NONE);
        value = 0;
    }
    rpn_code_put(code, value, bytes);
}

static void rpn_code_report_operands(struct rpn_code *code, const struct format_row *format)
{
    struct builder list, number;
    builder_init(&list);
    builder_init(&number);
    builder_i64_text(&number, format->operand_count);
    if (!code->read->options->korean)
        builder_text(&number, format->operand_count == 1 ? " operand" : " operands");
    for (uint8_t i = 0; i < format->operand_count; i++)
        builder_printf(&list, "%s%s", i ? ", " : "", rpn_code_need(code, format->operands[i].kind));
    rpn_report(code->read, code->opcode.place, RPN_FAULT_OPERANDS, code->opcode.raw, builder_view(&number),
               builder_view(&list));
    builder_fini(&number);
    builder_fini(&list);
    code->is_excused = true;
}

/* True when the format ends with a count that its owner says, and the text leaves it out. */
static bool rpn_code_derives_count(const struct rpn_code *code, const struct format_row *format)
{
    if (format->operand_count < 2 || format->operands[format->operand_count - 1].kind != OPERAND_COUNT)
        return false;
    uint8_t owner = format->operands[format->operand_count - 2].kind;
    if (owner != OPERAND_FUNCTION && owner != OPERAND_NATIVE && owner != OPERAND_RECORD) return false;
    return code->window_count > 0 && code->window[code->window_count - 1].kind != RPN_TOKEN_INT &&
           code->window[code->window_count - 1].kind != RPN_TOKEN_BAD;
}

/* The count left out: there must be only one that fits. */
static void rpn_code_derive_count(struct rpn_code *code, const struct format_row *format, uint8_t bytes,
                                  const struct rpn_code_owner *owner)
{
    int64_t min = 0, max = 0;
    bool known = !code->is_excused && rpn_code_count_range(code, owner, &min, &max);
    if (known && min != max) rpn_code_report_operands(code, format);
    rpn_code_put(code, known ? min : 0, bytes);
}

static void rpn_code_instruction(struct rpn_code *code, const struct opcode_row *row)
{
    const struct opcode_row *wide = opcode_wide(row);
    if (wide) row = wide;
    const struct format_row *format = format_row((enum operand_format)row->format);
    bool derives = rpn_code_derives_count(code, format);
    uint32_t needed = format->operand_count - (derives ? 1u : 0u);
    code->is_excused = false;
    if (code->window_count > needed) rpn_code_drop_window(code, code->window_count - needed);
    (void)rpn_table_push(code->read, &code->read->steps, &code->opcode.place);
    builder_u8(&code->read->code, row->number);
    if (code->window_count < needed) {
        for (uint32_t i = 0; i < code->window_count; i++)
            if (code->window[i].kind == RPN_TOKEN_BAD) code->is_excused = true;
        if (!code->is_excused) rpn_code_report_operands(code, format);
        rpn_code_put(code, 0, format->operand_bytes < 8 ? format->operand_bytes : 8);
    } else {
        struct rpn_code_owner owner = {.kind = OPERAND_NONE, .index = RPN_NONE};
        for (uint8_t i = 0; i < needed; i++)
            rpn_code_operand(code, format->operands[i].kind, format->operands[i].bytes, &code->window[i],
                             &owner);
        if (derives) rpn_code_derive_count(code, format, format->operands[needed].bytes, &owner);
    }
    code->window_count = 0;
    if (code->is_excused) code->has_stray = false;
    rpn_code_report_stray(code);
}

/* -- labels ---------------------------------------------------------------------------------------------- */

/* Labels may be used before they stand. */
static void rpn_code_find_labels(struct rpn_code *code)
{
    struct rpn_lexer quiet = code->lexer;
    quiet.faults = NULL;
    for (;;) {
        struct rpn_token token = rpn_lexer_next(&quiet);
        if (token.kind == RPN_TOKEN_END || token.place.offset >= code->function->body_end) return;
        if (token.kind != RPN_TOKEN_LABEL) continue;
        bool is_new;
        struct map_entry *entry = map_insert(&code->labels, token.value, &is_new);
        if (!entry) code->read->no_memory = true;
        if (!entry || !is_new) continue;
        entry->value.number = RPN_CODE_UNPLACED;
        (void)rpn_table_push(code->read, &code->label_places, &token.place);
    }
}

static void rpn_code_place_label(struct rpn_code *code, const struct rpn_token *token)
{
    struct map_entry *entry = map_find(&code->labels, token->value);
    if (!entry) return; /* no memory */
    if (entry->value.number != RPN_CODE_UNPLACED)
        rpn_report(code->read, token->place, RPN_FAULT_LABEL_TWICE, token->value, CY_BYTES_NONE,
                   CY_BYTES_NONE);
    entry->value.number = rpn_code_offset(code);
}

static void rpn_code_patch_labels(struct rpn_code *code)
{
    struct builder *out = &code->read->code;
    uint32_t end = rpn_code_offset(code);
    for (uint32_t i = 0; i < code->labels.count; i++) {
        if (code->labels.entries[i].value.number != end || i >= code->label_places.count) continue;
        const struct rpn_place *place = rpn_table_at(&code->label_places, i);
        rpn_report(code->read, *place, RPN_FAULT_LABEL_END, code->labels.entries[i].key, CY_BYTES_NONE,
                   CY_BYTES_NONE);
    }
    if (out->failed) return;
    for (uint32_t i = 0; i < code->fixups.count; i++) {
        const struct rpn_code_fixup *fixup = rpn_table_at(&code->fixups, i);
        uint64_t target = code->labels.entries[fixup->label].value.number;
        for (uint8_t k = 0; k < fixup->bytes; k++)
            out->data[code->function->code_start + fixup->offset + k] = (uint8_t)(target >> (8 * k));
    }
}

/* -- the body -------------------------------------------------------------------------------------------- */

static void rpn_code_token(struct rpn_code *code, const struct rpn_token *token)
{
    struct rpn_read *read = code->read;
    const struct opcode_row *row = NULL;
    if (token->kind == RPN_TOKEN_WORD) row = rpn_dictionary_opcode(&read->dictionary, token->value);
    if (row) {
        code->opcode = *token;
        rpn_code_instruction(code, row);
    } else if (token->kind == RPN_TOKEN_LABEL) {
        rpn_code_flush(code);
        rpn_code_place_label(code, token);
    } else if (token->kind == RPN_TOKEN_SOURCE) {
        struct line_entry line = {rpn_code_offset(code), token->line, token->column};
        rpn_code_flush(code);
        (void)rpn_table_push(read, &read->lines, &line);
        code->function->has_lines = true;
    } else {
        rpn_code_push(code, token);
    }
}

void rpn_read_body(struct rpn_read *read, uint32_t index)
{
    struct rpn_function *function = rpn_function_at(read, index);
    struct rpn_code code = {.read = read, .function = function, .index = index, .lexer = function->body};
    map_init(&code.labels, (hash_seed){0x6c6162, 0x656c73});
    code.label_places.entry_bytes = sizeof(struct rpn_place);
    code.fixups.entry_bytes = sizeof(struct rpn_code_fixup);
    function->code_start = read->code.count;
    function->step_first = read->steps.count;
    function->line_first = read->lines.count;
    rpn_code_find_labels(&code);
    while (!read->no_memory && !read->code.failed) {
        struct rpn_token token = rpn_lexer_next(&code.lexer);
        if (token.kind == RPN_TOKEN_END || token.place.offset >= function->body_end) break;
        rpn_code_token(&code, &token);
    }
    rpn_code_flush(&code);
    rpn_code_patch_labels(&code);
    function->code_bytes = read->code.count - function->code_start;
    function->step_count = read->steps.count - function->step_first;
    function->line_count = read->lines.count - function->line_first;
    builder_fini(&code.fixups.bytes);
    builder_fini(&code.label_places.bytes);
    map_fini(&code.labels);
}
