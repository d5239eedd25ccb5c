/* SPDX-License-Identifier: MIT
 *
 * compiler/resolve_stmt.c: statements, in the order in which they run.
 *
 * Invariant: loop_depth and handler_depth are those of the statement being looked at; scopes close in reverse order.
 */
#include "compiler/lexer.h"
#include "compiler/resolve_internal.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

static void resolve_stmt(struct resolver *resolver, struct node *node);

void resolve_statements(struct resolver *resolver, struct node_list *statements)
{
    uint32_t handler_depth = resolver->handler_depth;
    for (uint32_t i = 0; i < statements->count; i++) resolve_stmt(resolver, statements->items[i]);
    resolver->handler_depth = handler_depth; /* the block's defers end with it */
}

void resolve_block(struct resolver *resolver, struct block *block)
{
    uint32_t first_slot = resolver->function->slot_next;
    uint32_t outer_start = resolve_open_scope(resolver);
    resolve_statements(resolver, &block->statements);
    resolve_close_scope(resolver, outer_start, first_slot, block->span.end);
}

/* -- let ----------------------------------------------------------------------------------------------------------- */

void resolve_let_facts(struct symbol *symbol, const struct node *let)
{
    struct node *value = let->as.let.value;
    const struct annotation *annotation = let->as.let.annotation;
    symbol->annotation = let->as.let.annotation;
    if (annotation && annotation->known) {
        symbol->record = annotation->record;
        symbol->is_ref = !annotation->record && annotation->kind == KIND_REF;
    }
    if (!value) return;
    if (symbol->constant && ast_is_literal(value)) symbol->literal = value;
    if (symbol->constant && value->kind == NODE_REF) symbol->is_ref = true;
    bool built =
        value->kind == NODE_CALL && value->as.call.known && value->as.call.known->kind == SYMBOL_RECORD;
    if (built && !annotation) symbol->record = value->as.call.known->record;
}

static void resolve_stmt_let(struct resolver *resolver, struct node *node)
{
    resolve_annotation(resolver, node->as.let.annotation);
    if (node->as.let.value) {
        resolve_expression(resolver, node->as.let.value);
        check_literal(resolver, node->as.let.annotation, node->as.let.value);
    }
    struct symbol *symbol = resolve_declare_local(resolver, node->as.let.name);
    symbol->constant = (node->flags & NODE_IS_CONST) != 0;
    node->as.let.symbol = symbol;
    resolve_let_facts(symbol, node);
}

/* -- assignment ---------------------------------------------------------------------------------------------------- */

static void resolve_stmt_mark_assigned(struct symbol *symbol, struct span span)
{
    if (!symbol->assigned_span.end) symbol->assigned_span = span;
}

static bool resolve_stmt_same_key(const struct node *a, const struct node *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case NODE_NAME: return a->as.name.symbol && a->as.name.symbol == b->as.name.symbol;
    case NODE_NIL: return true;
    case NODE_BOOL: return a->as.boolean == b->as.boolean;
    case NODE_INT: return a->as.integer == b->as.integer;
    case NODE_STR: return cy_bytes_equal(a->as.text, b->as.text);
    default: return false; /* a float is a rare key; the rest may run code */
    }
}

/* Whether both are one place, whose keys are names and literals: so they have one value however often they are
 * evaluated. */
static bool resolve_stmt_same_place(const struct node *a, const struct node *b)
{
    for (;; a = ast_left(a), b = ast_left(b)) {
        if (a->kind != b->kind) return false;
        if (a->kind == NODE_NAME) return a->as.name.symbol && a->as.name.symbol == b->as.name.symbol;
        if (a->kind == NODE_INDEX) {
            if (!resolve_stmt_same_key(a->as.index.index, b->as.index.index)) return false;
            continue;
        }
        if (a->kind != NODE_FIELD) return false;
        if (a->as.field.member || b->as.field.member) return a->as.field.member == b->as.field.member;
        if (!cy_bytes_equal(a->as.field.name.text, b->as.field.name.text)) return false;
    }
}

/* The argument for a native's parameter `index`; NULL when it was not given. */
static const struct node *resolve_stmt_argument(const struct node *call, uint32_t index)
{
    const struct call_plan *plan = call->as.call.plan;
    if (plan) return index < plan->count ? plan->values[index] : NULL;
    return index < call->as.call.argument_count ? call->as.call.arguments[index].value : NULL;
}

/* Whether `call` is map.get(m, k), or map.get(m, k, "") or map.get(m, k, []), of the place m[k]. */
static bool resolve_stmt_gets_place(const struct node *call, const struct node *place)
{
    if (call->kind != NODE_CALL || place->kind != NODE_INDEX || !call->as.call.known) return false;
    const struct symbol *known = call->as.call.known;
    if (known->kind != SYMBOL_NATIVE || known->native->number != NATIVE_map_get) return false;
    const struct node *map = resolve_stmt_argument(call, 0), *key = resolve_stmt_argument(call, 1),
                      *otherwise = resolve_stmt_argument(call, 2);
    bool empty = !otherwise || (otherwise->kind == NODE_STR && otherwise->as.text.count == 0) ||
                 (otherwise->kind == NODE_LIST && otherwise->as.items.count == 0);
    return empty && map && key && resolve_stmt_same_key(place->as.index.index, key) &&
           resolve_stmt_same_place(place->as.index.target, map);
}

/* Whether `place = value` has the form place + e: the leftmost operand of a chain of + is the place, or map.get of it.
 * Gives the node whose left it is. */
static struct node *resolve_stmt_find_addition(struct node *value, const struct node *place)
{
    struct node *node = value;
    while (node->kind == NODE_BINARY && node->op == TOKEN_PLUS) {
        struct node *left = node->as.binary.left;
        if (resolve_stmt_same_place(place, left) || resolve_stmt_gets_place(left, place)) return node;
        node = left;
    }
    return NULL;
}

/* x + e1 + e2 may be done as x + (e1 + e2) when e1 is a str or a list: both ways join the same pieces in the same
 * order. Only a program that adds what cannot be added can tell the difference: e2 was then evaluated before the
 * error. */
static bool resolve_stmt_may_regroup(const struct node *second)
{
    return second->kind == NODE_STR || second->kind == NODE_TEXT || second->kind == NODE_LIST;
}

/* The e of `place = place + e`, NULL when the statement has not that form. `*left_out` is the second `place`. A list
 * of one item becomes that item, with *one_item_out. */
static struct node *resolve_stmt_take_addition(struct node *assign, struct node **left_out,
                                               bool *one_item_out)
{
    struct node *value = assign->as.assign.value;
    struct node *addition = resolve_stmt_find_addition(value, assign->as.assign.target);
    if (!addition) return NULL;
    *left_out = addition->as.binary.left;
    struct node *second = addition->as.binary.right;
    if (addition != value) {
        if (!resolve_stmt_may_regroup(second)) return NULL;
        struct node *above = value;
        while (above->as.binary.left != addition) above = above->as.binary.left;
        above->as.binary.left = second;
    } else {
        value = second;
    }
    *one_item_out = value->kind == NODE_LIST && value->as.items.count == 1;
    return *one_item_out ? value->as.items.items[0] : value;
}

static void resolve_stmt_choose_form(struct node *assign)
{
    struct node *left;
    bool one_item;
    struct node *value = resolve_stmt_take_addition(assign, &left, &one_item);
    if (!value) return;
    assign->as.assign.form = one_item ? ASSIGN_APPEND : ASSIGN_ADD;
    assign->as.assign.value = value;
}

/* What cannot fail: so it may as well be evaluated before the place is read. */
static bool resolve_stmt_cannot_fail(const struct node *node)
{
    if (ast_is_literal(node) || node->kind == NODE_NAME || node->kind == NODE_FUNCTION) return true;
    if (node->kind != NODE_LIST && node->kind != NODE_TEXT) return false;
    for (uint32_t i = 0; i < node->as.items.count; i++)
        if (!resolve_stmt_cannot_fail(node->as.items.items[i])) return false;
    return true;
}

/* Whether what e calls could change the place: through a module variable, or a ref on the way, which only a field
 * `value` enters. */
static bool resolve_stmt_calls_reach(const struct node *assign, const struct symbol *symbol)
{
    if (symbol->kind != SYMBOL_LOCAL || assign->as.assign.form != ASSIGN_PATH) return true;
    const struct node *node = assign->as.assign.target;
    for (; node->kind != NODE_NAME; node = ast_left(node))
        if (node->kind == NODE_FIELD && cy_bytes_equal(node->as.field.name.text, CY_BYTES("value")))
            return true;
    return false;
}

/* `path = path + e` in one instruction, when nobody can tell. The long form reads the place before e: when e may fail
 * or do something, the place is read (and let go) there too, so that what is missing is said first. */
static void resolve_stmt_choose_path_form(struct node *assign, const struct symbol *symbol, bool calls)
{
    struct node *left;
    bool one_item;
    if (calls && resolve_stmt_calls_reach(assign, symbol)) return;
    struct node *value = resolve_stmt_take_addition(assign, &left, &one_item);
    if (!value) return;
    assign->as.assign.path_form = one_item ? PATH_APPEND : PATH_ADD;
    assign->as.assign.value = value;
    if (left->kind == NODE_CALL)
        assign->as.assign.found = left;
    else if (!resolve_stmt_cannot_fail(value))
        assign->as.assign.probe = left;
}

/* A variable with a checked kind keeps it under + only when that kind is str or list. */
static bool resolve_stmt_keeps_kind(const struct annotation *annotation)
{
    if (!annotation) return true;
    return annotation->known && !annotation->record &&
           (annotation->kind == KIND_STR || annotation->kind == KIND_LIST);
}

static void resolve_stmt_assign_name(struct resolver *resolver, struct node *node)
{
    struct node *target = node->as.assign.target;
    struct word word = {target->as.name.text, target->span};
    struct symbol *symbol = resolve_find(resolver, word.text);
    uint64_t calls = resolver->call_serial, reads = resolver->read_serial;
    resolve_expression(resolver, node->as.assign.value);
    if (!symbol) {
        resolve_report_unknown(resolver, &word);
        return;
    }
    resolve_mention(resolver, word.span, symbol);
    bool local = symbol->kind == SYMBOL_LOCAL, global = symbol->kind == SYMBOL_GLOBAL;
    if (symbol->constant || (!local && !global)) {
        struct diag *diag =
            resolve_report(resolver, word.span, DIAG_ASSIGN_CONSTANT, word.text, CY_BYTES_NONE);
        if (symbol->unit) diag_add_label(diag, DIAG_LABEL_DECLARED, &symbol->unit->source, symbol->span);
        return;
    }
    if (local && symbol->owner != resolver->function) {
        struct diag *diag =
            resolve_report(resolver, word.span, DIAG_ASSIGN_CAPTURED, word.text, CY_BYTES_NONE);
        diag_add_label(diag, DIAG_LABEL_DECLARED, &symbol->unit->source, symbol->span);
        return;
    }
    resolve_stmt_mark_assigned(symbol, word.span);
    symbol->replaced = true;
    resolve_access(resolver, target, symbol);
    check_literal(resolver, symbol->annotation, node->as.assign.value);
    /* A module variable may be changed by what e calls; then x must be read before e, which only the long form does. */
    bool may_add = resolve_stmt_keeps_kind(symbol->annotation) && (local || calls == resolver->call_serial);
    if (may_add) resolve_stmt_choose_form(node);
    if (node->as.assign.form != ASSIGN_PLAIN && symbol->read_count > 0)
        symbol->read_count--; /* a sum that is only added to is not read */
    if (node->as.assign.form == ASSIGN_PLAIN) {
        node->as.assign.check = symbol->annotation;
        bool moves = local && symbol->last_read && symbol->last_read_serial > reads &&
                     symbol->last_read_handler_depth == symbol->handler_depth;
        if (moves) symbol->last_read->flags |= NODE_LAST_USE;
    }
    symbol->last_read = NULL;
}

/* The variable at the left end of a path, and the node next to it. */
static struct node *resolve_stmt_path_root(struct node *target, struct node **first_out, uint32_t *count_out)
{
    *first_out = target;
    *count_out = 1;
    for (;;) {
        struct node *left = ast_left(*first_out);
        bool step = left->kind == NODE_INDEX || (left->kind == NODE_FIELD && !left->as.field.member);
        if (!step) return left;
        *first_out = left;
        ++*count_out;
    }
}

/* Whether `symbol` may be the root, and how; false and reported when not. */
static bool resolve_stmt_path_form(struct resolver *resolver, struct node *node, struct symbol *symbol,
                                   struct node *root, const struct node *first)
{
    bool through_value =
        first->kind == NODE_FIELD && cy_bytes_equal(first->as.field.name.text, CY_BYTES("value"));
    bool local = symbol->kind == SYMBOL_LOCAL, global = symbol->kind == SYMBOL_GLOBAL;
    bool session = global && symbol->unit->in_session && resolver->unit->in_session;
    bool foreign = (local && symbol->owner != resolver->function) ||
                   (global && symbol->unit != resolver->unit && !session);
    bool fixed = symbol->constant || foreign;
    node->as.assign.form = fixed ? ASSIGN_THROUGH_REF : ASSIGN_PATH;
    if ((local || global) && !symbol->function && (!fixed || through_value)) {
        if (!fixed && !through_value) resolve_stmt_mark_assigned(symbol, root->span);
        return true;
    }
    enum diag_code code = !local && !global  ? DIAG_NOT_ASSIGNABLE
                          : local && foreign ? DIAG_ASSIGN_CAPTURED
                          : symbol->constant ? DIAG_ASSIGN_CONSTANT
                                             : DIAG_ASSIGN_IMPORTED;
    struct diag *diag = resolve_report(resolver, root->span, code, symbol->name, CY_BYTES_NONE);
    if (symbol->unit) diag_add_label(diag, DIAG_LABEL_DECLARED, &symbol->unit->source, symbol->span);
    return false;
}

static void resolve_stmt_path_keys(struct resolver *resolver, struct node *target, uint32_t count)
{
    struct ast_spine spine;
    ast_spine_init(&spine);
    struct node *node = target;
    for (uint32_t i = 0; i < count; i++, node = ast_left(node)) ast_spine_push(&spine, node);
    while (spine.count > 0) {
        node = spine.items[--spine.count];
        if (node->kind == NODE_INDEX) resolve_expression(resolver, node->as.index.index);
    }
    ast_spine_fini(&spine);
}

/* Whether a write to this place may go into a ref, and so is seen by others. */
static bool resolve_stmt_may_pass_ref(const struct node *target)
{
    for (const struct node *node = target; node; node = ast_left(node))
        if (node->kind == NODE_FIELD && cy_bytes_equal(node->as.field.name.text, CY_BYTES("value")))
            return true;
    return false;
}

static void resolve_stmt_assign_path(struct resolver *resolver, struct node *node)
{
    struct node *first;
    uint32_t count;
    struct node *target = node->as.assign.target, *root = resolve_stmt_path_root(target, &first, &count);
    /* `module.name.field = v`: the module's variable is the root, not the module. */
    struct symbol *symbol = NULL;
    bool is_member = false;
    if (root->kind == NODE_NAME) {
        struct node *outermost_static = first->kind == NODE_FIELD ? first : NULL;
        if (outermost_static) symbol = resolve_static_member(resolver, outermost_static, &is_member);
        if (is_member && count == 1) {
            resolve_stmt_path_keys(resolver, target, 0);
            resolve_expression(resolver, node->as.assign.value);
            if (symbol)
                (void)resolve_report(resolver, first->as.field.name.span, DIAG_ASSIGN_IMPORTED, symbol->name,
                                     CY_BYTES_NONE);
            return;
        }
        if (is_member) {
            root = first;
            count--;
            struct node *above = target;
            while (ast_left(above) != root) above = ast_left(above);
            first = above;
        } else {
            symbol = resolve_find(resolver, root->as.name.text);
        }
    }
    if (count > LIMIT_FUNCTION_PARAMS)
        (void)resolve_report(resolver, target->span, DIAG_LIMIT, CY_BYTES("FUNCTION_PARAMS"),
                             diag_number(resolver->diags, LIMIT_FUNCTION_PARAMS));
    resolve_stmt_path_keys(resolver, target, count);
    if (symbol && resolve_stmt_may_pass_ref(target)) symbol->read_count++;
    uint64_t calls = resolver->call_serial;
    resolve_expression(resolver, node->as.assign.value);
    if (root->kind != NODE_NAME && !is_member) {
        (void)resolve_report(resolver, target->span, DIAG_NOT_ASSIGNABLE, CY_BYTES_NONE, CY_BYTES_NONE);
        return;
    }
    if (!symbol) {
        if (!is_member) resolve_report_unknown(resolver, &(struct word){root->as.name.text, root->span});
        return;
    }
    if (!is_member) resolve_mention(resolver, root->span, symbol);
    if (!resolve_stmt_path_form(resolver, node, symbol, root, first)) return;
    if (!is_member) resolve_access(resolver, root, symbol);
    resolve_stmt_choose_path_form(node, symbol, calls != resolver->call_serial);
    if (first->kind == NODE_FIELD) resolve_check_later(resolver, node);
    if (symbol->kind == SYMBOL_LOCAL) symbol->last_read = NULL;
}

/* -- control ------------------------------------------------------------------------------------------------------- */

/* The word that a statement begins with. */
static cy_bytes resolve_stmt_first_word(struct resolver *resolver, const struct node *node)
{
    cy_bytes text = source_slice(&resolver->unit->source, node->span);
    size_t count = 0;
    while (count < text.count && text.data[count] > ' ' && text.data[count] != '(') count++;
    return cy_bytes_slice(text, 0, count);
}

static void resolve_stmt_return(struct resolver *resolver, struct node *node)
{
    if (resolver->defer_depth > 0)
        (void)resolve_report(resolver, node->span, DIAG_LEAVES_DEFER, resolve_stmt_first_word(resolver, node),
                             CY_BYTES_NONE);
    resolver->function->has_return = true;
    if (!node->as.operand) return;
    uint32_t reads_start = resolver->read_count;
    resolver->return_nesting++;
    resolve_expression(resolver, node->as.operand);
    resolver->return_nesting--;
    resolver->return_serial++;
    for (uint32_t i = resolver->read_count; i > reads_start; i--) {
        const struct resolver_read *read = &resolver->reads[i - 1];
        if (read->symbol->owner != resolver->function) continue; /* of a function inside the value */
        bool last = read->symbol->return_serial != resolver->return_serial;
        read->symbol->return_serial = resolver->return_serial;
        if (last && read->node && read->symbol->handler_depth == resolver->handler_depth)
            read->node->flags |= NODE_LAST_USE;
    }
    if (resolver->return_nesting == 0) resolver->read_count = 0;
    check_literal(resolver, resolver->function->result, node->as.operand);
}

static void resolve_stmt_leave_loop(struct resolver *resolver, const struct node *node)
{
    cy_bytes word = source_slice(&resolver->unit->source, node->span);
    if (resolver->defer_depth > 0 && resolver->loop_depth == resolver->defer_loop_depth)
        (void)resolve_report(resolver, node->span,
                             resolver->loop_depth ? DIAG_LEAVES_DEFER : DIAG_OUTSIDE_LOOP, word,
                             CY_BYTES_NONE);
    else if (resolver->loop_depth == 0)
        (void)resolve_report(resolver, node->span, DIAG_OUTSIDE_LOOP, word, CY_BYTES_NONE);
}

static void resolve_stmt_if(struct resolver *resolver, struct node *node)
{
    for (uint32_t i = 0; i < node->as.branch.arm_count; i++) {
        resolve_expression(resolver, node->as.branch.arms[i].condition);
        resolve_block(resolver, &node->as.branch.arms[i].block);
    }
    if (node->as.branch.otherwise) resolve_block(resolver, node->as.branch.otherwise);
}

static void resolve_stmt_loop(struct resolver *resolver, struct node *node)
{
    resolver->loop_depth++;
    if (node->as.loop.condition) resolve_expression(resolver, node->as.loop.condition);
    resolve_block(resolver, &node->as.loop.block);
    resolver->loop_depth--;
}

static void resolve_stmt_for(struct resolver *resolver, struct node *node)
{
    resolve_expression(resolver, node->as.each.iterable);
    uint32_t first_slot = resolver->function->slot_next;
    uint32_t outer_start = resolve_open_scope(resolver);
    resolver->loop_depth++;
    for (int i = 0; i < 2; i++)
        if (node->as.each.names[i].text.count)
            node->as.each.symbols[i] = resolve_declare_local(resolver, node->as.each.names[i]);
    /* `for round in 0..10`: the name only says what is counted. */
    if (node->as.each.iterable->kind == NODE_RANGE && !node->as.each.symbols[1])
        node->as.each.symbols[0]->is_counter = true;
    resolve_block(resolver, &node->as.each.block);
    resolver->loop_depth--;
    resolve_close_scope(resolver, outer_start, first_slot, node->as.each.block.span.end);
}

/* A pattern is a literal, a range of int literals, a constant, a kind or a record type. */
static bool resolve_stmt_is_pattern(const struct node *node)
{
    const struct symbol *symbol = node->kind == NODE_NAME    ? node->as.name.symbol
                                  : node->kind == NODE_FIELD ? node->as.field.member
                                                             : NULL;
    if (symbol)
        return symbol->kind == SYMBOL_RECORD || symbol->kind == SYMBOL_KIND ||
               symbol->value_kind != KIND_COUNT ||
               (symbol->constant && (symbol->kind == SYMBOL_LOCAL || symbol->kind == SYMBOL_GLOBAL));
    if (node->kind == NODE_RANGE)
        return node->as.binary.left->kind == NODE_INT && node->as.binary.right->kind == NODE_INT;
    return ast_is_literal(node) || node->kind == NODE_ERROR;
}

static void resolve_stmt_pattern(struct resolver *resolver, struct node *node)
{
    bool is_member = false;
    struct symbol *symbol = NULL;
    if (node->kind == NODE_NAME) symbol = resolve_find_in_pattern(resolver, node->as.name.text);
    if (node->kind == NODE_FIELD) symbol = resolve_static_member(resolver, node, &is_member);
    if (is_member && !symbol) return;
    if (symbol) symbol->read_count++;
    bool names_kind = symbol && (symbol->kind == SYMBOL_RECORD || symbol->value_kind != KIND_COUNT);
    if (names_kind && node->kind == NODE_NAME) {
        resolve_mention(resolver, node->span, symbol);
        node->as.name.symbol = symbol;
    }
    if (names_kind && node->kind == NODE_FIELD) node->as.field.member = symbol;
    if (!names_kind) {
        uint32_t errors = resolver->diags->count;
        resolve_expression(resolver, node);
        if (resolver->diags->count != errors) return;
    }
    if (!resolve_stmt_is_pattern(node))
        (void)resolve_report(resolver, node->span, DIAG_BAD_PATTERN, CY_BYTES_NONE, CY_BYTES_NONE);
}

static void resolve_stmt_match(struct resolver *resolver, struct node *node)
{
    resolve_expression(resolver, node->as.match.subject);
    for (uint32_t i = 0; i < node->as.match.arm_count; i++) {
        struct match_arm *arm = &node->as.match.arms[i];
        for (uint32_t k = 0; k < arm->patterns.count; k++)
            resolve_stmt_pattern(resolver, arm->patterns.items[k]);
        resolve_block(resolver, &arm->block);
    }
    if (node->as.match.otherwise) resolve_block(resolver, node->as.match.otherwise);
}

static void resolve_stmt_try(struct resolver *resolver, struct node *node)
{
    resolver->handler_depth++;
    resolve_block(resolver, &node->as.attempt.block);
    resolver->handler_depth--;
    uint32_t first_slot = resolver->function->slot_next;
    uint32_t outer_start = resolve_open_scope(resolver);
    if (node->as.attempt.name.text.count)
        node->as.attempt.symbol = resolve_declare_local(resolver, node->as.attempt.name);
    resolve_block(resolver, &node->as.attempt.catch_block);
    resolve_close_scope(resolver, outer_start, first_slot, node->as.attempt.catch_block.span.end);
}

/* The body's own handler depth keeps outer variables from being moved out: it is emitted at every way out. */
static void resolve_stmt_defer(struct resolver *resolver, struct node *node)
{
    uint32_t outer_loops = resolver->defer_loop_depth;
    resolver->handler_depth++; /* until the block around ends */
    if (resolver->defer_depth == LIMIT_DEFER_DEPTH)
        (void)resolve_report(resolver, node->span, DIAG_LIMIT, CY_BYTES("DEFER_DEPTH"),
                             diag_number(resolver->diags, LIMIT_DEFER_DEPTH));
    resolver->handler_depth++;
    resolver->defer_depth++;
    resolver->defer_loop_depth = resolver->loop_depth;
    resolve_block(resolver, &node->as.block);
    resolver->handler_depth--;
    resolver->defer_depth--;
    resolver->defer_loop_depth = outer_loops;
}

static void resolve_stmt_local_function(struct resolver *resolver, struct node *node)
{
    struct symbol *symbol = resolve_declare_local(resolver, node->as.function->name);
    symbol->constant = true;
    symbol->function = node->as.function;
    resolve_function(resolver, node->as.function, symbol);
}

static void resolve_stmt(struct resolver *resolver, struct node *node)
{
    switch (node->kind) {
    case NODE_LET: resolve_stmt_let(resolver, node); break;
    case NODE_ASSIGN:
        if (node->as.assign.target->kind == NODE_NAME)
            resolve_stmt_assign_name(resolver, node);
        else
            resolve_stmt_assign_path(resolver, node);
        break;
    case NODE_CALL_ALONE:
        resolve_expression(resolver, node->as.operand);
        check_unused(resolver, node->as.operand);
        break;
    case NODE_RETURN: resolve_stmt_return(resolver, node); break;
    case NODE_THROW: resolve_expression(resolver, node->as.operand); break;
    case NODE_IF: resolve_stmt_if(resolver, node); break;
    case NODE_WHILE:
    case NODE_LOOP: resolve_stmt_loop(resolver, node); break;
    case NODE_FOR: resolve_stmt_for(resolver, node); break;
    case NODE_BREAK:
    case NODE_CONTINUE: resolve_stmt_leave_loop(resolver, node); break;
    case NODE_MATCH: resolve_stmt_match(resolver, node); break;
    case NODE_TRY: resolve_stmt_try(resolver, node); break;
    case NODE_DEFER: resolve_stmt_defer(resolver, node); break;
    case NODE_LOCAL_FN: resolve_stmt_local_function(resolver, node); break;
    default: CHECK(node->kind == NODE_ERROR);
    }
}
