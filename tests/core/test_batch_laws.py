"""Laws of the batch, over random demands, joins, leaves, clusters and histories, in the model of `batch_model`."""

from collections.abc import Callable
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.batch_model import LOOK_EVERY, Controller, Look, Node, Subnet, largest_that_fits
from examples import examples
from podtide.core.subnet.batch import BatchMove
from podtide.core.subnet.batch_bounds import BatchBounds, merge_bounds

_REST_SECONDS = 2_000
"""Longer than every wait there is: a minute for answers, a minute's rest, five minutes between two statements."""
_FOREVER_SECONDS = 20_000

demands = st.integers(0, 60)
buffers = st.sampled_from([Fraction(1, 2), Fraction(1, 2), Fraction(1, 4), Fraction(1), Fraction(0)])
free_bounds = st.builds(BatchBounds, batch=st.sampled_from([16, 16, 32, 8, 24, 5]), buffer=buffers)
pinned_bounds = st.builds(BatchBounds, buffer=buffers, fixed=st.sampled_from([2, 8, 16, 64])) | st.builds(
    BatchBounds, buffer=buffers, min_batch=st.sampled_from([2, 4, 6, 16])
)


@st.composite
def capacities(draw: st.DrawFn, nodes: list[Node], bounds: BatchBounds, *, fixed_sizes: bool = True) -> int:
    """Those of small subnets, and those in which some rung just fits for these nodes, or just does not."""
    if fixed_sizes and draw(st.booleans()):
        return draw(st.sampled_from([61, 125, 253, 509]))
    rest = Subnet(0, nodes, [bounds]).at_rest(draw(st.sampled_from(bounds.rungs)))
    share = draw(st.sampled_from([bounds.thresholds.lower, bounds.thresholds.upper, Fraction(1)]))
    return max(1 + len(nodes), ceil(rest / share) + draw(st.integers(-2, 2)))


@st.composite
def subnets(
    draw: st.DrawFn,
    *,
    clusters: int = 1,
    dead: bool = True,
    silent: bool = False,
    bounds: st.SearchStrategy[BatchBounds] = free_bounds,
) -> Subnet:
    """A subnet with a history: nodes came and went, their demand was anything, and people set other bounds."""

    def node() -> Node:
        return Node(
            draw(demands),
            lag=draw(st.integers(0, 20)),
            cluster=draw(st.integers(0, clusters - 1)),
            is_silent=silent and draw(st.booleans()),
        )

    nodes = [node() for _ in range(draw(st.integers(1, 8)))]
    asked = [draw(bounds) for _ in range(clusters)]
    subnet = Subnet(
        draw(capacities(nodes, merge_bounds(asked))),
        nodes,
        asked,
        [Controller(phase=draw(st.integers(0, 4)), delay=draw(st.integers(0, 4))) for _ in range(clusters)],
        seed=draw(st.integers(0, 2**16)),
        grants_every=draw(st.sampled_from([1, 1, 20])),
    )
    for _ in range(draw(st.integers(0, 4))):
        subnet.run(draw(st.integers(1, 400)))
        _happen(draw, subnet, node, bounds=bounds, dead=dead)
        if draw(st.booleans()):
            subnet.quarantined = 0
    subnet.run(draw(st.integers(1, 100)))
    subnet.quarantined = draw(st.sampled_from([0, 0, subnet.quarantined]))
    return subnet


def _happen(
    draw: st.DrawFn,
    subnet: Subnet,
    node: Callable[[], Node],
    *,
    bounds: st.SearchStrategy[BatchBounds],
    dead: bool,
) -> None:
    """One thing of a subnet's history."""
    match draw(st.sampled_from(["demand", "demand", "peak", "leave", "join", "bounds", "dead"])):
        case "demand":
            for some in draw(st.lists(st.sampled_from(subnet.nodes), max_size=4)):
                some.demand = draw(demands)
        case "peak":
            more = draw(st.integers(1, 30))
            _add_demand(subnet, more)
            subnet.run(draw(st.integers(1, 400)))
            _add_demand(subnet, -more)
        case "leave" if len(subnet.nodes) > 1:
            subnet.remove(subnet.nodes[0])
        case "join":
            subnet.join(node())
        case "bounds":
            subnet.bounds[0] = draw(bounds)
        case "dead" if dead:
            draw(st.sampled_from(subnet.nodes)).is_dead = True
        case _:
            pass


@st.composite
def short_of_the_top(draw: st.DrawFn) -> Subnet:
    """After a peak, in a subnet in which the top rung does not fit by an address or a few; not everybody states demand."""
    low = [draw(st.integers(0, 24)) for _ in range(draw(st.integers(2, 8)))]
    nodes = [Node(each, is_silent=number == 0 or draw(st.booleans())) for number, each in enumerate(low)]
    asked, more = draw(free_bounds), draw(st.integers(16, 40))
    rest = Subnet(0, nodes, [asked]).at_rest(asked.rungs[-1])
    subnet = Subnet(
        max(1 + len(nodes), int(rest / asked.thresholds.lower) - draw(st.integers(0, 4))), nodes, [asked]
    )
    subnet.run(draw(st.integers(60, 200)))
    _add_demand(subnet, more)
    subnet.run(draw(st.integers(60, 400)))
    _add_demand(subnet, -more)
    return subnet


@st.composite
def peaks(
    draw: st.DrawFn, *, bounds: st.SearchStrategy[BatchBounds] = free_bounds, grants_every: int = 1
) -> Subnet:
    """A subnet just large enough for some rung, at a peak or after it."""
    low = [draw(st.integers(0, 24)) for _ in range(draw(st.integers(2, 8)))]
    nodes = [Node(each, lag=draw(st.integers(0, 5)), is_silent=draw(st.booleans())) for each in low]
    asked, more = draw(bounds), draw(st.integers(4, 30))
    crowded = [Node(node.demand + more, is_silent=node.is_silent) for node in nodes]
    critical = draw(capacities(draw(st.sampled_from([nodes, crowded])), asked, fixed_sizes=False))
    subnet = Subnet(critical, nodes, [asked], grants_every=grants_every)
    subnet.run(draw(st.integers(60, 200)))
    _add_demand(subnet, more)
    subnet.run(draw(st.integers(60, 400)))
    if draw(st.booleans()):
        _add_demand(subnet, -more)
    return subnet


def _add_demand(subnet: Subnet, more: int) -> None:
    for node in subnet.nodes:
        node.demand = max(0, node.demand + more)


def _settles(subnet: Subnet) -> None:
    then = subnet.now
    subnet.run(_REST_SECONDS)
    moves = [move for move in subnet.moves_since(then) if move[1] in {BatchMove.UP, BatchMove.DOWN}]
    assert len(moves) <= 2, moves
    rested = subnet.now
    subnet.run(_FOREVER_SECONDS)
    assert not subnet.moves_since(rested)


@examples(quick=8)
@given(subnets())
def test_at_constant_demand_the_batch_changes_at_most_twice_and_then_never(subnet: Subnet) -> None:
    _settles(subnet)


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [2, 3])
@examples(quick=8)
@given(data=st.data())
def test_clusters_that_share_a_subnet_never_oscillate(clusters: int, data: st.DataObject) -> None:
    _settles(data.draw(subnets(clusters=clusters)))


@pytest.mark.slow
@examples(quick=8)
@given(subnets(bounds=pinned_bounds))
def test_neither_does_a_batch_that_a_person_bounds(subnet: Subnet) -> None:
    then = subnet.now
    subnet.run(_REST_SECONDS)
    rested = subnet.now
    subnet.run(_FOREVER_SECONDS)
    assert not subnet.moves_since(rested), subnet.moves_since(then)


@examples(quick=8)
@given(subnets(dead=False))
def test_at_rest_the_largest_rung_that_fits_is_in_force_or_a_larger_one_inside_the_band(
    subnet: Subnet,
) -> None:
    """So at rest the batch is the same whatever came before, but for the band; and never smaller than what fits."""
    subnet.run(_REST_SECONDS)
    fits, upper = largest_that_fits(subnet), subnet.merged.thresholds.upper * subnet.capacity
    assert subnet.in_force.scaler is not None
    if fits is not None:
        assert subnet.batch == fits.batch or (subnet.batch > fits.batch and subnet.reserved <= upper)
    else:
        least = min(map(subnet.at_rest, subnet.merged.rungs))
        assert (
            subnet.in_force.starved
            or subnet.reserved + subnet.owed <= upper
            or subnet.at_rest(subnet.in_force.scaler) == least
        )


@pytest.mark.slow
@examples(quick=8)
@given(subnets(dead=False))
def test_the_configured_batch_is_in_force_within_one_look_of_the_statement_that_makes_it_fit(
    subnet: Subnet,
) -> None:
    then = subnet.now
    subnet.run(_REST_SECONDS)
    fits, top = largest_that_fits(subnet), subnet.merged.top
    if fits is None or fits.batch != top:
        return
    assert subnet.batch == top
    raised = [at for at, step, batch in subnet.moves_since(then) if step is BatchMove.UP and batch == top]
    if raised:
        last_statement = max((at for at in subnet.writes if at <= raised[-1]), default=then)
        assert raised[-1] - max(last_statement, then) <= 2 * LOOK_EVERY


@examples(quick=8)
@given(subnets(dead=False))
def test_every_pod_that_fits_is_served(subnet: Subnet) -> None:
    _serves(subnet)


@pytest.mark.slow
@examples(quick=8)
@given(subnets(dead=False, bounds=pinned_bounds))
def test_starved_overrides_pins_so_every_pod_that_fits_is_served(subnet: Subnet) -> None:
    _serves(subnet)


def _serves(subnet: Subnet) -> None:
    subnet.run(_REST_SECONDS)
    if subnet.quarantined + sum(1 + node.demand for node in subnet.nodes) <= subnet.capacity:
        assert all(node.held >= node.demand for node in subnet.nodes)


@pytest.mark.slow
@examples(quick=8)
@given(subnets(dead=False, bounds=pinned_bounds))
def test_a_pin_is_in_force_wherever_it_fits_in_the_subnet(subnet: Subnet) -> None:
    subnet.run(_REST_SECONDS)
    lowest = next(rung for rung in subnet.merged.rungs if rung.batch == subnet.merged.lowest)
    if subnet.at_rest(lowest) <= subnet.capacity:
        assert subnet.batch >= lowest.batch


# Every change is right by what demand really is, where that has been stated: not only that changes end.


def _told(subnet: Subnet) -> list[Look]:
    """Looks at a subnet, not starved, whose nodes had answered and whose demand was as stated."""
    subnet.run(_REST_SECONDS)
    return [
        look
        for look in subnet.looks
        if look.truth.is_told and look.truth.is_answered and not look.before.starved
    ]


@examples(quick=8)
@given(short_of_the_top())
def test_the_batch_is_raised_only_to_what_really_fits(subnet: Subnet) -> None:
    """Raised by less than the worst case, a node of which only a window is known would take it down again."""
    for look in _told(subnet):
        if look.step is BatchMove.UP:
            assert look.after.scaler is not None
            rest = look.truth.rests[look.after.scaler.batch]
            assert rest < look.truth.lower * look.truth.capacity, look


@examples(quick=8)
@given(subnets(silent=True) | peaks())
def test_the_batch_is_not_lowered_past_a_rung_that_really_fits(subnet: Subnet) -> None:
    """Lowered by the worst case, rungs that fit would be passed over, and addresses given back for nothing."""
    for look in _told(subnet):
        if look.step is BatchMove.DOWN and (fits := look.truth.largest_that_fits) is not None:
            assert look.after.scaler is not None
            assert look.after.scaler.batch >= fits, look


@examples(quick=8)
@given(peaks(grants_every=20))
def test_the_look_that_sees_too_much_asked_for_lowers_the_batch_before_it_is_granted(subnet: Subnet) -> None:
    for look in _told(subnet):
        truth, before, after = look.truth, look.before.scaler, look.after.scaler
        assert after is not None
        if before is None or before.batch not in truth.rests or look.step is BatchMove.CONFIGURED:
            continue
        fitting = [batch for batch, rest in truth.rests.items() if rest < truth.lower * truth.capacity]
        smaller_fits = before.batch not in fitting and any(
            truth.lowest <= batch < before.batch for batch in fitting
        )
        if truth.coming > truth.upper * truth.capacity and smaller_fits and not look.after.starved:
            assert after.batch < before.batch, look


@examples(quick=8)
@given(peaks(bounds=pinned_bounds))
def test_below_a_pin_the_batch_is_the_pin_again_only_where_that_really_fits_in_the_subnet(
    subnet: Subnet,
) -> None:
    subnet.run(_REST_SECONDS)
    for look in subnet.looks:
        before, after, truth = look.before.scaler, look.after.scaler, look.truth
        assert after is not None
        if before is None or not (truth.is_told and truth.is_answered):
            continue
        if before.batch < truth.lowest <= after.batch:
            assert truth.rests[truth.lowest] <= truth.capacity, look


@examples(quick=8)
@given(subnets(silent=True) | peaks())
def test_with_agents_that_state_nothing_it_comes_to_rest_too(subnet: Subnet) -> None:
    """It may take more than two changes: every batch that they answer narrows the window of their demand."""
    subnet.run(_REST_SECONDS)
    rested = subnet.now
    subnet.run(_FOREVER_SECONDS)
    assert not subnet.moves_since(rested)
