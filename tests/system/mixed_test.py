#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/mixed_test.py: proves in seconds what bench/gateway/mixed proves in an hour: with reloads and killed
# workers under mixed load no request is lost but those on the killed workers' connections, and no descriptor stays. And
# that the tool is no pushover: when somebody else kills the worker that it spares, it says so and fails.

import contextlib
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, Program, check,  # noqa: E402
                     check_equal, check_in, environment, run, run_all, wait_until)

DRIVER = [sys.executable, "-B", ROOT / "bench/gateway/mixed", "--crownyc", CROWNYC, "--tools", BUILD / "bench"]
KINDS = ("kept", "new", "tls", "h2load", "h2c upstream", "upload", "upload h2c", "tunnel", "abort", "h2", "h2 upload",
         "drip tls")


def drive(*words):
    return Program([*DRIVER, *words], env=environment(**{
        name: value for name, value in os.environ.items() if name in ("CROWNYC_IO", "ASAN_OPTIONS", "UBSAN_OPTIONS")}))


def test_nothing_is_lost(folder):
    found = folder / "found.json"
    driver = drive("--seconds", "6", "--rate", "0.5", "--reload-every", "1", "--kill-every", "2", "--progress-every",
                   "2", "--json", found)
    code = driver.wait_exit(within=12 * DEADLINE_S)
    check_equal(code, EXIT_OK, f"exit code\n{driver.text('out')}\n{driver.text('err')}")
    told = json.loads(found.read_text())
    check(all(bar["good"] for bar in told["bars"]), f"bars: {told['bars']}")
    check(told["reloads"] > 0 and told["kills"], f"{told['reloads']} reloads, {told['kills']} kills")
    for kind in KINDS:
        check(told["good"].get(kind, 0) > 0, f"{kind}: {told['good']}")


def has_connections(pid, port):
    """Does the process hold an established connection of this port of its own?"""
    inodes = set()
    for one in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since the folder was read
            inodes.add(os.readlink(one))
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[3] == "01" and int(row[1].rpartition(":")[2], 16) == port and f"socket:[{row[9]}]" in inodes
               for row in rows)


def test_a_death_that_is_not_the_tools_is_told(folder):
    """The worker that it never kills is killed while it has a tunnel: the tunnel's end is nobody's to excuse."""
    driver = drive("--seconds", "10", "--reload-every", "1", "--kill-every", "1", "--kinds", "kept,tunnel,tunnel tls",
                   "--json", folder / "found.json")
    spared, port = map(int, driver.wait_line(r"the worker that is never killed (\d+), ports \d+ and (\d+)").groups())
    driver.wait_line("warm; descriptors")
    # Nothing but tunnels speaks TLS. Those of a killed worker are opened again where one still listens: at the spared.
    wait_until(lambda: has_connections(spared, port), "a tunnel at the worker that is never killed")
    os.kill(spared, signal.SIGKILL)
    check_equal(driver.wait_exit(within=12 * DEADLINE_S), EXIT_PROGRAM, "exit code")
    check_in("the worker that nobody killed is gone", driver.text("out"), "the verdict")
    told = json.loads((folder / "found.json").read_text())
    check("tunnel tls" in {one["kind"] for one in told["failed"]}, f"failed: {told['failed']}")
    lost = told["bars"][0]
    check_in("failed requests that were not ours to kill", lost["text"], "the first bar")
    check(not lost["good"], f"the first bar was not missed: {lost}")


def test_wrong_calls(folder):
    for words, part in ((["--seconds", "0"], "--seconds is above 0"), (["--kinds", "uplod"], "no kind `uplod`"),
                        (["--tools", folder], "make all bench-tools builds it")):
        code, _, err = run([*DRIVER, *words])
        check_equal(code, EXIT_USAGE, f"exit code of {words}")
        check_in(part, err, "message")


run_all(globals())
