#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/input_test.py: proves that process.read_line and process.read_all give standard input as it comes, from a
# pipe, a file, a terminal and nothing, while other tasks run; that a stopped reader loses nothing; and the limit.

import array
import fcntl
import os
import pathlib
import pty
import re
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, ROOT, check, check_equal, check_in,  # noqa: E402
                     environment, run_all, wait_until)

LINES = """
import "process"
export fn main(args) {
    loop {
        let line = process.read_line()
        if line == nil { break }
        print("[\\(line)]")
    }
    print("end", process.read_line(), len(process.read_all()))
}
"""
ALL = """
import "process"
export fn main(args) {
    let first = process.read_line()
    print(first, len(process.read_all()), process.read_line())
}
"""
# The ticker goes on while main waits; a reader that is stopped gives its line to the next one.
TASKS = """
import "process"
import "task"
let ticks = ref(0)
fn tick() { loop { ticks.value = ticks.value + 1 task.sleep(1) } }
fn reader() { return process.read_line() }
export fn main(args) {
    let ticker = spawn tick()
    let stopped = spawn reader()
    while ticks.value < 3 { task.sleep(1) }
    try { process.read_line() } catch e { print(e.kind) }
    task.cancel(stopped)
    try { task.wait(stopped) } catch e { print("stopped") }
    print("ready")
    let seen = ticks.value
    print(process.read_line(), ticks.value > seen)
    task.cancel(ticker)
    process.exit(0)
}
"""


def program(folder, text):
    path = folder / "p.han"
    path.write_text(text, encoding="utf-8")
    return [str(CROWNYC), "run", str(path)]


def give(folder, text, data):
    done = subprocess.run(program(folder, text), cwd=folder, env=environment(), input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def from_file(folder, text, data):
    (folder / "data").write_bytes(data)
    with (folder / "data").open("rb") as stream:
        done = subprocess.run(program(folder, text), cwd=folder, env=environment(), stdin=stream,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_lines(folder):
    for source in (give, from_file):
        for data, lines in ((b"one\ntwo\r\n\n\rx\nlast", ["[one]", "[two]", "[]", "[\rx]", "[last]"]), (b"", []),
                            (b"\n", ["[]"]), ("가나\n".encode(), ["[가나]"])):
            code, out, err = source(folder, LINES, data)
            check_equal((code, err), (EXIT_OK, ""), f"{data!r}: exit code and stderr")
            check_equal(out.split("\n"), lines + ["end nil 0", ""], f"{data!r}: lines")


def test_much(folder):
    data = b"head\n" + b"x" * 3_000_000 + b"\n" + b"y" * 5
    for source in (give, from_file):
        check_equal(source(folder, ALL, data), (EXIT_OK, f"head {len(data) - 5} nil\n", ""), source.__name__)
    many = b"".join(b"%d\n" % i for i in range(20000))
    code, out, _ = give(folder, LINES, many)
    check_equal((code, out.count("[")), (EXIT_OK, 20000), "lines")


def test_a_wait_behind_turns(folder):
    """A megabyte lies ready, so the reader gives its turn back; then it waits; then it does something else."""
    theirs, ours = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETPIPE_SZ, 1 << 20)
    os.write(ours, b"a" * (1 << 20))
    with subprocess.Popen(program(folder, LINES), cwd=folder, env=environment(), stdin=theirs,
                          stdout=subprocess.PIPE) as process:
        wait_until(lambda: array.array("i", fcntl.ioctl(theirs, termios.FIONREAD, b"0000"))[0] == 0, "an empty pipe")
        os.close(theirs)
        os.write(ours, b"\nrest")
        os.close(ours)
        out = process.stdout.read()
        check_equal((len(out), out[-19:]), ((1 << 20) + 20, b"]\n[rest]\nend nil 0\n"), "the line and the rest")
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code")


def test_other_tasks_run_and_a_stopped_reader_loses_nothing(folder):
    with subprocess.Popen(program(folder, TASKS), cwd=folder, env=environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        seen = [process.stdout.readline().decode() for _ in range(3)]
        check_equal(seen, ["unsupported\n", "stopped\n", "ready\n"], "before anything came")
        process.stdin.write(b"li")
        process.stdin.flush()
        process.stdin.write(b"ne\nrest")
        process.stdin.flush()  # and stays open
        check_equal(process.stdout.readline().decode().split(" ")[0], "line", "the line")
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code")


def test_a_terminal(folder):
    ours, theirs = pty.openpty()
    with subprocess.Popen(program(folder, LINES), cwd=folder, env=environment(), stdin=theirs,
                          stdout=subprocess.PIPE) as process:
        os.close(theirs)
        os.write(ours, b"typed\n")
        check_equal(process.stdout.readline(), b"[typed]\n", "a line of a terminal")
        os.write(ours, b"\x04")
        check_equal(process.stdout.readline(), b"end nil 0\n", "Ctrl-D")
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code")
    os.close(ours)


def test_no_standard_input_at_all(folder):
    done = subprocess.run(["sh", "-c", 'exec 0<&-; exec "$@"', "sh", *program(folder, LINES)], cwd=folder,
                          env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S,
                          check=False)
    check_equal((done.returncode, done.stdout), (EXIT_OK, b"end nil 0\n"), f"closed; {done.stderr!r}")


def test_the_limit(folder):
    text = (ROOT / "vm/base/limits.def").read_text(encoding="utf-8")
    low, shift = re.search(r"LIMIT\(INPUT_BYTES,\s*(\d+) << (\d+)", text).groups()
    limit = int(low) << int(shift)
    all_of_it = 'import "process"\nexport fn main(args) {\n    print(len(process.read_all()))\n}\n'
    check_equal(give(folder, all_of_it, b"z" * (limit - 1)), (EXIT_OK, f"{limit - 1}\n", ""), "below")
    code, out, err = give(folder, all_of_it, b"z" * (limit + 1))
    check_equal((code, out), (EXIT_PROGRAM, ""), "past it")
    check_in(f"INPUT_BYTES: {limit}", err, "message")
    check("limit: process.read_all" in err, err)


run_all(globals())
