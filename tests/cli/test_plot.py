"""assay plot: each figure in each format, and the data behind it against the files read with h5py and numpy."""
import csv
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree as xml

import pytest
from conftest import BUILD
from need import need

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
np = pytest.importorskip("numpy", reason="numpy: python3-numpy is not installed")

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "regions"
BEFORE, AFTER, MPI4 = (DATA / name for name in ("before.h5", "after.h5", "mpi4.h5"))
KINDS = ("gantt", "flame", "durations")


@pytest.fixture(autouse=True)
def cairo():
    need("cairo", (BUILD / "assay-cairo.so").is_file(), "assay-cairo.so is not built")


def write_file(path, calls, names, parents=True):
    """Layout 2 of (rank, region, start, end, call, parent, thread); without parents no threads either."""
    rows = np.array(calls, dtype=np.int64).reshape(-1, 7)
    rows = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))]
    keys, firsts, counts = np.unique(rows[:, 0] * 100_000 + rows[:, 1], return_index=True, return_counts=True)
    text = h5py.string_dtype()
    figures = np.dtype([(name, "i8") for name in ("total", "minimum", "maximum", "first", "last", "start_minimum",
                                                  "end_maximum")]
                       + [("gpu_count", "u8"), ("gpu_total", "i8"), ("mean", "f8"), ("m2", "f8")])
    with h5py.File(path, "w") as file:
        file.attrs["scope_profiler_schema"] = 2
        file.attrs["storage_layout"] = "columnar"
        file.create_group("metadata").attrs["mpi_size"] = len(set(rows[:, 0]))
        file.create_dataset("region_table/names", data=np.array(names, dtype=object), dtype=text)
        index = file.create_group("rank_region_index")
        index["region_ids"] = (keys % 100_000).astype("u4")
        index["ranks"] = (keys // 100_000).astype("u4")
        index["event_offsets"] = firsts.astype("u8")
        index["event_counts"] = counts.astype("u8")
        index["source_lines"] = np.full(len(keys), -1, "i8")
        index["exclusive_totals"] = np.full(len(keys), -1, "i8")
        for name in ("source_files", "source_texts", "tags", "event_metadata"):
            index.create_dataset(name, data=np.array([""] * len(keys), dtype=object), dtype=text)
        summary = np.zeros(len(keys), figures)
        for i, (first, count) in enumerate(zip(firsts, counts)):
            starts, ends = rows[first:first + count, 2], rows[first:first + count, 3]
            took = (ends - starts).astype(float)
            summary[i] = (took.sum(), took.min(), took.max(), took[0], took[-1], starts.min(), ends.max(), 0, 0,
                          took.mean(), ((took - took.mean()) ** 2).sum())
        index["summary_statistics"] = summary
        file["events/start_times"] = rows[:, 2]
        file["events/end_times"] = rows[:, 3]
        if parents:
            for column, name in ((4, "call_ids"), (5, "parent_ids"), (6, "thread_ids")):
                file[f"events/{name}"] = rows[:, column]
    return path


def calls_of(path):
    """{region: {rank: (starts, ends)}} of a file in layout 1."""
    found = {}
    with h5py.File(path) as file:
        for rank in (key for key in file if key.startswith("rank")):
            for name, group in file[rank]["regions"].items():
                found.setdefault(name, {})[int(rank[4:])] = (group["start_times"][:], group["end_times"][:])
    return found


def rows_of(result):
    assert result.status == 0 and result.stderr == "", result
    return list(csv.DictReader(io.StringIO((result.cwd / "data.csv").read_text())))


@pytest.fixture
def data(assay):
    """data("gantt", FILE, ...): the rows of --data FILE.csv."""
    return lambda kind, *args: rows_of(assay("plot", "--kind", kind, *args, "--data", "data.csv"))


def svg_of(assay, *args):
    got = assay("plot", *args)
    assert got.status == 0, got
    root = xml.fromstring(got.stdout_bytes)
    assert root.tag.endswith("}svg")
    return root


def paths_of(root):
    return [one for one in root.iter() if one.tag.endswith("}path") and "fill:none" not in one.get("style", "")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", [BEFORE, MPI4], ids=["serial", "ranks"])
def test_every_figure_is_svg_pdf_and_png(assay, tmp_path, kind, path):
    for extension in ("svg", "pdf", "png"):
        got = assay("plot", "--kind", kind, path, "-o", f"figure.{extension}", "-W", "5", "-H", "6")
        assert got.status == 0 and got.stdout == "" and got.stderr == "", got
    root = xml.parse(tmp_path / "figure.svg").getroot()
    assert (root.get("width"), root.get("height")) == ("360pt", "432pt")
    pdf = (tmp_path / "figure.pdf").read_bytes()
    assert pdf.startswith(b"%PDF-1.") and b"%%EOF" in pdf[-16:]
    assert re.search(rb"/FontFile|/ObjStm", pdf)
    png = (tmp_path / "figure.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (720, 864)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure.pdf", "figure.png", "figure.svg"]


def test_without_a_file_the_figure_goes_to_standard_output(assay):
    assert svg_of(assay, "--kind", "flame", BEFORE) is not None
    got = assay("plot", "--kind", "flame", BEFORE, "--format", "png")
    assert got.status == 0 and got.stdout_bytes.startswith(b"\x89PNG")


def test_gantt_data_are_the_calls(data):
    rows = data("gantt", BEFORE)
    calls = calls_of(BEFORE)
    origin = min(starts.min() for ranks in calls.values() for starts, _ in ranks.values())
    for name in ("main", "step", "solve", "io"):
        starts, ends = calls[name][0]
        got = [(int(row["start_ns"]), int(row["end_ns"])) for row in rows if row["region"] == name]
        assert got == [(start - origin, end - origin) for start, end in sorted(zip(starts, ends))], name
    assert {row["depth"] for row in rows if row["region"] == "main"} == {"0"}
    assert {row["depth"] for row in rows if row["region"] == "step"} == {"1"}
    assert {row["depth"] for row in rows if row["region"] in ("solve", "io")} == {"2"}
    drawn = sum(int(row["calls"]) + int(row["other_calls"]) for row in rows)
    assert drawn == sum(len(ranks[0][0]) for ranks in calls.values())


def test_a_window_of_gantt_cuts_what_reaches_beyond_it(data):
    rows = data("gantt", BEFORE, "--from", "0.01", "--to", "0.02")
    assert min(int(row["start_ns"]) for row in rows) == 10_000_000
    assert max(int(row["end_ns"]) for row in rows) == 20_000_000
    main = [row for row in rows if row["region"] == "main"]
    assert [(row["start_ns"], row["end_ns"]) for row in main] == [("10000000", "20000000")]


def test_flame_data_add_up_by_path(data):
    rows = data("flame", MPI4)
    calls = calls_of(MPI4)
    by_region = {}
    for row in rows:
        by_region.setdefault(row["region"], []).append(row)
    for name in ("main", "step", "solve", "io"):
        total = sum(int((ends - starts).sum()) for starts, ends in calls[name].values())
        assert sum(int(row["total_ns"]) for row in by_region[name]) == total, name
    nodes = {row["node"]: row for row in rows}
    step = by_region["step"]
    assert len(step) == 1 and nodes[step[0]["parent"]]["region"] == "main"
    inside = sum(int(row["total_ns"]) for row in rows if row["parent"] == step[0]["node"])
    assert int(step[0]["exclusive_ns"]) == int(step[0]["total_ns"]) - inside
    assert sum(int(row["exclusive_ns"]) for row in rows) == int(by_region["main"][0]["total_ns"])


def test_flame_believes_the_parents_that_a_file_names(data, tmp_path):
    # b begins in a and ends after it, as regions that cross a block do; c lies in b.
    calls = [(0, 0, 0, 100, 1, -1, 0), (0, 1, 50, 150, 2, 1, 0), (0, 2, 60, 90, 3, 2, 0)]
    rows = data("flame", write_file(tmp_path / "named.h5", calls, ["a", "b", "c"]))
    assert [(row["region"], row["parent"], row["total_ns"]) for row in rows] == [
        ("a", "", "100"), ("b", "0", "100"), ("c", "1", "30")]


def test_flame_says_where_nesting_is_by_time_and_calls_overlap(assay, tmp_path):
    calls = [(0, 0, 0, 100, 1, -1, 0), (0, 1, 50, 150, 2, 1, 0)]
    path = write_file(tmp_path / "unnamed.h5", calls, ["a", "b"], parents=False)
    got = assay("plot", "--kind", "flame", path, "--data", "data.csv")
    assert got.status == 0
    assert got.stderr == (f"assay plot: {path}: calls that ended after the call that they began in, where the file "
                          "does not say what called them: 1. They count where their time lies within\n")


def test_durations_are_numpys_percentiles(data):
    for row in data("durations", MPI4):
        took = np.concatenate([ends - starts for starts, ends in calls_of(MPI4)[row["region"]].values()])
        assert int(row["calls"]) == len(took)
        expected = [took.min(), *np.percentile(took, [5, 25, 50, 75, 95]), took.max(), took.mean()]
        keys = ("min_ns", "p5_ns", "p25_ns", "p50_ns", "p75_ns", "p95_ns", "max_ns", "mean_ns")
        got = [float(row[key]) for key in keys]
        assert np.allclose(got, expected, rtol=1e-12, atol=0), row


def test_files_are_compared_under_their_labels(data):
    rows = data("durations", BEFORE, AFTER, "--label", "old", "--label", "new, better")
    assert {row["file"] for row in rows} == {"old", "new, better"}
    extra = [row for row in rows if row["region"] == "extra check"]
    assert [row["file"] for row in extra] == ["new, better"]


def test_speedup_is_over_the_smallest_count_of_ranks(data, tmp_path):
    files = []
    for ranks, took in ((2, (800, 900)), (4, (500, 300, 450, 100)), (1, (1600,))):
        calls = [(rank, 0, 1000, 1000 + time, rank, -1, 0) for rank, time in enumerate(took)]
        files.append(write_file(tmp_path / f"n{ranks}.h5", calls, ["work"]))
    rows = [row for row in data("speedup", *files) if row["region"] == "work"]
    assert [(row["ranks"], float(row["time_ns"]), float(row["ideal"])) for row in rows] == [
        ("1", 1600, 1), ("2", 900, 2), ("4", 500, 4)]
    assert [float(row["speedup"]) for row in rows] == [1, 1600 / 900, 3.2]


def test_repeats_of_a_count_are_their_median(data, tmp_path):
    def one(name, ranks, time):
        return write_file(tmp_path / name, [(rank, 0, 0, time, rank, -1, 0) for rank in range(ranks)], ["work"])

    files = [one("a.h5", 1, 100), one("b.h5", 2, 90), one("c.h5", 2, 50), one("d.h5", 2, 60)]
    rows = [row for row in data("speedup", *files) if row["region"] == "work"]
    assert [(row["ranks"], row["files"], float(row["time_ns"])) for row in rows] == [("1", "1", 100), ("2", "3", 60)]


def test_speedup_draws_in_every_format(assay, tmp_path):
    a = write_file(tmp_path / "a.h5", [(0, 0, 0, 100, 1, -1, 0)], ["work"])
    b = write_file(tmp_path / "b.h5", [(rank, 0, 0, 40, 1, -1, 0) for rank in range(3)], ["work"])
    assert paths_of(svg_of(assay, "--kind", "speedup", a, b))
    for extension in ("pdf", "png"):
        assert assay("plot", "--kind", "speedup", a, b, "-o", f"s.{extension}").status == 0


def test_json_has_the_same_rows_as_csv(assay, data, tmp_path):
    assert assay("plot", "--kind", "flame", BEFORE, "-d", "rows.json").status == 0
    got = json.loads((tmp_path / "rows.json").read_text())
    assert got["plot"] == "flame"
    as_text = [{key: "" if value is None else str(value) for key, value in row.items()} for row in got["rows"]]
    assert as_text == data("flame", BEFORE)


def test_names_of_any_kind_leave_the_svg_well_formed(assay, data, tmp_path):
    names = ['a & b <c> "q"', "größe ☃ 数据", "x" * 3000, "tab\there\x1b[31m", "]]><script>alert(1)</script>",
             "no\uffffcharacters\ufdd0\U0001fffe"]
    calls = [(0, i % 6, 1000 * i, 1000 * i + 900, i, -1, 0) for i in range(50)]
    path = write_file(tmp_path / "names.h5", calls, names)
    for kind in KINDS:
        svg_of(assay, "--kind", kind, path, "--title", "A & <B>", "--label", "<&>")
    assert sorted({row["region"] for row in data("durations", path)}) == sorted(names)


@pytest.mark.parametrize("option, name", (("--out", "in.svg"), ("--data", "in.csv"), ("--out", "link.svg")))
def test_the_file_that_is_read_is_not_replaced(assay, tmp_path, option, name):
    shutil.copy(BEFORE, tmp_path / ("in.svg" if option == "--out" else name))
    if name == "link.svg":
        (tmp_path / name).symlink_to("in.svg")
    got = assay("plot", "--kind", "gantt", name, option, name)
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == (f"assay plot: option '{option}': {name} is the file of regions that is read, "
                          "and is not replaced\n")
    assert (tmp_path / name).read_bytes() == BEFORE.read_bytes()
    got = assay("plot", "--kind", "gantt", name, "-f", "svg", "-o", "same.csv", "--data", "same.csv")
    assert got.status == 2 and got.stderr == "assay plot: options '--out' and '--data' name the same file, same.csv\n"


@pytest.fixture(scope="module")
def millions(tmp_path_factory):
    """A call around 600,000 short ones on each of four ranks."""
    calls = []
    for rank in range(4):
        rng = np.random.default_rng(rank)
        starts = np.cumsum(rng.integers(200, 2000, 600_000))
        one = np.zeros((600_001, 7), np.int64)
        one[1:] = np.stack([np.full(600_000, rank), 1 + rng.integers(0, 3, 600_000), starts,
                            starts + rng.integers(50, 200, 600_000), np.arange(1, 600_001), np.zeros(600_000),
                            np.zeros(600_000)], axis=1)
        one[0] = (rank, 0, 0, starts[-1] + 5000, 0, -1, 0)
        calls.append(one)
    return write_file(tmp_path_factory.mktemp("millions") / "millions.h5", np.concatenate(calls),
                      ["main", "alpha", "beta", "gamma"])


def test_millions_of_calls_are_a_bounded_number_of_boxes(assay, data, millions):
    root = svg_of(assay, "--kind", "gantt", millions)
    assert 100 < len(paths_of(root)) < 21_000
    rows = data("gantt", millions)
    assert sum(int(row["calls"]) + int(row["other_calls"]) for row in rows) == 4 * 600_001
    assert all(int(row["depth"]) == (row["region"] != "main") for row in rows)


def test_what_is_cut_into_slices_of_time_is_the_same_whole(data, millions):
    with h5py.File(millions) as file:
        regions = file["rank_region_index/region_ids"][:]
        counts = file["rank_region_index/event_counts"][:]
    rows = {row["region"]: row for row in data("flame", millions)}
    for number, name in enumerate(("main", "alpha", "beta", "gamma")):
        assert int(rows[name]["calls"]) == counts[regions == number].sum()
    assert all(rows[name]["parent"] == rows["main"]["node"] for name in ("alpha", "beta", "gamma"))


def test_deep_nesting_and_calls_of_no_length_are_drawn(assay, tmp_path):
    deep = [(0, i % 7, 10 * i, 100_000 - 10 * i, i, i - 1, 0) for i in range(4000)]
    path = write_file(tmp_path / "deep.h5", deep, [f"level{i}" for i in range(7)])
    got = assay("plot", "--kind", "gantt", path, "-o", "deep.svg")
    assert got.status == 0
    assert got.stderr == (
        f"assay plot: {path}: calls that found no place in the 64 rows of a lane and are left out: 3,936\n")
    svg_of(assay, "--kind", "flame", path)
    zero = write_file(tmp_path / "zero.h5", [(0, 0, 5, 5, 1, -1, 0), (0, 1, 5, 5, 2, 1, 0)], ["outer", "inner"])
    for kind in KINDS:
        svg_of(assay, "--kind", kind, zero)


def test_calls_of_no_length_have_a_tick_of_their_own_on_a_logarithmic_axis(assay, tmp_path):
    need("pdftotext", shutil.which("pdftotext"), "pdftotext (poppler-utils) is not installed")
    calls = [(0, 0, 5, 5, 1, -1, 0), (0, 0, 5, 6, 2, -1, 0), (0, 0, 5, 5000, 3, -1, 0)]
    for part, words in ((calls, True), (calls[1:], False)):
        path = write_file(tmp_path / "odd.h5", part, ["odd"])
        assert assay("plot", "--kind", "durations", path, "-o", tmp_path / "odd.pdf").status == 0
        text = subprocess.run(["pdftotext", "-layout", tmp_path / "odd.pdf", "-"], capture_output=True, text=True,
                              check=True).stdout
        assert "1 ns" in text and ("(logarithmic; 0 at the left end)" in text) == words
        assert any(line.split()[:3] == ["0", "1", "ns"] for line in text.splitlines()) == words


def test_senseless_times_are_left_out_and_said(assay, tmp_path):
    calls = [(0, 0, -2**63, 2**63 - 1, 1, -1, 0), (0, 0, 100, 50, 2, -1, 2**40), (0, 0, 5, 10, 3, 3, -9)]
    path = write_file(tmp_path / "odd.h5", calls, ["odd"])
    for kind in KINDS:
        got = assay("plot", "--kind", kind, path, "--data", "data.csv")
        assert got.status == 0 and got.stderr.endswith(
            ": calls that end before they begin, or at no possible time, which the figure leaves out: 2\n"), got
        rows = list(csv.DictReader(io.StringIO((tmp_path / "data.csv").read_text())))
        assert [row["calls"] for row in rows] == ["1"]


def test_a_legend_of_flame_names_what_no_box_has_room_for(assay, tmp_path):
    path = write_file(tmp_path / "narrow.h5", [(0, 0, 0, 1000, 1, -1, 0), (0, 1, 1000, 1010, 2, -1, 0)],
                      ["wide", "slim"])

    def height(*more):
        return float(svg_of(assay, "--kind", "flame", path, *more).get("height").rstrip("pt"))
    assert height() == height("--include", "wide") + 15


def test_a_region_has_the_same_colour_in_every_figure(assay, tmp_path):
    path = write_file(tmp_path / "one.h5", [(0, 0, 0, 1000, 1, -1, 0), (0, 0, 2000, 4000, 2, -1, 0)], ["solve"])
    colours = []
    for kind in KINDS:
        found = {re.search(r"fill:(rgb\([^)]*\))", one.get("style", "")) for one in paths_of(svg_of(
            assay, "--kind", kind, path))}
        colours.append({match.group(1) for match in found if match})
    assert len(set.intersection(*colours) - {"rgb(100%,100%,100%)"}) >= 1


def test_filters_choose_ranks_and_regions(data, assay):
    rows = data("gantt", MPI4, "--ranks", "1-2", "--include", "st", "--exclude", "stop")
    assert {row["rank"] for row in rows} == {"1", "2"} and {row["region"] for row in rows} == {"step"}
    got = assay("plot", "--kind", "gantt", MPI4, "--ranks", "1,9", "-o", "x.svg")
    assert got.status == 0 and "9" in got.stderr


@pytest.mark.parametrize("args, sentence", [
    (["FILE"], "option '--kind' is needed: gantt|flame|durations|speedup"),
    (["--kind", "gantt"], "expected files of regions; usage: assay plot [options] FILE..."),
    (["--kind", "speedup", "FILE"], "--kind speedup needs at least 2 files; usage: assay plot [options] FILE..."),
    (["--kind", "speedup", "FILE", "FILE"],
     "all files have 1 ranks: a speedup needs files of different counts"),
    (["--kind", "gantt", "FILE", "-o", "x.jpg"],
     "option '--out': 'x.jpg' has no extension that tells the format (.svg, .pdf, .png); --format does too"),
    (["--kind", "gantt", "FILE", "--data", "x.txt"],
     "option '--data': expected FILE.csv or FILE.json, got 'x.txt'"),
    (["--kind", "flame", "FILE", "--to", "1"],
     "option '--to' is only for a figure along time: --kind gantt"),
    (["--kind", "gantt", "FILE", "--from", "0.5", "-d", "x.csv"],
     "option '--from': the last call ends at 0.07513882 s"),
    (["--kind", "gantt", "FILE", "--from", "0.05", "--to", "0.01", "-d", "x.csv"],
     "option '--to': the window ends before it begins"),
    (["--kind", "gantt", "FILE", "FILE", "--label", "one"],
     "option '--label' is needed once for each of the 2 files, and is there 1 times"),
])
def test_bad_usage_is_one_sentence(assay, tmp_path, args, sentence):
    got = assay("plot", *[BEFORE if arg == "FILE" else arg for arg in args])
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay plot: {sentence}\n")
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_draw_is_an_error(assay, tmp_path):
    got = assay("plot", "--kind", "gantt", BEFORE, "--include", "nosuch", "-o", "x.svg")
    assert got.status == 2
    assert got.stderr == f"assay plot: {BEFORE}: there are no calls with times among the regions asked for\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_none_is_named_and_an_old_figure_stays(assay, tmp_path):
    bad = tmp_path / "bad.h5"
    bad.write_bytes(BEFORE.read_bytes()[:5000])
    (tmp_path / "old.svg").write_text("old")
    got = assay("plot", "--kind", "gantt", bad, "-o", "old.svg")
    assert got.status == 2 and str(bad) in got.stderr
    assert (tmp_path / "old.svg").read_text() == "old"
    got = assay("plot", "--kind", "gantt", BEFORE, "--width", "1", "--height", "1", "-o", "old.svg")
    assert (got.status, got.stderr) == (3, "assay plot: the figure is too small: --width and --height\n")
    assert (tmp_path / "old.svg").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.h5", "old.svg"]


def test_without_fonts_figures_are_drawn_all_the_same(assay, tmp_path):
    nowhere = tmp_path / "fonts.conf"
    nowhere.write_text('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig></fontconfig>')
    for kind in KINDS:
        got = assay("plot", "--kind", kind, BEFORE, "-o", "x.svg", env={"FONTCONFIG_FILE": str(nowhere)})
        assert got.status == 0, got
        xml.parse(tmp_path / "x.svg")


def test_a_terminal_gets_no_figure(assay):
    master, slave = os.openpty()
    got = assay("plot", "--kind", "gantt", BEFORE, stdout=slave)
    os.close(slave)
    os.close(master)
    assert (got.status, got.stderr) == (
        2, "assay plot: a figure is not for a terminal: use -o FILE.svg, .pdf or .png, or pipe it\n")


def test_without_cairo_there_is_one_sentence_and_data_still(program, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(program, alone / "assay")
    (alone / "assay-hdf5.so").symlink_to(BUILD / "assay-hdf5.so")

    def run(*args):
        return subprocess.run([alone / "assay", "plot", "--kind", "flame", BEFORE, *args], cwd=tmp_path, text=True,
                              capture_output=True)

    assert run("--data", "data.csv").returncode == 0
    assert (tmp_path / "data.csv").read_text().startswith("file,node,parent,")
    got = run("-o", "figure.svg")
    if got.returncode == 0:  # one that is installed was found
        assert (tmp_path / "figure.svg").exists()
        return
    assert got.returncode == 3
    assert re.fullmatch(r"assay plot: figures cannot be drawn: assay-cairo\.so is neither beside the program nor in "
                        r"\S+\n", got.stderr)
    assert not (tmp_path / "figure.svg").exists()
