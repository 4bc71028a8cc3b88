"""assay spy where something is odd: pids, namespaces, terminals, files."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from need import need
from terminal import Terminal
from waiting import wait_for


@pytest.fixture
def in_pid_namespace(program, assay):
    """in_pid_namespace(LINE): a shell line in a pid namespace, whose $0 is the program."""
    unshare = shutil.which("unshare")
    need("pidns", unshare, "unshare is not installed")

    def run(line, *options):
        words = [unshare, *([] if os.geteuid() == 0 else ["-r"]), "-pf", *options, "sh", "-c"]
        tried = subprocess.run([*words, "true"], capture_output=True, text=True)
        need("pidns", tried.returncode == 0, f"no pid namespace can be made: {tried.stderr.strip()}")
        return assay(*words[1:], line, program, executable=unshare)

    return run


def test_a_proc_of_another_pid_namespace_is_not_read(in_pid_namespace):
    error = ("/proc is that of another pid namespace, where the pid is another process's; mount one for this namespace "
             "(unshare --mount-proc)")
    got = in_pid_namespace('"$0" spy --until 0.1 1')
    assert (got.status, got.stdout, got.stderr) == (2, "", f"assay spy: {error}\n")
    got = in_pid_namespace('"$0" spy --json -- sleep 0.1')
    figures = json.loads(got.stdout)
    assert figures["warnings"] == [error] and "rss" not in figures


def test_process_1_can_be_watched(in_pid_namespace):
    got = in_pid_namespace('"$0" spy --json --until 0.1 1', "--mount-proc")
    assert got.status == 0, got
    assert json.loads(got.stdout)["rss"]["n"] > 1


@pytest.mark.parametrize("delay", ("0.01", "0.3"))
def test_a_pid_that_is_used_again_is_another_process(in_pid_namespace, delay):
    got = in_pid_namespace(f"""
        sleep 600 & pid=$!
        "$0" spy --delay {delay} --json=f.json -q $pid & spy=$!
        for i in $(seq 1000); do
            [ "$(cat /proc/$spy/comm)" = assay ] && grep -q 'SigBlk:.*4[0-9a-f]*$' /proc/$spy/status && break
            sleep 0.01
        done
        sleep 0.1; kill -9 $pid; wait $pid
        echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid || exit 9
        sleep 600 & test $! = $pid || exit 9
        wait $spy && test -d /proc/$pid && kill -9 $pid
        """, "--mount-proc")
    need("pid choice", got.status != 9, "the next pid cannot be chosen")
    assert got.status == 0, got
    figures = json.loads((got.cwd / "f.json").read_text())
    assert figures["ended"] == "process" and figures["rss"]["n"] >= 1


def test_a_closed_or_full_standard_output_is_told(program, sleeper, tmp_path):
    for output, trouble in ((">&-", "Bad file descriptor"), ("> /dev/full", "No space left on device")):
        got = subprocess.run(["sh", "-c", f'exec "$0" spy --until 0.1 "$1" {output}', program, str(sleeper.pid)],
                             cwd=tmp_path, capture_output=True, text=True)
        assert (got.returncode, got.stderr) == (3, f"assay: the output cannot be written: {trouble}\n")


def test_a_pipe_can_be_a_file(program, sleeper, tmp_path):
    for option, begins in (("--csv", "t_s,rss,"), ("--json", "{\n"), ("--plot", None)):
        path = "/dev/stdout" if begins else "f.svg"
        got = subprocess.run([program, "spy", "-q", "--until", "0.1", f"{option}={path}", str(sleeper.pid)],
                             cwd=tmp_path, capture_output=True, text=True)
        assert (got.returncode, got.stderr) == (0, "")
        assert got.stdout.startswith(begins) if begins else (tmp_path / path).stat().st_size > 0


@pytest.mark.parametrize("option", ("--csv", "--plot", "--json"))
def test_what_cannot_be_written_is_told_before_a_command_runs(assay, tmp_path, option):
    (tmp_path / "folder.svg").mkdir()
    for path, trouble in (("none/f.svg", "No such file or directory"), ("folder.svg", "Is a directory")):
        got = assay("spy", f"{option}={path}", "--", "touch", "ran")
        assert (got.status, got.stderr) == (3, f"assay spy: {option}: {path}: {trouble}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


@pytest.mark.parametrize("columns", (1, 3, 12, 30))
def test_the_live_line_fits_a_narrow_terminal(program, tmp_path, sleeper, columns):
    terminal = Terminal([program, "spy", "--until", "0.6", str(sleeper.pid)], tmp_path, columns=columns)
    assert terminal.wait() == 0
    shown = re.findall(rb"\r\x1b\[K([^\r\x1b]*)", terminal.output)[:-1]
    assert len(shown) >= 2
    assert max(map(len, shown)) <= max(columns - 1, 3)


def test_ctrl_c_clears_the_live_line_for_the_summary(program, tmp_path, sleeper):
    terminal = Terminal([program, "spy", str(sleeper.pid)], tmp_path)
    wait_for(lambda: b"rss " in terminal.output, "the live line")
    terminal.type(b"\x03")
    assert terminal.wait() == 0
    assert re.search(rb"\r\x1b\[K(\x1b\[1m)?sleep", terminal.output)
    assert sleeper.poll() is None


def state_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("command", (False, True))
def test_ctrl_z_stops_the_watch_and_it_goes_on(program, tmp_path, sleeper, command):
    words = ["--", "sleep", "1"] if command else [str(sleeper.pid)]
    line = f"set -m; '{program}' spy --json=f.json {' '.join(words)}; echo stopped; sleep 0.3; fg"
    terminal = Terminal(["/bin/sh", "-c", line], tmp_path)
    if command:
        time.sleep(0.3)  # it shows nothing by which one could see that it runs
    else:
        wait_for(lambda: b"rss " in terminal.output, "the live line")
    terminal.type(b"\x1a")
    wait_for(lambda: b"stopped" in terminal.output, "the stop")
    assert state_of(sleeper.pid) == "S"
    if not command:
        before = len(terminal.output)
        wait_for(lambda: b"rss " in terminal.output[before:], "the live line again")
        terminal.type(b"\x03")
    assert terminal.wait() == 0, terminal.output
    figures = json.loads((tmp_path / "f.json").read_text())
    assert figures["rss"]["n"] > 2
    assert command or figures["late"] >= 1  # a command's stop is a signal to assay, which begins anew after it


def test_a_pids_first_thread_may_end(assay, tmp_path):
    (tmp_path / "t.py").write_text(
        "import ctypes, threading, time\n"
        "def work():\n"
        "    time.sleep(0.2); block = bytearray(100 << 20); time.sleep(0.3); import os; os._exit(0)\n"
        "threading.Thread(target=work).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)\n")  # exit, of the calling thread
    need("x86", os.uname().machine == "x86_64", "system calls have other numbers")
    got = assay("spy", "--json", "--", sys.executable, "t.py")
    figures = json.loads(got.stdout)
    assert figures["rss"]["peak"] > 100 << 20
    assert figures["swap"]["n"] > 3  # it comes with the mark
    assert figures["warnings"] == []
