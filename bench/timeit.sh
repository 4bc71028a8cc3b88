#!/bin/sh
# assay timeit beside Google Benchmark on the same statements, interleaved. See docs/benchmarks.md; --help lists the
# options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/timeit.py" --build "$here/../build" "$@"
