"""The steps of `podtide migrate cns`, each of which can be interrupted and run again.

Reserve: what every node has by its NodeNetworkConfig becomes its container at the allocator. Meanwhile this command holds
the cluster's term there, so no controller grants anything. Then each object is marked with the versions that were reserved,
if it is still as it was read.

Hand over: one write of a node's status shows podtide's container instead of the other program's, with the same addresses.
That is the moment at which podtide serves the node; what was there before is kept beside it.

Back: the same write in the other direction, for all nodes, if no pod has an address that the other program did not give
its node.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, structs

from podtide.allocator.containers import AllocatedContainer, ContainerReservation
from podtide.allocator.errors import AnotherTerm, NoSuchContainer
from podtide.allocator.port import Allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.allocator.terms import TermClaim
from podtide.cli.installation.migrate.cns_situation import (
    AGENT_LABELS,
    CNS_LABEL,
    CnsSituation,
    defined,
    is_handed_over,
    read_situation,
)
from podtide.cluster.port import Cluster, Conflict
from podtide.controller.nodes.config_ownership import without_finalizer
from podtide.controller.nodes.container_status import show_container
from podtide.core.errors import FixError, InvalidInput, RetryError
from podtide.core.subnet.take_over import (
    PlannedContainer,
    TakeOverPlan,
    objections_to_return,
    plan_take_over,
)
from podtide.resources.container_ids import container_ids
from podtide.resources.foreign_config import (
    former_in,
    has_foreign_containers,
    is_foreign,
    is_reserved,
    marked_reserved,
    with_former,
    without_marks,
)
from podtide.resources.metadata_keys import RESERVED_ANNOTATION, SYSTEM_NAMESPACE
from podtide.resources.namespace import Namespace
from podtide.resources.node import Node
from podtide.resources.node_network_config import (
    ConfigStatus,
    ContainerStatus,
    NodeNetworkConfig,
    NodeNetworkConfigStatus,
)

MANAGER = "podtide-migrate"
"""The field manager of what is written."""
_RENEW_SECONDS = 3.0


class TakeOverOptions(Struct, frozen=True, kw_only=True):
    """Which cluster at the allocator, and which network."""

    cluster: str
    network: str


class TakeOver(Struct, frozen=True, kw_only=True):
    """What was found and done, node by node."""

    plan: TakeOverPlan
    done: tuple[str, ...] = ()
    """Nodes for which the step was done by this run."""
    already: tuple[str, ...] = ()
    """Nodes for which it was done before."""
    objections: tuple[str, ...] = ()
    """Why something was not done."""


class ControllerRuns(RetryError):
    """A controller acts for the cluster, and would grant meanwhile."""


class NothingReserved(FixError):
    """A node is to be handed over before what all nodes have is reserved."""


async def look(cluster: Cluster, allocator: Allocator, options: TakeOverOptions) -> TakeOver:
    """What there is to do. Changes nothing."""
    return _found(*await _plan(cluster, allocator, options))


async def reserve(cluster: Cluster, allocator: Allocator, options: TakeOverOptions) -> TakeOver:
    """Reserve what every node has, and mark their NodeNetworkConfigs; or nothing, if anything contradicts itself."""
    uid = (await cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
    async with _term(allocator, options, uid):
        situation, plan = await _plan(cluster, allocator, options)
        if plan.objections:
            return _found(situation, plan)
        for subnet in plan.subnets:
            await allocator.add_subnet(
                SubnetSpec(
                    network=options.network, name=subnet.name, cidrs=subnet.cidrs, gateways=subnet.gateways
                )
            )
        configs = {config.metadata.name: config for config in situation.foreign}
        for container in plan.containers:
            reservation = _reservation(container, configs[container.node], options, uid)
            await allocator.reserve_container(reservation)
        # Nothing is marked before all is reserved: the marks are what lets grants go on.
        done, overtaken = [], []
        for name, config in configs.items():
            if is_reserved(config):
                continue
            try:
                await cluster.replace(marked_reserved(config), manager=MANAGER)
            except Conflict:
                overtaken.append(f"NodeNetworkConfig {name} was written meanwhile: run it again")
            else:
                done.append(name)
        already = [config.metadata.name for config in situation.foreign if is_reserved(config)]
        return TakeOver(plan=plan, done=tuple(done), already=tuple(already), objections=tuple(overtaken))


async def hand_over(
    cluster: Cluster, allocator: Allocator, options: TakeOverOptions, names: Collection[str]
) -> TakeOver:
    """Let podtide serve these nodes, or all if none is named; those that are handed over already stay as they are."""
    situation, plan = await _plan(cluster, allocator, options)
    if missing := [config.metadata.name for config in situation.foreign if not is_reserved(config)]:
        raise NothingReserved(
            f"what {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''} have is not reserved, or changed since: "  # noqa: PLR2004 - as many as are named
            "podtide would grant it to others; stop the program that writes these NodeNetworkConfigs, and run "
            "`podtide migrate cns --reserve`"
        )
    if strangers := sorted(set(names) - {config.metadata.name for config in situation.configs}):
        raise InvalidInput(
            f"there is no NodeNetworkConfig of {', '.join(strangers)}: name nodes that have one"
        )
    wanted = [config for config in situation.configs if not names or config.metadata.name in names]
    still_served = situation.pods_with(CNS_LABEL)
    done, already, objections = [], [], []
    for config in wanted:
        name = config.metadata.name
        if not is_foreign(config):
            already += [name] if is_handed_over(config) else []
        elif name in still_served:
            objections.append(
                f"{still_served[name]} runs on node {name}: keep Azure CNS from that node first, or both would hand out its "
                "addresses"
            )
        elif words := [each.words for each in plan.objections if each.concerns(name)]:
            objections += words
        else:
            try:
                await _switch(cluster, allocator, situation.nodes[name], config, plan, options)
            except (Conflict, NoSuchContainer, InvalidInput) as error:
                objections.append(f"node {name} was not handed over: {error}")
            else:
                done.append(name)
    return TakeOver(plan=plan, done=tuple(done), already=tuple(already), objections=tuple(objections))


async def give_back(
    cluster: Cluster, allocator: Allocator, options: TakeOverOptions, *, dry_run: bool
) -> TakeOver:
    """Give every node back to the program that served it before; or none, if a pod has what that did not give."""
    uid = (await cluster.get(Namespace, SYSTEM_NAMESPACE)).metadata.uid
    if dry_run:
        return await _give_back(cluster, dry_run=True)
    async with _term(allocator, options, uid):
        return await _give_back(cluster, dry_run=False)


async def _give_back(cluster: Cluster, *, dry_run: bool) -> TakeOver:
    situation = await read_situation(cluster)
    nothing = TakeOverPlan(subnets=(), containers=(), objections=())
    objections = [
        f"{agent} runs on node {node}: stop podtide's agents first, or both would hand out its addresses"
        for node, agent in sorted(situation.pods_with(*AGENT_LABELS).items())
        if not dry_run
    ]
    formers = []
    for config in situation.configs:
        former = former_in(config)
        if former is not None:
            formers.append((config, former))
        elif is_handed_over(config):
            objections.append(
                f"node {config.metadata.name} joined after the take-over, and the other program never gave it anything: drain it, "
                "delete its Node, and let it join again afterwards"
            )
    given = [
        situation.given_by(config, former.status.network_containers, former.spec)
        for config, former in formers
    ]
    objections += [each.words for each in objections_to_return(given)]
    if dry_run or objections:
        return TakeOver(plan=nothing, objections=tuple(objections))
    done = []
    for config, former in formers:
        if not has_foreign_containers(config):
            config = await cluster.replace_status(  # noqa: PLW2901 - the same object, with its new version
                structs.replace(config, status=former.status), manager=MANAGER
            )
        # The request goes with the marks: it names addresses by podtide's names.
        own = without_marks(without_finalizer(structs.replace(config, spec=former.spec)))
        await cluster.replace(own, manager=MANAGER)
        done.append(config.metadata.name)
    for config in situation.foreign:
        if RESERVED_ANNOTATION in config.metadata.annotations and former_in(config) is None:
            await cluster.replace(without_marks(config), manager=MANAGER)
    return TakeOver(plan=nothing, done=tuple(done))


async def _plan(
    cluster: Cluster, allocator: Allocator, options: TakeOverOptions
) -> tuple[CnsSituation, TakeOverPlan]:
    situation = await read_situation(cluster)
    subnets = await allocator.list_subnets(options.network)
    given = [situation.given(config) for config in situation.foreign]
    return situation, plan_take_over(given, defined(subnets))


def _found(situation: CnsSituation, plan: TakeOverPlan) -> TakeOver:
    already = [config.metadata.name for config in situation.foreign if is_reserved(config)]
    return TakeOver(
        plan=plan, already=tuple(already), objections=tuple(each.words for each in plan.objections)
    )


@asynccontextmanager
async def _term(allocator: Allocator, options: TakeOverOptions, uid: str) -> AsyncIterator[None]:
    """The cluster's term at the allocator, held and renewed: as long as it is ours, no controller grants anything."""
    claim = TermClaim(cluster=options.cluster, cluster_uid=uid, holder=MANAGER)
    try:
        opened = await allocator.open_term(claim)
    except AnotherTerm as error:
        raise ControllerRuns(
            f"podtide's controller acts for this cluster ({error}): stop it meanwhile, such as by "
            "`kubectl -n kube-system scale deployment/podtide-controller --replicas=0`, and wait 10 seconds"
        ) from error
    if opened.recovering:
        raise ControllerRuns(f"{opened.recovering}: try again when that is over")

    async def renew() -> None:
        while True:
            await asyncio.sleep(_RENEW_SECONDS)
            await allocator.open_term(claim)

    try:
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(renew())
            yield
            renewing.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await allocator.close_term(claim)


def _reservation(
    container: PlannedContainer, config: NodeNetworkConfig, options: TakeOverOptions, uid: str
) -> ContainerReservation:
    return ContainerReservation(
        id=container_ids(container.node_uid)[container.is_second],
        network=options.network,
        subnet=container.subnet,
        cluster=options.cluster,
        cluster_uid=uid,
        node=container.node,
        primary=container.primary,
        addresses=container.addresses,
        request_uid=config.metadata.uid,
        generation=config.metadata.generation,
    )


async def _switch(  # noqa: PLR0913, PLR0917 - which node, from what, to what
    cluster: Cluster,
    allocator: Allocator,
    node: Node,
    config: NodeNetworkConfig,
    plan: TakeOverPlan,
    options: TakeOverOptions,
) -> None:
    """Let a node's status show podtide's containers instead of the other program's."""
    planned = [container for container in plan.containers if container.node == config.metadata.name]
    held: list[AllocatedContainer] = []
    for container in planned:
        id_ = container_ids(container.node_uid)[container.is_second]
        found = await allocator.get_container(id_, cluster=options.cluster)
        has = {address.ip for address in found.addresses}
        if found.primary != container.primary or not has.issuperset(container.addresses):
            raise InvalidInput(
                "the allocator has not reserved all that it has: run `podtide migrate cns --reserve`"
            )
        held.append(found)
    kept = await cluster.replace(with_former(config), manager=MANAGER)
    await cluster.replace_status(structs.replace(kept, status=_status(kept, held, node)), manager=MANAGER)


def _status(
    config: NodeNetworkConfig, held: Sequence[AllocatedContainer], node: Node
) -> NodeNetworkConfigStatus:
    return NodeNetworkConfigStatus(
        assigned_ip_count=sum(len(container.addresses) for container in held),
        scaler=config.status.scaler,
        status=ConfigStatus.UPDATED,
        network_containers=[
            structs.replace(show_container(container, node), status=ContainerStatus.SUCCESS)
            for container in held
        ],
    )
