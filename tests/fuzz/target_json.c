/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_json.c: a JSON text from anybody.
 *
 * Promise: events nest and alternate, offsets lie in the text, a failed reader stays failed; a text that was read,
 *          written and read again is the same.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/base/json.h"
#include "vm/base/mem.h"

#include <string.h>

static void fuzz_json_text(const struct json_reader *reader)
{
    uint8_t *text = mem_alloc(reader->decoded_count + 1);
    CHECK(text);
    json_decode(reader, text);
    cy_bytes bytes = cy_bytes_of(text, reader->decoded_count);
    struct builder written;
    builder_init(&written);
    size_t bad_offset;
    CHECK(json_write_text(&written, bytes, &bad_offset));
    struct json_reader again;
    json_reader_init(&again, builder_view(&written));
    CHECK(json_next(&again) == JSON_TEXT && again.decoded_count == bytes.count);
    uint8_t *second = mem_alloc(bytes.count + 1);
    CHECK(second);
    json_decode(&again, second);
    CHECK(memcmp(text, second, bytes.count) == 0);
    CHECK(json_next(&again) == JSON_END);
    mem_free(second);
    builder_fini(&written);
    mem_free(text);
}

void fuzz_target_json(cy_bytes input)
{
    struct json_reader reader;
    bool is_map[LIMIT_JSON_DEPTH + 1] = {false}, value_next = false;
    uint32_t depth = 0, line, column;
    json_reader_init(&reader, input);
    reader.big_int_is_float = input.count & 1;
    for (;;) {
        enum json_event event = json_next(&reader);
        CHECK(reader.offset <= input.count);
        if (event == JSON_FAILED) {
            json_place(input, reader.offset, &line, &column);
            CHECK(line >= 1 && column >= 1 && reader.fault != JSON_FAULT_NONE);
            CHECK(json_next(&reader) == JSON_FAILED);
            return;
        }
        if (event == JSON_END) break;
        bool ends = event == JSON_LIST_END || event == JSON_MAP_END;
        if (!ends) CHECK((event == JSON_KEY) == (is_map[depth] && !value_next));
        value_next = event == JSON_KEY;
        if (event == JSON_TEXT || event == JSON_KEY) fuzz_json_text(&reader);
        if (event == JSON_LIST_BEGIN || event == JSON_MAP_BEGIN) {
            CHECK(depth < LIMIT_JSON_DEPTH);
            is_map[++depth] = event == JSON_MAP_BEGIN;
        }
        if (ends) {
            CHECK(depth > 0 && is_map[depth] == (event == JSON_MAP_END));
            depth--;
        }
    }
    CHECK(depth == 0);
}
