#!/bin/sh
# fuzz.sh TIME fuzzes each parser of untrusted input for that time.
set -eu
cd "$(dirname "$0")/.."
for target in collectors/record:FuzzReader collectors/record:FuzzParseID collectors/mysql:FuzzParseVersion; do
	echo "== fuzz $target for $1"
	go test "./${target%:*}" -run '^$' -fuzz "^${target#*:}\$" -fuzztime "$1" -fuzzminimizetime 10x
done
