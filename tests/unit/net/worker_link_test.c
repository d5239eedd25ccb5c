/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/worker_link_test.c: proves what a worker's end of the channel does with the bytes of generations, in
 * which keys lie: nothing of them is left in memory behind the call that hands them over, and the first one is given
 * again to a program that asks again before it serves. The rest of the channel is in master_test.c.
 */
#include "tests/support/secrets.h"
#include "vm/net/master_internal.h"
#include "vm/sys/file.h"

#include <check.h>
#include <unistd.h>

#define SECRET "-----BEGIN PRIVATE KEY----- d41d8cd98f00b204"

static struct worker_link *link_under_test;
static int master_end;

static void link_test_open(void)
{
    int worker_end;
    ck_assert(!cy_failed(channel_pair(&master_end, &worker_end)));
    ck_assert(!cy_failed(worker_link_new(worker_end, &link_under_test)));
}

static void link_test_close(void)
{
    worker_link_free(&link_under_test);
    close(master_end);
}

/* A quarter of a mebibyte with the secret all over it. */
static void link_test_send_generation(uint32_t number)
{
    struct builder bytes;
    int descriptor;
    builder_init(&bytes);
    builder_u32(&bytes, number);
    while (bytes.count < 262144) builder_text(&bytes, SECRET);
    ck_assert(!cy_failed(file_sealed("generation", builder_view(&bytes), &descriptor)));
    builder_fini(&bytes);
    ck_assert(!cy_failed(master_packet_send(master_end, MASTER_PACKET_GENERATION, number, CY_OK, NULL,
                                            CY_BYTES_NONE, descriptor)));
    close(descriptor);
}

static void link_test_expect(cy_bytes bytes, uint32_t number)
{
    ck_assert_uint_ge(bytes.count, 262144);
    ck_assert_uint_eq(cy_load_u32(bytes.data), number);
    ck_assert(cy_bytes_start_with(cy_bytes_skip(bytes, 4), CY_BYTES(SECRET)));
}

static void link_test_on_message(void *context, const struct worker_message *message)
{
    ck_assert_int_eq(message->kind, WORKER_MESSAGE_GENERATION);
    link_test_expect(message->generation, message->generation_number);
    *(uint32_t *)context = message->generation_number;
}

#ifdef __linux__
START_TEST(test_a_later_generation_is_wiped)
{
    struct secrets_watch watch;
    uint32_t number = 0;
    link_test_open();
    link_test_send_generation(2);
    secrets_watch_begin(&watch, CY_BYTES(SECRET));
    ck_assert(worker_link_receive(link_under_test, link_test_on_message, &number));
    ck_assert_uint_eq(secrets_watch_end(&watch), 0);
    ck_assert_uint_eq(number, 2);
    link_test_close();
}
END_TEST
#endif

START_TEST(test_the_first_generation_is_given_again_until_ready)
{
    link_test_open();
    link_test_send_generation(7);
    for (int i = 0; i < 2; i++) {
        struct builder bytes;
        uint32_t number = 0;
        builder_init_secret(&bytes);
        ck_assert(!cy_failed(worker_generation(link_under_test, &number, &bytes)));
        ck_assert_uint_eq(number, 7);
        link_test_expect(builder_view(&bytes), 7);
        builder_fini(&bytes);
    }
    worker_ready(link_under_test, CY_BYTES_NONE);
    struct builder bytes;
    uint32_t number = 0;
    builder_init_secret(&bytes);
    link_test_send_generation(8); /* after READY it is the next one that is waited for */
    ck_assert(!cy_failed(worker_generation(link_under_test, &number, &bytes)));
    ck_assert_uint_eq(number, 8);
    builder_fini(&bytes);
    link_test_close();
}
END_TEST

Suite *unit_suite_net_worker_link(void);
Suite *unit_suite_net_worker_link(void)
{
    Suite *suite = suite_create("net_worker_link");
    TCase *tests = tcase_create("generations");
#ifdef __linux__
    tcase_add_test(tests, test_a_later_generation_is_wiped);
#endif
    tcase_add_test(tests, test_the_first_generation_is_given_again_until_ready);
    suite_add_tcase(suite, tests);
    return suite;
}
