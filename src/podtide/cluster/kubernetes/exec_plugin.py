"""Credentials that a program prints: `exec` in a kubeconfig, client.authentication.k8s.io v1 and v1beta1.

The program is run when its credential is first needed, when that has expired, and once when the server refuses it. Of
what it prints nothing is ever shown, for it may be a secret; of what it says on stderr, the last line.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress

import msgspec
from msgspec import Struct

from podtide.cluster.kubernetes.access import InvalidAccess, KeyPair, Plugin, Secret
from podtide.resources.timestamps import InvalidTimestamp, to_wall_seconds
from podtide.runtime.child_process import kill
from podtide.runtime.foreign_json import UnreadableJson, decode_json

_LONGEST_COMPLAINT = 200


class Credential(Struct, frozen=True, kw_only=True):
    """The credential that a plugin printed."""

    token: Secret | None
    key_pair: KeyPair | None
    expires_at: float | None
    """In wall seconds; None if the plugin does not say."""


class _Status(Struct, frozen=True, kw_only=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    status: _Status


async def run_plugin(plugin: Plugin, timeout_seconds: float) -> Credential:
    """Run the plugin once. InvalidAccess says in one line why there is no credential, and how to get one."""
    interactive = _may_ask(plugin)
    try:
        process = await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.arguments,
            env=_environment(plugin, interactive=interactive),
            stdin=None if interactive else DEVNULL,
            stdout=PIPE,
            stderr=None if interactive else PIPE,  # a person must see where to log in
            start_new_session=not interactive,  # so that what it starts can be ended with it
        )
    except OSError as error:
        raise _failure(plugin, f"cannot be started: {error.strerror}") from error
    try:
        async with asyncio.timeout(timeout_seconds):
            printed, said = await process.communicate()
    except asyncio.CancelledError:
        await _end(process, alone=interactive)
        raise
    except TimeoutError:
        await _end(process, alone=interactive)
        raise _failure(plugin, f"was not done within {timeout_seconds:g} s") from None
    if process.returncode != 0:
        raise _failure(plugin, f"failed with status {process.returncode}{_last_line(said)}")
    return _credential(plugin, printed)


async def _end(process: Process, *, alone: bool) -> None:
    """End it, and all that it started unless that shares a terminal with us; then wait until its output has ended."""
    if alone:
        await kill(process)
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


def _may_ask(plugin: Plugin) -> bool:
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not at_terminal:
        raise _failure(plugin, "needs a terminal for its questions, and there is none")
    return at_terminal and plugin.interactive_mode != "Never"


def _environment(plugin: Plugin, *, interactive: bool) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": interactive}
    if plugin.cluster_info:
        spec["cluster"] = msgspec.Raw(plugin.cluster_info.reveal().encode())
    question = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return {
        **os.environ,
        **{name: value.reveal() for name, value in plugin.environment},
        "KUBERNETES_EXEC_INFO": msgspec.json.encode(question).decode(),
    }


def _credential(plugin: Plugin, printed: bytes) -> Credential:
    try:
        answer = decode_json(printed, _ExecCredential)
    except UnreadableJson:
        raise _failure(plugin, "printed no ExecCredential") from None
    if (answer.api_version, answer.kind) != (plugin.api_version, "ExecCredential"):
        raise _failure(plugin, f"did not print an ExecCredential of {plugin.api_version}")
    status = answer.status
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key) or not (status.token or certificate):
        raise _failure(plugin, "gave neither a token nor a certificate with its key")
    try:
        expires_at = to_wall_seconds(status.expiration_timestamp) if status.expiration_timestamp else None
    except InvalidTimestamp as error:
        raise _failure(plugin, f"gave an invalid expirationTimestamp: {error}") from error
    return Credential(
        token=Secret(status.token) if status.token else None,
        key_pair=KeyPair(Secret(certificate), Secret(key)) if certificate and key else None,
        expires_at=expires_at,
    )


def _failure(plugin: Plugin, what: str) -> InvalidAccess:
    hint = " ".join(plugin.install_hint.split())
    advice = hint or "run it by hand to see why, or use another user in the kubeconfig"
    return InvalidAccess(f"the credential plugin {plugin.command} {what}: {advice}")


def _last_line(said: bytes | None) -> str:
    lines = (said or b"").decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last[:_LONGEST_COMPLAINT]})" if last else ""
