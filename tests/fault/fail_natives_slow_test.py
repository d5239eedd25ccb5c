#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_natives_slow_test.py: proves what fail_natives_test.py does for the programs whose every step takes
# long.

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from programs import SLOW_NATIVES_WITHOUT_MEMORY, fail_natives  # noqa: E402

fail_natives([ROOT / "tests/lang" / name for name in SLOW_NATIVES_WITHOUT_MEMORY])
