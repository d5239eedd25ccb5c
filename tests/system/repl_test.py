#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/repl_test.py: proves that crownyc repl keeps what was declared, runs nothing twice, goes on behind every
# kind of error, and, on a terminal, edits lines with Hangul, remembers them, and stops what runs at Ctrl-C.
#
# A terminal is a pty; the test waits for what the REPL writes before it types on.

import contextlib
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, Failed, check,  # noqa: E402
                     check_equal, check_in, environment, run, run_all)


def repl(text, folder, *options):
    done = subprocess.run([CROWNYC, *options, "repl"], input=text, capture_output=True, text=True, cwd=folder,
                          env=environment(HOME=folder), timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout, done.stderr


def shows(folder, text, wanted):
    check_equal(repl(text, folder), (EXIT_OK, wanted, ""), f"of {text!r}")


def test_declarations_stay_and_values_are_shown(folder):
    shows(folder, 'let x = 5\nx + 1\nx = x * 2\nx\n"가"\nprint("p")\nnil\n', '6\n10\n"가"\np\n')
    shows(folder, "fn f(n) {\n  if n < 2 {\n    return n\n  }\n  return f(n - 1) + f(n - 2)\n}\nf(10)\n", "55\n")
    shows(folder, '3 print("x") 4\n', "3\nx\n4\n")
    shows(folder, "{a: [1]}\n{}\n", "{\"a\": [1]}\n{}\n")
    shows(folder, "record P { a: int, b = 2 }\nlet p = P(1)\np.b = [7]\np\nfn get(p: P) { return p.b }\nget(p)\n",
          "P(a: 1, b: [7])\n[7]\n")
    shows(folder, 'import "list"\nlist.map([1, 2], fn (v) { return v * 2 })\n'
                  "list.filter([1, 2], fn (v) { return v > 1 })\n", "[2, 4]\n[2]\n")
    shows(folder, "const c = [1]\nlet g = fn (a) { return a + c }\ng([2])\n상수 나 = 3 나\n", "[2, 1]\n3\n")
    shows(folder, "let m = {a: 1} m.a m[\"b\"] = 2 m\nfor k, v in m { print(k, v) }\n",
          '1\n{"a": 1, "b": 2}\na 1\nb 2\n')


def test_every_module_can_be_imported(folder):
    """Those with constants as well, which stand in their uses and are no variables of the module."""
    shows(folder, 'import "math"\nimport "int"\nmath.pi\nmath.round_to(math.tau, 2)\nint.smallest\n',
          "3.141592653589793\n6.28\n-9223372036854775808\n")
    modules = sorted({path.stem for path in (ROOT / "stdlib").glob("*.han")})
    check(len(modules) >= 5, f"standard modules {modules}")
    shows(folder, "".join(f'import "{name}"\n1\n' for name in modules), "1\n" * len(modules))


def test_closures_and_cells_live_on(folder):
    shows(folder, "let cell = ref(0)\n"
                  "fn counter() { let n = cell return fn () { n.value = n.value + 1 return n.value } }\n"
                  "let next = counter()\nnext()\nlet a = 1\nnext()\nfn other() { return 9 }\nnext()\ncell.value\n",
          "1\n2\n3\n3\n")


def test_declared_again(folder):
    """The newest is seen by what comes behind it; what stood before keeps what it was checked with."""
    shows(folder, "fn f() { return 1 }\nfn g() { return f() }\nfn f(a) { return a }\nf(2)\ng()\nlet f = 3\nf\n",
          "2\n1\n3\n")
    shows(folder, 'let x = 1\nlet x = x + 1\nx\nlet x = "s"\nx\n', '2\n"s"\n')
    shows(folder, "record P { a }\nlet p = P(1)\nrecord P { a, b }\nP(1, 2)\np == P(1, 2)\np\n",
          "P(a: 1, b: 2)\nfalse\nP(a: 1)\n")


def test_nothing_runs_twice(folder):
    (folder / "noisy.han").write_text('let count = ref(0)\n'
                                      'export fn add() { count.value = count.value + 1 return count.value }\n'
                                      'fn said() { print("once") return 0 }\nlet x = said()\n')
    shows(folder, 'import "./noisy"\nnoisy.add()\nlet a = print("a")\nnoisy.add()\n1\nnoisy.add()\n',
          "once\n1\na\n2\n1\n3\n")


def test_errors_and_what_follows(folder):
    code, out, err = repl("foo(1)\nlet y = 1 / 0\ny\nlet y = 2\ny\nthrow 5\nfn f(a) { return a }\nf()\nf(1) +\n1 + 1\n",
                          folder)
    check_equal((code, out), (EXIT_PROGRAM, "2\n2\n"), "exit code and stdout")
    check_in("[1]:1:1: error E0040: unknown name `foo`\n    foo(1)\n    ^^^\n", err, "an unknown name")
    check_in("division by zero\n  at ", err, "an initialiser that failed")
    check_in("([2]:1:11)", err, "its place")
    check_in("[3]:1:1: error E0040: unknown name `y`", err, "what failed is not declared")
    check_in("thrown: 5\n  at [6] ([6]:1:1)", err, "an error that was thrown")
    check_in("[8]:1:1: error", err, "a wrong call")
    check_in("[9]:1:7: error", err, "an expression without its end")
    code, out, _ = repl("print(1) print(2) nowhere print(3)\n", folder)
    check_equal((code, out), (EXIT_PROGRAM, "1\n2\n"), "several on one line, up to the wrong one")
    code, out, _ = repl("fn open( {\n", folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "the end inside a bracket")


def test_waiting_and_tasks(folder):
    shows(folder, 'import "task"\nfn w(n) { task.sleep(1) return n * 2 }\nlet r = task.wait(spawn w(4))\nr\n'
                  "task.wait(spawn w(5))\n", "8\n10\n")


def test_commands(folder):
    (folder / "some.han").write_text("let from_file = 41\nfn more(a) { return a + 1 }\ntest \"t\" { }\n"
                                     "export fn main(args) { print(args) }\n")
    shows(folder, ":load some.han\nmore(from_file)\nmain([1])\n:type more\n:type 1.5\n:종류 {}\n",
          "42\n[1]\nfunction\nfloat\nmap\n")
    shows(folder, "let a = 1\n:reset\nlet b = 2\nb\n:quit\nb\n", "2\n")
    code, out, err = repl("let a = 1\n:reset\na\n:lod x\n:load none.han\n", folder)
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    for part in ("unknown name `a`", "did you mean :load?", "none.han: "):
        check_in(part, err, "stderr")
    _, out, _ = repl(":help\n", folder)
    for command in (":help", ":type EXPRESSION", ":load FILE", ":reset", ":quit"):
        check_in(command, out, "help")
    check_in(":도움말", repl(":help\n", folder, "--lang", "ko")[1], "help in Korean")
    check_equal(run([CROWNYC, "repl", "x"], env=environment())[0], EXIT_USAGE, "a word too many")
    check_equal(repl("import \"process\"\nprocess.workers(2)\n", folder)[0], EXIT_PROGRAM, "no workers here")


REPL_INPUTS, REPL_HISTORY = 500, 1000


def test_inputs_at_and_past_the_limit(folder):
    text = "".join(f"let v{i} = {i}\n" for i in range(REPL_INPUTS - 2))  # an empty one begins a session
    shows(folder, text + f"v{REPL_INPUTS - 3}\n", f"{REPL_INPUTS - 3}\n")
    code, out, err = repl(text + "v0\nv1\n:reset\n2\n", folder)
    check_equal((code, out), (EXIT_PROGRAM, "0\n2\n"), "exit code and stdout")
    check_in(f"the limit REPL_INPUTS ({REPL_INPUTS}) is reached; :reset begins anew", err, "stderr")


# -- on a terminal --------------------------------------------------------------------------------------------------

class Terminal:
    def __init__(self, folder, *options):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            with contextlib.suppress(OSError):
                os.chdir(folder)
                # libedit keeps two names (wcsdup) to the end; the tests through a pipe look for leaks of ours.
                os.execve(CROWNYC, [str(CROWNYC), "repl", *options],
                          environment(HOME=folder, TERM="xterm", XDG_STATE_HOME=folder / "state",
                                      ASAN_OPTIONS="detect_leaks=0"))
            os._exit(127)
        self.text = ""
        self.seen = 0

    def wait(self, pattern):
        """Until it is written behind what was waited for before; control sequences are left out."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            found = re.compile(pattern).search(self.text, self.seen)
            if found:
                self.seen = found.end()
                return found
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.descriptor], [], [], left)[0] or not self._read():
                raise Failed(f"no {pattern!r} behind {self.text[:self.seen]!r}:\n{self.text[self.seen:]!r}")

    def _read(self):
        try:
            data = os.read(self.descriptor, 65536)
        except OSError:
            return False
        self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]", "", data.decode("utf-8", "replace"))
        return bool(data)

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def line(self, text, pattern):
        self.type(text + "\r")
        return self.wait(pattern)

    def end(self):
        """The exit code; reads what is left."""
        while self._read():
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        self.pid = None
        return os.waitstatus_to_exitcode(status)

    def __enter__(self):
        self.wait("> $")
        return self

    def __exit__(self, *_):
        if self.pid:
            with contextlib.suppress(OSError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                os.close(self.descriptor)


def test_a_terminal_edits_hangul(folder):
    with Terminal(folder) as terminal:
        check_in(":help", terminal.text, "the first line")
        terminal.line('변수 이름 = "가나다"', r"\n> $")
        terminal.type('이름 + "라마"')
        terminal.type("\x1b[D\x1b[D\x7f")  # left, left, rubout: 라 goes
        terminal.type("바\r")
        terminal.wait('"가나다바마"\r\n> $')
        terminal.line("fn f() {", r"\n\.\. $")
        terminal.line("return 7", r"\n\.\. $")
        terminal.line("}", r"\n> $")
        terminal.line("f()", r"\n7\r\n> $")
        terminal.type("\x04")
        check_equal(terminal.end(), EXIT_OK, "exit code behind Ctrl-D")


def test_ctrl_c_stops_what_runs_and_nothing_else(folder):
    with Terminal(folder) as terminal:
        terminal.line("let n = ref(0)", r"\n> $")
        terminal.type("loop { if n.value == 1000 { print(\"runs\") } n.value = n.value + 1 }\r")
        terminal.wait(r"\nruns\r\n")
        terminal.type("\x03")
        terminal.wait(r"cancelled\r\n(  at .*\r\n)*> $")
        terminal.line("n.value > 1000", r"\ntrue\r\n> $")
        terminal.line('import "task"', r"\n> $")
        terminal.type('print("waits") task.sleep(3600000)\r')
        terminal.wait(r"\nwaits\r\n")
        terminal.type("\x03")
        terminal.wait(r"cancelled\r\n(  at .*\r\n)*> $")
        terminal.line("[1,", r"\n\.\. $")
        terminal.type("2")
        terminal.wait("2")
        terminal.type("\x03")  # drops the lines typed so far
        terminal.wait(r"\n> $")
        terminal.line("40 + 2", r"\n42\r\n> $")
        terminal.line(":quit", "")
        check_equal(terminal.end(), EXIT_OK, "exit code behind :quit")


def test_history_is_kept_for_the_next_time(folder):
    with Terminal(folder) as terminal:
        terminal.line("let 수 = 20", r"\n> $")
        terminal.line("수 * 2", r"\n40\r\n> $")
        terminal.type("\x04")
        check_equal(terminal.end(), EXIT_OK, "exit code")
    kept = folder / "state" / "crownyc" / "history"
    check_equal(kept.stat().st_mode & 0o077, 0, "who else may read the history")
    with Terminal(folder) as terminal:
        terminal.type("\x1b[A\x1b[A\r")
        terminal.wait(r"\n> $")
        terminal.type("\x1b[A\x1b[A\r")  # one further up than what was just repeated
        terminal.wait(r"\n40\r\n> $")
        terminal.type("\x04")
        check_equal(terminal.end(), EXIT_OK, "exit code")
    before = kept.read_text()
    with Terminal(folder, "--no-history") as terminal:
        terminal.line("12345", r"\n12345\r\n> $")
        terminal.type("\x04")
        check_equal(terminal.end(), EXIT_OK, "exit code")
    check_equal(kept.read_text(), before, "the history behind --no-history")


def test_history_is_bounded(folder):
    kept = folder / "state" / "crownyc" / "history"
    kept.parent.mkdir(parents=True)
    for more in (REPL_HISTORY - 1, REPL_HISTORY):
        kept.write_text("_HiStOrY_V2_\n" + "".join(f"{i}\n" for i in range(more)))
        with Terminal(folder) as terminal:
            terminal.line("77777", r"\n77777\r\n> $")
            terminal.type("\x04")
            check_equal(terminal.end(), EXIT_OK, "exit code")
        lines = kept.read_text().splitlines()
        check_equal((len(lines), lines[-1]), (REPL_HISTORY + 1, "77777"), f"lines behind {more} others")


def test_files_and_the_folders_of_the_command_line(folder):
    (folder / "in").mkdir()
    (folder / "secret").write_text("told")
    session = 'import "fs"\nfs.read("secret")\nfs.write("out.txt", "x")\nfs.write("in/x.txt", "x")\n:reset\n' + \
        'import "fs"\nfs.write("in/y.txt", "y")\n'
    code, out, err = repl(session, folder)
    check(code >= 0 and '"told"' in out, f"fs.read: exit code {code}, {out}{err}")
    check_in("--allow write", err, "fs.write without a right")
    code, out, err = repl(session, folder, "--allow", "write=in", "--deny", "read=.")
    check(code >= 0 and "told" not in out, f"a folder that was taken away was read: exit code {code}, {out}{err}")
    check(not (folder / "out.txt").exists(), f"written outside of write=in: {out}{err}")
    check((folder / "in/x.txt").exists() and (folder / "in/y.txt").exists(), f"write=in: {out}{err}")
    check_in("nowhere", repl("1\n", folder, "--allow", "write=nowhere")[2], "a folder that is not there")


run_all(globals())
