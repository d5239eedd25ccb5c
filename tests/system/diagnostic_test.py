#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/diagnostic_test.py: proves how messages of the compiler reach people and programs: `check`, its exit
# codes and streams, JSON lines whose places are right, colours on a terminal only, `explain`, and that the repository's
# own sources give no warning.

import json
import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, check, check_equal,  # noqa: E402
                     check_in, environment, run, run_all)

GOOD = 'export fn main(args) {\n    print("hello")\n}\n'
WARNED = 'export fn main(args) {\n    let unused = 1\n    print("hello")\n}\n'
WRONG = ('fn f(a) { return a }\nexport fn main(args) {\n\tprint(f(1, 2), "한글 \\"인용\\"", 없는이름)\n'
         '    let x = [1,\n        2\n    let x = 2\n}\n')


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_check_writes_nothing_and_counts(folder):
    good, warned, wrong = (write(folder, f"{name}.han", text) for name, text in
                           (("good", GOOD), ("warned", WARNED), ("wrong", WRONG)))
    before = sorted(folder.iterdir())
    check_equal(run([CROWNYC, "check", good]), (EXIT_OK, "", ""), "a good file: exit code, stdout, stderr")
    code, out, err = run([CROWNYC, "check", warned])
    check_equal((code, err), (EXIT_OK, ""), "a file with warnings: exit code, stderr")
    check_in(f"{warned}:2:9: warning W0101: `unused`", out, "stdout")
    check_in("\n1 warning\n", out, "stdout")
    check_equal(run([CROWNYC, "check", "--deny-warnings", good])[0], EXIT_OK, "--deny-warnings, none")
    check_equal(run([CROWNYC, "check", warned, "--deny-warnings"])[0], EXIT_PROGRAM, "--deny-warnings, one")
    code, out, _ = run([CROWNYC, "check", warned, wrong, good])
    check_equal(code, EXIT_PROGRAM, "several files")
    check_in("1 warning\n", out, "the first file")
    check_in("errors\n", out, "the second")
    check_equal(sorted(folder.iterdir()), before, "files afterwards")
    check_equal(run([CROWNYC, "check"])[0], EXIT_USAGE, "no file")
    check_equal(run([CROWNYC, "check", "--nonsense", good])[0], EXIT_USAGE, "an unknown option")
    code, out, _ = run([CROWNYC, "check", folder / "missing.han"])
    check_equal(code, EXIT_PROGRAM, "a missing file")
    check_in("E0083", out, "stdout")


# Sound, though a part of each looks like a mark of another language.
TRICKY = ["x--1", "x --1", "x---1", "--x", "[\n--x,\n--1]", "f(\n--x\n)", "x--\n1", "x-- // 1\n1", "(x--\n1)",
          "{a:\n--x}", "{a:--x}", "x*-1", "x/-1", "x<-1", "x>-1", "x==-1", "x!=-1", "x<<-1+2", "x&-1", "x|-1", "x^~1",
          "!(x==1)", "!!x", "-~x", "~-x", "0..--x", '"--"', '"?.\\(--x)?? => # /* ++"', "`** <> === ' :=`", "[x][--0]",
          "f(f(--x))", "x // ++ -- ?? /* # =>\n", "x %\n--x", "x +\n-1", "fn (a: int = --1) { return --a }"]


def test_sound_texts_are_never_taken_for_another_language(folder):
    paths = [write(folder, f"tricky{i}.han",
                   f"fn f(a) {{ return a }}\nexport fn main(args) {{\n    let x = 5\n    print(f({text}), x)\n}}\n")
             for i, text in enumerate(TRICKY)]
    check_equal(run([CROWNYC, "check", *paths]), (EXIT_OK, "", ""), "check of the tricky ones")
    check_equal(run([CROWNYC, "fmt", *paths])[0], EXIT_OK, "fmt of them")
    check_equal(run([CROWNYC, "check", *paths]), (EXIT_OK, "", ""), "check of them behind fmt")
    sound = [path for path in sorted((ROOT / "tests/lang").rglob("*.han"))
             if "expect error" not in path.read_text(encoding="utf-8") and not path.name.startswith("cycle_")]
    check(len(sound) > 300, f"{len(sound)} sources")
    code, out, err = run([CROWNYC, "check", *sound])
    check_equal((code, " error " in out, err), (EXIT_OK, False, ""), f"check of tests/lang: {out[:2000]}")


def test_a_module_needs_no_main(folder):
    module = write(folder, "module.han", "export fn one() { return 1 }\n")
    check_equal(run([CROWNYC, "check", module]), (EXIT_OK, "", ""), "check of a module")
    check_equal(run([CROWNYC, "compile", module])[0], EXIT_PROGRAM, "compile of a module")


def test_compile_warns_and_run_does_not(folder):
    warned = write(folder, "warned.han", WARNED)
    code, out, err = run([CROWNYC, "compile", warned, "-o", folder / "a.toau"])
    check_equal((code, out), (EXIT_OK, ""), "exit code, stdout")
    check_in("W0101", err, "stderr")
    code, _, err = run([CROWNYC, "compile", "--quiet", warned, "-o", folder / "b.toau"])
    check_equal((code, err), (EXIT_OK, ""), "--quiet: exit code, stderr")
    check_equal((folder / "a.toau").read_bytes(), (folder / "b.toau").read_bytes(), "the files")
    check_equal(run([CROWNYC, "run", warned]), (EXIT_OK, "hello\n", ""), "run")
    done = subprocess.run([BUILD / "hanseonc_high", warned], capture_output=True, env=environment())
    check_equal((done.returncode, done.stderr), (EXIT_OK, b""), "the filter: exit code, stderr")


def place_of(text, line, column):
    """The byte offset of a line and column, both from 1, the column in code points."""
    lines = text.split("\n")
    return len("\n".join(lines[:line - 1]).encode()) + (line > 1) + len(lines[line - 1][:column - 1].encode())


def test_json_lines_have_true_places(folder):
    wrong = write(folder, "wrong.han", WRONG)
    code, out, err = run([CROWNYC, "check", "--json", wrong])
    check_equal((code, err), (EXIT_PROGRAM, ""), "exit code, stderr")
    found = [json.loads(line) for line in out.splitlines()]
    check_equal([one["code"] for one in found], ["E0060", "E0040", "E0020", "E0043"], "codes")
    paper = (ROOT / "docs/DIAGNOSTICS.md").read_text(encoding="utf-8")
    for one in found:
        for member in one:
            check_in(f"`{member}`", paper, "docs/DIAGNOSTICS.md")
        check_equal(one["severity"], "error", "severity")
        for place in [one, *one["related"]]:
            check_equal(place["file"], str(wrong), "file")
            check_equal(place["start_byte"], place_of(WRONG, place["line"], place["column"]), "start")
            check_equal(place["end_byte"], place_of(WRONG, place["end_line"], place["end_column"]), "end")
    text = WRONG.encode()
    check_equal(text[found[1]["start_byte"]:found[1]["end_byte"]].decode(), "없는이름", "the span of the unknown name")
    check_equal(found[0]["related"][0]["message"], "declared here", "the second place")
    check_equal(found[1]["hint"], None, "no hint")
    korean = json.loads(run([CROWNYC, "--lang", "ko", "check", "--json", wrong])[1].splitlines()[1])
    check_equal(korean["message"], "알 수 없는 이름 `없는이름`", "Korean message")
    warned = write(folder, "warned.han", WARNED)
    code, out, err = run([CROWNYC, "compile", "--json", warned, "-o", folder / "w.toau"])
    check_equal((code, out), (EXIT_OK, ""), "compile --json: messages are on stderr")
    check_equal(json.loads(err)["severity"], "warning", "severity")


def test_json_is_one_line_of_utf8_whatever_the_source_holds(folder):
    source = folder / "broken.han"
    source.write_bytes(b'export fn main(args) {\n    \x1b[31m \xff print("\\q\t") \xe2\x80\xae \x00 qq"\n')
    out = subprocess.run([CROWNYC, "check", "--json", source], capture_output=True, env=environment()).stdout
    lines = out.decode("utf-8").splitlines()
    check(len(lines) >= 3, f"messages: {lines}")
    for line in lines:
        json.loads(line)
        check(all(ord(c) >= 0x20 and c not in "\u202e" for c in line), f"control characters in {line!r}")


def on_terminal(command, **variables):
    """What a command writes when all its streams are a terminal."""
    parent, child = pty.openpty()
    process = subprocess.Popen(list(map(str, command)), stdin=child, stdout=child, stderr=child,
                               env=environment(TERM="xterm", **variables))
    os.close(child)
    out = b""
    try:
        while True:
            piece = os.read(parent, 65536)
            if not piece:
                break
            out += piece
    except OSError:  # the other end is closed: Linux says so as an error
        pass
    os.close(parent)
    process.wait()
    return out.decode("utf-8")


def test_colours_on_a_terminal_only(folder):
    wrong = write(folder, "wrong.han", WRONG)
    for command in ([CROWNYC, "check", wrong], [CROWNYC, "compile", wrong, "-o", folder / "a.toau"]):
        shown = on_terminal(command)
        check("\x1b[1;31merror E0060: \x1b[0m" in shown, f"no colours on a terminal: {shown!r}")
        check("\x1b" not in on_terminal(command, NO_COLOR="1"), "NO_COLOR is not honoured")
        check("\x1b" in on_terminal(command, NO_COLOR=""), "an empty NO_COLOR is none")
        _, out, err = run(command)
        check("\x1b" not in out + err, "colours in a pipe")
        plain = shown.replace("\r\n", "\n")
        for code in ("\x1b[0m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[1;36m"):
            plain = plain.replace(code, "")
        check_equal(plain, out + err, "the text without colours")
    check("\x1b" not in on_terminal([CROWNYC, "check", "--json", wrong]), "colours in JSON")


def test_explain(folder):
    code, out, err = run([CROWNYC, "explain", "E0040"])
    check_equal((code, err), (EXIT_OK, ""), "exit code, stderr")
    for part in ("E0040: unknown name", "Wrong:", "main.han:3:11: error E0040: unknown name `cuont`", "Right:"):
        check_in(part, out, "the page")
    check_in("알 수 없는 이름", run([CROWNYC, "--lang", "ko", "explain", "40"])[1], "the Korean page")
    code, out, err = run([CROWNYC, "explain", "E9999"])
    check_equal((code, out), (EXIT_USAGE, ""), "an unknown code")
    # What stands at a warning is what explain takes; its number as an error is another thing, and named as the nearest.
    source = folder / "unused.han"
    source.write_text("export fn main(args) {\n    let spare = 1\n}\n", encoding="utf-8")
    shown = json.loads(run([CROWNYC, "check", "--json", source])[1].splitlines()[0])["code"]
    check_equal(shown, "W0101", "the code at the warning")
    check_in("W0101: `…` is never used", run([CROWNYC, "explain", shown])[1], "the page of a warning")
    for wrong, meant in (("W0001", "E0001"), ("E0101", "W0101"), ("W0040", "E0040"), ("E0070", "E0069")):
        for lang, words in (("en", f"{wrong} (did you mean {meant}?)"), ("ko", f"{wrong} (혹시 {meant}?)")):
            code, out, err = run([CROWNYC, "--lang", lang, "explain", wrong])
            check_equal((code, out), (EXIT_USAGE, ""), f"explain {wrong}")
            check_in(words, err, f"explain {wrong}")
    check_in("as E0040 or W0101", run([CROWNYC, "--lang", "en", "explain", "unused"])[2], "no code at all")
    code, out, _ = run([CROWNYC, "explain"])
    check_equal(code, EXIT_OK, "the list")
    codes = [line.split()[0] for line in out.splitlines()]
    check(len(codes) > 80 and len(set(codes)) == len(codes), "the list has each code once")
    for one in codes:  # whatever stands in examples, a page is text
        page = subprocess.run([CROWNYC, "explain", one], capture_output=True, env=environment()).stdout
        page = page.decode("utf-8")
        check("\x1b" not in page and "\u202e" not in page, f"{one}: control characters")


# Sources of the repository that are meant to be as people should write. The tests of the language are not among them:
# what they do wrong on purpose is marked in the files (// expect warning).
def test_own_sources_give_no_warning(folder):
    sources = sorted((ROOT / "programs").rglob("*.han")) + sorted((ROOT / "bench").rglob("*.han"))
    check(len(sources) > 3, "no sources found")
    said = ""
    for source in sources:
        for line in run([CROWNYC, "check", "--json", source])[1].splitlines():
            one = json.loads(line)
            if one["severity"] == "warning":  # what has errors is other tests' business
                said += f"{one['file']}:{one['line']}: {one['code']} {one['message']}\n"
    check_equal(said, "", "messages")


# A warning of these says that the code is certainly wrong or dead, so it needs a mark where a test means it. "May be
# nil" (W0111) is no such claim: a test knows what its own pattern finds.
JUDGED = {"W0106", "W0110", "W0112", "W0113"}


def test_no_false_alarm_in_the_tests_of_the_language(folder):
    wrong = ""
    for source in sorted((ROOT / "tests").rglob("*.han")):
        text = source.read_text(encoding="utf-8")
        if "expect error" in text or source.parent.name == "diagnostic":
            continue
        lines = text.split("\n")
        for line in run([CROWNYC, "check", "--json", source])[1].splitlines():
            one = json.loads(line)
            meant = "expect warning" in lines[one["line"] - 1] or pathlib.Path(one["file"]) != source
            if one["code"] in JUDGED and not meant:
                wrong += f"{source.relative_to(ROOT)}:{one['line']}: {one['code']} {one['message']}\n"
    check_equal(wrong, "", "warnings without a mark (// expect warning: CODE, or mend the test)")


def test_bytecode_is_named(folder):
    source, code_file = folder / "a.han", folder / "a.toau"
    source.write_text("export fn main(args) { print(1) }\n")
    check_equal(run([CROWNYC, "compile", source, "-o", code_file])[0], EXIT_OK, "compiling")
    before = code_file.read_bytes()
    for command in ["check"], ["fmt"], ["fmt", "--check"], ["fix"], ["test"]:
        code, out, err = run([CROWNYC, *command, code_file])
        check_equal(code, EXIT_PROGRAM, f"exit code of {command}")
        check_in("error E0015: this is bytecode (.toau), not source", out + err, command)
        check("E0001" not in out + err and "E0002" not in out + err, f"{command} read on: {out + err}")
    check_equal(code_file.read_bytes(), before, "the file")


run_all(globals())
