/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_stream.c: a stream of plain bytes over a stream of ciphertext.
 *
 *   transport read ─► pipe.input ─► SSL ─► the reader's buffer        writer's parts ─► SSL ─► pipe.output ─► one
 *                                    └─ handshake, tickets, alerts ─────────────────────────┘    transport write
 *
 * Reading: the transport is read only when OpenSSL has used up what came before; one receive may hold many records,
 *       and all of them that fit are decrypted into the reader's buffer at once.
 * Writing: up to LIMIT_TLS_WRITE_WINDOW_BYTES of ciphertext are made and sent as one; the rest of a long write follows
 *       when that is with the kernel. Small parts are moved together, so that a head and a short body are one record.
 * Invariant: one transport read and one transport write outstanding at most. `transport` NULL means closed; the struct
 *       lives until its transport operations have completed. Operations of the user complete from a transport
 *       completion or from loop_post, never from inside the call that starts them.
 * Buffers: none is held while nothing is on its way; OpenSSL's own are given back by all but the LIMIT_TLS_WARM
 *       connections that were at work last (struct tls_warm). SSL_MODE_RELEASE_BUFFERS would take and give both for
 *       every request: 1,500 instructions of 15,000 that TLS costs.
 * Not here: certificates (tls_server.c, tls_client.c).
 */
#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/net/tls_internal.h"

#include <openssl/err.h>
#include <openssl/x509.h>

struct tls_stream {
    struct stream stream; /* first */
    struct stream *transport;
    SSL *ssl;
    struct tls_pipe pipe;
    struct tls_server *server; /* one of the two */
    struct tls_target *target;
    cy_bytes alpn;         /* of a server's: what is spoken here */
    struct tls_warm *warm; /* the list of that one */
    struct tls_stream *newer, *older;
    struct stream_read cipher_read;
    struct stream_write cipher_write;
    struct buffer *sending;   /* what cipher_write points at */
    struct stream_read *read; /* the user's, outstanding and not posted */
    struct stream_write *write;
    struct stream_ready *ready;
    struct stream_info info;
    uint8_t *peer_certificate; /* owned */
    cy_err failed;             /* final: for reads and writes alike */
    cy_err write_failed;       /* of the transport */
    bool handshaken;
    bool reading, writing; /* cipher_read, cipher_write are outstanding */
    bool ended;            /* the peer's close_notify, or the failure, was met while reading */
    bool shut;             /* our close_notify is made */
    bool shut_transport;   /* ... and the transport's own end goes behind it */
    bool bulk;             /* the last read filled its buffer */
    bool ticket_due;
    bool aborted;
    bool knows_addresses;
    bool is_warm;
};

static struct tls_stream *tls_stream_of(struct stream *stream) { return (struct tls_stream *)stream; }

/* -- memory ---------------------------------------------------------------------------------------------- */

static void tls_stream_cool(struct tls_stream *tls)
{
    struct tls_warm *warm = tls->warm;
    if (!tls->is_warm) return;
    *(tls->newer ? &tls->newer->older : &warm->newest) = tls->older;
    *(tls->older ? &tls->older->newer : &warm->oldest) = tls->newer;
    tls->newer = tls->older = NULL;
    tls->is_warm = false;
    warm->count--;
}

/* It is at work: its buffers stay, those of the one that has been idle longest go. */
static void tls_stream_warm(struct tls_stream *tls)
{
    struct tls_warm *warm = tls->warm;
    if (warm->newest == tls) return;
    tls_stream_cool(tls);
    tls->older = warm->newest;
    *(warm->newest ? &warm->newest->newer : &warm->oldest) = tls;
    warm->newest = tls;
    tls->is_warm = true;
    if (++warm->count <= LIMIT_TLS_WARM) return;
    struct tls_stream *oldest = warm->oldest;
    tls_stream_cool(oldest);
    (void)SSL_free_buffers(oldest->ssl); /* not those in the middle of a record: they are freed with it */
}

static void tls_stream_free(struct tls_stream *tls)
{
    if (tls->transport || tls->reading || tls->writing) return;
    tls_stream_cool(tls);
    SSL_free(tls->ssl);
    tls_server_unref(&tls->server);
    tls_target_unref(&tls->target);
    mem_free(tls->peer_certificate);
    mem_free(tls);
}

static void tls_stream_drop_buffers(struct tls_stream *tls)
{
    buffer_unref(&tls->pipe.input);
    tls_buffers_unref(&tls->pipe.output_first);
    tls->pipe.output_last = NULL;
    tls->pipe.output_bytes = 0;
}

/* -- the transport --------------------------------------------------------------------------------------- */

static void tls_stream_receive(struct tls_stream *tls)
{
    if (tls->reading || tls->pipe.input_ended) return;
    tls->reading = true;
    stream_read_start(tls->transport, &tls->cipher_read);
}

/* Sends what was made, unless a send is on its way: its completion comes here again. */
static void tls_stream_flush(struct tls_stream *tls)
{
    struct tls_pipe *pipe = &tls->pipe;
    if (tls->writing || !pipe->output_first) return;
    if (cy_failed(tls->write_failed)) { /* nobody takes it any more */
        tls_buffers_unref(&pipe->output_first);
        pipe->output_last = NULL;
        pipe->output_bytes = 0;
        return;
    }
    struct loop_send *send = &tls->cipher_write.send;
    struct buffer *last = NULL;
    send->part_count = 0;
    for (struct buffer *at = pipe->output_first; at && send->part_count < LOOP_SEND_PARTS_MAX;
         at = at->next) {
        send->parts[send->part_count++] = buffer_view(at);
        pipe->output_bytes -= buffer_view(at).count;
        last = at;
    }
    tls->sending = pipe->output_first;
    pipe->output_first = last->next;
    if (!pipe->output_first) pipe->output_last = NULL;
    last->next = NULL;
    send->more = tls->write && tls->write->send.more;
    tls->writing = true;
    stream_write_start(tls->transport, &tls->cipher_write);
}

/* -- failures -------------------------------------------------------------------------------------------- */

/* Takes the reason from OpenSSL. An alert that says it to the peer may be among the output. */
static void tls_stream_fail(struct tls_stream *tls)
{
    cy_err err = tls_error_take(tls->ssl);
    if (tls->pipe.failed) err = CY_ERR(NO_MEMORY);
    if (cy_is(err, CY_ERR_TLS_TRUNCATED) && cy_failed(tls->cipher_read.err)) err = tls->cipher_read.err;
    if (!cy_failed(tls->failed)) tls->failed = err;
}

static void tls_stream_check_unanswered(struct tls_stream *tls)
{
    if (tls->pipe.output_bytes > LIMIT_TLS_UNANSWERED_BYTES + LIMIT_TLS_WRITE_WINDOW_BYTES &&
        !cy_failed(tls->failed))
        tls->failed = CY_ERR(LIMIT);
}

/* -- completing what the user waits for ------------------------------------------------------------------ */

static void tls_stream_post_ready(struct tls_stream *tls, cy_err err)
{
    struct stream_ready *ready = tls->ready;
    tls->ready = NULL;
    if (ready) stream_post_ready(&tls->stream, ready, err);
}

/* The last thing done with it: it is the user's again. `ends` was for this send, and nothing was done of it: behind the
 * last bytes comes close_notify, which the user asks for with the end. */
static void tls_stream_give_back(struct stream_write *write, cy_err err)
{
    write->send.ends = false;
    write->err = err;
    write->done(write);
}

static void tls_stream_on_posted_write(struct loop_op *op)
{
    struct loop_send *send = CY_CONTAINER_OF(op, struct loop_send, op);
    tls_stream_give_back(CY_CONTAINER_OF(send, struct stream_write, send), op->err);
}

static void tls_stream_post_write(struct tls_stream *tls, cy_err err)
{
    struct stream_write *write = tls->write;
    tls->write = NULL;
    write->send.op.done = tls_stream_on_posted_write;
    write->send.op.err = err;
    loop_post(tls->stream.loop, &write->send.op);
}

/* -- the handshake --------------------------------------------------------------------------------------- */

/* Who the peer is, where that was asked and answered. */
static void tls_stream_note_peer(struct tls_stream *tls)
{
    X509 *certificate = SSL_get0_peer_certificate(tls->ssl);
    if (!certificate || SSL_get_verify_result(tls->ssl) != X509_V_OK) return;
    if (SSL_get_verify_mode(tls->ssl) == SSL_VERIFY_NONE) return;
    int count = i2d_X509(certificate, NULL);
    if (count <= 0) return;
    tls->peer_certificate = mem_alloc((size_t)count);
    if (!tls->peer_certificate) {
        tls->failed = CY_ERR(NO_MEMORY); /* without it policy would see a stranger */
        return;
    }
    uint8_t *end = tls->peer_certificate;
    i2d_X509(certificate, &end);
    tls->info.peer_certificate = cy_bytes_of(tls->peer_certificate, (size_t)count);
}

static void tls_stream_on_handshaken(struct tls_stream *tls)
{
    const unsigned char *alpn = NULL;
    unsigned alpn_bytes = 0;
    tls->handshaken = true;
    SSL_get0_alpn_selected(tls->ssl, &alpn, &alpn_bytes);
    tls->info.alpn = cy_bytes_of(alpn, alpn_bytes);
    const char *sni = SSL_get_servername(tls->ssl, TLSEXT_NAMETYPE_host_name);
    if (sni) tls->info.sni = cy_bytes_from_text(sni);
    tls_stream_note_peer(tls);
    /* A ticket is sent with the first answer: sent at once it would cost a call of its own. */
    tls->ticket_due =
        tls->server && tls_server_has_tickets(tls->server) && SSL_version(tls->ssl) == TLS1_3_VERSION;
}

static void tls_stream_pump_write(struct tls_stream *tls);

static void tls_stream_handshake(struct tls_stream *tls)
{
    if (tls->handshaken || cy_failed(tls->failed)) return;
    tls_stream_warm(tls);
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1) {
        tls_stream_on_handshaken(tls);
    } else if (SSL_get_error(tls->ssl, result) != SSL_ERROR_WANT_READ) {
        tls_stream_fail(tls);
    }
    tls_stream_flush(tls);
    if (cy_failed(tls->failed)) {
        tls_stream_post_ready(tls, tls->failed);
        if (tls->write) tls_stream_post_write(tls, tls->failed);
    } else if (tls->handshaken) {
        tls_stream_post_ready(tls, CY_OK);
        tls_stream_pump_write(tls);
    } else {
        tls_stream_receive(tls);
    }
}

static void tls_stream_ready(struct stream *stream, struct stream_ready *ready)
{
    struct tls_stream *tls = tls_stream_of(stream);
    CHECK(!tls->ready);
    if (tls->handshaken || cy_failed(tls->failed)) {
        stream_post_ready(stream, ready, tls->failed);
        return;
    }
    tls->ready = ready;
    tls_stream_handshake(tls);
}

/* -- reading --------------------------------------------------------------------------------------------- */

enum tls_outcome { TLS_OUTCOME_WAIT, TLS_OUTCOME_DONE };

/* After SSL_read gave nothing: is there something to say? */
static enum tls_outcome tls_stream_read_nothing(struct tls_stream *tls, int result)
{
    switch (SSL_get_error(tls->ssl, result)) {
    case SSL_ERROR_WANT_READ: return TLS_OUTCOME_WAIT;
    case SSL_ERROR_ZERO_RETURN: tls->ended = true; return TLS_OUTCOME_DONE;
    default:
        tls_stream_fail(tls);
        tls->ended = true;
        return TLS_OUTCOME_DONE;
    }
}

/* Decrypts what is there. DONE: `buffer_out`, or the end, or tls->failed. */
static enum tls_outcome tls_stream_decrypt(struct tls_stream *tls, struct buffer **buffer_out)
{
    *buffer_out = NULL;
    if (tls->ended || cy_failed(tls->failed)) return TLS_OUTCOME_DONE;
    if (!tls->handshaken) return TLS_OUTCOME_WAIT;
    if (!tls->pipe.input && !tls->pipe.input_ended && !SSL_has_pending(tls->ssl)) return TLS_OUTCOME_WAIT;
    tls_stream_warm(tls);
    struct buffer *buffer = tls->bulk ? buffer_take_bulk(tls->pipe.buffers) : buffer_take(tls->pipe.buffers);
    if (!buffer) {
        tls->failed = CY_ERR(NO_MEMORY);
        return TLS_OUTCOME_DONE;
    }
    enum tls_outcome outcome = TLS_OUTCOME_WAIT;
    do {
        size_t count = 0;
        int result = SSL_read_ex(tls->ssl, buffer->data + buffer->end, buffer_space(buffer), &count);
        if (result != 1) {
            outcome = tls_stream_read_nothing(tls, result);
            break;
        }
        buffer->end += (uint32_t)count;
    } while (buffer_space(buffer) > 0 && (tls->pipe.input || SSL_has_pending(tls->ssl)));
    tls->bulk = buffer_space(buffer) == 0;
    tls_stream_check_unanswered(tls);
    if (buffer->end == 0) {
        buffer_unref(&buffer);
        return cy_failed(tls->failed) ? TLS_OUTCOME_DONE : outcome;
    }
    *buffer_out = buffer; /* an end behind it is told by the next read */
    return TLS_OUTCOME_DONE;
}

/* The result of a read that gave no bytes. */
static cy_err tls_stream_read_err(const struct tls_stream *tls) { return tls->failed; }

static void tls_stream_read(struct stream *stream, struct stream_read *read)
{
    struct tls_stream *tls = tls_stream_of(stream);
    struct buffer *buffer;
    CHECK(!tls->read);
    if (tls_stream_decrypt(tls, &buffer) == TLS_OUTCOME_DONE) {
        tls_stream_flush(tls);
        stream_post_read(stream, read, buffer, buffer ? CY_OK : tls_stream_read_err(tls));
        return;
    }
    read->buffer = NULL;
    tls->read = read;
    tls_stream_flush(tls);
    if (tls->handshaken || tls->ready) tls_stream_receive(tls);
}

static void tls_stream_read_cancel(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    struct stream_read *read = tls->read;
    tls->read = NULL;
    if (read) stream_post_read(stream, read, NULL, CY_ERR(CANCELLED));
}

/* Ciphertext came, or its end. The last thing done is the call of the user. */
static void tls_stream_on_received(struct stream_read *cipher_read)
{
    struct tls_stream *tls = CY_CONTAINER_OF(cipher_read, struct tls_stream, cipher_read);
    tls->reading = false;
    if (!tls->transport) {
        buffer_unref(&cipher_read->buffer);
        tls_stream_free(tls);
        return;
    }
    DCHECK(!tls->pipe.input);
    tls->pipe.input = cipher_read->buffer;
    if (!cipher_read->buffer) tls->pipe.input_ended = true;
    tls_stream_handshake(tls);
    if (!tls->read) return;
    struct buffer *buffer;
    enum tls_outcome outcome = tls_stream_decrypt(tls, &buffer);
    tls_stream_flush(tls);
    if (outcome == TLS_OUTCOME_WAIT) {
        tls_stream_receive(tls);
        return;
    }
    struct stream_read *read = tls->read;
    tls->read = NULL;
    read->buffer = buffer;
    read->err = buffer ? CY_OK : tls_stream_read_err(tls);
    read->done(read);
}

/* -- writing --------------------------------------------------------------------------------------------- */

static cy_bytes tls_stream_next_part(struct loop_send *send)
{
    while (send->part_index < send->part_count) {
        cy_bytes rest = cy_bytes_skip(send->parts[send->part_index], send->part_offset);
        if (rest.count > 0) return rest;
        send->part_index++;
        send->part_offset = 0;
    }
    return CY_BYTES_NONE;
}

static bool tls_stream_encrypt(struct tls_stream *tls, cy_bytes plain)
{
    size_t count = 0;
    if (SSL_write_ex(tls->ssl, plain.data, plain.count, &count) != 1 || count != plain.count) {
        tls_stream_fail(tls);
        return false;
    }
    tls->write->send.sent_bytes += count;
    return true;
}

/* Parts that are short are moved together up to a whole record. */
static bool tls_stream_encrypt_gathered(struct tls_stream *tls, cy_bytes part)
{
    struct loop_send *send = &tls->write->send;
    struct buffer *scratch = buffer_take(tls->pipe.buffers);
    if (!scratch) {
        tls->failed = CY_ERR(NO_MEMORY);
        return false;
    }
    while (part.count > 0 && scratch->end < TLS_RECORD_BYTES) {
        size_t count = cy_min_size(part.count, TLS_RECORD_BYTES - scratch->end);
        memcpy(scratch->data + scratch->end, part.data, count);
        scratch->end += (uint32_t)count;
        send->part_offset += count;
        part = tls_stream_next_part(send);
    }
    bool ok = tls_stream_encrypt(tls, buffer_view(scratch));
    buffer_unref(&scratch);
    return ok;
}
_Static_assert(TLS_RECORD_BYTES <= LIMIT_BUFFER_BYTES, "a record's plain bytes fit into a pool buffer");

/* Whole records straight from the part; false when it failed. */
static bool tls_stream_encrypt_some(struct tls_stream *tls, cy_bytes part)
{
    struct loop_send *send = &tls->write->send;
    bool is_last = send->part_index + 1 == send->part_count;
    if (part.count < TLS_RECORD_BYTES && !is_last) return tls_stream_encrypt_gathered(tls, part);
    size_t room = LIMIT_TLS_WRITE_WINDOW_BYTES - tls->pipe.output_bytes; /* above 0 */
    size_t count = cy_min_size(part.count, room < TLS_RECORD_BYTES ? TLS_RECORD_BYTES : room);
    if (count >= TLS_RECORD_BYTES)
        count -= count % TLS_RECORD_BYTES; /* what is left may join the next part */
    send->part_offset += count;
    return tls_stream_encrypt(tls, cy_bytes_slice(part, 0, count));
}

static size_t tls_stream_left(const struct loop_send *send)
{
    size_t count = 0;
    for (uint32_t i = send->part_index; i < send->part_count; i++) count += send->parts[i].count;
    return count - send->part_offset;
}

/* Makes and sends the next of the user's write. It completes in tls_stream_on_sent. */
static void tls_stream_pump_write(struct tls_stream *tls)
{
    if (!tls->write || tls->writing || !tls->handshaken) return;
    struct loop_send *send = &tls->write->send;
    cy_err err = cy_failed(tls->write_failed) ? tls->write_failed : tls->failed;
    if (!cy_failed(err) && tls->shut) err = CY_ERR(CLOSED);
    if (cy_failed(err)) {
        tls_stream_post_write(tls, err);
        return;
    }
    tls_stream_warm(tls);
    cy_bytes part = tls_stream_next_part(send);
    if (part.count > 0 && tls->ticket_due) {
        tls->ticket_due = false;
        if (SSL_new_session_ticket(tls->ssl) != 1) ERR_clear_error(); /* then without one */
    }
    tls->pipe.output_bulk = tls_stream_left(send) > LIMIT_BUFFER_BYTES / 2;
    while (part.count > 0 && tls->pipe.output_bytes < LIMIT_TLS_WRITE_WINDOW_BYTES) {
        if (!tls_stream_encrypt_some(tls, part)) {
            tls_stream_post_write(tls, tls->failed);
            break;
        }
        part = tls_stream_next_part(send);
    }
    tls->pipe.output_bulk = false;
    tls_stream_flush(tls);
    if (tls->write && !tls->writing) tls_stream_post_write(tls, CY_OK); /* it had no bytes */
}

static void tls_stream_write(struct stream *stream, struct stream_write *write)
{
    struct tls_stream *tls = tls_stream_of(stream);
    CHECK(!tls->write);
    write->send.sent_bytes = 0;
    write->send.part_index = 0;
    write->send.part_offset = 0;
    tls->write = write;
    if (cy_failed(tls->failed) && !tls->writing)
        tls_stream_post_write(tls, tls->failed);
    else
        tls_stream_pump_write(tls);
}

static void tls_stream_end_transport(struct tls_stream *tls)
{
    if (!tls->shut_transport || tls->writing || tls->pipe.output_first) return;
    tls->shut_transport = false;
    stream_shutdown_write(tls->transport);
}

/* Ciphertext is with the kernel. The last thing done is the call of the user. */
static void tls_stream_on_sent(struct stream_write *cipher_write)
{
    struct tls_stream *tls = CY_CONTAINER_OF(cipher_write, struct tls_stream, cipher_write);
    tls->writing = false;
    tls_buffers_unref(&tls->sending);
    if (!tls->transport) {
        tls_stream_free(tls);
        return;
    }
    if (cy_failed(cipher_write->err)) tls->write_failed = cipher_write->err;
    tls_stream_flush(tls);
    tls_stream_end_transport(tls);
    struct stream_write *write = tls->write;
    if (!write || (tls->writing && !cy_failed(tls->write_failed))) return;
    if (!cy_failed(tls->write_failed) && tls_stream_next_part(&write->send).count > 0) {
        tls_stream_pump_write(tls);
        return;
    }
    if (!tls->handshaken) return;
    tls->write = NULL;
    tls_stream_give_back(write, tls->write_failed);
}

/* -- the rest of a stream -------------------------------------------------------------------------------- */

static const struct stream_info *tls_stream_info(struct stream *stream, bool with_local)
{
    struct tls_stream *tls = tls_stream_of(stream);
    if (!tls->knows_addresses || with_local) {
        const struct stream_info *below = tls->transport->type->info(tls->transport, with_local);
        tls->info.peer = below->peer;
        tls->info.local = below->local;
        tls->knows_addresses = true;
    }
    return &tls->info;
}

static void tls_stream_set_addresses(struct stream *stream, const struct address *peer,
                                     const struct address *local)
{
    struct tls_stream *tls = tls_stream_of(stream);
    stream_set_addresses(tls->transport, peer, local);
    tls->knows_addresses = false;
}

static bool tls_stream_is_quiet(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    if (tls->ended || cy_failed(tls->failed) || tls->pipe.input || tls->pipe.input_ended) return false;
    return !SSL_has_pending(tls->ssl) && stream_is_quiet(tls->transport);
}

static bool tls_stream_has_come(struct stream *stream)
{
    return stream_has_come(tls_stream_of(stream)->transport);
}

/* Our close_notify, once, where one may be sent. */
static void tls_stream_make_close_notify(struct tls_stream *tls)
{
    if (tls->shut || !tls->handshaken || cy_failed(tls->failed)) return;
    tls->shut = true;
    if (SSL_shutdown(tls->ssl) < 0) ERR_clear_error(); /* then the peer sees an end without it */
}

static void tls_stream_shutdown_write(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    tls_stream_make_close_notify(tls);
    tls->shut_transport = true;
    tls_stream_flush(tls);
    tls_stream_end_transport(tls);
}

static void tls_stream_abort_on_close(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    tls->aborted = true;
    stream_abort_on_close(tls->transport);
}

/* The close_notify of a connection in the middle of a write could only stand behind bytes that are not sent. */
static void tls_stream_close(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    if (!tls->aborted && !tls->write && !tls->writing) {
        tls_stream_make_close_notify(tls);
        tls_stream_flush(tls); /* a transport tries at once, so that it is sent before the close */
    }
    /* Else OpenSSL takes the session for broken and never resumes it. Only an error of TLS's own makes it so: RFC 5246
     * section 7.2.1 has sessions outlive connections that were cut, and RFC 8446 asks for nothing else. */
    if (!tls->aborted || (tls->handshaken && !cy_failed(tls->failed)))
        SSL_set_shutdown(tls->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    tls_stream_post_ready(tls, CY_ERR(CANCELLED));
    if (tls->stream.posted_ready) tls->stream.posted_ready->stream = NULL;
    if (tls->read) {
        stream_post_read(stream, tls->read, NULL, CY_ERR(CANCELLED));
        tls->stream.posted_read->stream = NULL;
    }
    if (tls->write) tls_stream_post_write(tls, CY_ERR(CANCELLED));
    tls->read = NULL;
    tls_stream_drop_buffers(tls);
    stream_close(&tls->transport);
    tls_stream_free(tls);
}

/* A write on its way stays this struct's, which lives until then. */
static struct stream *tls_stream_unwrap(struct stream *stream)
{
    struct tls_stream *tls = tls_stream_of(stream);
    struct stream *transport = tls->transport;
    CHECK(!tls->read && !tls->write && !tls->ready);
    if (tls->reading) return NULL;
    tls_stream_drop_buffers(tls);
    tls->transport = NULL;
    tls_stream_free(tls);
    return transport;
}

static const struct stream_type tls_stream_type = {
    .name = "tls",
    .read = tls_stream_read,
    .read_cancel = tls_stream_read_cancel,
    .write = tls_stream_write,
    .ready = tls_stream_ready,
    .info = tls_stream_info,
    .set_addresses = tls_stream_set_addresses,
    .is_quiet = tls_stream_is_quiet,
    .has_come = tls_stream_has_come,
    .shutdown_write = tls_stream_shutdown_write,
    .abort_on_close = tls_stream_abort_on_close,
    .close = tls_stream_close,
    .unwrap = tls_stream_unwrap,
};

/* -- beginning ------------------------------------------------------------------------------------------- */

static struct tls_stream *tls_stream_new(struct stream *transport, BIO_METHOD *method, SSL *ssl)
{
    struct tls_stream *tls = ssl ? mem_alloc_zeroed(sizeof *tls) : NULL;
    if (!tls) return NULL;
    tls->stream = (struct stream){.type = &tls_stream_type, .loop = transport->loop};
    tls->pipe.buffers = loop_buffers(transport->loop);
    if (cy_failed(tls_bio_attach(ssl, method, &tls->pipe))) {
        mem_free(tls);
        return NULL;
    }
    tls->ssl = ssl;
    tls->transport = transport;
    tls->cipher_read.done = tls_stream_on_received;
    tls->cipher_write.done = tls_stream_on_sent;
    tls->info.secure = true;
    tls->info.descriptor = -1;
    return tls;
}

cy_err tls_server_stream(struct tls_server *server, cy_bytes alpn, struct stream *owned_transport,
                         struct stream **stream_out)
{
    SSL *ssl = tls_server_ssl(server);
    struct tls_stream *tls = tls_stream_new(owned_transport, tls_server_method(server), ssl);
    if (!tls) {
        SSL_free(ssl);
        stream_close(&owned_transport);
        return CY_ERR(NO_MEMORY);
    }
    tls->server = tls_server_ref(server);
    tls->alpn = alpn;
    tls_server_offer(ssl, &tls->alpn);
    tls->warm = tls_server_warm(server);
    *stream_out = &tls->stream;
    return CY_OK;
}

cy_err tls_target_stream(struct tls_target *target, struct stream *owned_transport,
                         struct stream **stream_out)
{
    SSL *ssl = tls_target_ssl(target);
    struct tls_stream *tls = tls_stream_new(owned_transport, tls_target_method(target), ssl);
    if (!tls) {
        SSL_free(ssl);
        stream_close(&owned_transport);
        return CY_ERR(NO_MEMORY);
    }
    tls->target = tls_target_ref(target);
    tls->warm = tls_target_warm(target);
    *stream_out = &tls->stream;
    return CY_OK;
}

bool tls_stream_resumed(struct stream *stream) { return SSL_session_reused(tls_stream_of(stream)->ssl) == 1; }
const char *tls_stream_version(struct stream *stream) { return SSL_get_version(tls_stream_of(stream)->ssl); }
