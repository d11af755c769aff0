"""`podtide cluster`: a Kubernetes API without a Kubernetes, for demos, tests and laptops."""

import asyncio
import signal
import sys
from pathlib import Path

import click

from podtide.cli.options.paths import NamedFile
from podtide.cluster.embedded import EmbeddedCluster
from podtide.cluster.served import SERVED_KINDS, serving
from podtide.cluster.served.kubeconfig import write_kubeconfig
from podtide.runtime.clock import SystemClock
from podtide.runtime.listening import ListenAddress, parse_listen_address
from podtide.runtime.log_rate import LogRate
from podtide.runtime.logging import capture_standard_logging, make_logger
from podtide.runtime.port_limits import raise_descriptor_limit


@click.command()
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    metavar="ADDRESS:PORT",
    help="Where to listen; a loopback address. Port 0 picks a free one.",
)
@click.option(
    "--file",
    type=NamedFile(),
    help="Keep the objects in this file (created if missing), instead of in memory only.",
)
@click.option(
    "--kubeconfig",
    type=NamedFile(),
    help="Write a kubeconfig for this cluster to this file, for kubectl and for podtide's own programs.",
)
def cluster(*, listen: str, file: Path | None, kubeconfig: Path | None) -> None:
    """Serve a small cluster of our own over HTTP, as a Kubernetes API server would.

    kubectl works with it, and so do podtide's programs. It knows podtide's kinds, nodes, pods, leases, events and
    namespaces, and runs nothing. There is no authentication: it is for demos, tests and laptops, and listens on the
    loopback address alone. Ctrl-C stops it.
    """
    address = parse_listen_address(
        listen, flag="--listen", open_because="there is no authentication: listen on 127.0.0.1"
    )
    capture_standard_logging(make_logger(sys.stderr, SystemClock(), rate=LogRate()))
    raise_descriptor_limit()
    asyncio.run(_serve(address, file, kubeconfig))


async def _serve(address: ListenAddress, file: Path | None, kubeconfig: Path | None) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    embedded = EmbeddedCluster(file, kinds=SERVED_KINDS)
    try:
        async with serving(embedded.server, address) as url:
            client = f"kubectl --server {url}"
            if kubeconfig:
                write_kubeconfig(kubeconfig, url)
                client = f"kubectl --kubeconfig {kubeconfig}"
            kept = f"in {file}" if file else "in memory alone"
            _say(f"the cluster is at {url}, its objects {kept}; Ctrl-C stops it")
            _say("no authentication: for demos, tests and laptops")
            _say(f"try: {client} get namespaces")
            await stopped.wait()
    finally:
        embedded.close()


def _say(words: str) -> None:
    click.echo(f"podtide: {words}", err=True)
