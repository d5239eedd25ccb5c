#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/tls_test.py: proves with Python's TLS that the gateway serves https and speaks it to its upstreams: which
# certificate, which protocol, who is let in; that certificates are swapped under load without a failed request; that a
# bad pair is refused with its place; that who came before more is asked of clients has to come anew; that a session is
# resumed by whichever worker; that an answer cut off without close_notify is not passed off as complete.

import pathlib
import signal
import socket
import ssl
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from certificates import Authority  # noqa: E402
from harness import (CROWNYC, DEADLINE_S, EXIT_CONFIGURATION, Failed, Gateway, Program, Upstream, check,  # noqa: E402
                     check_equal, check_in, compile_gateway, environment, free_port, run, run_all)

GOODBYE = "Connection: close\r\n"


def connect(port, context, name="a.test", session=None):
    raw = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
    return context.wrap_socket(raw, server_hostname=name, session=session)


def ask(stream, path="/", host="a.test", more="", method="GET", body=b""):
    """Sends a request; (status, body) of an answer with Content-Length."""
    if body:
        more += f"Content-Length: {len(body)}\r\n"
    stream.sendall(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode() + body)
    data = b""
    while b"\r\n\r\n" not in data:
        piece = stream.recv(65536)
        check(piece, f"the connection ended inside the head: {data!r}")
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while len(rest) < length[0]:
        piece = stream.recv(1 << 20)
        check(piece, f"the connection ended inside the body: {len(rest)} of {length[0]}")
        rest += piece
    return int(head.split(b" ")[1]), rest


def secure_yaml(port, upstream, tls="", certificates=(("a.pem", "a.key"),), tail=""):
    rows = "\n".join(f"    - {{cert: {cert}, key: {key}}}" for cert, key in certificates)
    return (f"listen:\n  - {{https: \"127.0.0.1:{port}\"}}\ntls:\n  certificates:\n{rows}\n{tls}"
            f"services:\n- name: a\n  domain: [a.test, b.test, x.wild.test]\n  upstream: {upstream}\n{tail}")


class Secure(Gateway):
    """A gateway with an https address beside its plain one."""

    def __init__(self, folder, upstream, tls="", certificates=(("a.pem", "a.key"),), tail="", wait=True, **variables):
        self.secure_port = free_port()
        yaml = secure_yaml(self.secure_port, upstream, tls, certificates, tail)
        super().__init__(compile_gateway(folder), yaml, folder, wait=wait, **variables)


def test_https_names_versions_and_protocols(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    authority.make("wild", "DNS:*.wild.test")
    gateway = Secure(folder, back.url, certificates=(("a.pem", "a.key"), ("wild.pem", "wild.key")))
    for name in ("a.test", "x.wild.test"):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with connect(gateway.secure_port, authority.client(version=version), name) as stream:
                for _ in range(3):  # kept alive
                    check_equal(ask(stream, "/x", name), (200, b"back GET /x"), f"answer of {name}")
    fields = back.requests[-1][2]
    check_equal(fields["X-Forwarded-Proto"], "https", "X-Forwarded-Proto")
    with connect(gateway.secure_port, authority.client(alpn=("http/1.1",))) as stream:
        check_equal(stream.selected_alpn_protocol(), "http/1.1", "ALPN")
    try:
        connect(gateway.secure_port, authority.client(alpn=("nonsense",)))
    except ssl.SSLError as refused:
        check_in("NO_APPLICATION_PROTOCOL", str(refused).upper().replace(" ", "_"), "the alert")
    else:
        check(False, "a protocol that nobody speaks was agreed on")
    try:
        connect(gateway.secure_port, authority.client(), "b.test")
    except ssl.SSLCertVerificationError:
        pass
    else:
        check(False, "b.test got a certificate that is not for it")


def test_bodies_in_both_directions(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    gateway = Secure(folder, back.url)
    body = bytes(range(256)) * 16384  # 4 MiB
    with connect(gateway.secure_port, authority.client()) as stream:
        status, answer = ask(stream, "/up", method="POST", body=body)
        check_equal(status, 200, "status")
        check(answer == b"back POST /up " + body, f"the body came back changed ({len(answer)} bytes)")
        check_equal(ask(stream), (200, b"back GET /"), "the next request")


def test_client_certificates(folder):
    authority, other, back = Authority(folder), Authority(folder, "other"), Upstream("back")
    authority.make("a", "DNS:a.test")
    own = authority.make("own", "DNS:client.test")
    stranger = other.make("stranger", "DNS:client.test")
    gateway = Secure(folder, back.url, tls="  client_ca: ca.pem\n")
    with connect(gateway.secure_port, authority.client(own)) as stream:
        check_equal(ask(stream)[0], 200, "status with a certificate")
    for shown in (None, stranger):
        try:
            with connect(gateway.secure_port, authority.client(shown)) as stream:
                ask(stream)
        except ssl.SSLError as refused:
            check_in("alert", str(refused), "what a client hears")
        else:
            check(False, f"{shown} was let in")
    check_equal(len(back.requests), 1, "requests that reached the upstream")


def frame(kind, flags, stream_id, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream_id.to_bytes(4, "big") + payload


class Http2:
    """As much of HTTP/2 as one GET at a time needs; it lets the gateway speak as long as that wants to."""

    HEADERS, SETTINGS, PING, GOAWAY = 1, 4, 6, 7

    def __init__(self, stream):
        check_equal(stream.selected_alpn_protocol(), "h2", "ALPN")
        self.stream, self.data = stream, b""
        stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(self.SETTINGS, 0, 0))

    def get(self, stream_id, path=b"/"):
        host = b"a.test"  # :method GET, :scheme https, :path, :authority (RFC 7541, appendix A)
        self.stream.sendall(frame(self.HEADERS, 5, stream_id, b"\x82\x87\x04" + bytes([len(path)]) + path +
                                  b"\x41" + bytes([len(host)]) + host))

    def next(self):
        """(kind, flags, stream, payload); None at the end."""
        while True:
            size = int.from_bytes(self.data[:3], "big") + 9
            if len(self.data) >= max(size, 9):
                head, payload, self.data = self.data[:9], self.data[9:size], self.data[size:]
                kind, flags, stream_id = head[3], head[4], int.from_bytes(head[5:9], "big")
                if kind == self.PING and not flags & 1:
                    self.stream.sendall(frame(self.PING, 1, 0, payload))
                return kind, flags, stream_id, payload
            piece = self.stream.recv(65536)
            if not piece:
                return None
            self.data += piece

    def wait(self, kind, stream_id):
        while True:
            one = self.next()
            check(one is not None, f"the connection ended before frame {kind} of stream {stream_id}")
            if (one[0], one[2]) == (kind, stream_id):
                return one

    def ends(self):
        """Whether nothing but the end follows, in which no answer begins."""
        while True:
            one = self.next()
            if one is None:
                return True
            if one[0] == self.HEADERS:
                return False


def refused(port, context):
    try:
        with connect(port, context) as stream:
            ask(stream)
    except ssl.SSLError as fault:
        return "alert" in str(fault)
    return False


def test_who_came_before_more_is_asked_has_to_come_anew(folder):
    """A reload that asks for a certificate: nothing new begins on connections that were made without one, and what runs
    is finished. One that asks for the same leaves them alone."""
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    authority.make("b", "DNS:a.test,DNS:b.test")
    own = authority.make("own", "DNS:client.test")
    gateway = Secure(folder, back.url, GW_WORKERS=1)

    def reload(tls, name):
        seen = gateway.line_count("err")
        gateway.yaml.write_text(secure_yaml(gateway.secure_port, back.url, tls, ((f"{name}.pem", f"{name}.key"),)))
        gateway.send(signal.SIGHUP)
        gateway.wait_line(r"generation \d+ is serving", "err", seen)
        return "\n".join(gateway.text("err").splitlines()[seen:])

    idle, busy = (connect(gateway.secure_port, authority.client()) for _ in range(2))
    second, streams = (Http2(connect(gateway.secure_port, authority.client(alpn=("h2",)))) for _ in range(2))
    for client in (second, streams):
        client.get(1)
        client.wait(Http2.HEADERS, 1)
    for stream in (idle, busy):
        check_equal(ask(stream)[0], 200, "status before")
    check("asked of clients" not in reload("", "b"), "a reload that asks for the same ends connections")
    check_equal(ask(idle)[0], 200, "status behind a reload that asks for the same")
    busy.sendall(b"GET /hold HTTP/1.1\r\nHost: a.test\r\n\r\n")
    streams.get(3, b"/hold")
    back.held()
    back.held()
    check_in("other things are asked of clients now: 4 connections from before", reload("  client_ca: ca.pem\n", "a"),
             "the log")
    check_equal(idle.recv(100), b"", "what a client between two requests hears")
    second.wait(Http2.GOAWAY, 0)
    check(second.ends(), "an answer behind GOAWAY")
    streams.wait(Http2.GOAWAY, 0)
    back.release()
    answer = b""
    while piece := busy.recv(65536):
        answer += piece
    check(answer.startswith(b"HTTP/1.1 200 OK") and b"connection: close" in answer.lower(), f"what ran: {answer}")
    streams.wait(Http2.HEADERS, 3)
    check(streams.ends(), "an answer behind the last one")
    check(refused(gateway.secure_port, authority.client()), "who shows nothing is let in")
    with connect(gateway.secure_port, authority.client(own)) as stream:
        check_equal(ask(stream)[0], 200, "status with a certificate")
        reload("  client_ca: ca.pem\n", "b")
        check_equal(ask(stream)[0], 200, "status behind a reload that asks for the same")
        reload("", "b")
        check_equal(stream.recv(100), b"", "nothing is asked for now, and that is something else too")


def test_a_refusal_reaches_a_client_that_is_sending(folder):
    """In TLS 1.3 a client sends its request before it hears that it should have shown a certificate. A reset because of
    that request would destroy the alert on its way."""
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    gateway = Secure(folder, back.url, tls="  client_ca: ca.pem\n")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        for _ in range(20):
            try:
                with connect(gateway.secure_port, authority.client(version=version)) as stream:
                    stream.sendall(b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
                    raise Failed(f"an answer without a certificate: {stream.recv(100)}")
            except ssl.SSLError as fault:
                check(fault.reason in ("SSLV3_ALERT_HANDSHAKE_FAILURE", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
                      f"{version.name}: {fault}")


def test_redirect_to_https(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test,DNS:*.wild.test")
    gateway = Secure(folder, back.url, GW_REDIRECT=1)
    for host, path in (("a.test", "/q?x=1"), ("A.TEST:80", "/"), ("x.wild.test", "/%41")):
        answer = gateway.get(host, path)
        name = host.lower().split(":")[0]
        check_equal(answer.status, 308, "status")
        check_equal(answer.fields["location"], f"https://{name}:{gateway.secure_port}{path}", "Location")
    check_equal(gateway.get("b.test").status, 200, "status of a domain without a certificate")
    with connect(gateway.secure_port, authority.client()) as stream:
        check_equal(ask(stream)[0], 200, "status over https")


def test_shadow_leaves_https_off(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    gateway = Secure(folder, back.url, GW_SHADOW=1)
    gateway.wait_line(f"left off: .*127.0.0.1:{gateway.secure_port}", "err")
    check_equal(gateway.get("a.test").status, 200, "status of the plain port")
    with socket.socket() as probe:
        check(probe.connect_ex(("127.0.0.1", gateway.secure_port)) != 0, "https is open")


def subject(stream):
    return dict(pair for row in stream.getpeercert()["subject"] for pair in row)["commonName"]


def test_certificates_are_swapped_under_load(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    authority.make("newer", "DNS:a.test")
    gateway = Secure(folder, back.url, GW_WORKERS=2)
    context, stop, failures, done = authority.client(), threading.Event(), [], []

    def load(keep):
        try:
            while not stop.is_set():
                with connect(gateway.secure_port, context) as stream:
                    for _ in range(20 if keep else 1):
                        check_equal(ask(stream)[0], 200, "status")
                        done.append(1)
        except Exception as fault:  # noqa: BLE001 - told below
            failures.append(repr(fault))

    old = connect(gateway.secure_port, context)
    check_equal(subject(old), "a", "certificate before")
    threads = [threading.Thread(target=load, args=(keep,)) for keep in (True, True, False, False)]
    for thread in threads:
        thread.start()
    for turn in range(4):
        name = ("newer", "a")[turn % 2]
        seen = gateway.line_count("err")
        pair = (f"{name}.pem", f"{name}.key")
        gateway.yaml.write_text(secure_yaml(gateway.secure_port, back.url, certificates=(pair,)))
        gateway.send(signal.SIGHUP)
        for worker in (0, 1):
            gateway.wait_line(rf"/{worker}\] generation \d+ is serving", "err", seen)
        with connect(gateway.secure_port, context) as stream:
            check_equal(subject(stream), name, "certificate after a reload")
    stop.set()
    for thread in threads:
        thread.join(DEADLINE_S)
    check(not failures, f"{len(failures)} failures in {len(done)} requests: {failures[:3]}")
    check_equal(ask(old)[0], 200, "a connection from before the first reload")
    old.close()


def test_a_bad_pair_is_refused_with_its_place(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    authority.make("b", "DNS:b.test")
    good = (("a.pem", "a.key"), ("b.pem", "b.key"))
    gateway = Secure(folder, back.url, certificates=good)
    bad = (
        ((("a.pem", "a.key"), ("b.pem", "a.key")), r":6:7: .*a\.key: the key does not belong to .* of .*b\.pem"),
        ((("none.pem", "a.key"), ("b.pem", "b.key")), r":5:7: .*none\.pem: not found"),
        ((("a.key", "a.key"), ("b.pem", "b.key")), r":5:7: .*a\.key: there is no certificate in it"),
    )
    for certificates, said in bad:
        seen = gateway.line_count("err")
        gateway.yaml.write_text(secure_yaml(gateway.secure_port, back.url, certificates=certificates))
        gateway.send(signal.SIGHUP)
        gateway.wait_line(said, "err", seen)
        with connect(gateway.secure_port, authority.client()) as stream:
            check_equal(ask(stream)[0], 200, "status after a refused reload")
    gateway.yaml.write_text(secure_yaml(gateway.secure_port, back.url, certificates=good))
    seen = gateway.line_count("err")
    gateway.send(signal.SIGHUP)
    gateway.wait_line("is serving", "err", seen)
    code, out, err = run([CROWNYC, "run", folder / "gateway.toau", "check", gateway.yaml], cwd=folder)
    check_equal((code, err), (0, ""), f"check of the good file {out}")
    gateway.yaml.write_text(secure_yaml(gateway.secure_port, back.url, certificates=bad[1][0]))
    code, out, err = run([CROWNYC, "run", folder / "gateway.toau", "check", gateway.yaml], cwd=folder)
    check_equal(code, EXIT_CONFIGURATION, "exit code of check")
    check_in("none.pem: not found", err, "check's message")


def test_sessions_are_resumed_by_every_worker(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    gateway = Secure(folder, back.url, GW_WORKERS=2)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context, session = authority.client(version=version), None
        for turn in range(10):  # the kernel spreads them over both workers
            with connect(gateway.secure_port, context, session=session) as stream:
                check_equal(ask(stream)[0], 200, "status")
                check_equal(stream.session_reused, turn > 0, f"resumed, {version.name}, connection {turn}")
                session = stream.session


def test_garbage_leaves_others_served(folder):
    authority, back = Authority(folder), Upstream("back")
    authority.make("a", "DNS:a.test")
    gateway = Secure(folder, back.url)
    kept = []
    garbage = (b"GET / HTTP/1.1\r\n\r\n",
               b"\x16\x03\x01\x00\x05\x01", bytes(3000), b"\x15\x03\x01\x00\x02\x02\x28", b"")
    for bytes_sent in garbage:
        raw = socket.create_connection(("127.0.0.1", gateway.secure_port), DEADLINE_S)
        raw.sendall(bytes_sent)
        kept.append(raw)
    with connect(gateway.secure_port, authority.client()) as stream:
        check_equal(ask(stream)[0], 200, "status")
    # Who it was and why, each reason in its own words: an operator has nothing else to find a broken client by.
    for reason in ("the peer does not speak TLS", "the TLS handshake failed"):
        gateway.wait_line(rf" info \[\S+\] client 127\.0\.0\.1: no connection was made: {reason} \(", "err")
    for raw in kept:
        raw.close()


# -- towards servers ------------------------------------------------------------------------------------------------

def secure_upstream(name, authority, pair):
    back = Upstream(name)
    back.server.socket = authority.server(pair).wrap_socket(back.server.socket, server_side=True,
                                                            do_handshake_on_connect=False)
    back.url = f"https://127.0.0.1:{back.port}"
    return back


def test_https_upstreams_are_verified(folder):
    authority, other = Authority(folder), Authority(folder, "other")
    authority.make("a", "DNS:a.test")
    named = secure_upstream("named", authority, authority.make("up", "DNS:up.test,IP:127.0.0.1"))
    unnamed = secure_upstream("unnamed", authority, authority.make("up2", "DNS:up2.test"))
    stranger = secure_upstream("stranger", other, other.make("up3", "IP:127.0.0.1"))
    rows = [
        ("ip.test", named, "tls: {ca: ca.pem}", 200, None),
        ("name.test", unnamed, "tls: {ca: ca.pem, name: up2.test}", 200, None),
        ("wrong.test", unnamed, "tls: {ca: ca.pem}", 502, "the certificate is for another name"),
        ("other.test", named, "tls: {ca: ca.pem, name: elsewhere.test}", 502, "the certificate is for another name"),
        ("stranger.test", stranger, "tls: {ca: ca.pem}", 502, "not signed by a trusted authority"),
        ("system.test", named, None, 502, "not signed by a trusted authority"),
        ("blind.test", stranger, "tls: {verify: false}", 200, None),
        ("plain.test", Upstream("plain"), "https", 502, "does not speak TLS"),
    ]
    yaml = ""
    for domain, back, tls, _, _ in rows:
        url = back.url.replace("http:", "https:")
        upstream = url if tls in (None, "https") else f'{{url: "{url}", {tls}}}'
        yaml += f"- name: {domain}\n  domain: {domain}\n  upstream: {upstream}\n"
    gateway = Gateway(compile_gateway(folder), yaml, folder)
    for domain, back, _, status, said in rows:
        seen = gateway.line_count("err")
        answer = gateway.get(domain, "/x")
        check_equal(answer.status, status, f"status of {domain}")
        if status == 200:
            check_equal(answer.body, f"{back.name} GET /x".encode(), f"body of {domain}")
        else:
            gateway.wait_line(said, "err", seen)


def test_https_upstream_gets_our_certificate(folder):
    authority = Authority(folder)
    own = authority.make("own", "DNS:gateway.test")
    pair = authority.make("up", "IP:127.0.0.1")
    back = Upstream("back")
    context = authority.server(pair)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.path)
    back.server.socket = context.wrap_socket(back.server.socket, server_side=True, do_handshake_on_connect=False)
    url = f"https://127.0.0.1:{back.port}"
    ours = "ca: ca.pem, certificate: own.pem, key: own.key"
    yaml = (f'- name: a\n  domain: a.test\n  upstream: {{url: "{url}", tls: {{{ours}}}}}\n'
            f'- name: b\n  domain: b.test\n  upstream: {{url: "{url}", tls: {{ca: ca.pem}}}}\n')
    check(own, "made")
    gateway = Gateway(compile_gateway(folder), yaml, folder)
    check_equal(gateway.get("a.test").status, 200, "status with a certificate")
    check_equal(gateway.get("b.test").status, 502, "status without one")
    check_equal(gateway.get("a.test").status, 200, "the connection of the one is never the other's")


class Cutting:
    """A TLS server that answers without a length and then ends: with close_notify or without."""

    def __init__(self, context, notify):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.context, self.notify = context, notify
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        for _ in range(2):
            try:
                raw, _ = self.listener.accept()
                stream = self.context.wrap_socket(raw, server_side=True)
                stream.recv(65536)
                stream.sendall(b"HTTP/1.1 200 OK\r\n\r\nhalf of it")
                if self.notify:
                    stream.unwrap().close()
                else:
                    stream.close()  # Python says no close_notify
            except OSError:
                pass


def test_a_cut_answer_is_not_passed_off_as_complete(folder):
    authority = Authority(folder)
    pair = authority.make("up", "IP:127.0.0.1")
    for notify in (True, False):
        back = Cutting(authority.server(pair), notify)
        url = f"https://127.0.0.1:{back.port}"
        yaml = f'- name: a\n  domain: a.test\n  upstream: {{url: "{url}", tls: {{ca: ca.pem}}}}\n'
        gateway = Gateway(compile_gateway(folder), yaml, folder)
        with socket.create_connection(("127.0.0.1", gateway.port), DEADLINE_S) as raw:
            raw.sendall(f"GET / HTTP/1.1\r\nHost: a.test\r\n{GOODBYE}\r\n".encode())
            data = b""
            try:
                while piece := raw.recv(65536):
                    data += piece
            except ConnectionResetError:
                pass
        check_in(b"half of it", data, "what was there of the answer")
        check_equal(data.endswith(b"0\r\n\r\n"), notify, f"the last chunk came, close_notify {notify}: {data!r}")
        back.listener.close()


PROGRAM = """
import "http"

export fn main(args) {{
    let trust = http.trust({{ca: "ca.pem"}})
    print(http.get(http.upstream("{url}", {{trust: trust}}), {{path: "/program"}}).body)
    try {{
        http.get("{url}/x")
    }} catch e {{
        print("\\(e.kind): \\(e.message)")
    }}
    try {{
        http.trust({{ca: "nowhere.pem"}})
    }} catch e {{
        print(e.message)
    }}
}}
"""


def test_a_program_of_its_own(folder):
    authority = Authority(folder)
    back = secure_upstream("back", authority, authority.make("up", "IP:127.0.0.1"))
    source = folder / "ask.han"
    source.write_text(PROGRAM.format(url=back.url))
    code, out, err = run([CROWNYC, "run", source], cwd=folder)
    check_equal((code, err), (0, ""), "exit code and stderr")
    lines = out.splitlines()
    check_equal(lines[0], "back GET /program", "the answer")
    check_in("certificate: http.request: ", lines[1], "the error of an authority that nobody trusts")
    check_in("not signed by a trusted authority", lines[1], "... and why")
    check_equal(lines[2], "http.trust: nowhere.pem: not found", "a file that is not there")


SERVER = """
import "http"
import "process"

export fn main(args) {{
    process.workers(1)
    http.serve()
}}

export fn configure(input) {{
    let tls = http.tls({{certificates: [{{cert: "a.pem", key: "a.key"}}]}})
    return {{banner: "up", listen: [{{address: "127.0.0.1:{port}", tls: tls}}]}}
}}

export fn handle(request) {{
    if request.path == "/late" {{ http.tls({{certificates: [{{cert: "a.pem", key: "a.key"}}]}}) }}
    return http.respond(200, "\\(request.secure)")
}}
"""


def test_workers_read_no_files(folder):
    authority = Authority(folder)
    authority.make("a", "DNS:a.test")
    port = free_port()
    (folder / "s.han").write_text(SERVER.format(port=port))
    server = Program([CROWNYC, "run", folder / "s.han"], cwd=folder, env=environment())
    server.wait_line("up")
    for name in ("a.pem", "a.key"):
        (folder / name).unlink()
    with connect(port, authority.client()) as stream:
        check_equal(ask(stream), (200, b"true"), "answer")
        check_equal(ask(stream, "/late")[0], 500, "a handler that wants a file")


run_all(globals())
