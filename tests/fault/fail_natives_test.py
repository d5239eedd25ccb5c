#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fault/fail_natives_test.py: proves that no native of group FULL, on real files, sockets and processes, crashes,
# leaks, hangs, or ends other than usual without saying that memory was short, whichever allocation fails. The programs
# are those of tests/lang that use one, and those of tests/fault/programs for what needs a capability. A native that
# none of them names must stand in NOT_HERE with the reason. Programs that take long for all their steps are
# fail_natives_slow_test.py's.

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from programs import SLOW_NATIVES_WITHOUT_MEMORY, fail_natives, lang_programs  # noqa: E402

FULL = re.compile(r'^NATIVE\(FULL,\s*\w+,\s*0x\w+,\s*"([^"]+)"', re.M)
IMPORT = re.compile(r'^import "(\w+)"', re.M)
NOT_HERE = {
    "process.workers": "forks: the process of the harness would become a master",
    "http.serve": "runs in workers only",
    "http.field": "needs a request that http.serve accepted",
    "http.tls_has": "needs a certificate, and there is no key in the tree; it compares names",
}

full = set(FULL.findall((ROOT / "vm/code/native.def").read_text(encoding="utf-8")))
modules = {name.split(".")[0] for name in full}
sources = sorted((ROOT / "tests/fault/programs").glob("*.han"))
sources += [path for path in lang_programs()
            if (modules - {"task"}) & set(IMPORT.findall(path.read_text(encoding="utf-8")))]
long = {ROOT / "tests/lang" / name for name in SLOW_NATIVES_WITHOUT_MEMORY}
if not long <= set(sources):
    raise SystemExit(f"not there: {long - set(sources)}")
sources = [path for path in sources if path not in long]
texts = {path: path.read_text(encoding="utf-8") for path in sources}
missing = sorted(name for name in full - set(NOT_HERE) if not any(f"{name}(" in text for text in texts.values()))
if missing or set(NOT_HERE) - full:
    raise SystemExit(f"no program for: {missing}; not natives: {sorted(set(NOT_HERE) - full)}")

fail_natives(sources)
