#!/bin/sh
# What assay tree takes to read and show huge profiles: a million functions, ten million calls. See docs/benchmarks.md;
# --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/graph_size.py" --build "$here/../build" "$@"
