"""What limits a real engine: with enough memory, short of memory, beside busy neighbours. The engine and its model are
those that `./dev demo --llm` puts into the cache folder; nothing is downloaded here."""
import os
import pathlib
import shutil
import subprocess

import pytest

from conftest import ROOT
from groups import make_group
from need import need
from waiting import wait_for

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "assay" / "llm-demo"
MODEL = CACHE / "random-weights-1.gguf"
MIB = 1 << 20


@pytest.fixture
def measure(assay, tmp_path):
    """run.json of a run of the engine."""
    need("llm", MODEL.exists() and shutil.which("node"), "./dev demo --llm has not been here")

    def run(**popen):
        got = assay("run", "--precheck", "off", "-q", "--summary-only", "-o", "out", "--", "sh", "-c",
                    'exec node "$@" 2>&1', "sh", ROOT / "examples" / "llm.mjs", CACHE, MODEL,
                    env={"XDG_CACHE_HOME": str(tmp_path / "cache")}, **popen)
        assert got.status == 0, got
        return got.run_json

    return run


def limit(run, phase):
    found = [one for one in run["limits"] if one["phase"] == phase]
    assert len(found) == 1, run["limits"]
    return found[0]


def told(run):
    return "\n".join(f"{one['phase']}: {one['limit']}, {one.get('detail')}, {one['confidence']}: {one['why']}"
                     for one in run["limits"])


def drop_from_cache():
    with open(MODEL, "rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_whole():
    with open(MODEL, "rb") as file:
        while file.read(16 * MIB):
            pass


def test_with_enough_memory_decode_is_cpu_or_bandwidth(measure):
    read_whole()
    run = measure()
    weights = run["weights"]
    # Neighbours of the test may come and go: what it must not be is ram, disk or wait.
    assert limit(run, "decode")["limit"] in ("cpu", "memory bandwidth"), told(run)
    assert 0.5 * weights["file_mib"] < weights["mib_per_token"] <= weights["file_mib"]
    assert run["throughput"]["decode"]["tokens_per_s"] > 0
    cached = [one for one in run["movement"] if MODEL.name in one["text"]]
    assert cached and cached[0]["evidence"]["cached_before_share"] > 0.9, run["movement"]


def test_short_of_memory_decode_is_ram_though_its_threads_look_busy(measure):
    group = make_group(memory=220 * MIB)
    try:
        drop_from_cache()
        run = measure(preexec_fn=group.enter)
    finally:
        group.remove()
    found = limit(run, "decode")
    assert (found["limit"], found["confidence"]) == ("ram", "high"), told(run)
    assert "limit of 220 MiB" in found["why"]
    assert found["evidence"]["refault_share_of_read"] > 0.9
    assert any(one["level"] == "warning" and one["text"].startswith("decode") for one in run["movement"])


def spin():
    return subprocess.Popen(["sh", "-c", "while :; do :; done"], start_new_session=True)


def used_ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11])


def test_beside_two_neighbours_for_each_cpu_decode_is_contended(measure):
    neighbours = [spin() for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        for neighbour in neighbours:
            wait_for(lambda pid=neighbour.pid: used_ticks(pid) > 0, "a neighbour to be busy")
        run = measure()
    finally:
        for neighbour in neighbours:
            neighbour.kill()
            neighbour.wait()
    found = limit(run, "decode")
    assert (found["limit"], found["detail"]) == ("cpu", "contended"), told(run)
    assert found["confidence"] != "low", told(run)
