"""What the recorder makes of the sampler's files: whose samples they are, what was not sampled and why, and what is
left when a process, the recorder or both are killed."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, environment
from need import need
from waiting import wait_for

PROFILE = ("run", "-q", "--precheck", "off", "--cpu-profile", "-o", "out")


def profile_of(got):
    assert got.run_json["warnings"] is not None
    return got.run_json["profile"]


def unsampled(got):
    return {row["name"]: row for row in profile_of(got)["unsampled"]}


def warnings(got):
    return [warning["text"] for warning in got.run_json["warnings"]]


def compile_statically(folder):
    source = folder / "burn.c"
    source.write_text("#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) { } return 0; }\n")
    made = subprocess.run(["cc", "-static", "-o", folder / "burn", source], capture_output=True) \
        if shutil.which("cc") else None
    need("static programs", made is not None and made.returncode == 0, "none can be linked here")
    return str(folder / "burn")


def test_cpu_seconds_sampled_stand_beside_cpu_seconds_used(assay, targets):
    got = assay(*PROFILE, "--", targets("spin"), "2", "1.5")
    assert got.status == 0
    profile = profile_of(got)
    assert profile["cpu_consumed_s"] == pytest.approx(got.run_json["cpu_s"], abs=0.01)
    assert profile["cpu_sampled_s"] == pytest.approx(got.run_json["cpu_s"], rel=0.1)
    assert profile["samples"] * profile["period_s"] == pytest.approx(profile["cpu_sampled_s"], rel=0.01)
    assert profile["unsampled"] == []
    assert (got.run_dir / "segments" / "samples.seg").is_file()
    assert not os.path.lexists(got.run_dir / "segments" / "rings")
    assert json.loads((got.run_dir / "profile.json").read_text())["schema"] == "assay-profile-1"


def test_a_run_without_a_profile_leaves_nothing_of_one(assay):
    got = assay("run", "-q", "--precheck", "off", "-o", "out", "--", "env")
    assert "profile" not in got.run_json
    assert not (got.run_dir / "profile.json").exists()
    assert not (got.run_dir / "segments" / "samples.seg").exists()
    assert "LD_PRELOAD" not in got.stdout and "ASSAY_SAMPLER" not in got.stdout


@pytest.mark.parametrize("how", ["environment", "option"])
def test_the_environment_keeps_what_the_caller_preloads(assay, program, how):
    other = BUILD / "tests" / "targets" / "libsampled_module_1.so"
    if how == "environment":
        need("plain-build", b"__asan_init" not in program.read_bytes(), "a sanitizer has to be preloaded first")
        got = assay(*PROFILE, "--", "env", env={"LD_PRELOAD": str(other), "ASAN_OPTIONS": "color=never"})
    else:
        got = assay(*PROFILE, "--env", f"LD_PRELOAD={other}", "--env", "ASAN_OPTIONS=color=never", "--", "env")
    lines = dict(line.split("=", 1) for line in got.stdout.splitlines() if "=" in line)
    assert lines["LD_PRELOAD"] == f"{BUILD / 'libassay-sampler.so'}:{other}"
    rings = pathlib.Path(lines["ASSAY_SAMPLER"])
    assert rings.is_absolute() and not rings.exists()
    assert lines["ASSAY_SAMPLER_HZ"] == "199"
    assert lines["ASAN_OPTIONS"] == "color=never:verify_asan_link_order=0"


def test_a_command_that_is_not_there_leaves_no_run_directory(assay, tmp_path):
    got = assay(*PROFILE, "--", "no-such-command")
    assert got.status == 127
    assert not (tmp_path / "out").exists()


def test_a_static_program_is_named_with_its_reason_and_cpu_seconds(assay, tmp_path):
    got = assay(*PROFILE, "--", compile_statically(tmp_path))
    row = unsampled(got)["burn"]
    assert row["reason"] == "it is statically linked, so nothing can be preloaded"
    assert row["cpu_s"] == pytest.approx(0.5, abs=0.2)
    assert any(text.startswith("Not profiled: burn (1 process, ") for text in warnings(got))


def test_a_program_that_another_became_by_exec_is_not_taken_for_it(assay, tmp_path):
    burn = compile_statically(tmp_path)
    got = assay(*PROFILE, "--", "sh", "-c", f"i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; exec {burn}")
    row = unsampled(got)["burn"]
    assert row["reason"] == "it is statically linked, so nothing can be preloaded"
    assert row["cpu_s"] == pytest.approx(0.5, abs=0.2)


@pytest.mark.parametrize("prefix, reason", [
    ("env -i", "it was started with a cleared environment, without LD_PRELOAD"),
    ("env -u LD_PRELOAD", "LD_PRELOAD was taken out of its environment"),
    ("env LD_PRELOAD=libm.so.6", "LD_PRELOAD was replaced in its environment"),
])
def test_a_changed_environment_is_the_reason(assay, targets, prefix, reason):
    got = assay(*PROFILE, "--", "sh", "-c", f"{prefix} {targets('spin')} 1 0.7; true")
    assert unsampled(got)["target_spin"]["reason"] == reason


def test_a_set_user_id_program_is_the_reason(assay, targets, tmp_path):
    need("root", os.geteuid() == 0 and shutil.which("setpriv") is not None, "only root can become somebody else")
    shutil.copy(targets("spin"), tmp_path / "owned")
    os.chmod(tmp_path / "owned", 0o4755)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            os.chmod(folder, folder.stat().st_mode | 0o011)
    got = assay(*PROFILE, "--", "setpriv", "--reuid", "65534", "--clear-groups", tmp_path / "owned", "1", "0.7")
    assert got.status == 0
    assert "set-user-id" in unsampled(got)["owned"]["reason"]


def test_a_user_who_may_not_write_there_is_the_reason(assay, targets, tmp_path):
    need("root", os.geteuid() == 0 and shutil.which("setpriv") is not None, "only root can become somebody else")
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            os.chmod(folder, folder.stat().st_mode | 0o011)
    got = assay(*PROFILE, "--", "setpriv", "--reuid", "65534", "--clear-groups", targets("spin"), "1", "0.7")
    assert unsampled(got)["target_spin"]["reason"] == \
        "it runs as user 65534, who may not write into the run directory"


def test_many_processes_of_one_reason_are_one_warning(assay, targets):
    spin = targets("spin")
    got = assay(*PROFILE, "--", "sh", "-c", f"for i in 1 2 3; do env -i {spin} 1 0.3; done")
    told = [text for text in warnings(got) if text.startswith("Not profiled:")]
    assert len(told) == 1 and "target_spin (3 processes" in told[0]


def test_a_killed_process_keeps_its_samples(assay, targets):
    spin = targets("spin")
    got = assay(*PROFILE, "--", "sh", "-c", f"{spin} 1 60 & sleep 1.5; kill -9 $!; wait")
    profile = profile_of(got)
    assert profile["cpu_sampled_s"] == pytest.approx(got.run_json["cpu_s"], rel=0.2, abs=0.05)
    assert not os.path.lexists(got.run_dir / "segments" / "rings")


@pytest.fixture
def killed(program, targets, tmp_path):
    """The run directory of a recorder that was killed in the midst, its target with it."""
    recorder = subprocess.Popen([program, *PROFILE, "--", targets("spin"), "1", "60"], cwd=tmp_path,
                                env=environment({}), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)
    segment = tmp_path / "out" / "segments" / "samples.seg"
    rings = tmp_path / "out" / "segments" / "rings"
    wait_for(lambda: segment.is_file() and committed(segment) > 6000 and any(rings.glob("*.ring")), "samples")
    recorder.kill()
    recorder.wait()
    target = int(next(rings.glob("*.ring")).name.split("-")[0])
    folder = rings.resolve()
    yield tmp_path / "out", target
    try:
        os.kill(target, signal.SIGKILL)
    except ProcessLookupError:
        pass
    shutil.rmtree(folder, ignore_errors=True)


def committed(segment):
    return int.from_bytes(segment.read_bytes()[56:64], sys.byteorder)


def test_a_killed_recorder_loses_nothing_that_is_in_a_ring(assay, killed):
    out, target = killed
    os.kill(target, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{target}").exists(), "the target's end")
    got = assay("recover", "-q", out)
    assert got.status == 0
    run = json.loads((out / "run.json").read_text())
    assert run["status"] == "partial"
    samples = run["profile"]["samples"]
    assert samples > 20
    assert not (out / "segments" / "rings").exists()
    again = assay("recover", "-q", "--force", out)
    assert again.status == 0
    assert json.loads((out / "run.json").read_text())["profile"]["samples"] == samples


def test_recovery_leaves_a_living_process_its_file(assay, killed):
    out, _ = killed
    assert assay("recover", "-q", out).status == 0
    first = json.loads((out / "run.json").read_text())["profile"]
    assert any((out / "segments" / "rings").glob("*.ring"))
    assert assay("recover", "-q", "--force", out).status == 0
    second = json.loads((out / "run.json").read_text())["profile"]
    assert second["samples"] >= first["samples"]
    assert all(group["cut"] == 0 for group in second["groups"].values())


def test_a_file_that_is_no_ring_is_told_of(assay):
    got = assay(*PROFILE, "--", "sh", "-c", "echo nonsense > $ASSAY_SAMPLER/1.ring; echo $ASSAY_SAMPLER; sleep 0.3")
    assert got.status == 0
    assert any("1.ring: not a ring file" in text for text in warnings(got))
    assert not os.path.exists(got.stdout.strip())


def test_a_process_in_a_pid_namespace_is_known_by_its_pid_outside(assay, targets):
    probe = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True) \
        if shutil.which("unshare") else None
    need("pid namespaces", probe is not None and probe.returncode == 0, "unshare -p is not permitted")
    got = assay(*PROFILE, "--", "unshare", "-pf", "--mount-proc", targets("spin"), "1", "1")
    busiest = [row for group in profile_of(got)["groups"].values() for row in group["self"] if row["share"] > 0.5]
    assert busiest
    spin = [p for p in got.run_json["processes"]["top"] if p["name"] == "target_spin"]
    shown = assay("profile", "--by", "process", "--json", got.run_dir)
    assert shown.status == 0
    assert str(spin[0]["pid"]) in shown.stdout or "target_spin" in shown.stdout


@pytest.mark.parametrize("folder, library, why", [
    ("alone", False, "libassay-sampler.so is neither beside the program nor in"),
    ("a blank", True, "cannot be preloaded, since its path holds a blank"),
])
def test_without_a_sampler_that_can_be_preloaded_nothing_runs(program, tmp_path, folder, library, why):
    (tmp_path / folder).mkdir()
    shutil.copy(program, tmp_path / folder)
    if library:
        shutil.copy(BUILD / "libassay-sampler.so", tmp_path / folder)
    got = subprocess.run([tmp_path / folder / "assay", *PROFILE, "--", "touch", "ran"], cwd=tmp_path,
                         env=environment({}), capture_output=True, text=True)
    installed = any(pathlib.Path("/usr").glob("l*/**/assay/libassay-sampler.so"))
    need("an uninstalled sampler", library or not installed, "a sampler is installed, and would be found")
    assert got.returncode == 3
    assert why in got.stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "ran").exists()


def test_processes_shorter_than_a_tick_count(assay):
    """Each lives for about 3 ms: the kernel's ticks alone would count a third of it."""
    got = assay(*PROFILE, "--", "sh", "-c",
                "i=0; while [ $i -lt 300 ]; do ( j=0; while [ $j -lt 3000 ]; do j=$((j+1)); done ); i=$((i+1)); done")
    profile = got.run_json["profile"]
    assert got.status == 0
    assert 0.7 < profile["cpu_sampled_s"] / profile["cpu_consumed_s"] < 1.2


def test_one_free_descriptor_is_enough(assay, targets):
    got = assay(*PROFILE, "--", "bash", "-c", f"ulimit -n 4; exec {targets('spin')} 1 0.4")
    profile = got.run_json["profile"]
    assert got.status == 0 and profile["samples"] > 0 and profile["unsampled"] == []


def test_refused_timers_are_told_with_the_time_that_they_cost(assay, targets):
    got = assay(*PROFILE, "--", "bash", "-c", f"ulimit -i 0; exec {targets('spin')} 2 0.4")
    profile = got.run_json["profile"]
    lacking, = [one for one in profile["lacking"] if one["exe"].endswith("target_spin")]
    assert got.status == 0 and lacking["threads_without_timer"] == 2
    assert lacking["unsampled_s"] == pytest.approx(profile["cpu_consumed_s"], rel=0.2)


def test_valgrind_runs_as_ever(assay):
    need("valgrind", shutil.which("valgrind"), "it is not installed")
    got = assay(*PROFILE, "--", "valgrind", "-q", "/bin/ls", "/")
    assert got.status == 0
    assert "memcheck" in got.run_json["profile"]["unsampled"][0]["name"]


FORK_BURN_EXEC = r"""
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void NAME(int ms)
{
	volatile long x = 0;
	struct timespec t;

	do {
		for (int i = 0; i < 10000; i++)
			x += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	} while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}
int main(int argc, char **argv)
{
	if (argc == 1) {
		NAME(80);
		return 0;
	}
	for (int i = 0; i < 15; i++) {
		if (!fork()) {
			NAME(40);
			execl(argv[1], argv[1], (char *)0);
			_exit(1);
		}
		wait(0);
	}
	return 0;
}
"""


@pytest.mark.parametrize("build_id", ["none", "sha1"])
def test_what_a_process_ran_before_an_exec_is_not_named_after_what_it_runs_now(assay, tmp_path, build_id):
    need("a compiler", shutil.which("cc") is not None, "cc is not installed")
    (tmp_path / "burn.c").write_text(FORK_BURN_EXEC)
    for name, function in (("before", "truth_of_before"), ("after", "truth_of_after")):
        subprocess.run(["cc", "-O1", f"-DNAME={function}", f"-Wl,--build-id={build_id}", "-o", tmp_path / name,
                        tmp_path / "burn.c"], check=True)
    got = assay(*PROFILE, "--", tmp_path / "before", tmp_path / "after")
    assert got.status == 0
    groups = json.loads(assay("profile", "--json", got.run_dir).stdout)["groups"]
    seen = {}
    for row in (row for group in groups.values() for row in group["self"]):
        key = (row["module"], row["name"])
        seen[key] = seen.get(key, 0) + row["cpu_s"]
    assert not [key for key in seen if key in (("before", "truth_of_after"), ("after", "truth_of_before"))]
    assert seen[("before", "truth_of_before")] == pytest.approx(15 * 0.040, rel=0.35)
    assert seen[("after", "truth_of_after")] == pytest.approx(15 * 0.040, rel=0.35)


MANY_FILES = """
import glob, os, struct, sys, time
folder, count, future = os.environ["ASSAY_SAMPLER"], int(sys.argv[1]), sys.argv[2] == "future"
end = time.process_time() + 0.1
while time.process_time() < end:
    pass
with open(glob.glob(f"{folder}/{os.getpid()}-*.ring")[0], "rb") as own:
    header = bytearray(own.read(4096))
if future:
    struct.pack_into("<q", header, 56, 1 << 62)
for i in range(count):
    with open(f"{folder}/new", "wb") as file:
        file.write(header)
        file.truncate(400000)
    os.rename(f"{folder}/new", f"{folder}/{i + 10}-{i + 7}.ring")
print("made", flush=True)
time.sleep(float(sys.argv[3]))
"""


@pytest.mark.parametrize("kind, why", [("alike", "a copy of another one"), ("future", "made in the future")])
def test_a_flood_of_files_is_refused(assay, kind, why):
    got = assay(*PROFILE, "--", sys.executable, "-c", MANY_FILES, "5000", kind, "0.5")
    assert got.status == 0 and got.stdout == "made\n"
    assert any(why in text for text in warnings(got))
    assert not os.path.lexists(got.run_dir / "segments" / "rings")
    assert profile_of(got)["cpu_sampled_s"] <= profile_of(got)["cpu_consumed_s"] * 1.2 + 0.05


def test_a_flood_of_files_leaves_the_recorder_its_ears(program, tmp_path):
    recorder = subprocess.Popen([program, *PROFILE, "--", sys.executable, "-c", MANY_FILES, "20000", "future", "600"],
                                cwd=tmp_path, env=environment({}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
    assert recorder.stdout.readline() == b"made\n"
    recorder.terminate()
    assert recorder.wait() == 128 + signal.SIGTERM
    assert not os.path.lexists(tmp_path / "out" / "segments" / "rings")


def test_samples_of_more_time_than_there_was_are_not_believed(assay):
    lie = """
import glob, os, time
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
own = glob.glob(os.environ["ASSAY_SAMPLER"] + f"/{os.getpid()}-*.ring")[0]
slots = int.from_bytes(open(own, "rb").read(64)[36:40], "little")
with open(own, "r+b") as file:
    file.seek(slots + 32)
    file.write((10 ** 6).to_bytes(8, "little"))
"""
    got = assay(*PROFILE, "--", sys.executable, "-c", lie)
    assert any(text.startswith("Not to be believed: ") for text in warnings(got))
    assert profile_of(got)["cpu_sampled_s"] <= profile_of(got)["cpu_consumed_s"] * 1.2 + 0.05


DEAF = r"""
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void)
{
	const unsigned long ignore[4] = {1};

	for (int signo = 1; signo < 65; signo++)
		syscall(SYS_rt_sigaction, signo, ignore, 0, 8);
	while (clock() < CLOCKS_PER_SEC / 2) {
	}
	return 0;
}
"""


def test_a_program_in_which_no_tick_ever_came_is_told_of(assay, tmp_path):
    need("a compiler", shutil.which("cc") is not None, "cc is not installed")
    (tmp_path / "deaf.c").write_text(DEAF)
    subprocess.run(["cc", "-o", tmp_path / "deaf", tmp_path / "deaf.c"], check=True)
    got = assay(*PROFILE, "--", tmp_path / "deaf")
    ticks = sum(group["deliveries"] for group in profile_of(got)["groups"].values())
    need("a start within one tick", ticks == 0, "a tick came before the program ignored it")
    assert profile_of(got)["cpu_sampled_s"] == pytest.approx(profile_of(got)["cpu_consumed_s"], rel=0.2)
    assert "No tick ever came in its 0." in " ".join(assay("profile", got.run_dir).stdout.split())


def test_a_folder_in_the_folder_of_files_is_told_of(assay):
    got = assay(*PROFILE, "--", "sh", "-c",
                "mkdir $ASSAY_SAMPLER/kept; ln -s / $ASSAY_SAMPLER/link; echo $ASSAY_SAMPLER")
    folder = pathlib.Path(got.stdout.strip())
    try:
        assert any(text.startswith("The folder for files of samples stays") and str(folder) in text
                   for text in warnings(got))
        assert [entry.name for entry in folder.iterdir()] == ["kept"]
    finally:
        shutil.rmtree(folder)


def test_a_link_in_the_folders_place_leads_nowhere(assay, tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "1-1.ring").write_text("precious")
    got = assay(*PROFILE, "--", "sh", "-c",
                f"mv $ASSAY_SAMPLER $ASSAY_SAMPLER.away; ln -s {tmp_path}/victim $ASSAY_SAMPLER; echo $ASSAY_SAMPLER")
    folder = pathlib.Path(got.stdout.strip())
    try:
        assert (tmp_path / "victim" / "1-1.ring").read_text() == "precious"
        assert any(str(folder) in text for text in warnings(got))
    finally:
        folder.unlink()
        shutil.rmtree(f"{folder}.away")


def test_a_second_recovery_takes_what_a_living_process_sampled_after_the_first(assay, killed):
    out, target = killed
    assert assay("recover", "-q", out).status == 0
    first = json.loads((out / "run.json").read_text())
    assert any(f"({target})" in warning["text"] and "still runs: recover again" in warning["text"]
               for warning in first["warnings"])
    assert first["profile"].get("cpu_consumed_s") is None
    folder = os.readlink(out / "segments" / "rings") if os.path.islink(out / "segments" / "rings") else None
    ring = next((out / "segments" / "rings").glob("*.ring"))
    head = ring_head(ring)
    wait_for(lambda: ring_head(ring) > head + 4096, "more samples")
    os.kill(target, signal.SIGKILL)
    wait_for(lambda: not pathlib.Path(f"/proc/{target}").exists(), "the target's end")
    assert assay("recover", "-q", out).status == 0
    second = json.loads((out / "run.json").read_text())
    assert second["profile"]["samples"] > first["profile"]["samples"]
    assert not os.path.lexists(out / "segments" / "rings")
    assert folder is None or not os.path.exists(folder)
    assert assay("recover", "-q", out).status == 2


def ring_head(ring):
    with open(ring, "rb") as file:
        slots = int.from_bytes(file.read(64)[36:40], sys.byteorder)
        file.seek(slots + 8)
        return int.from_bytes(file.read(8), sys.byteorder)


def test_a_folder_without_inodes_is_the_reason(program, targets, tmp_path):
    """A file system of its own for the files of samples, with room for a few of them."""
    probe = subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], capture_output=True) \
        if shutil.which("unshare") else None
    need("mount namespaces", probe is not None and probe.returncode == 0, "unshare -m is not permitted")
    script = ("mount -t tmpfs -o nr_inodes=3 tmpfs /dev/shm && "
              f"exec {program} {' '.join(PROFILE)} -- sh -c '{targets('spin')} 1 0.5; true'")
    got = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=tmp_path, env=environment({}), capture_output=True,
                         text=True)
    assert got.returncode == 0, got.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    row, = [row for row in run["profile"]["unsampled"] if row["name"] == "target_spin"]
    assert "has no free inodes" in row["reason"]


def test_a_limit_on_memory_leaves_room_for_the_files(program, targets, tmp_path):
    got = subprocess.run(["sh", "-c", f"ulimit -v 400000; exec {program} {' '.join(PROFILE)} --no-probe -- "
                                      f"{targets('spin')} 1 0.5"],
                         cwd=tmp_path, env=environment({}), capture_output=True, text=True)
    need("a program that runs in 400 MB", "AddressSanitizer" not in got.stderr and
         "ThreadSanitizer" not in got.stderr, "a sanitizer wants more")
    assert got.returncode == 0, got.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["profile"]["cpu_sampled_s"] == pytest.approx(run["profile"]["cpu_consumed_s"], rel=0.2)
