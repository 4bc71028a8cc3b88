"""Adds up what the parts of a test run left behind: RESULTS (lines of conftest.py and need.h) and meson's JSON logs.

Prints skips by reason and, last, 'N passed, N failed, N skipped'. Exit status 1 where anything failed or nothing ran.
"""
import collections
import json
import os
import re
import sys


def cmocka_counts(test):
    """Passed, failed and skipped of one program: of its own tests where it is cmocka's, else it counts as one."""
    text = test.get("stdout", "") + test.get("stderr", "")
    found = {word: sum(map(int, re.findall(rf"\[  {word} *\] (\d+) test", text)))
             for word in ("PASSED", "FAILED", "SKIPPED")}
    passed, failed, skipped = found["PASSED"], found["FAILED"], found["SKIPPED"]
    if test["result"] in ("OK", "EXPECTEDFAIL"):
        return (passed or not skipped, 0, skipped)
    if test["result"] == "SKIP":
        return (0, 0, 1)
    return (passed, failed or 1, skipped)


def main(results, *logs):
    passed = failed = skipped = 0
    reasons = collections.Counter()
    for log in filter(os.path.exists, logs):
        for line in open(log, encoding="utf-8", errors="replace"):
            counts = cmocka_counts(json.loads(line))
            passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    for line in open(results, encoding="utf-8") if os.path.exists(results) else ():
        kind, _, rest = line.rstrip("\n").partition(" ")
        if kind == "skip":
            reasons[rest] += 1
        elif kind == "count":
            counts = list(map(int, rest.split()))
            passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    if reasons:
        print("\nSkipped for want of:")
        for reason, count in sorted(reasons.items()):
            print(f"  {count:4}  {reason}")
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


sys.exit(main(*sys.argv[1:]))
