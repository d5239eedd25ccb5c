/* SPDX-License-Identifier: MIT
 *
 * vm/native/serve_extra.c: what a server has beside its listeners: the access log and the admin listener.
 *
 *   http.serve({access_log, admin}) ──────────► serving.extra ─► opened with the first generation
 *   what configure returns, the same names ─┘    └── a newer generation: another access log; the admin address stays
 *
 * In:   maps that a program made. Out: a log on the server, a second server.
 * Invariant: a file is opened only where the program may write, also after a reload.
 */
#include "vm/base/mem.h"
#include "vm/code/native_table.h"
#include "vm/http/access_log.h"
#include "vm/native/runtime_internal.h"
#include "vm/native/serve_metrics.h"
#include "vm/run/object.h"
#include "vm/sys/path_rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* -- reading --------------------------------------------------------------------------------------------- */

static char *serve_extra_copy(cy_bytes text)
{
    char *copy = mem_alloc(text.count + 1);
    if (copy && text.count) memcpy(copy, text.data, text.count);
    if (copy) copy[text.count] = 0;
    return copy;
}

static bool serve_extra_read_format(cy_bytes word, enum access_log_format *format_out)
{
    static const char *const words[] = {
        [ACCESS_LOG_COMMON] = "common", [ACCESS_LOG_COMBINED] = "combined", [ACCESS_LOG_JSON] = "json"};
    for (size_t i = 0; i < CY_COUNT_OF(words); i++)
        if (cy_bytes_equal(word, cy_bytes_from_text(words[i]))) {
            *format_out = (enum access_log_format)i;
            return true;
        }
    return false;
}

static cy_err serve_extra_read_log(struct vm *vm, cy_value value, struct serve_extra *extra,
                                   struct builder *fault)
{
    cy_value to, format;
    enum access_log_format word = ACCESS_LOG_JSON;
    bool has_format = map_get_text(vm, value, CY_BYTES("format"), &format) && !value_is_nil(format);
    bool good = map_object_count(value) == (has_format ? 2u : 1u) &&
                map_get_text(vm, value, CY_BYTES("to"), &to) && to.tag == TAG_STR &&
                string_bytes(to).count > 0 && !memchr(string_bytes(to).data, 0, string_bytes(to).count);
    if (good && has_format)
        good = format.tag == TAG_STR && serve_extra_read_format(string_bytes(format), &word);
    if (!good) {
        builder_text(
            fault,
            vm_text(
                vm,
                "access_log is {to: \"stdout\" or a path, format: \"json\", \"combined\" or \"common\"}"));
        return CY_ERR(VALUE);
    }
    char *copy = serve_extra_copy(string_bytes(to));
    if (!copy) return CY_ERR(NO_MEMORY);
    mem_free(extra->log_to);
    extra->log_to = copy;
    extra->log_format = (uint8_t)word;
    return CY_OK;
}

static cy_err serve_extra_read_admin(struct vm *vm, cy_bytes text, struct serve_extra *extra,
                                     struct builder *fault)
{
    if (!address_can_listen(text)) {
        builder_printf(fault, vm_text(vm, "admin: \"%.*s\" is no address"), CY_BYTES_ARG(text));
        return CY_ERR(BAD_ADDRESS);
    }
    char *copy = serve_extra_copy(text);
    if (!copy) return CY_ERR(NO_MEMORY);
    mem_free(extra->admin);
    extra->admin = copy;
    return CY_OK;
}

static cy_err serve_extra_read_peers(struct vm *vm, cy_value list, struct serve_proxied *row,
                                     struct builder *fault)
{
    if (list_count(list) == 0 || list_count(list) > LIMIT_PROXY_PROTOCOL_PEERS) {
        builder_printf(fault, vm_text(vm, "proxy_protocol: 1..%d address ranges (PROXY_PROTOCOL_PEERS)"),
                       LIMIT_PROXY_PROTOCOL_PEERS);
        return CY_ERR(VALUE);
    }
    for (size_t i = 0; i < list_count(list); i++) {
        cy_value item = list_get(list, i);
        cy_bytes text = item.tag == TAG_STR ? string_bytes(item) : CY_BYTES_NONE;
        if (cy_failed(address_range_from_text(text, &row->trusted[row->trusted_count]))) {
            builder_printf(
                fault, vm_text(vm, "proxy_protocol: \"%.*s\" is no address range; example: \"10.0.0.0/8\""),
                CY_BYTES_ARG(text));
            return CY_ERR(BAD_ADDRESS);
        }
        row->trusted_count++;
    }
    return CY_OK;
}

/* {"127.0.0.1:80": true, ":8443": ["10.0.0.0/8"]}: listeners by their address, and whom they believe. */
static cy_err serve_extra_read_proxied(struct vm *vm, cy_value map, struct serve_extra *extra,
                                       struct builder *fault)
{
    cy_value key, value;
    for (size_t i = 0; map_entry_at(map, i, &key, &value); i++) {
        bool good = key.tag == TAG_STR && ((value.tag == TAG_BOOL && value.as.b) || value.tag == TAG_LIST);
        if (!good || extra->proxied_count == LIMIT_SERVE_LISTEN) {
            builder_text(
                fault,
                vm_text(vm,
                        "proxy_protocol maps addresses of listen to true or to a list of address ranges"));
            return CY_ERR(VALUE);
        }
        struct serve_proxied *row = mem_alloc_zeroed(sizeof *row);
        if (!row) return CY_ERR(NO_MEMORY);
        extra->proxied[extra->proxied_count++] = row;
        row->address = serve_extra_copy(string_bytes(key));
        if (!row->address) return CY_ERR(NO_MEMORY);
        if (value.tag == TAG_LIST) CY_TRY(serve_extra_read_peers(vm, value, row, fault));
    }
    return CY_OK;
}

bool serve_extra_read(struct vm *vm, cy_bytes name, cy_value value, struct serve_extra *extra,
                      struct builder *fault, cy_err *err_out)
{
    *err_out = CY_OK;
    if (cy_bytes_equal(name, CY_BYTES("access_log")) && (value.tag == TAG_MAP || value_is_nil(value))) {
        if (!value_is_nil(value)) *err_out = serve_extra_read_log(vm, value, extra, fault);
        return true;
    }
    if (cy_bytes_equal(name, CY_BYTES("proxy_protocol")) && (value.tag == TAG_MAP || value_is_nil(value))) {
        if (!value_is_nil(value)) *err_out = serve_extra_read_proxied(vm, value, extra, fault);
        return true;
    }
    if (cy_bytes_equal(name, CY_BYTES("admin")) && (value.tag == TAG_STR || value_is_nil(value))) {
        if (!value_is_nil(value)) *err_out = serve_extra_read_admin(vm, string_bytes(value), extra, fault);
        return true;
    }
    return false;
}

const struct serve_proxied *serve_extra_proxied(const struct serve_extra *extra, const char *address)
{
    for (uint32_t i = 0; i < extra->proxied_count; i++)
        if (strcmp(extra->proxied[i]->address, address) == 0) return extra->proxied[i];
    return NULL;
}

static void serve_extra_drop_proxied(struct serve_extra *extra)
{
    for (uint32_t i = 0; i < extra->proxied_count; i++) {
        mem_free(extra->proxied[i]->address);
        mem_free(extra->proxied[i]);
    }
    extra->proxied_count = 0;
}

void serve_extra_fini(struct serve_extra *extra)
{
    serve_extra_drop_proxied(extra);
    mem_free(extra->log_to);
    mem_free(extra->admin);
    *extra = (struct serve_extra){.log_to = NULL};
}

/* -- the access log -------------------------------------------------------------------------------------- */

/* As the path rules allow it; a FIFO that nobody reads must not hold the worker. */
static cy_err serve_extra_open_file(struct runtime *runtime, const char *path, int *descriptor_out)
{
    const struct beneath_root *root;
    struct builder below;
    if (!(runtime->options->capabilities & CAPABILITY_WRITE)) return CY_ERR(CAPABILITY);
    builder_init(&below);
    cy_err err = path_rules_find(runtime->rules, PATH_WRITE, cy_bytes_from_text(path), &root, &below);
    if (!cy_failed(err))
        err = beneath_open(root, (const char *)below.data, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK, 0640,
                           descriptor_out);
    builder_fini(&below);
    return err;
}

static bool serve_extra_put(void *context, cy_bytes lines)
{
    struct runtime *runtime = context;
    if (runtime->outputs[0]) return output_write(runtime->outputs[0], lines);
    return !cy_failed(runtime_put(runtime, STDOUT_FILENO, lines));
}

static cy_err serve_extra_open_log(struct runtime *runtime, const struct serve_extra *extra,
                                   struct access_log **log_out)
{
    struct access_log_options options = {
        .loop = runtime->loop,
        .format = (enum access_log_format)extra->log_format,
        .counters = serve_metrics_own(runtime),
        .owned_descriptor = -1,
        .put = serve_extra_put,
        .context = runtime,
    };
    if (strcmp(extra->log_to, "stdout") != 0)
        CY_TRY(serve_extra_open_file(runtime, extra->log_to, &options.owned_descriptor));
    return access_log_new(&options, log_out);
}

static void serve_extra_swap_log(struct runtime *runtime, struct access_log *log)
{
    struct access_log *before = runtime->serving.access_log;
    http_server_set_access_log(runtime->server, log);
    runtime->serving.access_log = log;
    access_log_free(&before);
}

/* A moved file: the same name again. The lines so far are in the old one. */
void serve_extra_reopen(struct runtime *runtime)
{
    const struct serve_extra *extra = &runtime->serving.extra;
    if (!runtime->serving.access_log || strcmp(extra->log_to, "stdout") == 0) return;
    int descriptor;
    char why[128];
    cy_err err = serve_extra_open_file(runtime, extra->log_to, &descriptor);
    if (cy_failed(err)) {
        log_write(&runtime->log, LOG_ERROR, "access log %s cannot be opened again: %s; the old file stays",
                  extra->log_to, cy_err_describe(err, false, why, sizeof why));
        return;
    }
    access_log_reopen(runtime->serving.access_log, descriptor);
    log_write(&runtime->log, LOG_INFO, "access log %s was opened again", extra->log_to);
}

/* -- a generation ---------------------------------------------------------------------------------------- */

static bool serve_extra_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* Whether the same listeners want a header, and believe the same peers. */
static bool serve_extra_same_proxied(const struct serve_extra *a, const struct serve_extra *b)
{
    if (a->proxied_count != b->proxied_count) return false;
    for (uint32_t i = 0; i < a->proxied_count; i++) {
        const struct serve_proxied *mine = a->proxied[i], *theirs = serve_extra_proxied(b, mine->address);
        if (!theirs || theirs->trusted_count != mine->trusted_count ||
            memcmp(theirs->trusted, mine->trusted, mine->trusted_count * sizeof mine->trusted[0]) != 0)
            return false;
    }
    return true;
}

/* What configure returned. False after a message. */
static bool serve_extra_of(struct runtime *runtime, cy_value result, struct serve_extra *extra_out)
{
    struct builder fault;
    cy_err err = CY_OK;
    cy_value key, value;
    builder_init(&fault);
    for (size_t i = 0; result.tag == TAG_MAP && !cy_failed(err) && map_entry_at(result, i, &key, &value); i++)
        if (key.tag == TAG_STR)
            (void)serve_extra_read(runtime->vm, string_bytes(key), value, extra_out, &fault, &err);
    if (cy_failed(err))
        fprintf(stderr, "%s: configure: %.*s\n", runtime->options->program_name,
                CY_BYTES_ARG(builder_view(&fault)));
    builder_fini(&fault);
    return !cy_failed(err);
}

bool serve_extra_check(struct runtime *runtime, cy_value result)
{
    struct serve_extra extra = {.log_to = NULL};
    bool good = serve_extra_of(runtime, result, &extra);
    serve_extra_fini(&extra);
    return good;
}

bool serve_extra_begin(struct runtime *runtime, cy_value result)
{
    struct serving *serving = &runtime->serving;
    char why[128];
    if (!serve_extra_of(runtime, result, &serving->extra)) return false;
    if (!serving->extra.log_to) return true;
    cy_err err = serve_extra_open_log(runtime, &serving->extra, &serving->access_log);
    if (cy_failed(err)) {
        fprintf(stderr, "%s: access log %s: %s\n", runtime->options->program_name, serving->extra.log_to,
                cy_err_describe(err, runtime->options->korean, why, sizeof why));
        return false;
    }
    http_server_set_access_log(runtime->server, serving->access_log);
    return true;
}

void serve_extra_change(struct runtime *runtime, cy_value result)
{
    struct serving *serving = &runtime->serving;
    struct serve_extra extra = {.log_to = NULL};
    struct access_log *log = NULL;
    char why[128];
    if (!serving->extra_by_configure || !serve_extra_of(runtime, result, &extra)) {
        serve_extra_fini(&extra);
        return;
    }
    if (!serve_extra_same(extra.admin, serving->extra.admin))
        log_write(&runtime->log, LOG_WARN, "another admin address needs a restart");
    mem_free(extra.admin);
    extra.admin = serving->extra.admin;
    bool same = serve_extra_same(extra.log_to, serving->extra.log_to) &&
                extra.log_format == serving->extra.log_format;
    cy_err err = same || !extra.log_to ? CY_OK : serve_extra_open_log(runtime, &extra, &log);
    if (cy_failed(err)) {
        log_write(&runtime->log, LOG_ERROR, "access log %s: %s; the one before it stays", extra.log_to,
                  cy_err_describe(err, false, why, sizeof why));
        extra.admin = NULL;
        serve_extra_fini(&extra);
        return;
    }
    if (!same) serve_extra_swap_log(runtime, log);
    serving->extra.admin = NULL;
    /* Whom a listener believes stays as it began: a restart or an upgrade changes it. */
    if (!serve_extra_same_proxied(&extra, &serving->extra))
        log_write(&runtime->log, LOG_WARN,
                  "whose PROXY header an address believes (proxy_protocol) stays as it was until a restart");
    serve_extra_drop_proxied(&extra);
    memcpy(extra.proxied, serving->extra.proxied, sizeof extra.proxied);
    extra.proxied_count = serving->extra.proxied_count;
    serving->extra.proxied_count = 0;
    serve_extra_fini(&serving->extra);
    serving->extra = extra;
}

/* After the server's last completion. */
void serve_extra_close(struct runtime *runtime)
{
    access_log_free(&runtime->serving.access_log);
    serve_extra_fini(&runtime->serving.extra);
}
