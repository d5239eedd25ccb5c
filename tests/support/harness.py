# SPDX-License-Identifier: MIT
#
# tests/support/harness.py: what the system tests share: starting programs, waiting for what they say, small upstreams,
# requests written by hand, counting.
#
# In:   CROWNYC (the binary) and BUILD from tests/run; without them the debug build.
# Out:  run_all() prints failures and "N passed, N failed", and exits with 1 when anything failed.
# Invariants: nothing sleeps for a guess; every wait ends with an event or a deadline. A test ends only processes that
#       it started, by their process group.

import contextlib
import http.client
import http.server
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

# Whoever started the tests in the background, or under nohup, ignores these, and so would every program of theirs.
for ignorable in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(ignorable) == signal.SIG_IGN:
        signal.signal(ignorable, signal.SIG_DFL)

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build/debug")).resolve()
CROWNYC = pathlib.Path(os.environ.get("CROWNYC", BUILD / "crownyc")).resolve()
SANITIZED = os.environ.get("CROWNYC_SANITIZED") == "1"
DEADLINE_S = 100 if SANITIZED else 20
BANNER = re.compile(r"^포트 (\d+) \(프록시, 서비스 (\d+)개\)$")

EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, EXIT_BAD_TOAU, EXIT_CONFIGURATION, EXIT_CANNOT_LISTEN = 0, 1, 2, 3, 4, 5


# What no program of ours may ever say, whichever test is running: a worker that said it is restarted, which hides it.
CRASH = re.compile(r"CHECK failed|AddressSanitizer|LeakSanitizer|runtime error:|was ended by signal (?!9\b)")


class Failed(AssertionError):
    pass


def check(condition, message):
    if not condition:
        raise Failed(message)


def check_equal(found, wanted, what="value"):
    check(found == wanted, f"{what}: {wanted!r} was expected, found {found!r}")


def check_in(part, whole, what="text"):
    check(part in whole, f"{what} lacks {part!r}:\n{whole}")


ports_given = set()


def free_port():
    """A port that is free now, for programs that must be told one. It lies below the range that outgoing connections
    take theirs from: a test beside this one opens thousands of those."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        if port in ports_given:
            continue
        ports_given.add(port)
        with socket.socket() as probe:
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return port


def environment(**more):
    """The caller's, with English messages and no GW_ variables but those given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GW_", "CROWNY_", "LC_"))}
    clean["LANG"] = "C.UTF-8"
    if "CROWNYC_IO" in os.environ:  # tests/run --all: the whole of it once more on another back end of the loop
        clean["CROWNY_IO"] = os.environ["CROWNYC_IO"]
    clean.update({name: str(value) for name, value in more.items()})
    return clean


# -- programs -------------------------------------------------------------------------------------------------------

started = []  # ended after each test, whatever happened in it


class Program:
    """A process whose output is read as it comes."""

    def __init__(self, command, cwd=None, env=None, pass_fds=()):
        self.command = [str(word) for word in command]
        self.changed = threading.Condition()
        self.lines = {"out": [], "err": []}
        self.open_streams = 2
        self.process = subprocess.Popen(self.command, cwd=cwd, env=env or environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                                        pass_fds=pass_fds)
        started.append(self)
        for name, stream in (("out", self.process.stdout), ("err", self.process.stderr)):
            threading.Thread(target=self._read, args=(name, stream), daemon=True).start()

    def _read(self, name, stream):
        for line in stream:
            with self.changed:
                self.lines[name].append(line.decode("utf-8", "replace").rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.open_streams -= 1
            self.changed.notify_all()

    @property
    def pid(self):
        return self.process.pid

    def text(self, name="err"):
        with self.changed:
            return "\n".join(self.lines[name])

    def wait_line(self, pattern, name="out", seen=0, within=DEADLINE_S):
        """The match of the first line behind the first `seen` lines that `pattern` finds."""
        end = time.monotonic() + within
        with self.changed:
            while True:
                for line in self.lines[name][seen:]:
                    match = re.search(pattern, line)
                    if match:
                        return match
                left = end - time.monotonic()
                if left <= 0 or self.open_streams == 0:
                    wanted = getattr(pattern, "pattern", pattern)
                    raise Failed(f"{' '.join(self.command)} did not say /{wanted}/ on std{name}\n{self._show()}")
                self.changed.wait(left)

    def _show(self):
        return "".join(f"  std{name}: {line}\n" for name in ("out", "err") for line in self.lines[name][-30:])

    def line_count(self, name="err"):
        with self.changed:
            return len(self.lines[name])

    def wait_exit(self, within=DEADLINE_S):
        try:
            code = self.process.wait(within)
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(self.command)} did not end\n{self._show()}") from None
        with self.changed:
            self.changed.wait_for(lambda: self.open_streams == 0, DEADLINE_S)
        return code

    def send(self, number):
        os.kill(self.pid, number)

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        with self.changed:
            self.changed.wait_for(lambda: self.open_streams == 0, DEADLINE_S)
        self.process.stdout.close()
        self.process.stderr.close()


def run(command, cwd=None, env=None, within=DEADLINE_S):
    """Runs to the end: (exit code, stdout, stderr) as text."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, env=env or environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=within, check=False)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def children_of(pid):
    """PIDs of the living children."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(") ")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return sorted(found)


def wait_until(condition, what, within=DEADLINE_S):
    """For the few things that announce themselves nowhere (a process is gone): looks again until it is so."""
    end = time.monotonic() + within
    turn = threading.Event()
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < end, f"never came true: {what}")
        turn.wait(0.01)


# -- the gateway ----------------------------------------------------------------------------------------------------

def compile_gateway(folder):
    """The gateway from source, into `folder`."""
    toau = pathlib.Path(folder, "gateway.toau")
    code, _, err = run([CROWNYC, "compile", ROOT / "programs/gateway/main.han", "-o", toau])
    check_equal((code, err), (0, ""), "compiling the gateway")
    return toau


class Gateway(Program):
    """A gateway on a port of its own, ready when the constructor returns."""

    def __init__(self, toau, yaml, folder, wait=True, **variables):
        self.port = variables.pop("GW_PORT", None) or free_port()
        self.yaml = pathlib.Path(folder, f"gateway-{self.port}.yaml")
        self.yaml.write_text(yaml, encoding="utf-8")
        settings = dict(GW_PORT=self.port, GW_BIND="127.0.0.1", GW_YAML=self.yaml, GW_WORKERS=1, GW_WID=f"t{self.port}")
        settings.update(variables)
        super().__init__([CROWNYC, "run", toau], cwd=folder, env=environment(**settings))
        if wait:
            self.services = int(self.wait_line(BANNER).group(2))

    def get(self, host, path="/", method="GET", **more):
        return request(self.port, host, path, method, **more)

    def workers(self):
        return children_of(self.pid)


# -- requests and answers -------------------------------------------------------------------------------------------

class Answer:
    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    def __repr__(self):
        return f"{self.status} {self.fields} {self.body[:200]!r}"


def request(port, host, path="/", method="GET", fields=(), body=None, within=DEADLINE_S):
    """One request on a new connection; `path` is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        for name, value in fields:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()


class Upstream:
    """An HTTP server inside the test. It answers with its name and what it was asked, and keeps the requests.

    A request of /hold is answered when release() is called; held() waits until one is there.
    """

    def __init__(self, name):
        self.name = name
        self.requests = []
        self.holding = threading.Semaphore(0)
        self.released = threading.Event()
        upstream = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                upstream.requests.append((self.command, self.path, self.headers, body))
                if self.path.startswith("/hold"):
                    upstream.holding.release()
                    upstream.released.wait(DEADLINE_S)
                text = f"{upstream.name} {self.command} {self.path}".encode() + (b" " + body if body else b"")
                self.send_response(200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(text)))
                self.send_header("X-Upstream", upstream.name)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(text)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 256
            daemon_threads = True

            def handle_error(self, *_):
                pass  # a client that went away is the test's doing

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        started.append(self)

    def held(self, count=1):
        for _ in range(count):
            check(self.holding.acquire(timeout=DEADLINE_S), "no request reached /hold")

    def release(self):
        self.released.set()

    def end(self):
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


# -- running --------------------------------------------------------------------------------------------------------

def run_all(names):
    """Calls every function of `names` (globals()) that begins with test_, each with a fresh folder."""
    passed = failed = 0
    wanted = sys.argv[1:]
    for name, function in list(names.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        folder = pathlib.Path(tempfile.mkdtemp(prefix="crownyc-test-"))
        try:
            function(folder)
            for program in [one for one in started if isinstance(one, Program)]:
                program.end()
                crash = CRASH.search(program.text("err"))
                check(not crash, f"{crash and crash.group(0)!r} in what {' '.join(program.command)} said")
            passed += 1
        except Exception as fault:  # noqa: BLE001 - whatever happened, the other tests still run
            failed += 1
            print(f"{name}: {fault}" if isinstance(fault, Failed) else f"{name}:\n{traceback.format_exc()}")
            for program in started:
                if isinstance(program, Program):
                    print(f"  {' '.join(program.command)}\n{program._show()}")
        finally:
            while started:
                started.pop().end()
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
