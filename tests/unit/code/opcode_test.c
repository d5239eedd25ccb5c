/* SPDX-License-Identifier: MIT
 *
 * tests/unit/code/opcode_test.c: pins the numbers, names and operand layouts of opcodes, which are the file
 * format, and proves that rows are consistent and that decoding never reads outside.
 */
#include "vm/code/opcode.h"

#include <check.h>
#include <stdio.h>

/* Written once, from the table as it was on the first day. A row may be added; a line that changes breaks
 * every file. */
static const struct {
    uint8_t number;
    const char *name;
    const char *operands; /* kind and bytes of each */
} opcode_test_pinned[] = {
    {0x01, "NIL", ""},
    {0x02, "TRUE", ""},
    {0x03, "FALSE", ""},
    {0x04, "INT8", "immediate1"},
    {0x05, "CONST", "constant2"},
    {0x06, "CONST_WIDE", "constant4"},
    {0x07, "ABSENT", ""},
    {0x08, "POP", ""},
    {0x09, "DUP", ""},
    {0x10, "LOCAL_GET", "slot1"},
    {0x11, "LOCAL_GET_WIDE", "slot2"},
    {0x12, "LOCAL_SET", "slot1"},
    {0x13, "LOCAL_SET_WIDE", "slot2"},
    {0x14, "LOCAL_TAKE", "slot1"},
    {0x15, "LOCAL_TAKE_WIDE", "slot2"},
    {0x16, "LOCAL_ADD", "slot2"},
    {0x17, "LOCAL_APPEND", "slot2"},
    {0x18, "LOCAL_PATH_SET", "slot2 count1"},
    {0x19, "LOCAL_DEFAULT", "slot2 forward4"},
    {0x1a, "CAPTURE_GET", "capture2"},
    {0x1b, "SELF", ""},
    {0x1c, "LOCAL_PATH_ADD", "slot2 count1"},
    {0x1d, "LOCAL_PATH_APPEND", "slot2 count1"},
    {0x20, "GLOBAL_GET", "global2"},
    {0x21, "GLOBAL_GET_WIDE", "global4"},
    {0x22, "GLOBAL_SET", "global2"},
    {0x23, "GLOBAL_SET_WIDE", "global4"},
    {0x24, "GLOBAL_ADD", "global4"},
    {0x25, "GLOBAL_APPEND", "global4"},
    {0x26, "GLOBAL_PATH_SET", "global4 count1"},
    {0x27, "GLOBAL_PATH_ADD", "global4 count1"},
    {0x28, "GLOBAL_PATH_APPEND", "global4 count1"},
    {0x30, "ADD", ""},
    {0x31, "SUB", ""},
    {0x32, "MUL", ""},
    {0x33, "DIV", ""},
    {0x34, "MOD", ""},
    {0x35, "NEG", ""},
    {0x36, "BIT_AND", ""},
    {0x37, "BIT_OR", ""},
    {0x38, "BIT_XOR", ""},
    {0x39, "BIT_NOT", ""},
    {0x3a, "SHIFT_LEFT", ""},
    {0x3b, "SHIFT_RIGHT", ""},
    {0x40, "EQ", ""},
    {0x41, "NE", ""},
    {0x42, "LT", ""},
    {0x43, "LE", ""},
    {0x44, "GT", ""},
    {0x45, "GE", ""},
    {0x46, "NOT", ""},
    {0x47, "IS_KIND", "kind1"},
    {0x48, "IS_RECORD", "record2"},
    {0x49, "CHECK_KIND", "kind1"},
    {0x4a, "CHECK_RECORD", "record2"},
    {0x50, "JUMP", "forward4"},
    {0x51, "JUMP_IF_FALSE", "forward4"},
    {0x52, "JUMP_IF_TRUE", "forward4"},
    {0x53, "LOOP", "backward4"},
    {0x54, "CALL", "count1"},
    {0x55, "CALL_FUNCTION", "function2 count1"},
    {0x56, "CALL_FUNCTION_WIDE", "function4 count1"},
    {0x57, "NATIVE", "native2 count1"},
    {0x58, "NATIVE_FUNCTION", "native2"},
    {0x59, "CLOSURE", "function2"},
    {0x5a, "CLOSURE_WIDE", "function4"},
    {0x5b, "RETURN", ""},
    {0x5c, "SPAWN", "count1"},
    {0x60, "INTLOOP_BEGIN", ""},
    {0x61, "INTLOOP_NEXT", "slot2 forward4"},
    {0x62, "INTLOOP_END", ""},
    {0x63, "ITER_BEGIN", ""},
    {0x64, "ITER_NEXT", "slot2 forward4"},
    {0x65, "ITER_NEXT_PAIR", "slot2 slot2 forward4"},
    {0x66, "ITER_END", ""},
    {0x68, "TRY_BEGIN", "forward4"},
    {0x69, "TRY_END", ""},
    {0x6a, "DEFER_BEGIN", "forward4"},
    {0x6b, "DEFER_END", ""},
    {0x6c, "DEFER_ATTACH", ""},
    {0x6d, "RETHROW", ""},
    {0x6e, "THROW", ""},
    {0x70, "LIST", "count2"},
    {0x71, "MAP", "count2"},
    {0x72, "RECORD", "record2 count1"},
    {0x73, "RANGE", ""},
    {0x74, "REF", ""},
    {0x75, "INDEX_GET", ""},
    {0x76, "FIELD_GET", "name2"},
    {0x77, "FIELD_GET_WIDE", "name4"},
    {0x78, "TEXT", "count1"},
};

static const char *const opcode_test_kinds[] = {
    [OPERAND_COUNT] = "count",       [OPERAND_IMMEDIATE] = "immediate", [OPERAND_SLOT] = "slot",
    [OPERAND_CAPTURE] = "capture",   [OPERAND_CONSTANT] = "constant",   [OPERAND_NAME] = "name",
    [OPERAND_GLOBAL] = "global",     [OPERAND_FUNCTION] = "function",   [OPERAND_NATIVE] = "native",
    [OPERAND_RECORD] = "record",     [OPERAND_KIND] = "kind",           [OPERAND_FORWARD] = "forward",
    [OPERAND_BACKWARD] = "backward",
};

static void opcode_test_operands(const struct format_row *format, char *text, size_t bytes_max)
{
    size_t at = 0;
    text[0] = 0;
    for (uint8_t i = 0; i < format->operand_count; i++)
        at += (size_t)snprintf(text + at, bytes_max - at, "%s%s%u", i ? " " : "",
                               opcode_test_kinds[format->operands[i].kind], format->operands[i].bytes);
}

START_TEST(test_numbers_names_and_operands_are_pinned)
{
    size_t rows = 0;
    for (unsigned number = 0; number < 256; number++) rows += opcode_row((uint8_t)number)->name != NULL;
    ck_assert_uint_eq(rows, CY_COUNT_OF(opcode_test_pinned)); /* a new row gets its line here */
    for (size_t i = 0; i < CY_COUNT_OF(opcode_test_pinned); i++) {
        const struct opcode_row *row = opcode_row(opcode_test_pinned[i].number);
        char operands[64];
        ck_assert_ptr_nonnull(row->name);
        ck_assert_str_eq(row->name, opcode_test_pinned[i].name);
        ck_assert_uint_eq(row->number, opcode_test_pinned[i].number);
        opcode_test_operands(format_row(row->format), operands, sizeof operands);
        ck_assert_str_eq(operands, opcode_test_pinned[i].operands);
        ck_assert_ptr_eq(opcode_find(cy_bytes_from_text(row->name)), row);
    }
    ck_assert_ptr_null(opcode_row(0)->name);
    ck_assert_ptr_null(opcode_find(CY_BYTES("FROB")));
}
END_TEST

START_TEST(test_kind_numbers_are_pinned)
{
    static const char *const words[] = {"nil",   "bool",   "int",      "float", "str",    "list",  "map",
                                        "range", "record", "function", "ref",   "handle", "opaque"};
    ck_assert_uint_eq(KIND_COUNT, CY_COUNT_OF(words));
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        enum value_kind kind;
        ck_assert_str_eq(kind_name((enum value_kind)i, false), words[i]);
        ck_assert(kind_find(cy_bytes_from_text(words[i]), &kind) && (unsigned)kind == i);
        ck_assert(kind_find(cy_bytes_from_text(kind_name((enum value_kind)i, true)), &kind) &&
                  (unsigned)kind == i);
    }
    enum value_kind kind;
    ck_assert(!kind_find(CY_BYTES("frob"), &kind));
}
END_TEST

START_TEST(test_rows_are_consistent)
{
    for (unsigned number = 0; number < 256; number++) {
        const struct opcode_row *row = opcode_row((uint8_t)number);
        if (!row->name) continue;
        const struct format_row *format = format_row(row->format);
        unsigned bytes = 0, targets = 0;
        for (uint8_t i = 0; i < format->operand_count; i++) {
            bytes += format->operands[i].bytes;
            uint8_t kind = format->operands[i].kind;
            if (kind == OPERAND_FORWARD || kind == OPERAND_BACKWARD) {
                targets++;
                ck_assert_uint_eq(format->operands[i].bytes, 4); /* jumps are never re-sized */
            }
        }
        ck_assert_uint_eq(bytes, format->operand_bytes);
        if (row->flags & (OPF_EDGE_VALUE | OPF_EDGE_PENDING)) ck_assert_uint_eq(targets, 1);
        const struct opcode_row *narrow = opcode_narrow(row);
        ck_assert_int_eq(narrow != NULL, (row->flags & OPF_WIDE) != 0);
        if (!narrow) continue;
        const struct format_row *narrow_format = format_row(narrow->format);
        ck_assert_ptr_eq(opcode_wide(narrow), row);
        ck_assert_uint_eq(narrow_format->operand_count, format->operand_count);
        ck_assert_uint_lt(narrow_format->operands[0].bytes, format->operands[0].bytes);
        ck_assert_uint_eq(narrow->flags | OPF_WIDE, row->flags);
    }
}
END_TEST

START_TEST(test_pops_and_pushes_follow_the_operands)
{
    struct instruction call = {.opcode = OP_CALL, .operands = {3}};
    ck_assert_uint_eq(opcode_pops(&call), 4);
    ck_assert_uint_eq(opcode_pushes(&call), 1);
    struct instruction map = {.opcode = OP_MAP, .operands = {65535}};
    ck_assert_uint_eq(opcode_pops(&map), 131070);
    struct instruction path = {.opcode = OP_GLOBAL_PATH_SET, .operands = {7, 255}};
    ck_assert_uint_eq(opcode_pops(&path), 256);
    struct instruction dup = {.opcode = OP_DUP};
    ck_assert_uint_eq(opcode_pushes(&dup), 2);
}
END_TEST

START_TEST(test_decode_reads_little_endian_and_signed)
{
    static const uint8_t code[] = {OP_ITER_NEXT_PAIR, 1, 2, 3, 4, 5, 6, 7, 8, OP_INT8, 0x80, OP_RETURN};
    struct instruction instruction;
    ck_assert(opcode_decode(cy_bytes_of(code, sizeof code), 0, &instruction));
    ck_assert_int_eq(instruction.operands[0], 0x0201);
    ck_assert_int_eq(instruction.operands[1], 0x0403);
    ck_assert_int_eq(instruction.operands[2], 0x08070605);
    ck_assert_uint_eq(instruction.next_offset, 9);
    ck_assert(opcode_decode(cy_bytes_of(code, sizeof code), 9, &instruction));
    ck_assert_int_eq(instruction.operands[0], -128);
    ck_assert(opcode_decode(cy_bytes_of(code, sizeof code), 11, &instruction));
    ck_assert_uint_eq(instruction.next_offset, sizeof code);
    ck_assert(!opcode_decode(cy_bytes_of(code, sizeof code), 12, &instruction));
    ck_assert(!opcode_decode(cy_bytes_of(code, sizeof code), UINT32_MAX, &instruction));
}
END_TEST

/* Each opcode, cut at each length: refused until the last operand byte is there. The bytes lie at the end of
 * an allocation of their own, so that a sanitizer sees a read past it. */
START_TEST(test_decode_never_reads_past_the_end)
{
    for (unsigned number = 0; number < 256; number++) {
        const struct opcode_row *row = opcode_row((uint8_t)number);
        uint8_t needed = row->name ? format_row(row->format)->operand_bytes + 1 : 0;
        for (uint8_t count = 1; count <= 12; count++) {
            uint8_t code[count];
            memset(code, 0xff, count);
            code[0] = (uint8_t)number;
            struct instruction instruction;
            bool expected = row->name && count >= needed;
            ck_assert_int_eq(opcode_decode(cy_bytes_of(code, count), 0, &instruction), expected);
        }
    }
}
END_TEST

Suite *unit_suite_code_opcode(void);
Suite *unit_suite_code_opcode(void)
{
    Suite *suite = suite_create("code/opcode");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_numbers_names_and_operands_are_pinned);
    tcase_add_test(tests, test_kind_numbers_are_pinned);
    tcase_add_test(tests, test_rows_are_consistent);
    tcase_add_test(tests, test_pops_and_pushes_follow_the_operands);
    tcase_add_test(tests, test_decode_reads_little_endian_and_signed);
    tcase_add_test(tests, test_decode_never_reads_past_the_end);
    suite_add_tcase(suite, tests);
    return suite;
}
