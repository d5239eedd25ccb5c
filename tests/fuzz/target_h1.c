/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_h1.c: HTTP/1 messages from anybody: head, framing, body.
 *
 * In:   one byte that says how the rest is cut into pieces, then a message and what follows it.
 * Promise: however the bytes are cut, and wherever they are moved to in between, the same head comes out of them, or a
 *          refusal; views lie in the bytes; the body's data and its end do not depend on the cuts either, and a decoder
 *          that has refused, or has come to the end, stays there.
 */
#include "tests/fuzz/target.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/http/field.h"
#include "vm/http/h1.h"
#include "vm/http/h1_body.h"

#include <string.h>

static void fuzz_h1_inside(cy_bytes outer, cy_bytes view)
{
    if (view.count == 0) return;
    CHECK(view.data >= outer.data && view.data + view.count <= outer.data + outer.count);
}

/* A copy that sanitizers watch from its first to its last byte. */
static cy_bytes fuzz_h1_copy(cy_bytes input)
{
    uint8_t *copy = mem_alloc(input.count ? input.count : 1);
    CHECK(copy);
    if (input.count) memcpy(copy, input.data, input.count);
    return cy_bytes_of(copy, input.count);
}

static enum h1_parse_result fuzz_h1_parse(struct h1_head *head, struct http_field *fields, bool is_response,
                                          cy_bytes message, size_t step, cy_bytes *last_out)
{
    enum h1_parse_result result = H1_PARSE_MORE;
    uint8_t *before = NULL;
    if (is_response)
        h1_parse_begin_response(head, fields);
    else
        h1_parse_begin_request(head, fields);
    for (size_t count = step < message.count ? step : message.count;;) {
        cy_bytes copy = fuzz_h1_copy(cy_bytes_slice(message, 0, count));
        result = h1_parse_head(head, copy);
        mem_free(before);
        before = (uint8_t *)(uintptr_t)copy.data;
        *last_out = copy;
        if (result != H1_PARSE_MORE || count == message.count) return result;
        count = message.count - count > step ? count + step : message.count;
    }
}

static void fuzz_h1_check_head(const struct h1_head *head, cy_bytes message)
{
    CHECK(head->used_bytes >= 4 && head->used_bytes <= message.count &&
          head->used_bytes <= LIMIT_HTTP_HEAD_BYTES);
    CHECK(memcmp(message.data + head->used_bytes - 4, "\r\n\r\n", 4) == 0);
    CHECK(head->field_count <= LIMIT_HTTP_FIELDS);
    cy_bytes used = cy_bytes_slice(message, 0, head->used_bytes);
    fuzz_h1_inside(used, head->method);
    fuzz_h1_inside(used, head->target);
    fuzz_h1_inside(used, head->reason);
    for (uint32_t i = 0; i < head->field_count; i++) {
        fuzz_h1_inside(used, head->fields[i].name);
        fuzz_h1_inside(used, head->fields[i].value);
        CHECK(field_is_token(head->fields[i].name) && field_is_value(head->fields[i].value));
    }
}

/* Gives the data to `data`; the bytes behind the end to `rest_out`. */
static struct h1_body fuzz_h1_decode(const struct http_framing *framing, cy_bytes input, size_t step,
                                     struct builder *data, struct builder *trailer, size_t *used_out)
{
    struct h1_body body;
    cy_bytes piece;
    size_t used = 0;
    h1_body_begin(&body, framing);
    while (used < input.count) {
        cy_bytes copy = fuzz_h1_copy(cy_bytes_slice(input, used, used + step));
        cy_bytes rest = copy;
        enum h1_body_step result;
        while ((result = h1_body_step(&body, &rest, &piece)) == H1_BODY_DATA || result == H1_BODY_TRAILER) {
            fuzz_h1_inside(copy, piece);
            builder_bytes(result == H1_BODY_DATA ? data : trailer, piece);
        }
        used += copy.count - rest.count;
        mem_free((void *)(uintptr_t)copy.data);
        if (result != H1_BODY_MORE) break;
        CHECK(rest.count == 0);
    }
    *used_out = used;
    return body;
}

static void fuzz_h1_body(const struct http_framing *framing, cy_bytes input, size_t step)
{
    struct builder data[2], trailer[2];
    struct h1_body body[2];
    size_t used[2];
    for (int i = 0; i < 2; i++) {
        builder_init(&data[i]);
        builder_init(&trailer[i]);
        body[i] = fuzz_h1_decode(framing, input, i ? step : input.count + 1, &data[i], &trailer[i], &used[i]);
    }
    CHECK(body[0].ended == body[1].ended && body[0].fault == body[1].fault);
    CHECK(cy_bytes_equal(builder_view(&data[0]), builder_view(&data[1])));
    if (body[0].ended) { /* before a refusal more or less of the trailers may have been let through */
        CHECK(used[0] == used[1]);
        CHECK(cy_bytes_equal(builder_view(&trailer[0]), builder_view(&trailer[1])));
    }
    if (body[0].fault || body[0].ended) {
        cy_bytes more = CY_BYTES("0\r\n\r\n"), piece;
        enum h1_body_step expected = body[0].ended ? H1_BODY_END : H1_BODY_FAULT;
        CHECK(h1_body_step(&body[0], &more, &piece) == expected && more.count == 5);
    }
    if (framing->kind == HTTP_BODY_LENGTH) CHECK(data[0].count <= framing->length);
    for (int i = 0; i < 2; i++) {
        builder_fini(&data[i]);
        builder_fini(&trailer[i]);
    }
}

static void fuzz_h1_request_meaning(const struct h1_head *head, cy_bytes behind, size_t step)
{
    struct http_request request = {0};
    struct h1_request wishes;
    size_t space_bytes = h1_space_needed(head);
    uint8_t *space = mem_alloc(space_bytes);
    CHECK(space);
    for (uint32_t i = 0; i < head->field_count; i++) request.fields[i] = head->fields[i];
    if (h1_judge_request(head, space, &request, &wishes) == H1_FAULT_NONE) {
        CHECK(request.target.count > 0 && request.path.count > 0);
        CHECK(request.path.data[0] == '/' || cy_bytes_equal(request.path, CY_BYTES("*")));
        CHECK(request.body.kind != HTTP_BODY_UNTIL_CLOSE);
        if (wishes.wants_upgrade) CHECK(request.body.kind == HTTP_BODY_NONE && !wishes.expects_continue);
        fuzz_h1_body(&request.body, behind, step);
    }
    mem_free(space);
}

static void fuzz_h1_response_meaning(const struct h1_head *head, cy_bytes behind, size_t step, bool is_head)
{
    struct h1_response response;
    if (h1_judge_response(head, is_head, &response) != H1_FAULT_NONE) return;
    bool bodyless = is_head || head->status < 200 || head->status == 204 || head->status == 304;
    if (bodyless) CHECK(response.body.kind == HTTP_BODY_NONE);
    if (response.body.kind == HTTP_BODY_UNTIL_CLOSE) CHECK(!response.keep_alive);
    fuzz_h1_body(&response.body, behind, step);
}

static void fuzz_h1(cy_bytes input, bool is_response)
{
    if (input.count < 2) return;
    size_t step = (size_t)(input.data[0] & 0x7f) + 1;
    bool is_head = input.data[0] >> 7;
    cy_bytes message = cy_bytes_skip(input, 1), whole_last, last;
    struct http_field whole_fields[LIMIT_HTTP_FIELDS], fields[LIMIT_HTTP_FIELDS];
    struct h1_head whole, head;
    enum h1_parse_result result =
        fuzz_h1_parse(&whole, whole_fields, is_response, message, message.count, &whole_last);
    CHECK(fuzz_h1_parse(&head, fields, is_response, message, step, &last) == result);
    if (result == H1_PARSE_FAULT) CHECK(whole.fault != H1_FAULT_NONE && head.fault != H1_FAULT_NONE);
    if (result == H1_PARSE_DONE) {
        CHECK(whole.used_bytes == head.used_bytes && whole.field_count == head.field_count);
        fuzz_h1_check_head(&whole, whole_last);
        fuzz_h1_check_head(&head, last);
        cy_bytes behind = cy_bytes_skip(message, head.used_bytes);
        if (is_response)
            fuzz_h1_response_meaning(&head, behind, step, is_head);
        else
            fuzz_h1_request_meaning(&head, behind, step);
    }
    mem_free((void *)(uintptr_t)whole_last.data);
    mem_free((void *)(uintptr_t)last.data);
}

void fuzz_target_h1_request(cy_bytes input) { fuzz_h1(input, false); }
void fuzz_target_h1_response(cy_bytes input) { fuzz_h1(input, true); }
