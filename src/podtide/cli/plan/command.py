"""`podtide plan`: addresses at rest and at worst, for each batch and each way to size nodes' pools."""

import asyncio
from fractions import Fraction
from typing import Any

import click

from podtide.cli.connections.cluster import ClusterConnection, cluster_options
from podtide.cli.options.numbers import COUNT, BoundedCount, FractionType, fraction_option
from podtide.cli.output.formats import formats_option
from podtide.cli.plan.cluster_pods import pods_by_node
from podtide.cli.plan.pod_counts import PodCounts, PodCountsType
from podtide.cli.plan.sizing_table import SizingAnswer, show_sizing
from podtide.cli.shell.lazy_group import LazyGroup
from podtide.core.errors import InvalidInput
from podtide.core.plan.advice import advise
from podtide.core.plan.count_or_percent import CountOrPercent, parse_count_or_percent
from podtide.core.plan.node_loads import NodeLoads, PlannedLoad, WorstCase, deal, worst_of
from podtide.core.plan.sizing import PlanQuestion, PlanStrategy, plan_batch
from podtide.core.plan.warm_pool import WarmTarget
from podtide.core.ranges import parse_network
from podtide.core.subnet.batch_bounds import BatchBounds
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.layout import SubnetLayout, choose_gateways
from podtide.core.subnet.scaler import DEFAULT_MAX_IPS

_USUAL = BatchBounds()
_MOST_NODES = 1_000_000
_MOST_ADDRESSES_OF_NODE = 65_536
_MOST_BATCHES = 32
_OF_BATCHES = (PlanStrategy.REACTIVE, PlanStrategy.FIXED, PlanStrategy.ADAPTIVE)


class CountOrPercentType(click.ParamType[CountOrPercent]):
    """`3` or `25%`."""

    name = "count"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> CountOrPercent:
        """The count; an error names the option."""
        del ctx
        if isinstance(value, CountOrPercent):
            return value
        return parse_count_or_percent(value, param.opts[0] if param else "value")


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    lazy={
        "fit": (
            "podtide.cli.plan.fit:fit",
            "Tell whether more pods fit into what a subnet has free now.",
        ),
        "replay": (
            "podtide.cli.plan.replay.command:replay",
            "Replay a trace of pods, or a story, and show which pods wait and what lies idle, by batch and strategy.",
        ),
    },
)
@click.option("--nodes", type=BoundedCount(_MOST_NODES), help="How many nodes the cluster has.")
@click.option(
    "--pods-per-node",
    type=PodCountsType(),
    metavar="PODS",
    help="Pods of a node that need an address: 20, 10..30, p50=12,p90=30,max=60, or @FILE with a number for each node.",
)
@click.option(
    "--from-cluster",
    is_flag=True,
    help="Take nodes and their pods from the cluster of the kubeconfig. It is only read.",
)
@click.option(
    "--node-growth",
    type=CountOrPercentType(),
    default=CountOrPercent(),
    show_default="0",
    metavar="COUNT|PERCENT",
    help="Nodes to be added, in the same mix.",
)
@click.option(
    "--surge",
    type=CountOrPercentType(),
    default=CountOrPercent(),
    show_default="0",
    metavar="COUNT|PERCENT",
    help="Nodes that an upgrade replaces at a time: new ones have their pods while theirs are in quarantine.",
)
@click.option(
    "--zones", type=COUNT, default=3, show_default=True, help="Over how many zones the nodes are spread."
)
@click.option(
    "--lose-zones",
    type=COUNT,
    default=0,
    show_default=True,
    help="How many zones are lost: their pods move, and their nodes keep their addresses.",
)
@click.option(
    "--burst",
    type=FractionType(),
    default=Fraction(1),
    show_default="1",
    help="How many times the pods there are at worst.",
)
@click.option(
    "--subnet", "cidrs", multiple=True, metavar="CIDR", help="A CIDR of the subnet; may be repeated."
)
@click.option(
    "--keep-back", multiple=True, metavar="ADDRESS", help="An address that is never granted; may be repeated."
)
@click.option(
    "--keep-back-first",
    type=BoundedCount(_MOST_ADDRESSES_OF_NODE),
    default=0,
    show_default=True,
    metavar="COUNT",
    help="How many of the lowest addresses after the gateway are never granted.",
)
@click.option(
    "--batch",
    "batches",
    type=COUNT,
    multiple=True,
    help="A batch to compare; may be repeated.  [default: 1, 2, 4, 8, 16]",
)
@click.option(
    "--interfaces",
    type=COUNT,
    help="Compare with the warm pools of the AWS VPC CNI, on nodes with so many network interfaces.",
)
@click.option("--ips-per-interface", type=COUNT, help="Secondary addresses that each of these can have.")
@click.option(
    "--warm-ip-target",
    type=COUNT,
    help="Its WARM_IP_TARGET.  [default: none, and one interface is kept warm]",
)
@click.option("--minimum-ip-target", type=COUNT, default=0, show_default=True, help="Its MINIMUM_IP_TARGET.")
@fraction_option("--buffer", _USUAL.buffer, "The part of a batch that a node keeps free.")
@click.option(
    "--max-ips",
    type=COUNT,
    default=DEFAULT_MAX_IPS,
    show_default=True,
    help="Most addresses a node may hold.",
)
@fraction_option("--lower", _USUAL.thresholds.lower, "t: a larger batch must keep R under t·Q.")
@fraction_option("--upper", _USUAL.thresholds.upper, "T: exhausted, and the batch is reduced, above T·Q.")
@cluster_options
@formats_option("text", "json", "yaml", "csv", about="A table for people; JSON, YAML or CSV for programs.")
@click.pass_context
def plan(  # noqa: PLR0913 - one argument per option
    context: click.Context,
    *,
    nodes: int | None,
    pods_per_node: PodCounts | None,
    from_cluster: bool,
    node_growth: CountOrPercent,
    surge: CountOrPercent,
    zones: int,
    lose_zones: int,
    burst: Fraction,
    cidrs: tuple[str, ...],
    keep_back: tuple[str, ...],
    keep_back_first: int,
    batches: tuple[int, ...],
    interfaces: int | None,
    ips_per_interface: int | None,
    warm_ip_target: int | None,
    minimum_ip_target: int,
    buffer: Fraction,
    max_ips: int,
    lower: Fraction,
    upper: Fraction,
    there: ClusterConnection,
    output: str,
) -> None:
    """Show how many addresses a cluster takes at rest and at worst, and whether every pod gets one.

    For each batch, and for reactive pools as Azure CNS has, a fixed batch, and podtide's adaptive one. At worst growth, burst,
    lost zones and the upgrade's surge come all at once.
    """
    if context.invoked_subcommand is not None:
        _refuse_own_options(context)
        return
    loads = _loads(nodes, pods_per_node, asyncio.run(pods_by_node(there)) if from_cluster else None)
    worst = worst_of(
        loads, WorstCase(growth=node_growth, burst=burst, zones=zones, lost_zones=lose_zones, surge=surge)
    )
    layout = SubnetLayout(cidrs, choose_gateways(cidrs), keep_back, keep_back_first) if cidrs else None
    if keep_back and layout is None:
        raise InvalidInput(
            "--keep-back names addresses of a subnet: give its --subnet, or --keep-back-first with their number"
        )
    question = PlanQuestion(
        rest=PlannedLoad(live=loads),
        worst=worst,
        capacity=layout.capacity if layout else None,
        buffer=buffer,
        thresholds=Thresholds(lower, upper),
        max_ips=max_ips,
        kept_back=keep_back_first + len(set(keep_back)),
        address_bits=parse_network(cidrs[0]).max_prefixlen if cidrs else 32,
        warm=_warm_target(interfaces, ips_per_interface, warm_ip_target, minimum_ip_target),
    )
    sizes = sorted(set(batches)) or [rung.batch for rung in _USUAL.rungs]
    if len(sizes) > _MOST_BATCHES:
        raise InvalidInput(f"{len(sizes)} batches are too many to compare: give {_MOST_BATCHES} or fewer")
    compared = [(strategy, batch) for strategy in _OF_BATCHES for batch in sizes]
    if question.warm is not None:
        compared.append((PlanStrategy.WARM, 1))
    plans = tuple(plan_batch(strategy, batch, question) for strategy, batch in compared)
    show_sizing(output, SizingAnswer(question, plans, advise(plans, question), cidrs))


def _loads(nodes: int | None, stated: PodCounts | None, found: PodCounts | None) -> NodeLoads:
    """The nodes by their pods; those of the cluster, or of a file, give the mix for another number of nodes too."""
    if (stated is None) == (found is None):
        raise InvalidInput("say how many pods nodes have: either --pods-per-node, or --from-cluster")
    counts = stated or found
    assert counts
    number = counts.nodes if nodes is None else nodes
    if number is None:
        raise InvalidInput("say how many nodes there are: --nodes, such as --nodes 50")
    if number < 1:
        raise InvalidInput("--nodes 0 is refused: a plan is made for at least 1 node")
    return deal(counts.mix, number)


def _warm_target(
    interfaces: int | None, ips_per_interface: int | None, warm_ips: int | None, minimum_ips: int
) -> WarmTarget | None:
    """The warm pools to compare with; None if none of the options is given."""
    if interfaces is None and ips_per_interface is None and warm_ips is None and not minimum_ips:
        return None
    if interfaces is None or ips_per_interface is None:
        raise InvalidInput(
            "warm pools need to know their nodes: give --interfaces and --ips-per-interface, such as 3 and 3 for a t3.small"
        )
    return WarmTarget(
        warm_ips=warm_ips,
        minimum_ips=minimum_ips,
        ips_per_interface=ips_per_interface,
        interfaces=interfaces,
    )


def _refuse_own_options(context: click.Context) -> None:
    """Refuse options between `plan` and the name of a subcommand: they would have no effect there."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{option.opts[0]} is an option of `podtide plan` itself: give those of `{context.invoked_subcommand}` after its name.",
                context,
            )
