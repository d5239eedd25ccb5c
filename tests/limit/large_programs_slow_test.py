#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/large_programs_slow_test.py: the rest of large_programs.py, and that compiling takes time in proportion:
# twice as many functions may not take four times as long.

import resource

import large_programs as large

passed, failed = large.run(large.PROGRAMS)


def compile_once(text):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    large.compile_source("half", text)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def user_seconds(count):
    """CPU, not time on the wall: others use the machine too."""
    text = large.many(count, "fn f{i}(a) {{ let r = [a, {i}] return r }}\n") + large.main("print(f0(1))")
    return min(compile_once(text) for _ in range(3))


half, whole = user_seconds(35_000), user_seconds(70_000)
good = whole < 4 * half
print(f"{'ok' if good else 'FAILED'}: 35,000 functions in {half:.2f} s, 70,000 in {whole:.2f} s")
large.finish(passed + good, failed + (not good))
