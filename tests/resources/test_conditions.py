from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from podtide.resources.conditions import Condition, ConditionStatus, with_condition

FULL = Condition(
    type="Satisfied",
    status=ConditionStatus.FALSE,
    reason="SubnetFull",
    message="5 of 48 granted",
    last_transition_time="2026-01-01T00:00:00Z",
    observed_generation=3,
)
conditions = st.builds(
    Condition,
    type=st.sampled_from(["Satisfied", "Ready", "Sliced"]),
    status=st.sampled_from(ConditionStatus),
    reason=st.sampled_from(["A", "B"]),
    message=st.sampled_from(["a", "b"]),
    last_transition_time=st.sampled_from(["2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"]),
    observed_generation=st.integers(0, 2),
)


def test_the_same_again_later_is_the_same_list_so_nothing_needs_writing() -> None:
    later = replace(FULL, last_transition_time="2026-02-02T00:00:00Z")
    assert with_condition([FULL], later) == [FULL]


def test_another_message_does_not_make_it_a_transition() -> None:
    later = replace(
        FULL, message="9 of 48 granted", observed_generation=4, last_transition_time="2026-02-02T00:00:00Z"
    )
    (after,) = with_condition([FULL], later)
    assert (after.message, after.observed_generation) == ("9 of 48 granted", 4)
    assert after.last_transition_time == FULL.last_transition_time


def test_another_status_is_a_transition() -> None:
    later = replace(FULL, status=ConditionStatus.TRUE, last_transition_time="2026-02-02T00:00:00Z")
    assert with_condition([FULL], later) == [later]


@given(st.lists(conditions, unique_by=lambda condition: condition.type), conditions)
def test_one_condition_is_set_and_the_others_stay_in_place(before: list[Condition], new: Condition) -> None:
    untouched = list(before)
    after = with_condition(before, new)
    assert before == untouched
    types = [each.type for each in before]
    assert [each.type for each in after] == (types if new.type in types else [*types, new.type])
    assert [each for each in after if each.type != new.type] == [
        each for each in before if each.type != new.type
    ]
    assert with_condition(after, new) == after
