#!/bin/sh
# What walking a stack costs in each way, side by side, and what share of real programs' stacks reaches the start. See
# docs/unwinding.md. Takes the folder of the build as its argument.
set -eu
build=${1:-$(cd "$(dirname "$0")/.." && pwd)/build}

"$build/bench/bench_unwind_cost"
share() {
	echo "$1:"
	shift
	env LD_PRELOAD="$build/bench/libbench_unwind_share.so" "$@" 2>&1 >/dev/null | grep '^walks' ||
		echo "  not installed"
}
python='import json, zlib, hashlib, time
rows = {str(i): list(range(i % 50)) for i in range(3000)}
end = time.time() + 2
while time.time() < end:
    text = json.dumps(rows); json.loads(text); zlib.compress(text.encode()); hashlib.sha256(text.encode())'
product='import numpy, time
a = numpy.random.rand(700, 700)
end = time.time() + 2
while time.time() < end: a @ a'
script='let s = 0; const end = Date.now() + 2000
while (Date.now() < end) { let a = []; for (let i = 0; i < 2000; i++) a.push({k: i, v: "x" + i})
  a.sort((x, y) => y.k - x.k); s += JSON.stringify(a).length }'
share 'python3' /usr/bin/python3 -c "$python"
for kernels in Haswell Zen SkylakeX Nehalem Sandybridge; do
	share "numpy, OpenBLAS kernels for $kernels" env OPENBLAS_CORETYPE=$kernels /usr/bin/python3 -c "$product"
done
share 'node' node -e "$script"
share 'perl' perl -e 'my %h; $h{$_} = $_ * 2 for 1 .. 900000; print scalar keys %h'
share 'openssl' openssl speed -seconds 1 -bytes 8192 sha256 aes-128-cbc rsa2048
