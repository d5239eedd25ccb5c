# SPDX-License-Identifier: MIT
#
# bench/gateway/h2load.py: one measurement of a row of HTTP/2 with h2load, told as crownyc load tells its own.
#
# In:   a row of bench/gateway/run, the proxy's port and workers. Out: its numbers; Fault when there are none.
# Method: time-based (-D), after a run of its own that warms up; CPU is the workers' user and system time over the whole
#       of h2load. Requests that are under way at its end are in nobody's count: as many as streams, at most.
# Not here: lengths of answers (h2load does not look at them), latencies (it has no percentiles).

import os
import pathlib
import re
import time

import peers

COUNTS = re.compile(r"(\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout")


def command(row, port, seconds, connections, streams):
    scheme = "https" if row.secure else "http"
    return ["h2load", "-D", f"{max(1, round(seconds * 1000))}ms", "-c", str(connections), "-m", str(streams),
            "--connect-to", f"127.0.0.1:{port}", f"{scheme}://{peers.HOST}{row.path}"]


def cpu_s(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def result(said, used_s, elapsed_s):
    """Of what h2load said; the workers used so much CPU in that time."""
    counts = COUNTS.search(said)
    good = re.search(r"status codes: (\d+) 2xx", said)
    rate = re.search(r"^finished in .*, ([\d.]+) req/s", said, re.M)
    if not counts or not good or not rate:
        raise peers.Fault(f"h2load said nothing that is known: {said[-300:].strip()}")
    _, succeeded, failed, _, _ = map(int, counts.groups())  # errored and timeout are among failed
    answered = min(succeeded, int(good.group(1)))
    if answered == 0:
        raise peers.Fault(f"h2load was answered nothing in {elapsed_s:.1f} s: {counts.group(0)}")
    return {"faults": {"failed": failed, "status": succeeded - answered},
            "answered": answered, "per_second": float(rate.group(1)),
            "watched": {"us_per_request": used_s * 1e6 / answered, "busy_percent": 100 * used_s / elapsed_s},
            "generator": {"busy_percent": None}, "latency_us": {}}


def run(words, cpu, folder, within_s):
    log = folder / "h2load.out"
    log.unlink(missing_ok=True)
    process = peers.start(words, cpu, log)
    try:
        process.wait(within_s)
    finally:
        peers.end(process)
    return log.read_text(encoding="utf-8", errors="replace")


def load(words, warm_up, cpu, folder, workers, within_s):
    """`words` and `warm_up` are commands, of the measurement and of what goes before it (None: nothing does)."""
    if warm_up:
        run(warm_up, cpu, folder, within_s)
    begin, before = time.monotonic(), cpu_s(workers)
    said = run(words, cpu, folder, within_s)
    return result(said, cpu_s(workers) - before, time.monotonic() - begin)
