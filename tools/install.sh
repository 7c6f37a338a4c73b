#!/bin/sh
# Installs packages on Debian and Ubuntu, for make: tools/install.sh PACKAGE…. Otherwise it says how.
set -eu

echo "These packages are needed and not installed: $*"
if ! command -v apt-get >/dev/null 2>&1; then
	echo "This is not Debian or Ubuntu: install them by hand, then run make again." >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	sudo=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	sudo=sudo
else
	echo "Installing them takes root. Run this, then make again:  sudo apt-get install $*" >&2
	exit 1
fi

echo "Installing them with apt-get."
if echo "$*" | grep -q postfix; then # it asks what kind of site this is; tests configure their own
	echo 'postfix postfix/main_mailer_type select No configuration' | $sudo debconf-set-selections || true
fi
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
