#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/docs_test.py: proves that what the papers tell people to type works: every program of README,
# docs/RPN.md, docs/TOOLS.md and docs/LANGUAGE.md compiles and runs (and prints what its `// expect:` lines say), the
# commands of the README lead to a proxied request, those of docs/TOOLS.md print what stands behind them, and the YAML
# of docs/GATEWAY.md is accepted.
#
# A block of a language named `hanseon` is a whole program when it exports main; others are parts and are compiled as
# the body of one unless they declare something, in which case main is added. Blocks marked `hanseon error` must be
# refused.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BANNER, BUILD, CROWNYC, EXIT_OK, EXIT_PROGRAM, ROOT, Program, check, check_equal,  # noqa: E402
                     compile_gateway, environment, free_port, request, run, run_all, wait_until)

PAPERS = ["README.md", "README.ko.md", "docs/LANGUAGE.md"]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.S | re.M)
EXPECT = re.compile(r"//\s*expect:(?: (.*))?$", re.M)
DECLARES = re.compile(r"^(?:export|내보내기|import|가져오기|fn|함수|record|자료형)\b", re.M)
HAS_MAIN = re.compile(r"^(?:export|내보내기) +(?:fn|함수) +main\b", re.M)


def blocks(paper, language):
    """(line, words behind the language, text) of each fenced block."""
    text = (ROOT / paper).read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 1, m.group(2).strip(), m.group(3))
            for m in BLOCK.finditer(text) if m.group(1) == language]


def whole_program(text):
    if HAS_MAIN.search(text):
        return text
    if DECLARES.search(text):
        return text + "\nexport fn main(args) { }\n"
    return "export fn main(args) {\n" + text + "}\n"


def test_programs(folder):
    wrong, count = [], 0
    for paper in PAPERS:
        found = blocks(paper, "hanseon")
        check(found, f"{paper} shows no program")
        for line, words, text in found:
            count += 1
            source = folder / f"block{count}.han"
            source.write_text(whole_program(text), encoding="utf-8")
            if "error" in words:
                code, _, err = run([CROWNYC, "compile", source, "-o", folder / "x.toau"], cwd=folder)
                if code != EXIT_PROGRAM:
                    wrong.append(f"{paper}:{line}: was to be refused, exit code {code}")
                continue
            command = "compile" if "handle(" in text and "main" not in text else "run"
            arguments = ["-o", folder / "x.toau"] if command == "compile" else []
            code, out, err = run([CROWNYC, command, source, *arguments], cwd=folder)
            expected = [m.group(1) or "" for m in EXPECT.finditer(text)]
            if code != EXIT_OK:
                wrong.append(f"{paper}:{line}: exit code {code}\n{err}")
            elif expected and out.splitlines() != expected:
                wrong.append(f"{paper}:{line}: printed {out!r}, not {expected}")
    check(not wrong, "\n".join(wrong))


def test_rpn_paper(folder):
    """Texts of docs/RPN.md run and print what they say; those marked `error` are refused with the block behind them."""
    found = blocks("docs/RPN.md", "rpn")
    refusals = [text for _, _, text in blocks("docs/RPN.md", "text")]
    check_equal(len([words for _, words, _ in found if words == "error"]), len(refusals), "blocks of messages")
    check(len(found) > len(refusals) > 0, "docs/RPN.md shows no program")
    for line, words, text in found:
        (folder / "block.rpn").write_text(text, encoding="utf-8")
        code, out, err = run([CROWNYC, "run", "block.rpn"], cwd=folder)
        if words == "error":
            source_lines = {source.strip() for source in text.splitlines()}
            shown = "".join(f"    {part.strip()}\n" if part.strip() in source_lines else part + "\n"
                            for part in err.splitlines())
            shown = re.sub(r"^ +(\^+)$", r"\1", shown, flags=re.M)
            wanted = re.sub(r"^ +(\^+)$", r"\1", refusals.pop(0), flags=re.M)
            check_equal((code, shown), (EXIT_PROGRAM, wanted), f"docs/RPN.md:{line}")
            continue
        expected = [m.group(1) or "" for m in re.finditer(r"^# expect:(?: (.*))?$", text, re.M)]
        check(expected, f"docs/RPN.md:{line} expects nothing")
        check_equal((code, out.splitlines()), (EXIT_OK, expected), f"docs/RPN.md:{line}: {err}")


def test_tools_paper(folder):
    """Named programs are files; each block of commands prints what the block behind it says; so does each session."""
    text = (ROOT / "docs/TOOLS.md").read_text(encoding="utf-8")
    found = [(m.group(1), m.group(2).strip(), m.group(3)) for m in BLOCK.finditer(text)]
    commands = 0
    for i, (language, words, block) in enumerate(found):
        if language == "hanseon" and words:
            (folder / words).write_text(block, encoding="utf-8")
        if language == "sh":
            script = f'crownyc() {{ "{CROWNYC}" "$@"; }}\n' + block
            code, out, err = run(["/bin/sh", "-ec", script], cwd=folder)
            check_equal((code, err), (EXIT_OK, ""), f"the commands\n{block}")
            check_equal(out, found[i + 1][2], f"what they print:\n{block}")
            commands += 1
        if language == "repl":
            typed = re.findall(r"^(?:> |\.\. )(.*\n)", block, re.M)
            shown = re.sub(r"^(?:> |\.\. ).*\n", "", block, flags=re.M)
            (folder / "typed").write_text("".join(typed), encoding="utf-8")
            said = run(["/bin/sh", "-c", f'"{CROWNYC}" repl < typed'], cwd=folder)
            check_equal(said, (EXIT_OK, shown, ""), "the session")
            commands += 1
    check_equal(commands, 6, "blocks with commands")


def test_what_the_first_program_prints(folder):
    for paper, second in (("README.md", "search"), ("README.ko.md", "검색")):
        wanted = f"www.orders.example -> 주문\na.example -> {second}\nb.test -> nil\n"
        source = folder / "a.han"
        source.write_text(blocks(paper, "hanseon")[0][2], encoding="utf-8")
        check_equal(run([CROWNYC, "run", source]), (EXIT_OK, wanted, ""), f"the program of {paper}")


def test_commands_of_the_readme(folder):
    """The block that goes from source to a proxied request, as written; only ports and places are replaced."""
    sh = [text for _, _, text in blocks("README.md", "sh") if "hanseonc_high" in text]
    check_equal(len(sh), 1, "blocks with hanseonc_high in README.md")
    korean = [text for _, _, text in blocks("README.ko.md", "sh") if "hanseonc_high" in text]
    check_equal(sh, korean, "the same in README.ko.md")
    (folder / "index.html").write_text("readme\n")
    port = free_port()
    script = sh[0].replace("19000", str(free_port())).replace("18081", str(port))
    script = script.replace("build/", f"{BUILD}/").replace("programs/", f"{ROOT}/programs/")
    gateway = Program(["/bin/sh", "-ec", script], cwd=folder, env=environment(GW_BIND="127.0.0.1"))
    said = gateway.wait_line(BANNER).group(0)
    check_equal(said.replace(str(port), "18081"), "포트 18081 (프록시, 서비스 301개)", "the line that the README shows")
    answer = wait_until(lambda: answered(port), "the upstream that the block starts in the background answers")
    check_equal(answer.body, b"readme\n", "answer")


def answered(port):
    answer = request(port, "bench.local")
    return answer if answer.status == 200 else None


def test_yaml_of_the_gateway_paper(folder):
    toau = compile_gateway(folder)
    found = blocks("docs/GATEWAY.md", "yaml")
    check(len(found) >= 2, "docs/GATEWAY.md shows no YAML")
    for line, _, text in found:
        (folder / "gateway.yaml").write_text(text, encoding="utf-8")
        code, _, err = run([CROWNYC, "run", toau, "check", "gateway.yaml"], cwd=folder)
        check_equal((code, err), (EXIT_OK, ""), f"check of the block at docs/GATEWAY.md:{line}")


def test_opcodes_of_the_architecture_paper(folder):
    """Each run of lines between blank ones stands in the disassembly like that, places and the remarks at the right
    aside; the paper's count is the number of lines."""
    toau = compile_gateway(folder)
    code, text, _ = run([CROWNYC, "disassemble", toau])
    check_equal(code, EXIT_OK, "exit code of disassemble")
    program = "".join(line.strip() + "\n" for line in text.splitlines() if not line.strip().startswith("@"))
    shown = blocks("docs/ARCHITECTURE.md", "rpn")
    check_equal(len(shown), 1, "blocks of RPN in docs/ARCHITECTURE.md")
    for part in shown[0][2].strip("\n").split("\n\n"):
        lines = "".join(re.split(r" {4,}", line.strip())[0] + "\n" for line in part.splitlines())
        check("\n" + lines in program, f"the program has no such run:\n{lines}")
    count = len([line for line in shown[0][2].splitlines() if line.strip()])
    paper = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    check(f"runs these {count} " in paper, f"the paper shows {count} opcodes and says another number")


def test_the_example_is_what_its_script_writes(_folder):
    script = ROOT / "programs/gateway/make_example.py"
    code, out, err = run([sys.executable, script])
    check_equal((code, err), (EXIT_OK, ""), "make_example.py")
    example = (ROOT / "programs/gateway/gateway.yaml").read_text(encoding="utf-8")
    check(out == example, "gateway.yaml is old: run make_example.py")


def test_variables_stand_in_all_three_places(_folder):
    """What the gateway reads, its paper and its help name the same variables."""
    source = "".join(p.read_text(encoding="utf-8") for p in sorted((ROOT / "programs/gateway").glob("*.han"))
                     if p.name != "help.han")
    read = set(re.findall(r'"(GW_[A-Z]+)"', source))
    paper = set(re.findall(r"^\| (GW_[A-Z]+)", (ROOT / "docs/GATEWAY.md").read_text(encoding="utf-8"), re.M))
    shown = set(re.findall(r"^  (GW_[A-Z]+) ", (ROOT / "programs/gateway/help.han").read_text(encoding="utf-8"), re.M))
    check_equal(sorted(paper), sorted(read), "variables in docs/GATEWAY.md")
    check_equal(sorted(shown), sorted(read), "variables in help.han")


run_all(globals())
