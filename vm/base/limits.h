/* SPDX-License-Identifier: MIT
 *
 * vm/base/limits.h: the rows of limits.def as constants, and by name for messages.
 */
#ifndef CY_BASE_LIMITS_H
#define CY_BASE_LIMITS_H

#include "vm/base/base.h"

enum limit_value {
#define LIMIT(name, value, unit, why) LIMIT_##name = (value),
#include "vm/base/limits.def"
#undef LIMIT
};

struct limit {
    const char *name;
    int64_t value;
    const char *unit;
    const char *why;
};
/* The row that bears `value_name` ("HTTP_FIELDS"); NULL when none does. */
const struct limit *limit_find(const char *value_name);
/* The `index`-th row, NULL past the last. */
const struct limit *limit_at(size_t index);

#endif
