/* SPDX-License-Identifier: MIT
 *
 * vm/native/interrupt.c: Ctrl-C and SIGTERM end a program in order.
 *
 *   first signal ─► every task is cancelled ─► defers run (50 ms) ─► main has ended ─► exit code 128 + number
 *        └─► 100 ms later, and from then on, a second one ends the process at once, as the system does it
 *
 * In:   signals, as a descriptor that becomes readable. Out: cancelled tasks; what they wait for ends with them, so a
 *       child of process.run is killed.
 * Invariant: the first signal only becomes something to read (vm/sys/signals.c): nothing of the program happens between
 *            two instructions, and a native that computes for long is not interrupted. The second one is the
 *            system's: it ends the process also inside of such a native, or of a print into a pipe that nobody reads.
 * Not here: servers, which drain (serve.c) and then give the signals back; a master and its workers (vm/net/master.c);
 *            the REPL (repl.c).
 */
#include "vm/native/interrupt.h"

#include "vm/native/runtime_internal.h"
#include "vm/sys/process.h"

#include <signal.h>

/* Asking costs a system call, a turn of the VM some 50 µs. */
enum { INTERRUPT_TURNS_PER_LOOK = 16 };

void interrupt_init(struct interrupt *interrupt) { *interrupt = (struct interrupt){.descriptor = -1}; }

static const int interrupt_signals[] = {SIGINT, SIGTERM};

/* Who started us may want it ignored (a job of a shell's script in the background), and blocking would undo that. */
static bool interrupt_is_ignored(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

cy_err interrupt_open(struct runtime *runtime)
{
    int signals[CY_COUNT_OF(interrupt_signals)];
    size_t count = 0;
    for (size_t i = 0; i < CY_COUNT_OF(interrupt_signals); i++)
        if (!interrupt_is_ignored(interrupt_signals[i])) signals[count++] = interrupt_signals[i];
    return count == 0 ? CY_OK : signals_catch(signals, count, &runtime->interrupt.descriptor);
}

static void interrupt_end(struct runtime *runtime, bool blocked)
{
    struct interrupt *interrupt = &runtime->interrupt;
    if (interrupt->socket) loop_socket_close(&interrupt->socket);
    if (interrupt->descriptor >= 0) signals_uncatch(&interrupt->descriptor, blocked);
}

void interrupt_close(struct runtime *runtime) { interrupt_end(runtime, false); }

void interrupt_hand_over(struct runtime *runtime)
{
    struct interrupt *interrupt = &runtime->interrupt;
    /* Perhaps once more, before a loop's turn has given them back from the time before. */
    interrupt->handed_over = interrupt->descriptor >= 0 || interrupt->wanted_back;
    interrupt->wanted_back = false;
    interrupt_end(runtime, true);
}

static void interrupt_take(struct runtime *runtime)
{
    struct interrupt *interrupt = &runtime->interrupt;
    int number = interrupt->descriptor < 0 ? 0 : signals_next(interrupt->descriptor);
    if (number == 0) return;
    interrupt->signal = number;
    interrupt_close(runtime);
    vm_cancel_instance(runtime->vm, runtime->instance);
}

static void interrupt_wait(struct interrupt *interrupt)
{
    interrupt->waiting = true;
    loop_ready(interrupt->socket, &interrupt->ready);
}

static void interrupt_ready(struct loop_op *op)
{
    struct runtime *runtime =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct runtime, interrupt.ready);
    struct interrupt *interrupt = &runtime->interrupt;
    interrupt->waiting = false;
    if (cy_failed(op->err)) {
        if (interrupt->wanted_back) interrupt_take_back(runtime);
        return;
    }
    interrupt_take(runtime);
    if (interrupt->socket) interrupt_wait(interrupt);
}

cy_err interrupt_watch(struct runtime *runtime)
{
    struct interrupt *interrupt = &runtime->interrupt;
    if (interrupt->descriptor < 0) return CY_OK;
    interrupt->ready.op.done = interrupt_ready;
    interrupt->ready.want_read = true;
    CY_TRY(loop_socket_watch(runtime->loop, interrupt->descriptor, &interrupt->socket));
    interrupt_wait(interrupt);
    return CY_OK;
}

void interrupt_take_back(struct runtime *runtime)
{
    struct interrupt *interrupt = &runtime->interrupt;
    if (!interrupt->handed_over || runtime->closing) return;
    interrupt->wanted_back = interrupt->waiting;
    if (interrupt->waiting) return; /* handed over in this turn of the loop: in its next one, then */
    interrupt->handed_over = false;
    cy_err err = interrupt_open(runtime);
    if (!cy_failed(err) && runtime->loop) err = interrupt_watch(runtime);
    if (cy_failed(err)) { /* they end the process then: better than nothing that does */
        log_write(&runtime->log, LOG_WARN, "signals: %s", cy_err_text(err, false));
        interrupt_close(runtime);
    }
    signals_unblock(interrupt_signals, CY_COUNT_OF(interrupt_signals));
}

void interrupt_look(struct runtime *runtime)
{
    struct interrupt *interrupt = &runtime->interrupt;
    if (interrupt->turn_count++ % INTERRUPT_TURNS_PER_LOOK == 0) interrupt_take(runtime);
}
