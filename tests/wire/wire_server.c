/* SPDX-License-Identifier: MIT
 *
 * tests/wire/wire_server.c: vm/http without a VM: a server whose verdicts are fixed, for transcripts and
 * measurements.
 *
 * usage: wire_server LISTEN UPSTREAM_URL [OPTION=VALUE...]
 *   LISTEN       127.0.0.1:0 takes a free port; the first line on stdout is "port N"
 *   options      header_ms keep_alive_ms body_ms half_close_ms grace_ms stop_ms connect_ms first_byte_ms idle_ms
 *                pool_ms tunnel_ms total_ms: the times, in milliseconds; min_rate (bytes/s; 0: the default); head_max
 *                fields_max body_max; connections (the most at a time); loop: epoll or poll
 *
 * Verdicts by path:
 *   /respond/NNN[/BODY]  answers NNN with BODY and a newline
 *   /large/N             answers 200 with N bytes
 *   /later/N             the same as /respond/200, decided N ms after the request
 *   /never               is never decided
 *   /fail                the handler fails
 *   /host/NAME           proxies with Host NAME
 *   /set                 proxies with X-Set: yes, without Cookie
 *   /no-upgrade          proxies without passing on a wish for an upgrade
 *   /counters            answers with some of the server's counters
 *   anything else        proxies
 * SIGTERM drains and ends; the exit code tells that every buffer and connection was given back.
 */
#include "vm/base/check.h"
#include "vm/base/log.h"
#include "vm/base/mem.h"
#include "vm/http/server.h"
#include "vm/net/dns.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

struct wire_server {
    struct loop *loop;
    struct log log;
    struct dns *dns;
    struct http_client *client;
    struct http_server *server;
    struct upstream *upstream;
    bool proxy_only;
    struct http_verdict *proxy_verdict, *no_upgrade_verdict;
};

struct wire_later {
    struct timer timer;
    struct loop *loop;
    struct http_exchange *exchange;
};

static struct loop *wire_signal_loop; /* for the signal handler, which has no other way to it */
static volatile sig_atomic_t wire_stop_asked;

static void wire_on_signal(int number)
{
    (void)number;
    wire_stop_asked = 1;
    loop_wake(wire_signal_loop);
}

static void wire_answer(struct http_exchange *exchange, uint16_t status, cy_bytes body)
{
    struct http_verdict *verdict;
    const struct http_verdict_field field = {CY_BYTES("Content-Type"), CY_BYTES("text/plain")};
    bool bodyless = status == 204 || status == 304;
    cy_err err = http_verdict_respond(status, bodyless ? CY_BYTES_NONE : body, &field, 1, &verdict, NULL);
    if (cy_failed(err)) {
        http_exchange_fail(exchange, CY_BYTES("bad verdict"));
        return;
    }
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void wire_on_later(struct timer *timer)
{
    struct wire_later *later = CY_CONTAINER_OF(timer, struct wire_later, timer);
    struct http_exchange *exchange = later->exchange;
    http_exchange_set_context(exchange, NULL);
    mem_free(later);
    wire_answer(exchange, 200, CY_BYTES("later\n"));
}

static uint64_t wire_number(cy_bytes path, size_t skip, uint64_t max)
{
    uint64_t number = 0;
    cy_bytes digits = cy_bytes_skip(path, skip);
    if (!cy_bytes_parse_u64(cy_bytes_slice(digits, 0, cy_bytes_find(digits, '/')), max, &number)) return 0;
    return number;
}

static void wire_proxy(struct wire_server *self, struct http_exchange *exchange,
                       const struct http_verdict_field *set, uint32_t set_count, cy_bytes remove,
                       cy_bytes host)
{
    struct http_verdict *verdict;
    cy_err err =
        http_verdict_proxy(self->upstream, set, set_count, &remove, remove.count > 0, host, &verdict, NULL);
    CHECK(!cy_failed(err));
    http_exchange_answer(exchange, verdict);
    http_verdict_unref(&verdict);
}

static void wire_respond_large(struct http_exchange *exchange, size_t count)
{
    uint8_t *body = mem_alloc(count);
    CHECK(body);
    memset(body, 'x', count);
    wire_answer(exchange, 200, cy_bytes_of(body, count));
    mem_free(body);
}

static void wire_respond_counters(struct wire_server *self, struct http_exchange *exchange)
{
    struct http_server_counters counters;
    char text[200];
    http_server_read_counters(self->server, &counters);
    snprintf(text, sizeof text, "tunnels %u of %u, evictions %u, switched %u\n", counters.tunnels_open,
             (unsigned)counters.tunnels, (unsigned)counters.evictions,
             (unsigned)counters.responses_by_class[1]);
    wire_answer(exchange, 200, cy_bytes_from_text(text));
}

static void wire_on_request(void *context, struct http_exchange *exchange)
{
    struct wire_server *self = context;
    cy_bytes path = http_exchange_request(exchange)->path;
    if (cy_bytes_start_with(path, CY_BYTES("/respond/"))) {
        cy_bytes body = CY_BYTES("hello\n");
        if (path.count > 13) body = cy_bytes_skip(path, 13);
        wire_answer(exchange, (uint16_t)wire_number(path, 9, 999), body);
    } else if (cy_bytes_start_with(path, CY_BYTES("/large/"))) {
        wire_respond_large(exchange, (size_t)wire_number(path, 7, 64 << 20));
    } else if (cy_bytes_start_with(path, CY_BYTES("/later/"))) {
        struct wire_later *later = mem_alloc_zeroed(sizeof *later);
        CHECK(later);
        *later = (struct wire_later){.loop = self->loop, .exchange = exchange, .timer.fire = wire_on_later};
        http_exchange_set_context(exchange, later);
        loop_timer_set(self->loop, &later->timer, wire_number(path, 7, 60000));
    } else if (cy_bytes_equal(path, CY_BYTES("/never"))) {
        http_exchange_set_context(exchange, NULL);
    } else if (cy_bytes_equal(path, CY_BYTES("/fail"))) {
        http_exchange_fail(exchange, CY_BYTES("as asked"));
    } else if (cy_bytes_equal(path, CY_BYTES("/counters"))) {
        wire_respond_counters(self, exchange);
    } else if (cy_bytes_equal(path, CY_BYTES("/no-upgrade"))) {
        http_exchange_answer(exchange, self->no_upgrade_verdict);
    } else if (cy_bytes_start_with(path, CY_BYTES("/host/"))) {
        wire_proxy(self, exchange, NULL, 0, CY_BYTES_NONE, cy_bytes_skip(path, 6));
    } else if (cy_bytes_equal(path, CY_BYTES("/set"))) {
        const struct http_verdict_field set = {CY_BYTES("X-Set"), CY_BYTES("yes")};
        wire_proxy(self, exchange, &set, 1, CY_BYTES("cookie"), CY_BYTES_NONE);
    } else {
        http_exchange_answer(exchange, self->proxy_verdict);
    }
}

static void wire_on_gone(void *context, struct http_exchange *exchange)
{
    struct wire_later *later = http_exchange_context(exchange);
    (void)context;
    puts("gone");
    fflush(stdout);
    if (!later) return;
    loop_timer_clear(later->loop, &later->timer);
    mem_free(later);
}

static void wire_on_drained(void *context) { loop_stop(((struct wire_server *)context)->loop); }

static bool wire_hook(void *context)
{
    struct wire_server *self = context;
    if (wire_stop_asked != 1) return false;
    wire_stop_asked = 2;
    http_server_drain(self->server, wire_on_drained);
    puts("draining");
    fflush(stdout);
    return true;
}

static uint32_t wire_option(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return (uint32_t)strtoul(argv[i] + length + 1, NULL, 10);
    return 0;
}

static void wire_must(cy_err err, const char *what)
{
    char text[128];
    if (!cy_failed(err)) return;
    fprintf(stderr, "wire_server: %s: %s\n", what, cy_err_describe(err, false, text, sizeof text));
    exit(1);
}

static void wire_listen(struct wire_server *self, const char *text)
{
    cy_bytes host;
    uint16_t port;
    struct address address;
    int descriptor;
    wire_must(address_split(cy_bytes_from_text(text), &host, &port), "listen address");
    wire_must(address_from_ip(host, port, &address), "listen address");
    wire_must(listen_open(&address, false, 4096, &descriptor), "listen");
    wire_must(socket_local_address(descriptor, &address), "listen");
    wire_must(http_server_listen(self->server, descriptor), "listen");
    printf("port %u\n", address_port(&address));
    fflush(stdout);
}

static void wire_open(struct wire_server *self, int argc, char **argv)
{
    const char *backend = NULL, *fault = NULL;
    for (int i = 3; i < argc; i++)
        if (strncmp(argv[i], "loop=", 5) == 0) backend = argv[i] + 5;
    log_init(&self->log);
    wire_must(loop_new(backend, &self->loop), "loop");
    const struct http_client_options client = {.loop = self->loop,
                                               .dns = &self->dns,
                                               .log = &self->log,
                                               .connect_timeout_ms = wire_option(argc, argv, "connect_ms"),
                                               .first_byte_timeout_ms =
                                                   wire_option(argc, argv, "first_byte_ms"),
                                               .idle_timeout_ms = wire_option(argc, argv, "idle_ms"),
                                               .keep_alive_ms = wire_option(argc, argv, "pool_ms"),
                                               .tunnel_timeout_ms = wire_option(argc, argv, "tunnel_ms")};
    wire_must(http_client_new(&client, &self->client), "client");
    cy_err err = upstream_open(self->client, cy_bytes_from_text(argv[2]), &self->upstream, &fault);
    wire_must(err, fault ? fault : "upstream");
    wire_must(http_verdict_proxy(self->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &self->proxy_verdict, NULL),
              "verdict");
    wire_must(http_verdict_proxy(self->upstream, NULL, 0, NULL, 0, CY_BYTES_NONE, &self->no_upgrade_verdict,
                                 NULL),
              "verdict");
    struct http_proxy_terms terms = {.times.total_ms = wire_option(argc, argv, "total_ms"),
                                     .body_bytes_max = wire_option(argc, argv, "body_max")};
    http_verdict_set_terms(self->proxy_verdict, &terms);
    terms.no_upgrade = true;
    http_verdict_set_terms(self->no_upgrade_verdict, &terms);
    const struct http_server_options server = {.loop = self->loop,
                                               .log = &self->log,
                                               .client = self->client,
                                               .context = self,
                                               .on_request = wire_on_request,
                                               .on_gone = wire_on_gone,
                                               .header_timeout_ms = wire_option(argc, argv, "header_ms"),
                                               .keep_alive_ms = wire_option(argc, argv, "keep_alive_ms"),
                                               .body_idle_timeout_ms = wire_option(argc, argv, "body_ms"),
                                               .half_close_ms = wire_option(argc, argv, "half_close_ms"),
                                               .min_rate = wire_option(argc, argv, "min_rate"),
                                               .min_rate_grace_ms = wire_option(argc, argv, "grace_ms"),
                                               .head_bytes_max = wire_option(argc, argv, "head_max"),
                                               .fields_max = wire_option(argc, argv, "fields_max"),
                                               .stop_ms = wire_option(argc, argv, "stop_ms"),
                                               .connections_max = wire_option(argc, argv, "connections")};
    wire_must(http_server_new(&server, &self->server), "server");
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: wire_server LISTEN UPSTREAM_URL [OPTION=VALUE...]\n");
        return 2;
    }
    struct wire_server self = {0};
    wire_open(&self, argc, argv);
    wire_signal_loop = self.loop;
    signal(SIGTERM, wire_on_signal);
    signal(SIGPIPE, SIG_IGN);
    loop_set_hook(self.loop, wire_hook, &self);
    wire_listen(&self, argv[1]);
    wire_must(loop_run(self.loop), "loop");
    http_server_free(&self.server);
    http_verdict_unref(&self.proxy_verdict);
    http_verdict_unref(&self.no_upgrade_verdict);
    upstream_unref(&self.upstream);
    http_client_free(&self.client);
    loop_wake(self.loop);                    /* nothing may be left to wait for */
    wire_must(loop_turn(self.loop), "loop"); /* delivers the cancellations */
    dns_free(&self.dns);
    loop_free(&self.loop); /* CHECKs that nothing is left */
    return 0;
}
