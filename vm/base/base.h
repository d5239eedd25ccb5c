/* SPDX-License-Identifier: MIT
 *
 * vm/base/base.h: the handful of words every file may use.
 *
 * In:   nothing but the compiler.
 * Out:  attributes, container_of, min and max.
 * Not here: anything with a body in a .c file.
 */
#ifndef CY_BASE_BASE_H
#define CY_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CY_NODISCARD __attribute__((warn_unused_result))
#define CY_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#define CY_NORETURN __attribute__((noreturn))
#define CY_COLD __attribute__((cold, noinline))
#define CY_LIKELY(x) __builtin_expect(!!(x), 1)
#define CY_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CY_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define CY_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline size_t cy_min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t cy_max_size(size_t a, size_t b) { return a > b ? a : b; }

/* True when a*b or a+b does not fit; the result is stored when it does. Sizes from outside go through these. */
static inline bool cy_mul_overflows(size_t a, size_t b, size_t *product_out)
{
    return __builtin_mul_overflow(a, b, product_out);
}
static inline bool cy_add_overflows(size_t a, size_t b, size_t *sum_out)
{
    return __builtin_add_overflow(a, b, sum_out);
}

#endif
