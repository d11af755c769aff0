"""`podtide top` shows what is true and readable: R where it is known, an error while it lasts, tables that fit."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.conftest import Run
from cli.drawn_cluster import DrawnCluster, addresses, served
from cluster.faulty_cluster import FaultyCluster
from podtide.allocator.containers import Wish
from podtide.allocator.errors import AllocatorUnavailable
from podtide.allocator.store import DatabaseAllocator, InlineExecutor, open_allocator
from podtide.allocator.subnets import Subnet, SubnetSpec
from podtide.cli.output.screen_width import fitted
from podtide.cli.top.command import lines_of, look_once
from podtide.cli.top.drawing import drawing_of
from podtide.cli.top.overview import ReservedBy
from podtide.cli.top.sources import PolledAllocator, WatchedCluster
from podtide.cluster.port import Unavailable
from podtide.runtime.clock import LoopClock

ONE_LINE = Unavailable("http://127.0.0.1:1 cannot be reached: see that it is up")


class Outage:
    """Every call and every watch fails while it lasts."""

    def __init__(self) -> None:
        self.lasts = False

    async def before(self, call: str) -> None:
        del call
        if self.lasts:
            raise ONE_LINE

    async def after(self, call: str) -> None:
        pass


async def sixty_two_held(drawn: DrawnCluster) -> None:
    """Nodes hold 62 addresses, and the ClusterSubnet still says that none is reserved."""
    await drawn.config("a", requested=31, granted=addresses(31))
    await drawn.config("b", requested=31, granted=addresses(31, 60))
    await drawn.subnet(reserved=0)


async def test_reserved_is_never_behind_held() -> None:
    drawn = DrawnCluster()
    await sixty_two_held(drawn)
    overview = await look_once(drawn.cluster)
    (line,) = overview.subnets
    assert (line.reserved, line.free, line.reserved_by) == (64, 253 - 64, ReservedBy.NODES)
    assert next(iter(tuple(lines_of(overview, None))[1:])).split()[2:5] == ["253", "≥64", "≤189"]


async def test_reserved_is_the_allocators_where_it_is_asked() -> None:
    drawn = DrawnCluster()
    await sixty_two_held(drawn)
    async with await open_allocator(
        "sqlite:///:memory:", clock=LoopClock(), executor=InlineExecutor(), migrate=True
    ) as allocator:
        for network in ("blue", "red"):
            await allocator.add_subnet(SubnetSpec(network=network, name="pods", cidrs=("10.1.0.0/24",)))
        wish = Wish(
            id="a",
            network="blue",
            subnet="pods",
            cluster="east",
            node="a",
            request_uid="r",
            generation=1,
            count=69,
        )
        await allocator.put_container(wish)
        asked = PolledAllocator(allocator)
        await asked.ask()
        (line,) = (await look_once(drawn.cluster, asked.subnets)).subnets
    assert (line.reserved, line.free, line.reserved_by) == (70, 183, ReservedBy.ALLOCATOR)


async def test_an_allocator_that_does_not_answer_is_said_until_it_does() -> None:
    class Moody(DatabaseAllocator):
        is_away = False

        async def list_subnets(self, network: str = "") -> tuple[Subnet, ...]:
            if self.is_away:
                raise AllocatorUnavailable("connection refused")
            return await super().list_subnets(network)

    async with await open_allocator(
        "sqlite:///:memory:", clock=LoopClock(), executor=InlineExecutor(), migrate=True
    ) as inner:
        await inner.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        allocator = Moody(inner._database, clock=LoopClock(), rules=inner._rules)
        asked = PolledAllocator(allocator)
        asking = asyncio.create_task(asked.run(2.0))
        await asyncio.sleep(1)
        assert (len(asked.subnets), asked.complaint) == (1, "")
        allocator.is_away = True
        await asyncio.sleep(2)
        assert (asked.subnets, asked.complaint) == ((), "RESERVED is what objects show: connection refused")
        allocator.is_away = False
        await asyncio.sleep(2)
        assert (len(asked.subnets), asked.complaint) == (1, "")
        asking.cancel()


async def test_a_subnet_that_the_allocator_does_not_have_is_named() -> None:
    drawn = DrawnCluster()
    await sixty_two_held(drawn)
    async with await open_allocator(
        "sqlite:///:memory:", clock=LoopClock(), executor=InlineExecutor(), migrate=True
    ) as allocator:
        await allocator.add_subnet(SubnetSpec(network="blue", name="others", cidrs=("10.2.0.0/24",)))
        asked = PolledAllocator(allocator, "--database")
        assert asked.trouble(None) == ""
        await asked.ask()
        assert asked.trouble(await look_once(drawn.cluster, asked.subnets)) == (
            "RESERVED of subnet pods is what objects show: the allocator has none of the name; correct --database"
        )
        await allocator.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        await asked.ask()
        assert asked.trouble(await look_once(drawn.cluster, asked.subnets)) == ""
    assert PolledAllocator(None).trouble(await look_once(drawn.cluster)) == ""


def test_it_is_said_once_too(podtide: Run, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def make() -> None:
        async with await open_allocator(database, clock=LoopClock(), migrate=True):
            pass

    asyncio.run(make())
    with served(sixty_two_held, tmp_path) as kubeconfig:
        outcome = podtide("top", "--once", "--kubeconfig", str(kubeconfig), "--database", database)
    assert outcome.status == 0
    assert outcome.err == (
        "podtide: warning: RESERVED of subnet pods is what objects show: the allocator has none of the name; "
        "correct --database\n"
    )


@pytest.mark.parametrize("something_happens", [True, False])
async def test_the_error_is_shown_while_it_lasts_and_clears_when_it_is_over(something_happens: bool) -> None:
    drawn, outage = DrawnCluster(), Outage()
    await sixty_two_held(drawn)
    followed = WatchedCluster(FaultyCluster(drawn.cluster, outage), LoopClock())
    following = asyncio.create_task(followed.run())

    async def redraw(seconds: int) -> str:
        for _ in range(seconds // 2):
            await asyncio.sleep(2)
            followed.complaint()
        return followed.complaint()

    assert await redraw(60) == ""
    for number in range(2):  # the second time in the same words
        outage.lasts = True
        drawn.cluster.server.close_watches()
        shown = await redraw(60)
        assert shown.endswith("s ago: http://127.0.0.1:1 cannot be reached: see that it is up")
        outage.lasts = False
        if something_happens:
            await drawn.pod(f"late-{number}")
        assert await redraw(40) == ""
        assert await redraw(600) == ""
    following.cancel()


async def test_a_server_that_hangs_is_said_although_its_watches_stay_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn, goes_on = DrawnCluster(), asyncio.Event()
    await sixty_two_held(drawn)
    goes_on.set()
    plain = drawn.cluster.list

    async def hang(*which: Any, **more: Any) -> Any:
        await goes_on.wait()
        return await plain(*which, **more)

    monkeypatch.setattr(drawn.cluster, "list", hang)
    followed = WatchedCluster(drawn.cluster, LoopClock())
    following = asyncio.create_task(followed.run())
    await asyncio.sleep(61)
    assert followed.complaint() == ""
    goes_on.clear()
    await asyncio.sleep(16)
    assert followed.complaint() == "all as of 17s ago: the API server does not answer: see that it is up"
    await asyncio.sleep(600)
    assert followed.complaint().startswith("all as of 10m")
    goes_on.set()
    await asyncio.sleep(16)
    assert followed.complaint() == ""
    following.cancel()


async def test_a_watch_that_ends_in_good_order_is_no_error() -> None:
    drawn = DrawnCluster()
    await sixty_two_held(drawn)
    followed = WatchedCluster(drawn.cluster, LoopClock())
    following = asyncio.create_task(followed.run())
    for _ in range(20):
        await asyncio.sleep(20)
        drawn.cluster.server.close_watches()
        await asyncio.sleep(1)
        assert followed.complaint() == ""
    following.cancel()


async def a_large_cluster(drawn: DrawnCluster) -> None:
    """Names and numbers as long as they come."""
    await drawn.subnet("pods-eu-central-1", capacity=16777213, reserved=15099500, exhausted=True)
    for number in range(30):
        name = f"ip-10-0-12-{number}.eu-central-1.compute.internal"
        await drawn.config(
            name, requested=250, granted=addresses(200), subnet="pods-eu-central-1", short=number % 2 == 0
        )


async def test_at_eighty_columns_the_tables_fit_and_keep_what_matters() -> None:
    drawn = DrawnCluster()
    await a_large_cluster(drawn)
    lines = list(lines_of(await look_once(drawn.cluster), 80))
    assert [line for line in lines if len(line) > 80] == []
    subnets, nodes = lines[0].split(), lines[3].split()
    assert {"SUBNET", "CAPACITY", "RESERVED", "FREE", "STATE", "OWED"} <= set(subnets)
    assert {"NODE", "REQUESTED", "HELD", "FREE", "PODS", "WAITING", "OWED"} <= set(nodes)
    assert len({line.split()[0] for line in lines[4:]}) == 30  # names that were shortened still differ


async def test_on_a_screen_of_eighty_columns_no_cell_is_cut_off() -> None:
    drawn = DrawnCluster()
    await a_large_cluster(drawn)
    console = Console(width=80, file=io.StringIO(), record=True)
    overview = await look_once(drawn.cluster)
    console.print(drawing_of(overview, "words " * 20, console.width))
    first, second, *lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert f"{first} {second}".split() == ["words"] * 20
    assert lines == list(lines_of(overview, 80))


def test_a_table_that_fits_or_goes_to_a_file_is_left_as_it_is() -> None:
    rows = [["NAME", "N"], ["a" * 60, "1"]]
    assert fitted(rows, None, dispensable=("N",)) == rows
    assert fitted(rows, 80, dispensable=("N",)) == rows
    assert fitted(rows, 60, dispensable=("N",)) == [["NAME"], ["a" * 60]]
    assert fitted([["NAME"], ["abcdefghijklmnop"]], 9) == [["NAME"], ["abcd…mnop"]]
    assert fitted([["LONGHEADING"], ["x"]], 5) == [["LONGHEADING"], ["x"]]
