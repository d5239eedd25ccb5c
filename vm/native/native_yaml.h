/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_yaml.h: a YAML document as values, for the native yaml.parse and for tests without a fiber.
 */
#ifndef CY_NATIVE_NATIVE_YAML_H
#define CY_NATIVE_NATIVE_YAML_H

#include "vm/native/yaml_walk.h"
#include "vm/run/value.h"

/* The root node, or nil for an empty document. A node is a map:
 *   {kind: "scalar", line, column, value: str, quoted: bool}
 *   {kind: "list",   line, column, items: [node ...]}
 *   {kind: "map",    line, column, entries: [{key: node, value: node} ...]}     in the file's order, duplicates kept
 * Errors as yaml_walk; NO_MEMORY also past the VM's limit. Nothing is left behind on failure. */
CY_NODISCARD cy_err native_yaml_read(struct vm *vm, cy_bytes text, bool korean, struct yaml_walk_fault *fault,
                                     cy_value *owned_out);

#endif
