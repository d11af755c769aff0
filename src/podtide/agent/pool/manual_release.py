"""Frees an address of the node's pool because a person asks for it: `podtide release --agent-socket`.

What speaks against it is decided in `core.pool.manual_release`, from the node's pods, read afresh. The address is then
freed as by a DEL of its sandbox, so that an ADD of the same sandbox that is still in flight is overtaken.
"""

from collections.abc import Callable

from msgspec import Struct

from podtide.agent.pool.journaled_pool import JournaledPool
from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.agent.port import PodAddress
from podtide.cluster.field_selector import field_is
from podtide.cluster.listing import list_all
from podtide.cluster.port import Cluster, ClusterError
from podtide.core.errors import InvalidInput
from podtide.core.pool.manual_release import FreeingObjection, objections_to_freeing
from podtide.core.pool.pool import Address, Owner
from podtide.core.pool.states import State
from podtide.core.ranges import parse_address
from podtide.resources.pod import Pod
from podtide.runtime.runtime import Runtime

_HELD = (State.ASSIGNED, State.ORPHANED)
_WORDS = {
    State.AVAILABLE: "no sandbox has it: it is free in the node's pool, and the agent gives it back when its request falls",
    State.PENDING_PROGRAMMING: "no sandbox has it: it was granted to the node just now",
    State.PENDING_RELEASE: "the agent gives it back to its subnet already",
    State.QUARANTINED: "the agent's records were lost: it is withheld until every pod of the node shows its address, and then freed",
}


class NotInPool(InvalidInput):
    """The address is none of this node's pool."""


class ManualRelease(Struct, frozen=True, kw_only=True):
    """What a person asks for."""

    address: str
    force: bool = False
    dry_run: bool = False
    reason: str = ""


class ManualReleaseAnswer(Struct, frozen=True, kw_only=True):
    """What was done, or what speaks against it."""

    address: str
    released: bool
    held_by: str = ""
    """The pod, or the sandbox of an unknown one; "" if no sandbox has the address."""
    objections: tuple[str, ...] = ()
    words: str = ""
    """Why there is nothing to free."""


class ManualReleases:
    """Carries out such requests on one node."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        journaled: JournaledPool,
        delete: Callable[[Owner], tuple[PodAddress, ...]],
        runtime: Runtime,
    ) -> None:
        """`delete` frees what a sandbox has."""
        self._cluster = cluster
        self._node = node
        self._journaled = journaled
        self._delete = delete
        self._grace_seconds = runtime.settings.leak_grace_seconds
        self._clock = runtime.clock
        self._log = runtime.log

    async def release(self, asked: ManualRelease) -> ManualReleaseAnswer:
        """Free the address, if nothing speaks against it or force is used. NotInPool if it is not this node's."""
        ip = str(parse_address(asked.address))
        address = self._journaled.pool.find(ip)
        if address is None:
            raise NotInPool(f"{ip} is not in the pool of node {self._node}")
        owner = address.owner
        if owner is None or address.state not in _HELD:
            words = _WORDS.get(address.state, "no sandbox has it") if address.state is not None else ""
            return ManualReleaseAnswer(address=ip, released=False, words=words)
        objections = await self._objections(address, owner)
        holder = f"pod {owner.namespace}/{owner.name}" if owner.name else f"sandbox {owner.sandbox}"
        answer = ManualReleaseAnswer(
            address=ip, released=False, held_by=holder, objections=tuple(map(str, objections))
        )
        if asked.dry_run or (objections and not asked.force):
            return answer
        if self._journaled.demand.owner(owner.sandbox, owner.interface) is not owner:
            return ManualReleaseAnswer(address=ip, released=False, words="it was freed meanwhile")
        self._delete(owner)
        self._log.warning(
            "address released by hand",
            address=ip,
            pod=owner.name,
            namespace=owner.namespace,
            sandbox=owner.sandbox,
            reason=asked.reason,
            objections=list(answer.objections),
        )
        return ManualReleaseAnswer(address=ip, released=True, held_by=holder, objections=answer.objections)

    async def _objections(self, address: Address, owner: Owner) -> tuple[FreeingObjection, ...]:
        try:
            pods = await list_all(self._cluster, Pod, fields=field_is("spec.nodeName", self._node))
        except ClusterError:
            pods = None
        now = self._clock.monotonic()
        since = self._journaled.suspects.since(owner)
        return objections_to_freeing(
            owner,
            None if pods is None else tuple(map(pod_on_node, pods)),
            is_shown=any(address.ip in shown_addresses(pod) for pod in pods or ()),
            suspected_seconds=0.0 if since is None else now - since,
            grace_seconds=self._grace_seconds,
        )
