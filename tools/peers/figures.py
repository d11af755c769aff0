"""The figures of a run: each with its unit, which way is better, and how much better podtide is than its peer."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from kubelet_deadline import KUBELET_SECONDS
from peers.loads import Memory
from peers.results import CallResults, Result
from peers.sizes import Sizes

_MEGABYTE = 1e6
_TWO_DIGITS = 10
"""From here on the digits before the point say enough."""
_LEAST_COUNT = 0.05
"""Less of a request for each call is what is left of the background."""


class Unit(Struct, frozen=True):
    """How a figure is written."""

    show: Callable[[float], str]
    more_is_better: bool = False


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= _TWO_DIGITS else f"{rate:.1f}/s"


def _duration(seconds: float) -> str:
    if seconds >= KUBELET_SECONDS:
        return "no answer"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


RATE = Unit(_per_second, more_is_better=True)
TIME = Unit(_duration)
CPU = Unit(lambda seconds: f"{seconds * 1e3:.2f} ms")
MEMORY = Unit(lambda size: f"{size / _MEGABYTE:.1f} MB")
COUNT = Unit(lambda count: f"{count:.2f}".removesuffix(".00"))


class Figure(Struct, frozen=True):
    """One thing that was measured of one contender."""

    label: str
    unit: Unit
    value: float

    @property
    def text(self) -> str:
        """With its unit."""
        return self.unit.show(self.value)


def times_better(ours: Figure, theirs: Figure) -> float | None:
    """By which factor ours is better, below 1 where it is worse; None where one of them is nothing at all."""
    better, worse = (ours, theirs) if ours.unit.more_is_better else (theirs, ours)
    return better.value / worse.value if ours.value > 0 and theirs.value > 0 else None


def figures_of(load: str, result: Result, sizes: Sizes) -> Iterator[Figure]:
    """What is said of a contender's result at a load."""
    adds, dels = result.adds, result.dels
    if load in {sizes.one.name, sizes.beside_pools.name}:
        yield Figure(f"{load}, p50", TIME, adds.percentile(0.5))
        yield Figure(f"{load}, p99", TIME, adds.percentile(0.99))
        if load == sizes.beside_pools.name:
            return
        yield Figure("one DEL, p50", TIME, dels.percentile(0.5))
        yield from _costs_of_one(adds)
        return
    yield Figure(load, RATE, adds.rate)
    yield Figure(f"{load}, p99", TIME, adds.percentile(0.99))
    yield Figure(f"{load}: failed, of {adds.calls}", COUNT, adds.failed)
    yield Figure(f"{load}: their DELs", RATE, dels.rate)
    yield Figure(f"{load}: their DELs that failed", COUNT, dels.failed)
    yield Figure(f"{load}: API requests for each", COUNT, sum(adds.requests.values()))
    yield Figure(f"{load}: API requests for each DEL", COUNT, sum(dels.requests.values()))
    yield Figure(
        f"{load}: CPU for each, plugin and agent", CPU, adds.plugin_cpu_seconds + adds.agents_cpu_seconds
    )
    yield Figure(f"{load}: CPU for each, API server", CPU, adds.api_server_cpu_seconds)


def _costs_of_one(adds: CallResults) -> Iterator[Figure]:
    yield Figure("one ADD: CPU of the plugin's process", CPU, adds.plugin_cpu_seconds)
    yield Figure("one ADD: CPU of the agent", CPU, adds.agents_cpu_seconds)
    yield Figure("one ADD: CPU of the API server", CPU, adds.api_server_cpu_seconds)
    yield Figure("one ADD: API requests", COUNT, sum(adds.requests.values()))


def figures_of_memory(memory: Memory) -> Iterator[Figure]:
    """What is said of a contender's memory."""
    yield Figure("the plugin's process, peak memory", MEMORY, memory.plugin_peak)
    yield Figure("the agent of a node, resident", MEMORY, memory.resident)


def requests_text(results: Mapping[str, CallResults]) -> Iterator[str]:
    """By contender, the requests of an ADD by verb and resource."""
    for name, adds in results.items():
        asked = {each: count for each, count in adds.requests.items() if count >= _LEAST_COUNT}
        told = ", ".join(f"{COUNT.show(count)} {each}" for each, count in asked.items())
        yield f"{name}: {told or 'none'}"
