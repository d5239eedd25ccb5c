#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/serve_stop_test.py: proves what comes behind the graceful stop of a server without a master: a stop
# during configure is one for good, main goes on behind http.serve, and from then on the signals are the program's
# again, which they end as they end one that never served. And that a call which fails leaves nothing behind.
# No sleep decides: each signal is sent when the program has said, or the
# system shows, that it is where it should be.

import pathlib
import signal
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, Program, check, check_equal, check_in, environment,  # noqa: E402
                     free_port, request, run, run_all, wait_until)

HANDLE = """
export fn handle(request) {
    print("inside")
    loop { task.sleep(1000) }
}
"""
# The gates are numbers that both sides see; behind "gone on" configure has returned.
STOPPED_EARLY = """
import "http"
import "shared"
import "task"

export fn main(args) {
    defer { print("cleaned") }
    http.serve({listen: ["127.0.0.1:PORT"], banner: "serving"})
    print("returned")
    shared.set("returned", 1)
    while shared.get("configured") == 0 { task.sleep(1) }
    print("gone on")
    if len(args) == 0 { task.sleep(600000) }
}

export fn configure(input) {
    print("configuring")
    while shared.get("returned") == 0 { task.sleep(1) }
    shared.set("configured", 1)
    return {}
}
""" + HANDLE
GOING_ON = """
import "http"
import "task"

export fn main(args) {
    defer { print("cleaned") }
    http.serve({listen: ["127.0.0.1:PORT"], banner: "serving"})
    print("returned")
    task.sleep(600000)
}
""" + HANDLE
CAUGHT = """
import "http"
import "task"

export fn main(args) {
    defer { print("cleaned") }
    try { http.serve({listen: ["127.0.0.1:PORT"]}) } catch e { print("caught") }
    task.sleep(600000)
}

export fn handle() { return http.respond(200) }
"""
AGAIN = """
import "fs"
import "http"
import "task"

fn serve(options) {
    try {
        http.serve(options)
        print("returned")
    } catch e { print(e.message) }
}

export fn main(args) {
    defer { print("cleaned") }
    print("begun")
    while fs.exists(args[0]) { task.sleep(1) }
    serve({listen: ["127.0.0.1:1"], banner: "wrong", access_log: {to: "stdout", format: "json"}, keep_alive_ms: 1})
    serve({banner: "wrong"})
    print("caught")
    while !fs.exists(args[0]) { task.sleep(1) }
    serve({listen: ["127.0.0.1:PORT"], banner: "serving"})
    task.sleep(600000)
}

export fn handle(request) { return http.respond(200, "x") }
"""


def catches(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    return bool(int(masks["SigCgt"], 16) >> number - 1 & 1) and not int(masks["SigBlk"], 16) >> number - 1 & 1


class Alone(Program):
    def __init__(self, folder, text, *args):
        self.port = free_port()
        source = folder / "alone.han"
        source.write_text(text.replace("PORT", str(self.port)))
        super().__init__([CROWNYC, "run", source, *args], env=environment())

    def wait_given_back(self):
        """Until the program has handlers for both signals again, and neither is blocked."""
        wait_until(lambda: all(catches(self.pid, number) for number in (signal.SIGINT, signal.SIGTERM)),
                   "the signals are the program's")

    def refuses(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0


def test_a_server_that_is_stopped_while_it_is_configured_never_begins(folder):
    server = Alone(folder, STOPPED_EARLY, "end")
    server.wait_line("configuring")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")
    check_equal((server.text("out").splitlines(), server.text("err")),
                (["configuring", "returned", "gone on", "cleaned"], ""), "what it said")


def test_a_second_signal_behind_such_a_stop_ends_the_program(folder):
    server = Alone(folder, STOPPED_EARLY)
    server.wait_line("configuring")
    server.send(signal.SIGTERM)
    server.wait_line("gone on")
    check(server.refuses(), "the port is open")
    server.wait_given_back()
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), 128 + signal.SIGTERM, "exit code")
    check_equal((server.text("out").splitlines(), server.text("err")),
                (["configuring", "returned", "gone on", "cleaned"], ""), "what it said")


def test_two_signals_for_one_are_one_stop(folder):
    """Both are there when the program looks, and nothing is to be drained: the second one is not for main."""
    server = Alone(folder, STOPPED_EARLY, "end")
    server.wait_line("configuring")
    server.send(signal.SIGSTOP)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        server.send(number)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")


def test_what_main_does_behind_a_server_ends_with_a_signal(folder):
    for number in (signal.SIGINT, signal.SIGTERM):
        server = Alone(folder, GOING_ON)
        server.wait_line("serving")
        server.send(signal.SIGTERM)
        server.wait_line("returned")
        server.wait_given_back()
        server.send(number)
        check_equal(server.wait_exit(), 128 + number, f"exit code, {number!r}")
        check_equal((server.text("out").splitlines(), server.text("err")), (["serving", "returned", "cleaned"], ""),
                    "what it said")


def test_a_stop_in_a_hurry_gives_the_signals_back_too(folder):
    server = Alone(folder, GOING_ON)
    server.wait_line("serving")
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a.local\r\n\r\n")
        server.wait_line("inside")
        server.send(signal.SIGTERM)
        wait_until(server.refuses, "the port is closed")

        def ended():
            if server.process.poll() is None:
                server.send(signal.SIGINT)
            return server.process.poll() is not None

        wait_until(ended, "the end of the server, and then of main")
    # Several of these are there for main, and the second one may come before main's defers are through.
    check_in(server.wait_exit(), (128 + signal.SIGINT, -signal.SIGINT), "exit code")
    check_in("returned", server.text("out"), "what main said")
    check_in("1 connections are cut off", server.text("err"), "the log")


def test_a_call_that_fails_gives_the_signals_back(folder):
    program = Alone(folder, CAUGHT)
    program.wait_line("caught")
    program.wait_given_back()
    program.send(signal.SIGTERM)
    check_equal(program.wait_exit(), 128 + signal.SIGTERM, "exit code")
    check_equal(program.text("out").splitlines(), ["caught", "cleaned"], "what it said")



def test_a_call_that_fails_may_be_made_again(folder):
    """The program's own file is gone when a server wants to read it anew, and there again later. What each call that
    failed was given is forgotten: addresses, banner, access log."""
    source, program = folder / "again.han", folder / "again.toau"
    port = free_port()
    source.write_text(AGAIN.replace("PORT", str(port)))
    check_equal(run([CROWNYC, "compile", source, "-o", program])[0], EXIT_OK, "exit code of compile")
    server = Program([CROWNYC, "run", program, program], env=environment())
    server.wait_line("begun")
    program.rename(folder / "elsewhere")
    server.wait_line("caught")
    (folder / "elsewhere").rename(program)
    server.wait_line("serving")
    check_equal(request(port, "a.local", "/").body, b"x", "the answer")
    server.send(signal.SIGTERM)
    server.wait_line("returned")
    Alone.wait_given_back(server)
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), 128 + signal.SIGTERM, "exit code")
    check_equal(server.text("out").splitlines(),
                ["begun", *["http.serve: not found"] * 2, "caught", "serving", "returned", "cleaned"], "what it said")

run_all(globals())
