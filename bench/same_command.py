"""How often `assay bench` claims a difference between a command and itself, on the machine as it is."""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
COMMAND = "awk 'BEGIN { for (i = 0; i < 100000; i++) s += i }'"
GOAL = 0.05
BEYOND_GOAL = 0.01


def arguments():
    parser = argparse.ArgumentParser(prog="same-command", description=__doc__)
    parser.add_argument("--trials", type=int, default=100, help="comparisons [100]")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of each comparison [20]")
    parser.add_argument("--until-decided", action="store_true", help="stop each at the preset looks instead")
    parser.add_argument("--command", default=COMMAND, help=f"what is compared with itself [{COMMAND}]")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="build folder [build]")
    return parser.parse_args()


def compare(args, folder, seed):
    """The verdict of one comparison, and the median time."""
    out = folder / "out.json"
    how = ["--until-decided"] if args.until_decided else ["-n", str(args.pairs)]
    subprocess.run([args.build / "assay", "bench", *how, "--seed", str(seed), "--shell", "none", "-w", "1",
                    "--export-json", out, "-N", "one", "-N", "other", args.command, args.command],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    results = json.loads(out.read_text())["results"]
    return results[1]["verdict"], results[0]["median"]


def main():
    args = arguments()
    counts = collections.Counter()
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for trial in range(args.trials):
            verdict, median = compare(args, pathlib.Path(folder), trial + 1)
            counts[verdict] += 1
            times.append(median)
            if sys.stderr.isatty() or trial % 20 == 19:
                print(f"same-command: {trial + 1} of {args.trials}", file=sys.stderr)
    beyond = counts["faster"] + counts["slower"]
    claimed = beyond + counts["small"]
    how = "until decided" if args.until_decided else f"{args.pairs} pairs each"
    print(f"{args.trials} comparisons of a command with itself ({sorted(times)[len(times) // 2] * 1e3:.2f} ms), {how}")
    for verdict, count in counts.most_common():
        print(f"  {verdict}: {count}")
    for what, count, goal in (("a difference", claimed, GOAL), ("one beyond the margin", beyond, BEYOND_GOAL)):
        share = count / args.trials
        print(f"  claims {what}: {100 * share:.1f}%, goal at most {100 * goal:.0f}%: "
              f"{'met' if share <= goal else 'missed'}")
    return 0


sys.exit(main())
