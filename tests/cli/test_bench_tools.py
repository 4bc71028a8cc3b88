"""The parts of the benchmarks and the demo that can be right or wrong."""
import math
import pathlib
import random
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import pairs  # noqa: E402


@pytest.mark.parametrize("count", range(1, 40))
def test_the_rank_of_the_sign_interval_is_the_largest_that_is_confident(count):
    def miss(k):  # the probability that the median lies below the k-th smallest of count values
        return sum(math.comb(count, i) for i in range(k)) / 2**count

    k = pairs.sign_rank(count, 0.95)
    assert miss(k) <= 0.025 < miss(k + 1)


def test_fewer_than_six_pairs_have_no_interval():
    assert [pairs.sign_rank(count, 0.95) for count in range(1, 7)] == [0, 0, 0, 0, 0, 1]


def test_a_block_is_its_own_mirror_image_and_keeps_the_pair_together():
    for seed in range(50):
        order = pairs.mirrored_order(["bare", "assay", "loop", "time"], random.Random(seed))
        assert order == order[::-1]
        half = order[:4]
        assert sorted(half) == ["assay", "bare", "loop", "time"]
        assert abs(half.index("bare") - half.index("assay")) == 1


def test_the_same_options_make_the_same_model(tmp_path):
    small = ["--layers", "1", "--width", "64", "--inner", "96", "--heads", "2", "--kv-heads", "1", "--vocab", "600"]
    for name in ("a.gguf", "b.gguf"):
        subprocess.run([sys.executable, ROOT / "examples" / "random-gguf.py", *small, tmp_path / name], check=True)
    a, b = (tmp_path / "a.gguf").read_bytes(), (tmp_path / "b.gguf").read_bytes()
    assert a == b
    magic, version, tensors, pairs_of_keys = struct.unpack("<4sIQQ", a[:24])
    assert (magic, version) == (b"GGUF", 3)
    assert tensors > 9 and pairs_of_keys > 10
