# SPDX-License-Identifier: MIT
#
# bench/gateway/peers.py: the proxies that are measured, each started on a port of its own, pinned, and ended.
#
# In:   templates of bench/gateway/peers; programs found in PATH; a built crownyc and the tools beside it.
# Out:  Peer objects: name, version, port, PIDs of what does the work; or why one is missing.
# Invariant: only processes started here are signalled, by their PID, and each of them ends with this one (Linux).
# Not here:  what is measured (run).

import contextlib
import ctypes
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
READY_S = 30
END_S = 5
PR_SET_PDEATHSIG = 1
HOST = "bench.local"


class Fault(Exception):
    """Something that a person must hear of: a program that does not start, a port that does not answer."""


def descriptors():
    """Raises the soft limit of descriptors; children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port():
    """Free now, and below the range that outgoing connections take theirs from: thousands of those will be opened."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def children_of(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(") ")[2].split()
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return sorted(found)


def ends_with_us(cpu=None):
    """For preexec_fn: the child ends when this process does, and stays on one CPU."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare():
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if cpu is not None and hasattr(os, "sched_setaffinity"):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, {cpu})
    return prepare


def start(command, cpu, log, env=None, cwd=None, stdout=None):
    """A child on one CPU that ends when this process does."""
    with open(log, "ab") as err:
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stdout or err,
                                stderr=err, env=env, cwd=cwd, preexec_fn=ends_with_us(cpu), start_new_session=True)


def end(process, workers=()):
    """SIGTERM, and SIGKILL to what has not gone by then: the process, and workers that it left."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout:
        process.stdout.close()
    for pid in workers:
        with contextlib.suppress(OSError):
            if os.getsid(pid) == process.pid:  # still one of ours: the session is the child's own
                os.kill(pid, signal.SIGKILL)


def make_certificate(folder):
    """(PEM, key) for HOST, signed by itself."""
    if not shutil.which("openssl"):
        raise Fault("openssl is not there: apt-get install openssl")
    pem, key = folder / "bench.pem", folder / "bench.key"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                           "-keyout", key, "-out", pem, "-days", "2", "-subj", f"/CN={HOST}", "-addext",
                           f"subjectAltName=DNS:{HOST}"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Fault(f"openssl made no certificate: {done.stderr[-300:]}")
    (folder / "bench.both").write_text(key.read_text() + pem.read_text(), encoding="utf-8")
    for path in (pem, key, folder / "bench.both"):
        path.chmod(0o644)  # a key of this run's folder; workers that gave up root read it
    return pem, key


def connect(port, host, secure, alpn):
    connection = socket.create_connection(("127.0.0.1", port), timeout=2)
    if not secure:
        return connection
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


def answers(port, host, secure=False):
    """The status of one GET; None when nobody answers."""
    with contextlib.suppress(OSError), connect(port, host, secure, "http/1.1") as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            match = re.match(rb"HTTP/1\.[01] (\d+) ", answer.readline())
            return int(match.group(1)) if match else None
    return None


def answers_http2(port, host, secure=False):
    """The same over HTTP/2: the status of stream 1, packed (RFC 7541: 0x88 is `:status: 200`)."""
    def literal(index, value):
        return bytes([index, len(value)]) + value.encode()

    head = b"\x82\x84" + (b"\x87" if secure else b"\x86") + literal(0x01, host)  # GET, /, scheme, :authority
    with contextlib.suppress(OSError), connect(port, host, secure, "h2") as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
                           + bytes((0, 0, len(head), 1, 5, 0, 0, 0, 1)) + head)
        with connection.makefile("rb") as answer:
            while len(header := answer.read(9)) == 9:
                payload = answer.read(int.from_bytes(header[:3], "big"))
                if header[3] == 1:  # HEADERS
                    block = payload[5:] if header[4] & 0x20 else payload
                    while block and block[0] & 0xe0 == 0x20:  # a change of the table's size
                        block = block[1:]
                    return 200 if block[:1] == b"\x88" else 0
    return None


class Setting:
    """What every peer is told: where the upstream is, which hosts there are, how large answers are, and so on."""

    def __init__(self, folder, upstream_port, hosts, body_bytes, certificate, crownyc, gateway, tools, cpu,
                 connections, http2=False):
        self.http2 = http2  # that and nothing else is asked for, over TLS or with prior knowledge
        self.body_bytes, self.certificate = body_bytes, certificate  # (PEM, key), or None: plain
        self.folder, self.upstream_port, self.hosts = pathlib.Path(folder), upstream_port, hosts
        self.crownyc, self.gateway, self.tools, self.cpu, self.connections = crownyc, gateway, tools, cpu, connections


class Peer:
    name = title = package = None
    program = None  # looked for in PATH
    version_arguments = ()
    version_pattern = r"(\d\S*)"
    many_hosts = True  # its configuration can hold thousands
    is_relay = False  # looks at nothing, and one upstream connection for each client
    in_all = True

    @classmethod
    def missing(cls):
        """None, or how to get it."""
        if shutil.which(cls.program):
            return None
        return f"{cls.title} is not there: apt-get install {cls.package}"

    @classmethod
    def version(cls):
        told = subprocess.run([cls.program, *cls.version_arguments], capture_output=True, text=True, check=False)
        match = re.search(cls.version_pattern, told.stdout + told.stderr)
        return f"{cls.title} {match.group(1)}" if match else cls.title

    def __init__(self, setting):
        self.setting, self.port = setting, free_port()
        self.folder = setting.folder / f"{self.name}-{self.port}"
        self.folder.mkdir()
        self.log = self.folder / f"{self.name}.out"
        self.process, self.workers = None, []

    def fill(self, template, **words):
        text = (FOLDER / "peers" / template).read_text(encoding="utf-8")
        setting = self.setting
        words = dict({"TLS": "", "SECURE": ""}, DIR=self.folder, PORT=self.port, UPSTREAM=setting.upstream_port,
                     CONNECTIONS=setting.connections, SOCKETS=2 * setting.connections, DESCRIPTORS=descriptors(),
                     **words)
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        path = self.folder / template
        path.write_text(text, encoding="utf-8")
        return path

    def launch(self, command, **more):
        self.process = start(command, self.setting.cpu, self.log, **more)

    def start(self):
        self.configure()
        deadline = time.monotonic() + READY_S
        status = None
        while time.monotonic() < deadline and self.process.poll() is None:
            ask = answers_http2 if self.setting.http2 else answers
            status = ask(self.port, self.setting.hosts[-1], self.setting.certificate is not None)
            if status == 200:
                break
            time.sleep(0.02)
        if status != 200:
            said = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
            self.end()
            raise Fault(f"{self.title} does not answer 200 on port {self.port} (status {status}):\n{said}")
        self.workers = self.find_workers()
        return self

    def find_workers(self):
        return [self.process.pid]

    def end(self):
        if self.process:
            end(self.process, self.workers)
            self.process = None


class Crownyc(Peer):
    name, title, program = "crownyc", "crownyc", None

    @classmethod
    def missing(cls):
        return None

    @classmethod
    def version(cls):
        return "crownyc"  # run knows the binary

    def configure(self):
        """The shipped example of 300 services, and the hosts that are asked for."""
        yaml = (ROOT / "programs/gateway/gateway.yaml").read_text(encoding="utf-8")
        block = "- name: {0}\n  domain: {0}\n  upstream: http://127.0.0.1:{1}\n"
        if len(self.setting.hosts) > 1:  # exactly as many routes as the others have
            yaml = ""
        yaml += "".join(block.format(host, self.setting.upstream_port) for host in self.setting.hosts)
        port = self.port
        if self.setting.certificate:
            port = free_port()  # of plain HTTP, which nobody asks
            pem, key = self.setting.certificate
            yaml = yaml if "services:" in yaml else "services:\n" + yaml
            yaml = (f'listen:\n- https: "127.0.0.1:{self.port}"\ntls:\n  min_version: "1.3"\n  certificates:\n'
                    f"  - {{cert: {pem}, key: {key}}}\n" + yaml)
        path = self.folder / "gateway.yaml"
        path.write_text(yaml, encoding="utf-8")
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GW_", "CROWNY_"))}
        env.update(GW_PORT=str(port), GW_BIND="127.0.0.1", GW_YAML=str(path), GW_WORKERS="1", GW_WID="bench")
        self.launch([self.setting.crownyc, "run", self.setting.gateway], env=env)

    def find_workers(self):
        return children_of(self.process.pid)


class Relay(Peer):
    name, title, many_hosts, is_relay = "relay", "relay (the floor)", False, True

    @classmethod
    def missing(cls):
        return None

    @classmethod
    def version(cls):
        return f"{cls.name}: bench/gateway/{cls.name}.c"

    def configure(self):
        self.launch([self.setting.tools / self.name, self.setting.upstream_port, self.port])


class RelayUring(Relay):
    """What io_uring could save: measured where it is asked for."""
    name, title, in_all = "relay_uring", "relay over io_uring", False


class Nginx(Peer):
    name, title, program, package = "nginx", "nginx", "nginx", "nginx-light"
    version_arguments, version_pattern = ("-v",), r"nginx/(\S+)"

    def configure(self):
        secure = " ssl" if self.setting.certificate else ""
        secure += " http2" if self.setting.http2 else ""
        tls = ""
        if self.setting.certificate:
            pem, key = self.setting.certificate
            tls = f"ssl_certificate {pem}; ssl_certificate_key {key}; ssl_protocols TLSv1.3;"
        server = "server {{ listen 127.0.0.1:{}{}; server_name {}; location / {{ proxy_pass http://bench; }} }}"
        servers = "\n    ".join(server.format(self.port, secure, host) for host in self.setting.hosts)
        path = self.fill("nginx.conf", SERVERS=servers, TLS=tls, SECURE=secure)
        self.launch([self.program, "-p", self.folder, "-e", self.folder / "nginx.log", "-c", path])

    def find_workers(self):
        return children_of(self.process.pid)


class Haproxy(Peer):
    name, title, program, package = "haproxy", "HAProxy", "haproxy", "haproxy"
    version_arguments, version_pattern = ("-v",), r"version (\S+)"

    def configure(self):
        (self.folder / "haproxy.map").write_text("".join(f"{host} bench\n" for host in self.setting.hosts),
                                                 encoding="utf-8")
        # Larger buffers halve the cost of 1 MiB and cost a third more for small answers: each row gets its better one.
        buffers = 65536 if self.setting.body_bytes > 65536 else 16384
        secure = ""
        if self.setting.certificate:
            secure = f" ssl crt {self.setting.certificate[0].with_suffix('.both')} ssl-min-ver TLSv1.3"
        if self.setting.http2:
            secure += " alpn h2" if self.setting.certificate else " proto h2"
        self.launch([self.program, "-db", "-f", self.fill("haproxy.cfg", BUFFER=buffers, SECURE=secure)])


class H2o(Peer):
    name, title, program, package = "h2o", "H2O", "h2o", "h2o"
    version_arguments, version_pattern = ("--version",), r"version (\S+)"

    def configure(self):
        host = '  "{0}":\n    paths:\n      "/":\n        proxy.reverse.url: "http://127.0.0.1:{1}/"'
        hosts = "\n".join(host.format(name, self.setting.upstream_port) for name in self.setting.hosts)
        tls = ""
        if self.setting.certificate:
            pem, key = self.setting.certificate
            tls = f"  ssl:\n    certificate-file: {pem}\n    key-file: {key}\n    minimum-version: TLSv1.3"
        self.launch([self.program, "-m", "worker", "-c", self.fill("h2o.conf", HOSTS=hosts, TLS=tls)])


class Caddy(Peer):
    name, title, program, package = "caddy", "Caddy", "caddy", "caddy"
    version_arguments, many_hosts = ("version",), False

    def configure(self):
        site = "{3}://{0}:{1} {{\n\tbind 127.0.0.1\n{4}\treverse_proxy 127.0.0.1:{2}\n}}\n"
        secure, tls = "http", ""
        if self.setting.certificate:
            secure, tls = "https", "\ttls {} {} {{\n\t\tprotocols tls1.3\n\t}}\n".format(*self.setting.certificate)
        protocols = "h1"
        if self.setting.http2:
            protocols = "h1 h2" if self.setting.certificate else "h1 h2c"
        sites = "".join(site.format(host, self.port, self.setting.upstream_port, secure, tls)
                        for host in self.setting.hosts)
        env = dict(os.environ, GOMAXPROCS="1", HOME=str(self.folder), XDG_DATA_HOME=str(self.folder),
                   XDG_CONFIG_HOME=str(self.folder))
        config = self.fill("Caddyfile", SITES=sites, PROTOCOLS=protocols)
        self.launch([self.program, "run", "--adapter", "caddyfile", "--config", config], env=env)


PEERS = [Nginx, Haproxy, H2o, Caddy, Crownyc, Relay, RelayUring]


class Upstream:
    """bench/gateway/upstream.c beside the load generator. `port` stays the same for a whole run."""

    def __init__(self, tools, cpu, folder):
        self.process = start([tools / "upstream"], cpu, pathlib.Path(folder) / "upstream.out", stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line.strip().isdigit():
            self.end()
            raise Fault("the upstream does not start: see upstream.out")
        self.port = int(line)
        self.workers = [self.process.pid]

    def end(self):
        end(self.process)


class Spinner:
    """bench/gateway/spinner.c on the proxies' CPU, above our own priority."""

    def __init__(self, tools, cpu, folder, share_percent):
        priority = 10 + (os.sched_getparam(0).sched_priority if hasattr(os, "sched_getparam") else 0)
        log = pathlib.Path(folder) / "spinner.err"
        self.process = start([tools / "spinner", share_percent, priority], cpu, log, stdout=subprocess.PIPE)
        if self.process.stdout.readline().strip() != b"ready":
            self.end()
            said = log.read_text(encoding="utf-8", errors="replace").strip()
            raise Fault(f"--share: the spinner does not start (it needs root, or CAP_SYS_NICE): {said}")

    def cpu_s(self):
        """CPU time that it has taken so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        end(self.process)
