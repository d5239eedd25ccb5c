/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/old_instances_test.c: proves, on a simulated clock, that requests cannot keep more than
 * OLD_INSTANCES old instances alive: the oldest ones get OLD_INSTANCE_GRACE_MS and are cancelled then, not before; the
 * others stay for as long as their requests run; one without requests is let go.
 */
#include "vm/native/old_instances.h"

#include "tests/support/loop_sim.h"
#include "tests/unit/run/run_source.h"
#include "vm/base/limits.h"
#include "vm/run/fiber.h"

#include <check.h>

enum { OLD_TEST_INSTANCES = LIMIT_OLD_INSTANCES + 2, OLD_TEST_LOOK_MS = 1000 };

static const char source[] =
    "import \"task\"\n"
    "export fn handle() { defer { print(\"stopped\") } task.sleep(1) print(\"woke\") }\n"
    "export fn main(args) { }\n";

static struct run_host host;
static struct loop *loop;
static struct old_instances old;
static struct run_end ends[OLD_TEST_INSTANCES];
static wait_ticket tickets[OLD_TEST_INSTANCES];
static struct timer step_timer;
static bool step_fired;

static bool old_test_hook(void *context)
{
    (void)context;
    return vm_run(host.vm);
}
static void old_test_step_end(struct timer *timer)
{
    (void)timer;
    step_fired = true;
}
/* Turns the loop until `ms` have passed on its clock. */
static void old_test_pass(uint64_t ms)
{
    step_fired = false;
    step_timer.fire = old_test_step_end;
    loop_timer_set(loop, &step_timer, ms);
    while (!step_fired) ck_assert(!cy_failed(loop_turn(loop)));
    while (vm_run(host.vm)) {}
}

static void old_test_done(struct vm *vm, void *context, enum call_outcome outcome, cy_value value,
                          cy_err stop)
{
    struct run_end *end = context;
    (void)vm;
    (void)value;
    end->ended = true;
    end->outcome = outcome;
    end->stop = stop;
}

/* A new instance, with a request that waits when `busy`; it is old at once. */
static void old_test_add(uint32_t index, bool busy)
{
    struct instance *instance;
    cy_value handle;
    ck_assert(!cy_failed(instance_new(host.vm, host.program, &instance, NULL)));
    ends[index] = (struct run_end){.host = &host};
    if (busy) {
        ck_assert(!cy_failed(instance_export(instance, CY_BYTES("handle"), &handle)));
        ck_assert(
            !cy_failed(vm_start(host.vm, instance, handle, NULL, 0, old_test_done, &ends[index], NULL)));
        while (vm_run(host.vm)) {}
        tickets[index] = host.ticket;
    }
    old_instances_add(&old, instance);
}

static void old_test_open(void)
{
    struct loop_sim_options options = {.seed = 3};
    struct loop_sim *sim;
    run_source_open(&host, source, 64 << 20, 16 << 20);
    ck_assert(!cy_failed(loop_sim_new(&options, &loop, &sim)));
    loop_set_hook(loop, old_test_hook, NULL);
    old_instances_init(&old, loop, host.vm);
}

static void old_test_close(void)
{
    old_instances_fini(&old);
    loop_set_hook(loop, NULL, NULL);
    ck_assert(!cy_failed(loop_flush(loop)));
    run_host_close(&host);
    loop_free(&loop);
}

START_TEST(test_an_unused_instance_is_let_go)
{
    old_test_open();
    old_test_add(0, false);
    old_test_add(1, true);
    ck_assert_uint_eq(old_instances_count(&old), 2);
    old_test_pass(1);
    ck_assert_uint_eq(old_instances_count(&old), 1);
    vm_complete(host.vm, tickets[1], value_nil());
    old_test_pass(OLD_TEST_LOOK_MS + 1);
    ck_assert(ends[1].ended && ends[1].outcome == CALL_RETURNED);
    ck_assert_uint_eq(old_instances_count(&old), 0);
    old_test_close();
}
END_TEST

/* At OLD_INSTANCES nobody is cancelled, however long it takes. */
START_TEST(test_as_many_as_the_limit_stay)
{
    old_test_open();
    for (uint32_t i = 0; i < LIMIT_OLD_INSTANCES; i++) old_test_add(i, true);
    old_test_pass((uint64_t)100 * LIMIT_OLD_INSTANCE_GRACE_MS);
    for (uint32_t i = 0; i < LIMIT_OLD_INSTANCES; i++) ck_assert(!ends[i].ended);
    ck_assert_uint_eq(old_instances_count(&old), LIMIT_OLD_INSTANCES);
    old_test_close();
}
END_TEST

/* One past OLD_INSTANCES: the oldest has exactly OLD_INSTANCE_GRACE_MS; another one's begins when a newer one comes. */
START_TEST(test_past_the_limit_the_oldest_get_a_grace)
{
    old_test_open();
    for (uint32_t i = 0; i <= LIMIT_OLD_INSTANCES; i++) old_test_add(i, true);
    old_test_pass(LIMIT_OLD_INSTANCE_GRACE_MS - 1);
    ck_assert(!ends[0].ended);
    old_test_add(LIMIT_OLD_INSTANCES + 1, true);
    old_test_pass(OLD_TEST_LOOK_MS + 1);
    ck_assert(ends[0].ended && ends[0].outcome == CALL_STOPPED);
    ck_assert(cy_is(ends[0].stop, CY_ERR_STOP_CANCELLED));
    ck_assert_str_eq(run_host_printed(&host), "stopped\n");
    old_test_pass(LIMIT_OLD_INSTANCE_GRACE_MS - 2 * OLD_TEST_LOOK_MS);
    ck_assert(!ends[1].ended);
    old_test_pass(2 * OLD_TEST_LOOK_MS);
    ck_assert(ends[1].ended && ends[1].outcome == CALL_STOPPED);
    for (uint32_t i = 2; i < OLD_TEST_INSTANCES; i++) ck_assert(!ends[i].ended);
    old_test_pass((uint64_t)10 * LIMIT_OLD_INSTANCE_GRACE_MS);
    ck_assert_uint_eq(old_instances_count(&old), LIMIT_OLD_INSTANCES);
    for (uint32_t i = 2; i < OLD_TEST_INSTANCES; i++) ck_assert(!ends[i].ended);
    old_test_close();
}
END_TEST

Suite *unit_suite_native_old_instances(void);
Suite *unit_suite_native_old_instances(void)
{
    Suite *suite = suite_create("native_old_instances");
    TCase *tests = tcase_create("old_instances");
    tcase_add_test(tests, test_an_unused_instance_is_let_go);
    tcase_add_test(tests, test_as_many_as_the_limit_stay);
    tcase_add_test(tests, test_past_the_limit_the_oldest_get_a_grace);
    suite_add_tcase(suite, tests);
    return suite;
}
