"""assay tree --style reference: what the reference printed of profiles of Python, to the last byte and digit."""
import json
import marshal

import pytest

from conftest import ROOT

DATA = ROOT / "tests" / "data" / "pstats"
TEXTS = [
    ("fct4", "tree", []),
    ("fct4", "tree-cumulative", ["--sort", "cumulative"]),
    ("odd", "tree", []),
    ("odd", "tree-time", ["--sort", "time"]),
    ("odd", "tree-cumulative", ["--sort", "cumulative"]),
    ("odd", "tree-all", ["--all"]),
    ("odd", "tree-narrow", ["--width", "11"]),
    ("stdlib", "tree", ["--sort", "line"]),
    ("stdlib", "tree-all", ["--all"]),
]
DATA_FORMATS = [("json", "tree.json"), ("rows", "rows.json"), ("flat", "df.json")]


def reference(assay, path, *args):
    return assay("tree", "--style", "reference", *args, str(path))


@pytest.mark.parametrize("name, expected, args", TEXTS, ids=[f"{n}.{e}" for n, e, _ in TEXTS])
def test_the_text_is_the_references(assay, name, expected, args):
    got = reference(assay, DATA / f"{name}.prof", *args)
    assert (got.status, got.stderr) == (0, "")
    assert got.stdout == (DATA / f"{name}.{expected}.txt").read_text()


@pytest.mark.parametrize("name", ["fct4", "odd"])
@pytest.mark.parametrize("format, expected", DATA_FORMATS)
def test_the_data_are_the_references(assay, name, format, expected):
    got = reference(assay, DATA / f"{name}.prof", "--format", format)
    wanted = json.loads((DATA / f"{name}.{expected}").read_text())
    assert got.status == 0
    assert repr(json.loads(got.stdout)) == repr(wanted)  # with the order of keys, and each digit


def test_numbers_beyond_a_double_stay_whole(assay):
    rows = json.loads(reference(assay, DATA / "odd.prof", "--format", "flat").stdout)
    assert rows[0]["ncalls1"] == 2 ** 53 + 1


def test_the_profilers_own_end_is_in_flat_rows_alone(assay):
    assert "_lsprof" in reference(assay, DATA / "fct4.prof", "--format", "flat").stdout
    assert "_lsprof" not in reference(assay, DATA / "fct4.prof", "--format", "rows", "--all").stdout


def test_two_files_that_become_one_are_refused_as_the_reference_does(assay, tmp_path):
    profile = tmp_path / "x.prof"
    profile.write_bytes(marshal.dumps({(f, 1, "f"): (1, 1, 1.0, 1.0, {}) for f in ("/a/x.py", "/b/x.py")}))
    got = reference(assay, profile, "--clean", "basename")
    assert got.status == 2
    assert "two functions become 'x.py:1:f'" in got.stderr


def test_flat_rows_of_two_files_that_become_one_stay_two_as_in_the_reference(assay, tmp_path):
    profile = tmp_path / "x.prof"
    profile.write_bytes(marshal.dumps({(f"/{f}/x.py", 1, "f"): (n, n, 1.0, 1.0, {}) for n, f in ((1, "a"), (2, "b"))}))
    rows = json.loads(reference(assay, profile, "--clean", "basename", "--format", "flat").stdout)
    assert [(row["file"], row["ncalls1"]) for row in rows] == [("x.py:1", 1), ("x.py:1", 2)]


def test_a_profile_cut_short_is_named_with_its_place(assay, tmp_path):
    whole = (DATA / "fct4.prof").read_bytes()
    (tmp_path / "cut.prof").write_bytes(whole[:-1])
    got = assay("tree", "cut.prof")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == (f"assay tree: cut.prof: byte {len(whole) - 1}: the profile is cut short: what begins here "
                          f"goes on behind its end of {len(whole) - 1} bytes\n")


def test_times_beyond_a_double_in_all_are_refused(assay, tmp_path):
    (tmp_path / "p.prof").write_bytes(marshal.dumps({("a.py", i, "f"): (1, 1, 1e308, 1e308, {}) for i in (1, 2)}))
    for style in ("tree", "reference"):
        got = assay("tree", "p.prof", "--style", style)
        assert (got.status, got.stdout) == (2, "")
        assert got.stderr == "assay tree: p.prof: its costs add up to more than a number can hold\n"


def test_a_code_object_for_a_name_is_told_what_to_do(assay, tmp_path):
    code = compile("pass", "script.py", "exec")  # python -m profile -o p.prof script.py
    (tmp_path / "p.prof").write_bytes(marshal.dumps({("profile", 0, code): (1, 1, 0.0, 1.0, {})}))
    got = assay("tree", "p.prof")
    assert (got.status, got.stdout) == (2, "")
    assert "a code object, as `python -m profile` puts it" in got.stderr and "`python -m cProfile`" in got.stderr


def test_a_profile_without_times_of_calls_says_so_in_the_reference_style(assay, tmp_path):
    main, f = ("a.py", 1, "main"), ("a.py", 2, "f")
    (tmp_path / "p.prof").write_bytes(marshal.dumps(
        {main: (1, 1, 1.0, 3.0, {}), f: (2, 2, 2.0, 2.0, {main: 1, f: 1})}))
    got = reference(assay, tmp_path / "p.prof")
    assert got.status == 2
    assert "no times for the calls of 'f' by 'main'" in got.stderr and "--style tree" in got.stderr
    assert assay("tree", "p.prof").status == 0
