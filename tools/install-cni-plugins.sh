#!/usr/bin/env bash
# Have the CNI project's own plugins on this machine: host-local is what ours is measured against.
#
# As root on Debian they are installed. Elsewhere they are named, and the benchmark says what it left out.
set -euo pipefail

[ -x /usr/lib/cni/host-local ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: host-local is missing on this machine (Debian: sudo apt-get install containernetworking-plugins)" >&2
    exit 0
fi
echo "set-up: apt-get install containernetworking-plugins"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends containernetworking-plugins
