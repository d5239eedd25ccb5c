/* SPDX-License-Identifier: MIT
 *
 * vm/net/tls_bio.c: the BIO between OpenSSL and a stream's buffers.
 *
 * In:   ciphertext in a received buffer. Out: ciphertext in a list of pool buffers, to be sent as one.
 * Invariant: reading never waits (an empty input is "retry", or the end when the transport has ended); writing takes
 *       everything, so that OpenSSL never has a half-written record. Bounds are the stream's (tls_stream.c).
 * Not here: a socket. The same code runs on every loop, and in tests on none.
 */
#include "vm/base/check.h"
#include "vm/net/tls_internal.h"

#include <openssl/bio.h>
#include <openssl/err.h>

static int tls_bio_read(BIO *bio, char *room, size_t bytes_max, size_t *count_out)
{
    struct tls_pipe *pipe = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *count_out = 0;
    if (!pipe->input) {
        if (!pipe->input_ended) BIO_set_retry_read(bio);
        return 0;
    }
    struct buffer *input = pipe->input;
    size_t count = cy_min_size(bytes_max, input->end - input->begin);
    memcpy(room, input->data + input->begin, count);
    input->begin += (uint32_t)count;
    if (input->begin == input->end) buffer_unref(&pipe->input);
    *count_out = count;
    return count > 0;
}

static bool tls_bio_grow(struct tls_pipe *pipe)
{
    struct buffer *buffer = pipe->output_bulk ? buffer_take_bulk(pipe->buffers) : buffer_take(pipe->buffers);
    if (!buffer) {
        pipe->failed = true;
        return false;
    }
    if (pipe->output_last)
        pipe->output_last->next = buffer;
    else
        pipe->output_first = buffer;
    pipe->output_last = buffer;
    return true;
}

static int tls_bio_write(BIO *bio, const char *bytes, size_t count, size_t *count_out)
{
    struct tls_pipe *pipe = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    *count_out = 0;
    for (size_t done = 0; done < count;) {
        if ((!pipe->output_last || buffer_space(pipe->output_last) == 0) && !tls_bio_grow(pipe)) return 0;
        struct buffer *last = pipe->output_last;
        size_t step = cy_min_size(count - done, buffer_space(last));
        memcpy(last->data + last->end, bytes + done, step);
        last->end += (uint32_t)step;
        done += step;
    }
    pipe->output_bytes += count;
    *count_out = count;
    return 1;
}

static long tls_bio_control(BIO *bio, int command, long number, void *pointer)
{
    const struct tls_pipe *pipe = BIO_get_data(bio);
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_EOF: return pipe && !pipe->input && pipe->input_ended;
    default: return 0;
    }
}

BIO_METHOD *tls_bio_method_new(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    if (!method) return NULL;
    BIO_meth_set_read_ex(method, tls_bio_read);
    BIO_meth_set_write_ex(method, tls_bio_write);
    BIO_meth_set_ctrl(method, tls_bio_control);
    return method;
}

cy_err tls_bio_attach(SSL *ssl, BIO_METHOD *method, struct tls_pipe *pipe)
{
    BIO *bio = BIO_new(method);
    if (!bio) {
        ERR_clear_error();
        return CY_ERR(NO_MEMORY);
    }
    BIO_set_data(bio, pipe);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); /* takes it */
    return CY_OK;
}

void tls_buffers_unref(struct buffer **first)
{
    while (*first) {
        struct buffer *buffer = *first;
        *first = buffer->next;
        buffer->next = NULL;
        buffer_unref(&buffer);
    }
}
