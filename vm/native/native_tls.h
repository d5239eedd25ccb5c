/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_tls.h: the opaque types of http.tls and http.trust, and their files.
 */
#ifndef CY_NATIVE_NATIVE_TLS_H
#define CY_NATIVE_NATIVE_TLS_H

#include "vm/net/tls.h"
#include "vm/run/object.h"

extern const struct opaque_type native_tls_server_type; /* payload: struct tls_server, one reference */
extern const struct opaque_type native_tls_client_type; /* payload: struct tls_client, one reference */

#endif
