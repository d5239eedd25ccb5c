/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_yaml.c: a YAML text from anybody.
 *
 * Promise: events nest, keys and values alternate, places lie in the text; a refusal has a place and a message.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/native/yaml_walk.h"

struct fuzz_yaml {
    uint32_t depth;
    bool maps[LIMIT_YAML_DEPTH + 1];
    bool value_next[LIMIT_YAML_DEPTH + 1];
};

static void fuzz_yaml_node(struct fuzz_yaml *walk)
{
    walk->value_next[walk->depth] = !walk->value_next[walk->depth];
}

static cy_err fuzz_yaml_event(void *context, const struct yaml_walk_event *event)
{
    struct fuzz_yaml *walk = context;
    CHECK(event->line >= 1 && event->column >= 1);
    switch (event->kind) {
    case YAML_WALK_SCALAR: fuzz_yaml_node(walk); break;
    case YAML_WALK_LIST_BEGIN:
    case YAML_WALK_MAP_BEGIN:
        fuzz_yaml_node(walk);
        CHECK(walk->depth < LIMIT_YAML_DEPTH);
        walk->maps[++walk->depth] = event->kind == YAML_WALK_MAP_BEGIN;
        walk->value_next[walk->depth] = false;
        break;
    case YAML_WALK_LIST_END:
    case YAML_WALK_MAP_END:
        CHECK(walk->depth > 0 && walk->maps[walk->depth] == (event->kind == YAML_WALK_MAP_END));
        CHECK(!walk->maps[walk->depth] || !walk->value_next[walk->depth]);
        walk->depth--;
        break;
    }
    return CY_OK;
}

void fuzz_target_yaml(cy_bytes input)
{
    struct fuzz_yaml walk = {0};
    struct yaml_walk_fault fault;
    yaml_walk_fault_init(&fault);
    struct yaml_walk_options options = {
        .korean = input.count & 1, .on_event = fuzz_yaml_event, .context = &walk};
    cy_err err = yaml_walk(input, &options, &fault);
    if (cy_failed(err))
        CHECK(fault.line >= 1 && fault.column >= 1 && fault.message.count > 0);
    else
        CHECK(walk.depth == 0);
    yaml_walk_fault_fini(&fault);
}
