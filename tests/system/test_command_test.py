#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/test_command_test.py: proves that crownyc test runs each test block once, in an instance of its own, goes
# on behind one that fails, is stopped or can never end, counts, and filters.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, check_equal, check_in, environment, run, \
    run_all  # noqa: E402

SOURCE = """
import "task"
import "test"
let n = 0
fn add(a, b) { n = n + 1 return a + b }
fn loops() { loop { } }
test "adds" { test.equal(add(1, 2), 3) test.equal(n, 1) }
시험 "서로 모른다" { add(1, 1) 시험.같음(n, 1) task.sleep(1) }
test "fails" { test.equal(add(1, 2), "3", "sum") }
test "near" { test.near(0.1 + 0.2, 0.3) test.fails(fn () { return [1][5] }, "index") }
test "stopped" { spawn loops() }
test "after" { }
"""


def tests(*arguments):
    return run([CROWNYC, "test", *map(str, arguments)], env=environment())


def test_every_test_runs(folder):
    source = folder / "t.han"
    source.write_text(SOURCE)
    code, out, err = tests(source)
    check_equal((code, err), (EXIT_PROGRAM, ""), "exit code and stderr")
    lines = out.splitlines()
    names = [line for line in lines if not line.startswith(" ")]
    check_equal(names, ['ok   "adds"', 'ok   "서로 모른다"', 'FAIL "fails"', 'ok   "near"', 'FAIL "stopped"',
                        'ok   "after"', "4 passed, 2 failed"], "lines")
    check_in('     test: sum: expected "3", found 3', out, "why")
    check_in('at test "fails" (t.han:9:16)', out, "where")
    check_in("the CPU allowance is used up", out, "the stop")


def test_filter_and_files(folder):
    one, two = folder / "one.han", folder / "two.han"
    one.write_text(SOURCE)
    two.write_text('test "adds too" { }\nexport fn main(args) { print("never") }\n')
    check_equal(tests(one, two, "--filter", "adds")[:2],
                (EXIT_OK, f'{one}\nok   "adds"\n{two}\nok   "adds too"\n2 passed, 0 failed\n'), "both files")
    code, _, err = tests(one, "--filter", "nowhere")
    check_equal(code, EXIT_USAGE, "a filter that nothing has")
    check_in("no test has this in its name: nowhere", err, "stderr")


def test_what_cannot_run_is_a_failure(folder):
    bad, waits = folder / "bad.han", folder / "waits.han"
    bad.write_text('test "a" { nothing() }\ntest "a" { }\n')
    code, out, err = tests(bad)
    check_equal((code, out), (EXIT_PROGRAM, "0 passed, 0 failed\n"), "a file with mistakes")
    check_in('`test "a"` is already declared in line 1', err, "a name that stands twice")
    check_in("unknown name `nothing`", err, "inside a test")
    waits.write_text('import "test"\nlet t = 1 / 0\ntest "x" { }\n')
    code, out, err = tests(waits)
    check_equal((code, out), (EXIT_PROGRAM, 'FAIL "x"\n0 passed, 1 failed\n'), "an initialiser that fails")
    check_in("division", err, "why")
    check_equal(tests(folder / "none.han")[0], EXIT_PROGRAM, "no such file")
    check_equal(tests()[0], EXIT_USAGE, "no file")


CIRCLE = """
import "task"
fn waits(box) { return task.wait(box.value) }
test "makes a loop" { task.sleep(0) }
test "circle" {
    let a = ref(nil)
    let b = ref(nil)
    a.value = spawn waits(b)
    b.value = spawn waits(a)
    task.wait(a.value)
}
test "after" { }
"""


def test_tasks_that_wait_for_one_another(folder):
    source = folder / "circle.han"
    source.write_text(CIRCLE)
    for filters, ran in ((), 2), (("--filter", "c"), 0):
        code, out, err = tests(source, *filters)
        check_equal((code, err), (EXIT_PROGRAM, ""), "exit code and stderr")
        check_in('FAIL "circle"\n     value: task.wait: the tasks would wait for one another, and none could go on\n'
                 "       at waits (circle.han:3:24)\n", out, "why and where")
        check_in(f"{ran} passed, 1 failed", out, "counts")


def test_a_stop_has_its_place(folder):
    source = folder / "stops.han"
    source.write_text('test "a" {\n    loop { }\n}\n')
    for language, says in ("en", "the CPU allowance is used up (limit CPU_BURST_MS: 1000 ms)"), ("ko", "CPU_BURST_MS"):
        code, out, err = tests(source, "--lang", language)
        check_equal((code, err), (EXIT_PROGRAM, ""), "exit code and stderr")
        check_in(says, out, "the stop and its limit")
        check_in('test "a" (stops.han:2:5)', out, "where")


run_all(globals())
