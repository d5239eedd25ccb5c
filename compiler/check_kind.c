/* SPDX-License-Identifier: MIT
 *
 * compiler/check_kind.c: which kinds an expression can have, and what refuses them.
 *
 * In:   resolved expressions, the sets of check_flow.h. Out: sets; warnings about nil and about kinds that never fit.
 * Method: as in resolve_expr.c the left spine is walked in a loop; a chain of `and` or `or` is a row of operands, each
 *         seen with what the ones before it say.
 * Rule:  a warning needs a set that is known: of a value from nowhere known everything is possible, and nothing is
 *        said.
 * Not here: conditions (check_narrow.c), statements (check_flow.c).
 */
#include "compiler/check_flow.h"
#include "compiler/lexer.h"
#include "vm/base/check.h"
#include "vm/code/native_table.h"

enum { CHECK_KIND_SHOWN_BYTES = 40 };

bool flow_is_korean(const struct flow *flow) { return flow->compilation->options->korean; }

static cy_bytes check_kind_keep(struct flow *flow, struct builder *text)
{
    cy_bytes copy = arena_copy(&flow->compilation->arena, builder_view(text));
    builder_fini(text);
    return copy;
}

/* The template's %.*s is `name`. */
cy_bytes flow_text(struct flow *flow, const char *korean, const char *english, cy_bytes name)
{
    struct builder text;
    builder_init(&text);
    for (const char *c = flow_is_korean(flow) ? korean : english; *c; c++) {
        if (*c == '%')
            builder_bytes(&text, name);
        else
            builder_u8(&text, (uint8_t)*c);
    }
    return check_kind_keep(flow, &text);
}

/* "int, float or str". */
static cy_bytes check_kind_list(struct flow *flow, uint32_t kinds)
{
    struct builder text;
    builder_init(&text);
    bool korean = flow_is_korean(flow);
    kinds &= FLOW_ALL;
    for (unsigned kind = 0; kind < KIND_COUNT; kind++) {
        if (!(kinds & FLOW_KIND(kind))) continue;
        kinds &= ~FLOW_KIND(kind);
        builder_text(&text, kind_name((enum value_kind)kind, korean));
        bool last = (kinds & (kinds - 1)) == 0;
        if (kinds) builder_text(&text, !last ? ", " : korean ? "이나 " : " or ");
    }
    return check_kind_keep(flow, &text);
}

static cy_bytes check_kind_source(struct flow *flow, const struct node *node)
{
    cy_bytes text = source_slice(&flow->unit->source, node->span);
    bool shown = text.count <= CHECK_KIND_SHOWN_BYTES && cy_bytes_find(text, '\n') == text.count;
    return flow_text(flow, shown ? "`%`" : "이 값", shown ? "`%`" : "this value", text);
}

/* One warning for one cause: what was complained about is unknown from there on. */
static void check_kind_forget(struct flow *flow, const struct node *node)
{
    struct symbol *symbol = node->kind == NODE_NAME ? node->as.name.symbol : NULL;
    if (symbol && symbol->kind == SYMBOL_LOCAL) flow_set(flow, symbol, FLOW_ALL);
}

static void check_kind_warn(struct flow *flow, const struct node *node, enum diag_code code, cy_bytes a,
                            cy_bytes b, cy_bytes c)
{
    (void)diag_report(&flow->compilation->warnings, &flow->unit->source, node->span, code, a, b, c);
    check_kind_forget(flow, node);
}

void flow_require(struct flow *flow, const struct node *node, uint32_t kinds, uint32_t allowed, cy_bytes user)
{
    uint32_t known = kinds & FLOW_ALL;
    if (known == FLOW_ALL || (known & ~allowed) == 0) return;
    if (known == FLOW_NIL)
        check_kind_warn(flow, node, WARNING_IS_NIL, check_kind_source(flow, node), user, CY_BYTES_NONE);
    else if (!(known & allowed))
        check_kind_warn(flow, node, WARNING_KIND_REFUSED, user, check_kind_list(flow, allowed),
                        check_kind_list(flow, known));
    else if ((kinds & FLOW_NIL_SAID) && !(allowed & FLOW_NIL))
        check_kind_warn(flow, node, WARNING_MAYBE_NIL, check_kind_source(flow, node), user, CY_BYTES_NONE);
}

uint32_t flow_annotation_kinds(const struct annotation *annotation)
{
    if (!annotation || !annotation->known) return FLOW_ALL;
    uint32_t kinds = annotation_kinds(annotation);
    return kinds & FLOW_NIL ? kinds | FLOW_NIL_SAID : kinds;
}

/* -- operators ----------------------------------------------------------------------------------------------------- */

static cy_bytes check_kind_operator(struct flow *flow, const struct node *node)
{
    cy_bytes sign = cy_bytes_from_text(token_spelling(node->op, flow_is_korean(flow)));
    return flow_text(flow, "`%`", "`%`", sign);
}

/* What may stand right of `+` when one of `left` stands left of it. */
static uint32_t check_kind_sum_right(uint32_t left)
{
    uint32_t right = 0, str = FLOW_KIND(KIND_STR), list = FLOW_KIND(KIND_LIST),
             boolean = FLOW_KIND(KIND_BOOL);
    if (left & FLOW_NUMBER) right |= FLOW_NUMBER | str;
    if (left & boolean) right |= str;
    if (left & str) right |= str | FLOW_NUMBER | boolean;
    if (left & list) right |= list;
    return right;
}

uint32_t flow_sum(struct flow *flow, const struct node *left_node, uint32_t left,
                  const struct node *right_node, uint32_t right)
{
    cy_bytes user = CY_BYTES("`+`");
    uint32_t str = FLOW_KIND(KIND_STR), list = FLOW_KIND(KIND_LIST);
    uint32_t addable = FLOW_NUMBER | str | list | FLOW_KIND(KIND_BOOL);
    if (left_node) flow_require(flow, left_node, left, addable, user);
    left &= addable;
    if (!left) left = addable;
    flow_require(flow, right_node, right, check_kind_sum_right(left), user);
    right &= check_kind_sum_right(left);
    if (!right) right = check_kind_sum_right(left);
    uint32_t result = 0;
    if ((left | right) & str) result |= str;
    if (left & right & list) result |= list;
    if ((left & FLOW_NUMBER) && (right & FLOW_NUMBER))
        result |= (left | right) & FLOW_KIND(KIND_FLOAT) ? FLOW_NUMBER : FLOW_KIND(KIND_INT);
    return result ? result : FLOW_ALL;
}

static uint32_t check_kind_ordered(uint32_t kinds)
{
    return (kinds & FLOW_NUMBER ? FLOW_NUMBER : 0) | (kinds & FLOW_KIND(KIND_STR));
}

static void check_kind_equality(struct flow *flow, const struct node *node, uint32_t left, uint32_t right)
{
    left &= FLOW_ALL;
    right &= FLOW_ALL;
    uint32_t left_like = left & FLOW_NUMBER ? left | FLOW_NUMBER : left;
    if (left == FLOW_ALL || right == FLOW_ALL || (left_like & right)) return;
    (void)diag_report_2(&flow->compilation->warnings, &flow->unit->source, node->span, WARNING_NEVER_EQUAL,
                        check_kind_list(flow, left), check_kind_list(flow, right));
}

static uint32_t check_kind_binary(struct flow *flow, const struct node *node, uint32_t left, uint32_t right)
{
    const struct node *left_node = node->as.binary.left, *right_node = node->as.binary.right;
    uint32_t allowed = FLOW_NUMBER;
    switch (node->op) {
    case TOKEN_PLUS: return flow_sum(flow, left_node, left, right_node, right);
    case TOKEN_EQ:
    case TOKEN_NE: check_kind_equality(flow, node, left, right); return FLOW_KIND(KIND_BOOL);
    case TOKEN_LT:
    case TOKEN_LE:
    case TOKEN_GT:
    case TOKEN_GE:
        allowed = FLOW_NUMBER | FLOW_KIND(KIND_STR);
        flow_require(flow, left_node, left, allowed, check_kind_operator(flow, node));
        if (check_kind_ordered(left)) allowed = check_kind_ordered(left);
        flow_require(flow, right_node, right, allowed, check_kind_operator(flow, node));
        return FLOW_KIND(KIND_BOOL);
    case TOKEN_AMPERSAND:
    case TOKEN_BAR:
    case TOKEN_CARET:
    case TOKEN_SHIFT_LEFT:
    case TOKEN_SHIFT_RIGHT: allowed = FLOW_KIND(KIND_INT); break;
    default: break;
    }
    if ((left & FLOW_ALL & ~allowed) != 0 && (left & FLOW_ALL) != FLOW_ALL)
        flow_require(flow, left_node, left, allowed, check_kind_operator(flow, node));
    if ((right & FLOW_ALL & ~allowed) != 0 && (right & FLOW_ALL) != FLOW_ALL)
        flow_require(flow, right_node, right, allowed, check_kind_operator(flow, node));
    bool ints = ((left | right) & FLOW_ALL) == FLOW_KIND(KIND_INT);
    return ints ? FLOW_KIND(KIND_INT) : allowed;
}

/* a and b and c: the value of an operand is the whole's when it decides, or when it is the last. */
static uint32_t check_kind_logical(struct flow *flow, struct node *node)
{
    uint8_t op = node->op;
    struct ast_spine spine;
    ast_spine_init(&spine);
    for (; node->kind == NODE_BINARY && node->op == op; node = node->as.binary.left)
        ast_spine_push(&spine, node->as.binary.right);
    uint32_t mark = flow->trail_count, result = 0;
    uint32_t falsy = FLOW_NIL | FLOW_NIL_SAID | FLOW_KIND(KIND_BOOL) | FLOW_NUMBER;
    uint32_t deciding = op == TOKEN_AND ? falsy : FLOW_ALL & ~FLOW_NIL;
    for (;;) {
        uint32_t kinds = flow_kinds(flow, node);
        if (spine.count == 0) {
            result |= kinds;
            break;
        }
        result |= kinds & deciding;
        flow_narrow(flow, node, op == TOKEN_AND);
        node = spine.items[--spine.count];
    }
    ast_spine_fini(&spine);
    flow_undo(flow, mark);
    return result & FLOW_ALL ? result : FLOW_ALL;
}

/* -- calls --------------------------------------------------------------------------------------------------------- */

static bool check_kind_is_native(const struct node *call, uint16_t number)
{
    const struct symbol *known = call->as.call.known;
    return known && known->kind == SYMBOL_NATIVE && known->native->number == number;
}

/* The last statement of a body without return that never comes back makes the whole function so. */
bool flow_never_returns(const struct node *call)
{
    /* Chains of such functions are followed a few steps: a program that dies has one function for it. */
    for (int steps = 0; steps < 8; steps++) {
        if (call->kind != NODE_CALL) return false;
        if (check_kind_is_native(call, NATIVE_raise)) return true;
        const struct symbol *known = call->as.call.known;
        if (known && known->kind == SYMBOL_NATIVE)
            return cy_bytes_equal(cy_bytes_from_text(known->native->english), CY_BYTES("process.exit"));
        const struct function_decl *function = known ? known->function : NULL;
        if (!function || function->has_return || !function->body.statements.count) return false;
        const struct node *last = function->body.statements.items[function->body.statements.count - 1];
        if (last->kind == NODE_THROW) return true;
        if (last->kind != NODE_CALL_ALONE) return false;
        call = last->as.operand;
    }
    return false;
}

static uint32_t check_kind_native_call(struct flow *flow, const struct node *node)
{
    const struct native_row *row = node->as.call.known->native;
    const struct call_plan *plan = node->as.call.plan;
    struct native_signature signature;
    native_signature_parse(row, &signature);
    cy_bytes name = cy_bytes_from_text(row->english);
    for (uint32_t i = 0; i < plan->count; i++) {
        struct node *value = plan->values[i];
        if (!value) continue;
        uint32_t kinds = flow_kinds(flow, value);
        if (i < signature.named_count)
            flow_require(flow, value, kinds, signature.params[i].kinds, flow_text(flow, "`%`", "`%`", name));
    }
    uint32_t result = signature.result_kinds;
    return result != FLOW_ALL && (result & FLOW_NIL) ? result | FLOW_NIL_SAID : result;
}

static uint32_t check_kind_program_call(struct flow *flow, const struct node *node)
{
    const struct symbol *known = node->as.call.known;
    const struct call_plan *plan = node->as.call.plan;
    for (uint32_t i = 0; i < plan->count; i++) {
        struct node *value = plan->values[i];
        if (!value) continue;
        uint32_t kinds = flow_kinds(flow, value);
        const struct annotation *annotation = known->kind == SYMBOL_RECORD
                                                  ? known->record->fields[i].annotation
                                                  : known->function->params[i].annotation;
        if (annotation)
            flow_require(flow, value, kinds, flow_annotation_kinds(annotation),
                         flow_text(flow, "`%`", "`%`", known->name));
    }
    if (known->kind == SYMBOL_RECORD) return FLOW_KIND(KIND_RECORD);
    return flow_annotation_kinds(known->function->result);
}

static void check_kind_arguments(struct flow *flow, const struct node *node)
{
    for (uint32_t i = 0; i < node->as.call.argument_count; i++)
        (void)flow_kinds(flow, node->as.call.arguments[i].value);
}

static uint32_t check_kind_known_call(struct flow *flow, const struct node *node)
{
    if (!node->as.call.plan) {
        check_kind_arguments(flow, node);
        return FLOW_ALL;
    }
    return node->as.call.known->kind == SYMBOL_NATIVE ? check_kind_native_call(flow, node)
                                                      : check_kind_program_call(flow, node);
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

static uint32_t check_kind_of_symbol(const struct symbol *symbol)
{
    switch (symbol->kind) {
    case SYMBOL_LOCAL: return symbol->function ? FLOW_KIND(KIND_FUNCTION) : flow_get(symbol);
    case SYMBOL_FUNCTION:
    case SYMBOL_NATIVE: return FLOW_KIND(KIND_FUNCTION);
    case SYMBOL_GLOBAL: {
        /* Whoever is called may change it: so a test for nil would not hold for long. */
        uint32_t kinds = flow_annotation_kinds(symbol->annotation);
        return kinds & FLOW_NIL ? FLOW_ALL : kinds;
    }
    default: return FLOW_ALL;
    }
}

static uint32_t check_kind_unary(struct flow *flow, const struct node *node)
{
    uint32_t kinds = flow_kinds(flow, node->as.operand);
    if (node->op == TOKEN_NOT) return FLOW_KIND(KIND_BOOL);
    uint32_t allowed = node->op == TOKEN_MINUS ? FLOW_NUMBER : FLOW_KIND(KIND_INT);
    flow_require(flow, node->as.operand, kinds, allowed, check_kind_operator(flow, node));
    return kinds & allowed ? kinds & allowed : allowed;
}

static void check_kind_items(struct flow *flow, const struct node_list *items)
{
    for (uint32_t i = 0; i < items->count; i++) (void)flow_kinds(flow, items->items[i]);
}

static uint32_t check_kind_leaf(struct flow *flow, struct node *node)
{
    switch (node->kind) {
    case NODE_NIL: return FLOW_NIL | FLOW_NIL_SAID;
    case NODE_NAME: return node->as.name.symbol ? check_kind_of_symbol(node->as.name.symbol) : FLOW_ALL;
    case NODE_FIELD: return check_kind_of_symbol(node->as.field.member);
    case NODE_TEXT:
    case NODE_LIST:
    case NODE_MAP: check_kind_items(flow, &node->as.items); break;
    case NODE_UNARY: return check_kind_unary(flow, node);
    case NODE_BINARY: return check_kind_logical(flow, node);
    case NODE_RANGE:
        flow_require(flow, node->as.binary.left, flow_kinds(flow, node->as.binary.left), FLOW_KIND(KIND_INT),
                     CY_BYTES("`..`"));
        flow_require(flow, node->as.binary.right, flow_kinds(flow, node->as.binary.right),
                     FLOW_KIND(KIND_INT), CY_BYTES("`..`"));
        break;
    case NODE_CALL: return check_kind_known_call(flow, node);
    case NODE_SPAWN: (void)flow_kinds(flow, node->as.operand); break;
    case NODE_REF: (void)flow_kinds(flow, node->as.operand); break;
    case NODE_FUNCTION: flow_function(flow, node->as.function); break;
    default: break;
    }
    uint8_t kind = ast_value_kind(node);
    return kind == KIND_COUNT ? FLOW_ALL : FLOW_KIND(kind);
}

/* Of a variable whose record type is known, a field has the kind of its annotation; nil is not followed into fields. */
static uint32_t check_kind_field_value(const struct node *node)
{
    const struct node *target = node->as.field.target;
    const struct symbol *symbol = target->kind == NODE_NAME ? target->as.name.symbol : NULL;
    if (!symbol || !symbol->record || (!symbol->annotation && symbol->replaced)) return FLOW_ALL;
    for (uint32_t i = 0; i < symbol->record->field_count; i++) {
        const struct field_decl *field = &symbol->record->fields[i];
        if (!cy_bytes_equal(field->name.text, node->as.field.name.text)) continue;
        uint32_t kinds = flow_annotation_kinds(field->annotation);
        return kinds & FLOW_NIL ? FLOW_ALL : kinds;
    }
    return FLOW_ALL;
}

static uint32_t check_kind_finish(struct flow *flow, struct node *node, uint32_t left)
{
    uint32_t named = FLOW_KIND(KIND_MAP) | FLOW_KIND(KIND_RECORD);
    switch (node->kind) {
    case NODE_BINARY: return check_kind_binary(flow, node, left, flow_kinds(flow, node->as.binary.right));
    case NODE_INDEX: {
        uint32_t indexed = named | FLOW_KIND(KIND_LIST) | FLOW_KIND(KIND_STR) | FLOW_KIND(KIND_RANGE);
        (void)flow_kinds(flow, node->as.index.index);
        flow_require(flow, node->as.index.target, left, indexed, CY_BYTES("`[ ]`"));
        return FLOW_ALL;
    }
    case NODE_FIELD:
        flow_require(flow, node->as.field.target, left,
                     named | FLOW_KIND(KIND_REF) | FLOW_KIND(KIND_HANDLE) | FLOW_KIND(KIND_OPAQUE),
                     flow_text(flow, "`.%`", "`.%`", node->as.field.name.text));
        return check_kind_field_value(node);
    default:
        CHECK(node->kind == NODE_CALL);
        if (node->as.call.known) return check_kind_known_call(flow, node);
        check_kind_arguments(flow, node);
        flow_require(flow, node->as.call.callee, left, FLOW_KIND(KIND_FUNCTION),
                     flow_text(flow, "호출", "a call", CY_BYTES_NONE));
        return FLOW_ALL;
    }
}

static bool check_kind_has_left(const struct node *node)
{
    switch (node->kind) {
    case NODE_BINARY: return node->op != TOKEN_AND && node->op != TOKEN_OR;
    case NODE_INDEX: return true;
    case NODE_FIELD: return !node->as.field.member;
    case NODE_CALL: return !node->as.call.known;
    default: return false;
    }
}

uint32_t flow_kinds(struct flow *flow, struct node *node)
{
    struct ast_spine spine;
    ast_spine_init(&spine);
    while (check_kind_has_left(node)) {
        ast_spine_push(&spine, node);
        node = ast_left(node);
    }
    uint32_t kinds = check_kind_leaf(flow, node);
    while (spine.count > 0) kinds = check_kind_finish(flow, spine.items[--spine.count], kinds);
    ast_spine_fini(&spine);
    return kinds;
}
