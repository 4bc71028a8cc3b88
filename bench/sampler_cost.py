#!/usr/bin/env python3
"""What sampling costs: a fixed amount of work bare, under assay's sampler, gperftools' and perf, interleaved.

Prints medians over pairs with exact sign-test intervals, and the goals beside them. A missed goal is a result, not an
error. Start it through sampler-cost.sh.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

from cost_arms import BenchError
from cost_summary import aligned, figure, judge, text_of
from options import paired_parser, parse_paired
from pairs import differences, mirrored_order, ratios
from sampler_arms import TARGETS, Tools, missing_peers, program_of, run_arm

RATES = (199, 1000)
CPU_LIMIT = {199: 1.003, 1000: 1.01}
MEMORY_THREADS = (2, 64)
MEMORY_SLICES = 40
MEMORY_PAIRS = 4
FIXED_KIB, PER_THREAD_KIB = 4096, 128

TITLES = {
    "bare": "bare",
    "sampler": "assay's sampler",
    "gperftools": "gperftools",
    "assay": "assay run --cpu-profile",
    "perf": "perf record, DWARF stacks",
}


def parse_options():
    parser = paired_parser("sampler-cost.sh", __doc__, TARGETS, 24, "gperftools and perf")
    parser.add_argument("--slices", type=int, default=1500, metavar="N",
                        help="ms of work per thread and run (default 1500)")
    return parse_paired(parser, TARGETS)


def say(text):
    print(text, file=sys.stderr, flush=True)


def title(arm):
    family, hz = arm
    return TITLES[family] + (f", {hz} Hz" if hz else "")


def arms_of(missing):
    """The two that are compared most closely come first: they stay neighbours."""
    families = [name for name in ("sampler", "gperftools", "assay", "perf") if name not in missing]
    return [("bare", 0)] + [(family, hz) for family in families for hz in RATES]


def measure(what, arms, program, pairs, coin, tools):
    """{arm: [run, ...]}. The first run of every arm is dropped: it pays for cold caches."""
    runs = {arm: [] for arm in arms}
    for arm in arms:
        run_arm(arm, program, tools)
    for block in range(pairs // 2):
        for arm in mirrored_order(arms, coin):
            runs[arm].append(run_arm(arm, program, tools))
        say(f"sampler-cost: {what}: {2 * block + 2} of {pairs} pairs")
    return runs


def column(runs, arm, key):
    return [run[key] for run in runs[arm]]


def per_cpu_second(runs, arm, key):
    if key not in runs[arm][0]:
        return figure([])
    return figure(ratios(column(runs, arm, key), column(runs, arm, "target_cpu_s")))


def summarise(runs):
    """{arm: figures}. `adds` is CPU time around the target's own: what the observer's processes used."""
    bare = ("bare", 0)
    around = {arm: differences(column(runs, arm, "outer_cpu_s"), column(runs, arm, "target_cpu_s")) for arm in runs}
    return {arm: {
        "cpu_ratio": figure(ratios(column(runs, arm, "target_cpu_s"), column(runs, bare, "target_cpu_s"))),
        "adds_cpu_s": figure(differences(around[arm], around[bare])),
        "adds_wall_s": figure(differences(column(runs, arm, "outer_wall_s"), column(runs, bare, "outer_wall_s"))),
        "samples_per_s": per_cpu_second(runs, arm, "samples"),
        "handler_share": per_cpu_second(runs, arm, "handler_s"),
    } for arm in runs if arm != bare}


def goal(what, limit, value):
    return {"what": what, "limit": limit, "value": value, "verdict": judge(value, limit)}


def goals_of(runs, summary):
    for hz in RATES:
        own, peer = ("sampler", hz), ("gperftools", hz)
        yield goal(f"target's CPU time against the bare run, {hz} Hz", CPU_LIMIT[hz], summary[own]["cpu_ratio"])
        if peer in runs:
            beside = ratios(column(runs, own, "target_cpu_s"), column(runs, peer, "target_cpu_s"))
            yield goal(f"target's CPU time against gperftools, {hz} Hz", 1.0, figure(beside))
        whole, perf = ("assay", hz), ("perf", hz)
        if perf in runs:
            beside = ratios(column(runs, whole, "outer_cpu_s"), column(runs, perf, "outer_cpu_s"))
            yield goal(f"CPU time of the whole command against perf record, {hz} Hz", 1.0, figure(beside))


def report(target, runs, summary, goals):
    bare = figure(column(runs, ("bare", 0), "target_cpu_s"))
    rows = [["", "target's CPU, ratio", "samples per CPU s", "in handler, %", "adds CPU, ms", "adds wall, ms"]]
    for arm, figures in summary.items():
        rows.append([title(arm), text_of(figures["cpu_ratio"]), text_of(figures["samples_per_s"], "{:.0f}"),
                     text_of(figures["handler_share"], "{:.3f}", 100), text_of(figures["adds_cpu_s"], "{:.0f}", 1000),
                     text_of(figures["adds_wall_s"], "{:.0f}", 1000)])
    lines = [f"{target}: {TARGETS[target][1]}",
             f"  {len(runs['bare', 0])} pairs; bare: {text_of(bare, '{:.3f}')} s of CPU"]
    return "\n".join(lines + aligned(rows) + [goal_line(one) for one in goals])


def goal_line(one):
    form = "{:.0f}" if one["limit"] > 100 else "{:.4f}"
    return f"  goal: {one['what']}, at most {one['limit']}: {text_of(one['value'], form)}: {one['verdict']}"


def memory_goals(coin, tools):
    """Resident memory of the same program less that of the bare run, while all its threads exist."""
    for threads in MEMORY_THREADS:
        arms = [("bare", 0), ("sampler", RATES[-1])]
        program = program_of(tools, "threads", MEMORY_SLICES, threads)
        runs = measure(f"memory, {threads} threads", arms, program, MEMORY_PAIRS, coin, tools)
        if min(column(runs, ("bare", 0), "rss_kib")) < 0:
            raise BenchError("/proc/self/smaps cannot be read")
        more = figure(differences(column(runs, arms[1], "rss_kib"), column(runs, arms[0], "rss_kib")))
        yield goal(f"memory of the sampler in a target of {threads} threads, KiB",
                   FIXED_KIB + PER_THREAD_KIB * threads, more)


def as_json(results):
    """JSON has no tuples for keys."""
    if isinstance(results, dict):
        return {title(key) if isinstance(key, tuple) else key: as_json(value) for key, value in results.items()}
    return results


def main():
    o = parse_options()
    coin = random.Random(o.seed)
    with tempfile.TemporaryDirectory(prefix="assay-sampler-cost-") as scratch:
        tools = Tools(o.build.resolve(), Path(scratch))
        missing = {name: "--no-peers" for name in ("gperftools", "perf")} if o.no_peers else missing_peers(tools)
        results = {"seed": o.seed, "left_out": dict(missing), "targets": {}}
        for target in o.targets:
            if not tools.target(target).exists():
                results["left_out"][target] = f"{tools.target(target)} was not built; it needs a C++ compiler"
                continue
            program = program_of(tools, target, o.slices, 2)
            runs = measure(target, arms_of(missing), program, o.pairs, coin, tools)
            summary = summarise(runs)
            goals = list(goals_of(runs, summary))
            results["targets"][target] = {"summary": summary, "goals": goals, "runs": runs}
            if not o.json:
                print(report(target, runs, summary, goals), end="\n\n", flush=True)
        results["memory"] = list(memory_goals(coin, tools))
    if o.json:
        print(json.dumps(as_json(results), indent=1))
        return
    for one in results["memory"]:
        print(goal_line(one).strip())
    for name, reason in results["left_out"].items():
        print(f"left out: {name}: {reason}")


if __name__ == "__main__":
    try:
        main()
    except BenchError as trouble:
        say(f"sampler-cost: {trouble}")
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
