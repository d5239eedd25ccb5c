#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/docs_test.py: proves that what the papers tell people to type works: every example of docs/LANGUAGE.md
# and docs/LANGUAGE.ko.md says what stands below it, programs of the READMEs, of docs/RPN.md and of docs/DIALECT.md run,
# the commands of the README lead to a proxied request, those of docs/TOOLS.md print what stands behind them, and the
# YAML of docs/GATEWAY.md is accepted.
#
# In the two courses a block `hanseon` is a file (main.han, or the name behind the word), and the `text` block right
# behind it is what it says, byte for byte. Words behind `hanseon` say how it is used: nothing: run; `error`: refused
# by the compiler; `fails`: ends in an error; `warns`: checked; `module`: checked, and there for the next ones; `test`:
# its test blocks are run; `serve`: it serves while the commands behind it run, on other ports than the paper's;
# `mixed`: keywords of both languages. A block `sh` is commands in the same folder.

import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from certificates import Authority  # noqa: E402
from harness import (BANNER, BUILD, CROWNYC, EXIT_OK, EXIT_PROGRAM, ROOT, Program, check, check_equal,  # noqa: E402
                     compile_gateway, environment, free_port, request, run, run_all, wait_until)

PAPERS = ["README.md", "README.ko.md", "docs/DIALECT.md"]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.S | re.M)
EXPECT = re.compile(r"//\s*expect:(?: (.*))?$", re.M)
DECLARES = re.compile(r"^(?:export|내보내기|import|가져오기|fn|함수|record|자료형)\b", re.M)
HAS_MAIN = re.compile(r"^(?:export|내보내기) +(?:fn|함수) +main\b", re.M)


def fences(paper):
    """(line, language, words behind it, text) of each fenced block."""
    text = (ROOT / paper).read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2).split(), m.group(3))
            for m in BLOCK.finditer(text)]


def blocks(paper, language):
    """(line, words behind the language, text) of each block of one language."""
    return [(line, " ".join(words), text) for line, found, words, text in fences(paper) if found == language]


def whole_program(text):
    if HAS_MAIN.search(text):
        return text
    if DECLARES.search(text):
        return text + "\nexport fn main(args) { }\n"
    return "export fn main(args) {\n" + text + "}\n"


class Course:
    """A paper whose examples are executed in order, in one folder, with `crownyc` on the PATH."""

    def __init__(self, paper, folder, language="en"):
        self.folder = folder / pathlib.Path(paper).stem
        commands = self.folder / "commands"
        commands.mkdir(parents=True)
        (commands / "crownyc").symlink_to(CROWNYC)
        self.env = environment(LANG="ko_KR.UTF-8" if language == "ko" else "C.UTF-8",
                               PATH=f"{commands}:{os.environ['PATH']}")
        self.server, self.ports = None, {}

    def execute(self, command, wanted_code=None):
        code, out, err = run(command, cwd=self.folder, env=self.env)
        if wanted_code is not None and code != wanted_code:
            return f"exit code {code}, not {wanted_code}\n{out}{err}"
        return out + err

    def program(self, words, text):
        """What an example says when it is used as its words say; "" for one that says nothing."""
        name = next((word for word in words if word.endswith(".han") or word.endswith(".한선")), "main.han")
        if self.server is not None:
            self.server.end()
            self.server = None
        if "serve" in words:
            return self.serve(name, text)
        (self.folder / name).write_text(text if {"module", "test"} & set(words) else whole_program(text), "utf-8")
        if "error" in words:
            return self.execute([CROWNYC, "compile", name, "-o", "x.toau"], EXIT_PROGRAM)
        if "fails" in words:
            return self.execute([CROWNYC, "run", name], EXIT_PROGRAM)
        if "warns" in words or "module" in words:
            return self.execute([CROWNYC, "check", name], EXIT_OK)
        return self.execute([CROWNYC, "test" if "test" in words else "run", name], EXIT_OK)

    def serve(self, name, text):
        self.ports = {port: str(free_port()) for port in sorted(set(re.findall(r"127\.0\.0\.1:(\d+)", text)))}
        (self.folder / name).write_text(self.with_ports(text), "utf-8")
        self.server = Program([CROWNYC, "run", name], cwd=self.folder, env=self.env)
        self.server.wait_line(re.compile("^" + re.search(r'(?:banner|알림말): "([^"]*)"', text).group(1) + "$"))
        return ""

    def with_ports(self, text):
        for port, real in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{real}")
        return text

    def commands(self, text):
        return self.execute(["/bin/sh", "-c", "exec 2>&1\n" + self.with_ports(text)])


def follow_course(paper, folder, language):
    """Examples that do not say what the text block behind them says, and how many there are."""
    course, wrong, count = Course(paper, folder, language), [], 0
    found = fences(paper)
    for index, (line, kind, words, text) in enumerate(found):
        behind = found[index + 1] if index + 1 < len(found) else (0, "", [], "")
        if kind == "hanseon":
            said, count = course.program(words, text), count + 1
        elif kind == "sh":
            said, count = course.commands(text), count + 1
        else:
            continue
        wanted = behind[3] if behind[1] == "text" else ""
        if said != wanted:
            wrong.append(f"{paper}:{line}: said\n{said}and not\n{wanted}")
    return wrong, count


def test_course_in_english(folder):
    wrong, count = follow_course("docs/LANGUAGE.md", folder, "en")
    check(not wrong, "\n".join(wrong))
    check(count > 35, "hardly any examples")


def test_course_in_korean(folder):
    wrong, count = follow_course("docs/LANGUAGE.ko.md", folder, "ko")
    check(not wrong, "\n".join(wrong))
    check(count > 35, "hardly any examples")


def test_courses_are_laid_out(folder):
    """Examples look as `crownyc fmt` writes them, with the keywords of the paper's language."""
    wrong = []
    for paper, language in (("docs/LANGUAGE.md", "en"), ("docs/LANGUAGE.ko.md", "ko")):
        for line, words, text in blocks(paper, "hanseon"):
            (folder / "a.han").write_text(text, encoding="utf-8")
            keywords = [] if "mixed" in words else ["--keywords", language]
            code, out, err = run([CROWNYC, "fmt", "--check", *keywords, "a.han"], cwd=folder)
            if code != EXIT_OK and "error" not in words:
                wrong.append(f"{paper}:{line}: {out}{err}")
    check(not wrong, "\n".join(wrong))


def test_programs(folder):
    wrong, count = [], 0
    for paper in PAPERS:
        found = blocks(paper, "hanseon")
        check(found, f"{paper} shows no program")
        for line, _, text in found:
            count += 1
            source = folder / f"block{count}.han"
            source.write_text(whole_program(text), encoding="utf-8")
            code, out, err = run([CROWNYC, "run", source], cwd=folder)
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
    check_equal(commands, 9, "blocks with commands")


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
    for name in ("clients", "inside"):
        Authority(folder, name)
    for name in ("a", "b", "gateway"):
        Authority(folder, "clients").make(name, f"DNS:{name}.example.org")
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
