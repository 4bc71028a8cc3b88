#!/bin/sh
# What sampling costs the program that is sampled, in CPU time and memory: assay's sampler beside the bare run,
# gperftools' and `perf record`. See docs/benchmarks.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/sampler_cost.py" --build "$here/../build" "$@"
