# SPDX-License-Identifier: MIT
#
# bench/gateway/mixed_clients.py: the clients of `mixed` that crownyc load is not: uploads that are checked, long
# answers, tunnels, HTTP/2 connections that last, clients that go away in the middle.
#
# In:   a World: where the gateway is, and until when. Out: a Ledger: requests that went well, and one Failure for each
#       that did not, with the connection it was on.
# Invariant: a request is counted once, as good or as failed. A client that is told to stop finishes what it has begun;
#       one whose connection ended opens another. What a client that went away would have got is nobody's failure, but
#       its connection must be accepted.
# Not here: whose fault a failure is (mixed).

import asyncio
import collections
import contextlib
import hashlib
import random
import socket
import ssl
import struct
import time

PATIENCE_S = 120  # of one step; a machine may be busy with other things for long
RESET = struct.pack("ii", 1, 0)
Failure = collections.namedtuple("Failure", "kind server_port port began_ns failed_ns word detail")


class Ledger:
    def __init__(self):
        self.good, self.notes, self.failures = collections.Counter(), collections.Counter(), []

    def fail(self, kind, wire, word, detail=""):
        self.failures.append(Failure(kind, wire.server_port, wire.port, wire.began_ns, time.monotonic_ns(), word,
                                     str(detail)[:120]))


class World:
    """Where the gateway is, what is asked of it, and whether it goes on. One for each phase of a run."""

    def __init__(self, ledger, port, secure_port, trust, seed, drip_pieces):
        self.ledger, self.port, self.secure_port = ledger, port, secure_port
        self.trust = trust  # the authority's PEM
        self.drip_pieces = drip_pieces
        self.random = random.Random(seed)
        self.stopping = asyncio.Event()
        self.contexts = {}

    async def pause(self, seconds):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.stopping.wait(), seconds * self.random.uniform(0.5, 1.5))

    def context(self, alpn):
        if alpn not in self.contexts:
            self.contexts[alpn] = ssl.create_default_context(cafile=self.trust)
            self.contexts[alpn].set_alpn_protocols([alpn])
        return self.contexts[alpn]


class Broken(Exception):
    """A request went wrong: word and detail."""


class Wire:
    """One connection. `began_ns` lies before the connecting, so whoever owned it later was alive then."""

    @property
    def wire(self):
        return self

    def __init__(self, world, secure=False, alpn="http/1.1"):
        self.world, self.secure, self.alpn = world, secure, alpn
        self.server_port = world.secure_port if secure else world.port
        self.port = self.began_ns = 0
        self.reader = self.writer = None

    async def open(self, host):
        self.began_ns = time.monotonic_ns()
        plain = socket.socket()
        plain.setblocking(False)
        try:
            async with asyncio.timeout(PATIENCE_S):
                try:
                    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", self.server_port))
                finally:
                    self.port = plain.getsockname()[1]
                more = {"ssl": self.world.context(self.alpn), "server_hostname": host,
                        "ssl_handshake_timeout": PATIENCE_S} if self.secure else {}
                self.reader, self.writer = await asyncio.open_connection(sock=plain, limit=1 << 20, **more)
        except (OSError, asyncio.TimeoutError) as fault:
            plain.close()
            word = "timeout" if isinstance(fault, TimeoutError) else "handshake" if self.secure else "connect"
            raise Broken(word, repr(fault)) from None
        return self

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    def is_over(self):
        return self.reader is None or self.reader.at_eof() or self.writer.is_closing()

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    def reset(self):
        if self.writer:
            plain = self.writer.get_extra_info("socket")
            with contextlib.suppress(OSError, AttributeError):  # None: it is closed already
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.writer.transport.abort()
        self.reader = self.writer = None


@contextlib.asynccontextmanager
async def one_request(world, kind, seat):
    """What happens inside is one request on `seat.wire`; its end is counted."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
        world.ledger.good[kind] += 1
    except Broken as fault:
        world.ledger.fail(kind, seat.wire, *fault.args)
        seat.reset()
    except asyncio.TimeoutError:
        world.ledger.fail(kind, seat.wire, "timeout")
        seat.reset()
    except asyncio.IncompleteReadError as fault:
        world.ledger.fail(kind, seat.wire, "closed", f"behind {fault.partial[-60:]!r}")
        seat.reset()
    except (OSError, asyncio.LimitOverrunError) as fault:
        world.ledger.fail(kind, seat.wire, "reset", repr(fault))
        seat.reset()


async def kept(world, kind, wire, host):
    """The same connection as long as it lives. One that ended between two requests is told, since nothing in a run is
    idle for as long as the gateway keeps idle clients."""
    if wire.is_over():
        if wire.writer:
            world.ledger.fail(kind, wire, "closed", "between two requests")
            wire.reset()
        await wire.open(host)


# -- HTTP/1.1 -------------------------------------------------------------------------------------------------------

async def read_head(wire):
    lines = (await wire.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
    status = int(lines[0].split(b" ")[1])
    fields = dict(line.lower().split(b": ", 1) for line in lines[1:] if line)
    return status, fields


async def read_answer(wire, wanted_status=200):
    status, fields = await read_head(wire)
    body = b""
    if fields.get(b"transfer-encoding") == b"chunked":
        while count := int(await wire.reader.readuntil(b"\r\n"), 16):
            body += await wire.reader.readexactly(count)
            await wire.reader.readexactly(2)
        await wire.reader.readexactly(2)
    else:
        body = await wire.reader.readexactly(int(fields.get(b"content-length", b"0")))
    if status != wanted_status:
        raise Broken("status", f"{status} {body[:80]!r}")
    if fields.get(b"connection") == b"close":
        wire.close()
    return body


def ask(host, path, *fields, method="GET"):
    return (f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n" + "".join(f + "\r\n" for f in fields) + "\r\n").encode()


async def upload(world, wire, host, slow):
    """A body with a known digest, with a length or in chunks; `slow`: over more than one reload."""
    pick = world.random
    body = pick.randbytes(pick.choice((0, 1, 1000, 20000, 70000, 300000)))
    pieces, at = [], 0
    while at < len(body):
        count = pick.choice((1, 500, 16384, 65536)) if len(body) < 30000 else pick.choice((16384, 65536))
        pieces.append(body[at:at + count])
        at += count
    chunked = pick.random() < 0.5
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    await wire.send(ask(host, "/digest", framing, method="POST"))
    for piece in pieces[:400]:
        await wire.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if slow:
            await asyncio.sleep(world.drip_pieces / 10 / min(len(pieces), 400))
    for piece in pieces[400:]:
        await wire.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
    if chunked:
        await wire.send(b"0\r\n\r\n")
    answer = await read_answer(wire)
    if answer != b"%s %d\n" % (hashlib.sha256(body).hexdigest().encode(), len(body)):
        raise Broken("content", f"{len(body)} bytes, chunked {chunked}: {answer[:90]!r}")


async def uploads(world, kind, every_s, host="mixed.test", secure=False, slow=False):
    wire = Wire(world, secure)
    while not world.stopping.is_set():
        async with one_request(world, kind, wire):
            await kept(world, kind, wire, host)
            await upload(world, wire, host, slow)
        await world.pause(every_s)
    wire.close()


async def drips(world, kind, secure=False):
    """Answers that take longer than a generation lasts."""
    wire = Wire(world, secure)
    while not world.stopping.is_set():
        count = world.drip_pieces + world.random.randrange(2)
        async with one_request(world, kind, wire):
            await kept(world, kind, wire, "mixed.test")
            await wire.send(ask("mixed.test", f"/drip?n={count}"))
            body = await read_answer(wire)
            if body != b"123456789\n" * count:
                raise Broken("content", f"{len(body)} bytes of {count * 10}")
    wire.close()


async def tunnels(world, kind, every_s, secure=False):
    """One connection for the whole phase; each message and its echo is a request."""
    wire = Wire(world, secure)
    while not world.stopping.is_set():
        async with one_request(world, kind, wire):
            if wire.is_over():
                await kept(world, kind, wire, "mixed.test")
                await wire.send(ask("mixed.test", "/echo", "Connection: Upgrade", "Upgrade: echo"))
                status, _ = await read_head(wire)
                if status != 101:
                    raise Broken("status", status)
            words = world.random.randbytes(world.random.choice((1, 100, 5000)))
            await wire.send(words)
            if await wire.reader.readexactly(len(words)) != words:
                raise Broken("content", f"{len(words)} bytes came back changed")
        await world.pause(every_s)
    wire.close()


# -- clients that go away -------------------------------------------------------------------------------------------

def departures(pick):
    """What is sent, how many bytes of an answer are waited for, TLS or not."""
    big = ask("mixed.test", "/big")
    upload_head = ask("mixed.test", "/digest", "Content-Length: 100000", method="POST")
    chunked_head = ask("mixed.test", "/digest", "Transfer-Encoding: chunked", method="POST")
    upgrade = ask("mixed.test", "/echo", "Connection: Upgrade", "Upgrade: echo")
    secure = pick.random() < 0.4
    return secure, *pick.choice((
        (b"", 0), (b"GET / HT", 0), (big[:-2], 0), (big, 0), (big, 1), (big, 200000), (big + big, 100),
        (upload_head, 0), (upload_head + b"x" * 20000, 0), (upload_head + b"x" * 100000, 0),
        (chunked_head + b"5\r\nabc", 0), (chunked_head + b"zz\r\n", 1), (upgrade, 20), (upgrade + b"words", 70),
        (ask("mixed.test", "/drip?n=50"), 60), (ask("nobody.test", "/"), 10), (b"\x16\x03\x01\x02\x00\x01", 0)))


async def aborts(world, kind, every_s):
    while not world.stopping.is_set():
        secure, data, count = departures(world.random)
        wire = Wire(world, secure)
        async with one_request(world, kind, wire):
            await wire.open("mixed.test")
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):  # its answer is not what this is about
                await wire.send(data)
                if count:
                    await wire.reader.readexactly(count)
            (wire.reset if world.random.random() < 0.5 else wire.close)()
        await world.pause(every_s)


# -- HTTP/2 ---------------------------------------------------------------------------------------------------------

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 1
END_HEADERS = 4
WINDOW_BYTES = 1 << 20
REFUSED_STREAM = 7


def h2_frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def h2_fields(*pairs):
    """Literals that nobody puts into a table (RFC 7541, 6.2.3): no state, so no mistake in it."""
    return b"".join(b"\x10" + bytes((len(name),)) + name + bytes((len(value),)) + value for name, value in pairs)


def h2_is_200(block):
    while block and block[0] & 0xe0 == 0x20:  # the size of the table changes first
        more = block[0] & 0x1f == 0x1f
        block = block[1:]
        while more:
            more, block = block[0] & 0x80, block[1:]
    return block[:1] == b"\x88"


class Again(Exception):
    """The server did not look at this stream (RFC 9113, 8.7): the request may be sent again."""


class H2(Wire):
    """An HTTP/2 client that reads frames in one task and lets others wait for their streams."""

    def __init__(self, world, name):
        super().__init__(world, True, "h2")
        self.name = name  # of the certificate that is asked for; requests for others would be 421
        self.streams, self.next_stream, self.leaving = {}, 1, False
        self.window, self.stream_window = 65535, 65535
        self.moved = asyncio.Condition()
        self.task = None

    async def begin(self):
        await self.open(self.name)
        if self.writer.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            raise Broken("handshake", "no h2 by ALPN")
        settings = struct.pack(">HIHI", 2, 0, 4, WINDOW_BYTES)
        await self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + h2_frame(SETTINGS, 0, 0, settings))
        self.task = asyncio.create_task(self.read_frames())

    async def read_frames(self):
        word, detail = "closed", "the connection ended"
        try:
            while True:
                head = await self.reader.readexactly(9)
                payload = await self.reader.readexactly(int.from_bytes(head[:3], "big"))
                await self.on_frame(head[3], head[4], int.from_bytes(head[5:], "big"), payload)
        except asyncio.IncompleteReadError:
            pass
        except OSError as fault:
            word, detail = "reset", repr(fault)
        self.leaving = True
        for answer in self.streams.values():
            if not answer.done():
                answer.set_exception(Broken(word, detail))
        async with self.moved:
            self.moved.notify_all()

    async def on_frame(self, kind, flags, stream, payload):
        answer = self.streams.get(stream)
        if kind == HEADERS and answer and not h2_is_200(payload):
            answer.set_exception(Broken("status", payload[:40].hex()))
        elif kind == DATA:
            if answer:
                answer.body += payload
            if payload:
                update = struct.pack(">I", len(payload))
                await self.send(h2_frame(WINDOW_UPDATE, 0, 0, update) + h2_frame(WINDOW_UPDATE, 0, stream, update))
        elif kind == RST_STREAM and answer and not answer.done():
            code = int.from_bytes(payload, "big")
            answer.set_exception(Again() if code == REFUSED_STREAM else Broken("stream", f"RST_STREAM {code}"))
        elif kind == SETTINGS and not flags & ACK:
            for i in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[i:i + 6])
                if name == 4:
                    self.stream_window = value
            await self.send(h2_frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            await self.send(h2_frame(PING, ACK, 0, payload))
        elif kind == GOAWAY:
            last, code = struct.unpack(">II", payload[:8])
            self.leaving = True
            self.world.ledger.notes[f"GOAWAY {code}"] += 1
            for number, other in self.streams.items():
                if number > last and not other.done():
                    other.set_exception(Again())
        elif kind == WINDOW_UPDATE and stream == 0:
            async with self.moved:
                self.window += int.from_bytes(payload, "big")
                self.moved.notify_all()
        if kind in (HEADERS, DATA) and flags & END_STREAM and answer and not answer.done():
            answer.set_result(answer.body)

    async def request(self, method, path, body=b""):
        """The body of a 200. `body` fits a stream's window."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        answer = self.streams[stream] = asyncio.get_running_loop().create_future()
        answer.body = b""
        try:
            pairs = [(b":method", method), (b":scheme", b"https"), (b":authority", self.name.encode()),
                     (b":path", path)]
            await self.send(h2_frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), stream, h2_fields(*pairs)))
            while body:
                piece, body = body[:16384], body[16384:]
                async with self.moved:
                    await self.moved.wait_for(lambda: self.window >= len(piece) or self.leaving)
                    self.window -= len(piece)
                await self.send(h2_frame(DATA, 0 if body else END_STREAM, stream, piece))
            return await answer
        finally:
            del self.streams[stream]
            if answer.done() and not answer.cancelled():
                answer.exception()  # looked at: a send may have failed first

    async def end(self):
        self.close()
        if self.task:
            await asyncio.gather(self.task, return_exceptions=True)


async def h2_request(world, wire):
    if wire.name == "mixed.test":
        body = world.random.randbytes(world.random.choice((1, 9000, 40000)))
        if await wire.request(b"POST", b"/digest", body) != b"%s %d\n" % (
                hashlib.sha256(body).hexdigest().encode(), len(body)):
            raise Broken("content", f"the digest of {len(body)} bytes")
    else:
        path, count = world.random.choices(((b"/", 35), (b"/8k", 8192), (b"/1m", 1 << 20)), (10, 5, 1))[0]
        found = len(await wire.request(b"GET", path))
        if found != count:
            raise Broken("content", f"{found} bytes of {count}")


class Seat:
    """Where one of a connection's streams is. What goes wrong on it leaves the others alone."""

    def __init__(self, wire):
        self.wire = wire

    def reset(self):
        self.wire.leaving = True


async def h2_slot(world, kind, shared, every_s):
    """Requests on whichever connection is there; the one that finds none opens it."""
    while not world.stopping.is_set():
        seat = Seat(shared.wire)
        async with one_request(world, kind, seat):
            for _ in range(4):
                await shared.sit(seat)
                try:
                    await h2_request(world, seat.wire)
                    break
                except Again:
                    world.ledger.notes["HTTP/2 requests sent again"] += 1
            else:
                raise Broken("stream", "refused four times")
        await world.pause(every_s)


class H2Shared:
    def __init__(self, world, name):
        self.world, self.name, self.opening, self.wire, self.old = world, name, asyncio.Lock(), H2(world, name), []

    async def sit(self, seat):
        """On a connection that is good for new streams."""
        async with self.opening:
            if self.wire.is_over() or self.wire.leaving:
                self.old.append(self.wire)
                self.wire = H2(self.world, self.name)
                seat.wire = self.wire
                await self.wire.begin()
            seat.wire = self.wire


async def h2_clients(world, kind, name, streams, every_s):
    shared = H2Shared(world, name)
    await asyncio.gather(*(h2_slot(world, kind, shared, every_s) for _ in range(streams)))
    for wire in [*shared.old, shared.wire]:
        await wire.end()


# -- all of them ----------------------------------------------------------------------------------------------------

# Kind, how many, the client, and what it is told beside the world: seconds between two requests where it has some.
ROWS = (("upload", 2, uploads, (0.4,), {}), ("upload slow", 1, uploads, (0.2,), {"slow": True}),
        ("upload h2c", 1, uploads, (0.4,), {"host": "behind.test"}),
        ("upload tls", 1, uploads, (0.5,), {"secure": True}),
        ("drip", 2, drips, (), {}), ("drip tls", 1, drips, (), {"secure": True}),
        ("tunnel", 2, tunnels, (0.2,), {}), ("tunnel tls", 2, tunnels, (0.2,), {"secure": True}),
        ("abort", 2, aborts, (0.2,), {}),
        ("h2 upload", 1, h2_clients, ("mixed.test", 4, 0.4), {}), ("h2", 2, h2_clients, ("bench.local", 6, 0.3), {}))
KINDS = tuple(row[0] for row in ROWS)


def start_clients(world, rate, kinds):
    """Tasks that end when the world stops. `rate` 1 is about eighty requests a second."""
    tasks = []
    for kind, count, client, words, more in ROWS:
        words = [word / rate if isinstance(word, float) else word for word in words]
        if kind in kinds:
            tasks += [asyncio.create_task(client(world, kind, *words, **more)) for _ in range(count)]
    return tasks
