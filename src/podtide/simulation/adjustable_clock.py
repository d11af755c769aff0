"""A clock whose wall time can be set, as people and time servers do: no decision that matters may depend on it."""

from podtide.runtime.clock import LoopClock


class AdjustableClock(LoopClock):
    """The running loop's clock; its wall time can be moved."""

    def __init__(self) -> None:
        super().__init__()
        self._moved_seconds = 0.0

    def wall(self) -> float:
        """The wall clock's time."""
        return super().wall() + self._moved_seconds

    def move(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._moved_seconds += seconds
