/* SPDX-License-Identifier: MIT
 *
 * vm/native/interrupt.h: SIGINT and SIGTERM while a program runs that does not serve.
 */
#ifndef CY_NATIVE_INTERRUPT_H
#define CY_NATIVE_INTERRUPT_H

#include "vm/net/loop.h"

struct runtime;

struct interrupt {
    int descriptor; /* -1: the signals do what they do, or somebody else has them */
    int signal;     /* the one that came; 0: none */
    bool waiting;   /* `ready` is outstanding */
    bool handed_over;
    bool wanted_back; /* once `ready` is complete */
    uint32_t turn_count;
    struct loop_socket *socket;
    struct loop_ready ready;
};

void interrupt_init(struct interrupt *interrupt);
/* From here on the two signals cancel what runs. Before main starts, and before any thread exists. */
CY_NODISCARD cy_err interrupt_open(struct runtime *runtime);
/* The loop was made: a wait in it ends when a signal comes. */
CY_NODISCARD cy_err interrupt_watch(struct runtime *runtime);
/* Between turns of the VM while there is no loop. */
void interrupt_look(struct runtime *runtime);
/* Leaves the signals to a server or a master, which open their own: they are blocked until then. */
void interrupt_hand_over(struct runtime *runtime);
/* Whoever they were left to has closed its own: they cancel what runs again, also one that came meanwhile and was not
 * read. Does nothing unless they were handed over. */
void interrupt_take_back(struct runtime *runtime);
/* Nothing is left to cancel: the signals do what they do. */
void interrupt_close(struct runtime *runtime);

#endif
