/* SPDX-License-Identifier: MIT
 *
 * tests/unit/http/llhttp_vectors_test.c: proves that the parser, the framing and the body decoder together
 * accept the ordinary messages of llhttp's test vectors and refuse the malformed and the lenient ones.
 *
 * In:   the folder in CROWNY_VECTORS, else ../shared/vectors beside the repository; its
 *       llhttp/{request,response}/ *.md. Skips, and says so, when there is none.
 * How:  each ```http block is read message after message, whole and then split at every byte; both must
 *       agree. A block's log tells what llhttp thinks; where this project means to differ, a row of
 * llhttp_exceptions says why. Vectors mostly lack a Host field, which is not what they test: one is added to
 * the fields before judging.
 */
#include "vm/base/builder.h"
#include "vm/base/mem.h"
#include "vm/http/field.h"
#include "vm/http/h1.h"
#include "vm/http/h1_body.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum llhttp_verdict { LLHTTP_ACCEPT, LLHTTP_REFUSE };

/* What we mean to judge otherwise than llhttp in its strict mode does. */
struct llhttp_exception {
    const char *title; /* of the section */
    enum llhttp_verdict verdict;
    const char *why;
};
static const struct llhttp_exception llhttp_exceptions[] = {
#include "tests/unit/http/llhttp_exceptions.def"
};

struct llhttp_count {
    unsigned ran, accepted, refused, excepted, wrong;
};

static const char *llhttp_folder(void)
{
    const char *folder = getenv("CROWNY_VECTORS");
    return folder ? folder : "../shared/vectors";
}

/* -- reading the Markdown -------------------------------------------------------------------------------- */

static bool llhttp_read(const char *path, struct builder *out)
{
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    char piece[4096];
    for (size_t count; (count = fread(piece, 1, sizeof piece, file)) > 0;)
        builder_bytes(out, cy_bytes_of(piece, count));
    fclose(file);
    return !out->failed;
}

static unsigned llhttp_digits(const char **text, unsigned base, unsigned digits_max)
{
    unsigned number = 0;
    for (unsigned i = 0; i < digits_max; i++, ++*text) {
        char c = **text;
        unsigned digit = c >= '0' && c <= '9'                     ? (unsigned)(c - '0')
                         : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned)((c | 0x20) - 'a' + 10)
                                                                  : 99;
        if (digit >= base) break;
        number = number * base + digit;
    }
    return number;
}

/* The block's text as bytes: line ends are CR LF, a backslash at a line's end joins lines, \r \n \t \f \xHH
 * and octal. */
static void llhttp_unescape(const char *text, const char *end, struct builder *out)
{
    if (end > text && end[-1] == '\n') end--;
    while (text < end) {
        if (*text == '\n') {
            builder_text(out, "\r\n");
            text++;
            continue;
        }
        if (*text != '\\' || text + 1 >= end) {
            builder_u8(out, (uint8_t)*text++);
            continue;
        }
        char next = text[1];
        text += 2;
        if (next == '\n') continue;
        if (next == 'r')
            builder_u8(out, '\r');
        else if (next == 'n')
            builder_u8(out, '\n');
        else if (next == 't')
            builder_u8(out, '\t');
        else if (next == 'f')
            builder_u8(out, '\f');
        else if (next == 'x')
            builder_u8(out, (uint8_t)llhttp_digits(&text, 16, 2));
        else if (next >= '0' && next <= '7') {
            text--;
            builder_u8(out, (uint8_t)llhttp_digits(&text, 8, 3));
        } else {
            builder_u8(out, '\\');
            builder_u8(out, (uint8_t)next);
        }
    }
}

/* -- judging --------------------------------------------------------------------------------------------- */

struct llhttp_reader {
    bool is_response, skip_body, first_only;
    struct http_field fields[LIMIT_HTTP_FIELDS + 1];
    struct h1_head head;
    struct h1_body body;
    bool in_body;
    bool left_unread; /* bytes behind the end: a lenient reader's next request, which we never look at */
    bool ended;       /* the rest is not looked at: the connection closes here, or is no longer HTTP */
    uint8_t fault;
};

static void llhttp_begin_head(struct llhttp_reader *reader)
{
    if (reader->is_response)
        h1_parse_begin_response(&reader->head, reader->fields);
    else
        h1_parse_begin_request(&reader->head, reader->fields);
    reader->in_body = false;
}

static uint8_t llhttp_judge_request(struct llhttp_reader *reader, struct http_framing *body_out,
                                    bool *keep_alive_out)
{
    struct http_request *request = mem_alloc_zeroed(sizeof *request);
    bool has_host = http_find_field(reader->fields, reader->head.field_count, CY_BYTES("host")) != NULL;
    if (!has_host)
        reader->fields[reader->head.field_count++] =
            (struct http_field){CY_BYTES("Host"), CY_BYTES(""), HTTP_FIELD_HOST, false};
    /* An absolute target beside the added field would disagree with it. */
    if (!has_host && reader->head.target.data[0] != '/')
        reader->head.minor_version = 0, reader->head.field_count--;
    uint8_t *space = mem_alloc(h1_space_needed(&reader->head));
    struct h1_request connection = {0};
    uint8_t fault = h1_judge_request(&reader->head, space, request, &connection);
    *body_out = request->body;
    *keep_alive_out = connection.keep_alive;
    if (http_find_field(reader->fields, reader->head.field_count, CY_BYTES("upgrade"))) reader->ended = true;
    mem_free(space);
    mem_free(request);
    return fault;
}

static uint8_t llhttp_judge(struct llhttp_reader *reader)
{
    struct http_framing body = {HTTP_BODY_NONE, 0};
    bool keep_alive = true;
    uint8_t fault;
    if (reader->is_response) {
        struct h1_response response = {0};
        fault = h1_judge_response(&reader->head, reader->skip_body, &response);
        body = response.body;
        keep_alive = response.keep_alive || body.kind == HTTP_BODY_UNTIL_CLOSE;
        if (reader->head.status == 101) reader->ended = true;
    } else {
        fault = llhttp_judge_request(reader, &body, &keep_alive);
    }
    h1_body_begin(&reader->body, &body);
    if (!keep_alive || reader->first_only) reader->ended = true;
    return fault;
}

/* Goes on as far as the input allows. `offset` is the begin of the unconsumed part. */
static void llhttp_feed(struct llhttp_reader *reader, cy_bytes whole, size_t *offset)
{
    bool closing = false;
    while (!reader->fault) {
        cy_bytes rest = cy_bytes_skip(whole, *offset), piece;
        if (!reader->in_body) {
            if ((closing || reader->ended) && rest.count > 4) reader->left_unread = true;
            if (closing || reader->ended || rest.count == 0) return;
            enum h1_parse_result result = h1_parse_head(&reader->head, rest);
            if (result == H1_PARSE_MORE) return;
            reader->fault = result == H1_PARSE_FAULT ? reader->head.fault : llhttp_judge(reader);
            *offset += reader->head.used_bytes;
            reader->in_body = true;
            continue;
        }
        enum h1_body_step step = h1_body_step(&reader->body, &rest, &piece);
        *offset = whole.count - rest.count;
        if (step == H1_BODY_MORE) return;
        if (step == H1_BODY_FAULT) reader->fault = reader->body.fault;
        if (step == H1_BODY_END) {
            closing = reader->ended;
            llhttp_begin_head(reader);
        }
    }
}

/* `step_bytes`: how much comes at a time. The input lies elsewhere each time, as a grown buffer does. */
static uint8_t llhttp_read_all(struct llhttp_reader *reader, cy_bytes input, size_t step_bytes)
{
    size_t offset = 0;
    reader->fault = H1_FAULT_NONE;
    reader->ended = reader->left_unread = false;
    uint8_t *block = NULL;
    llhttp_begin_head(reader);
    for (size_t count = cy_min_size(step_bytes, input.count);;
         count = cy_min_size(count + step_bytes, input.count)) {
        uint8_t *moved = mem_alloc(count);
        if (count) memcpy(moved, input.data, count);
        llhttp_feed(reader, cy_bytes_of(moved, count), &offset);
        mem_free(block);
        block = moved;
        if (count == input.count || reader->fault) break;
    }
    mem_free(block);
    return reader->fault;
}

static const struct llhttp_exception *llhttp_find_exception(cy_bytes title)
{
    for (size_t i = 0; i < CY_COUNT_OF(llhttp_exceptions); i++)
        if (cy_bytes_equal(title, cy_bytes_from_text(llhttp_exceptions[i].title)))
            return &llhttp_exceptions[i];
    return NULL;
}

static bool llhttp_has(const char *begin, const char *end, const char *word)
{
    return memmem(begin, (size_t)(end - begin), word, strlen(word)) != NULL;
}

struct llhttp_block {
    cy_bytes title;
    const char *meta, *meta_end, *http, *http_end, *log, *log_end;
};

static void llhttp_run(const char *path, const struct llhttp_block *block, struct llhttp_count *count)
{
    struct llhttp_reader *reader = mem_alloc_zeroed(sizeof *reader);
    struct builder input;
    builder_init(&input);
    llhttp_unescape(block->http, block->http_end, &input);
    reader->is_response = llhttp_has(block->meta, block->meta_end, "\"response");
    reader->skip_body = llhttp_has(block->meta, block->meta_end, "skipBody");
    /* After these llhttp hands the connection over, or stops on purpose. */
    reader->first_only = llhttp_has(block->log, block->log_end, "code=22") ||
                         llhttp_has(block->log, block->log_end, "code=5 ");
    bool is_error = llhttp_has(block->log, block->log_end, "error code=") && !reader->first_only;
    bool is_lenient = llhttp_has(block->meta, block->meta_end, "lenient");
    enum llhttp_verdict wanted = is_lenient || is_error ? LLHTTP_REFUSE : LLHTTP_ACCEPT;
    const struct llhttp_exception *exception = llhttp_find_exception(block->title);
    if (exception && exception->verdict != wanted) {
        wanted = exception->verdict;
        count->excepted++;
    }
    /* Some malformed blocks stop before the head does; we judge fields when it is complete. */
    if (wanted == LLHTTP_REFUSE) builder_text(&input, "\r\n\r\n");
    uint8_t whole = llhttp_read_all(reader, builder_view(&input), input.count);
    uint8_t split = llhttp_read_all(reader, builder_view(&input), 1);
    bool agree = (whole == 0) == (split == 0),
         as_wanted = (whole != 0 || (is_lenient && reader->left_unread)) == (wanted == LLHTTP_REFUSE);
    if (!agree || !as_wanted) {
        printf("%s: %.*s: wanted %s; whole: %s; byte by byte: %s\n", path, CY_BYTES_ARG(block->title),
               wanted == LLHTTP_REFUSE ? "a refusal" : "acceptance", h1_fault_text(whole),
               h1_fault_text(split));
        fflush(stdout);
        count->wrong++;
    }
    count->ran++;
    if (whole)
        count->refused++;
    else
        count->accepted++;
    builder_fini(&input);
    mem_free(reader);
}

static const char *llhttp_line_end(const char *text)
{
    const char *end = strchr(text, '\n');
    return end ? end : text + strlen(text);
}

static void llhttp_run_file(const char *path, struct llhttp_count *count)
{
    struct builder file;
    builder_init(&file);
    ck_assert(llhttp_read(path, &file));
    struct llhttp_block block = {.title = CY_BYTES_NONE};
    for (const char *line = builder_text_view(&file); *line;) {
        const char *end = llhttp_line_end(line);
        if (*line == '#') {
            while (*line == '#' || *line == ' ') line++;
            block.title = cy_bytes_of(line, (size_t)(end - line));
        } else if (strncmp(line, "<!-- meta=", 10) == 0) {
            block.meta = line;
            block.meta_end = end;
            block.http = NULL;
        } else if (strncmp(line, "```http", 7) == 0 || strncmp(line, "```log", 6) == 0) {
            bool is_log = line[3] == 'l';
            const char *close = strstr(end, "\n```");
            ck_assert_msg(close && block.meta, "%s: a block without an end or a meta line", path);
            if (is_log)
                block.log = end + 1, block.log_end = close;
            else
                block.http = end + 1, block.http_end = close + 1;
            if (is_log && block.http) llhttp_run(path, &block, count);
            end = close + 4;
        }
        line = *end ? end + 1 : end;
    }
    builder_fini(&file);
}

static bool llhttp_run_folder(const char *kind, struct llhttp_count *count)
{
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/llhttp/%s", llhttp_folder(), kind);
    DIR *dir = opendir(folder);
    if (!dir) return false;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name);
        if (length < 3 || strcmp(entry->d_name + length - 3, ".md") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        llhttp_run_file(path, count);
    }
    closedir(dir);
    return true;
}

START_TEST(test_vectors_are_judged_as_a_strict_parser_must)
{
    struct llhttp_count count = {0, 0, 0, 0, 0};
    bool found = llhttp_run_folder("request", &count) && llhttp_run_folder("response", &count);
    if (!found) {
        printf("llhttp vectors: skipped, no %s/llhttp\n", llhttp_folder());
        return;
    }
    printf("llhttp vectors: %u ran, %u accepted, %u refused, %u of them by an exception\n", count.ran,
           count.accepted, count.refused, count.excepted);
    ck_assert_uint_eq(count.wrong, 0);
    ck_assert_uint_ge(count.excepted, CY_COUNT_OF(llhttp_exceptions)); /* a row that fits nothing is old */
    ck_assert_uint_gt(count.ran, 150);
    ck_assert_uint_gt(count.accepted, 60);
    ck_assert_uint_gt(count.refused, 60);
}
END_TEST

Suite *unit_suite_http_llhttp_vectors(void);
Suite *unit_suite_http_llhttp_vectors(void)
{
    Suite *suite = suite_create("http_llhttp_vectors");
    TCase *cases = tcase_create("vectors");
    tcase_add_test(cases, test_vectors_are_judged_as_a_strict_parser_must);
    tcase_set_timeout(cases, 60);
    suite_add_tcase(suite, cases);
    return suite;
}
