/* SPDX-License-Identifier: MIT
 *
 * compiler/parse_decl.c: what a module declares: import, let, const, fn, record, test.
 *
 * In:   tokens from the start of a file. Out: unit->declarations in source order.
 * Not here: statements (parse_stmt.c).
 */
#include "compiler/parse.h"

#include "vm/base/check.h"
#include "vm/base/mem.h"

static struct node *parse_decl_import(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_IMPORT, parser->current.span);
    parse_advance(parser);
    if (!parse_at(parser, TOKEN_STR)) {
        if (!parse_name(parser, &node->as.import.name)) return node;
        if (!parse_expect(parser, TOKEN_ASSIGN)) return node;
    }
    if (!parse_at(parser, TOKEN_STR)) {
        parse_report_expected(parser, parse_words(parser, "경로 문자열", "a path in quotes"));
        return node;
    }
    node->as.import.path = (struct word){parser->current.text, parser->current.span};
    parse_advance(parser);
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* Reserved words that are kinds too stand here as names. */
static struct annotation *parse_decl_kind(struct parser *parser)
{
    struct annotation *annotation = arena_alloc_zeroed(parser->arena, sizeof *annotation);
    bool reserved_kind =
        parse_at(parser, TOKEN_RECORD) || parse_at(parser, TOKEN_REF) || parse_at(parser, TOKEN_NIL);
    if (reserved_kind) {
        annotation->name = (struct word){parser->current.text, parser->current.span};
        parse_advance(parser);
        return annotation;
    }
    if (!parse_at(parser, TOKEN_NAME)) {
        parse_report_expected(parser, parse_words(parser, "종류", "a kind"));
        return NULL;
    }
    if (!parse_name(parser, &annotation->name)) return NULL;
    if (parse_take(parser, TOKEN_DOT)) {
        annotation->module = annotation->name;
        if (!parse_name(parser, &annotation->name)) return NULL;
    }
    return annotation;
}

/* At the kind itself, behind `:` or `->`. */
struct annotation *parse_annotation(struct parser *parser)
{
    struct annotation *first = parse_decl_kind(parser);
    if (!first || !parse_at(parser, TOKEN_BAR)) return first;
    struct annotation *annotation = arena_alloc_zeroed(parser->arena, sizeof *annotation);
    struct span span = first->module.text.count ? first->module.span : first->name.span;
    annotation->choices = first;
    for (struct annotation *last = first; last && parse_take(parser, TOKEN_BAR); last = last->next)
        last->next = parse_decl_kind(parser);
    annotation->name.span = span_join(span, parser->previous);
    annotation->name.text = source_slice(&parser->unit->source, annotation->name.span);
    return annotation;
}

struct node *parse_let(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_LET, parser->current.span);
    bool constant = parse_at(parser, TOKEN_CONST);
    if (constant) node->flags |= NODE_IS_CONST;
    parse_advance(parser);
    if (!parse_name(parser, &node->as.let.name)) return node;
    if (parse_take(parser, TOKEN_COLON)) node->as.let.annotation = parse_annotation(parser);
    if (parse_take(parser, TOKEN_ASSIGN))
        node->as.let.value = parse_expression(parser);
    else if (constant)
        (void)parse_expect(parser, TOKEN_ASSIGN);
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- functions ----------------------------------------------------------------------------------------------------- */

static struct param parse_decl_param(struct parser *parser)
{
    struct param param = {0};
    if (!parse_name(parser, &param.name)) return param;
    if (parse_take(parser, TOKEN_COLON)) param.annotation = parse_annotation(parser);
    if (parse_take(parser, TOKEN_ASSIGN)) param.default_value = parse_expression(parser);
    return param;
}

static void parse_decl_add_param(struct parser *parser, struct function_decl *function, uint32_t *capacity,
                                 struct param param)
{
    struct diag_list *diags = &parser->compilation->diags;
    if (function->param_count == LIMIT_FUNCTION_PARAMS) {
        if (!function->broken) /* once, not for each that follows */
            (void)diag_report_2(diags, &parser->unit->source, param.name.span, DIAG_LIMIT,
                                CY_BYTES("FUNCTION_PARAMS"), diag_number(diags, LIMIT_FUNCTION_PARAMS));
        function->broken = true;
        return;
    }
    if (function->param_count == *capacity) {
        uint32_t grown = *capacity ? *capacity * 2 : 4;
        function->params =
            arena_grow(parser->arena, function->params, *capacity * sizeof param, grown * sizeof param);
        *capacity = grown;
    }
    if (!param.default_value && function->required_count < function->param_count) {
        (void)diag_report_1(diags, &parser->unit->source, param.name.span, DIAG_REQUIRED_LATE,
                            function->params[function->required_count].name.text);
    }
    function->params[function->param_count++] = param;
    if (!param.default_value && function->required_count == function->param_count - 1)
        function->required_count++;
}

/* What is wrong in the parameters says nothing about the body: when it begins on this line, it is read. */
static void parse_decl_find_body(struct parser *parser)
{
    while (!parse_at(parser, TOKEN_BRACE_OPEN) && !parse_at(parser, TOKEN_BRACE_CLOSE) &&
           !parse_at(parser, TOKEN_END) && !parser->current.line_start)
        parse_advance(parser);
    if (parse_at(parser, TOKEN_BRACE_OPEN) && !parser->lexer.gave_up) parser->panicking = false;
}

/* At the `(` of the parameters. */
struct function_decl *parse_function_rest(struct parser *parser, struct word name, struct span start)
{
    struct function_decl *function = arena_alloc_zeroed(parser->arena, sizeof *function);
    uint32_t capacity = 0;
    function->name = name;
    function->span = start;
    function->unit = parser->unit;
    struct span opening = parser->current.span;
    if (!parse_expect(parser, TOKEN_PAREN_OPEN)) {
        function->broken = true;
        return function;
    }
    while (!parse_at(parser, TOKEN_PAREN_CLOSE) && !parser->panicking) {
        struct param param = parse_decl_param(parser);
        if (!parser->panicking) parse_decl_add_param(parser, function, &capacity, param);
        if (!parse_take(parser, TOKEN_COMMA)) break;
    }
    (void)parse_expect_close(parser, TOKEN_PAREN_CLOSE, opening);
    function->broken = function->broken || parser->panicking;
    if (parser->panicking) parse_decl_find_body(parser);
    if (parse_take(parser, TOKEN_ARROW)) function->result = parse_annotation(parser);
    function->body = parse_block(parser);
    function->span = span_join(start, parser->previous);
    return function;
}

static struct node *parse_decl_function(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_FN, parser->current.span);
    struct word name;
    parse_advance(parser);
    if (!parse_name(parser, &name)) return node;
    node->as.function = parse_function_rest(parser, name, node->span);
    node->span = span_join(node->span, parser->previous);
    return node;
}

static struct node *parse_decl_test(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_TEST, parser->current.span);
    struct function_decl *function = arena_alloc_zeroed(parser->arena, sizeof *function);
    parse_advance(parser);
    bool is_program =
        parser->compilation->options->tests && parser->unit == parser->compilation->units.items[0];
    if (is_program && parse_at(parser, TOKEN_STR)) {
        /* A name that no identifier can be; so it clashes with another test's only. */
        struct builder name;
        builder_init(&name);
        builder_printf(&name, TEST_NAME_PREFIX "\"%.*s\"", CY_BYTES_ARG(parser->current.text));
        if (name.failed) mem_exhausted();
        function->name = (struct word){arena_copy(parser->arena, builder_view(&name)), parser->current.span};
        builder_fini(&name);
        node->kind = NODE_FN;
        node->flags |= NODE_EXPORTED;
    }
    if (!parse_take(parser, TOKEN_STR))
        parse_report_expected(parser, parse_words(parser, "시험 이름", "the test's name in quotes"));
    function->unit = parser->unit;
    function->in_test = !is_program;
    function->span = node->span;
    if (!parser->panicking) function->body = parse_block(parser);
    node->as.function = function;
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- records ------------------------------------------------------------------------------------------------------- */

static void parse_decl_add_field(struct parser *parser, struct record_decl *record, uint32_t *capacity,
                                 struct field_decl field)
{
    struct diag_list *diags = &parser->compilation->diags;
    if (record->field_count == LIMIT_RECORD_FIELDS) {
        if (!record->broken)
            (void)diag_report_2(diags, &parser->unit->source, field.name.span, DIAG_LIMIT,
                                CY_BYTES("RECORD_FIELDS"), diag_number(diags, LIMIT_RECORD_FIELDS));
        record->broken = true;
        return;
    }
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (!cy_bytes_equal(record->fields[i].name.text, field.name.text)) continue;
        struct diag *diag =
            diag_report_1(diags, &parser->unit->source, field.name.span, DIAG_FIELD_TWICE, field.name.text);
        record->broken = true; /* how it is built cannot be judged */
        diag_add_label(diag, DIAG_LABEL_FIRST, &parser->unit->source, record->fields[i].name.span);
    }
    if (record->field_count == *capacity) {
        uint32_t grown = *capacity ? *capacity * 2 : 4;
        record->fields =
            arena_grow(parser->arena, record->fields, *capacity * sizeof field, grown * sizeof field);
        *capacity = grown;
    }
    record->fields[record->field_count++] = field;
}

static struct field_decl parse_decl_field(struct parser *parser)
{
    struct field_decl field = {0};
    if (!parse_at_word(parser)) {
        parse_report_expected(parser, parse_words(parser, "칸 이름", "the name of a field"));
        return field;
    }
    field.name = (struct word){parser->current.text, parser->current.span};
    field.doc = lexer_doc_text(parser->arena, &parser->unit->source, parser->current.doc);
    parse_advance(parser);
    if (parse_take(parser, TOKEN_COLON)) field.annotation = parse_annotation(parser);
    if (parse_take(parser, TOKEN_ASSIGN)) field.default_value = parse_expression(parser);
    return field;
}

static struct node *parse_decl_record(struct parser *parser)
{
    struct node *node = ast_node(parser->arena, NODE_RECORD, parser->current.span);
    struct record_decl *record = arena_alloc_zeroed(parser->arena, sizeof *record);
    uint32_t capacity = 0;
    parse_advance(parser);
    record->unit = parser->unit;
    if (!parse_name(parser, &record->name)) return node;
    node->as.record = record;
    struct span opening = parser->current.span;
    (void)parse_expect(parser, TOKEN_BRACE_OPEN);
    while (!parse_at(parser, TOKEN_BRACE_CLOSE) && !parser->panicking) {
        struct field_decl field = parse_decl_field(parser);
        if (!parser->panicking) parse_decl_add_field(parser, record, &capacity, field);
        if (!parse_take(parser, TOKEN_COMMA)) break;
    }
    (void)parse_expect_close(parser, TOKEN_BRACE_CLOSE, opening);
    record->broken = record->broken || parser->panicking;
    node->span = span_join(node->span, parser->previous);
    return node;
}

/* -- the module ---------------------------------------------------------------------------------------------------- */

/* NULL when nothing that a module may hold begins here. */
static struct node *parse_decl_one(struct parser *parser)
{
    switch (parser->current.kind) {
    case TOKEN_IMPORT: return parse_decl_import(parser);
    case TOKEN_LET:
    case TOKEN_CONST: return parse_let(parser);
    case TOKEN_FN: return parse_decl_function(parser);
    case TOKEN_RECORD: return parse_decl_record(parser);
    case TOKEN_TEST: return parse_decl_test(parser);
    default: return NULL;
    }
}

static bool parse_decl_may_export(uint8_t kind)
{
    return kind == NODE_LET || kind == NODE_FN || kind == NODE_RECORD;
}

static void parse_decl_next(struct parser *parser)
{
    struct span start = parser->current.span;
    cy_bytes doc = lexer_doc_text(parser->arena, &parser->unit->source, parser->current.doc);
    bool exported = parse_take(parser, TOKEN_EXPORT);
    struct node *node = parse_decl_one(parser);
    if (!node) {
        enum diag_code code = exported                              ? DIAG_EXPORT_WHAT
                              : parse_at(parser, TOKEN_BRACE_CLOSE) ? DIAG_STRAY_BRACE
                                                                    : DIAG_TOP_LEVEL_DECLARES;
        struct diag *diag =
            parse_report(parser, exported ? start : parser->current.span, code, CY_BYTES_NONE, CY_BYTES_NONE);
        bool word = parse_at(parser, TOKEN_NAME) && parser->ahead.kind == TOKEN_NAME;
        if (word) diag->nearest = parse_meant_keyword(parser, parser->current.text);
        if (!parse_at(parser, TOKEN_END)) parse_advance(parser);
        return;
    }
    if (exported && !parse_decl_may_export(node->kind) && !parser->panicking)
        (void)diag_report_0(&parser->compilation->diags, &parser->unit->source, start, DIAG_EXPORT_WHAT);
    if (exported) node->flags |= NODE_EXPORTED;
    if (node->kind == NODE_FN && node->as.function) node->as.function->doc = doc;
    if (node->kind == NODE_RECORD && node->as.record) node->as.record->doc = doc;
    if (node->kind == NODE_LET) node->as.let.doc = doc;
    /* A declaration without even a name has nothing that others could refer to. */
    bool named = (node->kind == NODE_LET && node->as.let.name.text.count) ||
                 (node->kind == NODE_FN && node->as.function) ||
                 (node->kind == NODE_RECORD && node->as.record) ||
                 (node->kind == NODE_TEST && node->as.function) ||
                 (node->kind == NODE_IMPORT && node->as.import.path.span.end > 0);
    if (named) ast_list_add(parser->arena, &parser->unit->declarations, node);
}

void parse_declaration(struct parser *parser)
{
    uint32_t start = parser->current.span.start;
    parse_decl_next(parser);
    parse_recover(parser);
    /* Recovery stops before a `}` that closes nothing here: step over it. */
    if (parser->current.span.start == start && !parse_at(parser, TOKEN_END)) parse_advance(parser);
}

void parse_declarations(struct parser *parser)
{
    while (!parse_at(parser, TOKEN_END)) parse_declaration(parser);
}
