#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/system/first_light_test.py: proves that the way from source to a proxied request works as a user walks it: the
# example of 300 services, one more appended with `>>`, hanseonc_high to a file, the gateway run from it, ab three
# times.
#
# The commands are those of the README, with ports given by the system.

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from harness import (BANNER, BUILD, CROWNYC, DEADLINE_S, ROOT, Program, check, check_equal, check_in,  # noqa: E402
                     environment, free_port, request, run_all)

EXAMPLE_SERVICES = 300


def shell(folder, line, **variables):
    """A line of the README in /bin/sh, in the scratch folder."""
    done = subprocess.run(["/bin/sh", "-ec", line], cwd=folder, env=environment(**variables), capture_output=True,
                          timeout=DEADLINE_S * 3, check=False)
    check_equal(done.returncode, 0, f"exit code of `{line}` ({done.stderr.decode('utf-8', 'replace')})")
    return done.stdout.decode("utf-8", "replace")


def start_upstream(folder):
    site = folder / "site"
    site.mkdir()
    (site / "index.html").write_text("<html><body>first light</body></html>\n")
    upstream = Program(["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", site])
    return upstream.wait_line(r"Serving HTTP on 127\.0\.0\.1 port (\d+)").group(1)


def ab(folder, port, *more):
    out = shell(folder, f'ab -q -n 2000 -c 20 {" ".join(more)} -H "Host: bench.local" http://127.0.0.1:{port}/')
    complete = re.search(r"Complete requests:\s+(\d+)", out)
    failed = re.search(r"Failed requests:\s+(\d+)", out)
    check(complete and complete.group(1) == "2000", f"ab did not complete 2000 requests:\n{out}")
    check(failed and failed.group(1) == "0", f"ab counts failed requests:\n{out}")
    check("Non-2xx" not in out, f"ab counts answers that are not 2xx:\n{out}")


def test_first_light(folder):
    upstream_port = start_upstream(folder)
    port = free_port()
    shell(folder, f"cp {ROOT}/programs/gateway/gateway.yaml bench-gateway.yaml")
    shell(folder, "printf -- '- name: bench-shadow-test\\n  domain: bench.local\\n"
                  f"  upstream: http://127.0.0.1:{upstream_port}\\n' >> bench-gateway.yaml")
    shell(folder, f"{BUILD}/hanseonc_high {ROOT}/programs/gateway/main.han > baseline.toau")
    gateway = Program([CROWNYC, "run", "baseline.toau"], cwd=folder, env=environment(
        GW_PORT=port, GW_BIND="127.0.0.1", GW_YAML="bench-gateway.yaml", GW_WID="b1", GW_REDIRECT=0))
    banner = gateway.wait_line(BANNER)
    check_equal(banner.groups(), (str(port), str(EXAMPLE_SERVICES + 1)), "port and services of the banner")

    answer = request(port, "bench.local")
    check_equal(answer.status, 200, "status")
    check_in(b"first light", answer.body, "body")
    check_equal(request(port, "nobody.example").status, 404, "status of an unknown host")
    for _ in range(3):
        ab(folder, port)
    ab(folder, port, "-k")  # HTTP/1.0 with keep-alive
    check_equal(gateway.process.poll(), None, "the gateway has ended")


run_all(globals())
