"""The two steps of the pool at once: choose, and carry out what was chosen. A program journals the choice in between."""

from collections.abc import Iterable

from podtide.core.pool.pool import Address, Owner, Pool


def assign(pool: Pool, owner: Owner, now: float, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
    """The owner's addresses: those it holds, or else one free address per family; None when none is free."""
    if held := pool.held_by(owner.sandbox, owner.interface):
        return held
    chosen = pool.choose(now, wanted)
    return None if chosen is None else pool.take(owner, [address.ip for address in chosen], now)


def name_for_release(pool: Pool, container_id: str, count: int, now: float) -> tuple[str, ...]:
    """Up to `count` addresses of the container, named for release."""
    names = pool.choose_releases(container_id, count)
    pool.name(container_id, names, now)
    return names
