/* SPDX-License-Identifier: MIT
 *
 * vm/net/master.c: starts workers, keeps them running, reloads, stops.
 *
 * In:   signals (from a descriptor), packets of workers, ends of children, the clock. Out: one decision at a time, in
 *       poll.
 *
 *     slot:   empty ──fork──► started ──READY──► ready ──end──► waiting (back-off) ──fork──► ...
 *                                └──end with 0──► finished
 *     reload: SIGHUP ──► load ──► check in a child ──0──► seal, number, send to all
 *                                          └── else ──► say why; the generation before stays
 *
 * Invariant: every pid in here was forked here and not yet reaped, so a signal sent to it cannot hit a stranger. The
 *       master's ends of channels never block: a worker that does not read cannot stop the others.
 * Not here:  packets (worker_link.c), listeners (master_listen.c).
 */
#include "vm/net/master.h"

#include "vm/base/check.h"
#include "vm/base/exit_code.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/master_internal.h"
#include "vm/sys/clock.h"
#include "vm/sys/file.h"
#include "vm/sys/output.h"
#include "vm/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MASTER_BACKOFF_FIRST_MS 100
#define MASTER_RETRY_MS 1000 /* until a message is offered again to a worker whose channel is full */

struct master_slot {
    pid_t pid;   /* 0: no process */
    int channel; /* -1: none */
    bool ready;
    bool finished; /* ended with 0 */
    bool stop_sent;
    bool replace; /* it cannot follow the others: stop it gracefully and start another one */
    bool reopen_wanted;
    uint32_t sent_number;    /* the newest generation it was sent */
    uint64_t resend_ms;      /* not before: it had no descriptor for that one */
    uint32_t starved_number; /* the generation that it had no descriptor for, as the log says; 0: none */
    uint64_t started_ms;
    uint64_t restart_ms; /* pid 0 and not finished: when to fork */
    uint64_t backoff_ms; /* the pause after the next early end */
};

struct master {
    const struct master_options *options;
    struct log *log;
    void (*log_put_before)(void *context, cy_bytes line); /* children get it back */
    void *log_context_before;
    uint64_t lost_log_lines; /* since it was told */
    int signals;
    struct master_slot *slots;
    struct pollfd *entries;
    struct master_listeners *listeners;
    int generation; /* sealed descriptor of the accepted one, -1: none yet */
    uint32_t generation_number;
    struct builder candidate; /* the bytes that `checker` looks at; keys lie in them */
    pid_t checker;
    uint64_t checker_end_ms; /* UINT64_MAX: its time was over, and it was told to end */
    struct builder wanted;   /* what checks of the candidate asked for */
    int wanted_file;         /* where the checker writes it; -1: none */
    uint32_t round_count;    /* checks of the candidate */
    bool reload_wanted;      /* SIGHUP came during a check */
    bool started;            /* the first generation was accepted, slots are in use */
    bool all_ready;
    struct builder banner;
    bool stopping;
    bool killed;
    uint64_t stop_asked_ms; /* when the first SIGTERM or SIGINT came; 0: none did */
    uint64_t drain_end_ms;
    uint32_t idle_ms;             /* what STOP tells */
    bool upgrade_told;            /* the log has why it failed; its process has not ended yet */
    bool hup_missed, usr1_missed; /* came while it was starting: it may have read files before that */
    pid_t successor;              /* a binary upgrade: the next master; 0: none */
    pid_t heir;            /* it serves, and we leave; never reaped here, so the number stays its own */
    int successor_channel; /* -1: none */
    uint64_t successor_end_ms;
    int predecessor; /* the channel to the master before this one, until we serve; -1: none */
    struct master_counters own_counters, *counters;
    int exit_code;
};

static uint64_t master_now_ms(void) { return clock_monotonic_ns() / 1000000u; }
static uint32_t master_slot_count(const struct master *master) { return master->options->worker_count; }

/* -- the log --------------------------------------------------------------------------------------------- */

/* Whoever reads it may stop reading. Workers must be started again all the same, and a master has no thread that could
 * wait in its place. */
static void master_log_put(void *context, cy_bytes line)
{
    struct master *master = context;
    char loss[96];
    if (master->lost_log_lines > 0) {
        int count =
            snprintf(loss, sizeof loss, OUTPUT_LOSS_FORMAT, (unsigned long long)master->lost_log_lines);
        if (output_try(master->log->descriptor, cy_bytes_of(loss, (size_t)count))) master->lost_log_lines = 0;
    }
    if (master->lost_log_lines > 0 || !output_try(master->log->descriptor, line)) master->lost_log_lines++;
}

/* -- opening and closing --------------------------------------------------------------------------------- */

static void master_close(struct master *master)
{
    master->log->put = master->log_put_before;
    master->log->context = master->log_context_before;
    for (uint32_t i = 0; master->slots && i < master_slot_count(master); i++)
        if (master->slots[i].channel >= 0) close(master->slots[i].channel);
    if (master->signals >= 0) close(master->signals);
    if (master->generation >= 0) close(master->generation);
    if (master->successor_channel >= 0) close(master->successor_channel);
    if (master->predecessor >= 0) close(master->predecessor);
    master_listeners_free(&master->listeners, false);
    if (master->wanted_file >= 0) close(master->wanted_file);
    builder_fini(&master->candidate);
    builder_fini(&master->wanted);
    builder_fini(&master->banner);
    mem_free(master->slots);
    mem_free(master->entries);
}

static cy_err master_open(struct master *master, const struct master_options *options)
{
    static const int signals[] = {SIGHUP, SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGCHLD};
    CHECK(options->worker_count >= 1 && options->worker_count <= LIMIT_WORKERS);
    *master = (struct master){.options = options,
                              .log = options->log,
                              .log_put_before = options->log->put,
                              .log_context_before = options->log->context,
                              .signals = -1,
                              .generation = -1,
                              .wanted_file = -1,
                              .successor_channel = -1,
                              .predecessor = -1};
    master->log->put = master_log_put;
    master->log->context = master;
    master->counters = options->counters ? options->counters : &master->own_counters;
    builder_init_secret(&master->candidate);
    builder_init(&master->wanted);
    builder_init(&master->banner);
    master->slots = mem_alloc_zeroed(options->worker_count * sizeof *master->slots);
    master->entries = mem_alloc_zeroed((options->worker_count + 2) * sizeof *master->entries);
    if (!master->slots || !master->entries) return CY_ERR(NO_MEMORY);
    for (uint32_t i = 0; i < options->worker_count; i++) master->slots[i].channel = -1;
    CY_TRY(master_listeners_new(options->worker_count, &master->listeners));
    CY_TRY(upgrade_take(master->listeners, &master->predecessor));
    return signals_open(signals, CY_COUNT_OF(signals), &master->signals);
}

/* -- stopping -------------------------------------------------------------------------------------------- */

static void master_kill_all(struct master *master)
{
    master->killed = true;
    for (uint32_t i = 0; i < master_slot_count(master); i++)
        if (master->slots[i].pid > 0) kill(master->slots[i].pid, SIGKILL);
    if (master->checker > 0) kill(master->checker, SIGKILL);
}

/* Forgets the successor, and ends it unless it has taken over. */
static void master_drop_successor(struct master *master, bool end)
{
    if (end && master->successor > 0) kill(master->successor, SIGKILL);
    if (master->successor_channel >= 0) close(master->successor_channel);
    master->successor_channel = -1;
    if (end) return;
    master->heir = master->successor;
    master->successor = 0;
}

static uint64_t master_check_ms(const struct master *master)
{
    return master->options->check_ms ? master->options->check_ms : LIMIT_GENERATION_CHECK_MS;
}

static uint64_t master_drain_ms(const struct master *master)
{
    return master->options->drain_ms ? master->options->drain_ms : LIMIT_WORKER_DRAIN_MS;
}

/* `replaced`: others serve the same addresses by now. */
static void master_stop_as(struct master *master, int exit_code, bool replaced)
{
    if (master->stopping) return;
    master->stopping = true;
    master->exit_code = exit_code;
    master->drain_end_ms = master_now_ms() + master_drain_ms(master);
    if (replaced) master->idle_ms = (uint32_t)cy_min_size(LIMIT_UPGRADE_IDLE_MS, master_drain_ms(master) / 2);
    master_drop_successor(master, !replaced);
    /* Workers close theirs; were ours still open, new clients would be let into a queue that nobody serves any more. */
    master_listeners_free(&master->listeners, !replaced);
    if (master->checker > 0) kill(master->checker, SIGKILL);
    for (uint32_t i = 0; i < master_slot_count(master); i++) {
        struct master_slot *slot = &master->slots[i];
        /* One that is not ready has no request to finish, and may not be reading its channel yet. */
        if (slot->pid > 0 && !slot->ready) kill(slot->pid, SIGKILL);
    }
}

static void master_stop(struct master *master, int exit_code) { master_stop_as(master, exit_code, false); }

static bool master_is_over(const struct master *master)
{
    bool finished = true;
    for (uint32_t i = 0; i < master_slot_count(master); i++) {
        if (master->slots[i].pid > 0) return false;
        if (!master->slots[i].finished) finished = false;
    }
    return master->checker == 0 && master->successor == 0 &&
           (master->stopping || (finished && master->started));
}

/* -- children -------------------------------------------------------------------------------------------- */

/* In a new child: nothing of the master's may be left that would keep a channel or a port open. */
static void master_become_child(struct master *master)
{
    master_close(master);
    signals_reset();
}

static cy_err master_drop_user(const struct master_options *options)
{
    if (!options->user || geteuid() != 0) return CY_OK;
    return process_drop_to(options->user);
}

/* True in the child. */
static bool master_start_worker(struct master *master, uint32_t index, struct master_result *result)
{
    struct master_slot *slot = &master->slots[index];
    slot->started_ms = master_now_ms();
    slot->restart_ms = slot->started_ms + LIMIT_WORKER_BACKOFF_MS; /* stands when the fork fails */
    int ours, theirs;
    cy_err err = channel_pair(&ours, &theirs);
    if (cy_failed(err)) {
        log_write(master->log, LOG_ERROR, "worker %u: no channel: %s", index, cy_err_text(err, false));
        return false;
    }
    fflush(NULL); /* what is buffered is written once, not by every child */
    pid_t pid = fork();
    if (pid == 0) {
        const struct master_options *options = master->options;
        close(ours);
        /* The master hears of Ctrl-C and the others and tells; a worker that died of it could not finish its
         * requests. Supervisors send SIGTERM to all of a service at once. First, while they are blocked. */
        static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
        for (size_t i = 0; i < CY_COUNT_OF(ignored); i++) signal(ignored[i], SIG_IGN);
        master_become_child(master);
        err = master_drop_user(options);
        if (cy_failed(err)) {
            log_write(options->log, LOG_ERROR, "cannot become user %s: %s", options->user,
                      cy_err_text(err, false));
            _exit(EXIT_CODE_CONFIGURATION);
        }
        if (cy_failed(worker_link_new(theirs, &result->link))) _exit(EXIT_CODE_INTERNAL);
        result->worker_index = index;
        return true;
    }
    close(theirs);
    if (pid < 0) {
        log_write(master->log, LOG_ERROR, "worker %u: cannot fork: %s", index,
                  cy_err_text(cy_err_from_errno(errno), false));
        close(ours);
        return false;
    }
    fcntl(ours, F_SETFL, O_NONBLOCK);
    slot->pid = pid;
    slot->channel = ours;
    slot->ready = slot->stop_sent = slot->replace = slot->reopen_wanted = false;
    slot->sent_number = 0;
    slot->resend_ms = 0;
    slot->starved_number = 0;
    return false;
}

/* In the checker: asks, and ends. */
static int master_check(const struct master_options *options, cy_bytes candidate, int wanted_file)
{
    struct builder wanted;
    builder_init(&wanted);
    int exit_code = options->check(options->context, candidate, &wanted);
    if (exit_code != MASTER_CHECK_WANTS) return exit_code;
    bool told = !wanted.failed && !cy_failed(file_write_all(wanted_file, builder_view(&wanted)));
    return told ? MASTER_CHECK_WANTS : EXIT_CODE_INTERNAL;
}

static void master_refuse(struct master *master, int exit_code, const char *why);

static void master_start_checker(struct master *master)
{
    fflush(NULL);
    pid_t parent = getpid();
    if (master->wanted_file >= 0) close(master->wanted_file);
    master->wanted_file = -1;
    cy_err opened = file_scratch("crownyc-wanted", &master->wanted_file);
    if (cy_failed(opened)) log_write(master->log, LOG_ERROR, "checker: %s", cy_err_text(opened, false));
    pid_t pid = fork();
    if (pid == 0) {
        const struct master_options *options = master->options;
        struct builder bytes = master->candidate; /* these outlive the rest */
        int wanted_file = master->wanted_file;
        builder_init(&master->candidate);
        master->wanted_file = -1;
        master_become_child(master);
        cy_err err = master_drop_user(options);
        if (cy_failed(err)) {
            log_write(options->log, LOG_ERROR, "cannot become user %s: %s", options->user,
                      cy_err_text(err, false));
            _exit(EXIT_CODE_CONFIGURATION);
        }
        process_die_with_parent(); /* after the change of user, which would undo it */
        if (getppid() != parent) _exit(EXIT_CODE_INTERNAL);
        int exit_code = master_check(options, builder_view(&bytes), wanted_file);
        fflush(NULL);
        _exit(exit_code);
    }
    if (pid < 0) {
        char why[128];
        snprintf(why, sizeof why, "cannot fork a checker: %s", cy_err_text(cy_err_from_errno(errno), false));
        if (!master->started) log_write(master->log, LOG_ERROR, "%s", why);
        master_refuse(master, EXIT_CODE_INTERNAL, why);
        return;
    }
    master->checker = pid;
    master->checker_end_ms = master_now_ms() + master_check_ms(master);
}

static void master_slot_ended(struct master *master, uint32_t index, int status)
{
    struct master_slot *slot = &master->slots[index];
    uint64_t now_ms = master_now_ms();
    bool was_ready = slot->ready;
    slot->pid = 0;
    slot->ready = false;
    if (slot->channel >= 0) close(slot->channel);
    slot->channel = -1;
    if (master->stopping) return;
    int exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (exit_code == 0 && !slot->replace) {
        slot->finished = true;
        return;
    }
    if (!master->all_ready && !was_ready && exit_code >= 1 && exit_code <= EXIT_CODE_CANNOT_LISTEN) {
        master_stop(master, exit_code); /* the worker has said why */
        return;
    }
    if (now_ms - slot->started_ms >= LIMIT_WORKER_BACKOFF_MS) slot->backoff_ms = 0;
    slot->restart_ms = now_ms + slot->backoff_ms;
    master->counters->workers_restarted++;
    if (WIFSIGNALED(status))
        log_write(master->log, LOG_ERROR, "worker %u was ended by signal %d; starting it again in %u ms",
                  index, WTERMSIG(status), (unsigned)slot->backoff_ms);
    else
        log_write(master->log, LOG_ERROR, "worker %u ended with exit code %d; starting it again in %u ms",
                  index, exit_code, (unsigned)slot->backoff_ms);
    uint64_t longer_ms = slot->backoff_ms ? slot->backoff_ms * 2 : MASTER_BACKOFF_FIRST_MS;
    slot->backoff_ms = longer_ms < LIMIT_WORKER_BACKOFF_MS ? longer_ms : LIMIT_WORKER_BACKOFF_MS;
}

/* -- generations ----------------------------------------------------------------------------------------- */

static void master_forget_candidate(struct master *master)
{
    builder_clear(&master->candidate);
    builder_clear(&master->wanted);
    master->round_count = 0;
}

static void master_refuse(struct master *master, int exit_code, const char *why)
{
    master_forget_candidate(master);
    if (!master->started) {
        master_stop(master, exit_code);
        return;
    }
    master->counters->reloads_refused++;
    log_write(master->log, LOG_ERROR, "reload refused: %s; generation %u stays", why,
              master->generation_number);
}

static void master_load(struct master *master)
{
    if (master->checker > 0) {
        master->reload_wanted = true;
        return;
    }
    master->reload_wanted = false;
    struct builder message;
    builder_init(&message);
    builder_clear(&master->candidate);
    cy_err err = master->options->load_generation(master->options->context, builder_view(&master->wanted),
                                                  &master->candidate, &message);
    if (!cy_failed(err)) err = builder_error(&master->candidate);
    if (!cy_failed(err)) {
        master_start_checker(master);
    } else {
        const char *why = message.count ? builder_text_view(&message) : NULL;
        if (!why) why = cy_err_text(err, false);
        if (!master->started) fprintf(stderr, "%s\n", why);
        master_refuse(master, EXIT_CODE_CONFIGURATION, why);
    }
    builder_fini(&message);
}

static void master_accept_generation(struct master *master)
{
    int descriptor;
    cy_err err = file_sealed("crownyc-generation", builder_view(&master->candidate), &descriptor);
    if (cy_failed(err)) {
        master_refuse(master, EXIT_CODE_INTERNAL, cy_err_text(err, false));
        return;
    }
    master_forget_candidate(master);
    if (master->generation >= 0) close(master->generation);
    master->generation = descriptor;
    master->generation_number++;
    if (master->started) master->counters->reloads++;
    if (master->started)
        log_write(master->log, LOG_INFO, "generation %u is accepted", master->generation_number);
    master->started = true; /* the loop now finds slots without a process, or with an older generation */
}

/* Loads the candidate again, with what its check asked for. False when that cannot help. */
static bool master_check_again(struct master *master)
{
    struct builder wanted;
    builder_init(&wanted);
    bool more = ++master->round_count < LIMIT_GENERATION_ROUNDS &&
                !cy_failed(file_read_descriptor(master->wanted_file, LIMIT_GENERATION_FILE_BYTES, &wanted)) &&
                wanted.count > 0;
    if (more) builder_bytes(&master->wanted, builder_view(&wanted));
    builder_fini(&wanted);
    if (more) master_load(master);
    return more;
}

static void master_checker_ended(struct master *master, int status)
{
    master->checker = 0;
    bool wants = !master->stopping && WIFEXITED(status) && WEXITSTATUS(status) == MASTER_CHECK_WANTS;
    bool again = wants && master_check_again(master);
    if (!again && master->wanted_file >= 0) {
        close(master->wanted_file);
        master->wanted_file = -1;
    }
    if (master->stopping || again) return;
    if (wants) {
        char why[80];
        snprintf(why, sizeof why, "its check asks for more files than in GENERATION_ROUNDS = %d",
                 LIMIT_GENERATION_ROUNDS);
        if (!master->started) fprintf(stderr, "%s\n", why);
        master_refuse(master, EXIT_CODE_CONFIGURATION, why);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        master_accept_generation(master);
    } else if (WIFEXITED(status)) {
        char why[64];
        snprintf(why, sizeof why, "the check ended with exit code %d", WEXITSTATUS(status));
        master_refuse(master, WEXITSTATUS(status), why);
    } else {
        char why[80];
        bool late = master->checker_end_ms == UINT64_MAX;
        if (late)
            snprintf(why, sizeof why, "the check took longer than %llu ms (GENERATION_CHECK_MS)",
                     (unsigned long long)master_check_ms(master));
        else
            snprintf(why, sizeof why, "the check was ended by signal %d", WTERMSIG(status));
        if (!master->started) fprintf(stderr, "%s\n", why);
        master_refuse(master, late ? EXIT_CODE_PROGRAM : EXIT_CODE_INTERNAL, why);
    }
    if (master->reload_wanted && !master->stopping) master_load(master);
}

/* -- the next binary ------------------------------------------------------------------------------------- */

/* The old one goes on. */
static void master_upgrade_failed(struct master *master, const char *why)
{
    master->counters->upgrades_failed++;
    log_write(master->log, LOG_ERROR, "upgrade failed: %s; this binary goes on", why);
    master_drop_successor(master, true); /* reaped later */
}

static void master_upgrade(struct master *master)
{
    if (!master->options->command) {
        log_write(master->log, LOG_WARN, "no upgrade: how this program was started is not known");
    } else if (master->successor > 0) {
        log_write(master->log, LOG_WARN, "no upgrade: one is on its way (process %d)",
                  (int)master->successor);
    } else if (!master->all_ready || master->stopping) {
        log_write(master->log, LOG_WARN, "no upgrade: this master is %s",
                  master->stopping ? "stopping" : "not serving yet");
    } else {
        cy_err err = upgrade_start(master->options->command, master->listeners, &master->successor,
                                   &master->successor_channel);
        if (cy_failed(err)) {
            master->successor = 0;
            master_upgrade_failed(master, cy_err_text(err, false));
            return;
        }
        master->successor_end_ms = master_now_ms() + LIMIT_UPGRADE_READY_MS;
        master->hup_missed = master->usr1_missed = false;
        log_write(master->log, LOG_INFO, "upgrade: process %d is starting", (int)master->successor);
    }
}

/* It serves, so it reads signals. What came to us after it had read its files is for it. */
static void master_pass_on(const struct master *master)
{
    if (master->hup_missed) kill(master->heir, SIGHUP);
    if (master->usr1_missed) kill(master->heir, SIGUSR1);
}

static void master_on_successor(struct master *master)
{
    struct master_packet packet;
    int descriptor;
    char text[128];
    cy_err err = master_packet_receive(master->successor_channel, &packet, &descriptor);
    if (descriptor >= 0) close(descriptor);
    if (cy_is(err, CY_ERR_SYSTEM) && (err.detail == EAGAIN || err.detail == EWOULDBLOCK)) return;
    bool serves = !cy_failed(err) && packet.kind == MASTER_PACKET_UPGRADED;
    if (serves && process_has_ended(master->successor)) return; /* nobody does: master_successor_ended */
    if (serves) {
        log_write(master->log, LOG_INFO, "upgrade: process %d serves; this one leaves",
                  (int)master->successor);
        master_stop_as(master, 0, true);
        master_pass_on(master);
        return;
    }
    if (!cy_failed(err) && packet.kind == MASTER_PACKET_UPGRADE_FAILED) err = packet.err;
    if (cy_is(err, CY_ERR_CLOSED)) { /* its end says more (SIGCHLD) */
        close(master->successor_channel);
        master->successor_channel = -1;
        return;
    }
    master->upgrade_told = true;
    master_upgrade_failed(master, cy_failed(err) ? cy_err_describe(err, false, text, sizeof text)
                                                 : "the new process sent nonsense");
}

/* Why, in its own words, if it said so before it ended. That it serves does not count any more. */
static bool master_successor_said(struct master *master, cy_err *err_out)
{
    struct master_packet packet;
    int descriptor;
    if (master->successor_channel < 0) return false;
    cy_err err = master_packet_receive(master->successor_channel, &packet, &descriptor);
    if (descriptor >= 0) close(descriptor);
    *err_out = packet.err;
    return !cy_failed(err) && packet.kind == MASTER_PACKET_UPGRADE_FAILED && cy_failed(packet.err);
}

/* It is reaped: its number may be a stranger's from here on. */
static void master_successor_ended(struct master *master, int status)
{
    char why[128];
    cy_err err;
    master->successor = 0;
    if (master_successor_said(master, &err))
        cy_err_describe(err, false, why, sizeof why);
    else if (WIFEXITED(status))
        snprintf(why, sizeof why, "the new process ended with exit code %d", WEXITSTATUS(status));
    else
        snprintf(why, sizeof why, "the new process was ended by signal %d", WTERMSIG(status));
    master_drop_successor(master, true);
    if (!master->stopping && !master->upgrade_told) master_upgrade_failed(master, why);
    master->upgrade_told = false;
}

/* To the master before this one: all of us serve. */
static void master_tell_predecessor(struct master *master)
{
    master_listeners_drop_unclaimed(master->listeners);
    if (master->predecessor < 0) return;
    cy_err err =
        master_packet_send(master->predecessor, MASTER_PACKET_UPGRADED, 0, CY_OK, NULL, CY_BYTES_NONE, -1);
    if (cy_failed(err))
        log_write(master->log, LOG_WARN, "the master before this one is gone: %s", cy_err_text(err, false));
    close(master->predecessor);
    master->predecessor = -1;
}

/* Only processes of ours are asked for: this library may live in a program that has other children. */
static void master_reap(struct master *master)
{
    int status;
    for (uint32_t i = 0; i < master_slot_count(master); i++)
        if (master->slots[i].pid > 0 &&
            waitpid(master->slots[i].pid, &status, WNOHANG) == master->slots[i].pid)
            master_slot_ended(master, i, status);
    if (master->checker > 0 && waitpid(master->checker, &status, WNOHANG) == master->checker)
        master_checker_ended(master, status);
    if (master->successor > 0 && waitpid(master->successor, &status, WNOHANG) == master->successor)
        master_successor_ended(master, status);
}

/* -- packets --------------------------------------------------------------------------------------------- */

/* False when the channel is full: the caller keeps what it wanted to say. */
static bool master_send(struct master_slot *slot, enum master_packet_kind kind, uint32_t number, cy_err cause,
                        const struct address *address, int descriptor)
{
    if (slot->channel < 0) return true;
    cy_err err = master_packet_send(slot->channel, kind, number, cause, address, CY_BYTES_NONE, descriptor);
    return !(cy_is(err, CY_ERR_SYSTEM) && (err.detail == EAGAIN || err.detail == EWOULDBLOCK));
}

static void master_on_ready(struct master *master, uint32_t index, cy_bytes banner)
{
    master->slots[index].ready = true;
    if (master->all_ready) return;
    if (index == 0) {
        builder_clear(&master->banner);
        builder_bytes(&master->banner, banner);
    }
    for (uint32_t i = 0; i < master_slot_count(master); i++)
        if (!master->slots[i].ready) return;
    master->all_ready = true;
    master_tell_predecessor(master);
    if (master->options->on_ready)
        master->options->on_ready(master->options->context, builder_view(&master->banner));
}

static void master_on_listen(struct master *master, uint32_t index, uint32_t number, cy_bytes text)
{
    int descriptor = -1;
    struct address address = {.bytes = 0};
    cy_err err = CY_ERR(CANCELLED); /* stopping: a worker that starts just now is ended anyway */
    /* The master may be root and its workers not: once all serve, a worker gets what was opened before, nothing new. */
    if (master->listeners && master->all_ready && !master_listeners_have(master->listeners, text))
        err = CY_ERR(PERMISSION);
    else if (master->listeners)
        err = master_listeners_get(master->listeners, index, number, text, &descriptor, &address);
    /* The worker waits for this answer and reads nothing else, so the channel has room. */
    if (!master_send(&master->slots[index], MASTER_PACKET_LISTENING, 0, err, &address,
                     cy_failed(err) ? -1 : descriptor))
        log_write(master->log, LOG_ERROR, "worker %u does not read its channel", index);
}

static void master_on_adopted(struct master *master, uint32_t index, uint32_t number)
{
    struct master_slot *slot = &master->slots[index];
    if (slot->starved_number == 0 || number < slot->starved_number) return;
    slot->starved_number = 0;
    log_write(master->log, LOG_INFO, "worker %u has taken generation %u now", index, number);
}

/* The checker accepted what this worker cannot take (it had no memory, say). Left alone it would serve an older
 * configuration than its siblings for ever; a fresh one starts from the newest. One that has no descriptor for it now,
 * because its clients have them all, will have one later. */
static void master_on_refused(struct master *master, uint32_t index, uint32_t number, cy_err cause)
{
    struct master_slot *slot = &master->slots[index];
    if (cy_is(cause, CY_ERR_TOO_MANY)) {
        /* It may last as long as its clients do: told once, and how often it was offered only to who debugs. */
        if (slot->starved_number != number)
            log_write_keyed(master->log, LOG_WARN, "a worker has no descriptor left for a generation",
                            "worker %u has no descriptor left for generation %u; it is offered again", index,
                            number);
        else
            log_write(master->log, LOG_DEBUG, "worker %u still has no descriptor for generation %u", index,
                      number);
        slot->starved_number = number;
        if (slot->sent_number == number) slot->sent_number = number - 1;
        slot->resend_ms = master_now_ms() + MASTER_RETRY_MS;
        return;
    }
    log_write(master->log, LOG_ERROR, "worker %u refused generation %u", index, number);
    if (number == master->generation_number) slot->replace = true;
}

/* False: the worker broke the protocol. */
static bool master_on_packet(struct master *master, uint32_t index, const struct master_packet *packet)
{
    cy_bytes text = cy_bytes_of(packet->text, packet->text_bytes);
    switch (packet->kind) {
    case MASTER_PACKET_LISTEN: master_on_listen(master, index, packet->number, text); return true;
    case MASTER_PACKET_READY: master_on_ready(master, index, text); return true;
    case MASTER_PACKET_ADOPTED:
        if (cy_failed(packet->err))
            master_on_refused(master, index, packet->number, packet->err);
        else
            master_on_adopted(master, index, packet->number);
        return true;
    case MASTER_PACKET_ECHO:
        (void)master_send(&master->slots[index], MASTER_PACKET_ECHO, 0, CY_OK, NULL, -1);
        return true;
    default: return false;
    }
}

static void master_receive(struct master *master, uint32_t index)
{
    struct master_slot *slot = &master->slots[index];
    for (int i = 0; i < 64 && slot->channel >= 0;
         i++) { /* a chatty worker gets its turn again after the others */
        struct master_packet packet;
        int descriptor;
        cy_err err = master_packet_receive(slot->channel, &packet, &descriptor);
        if (descriptor >= 0) close(descriptor); /* workers have none to give */
        if (cy_is(err, CY_ERR_SYSTEM) && (err.detail == EAGAIN || err.detail == EWOULDBLOCK)) return;
        if (!cy_failed(err) && master_on_packet(master, index, &packet)) continue;
        /* The end: the process follows (SIGCHLD). Anything else is a worker gone mad, and a fresh one is better. */
        if (!cy_is(err, CY_ERR_CLOSED)) {
            log_write(master->log, LOG_ERROR, "worker %u sent nonsense", index);
            if (slot->pid > 0) kill(slot->pid, SIGKILL);
        }
        close(slot->channel);
        slot->channel = -1;
        return;
    }
}

/* What each worker has still to be told. True when somebody's channel was full. */
static bool master_tell(struct master *master)
{
    bool full = false;
    for (uint32_t i = 0; i < master_slot_count(master); i++) {
        struct master_slot *slot = &master->slots[i];
        if (slot->channel < 0) continue;
        uint32_t number = master->generation_number;
        if ((slot->ready || slot->sent_number == 0) && slot->sent_number < number) {
            if (slot->resend_ms > master_now_ms())
                full = true;
            else if (master_send(slot, MASTER_PACKET_GENERATION, number, CY_OK, NULL, master->generation))
                slot->sent_number = number;
            else
                full = true;
        }
        if (!slot->ready) continue;
        if (slot->reopen_wanted)
            slot->reopen_wanted = !master_send(slot, MASTER_PACKET_REOPEN_LOGS, 0, CY_OK, NULL, -1);
        bool stop = master->stopping || slot->replace;
        if (stop && !slot->stop_sent)
            slot->stop_sent = master_send(slot, MASTER_PACKET_STOP, master->idle_ms, CY_OK, NULL, -1);
        if (slot->reopen_wanted || (stop && !slot->stop_sent)) full = true;
    }
    return full;
}

/* -- the loop -------------------------------------------------------------------------------------------- */

/* We stop already, for another reason (our successor serves, or a worker could not start), and what runs keeps its
 * time: a supervisor tells each process of the service once, and cannot know which of them leave. Nothing will come
 * from who is between two requests, so they need not be waited for any longer. */
static void master_stop_sooner(struct master *master)
{
    char heir[64] = "";
    if (master->heir > 0)
        snprintf(heir, sizeof heir, "; process %d, which took over, goes on", (int)master->heir);
    log_write(master->log, LOG_INFO, "told to stop: what runs is finished%s", heir);
    if (master->idle_ms == 0) return;
    master->idle_ms = 0;
    for (uint32_t i = 0; i < master_slot_count(master); i++)
        master->slots[i].stop_sent = false; /* once more */
}

/* SIGTERM, SIGINT. The first one is graceful, whatever we are doing; the second one is for who does not want to wait.
 */
static void master_on_stop(struct master *master)
{
    uint64_t now_ms = master_now_ms();
    if (master->stop_asked_ms == 0) {
        master->stop_asked_ms = now_ms;
        if (master->stopping)
            master_stop_sooner(master);
        else
            master_stop(master, 0);
    } else if (!master->killed && now_ms - master->stop_asked_ms >= SIGNALS_PAUSE_MS) {
        log_write(master->log, LOG_WARN, "told to stop while stopping: workers are ended without waiting%s",
                  master->heir > 0 ? "; the process that took over goes on" : "");
        master_kill_all(master);
    }
}

static void master_on_signal(struct master *master, int signal_number)
{
    bool is_order = signal_number == SIGHUP || signal_number == SIGUSR1 || signal_number == SIGUSR2;
    if (is_order && master->heir > 0) {
        kill(master->heir, signal_number); /* whoever sent it does not know of the new process yet */
        return;
    }
    switch (signal_number) {
    case SIGCHLD: break; /* the loop reaps after every wake-up */
    case SIGHUP:
        master->hup_missed = true;
        if (!master->stopping) master_load(master);
        break;
    case SIGUSR1:
        master->usr1_missed = true;
        for (uint32_t i = 0; i < master_slot_count(master); i++) master->slots[i].reopen_wanted = true;
        break;
    case SIGUSR2: master_upgrade(master); break;
    default: master_on_stop(master);
    }
}

/* True in a new worker. */
static bool master_start_due(struct master *master, struct master_result *result)
{
    if (!master->started || master->stopping) return false;
    uint64_t now_ms = master_now_ms();
    for (uint32_t i = 0; i < master_slot_count(master); i++) {
        struct master_slot *slot = &master->slots[i];
        if (slot->pid == 0 && !slot->finished && slot->restart_ms <= now_ms &&
            master_start_worker(master, i, result))
            return true;
    }
    return false;
}

static int master_timeout_ms(const struct master *master, bool retry)
{
    uint64_t now_ms = master_now_ms(), end_ms = retry ? now_ms + MASTER_RETRY_MS : UINT64_MAX;
    if (master->stopping && !master->killed && master->drain_end_ms < end_ms) end_ms = master->drain_end_ms;
    if (master->successor > 0 && !master->stopping && master->successor_end_ms < end_ms)
        end_ms = master->successor_end_ms;
    if (master->checker > 0 && master->checker_end_ms < end_ms) end_ms = master->checker_end_ms;
    for (uint32_t i = 0; master->started && !master->stopping && i < master_slot_count(master); i++) {
        const struct master_slot *slot = &master->slots[i];
        if (slot->pid == 0 && !slot->finished && slot->restart_ms < end_ms) end_ms = slot->restart_ms;
    }
    if (end_ms == UINT64_MAX) return -1;
    return end_ms <= now_ms ? 0 : (int)cy_min_size(end_ms - now_ms, INT32_MAX);
}

static void master_wait(struct master *master, bool retry)
{
    uint32_t count = master_slot_count(master);
    for (uint32_t i = 0; i < count; i++)
        master->entries[i] =
            (struct pollfd){.fd = master->slots[i].channel, .events = POLLIN}; /* -1 is skipped */
    master->entries[count] = (struct pollfd){.fd = master->signals, .events = POLLIN};
    master->entries[count + 1] = (struct pollfd){.fd = master->successor_channel, .events = POLLIN};
    if (poll(master->entries, count + 2, master_timeout_ms(master, retry)) < 0)
        return; /* EINTR: look again */
    /* Packets before ends: what a worker said before it died counts. */
    for (uint32_t i = 0; i < count; i++)
        if (master->entries[i].revents && master->slots[i].channel >= 0) master_receive(master, i);
    if (master->entries[count + 1].revents && master->successor_channel >= 0) master_on_successor(master);
    for (int number; (number = signals_next(master->signals)) != 0;) master_on_signal(master, number);
    master_reap(master);
    if (master->stopping && !master->killed && master_now_ms() >= master->drain_end_ms) {
        log_write(master->log, LOG_WARN, "workers did not finish in time; ending them");
        master_kill_all(master);
    }
    if (master->checker > 0 && master_now_ms() >= master->checker_end_ms) {
        master->checker_end_ms = UINT64_MAX;
        kill(master->checker, SIGKILL); /* its end says why: master_checker_ended */
    }
    if (master->successor > 0 && !master->stopping && master_now_ms() >= master->successor_end_ms) {
        master->upgrade_told = true;
        master->successor_end_ms = UINT64_MAX; /* told once */
        master_upgrade_failed(master, "the new process did not serve in time");
    }
}

enum master_role master_run(const struct master_options *options, struct master_result *result_out)
{
    struct master master;
    *result_out = (struct master_result){0};
    cy_err err = master_open(&master, options);
    if (cy_failed(err)) {
        log_write(options->log, LOG_ERROR, "the master cannot start: %s", cy_err_text(err, false));
        master_close(&master);
        result_out->exit_code = EXIT_CODE_INTERNAL;
        return MASTER_ENDED;
    }
    if (master.predecessor >= 0)
        log_write(master.log, LOG_INFO, "taking over from process %d", (int)getppid());
    master_load(&master);
    while (!master_is_over(&master)) {
        if (master_start_due(&master, result_out)) return MASTER_WORKER;
        bool full = master_tell(&master);
        master_wait(&master, full);
    }
    result_out->exit_code = master.exit_code;
    master_close(&master);
    return MASTER_ENDED;
}

#undef MASTER_BACKOFF_FIRST_MS
#undef MASTER_RETRY_MS
