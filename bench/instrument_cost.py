#!/usr/bin/env python3
"""What recording every call costs: nanoseconds per call above the same program without hooks.

All arms run once in each round, in random order; the figures are medians over the rounds. The program times its own
loop, so what starts and ends around it does not count. A missed goal is a result, not an error. Start it through
instrument-cost.sh.
"""
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile

from options import parse_seeded, seeded_parser
from pairs import median_interval


def parse_options():
    parser = seeded_parser("instrument-cost.sh", __doc__)
    option = parser.add_argument
    option("--rounds", type=int, default=20, metavar="N", help="rounds (default 20)")
    option("--calls", type=int, default=4000000, metavar="N", help="calls per run (default 4,000,000)")
    o = parse_seeded(parser)
    if o.rounds < 1 or o.calls < 4:
        parser.error("--rounds must be at least 1, and --calls at least 4")
    return o


def arms(o, folder):
    """name: the command, in the order of the table."""
    bench, rounds = o.build.resolve() / "bench", str(o.calls // 4)
    hooks = [str(bench / "bench_instrument_hooks"), rounds]
    found = {
        "bare": [str(bench / "bench_instrument_bare"), rounds],
        "hooks, nothing recorded": hooks,
        "assay_profile": [str(bench / "bench_instrument_profile"), rounds],
        "assay profile --instrument": [str(o.build.resolve() / "assay"), "profile", "--instrument", "--no-probe", "-q",
                                       "-o", f"{folder}/assay", "--", *hooks],
    }
    if shutil.which("uftrace"):
        found["uftrace record"] = ["uftrace", "record", "--no-libcall", "-d", f"{folder}/uftrace", *hooks]
    return found


def ns_per_call(command, o):
    env = {**os.environ, "ASSAY_PROGRAM": str(o.build.resolve() / "assay"),
           "LD_LIBRARY_PATH": str(o.build.resolve())}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, timeout=600)
    calls, seconds = done.stdout.split()[-2:]
    return float(seconds) / int(calls) * 1e9


def measure(o):
    times, order = {}, random.Random(o.seed)
    for _ in range(o.rounds):
        with tempfile.TemporaryDirectory() as folder:
            commands = arms(o, folder)
            for name in order.sample(sorted(commands), len(commands)):
                times.setdefault(name, []).append(ns_per_call(commands[name], o))
    return {name: times[name] for name in arms(o, "")}


def show(o, times):
    bare = times["bare"]
    above = {name: [t - b for t, b in zip(values, bare)] for name, values in times.items()}
    peer = above.get("uftrace record")
    print(f"{o.rounds} rounds of {o.calls:,} calls, ns per call above the bare program (median, 95% interval)")
    for name, values in above.items():
        median, low, high = median_interval(values)
        between = "" if low is None else f"  {low:6.1f} to {high:6.1f}"
        ratio = ""
        if peer and name.startswith("assay"):
            ratio = f"  {statistics.median(a / b for a, b in zip(values, peer)):.2f} of uftrace's"
        print(f"  {name:28} {median:7.1f}{between}{ratio}")
    print(f"  (bare: {statistics.median(bare):.2f} ns per call)")
    if not peer:
        print("  uftrace is not installed: nothing to compare with")


def main():
    o = parse_options()
    times = measure(o)
    if o.json:
        print(json.dumps({"seed": o.seed, "calls": o.calls, "ns_per_call": times}, indent=1))
    else:
        show(o, times)


main()
