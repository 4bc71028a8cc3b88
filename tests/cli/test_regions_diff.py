"""assay regions diff: against numpy on the files that the Python package wrote, and on made ones."""
import json
import math
import pathlib

import pytest

np = pytest.importorskip("numpy", reason="numpy: python3-numpy is not installed")
pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
import made_recording  # noqa: E402
import made_regions  # noqa: E402  (needs h5py)
import made_regions  # noqa: E402  (needs h5py)

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "regions"
METRICS = ("gpu_total", "gpu_avg", "total", "avg", "min", "max", "p50", "p95", "p99", "imbalance", "calls")


def metric(ranks, name):
    """The metric of {rank: durations}, None where it timed no calls."""
    calls = np.concatenate(list(ranks.values())) if ranks else np.array([])
    if not len(calls) or name.startswith("gpu"):
        return None
    if name == "imbalance":
        totals = [float(d.sum()) for d in ranks.values() if d.sum() > 0]
        return (max(totals) / np.mean(totals) - 1) * 100 if len(totals) > 1 else 0.0
    if name[0] == "p":
        return float(np.percentile(calls, int(name[1:])))
    return float({"total": np.sum, "avg": np.mean, "min": np.min, "max": np.max, "calls": len}[name](calls))


def expected(a, b, name, ranks=None):
    """Rows as the package has them, by name."""
    sides = [{region: {r: d for r, d in found.items() if ranks is None or r in ranks}
              for region, found in made_regions.read(path).items()} for path in (a, b)]
    rows = {}
    for region in sorted(set(sides[0]) | set(sides[1])):
        x, y = (metric(side.get(region, {}), name) for side in sides)
        delta = (y or 0) - (x or 0)
        rows[region] = (x, y, delta, None if not x else delta / x * 100)
    return rows


def close(got, wanted):
    if got is None or wanted is None:
        return got is wanted
    return math.isclose(got, wanted, rel_tol=1e-9, abs_tol=1e-6)


def diff(assay, *args):
    got = assay("regions", "diff", *args, "--json")
    assert got.status == 0, got
    return json.loads(got.stdout)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("pair", (("before", "after"), ("after", "before"), ("before", "mpi4")))
def test_every_metric_is_that_of_numpy(assay, name, pair):
    a, b = (DATA / f"{side}.h5" for side in pair)
    answer = diff(assay, a, b, "--metric", name)
    wanted = expected(a, b, name)
    assert answer["metric"] == name
    assert answer["unit"] == {"imbalance": "%", "calls": ""}.get(name, "ns")
    assert sorted(row["name"] for row in answer["rows"]) == sorted(wanted)
    for row in answer["rows"]:
        assert all(close(row[key], value) for key, value in zip(("a", "b", "delta", "pct"), wanted[row["name"]])), row


def test_ranks_are_selected_on_both_sides(assay):
    a, b = DATA / "mpi4.h5", DATA / "before.h5"
    got = assay("regions", "diff", a, b, "--json", "--ranks", "0,2")
    wanted = expected(a, b, "total", {0, 2})
    for row in json.loads(got.stdout)["rows"]:
        assert all(close(row[key], value) for key, value in zip(("a", "b", "delta", "pct"), wanted[row["name"]])), row
    assert "before.h5" in got.stderr and "2" in got.stderr, "the rank that is not there"
    assert "different ranks" in got.stderr


def sides(tmp_path):
    a = made_regions.write(tmp_path / "a.h5", {"solve": [60, 40], "io": [40], "old": [20], "idle": [0], "zero": [0],
                                               "same": [1000]})
    b = made_regions.write(tmp_path / "b.h5", {"solve": [100, 50], "io": [10], "new": [2], "idle": [0], "zero": [5],
                                               "same": [1000]})
    return a, b


@pytest.mark.parametrize("args, names", (
    ([], "solve io old zero new idle same"),
    (["--sort", "pct"], "new old zero io solve idle same"),
    (["--sort", "name"], "idle io new old same solve zero"),
    (["--threshold", "60"], "io old zero new idle"),
    (["--include", "s"], "solve same"),
    (["--include", "s", "--exclude", "so", "-i", "n"], "new same"),
    (["--include", "nothing"], ""),
))
def test_rows_are_sorted_and_filtered(assay, tmp_path, args, names):
    assert [row["name"] for row in diff(assay, *sides(tmp_path), *args)["rows"]] == names.split()


def test_the_table_says_what_changed(assay, tmp_path):
    sides(tmp_path)
    got = assay("regions", "diff", "a.h5", "b.h5", "--threshold", "10")
    assert (got.status, got.stderr) == (0, "")
    assert got.stdout == (
        "A: a.h5\n"
        "B: b.h5\n"
        "total of each region\n"
        "\n"
        "region         A         B     delta     change\n"
        "solve   100.0 ns  150.0 ns  +50.0 ns     +50.0%\n"
        "io       40.0 ns   10.0 ns  -30.0 ns     -75.0%\n"
        "old      20.0 ns         -  -20.0 ns  only in A\n"
        "zero         0 s    5.0 ns   +5.0 ns     from 0\n"
        "new            -    2.0 ns   +2.0 ns  only in B\n"
        "idle         0 s       0 s         0          -\n"
        "\n"
        "1 that changed by less than 10% is not shown\n")


def test_figures_without_change_and_counts_are_plain(assay, tmp_path):
    for name, calls in (("a.h5", 1219), ("b.h5", 2219)):
        made_regions.write(tmp_path / name, {"same": [5], "often": [1] * calls})
    shown = assay("regions", "diff", "a.h5", "b.h5", "--metric", "calls").stdout
    assert "often   1,219  2,219  +1,000  +82.0%\n" in shown and "same        1      1       0      0%\n" in shown
    unknown = assay("regions", "diff", "a.h5", "b.h5", "--metric", "gpu_total").stdout
    assert [line.split() for line in unknown.splitlines()[-2:]] == [["often"] + ["-"] * 4, ["same"] + ["-"] * 4]


def test_a_side_that_only_counted_a_region_has_it_without_a_figure(assay, tmp_path):
    for name, timed in (("a", False), ("b", True)):
        with made_recording.Process(tmp_path / name) as p:
            of = p.thread(0)
            of.call(p.name("traced"), 1, 3)
            of.call(p.name("other"), 5, 8) if timed else of.count(p.name("other"), 4)
        assert assay("merge", name, "-o", f"{name}.h5").status == 0
    shown = assay("regions", "diff", "a.h5", "b.h5").stdout
    assert [line.split(maxsplit=4) for line in shown.splitlines() if line.startswith("other")] == [
        ["other", "-", "3.0", "ns", "-  no figure in A"]]
    assert "no figure in B" in assay("regions", "diff", "b.h5", "a.h5").stdout and "only in" not in shown
    rows = {row["name"]: row for row in json.loads(assay("regions", "diff", "a.h5", "b.h5", "--json").stdout)["rows"]}
    assert (rows["other"]["a"], rows["other"]["ran_a"], rows["other"]["ran_b"]) == (None, True, True)


def test_percentages_have_one_form(assay):
    shown = assay("regions", "diff", DATA / "before.h5", DATA / "before.h5", "--metric", "imbalance").stdout
    assert " 0%" in shown and " %" not in shown


def test_the_status_is_0_whatever_changed(assay):
    for order in (("before", "after"), ("after", "before"), ("after", "after")):
        assert assay("regions", "diff", *(DATA / f"{side}.h5" for side in order)).status == 0


def repeats(tmp_path, factor, turns):
    """Six runs a side, B's region "slow" by that factor; one second apart, in turn or one side after the other."""
    for i in range(6):
        for side in "ab":
            second = 2 * i + (side == "b") if turns else i + 10 * (side == "b")
            slow = 1_000_000 * (1 + i % 3 / 1000) * (factor if side == "b" else 1)
            made_regions.write(tmp_path / f"{side}{i}.h5", {"slow": [slow], "same": [1_000_000 + i]},
                               f"2026-11-29T16:30:{second:02}.5")


@pytest.mark.parametrize("turns", (True, False))
@pytest.mark.parametrize("factor, verdict", ((1.2, "worse"), (0.8, "better"), (1.0, "equivalent")))
def test_repeats_are_judged_by_pairs_where_they_took_turns_else_by_ranks(assay, tmp_path, turns, factor, verdict):
    repeats(tmp_path, factor, turns)
    answer = diff(assay, "a*.h5", "--vs", "b*.h5")
    rows = {row["name"]: row for row in answer["rows"]}
    assert (answer["runs_a"], answer["runs_b"]) == (6, 6)
    assert (answer["judged_by"], answer["pairs"]) == (("pairs", 6) if turns else ("ranks", 0))
    assert rows["slow"]["verdict"] == verdict
    assert rows["same"]["verdict"] == "equivalent"
    change = (factor - 1) * 100
    assert rows["slow"]["low_pct"] <= change + 1e-9 and rows["slow"]["high_pct"] >= change - 1e-9
    shown = assay("regions", "diff", "a*.h5", "--vs", "b*.h5").stdout
    assert ("They took turns" in shown, "They did not take turns" in shown) == (turns, not turns)
    assert verdict in next(line for line in shown.splitlines() if line.startswith("slow"))


@pytest.mark.parametrize("turns, sentence", ((True, "with 6 pairs: it takes 8"), (False, None)))
def test_a_change_that_so_few_runs_cannot_bear_is_explained(assay, tmp_path, turns, sentence):
    for i in range(6):
        for side in "ab":
            second = 2 * i + (side == "b") if turns else i + 10 * (side == "b")
            slow = (1_000_000 + i) * (2 if side == "b" else 1)
            made_regions.write(tmp_path / f"{side}{i}.h5", {f"slow{k}": [slow] for k in range(5)},
                               f"2026-11-29T16:30:{second:02}.5")
    shown = " ".join(assay("regions", "diff", "a*.h5", "--vs", "b*.h5").stdout.split())
    assert ("undecided" in shown, "worse " in shown.split(" Medians")[0] + " ") == (turns, not turns)
    assert sentence in shown if sentence else "it takes" not in shown
    alone = assay("regions", "diff", "a*.h5", "--vs", "b*.h5", "--include", "slow1").stdout
    assert "it takes" not in alone and "undecided" not in alone


def test_too_few_repeats_are_no_verdict(assay, tmp_path):
    repeats(tmp_path, 2, False)
    answer = diff(assay, "a0.h5", "a1.h5", "--vs", "b0.h5", "b1.h5")
    assert {row["verdict"] for row in answer["rows"]} == {"too_few"}
    assert answer["rows"][0]["low_pct"] is None


def test_a_file_counts_once_on_a_side(assay, tmp_path):
    repeats(tmp_path, 2, False)
    got = assay("regions", "diff", "a0.h5", tmp_path / "a0.h5", "a1.h5", "--vs", *["b0.h5"] * 6, "--json")
    answer = json.loads(got.stdout)
    assert (got.status, answer["runs_a"], answer["runs_b"]) == (0, 2, 1)
    assert got.stderr == (f"assay regions: {tmp_path}/a0.h5: it is named more than once on its side, and counts once\n"
                          "assay regions: b0.h5: it is named more than once on its side, and counts once\n")


@pytest.mark.parametrize("args, error", (
    ([], "expected 'diff'; usage: assay regions diff A B"),
    (["show", "a"], "expected 'diff'; usage: assay regions diff A B"),
    (["diff", "a"], "expected two files, or several of each side: assay regions diff A... --vs B..."),
    (["diff", "a", "b", "c"], "expected two files, or several of each side: assay regions diff A... --vs B..."),
    (["diff", "--vs", "b"], "expected two files, or several of each side: assay regions diff A... --vs B..."),
    (["diff", "x*.h5", "--vs", "b"], "x*.h5: no file is called so"),
    (["diff", "a", "b", "--confidence", "10"],
     "option '--confidence': 10 is no percentage of 50 or more, and no share below 1"),
    (["diff", "a", "b", "--threshold", "nan"], "option '--threshold': 'nan' is not a number of 0 or more"),
))
def test_bad_usage_is_one_line_and_status_2(assay, args, error):
    got = assay("regions", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay regions: {error}\n")


@pytest.mark.parametrize("args", (
    ["a.h5", "missing.h5"], ["a.h5", "text"], ["a.h5", "a.h5", "--metric", "mean"], ["a.h5", "a.h5", "--ranks", "x"],
    ["a.h5", "a.h5", "--include", "("]))
def test_bad_files_and_options_are_named(assay, tmp_path, args):
    sides(tmp_path)
    (tmp_path / "text").write_text("no file of regions\n")
    got = assay("regions", "diff", *args)
    assert (got.status, got.stdout) == (2, "") and got.stderr.count("\n") == 1
    named = next(word for word in ("missing.h5", "text", "--metric", "--ranks", "--include") if word in args)
    assert named in got.stderr


def test_hostile_names_stay_on_their_line(assay, tmp_path):
    name = "a\x1b[31m\nb|<&>" + "x" * 300
    made_regions.write(tmp_path / "a.h5", {name: [5]})
    got = assay("regions", "diff", "a.h5", "a.h5")
    assert got.status == 0 and "\x1b" not in got.stdout and len(got.stdout.splitlines()) == 6
    assert diff(assay, "a.h5", "a.h5")["rows"][0]["name"] == name
