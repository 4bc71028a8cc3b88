"""Planted truths: programs that one known thing holds back, and run.json must say which.

Where other programs would change the truth, a run is repeated until they left it alone.
"""
import os
import pathlib
import resource
import subprocess
import time

import pytest

from groups import make_group
from need import need
from waiting import wait_for

MIB = 1 << 20
LIMITS = {"cpu", "memory bandwidth", "ram", "disk", "gpu", "pcie", "wait", "network", "unknown"}


def cpus():
    return sorted(os.sched_getaffinity(0))


def two_cpus():
    """For preexec_fn: whatever follows runs on the same two CPUs, however many there are."""
    os.sched_setaffinity(0, cpus()[:2])


def need_two_cpus():
    need("cpus", len(cpus()) >= 2, "only one CPU may be used")


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """What is measured of the machine is kept for all tests of this file, and away from the user's."""
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture
def measure(assay, cache, tmp_path):
    """measure("CMD", ...): run.json of a run of the command."""
    count = 0

    def run(*command, **popen):
        nonlocal count
        count += 1
        got = assay("run", "--precheck", "off", "-q", "-o", f"out{count}", "--", *command, env=cache, **popen)
        assert got.status == 0, got
        result = got.run_json
        for limit in result["limits"]:
            assert limit["limit"] in LIMITS
            assert limit["confidence"] in ("high", "medium", "low")
            assert limit["why"].endswith(".")
        assert [limit["phase"] for limit in result["limits"]] == [phase["name"] for phase in result["phases"]]
        return result

    return run


def machine_busy_s():
    """CPU seconds of all programs, and those that the hypervisor gave to others."""
    ticks = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:8])) / os.sysconf("SC_CLK_TCK")


def own_busy_s():
    times = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(t.ru_utime + t.ru_stime for t in times)


def others_use(seconds):
    """CPUs that other programs use, over so long."""
    began, before = time.monotonic(), machine_busy_s() - own_busy_s()
    time.sleep(seconds)
    return (machine_busy_s() - own_busy_s() - before) / (time.monotonic() - began)


@pytest.fixture
def measure_alone(measure):
    """The same, repeated until other programs have used less than a tenth of a CPU meanwhile."""

    def run(*command, **popen):
        for _ in range(8):
            waits = 0
            while others_use(0.2) > 0.1 and waits < 20:
                waits += 1
            began, before = time.monotonic(), machine_busy_s() - own_busy_s()
            result = measure(*command, **popen)
            others = (machine_busy_s() - own_busy_s() - before) / (time.monotonic() - began)
            if others < 0.1:
                return result
        return need("quiet", False, f"other programs use {others:.2f} CPUs")

    return run


def limit(run, phase="run"):
    return next(limit for limit in run["limits"] if limit["phase"] == phase)


def verdict(run, phase="run"):
    found = limit(run, phase)
    return found["limit"], found.get("detail")


def sure(run, phase="run"):
    return limit(run, phase)["confidence"] != "low"


def told(run):
    """The verdicts as text, for an assertion that fails."""
    return "\n".join(f"{one['phase']}: {one['limit']}, {one.get('detail')}, {one['confidence']}: {one['why']} "
                     f"{one['evidence']}" for one in run["limits"])


# cpu


def test_a_spinner_is_held_back_by_one_thread(measure_alone, targets):
    need_two_cpus()
    run = measure_alone(targets("spin"), "1", "2")
    assert verdict(run) == ("cpu", "one thread"), told(run)
    assert sure(run), told(run)


def test_two_spinners_on_two_cpus_are_all_threads(measure_alone, targets):
    need_two_cpus()
    run = measure_alone(targets("spin"), "2", "2", preexec_fn=two_cpus)
    assert verdict(run) == ("cpu", "all threads"), told(run)
    assert sure(run), told(run)
    assert "2 CPUs" in limit(run)["why"]


@pytest.fixture
def competitors(targets):
    """Three spinners on the two CPUs of two_cpus, until the test ends; a kernel that shares CPUs out among sessions
    (autogroup) would give three of one session no more than one of another."""
    spinners = [subprocess.Popen([targets("spin"), "1", "100000"], preexec_fn=two_cpus, start_new_session=True)
                for _ in range(3)]
    try:
        for spinner in spinners:
            wait_for(lambda pid=spinner.pid: used_ticks(pid) > 0, "a spinner to spin")
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def used_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11])


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_spinner_beside_three_others_is_contended(measure, targets, competitors, threads):
    need_two_cpus()
    run = measure(targets("spin"), threads, "2", preexec_fn=two_cpus)
    assert verdict(run) == ("cpu", "contended"), told(run)
    assert sure(run), told(run)
    assert "other programs" in limit(run)["why"]


def test_threads_that_hand_on_a_lock_are_one_thread_and_not_surely(measure_alone, targets):
    need_two_cpus()
    run = measure_alone(targets("lock_chain"), "2")
    assert verdict(run) == ("cpu", "one thread"), told(run)
    assert limit(run)["confidence"] != "high", told(run)


def test_half_asleep_is_neither_surely_waiting_nor_surely_computing(measure, targets):
    run = measure(targets("spin"), "1", "2", "20", "20")
    assert limit(run)["confidence"] != "high", told(run)


@pytest.fixture
def group():
    """group(memory=BYTES, cpus=CPUS): a control group that ends with the test."""
    made = []

    def make(**limits):
        made.append(make_group(**limits))
        return made[-1]

    yield make
    for one in made:
        one.remove()


WAYS_IN = ["started inside", "moves itself"]


def run_in(group, way, measure, *command):
    """A run that begins inside the group together with assay, or whose command moves there by itself."""
    if way == "started inside":
        return measure(*command, preexec_fn=group.enter)
    return measure(*group.entering(*command))


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("way", WAYS_IN)
def test_a_quota_is_named(measure, targets, group, way, threads):
    run = run_in(group(cpus=0.5), way, measure, targets("spin"), threads, "2")
    assert verdict(run) == ("cpu", "quota"), told(run)
    assert sure(run), told(run)
    assert "quota of 0.5 CPU" in limit(run)["why"]


# waiting


def test_a_sleeper_waits(measure):
    run = measure("/bin/sleep", "2")
    assert (*verdict(run), limit(run)["confidence"]) == ("wait", None, "high"), told(run)


def test_a_writer_whose_reader_is_slow_waits(measure):
    run = measure("sh", "-c", "yes | (sleep 2; head -c 1)")
    assert verdict(run) == ("wait", None), told(run)
    assert sure(run), told(run)


# memory


def sweep_size_mib():
    """More than the caches of so many CPUs hold together."""
    size = max(600, 64 * len(cpus()))
    free = next(int(line.split()[1]) // 1024 for line in pathlib.Path("/proc/meminfo").read_text().splitlines()
                if line.startswith("MemAvailable"))
    need("memory", free > 2 * size, f"{free} MiB of memory are free, and {2 * size} are asked for")
    return str(size)


def sweep(measure, targets, how):
    return measure(targets("sweep"), how, str(len(cpus())), sweep_size_mib(), "3")


def test_streaming_through_memory_is_memory_bandwidth(measure_alone, targets):
    # A guess from looks at pages, "low" at best: one look too few in a phase of three seconds may spoil it.
    for _ in range(3):
        run = sweep(measure_alone, targets, "stream")
        if verdict(run, "sweep") == ("memory bandwidth", None):
            break
    assert verdict(run, "sweep") == ("memory bandwidth", None), told(run)
    assert "GB/s" in limit(run, "sweep")["why"]


def test_going_from_place_to_place_in_memory_is_not_surely_memory_bandwidth(measure, targets):
    run = sweep(measure, targets, "gather")
    assert verdict(run, "sweep") != ("memory bandwidth", None) or not sure(run, "sweep"), told(run)


def test_computing_much_on_each_byte_is_cpu(measure_alone, targets):
    need_two_cpus()
    run = sweep(measure_alone, targets, "compute")
    assert verdict(run, "sweep") == ("cpu", "all threads"), told(run)


# disk and ram


def bytes_from_disk():
    """What this process has read at the storage layer."""
    lines = pathlib.Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


@pytest.fixture
def cold_file(tmp_path):
    """cold_file(MIB): a file of random bytes that is on a disk and not in the page cache."""

    def make(mib):
        path = tmp_path / "file"
        with open(path, "wb") as file:
            for _ in range(mib):
                file.write(os.urandom(MIB))
        with open(path, "rb", buffering=0) as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            before = bytes_from_disk()
            file.read(MIB)
            need("disk", bytes_from_disk() - before >= MIB, f"{tmp_path} is not on a disk")
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return path

    yield make
    (tmp_path / "file").unlink(missing_ok=True)


@pytest.mark.parametrize("how", ["read", "map", "sync"])
def test_work_on_a_file_that_is_not_in_memory_is_disk(measure_alone, targets, cold_file, how):
    run = measure_alone(targets("file_io"), how, cold_file(512), "2")
    assert verdict(run) == ("disk", None), told(run)
    assert sure(run), told(run)
    assert limit(run)["why"].startswith("Writing to" if how == "sync" else "Reading from")
    assert "/s" in limit(run)["why"]


@pytest.mark.parametrize("way", WAYS_IN)
def test_a_mapped_file_larger_than_the_memory_limit_is_ram(measure, targets, cold_file, group, way):
    run = run_in(group(memory=160 * MIB), way, measure, targets("file_io"), "again", cold_file(256), "2")
    assert verdict(run, "again") == ("ram", None), told(run)
    assert sure(run, "again"), told(run)
    assert limit(run, "again")["why"].startswith("Memory is short under the control group's limit of 160 MiB")
