#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/rpn_test.py: proves that programs go through RPN text by every door that people use: the gateway runs
# from its text and answers as from source, hanseonc_rpn is a filter, unknown words are listed and counted and nothing
# is written, `crownyc diff` names the place.

import os
import pathlib
import pty
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BANNER, BUILD, CROWNYC, DEADLINE_S, EXIT_BAD_TOAU, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE,  # noqa: E402
                     ROOT, Program, check, check_equal, check_in, environment, free_port, request, run, run_all)

CLOSING = "미인식 단어: {0}건 (unknown words: {0})\n"
GATEWAY = ROOT / "programs/gateway/main.han"
HELLO = "export main\nfunction main param args\n    \"hello\" CONST print 1 NATIVE RETURN\nend\n"
YAML = """- name: first
  domain: one.example
  upstream: http://127.0.0.1:{port}
- name: second
  domain: "*.wild.example"
  upstream: http://127.0.0.1:{port}
"""


def text_of(folder, program, keywords="en"):
    code, out, err = run([CROWNYC, "rpn", program, "--keywords", keywords], cwd=folder)
    check_equal((code, err), (EXIT_OK, ""), f"crownyc rpn {program}")
    return out


def start_gateway(folder, program, upstream_port):
    port = free_port()
    (folder / "gateway.yaml").write_text(YAML.format(port=upstream_port))
    gateway = Program([CROWNYC, "run", program], cwd=folder, env=environment(
        GW_PORT=port, GW_BIND="127.0.0.1", GW_YAML="gateway.yaml", GW_WORKERS=1))
    check_equal(gateway.wait_line(BANNER).groups(), (str(port), "2"), f"banner of {program}")
    return port


def test_the_gateway_serves_from_its_rpn_text(folder):
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("from upstream\n")
    upstream = Program(["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", site])
    upstream_port = upstream.wait_line(r"Serving HTTP on 127\.0\.0\.1 port (\d+)").group(1)
    for keywords in ("en", "ko"):
        (folder / f"{keywords}.rpn").write_text(text_of(folder, GATEWAY, keywords), encoding="utf-8")
    code, out, err = run([CROWNYC, "compile", "ko.rpn", "-o", "gateway.rpn.toau"], cwd=folder)
    check_equal((code, out, err), (EXIT_OK, "", CLOSING.format(0)), "compile of the Korean text")
    code, _, err = run([CROWNYC, "compile", GATEWAY, "-o", "gateway.toau"], cwd=folder)
    check_equal((code, err), (EXIT_OK, ""), "compile of the source")
    check_equal((folder / "gateway.rpn.toau").read_bytes(), (folder / "gateway.toau").read_bytes(), "bytes")

    ports = {program: start_gateway(folder, program, upstream_port)
             for program in ("gateway.toau", "gateway.rpn.toau", "en.rpn")}
    for host in ("one.example", "a.wild.example", "wild.example", "nobody.example", "ONE.example"):
        for path in ("/", "/nowhere"):
            answers = {}
            for program, port in ports.items():
                answer = request(port, host, path)
                answers[program] = (answer.status, answer.body)
            check_equal(answers["gateway.rpn.toau"], answers["gateway.toau"], f"{host}{path} from the text's file")
            check_equal(answers["en.rpn"], answers["gateway.toau"], f"{host}{path} from the text itself")
    check_equal(request(ports["en.rpn"], "one.example").body, b"from upstream\n", "a proxied answer")


def test_unknown_words_are_listed_and_counted(folder):
    """74 words once became 0 in silence, and the program never listened."""
    body = "".join(f"    {n} LOCAL_GETT POP\n    prnt{n} 1 NATIVE POP\n" for n in range(37))
    (folder / "bad.rpn").write_text(f"export main\nfunction main params 1 locals 40\n{body}    NIL RETURN\nend\n")
    for command in ([CROWNYC, "compile", "bad.rpn"], [BUILD / "hanseonc_rpn", "bad.rpn"], [CROWNYC, "run", "bad.rpn"]):
        code, out, err = run(command, cwd=folder)
        check_equal((code, out), (EXIT_PROGRAM, ""), f"{command[0].name}: exit code and stdout")
        check(err.endswith("74 errors\n" + CLOSING.format(74)), f"the log does not close with the count:\n{err[-300:]}")
        for n in range(37):
            line, column = 3 + 2 * n, 6 + len(str(n))
            check_in(f"bad.rpn:{line}:{column}: error: unknown word `LOCAL_GETT`", err, "the place of a word")
            check_in(f"bad.rpn:{line + 1}:5: error: unknown word `prnt{n}`", err, "the place of a word")
    check_equal(sorted(p.name for p in folder.iterdir()), ["bad.rpn"], "what was written")
    code, _, err = run([CROWNYC, "--lang", "ko", "compile", "bad.rpn"], cwd=folder)
    check_in("모르는 단어 `LOCAL_GETT`\n", err, "a Korean message")
    check(err.endswith("오류 74건\n" + CLOSING.format(74)), "the Korean log does not close with the count")


def test_hanseonc_rpn_is_a_filter(folder):
    (folder / "a.txt").write_text(HELLO)
    for name, given in (("a.txt", None), ("-", HELLO)):
        done = subprocess.run([BUILD / "hanseonc_rpn", name], cwd=folder, input=(given or "").encode(),
                              env=environment(), capture_output=True, timeout=DEADLINE_S, check=False)
        check_equal((done.returncode, done.stderr.decode()), (EXIT_OK, CLOSING.format(0)), f"hanseonc_rpn {name}")
        (folder / "a.toau").write_bytes(done.stdout)
        check_equal(run([CROWNYC, "run", "a.toau"], cwd=folder), (EXIT_OK, "hello\n", ""), "what it wrote runs")
    reader, terminal = pty.openpty()
    done = subprocess.run([BUILD / "hanseonc_rpn", "a.txt"], cwd=folder, stdin=subprocess.DEVNULL, stdout=terminal,
                          stderr=subprocess.PIPE, env=environment(), timeout=DEADLINE_S, check=False)
    os.close(terminal)
    try:
        written = os.read(reader, 100)
    except OSError:  # what Linux answers when nobody wrote and the other end is closed
        written = b""
    os.close(reader)
    check_equal((done.returncode, written), (EXIT_USAGE, b""), "exit code and what the terminal got")
    check_in("terminal", done.stderr.decode(), "message")


def test_a_text_is_a_source(folder):
    (folder / "hello.rpn").write_text(HELLO)
    code, out, err = run([CROWNYC, "run", "hello.rpn"], cwd=folder)
    check_equal((code, out, err), (EXIT_OK, "hello\n", CLOSING.format(0)), "run")
    check_equal(run([CROWNYC, "compile", "hello.rpn"], cwd=folder)[0], EXIT_OK, "compile")
    check((folder / "hello.rpn.toau").exists(), "the file is beside hello.toau, not over it")
    check_equal(run([CROWNYC, "verify", "hello.rpn"], cwd=folder)[0], EXIT_OK, "verify")
    code, _, err = run([CROWNYC, "rpn", "hello.rpn", "--keywords", "fr"], cwd=folder)
    check_equal(code, EXIT_USAGE, "exit code of an unknown language of words")
    korean = text_of(folder, "hello.rpn.toau", "ko")
    check_in('"hello" 상수\n', korean, "Korean words")
    check_in('출력 1 네이티브\n', korean, "a native's Korean name")
    (folder / "a.han").write_text('export fn main(args) { print("hello") }\n')
    check_in('"hello" CONST\n', text_of(folder, "a.han"), "rpn of a source")


def test_diff(folder):
    def diff(*words):
        return run([CROWNYC, "diff", *words], cwd=folder)

    def source(name, text):
        (folder / name).write_text(text, encoding="utf-8")
        check_equal(run([CROWNYC, "compile", name, "-o", f"{name}.toau"], cwd=folder)[0], EXIT_OK, f"compile {name}")

    one = "fn first(x) {\n    return x + 1\n}\n\nfn second(x) {\n    return \"a\"\n}\n\n" \
          "export fn main(args) {\n    print(first(1), second(2))\n}\n"
    source("main.han", one)
    os.rename(folder / "main.han.toau", folder / "a.toau")
    check_equal(diff("a.toau", "a.toau"), (EXIT_OK, "equal\n", ""), "a file and itself")
    check_equal(diff("a.toau", "main.han"), (EXIT_OK, "equal\n", ""), "a file and its source")

    source("main.han", one.replace("x + 1", "x - 1").replace('"a"', '"b"'))
    code, out, err = diff("a.toau", "main.han.toau")
    check_equal((code, err), (EXIT_PROGRAM, ""), "exit code and stderr")
    check_equal(out, 'bytes: section STRINGS first, at 33 of the file, string 0: "a" | "b"\n'
                     'function "first" of module "main", instruction 2\n'
                     "    a.toau: main.han:2:14 (offset 4): ADD\n"
                     "    main.han.toau: main.han:2:14 (offset 4): SUB\n", "the first difference")
    code, out, err = diff("--all", "a.toau", "main.han.toau")
    second = 'function "second" of module "main", instruction 0\n    a.toau: main.han:6:12 (offset 0): "a" CONST\n'
    check_in(second, out, "another difference")
    check(out.endswith("2 differences\n"), f"the count of differences:\n{out}")

    source("main.han", "fn zero() { return 0 }\n" + one)
    code, out, _ = diff("--all", "a.toau", "main.han.toau")
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in('function "zero" of module "main": only in main.han.toau\n', out, "a function more")
    check_in('function "first" of module "main", only the places: entry 0\n', out, "what only moved")
    check(" instruction " not in out, f"the other functions count as different:\n{out}")

    source("main.han", one.replace("fn first(x)", "fn first(x, y = 2)").replace("main(args)", "main(arguments)"))
    check_in('function "first" of module "main", head\n    a.toau: params 1 required 1 locals 1\n',
             diff("a.toau", "main.han.toau")[1], "a parameter more")
    source("main.han", one + "\nrecord R { a: int }\nexport let limit = 3\n")
    check_in('section MODULES, entry 0\n', diff("a.toau", "main.han.toau")[1], "a variable more")

    (folder / "broken.toau").write_bytes((folder / "a.toau").read_bytes()[:-1])
    code, out, err = diff("a.toau", "broken.toau")
    check_equal((code, out), (EXIT_BAD_TOAU, ""), "a damaged file")
    check_equal(diff("a.toau")[0], EXIT_USAGE, "one file")


run_all(globals())
