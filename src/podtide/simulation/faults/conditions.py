"""The conditions on the programs' connections: which faults there are, and when they strike.

Every fault makes its own draw for every request, before the request is sent, and is recorded when it strikes.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from enum import StrEnum
from functools import partial
from random import Random
from types import MappingProxyType

from msgspec import Struct

from podtide.cluster.port import Page, R, WatchEvent
from podtide.core.errors import PodtideError
from podtide.resources.base import Resource
from podtide.resources.node_network_config import NodeNetworkConfig
from podtide.resources.pod import Pod
from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.faults.line_fault import (
    FaultContext,
    LineFault,
    LineRequest,
    ListFault,
    Relist,
    RequestFault,
    Send,
    T,
    WatchFault,
)


class WatchTrouble(StrEnum):
    """How a single watch fails."""

    STALE = "stale"
    """Its events come late, in order."""
    SILENT = "silent"
    """No events come, until it is taken for dead."""
    REFUSED = "refused"
    """It breaks, and cannot be resumed."""


class OneWatch(Struct, frozen=True):
    """Which watch of a program fails, how, and until when."""

    kind: type[Resource]
    trouble: WatchTrouble
    is_over: asyncio.Event


class Fuse:
    """Stops a program at its request number `requests` from now: just before it is sent, or just after it was carried out.

    Programs and the rest of the world can only come apart at a request, so a crash is aimed at one, and not left to where
    the program happens to wait. The fault that waits for `blown` then kills the program.
    """

    def __init__(self, requests: int, *, after: bool) -> None:
        self.blown = asyncio.Event()
        self._left = requests
        self._after = after

    async def pass_through(self, send: Send[T]) -> T:
        """Send a request. At the request where the fuse blows, this never returns."""
        self._left -= 1
        if self._left > 0:
            return await send()
        if self._left == 0 and self._after:
            await send()
        self.blown.set()
        forever: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        return await forever


class Conditions:
    """The faults on the connections of all programs. They strike while `is_bad`."""

    def __init__(
        self,
        seed: int | str,
        faults: Iterable[LineFault],
        report: Callable[[str, str], None],
        frequencies: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """`frequencies` says how many times as often as usual a fault strikes."""
        self.frequencies = frequencies
        self.is_bad = False
        self.restored_at = -math.inf
        """When etcd of any cluster was last restored from a backup."""
        self.fuses = dict[str, Fuse]()
        """The programs that are to be killed at one of their next requests, by name."""
        self.stalls: dict[str, asyncio.Event] = {}
        """Programs that do not run until the event is set: their requests are sent then."""
        self.silenced = dict[str, type[Resource]]()
        """Programs whose requests about one kind are not answered, with that kind."""
        self.cut_off: set[str] = set()
        """Programs without a connection."""
        self.deaf_since = dict[str, float]()
        """Programs that can neither list nor watch NodeNetworkConfigs, with the time at which that began."""
        self._cut_noticed_at = dict[str, float]()
        """Programs without a connection, with the time by which they have noticed."""
        self.spoilt = dict[str, OneWatch]()
        """Programs of which a single watch fails."""
        self.told_the_truth: set[str] = set()
        """Programs that have lost their records: their lists of pods are never stale (see `disks`)."""
        self._open_watches: dict[str, dict[asyncio.Timeout, None]] = {}
        self._seed = seed
        self._on_requests, self._on_lists, self._on_watches = _sorted_by_kind(faults)
        self._report = report
        self._streams: dict[tuple[str, str], Random] = {}
        self._under_way: dict[asyncio.Future[object], None] = {}

    async def carry(self, request: LineRequest, send: Send[T], resend: Send[T]) -> T:
        """Carry out a request under the faults. `send` fails once its program is killed; `resend` does not."""
        if (stall := self.stalls.get(request.program)) is not None:
            await stall.wait()
        if request.program in self.cut_off:
            raise request.unanswered("there is no connection")
        if (silenced := self.silenced.get(request.program)) is not None and request.is_about(silenced):
            raise request.unanswered("no answer")
        if request.verb == "list" and self._is_unheard(request):
            raise request.unanswered("nothing of this kind is told")
        if (fuse := self.fuses.get(request.program)) is not None:
            send = partial(fuse.pass_through, send)
        for fault in self._on_requests:
            if fault.concerns(request) and self._strikes(fault, request.program, str(request)):
                context = FaultContext(request, self._stream(fault, request.program), self.leave)
                send = partial(fault.carry, context, send, resend)
        return await send()

    async def page(self, request: LineRequest, newest: Page[R], relist: Relist[R]) -> Page[R]:
        """The first page of a list, which may be stale."""
        if request.program in self.told_the_truth and request.is_about(Pod):
            return newest
        for fault in self._on_lists:
            if self._strikes(fault, request.program, str(request)):
                newest = await fault.answer(newest, relist, self._stream(fault, request.program))
        return newest

    def cut(self, program: str, *, within_seconds: float) -> None:
        """Disconnect a program. It notices that its watches are dead after so many seconds at most."""
        self.cut_off.add(program)
        notices_at = asyncio.get_running_loop().time() + within_seconds
        self._cut_noticed_at[program] = notices_at
        self._end_watches(program, notices_at)

    def connect(self, program: str) -> None:
        """Connect a program again."""
        self.cut_off.discard(program)

    def deafen(self, program: str) -> None:
        """Let a program hear nothing of NodeNetworkConfigs, until it is taken out of `deaf_since`. Its watches break."""
        now = self.deaf_since[program] = asyncio.get_running_loop().time()
        self._end_watches(program, now)

    def _end_watches(self, program: str, at: float) -> None:
        for patience in self._open_watches.get(program, ()):
            if not patience.expired():  # else it is ending already
                patience.reschedule(at)

    def unheard_since(self, program: str) -> float | None:
        """Since when a program surely knows that it hears nothing of NodeNetworkConfigs; None while it may hear."""
        if program in self.cut_off:
            return self._cut_noticed_at[program]
        return self.deaf_since.get(program)

    def _is_unheard(self, request: LineRequest) -> bool:
        return request.program in self.deaf_since and request.is_about(NodeNetworkConfig)

    def watch(
        self, request: LineRequest, events: AsyncGenerator[WatchEvent[R], None]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The events of a watch under the faults."""
        for fault in self._on_watches:
            if self._strikes(fault, request.program, str(request)):
                events = fault.wrap(events, self._stream(fault, request.program), self)
        return self._while_connected(request, events)

    async def _while_connected(
        self, request: LineRequest, events: AsyncGenerator[WatchEvent[R], None]
    ) -> AsyncGenerator[WatchEvent[R], None]:
        """The events, until the program is disconnected: then none, and after a while an error."""
        watches = self._open_watches.setdefault(request.program, {})
        async with aclosing(events):
            while True:
                patience = asyncio.timeout(None)
                watches[patience] = None
                try:
                    async with patience:
                        event = await self._next(request, events)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise request.unanswered("the connection is dead") from None
                finally:
                    del watches[patience]
                yield event

    async def _next(self, request: LineRequest, events: AsyncGenerator[WatchEvent[R], None]) -> WatchEvent[R]:
        if request.program in self.cut_off:
            raise request.unanswered("there is no connection")
        if self._is_unheard(request):
            raise request.unanswered("nothing of this kind is told")
        await self._suffer(request, (WatchTrouble.REFUSED,))
        event = await anext(events)
        await self._suffer(request, tuple(WatchTrouble))
        if request.program in self.cut_off:
            await (
                asyncio.get_running_loop().create_future()
            )  # nothing, until the connection is noticed to be dead
        return event

    async def _suffer(self, request: LineRequest, troubles: tuple[WatchTrouble, ...]) -> None:
        """Wait or fail, if this is a watch that fails in one of these ways."""
        spoilt = self.spoilt.get(request.program)
        if spoilt is None or spoilt.trouble not in troubles or not request.is_about(spoilt.kind):
            return
        if spoilt.trouble is not WatchTrouble.REFUSED:
            await spoilt.is_over.wait()
        if spoilt.trouble is not WatchTrouble.STALE:
            raise request.unanswered(f"this watch alone is {spoilt.trouble}")

    async def close(self) -> None:
        """Cancel what is in flight."""
        for arriving in tuple(self._under_way):
            arriving.cancel()
            await asyncio.wait({arriving})

    def _strikes(self, fault: LineFault, program: str, what: str) -> bool:
        rate = fault.rate * self.frequencies.get(fault.name, 1.0)
        struck = self.is_bad and self._stream(fault, program).random() < rate
        if struck:
            self._report(fault.name, what)
        return struck

    def _stream(self, fault: LineFault, program: str) -> Random:
        key = (fault.name, program)
        if key not in self._streams:
            self._streams[key] = seeded_randomness(f"{self._seed}/{fault.name} {program}")
        return self._streams[key]

    def leave(self, work: Awaitable[object]) -> None:
        """Run an awaitable in the background. Its result is dropped."""
        arriving = asyncio.ensure_future(work)
        self._under_way[arriving] = None
        arriving.add_done_callback(self._arrived)

    def _arrived(self, arriving: "asyncio.Future[object]") -> None:
        del self._under_way[arriving]
        if not arriving.cancelled() and (error := arriving.exception()) is not None:
            assert isinstance(error, PodtideError), error


def _sorted_by_kind(
    faults: Iterable[LineFault],
) -> tuple[list[RequestFault], list[ListFault], list[WatchFault]]:
    faults = tuple(faults)
    return (
        [fault for fault in faults if isinstance(fault, RequestFault)],
        [fault for fault in faults if isinstance(fault, ListFault)],
        [fault for fault in faults if isinstance(fault, WatchFault)],
    )
