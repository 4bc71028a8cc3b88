"""Paired comparisons for the benchmarks: the order of the runs, and an interval that assumes nothing about their noise.

Pure functions: nothing here runs a program or prints.
"""
import math
import statistics


def mirrored_order(arms, coin):
    """One block: every arm twice, so that a steady drift of the machine falls on all arms alike. The first two arms
    stay neighbours; alone they make ABBA or BAAB."""
    head, others = list(arms[:2]), list(arms[2:])
    coin.shuffle(head)
    coin.shuffle(others)
    place = coin.randrange(len(others) + 1)
    half = others[:place] + head + others[place:]
    return half + half[::-1]


def sign_rank(count, confidence):
    """The largest k for which [k-th smallest, k-th largest] of `count` values covers the median with this confidence:
    P(Binomial(count, 1/2) < k) <= (1 - confidence) / 2. 0 where there are too few values."""
    allowed = (1 - confidence) / 2
    below, k = 0.0, 0
    while k <= count:
        below += math.comb(count, k) / 2**count
        if below > allowed:
            break
        k += 1
    return k


def median_interval(values, confidence=0.95):
    """(median, low, high): the exact interval of the sign test. low and high are None below 6 values at 95%."""
    ordered = sorted(values)
    if not ordered:
        return None, None, None
    k = sign_rank(len(ordered), confidence)
    if k == 0:
        return statistics.median(ordered), None, None
    return statistics.median(ordered), ordered[k - 1], ordered[-k]


def ratios(numerators, denominators):
    return [a / b for a, b in zip(numerators, denominators) if b > 0]


def differences(minuends, subtrahends):
    return [a - b for a, b in zip(minuends, subtrahends)]
