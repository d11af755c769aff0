"""What tools/control-plane/go.mod pins: the one place where the control plane's versions are written.

KUBERNETES_RELEASE names another release that tools/ has a module for, such as 1.32 (tools/control-plane-1.32).
"""

import os
import re
from pathlib import Path

from msgspec import Struct

RELEASE = os.environ.get("KUBERNETES_RELEASE", "")
MODULE = Path(__file__).parent.parent / (f"control-plane-{RELEASE}" if RELEASE else "control-plane")


class Versions(Struct, frozen=True):
    """Versions without their `v`."""

    kubernetes: str
    etcd: str
    go: str
    """The oldest Go that builds it."""


def pinned(go_mod: str) -> Versions:
    """The versions in the text of a go.mod."""
    return Versions(
        kubernetes=_version(go_mod, "k8s.io/kubernetes v"),
        etcd=_version(go_mod, "go.etcd.io/etcd/server/v3 v"),
        go=_version(go_mod, "go "),
    )


def _version(go_mod: str, before: str) -> str:
    found = re.search(rf"^\s*{re.escape(before)}(\d+\.\d+\.\d+)\b", go_mod, flags=re.MULTILINE)
    assert found, f"go.mod says no version for {before}"
    return found[1]
