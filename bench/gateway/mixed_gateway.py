# SPDX-License-Identifier: MIT
#
# bench/gateway/mixed_gateway.py: the gateway under mixed load, the one behind it, and what the kernel knows of both.
#
# In:   options and a folder of bench/gateway/mixed, ports of upstreams. Out: a Gateway that runs, whose configuration
#       is written anew with each reload; its workers, connections, descriptors, memory and metrics.
# Invariant: only processes started here are signalled; connections are told apart by inode, never by when they were.
# Not here:  when it is reloaded and whom a kill meets (mixed), what is asked of it (mixed_clients.py).

import asyncio
import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import time

import peers
from certificates import Authority

WORKERS = 2
WITHIN_S = 120  # for a reload, a new worker, a pause: much more than it takes on a machine that is not busy
BANNER = re.compile(r"^포트 (\d+) ")


# -- what the kernel knows ------------------------------------------------------------------------------------------

TcpRow = collections.namedtuple("TcpRow", "local remote state inode")
LISTEN, ESTABLISHED = 0x0a, 0x01


def tcp_rows():
    rows = []
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        local, remote = (int(words[i].rpartition(":")[2], 16) for i in (1, 2))
        rows.append(TcpRow(local, remote, int(words[3], 16), words[9]))
    return rows


def descriptors_of(pid):
    """Where each descriptor leads; {} when the process has ended."""
    found = {}
    with contextlib.suppress(OSError):
        for one in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found[int(one.name)] = os.readlink(one)
    return found


def inodes_of(pid):
    return {target[8:-1] for target in descriptors_of(pid).values() if target.startswith("socket:[")}


def kinds_of(pid):
    """Descriptors by kind: socket, pipe, anon_inode:[eventpoll], a path."""
    return collections.Counter(target.split(":[")[0] if target.startswith(("socket:", "pipe:")) else target
                               for target in descriptors_of(pid).values())


def anonymous_kib(pid):
    with contextlib.suppress(OSError):
        match = re.search(r"^RssAnon:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
        return int(match.group(1)) if match else None
    return None


def is_stopped(pid):
    """Every thread of it."""
    with contextlib.suppress(OSError):
        states = [one.read_text().rpartition(") ")[2].split()[0]
                  for one in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]
        return bool(states) and all(state in "TtZX" for state in states)
    return True


async def until(condition, what, within=WITHIN_S):
    """What `condition` gives once it is true; Fault when it never is."""
    end = time.monotonic() + within
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise peers.Fault(f"never came true: {what}")
        await asyncio.sleep(0.02)


# -- the gateway ----------------------------------------------------------------------------------------------------

YAML = """\
listen:
- http: "127.0.0.1:{port}"
- https: "127.0.0.1:{secure_port}"
admin:
  listen: 127.0.0.1:{admin_port}
log:
  access: {folder}/access-{odd}.log
  format: common
tls:
  certificates:
  - {{cert: {folder}/mixed{odd}.pem, key: {folder}/mixed{odd}.key}}
defaults:
  timeouts: {{connect: 100s, first_byte: 100s, idle: {idle}s, keepalive: {keep}s, tunnel: 1h}}
  limits: {{header: {header}KiB, min_rate: 0B/s}}
services:
- name: bench
  domain: bench.local
  upstream: http://127.0.0.1:{upstream}
- name: mixed
  domain: mixed.test
  upstream: http://127.0.0.1:{checked}
  pathRoutes:
  - path: /generation
    upstream: http://127.0.0.1:{checked}/number/{number}
- name: behind
  domain: behind.test
  upstream: h2c://127.0.0.1:{behind}
"""
# The gateway behind, which speaks HTTP/2 with the one that is looked at. Nobody reloads or kills it.
BEHIND = """\
listen:
- http: "127.0.0.1:{port}"
defaults:
  timeouts: {{first_byte: 100s, idle: 100s}}
  limits: {{min_rate: 0B/s}}
services:
- name: small
  domain: behind.test
  upstream: http://127.0.0.1:{upstream}
  pathRoutes:
  - path: /digest
    upstream: http://127.0.0.1:{checked}
"""


class Gateway:
    def __init__(self, options, folder, upstreams, checked):
        self.options, self.folder, self.upstreams, self.checked = options, folder, upstreams, checked
        self.number = 0  # of the newest configuration file
        self.port, self.secure_port, self.admin_port = peers.free_port(), peers.free_port(), peers.free_port()
        authority = Authority(folder)
        for name in ("mixed0", "mixed1"):
            authority.make(name, "DNS:mixed.test,DNS:bench.local")
        self.trust = authority.path
        self.yaml, self.log = folder / "gateway.yaml", folder / "gateway.log"
        self.behind_port = peers.free_port()
        self.process = self.behind = self.survivor = None

    def launch(self, yaml, log, workers):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GW_", "CROWNY_"))}
        env.update(GW_YAML=str(yaml), GW_WORKERS=str(workers), GW_WID=yaml.stem, LANG="C.UTF-8")
        if "CROWNYC_IO" in os.environ:
            env["CROWNY_IO"] = os.environ["CROWNYC_IO"]
        command = [self.options.crownyc, "run", "--allow", f"write={self.folder}", self.options.gateway]
        with open(log, "wb") as out:
            return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                    env=env, cwd=self.folder, preexec_fn=peers.ends_with_us(), start_new_session=True)

    async def start_behind(self):
        yaml, log = self.folder / "behind.yaml", self.folder / "behind.log"
        yaml.write_text(BEHIND.format(port=self.behind_port, upstream=self.upstreams[0], checked=self.checked))
        self.behind = self.launch(yaml, log, 1)
        await until(lambda: BANNER.search(log.read_text()) or self.behind.poll() is not None, "the banner behind")

    def write(self):
        """The next configuration: another upstream, certificate, log, times, number of services."""
        self.number += 1
        number, odd = self.number, self.number % 2
        text = YAML.format(port=self.port, secure_port=self.secure_port, admin_port=self.admin_port,
                           folder=self.folder, odd=odd, idle=100 + number % 7, keep=1 + odd, header=(64, 32)[odd],
                           upstream=self.upstreams[odd], checked=self.checked, behind=self.behind_port,
                           number=number)
        for i in range(20 + number % 5 * 40):
            text += f"- {{name: s{i}, domain: s{i}-{number % 3}.test, upstream: 'http://127.0.0.1:{self.checked}'}}\n"
        fresh = self.yaml.with_suffix(".new")
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(self.yaml)  # nobody reads half a file

    async def start(self):
        await self.start_behind()
        self.write()
        self.process = self.launch(self.yaml, self.log, WORKERS)
        await until(lambda: BANNER.search(self.said()) or self.process.poll() is not None, "the banner")
        if self.process.poll() is not None:
            raise peers.Fault(f"the gateway ended with {self.process.returncode}:\n{self.said()[-2000:]}")
        workers = await until(lambda: len(self.workers()) == WORKERS and self.workers(), "the workers")
        self.survivor = workers[0]

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def is_worker(self, pid):
        """A child that listens; a checker does not."""
        inodes = inodes_of(pid)
        return any(row.state == LISTEN and row.local == self.secure_port and row.inode in inodes for row in tcp_rows())

    def workers(self):
        return [pid for pid in peers.children_of(self.process.pid) if self.is_worker(pid)]

    def victim(self):
        return next((pid for pid in self.workers() if pid != self.survivor), None)

    def connections_of(self, pid):
        """{(port of ours, port of the client)} that the process has accepted and not closed."""
        inodes = inodes_of(pid)
        return {(row.local, row.remote) for row in tcp_rows()
                if row.inode in inodes and row.state != LISTEN and row.local in (self.port, self.secure_port)}

    async def metrics(self):
        async with asyncio.timeout(WITHIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", self.admin_port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n")
            text = (await reader.read()).decode()
            writer.close()
        return {name: int(value) for name, value in re.findall(r"^crownyc_(\w+) (\d+)$", text, re.M)}

    def end(self):
        for process in (self.process, self.behind):
            if process and process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Kill:
    """A worker that was killed: when it was stopped, and which connections it had then."""

    def __init__(self, pid, stopped_ns, owned):
        self.pid, self.stopped_ns, self.owned = pid, stopped_ns, owned
        self.explained = set()  # what has failed on them
