#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/allocation_test.py: proves that the gateway's worker, with its real policy over 301 services, allocates
# nothing for a request once as many as now have been under way: HTTP/1 on 480 kept connections, HTTP/2 with 100 streams
# at once and 1,000 more on each connection; and over TLS nothing but what OpenSSL does for each record.
#
#   clients in this process ── gateway (count_malloc.c counts in it) ── bench/upstream
#
# Method: a round is as many requests as may be under way at once, all sent before the first answer is read. Rounds go
#       on until ten in a row have made no call. A new peak of what is under way inside the server, or one
#       that was forgotten (lists of spares are trimmed each second), may make some; one call for each request, or each
#       thousand, never lets a row of so many rounds come.
# Counted: malloc, calloc, realloc and their aligned kin, whoever calls them: ours, OpenSSL, nghttp2, c-ares, libc.
#       The pools (buffers, spares, a heap's small blocks) have their memory from there too, when they grow. Not here:
#       mmap that is called directly; the master, which takes no requests.

import contextlib
import os
import pathlib
import re
import resource
import socket
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BUILD, DEADLINE_S, ROOT, SANITIZED, Gateway, Program, check, check_equal,  # noqa: E402
                     compile_gateway, free_port, run_all, wait_until)
from certificates import Authority  # noqa: E402

HOSTS = [f"h{i:05}.bench.local" for i in range(301)]
CONNECTIONS, STREAMS = 480, 100
TLS_WARM = int(re.search(r"^LIMIT\(TLS_WARM, *(\d+),", (ROOT / "vm/base/limits.def").read_text(), re.M).group(1))
# OpenSSL 3.0 itself, through our hooks: 40 bytes for each thing it writes in pieces (TLS 1.3: one to open a record,
# three to make one), freed at once; and the two buffers of records where a connection gave them back.
TLS_RECORD_CALLS, TLS_BUFFER_CALLS = 4, 2
ROUNDS_MAX = 150
CALLERS = 64


class Counted:
    """A gateway whose allocations are counted, and an upstream that answers with 35 bytes."""

    def __init__(self, folder, secure=False):
        self.folder = folder / "counts"
        self.folder.mkdir()
        library = folder / "count_malloc.so"
        source = pathlib.Path(__file__).with_name("count_malloc.c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        upstream = Program([BUILD / "bench/upstream"])
        port = upstream.wait_line(r"^(\d+)$").group(1)
        services = "".join(f"- name: s{i}\n  domain: {host}\n  upstream: http://127.0.0.1:{port}\n"
                           for i, host in enumerate(HOSTS))
        self.authority = None
        more = {"LD_PRELOAD": library, "COUNT_MALLOC_FOLDER": self.folder}
        self.port = free_port()
        if secure:
            self.authority = Authority(folder)
            self.authority.make("a", "DNS:*.bench.local")
            services = (f"listen:\n- https: '127.0.0.1:{self.port}'\n"
                        "tls: {certificates: [{cert: a.pem, key: a.key}]}\nservices:\n"
                        + "".join(f"  {line}\n" for line in services.splitlines()))
            self.gateway = Gateway(compile_gateway(folder), services, folder, **more)
        else:
            self.gateway = Gateway(compile_gateway(folder), services, folder, GW_PORT=self.port, **more)
        self.worker = wait_until(self.gateway.workers, "a worker")[0]

    def words(self):
        path = self.folder / str(self.worker)
        return struct.unpack(f"={1 + 2 * CALLERS}Q", path.read_bytes())

    def count(self):
        return self.words()[0]

    def callers(self, count):
        """Who called last, for whoever has to find out: addresses in the worker, and sizes."""
        words = self.words()
        last = [(words[0] - 1 - i) % CALLERS for i in range(min(count, CALLERS, words[0]))]
        maps = [line.split() for line in pathlib.Path(f"/proc/{self.worker}/maps").read_text().splitlines()]
        begins = {}
        for fields in maps:
            if len(fields) > 5:
                begins.setdefault(fields[5], int(fields[0].partition("-")[0], 16))
        told = []
        for at in last[:12]:
            caller, size = words[1 + 2 * at], words[2 + 2 * at]
            name, begin = max(((name, begin) for name, begin in begins.items() if begin <= caller),
                              key=lambda one: one[1], default=("?", 0))
            told.append(f"{pathlib.Path(name).name}+{caller - begin:#x} ({size} bytes)")
        return ", ".join(told)

    def quiet_rounds(self, one_round, rows, requests, most=0):
        """Rounds until `rows` in a row made no more than `most` calls for each request."""
        start = before = self.count()
        check(start > 0, "nothing was counted: the library is not in the worker")
        quiet = 0
        for number in range(ROUNDS_MAX):
            one_round(number)
            now = self.count()
            quiet = quiet + 1 if now - before <= most * requests else 0
            last, before = now - before, now
            if quiet == rows:
                print(f"{rows * requests} requests with at most {most} allocations each, behind "
                      f"{(number + 1 - rows) * requests}; {now - start} in all")
                return
        check(False, f"{ROUNDS_MAX} rounds of {requests} requests, {rows} in a row never had at most {most} each: "
                     f"{(before - start) / ROUNDS_MAX / requests:.3f} each in all, {last} in the last round; the last "
                     f"came from {self.callers(last or 12)}")


def ask_all(connections, hosts):
    """One request on each, then all answers."""
    for connection, host in zip(connections, hosts):
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: %s\r\nUser-Agent: test\r\nAccept: */*\r\n\r\n" % host.encode())
    for connection in connections:
        answer = b""
        while not answer.endswith(b"ok</body></html>\n"):
            piece = connection.recv(4096)
            check(piece, f"the gateway closed a connection behind {answer!r}")
            answer += piece
        check(answer.startswith(b"HTTP/1.1 200 "), f"status: {answer[:80]!r}")


def keep_alive(counted, count, wrap=None, most=0):
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(count):
            plain = opened.enter_context(socket.create_connection(("127.0.0.1", counted.port), DEADLINE_S))
            connections.append(opened.enter_context(wrap(plain)) if wrap else plain)
        before = counted.count()
        ask_all(connections, HOSTS * 2)
        check(counted.count() > before, "the first requests allocate; nothing was counted")
        counted.quiet_rounds(lambda number: ask_all(connections, (HOSTS * 3)[number % 301:]), 10, count, most)


def test_http1_kept_connections(folder):
    keep_alive(Counted(folder), CONNECTIONS)


def test_tls_kept_connections(folder):
    counted = Counted(folder, secure=True)
    context = counted.authority.client()
    for count, most in ((TLS_WARM, TLS_RECORD_CALLS), (CONNECTIONS, TLS_RECORD_CALLS + TLS_BUFFER_CALLS)):
        keep_alive(counted, count, lambda plain: context.wrap_socket(plain, server_hostname=HOSTS[0]), most)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A field without an entry in the table and without Huffman's code."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


class Http2:
    """A connection with prior knowledge that sends requests without bodies and counts answers."""

    DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
    END_STREAM, END_HEADERS, ACK = 1, 4, 1

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self.received, self.next_stream = b"", 1
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(self.SETTINGS, 0, 0)
                            + frame(self.WINDOW, 0, 0, struct.pack(">I", 1 << 30)))

    def ask(self, hosts):
        sent = b""
        for host in hosts:
            head = b"\x82\x86" + literal(b":path", b"/x") + literal(b":authority", host.encode())  # GET, http
            sent += frame(self.HEADERS, self.END_HEADERS | self.END_STREAM, self.next_stream, head)
            self.next_stream += 2
        self.socket.sendall(sent)
        left, body_bytes = len(hosts), 0
        while left > 0:
            kind, flags, payload = self.frame()
            check(kind not in (self.RESET, self.GOAWAY), f"frame {kind}: {payload!r}")
            if kind == self.SETTINGS and not flags & self.ACK:
                self.socket.sendall(frame(self.SETTINGS, self.ACK, 0))
            if kind == self.DATA:
                body_bytes += len(payload)
            if kind in (self.DATA, self.HEADERS) and flags & self.END_STREAM:
                left -= 1
        check_equal(body_bytes, 35 * len(hosts), "bytes of the bodies")

    def frame(self):
        while len(self.received) < 9 or len(self.received) < 9 + int.from_bytes(self.received[:3], "big"):
            piece = self.socket.recv(65536)
            check(piece, "the gateway closed a connection")
            self.received += piece
        end = 9 + int.from_bytes(self.received[:3], "big")
        kind, flags, payload = self.received[3], self.received[4], self.received[9:end]
        self.received = self.received[end:]
        return kind, flags, payload

    def end(self):
        self.socket.close()


def test_http2_streams(folder):
    """100 streams at once, and on each of three connections 1,000 without an allocation, in sequence of hundreds."""
    counted = Counted(folder)
    for _ in range(3):
        connection = Http2(counted.port)
        counted.quiet_rounds(lambda number: connection.ask((HOSTS * 2)[number % 301:][:STREAMS]), 10, STREAMS)
        connection.end()


def test_http2_streams_one_by_one(folder):
    """1,000 streams, each behind the answer to the last."""
    counted = Counted(folder)
    connection = Http2(counted.port)

    def one_round(number):
        for i in range(STREAMS):
            connection.ask([HOSTS[(number * STREAMS + i) % len(HOSTS)]])

    counted.quiet_rounds(one_round, 10, STREAMS)
    connection.end()


if SANITIZED or sys.platform != "linux":
    print("skipped: AddressSanitizer has a malloc of its own; LD_PRELOAD and /proc are Linux's\n0 passed, 0 failed")
    sys.exit(0)
files = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, files[1]), files[1]))
os.environ.pop("LD_PRELOAD", None)
run_all(globals())
