# SPDX-License-Identifier: MIT
#
# bench/micro/measure.py: rows, languages and single runs; what bench/micro/run and the smoke test share.
#
# In:   rows.tsv; commands found in PATH or named by LUA, LUAJIT, NODE; UNPACKED, a folder of unpacked packages.
# Out:  Row, Language, Run; a run's cost is the user CPU time of the child alone, as wait4 gives it.
# Invariant: only children started here are waited for or ended, by their process id.
# Not here:  what is run how often, and how it is shown (run).

import collections
import glob
import math
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
ROWS = FOLDER / "rows.tsv"
DEADLINE_S = 300
EXIT_NOT_AVAILABLE = 77  # of a program: the language lacks the library that the row is about
NO_MODULE = "error E0086"  # of crownyc: a standard module that it does not have
UNKNOWN = "-"

Row = collections.namedtuple("Row", "name group program arguments tiny checksum tiny_checksum what")
Run = collections.namedtuple("Run", "output user_s system_s rss_kib fault")  # fault: None, or why there is no output


def read_rows(path=ROWS):
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            rows.append(Row(*line.split("\t")))
    return rows


def write_rows(rows, path=ROWS):
    head = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    path.write_text("\n".join(head + ["\t".join(row) for row in rows]) + "\n", encoding="utf-8")


class Language:
    """How a program of one language is started. `missing` says why it cannot be; then `version` is None."""

    def __init__(self, name, title, extension, command, version_arguments, environment=None):
        self.name, self.title, self.extension, self.command = name, title, extension, command
        self.environment = dict(os.environ, **(environment or {}))
        self.version = None
        self.missing = None
        if not command or not shutil.which(command[0]):
            self.missing = f"{title}: not found"
            return
        try:
            told = subprocess.run([command[0], *version_arguments], capture_output=True, text=True, check=True,
                                  env=self.environment, timeout=DEADLINE_S)
            self.version = (told.stdout or told.stderr).strip().splitlines()[0]
        except (OSError, subprocess.SubprocessError, IndexError) as error:
            self.missing = f"{title}: {error}"

    def arguments(self, program, arguments):
        return [*self.command, str(FOLDER / f"{program}.{self.extension}"), *arguments.split()]

    def run(self, program, arguments):
        return run_once(self.arguments(program, arguments), self.environment)


def unpacked(pattern):
    """The first file below UNPACKED that fits; None without one."""
    folder = os.environ.get("UNPACKED")
    found = sorted(glob.glob(os.path.join(folder, pattern), recursive=True)) if folder else []
    return found[0] if found else None


def lua_environment(version):
    """So that require("cjson") finds a module that was unpacked beside."""
    module = unpacked(f"usr/lib/*/lua/{version}/cjson.so")
    return {"LUA_CPATH": os.path.join(os.path.dirname(module), "?.so") + ";;"} if module else {}


def luajit_environment(command):
    """A LuaJIT that was unpacked beside finds its library there, when it was linked with one."""
    environment = lua_environment("5.1")
    if command:
        libraries = glob.glob(os.path.join(os.path.dirname(os.path.dirname(command)), "lib/*/libluajit-5.1.so.2"))
        if libraries:
            old = os.environ.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = os.path.dirname(libraries[0]) + (f":{old}" if old else "")
    return environment


def languages(crownyc):
    luajit = os.environ.get("LUAJIT") or unpacked("usr/bin/luajit*") or "luajit"
    lua = os.environ.get("LUA", "lua5.4")
    return [
        Language("hanseon", "Hanseon", "han", [str(crownyc), "run"], ["version"], {"LANG": "C.UTF-8"}),
        Language("lua", "Lua 5.4", "lua", [lua], ["-v"], lua_environment("5.4")),
        Language("luajit", "LuaJIT", "lua", [luajit], ["-v"], luajit_environment(shutil.which(luajit))),
        Language("node", "Node", "js", [os.environ.get("NODE", "node")], ["--version"]),
        Language("python", "Python", "py", [sys.executable, "-I"], ["--version"]),
    ]


def run_once(command, environment):
    """One child from start to end. Its standard output is one line, the checksum."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        late = threading.Timer(DEADLINE_S, child.send_signal, (signal.SIGKILL,))
        late.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        finally:
            late.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        said = err.read().decode(errors="replace").strip()
        lines = out.read().decode(errors="replace").split()
    fault = None
    if child.returncode == EXIT_NOT_AVAILABLE:
        fault = said.splitlines()[0] if said else "not available"
    elif child.returncode == 1 and NO_MODULE in said:
        fault = "not available: " + said.splitlines()[0]
    elif child.returncode != 0 or len(lines) != 1:
        fault = f"FAILED: exit code {child.returncode}, output {lines}, {said}"
    return Run(None if fault else lines[0], usage.ru_utime, usage.ru_stime, usage.ru_maxrss, fault)


def is_failure(run):
    return run.fault is not None and run.fault.startswith("FAILED")


def median(values):
    return statistics.median(values)


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None
