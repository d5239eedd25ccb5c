/* SPDX-License-Identifier: MIT
 *
 * vm/run/interp.c: runs prepared steps of one fiber until it yields, waits or ends.
 *
 * In:   a fiber with at least one frame, and how it goes on (enum fiber_resume).
 * Out:  enum interp_outcome; the fiber's state is complete for any of them.
 * Method: one function with a computed goto per step. Two ints or two floats are worked on here;
 *       everything else is a call into interp_slow.c and its neighbours, which keep the same slots. A call
 *       of bytecode pushes a frame and goes on in the same loop: nothing recurses on the C stack.
 * Invariant: frame->step is stored before anything that may look at it: errors, calls, yields, waits.
 * Budget: LOOP and calls count one or more, work out of line what it charges (vm_charge); below zero the fiber
 *       yields. Nothing here looks at the clock.
 */
#include "vm/base/limits.h"
#include "vm/code/arith.h"
#include "vm/run/interp_slow.h"
#include "vm/run/interp_step.h"
#include "vm/run/unwind.h"

/* The slot that receives what a call or native returns. */
static cy_value *interp_result_slot(cy_value *r, const struct run_step *step)
{
    return run_slot(r, step->op == RUN_CALL ? step->b : step->a);
}

static CY_COLD bool interp_call_failed(struct vm *vm, struct fiber *fiber, cy_value function,
                                       uint32_t arg_count)
{
    if (function.tag != TAG_FUNCTION)
        return error_raise(vm, CY_ERR(CALL), MESSAGE_NOT_CALLABLE, value_kind_text(vm, function));
    struct function_object *object = function_of(function);
    if (object->instance != fiber->instance) return error_raise(vm, CY_ERR(CALL), MESSAGE_OTHER_INSTANCE);
    return slow_wrong_count(vm, fiber->instance, object->index, arg_count);
}

static CY_COLD bool interp_room_failed(struct vm *vm, cy_err err)
{
    if (cy_is(err, CY_ERR_DEPTH))
        return error_raise(vm, err, MESSAGE_CALL_DEPTH, (long long)LIMIT_CALL_DEPTH);
    if (cy_is(err, CY_ERR_TOO_LARGE))
        return error_raise(vm, CY_ERR(DEPTH), MESSAGE_STACK_BYTES, (long long)LIMIT_FIBER_STACK_BYTES);
    return error_raise_plain(vm, err);
}

/* Room for one more frame whose slots begin at `*base`; the stack and the frames may move. */
static CY_COLD bool interp_make_room(struct vm *vm, struct fiber *fiber, cy_value **base, uint32_t slot_count)
{
    ptrdiff_t index = *base - fiber->stack;
    cy_err err = CY_OK;
    if (fiber->frame + 1 == fiber->frames_end) err = fiber_grow_frames(fiber);
    if (!cy_failed(err)) err = fiber_reserve(fiber, *base, slot_count);
    if (cy_failed(err)) return interp_room_failed(vm, err);
    *base = fiber->stack + index;
    return true;
}

/* How the fiber starts its turn: true runs the step in frame->step, or the one behind when a result was
 * delivered. */
static bool interp_resume(struct vm *vm, struct fiber *fiber)
{
    struct frame *frame = fiber->frame;
    enum fiber_resume resume = (enum fiber_resume)fiber->resume;
    cy_value value = fiber->resume_value;
    fiber->resume = RESUME_STEP;
    fiber->resume_value = value_nil();
    if (fiber->unwinding_hard || (fiber->stop_wanted && !fiber->stop)) {
        fiber_begin_stop(vm, fiber);
        value_unref(vm, value);
        return false;
    }
    if (resume == RESUME_ERROR) return error_raise_value(vm, value);
    if (resume == RESUME_RESULT) {
        slow_put(vm, interp_result_slot(fiber->stack + frame->base, frame->step), value);
        frame->step++;
    }
    return true;
}

enum interp_outcome interp_run(struct vm *vm, struct fiber *fiber)
{
    static const void *const labels[RUN_OP_COUNT] = {
#define RUN_OP(name, flags, meaning) [RUN_##name] = &&label_##name,
#include "vm/run/run_op.def"
#undef RUN_OP
    };
    struct instance *const instance = fiber->instance;
    const cy_value *const k = instance->constants;
    struct frame *frame;
    const struct run_step *step;
    cy_value *r;
    cy_value *cell = NULL; /* what one step of a path found for the next; NULL is never looked at */
    bool truth;
    /* of the call under way */
    const struct code_function *callee;
    struct function_object *closure;
    cy_value *base;
    uint32_t arg_count, import;
    cy_value returned;

    if (!interp_resume(vm, fiber)) goto unwind_now;

reload:
    frame = fiber->frame;
    r = fiber->stack + frame->base;
    GO(frame->step);
#ifdef CY_DEBUG
dispatch:
    goto *labels[step->op];
#endif

raise:
    frame->step = step;
    fiber->frame = frame;
unwind_now:
    if (CY_UNLIKELY(vm->step_paused)) {
        vm->step_paused = false;
        return INTERP_YIELDED; /* the step did a part, and is run again */
    }
    if (!unwind(vm, fiber)) return INTERP_ENDED;
    goto reload;

    /* -- moving ------------------------------------------------------------------------------------------ */
    STEP(MOVE) :
    {
        cy_value value = value_ref(*SLOT(b));
        cy_value *to = SLOT(a);
        if (CY_UNLIKELY(to->tag >= TAG_HEAP)) interp_drop(vm, to);
        to->tag = value.tag;
        to->as.i = value.as.i;
        NEXT();
    }
    STEP(TAKE) :
    {
        cy_value *from = SLOT(b), *to = SLOT(a);
        if (CY_UNLIKELY(to->tag >= TAG_HEAP)) interp_drop(vm, to);
        COPY(to, from);
        from->tag = TAG_NIL;
        NEXT();
    }
    STEP(CONSTANT) :
    {
        cy_value value = value_ref(*CONSTANT(c));
        PUT(step->a, value);
        NEXT();
    }
    STEP(INT) :
    {
        SET(step->a, TAG_INT, i, (int64_t)(int32_t)step->c);
        NEXT();
    }
    STEP(DROP) :
    {
        slow_clear(vm, SLOT(b));
        NEXT();
    }
    STEP(SELF) :
    {
        fiber->frame = frame;
        SLOW(slow_self(fiber, r, step));
    }
    STEP(GLOBAL_SET) :
    {
        slow_put(vm, &instance->globals[step->c], slow_take(SLOT(b)));
        NEXT();
    }
    STEP(DEFAULT) :
    {
        if (SLOT(b)->tag == TAG_ABSENT) NEXT();
        GO(TARGET(step));
    }

    /* -- in place ---------------------------------------------------------------------------------------- */
    STEP(LOCAL_ADD) :
    {
        cy_value *a = SLOT(a);
        const cy_value *c = SLOT(c);
        int64_t number;
        if (CY_LIKELY(BOTH(TAG_INT, a, c)) && CY_LIKELY(!__builtin_add_overflow(a->as.i, c->as.i, &number))) {
            a->as.i = number;
            NEXT();
        }
        if (BOTH(TAG_FLOAT, a, c)) {
            a->as.f += c->as.f;
            NEXT();
        }
        if (CY_UNLIKELY(!slow_add_in_place(vm, a, *c))) goto raise;
        if (step->x & RUN_OWN_C) slow_clear(vm, SLOT(c));
        NEXT_CHARGED(step + 1);
    }
    STEP(LOCAL_ADD_INT) :
    {
        cy_value *a = SLOT(a);
        int64_t number;
        if (CY_LIKELY(a->tag == TAG_INT) &&
            CY_LIKELY(!__builtin_add_overflow(a->as.i, (int64_t)(int32_t)step->c, &number))) {
            a->as.i = number;
            NEXT();
        }
        SLOW(slow_add_in_place(vm, a, value_int((int32_t)step->c)));
    }
    STEP(LOCAL_APPEND) : cell = SLOT(a);
append : {
    cy_value value = slow_value(r, k, step);
    if (CY_LIKELY(interp_append(cell, value))) NEXT();
    SLOW(slow_append(vm, cell, value));
}
    STEP(GLOBAL_ADD) :
    {
        cy_value value = slow_value(r, k, step), *global = &instance->globals[step->a];
        if (CY_LIKELY(interp_add_number(global, value))) NEXT();
        bool added = slow_add_in_place(vm, global, value);
        value_unref(vm, value);
        SLOW(added);
    }
    STEP(GLOBAL_APPEND) :
    {
        cell = &instance->globals[step->a];
        goto append;
    }

    /* -- writing inside values --------------------------------------------------------------------------- */
    STEP(PATH_LOCAL) :
    {
        cell = SLOT(a);
        NEXT();
    }
    STEP(PATH_GLOBAL) :
    {
        cell = &instance->globals[step->a];
        NEXT();
    }
    STEP(GLOBAL_PATH_INDEX) :
    {
        cell = &instance->globals[step->a];
        goto path_index;
    }
    STEP(LOCAL_PATH_INDEX) : cell = SLOT(a);
    STEP(PATH_INDEX) : path_index:
    {
        const cy_value *c = SLOT(c);
        bool number = step->x & RUN_NUMBER_C;
        cy_value *place = NULL;
        if (CY_LIKELY(number || c->tag == TAG_INT)) place = interp_item_place(cell, number ? INT_C : c->as.i);
        if (CY_UNLIKELY(!place || !interp_is_mine(cell))) {
            place = slow_enter_index(vm, r, cell, step);
            if (!place) goto raise;
        }
        cell = place;
        NEXT();
    }
    STEP(PATH_FIELD) :
    {
        cy_value *place = interp_field_place(vm, cell, CACHE, &k[step->c], true);
        if (CY_UNLIKELY(!place || !interp_is_mine(cell))) {
            place = slow_enter_field(vm, cell, instance, (struct run_step *)step);
            if (!place) goto raise;
        }
        cell = place;
        GO(step + 2);
    }
    WRITE_ITEM(SET, interp_set_item, interp_put_item, slow_index_set)
    WRITE_ITEM(ADD, interp_add_item, NOT_OWNED, slow_index_add)
    WRITE_ITEM(APPEND, NOT_PLAIN, interp_append_item, slow_index_append)
    WRITE_FIELD(SET, interp_fits(CACHE, value) && (slow_put(vm, place, value), true), slow_field_set)
    WRITE_FIELD(ADD, interp_add_number(place, value), slow_field_add)
    WRITE_FIELD(APPEND, interp_append(place, value), slow_field_append)

    /* -- arithmetic -------------------------------------------------------------------------------------- */
    ARITHMETIC(ADD, __builtin_add_overflow, +)
    ARITHMETIC(SUB, __builtin_sub_overflow, -)
    ARITHMETIC(MUL, __builtin_mul_overflow, *)
    DIVISION(DIV, /)
    DIVISION(MOD, %)
    ARITHMETIC_CONSTANT(DIV, /)
    STEP(CONSTANT_SUB) :
    {
        const cy_value *c = SLOT(c);
        if (CY_LIKELY(c->tag == TAG_FLOAT)) {
            double result = CONSTANT(b)->as.f - c->as.f;
            SET(step->a, TAG_FLOAT, f, result);
            NEXT();
        }
        SLOW(slow_arithmetic(vm, r, k, step));
    }
    STEP(CONSTANT_DIV) :
    {
        const cy_value *b = CONSTANT(b), *c = SLOT(c);
        DIVIDE_FLOATS_DIV(b, c);
        SLOW(slow_arithmetic(vm, r, k, step));
    }
    BITS(BIT_AND, &)
    BITS(BIT_OR, |)
    BITS(BIT_XOR, ^)
    SHIFT(SHIFT_LEFT, uint64_t, <<)
    SHIFT(SHIFT_RIGHT, int64_t, >>)
    STEP(NEG) :
    {
        const cy_value *b = SLOT(b);
        if (b->tag == TAG_FLOAT) {
            double result = -b->as.f;
            SET(step->a, TAG_FLOAT, f, result);
            NEXT();
        }
        SLOW(slow_unary(vm, r, step));
    }
    STEP(BIT_NOT) : SLOW(slow_unary(vm, r, step));
    STEP(NOT) :
    {
        const cy_value *b = SLOT(b);
        if (CY_LIKELY(b->tag < TAG_HEAP)) AS_VALUE(!value_truthy(*b), GO);
        SLOW(slow_unary(vm, r, step));
    }

    /* -- comparing --------------------------------------------------------------------------------------- */
    COMPARE(EQ, ==, COMPARE_EQUAL)
    COMPARE(NE, !=, COMPARE_EQUAL)
    COMPARE(LT, <, COMPARE_ORDER)
    COMPARE(LE, <=, COMPARE_ORDER)
    COMPARE(GT, >, COMPARE_ORDER)
    COMPARE(GE, >=, COMPARE_ORDER)
    STEP(IS_KIND) : STEP(IS_RECORD) :
    {
        slow_is(vm, r, instance, step);
        NEXT();
    }
    STEP(CHECK_KIND) :
    {
        if (CY_LIKELY(value_kind_by_tag[SLOT(b)->tag] == step->c)) NEXT();
        SLOW(slow_check(vm, r, instance, step));
    }
    STEP(CHECK_RECORD) : SLOW(slow_check(vm, r, instance, step));

    /* -- jumps ------------------------------------------------------------------------------------------- */
    STEP(JUMP) : GO(TARGET(step));
    STEP(JUMP_IF_FALSE) :
    {
        truth = value_truthy(*SLOT(b));
        if (CY_UNLIKELY(step->x & RUN_OWN_B) && SLOT(b)->tag >= TAG_HEAP) interp_drop(vm, SLOT(b));
        if (truth) NEXT();
        GO(TARGET(step));
    }
    STEP(JUMP_IF_TRUE) :
    {
        truth = value_truthy(*SLOT(b));
        if (CY_UNLIKELY(step->x & RUN_OWN_B) && SLOT(b)->tag >= TAG_HEAP) interp_drop(vm, SLOT(b));
        if (!truth) NEXT();
        GO(TARGET(step));
    }
    STEP(LOOP) : { BACK(TARGET(step)); }
    STEP(LOOP_INT) :
    {
        cy_value *state = SLOT(b);
        int64_t number = state[0].as.i;
        if (number >= state[1].as.i) BACK(step + 1);
        state[0].as.i = number + 1;
        SET(step->c, TAG_INT, i, number);
        BACK(TARGET(step));
    }

    /* -- calls ------------------------------------------------------------------------------------------- */
    STEP(CALL_FUNCTION) :
    {
        callee = &instance->functions[step->c];
        closure = NULL;
        base = SLOT(b);
        arg_count = step->x;
        goto enter;
    }
    STEP(CALL_WRONG) :
    {
        slow_wrong_count(vm, instance, step->c, step->x);
        goto raise;
    }
    STEP(CALL) :
    {
        cy_value function = *SLOT(b);
        base = &SLOT(b)[1];
        arg_count = step->x;
        if (CY_LIKELY(function.tag == TAG_FUNCTION)) {
            closure = function_of(function);
            if (closure->native && closure->instance == instance) {
                import = closure->index;
                goto invoke;
            }
            callee = &instance->functions[closure->index];
            if (CY_LIKELY(closure->instance == instance && arg_count >= callee->required_count &&
                          arg_count <= callee->param_count))
                goto enter;
        }
        interp_call_failed(vm, fiber, function, arg_count);
        goto raise;
    }

enter:
    frame->step = step;
    if (CY_UNLIKELY(frame + 1 == fiber->frames_end || base + callee->slot_count > fiber->stack_end)) {
        fiber->frame = frame;
        if (!interp_make_room(vm, fiber, &base, callee->slot_count)) goto unwind_now;
        frame = fiber->frame;
    }
    for (uint32_t i = 0; i < callee->required_count; i++)
        if (CY_UNLIKELY(base[i].tag == TAG_ABSENT)) {
            slow_absent_argument(vm, instance, callee, base);
            goto raise;
        }
    for (uint32_t i = arg_count; i < callee->param_count; i++) base[i].tag = TAG_ABSENT;
    for (uint32_t i = callee->param_count; i < callee->local_count; i++) base[i].tag = TAG_NIL;
    frame++;
    frame->function = callee;
    frame->closure = closure;
    frame->base = (uint32_t)(base - fiber->stack);
    frame->handler = 0;
    r = base;
    step = callee->code;
    vm->budget -= callee->call_steps;
    if (CY_UNLIKELY(vm->budget < 0)) goto yield;
    GO(step);

yield: /* the budget stays negative: fiber_turn sees how much was charged */
    frame->step = step;
    fiber->frame = frame;
    return INTERP_YIELDED;

    STEP(RETURN) :
    {
        returned.tag = SLOT(b)->tag;
        returned.as.i = SLOT(b)->as.i;
        SLOT(b)->tag = TAG_NIL;
        goto leave;
    }
    STEP(RETURN_CONSTANT) :
    {
        returned = value_ref(k[step->b]);
        goto leave;
    }

leave:
    for (uint32_t i = 0; i < step->c; i++)
        if (r[i].tag >= TAG_HEAP) slow_clear(vm, &r[i]);
    if (CY_UNLIKELY(frame == fiber->frames)) {
        fiber->frame = NULL;
        fiber->outcome = CALL_RETURNED;
        fiber->result = returned;
        return INTERP_ENDED;
    }
    frame--;
    r = fiber->stack + frame->base;
    step = frame->step;
    {
        cy_value *to = interp_result_slot(r, step);
        if (to->tag >= TAG_HEAP) slow_clear(vm, to); /* the called function */
        to->tag = returned.tag;
        to->as.i = returned.as.i;
    }
    NEXT();

    STEP(NATIVE) :
    {
        import = step->c;
        base = SLOT(b);
        arg_count = step->x;
        goto invoke;
    }

invoke : {
    frame->step = step;
    fiber->frame = frame;
    cy_value result = value_nil();
    enum invoke_outcome outcome = native_invoke(fiber, import, base, arg_count, &result);
    if (CY_UNLIKELY(outcome == INVOKE_FAIL)) goto unwind_now;
    for (uint32_t i = 0; i < arg_count; i++)
        if (base[i].tag >= TAG_HEAP) interp_drop(vm, &base[i]);
    if (outcome == INVOKE_WAIT) return INTERP_WAITING;
    slow_put(vm, interp_result_slot(r, step), result);
    NEXT_CHARGED(step + 1);
}

    STEP(LEN) :
    {
        cy_value *b = SLOT(b);
        int64_t count;
        if (b->tag == TAG_LIST)
            count = list_of(*b)->count;
        else if (b->tag == TAG_STR)
            count = string_of(*b)->count;
        else
            NATIVE_SLOW(length, 1);
        if (step->x & RUN_OWN_B) slow_clear(vm, b);
        SET(step->a, TAG_INT, i, count);
        NEXT();
    }
    STEP(SQRT) :
    {
        const cy_value *b = SLOT(b);
        if (CY_LIKELY(b->tag == TAG_FLOAT) && CY_LIKELY(b->as.f >= 0.0)) {
            double root = __builtin_sqrt(b->as.f);
            SET(step->a, TAG_FLOAT, f, root);
            NEXT();
        }
        NATIVE_SLOW(math_sqrt, 1);
    }
    WRAPPING(ADD, int_wrapping_add, +)
    WRAPPING(MUL, int_wrapping_mul, *)
    STEP(MAP_GET) : STEP(MAP_HAS) :
    {
        cy_value *b = SLOT(b), *place, room, found;
        const cy_value *key = interp_borrow(r, k, step, &room);
        if (CY_UNLIKELY(b->tag != TAG_MAP || !map_object_look(vm, map_object_of(*b), *key, &place))) {
            if (step->op == RUN_MAP_GET) NATIVE_SLOW(map_get, 2);
            NATIVE_SLOW(map_has, 2);
        }
        found = step->op == RUN_MAP_HAS ? value_bool(place != NULL) : place ? value_ref(*place) : value_nil();
        if (step->x & RUN_OWN_B) slow_clear(vm, b);
        if (step->x & RUN_OWN_C) slow_clear(vm, SLOT(c));
        PUT(step->a, found);
        NEXT_CHARGED(step + 1);
    }
    STEP(MAP_GET_OR) :
    {
        cy_value *b = SLOT(b), *place, room;
        const cy_value *key = interp_borrow(r, k, step, &room);
        if (CY_UNLIKELY(b->tag != TAG_MAP || !map_object_look(vm, map_object_of(*b), *key, &place))) {
            frame->step = step;
            fiber->frame = frame;
            SLOW_CACHED(slow_native(fiber, r, k, step, NATIVE_map_get, 3));
        }
        cy_value found = place ? value_ref(*place) : value_nil();
        uint32_t after = place ? 2 : 1;
        if (step->x & RUN_OWN_B) slow_clear(vm, b);
        if (step->x & RUN_OWN_C) slow_clear(vm, SLOT(c));
        PUT(step->a, found);
        NEXT_CHARGED(step + after);
    }
    STEP(NATIVE_FUNCTION) : SLOW(slow_native_function(fiber, r, step));
    STEP(CLOSURE) :
    {
        fiber->frame = frame;
        SLOW(slow_closure(fiber, r, step));
    }
    STEP(SPAWN) :
    {
        frame->step = step;
        fiber->frame = frame;
        SLOW(task_spawn(fiber, SLOT(b), step));
    }

    /* -- loops ------------------------------------------------------------------------------------------- */
    STEP(INTLOOP_BEGIN) :
    {
        cy_value from = *SLOT(b), to = *SLOT(c);
        if (CY_UNLIKELY(from.tag != TAG_INT || to.tag != TAG_INT)) {
            error_raise(vm, CY_ERR(TYPE), MESSAGE_LOOP_INTS, value_kind_text(vm, from),
                        value_kind_text(vm, to));
            goto raise;
        }
        SLOT(a)->tag = SLOT(a)[1].tag = TAG_INTLOOP;
        SLOT(a)->as.i = from.as.i;
        SLOT(a)[1].as.i = to.as.i;
        NEXT();
    }
    STEP(INTLOOP_NEXT) :
    {
        cy_value *state = SLOT(b);
        int64_t number = state[0].as.i;
        if (number >= state[1].as.i) GO(TARGET(step));
        state[0].as.i = number + 1;
        SET(step->c, TAG_INT, i, number);
        NEXT();
    }
    STEP(ITER_BEGIN) : SLOW(slow_iter_begin(vm, r, step));
    STEP(ITER_NEXT) :
    {
        cy_value *state = SLOT(b), item;
        if (CY_LIKELY(state->tag == TAG_LIST || state->tag == TAG_STR) &&
            CY_LIKELY(interp_item(state, state[1].as.i, &item))) {
            state[1].as.i++;
            PUT(step->c, item);
            NEXT();
        }
        if (!slow_iter_next(SLOT(b), false, NULL, &item)) GO(TARGET(step));
        slow_put(vm, SLOT(c), item);
        NEXT();
    }
    STEP(ITER_NEXT_PAIR) :
    {
        cy_value key, item;
        if (!slow_iter_next(SLOT(b), true, &key, &item)) GO(TARGET(step));
        slow_put(vm, SLOT(c), key);
        slow_put(vm, &r[step->x], item);
        NEXT();
    }

    /* -- errors ------------------------------------------------------------------------------------------ */
    STEP(TRY_BEGIN) : STEP(DEFER_BEGIN) :
    {
        unwind_push_handler(frame, r, step->b, (uint32_t)(TARGET(step) - frame->function->code),
                            step->op == RUN_DEFER_BEGIN);
        NEXT();
    }
    STEP(HANDLER_END) :
    {
        unwind_pop_handler(frame, r, step->b);
        NEXT();
    }
    STEP(DEFER_ATTACH) :
    {
        slow_defer_attach(vm, SLOT(b), SLOT(c));
        NEXT();
    }
    STEP(RETHROW) :
    {
        cy_value pending = slow_take(SLOT(b));
        if (pending.tag != TAG_STOP) error_raise_value(vm, pending);
        goto raise;
    }
    STEP(THROW) :
    {
        slow_throw(vm, SLOT(b));
        goto raise;
    }

    /* -- collections ------------------------------------------------------------------------------------- */
    STEP(LIST) : SLOW(slow_list(vm, r, step));
    STEP(MAP) : SLOW(slow_map(vm, r, step));
    STEP(RECORD) : SLOW(slow_record(vm, r, instance, step));
    STEP(RANGE) : SLOW(slow_range(vm, r, step));
    STEP(REF) : SLOW(slow_ref(vm, r, step));
    STEP(TEXT) : SLOW(slow_text(fiber, r, step));

    /* -- reading inside values --------------------------------------------------------------------------- */
    READ_ITEM(INDEX_, , SLOT(c)->tag == TAG_INT, SLOT(c)->as.i)
    READ_ITEM(INDEX_, _INT, true, INT_C)
    STEP(GLOBAL_INDEX_GET) :
    {
        const cy_value *global = &instance->globals[step->b], *c = SLOT(c);
        if (CY_LIKELY(c->tag == TAG_INT)) ITEM(global, c->as.i, (void)0);
        SLOW(slow_index_get_from(vm, r, step, *global));
    }
    STEP(GLOBAL_INDEX_BORROW) :
    {
        const cy_value *c = SLOT(c);
        cell = c->tag == TAG_INT ? interp_item_place(&instance->globals[step->b], c->as.i) : NULL;
        if (CY_LIKELY(cell != NULL)) NEXT();
        if (!slow_index_get_from(vm, r, step, instance->globals[step->b])) goto raise;
        cell = SLOT(a);
        NEXT();
    }
    STEP(SLICE) :
    {
        if (CY_UNLIKELY(!BOTH(TAG_INT, SLOT(c), SLOT(c) + 1))) {
            slow_slice(vm, r, step);
            step++; /* the range's place */
            goto raise;
        }
        SLOW_CACHED(slow_slice(vm, r, step));
    }
    STEP(FIELD_GET) :
    {
        cy_value *b = SLOT(b);
        const cy_value *place = interp_field_place(vm, b, CACHE, &k[step->c], false);
        if (CY_LIKELY(place != NULL)) {
            cy_value value = value_ref(*place);
            if (step->x & RUN_OWN_B) slow_clear(vm, b);
            PUT(step->a, value);
            GO(step + 2);
        }
        SLOW_CACHED(slow_field_get(vm, r, instance, (struct run_step *)step));
    }
    STEP(CELL_FIELD_GET) :
    {
        const cy_value *place = NULL;
        if (CY_LIKELY(cell != SLOT(b))) place = interp_field_place(vm, cell, CACHE, &k[step->c], false);
        if (CY_LIKELY(place != NULL)) {
            PUT(step->a, value_ref(*place));
            GO(step + 2);
        }
        slow_settle_cell(cell, SLOT(b));
        SLOW_CACHED(slow_field_get(vm, r, instance, (struct run_step *)step));
    }
    STEP(FIELD_BORROW) :
    {
        cell = interp_field_place(vm, SLOT(b), CACHE, &k[step->c], false);
        if (CY_LIKELY(cell != NULL)) GO(step + 2);
        if (!slow_field_get(vm, r, instance, (struct run_step *)step)) goto raise;
        cell = SLOT(a);
        GO(step + 2);
    }
    STEP(CELL_FIELD_BORROW) :
    {
        cy_value *place = NULL;
        if (CY_LIKELY(cell != SLOT(b))) place = interp_field_place(vm, cell, CACHE, &k[step->c], false);
        if (CY_UNLIKELY(!place)) {
            slow_settle_cell(cell, SLOT(b));
            if (!slow_field_get(vm, r, instance, (struct run_step *)step)) goto raise;
            place = SLOT(a);
        }
        cell = place;
        GO(step + 2);
    }
    STEP(GLOBAL_GET) :
    {
        PUT(step->a, value_ref(instance->globals[step->c]));
        NEXT();
    }
    STEP(CAPTURE) :
    {
        PUT(step->a, value_ref(frame->closure->captures[step->c]));
        NEXT();
    }
    STEP(GLOBAL_BORROW) :
    {
        cell = &instance->globals[step->c];
        NEXT();
    }
    STEP(CAPTURE_BORROW) :
    {
        cell = &frame->closure->captures[step->c];
        NEXT();
    }
}

#undef TARGET
#undef DISPATCH
#undef GO
#undef NEXT
#undef STEP
#undef SLOT
#undef CONSTANT
#undef COPY
#undef SET
#undef PUT
#undef BOTH
#undef NEXT_CHARGED
#undef SLOW
#undef SLOW_CACHED
#undef INT_C
#undef ARITHMETIC
#undef ARITHMETIC_CONSTANT
#undef DIVISION
#undef DIVIDE_FLOATS_DIV
#undef DIVIDE_FLOATS_MOD
#undef BITS
#undef SHIFT
#undef AS_VALUE
#undef AS_UNLESS
#undef AS_IF
#undef AS_LOOP
#undef BACK
#undef COMPARE
#undef COMPARE_FORMS
#undef COMPARE_SLOW
#undef COMPARE_EQUAL
#undef COMPARE_ORDER
#undef ITEM
#undef READ_ITEM
#undef CACHE
#undef NATIVE_SLOW
#undef WRAPPING
#undef WRITE_ITEM
#undef NOT_PLAIN
#undef NOT_OWNED
#undef WRITE_FIELD
