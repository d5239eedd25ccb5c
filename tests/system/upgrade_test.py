#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/upgrade_test.py: proves that SIGUSR2 replaces the running binary without a request being lost: on new
# connections, on kept ones, on UNIX sockets, with more workers than before and with fewer; that a binary which does not
# come up leaves the old one serving; that SIGUSR1 opens the access log again; and that numbers outlive their worker.

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, Program, check, check_equal, check_in, children_of,  # noqa: E402
                     environment, free_port, request, run_all, wait_until)

SERVER = """
import "fs"
import "http"
import "int"
import "process"
import "task"
import "text"

export fn main(args) {{
    process.workers(int.parse(text.trim(fs.read("{folder}/workers"))), {{drain_ms: {drain_ms}}})
    http.serve({{listen: [{listen}], admin: "127.0.0.1:{admin}", banner: "serving",
        access_log: {{to: "{folder}/access.log", format: "json"}}}})
}}

export fn handle(request) {{
    if request.path == "/hold" {{
        print("held")
        while !fs.exists("{folder}/go") {{ task.sleep(5) }}
    }}
    return http.respond(200, "x")
}}
"""


# One that comes sooner than SIGNALS_PAUSE_MS (100) behind the first is no second one. Nothing tells when that is over;
# to send it later changes nothing.
SIGNALS_PAUSE_S = 0.2


class Server(Program):
    """A server whose command is a link on PATH, so that a test can put another binary there."""

    def __init__(self, folder, workers=2, listen=None, drain_ms=20000):
        self.port, self.admin, self.folder = free_port(), free_port(), folder
        (folder / "workers").write_text(str(workers))
        source = folder / "server.han"
        source.write_text(SERVER.format(folder=folder, admin=self.admin, drain_ms=drain_ms,
                                        listen=listen or f'"127.0.0.1:{self.port}"'))
        (folder / "bin").mkdir()
        self.link = folder / "bin/crownyc-under-test"
        self.link.symlink_to(CROWNYC)
        os.environ["PATH"] = f"{folder}/bin:{os.environ['PATH']}"
        super().__init__([self.link.name, "run", "--allow", "write", str(source)], cwd=folder)
        self.wait_line("serving")

    def upgrade(self, workers=None):
        """Gives the next master's process once the one before has left."""
        if workers is not None:
            (self.folder / "workers").write_text(str(workers))
        self.send(signal.SIGUSR2)
        successor = int(self.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
        check_equal(self.process.wait(DEADLINE_S), EXIT_OK, "exit code of the old master")
        return successor

    def metric(self, name):
        text = request(self.admin, "a.local", "/metrics").body.decode()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(f"crownyc_{name} "))


class Load(threading.Thread):
    """Requests without a pause until end(); every failure is kept."""

    def __init__(self, connect, keep):
        super().__init__(daemon=True)
        self.connect, self.keep = connect, keep
        self.count, self.faults, self.stop = 0, [], threading.Event()
        self.first = threading.Event()
        self.start()

    def run(self):
        stream = None
        while not self.stop.is_set():
            try:
                stream = self.one(stream or self.connect())
                self.count += 1
            except OSError as fault:
                self.faults.append(fault)
                stream = None
            self.first.set()

    def one(self, stream):
        kept = b"" if self.keep else b"Connection: close\r\n"
        stream.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n" + kept + b"\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\nx"):
            piece = stream.recv(4096)
            if not piece:
                raise OSError(f"the connection ended behind {answer!r}")
            answer += piece
        if b"connection: close" not in answer.lower():
            return stream
        stream.close()
        return None

    def end(self):
        self.stop.set()
        self.join(DEADLINE_S)
        check(not self.is_alive(), "a client hangs")
        check_equal(self.faults, [], "failed requests")


def tcp(port):
    return lambda: socket.create_connection(("127.0.0.1", port), DEADLINE_S)


def unix(path):
    def connect():
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(DEADLINE_S)
        stream.connect(str(path))
        return stream
    return connect


def is_over(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


def end_process(pid):
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: is_over(pid), f"the end of {pid}")


def upgrade_under_load(server, workers, *connects):
    clients = [Load(connect, keep) for connect in connects for keep in (True, False, False)]
    for client in clients:
        check(client.first.wait(DEADLINE_S), "a client's first answer")
    successor = server.upgrade(workers)
    before = [client.count for client in clients]
    for client, count in zip(clients, before):
        wait_until(lambda c=client, n=count: c.count > n + 10 or c.faults, "answers after the upgrade")
    for client in clients:
        client.end()
    wait_until(lambda: len(children_of(successor)) == workers, f"{workers} workers")
    return successor


def test_no_request_is_lost(folder):
    path = folder / "web.sock"
    port = free_port()
    server = Server(folder, 2, f'"127.0.0.1:{port}", "unix:{path}?mode=600"')
    check_equal(path.stat().st_mode & 0o777, 0o600, "mode of the socket")
    successor = upgrade_under_load(server, 2, tcp(port), unix(path))
    check(path.exists(), "the socket's file is gone with the old master")
    end_process(successor)
    check(not path.exists(), "the socket's file stays")


def test_fewer_workers_serve_every_queue(folder):
    server = Server(folder, 3)
    successor = upgrade_under_load(server, 1, tcp(server.port))
    for _ in range(30):  # the kernel gives new connections to each of the three sockets
        check_equal(request(server.port, "a", "/").status, 200, "status")
    end_process(successor)


def test_more_workers(folder):
    server = Server(folder, 1)
    end_process(upgrade_under_load(server, 3, tcp(server.port)))


def test_a_kept_connection_ends_in_order(folder):
    """A client between two requests gets its next answer, from the old worker, with Connection: close."""
    server = Server(folder)
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=DEADLINE_S)
    client.request("GET", "/")
    check_equal(client.getresponse().read(), b"x", "first answer")
    server.send(signal.SIGUSR2)
    successor = int(server.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
    client.request("GET", "/")
    answer = client.getresponse()
    check_equal((answer.status, answer.read()), (200, b"x"), "second answer")
    check_equal(server.process.wait(DEADLINE_S), EXIT_OK, "exit code")
    end_process(successor)


def test_an_idle_client_is_let_go(folder):
    """A silent client loses its connection without a word, and then the old master leaves. That it keeps it for
    LIMIT_UPGRADE_IDLE_MS, tests/unit/http/timeout_test.c says on a clock of its own."""
    server = Server(folder, 1)
    with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        check_in(b"200 OK", client.recv(4096), "answer")
        successor = server.upgrade()
        check_equal(client.recv(4096), b"", "the end")
    end_process(successor)


def test_a_stop_for_all_behind_an_upgrade_is_graceful(folder):
    """A supervisor that stops the service tells each of its processes once. The old workers, which finish what they
    have, go on with that, and close who is between two requests; the log says that they were told."""
    server = Server(folder, 1, drain_ms=3600000)
    with tcp(server.port)() as running, tcp(server.port)() as idle:
        idle.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        check_in(b"200 OK", idle.recv(4096), "answer")
        running.sendall(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_line("held")
        workers = children_of(server.pid)
        server.send(signal.SIGUSR2)
        successor = int(server.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
        for pid in [*workers, server.pid, *children_of(successor), successor]:
            os.kill(pid, signal.SIGTERM)
        server.wait_line(f"told to stop: what runs is finished; process {successor}, which took over, goes on", "err")
        check_equal(idle.recv(4096), b"", "the end of who is between two requests")
        wait_until(lambda: is_over(successor), "the end of the successor, which has nothing to finish")
        (folder / "go").write_text("")
        answer = running.recv(4096)
        check_in(b"HTTP/1.1 200 OK", answer, "what ran when all were told")
        check_equal(server.process.wait(DEADLINE_S), EXIT_OK, "exit code of the old master")


def test_the_one_before_leaves_at_once_when_told_twice(folder):
    """It has a request that does not end and an hour for it. The second signal does not wait, as without an upgrade."""
    server = Server(folder, 1, drain_ms=3600000)
    with tcp(server.port)() as client:
        client.sendall(b"GET /hold HTTP/1.1\r\nHost: a\r\n\r\n")
        server.wait_line("held")
        server.send(signal.SIGUSR2)
        successor = int(server.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
        server.send(signal.SIGTERM)
        server.wait_line("told to stop: what runs is finished", "err")
        time.sleep(SIGNALS_PAUSE_S)
        server.send(signal.SIGTERM)
        check_equal(server.process.wait(DEADLINE_S), EXIT_OK, "exit code of the old master")
        check_equal(client.recv(4096), b"", "the end")
    server.wait_line("told to stop while stopping: workers are ended without waiting; "
                     "the process that took over goes on", "err")
    check_equal(request(server.port, "a", "/").status, 200, "status")
    end_process(successor)


def test_a_bad_binary_leaves_the_old_one(folder):
    server = Server(folder)
    server.link.unlink()
    server.link.write_text("#!/bin/sh\nexit 7\n")
    server.link.chmod(0o755)
    server.send(signal.SIGUSR2)
    server.wait_line("upgrade failed: the new process ended with exit code 7; this binary goes on", "err")
    check_equal(request(server.port, "a", "/").status, 200, "status")
    server.link.unlink()
    server.send(signal.SIGUSR2)
    server.wait_line("upgrade failed: not found; this binary goes on", "err")
    check_equal(server.metric("upgrades_failed_total"), 2, "upgrades_failed_total")
    wait_until(lambda: len(children_of(server.pid)) == 2, "only the workers")
    server.link.symlink_to(CROWNYC)
    end_process(server.upgrade())


def test_a_successor_that_breaks_is_told_once(folder):
    """A program that no longer compiles."""
    server = Server(folder)
    (folder / "server.han").write_text("this is no program")
    server.send(signal.SIGUSR2)
    server.wait_line("upgrade failed: the new process ended with exit code 1", "err")
    check_equal(request(server.port, "a", "/").status, 200, "status")
    check_equal(server.text("err").count("upgrade failed"), 1, "messages")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")


RIGHTS = """
import "fs"
import "http"
import "process"

export fn main(args) {{
    process.workers(1)
    http.serve({{listen: ["127.0.0.1:{port}"], banner: "serving"}})
}}

fn may(what, f) {{
    try {{ f() }} catch e {{ return "\\(what): \\(e.kind)" }}
    return "\\(what): done"
}}

export fn handle(request) {{
    return http.respond(200, may("open", fn() {{ fs.write("{folder}/open/x", "") }}) + ", "
        + may("closed", fn() {{ fs.write("{folder}/closed/x", "") }}) + ", "
        + may("secret", fn() {{ fs.read("{folder}/secret/x") }}))
}}
"""


def test_a_successor_has_the_same_rights(folder):
    port = free_port()
    for name in ("open", "closed", "secret"):
        (folder / name).mkdir()
        (folder / name / "x").write_text("")
    (folder / "rights.han").write_text(RIGHTS.format(folder=folder, port=port))
    server = Program([CROWNYC, "run", "--allow", f"write={folder}/open,write={folder}/open", "--deny",
                      f"env,read={folder}/secret", str(folder / "rights.han")], cwd=folder, env=environment())
    server.wait_line("serving")
    rights = "open: done, closed: permission, secret: permission"
    check_equal(request(port, "a.local", "/").body.decode(), rights, "what the first one may")
    server.send(signal.SIGUSR2)
    successor = int(server.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
    check_equal(server.process.wait(DEADLINE_S), EXIT_OK, "exit code of the old master")
    check_equal(request(port, "a.local", "/").body.decode(), rights, "what its successor may")
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: is_over(successor), "the end of the successor")


LATE = """
import "fs"
import "http"
import "process"
import "task"
import "text"

let name = ""

export fn main(args) {{
    process.workers(1, {{files: {{name: "{folder}/name"}}}})
    if fs.exists("{folder}/wait") {{
        fs.write("{folder}/waiting", "")
        while fs.exists("{folder}/wait") {{ task.sleep(5) }}
    }}
    http.serve({{listen: ["127.0.0.1:{port}"], banner: "serving"}})
}}

export fn configure(input) {{ name = text.trim(input.files.name.text) }}

export fn handle(request) {{
    if request.path == "/hold" {{
        fs.write("{folder}/held", "")
        while !fs.exists("{folder}/go") {{ task.sleep(5) }}
    }}
    return http.respond(200, name)
}}
"""


def test_what_comes_during_an_upgrade_reaches_the_successor(folder):
    """The successor has read its configuration and does not serve yet when the old master is told to read it again; and
    once more while the old one drains."""
    port = free_port()

    def name(text):
        (folder / "name").write_text(text)

    def served():
        return request(port, "a.local", "/").body.decode()

    name("first")
    (folder / "late.han").write_text(LATE.format(folder=folder, port=port))
    server = Program([CROWNYC, "run", "--allow", f"write={folder}", str(folder / "late.han")], env=environment())
    server.wait_line("serving")
    check_equal(served(), "first", "served by the first master")
    holder = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
    holder.sendall(b"GET /hold HTTP/1.1\r\nHost: a.local\r\n\r\n")
    wait_until((folder / "held").exists, "a request that holds the old master")
    (folder / "wait").write_text("")
    server.send(signal.SIGUSR2)
    wait_until((folder / "waiting").exists, "a successor with its worker in main")
    name("second")
    server.send(signal.SIGHUP)
    server.wait_line("generation 2 is accepted", "err")
    (folder / "wait").unlink()
    server.wait_line(r"upgrade: process \d+ serves", "err")
    wait_until(lambda: served() == "second", "the successor has what the old master was told to read")
    name("third")
    server.send(signal.SIGHUP)
    wait_until(lambda: served() == "third", "the successor is told what its draining predecessor is")
    (folder / "go").write_text("")
    check_equal(holder.recv(4096).split(b" ")[1], b"200", "status of the request that was held")
    check_equal(server.process.wait(DEADLINE_S), EXIT_OK, "exit code of the old master")
    successor = int(server.wait_line(r"upgrade: process (\d+) serves", "err").group(1))
    os.kill(successor, signal.SIGTERM)
    wait_until(lambda: is_over(successor), "the end of the successor")


def test_a_successor_that_dies_as_it_serves_is_none(folder):
    """The old master learns at one moment that it serves and that it is gone."""
    port = free_port()
    (folder / "name").write_text("first")
    (folder / "late.han").write_text(LATE.format(folder=folder, port=port))
    server = Program([CROWNYC, "run", "--allow", f"write={folder}", str(folder / "late.han")], env=environment())
    server.wait_line("serving")
    (folder / "wait").write_text("")
    server.send(signal.SIGUSR2)
    successor = int(server.wait_line(r"upgrade: process (\d+) is starting", "err").group(1))
    wait_until((folder / "waiting").exists, "a successor with its worker in main")
    server.send(signal.SIGSTOP)
    (folder / "wait").unlink()
    server.wait_line("serving", seen=1)  # said behind the message to the old master
    os.kill(successor, signal.SIGKILL)
    wait_until(lambda: is_over(successor), "the end of the successor")
    server.send(signal.SIGCONT)
    server.wait_line("upgrade failed: the new process was ended by signal 9", "err")
    check_equal(request(port, "a.local", "/").status, 200, "status")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")


def test_foreign_state_is_refused(folder):
    """CROWNYC_UPGRADE of a stranger: the master it names is not our parent, so nothing is taken from it."""
    source = folder / "server.han"
    source.write_text('import "process"\nexport fn main(args) { process.workers(1) }\n')
    state = folder / "state"
    state.write_text("crownyc-upgrade 1\nmaster 1\nchannel 1\n")
    with state.open() as file:
        done = subprocess.run([CROWNYC, "run", source], env=environment(CROWNYC_UPGRADE=file.fileno()),
                              pass_fds=[file.fileno()], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    check_equal(done.returncode, 70, "exit code")
    check_in("malformed", done.stderr)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_access_log_is_opened_again(folder):
    server = Server(folder, 1)
    log, moved = folder / "access.log", folder / "access.log.1"
    check_equal(request(server.port, "a.local", "/one?a=%22").status, 200, "status")
    wait_until(lambda: lines_of(log), "the first line")
    log.rename(moved)
    server.send(signal.SIGUSR1)
    server.wait_line("was opened again", "err")
    request(server.port, "a.local", "/two")
    line = wait_until(lambda: lines_of(log), "a line in the new file")[0]
    check_equal([line["target"] for line in lines_of(moved)], ["/one?a=%22"], "the old file")
    check_equal((line["target"], line["status"], line["method"], line["host"], line["client"]),
                ("/two", 200, "GET", "a.local", "127.0.0.1"), "the new file")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")


def test_the_last_lines_are_written_at_the_end(folder):
    server = Server(folder, 1)
    for i in range(50):
        request(server.port, "a.local", f"/{i}")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")
    check_equal([line["target"] for line in lines_of(folder / "access.log")], [f"/{i}" for i in range(50)], "targets")


def test_numbers_outlive_their_worker(folder):
    server = Server(folder, 1)
    for _ in range(5):
        request(server.port, "a", "/")
    check_equal(server.metric("requests_total"), 5, "requests_total")
    victim = children_of(server.pid)[0]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: children_of(server.pid) not in ([], [victim]), "a successor")
    check_equal(request(server.port, "a", "/").status, 200, "status")
    check_equal(server.metric("requests_total"), 6, "requests_total")
    check_equal(server.metric("workers_restarted_total"), 1, "workers_restarted_total")
    server.send(signal.SIGTERM)
    server.wait_exit()


if __name__ == "__main__":
    run_all(globals())
