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
#include "vm/base/mem.h"
#include "vm/base/text.h"

#include <yaml.h>

/* Not moved: libyaml keeps its address. */
struct yaml_walk {
    yaml_parser_t parser;
    cy_bytes text;  /* without the byte order mark */
    size_t checked; /* this much of it is UTF-8, and its end is here, from 0: */
    size_t checked_line, checked_column;
    size_t given;                     /* this much of it has libyaml */
    size_t given_max;                 /* and no more for the event being read */
    size_t piece_offset, piece_index; /* where the piece began, in bytes and in libyaml's code points */
    yaml_mark_t event_mark;           /* where the event being read began, or before */
    struct yaml_walk_options options;
    struct yaml_walk_fault *fault;
    uint32_t depth;
    uint32_t node_count;
    uint32_t document_count;
};

enum {
    YAML_WALK_PIECE_EVENTS = 64,
    YAML_WALK_CHECK_BYTES = 256 << 10, /* of UTF-8, about a millisecond */
    YAML_WALK_CHECKED_PER_STEP = 100,
    YAML_WALK_GIVEN_PER_STEP = 16,   /* libyaml looks at each byte several times */
    YAML_WALK_GIVE_BYTES = 16 << 10, /* at most, each time libyaml asks: as much as its own buffer takes */
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

static void yaml_walk_place(struct yaml_walk *walk, yaml_mark_t mark)
{
    walk->fault->line = yaml_walk_from_one(mark.line);
    walk->fault->column = yaml_walk_from_one(mark.column);
}

/* How far libyaml has read, in bytes of the text: what it was given, without what it holds and the NULs of its own
 * behind the end. */
static size_t yaml_walk_offset(const struct yaml_walk *walk)
{
    const yaml_parser_t *parser = &walk->parser;
    const yaml_char_t *last = parser->buffer.last;
    while (last > parser->buffer.pointer && last[-1] == '\0') last--;
    return walk->given - (size_t)(parser->raw_buffer.last - parser->raw_buffer.pointer) -
           (size_t)(last - parser->buffer.pointer);
}

/* From line and column (from 0) of one byte to those of a later one. */
static void yaml_walk_advance(cy_bytes text, size_t from, size_t to, size_t *line, size_t *column)
{
    size_t line_start = from;
    for (const uint8_t *at; (at = memchr(text.data + line_start, '\n', to - line_start));) {
        ++*line;
        *column = 0;
        line_start = (size_t)(at - text.data) + 1;
    }
    *column += text_code_point_count(cy_bytes_slice(text, line_start, to));
}

static cy_err yaml_walk_refuse(struct yaml_walk *walk, yaml_mark_t mark, const char *english,
                               const char *korean)
{
    yaml_walk_place(walk, mark);
    builder_text(&walk->fault->message, walk->options.korean ? korean : english);
    return CY_ERR(BAD_FORMAT);
}

static cy_err yaml_walk_refuse_limit(struct yaml_walk *walk, const char *row, long long value,
                                     const char *unit)
{
    builder_printf(&walk->fault->message,
                   walk->options.korean ? "YAML이 한도를 넘었습니다: %s = %lld %s"
                                        : "the YAML is past the limit %s = %lld %s",
                   row, value, unit);
    return CY_ERR(LIMIT);
}

/* The byte at a mark; 0 at the end. */
static uint8_t yaml_walk_byte_at(const struct yaml_walk *walk, yaml_mark_t mark)
{
    bool before = mark.index < walk->piece_index; /* then from the start: libyaml complains of where it is */
    size_t offset = before ? 0 : walk->piece_offset;
    for (size_t i = before ? 0 : walk->piece_index; i < mark.index && offset < walk->text.count; i++) {
        uint32_t code_point;
        size_t length = 1;
        if (!text_decode(cy_bytes_skip(walk->text, offset), &code_point, &length)) length = 1;
        offset += length;
    }
    return offset < walk->text.count ? walk->text.data[offset] : 0;
}

/* What libyaml's words leave out: the usual slip behind them. */
static void yaml_walk_add_advice(struct yaml_walk *walk)
{
    const yaml_parser_t *parser = &walk->parser;
    bool korean = walk->options.korean;
    const char *advice = NULL;
    if (parser->context && strcmp(parser->context, "while scanning an alias") == 0) {
        advice =
            korean ? "'*'로 시작하는 값은 따옴표로 싸세요" : "a value that starts with '*' must be quoted";
    } else if (parser->error == YAML_SCANNER_ERROR) {
        uint8_t byte = yaml_walk_byte_at(walk, parser->problem_mark);
        if (byte == '\t')
            advice = korean ? "탭이 아니라 빈칸으로 들여쓰세요" : "indent with spaces, not tabs";
        if (byte == '@' || byte == '`' || byte == '%')
            advice = korean ? "이 글자로 시작하는 값은 따옴표로 싸세요"
                            : "a value that starts with it must be quoted";
    }
    if (advice) builder_printf(&walk->fault->message, "; %s", advice);
}

static cy_err yaml_walk_syntax_fault(struct yaml_walk *walk)
{
    const yaml_parser_t *parser = &walk->parser;
    bool korean = walk->options.korean;
    struct builder *message = &walk->fault->message;
    /* Some of libyaml's own failed allocations are told by the lack of a problem alone. */
    if (parser->error == YAML_MEMORY_ERROR || !parser->problem) return CY_ERR(NO_MEMORY);
    if (parser->error == YAML_READER_ERROR && walk->given >= walk->given_max &&
        walk->given < walk->text.count) {
        yaml_walk_place(walk, walk->event_mark);
        return yaml_walk_refuse_limit(walk, "YAML_PIECE_BYTES", LIMIT_YAML_PIECE_BYTES, "bytes");
    }
    builder_text(message, yaml_walk_translate(yaml_walk_problems, CY_COUNT_OF(yaml_walk_problems),
                                              parser->problem, korean));
    if (parser->error == YAML_READER_ERROR) {
        yaml_mark_t mark = parser->mark; /* where it reads; what it complains of is ahead */
        size_t here = yaml_walk_offset(walk);
        yaml_walk_advance(walk->text, here, cy_max_size(here, parser->problem_offset), &mark.line,
                          &mark.column);
        yaml_walk_place(walk, mark);
        if (parser->problem_value > 0) builder_printf(message, " (U+%04X)", (unsigned)parser->problem_value);
        return CY_ERR(BAD_FORMAT);
    }
    yaml_walk_place(walk, parser->problem_mark);
    if (parser->context) {
        const char *context =
            yaml_walk_translate(yaml_walk_contexts, CY_COUNT_OF(yaml_walk_contexts), parser->context, korean);
        uint32_t line = yaml_walk_from_one(parser->context_mark.line);
        if (line != walk->fault->line) {
            builder_printf(message, korean ? " (%u번째 줄에서 시작한 것: %s)" : " (line %u: %s)", line,
                           context);
        } else {
            builder_printf(message, " (%s)", context);
        }
    }
    yaml_walk_add_advice(walk);
    return CY_ERR(BAD_FORMAT);
}

/* -- events ------------------------------------------------------------------------------------------------------ */

static cy_err yaml_walk_emit(struct yaml_walk *walk, enum yaml_walk_kind kind, const yaml_event_t *event)
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
    return walk->options.on_event(walk->options.context, &out);
}

static cy_err yaml_walk_begin_node(struct yaml_walk *walk, const yaml_event_t *event,
                                   const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) {
        return yaml_walk_refuse(walk, event->start_mark,
                                "anchors (&name) are not supported; write the value out",
                                "닻(&이름)은 지원하지 않습니다. 값을 그대로 쓰세요");
    }
    if (tag) {
        return yaml_walk_refuse(walk, event->start_mark,
                                "tags (!name) are not supported; a value that starts with '!' must be quoted",
                                "태그(!이름)는 지원하지 않습니다. '!'로 시작하는 값은 따옴표로 싸세요");
    }
    if (++walk->node_count > LIMIT_YAML_NODES) {
        yaml_walk_place(walk, event->start_mark);
        return yaml_walk_refuse_limit(walk, "YAML_NODES", LIMIT_YAML_NODES, "nodes");
    }
    return CY_OK;
}

static cy_err yaml_walk_begin_container(struct yaml_walk *walk, enum yaml_walk_kind kind,
                                        const yaml_event_t *event, const yaml_char_t *anchor,
                                        const yaml_char_t *tag)
{
    CY_TRY(yaml_walk_begin_node(walk, event, anchor, tag));
    if (++walk->depth > LIMIT_YAML_DEPTH) {
        yaml_walk_place(walk, event->start_mark);
        return yaml_walk_refuse_limit(walk, "YAML_DEPTH", LIMIT_YAML_DEPTH, "levels");
    }
    return yaml_walk_emit(walk, kind, event);
}

static cy_err yaml_walk_end_container(struct yaml_walk *walk, enum yaml_walk_kind kind,
                                      const yaml_event_t *event)
{
    CHECK(walk->depth > 0);
    walk->depth--;
    return yaml_walk_emit(walk, kind, event);
}

static cy_err yaml_walk_scalar(struct yaml_walk *walk, const yaml_event_t *event)
{
    CY_TRY(yaml_walk_begin_node(walk, event, event->data.scalar.anchor, event->data.scalar.tag));
    /* "---" and nothing else is an empty document too. */
    bool is_empty = event->data.scalar.length == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (walk->depth == 0 && is_empty) return CY_OK;
    return yaml_walk_emit(walk, YAML_WALK_SCALAR, event);
}

static cy_err yaml_walk_document(struct yaml_walk *walk, const yaml_event_t *event)
{
    if (++walk->document_count > 1) {
        return yaml_walk_refuse(walk, event->start_mark,
                                "a second document starts here; one file holds one document",
                                "둘째 문서가 여기서 시작합니다. 파일 하나에는 문서 하나만 둡니다");
    }
    if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end) {
        return yaml_walk_refuse(walk, event->start_mark, "%TAG directives are not supported",
                                "%TAG 지시자는 지원하지 않습니다");
    }
    return CY_OK;
}

static cy_err yaml_walk_on_event(struct yaml_walk *walk, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT: return CY_OK;
    case YAML_DOCUMENT_START_EVENT: return yaml_walk_document(walk, event);
    case YAML_ALIAS_EVENT:
        return yaml_walk_refuse(
            walk, event->start_mark,
            "aliases (*name) are not supported; a value that starts with '*' must be quoted",
            "별칭(*이름)은 지원하지 않습니다. '*'로 시작하는 값은 따옴표로 싸세요");
    case YAML_SCALAR_EVENT: return yaml_walk_scalar(walk, event);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_walk_begin_container(walk, YAML_WALK_LIST_BEGIN, event, event->data.sequence_start.anchor,
                                         event->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return yaml_walk_begin_container(walk, YAML_WALK_MAP_BEGIN, event, event->data.mapping_start.anchor,
                                         event->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT: return yaml_walk_end_container(walk, YAML_WALK_LIST_END, event);
    case YAML_MAPPING_END_EVENT: return yaml_walk_end_container(walk, YAML_WALK_MAP_END, event);
    }
    UNREACHABLE();
}

/* -- pieces ------------------------------------------------------------------------------------------------------ */

/* libyaml asks for text. Past the bound it gets none, and takes that for a reader that failed. */
static int yaml_walk_give(void *context, unsigned char *buffer, size_t size, size_t *count_out)
{
    struct yaml_walk *walk = context;
    size_t left = walk->text.count - walk->given;
    *count_out = 0;
    if (left == 0) return 1;
    if (walk->given >= walk->given_max) return 0;
    *count_out = cy_min_size(cy_min_size(left, size),
                             cy_min_size(walk->given_max - walk->given, YAML_WALK_GIVE_BYTES));
    memcpy(buffer, walk->text.data + walk->given, *count_out);
    walk->given += *count_out;
    return 1;
}

cy_err yaml_walk_new(cy_bytes text, const struct yaml_walk_options *options, struct yaml_walk_fault *fault,
                     struct yaml_walk **walk_out)
{
    struct yaml_walk *walk = mem_alloc(sizeof *walk);
    if (!walk) return CY_ERR(NO_MEMORY);
    *walk = (struct yaml_walk){.text = text, .options = *options, .fault = fault};
    if (text.count > LIMIT_YAML_BYTES) {
        cy_err err = yaml_walk_refuse_limit(walk, "YAML_BYTES", LIMIT_YAML_BYTES, "bytes");
        mem_free(walk);
        return err;
    }
    if (cy_bytes_start_with(text, CY_BYTES("\xEF\xBB\xBF"))) walk->text = cy_bytes_skip(text, 3);
    if (!yaml_parser_initialize(&walk->parser)) {
        mem_free(walk);
        return CY_ERR(NO_MEMORY);
    }
    yaml_parser_set_encoding(&walk->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input(&walk->parser, yaml_walk_give, walk);
    *walk_out = walk;
    return CY_OK;
}

void yaml_walk_free(struct yaml_walk **walk)
{
    if (!*walk) return;
    yaml_parser_delete(&(*walk)->parser);
    mem_free(*walk);
    *walk = NULL;
}

/* All of it is looked at before the first event, so that what is no text has no beginning that is one. */
static cy_err yaml_walk_check(struct yaml_walk *walk, uint64_t *steps_out)
{
    size_t end = cy_min_size(walk->text.count, walk->checked + YAML_WALK_CHECK_BYTES), bad;
    /* Not inside a letter, which takes up to four bytes; whatever else stands there is refused all the same. */
    for (int i = 0; i < 3 && end < walk->text.count && (walk->text.data[end] & 0xC0) == 0x80; i++) end--;
    bool good = text_is_utf8(cy_bytes_slice(walk->text, walk->checked, end), &bad);
    *steps_out = (end - walk->checked) / YAML_WALK_CHECKED_PER_STEP;
    if (!good) end = walk->checked + bad;
    yaml_walk_advance(walk->text, walk->checked, end, &walk->checked_line, &walk->checked_column);
    walk->checked = end;
    if (good) return CY_OK;
    yaml_walk_place(walk, (yaml_mark_t){.line = walk->checked_line, .column = walk->checked_column});
    builder_printf(&walk->fault->message,
                   walk->options.korean ? "UTF-8이 아닙니다 (바이트 0x%02X)" : "not UTF-8 (byte 0x%02X)",
                   walk->text.data[end]);
    return CY_ERR(BAD_FORMAT);
}

static cy_err yaml_walk_next(struct yaml_walk *walk, bool *more_out)
{
    yaml_event_t event;
    walk->event_mark = walk->parser.mark;
    walk->given_max = yaml_walk_offset(walk) + LIMIT_YAML_PIECE_BYTES;
    if (!yaml_parser_parse(&walk->parser, &event)) return yaml_walk_syntax_fault(walk);
    cy_err err = yaml_walk_on_event(walk, &event);
    *more_out = event.type != YAML_STREAM_END_EVENT;
    yaml_event_delete(&event);
    return err;
}

cy_err yaml_walk_go(struct yaml_walk *walk, uint64_t *steps_out, bool *more_out)
{
    *more_out = true;
    if (walk->checked < walk->text.count) return yaml_walk_check(walk, steps_out);
    cy_err err = CY_OK;
    size_t before = walk->given;
    walk->piece_offset = yaml_walk_offset(walk);
    walk->piece_index = walk->parser.mark.index;
    for (int i = 0; i < YAML_WALK_PIECE_EVENTS && *more_out && walk->given == before && !cy_failed(err); i++)
        err = yaml_walk_next(walk, more_out);
    *steps_out = (walk->given - before) / YAML_WALK_GIVEN_PER_STEP;
    return err;
}

cy_err yaml_walk(cy_bytes text, const struct yaml_walk_options *options, struct yaml_walk_fault *fault)
{
    struct yaml_walk *walk;
    bool more = true;
    uint64_t steps;
    CY_TRY(yaml_walk_new(text, options, fault, &walk));
    cy_err err = CY_OK;
    while (more && !cy_failed(err)) err = yaml_walk_go(walk, &steps, &more);
    yaml_walk_free(&walk);
    return err;
}
