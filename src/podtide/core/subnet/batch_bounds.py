"""Between which bounds a subnet's batch is decided: what one cluster asks for, and what all of them together do.

Several clusters may share a subnet, and one batch is in force for all of its nodes. Each cluster's bounds are its
controller's settings, or what a person put in its ClusterSubnet. If the last to write won, clusters would fight; so the
most frugal of them counts:

    top, pin and buffer     the smallest
    lowest                  the largest, at most the top
    thresholds              the pair with the smallest T
"""

from collections.abc import Iterable
from fractions import Fraction
from math import ceil

from msgspec import Struct

from podtide.core.errors import InvalidScaler
from podtide.core.exact import text
from podtide.core.subnet.exhaustion import Thresholds
from podtide.core.subnet.scaler import (
    DEFAULT_BATCH,
    DEFAULT_BUFFER,
    EXHAUSTED_BATCH,
    EXHAUSTED_BUFFER,
    Scaler,
    SubnetScaler,
)


class BatchBounds(Struct, frozen=True):
    """What the batch of a subnet may be. A pin (`fixed`) leaves it no choice."""

    batch: int = DEFAULT_BATCH
    """The top rung."""
    buffer: Fraction = DEFAULT_BUFFER
    thresholds: Thresholds = Thresholds()
    min_batch: int = EXHAUSTED_BATCH
    """The lowest rung."""
    fixed: int | None = None

    def __post_init__(self) -> None:
        Scaler(self.batch, self.buffer)  # what no node's pool can be sized by, no subnet may put in force
        if not 1 <= self.min_batch <= self.batch:
            raise InvalidScaler(
                f"minBatch {self.min_batch} is refused: give a number from 1 to the largest batch, which is {self.batch}"
            )
        if self.fixed is not None and self.fixed < 1:
            raise InvalidScaler(f"fixed {self.fixed} is too small: a batch has at least 1 address")

    @property
    def top(self) -> int:
        """The largest batch: the pin, where there is one."""
        return self.batch if self.fixed is None else self.fixed

    @property
    def lowest(self) -> int:
        """The smallest batch, unless the subnet is starved."""
        return self.min_batch if self.fixed is None else self.fixed

    @property
    def rungs(self) -> tuple[SubnetScaler, ...]:
        """The batches to choose from, smallest first: powers of two up to the top, the top, and the lowest one.

        Those below the lowest are there for a subnet that was starved. At batch 1 more than one free address would be kept
        for nothing, so there the buffer is 1 at most.
        """
        powers = (1 << exponent for exponent in range((self.top - 1).bit_length()))
        batches = sorted({*powers, self.lowest, self.top})
        return tuple(
            SubnetScaler(batch, min(self.buffer, EXHAUSTED_BUFFER) if batch == 1 else self.buffer)
            for batch in batches
        )

    @property
    def words(self) -> str:
        """For people."""
        if self.fixed is not None:
            batch = f"batch {self.fixed}, fixed"
        elif self.min_batch > 1:
            batch = f"batch {self.min_batch} to {self.batch}"
        else:
            batch = f"batch up to {self.batch}"
        words = f"{batch}, buffer {text(self.buffer)}"
        if self.thresholds != Thresholds():
            words += f", thresholds {text(self.thresholds.lower)} and {text(self.thresholds.upper)}"
        return words


def check_fit(bounds: BatchBounds, max_ips: int) -> None:
    """Refuse what no node could hold."""
    if bounds.top > max_ips:
        raise InvalidScaler(
            f"batch {bounds.top} is more than the {max_ips} addresses a node may have: give {max_ips} or less"
        )
    if (least_free := ceil(bounds.buffer * bounds.top)) > max_ips:
        raise InvalidScaler(
            f"a buffer of {least_free} addresses is more than the {max_ips} a node may have: give a smaller buffer or batch"
        )


def merge_bounds(all_bounds: Iterable[BatchBounds]) -> BatchBounds:
    """What counts where clusters ask for different bounds; at least one does."""
    asked = list(all_bounds)
    top = min(each.top for each in asked)
    is_pinned = any(each.fixed is not None for each in asked)
    return BatchBounds(
        batch=top,
        buffer=min(each.buffer for each in asked),
        thresholds=min((each.thresholds for each in asked), key=lambda pair: (pair.upper, pair.lower)),
        min_batch=1 if is_pinned else max(min(each.min_batch, top) for each in asked),
        fixed=top if is_pinned else None,
    )
