"""assay diff and assay noise: verdicts against an independent rendering of the rules, formats, statuses, bad input."""
import json
import math
import random
import statistics
import subprocess

import pytest

# name: (keys in run.json, direction, relative floor, absolute floor)
REFERENCE = {
    "prefill_tps": (("throughput", "prefill", "tokens_per_s"), +1, 0.003, 0),
    "decode_tps": (("throughput", "decode", "tokens_per_s"), +1, 0.003, 0),
    "gpu_peak_mib": (("memory", "gpu", "peak_above_baseline_total_mib"), -1, 0.002, 16),
    "gpu_peak_max_device_mib": (("memory", "gpu", "peak_above_baseline_max_device_mib"), -1, 0.002, 16),
    "host_anon_peak_mib": (("memory", "host", "anon_peak_mib"), -1, 0.02, 64),
    "load_s": (("groups", "load", "wall_s"), -1, 0.05, 0.5),
    "prefill_j_per_token": (("energy", "prefill_j_per_token"), -1, 0.05, 0),
    "decode_j_per_token": (("energy", "decode_j_per_token"), -1, 0.03, 0),
}
TYPICAL = {"prefill_tps": 2400, "decode_tps": 61.5, "gpu_peak_mib": 9000, "gpu_peak_max_device_mib": 4500,
           "host_anon_peak_mib": 3100, "load_s": 11, "prefill_j_per_token": 0.04, "decode_j_per_token": 1.7}


def lookup(run, keys):
    for key in keys:
        run = run.get(key) if isinstance(run, dict) else None
    return run


def separation(a_runs, b_runs, noise):
    """What the separation rule says of two lists of run.json objects, in the reference's structure."""
    ok = [[run for run in side if run.get("status") == "ok" and not run.get("perturbed")] for side in (a_runs, b_runs)]
    answer = {"metrics": {}, "dropped_runs": len(a_runs) + len(b_runs) - len(ok[0]) - len(ok[1])}
    dirty = len([run for run in ok[0] + ok[1] if not (run.get("machine_before") or {"clean": 1}).get("clean", True)])
    answer.update({"dirty_runs": dirty} if dirty else {})
    for name, (keys, direction, relative, absolute) in REFERENCE.items():
        a, b = ([value for value in (lookup(run, keys) for run in side) if value is not None] for side in ok)
        if not a or not b:
            continue
        mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
        gain = (mean_b - mean_a) * direction
        large = abs(gain) > max(absolute, abs(mean_a) * max(relative, noise.get(name, 0)))
        apart = max(a) < min(b) or max(b) < min(a)
        verdict = ("better" if gain > 0 else "worse") if large and apart else "same"
        answer["metrics"][name] = {"a": round(mean_a, 4), "b": round(mean_b, 4),
                                   "ratio": round(mean_b / mean_a, 4) if mean_a else None, "verdict": verdict,
                                   "a_runs": a, "b_runs": b}
    for word in ("worse", "better"):
        answer[word] = [name for name, metric in answer["metrics"].items() if metric["verdict"] == word]
    names = {(False, False): "neutral", (True, False): "regression", (False, True): "improvement",
             (True, True): "tradeoff"}
    answer["verdict"] = names[bool(answer["worse"]), bool(answer["better"])]
    return answer


def put(run, keys, value):
    for key in keys[:-1]:
        run = run.setdefault(key, {})
    run[keys[-1]] = value


def made_up_run(rng, scale):
    run = {"status": rng.choice(["ok"] * 9 + ["failed"]), "command": ["x"]}
    if rng.random() < 0.1:
        run["perturbed"] = rng.choice([True, False, 0, "strace", ""])
    if rng.random() < 0.3:
        run["machine_before"] = rng.choice([{"clean": True}, {"clean": False}, {}, None, {"clean": None}, {"clean": 0}])
    for name, (keys, *_) in REFERENCE.items():
        value = TYPICAL[name] * scale.get(name, 1) * rng.gauss(1, 0.002)
        kind = rng.random()
        if kind < 0.05:
            continue
        put(run, keys, None if kind < 0.07 else 0 if kind < 0.1 else round(value) if kind < 0.3 else value)
    return run


def write(path, run):
    path.write_text(json.dumps(run))
    return path


def text_of(value):
    return f"{value:,}"


def reference_rows(answer):
    """The reference's table: metric, A, B, ratio, verdict."""
    marks = {"better": "better", "worse": "**worse**", "same": ""}
    return [[name, text_of(m["a"]), text_of(m["b"]), str(m["ratio"]), marks[m["verdict"]]]
            for name, m in answer["metrics"].items()]


def markdown_rows(text):
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]


def test_separation_is_that_of_the_reference_in_every_digit(assay, tmp_path):
    rng = random.Random(20261129)
    for case in range(150):
        scale = {name: rng.choice([1, 1, 1, 0.5, 0.99, 1.004, 1.04, 1.3, 0]) for name in TYPICAL}
        sides = [[made_up_run(rng, {} if side == "a" else scale) for _ in range(rng.randint(1, 4))] for side in "ab"]
        paths = [[write(tmp_path / f"{side}{i}.json", run) for i, run in enumerate(runs)]
                 for side, runs in zip("ab", sides)]
        noise = {name: rng.choice([0, 0.01, 0.1]) for name in rng.sample(sorted(TYPICAL), 3)}
        write(tmp_path / "noise.json", noise if case % 2 else {"x": noise})
        expected = separation(*sides, noise)
        words = ["diff", *paths[0], "--vs", *paths[1], "--rule", "separation", "--noise", "noise.json"]
        got = assay(*words, "--json")
        answer = json.loads(got.stdout)
        assert answer == expected, case
        assert list(answer) == list(expected) and list(answer["metrics"]) == list(expected["metrics"])
        assert got.status == (1 if expected["verdict"] in ("regression", "tradeoff") else 0)
        if case % 5 == 0:
            shown = assay(*words, "--markdown").stdout
            assert shown.startswith("| metric | A | B | ratio | |\n|---|---:|---:|---:|---|\n")
            assert markdown_rows(shown)[2:] == reference_rows(expected)
            assert f"Verdict: **{expected['verdict']}**" in shown


def sign_interval(d, alpha):
    """The interval of the median of d from order statistics; None where so few values have none."""
    n, ranks = len(d), [k for k in range(1, len(d) // 2 + 2)
                        if sum(math.comb(len(d), i) for i in range(k)) / 2 ** len(d) <= alpha / 2]
    return (sorted(d)[ranks[-1] - 1], sorted(d)[n - ranks[-1]]) if ranks else None


def paired(pairs, direction, margin, alpha):
    d = [math.log(b / a) for a, b in pairs]
    interval, edge = sign_interval(d, alpha), math.log1p(margin)
    if not interval:
        return "too few pairs", statistics.median(d), None
    inner = sign_interval(d, 2 * alpha)
    if interval[0] > edge or interval[1] < -edge:
        verdict = "better" if (interval[0] > edge) == (direction > 0) else "worse"
    elif -edge <= inner[0] and inner[1] <= edge:
        verdict = "equivalent"
    else:
        verdict = "small" if interval[0] > 0 or interval[1] < 0 else "undecided"
    return verdict, statistics.median(d), interval


def timed_run(second, **figures):
    return {"status": "ok", "started_at": f"2026-11-29T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.5Z",
            **figures}


def test_pairs_are_judged_by_the_sign_interval(assay, tmp_path):
    rng = random.Random(7)
    seen = set()
    for case in range(120):
        n, change = rng.randint(1, 24), rng.choice([1, 1.001, 1.012, 0.97, 1.1])
        confidence, margin = rng.choice([90, 95, 99]), rng.choice([0, 2, 5])
        values, paths = [], {"a": [], "b": []}
        for i in range(n):
            pair = {"a": rng.gauss(10, 0.05), "b": rng.gauss(10 * change, 0.05)}
            values.append((pair["a"], pair["b"]))
            for k, side in enumerate(rng.sample("ab", 2)):
                paths[side].append(write(tmp_path / f"{side}{i}.json", timed_run(20 * i + 9 * k, wall_s=pair[side])))
        verdict, median, interval = paired(values, -1, max(margin / 100, 0.01), 1 - confidence / 100)
        got = assay("diff", *paths["a"], "--vs", *rng.sample(paths["b"], n), "--json", "--confidence", str(confidence),
                    "--margin", str(margin))
        answer = json.loads(got.stdout)
        metric = answer["metrics"]["wall_s"]
        assert (answer["rule"], answer["pairs"], metric["paired"]["verdict"]) == ("paired", n, verdict), case
        assert metric["paired"]["ratio"] == pytest.approx(math.exp(median), rel=1e-12)
        if interval:
            bounds = (metric["paired"]["low"], metric["paired"]["high"])
            assert bounds == pytest.approx([math.exp(x) for x in interval], rel=1e-12)
        overall = {"better": "improvement", "worse": "regression", "equivalent": "neutral"}.get(verdict, "undecided")
        assert answer["verdict"] == overall
        assert got.status == (overall == "regression")
        seen.add(verdict)
    assert seen == {"better", "worse", "equivalent", "small", "undecided", "too few pairs"}


@pytest.fixture
def side(tmp_path):
    """side("a", [10, 11], start=0, step=20): run.json files with these wall times, or with what figures() gives."""

    def make(name, values, start=0, step=20, key="wall_s"):
        return [write(tmp_path / f"{name}{i}.json", timed_run(start + step * i, **{key: value}))
                for i, value in enumerate(values)]

    return make


def test_a_regression_is_status_1_and_said_in_words(assay, side):
    a, b = side("a", [10] * 8), side("b", [11] * 8, start=10)
    got = assay("diff", *a, "--vs", *b, "--labels", "old", "new one")
    assert (got.status, got.stderr) == (1, "")
    assert "A: old, 8 runs\nB: new one, 8 runs\n8 pairs of neighbouring runs\n" in got.stdout
    assert "Verdict: regression (by pairs)\n" in got.stdout
    assert "wall_s is worse: +10.0% (+10.0% to +10.0% at 95%), beyond the margin of 1%.\n" in got.stdout
    assert max(len(line) for line in got.stdout.splitlines()) <= 100


def test_what_is_not_decided_says_what_would_settle_it(assay, side):
    a, b = side("a", [10] * 8), side("b", [10.2, 9.8, 10.3, 9.9, 10.1, 10.4, 9.7, 10.2], start=10)
    got = assay("diff", *a, "--vs", *b)
    assert (got.status, got.stderr) == (0, "")
    assert "Verdict: undecided (by pairs)" in got.stdout
    words = " ".join(got.stdout.partition("Not decided:")[2].split())
    assert "wall_s is undecided" in words
    assert "a change of about" in words and "more pairs would probably settle it" in words
    assert assay("diff", *a, "--vs", *b, "--fail-on-undecided").status == 4


def test_one_run_a_side_is_too_few_pairs(assay, side):
    got = assay("diff", *side("a", [10]), "--vs", *side("b", [20], start=10))
    assert got.status == 0
    assert "Too few pairs to judge wall_s: there is 1, and 95% confidence takes at least 6, so 5 more." in got.stdout


def test_runs_that_took_no_turns_are_said_to_be_not_interleaved(assay, side):
    got = assay("diff", *side("a", [10, 10.1, 10.2]), "--vs", *side("b", [12, 12.1, 12.2], start=1000))
    assert got.status == 1
    assert "Verdict: regression (by separation)" in got.stdout
    words = " ".join(got.stdout.split())
    assert "Not interleaved" in words and "lie apart by chance in 10% of the cases" in words


def test_the_same_file_on_both_sides_is_equivalent(assay, side):
    a = side("a", [10])
    for rule in ("auto", "paired"):
        got = assay("diff", *a, "--vs", *a, "--rule", rule, "--json")
        answer = json.loads(got.stdout)
        assert (got.status, answer["verdict"], answer["same_runs"]) == (0, "neutral", True)
        assert answer["metrics"]["wall_s"]["paired"]["verdict"] == "equivalent"
    answer = json.loads(assay("diff", *a, "--vs", *a, "--rule", "separation", "--json").stdout)
    assert answer == separation([json.loads(a[0].read_text())], [json.loads(a[0].read_text())], {})


def test_a_run_named_twice_counts_once_and_one_on_both_sides_is_told(assay, tmp_path, side):
    a, b = side("a", [10, 10.1, 10.2]), side("b", [12, 12.1, 12.2], start=1000)
    plain = assay("diff", *a, "--vs", *b, "--json")
    (tmp_path / "link.json").symlink_to(a[0])
    got = assay("diff", *a, *a, "link.json", "--vs", *b, "--json")
    assert (got.status, got.stdout) == (plain.status, plain.stdout)
    assert got.stderr == "assay diff: side A: paths that name a file which it has already: 4; each file counts once\n"
    got = assay("diff", *a, "--vs", *b, a[0])
    assert got.stderr == "assay diff: 1 file is on both sides\n"
    (tmp_path / "run").mkdir()
    write(tmp_path / "run" / "run.json", timed_run(5, wall_s=10))
    got = assay("diff", "run", "run/run.json", "run/", "--vs", *b, "--json")
    assert len(json.loads(got.stdout)["metrics"]["wall_s"]["a_runs"]) == 1
    assert assay("diff", *a, *a, "--vs", *a, "--json").stderr.count("\n") == 1


def test_a_metric_that_was_named_is_judged_under_every_rule(assay, side):
    a, b = side("a", [10, 10.1]), side("b", [12, 12.1], start=1000)
    got = assay("diff", *a, "--vs", *b, "--rule", "separation", "--metric", "wall_s", "--json")
    answer = json.loads(got.stdout)
    assert (got.status, answer["verdict"], answer["worse"]) == (1, "regression", ["wall_s"])
    assert assay("diff", *a, "--vs", *b, "--rule", "separation").status == 0


def test_runs_of_two_matrices_are_no_pairs_by_their_blocks(assay, tmp_path):
    for i in range(8):
        write(tmp_path / f"a{i}.json", timed_run(20 * i, wall_s=10, block=i, arm=0))
        write(tmp_path / f"b{i}.json", timed_run(1000 + 20 * i, wall_s=11, block=i, arm=1))
    answer = json.loads(assay("diff", "a?.json", "--vs", "b?.json", "--json").stdout)
    assert (answer["interleaved"], answer["pairs"], answer["rule"]) == (False, 0, "separation")
    assert "Not interleaved" in answer["notes"][0]


def test_less_than_the_absolute_floor_is_no_regression_by_pairs(assay, tmp_path):
    for i in range(8):
        for k, name in enumerate("ab"):
            memory = {"host": {"anon_peak_mib": (300 + 10 * k) / 1024}}
            write(tmp_path / f"{name}{i}.json", timed_run(20 * i + 10 * k, memory=memory))
    got = assay("diff", "a?.json", "--vs", "b?.json", "--json")
    answer = json.loads(got.stdout)
    metric = answer["metrics"]["host_anon_peak_mib"]
    assert (got.status, answer["rule"], metric["verdict"]) == (0, "paired", "equivalent")
    assert metric["margin"] == pytest.approx(64 / (300 / 1024))


def test_a_name_in_a_noise_file_that_is_no_metric_is_told(assay, tmp_path, side):
    write(tmp_path / "noise.json", {"x": {"wall_z": 0.1, "wall_s": 0.1, "phase:load": 0.1, "untrusted": False}})
    got = assay("diff", *side("a", [10]), "--vs", *side("b", [20], start=10), "--noise", "noise.json")
    assert got.stderr == 'assay diff: noise.json: "wall_z" is no metric, so its floor counts for nothing\n'


@pytest.mark.parametrize("rule", ("auto", "paired"))
def test_from_0_to_5_is_a_regression_without_a_ratio(assay, side, rule):
    a, b = side("a", [0] * 8, key="cpu_s"), side("b", [5] * 8, start=10, key="cpu_s")
    got = assay("diff", *a, "--vs", *b, "--json", "--rule", rule)
    answer = json.loads(got.stdout)
    metric = answer["metrics"]["cpu_s"]
    assert (got.status, answer["verdict"], answer["worse"]) == (1, "regression", ["cpu_s"])
    assert (metric["ratio"], metric["difference"], metric["paired"]["unresolved"]) == (None, 5, 8)
    shown = assay("diff", *a, "--vs", *b, "--rule", rule).stdout
    assert "cpu_s is worse by separation: +5.00 s, from 0, so there is no ratio" in shown
    assert "inf" not in shown and "nan" not in shown


def test_a_tradeoff_is_status_1_unless_allowed(assay, tmp_path):
    for i in range(8):
        write(tmp_path / f"a{i}.json", timed_run(20 * i, wall_s=10, cpu_s=10))
        write(tmp_path / f"b{i}.json", timed_run(20 * i + 10, wall_s=8, cpu_s=12))
    words = ["diff", "a*.json", "--vs", "b*.json"]
    got = assay(*words)
    assert (got.status, "Verdict: tradeoff" in got.stdout) == (1, True)
    assert assay(*words, "--allow-tradeoff").status == 0
    assert assay(*words, "--metric", "wall_s").status == 0
    assert assay(*words, "--metric=cpu_s").status == 1


def test_a_side_without_usable_runs_is_neutral_with_one_warning(assay, tmp_path, side):
    write(tmp_path / "failed.json", {"status": "failed", "wall_s": 1})
    for rule in ("auto", "paired", "separation"):
        got = assay("diff", *side("a", [10]), "--vs", "failed.json", "--json", "--rule", rule)
        answer = json.loads(got.stdout)
        assert (got.status, answer["verdict"], answer["metrics"], answer["dropped_runs"]) == (0, "neutral", {}, 1)
        assert got.stderr == ("assay diff: warning: side B has no usable run (all failed or were traced), so nothing "
                              "is compared\n")


def test_phases_and_counters_are_rows(assay, tmp_path):
    for i in range(6):
        for k, name in enumerate("ab"):
            run = timed_run(20 * i + 10 * k, wall_s=10, counters={"major_faults": 3, "read_mib": 2.5},
                            memory={"host": {"rss_peak_mib": 100}},
                            phases=[{"name": "warm | up", "start_s": 0, "end_s": 1 + k}])
            (tmp_path / f"{name}{i}").mkdir()
            write(tmp_path / f"{name}{i}" / "run.json", run)
    answer = json.loads(assay("diff", "a?", "--vs", "b[0-9]", "--json").stdout)
    assert list(answer["metrics"]) == ["wall_s", "rss_peak_mib", "major_faults", "disk_read_mib", "phase:warm | up"]
    assert answer["metrics"]["phase:warm | up"]["paired"]["verdict"] == "worse"
    assert answer["verdict"] == "neutral"
    table = assay("diff", "a?", "--vs", "b?", "--markdown", "--labels", "a|b", "ü").stdout
    assert "| phase:warm \\| up | 1.00 s | 2.00 s | 2.0 |" in table
    assert table.startswith("| metric | a\\|b | ü | ratio |")


@pytest.mark.parametrize("text, error", (
    ('{"status": "ok", "wall_s": -1}', 'bad.json: "wall_s" is -1, which it cannot be'),
    ('{"status": "ok", "wall_s": "1"}', 'bad.json: "wall_s" is no number'),
    ('{"status": "ok", "wall_s": NaN}', "bad.json: line 1, column 30: invalid token near 'NaN'"),
    ('{"status": "ok", "wall_s": 1e999}', "bad.json: line 1, column 32: real number overflow near '1e999'"),
    ('{"status": "ok", "wall_s": 1', "bad.json: line 1, column 28: '}' expected near end of file"),
    ("", "bad.json: line 1, column 0: '[' or '{' expected near end of file"),
    ('{"wall_s": 1}', 'bad.json: it is no run.json (it has no "status"), and no other tool\'s results that are known'),
))
def test_bad_input_is_named_on_one_line(assay, tmp_path, side, text, error):
    (tmp_path / "bad.json").write_text(text)
    for words in ((*side("a", [1]), "--vs", "bad.json"), ("bad.json", "--vs", *side("a", [1]))):
        got = assay("diff", *words)
        assert (got.status, got.stdout, got.stderr) == (2, "", f"assay diff: {error}\n")


@pytest.mark.parametrize("words, error", (
    ([], "expected runs of two sides; usage: assay diff A... --vs B..."),
    (["a0.json"], "expected runs of two sides; usage: assay diff A... --vs B..."),
    (["a0.json", "--vs"], "option '--vs' needs a value: --vs B..."),
    (["none*", "--vs", "a0.json"], "none*: no file or folder is called so"),
    (["none", "--vs", "a0.json"], "none: No such file or directory"),
    ([".", "--vs", "a0.json"], ".: it is no run directory: it has no run.json"),
    (["a0.json", "--vs", "a0.json", "--labels", "x"], "option '--labels' needs more words: --labels A B"),
    (["a0.json", "--vs", "a0.json", "--labels", "x", "x"], "option '--labels': both sides are called 'x'"),
    (["a0.json", "--vs", "a0.json", "--metric", "wal_s"],
     "option '--metric': there is no metric 'wal_s' in these runs; did you mean 'wall_s'?"),
    (["--metric", "a0.json", "--vs", "a0.json"], "expected runs of two sides; usage: assay diff A... --vs B..."),
    (["a0.json", "--vs", "a0.json", "--json", "--markdown"], "options '--json' and '--markdown' exclude each other"),
    (["a0.json", "--vs", "a0.json", "--noise-case", "x"], "option '--noise-case' needs a file: --noise FILE"),
    (["a0.json", "--vs", "a0.json", "--noise", "noise.json"],
     "noise.json has floors of several labels: name one with --noise-case: one, two"),
    (["a0.json", "--vs", "a0.json", "--noise", "noise.json", "--noise-case", "three"],
     "noise.json has no floors of 'three', but of: one, two"),
    (["a0.json", "--vs", "a0.json", "--noise", "odd.json"],
     'odd.json: "wall_s" has no number of 0 or more as its floor'),
    (["a0.json", "--vs", "a0.json", "--confidence", "40"],
     "option '--confidence': 40 is no percentage of 50 or more, and no share below 1"),
))
def test_wrong_usage_is_named(assay, tmp_path, side, words, error):
    side("a", [1])
    write(tmp_path / "noise.json", {"one": {"wall_s": 0.1}, "two": {}})
    write(tmp_path / "odd.json", {"wall_s": -0.1})
    got = assay("diff", *words)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay diff: {error}\n")


def test_options_may_stand_anywhere(assay, side):
    a, b = side("a", [10] * 6), side("b", [11] * 6, start=10)
    expected = assay("diff", "--json", "--rule", "paired", *a, "--vs", *b).stdout
    assert expected
    assert assay("diff", *a[:2], "--json", *a[2:], "--vs", *b, "--rule=paired").stdout == expected
    assert assay("diff", "--vs", *b[:3], "--vs", *b[3:], "--json", "--rule", "paired", "--", *a).stdout == expected


def hyperfine(path, **times):
    write(path, {"results": [{"command": name, "mean": statistics.mean(values), "times": values,
                              "exit_codes": [0] * len(values)} for name, values in times.items()]})


def test_results_of_another_tool_are_paired_by_name(assay, tmp_path):
    hyperfine(tmp_path / "a.json", sort=[1.0, 1.01, 1.02], only_a=[1.0, 1.1, 1.2])
    hyperfine(tmp_path / "b.json", sort=[2.0, 2.01, 2.02], only_b=[1.0, 1.1, 1.2])
    hyperfine(tmp_path / "c.json", other=[2.0])
    got = assay("diff", "a.json", "--vs", "b.json", "--json")
    answer = json.loads(got.stdout)
    assert (got.status, answer["verdict"], answer["worse"]) == (1, "regression", list(answer["metrics"]))
    assert len(answer["metrics"]) == 1
    assert "only side A has" in got.stderr and "only side B has" in got.stderr
    got = assay("diff", "a.json", "--vs", "c.json")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == ("assay diff: no benchmark is on both sides: their names are paired, and have none in "
                          "common\n")


def test_odd_names_and_labels_are_told_apart_and_escaped(assay, tmp_path):
    names = ["x" * 65 + "/1", "x" * 65 + "/2", "a | b", 'say "hi"', "tab\tor\x1b[31m", "größe"]
    hyperfine(tmp_path / "a.json", **{name: [1.0, 1.01] for name in names})
    hyperfine(tmp_path / "b.json", **{name: [2.0, 2.01] for name in names})
    words = ["diff", "a.json", "--vs", "b.json", "--labels", "old|<b>\n", "n" * 300]
    text, table = assay(*words).stdout, assay(*words, "--markdown").stdout
    assert "\x1b" not in text + table and "\t" not in text + table
    rows = [line.split()[0] for line in text.partition("Verdict")[0].splitlines() if line.startswith("  x")]
    assert len(set(rows)) == 2
    assert max(map(len, text.splitlines())) <= 100
    lines = [line for line in table.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(names)
    assert {len(line.replace("\\|", "").split("|")) for line in lines} == {len(lines[1].split("|"))}
    assert list(json.loads(assay(*words, "--json").stdout)["metrics"]) == names


def test_a_locale_with_decimal_commas_changes_nothing(assay, side):
    a, b = side("a", [1234.5] * 6), side("b", [2345.25] * 6, start=10)
    for words in ([], ["--json"], ["--markdown"], ["--json", "--rule", "separation"]):
        plain = assay("diff", *a, "--vs", *b, *words, env={"LC_ALL": "C"})
        assert plain.stdout == assay("diff", *a, "--vs", *b, *words, env={"LC_ALL": "de_DE.UTF-8"}).stdout


def floors(matrix):
    """Floors as the reference makes them of a null matrix."""
    found = {}
    for case in matrix["cases"]:
        if "metrics" in case:
            runs = {name: m["a_runs"] + m["b_runs"] for name, m in case["metrics"].items()}
            found[case["label"]] = {name: round((max(values) - min(values)) / (sum(values) / len(values)), 5)
                                    for name, values in runs.items() if sum(values)}
    return found


def null_case(rng, label, verdict="neutral"):
    def runs(name):
        return [TYPICAL[name] * rng.gauss(1, 0.01) for _ in range(2)]

    return {"label": label, "verdict": verdict, "dropped_runs": 0, "metrics": {
        name: {"a_runs": runs(name), "b_runs": runs(name), "verdict": "same"}
        for name in rng.sample(sorted(TYPICAL), 4)}}


def test_noise_is_the_spread_of_a_null_matrix(assay, tmp_path):
    rng = random.Random(3)
    for _ in range(20):
        matrix = {"a": "x", "b": "x", "cases": [null_case(rng, label) for label in ("a b", "ü|", "c/d" * 30)]}
        matrix["cases"][1]["metrics"]["load_s"] = {"a_runs": [0, 0], "b_runs": [0]}
        write(tmp_path / "matrix.json", matrix)
        got = assay("noise", "matrix.json")
        assert (got.status, got.stderr, json.loads(got.stdout)) == (0, "", floors(matrix))
        assert assay("noise", "-o", "noise.json", "matrix.json").stdout == ""
        assert (tmp_path / "noise.json").read_text() == got.stdout
    assert "a b" in assay("noise", "--table", "matrix.json").stdout


def test_a_null_matrix_that_found_a_difference_is_not_trusted(assay, tmp_path, side):
    rng = random.Random(4)
    write(tmp_path / "matrix.json", {"cases": [null_case(rng, "good"), null_case(rng, "bad", "regression"),
                                               {"label": "skip", "skipped": "model missing"}]})
    got = assay("noise", "matrix.json", "-o", "noise.json", "--json")
    assert got.status == 0
    assert 'noise: bad: not to be trusted: with the same build on both sides its verdict is "regression"' in got.stderr
    assert "noise: skip: no floors: it was not measured: model missing.\n" in got.stderr
    answer = json.loads(got.stdout)
    assert answer["bad"].pop("untrusted") is True
    assert answer == floors(json.loads((tmp_path / "matrix.json").read_text()))
    a = side("a", [10])
    for case, warned in (("good", False), ("bad", True)):
        got = assay("diff", *a, "--vs", *a, "--noise", "noise.json", "--noise-case", case)
        assert (got.status, "not to be trusted" in got.stderr) == (0, warned)


@pytest.mark.parametrize("text, error", (
    ("[]", 'm.json: it is no matrix.json: it has no list of "cases"'),
    ('{"cases": [{}]}', 'm.json: case 1 has no "label"'),
    ('{"cases": [{"label": "x", "metrics": 1}]}', 'm.json: case "x": "metrics" is no object'),
    ('{"cases": [{"label": "x", "metrics": {}}, {"label": "x", "metrics": {}}]}',
     'm.json: two cases are labelled "x"'),
    ('{"cases": [{"label": "x", "metrics": {"y": {"a_runs": [-1]}}}]}',
     'm.json: case "x": the runs of "y" are no numbers of 0 or more'),
    ('{"cases": []}', 'm.json: none of its cases has "metrics" or "skipped": there is nothing to make floors of'),
    ('{"cases": [{"label": "x"}]}',
     'm.json: none of its cases has "metrics" or "skipped": there is nothing to make floors of'),
    ('{"cases": [', "m.json: line 1, column 11: ']' expected near end of file"),
))
def test_what_is_no_matrix_is_named(assay, tmp_path, text, error):
    (tmp_path / "m.json").write_text(text)
    got = assay("noise", "m.json")
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay noise: {error}\n")


def test_floors_of_an_unfinished_matrix_are_told(assay, tmp_path):
    write(tmp_path / "m.json", {"complete": False, "cases": [null_case(random.Random(5), "x")]})
    got = assay("noise", "m.json")
    assert (got.status, list(json.loads(got.stdout))) == (0, ["x"])
    assert got.stderr == "assay noise: m.json: the matrix is not complete: floors of fewer runs are too low.\n"


def test_an_error_steers_no_terminal(assay):
    got = assay("diff", "no\x1b[31msuch\x9b", "--vs", "other")
    assert got.status == 2
    assert "no?[31msuch" in got.stderr and "\x1b" not in got.stderr and "\x9b" not in got.stderr


def test_a_run_may_come_through_a_pipe(assay, program, tmp_path):
    for name in ("a", "b"):
        assay("run", "--precheck", "off", "-q", "-o", name, "--", "true")
    got = subprocess.run(["bash", "-c", f"{program} diff <(cat a/run.json) --vs <(cat b/run.json)"], cwd=tmp_path,
                         capture_output=True, text=True)
    assert got.returncode in (0, 1), got.stderr
    assert "wall_s" in got.stdout
