/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/carrier_test.c: proves that an exchange needs no more of its client's side than carrier.h says: on
 * a carrier that is no HTTP/1 connection (heads in another form, bodies without framing of their own, their end told
 * apart, as HTTP/2 streams have it) requests are answered and proxied by the same code.
 *
 *   the test's carrier ── exchange ── proxy ── HTTP/1 ── a server of raw bytes
 */
#include "vm/base/builder.h"
#include "vm/base/mem.h"
#include "vm/http/server_internal.h"

#include <check.h>
#include <stdio.h>

struct carrier_test {
    struct exchange_carrier carrier; /* first */
    struct loop_send send;
    struct loop_op written;
    struct loop *loop;
    struct log log;
    struct http_client *client;
    struct http_server *server;
    struct upstream *upstream;
    struct http_verdict *verdict; /* what the handler answers; NULL: it thinks on */
    struct builder head, body;    /* what was written, parted where the carrier was told */
    bool was_last;
    unsigned write_count, want_count, gone_count;
    bool ended;
    enum carrier_end end;
    /* the upstream */
    struct loop_accept accept;
    struct loop_socket *listener;
    struct stream *stream;
    struct stream_read read;
    struct stream_write write;
    struct builder received;
    const char *reply_when; /* the reply goes out when the request ends with this */
    cy_bytes reply;
    bool replied, close_behind, reading;
};

/* -- the carrier ----------------------------------------------------------------------------------------- */

static void carrier_test_want_input(struct exchange_carrier *carrier)
{
    ((struct carrier_test *)carrier)->want_count++;
}
static void carrier_test_write(struct exchange_carrier *carrier, size_t head_bytes, bool last)
{
    struct carrier_test *test = (struct carrier_test *)carrier;
    ck_assert(!test->was_last);
    for (uint32_t i = 0; i < test->send.part_count; i++) {
        cy_bytes part = test->send.parts[i];
        size_t head_part = cy_min_size(head_bytes, part.count);
        builder_bytes(&test->head, cy_bytes_slice(part, 0, head_part));
        builder_bytes(&test->body, cy_bytes_skip(part, head_part));
        head_bytes -= head_part;
    }
    ck_assert_uint_eq(head_bytes, 0);
    test->was_last = last;
    test->write_count++;
    loop_post(test->loop, &test->written);
}
static void carrier_test_on_written(struct loop_op *op)
{
    struct carrier_test *test = CY_CONTAINER_OF(op, struct carrier_test, written);
    test->carrier.writing = false;
    relay_hold_release(&test->carrier.hold);
    exchange_on_written(test->carrier.exchange);
}
static bool carrier_test_may_keep(const struct exchange_carrier *carrier, bool length_known)
{
    (void)carrier;
    (void)length_known;
    return true;
}
static void carrier_test_end(struct exchange_carrier *carrier, enum carrier_end end)
{
    struct carrier_test *test = (struct carrier_test *)carrier;
    ck_assert(!test->ended && !carrier->writing);
    test->ended = true;
    test->end = end;
    loop_timer_clear(test->loop, &carrier->timer);
    buffer_unref(&carrier->input);
    exchange_free(carrier->exchange);
    carrier->exchange = NULL;
}
static cy_bytes carrier_test_peer_text(struct exchange_carrier *carrier)
{
    (void)carrier;
    return CY_BYTES("192.0.2.1");
}
static void carrier_test_put_status(struct exchange_carrier *carrier, struct head_writer *writer,
                                    uint16_t status, cy_bytes reason)
{
    (void)carrier;
    (void)reason;
    head_put(writer, CY_BYTES("<"));
    head_put_u64(writer, status);
}
static void carrier_test_put_field(struct exchange_carrier *carrier, struct head_writer *writer,
                                   cy_bytes name, cy_bytes value)
{
    (void)carrier;
    head_put(writer, CY_BYTES("|"));
    head_put(writer, name);
    head_put(writer, CY_BYTES("="));
    head_put(writer, value);
}
static void carrier_test_put_end(struct exchange_carrier *carrier, struct head_writer *writer, bool interim)
{
    (void)carrier;
    head_put(writer, interim ? CY_BYTES(" interim>") : CY_BYTES(">"));
}
static void carrier_test_on_timer(struct timer *timer)
{
    struct exchange_carrier *carrier = CY_CONTAINER_OF(timer, struct exchange_carrier, timer);
    if (carrier->timer_kind != CARRIER_TIMER_NONE)
        exchange_on_timeout(carrier->exchange, carrier->timer_kind);
}
static const struct exchange_carrier_type carrier_test_type = {
    .name = "test",
    .want_input = carrier_test_want_input,
    .write = carrier_test_write,
    .may_keep = carrier_test_may_keep,
    .end = carrier_test_end,
    .peer_text = carrier_test_peer_text,
    .put_status = carrier_test_put_status,
    .put_field = carrier_test_put_field,
    .put_end = carrier_test_put_end,
};

/* -- the upstream, of raw bytes -------------------------------------------------------------------------- */

static void carrier_test_on_replied(struct stream_write *write)
{
    struct carrier_test *test = CY_CONTAINER_OF(write, struct carrier_test, write);
    if (test->close_behind && test->stream) stream_close(&test->stream);
}
static void carrier_test_on_read(struct stream_read *read)
{
    struct carrier_test *test = CY_CONTAINER_OF(read, struct carrier_test, read);
    test->reading = false;
    if (!read->buffer) return;
    builder_bytes(&test->received, buffer_view(read->buffer));
    buffer_unref(&read->buffer);
    if (!test->stream) return;
    test->reading = true;
    stream_read_start(test->stream, &test->read);
    cy_bytes all = builder_view(&test->received), when = cy_bytes_from_text(test->reply_when);
    if (test->replied || all.count < when.count ||
        !cy_bytes_equal(cy_bytes_skip(all, all.count - when.count), when))
        return;
    test->replied = true;
    test->write.send.parts[0] = test->reply;
    test->write.send.part_count = 1;
    stream_write_start(test->stream, &test->write);
}
static void carrier_test_on_accept(struct loop_op *op)
{
    struct loop_accept *accept = CY_CONTAINER_OF(op, struct loop_accept, op);
    struct carrier_test *test = CY_CONTAINER_OF(accept, struct carrier_test, accept);
    struct loop_socket *socket;
    if (cy_failed(op->err)) return;
    ck_assert(!cy_failed(loop_socket_open(test->loop, accept->descriptor, &socket)));
    ck_assert(!cy_failed(stream_tcp_new(test->loop, socket, &test->stream)));
    test->reading = true;
    stream_read_start(test->stream, &test->read);
}

/* -- the world ------------------------------------------------------------------------------------------- */

static void carrier_test_on_request(void *context, struct http_exchange *exchange)
{
    struct carrier_test *test = context;
    if (test->verdict) http_exchange_answer(exchange, test->verdict);
}
static void carrier_test_on_gone(void *context, struct http_exchange *exchange)
{
    (void)exchange;
    ((struct carrier_test *)context)->gone_count++;
}

static void carrier_test_open(struct carrier_test *test)
{
    struct address address;
    char url[64];
    int descriptor;
    memset(test, 0, sizeof *test);
    ck_assert(!cy_failed(loop_new("poll", &test->loop)));
    log_init(&test->log);
    test->log.level_min = LOG_ERROR + 1;
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("127.0.0.1"), 0, &address)));
    ck_assert(!cy_failed(listen_open(&address, false, 4, &descriptor)));
    ck_assert(!cy_failed(socket_local_address(descriptor, &address)));
    ck_assert(!cy_failed(loop_socket_open(test->loop, descriptor, &test->listener)));
    test->accept.op.done = carrier_test_on_accept;
    test->read.done = carrier_test_on_read;
    test->write.done = carrier_test_on_replied;
    loop_accept(test->listener, &test->accept);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", address_port(&address));
    const struct http_client_options client = {.loop = test->loop, .log = &test->log};
    ck_assert(!cy_failed(http_client_new(&client, &test->client)));
    ck_assert(!cy_failed(upstream_open(test->client, cy_bytes_from_text(url), &test->upstream, NULL)));
    const struct http_server_options server = {.loop = test->loop,
                                               .log = &test->log,
                                               .client = test->client,
                                               .context = test,
                                               .on_request = carrier_test_on_request,
                                               .on_gone = carrier_test_on_gone};
    ck_assert(!cy_failed(http_server_new(&server, &test->server)));
    test->carrier.type = &carrier_test_type;
    test->carrier.server = test->server;
    test->carrier.send = &test->send;
    test->carrier.timer.fire = carrier_test_on_timer;
    test->written.done = carrier_test_on_written;
    builder_init(&test->head);
    builder_init(&test->body);
    builder_init(&test->received);
}

static void carrier_test_close(struct carrier_test *test)
{
    if (test->stream) stream_close(&test->stream);
    loop_socket_close(&test->listener);
    http_server_free(&test->server);
    http_verdict_unref(&test->verdict);
    upstream_unref(&test->upstream);
    http_client_free(&test->client);
    ck_assert(!cy_failed(loop_flush(test->loop)));
    ck_assert(!test->reading);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(test->loop)), 0);
    loop_free(&test->loop);
    builder_fini(&test->head);
    builder_fini(&test->body);
    builder_fini(&test->received);
}

static void carrier_test_begin(struct carrier_test *test, const char *method, enum http_body_kind body_kind)
{
    struct http_exchange *exchange = exchange_new(&test->carrier);
    ck_assert_ptr_nonnull(exchange);
    test->carrier.exchange = exchange;
    struct http_request *request = &exchange->request;
    request->method = cy_bytes_from_text(method);
    request->target = request->path = CY_BYTES("/x");
    request->query = CY_BYTES_NONE;
    request->authority = request->host = CY_BYTES("a.example");
    request->port = 0;
    request->protocol = HTTP_2;
    request->secure = true;
    request->body = (struct http_framing){(uint8_t)body_kind, 0};
    request->client.bytes = 0;
    request->fields[0] = (struct http_field){CY_BYTES("x-a"), CY_BYTES("1"), 0, false};
    request->field_count = 1;
    exchange->head_bytes = 200;
    exchange->client_keeps = true;
    exchange_begin(exchange);
}
static void carrier_test_give(struct carrier_test *test, cy_bytes bytes, bool ended)
{
    if (bytes.count) {
        struct buffer *buffer = buffer_take(loop_buffers(test->loop));
        memcpy(buffer->data, bytes.data, bytes.count);
        buffer->end = (uint32_t)bytes.count;
        ck_assert(!cy_failed(input_append(&test->carrier.input, buffer, loop_buffers(test->loop))));
    }
    test->carrier.input_ended = ended;
    exchange_on_input(test->carrier.exchange);
}
static void carrier_test_run(struct carrier_test *test)
{
    for (int i = 0; !test->ended; i++) {
        ck_assert_int_lt(i, 10000);
        ck_assert(!cy_failed(loop_turn(test->loop)));
    }
}
static bool carrier_test_has(const struct builder *where, const char *text)
{
    return where->count && memmem(where->data, where->count, text, strlen(text)) != NULL;
}
static void carrier_test_proxy(struct carrier_test *test, const char *reply_when, const char *reply)
{
    ck_assert(!cy_failed(
        http_verdict_proxy(test->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &test->verdict, NULL)));
    test->reply_when = reply_when;
    test->reply = cy_bytes_from_text(reply);
}

/* -- the tests ------------------------------------------------------------------------------------------- */

START_TEST(test_a_verdict_is_answered_in_the_carriers_form)
{
    struct carrier_test test;
    carrier_test_open(&test);
    size_t count = 3 * LIMIT_HTTP_WRITE_SLICE_BYTES + 5;
    uint8_t *bytes = mem_alloc(count);
    for (size_t i = 0; i < count; i++) bytes[i] = (uint8_t)(i * 7 >> 3);
    const struct http_verdict_field field = {CY_BYTES("X-B"), CY_BYTES("2")};
    ck_assert(
        !cy_failed(http_verdict_respond(200, cy_bytes_of(bytes, count), &field, 1, &test.verdict, NULL)));
    carrier_test_begin(&test, "GET", HTTP_BODY_NONE);
    carrier_test_run(&test);
    ck_assert(cy_bytes_start_with(builder_view(&test.head), CY_BYTES("<200|Date=")));
    ck_assert(carrier_test_has(&test.head, "|X-B=2|Content-Length="));
    ck_assert_int_eq(test.head.data[test.head.count - 1], '>');
    ck_assert(!carrier_test_has(&test.head, "HTTP/1") && !carrier_test_has(&test.head, "Connection"));
    ck_assert(cy_bytes_equal(builder_view(&test.body), cy_bytes_of(bytes, count)));
    ck_assert_uint_ge(test.write_count, 4);
    ck_assert(test.was_last);
    ck_assert_int_eq(test.end, CARRIER_END_KEPT);
    mem_free(bytes);
    carrier_test_close(&test);
}
END_TEST

START_TEST(test_a_refusal_parts_head_and_text)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_begin(&test, "GET", HTTP_BODY_NONE);
    http_exchange_fail(test.carrier.exchange, CY_BYTES("why"));
    carrier_test_run(&test);
    ck_assert(cy_bytes_start_with(builder_view(&test.head), CY_BYTES("<500|")));
    ck_assert(cy_bytes_equal(builder_view(&test.body), CY_BYTES("500 Internal Server Error\n")));
    ck_assert(test.was_last);
    carrier_test_close(&test);
}
END_TEST

/* No length is known on either side: chunks exist between us and the server only. */
START_TEST(test_unframed_bodies_pass_both_ways)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_proxy(
        &test, "\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </s>\r\nX-H: 1\r\nConnection: x-h\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-C: 3\r\nX-D: 4\r\nConnection: X-D\r\n\r\n"
        "4\r\nfour\r\n5\r\n five\r\n0\r\n\r\n");
    carrier_test_begin(&test, "POST", HTTP_BODY_UNTIL_CLOSE);
    carrier_test_give(&test, CY_BYTES("one "), false);
    while (!carrier_test_has(&test.received, "one ")) ck_assert(!cy_failed(loop_turn(test.loop)));
    carrier_test_give(&test, CY_BYTES("two"), false);
    while (!carrier_test_has(&test.received, "two")) ck_assert(!cy_failed(loop_turn(test.loop)));
    carrier_test_give(&test, CY_BYTES_NONE, true); /* the end comes by itself */
    carrier_test_run(&test);
    ck_assert(cy_bytes_start_with(builder_view(&test.received),
                                  CY_BYTES("POST /x HTTP/1.1\r\nHost: a.example\r\nx-a: 1\r\n")));
    ck_assert(carrier_test_has(&test.received, "Transfer-Encoding: chunked\r\n"));
    ck_assert(carrier_test_has(&test.received, "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"));
    ck_assert(carrier_test_has(&test.received, "\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n"));
    ck_assert(cy_bytes_start_with(builder_view(&test.head), CY_BYTES("<103|Link=</s> interim><200|Date=")));
    ck_assert(carrier_test_has(&test.head, "|X-C=3>"));
    ck_assert(!carrier_test_has(&test.head, "X-H") && !carrier_test_has(&test.head, "X-D"));
    ck_assert(!carrier_test_has(&test.head, "Transfer-Encoding") &&
              !carrier_test_has(&test.head, "Content-Length"));
    ck_assert(cy_bytes_equal(builder_view(&test.body), CY_BYTES("four five")));
    ck_assert(test.was_last);
    ck_assert_int_eq(test.end, CARRIER_END_KEPT);
    carrier_test_close(&test);
}
END_TEST

/* All of the body and its end are there before the handler has answered. */
START_TEST(test_a_body_that_ended_early_is_passed_on_whole)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_begin(&test, "PUT", HTTP_BODY_UNTIL_CLOSE);
    carrier_test_give(&test, CY_BYTES("all of it"), true);
    carrier_test_proxy(&test, "\r\n0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n");
    http_exchange_answer(test.carrier.exchange, test.verdict);
    carrier_test_run(&test);
    ck_assert(carrier_test_has(&test.received, "\r\n\r\n9\r\nall of it\r\n0\r\n\r\n"));
    ck_assert(cy_bytes_start_with(builder_view(&test.head), CY_BYTES("<204|")));
    ck_assert(test.was_last);
    ck_assert_int_eq(test.end, CARRIER_END_KEPT);
    carrier_test_close(&test);
}
END_TEST

/* Without a length or chunks towards the client only the carrier can say that something is missing. */
START_TEST(test_an_answer_cut_off_aborts)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_proxy(&test, "\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf");
    test.close_behind = true;
    carrier_test_begin(&test, "GET", HTTP_BODY_NONE);
    carrier_test_run(&test);
    ck_assert(cy_bytes_equal(builder_view(&test.body), CY_BYTES("half")));
    ck_assert(!test.was_last);
    ck_assert_int_eq(test.end, CARRIER_END_ABORT);
    carrier_test_close(&test);
}
END_TEST

START_TEST(test_a_client_that_goes_away_is_told_and_aborted)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_begin(&test, "GET", HTTP_BODY_NONE);
    exchange_client_gone(test.carrier.exchange, CY_ERR(RESET));
    ck_assert_uint_eq(test.gone_count, 1);
    ck_assert(test.ended);
    ck_assert_int_eq(test.end, CARRIER_END_ABORT);
    carrier_test_close(&test);
}
END_TEST

/* A promised length that the client does not keep ends the request, whoever carries it. */
START_TEST(test_a_body_short_of_its_length_is_the_client_gone)
{
    struct carrier_test test;
    carrier_test_open(&test);
    carrier_test_begin(&test, "PUT", HTTP_BODY_NONE);
    h1_body_begin(&test.carrier.exchange->request_body.body, &(struct http_framing){HTTP_BODY_LENGTH, 5});
    carrier_test_give(&test, CY_BYTES_NONE, true);
    ck_assert_uint_eq(test.gone_count, 1);
    ck_assert_int_eq(test.end, CARRIER_END_ABORT);
    carrier_test_close(&test);
}
END_TEST

Suite *unit_suite_http_carrier(void);
Suite *unit_suite_http_carrier(void)
{
    Suite *suite = suite_create("http_carrier");
    TCase *cases = tcase_create("carrier");
    tcase_add_test(cases, test_a_verdict_is_answered_in_the_carriers_form);
    tcase_add_test(cases, test_a_refusal_parts_head_and_text);
    tcase_add_test(cases, test_unframed_bodies_pass_both_ways);
    tcase_add_test(cases, test_a_body_that_ended_early_is_passed_on_whole);
    tcase_add_test(cases, test_an_answer_cut_off_aborts);
    tcase_add_test(cases, test_a_client_that_goes_away_is_told_and_aborted);
    tcase_add_test(cases, test_a_body_short_of_its_length_is_the_client_gone);
    suite_add_tcase(suite, cases);
    return suite;
}
