/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_access_log.c: what strangers put into lines of the access log.
 *
 * In:   a byte that says the format and what is known, then texts with a zero byte behind each.
 * Promise: one entry is one line, printable ASCII; no text ends its quotes: COMMON and COMBINED have the spaces and
 *          quotes of their format and no more, a line of JSON is one map whose texts are those given, byte for byte.
 */
#include "tests/fuzz/target.h"
#include "vm/base/builder.h"
#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/mem.h"
#include "vm/http/access_log.h"

#include <string.h>

#define FUZZ_LOG_TEXTS 7
static const char *const fuzz_log_names[FUZZ_LOG_TEXTS] = {"client",   "method",  "host",      "target",
                                                           "upstream", "referer", "user_agent"};
enum { FUZZ_LOG_TARGET = 3 };

static bool fuzz_log_put(void *context, cy_bytes lines)
{
    builder_bytes(context, lines);
    return true;
}

/* The quotes that no backslash stands before. */
static size_t fuzz_log_quotes(cy_bytes line)
{
    size_t count = 0;
    for (size_t i = 0; i < line.count; i++) count += line.data[i] == '"';
    return count;
}

/* A text of the entry as JSON gives it back: bytes past ASCII were written as the code point of that number. */
static void fuzz_log_member(const struct json_reader *reader, cy_bytes given, size_t bytes_max)
{
    uint8_t *text = mem_alloc(reader->decoded_count + 1);
    size_t at = 0;
    CHECK(text);
    json_decode(reader, text);
    given = cy_bytes_slice(given, 0, cy_min_size(given.count, bytes_max));
    for (size_t i = 0; i < given.count; i++) {
        uint8_t byte = given.data[i];
        if (byte >= 0x80) {
            CHECK(at + 1 < reader->decoded_count);
            CHECK(text[at] == (0xc0 | byte >> 6) && text[at + 1] == (0x80 | (byte & 0x3f)));
            at += 2;
        } else {
            CHECK(at < reader->decoded_count && text[at] == byte);
            at++;
        }
    }
    CHECK(at == reader->decoded_count);
    mem_free(text);
}

static void fuzz_log_json(cy_bytes line, const cy_bytes texts[FUZZ_LOG_TEXTS])
{
    struct json_reader reader;
    enum json_event event;
    int known = -1, seen = 0;
    json_reader_init(&reader, line);
    CHECK(json_next(&reader) == JSON_MAP_BEGIN);
    while ((event = json_next(&reader)) != JSON_MAP_END) {
        CHECK(event != JSON_FAILED && event != JSON_LIST_BEGIN && event != JSON_MAP_BEGIN);
        if (event == JSON_KEY) {
            uint8_t key[32];
            CHECK(reader.decoded_count < sizeof key);
            json_decode(&reader, key);
            cy_bytes name = cy_bytes_of(key, reader.decoded_count);
            known = -1;
            for (int i = 0; i < FUZZ_LOG_TEXTS; i++)
                if (cy_bytes_equal(name, cy_bytes_from_text(fuzz_log_names[i]))) known = i;
        } else if (known >= 0) {
            CHECK(event == JSON_TEXT);
            fuzz_log_member(&reader, texts[known],
                            known == FUZZ_LOG_TARGET ? LIMIT_ACCESS_LOG_TARGET_BYTES
                                                     : LIMIT_ACCESS_LOG_FIELD_BYTES);
            seen |= 1 << known;
            known = -1;
        }
    }
    CHECK(json_next(&reader) == JSON_END);
    CHECK(seen & 1); /* the client, always */
}

static void fuzz_log_line(cy_bytes line, enum access_log_format format, bool has_protocol,
                          const cy_bytes texts[FUZZ_LOG_TEXTS])
{
    CHECK(line.count > 0 && line.data[line.count - 1] == '\n');
    line = cy_bytes_slice(line, 0, line.count - 1);
    for (size_t i = 0; i < line.count; i++) CHECK(line.data[i] >= 0x20 && line.data[i] < 0x7f);
    if (format == ACCESS_LOG_JSON) {
        fuzz_log_json(line, texts);
        return;
    }
    CHECK(fuzz_log_quotes(line) == (format == ACCESS_LOG_COMMON ? 2 : 6));
    CHECK(memmem(line.data, line.count, " - - [", 6) && memmem(line.data, line.count, " +0000] \"", 9));
    if (!has_protocol) CHECK(memmem(line.data, line.count, "] \"-\" ", 6));
}

void fuzz_target_access_log(cy_bytes input)
{
    if (input.count < 1) return;
    struct http_server_counters counters = {0};
    struct builder lines;
    struct loop *loop;
    struct access_log *log;
    struct access_log_options options = {.format = (enum access_log_format)((input.data[0] & 3) % 3),
                                         .counters = &counters,
                                         .owned_descriptor = -1,
                                         .put = fuzz_log_put,
                                         .context = &lines};
    cy_bytes texts[FUZZ_LOG_TEXTS] = {{0}}, rest = cy_bytes_skip(input, 1);
    for (int i = 0; i < FUZZ_LOG_TEXTS && rest.count > 0; i++) {
        size_t end = cy_bytes_find(rest, 0);
        texts[i] = cy_bytes_slice(rest, 0, end);
        rest = cy_bytes_skip(rest, cy_min_size(end + 1, rest.count));
    }
    const struct access_log_entry entry = {.client = texts[0],
                                           .method = texts[1],
                                           .host = texts[2],
                                           .target = texts[3],
                                           .upstream = texts[4],
                                           .referer = texts[5],
                                           .user_agent = texts[6],
                                           .protocol = input.data[0] & 4 ? "HTTP/1.1" : NULL,
                                           .status = 200,
                                           .bytes = rest.count,
                                           .duration_us = input.count,
                                           .upstream_us = input.data[0] & 8 ? UINT64_MAX : 17};
    builder_init(&lines);
    CHECK(!cy_failed(loop_new("poll", &loop)));
    options.loop = loop;
    CHECK(!cy_failed(access_log_new(&options, &log)));
    for (int i = 0; i < 2; i++) access_log_write(log, &entry);
    access_log_free(&log);
    loop_free(&loop);
    cy_bytes both = builder_view(&lines);
    size_t end = cy_bytes_find(both, '\n') + 1;
    CHECK(2 * end == both.count && cy_bytes_equal(cy_bytes_slice(both, 0, end), cy_bytes_skip(both, end)));
    fuzz_log_line(cy_bytes_slice(both, 0, end), options.format, entry.protocol, texts);
    builder_fini(&lines);
}
