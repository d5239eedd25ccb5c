/* SPDX-License-Identifier: MIT
 *
 * compiler/lexer.h: source text as tokens, one at a time.
 *
 * In:   a source that lives as long as the arena.
 * Out:  tokens with their place, ending in TOKEN_END for ever after. What is wrong is reported and stepped over.
 *
 *       "a \(x + 1) b \(y)"   TEXT_BEGIN "a "   NAME x  PLUS  INT 1   TEXT_MIDDLE " b "   NAME y   TEXT_END ""
 *
 * Invariant: names are in NFC; both spellings of a keyword, and the marks && || !, are the same token.
 */
#ifndef CY_COMPILER_LEXER_H
#define CY_COMPILER_LEXER_H

#include "compiler/diag.h"
#include "compiler/source.h"
#include "vm/base/limits.h"
#include "vm/base/map.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,        /* text */
    TOKEN_INT,         /* integer */
    TOKEN_FLOAT,       /* real */
    TOKEN_STR,         /* text: a string without interpolation, or a raw one */
    TOKEN_TEXT_BEGIN,  /* text: the part before the first \( */
    TOKEN_TEXT_MIDDLE, /* text: the part between ) and the next \( */
    TOKEN_TEXT_END,    /* text: the part behind the last ) */
#define KEYWORD(name, english, korean, korean_2) TOKEN_##name,
#define MARK(name, text) TOKEN_##name,
#include "compiler/token.def"
#undef KEYWORD
#undef MARK
    TOKEN_KIND_COUNT
};

struct token {
    uint8_t kind;    /* enum token_kind */
    bool line_start; /* nothing but space stands before it on its line */
    bool broken; /* something unreadable stands in it or before it: reported, and no reason to report more */
    bool bit_pattern; /* INT written in hex or binary: `integer` is a 64-bit pattern */
    struct span span;
    struct span doc;  /* of the `///` lines right above it; end 0 = none */
    cy_bytes text;    /* NAME and keywords: the word in NFC; see above for the others */
    uint64_t integer; /* the magnitude; decimal ones up to 2^63, so that the parser can negate it */
    double real;
};

/* Word to token kind; made once per compilation. */
void lexer_keywords_init(struct map *keywords);

struct lexer {
    struct arena *arena;
    struct diag_list *diags;
    const struct source *source;
    const struct map *keywords;
    uint32_t offset;
    uint32_t line, column;
    uint32_t line_of_token; /* the line on which the last token ended */
    bool bad_utf8_reported;
    bool broken;     /* for the next token */
    bool quiet;      /* what stands here was reported as a whole: marks of other languages are not */
    bool gave_up;    /* nested too deeply, or a raw string without end: the rest is neither read nor judged */
    struct span doc; /* the `///` lines seen last since the token before; `line` is that of the last one */
    struct span module_doc;                      /* the first ones of the file, before any token */
    uint32_t interpolation_count;                /* open \( */
    uint16_t bracket_depth[LIMIT_NESTING_DEPTH]; /* open brackets inside each of them */
};

void lexer_init(struct lexer *lexer, struct arena *arena, struct diag_list *diags,
                const struct source *source, const struct map *keywords);
struct token lexer_next(struct lexer *lexer);

/* The text of `///` lines: without the marks and one space behind them, lines joined by line ends. In the arena. */
cy_bytes lexer_doc_text(struct arena *arena, const struct source *source, struct span doc);

bool token_is_keyword(uint8_t kind);
/* "fn", "+", "" for those that have no fixed spelling. */
const char *token_spelling(uint8_t kind, bool korean);

#endif
