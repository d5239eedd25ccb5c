/* SPDX-License-Identifier: MIT
 *
 * vm/net/master_internal.h: the packets between master and workers, and the master's listeners.
 *
 *     worker ──► master    LISTEN index, address text master ──► worker    LISTENING err, address, descriptor
 *                          READY banner                                    GENERATION number, descriptor
 *                          ADOPTED number, err                             STOP idle ms
 *                          ECHO                                            REOPEN_LOGS
 *                                                                          ECHO
 *
 *     new master ──► old master    UPGRADED, or UPGRADE_FAILED err
 *
 * Until READY the master sends GENERATION once and answers to LISTEN, nothing else; what else there is to say follows
 * then.
 */
#ifndef CY_NET_MASTER_INTERNAL_H
#define CY_NET_MASTER_INTERNAL_H

#include "vm/net/master.h"
#include "vm/sys/process.h"

#define MASTER_PACKET_MAGIC \
    0x4d590001u /* the low half is the version: a binary upgrade may meet an older worker */
#define MASTER_TEXT_BYTES_MAX (CHANNEL_MESSAGE_BYTES / 2)

enum master_packet_kind {
    MASTER_PACKET_LISTEN = 1,
    MASTER_PACKET_READY,
    MASTER_PACKET_ADOPTED,
    MASTER_PACKET_LISTENING,
    MASTER_PACKET_GENERATION,
    MASTER_PACKET_STOP,
    MASTER_PACKET_REOPEN_LOGS,
    MASTER_PACKET_ECHO,
    MASTER_PACKET_UPGRADED,
    MASTER_PACKET_UPGRADE_FAILED,
};
struct master_packet {
    uint32_t magic;
    uint32_t kind;
    uint32_t number;
    cy_err err;
    struct address address;
    uint32_t text_bytes;
    uint8_t text[MASTER_TEXT_BYTES_MAX]; /* only text_bytes of it travel */
};

/* Sends the fixed part and the text. `descriptor` -1: none; stays the caller's. */
CY_NODISCARD cy_err master_packet_send(int channel, enum master_packet_kind kind, uint32_t number,
                                       cy_err cause, const struct address *address, cy_bytes text,
                                       int descriptor);
/* Receives and checks one. BAD_FORMAT for what is none, CLOSED at the end, SYSTEM with EAGAIN when nothing is there. */
CY_NODISCARD cy_err master_packet_receive(int channel, struct master_packet *packet,
                                          int *owned_descriptor_out);

CY_NODISCARD cy_err worker_link_new(int owned_channel, struct worker_link **link_out);

/* -- master_listen.c ------------------------------------------------------------------------------------- */
struct master_listeners;
CY_NODISCARD cy_err master_listeners_new(uint32_t slot_count, struct master_listeners **listeners_out);
/* Closes them all. `last`: nobody else serves them, so the files of UNIX sockets go too. */
void master_listeners_free(struct master_listeners **listeners, bool last);
/* Whether some worker has asked for this address before. */
bool master_listeners_have(const struct master_listeners *listeners, cy_bytes text);
/* The `index`-th descriptor of this slot for this address, borrowed: the first one is opened now, or kept from the
 * worker before; further ones are there where a master before this one had more workers. NOT_FOUND past the last. */
CY_NODISCARD cy_err master_listeners_get(struct master_listeners *listeners, uint32_t slot, uint32_t index,
                                         cy_bytes text, int *descriptor_out, struct address *actual_out);
/* One that another master opened. Owned on success. BAD_ADDRESS when it does not listen. */
CY_NODISCARD cy_err master_listeners_adopt(struct master_listeners *listeners, uint32_t position,
                                           cy_bytes text, int owned_descriptor);
/* Closes what was adopted and no worker has asked for. */
void master_listeners_drop_unclaimed(struct master_listeners *listeners);
/* Every descriptor there is, with its position: `slot + index * workers`. */
void master_listeners_each(const struct master_listeners *listeners,
                           void (*each)(void *context, uint32_t position, cy_bytes text, int descriptor),
                           void *context);

/* -- master_upgrade.c ------------------------------------------------------------------------------------ */
/* Starts `command` as the next master, with the listeners in its hands. `*channel_out` is ours, non-blocking: UPGRADED,
 * UPGRADE_FAILED, or its end. */
CY_NODISCARD cy_err upgrade_start(const char *const *command, const struct master_listeners *listeners,
                                  pid_t *pid_out, int *channel_out);
/* In the next master: takes what the one before gave. `*channel_out` -1: there is none before. */
CY_NODISCARD cy_err upgrade_take(struct master_listeners *listeners, int *channel_out);

#endif
