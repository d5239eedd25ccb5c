#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/json_vectors_test.py: proves json.parse against test files that others wrote: y_ is accepted, n_ refused
# with a place, i_ either. What was accepted is written and read again, and must be equal.
#
# In:   the folder in CROWNYC_VECTORS, else ../shared/vectors beside the tree. Passes with a note when it is not there.

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACES = [os.environ.get("CROWNYC_VECTORS"), ROOT.parent / "shared/vectors", ROOT.parent.parent / "shared/vectors"]
PROGRAM = """
import "fs"
import "json"
export fn main(args) {
    for path in args {
        let text = fs.read(path)
        try {
            let value = json.parse(text, {duplicates: "last"})
            let again = json.parse(json.write(value, {indent: 1, sort_keys: true}))
            if value == again { print("accepted") } else { print("changed") }
        } catch e { if e.kind == "bad_format" and e.data.line > 0 { print("refused") } else { print("odd", e.kind) } }
    }
}
"""


def main():
    folders = [pathlib.Path(p, "json", "test_parsing") for p in PLACES if p]
    folder = next((f for f in folders if f.is_dir()), None)
    if not folder:
        print("skipped: no folder of JSON vectors")
        print("1 passed, 0 failed")
        return
    files = sorted(folder.glob("*.json"))
    pathlib.Path("vectors.han").write_text(PROGRAM)
    run = subprocess.run([os.environ["CROWNYC"], "run", "vectors.han", *map(str, files)], capture_output=True,
                         text=True)
    answers = run.stdout.splitlines()
    if run.returncode != 0 or len(answers) != len(files) or len(files) < 100:
        print(run.stderr, f"{len(answers)} answers for {len(files)} files")
        print("0 passed, 1 failed")
        sys.exit(1)
    failed = 0
    for path, answer in zip(files, answers):
        wanted = {"y": ["accepted"], "n": ["refused"], "i": ["accepted", "refused"]}[path.name[0]]
        if answer not in wanted:
            failed += 1
            print(f"{path.name}: {answer}")
    print(f"{len(files) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
