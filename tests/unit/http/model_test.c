/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/model_test.c: proves tests/support/http_model on messages worked out by hand from RFC 9112, in one
 * piece and byte by byte: the simulated schedules are worth what their reader is worth.
 */
#include "tests/support/http_model.h"

#include <check.h>
#include <stdio.h>

struct model_vector {
    const char *text;
    bool is_response, answers_head;
    /* "H N BODY\n" for each message: status or method, how the body ends, its bytes; "fault: WORDS"; what may come
     * behind is said by "| ends" (the stream may end here) or "| open". */
    const char *result;
};

static const struct model_vector model_vectors[] = {
    /* section 3: start lines */
    {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, false, "GET / none []\n| ends"},
    {"GET / HTTP/1.1\r\n\r\n", false, false, "fault: Host"},
    {"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", false, false, "fault: Host"},
    {"GET / HTTP/1.0\r\n\r\n", false, false, "GET / none [] closes\n| ends"},
    {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", false, false, "fault: target"},
    {"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", false, false, "fault: method"},
    {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", false, false, "fault: version"},
    {"HTTP/1.1 200\r\n\r\n", true, false, "fault: status line without the space behind the code"},
    {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", true, false, "200 none []\n| ends"},
    {"HTTP/1.1 20 OK\r\n\r\n", true, false, "fault: status code"},
    /* section 5: fields */
    {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", false, false, "fault: field name"},
    {"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", false, false, "fault: field name"},
    {"GET / HTTP/1.1\nHost: a\r\n\r\n", false, false, "fault: start line's end"},
    {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", false, false, "fault: line's end"},
    /* section 6.3: length of the body */
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcPUT /b HTTP/1.1\r\nHost: a\r\n\r\n", false,
     false, "POST / length [abc]\nPUT /b none []\n| ends"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab", false, false, "POST / length [ab] | open"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", false, false,
     "fault: framing twice"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", false, false, "fault: Content-Length"},
    {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", false, false,
     "fault: Content-Length and Transfer-Encoding"},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", false, false,
     "fault: Transfer-Encoding in HTTP/1.0"},
    {"HTTP/1.1 200 OK\r\n\r\nabc", true, false, "200 close [abc] closes | ends"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd", true, false, "200 length [abc]\n| open"},
    {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", true, true,
     "200 none []\n200 none []\n| ends"},
    {"HTTP/1.1 304 No\r\nContent-Length: 3\r\n\r\n", true, false, "304 none []\n| ends"},
    {"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 103 Soon\r\n\r\n", true, false, "204 none []\n103 none []\n| ends"},
    {"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n", true, false, "fault: framing in 1xx or 204"},
    {"HTTP/1.1 100 C\r\nTransfer-Encoding: chunked\r\n\r\n", true, false, "fault: framing in 1xx or 204"},
    {"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n", true, false,
     "200 none [] closes\n| ends"},
    {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", true, false,
     "200 none []\n| ends"},
    /* section 7.1: chunks */
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
     true, false, "200 chunked [abc0123456789]\n| ends"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n", true, false,
     "200 chunked [abc] trailer T: 1\r\n\n| ends"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", true, false,
     "200 chunked [abc] | open"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n", true, false, "fault: chunk's end"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", true, false, "fault: chunk size"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", true, false, "fault: chunk size"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n", true, false,
     "fault: end of the chunk size's line"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 3\r\n\r\n", true, false,
     "fault: framing or routing in a trailer"},
    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", true, false, "fault: Transfer-Encoding"},
};

static void model_note_head(struct builder *out, const struct http_model *model)
{
    static const char *const bodies[] = {"none", "length", "chunked", "close"};
    if (model->is_response)
        builder_printf(out, "%u %s [", model->status, bodies[model->body]);
    else
        builder_printf(out, "%.*s %.*s %s [", CY_BYTES_ARG(model->method), CY_BYTES_ARG(model->target),
                       bodies[model->body]);
}

static void model_note_end(struct builder *out, const struct http_model *model)
{
    builder_printf(out, "]%s", model->closes ? " closes" : "");
    if (model->trailer.count)
        builder_printf(out, " trailer %.*s", CY_BYTES_ARG(builder_view(&model->trailer)));
}

/* Everything that the reader makes of a text, given in pieces of so many bytes. */
static void model_read(struct builder *out, const struct model_vector *vector, size_t piece_bytes)
{
    struct http_model model;
    cy_bytes text = cy_bytes_from_text(vector->text), piece;
    bool inside = false;
    http_model_init(&model, vector->is_response);
    model.answers_head = vector->answers_head;
    while (text.count) {
        cy_bytes rest = cy_bytes_slice(text, 0, piece_bytes);
        text = cy_bytes_skip(text, rest.count);
        for (enum http_model_step step; (step = http_model_step(&model, &rest, &piece)) != HTTP_MODEL_MORE;) {
            if (step == HTTP_MODEL_FAULT) {
                builder_clear(out);
                builder_printf(out, "fault: %s", model.fault);
                http_model_fini(&model);
                return;
            }
            if (step == HTTP_MODEL_HEAD) model_note_head(out, &model);
            if (step == HTTP_MODEL_DATA) builder_bytes(out, piece);
            inside = step != HTTP_MODEL_END;
            if (inside) continue;
            model_note_end(out, &model);
            builder_text(out, "\n");
            http_model_begin(&model);
        }
    }
    if (inside) model_note_end(out, &model);
    builder_printf(out, "%s| %s", inside ? " " : "", http_model_may_end(&model) ? "ends" : "open");
    http_model_fini(&model);
}

START_TEST(test_vectors)
{
    const struct model_vector *vector = &model_vectors[_i];
    struct builder out;
    builder_init(&out);
    for (size_t piece_bytes = 1; piece_bytes < 8192; piece_bytes *= 3) {
        builder_clear(&out);
        model_read(&out, vector, piece_bytes);
        ck_assert_str_eq(builder_text_view(&out), vector->result);
    }
    builder_fini(&out);
}
END_TEST

START_TEST(test_chunks_are_written_as_they_are_read)
{
    struct builder out;
    builder_init(&out);
    http_model_put_chunk(&out, CY_BYTES("0123456789abcdefg"));
    http_model_put_chunk(&out, CY_BYTES_NONE);
    http_model_put_last_chunk(&out, CY_BYTES("T: 1\r\n"));
    ck_assert_str_eq(builder_text_view(&out), "11\r\n0123456789abcdefg\r\n0\r\nT: 1\r\n\r\n");
    builder_fini(&out);
}
END_TEST

Suite *unit_suite_http_model(void);
Suite *unit_suite_http_model(void)
{
    Suite *suite = suite_create("http_model");
    TCase *tests = tcase_create("model");
    tcase_add_loop_test(tests, test_vectors, 0, (int)CY_COUNT_OF(model_vectors));
    tcase_add_test(tests, test_chunks_are_written_as_they_are_read);
    suite_add_tcase(suite, tests);
    return suite;
}
