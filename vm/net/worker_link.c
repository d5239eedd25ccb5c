/* SPDX-License-Identifier: MIT
 *
 * vm/net/worker_link.c: the worker's end of the channel, and the packets themselves.
 *
 * In:   packets of the master, which may come between a question and its answer.
 * Out:  messages, in order; of several generations that wait only the newest.
 * Invariant: a packet is believed only when its size, magic and lengths fit; a descriptor that came with a packet
 *       which has no use for it is closed.
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/master_internal.h"
#include "vm/sys/file.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

/* -- packets --------------------------------------------------------------------------------------------- */

cy_err master_packet_send(int channel, enum master_packet_kind kind, uint32_t number, cy_err cause,
                          const struct address *address, cy_bytes text, int descriptor)
{
    struct master_packet packet;
    memset(&packet, 0, offsetof(struct master_packet, text)); /* padding too: it crosses a process border */
    packet.magic = MASTER_PACKET_MAGIC;
    packet.kind = kind;
    packet.number = number;
    packet.err = cause;
    if (address) packet.address = *address;
    packet.text_bytes = (uint32_t)cy_min_size(text.count, MASTER_TEXT_BYTES_MAX);
    if (packet.text_bytes) memcpy(packet.text, text.data, packet.text_bytes);
    return channel_send(
        channel, cy_bytes_of(&packet, offsetof(struct master_packet, text) + packet.text_bytes), descriptor);
}

cy_err master_packet_receive(int channel, struct master_packet *packet, int *owned_descriptor_out)
{
    size_t count;
    CY_TRY(channel_receive(channel, packet, sizeof *packet, &count, owned_descriptor_out));
    size_t head_bytes = offsetof(struct master_packet, text);
    if (count >= head_bytes && packet->magic == MASTER_PACKET_MAGIC &&
        packet->text_bytes <= MASTER_TEXT_BYTES_MAX && count == head_bytes + packet->text_bytes &&
        packet->address.bytes <= sizeof packet->address.storage)
        return CY_OK;
    if (*owned_descriptor_out >= 0) close(*owned_descriptor_out);
    *owned_descriptor_out = -1;
    return CY_ERR(BAD_FORMAT);
}

/* -- the link -------------------------------------------------------------------------------------------- */

struct worker_link {
    int channel;
    bool gone;
    /* Came while an answer was awaited; handed over at the next worker_link_receive. */
    bool pending_stop;
    uint32_t pending_idle_ms;
    bool pending_reopen;
    int pending_generation; /* descriptor, -1: none */
    uint32_t pending_number;
    int first_generation; /* what worker_generation gave, until READY; -1: nothing */
    uint32_t first_number;
};

cy_err worker_link_new(int owned_channel, struct worker_link **link_out)
{
    struct worker_link *link = mem_alloc_zeroed(sizeof *link);
    if (!link) {
        close(owned_channel);
        return CY_ERR(NO_MEMORY);
    }
    link->channel = owned_channel;
    link->pending_generation = link->first_generation = -1;
    *link_out = link;
    return CY_OK;
}

static void worker_link_drop_first(struct worker_link *link)
{
    if (link->first_generation >= 0) close(link->first_generation);
    link->first_generation = -1;
}

void worker_link_free(struct worker_link **link_pointer)
{
    struct worker_link *link = *link_pointer;
    if (!link) return;
    *link_pointer = NULL;
    close(link->channel);
    if (link->pending_generation >= 0) close(link->pending_generation);
    worker_link_drop_first(link);
    mem_free(link);
}

int worker_link_descriptor(const struct worker_link *link) { return link->channel; }

static bool worker_link_is_empty(cy_err err)
{
    return cy_is(err, CY_ERR_SYSTEM) && (err.detail == EAGAIN || err.detail == EWOULDBLOCK);
}

/* The loop makes the channel non-blocking at some point; waiting works the same before and after. */
static void worker_link_wait(const struct worker_link *link, short events)
{
    struct pollfd entry = {.fd = link->channel, .events = events};
    while (poll(&entry, 1, -1) < 0 && errno == EINTR) {}
}

static cy_err worker_link_send(struct worker_link *link, enum master_packet_kind kind, uint32_t number,
                               cy_err cause, cy_bytes text)
{
    for (;;) {
        cy_err err = master_packet_send(link->channel, kind, number, cause, NULL, text, -1);
        if (!worker_link_is_empty(err)) return err;
        worker_link_wait(link, POLLOUT);
    }
}

/* More clients than descriptors, and then a reload: that is no reason to leave. The master offers it again. */
static void worker_link_miss(struct worker_link *link, uint32_t number)
{
    cy_err err =
        worker_link_send(link, MASTER_PACKET_ADOPTED, number, cy_err_from_errno(EMFILE), CY_BYTES_NONE);
    (void)err; /* a master that is gone says so by itself */
}

static void worker_link_keep(struct worker_link *link, const struct master_packet *packet,
                             int owned_descriptor)
{
    switch (packet->kind) {
    case MASTER_PACKET_STOP:
        link->pending_stop = true;
        link->pending_idle_ms = packet->number;
        break;
    case MASTER_PACKET_REOPEN_LOGS: link->pending_reopen = true; break;
    case MASTER_PACKET_GENERATION:
        if (owned_descriptor < 0) {
            worker_link_miss(link, packet->number);
            return;
        }
        if (link->pending_generation >= 0) close(link->pending_generation);
        link->pending_generation = owned_descriptor;
        link->pending_number = packet->number;
        return;
    default: break; /* an echo, or a kind of a later version */
    }
    if (owned_descriptor >= 0) close(owned_descriptor);
}

/* Reads until a packet of this kind; keeps the others. */
static cy_err worker_link_await(struct worker_link *link, enum master_packet_kind kind,
                                struct master_packet *packet, int *owned_descriptor_out)
{
    bool kept = false;
    for (;;) {
        cy_err err = master_packet_receive(link->channel, packet, owned_descriptor_out);
        if (worker_link_is_empty(err)) {
            worker_link_wait(link, POLLIN);
            continue;
        }
        if (cy_failed(err)) return err;
        if (packet->kind == kind) break;
        worker_link_keep(link, packet, *owned_descriptor_out);
        kept = true;
    }
    /* What was kept makes the channel readable no more. An echo does, and the loop then comes to
     * worker_link_receive. */
    return kept ? worker_link_send(link, MASTER_PACKET_ECHO, 0, CY_OK, CY_BYTES_NONE) : CY_OK;
}

cy_err worker_generation(struct worker_link *link, uint32_t *number_out, struct builder *bytes_out)
{
    CHECK(bytes_out->is_secret);
    struct master_packet packet;
    int descriptor = link->pending_generation;
    packet.number = link->pending_number;
    link->pending_generation = -1;
    /* The master sends one before READY; who could not use it and asks again gets the same. */
    if (descriptor < 0 && link->first_generation < 0)
        CY_TRY(worker_link_await(link, MASTER_PACKET_GENERATION, &packet, &descriptor));
    if (descriptor >= 0) {
        worker_link_drop_first(link);
        link->first_generation = descriptor;
        link->first_number = packet.number;
    }
    if (link->first_generation < 0) return CY_ERR(BAD_FORMAT);
    *number_out = link->first_number;
    return file_read_descriptor(link->first_generation, LIMIT_GENERATION_BYTES, bytes_out);
}

cy_err worker_listen(struct worker_link *link, cy_bytes text, uint32_t index, int *owned_descriptor_out,
                     struct address *actual_out)
{
    if (text.count == 0 || text.count > MASTER_TEXT_BYTES_MAX) return CY_ERR(BAD_ADDRESS);
    CY_TRY(worker_link_send(link, MASTER_PACKET_LISTEN, index, CY_OK, text));
    struct master_packet packet;
    int descriptor;
    CY_TRY(worker_link_await(link, MASTER_PACKET_LISTENING, &packet, &descriptor));
    if (cy_failed(packet.err) || descriptor < 0) {
        if (descriptor >= 0) close(descriptor);
        return cy_failed(packet.err) ? packet.err : CY_ERR(BAD_FORMAT);
    }
    *owned_descriptor_out = descriptor;
    *actual_out = packet.address;
    return CY_OK;
}

/* When the master is gone the answer has no reader, and worker_link_receive will say so. */
void worker_ready(struct worker_link *link, cy_bytes banner)
{
    worker_link_drop_first(link);
    cy_err err = worker_link_send(link, MASTER_PACKET_READY, 0, CY_OK, banner);
    (void)err;
}

void worker_adopted(struct worker_link *link, uint32_t generation_number, bool adopted)
{
    cy_err cause = adopted ? CY_OK : CY_ERR(CONFIGURATION);
    cy_err err = worker_link_send(link, MASTER_PACKET_ADOPTED, generation_number, cause, CY_BYTES_NONE);
    (void)err;
}

/* -- handing messages over ------------------------------------------------------------------------------- */

static void worker_link_hand_generation(struct worker_link *link, struct worker_message *message,
                                        void (*on_message)(void *context,
                                                           const struct worker_message *message),
                                        void *context)
{
    int descriptor = link->pending_generation;
    link->pending_generation = -1;
    struct builder bytes;
    builder_init_secret(&bytes);
    cy_err err = file_read_descriptor(descriptor, LIMIT_GENERATION_BYTES, &bytes);
    close(descriptor);
    if (cy_failed(err)) {
        worker_adopted(link, link->pending_number, false);
    } else {
        message->kind = WORKER_MESSAGE_GENERATION;
        message->generation_number = link->pending_number;
        message->generation = builder_view(&bytes);
        on_message(context, message);
    }
    builder_fini(&bytes);
}

static void worker_link_hand_over(struct worker_link *link,
                                  void (*on_message)(void *context, const struct worker_message *message),
                                  void *context)
{
    struct worker_message message = {0};
    if (link->pending_reopen) {
        link->pending_reopen = false;
        message.kind = WORKER_MESSAGE_REOPEN_LOGS;
        on_message(context, &message);
    }
    if (link->pending_generation >= 0) worker_link_hand_generation(link, &message, on_message, context);
    if (link->pending_stop) {
        link->pending_stop = false;
        message = (struct worker_message){.kind = WORKER_MESSAGE_STOP, .idle_ms = link->pending_idle_ms};
        on_message(context, &message);
    }
    if (link->gone) {
        message = (struct worker_message){.kind = WORKER_MESSAGE_MASTER_GONE};
        on_message(context, &message);
    }
}

bool worker_link_receive(struct worker_link *link,
                         void (*on_message)(void *context, const struct worker_message *message),
                         void *context)
{
    CHECK(!link->gone);
    for (;;) {
        struct pollfd entry = {.fd = link->channel, .events = POLLIN};
        if (poll(&entry, 1, 0) <= 0) break; /* the channel may still be a blocking one */
        struct master_packet packet;
        int descriptor;
        cy_err err = master_packet_receive(link->channel, &packet, &descriptor);
        if (worker_link_is_empty(err)) break;
        if (cy_failed(err)) { /* the end, or something that is no master */
            link->gone = true;
            break;
        }
        worker_link_keep(link, &packet, descriptor);
    }
    worker_link_hand_over(link, on_message, context);
    return !link->gone;
}
