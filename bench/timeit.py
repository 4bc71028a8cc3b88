#!/usr/bin/env python3
"""assay timeit beside Google Benchmark: the same statements, the same compiler and options, in turn.

Each round measures every statement under both, the two right after one another in random order. Both make their figure
as the median of batches of some 10 ms. Ratios are taken within a round. A missed goal is a result, not an error. Start
it through timeit.sh.
"""
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

from options import parse_seeded, seeded_parser
from pairs import differences, median_interval, ratios

HERE = Path(__file__).resolve().parent
# name: (what assay timeit is given, the goal: a relative difference, or ns)
COSINE = ["-I", "math.h", "-l", "m", "-s", "volatile double half = 0.5;"]
# Google's DoNotOptimize moves a double into a general register, ASSAY_KEEP leaves it where it is: an instruction less.
AS_GOOGLE = 'double y = cos(half); __asm__ __volatile__("" : : "r,m"(y) : "memory")'
STATEMENTS = {
    "empty": ([""], None),
    "cosine": ([*COSINE, "ASSAY_KEEP(cos(half))"], 0.03),
    "cosine, kept alike": ([*COSINE, AS_GOOGLE], 0.03),
    "copy": (["-I", "string.h", "-s", "char from[4096], to[4096]; memset(from, 1, sizeof from); ASSAY_KEEP(&from[0]);",
              "memcpy(to, from, sizeof to); ASSAY_KEEP(&to[0]); ASSAY_CLOBBER()"], 0.03),
    "sort": (["-I", "stdlib.h", "-I", "string.h", "-I", str(HERE / "timeit_input.h"),
              "-s", "int input[TIMEIT_INTS], work[TIMEIT_INTS]; timeit_fill(input);",
              "memcpy(work, input, sizeof work); qsort(work, TIMEIT_INTS, sizeof *work, timeit_ascending)"], 0.03),
}
EMPTY_NS = 0.3


def parse_options():
    parser = seeded_parser("timeit.sh", __doc__)
    option = parser.add_argument
    option("--rounds", type=int, default=40, metavar="N", help="rounds (default 40; 6 are the least for an interval)")
    option("--batches", type=int, default=10, metavar="N", help="batches of each in a round (default 10)")
    o = parse_seeded(parser)
    if o.rounds < 1 or o.batches < 6:
        parser.error("--rounds must be at least 1, --batches at least 6")
    return o


def output_of(argv):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"timeit: {argv[0]}: status {done.returncode}: {(done.stderr.strip() or '?').splitlines()[-1]}")
    return json.loads(done.stdout)


def ours(o, name):
    (result,) = output_of([o.build / "assay", "timeit", "-r", o.batches, "--json", *STATEMENTS[name][0]])["results"]
    return result["median"] * 1e9


def google(o, name):
    got = output_of([o.build / "bench" / "bench_timeit_google", f"--benchmark_filter=^{name.split(',')[0]}$",
                     "--benchmark_min_time=0.01", f"--benchmark_repetitions={o.batches}", "--benchmark_format=json"])
    return statistics.median(run["real_time"] for run in got["benchmarks"] if run["run_type"] == "iteration")


def measure(o):
    """{statement: {"ours": [ns, ...], "google": [ns, ...]}}"""
    coin = random.Random(o.seed)
    figures = {name: {"ours": [], "google": []} for name in STATEMENTS}
    for _ in range(o.rounds):
        for name in coin.sample(list(STATEMENTS), len(STATEMENTS)):
            for side, run in coin.sample([("ours", ours), ("google", google)], 2):
                figures[name][side].append(run(o, name))
    return figures


def compare(figures):
    for name, (_, goal) in STATEMENTS.items():
        a, b = figures[name]["ours"], figures[name]["google"]
        values = ratios(a, b) if goal else differences(a, b)
        middle, low, high = median_interval(values)
        center, most = (1, goal) if goal else (0, EMPTY_NS)
        sure = low is not None and center - most <= low and high <= center + most
        near = abs(middle - center) <= most
        yield {"statement": name, "ours_ns": statistics.median(a), "google_ns": statistics.median(b),
               "is": "ratio" if goal else "difference in ns", "value": middle, "low": low, "high": high,
               "smallest": min(values), "largest": max(values), "goal": goal or EMPTY_NS,
               "verdict": "met" if sure else "met by the median only" if near else "missed"}


def main():
    o = parse_options()
    if not (o.build / "bench" / "bench_timeit_google").is_file():
        print("timeit: skipped: Google Benchmark was not there when this was built (Debian: libbenchmark-dev)")
        return
    figures = measure(o)
    rows = list(compare(figures))
    if o.json:
        print(json.dumps({"seed": o.seed, "rounds": figures, "comparisons": rows}, indent=1))
        return
    print(f"{'ns per execution':<20} {'assay':>10} {'Google':>10}  ratio [95%], all rounds; goal")
    for row in rows:
        interval = f"[{row['low']:.3f}, {row['high']:.3f}]" if row["low"] is not None else "[too few rounds]"
        goal = f"within {row['goal']:.0%}" if row["is"] == "ratio" else f"within {row['goal']} ns (difference)"
        print(f"{row['statement']:<20} {row['ours_ns']:>10.3f} {row['google_ns']:>10.3f}  "
              f"{row['value']:.3f} {interval}, {row['smallest']:.3f} to {row['largest']:.3f}; {goal}: "
              f"{row['verdict']}")
    print(f"{o.rounds} rounds of {o.batches} batches of some 10 ms each, seed {o.seed}")


if __name__ == "__main__":
    main()
