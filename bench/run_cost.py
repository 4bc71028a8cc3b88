#!/usr/bin/env python3
"""What watching costs: bare runs, runs under assay and under its peers, interleaved, for targets hard to watch.

Prints medians over pairs with exact sign-test intervals, and the goals beside them. A missed goal is a result, not
an error. Start it through run-cost.sh.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

from cost_arms import TARGETS, BenchError, Tools, missing_peers, run_arm
from cost_summary import goals_of, summarise, text_report
from options import paired_parser, parse_paired
from pairs import mirrored_order

MAPPINGS_BYTES = 3 << 30  # what the target "mappings" touches, with some room


def parse_options():
    return parse_paired(paired_parser("run-cost.sh", __doc__, TARGETS, 12, "GNU time and perf stat"), TARGETS)


def say(text):
    print(text, file=sys.stderr, flush=True)


def available_bytes():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise BenchError("/proc/meminfo has no line MemAvailable")


def too_small_for(target):
    if target == "mappings" and available_bytes() < MAPPINGS_BYTES:
        return f"it touches 2 GB, and {available_bytes() >> 20} MiB of memory are available"
    return None


def measure(target, arms, pairs, coin, tools):
    """{arm: [run, ...]}. The first run of every arm is dropped: it pays for cold caches and, in a virtual machine, for
    the first use of memory."""
    runs = {arm: [] for arm in arms}
    for arm in arms:
        run_arm(arm, target, tools)
    for block in range(pairs // 2):
        for arm in mirrored_order(arms, coin):
            runs[arm].append(run_arm(arm, target, tools))
        say(f"run-cost: {target}: {2 * block + 2} of {pairs} pairs")
    return runs


def main():
    o = parse_options()
    coin = random.Random(o.seed)
    missing = {"time": "--no-peers", "perf": "--no-peers"} if o.no_peers else missing_peers()
    arms = ["bare", "assay", "loop"] + [peer for peer in ("time", "perf") if peer not in missing]
    results = {"seed": o.seed, "left_out": dict(missing), "targets": {}}
    with tempfile.TemporaryDirectory(prefix="assay-run-cost-") as scratch:
        tools = Tools(o.build.resolve(), Path(scratch))
        for target in o.targets:
            reason = too_small_for(target)
            if reason:
                results["left_out"][target] = reason
                continue
            runs = measure(target, arms, o.pairs, coin, tools)
            fixed = results["targets"].get("nothing")
            summary = summarise(runs, fixed and fixed["runs"])
            results["targets"][target] = {**summary, "goals": list(goals_of(target, summary)), "runs": runs}
            if not o.json:
                print(text_report(target, TARGETS[target], summary), end="\n\n", flush=True)
    if o.json:
        print(json.dumps(results, indent=1))
        return
    for name, reason in results["left_out"].items():
        print(f"left out: {name}: {reason}")


if __name__ == "__main__":
    try:
        main()
    except BenchError as trouble:
        say(f"run-cost: {trouble}")
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
