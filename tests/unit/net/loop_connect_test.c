/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_connect_test.c: proves, on real sockets and for every back end: a connection is made,
 * refused or cancelled with one completion; a listener accepts a crowd, may be closed from inside its own
 * completion, pauses instead of spinning when descriptors run out, and takes no more than there is room for: others
 * wait, are not reset, and come when somebody says that there is room, or a little later.
 */
#include "tests/unit/net/loop_rig.h"

#include <sys/resource.h>
#include <unistd.h>

START_TEST(test_connect_refused)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    struct address address = listener.address;
    loop_rig_unlisten(loop, &listener); /* now nobody listens there */
    struct loop_rig_op connect;
    bool submitting = true;
    loop_rig_init(&connect, &submitting);
    loop_connect(loop, &address, &connect.connect);
    submitting = false;
    loop_rig_turn_until(loop, &connect.done_count, 1);
    ck_assert(cy_is(connect.err, CY_ERR_REFUSED));
    ck_assert_ptr_null(connect.connect.socket);
    ck_assert(!connect.done_inside);
    loop_free(&loop);
}
END_TEST

START_TEST(test_connect_cancel)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    struct loop_rig_op connect;
    loop_rig_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    loop_connect_cancel(loop, &connect.connect);
    loop_connect_cancel(loop, &connect.connect);
    loop_rig_turn_until(loop, &connect.done_count, 1);
    ck_assert(cy_is(connect.err, CY_ERR_CANCELLED));
    ck_assert_ptr_null(connect.connect.socket);
    loop_connect_cancel(loop, &connect.connect); /* after the fact: nothing */
    loop_rig_turn(loop);
    ck_assert_int_eq(connect.done_count, 1);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    listener.accepted_count = 0;
    loop_rig_unlisten(loop, &listener);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    loop_free(&loop);
}
END_TEST

START_TEST(test_accept_many)
{
    enum { COUNT = 100 };
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    static struct loop_rig_op connects[COUNT];
    for (int i = 0; i < COUNT; i++) {
        loop_rig_init(&connects[i], NULL);
        loop_connect(loop, &listener.address, &connects[i].connect);
    }
    loop_rig_turn_until(loop, &listener.accepted_count, COUNT);
    for (int i = 0; i < COUNT; i++) {
        loop_rig_turn_until(loop, &connects[i].done_count, 1);
        ck_assert(!cy_failed(connects[i].err));
        loop_socket_close(&connects[i].connect.socket);
        loop_socket_close(&listener.accepted[i]);
    }
    ck_assert_int_eq(listener.end_count, 0);
    loop_rig_unlisten(loop, &listener);
    ck_assert_int_eq(listener.end_count, 1);
    loop_free(&loop);
}
END_TEST

START_TEST(test_listener_closed_inside_its_own_completion)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    listener.close_after = 1;
    struct loop_rig_op connects[3];
    for (int i = 0; i < 3; i++) {
        loop_rig_init(&connects[i], NULL);
        loop_connect(loop, &listener.address, &connects[i].connect);
    }
    loop_rig_turn_until(loop, &listener.end_count, 1);
    ck_assert_int_eq(listener.accepted_count, 1);
    ck_assert_ptr_null(listener.socket);
    for (int i = 0; i < 3; i++) {
        loop_rig_turn_until(loop, &connects[i].done_count, 1);
        if (connects[i].connect.socket) loop_socket_close(&connects[i].connect.socket);
    }
    loop_socket_close(&listener.accepted[0]);
    ck_assert_int_eq(listener.end_count, 1);
    loop_free(&loop);
}
END_TEST

struct loop_connect_leaver {
    struct loop_op op;
    struct loop_rig_listener *listener;
};
static void loop_connect_leave(struct loop_op *op)
{
    struct loop_connect_leaver *leaver = CY_CONTAINER_OF(op, struct loop_connect_leaver, op);
    loop_socket_close(&leaver->listener->socket);
}
static int loop_connect_client(const struct address *to)
{
    int client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(client, (const struct sockaddr *)&to->storage, to->bytes), 0);
    return client;
}

/* Two processes have one listening socket, as during a binary upgrade. One learns of a client and leaves before it
 * accepts: the other one serves it. And whoever has left is not woken by those that come afterwards. */
START_TEST(test_a_shared_listener_is_served_by_who_stays)
{
    struct loop *leaving = loop_rig_new(_i), *staying = loop_rig_new(_i);
    struct loop_rig_listener first, second = {.loop = staying};
    loop_rig_listen(leaving, &first);
    second.accept = (struct loop_accept){.op.done = first.accept.op.done};
    int copy = dup(loop_socket_descriptor(first.socket));
    ck_assert(!cy_failed(loop_socket_open(staying, copy, &second.socket)));
    loop_accept(second.socket, &second.accept);
    loop_rig_turn(leaving);
    loop_rig_turn(staying);

    int client = loop_connect_client(&first.address);
    struct loop_connect_leaver leaver = {.op.done = loop_connect_leave, .listener = &first};
    loop_post(leaving, &leaver.op); /* before the events of the next turn */
    loop_rig_turn_until(leaving, &first.end_count, 1);
    ck_assert_int_eq(first.accepted_count, 0);
    loop_rig_turn_until(staying, &second.accepted_count, 1);

    int another = loop_connect_client(&first.address);
    struct loop_counters before, after;
    struct loop_rig_timer timer = {.timer.fire = loop_rig_count_fire, .loop = leaving};
    loop_read_counters(leaving, &before);
    loop_timer_set(leaving, &timer.timer, 30);
    loop_rig_turn_until(leaving, &timer.fired_count, 1);
    loop_read_counters(leaving, &after);
    ck_assert_uint_lt(after.waits - before.waits, 10);

    loop_rig_turn_until(staying, &second.accepted_count, 2);
    for (int i = 0; i < 2; i++) loop_socket_close(&second.accepted[i]);
    loop_rig_unlisten(staying, &second);
    close(client);
    close(another);
    loop_free(&leaving);
    loop_free(&staying);
}
END_TEST

/* Out of descriptors: accepting pauses instead of spinning, and goes on when there are some again. */
START_TEST(test_accept_pauses_when_descriptors_run_out)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_rig_listener listener;
    loop_rig_listen(loop, &listener);
    struct loop_rig_op connect;
    loop_rig_init(&connect, NULL);
    loop_connect(loop, &listener.address, &connect.connect);
    struct rlimit before, none;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct loop_counters counters;
    for (int i = 0; i < 1000; i++) {
        loop_rig_turn(loop);
        loop_read_counters(loop, &counters);
        if (counters.accept_pauses > 0) break;
    }
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_uint_eq(counters.accept_pauses, 1);
    /* A second one: valgrind accepts and drops the first when it plays out the limit. */
    struct loop_rig_op again;
    loop_rig_init(&again, NULL);
    loop_connect(loop, &listener.address, &again.connect);
    uint64_t waits_before = counters.waits;
    loop_rig_turn_until(loop, &listener.accepted_count, 1);
    loop_read_counters(loop, &counters);
    ck_assert_uint_lt(counters.waits - waits_before, 20);
    loop_rig_turn_until(loop, &connect.done_count, 1);
    loop_rig_turn_until(loop, &again.done_count, 1);
    if (connect.connect.socket) loop_socket_close(&connect.connect.socket);
    if (again.connect.socket) loop_socket_close(&again.connect.socket);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    listener.accepted_count = 0;
    loop_rig_unlisten(loop, &listener);
    for (int i = 0; i < listener.accepted_count; i++) loop_socket_close(&listener.accepted[i]);
    loop_free(&loop);
}
END_TEST

struct loop_connect_room {
    struct loop_rig_listener listener;
    struct loop_rig_op clients[4];
    uint32_t places;
    int asked_count;
};

static uint32_t loop_connect_on_room(struct loop_accept *accept)
{
    struct loop_connect_room *room = CY_CONTAINER_OF(
        CY_CONTAINER_OF(accept, struct loop_rig_listener, accept), struct loop_connect_room, listener);
    room->asked_count++;
    return room->places - (uint32_t)room->listener.accepted_count;
}

static uint64_t loop_connect_pauses(struct loop *loop)
{
    struct loop_counters counters;
    loop_read_counters(loop, &counters);
    return counters.accept_pauses;
}

/* Four come, there is room for two, then for a third, which is said, then for a fourth, which is not. Being asked ends
 * with somebody accepted or with a pause: nobody spins. */
START_TEST(test_who_finds_no_room_waits_for_it)
{
    struct loop *loop = loop_rig_new(_i);
    struct loop_connect_room room = {.places = 2};
    struct loop_rig_listener *listener = &room.listener;
    loop_rig_listen(loop, listener);
    listener->accept.room = loop_connect_on_room;
    for (int i = 0; i < 4; i++) {
        loop_rig_init(&room.clients[i], NULL);
        loop_connect(loop, &listener->address, &room.clients[i].connect);
    }
    for (int i = 0; i < 1000 && loop_connect_pauses(loop) == 0; i++) loop_rig_turn(loop);
    ck_assert_uint_ge(loop_connect_pauses(loop), 1);
    ck_assert_int_eq(listener->accepted_count, 2);
    for (int i = 0; i < 4; i++) { /* all are connected: those without a place are in the queue */
        loop_rig_turn_until(loop, &room.clients[i].done_count, 1);
        ck_assert(!cy_failed(room.clients[i].err));
    }
    for (room.places = 3; room.places <= 4; room.places++) {
        if (room.places == 3) loop_accept_again(listener->socket);
        loop_rig_turn_until(loop, &listener->accepted_count, (int)room.places);
        ck_assert_int_eq(listener->accepted_count, (int)room.places);
    }
    loop_accept_again(listener->socket); /* nobody is kept waiting: harmless */
    ck_assert_uint_le((uint64_t)room.asked_count, loop_connect_pauses(loop) + 4);
    for (int i = 0; i < 4; i++) loop_socket_close(&room.clients[i].connect.socket);
    for (int i = 0; i < listener->accepted_count; i++) loop_socket_close(&listener->accepted[i]);
    listener->accepted_count = 0;
    loop_rig_unlisten(loop, listener);
    loop_free(&loop);
}
END_TEST

Suite *unit_suite_net_loop_connect(void);
Suite *unit_suite_net_loop_connect(void)
{
    Suite *suite = suite_create("net/loop_connect");
    TCase *tests = tcase_create("every back end");
    tcase_add_loop_test(tests, test_connect_refused, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_connect_cancel, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_accept_many, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_listener_closed_inside_its_own_completion, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_a_shared_listener_is_served_by_who_stays, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_accept_pauses_when_descriptors_run_out, 0, LOOP_RIG_BACKENDS);
    tcase_add_loop_test(tests, test_who_finds_no_room_waits_for_it, 0, LOOP_RIG_BACKENDS);
    suite_add_tcase(suite, tests);
    return suite;
}
