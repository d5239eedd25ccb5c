/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/fiber_test.c: proves tasks: turns, waiting and waking, cancelling, stops, bounds,
 * children, handles.
 */
#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"
#include "vm/run/handle.h"

#include <check.h>

static struct run_host host;
static struct program_builder *b;

static void build_begin(void)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
}
static uint32_t build_function(const char *name, uint8_t params, uint16_t locals)
{
    uint32_t index = pb_function(b, name, params, params, locals);
    pb_export(b, name, EXPORT_FUNCTION, index);
    pb_line(b, 10, 5);
    return index;
}
static void build_open(uint64_t memory_bytes_max)
{
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), memory_bytes_max));
}
static void build_print(const char *text)
{
    pb_op(b, OP_CONST, pb_str(b, text));
    pb_op(b, OP_NATIVE, pb_native(b, "print"), 1);
    pb_op(b, OP_POP);
}
/* for ever { } */
static void build_endless(void)
{
    uint32_t again = pb_label(b);
    pb_op(b, OP_NIL);
    pb_op(b, OP_POP);
    pb_place(b, again);
    pb_op(b, OP_NIL);
    pb_op(b, OP_POP);
    pb_op(b, OP_LOOP, again);
}
static void build_sleep(void)
{
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_NATIVE, pb_native(b, "task.sleep"), 1);
}

static void run_all(void)
{
    while (vm_run(host.vm)) {}
}
static struct run_end run_start(const char *name, struct run_end *end, struct fiber **fiber_out)
{
    ck_assert(!cy_failed(run_host_start(&host, name, NULL, 0, end, fiber_out)));
    return *end;
}
static void expect_error(struct run_end *end, const char *kind, const char *message_start)
{
    ck_assert(end->ended);
    ck_assert_int_eq(end->outcome, CALL_FAILED);
    cy_bytes is_kind = error_kind(host.vm, end->value), message = error_message(host.vm, end->value);
    ck_assert_msg(cy_bytes_equal(is_kind, cy_bytes_from_text(kind)), "%.*s: %.*s", CY_BYTES_ARG(is_kind),
                  CY_BYTES_ARG(message));
    ck_assert_msg(cy_bytes_start_with(message, cy_bytes_from_text(message_start)), "%.*s",
                  CY_BYTES_ARG(message));
    run_end_clear(end);
}

/* An endless loop and a short task share the VM: the short one ends at its first turn, the loop is stopped
 * by its CPU allowance; TRY does not catch that, DEFER runs. */
START_TEST(test_endless_loop_yields_and_is_stopped)
{
    build_begin();
    build_function("short", 0, 0);
    build_print("short");
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    build_function("endless", 0, 0);
    uint32_t caught = pb_label(b), defer = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_DEFER_BEGIN, defer);
    build_endless();
    pb_place(b, defer);
    build_print("defer");
    pb_op(b, OP_RETHROW);
    pb_place(b, caught);
    pb_op(b, OP_RETURN);
    build_open(0);
    host.tick_ns = 10 * 1000000; /* each look at the clock takes 10 ms of CPU */
    struct run_end endless, brief;
    run_start("endless", &endless, NULL);
    run_start("short", &brief, NULL);
    ck_assert_uint_eq(host.ready_count, 1); /* told once until vm_run */
    ck_assert(vm_run(host.vm));
    ck_assert(brief.ended && !endless.ended);
    ck_assert_str_eq(run_host_printed(&host), "short\n");
    int turns = 1;
    while (vm_run(host.vm)) turns++;
    ck_assert_int_gt(turns, 90);
    ck_assert_int_lt(turns, 110);
    ck_assert_int_eq(endless.outcome, CALL_STOPPED);
    ck_assert(cy_is(endless.stop, CY_ERR_STOP_CPU));
    ck_assert_str_eq(run_host_printed(&host), "short\ndefer\n");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* A defer that never ends uses up its allowance, and the outer defer does not run any more. */
START_TEST(test_endless_defer_is_cut_off)
{
    build_begin();
    build_function("main", 0, 0);
    uint32_t outer = pb_label(b), inner = pb_label(b);
    pb_op(b, OP_DEFER_BEGIN, outer);
    pb_op(b, OP_DEFER_BEGIN, inner);
    build_endless();
    pb_place(b, inner);
    build_print("inner");
    build_endless();
    pb_place(b, outer);
    build_print("outer");
    pb_op(b, OP_RETHROW);
    build_open(0);
    host.tick_ns = 10 * 1000000;
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert_int_eq(end.outcome, CALL_STOPPED);
    ck_assert_str_eq(run_host_printed(&host), "inner\n");
    run_host_close(&host);
}
END_TEST

START_TEST(test_wait_and_wake)
{
    build_begin();
    build_function("main", 0, 1);
    build_sleep();
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert(!end.ended);
    ck_assert_uint_eq(vm_fiber_count(host.vm), 1);
    wait_ticket stale = host.ticket;
    uint32_t told = host.ready_count;
    cy_value text;
    ck_assert(!cy_failed(string_new(host.vm, CY_BYTES("woken"), &text)));
    vm_complete(host.vm, host.ticket, text);
    ck_assert_uint_eq(host.ready_count, told + 1);
    vm_complete(host.vm, stale, value_int(1)); /* the same ticket again is old */
    ck_assert(!vm_run(host.vm));
    ck_assert(end.ended);
    ck_assert_str_eq(run_host_text(&host, end.value), "woken");
    run_end_clear(&end);
    /* The next call uses the same fiber again; the old ticket wakes it not. */
    run_host_main(&host, &end);
    ck_assert_uint_eq(host.ticket.fiber_index, stale.fiber_index);
    cy_value late;
    ck_assert(!cy_failed(string_new(host.vm, CY_BYTES("late"), &late)));
    vm_complete(host.vm, stale, late);
    ck_assert(!vm_run(host.vm));
    ck_assert(!end.ended);
    cy_value error;
    ck_assert(!cy_failed(error_new(host.vm, CY_ERR(TIMEOUT), CY_BYTES("too late"), value_nil(), &error)));
    vm_complete_error(host.vm, host.ticket, error);
    run_all();
    expect_error(&end, "timeout", "too late");
    run_host_close(&host);
}
END_TEST

/* Cancelling calls the operation's cancel once, runs defers, and what is completed late is ignored. */
START_TEST(test_cancel)
{
    build_begin();
    build_function("main", 0, 0);
    uint32_t caught = pb_label(b), defer = pb_label(b);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_op(b, OP_DEFER_BEGIN, defer);
    build_sleep();
    pb_op(b, OP_POP);
    pb_op(b, OP_DEFER_END);
    pb_op(b, OP_TRY_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    pb_place(b, defer);
    build_print("defer");
    build_sleep(); /* not while stopping */
    pb_op(b, OP_POP);
    pb_op(b, OP_RETHROW);
    pb_place(b, caught);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    struct fiber *fiber;
    run_start("main", &end, &fiber);
    run_all();
    wait_ticket ticket = host.ticket;
    vm_cancel(host.vm, fiber);
    vm_cancel(host.vm, fiber);
    ck_assert_uint_eq(host.cancel_count, 1);
    vm_complete(host.vm, ticket, value_int(1));
    run_all();
    ck_assert(end.ended);
    ck_assert_int_eq(end.outcome, CALL_STOPPED);
    ck_assert(cy_is(end.stop, CY_ERR_STOP_CANCELLED));
    ck_assert_str_eq(run_host_printed(&host), "defer\n");
    ck_assert_uint_eq(host.cancel_count, 2); /* the defer's own wait was refused and cancelled */
    run_host_close(&host);
}
END_TEST

/* vm_free with a parked fiber cancels it and leaks nothing. */
START_TEST(test_free_with_parked_fibers)
{
    build_begin();
    uint32_t child = build_function("child", 0, 1);
    build_sleep();
    pb_op(b, OP_RETURN);
    build_function("main", 0, 1);
    pb_op(b, OP_CLOSURE, child);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CONST, pb_str(b, "held"));
    pb_op(b, OP_LIST, 1);
    build_sleep();
    pb_op(b, OP_LIST, 2);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert_uint_eq(vm_fiber_count(host.vm), 2);
    run_host_close(&host);
    ck_assert_uint_eq(host.cancel_count, 2);
}
END_TEST

START_TEST(test_call_depth)
{
    build_begin();
    uint32_t down = build_function("down", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_ADD);
    pb_op(b, OP_CALL_FUNCTION, down, 1);
    pb_op(b, OP_RETURN);
    build_function("main", 0, 0);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_CALL_FUNCTION, down, 1);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert_int_eq(end.outcome, CALL_FAILED);
    ck_assert_uint_eq(list_count(error_stack(host.vm, end.value)), LIMIT_ERROR_PLACES + 1);
    expect_error(&end, "depth", "calls are nested too deep");
    /* The deep stack was given back. */
    struct vm_counters counters;
    vm_read_counters(host.vm, &counters);
    ck_assert_uint_lt(counters.heap_bytes, 100000);
    run_host_close(&host);
}
END_TEST

/* Past the VM's limit: an error that TRY catches; afterwards the memory is there again. */
START_TEST(test_memory_limit_is_an_error)
{
    build_begin();
    build_function("main", 0, 1);
    uint32_t caught = pb_label(b), again = pb_label(b);
    pb_op(b, OP_CONST, pb_str(b, "0123456789"));
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_TRY_BEGIN, caught);
    pb_place(b, again);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_ADD, 0); /* doubles */
    pb_op(b, OP_LOOP, again);
    pb_place(b, caught);
    pb_op(b, OP_FIELD_GET, pb_str(b, "kind"));
    pb_op(b, OP_NIL);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CONST, pb_str(b, "!"));
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    build_open(1 << 20);
    struct run_end end;
    run_host_main(&host, &end);
    ck_assert_int_eq(end.outcome, CALL_RETURNED);
    ck_assert_str_eq(run_host_text(&host, end.value), "memory!");
    run_end_clear(&end);
    run_host_close(&host);
}
END_TEST

/* A child's result goes to who waits; its error fails the waiter, or the parent at its end when nobody
 * waited. */
START_TEST(test_children)
{
    build_begin();
    uint32_t twice = build_function("twice", 1, 1);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_ADD);
    pb_op(b, OP_RETURN);
    build_function("wait", 0, 1);
    pb_op(b, OP_CLOSURE, twice);
    pb_op(b, OP_INT8, 21);
    pb_op(b, OP_SPAWN, 1);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
    pb_op(b, OP_RETURN);
    build_function("again", 0, 1); /* waits twice */
    pb_op(b, OP_CLOSURE, twice);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_SPAWN, 1);
    pb_op(b, OP_LOCAL_SET, 0);
    for (int i = 0; i < 2; i++) {
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
        if (i == 0) pb_op(b, OP_POP);
    }
    pb_op(b, OP_RETURN);
    build_function("forget", 0, 0); /* the child's error is the parent's */
    pb_op(b, OP_CLOSURE, twice);
    pb_op(b, OP_NIL);
    pb_op(b, OP_SPAWN, 1);
    pb_op(b, OP_POP);
    build_print("parent done");
    pb_op(b, OP_INT8, 5);
    pb_op(b, OP_RETURN);
    build_function("count", 0, 0); /* wrong number of arguments */
    pb_op(b, OP_CLOSURE, twice);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    run_start("wait", &end, NULL);
    run_all();
    ck_assert_str_eq(run_host_text(&host, end.value), "42");
    run_end_clear(&end);
    run_start("again", &end, NULL);
    run_all();
    expect_error(&end, "closed", "task.wait");
    builder_clear(&host.output);
    run_start("forget", &end, NULL);
    run_all();
    ck_assert_str_eq(run_host_printed(&host), "parent done\n");
    expect_error(&end, "type", "'+' does not work between nil and nil");
    run_start("count", &end, NULL);
    run_all();
    expect_error(&end, "call", "twice takes 1 arguments, not 0");
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* A parent whose body has ended still waits for its children; cancelling it cancels them. */
START_TEST(test_cancel_reaches_children)
{
    build_begin();
    uint32_t child = build_function("child", 0, 0);
    build_sleep();
    pb_op(b, OP_RETURN);
    uint32_t middle = build_function("middle", 0, 0);
    pb_op(b, OP_CLOSURE, child);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_RETURN);
    build_function("main", 0, 0);
    pb_op(b, OP_CLOSURE, middle);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_POP);
    pb_op(b, OP_INT8, 1);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    struct fiber *fiber;
    run_start("main", &end, &fiber);
    run_all();
    ck_assert(!end.ended);
    ck_assert_uint_eq(vm_fiber_count(host.vm), 3);
    vm_cancel(host.vm, fiber);
    run_all();
    expect_error(&end, "cancelled", "the task was stopped");
    ck_assert_uint_eq(host.cancel_count, 1);
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    run_host_close(&host);
}
END_TEST

/* A task whose only act is to spawn itself is reached by one cancel: nobody spawns once the tree was asked. */
START_TEST(test_cancel_outruns_a_task_that_spawns_itself)
{
    build_begin();
    uint32_t self = build_function("again", 0, 0);
    pb_op(b, OP_CLOSURE, self);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_POP);
    build_sleep();
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    struct fiber *fiber;
    run_start("again", &end, &fiber);
    for (int turn = 0; turn < 20; turn++) (void)vm_run(host.vm);
    uint32_t alive = vm_fiber_count(host.vm);
    ck_assert_uint_ge(alive, 20);
    vm_cancel(host.vm, fiber);
    for (uint32_t turn = 0; turn < 2 * alive && vm_fiber_count(host.vm) > 0; turn++) {
        (void)vm_run(host.vm);
        ck_assert_uint_le(vm_fiber_count(host.vm), alive);
    }
    ck_assert_uint_eq(vm_fiber_count(host.vm), 0);
    ck_assert(end.ended);
    run_host_close(&host);
}
END_TEST

/* -- handles --------------------------------------------------------------------------------------------- */

static int handle_closed;
static void handle_on_close(struct vm *vm, void *object)
{
    (void)vm;
    handle_closed += *(int *)object;
}
static bool handle_on_field(struct vm *vm, void *object, cy_bytes name, cy_value *owned_out, cy_err *err_out)
{
    (void)vm;
    (void)err_out;
    if (!cy_bytes_equal(name, CY_BYTES("number"))) return false;
    *owned_out = value_int(*(int *)object);
    return true;
}
static const struct handle_type handle_type_test = {"thing", handle_on_close, handle_on_field};

START_TEST(test_handles)
{
    ck_assert(run_host_open(&host, NULL, 0));
    int one = 1, ten = 10;
    handle_closed = 0;
    cy_value a, c;
    ck_assert(!cy_failed(handle_open(host.vm, &handle_type_test, &one, NULL, &a)));
    ck_assert_ptr_eq(handle_object(host.vm, a, &handle_type_test), &one);
    static const struct handle_type other = {"other", NULL, NULL};
    ck_assert_ptr_null(handle_object(host.vm, a, &other));
    ck_assert_ptr_null(handle_object(host.vm, value_int(0), &handle_type_test));
    handle_close(host.vm, a);
    handle_close(host.vm, a);
    ck_assert_int_eq(handle_closed, 1);
    ck_assert_ptr_null(handle_object(host.vm, a, &handle_type_test));
    ck_assert_str_eq(handle_type_name(host.vm, a), "thing");
    /* The slot is used again; the old value stays closed. */
    ck_assert(!cy_failed(handle_open(host.vm, &handle_type_test, &ten, NULL, &c)));
    ck_assert_uint_eq((uint32_t)c.as.handle, (uint32_t)a.as.handle);
    ck_assert_ptr_null(handle_object(host.vm, a, &handle_type_test));
    ck_assert(!value_equal(host.vm, a, c));
    run_host_close(&host);
    ck_assert_int_eq(handle_closed, 11);
}
END_TEST

/* A handle closes with the task that owns it; passed to spawn it belongs to the child. */
START_TEST(test_handle_ownership)
{
    build_begin();
    uint32_t child = build_function("child", 1, 1);
    build_sleep();
    pb_op(b, OP_POP);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_FIELD_GET, pb_str(b, "number"));
    pb_op(b, OP_RETURN);
    build_function("main", 1, 2);
    build_sleep(); /* the test opens a handle for this fiber and passes it in */
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CLOSURE, child);
    pb_op(b, OP_LOCAL_GET, 0);
    pb_op(b, OP_SPAWN, 1);
    pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
    pb_op(b, OP_LOCAL_SET, 1);
    pb_op(b, OP_LOCAL_GET, 0); /* closed now: its owner has ended */
    pb_op(b, OP_FIELD_GET, pb_str(b, "number"));
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    struct fiber *fiber;
    cy_value nil = value_nil(), handle;
    int seven = 7;
    handle_closed = 0;
    ck_assert(!cy_failed(run_host_start(&host, "main", &nil, 1, &end, &fiber)));
    run_all();
    ck_assert(!cy_failed(handle_open(host.vm, &handle_type_test, &seven, fiber, &handle)));
    vm_complete(host.vm, host.ticket, handle);
    run_all();
    ck_assert_int_eq(handle_closed, 0);
    vm_complete(host.vm, host.ticket, nil);
    run_all();
    ck_assert_int_eq(handle_closed, 7);
    expect_error(&end, "closed", "this thing is closed");
    run_host_close(&host);
}
END_TEST

/* A handle of nobody is given to the task started for it: it closes with that task, or with the child it went to. */
START_TEST(test_a_handle_is_given)
{
    for (int spawned = 0; spawned < 2; spawned++) {
        build_begin();
        uint32_t child = build_function("child", 1, 1);
        build_sleep();
        pb_op(b, OP_POP);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_FIELD_GET, pb_str(b, "number"));
        pb_op(b, OP_RETURN);
        build_function("main", 1, 1);
        if (spawned) {
            pb_op(b, OP_CLOSURE, child);
            pb_op(b, OP_LOCAL_GET, 0);
            pb_op(b, OP_SPAWN, 1);
            pb_op(b, OP_POP);
        }
        pb_op(b, OP_NIL);
        pb_op(b, OP_RETURN);
        build_open(0);
        struct run_end end;
        struct fiber *fiber;
        cy_value handle;
        int seven = 7;
        handle_closed = 0;
        ck_assert(!cy_failed(handle_open(host.vm, &handle_type_test, &seven, NULL, &handle)));
        ck_assert(!cy_failed(run_host_start(&host, "main", &handle, 1, &end, &fiber)));
        handle_give(host.vm, handle, fiber);
        run_all();
        ck_assert_int_eq(handle_closed, spawned ? 0 : 7);
        if (spawned) vm_complete(host.vm, host.ticket, value_nil());
        run_all();
        ck_assert(end.ended && end.outcome == CALL_RETURNED);
        ck_assert_int_eq(handle_closed, 7);
        handle_give(host.vm, handle, NULL); /* closed: harmless */
        run_host_close(&host);
    }
}
END_TEST

/* All fibers of one instance are stopped, those of another go on. */
START_TEST(test_cancel_instance)
{
    build_begin();
    build_function("main", 0, 0);
    build_sleep();
    pb_op(b, OP_RETURN);
    build_open(0);
    struct instance *second;
    ck_assert(!cy_failed(instance_new(host.vm, host.program, &second, NULL)));
    struct run_end ends[3];
    for (int i = 0; i < 3; i++) {
        if (i == 2) { /* the last one in the other instance */
            struct instance *first = host.instance;
            host.instance = second;
            second = first;
        }
        run_start("main", &ends[i], NULL);
        run_all();
    }
    vm_cancel_instance(host.vm, second);
    run_all();
    ck_assert(ends[0].ended && ends[0].outcome == CALL_STOPPED);
    ck_assert(ends[1].ended && !ends[2].ended);
    ck_assert_uint_eq(host.cancel_count, 2);
    instance_unref(host.vm, &second);
    vm_complete(host.vm, host.ticket, value_nil());
    run_all();
    ck_assert(ends[2].ended && ends[2].outcome == CALL_RETURNED);
    run_host_close(&host);
}
END_TEST

/* A native of the main task works there and nowhere else, not in its children either. */
START_TEST(test_main_only)
{
    build_begin();
    uint32_t leave = build_function("leave", 0, 0);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_NATIVE, pb_native(b, "process.exit"), 1);
    pb_op(b, OP_RETURN);
    build_function("child", 0, 0);
    pb_op(b, OP_CLOSURE, leave);
    pb_op(b, OP_SPAWN, 0);
    pb_op(b, OP_NATIVE, pb_native(b, "task.wait"), 1);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    struct fiber *fiber;
    for (int marked = 0; marked < 2; marked++) {
        run_start("leave", &end, &fiber);
        if (marked) vm_mark_main(host.vm, fiber);
        run_all();
        ck_assert_int_eq(host.wait_count, (uint32_t)marked);
        if (!marked) expect_error(&end, "unsupported", "process.exit: works in the main task only");
    }
    vm_complete(host.vm, host.ticket, value_nil());
    run_all();
    run_start("child", &end, &fiber);
    vm_mark_main(host.vm, fiber);
    run_all();
    expect_error(&end, "unsupported", "process.exit: works in the main task only");
    run_start("leave", &end, NULL); /* the mark does not stay with a pooled fiber */
    run_all();
    expect_error(&end, "unsupported", "process.exit");
    run_host_close(&host);
}
END_TEST

/* An initialiser may not wait, spawn, or run for ever; the instance is refused with the reason. */
START_TEST(test_initialisers)
{
    static const char *const starts[] = {"task.sleep: initialisers may not wait",
                                         "spawn: initialisers may not wait", "the initialisers were stopped"};
    for (int i = 0; i < 3; i++) {
        build_begin();
        uint32_t init = pb_function(b, "", 0, 0, 0);
        if (i == 0) build_sleep();
        if (i == 1) {
            pb_op(b, OP_CLOSURE, init);
            pb_op(b, OP_SPAWN, 0);
        }
        if (i == 2)
            build_endless();
        else
            pb_op(b, OP_RETURN);
        pb_init(b, init);
        struct program *program = program_builder_finish(&b, true);
        ck_assert(run_host_open(&host, NULL, 0));
        host.tick_ns = 50 * 1000000;
        struct instance *instance;
        cy_value error;
        ck_assert(cy_failed(instance_new(host.vm, program, &instance, &error)));
        cy_bytes message = error_message(host.vm, error);
        ck_assert_msg(cy_bytes_start_with(message, cy_bytes_from_text(starts[i])), "%.*s",
                      CY_BYTES_ARG(message));
        value_unref(host.vm, error);
        program_free(&program);
        run_host_close(&host);
    }
}
END_TEST

/* A function value that outlives its instance keeps the code; it cannot be called any more and nothing
 * dangles. */
START_TEST(test_function_outlives_its_instance)
{
    build_begin();
    uint32_t inner = 1;
    build_function("main", 0, 1);
    pb_op(b, OP_INT8, 4);
    pb_op(b, OP_LOCAL_SET, 0);
    pb_op(b, OP_CLOSURE, inner);
    pb_op(b, OP_RETURN);
    pb_function(b, "inner", 0, 0, 0);
    pb_parent(b, 0);
    pb_capture(b, true, 0);
    pb_op(b, OP_CAPTURE_GET, 0);
    pb_op(b, OP_RETURN);
    build_open(0);
    struct run_end end;
    run_host_main(&host, &end);
    struct instance *second;
    ck_assert(!cy_failed(instance_new(host.vm, host.program, &second, NULL)));
    ck_assert(cy_is(vm_start(host.vm, second, end.value, NULL, 0, NULL, NULL, NULL), CY_ERR_CALL));
    instance_unref(host.vm, &second);
    instance_unref(host.vm, &host.instance);
    ck_assert_str_eq(run_host_text(&host, end.value), "function inner");
    run_end_clear(&end);
    ck_assert_ptr_null(host.vm->instances);
    run_host_close(&host);
}
END_TEST

Suite *unit_suite_run_fiber(void);
Suite *unit_suite_run_fiber(void)
{
    Suite *suite = suite_create("run_fiber");
    TCase *tests = tcase_create("fiber");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, test_endless_loop_yields_and_is_stopped);
    tcase_add_test(tests, test_endless_defer_is_cut_off);
    tcase_add_test(tests, test_wait_and_wake);
    tcase_add_test(tests, test_cancel);
    tcase_add_test(tests, test_free_with_parked_fibers);
    tcase_add_test(tests, test_call_depth);
    tcase_add_test(tests, test_memory_limit_is_an_error);
    tcase_add_test(tests, test_children);
    tcase_add_test(tests, test_cancel_reaches_children);
    tcase_add_test(tests, test_cancel_outruns_a_task_that_spawns_itself);
    tcase_add_test(tests, test_handles);
    tcase_add_test(tests, test_handle_ownership);
    tcase_add_test(tests, test_a_handle_is_given);
    tcase_add_test(tests, test_cancel_instance);
    tcase_add_test(tests, test_main_only);
    tcase_add_test(tests, test_initialisers);
    tcase_add_test(tests, test_function_outlives_its_instance);
    suite_add_tcase(suite, tests);
    return suite;
}
