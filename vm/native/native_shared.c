/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_shared.c: the module "shared": numbers that all workers see.
 *
 * In:   names and keys. Out: numbers of vm/sys/shared.h.
 * Life: tables are made by main before process.workers; the counters at the latest by it. A worker that is started
 *       again is forked from the master, which has the same memory.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_bodies.h"
#include "vm/native/runtime_internal.h"
#include "vm/run/object.h"
#include "vm/sys/random.h"

cy_err runtime_make_shared(struct runtime *runtime)
{
    hash_seed seed;
    if (runtime->counters) return CY_OK;
    CY_TRY(random_hash_seed(&seed));
    return shared_table_new(LIMIT_SHARED_COUNTERS, seed, &runtime->counters);
}

void runtime_free_shared(struct runtime *runtime)
{
    shared_table_free(&runtime->counters);
    for (uint32_t i = 0; i < runtime->table_count; i++) {
        shared_table_free(&runtime->tables[i].table);
        mem_free(runtime->tables[i].name);
    }
    runtime->table_count = 0;
}

/* -- finding --------------------------------------------------------------------------------------------- */

static struct shared_table *native_shared_find_table(struct runtime *runtime, cy_bytes name)
{
    for (uint32_t i = 0; i < runtime->table_count; i++)
        if (cy_bytes_equal(name, cy_bytes_from_text(runtime->tables[i].name)))
            return runtime->tables[i].table;
    return NULL;
}

/* The number under a key, made when it is not there; NULL after a failure. */
static int64_t *native_shared_take(struct native_call *call, const char *native, struct shared_table *table,
                                   cy_bytes key, bool is_counter)
{
    int64_t *number;
    native_charge(call, 1);
    cy_err err = shared_table_take(table, key, &number);
    if (!cy_failed(err)) return number;
    if (cy_is(err, CY_ERR_VALUE))
        native_fail(call, err, "%s: a %s is 1..%d bytes (SHARED_KEY_BYTES), not %zu", native,
                    is_counter ? "name" : "key", LIMIT_SHARED_KEY_BYTES, key.count);
    else if (is_counter)
        native_fail(call, err, "%s: there are SHARED_COUNTERS = %d counters already", native,
                    LIMIT_SHARED_COUNTERS);
    else
        native_fail(call, err, "%s: the table is full", native);
    return NULL;
}

/* The counters; NULL after a failure. A process without workers makes them at first use. */
static struct shared_table *native_shared_counters(struct native_call *call, const char *native)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_err err = runtime_make_shared(runtime);
    if (cy_failed(err)) native_fail_reason(call, err, native);
    return runtime->counters;
}

static struct shared_table *native_shared_table_of(struct native_call *call, const char *native)
{
    cy_bytes name = string_bytes(call->args[0]);
    struct shared_table *table = native_shared_find_table(runtime_of(call->vm), name);
    if (!table)
        native_fail(call, CY_ERR(KEY), "%s: there is no table \"%.*s\"; main makes it with shared.table",
                    native, CY_BYTES_ARG(cy_bytes_slice(name, 0, 128)));
    return table;
}

static enum native_outcome native_shared_add_to(struct native_call *call, const char *native, int64_t *number,
                                                uint32_t amount_index)
{
    int64_t amount = native_has_arg(call, amount_index) ? call->args[amount_index].as.i : 1, sum;
    if (!number) return NATIVE_FAIL;
    if (!shared_add(number, amount, &sum))
        return native_fail(call, CY_ERR(OVERFLOW), "%s: the sum is out of the range of an int", native);
    return native_return(call, value_int(sum));
}

/* -- counters -------------------------------------------------------------------------------------------- */

enum native_outcome native_shared_get(struct native_call *call)
{
    struct shared_table *counters = native_shared_counters(call, "shared.get");
    if (!counters) return NATIVE_FAIL;
    int64_t *number = shared_table_find(counters, string_bytes(call->args[0]));
    return native_return(call, value_int(number ? shared_get(number) : 0));
}

static int64_t *native_shared_counter(struct native_call *call, const char *native)
{
    struct shared_table *counters = native_shared_counters(call, native);
    return counters ? native_shared_take(call, native, counters, string_bytes(call->args[0]), true) : NULL;
}

enum native_outcome native_shared_set(struct native_call *call)
{
    int64_t *number = native_shared_counter(call, "shared.set");
    if (!number) return NATIVE_FAIL;
    shared_set(number, call->args[1].as.i);
    return NATIVE_DONE;
}

enum native_outcome native_shared_add(struct native_call *call)
{
    return native_shared_add_to(call, "shared.add", native_shared_counter(call, "shared.add"), 1);
}

enum native_outcome native_shared_compare_and_set(struct native_call *call)
{
    int64_t *number = native_shared_counter(call, "shared.compare_and_set");
    if (!number) return NATIVE_FAIL;
    int64_t expected = call->args[1].as.i;
    return native_return(call, value_bool(shared_compare_and_set(number, &expected, call->args[2].as.i)));
}

/* -- tables ---------------------------------------------------------------------------------------------- */

enum native_outcome native_shared_table(struct native_call *call)
{
    struct runtime *runtime = runtime_of(call->vm);
    cy_bytes name = string_bytes(call->args[0]);
    int64_t entries = call->args[1].as.i;
    hash_seed seed;
    if (runtime->workers.asked)
        return native_fail(call, CY_ERR(UNSUPPORTED), "shared.table: must come before process.workers");
    if (name.count == 0 || name.count > LIMIT_SHARED_KEY_BYTES || memchr(name.data, 0, name.count))
        return native_fail(call, CY_ERR(VALUE),
                           "shared.table: a name is 1..%d bytes (SHARED_KEY_BYTES) without NUL",
                           LIMIT_SHARED_KEY_BYTES);
    if (entries < 1 || entries > LIMIT_SHARED_ENTRIES)
        return native_fail(call, CY_ERR(VALUE),
                           "shared.table: entries must be 1..%d (SHARED_ENTRIES), not %lld",
                           LIMIT_SHARED_ENTRIES, (long long)entries);
    if (native_shared_find_table(runtime, name))
        return native_fail(call, CY_ERR(EXISTS), "shared.table: there is a table \"%.*s\"",
                           CY_BYTES_ARG(name));
    if (runtime->table_count == LIMIT_SHARED_TABLES)
        return native_fail(call, CY_ERR(LIMIT), "shared.table: at most SHARED_TABLES = %d",
                           LIMIT_SHARED_TABLES);
    struct shared_named *named = &runtime->tables[runtime->table_count];
    named->name = mem_alloc(name.count + 1);
    cy_err err = named->name ? random_hash_seed(&seed) : CY_ERR(NO_MEMORY);
    if (!cy_failed(err)) err = shared_table_new((uint32_t)entries, seed, &named->table);
    if (cy_failed(err)) {
        mem_free(named->name);
        return native_fail(call, err, "shared.table: %s", cy_err_text(err, vm_korean(call->vm)));
    }
    memcpy(named->name, name.data, name.count + 1);
    runtime->table_count++;
    return NATIVE_DONE;
}

enum native_outcome native_shared_table_get(struct native_call *call)
{
    struct shared_table *table = native_shared_table_of(call, "shared.table_get");
    if (!table) return NATIVE_FAIL;
    int64_t *number = shared_table_find(table, string_bytes(call->args[1]));
    if (number) return native_return(call, value_int(shared_get(number)));
    return native_return(call, native_has_arg(call, 2) ? value_ref(call->args[2]) : value_nil());
}

enum native_outcome native_shared_table_set(struct native_call *call)
{
    struct shared_table *table = native_shared_table_of(call, "shared.table_set");
    int64_t *number =
        table ? native_shared_take(call, "shared.table_set", table, string_bytes(call->args[1]), false)
              : NULL;
    if (!number) return NATIVE_FAIL;
    shared_set(number, call->args[2].as.i);
    return NATIVE_DONE;
}

enum native_outcome native_shared_table_add(struct native_call *call)
{
    struct shared_table *table = native_shared_table_of(call, "shared.table_add");
    int64_t *number =
        table ? native_shared_take(call, "shared.table_add", table, string_bytes(call->args[1]), false)
              : NULL;
    return native_shared_add_to(call, "shared.table_add", number, 2);
}

enum native_outcome native_shared_table_entries(struct native_call *call)
{
    struct shared_table *table = native_shared_table_of(call, "shared.table_entries");
    uint8_t key[LIMIT_SHARED_KEY_BYTES];
    size_t key_bytes;
    int64_t number;
    cy_value map, text;
    if (!table) return NATIVE_FAIL;
    native_charge(call, 1 + shared_table_entries(table) / 16);
    cy_err err = map_new(call->vm, 0, &map);
    if (cy_failed(err)) return native_fail_reason(call, err, "shared.table_entries");
    for (uint32_t i = 0; i < shared_table_entries(table) && !cy_failed(err); i++) {
        if (!shared_table_at(table, i, key, &key_bytes, &number)) continue;
        err = string_new(call->vm, cy_bytes_of(key, key_bytes), &text);
        if (!cy_failed(err)) err = map_set(call->vm, &map, text, value_int(number));
    }
    if (!cy_failed(err)) return native_return(call, map);
    value_unref(call->vm, map);
    return native_fail(call, err, "shared.table_entries: %s", cy_err_text(err, vm_korean(call->vm)));
}
