/* SPDX-License-Identifier: MIT
 *
 * vm/native/input.h: standard input, read by process.read_line and process.read_all.
 */
#ifndef CY_NATIVE_INPUT_H
#define CY_NATIVE_INPUT_H

#include "vm/base/builder.h"
#include "vm/net/loop.h"
#include "vm/run/native_call.h"

struct runtime;

struct input {
    struct loop_socket *socket; /* NULL: not waited for yet, or a file, which the loop cannot wait for */
    struct loop_ready ready;
    struct builder buffer;
    size_t start;            /* what stands before it was given */
    size_t scanned;          /* no line ends before it */
    struct memory_hold hold; /* the buffer, as the VM's */
    wait_ticket ticket;
    bool whole;   /* the waiting call wants all, else a line */
    bool waiting; /* a task */
    bool pending; /* the loop has `ready` */
    bool ended;
};

void input_init(struct input *input);
/* Before the loop goes: lets go of the descriptor, which stays open. */
void input_close(struct runtime *runtime);
void input_fini(struct runtime *runtime);

#endif
