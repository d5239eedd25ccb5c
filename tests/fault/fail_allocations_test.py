#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_allocations_test.py: proves that no program of tests/lang, loaded, rewritten or run with the n-th
# allocation failing, for every n, crashes, leaks, or ends other than usual without saying that memory was short. A
# program that catches what memory fails and then goes another way, without a word of memory, says so in its source:
#
#     // without memory: WHY
#
# Those that need long for this are fail_allocations_slow_test.py's.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import GATEWAY, SEEDS, fail_allocations, is_slow_without_memory, lang_programs  # noqa: E402

fail_allocations([GATEWAY, *SEEDS] + [path for path in lang_programs() if not is_slow_without_memory(path)])
