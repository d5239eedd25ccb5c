/* SPDX-License-Identifier: MIT
 *
 * bench/gateway/relay.c: the floor under every proxy: bytes from one socket to another, without a look at them.
 *
 * In:   relay UPSTREAM_PORT [PORT]. Out: the port on stdout, then bytes.
 *
 * Each client gets an upstream connection of its own. What one end has received is sent to the other at once; what does
 * not fit waits in a buffer of that direction, and nothing more is read for it until it is out. For a small answer that
 * is a receive and a send each way, and a wait that many connections share: the calls that no proxy can do without.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 262144
#define EVENTS 256

struct end {
    struct end *other;
    struct end *next_dead; /* freed when the events of this wait are through: another one may point at it */
    int descriptor;
    bool dead, input_ended;
    char *waiting; /* received from `other`, to be sent here */
    size_t waiting_bytes, waiting_sent;
};

struct relay {
    int epoll_descriptor, listener;
    struct sockaddr_in upstream;
    struct end *dead;
    char piece[PIECE_BYTES];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void kill_pair(struct relay *relay, struct end *end)
{
    struct end *both[] = {end, end->other};
    for (int i = 0; i < 2; i++) {
        if (both[i]->dead) continue;
        both[i]->dead = true;
        close(both[i]->descriptor);
        free(both[i]->waiting);
        both[i]->waiting = NULL;
        both[i]->next_dead = relay->dead;
        relay->dead = both[i];
    }
}

/* Sends to `end`; keeps what does not fit. False when the pair is gone. */
static bool give(struct relay *relay, struct end *end, const char *bytes, size_t count)
{
    size_t done = 0;
    while (done < count) {
        ssize_t sent = send(end->descriptor, bytes + done, count - done, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) {
            kill_pair(relay, end);
            return false;
        }
        done += (size_t)sent;
    }
    if (done == count) return true;
    end->waiting_bytes = count - done;
    end->waiting_sent = 0;
    end->waiting = malloc(end->waiting_bytes);
    if (!end->waiting) die("memory");
    memcpy(end->waiting, bytes + done, end->waiting_bytes);
    return true;
}

/* False when something still waits, or the pair is gone. */
static bool give_waiting(struct relay *relay, struct end *end)
{
    while (end->waiting_sent < end->waiting_bytes) {
        ssize_t sent = send(end->descriptor, end->waiting + end->waiting_sent,
                            end->waiting_bytes - end->waiting_sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return false;
        if (sent < 0) {
            kill_pair(relay, end);
            return false;
        }
        end->waiting_sent += (size_t)sent;
    }
    free(end->waiting);
    end->waiting = NULL;
    end->waiting_bytes = end->waiting_sent = 0;
    return true;
}

/* From `end` to the other, until it is drained or the other is full. */
static void take(struct relay *relay, struct end *end)
{
    while (!end->dead && !end->other->waiting && !end->input_ended) {
        ssize_t got = recv(end->descriptor, relay->piece, PIECE_BYTES, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got < 0) {
            kill_pair(relay, end);
            return;
        }
        if (got == 0) {
            end->input_ended = true;
            shutdown(end->other->descriptor, SHUT_WR);
            if (end->other->input_ended) kill_pair(relay, end);
            return;
        }
        if (!give(relay, end->other, relay->piece, (size_t)got)) return;
        if ((size_t)got < PIECE_BYTES && !end->other->waiting) return; /* drained */
    }
}

static struct end *add(int descriptor)
{
    int one = 1;
    struct end *end = calloc(1, sizeof *end);
    if (!end) die("memory");
    end->descriptor = descriptor;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return end;
}

static void watch(struct relay *relay, struct end *end)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = end};
    if (epoll_ctl(relay->epoll_descriptor, EPOLL_CTL_ADD, end->descriptor, &event) != 0) die("epoll_ctl");
}

static void accept_all(struct relay *relay)
{
    int client;
    while ((client = accept4(relay->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int upstream = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (upstream < 0) {
            close(client);
            continue;
        }
        /* On loopback this connects at once; a refusal shows at the first send. */
        if (connect(upstream, (struct sockaddr *)&relay->upstream, sizeof relay->upstream) != 0 &&
            errno != EINPROGRESS) {
            close(client);
            close(upstream);
            continue;
        }
        struct end *front = add(client), *back = add(upstream);
        front->other = back;
        back->other = front;
        watch(relay, front);
        watch(relay, back);
    }
}

static void serve(struct relay *relay, struct end *end, uint32_t events)
{
    if (end->dead) return;
    /* What waited for this end is out: its source may be read again. */
    if ((events & EPOLLOUT) && end->waiting && give_waiting(relay, end)) take(relay, end->other);
    if (!end->dead && (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))) take(relay, end);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: relay UPSTREAM_PORT [PORT]\n");
        return 2;
    }
    struct relay *relay = calloc(1, sizeof *relay);
    if (!relay) die("memory");
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    relay->upstream = address;
    relay->upstream.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    address.sin_port = htons(argc > 2 ? (uint16_t)strtoul(argv[2], NULL, 10) : 0);
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(relay->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(relay->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay->listener, 4096) != 0)
        die("listen");
    if (getsockname(relay->listener, (struct sockaddr *)&address, &bytes) != 0) die("getsockname");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    relay->epoll_descriptor = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(relay->epoll_descriptor, EPOLL_CTL_ADD, relay->listener, &event) != 0) die("epoll_ctl");
    for (;;) {
        int count = epoll_wait(relay->epoll_descriptor, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr)
                serve(relay, events[i].data.ptr, events[i].events);
            else
                accept_all(relay);
        }
        while (relay->dead) {
            struct end *next = relay->dead->next_dead;
            free(relay->dead);
            relay->dead = next;
        }
    }
}
