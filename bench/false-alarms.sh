#!/bin/sh
# How often each rule claims a difference where nothing changed, and how often it finds one: a simulation. See
# docs/statistics.md; --help lists the options.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/false_alarms.py" --program "$here/../build/bench/bench_false_alarms" "$@"
