from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from podtide.runtime.ids import new_uuid
from podtide.runtime.randomness import seeded_randomness, system_randomness


@given(st.integers())
def test_the_same_seed_makes_the_same_ids(seed: int) -> None:
    first, again = seeded_randomness(seed), seeded_randomness(seed)
    assert [new_uuid(first) for _ in range(3)] == [new_uuid(again) for _ in range(3)]


def test_seeds_are_the_same_in_every_process() -> None:
    # Python hashes text differently in each process; a seed must not.
    assert new_uuid(seeded_randomness("7/node-a")) == "85fc35bb-8db6-4c07-abb3-01b689985693"


def test_an_id_is_a_version_4_uuid() -> None:
    made = [new_uuid(system_randomness()) for _ in range(100)]
    assert len(set(made)) == 100
    assert all(UUID(text).version == 4 and str(UUID(text)) == text for text in made)
