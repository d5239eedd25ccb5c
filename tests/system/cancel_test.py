#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/cancel_test.py: proves that any native that waits can be cut off, by cancel and by deadline, again and
# again, without harm. Under sanitizers it also finds memory that is used after it went. No sleep decides the result:
# what must hold is that the program ends by itself, and well.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, check_equal, run, run_all  # noqa: E402

PROGRAM = pathlib.Path(__file__).resolve().parent / "cancel.han"


def test_everything_that_waits_is_cut_off(folder):
    (folder / "out").mkdir()
    code, out, err = run([CROWNYC, "run", "--allow", "write,run", PROGRAM, "30"], cwd=folder)
    check_equal((code, out), (EXIT_OK, "done\n"), f"exit code and stdout; stderr: {err[-2000:]}")


run_all(globals())
