"""The arms of sampler-cost: each runs a program with a fixed amount of work, bare or under one sampler.

The program measures itself; how many samples were taken is read from what each sampler leaves behind.
"""
import json
import os
import shutil
import struct
from pathlib import Path

from cost_arms import BenchError, spawn_and_wait, succeeds

TARGETS = {
    "threads": ("bench_sampler_target", "two busy threads that only compute"),
    "deep": ("bench_sampler_target_deep", "two busy threads at the bottom of 50 C++ frames, which vary"),
}
SAMPLER = "libassay-sampler.so"
PROFILER = "libprofiler.so.0"
RING_MAGIC, RING_VERSION = b"ASSAYSMP", 1


class Tools:
    """Where the programs are, and a scratch folder for what they write."""

    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.assay, self.sampler = build / "assay", build / SAMPLER
        for program in (self.assay, self.sampler):
            if not program.exists():
                raise BenchError(f"{program} is not there; run './dev build' first, or name the folder by --build")

    def target(self, name):
        return self.build / "bench" / TARGETS[name][0]


def missing_peers(tools):
    """{family of arms: why it cannot run here}."""
    missing = {}
    probe = f"LD_PRELOAD={PROFILER} exec /bin/true"
    works = succeeds(["/bin/sh", "-c", f"test -z \"$({probe} 2>&1)\""])[0]
    if not works:
        missing["gperftools"] = f"the loader finds no {PROFILER} (Debian: libgoogle-perftools4)"
    perf = shutil.which("perf")
    if not perf:
        missing["perf"] = "perf is not installed"
    elif not succeeds([perf, "record", "-q", "-e", "cpu-clock", "-o", str(tools.scratch / "probe"), "true"])[0]:
        missing["perf"] = "'perf record' is not allowed here"
    return missing


def command_of(family, hz, program, tools):
    """All go through `env`, so that all pay for one more exec."""
    out = tools.scratch / "observer"
    env = shutil.which("env")
    if family == "bare":
        return [env, *program]
    if family == "sampler":
        out.mkdir()
        return [env, f"LD_PRELOAD={tools.sampler}", f"ASSAY_SAMPLER={out}", f"ASSAY_SAMPLER_HZ={hz}", *program]
    if family == "gperftools":
        return [env, f"LD_PRELOAD={PROFILER}", f"CPUPROFILE={out}", f"CPUPROFILE_FREQUENCY={hz}", *program]
    if family == "assay":
        return [str(tools.assay), "run", "-q", "--precheck", "off", f"--cpu-profile={hz}", "-o", str(out), "--", env,
                *program]
    return [shutil.which("perf"), "record", "-q", "-e", "cpu-clock", "-F", str(hz), "--call-graph", "dwarf", "-o",
            str(out), env, *program]


def ring_counts(folder):
    """What the rings in the folder say (src/wire/sampler.h): signals taken, their weight, seconds in the handler."""
    counts = {"samples": 0, "weight": 0, "dropped": 0, "handler_s": 0.0}
    for path in folder.glob("*.ring"):
        with open(path, "rb") as ring:
            magic, version, _, _, _, _, size, slot_max, at = struct.unpack("=8sIiiIIIII", ring.read(40))
            if magic != RING_MAGIC or version != RING_VERSION:
                raise BenchError(f"{path} is no ring file of version {RING_VERSION}")
            for slot in range(slot_max):
                ring.seek(at + slot * size)
                head = ring.read(72)
                if len(head) < 72:
                    break
                _, _, _, _, deliveries, weight, dropped, _, handler_ns, _ = struct.unpack("=Ii8Q", head)
                counts["samples"] += deliveries
                counts["weight"] += weight
                counts["dropped"] += dropped
                counts["handler_s"] += handler_ns / 1e9
    return counts


def gperftools_counts(path):
    """The file is words: 0, 3, 0, period in us, 0; then per stack its count, its depth, its addresses; last 0, 1, 0."""
    data = path.read_bytes()
    words = struct.unpack(f"={len(data) // 8}Q", data[:len(data) // 8 * 8])
    samples, at = 0, 2 + (words[1] if len(words) > 1 else 0)
    while at + 2 < len(words) and words[at] > 0:
        samples += words[at]
        at += 2 + words[at + 1]
    return {"samples": samples}


def assay_counts(folder):
    run = json.loads((folder / "run.json").read_text())
    profile = run.get("profile")
    if profile is None:
        raise BenchError(f"{folder}/run.json has no profile: {run.get('warnings')}")
    return {"samples": profile["deliveries"], "weight": profile["samples"], "dropped": profile["dropped"]}


COUNTS = {"sampler": ring_counts, "gperftools": gperftools_counts, "assay": assay_counts}


def run_arm(arm, program, tools):
    """One run of (family, hz). Seconds; `target_*` and `*_kib` by the target itself, `outer_*` around the command."""
    family, hz = arm
    observer = tools.scratch / "observer"
    out, err = tools.scratch / "stdout", tools.scratch / "stderr"
    wall, usage = spawn_and_wait(command_of(family, hz, program, tools), out, err)
    try:
        own = json.loads(out.read_text().splitlines()[-1])
    except (ValueError, IndexError) as trouble:
        raise BenchError(f"'{program[0]}' printed no JSON under '{family}': {trouble}") from None
    result = {"target_cpu_s": own["cpu_s"], "target_wall_s": own["wall_s"], "rss_kib": own["rss_kib"],
              "brought_kib": own["brought_kib"], "outer_wall_s": wall,
              "outer_cpu_s": usage.ru_utime + usage.ru_stime}
    if family in COUNTS:
        result.update(COUNTS[family](observer))
    remove(observer)
    return result


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    for file in (path, *path.parent.glob(f"{path.name}_*")):  # gperftools adds the pid where a program forks
        if file.exists():
            os.unlink(file)


def program_of(tools, target, slices, threads):
    return [str(Path(tools.target(target))), str(slices), str(threads)]
