#!/usr/bin/env bash
# Have cargo on this machine, which builds the CNI plugin.
#
# As root on Debian it is installed. Elsewhere it is named, and the tests say at the end of their run what was left out (and
# fail in CI).
set -euo pipefail

cargo --version >/dev/null 2>&1 && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: cargo is missing on this machine (Debian: sudo apt-get install cargo)" >&2
    exit 0
fi
echo "set-up: apt-get install cargo"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends cargo
