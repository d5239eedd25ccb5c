#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bench/demo.sh: the gateway in front of a small upstream, to try by hand (`make run`).
#
# In:   the build folder (default: build). Out: two servers on free loopback ports, and the curl line that reaches one through
#       the other. Ctrl-C ends both.
# Invariant: everything it writes lies in one temporary folder, and it ends only what it started.
set -eu

build=${1:-build}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/crownyc-demo-XXXXXX")
upstream_pid=
gateway_pid=
finish() {
    trap - EXIT INT TERM
    [ -n "$gateway_pid" ] && kill "$gateway_pid" 2>/dev/null
    [ -n "$upstream_pid" ] && kill "$upstream_pid" 2>/dev/null
    wait 2>/dev/null || true
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

for needed in "$build/crownyc" "$build/gateway.toau"; do
    [ -e "$needed" ] || { echo "demo: $needed is not there: run make" >&2; exit 1; }
done

# The upstream picks its port and writes it down; a FIFO makes us wait for exactly that.
mkdir "$scratch/site"
echo "Hello from the upstream, through crownyc's gateway." > "$scratch/site/index.html"
mkfifo "$scratch/port"
python3 - "$scratch/site" "$scratch/port" > "$scratch/upstream.log" 2>&1 <<'PYTHON' &
import functools, http.server, sys
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
with open(sys.argv[2], "w") as port:
    print(server.server_address[1], file=port)
server.serve_forever()
PYTHON
upstream_pid=$!
read -r upstream_port < "$scratch/port"

# The example configuration, and one more service behind it.
cp "$root/programs/gateway/gateway.yaml" "$scratch/gateway.yaml"
printf -- '- name: demo\n  domain: demo.local\n  upstream: http://127.0.0.1:%s\n' "$upstream_port" >> "$scratch/gateway.yaml"

gateway_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
echo "upstream: http://127.0.0.1:$upstream_port/ (python3 http.server)"
echo "gateway:  http://127.0.0.1:$gateway_port/ ($build/crownyc run $build/gateway.toau)"
echo "try:      curl -H 'Host: demo.local' http://127.0.0.1:$gateway_port/"
echo "Ctrl-C ends both."
GW_PORT=$gateway_port GW_BIND=127.0.0.1 GW_YAML=$scratch/gateway.yaml GW_WID=demo \
    "$build/crownyc" run "$build/gateway.toau" &
gateway_pid=$!
wait "$gateway_pid"
