"""assay tree's inputs: the figures of each format against whoever else knows them, and files that are none."""
import json
import os
import re
import shutil
import subprocess

import pytest

import made_regions
from conftest import ROOT
from made_run import HZ, MadeRun
from need import need

DATA = ROOT / "tests" / "data"
CALLGRIND = DATA / "callgrind"


def flat(assay, *args):
    """{function: (self, with all that it called)}; functions of one name in several files are added up."""
    got = assay("tree", *args, "--style", "reference", "--format", "flat")
    assert got.status == 0, got
    figures = {}
    for row in json.loads(got.stdout):
        own, total = figures.get(row["fct"], (0, 0))
        figures[row["fct"]] = (own + row["tin"], total + row["tall"])
    return figures


def annotated(name, inclusive):
    """{function: cost} as callgrind_annotate prints it."""
    need("valgrind", shutil.which("callgrind_annotate"), "callgrind_annotate is not installed")
    text = subprocess.run(["callgrind_annotate", f"--inclusive={inclusive}", "--threshold=100", "--show-percs=no",
                           CALLGRIND / name], capture_output=True, text=True, check=True).stdout
    found = {}
    for cost, function in re.findall(r"^\s*([\d,]+)\s+\S*?:((?! TOTALS).*?)(?: \[.*\])?$", text, re.M):
        found.setdefault(function.strip(), []).append(int(cost.replace(",", "")))
    return found


@pytest.mark.parametrize("name", ["default.out", "instr.out", "uncompressed.out"])
def test_costs_are_those_of_callgrind_annotate_but_for_recursion(assay, name):
    ours = flat(assay, CALLGRIND / name)
    own, total = annotated(name, "no"), annotated(name, "yes")
    # It prints what makes up 100% of the costs, and leaves out what rounds to nothing behind that.
    assert len(own) > 100 and len(total) > 100
    compared = 0
    for function, costs in total.items():
        if len(costs) == 1 and len(own.get(function, [])) == 1 and "'" not in function:
            assert ours[function] == (own[function][0], costs[0]), function
            compared += 1
    assert compared > 100
    assert ours["msort_with_tmp.part.0'2"][1] <= 383900 < total["msort_with_tmp.part.0'2"][0] or name != "default.out"


def test_one_program_is_one_graph_however_its_costs_were_written(assay):
    plain, instr, long_names = (flat(assay, CALLGRIND / name, "--fold-recursion")
                                for name in ("default.out", "instr.out", "uncompressed.out"))
    assert plain == instr == long_names
    assert plain["fib"] == (28605, 28605)


def test_our_own_exports_are_read_as_the_profile_that_they_were_made_of(assay, tmp_path):
    run = MadeRun(tmp_path / "run", threads=("main", "worker"))
    run.add(1, 0, ["main", "work", "leaf"], count=5).add(2, 0, ["main", "work"], count=3)
    run.add(3, 1, ["start", "work", "work", ["inlined", "libsum"]], count=4, weight=2)
    path = run.write()
    own = flat(assay, path)
    assert {name: figures for name, figures in own.items() if figures[1]} == {
        name: (pytest.approx(tin / HZ), pytest.approx(tall / HZ)) for name, (tin, tall) in {
            "main": (0, 8), "work": (3, 16), "leaf": (5, 5), "start": (0, 8), "libsum": (0, 8),
            "inlined": (8, 8)}.items()}
    for form, scale, options in (("folded", 1 / HZ, []), ("speedscope", 1e-9, []), ("callgrind", 1 / HZ, []),
                                 ("callgrind", 1e-9, ["--event", "CPU_ns"])):
        file = tmp_path / f"exported.{form}"
        assert assay("export", path, "--format", form, "-o", file).status == 0
        read = flat(assay, file, *options)
        for name, (tin, tall) in own.items():
            assert read[name] == (pytest.approx(tin / scale), pytest.approx(tall / scale)), (form, name)


def test_a_run_without_samples_or_regions_is_refused(assay, tmp_path):
    assert assay("run", "-o", tmp_path / "run", "--", "true").status == 0
    got = assay("tree", tmp_path / "run")
    assert (got.status, got.stdout) == (2, "")
    assert "has neither CPU samples nor regions" in got.stderr


def test_regions_are_a_tree_of_calls_with_their_files_totals(assay, tmp_path):
    file = made_regions.write(tmp_path / "r.h5", {0: {"a": [1000, 3000], "b": [500]}, 1: {"a": [2000]}})
    assert flat(assay, file) == {"a": (pytest.approx(6e-6), pytest.approx(6e-6)),
                                 "b": (pytest.approx(5e-7), pytest.approx(5e-7))}
    got = assay("tree", file, "--json")
    assert {row["function"]: row["calls"] for row in json.loads(got.stdout)["tree"]} == {"a": 3, "b": 1}
    assert "does not say which call is inside which" in got.stderr


# Of a program whose thread begins in what main calls as well: clone returns in main, and goes on in the thread.
THREADED = """events: Ir
fl=a.c
fn=main
1 30
cfn=clone
calls=1 20
2 10
fn=clone
20 14
cfn=work
calls=1 40
21 56
fn=work
40 56
"""


def test_what_a_thread_costs_is_part_of_the_tree_where_its_beginning_is_called_too(assay, tmp_path):
    (tmp_path / "callgrind.out").write_text(THREADED)
    got = json.loads(assay("tree", "callgrind.out", "--json", "--min-share", "0").stdout)
    rows = [(row["depth"], row["function"], row["total"], row["calls"]) for row in got["tree"]]
    assert rows == [(0, "clone", 60, None), (1, "work", 48, 1), (0, "main", 40, None), (1, "clone", 10, 1),
                    (2, "work", 8, 1)]
    assert [row["self_estimated"] for row in got["tree"]] == [True, True, False, True, True]
    assert sum(row["self"] for row in got["tree"]) == got["total"] == 100
    assert flat(assay, "callgrind.out") == {"main": (30, 40), "clone": (14, 70), "work": (56, 56)}
    whole = json.loads(assay("tree", "callgrind.out", "--json", "--root", "clone").stdout)["tree"][0]
    assert (whole["total"], whole["self"], whole["calls"], whole["estimated"]) == (70, 14, 1, False)


def test_standard_input_is_read_as_a_file_is(assay):
    got = assay("tree", "-", stdin="main;work 3\nmain 1\n")
    assert got.status == 0 and "work" in got.stdout
    bad = assay("tree", "-", stdin="main 1\nwork -3\n")
    assert (bad.status, bad.stdout) == (2, "")
    assert bad.stderr == "assay tree: standard input: line 2: a count is below 0\n"


def test_a_named_pipe_is_read_as_a_file_is(assay, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", "echo 'main;work 3' >pipe"], cwd=tmp_path):
        got = assay("tree", "pipe")
    assert (got.status, got.stderr) == (0, "") and "work" in got.stdout


def test_a_folder_that_is_no_run_is_called_none(assay, tmp_path):
    (tmp_path / "folder").mkdir()
    got = assay("tree", "folder")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr.startswith("assay tree: folder is no run directory: it has no run.json")


def test_a_single_stack_without_a_count_is_said_in_the_singular(assay):
    one, two = (assay("tree", "-", stdin=stacks).stderr for stacks in ("main;a 1\nmain;b\n", "main;a\nmain;b\n"))
    assert one.endswith(": 1 stack has no count, and counts once.\n")
    assert two.endswith(": 2 stacks have no count, and count once each.\n")


def test_an_event_is_chosen_and_a_wrong_one_told_what_there_is(assay, tmp_path):
    file = tmp_path / "out"
    file.write_text("events: Ir Dr\nfn=main\n1 10 3\n")
    assert flat(assay, file, "--event", "Dr") == {"main": (3, 3)}
    got = assay("tree", file, "--event", "Bc")
    assert got.status == 2
    assert got.stderr == f"assay tree: {file}: line 1: there is no event 'Bc'; it has: Ir, Dr\n"
    file.write_text("main 1\n")
    assert assay("tree", file, "--event", "Bc").status == 2
    profile = DATA / "pstats" / "fct4.prof"
    got = assay("tree", profile, "--event", "Bc")
    assert (got.status, got.stderr) == (2, f"assay tree: {profile}: profiles of Python have no events to choose from\n")


@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"Dear reader,\n", b"\x89HDF\r\n\x1a\n", b"{", b"{}", b"[]",
                                     b"events: Ir\n", b"# callgrind format\n", b"\xff\xfe\n", b"name: x\n"])
def test_what_is_no_profile_is_one_clear_line(assay, tmp_path, content):
    file = tmp_path / "file"
    file.write_bytes(content)
    got = assay("tree", file)
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr.startswith("assay tree: ") and got.stderr.count("\n") == 1 and str(file) in got.stderr


def test_the_formats_that_are_known_are_named(assay, tmp_path):
    (tmp_path / "file").write_text("Dear reader,\n")
    got = assay("tree", "file")
    for name in ("pstats", "callgrind", "speedscope", "folded", "a file of regions", "a run directory"):
        assert name in got.stderr


def test_a_file_that_may_not_be_read_or_is_not_there_is_named(assay, tmp_path):
    got = assay("tree", "absent")
    assert (got.status, got.stderr) == (2, "assay tree: absent: No such file or directory\n")


def test_names_of_any_bytes_are_shown_on_one_line(assay, tmp_path):
    file = tmp_path / "stacks"
    file.write_bytes(b"main;\x1b[2J\xff\xe2\x80\xae<evil>\ta 5\n")
    for form in ("text", "flat", "json", "rows", "dot"):
        got = assay("tree", file, "--format", form)
        assert got.status == 0, got
        assert b"\x1b" not in got.stdout_bytes
        got.stdout_bytes.decode("utf-8")


@pytest.mark.parametrize("form", ["callgrind", "folded", "speedscope"])
def test_a_locale_with_a_comma_changes_no_number(assay, tmp_path, form):
    text = {"callgrind": "events: Ir\nfn=main\n1 2.5\n", "folded": "main 2.5\n", "speedscope": json.dumps(
        {"shared": {"frames": [{"name": "main"}]},
         "profiles": [{"type": "sampled", "unit": "none", "samples": [[0]], "weights": [2.5]}]})}[form]
    (tmp_path / "file").write_text(text)
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
    comma = [name for name in locales if name.lower().startswith(("de_de", "fr_fr"))]
    need("locale", comma, "no locale with a decimal comma is installed")
    got = assay("tree", "file", "--style", "reference", "--format", "flat", env={"LC_ALL": comma[0]})
    assert json.loads(got.stdout)[0]["tin"] == 2.5
