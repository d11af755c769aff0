"""`podtide agent`: the program on each node that owns the node's pool and answers the plugin."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import click
from msgspec import Struct

from podtide.agent.api.deletion_notes import DeletionNotes
from podtide.agent.api.routes import AgentApi
from podtide.agent.api.server import make_api, serving
from podtide.agent.bridge.port import Bridge
from podtide.agent.cni_installation import Installation, keep_installed
from podtide.agent.pool.cns_state import CnsStateFile
from podtide.agent.port import NotReady
from podtide.agent.program import AgentOptions, NodeAgent
from podtide.agent.secondary_program import SecondaryAgent
from podtide.cli.connections.cluster import ClusterConnection, cluster_options, networks_namespace_option
from podtide.cli.options.cni_installation import installation_options
from podtide.cli.options.names import NODE_NAME, require_object_name
from podtide.cli.options.paths import NamedFile
from podtide.cli.programs.health import serving_health
from podtide.cli.programs.running import Signals, log_option, run, setting_options, until_told
from podtide.cluster.kubernetes import Access, KubernetesCluster
from podtide.cni.conflist import BRIDGE, InterfaceType
from podtide.cni.network_config import FLAT_FILE_PATHS
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.logging import Logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

_OPEN = "the API of CNS is for this machine's root alone: listen on 127.0.0.1"
NODE_NAME_FILES = tuple(Path(path).with_name("nodename") for path in FLAT_FILE_PATHS)
"""Beside Whereabouts' flat files; the first file that contains a name counts."""


class _AgentPlan(Struct, frozen=True, kw_only=True):
    """What to run: all options, checked before anything is opened."""

    node_name: str
    state_directory: Path
    socket: Path
    listen: ListenAddress | None
    metrics_listen: ListenAddress | None
    installation: Installation | None
    node_pool: bool
    cns_state_file: Path | None
    networks_namespace: str
    access: Access
    settings: Settings


@click.command()
@click.option(
    "--node-name",
    type=NODE_NAME,
    metavar="NAME",
    help="This Node's name. Default: $NODENAME, else the name in Whereabouts' nodename file, else the host's name.",
)
@click.option(
    "--state-directory",
    default="/var/lib/podtide",
    metavar="DIRECTORY",
    show_default=True,
    help="The directory of the journal; created if missing. Only one agent at a time can use it.",
)
@click.option(
    "--socket",
    type=NamedFile(),
    default=Path("/run/podtide/agent.sock"),
    show_default=True,
    help="The Unix socket on which the plugin reaches the agent.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where to serve the API of Azure CNS, such as 127.0.0.1:10090; a loopback address. It answers "
    "processes of root only; /healthz, /readyz and /metrics are open to all. Default: nowhere.",
)
@click.option(
    "--metrics-listen",
    metavar="ADDRESS:PORT",
    help="Where to serve /metrics, /healthz and /readyz to other machines, such as 0.0.0.0:9091. Default: nowhere.",
)
@click.option(
    "--node-pool/--no-node-pool",
    default=True,
    show_default=True,
    help="Whether the node has a pool for its primary network; without it, only secondary networks are served.",
)
@click.option(
    "--cns-state-file",
    type=NamedFile(),
    help="The state file that Azure CNS left on this node, such as /var/run/azure-cns/azure-endpoints.json; read when "
    "the node was handed over and there is no journal yet. Default: none is read.",
)
@networks_namespace_option
@installation_options
@cluster_options
@setting_options(
    "gather",
    "gather_at_most",
    "shrink_delay",
    "cooldown",
    "add_wait",
    "contact_timeout",
    "quarantine",
    "leak_grace",
)
@log_option
def agent(  # noqa: PLR0913 - one argument per option
    *,
    node_name: str | None,
    state_directory: str,
    socket: Path,
    listen: str | None,
    metrics_listen: str | None,
    installation: Installation | None,
    node_pool: bool,
    cns_state_file: Path | None,
    networks_namespace: str,
    there: ClusterConnection,
    settings: Settings,
    log: Logger,
) -> None:
    """Run the agent of a node: keep its pool of addresses, and answer the CNI plugin.

    SIGTERM stops it: ADDs that wait are answered with "try again", and nothing that was answered is lost.
    """
    if not state_directory:
        raise InvalidInput(
            "--state-directory is empty: give the path of a directory, or leave out the option"
        )
    if not node_pool and installation is not None and installation.where.networks is not None:
        raise InvalidInput(
            "the primary network to install has its addresses from the node's pool: leave out --no-node-pool, or "
            "--cni-conf-directory"
        )
    plan = _AgentPlan(
        node_name=node_name or find_node_name(os.environ),
        state_directory=Path(state_directory),
        socket=socket,
        listen=parse_listen_address(listen, flag="--listen", open_because=_OPEN)
        if listen is not None
        else None,
        metrics_listen=parse_listen_address(metrics_listen, flag="--metrics-listen")
        if metrics_listen is not None
        else None,
        installation=installation,
        node_pool=node_pool,
        cns_state_file=cns_state_file,
        networks_namespace=networks_namespace or there.networks_namespace(),
        access=there.access(),
        settings=settings,
    )
    run(lambda: _serve(plan, log.bind(node=plan.node_name)), log)


def find_node_name(environment: Mapping[str, str], files: Iterable[Path] = NODE_NAME_FILES) -> str:
    """The node's name where no option states it: from `NODENAME`, else from a file, else the host's name.

    The host's name is a guess, because a Node may be named otherwise. Whereabouts' installer therefore leaves the name
    in a file on the node, for its own programs and those that replace them (design W18).
    """
    if stated := environment.get("NODENAME", "").strip():
        require_object_name(stated, "the environment variable NODENAME")
        return stated
    for path in files:
        if written := _written_in(path):
            require_object_name(written, f"the node name in {path}")
            return written
    host = socket.gethostname().lower()  # as a kubelet does by default
    require_object_name(host, "no --node-name is given, and the host's name")
    return host


def _written_in(path: Path) -> str:
    """The name in the file; "" if there is no file. A file that cannot be read is an error, not a reason to guess."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} is to say this node's name, and cannot be read ({error}): correct that, or give --node-name"
        ) from error


async def _serve(plan: _AgentPlan, log: Logger) -> None:
    signals = Signals()
    clock = SystemClock()
    async with KubernetesCluster(plan.access, clock=clock, randomness=system_randomness()) as cluster:
        node = _make_node(plan, cluster, clock, log)
        try:
            await _answer(plan, node, signals, log)
            await node.networks.stop()
        finally:
            node.close()
    log.info("stopped")


def _make_node(
    plan: _AgentPlan, cluster: KubernetesCluster, clock: SystemClock, log: Logger
) -> NodeAgent | SecondaryAgent:
    disk = DirectoryDisk(plan.state_directory)
    runtime = Runtime(clock=clock, randomness=system_randomness(), log=log, settings=plan.settings)
    if not plan.node_pool:
        return SecondaryAgent(
            cluster, plan.node_name, disk, runtime=runtime, networks_namespace=plan.networks_namespace
        )
    return NodeAgent(
        cluster,
        plan.node_name,
        disk,
        runtime=runtime,
        options=AgentOptions(
            networks_namespace=plan.networks_namespace,
            bridge=_bridge_of(plan.installation),
            cns_state=CnsStateFile(plan.cns_state_file, log=log) if plan.cns_state_file is not None else None,
        ),
    )


def _bridge_of(installation: Installation | None) -> Bridge | None:
    """The bridge of the network that the agent installs, if that is of the type `bridge`."""
    if installation is None or installation.where.networks is None:
        return None
    if installation.network.type is not InterfaceType.BRIDGE:
        return None
    from podtide.agent.bridge.netlink_bridge import NetlinkBridge  # noqa: PLC0415 - for nodes that have a bridge

    return NetlinkBridge(BRIDGE, mtu=installation.network.mtu)


async def _answer(plan: _AgentPlan, node: NodeAgent | SecondaryAgent, signals: Signals, log: Logger) -> None:
    """Serve the node's addresses until a signal comes; then answer ADDs that wait, and leave the cluster last."""
    notes = DeletionNotes.beside(plan.socket, node.addresses, node.networks, log=log)
    notes.carry_out_all()
    running = asyncio.create_task(node.run())
    tasks = {running, asyncio.create_task(notes.keep_carrying_out())}
    api = make_api(
        node.addresses,
        notes,
        node.networks,
        node.manual_releases if isinstance(node, NodeAgent) else None,
        add_wait_seconds=plan.settings.add_wait_seconds,
        is_running=lambda: not running.done(),
        clock=SystemClock(),
        log=log,
    )
    try:
        async with serving(api, plan.socket, plan.listen) as address, _shown(plan, api) as shown:
            log.info(
                "listening",
                socket=str(plan.socket),
                address=str(address) if address else None,
                metrics=str(shown) if shown else None,
            )
            if plan.installation:
                tasks.add(asyncio.create_task(keep_installed(plan.installation, node.network_ready, log)))
            await until_told(signals, tasks, log)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@asynccontextmanager
async def _shown(plan: _AgentPlan, api: AgentApi) -> AsyncIterator[ListenAddress | None]:
    """Serves metrics and health on --metrics-listen, if given; yields the address."""
    if plan.metrics_listen is None:
        yield None
        return

    def unreadiness() -> str:
        try:
            api.addresses.require_ready()
        except NotReady as error:
            return str(error)
        return ""

    async with serving_health(
        plan.metrics_listen, is_running=api.is_running, metrics=api.metrics.render, unreadiness=unreadiness
    ) as address:
        yield address
