/* SPDX-License-Identifier: MIT
 *
 * vm/code/program.c: making, freeing and asking a program.
 *
 * In:   a program built by the compiler or read from a file.
 * Out:  answers; nothing is changed.
 * Not here: canonical form (canonical.c), proofs (verify.c).
 */
#include "vm/code/program.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"

cy_err program_new(struct program **program_out)
{
    struct program *program = mem_alloc_zeroed(sizeof *program);
    if (!program) return CY_ERR(NO_MEMORY);
    arena_init(&program->arena, 0);
    *program_out = program;
    return CY_OK;
}

void program_free(struct program **program)
{
    if (!*program) return;
    arena_fini(&(*program)->arena);
    mem_free(*program);
    *program = NULL;
}

const struct export_entry *program_find_export(const struct program *program, uint32_t module, cy_bytes name)
{
    CHECK(module < program->module_count);
    const struct module *in = &program->modules[module];
    for (uint32_t i = 0; i < in->export_count; i++)
        if (cy_bytes_equal(program_string(program, in->exports[i].name), name)) return &in->exports[i];
    return NULL;
}

bool function_place(const struct function *function, uint32_t offset, uint32_t *line_out,
                    uint32_t *column_out)
{
    /* The last entry at or before the offset; entries rise strictly. */
    uint32_t low = 0, high = function->line_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (function->lines[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return false;
    *line_out = function->lines[low - 1].line;
    *column_out = function->lines[low - 1].column;
    return true;
}

uint32_t program_capabilities(const struct program *program)
{
    uint32_t capabilities = 0;
    for (uint32_t i = 0; i < program->native_count; i++) {
        const struct native_row *row = native_row_find(program_string(program, program->natives[i].name));
        if (row) capabilities |= row->capability;
    }
    return capabilities;
}
