#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/bench_micro_test.py: proves that every Hanseon program of bench/micro still compiles and computes what
# the Python program of the same name did (the tiny checksums of rows.tsv), that the runner sees a wrong result, and
# that the core with an empty program stays small (bench/README.md has the goals of starting; times are no test).

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, SANITIZED,  # noqa: E402
                     check, check_equal, check_in, run, run_all)

MICRO = ROOT / "bench/micro"
sys.path.insert(0, str(MICRO))
import measure  # noqa: E402

LANGUAGES = ("han", "lua", "js", "py")
RUNNER = [sys.executable, "-B", "run", "--crownyc", CROWNYC, "--rounds", "1", "--tiny", "--languages", "hanseon"]


CORE_RESIDENT_KIB_MAX = 4096  # the core from source, of a program that prints one line


def test_of(row):
    def test(folder):
        code, out, err = run([CROWNYC, "run", MICRO / f"{row.program}.han", *row.tiny.split()], cwd=folder,
                             within=5 * DEADLINE_S)
        if row.name == "json_round_trip" and measure.NO_MODULE in err:
            return  # until there is a standard module json
        check_equal((code, out, err), (EXIT_OK, row.tiny_checksum + "\n", ""), f"{row.name} {row.tiny}")
    return test


for _row in measure.read_rows():
    globals()[f"test_row_{_row.name}"] = test_of(_row)


def test_every_program_has_a_row_and_every_language(folder):
    programs = {row.program for row in measure.read_rows()} | {"empty"}
    for extension in LANGUAGES:
        found = {path.stem for path in MICRO.glob(f"*.{extension}")} - {"measure"}
        check_equal(found, programs, f"programs ending in .{extension}")
    check(all(row.checksum != measure.UNKNOWN for row in measure.read_rows()), "a row of rows.tsv has no checksum")


def resident_kib(folder, program):
    """The largest resident size of crownyc-core with the program; of three runs the smallest."""
    code, out, err = run([BUILD / "bench/start_up", "3", BUILD / "crownyc-core", program], cwd=folder)
    check_equal((code, err), (EXIT_OK, ""), "start_up")
    return min(int(line.split()[3]) for line in out.splitlines())


def test_the_core_with_an_empty_program_is_small(folder):
    if SANITIZED:
        return  # shadow memory is no size of ours
    empty = resident_kib(folder, MICRO / "empty.han")
    check(0 < empty < CORE_RESIDENT_KIB_MAX, f"crownyc-core: {empty} KiB resident, the goal is {CORE_RESIDENT_KIB_MAX}")
    holds = folder / "holds.han"
    holds.write_text("export fn main(args) {\n    let v = []\n    for i in 0..300000 { v = v + [i] }\n"
                     "    print(len(v))\n}\n")
    check(resident_kib(folder, holds) > CORE_RESIDENT_KIB_MAX, "300,000 items are seen in the resident size")


def copy_of_micro(folder, old, new):
    copy = folder / "micro"
    shutil.copytree(MICRO, copy, ignore=shutil.ignore_patterns("__pycache__"))
    table = copy / "rows.tsv"
    text = table.read_text(encoding="utf-8")
    check_in(old, text, "rows.tsv")
    table.write_text(text.replace(old, new), encoding="utf-8")
    return copy


def test_the_runner(folder):
    code, out, err = run([*RUNNER, "--only", "fib,queens", "--json", folder / "a.json"], cwd=MICRO)
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    for part in ("fib", "queens", "versions: crownyc", "command: run"):
        check_in(part, out, "the table")
    check((folder / "a.json").stat().st_size > 100, "--json wrote next to nothing")
    code, _, err = run([*RUNNER, "--only", "fibb"], cwd=MICRO)
    check_equal(code, EXIT_USAGE, "exit code for an unknown row")
    check_in("no row `fibb`", err, "message")


def test_the_runner_sees_a_wrong_checksum(folder):
    copy = copy_of_micro(folder, "\t2584\t", "\t2585\t")
    code, out, _ = run([*RUNNER, "--only", "fib"], cwd=copy)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("FAULT: fib: expected 2585, hanseon ['2584']", out, "the table")


def test_the_runner_sees_a_program_that_fails(folder):
    copy = copy_of_micro(folder, "\tfib\t34\t18\t", "\tfib\t34\tmany\t")
    code, out, _ = run([*RUNNER, "--only", "fib"], cwd=copy)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("FAULT: fib, Hanseon: FAILED: exit code 1", out, "the table")


run_all(globals())
