/* SPDX-License-Identifier: MIT
 *
 * vm/net/dns.c: names through c-ares, behind the loop.
 *
 * In:   names from configuration. Out: addresses, from a timer of the loop, never from inside dns_resolve.
 *
 *     dns_resolve ──► numeric, or remembered and fresh ───────────────► done list ──► done
 *           │                                                              ▲
 *           └──► entry.waiting ──► c-ares ──► answer, or the last good one ┘
 *
 * Invariant: a query is in exactly one list: of its entry, or of what is done. One look-up per name at a time,
 *       whatever the number of queries. c-ares is started by the first name that needs it; programs without names
 * never do. Not here:  choosing among the addresses (upstreams do).
 */
#include "vm/net/dns.h"

#include "vm/base/check.h"
#include "vm/base/hash.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/random.h"

#include <ares.h>
#include <netdb.h>
#include <sys/time.h>

#define DNS_BUCKETS 1024

struct dns_entry {
    struct dns_entry *next; /* bucket chain */
    struct dns *dns;
    uint64_t hash;
    uint64_t expires_ms;
    uint64_t used_ms;
    bool looking_up;
    cy_err err; /* of the last look-up; valid while address_count is 0 */
    uint32_t address_count;
    struct address addresses[LIMIT_DNS_ADDRESSES];
    struct dns_query *waiting;
    size_t name_bytes;
    char name[LIMIT_NAME_BYTES + 1]; /* lower case */
};

/* A socket of c-ares that the loop watches. Freed when it is closed and its operation is back. */
struct dns_watch {
    struct dns_watch *next;
    struct dns *dns;
    struct loop_socket *socket;
    struct loop_ready ready;
    int descriptor;
    bool want_read, want_write;
    bool armed;  /* `ready` is with the loop */
    bool busy;   /* inside its own completion */
    bool closed; /* not in the list any more */
};

struct dns {
    struct loop *loop;
    ares_channel channel;
    bool library_started;
    bool channel_started;
    bool freeing;
    struct dns_watch *watches;
    struct timer answer_timer; /* due at once while `done` holds queries */
    struct timer retry_timer;  /* c-ares' own time-outs */
    struct dns_query *done_first, **done_last;
    uint32_t done_count;
    struct dns_entry *buckets[DNS_BUCKETS];
    uint32_t entry_count;
    hash_seed seed;
    char *servers; /* NULL: the system's */
};

/* -- answering ------------------------------------------------------------------------------------------- */

static void dns_finish(struct dns *dns, struct dns_query *query, cy_err err)
{
    query->err = err;
    query->entry = NULL;
    query->next = NULL;
    *dns->done_last = query;
    dns->done_last = &query->next;
    dns->done_count++;
    if (!timer_is_set(&dns->answer_timer)) loop_timer_set(dns->loop, &dns->answer_timer, 0);
}

static void dns_finish_from(struct dns *dns, struct dns_query *query, const struct dns_entry *entry)
{
    query->address_count = entry->address_count;
    memcpy(query->addresses, entry->addresses, entry->address_count * sizeof entry->addresses[0]);
    dns_finish(dns, query, entry->address_count ? CY_OK : entry->err);
}

static struct dns_query *dns_take_done(struct dns *dns)
{
    struct dns_query *query = dns->done_first;
    if (!query) return NULL;
    dns->done_first = query->next;
    if (!dns->done_first) dns->done_last = &dns->done_first;
    dns->done_count--;
    query->next = NULL;
    query->dns = NULL;
    return query;
}

static void dns_on_answer_timer(struct timer *timer)
{
    struct dns *dns = CY_CONTAINER_OF(timer, struct dns, answer_timer);
    /* As many as there are now: a `done` that always asks again must not keep the loop here. */
    for (uint32_t count = dns->done_count; count > 0 && dns->done_first; count--) {
        struct dns_query *query = dns_take_done(dns);
        query->done(query); /* may cancel or resolve others */
    }
    if (dns->done_first && !timer_is_set(&dns->answer_timer))
        loop_timer_set(dns->loop, &dns->answer_timer, 0);
}

/* -- c-ares ---------------------------------------------------------------------------------------------- */

static void dns_update_timer(struct dns *dns)
{
    struct timeval left;
    if (!dns->channel_started || !ares_timeout(dns->channel, NULL, &left)) {
        loop_timer_clear(dns->loop, &dns->retry_timer);
        return;
    }
    loop_timer_set(dns->loop, &dns->retry_timer,
                   (uint64_t)left.tv_sec * 1000 + (uint64_t)left.tv_usec / 1000 + 1);
}

static void dns_on_retry_timer(struct timer *timer)
{
    struct dns *dns = CY_CONTAINER_OF(timer, struct dns, retry_timer);
    ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    dns_update_timer(dns);
}

static void dns_watch_arm(struct dns_watch *watch)
{
    if (!watch->want_read && !watch->want_write) return;
    watch->ready.want_read = watch->want_read;
    watch->ready.want_write = watch->want_write;
    watch->armed = true;
    loop_ready(watch->socket, &watch->ready);
}

static void dns_watch_close(struct dns_watch *watch)
{
    struct dns_watch **link = &watch->dns->watches;
    while (*link != watch) link = &(*link)->next;
    *link = watch->next;
    watch->closed = true;
    watch->dns = NULL;
    loop_socket_close(&watch->socket);
    if (!watch->armed && !watch->busy) mem_free(watch);
}

static void dns_on_ready(struct loop_op *op)
{
    struct dns_watch *watch =
        CY_CONTAINER_OF(CY_CONTAINER_OF(op, struct loop_ready, op), struct dns_watch, ready);
    watch->armed = false;
    if (watch->closed) {
        mem_free(watch);
        return;
    }
    struct dns *dns = watch->dns;
    watch->busy = true;
    if (!cy_is(op->err, CY_ERR_CANCELLED)) { /* cancelled: only to wait for something else */
        bool failed = cy_failed(op->err);
        ares_process_fd(dns->channel, watch->ready.can_read || failed ? watch->descriptor : ARES_SOCKET_BAD,
                        watch->ready.can_write || failed ? watch->descriptor : ARES_SOCKET_BAD);
        dns_update_timer(dns);
    }
    watch->busy = false;
    if (watch->closed)
        mem_free(watch);
    else
        dns_watch_arm(watch);
}

/* c-ares says what it waits for on a descriptor; nothing means that it will close it next. */
static void dns_on_socket_state(void *context, ares_socket_t descriptor, int readable, int writable)
{
    struct dns *dns = context;
    struct dns_watch *watch = dns->watches;
    while (watch && watch->descriptor != descriptor) watch = watch->next;
    if (!readable && !writable) {
        if (watch) dns_watch_close(watch);
        return;
    }
    if (!watch) {
        watch = mem_alloc_zeroed(sizeof *watch);
        /* Without a watch the look-up ends by c-ares' own time-out. */
        if (!watch) return;
        if (cy_failed(loop_socket_watch(dns->loop, descriptor, &watch->socket))) {
            mem_free(watch);
            return;
        }
        watch->dns = dns;
        watch->descriptor = descriptor;
        watch->ready.op.done = dns_on_ready;
        watch->next = dns->watches;
        dns->watches = watch;
    }
    bool changed = watch->want_read != (readable != 0) || watch->want_write != (writable != 0);
    watch->want_read = readable != 0;
    watch->want_write = writable != 0;
    if (watch->armed && changed)
        loop_ready_cancel(watch->socket); /* its completion arms anew */
    else if (!watch->armed && !watch->busy)
        dns_watch_arm(watch);
}

static cy_err dns_error_of(int status)
{
    switch (status) {
    case ARES_SUCCESS: return CY_OK;
    case ARES_ENOTFOUND:
    case ARES_ENODATA:
    case ARES_ENONAME:
    case ARES_EBADNAME: return CY_ERR(NAME_UNKNOWN);
    case ARES_ETIMEOUT: return CY_ERR(TIMEOUT);
    case ARES_ENOMEM: return CY_ERR(NO_MEMORY);
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION: return CY_ERR(CANCELLED);
    default: return CY_ERR_DETAIL(NAME_FAILED, status);
    }
}

static cy_err dns_start(struct dns *dns)
{
    if (dns->channel_started) return CY_OK;
    int status = dns->library_started ? ARES_SUCCESS : ares_library_init(ARES_LIB_INIT_ALL);
    if (status != ARES_SUCCESS) return dns_error_of(status);
    dns->library_started = true;
    struct ares_options options = {.timeout = LIMIT_DNS_TIMEOUT_MS, .tries = LIMIT_DNS_TRIES};
    options.sock_state_cb = dns_on_socket_state;
    options.sock_state_cb_data = dns;
    status = ares_init_options(&dns->channel, &options,
                               ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    if (status != ARES_SUCCESS) return dns_error_of(status);
    /* Without its servers it would ask the system's: no channel then, so that the next name finds the list as bad. */
    status = dns->servers ? ares_set_servers_ports_csv(dns->channel, dns->servers) : ARES_SUCCESS;
    if (status != ARES_SUCCESS) {
        ares_destroy(dns->channel);
        return status == ARES_ENOMEM ? CY_ERR(NO_MEMORY) : CY_ERR(BAD_ADDRESS);
    }
    dns->channel_started = true;
    return CY_OK;
}

/* -- entries --------------------------------------------------------------------------------------------- */

static struct dns_entry *dns_find(struct dns *dns, const char *name, size_t name_bytes, uint64_t hash)
{
    for (struct dns_entry *entry = dns->buckets[hash % DNS_BUCKETS]; entry; entry = entry->next)
        if (entry->hash == hash && entry->name_bytes == name_bytes &&
            memcmp(entry->name, name, name_bytes) == 0)
            return entry;
    return NULL;
}

static void dns_forget(struct dns *dns, struct dns_entry *entry)
{
    struct dns_entry **link = &dns->buckets[entry->hash % DNS_BUCKETS];
    while (*link != entry) link = &(*link)->next;
    *link = entry->next;
    dns->entry_count--;
    mem_free(entry);
}

/* The table is full: the name that nobody asked for the longest goes. Rare, so a walk is good enough. */
static bool dns_make_room(struct dns *dns)
{
    struct dns_entry *oldest = NULL;
    for (size_t i = 0; i < DNS_BUCKETS; i++)
        for (struct dns_entry *entry = dns->buckets[i]; entry; entry = entry->next)
            if (!entry->looking_up && (!oldest || entry->used_ms < oldest->used_ms)) oldest = entry;
    if (oldest) dns_forget(dns, oldest);
    return oldest != NULL;
}

static cy_err dns_remember(struct dns *dns, const char *name, size_t name_bytes, struct dns_entry **entry_out)
{
    uint64_t hash = hash_bytes(dns->seed, cy_bytes_of(name, name_bytes));
    struct dns_entry *entry = dns_find(dns, name, name_bytes, hash);
    if (!entry) {
        if (dns->entry_count >= LIMIT_DNS_NAMES && !dns_make_room(dns)) return CY_ERR(TOO_MANY);
        entry = mem_alloc_zeroed(sizeof *entry);
        if (!entry) return CY_ERR(NO_MEMORY);
        entry->dns = dns;
        entry->hash = hash;
        entry->name_bytes = name_bytes;
        memcpy(entry->name, name, name_bytes);
        entry->next = dns->buckets[hash % DNS_BUCKETS];
        dns->buckets[hash % DNS_BUCKETS] = entry;
        dns->entry_count++;
    }
    entry->used_ms = loop_now_ms(dns->loop);
    *entry_out = entry;
    return CY_OK;
}

/* Takes what can be used of an answer; the shortest TTL counts for all of it. */
static void dns_store(struct dns_entry *entry, const struct ares_addrinfo *answer)
{
    uint32_t count = 0;
    int64_t ttl_ms = LIMIT_DNS_TTL_CEILING_MS;
    for (const struct ares_addrinfo_node *node = answer->nodes; node && count < LIMIT_DNS_ADDRESSES;
         node = node->ai_next) {
        if (node->ai_family != AF_INET && node->ai_family != AF_INET6) continue;
        if ((size_t)node->ai_addrlen > sizeof entry->addresses[0].storage) continue;
        struct address *address = &entry->addresses[count++];
        memset(address, 0, sizeof *address);
        memcpy(&address->storage, node->ai_addr, (size_t)node->ai_addrlen);
        address->bytes = (socklen_t)node->ai_addrlen;
        address_set_port(address, 0);
        if ((int64_t)node->ai_ttl * 1000 < ttl_ms) ttl_ms = (int64_t)node->ai_ttl * 1000;
    }
    if (ttl_ms < LIMIT_DNS_TTL_FLOOR_MS) ttl_ms = LIMIT_DNS_TTL_FLOOR_MS;
    entry->address_count = count;
    entry->err = count ? CY_OK : CY_ERR(NAME_UNKNOWN);
    entry->expires_ms = loop_now_ms(entry->dns->loop) + (uint64_t)(count ? ttl_ms : LIMIT_DNS_RETRY_MS);
}

static void dns_on_result(void *context, int status, int timeouts, struct ares_addrinfo *answer)
{
    (void)timeouts;
    struct dns_entry *entry = context;
    struct dns *dns = entry->dns;
    entry->looking_up = false;
    if (status == ARES_SUCCESS && answer) {
        dns_store(entry, answer);
    } else if (!dns->freeing) {
        entry->err = dns_error_of(status); /* seen only when there is no last good answer */
        entry->expires_ms = loop_now_ms(dns->loop) + LIMIT_DNS_RETRY_MS;
    }
    if (answer) ares_freeaddrinfo(answer);
    while (entry->waiting) {
        struct dns_query *query = entry->waiting;
        entry->waiting = query->next;
        if (dns->freeing)
            dns_finish(dns, query, CY_ERR(CANCELLED));
        else
            dns_finish_from(dns, query, entry);
    }
}

/* -- the interface --------------------------------------------------------------------------------------- */

cy_err dns_new(struct loop *loop, struct dns **dns_out)
{
    struct dns *dns = mem_alloc_zeroed(sizeof *dns);
    if (!dns) return CY_ERR(NO_MEMORY);
    cy_err err = random_hash_seed(&dns->seed);
    if (cy_failed(err)) {
        mem_free(dns);
        return err;
    }
    dns->loop = loop;
    dns->answer_timer.fire = dns_on_answer_timer;
    dns->retry_timer.fire = dns_on_retry_timer;
    dns->done_last = &dns->done_first;
    *dns_out = dns;
    return CY_OK;
}

cy_err dns_set_servers(struct dns *dns, const char *servers)
{
    size_t bytes = strlen(servers) + 1;
    char *copy = mem_alloc(bytes);
    if (!copy) return CY_ERR(NO_MEMORY);
    memcpy(copy, servers, bytes);
    if (dns->channel_started && ares_set_servers_ports_csv(dns->channel, servers) != ARES_SUCCESS) {
        mem_free(copy);
        return CY_ERR(BAD_ADDRESS);
    }
    mem_free(dns->servers);
    dns->servers = copy;
    return CY_OK;
}

void dns_free(struct dns **dns_pointer)
{
    struct dns *dns = *dns_pointer;
    if (!dns) return;
    *dns_pointer = NULL;
    dns->freeing = true;
    if (dns->channel_started)
        ares_destroy(dns->channel); /* calls back for every look-up and closes every socket */
    dns->channel_started = false;
    if (dns->library_started) ares_library_cleanup();
    CHECK(!dns->watches);
    for (struct dns_query *query; (query = dns_take_done(dns));) {
        query->err = CY_ERR(CANCELLED);
        query->address_count = 0;
        query->done(query);
    }
    loop_timer_clear(dns->loop, &dns->answer_timer);
    loop_timer_clear(dns->loop, &dns->retry_timer);
    for (size_t i = 0; i < DNS_BUCKETS; i++)
        while (dns->buckets[i]) dns_forget(dns, dns->buckets[i]);
    mem_free(dns->servers);
    mem_free(dns);
}

/* Lower case, and only what can stand in a name that is looked up. */
static bool dns_normalise(cy_bytes host, char *name)
{
    if (host.count == 0 || host.count > LIMIT_NAME_BYTES) return false;
    for (size_t i = 0; i < host.count; i++) {
        uint8_t byte = host.data[i];
        if (byte <= ' ' || byte >= 0x7f) return false;
        name[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte + 32 : byte);
    }
    name[host.count] = 0;
    return true;
}

void dns_resolve(struct dns *dns, cy_bytes host, struct dns_query *query)
{
    CHECK(!dns->freeing);
    query->dns = dns;
    query->entry = NULL;
    query->next = NULL;
    query->address_count = 0;
    if (!cy_failed(address_from_ip(host, 0, &query->addresses[0]))) {
        query->address_count = 1;
        dns_finish(dns, query, CY_OK);
        return;
    }
    char name[LIMIT_NAME_BYTES + 1];
    struct dns_entry *entry = NULL;
    cy_err err = dns_normalise(host, name) ? CY_OK : CY_ERR(BAD_ADDRESS);
    if (!cy_failed(err)) err = dns_remember(dns, name, host.count, &entry);
    if (!cy_failed(err)) err = dns_start(dns);
    if (cy_failed(err)) {
        dns_finish(dns, query, err);
        return;
    }
    if (!entry->looking_up && entry->expires_ms > loop_now_ms(dns->loop)) {
        dns_finish_from(dns, query, entry);
        return;
    }
    query->entry = entry;
    query->next = entry->waiting;
    entry->waiting = query;
    if (entry->looking_up) return;
    entry->looking_up = true;
    struct ares_addrinfo_hints hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    ares_getaddrinfo(dns->channel, entry->name, NULL, &hints, dns_on_result,
                     entry); /* may call back at once */
    dns_update_timer(dns);
}

void dns_cancel(struct dns_query *query)
{
    struct dns *dns = query->dns;
    if (!dns) return;
    struct dns_entry *entry = query->entry;
    struct dns_query **link = entry ? &entry->waiting : &dns->done_first;
    while (*link != query) {
        CHECK(*link);
        link = &(*link)->next;
    }
    *link = query->next;
    if (!entry && dns->done_last == &query->next) dns->done_last = link;
    if (!entry) dns->done_count--;
    query->dns = NULL;
    query->next = NULL;
}

#undef DNS_BUCKETS
