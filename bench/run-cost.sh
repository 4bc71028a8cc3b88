#!/bin/sh
# What watching costs: the target's CPU time, wall time and context switches under `assay run` against the bare command,
# and assay's own CPU time against the least that watching can cost. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/run_cost.py" --build "$here/../build" "$@"
