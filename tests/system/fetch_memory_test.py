#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/fetch_memory_test.py: proves that what a server sends to http.request is memory of the task that asked:
# past the task's limit that task fails, with the limit's name, before the memory is taken; a task beside it with the
# same answer goes on, and so does the one that failed once it has let go of what it held. So is what http.request
# sends, and what process.run and fs.write are given.

import http.server
import os
import subprocess
import sys
import threading

BODY_BYTES = 40 << 20
PROGRAM = """
import "fs"
import "http"
import "process"
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
fn told(e) { return "\\(e.kind) \\(text.contains(e.message, "TASK_MEMORY_BYTES: 268435456"))" }
fn post(url, body, failed) {
    try {
        return http.request("POST", url, {body: body, timeout_ms: 30000}).status
    } catch e {
        failed.value = failed.value + 1
        return told(e)
    }
}
// The str and three bodies on their way are 240 MiB; the server reads none before it is asked to.
fn posts(url) {
    let failed = ref(0)
    let body = text.repeat("p", 60 << 20)
    let all = []
    for i in 0..5 { all = all + [spawn post(url, body, failed)] }
    while failed.value < 2 { task.sleep(1) }
    print(http.get(url + "go").body)
    return task.all(all)
}
fn given() {
    let s = text.repeat("s", 150 << 20)
    try { process.run("true", [], {input: s}) } catch e { print(told(e)) }
    try { fs.write("out", s) } catch e { print(told(e)) }
}
export fn main(args) {
    print(task.wait(spawn posts(args[0])))
    task.wait(spawn given())
    let hog = spawn hold_and_get(args[0])
    try { print(task.wait(hog)) } catch e { print(e.kind, text.contains(e.message, "TASK_MEMORY_BYTES: 268435456")) }
    print(task.wait(spawn get(args[0])))
    print(task.wait(spawn twice(args[0])))
    for i in 0..10 { task.wait(spawn get(args[0])) }
    print("end")
}
"""
SENT = 'read\n[200, 200, 200, "memory true", "memory true"]\n' + "memory true\n" * 2
EXPECTED = SENT + f"memory True\n{BODY_BYTES}\nmemory True\n{BODY_BYTES}\nend\n".replace("True", "true")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    go = threading.Event()

    def do_POST(self):  # noqa: N802
        self.go.wait(60)
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):  # noqa: N802
        if self.path == "/go":
            self.go.set()
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"read")
            return
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
    command = [os.environ["CROWNYC"], "run", "--cpu-ms", "0", "--allow", "run,write=.", "fetch.han", url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    server.shutdown()
    if done.returncode != 0 or done.stdout != EXPECTED:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}\nexpected:\n{EXPECTED}")
    print("1 passed, 0 failed")


main()
