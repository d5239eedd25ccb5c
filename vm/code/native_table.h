/* SPDX-License-Identifier: MIT
 *
 * vm/code/native_table.h: what native.def and capability.def say, as C. Bodies are elsewhere (vm/native).
 */
#ifndef CY_CODE_NATIVE_TABLE_H
#define CY_CODE_NATIVE_TABLE_H

#include "vm/base/bytes.h"

enum native_number {
#define NATIVE(group, name, number, english, korean, signature, capability, flags, meaning) \
    NATIVE_##name = number,
#include "vm/code/native.def"
#undef NATIVE
    NATIVE_NUMBER_END = 0x0800 /* one past the highest number a row may have */
};

enum native_flags { NATIVE_FLAG_PURE = 1, NATIVE_FLAG_WAIT = 2, NATIVE_FLAG_MAIN = 4 };

enum capability {
#define CAPABILITY(name, bit, word, granted, meaning) CAPABILITY_##name = (bit) == 0 ? 0 : 1 << (bit),
#include "vm/code/capability.def"
#undef CAPABILITY
    CAPABILITY_NET_READ = CAPABILITY_NET | CAPABILITY_READ, /* for rows that need both */
};

#define NATIVE_PARAMS_MAX 8
#define NATIVE_ARGS_ANY 255

/* A parameter as its signature says it. `kinds` has bit 1 << enum value_kind for each kind allowed. */
struct native_param {
    cy_bytes name;
    uint32_t kinds;
    bool optional;
};
struct native_row {
    const char *name; /* the C name: "http_respond"; NULL: no such row */
    const char *english;
    const char *korean;
    const char *signature;
    const char *meaning;
    uint16_t number;
    uint16_t flags;
    uint32_t capability; /* bits of enum capability */
    bool core;
};
/* A signature taken apart. */
struct native_signature {
    uint8_t required_count;
    uint8_t param_count;   /* NATIVE_ARGS_ANY with "..." */
    uint8_t named_count;   /* parameters in `params` */
    uint32_t result_kinds; /* as in native_param */
    struct native_param params[NATIVE_PARAMS_MAX];
};

/* The `index`-th row in table order, NULL past the last. */
const struct native_row *native_row_at(size_t index);
/* The row with that number; NULL when none. O(1). */
const struct native_row *native_row_by_number(uint16_t number);
/* By the English name ("http.respond"); NULL when none. */
const struct native_row *native_row_find(cy_bytes english);
/* By module ("" is the prelude) and a member name in either spelling; NULL when none. */
const struct native_row *native_row_find_member(cy_bytes module, cy_bytes member);
/* True when some row has this module ("http"). */
bool native_module_exists(cy_bytes module);

/* Takes a row's signature apart. CHECKs that it is well-formed: rows are ours, a unit test parses them all. */
void native_signature_parse(const struct native_row *row, struct native_signature *signature_out);

const char *capability_word(enum capability capability);
/* False when no capability has that word. */
CY_NODISCARD bool capability_find(cy_bytes word, enum capability *capability_out);
/* The bits a program gets just by declaring them. */
uint32_t capability_granted_mask(void);

#endif
