#!/bin/sh
# What names cost: the library that gives assay its names beside `perf script`, on the same addresses of a C++ program
# with 100 MB of debug information, recorded by perf with both kinds of call graph. --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/symbol_cost.py" --build "$here/../build" "$@"
