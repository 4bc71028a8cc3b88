#!/usr/bin/env python3
"""Makes huge profiles and runs `assay tree` on them; graph-size.sh runs it. See docs/benchmarks.md."""

import argparse
import multiprocessing
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

CALLS = 10  # of other functions by each one
SEED = 8
SECONDS, MIB = 10, 1024  # the goal
CHUNK = 10_000  # functions that are written at once

STYLES = {
    "pstats": ["flat", "tree", "reference text", "reference rows", "reference json", "reference flat"],
    "callgrind": ["flat", "tree", "reference rows"],
    "graph": ["flat", "tree", "reference rows"],
}
PSTATS = "import pstats, sys; pstats.Stats(sys.argv[1]).sort_stats('tottime').print_stats(20)"


def callees(functions):
    """For each function those that it calls: all others alike often, so that nothing lies near in memory."""
    rng = random.Random(SEED)
    for function in range(functions):
        yield function, [rng.randrange(functions) for _ in range(CALLS)]


def seconds(number):
    """A time as cProfile has them: nanoseconds, made a double."""
    return number % 1_000_003 * 1e-9


def write_callgrind(out, functions):
    out.write("# callgrind format\nversion: 1\ncreator: graph_size.py\npositions: line\nevents: Ir\n")
    numbers = {}
    lines = []

    def name(function):
        if function in numbers:
            return f"({numbers[function]})"
        numbers[function] = len(numbers) + 1
        return f"({numbers[function]}) function_{function}"

    out.write("fl=(1) program.c\n")
    for function, called in callees(functions):
        lines.append(f"fn={name(function)}\n{function % 5000 + 1} {function % 977 + 1}\n")
        lines += [f"cfn={name(c)}\ncalls=3 {c % 5000 + 1}\n+1 {c % 99_991}\n" for c in called]
        if function % CHUNK == CHUNK - 1 or function == functions - 1:
            out.write("".join(lines))
            lines.clear()


def write_graph(out, functions):
    out.write("assay-graph 1\nunit\ts\t1\nestimated\t0\nnotes\t0\n")
    out.write(f"nodes\t{functions}\n")
    for f in range(functions):
        out.write(f"n\tprogram.c\t{f % 5000 + 1}\tfunction_{f}\t-\t3\t3\t{seconds(f):.15g}\t{2 * seconds(f):.15g}\n")
    out.write(f"edges\t{sum(len(set(called)) for _, called in callees(functions))}\n")
    for f, called in callees(functions):
        for c in sorted(set(called)):
            out.write(f"e\t{f}\t{c}\t1\t2\t{seconds(c):.15g}\t{seconds(f + c):.15g}\n")
    out.write("ways\t0\nend\n")


def write_pstats(out, functions):
    """As marshal writes the dictionary of cProfile, without having it in memory: keys are references after the first
    time."""
    numbers = {}
    parts = [b"\xfb"]  # a dictionary that is object 0
    count = 1

    def key(function):
        nonlocal count
        if function in numbers:
            return b"r" + struct.pack("<I", numbers[function])
        numbers[function] = count
        count += 1
        name = b"function_%d" % function
        return b"\xa9\x03" + b"z\x0aprogram.py" + b"i" + struct.pack("<i", function % 5000 + 1) + b"z" + bytes(
            [len(name)]) + name

    figures = struct.Struct("<cicicdcd")
    for function, callers in callees(functions):
        parts.append(key(function) + b"\xa9\x05" + figures.pack(
            b"i", 3, b"i", 4, b"g", seconds(function), b"g", 2 * seconds(function)) + b"{")
        count += 1
        for caller in set(callers):
            parts.append(key(caller) + b")\x04" + figures.pack(
                b"i", 2, b"i", 1, b"g", seconds(caller), b"g", seconds(caller + function)))
        parts.append(b"0")
        if function % CHUNK == CHUNK - 1:
            out.write(b"".join(parts))
            parts.clear()
    out.write(b"".join(parts) + b"0")


def make(name, path, functions):
    """In a process of its own: what a child's parent once needed would count as the child's memory."""
    write, mode = WRITERS[name]
    with open(path, mode) as out:
        write(out, functions)


WRITERS = {"pstats": (write_pstats, "wb"), "callgrind": (write_callgrind, "w"), "graph": (write_graph, "w")}


def fail(sentence):
    print(f"graph-size: {sentence}", file=sys.stderr)
    sys.exit(3)


def measured(command):
    """Seconds on the clock, seconds of CPU time and MiB at the most of a command, which must succeed."""
    begin = os.times().elapsed
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        fail(f"{' '.join(command)}: exit status {child.returncode}")
    return os.times().elapsed - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def show(what, command, goals=False):
    wall, cpu, peak = measured(command)
    missed = [name for name, met in (("time", wall <= SECONDS), ("memory", peak <= MIB)) if not met]
    verdict = "" if not goals else f"  missed: {', '.join(missed)}" if missed else "  met"
    print(f"{what:30} {wall:8.1f} s {cpu:8.1f} s CPU {peak:8.0f} MiB{verdict}", flush=True)


def options_of(style):
    kind, _, layout = style.rpartition(" ")
    if kind:
        return ["--style", "reference", "--format", layout]
    return ["--format", "flat"] if layout == "flat" else []


def measure(assay, name, path, peers):
    size = os.path.getsize(path) / 2**20
    print(f"{name}: {size:.0f} MiB")
    for style in STYLES[name]:
        show(f"  assay tree, {style}", [assay, "tree", path] + options_of(style), True)
    if peers and name == "pstats":
        show("  Python's pstats", [sys.executable, "-c", PSTATS, path])
    if peers and name == "callgrind" and shutil.which("callgrind_annotate"):
        show("  callgrind_annotate", ["callgrind_annotate", path])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, metavar="DIR", help="where assay was built")
    parser.add_argument("--functions", type=int, default=1_000_000, help="each of which calls ten others")
    parser.add_argument("--only", choices=sorted(WRITERS), action="append", help="this input (may be repeated)")
    parser.add_argument("--no-peers", action="store_true", help="without Python's pstats and callgrind_annotate")
    parser.add_argument("--keep", metavar="DIR", help="make the files there, or take those that are there")
    args = parser.parse_args()
    print(f"goal: {SECONDS} s on a quiet machine, {MIB} MiB")
    with tempfile.TemporaryDirectory(prefix="assay-graph-size-") as temporary:
        for name in args.only or WRITERS:
            path = os.path.join(args.keep or temporary, f"{name}-{args.functions}")
            if not os.path.exists(path):
                child = multiprocessing.Process(target=make, args=(name, path, args.functions))
                child.start()
                child.join()
                if child.exitcode:
                    fail(f"{path} cannot be made")
            measure(os.path.join(args.build, "assay"), name, path, not args.no_peers)
            if not args.keep:
                os.unlink(path)


if __name__ == "__main__":
    main()
