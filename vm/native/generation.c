/* SPDX-License-Identifier: MIT
 *
 * vm/native/generation.c: see generation.h.
 *
 * Invariant: generation_parse accepts exactly what generation_load wrote; every length is compared with the bytes
 *            left.
 */
#include "vm/native/generation.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"
#include "vm/sys/file.h"
#include "vm/sys/file_below.h"
#include "vm/sys/path_rules.h"

#define GENERATION_VERSION 1

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
    builder_init(&content);
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

cy_err generation_load(const struct generation_plan *plan, struct builder *out, struct builder *message)
{
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
    return builder_error(out);
}

static cy_bytes generation_take(struct byte_reader *reader)
{
    uint32_t count = byte_reader_u32(reader);
    return byte_reader_take(reader, count);
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
