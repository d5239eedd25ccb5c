/* SPDX-License-Identifier: MIT
 *
 * tests/unit/base/hash_test.c: proves CRC-32C and SipHash-1-3 against published values and against each other's
 * second implementation: the byte table is compiled here again, without the processor's instruction.
 */
#include "vm/base/hash.h"

#include <check.h>

#define HASH_WITHOUT_HARDWARE 1
#define crc32c hash_test_crc32c_by_table
#define hash_bytes hash_test_hash_bytes
#define hash_u64 hash_test_hash_u64
uint32_t hash_test_crc32c_by_table(uint32_t crc, cy_bytes bytes);
uint64_t hash_test_hash_bytes(hash_seed seed, cy_bytes bytes);
uint64_t hash_test_hash_u64(hash_seed seed, uint64_t number);
#include "vm/base/hash.c"
#undef crc32c
#undef hash_bytes
#undef hash_u64

static const hash_seed hash_test_seed = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};

/* RFC 3720 B.4: 32 bytes of zeros, of ones, ascending, descending; and the customary check value. */
START_TEST(test_crc32c_of_published_vectors)
{
    uint8_t bytes[32];
    ck_assert_uint_eq(crc32c(0, CY_BYTES("123456789")), 0xE3069283u);
    memset(bytes, 0, sizeof bytes);
    ck_assert_uint_eq(crc32c(0, cy_bytes_of(bytes, 32)), 0x8A9136AAu);
    memset(bytes, 0xff, sizeof bytes);
    ck_assert_uint_eq(crc32c(0, cy_bytes_of(bytes, 32)), 0x62A8AB43u);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    ck_assert_uint_eq(crc32c(0, cy_bytes_of(bytes, 32)), 0x46DD794Eu);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)(31 - i);
    ck_assert_uint_eq(crc32c(0, cy_bytes_of(bytes, 32)), 0x113FDB5Cu);
    ck_assert_uint_eq(crc32c(0, CY_BYTES_NONE), 0);
}
END_TEST

START_TEST(test_crc32c_of_parts_equals_crc32c_of_the_whole)
{
    cy_bytes whole = CY_BYTES("The quick brown fox jumps over the lazy dog, twice.");
    for (size_t cut = 0; cut <= whole.count; cut++) {
        uint32_t head = crc32c(0, cy_bytes_slice(whole, 0, cut));
        ck_assert_uint_eq(crc32c(head, cy_bytes_skip(whole, cut)), crc32c(0, whole));
    }
}
END_TEST

START_TEST(test_crc32c_table_and_instruction_agree_at_every_length_and_alignment)
{
    uint8_t bytes[80];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37 + 11);
    for (size_t begin = 0; begin < 9; begin++)
        for (size_t count = 0; begin + count <= sizeof bytes; count++) {
            cy_bytes part = cy_bytes_of(bytes + begin, count);
            ck_assert_uint_eq(crc32c(1234, part), hash_test_crc32c_by_table(1234, part));
        }
}
END_TEST

/* The key 00 01 .. 0f and the messages "", 00, 00 01 .. of the SipHash paper's appendix, with 1 and 3 rounds; the
 * values were computed by OpenSSL's SIPHASH (c-rounds 1, d-rounds 3), first byte lowest. */
START_TEST(test_siphash_1_3_vectors)
{
    uint8_t message[15];
    for (int i = 0; i < 15; i++) message[i] = (uint8_t)i;
    ck_assert_uint_eq(hash_bytes(hash_test_seed, CY_BYTES_NONE), 0xabac0158050fc4dcu);
    ck_assert_uint_eq(hash_bytes(hash_test_seed, cy_bytes_of(message, 1)), 0xc9f49bf37d57ca93u);
    ck_assert_uint_eq(hash_bytes(hash_test_seed, cy_bytes_of(message, 8)), 0x369095118d299a8eu);
    ck_assert_uint_eq(hash_bytes(hash_test_seed, cy_bytes_of(message, 15)), 0xd320d86d2a519956u);
}
END_TEST

START_TEST(test_hash_u64_is_hash_bytes_of_its_little_endian_bytes)
{
    const uint8_t bytes[8] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01};
    ck_assert_uint_eq(hash_u64(hash_test_seed, 0x0123456789abcdefu),
                      hash_bytes(hash_test_seed, cy_bytes_of(bytes, 8)));
}
END_TEST

START_TEST(test_the_seed_matters)
{
    ck_assert_uint_ne(hash_bytes((hash_seed){1, 0}, CY_BYTES("a")),
                      hash_bytes((hash_seed){0, 1}, CY_BYTES("a")));
}
END_TEST

Suite *unit_suite_base_hash(void);
Suite *unit_suite_base_hash(void)
{
    Suite *suite = suite_create("base/hash");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_crc32c_of_published_vectors);
    tcase_add_test(tests, test_crc32c_of_parts_equals_crc32c_of_the_whole);
    tcase_add_test(tests, test_crc32c_table_and_instruction_agree_at_every_length_and_alignment);
    tcase_add_test(tests, test_siphash_1_3_vectors);
    tcase_add_test(tests, test_hash_u64_is_hash_bytes_of_its_little_endian_bytes);
    tcase_add_test(tests, test_the_seed_matters);
    suite_add_tcase(suite, tests);
    return suite;
}
