"""The certificate of the service, read again when its files change: a renewal needs no restart.

Every new connection checks whether the files have changed. A new pair that does not match, half written for example,
is not used: the last valid one stays in use until it does.
"""

import ssl
from pathlib import Path
from typing import NoReturn

from podtide.core.errors import InvalidInput
from podtide.runtime.logging import Logger

_Version = tuple[tuple[int, int, int], ...]


class InvalidCertificate(InvalidInput):
    """A certificate and key that cannot be used."""


class Certificate:
    """A certificate with its key, in two files."""

    def __init__(self, certificate: Path, key: Path, log: Logger) -> None:
        self._certificate = certificate
        self._key = key
        self._log = log
        self._version = self._look()
        self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """The TLS context to listen with; each new connection gets the certificate in the files at that time."""
        entrance = self._load()
        entrance.sni_callback = self._show_current
        return entrance

    def _show_current(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _entrance: ssl.SSLContext
    ) -> None:
        try:
            version = self._look()
            if version != self._version:
                self._context = self._load()
                self._version = version
                self._log.info("certificate reloaded", certificate=str(self._certificate))
        except InvalidCertificate as error:
            self._log.error("certificate not reloaded: the previous one stays in use", reason=str(error))
        connection.context = self._context

    def _look(self) -> _Version:
        """A value that changes when one of the files is replaced or written."""
        try:
            found = [path.stat() for path in (self._certificate, self._key)]
        except OSError as error:
            raise self._unusable(error.strerror or "unreadable") from error
        return tuple((stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in found)

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self._certificate, self._key, password=_refuse_to_ask)
        except ssl.SSLError as error:
            raise self._unusable((error.reason or "it is not PEM").lower().replace("_", " ")) from error
        except (OSError, ValueError) as error:
            raise self._unusable(str(error)) from error
        return context

    def _unusable(self, reason: str) -> InvalidCertificate:
        return InvalidCertificate(
            f"the certificate {self._certificate} with the key {self._key} cannot be used ({reason}): correct them"
        )


def _refuse_to_ask() -> NoReturn:
    raise ValueError("the key is locked by a password")
