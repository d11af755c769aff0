"""Carries a removal out, step by step. Every step can be interrupted and repeated.

1. The remover is made, but on no node yet: from here on a later run knows that nodes are to be cleaned.
2. Agents and controllers are stopped. An agent that ran beside the remover would put its files back, and a controller its
   objects.
3. The remover cleans the nodes.
4. What the cluster has at the allocator becomes free, if that was asked for.
5. What the chart made is deleted, admission policies first: one whose parameters are of a kind that is gone would refuse
   every write that it matches.
6. What placement wrote on Nodes is removed, now that no controller publishes it and no policy lets pods request it.
7. Custom resources are deleted, podtide's finalizer is taken off, and then the CustomResourceDefinitions go.
8. The remover goes last.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from msgspec import structs

from podtide.cli.installation.uninstall.finding import AGENTS, FoundCluster, labelled
from podtide.cli.installation.uninstall.remover import COMPONENT, REMOVER, held_back, let_go, remover
from podtide.cli.output.formats import counted
from podtide.cluster.listing import get_if_there, list_if_known
from podtide.cluster.port import Cluster, Conflict, NotFound
from podtide.controller.nodes.config_ownership import without_finalizer
from podtide.core.errors import RetryError
from podtide.core.removal import FoundObject, NodeWork, Removal, some_of
from podtide.resources.installed_kinds import (
    CHART_KINDS,
    INSTALLED_CUSTOM_KINDS,
    DaemonSet,
    Installed,
    InstalledDefinition,
)
from podtide.resources.metadata_keys import COMPONENT_LABEL, NAME_LABEL, PODTIDE
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod, PodPhase

MANAGER = "podtide-uninstall"
Tell = Callable[[str], None]
_CONTROLLER = "podtide-controller"
_STOPPED_FIRST = frozenset({*AGENTS, _CONTROLLER})
_COMPONENTS_STOPPED_FIRST = frozenset({"agent", "remover", "controller"})
_POLL_SECONDS = 0.5
_AT_ONCE = 16
_PODS = next(kind for kind in CHART_KINDS if kind.api.kind == Pod.api.kind)


class NotYet(RetryError):
    """Something did not happen in time. What was done stays done, and the next run goes on from there."""


class Carrier:
    """One run. `seconds` is how long it may wait in all."""

    def __init__(self, cluster: Cluster, *, seconds: float, tell: Tell) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._until = asyncio.get_running_loop().time() + seconds
        self._tell = tell

    async def clean_nodes(self, found: FoundCluster, removal: Removal, *, image: str, force: bool) -> None:
        """Stop agents and controllers, and have the remover clean the nodes."""
        if removal.node_work is NodeWork.NOTHING:
            await self._stop_programs(removal)
            return
        await self._put_remover(found, image)
        await self._stop_programs(removal)
        await self._let_remover_go(found)
        try:
            await self._wait_for_nodes(self._until - (self._seconds / 2 if force else 0))
        except NotYet as error:
            if not force:
                raise
            self._tell(f"going on without them (--force): {error}")

    async def delete_objects(self, objects: Iterable[FoundObject]) -> None:
        """Delete what the chart made, in the order of `CHART_KINDS`."""
        by_kind = _by_kind(objects)
        for kind in CHART_KINDS:
            if chosen := by_kind.get(kind.api.kind):
                await self._delete(kind, chosen)

    async def delete_custom_resources(self, objects: Iterable[FoundObject]) -> None:
        """Delete custom resources, and remove podtide's finalizer, as no program is left that would."""
        by_kind = _by_kind(objects)
        for kind in INSTALLED_CUSTOM_KINDS:
            chosen = by_kind.get(kind.api.kind, [])
            if not chosen:
                continue
            await self._delete(kind, chosen)
            if kind.api.kind == NodeNetworkConfig.api.kind:
                await _all(self._take_finalizer_off, chosen)
            names = {(each.namespace, each.name) for each in chosen}

            async def left(kind: type[Installed] = kind, names: set[tuple[str, str]] = names) -> str:
                there = [
                    item.metadata.name
                    for item in await list_if_known(self._cluster, kind)
                    if (item.metadata.namespace, item.metadata.name) in names
                ]
                return f"the end of {kind.api.kind} {some_of(there)}: see their finalizers" if there else ""

            await self._wait(left)

    async def delete_definitions(self, names: Iterable[str]) -> None:
        """Delete CustomResourceDefinitions, and wait until they are gone."""
        chosen = [FoundObject(kind=InstalledDefinition.api.kind, name=name) for name in names]
        await self._delete(InstalledDefinition, chosen)
        for each in chosen:

            async def left(name: str = each.name) -> str:
                there = await get_if_there(self._cluster, InstalledDefinition, name)
                return f"the end of CustomResourceDefinition {name}" if there else ""

            await self._wait(left)

    async def delete_remover(self, namespace: str) -> None:
        """Delete the remover, and wait for the end of all pods of podtide's."""
        with suppress(NotFound):
            await self._cluster.delete(DaemonSet, REMOVER, namespace)
            self._tell(f"deleted DaemonSet {REMOVER}")
        await self._wait(self._pods_left)

    async def _put_remover(self, found: FoundCluster, image: str) -> None:
        if found.remover is None:
            agents = next(iter(found.agents), None)
            made = held_back(remover(found.namespace, image=image, agents=agents))
            await self._cluster.create(made, manager=MANAGER)

    async def _stop_programs(self, removal: Removal) -> None:
        for kind in CHART_KINDS:
            chosen = [
                each for each in removal.objects if each.kind == kind.api.kind and each.name in _STOPPED_FIRST
            ]
            if kind.api.kind in {"DaemonSet", "Deployment"}:
                await self._delete(kind, chosen)
        await self._wait(lambda: self._pods_left(_COMPONENTS_STOPPED_FIRST))

    async def _let_remover_go(self, found: FoundCluster) -> None:
        there = await self._cluster.get(DaemonSet, REMOVER, found.namespace)
        if let_go(there) != there:
            await self._cluster.replace(let_go(there), manager=MANAGER)
        self._tell("removing files from the nodes")

    async def _wait_for_nodes(self, until: float) -> None:
        async def left() -> str:
            there = next(item for item in await _daemon_sets(self._cluster) if item.metadata.name == REMOVER)
            wanted, ready = there.status.desired_number_scheduled, there.status.number_ready
            if there.status.observed_generation >= there.metadata.generation and ready >= wanted:
                self._tell(f"{counted(wanted, 'node is', 'nodes are')} clean")
                return ""
            waiting = [
                pod.spec.node_name
                for pod in (await self._cluster.list(Pod, labels=f"{COMPONENT_LABEL}={COMPONENT}")).items
                if pod.status.phase is not PodPhase.RUNNING
            ]
            return (
                f"the remover on {wanted - ready} of {wanted} nodes ({some_of(waiting) or 'none has started'}): see `kubectl "
                f"describe pod --selector={COMPONENT_LABEL}={COMPONENT}`; run `podtide uninstall-cni` on a node that is "
                "out of reach when it is back"
            )

        await self._wait(left, until)

    async def _take_finalizer_off(self, found: FoundObject) -> None:
        while config := await get_if_there(self._cluster, NodeNetworkConfig, found.name, found.namespace):
            freed = without_finalizer(config)
            if freed == config:
                return
            with suppress(Conflict, NotFound):
                await self._cluster.replace(structs.replace(freed), manager=MANAGER)
                return

    async def _delete(self, kind: type[Installed], chosen: Iterable[FoundObject]) -> None:
        deleted: list[str] = []

        async def delete(found: FoundObject) -> None:
            with suppress(NotFound):
                await self._cluster.delete(kind, found.name, found.namespace)
                deleted.append(found.name)

        await _all(delete, chosen)
        if deleted:
            self._tell(f"deleted {kind.api.kind} {some_of(sorted(deleted))}")

    async def _pods_left(self, components: frozenset[str] | None = None) -> str:
        there = [
            str(pod.key)
            for pod in await labelled(self._cluster, _PODS)
            if components is None or pod.metadata.labels.get(COMPONENT_LABEL) in components
        ]
        return f"the end of pods {some_of(there)}" if there else ""

    async def _wait(self, left: Callable[[], Awaitable[str]], until: float | None = None) -> None:
        """Until nothing is left; `left` says what is."""
        loop = asyncio.get_running_loop()
        while what := await left():
            if loop.time() >= (until or self._until):
                raise NotYet(
                    f"timed out while waiting for {what}. Nothing is lost: run it again to continue, or give it "
                    "more time with --timeout"
                )
            await asyncio.sleep(_POLL_SECONDS)


async def _daemon_sets(cluster: Cluster) -> list[DaemonSet]:
    return (await cluster.list(DaemonSet, labels=f"{NAME_LABEL}={PODTIDE}")).items


async def _all(act: Callable[[FoundObject], Awaitable[None]], objects: Iterable[FoundObject]) -> None:
    """Act on all of them, a few at a time."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def in_turn(each: FoundObject) -> None:
        async with turn:
            await act(each)

    await asyncio.gather(*(in_turn(each) for each in objects))


def _by_kind(objects: Iterable[FoundObject]) -> dict[str, list[FoundObject]]:
    by_kind: dict[str, list[FoundObject]] = {}
    for each in objects:
        by_kind.setdefault(each.kind, []).append(each)
    return by_kind
