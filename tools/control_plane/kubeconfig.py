"""Kubeconfig files: one server, one credential, everything inside the file."""

import base64
from typing import Any, TypeAlias

import yaml

from control_plane.certificates import KeyPair

Credential: TypeAlias = KeyPair | str
"""A client certificate, or a bearer token."""


def kubeconfig(server: str, certificate_authority: str, user: str, credential: Credential) -> str:
    """The file's text. kubectl and clients of every kind take it."""
    cluster = {"server": server, "certificate-authority-data": _base64(certificate_authority)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "podtide", "cluster": cluster}],
            "users": [{"name": user, "user": _user(credential)}],
            "contexts": [{"name": user, "context": {"cluster": "podtide", "user": user}}],
            "current-context": user,
        },
        sort_keys=False,
    )


def _user(credential: Credential) -> dict[str, Any]:
    if isinstance(credential, str):
        return {"token": credential}
    return {
        "client-certificate-data": _base64(credential.certificate),
        "client-key-data": _base64(credential.key),
    }


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
