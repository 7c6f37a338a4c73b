#!/bin/sh
# Fuzzes one target for half a minute: tools/fuzz.sh [NAME [TIME]]. Without a name the number of commits
# chooses it, so that each target gets its turn. It fails if it finds an input that breaks the target; go test
# has written the input into testdata/fuzz.
set -eu
go=${GO:-go}

targets=$(grep -r --include='*_test.go' '^func Fuzz' . | sed 's|^\./\(.*\)/[^/]*:func \(Fuzz[A-Za-z0-9]*\)(.*|\2 ./\1|' | sort)
if [ $# -gt 0 ]; then
	target=$(echo "$targets" | grep "^$1 " | head -n 1)
	[ -n "$target" ] || { echo "There is no fuzz target $1. There are:"; echo "$targets"; exit 2; }
else
	commits=$(git rev-list --count HEAD 2>/dev/null || echo 0)
	target=$(echo "$targets" | sed -n "$((commits % $(echo "$targets" | wc -l) + 1))p")
fi
name=${target% *} package=${target#* } length=${2:-30s}

out=$(mktemp)
trap 'rm -f "$out"' EXIT
echo "Fuzzing $name of $package for $length"
if $go test -run '^$' -fuzz "^$name\$" -fuzztime "$length" "$package" >"$out" 2>&1; then
	tail -n 3 "$out"
elif grep -q 'context deadline exceeded' "$out" && ! grep -q 'Failing input' "$out"; then
	# https://go.dev/issue/48157: on a busy machine the end of the time limit looks like a failure.
	tail -n 3 "$out"
else
	cat "$out"
	exit 1
fi
