"""libassay-sampler.so in all kinds of programs: each keeps its behaviour, and its CPU time is sampled.

The rings are read by the tests' own reader, after the programs have ended.
"""
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import BUILD, environment
from need import need
from rings import LIBRARY, NO_ROOM, RESTRICTED, SIGNAL_TAKEN, TIMER_REFUSED, Ring, under_sampler

WRAPPED = """
pthread_create thrd_create clone _Fork pthread_setname_np prctl dlclose
syscall _exit _Exit execve execv execvpe execvp fexecve
sigaction __sigaction signal bsd_signal ssignal sysv_signal __sysv_signal sigset sighold sigignore siginterrupt
sigprocmask pthread_sigmask sigwait sigwaitinfo sigtimedwait signalfd sigaltstack
""".split()


def near(got, expected, share=0.05, least=0.03):
    """Within 5%, and not stricter than a few ticks of the kernel."""
    return abs(got - expected) <= max(share * expected, least)


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, str(LIBRARY)], check=True, capture_output=True, text=True).stdout


def test_it_needs_libc_only():
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d")))
    assert "libc.so.6" in needed
    assert needed - {"libc.so.6"} <= {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_nothing_is_looked_up_for_the_first_time_in_a_handler():
    assert "BIND_NOW" in readelf("-d") or "NOW" in readelf("-d").split("FLAGS_1")[-1]


def test_it_keeps_no_thread_local_storage():
    assert not re.search(r"^\s*TLS\s", readelf("-l"), re.M)


def test_it_exports_exactly_what_it_stands_in_for():
    lines = [line.split() for line in readelf("--dyn-syms").splitlines()]
    exported = {words[7].split("@")[0] for words in lines if len(words) >= 8 and words[3] == "FUNC"
                and words[4] in ("GLOBAL", "WEAK") and words[6] != "UND"}
    assert exported == set(WRAPPED)


def test_without_its_variables_it_does_nothing(tmp_path, targets):
    for folder in (None, "", "relative", str(tmp_path / "missing")):
        env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_SAMPLER": folder})
        got = subprocess.run([targets("sampled_threads"), "pthread", "1", "50"], env=env, cwd=tmp_path,
                             capture_output=True, check=True)
        assert got.stderr == b""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["pthread", "c11", "clone", "blocked", "exits", "named"])
def test_threads_are_sampled_however_they_are_made(tmp_path, targets, how):
    got = under_sampler(tmp_path, targets("sampled_threads"), how, 2, 500)
    ring, = got.rings
    assert got.status == 0 and got.left == []
    assert near(ring.cpu_s, float(got.stdout)), got
    assert len(ring.tids) >= 2
    assert ring.header.trouble == 0 and ring.header.closed == 1
    # The first thread has its slot still; the others' ended in good order.
    assert [slot.state for slot in ring.slots] == [1, 0, 0]
    assert near(sum(slot.ended_ns for slot in ring.slots) / 1e9, 1.0)


def test_threads_by_the_bare_system_call_are_found(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_threads"), "raw", 2, 1000)
    ring, = got.rings
    assert got.status == 0
    assert len(ring.tids - {ring.header.pid}) == 2
    assert ring.cpu_s >= 0.7 * float(got.stdout)
    assert ring.cpu_s <= 1.05 * float(got.stdout)


def test_names_of_threads_come_with_their_samples(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_threads"), "named", 2, 400)
    ring, = got.rings
    threads = [names for tid, names in ring.names.items() if tid != ring.header.pid]
    # A tick may come before a thread has named itself: until then it has its maker's name.
    assert [[name for name in names if name != "target_sampled_"] for names in threads] == [["first", "second"]] * 2


def test_10000_short_threads_share_few_slots_and_are_counted_without_bias(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_threads"), "short", 10000, 0)
    ring, = got.rings
    assert got.status == 0
    assert ring.header.slots <= 4 and ring.header.trouble == 0
    got = under_sampler(tmp_path, targets("sampled_threads"), "short", 1000, 2, folder=tmp_path / "longer")
    ring, = got.rings
    # 400 periods at random among 1,000 threads: five standard deviations are 12%.
    assert near(ring.cpu_s, float(got.stdout), 0.15)


@pytest.mark.parametrize("how", ["fork", "_fork", "raw", "clone", "thread", "vfork", "spawn", "exec"])
def test_other_processes_have_rings_of_their_own(tmp_path, targets, how):
    got = under_sampler(tmp_path, targets("sampled_process"), how, 300)
    assert got.status == 0 and got.left == []
    assert len(got.rings) == 2
    first, second = got.rings
    assert (first.header.pid == second.header.pid) == (how == "exec")
    assert how == "exec" or second.header.ppid == first.header.pid
    assert near(second.cpu_s, 0.3) and first.cpu_s < 0.1, got


def test_shells_and_env_pass_it_on(tmp_path, targets):
    line = f"env X=1 {targets('sampled_process')} work 300; true"
    got = under_sampler(tmp_path, "sh", "-c", line)
    work, = [ring for ring in got.of("target_sampled_process") if ring.cpu_s > 0.1]
    assert near(work.cpu_s, 0.3)


def test_a_daemon_that_closes_every_descriptor_is_sampled_with_its_threads(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_process"), "daemon", 300)
    assert got.status == 0
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        rings = [Ring(path) for path in (tmp_path / "rings").iterdir() if path.suffix == ".ring"]
        if any(ring.header.closed for ring in rings):
            break
        time.sleep(0.05)
    daemon, = [ring for ring in rings if ring.header.closed]
    assert near(daemon.cpu_s, 0.6) and len(daemon.tids) == 2


@pytest.mark.parametrize("how", ["handler", "sigset", "wait", "fd", "everything", "reset", "full", "heavy"])
@pytest.mark.parametrize("below_last", [3, 0])
def test_a_program_that_uses_our_signal_gets_it(tmp_path, targets, how, below_last):
    got = under_sampler(tmp_path, targets("sampled_signals"), how, below_last)
    ring, = got.rings
    assert (got.status, got.stdout) == (0, "")
    assert ring.cpu_s >= 0.27 and ring.header.trouble == 0, got


def test_a_signal_that_was_taken_past_us_is_noticed_and_left_alone(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_signals"), "rawaction")
    ring, = got.rings
    assert (got.status, got.stdout) == (0, "")
    assert ring.header.signal != signal.SIGRTMAX - 3
    assert ring.cpu_s >= 0.27 and not ring.header.trouble & SIGNAL_TAKEN


def test_our_signal_from_outside_does_what_it_does_without_us(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_signals"), "default")
    assert got.status == -(signal.SIGRTMAX - 3)


def test_nobody_who_sleeps_is_woken(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_signals"), "sleeps", hz=997)
    assert (got.status, got.stdout) == (0, "")
    assert got.cpu_s >= 1.4


def test_forbidden_system_calls_are_not_made(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_limits"), "filter")
    ring, = got.rings
    assert (got.status, got.stdout) == (0, "alive\n")
    assert ring.header.trouble & RESTRICTED and ring.cpu_s > 0.1
    got = under_sampler(tmp_path, targets("sampled_limits"), "strict", folder=tmp_path / "strict")
    assert (got.status, got.stdout) == (0, "alive\n")
    assert got.rings[0].header.trouble & RESTRICTED


def test_a_filter_past_prctl_is_noticed(tmp_path, targets):
    need("root", os.geteuid() == 0, "only root may restrict itself without giving up new privileges")
    got = under_sampler(tmp_path, targets("sampled_limits"), "raw")
    assert (got.status, got.stdout) == (0, "alive\n")
    assert got.rings[0].header.trouble & RESTRICTED


def test_a_second_restriction_is_noticed(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_limits"), "both")
    assert (got.status, got.stdout) == (0, "alive\n")


def test_a_small_stack_of_a_library_is_seen(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_early"))
    assert got.status == 0
    assert got.rings[0].cpu_s > 0.05


def test_threads_made_under_restrictions_are_counted(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_limits"), "nnp")
    ring, = got.rings
    assert got.status == 0
    assert ring.header.trouble & RESTRICTED and ring.header.unarmed == 1


@pytest.mark.parametrize("size", [8192, 65536])
def test_an_alternate_stack_is_large_enough_as_it_was(tmp_path, targets, size):
    got = under_sampler(tmp_path, targets("sampled_limits"), "alternate", size)
    ring, = got.rings
    assert got.status == 0
    used, frame = map(int, got.stdout.split())
    bare = subprocess.run([targets("sampled_limits"), "alternate", str(size)], check=True, capture_output=True)
    more = used - int(bare.stdout.split()[0])
    assert more <= (0 if size < 2 * frame + 4096 else frame + 4096)
    assert near(ring.cpu_s, 1.5)
    # Where no tick could come, what ran is not known, and nobody else is blamed.
    blamed = sum(sample.weight for sample in ring.samples if sample.frames)
    assert blamed <= (0.55 if size == 8192 else 1.0) * 1.05 * 1.5 * 199


@pytest.mark.parametrize("how", ["deep", "jumps", "switch"])
def test_unusual_stacks_do_no_harm(tmp_path, targets, how):
    got = under_sampler(tmp_path, targets("sampled_limits"), how)
    ring, = got.rings
    assert got.status == 0
    assert near(ring.cpu_s, 0.6 if how == "switch" else 0.3)
    if how == "deep":
        assert max(len(sample.frames) for sample in ring.samples) == 1024


def test_another_library_at_the_same_address_is_another_module(tmp_path, targets):
    paths = [str(BUILD / "tests" / "targets" / f"libsampled_module_{i}.so") for i in "12"]
    got = under_sampler(tmp_path, targets("sampled_modules"), 300, *paths)
    ring, = got.rings
    assert got.status == 0
    places = [int(line, 16) for line in got.stdout.split()]
    need("same-address", places[0] == places[1], "the loader put the two libraries at different addresses")
    for path in paths:
        module, = [module for module in ring.modules if module.path == path]
        assert module.start <= places[0] < module.end and module.build_id
        later = [m.t for m in ring.modules if m.start == module.start and m.t > module.t]
        inside = [s for s in ring.samples if s.frames and module.start <= s.frames[0] < module.end
                  and module.t <= s.t < min(later, default=float("inf"))]
        assert near(sum(s.weight for s in inside) / 199, 0.3, 0.1), path


def test_killed_at_any_moment_it_leaves_a_readable_ring(tmp_path, targets):
    for i in range(10):
        folder = tmp_path / f"kill{i}"
        folder.mkdir()
        env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_SAMPLER": str(folder), "ASSAY_SAMPLER_HZ": "5000"})
        process = subprocess.Popen([targets("sampled_limits"), "wait"], env=env, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"working\n"
        time.sleep(0.02 + 0.013 * i)
        process.kill()
        process.communicate()
        ring, = [Ring(path) for path in folder.iterdir()]
        slot, = ring.slots
        # At most the one that was being written is missing.
        assert len(ring.samples) in (slot.deliveries, slot.deliveries - 1) and ring.header.closed == 0


def test_refused_timers_are_counted_with_their_reason(tmp_path, targets):
    got = under_sampler(tmp_path, "prlimit", "--sigpending=4", targets("sampled_threads"), "pthread", 8, 50)
    ring, = got.of("target_sampled_threads")
    assert got.status == 0
    need("signal-limit", ring.header.unarmed > 0, "the limit on pending signals does not bind here")
    assert ring.header.trouble & TIMER_REFUSED and ring.header.unarmed_errno == 11
    assert ring.header.unsampled_ns >= 8 * 0.05e9 * 0.5


def test_a_limit_on_files_is_no_reason_to_die(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_process"), "limit", 100)
    assert got.status == 0 and got.left == []
    assert len(got.rings) == 1
    limits = ["sh", "-c", 'ulimit -f 700; exec "$0" "$@"']  # of 512 bytes: some slots, not all
    got = under_sampler(tmp_path, *limits, targets("sampled_threads"), "pthread", 10, 100, folder=tmp_path / "few")
    assert got.status == 0


def test_little_address_space_is_enough(tmp_path, targets):
    limits = ["sh", "-c", 'ulimit -v 120000; exec "$0" "$@"']
    got = under_sampler(tmp_path, *limits, targets("sampled_threads"), "pthread", 2, 600)
    ring, = got.of("target_sampled_threads")
    assert got.status == 0 and near(ring.cpu_s, float(got.stdout))


def test_a_full_disk_costs_samples_and_nothing_else(tmp_path, targets):
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(full)], capture_output=True)
    need("mount", mounted.returncode == 0, "no tmpfs can be mounted")
    try:
        got = under_sampler(tmp_path, targets("sampled_threads"), "pthread", 20, 50, folder=full)
        ring, = got.rings
        assert got.status == 0 and got.left == []
        assert ring.header.trouble & NO_ROOM and ring.header.roomless > 0
        (full / "filler").write_bytes(b"x" * (os.statvfs(full).f_bavail * 4096))
        got = under_sampler(tmp_path, targets("sampled_threads"), "pthread", 2, 50, folder=full)
        assert got.status == 0 and got.left == ["filler"]
    finally:
        subprocess.run(["umount", str(full)], check=True)


def test_its_memory_is_small(tmp_path, targets):
    got = under_sampler(tmp_path, targets("sampled_limits"), "many", 50, hz=997)
    assert got.status == 0
    ours, resident = False, 0
    for line in got.stdout.splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = ".ring" in line or "libassay-sampler" in line
        elif ours and line.startswith("Rss:"):
            resident += int(line.split()[1])
    assert 0 < resident <= 4096 + 51 * 128


def test_languages_with_runtimes_of_their_own_run_as_before(tmp_path):
    commands = [["python3", "-c", "import threading, subprocess, sys; t = threading.Thread(target=lambda: "
                 "sum(range(10**6))); t.start(); t.join(); print(subprocess.run(['true']).returncode)"],
                ["node", "-e", "let s = 0; for (let i = 0; i < 1e8; i++) s += i; console.log(0)"]]
    for command in commands:
        if not shutil.which(command[0], path=environment({})["PATH"]):
            continue
        got = under_sampler(tmp_path, *command, folder=tmp_path / command[0])
        assert (got.status, got.stdout, got.stderr) == (0, "0\n", "")
