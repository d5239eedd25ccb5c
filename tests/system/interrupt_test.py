#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/interrupt_test.py: proves that SIGINT and SIGTERM end a program that does not serve in order: every task
# is cancelled, defers run, children of process.run are ended, the exit code is 128 and the signal; that a second signal
# ends it at once; and that a signal which was ignored stays ignored. No sleep decides: each signal is sent when the
# program has said that it is where it should be.

import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, Program, check, check_equal, check_in, run_all, wait_until)  # noqa: E402

COMPUTING = """
export fn main(args) {
    defer { print("cleaned") }
    print("ready")
    let n = 0
    loop { n = n + 1 - n }
}
"""
WAITING = """
import "task"

fn child(name) {
    defer { print("child", name) }
    print("up", name)
    task.sleep(600000)
}

export fn main(args) {
    defer { print("main") }
    spawn child("a")
    spawn child("b")
    print("ready")
    try { task.sleep(600000) } catch e { print("caught") }
}
"""
RUNNING = """
import "process"

export fn main(args) {
    defer { print("cleaned") }
    print("ready")
    process.run("sh", ["-c", "echo $$ > pid.new; mv pid.new pid; sleep 600 & sleep 600"])
}
"""


def started(folder, text, *options):
    path = folder / "p.han"
    path.write_text(text, encoding="utf-8")
    program = Program([CROWNYC, "run", *options, path], cwd=folder)
    wait_until(lambda: "ready" in program.text("out"), "ready")
    return program


def end(program):
    """(exit code, lines of stdout, stderr)"""
    code = program.process.wait(DEADLINE_S)
    wait_until(lambda: program.open_streams == 0, "the ends of its output")
    return code, program.text("out").splitlines(), program.text("err")


def test_a_loop_that_computes(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        program = started(folder, COMPUTING)
        program.process.send_signal(number)
        check_equal(end(program), (128 + number, ["ready", "cleaned"], ""), f"{number!r}")


def test_tasks_that_wait(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        program = started(folder, WAITING)
        wait_until(lambda: program.text("out").count("up") == 2, "both children")
        program.process.send_signal(number)
        code, out, err = end(program)
        check_equal((code, sorted(out), err),
                    (128 + number, ["child a", "child b", "main", "ready", "up a", "up b"], ""), f"{number!r}")


def state(pid):
    """Its letter in /proc; Z when there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0]
    except OSError:
        return "Z"


def alive(pid):
    return state(pid) != "Z"


def test_a_child_of_process_run(folder):
    program = started(folder, RUNNING, "--allow", "run")
    wait_until((folder / "pid").exists, "the child")
    pid = int((folder / "pid").read_text(encoding="utf-8"))
    check(alive(pid), "the child is not there")
    program.process.send_signal(signal.SIGINT)
    check_equal(end(program), (130, ["ready", "cleaned"], ""), "SIGINT")
    wait_until(lambda: not alive(pid), "the end of the child")


# A step of the VM that does not end by itself: nobody reads what it prints.
PRINTING = """
export fn main(args) {
    defer { print("cleaned") }
    let n = 0
    loop {
        print("line", n)
        n = n + 1
    }
}
"""


def has_ended(program, number):
    """Sends the signal once more. The first ones behind another do nothing, as the program explains it."""
    program.send_signal(number)
    return program.poll() is not None


def test_a_second_signal_ends_a_step_that_does_not_end(folder):
    path = folder / "p.han"
    path.write_text(PRINTING, encoding="utf-8")
    for first, second in ((signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGTERM),
                          (signal.SIGTERM, signal.SIGINT)):
        reading, writing = os.pipe()
        program = subprocess.Popen([CROWNYC, "run", path], stdout=writing)
        os.close(writing)
        try:
            wait_until(lambda: in_write(program.pid) and is_full(reading), "the full pipe")
            program.send_signal(first)
            wait_until(lambda: has_ended(program, second), "the end")
            check_equal(program.wait(), -second, "ended by the second signal itself")
        finally:
            program.kill()
            program.wait()
            os.close(reading)


def is_full(descriptor):
    return struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))[0] >= 60000


def in_write(pid):
    """Sleeps, which a program that only prints does for nothing else."""
    return state(pid) == "S"


def test_two_signals_for_one_are_one(folder):
    """timeout(1) sends SIGTERM to its child, and then to the child's group."""
    for _ in range(10):
        program = started(folder, COMPUTING)
        program.process.send_signal(signal.SIGTERM)
        program.process.send_signal(signal.SIGTERM)
        check_equal(end(program), (143, ["ready", "cleaned"], ""), "SIGTERM, SIGTERM")


def test_an_ignored_signal_stays_ignored(folder):
    path = folder / "p.han"
    path.write_text(WAITING, encoding="utf-8")
    program = Program(["sh", "-c", 'trap "" INT; exec "$0" run "$1"', CROWNYC, path], cwd=folder)
    wait_until(lambda: program.text("out").count("up") == 2, "both children")
    os.kill(program.pid, signal.SIGINT)
    os.kill(program.pid, signal.SIGTERM)  # delivered behind the other one, had that one been taken
    code, out, _ = end(program)
    check_equal(code, 143, "SIGTERM ended it")
    check_in("main", "\n".join(out), "defers")


run_all(globals())
