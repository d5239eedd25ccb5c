/* SPDX-License-Identifier: MIT
 *
 * compiler/lexer_text.c: strings, escapes, and where interpolation begins and ends.
 *
 * In:   the text behind a quote. Out: STR, or TEXT_BEGIN, TEXT_MIDDLE, TEXT_END with the decoded bytes.
 * Invariant: an interpolated string ends on its line, whatever is wrong in it; so one mistake costs one line.
 */
#include "compiler/lexer_internal.h"
#include "vm/base/mem.h"
#include "vm/base/text.h"

static void lexer_text_report_escape(struct lexer *lexer, size_t bytes)
{
    struct span span = lexer_here(lexer, bytes);
    (void)diag_report_1(lexer->diags, lexer->source, span, DIAG_BAD_ESCAPE,
                        source_slice(lexer->source, span));
    lexer_advance(lexer, bytes);
}

static int lexer_text_hex(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    uint8_t lower = byte | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* At \u. One to six hex digits in braces, a code point that is no surrogate. */
static void lexer_text_take_unicode(struct lexer *lexer, struct builder *out)
{
    uint32_t code_point = 0, digits = 0, bytes = 2;
    bool braced = lexer_peek(lexer, bytes) == '{';
    if (braced) {
        bytes++;
        for (int digit; digits < 7 && (digit = lexer_text_hex(lexer_peek(lexer, bytes))) >= 0;
             digits++, bytes++)
            code_point = code_point << 4 | (uint32_t)digit;
    }
    bool closed = braced && lexer_peek(lexer, bytes) == '}';
    if (closed) bytes++;
    bool scalar = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    if (!closed || digits == 0 || digits > 6 || !scalar) {
        lexer_text_report_escape(lexer, bytes);
        return;
    }
    text_encode(out, code_point);
    lexer_advance(lexer, bytes);
}

/* At a backslash that does not begin an interpolation. */
static void lexer_text_take_escape(struct lexer *lexer, struct builder *out)
{
    static const char from[] = "ntr0\"\\", to[] = "\n\t\r\0\"\\";
    uint8_t byte = lexer_peek(lexer, 1);
    if (byte == 'u') {
        lexer_text_take_unicode(lexer, out);
        return;
    }
    for (size_t i = 0; i + 1 < sizeof from; i++) {
        if (byte != (uint8_t)from[i]) continue;
        builder_u8(out, (uint8_t)to[i]);
        lexer_advance(lexer, 2);
        return;
    }
    size_t length = 1;
    uint32_t code_point;
    (void)!text_decode(cy_bytes_skip(lexer->source->text, lexer->offset + 1), &code_point, &length);
    lexer_text_report_escape(lexer, byte == '\n' || byte == '\r' ? 1 : 1 + length);
}

static cy_bytes lexer_text_keep(struct lexer *lexer, struct builder *text)
{
    if (text->failed) mem_exhausted();
    cy_bytes copy = arena_copy(lexer->arena, builder_view(text));
    builder_fini(text);
    return copy;
}

/* Reads up to the closing quote (kind `closed`) or the next \( (kind `open`). */
static struct token lexer_text_take_part(struct lexer *lexer, struct token token, uint8_t closed,
                                         uint8_t open)
{
    struct builder text;
    builder_init(&text);
    token.kind = closed;
    for (;;) {
        uint8_t byte = lexer_peek(lexer, 0);
        if (lexer_at_end(lexer) || byte == '\n') {
            (void)diag_report_0(lexer->diags, lexer->source, token.span, DIAG_STRING_NOT_CLOSED);
            lexer->broken = true;
            break;
        }
        if (byte == '"') {
            lexer_advance(lexer, 1);
            break;
        }
        if (byte == '\\' && lexer_peek(lexer, 1) == '(') {
            if (lexer->interpolation_count == LIMIT_NESTING_DEPTH) {
                (void)diag_report_1(lexer->diags, lexer->source, lexer_here(lexer, 2), DIAG_TOO_DEEP,
                                    diag_number(lexer->diags, LIMIT_NESTING_DEPTH));
                lexer->gave_up = true;
                break;
            }
            lexer_advance(lexer, 2);
            lexer->bracket_depth[lexer->interpolation_count++] = 0;
            token.kind = open;
            break;
        }
        if (byte == '\\') {
            lexer_text_take_escape(lexer, &text);
            continue;
        }
        size_t length;
        (void)lexer_code_point(lexer, &length);
        builder_bytes(&text, cy_bytes_slice(lexer->source->text, lexer->offset, lexer->offset + length));
        lexer_advance(lexer, length);
    }
    token.span.end = lexer->offset;
    token.text = lexer_text_keep(lexer, &text);
    return token;
}

struct token lexer_take_string(struct lexer *lexer, struct token token)
{
    token.span.end = token.span.start + 1;
    lexer_advance(lexer, 1);
    return lexer_text_take_part(lexer, token, TOKEN_STR, TOKEN_TEXT_BEGIN);
}

struct token lexer_resume_string(struct lexer *lexer, struct token token)
{
    lexer->interpolation_count--;
    return lexer_text_take_part(lexer, token, TOKEN_TEXT_END, TOKEN_TEXT_MIDDLE);
}

/* Everything up to the next backtick, line ends included. CR is dropped, so that the same file saved on another system
 * gives the same program. */
struct token lexer_take_raw(struct lexer *lexer, struct token token)
{
    struct builder text;
    builder_init(&text);
    token.kind = TOKEN_STR;
    token.span.end = token.span.start + 1;
    lexer_advance(lexer, 1);
    while (lexer_peek(lexer, 0) != '`') {
        if (lexer_at_end(lexer)) {
            (void)diag_report_0(lexer->diags, lexer->source, token.span, DIAG_RAW_NOT_CLOSED);
            lexer->gave_up = true; /* it took the rest of the file: what is missed there is not missing */
            break;
        }
        size_t length;
        (void)lexer_code_point(lexer, &length);
        if (lexer_peek(lexer, 0) != '\r')
            builder_bytes(&text, cy_bytes_slice(lexer->source->text, lexer->offset, lexer->offset + length));
        lexer_advance(lexer, length);
    }
    lexer_advance(lexer, 1);
    token.span.end = lexer->offset;
    token.text = lexer_text_keep(lexer, &text);
    return token;
}
