#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# bench/holds/holds.py: how long one operation over a large value holds the thread.
#
# In:  cases.txt: `name | what is made before | the operation`, each run as a program of its own with --stats.
# Out: a row for each: the longest turn of the operation, in ms of CPU, and how many long turns there were in it.
# Why: between two turns a worker looks at the network. See docs/decisions/0032-long-steps.md.
#
#   bench/holds/holds.py [--crownyc PATH] [--filter WORD] [--rounds N]

import argparse
import pathlib
import re
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PRELUDE = "".join(f'import "{name}"\n' for name in
                  ("json", "list", "map", "text", "hash", "base64", "url", "yaml"))


def cases(word):
    for line in (HERE / "cases.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, before, operation = (part.strip() for part in line.split("|", 2))
        if word in name:
            yield name, before, operation


def longest(crownyc, folder, before, operation):
    """Milliseconds of the longest turn that ended in the operation, and the number of long turns there."""
    used = "".join(line + "\n" for line in PRELUDE.splitlines()
                   if re.search(rf"\b{line.split(chr(34))[1]}\.", before + operation))
    source = folder / "case.han"
    source.write_text(used + before + "\nfn operation(x) {\n" + operation + "\n}\n"
                      "fn keep(x) { }\nexport fn main(args) { let x = made() operation(x) keep(x) }\n")
    process = subprocess.run([crownyc, "run", "--stats", source], capture_output=True, text=True, check=False)
    if process.returncode != 0:
        return None, process.stderr.strip().splitlines()[0]
    found = re.search(r"^ +([\d.]+) ms +(\d+) x +operation ", process.stderr, re.M)
    return (float(found.group(1)), int(found.group(2))) if found else (0.0, 0)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--crownyc", default="build/crownyc")
    options.add_argument("--filter", default="")
    options.add_argument("--rounds", type=int, default=1)
    given = options.parse_args()
    print(f"{'operation':42} {'longest turn':>14} {'turns over 2 ms':>16}")
    with tempfile.TemporaryDirectory() as folder:
        for name, before, operation in cases(given.filter):
            rounds = [longest(given.crownyc, pathlib.Path(folder), before, operation)
                      for _ in range(given.rounds)]
            if rounds[0][0] is None:
                print(f"{name:42} {rounds[0][1]}")
                continue
            print(f"{name:42} {statistics.median(r[0] for r in rounds):11.1f} ms {rounds[0][1]:16}", flush=True)


main()
