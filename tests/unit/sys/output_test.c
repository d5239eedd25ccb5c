/* SPDX-License-Identifier: MIT
 *
 * tests/unit/sys/output_test.c: proves that a reader that does not read stops no writer, that what is dropped is
 * counted and told once, in its place, that order is kept, and that the end writes what is left but does not wait for
 * ever.
 */
#include "vm/sys/output.h"

#include "vm/base/builder.h"
#include "vm/base/limits.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads to the end, on a thread. */
struct reader {
    pthread_t thread;
    int descriptor;
    struct builder text;
};
static void *read_all(void *context)
{
    struct reader *reader = context;
    for (;;) {
        uint8_t *room = builder_reserve(&reader->text, 65536);
        ssize_t count = read(reader->descriptor, room, 65536);
        if (count <= 0) return NULL;
        reader->text.count += (size_t)count;
    }
}
static void reader_start(struct reader *reader, int descriptor)
{
    reader->descriptor = descriptor;
    builder_init(&reader->text);
    ck_assert_int_eq(pthread_create(&reader->thread, NULL, read_all, reader), 0);
}

/* The thread is then inside of a write that waits. */
static void wait_until_full(const int ends[2])
{
    struct pollfd room = {.fd = ends[1], .events = POLLOUT};
    while (poll(&room, 1, 0) == 1) {}
}

static cy_bytes line(char *room, int number)
{
    return cy_bytes_of(room,
                       (size_t)snprintf(room, 128, "line %06d of a text that is somewhat long\n", number));
}

START_TEST(test_all_is_written_in_order)
{
    enum { COUNT = 20000 };
    int ends[2];
    char room[128];
    struct output *output;
    struct reader reader;
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(output_new(ends[1], &output)));
    reader_start(&reader, ends[0]);
    for (int i = 0; i < COUNT; i++) /* while it does not fit, wait for the reader: nothing may be lost here */
        while (!output_write(output, line(room, i))) ck_abort_msg("the ring holds all of it");
    output_free(&output);
    close(ends[1]);
    pthread_join(reader.thread, NULL);
    cy_bytes rest = builder_view(&reader.text);
    for (int i = 0; i < COUNT; i++) {
        cy_bytes wanted = line(room, i);
        ck_assert(cy_bytes_start_with(rest, wanted));
        rest = cy_bytes_skip(rest, wanted.count);
    }
    ck_assert_uint_eq(rest.count, 0);
    builder_fini(&reader.text);
    close(ends[0]);
}
END_TEST

/* Nobody reads: writing goes on at once past OUTPUT_RING_BYTES, and what did not fit is told as one line, behind what
 * came before it and before what comes after. */
START_TEST(test_a_reader_that_stops_costs_lines)
{
    int ends[2];
    char room[128], told[128];
    struct output *output;
    struct reader reader;
    int written = 0, lost = 0;
    size_t written_bytes = 0;
    struct builder reader_head;
    builder_init(&reader_head);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(output_new(ends[1], &output)));
    for (int i = 0; lost < 1000; i++) {
        if (!output_write(output, line(room, i)))
            lost++;
        else if (lost == 0)
            written++, written_bytes += line(room, i).count;
        else
            ck_abort_msg("a line after a loss that is not told yet");
    }
    ck_assert_uint_eq(output_dropped(output), 1000);
    ck_assert_uint_gt(written_bytes, LIMIT_OUTPUT_RING_BYTES - 128); /* filled before anything was dropped */
    /* The reader takes a little: there is room in the ring again, but what comes now must wait for the loss to be
     * told. */
    uint8_t first[32768];
    wait_until_full(ends);
    ck_assert_int_eq(read(ends[0], first, sizeof first), sizeof first);
    wait_until_full(ends);
    ck_assert(!output_write(output, CY_BYTES("early\n")));
    lost++;
    reader_start(&reader, ends[0]);
    builder_bytes(&reader_head, cy_bytes_of(first, sizeof first));
    while (!output_write(output, CY_BYTES("after\n"))) lost++; /* until the reader has made room */
    output_free(&output);
    close(ends[1]);
    pthread_join(reader.thread, NULL);
    builder_bytes(&reader_head, builder_view(&reader.text));
    cy_bytes rest = builder_view(&reader_head);
    for (int i = 0; i < written; i++) {
        cy_bytes wanted = line(room, i);
        ck_assert(cy_bytes_start_with(rest, wanted));
        rest = cy_bytes_skip(rest, wanted.count);
    }
    snprintf(told, sizeof told, "(%d lines were dropped here: nobody read this output)\nafter\n", lost);
    ck_assert(cy_bytes_equal(rest, cy_bytes_from_text(told)));
    builder_fini(&reader_head);
    builder_fini(&reader.text);
    close(ends[0]);
}
END_TEST

#ifdef __linux__
static long resident_kib(void)
{
    char text[4096], *found;
    FILE *file = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(file);
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[count] = 0;
    found = strstr(text, "RssAnon:");
    ck_assert_ptr_nonnull(found);
    return strtol(found + strlen("RssAnon:"), NULL, 10);
}

/* More than the ring holds, but never more than a piece at once: the pages behind the first are never touched. A server
 * that says a line now and then would otherwise grow by the whole ring, over hours, as if it leaked. */
START_TEST(test_who_is_read_at_once_takes_no_ring)
{
    enum { PIECE = 4000, COUNT = 2 * LIMIT_OUTPUT_RING_BYTES / PIECE };
    int ends[2];
    char piece[PIECE], back[PIECE];
    struct output *output;
    long before_kib = 0;
    memset(piece, 'x', sizeof piece);
    piece[PIECE - 1] = '\n';
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(output_new(ends[1], &output)));
    for (int i = 0; i < COUNT; i++) {
        ck_assert(output_write(output, cy_bytes_of(piece, sizeof piece)));
        for (size_t count = 0; count < sizeof piece;) {
            ssize_t more = read(ends[0], back + count, sizeof piece - count);
            ck_assert_int_gt(more, 0);
            count += (size_t)more;
        }
        ck_assert_mem_eq(piece, back, sizeof piece);
        if (i == 10) before_kib = resident_kib();
    }
    ck_assert_int_lt(resident_kib() - before_kib, LIMIT_OUTPUT_RING_BYTES / 1024 / 2);
    output_free(&output);
    close(ends[0]);
    close(ends[1]);
}
END_TEST
#endif

/* OUTPUT_RING_BYTES: a piece of that size fits, one byte more never does. */
START_TEST(test_the_longest_piece)
{
    int ends[2];
    struct output *output;
    struct reader reader;
    uint8_t *piece = malloc(LIMIT_OUTPUT_RING_BYTES + 1);
    memset(piece, 'x', LIMIT_OUTPUT_RING_BYTES + 1);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(!cy_failed(output_new(ends[1], &output)));
    ck_assert(output_write(output, cy_bytes_of(piece, LIMIT_OUTPUT_RING_BYTES)));
    ck_assert(!output_write(output, cy_bytes_of(piece, LIMIT_OUTPUT_RING_BYTES + 1)));
    reader_start(&reader, ends[0]);
    output_free(&output);
    close(ends[1]);
    pthread_join(reader.thread, NULL);
    ck_assert_uint_gt(reader.text.count, LIMIT_OUTPUT_RING_BYTES);
    builder_fini(&reader.text);
    close(ends[0]);
    free(piece);
}
END_TEST

START_TEST(test_a_reader_that_is_gone)
{
    int ends[2];
    char room[128];
    struct output *output;
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[0]);
    ck_assert(!cy_failed(output_new(ends[1], &output)));
    for (int i = 0; output_write(output, line(room, i)); i++) {} /* ends once the thread has seen EPIPE */
    output_free(&output);
    close(ends[1]);
}
END_TEST

Suite *unit_suite_sys_output(void);
Suite *unit_suite_sys_output(void)
{
    Suite *suite = suite_create("sys_output");
    TCase *tcase = tcase_create("output");
    tcase_add_test(tcase, test_all_is_written_in_order);
    tcase_add_test(tcase, test_a_reader_that_stops_costs_lines);
#ifdef __linux__
    tcase_add_test(tcase, test_who_is_read_at_once_takes_no_ring);
#endif
    tcase_add_test(tcase, test_the_longest_piece);
    tcase_add_test(tcase, test_a_reader_that_is_gone);
    suite_add_tcase(suite, tcase);
    return suite;
}
