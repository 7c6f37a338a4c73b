#!/bin/sh
# Runs the tests that need no other program, without the race detector: in two minutes, as any user, on any
# system with Go. It first lists the tests that it leaves out; make test leaves out none.
set -eu

# Packages whose tests import one of these need redis-server, Postfix, Chromium or a whole Postroom.
servers='internal/testredis$|app/apptest$|chromedp|bench/rig'
# Tests in the other packages that run a program.
programs='TestPythonReadsTheSame|TestGoldenLetters|TestSMTPSink|TestPostfix'

short='' left=''
for package in $(go list ./...); do
	if echo "$package" | grep -q 'internal/testredis$' ||
		go list -test -f '{{join .Imports "\n"}}' "$package" | grep -qE "$servers"; then
		left="$left ${package#*/*/postroom/}"
	else
		short="$short $package"
	fi
done
echo "Left out, because they need installed programs: the tests $programs, and all of"
echo "$left" | fmt -w 100 | sed 's/^ */  /'
# shellcheck disable=SC2086 # a list of packages
exec go test -short -skip "$programs" $short
