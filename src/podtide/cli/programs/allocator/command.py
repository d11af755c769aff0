"""`podtide allocator`: the owner of the subnets as a program of its own."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click
import uvloop
from msgspec import Struct

from podtide.allocator.service.application import DEFAULT_REFRESH_SECONDS, Service, make_service
from podtide.allocator.service.certificate import Certificate
from podtide.allocator.service.server import serving
from podtide.allocator.service.tokens import Tokens
from podtide.allocator.service.utilization import keep_sampling
from podtide.allocator.store import StoreRules, open_allocator
from podtide.cli.options.numbers import DURATION
from podtide.cli.options.paths import ExistingFile
from podtide.cli.programs.allocator.backup import backup, restore
from podtide.cli.programs.allocator.cluster import cluster, release
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock
from podtide.runtime.durations import format_duration
from podtide.runtime.ids import new_uuid
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.log_rate import LogRate
from podtide.runtime.logging import LEVELS, Logger, capture_standard_logging, make_logger
from podtide.runtime.port_limits import raise_descriptor_limit
from podtide.runtime.randomness import seeded_randomness, system_randomness
from podtide.runtime.settings import load_settings

_FILE = ExistingFile()

_OPEN = "without tokens there is no authentication: give --tokens FILE, or listen on 127.0.0.1"


class _AllocatorPlan(Struct, frozen=True):
    """What to run: all options, checked before anything is opened."""

    database: str
    address: ListenAddress
    rules: StoreRules
    tokens: Tokens | None
    certificate: Certificate | None
    refresh_seconds: float
    drain_seconds: float


@click.group(invoke_without_command=True)
@click.option(
    "--database",
    metavar="URL",
    envvar="PODTIDE_DATABASE",
    show_envvar=True,
    help="The database of the subnets: sqlite:///FILE or postgresql://USER@HOST/NAME.",
)
@click.option(
    "--listen",
    default="127.0.0.1:8080",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to listen. Port 0 picks a free one.",
)
@click.option(
    "--tokens",
    type=_FILE,
    help="The file of accepted tokens: their hashes, each for a cluster or for administration.",
)
@click.option("--tls-cert", type=_FILE, help="The server certificate with its chain, as PEM.")
@click.option("--tls-key", type=_FILE, help="The private key of the certificate, as PEM.")
@click.option(
    "--refresh",
    type=DURATION,
    default=DEFAULT_REFRESH_SECONDS,
    show_default=format_duration(DEFAULT_REFRESH_SECONDS),
    help="The maximum age of an answer about utilization.",
)
@click.option(
    "--cooldown", metavar="DURATION", help="How long a released address rests before another node gets it."
)
@click.option(
    "--quarantine", metavar="DURATION", help="How long a removed node's addresses are kept from others."
)
@click.option(
    "--drain",
    type=DURATION,
    default=0.0,
    show_default="0s",
    help="How long to go on answering after SIGTERM, while /readyz fails.",
)
@click.option(
    "--log-level",
    type=click.Choice(LEVELS),
    default="info",
    show_default=True,
    help="The least severe level that is logged.",
)
@click.pass_context
def allocator(  # noqa: PLR0913 - one argument per option
    context: click.Context,
    *,
    database: str | None,
    listen: str,
    tokens: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    refresh: float,
    cooldown: str | None,
    quarantine: str | None,
    drain: float,
    log_level: str,
) -> None:
    """Serve the subnets in a database over HTTP.

    Clusters reserve addresses for their nodes with it, each with a token of its own; several replicas may serve one
    PostgreSQL. Without --tokens it listens on the loopback address alone. SIGTERM stops it, after the last answer.
    The commands below look after its database and the clusters that use it.
    """
    if context.invoked_subcommand is not None:
        return
    if not database:
        raise click.MissingParameter(ctx=context, param=context.command.params[0])
    log = make_logger(sys.stderr, SystemClock(), level=log_level, rate=LogRate())
    capture_standard_logging(log)
    if (tls_cert is None) != (tls_key is None):
        raise InvalidInput(
            "a certificate and its key go together: give both --tls-cert and --tls-key, or neither"
        )
    flags = {name: text for name, text in (("cooldown", cooldown), ("quarantine", quarantine)) if text}
    settings = load_settings(os.environ, flags)
    plan = _AllocatorPlan(
        database=database,
        address=parse_listen_address(listen, flag="--listen", open_because=_OPEN if tokens is None else ""),
        rules=StoreRules(
            cooldown_seconds=settings.cooldown_seconds, quarantine_seconds=settings.quarantine_seconds
        ),
        tokens=Tokens(tokens, log) if tokens else None,
        certificate=Certificate(tls_cert, tls_key, log) if tls_cert and tls_key else None,
        refresh_seconds=refresh,
        drain_seconds=drain,
    )
    raise_descriptor_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(plan, log))


for command in (backup, restore, cluster, release):
    allocator.add_command(command)


async def _serve(plan: _AllocatorPlan, log: Logger) -> None:
    signals: asyncio.Queue[str] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number.name)
    clock = SystemClock()
    async with await open_allocator(plan.database, clock=clock, rules=plan.rules, migrate=True) as store:
        if plan.tokens is not None:
            store.expected_clusters = plan.tokens.clusters
        if recovering := (await store.list_clusters()).recovering:
            log.error(
                "nothing is granted until every cluster has reported what its nodes hold", reason=recovering
            )
        service = make_service(
            store,
            log=log,
            clock=clock,
            # For ids of requests: they have to differ, and to ask the machine for each takes longer than to decide.
            randomness=seeded_randomness(new_uuid(system_randomness())),
            tokens=plan.tokens,
            refresh_seconds=plan.refresh_seconds,
            prove=store.prove_writable,
        )
        sampling = asyncio.create_task(keep_sampling(store, log))
        try:
            async with serving(service, plan.address, plan.certificate) as url:
                _announce(plan, url, log)
                log.info("stopping", signal=await signals.get())
                await _drain(service, plan.drain_seconds, signals)
        finally:
            sampling.cancel()
    log.info("stopped")


def _announce(plan: _AllocatorPlan, url: str, log: Logger) -> None:
    log.info("listening", url=url)
    if plan.tokens is None:
        log.warning(
            "no tokens: every process of this machine may do everything over the loopback address, and no other machine may"
        )
    elif plan.certificate is None:
        log.warning("no certificate: tokens can be read on the way; give --tls-cert and --tls-key")


async def _drain(service: Service, seconds: float, signals: asyncio.Queue[str]) -> None:
    """Answer requests for a while longer, until load balancers have seen that it is not ready.

    A second signal ends it.
    """
    service.operations.readiness.stopping = True
    try:
        async with asyncio.timeout(seconds):
            await signals.get()
    except TimeoutError:
        return
