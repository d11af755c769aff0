#!/usr/bin/env bash
# Have PostgreSQL's programs on this machine, for the tests that start a server of their own.
#
# As root on Debian they are installed. Elsewhere they are named, and the tests say at the end of their run what was
# left out (and fail in CI).
set -euo pipefail

compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && exit 0
command -v initdb >/dev/null && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: PostgreSQL is missing on this machine (Debian: sudo apt-get install postgresql)" >&2
    exit 0
fi
echo "set-up: apt-get install postgresql"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql
