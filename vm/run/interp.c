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
#include "vm/run/list.h"
#include "vm/run/map_object.h"
#include "vm/run/string.h"
#include "vm/run/unwind.h"

/* The slot that receives what a call or native returns. */
static uint32_t interp_result_slot(const struct run_step *step)
{
    return step->op == RUN_CALL ? step->b : step->a;
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

/* A field whose place the cache knows; NULL when it does not. */
static inline const cy_value *interp_cached_field(cy_value container, const struct run_cache *cache,
                                                  cy_value name)
{
    if (container.tag == TAG_RECORD) {
        const struct record *record = record_of(container);
        return record->shape == cache->shape ? &record->fields[cache->index] : NULL;
    }
    if (container.tag != TAG_MAP || cache->shape) return NULL;
    const struct map_object *map = map_object_of(container);
    if (cache->index >= map->entry_count) return NULL;
    const struct map_object_entry *entry = &map->entries[cache->index];
    return entry->key.tag == TAG_STR && entry->key.as.object == name.as.object ? &entry->value : NULL;
}

static CY_COLD void interp_drop(struct vm *vm, cy_value *slot) { slow_clear(vm, slot); }

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
        slow_put(vm, &fiber->stack[frame->base + interp_result_slot(frame->step)], value);
        frame->step++;
    }
    return true;
}

/* Steps are fixed in size, a target is a signed distance. */
#define TARGET(step_) ((step_) + (int32_t)(step_)->a)
#define GO(step_)               \
    do {                        \
        step = (step_);         \
        goto *labels[step->op]; \
    } while (0)
#define NEXT() GO(step + 1)
#define STEP(name) label_##name
/* Two 8-byte moves: a 16-byte one would wait for the two 8-byte stores that made the value. */
#define COPY(to_, from_)                      \
    do {                                      \
        uint64_t copy_tag = (from_)->tag;     \
        int64_t copy_payload = (from_)->as.i; \
        (to_)->tag = copy_tag;                \
        (to_)->as.i = copy_payload;           \
    } while (0)
/* Stores a plain value; what the slot held goes first (the operands were read). */
#define SET(slot_, tag_, member_, value_)                                  \
    do {                                                                   \
        cy_value *set_to = &r[slot_];                                      \
        if (CY_UNLIKELY(set_to->tag >= TAG_HEAP)) interp_drop(vm, set_to); \
        set_to->tag = (tag_);                                              \
        set_to->as.member_ = (value_);                                     \
    } while (0)
#define BOTH(tag_, b_, c_) ((b_)->tag == (tag_) && (c_)->tag == (tag_))
/* To the next step after work out of line, which may have charged the budget. */
#define NEXT_CHARGED(step_)                          \
    do {                                             \
        step = (step_);                              \
        if (CY_UNLIKELY(vm->budget < 0)) goto yield; \
        goto *labels[step->op];                      \
    } while (0)
/* A call out of line that may fail. */
#define SLOW(call_)                            \
    do {                                       \
        if (CY_UNLIKELY(!(call_))) goto raise; \
        NEXT_CHARGED(step + 1);                \
    } while (0)

#define ARITHMETIC(name_, checked_, sign_)                         \
    STEP(name_) :                                                  \
    {                                                              \
        const cy_value *b = &r[step->b], *c = &r[step->c];         \
        int64_t number;                                            \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {                      \
            if (CY_LIKELY(!checked_(b->as.i, c->as.i, &number))) { \
                SET(step->a, TAG_INT, i, number);                  \
                NEXT();                                            \
            }                                                      \
        } else if (BOTH(TAG_FLOAT, b, c)) {                        \
            double result = b->as.f sign_ c->as.f;                 \
            SET(step->a, TAG_FLOAT, f, result);                    \
            NEXT();                                                \
        }                                                          \
        SLOW(slow_arithmetic(vm, r, step));                        \
    }
#define ARITHMETIC_INT(name_, checked_)                                          \
    STEP(name_) :                                                                \
    {                                                                            \
        const cy_value *b = &r[step->b];                                         \
        int64_t number;                                                          \
        if (CY_LIKELY(b->tag == TAG_INT) &&                                      \
            CY_LIKELY(!checked_(b->as.i, (int64_t)(int32_t)step->c, &number))) { \
            SET(step->a, TAG_INT, i, number);                                    \
            NEXT();                                                              \
        }                                                                        \
        SLOW(slow_arithmetic(vm, r, step));                                      \
    }
#define DIVISION(name_, sign_)                                          \
    STEP(name_) :                                                       \
    {                                                                   \
        const cy_value *b = &r[step->b], *c = &r[step->c];              \
        if (CY_LIKELY(BOTH(TAG_INT, b, c)) && CY_LIKELY(c->as.i > 0)) { \
            int64_t number = b->as.i sign_ c->as.i;                     \
            SET(step->a, TAG_INT, i, number);                           \
            NEXT();                                                     \
        }                                                               \
        SLOW(slow_arithmetic(vm, r, step));                             \
    }                                                                   \
    STEP(name_##_INT) :                                                 \
    {                                                                   \
        const cy_value *b = &r[step->b];                                \
        if (CY_LIKELY(b->tag == TAG_INT)) {                             \
            int64_t number = b->as.i sign_(int64_t)(int32_t) step->c;   \
            SET(step->a, TAG_INT, i, number);                           \
            NEXT();                                                     \
        }                                                               \
        SLOW(slow_arithmetic(vm, r, step));                             \
    }
#define BITS(name_, sign_)                                 \
    STEP(name_) :                                          \
    {                                                      \
        const cy_value *b = &r[step->b], *c = &r[step->c]; \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {              \
            int64_t number = b->as.i sign_ c->as.i;        \
            SET(step->a, TAG_INT, i, number);              \
            NEXT();                                        \
        }                                                  \
        SLOW(slow_arithmetic(vm, r, step));                \
    }
/* Four forms of a comparison: against a slot or an int, as a value or as a jump when it does not hold. */
#define COMPARE(name_, sign_)                                         \
    STEP(name_) :                                                     \
    {                                                                 \
        const cy_value *b = &r[step->b], *c = &r[step->c];            \
        if (CY_LIKELY(BOTH(TAG_INT, b, c)))                           \
            truth = b->as.i sign_ c->as.i;                            \
        else if (BOTH(TAG_FLOAT, b, c))                               \
            truth = b->as.f sign_ c->as.f;                            \
        else if (slow_compare(vm, r, instance, step, &truth)) {       \
            SET(step->a, TAG_BOOL, i, truth);                         \
            NEXT_CHARGED(step + 1);                                   \
        } else                                                        \
            goto raise;                                               \
        SET(step->a, TAG_BOOL, i, truth);                             \
        NEXT();                                                       \
    }                                                                 \
    STEP(name_##_INT) :                                               \
    {                                                                 \
        const cy_value *b = &r[step->b];                              \
        if (CY_LIKELY(b->tag == TAG_INT))                             \
            truth = b->as.i sign_(int64_t)(int32_t) step->c;          \
        else if (!slow_compare(vm, r, instance, step, &truth))        \
            goto raise;                                               \
        SET(step->a, TAG_BOOL, i, truth);                             \
        NEXT();                                                       \
    }                                                                 \
    STEP(UNLESS_##name_) :                                            \
    {                                                                 \
        const cy_value *b = &r[step->b], *c = &r[step->c];            \
        if (CY_LIKELY(BOTH(TAG_INT, b, c))) {                         \
            if (b->as.i sign_ c->as.i) NEXT();                        \
            GO(TARGET(step));                                         \
        }                                                             \
        if (BOTH(TAG_FLOAT, b, c)) {                                  \
            if (b->as.f sign_ c->as.f) NEXT();                        \
            GO(TARGET(step));                                         \
        }                                                             \
        if (!slow_compare(vm, r, instance, step, &truth)) goto raise; \
        NEXT_CHARGED(truth ? step + 1 : TARGET(step));                \
    }                                                                 \
    STEP(UNLESS_##name_##_INT) :                                      \
    {                                                                 \
        const cy_value *b = &r[step->b];                              \
        if (CY_LIKELY(b->tag == TAG_INT)) {                           \
            if (b->as.i sign_(int64_t)(int32_t) step->c) NEXT();      \
            GO(TARGET(step));                                         \
        }                                                             \
        if (!slow_compare(vm, r, instance, step, &truth)) goto raise; \
        if (truth) NEXT();                                            \
        GO(TARGET(step));                                             \
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
        cy_value value = value_ref(r[step->b]);
        cy_value *to = &r[step->a];
        if (CY_UNLIKELY(to->tag >= TAG_HEAP)) interp_drop(vm, to);
        to->tag = value.tag;
        to->as.i = value.as.i;
        NEXT();
    }
    STEP(TAKE) :
    {
        cy_value *from = &r[step->b], *to = &r[step->a];
        if (CY_UNLIKELY(to->tag >= TAG_HEAP)) interp_drop(vm, to);
        COPY(to, from);
        from->tag = TAG_NIL;
        NEXT();
    }
    STEP(CONSTANT) :
    {
        cy_value value = value_ref(k[step->c]);
        slow_put(vm, &r[step->a], value);
        NEXT();
    }
    STEP(INT) :
    {
        SET(step->a, TAG_INT, i, (int64_t)(int32_t)step->c);
        NEXT();
    }
    STEP(DROP) :
    {
        slow_clear(vm, &r[step->b]);
        NEXT();
    }
    STEP(CAPTURE) :
    {
        slow_put(vm, &r[step->a], value_ref(frame->closure->captures[step->c]));
        NEXT();
    }
    STEP(SELF) :
    {
        fiber->frame = frame;
        SLOW(slow_self(fiber, r, step));
    }
    STEP(GLOBAL_GET) :
    {
        slow_put(vm, &r[step->a], value_ref(instance->globals[step->c]));
        NEXT();
    }
    STEP(GLOBAL_SET) :
    {
        slow_put(vm, &instance->globals[step->c], slow_take(&r[step->b]));
        NEXT();
    }
    STEP(DEFAULT) :
    {
        if (r[step->b].tag == TAG_ABSENT) NEXT();
        GO(TARGET(step));
    }

    /* -- in place ---------------------------------------------------------------------------------------- */
    STEP(LOCAL_ADD) :
    {
        cy_value *a = &r[step->a];
        const cy_value *c = &r[step->c];
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
        if (step->x & RUN_OWN_C) slow_clear(vm, &r[step->c]);
        NEXT_CHARGED(step + 1);
    }
    STEP(LOCAL_ADD_INT) :
    {
        cy_value *a = &r[step->a];
        int64_t number;
        if (CY_LIKELY(a->tag == TAG_INT) &&
            CY_LIKELY(!__builtin_add_overflow(a->as.i, (int64_t)(int32_t)step->c, &number))) {
            a->as.i = number;
            NEXT();
        }
        SLOW(slow_add_in_place(vm, a, value_int((int32_t)step->c)));
    }
    STEP(LOCAL_APPEND) : SLOW(slow_append(vm, &r[step->a], &r[step->b]));
    STEP(LOCAL_PATH_SET) : SLOW(slow_path_set(vm, &r[step->a], &r[step->b], step->x));
    STEP(LOCAL_PATH_ADD) : SLOW(slow_path_add(vm, &r[step->a], &r[step->b], step->x, false));
    STEP(LOCAL_PATH_APPEND) : SLOW(slow_path_add(vm, &r[step->a], &r[step->b], step->x, true));
    STEP(GLOBAL_ADD) :
    {
        if (CY_UNLIKELY(!slow_add_in_place(vm, &instance->globals[step->a], r[step->c]))) goto raise;
        if (step->x & RUN_OWN_C) slow_clear(vm, &r[step->c]);
        NEXT_CHARGED(step + 1);
    }
    STEP(GLOBAL_APPEND) : SLOW(slow_append(vm, &instance->globals[step->a], &r[step->b]));
    STEP(GLOBAL_PATH_SET) : SLOW(slow_path_set(vm, &instance->globals[step->a], &r[step->b], step->x));
    STEP(GLOBAL_PATH_ADD) : SLOW(slow_path_add(vm, &instance->globals[step->a], &r[step->b], step->x, false));
    STEP(GLOBAL_PATH_APPEND)
        : SLOW(slow_path_add(vm, &instance->globals[step->a], &r[step->b], step->x, true));

    /* -- arithmetic -------------------------------------------------------------------------------------- */
    ARITHMETIC(ADD, __builtin_add_overflow, +)
    ARITHMETIC(SUB, __builtin_sub_overflow, -)
    ARITHMETIC(MUL, __builtin_mul_overflow, *)
    ARITHMETIC_INT(ADD_INT, __builtin_add_overflow)
    ARITHMETIC_INT(SUB_INT, __builtin_sub_overflow)
    ARITHMETIC_INT(MUL_INT, __builtin_mul_overflow)
    DIVISION(DIV, /)
    DIVISION(MOD, %)
    BITS(BIT_AND, &)
    BITS(BIT_OR, |)
    BITS(BIT_XOR, ^)
    STEP(SHIFT_LEFT) : SLOW(slow_arithmetic(vm, r, step));
    STEP(SHIFT_RIGHT) : SLOW(slow_arithmetic(vm, r, step));
    STEP(NEG) : SLOW(slow_unary(vm, r, step));
    STEP(BIT_NOT) : SLOW(slow_unary(vm, r, step));
    STEP(NOT) : SLOW(slow_unary(vm, r, step));

    /* -- comparing --------------------------------------------------------------------------------------- */
    COMPARE(EQ, ==)
    COMPARE(NE, !=)
    COMPARE(LT, <)
    COMPARE(LE, <=)
    COMPARE(GT, >)
    COMPARE(GE, >=)
    STEP(EQ_CONSTANT) : STEP(NE_CONSTANT) :
    {
        if (!slow_compare(vm, r, instance, step, &truth)) goto raise;
        SET(step->a, TAG_BOOL, i, truth);
        NEXT_CHARGED(step + 1);
    }
    STEP(UNLESS_EQ_CONSTANT) : STEP(UNLESS_NE_CONSTANT) :
    {
        if (!slow_compare(vm, r, instance, step, &truth)) goto raise;
        NEXT_CHARGED(truth ? step + 1 : TARGET(step));
    }
    STEP(IS_KIND) : STEP(IS_RECORD) :
    {
        slow_is(vm, r, instance, step);
        NEXT();
    }
    STEP(CHECK_KIND) :
    {
        if (CY_LIKELY(value_kind_by_tag[r[step->b].tag] == step->c)) NEXT();
        SLOW(slow_check(vm, r, instance, step));
    }
    STEP(CHECK_RECORD) : SLOW(slow_check(vm, r, instance, step));

    /* -- jumps ------------------------------------------------------------------------------------------- */
    STEP(JUMP) : GO(TARGET(step));
    STEP(JUMP_IF_FALSE) :
    {
        truth = value_truthy(r[step->b]);
        if (CY_UNLIKELY(step->x & RUN_OWN_B) && r[step->b].tag >= TAG_HEAP) interp_drop(vm, &r[step->b]);
        if (truth) NEXT();
        GO(TARGET(step));
    }
    STEP(JUMP_IF_TRUE) :
    {
        truth = value_truthy(r[step->b]);
        if (CY_UNLIKELY(step->x & RUN_OWN_B) && r[step->b].tag >= TAG_HEAP) interp_drop(vm, &r[step->b]);
        if (!truth) NEXT();
        GO(TARGET(step));
    }
    STEP(LOOP) :
    {
        step = TARGET(step);
        if (CY_UNLIKELY(--vm->budget < 0)) goto yield;
        GO(step);
    }
    STEP(LOOP_INT) :
    {
        step = TARGET(step);
        if (CY_UNLIKELY(--vm->budget < 0)) goto yield;
        goto STEP(INTLOOP_NEXT);
    }

    /* -- calls ------------------------------------------------------------------------------------------- */
    STEP(CALL_FUNCTION) :
    {
        callee = &instance->functions[step->c];
        closure = NULL;
        base = &r[step->b];
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
        cy_value function = r[step->b];
        base = &r[step->b + 1];
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
        returned.tag = r[step->b].tag;
        returned.as.i = r[step->b].as.i;
        r[step->b].tag = TAG_NIL;
        goto leave;
    }
    STEP(RETURN_CONSTANT) :
    {
        returned = value_ref(k[step->b]);
        goto leave;
    }

leave:
    for (uint32_t i = 0; i < step->c; i++)
        if (r[i].tag >= TAG_HEAP) interp_drop(vm, &r[i]);
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
        cy_value *to = &r[interp_result_slot(step)];
        if (CY_UNLIKELY(to->tag >= TAG_HEAP)) interp_drop(vm, to);
        to->tag = returned.tag;
        to->as.i = returned.as.i;
    }
    NEXT();

    STEP(NATIVE) :
    {
        import = step->c;
        base = &r[step->b];
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
    slow_put(vm, &r[interp_result_slot(step)], result);
    NEXT_CHARGED(step + 1);
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
        SLOW(task_spawn(fiber, &r[step->b], step));
    }

    /* -- loops ------------------------------------------------------------------------------------------- */
    STEP(INTLOOP_BEGIN) :
    {
        cy_value from = r[step->b], to = r[step->c];
        if (CY_UNLIKELY(from.tag != TAG_INT || to.tag != TAG_INT)) {
            error_raise(vm, CY_ERR(TYPE), MESSAGE_LOOP_INTS, value_kind_text(vm, from),
                        value_kind_text(vm, to));
            goto raise;
        }
        r[step->a].tag = r[step->a + 1].tag = TAG_INTLOOP;
        r[step->a].as.i = from.as.i;
        r[step->a + 1].as.i = to.as.i;
        NEXT();
    }
    STEP(INTLOOP_NEXT) :
    {
        cy_value *state = &r[step->b];
        int64_t number = state[0].as.i;
        if (number >= state[1].as.i) GO(TARGET(step));
        state[0].as.i = number + 1;
        SET(step->c, TAG_INT, i, number);
        NEXT();
    }
    STEP(ITER_BEGIN) : SLOW(slow_iter_begin(vm, r, step));
    STEP(ITER_NEXT) :
    {
        cy_value item;
        if (!slow_iter_next(&r[step->b], false, NULL, &item)) GO(TARGET(step));
        slow_put(vm, &r[step->c], item);
        NEXT();
    }
    STEP(ITER_NEXT_PAIR) :
    {
        cy_value key, item;
        if (!slow_iter_next(&r[step->b], true, &key, &item)) GO(TARGET(step));
        slow_put(vm, &r[step->c], key);
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
        slow_defer_attach(vm, &r[step->b], &r[step->c]);
        NEXT();
    }
    STEP(RETHROW) :
    {
        cy_value pending = slow_take(&r[step->b]);
        if (pending.tag != TAG_STOP) error_raise_value(vm, pending);
        goto raise;
    }
    STEP(THROW) :
    {
        slow_throw(vm, &r[step->b]);
        goto raise;
    }

    /* -- collections ------------------------------------------------------------------------------------- */
    STEP(LIST) : SLOW(slow_list(vm, r, step));
    STEP(MAP) : SLOW(slow_map(vm, r, step));
    STEP(RECORD) : SLOW(slow_record(vm, r, instance, step));
    STEP(RANGE) : SLOW(slow_range(vm, r, step));
    STEP(REF) : SLOW(slow_ref(vm, r, step));
    STEP(TEXT) : SLOW(slow_text(vm, r, step));
    STEP(INDEX_GET) :
    {
        const cy_value *b = &r[step->b], *c = &r[step->c];
        if (CY_LIKELY(b->tag == TAG_LIST && c->tag == TAG_INT) && !(step->x & RUN_OWN_B)) {
            const struct list *list = list_of(*b);
            if (CY_LIKELY((uint64_t)c->as.i < list->count)) {
                cy_value item = value_ref(list_item(list, (uint32_t)c->as.i));
                slow_put(vm, &r[step->a], item);
                NEXT();
            }
        }
        SLOW(slow_index_get(vm, r, step));
    }
    STEP(INDEX_GET_INT) : SLOW(slow_index_get(vm, r, step));
    STEP(FIELD_GET) :
    {
        const cy_value *field =
            interp_cached_field(r[step->b], (const struct run_cache *)(step + 1), k[step->c]);
        if (CY_LIKELY(field != NULL)) {
            cy_value value = value_ref(*field);
            if (step->x & RUN_OWN_B) slow_clear(vm, &r[step->b]);
            slow_put(vm, &r[step->a], value);
            GO(step + 2);
        }
        if (CY_UNLIKELY(!slow_field_get(vm, r, instance, (struct run_step *)step))) goto raise;
        NEXT_CHARGED(step + 2);
    }
}

#undef TARGET
#undef GO
#undef NEXT
#undef STEP
#undef COPY
#undef SET
#undef BOTH
#undef NEXT_CHARGED
#undef SLOW
#undef ARITHMETIC
#undef ARITHMETIC_INT
#undef DIVISION
#undef BITS
#undef COMPARE
