#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_allocations_test.py: proves that no program of tests/lang, loaded, rewritten or run with the n-th
# allocation failing, for every n, crashes, leaks, or ends other than usual without saying that memory was short. A
# program that catches what memory fails and then goes another way, without a word of memory, says so in its source:
#
#     // without memory: WHY
#
# Under its other name, fail_allocations_slow_test.py, it takes the programs that need long for this.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import (GATEWAY, SEEDS, compile_to_files, is_slow_without_memory, lang_programs,  # noqa: E402
                      run_harness)

DIFFERS = re.compile(r"^// without memory: \S", re.M)

slow = "_slow_test" in sys.argv[0]
sources = ([] if slow else [GATEWAY, *SEEDS]) + [p for p in lang_programs() if is_slow_without_memory(p) == slow]
arguments = []
for source, toau in zip(sources, compile_to_files(sources)):
    if DIFFERS.search(source.read_text(encoding="utf-8")):
        arguments.append("--differs")
    arguments.append(toau)
run_harness("fail_allocations", *arguments)
