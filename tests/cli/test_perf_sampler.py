"""--sampler perf: what it samples that the preload recorder cannot, how much, and what it says where it may not."""
import ctypes
import json
import os
import shutil
import struct
import subprocess

import pytest

from need import need

SECCOMP_ERRNO = 0x00050000
SECCOMP_ALLOW = 0x7fff0000
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}


def forbid_perf():
    """In a new process, before its exec: perf_event_open fails with EPERM, as in most containers."""
    number = PERF_EVENT_OPEN[os.uname().machine]
    rules = b"".join(struct.pack("HBBI", *rule) for rule in [
        (0x20, 0, 0, 0),                  # load the number of the call
        (0x15, 0, 1, number),             # is it this one?
        (0x06, 0, 0, SECCOMP_ERRNO | 1),  # EPERM
        (0x06, 0, 0, SECCOMP_ALLOW),
    ])
    text = ctypes.create_string_buffer(rules)
    program = struct.pack("HxxxxxxQ", len(rules) // 8, ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, ctypes.create_string_buffer(program), 0, 0) != 0:
        os._exit(99)


@pytest.fixture
def perf(assay, targets):
    """perf("CMD", ...): the profile in run.json of that command, sampled by perf."""
    probe = assay("run", "-q", "--cpu-profile", "--sampler", "perf", "-o", "probe", "--", "true")
    need("perf", probe.status == 0, probe.stderr.strip())

    def profile(*command, hz=499, **options):
        got = assay("run", "-q", f"--cpu-profile={hz}", "--sampler", "perf", "-o", "perf", "--", *command, **options)
        assert got.status == 0, got
        return got.run_json["profile"]

    return profile


def near(profile):
    """Within 3%, and what chance adds where the CPUs are shared: then whose turn it is at a tick is drawn."""
    n = profile["cpu_consumed_s"] / profile["period_s"]
    return abs(profile["samples"] - n) < 0.03 * n + 2 * n ** 0.5


def names(profile, kind="inclusive"):
    return {row["name"] for group in profile["groups"].values() for row in group[kind]}


def of_preload(assay, *command):
    got = assay("run", "-q", "--cpu-profile", "-o", "preload", "--", *command)
    assert got.status == 0, got
    return got.run_json["profile"]


def test_five_cpu_seconds_of_two_threads_are_five_seconds_of_samples(perf, targets):
    got = perf(targets("spin"), "2", "2.5")
    assert got["recorder"] == "perf"
    assert got["dropped"] == 0
    assert near(got)
    assert got["samples"] * got["period_s"] == pytest.approx(got["cpu_sampled_s"], rel=0.001)
    assert sum(group["thread_count"] for group in got["groups"].values()) == 2
    assert got["unsampled"] == []


def test_stacks_reach_the_start(perf, targets):
    got = perf(targets("spin"), "2", "1")
    for group in got["groups"].values():
        assert group["complete"] >= 0.98
    assert "main" in names(got)


def test_a_static_program_is_sampled_where_the_preload_recorder_names_it(assay, perf, targets):
    try:
        static = targets("perf_static")
    except AssertionError:
        need("static libc", False, "no static program could be linked here")
    other = of_preload(assay, static)
    assert other["samples"] == 0
    assert "static" in other["unsampled"][0]["reason"]
    got = perf(static)
    assert near(got)
    assert {"main", "by_value"} <= names(got)
    assert got["unsampled"] == []


def test_a_cleared_environment_is_sampled_where_the_preload_recorder_names_it(assay, perf, targets):
    command = ["env", "-i", targets("spin"), "1", "1"]
    other = of_preload(assay, *command)
    assert "environment" in other["unsampled"][0]["reason"]
    got = perf(*command)
    assert near(got)


def test_a_go_program_is_sampled_with_its_names(perf, tmp_path):
    need("go", shutil.which("go"), "no go in PATH")
    (tmp_path / "burn.go").write_text("""package main

import "time"

//go:noinline
func burn(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s = s*31 + i
	}
	return s
}

func main() {
	x := 0
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		x += burn(1000000)
	}
	println(x)
}
""")
    subprocess.run(["go", "build", "-o", "burn", "burn.go"], cwd=tmp_path, check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOCACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)})
    got = perf("./burn", cwd=tmp_path)
    rows = [row for group in got["groups"].values() for row in group["self"]]
    assert max(rows, key=lambda row: row["share"])["name"] == "main.burn"
    # Without unwind tables a leaf that makes no frame of its own hides its caller, main.main.
    assert "runtime.main" in names(got)


def test_a_shell_and_what_it_starts_are_all_followed(perf, targets):
    spin = targets("spin")
    got = perf("sh", "-c", f"{spin} 1 0.5 & {spin} 1 0.5 & wait; exec {spin} 1 0.5")
    assert near(got)


def test_a_set_user_id_program_is_named(assay, perf, targets, tmp_path):
    need("root", os.geteuid() == 0, "only root can make a set-user-id program of another user")
    try:
        static = targets("perf_static")
    except AssertionError:
        need("static libc", False, "no static program could be linked here")
    program = tmp_path / "gains"
    shutil.copy(static, program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    got = perf(program)
    assert got["samples"] == 0
    assert [(row["name"], row["reason"]) for row in got["unsampled"]] == [
        ("gains", "it runs a set-user-id or set-group-id program, at whose exec the kernel ends perf's sampling")]
    assert got["unsampled"][0]["cpu_s"] > 0.5


def test_where_perf_is_forbidden_one_sentence_says_what_would_help(assay):
    need("seccomp", os.uname().machine in PERF_EVENT_OPEN, "the number of perf_event_open is not known here")
    got = assay("run", "-q", "--cpu-profile", "--sampler", "perf", "--", "true", preexec_fn=forbid_perf)
    assert got.status == 3
    assert got.stdout == ""
    level = open("/proc/sys/kernel/perf_event_paranoid").read().strip()
    assert got.stderr == (
        "assay run: --sampler perf: perf_event_open is not permitted here (/proc/sys/kernel/perf_event_paranoid is "
        f"{level}); a value of 2 or less, or CAP_PERFMON (in a container also a seccomp profile that lets the call "
        "pass) would grant it; the default recorder (--sampler preload) needs no permission\n")


def test_a_killed_assay_leaves_what_was_sampled(assay, perf, program, targets, tmp_path):
    import signal
    import time

    running = subprocess.Popen([program, "run", "-q", "--cpu-profile=499", "--sampler", "perf", "-o", "killed", "--",
                                targets("spin"), "1", "1.5"], cwd=tmp_path)
    time.sleep(1)
    running.send_signal(signal.SIGKILL)
    running.wait()
    time.sleep(1)  # the command runs on to its end
    got = assay("recover", "killed")
    assert got.status == 0, got
    profile = json.loads((tmp_path / "killed" / "run.json").read_text())["profile"]
    assert profile["recorder"] == "perf"
    assert profile["samples"] > 0
    assert "spin" in "".join(names(profile))
