#!/usr/bin/env bash
# Have the CNI project's own plugins on this machine: ours is run by them, and measured against host-local. And `ip`, which
# makes the namespaces that they work in.
#
# As root on Debian they are installed. Elsewhere they are named, and tests and benchmark say what they left out.
set -euo pipefail

[ -x /usr/lib/cni/host-local ] && command -v ip >/dev/null && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: missing on this machine: CNI plugins or ip (Debian: sudo apt-get install containernetworking-plugins iproute2)" >&2
    exit 0
fi
echo "set-up: apt-get install containernetworking-plugins iproute2"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends containernetworking-plugins iproute2
