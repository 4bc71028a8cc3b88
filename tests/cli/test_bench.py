"""assay bench: what hyperfine's users expect, judged by pairs."""
import csv
import io
import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import environment
from terminal import Terminal

VERDICTS = {"faster", "slower", "equivalent", "small", "undecided", "too few pairs", "below resolution"}


def results_of(got):
    assert got.status == 0, got
    return json.loads(got.stdout)["results"]


def test_the_export_has_hyperfines_keys_and_one_figure_per_run(assay):
    (result,) = results_of(assay("bench", "-n", "4", "true", "--json"))
    for key in ("command", "mean", "stddev", "median", "user", "system", "min", "max"):
        assert key in result
    assert result["command"] == "true"
    assert len(result["times"]) == len(result["exit_codes"]) == len(result["memory_usage_byte"]) == 4
    assert result["exit_codes"] == [0] * 4
    assert result["min"] == min(result["times"]) <= result["median"] <= max(result["times"]) == result["max"]
    assert result["mean"] == pytest.approx(sum(result["times"]) / 4)
    assert "verdict" not in result


def test_every_command_but_the_reference_has_a_verdict(assay):
    results = results_of(assay("bench", "-n", "8", "sleep 0.01", "sleep 0.2", "sleep 0.01", "--json"))
    assert "verdict" not in results[0]
    assert results[1]["verdict"] == "slower"
    assert results[1]["pairs"] == 8
    assert results[1]["interval"][0] <= results[1]["ratio"] <= results[1]["interval"][1]
    assert results[2]["verdict"] in VERDICTS


def test_a_faster_command_is_faster_than_the_reference_that_was_named(assay):
    results = results_of(assay("bench", "-n", "8", "--reference", "sleep 0.2", "sleep 0.01", "--json"))
    assert [r["command"] for r in results] == ["sleep 0.2", "sleep 0.01"]
    assert "verdict" not in results[0]
    assert results[1]["verdict"] == "faster"
    assert results[1]["ratio"] < 0.5


def test_a_reference_may_be_one_of_the_commands_or_a_name(assay):
    for reference in ("sleep 0.1", "long"):
        results = results_of(assay("bench", "-n", "6", "-N", "short", "-N", "long", "--reference", reference,
                                   "sleep 0.01", "sleep 0.1", "--json"))
        assert [("verdict" in r) for r in results] == [True, False]
        assert results[0]["verdict"] == "faster"


def test_five_pairs_are_too_few(assay):
    results = results_of(assay("bench", "-n", "5", "sleep 0.01", "sleep 0.1", "--json"))
    assert results[1]["verdict"] == "too few pairs"
    assert results[1]["interval"] is None


def test_one_run_is_shown_and_has_no_deviation(assay):
    got = assay("bench", "-n", "1", "true", "true", "--json")
    first, second = results_of(got)
    assert first["stddev"] is None
    assert second["verdict"] == "too few pairs"
    assert not re.search(r"\b(nan|inf)\b", got.stdout, re.I)


def test_a_shell_builtin_is_below_resolution(assay):
    got = assay("bench", "-n", "12", ":", ": again", "--export-json", "out.json", "--export-csv", "-",
                "--export-markdown", "out.md")
    assert got.status == 0
    results = json.loads((got.cwd / "out.json").read_text())["results"]
    assert all(r["below_resolution"] for r in results)
    assert results[1]["verdict"] == "below resolution"
    assert all(t >= 0 for r in results for t in r["times"])
    for text in (got.stdout, (got.cwd / "out.json").read_text(), (got.cwd / "out.md").read_text()):
        assert not re.search(r"\b-?(nan|inf)\b", text, re.I)


def test_a_shell_is_used_where_a_command_needs_one_and_said(assay):
    assert "assay" in json.loads(assay("bench", "-n", "2", "true", "--json").stdout)
    for line, shell in (("true", None), ("true 'a b'", None), ("true | true", "/bin/sh"), ("echo $HOME", "/bin/sh"),
                        ("exit 0", "/bin/sh"), ("A=1 true", "/bin/sh"), ("true --a=b", None)):
        about = json.loads(assay("bench", "-n", "2", line, "--json").stdout)["assay"]
        assert about.get("shell") == shell, line
    about = json.loads(assay("bench", "-n", "2", "-S", "sh -e", "true", "--json").stdout)["assay"]
    assert about["shell"] == "sh -e" and about["shell_startup"] > 0


def test_without_a_shell_words_are_literal(assay):
    got = assay("bench", "-n", "1", "--shell", "none", "--output", "out", "echo $HOME 'a  b' | cat")
    assert got.status == 0
    assert (got.cwd / "out").read_text() == "$HOME a  b | cat\n"


@pytest.mark.parametrize("line, said", [
    ("exit 3", "'exit 3' exited with status 3 (run 1)"),
    ("kill -SEGV $$", "'kill -SEGV $$' was ended by signal 11 (SIGSEGV) (run 1)"),
    ("sh -c 'kill -SEGV $$'; exit $?", "exited with status 139, a shell's word for signal 11 (SIGSEGV)"),
    ("no-such-command-here", "no-such-command-here: command not found"),
])
def test_a_failing_command_ends_it_with_3_and_its_status(assay, line, said):
    got = assay("bench", line)
    assert got.status == 3
    assert said in got.stderr


def test_later_failures_keep_the_runs_before(assay):
    line = "echo x >> count; test $(wc -l < count) -lt 4"
    got = assay("bench", "-n", "9", line, "--export-json", "out.json")
    assert got.status == 3
    assert "exited with status 1 (run 4)" in got.stderr
    data = json.loads((got.cwd / "out.json").read_text())
    assert len(data["results"][0]["times"]) == 3
    assert data["assay"]["status"] == "failed"


def test_a_failure_never_empties_an_existing_export(assay, tmp_path):
    for name in ("a.json", "a.csv", "a.md"):
        (tmp_path / name).write_text("old")
    got = assay("bench", "exit 1", "--export-json", "a.json", "--export-csv", "a.csv", "--export-markdown", "a.md")
    assert got.status == 3
    assert [(tmp_path / name).read_text() for name in ("a.json", "a.csv", "a.md")] == ["old"] * 3


def test_failures_can_be_ignored(assay):
    (result,) = results_of(assay("bench", "-i", "-n", "3", "exit 4", "--json"))
    assert result["exit_codes"] == [4, 4, 4]
    assert result["failed"] == 3


def test_a_timeout_fails_and_with_ignored_failures_counts_as_no_number(assay):
    got = assay("bench", "-n", "2", "--timeout", "0.2", "sleep 600")
    assert got.status == 3
    assert "'sleep 600' timed out after 200.0 ms" in got.stderr
    got = assay("bench", "-i", "-n", "2", "--timeout", "0.2", "sleep 600", "true", "--json")
    first, second = results_of(got)
    assert first["timed_out"] == 2 and first["times"] == [] and first["median"] is None
    assert len(second["times"]) == 2


def test_hooks_run_around_the_runs_and_for_each_command(assay, tmp_path):
    log = "echo {} >> log"
    got = assay("bench", "-w", "1", "-n", "2", "-s", log.format("s1"), "-s", log.format("s2"), "-p",
                log.format("p"), "-C", log.format("c"), "-c", log.format("e"), "sh -c 'echo A >> log'",
                "sh -c 'echo B >> log'")
    assert got.status == 0
    words = (tmp_path / "log").read_text().split()
    assert words[:2] == ["s1", "s2"] and words[-2:] == ["e", "e"]
    inner = words[2:-2]
    assert len(inner) == 3 * 6
    assert inner[0::3] == ["p"] * 6 and inner[2::3] == ["c"] * 6
    assert inner[1::3].count("A") == inner[1::3].count("B") == 3


def test_a_failing_hook_is_named_and_cleanup_still_runs(assay, tmp_path):
    got = assay("bench", "-p", "exit 9", "-c", "touch clean", "true")
    assert got.status == 3
    assert "--prepare 'exit 9' exited with status 9" in got.stderr
    assert (tmp_path / "clean").exists()


def test_hooks_that_fit_no_command_are_refused(assay):
    got = assay("bench", "-p", "a", "-p", "b", "-p", "c", "true", "true")
    assert got.status == 2
    assert "--prepare was given 3 times; expected once, or once for each of the 2 commands" in got.stderr


def test_parameters_make_all_combinations(assay):
    results = results_of(assay("bench", "-n", "1", "-P", "n", "0.5", "1", "-D", "0.25", "-L", "c", r"x,y\,z",
                               "echo {n} {c} {other}", "--json"))
    assert [r["command"] for r in results] == [f"echo {n} {c} {{other}}" for c in ("x", "y,z")
                                               for n in ("0.50", "0.75", "1.00")]
    assert results[4]["parameters"] == {"n": "0.75", "c": "y,z"}


@pytest.mark.parametrize("args, said", [
    (["-P", "n", "3", "1", "true"], "the smaller comes first"),
    (["-P", "n", "1", "x", "true"], "'x' is not a number"),
    (["-P", "n", "1", "9", "-D", "0", "true"], "has to be above 0"),
    (["-P", "n", "1", "9999999", "true"], "more than 4096 values"),
    (["-P", "n", "1", "2", "-L", "n", "a", "true"], "is there twice"),
    (["-L", "a", "1,2"], "no command given"),
    (["-D", "1", "true"], "there is no --parameter-scan"),
    (["-n", "1.5", "true"], "not a whole number"),
    (["-n", "0", "true"], "not a number from 1"),
    (["--style", "ful", "true"], "did you mean 'full'"),
    (["--shell", "none", "echo 'a"], "a quote in it is not closed"),
    (["--shell", "none", ""], "an empty command"),
    (["--input", "missing", "true"], "--input: missing: No such file"),
    (["--export-json", "no/folder/x", "true"], "--export-json: no/folder/x cannot be written"),
    (["-m", "9", "-M", "3", "true"], "--min-runs 9 is more than --max-runs 3"),
    (["-N", "a", "-N", "b", "true"], "to run without a shell: --shell none"),
    (["-N", "true"], "-N names a command here; hyperfine's -N is --shell none"),
    (["-n", "old", "true"], "a command's name is -N NAME"),
    (["--command-name", "x", "true"], "unknown option '--command-name'; a command's name is -N NAME here"),
    (["--time-unit=ms", "true"], "unknown option '--time-unit'; units are chosen"),
    (["-ums", "true"], "unknown option '-ums'; units are chosen"),
    (["-u", "ms", "true"], "unknown option '-u'; units are chosen"),
    (["--sort", "command", "true"], "unknown option '--sort'; commands stand in the order"),
    (["--until-decided", "-m", "61", "true"], "at most 60 runs here, fewer than --min-runs 61"),
    (["--until-decided", "-m", "28", "-M", "30", "true"], "at most 24 runs here, fewer than --min-runs 28"),
    (["--export-csv", "x", "--export-json", "./x", "true"], "--export-json and --export-csv: both would write to x"),
    (["--json", "--export-csv", "-", "true"], "--json and --export-csv: both would write to standard output"),
])
def test_bad_usage_is_named_before_anything_runs(assay, args, said):
    got = assay("bench", *args)
    assert got.status == 2
    assert said in got.stderr
    assert got.stderr.count("\n") == 1 and got.stdout == ""


def test_two_names_of_one_file_are_one(assay, tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").symlink_to("a")
    got = assay("bench", "-n", "1", "true", "--export-csv", "a", "--export-markdown", "b")
    assert got.status == 2 and "both would write to b" in got.stderr
    assert (tmp_path / "a").read_text() == "old"
    assert assay("bench", "-n", "1", "true", "--export-csv", "/dev/null", "--export-json", "/dev/null").status == 0


def test_an_export_goes_through_a_link(assay, tmp_path):
    (tmp_path / "to").write_text("old")
    (tmp_path / "link").symlink_to("to")
    assert assay("bench", "-n", "1", "true", "--export-csv", "link").status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "to").read_text().startswith("command,")


def test_a_name_that_looks_like_a_command_is_pointed_out(assay):
    note = "assay bench: -N names a command here; hyperfine's -N is --shell none\n"
    assert assay("bench", "-n", "1", "-N", "sleep 0", "true").stderr == note
    assert assay("bench", "-n", "1", "-N", "old", "true").stderr == ""
    assert assay("bench", "-n", "1", "-N", "the old", "-N", "the new", "true", "true").stderr == ""


def test_a_parameter_that_is_used_nowhere_is_pointed_out(assay):
    got = assay("bench", "-n", "1", "-P", "n", "1", "2", "-L", "m", "a,b", "true {m}")
    assert got.status == 0
    assert "parameter 'n': {n} stands in no command" in got.stderr and got.stderr.count("\n") == 1
    assert assay("bench", "-n", "1", "-P", "n", "1", "2", "-p", "echo {n}", "true").stderr == ""


def test_input_is_read_from_its_start_in_each_run(assay, tmp_path):
    (tmp_path / "in").write_text("hello\n")
    got = assay("bench", "-n", "3", "--input", "in", "cat >> all")
    assert got.status == 0
    assert (tmp_path / "all").read_text().count("hello\n") >= 3
    assert (tmp_path / "all").read_text().replace("hello\n", "") == ""


def test_output_goes_where_it_is_sent(assay, tmp_path):
    assert "seen" in assay("bench", "-n", "1", "--show-output", "echo seen").stdout
    assert "seen" not in assay("bench", "-n", "1", "-N", "x", "printf see%s n").stdout.replace("see%s n", "")
    got = assay("bench", "-n", "2", "--output", "a", "--output", "b", "echo 1", "echo 2")
    assert got.status == 0
    assert (tmp_path / "a").read_text() == "1\n" and (tmp_path / "b").read_text() == "2\n"
    # More than a pipe holds: it would block for ever if nobody emptied it.
    assert assay("bench", "-n", "2", "--output", "pipe", "head -c 3000000 /dev/zero").status == 0


def test_the_peak_is_that_of_the_command(assay, targets):
    small, big = results_of(assay("bench", "-n", "3", "true", f"{targets('touch_memory')} 80 0", "--json"))
    assert max(small["memory_usage_byte"]) < 24 << 20
    assert min(big["memory_usage_byte"]) >= 80 << 20
    assert big["peak_memory_bytes"] < 110 << 20
    assert big["minor_faults"] > small["minor_faults"]


def test_labels_of_all_kinds_are_escaped(assay):
    names = ["a|b `c` \"d\", e", "x" * 65 + "1", "x" * 65 + "2", "ä/ß\n", "ä/ß\n"]
    words = [word for name in names for word in ("-N", name)]
    got = assay("bench", "-n", "1", *words, *["true"] * 5, "--export-json", "o.json", "--export-csv", "o.csv",
                "--export-markdown", "o.md", env={"LC_ALL": "de_DE.UTF-8"})
    assert got.status == 0
    assert [r["command"] for r in json.loads((got.cwd / "o.json").read_text())["results"]] == names
    rows = list(csv.DictReader(io.StringIO((got.cwd / "o.csv").read_text())))
    assert [row["command"] for row in rows] == names
    assert all(float(row["median"]) > 0 for row in rows)
    lines = (got.cwd / "o.md").read_text().splitlines()
    assert len(lines) == 2 + 5
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {8}
    assert lines[2].startswith(r'| a\|b \`c\` "d", e | ')


def test_csv_begins_with_hyperfines_columns(assay):
    got = assay("bench", "-n", "2", "-L", "x", "1,2", "true {x}", "--export-csv", "-")
    assert got.stdout.startswith("command,mean,stddev,median,user,system,min,max,parameter_x,")
    assert [row["parameter_x"] for row in csv.DictReader(io.StringIO(got.stdout))] == ["1", "2"]


def test_slower_fails_only_on_request(assay):
    args = ["-n", "8", "sleep 0.01", "sleep 0.2"]
    assert assay("bench", *args).status == 0
    assert assay("bench", "--fail-on-slower", *args).status == 1
    assert assay("bench", "--fail-on-slower", "--reference", "sleep 0.2", "-n", "8", "sleep 0.01").status == 0
    assert assay("bench", "--fail-on-undecided", "-n", "2", "true", "true").status == 4


def test_until_decided_stops_at_a_look(assay):
    results = results_of(assay("bench", "--until-decided", "sleep 0.01", "sleep 0.4", "--json"))
    assert results[1]["verdict"] == "slower"
    assert len(results[0]["times"]) in (8, 14)


def test_until_decided_looks_once_at_most_at_each_number_of_pairs(assay):
    for asked, most in ((5, 5), (10, 8), (16, 14)):
        data = json.loads(assay("bench", "--until-decided", "-n", str(asked), "true", "true", "--json").stdout)
        assert len(data["results"][0]["times"]) <= most
        assert data["assay"]["looks"] == 5


def test_until_decided_makes_the_least_runs_first(assay):
    results = results_of(assay("bench", "--until-decided", "-m", "9", "sleep 0.001", "sleep 0.1", "--json"))
    assert results[1]["verdict"] == "slower"
    assert len(results[0]["times"]) in (14, 24)


def test_the_same_seed_gives_the_same_order(assay, tmp_path):
    orders = []
    for _ in range(2):
        got = assay("bench", "-n", "6", "--seed", "7", "sh -c 'echo A >> log'", "sh -c 'echo B >> log'")
        assert got.status == 0
        orders.append((tmp_path / "log").read_text())
        (tmp_path / "log").unlink()
    assert orders[0] == orders[1]
    words = orders[0].split()
    assert all(words[i:i + 4] == words[i:i + 4][::-1] for i in range(0, 12, 4))


def test_a_first_run_that_is_slow_is_named_with_what_helps(assay):
    line = "test -e warm || sleep 0.5; touch warm; sleep 0.05"
    got = assay("bench", "-n", "12", line)
    assert "the first run took" in got.stdout and "--warmup 3" in re.sub(r"\s+", " ", got.stdout)


def test_interrupted_runs_are_kept(program, tmp_path):
    bench = subprocess.Popen([program, "bench", "-n", "1000", "sh -c 'echo x >> log; sleep 0.05'", "--export-json",
                              "out.json"], cwd=tmp_path, env=environment(None), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    while not (tmp_path / "log").exists() or len((tmp_path / "log").read_text()) < 10:
        time.sleep(0.01)
    bench.send_signal(signal.SIGINT)
    out, err = bench.communicate(timeout=60)
    assert bench.returncode == 130
    assert err == b"assay bench: interrupted\n"
    data = json.loads((tmp_path / "out.json").read_text())
    assert data["assay"]["status"] == "interrupted"
    assert len(data["results"][0]["times"]) >= 4
    assert b"time" in out


def test_nothing_is_left_when_assay_is_killed(program, tmp_path):
    bench = subprocess.Popen([program, "bench", "sh -c 'echo $$ > pid; sleep 600; true'"], cwd=tmp_path,
                             env=environment(None), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().endswith("\n"):
        time.sleep(0.01)
    pid = int((tmp_path / "pid").read_text())
    bench.kill()
    bench.wait()
    for _ in range(3000):
        try:
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the command lives on")


def test_progress_is_for_terminals_only(assay, program, tmp_path):
    assert assay("bench", "-n", "3", "true").stderr == ""
    terminal = Terminal([program, "bench", "-n", "3", "sleep 0.01"], tmp_path)
    try:
        assert terminal.wait() == 0
        assert b"run 1 of 3" in terminal.output
    finally:
        terminal.hang_up()
    terminal = Terminal([program, "bench", "-n", "3", "--style", "basic", "sleep 0.01"], tmp_path)
    try:
        assert terminal.wait() == 0
        assert b"run 1 of 3" not in terminal.output and b"\x1b" not in terminal.output
    finally:
        terminal.hang_up()


def test_style_none_prints_nothing(assay):
    got = assay("bench", "-n", "2", "--style", "none", "true")
    assert (got.status, got.stdout, got.stderr) == (0, "", "")


def test_a_command_that_stops_itself_is_named_and_does_not_hang(assay):
    got = assay("bench", "-n", "2", "--shell", "none", "sh -c 'kill -STOP $$'")
    assert got.status == 3
    assert "stopped itself (SIGSTOP)" in got.stderr


def test_one_request_that_comes_twice_keeps_what_was_measured(program, tmp_path):
    process = subprocess.Popen([program, "bench", "-n", "100000", "--shell", "none", "true", "--export-json",
                                "out.json"], cwd=tmp_path, env=environment(None), start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1)
    for _ in range(2):
        process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert process.returncode == 143
    assert json.loads((tmp_path / "out.json").read_text())["results"][0]["times"]
