"""A control plane that runs: etcd, the API server with podtide's CRDs, controllers on request, and ways to break it.

Everything here is synchronous. A test that runs coroutines meanwhile calls what takes time in a thread:
`await asyncio.to_thread(control_plane.start_api_server)`.
"""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from control_plane import commands
from control_plane.binaries import Binaries
from control_plane.certificates import CertificateAuthority, signing_key
from control_plane.commands import NodeNetwork, Places
from control_plane.credentials import ADMINISTRATORS, Credentials
from control_plane.errors import CannotBuild
from control_plane.installation import install_crds, wait_until_served
from control_plane.json_http import JsonHttp
from control_plane.ports import LOOPBACK, free_ports
from control_plane.process import Nursery, Process

KUBECTL_SECONDS = 60.0

SecondaryCommand: TypeAlias = Callable[[Path, Places, Path], list[str]]
"""A command line, from the binary, the places and a kubeconfig."""


class ControlPlane:
    """One control plane, with data, ports and certificates of its own. Use it in a `with`: it leaves nothing behind."""

    def __init__(
        self,
        binaries: Binaries,
        *,
        controllers: Sequence[str] = commands.CONTROLLERS,
        api_server_options: Sequence[str] = (),
        nodes: NodeNetwork | None = None,
    ) -> None:
        """Start other `controllers`, or an API server with further options, for what few tests need.

        With a network of `nodes` the programs run there, kubelets can join, and CRDs are left to who installs podtide. What
        listens on its loopback address must be relayed to this process's (`ports`) before it is started.
        """
        self._binaries = binaries
        self._nodes = nodes
        self._nursery = Nursery()
        self._places = places = Places(self._nursery.directory, *free_ports(5))
        authority = CertificateAuthority()
        _write_files(places, authority, nodes)
        self.credentials = Credentials(places.api_server_url, authority, places.directory / "credentials")
        """Makes certificates, tokens and kubeconfigs for users and service accounts."""
        self._etcd_gateway = JsonHttp(places.etcd_url)
        self._etcd = self._program(
            commands.etcd(binaries.etcd, places), lambda: self._etcd_gateway.is_up("/health")
        )
        self._api_server = self._program(
            [*commands.api_server(binaries.kube_apiserver, places, nodes), *api_server_options],
            lambda: self.admin.is_up("/readyz"),
        )
        self._controllers = self._secondary(
            partial(commands.controller_manager, controllers),
            binaries.kube_controller_manager,
            places.controllers_port,
        )
        self._scheduler = self._secondary(commands.scheduler, binaries.kube_scheduler, places.scheduler_port)

    def __enter__(self) -> Self:
        try:
            self._etcd.start()
            self._api_server.start()
            if not self._nodes:
                install_crds(self.admin)
                wait_until_served(self.admin)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it all at once: nothing of it is worth saving."""
        for process in (self._scheduler, self._controllers, self._api_server, self._etcd):
            if process:
                process.kill()
        self._nursery.close()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self._places.api_server_url

    @property
    def api_server_pid(self) -> int:
        """The API server's process, where it runs beside this one: what it costs is read by it."""
        assert not self._nodes, "on a network of nodes this is the process that starts it"
        return self._api_server.pid

    @property
    def ports(self) -> tuple[int, ...]:
        """Where the programs listen on their loopback address."""
        return self._places.ports

    @property
    def url_for_nodes(self) -> str:
        """Where kubelets find the API server."""
        assert self._nodes is not None, "this control plane has no nodes"
        return f"https://{self._nodes.address}:{self._places.api_server_port}"

    @property
    def certificate_authority(self) -> Path:
        """What to trust the API server by, in PEM."""
        return self._places.certificate_authority

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, who may do everything."""
        return self.credentials.admin_kubeconfig

    @property
    def admin(self) -> JsonHttp:
        """The API server, asked as the administrator: `admin.request("GET", "/api/v1/nodes")`."""
        return self.credentials.admin

    @property
    def kubectl_command(self) -> tuple[str, ...]:
        """Kubectl as the administrator, for who starts it in another way."""
        return (str(self._binaries.kubectl), f"--kubeconfig={self.kubeconfig}")

    def kubectl(
        self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as the administrator unless told otherwise. Whether it failed is for the caller to look at."""
        return subprocess.run(
            [*self.kubectl_command, *([f"--kubeconfig={kubeconfig}"] if kubeconfig else []), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=KUBECTL_SECONDS,
            env={"HOME": str(self._places.directory)},  # its caches go with the rest
        )

    def start_etcd(self) -> None:
        """Start etcd with the data and ports it had, and wait until it serves."""
        self._etcd.start()

    def kill_etcd(self) -> None:
        """End etcd at once."""
        self._etcd.kill()

    def start_api_server(self) -> None:
        """Start the API server on the port it had, and wait until it serves every kind podtide knows."""
        self._api_server.start()
        if not self._nodes:
            wait_until_served(self.admin)

    def stop_api_server(self) -> None:
        """Ask the API server to end, as an upgrade does: it lets requests finish and closes its connections."""
        self._api_server.stop()

    def kill_api_server(self) -> None:
        """End the API server at once, in the middle of whatever it does."""
        self._api_server.kill()

    def revive(self) -> None:
        """Start again what was ended of etcd and the API server."""
        if not self._etcd.is_running:
            self.start_etcd()
        if not self._api_server.is_running:
            self.start_api_server()

    def back_up(self) -> Path:
        """Copy all that etcd has; answers where to. The API server is away for that long."""
        copy = self._places.directory / f"backup-{len(list(self._places.directory.glob('backup-*')))}"
        self.kill_api_server()
        self.kill_etcd()
        shutil.copytree(self._places.etcd_data, copy)
        self.revive()
        return copy

    def restore(self, backup: Path) -> None:
        """Go back to a backup: objects and revisions are as they were then, and are given out again from there."""
        self.kill_api_server()
        self.kill_etcd()
        shutil.rmtree(self._places.etcd_data)
        shutil.copytree(backup, self._places.etcd_data)
        self.revive()

    def start_controllers(self) -> None:
        """Start the controllers, by default the garbage collector, namespaces' and nodes', unless they run already."""
        _start_once(self._controllers, "kube-controller-manager")

    def start_scheduler(self) -> None:
        """Start the scheduler, unless it runs already."""
        _start_once(self._scheduler, "kube-scheduler")

    def stop_scheduler(self) -> None:
        """Ask the scheduler to end: from now on nobody binds a pod but who is told to."""
        if self._scheduler is not None:
            self._scheduler.stop()

    def compact(self) -> None:
        """Make etcd forget all but the present state. A running API server still knows recent changes by itself."""
        # Two writes of our own: etcd keeps the present revision, and serves a watch from the one before it.
        put = {"key": base64.b64encode(b"podtide/compaction").decode()}
        self._ask_etcd("put", put)
        revision = self._ask_etcd("put", put)["header"]["revision"]
        self._ask_etcd("compaction", {"revision": revision, "physical": True})

    def expire_history(self) -> None:
        """Make every resource version and continue token given out so far too old (410), by a new API server."""
        self.kill_api_server()
        self.compact()
        self.start_api_server()

    def _ask_etcd(self, operation: str, body: object) -> Any:
        return self._etcd_gateway.request("POST", f"/v3/kv/{operation}", body)

    def _secondary(self, command: SecondaryCommand, binary: Path | None, port: int) -> Process | None:
        """A program that is a client of the API server, if there is one."""
        if binary is None:
            return None
        user = f"system:{binary.name}"
        kubeconfig = self.credentials.kubeconfig_for_user(user, groups=[ADMINISTRATORS])
        server = JsonHttp(f"https://{LOOPBACK}:{port}", self.credentials.tls)
        return self._program(command(binary, self._places, kubeconfig), lambda: server.is_up("/healthz"))

    def _program(self, command: Sequence[str], is_ready: Callable[[], bool]) -> Process:
        inside = self._nodes.inside if self._nodes else ()
        log = self._nursery.directory / f"{Path(command[0]).name}.log"
        return Process(self._nursery, [*inside, *command], is_ready, log=log)


def _start_once(process: Process | None, name: str) -> None:
    if process is None:
        raise CannotBuild(
            f"KUBEBUILDER_ASSETS lacks {name}: put it there, or unset KUBEBUILDER_ASSETS to have everything built"
        )
    if not process.is_running:
        process.start()


def _write_files(places: Places, authority: CertificateAuthority, nodes: NodeNetwork | None) -> None:
    server = authority.server(LOOPBACK, *((nodes.address, commands.SERVICE_ADDRESS) if nodes else ()))
    kubelet_client = authority.client("kube-apiserver", [ADMINISTRATORS])
    places.kubelet_client_certificate.write_text(kubelet_client.certificate)
    places.kubelet_client_key.write_text(kubelet_client.key)
    places.certificate_authority.write_text(authority.certificate)
    places.server_certificate.write_text(server.certificate)
    places.server_key.write_text(server.key)
    places.service_account_key.write_text(signing_key())
    places.authentication.write_text(json.dumps(commands.AUTHENTICATION))
