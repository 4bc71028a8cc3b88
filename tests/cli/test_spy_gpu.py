"""Memory of GPUs over time, from a stand-in for the library of NVIDIA's driver: assay spy --gpu and cuda=True."""
import csv
import json
import re
import sys

import pytest
from conftest import BUILD, ROOT
from test_gpu import STAND_IN, WITH_DRIVER, answers, assay_with_gpu  # noqa: F401 (fixtures)

MIB = 1 << 20
ANSWERS = f"""\
count 2
gpu.0.name First GPU
gpu.0.memory {1000 * MIB} {900 * MIB} {100 * MIB}
gpu.1.name Second GPU
gpu.1.memory {1000 * MIB} {950 * MIB} {50 * MIB}
"""
# Waits for two readings of each value that the first GPU is said to have.
GROW = f"""
calls() {{ grep -c memory "$ASSAY_TEST_NVML.calls"; }}
wait_for_two() {{ before=$(calls); until [ "$(calls)" -gt $((before + 4)) ]; do sleep 0.02; done; }}
set_used() {{ sed "s/^gpu.0.memory.*/gpu.0.memory {1000 * MIB} 0 $1/" "$ASSAY_TEST_NVML" > new
	mv new "$ASSAY_TEST_NVML"; wait_for_two; }}
wait_for_two; set_used {700 * MIB}; set_used {200 * MIB}
"""


def test_each_gpu_is_a_row_a_column_a_list_and_a_line(assay_with_gpu, answers, tmp_path):  # noqa: F811
    got = assay_with_gpu("spy", "--gpu", "--json=f.json", "--csv", "f.csv", "--plot", "f.svg", "--", "sh", "-c", GROW,
                         env=answers(ANSWERS))
    assert got.status == 0, got
    figures = json.loads((tmp_path / "f.json").read_text())
    first, second = figures["gpus"]
    assert (first["name"], second["name"]) == ("First GPU", "Second GPU")
    assert [first[key] for key in ("begin", "end", "peak")] == [100 * MIB, 200 * MIB, 700 * MIB]
    assert [second[key] for key in ("begin", "end", "peak", "average")] == [50 * MIB] * 4
    assert not [text for text in figures["warnings"] if "gpu" in text.lower()]
    with open(tmp_path / "f.csv") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0])[-2:] == ["gpu0", "gpu1"]
    values = [int(row["gpu0"]) for row in rows if row["gpu0"]]
    assert len(values) == first["n"] and set(values) == {100 * MIB, 200 * MIB, 700 * MIB}
    assert re.search(r"\n  gpu0 +100 MiB +200 MiB +700 MiB ", got.stderr), got
    assert "\n  gpu1 is Second GPU, used by all programs on it\n" in got.stderr
    figure = (tmp_path / "f.svg").read_bytes()
    plain = assay_with_gpu("spy", "-q", "--plot", "plain.svg", "--", "true", env=answers(ANSWERS))
    assert plain.status == 0, plain
    height = re.compile(rb'<svg[^>]* height="([0-9.]+)')
    panel = float(height.search(figure)[1]) - float(height.search((tmp_path / "plain.svg").read_bytes())[1])
    assert panel > 50  # the GPUs have one of their own


def test_a_library_that_does_not_work_is_told(assay_with_gpu, answers):  # noqa: F811
    got = assay_with_gpu("spy", "--gpu", "--until", "0.1", "1", env=answers("init error 18\n"))
    assert (got.status, got.stdout) == (2, "")
    assert got.stderr == ("assay spy: the memory of GPUs cannot be read: libnvidia-ml.so.1: nvmlInit_v2: "
                          "Driver/library version mismatch (18)\n")


def test_python_gives_a_monitor_for_each_gpu(assay, assay_with_gpu, answers, tmp_path):  # noqa: F811
    library = BUILD / "libassay.so"
    if any(name in library.read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        pytest.skip("plain-build: a sanitizer's runtime cannot come late")
    env = answers(ANSWERS)
    # The spy gets nothing of its host's environment but LD_LIBRARY_PATH.
    wrapper = tmp_path / "assay-spy"
    wrapper.write_text(f"#!/bin/sh\nexport ASSAY_TEST_NVML='{env['ASSAY_TEST_NVML']}'\n"
                       f"exec '{BUILD / 'assay-spy'}' \"$@\"\n")
    wrapper.chmod(0o755)
    code = ("import assay, json, time\n"
            "p = assay.start_spying_on(cuda=True)\n"
            "time.sleep(0.1)\n"
            "stat = p.stop()\n"
            "print(json.dumps([list(stat), [gpu.to_dict(2**20) for gpu in stat.gpus], stat['gpus'] is stat.gpus]))\n")
    got = assay("-rm", "sh", "-c", WITH_DRIVER, "sh", sys.executable, "-c", code, executable="/usr/bin/unshare",
                env={**env, "PYTHONPATH": str(ROOT / "python"), "ASSAY_LIBRARY": str(library),
                     "LD_LIBRARY_PATH": str(STAND_IN), "ASSAY_SPY_HELPER": str(wrapper),
                     "PYTHONDONTWRITEBYTECODE": "1"})
    assert got.status == 0, got
    keys, gpus, same = json.loads(got.stdout)
    assert keys == ["cpu", "gpus"] and same
    assert [[gpu[key] for key in ("begin", "end", "peak", "mean")] for gpu in gpus] == [[100] * 4, [50] * 4]
    assert all(gpu["n"] >= 2 for gpu in gpus)
