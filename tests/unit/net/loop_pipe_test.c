/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_pipe_test.c: proves, on real sockets and on the simulated network, that bytes pass from
 * socket to socket in a pipe: in order, never more than was allowed (what follows stays in the socket), at most
 * LIMIT_PIPE_BYTES at once; that ends and errors of either side are told, that a pipe with bytes in it is never
 * used again, and that without pipes (LIMIT_PIPES, memory) the bytes come in ordinary buffers or an error does.
 */
#include "tests/support/loop_sim.h"
#include "tests/unit/net/loop_rig.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#define PIPE_WORLDS (LOOP_RIG_BACKENDS + 1) /* the last: simulated */

struct pipe_world {
    struct loop *loop;
    struct loop_socket *source, *from, *to, *sink; /* source ─► from, pipe, to ─► sink */
};

static void pipe_pair(struct pipe_world *world, struct loop_sim *sim, struct loop_socket **a,
                      struct loop_socket **b)
{
    if (!sim) {
        loop_rig_tcp_pair(world->loop, a, b);
        return;
    }
    int ends[2];
    loop_sim_pair(sim, &ends[0], &ends[1]);
    ck_assert(!cy_failed(loop_socket_open(world->loop, ends[0], a)));
    ck_assert(!cy_failed(loop_socket_open(world->loop, ends[1], b)));
}

static void pipe_open(struct pipe_world *world, int which, uint64_t seed)
{
    struct loop_sim *sim = NULL;
    const struct loop_sim_options options = {.seed = seed, .pieces = true, .reorder = true};
    *world = (struct pipe_world){0};
    if (which < LOOP_RIG_BACKENDS)
        world->loop = loop_rig_new(which);
    else
        ck_assert(!cy_failed(loop_sim_new(&options, &world->loop, &sim)));
    ck_assert(loop_has_pipes(world->loop));
    pipe_pair(world, sim, &world->source, &world->from);
    pipe_pair(world, sim, &world->to, &world->sink);
}

static void pipe_close(struct pipe_world *world)
{
    struct loop_socket **sockets[] = {&world->source, &world->from, &world->to, &world->sink};
    for (size_t i = 0; i < CY_COUNT_OF(sockets); i++)
        if (*sockets[i]) loop_socket_close(sockets[i]);
    ck_assert(!cy_failed(loop_flush(world->loop)));
    ck_assert_uint_eq(world->loop->pipe_count, world->loop->free_pipe_count);
    loop_free(&world->loop);
}

static void pipe_turn(struct pipe_world *world)
{
    loop_wake(world->loop);
    ck_assert(!cy_failed(loop_turn(world->loop)));
}

static uint8_t pipe_byte(size_t i) { return (uint8_t)(i * 7 + i / 253); }

/* A send of `bytes` of the pattern from its `offset` on. */
static uint8_t *pipe_send(struct loop_socket *socket, struct loop_rig_op *send, size_t offset, size_t bytes)
{
    uint8_t *data = mem_alloc(bytes);
    for (size_t i = 0; i < bytes; i++) data[i] = pipe_byte(offset + i);
    loop_rig_init(send, NULL);
    send->send.parts[0] = cy_bytes_of(data, bytes);
    send->send.part_count = 1;
    loop_send(socket, &send->send);
    return data;
}

/* Takes what has come at the sink; false when nothing is outstanding or there is nothing yet. */
static void pipe_sink(struct pipe_world *world, struct loop_rig_op *receive, size_t *count)
{
    if (receive->done_count == 0) return;
    ck_assert(!cy_failed(receive->err));
    if (!receive->receive.buffer) return;
    cy_bytes view = buffer_view(receive->receive.buffer);
    for (size_t i = 0; i < view.count; i++) ck_assert_uint_eq(view.data[i], pipe_byte(*count + i));
    *count += view.count;
    buffer_unref(&receive->receive.buffer);
    receive->done_count = 0;
    loop_receive(world->sink, &receive->receive);
}

static void pipe_receive(struct pipe_world *world, struct loop_rig_op *receive, uint32_t pipe_bytes_max)
{
    loop_rig_init(receive, NULL);
    receive->receive.pipe_bytes_max = pipe_bytes_max;
    loop_receive(world->from, &receive->receive);
}

static void pipe_forward(struct pipe_world *world, struct loop_rig_op *send, struct buffer *piped)
{
    loop_rig_init(send, NULL);
    send->send.pipe = piped;
    loop_send(world->to, &send->send);
}

/* `total` bytes go through pipes; 1,000 more follow them in the socket and must stay there. */
static void pipe_run(int which, uint64_t seed, size_t total)
{
    struct pipe_world world;
    struct loop_rig_op feed, receive, send, drain;
    size_t piped = 0, arrived = 0;
    pipe_open(&world, which, seed);
    uint8_t *data = pipe_send(world.source, &feed, 0, total + 1000);
    loop_rig_init(&drain, NULL);
    loop_receive(world.sink, &drain.receive);
    while (piped < total) {
        pipe_receive(&world, &receive, (uint32_t)(total - piped));
        while (receive.done_count == 0) pipe_turn(&world);
        ck_assert(!cy_failed(receive.err) && loop_buffer_is_piped(receive.receive.buffer));
        ck_assert_uint_eq(receive.receive.pipe_bytes_max, 0); /* for one receive */
        size_t count = buffer_view(receive.receive.buffer).count;
        ck_assert_uint_le(count, LIMIT_PIPE_BYTES);
        piped += count;
        pipe_forward(&world, &send, receive.receive.buffer);
        while (send.done_count == 0) {
            pipe_turn(&world);
            pipe_sink(&world, &drain, &arrived);
        }
        ck_assert(!cy_failed(send.err));
        ck_assert_uint_eq(send.send.sent_bytes, count);
        ck_assert_ptr_null(send.send.pipe);
        buffer_unref(&receive.receive.buffer);
    }
    ck_assert_uint_eq(piped, total);
    while (arrived < total) {
        pipe_turn(&world);
        pipe_sink(&world, &drain, &arrived);
    }
    for (size_t rest = 0; rest < 1000;) {
        pipe_receive(&world, &receive, 0);
        while (receive.done_count == 0) pipe_turn(&world);
        ck_assert(!loop_buffer_is_piped(receive.receive.buffer));
        cy_bytes view = buffer_view(receive.receive.buffer);
        ck_assert_uint_eq(view.data[0], pipe_byte(total + rest));
        rest += view.count;
        buffer_unref(&receive.receive.buffer);
    }
    ck_assert_uint_eq(world.loop->pipe_count, 1); /* one, again and again */
    pipe_close(&world);
    mem_free(data);
}

START_TEST(test_bytes_pass_in_order_and_no_more_than_allowed)
{
    if (_i < LOOP_RIG_BACKENDS)
        pipe_run(_i, 0, 700000);
    else
        for (uint64_t seed = 1; seed <= 20; seed++) pipe_run(_i, seed, 20000);
}
END_TEST

/* The reader takes nothing: the send stays until the socket is closed, and the pipe with its bytes goes. */
START_TEST(test_a_reader_that_stops_holds_one_pipe_until_the_end)
{
    struct pipe_world world;
    struct loop_rig_op feed, receive, send;
    pipe_open(&world, _i, 5);
    uint8_t *data = pipe_send(world.source, &feed, 0, 32u << 20); /* more than sockets take */
    for (;;) {
        pipe_receive(&world, &receive, UINT32_MAX);
        while (receive.done_count == 0) pipe_turn(&world);
        ck_assert(loop_buffer_is_piped(receive.receive.buffer));
        ck_assert_uint_le(buffer_view(receive.receive.buffer).count, LIMIT_PIPE_BYTES);
        pipe_forward(&world, &send, receive.receive.buffer);
        for (int i = 0; i < 200 && send.done_count == 0; i++) pipe_turn(&world);
        if (send.done_count == 0) break;
        ck_assert(!cy_failed(send.err));
        buffer_unref(&receive.receive.buffer);
    }
    ck_assert_uint_eq(world.loop->pipe_count, 1);
    ck_assert_uint_le(buffer_pool_lent_bytes(loop_buffers(world.loop)), 0);
    loop_socket_close(&world.to);
    while (send.done_count == 0) pipe_turn(&world);
    ck_assert(cy_is(send.err, CY_ERR_CANCELLED));
    buffer_unref(&receive.receive.buffer);
    ck_assert_uint_eq(world.loop->pipe_count, 0); /* closed: nobody else may get what is in it */
    pipe_close(&world);
    mem_free(data);
}
END_TEST

START_TEST(test_ends_and_errors_are_told)
{
    struct pipe_world world;
    struct loop_rig_op feed, receive, send;
    pipe_open(&world, _i, 6);
    uint8_t *data = pipe_send(world.source, &feed, 0, 10);
    while (feed.done_count == 0) pipe_turn(&world);
    ck_assert(!cy_failed(loop_socket_shutdown_send(world.source)));
    for (size_t count = 0; count < 10;) { /* shorter than allowed: what there is, then the end */
        pipe_receive(&world, &receive, 100000);
        while (receive.done_count == 0) pipe_turn(&world);
        ck_assert(!cy_failed(receive.err));
        count += buffer_view(receive.receive.buffer).count;
        if (count < 10) buffer_unref(&receive.receive.buffer); /* unsent: its pipe goes */
    }
    /* The reader is gone, with unread bytes on both ways: a reset. */
    loop_socket_abort_on_close(world.sink);
    loop_socket_close(&world.sink);
    pipe_turn(&world);
    pipe_turn(&world);
    pipe_forward(&world, &send, receive.receive.buffer);
    while (send.done_count == 0) pipe_turn(&world);
    ck_assert(cy_failed(send.err));
    ck_assert(!cy_is(send.err, CY_ERR_CANCELLED));
    buffer_unref(&receive.receive.buffer);
    pipe_receive(&world, &receive, 100000);
    while (receive.done_count == 0) pipe_turn(&world);
    ck_assert(!cy_failed(receive.err));
    ck_assert_ptr_null(receive.receive.buffer);
    pipe_close(&world);
    mem_free(data);
}
END_TEST

START_TEST(test_a_reset_in_the_middle_is_an_error)
{
    struct pipe_world world;
    struct loop_rig_op receive;
    pipe_open(&world, _i, 7);
    pipe_receive(&world, &receive, 100000);
    pipe_turn(&world);
    loop_socket_abort_on_close(world.source);
    loop_socket_close(&world.source);
    while (receive.done_count == 0) pipe_turn(&world);
    ck_assert(cy_failed(receive.err));
    pipe_receive(&world, &receive, 100000); /* and one that is closed while it waits is cancelled */
    loop_socket_close(&world.from);
    while (receive.done_count == 0) pipe_turn(&world);
    ck_assert(cy_failed(receive.err));
    pipe_close(&world);
}
END_TEST

/* LIMIT_PIPES are lent, or as many as were allowed: the next receive takes a buffer. LIMIT_PIPES_FREE stay in the
 * pool. */
static void pipe_at_and_past(uint32_t count, uint32_t count_max)
{
    static struct loop_pipe *pipes[LIMIT_PIPES];
    struct pipe_world world;
    struct loop_rig_op feed, receive;
    pipe_open(&world, PIPE_WORLDS - 1, 8);
    if (count_max) loop_set_pipes_max(world.loop, count_max);
    for (size_t i = 0; i < count; i++) {
        pipes[i] = loop_pipe_take(world.loop);
        ck_assert_ptr_nonnull(pipes[i]);
    }
    ck_assert_ptr_null(loop_pipe_take(world.loop));
    uint8_t *data = pipe_send(world.source, &feed, 0, 10);
    pipe_receive(&world, &receive, 100000);
    while (receive.done_count == 0) pipe_turn(&world);
    ck_assert(!cy_failed(receive.err) && !loop_buffer_is_piped(receive.receive.buffer));
    buffer_unref(&receive.receive.buffer);
    for (size_t i = 0; i < count; i++) loop_pipe_give(pipes[i]);
    ck_assert_uint_eq(world.loop->pipe_count, count < LIMIT_PIPES_FREE ? count : LIMIT_PIPES_FREE);
    pipe_close(&world);
    mem_free(data);
}

START_TEST(test_pipes_at_and_past_the_limit)
{
    pipe_at_and_past(LIMIT_PIPES, 0);
    pipe_at_and_past(LIMIT_PIPES, LIMIT_PIPES + 1); /* a bound for more than that does not count */
    pipe_at_and_past(3, 3);
}
END_TEST

START_TEST(test_without_memory_it_is_a_buffer_or_an_error)
{
    bool piped = false;
    for (uint64_t n = 0; !piped; n++) {
        struct pipe_world world;
        struct loop_rig_op feed, receive;
        ck_assert_uint_lt(n, 20);
        pipe_open(&world, 0, 0);
        uint8_t *data = pipe_send(world.source, &feed, 0, 10);
        while (feed.done_count == 0) pipe_turn(&world);
        mem_fail_after(n);
        pipe_receive(&world, &receive, 100000);
        while (receive.done_count == 0) pipe_turn(&world);
        mem_fail_never();
        piped = !cy_failed(receive.err) && loop_buffer_is_piped(receive.receive.buffer);
        ck_assert(piped || cy_is(receive.err, CY_ERR_NO_MEMORY) || receive.receive.buffer);
        buffer_unref(&receive.receive.buffer);
        pipe_close(&world);
        mem_free(data);
    }
}
END_TEST

#ifdef __linux__
/* The system has no descriptor left: bytes come in buffers, and it is not asked at each receive. */
START_TEST(test_without_descriptors_it_is_a_buffer)
{
    struct pipe_world world;
    struct loop_rig_op feed, receive;
    struct rlimit before, none;
    pipe_open(&world, _i, 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int lowest_free = dup(0);
    ck_assert_int_ge(lowest_free, 0);
    close(lowest_free);
    none = before;
    none.rlim_cur = (rlim_t)lowest_free; /* poll(2) wants it no lower than what it is asked about */
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++) {
        if (i == 1)
            ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0); /* there are some, but it pauses */
        if (i == 2) {
            ck_assert_uint_gt(world.loop->pipes_paused_ms, world.loop->now_ms);
            world.loop->pipes_paused_ms = world.loop->now_ms;
        }
        uint8_t *data = pipe_send(world.source, &feed, 0, 10);
        pipe_receive(&world, &receive, 100000);
        while (receive.done_count == 0 || feed.done_count == 0) pipe_turn(&world);
        ck_assert(!cy_failed(receive.err));
        ck_assert(loop_buffer_is_piped(receive.receive.buffer) == (i == 2));
        buffer_unref(&receive.receive.buffer);
        mem_free(data);
    }
    pipe_close(&world);
}
END_TEST

/* A pipe that waits for its next body. */
static void pipe_make_idle(struct loop *loop)
{
    loop->pipes_paused_ms = 0;
    struct loop_pipe *pipe = loop_pipe_take(loop);
    ck_assert_ptr_nonnull(pipe);
    loop_pipe_give(pipe);
    ck_assert_uint_eq(loop->free_pipe_count, 1);
}

/* No descriptor is left for a client that waits, then for a connection to an upstream: idle pipes give theirs. */
START_TEST(test_idle_pipes_give_their_descriptors)
{
    struct pipe_world world;
    struct loop_rig_listener listener;
    struct loop_rig_op connecting;
    struct rlimit before, none;
    struct loop_counters counters;
    pipe_open(&world, _i, 0);
    loop_rig_listen(world.loop, &listener);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    pipe_make_idle(world.loop);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)dup(0);
    close((int)none.rlim_cur);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    const struct sockaddr *to = (const struct sockaddr *)&listener.address.storage;
    ck_assert_int_eq(connect(client, to, listener.address.bytes), 0);
    loop_rig_turn_until(world.loop, &listener.accepted_count, 1);
    loop_read_counters(world.loop, &counters);
    ck_assert_uint_eq(counters.accept_pauses, 0);
    ck_assert_uint_gt(world.loop->pipes_paused_ms,
                      world.loop->now_ms); /* or they would be taken back at once */
    loop_socket_close(&listener.accepted[0]);

    pipe_make_idle(world.loop);
    loop_rig_init(&connecting, NULL);
    loop_connect(world.loop, &listener.address, &connecting.connect);
    loop_rig_turn_until(world.loop, &connecting.done_count, 1);
    ck_assert(!cy_failed(connecting.err));
    loop_rig_turn_until(world.loop, &listener.accepted_count, 2);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    loop_socket_close(&connecting.connect.socket);
    loop_socket_close(&listener.accepted[1]);
    loop_rig_unlisten(world.loop, &listener);
    close(client);
    pipe_close(&world);
}
END_TEST

/* splice has no MSG_NOSIGNAL: a program that does nothing about SIGPIPE must live. */
START_TEST(test_a_reader_that_is_gone_raises_no_signal)
{
    struct pipe_world world;
    struct loop_rig_op feed, receive, send;
    signal(SIGPIPE, SIG_DFL);
    pipe_open(&world, _i, 0);
    uint8_t *data = pipe_send(world.source, &feed, 0, 10);
    pipe_receive(&world, &receive, 100000);
    while (receive.done_count == 0) pipe_turn(&world);
    ck_assert(!cy_failed(loop_socket_shutdown_send(world.to)));
    pipe_forward(&world, &send, receive.receive.buffer);
    while (send.done_count == 0) pipe_turn(&world);
    ck_assert(cy_failed(send.err));
    buffer_unref(&receive.receive.buffer);
    pipe_close(&world);
    mem_free(data);
}
END_TEST
#endif

Suite *unit_suite_net_loop_pipe(void);
Suite *unit_suite_net_loop_pipe(void)
{
    Suite *suite = suite_create("net_loop_pipe");
#ifdef __linux__ /* elsewhere the simulator alone has pipes */
    const int first = 0;
#else
    const int first = LOOP_RIG_BACKENDS;
#endif
    TCase *cases = tcase_create("loop_pipe");
    tcase_set_timeout(cases, 20);
    tcase_add_loop_test(cases, test_bytes_pass_in_order_and_no_more_than_allowed, first, PIPE_WORLDS);
    tcase_add_loop_test(cases, test_a_reader_that_stops_holds_one_pipe_until_the_end, first, PIPE_WORLDS);
    tcase_add_loop_test(cases, test_ends_and_errors_are_told, first, PIPE_WORLDS);
    tcase_add_loop_test(cases, test_a_reset_in_the_middle_is_an_error, first, PIPE_WORLDS);
    tcase_add_test(cases, test_pipes_at_and_past_the_limit);
#ifdef __linux__
    tcase_add_test(cases, test_without_memory_it_is_a_buffer_or_an_error);
    tcase_add_loop_test(cases, test_without_descriptors_it_is_a_buffer, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(cases, test_idle_pipes_give_their_descriptors, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(cases, test_a_reader_that_is_gone_raises_no_signal, 0, LOOP_RIG_BACKENDS);
#endif
    suite_add_tcase(suite, cases);
    return suite;
}

#undef PIPE_WORLDS
