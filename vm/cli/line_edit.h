/* SPDX-License-Identifier: MIT
 *
 * vm/cli/line_edit.h: lines from a terminal, edited and remembered; or from anything else, as they come. libedit stands
 * behind this header and nowhere else.
 *
 * In:   stdin. Out: lines without their end.
 * Invariant: without a terminal no prompt is written and nothing is remembered.
 */
#ifndef CY_CLI_LINE_EDIT_H
#define CY_CLI_LINE_EDIT_H

#include "vm/base/builder.h"
#include "vm/base/error.h"

struct line_edit;

enum line_outcome { LINE_READ, LINE_INTERRUPTED, LINE_END };

/* `terminal`: stdin and stdout are one. `history_path` NULL: nothing is kept. */
CY_NODISCARD cy_err line_edit_open(const char *program_name, bool terminal, const char *history_path,
                                   struct line_edit **edit_out);
void line_edit_close(struct line_edit **edit);
/* Clears `line` and reads the next one into it. INTERRUPTED: Ctrl-C was pressed. */
enum line_outcome line_edit_read(struct line_edit *edit, const char *prompt, struct builder *line);
/* Remembers a line, at most LIMIT_REPL_HISTORY of them, and writes the file. */
void line_edit_remember(struct line_edit *edit, cy_bytes line);

#endif
