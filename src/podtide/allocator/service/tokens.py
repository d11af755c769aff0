"""Who may ask: a file of tokens' hashes, each bound to a cluster or to administration.

The file holds no secret: of a token it has the SHA-256, so that a copy of the file gives no access. It is read again
when it changes. If it cannot be read, the tokens in force stay so, and the log says why.
"""

import hashlib
import re
from pathlib import Path

from msgspec import Struct

from podtide.allocator.limits import NAME_RULE
from podtide.allocator.wire import NAME_PATTERN
from podtide.core.errors import InvalidInput
from podtide.runtime.logging import Logger

_LINE = re.compile(r"([0-9a-fA-F]{64})\s+(?:(administration)|cluster\s+(\S+))")

_Version = tuple[int, int, int]


class InvalidTokens(InvalidInput):
    """An invalid tokens file."""


class Holder(Struct, frozen=True):
    """The holder of a token: a cluster, or without a name an administrator."""

    cluster: str = ""

    def __str__(self) -> str:
        return f"cluster {self.cluster}" if self.cluster else "administration"


class Tokens:
    """The tokens in force."""

    def __init__(self, path: Path, log: Logger) -> None:
        self._path = path
        self._log = log
        self._version: _Version | None = _version(path)
        self._holders = read_tokens(path)

    def holder(self, token: str) -> Holder | None:
        """The holder of this token. How long that takes tells of the hash alone, which a guess does not lead to."""
        self._refresh()
        return self._holders.get(hashlib.sha256(token.encode()).digest())

    def clusters(self) -> frozenset[str]:
        """The clusters that have a token."""
        self._refresh()
        return frozenset(holder.cluster for holder in self._holders.values() if holder.cluster)

    def _refresh(self) -> None:
        try:
            version = _version(self._path)
        except InvalidTokens:
            version = None
        if version == self._version:
            return
        self._version = version
        try:
            self._holders = read_tokens(self._path)
        except InvalidTokens as error:
            self._log.error("tokens not reloaded: the previous ones stay in force", reason=str(error))
        else:
            self._log.info("tokens reloaded", tokens=len(self._holders))


def read_tokens(path: Path) -> dict[bytes, Holder]:
    """The holders in a file, by the hashes of their tokens."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTokens(
            f"the tokens in {path} cannot be read ({error}): correct the path or the file"
        ) from error
    holders: dict[bytes, Holder] = {}
    for number, line in enumerate(lines, start=1):
        stated = line.partition("#")[0].strip()
        if not stated:
            continue
        match = _LINE.fullmatch(stated)
        if match is None:
            raise InvalidTokens(
                f"line {number} of {path} is not a valid token: write its SHA-256 in hexadecimal, "
                "then `cluster NAME` or `administration`"
            )
        digest, _administration, cluster = match.groups(default="")
        if cluster and not re.search(NAME_PATTERN, cluster):
            raise InvalidTokens(f"line {number} of {path}: cluster {cluster!r} {NAME_RULE}")
        holders[bytes.fromhex(digest)] = Holder(cluster)
    if not holders:
        raise InvalidTokens(f"{path} has no token, so that every request would be refused: add one")
    return holders


def _version(path: Path) -> _Version:
    """A value that changes when the file is replaced or written."""
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidTokens(
            f"the tokens in {path} cannot be read ({error.strerror}): correct the path"
        ) from error
    return found.st_ino, found.st_size, found.st_mtime_ns
