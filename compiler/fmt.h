/* SPDX-License-Identifier: MIT
 *
 * compiler/fmt.h: one layout for all sources.
 *
 * In:   a source that can be read (crownyc fmt).
 * Out:  the same tokens and comments in the same lines, with the layout below; keywords in one language if asked for.
 *
 *       indentation    four spaces for each line that opens a bracket, one step more for a line that continues an
 *                      expression
 *       spaces         one around binary operators, after `,` and `:`; none inside ( ) [ ] and maps; one inside blocks
 *       blank lines    at most one in a row; none at the start of a block or a file, nor before `}`
 *       comments       behind code they stand one space after it; those of neighbouring lines stand in one column
 *
 * Invariant: line breaks are the author's. What was formatted gives the same tokens at the same line starts (checked
 *            each time), and formatting it again changes nothing.
 */
#ifndef CY_COMPILER_FMT_H
#define CY_COMPILER_FMT_H

#include "compiler/source.h"
#include "vm/base/builder.h"
#include "vm/base/error.h"

enum fmt_keywords { FMT_KEYWORDS_KEPT, FMT_KEYWORDS_KOREAN, FMT_KEYWORDS_ENGLISH };

struct fmt_options {
    enum fmt_keywords keywords;
    bool korean; /* the language of messages */
};

/* Appends the formatted text to `out`. BAD_FORMAT when the source has mistakes: they are appended to `messages`, `out`
 * is as it was. INTERNAL when the check at the end fails; that is our bug, and nothing is appended either. */
CY_NODISCARD cy_err fmt_source(cy_bytes file, cy_bytes text, const struct fmt_options *options,
                               struct builder *out, struct builder *messages);

#endif
