/* SPDX-License-Identifier: MIT
 *
 * vm/code/native_table.c: the rows of native.def and capability.def, and the reader of their signatures.
 *
 * In:   numbers, names.
 * Out:  rows; signatures taken apart.
 * Invariant: a number below NATIVE_NUMBER_END finds its row in one step.
 * Not here: bodies (vm/native).
 *
 * A signature, as a grammar ("word" is letters, digits and _):
 *
 *      signature  = "(" [ "..." | parameter { ", " parameter } [ ", ..." ] ] ")" " -> " kinds
 *      parameter  = word ": " kinds [ " = " default ]
 *      kinds      = word { "|" word }
 *      default    = anything up to a "," or ")" that is not inside quotes
 */
#include "vm/code/native_table.h"

#include "vm/base/check.h"
#include "vm/code/opcode.h"

enum native_table_position {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    NATIVE_TABLE_AT_##name,
#include "vm/code/native.def"
#undef NATIVE
    NATIVE_TABLE_COUNT
};

#define NATIVE_TABLE_CORE true
#define NATIVE_TABLE_FULL false
/* The flags of native.def as their rows spell them. */
#define PURE NATIVE_FLAG_PURE
#define WAIT NATIVE_FLAG_WAIT
#define MAIN NATIVE_FLAG_MAIN
static const struct native_row native_table_rows[NATIVE_TABLE_COUNT] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    {#name,                                                                                 \
     english,                                                                               \
     korean,                                                                                \
     signature,                                                                             \
     meaning,                                                                               \
     number,                                                                                \
     flags,                                                                                 \
     CAPABILITY_##capability,                                                               \
     NATIVE_TABLE_##group},
#include "vm/code/native.def"
#undef NATIVE
};
#undef MAIN
#undef WAIT
#undef PURE
#undef NATIVE_TABLE_FULL
#undef NATIVE_TABLE_CORE

/* Position + 1 by number, 0 where there is no row. Two rows with one number do not compile
 * (-Woverride-init). */
static const uint16_t native_table_by_number[NATIVE_NUMBER_END] = {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    [number] = NATIVE_TABLE_AT_##name + 1,
#include "vm/code/native.def"
#undef NATIVE
};

static const struct {
    uint32_t bit;
    const char *word;
    bool granted;
} native_table_capabilities[] = {
#define CAPABILITY(name, bit, word, granted, meaning) {CAPABILITY_##name, word, granted},
#include "vm/code/capability.def"
#undef CAPABILITY
};

/* Words of signatures that are not rows of kind.def. A handle or opaque word says which type its body will
 * accept. */
static const struct {
    const char *word;
    uint32_t kinds;
} native_table_kind_words[] = {
    {"any", (1u << KIND_COUNT) - 1}, {"number", 1u << KIND_INT | 1u << KIND_FLOAT},
    {"request", 1u << KIND_HANDLE},  {"task", 1u << KIND_HANDLE},
    {"upstream", 1u << KIND_OPAQUE}, {"verdict", 1u << KIND_OPAQUE},
    {"regex", 1u << KIND_OPAQUE},    {"tls", 1u << KIND_OPAQUE},
    {"trust", 1u << KIND_OPAQUE},
};

const struct native_row *native_row_at(size_t index)
{
    return index < NATIVE_TABLE_COUNT ? &native_table_rows[index] : NULL;
}

const struct native_row *native_row_by_number(uint16_t number)
{
    if (number >= NATIVE_NUMBER_END) return NULL;
    uint16_t position_plus_1 = native_table_by_number[number];
    return position_plus_1 ? &native_table_rows[position_plus_1 - 1] : NULL;
}

const struct native_row *native_row_find(cy_bytes english)
{
    for (size_t i = 0; i < NATIVE_TABLE_COUNT; i++)
        if (cy_bytes_equal(cy_bytes_from_text(native_table_rows[i].english), english))
            return &native_table_rows[i];
    return NULL;
}

/* "http.respond" -> "http", "respond"; "print" -> "", "print". */
static cy_bytes native_table_module(const struct native_row *row, cy_bytes *member_out)
{
    cy_bytes english = cy_bytes_from_text(row->english);
    size_t dot = cy_bytes_find(english, '.');
    *member_out = dot < english.count ? cy_bytes_skip(english, dot + 1) : english;
    return cy_bytes_slice(english, 0, dot < english.count ? dot : 0);
}

const struct native_row *native_row_find_member(cy_bytes module, cy_bytes member)
{
    for (size_t i = 0; i < NATIVE_TABLE_COUNT; i++) {
        const struct native_row *row = &native_table_rows[i];
        cy_bytes row_member;
        if (!cy_bytes_equal(native_table_module(row, &row_member), module)) continue;
        if (cy_bytes_equal(row_member, member)) return row;
        if (cy_bytes_equal(cy_bytes_from_text(row->korean), member)) return row;
    }
    return NULL;
}

bool native_module_exists(cy_bytes module)
{
    for (size_t i = 0; i < NATIVE_TABLE_COUNT; i++) {
        cy_bytes member;
        if (cy_bytes_equal(native_table_module(&native_table_rows[i], &member), module)) return true;
    }
    return false;
}

static bool native_table_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_';
}

static cy_bytes native_table_take_word(const char **at)
{
    const char *start = *at;
    while (native_table_word_byte(**at)) (*at)++;
    CHECK(*at > start);
    return cy_bytes_of(start, (size_t)(*at - start));
}

static bool native_table_take_text(const char **at, const char *text)
{
    size_t count = strlen(text);
    if (strncmp(*at, text, count) != 0) return false;
    *at += count;
    return true;
}

static uint32_t native_table_kinds_of_word(cy_bytes word)
{
    enum value_kind kind;
    if (kind_find(word, &kind)) return 1u << kind;
    for (size_t i = 0; i < CY_COUNT_OF(native_table_kind_words); i++)
        if (cy_bytes_equal(cy_bytes_from_text(native_table_kind_words[i].word), word))
            return native_table_kind_words[i].kinds;
    UNREACHABLE();
}

static uint32_t native_table_take_kinds(const char **at)
{
    uint32_t kinds = 0;
    do kinds |= native_table_kinds_of_word(native_table_take_word(at));
    while (native_table_take_text(at, "|"));
    return kinds;
}

static void native_table_skip_default(const char **at)
{
    bool quoted = false;
    for (; **at && (quoted || (**at != ',' && **at != ')')); (*at)++) {
        if (quoted && **at == '\\')
            (*at)++;
        else if (**at == '"')
            quoted = !quoted;
        CHECK(**at);
    }
    CHECK(!quoted);
}

static void native_table_take_param(const char **at, struct native_signature *signature)
{
    CHECK(signature->named_count < NATIVE_PARAMS_MAX);
    struct native_param *param = &signature->params[signature->named_count++];
    param->name = native_table_take_word(at);
    CHECK(native_table_take_text(at, ": "));
    param->kinds = native_table_take_kinds(at);
    param->optional = native_table_take_text(at, " = ");
    if (param->optional) {
        native_table_skip_default(at);
    } else {
        CHECK(signature->required_count + 1 ==
              signature->named_count); /* what may be left out stands at the end */
        signature->required_count++;
    }
    signature->param_count = signature->named_count;
}

void native_signature_parse(const struct native_row *row, struct native_signature *signature_out)
{
    *signature_out = (struct native_signature){0};
    const char *at = row->signature;
    CHECK(native_table_take_text(&at, "("));
    while (!native_table_take_text(&at, ")")) {
        CHECK(signature_out->param_count != NATIVE_ARGS_ANY); /* "..." is the last */
        if (signature_out->named_count > 0) CHECK(native_table_take_text(&at, ", "));
        if (native_table_take_text(&at, "..."))
            signature_out->param_count = NATIVE_ARGS_ANY;
        else
            native_table_take_param(&at, signature_out);
    }
    CHECK(native_table_take_text(&at, " -> "));
    signature_out->result_kinds = native_table_take_kinds(&at);
    CHECK(*at == 0);
}

const char *capability_word(enum capability capability)
{
    for (size_t i = 0; i < CY_COUNT_OF(native_table_capabilities); i++)
        if (native_table_capabilities[i].bit == (uint32_t)capability)
            return native_table_capabilities[i].word;
    UNREACHABLE();
}

bool capability_find(cy_bytes word, enum capability *capability_out)
{
    for (size_t i = 0; i < CY_COUNT_OF(native_table_capabilities); i++) {
        if (!cy_bytes_equal(cy_bytes_from_text(native_table_capabilities[i].word), word)) continue;
        *capability_out = (enum capability)native_table_capabilities[i].bit;
        return true;
    }
    return false;
}

uint32_t capability_granted_mask(void)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < CY_COUNT_OF(native_table_capabilities); i++)
        if (native_table_capabilities[i].granted) mask |= native_table_capabilities[i].bit;
    return mask;
}
