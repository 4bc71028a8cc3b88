"""assay tree: what it makes of profiles whose truth is made up here, what can be asked for, and what is refused."""
import csv
import fcntl
import io
import json
import marshal
import os
import pty
import shutil
import struct
import subprocess
import termios

import pytest

from conftest import ROOT, environment
from need import need

PSTATS = ROOT / "tests" / "data" / "pstats"
REGIONS = ROOT / "tests" / "data" / "regions"


def fn(name, file="/home/me/src/prog.py", line=1):
    return (file, line, name)


def write_prof(path, functions):
    """{function: (tin, tall, {caller: (calls, tin, tall)})}, all calls primitive."""
    stats = {}
    for function, (tin, tall, callers) in functions.items():
        calls = sum(c[0] for c in callers.values()) or 1
        stats[function] = (calls, calls, tin, tall, {f: (c[0], c[0], c[1], c[2]) for f, c in callers.items()})
    path.write_bytes(marshal.dumps(stats))
    return path


@pytest.fixture
def shared(tmp_path):
    """main calls load and work, which both call read (2 s of it below load, 4 s below work), which calls seek."""
    main, load, work, read, seek = (fn(n, line=i + 10) for i, n in enumerate("main load work read seek".split()))
    return write_prof(tmp_path / "shared.prof", {
        main: (1.0, 10.0, {}),
        load: (1.0, 3.0, {main: (1, 1.0, 3.0)}),
        work: (2.0, 6.0, {main: (3, 2.0, 6.0)}),
        read: (2.0, 6.0, {load: (2, 0.5, 2.0), work: (1, 1.5, 4.0)}),
        seek: (4.0, 4.0, {read: (3, 4.0, 4.0)}),
    })


def rows_of(assay, *args):
    got = assay("tree", *args, "--format", "rows")
    assert got.status == 0, got
    return json.loads(got.stdout)


def way_of(rows, row):
    names = []
    while row is not None:
        names.append(row["function"])
        row = rows[row["parent"]] if row["parent"] is not None else None
    return " > ".join(reversed(names))


def on_terminal(program, args, columns, cwd, **env):
    """What the command prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([str(program), *map(str, args)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=theirs,
                               stderr=subprocess.PIPE, env=environment({"TERM": "xterm", "NO_COLOR": None, **env}))
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.communicate()[1] == b"" and process.returncode == 0
    return text.decode().replace("\r\n", "\n")


def test_the_tree_is_told_with_shares_and_what_is_an_estimate(assay, shared, golden):
    got = assay("tree", shared, "--clean", "basename")
    assert (got.status, got.stderr) == (0, "")
    golden("tree.txt", got.stdout)


def test_figures_below_a_shared_function_are_divided_by_what_its_callers_spent_below_it(assay, shared):
    rows = rows_of(assay, shared)
    by_way = {way_of(rows, row): row for row in rows}
    assert by_way["main > work > read"]["total"] == 4 and not by_way["main > work > read"]["estimated"]
    assert by_way["main > work > read > seek"]["total"] == pytest.approx(2.5)
    assert by_way["main > load > read > seek"]["total"] == pytest.approx(1.5)
    assert by_way["main > load > read > seek"]["estimated"]
    assert by_way["main > work"]["share"] == pytest.approx(0.6)
    assert by_way["main > work > read"]["share_of_parent"] == pytest.approx(4 / 6)
    assert [row["depth"] for row in rows] == [0, 1, 2, 3, 1, 2, 3]


def test_json_has_the_rows_and_what_they_are_of(assay, shared):
    whole = json.loads(assay("tree", shared, "--json").stdout)
    assert whole["tree"] == rows_of(assay, shared)
    assert (whole["source"], whole["unit"], whole["total"], whole["whole"]) == ("pstats", "s", 10, 10)
    assert (whole["functions"], whole["edges"], whole["exact"], whole["complete"]) == (5, 5, False, True)


def test_csv_has_the_same_figures_as_the_rows(assay, shared):
    rows = rows_of(assay, shared)
    table = list(csv.DictReader(io.StringIO(assay("tree", shared, "--format", "csv").stdout)))
    assert len(table) == len(rows)
    for cells, row in zip(table, rows):
        assert list(cells) == list(row)
        for key in ("self", "total", "share", "share_of_parent"):
            assert float(cells[key]) == row[key]
        assert (cells["function"], cells["file"], int(cells["line"]), int(cells["calls"])) == \
            (row["function"], row["file"], row["line"], row["calls"])
        assert cells["parent"] == ("" if row["parent"] is None else str(row["parent"]))
        assert int(cells["estimated"]) == row["estimated"]


def test_names_of_any_kind_survive_every_format(assay, tmp_path):
    odd = 'a "b", c\n\x1b[31m\\ \u00e4\u65e5'
    path = write_prof(tmp_path / "odd.prof", {fn(odd, "/x,y/\"q\"\n.py"): (1.0, 1.0, {})})
    row, = rows_of(assay, path)
    assert (row["function"], row["file"]) == (odd, "/x,y/\"q\"\n.py")
    cells, = csv.DictReader(io.StringIO(assay("tree", path, "--format", "csv").stdout, newline=""))
    assert cells["function"] == odd
    for form in ("text", "flat", "dot"):
        got = assay("tree", path, "--format", form)
        assert got.status == 0 and "\x1b" not in got.stdout, got


def test_graphviz_takes_the_dot_format(assay, shared, tmp_path):
    need("dot", shutil.which("dot"), "Graphviz's dot is not installed")
    path = write_prof(tmp_path / "odd.prof", {fn('a "b"\\', "/x\n.py"): (1.0, 1.0, {})})
    for profile, nodes, edges in ((shared, 5, 5), (path, 1, 0)):
        got = subprocess.run(["dot", "-Tplain"], input=assay("tree", profile, "--format", "dot").stdout_bytes,
                             capture_output=True, check=True)
        lines = got.stdout.decode().splitlines()
        assert got.stderr == b""
        assert sum(line.startswith("node ") for line in lines) == nodes
        assert sum(line.startswith("edge ") for line in lines) == edges


def test_dot_has_a_box_per_function_and_an_arrow_per_call(assay, shared):
    lines = assay("tree", shared, "--format", "dot").stdout.splitlines()
    assert lines[0] == "digraph calls {" and lines[-1] == "}"
    assert sum(" -> " in line for line in lines) == 5
    label = 'label="read  /home/me/src/prog.py:13\\n6.00 s, 60.0%\\nself 2.00 s\\n3 calls"'
    assert any(label in line for line in lines), lines


def test_flat_has_one_line_per_function_sorted_by_its_own_time(assay, shared):
    lines = assay("tree", shared, "--format", "flat", "--clean", "basename").stdout.splitlines()
    assert lines[0].split() == ["self", "%", "self", "total", "%", "total", "calls", "function"]
    assert [line.split()[-2] for line in lines[1:]] == ["seek", "work", "read", "main", "load"]
    assert lines[1].split()[:6] == ["40.0%", "4.00", "s", "40.0%", "4.00", "s"]


def test_sorts_are_those_of_siblings(assay, tmp_path):
    main = fn("main")
    path = write_prof(tmp_path / "s.prof", {
        main: (0.0, 9.0, {}),
        fn("c", line=4): (2.0, 4.0, {main: (5, 2.0, 4.0)}),
        fn("b", line=3): (3.0, 3.0, {main: (1, 3.0, 3.0)}),
        fn("a", line=2): (1.0, 2.0, {main: (9, 1.0, 2.0)}),
        fn("rest", line=5): (3.0, 3.0, {fn("c", line=4): (1, 2.0, 2.0), fn("a", line=2): (1, 1.0, 1.0)}),
    })
    for sort, order in (("line", "abc"), ("time", "bca"), ("cumulative", "cba"), ("calls", "acb")):
        rows = rows_of(assay, path, "--sort", sort)
        assert "".join(row["function"] for row in rows if row["depth"] == 1) == order


def test_small_functions_are_summed_up_and_asked_for(assay, tmp_path):
    main = fn("main")
    path = write_prof(tmp_path / "s.prof", {
        main: (90.0, 100.0, {}),
        fn("big"): (8.0, 8.0, {main: (1, 8.0, 8.0)}),
        fn("small"): (0.9, 0.9, {main: (1, 0.9, 0.9)}),
        fn("tiny"): (0.6, 0.6, {main: (1, 0.6, 0.6)}),
        fn("least"): (0.5, 0.5, {main: (1, 0.5, 0.5)}),
    })
    rows = rows_of(assay, path)
    assert [(row["function"], row["hidden"]) for row in rows] == [("main", 0), ("big", 0), (None, 3)]
    assert rows[2]["total"] == pytest.approx(2.0)
    assert "`-(3 more)" in assay("tree", path).stdout
    assert len(rows_of(assay, path, "--min-share", "0")) == 5
    assert len(rows_of(assay, path, "--min-share=0.6")) == 5  # four functions, and the summary of one
    assert [row["cut"] for row in rows_of(assay, path, "--depth", "1")] == [False, False, False]


def test_small_built_ins_are_left_out_unless_all_is_asked_for(assay, tmp_path):
    main = fn("main")
    path = write_prof(tmp_path / "s.prof", {
        main: (1e-4, 2e-4, {}),
        ("~", 0, "<built-in method len>"): (1e-4, 1e-4, {main: (1, 1e-4, 1e-4)}),
    })
    assert [row["function"] for row in rows_of(assay, path)] == ["main", None]
    assert [row["function"] for row in rows_of(assay, path, "--all")] == ["main", "<built-in method len>"]


def test_a_root_of_ones_choice_is_the_whole_and_says_what_it_is_of_all(assay, shared):
    rows = rows_of(assay, shared, "--root", "read")
    assert [(row["function"], row["share"], row["estimated"]) for row in rows] == \
        [("read", 1, False), ("seek", pytest.approx(4 / 6), False)]
    got = assay("tree", shared, "--root", "/home/me/src/prog.py:13:read")
    assert got.stdout.startswith("6.00 s in read /home/me/src/prog.py:13, 60.0% of all")


def test_an_unknown_root_is_answered_with_the_nearest_name(assay, shared):
    got = assay("tree", shared, "--root", "raed")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == "assay tree: option '--root': there is no function 'raed'; did you mean 'read'?\n"
    got = assay("tree", shared, "--root", "something_else_entirely")
    assert got.stderr == ("assay tree: option '--root': there is no function 'something_else_entirely' "
                          "(--format flat --min-share 0 lists all)\n")


def test_a_root_that_is_several_functions_is_answered_with_their_names(assay, tmp_path):
    path = write_prof(tmp_path / "s.prof", {fn("f", "a.py"): (1.0, 1.0, {}), fn("f", "b.py"): (1.0, 1.0, {})})
    got = assay("tree", path, "--root", "f")
    assert got.status == 2
    assert got.stderr == ("assay tree: option '--root': 'f' is 2 functions (a.py:1:f, b.py:1:f); "
                          "name one of them so\n")


def test_recursion_is_one_row_that_is_never_above_the_whole(assay, tmp_path):
    main, fib = fn("main"), fn("fib")
    path = tmp_path / "r.prof"
    path.write_bytes(marshal.dumps({
        main: (1, 1, 1.0, 10.0, {}),
        fib: (1, 89, 9.0, 9.0, {main: (1, 1, 2.0, 9.0), fib: (88, 0, 7.0, 8.0)}),
    }))
    rows = rows_of(assay, path)
    assert [(row["function"], row["share"], row["recursive"]) for row in rows] == \
        [("main", 1, False), ("fib", pytest.approx(0.9), True)]
    assert "fib  /home/me/src/prog.py:1 (recursive)" in assay("tree", path).stdout


def test_recursive_calls_are_divided_among_callers_and_marked(assay, tmp_path):
    main, other, fib = fn("main"), fn("other"), fn("fib")
    path = tmp_path / "r.prof"
    path.write_bytes(marshal.dumps({
        main: (1, 1, 1.0, 9.0, {}),
        other: (1, 1, 1.0, 2.0, {}),
        fib: (2, 92, 9.0, 9.0, {main: (1, 1, 2.0, 8.0), other: (1, 1, 1.0, 1.0), fib: (90, 0, 6.0, 7.0)}),
    }))
    rows = [row for row in rows_of(assay, path) if row["function"] == "fib"]
    assert [(row["calls"], row["calls_estimated"], row["estimated"]) for row in rows] == \
        [(81, True, False), (11, True, False)]
    assert "~81" in assay("tree", path).stdout


def deep_profile(path, levels, leaves):
    """Each level calls the next one, and a leaf where there are leaves; each of them costs 10 ms."""
    functions, before, step = {}, None, 0.02 if leaves else 0.01
    for i in range(levels):
        name = fn(f"a_function_with_a_rather_long_name_{i}", f"/a/long/way/to/the/module_{i}.py", i + 1)
        cost = step * (levels - i)
        functions[name] = (0.01, cost, {before: (1, 0.01, cost)} if before else {})
        if leaves:
            functions[fn(f"leaf_{i}")] = (0.01, 0.01, {name: (1, 0.01, 0.01)})
        before = name
    return write_prof(path, functions)


def test_lines_fit_the_terminal_at_any_depth(program, tmp_path):
    path = deep_profile(tmp_path / "deep.prof", 200, leaves=True)
    for columns in (60, 80, 120, 200):
        text = on_terminal(program, ["tree", path, "--min-share", "0"], columns, tmp_path, NO_COLOR="1")
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= columns
        assert "[199]" in text and "_199" in text


def test_lines_with_marks_fit_a_narrow_terminal(program, tmp_path):
    text = on_terminal(program, ["tree", PSTATS / "stdlib.prof", "--min-share", "0"], 60, tmp_path, NO_COLOR="1")
    assert max(map(len, text.splitlines())) <= 60
    assert "(rec.)" in text


def test_a_deep_chain_of_only_calls_needs_no_level_for_each(program, tmp_path):
    path = deep_profile(tmp_path / "chain.prof", 200, leaves=False)
    text = on_terminal(program, ["tree", path, "--min-share", "0"], 80, tmp_path, NO_COLOR="1")
    names = [line[line.index("a_function"):] for line in text.splitlines() if "a_function" in line]
    assert len(names) == 200 and "`-a_function" in text
    assert [line.index("a_function") for line in text.splitlines() if "a_function" in line][1:] == \
        [text.splitlines()[4].index("a_function")] * 199
    assert "The tree is deep: a name without a line of the tree before it" in text


def test_colour_is_for_terminals(program, assay, shared, tmp_path):
    assert "\x1b[31m" in on_terminal(program, ["tree", shared], 80, tmp_path)
    assert "\x1b" not in on_terminal(program, ["tree", shared], 80, tmp_path, NO_COLOR="1")
    assert "\x1b" not in assay("tree", shared).stdout


def test_a_file_is_replaced_whole_or_left_alone(assay, shared, tmp_path):
    out = tmp_path / "calls.csv"
    got = assay("tree", shared, "--format", "csv", "-o", out)
    assert (got.status, got.stdout) == (0, "")
    assert out.read_text() == assay("tree", shared, "--format", "csv").stdout
    before = out.read_bytes()
    got = assay("tree", tmp_path / "none.prof", "--format", "csv", "-o", out)
    assert got.status == 2 and out.read_bytes() == before
    got = assay("tree", shared, "-o", tmp_path / "no" / "folder.txt")
    assert got.status == 3 and "no/folder.txt" in got.stderr and got.stderr.count("\n") == 1


@pytest.mark.parametrize("form, file", [("text", "fct4.tree.txt"), ("json", "fct4.tree.json"),
                                        ("rows", "fct4.rows.json")])
def test_the_reference_style_is_the_references_to_the_last_byte(assay, form, file):
    got = assay("tree", PSTATS / "fct4.prof", "--style", "reference", "--format", form, "--clean", "basename")
    assert (got.status, got.stderr) == (0, "")
    wanted = (PSTATS / file).read_text()
    if form == "text":
        assert got.stdout.rstrip("\n") == wanted.rstrip("\n") and got.stdout.endswith("\n")
    else:
        assert json.loads(got.stdout) == json.loads(wanted)


@pytest.mark.parametrize("args, sentence", [
    (["--sort", "calls"], "option '--sort': 'calls' is no order of --style reference, which has line, time and "
                          "cumulative"),
    (["--format", "csv"], "option '--format': 'csv' is no format of --style reference, which has text, json, rows and "
                          "flat"),
    (["--format", "dot"], "option '--format': 'dot' is no format of --style reference, which has text, json, rows and "
                          "flat"),
    (["--depth", "3"], "option '--depth' is for --style tree: --style reference shows what the reference shows"),
    (["--min-share", "0"], "option '--min-share' is for --style tree: --style reference shows what the reference "
                           "shows"),
])
def test_what_the_reference_does_not_have_is_refused(assay, shared, args, sentence):
    got = assay("tree", shared, "--style", "reference", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay tree: {sentence}\n")


@pytest.mark.parametrize("form", ["dot", "flat"])
@pytest.mark.parametrize("args", [["--root", "read"], ["--depth", "2"]])
def test_what_is_about_trees_is_refused_where_there_is_none(assay, shared, form, args):
    got = assay("tree", shared, "--format", form, *args)
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == (f"assay tree: option '{args[0]}' is for trees: --format {form} shows the functions of all "
                          "of them\n")


def test_functions_that_become_one_by_cleaning_are_added_up_here_and_refused_there(assay, tmp_path):
    main = fn("main")
    path = write_prof(tmp_path / "s.prof", {
        main: (1.0, 4.0, {}),
        fn("f", "/a/x.py"): (1.0, 1.0, {main: (1, 1.0, 1.0)}),
        fn("f", "/b/x.py"): (2.0, 2.0, {main: (2, 2.0, 2.0)}),
    })
    rows = rows_of(assay, path, "--clean", "basename")
    assert [(row["function"], row["file"], row["total"], row["calls"]) for row in rows][1:] == [("f", "x.py", 3, 3)]
    got = assay("tree", path, "--clean", "basename", "--style", "reference")
    assert got.status == 2 and "x.py:1:f" in got.stderr


def test_what_is_no_profile_is_refused_with_one_line(assay, tmp_path, shared):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("hello\nworld\n")
    (tmp_path / "cut.prof").write_bytes(shared.read_bytes()[:-20])
    for name in ("empty", "cut.prof", "none", "."):
        got = assay("tree", name)
        assert (got.status, got.stdout) == (2, "") and got.stderr.count("\n") == 1, got
        assert got.stderr.startswith("assay tree: ")
    for args in ([], [shared, shared]):
        got = assay("tree", *args)
        assert got.status == 2
        assert got.stderr == ("assay tree: expected one profile or run directory; usage: assay tree [options] "
                              "FILE|DIR\n")


def test_a_full_disk_is_said(assay, shared):
    with open("/dev/full", "w") as full:
        got = assay("tree", shared, stdout=full)
    assert got.status == 3 and got.stderr.count("\n") == 1


def test_a_file_of_regions_is_a_tree_with_exact_figures(assay):
    whole = json.loads(assay("tree", REGIONS / "before.h5", "--json", "--min-share", "0").stdout)
    assert whole["exact"] and whole["tree"]
    assert not any(row["estimated"] for row in whole["tree"])
    assert all(row["share"] <= 1 for row in whole["tree"])
