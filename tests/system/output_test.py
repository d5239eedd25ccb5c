#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/output_test.py: proves that a server whose output nobody reads serves on, tells afterwards how much was
# lost, and writes the rest at its end; that a program in a pipe waits for its reader and loses nothing; that repeated
# lines are counted.

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, Gateway, check, check_equal, check_in,  # noqa: E402
                     compile_gateway, environment, free_port, request, run, run_all)

SERVER = """
import "http"
import "log"
import "text"
let lines = ref(0)
export fn handle(request) {
    if request.path == "/dropped" { return http.respond(200, str(log.dropped())) }
    for i in 0..100 {
        lines.value = lines.value + 1
        print("line", lines.value, text.repeat("x", 500))
        log.info("logged \\(lines.value)", {padding: text.repeat("y", 500)})
    }
    return http.respond(200, str(lines.value))
}
export fn main(args) { http.serve({listen: [args[0]], banner: "ready"}) }
"""


def start(folder, **streams):
    source = folder / "server.han"
    source.write_text(SERVER)
    port = free_port()
    process = subprocess.Popen([CROWNYC, "run", source, f"127.0.0.1:{port}"], cwd=folder, env=environment(),
                               stdin=subprocess.DEVNULL, start_new_session=True, **streams)
    return process, port


def end(process):
    if process.poll() is None:
        process.kill()
        process.wait()


def read_line(stream):
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(stream, 1)
    return line


def fill(port):
    """Until lines are lost on both streams: 2 MiB and more each."""
    count = 0
    while int(request(port, "h", "/dropped").body) < 2000:
        count = int(request(port, "h", "/say").body)
    return count


def check_stream(text, shape, what):
    """Numbers rise by one; where lines are missing, the line before says how many."""
    wanted, told = 1, 0
    for line in text.decode().splitlines():
        lost = re.match(r"\((\d+) lines were dropped here", line)
        found = re.search(shape, line)
        if lost:
            told += int(lost.group(1))
            wanted += int(lost.group(1))
        elif found:
            check_equal(int(found.group(1)), wanted, f"{what}: number of a line")
            wanted += 1
    check(told > 0, f"{what}: no loss was told")
    return wanted - 1


def test_nobody_reads(folder):
    """Both pipes are full, and every request is still answered. Then the reader reads: each stream tells its loss."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    process, port = start(folder, stdout=out_write, stderr=err_write)
    os.close(out_write)
    os.close(err_write)
    try:
        check_equal(read_line(out_read), b"ready\n", "the banner")
        count = fill(port)
        texts = {}
        threads = [threading.Thread(target=lambda name=name, stream=stream: texts.update({name: read_all(stream)}))
                   for name, stream in (("out", out_read), ("err", err_read))]
        for thread in threads:
            thread.start()
        process.send_signal(signal.SIGTERM)
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code")
        for thread in threads:
            thread.join(DEADLINE_S)
        check_equal(check_stream(texts["out"], r"^line (\d+) ", "stdout"), count, "lines written and lost")
        check_equal(check_stream(texts["err"], r"info logged (\d+) ", "the log"), count, "lines logged and lost")
    finally:
        end(process)


def read_all(stream):
    text = b""
    while True:
        more = os.read(stream, 1 << 20)
        if not more:
            return text
        text += more


def test_one_file_keeps_the_order(folder):
    """2>&1: print and log lines stand as they were written."""
    read_end, write_end = os.pipe()
    process, port = start(folder, stdout=write_end, stderr=write_end)
    os.close(write_end)
    try:
        check_equal(read_line(read_end), b"ready\n", "the banner")
        request(port, "h", "/say")
        process.send_signal(signal.SIGTERM)
        text = read_all(read_end).decode()
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code")
        numbers = re.findall(r"(?:^line|info logged) (\d+) ", text, re.M)
        check_equal(numbers, [str(i) for i in range(1, 101) for _ in "ab"], "order of the lines")
    finally:
        end(process)


def test_the_end_does_not_wait_for_ever(folder):
    out_read, out_write = os.pipe()
    process, port = start(folder, stdout=out_write, stderr=subprocess.DEVNULL)
    os.close(out_write)
    try:
        check_equal(read_line(out_read), b"ready\n", "the banner")
        while int(request(port, "h", "/dropped").body) == 0:
            request(port, "h", "/say")
        process.send_signal(signal.SIGTERM)
        check_equal(process.wait(DEADLINE_S), EXIT_OK, "exit code though nobody reads")
    finally:
        os.close(out_read)
        end(process)


def test_a_program_in_a_pipe_loses_nothing(folder):
    source = folder / "a.han"
    source.write_text('import "text"\nexport fn main(args) { for i in 0..3000 { print(i, text.repeat("x", 1000)) } }\n')
    code, out, err = run([CROWNYC, "run", source], cwd=folder)
    check_equal((code, err, len(out.splitlines())), (EXIT_OK, "", 3000), "3 MB through a pipe")


def test_print_error_writes_to_standard_error(folder):
    source = folder / "a.han"
    source.write_text('export fn main(args) {\n    print("out", 1)\n    print_error("err", [2], nil)\n'
                      '    오류출력()\n}\n', encoding="utf-8")
    check_equal(run([CROWNYC, "run", source], cwd=folder), (EXIT_OK, "out 1\n", "err [2] nil\n\n"), "both outputs")


def test_fields_levels_and_repeats(folder):
    source = folder / "a.han"
    source.write_text("""
import "log"
export fn main(args) {
    log.debug("not written")
    log.warn("slow", {path: "/a b", ms: 12, quote: "say \\"x\\"", list: [1, "b"], empty: ""})
    for i in 0..500 { log.error("down", {upstream: "b"}) }
    log.info("other")
    log.write("info", "with", {n: nil})
    let fields = {}
    for i in 0..int(args[0]) { fields["f\\(i)"] = i }
    try { log.info("many", fields) } catch e { print(e.kind, e.message) }
    try { log.info("key", {1: 2}) } catch e { print(e.kind) }
    try { log.write("loud", "x") } catch e { print(e.kind) }
}
""")
    code, out, err = run([CROWNYC, "run", source, "65"], cwd=folder)
    check_equal((code, out), (EXIT_OK, "limit log.info: at most LOG_FIELDS = 64 fields\ntype\nvalue\n"), "stdout")
    lines = [line.split(" ", 1)[1] for line in err.splitlines()]
    check_equal(lines[:4], [r'warn slow path="/a b" ms=12 quote="say \"x\"" list="[1, \"b\"]" empty=""',
                            "error down upstream=b", "info other", "info with n=nil"], "lines")
    check(re.fullmatch(r"error down upstream=b \(499 more in \d+ ms\)", lines[4]), f"the count: {lines[4]}")
    code, out, err = run([CROWNYC, "run", source, "64"], cwd=folder)
    check_equal(out, "type\nvalue\n", "64 fields")
    check_in("f63=63", err, "log")


def test_an_upstream_that_is_down_is_a_line_a_second(folder):
    toau = compile_gateway(folder)
    port = free_port()
    gateway = Gateway(toau, f"- name: a\n  domain: a.local\n  upstream: http://127.0.0.1:{port}\n", folder)
    for i in range(200):
        check_equal(gateway.get("a.local", f"/{i}").status, 502, "status")
    gateway.wait_line(r"upstream 127.0.0.1:\d+: cannot connect \(connection refused\) \(\d+ more in \d+ ms\)", "err")
    lines = [line for line in gateway.text().splitlines() if "upstream" in line]
    check(len(lines) < 40, f"{len(lines)} lines for 200 requests")
    check_in("GET a.local/0 ends with 502", lines[0], "the first line tells all")


run_all(globals())
