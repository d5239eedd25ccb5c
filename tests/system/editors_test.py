#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/editors_test.py: proves that the files of docs/editors fit each other and the language: JSON that an
# editor can read, paths that exist, a grammar that knows every spelling of every keyword where it is one, and nowhere
# else; and that crownyc doc says all mistakes and writes nothing then.

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, check, check_equal, check_in, run  # noqa: E402
from harness import run_all  # noqa: E402

FOLDER = ROOT / "docs/editors/vscode"
KEYWORD = re.compile(r'^KEYWORD\((\w+),\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)"\)', re.M)


def grammar():
    return json.loads((FOLDER / "syntaxes/hanseon.tmLanguage.json").read_text(encoding="utf-8"))


def rules(found=None):
    """Every rule with a match, as Python reads it: its word class stands for the grammar's."""
    for rule in grammar()["repository"]["code"]["patterns"]:
        if "match" in rule:
            pattern = rule["match"].replace("[\\p{L}\\p{M}\\p{N}_.]", "[\\w.]")
            pattern = re.sub(r"\[(?:\\p\{[LMN]\}|_)+\]", r"\\w", pattern)
            yield rule.get("name", ""), re.compile(pattern)


def scopes(line):
    """word: scopes of the rules that match it whole, where it stands."""
    found = {}
    for name, pattern in rules():
        for match in pattern.finditer(line):
            found.setdefault(match.group(0), set()).add(name)
    return found


def test_every_spelling_is_coloured(folder):
    keywords = KEYWORD.findall((ROOT / "compiler/token.def").read_text(encoding="utf-8"))
    check(len(keywords) >= 30, keywords)
    for row in keywords:
        for word in filter(None, row[1:]):
            names = scopes(f" {word} ").get(word, set())
            check(any(name.split(".")[0] in ("keyword", "storage", "constant") for name in names), f"{word}: {names}")
            check(word in scopes(f"0..{word}"), f"{word} behind ..")
            for plain in (f"x.{word}", f"{word}에게", f"a{word}", f"{{{word}: 1}}"):
                names = scopes(plain).get(word, set()) - {"support.type.hanseon"}
                check(not names, f"{word} in {plain}: {names}")


def test_code(folder):
    found = scopes("export fn 경로(host: str) { return 0x1F + 1.5e3 } /// 끝")
    check_equal(found["return"], {"keyword.control.hanseon"})
    check_equal(found["str"], {"support.type.hanseon"})
    check_equal(found["0x1F"], {"constant.numeric.hanseon"})
    check_equal(found["1.5e3"], {"constant.numeric.hanseon"})
    check("fn 경로" in found, found)
    check_in("comment.line.documentation.hanseon", str(found["/// 끝"]))


def test_the_folder_is_whole(folder):
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    (language,), (colours,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    for path in (package["main"], language["configuration"], colours["path"]):
        check((FOLDER / path).exists(), f"{path} is not there")
    check_equal(language["extensions"], [".han", ".한선"])
    check_equal(colours["scopeName"], grammar()["scopeName"])
    configuration = json.loads((FOLDER / "language-configuration.json").read_text(encoding="utf-8"))
    check_equal(configuration["comments"]["lineComment"], "//")


def test_doc_of_a_folder(folder):
    (folder / "a.han").write_text("/// About a.\n\n/// One.\nexport const one = 1\nfn quiet() { return one }\n"
                                  "/// Told.\nfn told() { return quiet() }\n")
    (folder / "나.han").write_text("/// 둘.\nexport fn 둘(가: int = 2) { return 가 }\n")
    code, out, err = run([CROWNYC, "doc", folder])
    check_equal((code, err), (EXIT_OK, ""))
    check(out.index("# a\n") < out.index("# 나\n"), out)
    for part in ("About a.", "export const one = 1", "One.", "fn told()", "export fn 둘(가: int = 2)", "둘."):
        check_in(part, out)
    check("quiet()\n" not in out, "what has no comment and is not exported")
    check_equal(run([CROWNYC, "doc", folder, "-o", folder / "out.md"])[:2], (EXIT_OK, ""))
    check_equal((folder / "out.md").read_text(), out)
    check_in("## 함수", run([CROWNYC, "doc", "--lang", "ko", folder])[1])


def test_doc_of_mistakes(folder):
    (folder / "a.han").write_text("\nexport fn f() { return nothing }\n")
    (folder / "b.han").write_text("export fn (\n")
    code, out, err = run([CROWNYC, "doc", folder, "-o", folder / "out.md"])
    check_equal((code, out), (EXIT_PROGRAM, ""))
    check_in("a.han:2: E", err)
    check_in("b.han:1: E", err)
    check(not (folder / "out.md").exists(), "a page was written")
    check_equal(run([CROWNYC, "doc"])[0], EXIT_USAGE)
    check_equal(run([CROWNYC, "doc", folder / "none.han"])[0], EXIT_PROGRAM)
    check_equal(run([CROWNYC, "lsp", "file"])[0], EXIT_USAGE)


run_all(globals())
