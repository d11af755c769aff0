"""`podtide forecast` by files, whatever is wrong with them, and by an allocator's history."""

import asyncio
import json
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allocator.contract.harness import HandClock, a_wish
from cli.conftest import Run
from examples import examples
from podtide.allocator.recorded_days import day_of
from podtide.allocator.store import open_allocator
from podtide.allocator.subnets import Bounds, SubnetSpec
from podtide.cli.forecast.usage_file import UsageFile, read_usage_file
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import SystemClock

FIRST = date(2026, 3, 2)
HEADER = "timestamp,capacity,reserved"


def a_file(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def growing(days: int, growth: int = 10) -> list[str]:
    """Rows of a subnet of 1000 addresses whose use grows by the same every day."""
    return [f"{FIRST + timedelta(days=day)}T00:00:00Z,1000,{100 + growth * day}" for day in range(days)]


def test_a_file_is_answered_with_dates_for_each_level(podtide: Run, tmp_path: Path) -> None:
    answer = podtide("forecast", "--history", str(a_file(tmp_path / "usage.csv", HEADER, *growing(21))))
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        "1000 addresses",
        "  as it is (reserved): 300 on 2026-03-22, +10.0 a day",
        "    LEVEL            ADDRESSES  REACHED     EARLIEST (90 %)  LATEST (90 %)",
        "    lower threshold  800        2026-05-11  2026-05-11       2026-05-11",
        "    upper threshold  900        2026-05-21  2026-05-21       2026-05-21",
        "    capacity         1000       2026-05-31  2026-05-31       2026-05-31",
        "    rests on the maxima of 21 days, 2026-03-02 to 2026-03-22, without a weekly pattern; a week ahead, tried from 10 days of them, it was off by 0 on average",
        "  with batch 1 (true need): the history has no such figures",
    ]


def test_programs_get_the_same_as_json(podtide: Run, tmp_path: Path) -> None:
    rows = [f"{row},{50 + day}" for day, row in enumerate(growing(10))]
    file = a_file(tmp_path / "usage.csv", f"{HEADER},need", *rows)
    (found,) = json.loads(podtide("forecast", "--history", str(file), "-o", "json").out)
    assert (found["capacity"], found["lower"], found["upper"]) == (1000, "0.8", "0.9")
    assert found["reserved"]["last"] == {"day": "2026-03-11", "most": 190}
    assert found["reserved"]["levels"][2] == {
        "level": "capacity",
        "addresses": 1000,
        "since": None,
        "expected": "2026-05-31",
        "earliest": "2026-05-31",
        "latest": "2026-05-31",
    }
    assert found["need"]["levels"][2]["expected"] is None
    assert found["need"]["growth_per_day"] == pytest.approx(1)


def test_capacity_and_thresholds_may_be_others_than_those_of_the_file(podtide: Run, tmp_path: Path) -> None:
    file = a_file(tmp_path / "usage.csv", HEADER, *growing(10))
    chosen = ("--capacity", "500", "--lower", "0.5", "--upper", "0.6")
    found = podtide("forecast", "--history", str(file), *chosen).out
    assert [line.split()[-4] for line in found.splitlines()[4:7]] == ["250", "300", "500"]
    assert found.splitlines()[1] == "  thresholds: 0.5 and 0.6 of them"


def test_a_day_may_be_named_to_forecast_from(podtide: Run, tmp_path: Path) -> None:
    file = a_file(tmp_path / "usage.csv", HEADER, *growing(30, 10))
    found = podtide("forecast", "--history", str(file), "--at", "2026-03-08").out
    assert "no date is named: there are 6 full days of history, and it takes 7" in found
    assert "23 days were left out: after 2026-03-08, the day of the forecast" in found


def test_a_subnet_that_grew_is_said_and_its_capacity_of_today_counts(podtide: Run, tmp_path: Path) -> None:
    rows = [row.replace(",1000,", ",600,") for row in growing(10)]
    file = a_file(tmp_path / "usage.csv", HEADER, *rows, *growing(20)[10:])
    out = podtide("forecast", "--history", str(file)).out
    assert out.startswith("1000 addresses\n")
    assert "  the capacity went from 600 to 1000 on 2026-03-12: dates are for 1000" in out


def test_use_that_does_not_grow_is_not_within_a_year(podtide: Run, tmp_path: Path) -> None:
    file = a_file(tmp_path / "usage.csv", HEADER, *growing(20, 0))
    assert podtide("forecast", "--history", str(file)).out.count("not within a year") == 9


def test_a_level_that_is_reached_says_since_when(podtide: Run, tmp_path: Path) -> None:
    file = a_file(tmp_path / "usage.csv", HEADER, *growing(20, 40))
    assert "lower threshold  800        since 2026-03-20" in podtide("forecast", "--history", str(file)).out


def test_rows_out_of_order_and_twice_are_taken_and_said(podtide: Run, tmp_path: Path) -> None:
    rows = growing(20)
    file = a_file(tmp_path / "usage.csv", HEADER, *rows[10:], *rows[:10], rows[3])
    out = podtide("forecast", "--history", str(file)).out
    assert "capacity         1000       2026-05-31" in out
    assert (
        "  2 rows were out of order, or of a time that was there before: of each day the maximum counts"
        in out
    )


def test_unknown_columns_are_ignored_and_said_and_those_of_our_own_history_are_known(
    podtide: Run, tmp_path: Path
) -> None:
    rows = [f"{row},16,me" for row in growing(10)]
    out = podtide(
        "forecast", "--history", str(a_file(tmp_path / "a.csv", f"{HEADER},batch,Owner", *rows))
    ).out
    assert "  unknown columns were ignored: owner" in out.splitlines()


def test_rows_without_a_value_are_gaps_and_said(podtide: Run, tmp_path: Path) -> None:
    rows = [*growing(20), "2026-03-22T00:00:00Z,1000,", ""]
    out = podtide("forecast", "--history", str(a_file(tmp_path / "usage.csv", HEADER, *rows))).out
    assert "  1 row was passed over: without a value" in out.splitlines()
    assert "capacity         1000       2026-05-31" in out


def test_a_clock_that_was_once_ahead_is_left_out_and_said(podtide: Run, tmp_path: Path) -> None:
    rows = [*growing(20), "2099-01-01T00:00:00Z,1000,999"]
    out = podtide("forecast", "--history", str(a_file(tmp_path / "usage.csv", HEADER, *rows))).out
    assert "1 day was left out: after 2026-03-22, the day of the forecast" in out
    assert "capacity         1000       2026-05-31" in out


def test_a_clock_that_was_once_far_behind_is_left_out_and_said(podtide: Run, tmp_path: Path) -> None:
    rows = ["1970-01-01T00:00:00Z,1000,999", *growing(20)]
    out = podtide("forecast", "--history", str(a_file(tmp_path / "usage.csv", HEADER, *rows))).out
    assert "1 day was left out: more than two years before the last" in out
    assert "capacity         1000       2026-05-31" in out


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "is empty: its first line names the columns timestamp, capacity and reserved"),
        ([HEADER], "has no row: there is no history to forecast from"),
        (["hour,pods", "0,5"], "has no column 'timestamp': its first line names hour, pods"),
        (["timestamp,used", "0,5"], "has no column 'reserved': its first line names timestamp, used"),
        (["timestamp,reserved", "2026-03-02,5"], "has no capacity: give --capacity COUNT"),
        ([f"{HEADER},reserved", "2026-03-02,5,5,5"], "has the column 'reserved' twice: give it once"),
        ([HEADER, *growing(3), "2026-03-05,5"], "line 5 of"),
        ([HEADER, *growing(3), "2026-03-05,5"], "has 2 columns, and the first line names 3"),
        ([HEADER, "yesterday,5,5"], "has the timestamp 'yesterday': give one such as 2026-01-31T12:00:00Z"),
        ([HEADER, "1700000000000,5,5"], "or seconds since 1970"),
        ([HEADER, "2026-03-02T00:00:00Z,5,-1"], "line 2 of"),
        ([HEADER, f"2026-03-02T00:00:00Z,5,{'9' * 300}"], "as reserved: give a whole number, at least 0"),
        ([HEADER, f"2026-03-02T00:00:00Z,{'9' * 300},5"], "as capacity: give a whole number, at least 0"),
        ([HEADER, "2026-03-02T00:00:00Z,5,many"], "has 'many' as reserved: give a whole number, at least 0"),
    ],
)
def test_what_cannot_be_understood_is_refused_in_one_sentence(
    podtide: Run, tmp_path: Path, lines: list[str], words: str
) -> None:
    answer = podtide("forecast", "--history", str(a_file(tmp_path / "usage.csv", *lines)))
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert words in answer.err


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", f"{HEADER}\n\x00,".encode() + b"x" * 200_000])
def test_a_file_that_is_no_text_is_refused(podtide: Run, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "usage.csv"
    file.write_bytes(content)
    answer = podtide("forecast", "--history", str(file))
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "say where the history is"),
        (("--history", "{file}", "--database", "sqlite:///x.db"), "name no subnet and no allocator"),
        (("blue", "--history", "{file}"), "name no subnet and no allocator"),
        (("--history", "{file}", "--at", "soon"), "'soon' does not match the format"),
        (
            ("--history", "{file}", "--at", "1999-01-01"),
            "no capacity on 1999-01-01 or before: give --capacity",
        ),
        (("--history", "{file}", "--capacity", "0"), "capacity 0 is too small"),
        (("--history", "{file}", "--lower", "0.9", "--upper", "0.8"), "do not make a band"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    podtide: Run, tmp_path: Path, given: tuple[str, ...], words: str
) -> None:
    file = a_file(tmp_path / "usage.csv", HEADER, *growing(10))
    answer = podtide("forecast", *(each.format(file=file) for each in given))
    assert (answer.status, answer.out) == (2, "")
    assert words in answer.err


QUICK = ("usual", "offset", "fraction", "seconds", "local")
"""Ways to write a time that are read quickly; "local" has another offset since the end of March."""
SUMMER_TIME = datetime(2026, 3, 29, 1, tzinfo=UTC)


def written(stamps: list[datetime], values: list[int], style: str) -> list[str]:
    def form(stamp: datetime) -> str:
        if style == "seconds":
            return str(int(stamp.timestamp()))
        if style == "local":
            ahead = timedelta(hours=2 if stamp >= SUMMER_TIME else 1)
            return stamp.astimezone(timezone(ahead)).isoformat()
        return stamp.strftime(
            {
                "usual": "%Y-%m-%dT%H:%M:%SZ",
                "offset": "%Y-%m-%d %H:%M:%S+00:00",
                "fraction": "%Y-%m-%dT%H:%M:%S.%fZ",
                "quoted": '"%Y-%m-%d %H:%M"',
            }[style]
        )

    return [f"{form(stamp)},1000,{value}" for stamp, value in zip(stamps, values, strict=True)]


@examples(30)
@given(st.lists(st.integers(0, 40 * 24), min_size=1, max_size=200), st.randoms(use_true_random=False))
def test_a_block_and_its_rows_say_the_same_however_they_are_written(hours: list[int], random: Random) -> None:
    """The quick way through a file and the careful one, against the plainest reading of it."""
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    stamps = [begin + timedelta(hours=hour) for hour in hours]
    values = [random.randrange(1_000) for _ in hours]
    expected: dict[date, int] = {}
    for stamp, value in zip(stamps, values, strict=True):
        expected[stamp.date()] = max(value, expected.get(stamp.date(), 0))
    once = dict(sorted(zip(stamps, values, strict=True)))
    rows = Counter(stamp.date() for stamp in once)
    for style in (*QUICK, "quoted"):
        assert dict(by_file(written(stamps, values, style)).days.reserved) == expected
        in_order = by_file(written(list(once), list(once.values()), style))
        assert (in_order.remarks, dict(in_order.points)) == ((), rows)


def by_file(lines: list[str]) -> UsageFile:
    with TemporaryDirectory() as directory:
        return read_usage_file(a_file(Path(directory) / "usage.csv", HEADER, *lines))


def test_a_long_file_is_read_in_blocks_and_an_error_names_its_line(tmp_path: Path) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    stamps = [begin + timedelta(minutes=minute) for minute in range(40_000)]
    lines = written(stamps, [minute % 700 for minute in range(40_000)], "usual")
    file = a_file(tmp_path / "usage.csv", HEADER, *lines)
    assert file.stat().st_size > 3 * (1 << 18)
    read = read_usage_file(file)
    assert [most for _, most in read.days.reserved] == [699] * 28
    assert sum(count for _, count in read.points) == 40_000
    assert read.days.capacities == tuple((day, 1000) for day, _ in read.days.reserved)
    lines[35_000] = lines[35_000].replace(",1000,", ",1000,x")
    with pytest.raises(InvalidInput, match=r"line 35002 of .* has 'x\d+' as reserved"):
        read_usage_file(a_file(file, HEADER, *lines))


@pytest.mark.parametrize("style", QUICK)
def test_a_file_of_any_usual_form_is_never_read_row_by_row(
    style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million rows take ten seconds so, and less than one in blocks."""
    monkeypatch.delattr("podtide.cli.forecast.usage_file._Days._add_rows")
    begin = datetime(2026, 3, 2, tzinfo=UTC)
    stamps = [begin + timedelta(minutes=minute) for minute in range(20_000)]
    read = by_file(written(stamps, [100] * len(stamps), style))
    assert sum(count for _, count in read.points) == len(stamps)


@pytest.mark.parametrize(
    "lines",
    [
        ["2026-03-02T16:00:00-10:00,9,3", "2026-03-02T17:00:00-01:00,9,2"],
        ["2026-03-02T15:00:00.00,9,2", "2026-03-02T16:00-10:00,9,3", "2026-03-02T17:00:00.00,9,2"],
        ["1000080000,9,3", "999996400,9,2"],
    ],
)
def test_times_in_the_order_of_their_texts_that_are_not_in_order_are_noticed(lines: list[str]) -> None:
    read = by_file(lines)
    assert [most for _, most in read.days.reserved] == [2, 3]
    assert read.remarks[0].startswith("1 row was out of order")


@pytest.mark.parametrize("style", QUICK)
def test_a_block_that_goes_back_behind_the_one_before_is_noticed(style: str) -> None:
    stamps = [datetime(2026, 3, 2, tzinfo=UTC) + timedelta(minutes=minute) for minute in range(20_000)]
    lines = written(stamps, [100] * len(stamps), style)
    in_a_block = -(-(1 << 18) // (len(lines[0]) + 1))
    read = by_file([*lines[10_000 : 10_000 + in_a_block], *lines[:10_000]])
    assert read.remarks[0].startswith("1 row was out of order")


def test_the_csv_of_podtide_subnet_history_is_a_history(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    after = recorded(url, 20)
    printed = podtide(
        "subnet", "history", "blue", "pods", "--since", "60d", "--step", "1d", "-o", "csv", "--database", url
    )
    assert printed.status == 0, printed.err
    file = tmp_path / "usage.csv"
    file.write_text(printed.out)
    by_csv = podtide("forecast", "--history", str(file), "--at", str(after)).out
    asked = podtide("forecast", "blue", "pods", "--database", url, "--at", str(after)).out
    assert by_csv == asked.removeprefix("blue/pods: ")


def test_a_day_with_fewer_rows_than_usual_is_taken_as_not_over(tmp_path: Path) -> None:
    stamps = [datetime(2026, 3, 2, tzinfo=UTC) + timedelta(hours=hour) for hour in range(24 * 10)]
    file = tmp_path / "usage.csv"
    full = read_usage_file(a_file(file, HEADER, *written(stamps, [5] * len(stamps), "usual")))
    assert full.day_after(date(2026, 11, 1)) == date(2026, 3, 12)
    assert full.day_after(date(2026, 3, 11)) == date(2026, 3, 11)
    cut = read_usage_file(a_file(file, HEADER, *written(stamps[:-3], [5] * (len(stamps) - 3), "usual")))
    assert cut.day_after(date(2026, 11, 1)) == date(2026, 3, 11)
    assert cut.day_after(date(2026, 1, 1)) == date(2026, 1, 1)


def recorded(url: str, days: int) -> date:
    """An allocator's database with the history of the last days, on each an address more. Returns the day after them."""

    async def record() -> date:
        clock = HandClock()
        clock.pass_by(time.time() - (days + 1) * 86_400 - clock.wall())
        async with await open_allocator(url, clock=clock, migrate=True) as store:
            await store.add_subnet(SubnetSpec(network="blue", name="pods", cidrs=("10.1.0.0/24",)))
            await store.add_subnet(SubnetSpec(network="red", name="pods", cidrs=("10.1.0.0/24",)))
            for day in range(days):
                await store.put_container(a_wish("a", 10 + day, day + 1))
                clock.pass_by(86_400)
        return day_of(clock.wall())

    return asyncio.run(record())


def test_an_allocators_history_is_asked_for_one_subnet_a_network_or_all(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    after = recorded(url, 20)
    where = ("--database", url, "--at", str(after))
    one = podtide("forecast", "blue", "pods", *where).out
    assert one.startswith("blue/pods: 253 addresses\n  as it is (reserved): 30 on ")
    assert ", +1.0 a day" in one
    assert "rests on the maxima of 20 days" in one
    assert podtide("forecast", "blue", *where).out == one
    whole = podtide("forecast", *where).out
    assert whole.startswith(one)
    assert "red/pods: 253 addresses\n" in whole
    (found,) = json.loads(podtide("forecast", "blue", "pods", *where, "-o", "json").out)
    last = after - timedelta(days=1)
    assert found["reserved"]["levels"][2]["expected"] == str(last + timedelta(days=253 - 30))


def test_thresholds_are_those_in_force_at_the_allocator_unless_others_are_named(
    podtide: Run, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    where = ("--database", url, "--at", str(recorded(url, 20)))

    def ask_for(cluster: str, lower: str, upper: str) -> None:
        async def write() -> None:
            async with await open_allocator(url, clock=SystemClock()) as allocator:
                bounds = Bounds(batch=16, buffer="0.5", lower=lower, upper=upper)
                await allocator.set_bounds("blue", "pods", cluster=cluster, bounds=bounds)

        asyncio.run(write())

    def levels(*asked: str) -> list[int]:
        (found,) = json.loads(podtide("forecast", "blue", "pods", *where, *asked, "-o", "json").out)
        return [each["addresses"] for each in found["reserved"]["levels"]]

    assert levels() == [203, 228, 253]
    ask_for("without-nodes", "0.1", "0.2")
    assert levels() == [203, 228, 253], "a cluster without containers in the subnet has no say"
    ask_for("east", "0.4", "0.6")
    assert levels() == [102, 152, 253]
    assert "  thresholds: 0.4 and 0.6 of them\n" in podtide("forecast", "blue", "pods", *where).out
    assert levels("--upper", "0.8") == [102, 203, 253]
    refused = podtide("forecast", "blue", "pods", *where, "--lower", "0.7")
    assert (refused.status, refused.out, refused.err.count("\n")) == (2, "", 1)


def test_an_allocator_without_such_subnets_is_said(podtide: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'subnets.db'}"
    recorded(url, 1)
    assert podtide("forecast", "green", "--database", url).out == "there is no subnet\n"
    missing = podtide("forecast", "blue", "none", "--database", url)
    assert (missing.status, missing.out) == (2, "")
