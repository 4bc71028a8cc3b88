"""The options that benchmarks share: where the programs are, the order of the runs, the form of the answer."""
import argparse
import random
from pathlib import Path


def seeded_parser(prog, description):
    """--build, --seed, --json; more may be added."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    option = parser.add_argument
    option("--build", type=Path, default=Path("build"), metavar="DIR", help="build folder (default: build)")
    option("--seed", type=int, default=None, metavar="N", help="of the order of runs (default: a new one)")
    option("--json", action="store_true", help="print all figures as JSON instead")
    return parser


def parse_seeded(parser):
    o = parser.parse_args()
    if o.seed is None:
        o.seed = random.SystemRandom().randrange(1 << 32)
    return o


def paired_parser(prog, description, targets, pairs, peers):
    """Of a target under several arms: --pairs, --targets, --no-peers as well."""
    parser = seeded_parser(prog, description)
    option = parser.add_argument
    option("--pairs", type=int, default=pairs, metavar="N",
           help="pairs per target, an even number (default %(default)s)")
    option("--targets", default=",".join(targets), metavar="LIST", help="default: %(default)s")
    option("--no-peers", action="store_true", help=f"leave out {peers}")
    return parser


def parse_paired(parser, targets):
    o = parse_seeded(parser)
    o.targets = [name for name in o.targets.split(",") if name]
    for name in o.targets:
        if name not in targets:
            parser.error(f"--targets: '{name}' is none of {', '.join(targets)}")
    if o.pairs < 2 or o.pairs % 2:
        parser.error("--pairs must be an even number of at least 2: a block is two pairs")
    return o
