/* SPDX-License-Identifier: MIT
 *
 * vm/cli/cli_load_plan.c: what crownyc load is to send: URLs of the command line and lines of --list.
 *
 * In:   words. Out: rows, and the one place to connect to.
 *
 * A line of a list is a URL, or a path below the first URL's host, then any of  weight=N method=WORD host=NAME status=N
 * length=BYTES crc32c=HEX;  # begins a comment.
 */
#include "vm/base/mem.h"
#include "vm/cli/cli_load.h"
#include "vm/http/uri.h"
#include "vm/net/dns.h"
#include "vm/sys/file.h"

#include <stdio.h>
#include <string.h>

static bool cli_load_refuse(const struct cli_options *options, const char *place, uint32_t line,
                            cy_bytes text, const char *english, const char *korean)
{
    fprintf(stderr, "%s: %s", options->name, place);
    if (line) fprintf(stderr, ":%u", line);
    fprintf(stderr, ": \"%.*s\": %s\n", CY_BYTES_ARG(text), options->korean ? korean : english);
    return false;
}

static bool cli_load_add(const struct cli_options *options, struct cli_load_plan *plan,
                         const struct load_row *row)
{
    if (plan->row_count == LIMIT_LOAD_ROWS) {
        fprintf(stderr,
                options->korean ? "%s: 요청은 LOAD_ROWS = %d개까지입니다\n"
                                : "%s: at most LOAD_ROWS = %d requests to choose from\n",
                options->name, LIMIT_LOAD_ROWS);
        return false;
    }
    if (plan->row_count == plan->row_capacity) {
        uint32_t capacity = plan->row_capacity ? plan->row_capacity * 2 : 16;
        struct load_row *rows = mem_resize(plan->rows, capacity * sizeof *rows);
        if (!rows) mem_exhausted();
        plan->rows = rows;
        plan->row_capacity = capacity;
    }
    plan->rows[plan->row_count++] = *row;
    return true;
}

/* A URL, or a path behind a URL. NULL, or what is wrong with it in English and Korean. */
static const char *cli_load_read_url(struct cli_load_plan *plan, cy_bytes text, struct load_row *row,
                                     const char **korean_out)
{
    bool secure;
    cy_bytes authority, rest;
    if (text.count && text.data[0] == '/') {
        *korean_out = "경로 앞에 URL이 하나 있어야 합니다";
        if (!plan->has_base) return "a path needs a URL before it";
        row->authority = plan->base_authority;
        row->target = text;
        return NULL;
    }
    *korean_out = "http(s)://이름[:포트]/경로 꼴이 아닙니다";
    if (!uri_split_absolute(text, &secure, &authority, &rest) || authority.count == 0)
        return "not of the form http(s)://host[:port]/path";
    if (rest.count && rest.data[0] != '/') return "not of the form http(s)://host[:port]/path";
    *korean_out = "http와 https를 섞을 수 없습니다";
    if (plan->has_base && secure != plan->secure) return "http and https do not mix";
    row->authority = authority;
    row->target = cy_bytes_slice(rest, 0, cy_bytes_find(rest, '#'));
    if (!plan->has_base) {
        plan->has_base = true;
        plan->secure = secure;
        plan->base_authority = authority;
        plan->url = text;
        if (!plan->connect.count) plan->connect = authority;
        return NULL;
    }
    *korean_out = "모든 URL은 같은 곳으로 가야 합니다; 아니면 --connect를 쓰세요";
    if (!cy_bytes_equal(plan->connect, authority) && cy_bytes_equal(plan->connect, plan->base_authority))
        return "all URLs must lead to one place; else say --connect";
    return NULL;
}

static bool cli_load_parse_hex(cy_bytes text, uint32_t *number_out)
{
    uint32_t number = 0;
    if (text.count == 0 || text.count > 8) return false;
    for (size_t i = 0; i < text.count; i++) {
        uint8_t digit = text.data[i];
        if (digit >= '0' && digit <= '9')
            digit = (uint8_t)(digit - '0');
        else if ((digit | 32) >= 'a' && (digit | 32) <= 'f')
            digit = (uint8_t)((digit | 32) - 'a' + 10);
        else
            return false;
        number = number << 4 | digit;
    }
    *number_out = number;
    return true;
}

/* "weight=3" and the like. */
static bool cli_load_read_word(struct load_row *row, cy_bytes word)
{
    size_t sign = cy_bytes_find(word, '=');
    cy_bytes name = cy_bytes_slice(word, 0, sign), value = cy_bytes_skip(word, sign + 1);
    uint64_t number = 0;
    if (value.count == 0) return false;
    if (cy_bytes_equal(name, CY_BYTES("method"))) {
        row->method = value;
        return true;
    }
    if (cy_bytes_equal(name, CY_BYTES("host"))) {
        row->authority = value;
        return true;
    }
    if (cy_bytes_equal(name, CY_BYTES("crc32c"))) {
        row->expect.has_crc32c = true;
        return cli_load_parse_hex(value, &row->expect.crc32c);
    }
    if (!cy_bytes_parse_u64(value, UINT64_MAX, &number)) return false;
    if (cy_bytes_equal(name, CY_BYTES("weight"))) {
        row->weight = (uint32_t)number;
        return number > 0 && number <= 1000000;
    }
    if (cy_bytes_equal(name, CY_BYTES("status"))) {
        row->expect.status = (uint16_t)number;
        return number >= 100 && number <= 599;
    }
    row->expect.has_length = true;
    row->expect.length = number;
    return cy_bytes_equal(name, CY_BYTES("length"));
}

static cy_bytes cli_load_next_word(cy_bytes *line)
{
    size_t begin = 0, end;
    while (begin < line->count && (line->data[begin] == ' ' || line->data[begin] == '\t')) begin++;
    end = begin;
    while (end < line->count && line->data[end] != ' ' && line->data[end] != '\t') end++;
    cy_bytes word = cy_bytes_slice(*line, begin, end);
    *line = cy_bytes_skip(*line, end);
    return word;
}

static bool cli_load_read_line(const struct cli_options *options, const char *path, uint32_t number,
                               cy_bytes line, const struct load_row *defaults, struct cli_load_plan *plan)
{
    if (line.count && line.data[line.count - 1] == '\r') line.count--;
    cy_bytes word = cli_load_next_word(&line);
    if (word.count == 0 || word.data[0] == '#') return true;
    struct load_row row = *defaults;
    const char *korean;
    const char *fault = cli_load_read_url(plan, word, &row, &korean);
    if (fault) return cli_load_refuse(options, path, number, word, fault, korean);
    while ((word = cli_load_next_word(&line)).count && word.data[0] != '#')
        if (!cli_load_read_word(&row, word))
            return cli_load_refuse(
                options, path, number, word,
                "none of weight=, method=, host=, status=, length=, crc32c= with a value it allows",
                "weight=, method=, host=, status=, length=, crc32c= 중 하나와 알맞은 값이 아닙니다");
    return cli_load_add(options, plan, &row);
}

static bool cli_load_read_file(const struct cli_options *options, const char *path, struct builder *out)
{
    cy_err err = file_read(path, LIMIT_LOAD_LIST_BYTES, out);
    if (cy_is(err, CY_ERR_TOO_LARGE))
        fprintf(stderr,
                options->korean ? "%s: %s: LOAD_LIST_BYTES = %d바이트보다 큽니다\n"
                                : "%s: %s: larger than LOAD_LIST_BYTES = %d bytes\n",
                options->name, path, LIMIT_LOAD_LIST_BYTES);
    else if (cy_failed(err))
        cli_say_error(options, path, err);
    return !cy_failed(err);
}

static bool cli_load_read_list(const struct cli_options *options, const char *path,
                               const struct load_row *defaults, struct cli_load_plan *plan)
{
    if (!cli_load_read_file(options, path, &plan->list)) return false;
    cy_bytes rest = builder_view(&plan->list);
    for (uint32_t number = 1; rest.count; number++) {
        size_t end = cy_bytes_find(rest, '\n');
        if (!cli_load_read_line(options, path, number, cy_bytes_slice(rest, 0, end), defaults, plan))
            return false;
        rest = cy_bytes_skip(rest, end + 1);
    }
    return true;
}

static bool cli_load_read_body(const struct cli_options *options, const char *body,
                               struct cli_load_plan *plan)
{
    if (!body) return true;
    if (body[0] != '@') {
        builder_text(&plan->body, body);
        return true;
    }
    return cli_load_read_file(options, body + 1, &plan->body);
}

bool cli_load_plan_fill(const struct cli_options *options, const struct cli_load_words *words, char **urls,
                        int url_count, const struct load_row *defaults, struct cli_load_plan *plan)
{
    *plan = (struct cli_load_plan){.row_count = 0};
    builder_init(&plan->list);
    builder_init(&plan->body);
    if (words->connect) plan->connect = cy_bytes_from_text(words->connect);
    for (int i = 0; i < url_count; i++) {
        struct load_row row = *defaults;
        const char *korean;
        cy_bytes text = cy_bytes_from_text(urls[i]);
        const char *fault = cli_load_read_url(plan, text, &row, &korean);
        if (fault) return cli_load_refuse(options, "URL", 0, text, fault, korean);
        /* Beside a list the first URL only says where to. */
        if (!(words->list && i == 0 && url_count == 1) && !cli_load_add(options, plan, &row)) return false;
    }
    if (words->list && !cli_load_read_list(options, words->list, defaults, plan)) return false;
    if (plan->row_count == 0) {
        cli_usage(options, options->korean ? "보낼 URL이 없습니다" : "a URL is missing", NULL);
        return false;
    }
    if (words->no_resume && !plan->secure) {
        cli_usage(options,
                  options->korean ? "--no-resume은 https:// URL에만 씁니다"
                                  : "--no-resume is for https:// URLs",
                  NULL);
        return false;
    }
    return cli_load_read_body(options, words->body, plan);
}

void cli_load_plan_fini(struct cli_load_plan *plan)
{
    mem_free(plan->rows);
    builder_fini(&plan->list);
    builder_fini(&plan->body);
}

/* -- where to -------------------------------------------------------------------------------------------- */

struct cli_load_look_up {
    struct dns_query query;
    bool is_done;
};

static void cli_load_on_resolved(struct dns_query *query)
{
    CY_CONTAINER_OF(query, struct cli_load_look_up, query)->is_done = true;
}

static cy_err cli_load_look_up(struct loop *loop, cy_bytes host, struct address *address_out)
{
    struct dns *dns = NULL;
    CY_TRY(dns_new(loop, &dns));
    struct cli_load_look_up look_up = {.query.done = cli_load_on_resolved};
    dns_resolve(dns, host, &look_up.query);
    cy_err err = CY_OK;
    while (!look_up.is_done && !cy_failed(err)) err = loop_turn(loop);
    if (!cy_failed(err)) err = look_up.query.err;
    if (!cy_failed(err)) *address_out = look_up.query.addresses[0];
    dns_free(&dns);
    cy_err flushed = loop_flush(loop);
    return cy_failed(err) ? err : flushed;
}

bool cli_load_resolve(const struct cli_options *options, struct loop *loop, const struct cli_load_plan *plan,
                      struct address *address_out)
{
    uint8_t space[LIMIT_HTTP_TARGET_BYTES];
    struct uri_host host;
    if (plan->connect.count > sizeof space || uri_normalise_host(plan->connect, space, &host) ||
        host.host.count == 0)
        return cli_load_refuse(options, "HOST:PORT", 0, plan->connect, "not a host, or a host and its port",
                               "호스트, 또는 호스트와 포트가 아닙니다");
    cy_bytes name = host.host;
    if (name.data[0] == '[') name = cy_bytes_slice(name, 1, name.count - 1);
    cy_err err = address_from_ip(name, 0, address_out);
    if (cy_failed(err)) err = cli_load_look_up(loop, name, address_out);
    if (cy_failed(err)) {
        char why[160];
        fprintf(stderr, "%s: %.*s: %s\n", options->name, CY_BYTES_ARG(name),
                cy_err_describe(err, options->korean, why, sizeof why));
        return false;
    }
    address_set_port(address_out, host.port ? host.port : plan->secure ? 443 : 80);
    return true;
}
