/* SPDX-License-Identifier: MIT
 *
 * vm/run/heap_stats.c: walks a VM's heap and counts it by kind.
 *
 * In:   a VM outside of vm_run. Out: rows.
 * Invariant: the walk changes nothing and takes its own memory from outside the VM's heap, except the table of what was
 *       seen (visited.h); sizes are read before it exists.
 * Not here: prepared code, stacks and tables, which are no values: they are the rest of the bytes.
 */
#include "vm/run/heap_stats.h"

#include "vm/base/mem.h"
#include "vm/run/fiber.h"
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/visited.h"

#include <stdio.h>
#include <stdlib.h>

struct heap_stats_walk {
    struct vm *vm;
    struct heap_stats *stats;
    struct visited visited;
    cy_value *todo;
    size_t todo_count;
    size_t todo_capacity;
    cy_err err;
};

/* -- kinds ----------------------------------------------------------------------------------------------- */

static const char *const heap_stats_list_names[] = {
    [LIST_EMPTY] = "list, empty",     [LIST_BYTE] = "list of byte", [LIST_INT64] = "list of int",
    [LIST_FLOAT64] = "list of float", [LIST_ANY] = "list of any",
};

static size_t heap_stats_list_bytes(const struct list *list)
{
    static const uint8_t item_bytes[] = {[LIST_EMPTY] = sizeof(cy_value),
                                         [LIST_BYTE] = 1,
                                         [LIST_INT64] = 8,
                                         [LIST_FLOAT64] = 8,
                                         [LIST_ANY] = sizeof(cy_value)};
    return sizeof *list + (size_t)list->capacity * item_bytes[list_kind_of(list)];
}

/* The row's key, its name when the row is new, and the object's bytes. Keys are addresses that nothing else shares. */
static const void *heap_stats_kind(struct vm *vm, cy_value value, const char **name_out,
                                   const char **detail_out, size_t *bytes_out)
{
    *detail_out = NULL;
    switch (value.tag) {
    case TAG_STR:
        *bytes_out = sizeof(struct string) + string_of(value)->capacity + 1;
        return *name_out = "str";
    case TAG_LIST:
        *bytes_out = heap_stats_list_bytes(list_of(value));
        return *name_out = heap_stats_list_names[list_kind_of(list_of(value))];
    case TAG_MAP: {
        const struct map_object *map = map_object_of(value);
        *bytes_out =
            sizeof *map + map->entry_capacity * sizeof *map->entries + map->slot_count * sizeof *map->slots;
        return *name_out = "map";
    }
    case TAG_RANGE: *bytes_out = sizeof(struct range); return *name_out = "range";
    case TAG_RECORD: {
        const struct record_shape *shape = record_of(value)->shape;
        *bytes_out = sizeof(struct record) + shape->field_count * sizeof(cy_value);
        *name_out = "record ";
        *detail_out = value_kind_text(vm, value);
        return shape;
    }
    case TAG_FUNCTION: {
        const struct function_object *function = function_of(value);
        *bytes_out = sizeof *function + function->capture_capacity * sizeof(cy_value);
        return *name_out = function->native ? "native" : function->capture_count ? "closure" : "function";
    }
    case TAG_REF: *bytes_out = sizeof(struct ref); return *name_out = "ref";
    default:
        *bytes_out = sizeof(struct opaque);
        *name_out = "opaque ";
        *detail_out = value_kind_text(vm, value);
        return opaque_of(value)->type;
    }
}

static struct heap_stats_row *heap_stats_row(struct heap_stats *stats, const void *key, const char *name,
                                             const char *detail)
{
    for (uint32_t i = 0; i < stats->row_count; i++)
        if (stats->rows[i].key == key) return &stats->rows[i];
    if (stats->row_count == stats->row_capacity) {
        uint32_t capacity = stats->row_capacity ? stats->row_capacity * 2 : 16;
        struct heap_stats_row *rows = mem_resize(stats->rows, capacity * sizeof *rows);
        if (!rows) return NULL;
        stats->rows = rows;
        stats->row_capacity = capacity;
    }
    struct heap_stats_row *row = &stats->rows[stats->row_count++];
    *row = (struct heap_stats_row){.key = key};
    snprintf(row->name, sizeof row->name, "%s%s", name, detail ? detail : "");
    return row;
}

/* -- the walk -------------------------------------------------------------------------------------------- */

static void heap_stats_reach(struct heap_stats_walk *walk, cy_value value)
{
    if (!value_is_heap(value) || cy_failed(walk->err)) return;
    if (visited_find(&walk->visited, value.as.object)) return;
    walk->err = visited_put(walk->vm, &walk->visited, value.as.object, 0);
    if (cy_failed(walk->err)) return;
    if (walk->todo_count == walk->todo_capacity) {
        size_t capacity = walk->todo_capacity ? walk->todo_capacity * 2 : 256;
        cy_value *todo = mem_resize(walk->todo, capacity * sizeof *todo);
        if (!todo) {
            walk->err = CY_ERR(NO_MEMORY);
            return;
        }
        walk->todo = todo;
        walk->todo_capacity = capacity;
    }
    walk->todo[walk->todo_count++] = value;
}

static void heap_stats_reach_all(struct heap_stats_walk *walk, const cy_value *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) heap_stats_reach(walk, values[i]);
}

static void heap_stats_contents(struct heap_stats_walk *walk, cy_value value)
{
    switch (value.tag) {
    case TAG_LIST: {
        const struct list *list = list_of(value);
        if (list_kind_of(list) == LIST_ANY) heap_stats_reach_all(walk, list->items.any, list->count);
        return;
    }
    case TAG_MAP: {
        const struct map_object *map = map_object_of(value);
        for (uint32_t i = 0; i < map->entry_count; i++) {
            heap_stats_reach(walk, map_object_key(&map->entries[i]));
            heap_stats_reach(walk, map->entries[i].value);
        }
        return;
    }
    case TAG_RECORD: {
        const struct record *record = record_of(value);
        heap_stats_reach_all(walk, record->fields, record->shape->field_count);
        return;
    }
    case TAG_FUNCTION: {
        const struct function_object *function = function_of(value);
        heap_stats_reach_all(walk, function->captures, function->capture_count);
        return;
    }
    case TAG_REF: heap_stats_reach(walk, ref_of(value)->value); return;
    default: return;
    }
}

static void heap_stats_instance(struct heap_stats_walk *walk, const struct instance *instance)
{
    const struct program *program = instance->program;
    heap_stats_reach_all(walk, instance->constants, program->constant_count);
    heap_stats_reach_all(walk, instance->globals, program->global_count);
    heap_stats_reach_all(walk, instance->function_values, program->function_count);
    for (uint32_t i = 0; instance->natives && i < program->native_count; i++)
        heap_stats_reach(walk, instance->natives[i].function);
    for (uint32_t i = 0; instance->shapes && i < program->record_count; i++) {
        const struct record_shape *shape = instance->shapes[i];
        heap_stats_reach(walk, shape->name);
        heap_stats_reach_all(walk, shape->fields, shape->field_count);
    }
}

/* All slots: those above the frame on top hold no heap value (fiber.h). */
static void heap_stats_fiber(struct heap_stats_walk *walk, const struct fiber *fiber)
{
    if (fiber->state == FIBER_POOLED) return;
    heap_stats_reach_all(walk, fiber->stack, (size_t)(fiber->stack_end - fiber->stack));
    heap_stats_reach(walk, fiber->resume_value);
    heap_stats_reach(walk, fiber->result);
    heap_stats_reach(walk, fiber->stop_record);
    heap_stats_reach(walk, fiber->child_error);
    for (const struct task *task = fiber->ended_first; task; task = task->next)
        heap_stats_reach(walk, task->result);
}

static void heap_stats_roots(struct heap_stats_walk *walk)
{
    struct vm *vm = walk->vm;
    for (const struct instance *instance = vm->instances; instance; instance = instance->next)
        heap_stats_instance(walk, instance);
    for (uint32_t i = 0; i < vm->fiber_count; i++) heap_stats_fiber(walk, vm->fibers[i]);
    heap_stats_reach(walk, vm->memory_error);
    heap_stats_reach(walk, vm->raised);
    heap_stats_reach(walk, vm->error_shape->name);
    heap_stats_reach_all(walk, vm->error_shape->fields, vm->error_shape->field_count);
}

static int heap_stats_compare(const void *a, const void *b)
{
    const struct heap_stats_row *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

cy_err heap_stats_collect(struct vm *vm, struct heap_stats *stats_out)
{
    *stats_out = (struct heap_stats){.heap_objects = vm->heap_objects, .heap_bytes = vm->heap_bytes};
    struct heap_stats_walk walk = {.vm = vm, .stats = stats_out, .err = CY_OK};
    uint64_t peak = vm->heap_bytes_peak;
    heap_stats_roots(&walk);
    while (walk.todo_count > 0 && !cy_failed(walk.err)) {
        cy_value value = walk.todo[--walk.todo_count];
        const char *name, *detail;
        size_t bytes;
        const void *key = heap_stats_kind(vm, value, &name, &detail, &bytes);
        struct heap_stats_row *row = heap_stats_row(stats_out, key, name, detail);
        if (!row) {
            walk.err = CY_ERR(NO_MEMORY);
            break;
        }
        row->count++;
        row->bytes += bytes;
        stats_out->object_count++;
        stats_out->object_bytes += bytes;
        heap_stats_contents(&walk, value);
    }
    visited_fini(vm, &walk.visited);
    vm->heap_bytes_peak = peak; /* the table was ours, not the program's */
    mem_free(walk.todo);
    if (cy_failed(walk.err))
        heap_stats_fini(stats_out);
    else if (stats_out->row_count > 0)
        qsort(stats_out->rows, stats_out->row_count, sizeof *stats_out->rows, heap_stats_compare);
    return walk.err;
}

void heap_stats_fini(struct heap_stats *stats)
{
    mem_free(stats->rows);
    *stats = (struct heap_stats){0};
}

/* -- text ------------------------------------------------------------------------------------------------ */

static void heap_stats_line(const char *name, uint64_t count, uint64_t bytes, struct builder *out)
{
    builder_printf(out, "  %-28s %12llu %14llu\n", name, (unsigned long long)count,
                   (unsigned long long)bytes);
}

void heap_stats_describe(struct vm *vm, const struct heap_stats *stats, bool korean, struct builder *out)
{
    struct vm_counters counters;
    vm_read_counters(vm, &counters);
    builder_printf(out, "  %-28s %12s %14s\n", "heap", "objects", "bytes");
    for (uint32_t i = 0; i < stats->row_count; i++)
        heap_stats_line(stats->rows[i].name, stats->rows[i].count, stats->rows[i].bytes, out);
    /* Its bytes cannot be told from those of code, stacks and tables. */
    builder_printf(out, "  %-28s %12llu\n", "not reached",
                   (unsigned long long)(stats->heap_objects - stats->object_count));
    heap_stats_line("all, with code and stacks", stats->heap_objects, stats->heap_bytes, out);
    const struct {
        const char *english, *korean;
        uint64_t number;
    } lines[] = {
        {"peak heap bytes", "힙의 최대 바이트", counters.heap_bytes_peak},
        {"fibers started", "시작한 파이버", counters.fibers_started},
        {"tasks spawned", "맡긴 일", counters.tasks_started},
        {"containers copied", "복사한 컨테이너", counters.copies},
        {"budget steps", "예산 걸음", counters.instructions},
    };
    for (size_t i = 0; i < CY_COUNT_OF(lines); i++)
        builder_printf(out, "%s: %llu\n", korean ? lines[i].korean : lines[i].english,
                       (unsigned long long)lines[i].number);
}
