"""Leader election: of several replicas one leads, as long as it can prove it on a Lease.

The leader renews the Lease every `leader_retry`. If that has not succeeded for `leader_renew_deadline` its term is
over: what it does is cancelled, and `term.check()` refuses from that very instant, even if the event loop was stalled
and nothing could be cancelled. The others take over when they have not seen the Lease change for `leader_lease`,
which is longer. `lease_record` has the reasons why that is safe without comparing clocks.

A missing Lease is created, but not taken: the leader from before it was deleted may still lead. It is taken like a dead
holder's, when it was not renewed for `leader_lease`. Likewise when somebody edits the holder away; only a holder that
gave its Lease up is succeeded at once. A new cluster whose Lease is shipped released (`leaseDurationSeconds: 1`, no
holder) has its first leader without that wait.

A candidate that stops gives up what it holds, or may have just taken. A busy server may answer late or refuse, so that is
tried again for `leader_lease`: those who wait have no use for it after that, and a pod has twice as long to end.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec import Struct, structs

from podtide.cluster.backoff import Backoff, FailureStreak
from podtide.cluster.candidacy import Candidacy
from podtide.cluster.lease_record import LeaseClaim, held, released
from podtide.cluster.port import AlreadyExists, Cluster, ClusterError, Conflict, NotFound, Throttled
from podtide.cluster.term import Term
from podtide.resources.base import Key, ObjectMeta
from podtide.resources.lease import Lease, LeaseSpec
from podtide.runtime.durations import format_duration
from podtide.runtime.runtime import Runtime

T = TypeVar("T")
Lead = Callable[[Term], Coroutine[Any, Any, T]]
"""What a leader does. It is cancelled when its term is over."""

_MANAGER = "podtide-leader-election"
_MOST_JITTER = 0.2
_SOON_SECONDS = 0.1
_LEAST_PAUSE_SECONDS = 0.01
"""The loop's timers and the clock need not tick alike: waiting ever shorter for the same instant might never end."""


class _Tenure(Struct):
    """A term, and the Lease that it depends on."""

    term: Term
    claim: LeaseClaim
    lease: Lease | None
    """As last answered; None while it is not known what became of our last write."""


class LeaderElection:
    """One candidate for one Lease. `identity` must be this process's alone, such as host name and a new uuid."""

    def __init__(self, cluster: Cluster, lease: Key, identity: str, *, runtime: Runtime) -> None:
        self._cluster = cluster
        self._key = lease
        self._settings = runtime.settings
        self._clock = runtime.clock
        self._randomness = runtime.randomness
        self._log = runtime.log.bind(lease=str(lease), identity=identity)
        self._candidacy = Candidacy(identity, runtime.settings.leader_lease_seconds)
        self._attempt_seconds = runtime.settings.leader_renew_deadline_seconds / 2
        """A request that hangs must leave time for another before the deadline."""
        patience = Backoff(runtime.settings.leader_retry_seconds, runtime.settings.leader_lease_seconds)
        self._failures = FailureStreak(patience, runtime.clock, runtime.randomness)
        self._complaint = ""
        self._awaited: str | None = None
        """Who holds the Lease that is waited for, as last told."""

    async def run(self, lead: Lead[T]) -> T:
        """Stand for election, `lead` when elected, and again, until `lead` ends by itself: then so does this.

        At the end of a term `lead` is cancelled and awaited before anything else happens. When this is cancelled,
        or `lead` ended, the Lease is given up, and another candidate can take it at once.
        """
        while True:
            try:
                tenure = await self._win()
            except asyncio.CancelledError:
                if (claim := self._candidacy.claim_sent) is not None:
                    await self._release(claim, None)
                raise
            self._log.info("leading", term=tenure.term.number)
            leading = asyncio.create_task(lead(tenure.term))
            try:
                await self._keep(tenure, leading)
                ended_by_itself = leading.done()
            finally:
                await self._step_down(tenure, leading)
            if ended_by_itself:
                return leading.result()

    async def _win(self) -> _Tenure:
        while True:
            try:
                async with asyncio.timeout(self._attempt_seconds):
                    tenure = await self._stand()
            except (Conflict, AlreadyExists):
                delay_seconds = self._pause_seconds()  # another candidate was first
            except (ClusterError, TimeoutError) as error:
                self._complain("cannot stand for election; will go on trying", error)
                delay_seconds = self._failures.delay_seconds(error)
            else:
                self._complaint = ""
                if tenure is not None and tenure.term.valid:
                    return tenure
                delay_seconds = self._pause_seconds()
            await asyncio.sleep(delay_seconds)

    async def _stand(self) -> _Tenure | None:
        """Read the Lease once, and take it if it may be taken."""
        lease = await self._read_or_make()
        version, now = lease.metadata.resource_version, self._clock.monotonic()
        claim = self._candidacy.claim(lease.spec, version, now, self._clock.wall())
        if claim is None:
            self._tell_of_waiting(lease.spec.holder_identity)
            return None
        self._awaited = None
        term = Term(claim.number, self._deadline(), self._clock)
        return _Tenure(term, claim, await self._write(lease, claim))

    async def _keep(self, tenure: _Tenure, leading: "asyncio.Task[T]") -> None:
        """Renew until the term is over, or `leading` is done."""
        term, pause_seconds = tenure.term, self._pause_seconds()
        while term.valid:
            pause_seconds = min(pause_seconds, max(term.remaining_seconds, _LEAST_PAUSE_SECONDS))
            await asyncio.wait({leading}, timeout=pause_seconds)
            if leading.done() or not term.valid:
                return
            pause_seconds = self._pause_seconds()
            try:
                async with asyncio.timeout(min(self._attempt_seconds, term.remaining_seconds)):
                    await self._renew(tenure)
                self._complaint = ""
            except NotFound:
                term.end()
            except Conflict:
                pause_seconds = _SOON_SECONDS  # see who else writes there
            except Throttled as error:
                pause_seconds = max(pause_seconds, error.retry_after_seconds)
            except (ClusterError, TimeoutError) as error:
                self._complain("cannot renew the Lease; will go on trying", error)

    async def _renew(self, tenure: _Tenure) -> None:
        """Renew the Lease, or end the term if another holds it."""
        lease = tenure.lease or await self._read()
        tenure.lease = None
        if not tenure.claim.holds(lease.spec):
            self._log.warning("the Lease has another holder", holder=lease.spec.holder_identity)
            tenure.term.end()
            return
        valid_until = self._deadline()
        tenure.lease = await self._write(lease, tenure.claim)
        tenure.term.renew(valid_until)

    async def _step_down(self, tenure: _Tenure, leading: "asyncio.Task[T]") -> None:
        """Stop the term's work, then release the Lease."""
        try:
            await _ended(leading)
        finally:
            tenure.term.end()
            self._candidacy.end_term()
            self._log.info("no longer leading", term=tenure.term.number)
        await self._release(tenure.claim, tenure.lease)
        if not leading.cancelled() and (failure := leading.exception()) is not None:
            raise failure

    async def _release(self, claim: LeaseClaim, lease: Lease | None) -> None:
        """Release the Lease, unless it is another's by now; `lease` is it as last answered, if that is known."""
        try:
            async with asyncio.timeout(self._settings.leader_lease_seconds):
                while (pause_seconds := await self._try_to_release(claim, lease)) is not None:
                    lease = None
                    await asyncio.sleep(pause_seconds)
        except TimeoutError:
            self._log.warning("could not release the Lease: the next leader has to wait until it expires")

    async def _try_to_release(self, claim: LeaseClaim, lease: Lease | None) -> float | None:
        """Release the Lease once; returns how long to wait before the next attempt, None if none is needed.

        Somebody may have annotated it since we last saw it, or a write of ours whose answer was not awaited has arrived:
        then it is read again.
        """
        try:
            if lease is None:
                lease = await asyncio.wait_for(self._read(), self._attempt_seconds)
            if claim.holds(lease.spec):
                given_up = structs.replace(lease, spec=released(lease.spec))
                await asyncio.wait_for(
                    self._cluster.replace(given_up, manager=_MANAGER), self._attempt_seconds
                )
        except NotFound:
            return None
        except Conflict:
            return _SOON_SECONDS
        except (ClusterError, TimeoutError) as error:
            self._complain("cannot release the Lease; will go on trying", error)
            return max(
                self._pause_seconds(), error.retry_after_seconds if isinstance(error, Throttled) else 0
            )
        return None

    async def _read(self) -> Lease:
        return await self._cluster.get(Lease, self._key.name, self._key.namespace)

    async def _read_or_make(self) -> Lease:
        try:
            return await self._read()
        except NotFound:
            place = ObjectMeta(name=self._key.name, namespace=self._key.namespace)
            spec = LeaseSpec(lease_transitions=self._candidacy.highest_number)
            return await self._cluster.create(Lease(metadata=place, spec=spec), manager=_MANAGER)

    async def _write(self, lease: Lease, claim: LeaseClaim) -> Lease:
        """Write the claim over exactly this version of the Lease."""
        spec = held(lease.spec, claim, self._settings.leader_lease_seconds, self._clock.wall())
        return await self._cluster.replace(structs.replace(lease, spec=spec), manager=_MANAGER)

    def _deadline(self) -> float:
        """The end of a term whose Lease is about to be written: counted from before the write, never from its answer."""
        return self._clock.monotonic() + self._settings.leader_renew_deadline_seconds

    def _pause_seconds(self) -> float:
        return self._settings.leader_retry_seconds * self._randomness.uniform(1.0, 1.0 + _MOST_JITTER)

    def _tell_of_waiting(self, holder: str) -> None:
        """Log once for each holder that this candidate waits."""
        if holder != self._awaited:
            self._awaited = holder
            patience = format_duration(self._settings.leader_lease_seconds)
            self._log.info(
                "waiting for the Lease",
                holder=holder or "none",
                reason=f"it is taken when its holder gives it up, or when it has not been renewed for {patience}",
            )

    def _complain(self, event: str, error: Exception) -> None:
        """Log a problem once, however long it lasts."""
        complaint = f"{event}: {error}"
        if complaint != self._complaint:
            self._complaint = complaint
            self._log.warning(event, error=str(error) or "no answer in time")


async def _ended(task: "asyncio.Task[T]") -> None:
    """Cancel the task and wait until it has ended, even if this is cancelled meanwhile."""
    task.cancel()
    interruption: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancelled:
            interruption = cancelled
    if interruption is not None:
        raise interruption
