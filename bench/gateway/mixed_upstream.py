#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# bench/gateway/mixed_upstream.py: the server behind the gateway that looks at what it gets: bodies, upgrades, paths.
#
# In:   nothing. Out: its port on stdout, then answers until it is ended:
#         POST /digest       SHA-256 of the body and its length, in one line
#         GET /drip?n=N      N pieces of ten bytes, one every 100 ms (in chunks when N is odd)
#         GET /big           BIG_BYTES bytes
#         Upgrade on /echo   101, then every byte comes back
#         anything else      the path
# Invariant: it never closes a connection first, and never answers before it has the whole request.

import asyncio
import hashlib
import re

BIG_BYTES = 4 << 20
PIECE = b"123456789\n"
PIECE_EVERY_S = 0.1
BIG = bytes(i % 251 for i in range(BIG_BYTES))


async def body_of(reader, fields):
    """Its pieces, whichever way it is framed."""
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        while True:
            count = int((await reader.readline()).partition(b";")[0], 16)
            if count == 0:
                while (await reader.readline()).strip():
                    pass
                return
            yield await reader.readexactly(count)
            await reader.readexactly(2)
    left = int(fields.get(b"content-length", b"0"))
    while left:
        piece = await reader.read(min(left, 65536))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
        yield piece


def head(*fields):
    return b"HTTP/1.1 200 OK\r\n" + b"".join(field + b"\r\n" for field in fields) + b"\r\n"


async def drip(writer, count):
    chunked = count % 2
    writer.write(head(b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % (count * len(PIECE))))
    for _ in range(count):
        writer.write(b"a\r\n" + PIECE + b"\r\n" if chunked else PIECE)
        await writer.drain()
        await asyncio.sleep(PIECE_EVERY_S)
    if chunked:
        writer.write(b"0\r\n\r\n")


async def echo(reader, writer):
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n")
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


async def answer(reader, writer, path, fields):
    """False: the connection is over."""
    digest, count = hashlib.sha256(), 0
    async for piece in body_of(reader, fields):
        digest.update(piece)
        count += len(piece)
    if fields.get(b"upgrade"):
        await echo(reader, writer)
        return False
    pieces = re.search(rb"/drip\?n=(\d+)$", path)
    if pieces:
        await drip(writer, int(pieces.group(1)))
    elif path.endswith(b"/big"):
        writer.write(head(b"Content-Length: %d" % BIG_BYTES) + BIG)
    else:
        text = b"%s %d\n" % (digest.hexdigest().encode(), count) if path.endswith(b"/digest") else path
        writer.write(head(b"Content-Length: %d" % len(text)) + text)
    await writer.drain()
    return True


async def serve(reader, writer):
    try:
        while line := await reader.readline():
            fields = {}
            while field := (await reader.readline()).strip():
                name, _, value = field.partition(b":")
                fields[name.lower()] = value.strip()
            if not await answer(reader, writer, line.split(b" ")[1], fields):
                break
    except (OSError, asyncio.IncompleteReadError, ValueError):
        pass  # the gateway took its request back: its client went away
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
