# SPDX-License-Identifier: MIT
#
# bench/gateway/mixed_verdict.py: what a run of bench/gateway/mixed found: whose failures they are, bars, tables.
#
# In:   a Run that is over, or still going on (judge). Out: failures in two lists, a line for each bar, text on stdout.
# Invariant: a failure is excused only as the end of a connection that a worker had when it was stopped and killed, each
#            at most once; all others are the gateway's.
# Not here:  gathering (mixed, mixed_clients.py); how to read the tables (docs/BENCH.md).

import pathlib
import re
import statistics

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMITS = ROOT / "vm/base/limits.def"
MEMORY_S_LEAST = 900  # below it memory is shown and not judged: chance has not yet had as much at once as it will
MEMORY_GROWTH_PART, MEMORY_GROWTH_KIB = 0.05, 512
CRASH = re.compile(r"CHECK failed|AddressSanitizer|LeakSanitizer|runtime error:|was ended by signal (?!9\b)|"
                   r"handle was stopped|was refused|out of memory")
LOST = {"connect", "handshake", "closed", "cut", "reset"}  # words of failures that the end of a connection explains


def say(text):
    print(text, flush=True)


def judge(run):
    """(failures on connections of killed workers, the others). HTTP/1 has one request on a connection."""
    ours, others = [], []
    for kill in run.kills:
        kill.explained = set()
    for failure in run.ledger.failures:
        key = (failure.server_port, failure.port)
        kill = next((one for one in run.kills if key in one.owned and failure.began_ns <= one.stopped_ns
                     <= failure.failed_ns), None)
        many = failure.kind.startswith("h2")
        if failure.word in LOST and kill and (many or key not in kill.explained):
            kill.explained.add(key)
            ours.append(failure)
        else:
            others.append(failure)
    return ours, others


def growth_of(samples, index, name):
    """(median of the first quarter, of the last)."""
    values = [one[name][index] for one in samples if one[name][index] is not None]
    quarter = max(1, len(values) // 4)
    return (statistics.median(values[:quarter]), statistics.median(values[-quarter:])) if values else (0, 0)


def pipes_kept_max():
    return 2 * int(re.search(r"^LIMIT\(PIPES_FREE, +(\d+),", LIMITS.read_text(encoding="utf-8"), re.M).group(1))


def verdict(run, found):
    """[(good, text)], one for each bar."""
    before, after, _ = found
    bars = []
    ours, others = judge(run)
    bars.append((not others, f"failed requests that were not ours to kill: {len(others)} (ours: "
                             f"{len(ours) + run.excused.total()} on connections of {len(run.kills)} killed workers)"))
    idle = [kind for kind in [*run.options.kinds, "probe"] if not run.ledger.good[kind]]
    bars.append((not idle, f"kinds of load of which nothing was answered: {', '.join(idle) or 'none'}"))
    bars.append((run.reloads > 0 and run.kills,
                 f"{run.reloads} reloads were served, {len(run.kills)} workers came back"))
    bars.append((not run.faults, "nothing else went wrong" if not run.faults else "; ".join(run.faults)))
    crash = CRASH.search(run.gateway.said())
    bars.append((not crash, f"the gateway's log has no crash and no refusal{': ' + crash.group(0) if crash else ''}"))
    bars.append((run.gateway.process.returncode == 0, f"it ended with exit code {run.gateway.process.returncode}"))
    for name in ("master", "worker"):
        one, two = ({kind: count for kind, count in kinds[name].items() if kind != "pipe"} for kinds in (before, after))
        more = {kind: two.get(kind, 0) - one.get(kind, 0) for kind in one | two
                if one.get(kind, 0) != two.get(kind, 0) and not kind.endswith(".log")}
        bars.append((sum(two.values()) <= sum(one.values()),
                     f"{name}: {sum(one.values())} descriptors in the first pause, {sum(two.values())} in the last "
                     f"{more or ''}".rstrip()))
        pipes = after[name]["pipe"]
        bars.append((pipes <= pipes_kept_max(), f"{name}: {pipes} descriptors of pipes, empty and kept for reuse, of "
                                                f"{pipes_kept_max()} at most (LIMIT_PIPES_FREE)"))
        first, last = growth_of(run.samples, 0, name)
        allowed = first * MEMORY_GROWTH_PART + MEMORY_GROWTH_KIB
        judged = run.options.seconds >= MEMORY_S_LEAST
        bars.append((not judged or last - first <= allowed,
                     f"{name}: anonymous memory {first:,.0f} KiB in the first quarter, {last:,.0f} in the last, "
                     + (f"at most {allowed:,.0f} more" if judged else
                        f"not judged below {MEMORY_S_LEAST} s")))
    return bars


def report(run, found):
    ours, others = judge(run)
    say(f"\n{'load':12} {'good':>10} {'killed':>8} {'failed':>8}")
    for kind in sorted({*run.ledger.good, *(one.kind for one in run.ledger.failures)}):
        killed = sum(one.kind == kind for one in ours) + run.excused[kind]
        say(f"{kind:12} {run.ledger.good[kind]:10,} {killed:8,} {sum(one.kind == kind for one in others):8,}")
    for failure in others[:40]:
        say(f"  {failure.kind}: {failure.word} {failure.detail} on {failure.server_port}<-{failure.port}, begun "
            f"{failure.began_ns / 1e9 - run.began:.3f} s, failed {failure.failed_ns / 1e9 - run.began:.3f} s")
    for note, count in run.ledger.notes.items():
        say(f"  {note}: {count}")
    if found:
        numbers = found[2]
        say("gateway: " + ", ".join(f"{name} {numbers.get(name, 0):,}" for name in (
            "connections_total", "requests_total", "client_aborts_total", "upstream_failures_total",
            "upstream_retries_total", "tunnels_total", "workers_restarted_total", "reloads_total")))
        for name in ("master", "worker"):
            first, last = growth_of(run.samples, 1, name)
            say(f"{name}: descriptors under load, first quarter {first:,.0f}, last {last:,.0f}")
