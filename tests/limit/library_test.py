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
