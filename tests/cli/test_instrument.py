"""`assay profile --instrument`: programs compiled with -finstrument-functions, whose calls are known exactly."""
import os
import shutil
import signal
import subprocess

import pytest

from conftest import BUILD, ROOT, environment
from need import need
from waiting import is_running, wait_for

LIBRARY = BUILD / "libassay.so"


@pytest.fixture(autouse=True)
def plain_library():
    if b"__asan_init" in LIBRARY.read_bytes() or b"__tsan_init" in LIBRARY.read_bytes():
        pytest.skip("plain-build: a sanitizer's runtime cannot be preloaded into a plain program")


class Graph:
    """A *.graph file: nodes[NAME] = (calls, primitive, self, total), edges[CALLER, CALLEE] = calls."""

    def __init__(self, path):
        lines = [line.split("\t") for line in path.read_text().splitlines()]
        rows = [line for line in lines if line[0] == "n"]
        self.names = [row[3] for row in rows]
        self.rows = {row[3]: row for row in rows}
        self.nodes = {row[3]: (int(row[6]), int(row[5]), float(row[7]), float(row[8])) for row in rows}
        self.edges = {(self.names[int(row[1])], self.names[int(row[2])]): int(row[4]) for row in lines
                      if row[0] == "e"}
        self.notes = [row[1] for row in lines if row[0] == "note"]

    def calls(self, name):
        return self.nodes[name][0]


@pytest.fixture
def record(assay, targets):
    """record(WAY, ...): runs the target under --instrument; the result and its graph."""

    def run(*words, **options):
        got = assay("profile", "--instrument", "--no-probe", "-o", "out", "--", targets("instrumented"), *words,
                    **options)
        return got, Graph(got.run_dir / "calls.graph")

    return run


def test_every_call_is_counted_and_named(record):
    got, graph = record("calls")
    assert (got.status, got.stdout) == (0, "done\n")
    assert {name: figures[:2] for name, figures in graph.nodes.items()} == {
        "main": (1, 1), "calls": (1, 1), "middle": (10, 10), "leaf": (1001, 1001), "slow_leaf": (1, 1),
        "fibonacci": (1973, 1), "even": (5, 1), "odd": (5, 1)}
    assert graph.edges["middle", "leaf"] == 1000
    assert graph.edges["calls", "leaf"] == 1
    assert graph.edges["even", "odd"] == 5
    assert graph.rows["middle"][1].endswith("instrumented.c")
    assert int(graph.rows["middle"][2]) > 0
    assert graph.notes == []


def test_times_are_self_and_with_what_was_called(record):
    graph = record("calls")[1]
    slow, calls, main = graph.nodes["slow_leaf"], graph.nodes["calls"], graph.nodes["main"]
    assert slow[2] >= 0.02
    assert main[3] >= calls[3] >= slow[3]
    assert main[3] == pytest.approx(sum(figures[2] for figures in graph.nodes.values()), rel=1e-6)


def test_the_tree_is_printed_on_stderr_and_the_recordings_are_gone(record):
    got, _ = record("calls")
    assert "slow_leaf" in got.stderr and "results: " in got.stderr
    assert not (got.run_dir / "segments" / "calls").exists()


def test_the_graph_of_a_finished_run_is_shown_again(record, assay):
    got, _ = record("calls")
    shown = assay("profile", "--instrument", got.run_dir)
    assert shown.status == 0
    assert "slow_leaf" in shown.stdout and shown.stderr == ""


@pytest.mark.parametrize("way,count", [("threads", 200), ("at-once", 500)])
def test_threads_that_have_ended_are_in_it(way, count, record):
    graph = record(way, str(count))[1]
    assert graph.calls("worker") == count
    assert graph.calls("leaf") == 10 * count


def test_calls_may_be_nested_deeply(record):
    graph = record("deep", "50000")[1]
    assert graph.nodes["deep"][:2] == (50000, 1)
    assert graph.nodes["main"][3] >= graph.nodes["deep"][3]


def test_calls_that_longjmp_leaves_end(record):
    graph = record("jumps")[1]
    assert graph.nodes["thrower"][:2] == (1100, 100)
    assert graph.edges["catcher", "leaf"] == 100
    assert graph.edges["jumps", "leaf"] == 1
    assert "1100 calls did not end by a return" in graph.notes[0]


def test_calls_that_longjmp_leaves_for_the_loop_they_were_made_in_are_no_recursion(record):
    graph = record("jumps-in-a-loop")[1]
    assert graph.nodes["thrower"][:2] == (2000, 1000)
    assert graph.edges == {("main", "jumps_in_a_loop"): 1, ("jumps_in_a_loop", "thrower"): 1000,
                           ("thrower", "thrower"): 1000, ("jumps_in_a_loop", "leaf"): 1}


def test_threads_that_are_cancelled_amid_a_hook_leave_what_counts_rightly(record):
    graph = record("cancelled", "60")[1]
    assert graph.calls("until_cancelled") == 60
    for name in "middle", "leaf":
        calls, primitive, own, total = graph.nodes[name]
        assert 0 <= calls - primitive <= 60 and calls > 1000  # of each thread one may be counted by half
        assert total >= 0.9 * own


def test_a_child_may_go_back_into_the_hook_that_its_fork_interrupted(record):
    got, graph = record("forks-in-handlers", "40")
    assert (got.status, got.stdout) == (0, "done\n")
    assert graph.calls("middle") > 0


def test_signal_handlers_are_in_it_and_nothing_is_lost(record):
    graph = record("handlers")[1]
    assert graph.calls("leaf") == 2000000
    assert graph.calls("middle") == 200
    assert graph.calls("in_handler") == graph.calls("on_timer") > 0


def test_children_of_forks_are_added_up(record):
    graph = record("children")[1]
    assert graph.calls("middle") == 4
    assert graph.calls("leaf") == 3 * 7 + 5
    assert graph.calls("main") == 1


def test_what_is_true_of_many_processes_is_said_once(record):
    graph = record("leaving", "5")[1]
    assert graph.calls("middle") == 5
    assert len(graph.notes) == 1
    assert graph.notes[0].startswith("5 processes (the first is ") and "called _exit" in graph.notes[0]


def test_a_killed_program_keeps_its_calls(record):
    got, graph = record("killed")
    assert got.status == 128 + 9
    assert graph.calls("leaf") == 50
    assert graph.nodes["slow_leaf"][3] >= 0.02
    assert graph.nodes["main"][3] >= graph.nodes["slow_leaf"][3]
    assert "was killed" in graph.notes[0]


def test_a_program_that_was_not_compiled_so_is_told_what_to_do(assay, targets):
    got = assay("profile", "--instrument", "--no-probe", "-o", "out", "--", targets("spin"), "1")
    assert "no function was recorded: compile the program with -finstrument-functions" in got.stderr
    assert not (got.run_dir / "calls.graph").exists()


def test_recordings_of_a_killed_assay_are_made_a_graph_later(assay, targets, tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_INSTRUMENT": str(folder)})
    subprocess.run([targets("instrumented"), "calls"], env=env, check=True, stdout=subprocess.DEVNULL, timeout=300)
    got = assay("profile", "--instrument", "-q", folder)
    assert (got.status, got.stdout, got.stderr) == (0, "", "")
    assert Graph(folder / "calls.graph").calls("leaf") == 1001


def test_recover_makes_the_graph_of_a_killed_run(assay, program, targets, tmp_path):
    script = f'{targets("instrumented")} calls; exec sleep 60'
    process = subprocess.Popen([program, "profile", "--instrument", "--no-probe", "-q", "-o", "out", "--", "sh", "-c",
                                script], cwd=tmp_path, env=environment({}), stdout=subprocess.PIPE,
                               start_new_session=True)
    try:
        assert process.stdout.readline() == b"done\n"
        process.kill()
        process.wait()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
    out = tmp_path / "out"
    pids = {file.name.split("-")[1] for file in (out / "segments" / "calls").iterdir()}
    wait_for(lambda: not any(is_running(pid) for pid in pids), "the shell's end")
    assert not (out / "calls.graph").exists()
    got = assay("recover", "-q", "out")
    assert (got.status, got.stderr) == (0, "")
    assert Graph(out / "calls.graph").calls("leaf") == 1001
    assert not (out / "segments" / "calls").exists()
    again = assay("recover", "-q", "out")
    assert again.status == 2 and "nothing is missing" in again.stderr


def test_damaged_recordings_are_told_of(assay, targets, tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_INSTRUMENT": str(folder)})
    subprocess.run([targets("instrumented"), "threads", "3"], env=env, check=True, stdout=subprocess.DEVNULL,
                   timeout=300)
    thread = next(folder.glob("calls-*.1"))
    os.truncate(thread, 4100)
    assert assay("profile", "--instrument", "-q", folder).stderr == ""
    got = assay("profile", "--instrument", folder)
    assert got.status == 0
    assert f"{thread}: this thread's calls are damaged" in got.stderr


@pytest.mark.parametrize("compiler,language", [("cc", "c"), ("c++", "c++")])
def test_the_library_s_own_header_brings_no_calls(compiler, language):
    need(compiler, shutil.which(compiler), "there is no such compiler")
    source = "#include <assay.h>\nvoid work(void);\nvoid work(void)\n{\n\tASSAY_SCOPE(\"work\");\n}\n"
    made = subprocess.run([compiler, "-x", language, "-", "-S", "-O0", "-finstrument-functions", "-I", ROOT / "include",
                           "-o", "-"], input=source, check=True, capture_output=True, text=True)
    calls = [line.split()[0] for line in made.stdout.splitlines() if "__cyg_profile_func_enter" in line]
    assert len(calls) == 1


def test_a_folder_without_recordings_is_an_error(assay, tmp_path):
    got = assay("profile", "--instrument", tmp_path)
    assert (got.status, got.stdout) == (2, "")
    assert "no process has loaded libassay.so" in got.stderr


@pytest.mark.parametrize("option", ["--by=line", "--hz=10", "--focus=main", "--group=load", "--top=3"])
def test_options_about_samples_are_refused(option, assay):
    got = assay("profile", "--instrument", option, "--", "true")
    assert got.status == 2
    assert got.stderr.startswith(f"assay profile: option '{option.split('=')[0]}' is about CPU samples")


def test_a_limit_of_file_sizes_does_not_end_the_program(assay, targets, tmp_path):
    folder = tmp_path / "calls"
    folder.mkdir()
    env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_INSTRUMENT": str(folder)})
    done = subprocess.run(["sh", "-c", f"ulimit -f 100; exec {targets('instrumented')} calls"], env=env, check=False,
                          capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n")
    got = assay("profile", "--instrument", folder)
    assert got.status == 2
    assert "File too large" in got.stderr


def test_changed_programs_give_no_names(assay, targets, tmp_path):
    folder, program = tmp_path / "calls", tmp_path / "program"
    folder.mkdir()
    shutil.copy(targets("instrumented"), program)
    env = environment({"LD_PRELOAD": str(LIBRARY), "ASSAY_INSTRUMENT": str(folder)})
    subprocess.run([program, "calls"], env=env, check=True, stdout=subprocess.DEVNULL, timeout=300)
    os.utime(program, (1, 1))
    got = assay("profile", "--instrument", folder)
    assert "its functions have no names" in got.stderr
    names = Graph(folder / "calls.graph").names
    assert len(names) == 8 and all(name.startswith("program!?+0x") for name in names)
