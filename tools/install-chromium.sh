#!/usr/bin/env bash
# Have Chromium on this machine, for the tests that look at podtide's page in a real browser, and for its pictures.
#
# As root on Debian it is installed, with a typeface that does not differ from machine to machine. Elsewhere it is named,
# and the tests say at the end of their run what was left out (and fail in CI).
set -euo pipefail

[ -x /usr/bin/chromium ] && compgen -G '/usr/share/fonts/truetype/dejavu/*.ttf' >/dev/null && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "set-up: Chromium is missing on this machine (Debian: sudo apt-get install chromium fonts-dejavu-core)" >&2
    exit 0
fi
echo "set-up: apt-get install chromium fonts-dejavu-core"
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
