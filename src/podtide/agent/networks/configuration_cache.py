"""Network configurations as runtimes send them, understood once each.

A runtime sends the same bytes for pod after pod, except that DEL, CHECK and GC carry what differs from call to call;
that is left out before a configuration is looked up. The flat file of Whereabouts, which fills what a configuration
leaves empty (design W16), is read again when it changed. It is Whereabouts' own: a network of type podtide, which has
the node's pool where it has no range, uses one only if it names it.
"""

import os
import stat
from functools import lru_cache
from pathlib import Path

import msgspec

from podtide.cni.documents import decode
from podtide.cni.ipam_config import IpamConfig, understand
from podtide.cni.network_config import NetworkConfig, find_ipam
from podtide.core.errors import InvalidConfig, PodtideError

_OF_THE_NETWORK = frozenset({"cniversion", "name", "ipam", "plugins"})
_OF_A_RANGE = frozenset({"range", "ipranges", "configuration_path"})
_TELLING = (b"range", b"whereabouts", b"configuration_path")
_MOST_FLAT_BYTES = 1 << 20


def read_config(stdin: bytes) -> IpamConfig:
    """What a configuration means, its flat file included."""
    network = _found(stdin)
    if network.ipam.type == "podtide" and not network.ipam.configuration_path:
        return _understood(stdin, b"")
    return _understood(stdin, _flat_file(network))


def read_for_deletion(stdin: bytes) -> IpamConfig | None:
    """The same for a DEL; None when it cannot be used: addresses are freed all the same."""
    document = decode(stdin, "network configuration")
    network = {key: value for key, value in document.items() if key.lower() in _OF_THE_NETWORK}
    try:
        return read_config(msgspec.json.encode(network))
    except PodtideError:
        return None


@lru_cache(maxsize=8)
def may_have_ranges(stdin: bytes) -> bool:
    """Whether a configuration may be a secondary network's, be it unusable; never so of one for the node's pool."""
    text = stdin.lower()
    if not any(word in text for word in _TELLING):
        return False  # most DELs end here, before anything is decoded
    document = decode(stdin, "network configuration")
    ipam = next((value for key, value in document.items() if key.lower() == "ipam"), None)
    if not isinstance(ipam, dict):
        return False
    keys = {key.lower(): value for key, value in ipam.items()}
    return keys.get("type") == "whereabouts" or not _OF_A_RANGE.isdisjoint(keys)


_found = lru_cache(maxsize=64)(find_ipam)


@lru_cache(maxsize=64)
def _understood(stdin: bytes, flat: bytes) -> IpamConfig:
    return understand(_found(stdin), flat)


def _flat_file(network: NetworkConfig) -> bytes:
    """The first flat file that exists."""
    for path in network.flat_file_paths:
        try:
            found = os.stat(path)  # noqa: PTH116 - once for each ADD, and a Path costs more than the call
            if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_FLAT_BYTES:
                raise InvalidConfig(
                    f"flat file {path} is not a regular file of at most 1 MiB: correct configuration_path"
                )
            return _content(path, (found.st_ino, found.st_mtime_ns, found.st_size))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise InvalidConfig(f"flat file {path!r} cannot be read ({error}): correct that") from error
    return b""


@lru_cache(maxsize=16)
def _content(path: str, _version: tuple[int, int, int]) -> bytes:
    return Path(path).read_bytes()
