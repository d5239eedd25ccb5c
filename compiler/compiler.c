/* SPDX-License-Identifier: MIT
 *
 * compiler/compiler.c: the passes in a row.
 *
 *      load and parse ─► resolve, check, fold ─► (warnings) ─► prune ─► emit ─► canonicalise ─► verify
 *
 * Invariant: resolving also looks at what could be read of files with syntax errors, so that grammar and names are
 *            reported in one go. Code is written only when nothing was reported.
 */
#include "compiler/compiler.h"

#include "compiler/lexer.h"
#include "compiler/unit.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/code/verify.h"

void compilation_init(struct compilation *compilation, const struct compile_options *options)
{
    *compilation = (struct compilation){.options = options};
    arena_init(&compilation->arena, 0);
    compilation->arena.exit_when_exhausted = true;
    diag_init(&compilation->diags, &compilation->arena);
    diag_init(&compilation->warnings, &compilation->arena);
    lexer_keywords_init(&compilation->keywords);
    map_init(&compilation->prelude, (hash_seed){0, 0});
    map_init(&compilation->unit_names, (hash_seed){0, 0});
}

void compilation_fini(struct compilation *compilation)
{
    for (uint32_t i = 0; i < compilation->units.count; i++) map_fini(&compilation->units.items[i]->names);
    map_fini(&compilation->keywords);
    map_fini(&compilation->prelude);
    map_fini(&compilation->unit_names);
    arena_fini(&compilation->arena);
}

/* What we made must pass what everybody else's programs must pass. When it does not, that is our bug, said as one. */
static cy_err compiler_prove(struct program *program, bool korean, struct builder *messages)
{
    struct code_failure failure;
    cy_err err = program_canonicalise(program);
    if (cy_is(err, CY_ERR_NO_MEMORY)) mem_exhausted();
    if (!cy_failed(err)) err = verify_program(program, &failure);
    if (!cy_failed(err)) return CY_OK;
    builder_text(messages, korean ? "컴파일러의 결함: " : "a fault of the compiler: ");
    if (cy_is(err, CY_ERR_BAD_FORMAT))
        code_failure_describe(&failure, korean, messages);
    else
        builder_text(messages, cy_err_text(err, korean));
    builder_u8(messages, '\n');
    return CY_ERR(INTERNAL);
}

cy_err compilation_run(struct compilation *compilation, struct program **program_out,
                       struct builder *messages)
{
    if (!module_graph_load(compilation)) return CY_ERR(BAD_FORMAT);
    compilation->read_whole = compilation->diags.count == 0;
    resolve_units(compilation);
    if (compilation->diags.count) return CY_ERR(BAD_FORMAT);
    if (compilation->options->warnings) check_flow_units(compilation);
    if (compilation->outside) return CY_OK;
    if (!compilation->options->session) prune_units(compilation); /* a later input may reach more */
    CY_TRY(emit_units(compilation, program_out));
    cy_err err = compilation->diags.count ? CY_ERR(BAD_FORMAT) : CY_OK; /* limits are seen by the emitter */
    if (!cy_failed(err)) err = compiler_prove(*program_out, compilation->options->korean, messages);
    if (cy_failed(err)) program_free(program_out);
    return err;
}

/* The folder of main as it was written, with its '/'. */
static cy_bytes compiler_folder(const char *path)
{
    cy_bytes folder = cy_bytes_from_text(path);
    while (folder.count > 0 && folder.data[folder.count - 1] != '/') folder.count--;
    return folder;
}

cy_err compile_program(const struct compile_options *options, struct program **program_out,
                       struct builder *messages, uint32_t *error_count_out)
{
    CHECK(options->path && options->read_source);
    struct compilation compilation;
    *program_out = NULL;
    compilation_init(&compilation, options);
    cy_err err = compilation_run(&compilation, program_out, messages);
    struct diag_style style = {.korean = options->korean,
                               .json = options->json,
                               .color = options->color,
                               .folder = compiler_folder(options->path)};
    if (!options->warnings) compilation.warnings.count = compilation.warnings.dropped_count = 0;
    struct diag_counts counts = diag_render(&compilation.diags, &compilation.warnings, &style, messages);
    *error_count_out = counts.errors;
    if (options->warning_count_out) *options->warning_count_out = counts.warnings;
    if (cy_failed(err) && *error_count_out == 0) *error_count_out = 1;
    compilation_fini(&compilation);
    CHECK(options->module || cy_failed(err) == (*program_out == NULL));
    return err;
}
