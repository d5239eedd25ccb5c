/* SPDX-License-Identifier: MIT
 *
 * compiler/foreign.c: looks words up in foreign.def.
 */
#include "compiler/foreign.h"

#include "compiler/lexer.h"

static const struct foreign_row foreign_rows[] = {
#define FOREIGN(word, keyword, shape) {word, TOKEN_##keyword, FOREIGN_##shape},
#include "compiler/foreign.def"
#undef FOREIGN
};

const struct foreign_row *foreign_find(cy_bytes word)
{
    for (size_t i = 0; i < CY_COUNT_OF(foreign_rows); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(foreign_rows[i].word))) return &foreign_rows[i];
    return NULL;
}

bool foreign_is_old_word(cy_bytes word)
{
    static const char *const words[] = {"만약3", "if3", "__내장__", "__builtin__", "__sys__", "__syscall__"};
    for (size_t i = 0; i < CY_COUNT_OF(words); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(words[i]))) return true;
    return false;
}
