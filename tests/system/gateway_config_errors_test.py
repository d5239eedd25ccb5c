#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/gateway_config_errors_test.py: proves that each mistake in gateway.yaml or the environment gives one
# clear message with its place and the right exit code, that all mistakes come at once, and what GW_STRICT=0 lets pass.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_CONFIGURATION, EXIT_OK, EXIT_USAGE, Gateway, Upstream, check,  # noqa: E402
                     check_equal, check_in, compile_gateway, environment, run, run_all)

GOOD = "- name: a\n  domain: a.local\n  upstream: http://127.0.0.1:9000\n"
SLIP = GOOD.replace("domain", "domian")

# A file between the lines of "=", then behind "---> " what the messages must contain. \t is a tab; an empty file is
# written as nothing.
MISTAKES = """
====
---> 1:1: the file is empty
====
# nothing
---> 1:1: the file is empty
====
hello
---> 1:1: `gateway.yaml` takes a list of services, not a value
====
{}
---> 1:1: `services` is missing
====
- name: a
  domian: a.local
  upstream: http://127.0.0.1:9000
---> 2:3: unknown key `domian`; did you mean `domain`?
---> 1:3: `domain` is missing
====
- name: a
  zzz: 1
  domain: a.local
  upstream: http://127.0.0.1:9000
---> 2:3: unknown key `zzz`; known keys: name, domain, upstream
====
- name: a
  name: b
  domain: a.local
  upstream: http://127.0.0.1:9000
---> 2:3: key `name` stands twice; first at 1:3
====
- domain: a.local
  upstream: http://127.0.0.1:9000
---> 1:3: `name` is missing
====
- name: a
  domain: a.local
---> 1:3: `upstream` or `pathRoutes` is missing
====
- name: a
  domain:
  upstream: http://127.0.0.1:9000
---> `domain` has no value
====
- name: a
  domain: []
  upstream: http://127.0.0.1:9000
---> 2:11: `domain`: the list is empty
====
- name: [a]
  domain: a.local
  upstream: http://127.0.0.1:9000
---> 1:9: `name` takes one value, not a list
====
- name: a
  domain: {x: y}
  upstream: http://127.0.0.1:9000
---> 2:11: `domain` takes one value, not a mapping
====
- just a word
---> 1:3: `services` takes a mapping of `name`, `domain`, `upstream`
====
services: 3
---> 1:11: `services` takes a list, not a value
====
services:
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
routes: []
---> 5:9: `services` and `routes` mean the same
====
- name: a
  domain: http://a.local
  upstream: http://127.0.0.1:9000
---> 2:11: domain `http://a.local`: write the domain alone
====
- name: a
  domain: a.local:80
  upstream: http://127.0.0.1:9000
---> 2:11: domain `a.local:80`: write it without the port
====
- name: a
  domain: a.local/x
  upstream: http://127.0.0.1:9000
---> 2:11: domain `a.local/x`: a path belongs into
====
- name: a
  domain: a..local
  upstream: http://127.0.0.1:9000
---> 2:11: domain `a..local`: a label between dots is empty
====
- name: a
  domain: a.*.local
  upstream: http://127.0.0.1:9000
---> 2:11: domain `a.*.local`: `*` stands only in front
====
- name: a
  domain: "a b"
  upstream: http://127.0.0.1:9000
---> 2:11: domain `a b`: only letters
====
- name: a
  domain: 한글.kr
  upstream: http://127.0.0.1:9000
---> 2:11: domain `한글.kr`: not supported yet: internationalised
====
- name: a
  domain: "[::g]"
  upstream: http://127.0.0.1:9000
---> 2:11: domain `[::g]`: not an IPv6 address
====
- name: a
  domain: *.example.org
  upstream: http://127.0.0.1:9000
---> 2:12:
---> must be quoted
====
- name: a
  domain: a.local
  upstream: 127.0.0.1:9000
---> 3:13:
====
- name: a
  domain: a.local
  upstream: ftp://127.0.0.1:9000
---> 3:13:
====
- name: a
  domain: a.local
  upstream: http://127.0.0.1:99999
---> 3:13:
====
- name: a
  domain: a.local
  upstream: {url: "http://127.0.0.1:9000", tls: {verify: false}}
---> 3:19: http.upstream: "http://127.0.0.1:9000": trust and name are for https:// and h2:// only
====
- name: a
  domain: a.local
  upstream: {url: "https://127.0.0.1:9000", tls: {ca: nowhere.pem}}
---> 3:50: nowhere.pem: not found
====
- name: a
  domain: a.local
  upstream: {url: "https://127.0.0.1:9000", tls: {verify: no, cb: x}}
---> 3:63: unknown key `cb`; known keys: ca
---> 3:59: `verify` is true or false
====
- name: a
  domain: a.local
  upstream: {tls: {}}
---> 3:13: `url` is missing
====
listen: {https: ":443"}
services: []
---> 1:9: `listen` takes a list
====
listen:
- {https: ":443"}
services: []
---> 2:11: `https` needs `tls: certificates:`
====
listen:
- {https: "x"}
- {http: ":80", https: ":81"}
- {http: ":80"}
- {http: ":80"}
- {}
services: []
---> 2:11: address `x`: write it as
---> 3:3: exactly one of `http` and `https`
---> 5:10: address `:80` stands already at 4:10
---> 6:3: exactly one of
====
listen:
- {http: "unix:run/x"}
- {http: "unix:/run/x?mode=888"}
- {http: "unix:/run/x?mode=1000"}
- {http: "unix:/run/y?mode=0777"}
- {http: "unix:/run/y?mode=0777"}
- {https: "unix:/run/z", proxy_protocol: true}
- {http: "unix:/run/w", proxy_protocol: [10.0.0.0/8]}
- {http: ":81", proxy_protocol: true}
- {http: ":82", proxy_protocol: []}
- {http: ":83", proxy_protocol: {a: b}}
- {http: ":84", proxy_protocol: 10.0.0.0/8}
- {http: ":85", proxy_protocol: [1.2.3.4, 0.0.0.0/0, 128.0.0.0/1, "::/0", "::1", "2001:db8::/32"]}
- {http: ":86", proxy_protocol: ["1:2:3:4:5:6:7:8/128"]}
services: []
---> 2:10: address `unix:run/x`: behind `unix:` stands a path from `/` on, of at most 107 bytes
---> 3:10: address `unix:/run/x?mode=888`: behind `?` only `mode=`
---> 4:10: address `unix:/run/x?mode=1000`: behind `?` only `mode=`
---> 6:10: address `unix:/run/y?mode=0777` stands already at 5:10
---> 7:11: `https` needs `tls: certificates:`
---> 8:41: `proxy_protocol` of a `unix:` address is `true`
---> 9:33: `proxy_protocol`: `true`: write an address or a range
---> 10:33: `proxy_protocol` names 1 to 64 address ranges
---> 11:33: `proxy_protocol` takes a list of address ranges, not a mapping
====
listen:
- http: ":80"
  proxy_protocol: [10.0.0.1/8, 10.0.0.0/33, 10.0.0.0/08, "2001:db8::1/32", "::/129", 192.0.0.0/1]
- http: ":81"
  proxy_protocol: [1.2.3, 1.2.3.4/8/9, 01.2.3.4, "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7::8"]
- http: ":82"
  proxy_protocol: ["::12345", "::-1", a, "1.2.3.256"]
services: []
---> 3:20: `proxy_protocol`: `10.0.0.1/8`: behind its first 8 bits all must be 0
---> 3:32: `proxy_protocol`: `10.0.0.0/33`: behind `/` stands a whole number from 0 to 32
---> 3:45: `proxy_protocol`: `10.0.0.0/08`: behind `/` stands
---> 3:58: `proxy_protocol`: `2001:db8::1/32`: behind its first 32 bits all must be 0
---> 3:76: `proxy_protocol`: `::/129`: behind `/` stands a whole number from 0 to 128
---> 3:86: `proxy_protocol`: `192.0.0.0/1`: behind its first 1 bits all must be 0
---> 5:20: `proxy_protocol`: `1.2.3`: write an address
---> 5:27: `proxy_protocol`: `1.2.3.4/8/9`: write an address
---> 5:40: `proxy_protocol`: `01.2.3.4`: write an address
---> 5:50: `proxy_protocol`: `1::2::3`: write an address
---> 5:61: `proxy_protocol`: `1:2:3:4:5:6:7`: write an address
---> 5:78: `proxy_protocol`: `1:2:3:4:5:6:7::8`: write an address
---> 7:20: `proxy_protocol`: `::12345`: write an address
---> 7:31: `proxy_protocol`: `::-1`: write an address
---> 7:39: `proxy_protocol`: `a`: write an address
---> 7:42: `proxy_protocol`: `1.2.3.256`: write an address
====
- name: a
  domain: a.local
  upstream: {url: "http://127.0.0.1:1", proxy_protocol: v3}
- name: b
  domain: b.local
  upstream: {url: "https://127.0.0.1:1", proxy_protocol: v1}
---> 3:57: `proxy_protocol` is one of v1, v2
---> 6:19: http.upstream: no proxy_protocol for HTTP/2 and https
====
- name: a
  domain: a.local
  upstream: [http://127.0.0.1:1, http://127.0.0.1:2]
---> 3:13: not supported yet: `upstream` with several
====
- name: a
  domain: a.local
  upstream: http://${HOST}/
---> 3:13: not supported yet: ${NAME} in a value
====
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
  auth: {}
---> 4:3: not supported yet: `auth`
====
tls: {}
services: []
---> 1:6: `certificates` is missing
====
tls:
  certificates:
  - {cert: a.pem}
  min_version: "1.1"
  acme: {}
services: []
---> 3:5: `key` is missing
---> 4:16: `min_version` is one of 1.2, 1.3
---> 5:3: not supported yet: `acme`
====
tls:
  certificates:
  - {cert: nowhere.pem, key: nowhere.key}
services: []
---> 3:5: nowhere.pem: not found
====
trusted_proxies: []
services: []
---> 1:1: not supported yet: `trusted_proxies`
====
defaults:
  timeouts: {idle: 60}
services: []
---> 2:20: `idle`: `60` is not allowed: a duration with its unit
====
defaults:
  timeouts: {idle: 0s, tunnel: 25h, connect: 1x, first_byte: 1ms}
services: []
---> 2:20: `idle`: `0s` is not allowed: a duration with its unit
---> 2:32: `tunnel`: `25h` is not allowed
---> 2:46: `connect`: `1x` is not allowed
====
defaults:
  limits: {header: 128KiB, headers: 129, body: 10MB, min_rate: 240}
services: []
---> 2:20: `header`: `128KiB` is not allowed: 1KiB to 64KiB
---> 2:37: `headers`: `129` is not allowed: 1 to 128
---> 2:48: `body`: `10MB` is not allowed: a size with its unit
---> 2:64: `min_rate`: `240` is not allowed: a rate with its unit
====
defaults: {timeouts: {idel: 1s}, limits: {rate: 1}, auth: {}}
services: []
---> 1:23: unknown key `idel`; did you mean `idle`?
---> 1:43: not supported yet: `rate`
---> 1:53: not supported yet: `auth`
====
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
  limits: {headers: 10}
  timeouts: 5s
---> 4:12: `headers` holds before a route is known: only under `defaults`
---> 5:13: `timeouts` takes a mapping, not a value
====
- name: a
  domain: a.local
  pathRoutes:
  - path: /a
    upstream: http://127.0.0.1:9000
    timeouts: {idle: 1s}
---> 6:5: not supported yet: `timeouts`
====
- name: a
  domain: a.local
  path: api
  upstream: http://127.0.0.1:9000
---> 3:9: path `api`: a path begins with `/`
====
- name: a
  domain: a.local
  path: /a?b
  upstream: http://127.0.0.1:9000
---> 3:9: path `/a?b`: a path has no `?`
====
- name: a
  domain: a.local
  path: /a//b
  upstream: http://127.0.0.1:9000
---> 3:9: path `/a//b`: two `/`
====
- name: a
  domain: a.local
  path: /a/../b
  upstream: http://127.0.0.1:9000
---> 3:9: path `/a/../b`: write it without
====
- name: a
  domain: a.local
  path: /a%zz
  upstream: http://127.0.0.1:9000
---> 3:9: path `/a%zz`: `%` takes two hex digits
====
- name: a
  domain: a.local
  path: {regex: x}
  upstream: http://127.0.0.1:9000
---> 3:9: not supported yet: exact and regex
====
- name: a
  domain: a.local
  pathRoutes:
  - path: /x
---> 4:5: `upstream` is missing
====
- name: a
  domain: a.local
  pathRoutes: 3
---> 3:15: `pathRoutes` takes a list, not a value
====
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
- name: b
  domain: [b.local, A.LOCAL]
  upstream: http://127.0.0.1:9001
---> 5:21: domain `a.local` with path `/` is already routed at 2:11
====
- name: a
  domain: a.local
  pathRoutes:
  - {path: /x, upstream: "http://127.0.0.1:1"}
  - {path: /x/, upstream: "http://127.0.0.1:2"}
---> 5:5: domain `a.local` with path `/x` is already routed at 4:5
====
a: b: c
---> 1:5: mapping values are not allowed in this context
====
- name: a
\tdomain: b
---> indent with spaces, not tabs
====
- name: "a
---> found unexpected end of stream
====
- name: &x a
---> 1:9: anchors (&name) are not supported
====
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
---
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
---> 4:1: a second document starts here
====
- name: a
  upstream: http://127.0.0.1:9000- name: b
  domain: b.local
---> the file had no line end before something was appended
====
services:
  - name: a
    domain: a.local
    upstream: http://127.0.0.1:9000
- name: b
  domain: b.local
---> 5:1: did not find expected key
---> the list of line 2 is indented by 2
--->     |   - name: b
    |     domain: b.local
====
services:
- name: a
  domain: a.local
  upstream: http://127.0.0.1:9000
log:
  level: x
- name: b
  domain: b.local
---> 7:1: did not find expected key
---> the list ended before line 5, `log:`
====
services: []
pathRoutes:
- path: /x
  upstream: http://127.0.0.1:9000
- name: b
  domain: b.local
---> 5:3: `name` inside `pathRoutes`
====
"""


def mistakes():
    """Each file with the parts of messages that it must give."""
    for case in MISTAKES.split("====\n")[1:-1]:
        lines = case.splitlines(keepends=True)
        parts = [line[len("---> "):].rstrip("\n") for line in lines if line.startswith("---> ")]
        yield "".join(line for line in lines if not line.startswith("---> ")), parts


def check_file(toau, folder, text, **variables):
    (folder / "gateway.yaml").write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return run([CROWNYC, "run", toau, "check", "gateway.yaml"], cwd=folder, env=environment(**variables))


def test_each_mistake_has_its_message(folder):
    toau = compile_gateway(folder)
    wrong = []
    for text, parts in mistakes():
        code, out, err = check_file(toau, folder, text)
        lacking = [part for part in parts if part not in err]
        if code != EXIT_CONFIGURATION or out or lacking or "gateway.yaml:" not in err:
            wrong.append(f"{text!r}: exit code {code}, lacks {lacking}\n{out}{err}")
    check(not wrong, "\n".join(wrong))


def test_all_mistakes_come_at_once_and_are_counted(folder):
    toau = compile_gateway(folder)
    code, _, err = check_file(toau, folder, "- nam: a\n  domain: a b\n"
                                            "- name: b\n  domain: b.local\n  upstream: x\n  zzz: 1\n")
    check_equal(code, EXIT_CONFIGURATION, "exit code")
    for place in ("1:3:", "2:11:", "5:13:", "6:3:"):
        check_in(f"gateway.yaml:{place}", err, "messages")
    lines = err.strip().splitlines()
    check_equal(lines[-1], f"gateway.yaml: {len(lines) - 1} errors; the configuration was refused", "last line")


def test_text_that_is_not_utf8(folder):
    toau = compile_gateway(folder)
    code, _, err = check_file(toau, folder, b"- name: \xff\n")
    check_equal(code, EXIT_CONFIGURATION, "exit code")
    check_in("gateway.yaml:1:9: not UTF-8 (byte 0xFF)", err, "message")


def test_korean_messages(folder):
    toau = compile_gateway(folder)
    code, _, err = check_file(toau, folder, SLIP, LANG="ko_KR.UTF-8")
    check_equal(code, EXIT_CONFIGURATION, "exit code")
    check_in("gateway.yaml:2:3: 모르는 키 `domian`. 혹시 `domain`?", err, "message")
    check_in("gateway.yaml: 오류 2개, 설정을 받아들이지 않았습니다", err, "last line")


def test_a_good_file(folder):
    toau = compile_gateway(folder)
    said = "gateway.yaml: good (1 services, 1 routes)\n"
    check_equal(check_file(toau, folder, GOOD), (EXIT_OK, said, ""), "check of a good file")
    check_equal(check_file(toau, folder, "[]\n")[0], EXIT_OK, "check of no services")


def test_a_long_file(folder):
    """20,000 services: a task may not compute for a second without a pause, and this one must not be stopped for it."""
    toau = compile_gateway(folder)
    text = (f"- name: s{i}\n  domain: d{i}.local\n  upstream: http://127.0.0.1:{1 + i % 100}\n" for i in range(20000))
    code, out, err = check_file(toau, folder, "".join(text))
    check_equal((code, out, err), (EXIT_OK, "gateway.yaml: good (20000 services, 20000 routes)\n", ""), "check")


def test_not_strict(folder):
    """Unknown keys and clashes become counted warnings, the first of two equal routes stands; nothing else passes."""
    toau = compile_gateway(folder)
    first, second = Upstream("first"), Upstream("second")
    yaml = (f"- name: a\n  domain: a.local\n  upstream: {first.url}\n  weight: 3\n"
            f"- name: b\n  domain: a.local\n  upstream: {second.url}\n")
    code, _, err = check_file(toau, folder, yaml, GW_STRICT=0)
    check_equal(code, EXIT_OK, "exit code of check")
    check_in("gateway.yaml:4:3: unknown key `weight`", err, "warnings")
    check_equal(err.strip().splitlines()[-1], "미인식 키: 2건 (unrecognised keys: 2)", "last line")
    gateway = Gateway(toau, yaml, folder, GW_STRICT=0, GW_WORKERS=2)
    check_equal(gateway.get("a.local").fields.get("x-upstream"), "first", "the route that stands")
    check_equal(gateway.text("err").count("미인식 키: 2건"), 1, "times that the count of warnings is said")
    code, _, err = check_file(toau, folder, GOOD, GW_STRICT=0)
    check_equal((code, err.strip()), (EXIT_OK, "미인식 키: 0건 (unrecognised keys: 0)"), "count of a good file")
    doubled = check_file(toau, folder, "- name: a\n  name: b\n", GW_STRICT=0)
    check_equal(doubled[0], EXIT_CONFIGURATION, "exit code of a doubled key")


def start_refused(toau, folder, code, yaml=GOOD, **variables):
    """A start that must end with `code`; its messages."""
    gateway = Gateway(toau, yaml, folder, wait=False, **variables)
    check_equal(gateway.wait_exit(), code, f"exit code with {variables}")
    check_equal(gateway.text("out"), "", "stdout of a start that was refused")
    return gateway.text("err")


def test_a_bad_file_ends_the_start(folder):
    toau = compile_gateway(folder)
    err = start_refused(toau, folder, EXIT_CONFIGURATION, SLIP)
    check_in(":2:3: unknown key `domian`; did you mean `domain`?", err, "messages")
    check_equal(err.count("unknown key"), 1, "times that it is said")
    err = start_refused(toau, folder, EXIT_CONFIGURATION, GW_YAML=folder / "nowhere.yaml")
    check_in("nowhere.yaml", err, "message")
    err = start_refused(toau, folder, EXIT_CONFIGURATION, GW_YAML="")
    check_in("GW_YAML is not set", err, "message")


# variable, value, part of the message
BAD_VARIABLES = [
    ("GW_PORT", "0", "a whole number from 1 to 65535"),
    ("GW_PORT", "65536", "a whole number from 1 to 65535"),
    ("GW_PORT", "http", "a whole number from 1 to 65535"),
    ("GW_PORT", "-1", "a whole number from 1 to 65535"),
    ("GW_PORT", "99999999999999999999", "a whole number from 1 to 65535"),
    ("GW_WORKERS", "0", "a whole number from 1 to 1024"),
    ("GW_WORKERS", "1025", "a whole number from 1 to 1024"),
    ("GW_BIND", "localhost", "an IPv4 or IPv6 address"),
    ("GW_BIND", "256.0.0.1", "an IPv4 or IPv6 address"),
    ("GW_WID", "a b", "letters, digits"),
    ("GW_STRICT", "yes", "0 or 1"),
    ("GW_SHADOW", "2", "0 or 1"),
    ("GW_REDIRECT", "x", "0 or 1"),
]


def test_bad_variables(folder):
    toau = compile_gateway(folder)
    for name, value, part in BAD_VARIABLES:
        err = start_refused(toau, folder, EXIT_USAGE, **{name: value})
        check_in(f"{name}={value} is not allowed: ", err, "message")
        check_in(part, err, f"message of {name}={value}")
        check_equal(len(err.splitlines()), 1, f"lines about {name}={value}")
    err = start_refused(toau, folder, EXIT_USAGE, GW_PORT="x", GW_STRICT="y", GW_WORKERS="z")
    check_equal(len(err.splitlines()), 3, "lines about three bad variables")


def test_commands(folder):
    toau = compile_gateway(folder)
    code, out, _ = run([CROWNYC, "run", toau, "--help"])
    check_equal(code, EXIT_OK, "exit code of --help")
    for name in ("GW_PORT", "GW_BIND", "GW_YAML", "GW_WID", "GW_REDIRECT", "GW_WORKERS", "GW_USER", "GW_STRICT",
                 "GW_SHADOW"):
        check_in(name, out, "help")
    for words, part in ((["nonsense"], "unknown command: nonsense"), (["show"], "not supported yet: show")):
        code, _, err = run([CROWNYC, "run", toau, *words])
        check_equal(code, EXIT_USAGE, f"exit code of {words}")
        check_in(part, err, "message")
    code, _, err = run([CROWNYC, "run", toau, "check", "nowhere.yaml"], cwd=folder)
    check_equal(code, EXIT_CONFIGURATION, "exit code of check without a file")
    check_in("nowhere.yaml: cannot be read", err, "message")


def test_shadow_opens_loopback_only(folder):
    toau = compile_gateway(folder)
    gateway = Gateway(toau, GOOD, folder, GW_SHADOW=1, GW_BIND="0.0.0.0")
    addresses = listening_addresses(gateway.port)
    check_equal(addresses, {"0100007F"}, "addresses that listen (hexadecimal, as the kernel lists them)")
    gateway.wait_line("GW_SHADOW=1: only 127.0.0.1", "err")


def listening_addresses(port):
    """Local addresses of IPv4 and IPv6 sockets that listen on a port."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if not pathlib.Path(table).exists():
            continue
        for line in pathlib.Path(table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.rpartition(":")[2], 16) == port:
                found.add(local.rpartition(":")[0])
    return found


run_all(globals())
