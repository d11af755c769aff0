"""What one seed showed."""

from msgspec import Struct


class Trial(Struct, frozen=True, kw_only=True):
    """A run of one seed: the first thing that it found, "" for nothing, and how long it took."""

    seed: int
    finding: str
    seconds: float
