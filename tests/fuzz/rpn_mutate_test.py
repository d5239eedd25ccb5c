#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/rpn_mutate_test.py: proves that no damaged RPN text does harm: each is refused with reasons and the count
# of unknown words, or it is a program whose file loads and whose own text gives the same bytes (rpn_mutate.c). Before
# that, the texts of a language test per folder, the seeds, the gateway and every module of stdlib give their files'
# bytes.
#
# In:   FUZZ_MS (10000): time for damaged texts; FUZZ_SEED: another seed than the fixed one.

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from programs import GATEWAY, ROOT, SEEDS, compile_to_files, lang_programs, run_harness  # noqa: E402

# A module of stdlib comes into a program as far as it is used.
EXPORT = re.compile(r"^export (?:fn|let|const|record) (\w+)", re.M)
users = []
for module in sorted((ROOT / "stdlib").glob("*.han")):
    user = pathlib.Path(f"uses_{module.stem}.han").resolve()
    names = EXPORT.findall(module.read_text(encoding="utf-8"))
    uses = "".join(f"    print({module.stem}.{name})\n" for name in names)
    user.write_text(f'import "{module.stem}"\n\nexport fn main(args) {{\n{uses}}}\n', encoding="utf-8")
    users.append(user)

by_folder = {path.parent: path for path in reversed(lang_programs())}
files = compile_to_files([GATEWAY, *SEEDS, *sorted(by_folder.values())])
files += compile_to_files(users, root=pathlib.Path.cwd())
options = ["--budget-ms", os.environ.get("FUZZ_MS", "10000")]
if os.environ.get("FUZZ_SEED"):
    options += ["--seed", os.environ["FUZZ_SEED"]]
run_harness("rpn_mutate", *options, *files, *sorted((ROOT / "tests/rpn").rglob("*.rpn")))
