"""The package `assay` as a Python program uses it: from the source tree with this build's library, and installed."""
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT, environment
from need import need
from test_region_library import calls

LIBRARY = BUILD / "libassay.so"


def sanitized():
    return any(mark in LIBRARY.read_bytes() for mark in (b"__asan_init", b"__tsan_init"))


@pytest.fixture
def python(tmp_path):
    """python(CODE, env={...}): what the program printed; it has to end well."""
    if sanitized():
        pytest.skip("plain-build: a sanitizer's runtime cannot come late")

    def run(code, env=None, status=0, path=ROOT / "python", **options):
        changes = {"PYTHONPATH": str(path), "ASSAY_LIBRARY": str(LIBRARY), "PYTHONDONTWRITEBYTECODE": "1",
                   **(env or {})}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300,
                              cwd=tmp_path, env=environment(changes), **options)
        assert done.returncode == status, done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


@pytest.fixture
def recorded(python, tmp_path):
    """recorded(CODE): the calls that the program made, as {region: [(depth, flags), ...]}, and the table of names."""
    folder = tmp_path / "recording"
    folder.mkdir()

    def run(code):
        python("import assay\n" + code, env={"ASSAY_DIR": str(folder)})
        names = b"".join(path.read_bytes() for path in folder.glob("regions-*.table"))
        found = {}
        for number, depth, flags in calls(folder):
            found.setdefault(number, []).append((depth, flags))
        return found, names

    return run


def test_a_statement_has_the_figures_of_the_reference(python):
    got = json.loads(python("""
import assay, json
r = assay.measure_time("x * 2", context={"x": 3}, repeat=8, number=100)
print(json.dumps(r))"""))
    assert list(got) == ["average", "deviation", "min_exec", "max_exec", "repeat", "number", "ttime", "median", "low",
                         "high", "confidence", "p05", "p25", "p75", "p95", "context_size", "warmup_time", "warnings"]
    assert got["repeat"] == 8 and got["number"] == 100
    assert 0 < got["min_exec"] <= got["low"] <= got["median"] <= got["high"] <= got["max_exec"]
    assert got["ttime"] == pytest.approx(8 * got["average"])
    assert got["context_size"] > 0 and got["warmup_time"] > 0
    assert all(isinstance(text, str) for text in got["warnings"])


def test_figures_are_those_that_numpy_gives_for_the_same_times(python):
    pytest.importorskip("numpy")
    python("""
import assay, numpy, timeit
class Fixed:
    def __init__(self, times): self.times = iter(times)
    def timeit(self, number): return next(self.times)
    def repeat(self, repeat, number): return [next(self.times) for _ in range(repeat)]
def measure(times, **options):
    from assay import measure
    measure.Timer = lambda *a, **k: Fixed(times)
    return assay.measure_time("pass", warmup=0, **options)
rng = numpy.random.default_rng(7)
for divided in (True, False):
    times = rng.uniform(1e-3, 2e-3, 25)
    res = times / 50 if divided else times
    got = measure(times, repeat=25, number=50, div_by_number=divided)
    expected = {"average": res.mean(), "deviation": res.std(), "min_exec": res.min(), "max_exec": res.max(),
                "ttime": res.sum(), "median": numpy.median(res), "p05": numpy.quantile(res, 0.05),
                "p95": numpy.quantile(res, 0.95), "low": numpy.sort(res)[7], "high": numpy.sort(res)[-8]}
    for name, value in expected.items():
        assert abs(got[name] - value) < 1e-12 * value + 1e-15, (name, got[name], value)
# By time: the batches that the reference makes of a statement of 1 ms, and its weighted figures.
times = numpy.array([1e-3, 2e-3, 32e-3, 64e-3, 32e-3])
number = numpy.array([1, 2, 32, 64, 32])
times[3] *= 1.004
got = measure(times, max_time=0.1)
mean = times.sum() / number.sum()
each = times / number
assert got["number"] == number.sum() and got["repeat"] == 1
assert abs(got["average"] - mean) < 1e-15 and abs(got["ttime"] - times.sum()) < 1e-15
assert abs(got["deviation"] - (((each - mean) ** 2 * number).sum() / number.sum()) ** 0.5) < 1e-15
""")


def test_a_callable_is_called_as_often_as_asked(python):
    assert python("""
import assay
made = []
assay.measure_time(lambda: made.append(1), repeat=3, number=7, warmup=2)
print(len(made))
made.clear()
r = assay.measure_time(lambda: made.append(1), max_time=0.01, warmup=0)
print(r["repeat"], len(made) == r["number"], r["ttime"] >= 0.01, r["warmup_time"])""") == "23\n1 True True 0.0\n"


def test_values_in_the_context_give_a_size(python):
    assert python("""
import assay
class Shaped:
    shape = (5, 3)
print(assay.measure_time("len(values)", context={"values": [1, 2, 3]}).get("size"))
r = assay.measure_time("values", context={"values": Shaped()})
print(r["size"], "context_size" in r)
r = assay.measure_time("values", context={"values": iter(())})
print("size" in r, r["context_size"] > 0)""") == "3\n5 False\nFalse True\n"


@pytest.mark.parametrize("call,error", [
    ("3", "TypeError: stmt has to be a string or callable and is a int"),
    ("'1', max_time=1, div_by_number=False", "ValueError: div_by_number must be True where max_time is given"),
    ("'1', max_time=float('nan')", "ValueError: max_time has to be a number of seconds and is nan"),
    ("'1', repeat=0", "ValueError: repeat and number have to be at least 1 and are 0 and 50"),
    ("'1', number=0", "ValueError: repeat and number have to be at least 1 and are 10 and 0"),
    ("'1', repeat=10**30", f"ValueError: repeat is {10**30}; there are at most 1,000,000 batches"),
    ("__import__('asyncio').sleep", "TypeError: stmt is an async function, whose call only makes a coroutine: "
                                    "measure lambda: asyncio.run(function())"),
    ("'1', repeat='3'", "TypeError: repeat has to be a whole number and is '3'"),
    ("'1', number=2.5", "TypeError: number has to be a whole number and is 2.5"),
    ("'1', warmup=None", "TypeError: warmup has to be a whole number and is None"),
])
def test_what_cannot_be_measured_is_refused(python, call, error):
    assert python(f"import assay; assay.measure_time({call})", status=1).splitlines()[-1] == error


def test_regions_nest_and_end_with_an_exception(recorded):
    found, names = recorded("""
@assay.region("inner")
def inner(fail):
    if fail:
        raise KeyError
    return 5
for i in range(10):
    with assay.region("outer"):
        assert inner(False) == 5
        try:
            inner(True)
        except KeyError:
            pass
assert inner.__name__ == "inner"
""")
    assert b"\0outer\0" in names and b"\0inner\0" in names
    assert sorted(found.values()) == [10 * [(0, 0)], 20 * [(1, 0)]]


def test_one_region_is_for_all_threads_and_inside_itself(recorded):
    found, _ = recorded("""
import threading
@assay.region("fall")
def fall(depth):
    return depth and fall(depth - 1)
threads = [threading.Thread(target=fall, args=(3,)) for _ in range(5)]
for t in threads: t.start()
for t in threads: t.join()
assert assay.region("fall") is assay.region("fall")
""")
    (of_fall,) = found.values()
    assert sorted(of_fall) == sorted(5 * [(0, 0), (1, 0), (2, 0), (3, 0)])


def test_coroutines_and_generators_that_overlap_are_counted_whole(recorded):
    found, _ = recorded("""
import asyncio
@assay.region("task")
async def task(n):
    await asyncio.sleep(0.001 * (5 - n))
    return n
@assay.region("numbers")
def numbers(n):
    got = yield 0
    for i in range(n):
        yield got
    return "end"
async def main():
    return await asyncio.gather(*(task(n) for n in range(5)))
assert asyncio.run(main()) == [0, 1, 2, 3, 4]
def outer():
    return (yield from numbers(1))
g = outer()
assert next(g) == 0 and g.send(7) == 7
try:
    next(g)
except StopIteration as end:
    assert end.value == "end"
left = numbers(3)
next(left)
left.close()
never = numbers(3)
""")
    assert sorted(len(of) for of in found.values()) == [2, 5]
    assert all(flags for of in found.values() for _, flags in of), "they have no parent"


def test_what_a_region_cannot_do_is_refused(python):
    assert python("""
import assay
async def values():
    yield 1
for wrong in (lambda: assay.region("x")(values), lambda: assay.region("x")(3), lambda: assay.region(3),
              lambda: assay.region([]), lambda: assay.region("a\\0b"), lambda: assay.set_mode("fast")):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print(type(error).__name__, str(error).split(":")[0])
""") == """\
TypeError values is an asynchronous generator, which no region can decorate
TypeError a region decorates functions, and this is a int
TypeError the name of a region has to be a string and is a int
TypeError the name of a region has to be a string and is a list
ValueError the name of a region holds a zero byte
ValueError 'fast' is none of the modes off, count, aggregate, trace
"""


def test_without_a_recording_a_program_runs_alike(python):
    assert python("""
import assay
with assay.region("nothing"):
    print(assay.mark("load"), assay.flush(), assay.set_mode("count"), assay.set_rank(0, 1),
          assay.set_metadata("key", "value"), assay.get_mode(), assay.directory())
assay.finalize()""") == "False False False False False off None\n"


def test_a_recording_is_begun_steered_and_ended(python, tmp_path):
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "markers").touch()
    assert python("""
import assay
assay.init("own", mode="aggregate")
print(assay.get_mode(), assay.directory().endswith("/own"))
with assay.region("some \\ud800 name"):
    pass
print(assay.set_mode("trace"), assay.set_rank(1, 4), assay.set_metadata("key", "v"), assay.flush(), assay.mark("load"))
for wrong in (lambda: assay.set_rank(4, 4), lambda: assay.init("other")):
    try:
        wrong()
    except assay.Error as error:
        print(error)
assay.finalize()
print(assay.directory())""", env={"ASSAY_MARKERS": str(tmp_path / "markers")}) == f"""\
aggregate True
True True True True True
assay_set_rank: 4 is no rank of 4
assay_init: other: regions are recorded into {tmp_path}/own already
None
"""
    assert (tmp_path / "markers").read_text().endswith(" load\n")
    assert b"\0some ? name\0" in b"".join(path.read_bytes() for path in (tmp_path / "own").glob("*.table"))


def test_a_missing_folder_is_an_error(python):
    assert python("""
import assay
try:
    assay.init("missing")
except assay.Error as error:
    print(error)""").startswith("missing: ")


def test_a_run_has_the_phases_and_regions_of_a_python_program(assay, tmp_path):
    if sanitized():
        pytest.skip("plain-build: a sanitizer's runtime cannot come late")
    code = "import assay\nassay.mark('load')\nwith assay.region('solve'): pass\nassay.mark('decode')"
    got = assay("run", "--", sys.executable, "-c", code,
                env={"PYTHONPATH": str(ROOT / "python"), "ASSAY_LIBRARY": str(LIBRARY)})
    assert got.status == 0, got
    assert [phase["name"] for phase in got.run_json["phases"]][-2:] == ["load", "decode"]
    shown = assay("inspect", got.run_dir, cwd=tmp_path)
    assert "solve" in shown.stdout, shown


def test_a_missing_library_is_one_error_that_says_where_it_was_looked_for(python, tmp_path):
    error = python("import assay", env={"ASSAY_LIBRARY": "/nowhere/libassay.so"}, status=1).splitlines()[-1]
    assert error.startswith("ImportError: libassay is not found; set ASSAY_LIBRARY to the path of libassay.so. "
                            "Looked at: /nowhere/libassay.so (")
    shutil.copytree(ROOT / "python", tmp_path / "alone" / "python")
    error = python("import assay", env={"ASSAY_LIBRARY": None}, status=1, path=tmp_path / "alone" / "python")
    assert f"{tmp_path}/alone/build/libassay.so (" in error and "; libassay.so.0 (" in error


def test_another_library_of_that_name_is_told_apart(python):
    error = python("import assay", env={"ASSAY_LIBRARY": "libc.so.6"}, status=1).splitlines()[-1]
    assert error == ("ImportError: libc.so.6 has no assay_version: it is of another version than this package; set "
                     "ASSAY_LIBRARY to the path of its own libassay.so")


def test_the_examples_of_the_documentation_run(python):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert all(sum(name in block for block in blocks) for name in ("measure_time", "assay.region", "start_spying_on"))
    lines = [line.removeprefix(">>> ") for block in blocks for line in block.splitlines()]
    got = python("import assay\ndef solve(): bytearray(100 << 20)\n" + "\n".join(lines)).splitlines()
    seen, peak = json.loads(got[0].replace("'", '"')), got[1].split()
    assert list(seen) == ["peak", "mean", "n", "begin", "end"]
    assert seen["peak"] > 100 > seen["end"]
    assert int(peak[0]) > 100 << 20 and peak[1] == "True"


def test_an_installed_package_finds_its_library(python, tmp_path):
    need("meson", shutil.which("meson"), "there is no such program")
    root = tmp_path / "root"
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--destdir", str(root)], check=True,
                   stdout=subprocess.DEVNULL, timeout=300)
    package = next(root.rglob("assay/__init__.py")).parent
    got = python("import assay._library; print(assay._library.path)", path=package.parent, env={"ASSAY_LIBRARY": None})
    assert os.path.realpath(got.strip()) == os.path.realpath(next(root.rglob("libassay.so.0")))
