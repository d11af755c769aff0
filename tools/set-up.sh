#!/usr/bin/env bash
# Make .venv from requirements.lock, on a machine that may have nothing but Python 3.11 or newer: with all that developing
# podtide takes, or with what running it takes (set-up.sh to-run), which is quickly fetched.
#
# Debian's Python refuses packages outside a virtual environment and comes without the part that makes one, so that
# part is installed when we are root and named when we are not. uv goes into .venv itself, at the locked version:
# nothing is installed elsewhere, and a uv that is already on the machine is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export UV_PYTHON_DOWNLOADS=never # the machine's Python, not one fetched from elsewhere
export PIP_DISABLE_PIP_VERSION_CHECK=1

say() { printf 'set-up: %s\n' "$*"; }

stop() {
    say "$*" >&2
    exit 1
}

# The interpreter itself, not a shim or another environment's link to it, if it is new enough.
real_python() {
    "$1" -c 'import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys._base_executable)' 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        real_python "$candidate" && return
    done
    return 1
}

install_packages() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "missing on this machine: $*. Install it (Debian: sudo apt-get install $*), then run make again."
    fi
    say "apt-get install $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# The entry of requirements.lock for uv alone, with its hashes.
locked_uv() { awk '/^uv==/ { entry = 1 } entry { print } entry && !/\\$/ { exit }' requirements.lock; }

make_environment() {
    local python version
    find_python >/dev/null || [ -n "${PYTHON:-}" ] || install_packages python3 python3-venv
    python=$(find_python) || stop "${PYTHON:-python3} is no Python 3.11 or newer: name one with make PYTHON=/path/to/python3.11"
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    "$python" -c 'import venv, ensurepip; ensurepip.version()' 2>/dev/null || install_packages "python$version-venv"

    say "a virtual environment in .venv, with $python"
    "$python" -m venv --clear .venv
    say "uv into it, as locked"
    .venv/bin/python -m pip install --quiet --require-hashes --requirement <(locked_uv)
}

.venv/bin/uv --version >/dev/null 2>&1 || make_environment

# uv does not read pip's configuration: where that names a mirror, it is meant for us too.
mirror=${PIP_INDEX_URL:-$(.venv/bin/python -m pip config get global.index-url 2>/dev/null || true)}
if [ -n "$mirror" ]; then export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$mirror}"; fi

if [ "${1:-}" = to-run ]; then
    say "the packages that podtide runs with, as locked"
    .venv/bin/uv pip install --python .venv/bin/python --require-hashes --constraint requirements.lock \
        --requirements pyproject.toml --group install
else
    say "the packages of requirements.lock"
    .venv/bin/uv pip sync --python .venv/bin/python --require-hashes requirements.lock
fi
say "podtide itself, in place"
.venv/bin/uv pip install --python .venv/bin/python --quiet --no-deps --no-build-isolation --editable .
