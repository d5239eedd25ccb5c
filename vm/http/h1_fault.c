/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1_fault.c: status and text of each row of h1_fault.def.
 */
#include "vm/http/h1_fault.h"

#include "vm/base/check.h"

struct h1_fault_row {
    uint16_t status;
    const char *text;
};
static const struct h1_fault_row h1_fault_rows[H1_FAULT_COUNT] = {
    {200, "no fault"},
#define H1_FAULT(name, status, text) {status, text},
#include "vm/http/h1_fault.def"
#undef H1_FAULT
};

uint16_t h1_fault_status(uint8_t fault)
{
    CHECK(fault < H1_FAULT_COUNT);
    return h1_fault_rows[fault].status;
}

const char *h1_fault_text(uint8_t fault)
{
    CHECK(fault < H1_FAULT_COUNT);
    return h1_fault_rows[fault].text;
}
