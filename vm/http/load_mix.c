/* SPDX-License-Identifier: MIT
 *
 * vm/http/load_mix.c: which request comes next: by weight, from a seed.
 *
 * In:   rows with weights. Out: indexes, the same ones for the same seed, at the same cost for any number of rows.
 * Invariant: each place stands for 1/count of the draws: `threshold` of 2^32 parts of it are its own, the rest its
 *       alias's; summed up every row has its weight's share (to 1 part in 2^32).
 */
#include "vm/base/mem.h"
#include "vm/http/load_internal.h"

static uint64_t load_mix_random(struct load_mix *mix)
{
    /* xorshift64*: the high bits are good, which is where both draws come from. */
    uint64_t x = mix->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    mix->state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* Pairs a place that has less than its share with one that has more, until all are full. `shares` are in 1/count of
 * the whole weight, scaled so that `total` is one full place. */
static void load_mix_pair(struct load_mix *mix, uint64_t *shares, uint64_t total, uint32_t *poor)
{
    uint32_t poor_count = 0, rich = 0;
    for (uint32_t i = 0; i < mix->count; i++)
        if (shares[i] < total) poor[poor_count++] = i;
    while (poor_count > 0) {
        uint32_t taker = poor[--poor_count];
        while (rich < mix->count && shares[rich] <= total) rich++;
        if (rich == mix->count) break;
        mix->places[taker].threshold = (uint32_t)(((unsigned __int128)shares[taker] << 32) / total);
        mix->places[taker].alias = rich;
        shares[rich] -= total - shares[taker];
        if (shares[rich] < total) poor[poor_count++] = rich;
    }
}

cy_err load_mix_init(struct load_mix *mix, const struct load_row *rows, uint32_t count, uint64_t seed)
{
    *mix = (struct load_mix){.count = count, .state = seed ? seed : 1};
    for (unsigned i = 0; i < 8; i++) (void)load_mix_random(mix); /* away from small seeds */
    uint64_t *shares = mem_alloc(count * sizeof *shares);
    uint32_t *poor = mem_alloc(count * sizeof *poor);
    mix->places = mem_alloc(count * sizeof *mix->places);
    bool enough = shares && poor && mix->places;
    if (enough) {
        uint64_t total = 0;
        for (uint32_t i = 0; i < count; i++) {
            total += rows[i].weight;
            shares[i] = (uint64_t)rows[i].weight * count; /* both are 32 bits */
            mix->places[i].threshold = UINT32_MAX;
            mix->places[i].alias = i;
        }
        load_mix_pair(mix, shares, total, poor);
    } else {
        load_mix_fini(mix);
    }
    mem_free(shares);
    mem_free(poor);
    return enough ? CY_OK : CY_ERR(NO_MEMORY);
}

void load_mix_fini(struct load_mix *mix)
{
    mem_free(mix->places);
    mix->places = NULL;
}

uint32_t load_mix_next(struct load_mix *mix)
{
    if (mix->count == 1) return 0;
    uint64_t random = load_mix_random(mix);
    uint32_t place = (uint32_t)(((random >> 32) * mix->count) >> 32);
    /* The low half decides within the place: shifted, for the lowest bits of xorshift64* are its weakest. */
    uint32_t within = (uint32_t)(random >> 3);
    return within < mix->places[place].threshold ? place : mix->places[place].alias;
}
