/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_load_tls.c: https for crownyc load.
 *
 * In:   whom to trust. Out: a stream over TLS for each connection. Sessions are resumed where the server allows it, as
 *       browsers and proxies do, unless --no-resume forbids it.
 */
#include "vm/cli/cli_load.h"
#include "vm/http/uri.h"
#include "vm/net/tls.h"
#include "vm/sys/file.h"

#include <stdio.h>

/* The name that the certificate must be for: of the first URL, not of --connect. */
static cy_err cli_load_tls_target(const struct cli_load_plan *plan, struct tls_client *client, bool http2,
                                  struct tls_target **target_out)
{
    uint8_t space[LIMIT_HTTP_TARGET_BYTES];
    struct uri_host host;
    if (plan->base_authority.count > sizeof space || uri_normalise_host(plan->base_authority, space, &host))
        return CY_ERR(BAD_ADDRESS);
    cy_bytes name = host.host;
    if (name.count > 2 && name.data[0] == '[') name = cy_bytes_slice(name, 1, name.count - 1);
    return tls_target_new(client, name, http2 ? CY_BYTES("\x02h2") : CY_BYTES("\x08http/1.1"), target_out);
}

bool cli_load_tls_open(const struct cli_options *options, const struct cli_load_words *words,
                       const struct cli_load_plan *plan, struct tls_target **target_out)
{
    *target_out = NULL;
    if (!plan->secure) return true;
    struct builder ca, fault;
    struct tls_client *client = NULL;
    builder_init(&ca);
    builder_init(&fault);
    cy_err err = words->ca ? file_read(words->ca, LIMIT_LOAD_LIST_BYTES, &ca) : CY_OK;
    struct tls_client_options tls = {
        .use_system = !words->ca && !words->insecure,
        .unverified = words->insecure,
        .full_only = words->no_resume,
    };
    if (words->ca) tls.ca = (struct tls_file){cy_bytes_from_text(words->ca), builder_view(&ca)};
    if (!cy_failed(err)) err = tls_client_new(&tls, &client, &fault);
    if (!cy_failed(err)) err = cli_load_tls_target(plan, client, words->http2, target_out);
    if (cy_failed(err) && fault.count)
        fprintf(stderr, "%s: %.*s\n", options->name, CY_BYTES_ARG(builder_view(&fault)));
    else if (cy_failed(err))
        cli_say_error(options, words->ca ? words->ca : "https", err);
    if (client) tls_client_unref(&client);
    builder_fini(&ca);
    builder_fini(&fault);
    return !cy_failed(err);
}

void cli_load_tls_close(struct tls_target **target)
{
    if (*target) tls_target_unref(target);
}

cy_err cli_load_tls_stream(void *context, struct loop *loop, struct loop_socket *owned_socket,
                           struct stream **stream_out)
{
    struct stream *transport;
    CY_TRY(stream_tcp_new(loop, owned_socket, &transport));
    return tls_target_stream(context, transport, stream_out);
}
