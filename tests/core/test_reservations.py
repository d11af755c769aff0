"""The life of a reservation follows one table, and what it withholds follows its life."""

from ipaddress import ip_address
from itertools import product

import pytest

from podtide.core.networks.allocations import Allocation
from podtide.core.networks.reservations import (
    SEEN_SECONDS,
    TURNS,
    Life,
    ReservationRequest,
    Reservations,
    ReservationVersion,
    Turn,
)

ADDRESS = ip_address("10.0.0.1")
HOLDER = Allocation("c1", "default/web", "net1", "uid")
NEWER = Allocation("c2", "default/web", "net1", "uid")
KEY, NEWER_KEY = ("c1", "net1"), ("c2", "net1")
VERSION = ReservationVersion("uid-1", "7")


def asking(holder: Allocation = HOLDER, before: Allocation | None = None) -> ReservationRequest:
    return ReservationRequest(ADDRESS, "10.0.0.1", holder, before)


def made(now: float = 0.0) -> Reservations:
    reservations = Reservations()
    assert reservations.ask(asking(), now)
    reservations.seen(asking(), VERSION, now)
    return reservations


def test_the_table_has_no_way_out_of_nothing_but_to_be_asked_for_or_left() -> None:
    ways = {turn for (life, turn), then in TURNS.items() if life is None and then is not None}
    assert ways == {Turn.ASKED, Turn.LEFT}
    lives = {None, *Life}
    assert {(life, turn) for life, turn in product(lives, Turn) if (life, turn) in TURNS} == set(TURNS)
    assert TURNS[Life.LEAVING, Turn.GIVEN_UP] is None
    assert (Life.LEAVING, Turn.WRITTEN) not in TURNS, (
        "what is to be deleted is not what a pool was written with"
    )


def test_what_was_seen_lately_is_not_asked_again_and_what_was_seen_long_ago_is() -> None:
    reservations = made(now=10.0)
    assert not reservations.ask(asking(), 10.0 + SEEN_SECONDS - 1)
    assert reservations.ask(asking(), 10.0 + SEEN_SECONDS)
    assert reservations.ask(asking(), 11.0), "the answer of the last request is not known yet"


def test_what_is_put_back_is_asked_for_however_lately_it_was_seen() -> None:
    assert made(now=10.0).ask(asking(), 11.0, afresh=True)


def test_a_doubt_makes_every_reservation_be_asked_for_again_but_not_those_that_leave() -> None:
    reservations = made()
    reservations.doubt()
    assert reservations.ask(asking(), 1.0)
    reservations.seen(asking(), VERSION, 1.0)
    reservations.leave(KEY, {})
    reservations.doubt()
    assert reservations.leaving(KEY)[ADDRESS].version == VERSION


def test_a_refusal_withholds_the_address_for_a_while() -> None:
    reservations = Reservations()
    reservations.ask(asking(), 0.0)
    reservations.refused(asking(), 0.0)
    assert not reservations.knows(KEY)
    assert list(reservations.withheld()) == [ADDRESS]
    assert reservations.expire_refusals(SEEN_SECONDS - 1) == []
    assert reservations.expire_refusals(SEEN_SECONDS) == [ADDRESS]
    assert list(reservations.withheld()) == []


def test_a_refusal_of_what_leaves_already_changes_nothing_of_that() -> None:
    reservations = made()
    reservations.leave(KEY, {})
    reservations.refused(asking(), 1.0)
    assert list(reservations.leaving(KEY)) == [ADDRESS]


def test_what_the_pool_held_and_holds_no_more_is_forgotten_and_what_it_never_held_stays() -> None:
    reservations = made()
    reservations.pool_read(lambda _sandbox, _ifname: ())
    assert reservations.preferred(KEY) == (ADDRESS,)
    reservations.written(KEY, ADDRESS)
    reservations.pool_read(lambda _sandbox, _ifname: (ADDRESS,))
    assert reservations.preferred(KEY) == (ADDRESS,)
    reservations.pool_read(lambda _sandbox, _ifname: ())
    assert not reservations.knows(KEY)


def test_what_is_written_without_a_reservation_is_no_reservation() -> None:
    reservations = Reservations()
    reservations.written(KEY, ADDRESS)
    reservations.seen(asking(), VERSION, 0.0)
    assert not reservations.knows(KEY)


def test_what_an_interface_leaves_is_withheld_until_it_is_deleted() -> None:
    reservations = Reservations()
    assert reservations.leave(KEY, {ADDRESS: ("10.0.0.1", HOLDER)}) == [ADDRESS]
    (reserved,) = reservations.leaving(KEY).values()
    assert (reserved.life, reserved.version, reserved.name) == (Life.LEAVING, None, "10.0.0.1")
    assert list(reservations.withheld()) == [ADDRESS]
    assert reservations.preferred(KEY) == ()
    assert reservations.given_up(KEY, ADDRESS, reserved)
    assert not reservations.given_up(KEY, ADDRESS, reserved), "another DEL was quicker"
    assert list(reservations.withheld()) == []


def test_what_the_pods_own_add_has_again_is_not_given_up() -> None:
    reservations = made()
    reservations.leave(KEY, {})
    (leaving,) = reservations.leaving(KEY).values()
    assert reservations.ask(asking(before=HOLDER), 1.0), "its deletion may be under way"
    assert not reservations.given_up(KEY, ADDRESS, leaving)
    assert reservations.preferred(KEY) == (ADDRESS,)


def test_what_a_newer_sandbox_takes_over_is_no_longer_the_earlier_ones() -> None:
    reservations = made()
    assert reservations.ask(asking(NEWER, before=HOLDER), 1.0)
    assert reservations.knows(KEY), "as long as the object does not name the newer one"
    reservations.seen(asking(NEWER, before=HOLDER), VERSION, 1.0)
    assert not reservations.knows(KEY)
    assert reservations.preferred(NEWER_KEY) == (ADDRESS,)
    assert reservations.leave(KEY, {}) == []
    reservations.ask(asking(), 2.0)
    assert not reservations.ask(asking(NEWER, before=HOLDER), 2.0)
    assert not reservations.knows(KEY)


@pytest.mark.parametrize("has_own", [False, True])
def test_what_an_interface_leaves_and_an_earlier_sandbox_has_goes_with_that(has_own: bool) -> None:
    reservations = made()
    if has_own:
        reservations.ask(asking(NEWER), 0.0)
    reservations.leave(KEY, {})
    reservations.hand_back(KEY, ADDRESS, NEWER)
    assert not reservations.knows(KEY)
    assert reservations.preferred(NEWER_KEY) == (ADDRESS,)
    assert reservations.leave(NEWER_KEY, {}) == [ADDRESS]
