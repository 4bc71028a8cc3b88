"""Exports of regions against calls made up here, as other programs read them: times and totals are the file's."""
import collections
import csv
import json
import pathlib
import random
import re
import shutil

import pytest

from conftest import ROOT
from test_export import HERE, node, package  # noqa: F401 (a fixture)

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
np = pytest.importorskip("numpy", reason="numpy: python3-numpy is not installed")

DATA = ROOT / "tests" / "data" / "regions"
NAMES = ["main", "solve", "a; b, \"c\"\t<d>", "Größe/日本", "leaf", "never called"]
ZERO = 5_000_000_000_123  # ns, of the first call

Call = collections.namedtuple("Call", "rank thread region start end call parent")


class Made:
    """Calls of a few threads on a few ranks, inside each other, and tokens that overlap them; and files of them."""

    def __init__(self, seed=1, ranks=3, threads=2, tokens=True):
        self.chance = random.Random(seed)
        self.calls = []
        for rank in range(ranks):
            self.next = 0
            for thread in range(threads):
                t = ZERO + (rank or thread) * 37
                for _ in range(20):
                    t = self.nest(rank, thread, -1, t, 0) + self.chance.randrange(0, 2000)
                if tokens:
                    self.overlap(rank, thread, t + 1000)

    def add(self, *call):
        self.calls.append(Call(*call))

    def nest(self, rank, thread, parent, start, depth):
        number, self.next = self.next, self.next + 1
        t = start + self.chance.randrange(0, 50)
        for _ in range(self.chance.randrange(0, 4) if depth < 4 else 0):
            t = self.nest(rank, thread, number, t, depth + 1) + self.chance.randrange(0, 300)
        end = t + self.chance.randrange(1, 5000)
        self.add(rank, thread, 0 if depth == 0 else self.chance.choice([1, 2, 3, 4]), start, end, number, parent)
        return end

    def overlap(self, rank, thread, start):
        for i in range(6):
            self.add(rank, thread, 4, start + 100 * i, start + 100 * i + 250, self.next, -1)
            self.next += 1

    def durations(self, calls=None):
        total = collections.Counter()
        for c in self.calls if calls is None else calls:
            total[NAMES[c.region]] += c.end - c.start
        return total

    def own(self):
        total, found = collections.Counter(), {(c.rank, c.call): c for c in self.calls}
        for c in self.calls:
            total[NAMES[c.region]] += c.end - c.start
            if c.parent >= 0:
                total[NAMES[found[c.rank, c.parent].region]] -= c.end - c.start
        return total

    def write(self, path, optional=("call_ids", "parent_ids", "thread_ids"), columns=None):
        parts = sorted({(c.rank, c.region) for c in self.calls})
        rows = [c for part in parts for c in self.calls if (c.rank, c.region) == part]
        counts = [sum((c.rank, c.region) == part for c in self.calls) for part in parts]
        text = h5py.string_dtype()
        with h5py.File(path, "w") as f:
            f.attrs["scope_profiler_schema"] = 2
            f.attrs["storage_layout"] = "columnar"
            f.create_group("metadata").attrs["label"] = "made"
            f.create_dataset("region_table/names", data=NAMES, dtype=text)
            index = f.create_group("rank_region_index")
            index["region_ids"] = np.array([p[1] for p in parts], np.uint32)
            index["ranks"] = np.array([p[0] for p in parts], np.uint32)
            index["event_counts"] = np.array(counts, np.uint64)
            index["event_offsets"] = np.array(np.concatenate([[0], np.cumsum(counts)[:-1]]), np.uint64)
            index["source_lines"] = np.array([10 + p[1] for p in parts], np.int64)
            index["exclusive_totals"] = np.full(len(parts), -1, np.int64)
            for name in ("source_files", "source_texts", "tags", "event_metadata"):
                index.create_dataset(name, data=["heat.c" if name == "source_files" else ""] * len(parts), dtype=text)
            index["summary_statistics"] = self.summaries(parts)
            known = {"start_times": "start", "end_times": "end", "call_ids": "call", "parent_ids": "parent",
                     "thread_ids": "thread"}
            for name in ("start_times", "end_times", *optional):
                f["events/" + name] = np.array([getattr(c, known[name]) for c in rows], np.int64)
            for name, values in (columns or {}).items():
                f["events/" + name] = np.array(values[:len(rows)], np.int64)
            self.write_threads(f.create_group("thread_table"))
        return path

    def summaries(self, parts):
        fields = [(name, np.int64) for name in ("total", "minimum", "maximum", "first", "last", "start_minimum",
                                                "end_maximum")]
        fields += [("gpu_count", np.uint64), ("gpu_total", np.int64), ("mean", np.float64), ("m2", np.float64)]
        rows = []
        for part in parts:
            calls = [c for c in self.calls if (c.rank, c.region) == part]
            lasted = np.array([c.end - c.start for c in calls])
            rows.append((lasted.sum(), lasted.min(), lasted.max(), lasted[0], lasted[-1], min(c.start for c in calls),
                         max(c.end for c in calls), 0, 0, lasted.mean(), ((lasted - lasted.mean()) ** 2).sum()))
        return np.array(rows, dtype=fields)

    def write_threads(self, table):
        threads = sorted({(c.rank, c.thread) for c in self.calls})
        table["ranks"] = np.array([t[0] for t in threads], np.uint32)
        table["index"] = np.array([t[1] for t in threads], np.int64)
        table["ident"] = np.array([7000 + t[1] for t in threads], np.int64)
        table["native_id"] = np.array([500 + 10 * t[0] + t[1] for t in threads], np.int64)
        table["daemon"] = np.zeros(len(threads), np.int8)
        for name in ("start_ns", "end_ns", "cpu_ns"):
            table[name] = np.full(len(threads), -1, np.int64)
        table.create_dataset("name", data=[f"worker; {t[1]}" for t in threads], dtype=h5py.string_dtype())


@pytest.fixture
def made(tmp_path):
    made = Made()
    made.path = made.write(tmp_path / "made.h5")
    return made


@pytest.fixture
def export(assay, tmp_path):
    """export(FILE, FORMAT, ...): what is written, as text; nothing is said unless `told` is."""

    def run(path, format, *args, told=""):
        got = assay("export", path, "-f", format, *args)
        assert got.status == 0, got
        assert re.fullmatch(told, got.stderr, re.S), got
        return got.stdout

    return run


def us(text):
    """Microseconds with three decimals, exactly, in ns."""
    assert re.fullmatch(r"-?\d+\.\d{3}", text), text
    return int(text.replace(".", ""))


def read_chrome(text):
    events = json.loads(text, parse_float=us)["traceEvents"]
    slices = [(e["pid"], e["tid"], e["name"], e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X"]
    begun = {(e["pid"], e["cat"], e["id"]): e for e in events if e["ph"] == "b"}
    ended = {(e["pid"], e["cat"], e["id"]): e for e in events if e["ph"] == "e"}
    assert begun.keys() == ended.keys() and len(begun) == sum(e["ph"] == "b" for e in events)
    overlapping = [(e["pid"], e["tid"], e["name"], e["ts"], ended[key]["ts"]) for key, e in begun.items()]
    names = {(e["name"], e["pid"], e["tid"]): e["args"].get("name") for e in events if e["ph"] == "M"}
    assert {e["ph"] for e in events} <= {"X", "b", "e", "M"}
    return slices, overlapping, names


def assert_nested(slices):
    """As viewers stack them: of two slices of a thread one is in the other, or they are beside each other."""
    threads = collections.defaultdict(list)
    for pid, tid, _, start, end in slices:
        threads[pid, tid].append((start, -end))
    for calls in threads.values():
        stack = []
        for start, end in sorted(calls):
            while stack and stack[-1] <= start:
                stack.pop()
            assert not stack or -end <= stack[-1]
            stack.append(-end)


def test_chrome_holds_every_call_to_the_nanosecond(made, export):
    slices, overlapping, names = read_chrome(export(made.path, "chrome"))
    assert sorted(slices + overlapping) == sorted(
        (c.rank, c.thread + 1, NAMES[c.region], c.start - ZERO, c.end - ZERO) for c in made.calls)
    assert_nested(slices)
    # Of six tokens that overlap each other every third can stand among the slices.
    assert len(overlapping) == 4 * 3 * 2 and {o[2] for o in overlapping} == {"leaf"}
    assert names["process_name", 2, 0] == "rank 2" and names["thread_name", 2, 2] == "worker; 1"


def test_speedscope_reads_what_the_file_holds(made, export, package, tmp_path):  # noqa: F811
    path = tmp_path / "made.speedscope.json"
    path.write_text(export(made.path, "speedscope"))
    (profiles,) = node(HERE / "read_speedscope.mjs", package("speedscope"), path)
    assert {p["unit"] for p in profiles} == {"nanoseconds"}
    assert {p["name"] for p in profiles} >= {"rank 0, worker; 0 (500)", "rank 2, worker; 1 (521)",
                                             "rank 2, worker; 1 (521), overlapping calls 2"}
    own = collections.Counter()
    for profile in profiles:
        for name, (alone, _) in profile["frames"].items():
            own[name] += alone
    # The tokens come behind all others, so nothing is inside them.
    assert {name: value for name, value in own.items() if value} == made.own()


def test_the_speedscope_file_is_of_the_published_schema(made, export):
    """The parts of https://www.speedscope.app/file-format-schema.json that an evented profile has."""
    file = json.loads(export(made.path, "speedscope"))
    assert [f["name"] for f in file["shared"]["frames"]] == NAMES
    assert file["shared"]["frames"][1] == {"name": "solve", "file": "heat.c", "line": 11}
    count = 0
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert profile["type"] == "evented"
        stack, last = [], profile["startValue"]
        for event in profile["events"]:
            assert set(event) == {"type", "frame", "at"} and last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                count += 1
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    assert count == len(made.calls)


def read_folded(text):
    paths = {}
    for line in text.splitlines():
        path, ns = re.fullmatch(r"(.*) (\d+)", line).groups()
        assert path not in paths
        paths[path] = int(ns)
    return paths


def spelt(name):
    return name.replace(";", ":").replace("\t", "?")


def test_folded_paths_are_those_of_the_parents(made, export):
    truth, found = collections.Counter(), {(c.rank, c.call): c for c in made.calls}
    for c in made.calls:
        path, around = [spelt(NAMES[c.region])], c
        while around.parent >= 0:
            around = found[c.rank, around.parent]
            path.append(spelt(NAMES[around.region]))
        truth[";".join(reversed(path))] += c.end - c.start
        if len(path) > 1:
            truth[";".join(reversed(path[1:]))] -= c.end - c.start
    assert read_folded(export(made.path, "folded")) == {path: ns for path, ns in truth.items() if ns}


def test_a_region_that_is_left_out_is_as_if_it_had_never_been_marked(made, export):
    paths = read_folded(export(made.path, "folded", "--exclude", "solve", "--ranks", "0,2"))
    outer = [c for c in made.calls if c.rank != 1 and c.parent < 0]
    assert sum(paths.values()) == sum(c.end - c.start for c in outer)
    assert not any("solve" in path.split(";") for path in paths)
    assert any(path.count(";") > 1 for path in paths)


def test_without_parents_folded_says_that_it_is_flat(made, export, tmp_path):
    path = made.write(tmp_path / "flat.h5", optional=("thread_ids",))
    paths = read_folded(export(path, "folded", told=r"assay export: \S+flat.h5 does not say which call is inside which:"
                               r" each region stands alone, with the time of what is inside it\.\n"))
    assert paths == {spelt(name): ns for name, ns in made.durations().items()}


def test_csv_has_a_line_per_call(made, export):
    rows = list(csv.DictReader(export(made.path, "csv").splitlines()))
    assert list(rows[0]) == ["rank", "region", "start_ns", "end_ns", "duration_ns", "thread", "call", "parent"]
    assert sorted(Call(int(r["rank"]), int(r["thread"]), NAMES.index(r["region"]), int(r["start_ns"]), int(r["end_ns"]),
                       int(r["call"]), int(r["parent"] or -1)) for r in rows) == sorted(made.calls)
    assert all(int(r["end_ns"]) - int(r["start_ns"]) == int(r["duration_ns"]) for r in rows)


def test_csv_leaves_empty_what_is_not_known(made, export, tmp_path):
    values = [-1, 77] * len(made.calls)
    path = made.write(tmp_path / "gpu.h5", optional=(), columns={"gpu_durations": values})
    rows = list(csv.DictReader(export(path, "csv").splitlines()))
    assert list(rows[0])[5:] == ["gpu_ns"]
    assert [r["gpu_ns"] for r in rows] == [["", "77"][i % 2] for i in range(len(rows))]


def test_ranks_and_names_are_chosen(made, export):
    rows = list(csv.DictReader(export(made.path, "csv", "-r", "1-2", "-i", "main", "-i", "le").splitlines()))
    assert {(r["rank"], r["region"]) for r in rows} == {(r, n) for r in "12" for n in ("main", "leaf")}
    rows = list(csv.DictReader(export(made.path, "csv", "-r", "2,9", told=r".*\b9\b.*\n").splitlines()))
    assert {r["rank"] for r in rows} == {"2"}


@pytest.mark.parametrize("name", ["before", "after", "mpi4"])
def test_files_of_the_python_package_are_exported(name, export):
    truth = collections.Counter()
    with h5py.File(DATA / f"{name}.h5") as f:
        for rank in (key for key in f if key.startswith("rank")):
            def add(path, item):
                if isinstance(item, h5py.Group) and "start_times" in item:
                    truth[rank[4:], path] += int((item["end_times"][:] - item["start_times"][:]).sum())

            f[rank]["regions"].visititems(add)
    rows, totals = csv.DictReader(export(DATA / f"{name}.h5", "csv").splitlines()), collections.Counter()
    for r in rows:
        totals[r["rank"], r["region"]] += int(r["duration_ns"])
    assert totals == truth and truth
    slices, overlapping, _ = read_chrome(export(DATA / f"{name}.h5", "chrome"))
    assert_nested(slices)
    assert sum(s[4] - s[3] for s in slices + overlapping) == sum(truth.values())


def test_layout_1_is_a_file_for_older_readers(made, assay, tmp_path):
    got = assay("export", made.path, "-o", "old.h5")
    assert got.status == 0, got
    with h5py.File(tmp_path / "old.h5") as f:
        assert "scope_profiler_schema" not in f.attrs
        for rank in range(3):
            calls = [c for c in made.calls if c.rank == rank and NAMES[c.region] == "main"]
            old = f[f"rank{rank}/regions/main"]
            assert sorted(zip(old["start_times"][:], old["end_times"][:])) == sorted((c.start, c.end) for c in calls)


def test_a_file_stays_where_the_export_fails(made, assay, tmp_path):
    (tmp_path / "out.csv").write_text("good\n")
    got = assay("export", made.path, "-o", "out.csv", "--include", "nothing")
    assert got.status == 2
    assert got.stderr == f"assay export: {made.path}: no calls with times of regions that were asked for\n"
    assert (tmp_path / "out.csv").read_text() == "good\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.h5", "out.csv"]


@pytest.mark.parametrize("args,error", [
    (["-f", "pprof"], "option '--format': pprof is not for regions; these are: chrome, speedscope, folded, csv,"
                      " layout1"),
    (["-f", "layout1"], "format 'layout1' is a file of its own: name it with -o FILE.h5"),
    (["-o", "x.h5", "-r", "0"], "format 'layout1' holds the whole file: without --ranks, --include and --exclude"),
    (["-o", "x.pb.gz"], "option '--out': 'x.pb.gz' has the extension of no format for regions (.trace.json,"
                        " .speedscope.json, .folded, .csv, .h5)"),
    (["-f", "csv", "--group", "load"], "option '--group' is for CPU samples, not for regions"),
    (["-f", "csv", "--by", "line"], "option '--by' is for CPU samples, not for regions"),
])
def test_what_cannot_be_is_named(made, assay, args, error):
    got = assay("export", made.path, *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay export: {error}\n")


def test_a_circle_of_parents_is_no_hang(made, export, tmp_path):
    made.calls = [c._replace(parent=(c.call + 1) % 50) if c.rank == 0 and c.call < 50 else c for c in made.calls]
    assert read_folded(export(made.write(tmp_path / "circle.h5"), "folded", told=r"(assay export: Paths .*\n)?"))


def test_calls_without_numbers_that_are_an_index_are_refused(made, assay, tmp_path):
    made.calls = [c._replace(call=c.call * 1000003) for c in made.calls]
    path = made.write(tmp_path / "sparse.h5")
    got = assay("export", path, "-f", "folded")
    assert got.status == 3 and "are not numbered so that their paths could be found" in got.stderr


def test_too_many_that_overlap_are_refused_by_speedscope_alone(made, assay, export, tmp_path):
    made.calls += [Call(0, 0, 4, ZERO + 10**9 + i, ZERO + 2 * 10**9 + i, 100000 + i, -1) for i in range(300)]
    path = made.write(tmp_path / "many.h5")
    got = assay("export", path, "-f", "speedscope")
    assert got.status == 3 and "more than 256 calls of one thread overlap" in got.stderr and not got.stdout
    _, overlapping, _ = read_chrome(export(path, "chrome"))
    assert len(overlapping) == 24 + 299


def test_calls_at_no_possible_time_are_left_out_of_what_is_in_order(made, export, tmp_path):
    odd = [Call(0, 0, 4, ZERO + 50, ZERO + 40, 100000, -1), Call(1, 1, 4, -2**62, -2**62 + 5, 100001, -1)]
    good, made.calls = made.calls, made.calls + odd
    path = made.write(tmp_path / "odd.h5")
    told = r"assay export: Calls that end before they begin, or at no possible time, and are not in it: 2\.\n"
    slices, overlapping, _ = read_chrome(export(path, "chrome", told=told))
    assert sorted(slices + overlapping) == sorted(
        (c.rank, c.thread + 1, NAMES[c.region], c.start - ZERO, c.end - ZERO) for c in good)
    profiles = json.loads(export(path, "speedscope", told=told))["profiles"]
    assert sum(event["type"] == "O" for p in profiles for event in p["events"]) == len(good)
    assert len(export(path, "csv").splitlines()) == 1 + len(made.calls)


def test_without_room_for_calls_that_overlap_speedscope_fails(made, assay, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nothing here"))
    got = assay("export", made.path, "-f", "speedscope")
    assert got.status == 3 and "no temporary file for calls that overlap: No such file" in got.stderr


def test_a_run_directory_without_regions_says_so(assay):
    assert assay("run", "-q", "-o", "run", "--", "true").status == 0
    got = assay("export", "run", "-f", "csv")
    assert got.status == 2
    assert got.stderr == "assay export: run: its program marked no regions, or they were not recorded\n"


def test_a_run_directory_with_regions_alone_exports_them(made, assay, export, tmp_path):
    assert assay("run", "-q", "-o", "run", "--", "true").status == 0
    shutil.copy(made.path, tmp_path / "run" / "regions.h5")
    start = json.loads((pathlib.Path(tmp_path) / "run" / "run.json").read_text())
    slices, _, _ = read_chrome(export("run", "chrome"))
    assert start["status"] == "ok" and len(slices) > 100
    # Since the run's start, which is far from the times that are made up here.
    assert min(s[3] for s in slices) != 0


@pytest.mark.parametrize("format", ("csv", "chrome", "layout1"))
def test_the_file_that_is_read_is_not_replaced(made, assay, format):
    before = made.path.read_bytes()
    got = assay("export", made.path, "-f", format, "-o", made.path)
    assert got.status == 2 and "is the file of regions that is read, and is not replaced" in got.stderr
    assert made.path.read_bytes() == before
