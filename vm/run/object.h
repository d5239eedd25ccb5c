/* SPDX-License-Identifier: MIT
 *
 * vm/run/object.h: building and reading strings, lists, maps, records and opaque values. What natives use.
 *
 * In:   plain C data or values. Out: owned values (one reference).
 * Errors: NO_MEMORY (also past the VM's limit), LIMIT (sizes of limits.def), KEY (a map key that cannot be one: a
 *         container of handles, NaN, a function).
 * Not here: the layouts (string.h, list.h, map_object.h, record.h, private to vm/run).
 */
#ifndef CY_RUN_OBJECT_H
#define CY_RUN_OBJECT_H

#include "vm/base/builder.h"
#include "vm/base/bytes.h"
#include "vm/base/error.h"
#include "vm/run/value.h"

/* -- str ------------------------------------------------------------------------------------------------- */
CY_NODISCARD cy_err string_new(struct vm *vm, cy_bytes bytes, cy_value *owned_out);
/* A new str of `count` bytes that the caller fills at once through `data_out`. */
CY_NODISCARD cy_err string_new_blank(struct vm *vm, size_t count, cy_value *owned_out, uint8_t **data_out);
/* A str that grows in a builder first, at most `count_max` bytes (and what the VM may still allocate): a long one is
 * then not copied. string_build_end frees the builder; NO_MEMORY, TOO_LARGE when it has met `count_max`. */
void string_build(struct vm *vm, struct builder *out, size_t count_max);
cy_bytes string_build_view(const struct builder *out);
bool string_build_is_full(const struct builder *out, size_t count_max); /* it failed at `count_max` */
CY_NODISCARD cy_err string_build_end(struct vm *vm, struct builder *owned, size_t count_max,
                                     cy_value *owned_out);
/* The bytes of a str, borrowed while the value lives. CHECKs the tag. A NUL stands behind them (not counted). */
cy_bytes string_bytes(cy_value str);

/* -- list ------------------------------------------------------------------------------------------------ */
CY_NODISCARD cy_err list_new(struct vm *vm, size_t capacity, cy_value *owned_out);
size_t list_count(cy_value list);
/* Item as a value, borrowed from the list. CHECKs the index. */
cy_value list_get(cy_value list, size_t index);
/* Appends; `list` points at the only holder and may be replaced when it was shared. */
CY_NODISCARD cy_err list_append(struct vm *vm, cy_value *list, cy_value owned_item);
/* A list of ints 0..255, one byte each. */
CY_NODISCARD cy_err list_new_bytes(struct vm *vm, cy_bytes bytes, cy_value *owned_out);
/* Lists of `count` items that the caller fills at once through `data_out`. Values are nil until then. */
CY_NODISCARD cy_err list_new_ints(struct vm *vm, size_t count, cy_value *owned_out, int64_t **data_out);
CY_NODISCARD cy_err list_new_floats(struct vm *vm, size_t count, cy_value *owned_out, double **data_out);
CY_NODISCARD cy_err list_new_values(struct vm *vm, size_t count, cy_value *owned_out, cy_value **data_out);
/* The items as they are stored, borrowed; NULL when the list stores another kind, or nothing. */
const int64_t *list_ints(cy_value list);
const double *list_floats(cy_value list);
const cy_value *list_values(cy_value list);
/* Items [begin, end) in a new list; CHECKs the bounds. */
CY_NODISCARD cy_err list_slice(struct vm *vm, cy_value list, size_t begin, size_t end, cy_value *owned_out);
/* Room for `more` items, of whatever kind it has, in a list that nobody else holds: else a copy takes its place. */
CY_NODISCARD cy_err list_own(struct vm *vm, cy_value *list, size_t more);
/* All items of `more` behind those of `list`, as list_append. */
CY_NODISCARD cy_err list_append_all(struct vm *vm, cy_value *list, cy_value more);
/* Moves [index + 1, count) one down over `index`, and one up to make a place for `owned_item` at index. As
 * list_append. */
CY_NODISCARD cy_err list_remove_at(struct vm *vm, cy_value *list, size_t index);
CY_NODISCARD cy_err list_insert(struct vm *vm, cy_value *list, size_t index, cy_value owned_item);

/* -- map: insertion-ordered ------------------------------------------------------------------------------ */
CY_NODISCARD cy_err map_new(struct vm *vm, size_t capacity, cy_value *owned_out);
size_t map_object_count(cy_value map);
/* `*found_out` says whether the key is there; the value is borrowed from the map. KEY when it can be no key, and what
 * hashing or comparing it met: NO_MEMORY, DEPTH, LIMIT. Only KEY may be taken for absent. */
CY_NODISCARD cy_err map_get(struct vm *vm, cy_value map, cy_value key, bool *found_out, cy_value *value_out);
/* False when absent. */
CY_NODISCARD bool map_get_text(struct vm *vm, cy_value map, cy_bytes key, cy_value *value_out);
/* The `index`-th entry in insertion order, both borrowed. False past the last. */
CY_NODISCARD bool map_entry_at(cy_value map, size_t index, cy_value *key_out, cy_value *value_out);
/* Walks the entries in order: `*cursor` starts at 0; false at the end. The map must not change meanwhile. */
CY_NODISCARD bool map_next(cy_value map, size_t *cursor, cy_value *key_out, cy_value *value_out);
CY_NODISCARD cy_err map_set(struct vm *vm, cy_value *map, cy_value owned_key, cy_value owned_value);
CY_NODISCARD cy_err map_set_text(struct vm *vm, cy_value *map, cy_bytes key, cy_value owned_value);
/* Removing keeps the order of the rest. False when the key was not there. */
CY_NODISCARD cy_err map_remove(struct vm *vm, cy_value *map, cy_value key, bool *removed_out);

/* -- range ----------------------------------------------------------------------------------------------- */
/* Ints in a range: 0 when it ends before it begins. CHECKs the tag. */
uint64_t range_item_count(cy_value range);
int64_t range_first(cy_value range);

/* -- record ---------------------------------------------------------------------------------------------- */
/* The `index`-th field: its name and value, borrowed. False past the last. */
CY_NODISCARD bool record_field_at(struct vm *vm, cy_value record, size_t index, cy_value *name_out,
                                  cy_value *value_out);

/* -- opaque: an immutable native thing with a count ------------------------------------------------------ */
struct opaque_type {
    const char *name;                           /* "verdict"; what kind_of and messages say */
    void (*free)(struct vm *vm, void *payload); /* when the last reference goes; must not run bytecode */
    /* x.name; false when there is no such field. `*err_out` is CY_OK before the call and looked at first: when it is
     * set there is no value, whatever was returned. May be NULL. */
    bool (*get_field)(struct vm *vm, void *payload, cy_bytes name, cy_value *owned_out, cy_err *err_out);
};
/* `payload_bytes`: what the payload holds outside of the heap, which counts as the heap's until it is freed; 0 when it
 * lies in the heap. NO_MEMORY past the VM's limit or the task's: the payload is freed then. */
CY_NODISCARD cy_err opaque_new(struct vm *vm, const struct opaque_type *type, void *owned_payload,
                               size_t payload_bytes, cy_value *owned_out);
/* The payload when `value` is an opaque of that type, NULL otherwise. */
void *opaque_payload(cy_value value, const struct opaque_type *type);

/* -- errors as values ------------------------------------------------------------------------------------ */
/* An error record {kind, message, data, stack}. The kind is the row's word. */
CY_NODISCARD cy_err error_new(struct vm *vm, cy_err reason, cy_bytes message, cy_value owned_data,
                              cy_value *owned_out);
/* The same with any word as its kind. */
CY_NODISCARD cy_err error_new_of_kind(struct vm *vm, cy_bytes kind, cy_bytes message, cy_value owned_data,
                                      cy_value *owned_out);
bool value_is_error(struct vm *vm, cy_value value);
/* The row of error.def that an error was made from, whatever a program wrote into it. What a program made itself with
 * `fail` or `throw` is THROWN, but CONFIGURATION with that kind: so do programs report bad configuration. */
cy_err error_reason(struct vm *vm, cy_value error);
/* The call places, innermost first: a list of str, borrowed. Formats them on first use; nil without memory. */
cy_value error_stack(struct vm *vm, cy_value error);
/* Parts of an error record, borrowed. */
cy_bytes error_kind(struct vm *vm, cy_value error);
cy_bytes error_message(struct vm *vm, cy_value error);
cy_value error_data(struct vm *vm, cy_value error);

/* -- any value ------------------------------------------------------------------------------------------- */
/* == of two keys, in one go. Walks shared parts once and charges the budget. NO_MEMORY when there is none to walk down
 * with; DEPTH past LIMIT_KEY_NESTING, LIMIT past LIMIT_KEY_STEPS. */
CY_NODISCARD cy_err value_compare(struct vm *vm, cy_value a, cy_value b, bool *equal_out);
/* == of any values, however deep. `*paused_out`: the turn is over, and the task must call again with the same values in
 * its next one (what it has found so far is kept). LIMIT past LIMIT_WALK_STEPS, for all turns together. Outside of a
 * task it does not pause. */
CY_NODISCARD cy_err value_compare_or_pause(struct vm *vm, cy_value a, cy_value b, bool *equal_out,
                                           bool *paused_out);
/* Index of the first item equal to `item`, -1 when there is none. Pauses and fails as value_compare_or_pause, LIMIT for
 * all items together. */
CY_NODISCARD cy_err list_find(struct vm *vm, cy_value list, cy_value item, int64_t *index_out,
                              bool *paused_out);
/* == in one go, for callers that cannot fail: what cannot be compared is not equal. */
bool value_equal(struct vm *vm, cy_value a, cy_value b);
/* A text made of values: format_begin bounds it by LIMIT_FORMAT_BYTES and by what the VM may still allocate.
 * format_end charges for it and says how it went: CY_OK, TOO_LARGE (the row), or NO_MEMORY. The builder stays the
 * caller's. */
void format_begin(struct vm *vm, struct builder *out);
CY_NODISCARD cy_err format_end(struct vm *vm, const struct builder *out);
/* The text print shows; strings inside containers are quoted. No recursion; past LIMIT_VALUE_DEPTH "…". */
void value_format(struct vm *vm, cy_value value, bool quote, struct builder *out);
/* The English kind word, a record's type name, or the handle's or opaque's type name. Borrowed from the VM. */
const char *value_kind_text(struct vm *vm, cy_value value);

#endif
