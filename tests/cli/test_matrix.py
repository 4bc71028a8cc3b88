"""assay matrix: both sides over many cases, run by assay itself. No test believes a timing of this machine: what is
judged here is what the binaries print."""
import json
import os
import signal
import subprocess

import pytest

from conftest import environment
from terminal import Terminal
from waiting import wait_for

ROW = "| {0:30} | {1:>10} | {2:>10} | {3:10} | {4:>7} | {5:>13} | {6:>20} |\n"


def table_of(pp, tg):
    """What llama-bench prints."""
    rule = ROW.format("-" * 30, "-" * 9 + ":", "-" * 9 + ":", "-" * 10, "-" * 6 + ":", "-" * 12 + ":", "-" * 19 + ":")
    row = "llama 1B Q4_0", "700.00 MiB", "1.00 B", "CPU", "2"
    return (ROW.format("model", "size", "params", "backend", "threads", "test", "t/s") + rule +
            ROW.format(*row, "pp512", f"{pp:.2f} ± 0.50") + ROW.format(*row, "tg128", f"{tg:.2f} ± 0.10") +
            "\nbuild: unknown (0)\n")


class Matrix:
    """Two folders of binaries and a cases file in a scratch folder."""

    def __init__(self, assay, path):
        self.assay, self.path = assay, path
        self.cases([{"label": "one"}])
        for side in "ab":
            (path / side).mkdir()

    def binary(self, side, script, name="llama-bench"):
        file = self.path / side / name
        file.write_text(f"#!/bin/sh\necho {side} \"$@\" >> {self.path}/order\n{script}\n")
        file.chmod(0o755)

    def bench(self, side, pp, tg, slow=()):
        """A llama-bench of these speeds: each run a little different, in a way that repeats; those named are slower."""
        (self.path / f"{side}.n").write_text("0")
        tables = self.path / f"{side}-tables"
        tables.mkdir()
        for i in range(32):
            wave = 1 + 0.0001 * (i % 4)
            (tables / str(i)).write_text(table_of(pp * wave, tg * wave * (0.8 if i in slow else 1)))
        self.binary(side, f"cd {self.path}; n=$(cat {side}.n); echo $((n + 1)) > {side}.n; cat {tables}/$((n % 32))")

    def cases(self, cases, **more):
        (self.path / "cases.json").write_text(json.dumps({"cases": cases, **more}))

    def argv(self, *options):
        return ("matrix", "cases.json", "--a", "old=a", "--b", "new=b", "--precheck", "off", "-o", "out", *options)

    def run(self, *options, **more):
        return self.assay(*self.argv(*options), **more)

    @property
    def json(self):
        return json.loads((self.path / "out" / "matrix.json").read_text())

    @property
    def table(self):
        return (self.path / "out" / "table.md").read_text()

    @property
    def order(self):
        file = self.path / "order"
        return "".join(line[0] for line in file.read_text().splitlines()).upper() if file.exists() else ""


@pytest.fixture
def matrix(assay, tmp_path):
    return Matrix(assay, tmp_path)


def test_a_slower_side_is_a_regression_in_its_own_case_only(matrix):
    matrix.bench("a", 1000, 50)
    matrix.bench("b", 1000, 40)
    got = matrix.run("--seed", "5")
    assert got.status == 1, got
    case = matrix.json["cases"][0]
    assert matrix.json["complete"] and case["label"] == "one"
    # "tradeoff" where a metric of the machine's own, such as wall_s, happens to be better.
    assert case["verdict"] in ("regression", "tradeoff") and "decode_tps" in case["worse"]
    assert case["metrics"]["decode_tps"]["verdict"] == "worse"
    assert case["metrics"]["decode_tps"]["ratio"] == pytest.approx(0.8, abs=0.001)
    assert case["metrics"]["prefill_tps"]["verdict"] == "equivalent"
    assert case["metrics"]["decode_tps"]["paired"]["pairs"] == 8
    assert "0.800 worse" in got.stdout and ": costs " in got.stdout
    assert "**0.800** worse" in matrix.table


def test_the_order_is_balanced_blocks_by_the_seed(matrix):
    matrix.bench("a", 100, 10)
    matrix.bench("b", 100, 10)
    matrix.run("--pairs", "10", "--seed", "2")
    first = matrix.order
    blocks = [first[i:i + 4] for i in range(0, 20, 4)]
    assert set(blocks) == {"ABBA", "BAAB"}
    arms = matrix.json["cases"][0]["arms"]
    assert "".join(arm["side"] for arm in arms) == first
    for i, arm in enumerate(arms):
        run = json.loads((matrix.path / "out" / arm["dir"] / "run.json").read_text())
        assert (run["block"], run["arm"]) == (arm["block"], arm["arm"]) == (i // 4, i % 4)
        assert run["label"] == f"one [{'old' if arm['side'] == 'A' else 'new'}]"
    (matrix.path / "order").unlink()
    (matrix.path / "out").rename(matrix.path / "out1")
    matrix.run("--pairs", "10", "--seed", "2")
    assert matrix.order == first


def test_a_fixed_order_runs_once_as_in_the_reference(matrix):
    matrix.bench("a", 100, 10)
    matrix.bench("b", 100, 8)
    got = matrix.run("--order", "ABBA", "--rule", "separation")
    assert got.status == 1, got
    assert matrix.order == "ABBA" and matrix.json["order"] == "ABBA"
    case = matrix.json["cases"][0]
    assert case["verdict"] in ("regression", "tradeoff") and case["dropped_runs"] == 0
    assert set(case["metrics"]["decode_tps"]) == {"a", "b", "ratio", "verdict", "a_runs", "b_runs"}
    assert "| pp new/old | tg new/old | GPU mem new/old | host anon new/old | load new/old | tg J/tok new/old |" \
        in matrix.table


def test_what_a_case_says_reaches_the_command(matrix):
    matrix.cases([{"label": "x", "args": ["-p", "a b"], "env": {"MINE": "2"}, "gpus": "1,2", "model": "m.gguf"}],
                 defaults={"binary": "prog", "prefix": ["env", "P=1"], "args": ["-t"],
                           "env": {"MINE": "1", "DEFAULT": "3", "SIDE": "none"}})
    (matrix.path / "m.gguf").write_text("")
    for side in "ab":
        matrix.binary(side, f'echo "$P $MINE $DEFAULT $SIDE $CUDA_VISIBLE_DEVICES" > {side}.env', "prog")
    got = matrix.run("--order", "AB", "--a-env", "SIDE=left", "--b-env", "SIDE=right")
    assert got.status == 0, got
    assert (matrix.path / "order").read_text() == "a -m m.gguf -t -p a b\nb -m m.gguf -t -p a b\n"
    assert (matrix.path / "a.env").read_text() == "1 2 3 left 1,2\n"
    assert (matrix.path / "b.env").read_text() == "1 2 3 right 1,2\n"


def test_arms_that_fail_are_shown_and_not_counted(matrix):
    matrix.bench("a", 100, 10)
    matrix.bench("b", 100, 10)
    with open(matrix.path / "b" / "llama-bench", "a") as script:
        script.write("case $(cat b.n) in 1) exit 7;; 2) kill -9 $$;; 3) sleep 60;; esac\n")
    got = matrix.run("--order", "ABBA", "--pairs", "4", "--timeout", "2")
    arms = matrix.json["cases"][0]["arms"]
    assert [arm["status"] for arm in arms if arm["side"] == "B"] == ["failed", "signal", "timeout", "ok"]
    assert matrix.json["cases"][0]["dropped_runs"] == 3
    assert len(matrix.json["cases"][0]["metrics"]["decode_tps"]["b_runs"]) == 1
    for status in ("failed", "signal", "timeout"):
        assert f"(new): {status}\n" in got.stderr
    assert "(3 arms failed)" in got.stdout and "(3 arms failed)" in matrix.table


def test_refused_arms_are_shown_and_not_counted(matrix, program):
    for side in "ab":
        matrix.bench(side, 100, 10)
    other = subprocess.Popen([program, "run", "-q", "--precheck", "off", "--no-probe", "-o", matrix.path / "other",
                              "--", "sh", "-c", "echo up; exec sleep 1000"], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"up\n"
        got = matrix.run("--order", "AB", "--precheck", "refuse")
    finally:
        other.terminate()
        other.wait()
    case = matrix.json["cases"][0]
    assert [arm["status"] for arm in case["arms"]] == ["refused", "refused"]
    assert not matrix.order and case["dropped_runs"] == 2 and case["metrics"] == {}
    assert "one: arm 2 (new): refused: the machine is not clean: " in got.stderr
    assert "(2 arms refused)" in matrix.table
    assert got.status == 3 and "no run of side B (new) can be counted" in got.stderr


def test_a_case_without_a_countable_run_is_trouble(matrix):
    matrix.bench("a", 100, 10)
    matrix.binary("b", "exit 1")
    got = matrix.run("--order", "ABBA")
    assert got.status == 3
    assert "assay matrix: case 'one': no run of side B (new) can be counted\n" in got.stderr
    assert matrix.json["complete"] is True and matrix.json["cases"][0]["verdict"] == "neutral"
    for shown in (got.stdout, matrix.table):
        assert "no verdict (2 arms failed)" in shown and "neutral" not in shown


@pytest.mark.parametrize("confidence", ("99", "0.99"))
def test_confidence_is_a_percentage_or_a_share(matrix, confidence):
    for side in "ab":
        matrix.bench(side, 1000, 50)
    matrix.run("--order", "ABBA", "--confidence", confidence)
    plan = json.loads((matrix.path / "out" / "plan.json").read_text())
    assert plan["confidence"] == 0.99
    assert matrix.json["cases"][0]["metrics"]["decode_tps"]["paired"]["confidence"] == 0.99


def test_what_of_a_noise_file_is_not_used_is_told(matrix):
    for side in "ab":
        matrix.bench(side, 1000, 50)
    matrix.cases([{"label": "one"}, {"label": "two"}, {"label": "left out"}])
    (matrix.path / "noise.json").write_text(json.dumps({"one": {"decode_tsp": 0.5, "wall_s": 0.1, "phase:x": 0.1}}))
    got = matrix.run("--order", "AB", "--noise", "noise.json", "--only", "one|two")
    told = [line for line in got.stderr.splitlines() if "noise.json" in line]
    assert told == ['assay: noise.json: "decode_tsp" is no metric, so its floor counts for nothing',
                    "assay: noise.json: no floors of case 'two' in it"]


def test_a_missing_model_is_skipped(matrix):
    matrix.bench("a", 100, 10)
    matrix.bench("b", 100, 10)
    matrix.cases([{"label": "gone", "model": "nowhere.gguf"}, {"label": "here"}])
    got = matrix.run("--order", "AB")
    assert got.status == 0 and "assay: gone: model missing, skipped\n" in got.stderr
    assert matrix.json["cases"][0]["skipped"] == "model missing"
    assert matrix.json["cases"][1]["label"] == "here" and matrix.order == "AB"
    assert "model missing" in matrix.table


def test_only_picks_cases_and_changes_no_order(matrix):
    for side in "ab":
        matrix.bench(side, 100, 10)
    matrix.cases([{"label": "pp512"}, {"label": "tg128"}])
    matrix.run("--pairs", "4", "--seed", "9")
    whole = [[arm["side"] for arm in case["arms"]] for case in matrix.json["cases"]]
    (matrix.path / "out").rename(matrix.path / "out1")
    matrix.run("--pairs", "4", "--seed", "9", "--only", "^tg")
    assert [case["label"] for case in matrix.json["cases"]] == ["tg128"]
    assert [arm["side"] for arm in matrix.json["cases"][0]["arms"]] == whole[1]


def test_warm_ups_do_not_count(matrix):
    for side in "ab":
        matrix.bench(side, 100, 10)
    matrix.run("--order", "ABBA", "--warmup", "2")
    assert matrix.order == "ABABABBA"
    assert len(matrix.json["cases"][0]["arms"]) == 4


def test_it_stops_at_the_first_look_that_decides(matrix):
    matrix.bench("a", 1000, 50)
    matrix.bench("b", 1000, 30)
    got = matrix.run("--until-decided", "--seed", "2")
    assert got.status == 1, got
    assert len(matrix.json["cases"][0]["arms"]) in (16, 28)
    assert "decode_tps" in matrix.json["cases"][0]["worse"]


def test_a_null_matrix_knows_that_it_is_one(matrix, assay):
    matrix.bench("a", 1000, 50)
    got = assay("matrix", "cases.json", "--a", "x=a", "--b", "y=a/", "--precheck", "off", "-o", "out")
    assert matrix.json["null"] is True
    assert matrix.json["trusted"] is (matrix.json["cases"][0]["verdict"] in ("neutral", "undecided"))
    assert "Both sides are the same" in got.stdout


def test_a_null_matrix_that_finds_a_difference_is_not_trusted(matrix, assay):
    # The runs of side B in ABBA, ABBA, ...
    matrix.bench("a", 1000, 50, slow={1, 2, 5, 6, 9, 10, 13, 14})
    got = assay("matrix", "cases.json", "--a", "x=a", "--b", "y=a", "--precheck", "off", "-o", "out", "--order", "ABBA",
                "--pairs", "8")
    assert "decode_tps" in matrix.json["cases"][0]["worse"], got
    assert matrix.json["null"] is True and matrix.json["trusted"] is False
    assert "not to be trusted" in got.stdout and "not to be trusted" in matrix.table


@pytest.mark.parametrize("how", ["interrupt", "terminate", "kill", "group"])
def test_what_was_finished_is_kept_and_gone_on_with(matrix, program, assay, how):
    for side in "ab":
        matrix.bench(side, 100, 10)
        with open(matrix.path / side / "llama-bench", "a") as script:  # the sixth run waits to be ended
            script.write("[ $(wc -l < order) != 6 ] || exec sleep 1000\n")
    process = subprocess.Popen([program, *matrix.argv("--pairs", "6", "--seed", "4")], cwd=matrix.path,
                               env=environment(None), start_new_session=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    wait_for(lambda: len(matrix.order) == 6, "the sixth arm")
    wait_for(lambda: list((matrix.path / "out" / "one").glob("05_*/segments/*.seg")), "its recording")
    if how == "group":
        os.killpg(process.pid, signal.SIGINT)
    else:
        process.send_signal({"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}[how])
    out, err = process.communicate(timeout=120)
    assert process.returncode == {"terminate": 143, "kill": -9}.get(how, 130), err
    assert matrix.json["complete"] is False
    arms = matrix.json["cases"][0]["arms"]
    assert [arm["status"] for arm in arms][:5] == ["ok"] * 5 and len(arms) <= 6
    if how != "kill":
        assert arms[5]["status"] == "interrupted"
        assert b"assay matrix --resume out\n" in err and b"Not complete" in out
    wait_for(lambda: list((matrix.path / "out" / "one").glob("05_*/run.json")), "the end of the sixth arm")
    finished, = (matrix.path / "out" / "one").glob("05_*/run.json")
    assert json.loads(finished.read_text())["status"] == "interrupted"
    # After a kill of assay, the process that ended the arm may not be gone yet.
    wait_for(lambda: assay("matrix", "--resume", "out").status == 0, "an end of the matrix")
    assert matrix.json["complete"] is True
    again = matrix.json["cases"][0]["arms"]
    assert again[:5] == arms[:5] and [arm["status"] for arm in again] == ["ok"] * 12
    assert matrix.order[5] == matrix.order[6] and len(matrix.order) == 13


def test_ctrl_c_on_a_terminal_ends_the_arm_and_keeps_the_rest(matrix, program):
    matrix.binary("a", "exit 0")
    matrix.binary("b", "exec sleep 1000")
    terminal = Terminal([program, *matrix.argv("--order", "ABBA")], matrix.path)
    wait_for(lambda: list((matrix.path / "out" / "one").glob("01_*/segments/*.seg")), "the second arm")
    wait_for(lambda: matrix.order == "AB", "its command")
    terminal.type(b"\x03")
    assert terminal.wait() == 130
    terminal.hang_up()
    assert matrix.order == "AB"
    assert [arm["status"] for arm in matrix.json["cases"][0]["arms"]] == ["ok", "interrupted"]
    assert matrix.json["complete"] is False


def test_a_resumed_matrix_takes_no_other_options_and_no_other_cases(matrix, assay):
    for side in "ab":
        matrix.bench(side, 100, 10)
    matrix.run("--order", "AB")
    got = assay("matrix", "--resume", "out", "--pairs", "3")
    assert got.status == 2
    assert got.stderr == "assay matrix: --resume goes on as the matrix was begun: --pairs has to be left out\n"
    (matrix.path / "sub").mkdir()
    got = assay("matrix", "--resume", "../out", cwd=matrix.path / "sub")
    assert got.status == 2 and "change to it first" in got.stderr
    matrix.cases([{"label": "two"}])
    got = assay("matrix", "--resume", "out")
    assert got.status == 2
    assert got.stderr == ("assay matrix: cases.json: it has changed since the matrix was begun: go on with the file as "
                          "it was, or begin a new matrix\n")
    got = assay("matrix", "--resume", "a")
    assert got.status == 2 and got.stderr == "assay matrix: a: there is no matrix in it (no plan.json)\n"


def test_a_matrix_file_that_names_other_folders_is_refused(matrix, assay):
    for side in "ab":
        matrix.bench(side, 100, 10)
    matrix.run("--order", "AB")
    whole = matrix.json
    for bad in ({"dir": "../elsewhere"}, {"dir": "/etc"}, {"side": "C"}, {"block": 1e300}, {"arm": "x"}):
        changed = json.loads(json.dumps(whole))
        changed["cases"][0]["arms"][0].update(bad)
        (matrix.path / "out" / "matrix.json").write_text(json.dumps(changed))
        got = assay("matrix", "--resume", "out")
        assert got.status == 2, (bad, got)
        assert got.stderr == "assay matrix: out/matrix.json: the arms of case 'one' are none of this plan\n"


def test_any_label_has_a_folder_and_a_row(matrix):
    for side in "ab":
        matrix.bench(side, 100, 10)
    labels = ["a b", "a|b", 'quote "q"', "sl/ash", "..", "é", "日本", "*bold* <b>", "new\nline", "x" * 65 + "1",
              "x" * 65 + "2", "matrix.json"]
    matrix.cases([{"label": label} for label in labels])
    matrix.run("--order", "AB", env={"LC_ALL": "de_DE.UTF-8"})
    assert [case["label"] for case in matrix.json["cases"]] == labels
    folders = {arm["dir"].split("/")[0] for case in matrix.json["cases"] for arm in case["arms"]}
    assert len(folders) == len(labels)
    files = {"matrix.json", "table.md", "plan.json"}
    assert {entry.name for entry in (matrix.path / "out").iterdir()} == folders | files
    rows = matrix.table.splitlines()[:len(labels) + 2]
    assert all(row.replace("\\|", "").count("|") == rows[0].count("|") for row in rows), matrix.table
    assert "\\*bold\\* \\<b\\>" in matrix.table


def test_bad_usage_is_named(matrix, assay):
    for side in "ab":
        matrix.bench(side, 100, 10)
    for words, error in [
            (["--a", "x=a"],
             "no cases given; usage: assay matrix [options] CASES.json --a NAME=BIN_DIR --b NAME=BIN_DIR"),
            (["cases.json", "--a", "x=a"], "--b is missing: --b NAME=BIN_DIR"),
            (["cases.json", "--a", "a", "--b", "y=b"], "--a 'a': expected NAME=BIN_DIR"),
            (["cases.json", "--a", "x=nowhere", "--b", "y=b"], "--a 'x': nowhere is no folder"),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--only", "["], None),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--only", "zzz"], "--only 'zzz': no label matches it"),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--order", "AAB"],
             "the order 'AAB': every side has to run equally often in it, at least once"),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--pairs", "1.5"],
             "option '--pairs': 1.5 is not a whole number"),
            (["cases.json", "--a", "x=a", "--b", "x=b"],
             "--a and --b: both sides are called 'x': give them different names"),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--confidence", "40"],
             "option '--confidence': 40 is no percentage of 50 or more, and no share below 1"),
            (["cases.json", "--a", "x=a", "--b", "y=b", "--b-env", "K"], "--b-env 'K': expected NAME=VALUE in UTF-8"),
            (["nowhere.json", "--a", "x=a", "--b", "y=b"], None)]:
        got = assay("matrix", *words)
        assert got.status == 2 and not got.stdout, got
        assert error is None or got.stderr == f"assay matrix: {error}\n"
    (matrix.path / "b" / "llama-bench").unlink()
    got = matrix.run()
    assert got.status == 2
    assert got.stderr == ("assay matrix: --b 'new': the binary of case 'one' cannot be executed: b/llama-bench: "
                          "No such file or directory\n")
    assert not (matrix.path / "out").exists() and not (matrix.path / "assay-runs").exists()


def test_a_wrong_key_is_named_with_its_line(matrix, assay):
    (matrix.path / "cases.json").write_text('{"cases": [\n {"label": "a",\n  "modle": "x"}]}')
    got = assay("matrix", "cases.json", "--a", "x=a", "--b", "y=b")
    assert got.status == 2
    assert got.stderr == "assay matrix: cases.json: line 3: cases[0].modle: unknown key; did you mean 'model'?\n"


def test_json_on_standard_output_is_matrix_json(matrix):
    for side in "ab":
        matrix.bench(side, 100, 10)
    got = matrix.run("--order", "ABBA", "--json", "-q")
    assert json.loads(got.stdout) == matrix.json
    assert got.stderr == ""


def test_progress_is_for_terminals_only(matrix, program):
    for side in "ab":
        matrix.bench(side, 100, 10)
    got = matrix.run("--order", "ABBA")
    assert "left" not in got.stderr and "\r" not in got.stderr
    (matrix.path / "out").rename(matrix.path / "out1")
    terminal = Terminal([program, *matrix.argv("--order", "ABBA")], matrix.path)
    assert terminal.wait() == 0
    assert b"one: arm 1/4 (old)" in terminal.output and b" left" in terminal.output
    terminal.hang_up()


def test_two_processes_do_not_work_on_one_matrix(matrix, program, assay):
    for side in "ab":
        matrix.binary(side, "exec sleep 1000")
    process = subprocess.Popen([program, *matrix.argv("--order", "AB")], cwd=matrix.path, env=environment(None),
                               start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: matrix.order, "the first arm")
    got = assay("matrix", "--resume", "out")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=120)
    assert got.status == 2 and got.stderr == "assay matrix: out: another process is at work on this matrix\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_an_arm_that_ignores_signals_ends_with_all_that_it_started(matrix, program, how):
    for side in "ab":
        matrix.binary(side, "trap '' TERM INT; echo $$ > pid; sleep 1000 & echo $! >> pid; wait; sleep 1000")
    process = subprocess.Popen([program, *matrix.argv("--order", "AB")], cwd=matrix.path, env=environment(None),
                               start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: (matrix.path / "pid").exists() and len((matrix.path / "pid").read_text().split()) == 2, "an arm")
    pids = [int(pid) for pid in (matrix.path / "pid").read_text().split()]
    process.send_signal(how)
    process.communicate(timeout=120)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "the arm's processes to be gone")
