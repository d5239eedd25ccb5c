/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_read_name.c: what the names of RPN text stand for.
 *
 * One map holds them all. Its keys:
 *
 *      'i' scope id              a number in the text: "f3"
 *      'n' scope module name     a name as its module sees it
 *      'a' scope name            a name seen from elsewhere
 *      'l' function name         a local
 *
 * Invariant: a name that stands for two things is kept as RPN_NAME_TWICE and never chosen.
 */
#include "vm/code/rpn_read_internal.h"

#define RPN_NAME_TWICE UINT64_MAX
static const char rpn_name_letters[RPN_SCOPE_COUNT] = {
    [RPN_MODULE] = 'm', [RPN_FUNCTION] = 'f', [RPN_GLOBAL] = 'g', [RPN_RECORD] = 'r'};

static void rpn_name_key(struct builder *key, char kind, unsigned scope, uint32_t owner, cy_bytes name)
{
    builder_init(key);
    builder_u8(key, (uint8_t)kind);
    builder_u8(key, (uint8_t)scope);
    builder_u32(key, owner);
    builder_bytes(key, name);
}

static struct map_entry *rpn_name_find(const struct rpn_read *read, char kind, unsigned scope, uint32_t owner,
                                       cy_bytes name)
{
    struct builder key;
    rpn_name_key(&key, kind, scope, owner, name);
    struct map_entry *entry = key.failed ? NULL : map_find(&read->names, builder_view(&key));
    builder_fini(&key);
    return entry;
}

/* False when the key was there; `twice` then marks it. */
static bool rpn_name_enter(struct rpn_read *read, char kind, unsigned scope, uint32_t owner, cy_bytes name,
                           uint32_t index, bool twice)
{
    struct builder key;
    bool is_new = true;
    rpn_name_key(&key, kind, scope, owner, name);
    struct map_entry *entry = key.failed ? NULL : map_insert(&read->names, builder_view(&key), &is_new);
    builder_fini(&key);
    if (!entry) {
        read->no_memory = true;
        return true;
    }
    if (is_new)
        entry->value.number = index;
    else if (twice)
        entry->value.number = RPN_NAME_TWICE;
    return is_new;
}

bool rpn_name_declare_id(struct rpn_read *read, enum rpn_scope scope, cy_bytes id, uint32_t index)
{
    return rpn_name_enter(read, 'i', scope, 0, id, index, false);
}

void rpn_name_declare(struct rpn_read *read, enum rpn_scope scope, uint32_t module, cy_bytes name,
                      uint32_t index)
{
    if (!name.count) return;
    (void)rpn_name_enter(read, 'n', scope, module, name, index, true);
    (void)rpn_name_enter(read, 'a', scope, 0, name, index, true);
}

bool rpn_name_declare_local(struct rpn_read *read, uint32_t function, cy_bytes name, uint32_t slot)
{
    return rpn_name_enter(read, 'l', 0, function, name, slot, false);
}

bool rpn_name_find_local(const struct rpn_read *read, uint32_t function, cy_bytes name, uint32_t *slot_out)
{
    const struct map_entry *entry = rpn_name_find(read, 'l', 0, function, name);
    if (entry) *slot_out = (uint32_t)entry->value.number;
    return entry != NULL;
}

bool rpn_name_is_id(enum rpn_scope scope, cy_bytes word)
{
    if (word.count < 2 || word.data[0] != (uint8_t)rpn_name_letters[scope]) return false;
    for (size_t i = 1; i < word.count; i++)
        if (word.data[i] < '0' || word.data[i] > '9') return false;
    return true;
}

/* NULL, or an entry whose number may be RPN_NAME_TWICE. */
static const struct map_entry *rpn_name_look_up(const struct rpn_read *read, enum rpn_scope scope,
                                                uint32_t module, const struct rpn_token *token)
{
    const struct map_entry *entry = NULL;
    if (token->kind != RPN_TOKEN_STRING) entry = rpn_name_find(read, 'i', scope, 0, token->value);
    if (!entry && scope != RPN_MODULE) entry = rpn_name_find(read, 'n', scope, module, token->value);
    return entry ? entry : rpn_name_find(read, 'a', scope, 0, token->value);
}

uint32_t rpn_name_resolve(struct rpn_read *read, enum rpn_scope scope, uint32_t module,
                          const struct rpn_token *token, bool report)
{
    bool names = token->kind == RPN_TOKEN_WORD || token->kind == RPN_TOKEN_STRING ||
                 (scope == RPN_MODULE && token->kind == RPN_TOKEN_INT);
    CHECK(names);
    const struct map_entry *entry = rpn_name_look_up(read, scope, module, token);
    if (entry && entry->value.number != RPN_NAME_TWICE) return (uint32_t)entry->value.number;
    if (!report) return RPN_NONE;
    char example[2] = {rpn_name_letters[scope], '3'};
    if (entry)
        rpn_report(read, token->place, RPN_FAULT_AMBIGUOUS, token->value, cy_bytes_of(example, 2),
                   CY_BYTES_NONE);
    else
        rpn_name_report_unknown(read, token, scope, NULL);
    return RPN_NONE;
}

bool rpn_name_is_unknown(struct rpn_read *read, uint32_t module, const struct rpn_token *token)
{
    if (token->kind != RPN_TOKEN_WORD) return false;
    for (unsigned scope = 0; scope < RPN_SCOPE_COUNT; scope++)
        if (rpn_name_look_up(read, (enum rpn_scope)scope, module, token)) return false;
    enum value_kind kind;
    return !kind_find(token->value, &kind) && !rpn_dictionary_word(&read->dictionary, token->value) &&
           !rpn_dictionary_opcode(&read->dictionary, token->value) &&
           !rpn_dictionary_native(&read->dictionary, token->value);
}

/* Names of one scope, or of all. */
static void rpn_name_offer(const struct rpn_read *read, enum rpn_scope scope, struct nearest *nearest)
{
    enum { OWNER_BYTES = 6 };
    for (uint32_t i = 0; i < read->names.count; i++) {
        cy_bytes key = read->names.entries[i].key;
        bool offered = (key.data[0] == 'a' || key.data[0] == 'i') &&
                       (scope == RPN_SCOPE_COUNT || key.data[1] == (uint8_t)scope);
        if (offered) nearest_offer(nearest, cy_bytes_skip(key, OWNER_BYTES));
    }
}

void rpn_name_report_unknown(struct rpn_read *read, const struct rpn_token *token, enum rpn_scope scope,
                             const struct map *prefer)
{
    struct nearest nearest;
    nearest_init(&nearest, token->value);
    if (rpn_faults_want_nearest(&read->faults)) {
        if (prefer) rpn_dictionary_offer(prefer, &nearest);
        if (!prefer && scope != RPN_SCOPE_COUNT) rpn_name_offer(read, scope, &nearest);
        if (!nearest.best.count) {
            rpn_dictionary_offer(&read->dictionary.opcodes, &nearest);
            rpn_dictionary_offer(&read->dictionary.words, &nearest);
            rpn_dictionary_offer(&read->dictionary.natives, &nearest);
            rpn_name_offer(read, RPN_SCOPE_COUNT, &nearest);
        }
    }
    rpn_fault_report(&read->faults, token->place, RPN_FAULT_UNKNOWN_WORD, token->value, CY_BYTES_NONE,
                     CY_BYTES_NONE, nearest.best);
}
