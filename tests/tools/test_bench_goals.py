"""The ledger of the benchmarks: goals, the figures recorded last, and which run fails."""

import importlib.util
import json
import tomllib
from pathlib import Path

import pytest

from bench_goals import Ledger, Verdict, number_in

ROOT = Path(__file__).parents[2]
GOALS = """
[core]
"counted" = { kind = "count", at_most = 10 }
"ratio" = { kind = "ratio", at_least = 0.8 }
"timed" = { kind = "time", at_most = 100 }
"""


def a_ledger(directory: Path, recorded: dict[str, float] | None = None) -> Ledger:
    (directory / "goals.toml").write_text(GOALS)
    if recorded is not None:
        (directory / "recorded.json").write_text(json.dumps({"core": recorded}))
    return Ledger(directory)


@pytest.mark.parametrize(
    ("figure", "number"),
    [
        ("1,260/s (20,200 IPs/s)", 1260.0),
        ("0.62", 0.62),
        ("12 ms", 12.0),
        ("-", None),
        ("not measured", None),
    ],
)
def test_the_number_of_a_figure_is_its_first(figure: str, number: float | None) -> None:
    assert number_in(figure) == number


def test_a_figure_without_a_goal_is_printed_alone(tmp_path: Path) -> None:
    assert a_ledger(tmp_path).judge("core", "anything", "5/s") == Verdict()


@pytest.mark.parametrize(
    ("label", "figure", "words"),
    [
        ("counted", "10", "goal ≤ 10: met, none recorded"),
        ("counted", "11", "goal ≤ 10: missed, none recorded"),
        ("ratio", "0.80", "goal ≥ 0.8: met, none recorded"),
        ("ratio", "0.79", "goal ≥ 0.8: missed, none recorded"),
        ("timed", "-", "goal ≤ 100: not measured"),
    ],
)
def test_a_goal_is_met_or_missed(tmp_path: Path, label: str, figure: str, words: str) -> None:
    assert a_ledger(tmp_path).judge("core", label, figure) == Verdict(words)


@pytest.mark.parametrize(
    ("label", "recorded", "figure", "fails"),
    [
        ("counted", 8, "10", False),
        ("counted", 8, "11", True),
        ("counted", 0, "1", True),
        ("ratio", 1.0, "0.8", False),
        ("ratio", 1.0, "0.79", True),
        ("ratio", 1.0, "3", False),
        ("timed", 10, "1000 ms", False),
    ],
)
def test_a_count_or_ratio_a_quarter_worse_than_recorded_fails(
    tmp_path: Path, label: str, recorded: float, figure: str, fails: bool
) -> None:
    verdict = a_ledger(tmp_path, {label: recorded}).judge("core", label, figure)
    assert verdict.fails is fails
    assert ("WORSE" in verdict.words) is fails


def test_what_is_recorded_is_compared_with_the_next_time_and_the_rest_stays(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path, {"timed": 50})
    ledger.judge("core", "counted", "4")
    ledger.record()
    again = Ledger(tmp_path)
    assert again.judge("core", "counted", "5").words == "goal ≤ 10: met, 1.25 of recorded"
    assert again.judge("core", "timed", "25 ms").words == "goal ≤ 100: met, 0.50 of recorded"


def test_a_goal_whose_label_no_benchmark_prints_is_named(tmp_path: Path) -> None:
    ledger = a_ledger(tmp_path)
    ledger.judge("core", "counted", "4")
    assert ledger.unknown("core") == ("ratio", "timed")


@pytest.mark.parametrize("goal", ['{ kind = "ratio" }', '{ kind = "ratio", at_most = 1, at_least = 1 }'])
def test_a_goal_has_one_direction(tmp_path: Path, goal: str) -> None:
    (tmp_path / "goals.toml").write_text(f"[core]\nratio = {goal}\n")
    with pytest.raises(ValueError, match="either at_most or at_least"):
        Ledger(tmp_path)


@pytest.mark.parametrize(("figure", "status"), [("7", 0), ("13", 1)])
def test_a_run_prints_the_verdict_and_fails_by_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    figure: str,
    status: int,
) -> None:
    class Counting:
        PART = "core"

        @staticmethod
        def measure() -> list[tuple[str, str]]:
            return [("counted", figure)]

    spec = importlib.util.spec_from_file_location("bench_run", ROOT / "bench" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(run)
    monkeypatch.setattr(run, "benchmarks", lambda: [Counting])
    assert run.run("core", a_ledger(tmp_path, {"counted": 10})) == status
    printed = capsys.readouterr()
    assert f"{float(figure) / 10:.2f} of recorded" in printed.out
    assert ("a quarter worse than recorded: core: counted" in printed.err) is bool(status)


def test_the_goals_of_this_repository_are_readable_and_their_parts_have_benchmarks() -> None:
    directory = ROOT / "bench" / "data"
    Ledger(directory)
    parts = tomllib.loads((directory / "goals.toml").read_text())
    sources = "".join(path.read_text() for path in (ROOT / "bench").glob("*.py"))
    assert all(f'PART = "{part}"' in sources for part in parts)
