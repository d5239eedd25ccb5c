/* SPDX-License-Identifier: MIT
 *
 * vm/http/h2_response.h: heads of answers as a stream's input has them (H2_INPUT_HEAD_BYTES), for whoever sent the
 * request: the proxy's upstreams (h2_client.c) and the load generator (h2_load.c). For vm/http/h2*.c only.
 */
#ifndef CY_HTTP_H2_RESPONSE_H
#define CY_HTTP_H2_RESPONSE_H

#include "vm/http/message.h"
#include "vm/net/stream.h"

/* Takes the head that the input begins with off its front. `fields`: a table of LIMIT_HTTP_FIELDS. Gives enum h1_fault;
 * NONE: `response_out` is good as long as the buffer and the table are. A status below 200: others follow. */
uint8_t h2_response_read(struct buffer *input, bool request_is_head, struct http_field *fields,
                         struct http_response *response_out);

#endif
