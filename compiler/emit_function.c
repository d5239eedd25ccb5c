/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_function.c: one function of the program: parameters, body, captures, lines.
 *
 * Not here: the order of functions (emit.c).
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"

static void emit_function_params(struct code *code)
{
    const struct function_decl *function = code->function;
    for (uint32_t i = 0; i < function->param_count; i++) {
        const struct param *param = &function->params[i];
        struct span span = param->name.span;
        if (param->default_value) {
            struct label given;
            emit_label_init(&given);
            emit_jump(code, span, OP_LOCAL_DEFAULT, i, 0, &given);
            emit_expression(code, param->default_value);
            emit_local_set(code, span, i);
            emit_bind(code, &given);
        }
        if (!param->annotation) continue;
        emit_local_get(code, span, i, false);
        emit_check(code, param->annotation, NULL, span);
        emit_op(code, span, OP_POP);
    }
    if (function->self_symbol) {
        emit_op(code, function->span, OP_SELF);
        emit_local_set(code, function->span, function->self_symbol->slot);
    }
}

static void emit_function_end(struct code *code, struct span span)
{
    struct span end = {span.end ? span.end - 1 : 0, span.end, span.line, span.column};
    if (!code->reachable) return;
    emit_op(code, end, OP_NIL);
    const struct annotation *result = code->function->result;
    if (result && !annotation_allows(result, KIND_NIL, NULL)) emit_check(code, result, NULL, end);
    emit_op(code, end, OP_RETURN);
}

static void emit_function_captures(const struct function_decl *function, struct arena *arena,
                                   struct function *out)
{
    out->capture_count = (uint16_t)function->capture_count;
    out->captures = arena_alloc_zeroed(arena, function->capture_count * sizeof *out->captures);
    if (!out->captures) mem_exhausted();
    for (uint32_t i = 0; i < function->capture_count; i++) {
        const struct captured *captured = &function->captures[i];
        out->captures[i].from_parent_local = captured->from_parent_local;
        out->captures[i].index =
            captured->from_parent_local ? (uint16_t)captured->parent_slot->slot : captured->index;
    }
}

static cy_err emit_function_finish(struct code *code, struct function *out)
{
    struct arena *arena = &code->emitter->program->arena;
    cy_err err = builder_error(&code->bytes);
    cy_bytes bytes = cy_failed(err) ? CY_BYTES_NONE : arena_copy(arena, builder_view(&code->bytes));
    struct line_entry *lines = arena_alloc(arena, code->line_count * sizeof *lines);
    if (cy_failed(err) || !bytes.data || !lines) mem_exhausted();
    if (code->line_count) memcpy(lines, code->lines, code->line_count * sizeof *lines);
    out->code = (uint8_t *)(uintptr_t)bytes.data;
    out->code_bytes = (uint32_t)bytes.count;
    out->lines = lines;
    out->line_count = code->line_count;
    out->local_count = (uint16_t)code->local_count;
    out->stack_max = (uint16_t)code->height_max;
    builder_fini(&code->bytes);
    return CY_OK;
}

static struct code emit_function_begin(struct emitter *emitter, struct unit *unit,
                                       struct function_decl *function)
{
    struct code code = {.emitter = emitter,
                        .unit = unit,
                        .function = function,
                        .reachable = true,
                        .temp_next = function->slot_count,
                        .local_count = function->slot_count};
    builder_init(&code.bytes);
    return code;
}

cy_err emit_function(struct emitter *emitter, struct function_decl *function, struct function *out)
{
    struct code code = emit_function_begin(emitter, function->unit, function);
    emit_function_params(&code);
    emit_block(&code, &function->body);
    emit_function_end(&code, function->span);
    out->name = emit_string(emitter, function->name.text);
    out->parent = function->parent ? function->parent->index : PROGRAM_NO_INDEX;
    out->param_count = (uint8_t)function->param_count;
    out->required_count = (uint8_t)function->required_count;
    emit_function_captures(function, &emitter->program->arena, out);
    return emit_function_finish(&code, out);
}

cy_err emit_init(struct emitter *emitter, struct unit *unit, struct function *out)
{
    struct code code = emit_function_begin(emitter, unit, unit->init);
    for (uint32_t i = 0; i < unit->declarations.count; i++) {
        struct node *node = unit->declarations.items[i];
        if (node->kind != NODE_LET) continue;
        emit_let(&code, node);
    }
    emit_function_end(&code, unit->init->span);
    out->name = emit_string(emitter, CY_BYTES_NONE);
    out->parent = PROGRAM_NO_INDEX;
    out->captures = arena_alloc(&emitter->program->arena, 0);
    return emit_function_finish(&code, out);
}
