#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/differential/run_test.py: what becomes of awkward requests (corpus.py) on their way through a proxy.
#
#   case ─► proxy ─► recording upstream: the bytes that came out, read by strict.py
#
# usage: run_test.py                     ours, against verdicts.txt; a part of the suite
#        UPDATE=1 run_test.py            writes verdicts.txt
#        run_test.py --peers [NAME...]   ours and nginx, HAProxy, Apache, lighttpd, Varnish, as far as they are in PATH,
#                                        side by side (peers.py); not a part of the suite
# Proves: 1. each case has the verdict that verdicts.txt says. 2. What a strict reader refuses we do not forward; what
#        we forward it reads as the same requests, as many, with the same bodies.

import importlib.util
import os
import pathlib
import re
import socket
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import strict  # noqa: E402
from corpus import CASES  # noqa: E402

GOLDEN = HERE / "verdicts.txt"
TIMEOUT_S = 20


class Upstream:
    """Answers each request that the strict reader finds complete; keeps all bytes, by connection, since forget()."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock, self.streams = threading.Lock(), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        stream = {"data": b"", "answered": 0, "incomplete": False}
        with self.lock:
            self.streams.append(stream)
        while True:
            try:
                piece = connection.recv(65536)
            except OSError:
                piece = b""
            if not piece:
                connection.close()
                return
            with self.lock:
                if not any(one is stream for one in self.streams):  # forgotten: a pooled connection of an earlier case
                    if stream["incomplete"]:
                        connection.close()
                        return  # the rest of what was cut off there says nothing about this case
                    stream["data"], stream["answered"] = b"", 0
                    self.streams.append(stream)
                stream["data"] += piece
                requests, why, _ = strict.read(stream["data"])
                answers = b""
                for request in requests[stream["answered"]:]:
                    answers += b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
                    answers += b"" if request.method == b"HEAD" else b"ok"
                stream["answered"], stream["incomplete"] = len(requests), why == "incomplete"
            connection.sendall(answers)
            if why and why != "incomplete":
                connection.close()
                return

    def forget(self):
        with self.lock:
            self.streams = []

    def seen(self):
        """Requests in all, and what the strict reader could not take."""
        with self.lock:
            requests, faults = [], []
            for stream in self.streams:
                found, why, _ = strict.read(stream["data"])
                requests += found
                if why and why != "incomplete":  # what was cut off in the middle is no request for anybody
                    faults.append(why)
            return requests, faults


def statuses(answer):
    return [int(code) for code in re.findall(rb"(?:^|ok|\n)HTTP/1\.[01] ([0-9]{3})", answer)]


def play(port, case, half_close, quiet_s):
    """All bytes of the answer. With `half_close` the end of ours says that no more comes, and theirs ends the case."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        try:
            connection.sendall(case)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(TIMEOUT_S if half_close else quiet_s)
            while True:
                piece = connection.recv(65536)
                if not piece:
                    break
                answer += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        except socket.timeout:
            if half_close:
                raise
    return answer


def shown(requests):
    texts = []
    for request in requests:
        target = request.target if len(request.target) <= 40 else request.target[:37] + b"..."
        body = request.body if len(request.body) <= 20 else request.body[:17] + b"..."
        text = f"{request.method.decode()} {target.decode('ascii', 'backslashreplace')}"
        texts.append(text + (" " + repr(body)[1:] if body else ""))
    return "; ".join(texts) or "nothing"


def judge(case, requests, faults):
    """What a strict reader would frame otherwise: None, or a sentence."""
    if faults:
        return f"forwards what a strict reader refuses: {faults[0]}"
    wanted, why, _ = strict.read(case)
    if len(requests) > len(wanted):
        return (f"forwards {len(requests)} requests, of which a strict reader of the original finds {len(wanted)}"
                f" ({why})")
    for sent, original in zip(requests, wanted):
        if sent.method != original.method or sent.body != original.body:
            return "forwards another method or body than a strict reader of the original finds"
    return None


def run(port, upstream, half_close, quiet_s=0.4):
    """name -> (verdict, offence or None)"""
    results = {}
    for name, case in CASES.items():
        upstream.forget()
        answer = play(port, case, half_close, quiet_s)
        requests, faults = upstream.seen()
        codes = ",".join(map(str, statuses(answer))) or "cut"
        results[name] = (f"{codes} | {shown(requests)}", judge(case, requests, faults))
    return results


def wire():
    spec = importlib.util.spec_from_file_location("wire_run", HERE.parent / "wire" / "run_test.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_ours(half_close=True):
    upstream = Upstream()
    program = wire().compile_server()
    process = subprocess.Popen([program, "127.0.0.1:0", f"http://127.0.0.1:{upstream.port}"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(process.stdout.readline().split()[1])
        return run(port, upstream, half_close)
    finally:
        process.terminate()
        if process.wait(TIMEOUT_S) != 0:
            sys.exit("the server did not end well")


def main():
    if sys.argv[1:2] == ["--peers"]:
        import peers
        return peers.compare(sys.argv[2:])
    results = run_ours()
    lines = [f"{name} | {verdict}" for name, (verdict, _) in results.items()]
    if os.environ.get("UPDATE") == "1":
        GOLDEN.write_text("# What becomes of each case of corpus.py: its name | statuses that the client gets | "
                          "requests that the\n# upstream gets. UPDATE=1 run_test.py writes this; read the difference "
                          "before you believe it.\n" + "\n".join(lines) + "\n")
    known = [line for line in GOLDEN.read_text().splitlines() if not line.startswith("#")]
    failed = 0
    for line in sorted(set(lines) ^ set(known)):
        failed += line in lines
        print(("FAILED now:    " if line in lines else "       golden: ") + line)
    for name, (verdict, offence) in results.items():
        if offence:
            failed += 1
            print(f"FAILED {name}: {offence}: {verdict}")
    print(f"{max(len(lines) - failed, 0)} passed, {max(failed, len(lines) != len(known))} failed")
    return 1 if failed or len(lines) != len(known) else 0


if __name__ == "__main__":
    sys.exit(main())
