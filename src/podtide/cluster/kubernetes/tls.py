"""TLS of a connection: which authorities are trusted, and which client certificate is sent.

Files are loaded again when they change on disk, so that a rotated certificate needs no restart; connections made
before keep what they were made with.
"""

import ssl
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from podtide.cluster.kubernetes.access import Endpoint, InvalidAccess, KeyPair, Pem

_Version = tuple[int, int, int]


class TlsContexts:
    """The TLS context for connections to an endpoint, cached until a file it was made from changes."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._made_from: object = None
        self._context: ssl.SSLContext | None = None

    def current(self, key_pair: KeyPair | None) -> ssl.SSLContext:
        """The context that shows this certificate."""
        pems = (self._endpoint.authority, *((key_pair.certificate, key_pair.key) if key_pair else ()))
        made_from = (key_pair, [_version(pem) for pem in pems])
        if self._context is None or made_from != self._made_from:
            self._context = _make_context(self._endpoint, key_pair)
            self._made_from = made_from
        return self._context


def _version(pem: Pem | None) -> _Version | None:
    """A value that changes when the file is replaced or written."""
    if not isinstance(pem, Path):
        return None
    try:
        found = pem.stat()
    except OSError as error:
        raise InvalidAccess(
            f"{pem} cannot be read: {error.strerror}; correct the path or its permissions"
        ) from error
    return found.st_ino, found.st_size, found.st_mtime_ns


def _make_context(endpoint: Endpoint, key_pair: KeyPair | None) -> ssl.SSLContext:
    # Not `create_default_context`: newer Pythons are strict there, and refuse what many clusters' authorities sign.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if endpoint.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif endpoint.authority is None:
        context.load_default_certs()
    else:
        _trust(context, endpoint.authority)
    if key_pair is not None:
        _show(context, key_pair)
    return context


def _trust(context: ssl.SSLContext, authority: Pem) -> None:
    try:
        if isinstance(authority, Path):
            context.load_verify_locations(cafile=authority)
        else:
            context.load_verify_locations(cadata=authority.reveal())
    except (OSError, ValueError) as error:
        raise InvalidAccess(
            f"the certificate authority {_name(authority)} cannot be used: {_reason(error)}; correct it"
        ) from error


def _show(context: ssl.SSLContext, key_pair: KeyPair) -> None:
    try:
        with TemporaryDirectory() as directory:  # the ssl module reads certificates from files alone
            context.load_cert_chain(
                _as_file(key_pair.certificate, Path(directory, "certificate")),
                _as_file(key_pair.key, Path(directory, "key")),
                password=_refuse_to_ask,
            )
    except (OSError, ValueError) as error:
        raise InvalidAccess(
            f"the client certificate {_name(key_pair.certificate)} with the key {_name(key_pair.key)} "
            f"cannot be used: {_reason(error)}; correct them"
        ) from error


def _as_file(pem: Pem, scratch: Path) -> Path:
    if isinstance(pem, Path):
        return pem
    scratch.touch(mode=0o600)
    scratch.write_text(pem.reveal())
    return scratch


def _refuse_to_ask() -> NoReturn:
    raise ValueError("the key is locked by a password")


def _name(pem: Pem) -> str:
    return str(pem) if isinstance(pem, Path) else "given in place"


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "it is not PEM").lower().replace("_", " ")
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
