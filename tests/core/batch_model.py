"""A small model of what surrounds the choice of a batch: nodes that state and hold, a subnet that grants, controllers.

It leaves out everything else: no objects, no watches, no journal. One step is a second. Nodes answer what is in force
after a delay of their own, shrink after `shrink_delay`, and state their demand anew as `core.restating` says.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from podtide.core.batch_bounds import BatchBounds, merge_bounds
from podtide.core.batching import Patience, Reading, Standing, Step, decide_batch
from podtide.core.restating import Restating, is_answered, makes_a_difference
from podtide.core.scaler import Scaler, SubnetScaler
from podtide.core.statement import StatedDemand, Statement, request_at, stated_demand, taken_at
from podtide.core.subnet_demand import Holding

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
    statement: Statement | None = None
    requested: int = 0
    held: int = 0
    lower_since: int | None = None
    restating: Restating = field(default_factory=Restating)
    wakes_at: float = 0.0
    """When it has something to do at the latest, unless something changes before."""
    seen: tuple[int, int] = (-1, -1)
    """Its demand and the serial of what was in force when it last looked."""

    @property
    def holding(self) -> Holding:
        """As the counts know it."""
        stated = stated_demand(self.statement) if self.statement else StatedDemand()
        return Holding(stated, 1 + max(self.held, self.requested))


@dataclass
class InForce:
    """The row that all controllers decide from."""

    scaler: SubnetScaler | None = None
    exhausted: bool = False
    starved: bool = False
    changed_at: int = 0
    serial: int = 0


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
    ) -> None:
        self.capacity = capacity
        self.nodes = list(nodes)
        self.bounds = list(bounds)
        self.controllers = list(controllers)
        self.quarantined = 0
        self.now = 0
        self.in_force = InForce()
        self.moves: list[tuple[int, Step, int]] = []
        self.writes: list[int] = []
        """When nodes stated something."""
        self._shown: list[tuple[int, InForce]] = []
        self._read: dict[int, tuple[InForce, Standing, Reading]] = {}
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
        limits = StatedDemand()
        return self.quarantined + sum(
            max(1 + node.held, taken_at(node.demand, limits, rung))
            if node.is_dead
            else taken_at(node.demand, limits, rung)
            for node in self.nodes
        )

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
        self._grant()
        for number, controller in enumerate(self.controllers):
            since = (self.now - controller.phase) % LOOK_EVERY
            if since == 0:
                self._read[number] = (self.in_force, *self._reading())
            if since == controller.delay and number in self._read:
                self._decide(*self._read.pop(number))

    def _next_wake(self) -> int:
        patience = Patience()
        waits = (
            self.in_force.changed_at + int(patience.starved_dwell_seconds),
            self.in_force.changed_at + int(patience.answer_seconds),
        )
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

    def moves_since(self, then: int) -> list[tuple[int, Step, int]]:
        """What changed after that time."""
        return [move for move in self.moves if move[0] > then]

    def _wake(self, node: Node) -> None:
        """Let it act if it has any reason to."""
        shown = self._visible(node.lag)
        seen = (node.demand, shown.serial)
        if shown.scaler is not None and (seen != node.seen or self.now >= node.wakes_at):
            node.seen = seen
            node.wakes_at = self._act(node, shown, shown.scaler)

    def _act(self, node: Node, shown: InForce, by: SubnetScaler) -> float:
        """As `agent.requester` does; answers when to look again."""
        top = self.merged.top
        scaler = Scaler(by.batch, by.buffer)
        target = request_at(node.demand, scaler, 1)
        now = Statement(
            demand=node.demand,
            batch=scaler.batch,
            buffer=scaler.min_free,
            max_ips=scaler.max_ips,
            primaries=1,
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
            if not makes_a_difference(said, now):
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

    def _visible(self, lag: int) -> InForce:
        """What a node sees of what is in force."""
        for since, in_force in reversed(self._shown):
            if since + lag <= self.now:
                return in_force
        return InForce()

    def _reading(self) -> tuple[Standing, Reading]:
        row = self.in_force
        standing = Standing(
            scaler=row.scaler,
            exhausted=row.exhausted,
            starved=row.starved,
            age_seconds=self.now - row.changed_at,
        )
        reading = Reading(
            capacity=self.capacity,
            reserved=self.reserved,
            containers=len(self.nodes),
            owed=self.owed,
            ungoverned=self.quarantined,
            holdings=Counter(node.holding for node in self.nodes),
        )
        return standing, reading

    def _decide(self, row: InForce, standing: Standing, reading: Reading) -> None:
        """Decide from what was read, and put it in force if nobody else did meanwhile."""
        waited = (
            standing.age_seconds >= Patience().starved_dwell_seconds,
            standing.age_seconds >= Patience().answer_seconds,
        )
        basis = (row.serial, waited, reading, self.merged)
        if basis == self._last_basis:
            return  # it would decide the same
        self._last_basis = basis
        decision = decide_batch(standing, reading, self.merged)
        after = (decision.scaler, decision.exhausted, decision.starved)
        if row.serial != self.in_force.serial or after == (row.scaler, row.exhausted, row.starved):
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
