# SPDX-License-Identifier: MIT
#
# tests/support/lsp_client.py: a client of the language server, over its stdin and stdout.
#
# In:   a server started here. Out: answers by id, notifications in the order they came.
# Invariant: every read ends with a message or a deadline; the server's stderr is kept and looked at when it ends.

import json
import os
import select
import subprocess
import time

from harness import CRASH, CROWNYC, DEADLINE_S, Failed, check, environment


def uri(path):
    return "file://" + "".join(c if c.isalnum() and c.isascii() or c in "/._-~" else "".join(
        f"%{b:02X}" for b in c.encode()) for c in str(path))


class Client:
    def __init__(self, folder, encodings=None, root=True, initialize=True, **variables):
        self.log = open(folder / "server.stderr", "w+b")
        self.process = subprocess.Popen([str(CROWNYC), "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, bufsize=0,
                                        env=environment(XDG_CACHE_HOME=folder / "cache", **variables))
        self.buffer = b""
        self.notes = []
        self.ids = 0
        self.capabilities = None
        if initialize:
            general = {"positionEncodings": encodings} if encodings else {}
            result = self.ask("initialize", {"processId": None, "rootUri": uri(folder) if root else None,
                                             "capabilities": {"general": general}})
            self.capabilities = result["capabilities"]
            self.tell("initialized", {})

    # -- messages ---------------------------------------------------------------------------------------------------

    def send_bytes(self, data):
        self.process.stdin.write(data)

    @staticmethod
    def frame(message):
        body = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def send(self, message):
        self.send_bytes(self.frame(message))

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method, params):
        """Sends, and gives the id."""
        self.ids += 1
        self.send({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        return self.ids

    def read(self, within=DEADLINE_S):
        """The next message; None at the end of the stream."""
        end = time.monotonic() + within
        while True:
            head, mark, rest = self.buffer.partition(b"\r\n\r\n")
            if mark:
                fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n"))
                length = int(fields[b"Content-Length"])
                if len(rest) >= length:
                    self.buffer = rest[length:]
                    return json.loads(rest[:length])
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise Failed("the server said nothing\n" + self.stderr())
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            if not piece:
                return None
            self.buffer += piece

    def answer(self, wanted):
        """The answer with that id; what comes before it is kept."""
        while True:
            message = self.read()
            if message is None:
                raise Failed("the server ended\n" + self.stderr())
            if "method" in message:
                self.notes.append(message)
            elif message["id"] == wanted:
                return message

    def ask(self, method, params):
        answer = self.answer(self.request(method, params))
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']}")
        return answer["result"]

    def ask_error(self, method, params):
        answer = self.answer(self.request(method, params))
        check("error" in answer, f"{method} was answered: {answer.get('result')}")
        return answer["error"]

    # -- documents --------------------------------------------------------------------------------------------------

    def open(self, path, text):
        self.tell("textDocument/didOpen", {"textDocument": {
            "uri": uri(path), "languageId": "hanseon", "version": 1, "text": text}})

    def change(self, path, text):
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri(path), "version": 2},
                                             "contentChanges": [{"text": text}]})

    def close(self, path):
        self.tell("textDocument/didClose", {"textDocument": {"uri": uri(path)}})

    def diagnostics(self, path):
        """The next ones that are told of a file."""
        while True:
            for index, note in enumerate(self.notes):
                if note["method"] == "textDocument/publishDiagnostics" and note["params"]["uri"] == uri(path):
                    del self.notes[index]
                    return note["params"]["diagnostics"]
            message = self.read()
            if message is None:
                raise Failed("the server ended\n" + self.stderr())
            self.notes.append(message)

    def at(self, path, line, character, **more):
        return {"textDocument": {"uri": uri(path)}, "position": {"line": line, "character": character}, **more}

    # -- the end ----------------------------------------------------------------------------------------------------

    def stderr(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def end(self):
        """Without a word: closes stdin. The exit code."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        while self.read() is not None:
            pass
        return self.wait()

    def leave(self):
        """As the protocol has it. The exit code."""
        self.ask("shutdown", None)
        self.tell("exit", None)
        return self.end()

    def wait(self):
        code = self.process.wait(DEADLINE_S)
        said = self.stderr()
        check(not CRASH.search(said), said)
        self.process.stdout.close()
        self.log.close()
        return code
