/* SPDX-License-Identifier: MIT
 *
 * vm/code/rule.c: the rows of rule.def as text.
 *
 * In:   a rule, a failure.
 * Out:  names and sentences in Korean or English.
 */
#include "vm/code/verify.h"

#include "vm/base/check.h"

static const struct {
    const char *name;
    const char *korean;
    const char *english;
} rule_rows[CODE_RULE_COUNT] = {
    {"NONE", "문제 없음", "no failure"},
#define RULE(name, korean, english) [CODE_RULE_##name] = {#name, korean, english},
#include "vm/code/rule.def"
#undef RULE
};

static const struct {
    const char *korean;
    const char *english;
} rule_places[] = {
    [CODE_PLACE_FILE] = {"바이트", "byte"},
    [CODE_PLACE_CODE] = {"코드 위치", "code offset"},
    [CODE_PLACE_LINE] = {"줄 표 항목", "line entry"},
    [CODE_PLACE_STRING] = {"문자열", "string"},
    [CODE_PLACE_CONSTANT] = {"상수", "constant"},
    [CODE_PLACE_NATIVE] = {"네이티브", "native"},
    [CODE_PLACE_RECORD] = {"자료형", "record"},
    [CODE_PLACE_MODULE] = {"모듈", "module"},
    [CODE_PLACE_GLOBAL] = {"모듈 변수", "module variable"},
    [CODE_PLACE_FUNCTION] = {"함수", "function"},
    [CODE_PLACE_PROGRAM] = {"프로그램 전체", "the whole program"},
};

const char *code_rule_name(enum code_rule rule)
{
    CHECK((unsigned)rule < CODE_RULE_COUNT);
    return rule_rows[rule].name;
}

const char *code_rule_text(enum code_rule rule, bool korean)
{
    CHECK((unsigned)rule < CODE_RULE_COUNT);
    return korean ? rule_rows[rule].korean : rule_rows[rule].english;
}

void code_failure_describe(const struct code_failure *failure, bool korean, struct builder *out)
{
    CHECK((unsigned)failure->place < CY_COUNT_OF(rule_places));
    builder_printf(out, "%s %s: %s (", korean ? "규칙" : "rule", code_rule_name(failure->rule),
                   code_rule_text(failure->rule, korean));
    if (failure->function != PROGRAM_NO_INDEX) {
        builder_printf(out, "%s %u", korean ? "함수" : "function", failure->function);
        if (failure->function_name.count)
            builder_printf(out, " `%.*s`", CY_BYTES_ARG(failure->function_name));
        if (failure->place != CODE_PLACE_FUNCTION) builder_text(out, ", ");
    }
    const char *place = korean ? rule_places[failure->place].korean : rule_places[failure->place].english;
    if (failure->place == CODE_PLACE_PROGRAM)
        builder_text(out, place);
    else if (failure->place != CODE_PLACE_FUNCTION || failure->function == PROGRAM_NO_INDEX)
        builder_printf(out, "%s%s %u", failure->place == CODE_PLACE_FILE && !korean ? "at " : "", place,
                       failure->offset);
    builder_text(out, ")");
}
