#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/command_test.py: proves that limits which a user meets through the command line or over a connection hold
# at their value, and one past it end in a message or status that says so.
#
# Values come from vm/base/limits.def, so that a changed row is tested at its new place.

import pathlib
import re
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, ROOT, Program, check, check_equal, check_in, environment, free_port,  # noqa: E402
                     run, run_all)

ROW = re.compile(r"^LIMIT\((\w+),\s*([^,]+),", re.M)
INT32_MAX = 2**31 - 1
LIMITS = {name: eval(value, {"INT32_MAX": INT32_MAX})  # noqa: S307: our own table
          for name, value in ROW.findall((ROOT / "vm/base/limits.def").read_text(encoding="utf-8"))}


def compile_text(folder, text, name="main.han"):
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return run([CROWNYC, "compile", "--quiet", folder / name, "-o", folder / "main.toau"], cwd=folder)


# -- the compiler -----------------------------------------------------------------------------------------------------

def test_source_bytes(folder):
    program = b"export fn main(args) { }\n//"
    at = LIMITS["SOURCE_BYTES"]
    check_equal(compile_text(folder, program + b"x" * (at - len(program)))[0], 0, "exit code at the limit")
    code, _, err = compile_text(folder, program + b"x" * (at + 1 - len(program)))
    check_equal(code, 1, "exit code past the limit")
    check_in("SOURCE_BYTES", err, "message")


def test_function_captures(folder):
    """A function of the outermost level has fewer slots than that: two levels give the names."""
    half = LIMITS["FUNCTION_CAPTURES"] // 2 + 10
    for past in (0, 1):
        used = LIMITS["FUNCTION_CAPTURES"] + past
        outer = "".join(f"let a{i} = args\n" for i in range(half))
        inner = "".join(f"let b{i} = args\n" for i in range(half))
        uses = "\n".join(f"x = a{i}" if i < half else f"x = b{i - half}" for i in range(used))
        text = (f"export fn main(args) {{\n{outer}let f = fn () {{\n{inner}let g = fn () {{ let x = 0\n{uses}\n}}\n"
                f"g()\n}}\nf()\n}}\n")
        code, _, err = compile_text(folder, text)
        check_equal(code, past, f"exit code with {used} captures ({err[:300]})")
        check(not past or "FUNCTION_CAPTURES" in err, f"message: {err[:300]}")


# -- a server ---------------------------------------------------------------------------------------------------------

SERVER = """
import "http"
import "text"
export fn configure(input) { return {} }
fn literals(count) {
    let verdict = nil
    for i in 0..count { verdict = http.proxy("http://127.0.0.1:\\(i + 1)") }
    return http.respond(200, "made")
}
export fn handle(request) {
    let at = text.find_last(request.path, "/")
    let what = request.path[0..at]
    let count = int(request.path[at + 1..len(request.path)])
    if what == "/body" { return http.respond(200, text.repeat("x", count)) }
    if what == "/fields" {
        let fields = {}
        for i in 0..count { fields["x-\\(i)"] = "v" }
        return http.respond(200, "fields", fields)
    }
    if what == "/literals" { return literals(count) }
    if what == "/proxy" { return http.proxy("http://127.0.0.1:\\(count)") }
    return http.respond(200, "ok")
}
export fn main(args) { http.serve({listen: [args[0]], banner: "ready"}) }
"""


def serve(folder):
    code, _, err = compile_text(folder, SERVER)
    check_equal((code, err), (0, ""), "compiling the server")
    port = free_port()
    server = Program([CROWNYC, "run", folder / "main.toau", f"127.0.0.1:{port}"], cwd=folder)
    server.wait_line("^ready$")
    return server, port


def exchange(port, data):
    """Sends bytes and gives the first status, and whether the server closed by itself after one answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = connection.recv(65536)
            if not more:
                break
            answer += more
    head = answer.split(b"\r\n\r\n")[0].lower()
    return int(answer.split()[1]) if answer else None, b"connection: close" in head


def at_and_past(server, port, path, name):
    """200 at the limit; past it 500, and the log names the row."""
    for past, wanted in ((0, 200), (1, 500)):
        status, _ = exchange(port, f"GET {path}/{LIMITS[name] + past} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        check_equal(status, wanted, f"status {past} past {name}")
    server.wait_line(name, "err")


def test_respond_body_bytes(folder):
    at_and_past(*serve(folder), "/body", "HTTP_RESPOND_BODY_BYTES")


def test_response_fields(folder):
    at_and_past(*serve(folder), "/fields", "HTTP_VERDICT_FIELDS")


def test_literal_upstreams(folder):
    at_and_past(*serve(folder), "/literals", "LITERAL_UPSTREAMS")


def test_request_head(folder):
    server, port = serve(folder)

    def status(target=b"/x/1", fields=b"", method=b"GET"):
        return exchange(port, method + b" " + target + b" HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n")[0]

    target = LIMITS["HTTP_TARGET_BYTES"]
    for past, wanted in ((0, 200), (1, 414)):
        path = b"/" + b"x" * (target - 3 + past) + b"/1"
        check_equal(status(target=path), wanted, f"target of {target + past} bytes")
    fields = LIMITS["HTTP_FIELDS"]
    for past, wanted in ((0, 200), (1, 431)):
        check_equal(status(fields=b"A: b\r\n" * (fields - 1 + past)), wanted, f"{fields + past} fields")
    head = LIMITS["HTTP_HEAD_BYTES"]
    used = len(b"GET /x/1 HTTP/1.1\r\nHost: h\r\n" + b"A: \r\n" + b"\r\n")
    for past, wanted in ((0, 200), (1, 431)):
        long = b"A: " + b"x" * (head - used + past) + b"\r\n"
        check_equal(status(fields=long), wanted, f"head of {head + past} bytes")
    method = LIMITS["HTTP_METHOD_BYTES"]
    check(status(method=b"X" * method) != 501, "a method of the greatest length is refused")
    check_equal(status(method=b"X" * (method + 1)), 501, "status of a longer method")


def test_drain_bytes(folder):
    """A body nobody reads: at the limit the connection is kept."""
    server, port = serve(folder)
    for past in (0, 1):
        count = LIMITS["HTTP_DRAIN_BYTES"] + past
        head = f"POST /x/1 HTTP/1.1\r\nHost: h\r\nContent-Length: {count}\r\n\r\n".encode()
        status, closes = exchange(port, head + b"x" * 10)
        check_equal((status, closes), (200, bool(past)), f"status and close of a body of {count} bytes")


def test_interim_responses(folder):
    """An upstream that says 100 often, and one that never ends saying it."""
    server, port = serve(folder)
    for past, wanted in ((0, 200), (1, 502)):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def answer(count=LIMITS["HTTP_INTERIM_RESPONSES"] + past):
                connection = listener.accept()[0]
                with connection:
                    while b"\r\n\r\n" not in connection.recv(65536):
                        pass
                    connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n" * count
                                       + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            threading.Thread(target=answer, daemon=True).start()
            answer_port = listener.getsockname()[1]
            answer_text = b""
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.sendall(f"GET /proxy/{answer_port} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
                while chunk := client.recv(65536):
                    answer_text += chunk
        final = [int(s) for s in re.findall(rb"HTTP/1\.1 (\d+)", answer_text) if not s.startswith(b"1")]
        check_equal(final, [wanted], f"final status {past} past HTTP_INTERIM_RESPONSES")


# -- processes --------------------------------------------------------------------------------------------------------

def test_workers(folder):
    """At the limit a thousand processes would start: only that the count is accepted by the same comparison is seen."""
    for count in (0, LIMITS["WORKERS"] + 1):
        compile_text(folder, f'import "process"\nexport fn main(args) {{ process.workers({count}) }}\n')
        code, _, err = run([CROWNYC, "run", folder / "main.toau"], cwd=folder)
        check_equal(code, 1, f"exit code of process.workers({count})")
        check_in(f"1..{LIMITS['WORKERS']} (WORKERS)", err, "message")


def test_configuration_file_bytes(folder):
    """What fs.read gives and what a generation takes are told from one byte more."""
    route, comment = "- name: a{0}\n  domain: a{0}.example\n  upstream: http://127.0.0.1:9\n#", "x" * 500000
    settings = dict(GW_PORT=free_port(), GW_BIND="127.0.0.1", GW_YAML=folder / "gateway.yaml", GW_WORKERS=1)
    toau = folder / "gateway.toau"
    code = run([CROWNYC, "compile", ROOT / "programs/gateway/main.han", "-o", toau])[0]
    check_equal(code, 0, "compiling the gateway")
    at = LIMITS["GENERATION_FILE_BYTES"]
    check_equal(at, LIMITS["YAML_BYTES"], "the limit of YAML documents, which this test stands at too")
    for past in (0, 1):
        # YAML_PIECE_BYTES bounds what stands between two tokens.
        routes = "".join(route.format(i) + comment + "\n" for i in range(at // (len(comment) + 100))).encode()
        (folder / "gateway.yaml").write_bytes(routes + b"#" + b"x" * (at + past - len(routes) - 2) + b"\n")
        gateway = Program([CROWNYC, "run", toau], cwd=folder, env=environment(**settings))
        if past:
            check_equal(gateway.wait_exit(), 4, "exit code past the limit")
            check_in(f"limit GENERATION_FILE_BYTES: {at} bytes", gateway.text("err"), "message")
        else:
            gateway.wait_line("^포트", "out")
            gateway.end()


run_all(globals())
