"""What a runtime sends along with a configuration: the attachments still alive (GC), and what ADD answered (CHECK).

For GC the price of a misreading is a running pod's address, so a list that is not there is never taken for an empty
one, and an entry that names no attachment is an error.
"""

from typing import Annotated, Any

import msgspec

from podtide.cni.addresses import IPInterface, parse_interface
from podtide.cni.documents import canonical, decode, read
from podtide.core.errors import InvalidConfig, InvalidInput

VALID_ATTACHMENTS = "cni.dev/valid-attachments"
_MISSPELLED = "cni.dev/attachments"
"""What a draft of the specification called it; libcni sends both."""

_Name = Annotated[str, msgspec.Meta(min_length=1)]


class CniAttachment(msgspec.Struct, frozen=True):
    """One interface of one sandbox, as ADD knew it."""

    container_id: _Name = msgspec.field(name="containerID")
    ifname: _Name


class _Attachments(msgspec.Struct, frozen=True):
    attachments: tuple[CniAttachment, ...] = ()


def valid_attachments(configuration: bytes | str) -> frozenset[CniAttachment]:
    """The attachments of the network that GC must leave alone. Null is how Go writes an empty list."""
    document = decode(configuration, "network configuration")
    key = VALID_ATTACHMENTS if VALID_ATTACHMENTS in document else _MISSPELLED
    if key not in document:
        raise InvalidConfig(
            f"GC needs {VALID_ATTACHMENTS} in its configuration: without it, what lives is unknown"
        )
    found = canonical({"attachments": document[key]}, _Attachments)
    return frozenset(read(found, _Attachments, key).attachments)


class _Ip(msgspec.Struct, frozen=True):
    address: str


class _PreviousResult(msgspec.Struct, frozen=True):
    ips: tuple[_Ip, ...] = ()


class _Checked(msgspec.Struct, frozen=True):
    previous: _PreviousResult = msgspec.field(name="prevResult")


def previous_addresses(configuration: bytes | str) -> frozenset[IPInterface]:
    """The addresses that ADD gave, which CHECK is to confirm. Plugins later in the chain may have added others."""
    document: dict[str, Any] = canonical(decode(configuration, "network configuration"), _Checked)
    if "prevResult" not in document:
        raise InvalidConfig(
            "CHECK needs prevResult in its configuration: the answer of the ADD it is to check"
        )
    ips = read(document, _Checked, "network configuration").previous.ips
    try:
        return frozenset(parse_interface(ip.address) for ip in ips)
    except InvalidInput as error:
        raise InvalidConfig(f"prevResult: {error}") from error
