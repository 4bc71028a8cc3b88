#!/bin/sh
# Shows a real run: `./dev demo` (compression, in phases), `./dev demo --regions` (a program that marks regions of its
# own), or `./dev demo --llm` (a language model on a real engine).
# Needs build/assay; ASSAY names another one. Results go to assay-runs/ in the current folder, a new folder each time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
assay=${ASSAY:-$here/build/assay}
engine=node-llama-cpp@3.21.1

say() {
	printf '%s\n' "$*" >&2
}

stop() {
	say "demo: $1"
	exit "${2:-3}"
}

# A new folder for the results; a second demo in the same second gets a number.
new_run() {
	mkdir -p assay-runs
	name=assay-runs/$(date +%Y-%m-%dT%H-%M-%S)-$1
	out=$name
	number=2
	while ! mkdir "$out" 2>/dev/null; do
		[ -e "$out" ] || stop "$PWD/$out cannot be made"
		out=$name-$number
		number=$((number + 1))
	done
}

# The words of a command as a person could type them again.
quoted() {
	for word; do
		case $word in
		*[!A-Za-z0-9_./:=@%+,-]* | '') printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
}

# As a person would type it: the subcommand, its options, the target.
measure() {
	say "$ assay$(quoted "$@")"
	say
	status=0
	"$assay" "$@" || status=$?
	say
}

finish() {
	say "Results in $PWD/$out:"
	for file in "$out"/*; do
		say "  ${file##*/}"
	done
	exit "$status"
}

demo_compress() {
	command -v xz >/dev/null || stop "xz is missing (Debian: apt-get install xz-utils)"
	new_run compress
	measure profile -o "$out" --label compress -- sh "$here/examples/compress.sh"
	say "Another look at the same run, without running it again:"
	say "  assay profile $out --group compress"
	say
	finish
}

# Installed, `pkg-config --cflags --libs assay` tells the compiler what the folders here do.
demo_regions() {
	command -v cc >/dev/null || stop "--regions needs a C compiler, and there is no cc on the PATH"
	folder=$(cd "$(dirname "$assay")" && pwd)
	[ -e "$folder/libassay.so" ] || stop "$folder/libassay.so is not there; run './dev build' first"
	new_run heat
	program=$(mktemp -d)
	trap 'rm -rf "$program"' EXIT
	cc -O2 -I "$here/include" "$here/examples/heat.c" -L "$folder" -Wl,-rpath,"$folder" -lassay -pthread -lm \
		-o "$program/heat" || stop "examples/heat.c cannot be built; see above"
	measure run -o "$out" --label heat -- "$program/heat"
	say "Another look at the same regions, without running it again:"
	say "  assay inspect $out --per-thread"
	say "  assay export $out -o heat.trace.json    # for ui.perfetto.dev"
	say
	finish
}

check_node() {
	command -v node >/dev/null || stop "--llm needs Node.js 20 or newer, and there is no node on the PATH"
	version=$(node --version) || stop "--llm needs Node.js 20 or newer, and 'node --version' fails"
	major=${version#v}
	[ "${major%%.*}" -ge 20 ] 2>/dev/null || stop "--llm needs Node.js 20 or newer, and this one is $version"
	command -v npm >/dev/null || stop "--llm needs npm, and there is no npm on the PATH"
}

# The engine comes ready-built in a package of its own per platform. Naming the one for this machine and leaving out the
# optional others saves some hundred MB of GPU builds; nothing is compiled and no install script runs.
install_engine() {
	case $(uname -m) in
	x86_64) platform=linux-x64 ;;
	aarch64) platform=linux-arm64 ;;
	*) stop "--llm: $engine has no ready-built engine for $(uname -m) that this demo knows" ;;
	esac
	if [ ! -e "$cache/$engine.installed" ]; then
		say "demo: installing $engine in $cache (about 100 MB, once)"
		mkdir -p "$cache"
		echo '{"private": true}' >"$cache/package.json"
		npm install --prefix "$cache" --ignore-scripts --omit=optional --no-audit --no-fund --loglevel=error \
			"$engine" "@node-llama-cpp/$platform@${engine##*@}" >&2 ||
			stop "npm cannot install $engine; see above"
		: >"$cache/$engine.installed"
	fi
}

make_model() {
	model=$cache/random-weights-1.gguf
	if [ ! -e "$model" ]; then
		say "demo: writing a model of random weights, $model"
		python3 "$here/examples/random-gguf.py" "$model" || stop "the model cannot be written; see above"
	fi
}

# What the engine itself says about its speed, to compare; or its last words where it failed.
show_engine_log() {
	for log in "$out/stdout.log" "$out/terminal.log"; do
		if [ "$status" -ne 0 ] && [ -s "$log" ]; then
			say "The end of its log:"
			tail -n 8 "$log" >&2
		elif [ -s "$log" ]; then
			say "The engine's own lines:"
			grep 'perf_context_print.*eval time' "$log" >&2 || say "(none found)"
		fi
	done
}

# The engine's log is long, so it goes to the results only: one stream with stdout, which --summary-only keeps back.
demo_llm() {
	check_node
	cache=${XDG_CACHE_HOME:-$HOME/.cache}/assay/llm-demo
	install_engine
	make_model
	new_run llm
	measure run -o "$out" --label llm --summary-only -- \
		sh -c 'exec node "$@" 2>&1' sh "$here/examples/llm.mjs" "$cache" "$model"
	show_engine_log
	finish
}

[ -x "$assay" ] || stop "$assay is not there; run './dev build' first"
case ${1-} in
'') demo_compress ;;
--regions) demo_regions ;;
--llm) demo_llm ;;
*) stop "'$1' is no option of the demo; it knows --regions and --llm" 2 ;;
esac
