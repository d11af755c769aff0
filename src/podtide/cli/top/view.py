"""Which part of an overview is shown, and in which order: the options `--node`, `--subnet`, `--sort` and `--by`. No I/O."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from podtide.cli.observed.node import ObservedNode
from podtide.cli.top.overview import (
    NamespaceLine,
    NetworkLine,
    NodeLine,
    Overview,
    SubnetLine,
    TopReading,
    overlook,
)


class TopOrder(StrEnum):
    """What the tables are sorted by. A table without the column keeps its own order, the worst first."""

    WORST = "worst"
    NAME = "name"
    HELD = "held"
    FREE = "free"
    PODS = "pods"
    WAITING = "waiting"
    OWED = "owed"


class TopGrouping(StrEnum):
    """What the second table is about."""

    NODE = "node"
    NAMESPACE = "namespace"


class TopView(Struct, frozen=True, kw_only=True):
    """What to show. Names may have the wildcards of a shell."""

    nodes: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    order: TopOrder = TopOrder.WORST
    by: TopGrouping = TopGrouping.NODE

    def has_node(self, node: ObservedNode) -> bool:
        """Whether a node is shown: by its name, and by the subnets it has containers in."""
        names = (container.subnet_name for container in node.containers)
        return _fits(node.name, self.nodes) and (
            not self.subnets or any(_fits(name, self.subnets) for name in names)
        )

    def has_subnet(self, name: str) -> bool:
        """Whether a subnet is shown."""
        return _fits(name, self.subnets)

    def sorted(self, overview: Overview) -> Overview:
        """The overview in the order that was asked for."""
        if self.order is TopOrder.WORST:
            return overview
        return replace(
            overview,
            subnets=self._sorted(overview.subnets, _SUBNETS),
            networks=self._sorted(overview.networks, _NETWORKS),
            nodes=self._sorted(overview.nodes, _NODES),
            namespaces=self._sorted(overview.namespaces, _NAMESPACES),
        )

    def _sorted(self, lines: tuple[Any, ...], keys: dict[TopOrder, Callable[[Any], int]]) -> tuple[Any, ...]:
        if self.order is TopOrder.NAME:
            return tuple(sorted(lines, key=lambda line: line.name))
        key = keys.get(self.order)
        return lines if key is None else tuple(sorted(lines, key=lambda line: (-key(line), line.name)))


EVERYTHING = TopView()


def _fits(name: str, patterns: Iterable[str]) -> bool:
    wanted = tuple(patterns)
    return not wanted or any(fnmatchcase(name, pattern) for pattern in wanted)


def view_of(view: TopView, reading: TopReading) -> Overview:
    """The overview as the options want it."""
    return view.sorted(overlook(reading, has_node=view.has_node, has_subnet=view.has_subnet))


_UNKNOWN_FREE = 1 << 62
"""Where it is not known how much is free, the line comes last."""


def _subnet_free(line: SubnetLine) -> int:
    return -(_UNKNOWN_FREE if line.free is None else line.free)


def _network_free(line: NetworkLine) -> int:
    return line.held - line.capacity


def _node_free(line: NodeLine) -> int:
    return -line.free


def _pods(line: NodeLine | NamespaceLine) -> int:
    return line.pods_with_address


def _waiting(line: NodeLine | NamespaceLine) -> int:
    return line.pods_without_address


_SUBNETS: dict[TopOrder, Callable[[Any], int]] = {
    TopOrder.HELD: lambda line: line.reserved or 0,
    TopOrder.FREE: _subnet_free,
    TopOrder.OWED: lambda line: line.owed,
}
_NETWORKS: dict[TopOrder, Callable[[Any], int]] = {
    TopOrder.HELD: lambda line: line.held,
    TopOrder.FREE: _network_free,
}
_NODES: dict[TopOrder, Callable[[Any], int]] = {
    TopOrder.HELD: lambda line: line.held,
    TopOrder.FREE: _node_free,
    TopOrder.PODS: _pods,
    TopOrder.WAITING: _waiting,
    TopOrder.OWED: lambda line: line.owed,
}
_NAMESPACES: dict[TopOrder, Callable[[Any], int]] = {
    TopOrder.HELD: lambda line: line.addresses,
    TopOrder.PODS: _pods,
    TopOrder.WAITING: _waiting,
}
"""Most first, but of what is free the least."""
