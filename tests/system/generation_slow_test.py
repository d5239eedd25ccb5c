#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/generation_slow_test.py: proves that requests cannot keep more than two old instances alive: with
# sleepers on three of them, those of the oldest are cancelled after the grace (LIMIT_OLD_INSTANCE_GRACE_MS, 10 s), the
# others stay. How long the grace is, tests/unit/native/old_instances_test.c says on a clock of its own.

import contextlib
import http.client
import pathlib
import re
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from generation_server import Server  # noqa: E402
from harness import DEADLINE_S, check_equal, request, run_all, wait_until  # noqa: E402

LIMITS = (pathlib.Path(__file__).resolve().parents[2] / "vm/base/limits.def").read_text()
GRACE_S = int(re.search(r"^LIMIT\(OLD_INSTANCE_GRACE_MS, +(\d+)", LIMITS, re.M)[1]) / 1000
HANDLE = 'if request.path == "/sleep" { log.write("info", "sleeping on \\(name)") task.sleep(600000) }'


def test_the_third_oldest_instance_is_cancelled_after_a_grace(folder):
    server = Server(folder, handle=HANDLE)
    answers = {}

    def sleeper(name):
        with contextlib.suppress(OSError, http.client.HTTPException):  # two of them sleep on when the server ends
            answers[name] = request(server.port, "a.local", "/sleep", within=None).status

    for number, name in enumerate(["first", "second", "third", "fourth"], 1):
        if number > 1:
            server.reload(name)
            server.wait_line(f"generation {number} is serving", "err")
        if name == "fourth":
            break
        threading.Thread(target=sleeper, args=(name,), daemon=True).start()
        server.wait_line(f"sleeping on {name}", "err")
    server.wait_line("handle was stopped", "err", within=GRACE_S + DEADLINE_S)
    check_equal(server.body(), "fourth", "a new request's body")
    wait_until(lambda: "first" in answers, "an answer for the oldest request")
    check_equal(answers, {"first": 500}, "answers")
    server.end()


run_all(globals())
