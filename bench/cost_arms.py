"""The arms of run-cost: each runs one target bare or under one observer, and reads what that cost.

Every target prints its own CPU time, wall time and context switches; what an observer adds around it is seen from here.
"""
import json
import os
import shutil
import subprocess
import time

TARGETS = {
    "nothing": "a program that ends at once: what starting and finishing cost",
    "compute": "one process that only computes",
    "mappings": "one process that makes 2,000 mappings and touches all 2 GB of them",
    "living": "1,000 children that live for 2 s and wake up ten times a second",
    "short": "2,000 programs one after the other",
}
INTERVAL_MS = 10  # of assay by default, and of the loop beside it
GNU_TIME = "/usr/bin/time"


class BenchError(Exception):
    """Why the benchmark cannot go on: one sentence."""


class Tools:
    """Where the programs are, and a scratch folder for what they write."""

    def __init__(self, build, scratch):
        self.assay = build / "assay"
        self.target = build / "bench" / "bench_cost_target"
        self.loop = build / "bench" / "bench_statm_loop"
        self.scratch = scratch
        for program in (self.assay, self.target, self.loop):
            if not os.access(program, os.X_OK):
                raise BenchError(f"{program} is not there; run './dev build' first, or name the folder by --build")


def succeeds(command):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return False, ""
    return done.returncode == 0, done.stdout.decode(errors="replace")


def missing_peers():
    """Peers that cannot run here, with the reason."""
    missing = {}
    works, text = succeeds([GNU_TIME, "--version"])
    if not works or "GNU" not in text:
        missing["time"] = f"{GNU_TIME} is not GNU time"
    perf = shutil.which("perf")
    if not perf:
        missing["perf"] = "perf is not installed"
    elif not succeeds([perf, "stat", "-o", os.devnull, "true"])[0]:
        missing["perf"] = "'perf stat' is not allowed here"
    return missing


def command_of(arm, target, tools):
    bare = [str(tools.target), target]
    out = str(tools.scratch / "observer")
    if arm == "bare":
        return bare
    if arm == "assay":
        return [str(tools.assay), "run", "-q", "-o", out, "--interval", str(INTERVAL_MS), "--", *bare]
    if arm == "loop":
        return [str(tools.loop), out, str(INTERVAL_MS), *bare]
    if arm == "time":
        return [GNU_TIME, "-v", "-o", out, *bare]
    return [shutil.which("perf"), "stat", "-o", out, *bare]


def spawn_and_wait(command, out, err):
    """Wall seconds, and the rusage of the command and all it waited for."""
    create = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(out), create, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, str(err), create, 0o600),
    ]
    start = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - start
    if os.waitstatus_to_exitcode(status) != 0:
        words = " ".join(command)
        said = err.read_text(errors="replace").strip() or "nothing on stderr"
        raise BenchError(f"'{words}' ended with status {os.waitstatus_to_exitcode(status)}: {said}")
    return wall, usage


def number(record, *path):
    """A number of run.json, or None where the run has none."""
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def read_assay(folder):
    """assay's own account of the run."""
    run = json.loads((folder / "run.json").read_text())
    # While the command ran. The helper and the making of the results have lines of their own.
    cpu = number(run, "assay_cost", "cpu_s")
    if cpu is None:
        raise BenchError(f"{folder}/run.json has no assay_cost.cpu_s")
    return {
        "own_cpu_s": cpu + (number(run, "assay_cost", "helper_cpu_s") or 0.0),
        "finish_cpu_s": number(run, "assay_cost", "finish_cpu_s"),
        "own_peak_mib": number(run, "assay_cost", "max_rss_mib"),
        "interval_ms": number(run, "assay_cost", "interval_ms"),
        "observed_s": number(run, "wall_s"),
        "observed_cpu_s": number(run, "cpu_s"),
        "perturbed": run.get("perturbed"),
    }


def run_arm(arm, target, tools):
    """One run. Seconds; `target_*` by the target itself, `outer_*` around the whole command."""
    observer = tools.scratch / "observer"
    out, err = tools.scratch / "stdout", tools.scratch / "stderr"
    wall, usage = spawn_and_wait(command_of(arm, target, tools), out, err)
    try:
        own = json.loads(out.read_text())
    except ValueError as trouble:
        raise BenchError(f"the target '{target}' printed no JSON under '{arm}': {trouble}") from None
    result = {
        "target_cpu_s": own["cpu_s"],
        "target_wall_s": own["wall_s"],
        "target_switches": own["switches"],
        "outer_wall_s": wall,
        "outer_cpu_s": usage.ru_utime + usage.ru_stime,
        "outer_peak_mib": usage.ru_maxrss / 1024,  # of the largest process: observer, target, or this one at the spawn
    }
    if arm == "assay":
        result.update(read_assay(observer))
        shutil.rmtree(observer)
    elif arm == "loop":
        result["own_cpu_s"] = json.loads(observer.read_text())["cpu_s"]
    if observer.exists():
        observer.unlink()
    return result
