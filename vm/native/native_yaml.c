/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_yaml.c: the native yaml.parse: events of yaml_walk.h become nodes made of maps and lists.
 *
 * In:   events, whose depth yaml_walk has bounded. Out: one owned root value.
 * Invariant: every value made is owned by exactly one place: a frame, a node already in its parent, or the root.
 *       An explicit stack, no recursion. A long document takes several turns, in pieces of some nodes.
 * Not here: reading YAML (yaml_walk.c), duplicate keys (the program).
 */
#include "vm/native/native_yaml.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/native/native_bodies.h"
#include "vm/run/heap.h"
#include "vm/run/native_call.h"
#include "vm/run/object.h"
#include "vm/run/vm.h"

/* A list or map whose end has not come yet. */
struct native_yaml_frame {
    cy_value children; /* list: the nodes; map: the entries so far */
    cy_value key;      /* map: a key node whose value has not come yet */
    uint32_t line;
    uint32_t column;
    bool is_map;
    bool has_key;
};

/* The words that every node repeats are made once: a document of a million nodes then holds one "line". */
enum native_yaml_word {
    NATIVE_YAML_KIND,
    NATIVE_YAML_LINE,
    NATIVE_YAML_COLUMN,
    NATIVE_YAML_VALUE,
    NATIVE_YAML_QUOTED,
    NATIVE_YAML_ITEMS,
    NATIVE_YAML_ENTRIES,
    NATIVE_YAML_KEY,
    NATIVE_YAML_SCALAR,
    NATIVE_YAML_LIST,
    NATIVE_YAML_MAP,
    NATIVE_YAML_WORD_COUNT
};
static const char *const native_yaml_words[NATIVE_YAML_WORD_COUNT] = {
    "kind", "line", "column", "value", "quoted", "items", "entries", "key", "scalar", "list", "map",
};

/* Of the budget: what making a node takes, about a microsecond. */
enum { NATIVE_YAML_EVENT_STEPS = 8 };

/* On the heap from the start: the events of the walk know its address. */
struct native_yaml {
    struct vm *vm;
    struct yaml_walk *walk; /* counted on the heap; NULL: not begun */
    struct yaml_walk_fault fault;
    cy_value words[NATIVE_YAML_WORD_COUNT];
    struct native_yaml_frame frames[LIMIT_YAML_DEPTH];
    uint32_t depth;
    cy_value root;
};

static cy_err native_yaml_set(struct native_yaml *yaml, cy_value *map, enum native_yaml_word word,
                              cy_value owned_value)
{
    return map_set(yaml->vm, map, value_ref(yaml->words[word]), owned_value);
}

/* A node with kind and place. Later members are set by the caller. */
static cy_err native_yaml_node(struct native_yaml *yaml, enum native_yaml_word kind, uint32_t line,
                               uint32_t column, cy_value *owned_out)
{
    cy_value node;
    CY_TRY(map_new(yaml->vm, 5, &node));
    cy_err err = native_yaml_set(yaml, &node, NATIVE_YAML_KIND, value_ref(yaml->words[kind]));
    if (!cy_failed(err)) err = native_yaml_set(yaml, &node, NATIVE_YAML_LINE, value_int(line));
    if (!cy_failed(err)) err = native_yaml_set(yaml, &node, NATIVE_YAML_COLUMN, value_int(column));
    if (cy_failed(err)) {
        value_unref(yaml->vm, node);
        return err;
    }
    *owned_out = node;
    return CY_OK;
}

/* Sets a node's last member; the node goes when that fails. Takes both. */
static cy_err native_yaml_finish_node(struct native_yaml *yaml, cy_value *node, enum native_yaml_word word,
                                      cy_value owned_value)
{
    cy_err err = native_yaml_set(yaml, node, word, owned_value);
    if (cy_failed(err)) value_unref(yaml->vm, *node);
    return err;
}

/* The map {key: node, value: node}. */
static cy_err native_yaml_entry(struct native_yaml *yaml, cy_value owned_key, cy_value owned_value,
                                cy_value *owned_out)
{
    cy_value entry;
    cy_err err = map_new(yaml->vm, 2, &entry);
    if (cy_failed(err)) {
        value_unref(yaml->vm, owned_key);
        value_unref(yaml->vm, owned_value);
        return err;
    }
    err = native_yaml_set(yaml, &entry, NATIVE_YAML_KEY, owned_key);
    if (cy_failed(err)) {
        value_unref(yaml->vm, owned_value);
        value_unref(yaml->vm, entry);
        return err;
    }
    CY_TRY(native_yaml_finish_node(yaml, &entry, NATIVE_YAML_VALUE, owned_value));
    *owned_out = entry;
    return CY_OK;
}

/* Hangs a finished node where it belongs. */
static cy_err native_yaml_add(struct native_yaml *yaml, cy_value owned_node)
{
    if (yaml->depth == 0) {
        CHECK(yaml->root.tag == TAG_NIL);
        yaml->root = owned_node;
        return CY_OK;
    }
    struct native_yaml_frame *frame = &yaml->frames[yaml->depth - 1];
    if (!frame->is_map) return list_append(yaml->vm, &frame->children, owned_node);
    if (!frame->has_key) {
        frame->key = owned_node;
        frame->has_key = true;
        return CY_OK;
    }
    cy_value entry, key = frame->key;
    frame->has_key = false;
    frame->key = value_nil();
    CY_TRY(native_yaml_entry(yaml, key, owned_node, &entry));
    return list_append(yaml->vm, &frame->children, entry);
}

static cy_err native_yaml_begin(struct native_yaml *yaml, const struct yaml_walk_event *event)
{
    CHECK(yaml->depth < LIMIT_YAML_DEPTH);
    struct native_yaml_frame *frame = &yaml->frames[yaml->depth];
    *frame = (struct native_yaml_frame){
        .key = value_nil(),
        .line = event->line,
        .column = event->column,
        .is_map = event->kind == YAML_WALK_MAP_BEGIN,
    };
    CY_TRY(list_new(yaml->vm, 4, &frame->children));
    yaml->depth++;
    return CY_OK;
}

static cy_err native_yaml_end(struct native_yaml *yaml, const struct yaml_walk_event *event)
{
    CHECK(yaml->depth > 0);
    struct native_yaml_frame *frame = &yaml->frames[--yaml->depth];
    CHECK(frame->is_map == (event->kind == YAML_WALK_MAP_END) && !frame->has_key);
    cy_value node, children = frame->children;
    cy_err err = native_yaml_node(yaml, frame->is_map ? NATIVE_YAML_MAP : NATIVE_YAML_LIST, frame->line,
                                  frame->column, &node);
    if (cy_failed(err)) {
        value_unref(yaml->vm, children);
        return err;
    }
    CY_TRY(native_yaml_finish_node(yaml, &node, frame->is_map ? NATIVE_YAML_ENTRIES : NATIVE_YAML_ITEMS,
                                   children));
    return native_yaml_add(yaml, node);
}

static cy_err native_yaml_scalar(struct native_yaml *yaml, const struct yaml_walk_event *event)
{
    cy_value node, text;
    CY_TRY(native_yaml_node(yaml, NATIVE_YAML_SCALAR, event->line, event->column, &node));
    cy_err err = string_new(yaml->vm, event->text, &text);
    if (!cy_failed(err)) err = native_yaml_set(yaml, &node, NATIVE_YAML_VALUE, text);
    if (cy_failed(err)) {
        value_unref(yaml->vm, node);
        return err;
    }
    CY_TRY(native_yaml_finish_node(yaml, &node, NATIVE_YAML_QUOTED, value_bool(event->quoted)));
    return native_yaml_add(yaml, node);
}

static cy_err native_yaml_on_event(void *context, const struct yaml_walk_event *event)
{
    struct native_yaml *yaml = context;
    vm_work(yaml->vm, NATIVE_YAML_EVENT_STEPS);
    switch (event->kind) {
    case YAML_WALK_SCALAR: return native_yaml_scalar(yaml, event);
    case YAML_WALK_LIST_BEGIN:
    case YAML_WALK_MAP_BEGIN: return native_yaml_begin(yaml, event);
    case YAML_WALK_LIST_END:
    case YAML_WALK_MAP_END: return native_yaml_end(yaml, event);
    }
    UNREACHABLE();
}

/* Drops whatever it holds and itself. */
static void native_yaml_free(struct vm *vm, void *work)
{
    struct native_yaml *yaml = work;
    while (yaml->depth > 0) {
        struct native_yaml_frame *frame = &yaml->frames[--yaml->depth];
        value_unref(vm, frame->children);
        value_unref(vm, frame->key);
    }
    for (size_t i = 0; i < NATIVE_YAML_WORD_COUNT; i++) value_unref(vm, yaml->words[i]);
    value_unref(vm, yaml->root);
    yaml_walk_fault_fini(&yaml->fault);
    if (yaml->walk) heap_uncount(vm, YAML_WALK_HELD_BYTES);
    yaml_walk_free(&yaml->walk);
    heap_free(vm, yaml, sizeof *yaml);
}

static cy_err native_yaml_start(struct native_yaml *yaml, cy_bytes text, bool korean)
{
    struct yaml_walk_options options = {.korean = korean, .on_event = native_yaml_on_event, .context = yaml};
    for (size_t i = 0; i < NATIVE_YAML_WORD_COUNT; i++)
        CY_TRY(string_new(yaml->vm, cy_bytes_from_text(native_yaml_words[i]), &yaml->words[i]));
    if (!heap_count(yaml->vm, YAML_WALK_HELD_BYTES)) return CY_ERR(NO_MEMORY);
    cy_err err = yaml_walk_new(text, &options, &yaml->fault, &yaml->walk);
    if (cy_failed(err)) heap_uncount(yaml->vm, YAML_WALK_HELD_BYTES);
    return err;
}

static struct native_yaml *native_yaml_new(struct vm *vm)
{
    struct native_yaml *yaml = heap_alloc(vm, sizeof *yaml);
    if (!yaml) return NULL;
    yaml->vm = vm;
    yaml->walk = NULL;
    yaml->depth = 0;
    yaml->root = value_nil();
    for (size_t i = 0; i < NATIVE_YAML_WORD_COUNT; i++) yaml->words[i] = value_nil();
    yaml_walk_fault_init(&yaml->fault);
    return yaml;
}

/* One piece, charged. */
static cy_err native_yaml_piece(struct native_yaml *yaml, bool *more_out)
{
    uint64_t steps = 0;
    cy_err err = yaml_walk_go(yaml->walk, &steps, more_out);
    vm_work(yaml->vm, steps);
    return err;
}

cy_err native_yaml_read(struct vm *vm, cy_bytes text, bool korean, struct yaml_walk_fault *fault,
                        cy_value *owned_out)
{
    struct native_yaml *yaml = native_yaml_new(vm);
    if (!yaml) return CY_ERR(NO_MEMORY);
    bool more = true;
    cy_err err = native_yaml_start(yaml, text, korean);
    while (more && !cy_failed(err)) err = native_yaml_piece(yaml, &more);
    struct yaml_walk_fault told = yaml->fault; /* to who asked, whose empty one goes with the rest */
    yaml->fault = *fault;
    *fault = told;
    if (!cy_failed(err)) {
        *owned_out = yaml->root;
        yaml->root = value_nil();
    }
    native_yaml_free(vm, yaml);
    return err;
}

/* Fails with "file:line:column: message" and data {line, column}. */
static enum native_outcome native_yaml_fail(struct native_call *call, cy_err err, cy_bytes file,
                                            struct yaml_walk_fault *fault)
{
    cy_value data;
    const char *message = builder_text_view(&fault->message);
    if (!message) return native_fail_reason(call, CY_ERR(NO_MEMORY), "yaml.parse");
    if (fault->message.count == 0) return native_fail_reason(call, err, "yaml.parse");
    cy_err data_err = map_new(call->vm, 2, &data);
    if (cy_failed(data_err)) return native_fail_reason(call, data_err, "yaml.parse");
    data_err = map_set_text(call->vm, &data, CY_BYTES("line"), value_int(fault->line));
    if (!cy_failed(data_err))
        data_err = map_set_text(call->vm, &data, CY_BYTES("column"), value_int(fault->column));
    if (cy_failed(data_err)) {
        value_unref(call->vm, data);
        return native_fail_reason(call, data_err, "yaml.parse");
    }
    if (file.count == 0) file = CY_BYTES("yaml");
    return native_fail_data(call, err, data, "%.*s:%u:%u: %s", CY_BYTES_ARG(file), fault->line, fault->column,
                            message);
}

enum native_outcome native_yaml_parse(struct native_call *call)
{
    cy_bytes file = native_has_arg(call, 1) ? string_bytes(call->args[1]) : CY_BYTES_NONE;
    struct native_yaml *yaml = call->fiber ? native_work(call) : NULL;
    bool kept = yaml != NULL, more = true;
    cy_err err = CY_OK;
    if (!kept) {
        yaml = native_yaml_new(call->vm);
        if (!yaml) return native_fail_reason(call, CY_ERR(NO_MEMORY), "yaml.parse");
        err = native_yaml_start(yaml, string_bytes(call->args[0]), vm_korean(call->vm));
    }
    while (more && !cy_failed(err)) {
        err = native_yaml_piece(yaml, &more);
        if (!more || cy_failed(err) || !native_turn_over(call)) continue;
        if (!kept) native_keep_work(call, yaml, native_yaml_free);
        return NATIVE_AGAIN;
    }
    enum native_outcome outcome = cy_failed(err) ? native_yaml_fail(call, err, file, &yaml->fault)
                                                 : native_return(call, value_ref(yaml->root));
    if (!kept) native_yaml_free(call->vm, yaml); /* else whoever calls us does */
    return outcome;
}
