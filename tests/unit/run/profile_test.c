/* SPDX-License-Identifier: MIT
 *
 * tests/unit/run/profile_test.c: proves that a profile sees what ran, weighs it by steps or by the clock, keeps a
 * period over turns, names natives that charged, and stays within its bounds.
 */
#include "vm/run/profile.h"

#include "tests/unit/run/run_host.h"
#include "vm/base/limits.h"
#include "vm/run/vm_internal.h"

#include <check.h>
#include <stdio.h>

static struct run_host host;
static struct program_builder *b;
static struct profile *profile;

static void build_function(const char *name, uint8_t params, uint16_t locals)
{
    pb_export(b, name, EXPORT_FUNCTION, pb_function(b, name, params, params, locals));
    pb_line(b, 10, 5);
}

/* fn NAME() { for i in 0..rounds { callee() } }, or an empty body for callee UINT32_MAX. */
static void build_loop(const char *name, int64_t rounds, uint32_t callee)
{
    build_function(name, 0, 1);
    uint32_t out = pb_label(b), again = pb_label(b);
    pb_op(b, OP_INT8, 0);
    pb_op(b, OP_CONST, pb_int(b, rounds));
    pb_op(b, OP_INTLOOP_BEGIN);
    pb_place(b, again);
    pb_op(b, OP_INTLOOP_NEXT, 0, out);
    if (callee != UINT32_MAX) {
        pb_op(b, OP_CALL_FUNCTION, callee, 0);
        pb_op(b, OP_POP);
    }
    pb_op(b, OP_LOOP, again);
    pb_place(b, out);
    pb_op(b, OP_INTLOOP_END);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
}

/* main() calls 안쪽() 5 times; each loops 2000 times. short() only returns. */
static void open_program(enum profile_unit unit, uint32_t period, uint32_t frames_max)
{
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    build_loop("안쪽", 2000, UINT32_MAX);
    build_loop("main", 5, 0);
    build_function("short", 0, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    ck_assert(!cy_failed(profile_new(unit, period, frames_max, &profile)));
    host.vm->options.profile = profile;
}

static const char *folded(void)
{
    builder_clear(&host.output);
    profile_write_folded(profile, &host.output);
    return run_host_printed(&host);
}

static void close_program(void)
{
    run_host_close(&host);
    profile_free(&profile);
    ck_assert_ptr_null(profile);
}

START_TEST(test_steps_are_the_same_on_every_run)
{
    char first[200] = "";
    for (int run = 0; run < 2; run++) {
        open_program(PROFILE_STEPS, 100, 0);
        struct run_end end;
        run_host_main(&host, &end);
        ck_assert(end.ended && end.outcome == CALL_RETURNED);
        if (run == 0) snprintf(first, sizeof first, "%s", folded());
        ck_assert_str_eq(folded(), first);
        close_program();
    }
    /* About 10,000 back edges and a few calls, nearly all in the inner loop: 99 samples of 101 steps. */
    unsigned long inner = 0;
    ck_assert_int_eq(sscanf(strstr(first, "main;안쪽 "), "main;안쪽 %lu", &inner), 1);
    ck_assert_uint_ge(inner, 9800);
    ck_assert_uint_le(inner, 10100);
}
END_TEST

START_TEST(test_time_is_the_clock)
{
    open_program(PROFILE_TIME, 100, 0);
    host.tick_ns = 7; /* a look at the clock before and behind each turn: 7 ns a turn */
    struct run_end end;
    run_host_main(&host, &end);
    unsigned long total = 0, weight;
    for (const char *line = folded(); *line; line = strchr(line, '\n') + 1) {
        ck_assert_int_eq(sscanf(line + strcspn(line, " "), " %lu", &weight), 1);
        total += weight;
    }
    ck_assert_uint_eq(total, 7 * profile_sample_count(profile));
    ck_assert_uint_ge(profile_sample_count(profile), 90);
    close_program();
}
END_TEST

/* Calls of two steps never use up a budget of their own; a hundred of them use up a period. */
START_TEST(test_short_calls_are_seen_too)
{
    open_program(PROFILE_STEPS, 50, 0);
    struct run_end end;
    for (int i = 0; i < 500; i++) {
        ck_assert(!cy_failed(run_host_start(&host, "short", NULL, 0, &end, NULL)));
        while (vm_run(host.vm)) {}
        ck_assert(end.ended);
    }
    uint64_t short_samples = profile_sample_count(profile);
    close_program();
    ck_assert_uint_eq(short_samples, 0); /* a call of the host charges nothing: nothing to sample */
    b = program_builder_new();
    pb_module(b, "main", "main.han");
    build_function("leaf", 0, 0);
    pb_op(b, OP_NIL);
    pb_op(b, OP_RETURN);
    build_function("request", 0, 0);
    pb_op(b, OP_CALL_FUNCTION, 0, 0);
    pb_op(b, OP_RETURN);
    ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
    ck_assert(!cy_failed(profile_new(PROFILE_STEPS, 50, 0, &profile)));
    host.vm->options.profile = profile;
    for (int i = 0; i < 510; i++) {
        ck_assert(!cy_failed(run_host_start(&host, "request", NULL, 0, &end, NULL)));
        while (vm_run(host.vm)) {}
        ck_assert(end.ended);
    }
    ck_assert_str_eq(folded(), "request;leaf 510\n"); /* 10 samples of 51 steps */
    close_program();
}
END_TEST

START_TEST(test_past_its_frames_weight_stays_outside)
{
    ck_assert_int_eq(LIMIT_PROFILE_FRAMES, 65536); /* the default of what is 2 and 3 here */
    for (uint32_t frames_max = 2; frames_max <= 3; frames_max++) {
        open_program(PROFILE_STEPS, 100, frames_max); /* the root, main, 안쪽 */
        struct run_end end;
        run_host_main(&host, &end);
        bool fits = frames_max == 3;
        ck_assert(fits == (strstr(folded(), "안쪽") != NULL));
        ck_assert(fits == (profile_cut_count(profile) == 0));
        ck_assert_uint_ge(profile_sample_count(profile), 90);
        close_program();
    }
}
END_TEST

/* fn main(n) { if n == 0 { LOOP } else { main(n - 1) } } */
START_TEST(test_depth_at_and_past_the_limit)
{
    for (int past = 0; past < 2; past++) {
        b = program_builder_new();
        pb_module(b, "main", "main.han");
        build_loop("안쪽", 2000, UINT32_MAX);
        build_function("main", 1, 1);
        uint32_t deeper = pb_label(b);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_INT8, 0);
        pb_op(b, OP_NE);
        pb_op(b, OP_JUMP_IF_TRUE, deeper);
        pb_op(b, OP_CALL_FUNCTION, 0, 0);
        pb_op(b, OP_RETURN);
        pb_place(b, deeper);
        pb_op(b, OP_LOCAL_GET, 0);
        pb_op(b, OP_INT8, 1);
        pb_op(b, OP_SUB);
        pb_op(b, OP_CALL_FUNCTION, 1, 1);
        pb_op(b, OP_RETURN);
        ck_assert(run_host_open(&host, program_builder_finish(&b, true), 0));
        ck_assert(!cy_failed(profile_new(PROFILE_STEPS, 500, 0, &profile)));
        host.vm->options.profile = profile;
        struct run_end end;
        cy_value arg =
            value_int(LIMIT_PROFILE_DEPTH - 2 + past); /* that many and one frames of main, then 안쪽 */
        ck_assert(!cy_failed(run_host_start(&host, "main", &arg, 1, &end, NULL)));
        while (vm_run(host.vm)) {}
        ck_assert(end.ended);
        ck_assert(past == (profile_cut_count(profile) > 0));
        ck_assert((past == 0) == (strstr(folded(), "안쪽") != NULL));
        close_program();
    }
}
END_TEST

START_TEST(test_svg_is_escaped_and_whole)
{
    open_program(PROFILE_STEPS, LIMIT_PROFILE_STEPS / 10, 0);
    struct run_end end;
    run_host_main(&host, &end);
    builder_clear(&host.output);
    profile_write_svg(profile, CY_BYTES("<a&b>\x01\xff"), false, &host.output);
    const char *svg = run_host_printed(&host);
    ck_assert_ptr_nonnull(strstr(svg, "&lt;a&amp;b&gt;\xef\xbf\xbd\xef\xbf\xbd"));
    ck_assert_ptr_nonnull(strstr(svg, "<title>안쪽: "));
    ck_assert_ptr_nonnull(strstr(svg, "<title>all: "));
    ck_assert_ptr_null(strstr(svg, "<script"));
    ck_assert_str_eq(svg + strlen(svg) - 7, "</svg>\n");
    /* Without samples it is a picture all the same. */
    profile_clear(profile);
    builder_clear(&host.output);
    profile_write_svg(profile, CY_BYTES("none"), true, &host.output);
    ck_assert_ptr_nonnull(strstr(run_host_printed(&host), "표본 0개"));
    ck_assert_str_eq(folded(), "");
    close_program();
}
END_TEST

Suite *unit_suite_run_profile(void);
Suite *unit_suite_run_profile(void)
{
    Suite *suite = suite_create("run_profile");
    TCase *tests = tcase_create("profile");
    tcase_add_test(tests, test_steps_are_the_same_on_every_run);
    tcase_add_test(tests, test_time_is_the_clock);
    tcase_add_test(tests, test_short_calls_are_seen_too);
    tcase_add_test(tests, test_past_its_frames_weight_stays_outside);
    tcase_add_test(tests, test_depth_at_and_past_the_limit);
    tcase_add_test(tests, test_svg_is_escaped_and_whole);
    suite_add_tcase(suite, tests);
    return suite;
}
