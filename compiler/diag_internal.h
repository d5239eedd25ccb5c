/* SPDX-License-Identifier: MIT
 *
 * compiler/diag_internal.h: what the writers of messages share.
 */
#ifndef CY_COMPILER_DIAG_INTERNAL_H
#define CY_COMPILER_DIAG_INTERNAL_H

#include "compiler/diag.h"

/* Text of the source, or words from it: what a terminal would not show as itself is replaced. */
void diag_put_text(struct builder *out, cy_bytes text);
void diag_put_message(struct builder *out, const struct diag *diag, bool korean);
/* Whether there is a hint, and its words. */
bool diag_put_hint(struct builder *out, const struct diag *diag, bool korean);
/* The file's name as the user would write it. */
void diag_put_file(struct builder *out, const struct source *source, const struct diag_style *style);
const char *diag_label_text(enum diag_label label, bool korean);

/* diag_text.c, diag_json.c: one message, with all line ends. */
void diag_text_put(struct builder *out, const struct diag *diag, const struct diag_style *style);
void diag_json_put(struct builder *out, const struct diag *diag, const struct diag_style *style);

#endif
