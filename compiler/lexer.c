/* SPDX-License-Identifier: MIT
 *
 * compiler/lexer.c: words, numbers and marks.
 *
 * In:   UTF-8 bytes, possibly broken. Out: tokens.
 * Invariant: every call moves forward or returns TOKEN_END; `line` and `column` always belong to `offset`.
 * Not here: strings (lexer_text.c).
 */
#include "compiler/lexer.h"

#include "compiler/lexer_internal.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"
#include "vm/code/toau.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct lexer_word {
    uint8_t kind;
    const char *english, *korean, *korean_2;
};
static const struct lexer_word lexer_words[] = {
#define KEYWORD(name, english, korean, korean_2) {TOKEN_##name, english, korean, korean_2},
#define MARK(name, text)
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
};
struct lexer_mark {
    uint8_t kind;
    const char *text;
};
static const struct lexer_mark lexer_marks[] = {
#define KEYWORD(name, english, korean, korean_2)
#define MARK(name, text) {TOKEN_##name, text},
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
    {TOKEN_AND, "&&"},
    {TOKEN_OR, "||"},
    {TOKEN_NOT, "!"},
};

bool token_is_keyword(uint8_t kind) { return kind >= lexer_words[0].kind && kind < TOKEN_PAREN_OPEN; }

const char *token_spelling(uint8_t kind, bool korean)
{
    for (size_t i = 0; i < CY_COUNT_OF(lexer_words); i++)
        if (lexer_words[i].kind == kind) return korean ? lexer_words[i].korean : lexer_words[i].english;
    for (size_t i = 0; i < CY_COUNT_OF(lexer_marks); i++)
        if (lexer_marks[i].kind == kind) return lexer_marks[i].text;
    return "";
}

static void lexer_add_keyword(struct map *keywords, const char *word, uint8_t kind)
{
    if (!*word) return;
    struct map_entry *entry = map_insert(keywords, cy_bytes_from_text(word), NULL);
    if (!entry) mem_exhausted();
    entry->value.number = kind;
}

void lexer_keywords_init(struct map *keywords)
{
    map_init(keywords, (hash_seed){0, 0});
    for (size_t i = 0; i < CY_COUNT_OF(lexer_words); i++) {
        lexer_add_keyword(keywords, lexer_words[i].english, lexer_words[i].kind);
        lexer_add_keyword(keywords, lexer_words[i].korean, lexer_words[i].kind);
        lexer_add_keyword(keywords, lexer_words[i].korean_2, lexer_words[i].kind);
    }
}

void lexer_init(struct lexer *lexer, struct arena *arena, struct diag_list *diags,
                const struct source *source, const struct map *keywords)
{
    CHECK(source->text.count <= LIMIT_SOURCE_BYTES);
    *lexer = (struct lexer){
        .arena = arena, .diags = diags, .source = source, .keywords = keywords, .line = 1, .column = 1};
    if (cy_bytes_start_with(source->text, CY_BYTES("\xEF\xBB\xBF")))
        lexer->offset = 3; /* a byte order mark is no text */
}

/* -- moving -------------------------------------------------------------------------------------------------------- */

uint8_t lexer_peek(const struct lexer *lexer, uint32_t ahead)
{
    size_t offset = (size_t)lexer->offset + ahead;
    return offset < lexer->source->text.count ? lexer->source->text.data[offset] : 0;
}

bool lexer_at_end(const struct lexer *lexer) { return lexer->offset >= lexer->source->text.count; }

void lexer_advance(struct lexer *lexer, size_t bytes)
{
    for (; bytes > 0 && !lexer_at_end(lexer); bytes--) {
        uint8_t byte = lexer->source->text.data[lexer->offset++];
        if (byte == '\n') {
            lexer->line++;
            lexer->column = 1;
        } else if ((byte & 0xC0) != 0x80) {
            lexer->column++;
        }
    }
}

struct span lexer_here(const struct lexer *lexer, size_t bytes)
{
    return (struct span){lexer->offset, lexer->offset + (uint32_t)bytes, lexer->line, lexer->column};
}

uint32_t lexer_code_point(struct lexer *lexer, size_t *length_out)
{
    uint32_t code_point;
    if (text_decode(cy_bytes_skip(lexer->source->text, lexer->offset), &code_point, length_out))
        return code_point;
    bool is_bytecode = lexer->offset == 0 && toau_is_named(lexer->source->text);
    if (!lexer->bad_utf8_reported && !lexer_at_end(lexer))
        (void)diag_report_0(lexer->diags, lexer->source, lexer_here(lexer, 1),
                            is_bytecode ? DIAG_IS_BYTECODE : DIAG_BAD_UTF8);
    if (is_bytecode) lexer->gave_up = true;
    lexer->bad_utf8_reported = true; /* one message: the rest of the file is probably in the same encoding */
    *length_out = 1;
    return LEXER_NO_CODE_POINT;
}

static void lexer_report_bidi(struct lexer *lexer, uint32_t code_point, size_t length)
{
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%04X", code_point);
    cy_bytes argument = arena_copy(lexer->arena, cy_bytes_from_text(digits));
    (void)diag_report_1(lexer->diags, lexer->source, lexer_here(lexer, length), DIAG_BIDI_CONTROL, argument);
}

static void lexer_skip_comment(struct lexer *lexer)
{
    while (!lexer_at_end(lexer) && lexer_peek(lexer, 0) != '\n') {
        size_t length;
        uint32_t code_point = lexer_code_point(lexer, &length);
        if (code_point != LEXER_NO_CODE_POINT && text_is_bidi_control(code_point))
            lexer_report_bidi(lexer, code_point, length);
        lexer_advance(lexer, length);
    }
}

/* A comment begins here: whether it is documentation, a line of its own that begins with just three slashes. */
static bool lexer_at_doc(const struct lexer *lexer)
{
    return lexer_peek(lexer, 2) == '/' && lexer_peek(lexer, 3) != '/' && lexer->line != lexer->line_of_token;
}

/* Lines below each other are one text; an empty line or another comment ends it. */
static void lexer_note_doc(struct lexer *lexer, struct span line)
{
    bool goes_on = lexer->doc.end && lexer->doc.line + 1 == line.line;
    bool first = lexer->line_of_token == 0 &&
                 (!lexer->module_doc.end || (goes_on && lexer->module_doc.start == lexer->doc.start));
    if (goes_on) line.start = lexer->doc.start;
    line.end = lexer->offset;
    lexer->doc = line;
    if (first) lexer->module_doc = line;
}

/* Space, line ends and comments. Stops at a line end inside an interpolation, which may not cross one. */
static void lexer_skip_space(struct lexer *lexer)
{
    lexer->doc.end = 0;
    while (!lexer_at_end(lexer)) {
        uint8_t byte = lexer_peek(lexer, 0);
        if (byte == '\n' && lexer->interpolation_count > 0) return;
        if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n')
            lexer_advance(lexer, 1);
        else if (byte == '/' && lexer_peek(lexer, 1) == '/') {
            struct span start = lexer_here(lexer, 0);
            bool doc = lexer_at_doc(lexer);
            lexer_skip_comment(lexer);
            if (doc)
                lexer_note_doc(lexer, start);
            else
                lexer->doc.end = 0;
        } else
            return;
    }
}

/* -- numbers ------------------------------------------------------------------------------------------------------- */

static int lexer_digit(uint8_t byte, int base)
{
    int digit = byte >= '0' && byte <= '9'                     ? byte - '0'
                : (byte | 0x20) >= 'a' && (byte | 0x20) <= 'f' ? (byte | 0x20) - 'a' + 10
                                                               : 99;
    return digit < base ? digit : -1;
}

static bool lexer_at_name_part(struct lexer *lexer)
{
    size_t length;
    if (lexer_at_end(lexer)) return false;
    uint32_t code_point = lexer_code_point(lexer, &length);
    return code_point != LEXER_NO_CODE_POINT && text_is_identifier_part(code_point);
}

/* Steps over digits with single _ between them and adds their value up. False when there are none or a _ stands
 * badly. */
static bool lexer_take_digits(struct lexer *lexer, int base, uint64_t *value, bool *overflow)
{
    bool digit_before = false, good = false;
    for (;; lexer_advance(lexer, 1)) {
        uint8_t byte = lexer_peek(lexer, 0);
        if (byte == '_') {
            if (!digit_before) return false;
            digit_before = false;
            continue;
        }
        int digit = lexer_digit(byte, base);
        if (digit < 0) break;
        uint64_t scaled;
        if (__builtin_mul_overflow(*value, (uint64_t)base, &scaled) ||
            __builtin_add_overflow(scaled, (uint64_t)digit, value))
            *overflow = true;
        digit_before = good = true;
    }
    return good && digit_before;
}

static void lexer_report_number(struct lexer *lexer, struct token *token, enum diag_code code)
{
    while (lexer_at_name_part(lexer)) {
        size_t length;
        (void)lexer_code_point(lexer, &length);
        lexer_advance(lexer, length);
    }
    token->span.end = lexer->offset;
    cy_bytes text = source_slice(lexer->source, token->span);
    (void)diag_report_1(lexer->diags, lexer->source, token->span, code, text);
}

static double lexer_read_real(struct lexer *lexer, struct span span)
{
    struct builder digits;
    builder_init(&digits);
    cy_bytes text = source_slice(lexer->source, span);
    for (size_t i = 0; i < text.count; i++)
        if (text.data[i] != '_') builder_u8(&digits, text.data[i]);
    const char *clean = builder_text_view(&digits);
    if (!clean) mem_exhausted();
    double real = strtod(clean, NULL);
    builder_fini(&digits);
    return real;
}

static struct token lexer_take_number(struct lexer *lexer, struct token token)
{
    int base = 10;
    if (lexer_peek(lexer, 0) == '0' && lexer_peek(lexer, 1) == 'x') base = 16;
    if (lexer_peek(lexer, 0) == '0' && lexer_peek(lexer, 1) == 'b') base = 2;
    if (base != 10) lexer_advance(lexer, 2);
    token.kind = TOKEN_INT;
    token.bit_pattern = base != 10;

    bool overflow = false, good = lexer_take_digits(lexer, base, &token.integer, &overflow);
    uint64_t ignored = 0;
    bool ignored_overflow = false;
    if (base == 10 && good && lexer_peek(lexer, 0) == '.' && lexer_digit(lexer_peek(lexer, 1), 10) >= 0) {
        token.kind = TOKEN_FLOAT;
        lexer_advance(lexer, 1);
        good = lexer_take_digits(lexer, 10, &ignored, &ignored_overflow);
    }
    if (base == 10 && good && (lexer_peek(lexer, 0) | 0x20) == 'e') {
        token.kind = TOKEN_FLOAT;
        lexer_advance(lexer, 1);
        if (lexer_peek(lexer, 0) == '+' || lexer_peek(lexer, 0) == '-') lexer_advance(lexer, 1);
        good = lexer_take_digits(lexer, 10, &ignored, &ignored_overflow);
    }
    token.span.end = lexer->offset;
    if (!good || lexer_at_name_part(lexer)) {
        lexer_report_number(lexer, &token, DIAG_BAD_NUMBER);
    } else if (token.kind == TOKEN_FLOAT) {
        token.real = lexer_read_real(lexer, token.span);
        if (isinf(token.real)) lexer_report_number(lexer, &token, DIAG_BAD_NUMBER);
    } else if (overflow || (!token.bit_pattern && token.integer > (uint64_t)INT64_MAX + 1)) {
        lexer_report_number(lexer, &token, DIAG_INTEGER_TOO_LARGE);
        token.integer = 0;
    }
    return token;
}

/* -- words and marks ----------------------------------------------------------------------------------------------- */

static struct token lexer_take_word(struct lexer *lexer, struct token token)
{
    bool ascii = true;
    while (lexer_at_name_part(lexer)) {
        size_t length;
        (void)lexer_code_point(lexer, &length);
        ascii = ascii && length == 1;
        lexer_advance(lexer, length);
    }
    token.span.end = lexer->offset;
    token.text = source_slice(lexer->source, token.span);
    if (token.span.end - token.span.start > LIMIT_PROGRAM_NAME_BYTES) {
        (void)diag_report_2(lexer->diags, lexer->source, token.span, DIAG_LIMIT,
                            CY_BYTES("PROGRAM_NAME_BYTES"),
                            diag_number(lexer->diags, LIMIT_PROGRAM_NAME_BYTES));
        token.text = cy_bytes_slice(token.text, 0, 1); /* not composed: that takes time squared */
    } else if (!ascii && !text_is_nfc(token.text)) {
        struct builder composed;
        builder_init(&composed);
        if (cy_failed(text_to_nfc(token.text, &composed)))
            mem_exhausted(); /* it is UTF-8: only memory can be short */
        token.text = arena_copy(lexer->arena, builder_view(&composed));
        builder_fini(&composed);
    }
    const struct map_entry *keyword = map_find(lexer->keywords, token.text);
    token.kind = keyword ? (uint8_t)keyword->value.number : TOKEN_NAME;
    return token;
}

/* The longest mark that stands here; 0 bytes when none does. */
static size_t lexer_match_mark(const struct lexer *lexer, uint8_t *kind_out)
{
    cy_bytes rest = cy_bytes_skip(lexer->source->text, lexer->offset);
    size_t best = 0;
    for (size_t i = 0; i < CY_COUNT_OF(lexer_marks); i++) {
        cy_bytes mark = cy_bytes_from_text(lexer_marks[i].text);
        if (mark.count <= best || !cy_bytes_start_with(rest, mark)) continue;
        best = mark.count;
        *kind_out = lexer_marks[i].kind;
    }
    return best;
}

/* `+=` and its like are not in the language: said here, where both characters are seen, and read as `=`. */
static bool lexer_report_compound(struct lexer *lexer, struct token *token)
{
    bool arithmetic =
        token->kind >= TOKEN_PLUS && token->kind <= TOKEN_SHIFT_RIGHT && token->kind != TOKEN_TILDE;
    if (!arithmetic || lexer_peek(lexer, 0) != '=' || lexer_peek(lexer, 1) == '=') return false;
    cy_bytes mark = source_slice(lexer->source, token->span);
    lexer_advance(lexer, 1);
    token->span.end = lexer->offset;
    (void)diag_report_2(lexer->diags, lexer->source, token->span, DIAG_COMPOUND_ASSIGNMENT,
                        source_slice(lexer->source, token->span), mark);
    token->kind = TOKEN_ASSIGN;
    return true;
}

static void lexer_report_character(struct lexer *lexer)
{
    size_t length;
    uint32_t code_point = lexer_code_point(lexer, &length);
    if (code_point == LEXER_NO_CODE_POINT) {
        lexer->broken = true; /* reported there */
    } else if (text_is_bidi_control(code_point)) {
        lexer_report_bidi(lexer, code_point, length);
    } else if (code_point == ';') {
        if (!lexer->quiet)
            (void)diag_report_0(lexer->diags, lexer->source, lexer_here(lexer, length), DIAG_SEMICOLON);
    } else {
        struct span here = lexer_here(lexer, length);
        (void)diag_report_1(lexer->diags, lexer->source, here, DIAG_UNKNOWN_CHARACTER,
                            source_slice(lexer->source, here));
        lexer->broken = true;
    }
    lexer_advance(lexer, length);
}

/* Counts brackets inside \( ); true when this ) closes the interpolation. */
static bool lexer_closes_interpolation(struct lexer *lexer, uint8_t kind)
{
    if (lexer->interpolation_count == 0) return false;
    uint16_t *depth = &lexer->bracket_depth[lexer->interpolation_count - 1];
    if (kind == TOKEN_PAREN_OPEN || kind == TOKEN_BRACKET_OPEN || kind == TOKEN_BRACE_OPEN) {
        if (*depth < UINT16_MAX) ++*depth;
    } else if (kind == TOKEN_PAREN_CLOSE || kind == TOKEN_BRACKET_CLOSE || kind == TOKEN_BRACE_CLOSE) {
        if (*depth == 0) return kind == TOKEN_PAREN_CLOSE;
        --*depth;
    }
    return false;
}

/* NUL is no token, so that "nothing here" and "a mark" cannot be confused. Returns false when only an error was
 * here. */
static bool lexer_take_token(struct lexer *lexer, struct token *token)
{
    uint8_t byte = lexer_peek(lexer, 0);
    if (byte == '"') return *token = lexer_take_string(lexer, *token), true;
    if (byte == '`') return *token = lexer_take_raw(lexer, *token), true;
    if (byte >= '0' && byte <= '9') return *token = lexer_take_number(lexer, *token), true;
    size_t length;
    uint32_t code_point = lexer_code_point(lexer, &length);
    if (code_point != LEXER_NO_CODE_POINT && text_is_identifier_start(code_point))
        return *token = lexer_take_word(lexer, *token), true;

    bool is_token;
    if (byte == '\'' && lexer_take_single_quotes(lexer, token)) return true;
    if (lexer_take_foreign(lexer, token, &is_token)) {
        if (is_token && lexer_closes_interpolation(lexer, token->kind))
            *token = lexer_resume_string(lexer, *token);
        return is_token;
    }
    size_t bytes = lexer_match_mark(lexer, &token->kind);
    if (bytes == 0) return lexer_report_character(lexer), false;
    lexer_advance(lexer, bytes);
    token->span.end = lexer->offset;
    token->text = source_slice(lexer->source, token->span);
    if (lexer_closes_interpolation(lexer, token->kind))
        *token = lexer_resume_string(lexer, *token);
    else
        (void)lexer_report_compound(lexer, token);
    return true;
}

struct token lexer_next(struct lexer *lexer)
{
    for (;;) {
        if (lexer->gave_up) lexer->offset = (uint32_t)lexer->source->text.count;
        lexer_skip_space(lexer);
        struct token token = {.kind = TOKEN_END, .span = lexer_here(lexer, 0)};
        token.line_start = lexer->line != lexer->line_of_token;
        if (lexer->doc.end && lexer->doc.line + 1 == lexer->line) token.doc = lexer->doc;
        bool ends_line = lexer_at_end(lexer) || lexer_peek(lexer, 0) == '\n';
        if (ends_line && lexer->interpolation_count > 0 && !lexer->gave_up) {
            lexer->interpolation_count--;
            (void)diag_report_0(lexer->diags, lexer->source, token.span, DIAG_INTERPOLATION_OPEN);
            token.kind = TOKEN_TEXT_END;
            token.broken = true;
            return token;
        }
        token.broken = lexer->broken;
        if (lexer_at_end(lexer)) return token;
        if (!lexer_take_token(lexer, &token)) continue;
        token.broken = token.broken || lexer->broken;
        lexer->broken = false;
        lexer->line_of_token = lexer->line;
        return token;
    }
}

cy_bytes lexer_doc_text(struct arena *arena, const struct source *source, struct span doc)
{
    if (!doc.end) return CY_BYTES_NONE;
    struct builder text;
    builder_init(&text);
    cy_bytes lines = source_slice(source, doc);
    for (size_t at = 0; at < lines.count;) {
        size_t end = at + cy_bytes_find(cy_bytes_skip(lines, at), '\n');
        cy_bytes line = cy_bytes_slice(lines, at, end);
        line = cy_bytes_skip(line, cy_min_size(cy_bytes_find(line, '/') + 3, line.count));
        if (line.count > 0 && line.data[0] == ' ') line = cy_bytes_skip(line, 1);
        if (line.count > 0 && line.data[line.count - 1] == '\r') line.count--;
        if (at > 0) builder_u8(&text, '\n');
        builder_bytes(&text, line);
        at = end + 1;
    }
    cy_bytes copy = arena_copy(arena, builder_view(&text));
    builder_fini(&text);
    return copy;
}
