"""How often each rule claims a difference where there is none, and how often it finds one that there is.

Runs bench_false_alarms, which judges made-up runs with the product's own code, one process per kind of noise, and
prints its tables in Markdown with the goals below them. Ends with 1 where a goal is not met.
"""
import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys


def run(program, *args):
    return subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def parse(lines):
    """{(noise, change, pairs): {rule: (share that claims, share beyond the margin, pairs used on average)}}"""
    rows = {}
    for line in lines:
        noise, change, pairs, rule, *counts = line.split("\t")
        trials, claimed, beyond, used = map(int, counts)
        rows.setdefault((noise, float(change), pairs), {})[rule] = (claimed / trials, beyond / trials, used / trials)
    return rows


def percent(share):
    return f"{100 * share:.1f}" if share < 0.9995 else "100"


def shown_pairs(pairs, row):
    return f"{pairs} ({row['sequential'][2]:.0f})" if "sequential" in row else pairs


def by_pairs(row):
    return row.get("paired") or row["sequential"]


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def null_rows(rows):
    for (noise, change, pairs), row in rows.items():
        if change == 0:
            yield [noise, shown_pairs(pairs, row), percent(by_pairs(row)[0]), percent(by_pairs(row)[1]),
                   *(percent(row[rule][0]) if rule in row else "" for rule in ("separation", "Welch", "Mann-Whitney"))]


def change_rows(rows, changes):
    for noise, pairs in dict.fromkeys((noise, pairs) for noise, _, pairs in rows):
        of = [rows[noise, change, pairs] for change in changes]
        if "sequential" in of[0]:
            used = ", ".join(f"{row['sequential'][2]:.0f}" for row in of)
            pairs += f" ({used})"
        yield [noise, pairs, *(percent(by_pairs(row)[0]) for row in of), *(percent(by_pairs(row)[1]) for row in of),
               " / ".join(percent(row["separation"][0]) for row in of) if "separation" in of[0] else ""]


def goals(rows):
    """(sentence, worst share, whether it is met)"""
    nulls = {key: row for key, row in rows.items() if key[1] == 0}
    for rule in ("paired", "sequential"):
        worst = max(row[rule][0] for row in nulls.values() if rule in row)
        yield f"{rule}: at most 5% of nulls claim a difference", worst, worst <= 0.05
        worst = max(row[rule][1] for row in nulls.values() if rule in row)
        yield f"{rule}: at most 1% of nulls claim one beyond the margin", worst, worst <= 0.01
    found = rows["drift", 0.03, "20"]["paired"][0]
    yield "paired: at least 95% of +3% found by 20 pairs under drift", found, found >= 0.95


def report(rows, trials):
    changes = sorted({change for _, change, _ in rows if change})
    yield f"Nothing changed: % of {trials} trials in which a difference was claimed."
    yield ""
    yield from table(["noise", "pairs", "paired", "beyond 1%", "separation", "Welch, blocked", "Mann-Whitney, blocked"],
                     null_rows(rows))
    yield ""
    yield "B takes longer: % of trials in which a difference was found."
    yield ""
    yield from table(["noise", "pairs", *(f"{100 * change:g}%" for change in changes),
                      *(f"{100 * change:g}%, beyond 1%" for change in changes),
                      "separation, " + " / ".join(f"{100 * change:g}%" for change in changes)],
                     change_rows(rows, changes))


def main():
    parser = argparse.ArgumentParser(description="Simulates each rule's false alarms and detections.")
    parser.add_argument("--program", required=True, help="bench_false_alarms as it was built")
    parser.add_argument("--trials", type=int, default=40000, help="per row; 40000 tells shares to 0.5 points")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    program = pathlib.Path(options.program)
    noises = run(program)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        tries = [pool.submit(run, program, noise, options.trials, options.seed + i) for i, noise in enumerate(noises)]
        rows = parse(line for each in tries for line in each.result())
    print("\n".join(report(rows, options.trials)))
    print()
    failed = 0
    for sentence, share, met in goals(rows):
        print(f"- {sentence}: {percent(share)}%, {'met' if met else 'NOT MET'}")
        failed += not met
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
