"""What a simulated run will be, all of it drawn from one seed before the run begins.

A plan is a value: it can be printed, kept, run again, and made smaller piece by piece.
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, structs

from podtide.runtime.randomness import seeded_randomness
from podtide.simulation.faults.mishap import Mishap, is_of_networks, is_of_placement
from podtide.simulation.faults.table import FAULTS
from podtide.simulation.nodes.other_agents import POLICIES
from podtide.simulation.scheduling.address_policy import PolicyReach
from podtide.simulation.scheduling.pod_scheduler import NodeChoice

_SUBNETS = ("10.0.0.0/28", "10.0.0.0/27", "10.0.0.0/26", "10.0.0.0/25")
_SECOND_SUBNETS = ("10.2.0.0/28", "10.2.0.0/27", "10.2.0.0/25")
_SUBNET_V6 = "fd00::/112"
_PRESSURES = (0.3, 0.6, 0.9, 1.0, 1.1)
_BATCHES = (1, 4, 16, 16)
_BUFFER = ("1/2", "1/2", "1/4", "0")
_WITH_CLUSTER_SUBNETS = 0.75
_WITH_TWO_CLUSTERS = 0.25
_WITH_OTHER_AGENTS = 0.2
_WITH_TWO_SUBNETS = 0.25
_WITH_TWO_FAMILIES = 0.25
_MOST_CONTROLLERS = 3
_PRESSURES_OF_PLACEMENT = (0.6, 0.9, 1.0, 1.1, 1.5)
_PODS_PER_NODE = (None, 110, 16)
_ON_ONE_NODE = (0.0, 0.1, 0.5)


class PlannedMishap(Struct, frozen=True):
    """A mishap at its time. Its random choices are drawn from its kind and number."""

    at_seconds: float
    fault: str
    number: int


class PlannedPlacement(Struct, frozen=True, kw_only=True):
    """How pods are placed in a run in which a scheduler does that."""

    reach: PolicyReach
    """Which pods request an address."""
    has_taint: bool
    """Whether nodes that can get no address are tainted."""
    choice: NodeChoice
    pods_per_node: int | None
    """How many pods a kubelet takes; None for as many as there are."""
    on_one_node: float
    """The part of the pods that fit on one node alone."""


class FaultPlan(Struct, frozen=True, kw_only=True):
    """All that decides a run."""

    seed: int
    nodes: int
    subnet: str
    batch: int
    buffer: str
    cluster_subnets: bool
    controllers: int
    pressure: float
    """How many pods there are at most, as a part of the addresses in the subnet."""
    trouble_seconds: float
    """How long pods are created and deleted, and faults strike."""
    line_faults: tuple[str, ...]
    """The faults that strike requests, watches and calls at random."""
    mishaps: tuple[PlannedMishap, ...]
    networks: int = 0
    """How many secondary networks every pod is attached to."""
    clusters: int = 1
    """How many clusters share the subnet; the nodes are distributed in turn."""
    agents: tuple[str, ...] = ()
    """Which agent each node runs, by the names of `other_agents`; podtide's where there are more nodes than names."""
    second_subnet: str = ""
    """The subnet of every other node, by its label; "" where all are in one subnet."""
    subnet_v6: str = ""
    """The subnet of every pod's second address; "" where pods have one."""
    placement: PlannedPlacement | None = None
    """None where pods are created for a node."""
    has_drawn_order: bool = False
    """Whether it is drawn which of the tasks that are ready runs next; otherwise that is the one that became ready first."""
    frequencies: dict[str, float] = {}
    """How many times as often as usual a fault strikes requests, watches and calls; mishaps have their times."""
    contact_timeout_seconds: float | None = None
    """None for the default."""
    quarantine_seconds: float | None = None
    """None for the default."""
    replicas: bool = False
    """Whether two replicas of the allocator share its database, instead of one process that has it alone."""


def fault_plan_for(  # noqa: PLR0913 - what is not drawn is given
    seed: int,
    *,
    nodes: int,
    faults: frozenset[str],
    trouble_seconds: float,
    networks: int = 0,
    placement: bool = False,
    frequencies: Mapping[str, float] = MappingProxyType({}),
) -> FaultPlan:
    """The plan that is drawn from a seed; with `placement`, a scheduler places pods by what Nodes publish.

    `frequencies` says how many times as often as usual some of the faults strike.
    """
    chance = seeded_randomness(f"{seed}/plan")
    subnet_v6 = _subnet_v6(
        seed
    )  # Azure CNS has one network container per node, so none of its agents beside that
    plan = FaultPlan(
        seed=seed,
        nodes=nodes,
        subnet=chance.choice(_SUBNETS),
        batch=chance.choice(_BATCHES),
        buffer=chance.choice(_BUFFER),
        cluster_subnets=chance.random() < _WITH_CLUSTER_SUBNETS,
        controllers=chance.randint(1, _MOST_CONTROLLERS),
        pressure=chance.choice(_PRESSURES),
        trouble_seconds=trouble_seconds,
        line_faults=tuple(name for name in FAULTS if name in faults and not _is_mishap(name)),
        mishaps=_mishaps(
            seed, _concerning(faults, networks, placement=placement), trouble_seconds, frequencies
        ),
        networks=networks,
        clusters=_clusters(seed, nodes),
        agents=() if subnet_v6 else _agents(seed, nodes),
        second_subnet=_second_subnet(seed, nodes),
        subnet_v6=subnet_v6,
        frequencies={name: times for name, times in frequencies.items() if not _is_mishap(name)},
    )
    return _with_placement(plan) if placement else plan


def _with_placement(plan: FaultPlan) -> FaultPlan:
    """The plan with a scheduler. There are more pods than otherwise: of interest is what happens when they do not fit.

    All agents are podtide's: those of Azure CNS publish no more than their requests tell.
    """
    chance = seeded_randomness(f"{plan.seed}/plan of placement")
    reach = chance.choice((PolicyReach.ALL, PolicyReach.ALL, PolicyReach.SOME, PolicyReach.NONE))
    placement = PlannedPlacement(
        reach=reach,
        has_taint=reach is not PolicyReach.ALL,
        choice=chance.choice(tuple(NodeChoice)),
        pods_per_node=chance.choice(_PODS_PER_NODE),
        on_one_node=chance.choice(_ON_ONE_NODE),
    )
    return structs.replace(
        plan, placement=placement, pressure=chance.choice(_PRESSURES_OF_PLACEMENT), agents=()
    )


def _clusters(seed: int, nodes: int) -> int:
    """Two in some plans. Drawn from a stream of its own, as everything that was added later, so that the rest of a plan stays."""
    chance = seeded_randomness(f"{seed}/plan of clusters")
    return 2 if nodes > 1 and chance.random() < _WITH_TWO_CLUSTERS else 1


def _agents(seed: int, nodes: int) -> tuple[str, ...]:
    """Only podtide's in most plans, else some of each."""
    chance = seeded_randomness(f"{seed}/plan of agents")
    if chance.random() >= _WITH_OTHER_AGENTS:
        return ()
    return tuple(chance.choice(tuple(POLICIES)) for _ in range(nodes))


def _second_subnet(seed: int, nodes: int) -> str:
    """A second subnet in some plans: it may be full while the first has room, or the other way round."""
    chance = seeded_randomness(f"{seed}/plan of subnets")
    return chance.choice(_SECOND_SUBNETS) if nodes > 1 and chance.random() < _WITH_TWO_SUBNETS else ""


def _subnet_v6(seed: int) -> str:
    """A subnet of IPv6 in some plans, as wide as such subnets are."""
    chance = seeded_randomness(f"{seed}/plan of families")
    return _SUBNET_V6 if chance.random() < _WITH_TWO_FAMILIES else ""


def _is_mishap(name: str) -> bool:
    return isinstance(FAULTS[name], Mishap)


def _concerning(faults: frozenset[str], networks: int, *, placement: bool) -> frozenset[str]:
    """The faults without those that need secondary networks or a scheduler, where there are none."""
    return frozenset(
        name
        for name in faults
        if (networks or not is_of_networks(FAULTS[name])) and (placement or not is_of_placement(FAULTS[name]))
    )


def _mishaps(
    seed: int, faults: frozenset[str], trouble_seconds: float, frequencies: Mapping[str, float]
) -> tuple[PlannedMishap, ...]:
    """The mishaps, each kind drawn from a stream of its own, so that another kind does not change the others."""
    planned = []
    for name, fault in FAULTS.items():
        if name in faults and isinstance(fault, Mishap):
            chance = seeded_randomness(f"{seed}/plan of {name}")
            per_second = 1 / fault.every_seconds * frequencies.get(name, 1.0)
            at, number = chance.expovariate(per_second), 0
            while at < trouble_seconds:
                planned.append(PlannedMishap(round(at, 3), name, number))
                at, number = at + chance.expovariate(per_second), number + 1
    return tuple(sorted(planned, key=lambda mishap: mishap.at_seconds))
