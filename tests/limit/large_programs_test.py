#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/large_programs_test.py: proves that there are no hidden limits: 100,000 strings, 70,000 functions, 200
# levels, chains of 100,000 operands. Each is compiled, saved, reloaded and run. Past a limit that there is, the message
# says its name and value. The slower ones are in large_programs_slow_test.py.

import large_programs as large

PAST = {
    "PROGRAM_NAME_BYTES": (4096, "let " + "n" * 4097 + " = 1\n" + large.main("")),
    "FUNCTION_PARAMS": (255, "fn f(" + ", ".join(f"p{i}" for i in range(256)) + ") { }\n" + large.main("")),
    "RECORD_FIELDS": (255, "record R { " + ", ".join(f"f{i}" for i in range(256)) + " }\n" + large.main("")),
    "FUNCTION_LOCALS": (65535, large.main(large.many(65_536, "let v{i} = 1\n"))),
    "FUNCTION_CODE_BYTES": (4 << 20, large.main("let x = 1\n" + "x = x * 3 - 7\n" * 400_000)),
    "DEFER_DEPTH": (4, large.main("defer { " * 5 + "print(1)" + " }" * 5)),
    "NESTING_DEPTH": (1024, large.main("print(" + "(" * 1100 + "1" + ")" * 1100 + ")")),
}

passed, failed = large.run(["deep", "long_elif", "long_sum", "strings", "native_calls", "functions"])
for name, (value, text) in PAST.items():
    done, _ = large.compile_source(name.lower(), text)
    # The nesting is said in words of its own; every other limit by its name.
    good = done.returncode == 1 and str(value) in done.stderr and (name in done.stderr or "E0028" in done.stderr)
    print(f"{'ok' if good else 'FAILED'}: past {name}")
    if not good:
        print(f"  exit code {done.returncode}, stderr {done.stderr[:600]!r}")
    passed, failed = passed + good, failed + (not good)
large.finish(passed, failed)
