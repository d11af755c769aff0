"""`podtide controller`: the program, once per cluster, that turns nodes' requests into addresses."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import click
from msgspec import Struct

from podtide.allocator.port import Allocator
from podtide.cli.connections.allocator import AllocatorLocation
from podtide.cli.connections.cluster import ClusterConnection, cluster_options, networks_namespace_option
from podtide.cli.options.names import ALLOCATOR_NAME, OBJECT_NAME
from podtide.cli.options.page import page_address, page_beside, page_token
from podtide.cli.options.paths import ExistingFile
from podtide.cli.programs.health import serving_health
from podtide.cli.programs.running import Signals, log_option, run, setting_options, stop, until_told
from podtide.cluster.kubernetes import Access, KubernetesCluster
from podtide.cluster.kubernetes.credentials import FileCredentials
from podtide.controller.allocator_outage import ANSWER_SECONDS
from podtide.controller.metrics import ControllerMetrics
from podtide.controller.options import NetworkOptions
from podtide.controller.program import Controller, ControllerOptions
from podtide.core.subnet.exhaustion import Thresholds
from podtide.dashboard.options import PageOptions
from podtide.resources.names import Naming
from podtide.runtime.clock import SystemClock
from podtide.runtime.ids import new_uuid
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.logging import Logger
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime
from podtide.runtime.settings import Settings

_FILE = ExistingFile()


_RETRY_SECONDS = 3.0
"""How long the client itself retries; after that the controller tells nodes, and retries the call."""


class _ControllerAllocator(AllocatorLocation, frozen=True, kw_only=True):
    """The same options for a program: it waits longer for an answer, and may open the database as the allocator."""

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[Allocator]:
        """Yields the allocator, open until the context ends."""
        if self.url:
            from podtide.allocator.client import AllocatorAddress, AllocatorTimeouts, HttpAllocator  # noqa: PLC0415 - one of two ways is taken

            if self.token_file:
                await FileCredentials(self.token_file, None).prove()  # that it cannot be read is said at once
            server = AllocatorAddress(url=self.url, token_file=self.token_file, authority=self.ca_file)
            # Shorter than the controller's own timeout, so that it learns the reason; failed attempts are retried only briefly.
            timeouts = AllocatorTimeouts(deadline_seconds=ANSWER_SECONDS - 1, retry_seconds=_RETRY_SECONDS)
            async with HttpAllocator(server, timeouts=timeouts) as there:
                yield there
        else:
            from podtide.allocator.store import StoreRules, open_allocator  # noqa: PLC0415 - as above

            assert self.database
            rules = StoreRules(
                cooldown_seconds=settings.cooldown_seconds, quarantine_seconds=settings.quarantine_seconds
            )
            async with await open_allocator(
                self.database, clock=SystemClock(), rules=rules, migrate=True
            ) as here:
                yield here


class _ControllerPlan(Struct, frozen=True, kw_only=True):
    """What to run: all options, checked before anything is opened."""

    options: ControllerOptions
    allocator: _ControllerAllocator
    identity: str
    metrics_listen: ListenAddress | None
    page: PageOptions | None
    access: Access
    settings: Settings


@click.command()
@click.option(
    "--cluster-name",
    required=True,
    type=ALLOCATOR_NAME,
    metavar="NAME",
    help="This cluster's name at the allocator.",
)
@click.option(
    "--network",
    required=True,
    type=ALLOCATOR_NAME,
    metavar="NAME",
    help="The network whose subnets the nodes use.",
)
@click.option(
    "--subnet",
    required=True,
    type=OBJECT_NAME,
    metavar="NAME",
    help="The subnet of nodes without the label podtide.io/subnet.",
)
@click.option(
    "--subnet-v6",
    type=OBJECT_NAME,
    default="",
    metavar="NAME",
    help="For dual stack, the subnet of the second address of nodes without the label podtide.io/subnet-v6.",
)
@click.option(
    "--cluster-subnets/--no-cluster-subnets",
    default=True,
    show_default=True,
    help="Whether to write ClusterSubnets; without them each NodeNetworkConfig gets the batch, as Azure CNS expects.",
)
@click.option(
    "--secondary-networks/--no-secondary-networks",
    default=True,
    show_default=True,
    help="Whether to give nodes slices of the secondary networks that NetworkAttachmentDefinitions describe.",
)
@networks_namespace_option
@click.option(
    "--naming",
    type=click.Choice([naming.value for naming in Naming]),
    default=Naming.PODTIDE.value,
    show_default=True,
    help="Which program's naming the nodes' own pools follow; pools under either name are found.",
)
@click.option(
    "--repair-schedule",
    default="",
    metavar="CRON",
    help="When to search secondary networks for leaks, such as '30 4 * * *' (UTC). Default: every --repair-interval.",
)
@click.option(
    "--hold-removed-nodes/--no-hold-removed-nodes",
    default=False,
    show_default=True,
    help="Hold a removed node's addresses until its machine returns or reboots, or `podtide quarantine end` is run.",
)
@click.option(
    "--placement/--no-placement",
    default=False,
    show_default=True,
    help="Publish on every Node how many pods it has addresses for, as podtide.io/ipv4, /ipv6 and /net-NETWORK.",
)
@click.option(
    "--placement-taint/--no-placement-taint",
    default=False,
    show_default=True,
    help="With --placement, also taint nodes that can get no address: podtide.io/no-addresses:NoSchedule.",
)
@click.option(
    "--allocator", metavar="URL", help="The URL of a running allocator, such as https://allocator:8080."
)
@click.option("--token-file", type=_FILE, help="The file with the token for the allocator.")
@click.option("--ca-file", type=_FILE, help="The CA certificate of the allocator, as PEM.")
@click.option(
    "--database",
    metavar="URL",
    help="Run the allocator in this process, for this cluster only, on sqlite:///FILE or postgresql://USER@HOST/NAME.",
)
@click.option(
    "--identity",
    metavar="NAME",
    help="The holder's name of this replica in the Lease. Default: the host's name and a random part.",
)
@click.option(
    "--metrics-listen",
    metavar="ADDRESS:PORT",
    help="Where to serve /metrics, /healthz and /readyz, such as 0.0.0.0:9090. Default: nowhere.",
)
@click.option(
    "--dashboard",
    metavar="ADDRESS:PORT",
    help="Where to serve the live page, such as 127.0.0.1:8321. Default: nowhere.",
)
@click.option(
    "--dashboard-token-file",
    type=_FILE,
    help="The file with the token that the page asks for: needed where its address is not a loopback one.",
)
@cluster_options
@setting_options(
    "batch",
    "buffer",
    "max_ips",
    "lower_threshold",
    "upper_threshold",
    "answer_wait",
    "starved_dwell",
    "poll",
    "cooldown",
    "quarantine",
    "leak_grace",
    "repair_interval",
    "runs_out_warning",
    "leader_lease",
    "leader_renew_deadline",
    "leader_retry",
)
@log_option
def controller(  # noqa: PLR0913 - one argument per option
    *,
    cluster_name: str,
    network: str,
    subnet: str,
    subnet_v6: str,
    cluster_subnets: bool,
    secondary_networks: bool,
    networks_namespace: str,
    naming: str,
    repair_schedule: str,
    hold_removed_nodes: bool,
    placement: bool,
    placement_taint: bool,
    allocator: str | None,
    token_file: Path | None,
    ca_file: Path | None,
    database: str | None,
    identity: str | None,
    metrics_listen: str | None,
    dashboard: str | None,
    dashboard_token_file: Path | None,
    there: ClusterConnection,
    settings: Settings,
    log: Logger,
) -> None:
    """Run the request controller of a cluster: turn nodes' requests into addresses.

    It also watches how full the subnets are, sets the batch, and gives nodes slices of secondary networks. Of several
    replicas one acts, by a Lease; SIGTERM stops one, and another takes over at once. cooldown is for --database.
    """
    networks = networks_namespace or there.networks_namespace()
    plan = _ControllerPlan(
        options=ControllerOptions(
            cluster=cluster_name,
            network=network,
            subnet=subnet,
            subnet_v6=subnet_v6,
            cluster_subnets=cluster_subnets,
            secondary_networks=secondary_networks,
            networks=NetworkOptions(
                namespace=networks, naming=Naming(naming), repair_schedule=repair_schedule
            ),
            hold_removed_nodes=hold_removed_nodes,
            placement=placement,
            placement_taint=placement_taint,
        ),
        allocator=_ControllerAllocator(
            url=allocator, token_file=token_file, ca_file=ca_file, database=database
        ),
        identity=identity or f"{socket.gethostname()}-{new_uuid(system_randomness())}",
        metrics_listen=parse_listen_address(metrics_listen, flag="--metrics-listen")
        if metrics_listen is not None
        else None,
        page=None
        if dashboard is None
        else PageOptions(
            listen=page_address(dashboard, flag="--dashboard", token_file=dashboard_token_file),
            token=page_token(dashboard_token_file),
            name=cluster_name,
            networks_namespace=networks,
            thresholds=Thresholds(settings.lower_threshold, settings.upper_threshold),
        ),
        access=there.access(),
        settings=settings,
    )
    run(lambda: _control(plan, log), log)


async def _control(plan: _ControllerPlan, log: Logger) -> None:
    signals = Signals()
    clock, randomness = SystemClock(), system_randomness()
    async with (
        KubernetesCluster(plan.access, clock=clock, randomness=randomness) as cluster,
        plan.allocator.open(plan.settings) as allocator,
        AsyncExitStack() as serving,
    ):
        runtime = Runtime(clock=clock, randomness=randomness, log=log, settings=plan.settings)
        controlling = Controller(cluster, allocator, plan.options, runtime=runtime)
        running = asyncio.create_task(controlling.run_elected(plan.identity))
        try:
            if plan.metrics_listen:
                address = await serving.enter_async_context(
                    serving_health(
                        plan.metrics_listen,
                        is_running=lambda: not running.done(),
                        metrics=ControllerMetrics(controlling.metrics).render,
                        unreadiness=lambda: controlling.unreadiness,
                    )
                )
                log.info("listening", url=f"http://{address}")
            if plan.page:
                await serving.enter_async_context(page_beside(plan.page, cluster, allocator, runtime=runtime))
            log.info("running", identity=plan.identity, cluster=plan.options.cluster)
            await until_told(signals, (running,), log)
        finally:
            await stop(running, signals)
    log.info("stopped")
