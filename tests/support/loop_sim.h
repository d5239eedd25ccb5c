/* SPDX-License-Identifier: MIT
 *
 * tests/support/loop_sim.h: a loop on a network that exists only in memory and obeys one seed.
 *
 * In:   a seed and what may go wrong. Out: a struct loop like any other, for code that talks to sockets. What it
 * does to you, all drawn from the seed: bytes arrive in pieces and late, receives and sends are short, events of
 * different sockets come in another order, connections break. The clock moves only when everybody waits, and then
 * straight to the next timer, so a minute of time-outs takes no time.
 *
 * Invariant: same seed, same calls: same run. Print the seed when a test fails.
 */
#ifndef CY_TESTS_LOOP_SIM_H
#define CY_TESTS_LOOP_SIM_H

#include "vm/net/loop.h"

struct loop_sim;
struct loop_sim_options {
    uint64_t seed;
    bool pieces;                 /* bytes arrive, are received and are sent in random parts */
    bool reorder;                /* events come in random order, some of them a wait later */
    uint32_t resets_per_million; /* chance, per connection and wait, that it breaks */
    uint32_t window_bytes;       /* bytes in flight per direction; 0: 65536 */
    uint32_t ends_max;           /* descriptors at once; 0: 4096 */
};

/* The loop and its world; the world goes when the loop is freed. */
CY_NODISCARD cy_err loop_sim_new(const struct loop_sim_options *options, struct loop **loop_out,
                                 struct loop_sim **sim_out);
/* Two connected descriptors, for loop_socket_open. */
void loop_sim_pair(struct loop_sim *sim, int *a_out, int *b_out);
/* A listening descriptor; loop_connect to this address reaches it. */
int loop_sim_listen(struct loop_sim *sim, const struct address *address);
uint64_t loop_sim_random(struct loop_sim *sim, uint64_t below); /* for the test's own decisions */

#endif
