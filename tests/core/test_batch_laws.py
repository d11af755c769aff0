"""Laws of the batch, over random demands, joins, leaves, clusters and histories, in the model of `batch_model`."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.batch_model import LOOK_EVERY, Controller, Node, Subnet, largest_that_fits
from podtide.core.batch_bounds import BatchBounds
from podtide.core.batching import Step

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
def subnets(
    draw: st.DrawFn,
    *,
    clusters: int = 1,
    dead: bool = True,
    bounds: st.SearchStrategy[BatchBounds] = free_bounds,
) -> Subnet:
    """A subnet with a history: nodes came and went, and their demand was anything."""
    nodes = [
        Node(draw(demands), lag=draw(st.integers(0, 20)), cluster=draw(st.integers(0, clusters - 1)))
        for _ in range(draw(st.integers(1, 8)))
    ]
    subnet = Subnet(
        draw(st.sampled_from([61, 125, 253, 509])),
        nodes,
        [draw(bounds) for _ in range(clusters)],
        [Controller(phase=draw(st.integers(0, 4)), delay=draw(st.integers(0, 4))) for _ in range(clusters)],
        seed=draw(st.integers(0, 2**16)),
    )
    for _ in range(draw(st.integers(0, 4))):
        subnet.run(draw(st.integers(1, 400)))
        for node in draw(st.lists(st.sampled_from(subnet.nodes), max_size=4)):
            node.demand = draw(demands)
        if draw(st.booleans()) and len(subnet.nodes) > 1:
            subnet.remove(subnet.nodes[0])
        if draw(st.booleans()):
            subnet.join(Node(draw(demands)))
        if draw(st.booleans()):
            subnet.quarantined = 0
    subnet.run(draw(st.integers(1, 100)))
    if dead and draw(st.booleans()):
        draw(st.sampled_from(subnet.nodes)).is_dead = True
    subnet.quarantined = draw(st.sampled_from([0, 0, subnet.quarantined]))
    return subnet


def _settles(subnet: Subnet) -> None:
    then = subnet.now
    subnet.run(_REST_SECONDS)
    moves = [move for move in subnet.moves_since(then) if move[1] in {Step.UP, Step.DOWN}]
    assert len(moves) <= 2, moves
    rested = subnet.now
    subnet.run(_FOREVER_SECONDS)
    assert not subnet.moves_since(rested)


@given(subnets())
def test_at_constant_demand_the_batch_changes_at_most_twice_and_then_never(subnet: Subnet) -> None:
    _settles(subnet)


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [2, 3])
@given(data=st.data())
def test_clusters_that_share_a_subnet_never_oscillate(clusters: int, data: st.DataObject) -> None:
    _settles(data.draw(subnets(clusters=clusters)))


@pytest.mark.slow
@given(subnets(bounds=pinned_bounds))
def test_neither_does_a_batch_that_a_person_bounds(subnet: Subnet) -> None:
    then = subnet.now
    subnet.run(_REST_SECONDS)
    rested = subnet.now
    subnet.run(_FOREVER_SECONDS)
    assert not subnet.moves_since(rested), subnet.moves_since(then)


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
    raised = [at for at, step, batch in subnet.moves_since(then) if step is Step.UP and batch == top]
    if raised:
        last_statement = max((at for at in subnet.writes if at <= raised[-1]), default=then)
        assert raised[-1] - max(last_statement, then) <= 2 * LOOK_EVERY


@given(subnets(dead=False))
def test_every_pod_that_fits_is_served(subnet: Subnet) -> None:
    _serves(subnet)


@pytest.mark.slow
@given(subnets(dead=False, bounds=pinned_bounds))
def test_starved_overrides_pins_so_every_pod_that_fits_is_served(subnet: Subnet) -> None:
    _serves(subnet)


def _serves(subnet: Subnet) -> None:
    subnet.run(_REST_SECONDS)
    if subnet.quarantined + sum(1 + node.demand for node in subnet.nodes) <= subnet.capacity:
        assert all(node.held >= node.demand for node in subnet.nodes)


@pytest.mark.slow
@given(subnets(dead=False, bounds=pinned_bounds))
def test_a_pin_is_in_force_wherever_it_fits_in_the_subnet(subnet: Subnet) -> None:
    subnet.run(_REST_SECONDS)
    lowest = next(rung for rung in subnet.merged.rungs if rung.batch == subnet.merged.lowest)
    if subnet.at_rest(lowest) <= subnet.capacity:
        assert subnet.batch >= lowest.batch
