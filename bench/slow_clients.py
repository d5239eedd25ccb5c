#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# bench/slow_clients.py: slowhttptest's four modes against the gateway, and what another client sees meanwhile.
#
# usage: bench/slow_clients.py [BUILD] [SECONDS] [MODES]     BUILD: build; SECONDS of each mode: 30; MODES: HBRX
# In:   BUILD/crownyc, BUILD/gateway.toau; slowhttptest in PATH (Debian package of that name; nothing else needs it).
# Out:  one line per mode: how many connections it held open at most, as it says; what the other client saw, which makes
#       a connection each 100 ms: how many were served and not served (and why), median and worst time; exit code 1 when
#       one was not served. Two workers have 1,024 descriptors each, so that 2,000 connections are more than fit.

import argparse
import collections
import http.client
import http.server
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
CONNECTIONS, DESCRIPTORS, WORKERS, PROBE_TIMEOUT_S = 2000, 1024, 2, 5
MODES = (("-H", "heads that do not end"), ("-B", "bodies that do not come"), ("-R", "many ranges"),
         ("-X", "answers that nobody reads"))
PAGE = b"x" * (1 << 20)


def parse_arguments():
    parser = argparse.ArgumentParser(description="The gateway under slowhttptest, and what another client sees.")
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build",
                        help="folder of crownyc and gateway.toau (build)")
    parser.add_argument("seconds", nargs="?", type=int, default=30, help="of each mode (30)")
    parser.add_argument("modes", nargs="?", default="HBRX",
                        help="; ".join(f"{option[1]}: {what}" for option, what in MODES))
    options = parser.parse_args()
    known = "".join(option[1] for option, _ in MODES)
    if options.seconds < 1 or not options.modes or set(options.modes) - set(known):
        parser.error(f"seconds are 1 or more, modes some of {known}")
    for needed in ("crownyc", "gateway.toau"):
        if not (options.build / needed).exists():
            parser.error(f"{options.build / needed} is not there: make builds it")
    return options.build.resolve(), options.seconds, options.modes


BUILD, SECONDS, ASKED_MODES = parse_arguments()


class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = PAGE if self.path == "/large" else b"small"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_):
        pass


class Upstream(http.server.ThreadingHTTPServer):
    """In a process of its own: what the slow clients do to theirs must not slow the other client's down."""
    daemon_threads, request_queue_size = True, 1024

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Page)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        multiprocessing.Process(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        pass


def probe(port, until, results):
    while time.monotonic() < until:
        began = time.monotonic()
        why = None
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_TIMEOUT_S)
            connection.request("GET", "/", headers={"Host": "other.local"})
            answer = connection.getresponse()
            if answer.read() != b"small":
                why = f"status {answer.status}"
            connection.close()
        except (OSError, http.client.HTTPException) as fault:
            why = type(fault).__name__
        results.append((why, time.monotonic() - began))
        time.sleep(0.1)


def run_mode(flag, port):
    results = []
    prober = threading.Thread(target=probe, args=(port, time.monotonic() + SECONDS, results))
    path = "/large" if flag == "-X" else "/"
    command = ["slowhttptest", flag, "-c", str(CONNECTIONS), "-r", "500", "-i", "5", "-x", "24", "-l", str(SECONDS),
               "-p", "3", "-u", f"http://127.0.0.1:{port}{path}"]
    if flag == "-X":
        command += ["-w", "512", "-y", "1024", "-n", "5", "-z", "32"]
    prober.start()
    said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 60).stdout
    prober.join()
    held = max(map(int, re.findall(r"connected:\s+(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", said))), default=0)
    return held, results


def main():
    if not shutil.which("slowhttptest"):
        sys.exit("slow_clients.py: slowhttptest is not in PATH (Debian: apt install slowhttptest)")
    slow, other = Upstream(), Upstream()
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "gateway.yaml").write_text(
            f'- name: slow\n  domain: "*"\n  upstream: {slow.url}\n'
            f"- name: other\n  domain: other.local\n  upstream: {other.url}\n")
        environment = dict(os.environ, GW_PORT=str(port), GW_BIND="127.0.0.1", GW_YAML="gateway.yaml",
                           GW_WORKERS=str(WORKERS))
        command = f"ulimit -n {DESCRIPTORS}; exec '{BUILD}/crownyc' run '{BUILD}/gateway.toau'"
        gateway = subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)
        gateway.stdout.readline()
        print(f"{'mode':28} {'held':>6} {'served':>7} {'not':>4} {'median ms':>10} {'worst ms':>9}  why not")
        for flag, name in MODES:
            if flag[1] not in ASKED_MODES:
                continue
            held, results = run_mode(flag, port)
            why = collections.Counter(why for why, _ in results if why)
            times = sorted(seconds * 1000 for _, seconds in results)
            failed += why.total()
            print(f"{name:28} {held:6} {len(results) - why.total():7} {why.total():4} {times[len(times) // 2]:10.1f} "
                  f"{times[-1]:9.0f}  {', '.join(f'{count} {word}' for word, count in why.items())}", flush=True)
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(60)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
