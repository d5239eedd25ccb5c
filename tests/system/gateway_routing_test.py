#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/gateway_routing_test.py: proves which upstream gets which request: exact host, wildcards, "*", path
# prefixes on segment borders, both root shapes, whatever the order in the file; and what of a request is forwarded.

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import Gateway, Upstream, check, check_equal, check_in, compile_gateway, free_port, run_all  # noqa: E402

NAMES = ["exact", "wide", "wider", "any", "v1", "v1deep", "rootpath", "hangul", "six"]

# The wider rules stand first: order must not matter.
ROUTES = """\
- name: everything
  domain: "*"
  pathRoutes:
  - path: /anywhere
    upstream: {any}
- name: wider
  domain: "*.example.org"
  upstream: {wider}
- name: wide
  domain: "*.api.example.org"
  upstream: {wide}
- name: exact
  domain: [One.Example.org, two.example.org., bench.local]
  upstream: {exact}
  pathRoutes:
  - path: /v1/deep/
    upstream: {v1deep}
  - path: /v1
    upstream: {v1}
  - path: /길
    upstream: {hangul}
- name: paths only
  domain: paths.local
  pathRoutes:
    /only: {v1}
- name: one path
  domain: bench.local
  path: /rootpath
  upstream: {rootpath}
- name: six
  domain: "[::1]"
  upstream: {six}
"""

# host, path, upstream (None: 404)
WANTED = [
    ("one.example.org", "/", "exact"),
    ("ONE.example.ORG:8080", "/", "exact"),
    ("one.example.org.", "/", "exact"),
    ("two.example.org", "/", "exact"),
    ("bench.local", "/", "exact"),
    ("bench.local", "/v1", "v1"),
    ("bench.local", "/v1/", "v1"),
    ("bench.local", "/v1/x", "v1"),
    ("bench.local", "/v1?x=/v1/deep", "v1"),
    ("bench.local", "/v1x", "exact"),
    ("bench.local", "/v1/deep", "v1deep"),
    ("bench.local", "/v1/deep/er/", "v1deep"),
    ("bench.local", "/v1/deeper", "v1"),
    ("bench.local", "/V1", "exact"),
    ("bench.local", "/a/../v1/deep", "v1deep"),
    ("bench.local", "/%76%31/deep", "v1deep"),
    ("bench.local", "/v1/./deep", "v1deep"),
    ("bench.local", "//v1", "exact"),
    ("bench.local", "/%ea%b8%b8/x", "hangul"),
    ("bench.local", "/rootpath", "rootpath"),
    ("bench.local", "/rootpath2", "exact"),
    ("bench.local", "/anywhere", "exact"),
    ("paths.local", "/only", "v1"),
    ("paths.local", "/anywhere", "any"),
    ("paths.local", "/else", None),
    ("x.example.org", "/", "wider"),
    ("x.y.example.org", "/", "wider"),
    ("x.api.example.org", "/", "wide"),
    ("x.y.api.example.org", "/", "wide"),
    ("api.example.org", "/", "wider"),
    ("example.org", "/", None),
    ("badexample.org", "/", None),
    ("unknown.test", "/", None),
    ("unknown.test", "/anywhere/x", "any"),
    ("[::1]", "/", "six"),
    ("[::1]:8080", "/", "six"),
    ("127.0.0.1", "/", None),
]


def upstreams():
    return {name: Upstream(name) for name in NAMES}


def test_who_gets_what(folder):
    toau = compile_gateway(folder)
    ups = upstreams()
    wrong = []
    for back_end in ("epoll", "poll"):
        gateway = Gateway(toau, ROUTES.format(**{n: u.url for n, u in ups.items()}), folder, CROWNY_IO=back_end)
        check_equal(gateway.services, 7, "services of the banner")
        for host, path, wanted in WANTED:
            answer = gateway.get(host, path)
            found = answer.fields.get("x-upstream") if answer.status == 200 else None
            if found != wanted or (wanted is None and answer.status != 404):
                wrong.append(f"{back_end}: {host}{path}: {wanted} was expected, found {found} ({answer})")
        gateway.end()
    check(not wrong, "\n".join(wrong))


def test_both_root_shapes_mean_the_same(folder):
    toau = compile_gateway(folder)
    up, other = Upstream("up"), Upstream("other")
    service = f"- name: a\n  domain: a.local\n  upstream: {up.url}\n"
    shapes = {
        "list": service,
        "services": "services:\n" + service,
        "routes": "routes:\n" + service,
        "indented": "services:\n" + "".join(f"    {line}\n" for line in service.splitlines()),
        "flow": '[{"name": "a", "domain": ["a.local"], "upstream": "' + up.url + '"}]',
        "pathRoutes first": f"pathRoutes:\n- path: /p\n  upstream: {other.url}\nservices:\n{service}",
        "bom": "\ufeff" + service,
        "crlf": service.replace("\n", "\r\n"),
    }
    for shape, text in shapes.items():
        gateway = Gateway(toau, text, folder)
        check_equal(gateway.services, 1, f"services of shape {shape}")
        check_equal(gateway.get("a.local").fields.get("x-upstream"), "up", f"upstream of shape {shape}")
        if shape == "pathRoutes first":
            check_equal(gateway.get("other.local", "/p/q").fields.get("x-upstream"), "other", "root pathRoutes")
            check_equal(gateway.get("other.local", "/q").status, 404, "root pathRoutes, another path")
        gateway.end()


def test_a_block_can_be_appended_to_both_shapes(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    block = f"- name: bench-shadow-test\n  domain: bench.local\n  upstream: {up.url}\n"
    for head in ("", "services:\n"):
        gateway = Gateway(toau, f"{head}- name: a\n  domain: a.local\n  upstream: {up.url}\n" + block, folder)
        check_equal(gateway.services, 2, "services")
        check_equal(gateway.get("bench.local").status, 200, "status of the appended service")
        gateway.end()


def test_what_is_forwarded(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, f"- name: a\n  domain: a.local\n  upstream: {up.url}\n", folder)
    answer = gateway.get("A.local:8080", "/a/../b//c?q=%2f", "POST", body=b"hello", fields=[
        ("X-Custom", "1"), ("Connection", "X-Hop"), ("X-Hop", "2"), ("X-Forwarded-For", "203.0.113.9"),
        ("X-Forwarded-Proto", "https"), ("Accept", "text/x")])
    check_equal(answer.status, 200, "status")
    check_equal(answer.body, b"up POST /a/../b//c?q=%2f hello", "body: the path as it came, the body as it came")
    _, _, fields, _ = up.requests[-1]
    check_equal(fields["Host"], "A.local:8080", "Host as received")
    check_equal(fields["X-Custom"], "1", "a field of the client")
    check_equal(fields["Accept"], "text/x", "a field of the client")
    check_equal(fields["X-Hop"], None, "a field that Connection names")
    check_equal(fields["X-Forwarded-For"], "127.0.0.1", "X-Forwarded-For: an untrusted client's is dropped")
    check_equal(fields["X-Forwarded-Proto"], "http", "X-Forwarded-Proto: an untrusted client's is dropped")
    check_equal(gateway.get("a.local", "/x", "HEAD").body, b"", "body of HEAD")
    check_equal(gateway.get("a.local", "/x", "DELETE").body, b"up DELETE /x", "DELETE")


def test_base_path_of_an_upstream(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, f"- name: a\n  domain: a.local\n  upstream: {up.url}/base/\n", folder)
    check_equal(gateway.get("a.local", "/x?y").body, b"up GET /base/x?y", "path at the upstream")
    for path in ("/../secret", "/..", "/x/../../secret", "/%2e%2E/secret", "/x/.%2e?q"):
        check_equal(gateway.get("a.local", path).status, 400, f"{path}, which leads out of the base path")
    check_equal(gateway.get("a.local", "/..x/.../y?a=/../b").status, 200, "dots that are names")


def test_an_upstream_that_is_not_there_is_502_with_a_reason(folder):
    toau = compile_gateway(folder)
    port = free_port()
    gateway = Gateway(toau, f"- name: a\n  domain: a.local\n  upstream: http://127.0.0.1:{port}\n", folder)
    check_equal(gateway.get("a.local").status, 502, "status")
    line = gateway.wait_line(rf"127\.0\.0\.1:{port}", "err").string
    check_in("refused", line, "log")


def test_more_routes_than_one_cpu_allowance_takes(folder):
    """Path routes rest between them, so that a long file is slow to load and not refused."""
    toau = compile_gateway(folder)
    up = Upstream("up")
    pairs = "".join(f"  - path: /p{i}\n    upstream: {up.url}\n" for i in range(60000))
    gateway = Gateway(toau, f"- name: many\n  domain: many.local\n  pathRoutes:\n{pairs}", folder)
    check_equal(gateway.get("many.local", "/p59999/x").fields.get("x-upstream"), "up", "the last of many")


def test_many_routes_of_one_host(folder):
    """A thousand prefixes, and a path with as many slashes as fit: answers stay right and come at once."""
    toau = compile_gateway(folder)
    up, deep = Upstream("up"), Upstream("deep")
    pairs = "".join(f"  - path: /p{i}/a/b\n    upstream: {up.url}\n" for i in range(1000))
    yaml = f"- name: many\n  domain: many.local\n  pathRoutes:\n{pairs}  - path: /p7/a/b/c\n    upstream: {deep.url}\n"
    gateway = Gateway(toau, yaml, folder)
    check_equal(gateway.get("many.local", "/p999/a/b/x").fields.get("x-upstream"), "up", "the last of many")
    check_equal(gateway.get("many.local", "/p7/a/b/c/d").fields.get("x-upstream"), "deep", "a longer one")
    check_equal(gateway.get("many.local", "/p7/a").status, 404, "a prefix that only leads to others")
    check_equal(gateway.get("many.local", "/" * 8000).status, 404, "many slashes")
    slashes = gateway.get("many.local", "/p7/a/b" + "/" * 8000)
    check_equal(slashes.fields.get("x-upstream"), "up", "many slashes behind a prefix")
    check_equal(gateway.get(".".join(["x"] * 4000), "/").status in (400, 404), True, "a host of many labels")


run_all(globals())
