/* SPDX-License-Identifier: MIT
 *
 * vm/base/builder.h: bytes that grow at the end.
 *
 * In:   pieces. Out: one block, or nothing at all.
 * Invariant: `failed` is sticky: after a failed growth every append is ignored, and the owner checks once, at the
 *            end. No block that a builder of secrets gives back has any of them left in it.
 */
#ifndef CY_BASE_BUILDER_H
#define CY_BASE_BUILDER_H

#include "vm/base/bytes.h"
#include "vm/base/error.h"

#include <stdarg.h>

struct builder {
    uint8_t *data;
    size_t count;
    size_t capacity;
    size_t count_max; /* 0 = no limit */
    bool failed;
    bool past_max;  /* it failed because of count_max, not for want of memory */
    bool is_secret; /* every block is wiped before it is given back */
};

void builder_init(struct builder *builder);
/* For keys, and for what may hold some: growth, builder_clear and builder_fini wipe what they leave behind, also bytes
 * that lie beyond `count`. */
void builder_init_secret(struct builder *builder);
void builder_fini(struct builder *builder);
void builder_clear(struct builder *builder); /* keeps the memory and clears `failed` */
void builder_bytes(struct builder *builder, cy_bytes bytes);
void builder_text(struct builder *builder, const char *text);
void builder_u8(struct builder *builder, uint8_t byte);
void builder_u16(struct builder *builder, uint16_t number); /* little-endian, as the rest */
void builder_u32(struct builder *builder, uint32_t number);
void builder_u64(struct builder *builder, uint64_t number);
void builder_i64_text(struct builder *builder, int64_t number);
/* The shortest text that reads back equal, always with . or e: 1.0, 0.1, 1e300, 1.5e-7; nan, inf, -inf. */
void builder_f64_text(struct builder *builder, double number);
void builder_printf(struct builder *builder, const char *format, ...) CY_PRINTF(2, 3);
void builder_vprintf(struct builder *builder, const char *format, va_list arguments);
/* Makes room for `bytes` more and returns where they go; the caller then adds to count. NULL when failed. */
CY_NODISCARD uint8_t *builder_reserve(struct builder *builder, size_t bytes);
static inline cy_bytes builder_view(const struct builder *builder)
{
    return (cy_bytes){builder->data, builder->count}; /* borrowed until the next append */
}
/* The text with a NUL behind it (not counted), borrowed. NULL when failed. */
const char *builder_text_view(struct builder *builder);
static inline cy_err builder_error(const struct builder *builder)
{
    return builder->failed ? CY_ERR(NO_MEMORY) : CY_OK;
}

#endif
