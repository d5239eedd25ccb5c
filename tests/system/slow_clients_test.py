#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/slow_clients_test.py: proves that clients which hold connections do not keep others out: with fewer
# descriptors than there are of them, in each of the four ways that slowhttptest knows (a head that does not end, a body
# that does not come, many ranges, an answer that nobody reads) a new client is answered; the log says what was done.
# The same for who never ends its handshake, its PROXY header, or an answer that ended the connection, and for streams
# of HTTP/2; and that idle connections of one upstream do not keep requests from another.

import contextlib
import http.server
import os
import pathlib
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from certificates import Authority  # noqa: E402
from harness import (CROWNYC, DEADLINE_S, Program, Upstream, check, check_equal, environment, free_port,  # noqa: E402
                     request, run_all)

SERVER = """
import "http"
import "text"
export fn main(args) {
    http.serve({listen: ["127.0.0.1:%d"], banner: "ready", min_rate: 1000, min_rate_grace_ms: 300, body_ms: 500})
}
let page = ""
export fn configure(input) { page = text.repeat("x", 4000000) }
export fn handle(request) {
    if request.path == "/large" { return http.respond(200, page) }
    return http.respond(200, "here")
}
"""
DESCRIPTORS = 128  # less than half of them may be clients: a few are the server's, an eighth is for pipes


class Slow:
    def __init__(self, port, words):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.more(words)

    def more(self, words):
        try:
            self.socket.send(words)
        except (BlockingIOError, ConnectionResetError, BrokenPipeError):
            pass


def start(folder, program):
    source = folder / "server.han"
    source.write_text(program)
    server = Program(["sh", "-c", f"ulimit -n {DESCRIPTORS}; exec '{CROWNYC}' run '{source}'"], cwd=folder,
                     env=environment())
    server.wait_line("ready")
    return server


def serve(folder):
    port = free_port()
    return start(folder, SERVER % port), port


def hold(folder, words, count=2 * DESCRIPTORS, evicts=True):
    server, port = serve(folder)
    slow = []
    for i in range(count):
        slow.append(Slow(port, words))
        if i % 40 == 39:
            answer = request(port, "a.local", "/")
            check_equal((answer.status, answer.body), (200, b"here"), f"another client beside {i + 1} slow ones")
    if evicts:
        server.wait_line("as many clients as may be: .* closed [0-9]+ that let us wait the longest", "err")
    for one in slow:
        one.socket.close()


def test_heads_that_do_not_end(folder):
    hold(folder, b"GET / HTTP/1.1\r\nHost: a.local\r\nX-a: b\r\n")


def test_connections_that_say_nothing(folder):
    hold(folder, b"")


def test_ranges(folder):
    """A server that knows no ranges answers with the whole; here the point is only that nothing is held."""
    ranges = ",".join(f"5-{i}" for i in range(1000)).encode()
    hold(folder, b"GET / HTTP/1.1\r\nHost: a.local\r\nRange: bytes=" + ranges + b"\r\n\r\n")


def test_clients_that_wait_behind_their_last_answer(folder):
    """A fault is answered and the connection then read on for a while, so that the answer arrives."""
    hold(folder, b"nonsense\r\n\r\n")


BEFORE_HTTP = """
import "http"
export fn main(args) {
    http.serve({listen: ["127.0.0.1:%d", {address: "127.0.0.1:%d", tls: http.tls({certificates: [{cert: "a.pem",
        key: "a.key"}]})}, "127.0.0.1:%d"], proxy_protocol: {"127.0.0.1:%d": true}, banner: "ready"})
}
export fn handle(request) { return http.respond(200, "here") }
"""


def hold_before_http(folder, words, which):
    """Clients of the listener `which` hold every connection; others of each listener are answered."""
    authority, ports = Authority(folder), [free_port() for _ in range(3)]
    authority.make("a", "DNS:a.test")
    (folder / "server.han").write_text(BEFORE_HTTP % (*ports, ports[2]))
    server = Program(["sh", "-c", f"ulimit -n {DESCRIPTORS}; exec '{CROWNYC}' run server.han"], cwd=folder,
                     env=environment())
    server.wait_line("ready")
    slow, secure = [], authority.client()

    def plain(client):
        return client

    def tls(client):
        return secure.wrap_socket(client, server_hostname="a.test")

    others = ((ports[0], b"", plain), (ports[1], b"", tls), (ports[2], b"PROXY UNKNOWN\r\n", plain))

    def ask(port, header, wrap):
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
            client.sendall(header)
            with wrap(client) as stream:
                stream.sendall(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n")
                return stream.recv(12)

    for i in range(2 * DESCRIPTORS):
        slow.append(Slow(ports[which], words))
        if i % 40 == 39:
            for port, header, wrap in others:
                check_equal(ask(port, header, wrap), b"HTTP/1.1 200", f"another client beside {i + 1} slow ones")
    server.wait_line("as many clients as may be: .* closed [1-9][0-9]* that let us wait the longest", "err")
    for one in slow:
        one.socket.close()


def test_handshakes_that_do_not_begin(folder):
    hold_before_http(folder, b"", 1)


def test_handshakes_that_do_not_end(folder):
    hold_before_http(folder, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 1)


def test_proxy_headers_that_do_not_end(folder):
    hold_before_http(folder, b"PROXY TCP4 1.2", 2)


def held_for_a_while(folder, words):
    """What holds a request is not closed for others at once. They wait until it may be, and are not reset."""
    server, port = serve(folder)
    slow = []
    for i in range(2 * DESCRIPTORS):
        slow.append(Slow(port, words))
        if i % 40 == 39:
            answer = request(port, "a.local", "/")
            check_equal((answer.status, answer.body), (200, b"here"), f"another client beside {i + 1} slow ones")
    server.wait_line("as many clients as may be: .* closed [1-9][0-9]* that let us wait the longest", "err")
    for one in slow:
        one.socket.close()
    check_equal(request(port, "a.local", "/").status, 200, "when they have gone")


def test_bodies_that_do_not_come(folder):
    held_for_a_while(folder, b"POST / HTTP/1.1\r\nHost: a.local\r\nContent-Length: 100000\r\n\r\nx")


def test_answers_that_nobody_reads(folder):
    held_for_a_while(folder, b"GET /large HTTP/1.1\r\nHost: a.local\r\n\r\n")


class LargeUpstream(http.server.ThreadingHTTPServer):
    """Its answers are long enough to pass through pipes."""
    daemon_threads, request_queue_size = True, 256

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            body = b"x" * (8 << 20) if self.path == "/large" else b"here"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_):
            pass

    def __init__(self):
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass  # the gateway took its request back


PROXY = """
import "http"
let verdict = nil
export fn main(args) {{ http.serve({{listen: ["127.0.0.1:{port}"], banner: "ready"}}) }}
export fn configure(input) {{ verdict = http.proxy(http.upstream("{url}")) }}
export fn handle(request) {{ return verdict }}
"""


def pipes_of(pid):
    """Descriptors of pipes that a process has; 0 where the system does not say."""
    folder, count = pathlib.Path(f"/proc/{pid}/fd"), 0
    for one in folder.iterdir() if folder.is_dir() else ():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            count += os.readlink(one).startswith("pipe:")
    return count


def test_long_answers_of_upstreams_that_nobody_reads(folder):
    """Each takes a descriptor for its client, one for its upstream and, in a pipe, two more. Pipes have a part of the
    descriptors and no more, so that neither accepting nor connecting finds that there is none."""
    port, back = free_port(), LargeUpstream()
    server = start(folder, PROXY.format(port=port, url=back.url))
    own, slow = pipes_of(server.pid), []
    for i in range(2 * DESCRIPTORS):
        slow.append(Slow(port, b"GET /large HTTP/1.1\r\nHost: a.local\r\n\r\n"))
        if i % 20 == 19:
            answer = request(port, "a.local", "/")
            check_equal((answer.status, answer.body), (200, b"here"), f"another client beside {i + 1} slow ones")
            count = pipes_of(server.pid) - own
            check(count <= DESCRIPTORS // 8, f"{count} descriptors of pipes beside {i + 1} slow clients")
    for one in slow:
        one.socket.close()
    check_equal(request(port, "a.local", "/").status, 200, "when they have gone")
    server.end()
    check("descriptors ran out" not in server.text(), f"descriptors ran out:\n{server.text()}")
    back.shutdown()
    back.server_close()


def h2_frame(kind, flags, stream, payload):
    return struct.pack(">IBBI", len(payload), kind, flags, stream)[1:] + payload


def h2_client(window, method, path, end, fields=b""):
    """A preface, SETTINGS with streams' window, one for the connection, HEADERS (`end`: its flags)."""
    headers, settings, window_update, initial_window = 1, 4, 8, 4
    block = {b"GET": b"\x82", b"POST": b"\x83"}[method] + b"\x86\x41\x07a.local"
    block += b"\x04" + bytes([len(path)]) + path + fields
    return (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
            h2_frame(settings, 0, 0, struct.pack(">HI", initial_window, window)) +
            h2_frame(window_update, 0, 0, struct.pack(">I", 1 << 30)) + h2_frame(headers, end, 1, block))


END_STREAM, END_HEADERS, WINDOW = 1, 4, 65535
H2_ROWS = (
    ("a head that does not end", h2_client(WINDOW, b"GET", b"/", END_STREAM)),
    ("a body that does not come", h2_client(WINDOW, b"POST", b"/", END_HEADERS, b"\x0f\x0d\x0210")),
    ("a window that stays shut", h2_client(0, b"GET", b"/", END_STREAM | END_HEADERS)),
    ("an answer that nobody reads", h2_client(1 << 30, b"GET", b"/large", END_STREAM | END_HEADERS)),
)


def test_streams_of_http2(folder):
    """The server's own times are longer than what a client here waits: only making room helps."""
    for name, words in H2_ROWS:
        port, back = free_port(), LargeUpstream()
        patient = PROXY.replace('banner: "ready"', 'banner: "ready", body_ms: 60000, header_ms: 60000, min_rate: 0')
        server = start(folder, patient.format(port=port, url=back.url))
        slow = []
        for i in range(2 * DESCRIPTORS):
            slow.append(Slow(port, words))
            if i % 40 == 39:
                answer = request(port, "a.local", "/")
                check_equal((answer.status, answer.body), (200, b"here"), f"another client beside {i + 1}: {name}")
        server.wait_line("as many clients as may be: .* closed [1-9][0-9]* that let us wait the longest", "err")
        for one in slow:
            one.socket.close()
        check_equal(request(port, "a.local", "/").status, 200, f"when they have gone: {name}")
        server.end()
        back.shutdown()
        back.server_close()


BEHIND = """
import "http"
export fn main(args) {{
    http.serve({{listen: ["127.0.0.1:{port}"], banner: "ready", proxy_protocol: {{"127.0.0.1:{port}": true}}}})
}}
export fn handle(request) {{ return http.respond(200, "here") }}
"""
HEADER = b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n"
CLOSING = b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"


def whole_answer(stream, words):
    stream.sendall(words)
    answer = b""
    while piece := stream.recv(65536):
        answer += piece
    return answer.partition(b"\r\n")[0], answer[-4:]


def hold_beside(port, words, one):
    """As `hold`, where another client is not as simple as a request: `one` asks as one, on its connection."""
    slow = []
    for i in range(2 * DESCRIPTORS):
        slow.append(Slow(port, words))
        if i % 40 == 39:
            with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as raw:
                check_equal(one(raw), (b"HTTP/1.1 200 OK", b"here"), f"another client beside {i + 1} slow ones")
    for other in slow:
        other.socket.close()


def test_behind_a_load_balancer(folder):
    for words in (b"", b"PROXY TCP4 ", HEADER, HEADER + CLOSING.replace(b"Connection: close\r\n", b"")):
        port = free_port()
        server = start(folder, BEHIND.format(port=port))
        hold_beside(port, words, lambda raw: whole_answer(raw, HEADER + CLOSING))
        server.wait_line("as many clients as may be: .* closed [0-9]+ that let us wait the longest", "err")
        server.end()


POOLS = """
import "http"
let verdicts = {{}}
export fn main(args) {{ http.serve({{listen: ["127.0.0.1:{port}"], banner: "ready"}}) }}
export fn configure(input) {{
    verdicts = {{"a": http.proxy(http.upstream("{a}")), "b": http.proxy(http.upstream("{b}")),
        "c": http.proxy(http.upstream("{c}"))}}
}}
export fn handle(request) {{ return verdicts[request.host] }}
"""


def test_idle_connections_of_other_upstreams(folder):
    """As many clients as may be ask one upstream after the other. What the first ones keep goes when another needs it:
    a client that was let in is not told 502 because connections idle."""
    count = DESCRIPTORS // 2 - 24  # so that newcomers find room without closing one of them
    port, backs = free_port(), {name: Upstream(name) for name in "abc"}
    server = start(folder, POOLS.format(port=port, **{name: back.url for name, back in backs.items()}))
    clients = [socket.create_connection(("127.0.0.1", port), DEADLINE_S) for _ in range(count)]
    for name, back in backs.items():
        for client in clients:
            client.sendall(f"GET /hold HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
        back.held(count)
        back.release()
        for client in clients:
            answer = b""
            while not answer.endswith(f"{name} GET /hold".encode()):
                piece = client.recv(65536)
                check(piece, f"the connection ended behind {answer!r}")
                answer += piece
            check(answer.startswith(b"HTTP/1.1 200 "), f"answer {answer!r}")
    server.wait_line("descriptors ran out: closed [0-9]+ idle connections? of upstreams", "err")
    for client in clients:
        client.close()


run_all(globals())
