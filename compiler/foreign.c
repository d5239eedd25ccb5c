/* SPDX-License-Identifier: MIT
 *
 * compiler/foreign.c: looks words up in foreign.def.
 */
#include "compiler/foreign.h"

#include "compiler/lexer.h"

static const struct foreign_row foreign_rows[] = {
#define FOREIGN(word, keyword, shape) {word, TOKEN_##keyword, FOREIGN_##shape},
#define FOREIGN_NAME(word, name)
#include "compiler/foreign.def"
#undef FOREIGN
#undef FOREIGN_NAME
};
static const struct foreign_name_row {
    const char *word, *name;
} foreign_names[] = {
#define FOREIGN(word, keyword, shape)
#define FOREIGN_NAME(word, name) {word, name},
#include "compiler/foreign.def"
#undef FOREIGN
#undef FOREIGN_NAME
};

const struct foreign_row *foreign_find(cy_bytes word)
{
    for (size_t i = 0; i < CY_COUNT_OF(foreign_rows); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(foreign_rows[i].word))) return &foreign_rows[i];
    return NULL;
}

cy_bytes foreign_name(cy_bytes word)
{
    for (size_t i = 0; i < CY_COUNT_OF(foreign_names); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(foreign_names[i].word)))
            return cy_bytes_from_text(foreign_names[i].name);
    return CY_BYTES_NONE;
}

bool foreign_is_old_word(cy_bytes word)
{
    static const char *const words[] = {"만약3", "if3", "__내장__", "__builtin__", "__sys__", "__syscall__"};
    for (size_t i = 0; i < CY_COUNT_OF(words); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(words[i]))) return true;
    return false;
}
