#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/generation_test.py: proves what generations promise to any server program, not only to the gateway: a
# slow configure never undoes a later one; a handler that cannot be called is refused by the checker; configure reads
# nothing but what the master read for it; a request finishes on the instance it began on.

import pathlib
import signal
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from generation_server import Server  # noqa: E402
from harness import (CROWNYC, DEADLINE_S, EXIT_PROGRAM, check_equal, check_in, environment,  # noqa: E402
                     free_port, run, run_all)

class Background(threading.Thread):
    def __init__(self, server, path):
        super().__init__(daemon=True)
        self.server, self.path, self.body = server, path, None
        self.start()

    def run(self):
        self.body = self.server.body(self.path)

    def end(self):
        self.join(DEADLINE_S)
        return self.body


def test_a_slow_configure_does_not_undo_a_later_one(folder):
    """Generation 2 is still being configured when generation 3 is serving: 3 stays when 2 is through."""
    server = Server(folder)
    server.reload("slow second")
    server.wait_line("generation 2 is accepted", "err")
    server.reload("third")
    server.wait_line("generation 3 is serving", "err")
    check_equal(server.body(), "third", "the body")
    server.release("configure")
    server.wait_line("generation 2 was overtaken by generation 3", "err")
    check_equal(server.body(), "third", "the body after the slow one ended")
    server.end()


def test_a_handler_that_takes_no_request_is_refused_before_it_serves(folder):
    """handle() without a parameter could only ever answer 500."""
    source = folder / "bad.han"
    source.write_text("""
import "http"
import "process"
export fn main(args) {
    process.workers(1)
    http.serve({listen: ["127.0.0.1:%d"]})
}
export fn handle() { return http.respond(200) }
""" % free_port())
    code, _, err = run([CROWNYC, "run", str(source)], env=environment())
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("handle must take one argument", err, "stderr")


def test_configure_reads_no_files_of_its_own(folder):
    """What the checker saw and what a worker sees later must be the same bytes."""
    (folder / "other.txt").write_text("x")
    source = folder / "reads.han"
    source.write_text("""
import "fs"
import "http"
import "process"
export fn main(args) {
    process.workers(1)
    http.serve({listen: ["127.0.0.1:%d"]})
}
export fn configure(input) { return {banner: fs.read("%s")} }
export fn handle(request) { return http.respond(200) }
""" % (free_port(), folder / "other.txt"))
    code, _, err = run([CROWNYC, "run", str(source)], env=environment())
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("fs.read: not in configure", err, "stderr")


def test_requests_finish_on_their_instance(folder):
    """A request that waits through a reload is answered by the instance it began on."""
    server = Server(folder, handle='if request.path == "/slow" { log.write("info", "slow began") wait_for("slow") }')
    slow = Background(server, "/slow")
    server.wait_line("slow began", "err")
    server.reload("second")
    server.wait_line("generation 2 is serving", "err")
    check_equal(server.body(), "second", "a new request's body")
    server.release("slow")
    check_equal(slow.end(), "first", "the slow request's body")
    server.end()


run_all(globals())
