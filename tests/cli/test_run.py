"""assay run on commands any machine has: status, results, phases, and what it says when something is wrong."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from need import need

QUIET = ("--precheck", "off")


def phases(result):
    return [(phase["name"], phase["group"]) for phase in result.run_json["phases"]]


def test_a_run_passes_everything_on_and_leaves_its_results(assay):
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "echo hello; echo oops >&2; exit 7")
    assert got.status == 7
    assert got.stdout == "hello\n"
    assert got.stderr.startswith("oops\nassay: failed (exit status 7)")
    assert (got.run_dir / "stdout.log").read_text() == "hello\n"
    assert (got.run_dir / "stderr.log").read_text() == "oops\n"
    run = got.run_json
    assert run["schema"] == 1
    assert (run["status"], run["exit_code"], run["perturbed"]) == ("failed", 7, False)
    assert run["command"] == "sh -c 'echo hello; echo oops >&2; exit 7'"
    assert run["label"] == "sh"
    assert phases(got) == [("run", "other")]
    assert run["phases"][0]["end_s"] == pytest.approx(run["wall_s"])
    assert 0 < run["wall_s"] < 60
    assert {"cpu_s", "max_rss_mib", "interval_ms", "ticks"} <= run["assay_cost"].keys()
    assert not list(got.run_dir.glob("*.tmp*"))


def test_the_summary_fits_a_screen_and_names_the_results(assay):
    got = assay("run", *QUIET, "-o", "out", "--", "true")
    assert got.status == 0
    lines = got.stderr.splitlines()
    assert len(lines) <= 24
    assert lines[0] == "assay: ok  true"
    assert re.match(r"  wall \S+ \S+   CPU ", lines[1])
    assert "memory peak" in got.stderr
    assert "watching cost" in got.stderr
    assert lines[-1] == f"  results: {got.run_dir.resolve()}"


def test_quiet_prints_nothing_but_what_the_command_printed(assay):
    got = assay("run", *QUIET, "-q", "-o", "out", "--", "echo", "x")
    assert (got.stdout, got.stderr) == ("x\n", "")


def test_death_by_a_signal_is_128_plus_its_number(assay):
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "kill -SEGV $$")
    assert got.status == 128 + signal.SIGSEGV
    assert got.run_json["status"] == "signal"
    assert got.run_json["signal"] == signal.SIGSEGV


def test_a_timeout_ends_the_whole_tree(assay):
    got = assay("run", *QUIET, "-o", "out", "--timeout", "0.5", "--", "sh", "-c", "sleep 300 & echo $!; sleep 300")
    assert got.status == 124
    assert got.run_json["status"] == "timeout"
    assert not os.path.exists(f"/proc/{got.stdout.strip()}") or is_zombie(int(got.stdout))


def is_zombie(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_tree_that_ignores_term_is_killed(assay):
    got = assay("run", *QUIET, "-o", "out", "--timeout", "0.3", "--",
                "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
    assert got.status == 124
    assert got.run_json["signal"] == signal.SIGKILL


def test_exit_zero(assay):
    assert assay("run", *QUIET, "--exit-zero", "-o", "out", "--", "false").status == 0


@pytest.mark.parametrize("command, status, words", [
    (["./no-such-program"], 127, "no-such-program"),
    (["no-such-program-anywhere"], 127, "no-such-program-anywhere"),
    (["./not-executable"], 126, "not-executable"),
    (["./a-folder"], 126, "a-folder"),
    (["./bad-interpreter"], 126, "/no/such/interpreter"),
])
def test_a_command_that_cannot_be_started_is_named_and_leaves_nothing(assay, tmp_path, command, status, words):
    (tmp_path / "not-executable").write_text("#!/bin/sh\n")
    (tmp_path / "a-folder").mkdir()
    bad = tmp_path / "bad-interpreter"
    bad.write_text("#!/no/such/interpreter\n")
    bad.chmod(0o755)
    got = assay("run", *QUIET, "-o", "out", "--", *command)
    assert got.status == status
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("assay run: ")
    assert words in got.stderr
    assert not (tmp_path / "out").exists()


def test_markers_make_phases(assay):
    script = ('mark() { echo "$1" >> "$ASSAY_MARKERS"; }\n'
              'mark load; sleep 0.2; mark "solve it"; sleep 0.1; mark decode')
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "sleep 0.1; " + script)
    assert phases(got) == [("start", "other"), ("load", "load"), ("solve it", "other"), ("decode", "decode")]
    load = got.run_json["phases"][1]
    assert 0.15 < load["end_s"] - load["start_s"] < 5
    assert got.run_json["groups"]["load"]["wall_s"] == pytest.approx(load["end_s"] - load["start_s"], abs=2e-6)


def test_markers_with_times_are_taken_at_their_word(assay):
    script = """
import os, time
now = time.monotonic_ns()
time.sleep(0.3)
with open(os.environ["ASSAY_MARKERS"], "a") as f:
    f.write(f"{now} load\\n{now + 100_000_000} decode\\n")
"""
    got = assay("run", *QUIET, "-o", "out", "--", "/usr/bin/python3", "-c", script)
    load = got.run_json["phases"][1]
    assert load["name"] == "load"
    assert load["end_s"] - load["start_s"] == pytest.approx(0.1, abs=2e-6)


def test_markers_that_go_backwards_and_garbage_are_counted(assay):
    script = r'''exec >> "$ASSAY_MARKERS"; printf '5 early\n'; printf '\377\001\n'; printf 'no newline' '''
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script)
    assert [name for name, _ in phases(got)] == ["early", "\ufffd?", "no newline"]
    assert any("1 phase mark lay outside" in w["text"] for w in got.run_json["warnings"])


def test_json_comes_last_and_on_a_line_of_its_own(assay):
    got = assay("run", *QUIET, "-q", "--json", "-o", "out", "--", "printf", "no newline")
    first, rest = got.stdout.split("\n", 1)
    assert first == "no newline"
    assert json.loads(rest) == got.run_json
    got = assay("run", *QUIET, "-q", "--json", "-o", "out2", "--", "echo", "line")
    assert got.stdout.startswith("line\n{")
    got = assay("run", *QUIET, "-q", "--json=got.json", "-o", "out3", "--", "echo", "line")
    assert got.stdout == "line\n"
    assert json.loads((got.cwd / "got.json").read_text()) == got.run_json


def test_summary_only_keeps_standard_output_in_the_log(assay):
    got = assay("run", *QUIET, "--summary-only", "-o", "out", "--", "sh", "-c", "echo hidden; echo seen >&2")
    assert got.stdout == ""
    assert "seen\n" in got.stderr
    assert (got.run_dir / "stdout.log").read_text() == "hidden\n"


def test_env_sets_and_the_record_keeps_secrets_out(assay):
    got = assay("run", *QUIET, "-q", "-o", "out", "--env", "GREETING=hello", "--env", "OMP_NUM_THREADS=2", "--env",
                "MY_API_KEY=verysecret", "--", "sh", "-c", 'echo "$GREETING $MY_API_KEY"; : --hf-token hushhush')
    assert got.stdout == "hello verysecret\n"
    text = (got.run_dir / "run.json").read_text() + (got.run_dir / "begin.json").read_text()
    assert "verysecret" not in text and "hushhush" not in text and "GREETING=hello" not in text
    assert got.run_json["environment"]["OMP_NUM_THREADS"] == "2"


def test_a_folder_that_is_not_empty_is_never_written_to(assay, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    got = assay("run", *QUIET, "-o", "out", "--", "touch", "ran")
    assert got.status == 2
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("assay run: ") and ": out: " in got.stderr and "not empty" in got.stderr
    assert not (tmp_path / "ran").exists()
    assert os.listdir(tmp_path / "out") == ["precious"]


def test_the_default_folder_is_new_each_time(assay, tmp_path):
    for _ in range(2):
        assert assay("run", *QUIET, "-q", "--label", "my label/x", "--", "true").status == 0
    names = sorted(os.listdir(tmp_path / "assay-runs"))
    assert len(names) == 2
    assert all("my_label_x" in name for name in names)


def test_a_folder_that_cannot_be_made_does_not_stop_the_command(assay, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "tmp").mkdir()
    got = assay("run", *QUIET, "-o", "file/out", "--", "sh", "-c", "echo ran; exit 3",
                env={"TMPDIR": str(tmp_path / "tmp")})
    assert got.status == 3
    assert got.stdout == "ran\n"
    assert "file: cannot make the folder" in got.stderr and "instead" in got.stderr
    run = next((tmp_path / "tmp").glob("assay-*/run.json"))
    assert json.loads(run.read_text())["status"] == "failed"


def test_a_full_disk_does_not_stop_the_command(assay, tmp_path):
    need("root", os.geteuid() == 0, "mounts a small tmpfs")
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small],
                          capture_output=True, text=True, check=False)
    need("fulldisk", done.returncode == 0, done.stderr.strip())
    try:
        got = assay("run", *QUIET, "-o", "small/out", "--", "sh", "-c", "head -c 8000000 /dev/zero; exit 5")
        assert got.status == 5
        assert got.stdout_bytes == bytes(8000000)
        assert "No space left on device" in got.stderr
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_output_that_is_lost_is_told_and_is_no_success(program, tmp_path):
    for script, status in (("echo x", 3), ("echo x; exit 5", 5)):
        with open("/dev/full", "wb") as full:
            got = subprocess.run([program, "run", *QUIET, "-q", "-o", tmp_path / script, "--", "sh", "-c", script],
                                 stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert got.returncode == status
        assert got.stderr == "assay run: 2 bytes of the command's output could not be written where it was sent\n"


def test_a_limit_on_file_sizes_does_not_stop_the_command(assay, program):
    script = f"ulimit -f 1; exec {program} run --precheck off -o out -- sh -c 'head -c 100000 /dev/zero; exit 5'"
    got = subprocess.run(["sh", "-c", script], cwd=assay("doctor").cwd, capture_output=True, check=False)
    assert got.returncode == 5
    assert got.stdout == bytes(100000)
    assert b"File too large" in got.stderr


def test_descendants_that_live_on_are_named_and_waited_for_on_request(assay):
    script = "setsid sh -c 'sleep 1' >/dev/null 2>&1 & exit 0"
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script)
    assert got.run_json["processes"]["survivors"] >= 1
    assert "still run" in got.stderr
    got = assay("run", *QUIET, "--wait-tree", "-o", "out2", "--", "sh", "-c", script)
    assert got.run_json["processes"]["survivors"] == 0
    assert got.run_json["wall_s"] >= 1


def test_an_unknown_parser_and_a_bad_variable_are_refused(assay):
    got = assay("run", "--engine", "nosuch", "--", "true")
    assert got.status == 2
    assert got.stderr == "assay run: --engine 'nosuch': no such parser; `assay doctor` lists them\n"
    got = assay("run", "--env", "novalue", "--", "true")
    assert (got.status, got.stderr) == (2, "assay run: --env 'novalue': expected NAME=VALUE\n")
    assert assay("run").status == 2


def test_a_machine_that_is_not_quiet_is_named_or_refused(assay, program, tmp_path):
    other = subprocess.Popen([program, "run", *QUIET, "-q", "-o", tmp_path / "other", "--",
                              "sh", "-c", "echo up; exec sleep 300"],
                             stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"up\n"
        got = assay("run", "--precheck", "refuse", "-o", "out", "--", "touch", "ran")
        assert got.status == 3
        assert got.stderr.startswith("assay run: the machine is not clean: ")
        assert "another assay is recording" in got.stderr
        assert not (tmp_path / "ran").exists() and not (tmp_path / "out").exists()
        got = assay("run", "--precheck", "warn", "-o", "out", "--", "true")
        assert got.status == 0
        assert "The machine was not quiet before the run: " in got.stderr
        assert got.run_json["machine_before"]["clean"] is False
        assert any("another assay" in reason for reason in got.run_json["machine_before"]["reasons"])
    finally:
        other.terminate()
        other.wait()


def kill_assay_in_mid_run(program, tmp_path, script):
    out = tmp_path / "killed"
    process = subprocess.Popen([program, "run", *QUIET, "-o", out, "--", "sh", "-c", script],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "stdout.log").exists() or not (out / "stdout.log").read_text():
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    rest = process.stdout.read()
    process.wait()
    return out, rest


def test_a_killed_assay_leaves_the_command_running_and_the_run_recoverable(assay, program, tmp_path):
    script = 'echo load >> "$ASSAY_MARKERS"; echo one; sleep 1; echo late >> "$ASSAY_MARKERS"; echo two; exit 9'
    out, printed = kill_assay_in_mid_run(program, tmp_path, script)
    assert printed == "one\ntwo\n"
    assert not (out / "run.json").exists()
    got = assay("recover", out)
    assert got.status == 0
    run = json.loads((out / "run.json").read_text())
    assert run["status"] == "partial"
    assert run["exit_code"] == 9
    assert [phase["name"] for phase in run["phases"]] == ["start", "load", "late"]
    assert run["wall_s"] >= 1
    assert run["counters"]["rss_peak_mib"] > 0
    assert (out / "stdout.log").read_text() == "one\ntwo\n"
    assert (out / "timeline.h5").exists()
    again = assay("recover", out)
    assert again.status == 2
    assert "--force" in again.stderr


def test_a_run_that_goes_on_is_not_recovered_by_mistake(assay, program, tmp_path):
    process = subprocess.Popen([program, "run", *QUIET, "-q", "-o", tmp_path / "out", "--",
                                "sh", "-c", "echo up; exec sleep 300"],
                               stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"up\n"
        got = assay("recover", "out")
        assert got.status == 2
        assert "is still recording it" in got.stderr
        assert not (tmp_path / "out" / "run.json").exists()
        assert assay("recover", "--force", "out").status == 0
    finally:
        process.terminate()
        process.wait()


def test_a_timeout_does_not_wait_for_a_reader_that_does_not_read(program, tmp_path):
    process = subprocess.Popen([program, "run", *QUIET, "-q", "-o", tmp_path / "out", "--timeout", "0.5", "--", "yes"],
                               stdout=subprocess.PIPE)
    try:
        assert process.wait(60) == 124
        run = json.loads((tmp_path / "out" / "run.json").read_text())
        assert any("Not all output" in warning["text"] for warning in run["warnings"])
    finally:
        process.stdout.close()


def test_a_second_interrupt_shortens_the_finishing(program, tmp_path):
    script = 'yes "llama_print_timings: x 123 abc def" | head -c 300000000; echo over >&2'
    process = subprocess.Popen([program, "run", *QUIET, "-o", tmp_path / "out", "--", "sh", "-c", script],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline() == "over\n"
    while process.poll() is None:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    assert process.returncode == 0
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert any("interrupted" in warning["text"] for warning in run["warnings"])


def test_nothing_from_the_command_line_reaches_the_terminal_raw(assay):
    got = assay("run", *QUIET, "-o", "out", "--", "true", "\033[2J\033]0;x\007", "a\nb", "x" * 5000)
    assert "\033" not in got.stderr and "\007" not in got.stderr
    assert len(got.stderr.splitlines()[0]) < 120


def test_a_small_stack_is_enough(program, tmp_path):
    need("stack", b"__asan_init" not in program.read_bytes(), "a sanitizer needs a larger one")
    script = f"ulimit -s 64; exec {program} run --precheck off -q -o out -- sh -c 'echo hi; exit 4'"
    got = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert (got.returncode, got.stdout) == (4, b"hi\n")


def test_a_target_that_spoils_its_run_directory_does_not_stop_the_finishing(assay):
    script = "cd $ASSAY_RUN_DIR; rm stdout.log; mkfifo stdout.log run.json timeline.h5; exit 6"
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script)
    assert got.status == 6
    assert "stdout.log is not a regular file" in got.stderr
    assert got.run_json["exit_code"] == 6


def test_a_source_that_is_not_here_is_named_with_its_reason(program, tmp_path):
    hide = "mount -t tmpfs none /proc/pressure"
    need("mount", subprocess.run(["unshare", "-m", "sh", "-c", hide], capture_output=True, check=False).returncode == 0,
         "/proc/pressure cannot be hidden")
    script = f"{hide}; exec {program} run --precheck off -o out -- true"
    got = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=tmp_path,
                         capture_output=True, text=True, check=False)
    assert got.returncode == 0
    assert "warning: Not observed, pressure: /proc/pressure/" in got.stderr


def test_a_kill_for_want_of_memory_is_named(program, tmp_path):
    group = pathlib.Path("/sys/fs/cgroup/memory") / f"assay-test-{os.getpid()}"
    limit = group / "memory.limit_in_bytes"
    try:
        group.mkdir()
        limit.write_text("60M")
    except OSError as why:
        need("cgroup", False, f"{group}: {why}")
    try:
        script = f"echo $$ > {group}/cgroup.procs; exec {program} run --precheck off -o out -- " \
                 "/usr/bin/python3 -c 'x = bytearray(200 << 20)'"
        got = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert got.returncode == 128 + signal.SIGKILL
        assert "The kernel killed 1 process of this control group for want of memory." in got.stderr
    finally:
        group.rmdir()


def test_recover_says_what_is_wrong(assay, tmp_path):
    got = assay("recover", "nowhere")
    assert got.status == 2
    assert got.stderr.startswith("assay recover: ") and "nowhere" in got.stderr
    (tmp_path / "empty").mkdir()
    got = assay("recover", "empty")
    assert got.status == 2
    assert got.stderr.count("\n") == 1
    assert not (tmp_path / "empty" / "run.json").exists()


def test_every_counter_is_in_one_hdf5_file(assay):
    h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "sleep 0.3")
    with h5py.File(got.run_dir / "timeline.h5") as f:
        rss = f["series"]["memory.rss"]
        assert rss.attrs["unit"] == "bytes"
        assert rss.attrs["source"] == "memory"
        assert len(rss["t"]) == len(rss["v"]) > 0
        assert max(rss["v"]) > 100_000
        assert list(rss["t"]) == sorted(rss["t"])
        assert {"cpu.user", "cpu.system", "memory.anon", "cpu.processes"} <= set(f["series"])


def test_no_secret_of_an_argument_reaches_the_results(assay):
    script = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; done"
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script, "--password=correct sec1ret battery",
                "--password", "my sec1ret phrase", "--token", "-sec1ret", "X-Auth-Token:sec1ret",
                '{"api_key": "sec1ret"}', "postgres://u:p@sec1ret@h/db")
    assert got.status == 0
    for text in (got.stderr, *(path.read_bytes().decode("latin-1") for path in got.run_dir.rglob("*")
                               if path.is_file())):
        assert "sec1ret" not in text
    run = got.run_json
    assert "--password=[masked] --password [masked] --token [masked]" in run["command"]
    shown = [process.get("command") or "" for process in run["processes"]["top"]]
    assert any("--password=[masked] --password [masked] --token [masked]" in command for command in shown)


def test_a_mark_with_a_time_to_come_does_not_swallow_later_ones(assay):
    script = ('echo "9000000000000000000 typo" >> "$ASSAY_MARKERS"; sleep 0.2; echo work >> "$ASSAY_MARKERS";'
              ' sleep 0.2; echo "$(date +%s%N) late" >> "$ASSAY_MARKERS"; sleep 0.1')
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", "sleep 0.1; " + script)
    assert [name for name, _ in phases(got)] == ["start", "typo", "work", "late"]
    assert all(phase["end_s"] - phase["start_s"] >= 0.05 for phase in got.run_json["phases"])


@pytest.mark.parametrize("how", [
    'echo two > "$ASSAY_MARKERS"',
    'rm "$ASSAY_MARKERS"; echo two >> "$ASSAY_MARKERS"',
    'sed -i "s/one/uno/" "$ASSAY_MARKERS"; echo two >> "$ASSAY_MARKERS"',
])
def test_marks_survive_what_is_done_to_their_file(assay, how):
    script = (f'sleep 0.1; echo one >> "$ASSAY_MARKERS"; sleep 0.2; {how}; sleep 0.2; '
              'echo three >> "$ASSAY_MARKERS"; sleep 0.1')
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script)
    names = [name for name, _ in phases(got)]
    assert [name for name in names if name != "uno"] == ["start", "one", "two", "three"]


def test_a_pipe_in_the_place_of_the_markers_file_is_not_waited_for(assay):
    script = 'echo one >> "$ASSAY_MARKERS"; sleep 0.2; rm "$ASSAY_MARKERS"; mkfifo "$ASSAY_MARKERS"; sleep 0.2'
    got = assay("run", *QUIET, "-o", "out", "--", "sh", "-c", script)
    assert got.status == 0
    assert phases(got)[-1][0] == "one"
