#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/docs_test.py: proves that nothing in the tree names a machine it was made on or a host it was fetched from,
# that papers link to files that exist and have no placeholder left, that decisions have numbers of their own, that
# docs/OPCODES.md and docs/STDLIB.md are what the tables say, and that every name of the standard library has a Korean
# spelling, a meaning and an example.

import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _tree import ROOT, Report, files, read, test_missing  # noqa: E402

# Split, so that this file does not find itself.
MACHINE_PATH = re.compile("(?<![A-Za-z0-9_.~-])/(?:wo" "rk|ho" "me|ro" "ot|Us" "ers|mnt|media)/[A-Za-z0-9_.-]")
REGISTRY_HOST = re.compile("py" r"pi\.org|files\.python" r"hosted\.org|registry\.np" r"mjs\.org|proxy\.gol" r"ang\.org"
                           r"|sum\.gol" r"ang\.org|cra" r"tes\.io|deb\.deb" r"ian\.org|index\.doc" r"ker\.io"
                           r"|artif" r"actory|repo\.mav" r"en\.")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


PLACEHOLDER = re.compile("@[A-Z][A-Z_]*@|\\b(?:TO" "DO|FIX" "ME|XX" "X)\\b")


def found(pattern, texts):
    return [f"{path}: {match.group(0)}" for path, text in texts.items() for match in pattern.finditer(text)]


def dead_links(texts, exists):
    complaints = []
    for path, text in texts.items():
        for target in LINK.findall(text):
            if re.match(r"^[a-z]+:", target):
                continue
            place = os.path.normpath(os.path.join(os.path.dirname(path), target))
            if not exists(place):
                complaints.append(f"{path}: links to {target}, which is not there")
    return complaints


HOLES_TEST = "tests/unit/code/verify_holes_test.c"


def open_holes(page, tests):
    """Rows of "Holes of others" in docs/TOAU.md whose test does not run, and tests that have no row."""
    table = page.partition("\n## Holes of others\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\|.*\| `(test_\w+)` \|$", table, re.M)
    rows = len(re.findall(r"^\|", table, re.M)) - 2  # below the head and its rule
    complaints = [f"docs/TOAU.md: {complaint}" for name in named for complaint in test_missing(HOLES_TEST, name)]
    complaints += [f"docs/TOAU.md: {name} is a row of no hole" for name in tests if name not in named]
    return complaints + ([f"docs/TOAU.md: {rows} holes, {len(named)} tests"] if rows != len(named) or not named else [])


NATIVE = re.compile(r'^NATIVE\(\w+,\s*\w+,\s*0x[0-9a-f]+,\s*"([^"]+)"', re.M)


def untested_natives(tables, tests):
    """Natives that nothing calls which tests run; the example of each, which STDLIB.md shows, is one more."""
    called = set(re.findall(r"\b[a-z_0-9]+(?:\.[a-z_0-9]+)?(?=\()", tests))
    return [f"{name}: in no test" for name in NATIVE.findall(tables) if name not in called]


def old_opcodes():
    if not (ROOT / "docs/gen_opcodes.c").exists():
        return ["docs/gen_opcodes.c is not there"]
    build = os.environ.get("BUILD", str(ROOT / "build/debug"))
    # Not as a part of the make that may have called us: its job server and its goals are not ours.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    result = subprocess.run(["make", "-s", "-C", str(ROOT), "docs-check", f"BUILD={build}/docs-check"],
                            capture_output=True, text=True, env=environment)
    return [] if result.returncode == 0 else [(result.stdout + result.stderr).strip()[-500:]]


ENTRY = re.compile(r"^### `[^`]+` · `([^`]*)`\n(.*?)(?=^##|\Z)", re.S | re.M)


def poor_entries(page):
    """Names of docs/STDLIB.md without a Korean spelling, a meaning or an example."""
    complaints = []
    for match in ENTRY.finditer(page):
        title = match.group(0).split("\n", 1)[0]
        korean = match.group(1).rpartition(".")[2]
        text = re.sub(r"```text\n.*?```", "", match.group(2), flags=re.S).strip().partition("\n")[2].strip()
        if not re.search("[가-힣]", korean):
            complaints.append(f"{title}: no Korean name")
        if not text:
            complaints.append(f"{title}: no meaning")
        if "```text\n" not in match.group(2):
            complaints.append(f"{title}: no example in vm/code/native_example.def")
        elif title.split("`")[1] not in match.group(2):
            complaints.append(f"{title}: its examples are about something else")
    return complaints


DECISION = re.compile(r"^docs/decisions/(\d{4})-[a-z0-9-]+\.md$")
DECISION_ROW = re.compile(r"^\| \[(\d{4})\]\((\1-[a-z0-9-]+\.md)\) \|", re.M)


def muddled_decisions(papers):
    """Decisions that share a number, call themselves by another one, or are not exactly once in the list, in order."""
    complaints, names = [], {}
    for path in sorted(papers):
        match = DECISION.match(path)
        if not match:
            if path.startswith("docs/decisions/") and not path.endswith("README.md"):
                complaints.append(f"{path}: is not named NNNN-title.md")
            continue
        number = match.group(1)
        if number in names:
            complaints.append(f"{path}: {names[number]} has this number")
        names.setdefault(number, path.rpartition("/")[2])
        if not papers[path].startswith(f"# {number}: "):
            complaints.append(f"{path}: its title does not begin with its number")
    listed = [row.group(2) for row in DECISION_ROW.finditer(papers.get("docs/decisions/README.md", ""))]
    if listed != sorted(path.rpartition("/")[2] for path in papers if DECISION.match(path)):
        complaints.append("docs/decisions/README.md: is not the list of the decisions in order")
    return complaints


RULE = re.compile(r"^RULE\((\w+),", re.M)


def rules_of_the_paper(page):
    """The rules that the table of docs/TOAU.md names; `A_B, _C` names A_B and A_C (and A_B_C)."""
    rules = set()
    for row in re.findall(r"^\| ([A-Z]+(?:_[A-Z]+)*(?:[,;] [A-Z_]+)*) \|", page, re.M):
        for group in row.split("; "):
            first, *rest = group.split(", ")
            words = first.split("_")
            rules.add(first)
            for word in rest:
                rules |= {word} if word[0] != "_" else {"_".join(words[:n]) + word for n in range(1, len(words) + 1)}
    return rules


def untold_rules(table, page):
    """Rules of vm/code/rule.def that docs/TOAU.md does not name."""
    return [f"docs/TOAU.md lacks {rule}" for rule in RULE.findall(table) if rule not in rules_of_the_paper(page)]


def main():
    report = Report()
    texts = {}
    for path in files():
        try:
            texts[str(path)] = read(path)
        except UnicodeDecodeError:
            continue  # not text
    report.rule("no absolute path of a machine", found(MACHINE_PATH, texts))
    report.rule("no registry host", found(REGISTRY_HOST, texts))
    papers = {path: text for path, text in texts.items() if path.endswith(".md")}
    report.rule("links lead somewhere", dead_links(papers, lambda place: (ROOT / place).exists()))
    report.rule("papers have no placeholder", found(PLACEHOLDER, papers))
    report.rule("decisions have numbers of their own and are listed", muddled_decisions(papers))
    report.rule("docs/TOAU.md names every rule",
                untold_rules(texts.get("vm/code/rule.def", "none"), texts["docs/TOAU.md"]))
    toau = read(pathlib.Path("docs/TOAU.md"))
    holes = re.findall(r"START_TEST\((\w+)\)", read(pathlib.Path(HOLES_TEST)))
    report.rule("docs/TOAU.md has a test for each hole, and each such test", open_holes(toau, holes))
    tables = "\n".join(read(path) for path in files(".def") if path.name.startswith("native"))
    tests = "\n".join(read(path) for path in files(".han", ".한선", ".py") if path.parts[0] in ("tests", "programs"))
    tests += read(pathlib.Path("docs/LANGUAGE.md"))  # its programs are run by tests/system/docs_test.py
    report.rule("every native is called by a test", untested_natives(tables, tests))
    report.rule("docs/OPCODES.md and docs/STDLIB.md are up to date", old_opcodes())

    page = texts.get("docs/STDLIB.md", "")
    report.rule("docs/STDLIB.md has entries", [] if len(ENTRY.findall(page)) > 40 else ["hardly any"])
    report.rule("each has a Korean name, a meaning and an example", poor_entries(page))

    planted = "### `a.b` · `a.b`\n\n`b()`\n\nGives b.\n\n```text\na.d()\n```\n\n### `a.c` · `a.다`\n\n`c()`\n\n\n## d\n"
    report.must_find("planted: entries", poor_entries(planted), 4)
    report.must_find("planted: a hole whose test is gone",
                     open_holes(toau.replace(f"`{holes[0]}`", "`test_gone`"), holes), 2)
    report.must_find("planted: a hole without a test",
                     open_holes(toau.replace(f"`{holes[0]}`", "none"), holes), 2)
    report.must_find("planted: no table", open_holes("", []))
    report.must_find("planted: a native without a test",
                     untested_natives('NATIVE(CORE, a, 0x0001, "a.b", x)\nNATIVE(CORE, c, 0x0002, "c", x)',
                                      "a.b(1) cc(1)"))
    report.must_find("planted: path",
                     found(MACHINE_PATH, {"a": "see /ho" "me/kim/x, not vm/work/x or https://a.b/home/x"}))
    report.must_find("planted: host", found(REGISTRY_HOST, {"a": "https://py" "pi.org/simple"}))
    report.must_find("planted: placeholder",
                     found(PLACEHOLDER, {"a.md": "@NEW@ took @N_ROWS@ s; a@b.c, user@HOST, @x@"}), 2)
    report.must_find("planted: link", dead_links({"docs/a.md": "[x](../gone.md) [y](https://a.b/c) [z](b.md#part)"},
                                                 lambda place: place == "docs/b.md"))
    report.must_find("planted: rules", untold_rules("RULE(A_B, \nRULE(A_C, \nRULE(A_D, \n", "| A_B, _C | x |\n"))
    listed = "| [0001](0001-a.md) | a |\n| [0002](0002-b.md) | b |\n"
    good = {"docs/decisions/0001-a.md": "# 0001: a", "docs/decisions/0002-b.md": "# 0002: b",
            "docs/decisions/README.md": listed}
    report.rule("planted: good decisions", muddled_decisions(good))
    report.must_find("planted: a number twice, and not listed",
                     muddled_decisions({**good, "docs/decisions/0002-c.md": "# 0002: c"}), 2)
    report.must_find("planted: another title", muddled_decisions({**good, "docs/decisions/0002-b.md": "# 0003: b"}))
    report.end()


main()
