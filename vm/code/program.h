/* SPDX-License-Identifier: MIT
 *
 * vm/code/program.h: a whole program in memory, as the file has it.
 *
 * In:   the compiler or toau_read.
 * Out:  what verify proves and prepare turns into running code.
 * Invariant: everything hangs from `arena`; after building, nothing changes. Only what verify accepted may
 *            be run.
 * Order:  functions are in module order, a function before the functions inside it. Modules come after the
 *         modules they import; main is the last. Pools are in first-use order (docs/TOAU.md).
 */
#ifndef CY_CODE_PROGRAM_H
#define CY_CODE_PROGRAM_H

#include "vm/base/arena.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"

#define PROGRAM_NO_INDEX UINT32_MAX

/* The one NaN that files hold. */
#define CONSTANT_NAN_BITS UINT64_C(0x7ff8000000000000)

enum constant_kind { CONSTANT_INT = 1, CONSTANT_FLOAT = 2, CONSTANT_STR = 3 };
struct constant {
    uint8_t kind; /* enum constant_kind */
    union {
        int64_t i;
        double f; /* compared by bits: 0.0 and -0.0 are two constants; every NaN is the one quiet NaN */
        uint32_t string;
    } as;
};

struct native_import {
    uint32_t name; /* string: a row of native.def by its English name */
};

/* A set of kinds, one bit each. Every kind listed is written as ANY, so that a set has one form. */
#define RECORD_FIELD_ANY UINT32_MAX
#define RECORD_FIELD_KIND(kind) (1u << (kind))
/* What the field holds is an invariant: RECORD and every write inside a record prove it, so code that reads the
 * field may rely on it. */
struct record_field {
    uint32_t name;  /* string */
    uint32_t kinds; /* 1 << enum value_kind for each it may hold, or RECORD_FIELD_ANY */
    uint32_t
        record; /* the only type of record, when kind RECORD is among them; PROGRAM_NO_INDEX: any, or none */
};
struct record_type {
    uint32_t name;        /* string */
    uint32_t module;      /* where it is declared */
    uint32_t field_count; /* 0..LIMIT_RECORD_FIELDS */
    struct record_field *fields;
};

enum export_kind { EXPORT_FUNCTION = 1, EXPORT_GLOBAL = 2, EXPORT_RECORD = 3 };
struct export_entry {
    uint32_t name; /* string */
    uint8_t kind;  /* enum export_kind */
    uint32_t index;
};
struct module {
    /* string: import path relative to main's folder without ending; "std:http" for std; main's is its file's */
    uint32_t name;
    uint32_t file;          /* string: file name as messages show it; relative, NFC, '/' */
    uint32_t init_function; /* runs the initialisers, 0 parameters; PROGRAM_NO_INDEX when there are none */
    uint32_t global_first;  /* module variables [global_first, global_first + global_count) */
    uint32_t global_count;
    uint32_t function_first;
    uint32_t function_count;
    uint32_t export_count;
    struct export_entry *exports; /* in source order, no name twice */
};
struct global {
    uint32_t name; /* string */
};

struct capture {
    bool from_parent_local; /* else from the parent's captures */
    uint16_t index;
};
struct line_entry {
    uint32_t offset; /* of an instruction; strictly rising */
    uint32_t line;   /* from 1 */
    uint32_t column; /* from 1, in code points */
};
struct function {
    uint32_t name; /* string; "" for a function without a name */
    uint32_t module;
    uint32_t parent; /* the function it is written in, < its own index; PROGRAM_NO_INDEX at module level */
    uint8_t param_count;
    uint8_t required_count; /* <= param_count */
    uint16_t local_count;   /* parameters included */
    uint16_t stack_max;     /* exact */
    uint16_t capture_count; /* 0 at module level */
    struct capture *captures;
    uint32_t code_bytes;
    uint8_t *code;
    uint32_t line_count;
    struct line_entry *lines;
};

struct program {
    struct arena arena;
    uint32_t string_count;
    cy_bytes *strings;
    uint32_t constant_count;
    struct constant *constants;
    uint32_t native_count;
    struct native_import *natives;
    uint32_t capabilities; /* bits of enum capability; equals what the natives need */
    uint32_t record_count;
    struct record_type *records;
    uint32_t module_count;
    struct module *modules;
    uint32_t global_count;
    struct global *globals;
    uint32_t function_count;
    struct function *functions;
};

CY_NODISCARD cy_err program_new(struct program **program_out);
void program_free(struct program **program);

static inline cy_bytes program_string(const struct program *program, uint32_t index)
{
    return program->strings[index];
}
/* What `module` exports under that name, of whatever kind; NULL when nothing. Main is the last module. */
const struct export_entry *program_find_export(const struct program *program, uint32_t module, cy_bytes name);
/* The place of the instruction at or before `offset`; false when the function has no lines. */
CY_NODISCARD bool function_place(const struct function *function, uint32_t offset, uint32_t *line_out,
                                 uint32_t *column_out);
/* What the imported natives need, as bits of enum capability. Unknown names count nothing. */
uint32_t program_capabilities(const struct program *program);

/* Brings a program into the one form that verify demands, so that the emitter may intern as it goes and
 * always use WIDE forms: strings, constants and natives without duplicates or unused entries, in first-use
 * order; NaNs the one NaN; small ints as INT8; operands renumbered and in their shortest form; jump targets
 * and line tables follow, the latter without repetitions; stack_max and capabilities computed. Idempotent.
 * BAD_FORMAT when an index, a jump or a line points nowhere; the program is then good for program_free only. */
CY_NODISCARD cy_err program_canonicalise(struct program *program);

#endif
