/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/beside_server_test.c: proves that tasks that misbehave inside try (an endless loop, one that spawns
 * endless loops, memory bombs) are stopped beside a server on the event loop, and that each request meanwhile is
 * answered within the same few turns of the loop as without them. Turns are counted: no clock is looked at.
 *
 * The server is the smallest there can be: a byte that arrives starts a call of `handle`, its result is the answer.
 */
#include "tests/support/loop_sim.h"
#include "tests/unit/run/run_source.h"
#include "vm/run/fiber.h"

#include <check.h>

static const char source[] =
    "export fn handle(n) { let sum = 0 for i in 0..200 { sum = sum + i } return n + 1 }\n"
    "export fn nothing() { }\n"
    "export fn endless() { try { loop { try { loop { } } catch e { } } } catch e { } }\n"
    "fn spin() { try { loop { } } catch e { } }\n"
    "export fn many() { for i in 0..500 { spawn spin() } try { loop { } } catch e { } }\n"
    "export fn text() { let s = \"x\" loop { try { s = s + s } catch e { } } }\n"
    "export fn list() { let xs = [] loop { try { xs = xs + [[\"x\"]] } catch e { } } }\n"
    "export fn main(args) { }\n";

static struct run_host host;
static struct loop *loop;
static struct loop_socket *server, *client;
static struct loop_receive server_receive, client_receive;
static struct loop_send server_send, client_send;
static uint8_t request, answer;
static uint64_t turns, sent_turn, answered_count, turns_most;

static bool beside_hook(void *context)
{
    (void)context;
    turns++;
    if (vm_run(host.vm)) return true;
    return vm_idle(host.vm);
}

static void beside_send(struct loop_socket *socket, struct loop_send *send, const uint8_t *byte)
{
    send->parts[0] = cy_bytes_of(byte, 1);
    send->part_count = 1;
    loop_send(socket, send);
}
static void beside_request(void)
{
    sent_turn = turns;
    beside_send(client, &client_send, &request);
}
static void beside_sent(struct loop_op *op) { (void)op; } /* cancelled by the end of the test */

static void beside_handled(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                           cy_err stop)
{
    (void)vm;
    (void)context;
    (void)stop;
    ck_assert_int_eq(outcome, CALL_RETURNED);
    answer = (uint8_t)value.as.i;
    beside_send(server, &server_send, &answer);
}

static uint8_t beside_take(struct loop_op *op, struct loop_receive *receive)
{
    ck_assert(!cy_failed(op->err) && receive->buffer);
    uint8_t byte = *buffer_view(receive->buffer).data;
    buffer_unref(&receive->buffer);
    return byte;
}
static void beside_server_received(struct loop_op *op)
{
    if (cy_failed(op->err)) return; /* closed at the end */
    cy_value argument = value_int(beside_take(op, &server_receive)), function;
    ck_assert(!cy_failed(instance_export(host.instance, CY_BYTES("handle"), &function)));
    ck_assert(
        !cy_failed(vm_start(host.vm, host.instance, function, &argument, 1, beside_handled, NULL, NULL)));
    loop_receive(server, &server_receive);
}
static void beside_client_received(struct loop_op *op)
{
    if (cy_failed(op->err)) return;
    ck_assert_uint_eq(beside_take(op, &client_receive), request + 1);
    answered_count++;
    if (turns - sent_turn > turns_most) turns_most = turns - sent_turn;
    request = (uint8_t)(answered_count % 200);
    loop_receive(client, &client_receive);
    beside_request();
}

static void beside_open(void)
{
    struct loop_sim_options options = {.seed = 7};
    struct loop_sim *sim;
    int a, b;
    run_source_open(&host, source, 64 << 20, 4 << 20);
    host.tick_ns = 10 * 1000000; /* of CPU, at each look: an endless loop has a hundred turns */
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    loop_set_hook(loop, beside_hook, NULL);
    loop_sim_pair(sim, &a, &b);
    ck_assert(!cy_failed(loop_socket_open(loop, a, &server)) &&
              !cy_failed(loop_socket_open(loop, b, &client)));
    server_receive = client_receive = (struct loop_receive){0};
    server_send = client_send = (struct loop_send){0};
    server_receive.op.done = beside_server_received;
    client_receive.op.done = beside_client_received;
    server_send.op.done = client_send.op.done = beside_sent;
    turns = answered_count = turns_most = 0;
    loop_receive(server, &server_receive);
    loop_receive(client, &client_receive);
    beside_request();
}

static void beside_close(void)
{
    loop_set_hook(loop, NULL, NULL);
    loop_socket_close(&server);
    loop_socket_close(&client);
    ck_assert(!cy_failed(loop_flush(loop)));
    run_host_close(&host);
    loop_free(&loop);
}

/* The most turns that an answer took while `name` ran, which was stopped for `stop` (0: it ended by itself). */
static uint64_t beside_run(const char *name, uint32_t stop)
{
    struct run_end end;
    beside_open();
    ck_assert(!cy_failed(run_host_start(&host, name, NULL, 0, &end, NULL)));
    uint64_t answered_before = 0;
    while (!end.ended || answered_count < 50) {
        if (!end.ended) answered_before = answered_count;
        ck_assert(!cy_failed(loop_turn(loop)));
        ck_assert_uint_lt(turns, 400000);
    }
    if (stop) {
        ck_assert_msg(end.outcome == CALL_STOPPED && cy_is(end.stop, stop), "%s: %d", name, (int)end.outcome);
        ck_assert_uint_gt(answered_before, stop == CY_ERR_STOP_CPU ? 3 : 0); /* served while it ran */
    }
    run_end_clear(&end);
    beside_close();
    return turns_most;
}

START_TEST(test_nobody_waits_longer)
{
    static const struct {
        const char *name;
        enum cy_err_code stop;
    } rows[] = {{"endless", CY_ERR_STOP_CPU},
                {"many", CY_ERR_STOP_CPU},
                {"text", CY_ERR_STOP_MEMORY},
                {"list", CY_ERR_STOP_MEMORY}};
    uint64_t alone = beside_run("nothing", 0);
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        uint64_t beside = beside_run(rows[i].name, rows[i].stop);
        ck_assert_msg(beside <= alone + 1, "%s: %d turns instead of %d", rows[i].name, (int)beside,
                      (int)alone);
    }
}
END_TEST

Suite *unit_suite_run_beside_server(void);
Suite *unit_suite_run_beside_server(void)
{
    Suite *suite = suite_create("run_beside_server");
    TCase *tests = tcase_create("beside_server");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_nobody_waits_longer);
    suite_add_tcase(suite, tests);
    return suite;
}
