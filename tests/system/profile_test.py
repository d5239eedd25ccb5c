#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/profile_test.py: proves that crownyc run --profile writes folded stacks that say where the time went,
# natives as leaves, the same on every run when it counts steps; an SVG that is well-formed XML; a file for each
# worker, also after SIGTERM; and that a file that cannot be written is said and changes nothing else.

import pathlib
import re
import signal
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, EXIT_USAGE, Program, check, check_equal, check_in, environment,  # noqa: E402
                     free_port, request, run, run_all)

SOURCE = """
import "list"
fn 세기(n) { let total = 0 for i in 0..n { total = total + i } return total }
fn sorted(n) { let xs = [] for i in 0..n { xs = xs + [(i * 7919) % 1009] } return list.sort(xs) }
export fn main(args) {
    세기(90000)
    sorted(20000)
    list.map([1], fn (x) { return 세기(x * 30000) })
    print("done")
}
"""


def profile(folder, name, *options, source=SOURCE):
    path = folder / "p.han"
    path.write_text(source)
    code, out, err = run([CROWNYC, "run", "--profile", folder / name, *options, path], env=environment())
    check_equal((code, out), (EXIT_OK, "done\n"), "exit code and stdout")
    check_in(f"samples in {folder / name}", err, "stderr")
    return (folder / name).read_text()


def weights(folded):
    found = {}
    for line in folded.splitlines():
        stack, _, weight = line.rpartition(" ")
        check(stack not in found, f"{stack} stands twice")
        found[stack] = int(weight)
    return found


def test_folded_stacks_by_steps(folder):
    one = profile(folder, "one", "--profile-steps")
    check_equal(profile(folder, "two", "--profile-steps"), one, "the same again")
    found = weights(one)
    check(85000 <= found["main;세기"] <= 95000, f"{found}")
    check(found.get("main;sorted;list.sort", 0) > 0, f"the native is no leaf: {found}")
    inner = [stack for stack in found if re.fullmatch(r"main;list\.map;fn@8;세기", stack)]
    check_equal(len(inner), 1, f"stacks of the function without a name in {sorted(found)}")


def test_time_is_the_default(folder):
    found = weights(profile(folder, "time"))
    check(found["main;세기"] > 0, f"{found}")
    check(all(stack.startswith("main") for stack in found), f"{found}")


def test_svg(folder):
    text = profile(folder, "out.svg", "--profile-steps")
    root = xml.etree.ElementTree.fromstring(text)
    names = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    check(any(re.match(r"세기: \d+ steps, \d+\.\d\d%", name) for name in names), f"titles {names}")
    check(any(name.startswith("list.sort (native): ") for name in names), f"titles {names}")
    shares = [float(m.group(1)) for m in (re.search(r"([\d.]+)%", name) for name in names) if m]
    check_equal(max(shares), 100.0, "share of all")
    rest = text.replace("http://www.w3.org/2000/svg", "")
    check("<script" not in rest and "http" not in rest, "it fetches something")


SERVER = """
import "process"
import "http"
fn 결정() { let n = 0 for i in 0..20000 { n = n + i } return n }
export fn handle(request) { return http.respond(200, "\\(결정())") }
export fn main(args) {
    process.workers(2)
    http.serve({listen: ["127.0.0.1:" + args[0]], banner: "ready"})
}
"""


def test_a_file_for_each_worker_at_sigterm(folder):
    source = folder / "server.han"
    source.write_text(SERVER)
    port = free_port()
    server = Program([CROWNYC, "run", "--profile", folder / "p", "--profile-steps", source, port], cwd=folder)
    server.wait_line(re.compile("^ready$"))
    for _ in range(8):
        check_equal(request(port, "a.local").body, b"199990000", "answer")
    server.send(signal.SIGTERM)
    check_equal(server.wait_exit(), EXIT_OK, "exit code")
    check(not (folder / "p").exists(), "the master wrote one too")
    total = {}
    for worker in (0, 1):
        for stack, weight in weights((folder / f"p.{worker}").read_text()).items():
            total[stack] = total.get(stack, 0) + weight
    check(total.get("handle;결정", 0) > 8 * 18000, f"{total}")


def test_what_cannot_be_written_is_said(folder):
    path = folder / "p.han"
    path.write_text('export fn main(args) { print("done") }')
    code, out, err = run([CROWNYC, "run", "--profile", folder / "none" / "x", path], env=environment())
    check_equal((code, out), (EXIT_OK, "done\n"), "exit code and stdout")
    check_in(f"{folder}/none/x: ", err, "stderr")
    check_equal(run([CROWNYC, "run", "--profile"], env=environment())[0], EXIT_USAGE, "no file")


run_all(globals())
