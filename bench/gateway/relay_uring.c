/* SPDX-License-Identifier: MIT
 *
 * bench/gateway/relay_uring.c: the floor (relay.c) once more, over io_uring: what that interface could save a proxy.
 *
 * In:   relay_uring UPSTREAM_PORT [PORT]. Out: the port on stdout, then bytes.
 *
 * Built as its makers advise: one issuer, completions only when asked for, a registered ring and registered files, one
 * multishot receive for each socket into a ring of buffers, and what a batch of completions leads to submitted with the
 * wait for the next one. So there is one system call for each batch. Only connecting, which kept connections do once,
 * and ends are plain calls.
 * Not here: fairness. A peer that reads slowly holds buffers that others then wait for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES = 1024, FILES = 8192, BUFFERS = 256, BUFFER_BYTES = 65536, GROUP = 1, NONE = -1 };
/* In the low bits of user_data, whose rest is the end. */
enum kind { RECEIVED, SENT, ACCEPTED, KIND_MASK = 3 };

struct end {
    struct end *other;
    struct end *next_hungry; /* its receive stopped because there was no buffer */
    int descriptor;
    int first, last;      /* buffers that wait to be sent here, the first one is being sent; NONE: none do */
    unsigned outstanding; /* operations; freed when there are none */
    bool dead, input_ended, output_ended;
};

struct ring {
    int descriptor, registered;
    unsigned *sq_head, *sq_tail, *cq_head, *cq_tail, sq_mask, cq_mask, pending;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
    struct io_uring_buf_ring *buffers;
    uint16_t buffers_tail;
};

struct relay {
    struct ring ring;
    int listener;
    struct sockaddr_in upstream;
    struct end *hungry;
    struct {
        int next;
        unsigned bytes;
    } waiting[BUFFERS];
    char pieces[BUFFERS][BUFFER_BYTES];
};

static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* -- the ring -------------------------------------------------------------------------------------------- */

static void enter(struct ring *ring, unsigned wait_count)
{
    unsigned flags = IORING_ENTER_REGISTERED_RING | (wait_count ? IORING_ENTER_GETEVENTS : 0);
    long count =
        syscall(SYS_io_uring_enter, ring->registered, ring->pending, wait_count, flags, NULL, (size_t)0);
    if (count < 0 && errno != EINTR && errno != EBUSY) die("io_uring_enter");
    if (count > 0) ring->pending -= (unsigned)count;
}

static struct io_uring_sqe *entry(struct ring *ring, int opcode, int descriptor, struct end *end,
                                  enum kind kind)
{
    unsigned tail = *ring->sq_tail;
    while (tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) == ENTRIES) enter(ring, 0);
    struct io_uring_sqe *sqe = &ring->entries[tail & ring->sq_mask];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = (uint8_t)opcode;
    sqe->fd = descriptor;
    sqe->flags = IOSQE_FIXED_FILE;
    sqe->user_data = (uint64_t)(uintptr_t)end | kind;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    ring->pending++;
    return sqe;
}

static void give_buffer(struct relay *relay, int index)
{
    struct ring *ring = &relay->ring;
    struct io_uring_buf *buf = &ring->buffers->bufs[ring->buffers_tail & (BUFFERS - 1)];
    buf->addr = (uint64_t)(uintptr_t)relay->pieces[index];
    buf->len = BUFFER_BYTES;
    buf->bid = (uint16_t)index;
    __atomic_store_n(&ring->buffers->tail, ++ring->buffers_tail, __ATOMIC_RELEASE);
}

static long register_with(struct ring *ring, unsigned opcode, void *argument, unsigned count)
{
    return syscall(SYS_io_uring_register, ring->descriptor, opcode, argument, count);
}

/* A descriptor's slot is its number. */
static void register_file(struct ring *ring, int descriptor, int value)
{
    struct io_uring_files_update update = {.offset = (unsigned)descriptor,
                                           .fds = (uint64_t)(uintptr_t)&value};
    if (descriptor >= FILES || register_with(ring, IORING_REGISTER_FILES_UPDATE, &update, 1) != 1)
        die("registering a file");
}

static void *map(int descriptor, size_t bytes, off_t offset)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, offset);
    if (at == MAP_FAILED) die("mmap");
    return at;
}

static void open_ring(struct relay *relay)
{
    struct ring *ring = &relay->ring;
    struct io_uring_params p = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                         IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
                                .cq_entries = 4 * ENTRIES};
    ring->descriptor = (int)syscall(SYS_io_uring_setup, ENTRIES, &p);
    if (ring->descriptor < 0) die("io_uring_setup");
    char *sq = map(ring->descriptor, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *cq =
        map(ring->descriptor, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring->entries = map(ring->descriptor, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring->sq_head = (unsigned *)(sq + p.sq_off.head);
    ring->sq_tail = (unsigned *)(sq + p.sq_off.tail);
    ring->sq_mask = p.sq_entries - 1;
    ring->cq_head = (unsigned *)(cq + p.cq_off.head);
    ring->cq_tail = (unsigned *)(cq + p.cq_off.tail);
    ring->cq_mask = p.cq_entries - 1;
    ring->completions = (struct io_uring_cqe *)(cq + p.cq_off.cqes);
    for (unsigned i = 0; i < p.sq_entries; i++) ((unsigned *)(sq + p.sq_off.array))[i] = i;
    struct io_uring_rsrc_update own = {.offset = UINT32_MAX, .data = (uint64_t)ring->descriptor};
    if (register_with(ring, IORING_REGISTER_RING_FDS, &own, 1) != 1) die("registering the ring");
    ring->registered = (int)own.offset;
    struct io_uring_rsrc_register files = {.nr = FILES, .flags = IORING_RSRC_REGISTER_SPARSE};
    if (register_with(ring, IORING_REGISTER_FILES2, &files, sizeof files) < 0) die("registering files");
    ring->buffers = mmap(NULL, BUFFERS * sizeof(struct io_uring_buf), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring->buffers == MAP_FAILED) die("mmap");
    struct io_uring_buf_reg group = {
        .ring_addr = (uint64_t)(uintptr_t)ring->buffers, .ring_entries = BUFFERS, .bgid = GROUP};
    if (register_with(ring, IORING_REGISTER_PBUF_RING, &group, 1) < 0) die("registering buffers");
    for (int i = 0; i < BUFFERS; i++) give_buffer(relay, i);
}

/* -- bytes ----------------------------------------------------------------------------------------------- */

static void receive(struct relay *relay, struct end *end)
{
    struct io_uring_sqe *sqe = entry(&relay->ring, IORING_OP_RECV, end->descriptor, end, RECEIVED);
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = GROUP;
    end->outstanding++;
}

static void send_first(struct relay *relay, struct end *end)
{
    struct io_uring_sqe *sqe = entry(&relay->ring, IORING_OP_SEND, end->descriptor, end, SENT);
    sqe->addr = (uint64_t)(uintptr_t)relay->pieces[end->first];
    sqe->len = relay->waiting[end->first].bytes;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
    end->outstanding++;
}

/* What is outstanding ends by this, one after the other. */
static void kill_pair(struct end *end)
{
    struct end *both[] = {end, end->other};
    for (int i = 0; both[0] && i < 2; i++) {
        if (!both[i] || both[i]->dead) continue;
        both[i]->dead = true;
        shutdown(both[i]->descriptor, SHUT_RDWR);
    }
}

static void end_output(struct end *end)
{
    if (end->output_ended || end->first != NONE || !end->other->input_ended) return;
    end->output_ended = true;
    shutdown(end->descriptor, SHUT_WR);
    if (end->other->output_ended) kill_pair(end);
}

static void on_received(struct relay *relay, struct end *end, const struct io_uring_cqe *cqe)
{
    if (cqe->res > 0) {
        struct end *other = end->other;
        int index = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
        relay->waiting[index].next = NONE;
        relay->waiting[index].bytes = (unsigned)cqe->res;
        if (end->dead) {
            give_buffer(relay, index);
        } else if (other->first == NONE) {
            other->first = other->last = index;
            send_first(relay, other);
        } else {
            relay->waiting[other->last].next = index;
            other->last = index;
        }
    }
    if (cqe->flags & IORING_CQE_F_MORE) return;
    end->outstanding--;
    if (end->dead) return;
    if (cqe->res == -ENOBUFS || cqe->res > 0) {
        end->next_hungry = relay->hungry;
        relay->hungry = end;
        end->outstanding++; /* for its place in the list */
    } else if (cqe->res == 0) {
        end->input_ended = true;
        end_output(end->other);
    } else {
        kill_pair(end);
    }
}

static void on_sent(struct relay *relay, struct end *end, const struct io_uring_cqe *cqe)
{
    int index = end->first;
    end->outstanding--;
    end->first = relay->waiting[index].next;
    give_buffer(relay, index);
    if (cqe->res != (int)relay->waiting[index].bytes) kill_pair(end);
    if (end->dead) {
        for (; end->first != NONE; end->first = relay->waiting[end->first].next)
            give_buffer(relay, end->first);
    } else if (end->first != NONE) {
        send_first(relay, end);
    } else {
        end_output(end);
    }
}

/* -- connections ----------------------------------------------------------------------------------------- */

static struct end *add(struct relay *relay, int descriptor)
{
    int one = 1;
    struct end *end = calloc(1, sizeof *end);
    if (!end) die("memory");
    end->descriptor = descriptor;
    end->first = end->last = NONE;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    register_file(&relay->ring, descriptor, descriptor);
    return end;
}

static void accept_more(struct relay *relay)
{
    struct io_uring_sqe *sqe = entry(&relay->ring, IORING_OP_ACCEPT, relay->listener, NULL, ACCEPTED);
    sqe->ioprio = IORING_ACCEPT_MULTISHOT;
    sqe->accept_flags = SOCK_CLOEXEC;
}

static void on_accepted(struct relay *relay, const struct io_uring_cqe *cqe)
{
    if (!(cqe->flags & IORING_CQE_F_MORE)) accept_more(relay);
    if (cqe->res < 0) return;
    /* Blocking sockets: on those that are not, an operation that must wait gives EAGAIN instead. */
    int client = cqe->res, upstream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (upstream < 0 || connect(upstream, (struct sockaddr *)&relay->upstream, sizeof relay->upstream) != 0) {
        close(client);
        if (upstream >= 0) close(upstream);
        return;
    }
    struct end *front = add(relay, client), *back = add(relay, upstream);
    front->other = back;
    back->other = front;
    receive(relay, front);
    receive(relay, back);
}

static void bury(struct relay *relay, struct end *end)
{
    if (!end->dead || end->outstanding) return;
    register_file(&relay->ring, end->descriptor, -1);
    close(end->descriptor);
    if (end->other) end->other->other = NULL;
    free(end);
}

static void turn(struct relay *relay)
{
    struct ring *ring = &relay->ring;
    enter(ring, 1);
    unsigned head = *ring->cq_head;
    while (head != __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE)) {
        struct io_uring_cqe cqe = ring->completions[head++ & ring->cq_mask];
        __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
        enum kind kind = cqe.user_data & KIND_MASK;
        struct end *end = (struct end *)(uintptr_t)(cqe.user_data & ~(uint64_t)KIND_MASK);
        if (kind == ACCEPTED)
            on_accepted(relay, &cqe);
        else if (kind == RECEIVED)
            on_received(relay, end, &cqe);
        else
            on_sent(relay, end, &cqe);
        if (end) bury(relay, end);
    }
    struct end *hungry = relay->hungry;
    relay->hungry = NULL;
    while (hungry) {
        struct end *end = hungry;
        hungry = end->next_hungry;
        end->outstanding--;
        if (!end->dead) receive(relay, end);
        bury(relay, end);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: relay_uring UPSTREAM_PORT [PORT]\n");
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
    relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(relay->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(relay->listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(relay->listener, 4096) != 0)
        die("listen");
    if (getsockname(relay->listener, (struct sockaddr *)&address, &bytes) != 0) die("getsockname");
    open_ring(relay);
    register_file(&relay->ring, relay->listener, relay->listener);
    accept_more(relay);
    printf("%u\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) turn(relay);
}
