#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/world_test.py: proves that the limits of natives which touch the world (files, processes, peers, what
# workers share) hold at their value, and one past it end in an error that names the row.
#
# Values come from vm/base/limits.def.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, ROOT, check, check_equal, check_in, free_port, run, run_all  # noqa: E402

ROW = re.compile(r"^LIMIT\((\w+),\s*([^,]+),", re.M)
LIMITS = {name: eval(value, {"INT32_MAX": 2**31 - 1})  # noqa: S307: our own table
          for name, value in ROW.findall((ROOT / "vm/base/limits.def").read_text(encoding="utf-8"))}


def han(folder, text, *args, allow="write,run,ffi"):
    source = folder / "a.han"
    source.write_text(text)
    return run([CROWNYC, "run", "--allow", allow, source, *args], cwd=folder, within=60)


def at_and_past(folder, imports, body, row, kind="limit", names_row=True):
    """`body` with {n}: an expression's statements; at the row's value it prints ok, past it the kind, and the row."""
    head = "".join(f'import "{name}"\n' for name in imports)
    for past in (0, 1):
        code, out, err = han(folder, head + "export fn main(args) {\n    let n = int(args[0])\n    try {\n" + body
                             + '\n        print("ok")\n    } catch e { print(e.kind, e.message) }\n}\n',
                             str(LIMITS[row] + past))
        check_equal((code, err), (EXIT_OK, ""), f"exit code and stderr {past} past {row}")
        if not past:
            check_equal(out, "ok\n", f"at {row}")
        else:
            check(out.startswith(kind + " "), f"past {row}: {out}")
            check(not names_row or row in out or str(LIMITS[row]) in out, f"the message past {row}: {out}")


def test_log_fields(folder):
    at_and_past(folder, ["log"],
                '        let fields = {} for i in 0..n { fields["f\\(i)"] = i } log.debug("x", fields)',
                "LOG_FIELDS")


def test_process_output_bytes(folder):
    at_and_past(folder, ["process"],
                '        let out = process.run("head", ["-c", str(n), "/dev/zero"]).out'
                ' if len(out) != n { fail("short") }',
                "PROCESS_OUTPUT_BYTES", "too_large")


def test_process_arguments(folder):
    at_and_past(folder, ["process"],
                '        let all = [] for i in 0..n { all = all + ["a"] } let _ = process.run("true", all)',
                "PROCESS_ARGUMENTS")
    at_and_past(folder, ["process"],
                '        let all = {} for i in 0..n { all["v\\(i)"] = "" }'
                ' let _ = process.run("/bin/true", [], {env: all})',
                "PROCESS_ARGUMENTS")


def test_timeout_ms(folder):
    """A connection that is refused at once; a program that ends at once; a task that is left waiting."""
    port = free_port()
    refused = 'catch e { if e.kind != "refused" { throw e } }'
    for imports, call in ((["net"], f'try {{ net.connect("127.0.0.1:{port}", n) }} {refused}'),
                          (["process"], 'let _ = process.run("true", [], {timeout_ms: n})'),
                          (["http"], f'try {{ http.get("http://127.0.0.1:{port}/", {{timeout_ms: n}}) }} {refused}')):
        at_and_past(folder, imports, "        " + call, "TIMEOUT_MS", "value")
    code, out, err = han(folder, 'import "task"\nexport fn main(args) { try { task.sleep(int(args[0])) } '
                                 'catch e { print(e.kind, e.message) } }\n', str(LIMITS["TIMEOUT_MS"] + 1))
    check(out.startswith("value task.sleep") and "TIMEOUT_MS" in out, f"past TIMEOUT_MS: {out}{err}")


def test_shared_memory(folder):
    at_and_past(folder, ["shared"], '        for i in 0..n { shared.set("n\\(i)", i) }', "SHARED_COUNTERS", "too_many")
    at_and_past(folder, ["shared"], '        for i in 0..n { shared.table("t\\(i)", 1) }', "SHARED_TABLES")
    at_and_past(folder, ["shared"], '        shared.table("t", n)', "SHARED_ENTRIES", "value")


def test_generation_files(folder):
    """Past the limit before anything is read; at it the files are looked for."""
    body = ('        let files = {} for i in 0..n { files["f\\(i)"] = "no/such/file" }\n'
            '        process.workers(1, {files: files})')
    head = 'import "process"\nexport fn main(args) {\n    let n = int(args[0])\n    try {\n'
    tail = "\n    } catch e { print(e.kind, e.message) }\n}\n"
    code, out, err = han(folder, head + body + tail, str(LIMITS["GENERATION_FILES"]))
    check(code != EXIT_OK, "files that are not there")
    check_in("no/such/file: not found", err, "at GENERATION_FILES")
    code, out, err = han(folder, head + body + tail, str(LIMITS["GENERATION_FILES"] + 1))
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr past GENERATION_FILES")
    check_in(str(LIMITS["GENERATION_FILES"]), out, "message past GENERATION_FILES")


def test_serve_listen(folder):
    """At the limit the last address is looked at, and refused for what it is."""
    text = """
import "http"
export fn handle(request) { return http.respond(200) }
export fn main(args) {
    let listen = []
    for i in 1..int(args[0]) { listen = listen + ["127.0.0.1:0"] }
    try { http.serve({listen: listen + ["nonsense"]}) } catch e { print(e.kind, e.message) }
}
"""
    code, out, _ = han(folder, text, str(LIMITS["SERVE_LISTEN"]))
    check(out.startswith("bad_address http.serve: \"nonsense\""), f"at SERVE_LISTEN: {out}")
    code, out, _ = han(folder, text, str(LIMITS["SERVE_LISTEN"] + 1))
    check(out.startswith("value http.serve") and "SERVE_LISTEN" in out, f"past SERVE_LISTEN: {out}")


def test_label_bytes(folder):
    text = """
import "process"
import "text"
import "log"
export fn main(args) {
    try {
        process.workers(1, {label: text.repeat("l", int(args[0]))})
        log.info("labelled")
        process.exit(0)
    } catch e { print(e.kind, e.message) }
}
"""
    code, out, err = han(folder, text, str(LIMITS["LABEL_BYTES"]))
    check_in("[" + "l" * LIMITS["LABEL_BYTES"] + "/0] labelled", err, "the log at LABEL_BYTES")
    code, out, _ = han(folder, text, str(LIMITS["LABEL_BYTES"] + 1))
    check(out.startswith("value process.workers: label") and "LABEL_BYTES" in out, f"past LABEL_BYTES: {out}")


def test_fetch_body_bytes(folder):
    """A program that answers itself."""
    text = """
import "http"
import "net"
import "process"
import "text"
fn serve(listener, n) {
    let peer = net.accept(listener)
    let _ = net.read(peer)
    net.write(peer, "HTTP/1.1 200 OK\\r\\nContent-Length: \\(n)\\r\\n\\r\\n" + text.repeat("x", n))
}
export fn main(args) {
    let listener = net.listen("127.0.0.1:0")
    let address = listener.address
    let n = int(args[0])
    let server = spawn serve(listener, n)
    try { print(len(http.get("http://\\(address)/").body) == n) } catch e { print(e.kind, e.message) process.exit(0) }
}
"""
    code, out, err = han(folder, text, str(LIMITS["FETCH_BODY_BYTES"]))
    check_equal((code, out, err), (EXIT_OK, "true\n", ""), "at FETCH_BODY_BYTES")
    code, out, _ = han(folder, text, str(LIMITS["FETCH_BODY_BYTES"] + 1))
    check(out.startswith("too_large ") and str(LIMITS["FETCH_BODY_BYTES"]) in out, f"past FETCH_BODY_BYTES: {out}")


def test_ffi_params(folder):
    at_and_past(folder, ["ffi", "list", "text"],
                '        let kinds = [] for i in 0..n { kinds = kinds + ["int"] }\n'
                '        let _ = ffi.fn(ffi.open(""), "abs", "int(" + text.join(kinds, ", ") + ")")', "FFI_PARAMS",
                "value")


run_all(globals())
