/* SPDX-License-Identifier: MIT
 *
 * vm/code/rpn_read_head.c: what RPN text declares, in the order it does.
 *
 * In:   the whole text.
 * Out:  tables of modules, variables, exports, records and functions; references are kept as tokens, since what they
 *       name may come later. Bodies are skipped without a word; rpn_read_code.c reads them.
 * Not here: the grammar, which is at the top of rpn_write.c and in docs/RPN.md.
 */
#include "vm/code/rpn_read_internal.h"

#include "vm/base/limits.h"
#include "vm/code/toau.h"

#include <stdio.h>

/* -- tokens ---------------------------------------------------------------------------------------------- */

static void rpn_head_look(struct rpn_read *read)
{
    struct rpn_lexer quiet = read->lexer;
    quiet.faults = NULL;
    read->next = rpn_lexer_next(&quiet);
}

/* The token looked at, now with its value and its faults. */
static struct rpn_token rpn_head_take(struct rpn_read *read)
{
    struct rpn_token token = rpn_lexer_next(&read->lexer);
    rpn_head_look(read);
    return token;
}

static enum rpn_word rpn_head_word_of(const struct rpn_read *read, const struct rpn_token *token)
{
    return token->kind == RPN_TOKEN_WORD ? rpn_dictionary_word(&read->dictionary, token->value)
                                         : RPN_WORD_NONE;
}

static enum rpn_word rpn_head_next_word(const struct rpn_read *read)
{
    return rpn_head_word_of(read, &read->next);
}

static bool rpn_head_next_is(const struct rpn_read *read, enum rpn_token_kind kind)
{
    return read->next.kind == kind;
}

/* A word that is free to be a name. */
static bool rpn_head_next_is_free_word(const struct rpn_read *read)
{
    return rpn_head_next_is(read, RPN_TOKEN_WORD) && !rpn_head_next_word(read) &&
           !rpn_dictionary_opcode(&read->dictionary, read->next.value);
}

static void rpn_head_needs(struct rpn_read *read, const struct rpn_token *word, const char *english,
                           const char *korean)
{
    const char *what = read->options->korean ? korean : english;
    rpn_report(read, word->place, RPN_FAULT_NEEDS, word->value, cy_bytes_from_text(what), CY_BYTES_NONE);
}

/* A name behind `word`; false after a message. */
static bool rpn_head_name(struct rpn_read *read, const struct rpn_token *word, struct rpn_token *name_out)
{
    bool is_name = rpn_head_next_is(read, RPN_TOKEN_STRING) || rpn_head_next_is_free_word(read);
    if (is_name) {
        *name_out = rpn_head_take(read);
        return name_out->kind != RPN_TOKEN_BAD;
    }
    rpn_head_needs(read, word, "a name; one that is a word of RPN stands in quotes",
                   "이름이; RPN의 단어와 같은 이름은 따옴표 안에");
    return false;
}

/* Something declared elsewhere. `or_number`: modules have plain numbers. */
static bool rpn_head_reference(struct rpn_read *read, const struct rpn_token *word, bool or_number,
                               struct rpn_token *reference_out)
{
    struct rpn_token reference;
    bool good = true;
    if (or_number && rpn_head_next_is(read, RPN_TOKEN_INT))
        reference = rpn_head_take(read);
    else
        good = rpn_head_name(read, word, &reference);
    if (good && reference.kind != RPN_TOKEN_BAD) *reference_out = reference;
    return good && reference.kind != RPN_TOKEN_BAD;
}

static void rpn_head_range(struct rpn_read *read, const struct rpn_token *token, const struct rpn_token *word,
                           int64_t min, int64_t max)
{
    struct builder range;
    builder_init(&range);
    builder_printf(&range, "%lld..%lld", (long long)min, (long long)max);
    rpn_report(read, token->place, RPN_FAULT_NUMBER_RANGE, word->value, builder_view(&range), CY_BYTES_NONE);
    builder_fini(&range);
}

static void rpn_head_number(struct rpn_read *read, const struct rpn_token *word, uint32_t min, uint32_t max,
                            uint32_t *number_out)
{
    if (!rpn_head_next_is(read, RPN_TOKEN_INT)) {
        rpn_head_needs(read, word, "a number", "수가");
        return;
    }
    struct rpn_token token = rpn_head_take(read);
    if (token.kind == RPN_TOKEN_BAD) return;
    if (token.integer < min || token.integer > max) {
        rpn_head_range(read, &token, word, min, max);
        return;
    }
    *number_out = (uint32_t)token.integer;
}

static void rpn_head_declare_id(struct rpn_read *read, enum rpn_scope scope, const struct rpn_token *id,
                                uint32_t index)
{
    if (id->kind == RPN_TOKEN_END || index == RPN_NONE) return;
    if (!rpn_name_declare_id(read, scope, id->value, index))
        rpn_report(read, id->place, RPN_FAULT_ID_TWICE, id->value, CY_BYTES_NONE, CY_BYTES_NONE);
}

/* [ number ] [ name ]: with a number the name may be missing (and must be in quotes, since code may follow); its
 * number then serves. */
static cy_bytes rpn_head_id_and_name(struct rpn_read *read, enum rpn_scope scope,
                                     const struct rpn_token *word, struct rpn_token *id_out)
{
    *id_out = (struct rpn_token){.kind = RPN_TOKEN_END};
    if (rpn_head_next_is(read, RPN_TOKEN_WORD) && rpn_name_is_id(scope, read->next.value))
        *id_out = rpn_head_take(read);
    struct rpn_token name = *id_out;
    if (id_out->kind == RPN_TOKEN_END)
        (void)!rpn_head_name(read, word, &name);
    else if (rpn_head_next_is(read, RPN_TOKEN_STRING))
        name = rpn_head_take(read);
    return name.kind == RPN_TOKEN_BAD ? CY_BYTES_NONE : name.value;
}

/* -- modules, variables, exports ------------------------------------------------------------------------- */

static uint32_t rpn_head_add_module(struct rpn_read *read, struct rpn_place place, cy_bytes name)
{
    struct rpn_module module = {.name = name.count ? name : read->options->module_name,
                                .file = read->options->module_file,
                                .place = place};
    read->module = rpn_table_push(read, &read->modules, &module);
    return read->module;
}

/* The module above, or one named like the text. */
static uint32_t rpn_head_module_above(struct rpn_read *read, struct rpn_place place)
{
    return read->module != RPN_NONE ? read->module : rpn_head_add_module(read, place, CY_BYTES_NONE);
}

static void rpn_head_module(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read), id = {.kind = RPN_TOKEN_END}, name = id;
    if (rpn_head_next_is(read, RPN_TOKEN_INT)) id = rpn_head_take(read);
    if (rpn_head_next_is(read, RPN_TOKEN_STRING) || rpn_head_next_is_free_word(read))
        name = rpn_head_take(read);
    uint32_t index = rpn_head_add_module(read, word.place, name.value);
    if (index == RPN_NONE) return;
    if (id.kind != RPN_TOKEN_BAD) rpn_head_declare_id(read, RPN_MODULE, &id, index);
    for (;;) {
        enum rpn_word attribute = rpn_head_next_word(read);
        if (attribute != RPN_WORD_FILE && attribute != RPN_WORD_INIT) return;
        struct rpn_token attribute_word = rpn_head_take(read), value;
        if (!rpn_head_reference(read, &attribute_word, false, &value)) continue;
        struct rpn_module *module = rpn_module_at(read, index);
        if (attribute == RPN_WORD_FILE)
            module->file = value.value;
        else
            module->init = value;
    }
}

static void rpn_head_global(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read), id;
    struct rpn_global global = {.place = word.place};
    global.module = rpn_head_module_above(read, word.place);
    global.name = rpn_head_id_and_name(read, RPN_GLOBAL, &word, &id);
    rpn_head_declare_id(read, RPN_GLOBAL, &id, rpn_table_push(read, &read->globals, &global));
}

static void rpn_head_export(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read);
    struct rpn_export export = {.target = {.kind = RPN_TOKEN_END}};
    export.module = rpn_head_module_above(read, word.place);
    if (!rpn_head_name(read, &word, &export.name_token)) return;
    export.name = export.name_token.value;
    bool has_target = rpn_head_next_is(read, RPN_TOKEN_STRING) || rpn_head_next_is_free_word(read);
    if (has_target) export.target = rpn_head_take(read);
    if (export.target.kind != RPN_TOKEN_BAD) (void)rpn_table_push(read, &read->exports, &export);
}

/* -- records --------------------------------------------------------------------------------------------- */

static void rpn_head_field(struct rpn_read *read, struct rpn_record *record)
{
    struct rpn_token word = rpn_head_take(read), name;
    struct rpn_field field = {.of = {.kind = RPN_TOKEN_END}};
    if (!rpn_head_name(read, &word, &name)) return;
    field.name = name.value;
    while (rpn_head_next_word(read) == RPN_WORD_OF) {
        struct rpn_token of = rpn_head_take(read);
        enum value_kind kind;
        bool is_kind = rpn_head_next_is(read, RPN_TOKEN_WORD) && kind_find(read->next.value, &kind);
        bool second_type = !is_kind && field.of.kind != RPN_TOKEN_END;
        if (second_type) {
            rpn_head_needs(read, &of, "a kind: one record type is named already",
                           "종류가: 자료형은 이미 하나 있습니다");
            return;
        }
        if (is_kind) {
            (void)rpn_head_take(read);
            field.kinds |= RECORD_FIELD_KIND(kind);
        } else if (!rpn_head_reference(read, &of, false, &field.of)) {
            return;
        }
    }
    if (record->field_count++ == LIMIT_RECORD_FIELDS) {
        char number[16];
        int count = snprintf(number, sizeof number, "%d", LIMIT_RECORD_FIELDS);
        rpn_report(read, word.place, RPN_FAULT_RECORD_FIELDS, cy_bytes_of(number, (size_t)count),
                   CY_BYTES_NONE, CY_BYTES_NONE);
    }
    (void)rpn_table_push(read, &read->fields, &field);
}

static void rpn_head_record(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read), id;
    struct rpn_record record = {.place = word.place, .module_token = {.kind = RPN_TOKEN_END}};
    record.module = read->module;
    record.field_first = read->fields.count;
    record.name = rpn_head_id_and_name(read, RPN_RECORD, &word, &id);
    for (;;) {
        enum rpn_word attribute = rpn_head_next_word(read);
        if (attribute == RPN_WORD_FIELD) {
            rpn_head_field(read, &record);
        } else if (attribute == RPN_WORD_MODULE && record.module_token.kind == RPN_TOKEN_END &&
                   id.kind != RPN_TOKEN_END && !record.field_count) {
            struct rpn_token module_word = rpn_head_take(read);
            (void)!rpn_head_reference(read, &module_word, true, &record.module_token);
        } else if (id.kind != RPN_TOKEN_END && rpn_head_next_is(read, RPN_TOKEN_STRING)) {
            record.name = rpn_head_take(read).value;
        } else {
            break;
        }
    }
    if (record.module_token.kind == RPN_TOKEN_END) record.module = rpn_head_module_above(read, word.place);
    rpn_head_declare_id(read, RPN_RECORD, &id, rpn_table_push(read, &read->records, &record));
}

/* -- functions ------------------------------------------------------------------------------------------- */

static void rpn_head_capture(struct rpn_read *read, const struct rpn_token *word,
                             struct rpn_function *function)
{
    enum rpn_word from = rpn_head_next_word(read);
    struct rpn_capture capture = {.from_parent_local = from == RPN_WORD_LOCAL};
    if (from != RPN_WORD_LOCAL && from != RPN_WORD_OUTER) {
        rpn_head_needs(read, word, "local or outer, and a number or name",
                       "지역 또는 바깥, 그리고 수나 이름이");
        return;
    }
    struct rpn_token from_word = rpn_head_take(read);
    if (!rpn_head_reference(read, &from_word, true, &capture.index)) return;
    function->capture_count++;
    (void)rpn_table_push(read, &read->captures, &capture);
}

/* `param NAME` and `local NAME`: slots in the order they come, parameters first. */
static void rpn_head_slot_name(struct rpn_read *read, const struct rpn_token *word, bool is_param,
                               struct rpn_function *function)
{
    struct rpn_token name;
    if (!rpn_head_name(read, word, &name)) return;
    uint32_t slot = is_param ? function->named_params++
                             : (function->params != RPN_NONE ? function->params : function->named_params) +
                                   function->named_locals++;
    if (slot >= (is_param ? (uint32_t)LIMIT_FUNCTION_PARAMS : (uint32_t)LIMIT_FUNCTION_LOCALS)) {
        rpn_report(read, word->place, RPN_FAULT_TOO_MANY, word->value,
                   cy_bytes_from_text(is_param ? "255" : "65535"), CY_BYTES_NONE);
        return;
    }
    if (!rpn_name_declare_local(read, read->functions.count, name.value, slot))
        rpn_report(read, name.place, RPN_FAULT_LOCAL_TWICE, name.value, CY_BYTES_NONE, CY_BYTES_NONE);
}

/* False when the next token is no attribute of a function. */
static bool rpn_head_function_attribute(struct rpn_read *read, struct rpn_function *function)
{
    enum rpn_word attribute = rpn_head_next_word(read);
    switch (attribute) {
    case RPN_WORD_PARAMS:
    case RPN_WORD_REQUIRED:
    case RPN_WORD_LOCALS:
    case RPN_WORD_PARAM:
    case RPN_WORD_LOCAL:
    case RPN_WORD_CAPTURE:
    case RPN_WORD_PARENT:
    case RPN_WORD_MODULE: break;
    default: return false;
    }
    struct rpn_token word = rpn_head_take(read);
    if ((attribute == RPN_WORD_PARAMS || attribute == RPN_WORD_PARAM) && function->named_locals)
        rpn_head_needs(read, &word, "to stand before every local", "모든 local보다 앞에");
    switch (attribute) {
    case RPN_WORD_PARAMS: rpn_head_number(read, &word, 0, LIMIT_FUNCTION_PARAMS, &function->params); break;
    case RPN_WORD_REQUIRED:
        rpn_head_number(read, &word, 0, LIMIT_FUNCTION_PARAMS, &function->required);
        break;
    case RPN_WORD_LOCALS: rpn_head_number(read, &word, 0, LIMIT_FUNCTION_LOCALS, &function->locals); break;
    case RPN_WORD_PARAM: rpn_head_slot_name(read, &word, true, function); break;
    case RPN_WORD_LOCAL: rpn_head_slot_name(read, &word, false, function); break;
    case RPN_WORD_CAPTURE: rpn_head_capture(read, &word, function); break;
    case RPN_WORD_PARENT: (void)!rpn_head_reference(read, &word, false, &function->parent); break;
    default: (void)!rpn_head_reference(read, &word, true, &function->module_token); break;
    }
    return true;
}

/* `function`, `record` and `module` are also kinds or names that an instruction takes; they begin something new when
 * no opcode follows. */
static bool rpn_head_ends_body(const struct rpn_read *read, struct rpn_lexer behind,
                               const struct rpn_token *token)
{
    enum rpn_word word = rpn_head_word_of(read, token);
    if (word != RPN_WORD_FUNCTION && word != RPN_WORD_RECORD && word != RPN_WORD_MODULE) return false;
    struct rpn_token next = rpn_lexer_next(&behind);
    return next.kind != RPN_TOKEN_WORD || !rpn_dictionary_opcode(&read->dictionary, next.value);
}

static void rpn_head_skip_body(struct rpn_read *read, struct rpn_function *function)
{
    function->body = read->lexer;
    struct rpn_lexer quiet = read->lexer;
    quiet.faults = NULL;
    bool ended = false;
    for (;;) {
        struct rpn_lexer before = quiet;
        struct rpn_token token = rpn_lexer_next(&quiet);
        function->body_end = token.place.offset;
        ended = rpn_head_word_of(read, &token) == RPN_WORD_END;
        if (ended) break;
        if (token.kind == RPN_TOKEN_END || rpn_head_ends_body(read, quiet, &token)) {
            quiet = before;
            break;
        }
    }
    read->lexer.offset = quiet.offset;
    read->lexer.line = quiet.line;
    read->lexer.column = quiet.column;
    rpn_head_look(read);
    if (!ended)
        rpn_report(read, function->place, RPN_FAULT_NO_END, function->name, CY_BYTES_NONE, CY_BYTES_NONE);
}

static void rpn_head_function(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read), id;
    struct rpn_function function = {.place = word.place,
                                    .module_token = {.kind = RPN_TOKEN_END},
                                    .parent = {.kind = RPN_TOKEN_END},
                                    .params = RPN_NONE,
                                    .required = RPN_NONE,
                                    .locals = RPN_NONE};
    function.module = read->module;
    function.capture_first = read->captures.count;
    function.name = rpn_head_id_and_name(read, RPN_FUNCTION, &word, &id);
    while (rpn_head_function_attribute(read, &function)) continue;
    if (function.module_token.kind == RPN_TOKEN_END)
        function.module = rpn_head_module_above(read, word.place);
    rpn_head_skip_body(read, &function);
    rpn_head_declare_id(read, RPN_FUNCTION, &id, rpn_table_push(read, &read->functions, &function));
}

/* -- the whole ------------------------------------------------------------------------------------------- */

static void rpn_head_toau(struct rpn_read *read)
{
    struct rpn_token word = rpn_head_take(read);
    struct rpn_token version = {.kind = RPN_TOKEN_END};
    if (rpn_head_next_is(read, RPN_TOKEN_INT)) version = rpn_head_take(read);
    read->is_complete = true;
    if (version.kind == RPN_TOKEN_INT && version.integer == TOAU_VERSION) return;
    char number[16];
    int count = snprintf(number, sizeof number, "%d", TOAU_VERSION);
    rpn_report(read, word.place, RPN_FAULT_VERSION, cy_bytes_of(number, (size_t)count), CY_BYTES_NONE,
               CY_BYTES_NONE);
}

void rpn_read_heads(struct rpn_read *read)
{
    bool lost = false;
    rpn_head_look(read);
    while (read->next.kind != RPN_TOKEN_END && !read->no_memory) {
        enum rpn_word word = rpn_head_next_word(read);
        bool was_lost = lost;
        lost = false;
        switch (word) {
        case RPN_WORD_TOAU: rpn_head_toau(read); break;
        case RPN_WORD_MODULE: rpn_head_module(read); break;
        case RPN_WORD_GLOBAL: rpn_head_global(read); break;
        case RPN_WORD_EXPORT: rpn_head_export(read); break;
        case RPN_WORD_RECORD: rpn_head_record(read); break;
        case RPN_WORD_FUNCTION: rpn_head_function(read); break;
        default: {
            struct rpn_stray stray = {.token = rpn_head_take(read), .is_first = !was_lost};
            (void)rpn_table_push(read, &read->strays, &stray);
            lost = true;
        }
        }
    }
    /* Everything may have named a module that is not there: that is said later, and then the first one serves. */
    if (!read->modules.count && (read->functions.count || read->records.count))
        (void)rpn_head_module_above(read, (struct rpn_place){0});
}
