#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/fix_test.py: proves that crownyc fix rewrites what docs/DIALECT.md says, leaves alone and lists what it
# says it lists, gives a program that runs, changes nothing a second time, and nothing at all in sources of this
# language.

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, check, check_equal, check_in, environment, \
    run_all  # noqa: E402


def crownyc(*arguments, stdin=None):
    result = subprocess.run([CROWNYC, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                            env=environment())
    return result.returncode, result.stdout, result.stderr


def body(text):
    return "export fn main(args) {\n    let x = 1\n    let y = [1, 2]\n" + text + "\n    print(x, y)\n}\n"


# inside main: before, after
PAIRS = [
    ("x += 2", "x = x + 2"),
    ("x -= 1 - 2", "x = x - (1 - 2)"),
    ("x *= len(y) // all of it", "x = x * len(y) // all of it"),
    ("x <<= 1 + x   y[0] += x", "x = x << (1 + x)   y[0] = y[0] + x"),
    ("y[x - 1] += -x", "y[x - 1] = y[x - 1] + -x"),
    ("x += 1\n        + x", "x = x + (1\n        + x)"),
    ('print("a; b") // c; d', 'print("a; b") // c; d'),
    ("print(1); (print)(2)", "print(1)\n(print)(2)"),
    ("if x == 1 { print(1) } else if x == 2 { print(2) }", "if x == 1 { print(1) } elif x == 2 { print(2) }"),
    ("if x == 1 { } else // why\n    if x == 2 { }", "if x == 1 { } else // why\n    if x == 2 { }"),
    ("if x == 1 { } elsif (x == 2) { }", "if x == 1 { } elif (x == 2) { }"),
    ("try { print(1) } catch (e) { print(e) }", "try { print(1) } catch e { print(e) }"),
    ("try { print(1) } catch(e){ print(e) }", "try { print(1) } catch e { print(e) }"),
    ("var z = 1; print(z)", "let z = 1\nprint(z)"),
    ("let var = 2\n    print(var)", "let var = 2\n    print(var)"),
    ("print(긍정, ■)", "print(티, 옴)"),
    ("let 긍정 = 3\n    print(긍정)", "let 긍정 = 3\n    print(긍정)"),
    ("if3 (x == 1) { 부정: { print(1) } 긍정: { } }", "match (x == 1) { 타 { print(1) } 티 { } }"),
    ("만약3 (옴) { 옴: { 만약3 (티) { 티: { print(2) } } } }", "맞춰 (옴) { 옴 { 맞춰 (티) { 티 { print(2) } } } }"),
    ("if x == 1 && !(x == 2) || false { }", "if x == 1 && !(x == 2) || false { }"),
]

# inside main: what is listed, and the place where
LISTED = [
    ("만약3 (x) { print(1) } 아니면 { print(2) }", "IF3_SHAPE", "4:1"),
    ("만약3 (x) { 긍정: { } 긍정: { } }", "IF3_SHAPE", "4:1"),
    ("print(__내장__(12, x))", "BUILTIN_KEY: `__내장__(12)`", "4:7"),
    ("print(__builtin__(x))", "BUILTIN_KEY: `__builtin__`", "4:7"),
    ("print(옴 + 1)", "TRIT_MATH: `옴`", "4:7"),
    ("print(티 < 타)", "TRIT_MATH: `타`", "4:11"),
    ("print(아닌 옴)", "TRIT_MATH", "4:10"),
    ("주장 c = (x, 1)", "CLAIM: `주장`", "4:1"),
    ("range(x)[0] += 1", "TARGET: `+=`", "4:13"),
    ("y[len(y)] += 1", "TARGET: `+=`", "4:11"),
    ("print(x; x)", "SEMICOLON_IN: `;`", "4:8"),
]


def test_pairs(folder):
    wrong = []
    for before, after in PAIRS:
        code, out, err = crownyc("fix", "-", stdin=body(before))
        if (code, out) != (EXIT_OK, body(after)):
            wrong.append(f"{before!r}: exit code {code}\n{out}{err}")
            continue
        check_equal(crownyc("fix", "-", stdin=out)[1], out, f"{before!r} a second time")
        source = folder / "pair.han"
        source.write_text(out, encoding="utf-8")
        code, _, err = crownyc("run", source)
        if code != EXIT_OK:
            wrong.append(f"{before!r}: does not run: {err}")
    check(not wrong, "\n".join(wrong))


def test_what_is_listed(folder):
    for text, words, place in LISTED:
        code, out, err = crownyc("fix", "-", stdin=body(text))
        check_equal((code, out), (EXIT_PROGRAM, body(text)), f"{text}: exit code and text")
        check_in(words, err, text)
        check_in(f"<stdin>:{place}: not rewritten", err, text)
        check(not re.search(r"\b0 left to do", err), f"{text}: the count says so: {err}")


def test_semicolons_that_end_lines(folder):
    code, out, _ = crownyc("fix", "-", stdin=body("    print(1); ; print(2); // two\n    { x = 1; }"))
    check_equal(code, EXIT_PROGRAM, "a block without a head is the compiler's business")
    check_in("E0039", crownyc("fix", "-", stdin=out)[2], "and it says so")
    check(";" not in out, out)


def test_merged_imports(folder):
    (folder / "수학.han").write_text("내보내기 함수 제곱(x) { 반환 x * x }\n함수 숨김() { 반환 1 }\n"
                                   "내보내기 변수 밑 = 2\n", encoding="utf-8")
    (folder / "또.han").write_text("내보내기 함수 둘다() { }\n", encoding="utf-8")
    (folder / "또또.han").write_text("내보내기 함수 둘다() { }\n", encoding="utf-8")
    main = folder / "main.han"
    before = ('가져오기 "수학"\n가져오기 "text"\n가져오기 또 = "./또"\n가져오기 "./또또"\n'
              '내보내기 함수 main(args) {\n    변수 f = 함수 (제곱) { 반환 제곱 }\n'
              '    출력(제곱(밑), "\\(제곱(f(3)))", trim(" a "))\n    출력(숨김())\n    둘다()\n}\n')
    main.write_text(before, encoding="utf-8")
    code, _, err = crownyc("fix", main)
    check_equal(code, EXIT_PROGRAM, "two are listed")
    check_in("main.han:8:8: not rewritten NOT_EXPORTED: `수학.숨김`", err, "not exported")
    check_in("main.han:9:5: not rewritten AMBIGUOUS: `둘다`", err, "two modules have it")
    check_in("2 left to do", err, "the count")
    after = (before.replace('"수학"', '"./수학"').replace("제곱(밑)", "수학.제곱(수학.밑)")
             .replace("\\(제곱(", "\\(수학.제곱(").replace("trim(", "text.trim("))
    check_equal(main.read_text(encoding="utf-8"), after, "the names; a parameter of the name keeps it")
    library = folder / "수학.han"
    library.write_text(library.read_text(encoding="utf-8").replace("\n함수", "\n내보내기 함수"), encoding="utf-8")
    main.write_text(after.replace("    둘다()\n", "    또.둘다() 또또.둘다()\n"), encoding="utf-8")
    check_equal(crownyc("fix", main)[0], EXIT_OK, "with the export")
    check_equal(crownyc("run", main)[:2], (EXIT_OK, "4 9 a\n1\n"), "the program")


def test_builtins_by_a_table(folder):
    table = folder / "table"
    table.write_text('// numbers\n12 text.trim\n1 no such name!\n"글자" len\n')
    code, out, err = crownyc("fix", "-", "--builtins", table, stdin=body(
        'print(__내장__(12, " a "), __sys__("글자", y), __builtin__("글자", "b"))'))
    check_equal((code, out), (EXIT_OK, 'import "text"\n' + body('print(text.trim(" a "), len(y), len("b"))')), err)
    code, out, _ = crownyc("fix", "-", "--builtins", table, stdin=body("print(__내장__(1))"))
    check_equal((code, out), (EXIT_PROGRAM, body("print(__내장__(1))")), "a name that is none")
    check_equal(crownyc("fix", "-", "--builtins", folder / "none", stdin="")[0], EXIT_PROGRAM, "no table")


def test_statements_at_the_top_level(folder):
    source = folder / "top.han"
    source.write_text("씨 두배(n) { 반환 n * 2 }\n놓다 a = 두배(2)\n출력(a) // first\n변수 b = a; b += 1\n"
                      "출력(b) // last\n", encoding="utf-8")
    check_equal(crownyc("fix", source)[0], EXIT_OK, "exit code")
    check_equal(source.read_text(encoding="utf-8"),
                "함수 두배(n) { 반환 n * 2 }\n변수 a = 두배(2)\n내보내기 함수 main(args) {\n출력(a) // first\n"
                "변수 b = a\nb = b + 1\n출력(b) // last\n}\n", "the text")
    check_equal(crownyc("run", source)[:2], (EXIT_OK, "4\n5\n"), "the program")
    for mixed in ["print(1)\nfn f() { }\n", "export fn main(args) { }\nprint(1)\n"]:
        code, out, err = crownyc("fix", "-", stdin=mixed)
        check_equal((code, out), (EXIT_PROGRAM, mixed), mixed)
        check_in("not rewritten TOP_LEVEL: `print`", err, mixed)


def test_check_and_diff_write_nothing(folder):
    old, fine = folder / "old.han", folder / "fine.han"
    old.write_text(body("x += 1"))
    fine.write_text(body("x = 2"))
    check_equal(crownyc("fix", "--check", folder)[:2], (EXIT_PROGRAM, f"{old}\n"), "--check")
    code, out, _ = crownyc("fix", "--diff", folder)
    check_equal((code, out), (EXIT_PROGRAM, f"--- {old}\n+++ {old}\n@@ 4 @@\n-x += 1\n+x = x + 1\n"), "--diff")
    check_equal(old.read_text(), body("x += 1"), "the file")
    check_equal(crownyc("fix", folder)[0], EXIT_OK, "fix")
    check_equal(crownyc("fix", "--check", folder)[:2], (EXIT_OK, ""), "afterwards")
    check_equal(crownyc("fix")[0], EXIT_USAGE, "no file")


def test_what_is_no_text_is_not_touched(folder):
    for text in ['let a = "open\nx += 1;\n', "let a = `open; x += 1\n", "let a = 1 ◆ 2;\n"]:
        source = folder / "bad.han"
        source.write_text(text, encoding="utf-8")
        code, _, err = crownyc("fix", source)
        check_equal((code, source.read_text(encoding="utf-8")), (EXIT_PROGRAM, text), text)
        check_in("error E00", err, text)


def test_many_mistakes(folder):
    code, out, err = crownyc("fix", "-", stdin=body("x += 1;\n" * 3000))
    check_equal((code, out), (EXIT_OK, body("x = x + 1\n" * 3000)), err[-300:])
    code, out, err = crownyc("fix", "-", stdin=body("print(긍정)\n" * 1000))
    check_equal((code, out), (EXIT_OK, body("print(티)\n" * 1000)), err[-300:])


def test_sources_of_this_language_stay(folder):
    for part in ["programs", "stdlib"]:
        check_equal(crownyc("fix", "--check", ROOT / part)[1], "", part)


def test_the_paper_shows_what_happens(folder):
    text = (ROOT / "docs" / "DIALECT.md").read_text(encoding="utf-8")
    before = re.search(r"^```han\n(.*?)^```$", text, re.S | re.M).group(1)
    after = re.search(r"^After.*?^```hanseon\n(.*?)^```$", text, re.S | re.M).group(1)
    source = folder / "옛.han"
    source.write_text(before, encoding="utf-8")
    check_equal(crownyc("fix", source)[0], EXIT_OK, "fix")
    check_equal(crownyc("fmt", source)[0], EXIT_OK, "fmt")
    check_equal(source.read_text(encoding="utf-8"), re.sub(r" // expect:.*", "", after), "the example")
    rows = set(re.findall(r"\b(?:REWRITE|REMAINS)\((\w+),", (ROOT / "compiler" / "fix.def").read_text()))
    rows -= {"id"}
    named = set(re.findall(r"\b[A-Z][A-Z0-9_]+\b", "\n".join(line for line in text.splitlines() if line[:2] == "| ")))
    check_equal(rows - named, set(), "rows of fix.def that the paper does not name")


def test_the_compiler_names_it(folder):
    source = folder / "old.han"
    source.write_text(body("    만약3 (x) { 긍정: { print(__내장__(1)) } }\n    print(__sys__(1))"))
    _, out, _ = crownyc("check", source)
    check_equal(len(re.findall("error E0073", out)), 2, out)
    check_in("crownyc fix", out, "the hint")


run_all(globals())
