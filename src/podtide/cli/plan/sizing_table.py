"""The answer of `podtide plan` as a table, as JSON and as CSV: the same rows in each."""

import csv
import sys
from collections.abc import Iterator

from msgspec import Struct, to_builtins

from podtide.cli.output.formats import counted, show, table
from podtide.cli.output.screen_width import fitted, folded, screen_width
from podtide.core.plan.node_loads import PlannedLoad
from podtide.core.plan.sizing import BatchPlan, PlannedHolding, PlanQuestion, PlanStrategy
from podtide.core.subnet.count_text import capacity_text, count_text
from podtide.core.subnet.demand_by_batch import ReservedRange

_COLUMNS = ("STRATEGY", "BATCH", "AT REST", "AT WORST", "BATCH THEN", "EVERY POD", "SMALLEST")


class SizingAnswer(Struct, frozen=True):
    """The question, a plan for each strategy and batch, and the advice."""

    question: PlanQuestion
    plans: tuple[BatchPlan, ...]
    advice: str
    cidrs: tuple[str, ...]


class SizingRow(Struct, frozen=True, kw_only=True):
    """One strategy with one batch, for programs. Shares are of the subnet's capacity, in percent, rounded down to a tenth."""

    strategy: str
    batch: int
    at_rest_least: int
    at_rest_most: int
    at_rest_share: float | None
    at_rest_pods: int
    at_rest_served: int
    at_worst_least: int
    at_worst_most: int
    at_worst_share: float | None
    at_worst_pods: int
    at_worst_served: int
    at_worst_batch: int
    at_worst_exhausted: bool
    at_worst_starved: bool
    every_pod: bool
    smallest_prefix: int | None


def show_sizing(output: str, answer: SizingAnswer) -> None:
    """Print the answer in the form that was asked for."""
    rows = [_row(plan, answer.question.capacity) for plan in answer.plans]
    if output == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(SizingRow.__struct_fields__)
        writer.writerows(["" if cell is None else cell for cell in to_builtins(row).values()] for row in rows)
        return
    question = answer.question
    document = {
        "rest": _counts(question.rest),
        "worst": _counts(question.worst),
        "subnet": {"cidrs": answer.cidrs, "capacity": question.capacity} if answer.cidrs else None,
        "plans": rows,
        "advice": answer.advice,
    }
    show(output, document, _lines(answer))


def _row(plan: BatchPlan, capacity: int | None) -> SizingRow:
    rest, worst, reserved = plan.rest, plan.worst, plan.reserved_at_worst
    return SizingRow(
        strategy=plan.strategy,
        batch=plan.batch,
        at_rest_least=rest.reserved.least,
        at_rest_most=rest.reserved.most,
        at_rest_share=_share(rest.reserved.most, capacity),
        at_rest_pods=rest.pods,
        at_rest_served=rest.served,
        at_worst_least=reserved.least,
        at_worst_most=reserved.most,
        at_worst_share=_share(reserved.most, capacity),
        at_worst_pods=worst.pods,
        at_worst_served=worst.served,
        at_worst_batch=worst.batch,
        at_worst_exhausted=worst.exhausted,
        at_worst_starved=worst.starved,
        every_pod=rest.serves_every_pod and worst.serves_every_pod,
        smallest_prefix=plan.smallest_prefix,
    )


def _share(reserved: int, capacity: int | None) -> float | None:
    return None if capacity is None else 1000 * reserved // capacity / 10


def _counts(load: PlannedLoad) -> dict[str, int]:
    return {"nodes": load.nodes, "pods": load.pods, "gone_nodes": sum(load.gone.values())}


def _lines(answer: SizingAnswer) -> Iterator[str]:
    question = answer.question
    yield f"at rest:  {_load_text(question.rest)}"
    yield f"at worst: {_load_text(question.worst)}"
    if question.capacity is not None:
        yield f"subnet:   {capacity_text(question.capacity, answer.cidrs)}"
    yield ""
    rows = [_COLUMNS, *(_cells(plan, question.capacity) for plan in answer.plans)]
    yield from table(fitted(rows, screen_width(), dispensable=("BATCH THEN",)))
    yield ""
    yield from folded("", "", answer.advice, screen_width())


def _load_text(load: PlannedLoad) -> str:
    words = f"{counted(load.pods, 'pod', 'pods')} on {counted(load.nodes, 'node', 'nodes')}"
    if gone := sum(load.gone.values()):
        words += (
            f"; {counted(gone, 'node that is gone keeps its', 'nodes that are gone keep their')} addresses"
        )
    return words


def _cells(plan: BatchPlan, capacity: int | None) -> tuple[str, ...]:
    return (
        plan.strategy,
        _batch_text(plan, plan.batch),
        _reserved_text(plan.rest.reserved, capacity),
        _reserved_text(plan.reserved_at_worst, capacity),
        f"{plan.worst.batch}, starved" if plan.worst.starved else _batch_text(plan, plan.worst.batch),
        _served_text(plan.rest, plan.worst),
        "-" if plan.smallest_prefix is None else f"/{plan.smallest_prefix}",
    )


def _batch_text(plan: BatchPlan, batch: int) -> str:
    return "-" if plan.strategy is PlanStrategy.WARM else str(batch)


def _reserved_text(reserved: ReservedRange, capacity: int | None) -> str:
    words = count_text(reserved.most)
    if reserved.least != reserved.most:
        words = f"{count_text(reserved.least)}…{words}"
    return words if capacity is None else f"{words} ({100 * reserved.most // capacity} %)"


def _served_text(rest: PlannedHolding, worst: PlannedHolding) -> str:
    if not rest.serves_every_pod:
        return f"no: {count_text(rest.served)} of {count_text(rest.pods)} at rest"
    if not worst.serves_every_pod:
        return f"no: {count_text(worst.served)} of {count_text(worst.pods)} at worst"
    return "yes"
