/* SPDX-License-Identifier: MIT
 *
 * vm/sys/process.c: channels between processes, the user a process runs as, the CPUs it may use.
 *
 * In:   descriptors, user names.
 * Out:  packets with at most one descriptor each.
 * Invariant: a descriptor that arrives with a packet is owned by the receiver or already closed; none leaks when a
 *       packet is malformed. Every descriptor made here is close-on-exec.
 * Not here:  what the packets mean (vm/net/master.c); signals (signals.c).
 */
#include "vm/sys/process.h"

#include "vm/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#endif

#define PROCESS_DESCRIPTORS_MAX 4 /* room for more than one, so that surplus ones are seen and closed */
#define PROCESS_PASSWD_BYTES 16384
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

cy_err channel_pair(int *a_out, int *b_out)
{
    int pair[2];
#ifdef __linux__
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return cy_err_from_errno(errno);
#else
    /* macOS has no AF_UNIX SEQPACKET; datagrams keep message borders, and a closed peer is ECONNRESET. */
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return cy_err_from_errno(errno);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    fcntl(pair[1], F_SETFD, FD_CLOEXEC);
#endif
    *a_out = pair[0];
    *b_out = pair[1];
    return CY_OK;
}

cy_err channel_send(int channel, cy_bytes message, int descriptor)
{
    CHECK(message.count > 0 &&
          message.count <= CHANNEL_MESSAGE_BYTES); /* an empty packet would look like the end */
    struct iovec part = {.iov_base = (void *)(uintptr_t)message.data, .iov_len = message.count};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memset(&control, 0, sizeof control);
        packet.msg_control = control.bytes;
        packet.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&packet);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    while (sendmsg(channel, &packet, MSG_NOSIGNAL) < 0) {
        if (errno == EINTR) continue;
        if (errno == EPIPE || errno == ECONNRESET || errno == ECONNREFUSED || errno == ENOTCONN)
            return CY_ERR(RESET);
        return cy_err_from_errno(errno);
    }
    return CY_OK;
}

/* The first descriptor of the packet; the others are closed. `*count_out` says how many there were. */
static int process_take_descriptors(struct msghdr *packet, int *count_out)
{
    int first = -1;
    *count_out = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(packet); header; header = CMSG_NXTHDR(packet, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
            if ((*count_out)++ == 0)
                first = descriptor;
            else
                close(descriptor);
        }
    }
    return first;
}

cy_err channel_receive(int channel, void *message, size_t message_bytes_max, size_t *count_out,
                       int *descriptor_out)
{
    *count_out = 0;
    *descriptor_out = -1;
    struct iovec part = {.iov_base = message, .iov_len = message_bytes_max};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(PROCESS_DESCRIPTORS_MAX * sizeof(int))];
    } control;
    struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes};
    packet.msg_controllen = sizeof control.bytes;
    ssize_t count;
    while ((count = recvmsg(channel, &packet, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {}
    if (count < 0 && (errno == ECONNRESET || errno == ENOTCONN)) return CY_ERR(CLOSED);
    if (count < 0) return cy_err_from_errno(errno);
    int descriptor_count;
    int descriptor = process_take_descriptors(&packet, &descriptor_count);
    bool lost = (packet.msg_flags & MSG_CTRUNC) != 0; /* one was sent and could not be given to us */
    if (descriptor >= 0 && (lost || descriptor_count > 1 || count == 0)) {
        close(descriptor);
        descriptor = -1;
    }
    if (count == 0) return CY_ERR(CLOSED);
    if (descriptor_count > 1 || (packet.msg_flags & MSG_TRUNC)) return CY_ERR(BAD_FORMAT);
#ifndef __linux__
    if (descriptor >= 0) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
#endif
    *count_out = (size_t)count;
    *descriptor_out = descriptor;
    return CY_OK;
}

void process_fill_standard_descriptors(void)
{
    for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; descriptor++)
        if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", O_RDWR); /* the lowest free number, which is this one */
}

uint32_t process_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
    rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = soft;
    return limit.rlim_cur > UINT32_MAX ? UINT32_MAX : (uint32_t)limit.rlim_cur;
}

uint32_t process_cpu_count(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return (uint32_t)CPU_COUNT(&set);
#endif
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

/* A number needs no row in the user table: its group is then the same number. */
static cy_err process_find_user(const char *user, struct passwd *row, char *room, size_t room_bytes,
                                bool *has_row_out)
{
    struct passwd *found = NULL;
    *has_row_out = true;
    int error_number = getpwnam_r(user, row, room, room_bytes, &found);
    if (error_number == 0 && found) return CY_OK;
    uint64_t number;
    if (!cy_bytes_parse_u64(cy_bytes_from_text(user), UINT32_MAX - 1, &number))
        return error_number ? cy_err_from_errno(error_number) : CY_ERR(NOT_FOUND);
    if (getpwuid_r((uid_t)number, row, room, room_bytes, &found) == 0 && found) return CY_OK;
    *has_row_out = false;
    row->pw_uid = (uid_t)number;
    row->pw_gid = (gid_t)number;
    return CY_OK;
}

cy_err process_drop_to(const char *user)
{
    struct passwd row;
    char room[PROCESS_PASSWD_BYTES];
    bool has_row;
    CY_TRY(process_find_user(user, &row, room, sizeof room, &has_row));
    if (geteuid() != 0) return getuid() == row.pw_uid && geteuid() == row.pw_uid ? CY_OK : CY_ERR(PERMISSION);
    /* Groups first: without root they could not be changed any more. */
    int groups = has_row ? initgroups(row.pw_name, row.pw_gid) : setgroups(1, &row.pw_gid);
    if (groups != 0) return cy_err_from_errno(errno);
#ifdef __linux__
    if (setresgid(row.pw_gid, row.pw_gid, row.pw_gid) != 0) return cy_err_from_errno(errno);
    if (setresuid(row.pw_uid, row.pw_uid, row.pw_uid) != 0) return cy_err_from_errno(errno);
#else
    if (setgid(row.pw_gid) != 0) return cy_err_from_errno(errno);
    if (setuid(row.pw_uid) != 0) return cy_err_from_errno(errno);
#endif
    /* "For good" is worth one more call: a saved id would let anyone who takes over the process come back. */
    if (row.pw_uid != 0) CHECK(setuid(0) != 0);
    return CY_OK;
}

bool process_has_ended(pid_t child)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

void process_die_with_parent(void)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* cannot fail with a valid signal */
#endif
}

#undef PROCESS_DESCRIPTORS_MAX
#undef PROCESS_PASSWD_BYTES
