#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/shared_test.py: proves that workers see one another's numbers, and that workers which are killed in the
# middle of changing them hold nobody up and lose nothing.

import http.client
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, Program, check, check_equal, children_of, free_port, request, run,  # noqa: E402
                     run_all, wait_until)

SERVER = """
import "http"
import "process"
import "shared"
export fn handle(request) {
    if request.path == "/sum" {
        let sum = 0
        for key, number in shared.table_entries("keys") { sum = sum + number }
        return http.respond(200, "\\(sum) \\(shared.get("adds")) \\(len(shared.table_entries("keys")))")
    }
    if request.path == "/once" { return http.respond(200, str(shared.add("once"))) }
    for i in 0..300 {
        shared.table_add("keys", "key \\(i)")
        shared.add("adds")
    }
    return http.respond(200, "added")
}
export fn main(args) {
    shared.table("keys", 300)
    shared.set("once", 10)
    process.workers(2)
    http.serve({listen: [args[0]], banner: "ready"})
}
"""


def test_workers_that_are_killed_hold_nobody_up(folder):
    source = folder / "server.han"
    source.write_text(SERVER)
    port = free_port()
    server = Program([CROWNYC, "run", source, f"127.0.0.1:{port}"], cwd=folder)
    server.wait_line("^ready$")
    check_equal(request(port, "h", "/once").body, b"11", "what main had set")
    stop = threading.Event()
    answered = []

    def client():
        while not stop.is_set():
            try:
                answered.append(request(port, "h", "/add").status)
            except (OSError, http.client.HTTPException):
                pass  # its worker was killed

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    kills = 8
    for number in range(kills):
        before = len(answered)
        wait_until(lambda: len(answered) > before + 20, "answers before the next kill")
        workers = wait_until(lambda: len(children_of(server.pid)) == 2 and children_of(server.pid), "two workers")
        os.kill(workers[number % 2], signal.SIGKILL)
    before = len(answered)
    wait_until(lambda: len(answered) > before + 20, "answers after the last kill")
    stop.set()
    for thread in threads:
        thread.join(20)
    total, adds, keys = map(int, request(port, "h", "/sum").body.split())
    check_equal(keys, 300, "keys")
    check(answered.count(200) * 300 <= adds, f"{adds} additions for {answered.count(200)} answered requests")
    check(0 <= total - adds <= kills, f"table {total} and counter {adds}: more than one step for each of {kills} kills")
    check_equal(request(port, "h", "/once").body, b"12", "a counter that lives with the master")


def test_bounds_and_errors(folder):
    source = folder / "a.han"
    source.write_text("""
import "shared"
import "process"
import "text"
fn attempt(f) { try { print(f()) } catch e { print(e.kind, e.message) } }
export fn main(args) {
    shared.table("t", 2)
    print(shared.table_add("t", "a"), shared.table_add("t", "b", 5), shared.table_add("t", "a", 9223372036854775806))
    attempt(fn () { return shared.table_add("t", "c") })
    attempt(fn () { return shared.table_add("t", "a") })
    print(shared.table_get("t", "a"), shared.table_get("t", "c"), shared.table_get("t", "c", -1))
    attempt(fn () { return shared.table_get("u", "a") })
    attempt(fn () { shared.table("t", 2) })
    attempt(fn () { shared.table("big", 1048577) })
    attempt(fn () { shared.set(text.repeat("k", 88), 1) return shared.get(text.repeat("k", 88)) })
    attempt(fn () { shared.set(text.repeat("k", 89), 1) })
    for i in 1..1024 { shared.set("n\\(i)", i) }
    attempt(fn () { shared.set("one more", 1) })
    for i in 1..16 { shared.table("t\\(i)", 1) }
    attempt(fn () { shared.table("one more", 1) })
    let worker = process.workers(1)
    attempt(fn () { shared.table("late", 1) })
    print(shared.get("n7"), shared.table_entries("t"))
    process.exit(0)
}
""")
    code, out, _ = run([CROWNYC, "run", source], cwd=folder)
    wanted = ["1 5 9223372036854775807", "too_many shared.table_add: the table is full",
              "overflow shared.table_add: the sum is out of the range of an int", "9223372036854775807 nil -1",
              'key shared.table_get: there is no table "u"; main makes it with shared.table',
              'exists shared.table: there is a table "t"',
              "value shared.table: entries must be 1..1048576 (SHARED_ENTRIES), not 1048577", "1",
              "value shared.set: a name is 1..88 bytes (SHARED_KEY_BYTES), not 89",
              "too_many shared.set: there are SHARED_COUNTERS = 1024 counters already",
              "limit shared.table: at most SHARED_TABLES = 16",
              "unsupported shared.table: must come before process.workers"]
    lines = out.splitlines()
    check_equal(lines[:len(wanted)], wanted, "results")
    check(lines[len(wanted)].startswith("7 {"), f"what the worker sees: {lines[len(wanted):]}")
    check_equal(code, EXIT_OK, "exit code")


run_all(globals())
