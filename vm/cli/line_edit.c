/* SPDX-License-Identifier: MIT
 *
 * vm/cli/line_edit.c: lines from a terminal through libedit.
 *
 * In:   keys. Out: lines.
 * Invariant: while a line is being edited, Ctrl-C is a key and no signal: it drops the line. Elsewhere the terminal is
 *            as it was. Hangul is two columns wide whatever the locale: the terminal speaks UTF-8 or nothing does.
 */
#include "vm/cli/line_edit.h"

#include "vm/base/limits.h"
#include "vm/base/mem.h"

#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

struct line_edit {
    EditLine *editor; /* NULL without a terminal */
    History *history;
    char *history_path; /* owned; NULL: none */
    const char *prompt; /* of the line being read */
    bool interrupted;
};

static struct line_edit *line_edit_of(EditLine *editor)
{
    void *data = NULL;
    el_get(editor, EL_CLIENTDATA, &data);
    return data;
}

static char *line_edit_prompt(EditLine *editor) { return (char *)(uintptr_t)line_edit_of(editor)->prompt; }

static unsigned char line_edit_interrupt(EditLine *editor, int key)
{
    (void)key;
    line_edit_of(editor)->interrupted = true;
    return CC_EOF;
}

/* Letters are counted and measured by the C library, in the locale's coding. */
static void line_edit_use_utf8(void)
{
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

static cy_err line_edit_open_history(struct line_edit *edit, const char *path)
{
    HistEvent event;
    edit->history = history_init();
    if (!edit->history) return CY_ERR(NO_MEMORY);
    history(edit->history, &event, H_SETSIZE, LIMIT_REPL_HISTORY);
    history(edit->history, &event, H_SETUNIQUE, 1);
    el_set(edit->editor, EL_HIST, history, edit->history);
    if (!path) return CY_OK;
    size_t bytes = strlen(path) + 1;
    edit->history_path = mem_alloc(bytes);
    if (!edit->history_path) return CY_ERR(NO_MEMORY);
    memcpy(edit->history_path, path, bytes);
    history(edit->history, &event, H_LOAD, path); /* none yet, or not one of ours: then it begins empty */
    return CY_OK;
}

static cy_err line_edit_open_editor(struct line_edit *edit, const char *program_name,
                                    const char *history_path)
{
    line_edit_use_utf8();
    edit->editor = el_init(program_name, stdin, stdout, stderr);
    if (!edit->editor) return CY_ERR(NO_MEMORY);
    el_set(edit->editor, EL_CLIENTDATA, edit);
    el_set(edit->editor, EL_PROMPT, line_edit_prompt);
    el_set(edit->editor, EL_EDITOR, "emacs");
    CY_TRY(line_edit_open_history(edit, history_path));
    el_source(edit->editor, NULL); /* ~/.editrc, as in other programs with libedit */
    el_set(edit->editor, EL_SETTY, "-d", "-isig", NULL);
    el_set(edit->editor, EL_ADDFN, "crowny-interrupt", "Drop the line", line_edit_interrupt);
    el_set(edit->editor, EL_BIND, "^C", "crowny-interrupt", NULL);
    return CY_OK;
}

cy_err line_edit_open(const char *program_name, bool terminal, const char *history_path,
                      struct line_edit **edit_out)
{
    struct line_edit *edit = mem_alloc_zeroed(sizeof *edit);
    if (!edit) return CY_ERR(NO_MEMORY);
    cy_err err = terminal ? line_edit_open_editor(edit, program_name, history_path) : CY_OK;
    if (cy_failed(err)) line_edit_close(&edit);
    *edit_out = edit;
    return err;
}

void line_edit_close(struct line_edit **edit_pointer)
{
    struct line_edit *edit = *edit_pointer;
    *edit_pointer = NULL;
    if (!edit) return;
    if (edit->editor) el_end(edit->editor);
    if (edit->history) history_end(edit->history);
    mem_free(edit->history_path);
    mem_free(edit);
}

static enum line_outcome line_edit_take(const char *text, size_t count, struct builder *line)
{
    while (count > 0 && (text[count - 1] == '\n' || text[count - 1] == '\r')) count--;
    builder_bytes(line, cy_bytes_of(text, count));
    return LINE_READ;
}

enum line_outcome line_edit_read(struct line_edit *edit, const char *prompt, struct builder *line)
{
    builder_clear(line);
    if (!edit->editor) {
        int byte;
        while ((byte = getc(stdin)) != EOF && byte != '\n') builder_u8(line, (uint8_t)byte);
        return byte == EOF && line->count == 0 ? LINE_END : LINE_READ;
    }
    edit->prompt = prompt;
    edit->interrupted = false;
    int count = 0;
    el_set(edit->editor, EL_PREP_TERM, 1); /* before the prompt: who sees it may press Ctrl-C */
    const char *text = el_gets(edit->editor, &count);
    if (edit->interrupted) {
        el_reset(edit->editor);
        return LINE_INTERRUPTED;
    }
    return text && count > 0 ? line_edit_take(text, (size_t)count, line) : LINE_END;
}

void line_edit_remember(struct line_edit *edit, cy_bytes line)
{
    if (!edit->history || line.count == 0) return;
    struct builder text;
    builder_init(&text);
    builder_bytes(&text, line);
    HistEvent event;
    const char *kept = builder_text_view(&text);
    if (kept) history(edit->history, &event, H_ENTER, kept);
    if (edit->history_path) history(edit->history, &event, H_SAVE, edit->history_path);
    builder_fini(&text);
}
