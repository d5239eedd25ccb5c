/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/access_log_test.c: proves what lines of the access log look like, that no byte of a client ends a
 * line or a quoted text, that texts are cut at their limits, that lines are handed on in batches and by time, that
 * losses are counted in lines; and how the histogram of times is divided and summed.
 */
#include "tests/support/loop_sim.h"
#include "vm/base/builder.h"
#include "vm/base/limits.h"
#include "vm/http/access_log.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct log_world {
    struct loop *loop;
    struct loop_sim *sim;
    struct access_log *log;
    struct http_server_counters counters;
    struct builder lines;
    unsigned batch_count;
    bool full;
};

static bool log_put(void *context, cy_bytes lines)
{
    struct log_world *world = context;
    world->batch_count++;
    if (world->full) return false;
    builder_bytes(&world->lines, lines);
    return true;
}

static void log_open(struct log_world *world, enum access_log_format format)
{
    const struct loop_sim_options sim = {.seed = 1};
    *world = (struct log_world){0};
    builder_init(&world->lines);
    ck_assert(!cy_failed(loop_sim_new(&sim, &world->loop, &world->sim)));
    struct access_log_options options = {.loop = world->loop,
                                         .format = format,
                                         .counters = &world->counters,
                                         .owned_descriptor = -1,
                                         .put = log_put,
                                         .context = world};
    ck_assert(!cy_failed(access_log_new(&options, &world->log)));
}

static void log_close(struct log_world *world)
{
    access_log_free(&world->log);
    builder_fini(&world->lines);
    loop_free(&world->loop);
}

static const struct access_log_entry usual = {
    .client = {(const uint8_t *)"10.0.0.1", 8},
    .method = {(const uint8_t *)"GET", 3},
    .host = {(const uint8_t *)"a.example", 9},
    .target = {(const uint8_t *)"/x?y=1", 6},
    .user_agent = {(const uint8_t *)"curl/8", 6},
    .upstream = {(const uint8_t *)"10.0.0.2:80", 11},
    .protocol = "HTTP/1.1",
    .status = 200,
    .bytes = 1234,
    .duration_us = 56,
    .upstream_us = 34,
};

/* What stands behind the time. */
static void expect_line(enum access_log_format format, const struct access_log_entry *entry,
                        const char *before, const char *behind)
{
    struct log_world world;
    log_open(&world, format);
    access_log_write(world.log, entry);
    access_log_flush(world.log);
    const char *text = builder_text_view(&world.lines);
    ck_assert_msg(strncmp(text, before, strlen(before)) == 0, "%s", text);
    ck_assert_uint_ge(strlen(text), strlen(behind));
    ck_assert_str_eq(text + strlen(text) - strlen(behind), behind);
    log_close(&world);
}

START_TEST(test_formats)
{
    expect_line(ACCESS_LOG_COMMON, &usual, "10.0.0.1 - - [", " +0000] \"GET /x?y=1 HTTP/1.1\" 200 1234\n");
    expect_line(ACCESS_LOG_COMBINED, &usual, "10.0.0.1 - - [",
                " +0000] \"GET /x?y=1 HTTP/1.1\" 200 1234 \"-\" \"curl/8\"\n");
    expect_line(ACCESS_LOG_JSON, &usual, "{\"time\":\"",
                "Z\",\"client\":\"10.0.0.1\",\"method\":\"GET\",\"host\":\"a.example\",\"target\":\"/x?y=1\","
                "\"protocol\":\"HTTP/1.1\",\"status\":200,\"bytes\":1234,\"duration_us\":56,"
                "\"upstream\":\"10.0.0.2:80\",\"upstream_us\":34,\"user_agent\":\"curl/8\"}\n");
    struct access_log_entry refused = {
        .client = usual.client, .status = 400, .bytes = 90, .upstream_us = UINT64_MAX};
    expect_line(ACCESS_LOG_COMMON, &refused, "10.0.0.1 - - [", "] \"-\" 400 90\n");
    expect_line(ACCESS_LOG_JSON, &refused, "{\"time\":\"",
                "\"client\":\"10.0.0.1\",\"status\":400,\"bytes\":90,\"duration_us\":0}\n");
}
END_TEST

START_TEST(test_hostile_bytes)
{
    struct access_log_entry entry = usual;
    entry.target = cy_bytes_of("/\"\\\n\r\0\x7f\xff\x1b[2J", 12);
    entry.user_agent = CY_BYTES_NONE;
    entry.upstream = CY_BYTES_NONE;
    expect_line(ACCESS_LOG_COMMON, &entry, "10.0.0.1 - - [",
                "\"GET /\\x22\\x5c\\x0a\\x0d\\x00\\x7f\\xff\\x1b[2J HTTP/1.1\" 200 1234\n");
    expect_line(
        ACCESS_LOG_JSON, &entry, "{\"time\":\"",
        "\"target\":\"/\\\"\\\\\\u000a\\u000d\\u0000\\u007f\\u00ff\\u001b[2J\",\"protocol\":\"HTTP/1.1\","
        "\"status\":200,\"bytes\":1234,\"duration_us\":56}\n");
    for (unsigned byte = 0; byte < 256; byte++) { /* one line, whatever it is */
        uint8_t text[3] = {'/', (uint8_t)byte, 'x'};
        for (int format = ACCESS_LOG_COMMON; format <= ACCESS_LOG_JSON; format++) {
            struct log_world world;
            log_open(&world, (enum access_log_format)format);
            entry.target = cy_bytes_of(text, sizeof text);
            entry.referer = entry.host = entry.user_agent = entry.method = entry.client = entry.target;
            access_log_write(world.log, &entry);
            access_log_flush(world.log);
            cy_bytes line = builder_view(&world.lines);
            ck_assert_uint_eq(cy_bytes_find(line, '\n'), line.count - 1);
            for (size_t i = 0; i + 1 < line.count; i++) ck_assert(line.data[i] >= ' ' && line.data[i] < 0x7f);
            log_close(&world);
        }
    }
}
END_TEST

static size_t count_byte(cy_bytes text, uint8_t byte)
{
    size_t count = 0;
    for (size_t i = 0; i < text.count; i++) count += text.data[i] == byte;
    return count;
}

START_TEST(test_texts_are_cut_at_their_limits)
{
    static uint8_t long_text[LIMIT_ACCESS_LOG_TARGET_BYTES + 1];
    for (int past = 0; past <= 1; past++) {
        struct log_world world;
        struct access_log_entry entry = usual;
        log_open(&world, ACCESS_LOG_JSON);
        memset(long_text, 1, sizeof long_text); /* each becomes six bytes: the longest line there is */
        entry.target = cy_bytes_of(long_text, LIMIT_ACCESS_LOG_TARGET_BYTES + (size_t)past);
        entry.client = entry.host = entry.method = entry.referer = entry.user_agent = entry.upstream =
            cy_bytes_of(long_text, LIMIT_ACCESS_LOG_FIELD_BYTES + (size_t)past);
        for (int i = 0; i < 3; i++) access_log_write(world.log, &entry);
        ck_assert_uint_eq(count_byte(builder_view(&world.lines), '\\'),
                          3 * (LIMIT_ACCESS_LOG_TARGET_BYTES + 6 * LIMIT_ACCESS_LOG_FIELD_BYTES));
        log_close(&world);
    }
}
END_TEST

START_TEST(test_lines_are_gathered)
{
    struct log_world world;
    log_open(&world, ACCESS_LOG_COMMON);
    for (int i = 0; i < 1000; i++) access_log_write(world.log, &usual);
    ck_assert_uint_gt(world.batch_count, 1);
    ck_assert_uint_lt(world.batch_count, 10);
    access_log_flush(world.log);
    ck_assert_uint_eq(count_byte(builder_view(&world.lines), '\n'), 1000);
    unsigned before = world.batch_count;
    access_log_flush(world.log); /* nothing is there */
    ck_assert_uint_eq(world.batch_count, before);
    access_log_write(world.log, &usual);
    for (int i = 0; i < 5 && world.batch_count == before; i++) ck_assert(!cy_failed(loop_turn(world.loop)));
    ck_assert_uint_eq(world.batch_count, before + 1); /* by LIMIT_ACCESS_LOG_FLUSH_MS alone */
    ck_assert_uint_eq(world.counters.log_lines, 1001);
    log_close(&world);
}
END_TEST

START_TEST(test_losses_are_counted)
{
    struct log_world world;
    log_open(&world, ACCESS_LOG_COMMON);
    access_log_write(world.log, &usual);
    access_log_write(world.log, &usual);
    world.full = true;
    access_log_flush(world.log);
    world.full = false;
    access_log_write(world.log, &usual);
    access_log_flush(world.log);
    ck_assert_uint_eq(world.counters.log_lines, 3);
    ck_assert_uint_eq(world.counters.log_lines_dropped, 2);
    ck_assert_uint_eq(count_byte(builder_view(&world.lines), '\n'), 1);
    log_close(&world);
}
END_TEST

static int64_t file_bytes(const char *path)
{
    int descriptor = open(path, O_RDONLY);
    ck_assert_int_ge(descriptor, 0);
    int64_t bytes = lseek(descriptor, 0, SEEK_END);
    close(descriptor);
    return bytes;
}

START_TEST(test_a_file_is_opened_again)
{
    char first[] = "/tmp/crownyc-access.XXXXXX", second[] = "/tmp/crownyc-access.XXXXXX";
    struct log_world world;
    log_open(&world, ACCESS_LOG_COMMON);
    access_log_free(&world.log);
    struct access_log_options options = {
        .loop = world.loop, .counters = &world.counters, .owned_descriptor = mkstemp(first)};
    ck_assert(!cy_failed(access_log_new(&options, &world.log)));
    access_log_write(world.log, &usual);
    access_log_reopen(world.log, mkstemp(second));
    access_log_write(world.log, &usual);
    access_log_write(world.log, &usual);
    access_log_free(&world.log);
    int64_t all = file_bytes(first) + file_bytes(second);
    ck_assert_int_gt(all, 0);
    ck_assert_int_eq(all % 3, 0);                        /* three equal lines */
    ck_assert_int_ge(file_bytes(second), all / 3 * 2);   /* what came behind is in the new file */
    ck_assert_int_eq(file_bytes(second) % (all / 3), 0); /* whole lines in each */
    unlink(first);
    unlink(second);
    log_close(&world);
}
END_TEST

START_TEST(test_latency_slots)
{
    for (uint64_t us = 0; us < 70000; us++) {
        uint32_t slot = http_latency_slot(us);
        ck_assert_uint_le(us, http_latency_upper_us(slot));
        if (slot > 0) ck_assert_uint_gt(us, http_latency_upper_us(slot - 1));
        if (us >= 8) ck_assert_uint_le(http_latency_upper_us(slot) - us, us / 8);
    }
    for (uint32_t slot = 1; slot < HTTP_LATENCY_SLOTS; slot++)
        ck_assert_uint_eq(http_latency_slot(http_latency_upper_us(slot - 1) + 1), slot);
    ck_assert_uint_eq(http_latency_slot(UINT64_MAX), HTTP_LATENCY_SLOTS - 1);
}
END_TEST

START_TEST(test_sums)
{
    struct http_server_counters a = {.requests = 3, .connections_open = 2}, b = {.requests = 4}, sum = {0};
    a.responses_by_class[2] = 3;
    http_latency_add(&a, 100);
    http_latency_add(&b, 100);
    http_counters_sum(&sum, &a);
    http_counters_sum(&sum, &b);
    ck_assert_uint_eq(sum.requests, 7);
    ck_assert_uint_eq(sum.responses_by_class[2], 3);
    ck_assert_uint_eq(sum.latency[http_latency_slot(100)], 2);
    ck_assert_uint_eq(sum.latency_us_sum, 200);
    http_counters_restart(&a);
    ck_assert_uint_eq(a.requests, 3);
    ck_assert_uint_eq(a.connections_open, 0);
    struct builder text;
    builder_init(&text);
    http_counters_write(&sum, "x_", &text);
    const char *view = builder_text_view(&text);
    ck_assert_ptr_nonnull(strstr(view, "# TYPE x_requests_total counter\nx_requests_total 7\n"));
    ck_assert_ptr_nonnull(strstr(view, "x_connections_open 2\n"));
    ck_assert_ptr_nonnull(strstr(view, "x_responses_total{class=\"2xx\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(view, "x_request_seconds_bucket{le=\"0.000064\"} 0\n"));
    ck_assert_ptr_nonnull(strstr(view, "x_request_seconds_bucket{le=\"0.000128\"} 2\n"));
    ck_assert_ptr_nonnull(
        strstr(view, "x_request_seconds_bucket{le=\"+Inf\"} 2\nx_request_seconds_sum 0.000200\n"));
    builder_fini(&text);
}
END_TEST

Suite *unit_suite_http_access_log(void);
Suite *unit_suite_http_access_log(void)
{
    Suite *suite = suite_create("http/access_log");
    TCase *tests = tcase_create("lines");
    tcase_add_test(tests, test_formats);
    tcase_add_test(tests, test_hostile_bytes);
    tcase_add_test(tests, test_texts_are_cut_at_their_limits);
    tcase_add_test(tests, test_lines_are_gathered);
    tcase_add_test(tests, test_losses_are_counted);
    tcase_add_test(tests, test_a_file_is_opened_again);
    tcase_add_test(tests, test_latency_slots);
    tcase_add_test(tests, test_sums);
    suite_add_tcase(suite, tests);
    return suite;
}
