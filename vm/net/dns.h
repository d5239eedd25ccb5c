/* SPDX-License-Identifier: MIT
 *
 * vm/net/dns.h: names to addresses, through c-ares (included by dns.c only).
 *
 * In:   a host name, or a numeric address, which answers at once (from the next turn).
 * Out:  one call of `done` with at least one address, or NAME_UNKNOWN, NAME_FAILED, TIMEOUT.
 * Kept: answers for their TTL within floor and ceiling (LIMIT_DNS_TTL_...), and the last good answer when a new
 *       look-up fails. /etc/hosts is honoured.
 */
#ifndef CY_NET_DNS_H
#define CY_NET_DNS_H

#include "vm/base/limits.h"
#include "vm/net/loop.h"

struct dns;
struct dns_query {
    void (*done)(struct dns_query *query);
    cy_err err;
    struct address addresses[LIMIT_DNS_ADDRESSES]; /* port 0 */
    uint32_t address_count;
    /* private */
    struct dns_query *next;
    struct dns *dns;
    void *entry;
};
CY_NODISCARD cy_err dns_new(struct loop *loop, struct dns **dns_out);
/* Asks these name servers, "127.0.0.1:53,[::1]:53", instead of the system's: a server of the tests, so far.
 * BAD_ADDRESS: no such list, and the one before it stays; before the first look-up that is not known yet, and each
 * look-up then says so. */
CY_NODISCARD cy_err dns_set_servers(struct dns *dns, const char *servers);
/* Not from inside a `done`. Let the loop turn once more before loop_free: descriptors that were watched still have to
 * complete. */
void dns_free(struct dns **dns); /* outstanding queries complete with CANCELLED before this returns */
void dns_resolve(struct dns *dns, cy_bytes host, struct dns_query *query);
void dns_cancel(struct dns_query *query); /* done is not called any more */

#endif
