/* SPDX-License-Identifier: MIT
 *
 * compiler/resolve_expr.c: expressions, in the order in which they are evaluated.
 *
 * Method: the left spine of a tree is walked down and up again in a loop, so that its length is not a depth.
 * Not here: what a word means (resolve.c), whether arguments fit (check.c).
 */
#include "compiler/lexer.h"
#include "compiler/resolve_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

/* -- reads and captures -------------------------------------------------------------------------------------------- */

static void resolve_expr_note_read(struct resolver *resolver, struct symbol *symbol, struct node *node)
{
    symbol->last_read = node;
    symbol->last_read_loop_depth = resolver->loop_depth;
    symbol->last_read_handler_depth = resolver->handler_depth;
    symbol->last_read_serial = ++resolver->read_serial;
    if (resolver->return_nesting == 0) return;
    if (resolver->read_count == resolver->read_capacity) {
        uint32_t capacity = resolver->read_capacity ? resolver->read_capacity * 2 : 16;
        resolver->reads =
            arena_grow(resolver->arena, resolver->reads, resolver->read_capacity * sizeof *resolver->reads,
                       capacity * sizeof *resolver->reads);
        resolver->read_capacity = capacity;
    }
    resolver->reads[resolver->read_count++] = (struct resolver_read){symbol, node};
}

/* The entry of `symbol` in what `function` captures; made, with number UINT32_MAX, when it is not there. */
static struct map_entry *resolve_expr_capture_entry(struct resolver *resolver,
                                                    const struct function_decl *function,
                                                    const struct symbol *symbol)
{
    const void *key[2] = {function, symbol};
    bool inserted;
    struct map_entry *entry =
        map_insert(&resolver->captures, cy_bytes_of((const uint8_t *)key, sizeof key), &inserted);
    if (!entry) mem_exhausted();
    if (inserted) entry->value.number = UINT32_MAX;
    return entry;
}

static uint32_t resolve_expr_add_capture(struct resolver *resolver, struct function_decl *function,
                                         struct symbol *symbol, struct span span)
{
    uint64_t *index = &resolve_expr_capture_entry(resolver, function, symbol)->value.number;
    if (*index != UINT32_MAX) return (uint32_t)*index;
    if (function->capture_count == LIMIT_FUNCTION_CAPTURES) {
        (void)resolve_report(resolver, span, DIAG_LIMIT, CY_BYTES("FUNCTION_CAPTURES"),
                             diag_number(resolver->diags, LIMIT_FUNCTION_CAPTURES));
        return 0;
    }
    struct captured captured = {.symbol = symbol, .from_parent_local = symbol->owner == function->parent};
    if (captured.from_parent_local)
        captured.parent_slot = symbol;
    else
        captured.index =
            (uint16_t)resolve_expr_capture_entry(resolver, function->parent, symbol)->value.number;
    if (function->capture_count == function->capture_capacity) {
        uint32_t capacity = function->capture_capacity ? function->capture_capacity * 2 : 4;
        function->captures =
            arena_grow(resolver->arena, function->captures, function->capture_capacity * sizeof captured,
                       capacity * sizeof captured);
        function->capture_capacity = capacity;
    }
    function->captures[function->capture_count] = captured;
    resolve_expr_capture_entry(resolver, function, symbol)->value.number = function->capture_count;
    return function->capture_count++;
}

/* The hidden local in which a function keeps itself for the functions inside it. */
static struct symbol *resolve_expr_self_symbol(struct resolver *resolver, struct function_decl *function)
{
    if (!function->self_symbol) {
        struct symbol *symbol = arena_alloc_zeroed(resolver->arena, sizeof *symbol);
        symbol->kind = SYMBOL_LOCAL;
        symbol->constant = true;
        symbol->value_kind = KIND_COUNT;
        symbol->name = function->name.text;
        symbol->span = function->span;
        symbol->unit = function->unit;
        symbol->owner = function;
        symbol->function = function;
        function->self_symbol = symbol;
    }
    return function->self_symbol;
}

/* Every function between the variable's owner and here captures it, the outermost first. */
static void resolve_expr_capture(struct resolver *resolver, struct node *node, struct symbol *symbol)
{
    struct function_decl *chain[LIMIT_NESTING_DEPTH + 1];
    uint32_t count = 0;
    for (struct function_decl *f = resolver->function; f != symbol->owner; f = f->parent) {
        CHECK(f && count <= LIMIT_NESTING_DEPTH);
        if (f == symbol->function) {
            /* The function itself, seen from inside. */
            if (f == resolver->function) {
                node->as.name.access = ACCESS_SELF;
                return;
            }
            symbol = resolve_expr_self_symbol(resolver, f);
            break;
        }
        chain[count++] = f;
    }
    if (!symbol->captured) symbol->captured_span = node->span;
    symbol->captured = true;
    resolve_expr_note_read(resolver, symbol, NULL);
    uint32_t index = 0;
    while (count > 0) index = resolve_expr_add_capture(resolver, chain[--count], symbol, node->span);
    node->as.name.access = ACCESS_CAPTURE;
    node->as.name.capture = (uint16_t)index;
}

/* Whether the variable has its value by then is known when all initialisers and calls were seen (check.c). */
static void resolve_expr_note_global(struct resolver *resolver, const struct symbol *symbol, struct span span)
{
    struct function_decl *function = resolver->function;
    if (symbol->unit != resolver->unit || function == resolver->unit->init) return;
    uint32_t count = function->global_use_count;
    if (count > 0 && function->global_uses[count - 1].symbol == symbol) return;
    if (count == function->global_use_capacity) {
        uint32_t capacity = count ? count * 2 : 4;
        function->global_uses =
            arena_grow(resolver->arena, function->global_uses, count * sizeof *function->global_uses,
                       capacity * sizeof *function->global_uses);
        function->global_use_capacity = capacity;
    }
    function->global_uses[function->global_use_count++] = (struct global_use){symbol, span};
}

void resolve_access(struct resolver *resolver, struct node *node, struct symbol *symbol)
{
    if (symbol->kind == SYMBOL_GLOBAL) resolve_expr_note_global(resolver, symbol, node->span);
    node->as.name.symbol = symbol;
    node->as.name.access = ACCESS_LOCAL;
    if (symbol->kind == SYMBOL_LOCAL && symbol->owner != resolver->function)
        resolve_expr_capture(resolver, node, symbol);
}

/* -- names --------------------------------------------------------------------------------------------------------- */

static void resolve_expr_become_literal(struct node *node, const struct node *literal)
{
    struct span span = node->span;
    uint16_t flags = node->flags;
    *node = *literal;
    node->span = span;
    node->flags = flags;
}

/* A module variable of this module that an initialiser reads before its own has run. */
static void resolve_expr_check_ready(struct resolver *resolver, const struct symbol *symbol, struct span span)
{
    if (resolver->function == resolver->unit->init && symbol->unit == resolver->unit && !symbol->ready)
        diag_add_label(resolve_report(resolver, span, DIAG_USED_BEFORE, symbol->name, CY_BYTES_NONE),
                       DIAG_LABEL_DECLARED, &symbol->unit->source, symbol->span);
}

static bool resolve_expr_is_value(const struct symbol *symbol)
{
    return symbol->kind != SYMBOL_RECORD && symbol->kind != SYMBOL_MODULE && symbol->kind != SYMBOL_KIND;
}

/* A NAME as a value. */
static void resolve_expr_name(struct resolver *resolver, struct node *node)
{
    struct word word = {node->as.name.text, node->span};
    struct symbol *symbol = resolve_find(resolver, word.text);
    if (!symbol) {
        resolve_report_unknown(resolver, &word);
        return;
    }
    resolve_mention(resolver, word.span, symbol);
    if (!symbol->function || symbol->function != resolver->function) symbol->read_count++;
    if (!resolve_expr_is_value(symbol)) {
        (void)resolve_report(resolver, word.span, DIAG_NOT_A_VALUE, word.text, CY_BYTES_NONE);
        return;
    }
    if (symbol->literal) {
        resolve_expr_become_literal(node, symbol->literal);
        return;
    }
    if (symbol->kind == SYMBOL_GLOBAL) resolve_expr_check_ready(resolver, symbol, word.span);
    resolve_access(resolver, node, symbol);
    if (symbol->kind == SYMBOL_LOCAL && symbol->owner == resolver->function)
        resolve_expr_note_read(resolver, symbol, node);
}

struct symbol *resolve_static_member(struct resolver *resolver, struct node *field, bool *is_member_out)
{
    struct node *target = field->as.field.target;
    *is_member_out = false;
    if (target->kind != NODE_NAME || !field->as.field.name.text.count) return NULL;
    struct symbol *symbol = resolve_find(resolver, target->as.name.text);
    bool kind_word = symbol && (symbol->kind == SYMBOL_NATIVE || symbol->kind == SYMBOL_KIND) &&
                     symbol->value_kind != KIND_COUNT;
    if (!symbol || (symbol->kind != SYMBOL_MODULE && !kind_word)) return NULL;
    *is_member_out = true;
    resolve_mention(resolver, target->span, symbol);
    target->as.name.symbol = symbol;
    field->as.field.member = resolve_member(resolver, symbol, &field->as.field.name);
    return field->as.field.member;
}

/* `module.name` as a value; true when that is what the node was. */
static bool resolve_expr_member_value(struct resolver *resolver, struct node *node)
{
    bool is_member;
    struct symbol *symbol = resolve_static_member(resolver, node, &is_member);
    if (!is_member) return false;
    if (!symbol) {
        node->kind = NODE_ERROR;
    } else if (!resolve_expr_is_value(symbol)) {
        (void)resolve_report(resolver, node->as.field.name.span, DIAG_NOT_A_VALUE, symbol->name,
                             CY_BYTES_NONE);
        node->kind = NODE_ERROR;
    } else if (symbol->literal) {
        resolve_expr_become_literal(node, symbol->literal);
    }
    return true;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static void resolve_expr_add_effect(struct resolver *resolver, struct effect effect)
{
    struct function_decl *function = resolver->function;
    if (function->effect_count == function->effect_capacity) {
        uint32_t capacity = function->effect_capacity ? function->effect_capacity * 2 : 4;
        function->effects = arena_grow(resolver->arena, function->effects,
                                       function->effect_capacity * sizeof effect, capacity * sizeof effect);
        function->effect_capacity = capacity;
    }
    function->effects[function->effect_count++] = effect;
}

static void resolve_expr_note_effect(struct resolver *resolver, const struct symbol *known, struct span span)
{
    bool native = known->kind == SYMBOL_NATIVE;
    if (!native && !known->function) return; /* a record */
    if (native && known->native->capability == 0 &&
        !(known->native->flags & (NATIVE_FLAG_WAIT | NATIVE_FLAG_MAIN)))
        return;
    resolve_expr_add_effect(resolver, (struct effect){.callee = native ? NULL : known->function,
                                                      .native = native ? known->native : NULL,
                                                      .span = span});
}

/* What the callee of a call is, when that is known before it is evaluated. `*is_static_out`: the callee needs no
 * value. */
static struct symbol *resolve_expr_known_callee(struct resolver *resolver, struct node *callee,
                                                bool *is_static_out)
{
    struct symbol *symbol = NULL;
    *is_static_out = false;
    if (callee->flags & NODE_IN_PARENS) return NULL;
    if (callee->kind == NODE_NAME) symbol = resolve_find(resolver, callee->as.name.text);
    if (callee->kind == NODE_FIELD) {
        bool is_member;
        symbol = resolve_static_member(resolver, callee, &is_member);
        if (is_member && !symbol) {
            *is_static_out = true;
            callee->kind = NODE_ERROR;
        }
    }
    if (!symbol) return NULL;
    switch (symbol->kind) {
    case SYMBOL_FUNCTION:
    case SYMBOL_RECORD:
    case SYMBOL_NATIVE:
        *is_static_out = true;
        if (callee->kind == NODE_NAME) {
            resolve_mention(resolver, callee->span, symbol);
            callee->as.name.symbol = symbol;
        }
        if (!symbol->function || symbol->function != resolver->function) {
            symbol->read_count++;
            symbol->call_count++;
        }
        return symbol;
    case SYMBOL_KIND:
    case SYMBOL_MODULE:
        *is_static_out = true;
        (void)resolve_report(resolver, callee->span, DIAG_NOT_CALLABLE, symbol->name, CY_BYTES_NONE);
        callee->kind = NODE_ERROR;
        return NULL;
    default:
        if (symbol->kind != SYMBOL_LOCAL || !symbol->function) return NULL;
        if (symbol->function != resolver->function)
            symbol->call_count++; /* its name is resolved as a value */
        return symbol;
    }
}

/* Behind the callee: arguments, then the binding. */
static void resolve_expr_finish_call(struct resolver *resolver, struct node *node)
{
    for (uint32_t i = 0; i < node->as.call.argument_count; i++)
        resolve_expression(resolver, node->as.call.arguments[i].value);
    const struct symbol *known = node->as.call.known;
    if (node->as.call.callee->kind != NODE_ERROR) check_call(resolver, node);
    if (known) resolve_expr_note_effect(resolver, known, node->span);
    const struct node *callee = node->as.call.callee;
    if (callee->kind == NODE_FUNCTION)
        resolve_expr_add_effect(resolver, (struct effect){.callee = callee->as.function, .span = node->span});
    bool quiet = known && (known->kind == SYMBOL_RECORD ||
                           (known->kind == SYMBOL_NATIVE && !(known->native->flags & NATIVE_FLAG_WAIT)));
    if (!quiet) resolver->call_serial++;
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

static void resolve_expr_items(struct resolver *resolver, struct node_list *items)
{
    for (uint32_t i = 0; i < items->count; i++) resolve_expression(resolver, items->items[i]);
}

/* `spawn task.sleep(n)`: a task runs code, and a native has none. So the call moves into a function of its own,
 * `spawn fn (p) { return task.sleep(p) }(n)`: the arguments are evaluated here, and handles among them move. */
static struct node *resolve_expr_wrap_native(struct resolver *resolver, struct node *call)
{
    struct arena *arena = resolver->arena;
    uint32_t count = call->as.call.argument_count;
    struct function_decl *function = arena_alloc_zeroed(arena, sizeof *function);
    struct node *inner = ast_node(arena, NODE_CALL, call->span);
    struct node *outer = ast_node(arena, NODE_CALL, call->span);
    function->span = function->body.span = call->span;
    function->unit = resolver->unit;
    function->params = arena_alloc_zeroed(arena, (count + 1) * sizeof *function->params);
    function->param_count = function->required_count = count;
    inner->as.call.callee = call->as.call.callee;
    inner->as.call.arguments = arena_alloc_zeroed(arena, (count + 1) * sizeof *inner->as.call.arguments);
    outer->as.call.arguments = arena_alloc_zeroed(arena, (count + 1) * sizeof *outer->as.call.arguments);
    inner->as.call.argument_count = outer->as.call.argument_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct node *value = call->as.call.arguments[i].value;
        struct node *name = ast_node(arena, NODE_NAME, value->span);
        name->as.name.text = diag_number(resolver->diags, i); /* what no source can name */
        function->params[i].name = (struct word){name->as.name.text, value->span};
        inner->as.call.arguments[i] = (struct argument){call->as.call.arguments[i].name, name};
        outer->as.call.arguments[i].value = value;
    }
    struct node *result = ast_node(arena, NODE_RETURN, call->span);
    result->as.operand = inner;
    ast_list_add(arena, &function->body.statements, result);
    outer->as.call.callee = ast_node(arena, NODE_FUNCTION, call->span);
    outer->as.call.callee->as.function = function;
    resolve_expression(resolver, outer->as.call.callee);
    return outer;
}

static void resolve_expr_spawn(struct resolver *resolver, struct node *node)
{
    struct node *call = node->as.operand;
    uint32_t reported = resolver->diags->count;
    resolve_expr_add_effect(resolver, (struct effect){.span = node->span});
    resolve_expression(resolver, call);
    const struct symbol *known = call->kind == NODE_CALL ? call->as.call.known : NULL;
    if (known && known->kind == SYMBOL_RECORD)
        (void)resolve_report(resolver, call->span, DIAG_SPAWN_WHAT, CY_BYTES_NONE, CY_BYTES_NONE);
    if (known && known->kind == SYMBOL_NATIVE && resolver->diags->count == reported)
        node->as.operand = resolve_expr_wrap_native(resolver, call);
}

static void resolve_expr_leaf(struct resolver *resolver, struct node *node)
{
    switch (node->kind) {
    case NODE_NAME: resolve_expr_name(resolver, node); break;
    case NODE_TEXT:
    case NODE_LIST:
    case NODE_MAP:
        resolve_expr_items(resolver, &node->as.items);
        check_certain(resolver, node, fold_node(resolver->arena, node));
        if (node->kind == NODE_MAP) check_certain_keys(resolver, node);
        break;
    case NODE_UNARY:
        resolve_expression(resolver, node->as.operand);
        check_certain(resolver, node, fold_node(resolver->arena, node));
        break;
    case NODE_SPAWN: resolve_expr_spawn(resolver, node); break;
    case NODE_REF: resolve_expression(resolver, node->as.operand); break;
    case NODE_RANGE:
        resolve_expression(resolver, node->as.binary.left);
        resolve_expression(resolver, node->as.binary.right);
        break;
    case NODE_FUNCTION: resolve_function(resolver, node->as.function, NULL); break;
    default: break; /* literals and errors */
    }
}

/* A field of something whose record type is, or may turn out to be, known. */
static void resolve_expr_finish_field(struct resolver *resolver, struct node *node)
{
    const struct node *target = node->as.field.target;
    const struct record_decl *record = NULL;
    if (target->kind == NODE_CALL && target->as.call.known) {
        const struct symbol *known = target->as.call.known;
        if (known->kind == SYMBOL_RECORD)
            record = known->record;
        else if (known->function && known->function->result)
            record = known->function->result->record;
    }
    if (record) check_field(resolver, record, &node->as.field.name);
    bool variable =
        target->kind == NODE_NAME && target->as.name.symbol &&
        (target->as.name.symbol->kind == SYMBOL_LOCAL || target->as.name.symbol->kind == SYMBOL_GLOBAL);
    if (variable) resolve_check_later(resolver, node);
    if (target->kind == NODE_MAP) check_certain_item(resolver, node);
}

void resolve_check_later(struct resolver *resolver, struct node *node)
{
    if (resolver->field_check_count == resolver->field_check_capacity) {
        uint32_t capacity = resolver->field_check_capacity ? resolver->field_check_capacity * 2 : 64;
        resolver->field_checks = arena_grow(resolver->arena, resolver->field_checks,
                                            resolver->field_check_capacity * sizeof *resolver->field_checks,
                                            capacity * sizeof *resolver->field_checks);
        resolver->field_check_capacity = capacity;
    }
    resolver->field_checks[resolver->field_check_count++] = node;
}

/* What is left to do when the left operand has been resolved. */
static void resolve_expr_finish(struct resolver *resolver, struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY:
        resolve_expression(resolver, node->as.binary.right);
        check_certain(resolver, node, fold_node(resolver->arena, node));
        break;
    case NODE_INDEX:
        resolve_expression(resolver, node->as.index.index);
        check_certain_item(resolver, node);
        break;
    case NODE_FIELD: resolve_expr_finish_field(resolver, node); break;
    case NODE_CALL: resolve_expr_finish_call(resolver, node); break;
    default: UNREACHABLE();
    }
}

/* True when `node` needs nothing from its left side (and was dealt with, or will be as a leaf). */
static bool resolve_expr_ends_spine(struct resolver *resolver, struct node *node)
{
    if (!ast_left(node)) {
        resolve_expr_leaf(resolver, node);
        return true;
    }
    if (node->kind == NODE_FIELD) return resolve_expr_member_value(resolver, node);
    if (node->kind != NODE_CALL) return false;
    bool is_static;
    node->as.call.known = resolve_expr_known_callee(resolver, node->as.call.callee, &is_static);
    if (is_static) resolve_expr_finish_call(resolver, node);
    return is_static;
}

void resolve_expression(struct resolver *resolver, struct node *node)
{
    struct ast_spine spine;
    ast_spine_init(&spine);
    while (!resolve_expr_ends_spine(resolver, node)) {
        ast_spine_push(&spine, node);
        node = ast_left(node);
    }
    while (spine.count > 0) resolve_expr_finish(resolver, spine.items[--spine.count]);
    ast_spine_fini(&spine);
}
