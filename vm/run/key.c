/* SPDX-License-Identifier: MIT
 *
 * vm/run/key.c: what a map key hashes to.
 *
 * In:   any value. Out: a hash under which equal keys are equal (1 and 1.0 are one key, maps have no
 *       order), or KEY.
 * Method: containers keep their own stack of half-hashed levels instead of recursing.
 * Invariant: handles, functions, refs and opaque values are no keys, alone or inside: their identity must
 *       not outlive their owner.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/code/arith.h"
#include "vm/code/opcode.h"
#include "vm/run/code.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/visited.h"
#include "vm/run/vm_internal.h"

/* Different kinds of container start from different numbers, so that [1] and {1: nil} differ. */
enum {
    KEY_NIL = 0x6e,
    KEY_BOOL = 0x62,
    KEY_RANGE = 0x72,
    KEY_LIST = 0x6c,
    KEY_MAP = 0x6d,
    KEY_RECORD = 0x63
};

static uint64_t key_mix(struct vm *vm, uint64_t hash, uint64_t more)
{
    return hash_u64(vm->options.seed, hash * 0x9e3779b97f4a7c15u + more);
}

static cy_err key_hash_float(struct vm *vm, double number, uint64_t *hash_out)
{
    int64_t same;
    if (number != number) return (cy_err){CY_ERR_KEY, TAG_FLOAT};
    if (!cy_failed(arith_float_to_int(number, &same)) && (double)same == number) {
        *hash_out = map_object_hash_int(vm->options.seed, (uint64_t)same);
        return CY_OK;
    }
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    *hash_out = hash_u64(vm->options.seed, bits ^ 0x5555555555555555u);
    return CY_OK;
}

/* A value without contents. `*container_out` says that it has some instead. */
static cy_err key_hash_plain(struct vm *vm, cy_value key, bool inside, uint64_t *hash_out,
                             bool *container_out)
{
    *container_out = false;
    switch (key.tag) {
    case TAG_NIL:
    case TAG_ABSENT:
        if (!inside) return (cy_err){CY_ERR_KEY, key.tag};
        *hash_out = hash_u64(vm->options.seed, KEY_NIL);
        return CY_OK;
    case TAG_BOOL: *hash_out = key_mix(vm, KEY_BOOL, key.as.b); return CY_OK;
    case TAG_INT: *hash_out = map_object_hash_int(vm->options.seed, (uint64_t)key.as.i); return CY_OK;
    case TAG_FLOAT: return key_hash_float(vm, key.as.f, hash_out);
    case TAG_STR: *hash_out = string_hash(vm, string_of(key)); return CY_OK;
    case TAG_RANGE:
        *hash_out =
            key_mix(vm, key_mix(vm, KEY_RANGE, (uint64_t)range_of(key)->from), (uint64_t)range_of(key)->to);
        return CY_OK;
    case TAG_LIST:
    case TAG_MAP:
    case TAG_RECORD: *container_out = true; return CY_OK;
    default: return (cy_err){CY_ERR_KEY, key.tag}; /* the one that is refused may lie deep inside */
    }
}

bool error_raise_bad_key(struct vm *vm, cy_err reason, cy_value key)
{
    CHECK(cy_is(reason, CY_ERR_KEY));
    bool inside = reason.detail && reason.detail != (int32_t)key.tag;
    const char *kind = inside ? kind_name((enum value_kind)value_kind_by_tag[reason.detail], false)
                              : value_kind_text(vm, key);
    return error_raise(vm, reason, MESSAGE_BAD_KEY, kind);
}

struct key_level {
    cy_value container;
    uint32_t index;    /* of the next content */
    uint64_t hash;     /* so far */
    uint64_t key_hash; /* map: of the key whose value comes next */
};

static uint64_t key_start(struct vm *vm, cy_value container)
{
    switch (container.tag) {
    case TAG_LIST: return KEY_LIST;
    case TAG_MAP: return KEY_MAP;
    default: return string_hash(vm, string_of(record_of(container)->shape->name)) + KEY_RECORD;
    }
}

/* The next content of a level; a map's entries count once, their key was hashed when it was put there. */
static bool key_next(struct key_level *level, cy_value *content_out)
{
    switch (level->container.tag) {
    case TAG_LIST: {
        const struct list *list = list_of(level->container);
        if (level->index >= list->count) return false;
        *content_out = list_item(list, level->index++);
        return true;
    }
    case TAG_RECORD: {
        const struct record *record = record_of(level->container);
        if (level->index >= record->shape->field_count) return false;
        *content_out = record->fields[level->index++];
        return true;
    }
    default: {
        const struct map_object *map = map_object_of(level->container);
        if (!map_object_seek(map, &level->index)) return false;
        level->key_hash = map->entries[level->index].hash;
        *content_out = map->entries[level->index++].value;
        return true;
    }
    }
}

static void key_add(struct vm *vm, struct key_level *level, uint64_t content_hash)
{
    /* A sum does not depend on the order of entries. */
    if (level->container.tag == TAG_MAP)
        level->hash += key_mix(vm, level->key_hash, content_hash);
    else
        level->hash = key_mix(vm, level->hash, content_hash);
}

/* A long walk remembers the hashes of containers that it has finished, so that shared parts cost once. */
struct key_walk {
    uint64_t steps;
    struct visited visited;
};

static cy_err key_finish(struct vm *vm, struct key_walk *walk, const struct key_level *level,
                         uint64_t *hash_out)
{
    const struct object *object = level->container.as.object;
    *hash_out = hash_u64(vm->options.seed, level->hash);
    bool keep =
        walk->steps >= VISITED_STEPS_FIRST && object->refs > 1 && !visited_find(&walk->visited, object);
    return keep ? visited_put(vm, &walk->visited, object, *hash_out) : CY_OK;
}

/* The hash of a content that needs no descending, also of a container that was finished before. */
static cy_err key_hash_content(struct vm *vm, struct key_walk *walk, cy_value content, uint64_t *hash_out,
                               bool *descend_out)
{
    CY_TRY(key_hash_plain(vm, content, true, hash_out, descend_out));
    CY_TRY(visited_step(vm, &walk->steps));
    if (walk->steps > LIMIT_KEY_STEPS) return (cy_err){CY_ERR_LIMIT, LIMIT_KEY_STEPS};
    const uint64_t *known = *descend_out ? visited_find(&walk->visited, content.as.object) : NULL;
    if (!known) return CY_OK;
    *hash_out = *known;
    *descend_out = false;
    return CY_OK;
}

static cy_err key_hash_container(struct vm *vm, cy_value key, uint64_t *hash_out)
{
    struct key_level *levels = NULL;
    struct key_walk walk = {0};
    uint32_t depth = 0, capacity = 0;
    cy_err err = CY_OK;
    for (;;) {
        if (key.tag == TAG_RECORD) error_settle_places(vm, key);
        if (depth == LIMIT_VALUE_DEPTH) {
            err = CY_ERR(DEPTH);
            break;
        }
        if (depth == capacity) {
            capacity = capacity ? capacity * 2 : 8;
            struct key_level *more = mem_resize(levels, capacity * sizeof *levels);
            if (!more) {
                err = CY_ERR(NO_MEMORY);
                break;
            }
            levels = more;
        }
        levels[depth++] = (struct key_level){key, 0, key_start(vm, key), 0};
        bool descend = false;
        while (depth > 0 && !descend) {
            cy_value content;
            if (!key_next(&levels[depth - 1], &content)) {
                err = key_finish(vm, &walk, &levels[--depth], hash_out);
                if (cy_failed(err)) break;
                if (depth > 0) key_add(vm, &levels[depth - 1], *hash_out);
                continue;
            }
            uint64_t hash = 0;
            err = key_hash_content(vm, &walk, content, &hash, &descend);
            if (cy_failed(err)) break;
            if (descend)
                key = content;
            else
                key_add(vm, &levels[depth - 1], hash);
        }
        if (cy_failed(err) || !descend) break;
    }
    mem_free(levels);
    visited_fini(vm, &walk.visited);
    return err;
}

cy_err map_object_hash_key(struct vm *vm, cy_value key, uint64_t *hash_out)
{
    bool container;
    CY_TRY(key_hash_plain(vm, key, false, hash_out, &container));
    return container ? key_hash_container(vm, key, hash_out) : CY_OK;
}
