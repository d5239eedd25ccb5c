#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/run_fuzz.py: runs fuzz targets under libFuzzer and says what came of it.
#
# usage: run_fuzz.py --build BUILD [--work DIR] [--seconds N] [--targets a,b] [--jobs N] [--slice N] [--flat N]
#                    [--minimise]
#        run_fuzz.py --work DIR --report          run_fuzz.py --build BUILD --work DIR --keep
# In:   BUILD/fuzz/fuzz_targets, BUILD/debug/crownyc (makes seeds), tests/fuzz/corpus/TARGET, sources of the tree.
# Out:  WORK/TARGET/{corpus,found,log,account.json}; a table of what all runs in WORK came to. --keep: the smallest set
#       of inputs that reaches the same coverage goes to tests/fuzz/corpus/TARGET. Exit code 1 when a target found
#       something.
# Method: targets take turns in slices, one process each. With --flat a target that has found no new edge for that long,
#       a quarter of it on a processor, is done, and the others get its time. SIGTERM ends the slices that run, and
#       keeps what they learned.
# Flat: seconds in which a target's process tried new inputs and reached no new edge (libFuzzer's `cov:`) until its run
#       ended. The time in which a slice reads its corpus does not count. With another binary, whose edges are others,
#       the account begins anew. Beside it stands the processor's time in it: on a busy machine that is less.
# Invariant: what one slice learned, the next one starts from; an account is written at the end of each slice, whole.

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import fuzz_seeds

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
KEPT_FILES_MAX, KEPT_BYTES_MAX = 120, 4096
FLAT_CPU_SHARE = 0.25  # a process that got less of the processor has not looked for as long as it seems
INTERRUPTED = 72  # libFuzzer's exit code when it was told to stop
TICKS = os.sysconf("SC_CLK_TCK")
# Less memory in quarantine means fewer new pages for each input; a use after free lies within one input.
SANITIZER = "detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=16:malloc_context_size=6"
EMPTY = {"binary": "", "seconds": 0.0, "cpu": 0.0, "runs": 0, "edges": 0, "flat": 0.0, "flat_cpu": 0.0, "inputs": 0}


def table():
    text = (ROOT / "tests/fuzz/target.def").read_text()
    return {name: int(size) for name, size in re.findall(r"^TARGET\((\w+), *(\d+),", text, re.M)}


class Target:
    def __init__(self, name, options):
        self.name, self.options, self.bytes_max = name, options, table()[name]
        self.work = options.work / name
        self.busy, self.turns = False, 0
        self.account = dict(EMPTY)
        if (self.work / "account.json").exists():
            self.account.update(json.loads((self.work / "account.json").read_text()))

    def found(self):
        return sorted(path.name for path in (self.work / "found").glob("*"))

    def command(self, *arguments):
        return [self.options.build / "fuzz/fuzz_targets", f"-max_len={self.bytes_max}", "-timeout=120",
                "-report_slow_units=60", "-rss_limit_mb=2048", *arguments]

    def environment(self):
        return {**os.environ, "FUZZ_TARGET": self.name, "ASAN_OPTIONS": SANITIZER}

    def prepare(self):
        for part in ("corpus", "found"):
            (self.work / part).mkdir(parents=True, exist_ok=True)
        begins = not any((self.work / "corpus").iterdir())
        if begins:
            fuzz_seeds.seeds(self.name, self.options.build, self.work / "corpus")
        if begins or self.options.minimise:
            self.minimise(self.bytes_max)

    def minimise(self, bytes_max, out=None):
        """The corpus becomes the smallest set that reaches what it, and the one in the tree, reaches."""
        small = out or self.work / "small"
        shutil.rmtree(small, ignore_errors=True)
        small.mkdir()
        given = [CORPUS / self.name] if (CORPUS / self.name).is_dir() else []
        done = subprocess.run(self.command("-merge=1", f"-max_len={bytes_max}", f"-artifact_prefix={self.work}/found/",
                                           small, self.work / "corpus", *given), capture_output=True,
                              env=self.environment())
        if out is None and done.returncode == 0 and any(small.iterdir()):
            shutil.rmtree(self.work / "corpus")
            small.rename(self.work / "corpus")

    def slice(self, seconds):
        binary = hashlib.sha1((self.options.build / "fuzz/fuzz_targets").read_bytes()).hexdigest()[:12]
        account = self.account
        if account["binary"] != binary:
            account.update(binary=binary, edges=0, flat=0.0, flat_cpu=0.0)
        arguments = [f"-max_total_time={seconds}", "-print_final_stats=1", "-reload=0", "-entropic=0",
                     f"-artifact_prefix={self.work}/found/"]
        if fuzz_seeds.dictionary(self.name, self.work / "dict"):
            arguments.append(f"-dict={self.work}/dict")
        began = time.monotonic()
        process = subprocess.Popen(self.command(*arguments, self.work / "corpus"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=self.environment())
        self.process = process
        runs, since, since_cpu = 0, None, 0.0
        with open(self.work / "log", "wb") as log:
            for line in process.stderr:
                log.write(line)
                match = re.match(rb"#(\d+)\t(\w+) +cov: (\d+)", line)
                if not match:
                    continue
                runs, edges = int(match[1]), int(match[3])
                if edges > account["edges"]:
                    account.update(edges=edges, flat=0.0, flat_cpu=0.0)
                    since, since_cpu = time.monotonic(), cpu_seconds(process.pid)
                if match[2] == b"INITED":
                    since, since_cpu = time.monotonic(), cpu_seconds(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu = usage.ru_utime + usage.ru_stime
        account["seconds"] += time.monotonic() - began
        account["cpu"] += cpu
        account["runs"] += runs
        if since is not None:
            account["flat"] += time.monotonic() - since
            account["flat_cpu"] += cpu - since_cpu
        account["inputs"] = sum(1 for _ in (self.work / "corpus").iterdir())
        account["failed"] = process.returncode not in (0, INTERRUPTED)
        (self.work / "account.new").write_text(json.dumps(account) + "\n")
        (self.work / "account.new").rename(self.work / "account.json")

    def open(self):
        flat, flat_cpu = self.account["flat"], self.account["flat_cpu"]
        is_done = self.options.flat and flat >= self.options.flat and flat_cpu >= FLAT_CPU_SHARE * self.options.flat
        return not is_done and not self.found() and not self.account.get("failed")


def cpu_seconds(pid):
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except OSError:
        return 0.0


class Schedule:
    """The target that had the fewest turns is next; among those, the one that is flat for the shortest time."""

    def __init__(self, targets, options):
        self.targets, self.options = targets, options
        self.lock, self.stopping = threading.Lock(), False
        self.deadline = time.monotonic() + options.seconds
        self.slice = options.slice or max(1, options.seconds * options.jobs // len(targets))

    def next(self):
        with self.lock:
            ready = [target for target in self.targets if not target.busy and target.open()]
            left = self.deadline - time.monotonic()
            if not self.options.slice:  # one turn each, however long the beginnings take
                ready, left = [target for target in ready if target.turns == 0], self.slice
            if self.stopping or not ready or left < 1:
                return None, 0
            target = min(ready, key=lambda target: (target.turns, target.account["flat"]))
            target.busy, target.turns = True, target.turns + 1
            return target, int(min(self.slice, left + 1))

    def work(self):
        while True:
            target, seconds = self.next()
            if target is None:
                return
            if target.turns == 1:
                target.prepare()
            if not self.stopping:
                target.slice(seconds)
            target.busy = False

    def stop(self, *_):
        self.stopping = True
        for target in self.targets:
            if target.busy and getattr(target, "process", None) and target.process.returncode is None:
                target.process.send_signal(signal.SIGINT)

    def run(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)
        threads = [threading.Thread(target=self.work) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.5)


def report(targets):
    print(f"{'target':<12} {'seconds':>8} {'of CPU':>8} {'runs':>11} {'edges':>6} {'inputs':>6} {'flat for':>9} "
          f"{'of CPU':>8}  found")
    for target in targets:
        a = target.account
        print(f"{target.name:<12} {a['seconds']:>8.0f} {a['cpu']:>8.0f} {a['runs']:>11} {a['edges']:>6} "
              f"{a['inputs']:>6} {a['flat']:>7.0f} s {a['flat_cpu']:>6.0f} s  "
              f"{', '.join(target.found()) or 'nothing'}{' (failed)' if a.get('failed') else ''}")
    print(f"{'together':<12} {sum(t.account['seconds'] for t in targets):>8.0f} "
          f"{sum(t.account['cpu'] for t in targets):>8.0f}")


def keep(target):
    """Into the tree, bounded: it holds a start, not a history."""
    small = target.work / "kept"
    target.minimise(KEPT_BYTES_MAX, small)
    folder = CORPUS / target.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = sorted(small.iterdir(), key=lambda path: path.stat().st_size)
    count = min(len(paths), KEPT_FILES_MAX)  # small and large ones
    for i in range(count):
        path = paths[i * len(paths) // count]
        shutil.copy(path, folder / path.name[:16])


def main():
    parser = argparse.ArgumentParser(description="Runs fuzz targets under libFuzzer.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path, help="corpora and accounts; BUILD/fuzz/work")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--targets", default=",".join(table()))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--slice", type=int, default=0,
                        help="seconds of a turn; 0: each target has one turn, all as long")
    parser.add_argument("--flat", type=int, default=0, help="a target without a new edge for so long is done; 0: never")
    parser.add_argument("--minimise", action="store_true", help="makes each corpus smaller first")
    parser.add_argument("--keep", action="store_true", help="runs nothing; the tree's corpus from the one in WORK")
    parser.add_argument("--report", action="store_true", help="runs nothing; prints the table")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.work = (options.work or options.build / "fuzz/work").resolve()
    targets = [Target(name, options) for name in options.targets.split(",")]
    if options.keep:
        for target in targets:
            keep(target)
    elif not options.report:
        Schedule(targets, options).run()
    report(targets)
    sys.exit(any(target.account.get("failed") or target.found() for target in targets))


main()
