"""What a node gave to its sandboxes counts against a pool that went back, and against no other."""

import pytest

from podtide.core.intervals import Interval
from podtide.core.networks.allocations import Allocation, Allocations
from podtide.core.networks.recorded_addresses import Standing, is_of_one_pod, standing_of
from podtide.core.ranges import AddressRange, parse_address, parse_network

GIVEN = Allocation("c1", "default/web", "net1", "u1")
ITSELF = Allocation("c1", "default/web", "net1", "u1")
NEWER = Allocation("c2", "default/web", "net1", "u1", earlier=("c1",))
ITS_POD = Allocation("c0", "default/web", "net1", "u1")
ANOTHER = Allocation("x1", "default/other", "net1", "u9")


@pytest.mark.parametrize(
    ("there", "went_back", "is_alive", "missing_seconds", "standing"),
    [
        (ITSELF, False, True, 0.0, Standing.HELD),
        (NEWER, True, True, 0.0, Standing.HELD),
        (ITS_POD, False, True, 0.0, Standing.PUT_BACK),
        (ANOTHER, True, True, 0.0, Standing.PUT_BACK),
        (ANOTHER, False, True, 0.0, Standing.CONTESTED),
        (None, True, False, 0.0, Standing.PUT_BACK),
        (None, False, True, 999.0, Standing.PUT_BACK),
        (None, False, False, 359.0, Standing.WITHHELD),
        (None, False, False, 360.0, Standing.FORGOTTEN),
    ],
)
def test_what_is_done_about_an_address_that_a_sandbox_has(
    there: Allocation | None, went_back: bool, is_alive: bool, missing_seconds: float, standing: Standing
) -> None:
    assert (
        standing_of(
            GIVEN,
            there,
            went_back=went_back,
            is_alive=is_alive,
            missing_seconds=missing_seconds,
            patience_seconds=360.0,
        )
        is standing
    )


@pytest.mark.parametrize(
    ("there", "standing"),
    [
        (ITSELF, Standing.HELD),
        (ANOTHER, Standing.LEFT),
        (ITS_POD, Standing.LEFT),
        (None, Standing.PUT_BACK),
    ],
)
def test_nothing_is_taken_from_others_for_a_sandbox_whose_del_has_come(
    there: Allocation | None, standing: Standing
) -> None:
    found = standing_of(
        GIVEN,
        there,
        went_back=True,
        is_alive=True,
        is_leaving=True,
        missing_seconds=0.0,
        patience_seconds=360.0,
    )
    assert found is standing


def test_a_pod_is_known_by_its_uid_where_both_know_it() -> None:
    nameless = Allocation("c9", "default/web", "net1")
    assert is_of_one_pod(GIVEN, nameless)
    assert not is_of_one_pod(GIVEN, Allocation("c9", "default/web", "net1", "u2"))
    assert not is_of_one_pod(GIVEN, Allocation("c9", "default/web", "net2", "u1"))


def test_what_came_back_with_a_backup_is_not_given_to_its_pod_again() -> None:
    network = parse_network("10.0.0.0/29")
    bounds = AddressRange(network, (Interval(1, 6),))
    pool = Allocations(bounds, {"1": ITS_POD, "3": ITS_POD})

    def choose(ghosts: set[str]) -> str:
        chosen = pool.choose(
            NEWER, bounds, is_ours=lambda _: True, is_ghost=lambda address, _: str(address) in ghosts
        )
        return str(chosen)

    assert choose(set()) == "10.0.0.1"
    assert choose({"10.0.0.1"}) == "10.0.0.3"
    assert choose({"10.0.0.1", "10.0.0.3"}) == "10.0.0.2"
    assert pool.holder(parse_address("10.0.0.1")) == ITS_POD
