"""A story by other strategies and batches: it goes on, whatever it expects."""

import pytest

from podtide.core.errors import InvalidInput
from podtide.simulation.replay.story_replay import StoryLoad, batch_of, find_story, replay_story

ONE_BURST = StoryLoad(find_story("one-burst"))


def test_a_story_is_found_by_its_name_or_its_file() -> None:
    assert ONE_BURST.file.name == "one-burst.yaml"
    assert find_story(str(ONE_BURST.file)) == ONE_BURST.file
    with pytest.raises(
        InvalidInput, match="--story none: there is no such file or story: give a file, or one of"
    ):
        find_story("none")
    assert batch_of(ONE_BURST) == 16


@pytest.mark.parametrize(("strategy", "has_failed"), [("reactive", True), ("adaptive", False)])
def test_one_burst_is_played_to_its_end_by_any_strategy(strategy: str, has_failed: bool) -> None:
    told: list[float] = []
    outcome = replay_story(strategy, 16, ONE_BURST, told.append)
    figures = outcome.figures
    assert (figures.pods, figures.unserved) == (36, 0)
    assert (figures.failed_adds > 0) == has_failed
    assert figures.pods == figures.at_once + figures.delayed + figures.unasked
    assert (outcome.samples[-1].pods, told[-1]) == (36, 1.0)


def test_the_batch_can_be_another_than_the_storys() -> None:
    outcome = replay_story("adaptive", 4, ONE_BURST, lambda _part: None)
    assert outcome.figures.lowest_batch == 4
    assert outcome.figures.reserved_max == 4 * 10
