# SPDX-License-Identifier: MIT
#
# tests/tidy/_tree.py: what the tidy tests share: the tree's files, C without comments, counting.
#
# In:   the tree. Out: text, and a report whose last line the runner counts.
# Invariant: each rule is also tried on a planted fault (Report.must_find), so that no rule can fall asleep.

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = {".git", "build", "__pycache__"}


def files(*suffixes):
    """Paths relative to the root, sorted, of files with these suffixes (all without)."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS
                      and not (pathlib.Path(folder) / f / "objects").is_dir()]
        for name in set(names) - SKIPPED_FOLDERS: # .git is a file in a work tree
            path = pathlib.Path(folder, name).relative_to(ROOT)
            if not suffixes or path.suffix in suffixes:
                found.append(path)
    return sorted(found, key=str)


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def product_sources(*suffixes):
    """Texts of the C files of the product (not tests, not tools of the build) by path."""
    return {str(p): read(p) for p in files(*suffixes) if p.parts[0] in ("vm", "compiler")}


TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)


def code_only(text):
    """The C text with comments and the insides of literals blanked; lines keep their numbers."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + token[0]
        return re.sub(r"[^\n]", " ", token)
    return TOKEN.sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def test_missing(path, function):
    """Why the named test does not run: nothing when it is in its file and, in C, in its suite. A test that is a file of
    its own (wire, lang) has what is named in it."""
    try:
        text = read(pathlib.Path(path))
    except FileNotFoundError:
        return [f"{path} is not there"]
    if not path.endswith((".c", ".py")):
        return [] if function in text else [f"{path} has no {function!r}"]
    if not re.search(rf"START_TEST\({function}\)|^def {function}\(", text, re.M):
        return [f"{path} has no {function}"]
    if path.endswith(".c") and not re.search(rf", {function}[,)]", text):
        return [f"{path} does not add {function} to its suite"]
    return []


class Report:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def rule(self, name, complaints):
        """One rule over the real tree: passes when there is nothing to say."""
        if complaints:
            self.failed += 1
            print(f"{name}:")
            for complaint in complaints[:50]:
                print(f"  {complaint}")
        else:
            self.passed += 1

    def must_find(self, name, complaints, count=1):
        """The same rule over planted faults: passes when it finds exactly as many as were planted."""
        if len(complaints) == count:
            self.passed += 1
        else:
            self.failed += 1
            print(f"{name}: {count} planted, found {len(complaints)}: {complaints}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)
