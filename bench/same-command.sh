#!/bin/sh
# A real null comparison: one command on both sides, by `assay bench`, many times. How often is a difference claimed?
# `--help` lists the options; docs/statistics.md has the results.
set -eu
exec python3 -B "$(dirname "$0")/same_command.py" "$@"
