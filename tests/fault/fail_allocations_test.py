#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_allocations_test.py: proves that no program of tests/lang, loaded, rewritten or run with the n-th
# allocation failing, for every n, crashes, leaks, or ends other than usual without saying that memory was short.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import GATEWAY, SEEDS, compile_to_files, lang_programs, run_harness  # noqa: E402

run_harness("fail_allocations", *compile_to_files([GATEWAY, *SEEDS, *lang_programs()]))
