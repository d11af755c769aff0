"""Whether a store is the one it was, or went back (design R7).

A database that was restored from a backup, or a replica that was promoted without the last transactions, has forgotten
grants that nodes use: it takes addresses for free that are in use. There are three signs, and each is enough:

    the clusters    each call carries the highest version of a container that the cluster has seen in the subnet; versions
                    are drawn from the subnet's sequence, so a sequence below that has gone back
    a stranger      a cluster that the store does not know, and that has seen a version in a subnet of it: it was granted
                    something by a store that knew it. Its versions need not be higher than the sequence, where that was
                    raised above them by the reports of others
    the mark        what stands outside the database: how far it had come, and which database it was

Such a store recovers: it grants nothing until every cluster has reported what its nodes hold.
"""

from collections.abc import Iterable

from msgspec import Struct


class StoreMark(Struct, frozen=True):
    """The mark beside a database: the store's id, and how far it had come."""

    store: str
    progress: int


def is_behind(sequence: int, seen: int) -> bool:
    """Whether a subnet's sequence is lower than one that a cluster has seen."""
    return seen > sequence


def is_forgotten(*, is_known: bool, seen: Iterable[int]) -> bool:
    """Whether a store has forgotten a cluster, `seen` being the versions that the cluster saw in subnets of the store.

    A new cluster has seen none. One that is known by its name, its uid or a container is not forgotten.
    """
    return not is_known and any(version > 0 for version in seen)


def doubt_about(store: str, progress: int, mark: StoreMark | None) -> str:
    """Why a store may have gone back, by the mark beside it; "" if it has not, or is new (`store` is "")."""
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
    """The names of the clusters that have still to report."""
    return tuple(sorted({*expected} - {*reported}))
