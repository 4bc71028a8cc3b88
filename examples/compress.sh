#!/bin/sh
# A program with four phases, made of what any Debian has: generates data, compresses it, decompresses it, compares.
#
#     assay run -- sh compress.sh [MIB]
#
# Each phase is one line appended to the file named by ASSAY_MARKERS; without assay there is no such file, and the
# script just runs. Works in a scratch folder of its own, which it removes.
set -eu

mib=${1:-64}

mark() {
	[ -z "${ASSAY_MARKERS-}" ] || echo "$1" >>"$ASSAY_MARKERS"
}

# Readings of made-up sensors: repetitive enough to shrink, random enough to be work. A line has about 32 bytes.
generate() {
	LC_ALL=C awk -v lines=$((mib * 32768)) 'BEGIN {
		srand(1)
		for (i = 0; i < lines; i++) {
			level += rand() - 0.5
			printf "%d,sensor-%02d,%.3f,%d\n", 1700000000 + i, 40 * rand(), 20 + level, 100000 * rand()
		}
	}'
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

mark generate
generate >"$scratch/data"
mark compress
# Blocks of 2 MiB, so that every core gets some.
xz -T0 -2 --block-size=2MiB -c "$scratch/data" >"$scratch/data.xz"
mark decompress
xz -dc "$scratch/data.xz" >"$scratch/again"
mark compare
cmp "$scratch/data" "$scratch/again"
echo "$(wc -c <"$scratch/data") bytes, compressed $(wc -c <"$scratch/data.xz"), the same again"
