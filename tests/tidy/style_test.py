#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/style_test.py: proves what can be seen of the style by looking: heads of files, sizes, banned calls, malloc
# behind its door, no mutable state at file level, Linux in its two folders, and static names that fit into one
# translation unit.

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _tree import ROOT, Report, code_only, files, line_of, product_sources, read  # noqa: E402

LINES_MAX = 900
COLUMNS_MAX = 120
BANNED = re.compile(r"(?<![\w.>])(strcpy|strcat|strncat|sprintf|vsprintf|atoi|atol|atoll|atof|strtok|gets|alloca|mktemp"
                    r"|tmpnam|rand|srand|setjmp|longjmp)\s*\(")
RAW_MEMORY = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|strdup|strndup|asprintf|vasprintf"
                        r"|aligned_alloc|posix_memalign)\s*\(")
LINUX_HEADER = re.compile(r"#\s*include\s*<((?:linux/|asm/)[^>]*|sys/(?:epoll|eventfd|timerfd|signalfd|inotify|prctl"
                          r"|sendfile|random|auxv|syscall|memfd|sysinfo|vfs|capability)\.h|sched\.h)>")
LINUX_PLACES = re.compile(r"^vm/sys/|^vm/net/loop_\w+\.[ch]$")
STATIC_NAME = re.compile(r"^static\s+(?!inline\b.*;)[^;{}=()\[]*?\b(\w+)\s*(?:\(|\[|=|;)", re.M)
# Mutable on purpose: the counters of the fault plan (vm/base/mem.c says why).
MUTABLE_ALLOWED = {("vm/base/mem.c", "mem_faults")}


def columns(line):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line if not unicodedata.combining(c))


def bad_heads(texts):
    complaints = []
    for path, text in texts.items():
        lines = text.splitlines()
        if lines and lines[0].startswith("#!"):
            lines = lines[1:]
        head = "\n".join(lines[:6])
        if not lines or "SPDX-License-Identifier: MIT" not in lines[0]:
            complaints.append(f"{path}: the first line is not the SPDX line")
        elif f"{path}: " not in head and f"{path} -- " not in head:
            complaints.append(f"{path}: the head does not open with \"{path}: purpose\"")
    return complaints


def bad_shapes(texts):
    complaints = []
    for path, text in texts.items():
        lines = text.splitlines()
        if len(lines) > LINES_MAX:
            complaints.append(f"{path}: {len(lines)} lines, {LINES_MAX} at most")
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                complaints.append(f"{path}:{number}: a tab")
            if line != line.rstrip():
                complaints.append(f"{path}:{number}: blanks at the end")
            # Tables are laid out by hand: one row is one line.
            if columns(line) > COLUMNS_MAX and not path.endswith(".def"):
                complaints.append(f"{path}:{number}: {columns(line)} columns, {COLUMNS_MAX} at most")
        if text and not text.endswith("\n"):
            complaints.append(f"{path}: no line end at the end")
    return complaints


def calls(pattern, texts, excused=()):
    complaints = []
    for path, text in texts.items():
        if path in excused:
            continue
        code = code_only(text)
        complaints += [f"{path}:{line_of(code, m.start())}: {m.group(1)}" for m in pattern.finditer(code)]
    return complaints


def linux_elsewhere(texts):
    return [f"{path}: <{name}> belongs to vm/sys and vm/net/loop_*.c"
            for path, text in texts.items() if not LINUX_PLACES.search(path) for name in LINUX_HEADER.findall(text)]


def twin_names(texts):
    """Static names of two .c files that would clash when one file includes all."""
    owner, complaints = {}, []
    for path, text in texts.items():
        for name in sorted(set(STATIC_NAME.findall(code_only(text)))):
            if name in owner:
                complaints.append(f"{path}: static {name} is also in {owner[name]}")
            owner.setdefault(name, path)
    return complaints


def mutable_names(object_file):
    """Symbols of an object file in sections that can be written to. Constants with pointers lie in .data.rel.ro."""
    listing = subprocess.run(["objdump", "-t", object_file], capture_output=True, text=True, check=True).stdout
    names = []
    for line in listing.splitlines():
        match = re.match(r"^[0-9a-f]+ (.{7}) (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(\S+)$", line)
        if not match or "O" not in match.group(1):
            continue
        section = match.group(2)
        if re.match(r"^(\.data(?!\.rel\.ro)|\.bss|\.tbss|\.tdata|\*COM\*)", section):
            names.append(match.group(4))
    return names


def mutable_state(paths, root, scratch):
    complaints = []
    compiler = os.environ.get("CC", "cc")
    cflags = subprocess.run(["pkg-config", "--cflags", "openssl", "yaml-0.1", "libcares", "libnghttp2", "libutf8proc"],
                            capture_output=True, text=True).stdout.split()
    for path in paths:
        # The debug build has just made this object; without it (a test run by hand), it is compiled here.
        object_file = pathlib.Path(os.environ.get("BUILD", "build/debug"), "objects", path).with_suffix(".o")
        if root != str(ROOT) or not object_file.exists():
            object_file = pathlib.Path(scratch, "look.o")
            result = subprocess.run([compiler, "-std=gnu11", "-D_GNU_SOURCE=", "-O0", "-fPIE", "-DCY_DEBUG", "-I", root,
                                     *cflags, "-c", path, "-o", str(object_file)],
                                    cwd=root, capture_output=True, text=True)
            if result.returncode != 0:
                complaints.append(f"{path}: does not compile")
                continue
        complaints += [f"{path}: {name} is mutable" for name in mutable_names(str(object_file))
                       if (path, name.split(".")[0]) not in MUTABLE_ALLOWED]
    return complaints


def main():
    report = Report()
    sources = product_sources(".c", ".h")
    c_files = {path: text for path, text in sources.items() if path.endswith(".c")}
    headed = {str(p): read(p) for p in files(".c", ".h", ".def", ".py", ".sh")}
    report.rule("files open with SPDX and purpose", bad_heads(headed))
    report.rule("sizes, tabs, columns", bad_shapes({str(p): read(p) for p in files(".c", ".h", ".def", ".py")}))
    report.rule("banned calls", calls(BANNED, sources))
    report.rule("malloc behind vm/base/mem.c", calls(RAW_MEMORY, sources, excused=("vm/base/mem.c",)))
    report.rule("Linux-only headers", linux_elsewhere(sources))
    report.rule("static names are unique", twin_names(c_files))
    with tempfile.TemporaryDirectory() as scratch:
        report.rule("no mutable state at file level", mutable_state(c_files, str(ROOT), scratch))
        pathlib.Path(scratch, "planted.c").write_text(
            "static int counter; int shared = 3; static const char *const fixed[] = {\"a\"}; const int number = 4;\n"
            "const char *planted(void) { static long calls; return fixed[counter++ + calls++]; }\n")
        report.must_find("planted: three mutable, two constant", mutable_state(["planted.c"], scratch, scratch), 3)

    report.must_find("planted: no SPDX", bad_heads({"vm/base/a.c": "/* vm/base/a.c: x */\n"}))
    report.must_find("planted: wrong path",
                     bad_heads({"vm/a.c": "/* SPDX-License-Identifier: MIT\n *\n * vm/b.c: x\n */\n"}))
    report.must_find("planted: long file", bad_shapes({"a.c": "x\n" * 901}))
    report.must_find("planted: tab", bad_shapes({"a.c": "\tx\n"}))
    report.must_find("planted: 121 columns", bad_shapes({"a.c": "가" * 60 + "x\n", "b.c": "x" * 120 + "\n"}))
    report.must_find("planted: banned",
                     calls(BANNED, {"a.c": "/* atoi(x) */ s = \"gets(\"; strcpy(a, b); my_atoi(x);\n"}))
    report.must_find("planted: malloc",
                     calls(RAW_MEMORY, {"a.c": "mem_free(x); free(x); p->free(x); OPENSSL_free(x);\n"}))
    report.must_find("planted: epoll in http", linux_elsewhere({"vm/http/a.c": "#include <sys/epoll.h>\n",
                                                                "vm/net/loop_epoll.c": "#include <sys/epoll.h>\n"}))
    report.must_find("planted: twins", twin_names({"a.c": "static int skip(void);\nstatic int skip(void) {}\n",
                                                   "b.c": "static const char *skip(int x)\n{\n}\n"}))
    report.end()


main()
