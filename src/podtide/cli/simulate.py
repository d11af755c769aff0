"""`podtide simulate`: a whole cluster on virtual time, with faults, drawn from a seed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import click
import msgspec

from podtide.cli.output.formats import counted, is_document, output_option, show, table
from podtide.cli.shell.exit_status import ExitStatus
from podtide.cli.shell.known_names import complete_scenarios
from podtide.core.errors import InvalidInput
from podtide.runtime.foreign_json import UnreadableJson, decode_json
from podtide.simulation.faults.table import ALL, FAULTS, chosen_faults
from podtide.simulation.nodes.network_definitions import MOST_NETWORKS
from podtide.simulation.run.fault_plan import FaultPlan, fault_plan_for
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.shrinking import MOST_RUNS, Shrinking
from podtide.simulation.run.simulate import simulate as run
from podtide.simulation.scenario.document import Scenario
from podtide.simulation.scenario.playing import play
from podtide.simulation.scenario.reading import read_scenario
from podtide.simulation.scenario.shipped_scenarios import find_scenario

_SECONDS_PER_MINUTE = 60
_WIDTH = 110


def _list_of_faults() -> str:
    rows = [(name, (type(fault).__doc__ or "").splitlines()[0]) for name, fault in FAULTS.items()]
    return "\b\nFaults:\n" + "\n".join(f"  {row}" for row in table(rows))


@click.command(epilog=_list_of_faults())
@click.option("--seed", type=int, default=1, show_default=True, help="The seed of the whole run.")
@click.option(
    "--nodes", type=click.IntRange(1, 5000), default=5, show_default=True, help="The number of nodes."
)
@click.option(
    "--faults",
    metavar="none|all|NAME,…",
    default=ALL,
    show_default=True,
    help="Which faults may occur; they are listed below.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0.1, 24 * 60),
    default=3.0,
    show_default=True,
    help="How long pods are created and deleted and faults occur, in simulated minutes.",
)
@click.option(
    "--networks",
    type=click.IntRange(0, MOST_NETWORKS),
    default=0,
    show_default=True,
    help="The number of secondary networks of every pod.",
)
@click.option(
    "--placement",
    is_flag=True,
    help="Pods come without a node, and a scheduler places them by what Nodes publish.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Run the plan in this file, as a failed run printed it, instead of one drawn from a seed.",
)
@click.option(
    "--scenario",
    metavar="NAME|FILE",
    shell_complete=complete_scenarios,
    help="Play this scenario instead, by its name or its file, and check what it expects.",
)
@output_option
def simulate(  # noqa: PLR0913 - one argument per option
    *,
    seed: int,
    nodes: int,
    faults: str,
    minutes: float,
    networks: int,
    placement: bool,
    plan_file: Path | None,
    scenario: str | None,
    output: str,
) -> None:
    """Run a whole cluster on virtual time while things go wrong, and see whether anything breaks.

    The programs are those of production; allocator, controllers, agents and pods live in this process. After every
    step the invariants are checked; then the faults stop, and all must come to rest as it should. The same seed gives
    the same run, byte for byte. Exit status 1 means that an invariant was broken: then the run is made smaller as long
    as it still fails, and its plan, the life of the address in question and the end of its trace are shown. With
    --scenario, exit status 1 means that something was not as the file expects.
    """
    if scenario is not None:
        play_scenario(find_scenario(scenario, flag="--scenario"), output)
        return
    if plan_file is not None:
        plan = _read(plan_file)
    else:
        plan = fault_plan_for(
            seed,
            nodes=nodes,
            faults=chosen_faults(faults),
            trouble_seconds=minutes * _SECONDS_PER_MINUTE,
            networks=networks,
            placement=placement,
        )
    minutes = plan.trouble_seconds / _SECONDS_PER_MINUTE
    click.echo(f"podtide: seed {plan.seed}: {plan.nodes} nodes, {minutes:g} minutes of faults", err=True)
    report = run(plan)
    if report.is_good:
        show(output, report, _good(report))
        return
    click.echo(
        f"podtide: it failed: at most {MOST_RUNS} smaller plans are tried, each in about the time of this run",
        err=True,
    )
    shrunk = Shrinking(report, run).shrink()
    show(output, {"run": report, "shrunk": shrunk}, _bad(report, shrunk))
    sys.exit(ExitStatus.FAILED)


def _read(path: Path) -> FaultPlan:
    try:
        return decode_json(path.read_bytes(), FaultPlan)
    except UnreadableJson as error:
        raise InvalidInput(f"{path} holds no plan of a run: {error}") from error


def _good(report: RunReport) -> Iterator[str]:
    yield from _what_happened(report)
    yield f"audit: clean after every one of {report.steps} steps, and all came to rest"


def _bad(report: RunReport, shrunk: RunReport) -> Iterator[str]:
    yield from _what_happened(report)
    yield f"BROKEN: {report.failure}"
    yield ""
    plan = shrunk.plan
    yield (
        f"It fails as well with {plan.nodes} nodes, {len(plan.line_faults)} faults on the lines and {len(plan.mishaps)} "
        f"mishaps in {plan.trouble_seconds:g} s: {shrunk.failure}"
    )
    yield "Its plan, for --plan:"
    yield msgspec.json.encode(plan).decode()
    if shrunk.last_states:
        yield ""
        yield "What happened to the address or slice in question:"
        yield from shrunk.last_states
    if shrunk.last_entries:
        yield ""
        yield "How its trace ends:"
        yield from shrunk.last_entries


def _what_happened(report: RunReport) -> Iterator[str]:
    plan = report.plan
    attached = f", {plan.networks} secondary networks" if plan.networks else ""
    yield (
        f"seed {plan.seed}: {plan.nodes} nodes in {plan.subnet}{attached}, batch {plan.batch}, "
        f"{plan.controllers} controllers, {report.pods} pods, {report.simulated_seconds:.0f} simulated seconds"
    )
    yield f"trace: {report.entries} entries, {report.trace_hash}"
    struck = ", ".join(f"{name} {times}" for name, times in report.faults.items())
    yield f"faults: {struck or 'none'}"
    if (placed := report.placement) is not None:
        yield (
            f"placement: bound {placed.bound} times; at one time at most {placed.most_hanging} pods had a node and no address, "
            f"{placed.most_unplaced} had no node; {placed.node_writes} writes of Nodes"
        )


def play_scenario(file: Path, output: str) -> None:
    """Play a scenario file; exit with status 1 at the first thing that is not as it expects."""
    scenario = read_scenario(file)
    if is_document(output):
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
        sys.exit(ExitStatus.FAILED)


def _introduce(scenario: Scenario) -> None:
    click.echo(scenario.title)
    for line in wrap(scenario.why, _WIDTH):
        click.echo(f"  {line}")
