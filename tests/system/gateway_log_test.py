#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/gateway_log_test.py: proves that the gateway writes the access log that its file asks for, with the
# upstream and what became of the request, that a reload changes it, that the admin listener answers with numbers of all
# workers and nothing else, that neither is there by default or with GW_SHADOW, and that mistakes are told with their
# place.

import json
import pathlib
import re
import socket
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BANNER, CROWNYC, DEADLINE_S, EXIT_CONFIGURATION, EXIT_OK, Gateway, Program, Upstream,  # noqa: E402
                     check, check_equal, check_in, compile_gateway, environment, free_port, request, run_all, signal,
                     wait_until)


class Logged(Gateway):
    """A gateway that may write below its folder."""

    def __init__(self, toau, yaml, folder, **variables):
        self.port = free_port()
        self.yaml = pathlib.Path(folder, "gateway.yaml")
        self.yaml.write_text(yaml)
        settings = dict(GW_PORT=self.port, GW_BIND="127.0.0.1", GW_YAML=self.yaml, GW_WORKERS=2)
        settings.update(variables)
        Program.__init__(self, [CROWNYC, "run", "--allow", "write", toau], cwd=folder, env=environment(**settings))
        self.wait_line(BANNER)


def yaml_of(upstream, more=""):
    return f"services:\n- name: a\n  domain: a.local\n  upstream: {upstream.url}\n{more}"


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def test_access_log(folder):
    up = Upstream("up")
    log, other = folder / "access.log", folder / "other.log"
    gateway = Logged(compile_gateway(folder), yaml_of(up, f"log: {{access: {log}}}\n"), folder, GW_WORKERS=1)
    check_equal(gateway.get("a.local", "/one?x=%0a").status, 200, "status")
    check_equal(gateway.get("b.local", "/none").status, 404, "status")
    with socket.create_connection(("127.0.0.1", gateway.port), DEADLINE_S) as client:
        client.sendall(b"GET /hold HTTP/1.1\r\nHost: a.local\r\n\r\n")
        up.held()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST: a FIN may still want it
    gateway.wait_line("ends with 499", "err")
    with socket.create_connection(("127.0.0.1", gateway.port), DEADLINE_S) as client:
        client.sendall(b"GET  / HTTP/1.1\r\n\r\n")
        check_in(b" 400 ", client.recv(4096), "answer")
    wait_until(lambda: len(lines_of(log)) == 4, "four lines")
    one, none, gone, bad = [json.loads(line) for line in lines_of(log)]
    check_equal((one["target"], one["status"], one["host"], one["upstream"]),
                ("/one?x=%0a", 200, "a.local", f"127.0.0.1:{up.port}"), "a proxied request")
    check(0 < one["upstream_us"] <= one["duration_us"], f"times of {one}")
    check_equal((none["status"], "upstream" in none), (404, False), "no route")
    check_equal((gone["status"], gone["upstream"], "upstream_us" in gone), (499, one["upstream"], False), "client gone")
    check_equal((bad["status"], "method" in bad), (400, False), "no request")
    up.release()
    # a reload: another file and format
    gateway.yaml.write_text(yaml_of(up, f"log: {{access: {other}, format: combined}}\n"))
    gateway.send(signal.SIGHUP)
    gateway.wait_line("is serving", "err")
    gateway.get("a.local", "/two", fields=[("User-Agent", 'me "too"')])
    wait_until(lambda: lines_of(other), "a line in the other file")
    check(re.fullmatch(r'127\.0\.0\.1 - - \[.* \+0000\] "GET /two HTTP/1\.1" 200 \d+ "-" "me \\x22too\\x22"',
                       lines_of(other)[0]), f"line {lines_of(other)}")
    check_equal(len(lines_of(log)), 4, "lines of the first file")
    gateway.send(signal.SIGTERM)
    check_equal(gateway.wait_exit(), EXIT_OK, "exit code")


def test_access_log_on_stdout(folder):
    up = Upstream("up")
    gateway = Logged(compile_gateway(folder), yaml_of(up, "log: {access: stdout, format: common}\n"), folder)
    gateway.get("a.local", "/seen")
    gateway.wait_line(r'"GET /seen HTTP/1\.1" 200 ')


def test_admin(folder):
    up = Upstream("up")
    admin = free_port()
    gateway = Logged(compile_gateway(folder), yaml_of(up, f"admin: {{listen: 127.0.0.1:{admin}}}\n"), folder)
    for _ in range(20):
        gateway.get("a.local", "/")
    text = request(admin, "x", "/metrics").body.decode()
    check_in("\ncrownyc_requests_total 20\n", text, "sum over two workers")
    check_in("\ncrownyc_workers 2\n", text)
    check_in('\ncrownyc_responses_total{class="2xx"} 20\n', text)
    check_in("\ncrownyc_request_seconds_count 20\n", text)
    check_equal(request(admin, "a.local", "/").status, 404, "a route of the gateway on the admin listener")
    check_equal(request(admin, "x", "/metrics", "POST", body=b"x").status, 405, "POST")
    check_equal(gateway.get("a.local", "/metrics").body, b"up GET /metrics", "the public port")


def test_shadow_opens_neither(folder):
    up = Upstream("up")
    admin, log = free_port(), folder / "access.log"
    more = f"admin: {{listen: 127.0.0.1:{admin}}}\nlog: {{access: {log}}}\n"
    gateway = Logged(compile_gateway(folder), yaml_of(up, more), folder, GW_SHADOW=1)
    gateway.get("a.local", "/")
    gateway.send(signal.SIGTERM)
    gateway.wait_exit()
    check(not log.exists(), "the log was written")
    try:
        socket.create_connection(("127.0.0.1", admin), 1).close()
        check(False, "the admin listener is open")
    except OSError:
        pass


def test_mistakes(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    for more, wanted in (("log: {format: xml}\n", r"5:15: format `xml`: write one of json, combined, common"),
                         ("log: {acces: off}\n", r"5:7: unknown key `acces`; did you mean `access`\?"),
                         ("log: off\n", r"`log` takes a mapping"), ("admin: {}\n", r"`listen` is missing"),
                         ("admin: {listen: nowhere}\n", r"admin: \"nowhere\" is no address")):
        gateway = Gateway(toau, yaml_of(up, more), folder, wait=False)
        gateway.wait_line(wanted, "err")
        check_equal(gateway.wait_exit(), EXIT_CONFIGURATION, "exit code")


def test_a_log_without_the_right_to_write(folder):
    up = Upstream("up")
    gateway = Gateway(compile_gateway(folder), yaml_of(up, f"log: {{access: {folder}/a.log}}\n"), folder, wait=False)
    gateway.wait_line("access log .*: not allowed", "err")
    check_equal(gateway.wait_exit(), EXIT_CONFIGURATION, "exit code")


if __name__ == "__main__":
    run_all(globals())
