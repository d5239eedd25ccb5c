#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/fmt_test.py: proves that crownyc fmt lays sources out as compiler/fmt.h promises, keeps every comment,
# can be repeated, changes no program (on every source in the repository, also with keywords in the other language), and
# touches nothing that it cannot read.

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import CROWNYC, EXIT_OK, EXIT_PROGRAM, EXIT_USAGE, ROOT, check, check_equal, check_in, environment, run, \
    run_all  # noqa: E402

MESSY = '''

import   "list"
// a comment
let a=1   // one
let longer_name  =  -  a  // two


const 표={ name:1,"key" : [1,2,  3] , nested:{a:1}}
record Point{x:int=0,y :str}
export fn main( args ){

  // first
    만약(a==1 그리고 !(a<0)){ print( "a\\( a+1 )b" , 표 [ "name" ] ) }   else{print(- a,~a, 1|2)}

      let total = a
  + longer_name
        *2
 각각 x 에서 0 .. 3{ list.contains( [1] ,x ) }
  let f = fn(x){return x}   // last
  match a{1,2{print(1)}else{}}
  loop{break}
  report(a,
  "b", [
  1,
  ])
      let text = `raw
   kept  `
  // before the end

}
fn report(a,b,c){return nil}
test  "a name"{return}
// end'''

TIDY = '''import "list"
// a comment
let a = 1           // one
let longer_name = -a // two

const 표 = {name: 1, "key": [1, 2, 3], nested: {a: 1}}
record Point { x: int = 0, y: str }
export fn main(args) {
    // first
    만약 (a == 1 그리고 !(a < 0)) { print("a\\(a + 1)b", 표["name"]) } else { print(-a, ~a, 1|2) }

    let total = a
        + longer_name
        * 2
    각각 x 에서 0..3 { list.contains([1], x) }
    let f = fn (x) { return x } // last
    match a { 1, 2 { print(1) } else {} }
    loop { break }
    report(a,
        "b", [
            1,
        ])
    let text = `raw
   kept  `
    // before the end
}
fn report(a, b, c) { return nil }
test "a name" { return }
// end
'''.replace("let a = 1           // one", "let a = 1            // one")


def fmt(*arguments, stdin=None):
    result = subprocess.run([CROWNYC, "fmt", *map(str, arguments)], input=stdin, capture_output=True, text=True,
                            env=environment())
    return result.returncode, result.stdout, result.stderr


def test_the_layout(folder):
    code, out, err = fmt("-", stdin=MESSY)
    check_equal((code, err), (EXIT_OK, ""), "exit code and stderr")
    check_equal(out.splitlines(), TIDY.splitlines(), "the layout")
    check_equal(fmt("-", stdin=out)[1], out, "a second time")


def test_line_ends_of_other_systems(folder):
    check_equal(fmt("-", stdin="\ufefflet a = 1\r\n// x\t\r\nlet b = `p\r\nq`\r\n")[1],
                "let a = 1\n// x\nlet b = `p\nq`\n", "CR, tabs behind comments, byte order mark")
    check_equal(fmt("-", stdin="")[1], "", "an empty file")
    check_equal(fmt("-", stdin="// only\n\n\n// this")[1], "// only\n\n// this\n", "comments alone")


def test_a_file_without_a_line_end_gets_one(folder):
    source = folder / "a.han"
    source.write_text("fn a(){}")
    check_equal(run([CROWNYC, "fmt", source])[0], EXIT_OK, "exit code")
    check_equal(source.read_text(), "fn a() {}\n", "what is written")


def test_keywords_are_converted_where_they_are_keywords(folder):
    source = 'let r = {if: 1}\nfn f(x) { 만약 x 아닌 아니면 }\n'
    code, out, err = fmt("-", "--keywords", "ko", stdin='let r = {if: true}\nexport fn main(args) { '
                                                        'if !r.if && not 티 { return 옴 } }\n')
    check_equal((code, out), (EXIT_OK, '변수 r = {if: 참}\n내보내기 함수 main(args) { '
                                       '만약 !r.if && 아닌 참 { 반환 없음 } }\n'), "Korean")
    check_equal(fmt("-", "--keywords", "en", stdin=out)[1],
                'let r = {if: true}\nexport fn main(args) { if !r.if && not true { return nil } }\n', "English")
    check_equal(fmt("-", "--keywords", "fr", stdin=source)[0], EXIT_USAGE, "an unknown language")


def test_a_source_with_mistakes_is_not_touched(folder):
    bad, good = folder / "bad.han", folder / "good.han"
    bad.write_text("let  a = \n")
    good.write_text("let  a = 1\n")
    (folder / "note.txt").write_text("let  a")
    code, _, err = fmt(folder)
    check_equal(code, EXIT_PROGRAM, "exit code")
    check_in("bad.han:2:1: error", err, "stderr")
    check_equal((bad.read_text(), good.read_text()), ("let  a = \n", "let a = 1\n"), "the files")
    check_equal(fmt(folder / "none.han")[0], EXIT_PROGRAM, "a file that is not there")


def test_check_names_what_would_change(folder):
    (folder / "a.han").write_text("let  a = 1\n")
    (folder / "b.한선").write_text("let b = 1\n")
    code, out, err = fmt("--check", folder)
    check_equal((code, out), (EXIT_PROGRAM, f"{folder}/a.han\n"), "exit code and names")
    check_in("1 of 2 files", err, "stderr")
    check_equal((folder / "a.han").read_text(), "let  a = 1\n", "the file")
    fmt(folder)
    check_equal(fmt("--check", folder)[:2], (EXIT_OK, ""), "afterwards")


def comments(source):
    """What stands behind // on each line. Runs of spaces count as one: a string may hold // before a comment."""
    return [re.sub(r"\s+", " ", found).strip() for found in re.findall(r"//.*", source.read_text())]


def code_of(source):
    """The program's RPN text without places; None when it does not compile."""
    code, text, _ = run([CROWNYC, "rpn", str(source)], env=environment())
    return re.sub(r"^ *@.*\n", "", text, flags=re.M) if code == EXIT_OK else None


def test_every_source_in_the_repository(folder):
    trees = {}
    for name in ("kept", "ko", "en"):
        trees[name] = folder / name
        for part in ("programs", "stdlib", "tests/lang", "tests/golden", "bench"):
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, trees[name] / part, ignore=lambda _, names: [
                    n for n in names if not n.endswith((".han", ".한선")) and "." in n])
        fmt(trees[name], *(["--keywords", name] if name != "kept" else []))
        again = fmt("--check", trees[name], *(["--keywords", name] if name != "kept" else []))
        check_equal(again[1], "", f"{name}: files that a second run would change")
    compared = 0
    for source in sorted(trees["kept"].rglob("*.han")):
        relative = source.relative_to(trees["kept"])
        before = code_of(ROOT / relative)
        for name, tree in trees.items():
            check_equal(comments(tree / relative), comments(ROOT / relative), f"{name}/{relative}: comments")
            if before is not None:
                check(code_of(tree / relative) == before, f"{name}/{relative}: the program has changed")
                compared += 1
    check(compared > 200, f"only {compared} programs were compared")


def test_what_we_ship_is_laid_out(folder):
    for part in ("programs", "stdlib"):
        check_equal(fmt("--check", ROOT / part)[:2], (EXIT_OK, ""), f"crownyc fmt --check {part}")


run_all(globals())
