#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/net_test.py: proves the module net against peers of the test: connecting, listening, timeouts,
# back-pressure, UNIX sockets and their path rules; and http.request against an upstream: answers, reuse, bounds,
# failures.

import contextlib
import os
import pathlib
import re
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, Program, Upstream, check, check_equal,  # noqa: E402
                     check_in, free_port, request, run, run_all, wait_until)


def han(folder, text, *args, options=()):
    source = folder / "a.han"
    source.write_text(text)
    return run([CROWNYC, "run", *options, source, *args], cwd=folder)


ECHO = """
import "net"
import "text"
fn serve(connection) {
    loop {
        let data = net.read(connection)
        if data == nil { break }
        net.write(connection, data)
    }
    net.close(connection)
}
export fn main(args) {
    let listener = net.listen(args[0])
    print(listener.address)
    loop { spawn serve(net.accept(listener)) }
}
"""


def echo(folder, address, *options):
    source = folder / "echo.han"
    source.write_text(ECHO)
    return Program([CROWNYC, "run", *options, source, address], cwd=folder)


def talk(connection, data):
    """Sends all while reading as much."""
    got = []
    writer = threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)))
    writer.start()
    while True:
        more = connection.recv(65536)
        if not more:
            break
        got.append(more)
    writer.join(DEADLINE_S)
    return b"".join(got)


def test_echo_for_many(folder):
    server = echo(folder, "127.0.0.1:0")
    port = int(server.wait_line(r"^127\.0\.0\.1:(\d+)$").group(1))
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
    for number, connection in enumerate(connections):
        data = os.urandom(1000 + 20011 * number)
        check(talk(connection, data) == data, f"the echo of {len(data)} bytes")
        connection.close()


def sleep_count(pid):
    """How often a process that sleeps now has gone to sleep; None when it does not."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    sleeps = re.search(r"^State:\s+S", status, re.M)
    return sleeps and re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.M)[1]


def unread_bytes(port, peer_port):
    """Of the connection's end at `port`, on IPv4."""
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues = line.split()[:5]
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (port, peer_port):
            return int(queues.split(":")[1], 16)
    return 0


def test_a_peer_that_does_not_read_slows_down(folder):
    """The echo stops reading while its own write waits: what the kernel holds is all that goes in."""
    server = echo(folder, "127.0.0.1:0")
    port = int(server.wait_line(r":(\d+)$").group(1))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        sent = [0]

        def is_stuck():
            """Nothing goes in, and the server sleeps on while bytes lie there for it."""
            with contextlib.suppress(BlockingIOError):
                while sent[0] < 64 << 20:
                    sent[0] += connection.send(b"x" * 65536)
            before, unread = sleep_count(server.pid), unread_bytes(port, connection.getsockname()[1])
            turn.wait(0.01)
            return sent[0] >= 64 << 20 or before and unread and sleep_count(server.pid) == before

        turn = threading.Event()
        wait_until(is_stuck, "the server stopped reading")
        check(sent[0] < 64 << 20, f"{sent[0]} bytes went in without one being read")
        memory = int(next(line for line in open(f"/proc/{server.pid}/status") if line.startswith("VmRSS")).split()[1])
        check(memory < 100000, f"the server holds {memory} kB")


def test_connect_finish_and_errors(folder):
    code, out, err = han(folder, """
import "net"
import "task"
fn attempt(f) { try { print(f()) } catch e { print(e.kind) } }
fn once(listener) {
    let peer = net.accept(listener, 5000)
    print("server got", net.read(peer))
    print("then", net.read(peer))
    net.write(peer, "answer")
    net.close(peer)
}
export fn main(args) {
    let first = net.listen("127.0.0.1:0")
    let address = first.address
    let server = spawn once(first)
    let listener = net.listen("127.0.0.1:0")
    let connection = net.connect(address)
    print(connection.peer == address, kind_of(connection), kind_of(listener))
    net.write(connection, "question")
    net.finish(connection)
    print(net.read(connection), net.read(connection), net.read(connection))
    task.wait(server)
    net.close(connection)
    net.close(connection)
    attempt(fn () { return net.read(connection) })
    attempt(fn () { return net.write(connection, "x") })
    attempt(fn () { return net.read(listener) })
    attempt(fn () { return net.accept(listener, 20) })
    let waiting = net.connect(listener.address)
    attempt(fn () { return net.read(waiting, 20) })
    attempt(fn () { return net.read(waiting, 0) })
    attempt(fn () { return net.listen(listener.address) })
    attempt(fn () { return net.listen("localhost:1") })
    attempt(fn () { return net.connect("127.0.0.1:0") })
    attempt(fn () { return net.connect("nonsense") })
    attempt(fn () { return net.connect("127.0.0.1:1", 86400001) })
    net.close(listener)
    attempt(fn () { return net.accept(listener) })
    attempt(fn () { return net.accept(first) })
    attempt(fn () { return net.connect(args[0]) })
    attempt(fn () { return net.connect("unix:no-such-socket") })
}
""", f"127.0.0.1:{free_port()}")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ["true connection listener", "server got question", "then nil", "answer nil nil",
                                   "closed",
                                   "closed", "type", "timeout", "timeout", "value", "address_in_use", "bad_address",
                                   "bad_address", "bad_address", "value", "closed", "closed", "refused", "permission"],
                                   "results")


def test_a_closed_handle_wakes_its_reader(folder):
    code, out, err = han(folder, """
import "net"
import "task"
let kept = ref(nil)
fn reader(connection) { try { net.read(connection) } catch e { print(e.kind) } }
export fn main(args) {
    let listener = net.listen("127.0.0.1:0")
    let connection = net.connect(listener.address)
    kept.value = connection
    let other = spawn borrower()
    task.sleep(0)                            // it has had its turn, and waits in read
    net.close(connection)
    task.wait(other)
}
fn borrower() { reader(kept.value) }
""")
    check_equal((code, out, err), (EXIT_OK, "closed\n", ""), "a reader of a connection that is closed")


def test_unix_sockets(folder):
    """Below the working folder only; the file is made, used, and removed."""
    work = folder / "work"
    work.mkdir()
    (work / "out").symlink_to("..")
    server = echo(work, "unix:app.sock", "--allow", "write")
    server.wait_line("^unix:app.sock$")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(work / "app.sock"))
        check_equal(talk(connection, b"over unix"), b"over unix", "echo")
    for address, options in (("unix:../app.sock", ["--allow", "write"]), ("unix:out/app.sock", ["--allow", "write"]),
                             ("unix:here.sock", [])):
        code, _, err = run([CROWNYC, "run", *options, work / "echo.han", address], cwd=work)
        check_equal(code, EXIT_PROGRAM, f"exit code of listening on {address}")
        check_in("permission denied", err, f"listening on {address}")
    code, out, err = han(work, """
import "net"
import "fs"
export fn main(args) {
    let listener = net.listen("unix:mine.sock")
    let connection = net.connect("unix:mine.sock")
    let peer = net.accept(listener)
    net.write(connection, "hello")
    print(net.read(peer), fs.exists("mine.sock"))
    net.close(listener)
    print(fs.exists("mine.sock"))
    try { net.connect("unix:out/secret.sock") } catch e { print(e.kind) }
}
""", options=["--allow", "write,read=."])
    check_equal((code, out, err), (EXIT_OK, "hello true\nfalse\npermission\n", ""), "a program with both ends")
    for options, wanted in (((), "permission"), (("--allow", "write"), "connected")):
        code, out, err = han(work, """
import "net"
export fn main(args) { try { net.connect("unix:app.sock") print("connected") } catch e { print(e.kind) } }
""", options=options)
        check_equal((code, out, err), (EXIT_OK, wanted + "\n", ""), f"connecting with {options}")


# -- http.request -----------------------------------------------------------------------------------------------------

def test_http_client(folder):
    upstream = Upstream("up")
    code, out, err = han(folder, """
import "http"
export fn main(args) {
    let answer = http.get("\\(args[0])/a/b?c=d")
    print(answer.status, answer.body, answer.fields["x-upstream"], answer.fields["content-type"])
    print(http.request("POST", args[0], {body: "the body", fields: {"X-A": "1"}}).body)
    let up = http.upstream("\\(args[0])/base")
    print(http.get(up, {path: "/x"}).body)
    let head = http.request("HEAD", args[0])
    print(head.status, len(head.body))
}
""", upstream.url)
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ["200 up GET /a/b?c=d up text/plain", "up POST / the body", "up GET /base/x",
                                   "200 0"], "answers")
    check_equal([r[0:2] for r in upstream.requests], [("GET", "/a/b?c=d"), ("POST", "/"), ("GET", "/base/x"), ("HEAD",
                                                                                                               "/")],
                "requests")
    check_equal(upstream.requests[1][2]["X-A"], "1", "a field")
    check_equal(upstream.requests[0][2]["Host"], upstream.url[7:], "Host")


class Raw:
    """A server that answers each connection with given bytes once it has a head, and closes it when told to."""

    def __init__(self, answers):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = 0
        self.answers = answers
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        for answers in self.answers:
            connection, _ = self.listener.accept()
            self.connections += 1
            for answer in answers:
                head = b""
                while b"\r\n\r\n" not in head:
                    more = connection.recv(65536)
                    if not more:
                        break
                    head += more
                if answer is None:
                    break
                connection.sendall(answer)
            connection.close()


def one(folder, answers, options="{}", calls=1):
    raw = Raw(answers)
    code, out, err = han(folder, """
import "http"
export fn main(args) {
    for i in 0..int(args[1]) {
        try {
            let answer = http.get(args[0], OPTIONS)
            print(answer.status, answer.body, answer.fields)
        } catch e { print(e.kind, e.message) }
    }
}
""".replace("OPTIONS", options), f"http://127.0.0.1:{raw.port}/", str(calls))
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    return out.splitlines(), raw.connections


def test_http_answers_of_all_framings(folder):
    length = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nA: 1\r\na: 2\r\nSet-Cookie: x=1, y\r\nSet-Cookie: z\r\n\r\nabc"
    chunked = b"HTTP/1.1 201 Made\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\nT: 1\r\n\r\n"
    until_close = b"HTTP/1.1 200 OK\r\n\r\nto the end"
    interim = b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 204 None\r\n\r\n"
    lines, connections = one(folder, [[length, chunked, interim, until_close]], calls=4)
    check_equal(lines, ['200 abc {"content-length": "3", "a": "1, 2", "set-cookie": ["x=1, y", "z"]}',
                        '201 abcdefg {"transfer-encoding": "chunked"}', "204  {}", "200 to the end {}"], "answers")
    check_equal(connections, 1, "connections for four requests")


def test_http_redirects_are_shown(folder):
    lines, _ = one(folder, [[b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n"]])
    check_equal(lines, ['302  {"location": "/next", "content-length": "0"}'], "answer")


def test_http_failures(folder):
    check(one(folder, [[b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"]])[0][0].startswith("http "), "a short body")
    check(one(folder, [[b"nonsense\r\n\r\n"]])[0][0].startswith("http "), "no HTTP")
    check(one(folder, [[None]])[0][0].startswith("http "), "no answer")
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
    check_equal(one(folder, [[body]], "{body_bytes_max: 10}")[0][0].split()[:2], ["200", "0123456789"],
                "a body at its bound")
    lines, _ = one(folder, [[body]], "{body_bytes_max: 9}")
    check(lines[0].startswith("too_large http.request: GET http://127.0.0.1:"), lines[0])
    check_in("(body_bytes_max: 9)", lines[0], "message")
    for options in ('{path: "/x"}', '{follow: true}', '{timeout_ms: 0}', '{fields: {"Content-Length": "3"}}',
                    '{fields: {"A": "b\\r\\nC: d"}}', '{host: "a b"}'):
        lines, connections = one(folder, [], options)
        check(lines[0].startswith("value http.request: "), f"{options}: {lines[0]}")
        check_equal(connections, 0, "connections")


def test_a_reused_connection_that_died_is_tried_again(folder):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
    lines, connections = one(folder, [[answer + b"1", None], [answer + b"2"]], calls=2)
    check_equal([line.split()[1] for line in lines], ["1", "2"], "answers")
    check_equal(connections, 2, "connections")


def test_timeout_and_default_bound(folder):
    upstream = Upstream("slow")
    code, out, err = han(folder, """
import "http"
export fn main(args) {
    try { http.get("\\(args[0])/hold", {timeout_ms: 50}) } catch e { print(e.kind) }
    try { http.get("ftp://x/") } catch e { print(e.kind) }
    try { http.get("http://127.0.0.1:\\(args[1])/") } catch e { print(e.kind) }
    try { http.request("CONNECT", args[0]) } catch e { print(e.kind) }
    try { http.get("\\(args[0])/../x") } catch e { print(e.kind) }
}
""", upstream.url, str(free_port()))
    check_equal((code, err, out.splitlines()), (EXIT_OK, "", ["timeout", "bad_address", "refused", "unsupported",
                                                              "value"]), "errors")


def test_a_handler_asks_others(folder):
    """An auth subrequest: many at once, while the answer is held back, and the client that goes away ends its own."""
    upstream = Upstream("auth")
    source = folder / "server.han"
    source.write_text("""
import "http"
import "process"
export fn handle(request) { return http.respond(200, http.get("\\(process.args()[1])\\(request.path)").body) }
export fn main(args) { http.serve({listen: [args[0]], banner: "ready"}) }
""")
    port = free_port()
    server = Program([CROWNYC, "run", source, f"127.0.0.1:{port}", upstream.url], cwd=folder)
    server.wait_line("^ready$")
    gone = socket.create_connection(("127.0.0.1", port))
    gone.sendall(b"GET /hold/gone HTTP/1.1\r\nHost: h\r\n\r\n")
    upstream.held()
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(request(port, "h",
                                                                          f"/hold/{i}").body)) for i in range(20)]
    for thread in threads:
        thread.start()
    upstream.held(20)
    check_equal(request(port, "h", "/now").body, b"auth GET /now", "meanwhile")
    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    gone.close()
    server.wait_line("is gone", "err")
    upstream.release()
    for thread in threads:
        thread.join(DEADLINE_S)
    check_equal(sorted(answers), sorted(f"auth GET /hold/{i}".encode() for i in range(20)), "answers")


def test_a_write_cut_off_closes_the_connection_and_keeps_the_handle(folder):
    """The handle is used after the kernel's side has gone: read, write, fields and close, by deadline and by cancel."""
    code, out, err = han(folder, """
import "net"
import "task"
import "text"
fn sink(l) { let c = net.accept(l)  task.sleep(60000) }
fn push(c, big) { net.write(c, big) }
fn say(f) { try { print(f()) } catch e { print(e.kind) } }
fn use(c) {
    task.sleep(1)                            // a turn of the loop: the kernel's side is closed by now
    say(fn () { return net.read(c, 100) })
    say(fn () { return net.write(c, "x") })
    say(fn () { return c.peer })
    say(fn () { return c.local })
    net.close(c)
}
export fn main(args) {
    let l = net.listen("127.0.0.1:0")
    let t = spawn sink(l)
    let big = text.repeat("x", 32000000)
    let c = net.connect(l.address)
    say(fn () { return net.write(c, big, 100) })
    use(c)
    let u = spawn sink(l)
    let d = net.connect(l.address)
    let w = spawn push(d, big)
    task.sleep(0)                            // what the kernel takes at once is on its way
    task.cancel(w)
    use(d)
    task.cancel(t)
    task.cancel(u)
    try { net.listen("127.0.0.1:99999") } catch e { print(e.kind) }
    print("end")
}
""")
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ["timeout"] + ["closed"] * 8 + ["bad_address", "end"], "lines")


def test_no_secret_of_a_url_is_in_an_error(folder):
    code, out, err = han(folder, """
import "http"
fn say(f) { try { f() } catch e { print(e.message) } }
export fn main(args) {
    say(fn () { return http.get("http://user:secret@127.0.0.1:\\(args[0])/p?token=secret") })
    say(fn () { return http.get("https://user:secret@127.0.0.1:\\(args[0])/p?token=secret#secret") })
    say(fn () { return http.get("http://127.0.0.1:\\(args[0])/p?token=secret") })
    say(fn () { return http.get("http://127.0.0.1:\\(args[0])/p?token=secret\\u{1}") })
    say(fn () { return http.get("user:secret@h?secret") })
}
""", str(free_port()))
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(len(out.splitlines()), 5, out)
    check("secret" not in out, out)
    check_in("/p: connection refused", out, "what is left")


run_all(globals())
