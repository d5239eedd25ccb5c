#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/korean_test.py: proves that a run in Korean says everything in Korean: messages of natives, of the VM,
# the stack of an error across tasks; while the kinds of errors, which programs compare, stay as they are.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, EXIT_PROGRAM, check, check_equal, check_in, environment, run,  # noqa: E402
                     run_all)

CAUGHT = """
import "fs"
import "hex"
import "http"
import "json"
import "jwt"
import "text"
import "time"
import "url"

fn attempt(f) {
    try { print("none", f()) } catch e { print(e.kind + "|" + e.message) }
}

export fn main(args) {
    attempt(fn () { return text.join([1], ",") })
    attempt(fn () { return text.repeat("x", -1) })
    attempt(fn () { return url.parse("http://a/", {user_info: true}) })
    attempt(fn () { return url.parse(":x") })
    attempt(fn () { return time.parse("2026-13-01T00:00:00Z") })
    attempt(fn () { return int("zz") })
    attempt(fn () { return hex.decode("0g") })
    attempt(fn () { return jwt.verify("a.b", "c", {algorithms: ["HS256"]}) })
    attempt(fn () { return fs.read("not there") })
    attempt(fn () { return json.write(attempt) })
    attempt(fn () { return json.write(1.0e300 * 1.0e300) })
    attempt(fn () { return json.write({a: [{}, "\\u{0}"], b: {"x": 0..2}}) })
    attempt(fn () { return http.upstream("nope") })
    attempt(fn () { return http.upstream("http://u@a") })
    attempt(fn () { return http.upstream("http://a:b") })
    attempt(fn () { return http.upstream("http://a/?q") })
    attempt(fn () { return http.request("GET", "nope") })
    attempt(fn () { return len(1) })
    attempt(fn () { return 1 / (len(args)) })
    attempt(fn () { return {a: 1}["b"] })
    attempt(fn () { return args[3] })
}
"""
KINDS = ["type", "value", "value", "bad_format", "bad_format", "value", "bad_format", "token", "not_found", "type",
         "value", "type", *["bad_address"] * 5, "type",
         "division", "key", "index"]

UNCAUGHT = """
import "task"
import "text"

fn inner(n) {
    return text.repeat("x", n)
}

export fn main(args) {
    let t = spawn inner(-1)
    print(task.wait(t))
}
"""


def source(folder, text):
    path = folder / "k.han"
    path.write_text(text, encoding="utf-8")
    return path


def test_kinds_stay_and_messages_are_korean(folder):
    path = source(folder, CAUGHT)
    english = run([CROWNYC, "--lang", "en", "run", path], cwd=folder)
    korean = run([CROWNYC, "--lang", "ko", "run", path], cwd=folder)
    check_equal((english[0], korean[0]), (EXIT_OK, EXIT_OK), f"exit codes: {english[2]} {korean[2]}")
    rows = [[line.partition("|") for line in text.splitlines()] for text in (english[1], korean[1])]
    check_equal([kind for kind, _, _ in rows[0]], KINDS, "kinds in English")
    check_equal([kind for kind, _, _ in rows[1]], KINDS, "kinds in Korean")
    for (_, _, message), (_, _, translated) in zip(*rows):
        check(not re.search("[가-힣]", message), f"Korean in an English run: {message}")
        check(re.search("[가-힣]", translated), f"no Korean: {translated}")
    check_in("text.join: 0번 항목은 str이어야 하는데 int입니다", korean[1], "a message of a native")
    check_in('옵션 "user_info" (혹시 "userinfo"?)', korean[1], "a message with a hint")
    check_in("url.parse: ':' 앞의 스킴: ", korean[1], "a part of a message")


def test_the_language_is_that_of_the_environment(folder):
    path = source(folder, CAUGHT)
    given = run([CROWNYC, "run", path], cwd=folder, env=environment(LANG="ko_KR.UTF-8"))
    asked = run([CROWNYC, "--lang", "ko", "run", path], cwd=folder)
    check_equal(given, asked, "LANG=ko_KR.UTF-8 and --lang ko")


def test_a_program_can_ask_for_the_language(folder):
    path = source(folder, 'import "env"\nexport fn main(args) { print(env.language()) }\n')
    for language in ("en", "ko"):
        code, out, err = run([CROWNYC, "--lang", language, "run", path], cwd=folder)
        check_equal((code, out, err), (EXIT_OK, f"{language}\n", ""), f"--lang {language}")
    code, out, err = run([CROWNYC, "run", path], cwd=folder, env=environment(LANG="ko_KR.UTF-8"))
    check_equal((code, out, err), (EXIT_OK, "ko\n", ""), "LANG=ko_KR.UTF-8")


def test_the_stack_of_an_uncaught_error(folder):
    path = source(folder, UNCAUGHT)
    code, out, err = run([CROWNYC, "--lang", "ko", "run", path], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_equal(err.splitlines(), ["value: text.repeat: 횟수는 0 이상이어야 하는데 -1입니다",
                                   "  위치: inner (k.han:6:12)",
                                   "  맡긴 곳: main (k.han:10:13)",
                                   "  기다린 곳: main (k.han:11:11)"], "stderr")
    code, _, err = run([CROWNYC, "--lang", "en", "run", path], cwd=folder)
    check_equal([line.split(" main")[0] for line in err.splitlines()[1:]],
                ["  at inner (k.han:6:12)", "  spawned in", "  awaited in"], "the same in English")


TESTED = """
import "test"

test "a" { test.equal(3, 4) }
test "b" { test.equal(3, 4, "number") }
test "c" { test.not_equal(3, 3) }
test "d" { test.holds(1 > 2) }
test "e" { test.near(1.0, 2.0) }
test "f" { test.fails(fn () { return 1 }) }
test "g" { test.fails(fn () { return [1][5] }, "key") }
test "h" { test.holds(1 > 2, "said by the program") }
"""


def test_what_tests_expect(folder):
    path = source(folder, TESTED)
    for lang, lines in (("en", ("value: expected 4, found 3", "number: expected 4, found 3",
                                "value: expected anything but 3", "a condition does not hold", "expected an error,",
                                "value: expected 2.0 within 1e-9, found 1.0", "of kind key, found index: ",
                                "said by the program")),
                        ("ko", ("값: 4이어야 하는데 3입니다", "number: 4이어야 하는데 3입니다", "값: 3이면 안 됩니다",
                                "조건이 참이 아닙니다", "오류가 나야 하는데 나지 않았습니다",
                                "값: 2.0에서 1e-9 이내여야 하는데 1.0입니다", "종류가 key인 오류가 나야 하는데",
                                "said by the program"))):
        code, out, err = run([CROWNYC, "test", "--lang", lang, path], cwd=folder)
        check_equal(code, EXIT_PROGRAM, f"exit code: {err}")
        for line in lines:
            check_in(line, out + err, f"--lang {lang}")


run_all(globals())
