#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/limit/lsp_test.py: proves that limits of the language server hold at their value, and that one past it is
# refused with the row's name, or, for open documents, not kept.

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import EXIT_OK, EXIT_PROGRAM, ROOT, check, check_equal, check_in, run_all  # noqa: E402
from lsp_client import Client, uri  # noqa: E402

ROW = re.compile(r"^LIMIT\((LSP_\w+),\s*([^,]+),", re.M)
LIMITS = {name: eval(value)  # noqa: S307: our own table
          for name, value in ROW.findall((ROOT / "vm/base/limits.def").read_text(encoding="utf-8"))}
ASK = b'{"jsonrpc":"2.0","id":9,"method":"no/method"}'


def refused(client, row):
    check_in(row, client.answer(None)["error"]["message"])
    check_equal(client.end(), EXIT_PROGRAM, "exit code")


def test_header_bytes(folder):
    limit = LIMITS["LSP_HEADER_BYTES"]
    tail = b"\r\nContent-Length: %d\r\n\r\n" % len(ASK)
    at = b"X: " + b"a" * (limit - 3 - len(tail)) + tail
    check_equal(len(at), limit)
    client = Client(folder)
    client.send_bytes(at + ASK)
    check_equal(client.answer(9)["error"]["code"], -32601)
    client.send_bytes(b"X: a" + at[3:] + ASK)
    refused(client, "LSP_HEADER_BYTES")


def test_message_bytes(folder):
    limit = LIMITS["LSP_MESSAGE_BYTES"]
    client = Client(folder)
    client.send_bytes(b"Content-Length: %d\r\n\r\n" % limit + ASK + b" " * (limit - len(ASK)))
    check_equal(client.answer(9)["error"]["code"], -32601)
    client.send_bytes(b"Content-Length: %d\r\n\r\n" % (limit + 1))
    refused(client, "LSP_MESSAGE_BYTES")
    for huge in (b"18446744073709551615", b"18446744073709551616", b"9" * 100):
        client = Client(folder)
        client.send_bytes(b"Content-Length: " + huge + b"\r\n\r\n")
        refused(client, "LSP_MESSAGE_BYTES" if huge.startswith(b"18446744073709551615") else "Content-Length")


def test_message_values(folder):
    client = Client(folder)
    values = LIMITS["LSP_MESSAGE_VALUES"] - 5  # the message, its three members, and the list
    for more in (0, 1):
        params = b",".join([b"0"] * (values + more))
        client.send(b'{"jsonrpc":"2.0","id":9,"method":"no/method","params":[' + params + b"]}")
        if more == 0:
            check_equal(client.answer(9)["error"]["code"], -32601)
    answer = client.answer(None)["error"]
    check_equal(answer["code"], -32700)
    check_in("LSP_MESSAGE_VALUES", answer["message"])
    check_equal(client.leave(), EXIT_OK)


def test_documents(folder):
    limit = LIMITS["LSP_DOCUMENTS"]
    client = Client(folder)
    for number in range(limit + 1):
        client.open(folder / f"{number}.han", "")
        if number % 50 == 0:  # or both sides would wait for the other to read
            client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(folder / "0.han")}})
    symbols = [client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri(folder / f"{number}.han")}})
               for number in (0, limit - 1, limit)]
    found = ["result" in client.answer(number) for number in symbols]
    check_equal(found, [True, True, False], "the first, the last and one past it")
    check_in("LSP_DOCUMENTS", client.stderr())
    client.close(folder / "0.han")
    client.open(folder / "again.han", "let a = 1\n")
    check_equal(len(client.ask("textDocument/documentSymbol", {"textDocument": {"uri": uri(folder / "again.han")}})), 1)
    check_equal(client.leave(), EXIT_OK)


def test_rename_files(folder):
    limit = LIMITS["LSP_RENAME_FILES"]
    main = folder / "main.han"
    text = "let 이름 = 1\nexport fn main(args) { print(이름) }\n"
    main.write_text(text)
    for number in range(limit - 1):
        (folder / f"{number}.han").write_text("")
    client = Client(folder)
    client.open(main, text)
    where = client.at(main, 0, 4, newName="새이름")
    check_equal(len(client.ask("textDocument/rename", where)["changes"]), 1)
    (folder / "more.han").write_text("")
    check_in("LSP_RENAME_FILES", client.ask_error("textDocument/rename", where)["message"])
    check_equal(client.leave(), EXIT_OK)


check(LIMITS, "limits.def has no rows")
run_all(globals())
