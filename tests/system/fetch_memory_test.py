#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/fetch_memory_test.py: proves that what a server sends to http.request is memory of the task that asked:
# past the task's limit that task fails, with the limit's name, before the memory is taken; a task beside it with the
# same answer goes on, and so does the one that failed once it has let go of what it held.

import http.server
import os
import subprocess
import sys
import threading

BODY_BYTES = 40 << 20
PROGRAM = """
import "http"
import "task"
import "text"
fn hold_and_get(url) {
    let first = text.repeat("x", 120 << 20)
    let second = text.repeat("y", 120 << 20)
    let answer = http.get(url, {body_bytes_max: 64 << 20})
    return len(answer.body) + len(first) + len(second)
}
fn get(url) { return len(http.get(url, {body_bytes_max: 64 << 20}).body) }
fn twice(url) {
    try { print(hold_and_get(url)) } catch e { print(e.kind, text.contains(e.message, "TASK_MEMORY_BYTES: 268435456")) }
    return get(url)
}
export fn main(args) {
    let hog = spawn hold_and_get(args[0])
    try { print(task.wait(hog)) } catch e { print(e.kind, text.contains(e.message, "TASK_MEMORY_BYTES: 268435456")) }
    print(task.wait(spawn get(args[0])))
    print(task.wait(spawn twice(args[0])))
    for i in 0..10 { task.wait(spawn get(args[0])) }
    print("end")
}
"""
EXPECTED = f"memory True\n{BODY_BYTES}\nmemory True\n{BODY_BYTES}\nend\n".replace("True", "true")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802
        self.send_response(200)
        self.send_header("Content-Length", str(BODY_BYTES))
        self.end_headers()
        try:
            for _ in range(BODY_BYTES >> 20):
                self.wfile.write(b"z" * (1 << 20))
        except OSError:
            self.close_connection = True  # the client has had enough

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open("fetch.han", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    command = [os.environ["CROWNYC"], "run", "--cpu-ms", "0", "fetch.han", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    server.shutdown()
    if done.returncode != 0 or done.stdout != EXPECTED:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}\nexpected:\n{EXPECTED}")
    print("1 passed, 0 failed")


main()
