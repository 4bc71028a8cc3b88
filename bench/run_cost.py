#!/usr/bin/env python3
"""What watching costs: bare runs, runs under assay and under its peers, interleaved, for targets hard to watch.

Prints medians over pairs with exact sign-test intervals, and the goals beside them. A missed goal is a result, not
an error. Start it through run-cost.sh.
"""
import argparse
import json
import random
import sys
import tempfile
from pathlib import Path

from cost_arms import TARGETS, BenchError, Tools, missing_peers, run_arm
from cost_summary import goals_of, summarise, text_report
from pairs import mirrored_order

MAPPINGS_BYTES = 3 << 30  # what the target "mappings" touches, with some room


def parse_options():
    parser = argparse.ArgumentParser(prog="run-cost.sh", description=__doc__)
    option = parser.add_argument
    option("--build", type=Path, default=Path("build"), metavar="DIR", help="build folder (default: build)")
    option("--pairs", type=int, default=12, metavar="N", help="pairs per target, an even number (default 12)")
    option("--targets", default=",".join(TARGETS), metavar="LIST", help="default: %(default)s")
    option("--no-peers", action="store_true", help="leave out GNU time and perf stat")
    option("--seed", type=int, default=None, metavar="N", help="of the order of runs (default: a new one)")
    option("--json", action="store_true", help="print all figures and all runs as JSON instead")
    o = parser.parse_args()
    o.targets = [name for name in o.targets.split(",") if name]
    for name in o.targets:
        if name not in TARGETS:
            parser.error(f"--targets: '{name}' is none of {', '.join(TARGETS)}")
    if o.pairs < 2 or o.pairs % 2:
        parser.error("--pairs must be an even number of at least 2: a block is two pairs")
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(1 << 32)
    return o


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
