"""The laws of leak repair: whatever the books say, and whatever fails, the living keep what they have and peace comes."""

import asyncio
from contextlib import aclosing
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from controller.repair.world import RepairWorld, a_world
from examples import examples
from podtide.cluster.port import Change, Unavailable
from podtide.core.audit.networks import audit_settled_networks
from podtide.resources.overlapping_range import OverlappingRangeIPReservation
from podtide.resources.pod import PodPhase
from podtide.runtime import virtual_time
from podtide.runtime.settings import Settings

INTERVAL = Settings().repair_interval_seconds
POOLS = ("10.0.0.0-24", "10.0.0.0-25")
PODS = ("ns/a", "ns/b", "other/c", "other/d")


class Claim(Struct, frozen=True):
    """Who holds something: a pod by its own uid, by another's, or by name alone."""

    pod: str
    uid: str

    def written(self, uids: dict[str, str]) -> str:
        uid = {"own": uids.get(self.pod, "uid-of-one-gone"), "earlier": "uid-of-an-earlier-one", "": ""}
        return f"{self.pod}@{uid[self.uid]}"


class Books(Struct, frozen=True):
    """What is written at the beginning."""

    pods: dict[str, PodPhase]
    held: dict[int, tuple[str, Claim]]
    reserved: dict[int, Claim]

    def lives(self, claim: Claim) -> bool:
        return self.pods.get(claim.pod) is PodPhase.RUNNING and claim.uid != "earlier"

    def living(self) -> dict[str, set[int]]:
        """By pool, the offsets that living pods hold."""
        return {
            pool: {key for key, (place, claim) in self.held.items() if place == pool and self.lives(claim)}
            for pool in POOLS
        }


CLAIMS = st.builds(Claim, st.sampled_from(PODS), st.sampled_from(["own", "earlier", ""]))
OFFSETS = st.integers(1, 5)
BOOKS = st.builds(
    Books,
    pods=st.dictionaries(st.sampled_from(PODS), st.sampled_from([PodPhase.RUNNING, PodPhase.FAILED])),
    held=st.dictionaries(OFFSETS, st.tuples(st.sampled_from(POOLS), CLAIMS)),
    reserved=st.dictionaries(OFFSETS, CLAIMS),
)


class RandomFaults:
    """Some calls fail, before or after they took effect, for as long as `failing`."""

    def __init__(self, randomness: Random) -> None:
        self.failing = True
        self._randomness = randomness

    async def before(self, _call: str) -> None:
        self._maybe()

    async def after(self, _call: str) -> None:
        self._maybe()

    def _maybe(self) -> None:
        if self.failing and self._randomness.random() < 0.1:
            raise Unavailable("perhaps done, perhaps not")


async def write(world: RepairWorld, books: Books) -> None:
    uids = {}
    for pod, phase in books.pods.items():
        shown = [
            f"10.0.0.{key}"
            for key, (_, claim) in books.held.items()
            if claim.pod == pod and books.lives(claim)
        ]
        uids[pod] = (await world.pod(pod, phase=phase, shown=shown)).metadata.uid
    for pool in POOLS:
        cidr = pool.replace("-", "/")
        await world.attachment(pool, range=cidr)
        held = {str(key): claim.written(uids) for key, (place, claim) in books.held.items() if place == pool}
        await world.pool(pool, cidr, held)
    for key, claim in books.reserved.items():
        await world.reservation(f"10.0.0.{key}", claim.written(uids))


async def note_deleted(world: RepairWorld, names: set[str]) -> None:
    """The names of reservations that are deleted."""
    now = (await world.cluster.list(OverlappingRangeIPReservation)).resource_version
    async with aclosing(world.cluster.watch(OverlappingRangeIPReservation, resource_version=now)) as events:
        async for event in events:
            if event.change is Change.DELETED and event.item is not None:
                names.add(event.item.metadata.name)


@examples(25)
@given(books=BOOKS, seed=st.integers(0, 2**32))
def test_the_living_keep_what_they_have_and_in_the_end_all_books_agree(books: Books, seed: int) -> None:
    async def live() -> None:
        async with a_world() as world:
            await write(world, books)
            faults = RandomFaults(Random(seed))
            world.counted._faults = faults
            deleted: set[str] = set()
            watching = asyncio.create_task(note_deleted(world, deleted))
            running = asyncio.create_task(world.repair().run())
            await asyncio.sleep(4 * INTERVAL)
            faults.failing = False
            await asyncio.sleep(6 * INTERVAL)
            assert {pool: {int(key) for key in await world.held(pool)} for pool in POOLS} == books.living()
            assert audit_settled_networks(await world.picture()) == ()
            written = len(world.counted.writes)
            await asyncio.sleep(4 * INTERVAL)
            assert len(world.counted.writes) == written
            assert deleted.isdisjoint(f"10.0.0.{key}" for keys in books.living().values() for key in keys)
            running.cancel()
            watching.cancel()

    virtual_time.run(live())
