"""`podtide plan fit`: whether more pods fit into what a subnet has free now, for people and for pipelines."""

import asyncio
import sys

import click
from msgspec import Struct

from podtide.cli.connections.allocator import AllocatorLocation, optional_allocator_options
from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.options.numbers import COUNT, BoundedCount
from podtide.cli.output.formats import output_option, show
from podtide.cli.plan.cluster_pods import pods_by_node, running_of
from podtide.cli.plan.fit_report import FitReport, PlacedWorkload, document_of, lines_of
from podtide.cli.plan.manifests import read_manifests
from podtide.cli.plan.subnet_now import SubnetNow, imagined_subnet, spread_pods, subnet_at
from podtide.cli.shell.exit_status import ExitStatus
from podtide.core.errors import InvalidInput
from podtide.core.plan.fit import FitQuestion, FitVerdict, decide_fit
from podtide.core.subnet.scaler import DEFAULT_BATCH

_MOST = 10**9


class ImaginedOptions(Struct, frozen=True):
    """The options for a subnet that no allocator is asked about."""

    capacity: int | None
    pods: int | None
    nodes: int | None
    batch: int


@click.command()
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    metavar="FILE",
    help="Manifests of what is to run; may be repeated, and - is stdin.",
)
@click.option("--pods", type=BoundedCount(_MOST), default=0, show_default=True, help="So many more pods.")
@click.option("--nodes", type=BoundedCount(_MOST), default=0, show_default=True, help="So many more nodes.")
@click.option(
    "--subnet",
    metavar="NETWORK/NAME",
    help="Which subnet of the allocator.  [default: the only one there is]",
)
@click.option("--capacity", type=COUNT, help="Without an allocator: usable addresses of the subnet.")
@click.option(
    "--running-pods", type=BoundedCount(_MOST), help="Without an allocator: pods that have an address."
)
@click.option("--running-nodes", type=BoundedCount(_MOST), help="Without an allocator: nodes there are.")
@click.option(
    "--batch",
    type=COUNT,
    default=DEFAULT_BATCH,
    show_default=True,
    help="Without an allocator: the largest batch.",
)
@click.option(
    "--from-cluster",
    is_flag=True,
    help="Ask the cluster of the kubeconfig which of the pods run already; with --capacity also for its nodes and pods.",
)
@optional_allocator_options
@cluster_options
@output_option
def fit(  # noqa: PLR0913 - one argument per option
    *,
    files: tuple[str, ...],
    pods: int,
    nodes: int,
    subnet: str | None,
    capacity: int | None,
    running_pods: int | None,
    running_nodes: int | None,
    batch: int,
    from_cluster: bool,
    location: AllocatorLocation | None,
    there: ClusterConnection,
    output: str,
) -> None:
    """Tell whether more pods fit into what a subnet has free now.

    Reads Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs, CronJobs and Pods, with what a rollout takes. Exit status 0
    means that every pod gets an address, on whichever node it lands; 1 that some do not, or that it is not certain.
    """
    if not (files or pods or nodes):
        raise InvalidInput("say what is to run: manifests by -f FILE, or --pods and --nodes")
    manifests = read_manifests(files)
    cluster = there if from_cluster else None
    now = _subnet_now(
        ImaginedOptions(capacity, running_pods, running_nodes, batch), location, subnet, cluster
    )
    running = asyncio.run(running_of(cluster, manifests.workloads)) if cluster else {}
    workloads = tuple(
        PlacedWorkload(
            workload=each,
            at_rest=each.at_rest(now.nodes + nodes),
            at_once=each.at_once(now.nodes + nodes),
            running=running.get(index, 0),
        )
        for index, each in enumerate(manifests.workloads)
    )
    question = FitQuestion(
        demand=now.demand,
        capacity=now.capacity,
        bounds=now.bounds,
        standing=now.standing,
        pods=pods + sum(each.coming for each in workloads),
        nodes=nodes,
    )
    report = FitReport(
        now=now,
        workloads=workloads,
        ignored=manifests.ignored,
        extra_pods=pods,
        question=question,
        answer=decide_fit(question),
    )
    show(output, document_of(report), lines_of(report))
    if report.answer.verdict is not FitVerdict.FITS:
        sys.exit(ExitStatus.FAILED)


def _subnet_now(
    imagined: ImaginedOptions,
    location: AllocatorLocation | None,
    subnet: str | None,
    cluster: ClusterConnection | None,
) -> SubnetNow:
    """The subnet, from the one source that the options name."""
    numbers = (imagined.capacity, imagined.pods, imagined.nodes)
    if location is not None:
        if any(each is not None for each in numbers):
            raise InvalidInput(
                "--capacity, --running-pods and --running-nodes are for a subnet without an allocator: leave them out, or "
                "--allocator and --database"
            )
        return location.ask(lambda allocator: subnet_at(allocator, subnet))
    if subnet is not None:
        raise InvalidInput(
            "--subnet is a subnet of an allocator: say where that is by --allocator or --database"
        )
    if imagined.capacity is None:
        raise InvalidInput(
            "say which subnet: --allocator or --database, or its --capacity with --running-pods and --running-nodes"
        )
    if cluster is not None:
        if imagined.pods is not None or imagined.nodes is not None:
            raise InvalidInput(
                "--from-cluster counts pods and nodes: leave out --running-pods and --running-nodes"
            )
        return imagined_subnet(imagined.capacity, asyncio.run(pods_by_node(cluster)), imagined.batch)
    counts = spread_pods(imagined.pods or 0, imagined.nodes or 0)
    return imagined_subnet(imagined.capacity, counts, imagined.batch)
