/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/timer_test.c: proves that the wheel fires exactly what a naive list of due times would, never
 * early, for random sets, moves, clears and jumps of the clock; and that `fire` may do anything to its own and
 * other timers.
 */
#include "vm/net/timer.h"

#include <check.h>
#include <stdlib.h>

enum { TIMER_TEST_COUNT = 200, TIMER_TEST_STEPS = 4000 };

struct timer_model {
    struct timer timer;
    uint64_t due_ms; /* 0: not set */
};
struct timer_model_wheel {
    struct timer_wheel *wheel;
    struct timer_model timers[TIMER_TEST_COUNT];
    uint64_t now_ms;
    uint64_t state;
    int fired_count;
};
/* fire gets a timer only, so the test's world stands here; one test runs at a time. */
static struct timer_model_wheel *timer_test_world;

static uint64_t timer_test_random(uint64_t below)
{
    uint64_t z = timer_test_world->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % below;
}

static void timer_test_fire(struct timer *timer)
{
    struct timer_model *model = CY_CONTAINER_OF(timer, struct timer_model, timer);
    ck_assert_uint_ne(model->due_ms, 0);
    ck_assert_uint_le(model->due_ms, timer_test_world->now_ms); /* never early */
    ck_assert(!timer_is_set(timer));
    model->due_ms = 0;
    timer_test_world->fired_count++;
}

static uint64_t timer_test_span(void)
{
    static const uint64_t spans[] = {1, 10, 64, 65, 1000, 4096, 60000, 300000, 20000000, (uint64_t)1 << 40};
    return timer_test_random(spans[timer_test_random(CY_COUNT_OF(spans))] + 1);
}

START_TEST(test_wheel_equals_a_naive_model)
{
    struct timer_model_wheel world = {.state = (uint64_t)_i * 7919 + 1};
    timer_test_world = &world;
    world.now_ms = timer_test_span() + 1;
    world.wheel = timer_wheel_new(world.now_ms);
    for (size_t i = 0; i < TIMER_TEST_COUNT; i++) world.timers[i].timer.fire = timer_test_fire;
    for (int step = 0; step < TIMER_TEST_STEPS; step++) {
        struct timer_model *model = &world.timers[timer_test_random(TIMER_TEST_COUNT)];
        switch (timer_test_random(8)) {
        case 0:
            timer_wheel_clear(world.wheel, &model->timer);
            model->due_ms = 0;
            break;
        case 1:
        case 2: {
            uint64_t next_ms = timer_wheel_next_ms(world.wheel), earliest_ms = UINT64_MAX;
            for (size_t i = 0; i < TIMER_TEST_COUNT; i++)
                if (world.timers[i].due_ms && world.timers[i].due_ms < earliest_ms)
                    earliest_ms = world.timers[i].due_ms;
            if (earliest_ms != UINT64_MAX && earliest_ms > world.now_ms)
                ck_assert_uint_le(next_ms, earliest_ms);
            /* What the loop does, or a jump. */
            world.now_ms = timer_test_random(2) && next_ms != UINT64_MAX && next_ms > world.now_ms
                               ? next_ms
                               : world.now_ms + timer_test_span();
            timer_wheel_advance(world.wheel, world.now_ms);
            for (size_t i = 0; i < TIMER_TEST_COUNT; i++) /* all that were due have fired */
                ck_assert(world.timers[i].due_ms == 0 || world.timers[i].due_ms > world.now_ms);
            break;
        }
        default:
            model->due_ms = world.now_ms + timer_test_span();
            timer_wheel_set(world.wheel, &model->timer, model->due_ms);
            ck_assert(timer_is_set(&model->timer));
        }
    }
    ck_assert_int_gt(world.fired_count, 100);
    for (size_t i = 0; i < TIMER_TEST_COUNT; i++) timer_wheel_clear(world.wheel, &world.timers[i].timer);
    ck_assert_uint_eq(timer_wheel_next_ms(world.wheel), UINT64_MAX);
    timer_wheel_free(&world.wheel);
    ck_assert_ptr_null(world.wheel);
}
END_TEST

struct timer_test_chain {
    struct timer timer;
    struct timer_wheel *wheel;
    struct timer *clear;
    uint64_t again_ms;
    int fired_count;
    bool free_self;
};
static void timer_test_chain_fire(struct timer *timer)
{
    struct timer_test_chain *chain = CY_CONTAINER_OF(timer, struct timer_test_chain, timer);
    chain->fired_count++;
    if (chain->clear) timer_wheel_clear(chain->wheel, chain->clear);
    if (chain->again_ms) timer_wheel_set(chain->wheel, timer, chain->again_ms);
    if (chain->free_self) free(chain);
}

START_TEST(test_set_inside_fire_waits_for_the_next_advance)
{
    struct timer_wheel *wheel = timer_wheel_new(100);
    struct timer_test_chain chain = {.timer.fire = timer_test_chain_fire, .wheel = wheel, .again_ms = 150};
    timer_wheel_set(wheel, &chain.timer, 110);
    timer_wheel_advance(wheel, 200); /* 150 is past too, but was set inside */
    ck_assert_int_eq(chain.fired_count, 1);
    ck_assert_uint_le(timer_wheel_next_ms(wheel), 200);
    chain.again_ms = 0;
    timer_wheel_advance(wheel, 200);
    ck_assert_int_eq(chain.fired_count, 2);
    timer_wheel_free(&wheel);
}
END_TEST

START_TEST(test_fire_may_clear_a_neighbour_and_free_itself)
{
    struct timer_wheel *wheel = timer_wheel_new(1);
    struct timer_test_chain *first = calloc(1, sizeof *first);
    struct timer_test_chain second = {.timer.fire = timer_test_chain_fire, .wheel = wheel};
    *first = (struct timer_test_chain){
        .timer.fire = timer_test_chain_fire, .wheel = wheel, .clear = &second.timer, .free_self = true};
    timer_wheel_set(wheel, &first->timer, 5000);
    timer_wheel_set(wheel, &second.timer, 5000);
    timer_wheel_advance(wheel, 4999);
    timer_wheel_advance(wheel, 5000);
    ck_assert_int_eq(second.fired_count, 0);
    ck_assert(!timer_is_set(&second.timer));
    timer_wheel_free(&wheel);
}
END_TEST

START_TEST(test_moving_to_later_and_to_earlier)
{
    struct timer_wheel *wheel = timer_wheel_new(1000);
    struct timer_test_chain chain = {.timer.fire = timer_test_chain_fire, .wheel = wheel};
    timer_wheel_set(wheel, &chain.timer, 1010);
    timer_wheel_set(wheel, &chain.timer, 61000);
    timer_wheel_advance(wheel, 60999);
    ck_assert_int_eq(chain.fired_count, 0);
    timer_wheel_set(wheel, &chain.timer, 61005);
    timer_wheel_set(wheel, &chain.timer, 61001);
    timer_wheel_advance(wheel, 61001);
    ck_assert_int_eq(chain.fired_count, 1);
    timer_wheel_set(wheel, &chain.timer, 7); /* the past: at the next advance */
    timer_wheel_advance(wheel, 61001);
    ck_assert_int_eq(chain.fired_count, 2);
    timer_wheel_set(wheel, &chain.timer, UINT64_MAX); /* clamped, and cleared without a trace */
    timer_wheel_clear(wheel, &chain.timer);
    timer_wheel_clear(wheel, &chain.timer);
    timer_wheel_free(&wheel);
}
END_TEST

Suite *unit_suite_net_timer(void);
Suite *unit_suite_net_timer(void)
{
    Suite *suite = suite_create("net/timer");
    TCase *tests = tcase_create("wheel");
    tcase_add_loop_test(tests, test_wheel_equals_a_naive_model, 0, 20);
    tcase_add_test(tests, test_set_inside_fire_waits_for_the_next_advance);
    tcase_add_test(tests, test_fire_may_clear_a_neighbour_and_free_itself);
    tcase_add_test(tests, test_moving_to_later_and_to_earlier);
    suite_add_tcase(suite, tests);
    return suite;
}
