"""`podtide plan replay`: a trace of pods, or a story, on virtual time by the production programs."""

import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from podtide.cli.options.numbers import BoundedCount, FractionType
from podtide.cli.output.formats import formats_option
from podtide.cli.plan.replay.answer import ReplayAnswer, show_answer, write_raw
from podtide.cli.plan.replay.cluster import (
    MOST_NODES,
    ReplayCluster,
    described_story,
    described_trace,
    trace_load,
)
from podtide.cli.plan.replay.plots import check_plots, draw_plots
from podtide.cli.plan.replay.progress import progress_shown
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cli.shell.known_names import complete_scenarios
from podtide.core.errors import InvalidInput
from podtide.core.subnet.scaler import DEFAULT_BATCH, DEFAULT_MAX_IPS
from podtide.simulation.replay.pod_trace import part_of, scaled
from podtide.simulation.replay.processes import ReplayInterrupted, ReplayRun, replay_all, usable_cores
from podtide.simulation.replay.story_replay import StoryLoad, batch_of, find_story
from podtide.simulation.replay.trace_file import read_time, read_trace
from podtide.simulation.strategies import STRATEGIES

if TYPE_CHECKING:
    from podtide.simulation.replay.trace_replay import TraceLoad

_MOST_RUNS = 64
_MOST_JOBS = 256
_OF_A_TRACE = (
    "by_node",
    "nodes",
    "subnet",
    "scale",
    "seed",
    "since",
    "until",
    "speed",
    "at_once",
)
"""Options that a story has its own answers to."""


@click.command()
@click.option(
    "--trace",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A CSV file: a time and pods in each row.",
)
@click.option(
    "--story",
    metavar="NAME|FILE",
    shell_complete=complete_scenarios,
    help="A story of scenarios/stories, or another scenario file.",
)
@click.option("--by-node", is_flag=True, help="Each column beside the time is a node with its pods.")
@click.option(
    "--nodes",
    type=BoundedCount(MOST_NODES),
    help="How many nodes pods are spread over.  [default: 1 for 30 pods]",
)
@click.option(
    "--subnet",
    metavar="CIDR",
    help="The subnet.  [default: the smallest in which the largest batch has room]",
)
@click.option(
    "--batch",
    "batches",
    type=BoundedCount(DEFAULT_MAX_IPS),
    multiple=True,
    help="A batch to compare; may be repeated.  [default: 16, or the story's]",
)
@click.option(
    "--strategy",
    "strategies",
    type=click.Choice(list(STRATEGIES)),
    multiple=True,
    help="A way to size nodes' pools; may be repeated.  [default: all]",
)
@click.option(
    "--scale", type=FractionType(), default=Fraction(1), show_default="1", help="Multiplies every count."
)
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of all random choices.")
@click.option("--from", "since", metavar="TIME", help="Begin at this time, written as in the trace.")
@click.option("--until", metavar="TIME", help="End before this time, written as in the trace.")
@click.option(
    "--speed",
    type=click.FloatRange(1, 3600),
    help="How many seconds of the trace pass in one of the programs'.  [default: such that it takes a day, from 1 to 60]",
)
@click.option(
    "--at-once", is_flag=True, help="Let a row's change happen at its time, not spread over a step."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, _MOST_JOBS),
    help="How many runs at a time.  [default: one for each core]",
)
@click.option(
    "--raw",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.csv",
    help="Write the samples of all runs.",
)
@click.option(
    "--plot",
    "plots",
    type=click.Path(dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE.html|FILE.png",
    help="Draw the runs over time; may be repeated.",
)
@formats_option("text", "json", "yaml", "csv", about="A table for people; JSON, YAML or CSV for programs.")
@click.pass_context
def replay(  # noqa: PLR0913 - one argument per option
    context: click.Context,
    *,
    trace: Path | None,
    story: str | None,
    by_node: bool,
    nodes: int | None,
    subnet: str | None,
    batches: tuple[int, ...],
    strategies: tuple[str, ...],
    scale: Fraction,
    seed: int,
    since: str | None,
    until: str | None,
    speed: float | None,
    at_once: bool,
    jobs: int | None,
    raw: Path | None,
    plots: tuple[Path, ...],
    output: str,
) -> None:
    """Replay a trace of pods, or a story, and show which pods wait and what lies idle, by batch and strategy.

    Agents, controller and allocator are the programs of production, on virtual time. The same seed gives the same figures.
    """
    if (trace is None) == (story is None):
        raise InvalidInput("say what is replayed: either --trace, such as --trace pods.csv, or --story")
    if 0 in batches:
        raise InvalidInput("--batch 0 is refused: a batch has at least 1 address")
    check_plots(plots)
    check_directories([*plots, *([raw] if raw else [])])
    load: TraceLoad | StoryLoad
    if trace is not None:
        read = read_trace(trace, by_node=by_node)
        read = part_of(
            read,
            None if since is None else read_time(trace, "--from", since),
            None if until is None else read_time(trace, "--until", until),
        )
        cluster = ReplayCluster(
            nodes=nodes, subnet=subnet, seed=seed, speed=speed, at_once=at_once, by_node=by_node
        )
        sizes = sorted(set(batches)) or [DEFAULT_BATCH]
        load = trace_load(scaled(read, _positive(scale)), cluster, max(sizes))
        about = described_trace(trace, load)
    else:
        assert story is not None  # one of the two is given
        _refuse_options_of_a_trace(context)
        load = StoryLoad(find_story(story))
        sizes = sorted(set(batches)) or [batch_of(load)]
        about = described_story(load)
    runs = [
        ReplayRun(strategy, batch, load)
        for strategy in STRATEGIES
        for batch in sizes
        if not strategies or strategy in strategies
    ]
    if len(runs) > _MOST_RUNS:
        raise InvalidInput(
            f"{len(runs)} runs are too many: give fewer batches, so that there are {_MOST_RUNS} or fewer"
        )
    lost = None
    try:
        with progress_shown(runs) as progress:
            outcomes = tuple(replay_all(runs, jobs or usable_cores(), progress))
    except ReplayInterrupted as interrupted:
        outcomes, lost = interrupted.outcomes, interrupted
    if outcomes:
        answer = ReplayAnswer(about, outcomes)
        if raw is not None:
            write_raw(raw, answer)
        draw_plots(plots, answer)
        show_answer(output, answer)
    if lost is not None:
        click.echo(f"podtide: interrupted: {lost}; the others are lost", err=True)
        sys.exit(ExitStatus.INTERRUPTED)


def check_directories(files: list[Path]) -> None:
    """Refuse a file that could not be written, before minutes are spent on what it should hold."""
    for file in files:
        if not file.parent.is_dir():
            raise InvalidInput(f"{file} cannot be written: the directory {file.parent} does not exist")


def _positive(scale: Fraction) -> Fraction:
    if scale <= 0:
        raise InvalidInput("--scale is refused: give more than 0, such as 0.5 or 2")
    return scale


def _refuse_options_of_a_trace(context: click.Context) -> None:
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and option.name in _OF_A_TRACE:
            raise InvalidInput(
                f"{option.opts[0]} does not go with --story: its file says what happens, and where"
            )
