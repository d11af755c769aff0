"""A plan: what each way to size pools takes at rest and at worst, and which CIDR suffices."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.core.errors import InvalidPlan, InvalidScaler
from podtide.core.plan.advice import advise
from podtide.core.plan.count_or_percent import CountOrPercent
from podtide.core.plan.node_loads import NodeLoads, PlannedLoad, WorstCase, worst_of
from podtide.core.plan.prefix_capacity import prefix_capacity, smallest_prefix
from podtide.core.plan.sizing import BatchPlan, PlannedHolding, PlanQuestion, PlanStrategy, plan_batch
from podtide.core.plan.warm_pool import WarmTarget
from podtide.core.subnet.layout import SubnetLayout, choose_gateways

OF_BATCHES = (PlanStrategy.REACTIVE, PlanStrategy.FIXED, PlanStrategy.ADAPTIVE)

all_loads = st.dictionaries(st.integers(0, 60), st.integers(1, 8), min_size=1, max_size=4)
cases = st.builds(
    WorstCase,
    growth=st.builds(CountOrPercent, st.integers(0, 5)),
    burst=st.builds(Fraction, st.integers(4, 12), st.just(4)),
    surge=st.builds(CountOrPercent, st.integers(0, 3)),
)
strategies = st.sampled_from(OF_BATCHES)
batches = st.sampled_from([1, 2, 3, 4, 8, 16, 30])
capacities = st.one_of(st.none(), st.integers(1, 1500))
buffers = st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)])


def question_of(
    loads: NodeLoads, case: WorstCase | None = None, capacity: int | None = None, **others: object
) -> PlanQuestion:
    return PlanQuestion(
        rest=PlannedLoad(live=loads),
        worst=worst_of(loads, case or WorstCase()),
        capacity=capacity,
        **others,  # type: ignore[arg-type]  # fields of the question
    )


def need(load: PlannedLoad) -> int:
    """What pods and nodes take at the least."""
    return load.nodes + load.pods


@given(strategies, batches, all_loads, cases, capacities, buffers)
def test_at_worst_never_less_is_reserved_than_at_rest(  # noqa: PLR0917 - what a plan is made of
    strategy: PlanStrategy,
    batch: int,
    loads: NodeLoads,
    case: WorstCase,
    capacity: int | None,
    buffer: Fraction,
) -> None:
    plan = plan_batch(strategy, batch, question_of(loads, case, capacity, buffer=buffer))
    assert plan.reserved_at_worst.least >= plan.rest.reserved.least
    assert plan.reserved_at_worst.most >= plan.rest.reserved.most
    if strategy is not PlanStrategy.ADAPTIVE:
        assert plan.worst.reserved.most >= plan.rest.reserved.most


@given(strategies, batches, all_loads, st.integers(0, 3), buffers)
def test_more_pods_never_need_fewer_addresses(
    strategy: PlanStrategy, batch: int, loads: NodeLoads, which: int, buffer: Fraction
) -> None:
    pods = sorted(loads)[which % len(loads)]
    more = dict(loads)
    more[pods] -= 1
    more[pods + 1] = more.get(pods + 1, 0) + 1
    more = {each: count for each, count in more.items() if count}
    before, after = (plan_batch(strategy, batch, question_of(each, buffer=buffer)) for each in (loads, more))
    assert before.rest.reserved.most <= after.rest.reserved.most
    assert before.smallest_prefix is not None
    assert after.smallest_prefix is not None
    assert after.smallest_prefix <= before.smallest_prefix


def serves(plan: BatchPlan) -> bool:
    return plan.rest.serves_every_pod and plan.worst.serves_every_pod


@given(strategies, batches, all_loads, cases, st.integers(0, 20))
def test_the_smallest_cidr_serves_every_pod_and_the_next_smaller_does_not(
    strategy: PlanStrategy, batch: int, loads: NodeLoads, case: WorstCase, kept_back: int
) -> None:
    question = question_of(loads, case, kept_back=kept_back)
    prefix = plan_batch(strategy, batch, question).smallest_prefix
    assert prefix is not None
    fitting = replace(question, capacity=prefix_capacity(prefix, 32, kept_back))
    assert serves(plan_batch(strategy, batch, fitting))
    smaller = prefix_capacity(prefix + 1, 32, kept_back)
    assert smaller < need(question.worst) or not serves(
        plan_batch(strategy, batch, replace(question, capacity=smaller))
    )


@given(batches, all_loads, st.integers(-20, 20), buffers)
def test_the_adaptive_batch_serves_every_pod_whenever_there_are_addresses_for_pods_and_primaries(
    batch: int, loads: NodeLoads, beyond: int, buffer: Fraction
) -> None:
    question = question_of(loads, buffer=buffer)
    capacity = max(1, need(question.rest) + beyond)
    rest = plan_batch(PlanStrategy.ADAPTIVE, batch, replace(question, capacity=capacity)).rest
    missing = max(0, need(question.rest) - capacity)
    assert rest.pods - rest.served == min(missing, rest.pods)


@given(batches, all_loads, cases, st.integers(1, 1500))
def test_of_all_strategies_the_adaptive_one_serves_the_most_pods_of_what_lives(
    batch: int, loads: NodeLoads, case: WorstCase, capacity: int
) -> None:
    question = question_of(loads, replace(case, surge=CountOrPercent()), capacity)
    adaptive = plan_batch(PlanStrategy.ADAPTIVE, batch, question)
    for strategy in (PlanStrategy.REACTIVE, PlanStrategy.FIXED):
        other = plan_batch(strategy, batch, question)
        if capacity >= need(question.rest):
            assert adaptive.rest.served >= other.rest.served
        if capacity >= need(question.worst):
            assert adaptive.worst.served >= other.worst.served


def test_a_node_that_is_gone_keeps_what_it_held_by_the_batch_before() -> None:
    case = WorstCase(zones=2, lost_zones=1)
    plan = plan_batch(PlanStrategy.ADAPTIVE, 16, question_of({10: 2}, case))
    assert plan.rest.reserved.most == 2 * 32  # 16·⌈0.5 + 10/16⌉ each
    assert plan.worst.reserved.most == 32 + 32  # one node with both's pods, and what the lost one held


def test_what_gone_nodes_keep_is_not_there_for_the_others() -> None:
    question = question_of({10: 4}, WorstCase(zones=2, lost_zones=1), 100)
    worst = plan_batch(PlanStrategy.FIXED, 16, question).worst
    assert worst.reserved.most == 2 * 32 + 2 * 32
    assert (worst.pods, worst.served) == (40, 20 + 3)  # of the 36 that are left the first node takes 32


def test_a_fixed_batch_is_what_nodes_take_by_podtides_formula_and_reactive_pools_have_a_primary_on_top() -> (
    None
):
    question = question_of({25: 3})
    assert plan_batch(PlanStrategy.FIXED, 16, question).rest.reserved.most == 3 * 48
    assert plan_batch(PlanStrategy.REACTIVE, 16, question).rest.reserved.most == 3 * 49


def test_history_shows_as_a_range() -> None:
    reserved = plan_batch(PlanStrategy.REACTIVE, 16, question_of({230: 2})).rest.reserved
    assert (reserved.least, reserved.most) == (2 * 241, 2 * 251)


def test_a_subnet_that_runs_low_is_exhausted() -> None:
    question = question_of({25: 3}, capacity=150)
    assert plan_batch(PlanStrategy.FIXED, 16, question).rest.exhausted
    assert not plan_batch(PlanStrategy.FIXED, 16, replace(question, capacity=200)).rest.exhausted
    settled = plan_batch(PlanStrategy.ADAPTIVE, 16, question).rest
    assert (settled.batch, settled.exhausted, settled.starved) == (8, False, False)


def test_pods_beyond_a_nodes_maximum_are_served_by_no_strategy_and_in_no_cidr() -> None:
    question = question_of({40: 2}, max_ips=32)
    for strategy in OF_BATCHES:
        plan = plan_batch(strategy, 16, question)
        assert (plan.rest.served, plan.smallest_prefix) == (64, None)


def test_more_pods_than_any_cidr_has_addresses() -> None:
    question = question_of({60_000: 100_000}, max_ips=65_536)
    assert plan_batch(PlanStrategy.FIXED, 16, question).smallest_prefix is None
    assert "No CIDR is large enough" in advice(question)


def test_warm_pools_hold_their_interfaces_addresses_too() -> None:
    warm = WarmTarget(warm_ips=2, minimum_ips=5, ips_per_interface=3, interfaces=3)
    plan = plan_batch(PlanStrategy.WARM, 1, question_of({5: 2}, warm=warm))
    assert plan.rest.reserved.most == 2 * (7 + 3)
    short = plan_batch(PlanStrategy.WARM, 1, question_of({10: 2}, warm=warm))
    assert (short.rest.served, short.smallest_prefix) == (18, None)


def test_warm_pools_without_a_target_are_refused() -> None:
    with pytest.raises(InvalidPlan, match="the warm strategy needs a target"):
        plan_batch(PlanStrategy.WARM, 1, question_of({5: 2}))


@pytest.mark.parametrize("field", ["warm_ips", "minimum_ips", "ips_per_interface", "interfaces"])
def test_a_negative_warm_target_is_refused(field: str) -> None:
    good = WarmTarget(warm_ips=1, minimum_ips=1, ips_per_interface=3, interfaces=3)
    with pytest.raises(InvalidPlan, match=f"{field.replace('_', ' ')} -1 is refused"):
        replace(good, **{field: -1})


def test_what_no_plan_can_be_made_for_is_refused() -> None:
    with pytest.raises(InvalidPlan, match="0 nodes is refused"):
        PlanQuestion(rest=PlannedLoad(live={}), worst=PlannedLoad(live={}))
    with pytest.raises(InvalidScaler, match="batch 300 is more than the 250 addresses a node may have"):
        plan_batch(PlanStrategy.FIXED, 300, question_of({1: 1}))


def test_a_load_without_a_time_before_is_held_by_the_batch_at_rest() -> None:
    question = PlanQuestion(
        rest=PlannedLoad(live={10: 2}), worst=PlannedLoad(live={20: 1}, gone={10: 1}), capacity=250
    )
    assert plan_batch(PlanStrategy.ADAPTIVE, 16, question).worst.reserved.most == 32 + 32


# --- advice


def advice(question: PlanQuestion, *sizes: int) -> str:
    rows = [plan_batch(strategy, batch, question) for strategy in OF_BATCHES for batch in sizes or (1, 16)]
    return advise(rows, question)


def test_without_a_subnet_the_advice_is_which_cidr_to_choose() -> None:
    assert advice(question_of({20: 70})) == (
        "Choose a /21: with podtide and batches up to 16 every pod has an address at worst; with reactive pools, as Azure "
        "CNS has, and that batch it takes a /20."
    )
    assert advice(question_of({20: 50})) == (
        "Choose a /21: with podtide and batches up to 16 every pod has an address at worst."
    )


def test_of_a_subnet_that_is_too_small_the_advice_is_what_to_add() -> None:
    assert advice(question_of({20: 50}, capacity=1000)) == (
        "50 pods are without an address at worst, whatever the batch: add a /26 to the subnet."
    )
    assert advice(question_of({20: 1}, capacity=20)) == (
        "1 pod is without an address at worst, whatever the batch: add a /30 to the subnet."
    )


@given(batches, all_loads, cases, st.integers(1, 400))
def test_with_the_cidr_that_is_to_be_added_every_pod_has_an_address(
    batch: int, loads: NodeLoads, case: WorstCase, capacity: int
) -> None:
    question = question_of(loads, case, capacity)
    words = advice(question, batch)
    if "add a /" in words:
        prefix = int(words.split("add a /")[1].split()[0])
        grown = replace(question, capacity=capacity + prefix_capacity(prefix, 32))
        assert serves(plan_batch(PlanStrategy.ADAPTIVE, batch, grown))
    else:
        assert words.startswith("The subnet suffices")


def test_of_a_subnet_that_suffices_the_advice_is_what_it_costs() -> None:
    assert advice(question_of({20: 50}, capacity=8000)) == (
        "The subnet suffices: with podtide and batches up to 16 every pod has an address at worst, and the batch stays at 16."
    )
    tight = question_of({20: 50}, WorstCase(burst=Fraction(5, 4)), capacity=1500)
    assert advice(tight, 1, 2, 4, 8, 16) == (
        "The subnet suffices: with podtide and batches up to 16 every pod has an address at worst, at batch 2; with reactive "
        "pools, as Azure CNS has, and batch 16, 484 of 1250 pods would have none."
    )
    assert "but nodes keep none in reserve" in advice(question_of({20: 50}, capacity=1050))


def test_pods_over_a_nodes_maximum_come_first_in_the_advice() -> None:
    assert advice(question_of({40: 2}, capacity=1000, max_ips=32)) == (
        "16 pods are at worst more than nodes may have addresses for, 32 each: plan with more nodes, or with a larger --max-ips."
    )


def test_where_even_the_largest_cidr_is_too_small_to_add_the_cluster_is_to_be_divided() -> None:
    question = question_of({60_000: 100_000}, capacity=100, max_ips=65_536)
    assert advice(question).endswith("divide the cluster over several subnets.")


# --- sizes of CIDRs


@pytest.mark.parametrize(
    "cidr", ["10.0.0.0/30", "10.0.0.0/24", "10.0.0.0/8", "fd00::/120", "fd00::/75", "fd00::/64"]
)
def test_a_prefix_has_the_capacity_of_a_subnet_of_that_size(cidr: str) -> None:
    layout = SubnetLayout([cidr], choose_gateways([cidr]))
    network = layout.blocks[0].network
    assert prefix_capacity(network.prefixlen, network.max_prefixlen) == layout.capacity


@given(st.integers(0, 2**31), st.sampled_from([32, 128]), st.integers(0, 300))
def test_the_smallest_prefix_has_enough_and_the_next_does_not(addresses: int, bits: int, kept: int) -> None:
    prefix = smallest_prefix(addresses, bits, kept)
    assert prefix is not None
    assert prefix_capacity(prefix, bits, kept) >= addresses
    assert prefix == bits - 2 or prefix_capacity(prefix + 1, bits, kept) < addresses


def test_a_holding_serves_every_pod_or_not() -> None:
    rest = plan_batch(PlanStrategy.FIXED, 4, question_of({3: 2}, capacity=6)).rest
    assert isinstance(rest, PlannedHolding)
    assert (rest.served, rest.serves_every_pod) == (3, False)
