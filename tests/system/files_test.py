#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/files_test.py: proves what --allow and --deny promise about files: nothing is written that was not
# allowed, nothing is read outside of a folder that reading was narrowed to, and no link leads around it. Everything
# runs by openat2 and by the portable walk. A handler may use files, and a file that does not answer delays nobody else.

import os
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, DEADLINE_S, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, Program, check, check_equal,  # noqa: E402
                     check_in, environment, free_port, request, run, run_all)

TRY = """
import "fs"
export fn main(args) {
    let i = 0
    while i < len(args) {
        let what = args[i]
        let path = args[i + 1]
        try {
            if what == "read" { print(fs.read(path)) }
            elif what == "write" { fs.write(path, "written") print("ok") }
            elif what == "atomic" { fs.write_atomic(path, "written") print("ok") }
            elif what == "list" { print(fs.list(path)) }
            elif what == "exists" { print(fs.exists(path)) }
            elif what == "folder" { fs.make_folder(path, true) print("ok") }
            elif what == "remove" { fs.remove(path) print("ok") }
            elif what == "temporary" { print(fs.stat(fs.temporary_file(path)).size) }
        } catch e { print(e.kind) }
        i = i + 2
    }
}
"""
READ_ONLY = """
import "fs"
export fn main(args) { for path in args { try { print(fs.read(path)) } catch e { print(e.kind) } } }
"""


def tree(folder):
    """secret, and work/: a file, a folder, links inside and out."""
    work = folder / "work"
    (work / "sub").mkdir(parents=True)
    (folder / "secret").write_text("secret")
    (work / "file").write_text("file")
    (work / "sub/deep").write_text("deep")
    for name, target in (("in", "sub/deep"), ("out", "../secret"), ("up", ".."), ("absolute", str(folder / "secret")),
                         ("dir", "sub")):
        (work / name).symlink_to(target)
    source = folder / "try.han"
    source.write_text(TRY)
    (folder / "read.han").write_text(READ_ONLY)
    return work


def attempt(folder, options, words, cwd=None, program="try.han"):
    """What each attempt printed; the same by both ways of opening."""
    results = []
    for way in ("", "walk"):
        code, out, err = run([CROWNYC, "run", *options, folder / program, *words], cwd=cwd or folder / "work",
                             env=environment(CROWNY_PATHS=way))
        check_equal((code, err), (EXIT_OK, ""), f"exit code and stderr with {options} {words}")
        results.append(out.splitlines())
    check_equal(results[0], results[1], f"openat2 and the walk with {options} {words}")
    return results[0]


def test_reading_is_free_and_writing_is_not(folder):
    tree(folder)
    check_equal(attempt(folder, [], ["file", "../secret", "out", "no"], program="read.han"),
                ["file", "secret", "secret", "not_found"], "reading without rules")
    code, _, err = run([CROWNYC, "run", folder / "try.han"], cwd=folder / "work")
    check_equal(code, EXIT_PROGRAM, "a program that writes, without --allow")
    check_in("fs.write needs the capability write", err, "message")


def test_writing_below_the_working_folder(folder):
    work = tree(folder)
    ways = ["new", "sub/new", "dir/other", "../new", "up/new", "out", "absolute", "/new", str(folder / "new"),
            str(work / "abs"), "sub/../../new"]
    check_equal(attempt(folder, ["--allow", "write"], [w for way in ways for w in ("write", way)]),
                ["ok", "ok", "ok", "permission", "permission", "permission", "permission", "permission", "permission",
                 "ok", "permission"], "writing")
    check_equal((folder / "secret").read_text(), "secret", "what lies outside")
    check(not (folder / "new").exists(), "something was made outside")


def test_a_slash_at_the_end_names_a_folder(folder):
    work = tree(folder)
    words = ["write", "made/", "atomic", "made/", "write", "file/", "write", "sub/"]
    check_equal(attempt(folder, ["--allow", "write"], words), ["bad_format"] * 4, "writing")
    check(not (work / "made").exists(), "a file was made")


def test_writing_below_named_folders(folder):
    work = tree(folder)
    (folder / "data").mkdir()
    options = ["--allow", f"write={folder}/data", "--allow", "write=sub"]
    check_equal(attempt(folder, options, ["write", str(folder / "data/x"), "write", "sub/x", "write", "x", "write",
                                          "../data/y",
                                          "folder", "sub/a/b", "temporary", "sub", "temporary", "."]),
                ["ok", "ok", "permission", "ok", "ok", "0", "permission"], "writing")
    check_equal(sorted(p.name for p in work.iterdir()), ["absolute", "dir", "file", "in", "out", "sub", "up"],
                "the folder")


def test_links_are_replaced_or_removed_not_followed(folder):
    tree(folder)
    check_equal(attempt(folder, ["--allow", "write"], ["atomic", "out", "read", "out", "remove", "out", "exists",
                                                       "out"])[1:],
                ["written", "ok", "false"], "a link out")
    check_equal((folder / "secret").read_text(), "secret", "what it led to")


def test_reading_narrowed(folder):
    work = tree(folder)
    options = ["--allow", "read=sub"]
    words = ["sub/deep", "file", "dir/deep", "../secret", str(work / "sub/deep"), "sub/../file", "in"]
    check_equal(attempt(folder, options, words, program="read.han"),
                ["deep", "permission", "permission", "permission", "deep", "permission", "permission"], "read=sub")
    options = ["--allow", "read=."]
    words = ["file", "in", "dir/deep", "out", "up/secret", "absolute"]
    check_equal(attempt(folder, options, words, program="read.han"),
                ["file", "deep", "deep", "permission", "permission", "permission"], "read=.")


def test_denied_folders(folder):
    work = tree(folder)
    for options in (["--deny", "read=sub"], ["--allow", "read=.", "--deny", "read=sub"]):
        check_equal(attempt(folder, options, ["file", "sub/deep", "in", "dir/deep", str(work / "sub/deep")],
                            program="read.han"),
                    ["file", "permission", "permission", "permission", "permission"], str(options))
    check_equal(attempt(folder, ["--allow", "write,write=sub", "--deny", "write=sub"], ["write", "sub/x", "write",
                                                                                        "x"]),
                ["permission", "ok"], "write without a folder of it")
    code, _, err = run([CROWNYC, "run", "--deny", "read", folder / "read.han", "file"], cwd=work)
    check_equal(code, EXIT_PROGRAM, "exit code without read")
    check_in("fs.read needs the capability read", err, "message")


def test_a_rule_for_a_folder_that_is_not_there(folder):
    tree(folder)
    code, _, err = run([CROWNYC, "run", "--allow", "read=no/such", folder / "read.han"], cwd=folder)
    check_equal(code, EXIT_USAGE, "exit code")
    check_in("no/such", err, "message")


def test_files_of_a_generation_obey_the_rules(folder):
    work = tree(folder)
    source = folder / "server.han"
    source.write_text("""
import "process"
import "http"
export fn configure(input) { return {} }
export fn handle(request) { return http.respond(200) }
export fn main(args) {
    process.workers(1, {files: {settings: args[0]}})
    http.serve({listen: [args[1]], banner: "ready"})
}
""")
    code, _, err = run([CROWNYC, "run", "--allow", "read=.", source, "../secret", f"127.0.0.1:{free_port()}"], cwd=work)
    check(code != EXIT_OK, "it started")
    check_in("../secret: permission denied", err, "message")


SERVER = """
import "fs"
import "http"
import "text"
export fn handle(request) {
    if request.path == "/ping" { return http.respond(200, "pong") }
    if request.path == "/list" { return http.respond(200, text.join(fs.list("."), ",")) }
    if request.path == "/count" { fs.append("count", "x") return http.respond(200, str(fs.stat("count").size)) }
    return http.respond(200, fs.read(request.path[1..len(request.path)]))
}
export fn main(args) { http.serve({listen: [args[0]], banner: "ready"}) }
"""


def serve(folder):
    source = folder / "server.han"
    source.write_text(SERVER)
    work = folder / "work"
    work.mkdir()
    port = free_port()
    server = Program([CROWNYC, "run", "--allow", "write,read=.", source, f"127.0.0.1:{port}"], cwd=work)
    server.wait_line("^ready$")
    return server, port, work


def test_a_handler_reads_and_writes(folder):
    server, port, work = serve(folder)
    (work / "page").write_text("hello")
    check_equal(request(port, "h", "/page").body, b"hello", "a file")
    sizes = []
    threads = [threading.Thread(target=lambda: sizes.append(int(request(port, "h", "/count").body))) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_equal((len(sizes), (work / "count").stat().st_size), (40, 40), "appended from many handlers")
    check_equal(request(port, "h", "/list").body, b"count,page", "names")
    answer = request(port, "h", "/no")
    check_equal(answer.status, 500, "a handler that does not catch")
    server.wait_line("not_found: fs.read: no: not found", "err")


def test_a_file_that_does_not_answer_delays_nobody(folder):
    """Reading a pipe that nobody writes to holds one helper thread, not the worker. Then the writer comes."""
    _, port, work = serve(folder)
    os.mkfifo(work / "pipe")
    held = []
    # A writer that writes nothing yet: the read does not end.
    reader = threading.Thread(target=lambda: held.append(request(port, "h", "/pipe").body))
    writer_ready = os.open(work / "pipe", os.O_RDWR)
    writer = os.open(work / "pipe", os.O_WRONLY)
    reader.start()
    for _ in range(50):
        check_equal(request(port, "h", "/ping").body, b"pong", "meanwhile")
    os.write(writer, b"late")
    os.close(writer)
    os.close(writer_ready)
    reader.join(20)
    check_equal(held, [b"late"], "the answer that waited")


def test_renaming_gives_nothing_to_read(folder):
    work = tree(folder)
    (work / "public").mkdir()
    source = folder / "move.han"
    source.write_text("""
import "fs"
export fn main(args) {
    try { fs.rename(args[0], "public/got") print(fs.read("public/got")) } catch e { print(e.kind) }
}
""")
    for options, wanted in ((["--deny", "read=sub"], "permission"), (["--allow", "read=public"], "permission"),
                            (["--allow", "read=sub,read=public"], "deep")):
        check_equal(attempt_once(work, source, options, "sub/deep"), wanted, str(options))


def attempt_once(work, source, options, *words):
    code, out, err = run([CROWNYC, "run", "--allow", "write", *options, source, *words], cwd=work)
    check_equal((code, err), (EXIT_OK, ""), f"exit code and stderr with {options}")
    return out.strip()


def test_deny_holds_whatever_comes_behind(folder):
    tree(folder)
    for options in (["--allow", "write", "--deny", "write"], ["--deny", "write", "--allow", "write"],
                    ["--deny", "write", "--allow", "write=."]):
        code, _, err = run([CROWNYC, "run", *options, folder / "try.han"], cwd=folder)
        check_equal(code, EXIT_PROGRAM, str(options))
        check_in("fs.write needs the capability write", err, str(options))


def test_procfs_is_closed_unless_it_is_named(folder):
    tree(folder)
    environ = f"/proc/{os.getpid()}/environ"
    words = [environ, "/proc/cpuinfo"]
    for options, more in ((["--deny", "env"], ["/proc/self/environ", "/dev/fd/../environ", "/dev/fd/2",
                                               "/proc/self/cwd/file"]), (["--allow", "read=/"], []),
                          (["--deny", "read=sub"], ["/proc/self/environ", "/proc/self/cwd/file"])):
        check_equal(set(attempt(folder, options, words + more, program="read.han")), {"permission"}, str(options))
    code, out, _ = run([CROWNYC, "run", "--allow", "read=/proc", folder / "read.han", "/proc/self/environ"],
                       cwd=folder, env=environment(SHOWN="to whom it is allowed"))
    check_in("SHOWN=to whom", out, "named")
    check_equal(code, EXIT_OK, "exit code")
    check_equal(attempt(folder, ["--allow", "write=/"], ["write", "/proc/self/comm", "list", "/proc/self/fd"]),
                ["permission", "permission"], "writing and listing")


def program(folder, text, *options, within=DEADLINE_S):
    source = folder / "a.han"
    source.write_text(text)
    return run([CROWNYC, "run", *options, source], cwd=folder, within=within)


def test_pipes_that_do_not_answer_leave_threads_for_files(folder):
    """HELPER_WAITING = 2 readers may wait, a third is refused, a file is read meanwhile; stopped ones give way."""
    os.mkfifo(folder / "pipe")
    held = os.open(folder / "pipe", os.O_RDWR)
    (folder / "file").write_text("ordinary")
    code, out, err = program(folder, """
import "fs"
import "task"
let refused = ref(nil)
fn reader() { try { fs.read("pipe") } catch e { refused.value = e.message } }
fn limited() { task.deadline(300) return fs.read("pipe") }
fn last() {
    loop {                                   // until a thread has seen that nobody waits for it any more
        let t = spawn limited()
        try { task.wait(t) } catch e { if e.kind != "too_many" { return e.kind } }
        task.sleep(1)
    }
}
export fn main(args) {
    let readers = [spawn reader(), spawn reader(), spawn reader()]
    while refused.value == nil { task.sleep(1) }
    print(refused.value)
    print(fs.read("file"))
    for t in readers { task.cancel(t) }
    print(last())
}
""")
    os.close(held)
    check_equal((code, out, err), (EXIT_OK, "fs.read: pipe: too many (HELPER_WAITING: 2)\nordinary\ntimeout\n", ""),
                "reading")


def test_a_deadline_ends_a_read_before_there_is_a_loop(folder):
    os.mkfifo(folder / "pipe")
    held = os.open(folder / "pipe", os.O_RDWR)
    code, _, err = program(folder, """
import "fs"
import "task"
export fn main(args) { task.deadline(100) fs.read("pipe") }
""")
    os.close(held)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("deadline", err, "message")


def test_contents_on_helper_threads_count(folder):
    """Reading without an end and writing one text many times stay within the VM's memory together."""
    code, out, err = program(folder, """
import "fs"
import "task"
import "text"
fn endless() { return fs.read("/dev/zero") }
fn write(i, content) { fs.write("f\\(i % 4)", content) }
export fn main(args) {
    task.sleep(1)
    let tasks = []
    for i in 0..4 { tasks = tasks + [spawn endless()] }
    for t in tasks { try { task.wait(t) print("read") } catch e { print(e.kind) } }
    let content = text.repeat("x", 200000000)
    tasks = []
    for i in 0..8 { tasks = tasks + [spawn write(i, content)] }
    let failed = 0
    for t in tasks { try { task.wait(t) } catch e { failed = failed + 1 } }
    print(failed > 0)
    for line in text.split(fs.read("/proc/self/status"), "\\n") {
        if text.starts_with(line, "VmHWM:") {
            print(int(text.trim(text.trim(text.slice(line, 6, len(line))), "kB ")) < 2500000)
        }
    }
}
""".replace("\\\\", "\\"), "--allow", "write", "--allow", "read=/proc,read=/dev",
                             within=5 * DEADLINE_S)  # gigabytes
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), ["memory"] * 4 + ["true", "true"], "lines")


run_all(globals())
