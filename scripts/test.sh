#!/bin/sh
# test.sh runs every check of the project, the quick ones first, and says what
# it runs. Live tests start their own servers.
set -eu
cd "$(dirname "$0")/.."

say() { printf '== %s\n' "$*"; }

say gofmt
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
	echo "gofmt -l lists: $unformatted" >&2
	exit 1
fi
say go vet
go vet ./...
say go mod tidy -diff
go mod tidy -diff

# The race detector needs a C compiler; on a machine without one the tests run
# without it, loudly, except in CI.
race=-race
if ! command -v "${CC:-cc}" >/dev/null 2>&1 && ! command -v gcc >/dev/null 2>&1; then
	if [ -n "${CI:-}" ]; then
		echo "test.sh: no C compiler, so no race detector" >&2
		exit 1
	fi
	echo "test.sh: NO C COMPILER HERE: testing without the race detector (install gcc)" >&2
	race=
fi

# within SECONDS COMMAND... : bounds a step, where the caller sets a budget.
within() {
	limit=$1
	shift
	if [ -n "$limit" ]; then
		timeout --kill-after=10 "$limit" "$@"
	else
		"$@"
	fi
}

say "go test $race (single packages, on private servers where they need one)"
# shellcheck disable=SC2046,SC2086 # lists of words
within "${UNIT_SECONDS:-}" go test $race -timeout 10m $(go list ./... | grep -v '/cmd/chokepoint$')
if [ -n "$race" ]; then
	say "go test ./analysis (all simulated cases, without the race detector)"
	within "${UNIT_SECONDS:-}" go test -timeout 10m ./analysis
fi
if [ -n "${CI:-}" ]; then
	say "fuzz each parser for 10 s"
	scripts/fuzz.sh 10s
fi
say "go test ./cmd/chokepoint (whole runs on private servers)"
within "${LIVE_SECONDS:-}" go test -timeout 10m -count=1 -v ./cmd/chokepoint
