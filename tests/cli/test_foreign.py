"""assay diff between result files of other benchmark tools."""
import json
import pathlib

import pytest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "foreign"


def hyperfine(path, **commands):
    """A file of that many commands: name=[times], or a whole result."""
    results = [{"command": name, **(what if isinstance(what, dict) else {"times": what})}
               for name, what in commands.items()]
    path.write_text(json.dumps({"results": results}))
    return path


def google(path, **benchmarks):
    rows = [{"name": name, "run_name": name, "run_type": "iteration", "repetition_index": i, "iterations": 10,
             "real_time": time, "cpu_time": time, "time_unit": "us"}
            for name, times in benchmarks.items() for i, time in enumerate(times)]
    path.write_text(json.dumps({"context": {}, "benchmarks": rows}))
    return path


def llama(path, *rates):
    row = {"model_type": "m", "n_prompt": 0, "n_gen": 16, "samples_ts": list(rates)}
    path.write_text(json.dumps(row) + "\n")
    return path


FAST, SLOW = [1.0, 1.01, 1.02], [1.5, 1.51, 1.52]


@pytest.mark.parametrize("write", [hyperfine, google])
def test_a_longer_time_is_a_regression_and_a_shorter_one_an_improvement(assay, tmp_path, write):
    fast, slow = write(tmp_path / "fast", x=FAST), write(tmp_path / "slow", x=SLOW)
    worse = assay("diff", fast, "--vs", slow, "--json")
    better = assay("diff", slow, "--vs", fast, "--json")
    assert (worse.status, json.loads(worse.stdout)["verdict"]) == (1, "regression")
    assert (better.status, json.loads(better.stdout)["verdict"]) == (0, "improvement")
    assert json.loads(worse.stdout)["metrics"]["x"]["ratio"] == pytest.approx(1.51 / 1.01, abs=1e-4)


def test_a_higher_rate_is_an_improvement(assay, tmp_path):
    got = assay("diff", llama(tmp_path / "a", 100, 101), "--vs", llama(tmp_path / "b", 110, 111), "--json")
    assert got.status == 0
    metric = json.loads(got.stdout)["metrics"]["m tg16"]
    assert (metric["verdict"], metric["a_runs"], metric["b_runs"]) == ("better", [100, 101], [110, 111])


def test_a_change_below_the_floor_is_none(assay, tmp_path):
    times = assay("diff", hyperfine(tmp_path / "a", x=[1.0, 1.0]), "--vs", hyperfine(tmp_path / "b", x=[1.009, 1.009]))
    rates = assay("diff", llama(tmp_path / "c", 100, 100), "--vs", llama(tmp_path / "d", 99.8, 99.8))
    assert (times.status, rates.status) == (0, 0)


@pytest.mark.parametrize("name", ["hyperfine.json", "google-benchmark.json", "google-benchmark-aggregates.json",
                                  "llama-bench-new.json", "llama-bench-new.jsonl", "llama-bench-old.jsonl"])
def test_real_files_equal_themselves(assay, name):
    got = assay("diff", DATA / name, "--vs", DATA / name)
    assert got.status == 0, got
    assert "Verdict: neutral" in got.stdout


def test_builds_of_two_years_are_paired(assay):
    got = assay("diff", DATA / "llama-bench-old.jsonl", "--vs", DATA / "llama-bench-new.json", "--json")
    metrics = json.loads(got.stdout)["metrics"]
    assert set(metrics) == {"llama ?B Q8_0 pp64", "llama ?B Q8_0 tg16"}
    assert metrics["llama ?B Q8_0 tg16"]["verdict"] == "better"


def test_names_of_one_side_are_listed(assay, tmp_path):
    a, b = hyperfine(tmp_path / "a", x=FAST, old=FAST), hyperfine(tmp_path / "b", x=FAST, new=FAST)
    got = assay("diff", a, "--vs", b)
    assert got.status == 0
    assert "only side A has 'old'" in got.stderr and "only side B has 'new'" in got.stderr


def test_no_name_in_common_is_bad_input(assay, tmp_path):
    got = assay("diff", hyperfine(tmp_path / "a", x=FAST), "--vs", hyperfine(tmp_path / "b", y=FAST))
    assert (got.status, got.stdout) == (2, "")
    assert "no benchmark is on both sides" in got.stderr


def test_failed_repetitions_are_counted_and_not_used(assay, tmp_path):
    a = hyperfine(tmp_path / "a", x={"times": [1.0, 9.0, 1.0], "exit_codes": [0, 1, 0]})
    got = assay("diff", a, "--vs", hyperfine(tmp_path / "b", x=[1.0, 1.0]), "--json")
    assert got.status == 0
    answer = json.loads(got.stdout)
    assert answer["metrics"]["x"]["a_runs"] == [1.0, 1.0]
    assert answer["dropped_runs"] == 1


def test_nothing_but_failures_is_no_verdict(assay, tmp_path):
    a = hyperfine(tmp_path / "a", x={"times": [1.0], "exit_codes": [None]})
    got = assay("diff", a, "--vs", hyperfine(tmp_path / "b", x=FAST))
    assert got.status == 0
    assert "no usable run" in got.stderr


def test_zero_before_is_still_a_regression(assay, tmp_path):
    got = assay("diff", hyperfine(tmp_path / "a", x=[0, 0]), "--vs", hyperfine(tmp_path / "b", x=[5, 5]), "--json")
    assert got.status == 1
    assert json.loads(got.stdout)["metrics"]["x"]["ratio"] is None


@pytest.mark.parametrize("times, what", [
    ("[1, -1]", '"times[1]" is negative'),
    ("[NaN]", '"times[0]" is not a finite number'),
    ("[1, 2, Infinity]", '"times[2]" is not a finite number'),
    ('["1"]', '"times[0]" is not a finite number'),
    ("[]", '"times" is missing or has no value'),
])
def test_a_bad_value_is_named(assay, tmp_path, times, what):
    bad = tmp_path / "bad.json"
    bad.write_text('{"results": [{"command": "c", "times": %s}]}' % times)
    got = assay("diff", hyperfine(tmp_path / "a", c=FAST), "--vs", bad)
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == f'assay diff: {bad}: benchmark "c": {what}\n'


def test_a_file_that_is_cut_off_is_named_with_its_line(assay, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text('{"results": [\n {"command": "c", "times": [1,')
    got = assay("diff", bad, "--vs", hyperfine(tmp_path / "b", c=FAST))
    assert got.status == 2
    assert f"{bad}: line 2, column " in got.stderr


def test_a_file_without_results_says_so(assay, tmp_path):
    got = assay("diff", hyperfine(tmp_path / "a"), "--vs", hyperfine(tmp_path / "b", c=FAST))
    assert got.status == 2
    assert got.stderr == f'assay diff: {tmp_path / "a"}: "results" is empty: no benchmark was finished\n'


def test_names_with_any_characters_stay_apart(assay, tmp_path):
    names = ["a|b", "a\nb", 'a"b', "ü✓", "x" * 65 + "1", "x" * 65 + "2", "wall_s", "results"]
    a = hyperfine(tmp_path / "a", **{name: [1.0 + i, 1.0 + i] for i, name in enumerate(names)})
    got = assay("diff", a, "--vs", a, "--json")
    assert got.status == 0
    metrics = json.loads(got.stdout)["metrics"]
    wanted = {("wall_s (benchmark)" if name == "wall_s" else name): 1.0 + i for i, name in enumerate(names)}
    assert {name: metric["a"] for name, metric in metrics.items()} == wanted


def test_several_files_make_one_side(assay, tmp_path):
    for i, rate in enumerate([100, 101, 102]):
        llama(tmp_path / f"a{i}.jsonl", rate)
    got = assay("diff", tmp_path / "a*.jsonl", "--vs", llama(tmp_path / "b", 100, 101), "--json")
    assert json.loads(got.stdout)["metrics"]["m tg16"]["a_runs"] == [100, 101, 102]


def test_what_bench_exports_is_read_back(assay, tmp_path):
    done = assay("bench", "-n", "2", "-i", "--export-json", "out.json", "true", "false")
    assert done.status == 0, done
    got = assay("diff", "out.json", "--vs", "out.json", "--json")
    assert got.status == 0
    answer = json.loads(got.stdout)
    times = json.loads((tmp_path / "out.json").read_text())["results"][0]["times"]
    assert answer["metrics"]["true"]["a_runs"] == pytest.approx(times, rel=1e-3)
    assert answer["dropped_runs"] == 4  # `false` fails twice on either side


@pytest.mark.parametrize("tiny", ["4.9e-324", "1e-310"])
def test_values_near_nothing_give_no_ratio_and_no_crash(assay, tmp_path, tiny):
    for name, value in (("a", tiny), ("b", "1")):
        (tmp_path / f"{name}.json").write_text('{"results": [{"command": "x", "times": [%s]}]}' % value)
    for how in ((), ("--markdown",), ("--json",), ("--rule", "separation", "--markdown")):
        got = assay("diff", "a.json", "--vs", "b.json", *how)
        assert got.status in (0, 1), got
        assert "inf" not in got.stdout.lower() and "nan" not in got.stdout.lower(), got


def test_numbers_that_no_result_can_be_are_refused(assay, tmp_path):
    (tmp_path / "a.json").write_text('{"results": [{"command": "x", "times": [1e308, 1e308]}]}')
    got = assay("diff", "a.json", "--vs", "a.json")
    assert got.status == 2
    assert '"x"' in got.stderr and "larger than any result" in got.stderr
