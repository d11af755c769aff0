#!/usr/bin/env bash
# Have zsh and fish on this machine, for the tests that press the completion key in each shell.
#
# As root on Debian they are installed. Elsewhere they are named, and the tests say at the end of their run what was left
# out (and fail in CI).
set -euo pipefail

command -v zsh >/dev/null && command -v fish >/dev/null && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: zsh or fish is missing on this machine (Debian: sudo apt-get install zsh fish)" >&2
    exit 0
fi
echo "set-up: apt-get install zsh fish"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends zsh fish
