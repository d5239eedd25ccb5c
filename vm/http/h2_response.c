/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_response.c: see h2_response.h.
 *
 * Invariant: answers are judged as those of HTTP/1 are (h1_judge_response), but for the framing, which is nghttp2's.
 */
#include "vm/http/h2_response.h"

#include "vm/base/check.h"
#include "vm/http/field.h"
#include "vm/http/h1.h"
#include "vm/http/h1_fault.h"
#include "vm/http/h2_session.h"

static uint8_t h2_response_judge(cy_bytes records, struct http_field *fields, bool request_is_head,
                                 bool ended, struct http_response *response_out)
{
    struct h1_head head;
    struct h1_response judged;
    uint64_t status = 0;
    cy_bytes name, value, rest = records;
    h1_parse_begin_response(&head, fields);
    while (h2_head_next(&rest, &name, &value)) {
        if (cy_bytes_equal(name, CY_BYTES(":status"))) {
            if (!cy_bytes_parse_u64(value, 999, &status) || status < 100) return H1_FAULT_STATUS_LINE;
        } else if (head.field_count == LIMIT_HTTP_FIELDS) {
            return H1_FAULT_FIELDS_MANY;
        } else {
            if (!field_is_token(name)) return H1_FAULT_FIELD_NAME;
            if (!field_is_value(value)) return H1_FAULT_FIELD_VALUE;
            head.fields[head.field_count++] =
                (struct http_field){name, field_trim(value), field_identify(name), false};
        }
    }
    head.status = (uint16_t)status;
    head.minor_version = 1;
    response_out->status = head.status;
    response_out->reason = CY_BYTES_NONE;
    response_out->head_bytes = records.count;
    response_out->field_count = head.field_count;
    response_out->fields = head.fields;
    if (status < 200) return status ? H1_FAULT_NONE : H1_FAULT_STATUS_LINE;
    uint8_t fault = h1_judge_response(&head, request_is_head, &judged);
    response_out->body = judged.body;
    response_out->has_date = judged.has_date;
    response_out->declared_length = judged.declared_length;
    if (ended) response_out->body = (struct http_framing){HTTP_BODY_NONE, 0};
    return fault;
}

uint8_t h2_response_read(struct buffer *input_buffer, bool request_is_head, struct http_field *fields,
                         struct http_response *response_out)
{
    cy_bytes input = buffer_view(input_buffer);
    CHECK(input.count >= H2_INPUT_HEAD_BYTES);
    uint32_t records_bytes = cy_load_u32(input.data);
    uint8_t flags = input.data[4];
    cy_bytes records = cy_bytes_slice(input, H2_INPUT_HEAD_BYTES, H2_INPUT_HEAD_BYTES + records_bytes);
    CHECK(records.count == records_bytes);
    input_buffer->begin += H2_INPUT_HEAD_BYTES + records_bytes;
    if (flags & H2_INPUT_HEAD_TOO_LARGE) return H1_FAULT_HEAD_LONG;
    return h2_response_judge(records, fields, request_is_head, (flags & H2_INPUT_HEAD_ENDED) != 0,
                             response_out);
}
