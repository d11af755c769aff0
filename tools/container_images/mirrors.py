"""How pip and uv reach packages inside a build: as they do on this machine.

Mirrors and certificates differ from place to place, so they are in no Dockerfile and in no image. A build gets them as
files that are mounted while its commands run.
"""

import json
import os
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
"""Where Debian has them, on a machine and in an image."""

PASSED_ON = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout")
"""What pip is told about a mirror."""


def pip_settings() -> dict[str, str]:
    """Of the settings in pip's files and environment, those about mirrors."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=False, capture_output=True, text=True
    ).stdout
    # The environment is listed before the files, and has precedence.
    found = [line.partition("=") for line in reversed(listed.splitlines())]
    named = {key.rpartition(".")[2]: str(literal_eval(value)) for key, _, value in found}
    return {name: named[name] for name in PASSED_ON if name in named}


def pip_configuration(settings: dict[str, str]) -> str:
    """The text of a pip.conf."""
    lines = [f"{name} = {' '.join(value.split())}" for name, value in settings.items()]
    return "\n".join(["[global]", f"cert = {CERTIFICATES}", *lines, ""])


def uv_configuration(settings: dict[str, str]) -> str:
    """The text of a uv.toml. uv does not read pip's settings: where these name a mirror, it is meant for uv too."""
    index = os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL") or settings.get("index-url")
    more = (os.environ.get("UV_EXTRA_INDEX_URL") or settings.get("extra-index-url", "")).split()
    lines = ["native-tls = true"]
    if index:
        lines.append(f"index-url = {json.dumps(index)}")
    if more:
        lines.append(f"extra-index-url = {json.dumps(more)}")
    return "\n".join([*lines, ""])
