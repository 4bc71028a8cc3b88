"""assay profile on run directories made by hand: what it shows of a known truth, what it says of wrong input."""
import json
import pathlib
import shutil

import pytest

from made_run import HZ, MadeRun
from terminal import Terminal

LONG = ("std::vector<std::pair<std::basic_string<char>, int>, std::allocator<std::pair<std::string, int> > >"
        "::_M_realloc_insert(std::pair<std::basic_string<char>, int>&&)")


def decode_and_load(path):
    """Two groups: in load one thread, in decode a serial function beside a loop on three threads."""
    run = MadeRun(path, threads=("main", "worker 1", "worker 2"),
                  phases=(("load", "load", 0, 4), ("decode", "decode", 4, 10)))
    run.add(-0.5, 0, ["_start", "main", "early"], 3)
    run.add(0, 0, ["_start", "main", "parse"], 300, spread_s=3)
    run.add(0, 0, ["_start", "main", "libread"], 60, weight=1, spread_s=3)
    run.add(4, 0, ["_start", "main", "serial"], 150, spread_s=2)
    for thread in range(3):
        run.add(5, thread, ["clone", "worker", ["leaf", "loop"]], 200, weight=2, spread_s=4)
    run.add(5, 1, ["clone", "worker", "worker", LONG], 50, spread_s=4)
    return run


@pytest.fixture
def made(tmp_path):
    return decode_and_load(tmp_path / "made").write()


def shown(assay, *args):
    got = assay("profile", *args, "--json")
    assert got.status == 0, got
    return json.loads(got.stdout)


def row(group, table, name):
    return next(row for row in group[table] if row["name"] == name)


def test_the_json_has_the_structure_and_rounding_of_the_reference(assay, made):
    answer = shown(assay, made)
    assert list(answer)[:3] == ["samples", "dropped", "period_s"]
    assert answer["samples"] == 3 + 360 + 150 + 1200 + 50
    assert answer["deliveries"] == 3 + 360 + 150 + 600 + 50
    assert (answer["dropped"], answer["period_s"], answer["hz"]) == (0, 1 / HZ, HZ)
    assert list(answer["groups"]) == ["before", "load", "decode"]
    decode = answer["groups"]["decode"]
    assert (decode["samples"], decode["cpu_s"], decode["wall_s"], decode["deliveries"]) == (1400, 14.0, 6.0, 800)
    serial = row(decode, "self", "serial")
    assert {key: serial[key] for key in ("name", "share", "cpu_s", "threads", "busiest_thread_s",
                                         "pct_of_wall_on_busiest_thread", "module", "busiest_tid")} == {
        "name": "serial", "share": round(150 / 1400, 4), "cpu_s": 1.5, "threads": 1, "busiest_thread_s": 1.5,
        "pct_of_wall_on_busiest_thread": 25.0, "module": "prog", "busiest_tid": 100}
    leaf = row(decode, "self", "leaf")
    assert (leaf["threads"], leaf["busiest_thread_s"], leaf["cpu_s"]) == (3, 4.0, 12.0)
    assert leaf["share_low"] < leaf["share"] < leaf["share_high"]
    assert row(decode, "inclusive", "worker")["share"] == round(1250 / 1400, 4)
    assert row(decode, "inclusive", "loop")["share"] == row(decode, "inclusive", "leaf")["share"]
    assert decode["threads"] == [{"name": "main", "share": round(550 / 1400, 4)} if name == "main" else
                                 {"name": name, "share": round(850 / 1400, 4)} for name in ("worker #", "main")]
    assert decode["busiest_threads"][0] == {"tid": 100, "name": "main", "cpu_s": 5.5}
    assert decode["modules"] == [{"name": "prog", "share": 1.0}]
    assert answer["groups"]["load"]["modules"] == [{"name": "prog", "share": round(300 / 360, 4)},
                                                   {"name": "libdeep.so", "share": round(60 / 360, 4)}]
    assert "wall_s" not in answer["groups"]["before"]
    assert "pct_of_wall_on_busiest_thread" not in answer["groups"]["before"]["self"][0]


def test_the_text_says_first_what_is_serial(assay, made):
    got = assay("profile", made)
    assert got.status == 0 and got.stderr == "", got
    text = got.stdout
    first = text.index("What is serial and holds up the run")
    assert first < text.index("load: parse (prog) kept one thread busy for 3.00 s, 75.0% of the 4.00 s of wall time")
    assert "decode: serial (prog) kept one thread busy for 1.50 s, 25.0% of the 6.00 s of wall time" in text
    assert "leaf (prog) kept" not in text
    assert text.index("decode: serial") < text.index("decode: 14.0 s of CPU in 6.00 s (2.33 cores)")
    assert "too few samples" in text[text.index("before:"):text.index("load: 3.60 s")]
    assert all(len(line) <= 120 for line in text.splitlines()), got
    assert " std::vector<>::_M_realloc_insert  prog\n" in text
    assert text.count("of wall: CPU time of the one thread") == 1 == text.count("±: what the number of samples")
    assert text.index("±: what the number of samples") > text.index("busiest ")
    for absent in ("Names with !?", "[no stack]", "[jit]", "Over 100%"):
        assert absent not in text


@pytest.mark.parametrize("columns", [80, 120, 180])
def test_lines_fit_a_terminal(made, program, columns):
    terminal = Terminal([program, "profile", made], cwd=made, rows=40, columns=columns)
    assert terminal.wait() == 0
    lines = terminal.output.decode().replace("\r", "").splitlines()
    assert len(lines) > 20
    assert not [line for line in lines if len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) > columns]
    assert any(len(line) > 120 for line in lines) == (columns > 120)


def test_what_was_not_sampled_stands_beside_what_was(assay, tmp_path):
    run = decode_and_load(tmp_path / "made")
    run.cpu_s, run.dropped, run.handler_ns, run.flags = 20.0, (2, 5), 20_000_000, 1
    run.unsampled = [(77, 300_000_000, "static prog", "it is a static program"), (78, -1, "gone", "it had ended")]
    path = run.write()
    text = assay("profile", path).stdout
    assert "CPU time used 20.0 s, sampled 17.6 s (88.2%); samples dropped for want of room: 2 (50.0 ms)" in text
    assert "the sampler itself used 20.0 ms (0.10% of the CPU time)" in text
    assert "stacks that reach the start of their thread: 100.0%" in text
    assert "static prog (77), 300.0 ms: it is a static program\n" in text
    assert "gone (78), CPU time not known: it had ended\n" in text
    answer = shown(assay, path)
    assert (answer["cpu_consumed_s"], answer["cpu_sampled_s"], answer["dropped"]) == (20.0, 17.63, 2)
    assert answer["sampler_cpu_s"] == 0.02
    assert answer["unsampled"] == [
        {"pid": 77, "name": "static prog", "cpu_s": 0.3, "reason": "it is a static program"},
        {"pid": 78, "name": "gone", "reason": "it had ended"}]


def test_a_group_or_a_phase_can_be_shown_alone(assay, tmp_path):
    run = MadeRun(tmp_path / "made", phases=(("parse", "other", 0, 1), ("sort", "other", 1, 3)))
    run.add(0, 0, ["main", "p"], 40, spread_s=1).add(1, 0, ["main", "s"], 60, spread_s=1)
    path = run.write()
    assert shown(assay, path)["groups"]["other"]["samples"] == 100
    assert list(shown(assay, path, "--group", "sort")["groups"]) == ["sort"]
    assert shown(assay, path, "-g", "sort")["groups"]["sort"]["wall_s"] == 2.0
    got = assay("profile", path, "--group", "sorting")
    assert (got.status, got.stderr) == (2, "assay profile: option '--group': there is no group or phase 'sorting' in "
                                           "this run; its groups are: other; phases: parse, sort\n")
    got = assay("profile", path, "--group", "before")
    assert got.status == 2 and got.stderr.endswith("'before' in this run; its groups are: other; phases: parse, sort\n")
    got = assay("export", path, "-f", "folded", "--group", "sorting")
    assert (got.status, got.stderr) == (2, f"assay export: {path}: option '--group': there is no group or phase "
                                           "'sorting' in this run; its groups are: other; phases: parse, sort\n")
    run = MadeRun(tmp_path / "early", phases=(("parse", "other", 1, 2),))
    path = run.add(0, 0, ["main", "p"], 40, spread_s=2).write()
    got = assay("profile", path, "--group", "b4")
    assert got.stderr.endswith("'b4' in this run; its groups are: before, other; phases: parse\n")
    assert shown(assay, path, "--group", "before")["samples"] == 20


def user_phases(path, count):
    """A load phase, then as many phases of the user's own, in each a function called as the phase is."""
    names = [f"own{i}" for i in range(count)]
    phases = [("own0", "other", 0, 1), ("load", "load", 1, 2)] + [
        (name, "other", 2 + i, 3 + i) for i, name in enumerate(names)]
    run = MadeRun(path, phases=phases)
    for name, _, start, _ in phases:
        run.add(start, 0, ["main", f"in_{name}"], 50, spread_s=1)
    return run.write(), names


def test_phases_with_names_of_their_own_are_sections_of_their_own(assay, tmp_path):
    path, names = user_phases(tmp_path / "three", 3)
    answer = shown(assay, path)
    assert list(answer["groups"]) == ["other", "load"] and list(answer["phases"]) == names
    assert answer["groups"]["other"]["samples"] == 200
    assert set(answer["phases"]["own0"]) == set(answer["groups"]["other"])
    assert [answer["phases"][name]["samples"] for name in names] == [100, 50, 50]
    assert [answer["phases"][name]["wall_s"] for name in names] == [2.0, 1.0, 1.0]
    assert {row["name"] for row in answer["phases"]["own1"]["self"]} == {"in_own1"}
    text = assay("profile", path).stdout
    heads = [text.index(f"\n{name}: ") for name in ("own0", "load", "own1", "own2")]
    assert heads == sorted(heads) and "\nother: " not in text and "--group NAME" not in text
    assert "own1: in_own1 (prog) kept one thread busy for 500.0 ms, 50.0% of the 1.00 s of wall time" in text
    assert list(shown(assay, path, "--group", "own1")["groups"]) == ["own1"]
    assert "phases" not in shown(assay, path, "--group", "load")
    path, names = user_phases(tmp_path / "nine", 9)
    assert "phases" not in shown(assay, path)
    text = assay("profile", path).stdout
    assert "\nother: " in text and "--group NAME shows one of them alone" in text.replace("\n  ", " ")


def test_a_run_without_phases_is_called_the_same_everywhere(assay, tmp_path):
    path = MadeRun(tmp_path / "made").add(0, 0, ["main", "f"], 50).write()
    assert list(shown(assay, path)["groups"]) == ["other"]
    assert list(shown(assay, path, "--group", "run")["groups"]) == ["run"]
    assert "\nrun: 500.0 ms of CPU" in assay("profile", path).stdout
    for command in (("profile", path), ("export", path, "-f", "folded")):
        assert assay(*command, "--group", "x").stderr.endswith("'x' in this run; its groups are: other; phases: run\n")
    assert assay("export", path, "-f", "folded", "--group", "run").stdout == "prog;main;f 50\n"


def test_a_thread_that_is_alone_is_named_where_no_function_is(assay, tmp_path):
    run = MadeRun(tmp_path / "flat", threads=("main", "helper"))
    for i in range(30):
        run.add(0, 0, ["main", f"f{i}"], 25 if i else 40, spread_s=10)
    run.add(0, 1, ["clone", "g"], 40, spread_s=10)
    text = assay("profile", run.write()).stdout.replace("\n    ", " ")
    assert ("  one thread (main, 100) was busy 76.5% of the 10.0 s of wall time; its hottest: f0 5%, f1 3%, f2 3%."
            in text)
    assert "kept one thread busy" not in text
    run = MadeRun(tmp_path / "parallel", threads=("main", "helper"))
    for thread in (0, 1):
        for i in range(30):
            run.add(0, thread, ["main", f"f{i}"], 25, spread_s=10)
    assert "one thread (" not in assay("profile", run.write()).stdout


def test_what_is_no_function_is_not_serial_and_is_explained(assay, tmp_path):
    run = MadeRun(tmp_path / "made", threads=("main", "other"))
    run.add(0, 0, ["main", "prog!?"], 300, spread_s=10).add(0, 0, ["main", "prog!?+0x1230"], 90, spread_s=10)
    run.add(0, 0, [], 100, spread_s=10)
    path = run.write()
    text = assay("profile", path).stdout
    assert "prog!?+0x1230 (prog) kept one thread busy" in text
    assert "prog!? (prog) kept" not in text and "[no stack] ([unknown]) kept" not in text
    assert text.count("Names with !? have no symbol") == 1 == text.count("[no stack] is CPU time that was counted")
    assert "stacks that reach the start of their thread: 100.0%; CPU time counted without a stack: 20.4%" in text
    group = shown(assay, path)["groups"]["other"]
    assert (group["complete"], group["no_stack"]) == (1.0, round(100 / 490, 4))


def test_most_of_the_time_of_a_query_may_have_no_stack(assay, tmp_path):
    run = MadeRun(tmp_path / "made", phases=(("load", "load", 0, 1), ("decode", "decode", 1, 2)))
    path = run.add(0, 0, [], 3).add(1, 0, ["main", "f"], 50).write()
    text = assay("profile", path, "--group", "load").stdout.replace("\n  ", " ")
    assert "in 50 samples, 100 asked for per CPU second; what was asked for is 30.0 ms of it, in 0 samples\n" in text


def test_time_that_was_not_sampled_gets_the_likely_reason_where_none_is_known(assay, tmp_path):
    run = MadeRun(tmp_path / "made").add(0, 0, ["main", "f"], 100)
    run.cpu_s = 1.2
    said = "the other 200.0 ms went, most likely, into programs too short for a tick"
    assert said in assay("profile", run.write()).stdout
    run = MadeRun(tmp_path / "near").add(0, 0, ["main", "f"], 100)
    run.cpu_s = 1.04
    assert "most likely" not in assay("profile", run.write()).stdout
    run = MadeRun(tmp_path / "known").add(0, 0, ["main", "f"], 100)
    run.cpu_s, run.unsampled = 1.2, [(77, 200_000_000, "static prog", "it is a static program")]
    assert "most likely" not in assay("profile", run.write()).stdout


def test_few_samples_and_more_than_all_of_the_time_are_explained(assay, tmp_path):
    run = MadeRun(tmp_path / "made", phases=(("load", "load", 0, 0.02),)).add(0, 0, ["main", "f"], 3)
    text = assay("profile", run.write()).stdout
    assert "too few samples (n = 3) to trust these shares" in text
    assert "150.0%" in text and "Over 100% of wall: a sample counts for all CPU time since the one before" in text


def test_rows_can_be_lines_modules_threads_or_programs(assay, made):
    def names(by):
        return {row["name"] for row in shown(assay, made, "--by", by)["groups"]["decode"]["self"]}

    assert "src/made.c:11 serial" in names("line")
    assert names("module") == {"prog"}
    assert names("thread") == {"main", "worker #"}
    assert names("process") == {"prog"}
    for by in ("line", "module", "thread", "process"):
        assert assay("profile", made, "--by", by).status == 0


def test_patterns_choose_samples_and_a_focus_has_callers_and_callees(assay, made):
    assert shown(assay, made, "--include", "serial")["samples"] == 150
    assert shown(assay, made, "--include", "worker*", "--exclude", "std::*")["samples"] == 1200
    assert shown(assay, made, "--exclude", "*", "--json")["samples"] == 0
    decode = shown(assay, made, "--focus", "worker")["groups"]["decode"]
    assert [(r["name"], r["samples"]) for r in decode["callers"]] == [("clone", 1250)]
    assert {r["name"]: r["samples"] for r in decode["callees"]} == {"loop": 1200, LONG: 50}
    text = assay("profile", made, "--focus", "worker").stdout
    assert "called by" in text and "what it called" in text
    got = assay("profile", made, "--focus", "serail")
    assert (got.status, got.stderr) == (2, "assay profile: option '--focus': no function that was sampled is called "
                                           "'serail'; did you mean 'serial'?\n")
    got = assay("profile", made, "--include", "serial", "--include", "zork*")
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == ("assay profile: option '--include': no function, module or thread that was sampled is called "
                          "'zork*'; patterns as '*name*' find more\n")
    assert "No sample is what was asked for." in assay("profile", made, "--exclude", "*").stdout


def test_top_cuts_and_0_is_all(assay, tmp_path):
    run = MadeRun(tmp_path / "made")
    for i in range(30):
        run.add(0, 0, ["main", f"f{i}"], 30 + i)
    path = run.write()
    assert len(shown(assay, path)["groups"]["other"]["self"]) == 20
    assert len(shown(assay, path, "--top", "0")["groups"]["other"]["self"]) == 30
    assert len(shown(assay, path, "-n", "3")["groups"]["other"]["inclusive"]) == 3
    assert shown(assay, path, "-n", "3")["groups"]["other"]["functions"] == 30
    assert "... and 18 more; --top shows them" in assay("profile", path).stdout


def test_json_goes_to_a_file_when_one_is_named(assay, made, tmp_path):
    got = assay("profile", made, "--json=answer.json")
    assert (got.status, got.stdout) == (0, "")
    assert json.loads((tmp_path / "answer.json").read_text())["samples"] == 1763
    got = assay("profile", made, "--json=nowhere/answer.json")
    assert got.status == 2 and "nowhere/answer.json" in got.stderr


def test_a_run_without_samples_and_an_empty_profile(assay, tmp_path):
    path = MadeRun(tmp_path / "empty").write()
    got = assay("profile", path)
    assert got.status == 0 and "There are no samples." in got.stdout
    assert shown(assay, path)["groups"] == {}
    (path / "segments" / "samples.seg").unlink()
    got = assay("profile", path)
    assert got.status == 2 and got.stderr.startswith("assay profile: ") and "samples.seg" in got.stderr
    (path / "profile.json").unlink()
    for command in (("profile",), ("export", "-f", "folded")):
        got = assay(*command, path)
        assert (got.status, got.stdout) == (2, "")
        assert got.stderr == (f"assay {command[0]}: {path} was recorded without --cpu-profile: it has no CPU "
                              "samples\n")


def test_names_that_are_missing_leave_places_and_a_warning(assay, made):
    (made / "profile.json").unlink()
    got = assay("profile", made, "--json")
    assert got.status == 0 and "profile.json" in got.stderr
    decode = json.loads(got.stdout)["groups"]["decode"]
    assert [r["name"] for r in decode["self"]] == ["prog!?"]
    assert decode["self"][0]["known"] is False


def test_a_damaged_record_gives_what_came_before_the_damage(assay, made):
    segment = made / "segments" / "samples.seg"
    whole = segment.read_bytes()
    for length in (0, 100, 4096, 4200, 6000, len(whole) - 40):
        segment.write_bytes(whole[:length])
        got = assay("profile", made, "--json")
        assert got.status in (0, 2), got
        if got.status == 0:
            assert json.loads(got.stdout)["samples"] <= 1763
        else:
            assert got.stderr.startswith("assay profile: ")


def test_names_with_control_characters_do_not_steer_a_terminal(assay, tmp_path):
    path = MadeRun(tmp_path / "made", threads=("\x1b]0;owned\x07",)).add(0, 0, ["main", "f\x1b[2J\nx"], 50).write()
    text = assay("profile", path).stdout
    assert "\x1b" not in text and "\x07" not in text


@pytest.mark.parametrize("args, sentence", [
    ([], "no command and no run directory given; usage: assay profile [options] -- COMMAND [ARG...], or assay profile "
         "DIR"),
    (["nothing-here"], "nothing-here: there is no such run directory; a command stands behind --"),
    (["made", "other"], "'other' is one word too many: a command stands behind --, as in assay profile -- COMMAND "
                        "[ARG...]"),
    (["made", "--", "true"], "'made' stands before the command: a run directory or a command, not both"),
    (["made", "--hz", "99"], "option '--hz' is for a command that is run: the samples of a finished run are taken"),
    (["made", "--timeout", "5"], "option '--timeout' is for a command that is run: assay profile [options] -- "
                                 "COMMAND"),
    (["made", "--fail-on-change"], "option '--fail-on-change' is for assay profile diff A B"),
    (["diff", "made"], "expected two run directories; usage: assay profile diff A B"),
    (["diff", "made", "made", "--focus", "f"], "option '--focus' is not for assay profile diff; --include may be "
                                               "meant"),
    (["made", "--top", "1.5"], "option '--top': 1.5 is not a whole number"),
    (["--hz", "0", "--", "true"], "option '--hz': '0' is not a number from 1 to 10000"),
    (["--cpu-profile=x", "--", "true"], "option '--cpu-profile': 'x' is not a whole number from 1 to 10000"),
    (["made", "--by", "functon"], "option '--by': 'functon' is not one of function, line, module, thread, process; "
                                  "did you mean 'function'?"),
])
def test_wrong_usage_is_one_sentence(assay, made, args, sentence):
    got = assay("profile", *args)
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay profile: {sentence}\n")


def test_run_takes_the_same_rate_and_wants_it_with_a_sampler(assay):
    got = assay("run", "--sampler", "perf", "--", "true")
    assert (got.status, got.stderr) == (2, "assay run: option '--sampler' needs --cpu-profile\n")
    got = assay("run", "--cpu-profile=0", "--", "true")
    assert got.status == 2 and "--cpu-profile" in got.stderr


def compare(assay, a, b, *args):
    got = assay("profile", "diff", a, b, "--json", *args)
    assert got.status in (0, 1), got
    return got.status, json.loads(got.stdout)


def test_diff_names_what_changed_and_leaves_the_rest_within_noise(assay, tmp_path):
    def build(name, slow):
        run = MadeRun(tmp_path / name).add(0, 0, ["main", "hot"], 1000).add(0, 0, ["main", "x"], 100)
        return run.add(0, 0, ["main", "slow"], slow).write()

    a, b, again = build("a", 200), build("b", 400), build("again", 210)
    status, answer = compare(assay, a, b)
    assert status == 0
    changed = {row["name"]: row for row in answer["changed"]}
    assert changed["slow"]["share_changed"] and changed["slow"]["cpu_changed"]
    assert changed["slow"]["cpu_s_change"] == pytest.approx(2.0)
    assert changed["slow"]["cpu_s_change_low"] > 0
    assert "x" in {row["name"] for row in answer["within_noise"]}
    assert compare(assay, a, b, "--fail-on-change")[0] == 1
    status, answer = compare(assay, a, again, "--fail-on-change")
    assert (status, answer["changed"]) == (0, [])
    status, answer = compare(assay, a, b, "--inclusive")
    assert "main" in {row["name"] for row in answer["changed"] + answer["within_noise"]}
    text = assay("profile", "diff", a, b).stdout
    assert text.index("Changed beyond what the samples can support") < text.index("slow") < text.index("Within noise")
    assert "nothing" in assay("profile", "diff", a, again).stdout


def test_diff_says_when_there_is_too_little_to_compare(assay, tmp_path):
    a = MadeRun(tmp_path / "a").add(0, 0, ["main", "f"], 10).write()
    b = MadeRun(tmp_path / "b", phases=(("load", "load", 0, 10),)).add(0, 0, ["main", "f"], 1000).write()
    got = assay("profile", "diff", a, a)
    assert got.status == 0 and "Too few samples to compare: 10 and 10; under 30 on a side show nothing." in got.stdout
    got = assay("profile", "diff", a, b)
    assert "Only A has samples of: other; they are not compared." in got.stdout
    assert "They have no phase group in common: nothing can be compared." in got.stdout
    assert assay("profile", "diff", a, b, "--fail-on-change").status == 4
    got = assay("profile", "diff", a, tmp_path / "nothing")
    assert got.status == 2 and got.stderr.startswith("assay profile: ")


def test_diff_tells_the_totals_and_that_a_side_has_no_samples(assay, tmp_path):
    a = MadeRun(tmp_path / "a").add(0, 0, ["main", "f"], 100).write()
    b = MadeRun(tmp_path / "b").write()
    got = assay("profile", "diff", a, b)
    assert got.status == 0
    assert f"A: {a}, 1.00 s of CPU time in 100 samples\n" in got.stdout
    assert f"B: {b}, 0 s of CPU time in 0 samples\n" in got.stdout
    assert got.stdout.endswith("\nB has no samples: nothing can be compared.\n")
    assert assay("profile", "diff", b, a).stdout.endswith("\nA has no samples: nothing can be compared.\n")
    assert assay("profile", "diff", b, b).stdout.endswith("\nA and B have no samples: nothing can be compared.\n")
    assert assay("profile", "diff", a, b, "--fail-on-change").status == 4
    status, answer = compare(assay, a, b)
    assert (answer["a"]["deliveries"], answer["b"]["deliveries"], answer["a"]["all_cpu_s"]) == (100, 0, 1.0)


def test_diff_takes_a_pattern_that_one_side_alone_has(assay, tmp_path):
    a = MadeRun(tmp_path / "a").add(0, 0, ["main", "f"], 100).write()
    b = MadeRun(tmp_path / "b").add(0, 0, ["main", "f", "g"], 100).write()
    assert assay("profile", "diff", a, b, "--include", "g").status == 0
    got = assay("profile", "diff", a, b, "--include", "h")
    assert got.status == 2 and "option '--include': no function, module or thread" in got.stderr


def test_a_run_directory_called_diff_can_be_shown(assay, made, tmp_path):
    shutil.copytree(made, tmp_path / "diff")
    assert shown(assay, "diff")["samples"] == 1763
    assert shown(assay, "./diff")["samples"] == 1763
    assert pathlib.Path(tmp_path / "diff").is_dir()
