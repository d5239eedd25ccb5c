/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/dns_test.c: proves, against a name server of its own on loopback, that answers come later and
 * once, that they are remembered and asked for only once, that a failing server leaves the last good answer, and
 * that cancelling and closing at any moment leave nothing behind.
 */
#include "vm/base/limits.h"
#include "vm/net/dns.h"
#include "vm/net/loop_internal.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

enum { DNS_TEST_TURNS_MAX = 3000 };

/* A name server in the same loop. Answers A questions with `ttl_seconds`, everything else with "no such data". */
struct dns_test_server {
    struct loop *loop;
    struct loop_socket *socket;
    struct loop_ready ready;
    int descriptor;
    char address[32];
    int question_count; /* A questions seen */
    uint8_t rcode;
    bool silent;
    uint32_t ttl_seconds;
    bool closed;
};

static size_t dns_test_answer(struct dns_test_server *server, uint8_t *packet, size_t count, size_t room)
{
    size_t end = 12;
    while (end < count && packet[end]) end += packet[end] + 1u;
    end += 5; /* the root label, type, class */
    if (end > count || end + 16 > room) return 0;
    bool is_a = packet[end - 4] == 0 && packet[end - 3] == 1;
    if (is_a) server->question_count++;
    packet[2] |= 0x80; /* an answer */
    packet[3] = 0x80 | server->rcode;
    memset(packet + 6, 0, 6);
    if (!is_a || server->rcode) return end;
    packet[7] = 1;
    uint8_t record[16] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 55};
    uint32_t ttl = htonl(server->ttl_seconds);
    memcpy(record + 6, &ttl, 4);
    memcpy(packet + end, record, sizeof record);
    return end + sizeof record;
}
static void dns_test_on_question(struct loop_op *op)
{
    struct dns_test_server *server =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct dns_test_server, ready);
    if (cy_failed(op->err)) {
        server->closed = true;
        return;
    }
    uint8_t packet[1024];
    struct sockaddr_in from;
    socklen_t bytes = sizeof from;
    ssize_t count = recvfrom(server->descriptor, packet, 512, MSG_DONTWAIT, (struct sockaddr *)&from, &bytes);
    size_t answer_bytes = count > 12 ? dns_test_answer(server, packet, (size_t)count, sizeof packet) : 0;
    if (answer_bytes && !server->silent)
        sendto(server->descriptor, packet, answer_bytes, MSG_DONTWAIT, (struct sockaddr *)&from, bytes);
    loop_ready(server->socket, &server->ready);
}
static void dns_test_serve(struct loop *loop, struct dns_test_server *server)
{
    *server = (struct dns_test_server){.loop = loop, .ttl_seconds = 60};
    server->descriptor = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(bind(server->descriptor, (struct sockaddr *)&any, sizeof any), 0);
    struct address local;
    ck_assert(!cy_failed(socket_local_address(server->descriptor, &local)));
    snprintf(server->address, sizeof server->address, "127.0.0.1:%u", address_port(&local));
    ck_assert(!cy_failed(loop_socket_watch(loop, server->descriptor, &server->socket)));
    server->ready.op.done = dns_test_on_question;
    server->ready.want_read = true;
    loop_ready(server->socket, &server->ready);
}

struct dns_test_query {
    struct dns_query query;
    int done_count;
    bool submitting;
};
static void dns_test_done(struct dns_query *query)
{
    struct dns_test_query *test = CY_CONTAINER_OF(query, struct dns_test_query, query);
    ck_assert(!test->submitting);
    test->done_count++;
}
static void dns_test_ask(struct dns *dns, const char *name, struct dns_test_query *test)
{
    *test = (struct dns_test_query){.query.done = dns_test_done, .submitting = true};
    dns_resolve(dns, cy_bytes_from_text(name), &test->query);
    test->submitting = false;
}
static void dns_test_await(struct loop *loop, const struct dns_test_query *test)
{
    for (int i = 0; test->done_count == 0; i++) {
        ck_assert_int_lt(i, DNS_TEST_TURNS_MAX);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
}
static void dns_test_end(struct loop *loop, struct dns *dns, struct dns_test_server *server)
{
    dns_free(&dns);
    if (server) loop_socket_close(&server->socket);
    for (int i = 0; i < 3; i++) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    if (server) close(server->descriptor);
    loop_free(&loop);
}
static void dns_test_begin(struct loop **loop, struct dns **dns, struct dns_test_server *server)
{
    ck_assert(!cy_failed(loop_new(NULL, loop)));
    ck_assert(!cy_failed(dns_new(*loop, dns)));
    if (!server) return;
    dns_test_serve(*loop, server);
    ck_assert(!cy_failed(dns_set_servers(*dns, server->address)));
}

START_TEST(test_numeric_and_local_names)
{
    struct loop *loop;
    struct dns *dns;
    dns_test_begin(&loop, &dns, NULL);
    struct dns_test_query v4, v6, local, bad;
    dns_test_ask(dns, "10.1.2.3", &v4);
    dns_test_ask(dns, "2001:db8::9", &v6);
    dns_test_ask(dns, "LOCALHOST", &local);
    dns_test_ask(dns, "no spaces", &bad);
    dns_test_await(loop, &v4);
    dns_test_await(loop, &v6);
    dns_test_await(loop, &local);
    dns_test_await(loop, &bad);
    ck_assert_uint_eq(v4.query.address_count, 1);
    struct address expected;
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("2001:db8::9"), 0, &expected)));
    ck_assert(address_equal(&v6.query.addresses[0], &expected));
    ck_assert(!cy_failed(local.query.err));
    ck_assert_uint_ge(local.query.address_count, 1);
    ck_assert(cy_is(bad.query.err, CY_ERR_BAD_ADDRESS));
    dns_test_end(loop, dns, NULL);
}
END_TEST

START_TEST(test_one_look_up_serves_all_and_is_remembered)
{
    struct loop *loop;
    struct dns *dns;
    struct dns_test_server server;
    dns_test_begin(&loop, &dns, &server);
    struct dns_test_query queries[5];
    for (int i = 0; i < 4; i++) dns_test_ask(dns, i % 2 ? "Up.example.TEST" : "up.example.test", &queries[i]);
    for (int i = 0; i < 4; i++) {
        dns_test_await(loop, &queries[i]);
        ck_assert(!cy_failed(queries[i].query.err));
        ck_assert_uint_eq(queries[i].query.address_count, 1);
    }
    dns_test_ask(dns, "up.example.test", &queries[4]);
    dns_test_await(loop, &queries[4]);
    ck_assert_int_eq(server.question_count, 1);
    struct address expected;
    ck_assert(!cy_failed(address_from_ip(CY_BYTES("192.0.2.55"), 0, &expected)));
    ck_assert(address_equal(&queries[4].query.addresses[0], &expected));
    for (int i = 0; i < 5; i++) ck_assert_int_eq(queries[i].done_count, 1);
    dns_test_end(loop, dns, &server);
}
END_TEST

START_TEST(test_failing_server_leaves_the_last_good_answer)
{
    struct loop *loop;
    struct dns *dns;
    struct dns_test_server server;
    dns_test_begin(&loop, &dns, &server);
    server.ttl_seconds = 0; /* the floor applies */
    struct dns_test_query first, unknown, again;
    dns_test_ask(dns, "a.example.test", &first);
    dns_test_await(loop, &first);
    server.rcode = 3; /* NXDOMAIN */
    dns_test_ask(dns, "b.example.test", &unknown);
    dns_test_await(loop, &unknown);
    ck_assert(cy_is(unknown.query.err, CY_ERR_NAME_UNKNOWN));
    ck_assert_uint_eq(unknown.query.address_count, 0);
    int questions_before = server.question_count;
    loop_skip_ms(loop, LIMIT_DNS_TTL_FLOOR_MS);
    dns_test_ask(dns, "a.example.test", &again);
    dns_test_await(loop, &again);
    ck_assert_int_gt(server.question_count, questions_before); /* it was asked again */
    ck_assert(!cy_failed(again.query.err));
    ck_assert_uint_eq(again.query.address_count, 1);
    dns_test_end(loop, dns, &server);
}
END_TEST

/* A list that c-ares cannot read is refused for each name, not only for the first: the system's servers are not asked
 * in its place. A good one mends it. */
START_TEST(test_a_bad_server_list_is_never_ignored)
{
    struct loop *loop;
    struct dns *dns;
    struct dns_test_server server;
    struct dns_test_query bad[3], good;
    dns_test_begin(&loop, &dns, NULL);
    dns_test_serve(loop, &server);
    /* Nothing has been looked up: it is kept. */
    ck_assert(!cy_failed(dns_set_servers(dns, "no address:port:")));
    for (int i = 0; i < 3; i++) {
        dns_test_ask(dns, "a.example.test", &bad[i]);
        dns_test_await(loop, &bad[i]);
        ck_assert_msg(cy_is(bad[i].query.err, CY_ERR_BAD_ADDRESS), "name %d", i);
    }
    ck_assert(!cy_failed(dns_set_servers(dns, server.address)));
    dns_test_ask(dns, "a.example.test", &good);
    dns_test_await(loop, &good);
    ck_assert(!cy_failed(good.query.err));
    ck_assert_int_eq(server.question_count, 1);
    /* While it runs: refused at once, and the one before it stays. */
    ck_assert(cy_is(dns_set_servers(dns, "no address:port:"), CY_ERR_BAD_ADDRESS));
    dns_test_ask(dns, "b.example.test", &good);
    dns_test_await(loop, &good);
    ck_assert(!cy_failed(good.query.err));
    dns_test_end(loop, dns, &server);
}
END_TEST

START_TEST(test_cancel_and_free_at_any_moment)
{
    struct loop *loop;
    struct dns *dns;
    struct dns_test_server server;
    dns_test_begin(&loop, &dns, &server);
    server.silent = true;
    struct dns_test_query a, b, c, numeric;
    dns_test_ask(dns, "a.example.test", &a);
    dns_test_ask(dns, "a.example.test", &b);
    dns_test_ask(dns, "c.example.test", &c);
    dns_test_ask(dns, "10.0.0.1", &numeric);
    dns_cancel(&a.query);
    dns_cancel(&numeric.query);
    dns_cancel(&numeric.query); /* harmless */
    for (int i = 0; i < 3; i++) {
        loop_wake(loop);
        ck_assert(!cy_failed(loop_turn(loop)));
    }
    ck_assert_int_eq(b.done_count, 0);
    dns_test_end(loop, dns, &server);
    ck_assert_int_eq(a.done_count, 0);
    ck_assert_int_eq(numeric.done_count, 0);
    ck_assert_int_eq(b.done_count, 1);
    ck_assert_int_eq(c.done_count, 1);
    ck_assert(cy_is(b.query.err, CY_ERR_CANCELLED));
}
END_TEST

Suite *unit_suite_net_dns(void);
Suite *unit_suite_net_dns(void)
{
    Suite *suite = suite_create("net/dns");
    TCase *tests = tcase_create("names");
    tcase_add_test(tests, test_numeric_and_local_names);
    tcase_add_test(tests, test_one_look_up_serves_all_and_is_remembered);
    tcase_add_test(tests, test_failing_server_leaves_the_last_good_answer);
    tcase_add_test(tests, test_a_bad_server_list_is_never_ignored);
    tcase_add_test(tests, test_cancel_and_free_at_any_moment);
    suite_add_tcase(suite, tests);
    return suite;
}
