#!/bin/sh
# What watching a process's memory costs: assay spy's CPU time beside the least that it can be, a Python loop's and
# psutil's, and what it costs the process that is watched. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/spy_cost.py" --build "$here/../build" "$@"
