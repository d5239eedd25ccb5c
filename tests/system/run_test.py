#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/run_test.py: proves process.run: what goes in and comes out, its bounds, that a program's group ends
# with the task that started it, and that a server goes on while a program runs. Also env.names, process.args, ffi.

import os
import pathlib
import signal
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, EXIT_PROGRAM, Program, check, check_equal, check_in, environment,  # noqa: E402
                     free_port, request, run, run_all, wait_until)


def han(folder, text, *args, allow="run", **variables):
    source = folder / "a.han"
    source.write_text(text)
    return run([CROWNYC, "run", "--allow", allow, source, *args], cwd=folder, env=environment(**variables))


def test_input_output_code_and_environment(folder):
    code, out, err = han(folder, r"""
import "process"
import "text"
export fn main(args) {
    print(process.run("sh", ["-c", "cat; echo $1-$X >&2; exit 3", "sh", "two words"], {input: "in", env: {X: "x=y"}}))
    print(process.run("/bin/true"))
    print(process.run("sh", ["-c", "kill -KILL $$"]).code)
    let large = text.repeat("0123456789", 300000)
    print(process.run("cat", [], {input: large}).out == large)
    print(process.run("true", [], {input: large}).code)
    print(process.run("sh", ["-c", "exec 1>&- 2>&-; exit 4"]))
    print(process.run("sh", ["-c", "sleep 1000 & echo left behind"]).out)
}
""")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ['{"code": 3, "out": "in", "err": "two words-x=y\\n"}',
                                   '{"code": 0, "out": "", "err": ""}',
                                   "137", "true", "0", '{"code": 4, "out": "", "err": ""}', "left behind", ""],
                                   "results")
    # What was left behind is not ours to wait for; here it is the test's to end.
    for stat in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if stat.read_bytes() == b"sleep\x001000\x00" and os.readlink(stat.parent / "cwd") == str(folder):
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except OSError:
            pass


def test_the_folder_it_runs_in(folder):
    (folder / "below").mkdir()
    (folder / "below" / "tool").write_text("#!/bin/sh\npwd\n")
    (folder / "below" / "tool").chmod(0o755)
    code, out, err = han(folder, r"""
import "process"
fn attempt(options) {
    try { print(process.run("pwd", [], options).out) } catch e { print(e.kind, e.message) }
}
export fn main(args) {
    attempt({cwd: "below"})
    attempt({cwd: args[0]})
    print(process.run("./tool", [], {cwd: "below"}).out)
    attempt({cwd: "not there"})
    attempt({cwd: ""})
    attempt({cwd: 1})
    attempt({})
}
""", folder / "below")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    lines = out.splitlines()
    below = str((folder / "below").resolve())
    check_equal(lines[0:6], [below, "", below, "", below, ""], "the folder")
    check_in("not_found process.run", lines[6], "a folder that is not there")
    for line in lines[7:9]:
        check_in("value process.run: options are", line, "no folder")
    check_equal(lines[9], str(folder.resolve()), "ours is as it was")


def test_errors(folder):
    code, out, err = han(folder, """
import "process"
fn attempt(program, args, options) {
    try { print(process.run(program, args, options)) } catch e { print(e.kind, e.message) }
}
export fn main(args) {
    attempt("no-such-program", [], {})
    attempt("/tmp", [], {})
    attempt("", [], {})
    attempt("cat", ["a", 1], {})
    attempt("sleep", ["1000"], {timeout_ms: 30})
    attempt("yes", [], {output_bytes_max: 4096})
    attempt("true", [], {shell: true})
    attempt("true", [], {timeout_ms: 0})
    attempt("true", [], {env: {"a=b": "c"}})
    print(len(process.run("head", ["-c", "4096", "/dev/zero"], {output_bytes_max: 4096}).out))
}
""")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    wanted = ["not_found process.run: no-such-program: not found", "permission process.run: /tmp: permission denied",
              "value process.run: the program's name is empty or holds a NUL",
              "type process.run: argument 2 is int, not a str without NUL",
              "timeout process.run: sleep: timed out (timeout_ms: 30)",
              "too_large process.run: yes: too large (output_bytes_max: 4096)",
              "value process.run: options are", "value process.run: options are",
              'value process.run: env maps names (str without "=") to str', "4096"]
    for line, start in zip(out.splitlines(), wanted):
        check(line.startswith(start), f"{start!r} was expected, found {line!r}")
    check_equal(len(out.splitlines()), len(wanted), "lines")


def test_it_needs_the_capability(folder):
    source = folder / "a.han"
    source.write_text('import "process"\nexport fn main(args) { process.run("true") }\n')
    code, _, err = run([CROWNYC, "run", source], cwd=folder)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("process.run needs the capability run", err, "message")


SERVER = """
import "http"
import "process"
export fn handle(request) {
    if request.path == "/ping" { return http.respond(200, "pong") }
    return http.respond(200, process.run("sh", ["-c", "echo $$ > pid; sleep 1000 & wait"]).out)
}
export fn main(args) { http.serve({listen: [args[0]], banner: "ready"}) }
"""


def group(pid):
    """The living processes of a group."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[2]) == pid and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found


def test_a_client_that_goes_away_ends_the_program(folder):
    """The program runs while others are served; when its client hangs up, its whole group is gone."""
    source = folder / "server.han"
    source.write_text(SERVER)
    port = free_port()
    server = Program([CROWNYC, "run", "--allow", "run", source, f"127.0.0.1:{port}"], cwd=folder)
    server.wait_line("^ready$")
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"GET /run HTTP/1.1\r\nHost: h\r\n\r\n")
    pid = int(wait_until(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), "the program's pid"))
    wait_until(lambda: len(group(pid)) == 2, "the program and its own child")
    for _ in range(20):
        check_equal(request(port, "h", "/ping").body, b"pong", "meanwhile")
    # A reset: after a plain end a client may still want its answer.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    wait_until(lambda: not group(pid), "the end of the group")


def test_environment_and_arguments(folder):
    code, out, _ = han(folder, """
import "env"
import "process"
import "list"
export fn main(args) {
    let names = env.names()
    print(process.args() == args, process.args(), list.contains(names, "CROWN_TEST"), names == list.sort(names))
    print(process.pid() > 0, env.get("CROWN_TEST"))
}
""", "a", "b c", CROWN_TEST="1")
    check_equal((code, out), (EXIT_OK, 'true ["a", "b c"] true true\ntrue 1\n'), "exit code and stdout")


def test_c_functions(folder):
    code, out, err = han(folder, """
import "ffi"
import "text"
fn attempt(f) { try { print(f()) } catch e { print(e.kind) } }
export fn main(args) {
    let math = ffi.open("libm.so.6")
    let pow = ffi.fn(math, "pow", "double(double, double)")
    let c = ffi.open("")
    print(ffi.call(pow, 2, 0.5) == ffi.call(ffi.fn(math, "sqrt", "double(double)"), 2.0))
    print(ffi.call(ffi.fn(c, "abs", "int(int)"), -5), ffi.call(ffi.fn(c, "labs", "long(long)"), -5000000000))
    print(ffi.call(ffi.fn(math, "fabsf", "float(float)"), -1.5))
    print(ffi.call(ffi.fn(c, "getenv", "str(str)"), "CROWN_TEST"), ffi.call(ffi.fn(c, "getenv", "str(str)"), "NO_SUCH"))
    let copy = ffi.call(ffi.fn(c, "strdup", "pointer(str)"), "text")
    print(ffi.call(ffi.fn(c, "strlen", "long(pointer)"), copy))
    print(ffi.call(ffi.fn(c, "free", "void(pointer)"), copy))
    print(kind_of(math), kind_of(pow))
    attempt(fn () { return ffi.call(pow, 1) })
    attempt(fn () { return ffi.call(pow, 1, "x") })
    attempt(fn () { return ffi.call(ffi.fn(c, "abs", "int(int)"), 3000000000) })
    attempt(fn () { return ffi.fn(c, "no_such_function", "void()") })
    attempt(fn () { return ffi.fn(c, "abs", "int(int") })
    attempt(fn () { return ffi.fn(c, "abs", "int(void, int)") })
    attempt(fn () { return ffi.fn(c, "abs", "int(int) x") })
    attempt(fn () { return ffi.call(c) })
    let sixteen = text.repeat("int, ", 15) + "int)"
    attempt(fn () { return kind_of(ffi.fn(c, "abs", "int(" + sixteen)) })
    attempt(fn () { return ffi.fn(c, "abs", "int(int, " + sixteen) })
}
""", allow="ffi", CROWN_TEST="value")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ["true", "5 5000000000", "1.5", "value nil", "4", "nil", "library c_function",
                                   "call", "type",
                                   "type", "not_found", "value", "value", "value", "type", "c_function", "value"],
                "results (FFI_PARAMS: 16 parameters are taken, 17 are not)")


IGNORING = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


def test_sigchld_ignored_by_who_started_us(folder):
    source = folder / "a.han"
    source.write_text("""
import "process"
export fn main(args) { print(process.run("sh", ["-c", "exit 3"]).code) }
""")
    code, out, err = run([sys.executable, "-c", IGNORING, CROWNYC, "run", "--allow", "run", source],
                         cwd=folder)
    check_equal((code, out, err), (EXIT_OK, "3\n", ""), "the code of a child")


def test_a_killed_program_is_not_waited_for(folder):
    """Many that are cut off, by deadline and by cancel: others go on, and no zombie stays."""
    code, out, err = han(folder, """
import "process"
import "task"
fn hold() { process.run("sleep", ["1000"]) }
export fn main(args) {
    for i in 0..20 {
        let t = spawn hold()
        task.sleep(5)
        task.cancel(t)
        try { process.run("sleep", ["1000"], {timeout_ms: 1}) } catch e { if e.kind != "timeout" { print(e.kind) } }
    }
    while process.run("sh", ["-c", "ps -o stat= --ppid $PPID | grep -c Z"]).out != "0\\n" { task.sleep(1) }
    print("no zombie")
}
""")
    check_equal((code, out.strip(), err), (EXIT_OK, "no zombie", ""), "exit code, zombies, stderr")


def test_output_of_many_counts_as_memory(folder):
    code, out, err = han(folder, """
import "process"
import "task"
fn endless() { return process.run("yes", [], {output_bytes_max: 1000000000}) }
export fn main(args) {
    let tasks = []
    for i in 0..4 { tasks = tasks + [spawn endless()] }
    for t in tasks { try { task.wait(t) print("whole") } catch e { print(e.kind) } }
}
""")
    check_equal((code, out.split(), err), (EXIT_OK, ["memory"] * 4, ""), "each is refused in its turn")


run_all(globals())
