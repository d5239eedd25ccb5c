/* SPDX-License-Identifier: MIT
 *
 * tests/unit/compiler/compile_text.c: a compilation whose disk is an array.
 */
#include "tests/unit/compiler/compile_text.h"

#include "vm/code/rpn.h"

#include <check.h>

static cy_err compile_text_read(void *context, const char *path, struct builder *out)
{
    const struct compile_text *test = context;
    for (size_t i = 0; i < test->file_count; i++) {
        if (strcmp(test->files[i].path, path) != 0) continue;
        builder_bytes(out, test->files[i].text);
        return builder_error(out);
    }
    return CY_ERR(NOT_FOUND);
}

void compile_text_init(struct compile_text *test, cy_bytes main_text)
{
    *test = (struct compile_text){0};
    builder_init(&test->messages);
    compile_text_add(test, "main.han", main_text);
}

void compile_text_add(struct compile_text *test, const char *path, cy_bytes text)
{
    ck_assert_uint_lt(test->file_count, CY_COUNT_OF(test->files));
    test->files[test->file_count++] = (struct compile_text_file){path, text};
}

void compile_text_run(struct compile_text *test)
{
    struct compile_options options = {.path = test->files[0].path,
                                      .stdlib = test->stdlib,
                                      .stdlib_count = test->stdlib_count,
                                      .korean = test->korean,
                                      .read_source = compile_text_read,
                                      .context = test};
    cy_err err = compile_program(&options, &test->program, &test->messages, &test->error_count);
    ck_assert(cy_failed(err) == (test->program == NULL));
    ck_assert(cy_failed(err) == (test->error_count > 0));
    ck_assert(cy_failed(err) == (test->messages.count > 0));
    ck_assert_msg(!cy_is(err, CY_ERR_INTERNAL), "%.*s", CY_BYTES_ARG(builder_view(&test->messages)));
}

void compile_text_fini(struct compile_text *test)
{
    if (test->program) program_free(&test->program);
    builder_fini(&test->messages);
}

void compile_text_expect(const char *text, bool korean, const char *messages)
{
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(text));
    test.korean = korean;
    compile_text_run(&test);
    ck_assert_str_eq(test.messages.count ? builder_text_view(&test.messages) : "", messages);
    compile_text_fini(&test);
}

void compile_text_accept(const char *body)
{
    struct builder text;
    builder_init(&text);
    builder_printf(&text, "export fn main(args) { %s }\n", body);
    compile_text_expect(builder_text_view(&text), false, "");
    builder_fini(&text);
}

void compile_text_rpn(const char *text, const char *function, struct builder *out)
{
    struct compile_text test;
    compile_text_init(&test, cy_bytes_from_text(text));
    compile_text_run(&test);
    ck_assert_msg(test.program != NULL, "%.*s", CY_BYTES_ARG(builder_view(&test.messages)));
    uint32_t index = 0;
    while (index < test.program->function_count &&
           !cy_bytes_equal(program_string(test.program, test.program->functions[index].name),
                           cy_bytes_from_text(function)))
        index++;
    ck_assert_uint_lt(index, test.program->function_count);
    ck_assert(!cy_failed(rpn_write(test.program, index, out)));
    compile_text_fini(&test);
}
