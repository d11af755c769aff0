"""Counts what happens in a replay, from what crosses the programs' ports and not from what they say of themselves.

It hears the trace entry by entry and keeps none, so that a month of pods needs no more memory than the pods there are. What
happens before `begin` moves the state (who waits, who holds what), and is not counted.
"""

from collections import Counter
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from podtide.cni.versions import Verb
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.runtime.clock import Clock
from podtide.simulation.replay.figures import ReplayFigures, ReplaySample
from podtide.simulation.replay.levels import LevelHistogram, nearest_rank
from podtide.simulation.trace import AllocatorCall, ClusterWrite, Entry, PluginCall
from podtide.simulation.world.world import World

PodKey: TypeAlias = tuple[str, str]
"""Its cluster, and its namespace and name."""

_MEDIAN, _NEARLY_ALL = 50, 99


class PendingPod(Struct):
    """A pod that has no address yet."""

    scheduled: float
    asked: float | None = None
    """When its first ADD was called, once that was answered."""


class SubnetSpells(Struct):
    """How often and how long subnets were in a state."""

    times: int = 0
    seconds: float = 0.0
    since: dict[str, float] = {}
    """By subnet, while it is in the state."""

    def move(self, subnet: str, *, is_on: bool, now: float) -> None:
        """The subnet is in the state, or not, from now on."""
        if is_on and subnet not in self.since:
            self.times += 1
            self.since[subnet] = now
        elif not is_on and subnet in self.since:
            self.seconds += now - self.since.pop(subnet)

    def begun_anew(self, now: float) -> "SubnetSpells":
        """Those that last, as if they began now."""
        return SubnetSpells(times=len(self.since), since=dict.fromkeys(self.since, now))

    def seconds_until(self, now: float) -> float:
        """All seconds, with those of subnets that are in the state now."""
        return self.seconds + sum(now - since for since in self.since.values())


class ReplayCounts(Struct):
    """What is counted since the beginning."""

    pods: int = 0
    at_once: int = 0
    unasked: int = 0
    abandoned: int = 0
    failed_adds: int = 0
    requests: int = 0
    api_writes: int = 0
    allocator_writes: int = 0


class ReplayTally:
    """The state of a replay's pods, nodes and subnets, and the counts since `begin`."""

    def __init__(self, clock: Clock, batch: int) -> None:
        self._clock = clock
        self._pending: dict[PodKey, PendingPod] = {}
        self._served: dict[PodKey, str] = {}
        """The sandboxes of pods that have an address."""
        self._held: Counter[str] = Counter()
        """Addresses by network container, without the primary."""
        self._batches = {"": batch}
        """By subnet; before the first decision, that of the settings."""
        self._held_count = 0
        self.counts = ReplayCounts()
        self._delays: list[float] = []
        self._ready: list[float] = []
        self._idle = LevelHistogram(0, 0.0)
        self._exhausted, self._starved = SubnetSpells(), SubnetSpells()
        self._reserved_max = 0
        self._lowest_batch = batch
        self._began = 0.0

    def follow(self, world: World) -> None:
        """Hear of the pods of a cluster. Its trace is heard by `hear`."""
        world.workload.on_pod.append(partial(self._pod_changed, world.name))

    def begin(self) -> None:
        """Count from now on."""
        now = self._began = self._clock.monotonic()
        self.counts = ReplayCounts(pods=len(self._pending))
        self._delays, self._ready = [], []
        self._idle = LevelHistogram(self._idle_now, now)
        self._exhausted, self._starved = self._exhausted.begun_anew(now), self._starved.begun_anew(now)
        self._reserved_max = self._reserved
        self._lowest_batch = self._batch

    # What is heard

    def hear(self, entry: Entry) -> None:
        """Take an entry of the trace into account."""
        match entry:
            case PluginCall(network="", verb=Verb.ADD):
                self._answered(entry)
            case PluginCall(network="", verb=Verb.DEL) if entry.ok:
                key = (entry.cluster, entry.pod)
                if self._served.get(key) == entry.sandbox:
                    del self._served[key]
                    self._note_levels()
            case ClusterWrite():
                self.counts.api_writes += 1
                self.counts.requests += entry.verb == "apply" and isinstance(entry.item, NodeNetworkConfig)
            case AllocatorCall():
                self.counts.allocator_writes += 1
                self._allocated(entry)

    def _pod_changed(self, cluster: str, pod: str, is_there: bool) -> None:  # noqa: FBT001 - a listener's signature
        key = (cluster, pod)
        if is_there:
            self.counts.pods += 1
            self._pending[key] = PendingPod(self._clock.monotonic())
            return
        if self._served.pop(key, None) is not None:
            self._note_levels()
        if (pending := self._pending.pop(key, None)) is None:
            return
        if pending.asked is None:
            self.counts.unasked += 1
        else:
            self.counts.abandoned += 1
            self._delays.append(self._clock.monotonic() - pending.asked)

    def _answered(self, add: PluginCall) -> None:
        key = (add.cluster, add.pod)
        self.counts.failed_adds += not add.ok
        pending = self._pending.get(key)
        if pending is not None:
            is_first = pending.asked is None
            if is_first:
                pending.asked = add.at - add.took_seconds
            if add.ok:
                del self._pending[key]
                self._ready.append(add.at - pending.scheduled)
                if is_first and add.took_seconds == 0:
                    self.counts.at_once += 1
                else:
                    self._delays.append(add.at - (pending.asked or 0.0))
        if add.ok:
            self._served[key] = add.sandbox
            self._note_levels()

    def _allocated(self, call: AllocatorCall) -> None:
        if call.answer is not None:
            self._hold(call.answer.id, len(call.answer.addresses))
        elif call.call == "delete_container":
            self._hold(call.subject, None)
        elif call.call == "put_in_force":
            now = self._clock.monotonic()
            self._batches.pop("", None)
            self._batches[call.subject] = call.batch
            self._lowest_batch = min(self._lowest_batch, self._batch)
            self._exhausted.move(call.subject, is_on=call.exhausted, now=now)
            self._starved.move(call.subject, is_on=call.starved, now=now)

    def _hold(self, container: str, addresses: int | None) -> None:
        self._held_count += (addresses or 0) - self._held.pop(container, 0)
        if addresses is not None:
            self._held[container] = addresses
        self._reserved_max = max(self._reserved_max, self._reserved)
        self._note_levels()

    def _note_levels(self) -> None:
        self._idle.move(self._idle_now, self._clock.monotonic())

    # What it comes to

    @property
    def _idle_now(self) -> int:
        return max(0, self._held_count - len(self._served))

    @property
    def _reserved(self) -> int:
        return self._held_count + len(self._held)

    @property
    def _batch(self) -> int:
        return min(self._batches.values())

    @property
    def pending(self) -> int:
        """Pods without an address."""
        return len(self._pending)

    @property
    def _delayed_so_far(self) -> int:
        return len(self._delays) + sum(pod.asked is not None for pod in self._pending.values())

    def sample(self, speed: float) -> ReplaySample:
        """The counts now."""
        counts = self.counts
        return ReplaySample(
            second=round((self._clock.monotonic() - self._began) * speed, 3),
            pods=len(self._pending) + len(self._served),
            waiting=len(self._pending),
            idle=self._idle_now,
            reserved=self._reserved,
            batch_in_force=self._batch,
            exhausted=bool(self._exhausted.since),
            starved=bool(self._starved.since),
            delayed=self._delayed_so_far,
            failed_adds=counts.failed_adds,
            requests=counts.requests,
            api_writes=counts.api_writes,
            allocator_writes=counts.allocator_writes,
        )

    def figures(self, strategy: str, batch: int, speed: float) -> ReplayFigures:
        """The figures of the run, which ends now."""
        now, counts = self._clock.monotonic(), self.counts
        self._note_levels()
        waiting = [now - pod.asked for pod in self._pending.values() if pod.asked is not None]
        delays, ready = sorted([*self._delays, *waiting]), sorted(self._ready)
        return ReplayFigures(
            strategy=strategy,
            batch=batch,
            pods=counts.pods,
            at_once=counts.at_once,
            delayed=len(delays),
            unasked=counts.unasked + len(self._pending) - len(waiting),
            delay_p50_seconds=round(nearest_rank(delays, _MEDIAN), 3),
            delay_p99_seconds=round(nearest_rank(delays, _NEARLY_ALL), 3),
            delay_max_seconds=round(nearest_rank(delays, 100), 3),
            ready_p99_seconds=round(nearest_rank(ready, _NEARLY_ALL), 3),
            ready_max_seconds=round(nearest_rank(ready, 100), 3),
            abandoned=counts.abandoned,
            unserved=len(self._pending),
            failed_adds=counts.failed_adds,
            idle_mean=round(self._idle.mean(), 3),
            idle_p99=self._idle.quantile(_NEARLY_ALL / 100),
            reserved_max=self._reserved_max,
            requests=counts.requests,
            api_writes=counts.api_writes,
            allocator_writes=counts.allocator_writes,
            exhausted_times=self._exhausted.times,
            exhausted_seconds=round(self._exhausted.seconds_until(now) * speed, 3),
            starved_times=self._starved.times,
            starved_seconds=round(self._starved.seconds_until(now) * speed, 3),
            lowest_batch=self._lowest_batch,
            seconds=round((now - self._began) * speed, 3),
        )
