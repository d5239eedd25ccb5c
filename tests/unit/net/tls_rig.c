/* SPDX-License-Identifier: MIT
 *
 * tests/unit/net/tls_rig.c: see tls_rig.h.
 */
#include "tests/unit/net/tls_rig.h"

#include "vm/net/loop_internal.h"

enum { TLS_RIG_TURNS_MAX = 400000 };

static void tls_rig_on_ready(struct stream_ready *ready)
{
    struct tls_rig_end *end = CY_CONTAINER_OF(ready, struct tls_rig_end, ready);
    end->is_ready = true;
    end->ready_err = ready->err;
}

static void tls_rig_on_read(struct stream_read *read)
{
    struct tls_rig_end *end = CY_CONTAINER_OF(read, struct tls_rig_end, read);
    end->reading = false;
    end->read_err = read->err;
    if (read->buffer) {
        ck_assert_uint_gt(buffer_view(read->buffer).count, 0);
        builder_bytes(&end->received, buffer_view(read->buffer));
        buffer_unref(&read->buffer);
        if (end->keep_reading && end->stream) tls_rig_read(end);
    } else if (!cy_failed(read->err)) {
        end->ended = true;
    }
}

static void tls_rig_on_written(struct stream_write *write)
{
    struct tls_rig_end *end = CY_CONTAINER_OF(write, struct tls_rig_end, write);
    ck_assert(!write->send.ends); /* loop.h: for one send, however it completes */
    end->writing = false;
    end->write_err = write->err;
    end->written_bytes = write->send.sent_bytes;
}

void tls_rig_read(struct tls_rig_end *end)
{
    end->reading = true;
    stream_read_start(end->stream, &end->read);
}

void tls_rig_write(struct tls_rig_end *end, cy_bytes bytes)
{
    ck_assert(!end->writing);
    end->writing = true;
    end->write.send.parts[0] = bytes;
    end->write.send.part_count = 1;
    end->write.send.ends = true; /* TLS has its own end behind it, and does nothing of it */
    stream_write_start(end->stream, &end->write);
}

void tls_rig_turns(struct tls_rig *rig, int count)
{
    for (int i = 0; i < count; i++) loop_rig_turn(rig->loop);
}

#define TLS_RIG_UNTIL(condition)                                              \
    do {                                                                      \
        for (int turn = 0; !(condition); turn++) {                            \
            if (turn > TLS_RIG_TURNS_MAX) ck_abort_msg("hangs: " #condition); \
            loop_rig_turn(rig->loop);                                         \
        }                                                                     \
    } while (0)

void tls_rig_turn_until_written(struct tls_rig *rig, struct tls_rig_end *end)
{
    TLS_RIG_UNTIL(!end->writing);
}
void tls_rig_turn_until_read(struct tls_rig *rig, struct tls_rig_end *end) { TLS_RIG_UNTIL(!end->reading); }
void tls_rig_turn_until_received(struct tls_rig *rig, struct tls_rig_end *end, size_t bytes)
{
    TLS_RIG_UNTIL(end->received.count >= bytes || !end->reading);
}
void tls_rig_handshake(struct tls_rig *rig) { TLS_RIG_UNTIL(rig->a.is_ready && rig->b.is_ready); }

static void tls_rig_must(cy_err err, struct builder *fault, const char *what)
{
    if (cy_failed(err))
        ck_abort_msg("%s: %s %.*s", what, cy_err_name(err), CY_BYTES_ARG(builder_view(fault)));
    builder_fini(fault);
}

void tls_rig_init(struct tls_rig *rig, const struct tls_server_options *server_given,
                  const struct tls_client_options *client_given, const char *name)
{
    static const uint8_t seed[TLS_SEED_BYTES] = {1, 2, 3};
    struct builder fault;
    builder_init(&fault);
    if (!rig->authority)
        rig->authority = certificate_new(&(struct certificate_options){.name = "ca", .is_authority = true});
    if (!rig->certificate)
        rig->certificate = certificate_new(
            &(struct certificate_options){.name = "name.test",
                                          .names = "DNS:name.test,DNS:*.wild.test,IP:127.0.0.1",
                                          .issuer = rig->authority});
    struct tls_certificate pair = {.chain = certificate_file("cert.pem", certificate_pem(rig->certificate)),
                                   .key = certificate_file("key.pem", certificate_key_pem(rig->certificate))};
    struct tls_server_options server = {.ticket_seed = seed};
    struct tls_client_options client = {.ca = certificate_file("ca.pem", certificate_pem(rig->authority))};
    if (server_given) server = *server_given;
    if (client_given) client = *client_given;
    if (!server.certificates) {
        server.certificates = &pair;
        server.certificate_count = 1;
    }
    if (client.ca.content.count == 0 && !client.unverified)
        client.ca = certificate_file("ca.pem", certificate_pem(rig->authority));
    tls_rig_must(tls_server_new(&server, &rig->server, &fault), &fault, "server");
    builder_init(&fault);
    tls_rig_must(tls_client_new(&client, &rig->client, &fault), &fault, "client");
    ck_assert(!cy_failed(tls_target_new(rig->client, cy_bytes_from_text(name ? name : "name.test"),
                                        rig->client_alpn, &rig->target)));
    if (!rig->loop) rig->loop = loop_rig_new(0);
}

static void tls_rig_init_end(struct tls_rig_end *end, struct stream *stream, struct stream *below)
{
    builder_fini(&end->received);
    *end = (struct tls_rig_end){.stream = stream, .below = below};
    end->ready.done = tls_rig_on_ready;
    end->read.done = tls_rig_on_read;
    end->write.done = tls_rig_on_written;
    builder_init(&end->received);
}

void tls_rig_connect(struct tls_rig *rig, size_t read_bytes_max)
{
    struct stream *a, *b, *client, *server;
    ck_assert(!cy_failed(loopback_pair(rig->loop, read_bytes_max, &a, &b)));
    ck_assert(!cy_failed(tls_target_stream(rig->target, a, &client)));
    ck_assert(!cy_failed(tls_server_stream(rig->server, rig->server_alpn, b, &server)));
    tls_rig_init_end(&rig->a, client, a);
    tls_rig_init_end(&rig->b, server, b);
    stream_ready_start(server, &rig->b.ready);
    stream_ready_start(client, &rig->a.ready);
}

void tls_rig_close(struct tls_rig *rig)
{
    stream_close(&rig->a.stream);
    stream_close(&rig->b.stream);
    tls_rig_turns(rig, 5);
    ck_assert(!rig->a.reading && !rig->b.reading && !rig->a.writing && !rig->b.writing);
    ck_assert_uint_eq(buffer_pool_lent(loop_buffers(rig->loop)), 0);
}

void tls_rig_fini(struct tls_rig *rig)
{
    tls_rig_close(rig);
    builder_fini(&rig->a.received);
    builder_fini(&rig->b.received);
    tls_target_unref(&rig->target);
    tls_client_unref(&rig->client);
    tls_server_unref(&rig->server);
    certificate_free(&rig->certificate);
    certificate_free(&rig->authority);
    loop_free(&rig->loop);
}
