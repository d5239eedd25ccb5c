/* SPDX-License-Identifier: MIT
 *
 * compiler/fmt.c: lays a source out by its tokens.
 *
 * In:   tokens, and the bytes between them, in which comments and line ends are found.
 * Out:  lines of code, each with its comment apart, so that comments can be put in columns (fmt_lines.c).
 * Method: no tree. The grammar has few ambiguous marks: whether `-` has one operand or two, and whether `{` opens a map
 *         or a block, follows from the token before it.
 * Invariant: nothing but space between tokens is made up or lost: fmt_same compares what comes out with what went in.
 */
#include "compiler/fmt.h"

#include "compiler/fmt_internal.h"
#include "compiler/parse.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"

static bool fmt_ends_operand(const struct fmt_token *token)
{
    switch (token->kind) {
    case TOKEN_NAME:
    case TOKEN_INT:
    case TOKEN_FLOAT:
    case TOKEN_STR:
    case TOKEN_TEXT_END:
    case TOKEN_TRUE:
    case TOKEN_FALSE:
    case TOKEN_NIL:
    case TOKEN_REF:
    case TOKEN_PAREN_CLOSE:
    case TOKEN_BRACKET_CLOSE:
    case TOKEN_BRACE_CLOSE: return true;
    default: return token->is_name;
    }
}

static bool fmt_is_binary(const struct fmt_token *token)
{
    if (token->is_name || token->is_unary) return false;
    switch (token->kind) {
    case TOKEN_AND:
    case TOKEN_OR:
    case TOKEN_ASSIGN:
    case TOKEN_ARROW: return true;
    default: return token->kind >= TOKEN_EQ && token->kind <= TOKEN_SHIFT_RIGHT && token->kind != TOKEN_TILDE;
    }
}

static bool fmt_opens(uint8_t kind)
{
    return kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN || kind == TOKEN_BRACE_OPEN;
}
static bool fmt_closes(uint8_t kind)
{
    return kind == TOKEN_PAREN_CLOSE || kind == TOKEN_BRACKET_CLOSE || kind == TOKEN_BRACE_CLOSE;
}

/* A `{` where an operand is expected opens a map. */
static bool fmt_opens_map(const struct fmt_token *before)
{
    if (before->kind == TOKEN_END || fmt_ends_operand(before)) return false;
    if (fmt_is_binary(before) && before->kind != TOKEN_ARROW) return true;
    switch (before->kind) {
    case TOKEN_PAREN_OPEN:
    case TOKEN_BRACKET_OPEN:
    case TOKEN_COMMA:
    case TOKEN_COLON:
    case TOKEN_RANGE:
    case TOKEN_NOT:
    case TOKEN_TEXT_BEGIN:
    case TOKEN_TEXT_MIDDLE:
    case TOKEN_RETURN:
    case TOKEN_THROW:
    case TOKEN_IN:
    case TOKEN_IF:
    case TOKEN_ELIF:
    case TOKEN_WHILE:
    case TOKEN_MATCH: return true;
    default: return false;
    }
}

/* -- reading ------------------------------------------------------------------------------------------------------- */
static struct fmt_token fmt_read(struct lexer *lexer, const struct fmt_token *before)
{
    struct token token = lexer_next(lexer);
    struct fmt_token result = {.kind = token.kind, .span = token.span, .token = token};
    bool marks = token.kind == TOKEN_MINUS || token.kind == TOKEN_TILDE || token.kind == TOKEN_NOT;
    result.is_name = token_is_keyword(token.kind) && before->kind == TOKEN_DOT;
    result.is_unary = marks && (token.kind != TOKEN_MINUS || token.line_start || !fmt_ends_operand(before));
    return result;
}

/* All tokens, the end included. A keyword before `:` is a name, which is seen one token later. */
static void fmt_read_all(struct fmt *fmt, cy_bytes text, struct fmt_token_list *list)
{
    struct source source = {.file = fmt->source->file, .text = text};
    struct lexer lexer;
    lexer_init(&lexer, fmt->arena, fmt->diags, &source, fmt->keywords);
    struct fmt_token before = {.kind = TOKEN_END};
    do {
        struct fmt_token token = fmt_read(&lexer, &before);
        if (token.kind == TOKEN_COLON && list->count > 0 && token_is_keyword(before.kind))
            list->items[list->count - 1].is_name = true;
        if (list->count == list->capacity) {
            uint32_t capacity = list->capacity ? list->capacity * 2 : 256;
            list->items =
                arena_grow(fmt->arena, list->items, list->capacity * sizeof token, capacity * sizeof token);
            list->capacity = capacity;
        }
        list->items[list->count++] = token;
        before = token;
    } while (before.kind != TOKEN_END);
}

/* -- one token after another --------------------------------------------------------------------------------------- */
static cy_bytes fmt_spelling(const struct fmt *fmt, const struct fmt_token *token)
{
    cy_bytes written = source_slice(fmt->source, token->span);
    bool word = token_is_keyword(token->kind) && !token->is_name && written.data[0] != '!' &&
                written.data[0] != '&' && written.data[0] != '|';
    if (!word || fmt->options->keywords == FMT_KEYWORDS_KEPT) return written;
    return cy_bytes_from_text(token_spelling(token->kind, fmt->options->keywords == FMT_KEYWORDS_KOREAN));
}

/* Whether a space stands between two tokens of one line. */
static bool fmt_space_between(const struct fmt *fmt, const struct fmt_token *a, const struct fmt_token *b)
{
    const struct fmt_bracket *top = fmt->bracket_count ? &fmt->brackets[fmt->bracket_count - 1] : NULL;
    bool touch = a->span.end == b->span.start;
    if (a->kind == TOKEN_TEXT_BEGIN || a->kind == TOKEN_TEXT_MIDDLE) return false;
    if (b->kind == TOKEN_TEXT_MIDDLE || b->kind == TOKEN_TEXT_END) return false;
    if (b->kind == TOKEN_COMMA || b->kind == TOKEN_COLON || b->kind == TOKEN_DOT || a->kind == TOKEN_DOT)
        return false;
    if (a->kind == TOKEN_RANGE || b->kind == TOKEN_RANGE) return false;
    if (a->kind == TOKEN_PAREN_OPEN || a->kind == TOKEN_BRACKET_OPEN) return false;
    if (b->kind == TOKEN_PAREN_CLOSE || b->kind == TOKEN_BRACKET_CLOSE) return false;
    if (a->kind == TOKEN_BRACE_OPEN && b->kind == TOKEN_BRACE_CLOSE) return false;
    if (a->kind == TOKEN_BRACE_OPEN || b->kind == TOKEN_BRACE_CLOSE) return top && !top->is_map;
    if (a->is_unary) return a->kind == TOKEN_NOT && source_slice(fmt->source, a->span).data[0] != '!';
    if (b->kind == TOKEN_PAREN_OPEN || b->kind == TOKEN_BRACKET_OPEN) return !fmt_ends_operand(a);
    /* `str|nil` is written tight, `a | b` is not; both are one mark. */
    if (a->kind == TOKEN_BAR || b->kind == TOKEN_BAR) return a->kind == TOKEN_BAR ? !fmt->bar_tight : !touch;
    return true;
}

static uint32_t fmt_indent(const struct fmt *fmt, const struct fmt_token *before,
                           const struct fmt_token *token)
{
    if (fmt->bracket_count == 0)
        return (fmt_is_binary(token) || token->kind == TOKEN_DOT || fmt_is_binary(before)) ? 1 : 0;
    const struct fmt_bracket *top = &fmt->brackets[fmt->bracket_count - 1];
    if (fmt_closes(token->kind)) return top->line_indent;
    bool continues = fmt_is_binary(token) || token->kind == TOKEN_DOT || fmt_is_binary(before);
    return top->line_indent + 1 + (continues && top->kind == TOKEN_BRACE_OPEN ? 1 : 0);
}

static void fmt_brackets(struct fmt *fmt, const struct fmt_token *before, const struct fmt_token *token)
{
    if (fmt_opens(token->kind) && fmt->bracket_count < FMT_BRACKETS_MAX) {
        fmt->brackets[fmt->bracket_count++] = (struct fmt_bracket){
            .kind = token->kind,
            .is_map = token->kind == TOKEN_BRACE_OPEN && fmt_opens_map(before),
            .line_indent = fmt->line_indent,
        };
    }
}

/* Comments and line ends between two tokens. */
static void fmt_gap(struct fmt *fmt, const struct fmt_token *before, const struct fmt_token *token)
{
    cy_bytes gap = cy_bytes_slice(fmt->source->text, before->span.end, token->span.start);
    uint32_t line_ends =
        before->kind == TOKEN_END ? 2 : 0; /* the start of a file is like a blank line before */
    for (size_t i = 0; i < gap.count; i++) {
        if (gap.data[i] == '\n') {
            line_ends++;
            if (line_ends == 1) fmt_lines_end(&fmt->lines);
            continue;
        }
        if (gap.data[i] != '/')
            continue; /* space: nothing else stands between tokens, but for a byte order mark */
        size_t end = i;
        while (end < gap.count && gap.data[end] != '\n') end++;
        cy_bytes comment = cy_bytes_slice(gap, i, end);
        if (line_ends > 0) {
            bool after_brace = before->kind == TOKEN_BRACE_OPEN && fmt->gap_is_fresh;
            if (line_ends > 1 && !after_brace) fmt_lines_blank(&fmt->lines);
            uint32_t indent =
                token->kind == TOKEN_END || fmt_closes(token->kind) || fmt->bracket_count
                    ? (fmt->bracket_count ? fmt->brackets[fmt->bracket_count - 1].line_indent + 1 : 0)
                    : 0;
            fmt_lines_begin(&fmt->lines, indent);
        }
        fmt->gap_is_fresh = false;
        fmt_lines_comment(&fmt->lines, comment);
        line_ends = 0;
        i = end - 1;
    }
    bool first = fmt_lines_at_start(&fmt->lines) && token->kind != TOKEN_END;
    if (line_ends > 1 && first && !fmt_closes(token->kind) &&
        !(before->kind == TOKEN_BRACE_OPEN && fmt->gap_is_fresh))
        fmt_lines_blank(&fmt->lines);
}

static void fmt_token_out(struct fmt *fmt, const struct fmt_token *before, const struct fmt_token *token)
{
    fmt->gap_is_fresh = true;
    fmt_gap(fmt, before, token);
    if (token->kind == TOKEN_END) return;
    if (fmt_lines_at_start(&fmt->lines)) {
        fmt->line_indent = fmt_indent(fmt, before, token);
        fmt_lines_begin(&fmt->lines, fmt->line_indent);
    } else if (fmt_space_between(fmt, before, token)) {
        fmt_lines_code(&fmt->lines, CY_BYTES(" "));
    }
    if (token->kind == TOKEN_BAR) fmt->bar_tight = before->span.end == token->span.start;
    if (fmt_closes(token->kind) && fmt->bracket_count > 0) fmt->bracket_count--;
    fmt_lines_code(&fmt->lines, fmt_spelling(fmt, token));
    fmt_brackets(fmt, before, token);
}

/* -- the check ----------------------------------------------------------------------------------------------------- */
static bool fmt_same_token(const struct token *a, const struct token *b)
{
    bool word = token_is_keyword(a->kind);
    bool end = a->kind == TOKEN_END; /* a file need not end in a line end; what is written does */
    return a->kind == b->kind && (end || a->line_start == b->line_start) && a->integer == b->integer &&
           memcmp(&a->real, &b->real, sizeof a->real) == 0 &&
           (word || end || cy_bytes_equal(a->text, b->text));
}

static bool fmt_same(struct fmt *fmt, const struct fmt_token_list *tokens, cy_bytes formatted)
{
    struct fmt_token_list again = {0};
    uint32_t before = fmt->diags->count;
    if (formatted.count > LIMIT_SOURCE_BYTES) return false;
    fmt_read_all(fmt, formatted, &again);
    bool same = fmt->diags->count == before && again.count == tokens->count;
    for (uint32_t i = 0; same && i < again.count; i++)
        same = fmt_same_token(&tokens->items[i].token, &again.items[i].token);
    return same;
}

static cy_err fmt_run(struct fmt *fmt, struct builder *out)
{
    struct fmt_token_list tokens = {0};
    fmt_read_all(fmt, fmt->source->text, &tokens);
    struct fmt_token start = {.kind = TOKEN_END};
    cy_bytes text = fmt->source->text;
    if (cy_bytes_start_with(text, CY_BYTES("\xEF\xBB\xBF"))) start.span.end = 3;
    fmt_lines_init(&fmt->lines);
    for (uint32_t i = 0; i < tokens.count; i++)
        fmt_token_out(fmt, i ? &tokens.items[i - 1] : &start, &tokens.items[i]);
    struct builder formatted;
    builder_init(&formatted);
    fmt_lines_write(&fmt->lines, &formatted);
    if (formatted.failed) mem_exhausted();
    bool same = fmt_same(fmt, &tokens, builder_view(&formatted));
    if (same) builder_bytes(out, builder_view(&formatted));
    builder_fini(&formatted);
    fmt_lines_fini(&fmt->lines);
    return same ? CY_OK : CY_ERR(INTERNAL);
}

cy_err fmt_source(cy_bytes file, cy_bytes text, const struct fmt_options *options, struct builder *out,
                  struct builder *messages)
{
    struct compile_options compile = {.korean = options->korean};
    struct compilation compilation;
    if (text.count > LIMIT_SOURCE_BYTES) return CY_ERR(TOO_LARGE);
    compilation_init(&compilation, &compile);
    struct unit unit = {.source = {.file = file, .text = text}};
    map_init(&unit.names, (hash_seed){0, 0});
    parse_unit(&compilation, &unit);
    cy_err err = compilation.diags.count ? CY_ERR(BAD_FORMAT) : CY_OK;
    if (!cy_failed(err)) {
        struct fmt fmt = {
            .arena = &compilation.arena,
            .diags = &compilation.diags,
            .keywords = &compilation.keywords,
            .source = &unit.source,
            .options = options,
        };
        err = fmt_run(&fmt, out);
    } else {
        struct diag_style style = {.korean = options->korean};
        (void)diag_render(&compilation.diags, &compilation.warnings, &style, messages);
    }
    map_fini(&unit.names);
    compilation_fini(&compilation);
    return err;
}
