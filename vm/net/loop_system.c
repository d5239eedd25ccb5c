/* SPDX-License-Identifier: MIT
 *
 * vm/net/loop_system.c: the socket calls of the operating system, as the loop wants them.
 *
 * In:   descriptors. Out: counts, descriptors, or -errno.
 * Invariant: no call here blocks, none raises SIGPIPE, and every descriptor made here is non-blocking and
 *       close-on-exec. TCP_NODELAY is set on every connection: what is sent is sent whole, and `more` says when more
 *       follows.
 */
#include "vm/net/loop_internal.h"

#include "vm/base/limits.h"
#include "vm/sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <unistd.h>

#ifdef MSG_NOSIGNAL
#define LOOP_SYSTEM_NOSIGNAL MSG_NOSIGNAL
#else
#define LOOP_SYSTEM_NOSIGNAL 0 /* macOS: SO_NOSIGPIPE is set at creation instead */
#endif
#ifdef MSG_MORE
#define LOOP_SYSTEM_MORE MSG_MORE
#else
#define LOOP_SYSTEM_MORE 0
#endif

uint64_t loop_system_clock_ns(void *state)
{
    (void)state;
    return clock_monotonic_ns();
}
int64_t loop_system_wall_ms(void *state)
{
    (void)state;
    return clock_wall_ms();
}

cy_err loop_system_prepare(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);
    if (flags < 0) return cy_err_from_errno(errno);
    if (!(flags & O_NONBLOCK) && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0)
        return cy_err_from_errno(errno);
    if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) return cy_err_from_errno(errno);
    return CY_OK;
}

cy_err loop_system_adopt(void *state, int descriptor)
{
    (void)state;
    return loop_system_prepare(descriptor);
}

static void loop_system_set(int descriptor, int level, int option)
{
    int one = 1;
    setsockopt(descriptor, level, option, &one,
               sizeof one); /* what a socket does not have it does not need */
}

/* A new non-blocking, close-on-exec stream socket, or -errno. */
static int loop_system_socket(int family)
{
#ifdef __linux__
    int descriptor = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return descriptor < 0 ? -errno : descriptor;
#else
    int descriptor = socket(family, SOCK_STREAM, 0);
    if (descriptor < 0) return -errno;
    if (cy_failed(loop_system_prepare(descriptor))) {
        close(descriptor);
        return -EINVAL;
    }
#ifdef SO_NOSIGPIPE
    loop_system_set(descriptor, SOL_SOCKET, SO_NOSIGPIPE);
#endif
    return descriptor;
#endif
}

ssize_t loop_system_receive(void *state, struct loop_socket *socket, void *room, size_t bytes)
{
    (void)state;
    for (;;) {
        ssize_t count = recv(socket->descriptor, room, bytes, 0);
        if (count >= 0) return count;
        if (errno != EINTR) return -errno;
    }
}

ssize_t loop_system_peek(void *state, struct loop_socket *socket)
{
    (void)state;
    uint8_t byte;
    for (;;) {
        ssize_t count = recv(socket->descriptor, &byte, 1, MSG_PEEK);
        if (count >= 0) return count;
        if (errno != EINTR) return -errno;
    }
}

ssize_t loop_system_send(void *state, struct loop_socket *socket, const struct iovec *parts, int part_count,
                         bool more)
{
    (void)state;
    int flags = LOOP_SYSTEM_NOSIGNAL | (more ? LOOP_SYSTEM_MORE : 0);
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)part_count};
    for (;;) {
        /* send is a little cheaper in the kernel than sendmsg, and one part is the usual case. */
        ssize_t count = part_count == 1 ? send(socket->descriptor, parts->iov_base, parts->iov_len, flags)
                                        : sendmsg(socket->descriptor, &message, flags);
        if (count >= 0) return count;
        if (errno != EINTR) return -errno;
    }
}

#ifdef __linux__
void loop_system_pipe_close(void *state, struct loop_pipe *pipe)
{
    (void)state;
    close(pipe->read_end);
    close(pipe->write_end);
}

/* Past a bound per user (fs.pipe-user-pages-soft) the system gives pipes of two pages: copying is better than that. */
int loop_system_pipe_open(void *state, struct loop_pipe *pipe)
{
    (void)state;
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return -errno;
    pipe->read_end = ends[0];
    pipe->write_end = ends[1];
    if (fcntl(pipe->write_end, F_SETPIPE_SZ, LIMIT_PIPE_BYTES) < 0 &&
        fcntl(pipe->write_end, F_GETPIPE_SZ) < LIMIT_BUFFER_BULK_BYTES) {
        loop_system_pipe_close(state, pipe);
        return -EMFILE;
    }
    /* splice has no flag for it. Who runs programs ignores it anyway; who handles it himself is left alone. */
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
        action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
    return 0;
}

static ssize_t loop_system_splice(int from, int to, size_t bytes)
{
    for (;;) {
        ssize_t count = splice(from, NULL, to, NULL, bytes, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (count >= 0) return count;
        if (errno != EINTR) return -errno;
    }
}

ssize_t loop_system_pipe_in(void *state, struct loop_socket *from, struct loop_pipe *pipe, size_t bytes)
{
    (void)state;
    return loop_system_splice(from->descriptor, pipe->write_end, bytes);
}

ssize_t loop_system_pipe_out(void *state, struct loop_socket *to, struct loop_pipe *pipe, size_t bytes)
{
    (void)state;
    return loop_system_splice(pipe->read_end, to->descriptor, bytes);
}
#endif

/* Linux lets a connection inherit this from its listener, which somebody else may have made. */
void loop_system_prepare_listener(void *state, struct loop_socket *listener)
{
    (void)state;
    loop_system_set(listener->descriptor, IPPROTO_TCP, TCP_NODELAY);
}

int loop_system_accept(void *state, struct loop_socket *listener, struct address *peer_out)
{
    (void)state;
    peer_out->bytes = sizeof peer_out->storage;
    struct sockaddr *peer = (struct sockaddr *)&peer_out->storage;
#ifdef __linux__
    int descriptor = accept4(listener->descriptor, peer, &peer_out->bytes, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor < 0) return -errno;
#else
    int descriptor = accept(listener->descriptor, peer, &peer_out->bytes);
    if (descriptor < 0) return -errno;
    if (cy_failed(loop_system_prepare(descriptor))) {
        close(descriptor);
        return -ECONNABORTED;
    }
#ifdef SO_NOSIGPIPE
    loop_system_set(descriptor, SOL_SOCKET, SO_NOSIGPIPE);
#endif
    if (peer_out->storage.ss_family == AF_INET || peer_out->storage.ss_family == AF_INET6)
        loop_system_set(descriptor, IPPROTO_TCP, TCP_NODELAY);
#endif
    return descriptor;
}

int loop_system_connect(void *state, const struct address *to)
{
    (void)state;
    int descriptor = loop_system_socket(to->storage.ss_family);
    if (descriptor < 0) return descriptor;
    if (to->storage.ss_family == AF_INET || to->storage.ss_family == AF_INET6)
        loop_system_set(descriptor, IPPROTO_TCP, TCP_NODELAY);
    if (connect(descriptor, (const struct sockaddr *)&to->storage, to->bytes) == 0) return descriptor;
    /* EINTR: the connection goes on being made, as with EINPROGRESS (POSIX). */
    if (errno == EINPROGRESS || errno == EINTR) return descriptor;
    int error_number = errno;
    close(descriptor);
    return -error_number;
}

int loop_system_connect_result(void *state, struct loop_socket *socket)
{
    (void)state;
    int error_number = 0;
    socklen_t bytes = sizeof error_number;
    if (getsockopt(socket->descriptor, SOL_SOCKET, SO_ERROR, &error_number, &bytes) != 0) return -errno;
    return -error_number;
}

int loop_system_shutdown_send(void *state, struct loop_socket *socket)
{
    (void)state;
    return shutdown(socket->descriptor, SHUT_WR) == 0 ? 0 : -errno;
}

void loop_system_address(void *state, const struct loop_socket *socket, bool peer,
                         struct address *address_out)
{
    (void)state;
    struct sockaddr *name = (struct sockaddr *)&address_out->storage;
    address_out->bytes = sizeof address_out->storage;
    int result = peer ? getpeername(socket->descriptor, name, &address_out->bytes)
                      : getsockname(socket->descriptor, name, &address_out->bytes);
    bool is_ip = result == 0 && (name->sa_family == AF_INET || name->sa_family == AF_INET6);
    if (!is_ip) address_out->bytes = 0;
}

void loop_system_close_descriptor(void *state, struct loop_socket *socket)
{
    (void)state;
    if (socket->abort_on_close) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        setsockopt(socket->descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    /* EINTR still closes on the systems we know; a second close could hit a stranger */
    close(socket->descriptor);
}

/* -- listening ------------------------------------------------------------------------------------------- */

static cy_err loop_system_bind(int descriptor, const struct address *address, bool share)
{
    /* A restart must not wait for the last connections of the one before. Linux still refuses a port that is listened
     * on. */
    loop_system_set(descriptor, SOL_SOCKET, SO_REUSEADDR);
#ifdef SO_REUSEPORT
    int one = 1;
    if (share && setsockopt(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0)
        return cy_err_from_errno(errno);
#else
    if (share) return CY_ERR(UNSUPPORTED);
#endif
    int only_v6 = 0; /* "[::]:80" and ":80" mean both families */
    if (address->storage.ss_family == AF_INET6)
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
    if (bind(descriptor, (const struct sockaddr *)&address->storage, address->bytes) != 0)
        return cy_err_from_errno(errno);
    return CY_OK;
}

/* On a machine without IPv6 every address is the IPv4 ones. */
static bool loop_system_any_v4(const struct address *address, struct address *v4_out)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address->storage;
    if (address->storage.ss_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr)) return false;
    return !cy_failed(address_from_ip(CY_BYTES("0.0.0.0"), address_port(address), v4_out));
}

/* `backlog` 0: bound only. */
static cy_err loop_system_listen(const struct address *address, bool share, int backlog, int *descriptor_out)
{
    int descriptor = loop_system_socket(address->storage.ss_family);
    if (descriptor < 0) return cy_err_from_errno(-descriptor);
    cy_err err = loop_system_bind(descriptor, address, share);
    if (!cy_failed(err) && backlog > 0 && listen(descriptor, backlog) != 0) err = cy_err_from_errno(errno);
    if (cy_failed(err)) {
        close(descriptor);
        return err;
    }
    *descriptor_out = descriptor;
    return CY_OK;
}

static cy_err loop_system_listen_any(const struct address *address, bool share, int backlog,
                                     int *descriptor_out)
{
    cy_err err = loop_system_listen(address, share, backlog, descriptor_out);
    bool no_v6 = cy_is(err, CY_ERR_BAD_ADDRESS) || (cy_is(err, CY_ERR_SYSTEM) && err.detail == EAFNOSUPPORT);
    struct address v4;
    if (no_v6 && loop_system_any_v4(address, &v4))
        err = loop_system_listen(&v4, share, backlog, descriptor_out);
    return err;
}

cy_err listen_open(const struct address *address, bool share, int backlog, int *descriptor_out)
{
    return loop_system_listen_any(address, share, backlog > 0 ? backlog : 1, descriptor_out);
}

cy_err listen_probe(const struct address *address, struct address *actual_out)
{
    int descriptor;
    CY_TRY(loop_system_listen_any(address, false, 0, &descriptor));
    cy_err err = socket_local_address(descriptor, actual_out);
    close(descriptor);
    return err;
}

cy_err listen_accept(int descriptor, int *connection_out)
{
    struct loop_socket listener = {.descriptor = descriptor};
    struct address peer;
    int result = loop_system_accept(NULL, &listener, &peer);
    bool gone = result == -EAGAIN || result == -EWOULDBLOCK || result == -EINTR || result == -ECONNABORTED;
    *connection_out = result < 0 ? -1 : result;
    return result < 0 && !gone ? cy_err_from_errno(-result) : CY_OK;
}

cy_err socket_local_address(int descriptor, struct address *address_out)
{
    memset(address_out, 0, sizeof *address_out);
    address_out->bytes = sizeof address_out->storage;
    if (getsockname(descriptor, (struct sockaddr *)&address_out->storage, &address_out->bytes) == 0)
        return CY_OK;
    address_out->bytes = 0;
    return cy_err_from_errno(errno);
}

#undef LOOP_SYSTEM_NOSIGNAL
#undef LOOP_SYSTEM_MORE
