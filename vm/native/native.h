/* SPDX-License-Identifier: MIT
 *
 * vm/native/native.h: the tables of native bodies a VM is opened with.
 */
#ifndef CY_NATIVE_NATIVE_H
#define CY_NATIVE_NATIVE_H

#include "vm/code/native_table.h"
#include "vm/run/native_call.h"

extern const native_body native_table_full[NATIVE_NUMBER_END];
extern const native_body native_table_core[NATIVE_NUMBER_END]; /* rows of group CORE only: needs libc alone */

#endif
