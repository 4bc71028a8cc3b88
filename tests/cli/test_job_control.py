"""Signals and terminals: each signal reaches the target once, whoever sends it and to whom, and the target has a
terminal where the caller has one."""
import os
import signal
import subprocess

import pytest

from terminal import Terminal
from waiting import wait_for

QUIET = ("run", "-q", "--precheck", "off", "-o", "out")
STOPPED = {"T"}


class Log:
    """What the signals program tells."""

    def __init__(self, path):
        self.path = path

    def lines(self):
        return self.path.read_text().splitlines() if self.path.exists() else []

    def ready(self):
        """Waits for the start; returns the pid."""
        wait_for(self.lines, "the start of the target")
        return int(self.lines()[0].split()[1])

    def signals(self):
        return [line for line in self.lines() if line.startswith("signal")]

    def expect(self, *signals):
        """Waits for these, in this order, and no others: `number` or `number kernel|process`."""
        wait_for(lambda: len(self.signals()) >= len(signals), signals)
        got = self.signals()
        assert len(got) == len(signals), got
        for line, want in zip(got, signals):
            assert line.startswith(f"signal {want}"), got


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


@pytest.fixture
def log(tmp_path):
    """Does not leave the target running when a test fails."""
    log = Log(tmp_path / "log")
    yield log
    for line in log.lines()[:1]:
        pid = int(line.split()[1])
        try:
            with open(f"/proc/{pid}/comm") as file:
                if file.read().startswith("target_signals"):
                    os.kill(pid, signal.SIGKILL)
        except OSError:  # it has ended, as it should
            pass


@pytest.fixture
def watched(program, targets, log, tmp_path):
    """The signals program under assay in a process group of its own, as a job of a shell; ends them."""
    process = subprocess.Popen([program, *QUIET, "--", targets("signals"), log.path], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, cwd=tmp_path, process_group=0)
    log.ready()
    yield process
    if process.poll() is None:
        process.send_signal(signal.SIGUSR2)
        assert process.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_assay_alone_reaches_the_target_once(watched, log, number):
    watched.send_signal(number)
    log.expect(f"{number:d} process")
    watched.send_signal(signal.SIGUSR2)
    assert watched.wait() == 0
    log.expect(f"{number:d} process", "12")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_to_the_group_reaches_the_target_once(watched, log, number):
    os.killpg(watched.pid, number)
    log.expect(f"{number:d} process")
    watched.send_signal(signal.SIGUSR2)
    assert watched.wait() == 0
    log.expect(f"{number:d} process", "12")


def has_pending(pid, number):
    with open(f"/proc/{pid}/status") as file:
        mask = next(line for line in file if line.startswith("ShdPnd")).split()[1]
    return int(mask, 16) >> (number - 1) & 1


def test_signals_to_the_group_and_to_assay_alternate(watched, log):
    expected = []
    for i in range(10):
        # Else the next would become one with it, as signals do.
        wait_for(lambda: not has_pending(watched.pid, signal.SIGTERM), "assay to take the signal")
        if i % 2:
            watched.terminate()
        else:
            os.killpg(watched.pid, signal.SIGTERM)
        expected.append("15 process")
        log.expect(*expected)


def test_a_signal_that_the_caller_ignores_still_reaches_a_target_that_does_not(program, targets, log, tmp_path):
    process = subprocess.Popen([program, *QUIET, "--", targets("signals"), log.path], stdin=subprocess.DEVNULL,
                               cwd=tmp_path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    log.ready()
    process.send_signal(signal.SIGHUP)
    log.expect("1 process")
    process.send_signal(signal.SIGUSR2)
    assert process.wait() == 0


def test_an_alarm_of_the_caller_reaches_the_target(program, targets, log, tmp_path):
    process = subprocess.Popen([program, *QUIET, "--", targets("signals"), log.path], stdin=subprocess.DEVNULL,
                               cwd=tmp_path, preexec_fn=lambda: signal.setitimer(signal.ITIMER_REAL, 0.5))
    log.expect("14 kernel")
    process.send_signal(signal.SIGUSR2)
    assert process.wait() == 0


def test_assay_stops_and_goes_on_with_the_target(watched, log):
    target = log.ready()
    os.kill(target, signal.SIGSTOP)
    wait_for(lambda: state_of(target) in STOPPED and state_of(watched.pid) in STOPPED, "both to stop")
    os.kill(target, signal.SIGCONT)
    wait_for(lambda: state_of(watched.pid) not in STOPPED, "assay to go on")
    log.expect("18 process")


def test_stop_and_continue_sent_to_assay_alone_act_on_the_target(watched, log):
    target = log.ready()
    watched.send_signal(signal.SIGTSTP)
    wait_for(lambda: state_of(target) in STOPPED and state_of(watched.pid) in STOPPED, "both to stop")
    watched.send_signal(signal.SIGCONT)
    wait_for(lambda: state_of(target) not in STOPPED, "the target to go on")
    log.expect("18 process")


@pytest.mark.parametrize("script", ["kill -STOP $$", "sleep 1000 & kill -STOP $$; wait",
                                    "trap 'kill -STOP $$' TERM; kill -STOP $$; kill -STOP $$"])
def test_the_timeout_ends_a_target_that_is_stopped(program, tmp_path, script):
    """Nobody wakes assay, which has stopped along with it; and nobody the target, which may stop itself again."""
    process = subprocess.Popen([program, *QUIET, "--timeout", "0.5", "--", "sh", "-c", script], cwd=tmp_path,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, process_group=0)
    try:
        assert process.wait(60) == 124
    finally:
        process.kill()


def test_keys_at_the_terminal_reach_the_target_once(program, targets, log, tmp_path):
    terminal = Terminal([program, *QUIET, "--", targets("signals"), log.path], tmp_path)
    target = log.ready()
    terminal.type(b"\x03")
    log.expect("2 kernel")
    terminal.type(b"\x1c")
    log.expect("2 kernel", "3 kernel")
    os.kill(target, signal.SIGUSR2)
    assert terminal.wait() == 0
    log.expect("2 kernel", "3 kernel", "12")


def test_a_shell_stops_the_job_and_brings_it_back(program, targets, log, tmp_path):
    terminal = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], tmp_path)
    terminal.type(f"{program} {' '.join(QUIET)} -- {targets('signals')} log\n".encode())
    target = log.ready()
    for _ in range(2):
        seen = len(terminal.output)
        terminal.type(b"\x1a")
        wait_for(lambda: b"Stopped" in terminal.output[seen:], "the shell to see the job stopped")
        assert state_of(target) in STOPPED
        count = len(log.signals())
        terminal.type(b"fg\n")
        wait_for(lambda: len(log.signals()) > count, "the job to go on")
    log.expect("18 process", "18 process")
    terminal.type(b"\x03")
    log.expect("18 process", "18 process", "2 kernel")
    os.kill(target, signal.SIGUSR2)
    terminal.type(b"exit 5\n")
    assert terminal.wait() == 5
    log.expect("18 process", "18 process", "2 kernel", "12")


def test_a_hangup_reaches_the_target_once(program, targets, log, tmp_path):
    """Assay leads the session here, so that the kernel sends the hangup to assay alone."""
    terminal = Terminal([program, *QUIET, "--", targets("signals"), log.path], tmp_path)
    target = log.ready()
    terminal.hang_up()
    wait_for(log.signals, "the hangup")
    os.kill(target, signal.SIGUSR2)
    os.waitpid(terminal.pid, 0)
    assert [line for line in log.signals() if line.startswith("signal 1 ")] == ["signal 1 process"]


def test_the_target_has_a_terminal_of_the_right_size_that_does_not_control_it(program, targets, tmp_path):
    script = (f"{targets('describe')} bare; {program} {' '.join(QUIET)} -- {targets('describe')} watched; "
              f"{program} run -q --precheck off -o out2 -- tty; "
              f"{program} run -q --precheck off -o out3 -- sh -c 'tty <&1'")
    terminal = Terminal(["/bin/sh", "-c", script], tmp_path)
    terminal.wait()

    def relevant(name):
        # That it is only for writing is a documented exception.
        return [line.replace(" flags 1 ", " flags 2 ") if line.startswith(("fd 1", "fd 2")) else line
                for line in (tmp_path / name).read_text().splitlines() if not line.startswith("environment <ASSAY_")]

    assert relevant("watched") == relevant("bare")
    assert any(line.startswith("fd 1 ") and "terminal 1" in line for line in relevant("watched"))
    stdin, stdout = terminal.output.decode().split()
    assert stdin.startswith("/dev/pts/") and stdout.startswith("/dev/pts/")
    assert stdin != stdout


def test_both_streams_on_one_terminal_share_one_log(program, tmp_path):
    script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done"
    terminal = Terminal([program, *QUIET, "--", "sh", "-c", script], tmp_path)
    assert terminal.wait() == 0
    mixed = b"".join(b"out %d\nerr %d\n" % (i, i) for i in (1, 2, 3))
    assert (tmp_path / "out" / "terminal.log").read_bytes() == mixed
    assert terminal.output == mixed.replace(b"\n", b"\r\n")
    assert not (tmp_path / "out" / "stdout.log").exists()


@pytest.mark.parametrize("redirect, is_tty", [("2>file", "out"), (">file", "err"), ("2>/dev/tty", "out err"),
                                              ("", "out err")])
def test_only_what_is_a_terminal_is_one_for_the_target(program, tmp_path, redirect, is_tty):
    test = "exec 3>&1; t=; [ -t 3 ] && t=out; [ -t 2 ] && t=\"$t err\"; echo $t > seen"
    terminal = Terminal(["/bin/sh", "-c", f'"$0" {" ".join(QUIET)} -- sh -c "$1" {redirect}', program, test], tmp_path)
    assert terminal.wait() == 0
    assert (tmp_path / "seen").read_text().split() == is_tty.split()


def test_bytes_pass_a_terminal_unchanged(program, tmp_path):
    data = bytes(range(256)) * 200
    (tmp_path / "bytes").write_bytes(data)
    script = f'stty raw; "$0" {" ".join(QUIET)} --engine none -- cat bytes'
    terminal = Terminal(["/bin/sh", "-c", script, program], tmp_path)
    assert terminal.wait() == 0
    assert terminal.output == data
    assert (tmp_path / "out" / "terminal.log").read_bytes() == data


def test_the_size_of_the_window_is_followed(program, targets, log, tmp_path):
    terminal = Terminal([program, *QUIET, "--", targets("signals"), log.path], tmp_path, rows=30, columns=90)
    target = log.ready()
    for rows, columns in ((40, 100), (25, 70)):
        terminal.resize(rows, columns)
        wait_for(lambda: log.lines()[-1] == f"size {rows} {columns}", "the new size")
    os.kill(target, signal.SIGUSR2)
    assert terminal.wait() == 0


def test_two_terminals_stay_two(program, tmp_path):
    other = Terminal(["/bin/sh", "-c", "tty > name; until [ -e go ]; do sleep 0.01; done"], tmp_path)
    name = wait_for(lambda: (tmp_path / "name").exists() and (tmp_path / "name").read_text().strip(), "its name")
    script = f'"$0" {" ".join(QUIET)} -- sh -c "echo out; echo err >&2" 2>{name}'
    terminal = Terminal(["/bin/sh", "-c", script, program], tmp_path)
    assert terminal.wait() == 0
    assert terminal.output == b"out\r\n"
    (tmp_path / "go").touch()
    assert other.wait() == 0
    assert other.output == b"err\r\n"
    assert (tmp_path / "out" / "stdout.log").read_bytes() == b"out\n"
    assert (tmp_path / "out" / "stderr.log").read_bytes() == b"err\n"


def test_with_summary_only_stdout_is_no_terminal_and_stays_off_it(program, tmp_path):
    script = "[ -t 1 ] || echo out; [ -t 2 ] && echo err >&2"
    terminal = Terminal([program, *QUIET, "--summary-only", "--", "sh", "-c", script], tmp_path)
    assert terminal.wait() == 0
    assert terminal.output == b"err\r\n"
    assert (tmp_path / "out" / "stdout.log").read_bytes() == b"out\n"
