/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_listen.c: where http.serve listens, and behind which TLS.
 *
 *   http.serve({listen}) ──────────────► rows ─► listening sockets
 *   what configure returns, {listen} ─┘    └── a newer generation: other certificates for the same addresses
 *
 * In:   lists that a program made. Out: listeners of the server.
 * Invariant: the addresses stay the ones of the first generation: a master that is root opens no new ones for its
 *       workers. A generation that names others is served where it can be, and the log says what needs a restart.
 */
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/native/native_tls.h"
#include "vm/native/runtime_internal.h"
#include "vm/native/serve_metrics.h"
#include "vm/run/native_call.h"
#include "vm/run/object.h"

#include <stdio.h>

/* -- reading --------------------------------------------------------------------------------------------- */

static cy_err serve_address_read(struct vm *vm, cy_value item, struct serve_address *row,
                                 struct builder *fault)
{
    cy_value address = item, tls = value_nil();
    *row = (struct serve_address){NULL, NULL, NULL};
    if (item.tag == TAG_MAP) {
        cy_value key, value;
        address = value_nil();
        for (size_t i = 0; map_entry_at(item, i, &key, &value); i++) {
            cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
            if (cy_bytes_equal(name, CY_BYTES("address"))) {
                address = value;
            } else if (cy_bytes_equal(name, CY_BYTES("tls"))) {
                tls = value;
            } else {
                builder_printf(
                    fault,
                    vm_text(vm, "an entry of listen has address (str) and tls (http.tls), not \"%.*s\""),
                    CY_BYTES_ARG(name));
                return CY_ERR(VALUE);
            }
        }
    }
    struct tls_server *server = tls.tag == TAG_NIL ? NULL : opaque_payload(tls, &native_tls_server_type);
    if (tls.tag != TAG_NIL && !server) {
        builder_printf(fault, vm_text(vm, "tls of a listen entry is what http.tls gives, not %s"),
                       value_kind_text(vm, tls));
        return CY_ERR(TYPE);
    }
    cy_bytes text = address.tag == TAG_STR ? string_bytes(address) : CY_BYTES_NONE;
    if (!address_can_listen(text)) {
        builder_printf(
            fault,
            vm_text(vm,
                    "\"%.*s\" is no address; examples: \"127.0.0.1:80\", \"[::1]:80\", \":80\", \"fd@3\", "
                    "\"unix:/run/web.sock\""),
            CY_BYTES_ARG(text));
        return CY_ERR(BAD_ADDRESS);
    }
    row->text = mem_alloc(text.count + 1);
    if (!row->text) return CY_ERR(NO_MEMORY);
    memcpy(row->text, text.data, text.count + 1);
    row->tls = server ? tls_server_ref(server) : NULL;
    return CY_OK;
}

cy_err serve_addresses_read(struct vm *vm, cy_value list, struct serve_address *rows, uint32_t *count_out,
                            struct builder *fault)
{
    uint32_t count = 0;
    *count_out = 0;
    if (list.tag != TAG_LIST || list_count(list) == 0 || list_count(list) > LIMIT_SERVE_LISTEN) {
        builder_printf(fault, vm_text(vm, "listen must name 1..%d addresses (SERVE_LISTEN)"),
                       LIMIT_SERVE_LISTEN);
        return CY_ERR(VALUE);
    }
    for (size_t i = 0; i < list_count(list); i++) {
        cy_err err = serve_address_read(vm, list_get(list, i), &rows[count], fault);
        if (cy_failed(err)) {
            serve_addresses_fini(rows, &count);
            return err;
        }
        count++;
    }
    *count_out = count;
    return CY_OK;
}

void serve_addresses_fini(struct serve_address *rows, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++) {
        mem_free(rows[i].text);
        tls_server_unref(&rows[i].tls);
    }
    *count = 0;
}

/* -- listening ------------------------------------------------------------------------------------------- */

struct serve_taking {
    struct runtime *runtime;
    struct serve_address *row;
};

/* One of the address's descriptors: there is more than one after an upgrade to fewer workers. */
static cy_err serve_take_listener(void *context, int owned_descriptor)
{
    const struct serve_taking *taking = context;
    struct serve_address *row = taking->row;
    struct http_listener *listener;
    const struct serve_proxied *proxied = serve_extra_proxied(&taking->runtime->serving.extra, row->text);
    CY_TRY(http_server_listen_tls(taking->runtime->server, owned_descriptor, row->tls, &listener));
    if (row->listener) http_listener_join(listener, row->listener);
    row->listener = listener;
    return proxied ? http_listener_want_header(listener, proxied->trusted, proxied->trusted_count) : CY_OK;
}

static cy_err serve_take_admin(void *context, int owned_descriptor)
{
    return serve_admin_listen(context, owned_descriptor);
}

bool serve_listen(struct runtime *runtime)
{
    struct serving *serving = &runtime->serving;
    for (uint32_t i = 0; i < serving->listen_count; i++) {
        struct serve_taking taking = {runtime, &serving->listen[i]};
        if (!serve_address_open(runtime, serving->listen[i].text, serve_take_listener, &taking)) return false;
    }
    if (!serving->extra.admin) return true;
    cy_err err = serve_admin_open(runtime);
    if (cy_failed(err)) {
        log_write(&runtime->log, LOG_ERROR, "admin: %s", cy_err_text(err, false));
        return true;
    }
    return serve_address_open(runtime, serving->extra.admin, serve_take_admin, runtime);
}

/* -- a generation's addresses ---------------------------------------------------------------------------- */

static struct serve_address *serve_find(struct serving *serving, const char *text)
{
    for (uint32_t i = 0; i < serving->listen_count; i++)
        if (strcmp(serving->listen[i].text, text) == 0) return &serving->listen[i];
    return NULL;
}

static void serve_swap(struct runtime *runtime, const struct serve_address *rows, uint32_t count)
{
    struct serving *serving = &runtime->serving;
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct serve_address *row = serve_find(serving, rows[i].text);
        if (!row) {
            log_write(&runtime->log, LOG_WARN, "%s is not listened on: a new address needs a restart",
                      rows[i].text);
            continue;
        }
        found++;
        uint32_t retired_count = row->listener ? http_listener_set_tls(row->listener, rows[i].tls) : 0;
        if (retired_count > 0)
            log_write(
                &runtime->log, LOG_INFO,
                "%s: other things are asked of clients now: %u connections from before end after what runs",
                rows[i].text, retired_count);
    }
    if (found < serving->listen_count)
        log_write(&runtime->log, LOG_WARN,
                  "an address that the new generation does not name stays open until a restart");
}

static bool serve_has_addresses(struct runtime *runtime)
{
    if (runtime->checking || runtime->serving.listen_count > 0) return true;
    fprintf(stderr, "%s: neither http.serve nor configure says where to listen (listen)\n",
            runtime->options->program_name);
    return false;
}

bool serve_read_result(struct runtime *runtime, cy_value result, struct serve_addresses *addresses_out)
{
    cy_value list;
    addresses_out->count = 0;
    if (result.tag != TAG_MAP || !map_get_text(runtime->vm, result, CY_BYTES("listen"), &list) ||
        value_is_nil(list))
        return serve_has_addresses(runtime);
    struct builder fault;
    builder_init(&fault);
    cy_err err = serve_addresses_read(runtime->vm, list, addresses_out->rows, &addresses_out->count, &fault);
    if (cy_failed(err))
        fprintf(stderr, "%s: configure: %.*s\n", runtime->options->program_name,
                CY_BYTES_ARG(builder_view(&fault)));
    builder_fini(&fault);
    return !cy_failed(err);
}

void serve_use_addresses(struct runtime *runtime, struct serve_addresses *owned_addresses)
{
    struct serving *serving = &runtime->serving;
    if (owned_addresses->count == 0) return;
    if (serving->ready) {
        serve_swap(runtime, owned_addresses->rows, owned_addresses->count);
        serve_addresses_fini(owned_addresses->rows, &owned_addresses->count);
        return;
    }
    serve_addresses_fini(serving->listen, &serving->listen_count);
    memcpy(serving->listen, owned_addresses->rows, owned_addresses->count * sizeof owned_addresses->rows[0]);
    serving->listen_count = owned_addresses->count;
    owned_addresses->count = 0;
}
