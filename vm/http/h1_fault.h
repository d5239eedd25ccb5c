/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_fault.h: enum h1_fault, the reasons for which a message is refused (rows of h1_fault.def).
 */
#ifndef CY_HTTP_H1_FAULT_H
#define CY_HTTP_H1_FAULT_H

#include "vm/base/error.h"

enum h1_fault {
    H1_FAULT_NONE,
#define H1_FAULT(name, status, text) H1_FAULT_##name,
#include "vm/http/h1_fault.def"
#undef H1_FAULT
    H1_FAULT_COUNT
};

uint16_t h1_fault_status(uint8_t fault);  /* 400, 414, 431, 501, 505, ... */
const char *h1_fault_text(uint8_t fault); /* static English text */

#endif
