"""timeline.h5, written from segments made here byte by byte as docs/formats.md has them, and read by h5py."""
import math
import os
import pathlib
import shutil
import struct
import subprocess

import pytest
from conftest import BUILD
from need import need

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")

START = 5_000_000_000


def record(kind, payload):
    size = (16 + len(payload) + 7) // 8 * 8
    return struct.pack("=IHHII", size, kind, 0, 0, len(payload)) + payload.ljust(size - 16, b"\0")


def series(number, name, unit="", source="", scope="", counter=False):
    texts = b"".join((t if isinstance(t, bytes) else t.encode()) + b"\0" for t in (name, unit, source, scope))
    return record(1, struct.pack("=II", number, counter) + texts)


def points(t, values):
    return record(2, struct.pack("=q", START + t) + b"".join(struct.pack("=IId", i, 0, v) for i, v in values))


@pytest.fixture
def build(targets, tmp_path):
    """build([record, ...]): the finished process and its file. A copy of the program has the plug-in beside it."""
    if not (BUILD / "assay-hdf5.so").exists():
        need("hdf5", False, "assay was built without HDF5")
    program = pathlib.Path(shutil.copy2(targets("timeline_file"), tmp_path))
    plugin = tmp_path / "assay-hdf5.so"
    plugin.symlink_to(BUILD / "assay-hdf5.so")

    def run(records, with_plugin=True):
        body = b"".join(records)
        header = struct.pack("=8sIIiIQqqQQQiI", b"ASSAYSEG", 1, 1, os.getpid(), 4096, 1 << 30, START, START,
                             4096 + len(body), 4096 + len(body), 0, 0, 1)
        (tmp_path / "monitor.seg").write_bytes(header.ljust(4096, b"\0") + body)
        if not with_plugin:
            plugin.unlink()
        done = subprocess.run([program, "monitor.seg", "timeline.h5", str(START), str(1_790_000_000_123_456_789)],
                              cwd=tmp_path, capture_output=True, text=True, timeout=300)
        return done, tmp_path / "timeline.h5"

    return run


def test_what_was_recorded_is_what_h5py_reads(build):
    done, path = build([series(0, "memory.anon", "bytes", "memory", "tree"),
                        series(1, "cpu.user", "s", "cpu", "disk Ünïcode", counter=True), points(-10, [(0, 1.5)]),
                        points(0, [(0, 4096.0), (1, 0.25)]), points(2**40, [(1, math.inf)]),
                        points(7, [(1, math.nan)])])
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        assert dict(f.attrs) == {"schema": "assay-timeline-1", "clock": "CLOCK_MONOTONIC ns", "start_ns": START,
                                 "wall_start": "2026-09-21T14:13:20.123Z"}
        assert list(f["series"]) == ["cpu.user", "memory.anon"]
        anon, user = f["series/memory.anon"], f["series/cpu.user"]
        assert dict(anon.attrs) == {"unit": "bytes", "source": "memory", "scope": "tree", "kind": "gauge"}
        assert dict(user.attrs) == {"unit": "s", "source": "cpu", "scope": "disk Ünïcode", "kind": "counter"}
        assert (anon["t"].dtype, anon["v"].dtype) == ("<i8", "<f8")
        assert (list(anon["t"]), list(anon["v"])) == ([-10, 0], [1.5, 4096.0])
        assert list(user["t"]) == [0, 2**40, 7]
        assert (list(user["v"][:2]), math.isnan(user["v"][2])) == ([0.25, math.inf], True)


@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_no_point_is_lost_at_the_edge_of_a_chunk(build, count):
    done, path = build([series(0, "a"), series(1, "other"),
                        *(points(i * 10, [(0, i / 3), (1, 1)]) for i in range(count))])
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        assert list(f["series/a/t"]) == [i * 10 for i in range(count)]
        assert list(f["series/a/v"]) == [i / 3 for i in range(count)]
        if count >= 1024:
            column = f["series/a/t"]
            assert (column.compression, column.shuffle, column.chunks) == ("gzip", True, (1024,))


def test_a_series_without_points_is_absent(build):
    done, path = build([series(0, "a"), series(1, "b"), points(0, [(1, 1)])])
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        assert list(f["series"]) == ["b"]


def test_thousands_of_series_of_different_length_are_all_there(build):
    # More than the buffers hold, so that series are written in pieces.
    count = 3000
    lengths = [1 + (i * 37) % 400 for i in range(count)]
    records = [series(i, f"process.{i}.cpu") for i in range(count)]
    for t in range(401):
        values = [(i, i * 1000.0 + t) for i in range(count) if t < lengths[i]]
        if values:
            records.append(points(t, values))
    done, path = build(records)
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        assert len(f["series"]) == count
        for i in range(0, count, 7):
            one = f[f"series/process.{i}.cpu"]
            assert list(one["t"]) == list(range(lengths[i]))
            assert list(one["v"]) == [i * 1000.0 + t for t in range(lengths[i])]


def test_names_that_come_twice_or_cannot_be_paths_are_kept_apart(build):
    done, path = build([series(0, "process.7.cpu"), series(1, "process.7.cpu"), series(2, "disk.a/b"), series(3, "."),
                        series(4, ""), series(5, b"bad \xff utf-8"), *(points(i, [(i, i)]) for i in range(6))])
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        names = ["process.7.cpu", "process.7.cpu#1", "disk.a_b", "._", "_", "bad � utf-8"]
        assert sorted(f["series"]) == sorted(names)
        assert [list(f[f"series/{name}/v"]) for name in names] == [[i] for i in range(6)]


def test_what_came_before_a_damaged_record_is_in_the_file(build):
    done, path = build([series(0, "a"), points(1, [(0, 1)]), struct.pack("=IHHII", 24, 2, 0, 0, 900), bytes(8)])
    assert done.returncode == 1
    assert done.stderr == "timeline.h5: monitor.seg: damaged at byte 4168: 900 bytes in a record of 24 bytes\n"
    with h5py.File(path, "r") as f:
        assert list(f["series/a/t"]) == [1]


def test_without_the_plugin_it_says_where_it_looked(build):
    done, path = build([series(0, "a")], with_plugin=False)
    if done.returncode == 0:  # one that is installed was found
        assert path.exists()
        return
    assert done.returncode == 2
    assert done.stderr.startswith("assay-hdf5.so is neither beside the program nor in ")
    assert not path.exists()
