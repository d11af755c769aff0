"""How to reach an API server and as which user: what a kubeconfig or a pod's service account comes down to.

These are values: nothing here opens a connection, and secrets do not show when one is printed or logged.
"""

from pathlib import Path

from msgspec import Struct

from podtide.core.errors import InvalidInput


class InvalidAccess(InvalidInput):
    """The kubeconfig or service account is missing, cannot be read, or cannot be used."""


class Secret:
    """Text that must not appear in messages: a token, a password, a key."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text. Not for messages."""
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(...)"


Pem = Secret | Path
"""Certificates or a key: the text itself, or a file, which may be replaced while we run."""


class KeyPair(Struct, frozen=True):
    """A client certificate and its key."""

    certificate: Pem
    key: Pem


class Endpoint(Struct, frozen=True, kw_only=True):
    """An API server, and how to verify it."""

    server: str
    """Its URL; may have a path."""
    authority: Pem | None = None
    """The CA of its certificate; None for those that the machine trusts."""
    insecure: bool = False
    """Do not look at its certificate at all."""
    server_name: str = ""
    """The name its certificate is for, where that is not the URL's."""
    proxy: Secret | None = None
    """The proxy's URL, which may hold a password; None to use the environment."""


class Plugin(Struct, frozen=True, kw_only=True):
    """A program that prints credentials."""

    command: str
    """A name to look for in PATH, or a path."""
    api_version: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, Secret], ...] = ()
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster_info: Secret | None = None
    """What it is told of the cluster, as JSON, if it is to be told."""


class User(Struct, frozen=True, kw_only=True):
    """The client's credentials. A certificate is used for the connection; of the others, the first one that is set."""

    key_pair: KeyPair | None = None
    token_file: Path | None = None
    """Read for every request: tokens are rotated."""
    token: Secret | None = None
    username: str = ""
    password: Secret | None = None
    plugin: Plugin | None = None


class Access(Struct, frozen=True, kw_only=True):
    """A server, a user, and the default namespace."""

    endpoint: Endpoint
    user: User = User()
    namespace: str = ""
    is_pods_own: bool = False
    """Whether this is the pod's own service account, and the namespace that of the pod."""
    context: str = ""
    """The name that people know the cluster by; empty for a pod's own service account."""
    found_in: str
    """For messages: `context kind in /home/me/.kube/config`."""
