#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/stats_test.py: proves that crownyc run --stats says what the heap holds by kind, what is not reached, and
# the counters, and the turns that took longest; that stdout stays the program's; and that each worker says its own.

import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, EXIT_PROGRAM, Program, check, check_equal, check_in, environment, run, \
    run_all  # noqa: E402

SOURCE = """
import "task"
record Route { name: str, weight: int = 1 }
let routes = []
let byname = {}
let notes = ref("")
fn work(n) { return n }
export fn main(args) {
    for i in 0..100 {
        routes = routes + [Route("길 \\(i)", i)]
        byname["k\\(i)"] = [1.5, 2.5]
    }
    let cell = ref(nil)
    cell.value = [cell]
    for i in 0..7 { task.wait(spawn work(i)) }
    notes.value = "x"
    print("done")
    if args != [] { fail("value", "no") }
}
"""


def rows(err):
    return {m.group(1): (int(m.group(2)), int(m.group(3)))
            for m in re.finditer(r"^  (\S.*?)  +(\d+) +(\d+)$", err, re.M)}


def test_kinds_and_counters(folder):
    source = folder / "s.han"
    source.write_text(SOURCE)
    code, out, err = run([CROWNYC, "run", "--stats", source], env=environment())
    check_equal((code, out), (EXIT_OK, "done\n"), "exit code and stdout")
    found = rows(err)
    check_equal(found["record Route"][0], 100, "records")
    check_equal(found["list of float"][0], 100, "lists of floats")
    check_equal((found["map"][0], found["ref"][0]), (1, 1), "maps and cells that are reached")
    check_in("not reached", err, "stderr")
    check_equal(int(re.search(r"not reached +(\d+)$", err, re.M).group(1)), 2, "the cycle")
    check_equal(int(re.search(r"tasks spawned: (\d+)", err).group(1)), 7, "tasks")
    peak = int(re.search(r"peak heap bytes: (\d+)", err).group(1))
    check(peak >= found["all, with code and stacks"][1] > 10000, f"the peak is {peak}")


def test_after_an_error_and_in_korean(folder):
    source = folder / "s.han"
    source.write_text(SOURCE.replace('fail("value", "no")', "throw 1"))
    code, _, err = run([CROWNYC, "--lang", "ko", "run", "--stats", source, "x"], env=environment())
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("맡긴 일: 7", err, "stderr")


LONG = """
import "list"
fn quick(n) { return n }
fn heavy(x) {
    return list.reverse(x)
}
export fn main(args) { print(len(heavy(list.fill("x", 4000000))), quick(1)) }
"""


def test_the_longest_turn_has_a_place(folder):
    source = folder / "long.han"
    source.write_text(LONG)
    _, out, err = run([CROWNYC, "run", "--stats", source], env=environment())
    check_equal(out, "4000000 1\n", "stdout")
    longest = float(re.search(r"^longest turn: ([\d.]+) ms$", err, re.M).group(1))
    rows = re.findall(r"^ +([\d.]+) ms +(\d+) x +(.*)$", err, re.M)
    check_in("heavy (long.han:5:", " ".join(row[2] for row in rows), "places")
    check_equal(longest, max(float(row[0]) for row in rows), "the longest of the rows")
    check("quick" not in str(rows), f"only long turns: {rows}")
    _, _, err = run([CROWNYC, "--lang", "ko", "run", "--stats", source], env=environment())
    check_in("가장 긴 차례: ", err, "stderr")


LONG_NAMES = """
import "list"
fn {first}(x) {{ return list.reverse(x) }}
fn {second}(x) {{ return list.reverse(x) }}
export fn main(args) {{ let x = list.fill("x", 4000000) print(len({first}(x)) + len({second}(x))) }}
"""


def test_long_names_are_cut_and_told_apart(folder):
    """42 letters of Hangul are 126 bytes, which with the place behind are more than a row has."""
    source = folder / "long.han"
    source.write_text(LONG_NAMES.format(first="가" * 42, second="가" * 41 + "나"))
    _, out, err = run([CROWNYC, "run", "--stats", source], env=environment())
    check_equal(out, "8000000\n", "stdout")
    places = [row[2] for row in re.findall(r"^ +([\d.]+) ms +(\d+) x +(.*)$", err, re.M)]
    for line in (3, 4):
        check(any(re.fullmatch(rf"가{{20,}}\.\.\. \(long\.han:{line}:\d+\)", place) for place in places),
              f"line {line} in {places}")


SERVER = """
import "process"
import "http"
export fn handle(request) { return http.respond(200, "ok") }
export fn main(args) {
    process.workers(2)
    http.serve({listen: ["127.0.0.1:0"], banner: "ready"})
}
"""


def test_each_worker_says_its_own(folder):
    source = folder / "server.han"
    source.write_text(SERVER)
    server = Program([CROWNYC, "run", "--stats", source], cwd=folder)
    server.wait_line(re.compile("^ready$"))
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")
    for worker in (0, 1):
        check_in(f"worker {worker}\n", server.text("err"), "stderr")
    check_equal(len(re.findall("peak heap bytes", server.text("err"))), 2, "tables; the master has none")


run_all(globals())
