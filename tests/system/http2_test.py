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


def test_bodies_pass_over_tls(folder):
    """More than one record of TLS in what is received at once: each of them reaches the session."""
    upstream = Upstream("u")
    authority = Authority(folder)
    certificate, key = authority.make("a", "DNS:a.example")
    secure = free_port()
    gateway = Gateway(compile_gateway(folder), f"""\
listen:
- https: "127.0.0.1:{secure}"
tls:
  certificates:
  - {{cert: {certificate}, key: {key}}}
services:
- name: a
  domain: a.example
  upstream: {upstream.url}
""", folder)
    body = folder / "body"
    body.write_bytes(bytes(range(256)) * 400)
    done = subprocess.run(["h2load", "-n", "40", "-c", "2", "-m", "4", "-d", str(body), "--connect-to",
                           f"127.0.0.1:{secure}", "https://a.example/p"], capture_output=True, text=True,
                          timeout=DEADLINE_S * 3, check=False)
    check_in("40 done, 40 succeeded, 0 failed, 0 errored, 0 timeout", done.stdout, "h2load's counts")
    check_equal({one[3] == body.read_bytes() for one in upstream.requests}, {True}, "bodies that the upstream saw")
    gateway.send(signal.SIGTERM)
    check_equal(gateway.wait_exit(), 0, "exit code: nothing is lent at the end")


def test_a_client_that_leaves_is_499(folder):
    chain = Chain(folder)
    client = subprocess.Popen(["curl", "-s", "--http2-prior-knowledge", "-H", "Host: b.example",
                               f"{chain.url}/hold"], stdout=subprocess.DEVNULL)
    chain.upstream.held()
    client.kill()
    client.wait()
    chain.front.wait_line(r"GET b\.example/hold ends with 499", "err")
    chain.back.wait_line(r"GET b\.example/hold ends with 499", "err")
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
