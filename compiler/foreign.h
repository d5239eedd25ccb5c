/* SPDX-License-Identifier: MIT
 *
 * compiler/foreign.h: keywords of other languages, and of the earlier dialect.
 */
#ifndef CY_COMPILER_FOREIGN_H
#define CY_COMPILER_FOREIGN_H

#include "vm/base/bytes.h"

enum foreign_shape { FOREIGN_NONE, FOREIGN_CALL, FOREIGN_LET, FOREIGN_BEHIND };

struct foreign_row {
    const char *word;
    uint8_t keyword; /* enum token_kind */
    uint8_t shape;   /* enum foreign_shape: what must stand around it before fix writes the keyword */
};

/* NULL when the word is none of them. */
const struct foreign_row *foreign_find(cy_bytes word);
/* The name of the prelude that a name of another language means; "" when none. */
cy_bytes foreign_name(cy_bytes word);
/* A word that began a statement of the earlier dialect or called a builtin of it by number (docs/DIALECT.md). */
bool foreign_is_old_word(cy_bytes word);

#endif
