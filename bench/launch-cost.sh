#!/bin/sh
# What starting a command costs: `assay bench` and hyperfine beside a bare posix_spawn + wait4 loop, and from a parent
# that holds 300 MB. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/launch_cost.py" --build "$here/../build" "$@"
