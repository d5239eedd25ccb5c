#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/sim/mutants.py: how good are the schedules? Each block of mutants.txt puts one bug into a copy of the tree,
# builds `simulate` there and looks for the first seed that finds it. Not a test of the suite: it takes minutes.
#
# In:   tests/sim/mutants.py FOLDER [WORD...]: where the copy and its build go; only bugs with a WORD in their name.
# Out:  one line per bug: schedules until it was found (rows in the order of sim_plan.c), and what was said; exit code 1
#       when one was not found or no longer applies.

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COUNT = 2000


def read_mutants(path):
    """(name, file, old text, new text) of each block."""
    mutants = []
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        part = {mark: [line[2:] for line in lines if line.startswith(mark)] for mark in "=@-+"}
        old, new = ("".join(line + "\n" for line in part[mark]) for mark in "-+")
        mutants.append((part["="][0], part["@"][0], old, new))
    return mutants


def copy_tree(folder):
    tree = folder / "tree"
    if tree.exists():
        shutil.rmtree(tree)
    # Not copy2: an object of an earlier call's last bug must not look newer than the source that is right again.
    shutil.copytree(ROOT, tree, copy_function=shutil.copy,
                    ignore=shutil.ignore_patterns(".git", "build", "__pycache__"))
    return tree


def build(tree, folder):
    command = ["make", "DEBUG=1", f"BUILD={folder}/build", "LAYERS=http", f"{folder}/build/debug/simulate"]
    finished = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return "" if finished.returncode == 0 else finished.stdout[-2000:]


def try_mutant(tree, folder, name, path, old, new):
    source = tree / path
    text = source.read_text()
    if text.count(old) != 1:
        return f"{name} | does not apply ({text.count(old)} places)", False
    source.write_text(text.replace(old, new))
    try:
        trouble = build(tree, folder)
        if trouble:
            return f"{name} | does not build: {trouble}", False
        finished = subprocess.run([folder / "build/debug/simulate", "--count", str(COUNT), "--until-failure"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    finally:
        source.write_text(text)
    found = re.search(r"^FAILED (.*)$", finished.stdout, re.M)
    if not found:
        return f"{name} | not found in {COUNT}", False
    done = sum(int(count) for count in re.findall(r"^\w+ +(\d+) schedules", finished.stdout, re.M))
    return f"{name} | {done + 1} | {found.group(1)}", True


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tree, all_found = copy_tree(folder), True
    for name, path, old, new in read_mutants(ROOT / "tests/sim/mutants.txt"):
        if len(sys.argv) > 2 and not any(word in name for word in sys.argv[2:]):
            continue
        line, found = try_mutant(tree, folder, name, path, old, new)
        print(line, flush=True)
        all_found = all_found and found
    return 0 if all_found else 1


if __name__ == "__main__":
    sys.exit(main())
