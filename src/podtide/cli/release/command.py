"""`podtide release`: free one address of a secondary network, or end its quarantine, with guards."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

import click
from msgspec import Struct, structs

from podtide.agent.pool.manual_release import ManualRelease
from podtide.allocator.port import Allocator
from podtide.cli.connections.asked_allocator import AskedPlaces, places_options
from podtide.cli.ip.address_state import AddressFinding
from podtide.cli.ip.facts import gather_address_facts
from podtide.cli.ip.finding import find_address
from podtide.cli.options.paths import NamedFile
from podtide.cli.output.formats import output_option, show
from podtide.cli.output.suggested_commands import kubectl_command
from podtide.cli.programs.running import log_option
from podtide.cli.quarantine import StillInUse, end_quarantines, refuse_if_shown
from podtide.cli.release.agent_socket import ask_agent
from podtide.cli.release.targets import (
    AskItsAgent,
    NetworkTarget,
    NotForPeople,
    choose_finding,
    how_to_ask,
    read_target,
)
from podtide.cluster.port import Cluster, Conflict
from podtide.controller.counts import RepairCounts
from podtide.controller.fencing import GuardedWrites, unguarded
from podtide.controller.repair.writes import RepairWrites
from podtide.core.errors import InvalidInput
from podtide.core.networks.manual_release import ReleaseObjection
from podtide.core.ranges import IPAddress, parse_address
from podtide.runtime.clock import SystemClock
from podtide.runtime.logging import Logger

WHAT_COULD_HAPPEN = (
    "the next pod would get it, and where a pod still has it, two pods would share one address"
)


class NotReleased(InvalidInput):
    """Something says that a pod may have the address."""


class ReleaseOptions(Struct, frozen=True, kw_only=True):
    """What was asked for."""

    address: IPAddress
    network: str
    namespace: str
    reason: str
    force: bool
    yes: bool
    dry_run: bool


class ReleaseAnswer(Struct, frozen=True, kw_only=True):
    """What was done, or would be."""

    address: str
    released: bool
    words: str
    objections: tuple[str, ...] = ()
    forced: bool = False
    dry_run: bool = False


@click.command()
@click.argument("address")
@click.option("--network", default="", metavar="NAME", help="The network, where several have the address.")
@click.option("--force", is_flag=True, help=f"Release it whatever speaks against it: {WHAT_COULD_HAPPEN}.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation of --force.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done, and what speaks against it.")
@click.option(
    "--reason", default="released by hand", show_default=True, help="Why, for the log and the allocator's."
)
@click.option(
    "--agent-socket",
    type=NamedFile(),
    metavar="PATH",
    help="Ask the agent of this node, on its socket, to free an address of the node's pool; run it as root. No cluster is "
    "asked, and --network, --networks-namespace and the options of cluster and allocator do not count.",
)
@places_options
@output_option
@log_option
def release(  # noqa: PLR0913 - one argument per option
    *,
    address: str,
    network: str,
    force: bool,
    yes: bool,
    dry_run: bool,
    reason: str,
    agent_socket: Path | None,
    places: AskedPlaces,
    output: str,
    log: Logger,
) -> None:
    """Free an address of a secondary network, or end the quarantine of one that a removed node had.

    Refused while a living pod shows it, while the pod that holds it lives, and while its machine may run on although its
    Node is deleted: everything is read afresh before anything is written. An address of a node's pool is freed by that
    node's agent alone: the answer has the command that asks it. Quarantined addresses need --allocator or --database.
    """
    options = ReleaseOptions(
        address=parse_address(address),
        network=network,
        namespace="" if agent_socket else places.networks_namespace,
        reason=reason,
        force=force,
        yes=yes,
        dry_run=dry_run,
    )
    if agent_socket is not None:
        answer = asyncio.run(release_from_pool(agent_socket, options))
    else:
        answer = asyncio.run(_release(places, options, log))
    show(output, answer, [answer.words])


async def _release(places: AskedPlaces, options: ReleaseOptions, log: Logger) -> ReleaseAnswer:
    async with places.opened() as (cluster, allocator):
        try:
            return await release_address(cluster, allocator, options, log)
        except AskItsAgent as refused:
            how = await how_to_ask(cluster, refused, kubectl_command(places.there))
            raise NotForPeople(f"{refused}, whose agent alone frees it: {how}") from refused


async def release_from_pool(socket: Path, options: ReleaseOptions) -> ReleaseAnswer:
    """Ask the agent of this node: first what speaks against it, then to free the address."""
    asked = ManualRelease(address=str(options.address), dry_run=True, reason=options.reason)
    found = await ask_agent(socket, asked)
    if found.words:
        return ReleaseAnswer(
            address=found.address,
            released=False,
            words=f"there is nothing to release: {found.words}",
            dry_run=options.dry_run,
        )
    answer = _judged(f"{found.address}, which {found.held_by} has", found.objections, options)
    if answer is not None:
        return answer
    freed = await ask_agent(socket, structs.replace(asked, dry_run=False, force=options.force))
    if not freed.released:
        why = "; ".join(freed.objections) or freed.words
        raise NotReleased(f"{freed.address} is not released: {why}")
    return ReleaseAnswer(
        address=freed.address,
        released=True,
        words=f"{freed.address} is free in the node's pool; {freed.held_by} had it",
        objections=freed.objections,
        forced=options.force,
    )


async def release_address(
    cluster: Cluster, allocator: Allocator | None, options: ReleaseOptions, log: Logger
) -> ReleaseAnswer:
    """Find whose it is, judge it by fresh reads, and free it."""
    address = options.address
    facts = await gather_address_facts(cluster, allocator, address, options.namespace, SystemClock().wall())
    findings = find_address(facts)
    if not findings:
        raise InvalidInput(f"{address} is in no known subnet or network: see `podtide ip {address}`")
    finding = choose_finding(findings, address, options.network)
    if finding is None:
        return _nothing(options)
    if finding.subnet:
        assert allocator is not None  # it alone tells of quarantines
        return await _end_quarantine(cluster, allocator, finding, options, log)
    target = await read_target(cluster, finding, address, options.namespace)
    if target is None:
        return _nothing(options)
    return await _free(cluster, target, options, log)


def _nothing(options: ReleaseOptions) -> ReleaseAnswer:
    words = f"nothing holds {options.address}: there is nothing to release"
    return ReleaseAnswer(address=str(options.address), released=False, words=words, dry_run=options.dry_run)


async def _end_quarantine(
    cluster: Cluster, allocator: Allocator, finding: AddressFinding, options: ReleaseOptions, log: Logger
) -> ReleaseAnswer:
    address = str(options.address)
    objections: tuple[str, ...] = ()
    try:
        await refuse_if_shown(cluster, frozenset({address}))
    except StillInUse as error:
        objections = (str(error),)
    what = f"{address}, which node {finding.node} of cluster {finding.cluster} had"
    answer = _judged(what, objections, options)
    if answer is not None:
        return answer
    await end_quarantines(
        allocator, frozenset({address}), cluster=finding.cluster, reason=options.reason, log=log
    )
    return ReleaseAnswer(
        address=address,
        released=True,
        words=f"{address} is free: its quarantine is over",
        objections=objections,
        forced=options.force,
    )


async def _free(
    cluster: Cluster, target: NetworkTarget, options: ReleaseOptions, log: Logger
) -> ReleaseAnswer:
    address = str(options.address)
    objections = tuple(
        f"{each} ({target.shown_by})" if each is ReleaseObjection.SHOWN else str(each)
        for each in target.objections
    )
    place = f"in pool {target.entry.pool}" if target.entry else "by a reservation alone"
    what = f"{address} of network {target.network or '-'}, held {place} for pod {target.holder.podref or '-'}"
    answer = _judged(what, objections, options)
    if answer is not None:
        return answer
    writes = RepairWrites(GuardedWrites(cluster, unguarded, Counter()), options.namespace, RepairCounts())
    # The reservation goes last: until then no other network can have the address.
    if target.entry and not await writes.release(target.entry.pool, [target.entry]):
        raise Conflict(f"{address} was written meanwhile: look at it again with `podtide ip {address}`")
    if target.reservation and not await writes.release_reservation(target.reservation):
        raise Conflict(f"the reservation of {address} was written meanwhile: run this command again")
    log.info(
        "address released by hand",
        address=address,
        network=target.network,
        pod=target.holder.podref,
        reason=options.reason,
        objections=list(objections),
    )
    return ReleaseAnswer(
        address=address,
        released=True,
        words=f"{address} of network {target.network or '-'} is free; pod {target.holder.podref or '-'} had it",
        objections=objections,
        forced=options.force,
    )


def _judged(what: str, objections: tuple[str, ...], options: ReleaseOptions) -> ReleaseAnswer | None:
    """None if it may be released; else the answer of a dry run. Raises where it is refused."""
    if options.dry_run:
        against = f"; refused without --force: {'; '.join(objections)}" if objections else ""
        return ReleaseAnswer(
            address=str(options.address),
            released=False,
            words=f"would release {what}{against}",
            objections=objections,
            dry_run=True,
        )
    if not objections:
        return None
    if not options.force:
        raise NotReleased(
            f"{what}, is not released: {'; '.join(objections)}; with --force {WHAT_COULD_HAPPEN}"
        )
    if not options.yes:
        if not sys.stdin.isatty():
            raise NotReleased(
                f"--force needs --yes where there is no terminal to ask on: {WHAT_COULD_HAPPEN}"
            )
        question = f"{what}: {'; '.join(objections)}. If it is released, {WHAT_COULD_HAPPEN}. Release it?"
        click.confirm(question, abort=True, err=True)
    return None
