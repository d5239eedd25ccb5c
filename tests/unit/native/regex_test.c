/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/regex_test.c: proves the bounds of regular expressions, each by its own error, that no pattern
 * takes longer than its time, that a search gives the thread back in pieces and can be left between two of them, that
 * memory comes from where it was told to, and that failing allocations leave nothing.
 */
#include "vm/native/regex.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <check.h>

static struct regex *regex_test_new(const char *pattern)
{
    static const struct regex_options plain = {0};
    struct regex_fault fault;
    struct regex *regex = NULL;
    cy_err err = regex_new(cy_bytes_from_text(pattern), &plain, NULL, &regex, &fault);
    ck_assert_msg(!cy_failed(err), "%s: %s", pattern, fault.message);
    return regex;
}

/* `count` times the unit, then the end; freed by the caller. */
static cy_bytes regex_test_text(const char *unit, size_t count, const char *end)
{
    size_t unit_bytes = strlen(unit), end_bytes = strlen(end), bytes = unit_bytes * count + end_bytes;
    uint8_t *text = mem_alloc(bytes);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < count; i++) memcpy(text + i * unit_bytes, unit, unit_bytes);
    memcpy(text + unit_bytes * count, end, end_bytes);
    return cy_bytes_of(text, bytes);
}

static cy_err regex_test_find(struct regex *regex, cy_bytes text, bool *found_out,
                              enum regex_bound *bound_out)
{
    struct regex_search search;
    CY_TRY(regex_search_init(&search, regex, text));
    cy_err err = regex_search_next(&search, 0, REGEX_FIND, found_out, bound_out);
    regex_search_fini(&search);
    return err;
}

/* Each bound where it is met first. Without it each of these would run for hours, and Check would end it. */
START_TEST(test_every_bound_has_its_error)
{
    static const struct {
        const char *pattern, *unit;
        size_t count;
        enum regex_bound bound;
    } rows[] = {
        {"(a+)+$", "a", 40, REGEX_BOUND_STEPS},          /* REGEX_MATCH_STEPS */
        {"^(?:a|b)*$", "a", 1000000, REGEX_BOUND_DEPTH}, /* REGEX_DEPTH */
        {"^(?:(a)|(b)|(c)|(d)|(e)|(f)|(g)|(h)|(i)|(j)|(k))*$", "a", 390000,
         REGEX_BOUND_HEAP},                            /* REGEX_HEAP_KIB */
        {"[a-z]+\\d", "a", 1000000, REGEX_BOUND_TIME}, /* REGEX_CALL_MS: not one step is counted */
        {"(?:[a-z]+\\d|[a-z])*[0-9]", "a", 1000000, REGEX_BOUND_TIME},
    };
    for (size_t i = 0; i < CY_COUNT_OF(rows); i++) {
        struct regex *regex = regex_test_new(rows[i].pattern);
        cy_bytes text = regex_test_text(rows[i].unit, rows[i].count, "!");
        bool found;
        enum regex_bound bound;
        cy_err err = regex_test_find(regex, text, &found, &bound);
        ck_assert_msg(cy_is(err, CY_ERR_LIMIT) && bound == rows[i].bound, "%s: %s, bound %d", rows[i].pattern,
                      cy_err_name(err), bound);
        mem_free((void *)text.data);
        regex_free(&regex);
    }
}
END_TEST

/* At the limits of depth: the same pattern over a text that fits. */
START_TEST(test_below_the_bounds_it_matches)
{
    struct regex *regex = regex_test_new("^(?:a|b)*$");
    cy_bytes text = regex_test_text("ab", LIMIT_REGEX_DEPTH / 4, "");
    bool found;
    enum regex_bound bound;
    ck_assert(!cy_failed(regex_test_find(regex, text, &found, &bound)));
    ck_assert(found);
    mem_free((void *)text.data);
    regex_free(&regex);
}
END_TEST

/* Many matches, each within its own bounds, quadratic together. */
START_TEST(test_many_matches_end_in_time)
{
    struct regex *regex = regex_test_new("a(?=[a-z]*\\d)|a(?![a-z]*\\d)");
    cy_bytes text = regex_test_text("a", 1000000, "!");
    struct regex_search search;
    enum regex_bound bound = REGEX_BOUND_NONE;
    size_t from = 0;
    ck_assert(!cy_failed(regex_search_init(&search, regex, text)));
    cy_err err = CY_OK;
    for (bool found = true; found && !cy_failed(err);) {
        size_t begin;
        err = regex_search_next(&search, from, REGEX_FIND, &found, &bound);
        if (!cy_failed(err) && found) ck_assert(regex_search_group(&search, 0, &begin, &from));
    }
    ck_assert(cy_is(err, CY_ERR_LIMIT));
    ck_assert_int_eq(bound, REGEX_BOUND_TIME);
    regex_search_fini(&search);
    mem_free((void *)text.data);
    regex_free(&regex);
}
END_TEST

START_TEST(test_pattern_bytes_at_and_past_the_limit)
{
    static const struct regex_options plain = {0};
    struct regex_fault fault;
    struct regex *regex;
    cy_bytes text = regex_test_text("(?#.....)", LIMIT_REGEX_PATTERN_BYTES / 9, "aaaaaaaaaaa");
    ck_assert_uint_gt(text.count, LIMIT_REGEX_PATTERN_BYTES);
    cy_bytes at = cy_bytes_slice(text, 0, LIMIT_REGEX_PATTERN_BYTES);
    ck_assert(!cy_failed(regex_new(at, &plain, NULL, &regex, &fault)));
    regex_free(&regex);
    cy_bytes past = cy_bytes_slice(text, 0, LIMIT_REGEX_PATTERN_BYTES + 1);
    ck_assert(cy_is(regex_new(past, &plain, NULL, &regex, &fault), CY_ERR_LIMIT));
    mem_free((void *)text.data);
}
END_TEST

struct regex_test_pool {
    size_t live, calls;
};
static void *regex_test_alloc(size_t bytes, void *context)
{
    struct regex_test_pool *pool = context;
    void *block = mem_alloc(bytes);
    pool->calls++;
    if (block) pool->live++;
    return block;
}
static void regex_test_release(void *block, void *context)
{
    struct regex_test_pool *pool = context;
    if (block) pool->live--;
    mem_free(block);
}

static enum regex_bound regex_test_step(struct regex_search *search, bool *over_out)
{
    bool found;
    enum regex_bound bound;
    cy_err err = regex_search_step(search, 0, REGEX_FIND, over_out, &found, &bound);
    ck_assert(!cy_failed(err) || bound != REGEX_BOUND_NONE);
    return bound;
}

/* A match of REGEX_PIECE_STEPS is over in place, one step more is not, and then is in pieces. The clock has no part. */
START_TEST(test_steps_in_place)
{
    struct regex *regex = regex_test_new("^(?:a|b)*$");
    struct regex_search search;
    size_t most = 0;
    bool over = true;
    for (size_t count = 1; over; count++) {
        cy_bytes text = regex_test_text("a", count, "");
        ck_assert(!cy_failed(regex_search_init(&search, regex, text)));
        search.piece_deadline_ns = UINT64_MAX;
        ck_assert_int_eq(regex_test_step(&search, &over), REGEX_BOUND_NONE);
        ck_assert(over == !search.in_pieces);
        if (over)
            most = count;
        else
            ck_assert(regex_test_step(&search, &over) == REGEX_BOUND_NONE && over && search.coroutine);
        over = !search.in_pieces;
        regex_search_fini(&search);
        mem_free((void *)text.data);
    }
    ck_assert_uint_gt(most, LIMIT_REGEX_PIECE_STEPS / 8); /* each letter takes some steps */
    ck_assert_uint_lt(most, LIMIT_REGEX_PIECE_STEPS);
    regex_free(&regex);
}
END_TEST

/* Past the end of a piece (REGEX_PIECE_US) nothing begins, and what is under way pauses; else it goes on to its end. */
START_TEST(test_a_piece_ends_by_the_clock)
{
    struct regex *regex = regex_test_new("(a+)+$");
    struct regex_search search;
    cy_bytes text = regex_test_text("a", 3000, "!");
    int under_way = 0;
    bool over;
    ck_assert(!cy_failed(regex_search_init(&search, regex, text)));
    ck_assert_uint_eq(search.piece_deadline_ns - search.piece_started_ns, LIMIT_REGEX_PIECE_US * 1000);
    search.ticks_per_look = 1;
    search.piece_deadline_ns = 0;
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(regex_test_step(&search, &over), REGEX_BOUND_NONE);
        ck_assert(!over && !search.in_pieces);
    }
    search.piece_deadline_ns = UINT64_MAX;
    ck_assert_int_eq(regex_test_step(&search, &over), REGEX_BOUND_NONE);
    ck_assert(!over && search.in_pieces && !search.under_way); /* too many steps to be over in place */
    struct regex_search moved = search;
    memset(&search, 0xee, sizeof search);
    moved.piece_deadline_ns = 0;
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(regex_test_step(&moved, &over), REGEX_BOUND_NONE);
        ck_assert(!over);
        under_way += moved.under_way;
    }
    ck_assert_int_gt(under_way, 50);
    moved.piece_deadline_ns = UINT64_MAX;
    ck_assert_int_eq(regex_test_step(&moved, &over), REGEX_BOUND_STEPS);
    regex_search_fini(&moved);
    mem_free((void *)text.data);
    regex_free(&regex);
}
END_TEST

/* REGEX_CALL_MS and REGEX_MATCH_US by what they are counted from. */
START_TEST(test_time_at_and_past_the_limit)
{
    struct regex *regex = regex_test_new("a");
    struct regex_search search;
    uint64_t call_ns = LIMIT_REGEX_CALL_MS * UINT64_C(1000000);
    bool over;
    ck_assert(!cy_failed(regex_search_init(&search, regex, CY_BYTES("aaa"))));
    search.piece_deadline_ns = UINT64_MAX;
    search.used_ns = call_ns - 1;
    ck_assert(regex_test_step(&search, &over) == REGEX_BOUND_NONE && over);
    search.used_ns = call_ns + LIMIT_REGEX_MATCH_US * 1000 - 1; /* that match has added some */
    ck_assert(regex_test_step(&search, &over) == REGEX_BOUND_NONE && over);
    search.used_ns = call_ns + 2 * LIMIT_REGEX_MATCH_US * 1000;
    ck_assert(regex_test_step(&search, &over) == REGEX_BOUND_TIME && !over);
    regex_search_fini(&search);
    regex_free(&regex);
}
END_TEST

/* A search is let go in the middle of a match, which holds memory. */
START_TEST(test_left_between_two_pieces)
{
    static const struct regex_options plain = {0};
    struct regex_test_pool pool = {0};
    struct regex_memory memory = {regex_test_alloc, regex_test_release, &pool};
    struct regex_search search;
    struct regex_fault fault;
    struct regex *regex;
    bool over;
    cy_bytes text = regex_test_text("ab", 10000, "!");
    ck_assert(!cy_failed(regex_new(CY_BYTES("^(?:a|b)*$"), &plain, &memory, &regex, &fault)));
    ck_assert(!cy_failed(regex_search_init(&search, regex, text)));
    search.piece_deadline_ns = UINT64_MAX;
    ck_assert_int_eq(regex_test_step(&search, &over), REGEX_BOUND_NONE);
    search.piece_deadline_ns = 0;
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(regex_test_step(&search, &over), REGEX_BOUND_NONE);
    ck_assert(!over && search.under_way);
    regex_search_fini(&search);
    regex_free(&regex);
    ck_assert_uint_eq(pool.live, 0);
    mem_free((void *)text.data);
}
END_TEST

/* Short and long texts, texts that are not UTF-8, and a match in pieces, so that all compilations fail in turn. */
START_TEST(test_whatever_allocation_fails_nothing_is_left)
{
    static const char *const patterns[] = {"(?<word>fo+)\\s(?:b|a|r)*", "(?:x|y|z|\\s)*foo bar$"};
    struct regex_test_pool pool = {0};
    struct regex_memory memory = {regex_test_alloc, regex_test_release, &pool};
    static const struct regex_options options = {.ignore_case = true};
    cy_bytes pattern = cy_bytes_from_text(patterns[_i % 2]);
    cy_bytes text = regex_test_text(_i & 2 ? "xyz" : "xyz\xff", 2000, "foo bar");
    cy_err err = CY_ERR(NO_MEMORY);
    uint64_t n = 0;
    for (; cy_failed(err); n++) {
        struct regex *regex = NULL;
        struct regex_fault fault;
        bool found = false;
        enum regex_bound bound;
        mem_fail_after(n);
        err = regex_new(pattern, &options, &memory, &regex, &fault);
        if (!cy_failed(err)) err = regex_test_find(regex, text, &found, &bound);
        mem_fail_never();
        ck_assert_msg(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY), "allocation %u: %s", (unsigned)n,
                      cy_err_name(err));
        if (!cy_failed(err)) ck_assert(found);
        regex_free(&regex);
        ck_assert_uint_eq(pool.live, 0);
        ck_assert_uint_lt(n, 1000);
    }
    ck_assert_uint_gt(n, 6);
    mem_free((void *)text.data);
}
END_TEST

START_TEST(test_groups_and_names)
{
    struct regex *regex = regex_test_new("(*UCP)(?<b>b)(x)?(?<a>a)");
    struct regex_search search;
    bool found;
    enum regex_bound bound;
    size_t begin, end;
    cy_bytes name;
    uint32_t group;
    ck_assert_uint_eq(regex_group_count(regex), 3);
    ck_assert(regex_name_at(regex, 0, &name, &group)); /* by name */
    ck_assert(cy_bytes_equal(name, CY_BYTES("a")) && group == 3);
    ck_assert(regex_name_at(regex, 1, &name, &group) && group == 1);
    ck_assert(!regex_name_at(regex, 2, &name, &group));
    ck_assert(!cy_failed(regex_search_init(&search, regex, CY_BYTES("..ba"))));
    ck_assert(!cy_failed(regex_search_next(&search, 0, REGEX_FIND, &found, &bound)) && found);
    ck_assert(regex_search_group(&search, 0, &begin, &end) && begin == 2 && end == 4);
    ck_assert(!regex_search_group(&search, 2, &begin, &end));
    ck_assert(regex_search_group(&search, 3, &begin, &end) && begin == 3 && end == 4);
    regex_search_fini(&search);
    regex_free(&regex);
}
END_TEST

Suite *unit_suite_native_regex(void)
{
    Suite *suite = suite_create("native_regex");
    TCase *tcase = tcase_create("regex");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, test_every_bound_has_its_error);
    tcase_add_test(tcase, test_below_the_bounds_it_matches);
    tcase_add_test(tcase, test_many_matches_end_in_time);
    tcase_add_test(tcase, test_pattern_bytes_at_and_past_the_limit);
    tcase_add_test(tcase, test_steps_in_place);
    tcase_add_test(tcase, test_a_piece_ends_by_the_clock);
    tcase_add_test(tcase, test_time_at_and_past_the_limit);
    tcase_add_test(tcase, test_left_between_two_pieces);
    tcase_add_loop_test(tcase, test_whatever_allocation_fails_nothing_is_left, 0, 4);
    tcase_add_test(tcase, test_groups_and_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
