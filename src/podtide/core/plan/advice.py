"""What to do, in one sentence: the answer of a plan for a reader who does not compare its rows."""

from collections.abc import Iterable

from msgspec.structs import replace

from podtide.core.plan.prefix_capacity import prefix_capacity, smallest_prefix
from podtide.core.plan.sizing import BatchPlan, PlanQuestion, PlanStrategy, plan_batch
from podtide.core.subnet.count_text import count_text


def advise(plans: Iterable[BatchPlan], question: PlanQuestion) -> str:
    """The advice: what podtide needs with the largest batch that does, and what reactive pools would with the same."""
    rows = list(plans)
    adaptive = _best([row for row in rows if row.strategy is PlanStrategy.ADAPTIVE], question)
    reactive = next(
        row for row in rows if row.strategy is PlanStrategy.REACTIVE and row.batch == adaptive.batch
    )
    if lacking := _pods_over_maximum(question):
        return (
            f"{_pods(lacking)} at worst more than nodes may have addresses for, {question.max_ips} each: "
            "plan with more nodes, or with a larger --max-ips."
        )
    if question.capacity is None:
        return _which_prefix(adaptive, reactive)
    if not adaptive.worst.serves_every_pod:
        return _which_addition(adaptive, question)
    return _why_it_suffices(adaptive, reactive)


def _best(rows: list[BatchPlan], question: PlanQuestion) -> BatchPlan:
    """Of the plans that serve the most pods, or in the smallest CIDR, the one with the largest batch."""
    if question.capacity is None:
        return max(rows, key=lambda row: (row.smallest_prefix or 0, row.batch))
    return max(rows, key=lambda row: (row.worst.served, row.batch))


def _pods_over_maximum(question: PlanQuestion) -> int:
    live = question.worst.live
    return sum(max(0, pods - question.max_ips) * count for pods, count in live.items())


def _pods(count: int) -> str:
    return f"{count_text(count)} {'pod is' if count == 1 else 'pods are'}"


def _which_prefix(adaptive: BatchPlan, reactive: BatchPlan) -> str:
    if adaptive.smallest_prefix is None:
        return "No CIDR is large enough for every pod: divide the cluster over several subnets."
    words = f"Choose a /{adaptive.smallest_prefix}: with podtide and batches up to {adaptive.batch} every pod has an address at worst"
    if reactive.smallest_prefix is None or reactive.smallest_prefix == adaptive.smallest_prefix:
        return f"{words}."
    return f"{words}; with reactive pools, as Azure CNS has, and that batch it takes a /{reactive.smallest_prefix}."


def _which_addition(adaptive: BatchPlan, question: PlanQuestion) -> str:
    missing = adaptive.worst.pods - adaptive.worst.served
    addition = _smallest_addition(adaptive, question)
    add = (
        f"add a /{addition} to the subnet"
        if addition is not None
        else "divide the cluster over several subnets"
    )
    return f"{_pods(missing)} without an address at worst, whatever the batch: {add}."


def _smallest_addition(adaptive: BatchPlan, question: PlanQuestion) -> int | None:
    """The smallest CIDR with which every pod has an address; None where none is large enough.

    That may be more than what is missing: in a larger subnet nodes have larger batches, and those that are gone keep them.
    """
    assert question.capacity is not None
    missing = adaptive.worst.pods - adaptive.worst.served
    least = smallest_prefix(missing, question.address_bits)
    for prefix in range(-1 if least is None else least, -1, -1):
        grown = question.capacity + prefix_capacity(prefix, question.address_bits)
        plan = plan_batch(PlanStrategy.ADAPTIVE, adaptive.batch, replace(question, capacity=grown))
        if plan.rest.serves_every_pod and plan.worst.serves_every_pod:
            return prefix
    return None


def _why_it_suffices(adaptive: BatchPlan, reactive: BatchPlan) -> str:
    worst = adaptive.worst
    if worst.starved:
        how = "every pod has an address at worst, but nodes keep none in reserve"
    elif worst.batch < adaptive.rest.batch:
        how = f"every pod has an address at worst, at batch {worst.batch}"
    else:
        how = f"every pod has an address at worst, and the batch stays at {worst.batch}"
    words = f"The subnet suffices: with podtide and batches up to {adaptive.batch} {how}"
    without = reactive.worst.pods - reactive.worst.served
    if not without:
        return f"{words}."
    return (
        f"{words}; with reactive pools, as Azure CNS has, and batch {reactive.batch}, {count_text(without)} of "
        f"{count_text(reactive.worst.pods)} pods would have none."
    )
