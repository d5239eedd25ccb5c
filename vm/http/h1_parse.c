/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_parse.c: the head, line by line.
 *
 *   START ──start line──► FIELDS ──field line──► FIELDS ──empty line──► done
 *     └──empty lines (requests only) are skipped
 *
 * In, Out, Spec: h1_parse.h.
 * Invariant: [0, line_begin) has been parsed; no LF lies in [line_begin, searched).
 */
#include "vm/http/h1_parse.h"

#include "vm/base/check.h"
#include "vm/http/field.h"
#include "vm/http/h1_scan.h"

enum h1_parse_state { H1_PARSE_START, H1_PARSE_FIELDS };

static void h1_parse_begin(struct h1_head *head, struct http_field *fields, bool is_response)
{
    head->method = head->target = head->reason = CY_BYTES_NONE;
    head->status = 0;
    head->minor_version = 0;
    head->is_response = is_response;
    head->fault = H1_FAULT_NONE;
    head->field_count = 0;
    head->fields = fields;
    head->fields_max = LIMIT_HTTP_FIELDS;
    head->bytes_max = LIMIT_HTTP_HEAD_BYTES;
    head->used_bytes = 0;
    head->base = NULL;
    head->line_begin = head->searched = 0;
    head->state = H1_PARSE_START;
}

void h1_parse_begin_request(struct h1_head *head, struct http_field *fields)
{
    h1_parse_begin(head, fields, false);
}
void h1_parse_begin_response(struct h1_head *head, struct http_field *fields)
{
    h1_parse_begin(head, fields, true);
}

static void h1_parse_move(cy_bytes *view, const uint8_t *from, const uint8_t *to)
{
    if (view->data) view->data = to + (view->data - from);
}

/* The input was copied to a larger buffer since the last call: the views follow it. */
static void h1_parse_rebase(struct h1_head *head, const uint8_t *base)
{
    if (head->base && head->base != base) {
        h1_parse_move(&head->method, head->base, base);
        h1_parse_move(&head->target, head->base, base);
        h1_parse_move(&head->reason, head->base, base);
        for (uint32_t i = 0; i < head->field_count; i++) {
            h1_parse_move(&head->fields[i].name, head->base, base);
            h1_parse_move(&head->fields[i].value, head->base, base);
        }
    }
    head->base = base;
}

/* "HTTP/1.0" or "HTTP/1.1", exactly. */
static uint8_t h1_parse_version(cy_bytes text, uint8_t *minor_version_out)
{
    if (text.count != 8 || memcmp(text.data, "HTTP/", 5) != 0 || text.data[6] != '.') return H1_FAULT_VERSION;
    uint8_t major = (uint8_t)(text.data[5] - '0'), minor = (uint8_t)(text.data[7] - '0');
    if (major > 9 || minor > 9) return H1_FAULT_VERSION;
    if (major != 1 || minor > 1) return H1_FAULT_VERSION_UNKNOWN;
    *minor_version_out = minor;
    return H1_FAULT_NONE;
}

/* '#' would begin a fragment, which is never sent; peers disagree whether it ends the path. */
static bool h1_parse_is_target(cy_bytes target)
{
    for (size_t i = 0; i < target.count; i++)
        if (target.data[i] <= ' ' || target.data[i] == 0x7f || target.data[i] == '#') return false;
    return target.count > 0;
}

uint8_t h1_check_request_line(cy_bytes method, cy_bytes target)
{
    if (!field_is_token(method)) return H1_FAULT_METHOD;
    if (method.count > LIMIT_HTTP_METHOD_BYTES) return H1_FAULT_METHOD_LONG;
    if (target.count > LIMIT_HTTP_TARGET_BYTES) return H1_FAULT_TARGET_LONG;
    return h1_parse_is_target(target) ? H1_FAULT_NONE : H1_FAULT_TARGET;
}

static uint8_t h1_parse_request_line(struct h1_head *head, cy_bytes line)
{
    size_t method_end = 0;
    while (method_end < line.count && field_is_token_byte(line.data[method_end])) method_end++;
    if (method_end == 0 || method_end == line.count || line.data[method_end] != ' ') return H1_FAULT_METHOD;
    if (method_end > LIMIT_HTTP_METHOD_BYTES) return H1_FAULT_METHOD_LONG;
    cy_bytes rest = cy_bytes_skip(line, method_end + 1);
    size_t target_end = cy_bytes_find(rest, ' ');
    if (target_end > LIMIT_HTTP_TARGET_BYTES) return H1_FAULT_TARGET_LONG;
    if (target_end == 0) return H1_FAULT_TARGET;
    if (target_end == rest.count) return H1_FAULT_VERSION; /* HTTP/0.9 had none */
    head->method = cy_bytes_slice(line, 0, method_end);
    head->target = cy_bytes_slice(rest, 0, target_end);
    if (!h1_parse_is_target(head->target)) return H1_FAULT_TARGET;
    return h1_parse_version(cy_bytes_skip(rest, target_end + 1), &head->minor_version);
}

/* "HTTP/1.1 200 OK"; the space behind the status may be missing when the reason is (RFC 9112 says SHOULD,
 * servers do). */
static uint8_t h1_parse_status_line(struct h1_head *head, cy_bytes line)
{
    if (line.count < 12 || line.data[8] != ' ') return H1_FAULT_STATUS_LINE;
    if (h1_parse_version(cy_bytes_slice(line, 0, 8), &head->minor_version)) return H1_FAULT_STATUS_LINE;
    uint64_t status;
    if (!cy_bytes_parse_u64(cy_bytes_slice(line, 9, 12), 999, &status) || status < 100)
        return H1_FAULT_STATUS_LINE;
    if (line.count > 12 && line.data[12] != ' ') return H1_FAULT_STATUS_LINE;
    head->status = (uint16_t)status;
    head->reason = cy_bytes_skip(line, 13);
    return field_is_value(head->reason) ? H1_FAULT_NONE : H1_FAULT_STATUS_LINE;
}

static uint8_t h1_parse_field(cy_bytes line, struct http_field *field_out)
{
    size_t colon = 0;
    while (colon < line.count && field_is_token_byte(line.data[colon])) colon++;
    if (colon == line.count || line.data[colon] != ':') {
        bool space = colon < line.count && (line.data[colon] == ' ' || line.data[colon] == '\t');
        if (colon == 0) return space ? H1_FAULT_FIELD_FOLDED : H1_FAULT_FIELD_NAME;
        return space ? H1_FAULT_FIELD_SPACE : H1_FAULT_FIELD_NAME;
    }
    if (colon == 0) return H1_FAULT_FIELD_NAME;
    field_out->name = cy_bytes_slice(line, 0, colon);
    field_out->value = field_trim(cy_bytes_skip(line, colon + 1));
    if (!field_is_value(field_out->value)) return H1_FAULT_FIELD_VALUE;
    field_out->known = field_identify(field_out->name);
    field_out->hop = false;
    return H1_FAULT_NONE;
}

/* One complete line without its CR LF. */
static uint8_t h1_parse_line(struct h1_head *head, cy_bytes line)
{
    if (head->state != H1_PARSE_FIELDS) {
        head->state = H1_PARSE_FIELDS;
        return head->is_response ? h1_parse_status_line(head, line) : h1_parse_request_line(head, line);
    }
    if (head->field_count >= head->fields_max) return H1_FAULT_FIELDS_MANY;
    uint8_t fault = h1_parse_field(line, &head->fields[head->field_count]);
    if (!fault) head->field_count++;
    return fault;
}

/* What can be said about a line whose end has not come. Anything that cannot become a request is refused at
 * once: a TLS handshake sent to a plain port has no line end to wait for. */
static uint8_t h1_parse_judge_partial(const struct h1_head *head, cy_bytes input)
{
    cy_bytes partial = cy_bytes_skip(input, head->line_begin);
    if (head->state != H1_PARSE_FIELDS && !head->is_response && partial.count > 0) {
        uint8_t first = partial.data[0];
        bool may_be_empty_line = first == '\r' && partial.count == 1;
        if (!may_be_empty_line && !field_is_token_byte(first)) return H1_FAULT_METHOD;
        if (partial.count > LIMIT_HTTP_METHOD_BYTES + LIMIT_HTTP_TARGET_BYTES + sizeof " HTTP/1.1\r")
            return H1_FAULT_TARGET_LONG;
    }
    if (head->is_response && head->state != H1_PARSE_FIELDS) {
        size_t known = cy_min_size(partial.count, 5);
        if (memcmp(partial.data, "HTTP/", known) != 0) return H1_FAULT_STATUS_LINE;
    }
    return input.count >= head->bytes_max ? H1_FAULT_HEAD_LONG : H1_FAULT_NONE;
}

static enum h1_parse_result h1_parse_refuse(struct h1_head *head, uint8_t fault)
{
    DCHECK(fault != H1_FAULT_NONE);
    head->fault = fault;
    return H1_PARSE_FAULT;
}

/* The field lines from here on that have the usual form; not the one that the caller has begun to search. */
static void h1_parse_usual_fields(struct h1_head *head, cy_bytes input)
{
    if (head->state != H1_PARSE_FIELDS || head->searched != head->line_begin) return;
    while (head->field_count < head->fields_max) {
        cy_bytes rest = cy_bytes_skip(input, head->line_begin);
        size_t used = h1_scan_field(rest, &head->fields[head->field_count]);
        if (used == 0 || head->line_begin + used > head->bytes_max) return;
        head->field_count++;
        head->line_begin += used;
        head->searched = head->line_begin;
    }
}

enum h1_parse_result h1_parse_head(struct h1_head *head, cy_bytes input)
{
    if (input.count == 0) return H1_PARSE_MORE;
    h1_parse_rebase(head, input.data);
    DCHECK(head->line_begin <= head->searched && head->searched <= input.count);
    for (;;) {
        h1_parse_usual_fields(head, input);
        const uint8_t *begin = input.data + head->line_begin;
        const uint8_t *end = memchr(input.data + head->searched, '\n', input.count - head->searched);
        if (!end) {
            head->searched = input.count;
            uint8_t fault = h1_parse_judge_partial(head, input);
            return fault ? h1_parse_refuse(head, fault) : H1_PARSE_MORE;
        }
        size_t after = (size_t)(end - input.data) + 1;
        if (after > head->bytes_max) return h1_parse_refuse(head, H1_FAULT_HEAD_LONG);
        if (end == begin || end[-1] != '\r') return h1_parse_refuse(head, H1_FAULT_LINE_END);
        size_t count = (size_t)(end - begin) - 1;
        head->line_begin = head->searched = after;
        if (count == 0) {
            if (head->state == H1_PARSE_FIELDS) {
                head->used_bytes = after;
                return H1_PARSE_DONE;
            }
            /* RFC 9112 section 2.2: old clients send CR LF behind a body. They count towards
             * LIMIT_HTTP_HEAD_BYTES. */
            if (head->is_response) return h1_parse_refuse(head, H1_FAULT_STATUS_LINE);
            continue;
        }
        uint8_t fault = h1_parse_line(head, cy_bytes_of(begin, count));
        if (fault) return h1_parse_refuse(head, fault);
    }
}
