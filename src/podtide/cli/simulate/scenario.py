"""`podtide simulate --scenario FILE`: the story of a scenario file, told as it is played."""

import sys
from pathlib import Path
from textwrap import wrap

import click

from podtide.cli.output import counted, show
from podtide.simulation.scenario.document import Scenario
from podtide.simulation.scenario.playing import play
from podtide.simulation.scenario.reading import read_scenario

_UNMET = 1
_WIDTH = 110


def play_scenario(file: Path, output: str) -> None:
    """Play it; exit with status 1 at the first thing that is not as the file says."""
    scenario = read_scenario(file)
    if output == "json":
        outcome = play(scenario, lambda _line: None)
    else:
        _introduce(scenario)
        outcome = play(scenario, click.echo)
    words = (
        f"NOT AS EXPECTED: {outcome.failure}"
        if outcome.failure
        else f"{counted(outcome.expectations, 'expectation', 'expectations')} met in "
        f"{outcome.simulated_seconds:.0f} simulated seconds; audit: clean, {outcome.audits} times"
    )
    show(output, outcome, [words])
    if outcome.failure:
        sys.exit(_UNMET)


def _introduce(scenario: Scenario) -> None:
    click.echo(scenario.title)
    for line in wrap(scenario.why, _WIDTH):
        click.echo(f"  {line}")
