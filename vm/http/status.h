/* SPDX-License-Identifier: MIT
 *
 * vm/http/status.h: the reason phrases of the status codes we send (RFC 9110 section 15 and friends).
 */
#ifndef CY_HTTP_STATUS_H
#define CY_HTTP_STATUS_H

#include "vm/base/bytes.h"

/* "Not Found"; empty for a code without a registered phrase. */
cy_bytes status_reason(uint16_t status);

#endif
