"""What leak repair has done and seen, counted for whoever charts it."""

from collections import Counter

from msgspec import Struct, field


class RepairCounts(Struct, kw_only=True):
    """Counted from the start of the process, over all its terms of leadership."""

    looks: int = 0
    suspects: int = 0
    """What seemed to be nobody's, or not to fit, at the last look."""
    repairs: Counter[str] = field(default_factory=Counter)
    """By what was done: `allocation-released`, `reservation-released`, `reservation-corrected`, `reservation-restored`."""
