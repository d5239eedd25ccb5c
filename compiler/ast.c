/* SPDX-License-Identifier: MIT
 *
 * compiler/ast.c: makes nodes and answers simple questions about them.
 *
 * Not here: meaning of names (resolve.c).
 */
#include "compiler/ast.h"

#include "compiler/lexer.h"
#include "vm/base/mem.h"
#include "vm/code/opcode.h"

struct node *ast_node(struct arena *arena, uint8_t kind, struct span span)
{
    struct node *node = arena_alloc_zeroed(arena, sizeof *node);
    node->kind = kind;
    node->span = span;
    return node;
}

void ast_list_add(struct arena *arena, struct node_list *list, struct node *node)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        list->items = arena_grow(arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = node;
}

void ast_spine_init(struct ast_spine *spine)
{
    spine->items = spine->inline_items;
    spine->count = 0;
    spine->capacity = CY_COUNT_OF(spine->inline_items);
}

void ast_spine_push(struct ast_spine *spine, struct node *node)
{
    if (spine->count == spine->capacity) {
        bool inlined = spine->items == spine->inline_items;
        size_t bytes = (size_t)spine->capacity * 2 * sizeof *spine->items;
        struct node **items = mem_resize(inlined ? NULL : spine->items, bytes);
        if (!items) mem_exhausted();
        if (inlined) memcpy(items, spine->inline_items, sizeof spine->inline_items);
        spine->items = items;
        spine->capacity *= 2;
    }
    spine->items[spine->count++] = node;
}

void ast_spine_fini(struct ast_spine *spine)
{
    if (spine->items != spine->inline_items) mem_free(spine->items);
}

struct node *ast_left(const struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY: return node->as.binary.left;
    case NODE_INDEX: return node->as.index.target;
    case NODE_FIELD: return node->as.field.target;
    case NODE_CALL: return node->as.call.callee;
    default: return NULL;
    }
}

bool ast_is_literal(const struct node *node) { return node->kind >= NODE_NIL && node->kind <= NODE_STR; }

uint8_t ast_value_kind(const struct node *node)
{
    switch (node->kind) {
    case NODE_NIL: return KIND_NIL;
    case NODE_BOOL: return KIND_BOOL;
    case NODE_INT: return KIND_INT;
    case NODE_FLOAT: return KIND_FLOAT;
    case NODE_STR:
    case NODE_TEXT: return KIND_STR;
    case NODE_RANGE: return KIND_RANGE;
    case NODE_LIST: return KIND_LIST;
    case NODE_MAP: return KIND_MAP;
    case NODE_FUNCTION: return KIND_FUNCTION;
    case NODE_REF: return KIND_REF;
    case NODE_SPAWN: return KIND_HANDLE;
    default: return KIND_COUNT;
    }
}

bool ast_literal_is_true(const struct node *node)
{
    switch (node->kind) {
    case NODE_NIL: return false;
    case NODE_BOOL: return node->as.boolean;
    case NODE_INT: return node->as.integer != 0;
    case NODE_FLOAT: return node->as.real != 0.0;
    default: return true;
    }
}

uint32_t annotation_kinds(const struct annotation *annotation)
{
    uint32_t kinds = 0;
    if (!annotation->choices) return 1u << (annotation->record ? KIND_RECORD : annotation->kind);
    for (const struct annotation *choice = annotation->choices; choice; choice = choice->next)
        kinds |= annotation_kinds(choice);
    return kinds;
}

const struct record_decl *annotation_only_record(const struct annotation *annotation)
{
    const struct annotation *choice = annotation->choices ? annotation->choices : annotation;
    const struct record_decl *only = NULL;
    for (; choice; choice = choice->next) {
        if (!choice->record && choice->kind == KIND_RECORD) return NULL;
        if (choice->record) only = choice->record;
    }
    return only;
}

bool annotation_allows(const struct annotation *annotation, uint8_t kind, const struct record_decl *record)
{
    const struct annotation *choice = annotation->choices ? annotation->choices : annotation;
    for (; choice; choice = choice->next) {
        if (choice->record ? record == choice->record : choice->kind == kind) return true;
    }
    return false;
}
