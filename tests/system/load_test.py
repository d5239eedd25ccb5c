#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/load_test.py: proves that crownyc load measures a gateway in front of an upstream in each of its ways,
# counts exactly what it sent, tells what failed, and says in both languages what it was given wrongly.

import contextlib
import http.server
import json
import pathlib
import re
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, Gateway, Program, Upstream, check,  # noqa: E402
                     check_equal, check_in, compile_gateway, environment, free_port, run, run_all)
from certificates import Authority  # noqa: E402

LIST_BYTES = 16 << 20


def load(*words, code=EXIT_OK, language="en"):
    """stdout of a run, as JSON where it is; checks the exit code and that stderr is silent."""
    found, out, err = run([CROWNYC, "--lang", language, "load", "--quiet", *words])
    check_equal((found, err), (code, ""), f"exit code and stderr of load {words}\n{out}")
    return json.loads(out) if "--json" in words else out


def gateway_of(folder, upstream):
    toau = compile_gateway(folder)
    return Gateway(toau, f"- name: a\n  domain: [a.test, b.test]\n  upstream: {upstream.url}\n", folder)


def test_against_the_gateway(folder):
    upstream = Upstream("up")
    gateway = gateway_of(folder, upstream)
    worker = gateway.workers()[0]
    url, to = "http://a.test/x", ["--connect", f"127.0.0.1:{gateway.port}"]
    ways = [[], ["--http10"], ["--new"], ["--http10", "--new"], ["--rate", "2000"], ["--rate", "2000", "--new"]]
    for way in ways:
        before = len(upstream.requests)
        told = load(url, *to, *way, "-n", "300", "-c", "10", "--same-body", "--watch-pid", worker, "--json")
        check_equal((told["measured"], told["well"], told["answered"]), (300, 300, 300), f"counts of {way}")
        check_equal(told["statuses"], {"200": 300}, f"statuses of {way}")
        check_equal(sum(told["faults"].values()), 0, f"faults of {way}")
        check_equal(len(upstream.requests) - before, 300, f"requests that reached the upstream, {way}")
        check_equal(told["opened"], 300 if "--new" in way else 10, f"connections of {way}")
        latency = told["latency_us"]
        check(0 < latency["p50"] <= latency["p99"] <= latency["max"], f"latency {told}")
        check_in("us_per_request", told["watched"], "watched")
        check_equal(upstream.requests[-1][1], "/x", "path")


def test_a_list_of_requests(folder):
    upstream = Upstream("up")
    gateway = gateway_of(folder, upstream)
    listed = folder / "list.txt"
    listed.write_text("# what is sent\n/one weight=3\nhttp://b.test/two\n/none host=nobody.test status=404  # refused\n"
                      "/three method=HEAD\r\n\n")
    told = load("http://a.test/", "--connect", f"127.0.0.1:{gateway.port}", "--list", listed, "-n", "600", "--json",
                "-c", "4", "--header", "X-Test: 1")
    check_equal(told["well"], 600, "well answered")
    seen = [(method, path, fields["Host"], fields["X-Test"]) for method, path, fields, _ in upstream.requests]
    counts = {one: seen.count(one) for one in set(seen)}
    check_equal(set(counts), {("GET", "/one", "a.test", "1"), ("GET", "/two", "b.test", "1"),
                              ("HEAD", "/three", "a.test", "1")}, "requests")
    check_equal(sum(counts.values()) + told["statuses"]["404"], 600, "requests in all")
    check(230 < counts[("GET", "/one", "a.test", "1")] < 370, f"weight 3 of 6: {counts}")


def test_bodies(folder):
    upstream = Upstream("up")
    body = folder / "body"
    body.write_bytes(b"z" * 100000)
    told = load(upstream.url + "/p", "--method", "POST", "--body", f"@{body}", "-n", "5", "-c", "1", "--json")
    check_equal(told["well"], 5, "well answered")
    check_equal([(one[0], len(one[3])) for one in upstream.requests], [("POST", 100000)] * 5, "requests")


def test_faults_are_told_and_fail(folder):
    upstream = Upstream("up")
    out = load(upstream.url, "-n", "20", "-c", "2", "--expect-status", "204", code=EXIT_PROGRAM)
    check_in("20  other status than expected", out, "report")
    out = load(upstream.url, "-n", "20", "-c", "2", "--expect-length", "1", code=EXIT_PROGRAM, language="ko")
    check_in("20  기대와 다른 본문 길이", out, "report")
    out = load(upstream.url, "-n", "20", "-c", "2", "--expect-crc32c", "0", code=EXIT_PROGRAM)
    check_in("20  other content of the body than expected", out, "report")
    told = load(upstream.url + "/hold", "-n", "3", "-c", "3", "--timeout", "0.2", "--json", code=EXIT_PROGRAM)
    check_equal(told["faults"]["timeout"], 3, "timeouts")
    check(told["latency_us"]["p50"] >= 199000, "a request that timed out has waited for its time")


def test_failures_are_told_one_by_one(folder):
    """A line for each, with the port that it was on: what the kernel says of that connection can be looked up."""
    upstream = Upstream("up")
    lines = folder / "failures"
    load(upstream.url, "-n", "5", "-c", "2", "--new", "--expect-status", "204", "--failures", lines, code=EXIT_PROGRAM)
    rows = [line.split("\t") for line in lines.read_text().splitlines()]
    check_equal([row[3:] for row in rows], [["status", "200"]] * 5, "word and status")
    for began, failed, port, *_ in rows:
        check(0 < int(began) <= int(failed) and int(port) > 0, f"{began} {failed} {port}")
    check_equal(len({row[2] for row in rows}), 5, "ports of five connections")
    load(upstream.url, "-n", "5", "-c", "2", "--failures", lines)
    check_equal(lines.read_text(), "", "without failures")
    code, _, err = run([CROWNYC, "load", "--quiet", upstream.url, "--failures", folder / "none" / "x"])
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("none/x: ", err, "message")


class SecureUpstream:
    """An HTTPS server inside the test, which answers everything with 200."""

    def __init__(self, context):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that does not trust us

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def test_https(folder):
    authority = Authority(folder)
    upstream = SecureUpstream(Authority.server(authority.make("a", "DNS:a.test")))
    try:
        to = ["--connect", f"127.0.0.1:{upstream.port}", "-n", "40", "-c", "4", "--json"]
        for trust in (["--insecure"], ["--ca", authority.path]):
            for way in ([], ["--new"]):
                told = load("https://a.test/", *to, *trust, *way)
                check_equal((told["well"], told["statuses"]), (40, {"200": 40}), f"result with {trust} {way}")
        for url, trust in (("https://a.test/", []), ("https://b.test/", ["--ca", authority.path])):
            code, out, err = run([CROWNYC, "load", "--quiet", url, *to, *trust])
            check_equal((code, out), (EXIT_PROGRAM, ""), f"exit code of {url} with {trust}")
            check_in("of 4 connections 0 were open", err, "message")
        code, _, err = run([CROWNYC, "load", "--quiet", "https://a.test/", *to, "--ca", folder / "none.pem"])
        check_equal(code, EXIT_PROGRAM, "exit code without the file")
        check_in("none.pem", err, "message")
    finally:
        upstream.end()


class Http2Server:
    """An HTTP/2 server frame by frame, which `answer` scripts: called for each request with (server, socket, stream,
    number of the request on its connection). `context`: over TLS."""

    def __init__(self, answer, context=None, speaks=True):
        self.answer, self.context, self.speaks = answer, context, speaks
        self.lock, self.connections, self.requests = threading.Lock(), 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as frames:
                frames.read(24)  # the preface
                if not self.speaks:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                    return
                with self.lock:
                    self.connections += 1
                self.send(connection, SETTINGS, 0, 0)
                number = 0
                while len(header := frames.read(9)) == 9:
                    frames.read(int.from_bytes(header[:3], "big"))
                    if header[3] != HEADERS:
                        continue
                    with self.lock:
                        self.requests += 1
                    number += 1
                    if not self.answer(self, connection, int.from_bytes(header[5:], "big"), number):
                        return

    @staticmethod
    def send(connection, kind, flags, stream, payload=b""):
        connection.sendall(len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload)

    def ok(self, connection, stream):
        self.send(connection, HEADERS, END_HEADERS, stream, b"\x88")  # :status 200, packed
        self.send(connection, DATA, END_STREAM, stream, b"ok")
        return True

    def reset(self, connection, stream, code):
        self.send(connection, RST_STREAM, 0, stream, code.to_bytes(4, "big"))
        return True

    def end(self):
        self.listener.close()


DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4
INTERNAL_ERROR, REFUSED_STREAM = 2, 7


def served(answer, *words, code=EXIT_OK, context=None, url=None):
    """(what the load tells, the server) of a run against such a server."""
    server = Http2Server(answer, context)
    try:
        return load(url or server.url, "--connect", f"127.0.0.1:{server.port}", "--http2", *words, "--json",
                    code=code), server
    finally:
        server.end()


def test_http2(folder):
    def answer(server, connection, stream, _):
        return server.ok(connection, stream)

    told, server = served(answer, "-n", "300", "-c", "3", "--streams", "5", "--same-body")
    check_equal((told["http"], told["streams"], told["well"], told["opened"]), ("2", 5, 300, 3), "result")
    check_equal((server.requests, server.connections), (300, 3), "what the server saw")
    told, server = served(answer, "-n", "40", "-c", "4", "--new")
    check_equal((told["well"], server.connections), (40, 40), "a connection for each request")
    told, server = served(answer, "-n", "200", "-c", "2", "--streams", "8", "--rate", "2000")
    check_equal((told["loop"], told["well"]), ("open", 200), "open loop")
    told, _ = served(answer, "-n", "20", "-c", "2", "--expect-length", "3", code=EXIT_PROGRAM)
    check_equal(told["faults"]["length"], 20, "another length than expected")


def test_http2_faults_are_told(folder):
    def refuse(server, connection, stream, number):
        return server.reset(connection, stream, REFUSED_STREAM) if number % 2 else server.ok(connection, stream)

    def reset(server, connection, stream, number):
        return server.reset(connection, stream, INTERNAL_ERROR) if number % 2 else server.ok(connection, stream)

    def cut(server, connection, stream, number):
        if number % 10:
            return server.ok(connection, stream)
        server.send(connection, HEADERS, END_HEADERS, stream, b"\x88")
        return False

    def leave(server, connection, stream, number):
        """Polite: the tenth request is the last one that is answered on a connection."""
        server.ok(connection, stream)
        if number == 10:
            server.send(connection, GOAWAY, 0, 0, stream.to_bytes(4, "big") + bytes(4))
        return True

    def nonsense(server, connection, stream, _):
        server.send(connection, HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x01a\x01b")  # no :status
        return True

    cases = ((refuse, "refused", 20), (reset, "stream", 20), (cut, "cut", 4), (nonsense, "syntax", 40))
    for answer, word, count in cases:
        told, _ = served(answer, "-n", "40", "-c", "1", code=EXIT_PROGRAM)
        check_equal({name: n for name, n in told["faults"].items() if n}, {word: count}, f"faults of {word}")
        check_equal(told["well"], 40 - count, f"well answered beside {word}")
    told, server = served(leave, "-n", "40", "-c", "1")
    check_equal((told["well"], told["goaways"] >= 3, server.connections >= 4), (40, True, True), "GOAWAY")
    server = Http2Server(leave)
    out = load(server.url, "--connect", f"127.0.0.1:{server.port}", "--http2", "-n", "40", "-c", "1")
    server.end()
    check(re.search(r"^opened +\d+ connections, \d+ of them ended by the server \(GOAWAY\)$", out, re.M), out)


def test_http2_that_is_not_there_is_said(folder):
    authority = Authority(folder)
    plain = Http2Server(None, speaks=False)
    contexts = [Authority.server(authority.make("a", "DNS:a.test")) for _ in range(2)]
    contexts[0].set_alpn_protocols(["http/1.1"])
    cases = [(plain, [], "the peer does not speak HTTP/2")]
    cases += [(Http2Server(None, context), ["--insecure"], "no protocol in common (ALPN)") for context in contexts]
    for server, words, part in cases:
        code, out, err = run([CROWNYC, "load", server.url, "--http2", *words, "-n", "4", "-c", "2", "--quiet"])
        server.end()
        check_equal((code, out), (EXIT_PROGRAM, ""), f"exit code, {part}")
        check_in(part, err, "message")


def test_handshakes_are_counted(folder):
    authority = Authority(folder)
    context = Authority.server(authority.make("a", "DNS:a.test"))
    context.set_alpn_protocols(["h2", "http/1.1"])

    def answer(server, connection, stream, _):
        return server.ok(connection, stream)

    for words, resumed in (([], True), (["--no-resume"], False)):
        told, _ = served(answer, "--ca", authority.path, "-n", "20", "-c", "1", "--new", *words, context=context,
                         url="https://a.test/")
        hands = told["handshakes"]
        check_equal((told["well"], sum(hands.values())), (20, told["opened"]), "handshakes")
        check_equal(hands["resumed"] > 0, resumed, f"resumed with {words}")


def test_nobody_there(folder):
    port = free_port()
    code, out, err = run([CROWNYC, "load", f"http://127.0.0.1:{port}/", "--quiet", "-d", "1"])
    check_equal((code, out), (EXIT_PROGRAM, ""), "exit code and stdout")
    check_in("connection refused (of 64 connections 0 were open)", err, "stderr")
    code, _, err = run([CROWNYC, "load", "http://no-such-name.invalid/", "--quiet", "-d", "1"])
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("no-such-name.invalid", err, "stderr")


def test_idle_connections_are_held_until_a_signal(folder):
    upstream = Upstream("up")
    program = Program([CROWNYC, "load", upstream.url, "--idle", "-c", "50", "-d", "600", "--json"],
                      env=environment())
    program.wait_line(r"all connections are open: 50", "err")
    check_equal(len(upstream.requests), 50, "requests")
    program.send(signal.SIGINT)
    check_equal(program.wait_exit(), EXIT_OK, "exit code")
    told = json.loads(program.text("out"))
    check_equal((told["loop"], told["well"]), ("idle", 50), "result")


def test_a_signal_ends_it_with_what_was_measured(folder):
    upstream = Upstream("up")
    program = Program([CROWNYC, "load", upstream.url, "-c", "2", "-d", "600", "-w", "0"], env=environment())
    program.wait_line(r"requests/s", "err")
    program.send(signal.SIGINT)
    check_equal(program.wait_exit(), EXIT_OK, "exit code")
    check_in("status     200: ", program.text("out"), "report")


def test_what_is_wrong_is_said(folder):
    bad = [([], "a URL is missing"), (["ftp://a/"], "not of the form"), (["https://a/", "http://a/"], "do not mix"),
           (["http://a/", "http://b/"], "lead to one place"),
           (["http://a/", "-c", "0"], "from 1 to 60000 (LOAD_CONNECTIONS), not 0"),
           (["http://a/", "-c", "60001"], "LOAD_CONNECTIONS"), (["http://a/", "--rate", "10000001"], "LOAD_RATE"),
           (["http://a/", "-d", "nan"], "--duration"), (["http://a/", "--header", "X"], "NAME: VALUE"),
           (["http://127.0.0.1:1/", "--header", "A B: c"], "no token"),
           (["http://127.0.0.1:1/", "--header", "Connection: close"], "own fields"),
           (["http://127.0.0.1:1/", "--idle", "--new"], "goes with none"),
           (["http://a/", "--nonsense"], "unknown option"),
           (["http://a/", "--http2", "--http10"], "does not go with --http10"),
           (["http://a/", "--streams", "2"], "--streams is for --http2"),
           (["http://a/", "--http2", "--streams", "2", "--new"], "goes with none of --new, --idle"),
            (["http://a/", "--http2", "--streams", "129"], "from 1 to 128 (HTTP2_STREAMS), not 129"),
            (["http://a/", "--http2", "--streams", "128", "-c", "10000"], "LOAD_SLOTS = 1000000, not 1280000"),
           (["http://127.0.0.1:1/", "--http2", "--header", "TE: trailers"], "not for HTTP/2"),
           (["http://a/", "--no-resume"], "for https:// URLs"),
           (["http://a/", "--expect-crc32c", "xyz"], "hex digits")]
    for words, part in bad:
        code, out, err = run([CROWNYC, "load", *words])
        check_equal((code, out), (EXIT_USAGE, ""), f"exit code of load {words}")
        check_in(part, err, f"stderr of load {words}")
    listed = folder / "list.txt"
    for line, part in [("/x", "a path needs a URL"), ("http://a/ wait=3", "none of weight="),
                       ("http://a/ weight=0", "none of weight=")]:
        listed.write_text("# first\n" + line + "\n")
        code, _, err = run([CROWNYC, "load", "--list", listed])
        check_equal(code, EXIT_USAGE, f"exit code of {line}")
        check_in(f"{listed}:2: ", err, "place")
        check_in(part, err, "message")


def test_a_list_at_and_past_its_limit(folder):
    port = free_port()
    listed = folder / "list.txt"
    row = f"http://127.0.0.1:{port}/\n"
    listed.write_text(row + "#" * (LIST_BYTES - len(row) - 1) + "\n")
    check_equal(listed.stat().st_size, LIST_BYTES, "size")
    code, _, err = run([CROWNYC, "load", "--list", listed, "-n", "1"])
    check_equal(code, EXIT_PROGRAM, "exit code at the limit")
    check_in("connection refused", err, "message at the limit")
    with listed.open("a") as more:
        more.write("#")
    code, _, err = run([CROWNYC, "load", "--list", listed, "-n", "1"])
    check_equal(code, EXIT_USAGE, "exit code past it")
    check_in("LOAD_LIST_BYTES = 16777216", err, "message past it")


def test_help_in_both_languages(folder):
    for language, part in (("en", "open loop: N requests per second"), ("ko", "열린 고리")):
        code, out, _ = run([CROWNYC, "--lang", language, "load", "--help"])
        check_equal(code, EXIT_OK, "exit code")
        check_in(part, out, "help")
        check_in("--watch-pid PID", out, "help")


run_all(globals())
