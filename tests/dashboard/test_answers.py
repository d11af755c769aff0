"""What the page asks for beside the stream: why pods wait, forecasts, secondary networks."""

from datetime import date, timedelta

import pytest

from cli.drawn_cluster import DrawnCluster, addresses
from dashboard.pages import ABOUT
from dashboard.test_page_state import StoppedClock
from podtide.allocator.recorded_days import RecordedDays
from podtide.allocator.subnets import SubnetUsage
from podtide.core.forecast.daily_maxima import DayMaximum
from podtide.core.subnet.exhaustion import Thresholds
from podtide.dashboard.answers import PageRefusal
from podtide.dashboard.history_answers import forecast_answer, with_readings
from podtide.dashboard.network_answers import NetworkAnswers
from podtide.dashboard.page_state import PageState
from podtide.dashboard.pod_finder import PodFinder
from podtide.dashboard.records import (
    AgentsHealth,
    Health,
    LeaderHealth,
    NodeRecord,
    PartHealth,
    SilentAgent,
    SubnetRecord,
)
from podtide.dashboard.waiting_answers import waiting_pods
from podtide.resources.base import ObjectMeta
from podtide.resources.ip_pool import IPAllocation, IPPool, IPPoolSpec
from podtide.resources.metadata_keys import SYSTEM_NAMESPACE
from podtide.resources.network_attachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from podtide.runtime.clock import LoopClock

TODAY = date(2026, 11, 5)
LEADS = LeaderHealth(holder="c-1", ok=True)
FULL = SubnetRecord(name="pods", capacity=253, reserved=253, free=0, idle=12)


@pytest.mark.parametrize(
    ("node", "subnet", "health", "reason", "words"),
    [
        (None, FULL, Health(leader=LEADS), "node gone", "node a is gone"),
        (
            NodeRecord(name="a", message="no container"),
            FULL,
            Health(leader=LEADS),
            "no container",
            "no container",
        ),
        (
            NodeRecord(name="a", subnets=("pods",), free=3),
            FULL,
            Health(leader=LEADS),
            "address ready",
            "has 3 free",
        ),
        (NodeRecord(name="a", subnets=("pods",), owed=3), FULL, Health(), "no leader", "was not read yet"),
        (
            NodeRecord(name="a", subnets=("pods",), owed=3),
            FULL,
            Health(leader=LEADS, allocator=PartHealth(ok=False, message="no answer")),
            "allocator away",
            "no answer",
        ),
        (
            NodeRecord(name="a", subnets=("pods",), owed=3),
            FULL,
            Health(leader=LEADS),
            "subnet full",
            "all 253 addresses",
        ),
        (
            NodeRecord(name="a", subnets=("pods",), owed=3),
            SubnetRecord(name="pods", free=9),
            Health(leader=LEADS),
            "being granted",
            "within seconds",
        ),
        (
            NodeRecord(name="a", subnets=("pods",)),
            FULL,
            Health(
                leader=LEADS, agents=AgentsHealth(silent=(SilentAgent(node="a", message="mute", since=None),))
            ),
            "agent silent",
            "mute",
        ),
        (
            NodeRecord(name="a", subnets=("pods",), demand=300, request=250),
            FULL,
            Health(leader=LEADS),
            "node full",
            "raise max_ips",
        ),
        (
            NodeRecord(name="a", subnets=("pods",)),
            FULL,
            Health(leader=LEADS),
            "being asked for",
            "within a second",
        ),
    ],
)
async def test_a_pod_waits_for_the_first_obstacle_on_the_way_of_its_address(
    *,
    node: NodeRecord | None,
    subnet: SubnetRecord,
    health: Health,
    reason: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = DrawnCluster()
    await drawn.pod("web", "a")
    await drawn.pod("has-one", "a", "10.1.0.9")
    await drawn.pod("on-the-host", "a", host_network=True)
    state = PageState(ABOUT, StoppedClock())
    monkeypatch.setattr(PageState, "health", health)
    state.subnets["pods"] = subnet
    if node is not None:
        state.nodes["a"] = node
    (waiting,) = (await waiting_pods(state, PodFinder(drawn.cluster, LoopClock()))).pods
    assert (waiting.pod, waiting.node, waiting.reason) == ("default/web", "a", reason)
    assert words in waiting.message


def days(count: int, *, growth: int) -> RecordedDays:
    maxima = tuple(
        DayMaximum(TODAY - timedelta(days=count - each), 100 + growth * each) for each in range(count)
    )
    return RecordedDays(maxima, maxima, ())


def test_a_forecast_is_a_line_with_a_band_around_it_and_the_days_on_which_levels_are_reached() -> None:
    answer = forecast_answer("pods", days(30, growth=2), 253, Thresholds(), TODAY)
    assert answer.refused is None
    assert len(answer.days) == len(answer.middle) == len(answer.low) == len(answer.high) == 120
    assert all(
        low <= middle <= high
        for low, middle, high in zip(answer.low, answer.middle, answer.high, strict=True)
    )
    assert [each.what for each in answer.reaches] == ["lower", "upper", "capacity"]
    assert [each.level for each in answer.reaches] == [203, 228, 253]
    assert all(each.date and each.date > TODAY.isoformat() for each in answer.reaches)


def test_with_less_than_a_week_a_forecast_is_refused_in_words() -> None:
    answer = forecast_answer("pods", days(3, growth=2), 253, Thresholds(), TODAY)
    assert answer.refused == "no date is named: there are 3 full days of history, and it takes 7"
    assert (answer.days, answer.reaches) == ((), ())


async def test_secondary_networks_are_told_with_their_pools_and_leaks() -> None:
    drawn = DrawnCluster()
    text = '{"cniVersion":"1.0.0","name":"blue","type":"macvlan","ipam":{"type":"whereabouts","range":"10.9.0.0/24","network_name":"blue"}}'
    for name, config in (("blue", text), ("broken", text.replace("10.9.0.0/24", "nonsense"))):
        await drawn.cluster.create(
            NetworkAttachmentDefinition(
                metadata=ObjectMeta(name=name, namespace="default"),
                spec=NetworkAttachmentDefinitionSpec(config=config),
            ),
            manager="test",
        )
    held = {"5": IPAllocation(id="s", podref="default/gone", ifname="net1")}
    await drawn.cluster.create(
        IPPool(
            metadata=ObjectMeta(name="blue-10.9.0.0-24", namespace=SYSTEM_NAMESPACE),
            spec=IPPoolSpec(range="10.9.0.0/24", allocations=held),
        ),
        manager="test",
    )
    state = PageState(ABOUT, StoppedClock())
    answers = NetworkAnswers(state, drawn.cluster, SYSTEM_NAMESPACE, LoopClock())
    blue, broken = (await answers.all()).networks
    assert (blue.name, blue.ranges, blue.allocated, blue.slices) == ("blue", ("10.9.0.0/24",), 1, None)
    assert blue.leaks
    assert broken.name == "default/broken"
    assert "is invalid" in broken.message
    one = await answers.one("blue")
    assert [(each.node, each.slice, each.allocated) for each in one.nodes] == [("", "10.9.0.0/24", 1)]
    assert any("default/gone" in each for each in one.leaks)
    with pytest.raises(PageRefusal, match="there is no secondary network"):
        await answers.one("green")


async def test_pods_are_looked_up_once_for_all_who_ask_within_seconds() -> None:
    drawn = DrawnCluster()
    finder = PodFinder(drawn.cluster, LoopClock())
    assert await finder.on_node("a") == ()
    await drawn.pod("web", "a", addresses(1)[0])
    assert await finder.on_node("a") == ()
    for number in range(100):
        await finder.on_node(f"other-{number}")
    assert len(finder._kept) <= 64
    (pod,) = await finder.on_node("a")
    assert pod.key == "default/web"


def usage(time: str, step: int, demand: int | None = None) -> SubnetUsage:
    return SubnetUsage(
        timestamp=f"2026-11-05T{time}Z",
        step_seconds=step,
        observed_seconds=step,
        capacity=250,
        reserved=100,
        reserved_mean=100.0,
        demand=demand,
        need=None if demand is None else demand + 9,
        batch=16,
        owed=0,
        containers=1,
        exhausted_seconds=0.0,
        starved_seconds=0.0,
    )


def test_a_reading_of_demand_stands_in_the_last_row_of_its_minute() -> None:
    rows = [usage(time, 5) for time in ("11:59:55", "12:00:05", "12:00:50", "12:01:00", "12:03:10")]
    minutes = [usage("12:00:00", 60, 40), usage("12:01:00", 60), usage("12:03:00", 60, 70)]
    found = with_readings(rows, minutes)
    assert [row.demand for row in found] == [None, None, 40, None, 70]
    assert [row.need for row in found] == [None, None, 49, None, 79]
    assert [row.timestamp for row in found] == [row.timestamp for row in rows]
