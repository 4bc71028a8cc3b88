#!/bin/sh
# Runs the tests, or one part of them: unit cli asan tsan lint all. ./dev test calls it after installing what is needed.
# Ends with how many tests passed, failed and were skipped, and for want of what.
set -eu
cd "$(dirname "$0")/.."

python=/usr/bin/python3 # Debian's, with its pytest; another one may come first in PATH
results=$PWD/build/test-results

setup() { # FOLDER OPTION...
	[ -f "$1/build.ninja" ] || meson setup "$@"
	ninja -C "$1"
}

unit() { # FOLDER SUITE [WRAPPER]
	meson test -C "$1" --no-rebuild --suite "$2" --logbase "$2" --print-errorlogs ${3:+--wrapper "$3"} </dev/null
}

# Where the kernel spreads mappings widely, ThreadSanitizer finds no room for its own.
unspread() {
	setarch -R true 2>/dev/null && echo 'setarch -R'
}

cli() { # FOLDER
	(cd tests && ASSAY_BUILD=$1 $python -B -m pytest -q </dev/null)
}

# What LeakSanitizer needs: tests/cli/conftest.py says why.
quiet_tls() {
	export LSAN_OPTIONS="intercept_tls_get_addr=0${LSAN_OPTIONS:+:$LSAN_OPTIONS}"
}

lint() {
	lint_failed=0
	counted $python -B tests/check_includes.py
	counted $python -B tests/check_style.py
	for script in dev demo.sh tests/run.sh bench/*.sh examples/*.sh; do
		counted sh -n "$script"
	done
	return $lint_failed
}

counted() { # COMMAND...: a check is a test, too
	if "$@"; then set -- 1 0; else lint_failed=1; set -- 0 1; fi
	printf 'count %s %s 0\n' "$@" >>"$results"
}

part() {
	case $1 in
	unit) setup build && unit build unit ;;
	cli) setup build && cli build ;;
	asan-unit) quiet_tls && unit build-asan unit ;;
	asan-cli) cli build-asan ;;
	asan)
		setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=all
		parts asan-unit asan-cli
		;;
	tsan) setup build-tsan -Db_sanitize=thread -Db_lundef=false && unit build-tsan threads "$(unspread)" ;;
	lint) lint ;;
	esac
}

# Runs each as a script of its own, where `set -e` holds, and goes on when one fails.
parts() {
	failed=
	for one; do
		printf '\n== %s\n' "$one"
		ASSAY_RESULTS=$results "$0" "$one" || failed="$failed $one"
	done
	[ -z "$failed" ] || { printf 'dev: failed:%s\n' "$failed" >&2; return 1; }
}

case $1 in
all) set -- unit cli asan tsan lint ;;
unit | cli | asan | asan-unit | asan-cli | tsan | lint) ;;
*) printf 'dev: the tests have no part %s: unit, cli, asan, tsan, lint, all\n' "$1" >&2; exit 2 ;;
esac
# Inside another call of this script: only the part. Else the count at the end, too.
if [ "${ASSAY_RESULTS:-}" ]; then
	part "$1"
	exit
fi
mkdir -p build
rm -f "$results" build*/meson-logs/unit.json build*/meson-logs/threads*.json
status=0
parts "$@" || status=$?
$python -B tests/tally.py "$results" build*/meson-logs/unit.json build*/meson-logs/threads*.json || status=1
exit $status
