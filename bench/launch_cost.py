#!/usr/bin/env python3
"""What starting a command costs: the time that tools report for `true` beside a bare posix_spawn + wait4 loop.

All arms run in each round, in random order and its mirror image; overheads are differences of medians within a round.
A missed goal is a result, not an error. Start it through launch-cost.sh.
"""
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from options import parse_seeded, seeded_parser
from pairs import median_interval, mirrored_order

RESIDENT_MIB = 300


def parse_options():
    parser = seeded_parser("launch-cost.sh", __doc__)
    option = parser.add_argument
    option("--rounds", type=int, default=10, metavar="N", help="rounds, an even number (default 10)")
    option("--runs", type=int, default=200, metavar="N", help="runs of the command per arm and round (default 200)")
    option("--command", default=shutil.which("true"), help="default: %(default)s")
    o = parse_seeded(parser)
    if o.rounds < 2 or o.rounds % 2:
        parser.error("--rounds must be an even number of at least 2")
    return o


def output_of(argv):
    done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"launch-cost: {argv[0]}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def loop(o, mode, mib):
    """(figures, turns) in microseconds."""
    lines = output_of([o.build / "bench" / "bench_launch_cost", mode, o.runs, mib, o.command]).splitlines()
    rows = [[int(number) / 1e3 for number in line.split()] for line in lines]
    return [row[0] for row in rows], [row[1] for row in rows]


def exported(argv):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.json"
        output_of([*argv, "--export-json", path])
        return [1e6 * t for t in json.loads(path.read_text())["results"][0]["times"]], None


def arms_of(o):
    arms = {
        "bare": lambda: loop(o, "bare", 0),
        "assay bench": lambda: exported([o.build / "assay", "bench", "--shell", "none", "-n", o.runs, o.command]),
        "starter": lambda: loop(o, "timed", 0),
        "starter, 300 MB": lambda: loop(o, "timed", RESIDENT_MIB),
        "fork, 300 MB": lambda: loop(o, "fork", RESIDENT_MIB),
    }
    if shutil.which("hyperfine"):
        arms["hyperfine -N"] = lambda: exported(["hyperfine", "-N", "--style", "none", "-r", str(o.runs), o.command])
    return arms


def spread(values):
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - middle) for value in values)


def measure(o):
    coin = random.Random(o.seed)
    arms = arms_of(o)
    rounds = {name: [] for name in arms}
    for _ in range(o.rounds // 2):
        for name in mirrored_order(list(arms), coin):
            print(f"\r\033[K{name}" if sys.stderr.isatty() else "", end="", file=sys.stderr, flush=True)
            figures, turns = arms[name]()
            rounds[name].append({"median": statistics.median(figures), "spread": spread(figures),
                                 "turn": statistics.median(turns) if turns else None})
    return rounds


def interval_text(values, digits=1):
    middle, low, high = median_interval(values)
    return f"{middle:.{digits}f}" + ("" if low is None else f" [{low:.{digits}f}, {high:.{digits}f}]")


def report(o, rounds):
    bare = [r["median"] for r in rounds["bare"]]
    print(f"{o.command}: {o.rounds} rounds of {o.runs} runs, us, medians over rounds with 95% sign intervals")
    print(f"{'':16} {'reported':26} {'over the bare loop':26} {'spread':20} a run in all")
    for name, values in rounds.items():
        over = [r["median"] - b for r, b in zip(values, bare)]
        turns = [r["turn"] for r in values if r["turn"] is not None]
        print(f"{name:16} {interval_text([r['median'] for r in values]):26} {interval_text(over):26} "
              f"{interval_text([r['spread'] for r in values]):20} {interval_text(turns) if turns else '-'}")
    goals(rounds, bare)


def verdict(values, most):
    """Of a goal "at most": met or missed where the whole interval is on that side of it."""
    middle, low, high = median_interval(values)
    if low is not None and (high <= most or low > most):
        return "met" if high <= most else "missed"
    return f"{'met' if middle <= most else 'missed'} by the median only"


def goals(rounds, bare):
    ours = [r["median"] - b for r, b in zip(rounds["assay bench"], bare)]
    grown = [r["median"] / s["median"] for r, s in zip(rounds["starter, 300 MB"], rounds["starter"])]
    print(f"from a parent of {RESIDENT_MIB} MB: {interval_text(grown, 3)} times what it is from a small one (goal: 1)")
    if "hyperfine -N" not in rounds:
        print("hyperfine is not installed: nothing to compare with")
        return
    theirs = [r["median"] - b for r, b in zip(rounds["hyperfine -N"], bare)]
    ratios = [r["spread"] / h["spread"] for r, h in zip(rounds["assay bench"], rounds["hyperfine -N"])]
    beyond = [o - t / 2 for o, t in zip(ours, theirs)]
    print(f"overhead over the bare loop at most half of hyperfine's: {verdict(beyond, 0)}")
    print(f"spread {interval_text(ratios, 2)} times hyperfine's, at most 1: {verdict(ratios, 1)}")


def main():
    o = parse_options()
    rounds = measure(o)
    if o.json:
        print(json.dumps({"seed": o.seed, "runs": o.runs, "command": o.command, "rounds": rounds}, indent=1))
    else:
        report(o, rounds)


if __name__ == "__main__":
    main()
