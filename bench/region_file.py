#!/usr/bin/env python3
"""What large files of regions cost: a recording of many calls is made into a file, and its statistics are computed by
assay inspect, by h5py and numpy, and not at all, by reading the columns alone.

Prints seconds (the least of several rounds, in turn) and memory beside the goals; fails where figures differ. A missed
goal is a result, not an error. Start it through region-file.sh.
"""
import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


class BenchError(Exception):
    """What kept the benchmark from its work."""


def parse_options():
    parser = argparse.ArgumentParser(prog="region-file.sh", description=__doc__)
    option = parser.add_argument
    option("--build", type=Path, default=Path("build"), metavar="DIR", help="build folder (default: build)")
    option("--calls", type=int, default=100_000_000, metavar="N", help="calls recorded (default %(default)s)")
    option("--threads", type=int, default=8, metavar="N", help="threads that recorded them (default %(default)s)")
    option("--rounds", type=int, default=3, metavar="N", help="rounds of readers (default %(default)s)")
    option("--file", type=Path, metavar="FILE.h5", help="read this columnar file instead of making one")
    option("--uncompressed", action="store_true", help="read a copy whose columns of times are not compressed")
    option("--no-numpy", action="store_true", help="leave out h5py and numpy")
    option("--json", action="store_true", help="print all figures as JSON instead")
    return parser.parse_args()


def run(argv):
    """Seconds, peak resident bytes, and what it printed."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as out:
        pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - begin
        if status:
            raise BenchError(f"{' '.join(argv)}: exit status {os.waitstatus_to_exitcode(status)}")
        out.seek(0)
        return seconds, usage.ru_maxrss * 1024, out.read().decode()


def make_file(o, folder):
    """The file of a recording, with the seconds and bytes that it took."""
    recording, path = folder / "recording", folder / "run.h5"
    recording.mkdir()
    run([str(o.build / "bench" / "bench_region_file_make"), str(recording), str(o.calls), str(o.threads)])
    seconds, memory, _ = run([str(o.build / "assay"), "merge", str(recording), "-o", str(path)])
    for file in recording.iterdir():
        file.unlink()
    return path, {"merge_s": seconds, "merge_bytes": memory, "calls_per_s": o.calls / seconds,
                  "bytes_per_call": path.stat().st_size / o.calls}


def copy_uncompressed(path, copy):
    """The same chunks as they are, without the columns that statistics do not need."""
    import h5py
    with h5py.File(path) as source, h5py.File(copy, "w") as out:
        out.attrs.update(source.attrs)
        for group in set(source) - {"events"}:
            source.copy(group, out)
        for name in ("start_times", "end_times"):
            column = source["events"][name]
            rows = out.create_dataset(f"events/{name}", shape=column.shape, dtype=column.dtype, chunks=column.chunks)
            for at in range(0, len(column), 1 << 22):
                rows[at:at + (1 << 22)] = column[at:at + (1 << 22)]


def uncompressed(path):
    """Made by another process: what this one has in memory would count as that of those it starts."""
    copy = path.with_suffix(".plain.h5")
    worker = multiprocessing.Process(target=copy_uncompressed, args=(path, copy))
    worker.start()
    worker.join()
    if worker.exitcode:
        raise BenchError("the copy that is not compressed was not made")
    return copy


def readers(o, path):
    found = {"plain": [str(o.build / "bench" / "bench_region_plain_read"), str(path)],
             "inspect": [str(o.build / "assay"), "inspect", "--json", str(path)],
             "diff": [str(o.build / "assay"), "regions", "diff", "--json", str(path), str(path)]}
    if not o.no_numpy:
        found["numpy"] = [sys.executable, str(HERE / "region_numpy.py"), str(path)]
    return found


def measure(o, path):
    """By reader: least seconds, largest memory, what it printed."""
    best = {}
    for _ in range(o.rounds):
        for name, argv in readers(o, path).items():
            seconds, memory, text = run(argv)
            before = best.get(name, (math.inf, 0, ""))
            best[name] = (min(before[0], seconds), max(before[1], memory), text)
    return best


def compare(inspected, numpy_rows):
    """Every figure of both is the same, to 1 ns or 1e-12 of it."""
    rows = {row["name"]: row for row in inspected["regions"]}
    if rows.keys() != numpy_rows.keys():
        raise BenchError("assay inspect and numpy have different regions")
    for name, wanted in numpy_rows.items():
        for key, value in wanted.items():
            if not math.isclose(rows[name][key], value, rel_tol=1e-12, abs_tol=1):
                raise BenchError(f"region '{name}': {key} is {rows[name][key]}, by numpy {value}")


def figures_of(o, path, made):
    best = measure(o, path)
    figures = {"calls": int(best["plain"][2].split()[0]), **made}
    for name, (seconds, memory, _) in best.items():
        figures[f"{name}_s"], figures[f"{name}_bytes"] = seconds, memory
    figures["inspect_to_plain"] = figures["inspect_s"] / figures["plain_s"]
    figures["diff_to_inspect"] = figures["diff_s"] / figures["inspect_s"]
    if "numpy" in best:
        compare(json.loads(best["inspect"][2]), json.loads(best["numpy"][2]))
        figures["numpy_to_inspect"] = figures["numpy_s"] / figures["inspect_s"]
    return figures


# key, what it is, goal, whether the figure must be at most or at least that
GOALS = (
    ("calls_per_s", "merge: calls per second", 5e6, "least"),
    ("bytes_per_call", "merge: bytes per call in the file", 12, "most"),
    ("inspect_bytes", "inspect: memory, bytes", 300e6, "most"),
    ("inspect_to_plain", "inspect: times a plain read", 3, "most"),
    ("numpy_to_inspect", "inspect: times faster than h5py and numpy", 5, "least"),
    ("diff_to_inspect", "regions diff of two: times inspect", 2, "most"),
)


def print_text(figures):
    print(f"{figures['calls']:,} calls")
    for name in ("plain", "inspect", "diff", "numpy"):
        if f"{name}_s" in figures:
            print(f"  {name:8} {figures[f'{name}_s']:8.2f} s {figures[f'{name}_bytes'] / 1e6:8.0f} MB")
    for key, what, goal, way in GOALS:
        if key in figures:
            met = figures[key] <= goal if way == "most" else figures[key] >= goal
            print(f"{'met   ' if met else 'MISSED'}  {what}: {figures[key]:.4g} (goal: at {way} {goal:g})")


def main():
    o = parse_options()
    try:
        with tempfile.TemporaryDirectory(prefix="assay-region-file-") as folder:
            path, made = (o.file, {}) if o.file else make_file(o, Path(folder))
            figures = figures_of(o, uncompressed(path) if o.uncompressed else path, made)
    except (BenchError, OSError) as error:
        print(f"region-file.sh: {error}", file=sys.stderr)
        return 3
    if o.json:
        print(json.dumps(figures, indent=1))
    else:
        print_text(figures)
    return 0


sys.exit(main())
