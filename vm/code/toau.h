/* SPDX-License-Identifier: MIT
 *
 * vm/code/toau.h: programs as bytes. docs/TOAU.md describes them one by one.
 *
 * In:   a canonical program, or bytes from anywhere.
 * Out:  bytes that depend on the program only, or a program that is well-formed as a *container*: counts,
 *       sizes, order and checksum hold. Whether its code may run is verify's business (verify.h); callers
 *       use toau_load, which does both.
 * Not here: meaning of code.
 */
#ifndef CY_CODE_TOAU_H
#define CY_CODE_TOAU_H

#include "vm/base/builder.h"
#include "vm/code/program.h"
#include "vm/code/verify.h"

#define TOAU_VERSION 1

/* Appends the file's bytes. */
CY_NODISCARD cy_err toau_write(const struct program *program, struct builder *out);

/* Reads the container. On refusal `failure_out` names the rule and the file offset. Nothing is allocated
 * before its count was compared with the bytes left. */
CY_NODISCARD cy_err toau_read(cy_bytes file, struct program **program_out, struct code_failure *failure_out);

/* Whether bytes begin with the word that a .toau begins with; toau_begins asks for its first byte only. */
bool toau_is_named(cy_bytes bytes);
/* Whether bytes that may be anything are meant as a .toau: its first byte begins no text. Says nothing of the rest. */
bool toau_begins(cy_bytes bytes);

/* Read and verify. The only way a file becomes a program that may run. */
CY_NODISCARD cy_err toau_load(cy_bytes file, struct program **program_out, struct code_failure *failure_out);

#endif
