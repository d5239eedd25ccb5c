/* SPDX-License-Identifier: MIT
 *
 * compiler/emit_pool.c: strings, constants and natives, each once.
 *
 * Invariant: an index is the order of first use, whatever the hash says.
 */
#include "compiler/emit_internal.h"
#include "vm/base/check.h"
#include "vm/base/mem.h"
#include "vm/code/native_table.h"

static uint32_t emit_pool_index(struct map *map, cy_bytes key)
{
    struct map_entry *entry = map_insert(map, key, NULL);
    if (!entry) mem_exhausted();
    return (uint32_t)(entry - map->entries);
}

uint32_t emit_string(struct emitter *emitter, cy_bytes text)
{
    return emit_pool_index(&emitter->strings, text);
}

static uint32_t emit_pool_constant(struct emitter *emitter, enum constant_kind kind, uint64_t bits)
{
    uint8_t key[9] = {(uint8_t)kind};
    for (int i = 0; i < 8; i++) key[1 + i] = (uint8_t)(bits >> (8 * i));
    return emit_pool_index(&emitter->constants, cy_bytes_of(key, sizeof key));
}

uint32_t emit_constant_int(struct emitter *emitter, int64_t integer)
{
    return emit_pool_constant(emitter, CONSTANT_INT, (uint64_t)integer);
}
uint32_t emit_constant_real(struct emitter *emitter, double real)
{
    uint64_t bits;
    CHECK(real == real); /* no literal and no fold gives NaN */
    memcpy(&bits, &real, sizeof bits);
    return emit_pool_constant(emitter, CONSTANT_FLOAT, bits);
}
uint32_t emit_constant_text(struct emitter *emitter, cy_bytes text)
{
    return emit_pool_constant(emitter, CONSTANT_STR, emit_string(emitter, text));
}
uint32_t emit_native(struct emitter *emitter, const struct native_row *row)
{
    return emit_pool_index(&emitter->natives, cy_bytes_from_text(row->english));
}
