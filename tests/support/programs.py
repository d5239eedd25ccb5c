# SPDX-License-Identifier: MIT
#
# tests/support/programs.py: compiles the programs that the harnesses of tests/fuzz and tests/fault take.
#
# In:   CROWNYC; CROWNYC_HARNESSES (the folder of toau_mutate and fail_allocations), else BUILD.
# Out:  .toau files in the current folder, which is the test's own.

import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build/debug")).resolve()
CROWNYC = pathlib.Path(os.environ.get("CROWNYC", BUILD / "crownyc")).resolve()
HARNESSES = pathlib.Path(os.environ.get("CROWNYC_HARNESSES", BUILD)).resolve()
GATEWAY = ROOT / "programs/gateway/main.han"
SEEDS = sorted((ROOT / "tests/fuzz/seeds").glob("*.han"))

REFUSED = re.compile(r"//\s*expect error:")
IMPORTED = re.compile(r"^_|^modules$")


def lang_programs():
    """The programs of tests/lang that compile."""
    paths = sorted(p for p in (ROOT / "tests/lang").rglob("*") if p.suffix in (".han", ".한선"))
    return [p for p in paths if not any(IMPORTED.match(part) for part in p.parts)
            and not REFUSED.search(p.read_text(encoding="utf-8"))]


# Large values in every step: each takes 5 to 50 s for all its failing allocations. make test-all has them.
SLOW_WITHOUT_MEMORY = ("bomb_of_", "_pauses", "natives_pause", "cancelled_in_the_middle", "half_made_texts",
                       "equality_of_deep_values")


# The same for fail_natives, each with what else has their natives in its usual run.
SLOW_NATIVES_WITHOUT_MEMORY = {
    "world/net_large.han": "megabytes in each step; sockets.han",
    "regex/beside_others.han": "a search to its bound and two endless ones in each step; the other programs of regex",
    "regex/catastrophic.han": "burns REGEX_CALL_MS in each step; the other programs of regex",
    "regex/in_initialisers.han": "a search to its bound in each step; the other programs of regex",
    "regex/many_matches.han": "hundreds of thousands of matches in each step; the other programs of regex",
}


def is_slow_without_memory(path):
    return path.parent.name == "stop" and any(part in path.stem for part in SLOW_WITHOUT_MEMORY)


def compile_to_files(sources, folder=".", root=ROOT):
    """One .toau for each source below `root`; SystemExit when one does not compile."""
    toaus = []
    for source in sources:
        name = str(source.relative_to(root).with_suffix("")).replace(os.sep, ".")
        toau = pathlib.Path(folder, f"{name}.toau")
        done = subprocess.run([CROWNYC, "compile", source, "-o", toau], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{source} does not compile:\n{done.stderr}")
        toaus.append(toau)
    return toaus


def run_harness(name, *arguments):
    """Becomes the harness, whose last line is "N passed, N failed"."""
    harness = HARNESSES / name
    if not harness.exists():
        raise SystemExit(f"{harness} is not there: make harnesses")
    os.execv(harness, [str(harness), *map(str, arguments)])


DIFFERS = re.compile(r"^// without memory(?:, says `([^`]+)`)?: \S", re.M)


def fail_allocations(sources):
    """Becomes the harness fail_allocations with these programs."""
    arguments = []
    for source, toau in zip(sources, compile_to_files(sources)):
        if DIFFERS.search(source.read_text(encoding="utf-8")):
            arguments.append("--differs")
        arguments.append(toau)
    run_harness("fail_allocations", *arguments)


def fail_natives(sources):
    """Becomes the harness fail_natives with these programs."""
    arguments = []
    for source, toau in zip(sources, compile_to_files(sources)):
        differs = DIFFERS.search(source.read_text(encoding="utf-8"))
        if differs and differs.group(1):
            arguments += ["--differs", differs.group(1)]
        arguments.append(toau)
    run_harness("fail_natives", *arguments)
