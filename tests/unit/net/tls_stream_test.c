/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/tls_stream_test.c: proves that a TLS stream delivers every byte once and in order, however its
 * ciphertext is cut; that it ends cleanly only after close_notify; that long writes are few sends and short ones one;
 * that nothing stays behind; and that bytes of a stranger end in an error.
 */
#include "tests/unit/net/tls_rig.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/loop_internal.h"
#include "vm/net/tls_internal.h"

#include <openssl/ssl.h>

static uint8_t tls_test_byte(size_t index) { return (uint8_t)(index * 2654435761u >> 11); }

static uint8_t *tls_test_bytes(size_t count)
{
    uint8_t *bytes = mem_alloc(count);
    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < count; i++) bytes[i] = tls_test_byte(i);
    return bytes;
}

static void tls_test_must_equal(const struct builder *received, size_t count)
{
    ck_assert_uint_eq(received->count, count);
    bool equal = true;
    for (size_t i = 0; i < count; i++) equal &= received->data[i] == tls_test_byte(i);
    ck_assert(equal);
}

START_TEST(test_handshake_and_a_word_each_way)
{
    struct tls_rig rig = {0};
    enum tls_version version = _i ? TLS_VERSION_1_3 : TLS_VERSION_1_2;
    struct tls_client_options client = {.version_min = version, .version_max = version};
    tls_rig_init(&rig, NULL, &client, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    ck_assert_str_eq(cy_err_name(rig.a.ready_err), "NONE");
    ck_assert_str_eq(cy_err_name(rig.b.ready_err), "NONE");
    ck_assert_str_eq(tls_stream_version(rig.a.stream), _i ? "TLSv1.3" : "TLSv1.2");
    ck_assert(stream_info(rig.a.stream)->secure);
    ck_assert(cy_bytes_equal(stream_info(rig.b.stream)->sni, CY_BYTES("name.test")));
    ck_assert(cy_bytes_equal(stream_info(rig.a.stream)->peer_certificate, certificate_der(rig.certificate)));
    ck_assert_int_eq(stream_info(rig.b.stream)->descriptor, -1);
    tls_rig_read(&rig.b);
    tls_rig_read(&rig.a);
    tls_rig_write(&rig.a, CY_BYTES("ping"));
    tls_rig_turn_until_read(&rig, &rig.b);
    ck_assert(cy_bytes_equal(builder_view(&rig.b.received), CY_BYTES("ping")));
    ck_assert_uint_eq(rig.a.written_bytes, 4);
    tls_rig_write(&rig.b, CY_BYTES("pong"));
    tls_rig_turn_until_read(&rig, &rig.a);
    ck_assert(cy_bytes_equal(builder_view(&rig.a.received), CY_BYTES("pong")));
    ck_assert(stream_is_quiet(rig.a.stream));
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(rig.loop)), 0); /* an idle connection holds no buffer */
    tls_rig_fini(&rig);
}
END_TEST

/* Reads of 1, 2, 3 ... bytes of ciphertext: records end everywhere. */
START_TEST(test_every_cut_of_the_ciphertext)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    size_t count = 3000;
    uint8_t *bytes = tls_test_bytes(count);
    tls_rig_connect(&rig, (size_t)_i);
    tls_rig_handshake(&rig);
    ck_assert(!cy_failed(rig.a.ready_err) && !cy_failed(rig.b.ready_err));
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    tls_rig_write(&rig.b, cy_bytes_of(bytes, count));
    tls_rig_turn_until_received(&rig, &rig.a, count);
    tls_test_must_equal(&rig.a.received, count);
    tls_rig_fini(&rig);
    mem_free(bytes);
}
END_TEST

START_TEST(test_big_writes_are_few_sends)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    size_t count = 1 << 20;
    uint8_t *bytes = tls_test_bytes(count);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    uint64_t before = loopback_write_count(rig.b.below);
    tls_rig_write(&rig.b, cy_bytes_of(bytes, count));
    tls_rig_turn_until_written(&rig, &rig.b);
    tls_rig_turn_until_received(&rig, &rig.a, count);
    tls_test_must_equal(&rig.a.received, count);
    ck_assert_uint_eq(rig.b.written_bytes, count);
    ck_assert_uint_le(loopback_write_count(rig.b.below) - before, 8);
    tls_rig_fini(&rig);
    mem_free(bytes);
}
END_TEST

/* 64 KiB in flight at the loopback; the reader does not read: what we hold stays within the window. */
START_TEST(test_a_slow_reader_costs_a_window)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    size_t count = 4 << 20;
    uint8_t *bytes = tls_test_bytes(count);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_write(&rig.b, cy_bytes_of(bytes, count));
    tls_rig_turns(&rig, 200);
    ck_assert(rig.b.writing);
    size_t held = buffer_pool_lent(loop_buffers(rig.loop)) * LIMIT_BUFFER_BULK_BYTES;
    ck_assert_uint_le(held, LIMIT_TLS_WRITE_WINDOW_BYTES + LIMIT_BUFFER_BULK_BYTES);
    tls_rig_fini(&rig); /* ... and closing in the middle leaves nothing */
    ck_assert(cy_is(rig.b.write_err, CY_ERR_CANCELLED));
    mem_free(bytes);
}
END_TEST

START_TEST(test_head_and_short_body_are_one_record_and_one_send)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_write(&rig.b, CY_BYTES("the first write takes the session ticket along"));
    tls_rig_turn_until_written(&rig, &rig.b);
    tls_rig_read(&rig.a);
    tls_rig_turn_until_read(&rig, &rig.a);
    uint64_t writes = loopback_write_count(rig.b.below), sent = loopback_written_bytes(rig.b.below);
    struct loop_send *send = &rig.b.write.send;
    send->parts[0] = CY_BYTES("HTTP/1.1 200 OK\r\n\r\n");
    send->parts[1] = CY_BYTES_NONE;
    send->parts[2] = CY_BYTES("body");
    send->part_count = 3;
    rig.b.writing = true;
    stream_write_start(rig.b.stream, &rig.b.write);
    tls_rig_turn_until_written(&rig, &rig.b);
    ck_assert_uint_eq(loopback_write_count(rig.b.below) - writes, 1);
    ck_assert_uint_eq(loopback_written_bytes(rig.b.below) - sent, 19 + 4 + 22); /* one record of TLS 1.3 */
    ck_assert_uint_eq(rig.b.written_bytes, 23);
    tls_rig_fini(&rig);
}
END_TEST

/* A write without bytes completes too. */
START_TEST(test_an_empty_write_completes)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_write(&rig.b, CY_BYTES_NONE);
    tls_rig_turn_until_written(&rig, &rig.b);
    ck_assert(!cy_failed(rig.b.write_err));
    tls_rig_fini(&rig);
}
END_TEST

/* Several records in one receive are one read. */
START_TEST(test_records_are_read_ahead)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    for (int i = 0; i < 10; i++) {
        tls_rig_write(&rig.a, CY_BYTES("0123456789"));
        tls_rig_turn_until_written(&rig, &rig.a);
    }
    tls_rig_read(&rig.b);
    tls_rig_turn_until_read(&rig, &rig.b);
    ck_assert_uint_eq(rig.b.received.count, 100);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_close_notify_is_a_clean_end)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    tls_rig_write(&rig.b, CY_BYTES("last words"));
    tls_rig_turn_until_written(&rig, &rig.b);
    if (_i)
        stream_close(&rig.b.stream);
    else
        stream_shutdown_write(rig.b.stream);
    tls_rig_turn_until_read(&rig, &rig.a);
    ck_assert(cy_bytes_equal(builder_view(&rig.a.received), CY_BYTES("last words")));
    ck_assert(rig.a.ended);
    if (!_i) { /* half closed: the other direction goes on */
        tls_rig_read(&rig.b);
        tls_rig_write(&rig.a, CY_BYTES("heard"));
        tls_rig_turn_until_read(&rig, &rig.b);
        ck_assert(cy_bytes_equal(builder_view(&rig.b.received), CY_BYTES("heard")));
        tls_rig_write(&rig.b, CY_BYTES("no more"));
        tls_rig_turn_until_written(&rig, &rig.b);
        ck_assert(cy_is(rig.b.write_err, CY_ERR_CLOSED));
    }
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_an_end_without_close_notify_is_truncation)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_write(&rig.b, CY_BYTES("some of it"));
    tls_rig_turn_until_written(&rig, &rig.b);
    stream_shutdown_write(rig.b.below); /* behind TLS's back */
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    tls_rig_turn_until_read(&rig, &rig.a);
    ck_assert(cy_bytes_equal(builder_view(&rig.a.received), CY_BYTES("some of it")));
    ck_assert(!rig.a.ended);
    ck_assert_str_eq(cy_err_name(rig.a.read_err), "TLS_TRUNCATED");
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_abort_is_no_clean_end)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_read(&rig.a);
    stream_abort_on_close(rig.b.stream);
    stream_close(&rig.b.stream);
    tls_rig_turn_until_read(&rig, &rig.a);
    ck_assert(cy_is(rig.a.read_err, CY_ERR_RESET));
    ck_assert(!rig.a.ended);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_cancelled_read_loses_nothing)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    tls_rig_read(&rig.b);
    stream_read_cancel(rig.b.stream);
    tls_rig_turn_until_read(&rig, &rig.b);
    ck_assert(cy_is(rig.b.read_err, CY_ERR_CANCELLED));
    tls_rig_write(&rig.a, CY_BYTES("later"));
    tls_rig_turn_until_written(&rig, &rig.a);
    tls_rig_turns(&rig, 5);
    ck_assert(!stream_is_quiet(rig.b.stream));
    tls_rig_read(&rig.b);
    tls_rig_turn_until_read(&rig, &rig.b);
    ck_assert(cy_bytes_equal(builder_view(&rig.b.received), CY_BYTES("later")));
    tls_rig_fini(&rig);
}
END_TEST

/* Whatever a stranger sends, the handshake ends in an error; nothing hangs, nothing is lost. */
START_TEST(test_random_bytes_fail_the_handshake)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    struct stream *stranger, *below, *server;
    ck_assert(!cy_failed(loopback_pair(rig.loop, _i % 7 == 0 ? 5 : 0, &stranger, &below)));
    ck_assert(!cy_failed(tls_server_stream(rig.server, CY_BYTES_NONE, below, &server)));
    uint8_t bytes[600];
    uint32_t state = 12345u + (uint32_t)_i * 7919u;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
    if (_i % 3 == 0)
        memcpy(bytes, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11); /* a ClientHello begins so */
    if (_i % 3 == 1) memcpy(bytes, "GET / HTTP/1.1\r\n", 16);
    struct tls_rig_end *a = &rig.a, *b = &rig.b;
    tls_rig_connect(&rig, 0); /* sets the callbacks; these two are not used */
    stream_close(&a->stream);
    stream_close(&b->stream);
    tls_rig_turns(&rig, 5);
    a->stream = stranger;
    b->stream = server;
    b->is_ready = false;
    stream_ready_start(server, &b->ready);
    tls_rig_write(a, cy_bytes_of(bytes, sizeof bytes));
    tls_rig_turn_until_written(&rig, a);
    stream_shutdown_write(stranger);
    a->is_ready = true;
    tls_rig_handshake(&rig);
    ck_assert(cy_failed(b->ready_err));
    if (_i % 3 == 1) ck_assert_str_eq(cy_err_name(b->ready_err), "TLS_PROTOCOL");
    tls_rig_write(b, CY_BYTES("x"));
    tls_rig_read(b);
    tls_rig_turn_until_written(&rig, b);
    tls_rig_turn_until_read(&rig, b);
    ck_assert(cy_failed(b->write_err) && cy_failed(b->read_err));
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_a_changed_record_is_an_error)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    loopback_spoil(rig.b.below); /* the next byte that comes in is changed */
    tls_rig_write(&rig.a, CY_BYTES("trusted"));
    tls_rig_read(&rig.b);
    tls_rig_turn_until_read(&rig, &rig.b);
    ck_assert_uint_eq(rig.b.received.count, 0);
    ck_assert_str_eq(cy_err_name(rig.b.read_err), "TLS_RECORD");
    rig.a.keep_reading = true;
    tls_rig_read(&rig.a);
    tls_rig_turn_until_read(&rig, &rig.a);
    ck_assert_str_eq(cy_err_name(rig.a.read_err), "TLS_ALERT"); /* the peer is told */
    ck_assert_int_eq(rig.a.read_err.detail, SSL_AD_BAD_RECORD_MAC);
    tls_rig_fini(&rig);
}
END_TEST

START_TEST(test_closing_at_any_moment_leaves_nothing)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    uint8_t *bytes = tls_test_bytes(300000);
    for (int turns = 0; turns < 24; turns++) {
        tls_rig_connect(&rig, 100 + (size_t)turns * 50);
        rig.a.keep_reading = rig.b.keep_reading = true;
        tls_rig_read(&rig.a);
        tls_rig_read(&rig.b);
        tls_rig_write(&rig.a, cy_bytes_of(bytes, 300000));
        tls_rig_write(&rig.b, cy_bytes_of(bytes, 300000));
        tls_rig_turns(&rig, turns);
        tls_rig_close(&rig);
    }
    tls_rig_fini(&rig);
    mem_free(bytes);
}
END_TEST

/* TLS_WARM connections keep OpenSSL's buffers, the others give theirs back, and go on when they are needed again. */
START_TEST(test_only_the_last_at_work_keep_record_buffers)
{
    enum { COUNT = LIMIT_TLS_WARM + 3 };
    static struct tls_rig_end clients[COUNT], servers[COUNT];
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    for (int i = 0; i < COUNT; i++) {
        tls_rig_connect(&rig, 0);
        tls_rig_handshake(&rig);
        ck_assert(!cy_failed(rig.a.ready_err));
        ck_assert_uint_eq(tls_server_warm(rig.server)->count, i < LIMIT_TLS_WARM ? i + 1 : LIMIT_TLS_WARM);
        clients[i] = rig.a;
        servers[i] = rig.b;
        builder_init(&rig.a.received);
        builder_init(&rig.b.received);
    }
    ck_assert_uint_eq(tls_target_warm(rig.target)->count, LIMIT_TLS_WARM);
    for (int i = COUNT - 1; i >= 0; i--) { /* the cold ones last */
        tls_rig_read(&servers[i]);
        tls_rig_write(&clients[i], CY_BYTES("awake"));
        tls_rig_turn_until_read(&rig, &servers[i]);
        ck_assert(cy_bytes_equal(builder_view(&servers[i].received), CY_BYTES("awake")));
        ck_assert_uint_eq(tls_server_warm(rig.server)->count, LIMIT_TLS_WARM);
    }
    for (int i = 0; i < COUNT; i++) {
        stream_close(&clients[i].stream);
        stream_close(&servers[i].stream);
        builder_fini(&clients[i].received);
        builder_fini(&servers[i].received);
    }
    tls_rig_turns(&rig, 5);
    ck_assert_uint_eq(tls_server_warm(rig.server)->count, 0);
    rig.a.stream = rig.b.stream = NULL;
    tls_rig_fini(&rig);
}
END_TEST

/* One exchange after another: nothing of ours is allocated for it. */
START_TEST(test_steady_state_allocates_nothing)
{
    struct tls_rig rig = {0};
    tls_rig_init(&rig, NULL, NULL, NULL);
    tls_rig_connect(&rig, 0);
    tls_rig_handshake(&rig);
    uint64_t before = 0;
    for (int i = 0; i < 20; i++) {
        if (i == 5) before = mem_allocation_count();
        tls_rig_read(&rig.b);
        tls_rig_write(&rig.a, CY_BYTES("GET / HTTP/1.1\r\n\r\n"));
        tls_rig_turn_until_read(&rig, &rig.b);
        tls_rig_read(&rig.a);
        tls_rig_write(&rig.b, CY_BYTES("HTTP/1.1 200 OK\r\n\r\n"));
        tls_rig_turn_until_read(&rig, &rig.a);
        builder_clear(&rig.a.received);
        builder_clear(&rig.b.received);
    }
    ck_assert_uint_eq(mem_allocation_count() - before, 0);
    tls_rig_fini(&rig);
}
END_TEST

Suite *unit_suite_net_tls_stream(void);
Suite *unit_suite_net_tls_stream(void)
{
    Suite *suite = suite_create("net/tls_stream");
    TCase *tests = tcase_create("tls");
    tcase_add_loop_test(tests, test_handshake_and_a_word_each_way, 0, 2);
    tcase_add_loop_test(tests, test_every_cut_of_the_ciphertext, 1, 40);
    tcase_add_test(tests, test_big_writes_are_few_sends);
    tcase_add_test(tests, test_a_slow_reader_costs_a_window);
    tcase_add_test(tests, test_head_and_short_body_are_one_record_and_one_send);
    tcase_add_test(tests, test_an_empty_write_completes);
    tcase_add_test(tests, test_records_are_read_ahead);
    tcase_add_loop_test(tests, test_close_notify_is_a_clean_end, 0, 2);
    tcase_add_test(tests, test_an_end_without_close_notify_is_truncation);
    tcase_add_test(tests, test_abort_is_no_clean_end);
    tcase_add_test(tests, test_cancelled_read_loses_nothing);
    tcase_add_loop_test(tests, test_random_bytes_fail_the_handshake, 0, 60);
    tcase_add_test(tests, test_a_changed_record_is_an_error);
    tcase_add_test(tests, test_closing_at_any_moment_leaves_nothing);
    tcase_add_test(tests, test_only_the_last_at_work_keep_record_buffers);
    tcase_add_test(tests, test_steady_state_allocates_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
