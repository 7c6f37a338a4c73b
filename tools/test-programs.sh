#!/bin/sh
# Installs the programs that the tests run, on Debian and Ubuntu, where they are missing: a test that can't run what it tests
# against would have to be skipped, and a skipped test holds nothing.
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
need python3 python3           # reads composed mails back with its email package
need chromium chromium         # opens the pages
# dkimpy verifies our DKIM signatures; Debian's is for Debian's Python, which need not be the first one
if ! python3 -c 'import dkim, nacl' 2>/dev/null && ! /usr/bin/python3 -c 'import dkim, nacl' 2>/dev/null; then
	packages="$packages python3-dkim python3-nacl"
fi

[ -n "$packages" ] || exit 0
echo "The tests need these packages, which are not installed:$packages"

if ! command -v apt-get >/dev/null 2>&1; then
	echo "This is not Debian or Ubuntu: install them by hand, then run make test again." >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	sudo=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	sudo=sudo
else
	echo "Installing them takes root: run  apt-get install$packages  as root, then make test again." >&2
	exit 1
fi

echo "Installing them with apt-get."
if echo "$packages" | grep -q postfix; then # it asks what kind of site this is; tests configure their own
	echo 'postfix postfix/main_mailer_type select No configuration' | $sudo debconf-set-selections || true
fi
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# shellcheck disable=SC2086 # a list of packages
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages
