/* SPDX-License-Identifier: MIT
 *
 * vm/http/verdict.c: builds and counts verdicts.
 *
 * Invariant: a verdict that exists can be carried out: names are tokens, values hold no control bytes, and
 *       nothing in it speaks about framing or the connection.
 */
#include "vm/http/verdict.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/http/client_internal.h"
#include "vm/http/field.h"
#include "vm/http/uri.h"

static cy_err verdict_blame(cy_bytes part, cy_bytes *fault_out)
{
    if (fault_out) *fault_out = part;
    return CY_ERR(VALUE);
}

/* A program may set no field that frames a message or manages a connection; those are ours. */
static cy_err verdict_check_name(cy_bytes name, cy_bytes *fault_out)
{
    uint8_t id = field_identify(name);
    if (!field_is_token(name) || (field_flags(id) & HTTP_FIELD_FLAG_FORBIDDEN) ||
        field_is_for_one_hop(name, id))
        return verdict_blame(name, fault_out);
    return CY_OK;
}

static cy_err verdict_check_fields(const struct http_verdict_field *fields, uint32_t count,
                                   cy_bytes *fault_out)
{
    if (count > LIMIT_HTTP_VERDICT_FIELDS) return CY_ERR_DETAIL(TOO_MANY, LIMIT_HTTP_VERDICT_FIELDS);
    for (uint32_t i = 0; i < count; i++) {
        CY_TRY(verdict_check_name(fields[i].name, fault_out));
        if (!field_is_value(fields[i].value)) return verdict_blame(fields[i].value, fault_out);
    }
    return CY_OK;
}

static struct http_verdict *verdict_new(enum http_verdict_kind kind)
{
    struct http_verdict *verdict = mem_alloc_zeroed(sizeof *verdict);
    if (!verdict) return NULL;
    verdict->refs = 1;
    verdict->kind = (uint8_t)kind;
    arena_init(&verdict->arena, 0);
    return verdict;
}

/* An empty view stays empty; a failed copy of a full one has no data. */
static bool verdict_copy(struct http_verdict *verdict, cy_bytes bytes, cy_bytes *copy_out)
{
    *copy_out = CY_BYTES_NONE;
    if (bytes.count == 0) return true;
    *copy_out = arena_copy(&verdict->arena, bytes);
    return copy_out->data != NULL;
}

static bool verdict_copy_fields(struct http_verdict *verdict, const struct http_verdict_field *fields,
                                uint32_t count)
{
    if (count == 0) return true;
    verdict->fields = arena_alloc(&verdict->arena, count * sizeof *fields);
    if (!verdict->fields) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!verdict_copy(verdict, fields[i].name, &verdict->fields[i].name)) return false;
        if (!verdict_copy(verdict, field_trim(fields[i].value), &verdict->fields[i].value)) return false;
    }
    verdict->field_count = count;
    return true;
}

cy_err http_verdict_respond(uint16_t status, cy_bytes body, const struct http_verdict_field *fields,
                            uint32_t field_count, struct http_verdict **verdict_out, cy_bytes *fault_out)
{
    if (fault_out) *fault_out = CY_BYTES_NONE;
    if (status < 200 || status > 599) return CY_ERR_DETAIL(VALUE, status);
    if (body.count && (status == 204 || status == 304)) return verdict_blame(body, fault_out);
    if (body.count > LIMIT_HTTP_RESPOND_BODY_BYTES)
        return CY_ERR_DETAIL(TOO_LARGE, LIMIT_HTTP_RESPOND_BODY_BYTES);
    CY_TRY(verdict_check_fields(fields, field_count, fault_out));
    struct http_verdict *verdict = verdict_new(HTTP_VERDICT_RESPOND);
    if (!verdict) return CY_ERR(NO_MEMORY);
    verdict->status = status;
    if (!verdict_copy(verdict, body, &verdict->body) || !verdict_copy_fields(verdict, fields, field_count)) {
        http_verdict_unref(&verdict);
        return CY_ERR(NO_MEMORY);
    }
    *verdict_out = verdict;
    return CY_OK;
}

static bool verdict_copy_names(struct http_verdict *verdict, const cy_bytes *names, uint32_t count)
{
    if (count == 0) return true;
    verdict->remove = arena_alloc(&verdict->arena, count * sizeof *names);
    if (!verdict->remove) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!verdict_copy(verdict, names[i], &verdict->remove[i])) return false;
    verdict->remove_count = count;
    return true;
}

/* "name", "name:port", "[v6]:port": what may stand in a Host field. */
static bool verdict_is_host(cy_bytes host)
{
    uint8_t space[LIMIT_NAME_BYTES + 16];
    struct uri_host parts;
    return host.count <= sizeof space && uri_normalise_host(host, space, &parts) == H1_FAULT_NONE;
}

cy_err http_verdict_proxy(struct upstream *upstream, const struct http_verdict_field *set, uint32_t set_count,
                          const cy_bytes *remove, uint32_t remove_count, cy_bytes host,
                          struct http_verdict **verdict_out, cy_bytes *fault_out)
{
    CHECK(upstream != NULL);
    if (fault_out) *fault_out = CY_BYTES_NONE;
    CY_TRY(verdict_check_fields(set, set_count, fault_out));
    if (remove_count > LIMIT_HTTP_VERDICT_FIELDS) return CY_ERR_DETAIL(TOO_MANY, LIMIT_HTTP_VERDICT_FIELDS);
    for (uint32_t i = 0; i < remove_count; i++) CY_TRY(verdict_check_name(remove[i], fault_out));
    if (!verdict_is_host(host)) return verdict_blame(host, fault_out);
    struct http_verdict *verdict = verdict_new(HTTP_VERDICT_PROXY);
    if (!verdict) return CY_ERR(NO_MEMORY);
    verdict->upstream = upstream_ref(upstream);
    verdict->terms.times = upstream->times;
    if (!verdict_copy(verdict, host, &verdict->host) || !verdict_copy_fields(verdict, set, set_count) ||
        !verdict_copy_names(verdict, remove, remove_count)) {
        http_verdict_unref(&verdict);
        return CY_ERR(NO_MEMORY);
    }
    *verdict_out = verdict;
    return CY_OK;
}

void http_verdict_set_terms(struct http_verdict *verdict, const struct http_proxy_terms *terms)
{
    CHECK(verdict->kind == HTTP_VERDICT_PROXY && verdict->refs == 1);
    struct http_times times = verdict->terms.times;
    http_times_override(&times, &terms->times);
    verdict->terms = *terms;
    verdict->terms.times = times;
}

size_t http_verdict_memory_bytes(const struct http_verdict *verdict)
{
    return sizeof *verdict + arena_memory_bytes(&verdict->arena);
}

struct http_verdict *http_verdict_ref(struct http_verdict *verdict)
{
    CHECK(verdict->refs > 0);
    verdict->refs++;
    return verdict;
}

void http_verdict_unref(struct http_verdict **verdict)
{
    struct http_verdict *which = *verdict;
    *verdict = NULL;
    if (!which) return;
    CHECK(which->refs > 0);
    if (--which->refs > 0) return;
    if (which->upstream) upstream_unref(&which->upstream);
    arena_fini(&which->arena);
    mem_free(which);
}
