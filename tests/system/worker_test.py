#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/worker_test.py: proves what the master promises: a killed worker takes its own connections along and
# nothing else, and is replaced; SIGTERM lets running requests finish; a port in use is seen; SIGHUP takes a good
# configuration without dropping a request and refuses a bad one; dead masters leave no workers.

import http.client
import os
import pathlib
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_CANNOT_LISTEN, EXIT_OK, Gateway, Program, Upstream, check,  # noqa: E402
                     check_equal, check_in, compile_gateway, environment, free_port, request, run_all, wait_until)


def service(upstream, name="a"):
    return f"- name: {name}\n  domain: {name}.local\n  upstream: {upstream.url}\n"


class Background(threading.Thread):
    """One request on its own thread; `answer` or `fault` afterwards."""

    def __init__(self, port, host, path):
        super().__init__(daemon=True)
        self.port, self.host, self.path = port, host, path
        self.answer = self.fault = None
        self.start()

    def run(self):
        try:
            self.answer = request(self.port, self.host, self.path, within=DEADLINE_S * 2)
        except (OSError, http.client.HTTPException) as fault:
            self.fault = fault

    def end(self):
        self.join(DEADLINE_S * 2)
        check(not self.is_alive(), f"{self.path} was never answered")
        return self.answer


def test_a_killed_worker_loses_only_its_own_connections(folder):
    """Requests are held at the upstream by two workers; one worker is killed; the other's requests are all answered."""
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder, GW_WORKERS=2)
    workers = wait_until(lambda: len(gateway.workers()) == 2 and gateway.workers(), "two workers")
    held = [Background(gateway.port, "a.local", f"/hold/{i}") for i in range(40)]
    up.held(len(held))
    owned = {pid: established_connections(pid, gateway.port) for pid in workers}
    check_equal(sum(owned.values()), len(held), f"connections of the workers {owned}")
    victim = min(workers, key=lambda pid: owned[pid])  # the one whose loss leaves most to prove
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: len(set(gateway.workers()) - {victim}) == 2, "a successor of the killed worker")
    up.release()
    for one in held:
        one.end()
    lost = sum(1 for one in held if one.answer is None)
    check_equal(lost, owned[victim], "requests lost")
    for one in held:
        check(one.answer is None or one.answer.status == 200, f"a request of the other worker got {one.answer}")
    for i in range(40):
        check_equal(gateway.get("a.local", f"/after/{i}").status, 200, "status after the restart")
    check_equal(gateway.process.poll(), None, "the master has ended")


def established_connections(pid, port):
    """How many established server-side connections of a port a process holds."""
    inodes = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        target = os.readlink(descriptor)
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    count = 0
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "01" and int(fields[1].rpartition(":")[2], 16) == port and fields[9] in inodes:
            count += 1
    return count


def test_every_worker_can_be_killed_in_turn(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder, GW_WORKERS=2)
    for _ in range(3):
        before = wait_until(lambda: len(gateway.workers()) == 2 and gateway.workers(), "two workers")
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: len(set(gateway.workers()) - set(before)) == 2, "two successors")
        check_equal(gateway.get("a.local").status, 200, "status after both were killed")


def test_term_finishes_running_requests(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder, GW_WORKERS=2)
    held = [Background(gateway.port, "a.local", f"/hold/{i}") for i in range(8)]
    up.held(len(held))
    gateway.send(signal.SIGTERM)
    wait_until(lambda: refuses(gateway.port), "the port closes to new connections")
    check_equal(gateway.process.poll(), None, "the master has ended although requests are running")
    up.release()
    for one in held:
        check(one.end() is not None, f"a running request was cut off: {one.fault}")
        check_equal(one.answer.status, 200, "status of a running request")
    check_equal(gateway.wait_exit(), EXIT_OK, "exit code")


def test_term_for_all_processes_is_graceful_too(folder):
    """As systemd sends it (KillMode=control-group) and timeout(1), which sends it twice."""
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder, GW_WORKERS=2)
    held = [Background(gateway.port, "a.local", f"/hold/{i}") for i in range(8)]
    up.held(len(held))
    for pid in gateway.workers() + [gateway.pid, gateway.pid]:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: refuses(gateway.port), "the port closes to new connections")
    up.release()
    for one in held:
        check(one.end() is not None, f"a running request was cut off: {one.fault}")
    check_equal(gateway.wait_exit(), EXIT_OK, "exit code")


ALONE = """
import "http"
import "task"

export fn main(args) {{ http.serve({{listen: ["127.0.0.1:{port}"], banner: "serving", stop_ms: {stop_ms}}}) }}

export fn handle(request) {{
    print("inside")
    loop {{ task.sleep(1000) }}
}}
"""


# One that comes sooner than SIGNALS_PAUSE_MS (100) behind the first is no second one. Nothing tells when that is over;
# to send it later changes nothing.
SIGNALS_PAUSE_S = 0.2


def test_without_a_master_a_second_signal_does_not_wait(folder):
    """Left alone it would wait for `stop_ms`, which is much longer than this test does. One second signal is enough,
    and not more: behind it the signals are main's again, and would end the process before it has ended itself."""
    port = free_port()
    (folder / "alone.han").write_text(ALONE.format(port=port, stop_ms=20 * DEADLINE_S * 1000))
    server = Program([CROWNYC, "run", str(folder / "alone.han")], env=environment())
    server.wait_line("serving")
    with socket.create_connection(("127.0.0.1", port), DEADLINE_S) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a.local\r\n\r\n")
        server.wait_line("inside")
        server.send(signal.SIGTERM)
        wait_until(lambda: is_closed(port), "the port closes to new connections")
        time.sleep(SIGNALS_PAUSE_S)
        server.send(signal.SIGTERM)
        check_equal(server.wait_exit(), EXIT_OK, "exit code")
    check_in("connections are cut off", server.text("err"), "the log")


def is_closed(port):
    """Asks nothing: `handle` would never answer what came in before the signal was heeded."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def refuses(port):
    try:
        return request(port, "a.local", "/", within=DEADLINE_S) is None
    except ConnectionError:
        return True


def test_a_second_instance_on_the_port_is_refused(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    first = Gateway(toau, service(up), folder)
    second = Gateway(toau, service(up), folder, wait=False, GW_PORT=first.port)
    check_equal(second.wait_exit(), EXIT_CANNOT_LISTEN, "exit code of the second")
    check_in(str(first.port), second.text("err"), "message")
    check_equal(second.text("out"), "", "stdout of the second: no banner")
    check_equal(first.get("a.local").status, 200, "status of the first")


def test_hup_takes_a_good_configuration_and_keeps_running_requests(folder):
    toau = compile_gateway(folder)
    old, new = Upstream("old"), Upstream("new")
    gateway = Gateway(toau, service(old), folder, GW_WORKERS=2)
    held = Background(gateway.port, "a.local", "/hold")
    old.held()
    gateway.yaml.write_text(service(new) + service(new, "b"))
    gateway.send(signal.SIGHUP)
    wait_until(lambda: all(gateway.get("b.local").status == 200 for _ in range(8)), "both workers know the new service")
    wait_until(lambda: all(gateway.get("a.local").fields.get("x-upstream") == "new" for _ in range(8)),
               "the new upstream serves")
    old.release()
    check_equal(held.end().fields.get("x-upstream"), "old", "upstream of the request that was running")


def test_hup_refuses_a_bad_configuration(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder)
    for bad, part in ((service(up) + "  zzz: 1\n", "4:3: unknown key `zzz`"), ("a: b: c\n", "1:5: mapping values")):
        gateway.yaml.write_text(bad)
        gateway.send(signal.SIGHUP)
        gateway.wait_line(part.replace("`", "."), "err")
        check_equal(gateway.get("a.local").status, 200, "status afterwards")
    gateway.yaml.unlink()
    said = gateway.line_count()
    gateway.send(signal.SIGHUP)
    gateway.wait_line(gateway.yaml.name, "err", seen=said)
    check_equal(gateway.get("a.local").status, 200, "status afterwards")
    # And a worker that is killed now starts from the last configuration that was accepted.
    before = gateway.workers()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: len(set(gateway.workers()) - set(before)) == 1, "a successor")
    check_equal(gateway.get("a.local").status, 200, "status of the successor")


def test_workers_end_with_their_master(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder, GW_WORKERS=2)
    workers = wait_until(lambda: len(gateway.workers()) == 2 and gateway.workers(), "two workers")
    gateway.send(signal.SIGKILL)
    gateway.process.wait()
    wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in workers), "the workers have ended")


def test_a_client_that_leaves_is_not_the_upstreams_fault(folder):
    toau = compile_gateway(folder)
    up = Upstream("up")
    gateway = Gateway(toau, service(up), folder)
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=DEADLINE_S)
    connection.request("GET", "/hold", headers={"Host": "a.local"})
    up.held()
    connection.close()
    up.release()
    check_equal(gateway.get("a.local").status, 200, "status of the next")
    check("502" not in gateway.text("err"), gateway.text("err"))


run_all(globals())
