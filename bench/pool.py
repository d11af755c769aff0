"""How quickly a node's pool serves pods, small and large: the size must not matter."""

from collections.abc import Iterator
from time import perf_counter

from podtide.core.pool.pool import GrantedContainer, Owner, Pool

PART = "core"
PAIRS = 100_000


def measure() -> Iterator[tuple[str, str]]:
    """Assign and release, in pools of 16 and of 4,096 that are half full."""
    rates = {size: _pairs_per_second(size) for size in (16, 4096)}
    for size, rate in rates.items():
        yield f"pool of {size:,}: assign + release pairs", f"{rate:,.0f}/s"
    yield "pool of 4,096 : pool of 16", f"{rates[4096] / rates[16]:.2f}"


def _pairs_per_second(size: int) -> float:
    pool = Pool()
    addresses = {f"name-{n}": f"10.{n >> 8}.{n & 255}.1" for n in range(size)}
    pool.apply(GrantedContainer("nc", 1, 4, addresses), 0.0)
    pool.programmed(addresses, 0.0)
    for number in range(size // 2):
        _assign(pool, Owner(f"resident-{number}", "eth0"), 0.0)
    owners = [Owner(f"sandbox-{number}", "eth0") for number in range(1000)]
    start = perf_counter()
    for number in range(PAIRS):
        owner = owners[number % 1000]
        now = float(number)
        _assign(pool, owner, now)
        pool.free(owner.sandbox, owner.interface, now)
    return PAIRS / (perf_counter() - start)


def _assign(pool: Pool, owner: Owner, now: float) -> None:
    """What an agent does with the pool for an ADD, but for its journal."""
    chosen = pool.choose(now)
    assert chosen is not None, "the pool is half empty"
    pool.take(owner, [address.ip for address in chosen], now)
