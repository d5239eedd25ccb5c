#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/bodies_test.py: proves that long bodies come through the gateway as they were sent, both ways, one
# after another on kept connections and on both back ends; that readers of 1 GB who are slow cost the worker little
# memory; and that clients who leave in the middle leave no descriptor behind.

import hashlib
import http.client
import os
import pathlib
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (DEADLINE_S, Gateway, Upstream, check, check_equal, compile_gateway, run_all,  # noqa: E402
                     wait_until)

SLOW_READERS = 20
COST_BYTES_MAX = 256000


def pattern(count):
    block = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(2048))
    return (block * (count // len(block) + 1))[:count]


def gateway_to(url, folder, **variables):
    return Gateway(compile_gateway(folder), f"- name: all\n  domain: \"*\"\n  upstream: {url}\n", folder, **variables)


def test_bodies_come_through_both_ways(folder):
    """The upstream echoes: each body passes twice, and the next request follows on the same connections."""
    upstream = Upstream("up")
    for backend in ("epoll", "poll"):
        gateway = gateway_to(upstream.url, folder, CROWNY_IO=backend)
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_S)
        for count in (10, 32767, 60000, 1 << 20, 9_000_001, 16384, 0, 2_000_000):
            body = pattern(count)
            connection.request("POST", "/echo", body, {"Host": "a"})
            answer = connection.getresponse().read()
            check(answer == b"up POST /echo" + (b" " + body if body else b""), f"{backend}: the echo of {count} bytes")
        connection.close()


class Endless:
    """Answers every connection with the beginning of 1 GB, for as long as it is taken."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=self.listener.accept()[:1], daemon=True).start()
        except OSError:
            pass

    @staticmethod
    def serve(connection):
        try:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 30))
            while True:
                connection.sendall(bytes(1 << 16))
        except OSError:
            connection.close()


def memory_bytes(pid):
    """What the process has for itself."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) * 1024


def is_socket(link):
    try:
        return os.readlink(link).startswith("socket:")
    except FileNotFoundError:  # closed since the folder was read
        return False


def socket_count(pid):
    links = [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
    return sum(is_socket(link) for link in links)


def read_some(connection, count):
    while count > 0:
        piece = connection.recv(min(count, 65536))
        check(piece, "the body ended early")
        count -= len(piece)


def test_slow_readers_cost_little(folder):
    if not sys.platform.startswith("linux"):
        return
    origin = Endless()
    gateway = gateway_to(origin.url, folder)
    worker = gateway.workers()[0]
    sockets = socket_count(worker)
    readers = [socket.create_connection(("127.0.0.1", gateway.port)) for _ in range(SLOW_READERS)]
    before = memory_bytes(worker)
    for reader in readers:
        reader.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    for reader in readers:
        read_some(reader, 4 << 20)
    cost = (memory_bytes(worker) - before) / SLOW_READERS
    check(cost < COST_BYTES_MAX, f"each slow reader costs {cost:.0f} bytes")
    for reader in readers:
        reader.close()
    wait_until(lambda: socket_count(worker) <= sockets, "the sockets of readers and origin to be closed")
    origin.listener.close()


def test_what_follows_a_body_is_not_a_part_of_it(folder):
    """Three requests at once: each body ends where it ends, and the next request begins there."""
    upstream = Upstream("up")
    gateway = gateway_to(upstream.url, folder)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=DEADLINE_S) as client:
        body = pattern(500000)
        one = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        threading.Thread(target=client.sendall, args=(one * 3,), daemon=True).start()  # pipelined
        stream = client.makefile("rb")
        for _ in range(3):
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            check_equal(hashlib.sha256(stream.read(length)).digest(),
                        hashlib.sha256(b"up POST /echo " + body).digest(), "an answer of three")


run_all(globals())
