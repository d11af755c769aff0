"""A trace from a file: what is odd is put right and said so, or refused in one sentence that says what to do."""

from pathlib import Path

import pytest

from podtide.core.errors import InvalidInput
from podtide.simulation.replay.pod_trace import PodTrace
from podtide.simulation.replay.trace_file import parse_trace, read_time, read_trace


def parsed(*lines: str, by_node: bool = False) -> PodTrace:
    return parse_trace("pods.csv", "\n".join(lines), by_node=by_node)


def test_hours_and_pods_are_read_as_they_stand() -> None:
    trace = parsed("hour,pods", "0,5", "1,7", "2,6")
    assert (trace.times, trace.totals, trace.step_seconds) == ((0.0, 3600.0, 7200.0), (5, 7, 6), 3600.0)
    assert (trace.seconds, trace.peak, trace.notes) == (3 * 3600.0, 7, ())


@pytest.mark.parametrize(
    ("header", "first", "second", "step"),
    [
        ("timestamp,value", "1730419200", "1730419260", 60.0),
        ("timestamp,value", "1730419200.5", "1730419215.5", 15.0),
        ("time,pods", "1730419200000", "1730419260000", 60.0),
        ("time,pods", "2026-11-01T00:00:00Z", "2026-11-01T00:05:00Z", 300.0),
        ("date,pods", "2026-11-01", "2026-11-02", 86400.0),
        ("datetime,count", "2026-11-01 00:00:00", "2026-11-01 01:00:00+00:00", 3600.0),
        ("Minutes,instances", "0", "15", 900.0),
        ("days,pods", "0.5", "1", 43200.0),
        ("second;pods", "0", "10", 10.0),
        ("seconds\tpods", "0", "10", 10.0),
    ],
)
def test_times_are_numbers_of_their_columns_unit_or_unix_times_or_dates(
    header: str, first: str, second: str, step: float
) -> None:
    between = next(each for each in ",;\t" if each in header)
    trace = parsed(header, f"{first}{between}1", f"{second}{between}2")
    assert trace.step_seconds == pytest.approx(step)


def test_services_are_added_up_and_that_is_said() -> None:
    trace = parsed("hour,web,queue", "0,5,2", "1,7,")
    assert trace.totals == (7, 9)
    assert trace.notes == (
        "the 2 columns beside the time are added up",
        "1 row with empty cells, which have the count before them",
    )


def test_by_node_every_column_is_a_node() -> None:
    trace = parsed("hour,node-1,pods", "0,5,2", "1,7,3", by_node=True)
    assert (trace.columns, trace.counts) == (("node-1", "pods"), ((5, 2), (7, 3)))


@pytest.mark.parametrize(
    ("lines", "totals", "note"),
    [
        (("hour,pods,team", "0,5,a", "1,7,b"), (5, 7), "ignored, because there is a column 'pods': team"),
        (
            ("hour,pods", "1,7", "0,5", "2,6"),
            (5, 7, 6),
            "1 row out of order: sorted by time",
        ),
        (("hour,pods", "0,5", "0,5", "1,7"), (5, 7), "1 row written twice: dropped"),
        (
            ("hour,pods", "0,5", "1,7", "2,8", "6,6"),
            (5, 7, 8, 6),
            "1 gap, the longest of 4 steps: the count before it holds",
        ),
        (("hour,pods", "0,NaN", "1,7", "2,8"), (7, 8), "1 row before the first count, left out"),
        (
            ("hour,pods", "0,4.5", "1,7", "2,7.4"),
            (5, 7, 7),
            "2 rows with fractions of pods, rounded to whole ones",
        ),
    ],
)
def test_what_is_odd_is_put_right_and_said(
    lines: tuple[str, ...], totals: tuple[int, ...], note: str
) -> None:
    trace = parsed(*lines)
    assert (trace.totals, trace.notes) == (totals, (note,))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (("",), "pods.csv is empty: give a header such as hour,pods, and a row for each hour"),
        (("hour,pods",), "pods.csv has 0 rows with counts: a trace has at least 2"),
        (("hour,pods", "0,5"), "pods.csv has 1 row with counts: a trace has at least 2"),
        (("0,5", "1,6"), "pods.csv:1: a trace has one column with the time, and this has none: name it"),
        (("date,hour,pods", "2026-11-01,0,5"), "this has date and hour: name it as one of time, timestamp"),
        (("hour", "0"), "pods.csv:1: there is no column with pods beside the time: name it pods"),
        (("hour,pods,pods", "0,1,1"), "pods.csv:1: column 'pods' is there more than once"),
        (
            ("hour,pods,value", "0,1,1"),
            "pods.csv:1: pods and value may both be the pods: leave one of them out",
        ),
        (("hour,pods", "0,5,6"), "pods.csv:2: 3 cells, and the header has 2: give one for each column"),
        (("hour,pods", "noon,5"), "pods.csv:2: 'noon' is not a time: give a number"),
        (
            ("time,pods", "noon,5"),
            "pods.csv:2: 'noon' is not a time: give a date such as 2026-11-01T06:00:00Z",
        ),
        (("hour,pods", "0,-5"), "pods.csv:2: -5 pods cannot be: give a number from 0 to 1000000"),
        (("hour,pods", "0,inf"), "pods.csv:2: inf pods cannot be"),
        (
            ("hour,web,team", "0,5,blue"),
            "pods.csv:2: 'blue' is not a number of pods: give one, or leave the cell",
        ),
        (
            ("hour,pods", "0,5", "1,6", "1,7"),
            "pods.csv:4: line 3 has other counts for the same time: leave one",
        ),
        (
            ("second,pods", "0,5", "1,6", "2,7", "1730419200,8"),
            "pods.csv:5: the clock jumps by 20,028 days after line 4, more than the rest of the trace: correct the times",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(lines: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        parsed(*lines)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_trace(tmp_path / "none.csv")
    (tmp_path / "some.csv").write_bytes(b"hour,pods\n0,\xff\n")
    with pytest.raises(InvalidInput, match="is not text in UTF-8"):
        read_trace(tmp_path / "some.csv")


def test_a_time_for_an_option_is_written_as_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    file.write_text("hour,pods\n0,1\n1,2\n")
    assert read_time(file, "--from", "1.5") == 5400.0
    with pytest.raises(
        InvalidInput, match="--from: 'noon' is not a time: give a number, as column 'hour' of"
    ):
        read_time(file, "--from", "noon")
