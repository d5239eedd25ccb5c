/* SPDX-License-Identifier: MIT
 *
 * vm/native/native_tls.c: http.tls and http.trust: certificates and policy as values.
 *
 *   path ─► configure: among the generation's files ─ not there, and this is the checker ─► the master reads it, and
 *        │                                                                                  checks again
 *        └► a process without workers: read now
 *   text that begins with "-----BEGIN" is the content itself
 *
 * In:   maps of options. Out: opaque values that listeners (http.serve, configure) and upstreams take.
 * Invariant: a worker reads no file: what the checker saw is byte for byte what is served.
 * Not here: TLS itself (vm/net/tls.h).
 */
#include "vm/native/native_tls.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/server.h"
#include "vm/native/native_bodies.h"
#include "vm/native/option.h"
#include "vm/native/runtime_internal.h"

/* What one holds outside of the heap, about; OpenSSL does not say. With the 140 authorities of a system a trust takes
 * 825 KiB (RSS of 41 of them less that of 11). */
enum { NATIVE_TRUST_BYTES = 1 << 20, NATIVE_TLS_BYTES = 128 << 10 };

static void native_tls_server_free(struct vm *vm, void *payload)
{
    struct tls_server *server = payload;
    (void)vm;
    tls_server_unref(&server);
}
static void native_tls_client_free(struct vm *vm, void *payload)
{
    struct tls_client *client = payload;
    (void)vm;
    tls_client_unref(&client);
}
const struct opaque_type native_tls_server_type = {"tls", native_tls_server_free, NULL};
const struct opaque_type native_tls_client_type = {"trust", native_tls_client_free, NULL};

/* -- files ----------------------------------------------------------------------------------------------- */

/* What was read for one call. */
struct native_tls_content {
    struct native_tls_content *next;
    struct builder bytes;
};
struct native_tls_files {
    struct native_call *call;
    const char *native;
    struct native_tls_content *read;
    bool wanting; /* the checker asks the master for some of them */
};

static void native_tls_files_fini(struct native_tls_files *files)
{
    while (files->read) {
        struct native_tls_content *content = files->read;
        files->read = content->next;
        builder_fini(&content->bytes);
        mem_free(content);
    }
}

/* `index` of the certificate at fault, -1: none; the program finds the place where it was named. */
static bool native_tls_fail(struct native_tls_files *files, cy_err err, int64_t index, cy_bytes message)
{
    struct native_call *call = files->call;
    cy_value data = value_nil();
    if (index >= 0 && !cy_failed(map_new(call->vm, 1, &data)) &&
        cy_failed(map_set_text(call->vm, &data, CY_BYTES("certificate"), value_int(index)))) {
        value_unref(call->vm, data);
        data = value_nil();
    }
    native_fail_data(call, err, data, "%s: %.*s", files->native, CY_BYTES_ARG(message));
    return false;
}

static bool native_tls_fail_text(struct native_tls_files *files, const char *text)
{
    return native_tls_fail(files, CY_ERR(VALUE), -1, cy_bytes_from_text(text));
}

static bool native_tls_fail_file(struct native_tls_files *files, cy_err err, int64_t index, cy_bytes path)
{
    struct builder text;
    char why[128];
    builder_init(&text);
    builder_printf(&text, "%.*s: %s", CY_BYTES_ARG(path),
                   cy_err_describe(err, vm_korean(files->call->vm), why, sizeof why));
    native_tls_fail(files, err, index, builder_view(&text));
    builder_fini(&text);
    return false;
}

static bool native_tls_read_now(struct native_tls_files *files, cy_bytes path, int64_t index,
                                struct tls_file *out)
{
    struct runtime *runtime = runtime_of(files->call->vm);
    struct native_tls_content *content = mem_alloc_zeroed(sizeof *content);
    cy_err err = content ? CY_OK : CY_ERR(NO_MEMORY);
    if (content) {
        content->next = files->read;
        files->read = content;
        builder_init_secret(&content->bytes);
        err = generation_read_file(&runtime->plan, (const char *)path.data, &content->bytes);
        out->content = builder_view(&content->bytes);
    }
    return !cy_failed(err) || native_tls_fail_file(files, err, index, path);
}

/* False: the call has failed. An empty content with `wanting`: not known yet. */
static bool native_tls_file(struct native_tls_files *files, cy_value value, int64_t index,
                            struct tls_file *out)
{
    struct runtime *runtime = runtime_of(files->call->vm);
    *out = (struct tls_file){CY_BYTES_NONE, CY_BYTES_NONE};
    if (value.tag != TAG_STR) return true;
    cy_bytes text = string_bytes(value);
    if (cy_bytes_start_with(text, CY_BYTES("-----BEGIN"))) {
        *out = (struct tls_file){CY_BYTES("the given text"), text};
        return true;
    }
    out->path = text;
    if (text.count == 0 || cy_bytes_find(text, 0) < text.count)
        return native_tls_fail_file(files, CY_ERR(VALUE), index, text);
    const struct configuring *configuring = runtime_configuring(runtime, files->call->instance);
    if (!runtime->link && !runtime->checking) return native_tls_read_now(files, text, index, out);
    cy_err err = CY_ERR(UNSUPPORTED); /* workers read nothing: only configure is given files */
    if (configuring && generation_find_extra(configuring->extras, text, &out->content, &err)) {
        if (!cy_failed(err)) return true;
    } else if (configuring && runtime->checking) {
        generation_want(&runtime->wanted, text);
        files->wanting = true;
        return true;
    }
    return native_tls_fail_file(files, err, index, text);
}

static void native_tls_never(void *operation) { (void)operation; }

/* The check ends here, in the middle of configure; it begins anew with the files that were asked for. */
static enum native_outcome native_tls_want(struct native_call *call)
{
    runtime_request_exit(runtime_of(call->vm), MASTER_CHECK_WANTS);
    native_wait(call, native_tls_never, NULL);
    return NATIVE_WAIT;
}

/* -- http.tls -------------------------------------------------------------------------------------------- */

static const char *const native_tls_versions[] = {"1.2", "1.3", NULL};
static const char *const native_tls_modes[] = {"off", "optional", "required", NULL};

static enum tls_version native_tls_version(cy_value value)
{
    return value.tag == TAG_INT ? (enum tls_version)(TLS_VERSION_1_2 + value.as.i) : TLS_VERSION_DEFAULT;
}

/* One of `certificates`: {cert, key, ocsp}. */
static bool native_tls_certificate(struct native_tls_files *files, cy_value map, int64_t index,
                                   struct tls_certificate *out)
{
    const char *wanted = vm_text(
        files->call->vm, "a certificate is {cert: str, key: str, ocsp: str}, the last may be left out");
    cy_value key, value, cert = value_nil(), secret = value_nil(), ocsp = value_nil();
    if (map.tag != TAG_MAP) return native_tls_fail(files, CY_ERR(TYPE), index, cy_bytes_from_text(wanted));
    for (size_t i = 0; map_entry_at(map, i, &key, &value); i++) {
        cy_bytes name = key.tag == TAG_STR ? string_bytes(key) : CY_BYTES_NONE;
        if (value.tag == TAG_NIL) continue;
        if (cy_bytes_equal(name, CY_BYTES("cert")) && value.tag == TAG_STR)
            cert = value;
        else if (cy_bytes_equal(name, CY_BYTES("key")) && value.tag == TAG_STR)
            secret = value;
        else if (cy_bytes_equal(name, CY_BYTES("ocsp")) && value.tag == TAG_STR)
            ocsp = value;
        else
            return native_tls_fail(files, CY_ERR(VALUE), index, cy_bytes_from_text(wanted));
    }
    if (cert.tag == TAG_NIL || secret.tag == TAG_NIL)
        return native_tls_fail(files, CY_ERR(VALUE), index, cy_bytes_from_text(wanted));
    return native_tls_file(files, cert, index, &out->chain) &&
           native_tls_file(files, secret, index, &out->key) &&
           native_tls_file(files, ocsp, index, &out->ocsp);
}

enum {
    NATIVE_TLS_CERTIFICATES,
    NATIVE_TLS_MIN,
    NATIVE_TLS_MAX,
    NATIVE_TLS_CA,
    NATIVE_TLS_CRL,
    NATIVE_TLS_MODE,
    NATIVE_TLS_DEPTH,
    NATIVE_TLS_ROWS
};
static const struct option_row native_tls_rows[NATIVE_TLS_ROWS] = {
    [NATIVE_TLS_CERTIFICATES] = {"certificates", OPTION_LIST, 0, 0, NULL},
    [NATIVE_TLS_MIN] = {"min_version", OPTION_WORD, 0, 0, native_tls_versions},
    [NATIVE_TLS_MAX] = {"max_version", OPTION_WORD, 0, 0, native_tls_versions},
    [NATIVE_TLS_CA] = {"client_ca", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TLS_CRL] = {"client_crl", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TLS_MODE] = {"client_certificate", OPTION_WORD, 0, 0, native_tls_modes},
    [NATIVE_TLS_DEPTH] = {"client_depth", OPTION_INT, 0, 100, NULL},
};

static bool native_tls_read_options(struct native_tls_files *files, const cy_value *values,
                                    struct tls_certificate *certificates, struct tls_server_options *options)
{
    for (uint32_t i = 0; i < options->certificate_count; i++)
        if (!native_tls_certificate(files, list_get(values[NATIVE_TLS_CERTIFICATES], i), i, &certificates[i]))
            return false;
    options->version_min = native_tls_version(values[NATIVE_TLS_MIN]);
    options->version_max = native_tls_version(values[NATIVE_TLS_MAX]);
    if (options->version_max && options->version_min > options->version_max)
        return native_tls_fail_text(files, vm_text(files->call->vm, "min_version is above max_version"));
    if (!native_tls_file(files, values[NATIVE_TLS_CA], -1, &options->client_ca) ||
        !native_tls_file(files, values[NATIVE_TLS_CRL], -1, &options->client_crl))
        return false;
    /* An authority without a word means that its certificate is required. */
    bool has_ca = values[NATIVE_TLS_CA].tag == TAG_STR;
    options->client_certificate = has_ca ? TLS_CLIENT_CERTIFICATE_REQUIRED : TLS_CLIENT_CERTIFICATE_OFF;
    if (values[NATIVE_TLS_MODE].tag == TAG_INT)
        options->client_certificate = (enum tls_client_certificate)values[NATIVE_TLS_MODE].as.i;
    options->has_client_depth = values[NATIVE_TLS_DEPTH].tag == TAG_INT;
    if (options->has_client_depth) options->client_depth = (uint32_t)values[NATIVE_TLS_DEPTH].as.i;
    return true;
}

static enum native_outcome native_tls_make(struct native_tls_files *files, struct tls_server_options *options)
{
    struct native_call *call = files->call;
    struct runtime *runtime = runtime_of(call->vm);
    struct tls_server *server = NULL;
    struct builder fault;
    uint32_t failed_index = UINT32_MAX;
    cy_err err = runtime_tls_seed(runtime, &options->ticket_seed);
    builder_init(&fault);
    options->failed_index = &failed_index;
    if (!cy_failed(err)) err = tls_server_new(options, &server, &fault);
    if (cy_failed(err)) {
        if (fault.count == 0) builder_text(&fault, cy_err_text(err, vm_korean(call->vm)));
        native_tls_fail(files, err, failed_index == UINT32_MAX ? -1 : (int64_t)failed_index,
                        builder_view(&fault));
    }
    builder_fini(&fault);
    if (cy_failed(err)) return NATIVE_FAIL;
    cy_value result;
    err = opaque_new(call->vm, &native_tls_server_type, server, NATIVE_TLS_BYTES, &result);
    return cy_failed(err) ? native_fail_reason(call, err, "http.tls") : native_return(call, result);
}

enum native_outcome native_http_tls(struct native_call *call)
{
    cy_value values[NATIVE_TLS_ROWS];
    struct tls_server_options options = {0};
    struct native_tls_files files = {.call = call, .native = "http.tls"};
    if (!option_read(call, 0, "http.tls", native_tls_rows, NATIVE_TLS_ROWS, values)) return NATIVE_FAIL;
    size_t count =
        values[NATIVE_TLS_CERTIFICATES].tag == TAG_LIST ? list_count(values[NATIVE_TLS_CERTIFICATES]) : 0;
    if (count == 0 || count > LIMIT_TLS_CERTIFICATES)
        return native_fail(call, CY_ERR(VALUE),
                           "http.tls: certificates must name 1..%d of them (TLS_CERTIFICATES)",
                           LIMIT_TLS_CERTIFICATES);
    struct tls_certificate *certificates = mem_alloc_zeroed(count * sizeof *certificates);
    if (!certificates) return native_fail_reason(call, CY_ERR(NO_MEMORY), "http.tls");
    options.certificates = certificates;
    options.certificate_count = (uint32_t)count;
    enum native_outcome outcome = NATIVE_FAIL;
    if (native_tls_read_options(&files, values, certificates, &options))
        outcome = files.wanting ? native_tls_want(call) : native_tls_make(&files, &options);
    native_tls_files_fini(&files);
    mem_free(certificates);
    return outcome;
}

enum native_outcome native_http_tls_has(struct native_call *call)
{
    struct tls_server *server = opaque_payload(call->args[0], &native_tls_server_type);
    if (!server)
        return native_fail(call, CY_ERR(TYPE), "http.tls_has: argument 1 must be what http.tls gives, not %s",
                           value_kind_text(call->vm, call->args[0]));
    return native_return(call, value_bool(tls_server_has_name(server, string_bytes(call->args[1]))));
}

/* -- http.trust ------------------------------------------------------------------------------------------ */

enum {
    NATIVE_TRUST_CA,
    NATIVE_TRUST_CRL,
    NATIVE_TRUST_VERIFY,
    NATIVE_TRUST_CERTIFICATE,
    NATIVE_TRUST_KEY,
    NATIVE_TRUST_MIN,
    NATIVE_TRUST_MAX,
    NATIVE_TRUST_DEPTH,
    NATIVE_TRUST_ROWS
};
static const struct option_row native_trust_rows[NATIVE_TRUST_ROWS] = {
    [NATIVE_TRUST_CA] = {"ca", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TRUST_CRL] = {"crl", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TRUST_VERIFY] = {"verify", OPTION_BOOL, 0, 0, NULL},
    [NATIVE_TRUST_CERTIFICATE] = {"certificate", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TRUST_KEY] = {"key", OPTION_STR_OR_NIL, 0, 0, NULL},
    [NATIVE_TRUST_MIN] = {"min_version", OPTION_WORD, 0, 0, native_tls_versions},
    [NATIVE_TRUST_MAX] = {"max_version", OPTION_WORD, 0, 0, native_tls_versions},
    [NATIVE_TRUST_DEPTH] = {"depth", OPTION_INT, 0, 100, NULL},
};

static bool native_trust_read(struct native_tls_files *files, const cy_value *values,
                              struct tls_client_options *options)
{
    options->version_min = native_tls_version(values[NATIVE_TRUST_MIN]);
    options->version_max = native_tls_version(values[NATIVE_TRUST_MAX]);
    options->unverified =
        values[NATIVE_TRUST_VERIFY].tag == TAG_BOOL && !value_truthy(values[NATIVE_TRUST_VERIFY]);
    options->use_system = values[NATIVE_TRUST_CA].tag != TAG_STR && !options->unverified;
    options->has_depth = values[NATIVE_TRUST_DEPTH].tag == TAG_INT;
    if (options->has_depth) options->depth = (uint32_t)values[NATIVE_TRUST_DEPTH].as.i;
    if ((values[NATIVE_TRUST_CERTIFICATE].tag == TAG_STR) != (values[NATIVE_TRUST_KEY].tag == TAG_STR))
        return native_tls_fail_text(files, vm_text(files->call->vm, "certificate and key belong together"));
    return native_tls_file(files, values[NATIVE_TRUST_CA], -1, &options->ca) &&
           native_tls_file(files, values[NATIVE_TRUST_CRL], -1, &options->crl) &&
           native_tls_file(files, values[NATIVE_TRUST_CERTIFICATE], -1, &options->certificate) &&
           native_tls_file(files, values[NATIVE_TRUST_KEY], -1, &options->key);
}

static enum native_outcome native_trust_make(struct native_tls_files *files,
                                             struct tls_client_options *options)
{
    struct native_call *call = files->call;
    struct tls_client *client = NULL;
    struct builder fault;
    cy_value result;
    builder_init(&fault);
    cy_err err = tls_client_new(options, &client, &fault);
    if (cy_failed(err)) {
        if (fault.count == 0) builder_text(&fault, cy_err_text(err, vm_korean(call->vm)));
        native_tls_fail(files, err, -1, builder_view(&fault));
    }
    builder_fini(&fault);
    if (cy_failed(err)) return NATIVE_FAIL;
    err = opaque_new(call->vm, &native_tls_client_type, client, NATIVE_TRUST_BYTES, &result);
    return cy_failed(err) ? native_fail_reason(call, err, "http.trust") : native_return(call, result);
}

enum native_outcome native_http_trust(struct native_call *call)
{
    cy_value values[NATIVE_TRUST_ROWS];
    struct tls_client_options options = {0};
    struct native_tls_files files = {.call = call, .native = "http.trust"};
    if (!option_read(call, 0, "http.trust", native_trust_rows, NATIVE_TRUST_ROWS, values)) return NATIVE_FAIL;
    enum native_outcome outcome = NATIVE_FAIL;
    if (native_trust_read(&files, values, &options))
        outcome = files.wanting ? native_tls_want(call) : native_trust_make(&files, &options);
    native_tls_files_fini(&files);
    return outcome;
}
