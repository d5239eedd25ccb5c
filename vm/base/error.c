/* SPDX-License-Identifier: MIT
 *
 * vm/base/error.c: the texts of error.def, and errno values translated to its rows.
 *
 * In:   a cy_err or an errno value.
 * Out:  static text, or a row.
 * Invariant: every function answers for every code, known or not: an error about an error helps nobody.
 * Not here: messages that name the thing that failed (made at the edge).
 */
#include "vm/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char error_unknown_english[] = "unknown error";
static const char error_unknown_korean[] = "알 수 없는 오류";

const char *cy_err_text(cy_err err, bool korean)
{
    switch (err.code) {
    case CY_ERR_NONE: return korean ? "성공" : "success";
#define ERR(name, number, kind, korean_text, english_text) \
    case CY_ERR_##name:                                    \
        return korean ? korean_text : english_text;
#include "vm/base/error.def"
#undef ERR
    }
    return korean ? error_unknown_korean : error_unknown_english;
}

const char *cy_err_kind(cy_err err)
{
    switch (err.code) {
    case CY_ERR_NONE: return "none";
#define ERR(name, number, kind, korean, english) \
    case CY_ERR_##name:                          \
        return kind;
#include "vm/base/error.def"
#undef ERR
    }
    return "unknown";
}

const char *cy_err_name(cy_err err)
{
    switch (err.code) {
    case CY_ERR_NONE: return "NONE";
#define ERR(name, number, kind, korean, english) \
    case CY_ERR_##name:                          \
        return #name;
#include "vm/base/error.def"
#undef ERR
    }
    return "UNKNOWN";
}

cy_err cy_err_from_errno(int error_number)
{
    switch (error_number) {
    case 0: return CY_OK;
    case ENOMEM: return CY_ERR(NO_MEMORY);
    case ENOENT: return CY_ERR(NOT_FOUND);
    case ENOTDIR: return CY_ERR(NOT_FOLDER);
    case EISDIR: return CY_ERR(IS_FOLDER);
    case EEXIST: return CY_ERR(EXISTS);
    case EACCES:
    case EPERM: return CY_ERR(PERMISSION);
    case EFBIG: return CY_ERR(TOO_LARGE);
    case ECANCELED: return CY_ERR(CANCELLED);
    case ETIMEDOUT: return CY_ERR(TIMEOUT);
    case EPIPE: return CY_ERR(CLOSED);
    case ECONNREFUSED: return CY_ERR(REFUSED);
    case ECONNRESET:
    case ECONNABORTED: return CY_ERR(RESET);
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EHOSTDOWN:
    case ENETDOWN: return CY_ERR(UNREACHABLE);
    case EADDRINUSE: return CY_ERR(ADDRESS_IN_USE);
    case EADDRNOTAVAIL: return CY_ERR(BAD_ADDRESS);
    case EMFILE:
    case ENFILE: return CY_ERR_DETAIL(TOO_MANY, error_number);
    default: return CY_ERR_DETAIL(SYSTEM, error_number);
    }
}

const char *cy_err_describe(cy_err err, bool korean, char *text, size_t bytes_max)
{
    if (bytes_max == 0) return text;
    /* strerror, not strerror_r: the latter has two incompatible signatures, and glibc's strerror is safe in
     * threads. */
    if (cy_is(err, CY_ERR_SYSTEM) && err.detail != 0)
        snprintf(text, bytes_max, "%s", strerror(err.detail));
    else
        snprintf(text, bytes_max, "%s", cy_err_text(err, korean));
    return text;
}
