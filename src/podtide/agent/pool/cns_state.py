"""Reads the state file of Azure CNS: which sandbox it gave which addresses.

CNS writes it where it manages endpoints itself (its setting `ManageEndpointState`), as JSON with one object per sandbox.
Versions differ in what they leave out and add; only what all of them write is read here, and nothing in it has a default
that would let a file of another form look like one without sandboxes.

The file is another program's and may be missing, damaged or of a later form. Then the pool is rebuilt from the pods
alone, as it is on every other node.
"""

from pathlib import Path

import msgspec
from msgspec import Struct

from podtide.core.errors import InvalidInput
from podtide.core.pool.adoption import RecordedEndpoint
from podtide.core.ranges import parse_address
from podtide.runtime.logging import Logger

_MOST_BYTES = 16 * 1024 * 1024
"""Some thousand times what a node's pods need."""
_DEFAULT_INTERFACE = "eth0"
"""The interface of an ADD that named none."""


class _CnsAddress(Struct, frozen=True):
    ip: str = msgspec.field(name="IP")


class _CnsInterface(Struct, frozen=True):
    ipv4: list[_CnsAddress] | None = msgspec.field(name="IPv4")
    ipv6: list[_CnsAddress] | None = msgspec.field(name="IPv6", default=None)


class _CnsEndpoint(Struct, frozen=True):
    pod_name: str = msgspec.field(name="PodName")
    pod_namespace: str = msgspec.field(name="PodNamespace")
    interfaces: dict[str, _CnsInterface] = msgspec.field(name="IfnameToIPMap")


class _CnsState(Struct, frozen=True):
    endpoints: dict[str, _CnsEndpoint] = msgspec.field(name="Endpoints")


_decoder = msgspec.json.Decoder(_CnsState)


def parse_cns_state(content: bytes) -> tuple[RecordedEndpoint, ...]:
    """The sandboxes' interfaces that have addresses. InvalidInput when the content is not CNS' state."""
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"it has more than {_MOST_BYTES} bytes")
    try:
        state = _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"it is not the state of CNS' endpoints: {error}") from error
    found: dict[tuple[str, str], RecordedEndpoint] = {}
    for sandbox, endpoint in state.endpoints.items():
        for interface, given in endpoint.interfaces.items():
            key = (sandbox, interface or _DEFAULT_INTERFACE)
            texts = [address.ip for address in (*(given.ipv4 or ()), *(given.ipv6 or ()))]
            before = found[key].addresses if key in found else ()
            addresses = dict.fromkeys((*before, *(str(parse_address(text)) for text in texts)))
            if addresses:
                found[key] = RecordedEndpoint(
                    *key, endpoint.pod_namespace, endpoint.pod_name, tuple(addresses)
                )
    return tuple(found.values())


class CnsStateFile:
    """The state file that CNS left on this node."""

    def __init__(self, path: Path, *, log: Logger) -> None:
        self._path = path
        self._log = log

    def read(self) -> tuple[RecordedEndpoint, ...]:
        """What it says; nothing, and one line in the log, when it cannot be read."""
        try:
            with self._path.open("rb") as file:
                endpoints = parse_cns_state(file.read(_MOST_BYTES + 1))
        except (OSError, InvalidInput) as error:
            self._log.warning(
                "cannot read CNS' state file; the pool is rebuilt from the pods alone",
                file=str(self._path),
                error=str(error),
            )
            return ()
        self._log.info("read CNS' state file", file=str(self._path), sandboxes=len(endpoints))
        return endpoints
