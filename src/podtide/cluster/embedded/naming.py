"""Names and labels as Kubernetes allows them."""

import re
from random import Random
from typing import Any

from podtide.cluster.port import Invalid

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LONGEST_NAME = 253
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What a made-up suffix is drawn from: no vowels, so that it spells nothing, and nothing that looks alike."""
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH


def made_up_name(prefix: str, randomness: Random) -> str:
    """The prefix (cut where the name would become too long for a label) and five letters."""
    return prefix[:_LONGEST_PREFIX] + "".join(randomness.choices(_LETTERS, k=_SUFFIX_LENGTH))


def check_metadata(kind: str, metadata: dict[str, Any]) -> None:
    """Refuse a name or label that Kubernetes would refuse."""
    name = metadata.get("name", "")
    if "namespace" in metadata and not _is_subdomain(metadata["namespace"]):
        raise Invalid(
            f"{kind} {name}: {metadata['namespace']!r} cannot be a namespace: use small letters, digits and '-'"
        )
    if not _is_subdomain(name):
        raise Invalid(
            f"{kind} {name!r} cannot be named so: use small letters, digits, '-' and '.', "
            f"a letter or digit at both ends, {_LONGEST_NAME} characters at most"
        )
    for label, value in (metadata.get("labels") or {}).items():
        prefix, slash, short = label.rpartition("/")
        if not _LABEL_NAME.fullmatch(short) or (slash and not _is_subdomain(prefix)):
            raise Invalid(
                f"{kind} {name}: {label!r} is not a valid label: use [prefix/]name, the name up to 63 letters, digits, -._"
            )
        if value and not _LABEL_NAME.fullmatch(value):
            raise Invalid(
                f"{kind} {name}: label {label} cannot be {value!r}: use up to 63 letters, digits, -._"
            )


def _is_subdomain(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and _SUBDOMAIN.fullmatch(text) is not None
