"""The credentials that requests are sent with.

They are read again for every request, so that what changes while we run (a rotated token file, a plugin's credential
that expired) is never an hour old. After a 401 they are read once more, naming what was refused.
"""

import asyncio
import base64
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from podtide.cluster.kubernetes.access import InvalidAccess, KeyPair, Plugin, Secret, User
from podtide.cluster.kubernetes.exec_plugin import Credential, run_plugin
from podtide.runtime.clock import Clock

PLUGIN_SECONDS = 60.0


class Proof(Struct, frozen=True):
    """What a request is authenticated by: a client certificate, a header, both or neither."""

    key_pair: KeyPair | None = None
    authorization: Secret | None = None


class Credentials(Protocol):
    """A source of proofs."""

    async def prove(self, refused: Proof | None = None) -> Proof:
        """The proof to use now. `refused` is the one that got a 401: the same proof again means there is no other."""
        ...


def credentials_of(user: User, clock: Clock) -> Credentials:
    """The credentials a user has."""
    if user.token_file:
        return FileCredentials(user.token_file, user.key_pair)
    if user.token:
        return FixedCredentials(Proof(user.key_pair, _bearer(user.token, "of the kubeconfig's user")))
    if user.username and user.password:
        return FixedCredentials(Proof(user.key_pair, basic(user.username, user.password)))
    if user.plugin:
        return PluginCredentials(user.plugin, clock)
    return FixedCredentials(Proof(user.key_pair))


def basic(username: str, password: Secret) -> Secret:
    """A name and a password as a header has them."""
    both = f"{username}:{password.reveal()}".encode()
    return Secret(f"Basic {base64.b64encode(both).decode()}")


class FixedCredentials:
    """Credentials that never change."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    async def prove(self, refused: Proof | None = None) -> Proof:
        """The same proof every time."""
        del refused
        return self._proof


class FileCredentials:
    """A token in a file, which another program rotates."""

    def __init__(self, path: Path, key_pair: KeyPair | None) -> None:
        self._path = path
        self._key_pair = key_pair

    async def prove(self, refused: Proof | None = None) -> Proof:
        """The token as the file has it now."""
        del refused
        try:
            token = Secret(self._path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidAccess(
                f"the token in {self._path} cannot be read ({error}): check that the file exists"
            ) from error
        return Proof(self._key_pair, _bearer(token, f"in {self._path}"))


class _CachedProof(Struct, frozen=True):
    """The proof from a plugin's credential, until it expires. An unusable credential is never cached."""

    proof: Proof
    expires_at: float | None


class PluginCredentials:
    """The credential that a plugin printed, until it expires or is refused. The plugin runs once at a time."""

    def __init__(self, plugin: Plugin, clock: Clock, timeout_seconds: float = PLUGIN_SECONDS) -> None:
        self._plugin = plugin
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._held: _CachedProof | None = None
        self._one_at_a_time = asyncio.Lock()

    async def prove(self, refused: Proof | None = None) -> Proof:
        """The cached proof, or a new one from the plugin when it expired or was refused."""
        async with self._one_at_a_time:
            if self._held is None or self._has_expired(self._held) or self._held.proof == refused:
                self._held = None
                credential = await run_plugin(self._plugin, self._timeout_seconds)
                self._held = _CachedProof(self._proof(credential), credential.expires_at)
            return self._held.proof

    def _has_expired(self, held: _CachedProof) -> bool:
        return held.expires_at is not None and held.expires_at <= self._clock.wall()

    def _proof(self, credential: Credential) -> Proof:
        if credential.token is None:
            return Proof(credential.key_pair)
        whose = f"that the credential plugin {self._plugin.command} gave"
        return Proof(credential.key_pair, _bearer(credential.token, whose))


def _bearer(token: Secret, whose: str) -> Secret:
    """A token as an HTTP header. White space around it is dropped; within, it would end the header."""
    text = token.reveal().strip()
    if not text:
        raise InvalidAccess(f"the token {whose} is empty: write the token there")
    if " " in text or not text.isprintable():
        raise InvalidAccess(f"the token {whose} has white space or control characters in it: correct it")
    return Secret(f"Bearer {text}")
