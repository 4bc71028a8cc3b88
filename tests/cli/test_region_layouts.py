"""Files of regions: what h5py reads of ours, and what we read of those that others write, well or badly."""
import pathlib
import shutil
import struct
import subprocess

import pytest
from conftest import BUILD, ROOT
from need import need

h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
np = pytest.importorskip("numpy", reason="numpy: python3-numpy is not installed")

CASES = ROOT / "tests" / "data" / "regions"
SUMMARY = np.dtype([(name, "<i8") for name in ("total", "minimum", "maximum", "first", "last", "start_minimum",
                                               "end_maximum")]
                   + [("gpu_count", "<u8"), ("gpu_total", "<i8"), ("mean", "<f8"), ("m2", "<f8")])


@pytest.fixture
def regions(targets, tmp_path):
    """regions("dump", FILE) and so on: the finished process. A copy of the program has the plug-in beside it."""
    if not (BUILD / "assay-hdf5.so").exists():
        need("hdf5", False, "assay was built without HDF5")
    program = pathlib.Path(shutil.copy2(targets("region_file"), tmp_path))
    (tmp_path / "assay-hdf5.so").symlink_to(BUILD / "assay-hdf5.so")

    def run(*args):
        return subprocess.run([program, *map(str, args)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    return run


def lines(done, word):
    assert done.returncode == 0, done.stderr
    return [line[len(word) + 1:] for line in done.stdout.splitlines() if line.startswith(word + " ")]


def calls(done):
    return [[int(v) for v in line.split()] for line in lines(done, "call")]


def refused(done, *says):
    """It ended with one sentence, and the library printed nothing of its own."""
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1 and "HDF5-DIAG" not in done.stderr
    for text in says:
        assert text in done.stderr


def columnar(path, schema=2, rows=5, strings=None, change=None):
    """A file as the Python package writes layouts 2 and 3: two regions on rank 0, one on rank 2."""
    text = strings or h5py.string_dtype("utf-8")
    start = np.array([100, 200, 300, 1000, 5000], "<i8")[:rows]
    end = start + np.array([7, 8, 9, 10, 11])[:rows]
    with h5py.File(path, "w") as f:
        f.attrs["scope_profiler_schema"] = schema
        f.attrs["storage_layout"] = "columnar"
        metadata = f.create_group("metadata").attrs
        metadata["hostname"], metadata["mpi_size"], metadata["load"], metadata["pin"] = "node", 3, 0.5, True
        f.create_dataset("region_table/names", data=["solve", "it/er"], dtype=text)
        index = f.create_group("rank_region_index")
        index["region_ids"] = np.array([0, 1, 0], "<u4")
        index["ranks"] = np.array([0, 0, 2], "<u4")
        index["event_offsets"] = np.array([0, 2, 3], "<u8")
        index["event_counts"] = np.array([2, 1, 2], "<u8")
        index["source_lines"] = np.array([12, -1, 13], "<i8")
        index["exclusive_totals"] = np.array([15, -1, 21], "<i8")
        for name, values in (("source_files", ["a.py", "", "b.py"]), ("source_texts", ["x = 1", "", ""]),
                             ("tags", ["[\"t\"]", "", ""]), ("event_metadata", ["", "{}", ""])):
            index.create_dataset(name, data=values, dtype=text)
        index["summary_statistics"] = np.array([(15, 7, 8, 7, 8, 100, 208, 0, 0, 7.5, 0.5),
                                                (9, 9, 9, 9, 9, 300, 309, 0, 0, 9, 0),
                                                (21, 10, 11, 10, 11, 1000, 5011, 0, 0, 10.5, 0.5)], SUMMARY)
        events = f.create_group("events")
        if schema == 3:
            deltas = np.concatenate([np.diff(start[a:b], prepend=0) for a, b in ((0, 2), (2, 3), (3, 5))])
            events.create_dataset("start_deltas", data=deltas, chunks=(4,), compression="gzip", shuffle=True)
            events.create_dataset("durations", data=(end - start), dtype="<i4")
        else:
            events.create_dataset("start_times", data=start, chunks=(4,), compression="gzip", shuffle=True)
            events.create_dataset("end_times", data=end)
        events["call_ids"] = np.arange(rows, dtype="<i8")
        events["thread_ids"] = np.zeros(rows, "<i2")
        table = f.create_group("thread_table")
        table["ranks"], table["index"] = np.array([0, 2], "<u4"), np.array([0, 0], "<i8")
        table["native_id"], table["daemon"] = np.array([41, 42], "<i8"), np.array([0, 1], "i1")
        table.create_dataset("name", data=["main", "w\xf6rker"], dtype=h5py.string_dtype("utf-8"))
        if change:
            change(f)
    return path


@pytest.mark.parametrize("schema", [2, 3])
@pytest.mark.parametrize("strings", [None, h5py.string_dtype("utf-8", 16), h5py.string_dtype("ascii", 10)])
def test_the_columns_that_the_package_writes_are_read(regions, tmp_path, schema, strings):
    done = regions("dump", columnar(tmp_path / "a.h5", schema, strings=strings))
    assert calls(done) == [[100, 107, -1, 0, -1, 0, -1, -1], [200, 208, -1, 1, -1, 0, -1, -1],
                           [300, 309, -1, 2, -1, 0, -1, -1], [1000, 1010, -1, 3, -1, 0, -1, -1],
                           [5000, 5011, -1, 4, -1, 0, -1, -1]]
    assert lines(done, "part") == ["0 solve|0 2 2 0|15 12|a.py|x = 1|[\"t\"]||15 7.5",
                                   "0 it/er|2 1 1 0|-1 -1||||{}|9 9", "2 solve|3 2 2 0|21 13|b.py||||21 10.5"]
    assert lines(done, "rank") == ["0", "2"]
    assert lines(done, "thread") == ["0 0 41 0 -1 main", "2 0 42 1 -1 w\xf6rker"]
    assert lines(done, "fact") == ["hostname=node", "load=0.5", "mpi_size=3", "pin=1"]


def many_starts(n):
    return 10**12 + np.cumsum(np.random.default_rng(7).integers(1, 5000, n))


@pytest.mark.parametrize("storage", [{"chunks": (65536,), "compression": "gzip", "shuffle": True},
                                     {"chunks": (10000,), "compression": "gzip"}, {"chunks": (30000,)}, {},
                                     {"chunks": (65536,), "fletcher32": True}, {"chunks": (20000,), "dtype": ">i8"},
                                     {"chunks": (65536,), "shuffle": True}, {"chunks": (100,)}])
@pytest.mark.parametrize("schema", [2, 3])
def test_calls_are_the_same_however_they_are_stored(regions, tmp_path, storage, schema):
    n, split = 150000, 70001
    start = many_starts(n)

    def store(f):
        deltas = np.concatenate([np.diff(start[:split], prepend=0), np.diff(start[split:], prepend=0)])
        del f["events"], f["thread_table"]
        names = ("start_deltas", "durations") if schema == 3 else ("start_times", "end_times")
        for name, values in zip(names, (deltas, start % 100) if schema == 3 else (start, start + start % 100)):
            f.create_dataset(f"events/{name}", data=values, **storage)
        for name, values in (("offsets", [0, split, n]), ("counts", [split, n - split, 0])):
            f[f"rank_region_index/event_{name}"][:] = values
    done = regions("copy", columnar(tmp_path / "a.h5", schema, change=store), "b.h5")
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "b.h5") as f:
        assert (f["events/start_times"][:] == start).all()
        assert (f["events/end_times"][:] == start + start % 100).all()


def test_h5py_reads_every_column_of_layout_2(regions, tmp_path):
    columnar(tmp_path / "a.h5", 3)
    assert regions("copy", "a.h5", "b.h5").returncode == 0
    with h5py.File(tmp_path / "b.h5") as f, h5py.File(tmp_path / "a.h5") as given:
        assert f.attrs["scope_profiler_schema"] == 2 and f.attrs["storage_layout"] == "columnar"
        assert dict(f["metadata"].attrs) == {"hostname": "node", "mpi_size": 3, "load": "0.5", "pin": "1"}
        assert list(f["region_table/names"].asstr()) == ["solve", "it/er"]
        index = f["rank_region_index"]
        for name in given["rank_region_index"]:
            if h5py.check_string_dtype(index[name].dtype):
                assert tuple(h5py.check_string_dtype(index[name].dtype)) == ("utf-8", None)
                assert list(index[name].asstr()) == list(given[f"rank_region_index/{name}"].asstr())
            else:
                assert index[name].dtype == given[f"rank_region_index/{name}"].dtype, name
                assert list(index[name][:]) == list(given[f"rank_region_index/{name}"][:]), name
        assert list(f["events/start_times"]) == [100, 200, 300, 1000, 5000]
        assert list(f["events/end_times"]) == [107, 208, 309, 1010, 5011]
        assert list(f["events/call_ids"]) == [0, 1, 2, 3, 4]
        assert set(f["events"]) == {"start_times", "end_times", "call_ids", "thread_ids"}
        assert {name: column.dtype for name, column in f["events"].items()} == dict.fromkeys(f["events"], "<i8")
        assert list(f["thread_table/name"].asstr()) == ["main", "w\xf6rker"]
        assert f["thread_table/daemon"].dtype == "i1" and list(f["thread_table/daemon"]) == [0, 1]
        assert set(f) == {"metadata", "region_table", "rank_region_index", "events", "thread_table", "assay"}


def test_h5py_reads_every_column_of_layout_1(regions, tmp_path):
    done = regions("old", columnar(tmp_path / "a.h5"), "b.h5")
    assert done.stdout == "layout 1 has no place for: threads\n"
    with h5py.File(tmp_path / "b.h5") as f:
        assert "scope_profiler_schema" not in f.attrs
        assert set(f) == {"metadata", "rank0", "rank2"}
        assert list(f["rank0/regions/it/er/start_times"]) == [300]
        assert list(f["rank2/regions/solve/end_times"]) == [1010, 5011]
        assert f["rank2/regions/solve/end_times"].dtype == "<i8"
        assert dict(f["rank0/regions/solve"].attrs) == {"source_file": "a.py", "source_lineno": 12,
                                                        "source_text": "x = 1", "tags": "[\"t\"]"}


@pytest.mark.parametrize("name", ["before", "after", "mpi4"])
def test_what_the_package_wrote_goes_through_both_layouts_unchanged(regions, tmp_path, name):
    assert regions("copy", CASES / f"{name}.h5", "two.h5").returncode == 0
    assert regions("old", "two.h5", "one.h5").stdout == ""
    found = []
    with h5py.File(CASES / f"{name}.h5") as a, h5py.File(tmp_path / "one.h5") as b:
        assert dict(a["metadata"].attrs) == dict(b["metadata"].attrs)

        def compare(path, item):
            if isinstance(item, h5py.Dataset):
                found.append(path)
                assert item.dtype == b[path].dtype and list(item) == list(b[path])
        a.visititems(compare)
        others = []
        b.visititems(lambda path, item: others.append(path) if isinstance(item, h5py.Dataset) else None)
    assert found == others and found


def test_the_packages_own_reader_opens_our_layout_1(regions, tmp_path):
    reader = pytest.importorskip("scope_profiler.h5reader", reason="the Python package scope-profiler is not installed")
    columnar(tmp_path / "a.h5", change=lambda f: f["region_table/names"].__setitem__(1, "iter"))
    assert regions("old", "a.h5", "b.h5").returncode == 0
    file = reader.ProfilingH5Reader(tmp_path / "b.h5")
    assert file.num_ranks == 2
    region = file.get_region("solve")
    assert list(region[0].start_times * 1e9) == pytest.approx([100, 200])  # it gives seconds
    assert list(region[2].end_times * 1e9) == pytest.approx([1010, 5011])
    assert list(file.get_region("iter")[0].end_times * 1e9) == pytest.approx([309])


def test_an_spt_file_becomes_layout_2(regions, tmp_path):
    def region(name, line, starts, ends):
        n = len(starts)
        return (struct.pack(f"=i{len(name)}si4siq", len(name), name, 4, b"a.py", line, n)
                + struct.pack(f"={n}q{n}q", *starts, *ends))
    (tmp_path / "a.spt").write_bytes(b"SCOPEPRF" + struct.pack("=iiq", 2, 5, 2) + region(b"x", 3, [1, 20], [5, 29])
                                     + region(b"y", 0, [7], [8]))
    assert regions("copy", "a.spt", "b.h5").returncode == 0
    with h5py.File(tmp_path / "b.h5") as f:
        assert list(f["rank_region_index/ranks"]) == [5, 5]
        assert list(f["events/end_times"]) == [5, 29, 8]
        assert list(f["rank_region_index/source_lines"]) == [3, -1]


# ---- files that are wrong ----

def swap(path, **options):
    def change(f):
        del f[path]
        f.create_dataset(path, **options)
    return change


def relink(path, link):
    def change(f):
        del f[path]
        f[path] = link
    return change


def external(f):
    del f["events/end_times"]
    f.create_dataset("events/end_times", (5,), "<i8", external=[("/etc/passwd", 0, 40)])


def virtual(f):
    del f["events/end_times"]
    layout = h5py.VirtualLayout((5,), "<i8")
    layout[:] = h5py.VirtualSource("other.h5", "x", (5,))
    f.create_virtual_dataset("events/end_times", layout)


WRONG = {
    "a newer schema": (lambda f: f.attrs.__setitem__("scope_profiler_schema", 4), "it is of schema 4"),
    "a schema of text": (lambda f: f.attrs.__setitem__("scope_profiler_schema", "2"), "is no whole number"),
    "a schema of reals": (lambda f: f.attrs.__setitem__("scope_profiler_schema", 2.5), "is no whole number"),
    "two schemas": (lambda f: f.attrs.__setitem__("scope_profiler_schema", [2, 2]), "is no whole number"),
    "another storage": (lambda f: f.attrs.__setitem__("storage_layout", "rows"), "storage_layout is rows"),
    "no storage": (lambda f: f.attrs.__delitem__("storage_layout"), "storage_layout is missing"),
    "no names": (lambda f: f.__delitem__("region_table"), "it has no region_table/names"),
    "no index": (lambda f: f.__delitem__("rank_region_index"), "it has no rank_region_index/region_ids"),
    "no ends": (lambda f: f.__delitem__("events/end_times"), "it has no events/end_times"),
    "a soft link": (relink("events/end_times", h5py.SoftLink("/events/start_times")), "is a link to elsewhere"),
    "a link to a file": (relink("events", h5py.ExternalLink("other.h5", "/events")), "is a link to elsewhere"),
    "a link to itself": (relink("events", h5py.SoftLink("/events")), "is a link to elsewhere"),
    "calls of another file": (external, "lies in another file"),
    "virtual calls": (virtual, "lies in another file"),
    "real starts": (swap("events/start_times", data=np.ones(5)), "holds no whole numbers"),
    "texts for starts": (swap("events/start_times", data=["a"] * 5), "holds no whole numbers"),
    "two dimensions": (swap("events/start_times", data=np.ones((5, 1), "<i8")), "has not one dimension"),
    "a scalar": (swap("events/start_times", data=7), "has not one dimension"),
    "fewer ends": (swap("events/end_times", data=np.ones(4, "<i8")), "has 4 rows, and the first column 5"),
    "more calls than bytes": (swap("events/start_times", shape=(2**60,), dtype="<i8", chunks=(1024,)),
                              "says that it has 1152921504606846976 rows, and holds 0 bytes"),
    "more chunks than bytes": (swap("events/start_times", shape=(10**6,), dtype="<i8", chunks=(1,), fillvalue=3,
                                    maxshape=(None,)), "says that it has 1000000 rows, and holds 0 bytes"),
    "more regions than bytes": (swap("rank_region_index/region_ids", shape=(2**50,), dtype="<u4", chunks=(1024,)),
                                "says that it has 1125899906842624 rows"),
    "a region that is not": (swap("rank_region_index/region_ids", data=np.array([0, 1, 2], "<u4")),
                             "is of region 2, and there are 2"),
    "a rank too many": (swap("rank_region_index/ranks", data=np.array([0, 1], "<u4")), "has 2 rows where 3"),
    "calls that are not": (swap("rank_region_index/event_counts", data=np.array([2, 1, 3], "<u8")),
                           "has calls 3 to 6 of 5"),
    "calls of two regions": (swap("rank_region_index/event_offsets", data=np.array([0, 1, 3], "<u8")),
                             "belongs to two regions"),
    "an offset that overflows": (swap("rank_region_index/event_offsets", data=np.array([0, 2, 2**63 - 1], "<u8")),
                                 "has calls"),
    "names of numbers": (swap("region_table/names", data=np.ones(2)), "holds no texts"),
    "statistics of texts": (swap("rank_region_index/summary_statistics", data=["a"] * 3), "holds no statistics"),
    "few statistics": (swap("rank_region_index/summary_statistics", data=np.zeros(2, SUMMARY)), "has 2 rows where 3"),
    "texts of a megabyte": (swap("rank_region_index/tags", shape=(3,), dtype="S2000000"), "texts of 2000000 bytes"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_one_sentence(regions, tmp_path, what):
    change, says = WRONG[what]
    path = columnar(tmp_path / "a.h5", change=change)
    refused(regions("dump", path), f"{path}: ", says)


def test_a_filter_that_is_not_there_is_one_sentence(regions, tmp_path):
    def store(f):
        del f["events/end_times"]
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_chunk((5,))
        how.set_filter(32767, h5py.h5z.FLAG_OPTIONAL)
        column = h5py.h5d.create(f["events"].id, b"end_times", h5py.h5t.STD_I64LE, h5py.h5s.create_simple((5,)), how)
        column.write_direct_chunk((0,), b"x" * 40)
    done = regions("dump", columnar(tmp_path / "a.h5", change=store))
    refused(done, "a.h5: events/end_times is stored with the HDF5 filter 32767, which is not installed")


def test_groups_in_a_circle_end(regions, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        group = f.create_group("rank0/regions/x")
        group["start_times"], group["end_times"] = [1, 2], [3, 4]
        group["again"] = f["rank0/regions"]
        group["self"] = group
        f["rank0/regions/other"] = group
    done = regions("dump", "a.h5")
    assert len(lines(done, "part")) == 1 and len(calls(done)) == 2


def test_names_with_slashes_nest_and_regions_may_stand_in_regions(regions, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for i, name in enumerate(("a", "a/b", "a/b/c", "\u00e4 b")):
            group = f.create_group(f"rank3/regions/{name}")
            group["start_times"], group["end_times"] = [i], [i + 10]
        f["rank3/regions/a/gpu_durations"] = [5]
        f.create_group("rank12")
        f.create_group("rank007")
        f.create_group("ranks")
    done = regions("dump", "a.h5")
    assert [line.split("|")[0] for line in lines(done, "part")] == ["3 a", "3 a/b", "3 a/b/c", "3 \u00e4 b"]
    assert [row[2] for row in calls(done)] == [5, -1, -1, -1]
    assert lines(done, "rank") == ["3", "12"]
    assert regions("old", "a.h5", "b.h5").returncode == 0
    assert lines(regions("dump", "b.h5"), "part") == lines(done, "part")


def test_groups_that_are_nested_without_end_are_refused(regions, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        group = f.create_group("rank0/regions")
        for _ in range(2000):
            group = group.create_group("d")
    refused(regions("dump", "a.h5"), "nested deeper than any name")


def test_layout_1_with_links_to_elsewhere_is_refused(regions, tmp_path):
    for link in (h5py.SoftLink("/rank0"), h5py.ExternalLink("other.h5", "/")):
        with h5py.File(tmp_path / "a.h5", "w") as f:
            f.create_group("rank0/regions")
            f["rank0/regions/x"] = link
        refused(regions("dump", "a.h5"), "x is a link to elsewhere, which is not followed")


def test_a_file_of_something_else_is_told_so(regions, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["series"] = [1, 2]
    refused(regions("dump", "a.h5"), "it is an HDF5 file, but none of regions")


def test_a_damaged_chunk_is_one_sentence(regions, tmp_path):
    start = many_starts(70000)

    def store(f):
        del f["events"], f["thread_table"]
        f.create_dataset("events/start_times", data=start, chunks=(65536,), compression="gzip", shuffle=True)
        f.create_dataset("events/end_times", data=start, chunks=(65536,), compression="gzip", shuffle=True)
        f["rank_region_index/event_counts"][:] = [2, 1, 69997]
    path = columnar(tmp_path / "a.h5", change=store)
    with h5py.File(path) as f:
        chunk = f["events/start_times"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset:chunk.byte_offset + 2000] = bytes(2000)
    path.write_bytes(data)
    refused(regions("copy", path, "b.h5"), "chunk 0 of start_times is damaged")


def test_a_user_block_before_the_file_is_passed_over(regions, tmp_path):
    path = columnar(tmp_path / "a.h5")
    with h5py.File(path) as given, h5py.File(tmp_path / "b.h5", "w", userblock_size=1024) as f:
        for name in given:
            given.copy(name, f)
        f.attrs.update(given.attrs)
    assert calls(regions("dump", "b.h5")) == calls(regions("dump", "a.h5"))


def test_aggregated_regions_without_calls_of_other_writers_are_noted(regions, tmp_path):
    done = regions("dump", columnar(tmp_path / "a.h5", change=swap("rank_region_index/event_counts",
                                                                  data=np.array([2, 0, 2], "<u8"))))
    assert lines(done, "note") == ["1 regions of ranks have totals in the file, and no calls"]
