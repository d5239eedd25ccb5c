/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/short_test.c: proves, on real sockets and for every back end, what a connection with one request
 * costs: accept, one receive, one send with which FIN goes along, and no registration for events; and that a client
 * which goes away before its answer is noticed all the same.
 */
#include "tests/unit/net/loop_rig.h"
#include "vm/base/builder.h"
#include "vm/base/log.h"
#include "vm/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

struct short_world {
    struct loop *loop;
    struct log log;
    struct http_server *server;
    struct http_verdict *verdict; /* NULL: the handler goes on thinking */
    struct address address;
    int request_count, gone_count;
};

static void short_on_request(void *context, struct http_exchange *exchange)
{
    struct short_world *world = context;
    world->request_count++;
    if (world->verdict) http_exchange_answer(exchange, world->verdict);
}
static void short_on_gone(void *context, struct http_exchange *exchange)
{
    (void)exchange;
    ((struct short_world *)context)->gone_count++;
}

static void short_open(struct short_world *world, int which)
{
    struct address any;
    int descriptor;
    memset(world, 0, sizeof *world);
    world->loop = loop_rig_new(which);
    log_init(&world->log);
    world->log.level_min = LOG_ERROR + 1;
    const struct http_server_options options = {.loop = world->loop,
                                                .log = &world->log,
                                                .context = world,
                                                .on_request = short_on_request,
                                                .on_gone = short_on_gone};
    ck_assert(!cy_failed(http_server_new(&options, &world->server)));
    ck_assert(!cy_failed(address_from_text(CY_BYTES("127.0.0.1:0"), &any)));
    ck_assert(!cy_failed(listen_open(&any, false, 16, &descriptor)));
    ck_assert(!cy_failed(socket_local_address(descriptor, &world->address)));
    ck_assert(!cy_failed(http_server_listen(world->server, descriptor)));
}

static void short_close(struct short_world *world)
{
    http_server_free(&world->server);
    http_verdict_unref(&world->verdict);
    for (int i = 0; i < 3; i++) loop_rig_turn(world->loop);
    loop_free(&world->loop);
}

/* A client of blocking calls: connected, and its request is with the kernel. */
static int short_client(const struct short_world *world, const char *request)
{
    int client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(client, 0);
    ck_assert_int_eq(connect(client, (const struct sockaddr *)&world->address.storage, world->address.bytes),
                     0);
    ck_assert_int_eq(send(client, request, strlen(request), 0), (ssize_t)strlen(request));
    return client;
}

START_TEST(test_a_connection_with_one_request_is_never_registered)
{
    enum { CONNECTIONS = 20 };
    struct short_world world;
    struct http_server_counters counters;
    char bytes[512];
    short_open(&world, _i);
    ck_assert(!cy_failed(http_verdict_respond(200, CY_BYTES("hi"), NULL, 0, &world.verdict, NULL)));
    struct loop_counters before, after;
    loop_read_counters(world.loop, &before);
    for (int i = 0; i < CONNECTIONS; i++) {
        int client = short_client(&world, i % 2 ? "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                                                : "GET / HTTP/1.0\r\nHost: a\r\n\r\n");
        do {
            ck_assert(!cy_failed(loop_turn(world.loop)));
            http_server_read_counters(world.server, &counters);
        } while (counters.connections_open > 0 || world.request_count == i);
        ck_assert_int_gt(recv(client, bytes, sizeof bytes, 0), 20);
        ck_assert_int_eq(recv(client, bytes, sizeof bytes, 0), 0); /* FIN, not RST */
        close(client);
    }
    loop_read_counters(world.loop, &after);
    ck_assert_uint_eq(after.controls - before.controls, 0);
    ck_assert_uint_eq(after.receives - before.receives, CONNECTIONS);
    ck_assert_uint_eq(after.sends - before.sends, CONNECTIONS);
    short_close(&world);
}
END_TEST

START_TEST(test_a_client_that_leaves_before_its_answer_is_noticed)
{
    struct short_world world;
    short_open(&world, _i);
    int client = short_client(&world, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    loop_rig_turn_until(world.loop, &world.request_count, 1);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    close(client);
    loop_rig_turn_until(world.loop, &world.gone_count, 1);
    short_close(&world);
}
END_TEST

Suite *unit_suite_http_short(void);
Suite *unit_suite_http_short(void)
{
    Suite *suite = suite_create("http/short");
    TCase *tests = tcase_create("every back end");
    tcase_add_loop_test(tests, test_a_connection_with_one_request_is_never_registered, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_a_client_that_leaves_before_its_answer_is_noticed, 0, LOOP_RIG_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}
