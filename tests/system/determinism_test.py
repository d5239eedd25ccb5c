#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/determinism_test.py: proves that the same source gives the same bytes: from two folders, by relative and
# absolute paths, under two users' environments, through both names of the compiler, in debug and release builds.

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import BUILD, CROWNYC, DEADLINE_S, ROOT, check, check_equal, environment, run, run_all  # noqa: E402


def compile_bytes(source, cwd, folder, binary=CROWNYC, **variables):
    out = pathlib.Path(folder, "out.toau")
    code, _, err = run([binary, "compile", "--quiet", source, "-o", out], cwd=cwd, env=environment(**variables))
    check_equal((code, err), (0, ""), f"compiling {source}")
    data = out.read_bytes()
    out.unlink()
    return data


def test_the_gateway_from_two_folders(folder):
    places = [folder / "one", folder / "자리" / "of another depth" / "two"]
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / "programs/gateway", place)
    first = compile_bytes("main.han", places[0], folder)
    others = {
        "another folder": compile_bytes("main.han", places[1], folder),
        "an absolute path": compile_bytes(places[1] / "main.han", folder, folder),
        "a path through ..": compile_bytes("../one/main.han", places[0], folder),
        "the tree itself": compile_bytes("programs/gateway/main.han", ROOT, folder),
        "another language and time zone": compile_bytes("main.han", places[0], folder, LANG="ko_KR.UTF-8",
                                                        TZ="Asia/Seoul"),
    }
    for what, data in others.items():
        check(data == first, f"{what}: {len(data)} bytes that differ from the first {len(first)}")
    for place in (folder, ROOT):
        check(str(place).encode() not in first, f"the file holds the path {place}")


def test_both_names_of_the_compiler(folder):
    shutil.copytree(ROOT / "programs/gateway", folder / "gateway")
    written = compile_bytes("gateway/main.han", folder, folder)
    done = subprocess.run([BUILD / "hanseonc_high", "gateway/main.han"], cwd=folder, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=DEADLINE_S,
                          check=False)
    check_equal((done.returncode, done.stderr), (0, b""), "hanseonc_high")
    check(done.stdout == written, "hanseonc_high writes other bytes than crownyc compile")


def test_debug_and_release_builds(folder):
    release = os.environ.get("CROWNYC_RELEASE")
    if not release:
        return  # run by hand, with one build
    for program in sorted((ROOT / "tests/lang").rglob("*.han"))[::7] + [ROOT / "programs/gateway/main.han"]:
        if program.name.startswith("_") or "modules" in program.parts:
            continue  # imported by others
        if "expect error" in program.read_text(encoding="utf-8"):
            continue
        debug = compile_bytes(program, folder, folder)
        check(debug == compile_bytes(program, folder, folder, binary=release), f"{program.name} differs")


def test_a_korean_file_name_in_both_normal_forms(folder):
    """macOS hands out decomposed names; the file must not show which one it was."""
    import unicodedata
    text = '내보내기 함수 main(args) {\n    출력(도움.값())\n}\n'
    found = []
    for form in ("NFC", "NFD"):
        place = folder / form
        place.mkdir()
        name = unicodedata.normalize(form, "도움")
        file_name = name + unicodedata.normalize(form, ".한선")
        (place / file_name).write_text("내보내기 함수 값() { 반환 3 }\n", encoding="utf-8")
        (place / "main.han").write_text('가져오기 "./도움"\n\n' + text, encoding="utf-8")
        found.append(compile_bytes("main.han", place, place))
    check(found[0] == found[1], "the normal form of a file name shows in the file")


run_all(globals())
