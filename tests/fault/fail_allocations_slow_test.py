#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_allocations_slow_test.py: proves what fail_allocations_test.py does for the programs whose every step
# handles megabytes.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import fail_allocations, is_slow_without_memory, lang_programs  # noqa: E402

fail_allocations([path for path in lang_programs() if is_slow_without_memory(path)])
