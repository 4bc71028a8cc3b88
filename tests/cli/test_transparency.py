"""The target must not notice: what it finds, what reaches it, what becomes of its output, with assay and without."""
import hashlib
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import time

import pytest

from need import need
from waiting import wait_for

QUIET = ("run", "-q", "--precheck", "off", "-o", "out")


@pytest.fixture
def described(program, targets, tmp_path):
    """described(arguments, **popen): what the describe program saw, started by itself and through assay."""

    def once(prefix, name, arguments, popen):
        path = tmp_path / name
        done = subprocess.run([*prefix, targets("describe"), path, *arguments], timeout=300,
                              **{"cwd": tmp_path, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                                 "stderr": subprocess.PIPE, **popen})
        assert done.returncode == 0, done
        assert not done.stdout and not done.stderr
        return [line for line in path.read_bytes().split(b"\n") if not line.startswith(b"environment <ASSAY_")]

    def both(arguments=(), **popen):
        cwd = popen.get("cwd", tmp_path)
        bare = once([], "bare", arguments, popen)
        return bare, once([program, *QUIET[:-1], os.path.join(cwd, "out"), "--"], "watched", arguments, popen)

    return both


def test_arguments_and_environment_are_the_callers(described):
    bare, watched = described(["", " ", "two words", "line\nbreak", "*", b"\xff\xfe", "--", "-o"],
                              env={"PATH": os.environ["PATH"], "EMPTY": "", "LINES_": "a\nb", b"BYTES": b"\xff"})
    assert bare == watched


def test_process_attributes_are_the_callers(described, tmp_path):
    (tmp_path / "below").mkdir()

    def prepare():
        os.umask(0o027)
        os.nice(3)
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    bare, watched = described(cwd=tmp_path / "below", preexec_fn=prepare)
    assert bare == watched


def test_signal_mask_dispositions_and_alarm_are_the_callers(described):
    def prepare():
        blocked = {signal.SIGINT, signal.SIGUSR1, signal.SIGRTMIN + 2, signal.SIGPIPE}
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for ignored in (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD, signal.SIGTSTP, signal.SIGRTMIN + 3):
            signal.signal(ignored, signal.SIG_IGN)
        signal.alarm(1000)

    bare, watched = described(preexec_fn=prepare, restore_signals=False)
    assert bare == watched
    assert b"alarm running" in watched


def test_open_descriptors_are_the_callers(described, tmp_path):
    (tmp_path / "file").write_bytes(bytes(100))

    def prepare():
        for fd, flags in ((3, os.O_RDONLY), (4, os.O_WRONLY | os.O_APPEND), (7, os.O_RDWR), (9, os.O_NONBLOCK)):
            os.dup2(os.open(tmp_path / "file", flags), fd, inheritable=True)
        os.lseek(7, 42, os.SEEK_SET)

    bare, watched = described(preexec_fn=prepare, close_fds=False)
    assert bare == watched
    assert any(line.startswith(b"fd 7 ") and b"offset 42" in line for line in watched)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
def test_closed_standard_descriptors_stay_closed(described, closed):
    bare, watched = described(preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert bare == watched
    assert not any(line.startswith(f"fd {fd} ".encode()) for line in watched for fd in closed)


def test_stdin_is_the_callers_own_file(program, tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    with open(tmp_path / "file", "rb", buffering=0) as file:
        file.seek(4)
        done = subprocess.run([program, *QUIET, "--", "head", "-c", "3"], stdin=file, stdout=subprocess.PIPE,
                              cwd=tmp_path)
        assert done.stdout == b"456"
        assert file.tell() == 7


def test_stdin_passes_from_a_pipe(assay):
    data = os.urandom(300_000)
    assert assay(*QUIET, "--", "cat", stdin=data).stdout_bytes == data


def test_other_ends_see_when_the_target_closes_its_descriptors(program, tmp_path):
    """Neither assay nor its helper may hold what the caller passed on."""
    read, write = os.pipe()
    script = f"exec 0<&- {write}>&-; until [ -e go ]; do sleep 0.01; done"
    process = subprocess.Popen([program, *QUIET, "--", "bash", "-c", script], stdin=subprocess.PIPE, pass_fds=[write],
                               cwd=tmp_path)
    os.close(write)
    watch = select.poll()
    watch.register(read, select.POLLIN)
    assert watch.poll(60_000) == [(read, select.POLLHUP)]
    watch = select.poll()
    watch.register(process.stdin, 0)
    assert watch.poll(60_000) == [(process.stdin.fileno(), select.POLLERR)]
    assert process.poll() is None
    (tmp_path / "go").touch()
    assert process.wait() == 0
    os.close(read)


def test_random_bytes_pass_on_both_streams(assay, tmp_path):
    out, err = os.urandom(1_000_003), os.urandom(700_001)
    (tmp_path / "a").write_bytes(out)
    (tmp_path / "b").write_bytes(err)
    got = assay(*QUIET, "--engine", "none", "--", "sh", "-c", "cat a & cat b >&2; wait")
    assert got.status == 0
    assert got.stdout_bytes == out
    assert got.stderr_bytes == err
    assert (got.run_dir / "stdout.log").read_bytes() == out
    assert (got.run_dir / "stderr.log").read_bytes() == err


def test_a_gigabyte_passes_unharmed(program, tmp_path):
    block = os.urandom(16 << 20)
    (tmp_path / "block").write_bytes(block)
    process = subprocess.Popen([program, *QUIET, "--engine", "none", "--", "sh", "-c",
                                "i=0; while [ $i -lt 64 ]; do cat block; i=$((i+1)); done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=tmp_path)
    got, kept, expected = hashlib.sha1(), hashlib.sha1(), hashlib.sha1()
    while data := process.stdout.read(1 << 20):
        got.update(data)
    assert process.wait() == 0
    for _ in range(64):
        expected.update(block)
    assert got.digest() == expected.digest()
    with open(tmp_path / "out" / "stdout.log", "rb") as log:
        while data := log.read(1 << 20):
            kept.update(data)
    assert kept.digest() == expected.digest()
    (tmp_path / "out" / "stdout.log").unlink()


def test_output_arrives_at_once(program, tmp_path):
    process = subprocess.Popen([program, *QUIET, "--", "sh", "-c", "printf a; until [ -e go ]; do sleep 0.01; done"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=tmp_path)
    assert os.read(process.stdout.fileno(), 10) == b"a"
    (tmp_path / "go").touch()
    assert process.communicate()[0] == b""
    assert process.returncode == 0


def test_a_caller_that_reads_only_stderr_for_a_while_gets_all_of_it(program, tmp_path):
    (tmp_path / "flood").write_bytes(bytes(range(256)) * 20_000)
    script = "cat flood & cat flood >&2; wait"
    process = subprocess.Popen([program, *QUIET, "--engine", "none", "--", "sh", "-c", script], cwd=tmp_path,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    flood = (tmp_path / "flood").read_bytes()
    assert process.stderr.read(len(flood)) == flood
    assert process.stdout.read() == flood
    assert process.wait() == 0


def test_a_non_blocking_stdout_gets_everything_and_keeps_its_flags(program, tmp_path):
    read, write = os.pipe()
    os.set_blocking(write, False)
    (tmp_path / "flood").write_bytes(os.urandom(3_000_000))
    process = subprocess.Popen([program, *QUIET, "--engine", "none", "--", "cat", "flood"], stdin=subprocess.DEVNULL,
                               stdout=write, cwd=tmp_path)
    time.sleep(0.3)  # the pipe fills up
    assert not os.get_blocking(write)
    os.close(write)
    with open(read, "rb") as pipe:
        assert pipe.read() == (tmp_path / "flood").read_bytes()
    assert process.wait() == 0


def test_a_file_that_both_streams_share_is_appended_to(program, tmp_path):
    with open(tmp_path / "log", "wb") as log:
        log.write(b"before\n")
        log.flush()
        done = subprocess.run([program, *QUIET, "--", "sh", "-c", "echo a; sleep 0.1; echo b >&2"],
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "log").read_bytes() == b"before\na\nb\n"


IN_TURN = "for i in 1 2 3; do echo o$i; echo e$i >&2; done"
TAKEN_IN_TURN = b"o1\ne1\no2\ne2\no3\ne3\n"


def run_in_shell(program, tmp_path, redirect, script=IN_TURN, **popen):
    """What a shell makes of `assay run ... -- sh -c SCRIPT REDIRECT`."""
    return subprocess.run(["sh", "-c", f'"$0" {" ".join(QUIET)} -- sh -c "$1" {redirect}', program, script],
                          cwd=tmp_path, timeout=300, **{"stdin": subprocess.DEVNULL, **popen})


@pytest.mark.parametrize("redirect, before", [("2>&1 | cat >log", b""), (">log 2>&1; echo after >>log", b""),
                                              (">>log 2>&1", b"before\n"), (">>log 2>>log", b"before\n"),
                                              ("3>log >&3 2>&3", b"")])
def test_the_order_of_both_streams_on_one_file_is_kept(program, tmp_path, redirect, before):
    (tmp_path / "log").write_bytes(before)
    assert run_in_shell(program, tmp_path, redirect).returncode == 0
    after = b"after\n" if "after" in redirect else b""
    assert (tmp_path / "log").read_bytes() == before + TAKEN_IN_TURN + after
    assert (tmp_path / "out" / "terminal.log").read_bytes() == TAKEN_IN_TURN
    assert not (tmp_path / "out" / "stdout.log").exists()
    assert not (tmp_path / "out" / "stderr.log").exists()


def test_one_offset_serves_those_before_and_after(program, tmp_path):
    script = f'(echo before; "$0" {" ".join(QUIET)} -- sh -c "$1"; echo after) >log 2>&1'
    done = subprocess.run(["sh", "-c", script, program, IN_TURN], stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "log").read_bytes() == b"before\n" + TAKEN_IN_TURN + b"after\n"


def test_the_order_is_kept_where_one_pipe_was_opened_twice(program, tmp_path):
    done = run_in_shell(program, tmp_path, ">/dev/stderr", stderr=subprocess.PIPE)
    assert done.returncode == 0
    assert done.stderr == TAKEN_IN_TURN


def test_the_order_of_both_streams_on_one_socket_is_kept(program, tmp_path):
    ours, theirs = socket.socketpair()
    with theirs:
        assert run_in_shell(program, tmp_path, "", stdout=theirs, stderr=theirs).returncode == 0
    with ours, ours.makefile("rb") as file:
        assert file.read() == TAKEN_IN_TURN


def test_with_dev_null_for_both_the_logs_stay_two(program, tmp_path):
    assert run_in_shell(program, tmp_path, ">/dev/null 2>&1").returncode == 0
    assert (tmp_path / "out" / "stdout.log").read_bytes() == b"o1\no2\no3\n"
    assert (tmp_path / "out" / "stderr.log").read_bytes() == b"e1\ne2\ne3\n"


def test_a_file_that_was_opened_twice_keeps_both_offsets(program, tmp_path):
    with open(tmp_path / "log", "wb", buffering=0) as out, open(tmp_path / "log", "r+b", buffering=0) as err:
        err.seek(20)
        assert run_in_shell(program, tmp_path, "", stdout=out, stderr=err).returncode == 0
        assert out.tell() == 9
        assert err.tell() == 29
    assert (tmp_path / "log").read_bytes() == b"o1\no2\no3\n" + bytes(11) + b"e1\ne2\ne3\n"
    assert (tmp_path / "out" / "stdout.log").exists() and (tmp_path / "out" / "stderr.log").exists()


def test_the_target_gets_sigpipe_when_the_reader_of_both_streams_leaves(program, tmp_path):
    script = f'"$0" {" ".join(QUIET)} -- sh -c "exec yes >&2" 2>&1 | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          cwd=tmp_path)
    assert done.stdout == b"y\n141\n"


def test_the_target_gets_sigpipe_when_the_reader_leaves(program, tmp_path):
    script = f'"$0" {" ".join(QUIET)} -- yes | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", script, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          cwd=tmp_path)
    assert done.stdout == b"y\n141\n"


def test_the_last_writer_keeps_the_callers_pipe_open(program, tmp_path):
    script = "(until [ -e go ]; do sleep 0.01; done; echo late) & echo early"
    process = subprocess.Popen([program, *QUIET, "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, cwd=tmp_path)
    assert process.wait() == 0
    assert os.read(process.stdout.fileno(), 100) == b"early\n"
    assert select.select([process.stdout], [], [], 0.05)[0] == []
    (tmp_path / "go").touch()
    assert process.stdout.read() == b"late\n"


def test_the_target_survives_the_death_of_assay(program, tmp_path):
    script = "echo early; until [ -e go ]; do sleep 0.01; done; echo late; echo err >&2; echo done > done"
    process = subprocess.Popen([program, *QUIET, "--", "sh", "-c", script], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert os.read(process.stdout.fileno(), 100) == b"early\n"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    (tmp_path / "go").touch()
    assert process.stdout.read() == b"late\n"
    assert process.stderr.read() == b"err\n"
    assert (tmp_path / "done").read_text() == "done\n"
    wait_for(lambda: (tmp_path / "out" / "stdout.log").read_text() == "early\nlate\n", "the end of the log")
    wait_for(lambda: (tmp_path / "out" / "stderr.log").read_text() == "err\n", "the end of the log")


def test_its_time_counts_as_that_of_a_child(program, tmp_path):
    """So that the shell's `time` in front of assay tells the target's time."""
    burn = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; times > times"
    process = subprocess.Popen([program, *QUIET, "--", "sh", "-c", burn], stdin=subprocess.DEVNULL, cwd=tmp_path)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    minutes, seconds = (tmp_path / "times").read_text().split()[0].rstrip("s").split("m")
    assert process.returncode == 0
    assert usage.ru_utime >= int(minutes) * 60 + float(seconds) > 0


def test_its_peak_memory_is_not_that_of_whoever_started_assay(program, tmp_path):
    """A fork hands down the high-water mark of the process that forks, up to the exec."""
    script = ("import subprocess, sys; held = bytearray(b'x') * (300 << 20); "
              "sys.exit(subprocess.run(sys.argv[1:], close_fds=False).returncode)")
    # A sanitizer's own pages stand in the copy of assay that becomes the command.
    need("plain-build", b"__asan_init" not in program.read_bytes(), "a sanitizer's pages would be counted")
    done = subprocess.run([sys.executable, "-c", script, program, *QUIET, "--", "true"], cwd=tmp_path)
    assert done.returncode == 0
    memory = json.loads((tmp_path / "out" / "run.json").read_text())["memory"]["host"]
    assert 0 < memory["rss_peak_mib"] < 8
