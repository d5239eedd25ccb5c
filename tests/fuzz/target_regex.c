/* SPDX-License-Identifier: MIT
 *
 * tests/fuzz/target_regex.c: a pattern (the first line, behind a byte of options) and a text (the rest) from anybody.
 *
 * Promise: a pattern compiles or has a fault in it; each call ends within its bounds; matches lie in the text, on
 *          boundaries of letters, and go forward.
 */
#include "tests/fuzz/target.h"
#include "vm/base/check.h"
#include "vm/native/regex.h"

#include <string.h>

static void fuzz_regex_groups(const struct regex_search *search, const struct regex *regex, size_t *end_out)
{
    size_t begin, end;
    CHECK(regex_search_group(search, 0, &begin, &end));
    CHECK(begin <= end && end <= search->text.count);
    *end_out = end;
    for (uint32_t i = 1; i <= regex_group_count(regex); i++)
        if (regex_search_group(search, i, &begin, &end)) CHECK(begin <= end && end <= search->text.count);
}

static void fuzz_regex_search(struct regex *regex, cy_bytes text)
{
    struct regex_search search;
    if (cy_failed(regex_search_init(&search, regex, text))) return;
    size_t from = 0;
    enum regex_mode mode = REGEX_FIND;
    for (int matches = 0; matches < 64; matches++) {
        bool found = false;
        enum regex_bound bound = REGEX_BOUND_NONE;
        cy_err err = regex_search_next(&search, from, mode, &found, &bound);
        CHECK(!cy_failed(err) || cy_is(err, CY_ERR_NO_MEMORY) || bound != REGEX_BOUND_NONE);
        if (cy_failed(err) || !found) break;
        size_t end;
        fuzz_regex_groups(&search, regex, &end);
        if (end == from && mode == REGEX_FIND) {
            mode = REGEX_NOT_EMPTY_HERE;
            continue;
        }
        if (end <= from) break;
        CHECK(!search.is_utf8 || regex_is_boundary(text, end));
        from = end;
        mode = REGEX_FIND;
    }
    regex_search_fini(&search);
}

void fuzz_target_regex(cy_bytes input)
{
    if (input.count < 2) return;
    uint8_t bits = input.data[0];
    cy_bytes rest = cy_bytes_skip(input, 1);
    size_t line_end = cy_bytes_find(rest, '\n');
    cy_bytes pattern = cy_bytes_slice(rest, 0, line_end), text = cy_bytes_skip(rest, line_end + 1);
    struct regex_options options = {.ignore_case = bits & 1,
                                    .multi_line = bits & 2,
                                    .dot_all = bits & 4,
                                    .extended = bits & 8,
                                    .unicode = bits & 16};
    struct regex_memory memory = {0};
    struct regex_fault fault = {0};
    struct regex *regex = NULL;
    cy_err err = regex_new(pattern, &options, &memory, &regex, &fault);
    if (cy_failed(err)) {
        CHECK(fault.offset <= pattern.count);
        CHECK(!cy_is(err, CY_ERR_BAD_FORMAT) || fault.message[0]);
        return;
    }
    cy_bytes name;
    uint32_t group;
    for (uint32_t i = 0; regex_name_at(regex, i, &name, &group); i++)
        CHECK(name.count > 0 && group <= regex_group_count(regex));
    fuzz_regex_search(regex, text);
    regex_free(&regex);
}
