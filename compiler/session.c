/* SPDX-License-Identifier: MIT
 *
 * compiler/session.c: names across the inputs of a session, and whether a text is whole.
 *
 * Not here: reading an input (parse_session.c), the order of modules (module_graph.c).
 */
#include "compiler/session.h"

#include "compiler/lexer.h"
#include "compiler/unit.h"

void session_adopt(struct compilation *compilation, struct unit *unit)
{
    const struct compile_session *session = compilation->options->session;
    uint32_t index = unit->source.index;
    if (!session || index > session->input_count) return;
    unit->in_session = true;
    unit->skip_bytes = index == 0 ? session->skip_bytes : session->inputs[index - 1].skip_bytes;
    unit->hidden = index > 0 && session->inputs[index - 1].hidden;
}

struct map_entry *session_find(const struct unit *unit, cy_bytes word)
{
    struct map_entry *entry = map_find(&unit->names, word);
    for (const struct unit *before = unit->session_before; before && !entry; before = before->session_before)
        if (!before->hidden) entry = map_find(&before->names, word);
    return entry;
}

static int session_depth_change(uint8_t kind)
{
    switch (kind) {
    case TOKEN_PAREN_OPEN:
    case TOKEN_BRACKET_OPEN:
    case TOKEN_BRACE_OPEN:
    case TOKEN_TEXT_BEGIN: return 1;
    case TOKEN_PAREN_CLOSE:
    case TOKEN_BRACKET_CLOSE:
    case TOKEN_BRACE_CLOSE:
    case TOKEN_TEXT_END: return -1;
    default: return 0;
    }
}

bool session_is_open(cy_bytes text)
{
    struct compile_options options = {.path = ""};
    struct compilation compilation;
    compilation_init(&compilation, &options);
    struct source source = {.file = CY_BYTES(""), .text = text};
    struct lexer lexer;
    lexer_init(&lexer, &compilation.arena, &compilation.diags, &source, &compilation.keywords);
    int depth = 0;
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END; token = lexer_next(&lexer))
        depth += session_depth_change(token.kind);
    bool raw = false, broken = false;
    for (uint32_t i = 0; i < compilation.diags.count; i++) {
        bool is_raw = compilation.diags.items[i].code == DIAG_RAW_NOT_CLOSED;
        raw = raw || is_raw;
        broken = broken || !is_raw;
    }
    compilation_fini(&compilation);
    return raw || (depth > 0 && !broken); /* another line does not mend a broken string */
}
