"""The decision about a history agrees with a search through all that could have happened."""

import math
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from podtide.simulation.checks.linearizability import Hold, contradiction


def is_explained(holds: list[Hold]) -> bool:
    """By brute force: go through the events, and between any two let any ADD take effect and anything given up end.

    An ADD has to have taken effect by its answer, and nothing is taken while another sandbox has something.
    """
    events = sorted({event for hold in holds for event in (hold.asked, hold.answered, hold.given_up)})
    seen = set[tuple[int, frozenset[int], frozenset[int]]]()

    def search(at: int, held: frozenset[int], done: frozenset[int]) -> bool:
        if (at, held, done) in seen:
            return False
        seen.add((at, held, done))
        if at == len(events) or events[at] == math.inf:
            return len(done) == len(holds)
        passed = events[at]
        if any(hold.answered == passed and number not in done for number, hold in enumerate(holds)):
            pass  # it should have taken effect before its answer
        elif search(at + 1, held, done):
            return True
        return any(search(at, *then) for then in moves(at, held, done))

    def moves(
        at: int, held: frozenset[int], done: frozenset[int]
    ) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
        """What may happen just before the event at this place."""
        for number, hold in enumerate(holds):
            is_free = all(holds[other].holder == hold.holder for other in held)
            if number not in done and hold.asked < events[at] and is_free:
                yield held | {number}, done | {number}
            if number in held and hold.given_up < events[at]:
                yield held - {number}, done

    return search(0, frozenset(), frozenset())


@st.composite
def histories(draw: st.DrawFn) -> list[Hold]:
    """A few sandboxes that ask for one address, some of them twice, and give it up or not."""
    numbers = iter(draw(st.permutations(range(1, 19))))
    holds = []
    for _ in range(draw(st.integers(1, 6))):
        asked, *rest = sorted((next(numbers), next(numbers), next(numbers)))
        first, second = rest if draw(st.booleans()) else reversed(rest)
        given_up = draw(st.sampled_from((first, first, math.inf)))
        answered = second if given_up == first else first
        holds.append(
            Hold(
                holder=draw(st.sampled_from("abcd")),
                asked=asked,
                answered=int(answered),
                given_up=given_up,
            )
        )
    return holds


@given(histories())
def test_a_history_is_contradictory_exactly_if_nothing_explains_it(history: list[Hold]) -> None:
    assert (contradiction(history) is None) == is_explained(history)


@given(histories())
def test_what_is_named_is_contradictory_by_itself_and_of_two_sandboxes(history: list[Hold]) -> None:
    found = contradiction(history)
    if found is not None:
        assert found[0].holder != found[1].holder
        assert not is_explained(list(found))


def test_an_address_that_two_sandboxes_were_given_at_once_is_a_contradiction() -> None:
    first = Hold(holder="a", asked=1, answered=2, given_up=9)
    second = Hold(holder="b", asked=3, answered=4)
    assert contradiction([second, first]) == (first, second)


def test_an_address_is_anothers_as_soon_as_its_sandbox_begins_to_go() -> None:
    first = Hold(holder="a", asked=1, answered=2, given_up=4)
    second = Hold(holder="b", asked=3, answered=5)
    assert contradiction([first, second]) is None


def test_an_add_whose_sandbox_went_meanwhile_may_have_had_the_address_for_a_moment() -> None:
    living = Hold(holder="a", asked=1, answered=2, given_up=7)
    for given_up, answered, is_possible in ((4, 6, False), (5, 8, True)):
        gone = Hold(holder="b", asked=3, answered=answered, given_up=given_up)
        assert (contradiction([living, gone]) is None) == is_possible


def test_a_call_that_is_repeated_for_one_sandbox_contradicts_nothing() -> None:
    assert (
        contradiction([Hold(holder="a", asked=1, answered=4), Hold(holder="a", asked=2, answered=3)]) is None
    )
