"""A simulated kubelet: it creates the sandboxes of one node's pods, and has the CNI plugin called as a real one does.

What it does for a pod follows from the pod and its sandbox alone (`next_move`), so changes may arrive late, twice or in
bulk. As with a real kubelet and runtime:

    an ADD that failed       DEL for the same sandbox, a pause of ten seconds and some, then a new sandbox
    a pod deleted meanwhile  the ADD is given up, not called back: DEL comes while the agent may still work on it
    a DEL that failed        is repeated until it succeeds; the pod goes after that
    a pod marked deleted     DEL, then a terminal phase, then it is removed
    a sandbox that died      DEL, then the pod shows no address, then a new sandbox at once
    a pod that is too much   it has failed (see `node_admission`), where pods are placed by what Nodes publish
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from random import Random

from msgspec import Struct, structs

from podtide.cluster.informer import Informer, Scope
from podtide.cluster.port import Cluster, Conflict, NotFound, Patch
from podtide.core.errors import RetryError
from podtide.resources.pod import Pod, PodIP, PodPhase, PodStatus
from podtide.runtime.clock import Clock
from podtide.runtime.logging import Logger
from podtide.runtime.runtime import Runtime
from podtide.simulation.nodes.container_runtime import CallFailed, ContainerRuntime
from podtide.simulation.nodes.node_admission import NodeAdmission
from podtide.simulation.nodes.pods import MANAGER, is_terminal


class KubeletHabits(Struct, frozen=True, kw_only=True):
    """Timing of a kubelet's work."""

    retry_seconds: float = 10.0
    """The pause before a failed sandbox is retried; up to half as much is added at random."""
    impatience: float = 0.0
    """The probability that there is no such pause: an event of a pod makes a kubelet sync it at once."""
    sandbox_seconds: float = 0.0
    """How long creating a sandbox takes before its network is set up."""
    at_once: int = 256
    """How many sandboxes are set up side by side; 1 is the serial kubelet of the design papers."""


class Sandbox(Struct, frozen=True):
    """A pod's sandbox. It has no addresses while its ADD is in flight, after a failed ADD, and when its network is gone."""

    id: str
    pod: str
    """Namespace and name."""
    addresses: tuple[str, ...] = ()


SandboxListener = Callable[[Sandbox | None, Sandbox | None], None]


class Move(StrEnum):
    """The kubelet's next action for a pod."""

    SET_UP = "set up a sandbox"
    SHOW = "show that it runs"
    HIDE = "show no address any more"
    TEAR_DOWN = "tear its sandbox down"
    REMOVE = "remove it"
    REFUSE = "show that it is too much"
    REST = "wait for news of it"
    FORGET = "forget it"


def next_move(pod: Pod | None, sandbox: Sandbox | None) -> Move:
    """The next action for a pod and its sandbox. A pod that is deleted is None."""
    if pod is None:
        return Move.TEAR_DOWN if sandbox else Move.FORGET
    leaving = pod.metadata.deletion_timestamp is not None
    if sandbox and (leaving or is_terminal(pod) or not sandbox.addresses):
        return Move.TEAR_DOWN
    if leaving:
        return Move.REMOVE
    if is_terminal(pod):
        return Move.REST
    if not sandbox and not pod.spec.host_network:
        return Move.HIDE if pod.status.pod_ips else Move.SET_UP
    return Move.REST if _shows(pod, sandbox) else Move.SHOW


def _shows(pod: Pod, sandbox: Sandbox | None) -> bool:
    shown = tuple(entry.ip for entry in pod.status.pod_ips)
    return pod.status.phase is PodPhase.RUNNING and shown == (sandbox.addresses if sandbox else ())


class _Charge:
    """A pod of the kubelet's node, with its sandbox and the task that works on it."""

    def __init__(self, pod: Pod) -> None:
        self.last_seen = pod
        self.gone = False
        self.sandbox: Sandbox | None = None
        self.refusal = ""
        """Why the kubelet does not take the pod in; "" if it does."""
        self.failures = 0
        """How many sandboxes in a row got no address."""
        self.is_asking = False
        """Whether the task waits for the answer to an ADD."""
        self.keeper: asyncio.Task[None] | None = None
        """The task that works on the pod. It is replaced when the ADD it waits for is not wanted any more, and then does nothing."""
        self.news = asyncio.Event()

    def hear(self, pod: Pod | None) -> None:
        self.gone = pod is None
        self.last_seen = pod or self.last_seen
        self.news.set()

    @property
    def move(self) -> Move:
        return self._move(self.sandbox)

    @property
    def is_wanted(self) -> bool:
        """Whether the pod must still have a sandbox."""
        return self._move(None) in {Move.HIDE, Move.SET_UP}

    def _move(self, sandbox: Sandbox | None) -> Move:
        pod = None if self.gone else self.last_seen
        if self.refusal and pod and not is_terminal(pod) and not pod.metadata.deletion_timestamp:
            return Move.REFUSE
        return next_move(pod, sandbox)

    async def until_unwanted(self) -> None:
        """Wait until the pod must not have a sandbox any more."""
        while self.is_wanted:
            self.news.clear()
            await self.news.wait()


def _is_known(pod: Pod | None, charge: _Charge) -> bool:
    """Whether this is the pod that the kubelet saw last, for instance in the answer to its own write.

    Content is compared and not versions: after a restore of the cluster, a pod may come back with an older version.
    """
    return pod == charge.last_seen and not charge.gone


class Kubelet:
    """The kubelet of one node, for one `run`."""

    def __init__(  # noqa: PLR0913 - where it works, by what means, and what it runs in: each a parameter, none global
        self,
        cluster: Cluster,
        node: str,
        runtime: ContainerRuntime,
        *,
        habits: KubeletHabits,
        admission: NodeAdmission | None = None,
        clock: Clock,
        randomness: Random,
        log: Logger,
    ) -> None:
        self._admission = admission
        self._cluster = cluster
        self._runtime = runtime
        self._habits = habits
        self._randomness = randomness
        self._log = log.bind(node=node)
        self._charges: dict[str, _Charge] = {}
        self.on_sandbox: list[SandboxListener] = []
        """Called with every sandbox that is created, changed or removed: as it was and as it is."""
        self._turns = asyncio.Semaphore(habits.at_once)
        self._tasks = asyncio.TaskGroup()
        scope = Scope(fields=f"spec.nodeName={node}")
        self._informer = Informer(
            cluster, Pod, scope, runtime=Runtime(clock=clock, randomness=randomness, log=self._log)
        )
        self._informer.add_handler(self._hear)

    def sandboxes(self) -> tuple[Sandbox, ...]:
        """The sandboxes on the machine, with the addresses they really have."""
        return tuple(charge.sandbox for charge in self._charges.values() if charge.sandbox is not None)

    def lose_sandbox(self, sandbox: Sandbox) -> None:
        """Let a sandbox die by itself: its pod has no network any more."""
        for charge in self._charges.values():
            if charge.sandbox is sandbox:
                self._set_sandbox(charge, structs.replace(sandbox, addresses=()))
                charge.news.set()

    def admit_again(self) -> None:
        """Check every pod anew, as a kubelet does that was restarted, one after the other."""
        admitted = list[Pod]()
        for charge in self._charges.values():
            pod = charge.last_seen
            if not charge.gone and not charge.refusal and not is_terminal(pod):
                charge.refusal = self._refusal(pod, admitted)
                charge.news.set()
            if not charge.refusal:
                admitted.append(pod)

    async def run(self) -> None:
        """Sync the node's pods until cancelled."""
        async with self._tasks:
            if self._admission is not None:
                self._tasks.create_task(self._admission.nodes.run())
                await self._admission.nodes.synced.wait()
            await self._informer.run()

    def _hear(self, old: Pod | None, new: Pod | None) -> None:
        known = new or old
        assert known is not None  # a handler is told of one or both
        charge = self._charges.get(known.metadata.uid)
        if charge is None and new is not None:
            refusal = self._refusal(new, self._admitted())
            charge = self._charges[new.metadata.uid] = _Charge(new)
            charge.refusal = refusal
            self._find_keeper(charge)
        elif charge is not None and not _is_known(new, charge):
            charge.hear(new)
            if charge.is_asking and not charge.is_wanted:
                charge.is_asking = False
                self._find_keeper(charge)

    def _admitted(self) -> Iterator[Pod]:
        """The pods that the kubelet has taken in, and that have not ended."""
        for charge in self._charges.values():
            if not charge.refusal and not charge.gone and not is_terminal(charge.last_seen):
                yield charge.last_seen

    def _refusal(self, pod: Pod, beside: Iterable[Pod]) -> str:
        """Why a pod is too much beside others; "" if it is not."""
        if self._admission is None or is_terminal(pod) or pod.metadata.deletion_timestamp:
            return ""
        return self._admission.refusal(pod, beside)

    def _find_keeper(self, charge: _Charge) -> None:
        charge.keeper = self._tasks.create_task(self._look_after(charge))

    async def _look_after(self, charge: _Charge) -> None:
        """Make one move after the other, until pod and sandbox are gone or another task has taken over."""
        keeper = charge.keeper
        while (move := charge.move) is not Move.FORGET:
            charge.news.clear()
            try:
                await self._make(move, charge)
            except NotFound:
                charge.hear(None)
            except Conflict:
                await charge.news.wait()  # it changed since it was last heard of
            except (RetryError, CallFailed) as failure:
                self._log.info("will try again", pod=str(charge.last_seen.key), error=str(failure))
                await asyncio.sleep(self._pause_seconds())
            if charge.keeper is not keeper:
                return
        del self._charges[charge.last_seen.metadata.uid]

    async def _make(self, move: Move, charge: _Charge) -> None:
        match move:
            case Move.SET_UP:
                await self._set_up(charge)
            case Move.TEAR_DOWN:
                assert charge.sandbox is not None  # or there would be nothing to tear down
                bare = structs.replace(charge.sandbox, addresses=())
                self._set_sandbox(charge, bare)
                await self._runtime.delete(charge.last_seen, bare.id)
                self._set_sandbox(charge, None)
            case Move.SHOW:
                addresses = charge.sandbox.addresses if charge.sandbox else ()
                await self._show(charge, PodPhase.RUNNING, addresses)
            case Move.HIDE:
                await self._show(charge, charge.last_seen.status.phase, ())
            case Move.REFUSE:
                await self._refuse(charge)
            case Move.REMOVE:
                await self._remove(charge.last_seen)
                charge.hear(None)
            case _:
                await charge.news.wait()

    async def _set_up(self, charge: _Charge) -> None:
        """Create a sandbox with addresses, or one without if its ADD fails, which has to be torn down."""
        if charge.failures and not self._is_impatient():
            with suppress(TimeoutError):
                await asyncio.wait_for(charge.until_unwanted(), self._pause_seconds())
            if charge.keeper is not None and charge.keeper.cancelling():
                raise asyncio.CancelledError  # Python 3.11 forgets one that comes at the instant of the news
        async with self._turns:
            if self._habits.sandbox_seconds:
                await asyncio.sleep(self._habits.sandbox_seconds)
            if not charge.is_wanted:
                return
            id_ = f"{self._randomness.getrandbits(256):064x}"
            sandbox = Sandbox(id_, str(charge.last_seen.key))
            self._set_sandbox(charge, sandbox)
            await self._add(charge, sandbox)

    async def _add(self, charge: _Charge, sandbox: Sandbox) -> None:
        """Call ADD. Its answer is dropped if the sandbox was torn down meanwhile."""
        keeper, charge.is_asking = charge.keeper, True
        try:
            addresses = await self._runtime.add(charge.last_seen, sandbox.id)
        except CallFailed:
            charge.failures += 1
            return
        finally:
            if charge.keeper is keeper:
                charge.is_asking = False
        if charge.sandbox is sandbox:
            charge.failures = 0
            self._set_sandbox(charge, structs.replace(sandbox, addresses=addresses))

    def _set_sandbox(self, charge: _Charge, sandbox: Sandbox | None) -> None:
        old, charge.sandbox = charge.sandbox, sandbox
        for tell in self.on_sandbox:
            tell(old, sandbox)

    async def _show(self, charge: _Charge, phase: PodPhase | None, addresses: tuple[str, ...]) -> None:
        """Write the pod's status, and take the answer for the pod's newest state unless a newer one has come meanwhile."""
        pod = charge.last_seen
        answer = await self._write_status(pod, phase, addresses)
        if charge.last_seen is pod and not charge.gone:
            charge.hear(answer)

    async def _refuse(self, charge: _Charge) -> None:
        """Let a pod fail that was not taken in."""
        pod = charge.last_seen
        place, status = pod.metadata, {"phase": str(PodPhase.FAILED), "reason": charge.refusal}
        answer = await self._cluster.patch(
            Patch(
                Pod,
                place.name,
                namespace=place.namespace,
                changes={"status": status},
                uid=place.uid,
                status=True,
            ),
            manager=MANAGER,
        )
        if charge.last_seen is pod and not charge.gone:
            charge.hear(answer)

    async def _remove(self, pod: Pod) -> None:
        """Set a terminal phase and delete the pod: the API server removes only finished ones."""
        if not is_terminal(pod):
            await self._write_status(pod, PodPhase.SUCCEEDED, ())
        await self._cluster.delete(Pod, pod.metadata.name, pod.metadata.namespace, uid=pod.metadata.uid)

    async def _write_status(self, pod: Pod, phase: PodPhase | None, addresses: tuple[str, ...]) -> Pod:
        status = PodStatus(
            phase=phase,
            pod_ip=addresses[0] if addresses else "",
            pod_ips=[PodIP(ip=address) for address in addresses],
        )
        return await self._cluster.replace_status(structs.replace(pod, status=status), manager=MANAGER)

    def _pause_seconds(self) -> float:
        return self._habits.retry_seconds * self._randomness.uniform(1.0, 1.5)

    def _is_impatient(self) -> bool:
        return self._habits.impatience > 0 and self._randomness.random() < self._habits.impatience
