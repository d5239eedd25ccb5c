# SPDX-License-Identifier: MIT
#
# tests/limit/large_programs.py: sources that are large in one way each, what they print, and how to run them.
#
# In:   a name of PROGRAMS. Out: compiled, saved, reloaded and run, written as RPN text and read back to equal bytes;
#       the time of compiling.
# Not here: which of them are quick (large_programs_test.py, large_programs_slow_test.py).

import os
import pathlib
import subprocess
import sys
import time

CROWNYC = os.environ["CROWNYC"]


def main(body):
    return f"export fn main(args) {{\n{body}\n}}\n"


def many(count, form):
    return "".join(form.format(i=i) for i in range(count))


def chain(first, link, count):
    return first + link * count


def strings():
    return main("let xs = [" + many(100_000, '"s{i}",\n') + "]\nprint(len(xs), xs[99999])")


def native_calls():
    """More calls of natives than an opcode can name natives."""
    return main("let n = 0\n" + many(70_000, 'n = n + len("{i}")\n') + "print(n)")


def functions():
    return many(70_000, "fn f{i}(a) {{ return a + {i} }}\n") + main("print(f0(1), f65536(2), f69999(3))")


def functions_that_call():
    first = "fn f0(a) { return a }\n"
    rest = "".join(f"fn f{i}(a) {{ let r = f{i - 1}(a) return r + 1 }}\n" for i in range(1, 70_000))
    return first + rest + main("print(f69999(0))")


def long_sum():
    return main("let a = len(args) + 1\nprint(" + chain("a", " + a", 100_000) + ")")


def long_text():
    return main('let a = str(1)\nlet s = ' + chain('"x"', " + a", 100_000) + "\nprint(len(s))")


def long_logic():
    return main("let a = len(args) == 0\nprint(" + chain("a", " and a", 100_000) + ", "
                + chain("a", " or a", 100_000) + ")")


def long_path():
    return main("let c = ref(1)\nc.value = c\nprint(kind_of(" + chain("c", ".value", 100_000) + "))\nc.value = nil")


def long_elif():
    arms = many(5000, " elif n == {i} {{ return \"r{i}\" }}\n")
    return ('fn pick(n) {\n if n == -1 { return "none" }\n' + arms + ' else { return "other" }\n}\n'
            + main("print(pick(0), pick(4999), pick(5000))"))


def long_match():
    arms = many(20_000, " {i} {{ return \"r{i}\" }}\n")
    return ('fn pick(n) { match n {\n' + arms + ' else { return "other" } } }\n'
            + main("print(pick(0), pick(19999), pick(20000))"))


def jumps():
    """A loop and a branch whose targets lie more than a megabyte away."""
    body = "x = x * 3 - 7\n" * 120_000
    return ("fn f(n) {\n let x = n\n while x < 3 {\n if x == 100 {\n" + body + "}\n x = x + 1\n }\n return x\n}\n"
            + main("print(f(len(args)))"))


def deep():
    levels = 200
    nest = lambda open_, middle, close, count=levels: open_ * count + middle + close * count
    return "fn id(x) { return x }\n" + main("\n".join([
        nest("if len(args) == 0 {\n", 'print("in")\n', "}\n"),
        "print(" + nest("(", "1", ")") + ")",
        "print(len(" + nest("[", "", "]") + "))",
        "print(len(" + nest("{a: ", "1", "}") + "))",
        "print(" + nest("id(", "2", ")") + ")",
        "print(" + nest("!", "true", "") + ")",
        "print(" + nest('"\\(', "3", ')"', 100) + ")",  # two levels each: the text, and the value in it
    ]))


def variables():
    return main(many(60_000, "let v{i} = {i}\n") + "print(" + " + ".join(f"v{i}" for i in range(60_000)) + ")")


def captures():
    return main(many(30_000, "let v{i} = {i} + len(args)\n") + "let f = fn () { return "
                + " + ".join(f"v{i}" for i in range(30_000)) + " }\nprint(f())")


def closures():
    return main("let a = 1\n" + many(30_000, "let c{i} = fn (x) {{ return x + a + {i} }}\n")
                + "print(c0(1), c29999(1))")


def module_variables():
    return many(70_000, "let g{i} = [{i}]\n") + main("print(g0, g69999)")


def records():
    return many(60_000, "record R{i} {{ a: int, b = {i} }}\n") + main("print(R0(a: 1), R59999(a: 2))")


def statements():
    return main("let a = []\n" + "a = a + [1]\n" * 100_000 + "print(len(a))")


def map_entries():
    return main("let m = {" + ", ".join(f"k{i}: {i}" for i in range(50_000)) + "}\nprint(len(m), m.k49999)")


PROGRAMS = {
    "strings": (strings, "100000 s99999"),
    "native_calls": (native_calls, "338890"),
    "functions": (functions, "1 65538 70002"),
    "functions_that_call": (functions_that_call, "69999"),
    "long_sum": (long_sum, "100001"),
    "long_text": (long_text, "100001"),
    "long_logic": (long_logic, "true true"),
    "long_path": (long_path, "ref"),
    "long_elif": (long_elif, "r0 r4999 other"),
    "long_match": (long_match, "r0 r19999 other"),
    "jumps": (jumps, "3"),
    "deep": (deep, "in\n1\n1\n1\n2\ntrue\n" + "3"),
    "variables": (variables, "1799970000"),
    "captures": (captures, "449985000"),
    "closures": (closures, "2 30001"),
    "module_variables": (module_variables, "[0] [69999]"),
    "records": (records, "R0(a: 1, b: 0) R59999(a: 2, b: 59999)"),
    "statements": (statements, "100000"),
    "map_entries": (map_entries, "50000 49999"),
}


def compile_source(name, text):
    """Returns the finished process and its seconds; the file is NAME.toau."""
    source = pathlib.Path(f"{name}.han")
    source.write_text(text, encoding="utf-8")
    start = time.monotonic()
    done = subprocess.run([CROWNYC, "compile", "--quiet", source, "-o", f"{name}.toau"], capture_output=True, text=True)
    return done, time.monotonic() - start


def round_trip(name):
    """Whether NAME.toau has its bytes again after having been text, and what was run last."""
    text = subprocess.run([CROWNYC, "rpn", f"{name}.toau"], capture_output=True).stdout
    pathlib.Path(f"{name}.rpn").write_bytes(text)
    done = subprocess.run([CROWNYC, "compile", "--quiet", f"{name}.rpn", "-o", f"{name}.again"], capture_output=True,
                          text=True)
    same = done.returncode == 0
    same = same and pathlib.Path(f"{name}.again").read_bytes() == pathlib.Path(f"{name}.toau").read_bytes()
    return same, done


def run(names):
    passed = failed = 0
    for name in names:
        make, expected = PROGRAMS[name]
        done, seconds = compile_source(name, make())
        if done.returncode == 0:
            done = subprocess.run([CROWNYC, "run", f"{name}.toau"], capture_output=True, text=True)
        good = done.returncode == 0 and done.stdout.rstrip("\n") == expected
        if good:
            good, done = round_trip(name)
        print(f"{'ok' if good else 'FAILED'}: {name}, compiled in {seconds:.1f} s")
        if not good:
            print(f"  exit code {done.returncode}, stdout {done.stdout[:300]!r}, stderr {done.stderr[:600]!r}")
        passed, failed = passed + good, failed + (not good)
    return passed, failed


def finish(passed, failed):
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
