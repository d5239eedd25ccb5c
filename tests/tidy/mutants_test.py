#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/mutants_test.py: proves that each bug of tests/sim/mutants.txt still fits the source: the text that it
# replaces is there exactly once, and it changes something; and that tests/README.md tells of each of them, and of no
# other. Whether schedules find them is tests/sim/mutants.py's, which builds and takes minutes.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "sim"))
from _tree import ROOT, Report, read  # noqa: E402
from mutants import read_mutants  # noqa: E402

TABLE = re.compile(r"^\| bug \| row, seed \| what was said \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.M)
UNFOUND = "a connection is taken without a look"  # said in words below the table


def misfits(mutants, texts):
    """Bugs whose old text is not in their file exactly once, or that change nothing."""
    complaints = []
    for name, path, old, new in mutants:
        count = texts[path].count(old) if old and path in texts else 0
        if count != 1:
            complaints.append(f"{name}: its old text is {count} times in {path}, not once")
        if old == new:
            complaints.append(f"{name}: changes nothing")
    return complaints


def untold(names, readme):
    """Bugs that the table lacks, and rows without a bug."""
    rows = [row.split("|")[1].strip() for row in TABLE.search(readme).group(1).splitlines()]
    return sorted({f"no row: {name}" for name in names if name not in rows} |
                  {f"no bug: {row}" for row in rows if row not in names} |
                  {f"twice: {row}" for row in rows if rows.count(row) > 1})


def main():
    report = Report()
    mutants = read_mutants(ROOT / "tests/sim/mutants.txt")
    texts = {path: read(path) for _, path, _, _ in mutants if (ROOT / path).is_file()}
    report.rule("bugs fit the source", misfits(mutants, texts))
    report.rule("bugs and the table of tests/README.md",
                untold([name for name, _, _, _ in mutants if name != UNFOUND], read("tests/README.md")))
    report.must_find("planted: gone, twice, no file, no change", misfits(
        [("gone", "a.c", "x\n", "y\n"), ("twice", "a.c", "b\n", "c\n"), ("file", "b.c", "b\n", "c\n"),
         ("same", "c.c", "b\n", "b\n"), ("good", "c.c", "b\n", "c\n")], {"a.c": "b\nb\n", "c.c": "b\n"}), 4)
    report.must_find("planted: rows", untold(
        ["a", "b"], "| bug | row, seed | what was said |\n|---|---|---|\n| a | x 1 | y |\n| c | x 1 | y |\n"), 2)
    report.end()


if __name__ == "__main__":
    main()
