/* SPDX-License-Identifier: MIT
 *
 * bench/gateway/upstream.c: the server behind every proxy that is measured: fixed answers, as cheap as they get.
 *
 * In:   upstream [PORT]. Out: the port on stdout, then answers until it is ended.
 *         /8k...  8,192 bytes      /1m...  1,048,576 bytes      anything else: 35 bytes
 *
 * Requests have no body and are not pipelined: the load generator and the proxies send none other. A request is
 * complete when what was received ends in an empty line. One thread, epoll, one receive and one send for each small
 * answer.
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

#define HEAD_BYTES_MAX 16384
#define EVENTS 256

struct answer {
    const char *prefix;
    size_t body_bytes;
    char *bytes;
    size_t count;
};

struct connection {
    int descriptor;
    const struct answer *answer; /* being sent; NULL: waiting for a request */
    size_t sent;
    size_t head_bytes; /* of a head that is not complete */
    char head[HEAD_BYTES_MAX];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void make_answer(struct answer *answer)
{
    static const char small[] = "<html><body>bench ok</body></html>\n";
    answer->bytes = malloc(answer->body_bytes + 256);
    if (!answer->bytes) die("memory");
    int head =
        snprintf(answer->bytes, 256,
                 "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n\r\n",
                 answer->body_bytes);
    if (answer->body_bytes == sizeof small - 1)
        memcpy(answer->bytes + head, small, answer->body_bytes);
    else
        for (size_t i = 0; i < answer->body_bytes; i++) answer->bytes[head + i] = (char)('a' + i % 23);
    answer->count = (size_t)head + answer->body_bytes;
}

/* By the path: "GET /8k HTTP/1.1". */
static const struct answer *choose(const struct connection *connection, const struct answer *answers,
                                   size_t count)
{
    const char *path = memchr(connection->head, ' ', connection->head_bytes);
    size_t left = path ? connection->head_bytes - (size_t)(path - connection->head) : 0;
    for (size_t i = 0; i + 1 < count; i++) {
        size_t prefix_bytes = strlen(answers[i].prefix);
        if (left > prefix_bytes + 1 && memcmp(path + 1, answers[i].prefix, prefix_bytes) == 0)
            return &answers[i];
    }
    return &answers[count - 1];
}

static void end(struct connection *connection)
{
    close(connection->descriptor);
    free(connection);
}

/* False when the connection has ended. */
static bool push(struct connection *connection)
{
    while (connection->answer) {
        const struct answer *answer = connection->answer;
        ssize_t sent = send(connection->descriptor, answer->bytes + connection->sent,
                            answer->count - connection->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) return true;
        if (sent < 0) {
            end(connection);
            return false;
        }
        connection->sent += (size_t)sent;
        if (connection->sent == answer->count) connection->answer = NULL;
    }
    return true;
}

static void pull(struct connection *connection, const struct answer *answers, size_t answer_count)
{
    while (!connection->answer) {
        size_t room = HEAD_BYTES_MAX - connection->head_bytes;
        ssize_t got = recv(connection->descriptor, connection->head + connection->head_bytes, room, 0);
        if (got < 0 && errno == EAGAIN) return;
        if (got <= 0) {
            end(connection);
            return;
        }
        connection->head_bytes += (size_t)got;
        bool complete = connection->head_bytes >= 4 &&
                        memcmp(connection->head + connection->head_bytes - 4, "\r\n\r\n", 4) == 0;
        if (!complete && connection->head_bytes == HEAD_BYTES_MAX) {
            end(connection);
            return;
        }
        if (complete) {
            connection->answer = choose(connection, answers, answer_count);
            connection->sent = connection->head_bytes = 0;
            if (!push(connection)) return;
        }
        if ((size_t)got < room) return; /* drained: the next bytes are a new event */
    }
}

static void accept_all(int listener, int epoll_descriptor)
{
    int descriptor, one = 1;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = malloc(sizeof *connection);
        if (!connection) die("memory");
        connection->descriptor = descriptor;
        connection->answer = NULL;
        connection->head_bytes = 0;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
                                    .data.ptr = connection};
        if (epoll_ctl(epoll_descriptor, EPOLL_CTL_ADD, descriptor, &event) != 0) die("epoll_ctl");
    }
}

static int listen_on(uint16_t port)
{
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 4096) != 0)
        die("listen");
    if (getsockname(listener, (struct sockaddr *)&address, &bytes) != 0) die("getsockname");
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

int main(int argc, char **argv)
{
    struct answer answers[] = {{"/8k", 8192, NULL, 0}, {"/1m", 1048576, NULL, 0}, {"", 35, NULL, 0}};
    size_t answer_count = sizeof answers / sizeof answers[0];
    for (size_t i = 0; i < answer_count; i++) make_answer(&answers[i]);
    int listener = listen_on(argc > 1 ? (uint16_t)strtoul(argv[1], NULL, 10) : 0);
    int epoll_descriptor = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(epoll_descriptor, EPOLL_CTL_ADD, listener, &event) != 0) die("epoll_ctl");
    for (;;) {
        int count = epoll_wait(epoll_descriptor, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!connection)
                accept_all(listener, epoll_descriptor);
            else if (!(connection->answer && (events[i].events & EPOLLOUT)) || push(connection))
                pull(connection, answers, answer_count);
        }
    }
}
