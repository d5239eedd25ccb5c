#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/stdin_test.py: proves that "-" is a program from standard input, for every command that takes a file:
# a source, RPN text or a .toau, with messages about <stdin>, imports from the working folder, and the same bytes
# wherever that folder is.

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, CROWNYC, DEADLINE_S, EXIT_BAD_TOAU, EXIT_OK, EXIT_PROGRAM, check, check_equal,  # noqa: E402
                     check_in, environment, run_all)

MAIN = 'import "./lib"\nexport fn main(args) {\n    print(lib.twice(21), args)\n}\n'
LIB = "export fn twice(n) { return n * 2 }\n"
FAULTY = 'export fn main(args) {\n    print(args[9])\n}\n'


def give(words, text, cwd):
    """(exit code, stdout, stderr) as bytes and text of a command of crownyc with `text` on its stdin."""
    data = text.encode() if isinstance(text, str) else text
    command = words if isinstance(words[0], pathlib.Path) else [CROWNYC, *words]
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=environment(), input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def with_lib(folder):
    folder.mkdir(exist_ok=True)
    (folder / "lib.han").write_text(LIB, encoding="utf-8")
    return folder


def test_a_source_runs_and_imports_from_the_working_folder(folder):
    with_lib(folder)
    check_equal(give(["run", "-", "a", "b"], MAIN, folder), (EXIT_OK, b'42 ["a", "b"]\n', ""), "run -")
    code, out, err = give(["run", "-"], MAIN.replace("./lib", "./missing"), folder)
    check_equal((code, out), (EXIT_PROGRAM, b""), "an import that is not there")
    check_in("<stdin>:1:8", err, "its place")


def test_messages_name_stdin(folder):
    code, out, err = give(["run", "-"], FAULTY, folder)
    check_equal((code, out), (EXIT_PROGRAM, b""), "run -")
    check_in("at main (<stdin>:2:", err, "the stack of a run-time error")
    code, out, _ = give(["check", "-"], "export fn main(args) {\n    prnit(1)\n}\n", folder)
    check_equal(code, EXIT_PROGRAM, "check -")
    check_in("<stdin>:2:5: error E0040", out.decode(), "check -: place and code")
    code, _, err = give(["fmt", "-"], "fn f( {\n", folder)
    check_equal(code, EXIT_PROGRAM, "fmt -")
    check_in("<stdin>:1:", err, "fmt -: place")


def test_the_same_bytes_in_every_folder(folder):
    results = set()
    for name in ("one", "another/deeper"):
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        code, out, err = give(["compile", "-"], MAIN, with_lib(place))
        check_equal((code, err), (EXIT_OK, ""), "compile - writes to stdout")
        check(str(folder).encode() not in out, "a folder of this machine is in the file")
        results.add(out)
    check_equal(len(results), 1, "different files")
    code, _, _ = give(["compile", "-", "-o", "x.toau"], MAIN, folder / "one")
    check_equal(code, EXIT_OK, "compile - -o")
    check_equal((folder / "one/x.toau").read_bytes(), results.pop(), "with -o")


def test_a_failed_compile_writes_nothing(folder):
    code, out, err = give(["compile", "-"], "export fn main(args) { prnit(1) }\n", folder)
    check_equal((code, out), (EXIT_PROGRAM, b""), "exit code and stdout")
    check_in("<stdin>:1:24", err, "place")


def test_every_form_of_a_program(folder):
    with_lib(folder)
    toau = give(["compile", "-"], MAIN, folder)[1]
    rpn = give(["rpn", "-"], toau, folder)[1]
    check_equal(give(["disassemble", "-"], MAIN, folder)[1], rpn, "of a source and of its .toau")
    check_equal(give(["compile", "-"], rpn, folder)[1], toau, "RPN text read back")
    for form, data in (("source", MAIN), (".toau", toau), ("RPN text", rpn)):
        code, out, _ = give(["run", "-", "x"], data, folder)
        check_equal((code, out), (EXIT_OK, b'42 ["x"]\n'), f"run - of {form}")
        code, out, _ = give(["verify", "-"], data, folder)
        check_equal((code, out), (EXIT_OK, b"ok: 2 functions, 2 modules\n"), f"verify - of {form}")
        check_equal(give(["caps", "-"], data, folder)[0], EXIT_OK, f"caps - of {form}")
    check_equal(give([BUILD / "hanseonc_high", "-"], MAIN, folder)[1], toau, "the filter")
    check_equal(give([BUILD / "hanseonc_rpn", "-"], rpn, folder)[1], toau, "the filter of RPN text")


def test_a_damaged_file_is_refused_as_one(folder):
    toau = give(["compile", "-"], FAULTY, folder)[1]
    for length in (1, 8, len(toau) - 1):
        code, out, err = give(["run", "-"], toau[:length], folder)
        check_equal((code, out), (EXIT_BAD_TOAU, b""), f"the first {length} bytes")
        check_in("rule READ_", err, "message")


def test_test_blocks(folder):
    code, out, _ = give(["test", "-"], 'import "test"\ntest "sum" { test.equal(1 + 1, 2) }\n', folder)
    check_equal(code, EXIT_OK, "exit code")
    check_in("1 passed, 0 failed", out.decode(), "count")


def test_nothing_at_all(folder):
    code, out, err = give(["run", "-"], b"", folder)
    check_equal((code, out), (EXIT_PROGRAM, b""), "an empty stream is a source without main")
    check_in("E0084", err, "message")


run_all(globals())
