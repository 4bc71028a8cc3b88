"""What users of the library see: the header in each language, the symbols, pkg-config once it is installed."""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from conftest import BUILD, ROOT, environment
from need import need

CONSUMER = ROOT / "tests" / "public" / "consumer.c"
REGIONS = ROOT / "tests" / "public" / "regions.c"
GRAPH = ROOT / "tests" / "public" / "graph.c"
MEASURE = ROOT / "tests" / "public" / "measure.c"
EXCEPTIONS = ROOT / "tests" / "public" / "exceptions.cc"
LIBRARY = BUILD / "libassay.so"
SILENT = "0.1.0 -1 nothing is being recorded: ASSAY_MARKERS is not set\n"


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300, **options).stdout


def symbols(kind):
    return [line.split()[-1] for line in output("nm", "-D", kind, LIBRARY).splitlines()]


def sanitizers():
    """Who links with a library that was built with AddressSanitizer has to bring it along."""
    return ["-fsanitize=address,undefined"] if any("__asan" in name for name in symbols("--undefined-only")) else []


def run(program, library_dir, markers=None):
    return output(program, env=environment({"LD_LIBRARY_PATH": str(library_dir), "ASSAY_MARKERS": markers}))


STANDARDS = pytest.mark.parametrize("compiler,language,standard", [
    ("cc", "c", "c99"), ("cc", "c", "c17"), ("c++", "c++", "c++98"), ("c++", "c++", "c++20"),
])


def compile_strictly(compiler, language, standard, source, program, *more):
    need(compiler, shutil.which(compiler), "there is no such compiler")
    warnings = ["-Wall", "-Wextra", "-Wshadow", "-pedantic-errors", "-Werror"]
    if language == "c":
        warnings += ["-Wstrict-prototypes", "-Wmissing-prototypes"]
    output(compiler, "-x", language, f"-std={standard}", *warnings, *more, "-I", ROOT / "include", source, "-x", "none",
           LIBRARY, *sanitizers(), "-o", program)


@STANDARDS
def test_the_header_is_clean_in(compiler, language, standard, tmp_path):
    compile_strictly(compiler, language, standard, CONSUMER, tmp_path / "consumer")
    assert run(tmp_path / "consumer", BUILD) == SILENT
    (tmp_path / "markers.log").touch()
    assert run(tmp_path / "consumer", BUILD, str(tmp_path / "markers.log")) == "0.1.0 0 \n"
    assert re.fullmatch(r"\d+ load\n", (tmp_path / "markers.log").read_text())


@STANDARDS
def test_regions_are_recorded_from(compiler, language, standard, tmp_path):
    compile_strictly(compiler, language, standard, REGIONS, tmp_path / "regions")
    folder = tmp_path / "recording"
    folder.mkdir()
    env = environment({"LD_LIBRARY_PATH": str(BUILD), "ASSAY_DIR": str(folder)})
    assert output(tmp_path / "regions", env=env) == "3 3 1\n"
    table = b"".join(path.read_bytes() for path in folder.glob("regions-*.table"))
    for name in (b"outer", b"inner", b"left", b"right", b"nested", b"plain", b"tagged", b"made at run time", b"found"):
        assert b"\0" + name + b"\0" in table, name
    assert sorted(path.suffix for path in folder.iterdir()) == [".0", ".table"]


@STANDARDS
def test_disabled_regions_leave_nothing_in(compiler, language, standard, tmp_path):
    compile_strictly(compiler, language, standard, REGIONS, tmp_path / "regions", "-DASSAY_DISABLE")
    env = environment({"LD_LIBRARY_PATH": str(BUILD), "ASSAY_DIR": str(tmp_path)})
    assert output(tmp_path / "regions", env=env) == "0 0 0\n"
    assert not list(tmp_path.glob("regions-*"))
    used = {line.split()[-1] for line in output("nm", "--undefined-only", tmp_path / "regions").splitlines()}
    assert not [name for name in used if name.startswith("assay")]


@STANDARDS
@pytest.mark.parametrize("more", [[], ["-DASSAY_DISABLE"]])
def test_functions_and_blocks_are_timed_in(compiler, language, standard, more, tmp_path):
    compile_strictly(compiler, language, standard, MEASURE, tmp_path / "measure", "-O2", *more)
    calls, verdicts, warning = run(tmp_path / "measure", BUILD).splitlines()
    # 10 batches of 50 and the warm-up; a block left in its 7th and one in its 120th execution, after 2 batches.
    assert calls == "0 501 501 7 120 2"
    assert verdicts == "1 1 1", "a kept value takes time, one of a hidden input as well, one that nobody wants does not"
    assert warning.startswith("it takes no longer than an empty loop")


@pytest.mark.parametrize("standard", ["c++98", "c++20"])
def test_exceptions_end_regions(standard, tmp_path):
    compile_strictly("c++", "c++", standard, EXCEPTIONS, tmp_path / "exceptions")
    folder = tmp_path / "recording"
    folder.mkdir()
    output(tmp_path / "exceptions", env=environment({"LD_LIBRARY_PATH": str(BUILD), "ASSAY_DIR": str(folder)}))
    data = next(folder.glob("regions-*.0")).read_bytes()
    start, (committed,) = struct.unpack_from("I", data, 20)[0], struct.unpack_from("Q", data, 56)
    events = [struct.unpack_from("=QQIHBB", data, at) for at in range(start, committed, 24)]
    depths = [depth for _, _, _, depth, flags, kind in events if kind == 0 and flags == 0]
    # Five frames of the thrower inside main, innermost first, then what caught it; last of all main.
    assert depths == 10 * [5, 4, 3, 2, 1, 1] + [0]
    assert struct.unpack_from("10Q", data, 512 + 40) == (0,) * 10


@STANDARDS
def test_calls_are_profiled_from_within_in(compiler, language, standard, tmp_path):
    compile_strictly(compiler, language, standard, GRAPH, tmp_path / "graph", "-O1", "-g", "-finstrument-functions")
    env = environment({"LD_LIBRARY_PATH": str(BUILD), "ASSAY_PROGRAM": str(BUILD / "assay")})
    printed = output(tmp_path / "graph", tmp_path / "saved.graph", env=env).splitlines()
    assert printed == ["work 1 1 0 1", "calls 1000", "2 2", "1 0", "1", "nested -1"]


def test_profiling_without_the_program_says_what_is_missing(tmp_path):
    compile_strictly("cc", "c", "c17", GRAPH, tmp_path / "graph", "-O1", "-finstrument-functions")
    env = environment({"LD_LIBRARY_PATH": str(BUILD), "ASSAY_PROGRAM": "/nonexistent/assay", "TMPDIR": str(tmp_path)})
    done = subprocess.run([tmp_path / "graph", tmp_path / "saved.graph"], env=env, capture_output=True, text=True,
                          check=False, timeout=300)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == ("1000: the program assay, which finds the names of functions, could not be run: install it, "
                           "or set ASSAY_PROGRAM to its path\n")
    assert [path.name for path in tmp_path.iterdir()] == ["graph"]


def test_the_library_exports_what_the_header_declares_and_nothing_else():
    headers = (ROOT / "include/assay.h").read_text().split("#else /* ASSAY_DISABLE")[0]
    headers += "".join(path.read_text() for path in (ROOT / "include").glob("assay_*.h"))
    header = re.sub(r"/\*.*?\*/", "", headers, flags=re.S)
    declared = re.findall(r"^(?:ASSAY_DIRECTLY )?[a-z][^\n{(]*\b(assay_\w+)\([^;{]*\);", header, flags=re.M)
    # What the compiler calls in programs that are built with -finstrument-functions.
    declared += ["__cyg_profile_func_enter", "__cyg_profile_func_exit"]
    assert sorted(symbols("--defined-only")) == sorted(declared)


def test_the_library_needs_the_c_library_only():
    if sanitizers():
        pytest.skip("plain-build: a sanitizer's library needs its runtime, too")
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-d", LIBRARY))
    assert [name for name in needed if not name.startswith(("libc.so", "libm.so", "ld-linux", "ld64"))] == []


def test_an_installed_library_is_found_by_pkg_config(tmp_path):
    for tool in ("pkg-config", "meson"):
        need(tool, shutil.which(tool), "there is no such program")
    destdir = tmp_path / "root"
    output("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", destdir)
    description = next(destdir.rglob("assay.pc"))
    library_dir = next(destdir.rglob("libassay.so")).parent
    env = {**os.environ, "PKG_CONFIG_PATH": str(description.parent), "PKG_CONFIG_SYSROOT_DIR": str(destdir)}
    assert output("pkg-config", "--modversion", "assay", env=env) == "0.1.0\n"
    flags = output("pkg-config", "--cflags", "--libs", "assay", env=env).split()
    output("cc", "-std=c99", "-Wall", "-Werror", CONSUMER, *flags, *sanitizers(), "-o", tmp_path / "consumer")
    assert run(tmp_path / "consumer", library_dir) == SILENT
