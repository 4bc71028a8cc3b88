"""The options that the benchmarks of a target under several arms share."""
import argparse
import random
from pathlib import Path


def paired_parser(prog, description, targets, pairs, peers):
    """--build, --pairs, --targets, --no-peers, --seed, --json; more may be added."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    option = parser.add_argument
    option("--build", type=Path, default=Path("build"), metavar="DIR", help="build folder (default: build)")
    option("--pairs", type=int, default=pairs, metavar="N",
           help="pairs per target, an even number (default %(default)s)")
    option("--targets", default=",".join(targets), metavar="LIST", help="default: %(default)s")
    option("--no-peers", action="store_true", help=f"leave out {peers}")
    option("--seed", type=int, default=None, metavar="N", help="of the order of runs (default: a new one)")
    option("--json", action="store_true", help="print all figures and all runs as JSON instead")
    return parser


def parse_paired(parser, targets):
    o = parser.parse_args()
    o.targets = [name for name in o.targets.split(",") if name]
    for name in o.targets:
        if name not in targets:
            parser.error(f"--targets: '{name}' is none of {', '.join(targets)}")
    if o.pairs < 2 or o.pairs % 2:
        parser.error("--pairs must be an even number of at least 2: a block is two pairs")
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(1 << 32)
    return o
