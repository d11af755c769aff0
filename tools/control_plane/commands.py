"""The command lines of the control plane's programs: what is set differently from their defaults, and why."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from control_plane.ports import LOOPBACK

AUTHENTICATION = {
    "apiVersion": "apiserver.config.k8s.io/v1beta1",  # Kubernetes 1.32 knows no newer one
    "kind": "AuthenticationConfiguration",
    "anonymous": {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/livez", "/readyz", "/healthz")],
    },
}
"""Health may be asked without a credential, and nothing else."""

# The API server refuses to advertise a loopback address, and the machine may have no other. This one is set aside for
# documentation (RFC 5737) and leads nowhere, which is no loss: nothing here uses the `kubernetes` service.
ADVERTISED = "192.0.2.1"

# Those whose work podtide relies on: what the gone owned is collected, deleted namespaces are emptied, silent nodes are
# tainted, and the roles `view`, `edit` and `admin` are filled. Those that make pods or delete them would only disturb.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "node-lifecycle-controller",
)


# What a cluster with nodes runs: those that make pods, account tokens and endpoints too.
ALL_CONTROLLERS = ("*",)

SERVICE_ADDRESS = "10.0.0.1"
"""Of the Service `kubernetes`, by which pods find the API server: the first of the range."""
SERVICE_RANGE = "10.0.0.0/24"


class NodeNetwork(Struct, frozen=True):
    """The network on which kubelets reach the API server, and it reaches them."""

    inside: tuple[str, ...]
    """What to put before a command that is to run on that network."""
    address: str
    """The control plane's there."""


class Places(Struct, frozen=True):
    """Where the programs listen (on the loopback address), and where their files are."""

    directory: Path
    etcd_port: int
    etcd_peer_port: int
    api_server_port: int
    controllers_port: int
    scheduler_port: int

    @property
    def ports(self) -> tuple[int, ...]:
        """All on which programs listen for clients."""
        return (self.etcd_port, self.api_server_port, self.controllers_port, self.scheduler_port)

    @property
    def etcd_data(self) -> Path:
        """Where etcd keeps everything."""
        return self.directory / "etcd"

    @property
    def etcd_url(self) -> str:
        """Plain HTTP: what is in there is worth nothing once the test is over."""
        return f"http://{LOOPBACK}:{self.etcd_port}"

    @property
    def api_server_url(self) -> str:
        """Where clients of every kind go."""
        return f"https://{LOOPBACK}:{self.api_server_port}"

    @property
    def certificate_authority(self) -> Path:
        """Signs servers and clients alike."""
        return self.directory / "ca.crt"

    @property
    def server_certificate(self) -> Path:
        """Of every server: they share one address."""
        return self.directory / "server.crt"

    @property
    def server_key(self) -> Path:
        """Belongs to the certificate."""
        return self.directory / "server.key"

    @property
    def kubelet_client_certificate(self) -> Path:
        """By which kubelets know the API server."""
        return self.directory / "kubelet-client.crt"

    @property
    def kubelet_client_key(self) -> Path:
        """Belongs to the certificate."""
        return self.directory / "kubelet-client.key"

    @property
    def service_account_key(self) -> Path:
        """Signs bound tokens, and is what they are checked against."""
        return self.directory / "service-accounts.key"

    @property
    def authentication(self) -> Path:
        """Who may come without a credential."""
        return self.directory / "authentication.yaml"


def etcd(binary: Path, places: Places) -> list[str]:
    """No fsync: after a crash of the machine there is nobody left to miss the data."""
    peers = f"http://{LOOPBACK}:{places.etcd_peer_port}"
    return [
        f"{binary}",
        f"--data-dir={places.etcd_data}",
        f"--listen-client-urls={places.etcd_url}",
        f"--advertise-client-urls={places.etcd_url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",
        # As kubeadm has it: bookmarks of idle kinds rest on it. etcd 3.5 has it by this name alone, 3.6 by this one too.
        "--experimental-watch-progress-notify-interval=5s",
        "--log-level=warn",
    ]


def api_server(binary: Path, places: Places, nodes: NodeNetwork | None = None) -> list[str]:
    """RBAC and admission as in production; without nodes except what would ask for a kubelet or each pod's account."""
    return [
        f"{binary}",
        f"--etcd-servers={places.etcd_url}",
        f"--secure-port={places.api_server_port}",
        *(_for_nodes(places, nodes) if nodes else _WITHOUT_NODES),
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--client-ca-file={places.certificate_authority}",
        f"--tls-cert-file={places.server_certificate}",
        f"--tls-private-key-file={places.server_key}",
        f"--authentication-config={places.authentication}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-signing-key-file={places.service_account_key}",
        f"--service-account-key-file={places.service_account_key}",
        "--event-ttl=10m",
        "--shutdown-watch-termination-grace-period=1s",  # else a stop waits a minute for watches that never end
        "--profiling=false",
    ]


_WITHOUT_NODES = (
    f"--bind-address={LOOPBACK}",
    f"--advertise-address={ADVERTISED}",
    "--endpoint-reconciler-type=none",
    "--disable-admission-plugins=ServiceAccount",
)


def _for_nodes(places: Places, nodes: NodeNetwork) -> Sequence[str]:
    return (
        "--bind-address=0.0.0.0",
        f"--advertise-address={nodes.address}",
        "--allow-privileged",
        f"--kubelet-client-certificate={places.kubelet_client_certificate}",
        f"--kubelet-client-key={places.kubelet_client_key}",
        "--kubelet-preferred-address-types=InternalIP",
    )


def controller_manager(
    controllers: Sequence[str], binary: Path, places: Places, kubeconfig: Path
) -> list[str]:
    """One of its kind, so that no election delays it; its own limits raised, so that tests need not wait for them."""
    return [
        *_secondary(binary, places, places.controllers_port, kubeconfig),
        f"--controllers={','.join(controllers)}",
        f"--root-ca-file={places.certificate_authority}",
        f"--service-account-private-key-file={places.service_account_key}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


def scheduler(binary: Path, places: Places, kubeconfig: Path) -> list[str]:
    """One of its kind, so that no election delays it."""
    return _secondary(binary, places, places.scheduler_port, kubeconfig)


def _secondary(binary: Path, places: Places, port: int, kubeconfig: Path) -> list[str]:
    return [
        f"{binary}",
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={places.server_certificate}",
        f"--tls-private-key-file={places.server_key}",
        "--profiling=false",
    ]
