"""What of podtide is removed from a cluster, what stays, and when removing is refused.

podtide shares its kinds with Azure CNS and Whereabouts, so that an object is of such a kind does not make it podtide's.
It is podtide's by what no other program writes: podtide's label, podtide's finalizer, or that podtide alone wrote it
(besides people with kubectl). Whatever is not certain stays, with the CustomResourceDefinition that it needs.

A node is clean when the remover has run there. So the remover goes last of all: where neither it nor agents are found and
other things are, agents were removed without it, and their files are still on the nodes.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from enum import StrEnum

from msgspec import Struct

OWN_WRITERS = "podtide"
"""What the field managers of podtide's programs begin with."""
_PEOPLE = "kubectl"
_MOST_SHOWN = 5
DATABASE_KIND = "PersistentVolumeClaim"
"""What the allocator's database is on. It is data: it goes only if that is asked for."""


class FoundObject(Struct, frozen=True, kw_only=True, order=True):
    """An object that may be podtide's."""

    kind: str
    namespace: str = ""
    name: str
    is_labelled: bool = False
    """Whether it has podtide's label, as all has that the chart makes."""
    is_marked: bool = False
    """Whether it has podtide's finalizer, or an annotation that only podtide writes."""
    writers: frozenset[str] = frozenset()
    """Its field managers."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def is_own(self) -> bool:
        """Whether it is certain that this is podtide's."""
        programs = {each for each in self.writers if not each.startswith(_PEOPLE)}
        by_podtide_alone = bool(programs) and all(each.startswith(OWN_WRITERS) for each in programs)
        return self.is_labelled or self.is_marked or by_podtide_alone


class FoundDefinition(Struct, frozen=True, kw_only=True):
    """A CustomResourceDefinition of a kind that podtide uses, and all objects of that kind."""

    name: str
    is_labelled: bool
    objects: tuple[FoundObject, ...] = ()
    users: tuple[str, ...] = ()
    """What shows that another program needs the kind, though nothing of it may be there now."""


class LivingPod(Struct, frozen=True, kw_only=True):
    """A pod that has not ended and is not on its node's own network."""

    name: str
    node: str
    addresses: frozenset[str] = frozenset()


class NodeWork(StrEnum):
    """What is left to do on the nodes."""

    REPLACE_AGENTS = "replace agents"
    """Agents run: the remover takes their place."""
    GO_ON = "go on"
    """The remover is there from an earlier run."""
    FROM_IMAGE = "from image"
    """Agents were removed, and the files they left were not: a remover is made from the image that was named."""
    UNKNOWN = "unknown"
    """The same, and no image was named."""
    NOTHING = "nothing"


class InstalledParts(Struct, frozen=True, kw_only=True):
    """What was found in a cluster."""

    objects: tuple[FoundObject, ...] = ()
    """All that has podtide's label or is known by its name, but custom resources and the remover."""
    definitions: tuple[FoundDefinition, ...] = ()
    pods: tuple[LivingPod, ...] = ()
    granted: frozenset[str] = frozenset()
    """Addresses that nodes have for pods by NodeNetworkConfigs of podtide's."""
    pods_in_pools: frozenset[str] = frozenset()
    """Pods that hold addresses of secondary networks by pools of podtide's, as `namespace/name`."""
    nodes_with_traces: tuple[str, ...] = ()
    """Nodes that have resources or a taint of podtide's, by placement."""
    has_agents: bool = False
    has_remover: bool = False


class RemovalWish(Struct, frozen=True, kw_only=True):
    """What the operator asks for."""

    force: bool = False
    keep_definitions: bool = False
    delete_database: bool = False
    has_image: bool = False


class LeftInPlace(Struct, frozen=True):
    """Something that stays, and why."""

    what: str
    reason: str


class Removal(Struct, frozen=True, kw_only=True):
    """What is to be done. Nothing may be done while there are objections."""

    objections: tuple[str, ...]
    node_work: NodeWork
    holders: tuple[LivingPod, ...]
    """Pods that hold addresses."""
    objects: tuple[FoundObject, ...]
    nodes_with_traces: tuple[str, ...]
    """Nodes to remove resources and the taint from."""
    custom_resources: tuple[FoundObject, ...]
    definitions: tuple[str, ...]
    kept: tuple[LeftInPlace, ...]

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to remove."""
        return self.node_work is NodeWork.NOTHING and not (
            self.objects or self.nodes_with_traces or self.custom_resources or self.definitions
        )

    @property
    def may_free_addresses(self) -> bool:
        """Whether what the cluster has at the allocator may be free at once: no pod has anything of it."""
        return not self.holders


def plan_removal(found: InstalledParts, wish: RemovalWish) -> Removal:
    """Decide what is removed and what stays."""
    holders = holders_of(found.pods, found.granted, found.pods_in_pools)
    objects = tuple(sorted(each for each in found.objects if _goes(each, wish)))
    custom = tuple(sorted(each for kind in found.definitions for each in kind.objects if each.is_own))
    reasons = {kind.name: _reason_to_keep(kind, wish) for kind in found.definitions}
    definitions = tuple(sorted(name for name, reason in reasons.items() if not reason))
    work = _node_work(found, wish, is_anything_left=bool(objects or custom or definitions))
    kept = [
        LeftInPlace(f"CustomResourceDefinition {name}", reason)
        for name, reason in sorted(reasons.items())
        if reason
    ]
    kept += [
        LeftInPlace(str(each), "it is the allocator's database; --delete-database removes it")
        for each in sorted(found.objects)
        if each.kind == DATABASE_KIND and each not in objects
    ]
    return Removal(
        objections=() if wish.force else _objections(holders, work),
        node_work=work,
        holders=holders,
        objects=objects,
        nodes_with_traces=tuple(sorted(found.nodes_with_traces)),
        custom_resources=custom,
        definitions=definitions,
        kept=tuple(kept),
    )


def holders_of(
    pods: Iterable[LivingPod], granted: AbstractSet[str], pods_in_pools: AbstractSet[str]
) -> tuple[LivingPod, ...]:
    """The pods that hold addresses of podtide's, by name."""
    holding = [pod for pod in pods if pod.addresses & granted or pod.name in pods_in_pools]
    return tuple(sorted(holding, key=lambda pod: pod.name))


def some_of(names: Iterable[str], most: int = _MOST_SHOWN) -> str:
    """The first few of the names, and how many there are besides."""
    shown = list(names)
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more


def _goes(found: FoundObject, wish: RemovalWish) -> bool:
    return found.is_own and (found.kind != DATABASE_KIND or wish.delete_database)


def _reason_to_keep(kind: FoundDefinition, wish: RemovalWish) -> str:
    """Why a definition stays; "" if it goes."""
    if wish.keep_definitions:
        return "--keep-crds"
    others = sorted(each for each in kind.objects if not each.is_own)
    if others:
        first = others[0]
        by = ", ".join(sorted(first.writers)) or "somebody"
        of_several = (
            f"{len(others)} objects in it are not podtide's, such as" if len(others) > 1 else "in it is"
        )
        return f"{of_several} {first}, written by {by}"
    if kind.users:
        return f"{some_of(kind.users)} still needs it"
    return "" if kind.is_labelled else "another program installed it"


def _node_work(found: InstalledParts, wish: RemovalWish, *, is_anything_left: bool) -> NodeWork:
    if found.has_agents:
        return NodeWork.REPLACE_AGENTS
    if found.has_remover:
        return NodeWork.GO_ON
    if wish.has_image:
        return NodeWork.FROM_IMAGE
    return NodeWork.UNKNOWN if is_anything_left and not wish.force else NodeWork.NOTHING


def _objections(holders: tuple[LivingPod, ...], work: NodeWork) -> tuple[str, ...]:
    said = []
    if holders:
        shown = some_of([f"{pod.name} on {pod.node}" for pod in holders])
        count = "1 pod holds" if len(holders) == 1 else f"{len(holders)} pods hold"
        said.append(
            f"{count} addresses of podtide's ({shown}), and without the plugin they could not be taken down: delete them or "
            "move them to another network first, or say --force"
        )
    if work is NodeWork.UNKNOWN:
        said.append(
            "the agents were removed before, but their files are still on the nodes: give podtide's image with --image to "
            "remove these files, or --force to leave them there"
        )
    return tuple(said)
