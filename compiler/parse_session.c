/* SPDX-License-Identifier: MIT
 *
 * compiler/parse_session.c: one input of a session: a run of declarations, or a statement as a function.
 *
 * In:   tokens from the start of the text; what stands before the unit's skip_bytes was an input before.
 * Out:  unit->declarations; for main, where the next input begins.
 */
#include "compiler/parse.h"
#include "compiler/session.h"

static bool parse_session_at_declaration(const struct parser *parser)
{
    switch (parser->current.kind) {
    case TOKEN_IMPORT:
    case TOKEN_LET:
    case TOKEN_CONST:
    case TOKEN_RECORD:
    case TOKEN_TEST:
    case TOKEN_EXPORT: return true;
    case TOKEN_FN: return parser->ahead.kind != TOKEN_PAREN_OPEN; /* else a function without a name */
    default: return false;
    }
}

/* `fn [3]() { statement }`, exported: no source can name it. */
static void parse_session_statement(struct parser *parser)
{
    struct unit *unit = parser->unit;
    struct span start = parser->current.span;
    parser->value_wanted = true;
    struct node *statement = NULL;
    if (parse_at(parser, TOKEN_BRACE_OPEN)) { /* a block without a head is none: so it is a map */
        struct node *value = parse_expression(parser);
        statement = ast_node(parser->arena, NODE_RETURN, value->span);
        statement->as.operand = value;
    } else {
        statement = parse_statement(parser);
    }
    parser->value_wanted = false;
    parse_recover(parser);
    if (parser->current.span.start == start.start && !parse_at(parser, TOKEN_END)) parse_advance(parser);
    if (!statement) return;
    struct node *node = ast_node(parser->arena, NODE_FN, start);
    struct function_decl *function = arena_alloc_zeroed(parser->arena, sizeof *function);
    function->name = (struct word){unit->name, start};
    function->unit = unit;
    function->span = function->body.span = node->span = span_join(start, parser->previous);
    ast_list_add(parser->arena, &function->body.statements, statement);
    node->as.function = function;
    node->flags |= NODE_EXPORTED;
    ast_list_add(parser->arena, &unit->declarations, node);
}

void parse_session(struct parser *parser)
{
    struct unit *unit = parser->unit;
    const struct compile_session *session = parser->compilation->options->session;
    struct session_result result = {SESSION_NOTHING, (uint32_t)unit->source.text.count};
    while (!parse_at(parser, TOKEN_END)) {
        uint32_t start = parser->current.span.start;
        unit->declarations = (struct node_list){0};
        bool declares = parse_session_at_declaration(parser);
        if (declares)
            while (parse_session_at_declaration(parser)) parse_declaration(parser);
        else
            parse_session_statement(parser);
        if (start < unit->skip_bytes) continue;
        result.kind = declares ? SESSION_DECLARATIONS : SESSION_STATEMENT;
        if (!parse_at(parser, TOKEN_END)) result.end_bytes = parser->current.span.start;
        break;
    }
    if (result.kind == SESSION_NOTHING) unit->declarations = (struct node_list){0};
    if (unit->source.index == 0 && session->result_out) *session->result_out = result;
}
