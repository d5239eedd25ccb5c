#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/http2_test.py: proves that clients of others (curl, h2load) speak HTTP/2 with the gateway, that it speaks
# HTTP/2 with an upstream, and that ends are as with HTTP/1: a client that leaves is 499, a stop finishes what runs.
#
#   curl, h2load ── HTTP/2 ── gateway ── h2c ── a second gateway ── HTTP/1 ── an upstream in this process

import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, Gateway, Program, Upstream, check, check_equal, check_in,  # noqa: E402
                     compile_gateway, environment, free_port, run_all, wait_until)
from certificates import Authority  # noqa: E402


def curl(*arguments, data=None):
    """Exit code, HTTP version, status, body."""
    done = subprocess.run(["curl", "-s", "--max-time", str(DEADLINE_S), "-w", "\n%{http_version} %{http_code}",
                           *map(str, arguments)], input=data, capture_output=True, check=False)
    body, _, facts = done.stdout.rpartition(b"\n")
    version, _, status = facts.decode().partition(" ")
    return done.returncode, version, status, body


def http2(*arguments, host="a.example", data=None):
    code, version, status, body = curl("--http2-prior-knowledge", "-H", f"Host: {host}", *arguments, data=data)
    check_equal((code, version), (0, "2"), f"curl's exit code and protocol ({status})")
    return int(status), body


class Chain:
    """Two gateways and an upstream behind them."""

    def __init__(self, folder):
        toau = compile_gateway(folder)
        self.upstream = Upstream("u")
        self.back = Gateway(toau, f"- name: a\n  domain: [a.example, b.example]\n  upstream: {self.upstream.url}\n",
                            folder)
        self.front = Gateway(toau, "- name: a\n  domain: a.example\n"
                                   f"  upstream: h2c://127.0.0.1:{self.back.port}/base\n"
                                   f"- name: b\n  domain: b.example\n  upstream: h2c://127.0.0.1:{self.back.port}\n",
                             folder)
        self.url = f"http://127.0.0.1:{self.front.port}"


def test_requests_pass(folder):
    chain = Chain(folder)
    check_equal(http2(f"{chain.url}/x?q=1"), (200, b"u GET /base/x?q=1"), "GET")
    check_equal(http2("-I", f"{chain.url}/x")[0], 200, "HEAD")
    check_equal(chain.upstream.requests[-1][0], "HEAD", "what the upstream saw")
    check_equal(http2(f"{chain.url}/", host="c.example")[0], 404, "an unknown host")
    body = bytes(range(256)) * 8000
    check_equal(http2("--data-binary", "@-", f"{chain.url}/p", data=body), (200, b"u POST /base/p " + body), "POST")
    fields = chain.upstream.requests[-1][2]
    check_equal(fields["X-Forwarded-For"], "127.0.0.1", "who came, by the last gateway")
    check_equal(fields["Content-Length"], str(len(body)), "length")
    # HTTP/1 on the same port, towards the same upstream
    check_equal(curl("-H", "Host: a.example", f"{chain.url}/y"), (0, "1.1", "200", b"u GET /base/y"), "HTTP/1.1")


def test_a_client_that_leaves_is_499(folder):
    chain = Chain(folder)
    client = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", "-H", "Host: b.example",
                               f"{chain.url}/hold"], stdout=subprocess.DEVNULL)
    chain.upstream.held()
    client.kill()
    client.wait()
    for gateway in (chain.front, chain.back):
        gateway.wait_line(r"client 127\.0\.0\.1 is gone .*GET b\.example/hold ends with 499", "err")
    chain.upstream.release()


def test_a_stop_finishes_what_runs(folder):
    chain = Chain(folder)
    client = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", "-H", "Host: b.example",
                               f"{chain.url}/hold"], stdout=subprocess.PIPE)
    chain.upstream.held()
    chain.front.send(signal.SIGTERM)
    wait_until(lambda: curl(f"{chain.url}/")[0] == 7, "the port to be closed")
    chain.upstream.release()
    check_equal(client.communicate(timeout=DEADLINE_S)[0], b"u GET /hold", "the answer")
    check_equal(chain.front.wait_exit(), 0, "exit code")


def test_http2_can_be_refused(folder):
    port = free_port()
    (folder / "plain.han").write_text(
        'import "http"\nexport fn configure(input) { return nil }\n'
        'export fn handle(request) { return http.respond(200, "plain") }\n'
        f'export fn main(args) {{ http.serve({{listen: ["127.0.0.1:{port}"], http2: false, banner: "on"}}) }}\n')
    server = Program([CROWNYC, "run", "plain.han"], cwd=folder, env=environment())
    server.wait_line("on")
    check_equal(curl(f"http://127.0.0.1:{port}/"), (0, "1.1", "200", b"plain"), "HTTP/1.1")
    code, version, _, _ = curl("--http2-prior-knowledge", f"http://127.0.0.1:{port}/")
    check(code != 0 and version != "2", "HTTP/2 was spoken though the option says no")


class SecureBack(Gateway):
    """A gateway with an https address, whose access log says which protocol was spoken."""

    def __init__(self, folder, toau, upstream):
        Authority(folder).make("a", "DNS:a.example")
        self.secure_port = free_port()
        super().__init__(toau, f'listen:\n- https: "127.0.0.1:{self.secure_port}"\n'
                               "tls: {certificates: [{cert: a.pem, key: a.key}]}\nlog: {access: stdout, format: json}\n"
                               f"services:\n- name: a\n  domain: a.example\n  upstream: {upstream}\n", folder)


def test_bodies_over_tls(folder):
    """Several records of TLS in one receive, of one stream and of several: the read that follows has its bytes at once,
    and each of them reaches the session. No body is changed, nothing is lent at the end."""
    upstream = Upstream("u")
    back = SecureBack(folder, compile_gateway(folder), upstream.url)
    for size, count in ((20000, 40), (100000, 40), (3000000, 8)):
        body = bytes(range(250)) * (size // 250)
        (folder / "body").write_bytes(body)
        answer = curl("--cacert", folder / "ca.pem", "--resolve", f"a.example:{back.secure_port}:127.0.0.1", "-H",
                      "Expect:", "--data-binary", "@-", f"https://a.example:{back.secure_port}/p", data=body)
        check_equal(answer[:3], (0, "2", "200"), f"curl's exit code, protocol, status with {size} bytes")
        check(answer[3] == b"u POST /p " + body, f"the body of {size} bytes came back changed")
        del upstream.requests[:]
        done = subprocess.run(["h2load", "-n", str(count), "-c", "2", "-m", "4", "-d", folder / "body", "--connect-to",
                               f"127.0.0.1:{back.secure_port}", "https://a.example/p"], capture_output=True, text=True,
                              timeout=DEADLINE_S * 3, check=False)
        check_in(f"{count} done, {count} succeeded, 0 failed, 0 errored, 0 timeout", done.stdout, "h2load's counts")
        same = [one[3] == body for one in upstream.requests]
        check_equal((len(same), all(same)), (count, True), f"bodies of {size} bytes that the upstream saw")
    back.send(signal.SIGTERM)
    check_equal(back.wait_exit(), 0, "exit code: nothing is lent any more")


def test_an_upstream_over_tls(folder):
    toau, upstream = compile_gateway(folder), Upstream("u")
    back = SecureBack(folder, toau, upstream.url)
    trust = "tls: {ca: ca.pem, name: a.example}"
    front = Gateway(toau, "- name: a\n  domain: a.example\n"
                          f"  upstream: {{url: 'h2://127.0.0.1:{back.secure_port}/base', {trust}}}\n", folder)
    url = f"http://127.0.0.1:{front.port}"
    body = bytes(range(256)) * 4000
    check_equal(http2(f"{url}/x"), (200, b"u GET /base/x"), "HTTP/2 to HTTP/2 over TLS")
    back.wait_line(r'"target":"/base/x","protocol":"HTTP/2')
    answer = curl("-H", "Host: a.example", "--data-binary", "@-", f"{url}/p", data=body)
    check_equal(answer[:3], (0, "1.1", "200"), "a body from HTTP/1 to HTTP/2 over TLS")
    check(answer[3] == b"u POST /base/p " + body, "the body came back changed")
    # a burst shares what is there
    done = subprocess.run(["curl", "-s", "-Z", "-H", "Host: a.example", f"{url}/[1-40]"],
                          capture_output=True, timeout=DEADLINE_S, check=False)
    check_equal(done.stdout.count(b"u GET /base/"), 40, "answers of a burst")


def secure_program(folder, port, option):
    (folder / "secure.han").write_text(
        'import "http"\nexport fn configure(input) {\n'
        '    let tls = http.tls({certificates: [{cert: "a.pem", key: "a.key"}]})\n'
        f'    return {{listen: [{{address: "127.0.0.1:{port}", tls: tls}}]}}\n}}\n'
        'export fn handle(request) { return http.respond(200, "secure") }\n'
        f'export fn main(args) {{ http.serve({{http2: {option}, banner: "on"}}) }}\n')
    server = Program([CROWNYC, "run", "secure.han"], cwd=folder, env=environment())
    server.wait_line("on")
    return server


def test_tls_offers_what_is_spoken(folder):
    Authority(folder).make("a", "DNS:a.example")
    for option, agreed in (("true", "2"), ("false", "1.1")):
        port = free_port()
        secure_program(folder, port, option)
        check_equal(curl("--cacert", folder / "ca.pem", "--resolve", f"a.example:{port}:127.0.0.1",
                         f"https://a.example:{port}/"), (0, agreed, "200", b"secure"), f"http2: {option}")


def test_an_upstream_that_does_not_agree_on_http2(folder):
    authority, toau = Authority(folder), compile_gateway(folder)
    silent, refusing = Upstream("u"), free_port()  # no ALPN at all; an alert
    silent.server.socket = authority.server(authority.make("a", "DNS:a.example")).wrap_socket(
        silent.server.socket, server_side=True, do_handshake_on_connect=False)
    secure_program(folder, refusing, "false")
    for port in (silent.port, refusing):
        front = Gateway(toau, "- name: a\n  domain: a.example\n"
                              f"  upstream: {{url: 'h2://127.0.0.1:{port}', tls: {{ca: ca.pem, name: a.example}}}}\n",
                        folder)
        check_equal(front.get("a.example").status, 502, "status")
        front.wait_line(r"no protocol in common \(ALPN\)", "err")
    check_equal(len(silent.requests), 0, "requests that were sent all the same")


def test_h2load_runs_clean(folder):
    if not shutil.which("h2load"):
        print("skipped: h2load is not there (nghttp2-client)")
        return
    chain = Chain(folder)
    for streams, count in ((1, 400), (100, 3000)):
        done = subprocess.run(["h2load", "-n", str(count), "-c", "4", "-m", str(streams), "-H", ":authority: a.example",
                               f"http://127.0.0.1:{chain.back.port}/x"], capture_output=True, text=True,
                              timeout=DEADLINE_S * 6, check=False)
        check_equal(done.returncode, 0, "exit code of h2load")
        check_in(f"{count} done, {count} succeeded, 0 failed, 0 errored, 0 timeout", done.stdout, "h2load's counts")
        check(re.search(rf"status codes: {count} 2xx", done.stdout), f"other answers than 2xx:\n{done.stdout}")


run_all(globals())
