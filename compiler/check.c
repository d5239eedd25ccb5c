/* SPDX-License-Identifier: MIT
 *
 * compiler/check.c: calls against parameters, fields against records, literals against annotations.
 *
 * In:   resolved nodes. Out: messages, and for calls the plan by which the emitter passes arguments.
 * Invariant: after check_call reported nothing, the plan has every required parameter and each argument once.
 */
#include "compiler/resolve_internal.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/text.h"
#include "vm/code/native_table.h"
#include "vm/code/opcode.h"

/* What a call can be bound to, whatever the callee is. */
struct check_callee {
    cy_bytes name;
    uint32_t param_count;
    uint32_t required_count; /* for records: fields without a default, wherever they stand */
    bool any_number;
    bool is_record;
    const struct function_decl *function;
    const struct record_decl *record;
    struct native_signature signature;
};

static struct check_callee check_callee_of(const struct symbol *symbol)
{
    struct check_callee callee = {.name = symbol->name};
    if (symbol->kind == SYMBOL_RECORD) {
        callee.is_record = true;
        callee.record = symbol->record;
        callee.param_count = symbol->record->field_count;
        callee.required_count = symbol->record->required_count;
    } else if (symbol->kind == SYMBOL_NATIVE) {
        native_signature_parse(symbol->native, &callee.signature);
        callee.required_count = callee.signature.required_count;
        callee.any_number = callee.signature.param_count == NATIVE_ARGS_ANY;
        callee.param_count = callee.any_number ? LIMIT_FUNCTION_PARAMS : callee.signature.param_count;
    } else {
        callee.function = symbol->function;
        callee.param_count = symbol->function->param_count;
        callee.required_count = symbol->function->required_count;
    }
    return callee;
}

static cy_bytes check_param_name(const struct check_callee *callee, uint32_t index)
{
    if (callee->record) return callee->record->fields[index].name.text;
    if (callee->function) return callee->function->params[index].name.text;
    return index < callee->signature.named_count ? callee->signature.params[index].name : CY_BYTES_NONE;
}

static bool check_param_required(const struct check_callee *callee, uint32_t index)
{
    if (callee->record) return !callee->record->fields[index].default_value;
    return index < callee->required_count;
}

static const struct annotation *check_param_annotation(const struct check_callee *callee, uint32_t index)
{
    if (callee->record) return callee->record->fields[index].annotation;
    return callee->function ? callee->function->params[index].annotation : NULL;
}

/* "2", "1..3", "1 or more". */
static cy_bytes check_count_text(struct resolver *resolver, const struct check_callee *callee)
{
    struct builder text;
    builder_init(&text);
    builder_i64_text(&text, callee->required_count);
    if (callee->any_number)
        builder_text(&text, "..");
    else if (callee->param_count != callee->required_count) {
        builder_text(&text, "..");
        builder_i64_text(&text, callee->param_count);
    }
    cy_bytes copy = arena_copy(resolver->arena, builder_view(&text));
    builder_fini(&text);
    return copy;
}

/* Where the callee is declared, when that is in a source. */
static void check_label_callee(struct diag *diag, const struct check_callee *callee)
{
    if (callee->record)
        diag_add_label(diag, DIAG_LABEL_DECLARED, &callee->record->unit->source, callee->record->name.span);
    else if (callee->function && callee->function->name.text.count)
        diag_add_label(diag, DIAG_LABEL_DECLARED, &callee->function->unit->source,
                       callee->function->name.span);
}

static void check_report_count(struct resolver *resolver, const struct node *call,
                               const struct check_callee *callee)
{
    struct diag *diag = diag_report(resolver->diags, &resolver->unit->source, call->span, DIAG_ARGUMENT_COUNT,
                                    callee->name, check_count_text(resolver, callee),
                                    diag_number(resolver->diags, call->as.call.argument_count));
    check_label_callee(diag, callee);
}

/* The parameter that an argument with a name goes to; PROGRAM_NO_INDEX, reported, when there is none. */
static uint32_t check_find_param(struct resolver *resolver, const struct check_callee *callee,
                                 const struct word *name)
{
    uint32_t named_count = callee->any_number ? callee->signature.named_count : callee->param_count;
    for (uint32_t i = 0; i < named_count; i++)
        if (cy_bytes_equal(check_param_name(callee, i), name->text)) return i;
    struct nearest nearest;
    nearest_init(&nearest, name->text);
    for (uint32_t i = 0; i < named_count; i++) nearest_offer(&nearest, check_param_name(callee, i));
    enum diag_code code = callee->is_record ? DIAG_UNKNOWN_FIELD : DIAG_ARGUMENT_UNKNOWN;
    struct diag *diag = resolve_report(resolver, name->span, code, callee->name, name->text);
    diag->nearest = nearest.best;
    check_label_callee(diag, callee);
    return PROGRAM_NO_INDEX;
}

static void check_mention_name(struct resolver *resolver, const struct check_callee *callee, uint32_t index,
                               struct span span)
{
    if (callee->record)
        mention_field(resolver->compilation, resolver->unit, span, callee->record, index, false);
    else if (callee->function)
        mention_param(resolver->compilation, resolver->unit, span, &callee->function->params[index]);
}

/* Puts every argument into its place. False when one has none. */
static bool check_bind(struct resolver *resolver, const struct node *call, const struct check_callee *callee,
                       struct call_plan *plan)
{
    bool good = true;
    uint32_t last = 0;
    plan->in_source_order = true;
    for (uint32_t i = 0; i < call->as.call.argument_count; i++) {
        const struct argument *argument = &call->as.call.arguments[i];
        bool named = argument->name.text.count > 0;
        uint32_t index = named ? check_find_param(resolver, callee, &argument->name) : i;
        /* Past the parameters: behind a named argument, which the parser has reported. */
        if (index == PROGRAM_NO_INDEX || index >= callee->param_count) {
            good = false;
            continue;
        }
        if (named) check_mention_name(resolver, callee, index, argument->name.span);
        if (plan->values[index]) {
            (void)resolve_report(resolver, named ? argument->name.span : argument->value->span,
                                 DIAG_ARGUMENT_TWICE, check_param_name(callee, index), CY_BYTES_NONE);
            good = false;
            continue;
        }
        plan->values[index] = argument->value;
        if (i > 0 && index < last) plan->in_source_order = false;
        last = index;
        if (index + 1 > plan->count) plan->count = index + 1;
        check_literal(resolver, check_param_annotation(callee, index), argument->value);
    }
    return good;
}

static void check_missing(struct resolver *resolver, const struct node *call,
                          const struct check_callee *callee, const struct call_plan *plan)
{
    const struct argument *last =
        call->as.call.argument_count ? &call->as.call.arguments[call->as.call.argument_count - 1] : NULL;
    bool some_named = last && last->name.text.count > 0;
    for (uint32_t i = 0; i < callee->param_count; i++) {
        if (!check_param_required(callee, i) || plan->values[i]) continue;
        if (!some_named && !callee->is_record) {
            check_report_count(resolver, call, callee);
            return;
        }
        check_label_callee(resolve_report(resolver, call->span, DIAG_ARGUMENT_MISSING, callee->name,
                                          check_param_name(callee, i)),
                           callee);
    }
}

static void check_call_unknown(struct resolver *resolver, const struct node *call)
{
    const struct node *callee = call->as.call.callee;
    if (callee->kind == NODE_NAME && !callee->as.name.symbol) return; /* unknown itself, which was said */
    for (uint32_t i = 0; i < call->as.call.argument_count; i++) {
        const struct argument *argument = &call->as.call.arguments[i];
        if (!argument->name.text.count) continue;
        (void)resolve_report(resolver, argument->name.span, DIAG_NAMED_UNKNOWN, CY_BYTES_NONE, CY_BYTES_NONE);
        return;
    }
    if (call->as.call.argument_count > LIMIT_FUNCTION_PARAMS)
        (void)resolve_report(resolver, call->span, DIAG_LIMIT, CY_BYTES("FUNCTION_PARAMS"),
                             diag_number(resolver->diags, LIMIT_FUNCTION_PARAMS));
}

void check_call(struct resolver *resolver, struct node *call)
{
    if (!call->as.call.known) {
        check_call_unknown(resolver, call);
        return;
    }
    const struct symbol *known = call->as.call.known;
    if ((known->kind == SYMBOL_RECORD && known->record->broken) ||
        (known->function && known->function->broken))
        return;
    struct check_callee callee = check_callee_of(known);
    uint32_t positional = 0;
    while (positional < call->as.call.argument_count && !call->as.call.arguments[positional].name.text.count)
        positional++;
    if (positional > callee.param_count) {
        if (callee.any_number)
            (void)resolve_report(resolver, call->span, DIAG_LIMIT, CY_BYTES("FUNCTION_PARAMS"),
                                 diag_number(resolver->diags, LIMIT_FUNCTION_PARAMS));
        else
            check_report_count(resolver, call, &callee);
        return;
    }
    struct call_plan *plan = arena_alloc_zeroed(resolver->arena, sizeof *plan);
    plan->values = arena_alloc_zeroed(resolver->arena, (callee.param_count + 1) * sizeof(struct node *));
    call->as.call.plan = plan;
    if (!check_bind(resolver, call, &callee, plan)) return;
    check_missing(resolver, call, &callee, plan);
    if (callee.is_record) plan->count = callee.param_count;
}

void check_unused(struct resolver *resolver, const struct node *call)
{
    const struct symbol *known = call->kind == NODE_CALL ? call->as.call.known : NULL;
    if (!known) return;
    bool pure = known->kind == SYMBOL_RECORD ||
                (known->kind == SYMBOL_NATIVE && (known->native->flags & NATIVE_FLAG_PURE));
    if (pure) (void)resolve_report(resolver, call->span, DIAG_UNUSED_RESULT, known->name, CY_BYTES_NONE);
}

void check_field(struct resolver *resolver, const struct record_decl *record, const struct word *field)
{
    if (record->broken) return;
    struct nearest nearest;
    nearest_init(&nearest, field->text);
    for (uint32_t i = 0; i < record->field_count; i++) {
        if (cy_bytes_equal(record->fields[i].name.text, field->text)) {
            mention_field(resolver->compilation, resolver->unit, field->span, record, i, false);
            return;
        }
        nearest_offer(&nearest, record->fields[i].name.text);
    }
    struct diag *diag =
        resolve_report(resolver, field->span, DIAG_UNKNOWN_FIELD, record->name.text, field->text);
    diag->nearest = nearest.best;
    diag_add_label(diag, DIAG_LABEL_DECLARED, &record->unit->source, record->name.span);
}

void check_literal(struct resolver *resolver, const struct annotation *annotation, const struct node *value)
{
    if (!annotation || !annotation->known || !value) return;
    const struct symbol *known = value->kind == NODE_CALL ? value->as.call.known : NULL;
    const struct record_decl *built = known && known->kind == SYMBOL_RECORD ? known->record : NULL;
    uint8_t kind = built ? KIND_RECORD : ast_value_kind(value);
    if (kind == KIND_COUNT) return;
    if (annotation_allows(annotation, kind, built)) return;
    bool korean = resolver->compilation->options->korean;
    (void)resolve_report(resolver, value->span, DIAG_WRONG_KIND, annotation->name.text,
                         built ? built->name.text
                               : cy_bytes_from_text(kind_name((enum value_kind)kind, korean)));
}

static const struct field_decl *check_find_field(const struct record_decl *record, cy_bytes name)
{
    for (uint32_t i = 0; i < record->field_count; i++)
        if (cy_bytes_equal(record->fields[i].name.text, name)) return &record->fields[i];
    return NULL;
}

void check_path(struct resolver *resolver, const struct record_decl *record, const struct node *assign)
{
    struct ast_spine spine;
    ast_spine_init(&spine);
    struct node *node = assign->as.assign.target;
    for (; node->kind == NODE_INDEX || (node->kind == NODE_FIELD && !node->as.field.member);
         node = ast_left(node))
        ast_spine_push(&spine, node);
    /* From the variable outwards, as long as annotations say what is there. */
    while (record && spine.count > 0) {
        node = spine.items[--spine.count];
        if (node->kind != NODE_FIELD) break;
        check_field(resolver, record, &node->as.field.name);
        const struct field_decl *field = check_find_field(record, node->as.field.name.text);
        const struct annotation *annotation = field ? field->annotation : NULL;
        if (spine.count == 0 && assign->as.assign.path_form == PATH_SET)
            check_literal(resolver, annotation, assign->as.assign.value);
        record = annotation && annotation->known ? annotation->record : NULL;
    }
    ast_spine_fini(&spine);
}

/* Recursion is as deep as the source nests; chains to the left have been folded when they are constant. */
void check_constant(struct resolver *resolver, const struct node *node)
{
    switch (node->kind) {
    case NODE_ERROR:
    case NODE_NIL:
    case NODE_BOOL:
    case NODE_INT:
    case NODE_FLOAT:
    case NODE_STR: return;
    case NODE_LIST:
    case NODE_MAP:
        for (uint32_t i = 0; i < node->as.items.count; i++) check_constant(resolver, node->as.items.items[i]);
        return;
    case NODE_RANGE:
        check_constant(resolver, node->as.binary.left);
        check_constant(resolver, node->as.binary.right);
        return;
    default: (void)resolve_report(resolver, node->span, DIAG_NOT_CONSTANT, CY_BYTES_NONE, CY_BYTES_NONE);
    }
}

/* -- the whole program --------------------------------------------------------------------------------------------- */

static bool check_is_effect(const struct native_row *row)
{
    return row->capability != 0 || (row->flags & (NATIVE_FLAG_WAIT | NATIVE_FLAG_MAIN)) != 0;
}

struct check_walk {
    struct function_decl **items;
    uint32_t count, capacity;
};

static void check_walk_push(struct arena *arena, struct check_walk *walk, struct function_decl *function)
{
    if (function->visited) return;
    function->visited = true;
    if (walk->count == walk->capacity) {
        uint32_t capacity = walk->capacity ? walk->capacity * 2 : 16;
        walk->items = arena_grow(arena, walk->items, walk->capacity * sizeof *walk->items,
                                 capacity * sizeof *walk->items);
        walk->capacity = capacity;
    }
    walk->items[walk->count++] = function;
}

/* All that `start` reaches through calls of known functions, itself first. `visited` marks stay set in the list, which
 * is how each round undoes only its own. */
static void check_reach(struct arena *arena, struct function_decl *start, struct check_walk *walk)
{
    walk->count = 0;
    check_walk_push(arena, walk, start);
    for (uint32_t next = 0; next < walk->count; next++) {
        const struct function_decl *function = walk->items[next];
        for (uint32_t i = 0; i < function->effect_count; i++)
            if (function->effects[i].callee) check_walk_push(arena, walk, function->effects[i].callee);
    }
    for (uint32_t i = 0; i < walk->count; i++) walk->items[i]->visited = false;
}

/* The first native with an effect, or spawn, among what was reached; NULL when none. */
static const struct effect *check_reached_effect(const struct check_walk *walk)
{
    for (uint32_t k = 0; k < walk->count; k++)
        for (uint32_t i = 0; i < walk->items[k]->effect_count; i++) {
            const struct effect *effect = &walk->items[k]->effects[i];
            if (!effect->callee && (!effect->native || check_is_effect(effect->native))) return effect;
        }
    return NULL;
}

static void check_initialiser(struct compilation *compilation, const struct unit *unit,
                              const struct effect *effect, const struct check_walk *walk)
{
    const struct effect *found = effect->callee ? check_reached_effect(walk) : effect;
    if (!found || (found->native && !check_is_effect(found->native))) return;
    if (found->native)
        (void)diag_report_1(&compilation->diags, &unit->source, effect->span, DIAG_INITIALISER_EFFECT,
                            cy_bytes_from_text(found->native->english));
    else
        (void)diag_report_0(&compilation->diags, &unit->source, effect->span, DIAG_SPAWN_INITIALISER);
}

/* A variable of this module that a function reads or changes when it is called before the variable's initialiser has
 * run: it would read nil, whatever the annotation says, and what it writes would be overwritten. */
static void check_too_early(struct compilation *compilation, const struct unit *unit,
                            const struct effect *call, const struct check_walk *walk)
{
    for (uint32_t k = 0; k < walk->count; k++)
        for (uint32_t i = 0; i < walk->items[k]->global_use_count; i++) {
            const struct global_use *use = &walk->items[k]->global_uses[i];
            const struct symbol *symbol = use->symbol;
            bool early = symbol->unit == unit && symbol->declaration_end > call->span.start;
            if (!early || symbol->literal) continue; /* the value of a literal is written into its uses */
            diag_add_label(
                diag_report_1(&compilation->diags, &unit->source, call->span, DIAG_USED_BEFORE, symbol->name),
                DIAG_LABEL_READ_HERE, &unit->source, use->span);
            return;
        }
}

/* Initialisers run before the program may wait or use a capability, and one after the other. Calls through values
 * cannot be seen here; what waits fails at run time then. */
void check_initialisers(struct compilation *compilation)
{
    struct check_walk walk = {0};
    for (uint32_t i = 0; i < compilation->units.count; i++) {
        const struct unit *unit = compilation->units.items[i];
        for (uint32_t k = 0; k < unit->init->effect_count; k++) {
            const struct effect *effect = &unit->init->effects[k];
            if (effect->callee) {
                check_reach(&compilation->arena, effect->callee, &walk);
                check_too_early(compilation, unit, effect, &walk);
            }
            /* the inputs of a session run as tasks of their own */
            if (!unit->in_session) check_initialiser(compilation, unit, effect, &walk);
        }
    }
}

void check_main(struct compilation *compilation)
{
    struct unit *unit = compilation->units.items[0];
    const struct map_entry *entry = map_find(&unit->names, CY_BYTES("main"));
    const struct symbol *symbol = entry ? entry->value.pointer : NULL;
    struct span start = {0, 0, 1, 1};
    if (compilation->options->session || (!symbol && compilation->options->module)) return;
    if (!symbol || symbol->kind != SYMBOL_FUNCTION || !symbol->exported) {
        bool missed = symbol || (compilation->read_whole && !compilation->options->tests);
        if (missed)
            (void)diag_report_0(&compilation->diags, &unit->source, symbol ? symbol->span : start,
                                DIAG_MAIN_MISSING);
        return;
    }
    if (symbol->function->broken) return;
    if (symbol->function->param_count < 1 || symbol->function->required_count > 1)
        (void)diag_report_0(&compilation->diags, &unit->source, symbol->span, DIAG_MAIN_PARAMETERS);
}
