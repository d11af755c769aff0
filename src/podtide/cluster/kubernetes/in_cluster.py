"""How a pod reaches the API server of the cluster it runs in: by its service account.

Kubernetes replaces the token's file about once an hour; it is read for every request.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from podtide.cluster.kubernetes.access import Access, Endpoint, User

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def in_cluster_access(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Access | None:
    """The access of a pod's service account; None where this is no pod, or one without a token."""
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
