#!/bin/sh
# What recording every call costs, per call, beside uftrace on the same program. See docs/benchmarks.md; --help lists
# the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/instrument_cost.py" --build "$here/../build" "$@"
