/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/master_test.c: proves, with real processes on loopback: a killed worker is replaced and serves
 * the same port; a port in use is seen; reloads are checked, adopted or refused with the old generation staying;
 * stops are graceful and bounded; a mistake at the start ends everything with its exit code; and workers notice
 * when the master dies.
 *
 * The test talks to a master in a child process: its log and banner come through pipes, its workers answer over
 * TCP with "<index> <pid> <generation text>". Nothing sleeps: every wait is for a line, a connection or an end.
 */
#include "vm/base/limits.h"
#include "vm/net/loop.h"
#include "vm/net/master.h"
#include "vm/sys/file.h"
#include "vm/sys/process.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MASTER_TEST_NOBODY = 65534 };

struct master_world {
    /* what the master's child is to do */
    uint32_t worker_count;
    uint64_t drain_ms, check_ms;
    bool unprivileged; /* the master is nobody, whom limits of processes bind */
    char listen[64];
    char generation_path[64];
    bool stuck;       /* workers ignore STOP */
    int gate_write;   /* the test's */
    int gate;         /* above 0: workers that stop say "stopping", read this until its end, and say "done" */
    bool end_at_once; /* workers end with 0 */
    /* what the test sees */
    pid_t master;
    int log;    /* read end */
    int banner; /* read end: "address\n" once all are ready; every process of the world holds the write end */
    int banner_write;
    struct address address;
};

/* -- inside the master and its workers ------------------------------------------------------------ */

static cy_err master_test_load(void *context, cy_bytes wanted, struct builder *bytes_out,
                               struct builder *message_out)
{
    struct master_world *world = context;
    cy_err err = file_read(world->generation_path, 1000, bytes_out);
    builder_bytes(bytes_out, wanted);
    if (world->unprivileged) {
        /* "alone": there may be one process of this user's, and it and its workers are three. */
        struct rlimit processes;
        if (getrlimit(RLIMIT_NPROC, &processes) != 0) return CY_ERR(SYSTEM);
        processes.rlim_cur =
            cy_bytes_start_with(builder_view(bytes_out), CY_BYTES("alone")) ? 1 : processes.rlim_max;
        if (setrlimit(RLIMIT_NPROC, &processes) != 0) return CY_ERR(SYSTEM);
    }
    if (cy_failed(err)) builder_printf(message_out, "cannot read the generation");
    return err;
}
static int master_test_check(void *context, cy_bytes generation, struct builder *wanted_out)
{
    const struct master_world *world = context;
    if (cy_bytes_start_with(generation, CY_BYTES("hang"))) {
        dprintf(world->banner_write, "checking\n");
        for (;;) pause();
    }
    /* "ask 3": wants more three times. */
    if (cy_bytes_start_with(generation, CY_BYTES("ask "))) {
        size_t asked = generation.count - cy_bytes_find(generation, '+');
        if (asked < (size_t)(generation.data[4] - '0')) {
            builder_u8(wanted_out, '+');
            return MASTER_CHECK_WANTS;
        }
    }
    return cy_bytes_start_with(generation, CY_BYTES("bad")) ? 4 : 0;
}
static void master_test_on_ready(void *context, cy_bytes banner)
{
    struct master_world *world = context;
    cy_err err = file_write_all(world->banner_write, banner);
    (void)err;
}

struct master_test_worker {
    struct master_world *world;
    struct worker_link *link;
    struct builder generation;
    bool stop;
};
static void master_test_stop_slowly(const struct master_world *world)
{
    char byte;
    dprintf(world->banner_write, "stopping\n");
    while (read(world->gate, &byte, 1) != 0) {}
    dprintf(world->banner_write, "done\n");
}
static void master_test_on_message(void *context, const struct worker_message *message)
{
    struct master_test_worker *worker = context;
    switch (message->kind) {
    case WORKER_MESSAGE_GENERATION: {
        bool adopt = !cy_bytes_start_with(message->generation, CY_BYTES("picky"));
        if (adopt) {
            builder_clear(&worker->generation);
            builder_bytes(&worker->generation, message->generation);
        }
        worker_adopted(worker->link, message->generation_number, adopt);
        break;
    }
    case WORKER_MESSAGE_STOP:
        worker->stop = !worker->world->stuck;
        if (worker->world->gate > 0) master_test_stop_slowly(worker->world);
        break;
    case WORKER_MESSAGE_MASTER_GONE: worker->stop = true; break;
    case WORKER_MESSAGE_REOPEN_LOGS: {
        cy_err err = file_write_all(worker->world->banner_write, CY_BYTES("reopened\n"));
        (void)err;
        break;
    }
    }
}
static void master_test_serve(struct master_test_worker *worker, uint32_t index, int listener)
{
    while (!worker->stop) {
        struct pollfd entries[2] = {{.fd = worker_link_descriptor(worker->link), .events = POLLIN},
                                    {.fd = listener, .events = POLLIN}};
        if (poll(entries, 2, -1) < 0) continue;
        if (entries[0].revents && !worker_link_receive(worker->link, master_test_on_message, worker)) break;
        int connection = entries[1].revents ? accept(listener, NULL, NULL) : -1;
        if (connection < 0) continue;
        dprintf(connection, "%u %d %.*s\n", index, (int)getpid(),
                CY_BYTES_ARG(builder_view(&worker->generation)));
        close(connection);
    }
}
static CY_NORETURN void master_test_work(struct master_world *world, const struct master_result *result)
{
    struct master_test_worker worker = {.world = world, .link = result->link};
    builder_init_secret(&worker.generation);
    if (world->end_at_once) _exit(0);
    uint32_t number;
    if (cy_failed(worker_generation(worker.link, &number, &worker.generation)) || number == 0) _exit(70);
    int listener;
    struct address address;
    cy_err err = worker_listen(worker.link, cy_bytes_from_text(world->listen), 0, &listener, &address);
    if (cy_failed(err)) _exit(cy_is(err, CY_ERR_ADDRESS_IN_USE) ? 5 : 2);
    struct builder banner;
    builder_init(&banner);
    address_format(&address, true, &banner);
    builder_u8(&banner, '\n');
    worker_ready(worker.link, builder_view(&banner));
    master_test_serve(&worker, result->worker_index, listener);
    _exit(0);
}

/* -- outside -------------------------------------------------------------------------------------- */

static void master_test_write_generation(const struct master_world *world, const char *text)
{
    ck_assert(!cy_failed(file_write(world->generation_path, cy_bytes_from_text(text))));
}

static void master_test_prepare(struct master_world *world)
{
    *world = (struct master_world){.worker_count = 2};
    snprintf(world->listen, sizeof world->listen, "127.0.0.1:0");
    snprintf(world->generation_path, sizeof world->generation_path, "/tmp/crownyc-master-test.XXXXXX");
    int descriptor = mkstemp(world->generation_path);
    ck_assert_int_ge(descriptor, 0);
    close(descriptor);
    master_test_write_generation(world, "one");
}

static void master_test_start(struct master_world *world)
{
    int log_ends[2], banner_ends[2];
    ck_assert_int_eq(pipe(log_ends), 0);
    ck_assert_int_eq(pipe(banner_ends), 0);
    world->banner_write = banner_ends[1];
    world->master = fork();
    ck_assert_int_ge(world->master, 0);
    if (world->master == 0) {
        close(log_ends[0]);
        close(banner_ends[0]);
        if (world->gate_write > 0) close(world->gate_write);
        dup2(log_ends[1], STDERR_FILENO);
        if (world->unprivileged && geteuid() == 0 && setuid(MASTER_TEST_NOBODY) != 0) _exit(70);
        struct log log;
        log_init(&log);
        log.level_min = LOG_DEBUG;
        struct master_options options = {.worker_count = world->worker_count,
                                         .log = &log,
                                         .context = world,
                                         .drain_ms = world->drain_ms,
                                         .check_ms = world->check_ms,
                                         .load_generation = master_test_load,
                                         .check = master_test_check,
                                         .on_ready = master_test_on_ready};
        struct master_result result;
        if (master_run(&options, &result) == MASTER_WORKER) master_test_work(world, &result);
        _exit(result.exit_code);
    }
    close(log_ends[1]);
    close(banner_ends[1]);
    world->log = log_ends[0];
    world->banner = banner_ends[0];
}

/* Reads a line; false at the end. The test's own time-out bounds the wait. */
static bool master_test_line(int descriptor, char *line, size_t room)
{
    size_t count = 0;
    while (count + 1 < room) {
        ssize_t got = read(descriptor, line + count, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        if (line[count] == '\n') break;
        count++;
    }
    line[count] = 0;
    return true;
}
static void master_test_await_log(const struct master_world *world, const char *part)
{
    char line[1024];
    do ck_assert_msg(master_test_line(world->log, line, sizeof line), "the log ended before: %s", part);
    while (!strstr(line, part));
}
static void master_test_await_ready(struct master_world *world)
{
    char line[128];
    ck_assert(master_test_line(world->banner, line, sizeof line));
    ck_assert(!cy_failed(address_from_text(cy_bytes_from_text(line), &world->address)));
    ck_assert_uint_ne(address_port(&world->address), 0);
}
/* One of each worker. */
static void master_test_expect_lines(const struct master_world *world, const char *wanted)
{
    char line[128];
    for (uint32_t i = 0; i < world->worker_count; i++) {
        ck_assert(master_test_line(world->banner, line, sizeof line));
        ck_assert_str_eq(line, wanted);
    }
}
static int master_test_exit_code(const struct master_world *world)
{
    int status;
    ck_assert_int_eq(waitpid(world->master, &status, 0), world->master);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}
/* All processes are gone: each of them held the banner's write end. */
static void master_test_await_all_gone(struct master_world *world)
{
    char line[128];
    while (master_test_line(world->banner, line, sizeof line)) {}
    close(world->banner);
    close(world->log);
    unlink(world->generation_path);
}
static int master_test_stop(struct master_world *world)
{
    kill(world->master, SIGTERM);
    int exit_code = master_test_exit_code(world);
    master_test_await_all_gone(world);
    return exit_code;
}

struct master_answer {
    unsigned index;
    int pid;
    char text[64];
};
/* One question. False when the connection broke: its worker died. */
static bool master_test_ask(const struct master_world *world, struct master_answer *answer)
{
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    char line[128];
    bool answered =
        connect(connection, (const struct sockaddr *)&world->address.storage, world->address.bytes) == 0 &&
        master_test_line(connection, line, sizeof line) &&
        sscanf(line, "%u %d %63[^\n]", &answer->index, &answer->pid, answer->text) == 3;
    close(connection);
    return answered;
}
/* Asks until worker `index` answers: the kernel spreads connections over the workers' listeners. */
static void master_test_ask_worker(const struct master_world *world, unsigned index,
                                   struct master_answer *answer)
{
    for (;;) /* the test's time-out bounds it */
        if (master_test_ask(world, answer) && answer->index == index) return;
}

/* -- the tests ------------------------------------------------------------------------------------ */

START_TEST(test_killed_worker_is_replaced)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    struct master_answer zero, one, after;
    master_test_ask_worker(&world, 0, &zero);
    master_test_ask_worker(&world, 1, &one);
    ck_assert_int_ne(zero.pid, one.pid);
    ck_assert_str_eq(zero.text, "one");
    kill(one.pid, SIGKILL);
    master_test_await_log(&world, "worker 1 was ended by signal 9");
    /* Its listener stayed open in the master, so connections that came to it meanwhile were not refused. */
    for (int i = 0; i < 20; i++) ck_assert(master_test_ask(&world, &after));
    master_test_ask_worker(&world, 1, &after);
    ck_assert_int_ne(after.pid, one.pid);
    ck_assert_str_eq(after.text, "one"); /* from the last accepted generation */
    master_test_ask_worker(&world, 0, &after);
    ck_assert_int_eq(after.pid, zero.pid); /* the other one never noticed */
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

/* Makes the pipe of the log full, as for a reader that stopped. */
static void master_test_fill_log(const struct master_world *world)
{
    char path[64], filler[4096];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)world->master, STDERR_FILENO);
    int full = open(path, O_WRONLY | O_NONBLOCK);
    ck_assert_int_ge(full, 0);
    memset(filler, '.', sizeof filler);
    while (write(full, filler, sizeof filler) > 0) {}
    while (write(full, "\n", 1) > 0) {}
    close(full);
}

/* Nobody reads the log: workers are replaced, a reload is taken; and the loss is told when somebody reads again. */
START_TEST(test_a_log_that_nobody_reads_stops_no_master)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    struct master_answer before, after;
    master_test_ask_worker(&world, 1, &before);
    master_test_fill_log(&world);
    kill(before.pid, SIGKILL);
    do master_test_ask_worker(&world, 1, &after);
    while (after.pid == before.pid);
    master_test_write_generation(&world, "two");
    kill(world.master, SIGHUP);
    do master_test_ask_worker(&world, 0, &after);
    while (strcmp(after.text, "two") != 0);
    char filler[65536];
    ck_assert_int_gt(read(world.log, filler, sizeof filler), 0);
    kill(world.master, SIGUSR2); /* says something */
    master_test_await_log(&world, "lines were dropped here");
    master_test_await_log(&world, "no upgrade");
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

START_TEST(test_worker_that_keeps_dying_is_started_with_pauses)
{
    struct master_world world;
    master_test_prepare(&world);
    world.worker_count = 1;
    master_test_start(&world);
    master_test_await_ready(&world);
    static const char *const pauses[] = {"again in 0 ms", "again in 100 ms", "again in 200 ms"};
    for (size_t i = 0; i < CY_COUNT_OF(pauses); i++) {
        struct master_answer answer;
        master_test_ask_worker(&world, 0, &answer);
        kill(answer.pid, SIGKILL);
        master_test_await_log(&world, pauses[i]);
    }
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

START_TEST(test_port_in_use_is_seen)
{
    struct master_world first, second;
    master_test_prepare(&first);
    master_test_start(&first);
    master_test_await_ready(&first);
    master_test_prepare(&second);
    snprintf(second.listen, sizeof second.listen, "127.0.0.1:%u", address_port(&first.address));
    master_test_start(&second);
    ck_assert_int_eq(master_test_exit_code(&second), 5); /* though the first one's listeners allow sharing */
    master_test_await_all_gone(&second);
    struct master_answer answer;
    ck_assert(master_test_ask(&first, &answer));
    ck_assert_int_eq(master_test_stop(&first), 0);
}
END_TEST

START_TEST(test_reload)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    struct master_answer answer;

    master_test_write_generation(&world, "two");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "generation 2 is accepted");
    for (unsigned index = 0; index < 2; index++) do
            master_test_ask_worker(&world, index, &answer);
        while (strcmp(answer.text, "two") != 0);

    master_test_write_generation(&world, "bad three");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "reload refused: the check ended with exit code 4; generation 2 stays");
    master_test_ask_worker(&world, 1, &answer);
    ck_assert_str_eq(answer.text, "two");

    ck_assert_int_eq(unlink(world.generation_path), 0);
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "reload refused: cannot read the generation; generation 2 stays");

    /* A worker that refuses what the check let through is stopped gracefully, without being asked for; its successor
     * starts from the accepted generation. */
    master_test_ask_worker(&world, 0, &answer);
    pid_t refusing = answer.pid;
    master_test_write_generation(&world, "picky");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "refused generation 3");
    do master_test_ask_worker(&world, 0, &answer);
    while (strcmp(answer.text, "picky") != 0);
    ck_assert_int_ne(answer.pid, refusing);
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

/* Clients have all the descriptors of a worker when a generation comes: it stays, and has it a little later. */
START_TEST(test_a_worker_without_descriptors_is_offered_the_generation_again)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    struct master_answer before, after;
    master_test_ask_worker(&world, 1, &before);
    struct rlimit all, none;
    ck_assert_int_eq(prlimit(before.pid, RLIMIT_NOFILE, NULL, &all), 0);
    none =
        (struct rlimit){.rlim_cur = 3, .rlim_max = all.rlim_max}; /* 0 to 2 are open, and poll counts too */
    ck_assert_int_eq(prlimit(before.pid, RLIMIT_NOFILE, &none, NULL), 0);
    master_test_write_generation(&world, "two");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "worker 1 has no descriptor left for generation 2");
    char line[1024];
    for (int offers = 0; offers < 2;) { /* it is told once, however long it lasts */
        ck_assert(master_test_line(world.log, line, sizeof line));
        ck_assert_msg(!strstr(line, "no descriptor left"), "told again: %s", line);
        if (strstr(line, "worker 1 still has no descriptor for generation 2")) offers++;
    }
    ck_assert_int_eq(prlimit(before.pid, RLIMIT_NOFILE, &all, NULL), 0);
    do master_test_ask_worker(&world, 1, &after);
    while (strcmp(after.text, "two") != 0);
    ck_assert_int_eq(after.pid, before.pid);
    master_test_await_log(&world, "worker 1 has taken generation 2 now");
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

/* What a check asks for is loaded and it is checked again, GENERATION_ROUNDS times in all. */
START_TEST(test_a_check_may_ask_for_more)
{
    struct master_world world;
    struct master_answer answer;
    char text[8] = "ask 0";
    text[4] = '0' + LIMIT_GENERATION_ROUNDS - 1;
    master_test_prepare(&world);
    master_test_write_generation(&world, text);
    master_test_start(&world);
    master_test_await_ready(&world);
    master_test_ask_worker(&world, 0, &answer);
    ck_assert_int_eq(answer.text[strlen(answer.text) - 1], '+');
    ck_assert_uint_eq(strlen(strchr(answer.text, '+')), LIMIT_GENERATION_ROUNDS - 1);
    text[4]++;
    master_test_write_generation(&world, text);
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "GENERATION_ROUNDS = 8; generation 1 stays");
    master_test_write_generation(&world, "two"); /* nothing of what was asked for is left */
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "generation 2 is accepted");
    do master_test_ask_worker(&world, 0, &answer);
    while (strncmp(answer.text, "ask", 3) == 0);
    ck_assert_str_eq(answer.text, "two");
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

/* A check that never ends is ended: its generation is refused, and what came meanwhile is looked at. */
START_TEST(test_a_check_that_never_ends_is_refused)
{
    struct master_world world;
    struct master_answer answer;
    char line[64];
    master_test_prepare(&world);
    world.check_ms = 300;
    master_test_start(&world);
    master_test_await_ready(&world);
    master_test_write_generation(&world, "hang");
    kill(world.master, SIGHUP);
    ck_assert(master_test_line(world.banner, line, sizeof line));
    ck_assert_str_eq(line, "checking");
    master_test_write_generation(&world, "two");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "reload refused: the check took longer than 300 ms (GENERATION_CHECK_MS); "
                                  "generation 1 stays");
    master_test_await_log(&world, "generation 2 is accepted");
    do master_test_ask_worker(&world, 0, &answer);
    while (strcmp(answer.text, "two") != 0);
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

START_TEST(test_a_first_check_that_never_ends_ends_the_start)
{
    struct master_world world;
    master_test_prepare(&world);
    world.check_ms = 300;
    master_test_write_generation(&world, "hang");
    master_test_start(&world);
    master_test_await_log(&world, "the check took longer than 300 ms (GENERATION_CHECK_MS)");
    ck_assert_int_eq(master_test_exit_code(&world), 1);
    master_test_await_all_gone(&world);
}
END_TEST

/* No process for the checker: the reload is refused, as with every other reason, and the next one may find one. */
START_TEST(test_a_check_that_cannot_begin_is_refused)
{
    struct master_world world;
    master_test_prepare(&world);
    world.unprivileged = true;
    ck_assert_int_eq(chmod(world.generation_path, 0644), 0);
    master_test_start(&world);
    master_test_await_ready(&world);
    master_test_write_generation(&world, "alone");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "reload refused: cannot fork a checker: ");
    master_test_write_generation(&world, "two");
    kill(world.master, SIGHUP);
    master_test_await_log(&world, "generation 2 is accepted");
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

START_TEST(test_start_with_a_bad_generation)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_write_generation(&world, "bad");
    master_test_start(&world);
    ck_assert_int_eq(master_test_exit_code(&world), 4);
    master_test_await_all_gone(&world);

    master_test_prepare(&world);
    unlink(world.generation_path);
    master_test_start(&world);
    master_test_await_log(&world, "cannot read the generation");
    ck_assert_int_eq(master_test_exit_code(&world), 4);
    master_test_await_all_gone(&world);
}
END_TEST

START_TEST(test_bad_address_ends_the_start)
{
    struct master_world world;
    master_test_prepare(&world);
    snprintf(world.listen, sizeof world.listen, "nonsense");
    master_test_start(&world);
    ck_assert_int_eq(master_test_exit_code(&world), 2);
    master_test_await_all_gone(&world);
}
END_TEST

START_TEST(test_workers_that_are_done_end_the_master)
{
    struct master_world world;
    master_test_prepare(&world);
    world.end_at_once = true;
    master_test_start(&world);
    ck_assert_int_eq(master_test_exit_code(&world), 0);
    master_test_await_all_gone(&world);
}
END_TEST

START_TEST(test_stuck_worker_is_ended_after_the_drain_time)
{
    struct master_world world;
    master_test_prepare(&world);
    world.stuck = true;
    world.drain_ms = 50;
    master_test_start(&world);
    master_test_await_ready(&world);
    kill(world.master, SIGINT);
    master_test_await_log(&world, "workers did not finish in time");
    ck_assert_int_eq(master_test_exit_code(&world), 0);
    master_test_await_all_gone(&world);
}
END_TEST

START_TEST(test_second_signal_is_immediate)
{
    struct master_world world;
    master_test_prepare(&world);
    world.stuck = true;
    world.drain_ms = 600000;
    master_test_start(&world);
    master_test_await_ready(&world);
    kill(world.master, SIGTERM);
    int status;
    while (waitpid(world.master, &status, WNOHANG) == 0) { /* those that come too soon are still the first */
        kill(world.master, SIGINT);
        poll(NULL, 0, SIGNALS_PAUSE_MS / 10);
    }
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    master_test_await_all_gone(&world);
}
END_TEST

/* timeout(1), a supervisor of a whole group, a terminal: the master is told twice and its workers too. They finish. */
START_TEST(test_a_stop_for_all_is_graceful)
{
    struct master_world world;
    master_test_prepare(&world);
    int gate[2];
    ck_assert_int_eq(pipe(gate), 0);
    world.gate = gate[0];
    world.gate_write = gate[1];
    world.drain_ms = 600000;
    master_test_start(&world);
    close(gate[0]);
    master_test_await_ready(&world);
    struct master_answer workers[2];
    for (unsigned i = 0; i < 2; i++) master_test_ask_worker(&world, i, &workers[i]);
    for (unsigned i = 0; i < 2; i++) {
        kill(workers[i].pid, SIGTERM);
        kill(workers[i].pid, SIGINT);
    }
    kill(world.master, SIGTERM);
    kill(world.master, SIGINT); /* not SIGTERM twice: pending ones of a kind are one */
    master_test_expect_lines(&world, "stopping");
    close(gate[1]);
    master_test_expect_lines(&world, "done");
    ck_assert_int_eq(master_test_exit_code(&world), 0);
    master_test_await_all_gone(&world);
}
END_TEST

START_TEST(test_workers_notice_the_masters_death)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    kill(world.master, SIGKILL);
    int status;
    ck_assert_int_eq(waitpid(world.master, &status, 0), world.master);
    master_test_await_all_gone(&world); /* would hang if one stayed */
}
END_TEST

START_TEST(test_other_signals)
{
    struct master_world world;
    master_test_prepare(&world);
    master_test_start(&world);
    master_test_await_ready(&world);
    kill(world.master, SIGUSR2);
    master_test_await_log(&world, "no upgrade: how this program was started is not known");
    kill(world.master, SIGUSR1);
    master_test_expect_lines(&world, "reopened");
    ck_assert_int_eq(master_test_stop(&world), 0);
}
END_TEST

START_TEST(test_inherited_listener)
{
    struct master_world world;
    master_test_prepare(&world);
    struct address any;
    int listener;
    ck_assert(!cy_failed(address_from_text(CY_BYTES("127.0.0.1:0"), &any)));
    ck_assert(!cy_failed(listen_open(&any, false, 16, &listener)));
    snprintf(world.listen, sizeof world.listen, "fd@%d", listener);
    master_test_start(&world);
    master_test_await_ready(&world);
    close(listener);
    struct master_answer answer;
    ck_assert(master_test_ask(&world, &answer));
    ck_assert_int_eq(master_test_stop(&world), 0);

    master_test_prepare(&world);
    snprintf(world.listen, sizeof world.listen, "fd@1"); /* open, but nothing that listens */
    master_test_start(&world);
    ck_assert_int_eq(master_test_exit_code(&world), 2);
    master_test_await_all_gone(&world);
}
END_TEST

Suite *unit_suite_net_master(void);
Suite *unit_suite_net_master(void)
{
    Suite *suite = suite_create("net/master");
    TCase *tests = tcase_create("processes");
    tcase_set_timeout(tests, 20);
    tcase_add_test(tests, test_killed_worker_is_replaced);
    tcase_add_test(tests, test_a_log_that_nobody_reads_stops_no_master);
    tcase_add_test(tests, test_worker_that_keeps_dying_is_started_with_pauses);
    tcase_add_test(tests, test_port_in_use_is_seen);
    tcase_add_test(tests, test_reload);
    tcase_add_test(tests, test_a_worker_without_descriptors_is_offered_the_generation_again);
    tcase_add_test(tests, test_a_check_may_ask_for_more);
    tcase_add_test(tests, test_a_check_that_never_ends_is_refused);
    tcase_add_test(tests, test_a_first_check_that_never_ends_ends_the_start);
    tcase_add_test(tests, test_a_check_that_cannot_begin_is_refused);
    tcase_add_test(tests, test_start_with_a_bad_generation);
    tcase_add_test(tests, test_bad_address_ends_the_start);
    tcase_add_test(tests, test_workers_that_are_done_end_the_master);
    tcase_add_test(tests, test_stuck_worker_is_ended_after_the_drain_time);
    tcase_add_test(tests, test_second_signal_is_immediate);
    tcase_add_test(tests, test_a_stop_for_all_is_graceful);
    tcase_add_test(tests, test_workers_notice_the_masters_death);
    tcase_add_test(tests, test_other_signals);
    tcase_add_test(tests, test_inherited_listener);
    suite_add_tcase(suite, tests);
    return suite;
}
