#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/stdlib_test.py: proves that every example of docs/STDLIB.md is true: `A → B` gives B, in value and in
# text, `A → fails KIND` fails with that kind, and a line without an arrow compiles. Both spellings of every name are
# known.
#
# One program for each module, so that a mistake names its neighbourhood and no more.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, ROOT, check, check_equal, run, run_all  # noqa: E402

ENTRY = re.compile(r"^### `([^`]+)` · `([^`]+)`$")
ARROW = " → "
KINDS = {"nil", "bool", "int", "float", "str", "list", "map", "range", "record", "function", "ref", "handle", "opaque"}


def entries():
    """{module: [(English name, Korean name, [example lines])]} in the order of the page; "" is the prelude."""
    modules, inside = {}, False
    for line in (ROOT / "docs/STDLIB.md").read_text(encoding="utf-8").splitlines():
        found = ENTRY.match(line)
        if found:
            english, korean = found.groups()
            module = english.rpartition(".")[0]
            modules.setdefault(module, []).append((english, korean, []))
        elif line.startswith("```"):
            inside = not inside
        elif inside:
            modules[module][-1][2].append(line)
    return modules


def literal(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def program(modules, lines):
    head = "".join(f'import "{module}"\n' for module in sorted(modules) if module and module not in KINDS)
    body, shown = [], []
    for number, (english, line) in enumerate(lines):
        expression, arrow, result = line.partition(ARROW)
        place = literal(f"{english}: {line}")
        if not arrow:
            shown.append(f"fn shown{number}() {{ {line} }}\n")
        elif result.startswith("fails "):
            body.append(f'fn check{number}() {{ try {{ let _ = {expression} print({place}, "did not fail") }} '
                        f'catch e {{ if e.kind != "{result[6:]}" {{ print({place}, e.kind, e.message) }} }} }}\n')
        else:
            body.append(f"fn check{number}() {{ try {{ let got = {expression} let wanted = {result} "
                        f"if got != wanted or str(got) != str(wanted) {{ print({place}, \"gives\", got) }} }} "
                        f"catch e {{ print({place}, e.kind, e.message) }} }}\n")
    calls = "".join(f"    {re.match('fn (check[0-9]+)', text).group(1)}()\n" for text in body)
    return head + "".join(body + shown) + "export fn main(args) {\n" + calls + '    print("done", ' \
        + str(len(body)) + ")\n}\n"


def test_examples_are_true(folder):
    wrong, modules = [], entries()
    check(sum(len(rows) for rows in modules.values()) > 40, "docs/STDLIB.md lists hardly anything")
    for module, rows in modules.items():
        lines = [(english, line) for english, _, examples in rows for line in examples]
        source = folder / f"examples_{module or 'prelude'}.han"
        source.write_text(program(modules, lines), encoding="utf-8")
        code, out, err = run([CROWNYC, "run", "--allow", "write,run,ffi", source], cwd=folder)
        said = out.splitlines()
        if code != EXIT_OK or not said or not said[-1].startswith("done "):
            wrong.append(f"module {module or 'prelude'}: exit code {code}\n{out}{err}")
        wrong += said[:-1]
    check(not wrong, "\n".join(wrong))


def test_a_wrong_example_is_seen(folder):
    """The check itself: three examples that are not true, one that is."""
    lines = [("len", "len(\"a\")" + ARROW + "2"), ("len", "len(\"a\")" + ARROW + "fails type"),
             ("int", "int(2.5)" + ARROW + "2.0"), ("int", "int(2.5)" + ARROW + "2")]
    source = folder / "wrong.han"
    source.write_text(program({}, lines), encoding="utf-8")
    code, out, _ = run([CROWNYC, "run", source], cwd=folder)
    check_equal((code, len(out.splitlines())), (EXIT_OK, 4), f"exit code and lines of {out!r}")


def test_both_spellings_are_known(folder):
    modules = entries()
    head = "".join(f'import "{module}"\n' for module in sorted(modules) if module and module not in KINDS)
    names = [name for rows in modules.values() for row in rows for name in row[:2]]
    source = folder / "names.han"
    source.write_text(head + "export fn main(args) {\n    let all = [\n" + "".join(f"        {n},\n" for n in names)
                      + "    ]\n    print(len(all))\n}\n", encoding="utf-8")
    code, out, err = run([CROWNYC, "compile", source, "-o", folder / "names.toau"], cwd=folder)
    check_equal((code, out, err), (EXIT_OK, "", ""), "compiling all names")


run_all(globals())
