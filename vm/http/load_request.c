/* SPDX-License-Identifier: MIT
 *
 * vm/http/load_request.c: what the load generator sends, whichever protocol carries it: judged, then made once.
 *
 * In:   rows, fields and a body, as options; how a protocol writes a head. Out: load->requests, load->body.
 * Invariant: views into load->bytes, which does not move any more.
 */
#include "vm/http/field.h"
#include "vm/http/load_internal.h"

static bool load_request_is_text(cy_bytes text, bool blanks)
{
    for (size_t i = 0; i < text.count; i++) {
        uint8_t byte = text.data[i];
        if (byte == 127 || byte < ' ') return false;
        if (byte == ' ' && !blanks) return false;
    }
    return true;
}

bool load_request_has_field(const struct load_options *options, const char *name)
{
    for (uint32_t i = 0; i < options->field_count; i++)
        if (cy_bytes_equal_nocase(options->fields[i].name, cy_bytes_from_text(name))) return true;
    return false;
}

static const char *load_request_judge_fields(const struct load_options *options, bool has_streams)
{
    for (uint32_t i = 0; i < options->field_count; i++) {
        const struct load_field *field = &options->fields[i];
        if (!field_is_token(field->name)) return "a field's name is no token";
        if (!load_request_is_text(field->value, true)) return "a control byte in a field's value";
    }
    static const char *const own[] = {"Content-Length", "Transfer-Encoding", "Connection"};
    static const char *const hop[] = {"Keep-Alive", "Proxy-Connection", "Upgrade", "TE"};
    for (size_t i = 0; i < CY_COUNT_OF(own); i++)
        if (load_request_has_field(options, own[i]))
            return "Content-Length, Transfer-Encoding and Connection are the generator's own fields";
    for (size_t i = 0; i < CY_COUNT_OF(hop) && has_streams; i++)
        if (load_request_has_field(options, hop[i]))
            return "Keep-Alive, Proxy-Connection, Upgrade and TE are not for HTTP/2";
    return NULL;
}

static const char *load_request_judge_row(const struct load_row *row)
{
    if (row->method.count && !field_is_token(row->method)) return "the method is no token";
    if (cy_bytes_equal(row->method, CY_BYTES("CONNECT"))) return "CONNECT is not for the load generator";
    if (!load_request_is_text(row->authority, false)) return "a blank or control byte in the host";
    if (!load_request_is_text(row->target, false)) return "a blank or control byte in the path";
    if (row->target.count && row->target.data[0] != '/' && !cy_bytes_equal(row->target, CY_BYTES("*")))
        return "a path begins with a slash";
    return NULL;
}

cy_err load_request_make(struct load *load,
                         void (*write_head)(const struct load_options *options, const struct load_row *row,
                                            struct builder *out),
                         struct builder *fault)
{
    const struct load_options *options = &load->options;
    struct builder *bytes = &load->bytes;
    const char *wrong = load_request_judge_fields(options, load->protocol->has_streams);
    builder_bytes(bytes, options->body);
    for (uint32_t i = 0; i < options->row_count && !wrong; i++) {
        const struct load_row *row = &options->rows[i];
        wrong = load_request_judge_row(row);
        size_t begin = bytes->count;
        write_head(options, row, bytes);
        load->requests[i].head.count = bytes->count - begin;
        load->requests[i].is_head = cy_bytes_equal(row->method, CY_BYTES("HEAD"));
    }
    if (wrong) {
        builder_text(fault, wrong);
        return CY_ERR(VALUE);
    }
    CY_TRY(builder_error(bytes));
    /* Now that the bytes lie where they stay. */
    load->body = cy_bytes_slice(builder_view(bytes), 0, options->body.count);
    size_t at = options->body.count;
    for (uint32_t i = 0; i < options->row_count; i++) {
        load->requests[i].head.data = bytes->data + at;
        at += load->requests[i].head.count;
    }
    return CY_OK;
}
