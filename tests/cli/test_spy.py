"""assay spy: what a process is said to have used is what it used, and how well that is known."""
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

import pytest

from conftest import environment
from need import need
from terminal import Terminal
from waiting import wait_for

MIB = 1 << 20
RESOURCES = ("rss", "anon", "file", "swap")


def available_bytes():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))


def is_sanitized(program):
    return b"__asan_init" in program.read_bytes()


@pytest.fixture(name="spy")
def spy_command(assay):
    """spy("--json", PID): `assay spy` to its end; words may be numbers."""
    return lambda *args, **popen: assay("spy", *map(str, args), **popen)


@pytest.fixture
def start(program, tmp_path):
    """start("--json", PID): a spy that is left running; ended at the end of the test."""
    started = []

    def run(*args, **popen):
        process = subprocess.Popen([str(program), "spy", *map(str, args)], cwd=tmp_path, env=environment(None),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def figures_of(spy, *args, **keywords):
    got = spy("--json=figures.json", *args, **keywords)
    assert got.status == 0, got
    return json.loads((got.cwd / "figures.json").read_text())


def is_within(value, truth, share=0.02):
    return abs(value - truth) <= share * truth


def tells_the_truth(figures, truth):
    """Within 2%, or marked as a bound that is one."""
    peak = figures["peak"]
    if peak["exact"]:
        return is_within(peak["bytes"], truth)
    return peak["bytes"] <= 1.02 * truth and peak.get("above", truth) >= 0.98 * truth


@pytest.mark.parametrize("ms", (5, 50, 500))
@pytest.mark.parametrize("mib", (10, 400, 4000))
def test_a_peak_is_found_however_short_it_is(spy, targets, program, mib, ms):
    need("memory", available_bytes() > 2 * mib * MIB, f"the target touches {mib} MiB")
    figures = figures_of(spy, "--", targets("touch_memory"), mib, ms)
    assert figures["peak"]["exact"]
    own = figures["peak"]["bytes"] - mib * MIB  # what the program needs besides, and a sanitizer
    assert 0 <= own < (8 if is_sanitized(program) else 3) * MIB + 0.02 * mib * MIB


def test_a_peak_between_two_readings_is_told_by_the_high_water_mark(spy, targets):
    figures = figures_of(spy, "--delay", "60", "--", targets("touch_memory"), 300, 50)
    assert figures["peak"]["from"] == "high-water mark"
    assert figures["peak"]["exact"]
    assert is_within(figures["peak"]["bytes"], 300 * MIB)
    assert figures.get("rss", {"peak": 0})["peak"] < 100 * MIB
    assert figures["high_water"]["end"] >= 300 * MIB


def test_the_summary_says_which_number_comes_from_where(spy, targets):
    got = spy("--delay", "60", "--", targets("touch_memory"), 300, 50)
    assert re.search(r"peak 30\d MiB, from the kernel's high-water mark", got.stderr), got


def test_a_child_of_a_shell_is_seen(spy, targets):
    figures = figures_of(spy, "--", "sh", "-c", f"{targets('touch_memory')} 200 200; true")
    assert figures["tree"]
    assert figures["processes"] == 2
    assert tells_the_truth(figures, 201 * MIB)
    assert is_within(figures["rss"]["peak"], 202 * MIB)


def test_a_short_child_between_two_readings_is_a_bound(spy, targets):
    figures = figures_of(spy, "--delay", "60", "--", "sh", "-c", f"sleep 0.1; {targets('touch_memory')} 200 5; true")
    assert not figures["peak"]["exact"]
    assert figures["peak"]["bytes"] >= 200 * MIB


def test_without_the_tree_only_the_command_itself_counts(spy, targets):
    figures = figures_of(spy, "--no-tree", "--", "sh", "-c", f"{targets('touch_memory')} 200 200; true")
    assert not figures["tree"]
    assert figures["rss"]["peak"] < 50 * MIB


def test_ten_processes_that_share_memory_are_many_rss_and_one_pss(spy, targets):
    need("memory", available_bytes() > 3 << 30, "the target touches 1 GiB")
    figures = figures_of(spy, "--pss", "--", targets("spy_share"), 1024, 9, 1500)
    assert figures["processes"] == 10
    assert is_within(figures["rss"]["peak"], 10 << 30, 0.03)
    # Where a reading came while they grew, and was too dear to be repeated, that is said.
    told = any("so its largest value is not known" in text for text in figures["warnings"])
    assert told or is_within(figures["pss"]["peak"], 1 << 30, 0.05)


def test_memory_that_ten_processes_share_at_rest_is_counted_once_in_the_pss(spy, targets):
    with subprocess.Popen([targets("spy_share"), "128", "9", "3000"], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        figures = figures_of(spy, "--pss", "--tree", "--until", "0.2", process.pid)
    assert figures["processes"] == 10
    assert is_within(figures["rss"]["peak"], 10 * 128 * MIB, 0.1)
    # A sanitizer gives each of them some of its own.
    assert 128 * MIB <= figures["pss"]["begin"] < 192 * MIB
    assert not any("largest value" in text for text in figures["warnings"])


def test_pss_that_was_not_read_at_the_largest_rss_is_said_to_be_unknown(spy):
    # The first reading of the PSS, of 1 GiB, forbids the next for a hundred times as long; then there is twice as much.
    need("memory", available_bytes() > 4 << 30, "the target touches 2 GiB")
    program = ("import mmap, sys, time\n"
               "def touch():\n"
               "    m = mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); m.madvise(15)\n"
               "    for i in range(0, 1 << 30, 4096): m[i] = 1\n"
               "    return m\n"
               "kept = [touch()]; print('ready', flush=True); sys.stdin.readline()\n"
               "kept.append(touch()); kept.clear(); time.sleep(60)")
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdin.write(b"\n")
        process.stdin.flush()
        figures = figures_of(spy, "--pss", "--until", "1.5", process.pid)
        process.kill()
    known = figures["pss"]["peak"] >= figures["rss"]["peak"] / 1.03
    assert known != any("so its largest value is not known" in text for text in figures["warnings"])


def test_two_thousand_mappings_are_one_sum(spy, targets):
    figures = figures_of(spy, "--", targets("spy_mappings"), 2000, 64, 300)
    assert is_within(figures["anon"]["peak"], 2000 * 64 << 10)
    assert tells_the_truth(figures, 2000 * 64 << 10)


def test_three_hundred_children_are_one_sum(spy, targets):
    figures = figures_of(spy, "--", targets("spy_children"), 300, 1, 1000)
    assert figures["processes"] == 301
    # Of each child its own MiB, and the pages of its stack and data that it has written to.
    assert 300 * MIB <= figures["anon"]["peak"] <= 300 * MIB * 1.15
    assert not figures["peak"]["exact"]


def test_anonymous_memory_and_that_of_files_are_apart(spy, tmp_path):
    (tmp_path / "data").write_bytes(b"x" * (60 * MIB))
    program = ("import mmap, time\n"
               "f = open('data', 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
               "n = sum(m[i] for i in range(0, len(m), 4096)); time.sleep(0.2)\n")
    figures = figures_of(spy, "--", sys.executable, "-c", program)
    assert 60 * MIB <= figures["file"]["peak"] < 90 * MIB
    assert figures["anon"]["peak"] < 40 * MIB
    assert is_within(figures["rss"]["peak"], figures["anon"]["peak"] + figures["file"]["peak"], 0.1)


def test_a_process_that_is_watched_lives_on(spy, sleeper):
    got = spy("--until", "0.2", sleeper.pid)
    assert got.status == 0, got
    assert got.stdout.startswith(f"sleep (pid {sleeper.pid}): ")
    assert "; it lives on\n" in got.stdout
    assert got.stderr == ""
    assert sleeper.poll() is None


def test_json_alone_is_on_standard_output(spy, sleeper):
    got = spy("--until", "0.2", "--json", sleeper.pid)
    figures = json.loads(got.stdout)
    assert figures["pid"] == sleeper.pid
    assert figures["ended"] == "watch"
    for name in RESOURCES:
        assert set(figures[name]) == {"begin", "end", "peak", "peak_at", "average", "n"}
        assert min(figures[name]["begin"], figures[name]["end"]) <= figures[name]["average"] <= figures[name]["peak"]
    assert figures["gpus"] == []
    assert 0.2 <= figures["seconds"]
    assert "pss" not in figures


def test_a_reading_a_millisecond_works(spy, sleeper):
    figures = json.loads(spy("--delay", "0.001", "--until", "0.5", "--json", sleeper.pid).stdout)
    assert figures["rss"]["n"] > 100


def test_ctrl_c_ends_the_watch_with_a_summary(start, sleeper):
    spy = start(sleeper.pid)
    wait_for(lambda: blocks_signals(spy.pid), "the watch to begin")
    spy.send_signal(signal.SIGINT)
    out, err = spy.communicate(timeout=60)
    assert spy.returncode == 0
    assert b"peak" in out and err == b""
    assert sleeper.poll() is None


def test_a_term_ends_the_watch_with_what_there_is_and_is_told_by_the_status(start, sleeper, tmp_path):
    spy = start("--csv", "out.csv", "--plot", "out.svg", "--json", sleeper.pid)
    wait_for(lambda: blocks_signals(spy.pid), "the watch to begin")
    spy.send_signal(signal.SIGTERM)
    out, _ = spy.communicate(timeout=60)
    assert spy.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["ended"] == "watch"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.svg"]


def blocks_signals(pid):
    with open(f"/proc/{pid}/status") as lines:
        blocked = next(int(line.split()[1], 16) for line in lines if line.startswith("SigBlk:"))
    return blocked & 1 << (signal.SIGTERM - 1)


def test_the_watch_ends_with_its_process(start):
    process = subprocess.Popen(["sleep", "600"])
    spy = start("--json", process.pid)
    wait_for(lambda: blocks_signals(spy.pid), "the watch to begin")
    time.sleep(0.1)  # for a reading
    process.kill()
    process.wait()
    out, _ = spy.communicate(timeout=60)
    assert spy.returncode == 0
    assert json.loads(out)["ended"] == "process"


def test_a_zombie_ends_the_watch(start):
    process = subprocess.Popen(["sleep", "600"])
    spy = start("--json", process.pid)
    wait_for(lambda: blocks_signals(spy.pid), "the watch to begin")
    time.sleep(0.1)
    process.kill()
    out, _ = spy.communicate(timeout=60)  # nobody has waited for it yet
    process.wait()
    assert json.loads(out)["ended"] == "process"


def test_a_process_that_execs_is_watched_on(spy, targets):
    figures = figures_of(spy, "--", "sh", "-c", f"sleep 0.2; exec {targets('touch_memory')} 150 300")
    assert is_within(figures["rss"]["peak"], 151 * MIB)
    assert figures["peak"]["bytes"] >= figures["rss"]["peak"]


@pytest.mark.parametrize("words, error", [
    (["99999999"], "there is no process 99999999"),
    (["2"], "process 2 is a thread of the kernel, which has no memory of its own"),
    (["0"], "'0' is no process id; to start a command: assay spy -- COMMAND"),
    (["-1"], "unknown option '-1'"),
    (["sleep", "1"], "'sleep' is no process id; to start a command: assay spy -- COMMAND"),
    (["1", "2"], "one process at a time; usage: assay spy [options] PID, or assay spy [options] -- COMMAND [ARG...]"),
    ([], "no process given; usage: assay spy [options] PID, or assay spy [options] -- COMMAND [ARG...]"),
    (["--"], "no command given; usage: assay spy [options] PID, or assay spy [options] -- COMMAND [ARG...]"),
    (["--plot", "x.gif", "1"], "option '--plot': 'x.gif' has no extension that tells the format (.svg, .pdf, .png)"),
    (["--plot", "x.svg", "--csv", "x.svg", "1"], "options '--plot' and '--csv' name the same file, x.svg"),
    (["--no-tree", "1"], "option '--no-tree' is for a command: assay spy -- COMMAND"),
    (["--tree", "--no-tree", "--", "true"], "options '--tree' and '--no-tree' exclude each other"),
])
def test_what_cannot_be_watched_is_one_line_and_status_2(spy, words, error):
    if words == ["2"]:
        need("kernel threads", os.path.exists("/proc/2/stat") and " (kthreadd) " in open("/proc/2/stat").read(),
             "process 2 is not the kernel's here")
    got = spy(*words)
    assert got.status == 2
    assert got.stdout == ""
    assert got.stderr.startswith(f"assay spy: {error}"), got
    assert got.stderr.count("\n") == 1


def test_a_process_that_has_ended_already_is_named_as_such(spy):
    process = subprocess.Popen(["true"])
    wait_for(lambda: " Z " in open(f"/proc/{process.pid}/stat").read(), "the end of a process")
    got = spy(process.pid)
    process.wait()
    assert got.status == 2
    assert "has ended already" in got.stderr


def test_another_users_process_can_be_watched(program):
    need("root", os.geteuid() == 0, "to become another user")
    with tempfile.TemporaryDirectory() as folder:  # where the build is, the other user may not go
        os.chmod(folder, 0o755)
        copy = shutil.copy(program, folder)
        got = subprocess.run([copy, "spy", "--pss", "--until", "0.2", "--json", str(os.getpid())], user=65534,
                             cwd="/", env=environment(None), capture_output=True, text=True, check=True)
    figures = json.loads(got.stdout)
    assert figures["rss"]["n"] > 1
    assert "pss" not in figures
    assert any("pss" in text for text in figures["warnings"]), figures["warnings"]


@pytest.mark.parametrize("line, status", [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)])
def test_the_status_is_the_commands(spy, line, status):
    got = spy("--", "sh", "-c", line)
    assert got.status == status
    assert got.stdout == ""
    assert spy("--exit-zero", "--", "sh", "-c", line).status == 0


def test_a_command_that_cannot_be_started_has_the_shells_status(spy, tmp_path):
    got = spy("--", "./nothing")
    assert (got.status, got.stderr) == (127, "assay spy: ./nothing: command not found\n")
    got = spy("--csv", "out.csv", "--", "no-such-command")
    assert (got.status, got.stderr) == (127, "assay spy: no-such-command: command not found\n")
    assert list(tmp_path.iterdir()) == []


def test_a_command_has_the_callers_input_and_output(spy):
    got = spy("-q", "--", "cat", stdin="through\n")
    assert (got.status, got.stdout, got.stderr) == (0, "through\n", "")


def test_a_command_that_ends_at_once_has_a_peak(spy):
    figures = figures_of(spy, "--delay", "1", "--", "true")
    assert figures["peak"]["bytes"] > 0
    assert figures["status"] == 0


def test_descendants_that_outlive_the_command_end_nothing(spy):
    got = spy("-q", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
    assert got.status == 0
    os.kill(int(got.stdout), signal.SIGKILL)  # it fails where there is none any more


def test_until_ends_the_watch_of_a_command_and_not_the_command(spy):
    figures = figures_of(spy, "--until", "0.1", "--", "sh", "-c", "sleep 0.5; exit 0")
    assert figures["ended"] == "watch"
    assert figures["seconds"] < 0.5
    assert figures["status"] == 0


def test_a_signal_to_assay_reaches_the_command(start):
    spy = start("--json", "--", "sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    assert spy.stdout.readline() == b"ready\n"
    spy.send_signal(signal.SIGTERM)
    out, _ = spy.communicate(timeout=60)
    assert spy.returncode == 5
    assert out.startswith(b"got\n")
    assert json.loads(out[4:])["status"] == 5


def test_ctrl_c_at_the_terminal_ends_the_command_and_the_summary_is_there(program, tmp_path):
    terminal = Terminal([program, "spy", "--", "sh", "-c", "echo ready; exec sleep 600"], tmp_path)
    wait_for(lambda: b"ready" in terminal.output, "the command")
    terminal.type(b"\x03")
    assert terminal.wait() == -signal.SIGINT
    assert b"peak" in terminal.output


def test_a_terminal_shows_what_is_used_now(program, tmp_path, sleeper):
    terminal = Terminal([program, "spy", "--until", "1", str(sleeper.pid)], tmp_path)
    assert terminal.wait() == 0
    lines = re.findall(rb"\r\x1b\[K([^\r]*)", terminal.output)
    assert len([line for line in lines if b"rss " in line]) >= 3, terminal.output
    assert len(max(lines[:-1], key=len)) < 80
    assert re.match(rb"(\x1b\[1m)?sleep", lines[-1])  # the summary stands where the line was, in bold where TERM can


def test_a_command_has_the_terminal_to_itself_unless_asked(program, tmp_path):
    for options, shown in ([], False), (["--live"], True):
        terminal = Terminal([program, "spy", *options, "--", "sleep", "0.6"], tmp_path)
        assert terminal.wait() == 0
        assert (b"\x1b[K" in terminal.output) == shown


def test_the_csv_file_has_every_reading(spy, sleeper, tmp_path):
    figures = json.loads(spy("--until", "0.5", "--csv", "out.csv", "--json", sleeper.pid).stdout)
    with open(tmp_path / "out.csv") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["t_s", "rss", "anon", "file", "swap", "pss", "processes"]
    for name in RESOURCES:
        values = [int(row[name]) for row in rows if row[name]]
        assert len(values) == figures[name]["n"]
        assert (values[0], values[-1], max(values)) == tuple(figures[name][key] for key in ("begin", "end", "peak"))
        assert sum(values) / len(values) == pytest.approx(figures[name]["average"])
    times = [float(row["t_s"]) for row in rows]
    assert times == sorted(times) and times[0] == 0
    assert {row["pss"] for row in rows} == {""}


def test_a_full_disk_leaves_the_old_file_and_is_told(spy, program, sleeper, tmp_path):
    need("/dev/full", os.path.exists("/dev/full"), "it stands for a full disk")
    for option in ("--csv", "--json"):
        os.symlink("/dev/full", tmp_path / "full")
        got = spy("-q", "--until", "0.1", option + "=full", sleeper.pid)
        os.unlink(tmp_path / "full")
        assert got.status == 3
        assert re.fullmatch(rf"assay spy: {option}: .*full: .*No space left on device\n", got.stderr), got
    (tmp_path / "old.csv").write_text("old\n")
    limited = ("import resource, os, sys, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
               "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)); os.execv(sys.argv[1], sys.argv[1:])")
    got = subprocess.run([sys.executable, "-c", limited, str(program), "spy", "-q", "--until", "0.2", "--csv",
                          "old.csv", str(sleeper.pid)], cwd=tmp_path, capture_output=True, text=True)
    assert got.returncode == 3, got
    assert (tmp_path / "old.csv").read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.csv"]


def test_a_folder_that_is_not_there_is_told_before_the_watch(spy, sleeper):
    got = spy("--csv", "none/out.csv", sleeper.pid)
    assert (got.status, got.stderr) == (3, "assay spy: --csv: none/out.csv: No such file or directory\n")
    got = spy("--csv", "none/out.csv", "--", "touch", "ran")
    assert got.status == 3
    assert not (got.cwd / "ran").exists()


@pytest.mark.parametrize("name, begins", [("m.svg", b"<?xml"), ("m.pdf", b"%PDF-"), ("m.png", b"\x89PNG\r\n")])
def test_the_figure_has_the_format_of_its_name(spy, targets, name, begins):
    got = spy("-q", "--plot", name, "--", targets("touch_memory"), 50, 100)
    assert got.status == 0, got
    text = (got.cwd / name).read_bytes()
    assert text.startswith(begins)
    if name == "m.svg":
        xml.dom.minidom.parseString(text)


def test_a_closed_input_is_no_trouble(spy, sleeper, program, tmp_path):
    got = subprocess.run(["sh", "-c", f"exec {program} spy --until 0.1 --json {sleeper.pid} <&-"], cwd=tmp_path,
                         capture_output=True)
    assert got.returncode == 0
    assert json.loads(got.stdout)["rss"]["n"] > 0
    got = subprocess.run(["sh", "-c", f"exec {program} spy -q -- sh -c 'test ! -e /proc/self/fd/0' <&-"], cwd=tmp_path,
                         capture_output=True)
    assert got.returncode == 0, got


def test_gpus_that_are_not_there_are_told(spy, sleeper):
    got = spy("--gpu", "--until", "0.1", sleeper.pid)
    need("no GPU", got.status != 0, "there is one")
    assert got.status == 2
    assert got.stderr.startswith("assay spy: ") and got.stderr.count("\n") == 1
    got = spy("--gpu", "--json=f.json", "--", "sleep", "0.1")
    assert got.status == 0
    figures = json.loads((got.cwd / "f.json").read_text())
    assert figures["rss"]["n"] > 0
    assert any("GPU" in text for text in figures["warnings"])
