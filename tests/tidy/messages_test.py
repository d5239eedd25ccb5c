#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/tidy/messages_test.py: proves that every message of a native has a Korean text: each format that native_fail
# gets and that has words is a row of vm/run/native_message.def; each row is used, stands in byte order, and takes the
# same conversions in both languages.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from _tree import ROOT, Report  # noqa: E402

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CHARACTER = re.compile(r"'(?:[^'\\]|\\.)+'")
CONVERSION = re.compile(r"%(?:\.\*|\.\d+)?(?:ll|z)?[a-z%]")
CALLS = (("native_fail", 2), ("native_fail_data", 3), ("vm_text", 1), ("json_write_refuse", 2), ("client_bad_url", 0))
# Messages that are no literals, file by file. They come from a table of their own with both languages (a), a part that
# PARTS looks at (b), another function of CALLS (c).
ELSEWHERE = {
    "vm/native/json_write.c": ("format",),  # c
    "vm/native/native_fetch.c": ("fault",),  # c: client_bad_url
    "vm/native/native_http.c": ("fault",),  # c: client_bad_url
    "vm/native/native_jwt.c": ("message",),  # b
    "vm/native/native_time.c": ("expected",),  # b
    "vm/native/native_url.c": ("fault",),  # b
    "vm/run/deadline.c": ("text", "vm_message_text(MESSAGE_TASK_TIME, vm_is_korean(vm))"),  # a
    "vm/run/native_invoke.c": ("format",),  # c: native_fail itself
    "vm/run/task_join.c": ("vm_message_text(MESSAGE_TASK_ITEM, vm_is_korean(call->vm))",
                           "vm_message_text(message, vm_is_korean(call->vm))"),  # a
}


def arguments(text, start):
    """The arguments of the call whose `(` ends at `start`."""
    depth, current, found, at = 1, "", [], start
    while depth:
        token = (LITERAL if text[at] == '"' else CHARACTER).match(text, at) if text[at] in "\"'" else None
        if token:
            current, at = current + token.group(0), token.end()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[at], 0)
        if text[at] == "," and depth == 1:
            found, current = found + [current.strip()], ""
        elif depth:
            current += text[at]
        at += 1
    return found + [current.strip()]


def formats(text):
    """(offset, format or None, what stands there) for every message in a source."""
    for name, index in CALLS:
        for match in re.finditer(rf"\b{name}\(", text):
            given = arguments(text, match.end())
            if len(given) <= index or given[0].startswith(("struct ", "const char")):
                continue
            pieces = LITERAL.findall(given[index])
            yield match.start(), "".join(pieces) if pieces else None, LITERAL.sub("", given[index]).strip()


# Parts of messages that other places make, and natives look up with vm_text.
PARTS = {
    "vm/base/civil_text.c": re.compile(r"^(?:an? |the |two |four |'|nothing |at most |T |Z or|d, h)"),
    "vm/base/url.c": re.compile(r"^(?:an? |two |the |')"),
    "vm/native/native_jwt.c": re.compile(r"^(?!.*%|any part)(?:\S+ ){3,}"),
}


def parts(path, text):
    joined = re.sub(r'"\s+"', "", code_without_comments(text))
    return {part for part in LITERAL.findall(joined) if PARTS[path].search(part)}


def code_without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def has_words(text):
    text = re.sub(r"^[a-z_]+(\.[a-z_]+)?(?=:|$)", "", text)
    return bool(re.search(r"[A-Za-z]", re.sub(r"[A-Z_]{3,}", "", CONVERSION.sub("", text))))


def rows():
    text = (ROOT / "vm/run/native_message.def").read_text(encoding="utf-8")
    return re.findall(r'^NATIVE_MESSAGE\("((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\)', text, re.M)


def missing(sources, known):
    complaints, used = [], set()
    for path, text in sources.items():
        for offset, message, rest in formats(text):
            place = f"{path}:{text.count(chr(10), 0, offset) + 1}"
            if message is None:
                if rest not in ELSEWHERE.get(path, ()):
                    complaints.append(f"{place}: a message that is no literal: {rest}")
                continue
            used.add(message)
            if rest:
                complaints.append(f"{place}: a message with `{rest}` in it")
            if has_words(message) and message not in known:
                complaints.append(f'{place}: no row in native_message.def: "{message}"')
    return complaints, used


def table_faults(table, used):
    complaints = []
    order = [english.replace('\\"', '"').encode() for english, _ in table]
    if order != sorted(set(order)):
        complaints.append("rows are not in byte order, or one stands twice")
    for english, korean in table:
        if CONVERSION.findall(english) != CONVERSION.findall(korean):
            complaints.append(f"conversions differ: {english} / {korean}")
        if not re.search(r"[가-힣]", korean):
            complaints.append(f"not Korean: {korean}")
        if english not in used:
            complaints.append(f"nothing says this: {english}")
    return complaints


def main():
    report = Report()
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
               for folder in ("vm/native", "vm/run", "vm/http") for path in sorted((ROOT / folder).glob("*.c"))}
    table = rows()
    known = {english for english, _ in table}
    complaints, used = missing(sources, known)
    for path in PARTS:
        found = parts(path, (ROOT / path).read_text(encoding="utf-8"))
        complaints += [f'{path}: no row in native_message.def: "{part}"' for part in sorted(found - known)]
        used |= found
    report.rule("every message of a native has a row", complaints)
    report.rule("rows are in order, agree and are used", table_faults(table, used))
    report.rule("rows were read at all", [] if len(table) > 100 else [f"{len(table)} rows"])
    report.must_find("planted: no row", missing({"x.c": 'native_fail(call, err, "x.y: a %s (", (f(1, 2)));'}, set())[0])
    report.must_find("planted: no literal", missing({"x.c": 'native_fail(call, err, why(1), 2);'}, set())[0])
    report.must_find("planted: a variable", missing({"x.c": 'native_fail(call, err, fault);'}, set())[0])
    report.must_find("planted: an upstream", missing({"x.c": 'return client_bad_url("no good", fault_out);'}, set())[0])
    report.must_find("planted: JSON", missing({"x.c": 'json_write_refuse(w, err, "no %s", a);'}, set())[0])
    report.rule("planted: no words", missing({"x.c": 'native_fail(call, err, "%s: %s (BYTES: %d)", a, b);'}, set())[0])
    report.must_find("planted: conversions", table_faults([("a %d %s", "가 %s %d")], {"a %d %s"}))
    report.must_find("planted: order and use", table_faults([("b", "나"), ("a", "가")], {"b"}), 2)
    report.end()


main()
