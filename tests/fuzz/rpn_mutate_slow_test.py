#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/rpn_mutate_slow_test.py: proves the same as rpn_mutate_test.py, with a new seed each time and for longer. A
# failure names its seed: FUZZ_SEED=N tests/run --only fuzz repeats it.

import os
import pathlib
import runpy
import secrets

os.environ.setdefault("FUZZ_MS", "60000")
os.environ.setdefault("FUZZ_SEED", str(secrets.randbelow(1 << 48)))
runpy.run_path(str(pathlib.Path(__file__).with_name("rpn_mutate_test.py")), run_name="__main__")
