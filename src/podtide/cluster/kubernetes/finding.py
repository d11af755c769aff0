"""Which cluster is used when none is named: one order, for every command."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from podtide.cluster.kubernetes.access import Access, Endpoint, InvalidAccess, Secret, User
from podtide.cluster.kubernetes.proxies import proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def find_access(
    *,
    kubeconfig: Path | None = None,
    context: str = "",
    environment: Mapping[str, str],
    home: Path,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The file that was named, else KUBECONFIG, else the pod we run in, else ~/.kube/config.

    To name a context is to mean a kubeconfig, so then the pod is not asked. Where the kubeconfig names no proxy, the
    environment may.
    """
    access = _find(kubeconfig, context, environment, home, service_account)
    if access.endpoint.proxy:
        return access
    proxy = proxy_for(access.endpoint.server, environment)
    if proxy is None:
        return access
    return replace(access, endpoint=replace(access.endpoint, proxy=Secret(proxy)))


def _find(
    kubeconfig: Path | None, context: str, environment: Mapping[str, str], home: Path, service_account: Path
) -> Access:
    named = [Path(name) for name in environment.get("KUBECONFIG", "").split(os.pathsep) if name]
    default = home / ".kube" / "config"
    if kubeconfig is not None:
        return _from_files([kubeconfig], context)
    if named:
        return _from_files(named, context)
    if not context and (access := in_cluster_access(environment, service_account)):
        return access
    if default.exists():
        return _from_files([default], context)
    raise InvalidAccess(
        f"no cluster is named: KUBECONFIG is not set, there is no {default}, and no service account "
        f"in {service_account}: name a kubeconfig"
    )


def _from_files(paths: list[Path], context: str) -> Access:
    # Not at the top: a pod with its service account never needs YAML.
    from podtide.cluster.kubernetes.kubeconfig import load_kubeconfig  # noqa: PLC0415

    return load_kubeconfig(paths, context)


def in_cluster_access(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access | None:
    """The access of a pod's service account; None outside a pod, or in one without a token.

    Kubernetes replaces the token's file about once an hour; it is read for every request.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    token = directory / "token"
    if not host or not port or not token.exists():
        return None
    authority = directory / "ca.crt"
    namespace = ""
    with suppress(OSError):
        namespace = (directory / "namespace").read_text().strip()
    return Access(
        endpoint=Endpoint(
            server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            authority=authority if authority.exists() else None,
        ),
        user=User(token_file=token),
        namespace=namespace,
        is_pods_own=True,
        found_in=f"the service account in {directory}",
    )
