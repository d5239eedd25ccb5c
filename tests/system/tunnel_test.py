#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/tunnel_test.py: proves what a WebSocket behind the gateway may rely on: it outlives the generations that
# come after its own, a graceful stop waits for it, and the bounds of `defaults` and of a service hold from the
# generation that says so.

import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (DEADLINE_S, Gateway, Upstream, check_equal, check_in, compile_gateway, run_all)  # noqa: E402

ASK = (b"GET /chat HTTP/1.1\r\nHost: ws.local\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
       b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")


class Echo:
    """Answers every connection with a 101, then with what it is sent, in capitals."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while True:
            data = connection.recv(65536)
            if not data:
                connection.close()
                return
            connection.sendall(data.upper())


class Tunnel:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        self.socket.sendall(ASK)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self.socket.recv(1)
        check_in(b"HTTP/1.1 101 Switching Protocols\r\n", head, "the answer")
        check_in(b"\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", head, "the answer")

    def say(self, words):
        self.socket.sendall(words)
        got = b""
        while len(got) < len(words):
            piece = self.socket.recv(65536)
            if not piece:
                break
            got += piece
        check_equal(got, words.upper(), "what came through the tunnel")


YAML = """\
defaults:
  timeouts: {{tunnel: 1h, connect: 2s}}
  limits: {limits}
services:
- name: ws
  domain: ws.local
  upstream: {ws}
- name: http
  domain: http.local
  upstream: {http}
  limits: {{body: 10B}}
"""


def test_a_tunnel_outlives_reloads_and_a_stop_waits_for_it(folder):
    echo, plain = Echo(), Upstream("plain")
    toau = compile_gateway(folder)
    gateway = Gateway(toau, YAML.format(limits="{}", ws=echo.url, http=plain.url), folder)
    tunnel = Tunnel(gateway.port)
    tunnel.say(b"before")
    long = [("X-Long", "x" * 2000)]
    check_equal(gateway.get("http.local", fields=long).status, 200, "a long head, before")
    for generation in (2, 3, 4, 5):
        limits = "{header: 1KiB, headers: 20}" if generation % 2 else "{header: 4KiB}"
        gateway.yaml.write_text(YAML.format(limits=limits, ws=echo.url, http=plain.url))
        gateway.send(signal.SIGHUP)
        gateway.wait_line(f"generation {generation} is serving", "err")
        tunnel.say(b"generation %d" % generation)
        wanted = 431 if generation % 2 else 200
        check_equal(gateway.get("http.local", fields=long).status, wanted, f"a long head, generation {generation}")
    check_equal(gateway.get("http.local", "/x", "POST", body=b"0123456789").status, 200, "a body at its limit")
    check_equal(gateway.get("http.local", "/x", "POST", body=b"0123456789x").status, 413, "a body past it")
    other = Tunnel(gateway.port)
    gateway.send(signal.SIGTERM)
    while True:  # from the moment when nobody listens any more the stop has begun
        try:
            socket.create_connection(("127.0.0.1", gateway.port), 1).close()
        except ConnectionResetError:
            pass  # the listener closed with this one waiting
        except ConnectionRefusedError:
            break
    tunnel.say(b"while stopping")
    other.socket.close()
    tunnel.say(b"still")
    tunnel.socket.close()
    check_equal(gateway.wait_exit(), 0, "exit code")


run_all(globals())
