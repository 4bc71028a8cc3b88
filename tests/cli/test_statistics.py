"""The judge's statistics beside numpy's, and what its intervals claim to cover beside what they cover."""
import json
import math
import random
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT
from need import need

sys.path.insert(0, str(ROOT / "bench"))
import false_alarms  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

SIZES = [1, 2, 5, 6, 7, 8, 11, 12, 20, 33, 60, 101, 500]


def judged(samples):
    text = "".join(" ".join(repr(float(x)) for x in sample) + "\n" for sample in samples)
    got = subprocess.run([BUILD / "tests" / "targets" / "target_statistics"], input=text, stdout=subprocess.PIPE,
                         text=True, check=True, timeout=120)
    return [json.loads(line) for line in got.stdout.splitlines()]


def below(count, k):
    return sum(math.comb(count, i) for i in range(k)) / 2**count


def rank(count, alpha):
    return max(k for k in range(count // 2 + 1) if below(count, k) <= alpha / 2)


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-14)


@pytest.fixture(scope="module")
def samples():
    need("numpy", numpy, "numpy is not installed")
    coin = numpy.random.default_rng(7)
    found = []
    for n in SIZES:
        found += [coin.normal(0.01, 0.02, n), coin.standard_t(2, n), coin.lognormal(0, 1, n),
                  numpy.round(coin.normal(0, 1, n)), 1e9 + coin.random(n)]
    return found


def test_figures_of_a_sample_are_those_of_numpy(samples):
    for sample, got in zip(samples, judged(samples), strict=True):
        median = numpy.median(sample)
        assert close(got["mean"], numpy.mean(sample))
        assert close(got["median"], median) and close(got["middle"], median)
        assert close(got["q05"], numpy.quantile(sample, 0.05)) and close(got["q75"], numpy.quantile(sample, 0.75))
        assert close(got["mad"], numpy.median(numpy.abs(sample - median)))
        if len(sample) > 1:
            assert math.isclose(got["deviation"], numpy.std(sample, ddof=1), rel_tol=1e-9)
        else:
            assert got["deviation"] is None


def test_drift_is_the_correlation_of_ranks(samples):
    compared = 0
    for sample, got in zip(samples, judged(samples), strict=True):
        distinct, place, counts = numpy.unique(sample, return_inverse=True, return_counts=True)
        if len(distinct) < 2:
            assert got["drift"] == 0
            continue
        ranks = (numpy.cumsum(counts) - (counts - 1) / 2)[place]
        assert close(got["drift"], numpy.corrcoef(ranks, numpy.arange(len(sample)))[0, 1])
        compared += 1
    assert compared > len(SIZES)


def test_the_interval_of_a_paired_comparison_is_between_the_order_statistics(samples):
    # exp() of the others would leave the range of a double
    for sample, got in ((s, g) for s, g in zip(samples, judged(samples), strict=True) if abs(s).max() < 700):
        ordered, n = numpy.sort(sample), len(sample)
        assert close(got["ratio"], math.exp(numpy.median(sample)))
        for alpha, low, high in ((0.05, "low", "high"), (0.1, "equivalence_low", "equivalence_high")):
            k = rank(n, alpha)
            if rank(n, 0.05) == 0:
                assert got[low] is None and got[high] is None
                assert got["verdict"] == "too few pairs"
            else:
                assert close(got[low], math.exp(ordered[k - 1])) and close(got[high], math.exp(ordered[n - k]))
        less, more = (sample < 0).sum(), (sample > 0).sum()
        fewer = int(min(less, more) + (n - less - more + 1) // 2)
        assert close(got["p"], min(1, 2 * below(n, fewer + 1)))


@pytest.mark.parametrize("draw", ["normal", "heavy", "skewed"])
def test_the_interval_covers_the_median_as_often_as_it_says(draw):
    """The exact share, 1 - 2 P(Bin(n, 1/2) < k), is met within 4 standard errors of 4,000 samples."""
    need("numpy", numpy, "numpy is not installed")
    coin = numpy.random.default_rng(11)
    for n in (8, 20, 60):
        shape = (4000, n)
        sample = {"normal": coin.normal(0, 0.02, shape), "heavy": 0.01 * coin.standard_t(2, shape),
                  "skewed": coin.exponential(0.02, shape) - 0.02 * math.log(2)}[draw]
        share = sum(got["low"] <= 1 <= got["high"] for got in judged(sample)) / len(sample)
        wanted = 1 - 2 * below(n, rank(n, 0.05))
        assert abs(share - wanted) < 4 * math.sqrt(wanted * (1 - wanted) / len(sample))
        assert wanted >= 0.95


def test_nothing_is_printed_that_is_no_number():
    coin = random.Random(3)
    values = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 1, -1, 1454, -1454]
    for got in judged([coin.choices(values, k=n) for n in range(40) for _ in range(20)]):
        for value in got.values():
            assert value is None or isinstance(value, str) or math.isfinite(value)


def test_no_rule_raises_more_false_alarms_than_it_may():
    """The simulation of docs/statistics.md, of 400 trials a row in place of 40,000: the same ones each time."""
    got = subprocess.run([sys.executable, "-B", ROOT / "bench" / "false_alarms.py", "--program",
                          BUILD / "bench" / "bench_false_alarms", "--trials", "400"],
                         stdout=subprocess.PIPE, text=True, timeout=600)
    assert got.returncode == 0, got.stdout
    assert got.stdout.count(", met\n") == 5


def simulated(null_claims, found):
    lines = [f"drift\t{change}\t{pairs}\t{rule}\t100\t{claims}\t0\t2000"
             for change, claims in ((0, null_claims), (0.03, found))
             for pairs, rule in (("20", "paired"), ("20", "separation"), ("8-60", "sequential"))]
    return [met for _, _, met in false_alarms.goals(false_alarms.parse(lines))]


def test_a_goal_of_the_simulation_can_be_missed():
    assert simulated(null_claims=5, found=95) == [True] * 5
    assert simulated(null_claims=6, found=95) == [False, True, False, True, True]
    assert simulated(null_claims=5, found=94) == [True, True, True, True, False]
