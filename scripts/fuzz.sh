#!/bin/sh
# fuzz.sh TIME fuzzes each parser of untrusted input for that time.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# The Go command sometimes ends a fuzzing that found nothing with "context
# deadline exceeded" when its time is up. That alone is no failure; an input
# that fails is written down and named.
only_out_of_time() {
	grep -q 'context deadline exceeded' "$out" && ! grep -qE 'Failing input|panic|_test\.go:' "$out"
}

for target in collectors/record:FuzzReader collectors/record:FuzzLatencies collectors/record:FuzzValidate \
	collectors/record:FuzzParseSeries collectors/record:FuzzParseID collectors/mysql:FuzzParseVersion collectors/redis:FuzzParseInfo cmd/chokepoint:FuzzDSN; do
	echo "== fuzz $target for $1"
	status=0
	go test "./${target%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime "$1" -fuzzminimizetime 10x >"$out" 2>&1 || status=$?
	cat "$out"
	if [ "$status" != 0 ]; then
		only_out_of_time || exit "$status"
		echo "fuzz.sh: its time was up; nothing was found"
	fi
done
