#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/toau_mutate_test.py: proves that no damaged .toau file does harm: each is refused by a named rule, or it is
# a canonical program that runs within its bounds (toau_mutate_main.c says what is counted).
#
# In:   FUZZ_MS (15000): time for random mutants; FUZZ_SEED: another seed than the fixed one.
# The files damaged are the gateway, the seeds beside this script, and one program of each folder of tests/lang.

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import GATEWAY, SEEDS, compile_to_files, lang_programs, run_harness  # noqa: E402

by_folder = {path.parent: path for path in reversed(lang_programs())}
files = compile_to_files([GATEWAY, *SEEDS, *sorted(by_folder.values())])
options = ["--budget-ms", os.environ.get("FUZZ_MS", "15000")]
if os.environ.get("FUZZ_SEED"):
    options += ["--seed", os.environ["FUZZ_SEED"]]
run_harness("toau_mutate", *options, *files)
