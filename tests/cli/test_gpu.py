"""GPUs: silence on machines without one, and a run with a stand-in for the library of NVIDIA's driver."""
import os
import shutil
import subprocess

import pytest
from conftest import BUILD
from need import need

STAND_IN = BUILD / "tests" / "targets"
# The driver shows itself by a file below /proc/driver, which a mount namespace of the test's own can have.
WITH_DRIVER = ("mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && "
               "echo a test > /proc/driver/nvidia/version && exec \"$@\"")
ANSWERS = """\
count 1
gpu.0.name Test GPU
gpu.0.utilization 80 40
gpu.0.memory 1000 400 600
gpu.0.power 250000
gpu.0.generation 4
gpu.0.width 16
gpu.0.rx 3000000
gpu.0.tx 1000
gpu.0.throttle 0x4
gpu.0.processes 24
"""
# Says that it uses the GPU, and ends when that has been read, and the link in both directions.
TARGET = """
calls() { grep -c "$1" "$ASSAY_TEST_NVML.calls"; }
before=$(calls processes)
sed "s/processes 24/& $$ 123456/" "$ASSAY_TEST_NVML" > new
mv new "$ASSAY_TEST_NVML"
until [ "$(calls processes)" -gt $((before + 1)) ] && [ "$(calls tx)" -gt 1 ]; do sleep 0.1; done
"""


def has_driver():
    return any(map(os.path.exists, ("/proc/driver/nvidia/version", "/sys/module/nvidia", "/sys/class/misc/dxg")))


@pytest.fixture
def answers(tmp_path):
    """answers(TEXT): what the stand-in says. Returns the variables with which a program finds it."""

    def write(text):
        path = tmp_path / "answers"
        path.write_text(text)
        return {"LD_LIBRARY_PATH": str(STAND_IN), "ASSAY_TEST_NVML": str(path)}

    return write


@pytest.fixture
def assay_with_gpu(program, assay):
    """As `assay`, where the driver seems to be loaded."""
    unshare = shutil.which("unshare")
    need("mountns", unshare, "unshare is not installed")
    tried = subprocess.run([unshare, "-rm", "sh", "-c", WITH_DRIVER, "sh", "true"], capture_output=True, text=True)
    need("mountns", tried.returncode == 0, f"no mount namespace can be made: {tried.stderr.strip()}")

    def run(*args, env):
        return assay("-rm", "sh", "-c", WITH_DRIVER, "sh", program, *args, env=env, executable=unshare)

    return run


def warnings_of(run_json):
    return [warning["text"] for warning in run_json["warnings"]]


def test_a_machine_without_a_gpu_is_not_warned_of_it(assay, answers, tmp_path):
    if has_driver():
        pytest.skip("gpu: this machine has one")
    env = answers(ANSWERS)
    got = assay("run", "-o", "run", "--", "true", env=env)
    assert got.status == 0
    assert not [text for text in warnings_of(got.run_json) if "gpu" in text.lower()]
    assert not (tmp_path / "answers.calls").exists(), "the library was opened"


def test_doctor_says_why_there_is_none(assay):
    if has_driver():
        pytest.skip("gpu: this machine has one")
    assert "no driver of NVIDIA is loaded" in assay("doctor").stdout


def test_figures_of_the_gpu_are_in_the_timeline(assay_with_gpu, answers, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py: python3-h5py is not installed")
    if not (BUILD / "assay-hdf5.so").exists():
        need("hdf5", False, "assay was built without HDF5")
    env = answers(ANSWERS)
    got = assay_with_gpu("run", "-o", "run", "--", "sh", "-c", TARGET, env=env)
    assert got.status == 0, got
    with h5py.File(tmp_path / "run" / "timeline.h5") as timeline:
        series = {name: group["v"][-1] for name, group in timeline["series"].items() if name.startswith("gpu.")}
        assert timeline["series/gpu.0.power"].attrs["scope"] in ("gpu 0 Test GPU", b"gpu 0 Test GPU")
    assert series == {
        "gpu.0.utilization": 0.8,
        "gpu.0.memory_utilization": 0.4,
        "gpu.0.memory.used": 600,
        "gpu.0.memory.target": 123456,
        "gpu.0.power": 250,
        "gpu.0.pcie.peak": 16 * 1969e6,
        "gpu.0.pcie.rx": 3e9,
        "gpu.0.pcie.tx": 1e6,
        "gpu.0.throttle.power": 1,
        "gpu.0.throttle.thermal": 0,
    }
    assert not [text for text in warnings_of(got.run_json) if "GPU" in text or "gpu" in text]


def test_a_library_that_does_not_work_is_warned_of(assay_with_gpu, answers):
    got = assay_with_gpu("run", "-o", "run", "--", "true", env=answers("init error 18\n"))
    assert got.status == 0, got
    assert ("Not observed, gpu: libnvidia-ml.so.1: nvmlInit_v2: Driver/library version mismatch (18)."
            in warnings_of(got.run_json))


def test_a_driver_without_its_library_is_no_warning(assay_with_gpu, answers):
    if subprocess.run(["ldconfig", "-p"], capture_output=True, text=True).stdout.find("libnvidia-ml.so.1") >= 0:
        pytest.skip("gpu: this machine has the library")
    env = {**answers(ANSWERS), "LD_LIBRARY_PATH": None}
    got = assay_with_gpu("run", "-o", "run", "--", "true", env=env)
    assert got.status == 0, got
    assert not [text for text in warnings_of(got.run_json) if "gpu" in text.lower()]
    assert "libnvidia-ml.so.1: cannot open shared object file" in assay_with_gpu("doctor", env=env).stdout
