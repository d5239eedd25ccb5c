/* SPDX-License-Identifier: MIT
 *
 * vm/http/head_write.c: the rare parts of head_write.h.
 */
#include "vm/http/head_write.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/net/loop.h"

void head_open(struct head_writer *writer, struct buffer_pool *pool, size_t bytes_max)
{
    struct buffer *buffer =
        bytes_max <= LIMIT_BUFFER_BYTES ? buffer_take(pool) : buffer_take_sized(pool, bytes_max);
    writer->buffer = buffer;
    writer->failed = !buffer;
    writer->next = buffer ? buffer->data : NULL;
    writer->end = buffer ? buffer->data + buffer->capacity : NULL;
}

void head_put_slow_failure(struct head_writer *writer)
{
    DCHECK(!writer->buffer || writer->failed); /* the bound was too small */
    writer->failed = true;
    writer->end = writer->next;
}

cy_bytes head_format_u64(uint8_t digits[HEAD_DIGITS_MAX], uint64_t number)
{
    size_t begin = HEAD_DIGITS_MAX;
    do {
        digits[--begin] = (uint8_t)('0' + number % 10);
        number /= 10;
    } while (number);
    return cy_bytes_of(digits + begin, HEAD_DIGITS_MAX - begin);
}

struct buffer *head_close(struct head_writer *writer)
{
    struct buffer *buffer = writer->buffer;
    writer->buffer = NULL;
    if (writer->failed) {
        buffer_unref(&buffer);
        return NULL;
    }
    buffer->end = (uint32_t)(writer->next - buffer->data);
    return buffer;
}

cy_err input_append(struct buffer **input, struct buffer *owned_more, struct buffer_pool *pool)
{
    struct buffer *old = *input;
    cy_bytes more = buffer_view(owned_more);
    CHECK(!old || old->begin == old->end || !(loop_buffer_is_piped(old) || loop_buffer_is_piped(owned_more)));
    if (!old || old->begin == old->end) {
        buffer_unref(input);
        *input = owned_more;
        return CY_OK;
    }
    if (buffer_space(old) < more.count) {
        cy_bytes kept = buffer_view(old);
        /* Twice as much each time: a head that comes in small pieces is moved a few times only. */
        struct buffer *larger = buffer_take_sized(pool, 2 * (kept.count + more.count));
        if (!larger) {
            buffer_unref(&owned_more);
            return CY_ERR(NO_MEMORY);
        }
        memcpy(larger->data, kept.data, kept.count);
        larger->end = (uint32_t)kept.count;
        buffer_unref(input);
        *input = old = larger;
    }
    memcpy(old->data + old->end, more.data, more.count);
    old->end += (uint32_t)more.count;
    buffer_unref(&owned_more);
    return CY_OK;
}
