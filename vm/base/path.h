/* SPDX-License-Identifier: MIT
 *
 * vm/base/path.h: paths as text. No file is looked at.
 *
 * In:   bytes between slashes. Out: views or text.
 * Invariant: a normalised path has no empty and no "." part, ".." only at the start of a relative one, and no slash at
 *            its end unless it is "/"; the path of nothing is ".".
 */
#ifndef CY_BASE_PATH_H
#define CY_BASE_PATH_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"

static inline bool path_is_absolute(cy_bytes path) { return path.count > 0 && path.data[0] == '/'; }
/* The next part behind any slashes; the rest stays in `*rest`. Empty at the end. */
cy_bytes path_next(cy_bytes *rest);
/* Appends the normal form. ".." takes the part before it away, in the text: where that part is a symbolic link the
 * system would have gone elsewhere. Above "/" is "/". */
void path_normalise(cy_bytes path, struct builder *out);
/* Appends a normalised join: `more` when it is absolute. */
void path_join(cy_bytes base, cy_bytes more, struct builder *out);
/* The last part ("" of "/"), and what comes before it ("." when there is none). Views. */
cy_bytes path_name(cy_bytes path);
cy_bytes path_parent(cy_bytes path);
/* The last part's ending with its dot: ".gz" of "a.tar.gz", "" of ".profile" and "a.". A view. */
cy_bytes path_extension(cy_bytes path);
/* True when the normalised `path` is `folder` or below it; `*below_out` is then the rest ("." for itself). */
bool path_is_below(cy_bytes path, cy_bytes folder, cy_bytes *below_out);
/* Appends how to get from the folder `base` to `path`, both normalised and both absolute or both relative. False when
 * that cannot be told: one is absolute, or `base` begins with "..". */
bool path_relative(cy_bytes path, cy_bytes base, struct builder *out);

#endif
