/* SPDX-License-Identifier: MIT
 *
 * vm/sys/spawn.c: see spawn.h.
 *
 * posix_spawn and not fork: it does not copy the page tables of a large server, and nothing of ours runs in the child.
 * The end is seen on a descriptor: pidfd on Linux, a kqueue on BSD and macOS. SIGCHLD would be the process's, and a
 * library may use it.
 *
 * Invariant: as long as `pid` is not 0 the process is ours and not reaped, so its number and its group's are nobody
 * else's.
 */
#include "vm/sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#else
#include <sys/event.h>
#endif

extern char **environ;

/* Two ends, both close-on-exec; ours is non-blocking. */
static cy_err spawn_pipe(int ends[2], int ours)
{
    if (pipe(ends) != 0) return cy_err_from_errno(errno);
    for (int i = 0; i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        /* The child's ends must not be 0, 1 or 2: dup2 onto itself would leave them close-on-exec. */
        if (i == ours || ends[i] > STDERR_FILENO) continue;
        int higher = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (higher < 0) return cy_err_from_errno(errno);
        close(ends[i]);
        ends[i] = higher;
    }
    fcntl(ends[ours], F_SETFL, O_NONBLOCK);
    return CY_OK;
}

void spawn_close(int *descriptor)
{
    if (*descriptor >= 0) close(*descriptor);
    *descriptor = -1;
}

static cy_err spawn_watch(pid_t pid, int *descriptor_out)
{
#ifdef __linux__
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (descriptor < 0) return cy_err_from_errno(errno);
#else
    int descriptor = kqueue();
    if (descriptor < 0) return cy_err_from_errno(errno);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    struct kevent change;
    EV_SET(&change, pid, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, NULL);
    if (kevent(descriptor, &change, 1, NULL, 0, NULL) != 0) {
        cy_err err = cy_err_from_errno(errno);
        close(descriptor);
        return err;
    }
#endif
    *descriptor_out = descriptor;
    return CY_OK;
}

static int spawn_run(char *const *arguments, char *const *environment, const char *folder,
                     const int theirs[3], pid_t *pid_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t signals;
    int result = posix_spawn_file_actions_init(&actions);
    if (result != 0) return result;
    result = posix_spawnattr_init(&attributes);
    if (result != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return result;
    }
    for (int i = 0; i < 3 && result == 0; i++)
        result = posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    if (result == 0 && folder) result = posix_spawn_file_actions_addchdir_np(&actions, folder);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    /* All of ours are close-on-exec, but not what we were handed ourselves and have not looked at. */
    if (result == 0) result = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    sigdelset(&signals, SIGKILL);
    sigdelset(&signals, SIGSTOP);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (result == 0)
        result = posix_spawnp(pid_out, arguments[0], &actions, &attributes, arguments,
                              environment ? environment : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

cy_err spawn_start(char *const *arguments, char *const *environment, const char *folder,
                   struct spawned *spawned)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    static const int ours[3] = {1, 0, 0}; /* which end of each we keep */
    cy_err err = CY_OK;
    *spawned = (struct spawned){.ended = -1, .input = -1, .output = -1, .messages = -1};
    for (int i = 0; i < 3 && !cy_failed(err); i++) err = spawn_pipe(pipes[i], ours[i]);
    if (!cy_failed(err)) {
        const int theirs[3] = {pipes[0][0], pipes[1][1], pipes[2][1]};
        int result = spawn_run(arguments, environment, folder, theirs, &spawned->pid);
        err = cy_err_from_errno(result);
        if (result != 0) spawned->pid = 0;
    }
    for (int i = 0; i < 3; i++) spawn_close(&pipes[i][!ours[i]]);
    spawned->input = pipes[0][1];
    spawned->output = pipes[1][0];
    spawned->messages = pipes[2][0];
    if (!cy_failed(err)) err = spawn_watch(spawned->pid, &spawned->ended);
    /* Without a descriptor nothing tells its end: it stays a zombie until we end. */
    if (cy_failed(err)) spawn_end(spawned);
    return err;
}

static int spawn_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool spawn_reap(struct spawned *spawned, int *code_out)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(spawned->pid, &status, WNOHANG)) < 0 && errno == EINTR) {}
    if (pid == 0) return false;
    /* Somebody else reaped it (SIGCHLD ignored by who started us): its code is lost. */
    *code_out = pid < 0 ? 255 : spawn_code(status);
    spawned->pid = 0;
    return true;
}

bool spawn_end(struct spawned *spawned)
{
    int code;
    spawn_close(&spawned->input);
    spawn_close(&spawned->output);
    spawn_close(&spawned->messages);
    if (spawned->pid > 0) {
        kill(-spawned->pid, SIGKILL);
        kill(spawned->pid, SIGKILL);
        return spawn_reap(spawned, &code);
    }
    return true;
}
