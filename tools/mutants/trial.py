"""How large a run of one seed is, and what it showed."""

from msgspec import Struct


class Trial(Struct, frozen=True, kw_only=True):
    """A run of one seed: the first thing that it found, "" for nothing, and how long it took."""

    seed: int
    finding: str
    seconds: float


class Size(Struct, frozen=True, order=True):
    """How large a run is. Small ones are quick, and most of what is broken is broken in them too."""

    nodes: int = 3
    trouble_seconds: float = 120.0
    networks: int = 0
    placement: bool = False
    by_calls: bool = False
    """Whether a run is judged by the kubelets' calls alone."""
