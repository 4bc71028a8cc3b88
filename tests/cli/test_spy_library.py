"""Memory watched from a program by libassay: start_spying_on in Python, and where the library finds its program."""
import json
import os
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, environment

LIBRARY = BUILD / "libassay.so"


@pytest.fixture
def python(tmp_path):
    """python(CODE, env={...}): what the program printed as JSON; it has to end well and to warn of nothing."""
    content = LIBRARY.read_bytes()
    if b"__asan_init" in content or b"__tsan_init" in content:
        pytest.skip("plain-build: a sanitizer's runtime cannot come late")

    def run(code, env=None, **options):
        changes = {"PYTHONPATH": str(ROOT / "python"), "ASSAY_LIBRARY": str(LIBRARY), "PYTHONDONTWRITEBYTECODE": "1",
                   **(env or {})}
        done = subprocess.run([sys.executable, "-W", "error", "-c", COMMON + code], capture_output=True, text=True,
                              check=False, timeout=300, cwd=tmp_path, env=environment(changes), **options)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return json.loads(done.stdout)

    return run


COMMON = """
import assay, gc, json, mmap, os, pathlib, signal, subprocess, sys, time, warnings

def spike(mib):
    block = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, mib << 20, 4096):
        block[at] = 1
    block.close()

def spies():
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\\0")
            except OSError:
                continue
            if words[0] == b"assay-spy" and words[5] == str(os.getpid()).encode():
                found.append(int(entry.name))
    return found

def error_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return [type(error).__name__, str(error)]

def show(value):
    print(json.dumps(value))
"""


def test_it_gives_what_the_reference_gives(python):
    got = python("""
p = assay.start_spying_on()
spike(200)
stat = p.stop()
cpu = stat["cpu"]
show({"keys": list(stat), "same": stat.cpu is cpu, "kept": p.result is stat, "dict": cpu.to_dict(),
      "mib": cpu.to_dict(unit=2**20), "exact": stat.exact, "rss": stat.rss.max_peak,
      "attributes": [cpu.begin, cpu.end, cpu.max_peak, cpu.average, cpu.n_measures]})
""")
    figures = got["dict"]
    assert got["keys"] == ["cpu"] and got["same"] and got["kept"]
    assert list(figures) == ["peak", "mean", "n", "begin", "end"]
    assert got["attributes"] == [figures[name] for name in ("begin", "end", "peak", "mean", "n")]
    assert 196 * 2**20 < figures["peak"] - figures["begin"] < 204 * 2**20
    assert figures["begin"] <= figures["mean"] <= got["rss"] <= figures["peak"]
    assert got["mib"]["n"] == figures["n"] >= 2
    assert got["mib"]["peak"] == pytest.approx(figures["peak"] / 2**20)
    assert got["exact"] is True


def test_gpus_are_there_only_where_they_were_asked_for(python):
    kind, text = python("""
stat = assay.start_spying_on().stop()
show(error_of(lambda: stat.gpus))
""")
    assert (kind, text) == ("AttributeError", "SpyResult has no 'gpus'; ask for it with cuda=True")


def test_without_a_gpu_cuda_says_so(python):
    got = python("show(error_of(lambda: assay.start_spying_on(cuda=True).stop()))")
    if got is None:
        pytest.skip("no-gpu: this machine has one")
    assert got[0] == "Error" and got[1].startswith("assay_spy_start: the memory of GPUs cannot be read: ")


def test_a_with_block_is_watched_and_what_is_stopped_stays_so(python):
    got = python("""
with assay.start_spying_on(delay=0.001) as p:
    spike(50)
again = error_of(p.stop)
with assay.start_spying_on() as q:
    q.stop()
show([p.result.cpu.max_peak - p.result.cpu.begin, p.result.cpu.n_measures, again, q.result is not None, spies()])
""")
    assert got[0] > 49 * 2**20 and got[1] >= 2
    assert got[2] == ["Error", "this spy has been stopped already; its figures are in .result"]
    assert got[3:] == [True, []]


def test_another_process_and_its_end(python):
    got = python("""
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
p = assay.start_spying_on(child.pid)
time.sleep(0.1)
child.communicate(b"\\n")
time.sleep(0.1)
stat = p.stop()
show([stat.gone, stat.exact, stat.cpu.n_measures, stat.cpu.max_peak])
""")
    assert got[0] is True and got[1] is False and got[2] >= 2 and got[3] > 2**20


def test_a_tree_is_summed_and_its_shares_are_not(python):
    got = python("""
block = bytearray(b"1") * (100 << 20)
children = []
for i in range(5):
    pid = os.fork()
    if pid == 0:
        block.count(b"2")
        while os.getppid() != 1:
            time.sleep(0.01)
        os._exit(0)
    children.append(pid)
def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * mmap.PAGESIZE
while min(map(resident, children)) < 100 << 20:
    time.sleep(0.01)
stat = assay.start_spying_on(tree=True, pss=True).stop()
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
show([stat.cpu.max_peak, stat.pss.max_peak])
""")
    assert got[0] > 600 * 2**20
    assert got[1] is None or 100 * 2**20 < got[1] < 200 * 2**20


def test_a_killed_spy_leaves_its_figures_and_a_warning(python):
    got = python("""
p = assay.start_spying_on()
time.sleep(0.1)
os.kill(spies()[0], signal.SIGKILL)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    stat = p.stop()
show([stat.partial, stat.cpu.n_measures, [w.category.__name__ for w in caught], str(caught[0].message)])
""")
    assert got[0] is True and got[1] >= 1 and got[2] == ["RuntimeWarning"]
    assert got[3].endswith("was killed; the figures are those until then")


def test_one_that_is_forgotten_ends(python):
    got = python("""
before = len(os.listdir("/proc/self/fd"))
p = assay.start_spying_on()
running = len(spies())
del p
gc.collect()
show([running, len(spies()), len(os.listdir("/proc/self/fd")) - before])
""")
    assert got == [1, 0, 0]


def test_what_cannot_be_watched_is_an_exception(python):
    got = python("""
show([error_of(assay.start_spying_on, pid) for pid in (2**31 - 2, 0, -1, "1")] +
     [error_of(assay.start_spying_on, delay=delay) for delay in (0, 1e-9, float("nan"))])
""")
    assert got == [
        ["Error", "assay_spy_start: there is no process 2147483646"],
        ["ValueError", "0 is no process id"],
        ["ValueError", "-1 is no process id"],
        ["TypeError", "'str' object cannot be interpreted as an integer"],
        ["ValueError", "the delay has to be above 0 s and is 0.0"],
        ["Error", "assay_spy_start: a delay of 1e-09 s is outside 0.0001 to 86400 s"],
        ["ValueError", "the delay has to be above 0 s and is nan"],
    ]


def test_a_forked_worker_neither_stops_nor_keeps_it(python):
    got = python("""
p = assay.start_spying_on()
inside, outside = os.pipe()
if os.fork() == 0:
    os.write(outside, json.dumps(error_of(p.stop)).encode())
    os._exit(0)
os.wait()
show([json.loads(os.read(inside, 4096)), p.stop().partial])
""")
    assert got[0][0] == "Error" and got[0][1].endswith("started this spy, and this is a fork of it")
    assert got[1] is False


def test_the_program_is_found_beside_a_library_that_was_moved(python, tmp_path):
    """As installed (lib/libassay.so, lib/assay/assay-spy), and not at all."""
    shutil.copy(LIBRARY, tmp_path / "libassay.so")
    env = {"ASSAY_LIBRARY": str(tmp_path / "libassay.so")}
    (tmp_path / "assay").mkdir()
    shutil.copy(BUILD / "assay-spy", tmp_path / "assay" / "assay-spy")
    assert python("show(assay.start_spying_on().stop().cpu.n_measures)", env) >= 2
    env["ASSAY_SPY_HELPER"] = str(tmp_path / "nowhere")
    kind, text = python("show(error_of(assay.start_spying_on))", env)
    assert kind == "Error" and f"{tmp_path}/nowhere: No such file or directory" in text


def test_the_program_by_itself_says_who_starts_it(tmp_path):
    done = subprocess.run([BUILD / "assay-spy", os.fspath(tmp_path)], capture_output=True, text=True, check=False,
                          timeout=60)
    assert done.returncode == 2
    assert done.stderr == "assay-spy: libassay starts this program; `assay spy PID` watches a process's memory\n"
