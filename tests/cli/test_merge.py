"""assay merge: recordings, written byte by byte by made_recording, as one file that h5py reads."""
import json
import os
import resource
import signal
import struct
import subprocess
import time

import pytest

import made_recording as made
from made_recording import Process

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")


class Merged:
    """A file of layout 2, as plain lists: parts[(rank, region)] with its rows in the columns."""

    def __init__(self, path):
        with h5py.File(path) as f:
            self.attributes = dict(f.attrs)
            names = [name.decode() for name in f["region_table/names"][:]]
            index = {key: f["rank_region_index"][key][:] for key in f["rank_region_index"]}
            self.columns = {key: f["events"][key][:].tolist() for key in f["events"]}
            self.metadata = dict(f["metadata"].attrs)
            self.threads = {key: f["thread_table"][key][:].tolist() for key in f.get("thread_table", ())}
            self.notes = [note.decode() for note in f["assay/notes"][:]] if "assay/notes" in f else []
            self.troubles = {}
            if "assay/troubles" in f:
                t = f["assay/troubles"]
                for rank, kind, count, example in zip(t["ranks"], t["kinds"], t["counts"], t["examples"]):
                    self.troubles[int(rank), int(kind)] = (int(count), example.decode())
            self.buckets = f["assay/summarised/buckets"][:].reshape(-1, made.BUCKETS).tolist() \
                if "assay/summarised" in f else []
        self.parts = {}
        for i, region in enumerate(index["region_ids"]):
            row = {key: values[i] for key, values in index.items()}
            row["tags"] = row["tags"].decode()
            row["source_files"] = row["source_files"].decode()
            self.parts[int(index["ranks"][i]), names[int(region)]] = row

    def calls(self, rank, name):
        """[(start, end, call, parent, thread)] of a region on a rank."""
        part = self.parts[rank, name]
        at = slice(int(part["event_offsets"]), int(part["event_offsets"] + part["event_counts"]))
        return list(zip(*(self.columns[key][at] for key in
                          ("start_times", "end_times", "call_ids", "parent_ids", "thread_ids"))))


@pytest.fixture
def merge(assay, tmp_path):
    """merge("--strict", folder): the result and the file as it came out."""

    def run(*args, status=0, **more):
        got = assay("merge", "-o", "out.h5", *args, **more)
        assert got.status == status, got
        return got, Merged(tmp_path / "out.h5")

    return run


def parent(merged, rank, call):
    """Where a call lies: the (region, start) of its parent."""
    for (r, name) in merged.parts:
        for start, _, number, *_ in merged.calls(r, name) if r == rank else []:
            if number == call[3]:
                return name, start
    return None


def test_calls_have_their_parents_and_exclusive_times(tmp_path, merge):
    with Process(tmp_path / "rec", pid=7) as p:
        step, solve, io = p.name("step", "a.c", 10, "phase=run,k"), p.name("solve"), p.name("io")
        t = p.thread(0, tid=70, mono=5, name="main")
        t.call(solve, 110, 150, depth=1).call(io, 160, 165, depth=2).call(solve, 155, 180, depth=1)
        t.call(step, 100, 200).call(solve, 210, 260)
        p.died(0, 300, 44)
    got, m = merge("rec")
    assert got.stderr == "" and got.stdout == "out.h5: 5 calls of 1 rank\n"
    assert m.attributes["scope_profiler_schema"] == 2
    assert [call[:2] for call in m.calls(0, "solve")] == [(110, 150), (155, 180), (210, 260)]
    assert [parent(m, 0, call) for call in m.calls(0, "solve")] == [("step", 100), ("step", 100), None]
    assert parent(m, 0, m.calls(0, "io")[0]) == ("solve", 155)
    assert m.calls(0, "step")[0][3] == -1
    assert {name: int(part["exclusive_totals"]) for (_, name), part in m.parts.items()} == {
        "step": 100 - 40 - 25, "solve": 40 + 25 - 5 + 50, "io": 5}
    assert m.columns["call_ids"] == [0, 1, 2, 3, 4]
    assert json.loads(m.parts[0, "step"]["tags"]) == {"phase": "run", "k": ""}
    assert (m.parts[0, "step"]["source_files"], m.parts[0, "step"]["source_lines"]) == ("a.c", 10)
    assert m.threads["native_id"] == [70] and m.threads["start_ns"] == [5]
    assert m.threads["end_ns"] == [300] and m.threads["cpu_ns"] == [44]


def test_recursion_counts_each_moment_once_in_exclusive_time(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f = p.name("f")
        p.thread(0).call(f, 30, 40, 2).call(f, 20, 60, 1).call(f, 10, 100)
    m = merge("rec")[1]
    assert m.parts[0, "f"]["exclusive_totals"] == 90
    assert [parent(m, 0, call) for call in m.calls(0, "f")] == [("f", 20), ("f", 10), None]


def test_calls_that_overlap_have_no_parents_and_take_nothing_from_others(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        a, b, c, token = p.name("a"), p.name("b"), p.name("c"), p.name("token")
        t = p.thread(0)
        t.call(c, 12, 14, depth=2)                            # in b, which ends out of order
        t.call(token, 5, 15, depth=1, flags=made.DETACHED)
        t.call(c, 16, 18, depth=1)                            # in a, before it in the file
        t.call(a, 10, 20)
        t.call(b, 11, 30, depth=1, flags=made.DETACHED | made.CROSSED)
    m = merge("rec")[1]
    assert [parent(m, 0, m.calls(0, name)[0]) for name in ("a", "b", "token")] == [None] * 3
    assert [parent(m, 0, call) for call in m.calls(0, "c")] == [None, ("a", 10)]
    assert m.parts[0, "a"]["exclusive_totals"] == 8
    assert m.parts[0, "b"]["exclusive_totals"] == 19


def test_a_call_whose_parent_was_dropped_is_not_given_to_a_neighbour(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        outer, inner = p.name("outer"), p.name("inner")
        t = p.thread(0)
        t.call(inner, 10, 20, depth=1).call(outer, 50, 60)
        t.drop(outer, 1, 25)
    got, m = merge("rec")
    assert m.calls(0, "inner")[0][3] == -1
    assert m.parts[0, "outer"]["exclusive_totals"] == 10
    assert m.parts[0, "outer"]["dropped"] == 1
    assert "1 call found no room and is lost" in got.stdout


def test_threads_that_share_a_file_are_told_apart(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f, g = p.name("f"), p.name("g")
        t = p.thread(0, tid=10)
        t.call(g, 1, 2, depth=1)              # its thread ended before the call around it did
        p.born(1, 11, mono=100)
        t.switch(1, 11).call(g, 102, 103, depth=1).call(f, 101, 110)
        p.born(2, 12, mono=200)
        t.switch(2, 12).call(f, 201, 210)
        p.thread(3, tid=13).call(f, 105, 106)
    m = merge("rec")[1]
    assert m.calls(0, "g")[0][2:] == (m.calls(0, "g")[0][2], -1, 0)
    assert parent(m, 0, m.calls(0, "g")[1]) == ("f", 101)
    assert [call[4] for call in m.calls(0, "f")] == [1, 2, 3]
    assert m.threads["index"] == [0, 1, 2, 3] and m.threads["native_id"] == [10, 11, 12, 13]


def test_what_a_killed_program_had_open_ends_when_it_was_last_seen(tmp_path, merge):
    p = Process(tmp_path / "rec", pid=9)
    a, b = p.name("a"), p.name("b")
    t = p.thread(0, tid=9)
    t.call(b, 20, 30, depth=1)
    t.open = [(10, a), (40, b)]
    p.thread(1, tid=10).last = 70  # killed with it
    p.write(closed=0)
    got, m = merge("rec")
    assert m.calls(0, "a")[0][:2] == (10, 70)
    assert [call[:2] for call in m.calls(0, "b")] == [(20, 30), (40, 70)]
    assert [parent(m, 0, call) for call in m.calls(0, "b")] == [("a", 10)] * 2
    assert m.parts[0, "a"]["exclusive_totals"] == 60 - 10 - 30
    assert m.troubles[0, 2] == (2, "a")
    assert len(m.notes) == 1 and "killed or still ran" in m.notes[0] and "regions-9-" in got.stderr


def test_a_damaged_place_costs_what_stands_behind_it(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f = p.name("f")
        p.thread(0).call(f, 1, 2).call(f, 3, 4).event(0, 0, kind=77).call(f, 5, 6)
        p.thread(1).call(f, 7, 8)
    got, m = merge("rec")
    assert [call[:2] for call in m.calls(0, "f")] == [(1, 2), (3, 4), (7, 8)]
    assert "damaged at event 4 of 5 (an event of an unknown kind): calls behind that cannot be read" in got.stderr
    assert m.notes == [got.stderr.removeprefix("assay merge: ").strip()]


def test_files_that_are_cut_short_or_claim_too_much_give_what_they_hold(tmp_path, merge):
    with Process(tmp_path / "rec", pid=3) as p:
        f = p.name("f")
        t = p.thread(0)
        for i in range(100):
            t.call(f, i, i + 1)
        t.committed = 1 << 60
        p.thread(1)
    os.truncate(p.path(".0"), made.DATA + 24 * 50 + 13)
    os.truncate(p.path(".1"), 100)
    got, m = merge("rec")
    assert len(m.calls(0, "f")) == 49
    assert "regions-3-0000000000000003.1: not a file of calls" in got.stderr


def test_a_sparse_file_that_claims_a_terabyte_takes_no_time(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f = p.name("f")
        p.thread(0).call(f, 1, 2).committed = 1 << 40
    os.truncate(p.path(".0"), 1 << 40)
    got, m = merge("rec")
    assert len(m.calls(0, "f")) == 1
    assert "(nothing was written there): calls behind that cannot be read" in got.stderr


def test_dropped_calls_that_no_region_counts_are_told_and_many_bad_files_are_counted(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f = p.name("f")
        p.thread(0).call(f, 1, 2).drop(f, 3)
    with open(p.path(".0"), "r+b") as file:
        file.seek(64)  # dropped, of the header
        file.write(struct.pack("=Q", 10))
    for i in range(60):
        (tmp_path / "rec" / f"regions-{i + 100}-000000000000000a.0").touch()
    got, m = merge("rec")
    assert "Calls that found no room, nor one for counting them by region: 7." in m.notes
    assert "More files that cannot be read: 10." in m.notes and len(m.notes) == 52
    assert "10 calls found no room" in got.stdout

def test_ranks_are_sorted_and_missing_ones_named(tmp_path, merge):
    for rank in (3, 0, 1):
        with Process(tmp_path / "rec", pid=10 + rank) as p:
            p.rank(rank, 7)
            if rank != 1:
                p.thread(0).call(p.name("f"), 100 * rank, 100 * rank + 7)
    got, m = merge("rec")
    assert list(m.parts) == [(0, "f"), (3, "f")]
    assert "Of 7 ranks, 2, 4-6 left no recording." in got.stderr
    assert m.calls(3, "f")[0][:4] == (300, 307, 0, -1), "call numbers begin anew on each rank"
    assert merge("--strict", "rec", status=1)[0].stdout == "out.h5: 2 calls of 3 ranks of 7\n"
    got, _ = merge("--json", "rec")
    answer = json.loads(got.stdout)
    assert answer.pop("notes") == ["Of 7 ranks, 2, 4-6 left no recording."]
    assert answer == {"file": "out.h5", "processes": 3, "calls": 2, "dropped": 0, "ranks": 3, "expected_ranks": 7,
                      "missing": "2, 4-6"}
    assert m.metadata["mpi_size"] == 7


def test_strict_is_content_when_all_ranks_are_there(tmp_path, merge):
    for rank in range(4):
        with Process(tmp_path / f"rank-{rank}" / "segments" / "regions", pid=rank + 1) as p:
            p.rank(rank, 4)
            p.thread(0).call(p.name("f"), 0, 1)
    assert merge("--strict", tmp_path)[0].stderr == ""


def test_forks_are_of_the_rank_that_the_program_said(tmp_path, merge):
    with Process(tmp_path / "rec", pid=10, mono=0) as p:
        p.rank(4, 8, source=1)
        p.rank(5, 8, source=2)
        p.thread(0).call(p.name("f"), 1, 2)
    with Process(tmp_path / "rec", pid=11, ppid=10, mono=50) as p:
        p.rank(4, 8, source=1)
        p.thread(0).call(p.name("f"), 60, 61)
    with Process(tmp_path / "rec", pid=12, ppid=11, mono=70) as p:
        p.thread(0).call(p.name("g"), 80, 81)
    with Process(tmp_path / "rec", pid=13, mono=70) as p:
        p.thread(0).call(p.name("g"), 90, 91)
    m = merge("rec")[1]
    assert sorted(m.parts) == [(0, "g"), (5, "f"), (5, "g")]
    assert [call[4] for call in m.calls(5, "f") + m.calls(5, "g")] == [0, 1, 2]


def test_a_counter_is_turned_into_ns_between_its_readings(tmp_path, merge):
    with Process(tmp_path / "rec", clock=made.TSC) as p:
        f = p.name("f")
        p.pair(10_000_000_000, 1_000_000_000)
        t = p.thread(0)
        t.call(f, 10_000_000_000, 10_250_000_000)          # 2.5 ticks to the ns here ...
        t.clock(12_500_000_000, 2_000_000_000)
        t.call(f, 12_500_000_000, 12_700_000_000)          # ... and 2 from here on
        p.pair(16_500_000_000, 4_000_000_000)
        t.call(f, 18_500_000_000, 18_500_000_200)          # beyond the last reading
        t.call(f, 9_750_000_000, 9_750_000_000)            # before the first one
    got, m = merge("rec")
    assert got.stderr == ""
    assert [call[:2] for call in m.calls(0, "f")] == [
        (1_000_000_000, 1_100_000_000), (2_000_000_000, 2_100_000_000), (5_000_000_000, 5_000_000_100),
        (900_000_000, 900_000_000)]


def test_a_counter_that_was_read_once_gives_no_times_and_says_so(tmp_path, merge):
    with Process(tmp_path / "rec", clock=made.TSC, boot="another machine") as p:
        p.pair(1000, 5)
        p.thread(0).call(p.name("f"), 1, 2).call(1, 3, 4)
    got, m = merge("rec")
    assert m.parts[0, "f"]["dropped"] == 2 and m.parts[0, "f"]["event_counts"] == 0
    assert "did not record how their clock runs" in got.stderr


def test_readings_too_close_to_each_other_are_used_with_a_warning(tmp_path, merge):
    with Process(tmp_path / "rec", clock=made.TSC, boot="another machine") as p:
        p.pair(0, 0)
        p.pair(2_000_000, 1_000_000)
        p.thread(0).call(p.name("f"), 100, 300)
    got, m = merge("rec")
    assert m.calls(0, "f")[0][:2] == (50, 150)
    assert "lengths may be wrong by percents" in got.stderr


def test_other_machines_are_put_beside_rank_0_by_their_offsets_or_else_the_time_of_day(tmp_path, merge):
    second = 1_000_000_000
    with Process(tmp_path / "rec", pid=1, mono=10 * second, wall=1000 * second) as p:
        p.rank(0, 3)
        p.thread(0).call(p.name("f"), 11 * second, 12 * second)
    with Process(tmp_path / "rec", pid=2, mono=90 * second, wall=1001 * second, boot="b") as p:
        p.rank(1, 3)
        p.offset(90 * second, -79 * second)
        p.offset(100 * second, -79 * second + 1000)
        p.thread(0).call(p.name("f"), 95 * second, 110 * second)
    with Process(tmp_path / "rec", pid=3, mono=500 * second, wall=1002 * second, boot="c") as p:
        p.rank(2, 3)
        p.thread(0).call(p.name("f"), 501 * second, 502 * second)
    got, m = merge("rec")
    assert m.calls(0, "f")[0][:2] == (11 * second, 12 * second)
    assert m.calls(1, "f")[0][:2] == (16 * second + 500, 31 * second + 1000)
    assert m.calls(2, "f")[0][:2] == (13 * second, 14 * second)
    assert "1 of 3 processes (regions-3-0000000000000003) ran on other machines" in got.stderr
    assert "by the time of day" in m.notes[0]


def test_sums_of_modes_aggregate_and_count_are_added_up(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        f, g = p.name("f"), p.name("g")
        p.thread(0).total(f, [5, 100, 1000], exclusive=1000).count(g, 42)
        p.thread(1).total(f, [7]).call(f, 50, 60)
    m = merge("rec")[1]
    part = m.parts[0, "f"]
    assert (part["calls"], part["timed"], part["event_counts"]) == (5, 4, 1)
    assert part["exclusive_totals"] == 1000 + 7 + 10
    summary = part["summary_statistics"]
    assert (summary["total"], summary["minimum"], summary["maximum"]) == (5 + 100 + 1000 + 7 + 10, 5, 1000)
    assert len(m.buckets) == 1 and sum(m.buckets[0]) == 4
    assert [m.buckets[0][made.bucket(d)] for d in (5, 7, 100, 1000)] == [1, 1, 1, 1]
    assert (m.parts[0, "g"]["calls"], m.parts[0, "g"]["exclusive_totals"]) == (42, -1)


def test_histograms_of_clocks_that_tick_otherwise_are_brought_together(tmp_path, merge):
    with Process(tmp_path / "rec", pid=1) as p:
        p.thread(0).total(p.name("f"), [1000])
    with Process(tmp_path / "rec", pid=2, clock=made.TSC) as p:
        p.pair(0, 0)
        p.pair(2_000_000_000, 1_000_000_000)
        p.thread(0).total(p.name("f"), [2000])
    m = merge("rec")[1]
    assert m.parts[0, "f"]["summary_statistics"]["total"] == 2000
    assert [(i, n) for i, n in enumerate(m.buckets[0]) if n] == [(made.bucket(1000), 2)]


def test_wrong_use_is_counted_by_kind_and_rank(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        p.rank(2, 3)
        f = p.name("f")
        p.thread(0).troubles[0] = 3
        p.thread(1).troubles[0] = 4
        p.trouble(0, f)
    assert merge("rec")[1].troubles == {(2, 0): (7, "f")}


def test_regions_without_a_name_are_kept_by_number(tmp_path, merge):
    with Process(tmp_path / "rec") as p:
        p.thread(0).call(5, 1, 2)
    got, m = merge("rec")
    assert list(m.parts) == [(0, "(region 5)")]
    assert "Regions that have no name in the recording: 1." in got.stderr


def test_metadata_of_the_lowest_rank_wins_and_keys_of_others_are_kept(tmp_path, merge):
    for rank in (1, 0):
        with Process(tmp_path / "rec", pid=10 + rank, host=f"node{rank}") as p:
            p.rank(rank, 2)
            p.metadata("user", f"u{rank}")
            p.metadata("user", f"user{rank}")
            p.metadata(f"only{rank}", "x" * 70_000)
    m = merge("rec")[1]
    assert (m.metadata["user"], m.metadata["hostname"]) == ("user0", "node0")
    assert len(m.metadata["only1"]) == 60_000
    assert m.metadata["timestamp"] == "2023-11-14T22:13:20.000Z"


def test_many_calls_in_an_intermediate_file_are_the_same_calls(tmp_path, merge, program):
    maker = program.parent / "bench" / "bench_region_file_make"
    (tmp_path / "rec").mkdir()
    subprocess.run([maker, tmp_path / "rec", "3000000", "2"], check=True)
    m = merge("rec")[1]
    with open(tmp_path / "rec" / "regions-4242-0123456789abcdef.0", "rb") as f:
        f.seek(made.DATA + 24)
        events = list(struct.iter_unpack("=QQIHBB", f.read(24 * 1_500_000)))
    solve = [event for event in events if event[2] == 3]
    calls = m.calls(0, "solve")
    assert len(calls) == 1_000_000 and len(solve) == 500_000
    for call, event in list(zip(calls, solve))[::1000]:
        assert abs(call[0] - event[0] / 2.5) < 1 and abs(call[1] - event[1] / 2.5) < 1 and call[4] == 0
    step = int(m.parts[0, "step"]["event_offsets"])
    assert all(call[3] - step == i for i, call in enumerate(calls)), "one of each in each step"
    assert {entry.name for entry in tmp_path.iterdir()} == {"rec", "out.h5"}


def test_ids_may_be_left_out(tmp_path, assay):
    with Process(tmp_path / "rec") as p:
        p.thread(0).call(p.name("f"), 1, 2)
    assert assay("merge", "--no-ids", "rec").status == 0
    with h5py.File(tmp_path / "rec" / "regions.h5") as f:
        assert sorted(f["events"]) == ["end_times", "start_times", "thread_ids"]


def test_several_folders_are_one_job_and_a_process_found_twice_is_one(tmp_path, merge):
    for rank in range(2):
        with Process(tmp_path / f"node{rank}", pid=rank + 1) as p:
            p.rank(rank, 2)
            p.thread(0).call(p.name("f"), 1, 2)
    got, m = merge("--strict", "node0", "node1", "node0")
    assert sorted(m.parts) == [(0, "f"), (1, "f")] and len(m.columns["start_times"]) == 2


def test_what_is_no_recording_is_refused(tmp_path, assay):
    (tmp_path / "empty").mkdir()
    assert assay("merge").status == 2
    assert assay("merge", "missing").stderr == "assay merge: missing: no such folder\n"
    got = assay("merge", "empty")
    assert (got.status, got.stderr) == (2, "assay merge: empty: no recording of regions is there\n")
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_result_that_cannot_be_written_leaves_the_old_one(tmp_path, assay):
    with Process(tmp_path / "rec") as p:
        t, f = p.thread(0), p.name("f")
        for i in range(20000):
            t.call(f, i * i, i * i + i)
    (tmp_path / "out.h5").write_text("old")
    got = assay("merge", "rec", "-o", "out.h5",
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert got.status == 3 and got.stderr.startswith("assay merge: ") and "out.h5" in got.stderr, got
    assert (tmp_path / "out.h5").read_text() == "old"
    assert {entry.name for entry in tmp_path.iterdir()} == {"rec", "out.h5"}
    assert assay("merge", "rec", "-o", "missing/out.h5").status == 3


def test_an_interrupted_merge_leaves_nothing(tmp_path, program):
    maker = program.parent / "bench" / "bench_region_file_make"
    (tmp_path / "rec").mkdir()
    subprocess.run([maker, tmp_path / "rec", "6000000", "1"], check=True)
    process = subprocess.Popen([program, "merge", "rec", "-o", "out.h5"], cwd=tmp_path, stderr=subprocess.PIPE)
    while process.poll() is None and not list(tmp_path.glob("out.h5*")):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    stderr = process.communicate()[1]
    assert (process.returncode, stderr) == (130, b"assay merge: interrupted\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["rec"]
