"""The versions of the CNI specification podtide speaks, and which verb came with which.

A caller states its version in every configuration and gets its answer in the same one: a kubelet of ten years ago
and today's both work.
"""

from enum import StrEnum
from typing import Final

import msgspec

from podtide.cni.errors import IncompatibleVersion


class Verb(StrEnum):
    """The operation that the runtime asks for: CNI_COMMAND."""

    ADD = "ADD"
    DEL = "DEL"
    CHECK = "CHECK"
    STATUS = "STATUS"
    GC = "GC"
    VERSION = "VERSION"


SUPPORTED: Final = ("0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0")
"""Oldest first, so that a place in it compares versions."""

LATEST: Final = SUPPORTED[-1]

UNSTATED: Final = "0.1.0"
"""What a configuration without cniVersion means: the first specification had no such key."""

_SINCE = {Verb.CHECK: "0.4.0", Verb.STATUS: "1.1.0", Verb.GC: "1.1.0"}


def spoken(cni_version: str) -> str:
    """The version to answer in, or IncompatibleVersion."""
    version = cni_version or UNSTATED
    if version not in SUPPORTED:
        raise IncompatibleVersion(
            f"cniVersion {version!r} is not supported; use one of {', '.join(SUPPORTED)}"
        )
    return version


def require_verb(verb: Verb, cni_version: str) -> None:
    """Refuse a verb that the caller's version does not have."""
    since = _SINCE.get(verb, SUPPORTED[0])
    if not at_least(spoken(cni_version), since):
        raise IncompatibleVersion(
            f"{verb} does not exist in cniVersion {cni_version or UNSTATED!r}; it needs {since} or later"
        )


def at_least(version: str, since: str) -> bool:
    """Whether one supported version is another, or came after it."""
    return SUPPORTED.index(version) >= SUPPORTED.index(since)


class VersionAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer to VERSION."""

    cni_version: str
    supported_versions: tuple[str, ...] = SUPPORTED


def version_answer(cni_version: str = "") -> VersionAnswer:
    """The versions that podtide supports. The caller's version is echoed; a caller that states none gets the latest."""
    return VersionAnswer(cni_version=cni_version or LATEST)
