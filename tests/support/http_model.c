/* SPDX-License-Identifier: MIT
 *
 * tests/support/http_model.c: the reader and writer of http_model.h, byte by byte, without a thought of speed.
 *
 *   HEAD ──► LENGTH ──────────────────────────────► ENDED
 *     ├────► SIZE ─► CHUNK ─► CHUNK_END ─► SIZE ... ─► TRAILER ─► ENDED
 *     ├────► UNTIL_CLOSE
 *     └────► NOTHING ─► ENDED
 */
#include "tests/support/http_model.h"

#include <stdio.h>
#include <stdlib.h>

enum http_model_state {
    HTTP_MODEL_STATE_HEAD,
    HTTP_MODEL_STATE_NOTHING,
    HTTP_MODEL_STATE_LENGTH,
    HTTP_MODEL_STATE_SIZE,
    HTTP_MODEL_STATE_CHUNK,
    HTTP_MODEL_STATE_CHUNK_END,
    HTTP_MODEL_STATE_TRAILER,
    HTTP_MODEL_STATE_UNTIL_CLOSE,
    HTTP_MODEL_STATE_ENDED
};

#define HTTP_MODEL_HEAD_BYTES_MAX 65536

void http_model_init(struct http_model *model, bool is_response)
{
    *model = (struct http_model){.is_response = is_response};
    builder_init(&model->head);
    builder_init(&model->trailer);
    builder_init(&model->line);
    http_model_begin(model);
}

void http_model_fini(struct http_model *model)
{
    builder_fini(&model->head);
    builder_fini(&model->trailer);
    builder_fini(&model->line);
}

void http_model_begin(struct http_model *model)
{
    builder_clear(&model->head);
    builder_clear(&model->trailer);
    builder_clear(&model->line);
    model->state = HTTP_MODEL_STATE_HEAD;
    model->field_count = 0;
    model->status = 0;
    model->method = model->target = CY_BYTES_NONE;
    model->has_length = model->closes = false;
    model->length = model->left_bytes = 0;
    model->body = HTTP_MODEL_BODY_NONE;
}

static enum http_model_step http_model_fail(struct http_model *model, const char *fault)
{
    model->fault = fault;
    return HTTP_MODEL_FAULT;
}

/* -- words -------------------------------------------------------------------------------------------------- */

/* RFC 9110 section 5.6.2. */
static bool http_model_is_token(cy_bytes text)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < text.count; i++) {
        uint8_t c = text.data[i];
        bool ok = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c && memchr(others, c, sizeof others - 1));
        if (!ok) return false;
    }
    return text.count > 0;
}

static bool http_model_is_visible(cy_bytes text)
{
    for (size_t i = 0; i < text.count; i++)
        if (text.data[i] <= ' ' || text.data[i] == 0x7f) return false;
    return text.count > 0;
}

static cy_bytes http_model_trim(cy_bytes text)
{
    while (text.count && (text.data[0] == ' ' || text.data[0] == '\t')) text = cy_bytes_skip(text, 1);
    while (text.count && (text.data[text.count - 1] == ' ' || text.data[text.count - 1] == '\t'))
        text.count--;
    return text;
}

/* Up to the separator, which goes too. False when there is none. */
static bool http_model_cut(cy_bytes *rest, uint8_t separator, cy_bytes *word_out)
{
    size_t at = cy_bytes_find(*rest, separator);
    if (at >= rest->count) return false;
    *word_out = cy_bytes_slice(*rest, 0, at);
    *rest = cy_bytes_skip(*rest, at + 1);
    return true;
}

static bool http_model_number(cy_bytes digits, uint64_t *number_out)
{
    uint64_t number = 0;
    if (digits.count == 0 || digits.count > 18) return false;
    for (size_t i = 0; i < digits.count; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9') return false;
        number = number * 10 + (uint64_t)(digits.data[i] - '0');
    }
    *number_out = number;
    return true;
}

/* Is `word` an element of the comma-separated list? */
static bool http_model_lists(cy_bytes list, const char *word)
{
    cy_bytes element;
    while (http_model_cut(&list, ',', &element))
        if (cy_bytes_equal_nocase(http_model_trim(element), cy_bytes_from_text(word))) return true;
    return cy_bytes_equal_nocase(http_model_trim(list), cy_bytes_from_text(word));
}

cy_bytes http_model_field(const struct http_model *model, const char *name, uint32_t *count_out)
{
    cy_bytes value = CY_BYTES_NONE;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->field_count; i++) {
        if (!cy_bytes_equal_nocase(model->fields[i].name, cy_bytes_from_text(name))) continue;
        value = model->fields[i].value;
        count++;
    }
    if (count_out) *count_out = count;
    return count == 1 ? value : CY_BYTES_NONE;
}

/* -- the head ----------------------------------------------------------------------------------------------- */

/* A line of `text` without its CR LF; a lone CR or LF is nowhere allowed. */
static bool http_model_line(cy_bytes *text, cy_bytes *line_out)
{
    if (!http_model_cut(text, '\n', line_out)) return false;
    if (line_out->count == 0 || line_out->data[line_out->count - 1] != '\r') return false;
    line_out->count--;
    return cy_bytes_find(*line_out, '\r') >= line_out->count;
}

static const char *http_model_read_version(struct http_model *model, cy_bytes text)
{
    if (cy_bytes_equal(text, CY_BYTES("HTTP/1.1")))
        model->minor_version = 1;
    else if (cy_bytes_equal(text, CY_BYTES("HTTP/1.0")))
        model->minor_version = 0;
    else
        return "version";
    return NULL;
}

static const char *http_model_read_start(struct http_model *model, cy_bytes line)
{
    cy_bytes word;
    uint64_t status;
    if (!model->is_response) {
        if (!http_model_cut(&line, ' ', &model->method) || !http_model_is_token(model->method))
            return "method";
        if (!http_model_cut(&line, ' ', &model->target) || !http_model_is_visible(model->target))
            return "target";
        return http_model_read_version(model, line);
    }
    if (!http_model_cut(&line, ' ', &word)) return "status line";
    const char *fault = http_model_read_version(model, word);
    if (fault) return fault;
    if (!http_model_cut(&line, ' ', &word)) return "status line without the space behind the code";
    if (word.count != 3 || !http_model_number(word, &status) || status < 100) return "status code";
    model->status = (unsigned)status;
    return NULL;
}

static const char *http_model_read_field(struct http_model *model, cy_bytes line)
{
    struct http_model_field field;
    if (!http_model_cut(&line, ':', &field.name) || !http_model_is_token(field.name)) return "field name";
    field.value = http_model_trim(line);
    for (size_t i = 0; i < field.value.count; i++) {
        uint8_t c = field.value.data[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return "control byte in a field value";
    }
    if (model->field_count == HTTP_MODEL_FIELDS_MAX) return "more fields than the model holds";
    model->fields[model->field_count++] = field;
    return NULL;
}

/* RFC 9112 section 6.3, and what senders must not do (sections 6.1 and 6.2). */
static const char *http_model_read_framing(struct http_model *model)
{
    uint32_t lengths, codings;
    cy_bytes length = http_model_field(model, "Content-Length", &lengths);
    cy_bytes coding = http_model_field(model, "Transfer-Encoding", &codings);
    if (lengths > 1 || codings > 1) return "framing twice";
    if (lengths && codings) return "Content-Length and Transfer-Encoding";
    if (lengths && !http_model_number(length, &model->length)) return "Content-Length";
    if (codings && !cy_bytes_equal_nocase(coding, CY_BYTES("chunked"))) return "Transfer-Encoding";
    if (codings && model->minor_version == 0) return "Transfer-Encoding in HTTP/1.0";
    model->has_length = lengths > 0;
    bool bare = model->is_response && (model->status < 200 || model->status == 204);
    if (bare && (lengths || codings)) return "framing in 1xx or 204";
    if (bare || (model->is_response && (model->answers_head || model->status == 304)))
        model->body = HTTP_MODEL_BODY_NONE;
    else if (codings)
        model->body = HTTP_MODEL_BODY_CHUNKED;
    else if (lengths)
        model->body = model->length ? HTTP_MODEL_BODY_LENGTH : HTTP_MODEL_BODY_NONE;
    else
        model->body = model->is_response ? HTTP_MODEL_BODY_UNTIL_CLOSE : HTTP_MODEL_BODY_NONE;
    model->left_bytes = model->length;
    cy_bytes connection = http_model_field(model, "Connection", &lengths);
    if (lengths > 1) return "Connection twice";
    model->closes = model->body == HTTP_MODEL_BODY_UNTIL_CLOSE || http_model_lists(connection, "close") ||
                    (model->minor_version == 0 && !http_model_lists(connection, "keep-alive"));
    return NULL;
}

static const char *http_model_read_head(struct http_model *model)
{
    cy_bytes text = builder_view(&model->head), line;
    if (!http_model_line(&text, &line)) return "start line's end";
    const char *fault = http_model_read_start(model, line);
    while (!fault) {
        if (!http_model_line(&text, &line)) return "line's end";
        if (line.count == 0) break;
        fault = http_model_read_field(model, line);
    }
    if (fault) return fault;
    uint32_t hosts;
    http_model_field(model, "Host", &hosts);
    if (!model->is_response && hosts != 1 && (model->minor_version == 1 || hosts > 1)) return "Host";
    return http_model_read_framing(model);
}

static enum http_model_step http_model_step_head(struct http_model *model, cy_bytes *rest)
{
    static const uint8_t next[] = {
        [HTTP_MODEL_BODY_NONE] = HTTP_MODEL_STATE_NOTHING,
        [HTTP_MODEL_BODY_LENGTH] = HTTP_MODEL_STATE_LENGTH,
        [HTTP_MODEL_BODY_CHUNKED] = HTTP_MODEL_STATE_SIZE,
        [HTTP_MODEL_BODY_UNTIL_CLOSE] = HTTP_MODEL_STATE_UNTIL_CLOSE,
    };
    while (rest->count) {
        builder_u8(&model->head, rest->data[0]);
        *rest = cy_bytes_skip(*rest, 1);
        size_t count = model->head.count;
        if (count > HTTP_MODEL_HEAD_BYTES_MAX) return http_model_fail(model, "head without an end");
        if (count < 4 || memcmp(model->head.data + count - 4, "\r\n\r\n", 4) != 0) continue;
        const char *fault = http_model_read_head(model);
        if (fault) return http_model_fail(model, fault);
        model->state = next[model->body];
        return HTTP_MODEL_HEAD;
    }
    return HTTP_MODEL_MORE;
}

/* -- the body ----------------------------------------------------------------------------------------------- */

static enum http_model_step http_model_take(struct http_model *model, cy_bytes *rest, cy_bytes *piece_out,
                                            uint8_t state_after)
{
    if (rest->count == 0) return HTTP_MODEL_MORE;
    size_t count = rest->count < model->left_bytes ? rest->count : (size_t)model->left_bytes;
    *piece_out = cy_bytes_slice(*rest, 0, count);
    *rest = cy_bytes_skip(*rest, count);
    model->left_bytes -= count;
    if (model->left_bytes == 0) model->state = state_after;
    return HTTP_MODEL_DATA;
}

/* A whole line in `line`, CR LF included. */
static bool http_model_gather_line(struct http_model *model, cy_bytes *rest)
{
    while (rest->count) {
        uint8_t byte = rest->data[0];
        builder_u8(&model->line, byte);
        *rest = cy_bytes_skip(*rest, 1);
        if (byte == '\n') return true;
    }
    return false;
}

static const char *http_model_read_size(struct http_model *model)
{
    cy_bytes text = builder_view(&model->line), line;
    if (!http_model_line(&text, &line)) return "end of the chunk size's line";
    uint64_t size = 0;
    size_t digits = 0;
    for (; digits < line.count && line.data[digits] != ';'; digits++) {
        uint8_t c = line.data[digits];
        if (digits == 15) return "chunk size";
        if (c >= '0' && c <= '9')
            size = size * 16 + (uint64_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            size = size * 16 + (uint64_t)((c | 0x20) - 'a' + 10);
        else
            return "chunk size";
    }
    if (digits == 0) return "chunk size";
    model->left_bytes = size;
    model->state = size ? HTTP_MODEL_STATE_CHUNK : HTTP_MODEL_STATE_TRAILER;
    builder_clear(&model->line);
    return NULL;
}

/* One line of the trailer section, or its end. */
static const char *http_model_read_trailer(struct http_model *model)
{
    cy_bytes text = builder_view(&model->line), line, name;
    if (!http_model_line(&text, &line)) return "end of the trailer's line";
    if (line.count == 0) {
        model->state = HTTP_MODEL_STATE_ENDED;
    } else {
        cy_bytes value = line;
        if (!http_model_cut(&value, ':', &name) || !http_model_is_token(name)) return "trailer field name";
        if (cy_bytes_equal_nocase(name, CY_BYTES("Content-Length")) ||
            cy_bytes_equal_nocase(name, CY_BYTES("Transfer-Encoding")) ||
            cy_bytes_equal_nocase(name, CY_BYTES("Host")))
            return "framing or routing in a trailer";
        builder_bytes(&model->trailer, builder_view(&model->line));
    }
    builder_clear(&model->line);
    return NULL;
}

enum http_model_step http_model_step(struct http_model *model, cy_bytes *rest, cy_bytes *piece_out)
{
    for (;;) {
        const char *fault = NULL;
        switch ((enum http_model_state)model->state) {
        case HTTP_MODEL_STATE_HEAD: return http_model_step_head(model, rest);
        case HTTP_MODEL_STATE_NOTHING: model->state = HTTP_MODEL_STATE_ENDED; break;
        case HTTP_MODEL_STATE_ENDED: return HTTP_MODEL_END;
        case HTTP_MODEL_STATE_LENGTH: return http_model_take(model, rest, piece_out, HTTP_MODEL_STATE_ENDED);
        case HTTP_MODEL_STATE_CHUNK:
            return http_model_take(model, rest, piece_out, HTTP_MODEL_STATE_CHUNK_END);
        case HTTP_MODEL_STATE_UNTIL_CLOSE:
            model->left_bytes = UINT64_MAX;
            return http_model_take(model, rest, piece_out, HTTP_MODEL_STATE_UNTIL_CLOSE);
        case HTTP_MODEL_STATE_SIZE:
            if (!http_model_gather_line(model, rest)) return HTTP_MODEL_MORE;
            fault = http_model_read_size(model);
            break;
        case HTTP_MODEL_STATE_CHUNK_END:
            if (!http_model_gather_line(model, rest) && model->line.count < 2) return HTTP_MODEL_MORE;
            if (!cy_bytes_equal(builder_view(&model->line), CY_BYTES("\r\n"))) fault = "chunk's end";
            builder_clear(&model->line);
            model->state = HTTP_MODEL_STATE_SIZE;
            break;
        case HTTP_MODEL_STATE_TRAILER:
            if (!http_model_gather_line(model, rest)) return HTTP_MODEL_MORE;
            fault = http_model_read_trailer(model);
            break;
        }
        if (fault) return http_model_fail(model, fault);
    }
}

bool http_model_has_begun(const struct http_model *model)
{
    return model->state != HTTP_MODEL_STATE_HEAD || model->head.count > 0;
}

bool http_model_may_end(const struct http_model *model)
{
    return !http_model_has_begun(model) || model->state == HTTP_MODEL_STATE_UNTIL_CLOSE;
}

/* -- writing ------------------------------------------------------------------------------------------------ */

void http_model_put_chunk(struct builder *out, cy_bytes bytes)
{
    if (bytes.count == 0) return;
    builder_printf(out, "%zx\r\n", bytes.count);
    builder_bytes(out, bytes);
    builder_text(out, "\r\n");
}

void http_model_put_last_chunk(struct builder *out, cy_bytes trailer)
{
    builder_text(out, "0\r\n");
    builder_bytes(out, trailer);
    builder_text(out, "\r\n");
}

#undef HTTP_MODEL_HEAD_BYTES_MAX
