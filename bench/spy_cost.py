#!/usr/bin/env python3
"""What `assay spy` costs: its own CPU time beside other watchers of the same process, and the watched process's.

Prints medians over pairs with exact sign-test intervals, and the goals beside them. A missed goal is a result, not an
error. Start it through spy-cost.sh.
"""
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from cost_arms import BenchError
from options import parse_seeded, seeded_parser
from pairs import median_interval, mirrored_order, ratios

GOAL_LOOP = 1.5       # times the CPU time of the statm loop, at 10 ms
GOAL_SLOWDOWN = 0.005

PYTHON_LOOP = """
import os, sys, time
fd = os.open(f"/proc/{sys.argv[1]}/statm", os.O_RDONLY)
delay, end = float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
due = time.monotonic()
while due < end:
    int(os.pread(fd, 128, 0).split()[1])
    due += delay
    time.sleep(max(0, due - time.monotonic()))
"""
PSUTIL_LOOP = """
import sys, time, psutil
process = psutil.Process(int(sys.argv[1]))
delay, end = float(sys.argv[2]), time.monotonic() + float(sys.argv[3])
due = time.monotonic()
while due < end:
    sum(p.memory_info().rss for p in [process, *process.children(recursive=True)])
    due += delay
    time.sleep(max(0, due - time.monotonic()))
"""


def parse_options():
    parser = seeded_parser("spy-cost.sh", __doc__)
    option = parser.add_argument
    option("--pairs", type=int, default=8, metavar="N", help="of watches, an even number (default %(default)s)")
    option("--slow-pairs", type=int, default=20, metavar="N",
           help="of runs of the watched target, an even number (default %(default)s)")
    option("--seconds", type=float, default=3, metavar="S", help="of each watch (default %(default)s)")
    option("--rounds", type=int, default=4000, metavar="N", help="of the target (default %(default)s)")
    o = parse_seeded(parser)
    for pairs in (o.pairs, o.slow_pairs):
        if pairs < 2 or pairs % 2:
            parser.error("pairs come in an even number of at least 2: a block is two pairs")
    return o


def cpu_of(command):
    """CPU seconds of a command, its start included."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    process.stderr.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BenchError(f"'{command[0]}' ended with status {process.returncode}: {said.decode(errors='replace')}")
    return usage.ru_utime + usage.ru_stime


class Watchers:
    """Each watches a sleeping process for some seconds."""

    def __init__(self, build, seconds, scratch):
        self.assay, self.loop = str(build / "assay"), str(build / "bench" / "bench_statm_loop")
        self.seconds, self.report = seconds, scratch / "loop.json"

    def arms(self):
        return ["assay", "loop", "python"] + (["psutil"] if importlib.util.find_spec("psutil") else [])

    def cpu_s(self, arm, delay_ms):
        if arm == "loop":
            cpu_of([self.loop, str(self.report), str(delay_ms), "sleep", str(self.seconds)])
            return json.loads(self.report.read_text())["cpu_s"]
        target = subprocess.Popen(["sleep", str(self.seconds + 60)])
        try:
            return cpu_of(self.command(arm, target.pid, delay_ms / 1000))
        finally:
            target.kill()
            target.wait()

    def command(self, arm, pid, delay_s):
        words = [str(pid), str(delay_s), str(self.seconds)]
        if arm == "assay":
            return [self.assay, "spy", "-q", "--delay", words[1], "--until", words[2], words[0]]
        return [sys.executable, "-c", PYTHON_LOOP if arm == "python" else PSUTIL_LOOP, *words]


def compare_watchers(o, watchers, delay_ms, coin):
    arms = watchers.arms()
    runs = {arm: [] for arm in arms}
    for _ in range(o.pairs // 2):
        for arm in mirrored_order(arms, coin):
            runs[arm].append(watchers.cpu_s(arm, delay_ms))
    return {arm: {"share_of_a_core": median_interval([cpu / o.seconds for cpu in runs[arm]]),
                  "times_the_loop": median_interval(ratios(runs[arm], runs["loop"]))} for arm in arms}


def run_target(build, rounds, assay, delay_s):
    """What the target says that it took, with a watcher beside it or without."""
    target = subprocess.Popen([str(build / "bench" / "bench_spy_target"), str(rounds)], stdout=subprocess.PIPE)
    spy = None
    if assay:
        spy = subprocess.Popen([str(build / "assay"), "spy", "-q", "--delay", str(delay_s), str(target.pid)])
    out, _ = target.communicate()
    if spy and spy.wait():
        raise BenchError(f"assay spy ended with status {spy.returncode}")
    return json.loads(out)


def slowdown(o, build, delay_s, coin):
    runs = {"bare": [], "spied": []}
    run_target(build, o.rounds, False, delay_s)
    for _ in range(o.slow_pairs // 2):
        for arm in mirrored_order(["bare", "spied"], coin):
            runs[arm].append(run_target(build, o.rounds, arm == "spied", delay_s))
    return {key: median_interval(ratios([r[key] for r in runs["spied"]], [r[key] for r in runs["bare"]]))
            for key in ("cpu_s", "wall_s")}


def interval_text(figures, digits, factor=1.0):
    middle, low, high = figures
    text = f"{middle * factor:.{digits}f}"
    return text if low is None else f"{text} [{low * factor:.{digits}f}, {high * factor:.{digits}f}]"


def verdict(met, missed):
    return "met" if met else "missed" if missed else "not decided: the interval contains the goal"


def report(results):
    for delay, arms in results["watchers"].items():
        print(f"watching a process that sleeps, a reading every {delay} ms:")
        for arm, figures in arms.items():
            print(f"  {arm:7} {interval_text(figures['share_of_a_core'], 2, 100)}% of a core, "
                  f"{interval_text(figures['times_the_loop'], 2)} times the statm loop")
    if "10" in results["watchers"]:
        _, low, high = results["watchers"]["10"]["assay"]["times_the_loop"]
        if low is not None:
            print(f"  goal: assay at most {GOAL_LOOP} times the loop at 10 ms: "
                  f"{verdict(high <= GOAL_LOOP, low > GOAL_LOOP)}")
    for delay, figures in results["slowdown"].items():
        print(f"a process that maps and unmaps all the time, watched every {delay} ms against alone:")
        print(f"  CPU {interval_text(figures['cpu_s'], 4)}, wall {interval_text(figures['wall_s'], 4)}")
        _, low, high = figures["cpu_s"]
        if low is not None:
            inside = 1 - GOAL_SLOWDOWN <= low and high <= 1 + GOAL_SLOWDOWN
            print(f"  goal: the interval of the CPU time inside +-0.5%: "
                  f"{verdict(inside, low > 1 + GOAL_SLOWDOWN)}")
    if "psutil" not in results["watchers"]["10"]:
        print("left out: psutil is not installed")


def main():
    o = parse_options()
    coin, build = random.Random(o.seed), o.build.resolve()
    for program in ("assay", "bench/bench_statm_loop", "bench/bench_spy_target"):
        if not os.access(build / program, os.X_OK):
            raise BenchError(f"{build / program} is not there; run './dev build' first, or name the folder by --build")
    with tempfile.TemporaryDirectory(prefix="assay-spy-cost-") as scratch:
        watchers = Watchers(build, o.seconds, Path(scratch))
        results = {"seed": o.seed, "watchers": {}, "slowdown": {}}
        for delay_ms in (10, 1):
            results["watchers"][str(delay_ms)] = compare_watchers(o, watchers, delay_ms, coin)
        for delay_ms in (10, 1):
            results["slowdown"][str(delay_ms)] = slowdown(o, build, delay_ms / 1000, coin)
    if o.json:
        print(json.dumps(results, indent=1))
    else:
        report(results)


if __name__ == "__main__":
    try:
        main()
    except BenchError as trouble:
        print(f"spy-cost: {trouble}", file=sys.stderr)
        sys.exit(3)
    except KeyboardInterrupt:
        sys.exit(130)
