/* SPDX-License-Identifier: MIT
 *
 * vm/net/master_upgrade.c: from one binary to the next without a listener being closed in between.
 *
 *   old master ──fork──► exec argv[0] ──► new master: upgrade_take ──► workers ──all ready──► UPGRADED
 *        │                  └ cannot: UPGRADE_FAILED                                             │
 *        └──────────────────────── its workers drain, it leaves ◄────────────────────────────────┘
 *
 * What is handed over: descriptors that stay open over exec, and CROWNYC_UPGRADE=N in the environment, where N is a
 * sealed file (upgrade_take reads it and takes both away):
 *
 *     crownyc-upgrade 1
 *     master PID                          who wrote it: must be the reader's parent
 *     channel FD                          a SOCK_SEQPACKET to the old master
 *     listen FD POSITION ADDRESS          a listening socket, where it stands (master_listen.c), and the address's text
 *
 * Both masters' workers accept from the same sockets for a while: a client that waits in a queue is served by whoever
 * comes first, and no queue is ever without somebody who serves it.
 *
 * Invariant: nothing of this file is believed before it is checked: another program that sets the variable can make us
 *       refuse to start, not more.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/master_internal.h"
#include "vm/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define UPGRADE_VARIABLE "CROWNYC_UPGRADE"
#define UPGRADE_MAGIC "crownyc-upgrade 1"
#define UPGRADE_EXIT_CODE 127 /* as a shell has it for what cannot be started */

/* -- giving ---------------------------------------------------------------------------------------------- */

static void upgrade_write_listener(void *context, uint32_t position, cy_bytes text, int descriptor)
{
    builder_printf(context, "listen %d %u %.*s\n", descriptor, position, CY_BYTES_ARG(text));
}

static void upgrade_keep_open(void *context, uint32_t position, cy_bytes text, int descriptor)
{
    (void)context;
    (void)position;
    (void)text;
    fcntl(descriptor, F_SETFD, 0);
}

/* In the child. Errors of the system calls here would be seen by the next master, which then refuses to start. */
static CY_NORETURN void upgrade_become(const char *const *command, const struct master_listeners *listeners,
                                       int state, int channel)
{
    char number[16];
    snprintf(number, sizeof number, "%d", state);
    signals_reset();
    fcntl(state, F_SETFD, 0);
    fcntl(channel, F_SETFD, 0);
    master_listeners_each(listeners, upgrade_keep_open, NULL);
    setenv(UPGRADE_VARIABLE, number, 1);
    execvp(command[0], (char *const *)(uintptr_t)command);
    cy_err err = master_packet_send(channel, MASTER_PACKET_UPGRADE_FAILED, 0, cy_err_from_errno(errno), NULL,
                                    CY_BYTES_NONE, -1);
    (void)err;
    _exit(UPGRADE_EXIT_CODE);
}

cy_err upgrade_start(const char *const *command, const struct master_listeners *listeners, pid_t *pid_out,
                     int *channel_out)
{
    int ours, theirs, state = -1;
    CY_TRY(channel_pair(&ours, &theirs));
    struct builder text;
    builder_init(&text);
    builder_printf(&text, UPGRADE_MAGIC "\nmaster %d\nchannel %d\n", (int)getpid(), theirs);
    master_listeners_each(listeners, upgrade_write_listener, &text);
    cy_err err = builder_error(&text);
    if (!cy_failed(err)) err = file_sealed("crownyc-upgrade", builder_view(&text), &state);
    builder_fini(&text);
    if (!cy_failed(err)) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0) upgrade_become(command, listeners, state, theirs);
        if (pid < 0) err = cy_err_from_errno(errno);
        *pid_out = pid;
        *channel_out = ours;
        close(state);
    }
    close(theirs);
    if (cy_failed(err))
        close(ours);
    else
        fcntl(ours, F_SETFL, O_NONBLOCK);
    return err;
}

/* -- taking ---------------------------------------------------------------------------------------------- */

/* The next word of a line, and the rest of it behind one space. */
static bool upgrade_number(cy_bytes *line, uint64_t most, uint64_t *number_out)
{
    size_t space = cy_bytes_find(*line, ' ');
    if (!cy_bytes_parse_u64(cy_bytes_slice(*line, 0, space), most, number_out)) return false;
    *line = space < line->count ? cy_bytes_skip(*line, space + 1) : CY_BYTES_NONE;
    return true;
}

static bool upgrade_keyword(cy_bytes *line, cy_bytes keyword)
{
    if (!cy_bytes_start_with(*line, keyword)) return false;
    *line = cy_bytes_skip(*line, keyword.count);
    return true;
}

static bool upgrade_is_channel(int descriptor)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
           (type == SOCK_SEQPACKET || type == SOCK_DGRAM);
}

static cy_err upgrade_take_line(struct master_listeners *listeners, uint32_t row, cy_bytes line,
                                int *channel_out)
{
    uint64_t number, position;
    cy_err bad = CY_ERR(BAD_FORMAT);
    if (row == 0) return cy_bytes_equal(line, CY_BYTES(UPGRADE_MAGIC)) ? CY_OK : bad;
    if (row == 1) {
        bool ours = upgrade_keyword(&line, CY_BYTES("master ")) &&
                    upgrade_number(&line, INT32_MAX, &number) && (pid_t)number == getppid();
        return ours ? CY_OK : bad;
    }
    if (row == 2) {
        if (!upgrade_keyword(&line, CY_BYTES("channel ")) || !upgrade_number(&line, INT32_MAX, &number) ||
            !upgrade_is_channel((int)number))
            return bad;
        fcntl((int)number, F_SETFD, FD_CLOEXEC);
        *channel_out = (int)number;
        return CY_OK;
    }
    if (!upgrade_keyword(&line, CY_BYTES("listen ")) || !upgrade_number(&line, INT32_MAX, &number) ||
        !upgrade_number(&line, LIMIT_WORKERS - 1, &position))
        return bad;
    CY_TRY(master_listeners_adopt(listeners, (uint32_t)position, line, (int)number));
    fcntl((int)number, F_SETFD, FD_CLOEXEC);
    return CY_OK;
}

static cy_err upgrade_take_state(struct master_listeners *listeners, cy_bytes text, int *channel_out)
{
    uint32_t row = 0;
    for (; text.count > 0; row++) {
        size_t end = cy_bytes_find(text, '\n');
        if (end == text.count) return CY_ERR(BAD_FORMAT);
        CY_TRY(upgrade_take_line(listeners, row, cy_bytes_slice(text, 0, end), channel_out));
        text = cy_bytes_skip(text, end + 1);
    }
    return row >= 3 ? CY_OK : CY_ERR(BAD_FORMAT);
}

cy_err upgrade_take(struct master_listeners *listeners, int *channel_out)
{
    *channel_out = -1;
    const char *word = getenv(UPGRADE_VARIABLE);
    if (!word) return CY_OK;
    uint64_t number;
    bool good = cy_bytes_parse_u64(cy_bytes_from_text(word), INT32_MAX, &number);
    unsetenv(UPGRADE_VARIABLE); /* what we start is no successor */
    if (!good) return CY_ERR(BAD_FORMAT);
    struct builder text;
    builder_init(&text);
    cy_err err = file_read_descriptor((int)number, LIMIT_UPGRADE_BYTES, &text);
    if (!cy_failed(err)) {
        close((int)number);
        err = upgrade_take_state(listeners, builder_view(&text), channel_out);
    }
    builder_fini(&text);
    return err;
}

#undef UPGRADE_VARIABLE
#undef UPGRADE_MAGIC
#undef UPGRADE_EXIT_CODE
