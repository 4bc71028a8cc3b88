"""assay check: what passes, what fails, what is refused, in every format and over every kind of side."""
import json
import pathlib
import xml.etree.ElementTree as xml

import pytest

pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
import made_regions  # noqa: E402  (needs h5py)

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
BEFORE, AFTER = DATA / "regions" / "before.h5", DATA / "regions" / "after.h5"
FORMATS = ("text", "json", "markdown", "junit", "github")


def check(assay, a, b, *args):
    """The status, and {region: finding} of the JSON answer."""
    got = assay("check", a, b, "--json", *args)
    assert got.status in (0, 1) and not got.stderr, got
    answer = json.loads(got.stdout)
    assert answer["verdict"] == ("failed" if got.status else "passed")
    assert answer["failed"] == sum(row["fails"] for row in answer["rows"])
    return got.status, {row["name"]: row["finding"] for row in answer["rows"]}


def sides(tmp_path, a, b):
    return made_regions.write(tmp_path / "a.h5", a), made_regions.write(tmp_path / "b.h5", b)


def run(path, status="ok", **figures):
    path.mkdir()
    (path / "run.json").write_text(json.dumps({"status": status, **figures}))
    return path


def hyperfine(path, **commands):
    results = [{"command": name, **(what if isinstance(what, dict) else {"times": what})}
               for name, what in commands.items()]
    path.write_text(json.dumps({"results": results}))
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_it_can_fail_and_every_format_says_so(assay, name):
    got = assay("check", BEFORE, AFTER, "--format", name)
    assert (got.status, got.stderr) == (1, "")
    assert {"text": "\nfailed: 5 (5 regressed); 5 compared, 1 new\n", "json": '"verdict": "failed"',
            "markdown": "**assay check failed: 5 (5 regressed); 5 compared, 1 new**", "junit": 'failures="5"',
            "github": "\n::error title=assay check::failed: 5 (5 regressed); 5 compared, 1 new; "}[name] in got.stdout
    assert "solve" in got.stdout


@pytest.mark.parametrize("name", FORMATS)
def test_equality_passes_and_every_format_says_so(assay, name):
    got = assay("check", BEFORE, BEFORE, "--format", name)
    assert (got.status, got.stderr) == (0, "")
    assert {"text": "\npassed: 5 compared (5 within the budget)\n", "json": '"verdict": "passed"',
            "markdown": "**assay check passed: 5 compared", "junit": 'failures="0"',
            "github": "::notice title=assay check::passed: 5 compared"}[name] in got.stdout
    assert "FAILS" not in got.stdout and "::error" not in got.stdout and "<failure" not in got.stdout


def test_the_budget_is_percent_of_the_baseline_and_itself_passes(assay, tmp_path):
    a, b = sides(tmp_path, {"x": [60, 40]}, {"x": [110]})
    assert check(assay, a, b, "--max-regression", "10") == (0, {"x": "within"})
    assert check(assay, a, b, "--max-regression", "9.99") == (1, {"x": "regressed"})
    assert check(assay, a, b) == (1, {"x": "regressed"})
    assert check(assay, b, a) == (0, {"x": "improved"})
    assert check(assay, a, b, "--metric", "calls") == (0, {"x": "improved"})
    assert check(assay, a, b, "--metric", "max", "--max-regression", "50") == (1, {"x": "regressed"})


def test_the_verdict_counts_as_json_does(assay, tmp_path):
    a, b = sides(tmp_path, {"x": [5000], "y": [70], "z": [3000]}, {"x": [6000], "y": [90], "z": [2000]})
    args = ("check", a, b, "--min-total", "1e-6")
    answer = json.loads(assay(*args, "--json").stdout)
    assert (answer["failed"], answer["compared"], answer["findings"]["too_small"]) == (1, 2, 1)
    assert "\nfailed: 1 (1 regressed); 2 compared, 1 too small to be compared\n" in assay(*args).stdout


def test_a_machine_that_was_not_clean_is_told_of_regions_too(assay, tmp_path):
    for name in "ab":
        run(tmp_path / name, machine_before={"clean": name == "a"})
        made_regions.write(tmp_path / name / "regions.h5", {"x": [5]})
    told = ["b: the machine was not clean before the run"]
    assert json.loads(assay("check", "a", "b", "--regions", "--json").stdout)["notes"] == told
    assert json.loads(assay("check", "a", "a", "--regions", "--json").stdout)["notes"] == []


def test_new_and_vanished_regions_pass_unless_asked_to_fail_and_are_always_listed(assay, tmp_path):
    a, b = sides(tmp_path, {"x": [5], "old": [7]}, {"x": [5], "new": [9]})
    findings = {"x": "within", "old": "vanished", "new": "new"}
    assert check(assay, a, b) == (0, findings)
    assert check(assay, a, b, "--fail-on-new") == (1, findings)
    assert check(assay, a, b, "--fail-on-missing") == (1, findings)
    shown = assay("check", a, b).stdout
    assert "old" in shown and "new" in shown and "passed: 1 compared (1 within the budget), 1 new, 1 vanished" in shown
    failing = assay("check", a, b, "--fail-on-missing").stdout
    assert "failed: 1 (1 vanished); 1 compared, 1 new" in failing


def test_a_region_without_calls_is_as_one_that_is_not_there(assay, tmp_path):
    files = sides(tmp_path, {"solve": [5000], "gone": [100], "idle": []}, {"solve": [5000], "gone": [], "new": [7],
                                                                         "idle": []})
    assert check(assay, *files) == (0, {"solve": "within", "gone": "vanished", "new": "new"})
    assert check(assay, *files, "--fail-on-missing")[0] == 1
    rows = {row["name"]: row for row in json.loads(assay("regions", "diff", *files, "--json").stdout)["rows"]}
    assert set(rows) == {"solve", "gone", "new"}
    assert (rows["gone"]["a"], rows["gone"]["b"], rows["gone"]["delta"]) == (100, None, -100)


def test_a_cost_where_there_was_none_fails_under_any_budget(assay, tmp_path):
    a, b = sides(tmp_path, {"x": [0], "y": [0]}, {"x": [1], "y": [0]})
    assert check(assay, a, b, "--max-regression", "1e9") == (1, {"x": "from_zero", "y": "within"})
    assert "from 0  new cost where there was none  FAILS" in assay("check", a, b).stdout


def test_small_regions_can_be_left_out(assay, tmp_path):
    a, b = sides(tmp_path, {"small": [1000], "large": [2_000_000], "grown": [1000]},
                 {"small": [9000], "large": [2_000_000], "grown": [3_000_000]})
    assert check(assay, a, b, "--min-total", "0.001") == (1, {"small": "too_small", "large": "within",
                                                              "grown": "regressed"})
    got = assay("check", a, b, "--min-total", "10")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == "assay check: nothing was compared: all that both sides have is below --min-total\n"


def test_filters_are_those_of_regions_diff(assay, tmp_path):
    a, b = sides(tmp_path, {0: {"x": [5], "y": [5]}, 1: {"x": [50], "y": [5]}},
                 {0: {"x": [5], "y": [6]}, 1: {"x": [99], "y": [5]}})
    assert check(assay, a, b, "--include", "x") == (1, {"x": "regressed"})
    assert check(assay, a, b, "--exclude", "y", "--ranks", "0") == (0, {"x": "within"})
    assert check(assay, a, b, "--ranks", "1") == (1, {"x": "regressed", "y": "within"})


@pytest.mark.parametrize("args, error", (
    ([], "nothing was compared: the two sides have nothing in common"),
    (["--fail-on-new", "--include", "nothing"],
     "nothing was compared: the two sides have nothing in common that the filters leave"),
    (["--metric", "gpu_total"], "nothing was compared: the two sides have nothing in common"),
))
def test_a_gate_that_compares_nothing_is_not_passed(assay, tmp_path, args, error):
    a, b = sides(tmp_path, {"x": [5]}, {"y": [5]})
    got = assay("check", a, b, *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay check: {error}\n")
    assert check(assay, a, b, "--fail-on-missing")[0] == 1, "what failed is a failure"


@pytest.mark.parametrize("budget", ("nan", "-1", "inf", "-inf", "1e999", "x", ""))
def test_a_budget_that_is_no_number_is_bad_usage(assay, budget):
    for option in ("--max-regression", "--min-total"):
        got = assay("check", BEFORE, BEFORE, f"{option}={budget}")
        assert (got.status, got.stdout) == (2, "")
        assert got.stderr == f"assay check: option '{option}': '{budget}' is not a number of 0 or more\n"


@pytest.mark.parametrize("args, error", (
    (["a.h5"], "expected two sides; usage: assay check [options] A B"),
    (["a.h5", "b.h5", "c.h5"], "expected two sides; usage: assay check [options] A B"),
    (["a.h5", "b.h5", "--json", "--format", "junit"], "options '--json' and '--format junit' exclude each other"),
    (["a.h5", "b.h5", "--format", "xml"], "option '--format': 'xml' is not one of text, json, markdown, junit, github"),
    (["a.h5", "b.h5", "-m", "avg", "-m", "p99"], "option '--metric': of regions one metric is compared at a time"),
    (["a.h5", "b.h5", "-m", "wall_s"],
     "option '--metric': 'wall_s' is no metric of regions; 'assay help regions' lists them"),
    (["run", "run", "-m", "p99"], "option '--metric': 'p99' is of regions, and these are runs; --regions compares the "
                                  "regions of run directories"),
    (["run", "run", "-m", "wal_s"],
     "option '--metric': there is no metric 'wal_s' in these runs; did you mean 'wall_s'?"),
    (["run", "run", "--ranks", "0"], "option '--ranks' is for regions, and these are runs"),
))
def test_bad_usage_is_one_line_and_status_2(assay, tmp_path, args, error):
    sides(tmp_path, {"x": [5]}, {"x": [5]})
    run(tmp_path / "run", wall_s=1)
    got = assay("check", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay check: {error}\n")


@pytest.mark.parametrize("text", ("", "{", "{}", "[1]", "no file of regions\n", "\x89HDF\r\n\x1a\n", "SCOPEPRF"))
def test_bad_files_are_named(assay, tmp_path, text):
    sides(tmp_path, {"x": [5]}, {"x": [5]})
    (tmp_path / "bad").write_bytes(text.encode("latin-1"))
    for pair in (("bad", "bad"), ("a.h5", "bad"), ("bad", "a.h5"), ("missing", "a.h5")):
        got = assay("check", *pair)
        assert (got.status, got.stdout) == (2, "") and got.stderr.count("\n") == 1, got
        assert ("missing" if "missing" in pair else "bad") in got.stderr


def test_run_directories_are_compared_by_the_metrics_that_count(assay, tmp_path):
    a = run(tmp_path / "a", wall_s=10, cpu_s=5, throughput={"decode": {"tokens_per_s": 50}},
            phases=[{"name": "p", "group": "other", "start_s": 0, "end_s": 1}])
    b = run(tmp_path / "b", wall_s=10.2, cpu_s=5, throughput={"decode": {"tokens_per_s": 40}},
            phases=[{"name": "p", "group": "other", "start_s": 0, "end_s": 9}])
    assert check(assay, a, b, "--max-regression", "5") == (
        1, {"wall_s": "within", "cpu_s": "within", "decode_tps": "regressed"})
    assert check(assay, b, a / "run.json") == (0, {"wall_s": "improved", "cpu_s": "within", "decode_tps": "improved"})
    assert check(assay, a, b, "--metric", "wall_s", "--metric", "phase:p", "--max-regression", "5") == (
        1, {"wall_s": "within", "phase:p": "regressed"})
    assert "-20.0%" in assay("check", a, b, "--include", "decode").stdout


@pytest.mark.parametrize("status", ("failed", "signal", "timeout", "interrupted", "partial"))
def test_a_run_that_did_not_end_well_is_refused(assay, tmp_path, status):
    good, bad = run(tmp_path / "good", wall_s=1), run(tmp_path / "bad", status, wall_s=1)
    for run_dir in (good, bad):
        made_regions.write(run_dir / "regions.h5", {"x": [5]})
    for pair in ((good, bad), (bad, good), (good, bad / "run.json")):
        for more in ([], ["--regions"]):
            got = assay("check", *pair, *more)
            assert (got.status, got.stdout) == (2, "")
            assert f"the run did not end well (status '{status}'), so it is not compared" in got.stderr
    (bad / "run.json").rename(bad / "begin.json")
    assert assay("check", good, bad, "--regions").status == 2, "it was never finished"
    traced = run(tmp_path / "traced", wall_s=1, perturbed=True)
    assert "was traced" in assay("check", good, traced).stderr


def test_the_regions_of_run_directories_are_compared_where_asked(assay, tmp_path):
    a, b = run(tmp_path / "a", wall_s=1), run(tmp_path / "b", wall_s=1)
    made_regions.write(a / "regions.h5", {"x": [5]})
    made_regions.write(b / "regions.h5", {"x": [50]})
    assert check(assay, a, b) == (0, {"wall_s": "within"})
    assert check(assay, a, b, "--regions") == (1, {"x": "regressed"})
    assert check(assay, a / "run.json", b / "run.json", "--regions") == (1, {"x": "regressed"})
    assert check(assay, a, b / "regions.h5") == (1, {"x": "regressed"})
    got = assay("check", "run.json", "../b", "--regions", "--json", cwd=a)
    assert got.status == 1 and json.loads(got.stdout)["rows"][0]["b"] == 50
    for side in (a, b):
        (side / "run.json").unlink()
    assert check(assay, a, b) == (1, {"x": "regressed"}), "folders of merged ranks"


def test_results_of_other_tools_are_compared_by_name(assay, tmp_path):
    a = hyperfine(tmp_path / "a.json", one=[1.0, 1.1, 1.2], two=[2.0])
    b = hyperfine(tmp_path / "b.json", one=[1.1, 9.0, 1.0], two=[2.2], three=[1.0])
    assert check(assay, a, b, "--max-regression", "5") == (1, {"one": "within", "two": "regressed", "three": "new"})
    assert check(assay, a, b, "--max-regression", "5", "--include", "one") == (0, {"one": "within"})
    for name in ("google-benchmark.json", "llama-bench-old.jsonl", "hyperfine.json"):
        file = DATA / "foreign" / name
        assert assay("check", file, file).status == 0
    row = {"model_type": "m", "n_prompt": 0, "n_gen": 16}
    for name, rate in (("fast", 100), ("slow", 80)):
        (tmp_path / name).write_text(json.dumps({**row, "samples_ts": [rate, rate]}) + "\n")
    assert check(assay, "fast", "slow", "--max-regression", "10")[0] == 1
    assert check(assay, "slow", "fast")[0] == 0


def test_failed_repetitions_are_told_and_do_not_count(assay, tmp_path):
    a = hyperfine(tmp_path / "a.json", one=[1.0, 1.0])
    b = hyperfine(tmp_path / "b.json", one={"times": [1.0, 0.1], "exit_codes": [0, 1]})
    got = assay("check", a, b, "--json")
    answer = json.loads(got.stdout)
    assert got.status == 0 and answer["rows"][0]["b"] == 1.0
    assert answer["notes"] == [f"{b}: 1 of 2 repetitions failed and do not count"]
    hyperfine(tmp_path / "b.json", one={"times": [1.0], "exit_codes": [1]})
    assert assay("check", a, b).status == 2


@pytest.mark.parametrize("name", FORMATS)
def test_what_makes_it_uncertain_stands_in_every_format(assay, tmp_path, name):
    a, b = sides(tmp_path, {0: {"x": [5]}, 1: {"x": [5]}}, {"x": [5]})
    got = assay("check", a, b, "--format", name)
    assert got.status == 0 and "different ranks" in got.stdout.replace("\n    ", " ")


HOSTILE = ["a|b", "<&\"'>", "]]>", "x\x1b[31m", "two\nlines\r", "100%", "::error::", "a:b,c", "\x01\x02",
           "\ufffe\uffff", "caf\u00e9", "*_`[x](y)`_*"]


def hostile(tmp_path):
    return sides(tmp_path, {name: [5] for name in HOSTILE}, {name: [6] for name in HOSTILE})


def test_junit_is_well_formed_whatever_names_hold(assay, tmp_path):
    got = assay("check", *hostile(tmp_path), "--format", "junit")
    suites = xml.fromstring(got.stdout_bytes)
    cases = suites.findall("./testsuite/testcase")
    assert got.status == 1 and len(cases) == len(HOSTILE) == int(suites.get("failures"))
    assert all(len(case.findall("failure")) == 1 for case in cases)
    names = {case.get("name") for case in cases}
    assert {"a|b", "<&\"'>", "]]>", "x?[31m", "two?lines?", "::error::", "caf\u00e9", "??"} <= names


def test_junit_counts_what_was_not_compared_as_skipped(assay, tmp_path):
    a, b = sides(tmp_path, {"x": [5], "old": [7]}, {"x": [5], "new": [9]})
    suite = xml.fromstring(assay("check", a, b, "--format", "junit").stdout).find("testsuite")
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("3", "0", "2")


def test_github_gets_one_command_a_line_whatever_names_hold(assay, tmp_path):
    got = assay("check", *hostile(tmp_path), "--format", "github")
    lines = got.stdout.splitlines()
    assert got.status == 1 and len(lines) == len(HOSTILE) + 1
    for line in lines:
        assert line.startswith("::error title=")
        properties, _, _ = line[len("::error "):].partition("::")
        assert properties.count("=") >= 1 and "," not in properties and ":" not in properties
        assert all(line[i:i + 3] in ("%25", "%3A", "%2C") for i, c in enumerate(line) if c == "%")
        assert line.isprintable() or "\ufffe" in line


def test_markdown_is_one_table_whatever_names_hold(assay, tmp_path):
    got = assay("check", *hostile(tmp_path), "--format", "markdown")
    rows = [line for line in got.stdout.splitlines() if line.startswith("|")]
    assert got.status == 1 and len(rows) == len(HOSTILE) + 2
    assert all(row.replace("\\|", "").count("|") == 7 for row in rows)
    assert "| a\\|b |" in got.stdout and "\\*\\_\\`\\[x\\](y)\\`\\_\\*" in got.stdout


def test_json_keeps_names_as_they_are(assay, tmp_path):
    status, findings = check(assay, *hostile(tmp_path))
    assert status == 1 and set(findings) == set(HOSTILE)


def test_the_text_says_what_failed_and_by_how_much(assay, tmp_path, golden):
    sides(tmp_path, {"solve": [60_000, 40_000], "io": [40_000], "old": [20_000], "same": [1_000_000], "zero": [0]},
          {"solve": [150_000], "io": [10_000], "new": [2000], "same": [1_000_000], "zero": [5]})
    golden("check.txt", assay("check", "a.h5", "b.h5", "--max-regression", "5").stdout)
    golden("check-all.txt", assay("check", "a.h5", "b.h5", "--max-regression", "60", "--all", "--fail-on-new").stdout)


def test_calls_that_found_no_room_are_told(assay, targets):
    """1,000,000 calls do not go into 8 MiB: B's totals are too small, and nobody may take that for an improvement."""
    for name, calls, limit in (("a", "10", None), ("b", "1000000", "8M")):
        got = assay("run", "-o", name, "--precheck", "off", "--no-probe", "--", targets("marked"), "nest", calls, "1",
                    env={"ASSAY_LIMIT": limit})
        assert got.status == 0, got
    got = assay("check", "a", "b", "--regions", "--json", "--max-regression", "1e12")
    assert any("found no room" in note for note in json.loads(got.stdout)["notes"])
    diff = assay("regions", "diff", "a", "b", "--json")
    assert "found no room" in diff.stderr
    assert any(row["dropped_b"] for row in json.loads(diff.stdout)["rows"])


def test_a_killed_program_is_refused_by_check_and_shown_by_diff(assay, targets):
    for name, what in (("a", ("nest", "10", "1")), ("b", ("kill",))):
        assay("run", "-o", name, "--precheck", "off", "--no-probe", "--", targets("marked"), *what)
    got = assay("check", "a", "b", "--regions")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == "assay check: b: the run did not end well (status 'signal'), so it is not compared\n"
    assert "inner" in assay("regions", "diff", "a", "b").stdout


def test_an_expression_that_takes_too_long_leaves_out_no_region_unseen(assay, tmp_path):
    slow = "x" * 50 + "!"
    a, b = sides(tmp_path, {"other": [5], slow: [5]}, {"other": [5], slow: [99]})
    for args in (["-x", "(x+x+)+$"], ["-i", "(x|xx)+$", "-i", "other"]):
        got = assay("check", a, b, *args)
        assert (got.status, got.stdout) == (2, ""), got
        assert "takes too long to be matched with 'xxxx" in got.stderr


def test_regions_that_nobody_timed_are_not_below_the_least_total(assay, targets):
    for name, calls in (("a", "10"), ("b", "30")):
        got = assay("run", "-o", name, "--precheck", "off", "--no-probe", "--", targets("marked"), "nest", calls, "1",
                    env={"ASSAY_REGIONS": "count"})
        assert got.status == 0, got
    status, findings = check(assay, "a", "b", "--regions", "--metric", "calls", "--min-total", "0.001")
    assert status == 1 and "regressed" in findings.values() and "too_small" not in findings.values()


def test_a_region_without_a_figure_on_one_side_has_not_vanished(assay, targets):
    for name, mode in (("a", "trace"), ("b", "count")):
        got = assay("run", "-o", name, "--precheck", "off", "--no-probe", "--", targets("marked"), "nest", "10", "1",
                    env={"ASSAY_REGIONS": mode})
        assert got.status == 0, got
    for a, b in (("a", "b"), ("b", "a")):
        status, findings = check(assay, a, b, "--regions")
        assert status == 1 and set(findings.values()) == {"unknown"}
    assert check(assay, "a", "b", "--regions", "--metric", "calls")[0] == 0
    got = assay("check", "a", "b", "--regions", "--metric", "gpu_total")
    assert got.status == 2 and "nothing was compared" in got.stderr
