/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_head.c: see h2_head.h.
 */
#include "vm/http/h2_head.h"

#include "vm/base/check.h"
#include "vm/http/field.h"

/* -- out ------------------------------------------------------------------------------------------------- */

static uint8_t h2_head_lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte | 0x20) : byte;
}

static uint8_t *h2_head_put_lengths(uint8_t *next, size_t name_count, size_t value_count)
{
    next[0] = (uint8_t)name_count;
    next[1] = (uint8_t)(name_count >> 8);
    for (int i = 0; i < 4; i++) next[2 + i] = (uint8_t)(value_count >> 8 * i);
    return next + H2_RECORD_BYTES;
}

void h2_head_put(struct head_writer *writer, cy_bytes name, cy_bytes value)
{
    h2_head_put_joined(writer, name, value, CY_BYTES_NONE);
}

void h2_head_put_joined(struct head_writer *writer, cy_bytes name, cy_bytes value, cy_bytes more)
{
    size_t bytes = H2_RECORD_BYTES + name.count + value.count + more.count;
    if (name.count > UINT16_MAX || (size_t)(writer->end - writer->next) < bytes) {
        head_put_slow_failure(writer);
        return;
    }
    uint8_t *next = h2_head_put_lengths(writer->next, name.count, value.count + more.count);
    for (size_t i = 0; i < name.count; i++) next[i] = h2_head_lower(name.data[i]);
    if (value.count) memcpy(next + name.count, value.data, value.count);
    if (more.count) memcpy(next + name.count + value.count, more.data, more.count);
    writer->next += bytes;
}

static nghttp2_nv h2_head_pair(cy_bytes name, cy_bytes value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.data, (uint8_t *)(uintptr_t)value.data, name.count,
                        value.count, NGHTTP2_NV_FLAG_NONE};
}

size_t h2_head_table(cy_bytes block, nghttp2_nv table[H2_HEAD_FIELDS_MAX])
{
    size_t count = 0;
    cy_bytes name, value;
    while (count < H2_HEAD_FIELDS_MAX && h2_head_next(&block, &name, &value))
        table[count++] = h2_head_pair(name, value);
    CHECK(block.count == 0);
    return count;
}

size_t h2_head_trailer_table(cy_bytes section, uint8_t *space, nghttp2_nv table[H2_HEAD_FIELDS_MAX])
{
    size_t count = 0;
    while (section.count > 0 && count < H2_HEAD_FIELDS_MAX) {
        size_t end = cy_bytes_find(section, '\r');
        cy_bytes line = cy_bytes_slice(section, 0, end);
        size_t colon = cy_bytes_find(line, ':');
        section = cy_bytes_skip(section, end + 2);
        if (colon == 0 || colon == line.count) continue;
        for (size_t i = 0; i < colon; i++) space[i] = h2_head_lower(line.data[i]);
        table[count++] = h2_head_pair(cy_bytes_of(space, colon), field_trim(cy_bytes_skip(line, colon + 1)));
        space += colon;
    }
    return count;
}

/* -- in -------------------------------------------------------------------------------------------------- */

bool h2_head_next(cy_bytes *block, cy_bytes *name_out, cy_bytes *value_out)
{
    if (block->count < H2_RECORD_BYTES) return false;
    size_t name_count = cy_load_u16(block->data), value_count = cy_load_u32(block->data + 2);
    CHECK(name_count + value_count <= block->count - H2_RECORD_BYTES);
    *name_out = cy_bytes_of(block->data + H2_RECORD_BYTES, name_count);
    *value_out = cy_bytes_of(block->data + H2_RECORD_BYTES + name_count, value_count);
    *block = cy_bytes_skip(*block, H2_RECORD_BYTES + name_count + value_count);
    return true;
}

/* Room for one more record, whose lengths are written. NULL: no memory. */
static uint8_t *h2_block_reserve(struct h2_block *block, struct buffer_pool *pool, size_t name_count,
                                 size_t value_count)
{
    size_t bytes = H2_RECORD_BYTES + name_count + value_count;
    struct buffer *old = block->buffer;
    if (!old || buffer_space(old) < bytes) {
        size_t used = old ? old->end : 0;
        struct buffer *larger = used + bytes <= LIMIT_BUFFER_BYTES
                                    ? buffer_take(pool)
                                    : buffer_take_sized(pool, 2 * (used + bytes));
        if (!larger) return NULL;
        if (used) memcpy(larger->data, old->data, used);
        larger->end = (uint32_t)used;
        buffer_unref(&block->buffer);
        block->buffer = larger;
    }
    uint8_t *next = h2_head_put_lengths(block->buffer->data + block->buffer->end, name_count, value_count);
    block->buffer->end += (uint32_t)bytes;
    return next;
}

static bool h2_block_is_cookie(cy_bytes name) { return cy_bytes_equal(name, CY_BYTES("cookie")); }

void h2_block_add(struct h2_block *block, struct buffer_pool *pool, cy_bytes name, cy_bytes value)
{
    if (block->too_large || block->failed) return;
    bool is_cookie = h2_block_is_cookie(name);
    if (name.count == 0 || name.data[0] != ':') {
        if (is_cookie) block->cookie_count++;
        if (!is_cookie || block->cookie_count == 1) block->field_count++;
    }
    block->list_bytes += name.count + value.count + 4;
    if (block->list_bytes > LIMIT_HTTP_HEAD_BYTES || block->field_count > LIMIT_HTTP_FIELDS) {
        block->too_large = true;
        return;
    }
    uint8_t *next = h2_block_reserve(block, pool, name.count, value.count);
    if (!next) {
        block->failed = true;
        return;
    }
    memcpy(next, name.data, name.count);
    if (value.count) memcpy(next + name.count, value.data, value.count);
}

void h2_block_join_cookies(struct h2_block *block, struct buffer_pool *pool)
{
    if (block->cookie_count < 2 || block->too_large || block->failed) return;
    size_t bytes = 0, name_count = sizeof "cookie" - 1;
    cy_bytes rest = buffer_view(block->buffer), name, value;
    size_t records_bytes = rest.count;
    while (h2_head_next(&rest, &name, &value))
        if (h2_block_is_cookie(name)) bytes += value.count + 2;
    bytes -= 2; /* "; " stands between two */
    uint8_t *next = h2_block_reserve(block, pool, name_count, bytes);
    if (!next) {
        block->failed = true;
        return;
    }
    memcpy(next, "cookie", name_count);
    next += name_count;
    rest = cy_bytes_slice(buffer_view(block->buffer), 0, records_bytes); /* it may have moved */
    for (bool first = true; h2_head_next(&rest, &name, &value);) {
        if (!h2_block_is_cookie(name)) continue;
        if (!first) {
            *next++ = ';';
            *next++ = ' ';
        }
        first = false;
        if (value.count) memcpy(next, value.data, value.count);
        next += value.count;
    }
}

void h2_block_fini(struct h2_block *block)
{
    buffer_unref(&block->buffer);
    *block = (struct h2_block){0};
}

static cy_bytes h2_block_view(const struct h2_block *block)
{
    return block->buffer ? buffer_view(block->buffer) : CY_BYTES_NONE;
}

uint32_t h2_block_fields(const struct h2_block *block, struct http_field *fields)
{
    cy_bytes rest = h2_block_view(block), name, value;
    uint32_t count = 0, cookies = 0;
    bool is_joined = block->cookie_count > 1; /* then the whole is one more, behind its pieces */
    while (count < LIMIT_HTTP_FIELDS && h2_head_next(&rest, &name, &value)) {
        if (name.count && name.data[0] == ':') continue;
        if (is_joined && h2_block_is_cookie(name) && ++cookies <= block->cookie_count) continue;
        fields[count++] = (struct http_field){name, field_trim(value), field_identify(name), false};
    }
    return count;
}

cy_bytes h2_block_pseudo(const struct h2_block *block, cy_bytes wanted)
{
    cy_bytes rest = h2_block_view(block), name, value;
    while (h2_head_next(&rest, &name, &value))
        if (cy_bytes_equal(name, wanted)) return value;
    return CY_BYTES_NONE;
}

struct buffer *h2_block_trailer(const struct h2_block *block, struct buffer_pool *pool)
{
    cy_bytes rest = h2_block_view(block), name, value;
    if (rest.count == 0 || block->too_large || block->failed || block->list_bytes > LIMIT_HTTP_TRAILER_BYTES)
        return NULL;
    struct head_writer writer;
    head_open(&writer, pool, LIMIT_HTTP_TRAILER_BYTES);
    while (h2_head_next(&rest, &name, &value)) {
        if (name.count == 0 || name.data[0] == ':' || !field_is_token(name) || !field_is_value(value))
            continue;
        head_put_field(&writer, name, value);
    }
    return head_close(&writer);
}
