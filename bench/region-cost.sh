#!/bin/sh
# What a call of a region costs: libassay in each mode beside the floor (two raw clock reads and a 24-byte store),
# scope-profiler's Python regions and uftrace. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/region_cost.py" --build "$here/../build" "$@"
