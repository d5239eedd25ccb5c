/* SPDX-License-Identifier: MIT
 *
 * tests/unit/native/yaml_walk_test.c: proves that a YAML text becomes the right events at the right places, that
 * what is refused is refused with its place and a readable message, and that depth, nodes and bytes are bounded.
 */
#include "vm/native/yaml_walk.h"

#include "vm/base/limits.h"

#include <check.h>
#include <stdio.h>

/* Writes events as text: S(text) or Q(text) for quoted, [ ] { }, each with @line:column. */
struct yaml_walk_test_trace {
    struct builder text;
    uint64_t event_count;
    uint64_t fail_at; /* event number, from 1; 0: never */
};

static cy_err yaml_walk_test_on_event(void *context, const struct yaml_walk_event *event)
{
    struct yaml_walk_test_trace *trace = context;
    if (++trace->event_count == trace->fail_at) return CY_ERR(CANCELLED);
    if (event->kind == YAML_WALK_LIST_END || event->kind == YAML_WALK_MAP_END) {
        builder_text(&trace->text, event->kind == YAML_WALK_LIST_END ? "] " : "} ");
        return CY_OK;
    }
    if (event->kind == YAML_WALK_SCALAR) {
        builder_printf(&trace->text, "%c(%.*s)", event->quoted ? 'Q' : 'S', CY_BYTES_ARG(event->text));
    } else {
        builder_text(&trace->text, event->kind == YAML_WALK_LIST_BEGIN ? "[" : "{");
    }
    builder_printf(&trace->text, "@%u:%u ", event->line, event->column);
    return CY_OK;
}

static cy_err yaml_walk_test_run(cy_bytes text, bool korean, struct yaml_walk_test_trace *trace,
                                 struct yaml_walk_fault *fault)
{
    struct yaml_walk_options options = {
        .korean = korean, .on_event = yaml_walk_test_on_event, .context = trace};
    return yaml_walk(text, &options, fault);
}

struct yaml_walk_good {
    const char *text;
    const char *events;
};
static const struct yaml_walk_good yaml_walk_test_good[] = {
    {"", ""},
    {"# only a comment\n", ""},
    {"---\n", ""},
    {"a", "S(a)@1:1 "},
    {"''", "Q()@1:1 "},
    {"- name: a\n  port: 80\n", "[@1:1 {@1:3 S(name)@1:3 S(a)@1:9 S(port)@2:3 S(80)@2:9 } ] "},
    {"\xEF\xBB\xBF- a\n", "[@1:1 S(a)@1:3 ] "},
    {"- a\r\n- 'b'\r\n", "[@1:1 S(a)@1:3 Q(b)@2:3 ] "},
    {"이름: 나무\n주소: \"가 나\"\n", "{@1:1 S(이름)@1:1 S(나무)@1:5 S(주소)@2:1 Q(가 나)@2:5 } "},
    {"a: |\n  one\n  two\n", "{@1:1 S(a)@1:1 Q(one\ntwo\n)@1:4 } "},
    {"a:\nb: [x, {y: z}]\n",
     "{@1:1 S(a)@1:1 S()@1:3 S(b)@2:1 [@2:4 S(x)@2:5 {@2:8 S(y)@2:9 S(z)@2:12 } ] } "},
    {"a: 1\na: 2\n",
     "{@1:1 S(a)@1:1 S(1)@1:4 S(a)@2:1 S(2)@2:4 } "}, /* duplicates are the program's to judge */
    {"no: on\nt: 1:30\n", "{@1:1 S(no)@1:1 S(on)@1:5 S(t)@2:1 S(1:30)@2:4 } "},
    {"%YAML 1.2\n---\n- a\n", "[@3:1 S(a)@3:3 ] "},
};

START_TEST(test_events_and_places)
{
    const struct yaml_walk_good *row = &yaml_walk_test_good[_i];
    struct yaml_walk_test_trace trace = {0};
    struct yaml_walk_fault fault;
    builder_init(&trace.text);
    yaml_walk_fault_init(&fault);
    cy_err err = yaml_walk_test_run(cy_bytes_from_text(row->text), false, &trace, &fault);
    ck_assert_msg(!cy_failed(err), "%s refused: %s", row->text, builder_text_view(&fault.message));
    ck_assert_str_eq(builder_text_view(&trace.text), row->events);
    builder_fini(&trace.text);
    yaml_walk_fault_fini(&fault);
}
END_TEST

struct yaml_walk_bad {
    const char *text;
    uint32_t line;
    uint32_t column;
    const char *english; /* a part of the message */
    const char *korean;
};
static const struct yaml_walk_bad yaml_walk_test_bad[] = {
    {"a: b: c\n", 1, 5, "mapping values are not allowed", "'key: value'가 올 수 없습니다"},
    {"routes:\n  - name: a\n- name: b\n", 3, 1, "did not find expected key", "열쇠(key:)가"},
    {"- a\nb: c\n", 2, 1, "did not find expected '-' indicator (line 1: while parsing a block collection)",
     "'-' 항목이"},
    {"a:\n\tb: c\n", 2, 1, "indent with spaces, not tabs", "탭이 아니라"},
    {"domain: *.example.org\n", 1, 10, "'*' must be quoted", "따옴표로"},
    {"a: \"open\n", 2, 1, "found unexpected end of stream (line 1:", "1번째 줄에서"},
    {"a: &x b\n", 1, 4, "anchors", "닻"},
    {"a: &x [b]\n", 1, 4, "anchors", "닻"},
    {"a: &x {b: c}\n", 1, 4, "anchors", "닻"},
    {"a: *x\n", 1, 4, "aliases", "별칭"},
    {"a: !!int 3\n", 1, 4, "tags", "태그"},
    {"a: ! 3\n", 1, 4, "tags", "태그"},
    {"a: @b\n", 1, 4, "must be quoted", "따옴표로"},
    {"- a\n---\n- b\n", 2, 1, "second document", "둘째 문서"},
    {"%TAG !e! tag:example.org:\n---\n- a\n", 1, 1, "%TAG", "%TAG"},
    {"x: y\na: \x01\n", 2, 4, "control characters are not allowed (U+0001)", "제어 문자"},
    {"이름: 가\n값: \xff\n", 2, 4, "not UTF-8 (byte 0xFF)", "UTF-8이 아닙니다"},
    {"a: \xed\xa0\x80\n", 1, 4, "not UTF-8", "UTF-8"}, /* a surrogate */
    {"\xff\xfe"
     "a",
     1, 1, "not UTF-8", "UTF-8"}, /* UTF-16 */
};

START_TEST(test_what_is_refused_says_where_and_why)
{
    const struct yaml_walk_bad *row = &yaml_walk_test_bad[_i];
    for (int korean = 0; korean < 2; korean++) {
        struct yaml_walk_test_trace trace = {0};
        struct yaml_walk_fault fault;
        builder_init(&trace.text);
        yaml_walk_fault_init(&fault);
        cy_err err = yaml_walk_test_run(cy_bytes_from_text(row->text), korean, &trace, &fault);
        const char *message = builder_text_view(&fault.message);
        ck_assert_msg(cy_is(err, CY_ERR_BAD_FORMAT), "%s: %s", row->text, cy_err_name(err));
        ck_assert_msg(strstr(message, korean ? row->korean : row->english) != NULL, "%s: %s", row->text,
                      message);
        ck_assert_msg(fault.line == row->line && fault.column == row->column, "%s: %u:%u %s", row->text,
                      fault.line, fault.column, message);
        builder_fini(&trace.text);
        yaml_walk_fault_fini(&fault);
    }
}
END_TEST

/* Walks `text` and returns the code; the message must name `limit_name` when it is refused. */
static cy_err yaml_walk_test_limit(const struct builder *text, const char *limit_name)
{
    struct yaml_walk_test_trace trace = {0};
    struct yaml_walk_fault fault;
    builder_init(&trace.text);
    trace.text.count_max = 1; /* the events themselves do not matter here */
    yaml_walk_fault_init(&fault);
    cy_err err = yaml_walk_test_run(builder_view(text), false, &trace, &fault);
    if (cy_failed(err)) ck_assert_ptr_nonnull(strstr(builder_text_view(&fault.message), limit_name));
    builder_fini(&trace.text);
    yaml_walk_fault_fini(&fault);
    return err;
}

START_TEST(test_depth_is_bounded)
{
    for (int over = 0; over < 2; over++) {
        struct builder text;
        builder_init(&text);
        for (int i = 0; i < LIMIT_YAML_DEPTH + over; i++) builder_text(&text, "[");
        for (int i = 0; i < LIMIT_YAML_DEPTH + over; i++) builder_text(&text, "]");
        cy_err err = yaml_walk_test_limit(&text, "YAML_DEPTH");
        ck_assert(over ? cy_is(err, CY_ERR_LIMIT) : !cy_failed(err));
        builder_fini(&text);
    }
}
END_TEST

/* libyaml alone would need a minute for this. */
START_TEST(test_a_deep_hostile_text_ends_at_once)
{
    struct builder text;
    builder_init(&text);
    for (int i = 0; i < 200000; i++) builder_text(&text, "[");
    ck_assert(cy_is(yaml_walk_test_limit(&text, "YAML_DEPTH"), CY_ERR_LIMIT));
    builder_fini(&text);
}
END_TEST

START_TEST(test_nodes_are_bounded)
{
    for (int over = 0; over < 2; over++) {
        struct builder text;
        builder_init(&text);
        builder_text(&text, "[");
        for (int i = 1; i < LIMIT_YAML_NODES + over; i++) builder_text(&text, "a,");
        builder_text(&text, "]");
        cy_err err = yaml_walk_test_limit(&text, "YAML_NODES");
        ck_assert(over ? cy_is(err, CY_ERR_LIMIT) : !cy_failed(err));
        builder_fini(&text);
    }
}
END_TEST

/* A scalar, and what stands between two nodes. */
START_TEST(test_what_one_event_reads_is_bounded)
{
    for (int over = 0; over < 2; over++) {
        for (int comment = 0; comment < 2; comment++) {
            struct builder text;
            builder_init(&text);
            uint8_t *room = builder_reserve(&text, (size_t)LIMIT_YAML_PIECE_BYTES + (size_t)over);
            ck_assert_ptr_nonnull(room);
            memset(room, 'a', (size_t)LIMIT_YAML_PIECE_BYTES + (size_t)over);
            if (comment) room[0] = '#';
            text.count = (size_t)LIMIT_YAML_PIECE_BYTES + (size_t)over;
            cy_err err = yaml_walk_test_limit(&text, "YAML_PIECE_BYTES");
            ck_assert(over ? cy_is(err, CY_ERR_LIMIT) : !cy_failed(err));
            builder_fini(&text);
        }
    }
}
END_TEST

struct yaml_walk_far {
    const char *text;
    const char *message;
    uint32_t column;
};
static const struct yaml_walk_far yaml_walk_test_far[] = {
    {"\xff", "not UTF-8 (byte 0xFF)", 3},
    {"\xed\x95", "not UTF-8 (byte 0xED)", 3},
    {"\x01", "control characters are not allowed (U+0001)", 3},
    {"@",
     "found character that cannot start any token (while scanning for the next token); a value that starts "
     "with it "
     "must be quoted",
     3},
};

/* Far behind the beginning, in another piece, and with letters of several bytes before it. */
START_TEST(test_a_fault_far_behind_has_its_place)
{
    const struct yaml_walk_far *row = &yaml_walk_test_far[_i];
    struct yaml_walk_test_trace trace = {0};
    struct yaml_walk_fault fault;
    struct builder text;
    builder_init(&text);
    for (int i = 0; i < 60000; i++) builder_text(&text, "- 한글\n");
    builder_printf(&text, "- %s\n", row->text);
    builder_init(&trace.text);
    trace.text.count_max = 1;
    yaml_walk_fault_init(&fault);
    ck_assert(cy_is(yaml_walk_test_run(builder_view(&text), false, &trace, &fault), CY_ERR_BAD_FORMAT));
    ck_assert_str_eq(builder_text_view(&fault.message), row->message);
    ck_assert_uint_eq(fault.line, 60001);
    ck_assert_uint_eq(fault.column, row->column);
    builder_fini(&text);
    builder_fini(&trace.text);
    yaml_walk_fault_fini(&fault);
}
END_TEST

START_TEST(test_bytes_are_bounded)
{
    for (int over = 0; over < 2; over++) {
        struct builder text;
        builder_init(&text);
        size_t count = (size_t)LIMIT_YAML_BYTES + (size_t)over;
        uint8_t *room = builder_reserve(&text, count);
        ck_assert_ptr_nonnull(room);
        memset(room, 'a', count);
        for (size_t i = 0; i + 1024 <= count; i += 1024) memcpy(room + i, "\n- ", 3);
        text.count += count;
        cy_err err = yaml_walk_test_limit(&text, "YAML_BYTES");
        ck_assert(over ? cy_is(err, CY_ERR_LIMIT) : !cy_failed(err));
        builder_fini(&text);
    }
}
END_TEST

/* An error of the receiver ends the walk wherever it comes, and is passed on unchanged. */
START_TEST(test_an_error_of_the_receiver_is_passed_on)
{
    cy_bytes text = CY_BYTES("- name: a\n  list: [b, c]\n- 'd'\n");
    for (uint64_t at = 1; at < 100; at++) {
        struct yaml_walk_test_trace trace = {.fail_at = at};
        struct yaml_walk_fault fault;
        builder_init(&trace.text);
        yaml_walk_fault_init(&fault);
        cy_err err = yaml_walk_test_run(text, false, &trace, &fault);
        bool ended = !cy_failed(err);
        if (!ended) ck_assert(cy_is(err, CY_ERR_CANCELLED) && trace.event_count == at);
        builder_fini(&trace.text);
        yaml_walk_fault_fini(&fault);
        if (ended) {
            ck_assert_uint_gt(at, 10);
            return;
        }
    }
    ck_abort_msg("the text has no end");
}
END_TEST

Suite *unit_suite_native_yaml_walk(void);
Suite *unit_suite_native_yaml_walk(void)
{
    Suite *suite = suite_create("native_yaml_walk");
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, test_events_and_places, 0, CY_COUNT_OF(yaml_walk_test_good));
    tcase_add_loop_test(tcase, test_what_is_refused_says_where_and_why, 0, CY_COUNT_OF(yaml_walk_test_bad));
    tcase_add_test(tcase, test_depth_is_bounded);
    tcase_add_test(tcase, test_a_deep_hostile_text_ends_at_once);
    tcase_add_test(tcase, test_nodes_are_bounded);
    tcase_add_test(tcase, test_bytes_are_bounded);
    tcase_add_test(tcase, test_what_one_event_reads_is_bounded);
    tcase_add_loop_test(tcase, test_a_fault_far_behind_has_its_place, 0, CY_COUNT_OF(yaml_walk_test_far));
    tcase_add_test(tcase, test_an_error_of_the_receiver_is_passed_on);
    suite_add_tcase(suite, tcase);
    return suite;
}
