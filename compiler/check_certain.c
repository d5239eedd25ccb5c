/* SPDX-License-Identifier: MIT
 *
 * compiler/check_certain.c: warnings about what is certain: an expression that always fails, a key that stands twice.
 *
 * In:   nodes whose children were folded, what fold.c could not fold. Out: warnings.
 * Rule:  a warning and no error, because the code may never be reached, or be reached inside a try that means it.
 * Not here: kinds that never fit (check_kind.c), values against annotations (check.c: those are errors).
 */
#include "compiler/resolve_internal.h"
#include "vm/base/mem.h"

void check_certain(struct resolver *resolver, const struct node *node, cy_err err)
{
    if (!cy_failed(err)) return;
    (void)diag_report_1(&resolver->compilation->warnings, &resolver->unit->source, node->span,
                        WARNING_CERTAIN_FAILURE,
                        cy_bytes_from_text(cy_err_text(err, resolver->compilation->options->korean)));
}

/* Equal keys of a map are equal bytes here; false when the key's value is not known. 1 and 1.0 are one key. */
static bool check_certain_key(const struct node *node, struct builder *out)
{
    const double above = 9223372036854775808.0;
    int64_t integer = node->kind == NODE_INT ? node->as.integer : 0;
    uint8_t kind = node->kind;
    if (node->kind == NODE_FLOAT && node->as.real >= -above && node->as.real < above) {
        integer = (int64_t)node->as.real;
        if ((double)integer == node->as.real) kind = NODE_INT;
    }
    builder_clear(out);
    builder_u8(out, kind);
    switch (kind) {
    case NODE_INT: builder_u64(out, (uint64_t)integer); return true;
    case NODE_BOOL: builder_u8(out, node->as.boolean); return true;
    case NODE_FLOAT:
        builder_bytes(out, cy_bytes_of((const uint8_t *)&node->as.real, sizeof(double)));
        return true;
    case NODE_STR: builder_bytes(out, node->as.text); return true;
    default: return false;
    }
}

void check_certain_keys(struct resolver *resolver, const struct node *map)
{
    const struct node_list *items = &map->as.items;
    struct map seen;
    struct builder key;
    map_init(&seen, (hash_seed){0, 0});
    builder_init(&key);
    for (uint32_t i = 0; items->count > 2 && i < items->count; i += 2) {
        struct node *node = items->items[i];
        bool is_new;
        if (!check_certain_key(node, &key)) continue;
        struct map_entry *entry = key.failed ? NULL : map_insert(&seen, builder_view(&key), &is_new);
        if (!entry) mem_exhausted();
        if (is_new) {
            entry->value.pointer = node;
            continue;
        }
        const struct source *source = &resolver->unit->source;
        const struct node *first = entry->value.pointer;
        diag_add_label(diag_report_1(&resolver->compilation->warnings, source, node->span, WARNING_KEY_TWICE,
                                     source_slice(source, node->span)),
                       DIAG_LABEL_FIRST, source, first->span);
    }
    builder_fini(&key);
    map_fini(&seen);
}

/* Whether a literal map has no such key. */
static bool check_certain_no_key(const struct node *map, const struct node *index)
{
    struct builder wanted, key;
    builder_init(&wanted);
    builder_init(&key);
    bool missing = check_certain_key(index, &wanted);
    for (uint32_t i = 0; missing && i < map->as.items.count; i += 2)
        missing = check_certain_key(map->as.items.items[i], &key) &&
                  !cy_bytes_equal(builder_view(&key), builder_view(&wanted));
    if (wanted.failed || key.failed) mem_exhausted();
    builder_fini(&wanted);
    builder_fini(&key);
    return missing;
}

/* Whether a literal of `count` items has not that one, or not that part. */
static bool check_certain_outside(const struct node *index, int64_t count)
{
    if (index->kind == NODE_INT) return index->as.integer < 0 || index->as.integer >= count;
    if (index->kind != NODE_RANGE) return false;
    const struct node *start = index->as.binary.left, *end = index->as.binary.right;
    if (start->kind != NODE_INT || end->kind != NODE_INT) return false;
    return start->as.integer < 0 || end->as.integer < start->as.integer || end->as.integer > count;
}

void check_certain_item(struct resolver *resolver, const struct node *node)
{
    bool is_field = node->kind == NODE_FIELD;
    const struct node *target = is_field ? node->as.field.target : node->as.index.target;
    const struct node name = {.kind = NODE_STR,
                              .as.text = is_field ? node->as.field.name.text : CY_BYTES_NONE};
    const struct node *index = is_field ? &name : node->as.index.index;
    cy_err err = CY_OK;
    if (target->kind == NODE_MAP && check_certain_no_key(target, index)) err = CY_ERR(KEY);
    if (target->kind == NODE_LIST && check_certain_outside(index, target->as.items.count))
        err = CY_ERR(INDEX);
    if (target->kind == NODE_STR && check_certain_outside(index, (int64_t)target->as.text.count))
        err = CY_ERR(INDEX);
    check_certain(resolver, node, err);
}
