#!/bin/sh
# Installs redis-server, for make run and make demo, unless it is there or Postroom has the address of a Redis.
set -eu

[ -z "${POSTROOM_REDIS_URL:-}${POSTROOM_REDIS_URL_FILE:-}" ] || exit 0
for program in redis-server valkey-server; do
	if command -v "$program" >/dev/null 2>&1; then
		exit 0
	fi
done
if [ -f config.yaml ] && ! bin/postroom config | grep -q '^redis\.url .*embedded'; then
	exit 0
fi
exec sh "$(dirname "$0")/install.sh" redis-server
