"""The two steps of a pool's choices, choosing and carrying out, as one: what a program does around its journal."""

from collections.abc import Iterable

from podtide.core.pool.pool import Address, Owner, Pool


def assign(pool: Pool, owner: Owner, now: float, wanted: Iterable[str] = ()) -> tuple[Address, ...] | None:
    """The addresses the owner has, or else is given; None when there are none."""
    if held := pool.held_by(owner.sandbox, owner.interface):
        return held
    chosen = pool.choose(now, wanted)
    return chosen and pool.take(owner, [address.ip for address in chosen], now)


def name_for_release(pool: Pool, container_id: str, count: int, now: float) -> tuple[str, ...]:
    """Choose up to `count` addresses to give back, and name them."""
    names = pool.choose_releases(container_id, count)
    pool.name(container_id, names, now)
    return names
