"""The region library seen from outside: a program that loads it late, with a plug-in, and what it leaves behind."""
import os
import struct
import subprocess

import pytest

from conftest import BUILD, environment

CALL = struct.Struct("=QQIHBB")


def calls(folder):
    """The calls of all threads' files, as (region, depth, flags)."""
    found = []
    for path in folder.glob("regions-*.[0-9]*"):
        data = path.read_bytes()
        start, (committed,) = struct.unpack_from("I", data, 20)[0], struct.unpack_from("Q", data, 56)
        assert committed <= len(data)
        for at in range(start, committed, CALL.size):
            _, _, region, depth, flags, kind = CALL.unpack_from(data, at)
            if kind == 0:
                found.append((region, depth, flags))
    return found


@pytest.fixture
def late(targets, tmp_path):
    """late(TIMES, env): loads, calls and unloads a plug-in that needs the library."""
    plugin = BUILD / "tests" / "targets" / "libregion_module.so"
    if b"__asan_init" in (BUILD / "libassay.so").read_bytes() or b"__tsan_init" in (BUILD / "libassay.so").read_bytes():
        pytest.skip("plain-build: a sanitizer's runtime cannot come late")
    folder = tmp_path / "recording"
    folder.mkdir()

    def run(times, **env):
        done = subprocess.run([targets("region_late"), plugin, str(times)], capture_output=True, text=True, check=False,
                              timeout=300, env=environment({"ASSAY_DIR": str(folder), **env}))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return folder

    return run


def test_a_library_that_comes_with_a_plugin_records(late):
    assert calls(late(100)) == 100 * [(1, 0, 0)]


def test_without_a_folder_it_leaves_nothing(late):
    assert list(late(3, ASSAY_DIR=None).iterdir()) == []


def test_a_folder_that_cannot_be_written_stops_nobody(late, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root: may write everywhere")
    (tmp_path / "closed").mkdir(mode=0o555)
    late(3, ASSAY_DIR=str(tmp_path / "closed"))
    assert list((tmp_path / "closed").iterdir()) == []
