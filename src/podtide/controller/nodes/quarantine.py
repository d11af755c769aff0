"""Addresses that deleted Nodes left at the allocator: moved to the machine's new Node, released after a check, or held.

A quarantine ends only when the controller says so (design R5, "A node deleted while its machine lives"). What is to be
done is decided in `core.subnet.quarantine`; this module reads the facts for it afresh: what is in quarantine for a
node's name, which machine has that name now, and which addresses living pods show that are bound to it.

Nothing here is polled. A name is reconciled when one of its containers was deleted, when its Node changed, when a
quarantine ends, and once at the start of a term.
"""

from podtide.allocator.containers import MoveResult
from podtide.allocator.pages import every_quarantined
from podtide.allocator.quarantine import Quarantined
from podtide.cluster.listing import get_if_there
from podtide.cluster.work_queue import WorkQueue
from podtide.controller.machines import machine_of
from podtide.controller.nodes.pod_addresses import shown_on
from podtide.controller.term_context import TermContext
from podtide.core.machine_identity import Kinship, MachineIdentity, kinship
from podtide.core.subnet.quarantine import QuarantineAction, course_of, ending_of
from podtide.resources.base import ObjectMeta
from podtide.resources.container_ids import node_uid
from podtide.resources.node import Node
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.timestamps import to_time

_MOST_SHOWN = 8
_NO_POD_SHOWS_IT = "no pod in a fresh list of those bound to node {node} shows it"


class QuarantineReconciler:
    """Reconciles quarantines by node name, one at a time for each."""

    def __init__(self, context: TermContext, queue: WorkQueue[str]) -> None:
        self._context = context
        self._queue = queue
        self._names: set[str] = set()
        """Node names for which something may be in quarantine."""
        self._to_move: dict[str, set[str]] = {}
        """Deleted containers whose machine is back, by the name of the Node that has to ask for what they left."""
        self._refused: set[str] = set()
        """Deleted containers that cannot move to the same machine: it has a container already, or uses another subnet."""
        self._last_seen: dict[str, dict[str, MachineIdentity]] = {}
        """The machines of deleted Nodes, by name and uid, where their deletion was watched."""
        self._waits: dict[str, str] = {}
        """What is in quarantine for a name, and until when, as text."""
        self._told: dict[str, QuarantineAction] = {}
        """Which course the last Event told for a deleted container."""
        self._by_node: dict[str, set[str]] = {}
        """Which deleted containers had something in quarantine at the last reconcile."""

    # What others tell, and ask

    def begun(self, node: str) -> None:
        """Queue a name whose former Node's containers were deleted."""
        self._names.add(node)
        self._queue.add(node)

    def note_watched_deletion(self, node: Node) -> None:
        """Remember the machine of a Node whose deletion was watched."""
        seen = self._last_seen.setdefault(node.metadata.name, {})
        seen[node.metadata.uid] = machine_of(node)

    def node_changed(self, node: str) -> None:
        """Queue a name whose Node was created, deleted or changed, if something of it may be in quarantine."""
        if node in self._names:
            self._queue.add(node)

    def is_to_move(self, node: str) -> bool:
        """Whether something is in quarantine that the node of that name can have back."""
        return node in self._to_move

    def waiting(self, node: str) -> str:
        """What is in quarantine for former Nodes of that name and until when, as text; "" if nothing is."""
        return self._waits.get(node, "")

    async def note_asked(self, config: NodeNetworkConfig, answers: list[MoveResult]) -> None:
        """Note that a node sent its wish and, where it had no container yet, asked for what its machine left."""
        name = config.metadata.name
        if name in self._to_move:
            self._refused |= self._to_move.pop(
                name
            )  # counts only if it is still in quarantine at the next reconcile
            self._queue.add(name)
        moved = [address for answer in answers for address in answer.moved]
        missing = sum(answer.missing for answer in answers)
        if moved:
            words = f"{len(moved)} addresses that this machine had under a former Node uid were moved to this node: {_some(moved)}"
            await self._context.events.record(config, "AddressesMoved", words, warning=False)
        if missing:
            words = (
                f"{missing} addresses that this machine had under a former Node uid were granted to others already: a pod here that still "
                "uses one of them shares it; the node's agent names it, delete that pod"
            )
            await self._context.events.record(config, "AddressesLost", words, warning=True)

    # What is done

    async def find(self, cluster: str) -> None:
        """Queue every name for which something is in quarantine."""
        async for left in every_quarantined(self._context.allocator, cluster=cluster):
            self._told.setdefault(left.container, QuarantineAction.WAIT)
            self.begun(left.node)

    async def reconcile(self, node: str) -> float | None:
        """Reconcile what former Nodes of a name left. Returns after how many seconds to do it again, or None."""
        left = await self._left_by(node)
        present = await get_if_there(self._context.cluster, Node, node) if left else None
        waits: list[str] = []
        again: list[float] = []
        moving: set[str] = set()
        for each in left:
            kin = kinship(each.machine, machine_of(present))
            if kin is Kinship.SAME_BOOT and not self._can_move(each):
                kin = Kinship.UNPROVEN
            course = course_of(
                kin,
                each.seconds_left,
                hold=self._context.options.hold_removed_nodes,
                witnessed=self._last_seen.get(node, {}).get(node_uid(each.container)) == each.machine,
            )
            if course is QuarantineAction.MOVE:
                moving.add(each.container)
                continue
            if course is QuarantineAction.END:
                shown = await self._end(each)
                if not shown:
                    continue
                again.append(self._context.settings.quarantine_seconds)
                words = _held_by_pods(each, shown)
            else:
                if course is QuarantineAction.WAIT:
                    again.append(each.seconds_left)
                words = _waiting(each) if course is QuarantineAction.WAIT else _held(each)
            waits.append(words)
            await self._tell(each, course, words)
        self._note(node, left, waits, moving)
        return min(again, default=None)

    def _can_move(self, left: Quarantined) -> bool:
        return self._context.options.cluster_subnets and left.container not in self._refused

    async def _left_by(self, node: str) -> list[Quarantined]:
        cluster = self._context.options.cluster
        return [left async for left in every_quarantined(self._context.allocator, cluster=cluster, node=node)]

    async def _end(self, left: Quarantined) -> tuple[str, ...]:
        """Release what no living pod shows. Returns the addresses that one does show."""
        ending = ending_of(left.addresses, await shown_on(self._context.cluster, left.node))
        if ending.free:
            reason = _NO_POD_SHOWS_IT.format(node=left.node)
            ended = await self._context.allocator.end_quarantine(
                left.container, ending.free, cluster=left.cluster, reason=reason
            )
            self._context.log.info(
                "quarantine ended", node=left.node, container=left.container, ended=ended, reason=reason
            )
        return ending.shown

    async def _tell(self, left: Quarantined, course: QuarantineAction, words: str) -> None:
        """Write an Event on the deleted Node, once for each change of course."""
        if self._told.get(left.container) is course:
            return
        self._told[left.container] = course
        gone = Node(metadata=ObjectMeta(name=left.node, uid=left.container))
        reason = "AddressesQuarantined" if course is QuarantineAction.WAIT else "QuarantineHeld"
        await self._context.events.record(gone, reason, words, warning=course is not QuarantineAction.WAIT)

    def _note(self, node: str, left: list[Quarantined], waits: list[str], moving: set[str]) -> None:
        before = self._waits.pop(node, "")
        there = {each.container for each in left}
        for container in self._by_node.pop(node, set()) - there:
            self._refused.discard(container)
            self._told.pop(container, None)
        if left:
            self._names.add(node)  # the quarantine may have begun after a read that found none
            self._by_node[node] = there
        else:
            self._names.discard(node)
            self._last_seen.pop(node, None)
        if waits:
            self._waits[node] = "; ".join(waits)
        asked_before = self._to_move.pop(node, set())
        if moving:
            self._to_move[node] = moving
        if moving != asked_before or self._waits.get(node, "") != before:
            # It asks for it, or says in its status what waits. Once: one that cannot do that yet is looked at when it can.
            self._context.node_queue.add(node)


def _waiting(left: Quarantined) -> str:
    return (
        f"{_what(left)} are in quarantine until {to_time(left.until)}, in case its machine still runs; then they are released, except what "
        f"a living pod bound to {left.node} shows"
    )


def _held(left: Quarantined) -> str:
    return (
        f"{_what(left)} are held until its machine returns or reboots (--hold-removed-nodes); "
        "`podtide quarantine end` releases them"
    )


def _held_by_pods(left: Quarantined, shown: tuple[str, ...]) -> str:
    return (
        f"of {_what(left)}, living pods bound to {left.node} still show {_some(shown)}: they are released when these pods are "
        "gone"
    )


def _what(left: Quarantined) -> str:
    return f"{len(left.addresses)} addresses in subnet {left.subnet} of the removed Node {left.node} ({left.container})"


def _some(addresses: "tuple[str, ...] | list[str]") -> str:
    shown = ", ".join(addresses[:_MOST_SHOWN])
    return shown if len(addresses) <= _MOST_SHOWN else f"{shown} and {len(addresses) - _MOST_SHOWN} more"
