/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau_diff.c: see toau_diff.h.
 *
 * Order: modules, records, module variables, then functions, each with its head, its code and its places.
 * Pools follow from these, so they are not compared by themselves; toau_diff_bytes names their entries.
 */
#include "vm/code/toau_diff.h"

#include "vm/base/check.h"
#include "vm/base/map.h"
#include "vm/base/mem.h"
#include "vm/code/opcode.h"
#include "vm/code/rpn_write_internal.h"
#include "vm/code/toau_internal.h"

#define TOAU_DIFF_NONE UINT32_MAX

struct toau_diff {
    const struct toau_diff_options *options;
    const struct program *a, *b;
    struct builder *out;
    uint32_t count;
    bool places; /* look at places in the source rather than at code */
    bool no_memory;
};

/* Opens one more difference; false when enough were shown. */
static bool toau_diff_open(struct toau_diff *diff)
{
    if (diff->count && !diff->options->all) return false;
    diff->count++;
    return true;
}

static void toau_diff_sides(struct toau_diff *diff, cy_bytes a, cy_bytes b)
{
    const cy_bytes names[] = {diff->options->name_a, diff->options->name_b}, texts[] = {a, b};
    for (int i = 0; i < 2; i++)
        builder_printf(diff->out, "    %.*s: %.*s\n", CY_BYTES_ARG(names[i]), CY_BYTES_ARG(texts[i]));
}

static void toau_diff_side_texts(struct toau_diff *diff, struct builder *a, struct builder *b)
{
    if (a->failed || b->failed) diff->no_memory = true;
    toau_diff_sides(diff, builder_view(a), builder_view(b));
}

static const char *toau_diff_word(const struct toau_diff *diff, const char *english, const char *korean)
{
    return diff->options->korean ? korean : english;
}

/* -- tables ---------------------------------------------------------------------------------------------- */

static void toau_diff_text_export(const struct program *program, const struct export_entry *export,
                                  struct builder *out)
{
    static const char *const kinds[] = {
        [EXPORT_FUNCTION] = "function", [EXPORT_GLOBAL] = "global", [EXPORT_RECORD] = "record"};
    uint32_t name = export->kind == EXPORT_FUNCTION ? program->functions[export->index].name
                    : export->kind == EXPORT_GLOBAL ? program->globals[export->index].name
                                                    : program->records[export->index].name;
    builder_printf(out, " export ");
    rpn_write_string(program_string(program, export->name), out);
    builder_printf(out, " %s ", kinds[export->kind]);
    rpn_write_string(program_string(program, name), out);
}

static void toau_diff_text_module(const struct program *program, uint32_t index, struct builder *out)
{
    const struct module *module = &program->modules[index];
    builder_text(out, "module ");
    rpn_write_string(program_string(program, module->name), out);
    builder_text(out, " file ");
    rpn_write_string(program_string(program, module->file), out);
    if (module->init_function != PROGRAM_NO_INDEX) builder_text(out, " init");
    for (uint32_t i = 0; i < module->global_count; i++) {
        builder_text(out, " global ");
        rpn_write_string(program_string(program, program->globals[module->global_first + i].name), out);
    }
    for (uint32_t i = 0; i < module->export_count; i++)
        toau_diff_text_export(program, &module->exports[i], out);
}

static void toau_diff_text_record(const struct program *program, uint32_t index, struct builder *out)
{
    const struct record_type *record = &program->records[index];
    builder_text(out, "record ");
    rpn_write_string(program_string(program, record->name), out);
    builder_text(out, " module ");
    rpn_write_string(program_string(program, program->modules[record->module].name), out);
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct record_field *field = &record->fields[i];
        builder_text(out, " field ");
        rpn_write_string(program_string(program, field->name), out);
        for (unsigned kind = 0; kind < KIND_COUNT && field->kinds != RECORD_FIELD_ANY; kind++) {
            if (!(field->kinds & RECORD_FIELD_KIND(kind))) continue;
            builder_text(out, " of ");
            if (kind == KIND_RECORD && field->record != PROGRAM_NO_INDEX)
                rpn_write_string(program_string(program, program->records[field->record].name), out);
            else
                builder_text(out, kind_name((enum value_kind)kind, false));
        }
    }
}

/* Entry by entry; `text` writes what one is. */
static void toau_diff_table(struct toau_diff *diff, const char *section, uint32_t count_a, uint32_t count_b,
                            void (*text)(const struct program *, uint32_t, struct builder *))
{
    uint32_t count = count_a > count_b ? count_a : count_b;
    for (uint32_t i = 0; i < count; i++) {
        struct builder a, b;
        builder_init(&a);
        builder_init(&b);
        const char *nothing = toau_diff_word(diff, "(not there)", "(없음)");
        if (i < count_a) text(diff->a, i, &a);
        if (i < count_b) text(diff->b, i, &b);
        if (!cy_bytes_equal(builder_view(&a), builder_view(&b)) && toau_diff_open(diff)) {
            if (i >= count_a) builder_text(&a, nothing);
            if (i >= count_b) builder_text(&b, nothing);
            builder_printf(diff->out, toau_diff_word(diff, "section %s, entry %u\n", "구역 %s, %u번째\n"),
                           section, i);
            toau_diff_side_texts(diff, &a, &b);
        }
        builder_fini(&a);
        builder_fini(&b);
    }
}

/* -- code ------------------------------------------------------------------------------------------------ */

/* One side of a pair of functions while they are walked. */
struct toau_diff_walk {
    const struct program *program;
    const struct function *function;
    uint32_t *labels;
    uint32_t *steps; /* by code offset: which instruction starts there */
    uint32_t step_count;
    struct instruction instruction;
    bool ended;
};

static void toau_diff_walk_fini(struct toau_diff_walk *walk)
{
    mem_free(walk->labels);
    mem_free(walk->steps);
}

static bool toau_diff_walk_init(struct toau_diff_walk *walk, const struct program *program, uint32_t index)
{
    const struct function *function = &program->functions[index];
    *walk = (struct toau_diff_walk){.program = program, .function = function};
    walk->labels = mem_alloc_zeroed((size_t)function->code_bytes * sizeof *walk->labels);
    walk->steps = mem_alloc_zeroed((size_t)function->code_bytes * sizeof *walk->steps);
    if (!walk->labels || !walk->steps) return false;
    rpn_write_number_labels(function, walk->labels);
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction = {0};
    while (opcode_decode(code, instruction.next_offset, &instruction))
        walk->steps[instruction.offset] = walk->step_count++;
    return true;
}

static void toau_diff_walk_next(struct toau_diff_walk *walk)
{
    cy_bytes code = cy_bytes_of(walk->function->code, walk->function->code_bytes);
    walk->ended = !opcode_decode(code, walk->instruction.next_offset, &walk->instruction);
}

static bool toau_diff_same_constant(const struct program *a, const struct constant *one,
                                    const struct program *b, const struct constant *other)
{
    if (one->kind != other->kind) return false;
    if (one->kind == CONSTANT_STR)
        return cy_bytes_equal(program_string(a, one->as.string), program_string(b, other->as.string));
    return memcmp(&one->as, &other->as, sizeof one->as.i) == 0;
}

static bool toau_diff_same_name(const struct program *a, uint32_t one, const struct program *b,
                                uint32_t other)
{
    return cy_bytes_equal(program_string(a, one), program_string(b, other));
}

/* The same function: by module and name. Functions without a name are taken to be the same. */
static bool toau_diff_same_function(const struct program *a, int64_t one, const struct program *b,
                                    int64_t other)
{
    const struct function *function = &a->functions[one], *twin = &b->functions[other];
    return toau_diff_same_name(a, function->name, b, twin->name) &&
           toau_diff_same_name(a, a->modules[function->module].name, b, b->modules[twin->module].name);
}

static bool toau_diff_same_operand(const struct toau_diff_walk *a, const struct toau_diff_walk *b,
                                   uint8_t kind, uint8_t at)
{
    int64_t one = a->instruction.operands[at], other = b->instruction.operands[at];
    const struct program *left = a->program, *right = b->program;
    switch ((enum operand_kind)kind) {
    case OPERAND_CONSTANT:
    case OPERAND_NAME:
        return toau_diff_same_constant(left, &left->constants[one], right, &right->constants[other]);
    case OPERAND_GLOBAL:
        return toau_diff_same_name(left, left->globals[one].name, right, right->globals[other].name);
    case OPERAND_RECORD:
        return toau_diff_same_name(left, left->records[one].name, right, right->records[other].name);
    case OPERAND_NATIVE:
        return toau_diff_same_name(left, left->natives[one].name, right, right->natives[other].name);
    case OPERAND_FUNCTION: return toau_diff_same_function(left, one, right, other);
    case OPERAND_FORWARD:
    case OPERAND_BACKWARD: return a->steps[one] == b->steps[other];
    case OPERAND_COUNT:
    case OPERAND_IMMEDIATE:
    case OPERAND_SLOT:
    case OPERAND_CAPTURE:
    case OPERAND_KIND:
    case OPERAND_NONE: return one == other;
    }
    UNREACHABLE();
}

static const struct opcode_row *toau_diff_narrow(const struct instruction *instruction)
{
    const struct opcode_row *row = opcode_row(instruction->opcode), *narrow = opcode_narrow(row);
    return narrow ? narrow : row;
}

static bool toau_diff_same_instruction(const struct toau_diff_walk *a, const struct toau_diff_walk *b)
{
    if (a->ended || b->ended) return a->ended == b->ended;
    const struct opcode_row *row = toau_diff_narrow(&a->instruction);
    if (row != toau_diff_narrow(&b->instruction)) return false;
    const struct format_row *format = format_row((enum operand_format)row->format);
    for (uint8_t i = 0; i < format->operand_count; i++)
        if (!toau_diff_same_operand(a, b, format->operands[i].kind, i)) return false;
    return true;
}

/* "routes.han:12:5 (offset 31): "host" FIELD_GET" */
static void toau_diff_text_step(const struct toau_diff *diff, const struct toau_diff_walk *walk,
                                struct builder *out)
{
    if (walk->ended) {
        builder_text(out, toau_diff_word(diff, "(the function has ended)", "(함수가 끝났습니다)"));
        return;
    }
    uint32_t line, column;
    const struct program *program = walk->program;
    if (function_place(walk->function, walk->instruction.offset, &line, &column))
        builder_printf(out, "%.*s:%u:%u ",
                       CY_BYTES_ARG(program_string(program, program->modules[walk->function->module].file)),
                       line, column);
    builder_printf(out, toau_diff_word(diff, "(offset %u): ", "(위치 %u): "), walk->instruction.offset);
    rpn_write_one(program, walk->labels, &walk->instruction, out);
}

static void toau_diff_function_title(struct toau_diff *diff, const struct program *program, uint32_t index)
{
    const struct function *function = &program->functions[index];
    builder_text(diff->out, toau_diff_word(diff, "function ", "함수 "));
    rpn_write_string(program_string(program, function->name), diff->out);
    builder_text(diff->out, toau_diff_word(diff, " of module ", ", 모듈 "));
    rpn_write_string(program_string(program, program->modules[function->module].name), diff->out);
}

/* Index of the first instruction that differs, TOAU_DIFF_NONE when none does. The walks stand there. */
static uint32_t toau_diff_find_step(struct toau_diff_walk *a, struct toau_diff_walk *b)
{
    for (uint32_t step = 0;; step++) {
        toau_diff_walk_next(a);
        toau_diff_walk_next(b);
        if (!toau_diff_same_instruction(a, b)) return step;
        if (a->ended) return TOAU_DIFF_NONE;
    }
}

static void toau_diff_code(struct toau_diff *diff, uint32_t index_a, uint32_t index_b)
{
    struct toau_diff_walk a, b;
    bool usable = toau_diff_walk_init(&a, diff->a, index_a);
    usable = toau_diff_walk_init(&b, diff->b, index_b) && usable;
    if (!usable) diff->no_memory = true;
    uint32_t step = usable ? toau_diff_find_step(&a, &b) : TOAU_DIFF_NONE;
    if (step != TOAU_DIFF_NONE && toau_diff_open(diff)) {
        struct builder text_a, text_b;
        builder_init(&text_a);
        builder_init(&text_b);
        toau_diff_text_step(diff, &a, &text_a);
        toau_diff_text_step(diff, &b, &text_b);
        toau_diff_function_title(diff, diff->a, index_a);
        builder_printf(diff->out, toau_diff_word(diff, ", instruction %u\n", ", 명령 %u\n"), step);
        toau_diff_side_texts(diff, &text_a, &text_b);
        builder_fini(&text_a);
        builder_fini(&text_b);
    }
    toau_diff_walk_fini(&a);
    toau_diff_walk_fini(&b);
}

static void toau_diff_text_head(const struct program *program, uint32_t index, struct builder *out)
{
    const struct function *function = &program->functions[index];
    builder_printf(out, "params %u required %u locals %u", function->param_count, function->required_count,
                   function->local_count);
    if (function->parent != PROGRAM_NO_INDEX) {
        builder_text(out, " parent ");
        rpn_write_string(program_string(program, program->functions[function->parent].name), out);
    }
    for (uint32_t i = 0; i < function->capture_count; i++)
        builder_printf(out, " capture %s %u", function->captures[i].from_parent_local ? "local" : "outer",
                       function->captures[i].index);
}

static void toau_diff_head(struct toau_diff *diff, uint32_t index_a, uint32_t index_b)
{
    struct builder a, b;
    builder_init(&a);
    builder_init(&b);
    toau_diff_text_head(diff->a, index_a, &a);
    toau_diff_text_head(diff->b, index_b, &b);
    if (!cy_bytes_equal(builder_view(&a), builder_view(&b)) && toau_diff_open(diff)) {
        toau_diff_function_title(diff, diff->a, index_a);
        builder_text(diff->out, toau_diff_word(diff, ", head\n", ", 머리\n"));
        toau_diff_side_texts(diff, &a, &b);
    }
    builder_fini(&a);
    builder_fini(&b);
}

/* Only the places: a comment more, or another indent. */
static void toau_diff_lines(struct toau_diff *diff, uint32_t index_a, uint32_t index_b)
{
    const struct function *a = &diff->a->functions[index_a], *b = &diff->b->functions[index_b];
    uint32_t i = 0, count = a->line_count < b->line_count ? a->line_count : b->line_count;
    while (i < count && a->lines[i].line == b->lines[i].line && a->lines[i].column == b->lines[i].column) i++;
    if (i == count && a->line_count == b->line_count) return;
    if (!toau_diff_open(diff)) return;
    struct builder texts[2];
    const struct function *functions[] = {a, b};
    for (int side = 0; side < 2; side++) {
        builder_init(&texts[side]);
        const struct function *function = functions[side];
        if (i < function->line_count)
            builder_printf(&texts[side], "@%u:%u", function->lines[i].line, function->lines[i].column);
        else
            builder_text(&texts[side], toau_diff_word(diff, "(no more)", "(더 없음)"));
    }
    toau_diff_function_title(diff, diff->a, index_a);
    builder_printf(diff->out, toau_diff_word(diff, ", only the places: entry %u\n", ", 자리만: %u번째\n"), i);
    toau_diff_side_texts(diff, &texts[0], &texts[1]);
    builder_fini(&texts[0]);
    builder_fini(&texts[1]);
}

/* -- pairs ----------------------------------------------------------------------------------------------- */

/* module, name, and the how-manieth of that name it is: what a function is known by in the other program. */
static bool toau_diff_key(const struct program *program, uint32_t index, struct map *seen,
                          struct builder *key)
{
    const struct function *function = &program->functions[index];
    builder_clear(key);
    rpn_write_string(program_string(program, program->modules[function->module].name), key);
    rpn_write_string(program_string(program, function->name), key);
    struct map_entry *entry = key->failed ? NULL : map_insert(seen, builder_view(key), NULL);
    if (!entry) return false;
    builder_u64(key, entry->value.number++);
    return !key->failed;
}

static void toau_diff_pair(struct toau_diff *diff, uint32_t index_a, uint32_t index_b)
{
    uint32_t before = diff->count;
    if (!diff->places) toau_diff_head(diff, index_a, index_b);
    if (!diff->places) toau_diff_code(diff, index_a, index_b);
    bool same = diff->count == before && diff->options->all;
    if (diff->places || same) toau_diff_lines(diff, index_a, index_b);
}

static void toau_diff_only(struct toau_diff *diff, const struct program *program, uint32_t index,
                           cy_bytes name)
{
    if (!toau_diff_open(diff)) return;
    toau_diff_function_title(diff, program, index);
    builder_printf(diff->out, toau_diff_word(diff, ": only in %.*s\n", ": %.*s에만 있음\n"),
                   CY_BYTES_ARG(name));
}

/* Functions of b by key; number is index + 1, 0 once paired. */
static bool toau_diff_index(const struct program *program, struct map *keys, struct map *seen,
                            struct builder *key)
{
    for (uint32_t i = 0; i < program->function_count; i++) {
        if (!toau_diff_key(program, i, seen, key)) return false;
        struct map_entry *entry = map_insert(keys, builder_view(key), NULL);
        if (!entry) return false;
        entry->value.number = i + 1;
    }
    return true;
}

static void toau_diff_functions(struct toau_diff *diff)
{
    struct map keys, seen_a, seen_b;
    struct builder key;
    const hash_seed seed = {0x746f6175, 0x64696666};
    map_init(&keys, seed);
    map_init(&seen_a, seed);
    map_init(&seen_b, seed);
    builder_init(&key);
    if (!toau_diff_index(diff->b, &keys, &seen_b, &key)) diff->no_memory = true;
    for (uint32_t i = 0; i < diff->a->function_count && !diff->no_memory; i++) {
        if (!toau_diff_key(diff->a, i, &seen_a, &key)) {
            diff->no_memory = true;
            break;
        }
        struct map_entry *entry = map_find(&keys, builder_view(&key));
        if (!entry) {
            toau_diff_only(diff, diff->a, i, diff->options->name_a);
            continue;
        }
        toau_diff_pair(diff, i, (uint32_t)entry->value.number - 1);
        entry->value.number = 0;
    }
    for (uint32_t i = 0; i < keys.count && !diff->no_memory; i++)
        if (keys.entries[i].value.number)
            toau_diff_only(diff, diff->b, (uint32_t)keys.entries[i].value.number - 1, diff->options->name_b);
    builder_fini(&key);
    map_fini(&seen_b);
    map_fini(&seen_a);
    map_fini(&keys);
}

cy_err toau_diff(const struct toau_diff_options *options, const struct program *a, const struct program *b,
                 struct builder *out, uint32_t *count_out)
{
    struct toau_diff diff = {.options = options, .a = a, .b = b, .out = out};
    toau_diff_table(&diff, "MODULES", a->module_count, b->module_count, toau_diff_text_module);
    toau_diff_table(&diff, "RECORDS", a->record_count, b->record_count, toau_diff_text_record);
    toau_diff_functions(&diff);
    diff.places = diff.count == 0; /* the first difference that matters is rarely one of places */
    if (diff.places) toau_diff_functions(&diff);
    *count_out = diff.count;
    return diff.no_memory ? CY_ERR(NO_MEMORY) : builder_error(out);
}

/* -- bytes ----------------------------------------------------------------------------------------------- */

static const char *const toau_diff_sections[TOAU_SECTION_END] = {
    [TOAU_SECTION_STRINGS] = "STRINGS", [TOAU_SECTION_CONSTANTS] = "CONSTANTS",
    [TOAU_SECTION_NATIVES] = "NATIVES", [TOAU_SECTION_CAPABILITIES] = "CAPABILITIES",
    [TOAU_SECTION_RECORDS] = "RECORDS", [TOAU_SECTION_MODULES] = "MODULES",
    [TOAU_SECTION_GLOBALS] = "GLOBALS", [TOAU_SECTION_FUNCTIONS] = "FUNCTIONS",
    [TOAU_SECTION_LINES] = "LINES",
};

/* The first string of two STRINGS sections that differs, for the reader's eyes. */
static void toau_diff_put_strings(cy_bytes a, cy_bytes b, struct builder *out)
{
    struct byte_reader left = {.input = a}, right = {.input = b};
    (void)byte_reader_u32(&left), (void)byte_reader_u32(&right);
    for (uint32_t i = 0; !left.failed && !right.failed; i++) {
        cy_bytes one = byte_reader_take(&left, byte_reader_u32(&left));
        cy_bytes other = byte_reader_take(&right, byte_reader_u32(&right));
        if (cy_bytes_equal(one, other) && left.failed == right.failed) continue;
        builder_printf(out, ", string %u: ", i);
        rpn_write_string(one, out);
        builder_text(out, " | ");
        rpn_write_string(other, out);
        return;
    }
}

/* Lengths in headers follow from what is behind them, so the first difference that counts is in a section's content;
 * the file was read once already, so sections are where they should be. */
void toau_diff_bytes(cy_bytes a, cy_bytes b, bool korean, struct builder *out)
{
    struct byte_reader left = {.input = a, .offset = TOAU_HEADER_BYTES},
                       right = {.input = b, .offset = TOAU_HEADER_BYTES};
    for (uint8_t id = 1; id < TOAU_SECTION_END && !left.failed && !right.failed; id++) {
        (void)byte_reader_u8(&left), (void)byte_reader_u8(&right);
        uint32_t bytes_a = byte_reader_u32(&left), bytes_b = byte_reader_u32(&right);
        size_t start = left.offset;
        cy_bytes content_a = byte_reader_take(&left, bytes_a), content_b = byte_reader_take(&right, bytes_b);
        if (cy_bytes_equal(content_a, content_b)) continue;
        size_t at = 0;
        while (at < content_a.count && at < content_b.count && content_a.data[at] == content_b.data[at]) at++;
        builder_printf(out,
                       korean ? "바이트: 구역 %s에서 처음 다름, 파일 위치 %zu"
                              : "bytes: section %s first, at %zu of the file",
                       toau_diff_sections[id], start + at);
        if (id == TOAU_SECTION_STRINGS) toau_diff_put_strings(content_a, content_b, out);
        builder_u8(out, '\n');
        return;
    }
}
