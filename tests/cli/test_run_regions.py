"""Regions in a run: from a program that marks them to regions.h5, run.json and the report, and what trouble does."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from conftest import BUILD, ROOT, environment
from need import need
from waiting import is_running, wait_for

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")

RUN = ["run", "-o", "run", "--precheck", "off", "--no-probe"]


@pytest.fixture
def run(assay, targets, tmp_path):
    """run("nest", 10, 2, options=[...]): the result; its regions are those of run.json, or None."""

    def go(*args, options=(), **more):
        got = assay(*RUN, *options, "--", targets("marked"), *map(str, args), **more)
        got.regions = got.run_json.get("regions")
        # What this machine does not show of a run is no matter of regions.
        got.texts = [w["text"] for w in got.run_json["warnings"] if not w["text"].startswith("Not observed")]
        return got

    return go


def calls_of(path):
    """{NAME: calls} as h5py reads it, and the starts and ends of each name."""
    with h5py.File(path) as f:
        index, names = f["rank_region_index"], [n.decode() for n in f["region_table/names"][:]]
        start, end = f["events/start_times"][:], f["events/end_times"][:]
        found = {}
        for region, offset, count in zip(index["region_ids"][:], index["event_offsets"][:], index["event_counts"][:]):
            span = slice(int(offset), int(offset) + int(count))
            found.setdefault(names[region], []).extend(zip(start[span], end[span]))
    return found


def recordings(run_dir):
    return sorted(p.name for p in run_dir.glob("segments/regions*/regions-*"))


def test_the_regions_of_a_run_are_in_one_file_and_in_the_report(run):
    got = run("nest", 1000, 3)
    assert got.status == 0, got
    calls = calls_of(got.run_dir / "regions.h5")
    assert {name: len(rows) for name, rows in calls.items()} == {"outer": 3000, "inner": 6000}
    assert (got.regions["file"], got.regions["regions"], got.regions["calls"]) == ("regions.h5", 2, 9000)
    assert (got.regions["dropped"], got.regions["ranks"], got.regions["troubles"]) == (0, 1, {})
    outer, inner = got.regions["top"]
    for row, name in ((outer, "outer"), (inner, "inner")):
        assert row["name"] == name and row["calls"] == len(calls[name])
        assert round(row["total_s"] * 1e9) == sum(end - start for start, end in calls[name])
    assert round((outer["total_s"] - outer["exclusive_s"]) * 1e9) == round(inner["total_s"] * 1e9)
    assert inner["exclusive_s"] == inner["total_s"] and outer["share"] > 0
    row = r"outer\s+3,000\s+\S+ \S+\s+\S+ \S+\s+\S+ \S+\s+\S+%"
    assert re.search(r"^  region\s+calls\s+total\s+exclusive\s+per call\s+share\n  " + row, got.stderr, re.M), got
    summary = (got.run_dir / "summary.md").read_text()
    assert re.search(r"^## Regions of the program\n\n\| region .*\n\|.*\n\| outer ", summary, re.M)
    assert not (got.run_dir / "segments" / "regions").exists() and not got.texts


def test_their_times_lie_in_the_phases_they_ran_in(run):
    got = run("phases")
    calls = calls_of(got.run_dir / "regions.h5")
    with h5py.File(got.run_dir / "timeline.h5") as f:
        assert f.keys()  # the same clock: what follows compares ns of CLOCK_MONOTONIC
    start = min(s for rows in calls.values() for s, _ in rows)
    spans = {p["name"]: (p["start_s"], p["end_s"]) for p in got.run_json["phases"]}
    marks = [line.split() for line in (got.run_dir / "markers.log").read_text().splitlines()]
    zero = int(marks[0][0]) - spans["load"][0] * 1e9
    for name, phase in (("early", "load"), ("late", "solve")):
        ((begun, ended),) = calls[name]
        assert spans[phase][0] <= (begun - zero) / 1e9 + 2e-6 and (ended - zero) / 1e9 <= spans[phase][1] + 2e-6
    assert start >= zero


def test_a_program_without_regions_is_told_nothing_of_them(assay, run, targets):
    for got in (run("none"), assay("run", "-o", "other", "--precheck", "off", "--", "true")):
        assert got.status == 0 and "region" not in got.stderr.replace(str(got.run_dir), ""), got
        assert "regions" not in got.run_json and "region" not in str(got.run_json["warnings"])
        assert not (got.run_dir / "regions.h5").exists() and not (got.run_dir / "segments" / "regions").exists()


@pytest.mark.parametrize("mode,calls,total", [("trace", 300, True), ("aggregate", 300, True), ("count", 300, False)])
def test_the_mode_is_chosen(run, mode, calls, total):
    got = run("nest", 100, 1, options=["--regions", mode])
    assert got.regions["calls"] == calls
    assert all(("total_s" in row) == total for row in got.regions["top"])
    assert total or "n/a" in got.stderr


def test_off_records_nothing(run):
    got = run("nest", 100, 1, options=["--regions=off"])
    assert got.status == 0 and got.regions is None and not got.texts
    assert not (got.run_dir / "regions.h5").exists()


def test_the_mode_may_come_from_the_environment_and_the_option_is_stronger(run, tmp_path):
    assert "total_s" not in run("nest", 10, 1, env={"ASSAY_REGIONS": "count"}).regions["top"][0]
    shutil.rmtree(tmp_path / "run")
    got = run("nest", 10, 1, options=["--regions=trace"], env={"ASSAY_REGIONS": "count"})
    assert "total_s" in got.regions["top"][0]


def test_a_mode_that_is_none_is_named(assay):
    got = assay("run", "--regions=most", "--", "true")
    assert got.status == 2 and "--regions" in got.stderr and "aggregate" in got.stderr


@pytest.mark.parametrize("how", ["env", "option"])
def test_a_folder_of_the_users_own_is_left_to_the_user(run, tmp_path, how):
    own = tmp_path / "own"
    own.mkdir()
    got = run("nest", 10, 1, **({"env": {"ASSAY_DIR": str(own)}} if how == "env" else
                                {"options": ["--env", f"ASSAY_DIR={own}"]}))
    assert got.status == 0 and got.regions is None and not got.texts
    assert any(p.name.endswith(".table") for p in own.iterdir())
    assert not (got.run_dir / "segments" / "regions").exists()


def test_a_run_inside_a_run_has_its_own(assay, program, targets, tmp_path):
    got = assay(*RUN, "--", program, "run", "-o", "inside", "--precheck", "off", "--no-probe", "--", targets("marked"),
                "nest", "10", "1")
    assert got.status == 0, got
    assert "regions" not in got.run_json
    assert json.loads((tmp_path / "inside" / "run.json").read_text())["regions"]["calls"] == 30


def test_the_environment_says_where(assay):
    script = 'echo "$ASSAY_DIR $ASSAY_MERGE ${ASSAY_REGIONS-unset}"; ls -d "$ASSAY_DIR"'
    got = assay(*RUN, "-q", "--", "sh", "-c", script)
    folder = got.run_dir / "segments" / "regions"
    assert got.stdout == f"{folder} off unset\n{folder}\n"


def test_wrong_use_is_counted_and_said(run):
    got = run("wrong")
    assert got.status == 0
    assert got.regions["troubles"] == {"no_begin": 1, "unfinished": 1}
    (text,) = got.texts
    assert text.startswith("Calls of regions that were not used as they should be: 1 ended without a beginning, 1 ")


def test_a_killed_program_keeps_what_it_had_recorded(run):
    got = run("kill")
    assert got.status == 128 + signal.SIGKILL
    calls = calls_of(got.run_dir / "regions.h5")
    assert len(calls["inner"]) == 10 and len(calls["outer"]) == 1
    assert any("kill" in text for text in got.texts), got.texts


def test_calls_beyond_the_limit_are_counted_and_said(run):
    got = run("nest", 1_000_000, 1, env={"ASSAY_LIMIT": "8M"})
    assert got.regions["dropped"] > 0
    assert got.regions["calls"] + got.regions["dropped"] == 3_000_000
    assert (f"Calls of regions that found no room, and are only counted: {got.regions['dropped']:,} (ASSAY_LIMIT, or a"
            " full disk).") in got.texts


def test_what_a_process_records_after_the_run_is_added_by_recover(assay, run, tmp_path):
    go = tmp_path / "go"
    got = run("linger", go)
    assert got.regions["top"][0]["calls"] == 10
    assert any("may still record regions" in text for text in got.texts), got.texts
    pids = {int(name.split("-")[1]) for name in recordings(got.run_dir)}
    assert pids
    go.touch()
    wait_for(lambda: not any(is_running(pid) for pid in pids), "the child's end")
    again = assay("recover", "-q", "run")
    assert again.status == 0, again
    assert json.loads((tmp_path / "run" / "run.json").read_text())["regions"]["top"][0]["calls"] == 15
    assert not recordings(tmp_path / "run")
    more = assay("recover", "-q", "run")
    assert more.status == 2 and "nothing is missing" in more.stderr


def test_recover_merges_what_a_killed_run_left(assay, program, targets, tmp_path):
    script = f'{targets("marked")} nest 100 2; echo done; exec sleep 60'
    process = subprocess.Popen([program, *RUN, "-q", "--", "sh", "-c", script], cwd=tmp_path, env=environment({}),
                               stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert process.stdout.readline() == b"done\n"
        process.kill()
        process.wait()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
    assert recordings(tmp_path / "run") and not (tmp_path / "run" / "run.json").exists()
    got = assay("recover", "run")
    assert got.status == 0, got
    assert json.loads((tmp_path / "run" / "run.json").read_text())["regions"]["calls"] == 600
    assert "outer" in got.stderr and not recordings(tmp_path / "run")


def test_recover_with_force_keeps_the_file_whose_recordings_are_gone(assay, run, tmp_path):
    first = run("nest", 50, 1).regions
    assert assay("recover", "-q", "--force", "run").status == 0
    assert json.loads((tmp_path / "run" / "run.json").read_text())["regions"] == first


def test_damaged_recordings_cost_no_more_than_themselves(run, assay, tmp_path):
    """The program's own recording, cut short and written over."""
    script = ('"$0" nest 100 1; f=$(ls "$ASSAY_DIR"/*.0); cp "$f" "$ASSAY_DIR/regions-1-0123456789abcdef.0";'
              ' head -c 100 /dev/urandom > "$ASSAY_DIR/regions-2-0123456789abcdef.table";'
              ' : > "$ASSAY_DIR/regions-3-0123456789abcdef.table"')
    got = assay(*RUN, "--", "sh", "-c", script, BUILD / "tests" / "targets" / "target_marked")
    assert got.status == 0, got
    assert got.run_json["regions"]["calls"] == 300


def test_the_example_program_runs_with_regions_and_phases(assay, tmp_path):
    need("cc", shutil.which("cc"), "there is no C compiler")
    nm = subprocess.run(["nm", "-D", BUILD / "libassay.so"], capture_output=True, text=True, check=True)
    sanitized = ["-fsanitize=address,undefined"] if "__asan" in nm.stdout else []
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-I", ROOT / "include",
                    ROOT / "examples" / "heat.c", *sanitized, "-L", BUILD, f"-Wl,-rpath,{BUILD}", "-lassay", "-pthread",
                    "-lm", "-o", tmp_path / "heat"], check=True)
    got = assay(*RUN, "--", pathlib.Path(tmp_path) / "heat", "100", "50", "3")
    assert got.status == 0, got
    rows = {row["name"]: row["calls"] for row in got.run_json["regions"]["top"]}
    assert rows == {"prepare": 1, "solve": 1, "step": 150, "stencil": 150, "wait": 300, "norm": 15}
    assert [p["name"] for p in got.run_json["phases"]][1:] == ["load", "solve", "shutdown"]
