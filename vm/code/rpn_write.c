/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_write.c: a program as postfix words.
 *
 * In:   a verified program.
 * Out:  UTF-8 text, LF line ends, from which the same file can be made again.
 * Invariant: what is left out (numbers of strings, constants and natives, the WIDE in a name, capabilities,
 *            stack heights) is what canonical.c computes; everything else is written.
 * Not here: reading it back.
 *
 *      text        = "toau 1" { module } { record } { function }
 *      module      = "module" NUMBER name "file" name [ "init" FUNCTION ]
 *                    { "global" GLOBAL name } { "export" name ( FUNCTION | GLOBAL | RECORD ) }
 *      record      = "record" RECORD "module" NUMBER name { "field" name [ "of" ( KIND | RECORD ) ] }
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
#include "vm/code/toau.h"

#include <math.h>

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

static void rpn_write_string(cy_bytes text, struct builder *out)
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

static void rpn_write_constant(const struct program *program, const struct constant *constant,
                               struct builder *out)
{
    switch (constant->kind) {
    case CONSTANT_INT: builder_i64_text(out, constant->as.i); return;
    case CONSTANT_FLOAT: rpn_write_float(constant->as.f, out); return;
    case CONSTANT_STR: rpn_write_string(program_string(program, constant->as.string), out); return;
    }
    UNREACHABLE();
}

/* -- code ---------------------------------------------------------------------------------------------- */

/* labels[offset] numbers the targets of jumps from 1 in code order; 0 elsewhere. */
static void rpn_write_number_labels(const struct function *function, uint32_t *labels)
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
static void rpn_write_operand(const struct program *program, const uint32_t *labels, enum operand_kind kind,
                              int64_t operand, cy_bytes *comment_out, struct builder *out)
{
    switch (kind) {
    case OPERAND_COUNT:
    case OPERAND_IMMEDIATE:
    case OPERAND_SLOT:
    case OPERAND_CAPTURE: builder_i64_text(out, operand); break;
    case OPERAND_CONSTANT:
    case OPERAND_NAME: rpn_write_constant(program, &program->constants[operand], out); break;
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
    case OPERAND_NATIVE: builder_bytes(out, program_string(program, program->natives[operand].name)); break;
    case OPERAND_KIND: builder_text(out, kind_name((enum value_kind)operand, false)); break;
    case OPERAND_FORWARD:
    case OPERAND_BACKWARD: builder_printf(out, "L%u", labels[operand]); break;
    case OPERAND_NONE: UNREACHABLE();
    }
    builder_u8(out, ' ');
}

static void rpn_write_instruction(const struct program *program, const uint32_t *labels,
                                  const struct instruction *instruction, struct builder *out)
{
    const struct opcode_row *row = opcode_row(instruction->opcode);
    const struct opcode_row *narrow = opcode_narrow(row);
    const struct format_row *format = format_row(row->format);
    cy_bytes comment = CY_BYTES_NONE;
    builder_text(out, "    ");
    for (uint8_t i = 0; i < format->operand_count; i++)
        rpn_write_operand(program, labels, (enum operand_kind)format->operands[i].kind,
                          instruction->operands[i], &comment, out);
    builder_text(out, narrow ? narrow->name : row->name);
    if (comment.count) builder_printf(out, " # %.*s", CY_BYTES_ARG(comment));
    builder_text(out, "\n");
}

static void rpn_write_code(const struct program *program, const struct function *function,
                           const uint32_t *labels, struct builder *out)
{
    cy_bytes code = cy_bytes_of(function->code, function->code_bytes);
    struct instruction instruction;
    uint32_t line = 0;
    for (uint32_t offset = 0; offset < code.count; offset = instruction.next_offset) {
        bool decoded = opcode_decode(code, offset, &instruction);
        CHECK(decoded);
        if (labels[offset]) builder_printf(out, "L%u:\n", labels[offset]);
        if (line < function->line_count && function->lines[line].offset == offset) {
            builder_printf(out, "    @%u:%u\n", function->lines[line].line, function->lines[line].column);
            line++;
        }
        rpn_write_instruction(program, labels, &instruction, out);
    }
    CHECK(line == function->line_count);
}

static cy_err rpn_write_function(const struct program *program, uint32_t index, struct builder *out)
{
    const struct function *function = &program->functions[index];
    builder_printf(out, "function f%u ", index);
    rpn_write_string(program_string(program, function->name), out);
    builder_printf(out, " module %u params %u required %u locals %u", function->module, function->param_count,
                   function->required_count, function->local_count);
    if (function->parent != PROGRAM_NO_INDEX) builder_printf(out, " parent f%u", function->parent);
    for (uint32_t i = 0; i < function->capture_count; i++)
        builder_printf(out, " capture %s %u", function->captures[i].from_parent_local ? "local" : "outer",
                       function->captures[i].index);
    builder_text(out, "\n");

    uint32_t *labels = mem_alloc_zeroed((size_t)function->code_bytes * sizeof *labels);
    if (!labels) return CY_ERR(NO_MEMORY);
    rpn_write_number_labels(function, labels);
    rpn_write_code(program, function, labels, out);
    mem_free(labels);
    builder_text(out, "end\n");
    return builder_error(out);
}

/* -- tables -------------------------------------------------------------------------------------------- */

static void rpn_write_export(const struct program *program, const struct export_entry *export,
                             struct builder *out)
{
    static const char letters[] = {[EXPORT_FUNCTION] = 'f', [EXPORT_GLOBAL] = 'g', [EXPORT_RECORD] = 'r'};
    CHECK(export->kind >= EXPORT_FUNCTION && export->kind <= EXPORT_RECORD);
    builder_text(out, "    export ");
    rpn_write_string(program_string(program, export->name), out);
    builder_printf(out, " %c%u\n", letters[export->kind], export->index);
}

static void rpn_write_module(const struct program *program, uint32_t index, struct builder *out)
{
    const struct module *module = &program->modules[index];
    builder_printf(out, "module %u ", index);
    rpn_write_string(program_string(program, module->name), out);
    builder_text(out, " file ");
    rpn_write_string(program_string(program, module->file), out);
    if (module->init_function != PROGRAM_NO_INDEX) builder_printf(out, " init f%u", module->init_function);
    builder_text(out, "\n");
    for (uint32_t i = 0; i < module->global_count; i++) {
        builder_printf(out, "    global g%u ", module->global_first + i);
        rpn_write_string(program_string(program, program->globals[module->global_first + i].name), out);
        builder_text(out, "\n");
    }
    for (uint32_t i = 0; i < module->export_count; i++) rpn_write_export(program, &module->exports[i], out);
}

static void rpn_write_record(const struct program *program, uint32_t index, struct builder *out)
{
    const struct record_type *record = &program->records[index];
    builder_printf(out, "record r%u module %u ", index, record->module);
    rpn_write_string(program_string(program, record->name), out);
    for (uint32_t i = 0; i < record->field_count; i++) {
        builder_text(out, " field ");
        const struct record_field *field = &record->fields[i];
        rpn_write_string(program_string(program, field->name), out);
        if (field->record != PROGRAM_NO_INDEX)
            builder_printf(out, " of r%u", field->record);
        else if (field->kind != RECORD_FIELD_ANY)
            builder_printf(out, " of %s", kind_name((enum value_kind)field->kind, false));
    }
    builder_text(out, "\n");
}

cy_err rpn_write(const struct program *program, uint32_t function, struct builder *out)
{
    if (function != PROGRAM_NO_INDEX) {
        CHECK(function < program->function_count);
        return rpn_write_function(program, function, out);
    }
    builder_printf(out, "toau %u\n", TOAU_VERSION);
    for (uint32_t i = 0; i < program->module_count; i++) rpn_write_module(program, i, out);
    for (uint32_t i = 0; i < program->record_count; i++) rpn_write_record(program, i, out);
    for (uint32_t i = 0; i < program->function_count; i++) CY_TRY(rpn_write_function(program, i, out));
    return builder_error(out);
}
