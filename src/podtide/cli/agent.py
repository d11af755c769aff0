"""`podtide agent`: the program on each node that owns the node's pool and answers the plugin."""

import asyncio
import os
import socket as network
from pathlib import Path

import click
from msgspec import Struct

from podtide.agent.notes import DeletionNotes
from podtide.agent.program import NodeAgent
from podtide.agent.serving import make_api, serving
from podtide.cli.named_file import NamedFile
from podtide.cli.program import Signals, access_to, log_option, run, setting_options, until_told
from podtide.cli.reaching_cluster import ClusterReach, cluster_options
from podtide.cluster.kubernetes import Access, KubernetesCluster
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock
from podtide.runtime.directory_disk import DirectoryDisk
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.logging import Logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.settings import Settings

_OPEN = "the API of CNS asks nobody who they are: listen on 127.0.0.1"


class _Plan(Struct, frozen=True, kw_only=True):
    """What to run, checked before anything is opened."""

    node_name: str
    state_directory: Path
    socket: Path
    listen: ListenAddress | None
    access: Access
    settings: Settings


@click.command()
@click.option(
    "--node-name", metavar="NAME", help="This node's name. Default: $NODENAME, else the host's name."
)
@click.option(
    "--state-directory",
    default="/var/lib/podtide",
    metavar="DIRECTORY",
    show_default=True,
    help="Where the journal is kept; made if missing. One agent at a time may have it.",
)
@click.option(
    "--socket",
    type=NamedFile(),
    default=Path("/run/podtide/agent.sock"),
    show_default=True,
    help="Where the plugin finds the agent.",
)
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    help="Where clients of Azure CNS find the agent, such as 127.0.0.1:10090; a loopback address. Default: nowhere.",
)
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
    there: ClusterReach,
    settings: Settings,
    log: Logger,
) -> None:
    """Run the agent of a node: keep its pool of addresses, and answer the CNI plugin.

    SIGTERM stops it: ADDs that wait are told to try again, and nothing that was answered is forgotten.
    """
    if not state_directory:
        raise InvalidInput("--state-directory names no directory: give its path, or leave out the option")
    plan = _Plan(
        node_name=node_name or os.environ.get("NODENAME") or network.gethostname(),
        state_directory=Path(state_directory),
        socket=socket,
        listen=parse_listen_address(listen, open_because=_OPEN) if listen is not None else None,
        access=access_to(there),
        settings=settings,
    )
    run(lambda: _serve(plan, log.bind(node=plan.node_name)), log)


async def _serve(plan: _Plan, log: Logger) -> None:
    signals = Signals()
    clock = SystemClock()
    async with KubernetesCluster(plan.access, clock=clock, randomness=system_randomness()) as cluster:
        node = NodeAgent(
            cluster,
            plan.node_name,
            DirectoryDisk(plan.state_directory),
            settings=plan.settings,
            clock=clock,
            randomness=system_randomness(),
            log=log,
        )
        try:
            await _answer(plan, node, signals, log)
        finally:
            node.close()
    log.info("stopped")


async def _answer(plan: _Plan, node: NodeAgent, signals: Signals, log: Logger) -> None:
    """Serve the node's addresses until told to stop; then first those who wait, and the cluster after."""
    notes = DeletionNotes(plan.socket, node.addresses, log=log)
    notes.carry_out_all()
    running = asyncio.create_task(node.run())
    looking = asyncio.create_task(notes.keep_carrying_out())
    api = make_api(
        node.addresses,
        notes,
        add_wait_seconds=plan.settings.add_wait_seconds,
        is_running=lambda: not running.done(),
        clock=SystemClock(),
        log=log,
    )
    try:
        async with serving(api, plan.socket, plan.listen) as address:
            log.info("listening", socket=str(plan.socket), address=str(address) if address else None)
            await until_told(signals, (running, looking), log)
    finally:
        for task in (running, looking):
            task.cancel()
        await asyncio.wait({running, looking})
