#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/lsp_test.py: proves, as a client over stdin and stdout, that crownyc lsp keeps to the protocol (order,
# ids, errors, cancelling, exit codes), counts columns in UTF-16 or UTF-8, answers from unsaved texts, renames through
# the files of a workspace or not at all, and comes back from whatever is half-typed or no protocol.

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (CROWNYC, EXIT_OK, EXIT_PROGRAM, ROOT, Failed, check, check_equal, check_in, run,  # noqa: E402
                     run_all)
from lsp_client import Client, uri  # noqa: E402


def units(text):
    return len(text.encode("utf-16-le")) // 2


def place_of(text, part, nth=0, inside=0):
    """Line and UTF-16 column of the nth occurrence of a part."""
    index = -1
    for _ in range(nth + 1):
        index = text.index(part, index + 1)
    index += inside
    line = text.count("\n", 0, index)
    return line, units(text[text.rfind("\n", 0, index) + 1:index])


def index_of(text, position):
    lines = text.split("\n")
    index = sum(len(line) + 1 for line in lines[:position["line"]])
    left = position["character"]
    for letter in lines[position["line"]]:
        if left <= 0:
            break
        left -= units(letter)
        index += 1
    return index


def apply(text, edits):
    for edit in sorted(edits, key=lambda e: index_of(text, e["range"]["start"]), reverse=True):
        start, end = (index_of(text, edit["range"][side]) for side in ("start", "end"))
        text = text[:start] + edit["newText"] + text[end:]
    return text


def slice_of(text, found):
    return text[index_of(text, found["start"]):index_of(text, found["end"])]


MAIN = '''import "text"
import "./길"

/// 손님에게 인사한다.
fn 인사하기(이름: str) -> str {
    return "😀 안녕, \\(이름)!"
}

export fn main(args) {
    let 말 = "😀😀"  print(말, 인사하기(이름: "한선"), text.count(말))
    let route = 길.Route(name: "a")
    print(route.name, 길.찾기(route))
}
'''
ROUTES = '''/// A way to somewhere.
export record Route { name: str, weight: int = 1 }

/// Finds it.
export fn 찾기(route: Route) -> str {
    return route.name
}
'''


def write_two(folder):
    (folder / "main.han").write_text(MAIN)
    (folder / "길.han").write_text(ROUTES)
    return folder / "main.han", folder / "길.han"


# -- the session ----------------------------------------------------------------------------------------------------

def test_a_session(folder):
    client = Client(folder, initialize=False)
    check_equal(client.ask_error("textDocument/hover", {})["code"], -32002, "code before initialize")
    result = client.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    check_equal(result["capabilities"]["positionEncoding"], "utf-16")
    check_equal(client.ask_error("initialize", {})["code"], -32600, "code of a second initialize")
    client.tell("$/unknown", {})
    client.tell("no/such/notification", {"a": 1})
    check_equal(client.ask_error("no/such/method", {})["code"], -32601)
    check_equal(client.ask_error("textDocument/hover", {})["code"], -32602, "code without params")
    client.send({"jsonrpc": "2.0", "id": "text", "method": "shutdown"})
    check_equal(client.answer("text"), {"jsonrpc": "2.0", "id": "text", "result": None})
    check_equal(client.ask_error("textDocument/hover", {})["code"], -32600, "code after shutdown")
    client.tell("exit", None)
    check_equal(client.end(), EXIT_OK, "exit code")


def test_leaving_without_shutdown_is_1(folder):
    client = Client(folder)
    client.tell("exit", None)
    check_equal(client.end(), EXIT_PROGRAM, "exit code of exit")
    check_equal(Client(folder).end(), EXIT_PROGRAM, "exit code at the end of input")


def test_messages_in_pieces_and_together(folder):
    client = Client(folder)
    for byte in client.frame({"jsonrpc": "2.0", "id": 7, "method": "no/method"}):
        client.send_bytes(bytes([byte]))
    check_equal(client.answer(7)["error"]["code"], -32601)
    body = b'{"jsonrpc":"2.0","id":8,"method":"no/method"}'
    client.send_bytes(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\ncontent-length:%d\r\n\r\n%s"
                      % (len(body), body))
    check_equal(client.answer(8)["error"]["code"], -32601)
    client.send_bytes(b"".join(client.frame({"jsonrpc": "2.0", "id": n, "method": "no/method"})
                               for n in range(100, 400)))
    for number in range(100, 400):
        check_equal(client.answer(number)["error"]["code"], -32601)
    check_equal(client.leave(), EXIT_OK)


def test_cancelled(folder):
    main, _ = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    hover = {"jsonrpc": "2.0", "id": 50, "method": "textDocument/hover", "params": client.at(main, 4, 4)}
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 50}}
    client.send_bytes(client.frame(hover) + client.frame(cancel))  # one write below PIPE_BUF: read in one piece
    check_equal(client.answer(50)["error"]["code"], -32800)
    client.send(cancel)  # of what was answered: nothing
    check(client.ask("textDocument/hover", client.at(main, 4, 4)), "no hover")
    check_equal(client.leave(), EXIT_OK)


def test_garbage_json_is_answered_and_survived(folder):
    client = Client(folder)
    for body in (b"{", b"", b"\xff\xfe", b"[" * 600, b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}'):
        client.send(body)
        check_equal(client.answer(None)["error"]["code"], -32700, body[:20])
    for body in (b"[]", b"7", b"{}", b'{"id":{},"method":"x"}', b'{"method":7}'):
        client.send(body)
        check_equal(client.answer(None)["error"]["code"], -32600, body)
    client.send(b'{"jsonrpc":"2.0","id":3,"result":null}')  # an answer to nothing
    for params in ([], 7, {"textDocument": 1}, {"textDocument": {"uri": "file://%zz"}, "position": {}},
                   {"textDocument": {"uri": "file:///a%00b"}, "position": []}):
        check_equal(client.ask_error("textDocument/definition", params)["code"], -32602, params)
        for method in ("textDocument/didOpen", "textDocument/didChange", "textDocument/didClose"):
            client.tell(method, params)
    check_equal(client.leave(), EXIT_OK)


def test_a_broken_stream_ends_the_server(folder):
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: -1\r\n\r\n", b"Content-Length: x\r\n\r\n",
                 b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", b"\r\n", bytes(random.Random(7).randbytes(9000))):
        client = Client(folder)
        client.send_bytes(data)
        check_equal(client.answer(None)["error"]["code"], -32600, data[:20])
        check_equal(client.end(), EXIT_PROGRAM, f"exit code after {data[:20]}")


# -- diagnostics ----------------------------------------------------------------------------------------------------

def test_diagnostics_of_unsaved_texts(folder):
    main, routes = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    check_equal(client.diagnostics(main), [])
    client.change(main, MAIN.replace("print(말", "pront(말"))
    (found,) = client.diagnostics(main)
    check_equal(found["severity"], 1)
    check_equal(slice_of(MAIN.replace("print(말", "pront(말"), found["range"]), "pront")
    check_equal(found["range"]["start"], {"line": 9, "character": units('    let 말 = "😀😀"  ')})
    check_in("print", found["message"], "the hint")
    # The imported file changes in its buffer only; a name that main uses goes away.
    client.change(main, MAIN)
    check_equal(client.diagnostics(main), [])
    client.open(routes, ROUTES.replace("찾기", "찾다"))
    (found,) = client.diagnostics(main)
    check_equal(slice_of(MAIN, found["range"]), "찾기")
    client.close(routes)
    check_equal(client.diagnostics(main), [])
    check_equal(client.leave(), EXIT_OK)


def test_errors_of_imported_files_and_warnings(folder):
    main, routes = write_two(folder)
    routes.write_text(ROUTES.replace("return route.name", "return route.nam"))
    client = Client(folder)
    client.open(main, MAIN)
    (found,) = client.diagnostics(routes)
    check_in("nam", found["message"])
    routes.write_text(ROUTES)
    client.tell("workspace/didChangeWatchedFiles", {"changes": [{"uri": uri(routes), "type": 2}]})
    check_equal(client.diagnostics(routes), [])
    unused = MAIN.replace("    let route", "    let 남는것 = 1\n    let route")
    client.change(main, unused)
    found = [one for one in client.diagnostics(main) or client.diagnostics(main) if one["severity"] == 2]
    check_equal([slice_of(unused, one["range"]) for one in found], ["남는것"])
    check_equal(found[0]["tags"], [1])
    # Told once more when it is opened again, and taken back when it is closed.
    client.close(main)
    check_equal(client.diagnostics(main), [])
    client.open(main, unused)
    check_equal(len(client.diagnostics(main)), 1)
    check_equal(client.leave(), EXIT_OK)


def test_messages_in_korean(folder):
    client = Client(folder, LANG="ko_KR.UTF-8")
    path = folder / "main.han"
    client.open(path, "export fn main(args) { 없는이름() }\n")
    check_in("없는이름", client.diagnostics(path)[0]["message"])
    check_equal(client.leave(), EXIT_OK)


# -- names ----------------------------------------------------------------------------------------------------------

def hover(client, path, text, part, nth=0, inside=0):
    found = client.ask("textDocument/hover", client.at(path, *place_of(text, part, nth, inside)))
    check(found, f"no hover on {part}")
    return found["contents"]["value"], slice_of(text, found["range"])


def test_hover(folder):
    main, routes = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    value, word = hover(client, main, MAIN, '인사하기(이름: "', inside=2)
    check_equal(word, "인사하기")
    check_in("fn 인사하기(이름: str) -> str", value)
    check_in("손님에게 인사한다.", value)
    value, word = hover(client, main, MAIN, "말, 인사", inside=1)  # behind the letter: still the word
    check_equal(word, "말")
    value, _ = hover(client, main, MAIN, "count")
    check_in("text.count(text: str) -> int", value)
    check_in("글자수", value)
    check_in("Grapheme clusters", value)
    value, _ = hover(client, main, MAIN, "Route(")
    check_in("record Route { name: str, weight: int = 1 }", value)
    check_in("A way to somewhere.", value)
    value, _ = hover(client, main, MAIN, "route.name", inside=6)
    check_in("name: str", value)
    value, _ = hover(client, main, MAIN, "이름: \"")
    check_in("이름: str", value)
    check_equal(client.ask("textDocument/hover", client.at(main, 2, 0)), None)
    check_equal(client.ask("textDocument/hover", client.at(main, 99999, 4294967296)), None)
    check_equal(client.leave(), EXIT_OK)


def test_positions_in_utf8_when_the_client_can(folder):
    main, _ = write_two(folder)
    client = Client(folder, encodings=["utf-16", "utf-8"])
    check_equal(client.capabilities["positionEncoding"], "utf-8")
    client.open(main, MAIN)
    line = MAIN.split("\n")[9]
    column = len(line[:line.index("print")].encode())
    found = client.ask("textDocument/hover", client.at(main, 9, column))
    check_equal(found["range"]["start"]["character"], column)
    check_equal(found["range"]["end"]["character"], column + 5)
    check_equal(client.leave(), EXIT_OK)


def test_definition(folder):
    main, routes = write_two(folder)
    text = 'import "list"\n' + MAIN.replace(
        "    let route", "    print(list.map([1], fn (n) { return n }))\n    let route")
    main.write_text(text)
    client = Client(folder)
    client.open(main, text)

    def definition(part, nth=0, inside=0):
        return client.ask("textDocument/definition", client.at(main, *place_of(text, part, nth, inside)))

    found = definition("찾기")
    check_equal(found["uri"], uri(routes))
    check_equal(slice_of(ROUTES, found["range"]), "찾기")
    check_equal(place_of(ROUTES, "찾기"), (found["range"]["start"]["line"], found["range"]["start"]["character"]))
    found = definition("말, 인사")
    check_equal(found["range"]["start"], dict(zip(("line", "character"), place_of(text, "말 ="))))
    found = definition("route.name", inside=6)
    check_equal((found["uri"], slice_of(ROUTES, found["range"])), (uri(routes), "name"))
    check_equal(definition("길.Route")["uri"], uri(routes))
    # Into the standard library: a copy that an editor can open.
    found = definition("map([1]")
    path = pathlib.Path(found["uri"].removeprefix("file://"))
    check_equal(path.read_text(), (ROOT / "stdlib/list.han").read_text())
    check_equal(slice_of(path.read_text(), found["range"]), "map")
    client.open(path, path.read_text())
    check_equal(client.diagnostics(path), [], "messages about the library's own file")
    check_equal(definition("count"), None, "definition of a native")
    check_equal(client.leave(), EXIT_OK)


def test_references_highlights_and_outline(folder):
    main, routes = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    params = client.at(main, *place_of(MAIN, "인사하기"), context={"includeDeclaration": True})
    found = client.ask("textDocument/references", params)
    check_equal([slice_of(MAIN, one["range"]) for one in found], ["인사하기"] * 2)
    params["context"]["includeDeclaration"] = False
    check_equal(len(client.ask("textDocument/references", params)), 1)
    found = client.ask("textDocument/documentHighlight", client.at(main, *place_of(MAIN, "말 =")))
    check_equal(len(found), 3)
    client.open(routes, ROUTES)
    found = client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(routes)}})
    check_equal([(one["name"], [child["name"] for child in one["children"]]) for one in found],
                [("Route", ["name", "weight"]), ("찾기", [])])
    check_equal(client.leave(), EXIT_OK)


def complete(client, path, text, mark="¦"):
    """What is offered where the mark stands."""
    line, column = place_of(text, mark)
    client.change(path, text.replace(mark, ""))
    return {one["label"]: one for one in client.ask("textDocument/completion", client.at(path, line, column))}


def test_completion(folder):
    main, _ = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    found = complete(client, main, MAIN.replace("    print(route", "    text.¦\n    print(route"))
    check("split" in found and "나누기" in found and "let" not in found, sorted(found)[:9])
    check(found["split"]["sortText"] < found["나누기"]["sortText"], "English first in an English file")
    found = complete(client, main, MAIN.replace("    print(route", "    let r2 = route.na¦\n    print(route"))
    check_equal(sorted(found), ["name", "weight"])
    found = complete(client, main, MAIN.replace("    print(route", "    길.¦\n    print(route"))
    check_equal(sorted(found), ["Route", "찾기"])
    check_in("fn 찾기(route: Route) -> str", found["찾기"]["detail"])
    found = complete(client, main, MAIN.replace("    print(route", "    ¦\n    print(route"))
    for name in ("말", "route", "args", "인사하기", "길", "print", "return", "출력"):
        check(name in found, f"{name} is not offered")
    check("반환" not in found and "이름" not in found, "a word of the other spelling, or out of scope")
    korean = "함수 더하기(가, 나) {\n    만약 가 { ¦ }\n    반환 가 + 나\n}\n"
    found = complete(client, main, korean)
    check("반환" in found and "가" in found and "return" not in found, sorted(found)[:9])
    check(found["출력"]["sortText"] < found["print"]["sortText"], "Korean first in a Korean file")
    for quiet in ('let a = "te¦xt"\n', "// wor¦d\n", "let a = 1 // wor¦d\n"):
        check_equal(complete(client, main, quiet), {}, quiet)
    check("list" in complete(client, main, 'import "li¦"\n'), "modules are not offered")
    check("str" in complete(client, main, 'export fn main(args) { print("\\(¦)") }\n'), "nothing inside \\( )")
    check_equal(client.leave(), EXIT_OK)


# -- changing -------------------------------------------------------------------------------------------------------

def test_formatting(folder):
    path = folder / "main.han"
    messy = "// 😀\nlet a=1\n\n\n\nexport fn main( args ){\nprint( a,\"😀\" )   // 끝\n}\n// end\n"
    path.write_text(messy)
    client = Client(folder)
    client.open(path, messy)
    params = {"textDocument": {"uri": uri(path)}, "options": {"tabSize": 4, "insertSpaces": True}}
    edits = client.ask("textDocument/formatting", params)
    check_equal(run([CROWNYC, "fmt", path])[0], EXIT_OK)
    check_equal(apply(messy, edits), path.read_text())
    check(edits[0]["range"]["start"]["line"] == 1, "lines that stay are not left alone")
    client.change(path, path.read_text())
    check_equal(client.ask("textDocument/formatting", params), [])
    client.change(path, "fn (")
    check_equal(client.ask("textDocument/formatting", params), None)
    check_equal(client.leave(), EXIT_OK)


def rename(client, path, text, part, name, nth=0, inside=0):
    return client.request("textDocument/rename", client.at(path, *place_of(text, part, nth, inside), newName=name))


def changed(client, number):
    answer = client.answer(number)
    check("result" in answer, answer)
    return answer["result"]["changes"]


def test_rename_across_files(folder):
    main, routes = write_two(folder)
    (folder / "below").mkdir()
    other = folder / "below" / "other.han"
    other.write_text('import 길 = "../길"\nexport fn main(args) { print(길.찾기(길.Route(name: "b"))) }\n')
    (folder / "stranger.han").write_text("fn 찾기() { return 1 }\nexport fn main(args) { print(찾기()) }\n")
    client = Client(folder)
    client.open(routes, ROUTES)
    edits = changed(client, rename(client, routes, ROUTES, "찾기", "find_route"))
    check_equal(set(edits), {uri(main), uri(routes), uri(other)})
    for path in (main, routes, other):
        path.write_text(apply(path.read_text(), edits[uri(path)]))
        check("찾기" not in path.read_text(), path)
    check_equal(run([CROWNYC, "check", main])[0], EXIT_OK, "check of the renamed program")
    check_equal(run([CROWNYC, "check", "--deny-warnings", other])[0], EXIT_OK)
    # From a use, of a file that is not open, from the text that is not saved.
    text = main.read_text().replace("print(route.name", "print(1, route.name")
    client.open(main, text)
    client.change(routes, routes.read_text())
    edits = changed(client, rename(client, main, text, "find_route", "찾다"))
    check_in("찾다(route: Route)", apply(routes.read_text(), edits[uri(routes)]))
    check_in("print(1, route.name, 길.찾다(route))", apply(text, edits[uri(main)]))
    check_equal(client.leave(), EXIT_OK)


def test_rename_locals_parameters_and_modules(folder):
    main, routes = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    edits = changed(client, rename(client, main, MAIN, "이름: str", "누구"))
    after = apply(MAIN, edits[uri(main)])
    check_in('인사하기(누구: "한선")', after)
    check_in("\\(누구)!", after)
    edits = changed(client, rename(client, main, MAIN, "말, 인사", "인사말"))
    check_in("print(인사말, 인사하기(이름: \"한선\"), text.count(인사말))", apply(MAIN, edits[uri(main)]))
    edits = changed(client, rename(client, main, MAIN, "길.찾기", "ways"))
    after = apply(MAIN, edits[uri(main)])
    check_in('import ways = "./길"', after)
    check_in("ways.찾기(route)", after)
    check_equal(client.ask("textDocument/prepareRename", client.at(main, *place_of(MAIN, "인사하기"))),
                {"start": {"line": 4, "character": 3}, "end": {"line": 4, "character": 7}})
    check_equal(client.leave(), EXIT_OK)


def test_rename_is_refused(folder):
    main, _ = write_two(folder)
    client = Client(folder)
    client.open(main, MAIN)
    for part, name in (("count", "n"), ("print", "p"), ("main(", "start"), ("인사하기", "return"), ("인사하기", "a b"),
                       ("인사하기", ""), ("인사하기", "main"), ("말 =", "route"), ("말 =", "args"),
                       ("인사하기", "말"), ("이름: str", "1a")):
        answer = client.answer(rename(client, main, MAIN, part, name))
        check_equal(answer.get("error", {}).get("code"), -32803, f"{part} to {name}: {answer}")
    answer = client.answer(rename(client, main, MAIN, "route.name", "other", inside=6))
    check_equal(answer["error"]["code"], -32803, "a field")
    broken = MAIN.replace("text.count(말)", "text.count(말")
    client.change(main, broken)
    check_equal(client.answer(rename(client, main, broken, "인사하기", "hello"))["error"]["code"], -32803)
    check_equal(client.leave(), EXIT_OK)


def test_rename_does_not_capture(folder):
    path = folder / "main.han"
    text = "let 밖 = 1\nexport fn main(args) {\n    let 안 = 2\n    print(밖, 안)\n}\n"
    path.write_text(text)
    client = Client(folder)
    client.open(path, text)
    for part, name in (("밖", "안"), ("안", "밖")):
        check_equal(client.answer(rename(client, path, text, part, name))["error"]["code"], -32803, f"{part} to {name}")
    check(changed(client, rename(client, path, text, "밖", "곁")), "no edits")
    check_equal(client.leave(), EXIT_OK)


# -- texts that change ----------------------------------------------------------------------------------------------

def test_incremental_changes(folder):
    path, fresh_path = folder / "a.han", folder / "b.han"
    client, fresh = Client(folder), Client(folder)
    chance = random.Random(20)
    text = MAIN.replace('import "./길"\n', "").replace("길.", "")
    client.open(path, text)
    for _ in range(60):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((0, 0, 1, 3, 9)))
        new = chance.choice(("", "😀", "\n", "fn f() { }\n", "가", "let a = 1\n", " ", "\r\n", "}"))
        # Positions never stand between CR and LF: a client has no column for that.
        if any(0 < at < len(text) and text[at - 1] == "\r" and text[at] == "\n" for at in (start, end)):
            continue
        ends = []
        for at in (start, end):
            ends.append({"line": text.count("\n", 0, at), "character": units(text[text.rfind("\n", 0, at) + 1:at])})
        client.tell("textDocument/didChange", {"textDocument": {"uri": uri(path), "version": 3}, "contentChanges": [
            {"range": {"start": ends[0], "end": ends[1]}, "text": new}]})
        text = text[:start] + new + text[end:]
    fresh.open(fresh_path, text)
    outlines = [one.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(at)}})
                for one, at in ((client, path), (fresh, fresh_path))]
    check_equal(outlines[0], outlines[1])

    def plain(found):
        return sorted((one["code"], str(one["range"]), one["message"]) for one in found)

    told = fresh.diagnostics(fresh_path)
    check(told, "the program is good by chance: it shows nothing")

    def wait_for(wanted):
        """A server tells of the texts that it has time for, among them of one that nothing comes behind."""
        seen = plain(client.diagnostics(path))
        while seen != plain(wanted):
            try:
                seen = plain(client.diagnostics(path))
            except Failed:
                check_equal(seen, plain(wanted))

    short, short_path = "let a =\n", folder / "c.han"
    fresh.open(short_path, short)
    short_told = fresh.diagnostics(short_path)
    check(plain(short_told) != plain(told), "both texts are told the same")
    client.change(path, short)
    wait_for(short_told)
    client.tell("textDocument/didChange", {"textDocument": {"uri": uri(path), "version": 3}, "contentChanges": [
        {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 9}}, "text": text}]})
    wait_for(told)
    check_equal([client.leave(), fresh.leave()], [EXIT_OK, EXIT_OK])


def test_every_prefix_of_ten_programs(folder):
    programs = sorted(path for path in (ROOT / "tests/lang").glob("*/*.han")
                      if 200 < path.stat().st_size < 700 and "import \"./" not in path.read_text())
    programs = random.Random(3).sample(programs, 10)
    path = folder / "main.han"
    client = Client(folder)
    client.open(path, "")
    steps = 0
    for program in programs:
        text = program.read_text()
        for length in range(len(text) + 1):
            prefix = text[:length]
            line, column = prefix.count("\n"), units(prefix[prefix.rfind("\n") + 1:])
            client.change(path, prefix)
            asked = [client.request("textDocument/completion", client.at(path, line, column)),
                     client.request("textDocument/hover", client.at(path, line, max(0, column - 1)))]
            if length % 8 == 0:
                asked.append(client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri(path)}}))
                at = client.at(path, line, max(0, column - 1), newName="zz")
                asked.append(client.request("textDocument/rename", at))
            for number in asked:
                client.answer(number)
            client.notes.clear()
            steps += 1
    check(steps > 2000, steps)
    check_equal(client.leave(), EXIT_OK)


def test_texts_that_are_no_files(folder):
    client = Client(folder, root=False)
    client.tell("textDocument/didOpen", {"textDocument": {"uri": "untitled:Untitled-1", "languageId": "hanseon",
                                                          "version": 1, "text": "import \"./x\"\nlet a = b\n"}})
    message = client.read()
    check_equal(message["params"]["uri"], "untitled:Untitled-1")
    check_equal(len(message["params"]["diagnostics"]), 2)
    place = {"textDocument": {"uri": "untitled:Untitled-1"}, "position": {"line": 1, "character": 4}}
    check_in("let a", client.ask("textDocument/hover", place)["contents"]["value"])
    client.ask_error("textDocument/rename", dict(place, newName="c"))  # it has mistakes
    check_equal(client.leave(), EXIT_OK)


run_all(globals())
