"""`podtide dashboard`: the live page of any cluster, read-only."""

import asyncio
import sys
from pathlib import Path

import click

from podtide.cli.connections.asked_allocator import AskedPlaces, places_options
from podtide.cli.options.page import page_address, page_token, page_url
from podtide.cli.options.paths import ExistingFile
from podtide.cli.programs.running import Signals
from podtide.dashboard.options import PageOptions
from podtide.dashboard.program import running_page
from podtide.resources.node import Node
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import make_logger
from podtide.runtime.port_limits import raise_descriptor_limit
from podtide.runtime.randomness import system_randomness
from podtide.runtime.runtime import Runtime


@click.command()
@click.option(
    "--listen",
    metavar="ADDRESS:PORT",
    default="127.0.0.1:8321",
    show_default=True,
    help="Where to serve the page; port 0 is any that is free.",
)
@click.option(
    "--page-token-file",
    type=ExistingFile(),
    help="The file with the token that the page asks for: needed where the address is not a loopback one.",
)
@places_options
def dashboard(*, listen: str, page_token_file: Path | None, places: AskedPlaces) -> None:
    """Serve a live page of a cluster until Ctrl-C: subnets, maps, nodes, decisions, health.

    It only reads, by the rights of the kubeconfig. With --allocator or --database it also shows the allocator's own numbers,
    quarantine, the history of subnets and forecasts.
    """
    address = page_address(listen, flag="--listen", token_file=page_token_file)
    token = page_token(page_token_file)
    access = places.there.access()
    options = PageOptions(
        listen=address,
        token=token,
        name=access.context or access.found_in,
        networks_namespace=places.networks_namespace,
    )
    raise_descriptor_limit()
    asyncio.run(_serve(options, places, shown=access.found_in))


async def _serve(options: PageOptions, places: AskedPlaces, *, shown: str) -> None:
    signals, clock = Signals(), SystemClock()
    runtime = Runtime(
        clock=clock,
        randomness=system_randomness(),
        log=make_logger(sys.stderr, clock, level="warning"),
    )
    async with places.opened() as (cluster, allocator):
        await cluster.list(Node, limit=1)  # so that an unreachable cluster is told at once
        async with running_page(options, cluster, allocator, runtime=runtime) as address:
            click.echo(f"{page_url(address)} shows {shown}, until Ctrl-C")
            if options.token:
                click.echo("The page asks for the token; or append #token=TOKEN to the address.")
            await signals.next()
