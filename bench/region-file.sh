#!/bin/sh
# What large files of regions cost: making one from a recording, and all statistics of it by `assay inspect`, beside a
# plain read of the same columns and beside h5py with numpy. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/region_file.py" --build "$here/../build" "$@"
