/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_word.h: the words of RPN text, from either spelling to their meaning and back.
 *
 * In:   the rows of rpn_word.def, opcode.def, native.def, kind.def.
 * Out:  spellings for the writer; a dictionary for the reader.
 */
#ifndef CY_CODE_RPN_WORD_H
#define CY_CODE_RPN_WORD_H

#include "vm/base/builder.h"
#include "vm/base/map.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

enum rpn_word {
    RPN_WORD_NONE,
#define RPN_WORD(name, english, korean) RPN_WORD_##name,
#include "vm/code/rpn_word.def"
#undef RPN_WORD
    RPN_WORD_COUNT
};

const char *rpn_word_text(enum rpn_word word, bool korean);
/* The row's name; in Korean the spelling of rpn_word.def, the name when that has none. Never a WIDE row's. */
const char *rpn_opcode_text(const struct opcode_row *row, bool korean);
/* "text.count"; in Korean "text.글자수", but only where that leads back to the same row. */
void rpn_native_text(const struct native_row *row, bool korean, struct builder *out);

/* What a bare word can mean by itself. The same word may be in several of the maps. */
struct rpn_dictionary {
    struct map opcodes; /* number: the opcode's, of two twins the narrow one's when spelled that way */
    struct map words;   /* number: enum rpn_word */
    struct map natives; /* by English name; pointer: struct native_row */
};
CY_NODISCARD cy_err rpn_dictionary_init(struct rpn_dictionary *dictionary); /* fini also after failure */
void rpn_dictionary_fini(struct rpn_dictionary *dictionary);
enum rpn_word rpn_dictionary_word(const struct rpn_dictionary *dictionary, cy_bytes word);
/* NULL when none. */
const struct opcode_row *rpn_dictionary_opcode(const struct rpn_dictionary *dictionary, cy_bytes word);
const struct native_row *rpn_dictionary_native(const struct rpn_dictionary *dictionary, cy_bytes word);
/* Offers every key of a map. */
void rpn_dictionary_offer(const struct map *map, struct nearest *nearest);

#endif
