"""The answer of `podtide plan fit` in words and as JSON: whether it fits, what gives way, and what would make room."""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from podtide.cli.output.formats import counted
from podtide.cli.plan.subnet_now import SubnetNow
from podtide.cli.plan.workloads import CountedWorkload
from podtide.core.plan.fit import AddressBounds, FitAnswer, FitQuestion, FitVerdict, decide_fit
from podtide.core.plan.prefix_capacity import smallest_prefix
from podtide.core.subnet.count_text import count_text


class PlacedWorkload(Struct, frozen=True, kw_only=True):
    """A workload, and its pods on the nodes there are."""

    workload: CountedWorkload
    at_rest: int
    at_once: int
    """While it rolls out."""
    running: int
    """Pods of it that have an address already."""

    @property
    def coming(self) -> int:
        """Pods that need another address."""
        return max(0, self.at_once - self.running)


class FitReport(Struct, frozen=True, kw_only=True):
    """Question and answer."""

    now: SubnetNow
    workloads: tuple[PlacedWorkload, ...]
    ignored: dict[str, int]
    extra_pods: int
    question: FitQuestion
    answer: FitAnswer

    @property
    def reserved(self) -> int:
        """R, as the allocator has it, or as it would be at rest."""
        return self.answer.before.reserved if self.now.reserved is None else self.now.reserved

    @property
    def surge(self) -> int:
        """How many of the new pods there are only while workloads roll out."""
        steady = sum(max(0, each.at_rest - each.running) for each in self.workloads)
        return self.question.pods - self.extra_pods - steady

    @property
    def fits_at_rest(self) -> bool:
        """Whether the pods fit once everything is rolled out."""
        steady = replace(self.question, pods=self.question.pods - self.surge)
        return decide_fit(steady).verdict is FitVerdict.FITS

    @property
    def addition(self) -> int | None:
        """The prefix length of the smallest CIDR that has what is missing; None where nothing is."""
        missing = self.answer.missing.most
        return smallest_prefix(missing, self.now.address_bits) if missing else None


def document_of(report: FitReport) -> dict[str, object]:
    """The report for programs."""
    answer, question = report.answer, report.question
    return {
        "verdict": answer.verdict,
        "fits": answer.verdict is FitVerdict.FITS,
        "fits_at_rest": report.fits_at_rest,
        "subnet": report.now.name,
        "capacity": question.capacity,
        "reserved": report.reserved,
        "new_pods": question.pods,
        "new_pods_of_rollouts": report.surge,
        "new_nodes": question.nodes,
        "needed": answer.needed,
        "missing": answer.missing,
        "room": answer.room,
        "pods_without_node": answer.without_place,
        "before": {
            "batch": answer.before.scaler.batch,
            "exhausted": answer.before.exhausted,
            "starved": answer.before.starved,
        },
        "after": answer.after,
        "first_to_give_way": answer.first,
        "add_prefix": report.addition,
        "workloads": [
            {
                "kind": each.workload.kind,
                "namespace": each.workload.namespace,
                "name": each.workload.name,
                "pods": each.at_rest,
                "pods_at_once": each.at_once,
                "running": each.running,
                "host_network": each.workload.host_network,
            }
            for each in report.workloads
        ],
        "ignored": report.ignored,
        "explanation": _verdict(report),
    }


def lines_of(report: FitReport) -> Iterator[str]:
    """The report for people, the verdict first."""
    yield _verdict(report)
    yield from (f"  {_workload_text(each)}" for each in report.workloads)
    if report.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.ignored.items()))
        yield f"  ignored, because they make no pods: {kinds}"
    yield f"  now: {_now(report)}"
    yield f"  then: {_then(report)}"
    yield f"  first to give way: {_first(report)}"
    lowest = report.now.bounds.lowest
    if report.answer.after.least_batch < lowest:
        yield f"  the batch is to be {lowest} or more, so that a smaller one is in force only after pods have waited: allow it before"
    if report.answer.verdict is not FitVerdict.FITS:
        yield f"  to make room: {_remedy(report)}"


def _verdict(report: FitReport) -> str:
    answer, question, name = report.answer, report.question, report.now.name
    coming = counted(question.pods, "pod", "pods")
    if report.surge:
        coming += f" ({report.surge} of them while rolling out)"
    if question.nodes:
        coming += f" and {counted(question.nodes, 'node', 'nodes')}"
    needed = f"at least {_bounds(answer.needed)} of {count_text(question.capacity)} addresses"
    if answer.verdict is FitVerdict.FITS:
        return f"fits: {coming} more in {name} need {needed}"
    if answer.without_place:
        return f"does not fit: {answer.without_place} of {coming} find no node that may have more addresses"
    if answer.verdict is FitVerdict.UNCERTAIN:
        return f"not certain: {coming} more in {name} need {needed}, by how many pods its nodes have"
    return f"does not fit: {coming} more in {name} need {needed}: {_bounds(answer.missing)} missing, {_bounds(answer.room)} pods fit"


def _workload_text(placed: PlacedWorkload) -> str:
    workload = placed.workload
    name = f"{workload.kind} {workload.namespace + '/' if workload.namespace else ''}{workload.name}"
    if workload.host_network:
        return f"{name}: on the host network, no address"
    words = f"{name}: {counted(placed.at_rest, 'pod', 'pods')}"
    if workload.per_node:
        words += ", one on each node"
    if extra := placed.at_once - placed.at_rest:
        words += f", and {extra} more while it rolls out"
    if placed.running:
        words += f"; {counted(placed.running, 'runs', 'run')} already"
    return words


def _now(report: FitReport) -> str:
    before = report.answer.before
    words = (
        f"batch {before.scaler.batch}, {report.reserved} of {count_text(report.question.capacity)} reserved"
    )
    return f"{words}; starved" if before.starved else f"{words}; exhausted" if before.exhausted else words


def _then(report: FitReport) -> str:
    after = report.answer.after
    batch = str(after.least_batch)
    if after.most_batch != after.least_batch:
        batch += f" to {after.most_batch}, by where the pods land"
    words = f"batch {batch}"
    certainty = "" if after.is_certain else "it may be "
    if after.may_be_starved:
        words += f"; {certainty}starved: nodes keep no free address"
    elif after.may_be_exhausted:
        words += f"; {certainty}exhausted"
    return words


def _first(report: FitReport) -> str:
    first, before = report.answer.first, report.answer.before
    if first is None:
        return "nothing"
    if first.starved > before.starved:
        what = "the addresses that nodes keep free"
    elif first.batch < before.scaler.batch:
        what = f"the batch, from {before.scaler.batch} to {first.batch}"
    else:
        what = "the subnet is exhausted"
    return f"{what}, with pod {first.pod} of {report.question.pods}"


def _remedy(report: FitReport) -> str:
    answer = report.answer
    ways = ["add nodes"] if answer.without_place else []
    if report.surge and report.fits_at_rest:
        ways.append("roll out with a smaller maxSurge: without one it fits")
    if report.addition is not None:
        ways.append(f"add a /{report.addition} to the subnet")
    words = ", or ".join(ways)
    if answer.verdict is FitVerdict.UNCERTAIN:
        return f"{words}; nodes state how many pods they have once the batch is below {report.now.bounds.top}"
    return f"{words}; no smaller batch does, as nodes keep nothing free then" if report.addition else words


def _bounds(bounds: AddressBounds) -> str:
    if bounds.least == bounds.most:
        return count_text(bounds.least)
    return f"{count_text(bounds.least)} to {count_text(bounds.most)}"
