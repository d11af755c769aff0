"""`podtide plan replay`: figures side by side, in every form, and bad input in one sentence each."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from cli.conftest import Run
from podtide.cli.plan.replay.cluster import usual_speed
from podtide.cli.plan.replay.plot_panels import thinned
from podtide.simulation.replay.figures import ReplaySample

REPLAY = ("plan", "replay")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "pods.csv"
    file.write_text("second,pods,team\n0,2,blue\n30,9,blue\n60,4,blue\n")
    return file


def test_strategies_and_batches_stand_side_by_side_in_a_table(podtide: Run, trace: Path) -> None:
    outcome = podtide(*REPLAY, "--trace", str(trace), "--batch", "16", "--batch", "4", "--jobs", "1")
    assert outcome.status == 0, outcome.err
    about, empty, head, *rows = outcome.out.splitlines()
    assert about == (
        "pods.csv: 3 rows, 30s apart, 2 to 9 pods on 1 node; subnet 10.0.0.0/26, 61 addresses; seed 1; ignored, because "
        "there is a column 'pods': team"
    )
    assert (empty, head.split()[:4]) == ("", ["STRATEGY", "BATCH", "PODS", "DELAYED"])
    assert [row.split()[:3] for row in rows] == [
        [strategy, batch, "7"] for strategy in ("reactive", "fixed", "adaptive") for batch in ("4", "16")
    ]
    assert "podtide: adaptive, batch 16: 100 %" in outcome.err.splitlines()


def test_every_form_has_the_same_figures(podtide: Run, trace: Path, tmp_path: Path) -> None:
    asked = (*REPLAY, "--trace", str(trace), "--strategy", "adaptive", "--jobs", "1")
    raw, plot, picture = tmp_path / "raw.csv", tmp_path / "plot.html", tmp_path / "plot.png"
    document = json.loads(
        podtide(*asked, "-o", "json", "--raw", str(raw), "--plot", str(plot), "--plot", str(picture)).out
    )
    (row,) = csv.DictReader(io.StringIO(podtide(*asked, "-o", "csv").out))
    (run,) = document["runs"]
    assert {name: str(value) for name, value in run.items()} == row
    assert (document["load"]["subnet"], document["load"]["capacity"]) == ("10.0.0.0/26", 61)
    samples = list(csv.DictReader(io.StringIO(raw.read_text())))
    assert len(samples[0]) == len(ReplaySample.__struct_fields__) + 2
    assert [samples[-1][name] for name in ("strategy", "batch", "pods")] == ["adaptive", "16", "4"]
    assert samples[-1]["api_writes"] == row["api_writes"]
    assert picture.read_bytes().startswith(b"\x89PNG")
    stands_by_itself(plot.read_text())


def stands_by_itself(page: str) -> None:
    """Nothing in the page makes a browser load anything."""
    assert not re.search(r"<(link|img|iframe|script)[^>]+(src|href)=|@import|url\(", page)
    assert "Copyright (c) 2022 Leon Sorokin" in page
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert [run["name"] for run in data["runs"]] == ["adaptive, batch 16"]
    assert all(len(panel["values"][0]) == len(data["times"][0]) for panel in data["panels"])


def test_what_a_file_is_called_cannot_break_out_of_the_page(
    podtide: Run, trace: Path, tmp_path: Path
) -> None:
    odd = tmp_path / "<script>alert(1)<!--.csv"
    odd.write_text(trace.read_text())
    plot = tmp_path / "plot.html"
    asked = (*REPLAY, "--trace", str(odd), "--strategy", "fixed", "--plot", str(plot), "--jobs", "1")
    assert podtide(*asked).status == 0
    assert "<script>alert" not in plot.read_text()


def test_a_part_of_a_trace_is_replayed_scaled_and_on_given_nodes(podtide: Run, trace: Path) -> None:
    outcome = podtide(
        *(
            *REPLAY,
            "--trace",
            str(trace),
            "--strategy",
            "fixed",
            "--from",
            "30",
            "--scale",
            "2",
            "--nodes",
            "2",
        ),
        *("--subnet", "10.1.0.0/25", "--seed", "7", "--speed", "2", "--jobs", "1"),
    )
    assert outcome.out.startswith(
        "pods.csv: 2 rows, 30s apart, 8 to 18 pods on 2 nodes; subnet 10.1.0.0/25, 125 addresses; an hour of it is played in "
        "30 min (--speed 2); seed 7; "
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "say what is replayed: either --trace, such as --trace pods.csv, or --story"),
        (("--trace", "TRACE", "--story", "one-burst"), "say what is replayed: either --trace"),
        (("--trace", "none.csv"), "none.csv cannot be read: No such file or directory"),
        (
            ("--story", "none"),
            "--story none: there is no such file or story: give a file, or one of batch-in-one-step",
        ),
        (
            ("--story", "one-burst", "--nodes", "3"),
            "--nodes does not go with --story: its file says what happens",
        ),
        (("--story", "one-burst", "--from", "3"), "--from does not go with --story"),
        (("--trace", "TRACE", "--by-node", "--nodes", "3"), "'blue' is not a number of pods"),
        (("--trace", "TRACE", "--nodes", "0"), "0 nodes cannot be replayed: give --nodes, from 1 to 5000"),
        (
            ("--trace", "TRACE", "--nodes", "5001"),
            "--nodes=5001 is refused: give a whole number, at least 0 and at most",
        ),
        (
            ("--trace", "TRACE", "--nodes", "1", "--scale", "100"),
            "up to 900 pods, more than 1 nodes hold with 250 each",
        ),
        (("--trace", "TRACE", "--scale", "0"), "--scale is refused: give more than 0, such as 0.5 or 2"),
        (("--trace", "TRACE", "--subnet", "10.0.0.0/33"), "10.0.0.0/33"),
        (
            ("--trace", "TRACE", "--subnet", "10.0.0.0/30", "--nodes", "9"),
            "9 nodes need one each for themselves",
        ),
        (("--trace", "TRACE", "--batch", "0"), "--batch 0 is refused: a batch has at least 1 address"),
        (
            ("--trace", "TRACE", "--batch", "251"),
            "--batch=251 is refused: give a whole number, at least 0 and at most 250",
        ),
        (
            ("--trace", "TRACE", "--from", "noon"),
            "--from: 'noon' is not a time: give a number, as column 'second'",
        ),
        (("--trace", "TRACE", "--from", "90"), "the part of the trace between --from and --until has no row"),
        (
            ("--trace", "TRACE", "--plot", "plot.svg"),
            "--plot plot.svg: its name ends neither with .html nor with .png",
        ),
        (
            ("--trace", "TRACE", "--raw", "none/raw.csv"),
            "none/raw.csv cannot be written: the directory none does not exist",
        ),
        (("--trace", "TRACE", "--strategy", "none"), "'none' is not one of 'reactive', 'fixed', 'adaptive'"),
        (
            ("--trace", "TRACE", *(each for n in range(1, 31) for each in ("--batch", str(n)))),
            "90 runs are too many",
        ),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    podtide: Run, trace: Path, arguments: tuple[str, ...], words: str
) -> None:
    outcome = podtide(*REPLAY, *(str(trace) if each == "TRACE" else each for each in arguments))
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1), outcome.err
    assert words in outcome.err


def test_without_matplotlib_a_png_is_refused_before_anything_is_replayed(
    podtide: Run, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("podtide.cli.plan.replay.plots.find_spec", lambda _name: None)
    outcome = podtide(*REPLAY, "--trace", str(trace), "--plot", "plot.png")
    assert outcome.status == 2
    assert "matplotlib is not installed, and draws PNG: pip install 'podtide[plots]'" in outcome.err


@pytest.mark.parametrize(
    ("speed", "words"),
    [("31", "1 min 56 s (--speed 31)"), ("60", "1 min (--speed 60)"), ("1000", "3.6 s (--speed 1000)")],
)
def test_how_fast_a_trace_is_played_is_told_in_minutes_and_seconds(
    podtide: Run, trace: Path, speed: str, words: str
) -> None:
    outcome = podtide(
        *REPLAY, "--trace", str(trace), "--until", "60", "--scale", "1/9", "--speed", speed, "--jobs", "1"
    )
    assert f"an hour of it is played in {words}; " in outcome.out
    assert ", 0 to 1 pods on 1 node; " in outcome.out


@pytest.mark.parametrize(("days", "speed"), [(0.1, 1), (1, 1), (2, 2), (31, 31), (365, 60)])
def test_a_trace_of_more_than_a_day_is_played_in_a_day_but_not_too_fast(days: float, speed: float) -> None:
    assert usual_speed(days * 86_400) == speed


def test_of_many_samples_those_are_drawn_in_which_most_pods_wait() -> None:
    samples = [_sample(second, waiting=5 if second == 7 else 0) for second in range(10)]
    assert [sample.second for sample in thinned(samples, 5)] == [0, 2, 4, 7, 8]
    assert thinned(samples, 10) == samples


def _sample(second: int, waiting: int) -> ReplaySample:
    counts = dict.fromkeys(ReplaySample.__struct_fields__, 0)
    return ReplaySample(**{**counts, "second": float(second), "waiting": waiting})  # type: ignore[arg-type]  # by name
