/* SPDX-License-Identifier: MIT
 *
 * compiler/parse_expr.c: expressions.
 *
 *      or  <  and  <  == != < <= > >=  <  ..  <  |  <  ^  <  &  <  << >>  <  + -  <  * / %  <  - ~ !  <  call [ ] .
 *
 * In:   tokens. Out: nodes; NODE_ERROR where none could be read.
 * Invariant: `(`, `[` and `-` continue an expression only on the line where it stands; every other binary operator and
 *            `.` may lead the next line. Long chains grow to the left without recursion.
 */
#include "compiler/parse.h"

#include "vm/base/check.h"

enum {
    PARSE_EXPR_LOOSEST = 1,
    PARSE_EXPR_COMPARISON = 3,
    PARSE_EXPR_RANGE = 4,
};

static int parse_expr_precedence(uint8_t kind)
{
    switch (kind) {
    case TOKEN_OR: return PARSE_EXPR_LOOSEST;
    case TOKEN_AND: return 2;
    case TOKEN_EQ:
    case TOKEN_NE:
    case TOKEN_LT:
    case TOKEN_LE:
    case TOKEN_GT:
    case TOKEN_GE: return PARSE_EXPR_COMPARISON;
    case TOKEN_RANGE: return PARSE_EXPR_RANGE;
    case TOKEN_BAR: return 5;
    case TOKEN_CARET: return 6;
    case TOKEN_AMPERSAND: return 7;
    case TOKEN_SHIFT_LEFT:
    case TOKEN_SHIFT_RIGHT: return 8;
    case TOKEN_PLUS:
    case TOKEN_MINUS: return 9;
    case TOKEN_STAR:
    case TOKEN_SLASH:
    case TOKEN_PERCENT: return 10;
    default: return 0;
    }
}

static struct node *parse_expr_unary(struct parser *parser);

static struct node *parse_expr_error(struct parser *parser)
{
    return ast_node(parser->arena, NODE_ERROR, parser->current.span);
}

bool parse_begins_expression(const struct parser *parser)
{
    switch (parser->current.kind) {
    case TOKEN_NAME:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_STR:
    case TOKEN_TEXT_BEGIN:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NIL:
    case TOKEN_PAREN_OPEN:
    case TOKEN_BRACKET_OPEN:
    case TOKEN_BRACE_OPEN:
    case TOKEN_MINUS:
    case TOKEN_TILDE:
    case TOKEN_NOT:
    case TOKEN_FN:
    case TOKEN_SPAWN:
    case TOKEN_REF: return true;
    case TOKEN_TEST: return parser->ahead.kind == TOKEN_DOT;
    default: return false;
    }
}

/* -- literals ------------------------------------------------------------------------------------------------------ */

static struct node *parse_expr_int(struct parser *parser, bool negative, struct span start)
{
    struct token token = parser->current;
    struct node *node = ast_node(parser->arena, NODE_INT, span_join(start, token.span));
    uint64_t magnitude = token.integer;
    if (!token.bit_pattern && magnitude > (uint64_t)INT64_MAX && !negative) {
        (void)diag_report_1(&parser->compilation->diags, &parser->unit->source, token.span,
                            DIAG_INTEGER_TOO_LARGE, source_slice(&parser->unit->source, token.span));
    }
    node->as.integer = (int64_t)(negative ? 0 - magnitude : magnitude);
    parse_advance(parser);
    return node;
}

/* At TEXT_BEGIN: parts of text and expressions in turn; empty text is left out. */
static struct node *parse_expr_text(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_TEXT, parser->current.span);
    if (!parse_enter(parser)) return parse_leave(parser), parse_expr_error(parser);
    for (;;) {
        uint8_t kind = parser->current.kind;
        if (parser->current.text.count) {
            struct node *part = ast_node(parser->arena, NODE_STR, parser->current.span);
            part->as.text = parser->current.text;
            ast_list_add(parser->arena, &node->as.items, part);
        }
        parse_advance(parser);
        if (kind == TOKEN_TEXT_END) break;
        ast_list_add(parser->arena, &node->as.items, parse_expression(parser));
        while (!parse_at(parser, TOKEN_TEXT_MIDDLE) && !parse_at(parser, TOKEN_TEXT_END) &&
               !parse_at(parser, TOKEN_END)) {
            parse_report_expected(parser, CY_BYTES("`)`"));
            parse_advance(
                parser); /* to the end of this interpolation: the string's other parts are still worth reading */
        }
        if (parse_at(parser, TOKEN_END)) break;
    }
    node->span = span_join(node->span, parser->previous);
    parse_leave(parser);
    return node;
}

/* Whether what follows may stand inside of brackets after a mistake in them. Over the end of a line only when the lexer
 * met something unreadable: what is missing otherwise is often the closing bracket itself. */
static bool parse_expr_goes_on(const struct parser *parser, uint32_t depth, bool over_lines)
{
    if (parse_at(parser, TOKEN_END) || parse_at_declaration(parser)) return false;
    if (!parser->current.line_start || depth > 0) return true;
    return over_lines && !parse_begins_statement(parser->current.kind);
}

/* After a mistake inside of brackets: on to their closing one, if that is there, and behind it all is well again.
 * Without this the `}` of a map would close the block around. */
static void parse_expr_skip_to_close(struct parser *parser, uint8_t closing)
{
    bool over_lines = parser->current.broken;
    uint32_t depth = 0;
    for (; parse_expr_goes_on(parser, depth, over_lines); parse_advance(parser)) {
        switch (parser->current.kind) {
        case TOKEN_PAREN_OPEN:
        case TOKEN_BRACKET_OPEN:
        case TOKEN_BRACE_OPEN: depth++; break;
        case TOKEN_PAREN_CLOSE:
        case TOKEN_BRACKET_CLOSE:
        case TOKEN_BRACE_CLOSE:
            if (depth == 0) {
                if (!parse_take(parser, closing)) return;
                parser->panicking = false;
                return;
            }
            depth--;
            break;
        default: break;
        }
        over_lines = over_lines || parser->current.broken;
    }
}

static void parse_expr_close(struct parser *parser, struct node *node, uint8_t closing, struct span opening)
{
    if (!parse_expect_close(parser, closing, opening)) parse_expr_skip_to_close(parser, closing);
    node->span = span_join(node->span, parser->previous);
}

static struct node *parse_expr_list(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_LIST, parser->current.span);
    parse_advance(parser);
    while (!parse_at(parser, TOKEN_BRACKET_CLOSE) && !parser->panicking) {
        ast_list_add(parser->arena, &node->as.items, parse_expression(parser));
        if (!parse_take(parser, TOKEN_COMMA)) break;
    }
    parse_expr_close(parser, node, TOKEN_BRACKET_CLOSE, node->span);
    return node;
}

/* A word before `:` is a str key; anything else is an expression. */
static struct node *parse_expr_map(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_MAP, parser->current.span);
    parse_advance(parser);
    while (!parse_at(parser, TOKEN_BRACE_CLOSE) && !parser->panicking) {
        struct node *key;
        if (parse_at_word(parser) && parser->ahead.kind == TOKEN_COLON) {
            key = ast_node(parser->arena, NODE_STR, parser->current.span);
            key->as.text = parser->current.text;
            parse_advance(parser);
        } else {
            key = parse_expression(parser);
        }
        if (!parse_expect(parser, TOKEN_COLON)) break;
        ast_list_add(parser->arena, &node->as.items, key);
        ast_list_add(parser->arena, &node->as.items, parse_expression(parser));
        if (!parse_take(parser, TOKEN_COMMA)) break;
    }
    parse_expr_close(parser, node, TOKEN_BRACE_CLOSE, node->span);
    return node; /* after a mistake its `}` is taken all the same, or it would close the block around */
}

/* -- operands ------------------------------------------------------------------------------------------------------ */

/* `() => 1`, `(a, b) => a`: the lexer says so when it comes to the mark. */
static bool parse_expr_is_lambda_head(const struct parser *parser, struct span opening)
{
    cy_bytes line = cy_bytes_skip(parser->unit->source.text, opening.end);
    line = cy_bytes_slice(line, 0, cy_bytes_find(line, '\n'));
    cy_bytes rest = cy_bytes_skip(line, cy_bytes_find(line, ')'));
    if (rest.count > 0) rest = cy_bytes_skip(rest, 1);
    while (rest.count > 0 && rest.data[0] == ' ') rest = cy_bytes_skip(rest, 1);
    return cy_bytes_start_with(rest, CY_BYTES("=>"));
}

static struct node *parse_expr_parens(struct parser *parser)
{
    struct span start = parser->current.span;
    parse_advance(parser);
    bool several = parse_at(parser, TOKEN_PAREN_CLOSE) || parser->ahead.kind == TOKEN_COMMA;
    if (several && parse_expr_is_lambda_head(parser, start)) {
        while (!parse_take(parser, TOKEN_PAREN_CLOSE) && !parse_at(parser, TOKEN_END)) parse_advance(parser);
        parser->panicking = true;
        return parse_expr_error(parser);
    }
    struct node *node = parse_expression(parser);
    if (parse_at(parser, TOKEN_ASSIGN) && !parser->panicking) {
        (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, parser->current.span,
                            DIAG_ASSIGN_IN_CONDITION);
        parse_advance(parser);
        (void)parse_expression(parser);
    }
    if (!parse_expect_close(parser, TOKEN_PAREN_CLOSE, start))
        parse_expr_skip_to_close(parser, TOKEN_PAREN_CLOSE);
    node->flags |= NODE_IN_PARENS;
    node->span = span_join(start, parser->previous);
    return node;
}

static struct node *parse_expr_ref(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_REF, parser->current.span);
    parse_advance(parser);
    struct span opening = parser->current.span;
    (void)parse_expect(parser, TOKEN_PAREN_OPEN);
    node->as.operand = parse_expression(parser);
    parse_expr_close(parser, node, TOKEN_PAREN_CLOSE, opening);
    return node;
}

static struct node *parse_expr_spawn(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_SPAWN, parser->current.span);
    if (!parse_enter(parser)) return parse_leave(parser), node->kind = NODE_ERROR, node;
    parse_advance(parser);
    struct node *call = parse_expr_unary(parser);
    parse_leave(parser);
    if (call->kind != NODE_CALL)
        (void)parse_report(parser, call->span, DIAG_SPAWN_WHAT, CY_BYTES_NONE, CY_BYTES_NONE);
    node->as.operand = call;
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_expr_function(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_FUNCTION, parser->current.span);
    parse_advance(parser);
    node->as.function = parse_function_rest(parser, (struct word){0}, node->span);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_expr_simple(struct parser *parser, uint8_t kind)
{
    struct node *node = ast_node(parser->arena, kind, parser->current.span);
    switch (kind) {
    case NODE_BOOL: node->as.boolean = parse_at(parser, TOKEN_TRUE); break;
    case NODE_FLOAT: node->as.real = parser->current.real; break;
    case NODE_STR: node->as.text = parser->current.text; break;
    case NODE_NAME: node->as.name.text = parser->current.text; break;
    default: break;
    }
    parse_advance(parser);
    return node;
}

static struct node *parse_expr_nothing(struct parser *parser)
{
    struct node *node = parse_expr_error(parser);
    if (parse_report_decrement_before(parser)) return node;
    (void)parse_report(parser, parser->current.span, DIAG_EXPECTED_EXPRESSION,
                       parse_describe(parser, &parser->current), CY_BYTES_NONE);
    return node;
}

/* `test.equal(...)`: the keyword begins a declaration only, so before a dot it is the module, in either spelling. */
static struct node *parse_expr_test_module(struct parser *parser)
{
    if (parser->ahead.kind != TOKEN_DOT) return parse_expr_nothing(parser);
    struct node *node = parse_expr_simple(parser, NODE_NAME);
    node->as.name.text = CY_BYTES("test");
    return node;
}

static struct node *parse_expr_operand(struct parser *parser)
{
    switch (parser->current.kind) {
    case TOKEN_NAME: return parse_expr_simple(parser, NODE_NAME);
    case TOKEN_INT: return parse_expr_int(parser, false, parser->current.span);
    case TOKEN_FLOAT: return parse_expr_simple(parser, NODE_FLOAT);
    case TOKEN_STR: return parse_expr_simple(parser, NODE_STR);
    case TOKEN_TEXT_BEGIN: return parse_expr_text(parser);
    case TOKEN_TRUE:
    case TOKEN_FALSE: return parse_expr_simple(parser, NODE_BOOL);
    case TOKEN_NIL: return parse_expr_simple(parser, NODE_NIL);
    case TOKEN_PAREN_OPEN: return parse_expr_parens(parser);
    case TOKEN_BRACKET_OPEN: return parse_expr_list(parser);
    case TOKEN_BRACE_OPEN: return parse_expr_map(parser);
    case TOKEN_FN: return parse_expr_function(parser);
    case TOKEN_SPAWN: return parse_expr_spawn(parser);
    case TOKEN_REF: return parse_expr_ref(parser);
    case TOKEN_TEST: return parse_expr_test_module(parser);
    default: return parse_expr_nothing(parser);
    }
}

/* -- behind an operand --------------------------------------------------------------------------------------------- */

struct parse_expr_arguments {
    struct argument *items;
    uint32_t count, capacity;
};

static void parse_expr_add_argument(struct parser *parser, struct parse_expr_arguments *list,
                                    struct argument argument)
{
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity ? list->capacity * 2 : 4;
        list->items = arena_grow(parser->arena, list->items, list->capacity * sizeof *list->items,
                                 capacity * sizeof *list->items);
        list->capacity = capacity;
    }
    list->items[list->count++] = argument;
}

static struct node *parse_expr_call(struct parser *parser, struct node *callee)
{
    struct node *node = ast_node(parser->arena, NODE_CALL, callee->span);
    struct parse_expr_arguments list = {0};
    struct span opening = parser->current.span;
    parse_advance(parser);
    while (!parse_at(parser, TOKEN_PAREN_CLOSE) && !parser->panicking) {
        struct argument argument = {0};
        if (parse_at_word(parser) && parser->ahead.kind == TOKEN_COLON) {
            argument.name = (struct word){parser->current.text, parser->current.span};
            parse_advance(parser);
            parse_advance(parser);
        } else if (list.count && list.items[list.count - 1].name.text.count) {
            (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, parser->current.span,
                                DIAG_POSITIONAL_LATE);
        }
        argument.value = parse_expression(parser);
        parse_expr_add_argument(parser, &list, argument);
        if (!parse_take(parser, TOKEN_COMMA)) break;
    }
    parse_expr_close(parser, node, TOKEN_PAREN_CLOSE, opening);
    node->as.call.callee = callee;
    node->as.call.arguments = list.items;
    node->as.call.argument_count = list.count;
    return node;
}

static struct node *parse_expr_field(struct parser *parser, struct node *target)
{
    struct node *node = ast_node(parser->arena, NODE_FIELD, target->span);
    parse_advance(parser);
    node->as.field.target = target;
    enum value_kind kind;
    if (target->kind == NODE_NAME && kind_find(target->as.name.text, &kind))
        parser->unit->kind_words |= 1u << kind;
    if (parse_at_word(parser)) {
        node->as.field.name = (struct word){parser->current.text, parser->current.span};
        parse_advance(parser);
    } else {
        parse_report_expected(parser, parse_words(parser, "이름", "a name"));
    }
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_expr_index(struct parser *parser, struct node *target)
{
    struct node *node = ast_node(parser->arena, NODE_INDEX, target->span);
    struct span opening = parser->current.span;
    parse_advance(parser);
    node->as.index.target = target;
    node->as.index.index = parse_expression(parser);
    parse_expr_close(parser, node, TOKEN_BRACKET_CLOSE, opening);
    return node;
}

static struct node *parse_expr_postfix(struct parser *parser, struct node *node)
{
    while (!parser->panicking) {
        if (parse_at(parser, TOKEN_DOT))
            node = parse_expr_field(parser, node);
        else if (parser->current.line_start)
            break;
        else if (parse_at(parser, TOKEN_PAREN_OPEN))
            node = parse_expr_call(parser, node);
        else if (parse_at(parser, TOKEN_BRACKET_OPEN))
            node = parse_expr_index(parser, node);
        else
            break;
    }
    return node;
}

static struct node *parse_expr_unary(struct parser *parser)
{
    uint8_t kind = parser->current.kind;
    if (kind != TOKEN_MINUS && kind != TOKEN_TILDE && kind != TOKEN_NOT)
        return parse_expr_postfix(parser, parse_expr_operand(parser));

    struct span start = parser->current.span;
    if (!parse_enter(parser)) return parse_leave(parser), parse_expr_error(parser);
    parse_advance(parser);
    struct node *node;
    if (kind == TOKEN_MINUS && parse_at(parser, TOKEN_INT)) {
        node = parse_expr_int(parser, true, start); /* the smallest int has no positive twin */
    } else {
        node = ast_node(parser->arena, NODE_UNARY, start);
        node->op = kind;
        node->as.operand = parse_expr_unary(parser);
        node->span = span_join(start, parser->previous);
    }
    parse_leave(parser);
    return node;
}

/* -- between operands ---------------------------------------------------------------------------------------------- */

static bool parse_expr_is_bare(const struct node *node, uint8_t kind)
{
    return node->kind == kind && !(node->flags & NODE_IN_PARENS);
}

/* What precedence alone would accept and a reader would misread. */
static void parse_expr_check_pair(struct parser *parser, const struct node *left, struct token op)
{
    struct diag_list *diags = &parser->compilation->diags;
    int precedence = parse_expr_precedence(op.kind);
    if (precedence >= PARSE_EXPR_COMPARISON && parse_expr_is_bare(left, NODE_UNARY) && left->op == TOKEN_NOT)
        (void)diag_report_0(diags, &parser->unit->source, left->span, DIAG_NOT_NEEDS_PARENS);
    bool chain = precedence == PARSE_EXPR_COMPARISON && parse_expr_is_bare(left, NODE_BINARY) &&
                 parse_expr_precedence(left->op) == PARSE_EXPR_COMPARISON;
    if (chain) (void)diag_report_0(diags, &parser->unit->source, op.span, DIAG_COMPARISON_CHAIN);
}

static struct node *parse_expr_binary(struct parser *parser, int loosest)
{
    struct node *left = parse_expr_unary(parser);
    while (!parser->panicking) {
        struct token op = parser->current;
        int precedence = parse_expr_precedence(op.kind);
        if (precedence == 0 || precedence < loosest) break;
        if (op.kind == TOKEN_MINUS && op.line_start) break;
        if (op.kind == TOKEN_RANGE && parse_expr_is_bare(left, NODE_RANGE))
            break; /* a..b..c: said by the statement */
        parse_expr_check_pair(parser, left, op);
        parse_advance(parser);
        struct node *node =
            ast_node(parser->arena, op.kind == TOKEN_RANGE ? NODE_RANGE : NODE_BINARY, left->span);
        node->op = op.kind;
        node->as.binary.left = left;
        node->as.binary.right = parse_expr_binary(parser, precedence + 1);
        node->as.binary.op_span = op.span;
        node->span = span_join(left->span, parser->previous);
        left = node;
    }
    return left;
}

/* `x => x + 1`: the lexer has said so. What stands before it are parameters, and no names to look for. */
static bool parse_expr_is_lambda(const struct parser *parser)
{
    if (!parser->current.broken) return false;
    cy_bytes text = cy_bytes_skip(parser->unit->source.text, parser->previous.end);
    while (text.count > 0 && text.data[0] == ' ') text = cy_bytes_skip(text, 1);
    return cy_bytes_start_with(text, CY_BYTES("=>"));
}

struct node *parse_expression(struct parser *parser)
{
    if (!parse_enter(parser)) return parse_leave(parser), parse_expr_error(parser);
    struct node *node = parse_expr_binary(parser, PARSE_EXPR_LOOSEST);
    if (parse_expr_is_lambda(parser)) node = parse_expr_error(parser);
    parse_leave(parser);
    return node;
}

/* A pattern stops before `{`, which opens the arm: a literal, a name, name.name, one of these .. another; and the kinds
 * whose words are reserved (record, ref). */
struct node *parse_pattern(struct parser *parser)
{
    if (parse_at(parser, TOKEN_RECORD) || parse_at(parser, TOKEN_REF))
        return parse_expr_simple(parser, NODE_NAME);
    if (parse_at(parser, TOKEN_BRACE_OPEN) || !parse_begins_expression(parser)) {
        struct node *error = parse_expr_error(parser);
        (void)parse_report(parser, parser->current.span, DIAG_BAD_PATTERN, CY_BYTES_NONE, CY_BYTES_NONE);
        return error;
    }
    if (!parse_enter(parser)) return parse_leave(parser), parse_expr_error(parser);
    struct node *node = parse_expr_binary(parser, PARSE_EXPR_RANGE);
    parse_leave(parser);
    return node;
}
