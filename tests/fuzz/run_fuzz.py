#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/fuzz/run_fuzz.py: runs fuzz targets under libFuzzer and says what came of it.
#
# usage: run_fuzz.py --build BUILD [--seconds N] [--targets a,b] [--jobs N] [--keep]
# In:   BUILD/fuzz/fuzz_targets, BUILD/debug/crownyc (makes .toau seeds), tests/fuzz/corpus/TARGET, sources of the tree.
# Out:  BUILD/fuzz/work/TARGET/{corpus,found,log}; a table: runs, corpus, coverage, seconds since coverage grew. With
#       --keep the smallest set of inputs that reaches the same coverage goes to tests/fuzz/corpus/TARGET.
#       Exit code 1 when a target found something.
# Invariant: the time is shared out evenly; what one run learned, the next one starts from.

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"
KEPT_FILES_MAX, KEPT_BYTES_MAX = 120, 4096


def table():
    text = (ROOT / "tests/fuzz/target.def").read_text()
    return {name: int(size) for name, size in re.findall(r"^TARGET\((\w+), *(\d+),", text, re.M)}


def seeds(name, build, folder):
    """Sources of the tree for `source`; the same compiled for `toau`; what else has a folder has its own."""
    sources = sorted((ROOT / "tests/lang").rglob("*.han")) + sorted((ROOT / "tests/golden").glob("*.han")) + \
        sorted((ROOT / "tests/fuzz/seeds").glob("*.han")) + sorted((ROOT / "stdlib").glob("*.han"))
    if name == "source":
        for path in sources:
            shutil.copy(path, folder / hashlib.sha1(str(path).encode()).hexdigest())
    if name in ("toau", "rpn"):
        scratch = folder.parent / "scratch.toau"
        for path in sources:
            done = subprocess.run([build / "debug/crownyc", "compile", path, "-o", scratch], capture_output=True)
            if done.returncode != 0:
                continue
            target = folder / hashlib.sha1(str(path).encode()).hexdigest()
            if name == "toau":
                shutil.copy(scratch, target)
            else:
                target.write_bytes(subprocess.run([build / "debug/crownyc", "rpn", scratch],
                                                  capture_output=True).stdout)
    if name == "json":
        for i, text in enumerate(('{"a": [1, -2.5e-3, true, null, "\\u00e9\\ud83d\\ude00"]}', "[]", '"한글"', "1e400")):
            (folder / str(i)).write_text(text)
    if name == "regex":
        for i, text in enumerate((
                "\0(a+)+$\naaaaaaaaaaaaab", "\x1f(?<year>\\d{4})-(\\d\\d)\n2026-11-30",
                "\0\\p{Hangul}+|[^a-z]\n한글 ab", "\2^\\s*(?:(\\w+)=(?!x)\\1)?\n a=a\nb=c")):
            (folder / str(i)).write_text(text)
    if name in ("h1_request", "h1_response"):
        for i, text in enumerate(transcripts("u>" if name == "h1_response" else ">")):
            (folder / f"wire{i}").write_bytes(b"\x06" + text)
    if name == "yaml":
        text = (ROOT / "programs/gateway/gateway.yaml").read_text()
        (folder / "gateway").write_text("\n".join(text.splitlines()[:60]) + "\n")


def transcripts(verb):
    """What one side says in each file of tests/wire, without what was only filling."""
    def unescape(text):
        text = re.sub(r"\\x([0-9a-fA-F]{2})", lambda m: chr(int(m[1], 16)), text)
        return text.replace("\\r", "\r").replace("\\n", "\n").encode("latin-1", "replace")
    for path in sorted((ROOT / "tests/wire").rglob("*.txt")):
        said = b""
        for line in path.read_text().splitlines():
            if line.startswith(verb + "| "):
                said += unescape(line[len(verb) + 2:])
            elif line.startswith(verb + " ") or line == verb:
                said += unescape(line[len(verb) + 1:]) + b"\r\n"
        if said:
            yield said


def run(name, bytes_max, build, seconds):
    work = build / "fuzz/work" / name
    for part in ("corpus", "found"):
        (work / part).mkdir(parents=True, exist_ok=True)
    if not any((work / "corpus").iterdir()):
        seeds(name, build, work / "corpus")
    given = [CORPUS / name] if (CORPUS / name).is_dir() else []
    dictionary = ROOT / "tests/fuzz" / f"{name}.dict"
    began = time.monotonic()
    with open(work / "log", "wb") as log:
        process = subprocess.Popen(
            [build / "fuzz/fuzz_targets", f"-max_total_time={seconds}", f"-max_len={bytes_max}", "-timeout=60",
             "-rss_limit_mb=2048", "-print_final_stats=1", "-reload=0",
             f"-artifact_prefix={work}/found/", *([f"-dict={dictionary}"] if dictionary.exists() else []),
             work / "corpus", *given], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "FUZZ_TARGET": name, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"})
        coverage, grew, runs = 0, 0.0, 0
        for line in process.stderr:
            log.write(line)
            match = re.match(rb"#(\d+)\s.*cov: (\d+)", line)
            if match:
                runs = int(match[1])
                if int(match[2]) > coverage:
                    coverage, grew = int(match[2]), time.monotonic() - began
    code = process.wait()
    return {"name": name, "runs": runs, "coverage": coverage, "corpus": len(list((work / "corpus").iterdir())),
            "flat_s": time.monotonic() - began - grew, "seconds": time.monotonic() - began, "failed": code != 0,
            "found": sorted(p.name for p in (work / "found").iterdir())}


def keep(name, build):
    """The smallest inputs that reach all coverage, bounded: the tree holds a start, not a history."""
    work, small = build / "fuzz/work" / name, build / "fuzz/work" / name / "merged"
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    subprocess.run([build / "fuzz/fuzz_targets", "-merge=1", f"-max_len={KEPT_BYTES_MAX}", small, work / "corpus"],
                   capture_output=True, env={**os.environ, "FUZZ_TARGET": name})
    target = CORPUS / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in sorted(small.iterdir(), key=lambda p: p.stat().st_size)[:KEPT_FILES_MAX]:
        shutil.copy(path, target / path.name[:16])


def main():
    parser = argparse.ArgumentParser(description="Runs fuzz targets under libFuzzer.")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--targets", default=",".join(table()))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    build, names = options.build.resolve(), options.targets.split(",")
    share = max(1, options.seconds * options.jobs // len(names))
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda name: run(name, table()[name], build, share), names))
    print(f"{'target':<8} {'seconds':>8} {'runs':>10} {'coverage':>9} {'corpus':>7} {'flat for':>9}  found")
    for row in rows:
        print(f"{row['name']:<8} {row['seconds']:>8.0f} {row['runs']:>10} {row['coverage']:>9} {row['corpus']:>7} "
              f"{row['flat_s']:>7.0f} s  {', '.join(row['found']) or 'nothing'}{' (failed)' if row['failed'] else ''}")
    if options.keep:
        for name in names:
            keep(name, build)
    sys.exit(any(row["failed"] or row["found"] for row in rows))


main()
