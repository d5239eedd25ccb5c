/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_lex.c: see rpn_lex.h.
 *
 *      space    = space, tab, CR, LF; "#" to the end of the line
 *      string   = '"' ... '"' on one line; \" \\ \n \r \t \xNN \u{H}
 *      number   = a word that begins with a digit, or a sign and a digit; inf, -inf, nan
 *      place    = "@" LINE ":" COLUMN
 *      label    = word ":"
 *      word     = anything else up to space, '"' or "#"
 *
 * Invariant: what could steer a terminal, and bytes that are not UTF-8, are refused wherever they stand.
 */
#include "vm/code/rpn_lex.h"

#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <stdio.h>

void rpn_lexer_init(struct rpn_lexer *lexer, cy_bytes text, struct rpn_faults *faults, struct arena *arena,
                    bool *no_memory)
{
    *lexer = (struct rpn_lexer){
        .text = text, .line = 1, .column = 1, .faults = faults, .arena = arena, .no_memory = no_memory};
    if (cy_bytes_start_with(text, CY_BYTES("\xef\xbb\xbf")))
        lexer->offset = 3; /* some editors' mark of UTF-8 */
}

static uint8_t rpn_lex_peek(const struct rpn_lexer *lexer)
{
    return lexer->offset < lexer->text.count ? lexer->text.data[lexer->offset] : 0;
}

static bool rpn_lex_at_end(const struct rpn_lexer *lexer) { return lexer->offset >= lexer->text.count; }

static struct rpn_place rpn_lex_place(const struct rpn_lexer *lexer)
{
    return (struct rpn_place){.offset = lexer->offset, .line = lexer->line, .column = lexer->column};
}

static void rpn_lex_report(struct rpn_lexer *lexer, struct rpn_place place, enum rpn_fault fault,
                           cy_bytes argument)
{
    if (!lexer->faults) return;
    rpn_fault_report(lexer->faults, place, fault, argument, CY_BYTES_NONE, CY_BYTES_NONE, CY_BYTES_NONE);
}

/* Goes over one code point; reports what must not stand in a text, and returns false. */
static bool rpn_lex_step(struct rpn_lexer *lexer)
{
    uint32_t code_point;
    size_t length;
    cy_bytes rest = cy_bytes_skip(lexer->text, lexer->offset);
    bool valid = text_decode(rest, &code_point, &length);
    bool is_space = code_point == '\n' || code_point == '\r' || code_point == '\t';
    bool hidden = valid && !is_space &&
                  (code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0) || code_point == 0x2028 ||
                   code_point == 0x2029 || text_is_bidi_control(code_point));
    if (lexer->faults && (!valid || hidden)) {
        char shown[16];
        struct rpn_place place = rpn_lex_place(lexer);
        place.bytes = length;
        int count = valid ? snprintf(shown, sizeof shown, "U+%04X", (unsigned)code_point)
                          : snprintf(shown, sizeof shown, "%02x", rest.data[0]);
        rpn_lex_report(lexer, place, valid ? RPN_FAULT_HIDDEN : RPN_FAULT_BAD_UTF8,
                       cy_bytes_of(shown, (size_t)count));
    }
    lexer->offset += length;
    lexer->column++;
    if (valid && code_point == '\n') {
        lexer->line++;
        lexer->column = 1;
    }
    return valid && !hidden;
}

static bool rpn_lex_is_space(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static void rpn_lex_skip_space(struct rpn_lexer *lexer)
{
    while (!rpn_lex_at_end(lexer)) {
        uint8_t byte = rpn_lex_peek(lexer);
        if (byte == '#')
            while (!rpn_lex_at_end(lexer) && rpn_lex_peek(lexer) != '\n') (void)rpn_lex_step(lexer);
        else if (rpn_lex_is_space(byte))
            (void)rpn_lex_step(lexer);
        else
            return;
    }
}

/* -- strings --------------------------------------------------------------------------------------------- */

static int rpn_lex_hex(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* \u{1F600}: how many bytes it takes, 0 when malformed. */
static size_t rpn_lex_code_point(cy_bytes escape, struct builder *out)
{
    uint32_t code_point = 0;
    size_t at = 3;
    if (escape.count < 5 || escape.data[2] != '{') return 0;
    for (; at < escape.count && at < 9 && rpn_lex_hex(escape.data[at]) >= 0; at++)
        code_point = code_point << 4 | (uint32_t)rpn_lex_hex(escape.data[at]);
    bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    if (at == 3 || at >= escape.count || escape.data[at] != '}' || code_point > 0x10FFFF || is_surrogate)
        return 0;
    text_encode(out, code_point);
    return at + 1;
}

/* Appends what the escape at the start of `escape` stands for; how many bytes it takes, 0 when there is none such. */
static size_t rpn_lex_escape(cy_bytes escape, struct builder *out)
{
    static const char plain[][2] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'"', '"'}, {'\\', '\\'}};
    if (escape.count < 2) return 0;
    for (size_t i = 0; i < CY_COUNT_OF(plain); i++) {
        if (escape.data[1] != (uint8_t)plain[i][0]) continue;
        builder_u8(out, (uint8_t)plain[i][1]);
        return 2;
    }
    if (escape.data[1] == 'u') return rpn_lex_code_point(escape, out);
    if (escape.data[1] != 'x' || escape.count < 4) return 0;
    int high = rpn_lex_hex(escape.data[2]), low = rpn_lex_hex(escape.data[3]);
    if (high < 0 || low < 0) return 0;
    builder_u8(out, (uint8_t)(high << 4 | low));
    return 4;
}

static cy_bytes rpn_lex_keep(struct rpn_lexer *lexer, struct builder *value)
{
    cy_bytes copy = value->failed ? CY_BYTES_NONE : arena_copy(lexer->arena, builder_view(value));
    if (!copy.data) *lexer->no_memory = true;
    return copy;
}

static void rpn_lex_unescape(struct rpn_lexer *lexer, struct rpn_token *token, cy_bytes inside)
{
    struct builder value;
    builder_init(&value);
    uint32_t column = token->place.column + 1;
    for (size_t at = 0, length; at < inside.count; at += length) {
        cy_bytes rest = cy_bytes_skip(inside, at);
        uint32_t code_point;
        if (rest.data[0] != '\\') {
            (void)!text_decode(rest, &code_point, &length);
            builder_bytes(&value, cy_bytes_slice(rest, 0, length));
            column++;
            continue;
        }
        length = rpn_lex_escape(rest, &value);
        if (!length) {
            struct rpn_place place = {token->place.offset + 1 + at, 2, token->place.line, column};
            rpn_lex_report(lexer, place, RPN_FAULT_ESCAPE, cy_bytes_slice(rest, 0, 2));
            token->kind = RPN_TOKEN_BAD;
            length = 1;
        }
        column += (uint32_t)length; /* escapes are ASCII */
    }
    token->value = rpn_lex_keep(lexer, &value);
    builder_fini(&value);
}

static void rpn_lex_string(struct rpn_lexer *lexer, struct rpn_token *token)
{
    token->kind = RPN_TOKEN_STRING;
    (void)rpn_lex_step(lexer);
    size_t start = lexer->offset;
    bool has_escape = false;
    while (!rpn_lex_at_end(lexer) && rpn_lex_peek(lexer) != '"' && rpn_lex_peek(lexer) != '\n') {
        bool escape = rpn_lex_peek(lexer) == '\\';
        has_escape = has_escape || escape;
        (void)rpn_lex_step(lexer);
        if (escape && !rpn_lex_at_end(lexer) && rpn_lex_peek(lexer) != '\n') (void)rpn_lex_step(lexer);
    }
    cy_bytes inside = cy_bytes_slice(lexer->text, start, lexer->offset);
    token->value = inside;
    if (rpn_lex_peek(lexer) != '"' || rpn_lex_at_end(lexer)) {
        token->place.bytes = lexer->offset - token->place.offset;
        rpn_lex_report(lexer, token->place, RPN_FAULT_STRING_END, CY_BYTES_NONE);
        token->kind = RPN_TOKEN_BAD;
        return;
    }
    (void)rpn_lex_step(lexer);
    if (has_escape && lexer->faults) rpn_lex_unescape(lexer, token, inside);
}

/* -- words ----------------------------------------------------------------------------------------------- */

static bool rpn_lex_begins_number(cy_bytes word)
{
    size_t at = word.data[0] == '-' || word.data[0] == '+';
    return rpn_number_is_named(word) || (word.count > at && word.data[at] >= '0' && word.data[at] <= '9');
}

static void rpn_lex_number(struct rpn_lexer *lexer, struct rpn_token *token)
{
    static const char int_range[] = "-9223372036854775808..9223372036854775807";
    cy_bytes word = token->raw;
    bool is_float = rpn_number_is_float(word), exact = true;
    token->kind = is_float ? RPN_TOKEN_FLOAT : RPN_TOKEN_INT;
    if (!lexer->faults) return;
    enum rpn_number result =
        is_float ? rpn_number_float(word, &token->real, &exact) : rpn_number_int(word, &token->integer);
    if (result == RPN_NUMBER_OK && exact) return;
    if (result == RPN_NUMBER_OK) {
        char shown[40];
        int count = snprintf(shown, sizeof shown, "%a", token->real);
        rpn_fault_report(lexer->faults, token->place, RPN_FAULT_FLOAT_ROUNDED, word,
                         cy_bytes_of(shown, (size_t)count), CY_BYTES_NONE, CY_BYTES_NONE);
        return;
    }
    token->kind = RPN_TOKEN_BAD;
    if (result == RPN_NUMBER_MALFORMED)
        rpn_lex_report(lexer, token->place, RPN_FAULT_NUMBER_FORM, word);
    else if (result == RPN_NUMBER_TOO_PRECISE)
        rpn_lex_report(lexer, token->place, RPN_FAULT_FLOAT_DIGITS, word);
    else if (is_float)
        rpn_lex_report(lexer, token->place, RPN_FAULT_FLOAT_RANGE, word);
    else
        rpn_fault_report(lexer->faults, token->place, RPN_FAULT_NUMBER_RANGE, word,
                         cy_bytes_from_text(int_range), CY_BYTES_NONE, CY_BYTES_NONE);
}

static void rpn_lex_source(struct rpn_lexer *lexer, struct rpn_token *token)
{
    cy_bytes word = cy_bytes_skip(token->raw, 1);
    size_t colon = cy_bytes_find(word, ':');
    uint64_t line, column;
    token->kind = RPN_TOKEN_SOURCE;
    bool good = cy_bytes_parse_u64(cy_bytes_slice(word, 0, colon), UINT32_MAX, &line) &&
                cy_bytes_parse_u64(cy_bytes_skip(word, colon + 1), UINT32_MAX, &column) && line > 0 &&
                column > 0;
    if (good) {
        token->line = (uint32_t)line;
        token->column = (uint32_t)column;
        return;
    }
    token->kind = RPN_TOKEN_BAD;
    rpn_lex_report(lexer, token->place, RPN_FAULT_PLACE_FORM, CY_BYTES_NONE);
}

/* File systems and editors may hand out Hangul taken apart. */
static void rpn_lex_normalise(struct rpn_lexer *lexer, struct rpn_token *token)
{
    if (token->value.count > LIMIT_PROGRAM_NAME_BYTES) {
        struct builder number;
        builder_init(&number);
        builder_i64_text(&number, LIMIT_PROGRAM_NAME_BYTES);
        rpn_lex_report(lexer, token->place, RPN_FAULT_WORD_LENGTH, builder_view(&number));
        builder_fini(&number);
        token->kind = RPN_TOKEN_BAD;
        return;
    }
    bool ascii = true;
    for (size_t i = 0; i < token->value.count; i++) ascii = ascii && token->value.data[i] < 0x80;
    if (ascii || !text_is_utf8(token->value, NULL) || text_is_nfc(token->value)) return;
    struct builder normal;
    builder_init(&normal);
    if (cy_failed(text_to_nfc(token->value, &normal))) *lexer->no_memory = true;
    token->value = rpn_lex_keep(lexer, &normal);
    builder_fini(&normal);
}

static void rpn_lex_word(struct rpn_lexer *lexer, struct rpn_token *token)
{
    bool good = true;
    while (!rpn_lex_at_end(lexer)) {
        uint8_t byte = rpn_lex_peek(lexer);
        if (rpn_lex_is_space(byte) || byte == '"' || byte == '#') break;
        good = rpn_lex_step(lexer) && good;
    }
    token->raw = cy_bytes_slice(lexer->text, token->place.offset, lexer->offset);
    token->place.bytes = token->raw.count;
    token->value = token->raw;
    token->kind = good ? RPN_TOKEN_WORD : RPN_TOKEN_BAD;
    if (!good) return;
    if (token->raw.data[0] == '@') {
        rpn_lex_source(lexer, token);
        return;
    }
    if (token->raw.count > 1 && token->raw.data[token->raw.count - 1] == ':') {
        token->kind = RPN_TOKEN_LABEL;
        token->value = cy_bytes_slice(token->raw, 0, token->raw.count - 1);
    } else if (rpn_lex_begins_number(token->raw)) {
        rpn_lex_number(lexer, token);
        return;
    }
    rpn_lex_normalise(lexer, token);
}

struct rpn_token rpn_lexer_next(struct rpn_lexer *lexer)
{
    rpn_lex_skip_space(lexer);
    struct rpn_token token = {.kind = RPN_TOKEN_END, .place = rpn_lex_place(lexer)};
    if (rpn_lex_at_end(lexer)) return token;
    if (rpn_lex_peek(lexer) == '"') {
        rpn_lex_string(lexer, &token);
        token.raw = cy_bytes_slice(lexer->text, token.place.offset, lexer->offset);
        token.place.bytes = token.raw.count;
    } else {
        rpn_lex_word(lexer, &token);
    }
    return token;
}
