/* SPDX-License-Identifier: MIT
 *
 * vm/base/limits.c: the rows of limits.def by name and by number, for messages, `crownyc limits` and tests.
 */
#include "vm/base/limits.h"

#include <string.h>

static const struct limit limits_rows[] = {
#define LIMIT(name, value, unit, why) {#name, (value), unit, why},
#include "vm/base/limits.def"
#undef LIMIT
};

const struct limit *limit_find(const char *value_name)
{
    for (size_t i = 0; i < CY_COUNT_OF(limits_rows); i++)
        if (strcmp(limits_rows[i].name, value_name) == 0) return &limits_rows[i];
    return NULL;
}

const struct limit *limit_at(size_t index)
{
    return index < CY_COUNT_OF(limits_rows) ? &limits_rows[index] : NULL;
}
