#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/nesting_test.py: proves that each kind of nesting goes 200 deep through every command, that the C stack
# holds it with room to spare, and that what nests past NESTING_DEPTH is told the limit's name and value.
#
# In:   rows of KINDS: what opens a level, what lies in the middle, what closes a level, what the program prints.
# Not here: chains that are long and not deep (large_programs.py), DEFER_DEPTH (large_programs_test.py).

import os
import pathlib
import re
import resource
import subprocess
import sys

CROWNYC = os.environ["CROWNYC"]
LEVELS = 200
FAR = 100_000
ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPTH = int(re.search(r"LIMIT\(NESTING_DEPTH,\s*(\d+)", (ROOT / "vm/base/limits.def").read_text()).group(1))
# What limits.def promises. Frames of a sanitizer are larger.
STACK_BYTES = (8 if os.environ.get("CROWNYC_SANITIZED") else 2) << 20

HEAD = """import "task"
record Box { x = nil }
fn id(x) { return x }
fn get(x) { return x() }
"""


def value(open_, middle, close, expected, *, shown="{}"):
    """A level of expressions: the program prints what the whole is, or what `shown` makes of it."""
    return "print(" + shown.split("{}")[0], open_, middle, close, shown.split("{}")[1] + ")\n", expected


def block(open_, middle="print(\"in\")\n", close="}\n", expected="in"):
    return "", open_, middle, close, "", expected


# name: before, what opens a level, what is innermost, what closes a level, after, what it prints.
KINDS = {
    "parentheses": value("(", "1", ")", "1"),
    "list": value("[", "", "]", "1", shown="len({})"),
    "list on lines": value("[\n", "", "\n]", "1", shown="len({})"),
    "map": value("{a: ", "1", "}", "1", shown="len({})"),
    "map with a key in quotes": value('{"a b": ', "1", "}", "1", shown="len({})"),
    "list of maps": value("[{a: ", "1", "}]", "1", shown="len({})"),
    "call": value("id(", "2", ")", "2"),
    "call with a name": value("id(x: ", "2", ")", "2"),
    "record": value("Box(x: ", "1", ")", "Box", shown="kind_of({})"),
    "ref": value("ref(", "1", ")", "ref", shown="kind_of({})"),
    "index": value("[0][", "0", "]", "0"),
    "not": value("!", "true", "", "true"),
    "minus": value("- ", "len(args)", "", "0"),
    "complement": value("~", "len(args)", "", "0"),
    "not and parentheses": value("!(", "true", ")", "true"),
    "right operands": value("1 + (", "0", ")", str(LEVELS)),
    "loosest to tightest": value("id(false or true and 1 == 1 + 0 * len([", "1", "]))", "true"),
    "interpolation": value('"\\(', "3", ')"', "3"),
    "interpolation in a call": value('id("\\(', "3", ')")', "3"),
    "fn": value("get(fn () { return ", "4", " })", "4"),
    "fn with a default": value("get(fn (a = 1) { return ", "4", " })", "4"),
    "fn of fn": value("fn () { return ", "4", " }", "function", shown="kind_of({})"),
    "fn of a captured name": ("let seen = 5\nprint(", "get(fn () { return ", "seen", " })", ")\n", "5"),
    "annotated fn": value("get(fn () -> int | str { return ", "4", " })", "4"),
    "fn in a list": value("[fn (x: list | nil) -> list { return ", "[]", " }]", "1", shown="len({})"),
    "fn in statements": value("get(fn () {\nif true {\nreturn ", "4", "\n}\nreturn nil\n})", "4"),
    "local fn": block("fn inner(a) {\n", close="}\ninner(1)\n"),
    "if": block("if len(args) == 0 {\n"),
    "else": block("if len(args) == 1 { print(1) } else {\n"),
    "elif": block("if len(args) == 1 { print(1) } elif len(args) == 0 {\n"),
    "while": block("while true {\n", close="break\n}\n"),
    "loop": block("loop {\n", close="break\n}\n"),
    "for": block("for i in 0..1 {\n"),
    "for of a map": block("for k, v in {a: 1} {\n"),
    "match": block("match len(args) { 0 {\n", close="} }\n"),
    "match with else": block("match len(args) { 1 { print(1) } else {\n", close="} }\n"),
    "try": block("try {\n", close="} catch e { print(e) }\n"),
    "catch": block("try { throw 1 } catch e {\n"),
    "match in fn": value('get(fn () { match 1 { 1 { return ', "6", " } } return nil })", "6"),
    "try in fn": value("get(fn () { try { return ", "6", " } catch e { throw e } return nil })", "6"),
    "spawn": value("task.wait(spawn id(", "8", "))", "8"),
}


def source(kind, levels):
    before, open_, middle, close, after, _ = KINDS[kind]
    body = before + open_ * levels + middle + close * levels + after
    return HEAD + "export fn main(args) {\n" + body + "}\n"


def crownyc(*words):
    small = lambda: resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES))  # noqa: E731
    return subprocess.run([CROWNYC, *words], capture_output=True, text=True, preexec_fn=small)


def through_every_command(name, expected):
    """What did not go well, or None. NAME.han lies in the folder."""
    steps = (
        ("compile", f"{name}.han", "--quiet", "-o", f"{name}.toau"),
        ("check", f"{name}.han"),
        ("verify", f"{name}.toau"),
    )
    for words in steps:
        done = crownyc(*words)
        if done.returncode != 0:
            return words[0], done
    toau = pathlib.Path(f"{name}.toau").read_bytes()
    for path in (f"{name}.han", f"{name}.toau"):
        done = crownyc("run", path)
        if done.returncode != 0 or done.stdout != expected + "\n":
            return f"run {path}", done
    for keywords in ("en", "ko"):
        done = crownyc("rpn", f"{name}.toau", "--keywords", keywords)
        pathlib.Path(f"{name}.rpn").write_text(done.stdout, encoding="utf-8")
        done = crownyc("compile", f"{name}.rpn", "-o", f"{name}.again")
        if done.returncode != 0 or pathlib.Path(f"{name}.again").read_bytes() != toau:
            return f"rpn --keywords {keywords}", done
    for keywords in ("ko", "en"):
        done = crownyc("fmt", f"{name}.han", "--keywords", keywords)
        if done.returncode != 0:
            return f"fmt --keywords {keywords}", done
        done = crownyc("fmt", "--check", f"{name}.han")
        if done.returncode != 0:
            return f"fmt --keywords {keywords}, a second time", done
        done = crownyc("run", f"{name}.han")
        if done.returncode != 0 or done.stdout != expected + "\n":
            return f"run after fmt --keywords {keywords}", done
    return None


def is_refused(kind, levels):
    """What did not go well, or None. Every command that reads a source says the same."""
    pathlib.Path("past.han").write_text(source(kind, levels), encoding="utf-8")
    for words in (("compile", "past.han", "-o", "past.toau"), ("check", "past.han"), ("run", "past.han"),
                  ("fmt", "--check", "past.han")):
        done = crownyc(*words)
        if done.returncode != 1 or f"NESTING_DEPTH: {DEPTH}" not in done.stdout + done.stderr:
            return f"{levels} levels, {words[0]}", done
    return None


def deepest_that_fits(kind):
    """What did not go well as deep as the limit lets this kind go, or None: the C stack must hold it."""
    for cost in range(1, 9):  # levels of the limit that one of this kind costs, and a few for what is around them
        levels = DEPTH // cost - 10
        pathlib.Path("at.han").write_text(source(kind, levels), encoding="utf-8")
        done = crownyc("compile", "--quiet", "at.han", "-o", "at.toau")
        if done.returncode == 0:
            return None
        if done.returncode != 1 or "E0028" not in done.stderr:
            return f"{levels} levels, compile", done
    return "nothing fits", done


def main():
    passed = failed = 0
    for number, (kind, row) in enumerate(KINDS.items()):
        pathlib.Path(f"n{number}.han").write_text(source(kind, LEVELS), encoding="utf-8")
        wrong = through_every_command(f"n{number}", row[-1]) or deepest_that_fits(kind) or is_refused(kind, DEPTH + 1)
        # A far one for a few kinds: what the parser skips, it skips fast.
        if not wrong and number % 8 == 0:
            wrong = is_refused(kind, FAR)
        print(f"{'ok' if not wrong else 'FAILED'}: {kind}")
        if wrong:
            what, done = wrong
            print(f"  {what}: exit code {done.returncode}, stdout {done.stdout[:300]!r}, stderr {done.stderr[:600]!r}")
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
