#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/layers_test.py: proves that includes point down the table of layers or stay in their folder, that there is
# no cycle, that each library is included where it belongs, that every header compiles alone, and that the unit tests of
# one layer (make unit LAYERS=net) are linked with all that it needs.

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _tree import ROOT, Report, product_sources  # noqa: E402

# docs/ARCHITECTURE.md, the table of layers.
MAY_INCLUDE = {
    "vm/base": [],
    "vm/code": ["vm/base"],
    "vm/run": ["vm/base", "vm/code"],
    "vm/sys": ["vm/base"],
    "vm/net": ["vm/base", "vm/sys"],
    "vm/http": ["vm/base", "vm/sys", "vm/net"],
    "vm/rpc": ["vm/base", "vm/sys", "vm/net"],
    "vm/store": ["vm/base", "vm/sys"],
    "vm/native": ["vm/base", "vm/code", "vm/run", "vm/sys", "vm/net", "vm/http", "vm/rpc", "vm/store"],
    "compiler": ["vm/base", "vm/code"],
}
MAY_INCLUDE["vm/cli"] = list(MAY_INCLUDE)  # the command line ties everything together; nothing includes it
MAY_INCLUDE["vm"] = ["vm/base", "vm/cli"]  # vm/main.c
LIBRARIES = {
    "utf8proc.h": ["vm/base/text.c", "vm/base/text_unicode.c"],
    "openssl/": ["vm/sys/", "vm/net/"],
    "ares.h": ["vm/net/"],
    "nghttp2/": ["vm/http/"],
    "yaml.h": ["vm/native/"],
    "pcre2.h": ["vm/native/regex.c"],
    "ffi.h": ["vm/native/"],
    "histedit.h": ["vm/cli/line_edit.c"],
}
TEST_HEADER = re.compile(r'^#include "(tests/[^"]+\.h)"', re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def folder(path):
    return str(pathlib.PurePosixPath(path).parent)


def wrong_directions(sources):
    complaints = []
    for path, text in sources.items():
        allowed = MAY_INCLUDE.get(folder(path))
        if allowed is None:
            complaints.append(f"{path}: {folder(path)} is no layer")
            continue
        for own, _ in INCLUDE.findall(text):
            if own and folder(own) != folder(path) and folder(own) not in allowed:
                complaints.append(f"{path}: includes {own}: {folder(path)} may not see {folder(own)}")
            if own.endswith("_internal.h") and folder(own) != folder(path):
                complaints.append(f"{path}: includes {own}, which is for its own folder")
    return complaints


def not_from_the_root(sources):
    return [f"{path}: #include \"{own}\" is not written from the root, or is not there"
            for path, text in sources.items() for own, _ in INCLUDE.findall(text)
            if own and own not in sources and not (ROOT / own).is_file()]


def misplaced_libraries(sources):
    complaints = []
    for path, text in sources.items():
        for _, system in INCLUDE.findall(text):
            for header, places in LIBRARIES.items():
                if system.startswith(header) and not any(path.startswith(place) for place in places):
                    complaints.append(f"{path}: <{system}> belongs to {' and '.join(places)}")
    return complaints


def cycles(sources):
    """Depth first; a file met while it is still open closes a cycle."""
    edges = {path: [own for own, _ in INCLUDE.findall(text) if own in sources] for path, text in sources.items()}
    state, found = {}, []

    def visit(path, trail):
        state[path] = "open"
        for target in edges[path]:
            if state.get(target) == "open":
                found.append(" -> ".join(trail[trail.index(target):] + [target]))
            elif target not in state:
                visit(target, trail + [target])
        state[path] = "closed"

    for path in sorted(edges):
        if path not in state:
            visit(path, [path])
    return found


def not_alone(headers, root):
    compiler = os.environ.get("CC", "cc")
    cflags = subprocess.run(["pkg-config", "--cflags", "openssl", "yaml-0.1", "libcares", "libnghttp2", "libutf8proc"],
                            capture_output=True, text=True).stdout.split()
    complaints = []
    for header in headers:
        result = subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Werror", "-I", root,
                                 *cflags, "-fsyntax-only", "-x", "c", "-include", header, "/dev/null"],
                                cwd=root, capture_output=True, text=True)
        if result.returncode != 0:
            errors = [line for line in result.stderr.splitlines() if "error:" in line]
            complaints.append(f"{header}: {errors[0] if errors else 'the compiler failed'}")
    return complaints


def linked(layer):
    """What the unit tests of one layer are linked with, as make has it: folders of sources, files of tests."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    rule = "--eval=layers-linked: ; @echo $(sort $(dir $(SOURCES))) $(TEST_SOURCES) $(TEST_SUPPORT)"
    finished = subprocess.run(["make", "-s", f"LAYERS={layer}", rule, "layers-linked"], cwd=ROOT, env=environment,
                              capture_output=True, text=True)
    return [path.rstrip("/") for path in finished.stdout.split()]


def unlinked(sources, linked_with):
    """Layers whose files a layer's unit tests come to by includes, and that they are not linked with."""
    seen = {}
    for path, text in sources.items():
        seen.setdefault(folder(path), set()).update(folder(own) for own, _ in INCLUDE.findall(text) if own)
    complaints = []
    for layer, linked in linked_with.items():
        needed, todo = set(), [layer]
        while todo:
            one = todo.pop()
            if one not in needed and one in MAY_INCLUDE:
                needed.add(one)
                todo += seen.get(one, ())
        complaints += [f"LAYERS={layer}: not linked with {one}" for one in sorted(needed - set(linked))]
    return complaints


def unlinked_tests(texts, linked_with):
    """Files beside a layer's unit tests that they include, and that they are not linked with."""
    complaints = []
    for layer, linked in linked_with.items():
        name = layer.removeprefix("vm/")
        headers = {header for path, text in texts.items() if path.startswith(f"tests/unit/{name}/")
                   for header in TEST_HEADER.findall(text)}
        files = {header.removesuffix("h") + "c" for header in headers}
        complaints += [f"LAYERS={name}: not linked with {one}" for one in sorted((files & set(texts)) - set(linked))]
    return complaints


def main():
    report = Report()
    sources = product_sources(".c", ".h", ".def")
    report.rule("includes point down", wrong_directions(sources))
    report.rule("includes are written from the root", not_from_the_root(sources))
    report.rule("libraries stay in their folder", misplaced_libraries(sources))
    report.rule("no include cycle", cycles(sources))
    report.rule("headers compile alone", not_alone([p for p in sources if p.endswith(".h")], str(ROOT)))
    layers = [layer for layer in MAY_INCLUDE if layer in ("compiler",) or re.fullmatch("vm/(?!cli)\\w+", layer)]
    linked_with = {layer: linked(layer.removeprefix("vm/")) for layer in layers
                   if any(folder(path) == layer and path.endswith(".c") for path in sources)}
    tests = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "tests").rglob("*.[ch]")}
    report.rule("a layer's unit tests link", unlinked(sources, linked_with))
    report.rule("with what they share with others", unlinked_tests(tests, linked_with))

    report.must_find("planted: a layer that lacks one", unlinked(sources, {"vm/net": ["vm/net", "vm/base"]}))
    report.must_find("planted: a test that lacks what it shares", unlinked_tests(
        {"tests/unit/http/a_test.c": '#include "tests/unit/net/b.h"\n', "tests/unit/net/b.c": ""}, {"vm/http": []}))
    report.must_find("planted: compiler sees the interpreter",
                     wrong_directions({"compiler/emit.c": '#include "vm/run/interp.h"\n'}))
    report.must_find("planted: base looks up", wrong_directions({"vm/base/map.c": '  # include "vm/code/opcode.h"\n'}))
    report.must_find("planted: foreign internals",
                     wrong_directions({"vm/http/h1.c": '#include "vm/net/loop_internal.h"\n'}))
    report.must_find("planted: short include", not_from_the_root({"vm/base/map.c": '#include "map.h"\n'}))
    report.must_find("planted: OpenSSL in http", misplaced_libraries({"vm/http/x.c": "#include <openssl/ssl.h>\n"}))
    report.must_find("planted: cycle", cycles({"vm/base/a.h": '#include "vm/base/b.h"\n', "vm/base/b.h":
                                               '#include "vm/base/c.h"\n', "vm/base/c.h": '#include "vm/base/a.h"\n'}))
    with tempfile.TemporaryDirectory() as scratch:
        pathlib.Path(scratch, "lonely.h").write_text("static inline size_t twice(size_t n) { return 2 * n; }\n")
        report.must_find("planted: header needs another", not_alone(["lonely.h"], scratch))
    report.end()


main()
