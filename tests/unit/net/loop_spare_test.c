/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/loop_spare_test.c: proves, on the simulated clock, when the loop trims lists of spare blocks: not
 * before SPARE_TRIM_MS, then each time until no list holds more than at rest, and again after the next burst. A loop
 * whose lists rest has no timer for them, nor has one whose lists went.
 */
#include "tests/support/loop_sim.h"
#include "vm/base/limits.h"
#include "vm/base/spare.h"
#include "vm/net/loop_internal.h"

#include <check.h>

enum { SPARE_REST = 10, SPARE_BLOCK_BYTES = 64 };

struct spare_world {
    struct loop *loop;
    struct loop_sim *sim;
    struct spare_list list;
};

static void spare_open(struct spare_world *world)
{
    struct loop_sim_options options = {.seed = 3};
    ck_assert(!cy_failed(loop_sim_new(&options, &world->loop, &world->sim)));
    spare_init(&world->list, loop_spares(world->loop), SPARE_BLOCK_BYTES, SPARE_REST);
}

/* `count` blocks are in use at once, and come back. */
static void spare_use(struct spare_world *world, uint32_t count)
{
    void *blocks[1000];
    ck_assert_uint_le(count, CY_COUNT_OF(blocks));
    for (uint32_t i = 0; i < count; i++) {
        blocks[i] = spare_take(&world->list);
        if (!blocks[i]) blocks[i] = mem_alloc(SPARE_BLOCK_BYTES);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    for (uint32_t i = 0; i < count; i++) spare_put(&world->list, blocks[i]);
}

static void spare_ignore_fire(struct timer *timer) { (void)timer; }

/* So much time passes, to the millisecond. */
static void spare_wait(struct spare_world *world, uint64_t ms)
{
    struct timer alarm = {.fire = spare_ignore_fire};
    loop_timer_set(world->loop, &alarm, ms);
    while (timer_is_set(&alarm)) ck_assert(!cy_failed(loop_turn(world->loop)));
}

START_TEST(test_trimmed_each_interval_until_all_rest)
{
    struct spare_world world;
    spare_open(&world);
    for (int burst = 0; burst < 2; burst++) {
        spare_use(&world, SPARE_REST);
        ck_assert(!timer_is_set(&world.loop->spares_timer));
        spare_use(&world, 1000);
        ck_assert(timer_is_set(&world.loop->spares_timer));
        spare_wait(&world, LIMIT_SPARE_TRIM_MS - 2); /* the wheel is a millisecond or so coarse */
        ck_assert_uint_eq(world.list.count, 1000);
        uint32_t before = 1000;
        spare_wait(&world, 4); /* the interval in which they came; the next one gives back half */
        for (int interval = 0; timer_is_set(&world.loop->spares_timer); interval++) {
            ck_assert_int_lt(interval, 12);
            spare_wait(&world, LIMIT_SPARE_TRIM_MS);
            ck_assert_uint_lt(world.list.count, before);
            if (interval > 0) ck_assert_uint_ge(world.list.count, before / 2 - 1);
            before = world.list.count;
        }
        ck_assert_uint_eq(world.list.count, SPARE_REST);
        spare_wait(&world, 100 * LIMIT_SPARE_TRIM_MS);
        ck_assert_uint_eq(world.list.count, SPARE_REST);
    }
    spare_fini(&world.list);
    loop_free(&world.loop);
}
END_TEST

/* What each interval needs stays. */
START_TEST(test_what_an_interval_needs_stays)
{
    struct spare_world world;
    spare_open(&world);
    spare_use(&world, 1000);
    for (int i = 0; i < 40; i++) {
        spare_wait(&world, LIMIT_SPARE_TRIM_MS);
        spare_use(&world, 300);
    }
    ck_assert_uint_ge(world.list.count, 300);
    ck_assert_uint_le(world.list.count, 301);
    uint64_t before = mem_allocation_count();
    for (int i = 0; i < 5; i++) {
        spare_use(&world, 300);
        ck_assert_uint_eq(mem_allocation_count() - before, 0);
        spare_wait(&world, LIMIT_SPARE_TRIM_MS);
        before = mem_allocation_count();
    }
    ck_assert(timer_is_set(&world.loop->spares_timer));
    spare_fini(&world.list); /* out of the watch; the timer finds no list */
    spare_wait(&world, 2 * LIMIT_SPARE_TRIM_MS);
    ck_assert(!timer_is_set(&world.loop->spares_timer));
    loop_free(&world.loop);
}
END_TEST

Suite *unit_suite_net_loop_spare(void);
Suite *unit_suite_net_loop_spare(void)
{
    Suite *suite = suite_create("net_loop_spare");
    TCase *tests = tcase_create("spare");
    tcase_add_test(tests, test_trimmed_each_interval_until_all_rest);
    tcase_add_test(tests, test_what_an_interval_needs_stays);
    suite_add_tcase(suite, tests);
    return suite;
}
