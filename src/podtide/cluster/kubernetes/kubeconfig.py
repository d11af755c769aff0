"""What a context of a kubeconfig means: which server, as which user, in which namespace.

A mistake is reported at once and in one line, with its place. What podtide does not support is refused, never ignored:
ignoring an impersonation would mean to act with more rights than intended.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from podtide.cluster.kubernetes import kubeconfig_file as written
from podtide.cluster.kubernetes.access import (
    Access,
    Endpoint,
    InvalidAccess,
    KeyPair,
    Pem,
    Plugin,
    Secret,
    User,
)
from podtide.cluster.kubernetes.proxies import check_proxy

T = TypeVar("T")

_PLUGIN_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_PLUGIN_CONFIG = "client.authentication.k8s.io/exec"
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def load_kubeconfig(paths: Sequence[Path], context: str = "") -> Access:
    """The access of a context (the current one, if none is named)."""
    where = ", ".join(str(path) for path in paths)
    file = written.read_files(paths)
    name = context or file.current_context
    if not name:
        raise InvalidAccess(
            f"{where} has no current-context: name a context, of which it has {_names(file.contexts)}"
        )
    chosen = _pick(file.contexts, name, "context", where)
    cluster = _pick(file.clusters, chosen.cluster, "cluster", where)
    user = _pick(file.users, chosen.user, "user", where) if chosen.user else written.KubeconfigUser()
    found_in = f"context {name} in {where}"
    return Access(
        endpoint=_endpoint(cluster, found_in),
        user=_user(user, cluster, found_in),
        namespace=chosen.namespace,
        context=name,
        found_in=found_in,
    )


def _pick(entries: Mapping[str, T], name: str, what: str, where: str) -> T:
    if name not in entries:
        raise InvalidAccess(f"{where} has no {what} {name!r}: it has {_names(entries)}")
    return entries[name]


def _names(entries: Iterable[str]) -> str:
    return ", ".join(sorted(entries)) or "none at all"


def _endpoint(cluster: written.KubeconfigCluster, found_in: str) -> Endpoint:
    _check_server(cluster.server, found_in)
    if cluster.proxy_url:
        check_proxy(cluster.proxy_url, f"{found_in}: proxy-url")
    return Endpoint(
        server=cluster.server,
        authority=_pem(
            cluster.certificate_authority_data,
            cluster.certificate_authority,
            "certificate-authority",
            found_in,
        ),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=Secret(cluster.proxy_url) if cluster.proxy_url else None,
    )


def _check_server(url: str, found_in: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidAccess(f"{found_in}: its server is not a valid URL: give one such as https://host:port")


def _user(user: written.KubeconfigUser, cluster: written.KubeconfigCluster, found_in: str) -> User:
    if user.auth_provider is not None:
        raise InvalidAccess(
            f"{found_in}: auth-provider went out of use with Kubernetes 1.26: use exec with the provider's plugin"
        )
    if user.impersonate:
        raise InvalidAccess(f"{found_in}: acting as another user is not supported: take out `as`")
    certificate = _pem(user.client_certificate_data, user.client_certificate, "client-certificate", found_in)
    key = _pem(user.client_key_data, user.client_key, "client-key", found_in)
    if (certificate is None) != (key is None):
        raise InvalidAccess(f"{found_in}: of client-certificate and client-key one is missing: give both")
    return User(
        key_pair=KeyPair(certificate, key) if certificate and key else None,
        token_file=Path(user.token_file) if user.token_file else None,
        token=Secret(user.token) if user.token else None,
        username=user.username,
        password=Secret(user.password) if user.username else None,
        plugin=_plugin(user.exec, cluster, found_in) if user.exec else None,
    )


def _pem(data: str, path: str, what: str, found_in: str) -> Pem | None:
    """The PEM data from the kubeconfig itself, else from the path it names."""
    if data:
        try:
            return Secret(base64.b64decode(data).decode())
        except (binascii.Error, UnicodeDecodeError):
            raise InvalidAccess(f"{found_in}: {what}-data is not PEM in base64: correct it") from None
    if not path:
        return None
    _read(Path(path), what, found_in)
    return Path(path)


def _read(path: Path, what: str, found_in: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidAccess(
            f"{found_in}: {what} {path} cannot be read: {error.strerror}; correct the path or its permissions"
        ) from error


def _plugin(plugin: written.Exec, cluster: written.KubeconfigCluster, found_in: str) -> Plugin:
    for what, value, allowed in (
        ("apiVersion", plugin.api_version, _PLUGIN_VERSIONS),
        ("interactiveMode", plugin.interactive_mode, _INTERACTIVE_MODES),
    ):
        if value not in allowed:
            raise InvalidAccess(f"{found_in}: exec has {what} {value!r}: use one of {', '.join(allowed)}")
    return Plugin(
        command=plugin.command,
        api_version=plugin.api_version,
        arguments=tuple(plugin.args),
        environment=tuple((variable.name, Secret(variable.value)) for variable in plugin.env),
        install_hint=plugin.install_hint,
        interactive_mode=plugin.interactive_mode,
        cluster_info=_cluster_info(cluster, found_in) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: written.KubeconfigCluster, found_in: str) -> Secret:
    authority = cluster.certificate_authority_data
    if cluster.certificate_authority and not authority:
        content = _read(Path(cluster.certificate_authority), "certificate-authority", found_in)
        authority = base64.b64encode(content).decode()
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority,
        "proxy-url": cluster.proxy_url,
        "config": next((each.extension for each in cluster.extensions if each.name == _PLUGIN_CONFIG), None),
    }
    return Secret(msgspec.json.encode({name: value for name, value in info.items() if value}).decode())
