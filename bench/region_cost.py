#!/usr/bin/env python3
"""What a call of a region costs: libassay in each mode beside the floor and its peers.

Each round runs all arms in random order; the floor is measured in turn with the library's calls, block by block, in
one process. Ratios are taken within a round. A missed goal is a result, not an error. Start it through region-cost.sh.
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from options import parse_seeded, seeded_parser

MODES = ("trace", "aggregate", "count", "off")
# (figure, what it is divided by, or None; at most)
GOALS = (
    ("trace", "floor", 1.25),
    ("trace, fresh pages", "floor, CPU time", 1.6),
    ("count", None, 3.0),
    ("disabled", None, 0.2),
)

# The region found by its name at each call, as its documentation has it, and the same object used again.
PYTHON = """
import sys, time
from scope_profiler import ProfileManager
ProfileManager.setup(profiling_activated=True, time_trace=True, flush_to_disk=False)
region = ProfileManager.profile_region
kept = region("kept")

def by_name(calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        with region("measured"):
            pass
    return (time.perf_counter_ns() - start) / calls

def again(calls):
    start = time.perf_counter_ns()
    for _ in range(calls):
        with kept:
            pass
    return (time.perf_counter_ns() - start) / calls

print(by_name(2000), again(50000))
"""


def parse_options():
    parser = seeded_parser("region-cost.sh", __doc__)
    option = parser.add_argument
    option("--rounds", type=int, default=10, metavar="N", help="rounds (default 10)")
    option("--blocks", type=int, default=2000, metavar="N", help="blocks of 1,000 pairs per round (default 2000)")
    option("--dir", type=Path, default=None, metavar="DIR", help="where to record (default: a temporary folder)")
    option("--scope-profiler", type=Path, metavar="DIR", help="where the Python package scope_profiler lies")
    option("--python", default=sys.executable, help="the Python that has what it needs (default: this one)")
    option("--no-peers", action="store_true", help="leave out scope-profiler and uftrace")
    o = parse_seeded(parser)
    if o.rounds < 1 or not 1 <= o.blocks <= 20000:
        parser.error("--rounds must be at least 1, --blocks between 1 and 20000")
    return o


def output_of(argv, env=None):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]}: status {done.returncode}: {(done.stderr.strip() or '?').splitlines()[-1]}")
    return done.stdout


def library(o, mode):
    """One process with the library in that mode: figures in ns per pair."""
    with tempfile.TemporaryDirectory(dir=o.dir) as folder:
        text = output_of([o.build / "bench" / "bench_region_cost", 1, o.blocks],
                         {"ASSAY_DIR": folder, "ASSAY_REGIONS": mode, "ASSAY_LIMIT": "64G"})
    got = {line.split()[1]: float(line.split()[2]) for line in text.splitlines()}
    figures = {mode: got["pair"]}
    if mode == "trace":
        figures |= {"floor": got["floor"], "floor, CPU time": got["floor-cpu"], "trace, fresh pages": got["fresh"],
                    "token": got["token"]}
    return figures


def disabled(o):
    text = output_of([o.build / "bench" / "bench_region_cost_disabled", 1, o.blocks])
    got = {line.split()[1]: float(line.split()[2]) for line in text.splitlines()}
    return {"disabled": max(0.0, got["pair"] - got["empty"])}


def scope_profiler(o):
    env = {"PYTHONPATH": str(o.scope_profiler)} if o.scope_profiler else {}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([o.python, "-c", PYTHON, "50000"], cwd=folder, env={**os.environ, **env},
                              capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "?").splitlines()[-1])
    by_name, again = done.stdout.split()[-2:]
    return {"scope-profiler, by name": float(by_name), "scope-profiler": float(again)}


def uftrace(o):
    calls = 1000000
    with tempfile.TemporaryDirectory(dir=o.dir) as folder:
        traced = output_of(["uftrace", "record", "--no-libcall", "-d", f"{folder}/data",
                            o.build / "bench" / "bench_region_cost_traced", calls])
    plain = output_of([o.build / "bench" / "bench_region_cost_calls", calls])
    return {"uftrace": float(traced.split()[-1]) - float(plain.split()[-1])}


def measure(o):
    """(figures by arm, skipped arms with their reasons)."""
    coin = random.Random(o.seed)
    arms = {mode: lambda mode=mode: library(o, mode) for mode in MODES} | {"disabled": lambda: disabled(o)}
    peers = {}
    if not o.no_peers:
        peers = {"scope-profiler": lambda: scope_profiler(o)}
        if shutil.which("uftrace"):
            peers["uftrace"] = lambda: uftrace(o)
    figures, skipped = {}, {}
    if not o.no_peers and "uftrace" not in peers:
        skipped["uftrace"] = "it is not installed"
    for _ in range(o.rounds):
        order = [*arms, *(name for name in peers if name not in skipped)]
        coin.shuffle(order)
        for name in order:
            try:
                got = arms[name]() if name in arms else peers[name]()
            except RuntimeError as error:
                if name in arms:
                    sys.exit(f"region-cost: {error}")
                skipped[name] = str(error)
                continue
            for figure, value in got.items():
                figures.setdefault(figure, []).append(value)
    return figures, skipped


def verdicts(figures):
    for name, base, most in GOALS:
        values = figures[name]
        if base:
            values = [value / floor for value, floor in zip(values, figures[base])]
        middle = statistics.median(values)
        yield {"goal": name, "per": base, "at_most": most, "median": middle, "met": middle <= most}


def main():
    o = parse_options()
    figures, skipped = measure(o)
    goals = list(verdicts(figures))
    if o.json:
        print(json.dumps({"seed": o.seed, "figures": figures, "skipped": skipped, "goals": goals}, indent=1))
        return
    floor = statistics.median(figures["floor"])
    print(f"{'ns per call (begin and end)':<28} {'min':>9} {'median':>9} {'x floor':>8}")
    for name in sorted(figures, key=lambda name: statistics.median(figures[name])):
        middle = statistics.median(figures[name])
        print(f"{name:<28} {min(figures[name]):>9.2f} {middle:>9.2f} {middle / floor:>8.2f}")
    for name, reason in skipped.items():
        print(f"{name:<28} skipped: {reason}")
    for goal in goals:
        unit = f"times the {goal['per']}" if goal["per"] else "ns"
        print(f"goal: {goal['goal']} at most {goal['at_most']} {unit}: {goal['median']:.2f}, "
              f"{'met' if goal['met'] else 'missed'}")
    print(f"{o.rounds} rounds of {o.blocks} blocks of 1,000 pairs, seed {o.seed}")


if __name__ == "__main__":
    main()
