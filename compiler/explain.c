/* SPDX-License-Identifier: MIT
 *
 * compiler/explain.c: writes the page of a message: what it means, a program that gives it and what the compiler then
 * says, and the same program mended.
 *
 * In:   rows of explain.def. Out: text.
 * Invariant: what a page shows of the compiler's words is what the compiler says: the example is compiled when the
 *            page is written.
 * Not here: the messages (diag.def).
 */
#include "compiler/explain.h"

#include "compiler/compiler.h"
#include "compiler/diag_internal.h"
#include "vm/base/check.h"

struct explain_row {
    const char *korean, *english, *wrong, *fixed;
};
/* Examples of deep nesting, and a main for those that need nothing of it. */
#define EXPLAIN_TIMES_4(text) text text text text
#define EXPLAIN_TIMES_16(text) EXPLAIN_TIMES_4(EXPLAIN_TIMES_4(text))
#define EXPLAIN_TIMES_64(text) EXPLAIN_TIMES_4(EXPLAIN_TIMES_16(text))
#define EXPLAIN_MAIN(body) "export fn main(args) {\n" body "}\n"
static const struct explain_row explain_rows[DIAG_CODE_COUNT] = {
#define EXPLAIN(code, korean, english, wrong, fixed) [code] = {korean, english, wrong, fixed},
#include "compiler/explain.def"
#undef EXPLAIN
};
#undef EXPLAIN_MAIN
#undef EXPLAIN_TIMES_64
#undef EXPLAIN_TIMES_16
#undef EXPLAIN_TIMES_4

struct explain_example explain_example_of(enum diag_code code)
{
    CHECK(code < DIAG_CODE_COUNT);
    return (struct explain_example){explain_rows[code].wrong, explain_rows[code].fixed};
}

/* -- examples as files --------------------------------------------------------------------------------------------- */

static const char explain_marker[] = "// file: ";

/* The text of `path` inside an example; the part before any marker is main.han. */
static bool explain_find(cy_bytes example, cy_bytes path, cy_bytes *text_out)
{
    cy_bytes marker = cy_bytes_of(explain_marker, sizeof explain_marker - 1), name = CY_BYTES("main.han");
    size_t start = 0;
    for (size_t at = 0; at <= example.count;) {
        size_t end = at + cy_bytes_find(cy_bytes_skip(example, at), '\n');
        cy_bytes line = cy_bytes_slice(example, at, end);
        bool marks = cy_bytes_start_with(line, marker);
        if (marks || end >= example.count) {
            *text_out = cy_bytes_slice(example, start, marks ? at : example.count);
            if (cy_bytes_equal(name, path)) return true;
            name = cy_bytes_skip(line, marker.count);
            start = end + 1;
        }
        at = end + 1;
    }
    return false;
}

static cy_err explain_read(void *context, const char *path, struct builder *out)
{
    const cy_bytes *example = context;
    cy_bytes text;
    if (!explain_find(*example, cy_bytes_from_text(path), &text)) return CY_ERR(NOT_FOUND);
    builder_bytes(out, text);
    return builder_error(out);
}

bool explain_compile(const char *example, bool korean, struct builder *messages)
{
    cy_bytes text = cy_bytes_from_text(example);
    struct compile_options options = {.path = "main.han",
                                      .korean = korean,
                                      .warnings = true,
                                      .read_source = explain_read,
                                      .context = &text};
    struct program *program = NULL;
    uint32_t error_count;
    cy_err err = compile_program(&options, &program, messages, &error_count);
    program_free(&program);
    return !cy_failed(err);
}

/* -- pages --------------------------------------------------------------------------------------------------------- */

static void explain_put_indented(struct builder *out, cy_bytes text)
{
    for (size_t at = 0; at < text.count;) {
        size_t end = at + cy_bytes_find(cy_bytes_skip(text, at), '\n');
        if (end > at) builder_text(out, "    ");
        diag_put_text(out,
                      cy_bytes_slice(text, at, end)); /* examples hold what should not reach a terminal */
        builder_u8(out, '\n');
        at = end + 1;
    }
}

/* Lines longer than that are the deep examples: only their ends are worth reading. */
static void explain_put_example(struct builder *out, const char *title, const char *example)
{
    enum { LINE_SHOWN = 60 };
    struct builder shown;
    builder_init(&shown);
    cy_bytes text = cy_bytes_from_text(example);
    for (size_t at = 0; at < text.count;) {
        size_t end = at + cy_bytes_find(cy_bytes_skip(text, at), '\n');
        cy_bytes line = cy_bytes_slice(text, at, end);
        if (line.count > 4 * LINE_SHOWN) {
            builder_bytes(&shown, cy_bytes_slice(line, 0, LINE_SHOWN));
            builder_text(&shown, " ... ");
            line = cy_bytes_skip(line, line.count - LINE_SHOWN);
        }
        builder_bytes(&shown, line);
        builder_u8(&shown, '\n');
        at = end + 1;
    }
    builder_printf(out, "\n%s\n\n", title);
    explain_put_indented(out, builder_view(&shown));
    builder_fini(&shown);
}

static void explain_put_messages(struct builder *out, const char *example, bool korean)
{
    struct builder messages;
    builder_init(&messages);
    (void)explain_compile(example, korean, &messages);
    builder_printf(out, "\n%s\n\n", korean ? "컴파일러의 말:" : "The compiler says:");
    explain_put_indented(out, builder_view(&messages));
    builder_fini(&messages);
}

bool explain_page(cy_bytes code_text, bool korean, struct builder *out)
{
    enum diag_code code;
    char text[DIAG_CODE_TEXT_BYTES];
    if (!diag_code_find(code_text, &code)) return false;
    const struct explain_row *row = &explain_rows[code];
    diag_code_text(code, text);
    builder_printf(out, "%s: ", text);
    diag_write_subject(code, korean, out);
    builder_printf(out, "\n\n%s\n", korean ? row->korean : row->english);
    if (!*row->fixed) {
        explain_put_example(out, korean ? "이렇게 생깁니다:" : "How it comes about:", row->wrong);
        return true;
    }
    explain_put_example(out, korean ? "잘못된 예:" : "Wrong:", row->wrong);
    explain_put_messages(out, row->wrong, korean);
    explain_put_example(out, korean ? "고친 예:" : "Right:", row->fixed);
    return true;
}

void explain_list(bool korean, struct builder *out)
{
    for (unsigned code = 0; code < DIAG_CODE_COUNT; code++) {
        char text[DIAG_CODE_TEXT_BYTES];
        diag_code_text((enum diag_code)code, text);
        builder_printf(out, "%s  ", text);
        diag_write_subject((enum diag_code)code, korean, out);
        builder_u8(out, '\n');
    }
}
