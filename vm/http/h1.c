/* SPDX-License-Identifier: MIT
 *
 * vm/http/h1.c: decides framing, persistence and routing key of a message, once.
 *
 *   Content-Length   Transfer-Encoding   request                            response
 *   none             none                no body                            until the connection closes
 *   digits, once     none                that many bytes                    that many bytes
 *   any              any                 refused                            refused
 *   none             exactly "chunked"   chunked (1.1; 1.0 is refused)      chunked (1.1; 1.0 is refused)
 *   anything else                        refused                            refused
 *   and before all that: a response to HEAD, and 1xx, 204, 304 have no body.
 *
 * In, Out: h1.h. Spec: RFC 9112 sections 6 and 9, RFC 9110 sections 7.2, 7.6.1, 10.1.1.
 * Stricter than the RFC: equal Content-Lengths twice, transfer codings beside chunked.
 */
#include "vm/http/h1.h"

#include "vm/http/field.h"
#include "vm/http/uri.h"

/* What both kinds of message say about their body and their connection. */
struct h1_facts {
    cy_bytes length, coding, host, expect, keep_alive;
    uint8_t length_count, coding_count, host_count, expect_count; /* saturate at 2 */
    bool close, stay, lists_fields, has_date, lists_upgrade, has_upgrade;
};

static void h1_count(cy_bytes value, cy_bytes *value_out, uint8_t *count)
{
    *value_out = value;
    if (*count < 2) ++*count;
}

static uint8_t h1_read_connection(cy_bytes value, struct h1_facts *facts)
{
    cy_bytes element;
    if (value.count == 0) return H1_FAULT_NONE;
    while (field_next_element(&value, &element)) {
        if (element.count == 0) continue;
        if (!field_is_token(element)) return H1_FAULT_CONNECTION;
        if (cy_bytes_equal_nocase(element, CY_BYTES("close")))
            facts->close = true;
        else if (cy_bytes_equal_nocase(element, CY_BYTES("keep-alive")))
            facts->stay = true;
        else if (cy_bytes_equal_nocase(element, CY_BYTES("upgrade")))
            facts->lists_upgrade = true;
        /* Names of fields that never travel anyway need no look-up later. */
        else if (!(field_flags(field_identify(element)) & HTTP_FIELD_FLAG_HOP))
            facts->lists_fields = true;
    }
    return H1_FAULT_NONE;
}

/* True when a Connection field names `name`. */
static bool h1_connection_lists(const struct http_field *fields, uint32_t count, cy_bytes name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].known != HTTP_FIELD_CONNECTION) continue;
        cy_bytes value = fields[i].value, element;
        while (value.count && field_next_element(&value, &element))
            if (cy_bytes_equal_nocase(element, name)) return true;
    }
    return false;
}

void h1_mark_listed(const struct h1_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        struct http_field *field = &head->fields[i];
        if (field->known == HTTP_FIELD_HOST) continue;
        field->hop = h1_connection_lists(head->fields, head->field_count, field->name);
    }
}

static uint8_t h1_read_facts(const struct h1_head *head, struct h1_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct http_field *field = &head->fields[i];
        uint8_t fault = H1_FAULT_NONE;
        switch (field->known) {
        case HTTP_FIELD_HOST: h1_count(field->value, &facts->host, &facts->host_count); break;
        case HTTP_FIELD_CONTENT_LENGTH: h1_count(field->value, &facts->length, &facts->length_count); break;
        case HTTP_FIELD_TRANSFER_ENCODING:
            h1_count(field->value, &facts->coding, &facts->coding_count);
            break;
        case HTTP_FIELD_EXPECT: h1_count(field->value, &facts->expect, &facts->expect_count); break;
        case HTTP_FIELD_KEEP_ALIVE: facts->keep_alive = field->value; break;
        case HTTP_FIELD_DATE: facts->has_date = true; break;
        case HTTP_FIELD_UPGRADE: facts->has_upgrade = true; break;
        case HTTP_FIELD_CONNECTION: fault = h1_read_connection(field->value, facts); break;
        default: break;
        }
        if (fault) return fault;
    }
    if (facts->lists_fields) h1_mark_listed(head);
    return H1_FAULT_NONE;
}

static bool h1_is_persistent(const struct h1_facts *facts, uint8_t minor_version)
{
    if (facts->close) return false;
    return minor_version >= 1 || facts->stay;
}

/* A transfer coding that is not exactly "chunked": unknown when it is a clean list without chunked in it,
 * else malformed. */
static uint8_t h1_judge_other_coding(cy_bytes coding)
{
    cy_bytes element;
    if (coding.count == 0) return H1_FAULT_CODING;
    while (field_next_element(&coding, &element)) {
        cy_bytes name = field_trim(cy_bytes_slice(element, 0, cy_bytes_find(element, ';')));
        if (!field_is_token(name)) return H1_FAULT_CODING;
        /* chunked must stand last and takes no parameters */
        bool is_chunked = cy_bytes_equal_nocase(name, CY_BYTES("chunked"));
        if (is_chunked && (coding.data || name.count != element.count)) return H1_FAULT_CODING;
    }
    return H1_FAULT_CODING_UNKNOWN;
}

/* The table at the top of this file, from `if_none` down. */
static uint8_t h1_judge_framing(const struct h1_facts *facts, uint8_t minor_version,
                                enum http_body_kind if_none, struct http_framing *body_out)
{
    *body_out = (struct http_framing){(uint8_t)if_none, 0};
    if (facts->coding_count) {
        if (facts->length_count) return H1_FAULT_LENGTH_AND_CODING;
        if (minor_version == 0) return H1_FAULT_CODING_OLD;
        if (facts->coding_count > 1) return H1_FAULT_CODING_TWICE;
        if (!cy_bytes_equal_nocase(facts->coding, CY_BYTES("chunked")))
            return h1_judge_other_coding(facts->coding);
        body_out->kind = HTTP_BODY_CHUNKED;
        return H1_FAULT_NONE;
    }
    if (facts->length_count == 0) return H1_FAULT_NONE;
    if (facts->length_count > 1) return H1_FAULT_LENGTH_TWICE;
    uint64_t length;
    if (!cy_bytes_parse_u64(facts->length, INT64_MAX, &length)) return H1_FAULT_LENGTH;
    *body_out = (struct http_framing){length ? HTTP_BODY_LENGTH : HTTP_BODY_NONE, length};
    return H1_FAULT_NONE;
}

/* Where the normal forms go, when they differ from what was received. */
struct h1_space {
    uint8_t *host;      /* of Host */
    uint8_t *authority; /* of an absolute target */
    uint8_t *target;    /* "/?query", or "*", for an absolute target without a path */
    uint8_t *path;
};

static cy_bytes h1_host_value(const struct h1_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++)
        if (head->fields[i].known == HTTP_FIELD_HOST) return head->fields[i].value;
    return CY_BYTES_NONE;
}

size_t h1_space_needed(const struct h1_head *head)
{
    return h1_host_value(head).count + 3 * head->target.count + 2;
}

static struct h1_space h1_divide_space(uint8_t *space, size_t host_bytes, size_t target_bytes)
{
    return (struct h1_space){space, space + host_bytes, space + host_bytes + target_bytes,
                             space + host_bytes + 2 * target_bytes + 1};
}

/* Reduces an absolute target to path and query. The Host field must agree with it (RFC 9112 section 3.2.2
 * lets the target win; a server behind us might look at Host). */
static uint8_t h1_judge_absolute(struct http_request *request, bool has_host, const struct h1_space *space)
{
    bool secure;
    cy_bytes authority, rest;
    struct uri_host from_target;
    if (!uri_split_absolute(request->target, &secure, &authority, &rest)) return H1_FAULT_TARGET;
    uint8_t fault = uri_normalise_host(authority, space->authority, &from_target);
    if (fault) return fault;
    if (from_target.host.count == 0) return H1_FAULT_HOST;
    if (has_host) {
        uint16_t default_port = secure ? 443 : 80;
        uint16_t target_port = from_target.port ? from_target.port : default_port;
        uint16_t field_port = request->port ? request->port : default_port;
        if (target_port != field_port || !cy_bytes_equal(from_target.host, request->host))
            return H1_FAULT_HOST_DISAGREES;
    }
    request->authority = authority;
    request->host = from_target.host;
    request->port = from_target.port;
    if (rest.count == 0 && cy_bytes_equal(request->method, CY_BYTES("OPTIONS"))) {
        space->target[0] = '*'; /* RFC 9112 section 3.2.4: it asks about the server, not about "/" */
        rest = cy_bytes_of(space->target, 1);
    } else if (rest.count == 0 || rest.data[0] == '?') {
        space->target[0] = '/';
        if (rest.count) memcpy(space->target + 1, rest.data, rest.count);
        rest = cy_bytes_of(space->target, rest.count + 1);
    }
    request->target = rest;
    return H1_FAULT_NONE;
}

static uint8_t h1_judge_target(const struct h1_head *head, const struct h1_facts *facts, uint8_t *space_bytes,
                               struct http_request *request)
{
    if (cy_bytes_equal(head->method, CY_BYTES("CONNECT"))) return H1_FAULT_METHOD_CONNECT;
    if (facts->host_count > 1) return H1_FAULT_HOST_TWICE;
    if (facts->host_count == 0 && head->minor_version >= 1) return H1_FAULT_HOST_MISSING;
    struct h1_space space = h1_divide_space(space_bytes, facts->host.count, head->target.count);
    struct uri_host host;
    uint8_t fault = uri_normalise_host(facts->host, space.host, &host);
    if (fault) return fault;
    request->authority = facts->host;
    request->host = host.host;
    request->port = host.port;
    if (head->target.data[0] != '/') {
        if (head->target.count == 1 && head->target.data[0] == '*') {
            if (!cy_bytes_equal(head->method, CY_BYTES("OPTIONS"))) return H1_FAULT_TARGET;
            request->path = head->target;
            return H1_FAULT_NONE;
        }
        fault = h1_judge_absolute(request, facts->host_count > 0, &space);
        if (fault) return fault;
    }
    if (request->target.data[0] == '*') {
        request->path = request->target;
        return H1_FAULT_NONE;
    }
    size_t path_end = cy_bytes_find(request->target, '?');
    request->query = cy_bytes_skip(request->target, path_end + 1);
    return uri_normalise_path(cy_bytes_slice(request->target, 0, path_end), space.path, &request->path);
}

/* Not h2c, HTTP or TLS: a tunnel that speaks HTTP again would carry requests past every rule here. */
static bool h1_may_upgrade_to(cy_bytes protocol)
{
    cy_bytes name = cy_bytes_slice(protocol, 0, cy_bytes_find(protocol, '/'));
    cy_bytes version = cy_bytes_skip(protocol, name.count + 1);
    if (!field_is_token(name)) return false;
    if (name.count < protocol.count && !field_is_token(version)) return false;
    return !cy_bytes_equal_nocase(name, CY_BYTES("h2c")) && !cy_bytes_equal_nocase(name, CY_BYTES("h2")) &&
           !cy_bytes_equal_nocase(name, CY_BYTES("http")) && !cy_bytes_equal_nocase(name, CY_BYTES("tls"));
}

bool h1_upgrade_lists(const struct http_field *fields, uint32_t count, cy_bytes protocol)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fields[i].known != HTTP_FIELD_UPGRADE) continue;
        cy_bytes value = fields[i].value, element;
        while (value.count && field_next_element(&value, &element))
            if (cy_bytes_equal_nocase(element, protocol)) return true;
    }
    return false;
}

/* RFC 9110 section 7.8. A wish that may not pass is none: the request is an ordinary one. */
static bool h1_wants_upgrade(const struct h1_head *head, const struct http_framing *body)
{
    bool found = false;
    if (head->minor_version == 0 || body->kind != HTTP_BODY_NONE) return false;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].known != HTTP_FIELD_UPGRADE) continue;
        cy_bytes value = head->fields[i].value, element;
        while (value.count && field_next_element(&value, &element)) {
            if (element.count == 0) continue;
            if (!h1_may_upgrade_to(element)) return false;
            found = true;
        }
    }
    return found;
}

uint8_t h1_judge_request(const struct h1_head *head, uint8_t *space, struct http_request *request,
                         struct h1_request *connection_out)
{
    struct h1_facts facts;
    uint8_t fault = h1_read_facts(head, &facts);
    if (fault) return fault;
    request->method = head->method;
    request->target = head->target;
    request->path = request->query = CY_BYTES_NONE;
    request->protocol = head->minor_version >= 1 ? HTTP_1_1 : HTTP_1_0;
    request->field_count = head->field_count;
    request->is_head = cy_bytes_equal(head->method, CY_BYTES("HEAD"));
    fault = h1_judge_framing(&facts, head->minor_version, HTTP_BODY_NONE, &request->body);
    if (!fault) fault = h1_judge_target(head, &facts, space, request);
    if (fault) return fault;
    connection_out->keep_alive = h1_is_persistent(&facts, head->minor_version);
    connection_out->expects_continue = false;
    connection_out->wants_upgrade =
        facts.has_upgrade && facts.lists_upgrade && h1_wants_upgrade(head, &request->body);
    if (facts.expect_count) {
        if (!cy_bytes_equal_nocase(facts.expect, CY_BYTES("100-continue")) || facts.expect_count > 1)
            return H1_FAULT_EXPECTATION;
        /* RFC 9110 section 10.1.1: ignored in HTTP/1.0, and without a body there is nothing to wait for. */
        connection_out->expects_continue = head->minor_version >= 1 && request->body.kind != HTTP_BODY_NONE;
    }
    return H1_FAULT_NONE;
}

/* "timeout=5, max=100": the number of seconds. False when it is not there. */
static bool h1_read_keep_alive(cy_bytes value, uint32_t *seconds_out)
{
    cy_bytes element;
    uint64_t seconds;
    *seconds_out = 0;
    while (value.count && field_next_element(&value, &element)) {
        if (element.count <= 8 || !cy_bytes_equal_nocase(cy_bytes_slice(element, 0, 8), CY_BYTES("timeout=")))
            continue;
        if (!cy_bytes_parse_u64(cy_bytes_skip(element, 8), UINT32_MAX / 1000, &seconds)) continue;
        *seconds_out = (uint32_t)seconds;
        return true;
    }
    return false;
}

uint8_t h1_judge_response(const struct h1_head *head, bool request_is_head, struct h1_response *response_out)
{
    struct h1_facts facts;
    uint8_t fault = h1_read_facts(head, &facts);
    if (fault) return fault;
    /* The framing fields must be sound even where the status says that there is no body: the next reader may
     * differ. */
    fault = h1_judge_framing(&facts, head->minor_version, HTTP_BODY_UNTIL_CLOSE, &response_out->body);
    if (fault) return fault;
    response_out->declared_length = CY_BYTES_NONE;
    uint16_t status = head->status;
    if (request_is_head || status == 304) response_out->declared_length = facts.length;
    if (request_is_head || status < 200 || status == 204 || status == 304)
        response_out->body = (struct http_framing){HTTP_BODY_NONE, 0};
    response_out->keep_alive =
        h1_is_persistent(&facts, head->minor_version) && response_out->body.kind != HTTP_BODY_UNTIL_CLOSE;
    if (h1_read_keep_alive(facts.keep_alive, &response_out->keep_alive_s) && response_out->keep_alive_s == 0)
        response_out->keep_alive = false; /* it will hang up at once, whatever Connection says */
    response_out->has_date = facts.has_date;
    return H1_FAULT_NONE;
}
