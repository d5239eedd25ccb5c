#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/wire/run_test.py: plays the transcripts of tests/wire/*/*.txt against wire_server; README.md has their language.
#
# usage: run_test.py [WORD...]     plays the files whose path holds one of the words; none: all
# In:   BUILD (a folder for the compiled wire_server), CC, CROWNYC_SANITIZED=1.
# Out:  a line per failure, then "N passed, N failed"; exit code 1 when one failed.

import glob
import os
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "tests", "wire")
TIMEOUT_S = 10

class Failure(Exception):
    pass

def compile_server():
    """Builds wire_server as one unit; nothing of it but vm/{base,sys,net,http} is linked."""
    build = os.environ.get("BUILD", os.path.join(ROOT, "build"))
    if not os.path.isabs(build):
        build = os.path.join(ROOT, build)
    os.makedirs(build, exist_ok=True)
    sources = []
    for layer in ("base", "sys", "net", "http"):
        sources += sorted(glob.glob(f"{ROOT}/vm/{layer}/*.c"))
    sources.append(os.path.join(HERE, "wire_server.c"))
    unit = os.path.join(build, "wire_server_unit.c")
    with open(unit, "w") as file:
        file.writelines(f'#include "{os.path.relpath(p, ROOT)}"\n' for p in sources)
    flags = ["-O1", "-g", "-DCY_DEBUG"]
    if os.environ.get("CROWNYC_SANITIZED") == "1":
        flags += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    program = os.path.join(build, "wire_server")
    text = "".join(open(p).read() for p in sources)
    known = (("utf8proc.h", "libutf8proc"), ("ares.h", "libcares"), ("nghttp2/", "libnghttp2"), ("openssl/", "openssl"))
    libraries = [name for header, name in known if f"<{header}" in text]
    pkg = subprocess.run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "--libs", *libraries],
                         capture_output=True, text=True, check=True).stdout.split()
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-D_GNU_SOURCE=", "-I", ROOT, *flags, unit, "-o", program]
    subprocess.run(command + pkg + ["-lpthread", "-lm"], check=True, cwd=ROOT)
    return program

def unescape(text):
    if text.endswith("\\s"):
        text = text[:-2] + " "
    table = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}

    def replace(match):
        if len(match[1]) == 3:
            return chr(int(match[1][1:], 16))
        return table.get(match[1], match[0])

    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", replace, text).encode("latin-1")


class Peer:
    """One end of a connection."""

    def __init__(self, connection, name):
        self.connection, self.name, self.data, self.ended = connection, name, b"", None
        connection.settimeout(TIMEOUT_S)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def more(self):
        """Receives once; False at the end, which is 'end' or 'cut'."""
        if self.ended:
            return False
        try:
            piece = self.connection.recv(65536)
        except ConnectionResetError:
            self.ended = "cut"
            return False
        except socket.timeout:
            raise Failure(f"{self.name}: nothing came in {TIMEOUT_S} s; so far {self.data!r}")
        if not piece:
            self.ended = "end"
            return False
        self.data += piece
        return True

    def line(self):
        while b"\r\n" not in self.data:
            if not self.more():
                raise Failure(f"{self.name}: ended ({self.ended}) instead of a line; left {self.data!r}")
        line, self.data = self.data.split(b"\r\n", 1)
        return line

    def exactly(self, wanted):
        while len(self.data) < len(wanted) and self.more():
            pass
        got, self.data = self.data[:len(wanted)], self.data[len(wanted):]
        if got != wanted:
            raise Failure(f"{self.name}: wanted {wanted[:200]!r}, got {got[:200]!r}")

    def wait_end(self, clean):
        while self.more():
            pass
        if self.data:
            raise Failure(f"{self.name}: {self.data[:200]!r} before the end")
        if clean and self.ended != "end":
            raise Failure(f"{self.name}: cut off instead of a clean end")

    def receive(self, verb, text):
        if verb == "":
            line = self.line()
            if line != unescape(text):
                raise Failure(f"{self.name}: wanted {unescape(text)!r}, got {line!r}")
        elif verb == "|":
            self.exactly(unescape(text))
        elif verb == "*":
            self.exactly(b"x" * int(text))
        elif verb == "~":
            line = self.line()
            if not re.fullmatch(text.encode("latin-1"), line):
                raise Failure(f"{self.name}: wanted {text!r}, got {line!r}")
        elif verb == "...":
            seen = []
            while True:
                seen.append(self.line())
                if seen[-1] == unescape(text):
                    return
                if len(seen) > 1000:
                    raise Failure(f"{self.name}: {text!r} did not come")
        elif verb in ("end", "cut"):
            self.wait_end(verb == "end")
        else:
            raise Failure(f"unknown verb <{verb}")

    def send_all(self, data):
        try:
            self.connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what the other side did next is what the script looks at

    def send(self, verb, text):
        if verb == "":
            self.send_all(unescape(text) + b"\r\n")
        elif verb == "|":
            self.send_all(unescape(text))
        elif verb == "*":
            self.send_all(b"x" * int(text))
        elif verb == "fin":
            self.connection.shutdown(socket.SHUT_WR)
        elif verb == "rst":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif verb == "close":
            self.connection.close()
        else:
            raise Failure(f"unknown verb >{verb}")

class Pipe:
    """Lines of the server's stdout or stderr, gathered as they come."""

    def __init__(self, file):
        self.lines, self.condition = [], threading.Condition()
        self.thread = threading.Thread(target=self.run, args=(file,), daemon=True)
        self.thread.start()

    def run(self, file):
        for line in file:
            with self.condition:
                self.lines.append(line.rstrip("\n"))
                self.condition.notify_all()

    def wait(self, pattern):
        def find():
            return next((m for m in (re.search(pattern, line) for line in self.lines) if m), None)
        with self.condition:
            if not self.condition.wait_for(find, TIMEOUT_S):
                raise Failure(f"no line like {pattern!r} in: " + " / ".join(self.lines[-5:]))
            return find()

class Play:
    def __init__(self, program, backend, path):
        self.steps = [line.rstrip("\n") for line in open(path, encoding="utf-8")]
        options = [o for line in self.steps if line.startswith("options:") for o in line[8:].split()]
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(TIMEOUT_S)
        upstream = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        base = [o for o in options if o.startswith("base=")]
        if base:
            upstream += base[0][5:]
        limit = [int(o[12:]) for o in options if o.startswith("descriptors=")]
        self.process = subprocess.Popen([program, "127.0.0.1:0", upstream, f"loop={backend}", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit[0],) * 2))
                                        if limit else None)
        self.out, self.log = Pipe(self.process.stdout), Pipe(self.process.stderr)
        self.port = int(self.out.wait(r"^port (\d+)")[1])
        self.client = self.upstream = None
        self.opened, self.stopped = [], False

    def connect(self):
        self.client = Peer(socket.create_connection(("127.0.0.1", self.port), TIMEOUT_S), "client")
        self.opened.append(self.client)

    def stop(self):
        """Once: a signal during its exit stops the leak checker for ever."""
        if not self.stopped:
            self.stopped = True
            self.process.send_signal(signal.SIGTERM)

    def step(self, line):
        if line == "client":
            self.connect()
        elif line.startswith("clients "):
            for _ in range(int(line[8:])):
                self.connect()
        elif line == "accept":
            try:
                self.upstream = Peer(self.listener.accept()[0], "upstream")
            except socket.timeout:
                raise Failure("the upstream was not connected to")
            self.opened.append(self.upstream)
        elif line == "down":
            self.listener.close()
        elif line == "stop":
            self.stop()
            self.out.wait("^draining$")
        elif line == "gone":
            self.out.wait("^gone$")
        elif line.startswith("log "):
            self.log.wait(line[4:])
        else:
            match = re.fullmatch(r"(u?)([<>])(\.\.\.|[|*~]|[a-z]*)(?: (.*))?", line)
            if not match:
                raise Failure("not a step")
            if not match[1] and not self.client:
                self.connect()
            peer = self.upstream if match[1] else self.client
            if not peer:
                raise Failure("no upstream connection was accepted")
            (peer.receive if match[2] == "<" else peer.send)(match[3], match[4] or "")

    def run(self):
        for number, line in enumerate(self.steps, 1):
            if not line or line.startswith(("#", "options:")):
                continue
            try:
                self.step(line)
            except Failure as failure:
                raise Failure(f"line {number} ({line}): {failure}")
        self.close()

    def close(self):
        for peer in self.opened:
            peer.connection.close()
        self.listener.close()
        self.stop()
        try:
            code = self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failure("the server did not end")
        if code != 0:
            self.log.thread.join(1)
            raise Failure(f"the server ended with {code}: " + " / ".join(self.log.lines[-12:]))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

def main():
    words = sys.argv[1:]
    if not shutil.which(os.environ.get("CC", "cc")):
        sys.exit("run_test.py: no C compiler")
    program = compile_server()
    backends = ["poll"] + (["epoll"] if hasattr(select, "epoll") else [])
    passed = failed = 0
    for path in sorted(glob.glob(os.path.join(HERE, "*", "*.txt"))):
        if words and not any(word in path for word in words):
            continue
        for backend in backends:
            play = Play(program, backend, path)
            try:
                play.run()
                passed += 1
            except Failure as failure:
                failed += 1
                print(f"FAILED {os.path.relpath(path, ROOT)} [{backend}]: {failure}")
            finally:
                play.kill()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0

if __name__ == "__main__":
    sys.exit(main())
