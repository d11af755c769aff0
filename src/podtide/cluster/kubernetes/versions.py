"""Resource versions as API servers number them.

To podtide they are opaque (see `cluster.port`); only towards a server, which counts them in 64 bits, are they numbers.
Whoever reads one goes through here, because it may come from anywhere: `int()` of text takes digits of any script, and
raises at a few thousand of them.
"""

import re

_DIGITS = re.compile(r"[0-9]{1,20}")
_LARGEST = 2**64 - 1


def version_number(version: str) -> int | None:
    """The number a version is, or None when no server can have given it."""
    if not _DIGITS.fullmatch(version):
        return None
    number = int(version)
    return number if number <= _LARGEST else None
