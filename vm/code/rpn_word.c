/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_word.c: see rpn_word.h.
 *
 * Invariant: an opcode that rpn_word.def does not know yet still has its English spelling, so a new row of opcode.def
 *            can be written and read the day it is made.
 */
#include "vm/code/rpn_word.h"

#include "vm/base/check.h"

static const struct {
    const char *english, *korean;
} rpn_word_rows[RPN_WORD_COUNT] = {
#define RPN_WORD(name, english, korean) [RPN_WORD_##name] = {english, korean},
#include "vm/code/rpn_word.def"
#undef RPN_WORD
};

static const char *const rpn_word_opcodes[256] = {
#define RPN_OPCODE(name, korean) [OP_##name] = korean,
#include "vm/code/rpn_word.def"
#undef RPN_OPCODE
};

/* Fixed, as what is reported must not depend on the run. Keys are our own words. */
static const hash_seed rpn_word_seed = {0x72706e, 0x776f7264};

const char *rpn_word_text(enum rpn_word word, bool korean)
{
    CHECK(word > RPN_WORD_NONE && word < RPN_WORD_COUNT);
    return korean ? rpn_word_rows[word].korean : rpn_word_rows[word].english;
}

const char *rpn_opcode_text(const struct opcode_row *row, bool korean)
{
    const struct opcode_row *narrow = opcode_narrow(row);
    if (narrow) row = narrow;
    const char *text = rpn_word_opcodes[row->number];
    return korean && text ? text : row->name;
}

/* -- natives --------------------------------------------------------------------------------------------- */

static cy_bytes rpn_word_module(const struct native_row *row)
{
    cy_bytes english = cy_bytes_from_text(row->english);
    size_t dot = cy_bytes_find(english, '.');
    return cy_bytes_slice(english, 0, dot < english.count ? dot : 0);
}

static void rpn_word_put_korean(const struct native_row *row, struct builder *out)
{
    cy_bytes module = rpn_word_module(row);
    builder_bytes(out, module);
    if (module.count) builder_u8(out, '.');
    builder_text(out, row->korean);
}

/* Two natives of one module may share a Korean name, or have one that is an opcode's: then only the English leads
 * back. */
static bool rpn_word_korean_leads_back(const struct native_row *row)
{
    cy_bytes module = rpn_word_module(row), korean = cy_bytes_from_text(row->korean);
    if (native_row_find_member(module, korean) != row) return false;
    if (module.count) return true;
    for (size_t i = 0; i < CY_COUNT_OF(rpn_word_opcodes); i++)
        if (rpn_word_opcodes[i] && strcmp(rpn_word_opcodes[i], row->korean) == 0) return false;
    for (size_t i = RPN_WORD_NONE + 1; i < CY_COUNT_OF(rpn_word_rows); i++)
        if (strcmp(rpn_word_rows[i].korean, row->korean) == 0) return false;
    return true;
}

void rpn_native_text(const struct native_row *row, bool korean, struct builder *out)
{
    if (korean && rpn_word_korean_leads_back(row))
        rpn_word_put_korean(row, out);
    else
        builder_text(out, row->english);
}

/* -- dictionary ------------------------------------------------------------------------------------------ */

/* The first to come keeps the word. */
static cy_err rpn_word_enter_number(struct map *map, const char *key, uint64_t number)
{
    bool is_new;
    struct map_entry *entry = map_insert(map, cy_bytes_from_text(key), &is_new);
    if (!entry) return CY_ERR(NO_MEMORY);
    if (is_new) entry->value.number = number;
    return CY_OK;
}

/* Only the English names: most texts have few natives, so the Korean ones are not worth a map for each text. */
static cy_err rpn_word_enter_natives(struct map *map)
{
    const struct native_row *row;
    for (size_t i = 0; (row = native_row_at(i)); i++) {
        struct map_entry *entry = map_insert(map, cy_bytes_from_text(row->english), NULL);
        if (!entry) return CY_ERR(NO_MEMORY);
        entry->value.pointer = (void *)(uintptr_t)row;
    }
    return CY_OK;
}

cy_err rpn_dictionary_init(struct rpn_dictionary *dictionary)
{
    map_init(&dictionary->opcodes, rpn_word_seed);
    map_init(&dictionary->words, rpn_word_seed);
    map_init(&dictionary->natives, rpn_word_seed);
    for (unsigned number = 0; number < 256; number++) {
        const struct opcode_row *row = opcode_row((uint8_t)number);
        if (!row->name) continue;
        CY_TRY(rpn_word_enter_number(&dictionary->opcodes, row->name, number));
        if (opcode_narrow(row)) continue;
        CY_TRY(rpn_word_enter_number(&dictionary->opcodes, rpn_opcode_text(row, true), number));
    }
    for (unsigned word = RPN_WORD_NONE + 1; word < RPN_WORD_COUNT; word++) {
        CY_TRY(rpn_word_enter_number(&dictionary->words, rpn_word_rows[word].english, word));
        CY_TRY(rpn_word_enter_number(&dictionary->words, rpn_word_rows[word].korean, word));
    }
    return rpn_word_enter_natives(&dictionary->natives);
}

void rpn_dictionary_fini(struct rpn_dictionary *dictionary)
{
    map_fini(&dictionary->natives);
    map_fini(&dictionary->words);
    map_fini(&dictionary->opcodes);
}

enum rpn_word rpn_dictionary_word(const struct rpn_dictionary *dictionary, cy_bytes word)
{
    const struct map_entry *entry = map_find(&dictionary->words, word);
    return entry ? (enum rpn_word)entry->value.number : RPN_WORD_NONE;
}

const struct opcode_row *rpn_dictionary_opcode(const struct rpn_dictionary *dictionary, cy_bytes word)
{
    const struct map_entry *entry = map_find(&dictionary->opcodes, word);
    return entry ? opcode_row((uint8_t)entry->value.number) : NULL;
}

const struct native_row *rpn_dictionary_native(const struct rpn_dictionary *dictionary, cy_bytes word)
{
    const struct map_entry *entry = map_find(&dictionary->natives, word);
    if (entry) return entry->value.pointer;
    bool ascii = true; /* then it is no Korean name, and the table need not be walked */
    for (size_t i = 0; i < word.count; i++) ascii = ascii && word.data[i] < 0x80;
    if (ascii) return NULL;
    size_t dot = cy_bytes_find(word, '.');
    cy_bytes module = cy_bytes_slice(word, 0, dot < word.count ? dot : 0);
    return native_row_find_member(module, dot < word.count ? cy_bytes_skip(word, dot + 1) : word);
}

void rpn_dictionary_offer(const struct map *map, struct nearest *nearest)
{
    for (uint32_t i = 0; i < map->count; i++) nearest_offer(nearest, map->entries[i].key);
}
