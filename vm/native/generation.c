/* SPDX-License-Identifier: MIT
 *
 * vm/native/generation.c: see generation.h.
 *
 * Secrets: the bytes of keys lie in the sealed file and in what configure was given; copies on the way lie
 *          in builders of secrets, which are wiped.
 * Invariant: generation_parse accepts exactly what generation_load wrote; every length is compared with the bytes
 *            left.
 */
#include "vm/native/generation.h"

#include "vm/base/check.h"
#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/file.h"
#include "vm/sys/file_below.h"
#include "vm/sys/path_rules.h"

#define GENERATION_VERSION 2

static void generation_put(struct builder *out, cy_bytes bytes)
{
    builder_u32(out, (uint32_t)bytes.count);
    builder_bytes(out, bytes);
}

/* With `rules` NULL any file: the program itself, which the operator named. */
static cy_err generation_read(const struct path_rules *rules, const char *path, size_t bytes_max,
                              struct builder *content)
{
    const struct beneath_root *root;
    struct builder below;
    if (!rules) return file_read(path, bytes_max, content);
    builder_init(&below);
    cy_err err = path_rules_find(rules, PATH_READ, cy_bytes_from_text(path), &root, &below);
    if (!cy_failed(err)) err = file_below_read(root, (const char *)below.data, bytes_max, NULL, content);
    builder_fini(&below);
    return err;
}

static cy_err generation_put_file(struct builder *out, const struct path_rules *rules, const char *path,
                                  size_t bytes_max, const char *limit, struct builder *message)
{
    struct builder content;
    builder_init_secret(&content);
    cy_err err = generation_read(rules, path, bytes_max, &content);
    if (cy_failed(err)) {
        char why[128];
        builder_printf(message, "%s: %s", path, cy_err_describe(err, false, why, sizeof why));
        if (cy_is(err, CY_ERR_TOO_LARGE)) builder_printf(message, " (limit %s: %zu bytes)", limit, bytes_max);
    } else {
        generation_put(out, builder_view(&content));
    }
    builder_fini(&content);
    return err;
}

cy_err generation_read_file(const struct generation_plan *plan, const char *path, struct builder *content_out)
{
    CHECK(content_out->is_secret);
    return generation_read(plan->rules, path, LIMIT_GENERATION_FILE_BYTES, content_out);
}

void generation_want(struct builder *wanted, cy_bytes path)
{
    builder_bytes(wanted, path);
    builder_u8(wanted, 0);
}

static void generation_put_extra(const struct generation_plan *plan, cy_bytes path, struct builder *out)
{
    struct builder content;
    builder_init_secret(&content);
    cy_err err = generation_read_file(plan, (const char *)path.data, &content);
    builder_u32(out, err.code);
    builder_u32(out, (uint32_t)err.detail);
    generation_put(out, path);
    generation_put(out, cy_failed(err) ? CY_BYTES_NONE : builder_view(&content));
    builder_fini(&content);
}

static void generation_put_extras(const struct generation_plan *plan, cy_bytes wanted, struct builder *out)
{
    uint32_t count = 0;
    for (size_t i = 0; i < wanted.count; i++) count += wanted.data[i] == 0;
    builder_u32(out, count);
    while (wanted.count > 0) {
        cy_bytes path = cy_bytes_slice(wanted, 0, cy_bytes_find(wanted, 0));
        wanted = cy_bytes_skip(wanted, path.count + 1);
        generation_put_extra(plan, path, out);
    }
}

cy_err generation_load(const struct generation_plan *plan, cy_bytes wanted, struct builder *out,
                       struct builder *message)
{
    CHECK(out->is_secret);
    if (wanted.count > 0 && wanted.data[wanted.count - 1] != 0) return CY_ERR(BAD_FORMAT);
    builder_bytes(out, CY_BYTES("CYGN"));
    builder_u32(out, GENERATION_VERSION);
    if (plan->program_path) {
        CY_TRY(generation_put_file(out, NULL, plan->program_path, LIMIT_TOAU_BYTES, "TOAU_BYTES", message));
    } else {
        generation_put(out, plan->program);
    }
    builder_u32(out, plan->source_count);
    for (uint32_t i = 0; i < plan->source_count; i++) {
        generation_put(out, cy_bytes_from_text(plan->sources[i].name));
        generation_put(out, cy_bytes_from_text(plan->sources[i].path));
        CY_TRY(generation_put_file(out, plan->rules, plan->sources[i].path, LIMIT_GENERATION_FILE_BYTES,
                                   "GENERATION_FILE_BYTES", message));
    }
    generation_put_extras(plan, wanted, out);
    return builder_error(out);
}

static cy_bytes generation_take(struct byte_reader *reader)
{
    uint32_t count = byte_reader_u32(reader);
    return byte_reader_take(reader, count);
}

/* The next of them. */
static cy_bytes generation_take_extra(struct byte_reader *reader, cy_bytes *content_out, cy_err *err_out)
{
    err_out->code = byte_reader_u32(reader);
    err_out->detail = (int32_t)byte_reader_u32(reader);
    cy_bytes path = generation_take(reader);
    *content_out = generation_take(reader);
    return path;
}

static cy_err generation_check_extras(struct byte_reader *reader, cy_bytes *extras_out)
{
    size_t begin = reader->offset;
    uint32_t count = byte_reader_u32(reader);
    cy_bytes content;
    cy_err err;
    for (uint32_t i = 0; i < count && !reader->failed; i++)
        (void)generation_take_extra(reader, &content, &err);
    *extras_out = cy_bytes_slice(reader->input, begin, reader->offset);
    return reader->failed ? CY_ERR(BAD_FORMAT) : CY_OK;
}

bool generation_find_extra(cy_bytes extras, cy_bytes path, cy_bytes *content_out, cy_err *err_out)
{
    struct byte_reader reader = {.input = extras};
    uint32_t count = byte_reader_u32(&reader);
    for (uint32_t i = 0; i < count && !reader.failed; i++)
        if (cy_bytes_equal(generation_take_extra(&reader, content_out, err_out), path)) return !reader.failed;
    return false;
}

cy_err generation_parse(cy_bytes bytes, struct generation *generation)
{
    struct byte_reader reader = {.input = bytes};
    if (!cy_bytes_equal(byte_reader_take(&reader, 4), CY_BYTES("CYGN"))) return CY_ERR(BAD_FORMAT);
    if (byte_reader_u32(&reader) != GENERATION_VERSION) return CY_ERR(BAD_FORMAT);
    generation->program = generation_take(&reader);
    generation->file_count = byte_reader_u32(&reader);
    if (reader.failed || generation->file_count > LIMIT_GENERATION_FILES) return CY_ERR(BAD_FORMAT);
    for (uint32_t i = 0; i < generation->file_count; i++) {
        generation->files[i].name = generation_take(&reader);
        generation->files[i].path = generation_take(&reader);
        generation->files[i].content = generation_take(&reader);
    }
    CY_TRY(generation_check_extras(&reader, &generation->extras));
    return reader.failed || byte_reader_left(&reader) != 0 ? CY_ERR(BAD_FORMAT) : CY_OK;
}

void generation_plan_fini(struct generation_plan *plan)
{
    for (uint32_t i = 0; i < plan->source_count; i++) {
        mem_free(plan->sources[i].name);
        mem_free(plan->sources[i].path);
    }
    plan->source_count = 0;
}
