#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/cli_errors_test.py: proves that what goes wrong on the command line gives one clear message on stderr and
# the right exit code, and leaves no file behind.

import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, CROWNYC, DEADLINE_S, EXIT_BAD_TOAU, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, check,  # noqa: E402
                     check_equal, check_in, environment, run, run_all)

HELLO = 'export fn main(args) {\n    print("hello")\n}\n'
UNKNOWN = 'export fn main(args) {\n    let count = 1\n    print(cuont)\n    prnit("x")\n}\n'


def write(folder, name, text):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_an_unknown_word(folder):
    source = write(folder, "a.han", UNKNOWN)
    code, out, err = run([CROWNYC, "compile", source, "-o", folder / "a.toau"], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    for part in ("3:11", "cuont", "count", "4:5", "prnit", "print", "^"):
        check_in(part, err, "messages: both words, each with its place, caret and nearest name")
    check(not (folder / "a.toau").exists(), "a file was written although the source has errors")
    code, out, err = run([BUILD / "hanseonc_high", source], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "hanseonc_high: exit code, nothing on stdout")
    check_in("cuont", err, "messages of hanseonc_high")
    code, out, err = run([CROWNYC, "run", source], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "run from source: exit code and stdout")


def test_the_same_in_korean(folder):
    source = write(folder, "a.han", UNKNOWN)
    code, _, err = run([CROWNYC, "compile", source, "-o", folder / "a.toau"], env=environment(LANG="ko_KR.UTF-8"))
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("알 수 없는 이름 `cuont`", err, "message")
    _, _, chosen = run([CROWNYC, "--lang", "ko", "compile", source, "-o", folder / "a.toau"])
    check_equal(chosen, err, "--lang ko says the same as LANG=ko_KR.UTF-8")


def test_a_truncated_file_at_every_length(folder):
    """Every prefix of a good .toau is refused with 3; a few of them through `run`, all through `verify`."""
    source = write(folder, "a.han", HELLO)
    whole = folder / "a.toau"
    check_equal(run([CROWNYC, "compile", source, "-o", whole])[0], EXIT_OK, "exit code of compile")
    data = whole.read_bytes()
    cut = folder / "cut.toau"
    lengths = sorted({0, 1, 3, 4, 7, 8, len(data) // 3, len(data) // 2, len(data) - 5, len(data) - 4, len(data) - 1})
    for length in lengths:
        cut.write_bytes(data[:length])
        for command in ("run", "verify"):
            code, out, err = run([CROWNYC, command, cut])
            check_equal((code, out), (EXIT_BAD_TOAU, ""), f"{command} of the first {length} of {len(data)} bytes")
            check(err.strip() and len(err.splitlines()) <= 3, f"message for {length} bytes: {err!r}")
    cut.write_bytes(data + b"\0")
    check_equal(run([CROWNYC, "run", cut])[0], EXIT_BAD_TOAU, "one byte too many")
    middle = len(data) // 2
    cut.write_bytes(data[:middle] + bytes([data[middle] ^ 0x40]) + data[middle + 1:])
    check_equal(run([CROWNYC, "run", cut])[0], EXIT_BAD_TOAU, "one bit changed")
    check_equal(run([CROWNYC, "run", whole]), (EXIT_OK, "hello\n", ""), "the whole file")


def test_a_file_that_is_something_else(folder):
    path = write(folder, "x.toau", "this is not a program\n" * 50)
    code, out, err = run([CROWNYC, "run", path])
    check_equal((code, out), (EXIT_BAD_TOAU, ""), "exit code and stdout")
    check(err.strip(), "no message")


def test_usage(folder):
    write(folder, "a.han", HELLO)
    for words in ([], ["nonsense"], ["run"], ["compile"], ["compile", "--nonsense", "a.han"],
                  ["compile", "a.han", "b.han"], ["--lang"], ["--lang", "fr", "run", "a.han"], ["run", "nowhere.toau"]):
        code, out, err = run([CROWNYC, *words], cwd=folder)
        check_equal((code, out), (EXIT_USAGE, ""), f"exit code and stdout of crownyc {' '.join(words)}")
        check(err.strip(), f"no message for crownyc {' '.join(words)}")
    check_in("did you mean compile?", run([CROWNYC, "compil"])[2], "message for a word nearly right")
    for words in (["--help"], ["help"], ["compile", "--help"]):
        code, out, _ = run([CROWNYC, *words])
        check_equal(code, EXIT_OK, "exit code of help")
        check_in("exit codes:", out, "help")


def test_each_command_has_its_own_help(folder):
    """`crownyc CMD --help` shows how that command is called, in both languages; all commands of the list have it."""
    code, out, _ = run([CROWNYC, "--help"], env=environment())
    names = [line.split()[0] for line in out.splitlines() if line.startswith("  ") and not line.startswith("  -")]
    check("compile" in names and "lsp" in names and len(names) > 12, f"names: {names}")
    for name in names:
        for lang, first in (("en", f"usage: crownyc {name}"), ("ko", f"사용법: crownyc {name}")):
            code, out, err = run([CROWNYC, "--lang", lang, name, "--help"], env=environment())
            check_equal((code, err), (EXIT_OK, ""), f"{name} --help")
            check(out.startswith(first), f"{name} --help begins {out.splitlines()[0]!r}")


def test_a_source_that_is_not_there(folder):
    code, out, err = run([CROWNYC, "compile", "nowhere.han", "-o", "x.toau"], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_in("nowhere.han", err, "message")


def test_an_output_that_cannot_be_written(folder):
    write(folder, "a.han", HELLO)
    code, out, err = run([CROWNYC, "compile", "a.han", "-o", "nowhere/x.toau"], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_in("nowhere/x.toau", err, "message")


def test_a_program_error_has_its_place(folder):
    source = write(folder, "a.han", "fn third(items) {\n    return items[2]\n}\n\n"
                                    "export fn main(args) {\n    print(third([1]))\n}\n")
    code, out, err = run([CROWNYC, "run", source], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_in("a.han:2:", err, "stack: the line that failed")
    check_in("a.han:6:", err, "stack: the line that called it")


def test_a_terminal_gets_no_binary(folder):
    """hanseonc_high without a redirection: refused before anything is written."""
    source = write(folder, "a.han", HELLO)
    reader, terminal = pty.openpty()
    done = subprocess.run([BUILD / "hanseonc_high", source], stdin=subprocess.DEVNULL, stdout=terminal,
                          stderr=subprocess.PIPE, env=environment(), timeout=DEADLINE_S, check=False)
    os.close(terminal)
    try:
        written = os.read(reader, 100)
    except OSError:  # what Linux answers when nobody wrote and the other end is closed
        written = b""
    os.close(reader)
    check_equal(done.returncode, EXIT_USAGE, "exit code")
    check_equal(written, b"", "what the terminal got")
    check_in("terminal", done.stderr.decode(), "message")


def test_names_of_the_binary(folder):
    write(folder, "a.han", HELLO)
    for name in ("hanseonc_high", "hanseonc_rpn", "crownyc-jit"):
        check((BUILD / name).exists(), f"{name} is not in {BUILD}")
    with open(folder / "a.toau", "wb") as out:
        done = subprocess.run([BUILD / "hanseonc_high", "a.han"], cwd=folder, stdout=out, stderr=subprocess.PIPE,
                              env=environment(), timeout=DEADLINE_S, check=False)
    check_equal((done.returncode, done.stderr), (EXIT_OK, b""), "hanseonc_high")
    check_equal(run([CROWNYC, "run", "a.toau"], cwd=folder), (EXIT_OK, "hello\n", ""), "what it wrote runs")
    code, out, err = run([BUILD / "crownyc-jit", "run", "a.toau"], cwd=folder)
    check_equal((code, out), (EXIT_OK, "hello\n"), "crownyc-jit runs the program")
    check_in("JIT", err, "crownyc-jit says that there is none yet")
    code, out, err = run([BUILD / "hanseonc_rpn", "a.rpn"], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "hanseonc_rpn: exit code and stdout")
    check_in("a.rpn", err, "hanseonc_rpn names the file that is not there")


def test_a_refused_capability(folder):
    source = write(folder, "a.han", 'import "env"\n\nexport fn main(args) {\n    print(env.get("HOME", "none"))\n}\n')
    code, out, err = run([CROWNYC, "--deny", "env", "run", source], cwd=folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_in("env.get", err, "message: the native")
    check_in("a.han:4:", err, "message: the place")


def test_workers_need_both_of_their_capabilities(folder):
    """process.workers listens and reads the generation's files: denying either refuses the program."""
    source = write(folder, "w.han", 'import "process"\n\nexport fn main(args) {\n    process.workers(1)\n}\n')
    for denied in ("net", "read"):
        code, _, err = run([CROWNYC, "--deny", denied, "run", source], cwd=folder)
        check_equal(code, EXIT_PROGRAM, f"exit code without {denied}")
        check_in("process.workers", err, "message: the native")
        check_in(denied, err, "message: what is missing")


def test_what_is_not_there_is_refused(folder):
    source = write(folder, "a.han", "export fn main(args) { print(1) }\n")
    for words in ("run=/tmp", "write=", "fly", "write=no/such/folder"):
        code, out, err = run([CROWNYC, "--allow", words, "run", source], cwd=folder)
        check_equal((code, out), (EXIT_USAGE, ""), f"exit code and stdout of --allow {words}")
        check_in(words.split("=")[-1] or "write=", err, f"message of --allow {words}")
    code, _, err = run([CROWNYC, "run", source], cwd=folder, env=environment(CROWNY_IO="zz"))
    check_equal(code, EXIT_USAGE, "exit code with an unknown CROWNY_IO")
    check_in("CROWNY_IO is epoll or poll, not: zz", err, "message")


run_all(globals())
