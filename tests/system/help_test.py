#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/help_test.py: proves that the help of each command is what the command does: it takes the options that
# are shown and no other, within the ranges that are shown; every example runs; both languages show the same.

import http.server
import pathlib
import re
import shlex
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, EXIT_USAGE, check, check_equal, check_in,  # noqa: E402
                     environment, run_all)

HELLO = '''// Says hello.
import "test"
export fn greeting(name) { return "hello \\(name)" }
export fn main(args) { print(greeting("you")) }
test "it greets by name" { test.equal(greeting("Mina"), "hello Mina") }
'''
OPTION = re.compile(r"^  (?:(-\w), )?(--[\w-]+)(?: ('[^']*'|[^ ]+))?  +(.*)$", re.M)
RANGE = re.compile(r"; ([\d.]+) to ([\d.]+)")
SAMPLES = {"WHAT,...": "env", "ko|en": "en", "HEX": "0"}  # else "1"


def crownyc(*words, cwd=None):
    done = subprocess.run([CROWNYC, *words], capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL,
                          timeout=DEADLINE_S, env=environment())
    return done.returncode, done.stdout, done.stderr


def commands():
    out = crownyc("--lang", "en", "--help")[1]
    return [line.split()[0] for line in out.split("options:")[0].splitlines() if line.startswith("  ")]


def help_of(command, language="en"):
    code, out, err = crownyc("--lang", language, command, "--help")
    check_equal((code, err), (EXIT_OK, ""), f"{command} --help")
    return out


def options_of(text):
    """{name: (short name, value, range or None)} of a help."""
    return {name: (short, value, RANGE.search(words)) for short, name, value, words in OPTION.findall(text)}


def is_refused_as_unknown(command, words):
    code, _, err = crownyc("--lang", "en", command, *words)
    check(code >= 0, f"{command} {words}: ended by signal {-code}: {err}")
    return "unknown option" in err


def test_each_command_takes_what_it_shows_and_nothing_else(folder):
    names = commands()
    check("compile" in names and "lsp" in names and len(names) > 15, f"commands: {names}")
    shown = {command: options_of(help_of(command)) for command in names}
    known = {name: row for rows in shown.values() for name, row in rows.items()}
    check(len(known) > 35, f"options: {sorted(known)}")
    leading = options_of(crownyc("--lang", "en", "--help")[1])
    check({"--lang", "--allow", "--output"} < set(leading), f"before a command: {leading}")
    for command in names:
        check("--lang" in shown[command], f"{command}: options are not found in its help")
        for name, (short, value, _) in known.items():
            row = shown[command].get(name, (short, value, None))
            sample = [SAMPLES.get(row[1], "1")] if row[1] else []
            for word in filter(None, (name, row[0])):
                refused = is_refused_as_unknown(command, [word, *sample])
                # A short name may mean another option here.
                own = name in shown[command] or any(word == other[0] for other in shown[command].values())
                check_equal(refused, not own, f"{command} {word}: refused")
                if word in leading and not own:
                    check_in("not an option of this command", crownyc("--lang", "en", word, *sample, command)[2],
                             f"{word} {command}")
    for name, (_, value, _) in known.items():
        if name not in leading:
            err = crownyc("--lang", "en", name, SAMPLES.get(value, "1"), "version")[2]
            check_in("stands behind the command", err, name)


def test_ranges_are_those_that_are_shown(folder):
    count = 0
    for command in commands():
        for name, (_, _, found) in options_of(help_of(command)).items():
            if not found:
                continue
            count += 1
            smallest, largest = found.groups()
            beyond = [str(int(largest) + 1), "-1", "", "x", "nan"] + (["0"] if float(smallest) > 0 else [])
            for value in (smallest, largest):
                check(f"{smallest} to {largest}" not in crownyc("--lang", "en", command, name, value)[2],
                      f"{command} {name} {value} is refused")
            for value in beyond:
                code, _, err = crownyc("--lang", "en", command, name, value)
                check_equal(code, EXIT_USAGE, f"{command} {name} {value!r}")
                check_in(f"{name} is a number from {smallest} to {largest}", err, f"{command} {name} {value!r}")
        for name, (_, value, _) in options_of(help_of(command)).items():
            if value == "ko|en":
                count += 1
                for wrong in ("fr", "", "ko|en", "k"):
                    err = crownyc("--lang", "en", command, name, wrong)[2]
                    check_in(f"{name} is ko or en, not {wrong}", err, command)
    check(count > 20, f"only {count} ranges")


def test_both_languages_show_the_same(folder):
    for command in commands():
        english, korean = help_of(command), help_of(command, "ko")
        bare = {name: row[:2] for name, row in options_of(english).items()}
        check_equal({name: row[:2] for name, row in options_of(korean).items()}, bare, f"{command}: options")
        for text, title in ((english, "exit codes:"), (korean, "종료 코드:")):
            check_in(f"\n{title} 0 ", text, f"{command}: exit codes")
        numbers = [re.findall(r"[:,] (\d+) ", re.search(r"^(?:exit codes|종료 코드):.*$", text, re.M)[0])
                   for text in (english, korean)]
        check_equal(numbers[0], numbers[1], f"{command}: numbers of exit codes")
        check_equal(examples_of(english), examples_of(korean), f"{command}: examples")


def examples_of(text):
    return re.findall(r"^  crownyc (.*)$", text, re.M)


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256


def test_every_example_runs(folder):
    (folder / "hello.han").write_text(HELLO, encoding="utf-8")
    (folder / "out").mkdir()
    server = Server(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        for command in commands():
            examples = examples_of(help_of(command))
            check(1 <= len(examples) <= 2, f"{command}: {examples}")
            for example in examples:
                words = shlex.split(example.replace("127.0.0.1:8080", f"127.0.0.1:{server.server_port}"))
                check_equal(words[0], command, "the command of its example")
                code, out, err = crownyc("--lang", "en", *words, cwd=folder)
                # A language server whose client is gone at once says so.
                check_equal(code, 1 if command == "lsp" else EXIT_OK, f"crownyc {example}: {out}{err}")
    finally:
        server.shutdown()
        server.server_close()


run_all(globals())
