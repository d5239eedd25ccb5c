/* SPDX-License-Identifier: MIT
 *
 * compiler/parse_stmt.c: blocks and statements.
 *
 * In:   tokens. Out: nodes.
 * Invariant: a statement ends where its expression can no longer continue; there are no separators. Only a call or an
 *            assignment is a statement. The value of return or throw starts on its line.
 */
#include "compiler/parse.h"

#include "compiler/foreign.h"
#include "vm/base/check.h"
#include "vm/base/text.h"

static struct node *parse_stmt(struct parser *parser);

/* One statement; always moves on. */
static void parse_stmt_into(struct parser *parser, struct block *block)
{
    uint32_t start = parser->current.span.start;
    struct node *node = parse_stmt(parser);
    if (node) ast_list_add(parser->arena, &block->statements, node);
    parse_recover(parser);
    if (parser->current.span.start == start && !parse_at(parser, TOKEN_BRACE_CLOSE) &&
        !parse_at_declaration(parser))
        parse_advance(parser);
}

/* At the place where a `}` is missed at last. When the indentation tells of a block inside, that one is named. */
static void parse_stmt_report_open(struct parser *parser, struct span opening)
{
    if (parser->unclosed_reported && parser->unclosed_at == parser->current.span.start) return;
    bool suspected = parser->suspect.end && parser->suspect.start > opening.start;
    if (suspected) opening = parser->suspect;
    parser->suspect = (struct span){0};
    parser->unclosed_reported = true;
    parser->unclosed_at = parser->current.span.start;
    parser->panicking = false; /* whatever was said before: this is another thing */
    opening.end = opening.start + 1;
    struct diag *diag = parse_report(parser, opening, DIAG_BLOCK_NOT_CLOSED,
                                     diag_number(&parser->compilation->diags, opening.line), CY_BYTES_NONE);
    struct span here = parser->current.span;
    if (!parse_at(parser, TOKEN_END))
        diag_add_label(diag, DIAG_LABEL_STILL_OPEN, &parser->unit->source, here);
    parser->panicking = false;
}

/* The `{` is missing, and most often only that: so what follows on the line, or further right than the line began, is
 * read as the block, with the `}` behind it. */
static void parse_stmt_headless(struct parser *parser, struct block *block, uint32_t indent)
{
    bool known = parser->panicking;
    parse_report_expected(parser, CY_BYTES("`{`"));
    if (known || parser->lexer.gave_up) return;
    bool begins = parse_begins_statement(parser->current.kind) || parse_begins_expression(parser);
    if (!begins && !parse_at(parser, TOKEN_BRACE_CLOSE)) return; /* it cannot begin a block either */
    if (!parse_enter(parser)) {
        parse_leave(parser);
        return;
    }
    uint32_t line = parser->previous.line;
    if (parser->current.span.line == line || parser->current.span.column > indent) parser->panicking = false;
    while (!parser->panicking && !parse_at(parser, TOKEN_BRACE_CLOSE) && !parse_at(parser, TOKEN_END) &&
           !parse_at_declaration(parser)) {
        if (parser->current.span.line != line && parser->current.span.column <= indent) break;
        parse_stmt_into(parser, block);
    }
    bool own = parser->current.span.line == line || parser->current.span.column == indent;
    if (!parser->panicking && own) (void)parse_take(parser, TOKEN_BRACE_CLOSE);
    parse_leave(parser);
}

struct block parse_block(struct parser *parser)
{
    struct block block = {.span = parser->current.span};
    if (parse_at(parser, TOKEN_ASSIGN) && !parser->panicking) {
        /* `if a = b {`: said, and read as a comparison, so that the errors inside the block are seen too. */
        (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, parser->current.span,
                            DIAG_ASSIGN_IN_CONDITION);
        parse_advance(parser);
        (void)parse_expression(parser);
    }
    uint32_t indent = parser->indent;
    if (!parse_at(parser, TOKEN_BRACE_OPEN)) {
        parse_stmt_headless(parser, &block, indent);
        return block;
    }
    parse_advance(parser);
    if (!parse_enter(parser)) {
        parse_leave(parser);
        return block;
    }
    while (!parse_at(parser, TOKEN_BRACE_CLOSE) && !parse_at(parser, TOKEN_END) &&
           !parse_at_declaration(parser))
        parse_stmt_into(parser, &block);
    bool left_of_it = parser->current.line_start && parser->current.span.column < indent;
    if (parse_at(parser, TOKEN_BRACE_CLOSE) && left_of_it && !parser->suspect.end)
        parser->suspect = block.span;
    if (!parse_take(parser, TOKEN_BRACE_CLOSE)) parse_stmt_report_open(parser, block.span);
    block.span = span_join(block.span, parser->previous);
    parse_leave(parser);
    return block;
}

static struct block *parse_stmt_block_on_heap(struct parser *parser)
{
    struct block *block = arena_alloc(parser->arena, sizeof *block);
    *block = parse_block(parser);
    return block;
}

static struct node *parse_stmt_begin(struct parser *parser, uint8_t kind)
{
    struct node *node = ast_node(parser->arena, kind, parser->current.span);
    parse_advance(parser);
    return node;
}

/* -- simple statements --------------------------------------------------------------------------------------------- */

static bool parse_stmt_is_target(const struct node *node)
{
    return node->kind == NODE_NAME || node->kind == NODE_INDEX || node->kind == NODE_FIELD;
}

/* Not a panic: the expression was read whole. What follows on its line is a statement of its own, or, behind a lone
 *              word, the
 * rest of something that begins with a misspelt keyword: only a block in it is worth reading. */
static void parse_stmt_report_no_statement(struct parser *parser, struct node *value)
{
    if (parser->current.broken) {
        parser->panicking = true; /* `x++`: said already */
        return;
    }
    if (parse_report_decrement_in(parser, value)) {
        parser->panicking = false; /* it was read whole */
        return;
    }
    struct diag *diag =
        diag_report_0(&parser->compilation->diags, &parser->unit->source, value->span, DIAG_NOT_A_STATEMENT);
    bool joined =
        !parser->current.line_start && !parse_at(parser, TOKEN_BRACE_CLOSE) && !parse_at(parser, TOKEN_END);
    if (value->kind != NODE_NAME || !joined) return;
    diag->nearest = parse_meant_keyword(parser, value->as.name.text);
    if (!diag->nearest.count) return;
    while (!parser->current.line_start && !parse_at(parser, TOKEN_BRACE_OPEN) &&
           !parse_at(parser, TOKEN_BRACE_CLOSE) && !parse_at(parser, TOKEN_END))
        parse_advance(parser);
    if (!parser->current.line_start && parse_at(parser, TOKEN_BRACE_OPEN)) (void)parse_block(parser);
}

/* `elsif (x) {`, `만약에 (x) {`: read as a call with a block behind it, which is never meant. */
static cy_bytes parse_stmt_meant_head(const struct parser *parser, const struct node *value)
{
    const struct node *callee = value->kind == NODE_CALL ? value->as.call.callee : NULL;
    if (!callee || callee->kind != NODE_NAME || !parse_at(parser, TOKEN_BRACE_OPEN) ||
        parser->current.line_start)
        return CY_BYTES_NONE;
    cy_bytes word = callee->as.name.text;
    if (foreign_find(word)) return parse_meant_keyword(parser, word);
    cy_bytes stem = cy_bytes_slice(word, 0, word.count - text_particle_length(word));
    return map_find(&parser->compilation->keywords, stem) ? stem : CY_BYTES_NONE;
}

/* The head, its block, and what may follow a branch, read for the errors inside. */
static void parse_stmt_refuse_head(struct parser *parser, const struct node *value, cy_bytes meant)
{
    struct diag *diag = diag_report_0(&parser->compilation->diags, &parser->unit->source,
                                      value->as.call.callee->span, DIAG_NOT_A_STATEMENT);
    diag->nearest = meant;
    (void)parse_block(parser);
    if (parse_take(parser, TOKEN_ELSE)) (void)parse_block(parser);
}

/* 만약3 (x) { ... }: a branch of the earlier dialect, read as a call and a block. */
static bool parse_stmt_is_old_branch(const struct node *value)
{
    const struct node *callee = value->kind == NODE_CALL ? value->as.call.callee : NULL;
    return callee && callee->kind == NODE_NAME && foreign_is_old_word(callee->as.name.text);
}

static struct node *parse_stmt_expression(struct parser *parser)
{
    struct span start = parser->current.span;
    struct node *value = parse_expression(parser);
    if (parser->panicking) return NULL;
    if (parse_at(parser, TOKEN_ASSIGN)) {
        struct node *node = ast_node(parser->arena, NODE_ASSIGN, start);
        node->as.assign.op_span = parser->current.span;
        if (!parse_stmt_is_target(value) && !parse_report_decrement_in(parser, value))
            (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, value->span,
                                DIAG_NOT_ASSIGNABLE);
        parse_advance(parser);
        node->as.assign.target = value;
        node->as.assign.value = parse_expression(parser);
        node->span = span_join(start, parser->previous);
        return parse_stmt_is_target(value) ? node : NULL;
    }
    if (parse_at(parser, TOKEN_BRACE_OPEN) && parse_stmt_is_old_branch(value)) {
        (void)parse_report(parser, value->span, DIAG_OLD_DIALECT, value->as.call.callee->as.name.text,
                           CY_BYTES_NONE);
        return NULL;
    }
    cy_bytes meant = parse_stmt_meant_head(parser, value);
    if (meant.count) {
        parse_stmt_refuse_head(parser, value, meant);
        return NULL;
    }
    if (parser->value_wanted && parser->depth == 0) {
        struct node *node = ast_node(parser->arena, NODE_RETURN, value->span);
        node->as.operand = value;
        return node;
    }
    if (value->kind != NODE_CALL && value->kind != NODE_SPAWN) {
        parse_stmt_report_no_statement(parser, value);
        if (value->kind == NODE_NAME)
            return NULL; /* a word that is no name either is not worth a second message */
    }
    struct node *node = ast_node(parser->arena, NODE_CALL_ALONE, value->span);
    node->as.operand = value;
    return node;
}

static struct node *parse_stmt_return(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_RETURN);
    if (parse_begins_expression(parser) && !parser->current.line_start)
        node->as.operand = parse_expression(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_throw(struct parser *parser)
{
    cy_bytes spelling = parser->current.text;
    struct node *node = parse_stmt_begin(parser, NODE_THROW);
    if (parser->current.line_start)
        (void)parse_report(parser, node->span, DIAG_VALUE_ON_LINE, spelling, CY_BYTES_NONE);
    else
        node->as.operand = parse_expression(parser);
    node->span = span_join(node->span, parser->previous);
    return node->as.operand ? node : NULL;
}

static struct node *parse_stmt_function(struct parser *parser)
{
    if (parser->ahead.kind == TOKEN_PAREN_OPEN)
        return parse_stmt_expression(parser); /* fn () { }(): a call of it */
    struct node *node = parse_stmt_begin(parser, NODE_LOCAL_FN);
    struct word name;
    if (!parse_name(parser, &name)) return NULL;
    node->as.function = parse_function_rest(parser, name, node->span);
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- branches ------------------------------------------------------------------------------------------------------ */

struct parse_stmt_arms {
    void *items;
    uint32_t count, capacity;
};

static void *parse_stmt_add_arm(struct parser *parser, struct parse_stmt_arms *arms, size_t arm_bytes)
{
    if (arms->count == arms->capacity) {
        uint32_t capacity = arms->capacity ? arms->capacity * 2 : 2;
        arms->items =
            arena_grow(parser->arena, arms->items, arms->capacity * arm_bytes, capacity * arm_bytes);
        arms->capacity = capacity;
    }
    void *arm = (char *)arms->items + arms->count++ * arm_bytes;
    return memset(arm, 0, arm_bytes);
}

/* `} elsif x {`: reported, and read as elif. On a line of its own it may be a call. */
static bool parse_stmt_at_foreign_elif(struct parser *parser)
{
    if (parser->panicking || !parse_at(parser, TOKEN_NAME) || parser->current.line_start) return false;
    const struct foreign_row *row = foreign_find(parser->current.text);
    if (!row || row->keyword != TOKEN_ELIF) return false;
    struct diag *diag = diag_report_1(&parser->compilation->diags, &parser->unit->source,
                                      parser->current.span, DIAG_UNKNOWN_NAME, parser->current.text);
    diag->nearest = parse_meant_keyword(parser, parser->current.text);
    return true;
}

/* if, any number of elif (or else if), else: one node, so that a long chain is a list and not a depth. */
static struct node *parse_stmt_if(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_IF, parser->current.span);
    struct parse_stmt_arms arms = {0};
    bool more = true;
    while (more && !parser->panicking) {
        parse_advance(parser); /* if or elif */
        struct node *condition = parse_expression(parser);
        struct block block = parse_block(parser);
        struct if_arm *arm = parse_stmt_add_arm(parser, &arms, sizeof *arm);
        *arm = (struct if_arm){condition, block};
        more = parse_at(parser, TOKEN_ELIF) || parse_stmt_at_foreign_elif(parser);
        if (parse_at(parser, TOKEN_ELSE) && parser->ahead.kind == TOKEN_IF) {
            parse_advance(parser);
            more = true;
        }
    }
    node->as.branch.arms = arms.items;
    node->as.branch.arm_count = arms.count;
    if (parse_take(parser, TOKEN_ELSE)) node->as.branch.otherwise = parse_stmt_block_on_heap(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_match(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_MATCH);
    struct parse_stmt_arms arms = {0};
    node->as.match.subject = parse_expression(parser);
    struct span opening = parser->current.span;
    if (!parse_expect(parser, TOKEN_BRACE_OPEN)) return node;
    if (!parse_enter(parser)) return parse_leave(parser), node;
    while (!parse_at(parser, TOKEN_BRACE_CLOSE) && !parse_at(parser, TOKEN_ELSE) && !parser->panicking) {
        struct match_arm arm = {0};
        do ast_list_add(parser->arena, &arm.patterns, parse_pattern(parser));
        while (parse_take(parser, TOKEN_COMMA));
        if (!parser->panicking) arm.block = parse_block(parser);
        struct match_arm *kept = parse_stmt_add_arm(parser, &arms, sizeof arm);
        *kept = arm;
    }
    node->as.match.arms = arms.items;
    node->as.match.arm_count = arms.count;
    if (!parser->panicking && parse_take(parser, TOKEN_ELSE))
        node->as.match.otherwise = parse_stmt_block_on_heap(parser);
    parse_recover(parser); /* to the `}` of this match, or it would close the block around */
    if (!parse_take(parser, TOKEN_BRACE_CLOSE)) {
        if (parse_at(parser, TOKEN_END) || parse_at_declaration(parser))
            parse_stmt_report_open(parser, opening);
        else
            (void)parse_expect_close(parser, TOKEN_BRACE_CLOSE, opening);
    }
    parse_leave(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- loops --------------------------------------------------------------------------------------------------------- */

/* `for (let i = 0; i < n; i++) {`, `for (x in xs) {`: one message. The first name in it is declared, so that the block
 * can be judged. */
static struct node *parse_stmt_for_parens(struct parser *parser, struct node *node)
{
    struct word *name = &node->as.each.names[0];
    uint32_t depth = 0;
    (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, parser->current.span,
                        DIAG_FOR_PARENS);
    parser->lexer.quiet = true;
    do {
        if (parse_at(parser, TOKEN_PAREN_OPEN)) depth++;
        if (parse_at(parser, TOKEN_PAREN_CLOSE)) depth--;
        bool names = parse_at(parser, TOKEN_NAME) && parser->ahead.kind != TOKEN_NAME;
        if (names && name->text.count == 0) *name = (struct word){parser->current.text, parser->current.span};
        parser->current.broken = false;
        parse_advance(parser);
    } while (depth > 0 && !parse_at(parser, TOKEN_END) && !parse_at(parser, TOKEN_BRACE_OPEN));
    parser->lexer.quiet = false;
    parser->current.broken = false;
    node->as.each.iterable = ast_node(parser->arena, NODE_ERROR, parser->previous);
    node->as.each.block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return name->text.count ? node : NULL;
}

/* `각각 x xs에서 {`, `각각 x xs 에서 {`: the words in the order of a Korean sentence. */
static bool parse_stmt_report_for_order(struct parser *parser, const struct word *name)
{
    if (parser->panicking || !parse_at(parser, TOKEN_NAME) || parser->current.line_start) return false;
    cy_bytes list = parser->current.text;
    size_t particle = text_particle_length(list);
    bool attached =
        particle > 0 && cy_bytes_equal(cy_bytes_skip(list, list.count - particle), CY_BYTES("에서"));
    if (!attached && parser->ahead.kind != TOKEN_IN) return false;
    if (attached) list = cy_bytes_slice(list, 0, list.count - particle);
    (void)diag_report_2(&parser->compilation->diags, &parser->unit->source, parser->current.span,
                        DIAG_FOR_ORDER, name->text, list);
    parse_advance(parser);
    (void)parse_take(parser, TOKEN_IN);
    return true;
}

/* `for routes에서 routes`: the particle hangs on the name, so the word 에서 was never seen. */
static bool parse_stmt_report_particle(struct parser *parser, const struct word *name)
{
    size_t particle = text_particle_length(name->text);
    if (particle == 0 || parse_at(parser, TOKEN_IN)) return false;
    struct diag_list *diags = &parser->compilation->diags;
    if (parser->panicking) return true;
    cy_bytes stem = cy_bytes_slice(name->text, 0, name->text.count - particle);
    cy_bytes tail = cy_bytes_skip(name->text, name->text.count - particle);
    (void)diag_report(diags, &parser->unit->source, name->span, DIAG_PARTICLE_ATTACHED, name->text, stem,
                      tail);
    parser->panicking = true;
    return true;
}

static struct node *parse_stmt_for(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_FOR);
    if (parse_at(parser, TOKEN_PAREN_OPEN)) return parse_stmt_for_parens(parser, node);
    struct word *names = node->as.each.names;
    if (!parse_name(parser, &names[0])) return NULL;
    if (parse_take(parser, TOKEN_COMMA) && !parse_name(parser, &names[1])) return NULL;
    if (parse_stmt_report_particle(parser, names[1].text.count ? &names[1] : &names[0])) return NULL;
    if (parse_stmt_report_for_order(parser, names[1].text.count ? &names[1] : &names[0])) {
        node->as.each.iterable = ast_node(parser->arena, NODE_ERROR, parser->previous);
    } else {
        if (!parse_expect(parser, TOKEN_IN)) return NULL;
        node->as.each.iterable = parse_expression(parser);
    }
    node->as.each.block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_while(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_WHILE);
    node->as.loop.condition = parse_expression(parser);
    node->as.loop.block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_loop(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_LOOP);
    node->as.loop.block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- errors -------------------------------------------------------------------------------------------------------- */

static struct node *parse_stmt_try(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_TRY);
    node->as.attempt.block = parse_block(parser);
    if (parser->panicking) return node;
    if (!parse_take(parser, TOKEN_CATCH)) {
        (void)parse_report(parser, node->span, DIAG_CATCH_MISSING, CY_BYTES_NONE, CY_BYTES_NONE);
        return node;
    }
    if (parse_at(parser, TOKEN_NAME)) (void)parse_name(parser, &node->as.attempt.name);
    node->as.attempt.catch_block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_defer(struct parser *parser)
{
    struct node *node = parse_stmt_begin(parser, NODE_DEFER);
    node->as.block = parse_block(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_stmt_refuse_block(struct parser *parser)
{
    struct span span = parser->current.span;
    (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, span, DIAG_BLOCK_ALONE);
    (void)parse_block(parser); /* read for the errors inside */
    return NULL;
}

static struct node *parse_stmt(struct parser *parser)
{
    switch (parser->current.kind) {
    case TOKEN_LET:
    case TOKEN_CONST: {
        struct node *node = parse_let(parser);
        return node->as.let.name.text.count ? node : NULL;
    }
    case TOKEN_FN: return parse_stmt_function(parser);
    case TOKEN_RETURN: return parse_stmt_return(parser);
    case TOKEN_IF: return parse_stmt_if(parser);
    case TOKEN_WHILE: return parse_stmt_while(parser);
    case TOKEN_FOR: return parse_stmt_for(parser);
    case TOKEN_LOOP: return parse_stmt_loop(parser);
    case TOKEN_BREAK: return parse_stmt_begin(parser, NODE_BREAK);
    case TOKEN_CONTINUE: return parse_stmt_begin(parser, NODE_CONTINUE);
    case TOKEN_MATCH: return parse_stmt_match(parser);
    case TOKEN_TRY: return parse_stmt_try(parser);
    case TOKEN_THROW: return parse_stmt_throw(parser);
    case TOKEN_DEFER: return parse_stmt_defer(parser);
    case TOKEN_BRACE_OPEN: return parse_stmt_refuse_block(parser);
    default: return parse_stmt_expression(parser);
    }
}

struct node *parse_statement(struct parser *parser) { return parse_stmt(parser); }
