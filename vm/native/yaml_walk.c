/* SPDX-License-Identifier: MIT
 *
 * vm/native/yaml_walk.c: drives libyaml's event parser and turns what it says into messages a person can act on.
 *
 * In:   bytes from anybody. Out: events in order, or one fault.
 * Invariant: depth and node count are checked on every event, before the caller sees it. libyaml alone needs time
 *       that grows with the square of the depth (200,000 open brackets: one minute), so the depth bound is also what
 *       keeps a hostile file cheap.
 * Memory: libyaml calls malloc itself and has no way to be told otherwise; it holds one event and a short token
 * queue. Not here: building values (native_yaml.c).
 */
#include "vm/native/yaml_walk.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"

#include <yaml.h>

struct yaml_walk_state {
    yaml_parser_t parser;
    cy_bytes text; /* without the byte order mark */
    const struct yaml_walk_options *options;
    struct yaml_walk_fault *fault;
    uint32_t depth;
    uint32_t node_count;
    uint32_t document_count;
};

void yaml_walk_fault_init(struct yaml_walk_fault *fault)
{
    fault->line = fault->column = 1;
    builder_init(&fault->message);
}
void yaml_walk_fault_fini(struct yaml_walk_fault *fault) { builder_fini(&fault->message); }

/* -- messages ---------------------------------------------------------------------------------------------------- */

/* libyaml's words, in Korean, and where its words alone do not help, with advice. Texts without a row stay English. */
struct yaml_walk_word {
    const char *english;
    const char *korean;
};
static const struct yaml_walk_word yaml_walk_problems[] = {
    {"did not find expected key", "여기에는 열쇠(key:)가 와야 합니다"},
    {"did not find expected '-' indicator", "여기에는 '-' 항목이 와야 합니다"},
    {"did not find expected ',' or ']'", "',' 또는 ']'가 와야 합니다"},
    {"did not find expected ',' or '}'", "',' 또는 '}'가 와야 합니다"},
    {"did not find expected node content", "값이 와야 합니다"},
    {"did not find expected <document start>", "앞의 내용과 들여쓰기가 맞지 않습니다"},
    {"could not find expected ':'", "':'가 빠졌습니다"},
    {"mapping values are not allowed in this context", "여기에는 'key: value'가 올 수 없습니다"},
    {"mapping keys are not allowed in this context", "여기에는 열쇠가 올 수 없습니다"},
    {"block sequence entries are not allowed in this context", "여기에는 '-' 항목이 올 수 없습니다"},
    {"found character that cannot start any token", "값을 시작할 수 없는 글자입니다"},
    {"found unexpected end of stream", "파일이 중간에 끝났습니다"},
    {"found unexpected document indicator", "따옴표가 닫히기 전에 문서가 끝났습니다"},
    {"found unknown escape character", "알 수 없는 역슬래시 표기입니다"},
    {"found a tab character where an indentation space is expected", "들여쓰기에 탭을 쓸 수 없습니다"},
    {"found a tab character that violates indentation", "들여쓰기에 탭을 쓸 수 없습니다"},
    {"did not find expected alphabetic or numeric character", "'*'나 '&' 뒤에 이름이 없습니다"},
    {"control characters are not allowed", "제어 문자는 쓸 수 없습니다"},
};
static const struct yaml_walk_word yaml_walk_contexts[] = {
    {"while parsing a block mapping", "사전을 읽다가"},
    {"while parsing a block collection", "목록을 읽다가"},
    {"while parsing a flow mapping", "{ } 사전을 읽다가"},
    {"while parsing a flow sequence", "[ ] 목록을 읽다가"},
    {"while parsing a flow node", "값을 읽다가"},
    {"while parsing a block node", "값을 읽다가"},
    {"while scanning for the next token", "다음 낱말을 찾다가"},
    {"while scanning a simple key", "열쇠를 읽다가"},
    {"while scanning a quoted scalar", "따옴표 안을 읽다가"},
    {"while parsing a quoted scalar", "따옴표 안을 읽다가"},
    {"while scanning a plain scalar", "값을 읽다가"},
    {"while scanning a block scalar", "여러 줄 값을 읽다가"},
    {"while scanning an alias", "'*' 별칭을 읽다가"},
    {"while scanning an anchor", "'&' 닻을 읽다가"},
};

static const char *yaml_walk_translate(const struct yaml_walk_word *words, size_t count, const char *english,
                                       bool korean)
{
    if (!korean) return english;
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i].english, english) == 0) return words[i].korean;
    return english;
}

/* libyaml counts from 0, and its size_t may exceed what we show. */
static uint32_t yaml_walk_from_one(size_t zero_based)
{
    return zero_based < UINT32_MAX ? (uint32_t)zero_based + 1 : UINT32_MAX;
}

static void yaml_walk_place(struct yaml_walk_state *state, yaml_mark_t mark)
{
    state->fault->line = yaml_walk_from_one(mark.line);
    state->fault->column = yaml_walk_from_one(mark.column);
}

/* Line and column of a byte, for faults that libyaml reports by offset only. */
static void yaml_walk_place_of_offset(struct yaml_walk_state *state, size_t offset)
{
    cy_bytes before = cy_bytes_slice(state->text, 0, offset);
    size_t line = 1, line_start = 0;
    for (size_t i = 0; i < before.count; i++) {
        if (before.data[i] != '\n') continue;
        line++;
        line_start = i + 1;
    }
    state->fault->line = line < UINT32_MAX ? (uint32_t)line : UINT32_MAX;
    state->fault->column = yaml_walk_from_one(text_code_point_count(cy_bytes_skip(before, line_start)));
}

static cy_err yaml_walk_refuse(struct yaml_walk_state *state, yaml_mark_t mark, const char *english,
                               const char *korean)
{
    yaml_walk_place(state, mark);
    builder_text(&state->fault->message, state->options->korean ? korean : english);
    return CY_ERR(BAD_FORMAT);
}

static cy_err yaml_walk_refuse_limit(struct yaml_walk_state *state, const char *row, long long value,
                                     const char *unit)
{
    builder_printf(&state->fault->message,
                   state->options->korean ? "YAML이 한도를 넘었습니다: %s = %lld %s"
                                          : "the YAML is past the limit %s = %lld %s",
                   row, value, unit);
    return CY_ERR(LIMIT);
}

/* The byte at a mark; 0 at the end. Only on the way out, so walking from the start is fine. */
static uint8_t yaml_walk_byte_at(const struct yaml_walk_state *state, yaml_mark_t mark)
{
    size_t offset = 0;
    for (size_t i = 0; i < mark.index && offset < state->text.count; i++) {
        uint32_t code_point;
        size_t length = 1;
        if (!text_decode(cy_bytes_skip(state->text, offset), &code_point, &length)) length = 1;
        offset += length;
    }
    return offset < state->text.count ? state->text.data[offset] : 0;
}

/* What libyaml's words leave out: the usual slip behind them. */
static void yaml_walk_add_advice(struct yaml_walk_state *state)
{
    const yaml_parser_t *parser = &state->parser;
    bool korean = state->options->korean;
    const char *advice = NULL;
    if (parser->context && strcmp(parser->context, "while scanning an alias") == 0) {
        advice =
            korean ? "'*'로 시작하는 값은 따옴표로 싸세요" : "a value that starts with '*' must be quoted";
    } else if (parser->error == YAML_SCANNER_ERROR) {
        uint8_t byte = yaml_walk_byte_at(state, parser->problem_mark);
        if (byte == '\t')
            advice = korean ? "탭이 아니라 빈칸으로 들여쓰세요" : "indent with spaces, not tabs";
        if (byte == '@' || byte == '`' || byte == '%')
            advice = korean ? "이 글자로 시작하는 값은 따옴표로 싸세요"
                            : "a value that starts with it must be quoted";
    }
    if (advice) builder_printf(&state->fault->message, "; %s", advice);
}

static cy_err yaml_walk_syntax_fault(struct yaml_walk_state *state)
{
    const yaml_parser_t *parser = &state->parser;
    bool korean = state->options->korean;
    struct builder *message = &state->fault->message;
    /* Some of libyaml's own failed allocations are told by the lack of a problem alone. */
    if (parser->error == YAML_MEMORY_ERROR || !parser->problem) return CY_ERR(NO_MEMORY);
    builder_text(message, yaml_walk_translate(yaml_walk_problems, CY_COUNT_OF(yaml_walk_problems),
                                              parser->problem, korean));
    if (parser->error == YAML_READER_ERROR) {
        yaml_walk_place_of_offset(state, parser->problem_offset);
        if (parser->problem_value > 0) builder_printf(message, " (U+%04X)", (unsigned)parser->problem_value);
        return CY_ERR(BAD_FORMAT);
    }
    yaml_walk_place(state, parser->problem_mark);
    if (parser->context) {
        const char *context =
            yaml_walk_translate(yaml_walk_contexts, CY_COUNT_OF(yaml_walk_contexts), parser->context, korean);
        uint32_t line = yaml_walk_from_one(parser->context_mark.line);
        if (line != state->fault->line) {
            builder_printf(message, korean ? " (%u번째 줄에서 시작한 것: %s)" : " (line %u: %s)", line,
                           context);
        } else {
            builder_printf(message, " (%s)", context);
        }
    }
    yaml_walk_add_advice(state);
    return CY_ERR(BAD_FORMAT);
}

/* -- events ------------------------------------------------------------------------------------------------------ */

static cy_err yaml_walk_emit(struct yaml_walk_state *state, enum yaml_walk_kind kind,
                             const yaml_event_t *event)
{
    struct yaml_walk_event out = {
        .kind = kind,
        .line = yaml_walk_from_one(event->start_mark.line),
        .column = yaml_walk_from_one(event->start_mark.column),
    };
    if (kind == YAML_WALK_SCALAR) {
        out.text = cy_bytes_of(event->data.scalar.value, event->data.scalar.length);
        out.quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    }
    return state->options->on_event(state->options->context, &out);
}

static cy_err yaml_walk_begin_node(struct yaml_walk_state *state, const yaml_event_t *event,
                                   const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) {
        return yaml_walk_refuse(state, event->start_mark,
                                "anchors (&name) are not supported; write the value out",
                                "닻(&이름)은 지원하지 않습니다. 값을 그대로 쓰세요");
    }
    if (tag) {
        return yaml_walk_refuse(state, event->start_mark,
                                "tags (!name) are not supported; a value that starts with '!' must be quoted",
                                "태그(!이름)는 지원하지 않습니다. '!'로 시작하는 값은 따옴표로 싸세요");
    }
    if (++state->node_count > LIMIT_YAML_NODES) {
        yaml_walk_place(state, event->start_mark);
        return yaml_walk_refuse_limit(state, "YAML_NODES", LIMIT_YAML_NODES, "nodes");
    }
    return CY_OK;
}

static cy_err yaml_walk_begin_container(struct yaml_walk_state *state, enum yaml_walk_kind kind,
                                        const yaml_event_t *event, const yaml_char_t *anchor,
                                        const yaml_char_t *tag)
{
    CY_TRY(yaml_walk_begin_node(state, event, anchor, tag));
    if (++state->depth > LIMIT_YAML_DEPTH) {
        yaml_walk_place(state, event->start_mark);
        return yaml_walk_refuse_limit(state, "YAML_DEPTH", LIMIT_YAML_DEPTH, "levels");
    }
    return yaml_walk_emit(state, kind, event);
}

static cy_err yaml_walk_end_container(struct yaml_walk_state *state, enum yaml_walk_kind kind,
                                      const yaml_event_t *event)
{
    CHECK(state->depth > 0);
    state->depth--;
    return yaml_walk_emit(state, kind, event);
}

static cy_err yaml_walk_scalar(struct yaml_walk_state *state, const yaml_event_t *event)
{
    CY_TRY(yaml_walk_begin_node(state, event, event->data.scalar.anchor, event->data.scalar.tag));
    /* "---" and nothing else is an empty document too. */
    bool is_empty = event->data.scalar.length == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (state->depth == 0 && is_empty) return CY_OK;
    return yaml_walk_emit(state, YAML_WALK_SCALAR, event);
}

static cy_err yaml_walk_document(struct yaml_walk_state *state, const yaml_event_t *event)
{
    if (++state->document_count > 1) {
        return yaml_walk_refuse(state, event->start_mark,
                                "a second document starts here; one file holds one document",
                                "둘째 문서가 여기서 시작합니다. 파일 하나에는 문서 하나만 둡니다");
    }
    if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end) {
        return yaml_walk_refuse(state, event->start_mark, "%TAG directives are not supported",
                                "%TAG 지시자는 지원하지 않습니다");
    }
    return CY_OK;
}

static cy_err yaml_walk_on_event(struct yaml_walk_state *state, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: return CY_OK;
    case YAML_DOCUMENT_START_EVENT: return yaml_walk_document(state, event);
    case YAML_ALIAS_EVENT:
        return yaml_walk_refuse(
            state, event->start_mark,
            "aliases (*name) are not supported; a value that starts with '*' must be quoted",
            "별칭(*이름)은 지원하지 않습니다. '*'로 시작하는 값은 따옴표로 싸세요");
    case YAML_SCALAR_EVENT: return yaml_walk_scalar(state, event);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_walk_begin_container(state, YAML_WALK_LIST_BEGIN, event,
                                         event->data.sequence_start.anchor, event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return yaml_walk_begin_container(state, YAML_WALK_MAP_BEGIN, event, event->data.mapping_start.anchor,
                                         event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT: return yaml_walk_end_container(state, YAML_WALK_LIST_END, event);
    case YAML_MAPPING_END_EVENT: return yaml_walk_end_container(state, YAML_WALK_MAP_END, event);
    }
    UNREACHABLE();
}

static cy_err yaml_walk_events(struct yaml_walk_state *state)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&state->parser, &event)) return yaml_walk_syntax_fault(state);
        cy_err err = yaml_walk_on_event(state, &event);
        bool is_end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (cy_failed(err) || is_end) return err;
    }
}

cy_err yaml_walk(cy_bytes text, const struct yaml_walk_options *options, struct yaml_walk_fault *fault)
{
    struct yaml_walk_state state = {.text = text, .options = options, .fault = fault};
    if (text.count > LIMIT_YAML_BYTES)
        return yaml_walk_refuse_limit(&state, "YAML_BYTES", LIMIT_YAML_BYTES, "bytes");
    if (cy_bytes_start_with(text, CY_BYTES("\xEF\xBB\xBF"))) state.text = cy_bytes_skip(text, 3);
    size_t bad_offset;
    if (!text_is_utf8(state.text, &bad_offset)) {
        yaml_walk_place_of_offset(&state, bad_offset);
        builder_printf(&fault->message,
                       options->korean ? "UTF-8이 아닙니다 (바이트 0x%02X)" : "not UTF-8 (byte 0x%02X)",
                       state.text.data[bad_offset]);
        return CY_ERR(BAD_FORMAT);
    }
    if (!yaml_parser_initialize(&state.parser)) return CY_ERR(NO_MEMORY);
    yaml_parser_set_encoding(&state.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&state.parser, state.text.data ? state.text.data : (const uint8_t *)"",
                                 state.text.count);
    cy_err err = yaml_walk_events(&state);
    yaml_parser_delete(&state.parser);
    return err;
}
