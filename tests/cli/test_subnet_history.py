"""`podtide subnet history`: a chart and a table for people, CSV and JSON for programs, and one sentence for all else."""

import asyncio
import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path

import pytest
from msgspec import structs

from allocator.contract.harness import a_wish
from allocator.store.databases import HandClock
from cli.conftest import Run
from podtide.allocator.store import InlineExecutor, StoreRules, open_allocator
from podtide.allocator.subnets import SubnetInForce, SubnetSpec, SubnetUsage
from podtide.cli.subnet.usage_chart import ChartPoint, draw_chart
from podtide.core.subnet.scaler import Scaler
from podtide.core.subnet.scaling import decide_request
from podtide.core.subnet.statement import StatedDemand
from podtide.resources.timestamps import to_time
from podtide.runtime.clock import SystemClock

DAY = 86_400.0
MINUTE = 60.0
TODAY = SystemClock().wall() // DAY * DAY
STATED = StatedDemand(low=0, high=8, batch=16)
DEFAULT = Scaler(batch=16, buffer=Fraction(1, 2))
ROOT = Path(__file__).parents[2]
COLUMNS = (
    "timestamp,step_seconds,observed_seconds,capacity,reserved,reserved_mean,demand,demand_mean,need,need_mean,on_pods,"
    "on_pods_mean,idle,idle_mean,owed,containers,batch,exhausted_seconds,starved_seconds"
)


@pytest.fixture
def where(tmp_path: Path) -> tuple[str, str]:
    """The option for a database of a subnet that has been used for three days."""
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(_used(url))
    return "--database", url


async def _used(url: str) -> None:
    clock = HandClock()
    clock.now = midnight(3)
    async with await open_allocator(
        url, clock=clock, rules=StoreRules(cooldown_seconds=0.0), executor=InlineExecutor(), migrate=True
    ) as store:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
        for day in range(3):
            clock.now = midnight(3 - day)
            await store.put_container(a_wish("a", 9 + 10 * day, day + 1, stated=STATED))
            await store.sample()
            clock.now += MINUTE
            await store.sample()


async def _growing(url: str) -> None:
    """Ten nodes of batch 16 that ask for more every day."""
    clock = HandClock()
    clock.now = midnight(7)
    async with await open_allocator(
        url, clock=clock, rules=StoreRules(cooldown_seconds=0.0), executor=InlineExecutor(), migrate=True
    ) as store:
        await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/23",)))
        await store.put_in_force("blue", "pods", SubnetInForce(batch=16, buffer="1/2", top=16))
        for day in range(7):
            pods = 5 + 3 * day
            request = decide_request(pods, DEFAULT, primaries=1).request
            clock.now = midnight(7 - day)
            for node in range(10):
                stated = StatedDemand(low=pods, high=pods, demand=pods, batch=16, primaries=1)
                await store.put_container(a_wish(f"{node}", request, day + 1, stated=stated))
            for _ in range(3):
                await store.sample()
                clock.now += MINUTE


def midnight(days_ago: int) -> float:
    """When that day of UTC began."""
    return TODAY - days_ago * DAY


def day(days_ago: int) -> str:
    return to_time(midnight(days_ago))[:10]


@pytest.mark.parametrize("page", ["README.md", "docs/growing.md"])
def test_pages_show_what_is_printed(podtide: Run, tmp_path: Path, page: str) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    asyncio.run(_growing(url))
    block = re.search(
        r"^\$ podtide (subnet history .*?)\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert block is not None
    arguments = [url if argument.startswith("sqlite:") else argument for argument in block.group(1).split()]
    shown = podtide(*arguments)
    assert (shown.status, shown.err) == (0, "")
    assert _numbered_days(shown.out) == _numbered_days(block.group(2))


def _numbered_days(text: str) -> str:
    """The text with the first day in it as day 1, and so on: the page was written on another day."""
    days = sorted(set(re.findall(r"\d{4}-\d\d-\d\d", text)))
    for number, each in enumerate(days, start=1):
        text = text.replace(each, f"day {number:6}")
    return text


def test_days_are_shown_in_a_table(podtide: Run, where: tuple[str, str]) -> None:
    shown = podtide("subnet", "history", "blue", "pods", "--since", "5d", *where)
    assert (shown.status, shown.err) == (0, "")
    assert shown.out.splitlines() == [
        "TIME        CAPACITY  RESERVED  MEAN  DEMAND  NEED  ON PODS  IDLE  OWED  CONTAINERS  BATCH  EXHAUSTED  STARVED",
        f"{day(3)}  253       10        10.0  8       10    8        1     0     1           0      0s         0s",
        f"{day(2)}  253       20        20.0  8       10    8        11    0     1           0      0s         0s",
        f"{day(1)}  253       30        30.0  8       10    8        21    0     1           0      0s         0s",
    ]


def test_a_chart_is_drawn_on_request_and_not_into_a_file(podtide: Run, where: tuple[str, str]) -> None:
    plain = podtide("subnet", "history", "blue", "pods", "--since", "5d", *where).out
    charted = podtide("subnet", "history", "blue", "pods", "--since", "5d", "--chart", *where).out
    assert charted.endswith(f"\n\n{plain}")
    first, *chart, axis = charted.removesuffix(f"\n\n{plain}").splitlines()
    assert first == f"reserved: at most 30 of 253 (11 %), at {day(1)}"
    assert [line[:4] for line in chart] == ["30 ┤", *["   ┤"] * 4, " 0 ┤"]
    assert axis.split() == [day(3), day(1)]
    assert max(map(len, (*chart, axis))) == 80


def test_csv_has_a_header_and_a_field_for_each_of_the_json(podtide: Run, where: tuple[str, str]) -> None:
    written = podtide("subnet", "history", "blue", "pods", "--since", "5d", "-o", "csv", *where).out
    assert (
        written.splitlines()[0] == COLUMNS == ",".join(structs.fields(SubnetUsage)[n].name for n in range(19))
    )
    read = list(csv.DictReader(io.StringIO(written)))
    document = json.loads(
        podtide("subnet", "history", "blue", "pods", "--since", "5d", "-o", "json", *where).out
    )
    assert [{key: str(value) for key, value in row.items()} for row in document] == read
    assert [row["reserved"] for row in read] == ["10", "20", "30"]
    assert {row["step_seconds"] for row in read} == {"86400"}


def test_what_was_not_read_is_empty_in_csv_and_a_dash_in_the_table(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"

    async def used() -> None:
        async with await open_allocator(url, clock=SystemClock(), migrate=True) as store:
            await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))

    asyncio.run(used())
    command = ("subnet", "history", "blue", "pods", "--since", "5m", "--step", "5s", "--database", url)
    (row,) = csv.DictReader(io.StringIO(podtide(*command, "-o", "csv").out))
    assert (row["demand"], row["need_mean"], row["reserved"]) == ("", "", "0")
    assert podtide(*command).out.splitlines()[1].split()[1:8] == ["253", "0", "0.0", "-", "-", "-", "-"]


def test_since_and_until_are_dates_times_or_durations(podtide: Run, where: tuple[str, str]) -> None:
    def days(*options: str) -> list[str]:
        shown = podtide("subnet", "history", "blue", "pods", "--step", "1d", *options, *where)
        assert shown.status == 0, shown.err
        return [line.split()[0] for line in shown.out.splitlines()[1:]]

    assert days("--since", day(2)) == [day(2), day(1)]
    assert days("--since", f"{day(2)}T00:00:00Z", "--until", day(1)) == [day(2)]
    assert days("--since", f"{day(2)}T02:00:00+02:00", "--until", f"{day(2)}T00:00:01Z") == [day(2)]
    assert days("--since", "2w", "--until", "1h")[:1] == [day(3)]
    assert days("--since", "99999999d") == [day(3), day(2), day(1)]


@pytest.mark.parametrize(
    "written",
    ["yesterday", "7", "-7d", "7.5d", "12 h", "2026-13-01", "2026-11-05T12:00:00", "1969-12-31", "0001-01-01T00:00:00+05:00", ""],
)  # fmt: skip
def test_what_is_no_moment_is_refused_in_one_sentence(
    podtide: Run, where: tuple[str, str], written: str
) -> None:
    refused = podtide("subnet", "history", "blue", "pods", f"--since={written}", *where)
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == (
        f"podtide: --since={written} is refused: give a duration back from now, such as 7d or 12h, or a date or a time with "
        "its zone, such as 2026-11-05 or 2026-11-05T12:00:00Z\n"
    )


def test_a_time_that_ends_before_it_begins_is_refused(podtide: Run, where: tuple[str, str]) -> None:
    refused = podtide(
        "subnet", "history", "blue", "pods", "--since", "2026-02-01", "--until", "2026-01-01", *where
    )
    assert (refused.status, refused.out) == (2, "")
    assert refused.err == (
        "podtide: --since 2026-02-01T00:00:00Z is after --until 2026-01-01T00:00:00Z: give the earlier one as --since\n"
    )


def test_a_time_without_history_is_said_to_be_so(podtide: Run, where: tuple[str, str]) -> None:
    command = ("subnet", "history", "blue", "pods", "--since", "2020-01-01", "--until", "2020-02-01", *where)
    empty = podtide(*command)
    assert (empty.status, empty.err) == (0, "")
    assert empty.out == (
        "blue/pods has no history from 2020-01-01T00:00:00Z to 2020-02-01T00:00:00Z: it was not there yet, its allocator did "
        "not run, or that is longer ago than is kept\n"
    )
    assert podtide(*command, "-o", "csv").out == f"{COLUMNS}\n"
    assert podtide(*command, "-o", "json").out == "[]\n"
    later = podtide(
        "subnet", "history", "blue", "pods", "--since", "2999-01-01", "--until", "2999-02-01", *where
    )
    assert later.out == "blue/pods has no history from 2999-01-01T00:00:00Z on: that time is yet to come\n"


def test_a_step_that_does_not_reach_back_is_pointed_out(podtide: Run, where: tuple[str, str]) -> None:
    shown = podtide("subnet", "history", "blue", "pods", "--since", "1000d", "--step", "15m", *where)
    assert shown.status == 0
    assert len(shown.out.splitlines()) == 1 + 3
    assert shown.err.startswith("podtide: warning: rows of 15m are kept for 90 days, and --since is 20")
    assert shown.err.endswith("Z: use --step 1d for all of that time\n")
    all_of_it = podtide("subnet", "history", "blue", "pods", "--since", "1000d", *where)
    assert all_of_it.err.startswith("podtide: warning: rows of 1d are kept for 731 days, and --since is 20")
    assert all_of_it.err.endswith("Z\n")


def test_an_unknown_subnet_and_an_unknown_step_are_refused(podtide: Run, where: tuple[str, str]) -> None:
    unknown = podtide("subnet", "history", "blue", "others", *where)
    assert (unknown.status, unknown.out) == (2, "")
    assert unknown.err.startswith("podtide: network blue has no subnet others")
    step = podtide("subnet", "history", "blue", "pods", "--step", "2h", *where)
    assert (step.status, step.out) == (2, "")
    assert "'2h' is not one of 'auto', '5s', '1m', '15m', '1d'" in step.err


def test_a_column_of_the_chart_shows_the_highest_of_its_time() -> None:
    points = [ChartPoint(60.0 * minute, 60.0, 90 if minute == 50 else 30) for minute in range(100)]
    top, *_middle, bottom, axis = draw_chart(points, ("begin", "end"), 24)
    assert top == "90 ┤          █"
    assert bottom == " 0 ┤" + "█" * 20
    assert axis == "    begin            end"


def test_a_time_of_which_nothing_is_known_is_dotted() -> None:
    points = [ChartPoint(0.0, 60.0, 5), ChartPoint(540.0, 60.0, 5)]
    *_others, bottom, _axis = draw_chart(points, ("a", "b"), 13)
    assert bottom == "0 ┤█········█"


def test_nothing_reserved_is_an_empty_chart_and_little_is_seen() -> None:
    *_others, bottom, _axis = draw_chart([ChartPoint(0.0, 60.0, 0)], ("a", "b"), 13)
    assert bottom == "0 ┤"
    *_others, bottom, _axis = draw_chart(
        [ChartPoint(0.0, 60.0, 1), ChartPoint(60.0, 60.0, 65_000)], ("a", "b"), 17
    )
    assert bottom == "    0 ┤▁▁▁▁▁█████"
