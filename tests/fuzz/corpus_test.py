#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/corpus_test.py: proves that every input in tests/fuzz/corpus, and every regression among them, still passes
# its target (tests/fuzz/target.def); under make sanitize with the sanitizers watching.

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPLAY = pathlib.Path(os.environ.get("BUILD", ROOT / "build/debug")).resolve() / "fuzz_replay"
passed = failed = 0
for folder in sorted((ROOT / "tests/fuzz/corpus").iterdir()):
    files = sorted(folder.iterdir())
    done = subprocess.run([REPLAY, folder.name, *files], capture_output=True, text=True, errors="replace")
    if done.returncode == 0 and files and done.stdout == f"{len(files)} files\n":
        passed += 1
    else:
        failed += 1
        print(f"{folder.name}: ended with {done.returncode}; the last lines:\n{done.stderr[-2000:]}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
