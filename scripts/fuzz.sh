#!/bin/sh
# fuzz.sh TIME fuzzes each parser of untrusted input for that time, two at once.
set -eu
cd "$(dirname "$0")/.."
self=$PWD/scripts/fuzz.sh
targets='collectors/record:FuzzReader collectors/record:FuzzLatencies collectors/record:FuzzValidate
	collectors/record:FuzzParseSeries collectors/record:FuzzParseID collectors/mysql:FuzzParseVersion
	collectors/redis:FuzzParseInfo cmd/chokepoint:FuzzDSN'

# The Go command sometimes ends a fuzzing that found nothing with "context
# deadline exceeded" when its time is up. That alone is no failure; an input
# that fails is written down and named.
only_out_of_time() {
	grep -q 'context deadline exceeded' "$1" && ! grep -qE 'Failing input|panic|_test\.go:' "$1"
}

# fuzz TARGET TIME
fuzz() {
	out=$(mktemp)
	status=0
	go test "./${1%:*}" -run '^$' -fuzz "^${1#*:}\$" -fuzztime "$2" -parallel 1 -fuzzminimizetime 10x >"$out" 2>&1 || status=$?
	if [ "$status" != 0 ] && only_out_of_time "$out"; then
		echo "fuzz.sh: its time was up; nothing was found" >>"$out"
		status=0
	fi
	echo "== fuzzed $1 for $2"
	cat "$out"
	rm -f "$out"
	return "$status"
}

if [ "$#" = 2 ]; then
	fuzz "$2" "$1"
	exit
fi
# shellcheck disable=SC2086 # a list of words
printf '%s\n' $targets | xargs -P 2 -n 1 "$self" "$1"
