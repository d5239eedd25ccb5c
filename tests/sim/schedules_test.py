#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/sim/schedules_test.py: 2,000 schedules of the simulated network (a tenth of that under sanitizers): whole
# conversations of several clients through server, proxy and pool with several upstreams, each message judged by a model
# (tests/sim/sim.h). The seeds are the same in every run; schedules_slow_test.py takes more of them.
#
# In:   BUILD/simulate. Out: its table, and what failed with the line that runs it again.

import os
import subprocess
import sys


# Rows and seeds beyond the first 2,000 that found something once.
FOUND = [("ends", 5551), ("all", 747), ("upstreams", 1447), ("drains", 382)]


def run_one(row, seed):
    finished = subprocess.run([os.path.join(os.environ["BUILD"], "simulate")], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, SIM_ROW=row, SIM_SEED=str(seed)))
    if finished.returncode:
        print(finished.stdout.decode("utf-8", "replace") or f"{row}, seed {seed}: ended with {finished.returncode}")
    return finished.returncode != 0


def run(count, first=1, found=()):
    command = [os.path.join(os.environ["BUILD"], "simulate"), "--count", str(count), "--first", str(first)]
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = finished.stdout.decode("utf-8", "replace")
    print(text, end="")
    failed_found = sum(run_one(row, seed) for row, seed in found)
    failed = text.count("FAILED ") or int(finished.returncode != 0)
    passed = sum(int(line.split()[1]) for line in text.splitlines() if " schedules " in line)
    passed, failed = passed + len(found) - failed_found, failed + failed_found
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(run(200 if os.environ.get("CROWNYC_SANITIZED") else 2000, found=FOUND))
