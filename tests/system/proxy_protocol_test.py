#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/proxy_protocol_test.py: proves that a listener which wants a PROXY header takes the client's address from
# it, closes what has none, a bad one or no right to one, and that an upstream gets such a header; that UNIX sockets and
# IPv6 addresses are listened on and connected to; that inherited sockets (fd@N) are served; and that gateway.yaml can
# ask for headers and for UNIX sockets.

import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BANNER, CROWNYC, DEADLINE_S, EXIT_CANNOT_LISTEN, EXIT_OK, Program, Upstream, check,  # noqa: E402
                     check_equal, check_in, compile_gateway, environment, free_port, request, run_all)

V2 = b"\r\n\r\n\0\r\nQUIT\n"


class Server(Program):
    def __init__(self, folder, listen, handle, options="", head="", wait=True):
        source = folder / f"server{free_port()}.han"
        source.write_text(f"""
import "http"
import "process"
{head}
export fn main(args) {{ http.serve({{listen: {listen}, banner: "serving"{options}}}) }}
export fn handle(request) {{ {handle} }}
""")
        super().__init__([CROWNYC, "run", "--allow", "write", source], cwd=folder)
        if wait:
            self.wait_line("serving")

    def stop(self):
        self.send(signal.SIGTERM)
        check_equal(self.wait_exit(), EXIT_OK, "exit code")


def exchange(target, data):
    """Everything that comes back for `data`, until the server closes."""
    family = socket.AF_UNIX if isinstance(target, str) else socket.AF_INET6 if ":" in target[0] else socket.AF_INET
    with socket.socket(family) as stream:
        stream.settimeout(DEADLINE_S)
        stream.connect(target)
        stream.sendall(data)
        answer = b""
        try:
            while piece := stream.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
        return answer


REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def body(answer):
    check(answer.startswith(b"HTTP/1.1 200 "), f"answer {answer!r}")
    return answer.partition(b"\r\n\r\n")[2].decode()


def test_a_header_says_who_the_client_is(folder):
    port = free_port()
    server = Server(folder, f'["127.0.0.1:{port}"]', "return http.respond(200, request.client)",
                    f', proxy_protocol: {{"127.0.0.1:{port}": true}}')
    at = ("127.0.0.1", port)
    check_equal(body(exchange(at, b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n" + REQUEST)), "192.0.2.7", "version 1")
    check_equal(body(exchange(at, b"PROXY TCP6 2001:db8::7 ::1 4000 80\r\n" + REQUEST)), "2001:db8::7", "IPv6")
    check_equal(body(exchange(at, b"PROXY UNKNOWN\r\n" + REQUEST)), "127.0.0.1", "version 1, unknown")
    two = V2 + b"\x21\x11\x00\x0f" + bytes([192, 0, 2, 9, 192, 0, 2, 1, 1, 1, 0, 80]) + b"\x04\0\0"
    check_equal(body(exchange(at, two + REQUEST)), "192.0.2.9", "version 2 with an extension")
    check_equal(body(exchange(at, V2 + b"\x20\0\0\0" + REQUEST)), "127.0.0.1", "version 2, local")
    # one byte at a time
    with socket.create_connection(at, DEADLINE_S) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in two + REQUEST:
            stream.sendall(bytes([byte]))
        answer = b""
        while piece := stream.recv(4096):
            answer += piece
    check_equal(body(answer), "192.0.2.9", "byte by byte")
    # wrong ones: closed without an answer, and the log says why
    for data, why in ((REQUEST, "does not begin with a PROXY header"),
                      (b"PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n" + REQUEST, "malformed addresses"),
                      (V2 + b"\x31\x11\0\0", "version is not 2")):
        check_equal(exchange(at, data), b"", f"answer to {data!r}")
        server.wait_line(why, "err")
    with socket.create_connection(at, DEADLINE_S) as stream:
        stream.sendall(b"PROXY TCP4 1.")
    server.wait_line("ended inside its PROXY header", "err")
    server.stop()


def test_a_header_that_never_ends(folder):
    port = free_port()
    server = Server(folder, f'["127.0.0.1:{port}"]', 'return http.respond(200, "")',
                    f', proxy_protocol: {{"127.0.0.1:{port}": ["127.0.0.0/8"]}}')
    check_equal(exchange(("127.0.0.1", port), b"PROXY "), b"", "answer")  # LIMIT_PROXY_PROTOCOL_MS later
    server.wait_line("did not come in time", "err")
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S):  # the end does not wait for who says nothing
        server.stop()


def test_only_who_is_trusted(folder):
    port = free_port()
    server = Server(folder, f'["127.0.0.1:{port}"]', "return http.respond(200, request.client)",
                    f', proxy_protocol: {{"127.0.0.1:{port}": ["10.0.0.0/8", "::1"]}}')
    check_equal(exchange(("127.0.0.1", port), b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n" + REQUEST), b"", "answer")
    server.wait_line("not trusted", "err")
    server.stop()


def test_ranges_are_bounded(folder):
    """LIMIT_PROXY_PROTOCOL_PEERS of them, and one more."""
    for count, wanted in ((64, "serving"), (65, "1..64 address ranges")):
        port = free_port()
        ranges = ", ".join(f'"10.{i}.0.0/16"' for i in range(count))
        server = Server(folder, f'["127.0.0.1:{port}"]', 'return http.respond(200, "")',
                        f', proxy_protocol: {{"127.0.0.1:{port}": [{ranges}]}}', wait=False)
        server.wait_line(wanted, "out" if count == 64 else "err")


class Raw:
    """Answers each connection's first request and keeps what came."""

    def __init__(self, family, address):
        self.listener = socket.socket(family)
        self.listener.bind(address)
        self.listener.listen()
        self.seen = []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                stream, _ = self.listener.accept()
            except OSError:
                return
            data = b""
            while b"\r\n\r\n" not in data.replace(V2, b""):
                data += stream.recv(4096)
            self.seen.append(data)
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def end(self):
        self.listener.close()


def proxied(folder, port, url, options):
    return Server(folder, f'["127.0.0.1:{port}"]', "return verdict", head=f"""
let verdict = nil
export fn configure(input) {{ verdict = http.proxy(http.upstream("{url}", {options})) }}
""")


def test_an_upstream_gets_the_header(folder):
    upstream = Raw(socket.AF_INET, ("127.0.0.1", 0))
    back = upstream.listener.getsockname()[1]
    for version in ("v1", "v2"):
        port = free_port()
        server = proxied(folder, port, f"http://127.0.0.1:{back}", f'{{proxy_protocol: "{version}"}}')
        with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
            ours = client.getsockname()[1]
            for _ in range(2):  # the client's connection is kept, the upstream's is not
                client.sendall(REQUEST.replace(b"Connection: close\r\n", b""))
                answer = b""
                while not answer.endswith(b"ok"):
                    answer += client.recv(4096)
        if version == "v1":
            header = f"PROXY TCP4 127.0.0.1 127.0.0.1 {ours} {port}\r\n".encode()
        else:
            header = V2 + b"\x21\x11\0\x0c" + bytes([127, 0, 0, 1] * 2)
            header += ours.to_bytes(2, "big") + port.to_bytes(2, "big")
        check_equal(len(upstream.seen), 2, "connections to the upstream")
        for data in upstream.seen:
            check_equal(data[:len(header)], header, "the header")
            check(data[len(header):].startswith(b"GET / HTTP/1.1\r\n"), "the request behind it")
        upstream.seen.clear()
        server.stop()
    upstream.end()


GATEWAY = """listen:
- http: "127.0.0.1:{port}"
  proxy_protocol: [{peers}]
- http: "unix:{folder}/web.sock?mode=600"
- http: "unix:{folder}/proxied.sock"
  proxy_protocol: true
services:
- name: plain
  domain: plain.local
  upstream: {plain}
- name: first
  domain: first.local
  upstream: {{url: "http://127.0.0.1:{raw}", proxy_protocol: v1}}
- name: second
  domain: second.local
  upstream: {{url: "http://127.0.0.1:{raw}", proxy_protocol: v2}}
- name: bare
  domain: bare.local
  upstream: http://127.0.0.1:{raw}
"""


def test_the_gateway_has_all_of_it(folder):
    upstream, plain, port, own = Raw(socket.AF_INET, ("127.0.0.1", 0)), Upstream("up"), free_port(), free_port()
    yaml, at = folder / "gateway.yaml", ("127.0.0.1", port)

    def write(peers):
        yaml.write_text(GATEWAY.format(port=port, folder=folder, peers=peers, plain=plain.url,
                                       raw=upstream.listener.getsockname()[1]))

    def ask(target, host, head=b""):
        return body(exchange(target, head + REQUEST.replace(b"Host: a", b"Host: " + host)))

    write('10.0.0.0/8, "127.0.0.0/8"')
    gateway = Program([CROWNYC, "run", "--allow", f"write={folder}", compile_gateway(folder)], cwd=folder,
                      env=environment(GW_PORT=own, GW_BIND="127.0.0.1", GW_YAML=yaml, GW_WORKERS=1))
    gateway.wait_line(BANNER)
    header = b"PROXY TCP4 192.0.2.7 192.0.2.1 4000 80\r\n"
    for target, head, client in ((at, header, "192.0.2.7"), (str(folder / "proxied.sock"), header, "192.0.2.7"),
                                 (str(folder / "web.sock"), b"", "unix"), (("127.0.0.1", own), b"", "127.0.0.1")):
        check_equal(ask(target, b"plain.local", head), "up GET /", f"answer on {target}")
        check_equal(plain.requests[-1][2]["X-Forwarded-For"], client, f"who came on {target}")
    check_equal((folder / "web.sock").stat().st_mode & 0o777, 0o600, "mode")
    for target in (at, str(folder / "proxied.sock")):
        check_equal(exchange(target, REQUEST), b"", "answer without a header")
    two = V2 + b"\x21\x11\0\x0c" + bytes([192, 0, 2, 7, 192, 0, 2, 1]) + (4000).to_bytes(2, "big") + b"\0\x50"
    for host, sent in ((b"first.local", header), (b"second.local", two), (b"bare.local", b"")):
        check_equal(ask(at, host, header), "ok", f"answer of {host}")
        check_equal(upstream.seen[-1][:len(sent) + 4], sent + b"GET ", f"what the upstream of {host} got")
    write("10.0.0.0/8")
    gateway.send(signal.SIGHUP)
    gateway.wait_line(r"\(proxy_protocol\) stays as it was until a restart", "err")
    check_equal(ask(at, b"plain.local", header), "up GET /", "answer after the reload")
    gateway.send(signal.SIGTERM)
    check_equal(gateway.wait_exit(), EXIT_OK, "exit code")
    check(not (folder / "web.sock").exists(), "the file of the socket stays")
    write("10.0.0.0/8")
    gateway = Program([CROWNYC, "run", "--allow", f"write={folder}", compile_gateway(folder)], cwd=folder,
                      env=environment(GW_PORT=own, GW_BIND="127.0.0.1", GW_YAML=yaml, GW_WORKERS=1))
    gateway.wait_line(BANNER)
    check_equal(exchange(at, header + REQUEST), b"", "answer to a header of who may not send one")
    gateway.wait_line("not trusted", "err")
    upstream.end()


def test_unix_upstreams(folder):
    path = folder / "up.sock"
    upstream = Raw(socket.AF_UNIX, str(path))
    port = free_port()
    server = proxied(folder, port, f"http://unix:{path}:/base", "{}")
    check_equal(body(exchange(("127.0.0.1", port), b"GET /x HTTP/1.0\r\n\r\n")), "ok", "answer")
    check(upstream.seen[0].startswith(b"GET /base/x HTTP/1.1\r\nHost: localhost\r\n"), f"request {upstream.seen}")
    upstream.end()
    server.stop()


def test_unix_listeners(folder):
    path = folder / "web.sock"
    server = Server(folder, f'["unix:{path}"]', "return http.respond(200, request.client)")
    check_equal(body(exchange(str(path), REQUEST)), "unix", "the peer's text")
    other = Server(folder, f'["unix:{path}"]', 'return http.respond(200, "")', wait=False)
    check_equal(other.wait_exit(), EXIT_CANNOT_LISTEN, "exit code of a second one")
    check_in("address already in use", other.text("err"))
    server.send(signal.SIGKILL)  # its file stays
    server.wait_exit()
    check(path.exists(), "the file of a killed server is gone")
    server = Server(folder, f'["unix:{path}?mode=640"]', "return http.respond(200, request.client)")
    check_equal(path.stat().st_mode & 0o777, 0o640, "mode")
    check_equal(body(exchange(str(path), REQUEST)), "unix", "the peer's text")
    server.stop()
    check(not path.exists(), "the file stays")
    path.write_text("no socket")
    other = Server(folder, f'["unix:{path}"]', 'return http.respond(200, "")', wait=False)
    check_equal(other.wait_exit(), EXIT_CANNOT_LISTEN, "exit code over a file")
    check_equal(path.read_text(), "no socket", "the file")


def test_unix_sockets_need_the_right_to_write(folder):
    outside = pathlib.Path(folder, "..", "outside.sock").resolve()
    other = Server(folder, f'["unix:{outside}"]', 'return http.respond(200, "")', wait=False)
    check_equal(other.wait_exit(), EXIT_CANNOT_LISTEN, "exit code")
    check_in("permission denied", other.text("err"))
    check(not outside.exists(), "it was made all the same")


def test_ipv6(folder):
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return  # a machine without IPv6
    port, everywhere = free_port(), free_port()
    server = Server(folder, f'["[::1]:{port}", "[::]:{everywhere}"]', "return http.respond(200, request.client)")
    check_equal(body(exchange(("::1", port), REQUEST)), "::1", "[::1]")
    check_equal(body(exchange(("::1", everywhere), REQUEST)), "::1", "[::]")
    check_equal(body(exchange(("127.0.0.1", everywhere), REQUEST)), "127.0.0.1", "[::] over IPv4")
    server.stop()


def test_inherited_sockets(folder):
    """fd@N in a process without a master, and in workers; and a number that is no listening socket."""
    source = folder / "server.han"
    with socket.socket() as listener, socket.socket() as idle:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for workers in ("", "process.workers(2)"):
            for number, good in ((listener.fileno(), True), (idle.fileno(), False)):
                source.write_text(f"""
import "http"
import "process"
export fn main(args) {{ {workers}
    http.serve({{listen: ["fd@{number}"], banner: "serving"}}) }}
export fn handle(request) {{ return http.respond(200, "inherited") }}
""")
                server = Program([CROWNYC, "run", source], pass_fds=(number,))
                if good:
                    server.wait_line("serving")
                    check_equal(request(port, "a").body, b"inherited", "body")
                    server.send(signal.SIGTERM)
                    check_equal(server.wait_exit(), EXIT_OK, "exit code")
                else:
                    check_equal(server.wait_exit(), EXIT_CANNOT_LISTEN, "exit code of a socket that does not listen")


if __name__ == "__main__":
    run_all(globals())
