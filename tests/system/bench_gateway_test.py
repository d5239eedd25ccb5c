#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/bench_gateway_test.py: proves that `make bench` works: every kind of row is measured with crownyc and the
# relay alone, in fractions of a second, HTTP/2 with h2load too, and instructions are counted; the tables and their JSON
# hold what was measured, and nothing that was started is left. How fast anything is, is not looked at.

import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "support"),
                str(pathlib.Path(__file__).resolve().parents[2] / "bench/gateway")]
import h2load  # noqa: E402
import peers  # noqa: E402
from harness import (BUILD, CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, SANITIZED,  # noqa: E402
                     check, check_equal, check_in, run, run_all)

DRIVER = [sys.executable, "-B", ROOT / "bench/gateway/run"]
TINY = ["--rounds", "1", "--seconds", "0.1", "--warm-up", "0", "--connections", "4", "--idle-connections", "40",
        "--rate", "200", "--routes", "1,20"]


def tools(folder):
    """Copies of the two tools: whoever still runs from this folder afterwards was left behind."""
    copy = folder / "tools"
    copy.mkdir()
    for name in ("relay", "upstream", "spinner"):
        shutil.copy2(BUILD / "bench" / name, copy / name)
    return copy


def drive(folder, *words, crownyc=CROWNYC, own_tools=None):
    return run([*DRIVER, "--crownyc", crownyc, "--gateway", BUILD / "gateway.toau", "--tools",
                own_tools or tools(folder), *TINY, *words], within=5 * DEADLINE_S)


def running_with(text):
    found = []
    for one in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in one.read_bytes():
                found.append(one.parent.name)
        except OSError:
            pass
    return found


def sound(one):
    """Nothing is wrong, and something was answered, maybe after the part of a second that a row has here."""
    return one["faults"] == 0 and one["p50"] > 0


def test_every_kind_of_row(folder):
    code, out, err = drive(folder, "--peers", "crownyc,relay", "--json", folder / "a.json",
                           "--markdown", folder / "a.md")
    check_equal(code, EXIT_OK, f"exit code\n{out}\n{err}")
    told = json.loads((folder / "a.json").read_text())
    rows = told["rows"]
    for name in ("tls", "tls1m", "tlsnew", "h2", "h2c"):
        ours = rows[name]["table"][0]
        check(ours["proxy"] == "crownyc" and sound(ours), f"{name}: {ours}")
    for name in ("small", "8k", "1m", "new"):
        table = {one["proxy"]: one for one in rows[name]["table"]}
        check_equal(set(table), {"crownyc", "relay"}, f"proxies of {name}")
        check(all(sound(one) for one in table.values()), f"{name}: {table}")
        check(rows[name]["alone_per_second"] > 0, f"{name}: the upstream alone")
    surcharge = rows["surcharge"]["table"][0]
    check(surcharge["proxy"] == "crownyc" and surcharge["faults"] == 0, f"surcharge: {surcharge}")
    difference = surcharge["tls_us"] - surcharge["plain_us"]
    check(abs(difference - surcharge["surcharge_us"]) < 0.01, f"surcharge: {surcharge}")
    check_equal(surcharge.get("ratio", 1), 1, "our surcharge beside our own")
    check_equal(rows["rate"]["rate"], 200, "rate")
    check_equal([part["routes"] for part in rows["routes"]["by_routes"]], [1, 20], "routes")
    idle = rows["idle"]["table"][0]
    check_equal((rows["idle"]["connections"], idle["open"]), (40, 40), "idle connections")
    check_in("generator and upstream without a proxy", out, "the tables")
    for part in ("| proxy |", "## small", "## Commands", "--expect-length 1048576"):
        check_in(part, (folder / "a.md").read_text(), "the Markdown")
    check_equal(running_with(str(folder / "tools")), [], "processes that were left")


def test_http2_with_h2load(folder):
    code, out, err = drive(folder, "--peers", "crownyc", "--rows", "h2,h2c", "--generator", "h2load", "--seconds", "1",
                           "--warm-up", "0.1", "--json", folder / "a.json")
    check_equal(code, EXIT_OK, f"exit code\n{out}\n{err}")
    told = json.loads((folder / "a.json").read_text())
    for name in ("h2", "h2c"):
        ours = told["rows"][name]["table"][0]
        check(ours["proxy"] == "crownyc" and ours["faults"] == 0 and ours["per_second"] > 0, f"{name}: {ours}")
        check_in("h2load -D 1000ms -c 4 -m 100", told["commands"][name], "the command")
    check_equal(running_with(str(folder / "tools")), [], "processes that were left")


SAID = """finished in {seconds}s, {rate} req/s, 1.00MB/s
requests: {good} total, {good} started, {good} done, {good} succeeded, 0 failed, 0 errored, 0 timeout
status codes: {good} 2xx, 0 3xx, 0 4xx, 0 5xx
"""


def test_what_h2load_says(folder):
    del folder
    told = h2load.result(SAID.format(seconds="2.00", rate="1000.00", good=2000), 0.5, 2.0)
    check_equal((told["answered"], told["per_second"], told["watched"]),
                (2000, 1000.0, {"us_per_request": 250.0, "busy_percent": 25.0}), "what was measured")
    told = h2load.result(SAID.format(seconds="0.01", rate="4000.00", good=40), 0, 0.01)  # less than a tick of CPU
    check_equal(told["watched"], {"us_per_request": 0.0, "busy_percent": 0.0}, "no tick")
    other = SAID.format(seconds="2.00", rate="10.00", good=20).replace("20 2xx, 0 3xx", "15 2xx, 5 3xx")
    check_equal(sum(h2load.result(other, 0.5, 2.0)["faults"].values()), 5, "answers of another status")
    for said, part in ((SAID.format(seconds="0.10", rate="0.00", good=0), "was answered nothing in 0.1 s"),
                       ("could not connect", "said nothing that is known: could not connect")):
        try:
            check(False, f"taken: {h2load.result(said, 0, 0.1)}")
        except peers.Fault as fault:
            check_in(part, str(fault), "fault")


def test_instructions_of_a_request(folder):
    """Callgrind counts; how many is not looked at. A build with sanitizers cannot run in it."""
    if SANITIZED:
        print("skipped: sanitizers and valgrind do not go together")
        return
    code, out, err = run([sys.executable, "-B", ROOT / "bench/gateway/instructions", "--crownyc", CROWNYC, "--gateway",
                          BUILD / "gateway.toau", "--tools", tools(folder), "--routes", "2,4", "--requests", "5,25",
                          "--bar", "1000"], within=10 * DEADLINE_S)
    check_equal(code, EXIT_OK, f"exit code\n{out}\n{err}")
    rows = [line.split() for line in out.splitlines()]
    check_equal([row[0] for row in rows], ["routes", "2", "4"], "rows")
    check(all(int(row[1].replace(",", "")) > 0 for row in rows[1:]), f"instructions: {out}")
    check_equal(running_with(str(folder / "tools")), [], "processes that were left")


def may_be_real_time():
    try:
        return os.sched_getscheduler(0) == os.SCHED_FIFO or subprocess.run(
            ["chrt", "-f", "20", "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_a_share_of_the_cpu(folder):
    code, out, err = drive(folder, "--peers", "crownyc", "--rows", "small", "--share", "50", "--seconds", "0.5",
                           "--json", folder / "a.json")
    if len(os.sched_getaffinity(0)) < 2:
        check_equal(code, EXIT_USAGE, "exit code with one CPU")
        check_in("--share needs two CPUs", err, "message")
        return
    if not may_be_real_time():
        check_equal(code, EXIT_PROGRAM, "exit code where the spinner may not be")
        check_in("the spinner does not start", err, "message")
        return
    check_equal(code, EXIT_OK, f"exit code\n{out}\n{err}")
    told = json.loads((folder / "a.json").read_text())
    ours = told["rows"]["small"]["table"][0]
    check_equal((told["share"], ours["faults"]), (50, 0), "share and faults")
    check(0.4 < ours["cpu_part"] < 0.8, f"what the spinner left: {ours}")
    check_in("--share 50: a spinner leaves", out, "the tables")
    check_equal(running_with(str(folder / "tools")), [], "processes that were left")


def test_what_fails_is_told(folder):
    broken = folder / "crownyc"
    broken.write_text("#!/bin/sh\nif [ \"$1\" = run ]; then exit 3; fi\nexec " + str(CROWNYC) + ' "$@"\n')
    broken.chmod(0o755)
    code, out, _ = drive(folder, "--peers", "crownyc,relay", "--rows", "small", crownyc=broken)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("crownyc does not answer 200", out, "faults")
    check_equal(running_with(str(folder / "tools")), [], "processes that were left")


def test_wrong_calls(folder):
    own = tools(folder)
    for words, part in ((["--rows", "smal"], "no row `smal`"), (["--peers", "nginks"], "no peer `nginks`"),
                        (["--rounds", "0"], "above 0"),
                        (["--rows", "small", "--generator", "h2load"], "is for rows h2 and h2c"),
                        (["--share", "4"], "from 5 to 95, not 4"),
                        (["--share", "96"], "from 5 to 95, not 96")):
        code, _, err = drive(folder, *words, own_tools=own)
        check_equal(code, EXIT_USAGE, f"exit code of {words}")
        check_in(part, err, "message")
    os.remove(own / "relay")
    code, _, err = drive(folder, own_tools=own)
    check_equal(code, EXIT_USAGE, "exit code without the relay")
    check_in("make bench builds it", err, "message")


run_all(globals())
