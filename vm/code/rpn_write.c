/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_write.c: a program as postfix words.
 *
 * In:   a verified program.
 * Out:  UTF-8 text, LF line ends, from which the same file can be made again.
 * Invariant: what is left out (numbers of strings, constants and natives, the WIDE in a name, capabilities,
 *            stack heights) is what canonical.c computes; everything else is written.
 * Not here: reading it back (rpn_read.c), which takes more than this: docs/RPN.md.
 *
 *      Every word has two spellings (rpn_word.def); here stand the English ones.
 *
 *      text        = "toau 1" { module } { record } { function }
 *      module      = "module" NUMBER name "file" name [ "init" FUNCTION ]
 *                    { "global" GLOBAL name } { "export" name ( FUNCTION | GLOBAL | RECORD ) }
 *      record      = "record" RECORD "module" NUMBER name { "field" name { "of" ( KIND | RECORD ) } }
 *      function    = "function" FUNCTION name "module" NUMBER
 *                    "params" NUMBER "required" NUMBER "locals" NUMBER
 *                    [ "parent" FUNCTION ] { "capture" ( "local" | "outer" ) NUMBER }
 *                    { label | place | instruction } "end"
 *      label       = LABEL ":"               its own line, before the instruction it marks
 *      place       = "@" LINE ":" COLUMN     what follows comes from there
 *      instruction = { operand } OPCODE      its name in opcode.def; of two twins the narrow one's
 *      operand     = NUMBER                  a count, a signed byte, a local, a capture, an int constant
 *                  | FLOAT                   in hex, as C's %a: 0x1.8p+1; inf, -inf, nan
 *                  | STRING                  a str constant: UTF-8 as it is, else \" \\ \n \r \t \xNN
 *                  | FUNCTION | GLOBAL | RECORD | LABEL | a native's English name | a kind's English name
 *      name        = STRING
 *      FUNCTION, GLOBAL, RECORD, LABEL = "f", "g", "r", "L" and a number. Labels count from 1 in each
 *                    function, in code order; the others are the file's indexes.
 *      "#" begins a comment up to the end of the line.
 *
 *      function f2 "handle" module 0 params 1 required 1 locals 2
 *          @12:5
 *          0 LOCAL_GET
 *          "host" FIELD_GET
 *          L1 JUMP_IF_FALSE
 */
#include "vm/code/rpn.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/opcode.h"
#include "vm/code/rpn_word.h"
#include "vm/code/rpn_write_internal.h"
#include "vm/code/toau.h"

#include <math.h>

/* Where the text goes, and in which words. */
struct rpn_write {
    const struct program *program;
    struct builder *out;
    bool korean;
};

/* -- words --------------------------------------------------------------------------------------------- */

static void rpn_write_hex_bytes(cy_bytes bytes, struct builder *out)
{
    for (size_t i = 0; i < bytes.count; i++) builder_printf(out, "\\x%02x", bytes.data[i]);
}

/* What could break the line, the terminal or the reading order is written in hex. */
static bool rpn_write_is_hidden(uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || code_point == 0x2028 ||
           code_point == 0x2029 || text_is_bidi_control(code_point);
}

/* A name in a comment must not end it, nor be refused by the reader. */
static bool rpn_write_is_shown(cy_bytes name)
{
    for (size_t at = 0, length; at < name.count; at += length) {
        uint32_t code_point;
        if (!text_decode(cy_bytes_skip(name, at), &code_point, &length)) return false;
        if (rpn_write_is_hidden(code_point)) return false;
    }
    return name.count > 0;
}

void rpn_write_string(cy_bytes text, struct builder *out)
{
    builder_u8(out, '"');
    for (size_t at = 0, length; at < text.count; at += length) {
        uint32_t code_point;
        bool valid = text_decode(cy_bytes_skip(text, at), &code_point, &length);
        cy_bytes bytes = cy_bytes_slice(text, at, at + length);
        if (!valid)
            rpn_write_hex_bytes(bytes, out);
        else if (code_point == '\n')
            builder_text(out, "\\n");
        else if (code_point == '\r')
            builder_text(out, "\\r");
        else if (code_point == '\t')
            builder_text(out, "\\t");
        else if (code_point == '"' || code_point == '\\')
            builder_printf(out, "\\%c", (char)code_point);
        else if (rpn_write_is_hidden(code_point))
            rpn_write_hex_bytes(bytes, out);
        else
            builder_bytes(out, bytes);
    }
    builder_u8(out, '"');
}

/* As glibc's %a; C libraries differ on subnormals, and the text must not. */
static void rpn_write_float(double number, struct builder *out)
{
    if (isnan(number) || isinf(number)) {
        builder_text(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
        return;
    }
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    unsigned biased_exponent = bits >> 52 & 0x7ff;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = biased_exponent ? (int)biased_exponent - 1023 : fraction ? -1022 : 0;
    builder_printf(out, "%s0x%c", bits >> 63 ? "-" : "", biased_exponent ? '1' : '0');
    if (fraction) {
        int digits = 13;
        for (; (fraction & 15) == 0; fraction >>= 4) digits--;
        builder_printf(out, ".%0*llx", digits, (unsigned long long)fraction);
    }
    builder_printf(out, "p%+d", exponent);
}

static void rpn_write_name(const struct rpn_write *write, uint32_t string)
{
    rpn_write_string(program_string(write->program, string), write->out);
}

static void rpn_write_constant(const struct rpn_write *write, const struct constant *constant)
{
    switch (constant->kind) {
    case CONSTANT_INT: builder_i64_text(write->out, constant->as.i); return;
    case CONSTANT_FLOAT: rpn_write_float(constant->as.f, write->out); return;
    case CONSTANT_STR: rpn_write_name(write, constant->as.string); return;
    }
    UNREACHABLE();
}

static void rpn_write_word(const struct rpn_write *write, const char *before, enum rpn_word word)
{
    builder_printf(write->out, "%s%s", before, rpn_word_text(word, write->korean));
}

/* -- code ---------------------------------------------------------------------------------------------- */

void rpn_write_number_labels(const struct function *function, uint32_t *labels)
{
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction;
    for (uint32_t offset = 0; offset < code.count; offset = instruction.next_offset) {
        bool decoded = opcode_decode(code, offset, &instruction);
        CHECK(decoded);
        const struct format_row *format = format_row(opcode_row(instruction.opcode)->format);
        for (uint8_t i = 0; i < format->operand_count; i++) {
            uint8_t kind = format->operands[i].kind;
            if (kind != OPERAND_FORWARD && kind != OPERAND_BACKWARD) continue;
            CHECK(instruction.operands[i] < function->code_bytes);
            labels[instruction.operands[i]] = 1;
        }
    }
    uint32_t count = 0;
    for (uint32_t offset = 0; offset < code.count; offset++)
        if (labels[offset]) labels[offset] = ++count;
}

/* Writes an operand; what it names besides, for the reader's eyes, goes to *comment_out. */
static void rpn_write_operand(const struct rpn_write *write, const uint32_t *labels, enum operand_kind kind,
                              int64_t operand, cy_bytes *comment_out)
{
    const struct program *program = write->program;
    struct builder *out = write->out;
    switch (kind) {
    case OPERAND_COUNT:
    case OPERAND_IMMEDIATE:
    case OPERAND_SLOT:
    case OPERAND_CAPTURE: builder_i64_text(out, operand); break;
    case OPERAND_CONSTANT:
    case OPERAND_NAME: rpn_write_constant(write, &program->constants[operand]); break;
    case OPERAND_GLOBAL:
        builder_printf(out, "g%u", (unsigned)operand);
        *comment_out = program_string(program, program->globals[operand].name);
        break;
    case OPERAND_FUNCTION:
        builder_printf(out, "f%u", (unsigned)operand);
        *comment_out = program_string(program, program->functions[operand].name);
        break;
    case OPERAND_RECORD:
        builder_printf(out, "r%u", (unsigned)operand);
        *comment_out = program_string(program, program->records[operand].name);
        break;
    case OPERAND_NATIVE: {
        const struct native_row *row =
            native_row_find(program_string(program, program->natives[operand].name));
        CHECK(row); /* the program is verified */
        rpn_native_text(row, write->korean, out);
        break;
    }
    case OPERAND_KIND: builder_text(out, kind_name((enum value_kind)operand, write->korean)); break;
    case OPERAND_FORWARD:
    case OPERAND_BACKWARD: builder_printf(out, "L%u", labels[operand]); break;
    case OPERAND_NONE: UNREACHABLE();
    }
    builder_u8(out, ' ');
}

static void rpn_write_instruction(const struct rpn_write *write, const uint32_t *labels,
                                  const struct instruction *instruction)
{
    const struct opcode_row *row = opcode_row(instruction->opcode);
    const struct format_row *format = format_row(row->format);
    cy_bytes comment = CY_BYTES_NONE;
    for (uint8_t i = 0; i < format->operand_count; i++)
        rpn_write_operand(write, labels, (enum operand_kind)format->operands[i].kind,
                          instruction->operands[i], &comment);
    builder_text(write->out, rpn_opcode_text(row, write->korean));
    if (rpn_write_is_shown(comment)) builder_printf(write->out, " # %.*s", CY_BYTES_ARG(comment));
}

void rpn_write_one(const struct program *program, const uint32_t *labels,
                   const struct instruction *instruction, struct builder *out)
{
    rpn_write_instruction(&(struct rpn_write){.program = program, .out = out}, labels, instruction);
}

static void rpn_write_code(const struct rpn_write *write, const struct function *function,
                           const uint32_t *labels)
{
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction;
    uint32_t line = 0;
    for (uint32_t offset = 0; offset < code.count; offset = instruction.next_offset) {
        bool decoded = opcode_decode(code, offset, &instruction);
        CHECK(decoded);
        if (labels[offset]) builder_printf(write->out, "L%u:\n", labels[offset]);
        if (line < function->line_count && function->lines[line].offset == offset) {
            builder_printf(write->out, "    @%u:%u\n", function->lines[line].line,
                           function->lines[line].column);
            line++;
        }
        builder_text(write->out, "    ");
        rpn_write_instruction(write, labels, &instruction);
        builder_text(write->out, "\n");
    }
    CHECK(line == function->line_count);
}

static void rpn_write_function_head(const struct rpn_write *write, uint32_t index)
{
    const struct function *function = &write->program->functions[index];
    const struct {
        enum rpn_word word;
        uint32_t number;
    } numbers[] = {{RPN_WORD_MODULE, function->module},
                   {RPN_WORD_PARAMS, function->param_count},
                   {RPN_WORD_REQUIRED, function->required_count},
                   {RPN_WORD_LOCALS, function->local_count}};
    rpn_write_word(write, "", RPN_WORD_FUNCTION);
    builder_printf(write->out, " f%u ", index);
    rpn_write_name(write, function->name);
    for (size_t i = 0; i < CY_COUNT_OF(numbers); i++) {
        rpn_write_word(write, " ", numbers[i].word);
        builder_printf(write->out, " %u", numbers[i].number);
    }
    if (function->parent != PROGRAM_NO_INDEX) {
        rpn_write_word(write, " ", RPN_WORD_PARENT);
        builder_printf(write->out, " f%u", function->parent);
    }
    for (uint32_t i = 0; i < function->capture_count; i++) {
        rpn_write_word(write, " ", RPN_WORD_CAPTURE);
        rpn_write_word(write, " ", function->captures[i].from_parent_local ? RPN_WORD_LOCAL : RPN_WORD_OUTER);
        builder_printf(write->out, " %u", function->captures[i].index);
    }
    builder_text(write->out, "\n");
}

static cy_err rpn_write_function(const struct rpn_write *write, uint32_t index)
{
    const struct function *function = &write->program->functions[index];
    rpn_write_function_head(write, index);
    uint32_t *labels = mem_alloc_zeroed((size_t)function->code_bytes * sizeof *labels);
    if (!labels) return CY_ERR(NO_MEMORY);
    rpn_write_number_labels(function, labels);
    rpn_write_code(write, function, labels);
    mem_free(labels);
    rpn_write_word(write, "", RPN_WORD_END);
    builder_text(write->out, "\n");
    return builder_error(write->out);
}

/* -- tables -------------------------------------------------------------------------------------------- */

static void rpn_write_export(const struct rpn_write *write, const struct export_entry *export)
{
    static const char letters[] = {[EXPORT_FUNCTION] = 'f', [EXPORT_GLOBAL] = 'g', [EXPORT_RECORD] = 'r'};
    CHECK(export->kind >= EXPORT_FUNCTION && export->kind <= EXPORT_RECORD);
    rpn_write_word(write, "    ", RPN_WORD_EXPORT);
    builder_u8(write->out, ' ');
    rpn_write_name(write, export->name);
    builder_printf(write->out, " %c%u\n", letters[export->kind], export->index);
}

static void rpn_write_module(const struct rpn_write *write, uint32_t index)
{
    const struct module *module = &write->program->modules[index];
    rpn_write_word(write, "", RPN_WORD_MODULE);
    builder_printf(write->out, " %u ", index);
    rpn_write_name(write, module->name);
    rpn_write_word(write, " ", RPN_WORD_FILE);
    builder_u8(write->out, ' ');
    rpn_write_name(write, module->file);
    if (module->init_function != PROGRAM_NO_INDEX) {
        rpn_write_word(write, " ", RPN_WORD_INIT);
        builder_printf(write->out, " f%u", module->init_function);
    }
    builder_text(write->out, "\n");
    for (uint32_t i = 0; i < module->global_count; i++) {
        rpn_write_word(write, "    ", RPN_WORD_GLOBAL);
        builder_printf(write->out, " g%u ", module->global_first + i);
        rpn_write_name(write, write->program->globals[module->global_first + i].name);
        builder_text(write->out, "\n");
    }
    for (uint32_t i = 0; i < module->export_count; i++) rpn_write_export(write, &module->exports[i]);
}

static void rpn_write_record(const struct rpn_write *write, uint32_t index)
{
    const struct record_type *record = &write->program->records[index];
    rpn_write_word(write, "", RPN_WORD_RECORD);
    builder_printf(write->out, " r%u", index);
    rpn_write_word(write, " ", RPN_WORD_MODULE);
    builder_printf(write->out, " %u ", record->module);
    rpn_write_name(write, record->name);
    for (uint32_t i = 0; i < record->field_count; i++) {
        const struct record_field *field = &record->fields[i];
        rpn_write_word(write, " ", RPN_WORD_FIELD);
        builder_u8(write->out, ' ');
        rpn_write_name(write, field->name);
        for (unsigned kind = 0; kind < KIND_COUNT && field->kinds != RECORD_FIELD_ANY; kind++) {
            if (!(field->kinds & RECORD_FIELD_KIND(kind))) continue;
            rpn_write_word(write, " ", RPN_WORD_OF);
            if (kind == KIND_RECORD && field->record != PROGRAM_NO_INDEX)
                builder_printf(write->out, " r%u", field->record);
            else
                builder_printf(write->out, " %s", kind_name((enum value_kind)kind, write->korean));
        }
    }
    builder_text(write->out, "\n");
}

static cy_err rpn_write_in(const struct rpn_write *write, uint32_t function)
{
    const struct program *program = write->program;
    if (function != PROGRAM_NO_INDEX) {
        CHECK(function < program->function_count);
        return rpn_write_function(write, function);
    }
    rpn_write_word(write, "", RPN_WORD_TOAU);
    builder_printf(write->out, " %u\n", TOAU_VERSION);
    for (uint32_t i = 0; i < program->module_count; i++) rpn_write_module(write, i);
    for (uint32_t i = 0; i < program->record_count; i++) rpn_write_record(write, i);
    for (uint32_t i = 0; i < program->function_count; i++) CY_TRY(rpn_write_function(write, i));
    return builder_error(write->out);
}

cy_err rpn_write(const struct program *program, uint32_t function, struct builder *out)
{
    return rpn_write_in(&(struct rpn_write){.program = program, .out = out}, function);
}

cy_err rpn_write_korean(const struct program *program, uint32_t function, struct builder *out)
{
    return rpn_write_in(&(struct rpn_write){.program = program, .out = out, .korean = true}, function);
}
