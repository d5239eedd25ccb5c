# SPDX-License-Identifier: MIT
#
# tests/differential/peers.py: the same corpus through nginx, HAProxy, Apache, lighttpd and Varnish, each as its
# package has it, with the least configuration that proxies everything.
#
# In:   what is in PATH (and PEERS_ROOT: a folder where packages were unpacked, not installed). Out: for each peer how
#       often it forwarded what a strict reader refuses or frames otherwise, and which cases; what ours did beside it.
# Not here: judging peers. Many of these cases harm nobody; they show what a server behind must expect.

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import run_test

ROOT = os.environ.get("PEERS_ROOT", "")
MODULES = "/usr/lib/apache2/modules"

NGINX = """daemon off; master_process off; pid {dir}/pid; error_log {dir}/log;
events {{}}
http {{ access_log off; client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c;
uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
upstream up {{ server 127.0.0.1:{up}; keepalive 4; }}
server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://up; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_request_buffering off; }} }} }}
"""
HAPROXY = """defaults
 mode http
 timeout connect 2s
 timeout client 5s
 timeout server 5s
frontend f
 bind 127.0.0.1:{port}
 default_backend b
backend b
 server s 127.0.0.1:{up}
"""
APACHE = """ServerRoot {dir}
ServerName a
PidFile {dir}/pid
ErrorLog {dir}/log
Listen 127.0.0.1:{port}
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule proxy_module {modules}/mod_proxy.so
LoadModule proxy_http_module {modules}/mod_proxy_http.so
DefaultRuntimeDir {dir}
ProxyPass / http://127.0.0.1:{up}/
"""
LIGHTTPD = """server.port = {port}
server.bind = "127.0.0.1"
server.document-root = "{dir}"
server.errorlog = "{dir}/log"
server.stream-request-body = 2
server.modules = ("mod_proxy")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {up})))
"""
VARNISH = """vcl 4.1;
backend b {{ .host = "127.0.0.1"; .port = "{up}"; }}
sub vcl_recv {{ return (pass); }}
"""
PEERS = {
    "nginx": ("nginx", NGINX, ["{bin}", "-p", "{dir}", "-c", "{conf}"], ["-v"]),
    "haproxy": ("haproxy", HAPROXY, ["{bin}", "-db", "-f", "{conf}"], ["-v"]),
    "apache": ("apache2", APACHE, ["{bin}", "-X", "-f", "{conf}"], ["-v"]),
    "lighttpd": ("lighttpd", LIGHTTPD, ["{bin}", "-D", "-m", "{modules}", "-f", "{conf}"], ["-v"]),
    "varnish": ("varnishd", VARNISH,
                ["{bin}", "-F", "-j", "none", "-a", "127.0.0.1:{port}", "-f", "{conf}", "-n", "{dir}/n"], ["-V"]),
}


def find(program):
    paths = [f"{ROOT}/usr/sbin", f"{ROOT}/usr/bin"] if ROOT else []
    return shutil.which(program, path=os.pathsep.join(paths + [os.environ.get("PATH", ""), "/usr/sbin"]))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def start(name, upstream, folder):
    program, text, command, _ = PEERS[name]
    where = pathlib.Path(folder, name)
    where.mkdir()
    where.chmod(0o777)
    port, configuration = free_port(), where / "conf"
    root = ROOT if ROOT and os.path.exists(ROOT + "/usr/sbin/" + program) else ""
    modules = root + (MODULES if name == "apache" else "/usr/lib/lighttpd")
    words = {"dir": where, "conf": configuration, "port": port, "up": upstream.port, "bin": find(program),
             "modules": modules}
    configuration.write_text(text.format(**words))
    process = subprocess.Popen([part.format(**words) for part in command], stdout=open(where / "out", "wb"),
                               stderr=subprocess.STDOUT)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return process, port
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    process.terminate()
    print(f"{name} did not start: " + (where / "out").read_text()[-300:])
    return None, port


def compare(names):
    unknown = [name for name in names if name not in PEERS]
    if unknown:
        raise SystemExit(f"run_test.py: no peer {unknown[0]}; there are {', '.join(PEERS)}")
    results = {"ours": run_test.run_ours(half_close=False)}
    with tempfile.TemporaryDirectory(prefix="crownyc-peers-") as folder:
        os.chmod(folder, 0o755)
        for name in names or PEERS:
            if not find(PEERS[name][0]):
                print(f"{name}: not here")
                continue
            upstream = run_test.Upstream()
            process, port = start(name, upstream, folder)
            if not process:
                continue
            try:
                results[name] = run_test.run(port, upstream, False)
            finally:
                process.terminate()
                process.wait()
    print(f"\n{len(run_test.CASES)} cases; forwarded although a strict reader refuses it, or frames it otherwise:\n")
    for name, found in results.items():
        print(f"  {name:10} {sum(offence is not None for _, offence in found.values()):4}")
    for case in run_test.CASES:
        offenders = {name: found[case] for name, found in results.items() if found[case][1]}
        if offenders:
            print(f"\n{case}: ours {results['ours'][case][0]}")
            for name, (verdict, offence) in offenders.items():
                print(f"  {name:10} {verdict}\n             {offence}")
    return 1 if any(offence for _, offence in results["ours"].values()) else 0
