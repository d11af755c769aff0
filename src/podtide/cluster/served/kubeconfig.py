"""A kubeconfig for the served cluster. It holds no secret: there is none."""

from pathlib import Path

import msgspec

from podtide.core.errors import InvalidInput

_MARK = "# Written by podtide for its own small cluster, and written over the next time."


class ForeignKubeconfig(InvalidInput):
    """A kubeconfig that podtide did not write, or may not write."""


def write_kubeconfig(path: Path, url: str) -> None:
    """Write the kubeconfig, unless a file of that name was not written by podtide."""
    try:
        if path.exists() and not path.read_text(errors="replace").startswith(_MARK):
            raise ForeignKubeconfig(f"{path} is there already, and not by podtide: name another file")
        path.write_text(f"{_MARK}\n{_text(url)}\n")
    except OSError as error:
        raise ForeignKubeconfig(f"{path} cannot be written ({error.strerror}): name another file") from error


def _text(url: str) -> str:
    """JSON, which is YAML too."""
    name = "podtide"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return msgspec.json.format(msgspec.json.encode(config)).decode()
