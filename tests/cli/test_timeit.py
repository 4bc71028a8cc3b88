"""assay timeit: C statements and functions of libraries, measured and compared."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from conftest import environment
from need import need

FEW = ("-r", "6", "-n", "1000")
JUDGED = ("-r", "12", "-n", "10000")  # two of twelve pairs may be spoilt by a busy machine
SLOW = "for (volatile int i = 0; i < 2000; i++) ;"
FAST = "for (volatile int i = 0; i < 200; i++) ;"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files, which is empty again after each test: nothing is left there."""
    need("cc", shutil.which("cc"), "there is no C compiler")
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def results_of(got):
    assert got.status == 0, got
    return json.loads(got.stdout)["results"]


def library(tmp_path, name, text):
    (tmp_path / f"{name}.c").write_text(text)
    path = tmp_path / f"lib{name}.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, tmp_path / f"{name}.c"], check=True)
    return path


def test_the_json_has_the_fields_of_a_timing_in_seconds(assay):
    (got,) = results_of(assay("timeit", "-n", "200", "-r", "8", "-I", "unistd.h", "usleep(100)", "--json"))
    assert got["statement"] == "usleep(100)"
    assert (got["number"], got["repeat"], got["batches"], got["context_size"]) == (200, 8, 8, 0)
    assert 1e-4 < got["min_exec"] <= got["low"] <= got["median"] <= got["high"] <= got["max_exec"]
    assert got["min_exec"] <= got["average"] <= got["max_exec"]
    assert got["ttime"] == pytest.approx(8 * got["average"])
    assert got["deviation"] >= 0
    assert got["warmup_time"] > 50 * 1e-4
    assert got["p05"] <= got["p25"] <= got["p75"] <= got["p95"]
    assert 0 <= got["overhead"] < 1e-6
    assert got["resolution"] > 0
    assert isinstance(got["warnings"], list)
    assert "verdict" not in got


def test_the_json_may_go_to_a_file_beside_the_text(assay, tmp_path):
    got = assay("timeit", *FEW, f"--json={tmp_path / 'out.json'}", FAST)
    assert got.status == 0, got
    assert got.stdout.startswith(FAST)
    (result,) = json.loads((tmp_path / "out.json").read_text())["results"]
    assert result["batches"] == 6
    got = assay("timeit", *FEW, "--json=no/such/file", FAST)
    assert got.status == 3
    assert got.stderr == "assay timeit: --json: no/such/file: No such file or directory\n"
    assert got.stdout.startswith(FAST)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_gcc_calls_a_function_of_a_constant_unless_the_flags_are_the_users(assay, tmp_path, compiler):
    need(compiler, shutil.which(compiler), f"{compiler} is not installed")
    (tmp_path / "cc").symlink_to(shutil.which(compiler))
    base = ["timeit", "-n", "100000", "-r", "6", "--cc", "./cc", "-I", "math.h", "-l", "m", "--json"]
    (called,) = results_of(assay(*base, "ASSAY_KEEP(cos(0.5))"))
    assert (called["median"] > 1e-9) == (compiler == "gcc")
    (reckoned,) = results_of(assay(*base, "--cflags", "-O2", "ASSAY_KEEP(cos(0.5))"))
    assert reckoned["median"] < 1e-9
    assert any("ASSAY_HIDE(input) hides an input from the compiler" in text for text in reckoned["warnings"])
    (hidden,) = results_of(assay(*base, "--cflags", "-O2", "ASSAY_KEEP(cos(ASSAY_HIDE(0.5)))"))
    assert hidden["median"] > 1e-9


def test_an_empty_statement_leaves_nothing(assay):
    (got,) = results_of(assay("timeit", "", "--json"))
    assert got["median"] <= 0.3e-9
    assert any("ASSAY_KEEP" in text for text in got["warnings"]) == (got["median"] <= 0.5 * got["overhead"])


def test_a_batch_is_chosen_long_enough(assay):
    (got,) = results_of(assay("timeit", "-r", "6", FAST, "--json"))
    assert got["number"] * (got["median"] + got["overhead"]) > 1e-3


def test_the_setup_runs_once_per_batch_and_its_variables_are_the_statements(assay):
    got = assay("timeit", *FEW, "-w", "0", "-I", "assert.h", "-s", "int n = 0;", "-s", "int more = 1000;",
                "n++; assert(n <= more)")
    assert got.status == 0, got


def test_each_runs_before_every_execution_and_is_not_timed(assay):
    (got,) = results_of(assay("timeit", "-n", "20", "-r", "6", "-I", "unistd.h", "-I", "assert.h",
                              "-s", "int ready = 0;", "--each", "usleep(2000); ready = 1;",
                              "assert(ready); ready = 0;", "--json"))
    assert got["median"] < 1e-3


def test_the_first_line_names_the_statement_and_the_next_its_time(assay):
    got = assay("timeit", *FEW, "-I", "unistd.h", "usleep(1)")
    first, second, *rest = got.stdout.splitlines()
    assert first == "usleep(1)"
    assert second.startswith("   time     ") and " us [" in second
    assert "   measured 6 x 1,000 executions; an empty loop of" in "\n".join(rest)
    assert got.stderr == ""


def test_a_slower_snippet_is_slower(assay):
    fast, slow = results_of(assay("timeit", *JUDGED, FAST, "--compare", SLOW, "--json", "--seed", "1"))
    assert "verdict" not in fast
    assert slow["verdict"] == "slower"
    assert slow["pairs"] == 12
    assert 1.01 < slow["interval"][0] <= slow["ratio"] <= slow["interval"][1]
    got = assay("timeit", *JUDGED, FAST, "--compare", SLOW, "--fail-on-slower")
    assert got.status == 1
    assert "slower" in got.stdout


def test_five_pairs_are_too_few(assay):
    got = assay("timeit", "-r", "5", "-n", "1000", FAST, "-c", FAST, "--fail-on-undecided")
    assert got.status == 4
    assert "too few pairs" in got.stdout


def test_max_time_has_growing_batches_until_their_total_is_beyond(assay):
    (got,) = results_of(assay("timeit", "--max-time", "0.05", SLOW, "--json"))
    assert got["repeat"] == 1
    assert got["ttime"] + got["number"] * got["overhead"] >= 0.05
    assert got["average"] == pytest.approx(got["ttime"] / got["number"], rel=1e-6)
    assert got["batches"] > 2


def test_compiler_errors_speak_of_the_users_text(assay):
    got = assay("timeit", "-s", "int a = 1;", "int b = a;\nint c = ;")
    assert got.status == 2
    assert got.stdout == ""
    assert got.stderr == ("statement:2:9: error: expected expression before ';' token\n"
                          "    int c = ;\n"
                          "            ^\n"
                          "assay timeit: 'int b = a;?int c = ;': the compiler 'cc' refuses it\n")


@pytest.mark.parametrize("args, sentence", [
    (["foo("], "statement:1:5: error: "),
    (["}"], "is there a bracket or a brace without its other half?"),
    (["-s", "int a = ", "a++"], "setup:1:9: error: "),
    (["--each", "1 +", "1"], "each:1:4: error: "),
    (["-I", "nosuch.h", "1"], "-I nosuch.h:1:10: fatal error: nosuch.h: No such file or directory"),
    (["-l", "nosuch", "1"], "-l nosuch: the linker finds no such library"),
    (["foo()"], "nothing here defines 'foo': -l names the library that does"),
    (["--cflags", "-fnosuch", "1"], "the compiler 'cc' does not work with these options"),
    (["--std", "nosuch", "1"], "refuses it"),
    (["--cc", "", "1"], "--cc: "),
    (["-n", "1.5", "1"], "option '--number': 1.5 is not a whole number"),
    ([], "no statement given"),
    (["1", "2"], "2 statements given"),
    (["--call", "f"], "--call f: of which library?"),
    (["--lib", "libm.so.6"], "--call SYMBOL names it"),
    (["--lib", "./nosuch.so", "--call", "f"], "'f': ./nosuch.so: cannot open shared object file"),
    (["--lib", "libc.so.6", "--call", "no_such_symbol"], "undefined symbol: no_such_symbol"),
    (["--lib", "libc.so.6", "--call", "getpid", "-s", "1"], "--setup goes with a statement"),
    (["--max-time", "1", "1", "-c", "2"], "--max-time is for one snippet"),
    (["--max-time", "1", "-n", "5", "1"], "--max-time chooses the batches"),
])
def test_what_cannot_be_is_said_with_status_2(assay, args, sentence):
    got = assay("timeit", *args)
    assert got.status == 2, got
    assert sentence in got.stderr
    assert got.stdout == ""
    assert "snippet_" not in got.stderr


@pytest.mark.parametrize("args, sentence", [
    (["-I", "stdlib.h", "abort()"], "'abort()': its process was ended by signal 6 (SIGABRT)\n"),
    (["*(volatile int *)0 = 1"], "ended by signal 11 (SIGSEGV)"),
    (["-I", "stdlib.h", "exit(0)"], "its process ended with status 0 before the last execution: exit() or _exit()"),
    (["-I", "unistd.h", "_exit(7)"], "its process ended with status 7 before the last execution"),
    (["break"], "it left its own loop with 1 of 1 executions to go: by break, return or goto?"),
    (["return"], "it left its own loop with 1 of 1 executions to go"),
    (["--timeout", "0.5", "while (1) ;"], "an endless loop? --timeout S waits longer"),
    (["-I", "unistd.h", "fork()"], "a process that it made went on with the loop"),
    (["-I", "assert.h", "assert(!\"odd\")"], "ended by signal 6 (SIGABRT); its last words: "),
    (["--cc", "no-such-compiler", "1"], "there is no compiler 'no-such-compiler': install one"),
])
def test_a_statement_that_ends_its_process_is_named_with_status_3(assay, args, sentence):
    got = assay("timeit", *args)
    assert got.status == 3, got
    assert sentence in got.stderr
    assert got.stdout == ""


def test_a_child_that_ends_by_itself_is_no_trouble(assay):
    got = assay("timeit", "-n", "5", "-r", "6", "-I", "unistd.h", "-I", "sys/wait.h", "if (!fork()) _exit(0); wait(0)")
    assert got.status == 0, got


def test_what_the_statement_prints_is_no_part_of_the_answer(assay):
    got = assay("timeit", *FEW, "-I", "stdio.h", "puts(\"loud\"); fputs(\"louder\", stderr)")
    assert got.status == 0
    assert "loud\n" not in got.stdout
    assert got.stderr == ""


def test_a_header_of_the_users_and_a_folder_of_headers_are_found(assay, tmp_path):
    (tmp_path / "own.h").write_text("#include <deep.h>\nstatic int one(void) { return DEEP; }\n")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "deep.h").write_text("#define DEEP 1\n")
    got = assay("timeit", *FEW, "-I", "headers", "-I", "./own.h", "ASSAY_KEEP(one())")
    assert got.status == 0, got


def test_a_library_and_its_folder_are_linked_and_found_again(assay, tmp_path):
    library(tmp_path, "own", "int own(void) { return 1; }\n")
    got = assay("timeit", *FEW, "-L", ".", "-l", "own", "-s", "int own(void);", "own()")
    assert got.status == 0, got


def test_odd_names_of_folders_and_headers_are_found(assay, tmp_path, temporary):
    folder = tmp_path / "od,d 'na\"me\\"
    folder.mkdir()
    library(folder, "own", "int own(void) { return 1; }\n")
    (folder / "ow\"n.h").write_text("int own(void);\n")
    got = assay("timeit", *FEW, "-L", folder, "-l", "own", "-I", folder / "ow\"n.h", "own()",
                env={"TMPDIR": str(folder)})
    assert got.status == 0, got
    assert sorted(path.name for path in folder.iterdir()) == ["libown.so", "ow\"n.h", "own.c"]


def test_a_backslash_at_the_end_takes_nothing_of_ours(assay):
    got = assay("timeit", *FEW, "ASSAY_KEEP(1) // \\")
    assert got.status == 0, got


def script(tmp_path, text):
    path = tmp_path / "compiler"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_compiler_that_never_stops_talking_is_heard_in_part(assay, tmp_path):
    path = script(tmp_path, "yes 'statement:1:1: error: loud' | head -n 100000 | nl >&2; exit 1")
    got = assay("timeit", "--cc", path, "1")
    assert got.status == 2
    assert got.stderr.count("error: loud") == 20
    assert " more errors are not shown)\n" in got.stderr
    assert got.stderr.endswith("does not work with these options\n")


def test_a_compiler_that_makes_nothing_is_named(assay, tmp_path):
    got = assay("timeit", "--cc", script(tmp_path, "exit 0"), "1")
    assert got.status == 2
    assert got.stderr.endswith("compiler' made no program of it, and did not say why\n")


@pytest.mark.parametrize("compiler", ["clang", "g++", "clang++"])
def test_where_functions_go_is_said(assay, compiler):
    need(compiler, shutil.which(compiler), f"{compiler} is not installed")
    got = assay("timeit", "--cc", compiler, "-s", "int f(int a) { return a + 1; }", "ASSAY_KEEP(f(1))")
    assert got.status == 2
    assert "stand outside of functions: -I vector, or -I ./mine.h with your own.\n" in got.stderr


def test_the_compiler_is_that_of_the_environment_unless_it_is_named(assay):
    assert "no compiler 'no-such'" in assay("timeit", "1", env={"CC": "no-such"}).stderr
    assert assay("timeit", *FEW, "--cc", "cc -DSEEN=1", "ASSAY_KEEP(SEEN)", env={"CC": "no-such"}).status == 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "clang++"])
def test_each_compiler_takes_snippets_and_is_heard(assay, compiler):
    need(compiler, shutil.which(compiler), f"{compiler} is not installed")
    got = assay("timeit", *FEW, "--cc", compiler, "-I", "string.h",
                "-s", "char a[64], b[64]; memset(a, 1, sizeof a); ASSAY_KEEP(&a[0]);",
                "memcpy(b, a, sizeof a); ASSAY_KEEP(&b[0]); ASSAY_CLOBBER()")
    assert got.status == 0, got
    assert got.stderr == ""
    got = assay("timeit", "--cc", compiler, "int x = ;\ty")
    assert got.status == 2
    assert "statement:1:9: error: expected" in got.stderr
    assert "    int x = ; y\n            ^\n" in got.stderr


def test_the_strictest_options_find_nothing_in_our_text(assay):
    got = assay("timeit", *FEW, "--std", "c89", "--cflags", "-O2 -Wall -Wextra -pedantic-errors -Werror -Wshadow",
                "ASSAY_CLOBBER()")
    assert got.status == 0, got
    assert got.stderr == ""


def test_functions_of_a_library_are_called_without_a_compiler(assay, tmp_path):
    path = library(tmp_path, "two", f"void fast(void) {{ {FAST} }}\nvoid slow(void) {{ {SLOW} }}\n")
    fast, slow = results_of(assay("timeit", *JUDGED, "--lib", path, "--call", "fast", "--compare", "slow", "--json",
                                  env={"CC": "no-such"}))
    assert (fast["statement"], slow["statement"]) == ("fast", "slow")
    assert slow["verdict"] == "slower"


def test_one_function_of_two_libraries_is_compared(assay, tmp_path):
    old = library(tmp_path, "old", f"void work(void) {{ {SLOW} }}\n")
    new = library(tmp_path, "new", f"void work(void) {{ {FAST} }}\n")
    _, got = results_of(assay("timeit", *JUDGED, "--lib", old, "--lib", new, "--call", "work", "--json"))
    assert got["statement"] == f"work of {new}"
    assert got["verdict"] == "faster"


def test_ctrl_c_ends_it_with_what_there_is_and_leaves_nothing(program, tmp_path, temporary):
    process = subprocess.Popen([str(program), "timeit", "-r", "100000", "-n", "1000", FAST], cwd=tmp_path,
                               env=environment({"TMPDIR": str(temporary)}), start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(temporary.glob("*/reply")):
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.endswith("assay timeit: interrupted\n")
    assert out == "" or out.startswith(FAST)


def test_a_folder_that_cannot_be_made_is_named(assay, temporary):
    got = assay("timeit", "1", env={"TMPDIR": str(temporary / "missing")})
    assert got.status == 3
    assert f"no temporary folder can be made as {temporary}/missing/assay-timeit-" in got.stderr


def test_output_that_cannot_be_written_is_trouble(assay):
    need("/dev/full", os.path.exists("/dev/full"), "this system has none")
    with open("/dev/full", "w") as full:
        got = assay("timeit", *FEW, "1", stdout=full)
    assert got.status == 3
