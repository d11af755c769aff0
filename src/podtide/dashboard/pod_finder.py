"""Pods, looked up when a person asks: of one node, of the whole cluster where it is small, or those that are pending.

Of a large cluster a list of all pods is hundreds of megabytes, so it is never asked for there. Answers are kept for a few
seconds, and questions that come at the same time share one.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar, cast

from msgspec import Struct

from podtide.agent.pool.pods import pod_on_node, shown_addresses
from podtide.cluster.field_selector import field_is
from podtide.cluster.listing import list_kept
from podtide.cluster.port import Cluster
from podtide.dashboard.holdings import address_number
from podtide.resources.address_requests import addresses_requested
from podtide.resources.metadata_keys import IPV4_RESOURCE, IPV6_RESOURCE
from podtide.resources.pod import Pod, PodPhase
from podtide.runtime.clock import Clock

T = TypeVar("T")

MOST_PODS = 5_000
"""A cluster that states more demand is not listed as a whole."""
_KEPT_SECONDS = 3.0
_MOST_KEPT = 64
_PAGE_PODS = 500
_MOST_PENDING_PAGES = 10


class BriefPod(Struct, frozen=True, gc=False):
    """The few facts of a pod that the page shows."""

    namespace: str
    name: str
    uid: str
    node: str
    phase: str
    addresses: tuple[str, ...]
    needs_address: bool
    created: str | None
    address_resources: tuple[str, ...]
    """The resources for addresses that it requests, so that the scheduler counts them."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_waiting(self) -> bool:
        """Whether it needs an address and shows none."""
        return self.needs_address and not self.addresses


class PendingPods(Struct, frozen=True):
    """The pods that are pending, as far as they were read."""

    pods: tuple[BriefPod, ...]
    is_cut: bool


class _KeptPods(NamedTuple):
    at: float
    answer: "asyncio.Future[Any]"


class PodFinder:
    """Finds pods in a cluster."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._kept: dict[str, _KeptPods] = {}

    async def on_node(self, node: str) -> tuple[BriefPod, ...]:
        """The pods of a node."""
        return await self._shared(f"node/{node}", lambda: self._of_node(node))

    async def everywhere(self) -> tuple[BriefPod, ...]:
        """All pods with an address, for a cluster that is known to be small."""
        return await self._shared("all", self._all)

    async def addresses(self, node: str | None) -> frozenset[int]:
        """The addresses that pods have: those of a node, or all."""
        pods = await self.on_node(node) if node is not None else await self.everywhere()
        numbers = (address_number(address) for pod in pods for address in pod.addresses)
        return frozenset(number for number in numbers if number is not None)

    async def pending(self) -> PendingPods:
        """The pods that are pending."""
        return await self._shared("pending", self._pending)

    async def _of_node(self, node: str) -> tuple[BriefPod, ...]:
        return tuple(await list_kept(self._cluster, Pod, fields=field_is("spec.nodeName", node), keep=_brief))

    async def _all(self) -> tuple[BriefPod, ...]:
        return tuple(
            await list_kept(
                self._cluster, Pod, keep=lambda pod: _brief(pod) if shown_addresses(pod) else None
            )
        )

    async def _pending(self) -> PendingPods:
        found: list[BriefPod] = []
        more = ""
        for _ in range(_MOST_PENDING_PAGES):
            fields = field_is("status.phase", PodPhase.PENDING.value)
            page = await self._cluster.list(Pod, fields=fields, limit=_PAGE_PODS, more=more)
            found += map(_brief, page.items)
            more = page.more
            if not more:
                break
        return PendingPods(tuple(found), is_cut=bool(more))

    async def _shared(self, key: str, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer of a few seconds ago, or a new one; those who ask meanwhile wait for the same."""
        now = self._clock.monotonic()
        kept = self._kept.get(key)
        if kept is None or now - kept.at > _KEPT_SECONDS or _has_failed(kept.answer):
            self._kept.pop(key, None)
            answer = asyncio.ensure_future(ask())
            answer.add_done_callback(
                _has_failed
            )  # or one that no page waits for any more would be complained of
            kept = self._kept[key] = _KeptPods(now, answer)
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        # A page that is closed cancels its question, and not the one that others wait for.
        return cast("T", await asyncio.shield(kept.answer))


def _has_failed(answer: "asyncio.Future[Any]") -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _brief(pod: Pod) -> BriefPod:
    return BriefPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        node=pod.spec.node_name,
        phase=str(pod.status.phase or ""),
        addresses=shown_addresses(pod),
        needs_address=pod_on_node(pod).needs_address,
        created=pod.metadata.creation_timestamp,
        address_resources=tuple(
            each for each in (IPV4_RESOURCE, IPV6_RESOURCE) if addresses_requested(pod, each)
        ),
    )
