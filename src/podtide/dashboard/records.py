"""What travels to the page. One flat record for each subnet and node: a change is the whole record, so that it can be repeated.

Names are those of the page's own code (camelCase). A count that is not known is null, never 0.
"""

from msgspec import Struct

MOST_DECISIONS = 200
"""How many decisions are remembered."""
MOST_SILENT = 100
"""How many agents out of contact are named; all are counted."""


class _Record(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Written with all its fields."""


class PageCluster(_Record, frozen=True, kw_only=True):
    """What is looked at, and by which program. It does not change while the program runs."""

    name: str
    server: str
    """The version of podtide."""
    started_at: str
    has_allocator: bool
    demo: bool


class CidrRecord(_Record, frozen=True, kw_only=True):
    """One range of a subnet."""

    cidr: str
    gateway: str
    draining: bool


class ThresholdsRecord(_Record, frozen=True, kw_only=True):
    """t and T, as parts of the capacity: for drawing, so a float does."""

    lower: float
    upper: float


class RunsOutRecord(_Record, frozen=True, kw_only=True):
    """The condition RunsOut."""

    status: str
    message: str


class SubnetRecord(_Record, frozen=True, kw_only=True):
    """One subnet."""

    name: str
    cidrs: tuple[CidrRecord, ...] = ()
    capacity: int | None = None
    reserved: int | None = None
    free: int | None = None
    owed: int = 0
    quarantined: int | None = None
    nodes: int = 0
    pods: int | None = None
    """The sum of what nodes state as demand."""
    idle: int | None = None
    """What nodes hold beyond their demand and do not give back."""
    batch: int | None = None
    buffer: float | None = None
    top: int | None = None
    exhausted: bool = False
    starved: bool = False
    full: bool | None = None
    thresholds: ThresholdsRecord | None = None
    reason: str = ""
    runs_out: RunsOutRecord | None = None
    family: int = 4


class NodeRecord(_Record, frozen=True, kw_only=True):
    """One node."""

    name: str
    subnets: tuple[str, ...] = ()
    demand: int | None = None
    request: int = 0
    held: int = 0
    primaries: int = 0
    free: int | None = None
    releasing: int = 0
    owed: int = 0
    waiting: int = 0
    batch: int | None = None
    ready: bool | None = None
    message: str = ""
    since: str | None = None


class DecisionRecord(_Record, frozen=True, kw_only=True):
    """One decision, with its arithmetic."""

    id: int
    time: str
    kind: str
    subject: str
    text: str
    terms: tuple[tuple[str, str, str], ...] = ()
    """Symbol, meaning and value."""
    formula: str = ""


class LeaderHealth(_Record, frozen=True, kw_only=True):
    """Whether a request controller leads."""

    holder: str | None = None
    since: str | None = None
    renewed: str | None = None
    ok: bool = False
    message: str = ""


class PartHealth(_Record, frozen=True, kw_only=True):
    """Whether a program answers; None where there is none to ask."""

    ok: bool | None
    message: str = ""


class SilentAgent(_Record, frozen=True, kw_only=True):
    """An agent that has not answered."""

    node: str
    message: str
    since: str | None


class AgentsHealth(_Record, frozen=True, kw_only=True):
    """How many agents there are, and which are out of contact."""

    total: int = 0
    silent: tuple[SilentAgent, ...] = ()
    silent_count: int = 0


class Health(_Record, frozen=True, kw_only=True):
    """The programs."""

    leader: LeaderHealth = LeaderHealth(message="the Lease of the request controllers was not read yet")
    allocator: PartHealth = PartHealth(ok=None)
    api: PartHealth = PartHealth(ok=False, message="the cluster is being read")
    agents: AgentsHealth = AgentsHealth()


class PageSnapshot(_Record, frozen=True, kw_only=True):
    """Everything that the stream is about, at one sequence number."""

    cluster: PageCluster
    subnets: tuple[SubnetRecord, ...]
    nodes: tuple[NodeRecord, ...]
    decisions: tuple[DecisionRecord, ...]
    health: Health


class PageChange(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """What differs between two sequence numbers; a key that is left out stays as it was."""

    subnets: tuple[SubnetRecord, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    removed_subnets: tuple[str, ...] = ()
    removed_nodes: tuple[str, ...] = ()
    decisions: tuple[DecisionRecord, ...] = ()
    health: Health | None = None
    blocks: dict[str, list[int]] = {}
