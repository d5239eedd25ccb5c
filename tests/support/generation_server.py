# SPDX-License-Identifier: MIT
#
# tests/support/generation_server.py: a small server program whose every generation answers with its own name.
#
# In:   a folder; Hanseon statements for the start of `handle`.
# Out:  a running server with one worker; reload(name) writes the name into its configuration file and sends SIGHUP. A
#       name that begins with "slow" is configured until release("configure") is called, and a handler that calls
#       wait_for(NAME) goes on when release(NAME) is: the gates are numbers in shared memory that every generation sees.

import signal

from harness import CROWNYC, Program, environment, free_port, request

SERVER = """
import "http"
import "log"
import "process"
import "shared"
import "task"
import "text"

let name = ""

fn wait_for(gate) {{ while shared.get(gate) == 0 {{ task.sleep(1) }} }}

export fn main(args) {{
    process.workers(1, {{files: {{name: "{file}"}}}})
    http.serve({{listen: ["127.0.0.1:{port}"]}})
}}

export fn configure(input) {{
    let said = text.trim(input.files.name.text)
    if !input.checking and text.starts_with(said, "slow") {{ wait_for("configure") }}
    name = said
    return {{banner: "serving \\(said)"}}
}}

export fn handle(request) {{
    if text.starts_with(request.path, "/release/") {{ shared.set(text.slice(request.path, 9, len(request.path)), 1) }}
    {handle}
    return http.respond(200, name)
}}
"""


class Server(Program):
    def __init__(self, folder, handle=""):
        self.port = free_port()
        self.file = folder / "name.txt"
        self.file.write_text("first\n")
        source = folder / "server.han"
        source.write_text(SERVER.format(file=self.file, port=self.port, handle=handle))
        super().__init__([CROWNYC, "run", str(source)], env=environment())
        self.wait_line("serving first")

    def reload(self, name):
        self.file.write_text(name + "\n")
        self.send(signal.SIGHUP)

    def release(self, gate):
        """Opens the gate, by a request to whichever generation is serving."""
        self.body("/release/" + gate)

    def body(self, path="/"):
        return request(self.port, "a.local", path).body.decode()
