"""A small model of what surrounds the choice of a batch: nodes that state and hold, a subnet that grants, controllers.

It leaves out everything else: no objects, no watches, no journal. One step is a second. Nodes answer what is in force
after a delay of their own, shrink after `shrink_delay`, and state their demand anew as `core.subnet.statement_refresh` says; those of
another make state nothing. What is asked for may take a while to be granted.

The model knows what no controller does: what demand really is. With every change it keeps where R would really have come
to rest by each rung (`Truth`), so that a law can say that a change was right, not only that changes end.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from random import Random

from podtide.core.subnet.batch import BatchDelays, BatchInForce, BatchMove, SubnetReading, decide_batch
from podtide.core.subnet.batch_bounds import BatchBounds, merge_bounds
from podtide.core.subnet.demand_by_batch import ContainerDemand, SubnetDemand
from podtide.core.subnet.scaler import Scaler, SubnetScaler
from podtide.core.subnet.statement import (
    StatedDemand,
    Statement,
    inferred_demand,
    request_at,
    stated_demand,
    taken_at,
)
from podtide.core.subnet.statement_refresh import Restating, is_answered, makes_a_difference

LOOK_EVERY = 5
SHRINK_DELAY = 30
LONGEST_LAG = 20
_QUIET = LONGEST_LAG + 2 * LOOK_EVERY
"""After so long without a change everybody has seen the last one."""


@dataclass
class Node:
    """A node with its agent, which may be dead."""

    demand: int
    lag: int = 1
    """Seconds until it sees what is in force."""
    cluster: int = 0
    is_dead: bool = False
    is_silent: bool = False
    """Whether its agent is of another make: it states nothing, and deducts no primary."""
    statement: Statement | None = None
    """What its request was computed from, said or not."""
    requested: int = 0
    held: int = 0
    lower_since: int | None = None
    restating: Restating = field(default_factory=Restating)
    wakes_at: float = 0.0
    """When it has something to do at the latest, unless something changes before."""
    seen: tuple[int, int, int] = (-1, -1, -1)
    """Its demand, the serial of what was in force, and the top, when it last looked."""

    @property
    def holding(self) -> ContainerDemand:
        """As the counts know it."""
        return ContainerDemand(self.stated, 1 + max(self.held, self.requested))

    @property
    def primaries(self) -> int:
        """As it deducts them."""
        return 0 if self.is_silent else 1

    @property
    def stated(self) -> StatedDemand:
        """What is known of its demand."""
        if self.statement is None:
            return StatedDemand()
        if self.is_silent:
            return inferred_demand(self.requested, self.statement.scaler)
        return stated_demand(self.statement)

    def at_rest(self, rung: SubnetScaler) -> int:
        """What it takes once it goes by the rung, from what its demand really is. The dead give nothing back."""
        taken = taken_at(self.demand, StatedDemand(primaries=self.primaries), rung)
        return max(1 + max(self.held, self.requested), taken) if self.is_dead else taken


@dataclass
class InForce:
    """The row that all controllers decide from."""

    scaler: SubnetScaler | None = None
    exhausted: bool = False
    starved: bool = False
    changed_at: int = 0
    serial: int = 0


@dataclass(frozen=True)
class Truth:
    """What was really so when a controller looked, whatever it was told."""

    rests: dict[int, int]
    """Where R comes to rest by each batch."""
    capacity: int
    lower: Fraction
    upper: Fraction
    lowest: int
    coming: int
    """R once all that is asked for is granted."""
    is_told: bool
    """Whether everybody's demand is what it was when they last stated it, or makes no difference."""
    is_answered: bool
    """Whether everybody goes by what is in force."""

    @property
    def largest_that_fits(self) -> int | None:
        """The largest batch by which R comes to rest under t·Q."""
        limit = self.lower * self.capacity
        return max((batch for batch, rest in self.rests.items() if rest < limit), default=None)


@dataclass(frozen=True)
class Look:
    """A look of a controller's that counted: what was in force before and after, and what was so."""

    at: int
    step: BatchMove
    before: InForce
    after: InForce
    truth: Truth


@dataclass
class Controller:
    """Looks every five seconds, and acts on what it read a moment ago."""

    phase: int = 0
    delay: int = 0


class Subnet:
    """The model. `moves` is what changed, and when."""

    def __init__(
        self,
        capacity: int,
        nodes: Sequence[Node],
        bounds: Sequence[BatchBounds] = (BatchBounds(),),
        controllers: Sequence[Controller] = (Controller(),),
        seed: int = 0,
        *,
        grants_every: int = 1,
    ) -> None:
        self.capacity = capacity
        self.nodes = list(nodes)
        self.bounds = list(bounds)
        self.controllers = list(controllers)
        self.grants_every = grants_every
        self.quarantined = 0
        self.now = 0
        self.in_force = InForce()
        self.moves: list[tuple[int, BatchMove, int]] = []
        self.writes: list[int] = []
        """When nodes stated something."""
        self.looks: list[Look] = []
        """Looks at something new, unless another controller was quicker."""
        self._shown: list[tuple[int, InForce]] = []
        self._read: dict[int, tuple[InForce, BatchInForce, SubnetReading, Truth]] = {}
        self._last_basis: object = None
        self._active_at = 0
        self._chance = Random(seed)

    # What is so

    @property
    def reserved(self) -> int:
        """R."""
        return self.quarantined + sum(1 + node.held for node in self.nodes)

    @property
    def owed(self) -> int:
        """What was asked for and not granted."""
        return sum(max(0, node.requested - node.held) for node in self.nodes)

    @property
    def batch(self) -> int:
        """The batch in force."""
        assert self.in_force.scaler is not None
        return self.in_force.scaler.batch

    def at_rest(self, rung: SubnetScaler) -> int:
        """R once every node goes by the rung, from what demand really is. The dead give nothing back."""
        return self.quarantined + sum(node.at_rest(rung) for node in self.nodes)

    @property
    def merged(self) -> BatchBounds:
        """The bounds that count."""
        return merge_bounds(self.bounds)

    # What happens

    def run(self, seconds: int) -> None:
        """Let time pass. A while in which nobody has anything to do is skipped."""
        end = self.now + seconds
        self._active_at = self.now  # whoever calls may have changed something
        while self.now < end:
            if self.now - self._active_at > _QUIET:
                self.now = max(self.now, min(end - 1, self._next_wake() - 1))
                self._active_at = self.now
            self.now += 1
            self._second()

    def _second(self) -> None:
        for node in self.nodes:
            if not node.is_dead:
                self._wake(node)
        if self.now % self.grants_every == 0:
            self._grant()
        for number, controller in enumerate(self.controllers):
            since = (self.now - controller.phase) % LOOK_EVERY
            if since == 0:
                self._read[number] = (self.in_force, *self._reading(), self._truth())
            if since == controller.delay and number in self._read:
                self._decide(*self._read.pop(number))

    def _next_wake(self) -> int:
        delays = BatchDelays()
        waits = (
            self.in_force.changed_at + int(delays.starved_dwell_seconds),
            self.in_force.changed_at + int(delays.answer_seconds),
        )
        if any(0 <= self.now - at <= 2 * LOOK_EVERY for at in waits):
            return self.now + 1  # what a wait has ended is seen by the next look
        wakes = [node.wakes_at for node in self.nodes if not node.is_dead and node.wakes_at < inf]
        return min([int(at) for at in (*waits, *wakes) if at > self.now], default=self.now + 10**9)

    def join(self, node: Node) -> None:
        """A node joins, if there is an address for its primary."""
        if self.reserved < self.capacity:
            self.nodes.append(node)

    def remove(self, node: Node) -> None:
        """The node goes; what it held is in quarantine."""
        self.nodes.remove(node)
        self.quarantined += 1 + node.held

    def moves_since(self, then: int) -> list[tuple[int, BatchMove, int]]:
        """What changed after that time."""
        return [move for move in self.moves if move[0] > then]

    def _wake(self, node: Node) -> None:
        """Let it act if it has any reason to."""
        shown = self._visible(node.lag)
        seen = (node.demand, shown.serial, self.merged.top)
        if shown.scaler is not None and (seen != node.seen or self.now >= node.wakes_at):
            node.seen = seen
            node.wakes_at = self._act(node, shown, shown.scaler)

    def _act(self, node: Node, shown: InForce, by: SubnetScaler) -> float:
        """As `agent.request.requester` does; answers when to look again."""
        top = self.merged.top
        scaler = Scaler(by.batch, by.buffer)
        target = request_at(node.demand, scaler, node.primaries)
        now = Statement(
            demand=node.demand,
            batch=scaler.batch,
            buffer=scaler.buffer,
            max_ips=scaler.max_ips,
            primaries=node.primaries,
            request=target,
            top=top,
        )
        node.restating = node.restating.seen(node.demand, self.now, self._chance.random())
        said = node.statement
        if target < node.requested:
            urgent = shown.starved or (shown.exhausted and said is not None and not is_answered(said, now))
            node.lower_since = self.now if node.lower_since is None else node.lower_since
            if not urgent and self.now - node.lower_since < SHRINK_DELAY:
                return node.lower_since + SHRINK_DELAY
        elif target == node.requested and said is not None and is_answered(said, now):
            node.lower_since = None
            if node.is_silent or not makes_a_difference(said, now):
                return inf
            if self.now < node.restating.due_at:
                return node.restating.due_at
            node.restating = node.restating.stated(self.now)
        self._write(node, now)
        return inf

    def _write(self, node: Node, statement: Statement) -> None:
        self._active_at = self.now
        self.writes.append(self.now)
        node.statement, node.requested, node.lower_since = statement, statement.request, None
        node.held = min(node.held, node.requested)

    def _grant(self) -> None:
        free = self.capacity - self.reserved
        for node in sorted(self.nodes, key=lambda node: node.held - node.demand):
            given = max(0, min(free, node.requested - node.held))
            node.held += given
            free -= given
            if given:
                self._active_at = self.now

    def _visible(self, lag: int) -> InForce:
        """What a node sees of what is in force."""
        for since, in_force in reversed(self._shown):
            if since + lag <= self.now:
                return in_force
        return InForce()

    def _reading(self) -> tuple[BatchInForce, SubnetReading]:
        row = self.in_force
        standing = BatchInForce(
            scaler=row.scaler,
            exhausted=row.exhausted,
            starved=row.starved,
            age_seconds=self.now - row.changed_at,
        )
        reading = SubnetReading(
            capacity=self.capacity,
            reserved=self.reserved,
            containers=len(self.nodes),
            owed=self.owed,
            ungoverned=self.quarantined,
            holdings=Counter(node.holding for node in self.nodes),
        )
        return standing, reading

    def _truth(self) -> Truth:
        bounds, in_force = self.merged, self.in_force.scaler
        seen = SubnetDemand(
            holdings={},
            ungoverned=0,
            in_force=in_force or bounds.rungs[-1],
            top=bounds.top,
            exhausted=self.in_force.exhausted,
            is_overdue=False,
        )
        return Truth(
            rests={rung.batch: self.at_rest(rung) for rung in bounds.rungs},
            capacity=self.capacity,
            lower=bounds.thresholds.lower,
            upper=bounds.thresholds.upper,
            lowest=bounds.lowest,
            coming=self.reserved + self.owed,
            is_told=all(self._is_told(node, bounds.rungs) for node in self.nodes),
            is_answered=all(node.statement and seen.has_answered(node.stated) for node in self.nodes),
        )

    @staticmethod
    def _is_told(node: Node, rungs: Sequence[SubnetScaler]) -> bool:
        """Whether what it said of its demand still holds, at every rung."""
        said, known = node.statement, node.stated
        if said is None:
            return False
        if node.is_silent:  # one that asks for nothing tells nothing: it may not have begun yet
            return node.requested > 0 and known.low <= node.demand <= known.high
        return all(taken_at(node.demand, known, rung) == taken_at(said.demand, known, rung) for rung in rungs)

    def _decide(self, row: InForce, standing: BatchInForce, reading: SubnetReading, truth: Truth) -> None:
        """Decide from what was read, and put it in force if nobody else did meanwhile."""
        waited = (
            standing.age_seconds >= BatchDelays().starved_dwell_seconds,
            standing.age_seconds >= BatchDelays().answer_seconds,
        )
        basis = (row.serial, waited, reading, self.merged)
        if basis == self._last_basis:
            return  # it would decide the same
        self._last_basis = basis
        decision = decide_batch(standing, reading, self.merged)
        after = (decision.scaler, decision.exhausted, decision.starved)
        if row.serial != self.in_force.serial:
            return
        self.looks.append(Look(self.now, decision.step, row, InForce(*after), truth))
        if after == (row.scaler, row.exhausted, row.starved):
            return
        is_other = (row.scaler, row.starved) != (decision.scaler, decision.starved)
        self.in_force = InForce(*after, self.now if is_other else row.changed_at, row.serial + 1)
        self._shown.append((self.now, self.in_force))
        self._active_at = self.now
        if is_other and row.scaler is not None:
            self.moves.append((self.now, decision.step, decision.scaler.batch))


def largest_that_fits(subnet: Subnet) -> SubnetScaler | None:
    """The largest rung at which R comes to rest under t·Q, by what demand really is."""
    limit = subnet.merged.thresholds.lower * subnet.capacity
    fitting = (rung for rung in reversed(subnet.merged.rungs) if subnet.at_rest(rung) < limit)
    return next(fitting, None)
