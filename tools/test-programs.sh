#!/bin/sh
# Installs missing programs that the tests run, on Debian and Ubuntu. A test without its program would have to
# be skipped, and a skipped test proves nothing.
set -eu

packages=
need() { # need PROGRAM PACKAGE: wants the program, of that package
	command -v "$1" >/dev/null 2>&1 || packages="$packages $2"
}
need redis-server redis-server # the store, one for each test package
need smtp-sink postfix         # a relay that others wrote
need bash bash                 # completes commands
need swaks swaks               # a mail client that others wrote
perl -MNet::SSLeay -e 1 2>/dev/null || packages="$packages libnet-ssleay-perl" # with which swaks speaks TLS
need curl curl                 # types along after the demo, and runs what empty pages show
need jq jq                     # reads answers, as commands of the documentation do
need python3 python3           # reads composed messages back with its email package; runs make english
need node nodejs               # runs what npm installs
need npm npm                   # installs linters and generators of the OpenAPI document
need java default-jre-headless # runs openapi-generator
need promtool prometheus       # checks the rules of alerts
need chromium chromium         # opens the pages
# dkimpy verifies our DKIM signatures; Debian's is for Debian's Python, which may not be the first one
if ! python3 -c 'import dkim, nacl' 2>/dev/null && ! /usr/bin/python3 -c 'import dkim, nacl' 2>/dev/null; then
	packages="$packages python3-dkim python3-nacl"
fi

# the Python client made by openapi-generator needs these; they too are for Debian's Python
python_client='import dateutil, six, urllib3, certifi'
if ! python3 -c "$python_client" 2>/dev/null && ! /usr/bin/python3 -c "$python_client" 2>/dev/null; then
	packages="$packages python3-dateutil python3-six python3-urllib3 python3-certifi"
fi

# shellcheck disable=SC2086 # a list of packages
[ -z "$packages" ] || sh "$(dirname "$0")/install.sh" $packages

# npm programs, at the versions of tools/npm, in the user's cache: a folder for each lock file.
cd "$(dirname "$0")/npm"
sum=$(sha256sum package-lock.json | cut -c1-16)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/postroom/npm-$sum
mkdir -p "$folder"
cp package.json package-lock.json redocly.yaml spectral.yaml "$folder"
if [ ! -e "$folder/complete" ]; then
	echo "Installing what the tests need of npm."
	(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund)
	touch "$folder/complete"
fi
