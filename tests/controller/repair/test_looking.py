"""How often a cluster is looked at, and what that costs it."""

import asyncio
from datetime import UTC, datetime

import pytest

from controller.repair.world import AT_ONCE, GRACE, a_world
from podtide.cluster.port import Gone, R, Unavailable
from podtide.controller.repair_schedule import check_expression, seconds_until
from podtide.core.errors import InvalidInput
from podtide.resources.kinds import BUILT_IN_KINDS
from podtide.resources.pod import Pod
from podtide.runtime.clock import LoopClock
from podtide.runtime.settings import Settings

INTERVAL = Settings().repair_interval_seconds


async def test_an_idle_cluster_is_read_once_per_interval_and_never_written() -> None:
    async with a_world() as world:
        await world.attachment(range="10.0.0.0/24")
        await world.pod("ns/web")
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": "ns/web"})
        await world.reservation("10.0.0.1", "ns/web")
        running = asyncio.create_task(world.repair().run())
        await asyncio.sleep(10 * INTERVAL + 1)
        running.cancel()
        assert world.counts.looks == 11
        assert world.counts.suspects == 0
        assert world.counted.writes == []


async def test_what_leaks_while_it_runs_is_released_without_being_asked() -> None:
    async with a_world() as world:
        await world.pod("ns/web")
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": "ns/web"})
        running = asyncio.create_task(world.repair().run())
        await asyncio.sleep(1)
        await world.remove_pod("ns/web")
        await asyncio.sleep(INTERVAL)
        assert world.counts.suspects == 1
        await asyncio.sleep(GRACE + 1)
        running.cancel()
        assert await world.held("10.0.0.0-24") == {}


async def test_only_namespaces_whose_pods_hold_something_are_read() -> None:
    async with a_world() as world:
        await world.pod("blue/web")
        await world.pod("green/web")
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": "blue/web"})
        before = world.counted.calls["list"]
        await world.repair().look()
        assert world.counted.calls["list"] - before == 4  # definitions, reservations, pools, pods of blue


async def test_a_list_that_the_server_forgot_between_two_pages_is_read_anew() -> None:
    async with a_world() as world:
        for number in range(501):
            await world.pool(f"10.0.{number}", "10.0.0.0/24", {"1": "ns/gone"} if number == 500 else {})
        world.faults.steps["list"] = [None, None, None, Gone("too old")]
        await world.repair(AT_ONCE).look()
        assert await world.held("10.0.500") == {}


async def test_a_server_that_is_away_is_asked_again_and_frees_nothing() -> None:
    async with a_world() as world:
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": "ns/gone"})
        world.faults.steps["list"] = [None, Unavailable("away"), Unavailable("away")]
        running = asyncio.create_task(world.repair().run())
        await asyncio.sleep(INTERVAL / 2)
        running.cancel()
        assert world.counts.looks == 1
        assert await world.held("10.0.0.0-24") == {"1": "ns/gone"}


@pytest.mark.parametrize("expression", ["", "daily", "30 4 * *", "*/5 * * * * *", "61 4 * * *", "0 0 30 2 *"])
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(InvalidInput, match="is not a cron expression that is ever due"):
        check_expression(expression)


def test_the_first_of_several_expressions_counts_in_utc() -> None:
    three = datetime(2026, 11, 5, 3, 0, tzinfo=UTC).timestamp()
    assert seconds_until(["30 4 * * *"], three) == 90 * 60
    assert seconds_until(["30 4 * * *", "15 * * * *"], three) == 15 * 60


async def test_a_schedule_goes_before_the_interval_and_what_was_found_is_not_left_for_another_day() -> None:
    async with a_world() as world:
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": "ns/gone"})
        repair = world.repair(schedule="30 4 * * *")
        assert await repair.look() == pytest.approx(GRACE + 1)
        await asyncio.sleep(GRACE + 1)
        assert await repair.look() == pytest.approx(seconds_until(["30 4 * * *"], LoopClock().wall()))
        assert await world.held("10.0.0.0-24") == {}


async def test_a_schedule_that_is_none_is_refused_at_the_start() -> None:
    async with a_world() as world:
        with pytest.raises(InvalidInput, match="'soon' is not a cron expression"):
            world.repair(schedule="soon")


async def test_configurations_may_state_the_schedule_and_what_is_none_is_said_once() -> None:
    async with a_world() as world:
        await world.attachment("a", range="10.0.0.0/24", reconciler_cron_expression="whenever")
        repair = world.repair()
        assert await repair.look() == INTERVAL
        await repair.look()
        assert world.lines.getvalue().count("reconciler_cron_expression is ignored") == 1
        await world.attachment("b", range="10.1.0.0/24", reconciler_cron_expression="30 4 * * *")
        assert await repair.look() == pytest.approx(seconds_until(["30 4 * * *"], LoopClock().wall()))


async def test_no_configuration_puts_off_repair_for_longer_than_a_day() -> None:
    async with a_world() as world:
        await world.attachment("rare", range="10.0.0.0/24", reconciler_cron_expression="0 0 29 2 *")
        assert await world.repair().look() == 86_400
        await world.attachment("often", range="10.1.0.0/24", reconciler_cron_expression="*/10 * * * *")
        assert await world.repair().look() <= 600


async def test_the_operators_own_schedule_holds_as_it_is() -> None:
    async with a_world() as world:
        yearly = "0 0 1 1 *"
        assert await world.repair(schedule=yearly).look() == pytest.approx(
            seconds_until([yearly], LoopClock().wall())
        )


async def test_a_cluster_that_knows_no_secondary_networks_is_let_be() -> None:
    async with a_world(kinds=BUILT_IN_KINDS) as world:
        assert await world.repair().look() == INTERVAL


@pytest.mark.parametrize("podref", ["nobody", "ns/", "/web", "ns/a/b", "ns/..", "../web", "ns/50%", "NS/Web"])
async def test_what_can_be_no_pods_name_is_not_asked_for_and_keeps_nobody_from_being_released(
    podref: str,
) -> None:
    async with a_world() as world:
        await world.attachment(range="10.0.0.0/24")
        await world.pool("10.0.0.0-24", "10.0.0.0/24", {"1": podref, "2": "ns/gone"})
        await world.reservation("10.0.0.3", podref)
        before, asked = world.counted.calls["list"], set[str]()
        plain = world.counted.get

        async def get_noted(kind: type[R], name: str, namespace: str = "") -> R:
            if kind is Pod:
                asked.add(f"{namespace}/{name}")
            return await plain(kind, name, namespace)

        world.counted.get = get_noted  # type: ignore[method-assign]  # a real API server refuses such questions
        await world.look_twice()
        assert "2" not in await world.held("10.0.0.0-24")
        assert asked == {"ns/gone"}
        looked = world.counted.calls["list"] - before
        assert looked == 2 * 4, "definitions, reservations, pools, pods of ns"
