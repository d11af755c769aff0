"""Whether a store is the one it was, or went back (DESIGN.md "A store that went back").

A database that was restored from a backup, or a replica that was promoted without the last transactions, has forgotten
grants that nodes live by; what it takes for free is somebody's. Two things tell, and either is enough:

    the clusters    each call carries the highest version of a container that the cluster has seen in the subnet; versions
                    are drawn from the subnet's sequence, so a sequence below that has gone back
    the mark        what stands outside the database: how far it had come, and which database it was

Such a store recovers: it grants nothing until every cluster has reported what its nodes hold.
"""

from collections.abc import Iterable

from msgspec import Struct


class Mark(Struct, frozen=True):
    """What is written beside a database: whose mark it is, and how far the database had come."""

    store: str
    progress: int


def is_behind(sequence: int, seen: int) -> bool:
    """Whether a subnet's sequence is lower than one that a cluster has seen."""
    return seen > sequence


def doubt_about(store: str, progress: int, mark: Mark | None) -> str:
    """Why a store is not known to be the one it was, by the mark beside it; "" if it is, or is new. `store` "" is new."""
    if not store:
        return "" if mark is None else "the database is new, and the mark beside it is of an earlier one"
    if mark is None:
        return "the mark beside the database is missing"
    if mark.store != store:
        return "the mark beside the database is of another one"
    if mark.progress > progress:
        return f"the database stands at {progress}, and had come to {mark.progress}: it is an older copy"
    return ""


def awaited_reports(expected: Iterable[str], reported: Iterable[str]) -> tuple[str, ...]:
    """The clusters that have still to report, by name."""
    return tuple(sorted({*expected} - {*reported}))
