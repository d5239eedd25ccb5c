#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/library_test.py: proves that limits of the standard library hold at their value, and that one past it ends
# in an error that a program can catch.
#
# Values come from vm/base/limits.def, so that a changed row is tested at its new place.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, ROOT, check_equal, run, run_all  # noqa: E402

ROW = re.compile(r"^LIMIT\((\w+),\s*([^,]+),", re.M)
LIMITS = {name: eval(value, {"INT32_MAX": 2**31 - 1})  # noqa: S307: our own table
          for name, value in ROW.findall((ROOT / "vm/base/limits.def").read_text(encoding="utf-8"))}


def answers(folder, modules, *expressions):
    """What each expression gives, or "kind: message" of its error."""
    lines = [f'import "{module}"' for module in modules]
    lines.append("export fn main(args) {")
    lines += [f'try {{ print({one}) }} catch e {{ print("\\(e.kind): \\(e.message)") }}' for one in expressions]
    (folder / "main.han").write_text("\n".join(lines) + "\n}\n")
    code, out, err = run([CROWNYC, "run", folder / "main.han"], cwd=folder)
    check_equal(code, 0, f"exit code ({err[:300]})")
    return out.splitlines()


def at_and_past(folder, row, modules, expression, at_answer):
    """`expression` has N where the count stands."""
    value = LIMITS[row]
    at, past = answers(folder, modules, *(expression.replace("N", str(value + more)) for more in (0, 1)))
    check_equal(at, str(at_answer), f"at {row}")
    check_equal("limit: " in past and row in past, True, f"past {row}: {past}")


def test_url_limits(folder):
    """PARSED_URL_BYTES, QUERY_PAIRS"""
    bytes_max = LIMITS["PARSED_URL_BYTES"]
    at_and_past(folder, "PARSED_URL_BYTES", ["url", "text"], 'len(url.parse(text.repeat("a", N)).path)', bytes_max)
    at_and_past(folder, "PARSED_URL_BYTES", ["url", "text"], 'len(url.build({path: text.repeat("a", N)}))', bytes_max)
    pairs = LIMITS["QUERY_PAIRS"]
    at_and_past(folder, "QUERY_PAIRS", ["url", "text"], 'len(url.parse_query(text.repeat("a&", N)).a)', pairs)


PAST = {  # a native past its limit: (modules, expression, row)
    "list.fill": ("list", "list.fill(0, (1 << 28) + 1)", "LIST_ITEMS"),
    "list.from_range": ("list", "list.from_range(0..(1 << 28) + 1)", "LIST_ITEMS"),
    "text.repeat": ("text", 'text.repeat("ab", (1 << 29) + 1)', "STRING_BYTES"),
    "text.repeat, beyond 64 bits": ("text", 'text.repeat("abcd", 1 << 62)', "STRING_BYTES"),
    "text.pad_start": ("text", 'text.pad_start("a", 1 << 40)', "STRING_BYTES"),
    "text.pad_end": ("text", 'text.pad_end("a", 1 << 40)', "STRING_BYTES"),
    "text.join": ("list, text", 'text.join(list.fill(text.repeat("a", 1 << 20), 1025), "")', "STRING_BYTES"),
    "text.replace": ("text", 'text.replace(text.repeat("a", 1 << 20), "a", text.repeat("b", 2000))', "STRING_BYTES"),
    "json.parse, depth": ("json, text", 'json.parse(text.repeat("[", 513))', "JSON_DEPTH"),
    "json.parse, number": ("json, text", 'json.parse(text.repeat("1", (1 << 20) + 1))', "JSON_NUMBER_BYTES"),
    "json.parse, bytes": ("json, text", 'json.parse(text.repeat(" ", (64 << 20) + 1))', "JSON_BYTES"),
    "json.write, depth": ("json", "json.write(nested(513))", "JSON_DEPTH"),
    "json.write, bytes": ("json, text", 'json.write(text.repeat("a", 64 << 20))', "JSON_BYTES"),
    "yaml.parse": ("yaml, text", 'yaml.parse(text.repeat("[", 2000))', "YAML_DEPTH"),
    "regex.compile": ("regex, text", 'regex.compile(text.repeat("a", 65537))', "REGEX_PATTERN_BYTES"),
    "url.parse": ("url, text", 'url.parse(text.repeat("a", 1 << 20))', "PARSED_URL_BYTES"),
    "http.respond": ("http, text", 'http.respond(200, text.repeat("a", 65 << 20))', "HTTP_RESPOND_BODY_BYTES"),
}


def test_messages_name_the_limit_and_its_value(folder):
    """In both languages. LIST_ITEMS, STRING_BYTES, JSON_DEPTH and others."""
    for language in ("en", "ko"):
        for native, (modules, expression, row) in PAST.items():
            lines = [f'import "{module}"' for module in modules.split(", ")]
            lines += ["fn nested(depth) { let all = [] for i in 0..depth { all = [all] } return all }",
                      f"export fn main(args) {{ try {{ let made = {expression} print(kind_of(made)) }}",
                      '    catch e { print("\\(e.kind): \\(e.message)") } }']
            (folder / "main.han").write_text("\n".join(lines) + "\n")
            code, out, err = run([CROWNYC, "run", "--lang", language, folder / "main.han"], cwd=folder)
            check_equal((code, err), (0, ""), f"exit code and stderr of {native}")
            check_equal(row in out and str(LIMITS[row]) in out, True, f"{native} past {row}: {out[:300]}")


def test_hash_bytes(folder):
    """HASH_BYTES"""
    data = 'text.repeat(text.repeat("a", 4096), N / 4096) + text.repeat("a", N % 4096)'
    at_and_past(folder, "HASH_BYTES", ["hash", "text"], f"len(hash.sha1({data}))", 40)


def test_random_bytes(folder):
    """RANDOM_BYTES"""
    at_and_past(folder, "RANDOM_BYTES", ["random"], "len(random.bytes(N))", LIMITS["RANDOM_BYTES"])


def test_jwt_bytes(folder):
    """JWT_BYTES: at it the token is judged, and is none."""
    call = 'jwt.verify(text.repeat("a", N), "", {algorithms: ["HS256"]})'
    at_and_past(folder, "JWT_BYTES", ["jwt", "text"], call, "token: jwt.verify: expected three parts with '.' between")


run_all(globals())
