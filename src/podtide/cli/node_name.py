"""What this node is called where no option says it.

The host's name is a guess: in a cluster a node may be called otherwise. Whereabouts' installer therefore leaves the
name in a file on the node, for its own programs and for whoever takes their place (design W18).
"""

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path

from podtide.cli.names import require_object_name
from podtide.cni.network_config import FLAT_FILE_PATHS
from podtide.core.errors import InvalidInput

NODE_NAME_FILES = tuple(Path(path).with_name("nodename") for path in FLAT_FILE_PATHS)
"""Beside Whereabouts' flat files; the first that has a name in it counts."""


def find_node_name(environment: Mapping[str, str], files: Iterable[Path] = NODE_NAME_FILES) -> str:
    """The name in `NODENAME`, else in a file, else the host's own."""
    if stated := environment.get("NODENAME", "").strip():
        require_object_name(stated, "the environment variable NODENAME")
        return stated
    for path in files:
        if written := _written_in(path):
            require_object_name(written, f"the node name in {path}")
            return written
    host = socket.gethostname().lower()  # as a kubelet does that is told no other
    require_object_name(host, "no --node-name is given, and the host's name")
    return host


def _written_in(path: Path) -> str:
    """The name in the file; "" where there is none. One that cannot be read is not passed over for a guess."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is to say this node's name, and cannot be read ({error}): correct that, or give --node-name"
        ) from error
