"""bench/sampler-cost in small: that it measures what it says. Its figures are for a quiet machine."""
import json
import pathlib
import struct
import subprocess
import sys

from conftest import BUILD

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import sampler_arms  # noqa: E402


def test_samples_in_a_file_of_gperftools_are_counted(tmp_path):
    header, stacks, trailer = [0, 3, 0, 5000, 0], [7, 2, 0x1000, 0x2000, 1, 1, 0x3000], [0, 1, 0]
    words = header + stacks + trailer
    (tmp_path / "prof").write_bytes(struct.pack(f"={len(words)}Q", *words) + b"build=/bin/true\n")
    assert sampler_arms.gperftools_counts(tmp_path / "prof") == {"samples": 8}


def test_each_arm_measures_the_target_and_counts_its_samples():
    got = subprocess.run([ROOT / "bench" / "sampler-cost.sh", "--build", BUILD, "--pairs", "2", "--slices", "150",
                          "--targets", "threads", "--no-peers", "--json"], capture_output=True, text=True, check=False)
    assert got.returncode == 0, got.stderr
    found = json.loads(got.stdout)
    runs = found["targets"]["threads"]["runs"]
    assert set(runs) == {"bare"} | {f"{arm}, {hz} Hz" for arm in ("assay's sampler", "assay run --cpu-profile")
                                    for hz in (199, 1000)}
    for arm, each in runs.items():
        assert len(each) == 2
        for run in each:
            assert run["target_cpu_s"] > 0.05
            if arm != "bare":
                assert run["dropped"] == 0
                hz = int(arm.split()[-2])
                assert abs(run["weight"] / (hz * run["target_cpu_s"]) - 1) < 0.3, (arm, run)
    assert len(found["memory"]) == 2
    for goal in found["memory"]:
        assert goal["value"]["median"] > 0
