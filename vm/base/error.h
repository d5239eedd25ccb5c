/* SPDX-License-Identifier: MIT
 *
 * vm/base/error.h: cy_err, the value every fallible function returns.
 *
 * In:   rows of error.def.
 * Out:  an 8-byte value, 0 is success. `detail` is a number whose meaning the row states (errno, a limit, an offset).
 * Invariant: a cy_err never owns memory. Text for people is made at the edge, where the thing's name is known.
 */
#ifndef CY_BASE_ERROR_H
#define CY_BASE_ERROR_H

#include "vm/base/base.h"

enum cy_err_code {
    CY_ERR_NONE = 0,
#define ERR(name, number, kind, korean, english) CY_ERR_##name = number,
#include "vm/base/error.def"
#undef ERR
};

typedef struct cy_err {
    uint32_t code; /* enum cy_err_code */
    int32_t detail;
} cy_err;

#define CY_OK ((cy_err){CY_ERR_NONE, 0})
#define CY_ERR(name) ((cy_err){CY_ERR_##name, 0})
#define CY_ERR_DETAIL(name, number) ((cy_err){CY_ERR_##name, (int32_t)(number)})

static inline bool cy_failed(cy_err err) { return CY_UNLIKELY(err.code != CY_ERR_NONE); }
static inline bool cy_is(cy_err err, enum cy_err_code code) { return err.code == (uint32_t)code; }

/* Returns from the calling function when `expression` failed. */
#define CY_TRY(expression)                              \
    do {                                                \
        cy_err cy_try_err_ = (expression);              \
        if (cy_failed(cy_try_err_)) return cy_try_err_; \
    } while (0)

/* Static text of a row; never NULL, also for a code that no row has. `korean` chooses the language. */
const char *cy_err_text(cy_err err, bool korean);
const char *cy_err_kind(cy_err err);
const char *cy_err_name(cy_err err); /* "NO_MEMORY" */

/* The row that fits an errno value (ECONNREFUSED is REFUSED ...), SYSTEM with detail = errno otherwise. */
cy_err cy_err_from_errno(int error_number);

/* "connection refused", or for SYSTEM the operating system's own words. Writes at most `bytes_max` with a final NUL;
 * returns `text`. */
const char *cy_err_describe(cy_err err, bool korean, char *text, size_t bytes_max);

#endif
