/* SPDX-License-Identifier: MIT
 *
 * compiler/check_flow.c: walks statements with what is known about variables, and sees what is never reached.
 *
 * In:   resolved units without errors. Out: warnings.
 * Joins: a branch is walked, its changes are noted (flow_join), then undone; behind all branches a variable may have
 *        what any of them that comes out left in it. Cost: what was changed, not what is in sight.
 * Not here: expressions (check_kind.c), conditions (check_narrow.c), names (check_unused.c).
 */
#include "compiler/check_flow.h"
#include "compiler/lexer.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"

static void check_flow_block(struct flow *flow, struct block *block);

/* -- sets ---------------------------------------------------------------------------------------------------------- */

uint32_t flow_get(const struct symbol *symbol)
{
    return symbol->kinds && !symbol->changed_by_defer ? symbol->kinds : FLOW_ALL;
}

void flow_set(struct flow *flow, struct symbol *symbol, uint32_t kinds)
{
    if (symbol->kinds == kinds || symbol->changed_by_defer) return;
    if (flow->trail_count == flow->trail_capacity) {
        uint32_t capacity = flow->trail_capacity ? flow->trail_capacity * 2 : 64;
        flow->trail = mem_resize(flow->trail, capacity * sizeof *flow->trail);
        if (!flow->trail) mem_exhausted();
        flow->trail_capacity = capacity;
    }
    flow->trail[flow->trail_count++] = (struct flow_change){symbol, symbol->kinds};
    symbol->kinds = kinds;
}

void flow_undo(struct flow *flow, uint32_t mark)
{
    while (flow->trail_count > mark) {
        struct flow_change change = flow->trail[--flow->trail_count];
        change.symbol->kinds = change.before;
    }
}

/* -- branches ------------------------------------------------------------------------------------------------------ */

struct check_flow_joined {
    struct symbol *symbol;
    uint32_t kinds; /* in the branches that changed it */
    uint32_t branch_count;
};
struct check_flow_join {
    uint32_t mark;
    uint32_t branch_count; /* that come out at the end */
    struct map index;      /* by symbol */
    struct check_flow_joined *items;
    uint32_t count, capacity;
    bool softly; /* a branch left by a call that never returns */
};

static void check_flow_join_begin(struct flow *flow, struct check_flow_join *join)
{
    *join = (struct check_flow_join){.mark = flow->trail_count};
    map_init(&join->index, (hash_seed){0, 0});
}

static void check_flow_join_add(struct check_flow_join *join, struct symbol *symbol)
{
    struct map_entry *entry =
        map_insert(&join->index, cy_bytes_of((const uint8_t *)&symbol, sizeof symbol), NULL);
    if (!entry) mem_exhausted();
    if (entry->value.number == 0) {
        if (join->count == join->capacity) {
            join->capacity = join->capacity ? join->capacity * 2 : 8;
            join->items = mem_resize(join->items, join->capacity * sizeof *join->items);
            if (!join->items) mem_exhausted();
        }
        join->items[join->count++] = (struct check_flow_joined){.symbol = symbol};
        entry->value.number = join->count;
    }
    struct check_flow_joined *joined = &join->items[entry->value.number - 1];
    joined->kinds |= flow_get(symbol);
    joined->branch_count++;
}

/* The branch that was just walked. What was known before it counts again. */
static void check_flow_join_branch(struct flow *flow, struct check_flow_join *join)
{
    if (flow->reachable) {
        uint32_t stamp = ++flow->stamp;
        join->branch_count++;
        for (uint32_t i = join->mark; i < flow->trail_count; i++) {
            struct symbol *symbol = flow->trail[i].symbol;
            if (symbol->flow_stamp == stamp) continue;
            symbol->flow_stamp = stamp;
            check_flow_join_add(join, symbol);
        }
    } else if (flow->left_softly) {
        join->softly = true;
    }
}

static void check_flow_join_end(struct flow *flow, struct check_flow_join *join)
{
    flow_undo(flow, join->mark);
    for (uint32_t i = 0; i < join->count; i++) {
        struct check_flow_joined *joined = &join->items[i];
        uint32_t kinds = joined->kinds;
        if (joined->branch_count < join->branch_count) kinds |= flow_get(joined->symbol);
        flow_set(flow, joined->symbol, kinds);
    }
    flow->reachable = join->branch_count > 0;
    if (!flow->reachable) flow->left_softly = join->softly;
    map_fini(&join->index);
    mem_free(join->items);
}

/* -- what loops, handlers and defers assign ------------------------------------------------------------------------ */

static void check_flow_forget_block(struct flow *flow, const struct block *block, bool by_defer);

static void check_flow_forget(struct flow *flow, const struct node *node, bool by_defer)
{
    switch (node->kind) {
    case NODE_ASSIGN: {
        const struct node *target = node->as.assign.target;
        struct symbol *symbol = target->kind == NODE_NAME ? target->as.name.symbol : NULL;
        if (!symbol || symbol->kind != SYMBOL_LOCAL) return;
        flow_set(flow, symbol, FLOW_ALL);
        if (by_defer) symbol->changed_by_defer = true;
        return;
    }
    case NODE_IF:
        for (uint32_t i = 0; i < node->as.branch.arm_count; i++)
            check_flow_forget_block(flow, &node->as.branch.arms[i].block, by_defer);
        if (node->as.branch.otherwise) check_flow_forget_block(flow, node->as.branch.otherwise, by_defer);
        return;
    case NODE_MATCH:
        for (uint32_t i = 0; i < node->as.match.arm_count; i++)
            check_flow_forget_block(flow, &node->as.match.arms[i].block, by_defer);
        if (node->as.match.otherwise) check_flow_forget_block(flow, node->as.match.otherwise, by_defer);
        return;
    case NODE_WHILE:
    case NODE_LOOP: check_flow_forget_block(flow, &node->as.loop.block, by_defer); return;
    case NODE_FOR: check_flow_forget_block(flow, &node->as.each.block, by_defer); return;
    case NODE_TRY:
        check_flow_forget_block(flow, &node->as.attempt.block, by_defer);
        check_flow_forget_block(flow, &node->as.attempt.catch_block, by_defer);
        return;
    case NODE_DEFER: check_flow_forget_block(flow, &node->as.block, by_defer); return;
    default: return; /* an inner function assigns only what is its own */
    }
}

/* What the block assigns is unknown from here on. */
static void check_flow_forget_block(struct flow *flow, const struct block *block, bool by_defer)
{
    for (uint32_t i = 0; i < block->statements.count; i++)
        check_flow_forget(flow, block->statements.items[i], by_defer);
}

/* -- simple statements --------------------------------------------------------------------------------------------- */

/* The kinds of a value where `annotation` was checked. */
static uint32_t check_flow_checked(struct flow *flow, const struct annotation *annotation,
                                   const struct node *value, uint32_t kinds, cy_bytes user)
{
    if (!annotation) return kinds;
    uint32_t allowed = flow_annotation_kinds(annotation);
    flow_require(flow, value, kinds, allowed, user);
    uint32_t both = kinds & allowed;
    return both & FLOW_ALL ? both : allowed;
}

static void check_flow_let(struct flow *flow, struct node *node)
{
    uint32_t kinds = node->as.let.value ? flow_kinds(flow, node->as.let.value) : FLOW_NIL | FLOW_NIL_SAID;
    if (node->as.let.value)
        kinds = check_flow_checked(flow, node->as.let.annotation, node->as.let.value, kinds,
                                   flow_text(flow, "`%`", "`%`", node->as.let.name.text));
    if (node->as.let.symbol->kind == SYMBOL_LOCAL) flow_set(flow, node->as.let.symbol, kinds);
}

static void check_flow_assign(struct flow *flow, struct node *node)
{
    struct node *target = node->as.assign.target, *value = node->as.assign.value;
    struct symbol *symbol = target->kind == NODE_NAME ? target->as.name.symbol : NULL;
    for (struct node *left = target; left; left = ast_left(left)) {
        if (left->kind == NODE_INDEX) (void)flow_kinds(flow, left->as.index.index);
        struct node *root = ast_left(left);
        if (!root || root->kind != NODE_NAME || !root->as.name.symbol) continue;
        bool field = left->kind == NODE_FIELD && !left->as.field.member;
        if (!field && left->kind != NODE_INDEX) continue;
        uint32_t allowed = FLOW_KIND(KIND_MAP) | FLOW_KIND(KIND_RECORD);
        allowed |= field ? FLOW_KIND(KIND_REF) : FLOW_KIND(KIND_LIST);
        if (root->as.name.symbol->kind == SYMBOL_LOCAL)
            flow_require(flow, root, flow_get(root->as.name.symbol), allowed,
                         field ? flow_text(flow, "`.% =`", "`.% =`", left->as.field.name.text)
                               : CY_BYTES("`[ ] =`"));
    }
    uint32_t kinds = flow_kinds(flow, value);
    if (!symbol || symbol->kind != SYMBOL_LOCAL) return;
    if (node->as.assign.form == ASSIGN_ADD)
        kinds = flow_sum(flow, target, flow_get(symbol), value, kinds);
    else if (node->as.assign.form == ASSIGN_APPEND) {
        flow_require(flow, target, flow_get(symbol), FLOW_KIND(KIND_LIST), CY_BYTES("`+ [ ]`"));
        kinds = FLOW_KIND(KIND_LIST);
    } else {
        kinds = check_flow_checked(flow, symbol->annotation, value, kinds,
                                   flow_text(flow, "`%`", "`%`", symbol->name));
    }
    flow_set(flow, symbol, kinds);
}

static void check_flow_leave(struct flow *flow, const struct node *node, bool softly)
{
    flow->reachable = false;
    flow->left_softly = softly;
    flow->left_span = node->span;
}

static void check_flow_return(struct flow *flow, struct node *node)
{
    struct node *value = node->as.operand;
    const struct function_decl *function = flow->function;
    if (value) {
        uint32_t kinds = flow_kinds(flow, value);
        if (function && function->result)
            (void)check_flow_checked(flow, function->result, value, kinds,
                                     flow_text(flow, "`%`의 결과", "the result of `%`", function->name.text));
    }
    check_flow_leave(flow, node, false);
}

/* -- branches and loops -------------------------------------------------------------------------------------------- */

static void check_flow_if(struct flow *flow, struct node *node)
{
    struct check_flow_join join;
    check_flow_join_begin(flow, &join);
    uint32_t count = node->as.branch.arm_count;
    bool open = true; /* control may get past the conditions so far */
    for (uint32_t i = 0; i < count && open; i++) {
        struct if_arm *arm = &node->as.branch.arms[i];
        (void)flow_kinds(flow, arm->condition);
        uint32_t mark = flow->trail_count;
        bool literal = ast_is_literal(arm->condition);
        flow_narrow(flow, arm->condition, true);
        check_flow_block(flow, &arm->block);
        if (!literal || ast_literal_is_true(arm->condition)) check_flow_join_branch(flow, &join);
        flow_undo(flow, mark);
        flow->reachable = true;
        open = !literal || !ast_literal_is_true(arm->condition);
        if (open) flow_narrow(flow, arm->condition, false);
    }
    if (open && node->as.branch.otherwise) check_flow_block(flow, node->as.branch.otherwise);
    if (open) check_flow_join_branch(flow, &join);
    check_flow_join_end(flow, &join);
}

static void check_flow_loop(struct flow *flow, struct node *node)
{
    struct node *condition = node->as.loop.condition;
    struct flow_loop loop = {0}, *outer = flow->loop;
    check_flow_forget_block(flow, &node->as.loop.block, false);
    uint32_t mark = flow->trail_count;
    if (condition) {
        (void)flow_kinds(flow, condition);
        flow_narrow(flow, condition, true);
    }
    flow->loop = &loop;
    check_flow_block(flow, &node->as.loop.block);
    flow->loop = outer;
    flow_undo(flow, mark);
    bool endless = !condition || (ast_is_literal(condition) && ast_literal_is_true(condition));
    flow->reachable = true;
    if (condition && !loop.has_break) flow_narrow(flow, condition, false);
    if (endless && !loop.has_break) check_flow_leave(flow, node, false);
}

static void check_flow_for(struct flow *flow, struct node *node)
{
    struct node *iterable = node->as.each.iterable;
    struct flow_loop loop = {0}, *outer = flow->loop;
    uint32_t kinds = flow_kinds(flow, iterable);
    uint32_t allowed =
        FLOW_KIND(KIND_LIST) | FLOW_KIND(KIND_MAP) | FLOW_KIND(KIND_RANGE) | FLOW_KIND(KIND_STR);
    flow_require(flow, iterable, kinds, allowed, flow_text(flow, "`각각`", "`for`", CY_BYTES_NONE));
    check_flow_forget_block(flow, &node->as.each.block, false);
    uint32_t mark = flow->trail_count;
    bool ints = (kinds & FLOW_ALL) == FLOW_KIND(KIND_RANGE);
    for (int i = 0; i < 2; i++)
        if (node->as.each.symbols[i])
            flow_set(flow, node->as.each.symbols[i], ints ? FLOW_KIND(KIND_INT) : FLOW_ALL);
    check_flow_forget_block(flow, &node->as.each.block, false); /* the loop's own variables too */
    flow->loop = &loop;
    check_flow_block(flow, &node->as.each.block);
    flow->loop = outer;
    flow_undo(flow, mark);
    flow->reachable = true;
}

/* The kinds a pattern matches; *whole_out: every value of them. */
static uint32_t check_flow_pattern(const struct node *pattern, bool *whole_out)
{
    const struct symbol *symbol = pattern->kind == NODE_NAME    ? pattern->as.name.symbol
                                  : pattern->kind == NODE_FIELD ? pattern->as.field.member
                                                                : NULL;
    *whole_out = false;
    if (pattern->kind == NODE_RANGE) return FLOW_KIND(KIND_INT);
    if (ast_is_literal(pattern)) {
        uint32_t kinds = FLOW_KIND(ast_value_kind(pattern));
        *whole_out = kinds == FLOW_NIL;
        return kinds & FLOW_NUMBER ? FLOW_NUMBER : kinds;
    }
    if (symbol && symbol->kind == SYMBOL_RECORD) return FLOW_KIND(KIND_RECORD);
    if (symbol && symbol->value_kind != KIND_COUNT && symbol->kind != SYMBOL_LOCAL &&
        symbol->kind != SYMBOL_GLOBAL) {
        *whole_out = true;
        return FLOW_KIND(symbol->value_kind);
    }
    return FLOW_ALL;
}

static void check_flow_subject(struct flow *flow, struct symbol *symbol, uint32_t kept)
{
    if (!symbol) return;
    uint32_t kinds = flow_get(symbol) & (kept | FLOW_NIL_SAID);
    if (!(kinds & FLOW_NIL)) kinds &= ~FLOW_NIL_SAID;
    if ((kinds & FLOW_ALL) == FLOW_NIL) kinds |= FLOW_NIL_SAID;
    flow_set(flow, symbol, kinds & FLOW_ALL ? kinds : FLOW_ALL);
}

static void check_flow_match(struct flow *flow, struct node *node)
{
    struct node *subject = node->as.match.subject;
    struct symbol *symbol = subject->kind == NODE_NAME ? subject->as.name.symbol : NULL;
    if (symbol && symbol->kind != SYMBOL_LOCAL) symbol = NULL;
    (void)flow_kinds(flow, subject);
    struct check_flow_join join;
    check_flow_join_begin(flow, &join);
    uint32_t rest = FLOW_ALL;
    for (uint32_t i = 0; i < node->as.match.arm_count; i++) {
        struct match_arm *arm = &node->as.match.arms[i];
        uint32_t matched = 0, whole_kinds = 0;
        for (uint32_t k = 0; k < arm->patterns.count; k++) {
            bool whole;
            uint32_t kinds = check_flow_pattern(arm->patterns.items[k], &whole);
            matched |= kinds;
            if (whole) whole_kinds |= kinds;
        }
        check_flow_subject(flow, symbol, matched & rest);
        check_flow_block(flow, &arm->block);
        check_flow_join_branch(flow, &join);
        flow_undo(flow, join.mark);
        flow->reachable = true;
        rest &= ~whole_kinds;
    }
    check_flow_subject(flow, symbol, rest);
    if (node->as.match.otherwise) check_flow_block(flow, node->as.match.otherwise);
    check_flow_join_branch(flow, &join);
    check_flow_join_end(flow, &join);
}

/* The catch may begin at any place of the try. */
static void check_flow_try(struct flow *flow, struct node *node)
{
    struct check_flow_join join;
    check_flow_join_begin(flow, &join);
    check_flow_block(flow, &node->as.attempt.block);
    check_flow_join_branch(flow, &join);
    flow_undo(flow, join.mark);
    flow->reachable = true;
    check_flow_forget_block(flow, &node->as.attempt.block, false);
    check_flow_block(flow, &node->as.attempt.catch_block);
    check_flow_join_branch(flow, &join);
    check_flow_join_end(flow, &join);
}

/* It runs when its block ends, with what the variables have then. */
static void check_flow_defer(struct flow *flow, struct node *node)
{
    check_flow_forget_block(flow, &node->as.block, true);
    struct flow inner = {
        .compilation = flow->compilation, .unit = flow->unit, .reachable = true, .stamp = flow->stamp};
    for (uint32_t i = flow->trail_count; i > 0; i--) flow_set(&inner, flow->trail[i - 1].symbol, FLOW_ALL);
    check_flow_block(&inner, &node->as.block);
    flow_undo(&inner, 0);
    flow->stamp = inner.stamp;
    mem_free(inner.trail);
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

static void check_flow_statement(struct flow *flow, struct node *node)
{
    switch (node->kind) {
    case NODE_LET: check_flow_let(flow, node); break;
    case NODE_ASSIGN: check_flow_assign(flow, node); break;
    case NODE_CALL_ALONE:
        (void)flow_kinds(flow, node->as.operand);
        if (flow_never_returns(node->as.operand)) check_flow_leave(flow, node, true);
        break;
    case NODE_RETURN: check_flow_return(flow, node); break;
    case NODE_THROW:
        (void)flow_kinds(flow, node->as.operand);
        check_flow_leave(flow, node, false);
        break;
    case NODE_IF: check_flow_if(flow, node); break;
    case NODE_WHILE:
    case NODE_LOOP: check_flow_loop(flow, node); break;
    case NODE_FOR: check_flow_for(flow, node); break;
    case NODE_BREAK:
        if (flow->loop) flow->loop->has_break = true;
        check_flow_leave(flow, node, false);
        break;
    case NODE_CONTINUE: check_flow_leave(flow, node, false); break;
    case NODE_MATCH: check_flow_match(flow, node); break;
    case NODE_TRY: check_flow_try(flow, node); break;
    case NODE_DEFER: check_flow_defer(flow, node); break;
    case NODE_LOCAL_FN: flow_function(flow, node->as.function); break;
    default: break;
    }
}

static void check_flow_block(struct flow *flow, struct block *block)
{
    for (uint32_t i = 0; i < block->statements.count; i++) {
        struct node *node = block->statements.items[i];
        if (!flow->reachable && !flow->left_softly) {
            struct diag *diag = diag_report_0(&flow->compilation->warnings, &flow->unit->source, node->span,
                                              WARNING_UNREACHABLE);
            diag_add_label(diag, DIAG_LABEL_LEFT_HERE, &flow->unit->source, flow->left_span);
        }
        if (!flow->reachable) return; /* said once; nothing is known there */
        check_flow_statement(flow, node);
    }
}

void flow_function(struct flow *flow, struct function_decl *function)
{
    struct flow outer = *flow;
    uint32_t mark = flow->trail_count;
    flow->function = function;
    flow->loop = NULL;
    flow->reachable = true;
    for (uint32_t i = 0; i < function->param_count; i++) {
        const struct param *param = &function->params[i];
        if (param->default_value) (void)flow_kinds(flow, param->default_value);
        flow_set(flow, param->symbol, flow_annotation_kinds(param->annotation));
    }
    check_flow_block(flow, &function->body);
    flow_undo(flow, mark);
    flow->function = outer.function;
    flow->loop = outer.loop;
    flow->reachable = outer.reachable;
    flow->left_softly = outer.left_softly;
    flow->left_span = outer.left_span;
}

void check_flow_units(struct compilation *compilation)
{
    struct flow flow = {.compilation = compilation};
    for (uint32_t i = 0; i < compilation->units.count; i++) {
        struct unit *unit = compilation->units.items[i];
        if (unit->is_std) continue;
        flow.unit = unit;
        for (uint32_t k = 0; k < unit->declarations.count; k++) {
            struct node *node = unit->declarations.items[k];
            flow.reachable = true;
            if (node->kind == NODE_LET) check_flow_let(&flow, node);
            if (node->kind == NODE_FN || node->kind == NODE_TEST) flow_function(&flow, node->as.function);
            flow_undo(&flow, 0);
        }
    }
    mem_free(flow.trail);
}
