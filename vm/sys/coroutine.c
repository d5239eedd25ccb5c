/* SPDX-License-Identifier: MIT
 *
 * vm/sys/coroutine.c: see coroutine.h.
 *
 *   memory: │ struct coroutine │ guard words │ stack, growing down ◄──────│
 *
 * Method: a switch saves the registers that a call preserves on the stack it leaves, and takes those of the stack it
 *       enters: a dozen instructions for x86-64 and arm64. Elsewhere swapcontext, which asks the kernel about signals
 *       each time (0.3 us) and which AddressSanitizer warns of on stderr.
 * Invariant: the guard words are as they were at every switch: what grew past its stack ends the process there, before
 *       anything that it overwrote is used.
 */
#include "vm/sys/coroutine.h"

#include "vm/base/check.h"

#include <string.h>

#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(COROUTINE_PORTABLE)
#define COROUTINE_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define COROUTINE_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COROUTINE_ASAN
#endif
#endif
#ifdef COROUTINE_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

/* pcre2_match takes 2 KiB of 10.42, and 20 KiB more before 10.41; what looks at the clock takes little beside. */
enum { COROUTINE_STACK_BYTES = 64 << 10, COROUTINE_GUARDS = 8 };
#define COROUTINE_GUARD 0x5afe57ac5afe57acull

struct coroutine {
#ifdef COROUTINE_UCONTEXT
    ucontext_t inside, outside;
#else
    void *inside, *outside; /* stack pointers; the one that runs is not here */
#endif
    void (*entry)(struct coroutine *coroutine, void *context);
    void *context;
    bool running;
#ifdef COROUTINE_ASAN
    void *fake_inside, *fake_outside;
    const void *outside_bottom;
    size_t outside_bytes;
#endif
    _Alignas(16) uint64_t guards[COROUTINE_GUARDS]; /* right below the stack */
    uint8_t stack[COROUTINE_STACK_BYTES];
};

size_t coroutine_bytes(void) { return sizeof(struct coroutine); }
size_t coroutine_stack_bytes(void) { return COROUTINE_STACK_BYTES; }

/* AddressSanitizer wants to know on which stack we are. */
static void coroutine_leave_outside(struct coroutine *coroutine)
{
#ifdef COROUTINE_ASAN
    __sanitizer_start_switch_fiber(&coroutine->fake_outside, coroutine->stack, sizeof coroutine->stack);
#else
    (void)coroutine;
#endif
}
static void coroutine_came_outside(struct coroutine *coroutine)
{
#ifdef COROUTINE_ASAN
    __sanitizer_finish_switch_fiber(coroutine->fake_outside, NULL, NULL);
#else
    (void)coroutine;
#endif
}
static void coroutine_leave_inside(struct coroutine *coroutine)
{
#ifdef COROUTINE_ASAN
    __sanitizer_start_switch_fiber(&coroutine->fake_inside, coroutine->outside_bottom,
                                   coroutine->outside_bytes);
#else
    (void)coroutine;
#endif
}
static void coroutine_came_inside(struct coroutine *coroutine)
{
#ifdef COROUTINE_ASAN
    __sanitizer_finish_switch_fiber(coroutine->fake_inside, &coroutine->outside_bottom,
                                    &coroutine->outside_bytes);
#else
    (void)coroutine;
#endif
}

static void coroutine_run(struct coroutine *coroutine)
{
    coroutine_came_inside(coroutine);
    coroutine->entry(coroutine, coroutine->context);
    CHECK(!"a coroutine returned");
}

/* -- the switch --------------------------------------------------------------------------------------------- */

#ifdef COROUTINE_UCONTEXT

static void coroutine_start(unsigned high, unsigned low)
{
    coroutine_run((struct coroutine *)(uintptr_t)((uint64_t)high << 32 | low));
}
static void coroutine_prepare(struct coroutine *coroutine)
{
    uint64_t address = (uintptr_t)coroutine;
    CHECK(getcontext(&coroutine->inside) == 0);
    coroutine->inside.uc_stack.ss_sp = coroutine->stack;
    coroutine->inside.uc_stack.ss_size = sizeof coroutine->stack;
    makecontext(&coroutine->inside, (void (*)(void))coroutine_start, 2, (unsigned)(address >> 32),
                (unsigned)address);
}
static void coroutine_enter(struct coroutine *coroutine)
{
    CHECK(swapcontext(&coroutine->outside, &coroutine->inside) == 0);
}
static void coroutine_exit(struct coroutine *coroutine)
{
    CHECK(swapcontext(&coroutine->inside, &coroutine->outside) == 0);
}

#else

/* Leaves this stack, its pointer in *from_out, for the one at `to`. `argument` is what a function that begins there
 * gets. */
void cy_coroutine_switch(void **from_out, void *to, void *argument) __asm__("cy_coroutine_switch");

#ifdef __APPLE__
#define COROUTINE_HIDDEN ".private_extern cy_coroutine_switch\n"
#else
#define COROUTINE_HIDDEN ".hidden cy_coroutine_switch\n.type cy_coroutine_switch, %function\n"
#endif

#ifdef __x86_64__
enum { COROUTINE_SAVED_WORDS = 6, COROUTINE_ENTRY_WORD = 6, COROUTINE_FRAME_WORDS = 8 };
__asm__(".text\n.p2align 4\n.globl cy_coroutine_switch\n" COROUTINE_HIDDEN "cy_coroutine_switch:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    movq %rdx, %rdi\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n");
#else
enum { COROUTINE_ENTRY_WORD = 11, COROUTINE_FRAME_WORDS = 20 };
__asm__(".text\n.p2align 4\n.globl cy_coroutine_switch\n" COROUTINE_HIDDEN "cy_coroutine_switch:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    mov x0, x2\n"
        "    ldp x19, x20, [sp, #0]\n    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n");
#endif

/* A frame as if coroutine_run had been left by a switch before its first instruction; on x86-64 with the word of a
 * return address above it, 0, where debuggers stop. */
static void coroutine_prepare(struct coroutine *coroutine)
{
    uint8_t *top = coroutine->stack + sizeof coroutine->stack;
    void **frame = (void **)(void *)top - COROUTINE_FRAME_WORDS;
    memset(frame, 0, COROUTINE_FRAME_WORDS * sizeof *frame);
    frame[COROUTINE_ENTRY_WORD] = (void *)(uintptr_t)coroutine_run;
    coroutine->inside = frame;
}
static void coroutine_enter(struct coroutine *coroutine)
{
    cy_coroutine_switch(&coroutine->outside, coroutine->inside, coroutine);
}
static void coroutine_exit(struct coroutine *coroutine)
{
    cy_coroutine_switch(&coroutine->inside, coroutine->outside, NULL);
}

#endif

/* -- what is called ----------------------------------------------------------------------------------------- */

static void coroutine_check_guards(const struct coroutine *coroutine)
{
    for (int i = 0; i < COROUTINE_GUARDS; i++) CHECK(coroutine->guards[i] == COROUTINE_GUARD);
}

struct coroutine *coroutine_begin(void *memory, void (*entry)(struct coroutine *coroutine, void *context),
                                  void *context)
{
    struct coroutine *coroutine = memory;
    CHECK((uintptr_t)memory % 16 == 0);
    memset(coroutine, 0, offsetof(struct coroutine, stack));
    coroutine->entry = entry;
    coroutine->context = context;
    for (int i = 0; i < COROUTINE_GUARDS; i++) coroutine->guards[i] = COROUTINE_GUARD;
    coroutine_prepare(coroutine);
    return coroutine;
}

void coroutine_resume(struct coroutine *coroutine)
{
    CHECK(!coroutine->running);
    coroutine_check_guards(coroutine);
    coroutine->running = true;
    coroutine_leave_outside(coroutine);
    coroutine_enter(coroutine);
    coroutine_came_outside(coroutine);
    coroutine->running = false;
    coroutine_check_guards(coroutine);
}

void coroutine_pause(struct coroutine *coroutine)
{
    CHECK(coroutine->running);
    coroutine_leave_inside(coroutine);
    coroutine_exit(coroutine);
    coroutine_came_inside(coroutine);
}

#undef COROUTINE_UCONTEXT
#undef COROUTINE_ASAN
#undef COROUTINE_GUARD
#undef COROUTINE_HIDDEN
