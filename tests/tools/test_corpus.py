"""The corpus keeps plans that visited what few runs visit."""

from random import Random

from corpus import Corpus
from podtide.simulation.run.report import RunReport
from podtide.simulation.run.swarm import swarm_plan_for


def report(seed: int, *states: str) -> RunReport:
    return RunReport(
        plan=swarm_plan_for(seed),
        trace_hash="",
        entries=0,
        simulated_seconds=1.0,
        pods=0,
        steps=0,
        faults={},
        reached=dict.fromkeys(states, 2),
    )


def test_a_plan_that_visited_a_rare_state_is_picked() -> None:
    corpus = Corpus()
    assert corpus.pick(Random(1)) is None
    for seed in range(50):
        corpus.take(report(seed, "usual"))
    assert corpus.pick(Random(1)) is None
    corpus.take(report(77, "usual", "rare"))
    assert corpus.rare() == ["rare"]
    assert all(corpus.pick(Random(number)) == swarm_plan_for(77) for number in range(5))
    assert (corpus.runs["usual"], corpus.visits["usual"]) == (51, 102)


def test_only_the_last_plans_of_a_state_are_kept() -> None:
    corpus = Corpus()
    for seed in range(9):
        corpus.take(report(seed, "rare"))
    for seed in range(200):
        corpus.take(report(seed, "usual"))
    picked = [corpus.pick(Random(number)) for number in range(60)]
    assert {plan.seed for plan in picked if plan} == {5, 6, 7, 8}
