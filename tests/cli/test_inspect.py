"""assay inspect: every figure beside numpy's, what is asked for, and what is wrong with files."""
import csv
import io
import json
import pathlib
import shutil

import pytest

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
np = pytest.importorskip("numpy", reason="numpy: python3-numpy is not installed")

import made_recording  # noqa: E402  (after what it is compared with)
import made_regions  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "regions"
FILES = ("before.h5", "after.h5", "mpi4.h5")


def calls_of_layout1(path):
    """{region: {rank: durations}} and the span of all calls, read column by column."""
    regions, first, last = {}, [], []
    with h5py.File(path) as file:
        for rank in (name for name in file if name.startswith("rank")):
            def take(name, node, rank=int(rank[4:])):
                if isinstance(node, h5py.Group) and "start_times" in node:
                    starts, ends = node["start_times"][:], node["end_times"][:]
                    regions.setdefault(name, {})[rank] = ends - starts
                    if len(starts):
                        first.append(starts.min())
                        last.append(ends.max())
            file[rank]["regions"].visititems(take)
    return regions, int(max(last) - min(first))


def layout2(path, parts, schema=2, **columns):
    """A columnar file of (rank, name, starts, ends) and further columns of events, one list to a part."""
    names = sorted({name for _, name, _, _ in parts})
    text = h5py.string_dtype()
    with h5py.File(path, "w") as file:
        file.attrs["scope_profiler_schema"] = schema
        file.attrs["storage_layout"] = "columnar"
        file.create_group("metadata").attrs["label"] = "made"
        file["region_table/names"] = np.array(names, dtype=text)
        index = file.create_group("rank_region_index")
        counts = [len(starts) for _, _, starts, _ in parts]
        index["region_ids"] = np.array([names.index(name) for _, name, _, _ in parts], "u4")
        index["ranks"] = np.array([rank for rank, _, _, _ in parts], "u4")
        index["event_offsets"] = np.array([sum(counts[:i]) for i in range(len(counts))], "u8")
        index["event_counts"] = np.array(counts, "u8")
        index["source_lines"] = np.full(len(parts), -1, "i8")
        index["exclusive_totals"] = np.full(len(parts), -1, "i8")
        for column in ("source_files", "source_texts", "tags", "event_metadata"):
            index[column] = np.array([""] * len(parts), dtype=text)
        events = file.create_group("events")
        events["start_times"] = np.concatenate([np.asarray(s, "i8") for _, _, s, _ in parts])
        events["end_times"] = np.concatenate([np.asarray(e, "i8") for _, _, _, e in parts])
        for column, values in columns.items():
            events[column] = np.concatenate([np.asarray(v, "i8") for v in values])
    return path


def same(got, wanted):
    assert got == pytest.approx(wanted, rel=1e-12, abs=1e-9)


def assert_row(row, by_rank, wall):
    pooled = np.concatenate(list(by_rank.values()))
    totals = np.array([d.sum() for d in by_rank.values() if d.sum() > 0])
    assert row["calls"] == row["timed"] == len(pooled)
    assert (row["total"], row["min"], row["max"]) == (pooled.sum(), pooled.min(), pooled.max())
    same(row["avg"], pooled.mean())
    same(row["std"], pooled.std())
    for q in (50, 95, 99):
        same(row[f"p{q}"], np.percentile(pooled, q))
    same(row["imbalance"], (totals.max() / totals.mean() - 1) * 100 if len(totals) > 1 else 0)
    same(row["share"], pooled.sum() / (wall * len(by_rank)))
    assert row["ranks"] == sorted(by_rank)
    assert row["approximate"] is False


@pytest.mark.parametrize("name", FILES)
def test_every_figure_is_that_of_numpy(assay, name):
    regions, wall = calls_of_layout1(DATA / name)
    got = assay("inspect", DATA / name, "--json")
    assert got.status == 0 and got.stderr == ""
    answer = json.loads(got.stdout)
    assert answer["wall"] == wall
    assert {row["name"] for row in answer["regions"]} == {name for name, ranks in regions.items()
                                                         if any(len(d) for d in ranks.values())}
    for row in answer["regions"]:
        assert_row(row, regions[row["name"]], wall)
    totals = [row["total"] for row in answer["regions"]]
    assert totals == sorted(totals, reverse=True)


@pytest.mark.parametrize("offset", (0, 10**9))
def test_many_calls_of_every_length_are_exact(assay, tmp_path, offset):
    random = np.random.default_rng(7)
    parts, regions = [], {}
    for rank in (0, 1, 5):
        for name, count in (("few", 3), ("one", 1), ("many", 200_000), ("wide", 150_000)):
            durations = (random.exponential(900, count) if name != "wide"
                         else 2 ** random.uniform(0, 40, count)).astype("i8") + offset
            starts = np.sort(random.integers(10**12, 10**12 + 10**9, count))
            parts.append((rank, name, starts, starts + durations))
            regions.setdefault(name, {})[rank] = durations
    path = layout2(tmp_path / "made.h5", parts)
    wall = max(e.max() for *_, e in parts) - min(s.min() for _, _, s, _ in parts)
    answer = json.loads(assay("inspect", path, "--json").stdout)
    assert len(answer["regions"]) == 4
    for row in answer["regions"]:
        assert_row(row, regions[row["name"]], wall)


def test_ranks_and_names_choose(assay):
    regions, _ = calls_of_layout1(DATA / "mpi4.h5")
    name = sorted(regions)[0]
    got = assay("inspect", DATA / "mpi4.h5", "--json", "--ranks", "1-2,9", "--include", name + "$")
    assert got.status == 0
    assert got.stderr == f"assay inspect: rank 9 is not in {DATA / 'mpi4.h5'} (it has 0-3)\n"
    rows = json.loads(got.stdout)["regions"]
    assert [row["name"] for row in rows] == [name]
    pooled = np.concatenate([d for rank, d in regions[name].items() if rank in (1, 2)])
    assert rows[0]["total"] == pooled.sum() and rows[0]["ranks_selected"] == 2
    got = json.loads(assay("inspect", DATA / "mpi4.h5", "--json", "--exclude", name + "$").stdout)
    assert name not in {row["name"] for row in got["regions"]}


def test_rows_of_ranks_add_up(assay):
    regions, _ = calls_of_layout1(DATA / "mpi4.h5")
    rows = json.loads(assay("inspect", DATA / "mpi4.h5", "--json", "--per-rank").stdout)["regions"]
    assert {(row["name"], row["rank"]): row["total"] for row in rows} == {
        (name, rank): d.sum() for name, ranks in regions.items() for rank, d in ranks.items() if len(d)}
    assert all(row["imbalance"] is None for row in rows)


def test_rows_of_threads_add_up(assay, tmp_path):
    starts = np.arange(100) * 10
    path = layout2(tmp_path / "made.h5", [(0, "work", starts, starts + 5), (1, "work", starts, starts + 7)],
                   thread_ids=[np.arange(100) % 3, np.full(100, -1)])
    rows = json.loads(assay("inspect", path, "--json", "--per-thread").stdout)["regions"]
    assert {(row["rank"], row["thread"]): (row["calls"], row["total"]) for row in rows} == {
        (0, 0): (34, 170), (0, 1): (33, 165), (0, 2): (33, 165), (1, None): (100, 700)}


def test_threads_have_their_exclusive_times(assay, tmp_path):
    path = layout2(
        tmp_path / "made.h5",
        [(0, "work", [0, 0, 200], [100, 90, 230]), (0, "leaf", [10, 50, 20, 205, 300], [30, 80, 60, 215, 310])],
        call_ids=[[7, 8, 9], [10, 11, 12, 13, 14]], parent_ids=[[-1, -1, -1], [7, 7, 8, 9, -1]],
        thread_ids=[[0, 1, -1], [0, 0, 1, 0, 1]])
    rows = json.loads(assay("inspect", path, "--json", "--per-thread").stdout)["regions"]
    # The call of no known thread has a leaf of thread 0 inside it, which is no part of that thread's work.
    assert {(row["name"], row["thread"]): (row["total"], row["exclusive"]) for row in rows} == {
        ("work", 0): (100, 50), ("work", 1): (90, 50), ("work", None): (30, 20), ("leaf", 0): (60, 60),
        ("leaf", 1): (50, 50)}
    rows = json.loads(assay("inspect", path, "--json", "--per-thread", "--include", "work").stdout)["regions"]
    assert [row["exclusive"] for row in rows] == [50, 50, 20]


@pytest.mark.parametrize("columns, why", [
    ({}, "the file does not say which call was made in which"),
    ({"call_ids": [[0, 2**40]], "parent_ids": [[-1, 0]]},
     "rank 0 has calls numbered from 0 to 1099511627776, which is too far apart"),
])
def test_why_threads_have_no_exclusive_times_is_said(assay, tmp_path, columns, why):
    path = layout2(tmp_path / "made.h5", [(0, "work", [0, 5], [9, 7])], thread_ids=[[0, 1]], **columns)
    got = assay("inspect", path, "--per-thread")
    assert got.status == 0 and f"exclusive times of threads are not known: {why}" in " ".join(got.stdout.split())
    rows = json.loads(assay("inspect", path, "--json", "--per-thread").stdout)["regions"]
    assert [row["exclusive"] for row in rows] == [None, None]


def test_the_tree_follows_the_parents(assay, tmp_path):
    path = layout2(
        tmp_path / "made.h5",
        [(0, "main", [0], [100]), (0, "solve", [10, 50, 120], [40, 80, 130]), (0, "kernel", [15, 55], [25, 70])],
        call_ids=[[1], [2, 4, 6], [3, 5]], parent_ids=[[-1], [1, 1, -1], [2, 4]])
    rows = json.loads(assay("inspect", path, "--tree", "--json").stdout)["tree"]
    assert [(r["name"], r["depth"], r["parent"], r["calls"], r["total"], r["exclusive"]) for r in rows] == [
        ("main", 0, None, 1, 100, 40), ("solve", 1, 0, 2, 60, 35), ("kernel", 2, 1, 2, 25, 25),
        ("solve", 0, None, 1, 10, 10)]
    rows = json.loads(assay("inspect", path, "--tree", "--json", "--exclude", "solve").stdout)["tree"]
    assert [(r["name"], r["parent"], r["exclusive"]) for r in rows] == [("main", None, 75), ("kernel", 0, 25)]
    text = assay("inspect", path, "--tree").stdout.splitlines()
    assert text[2].split() == ["total", "exclusive", "calls", "region"]
    assert text[4].endswith("  2    solve") and text[5].endswith("  2      kernel")


def test_what_a_tree_is_without_is_said(assay, tmp_path):
    with made_recording.Process(tmp_path / "rec") as p:
        f, g = p.name("f"), p.name("g")
        p.thread(0).call(f, 50, 60).drop(f, 7).total(g, [5, 6, 7]).count(p.name("h"), 4)
    assert assay("merge", "rec", "-o", "made.h5").status == 0
    got = assay("inspect", "made.h5", "--tree")
    assert got.status == 0 and got.stderr == (
        "assay inspect: calls that found no room (ASSAY_LIMIT, a full disk), and are in none of these figures: 7\n"
        "assay inspect: calls that were only added up or counted, and are in none of these figures: 7\n")
    assert assay("inspect", "made.h5", "--tree", "--include", "h").stderr.endswith(
        "in none of these figures: 4\nassay inspect: the filters leave nothing of the 3 regions in made.h5\n")


def test_filters_that_leave_nothing_are_told(assay, tmp_path):
    path = made_regions.write(tmp_path / "made.h5", {"one": [5], "two": [7]})
    for args in (["-x", "."], ["--include", "three"], ["--csv", "-x", "one|two"]):
        got = assay("inspect", path, *args)
        assert (got.status, got.stderr) == (
            0, f"assay inspect: the filters leave nothing of the 2 regions in {path}\n")
    assert assay("inspect", path, "-x", "one").stderr == ""


def test_what_takes_the_same_is_in_the_order_of_calls(assay, tmp_path):
    with made_recording.Process(tmp_path / "rec") as p:
        p.thread(0).count(p.name("a"), 3).count(p.name("b"), 7).count(p.name("c"), 5)
    assert assay("merge", "rec", "-o", "made.h5").status == 0
    shown = [line.split()[0] for line in assay("inspect", "made.h5").stdout.splitlines()[3:6]]
    assert shown == ["b", "c", "a"]


def test_only_what_is_guessed_is_marked(assay, tmp_path):
    with made_recording.Process(tmp_path / "rec") as p:
        one, even, uneven = p.name("one"), p.name("even"), p.name("uneven")
        p.thread(0).total(one, [1234]).total(even, [999] * 5).total(uneven, [100, 1000])
    with made_recording.Process(tmp_path / "rec", pid=2) as p:
        p.rank(1)
        p.thread(0).total(p.name("one"), [5678])
    assert assay("merge", "rec", "-o", "made.h5").status == 0
    rows = {row["name"]: row for row in json.loads(assay("inspect", "made.h5", "--json").stdout)["regions"]}
    assert (rows["even"]["p95"], rows["even"]["std"], rows["even"]["approximate"]) == (999, 0, False)
    assert rows["one"]["std"] == (5678 - 1234) / 2 and rows["one"]["approximate"]
    shown = {}
    for line in assay("inspect", "made.h5", "--columns", "std,p50").stdout.splitlines():
        if line.split() and line.split()[0] in rows:
            shown[line.split()[0]] = [cell.startswith("~") for cell in line.split()[1:] if cell[0] in "~0123456789"]
    assert shown == {"one": [False, True], "even": [False, False], "uneven": [True, True]}


def test_a_cycle_of_parents_ends(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [0, 5], [9, 7]), (0, "b", [1], [2])],
                   call_ids=[[1, 2], [3]], parent_ids=[[2, 3], [1]])
    got = assay("inspect", path, "--tree", "--json")
    assert got.status == 0 and sum(row["calls"] for row in json.loads(got.stdout)["tree"]) == 3


def test_without_parents_there_is_no_tree(assay):
    got = assay("inspect", DATA / "before.h5", "--tree")
    assert got.status == 2 and got.stdout == ""
    assert got.stderr == (f"assay inspect: {DATA / 'before.h5'} does not say which call was made in which (it has no "
                          "parent ids), and times alone do not tell\n")


def test_csv_has_the_columns_that_were_asked_for(assay):
    got = assay("inspect", DATA / "mpi4.h5", "--csv", "--columns", "calls,p99,ranks", "--sort", "p99")
    rows = list(csv.reader(io.StringIO(got.stdout)))
    assert rows[0] == ["name", "calls", "p99", "ranks"]
    p99 = [float(row[2]) for row in rows[1:]]
    assert p99 == sorted(p99, reverse=True) and len(p99) > 1
    names = [row[0] for row in csv.reader(io.StringIO(assay("inspect", DATA / "mpi4.h5", "--csv", "--sort",
                                                            "name").stdout))][1:]
    assert names == sorted(names)


def test_text_begins_with_the_whole(assay, tmp_path):
    shutil.copy(DATA / "mpi4.h5", tmp_path / "mpi4.h5")
    regions, _ = calls_of_layout1(DATA / "mpi4.h5")
    calls = sum(len(d) for ranks in regions.values() for d in ranks.values())
    lines = assay("inspect", "mpi4.h5").stdout.splitlines()
    assert lines[0].startswith(f"mpi4.h5: {len(regions)} regions, {calls:,} calls on 4 ranks in ")
    assert lines[2].split()[:3] == ["region", "calls", "total"]
    assert {line.split()[0] for line in lines[3:3 + len(regions)]} == {name.split()[0] for name in regions}


def test_a_column_of_times_has_one_unit(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(rank, name, [first], [first + took]) for rank in (0, 1)
                                          for name, first, took in (("long", 7, 8_187_402), ("short", 9_000_007, 50))])
    head, *rows = assay("inspect", path, "--columns", "total,first_start,last_end").stdout.splitlines()[2:]
    assert head.split() == ["region", "total", "[us]", "first_start", "[ms]", "last_end", "[ms]"]
    assert [row.split() for row in rows] == [["long", "16,374.804", "0", "8.187"], ["short", "0.100", "9.000", "9.000"]]


def test_columns_that_say_nothing_are_left_out_unless_asked_for(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [0], [5]), (1, "a", [0], [7])])
    assert {"imbalance", "ranks"} <= set(assay("inspect", path).stdout.splitlines()[2].split())
    for options in (("--ranks", "0"), ("--per-rank",)):
        head = assay("inspect", path, *options).stdout.splitlines()[2].split()
        assert "p99" in head and not {"imbalance", "ranks"} & set(head)
    assert "ranks" in assay("inspect", path, "--ranks", "0", "--columns", "ranks").stdout
    assert "imbalance,share,ranks" in assay("inspect", path, "--ranks", "0", "--csv").stdout


def test_a_folder_without_regions_is_told_apart_from_a_missing_file(assay, tmp_path):
    (tmp_path / "run").mkdir()
    got = assay("inspect", "run")
    assert got.status == 2 and got.stderr.startswith("assay inspect: run: no regions are here (no regions.h5): ")


def test_names_cannot_steer_a_terminal(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a\x1b[2Jb\nc", [0], [5])])
    got = assay("inspect", path)
    assert got.status == 0 and "\x1b" not in got.stdout and len(got.stdout.splitlines()) == 4
    assert json.loads(assay("inspect", path, "--json").stdout)["regions"][0]["name"] == "a\x1b[2Jb\nc"


def test_gpu_times_are_those_of_calls_that_have_them(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [0, 10, 20], [5, 15, 25]), (0, "b", [1], [2])],
                   gpu_durations=[[3, -1, 4], [-1]])
    rows = {row["name"]: row for row in json.loads(assay("inspect", path, "--json").stdout)["regions"]}
    assert (rows["a"]["gpu_total"], rows["a"]["gpu_avg"], rows["a"]["gpu_calls"]) == (7, 3.5, 2)
    assert rows["b"]["gpu_total"] is None and rows["b"]["gpu_avg"] is None
    assert "gpu_total" in assay("inspect", path).stdout


def test_metadata_is_what_the_file_says(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [0], [5])])
    assert "label: made\n" in assay("inspect", path, "--metadata").stdout
    assert json.loads(assay("inspect", path, "--json").stdout)["metadata"]["label"] == "made"


@pytest.mark.parametrize("args, error", (
    ((), "expected one file of regions; usage: assay inspect [options] FILE"),
    (("a", "b"), "expected one file of regions; usage: assay inspect [options] FILE"),
    (("a", "--json", "--csv"), "options '--json' and '--csv' exclude each other"),
    (("a", "--sort", "totl"), "option '--sort': there is no column 'totl'; did you mean 'total'?"),
    (("a", "--columns", "calls,pq9"), "option '--columns': there is no column 'pq9'; did you mean 'p99'?"),
    (("a", "--ranks", "3-1"), "option '--ranks': '3-1': the range 3-1 runs backwards"),
    (("a", "--ranks", "x"), "option '--ranks': 'x' is no list of ranks such as 0-3,8"),
    (("a", "--tree", "--csv"), "option '--tree' goes with --json and the choice of ranks and regions alone"),
))
def test_bad_usage_is_named(assay, args, error):
    got = assay("inspect", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay inspect: {error}\n")


def test_a_bad_expression_is_named(assay):
    got = assay("inspect", "a", "--include", "a(b")
    assert got.status == 2
    assert got.stderr.startswith("assay inspect: option '--include': 'a(b' is no regular expression: ")


@pytest.mark.parametrize("make", (
    lambda path: None,
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"nothing of the kind" * 100),
    lambda path: path.write_bytes((DATA / "before.h5").read_bytes()[:5000]),
    lambda path: path.mkdir(),
))
def test_what_is_no_file_of_regions_is_named(assay, tmp_path, make):
    path = tmp_path / "bad.h5"
    make(path)
    got = assay("inspect", path)
    assert got.status == 2 and got.stdout == ""
    assert got.stderr.startswith("assay inspect: ") and "bad.h5" in got.stderr and got.stderr.count("\n") == 1


def test_a_newer_schema_is_refused(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [0], [5])], schema=4)
    got = assay("inspect", path)
    assert got.status == 2 and got.stdout == "" and "4" in got.stderr


def test_a_file_without_calls_is_an_empty_table(assay, tmp_path):
    path = layout2(tmp_path / "made.h5", [(0, "a", [], [])])
    got = assay("inspect", path)
    assert (got.status, got.stdout) == (0, f"{path}: 0 regions, 0 calls on 1 rank\n")
    assert json.loads(assay("inspect", path, "--json").stdout)["regions"] == []
