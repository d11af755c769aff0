"""The demonstration's stories, played on virtual time: they come true, and what is not clean is not called so."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fractions import Fraction

import pytest
from rich.console import Console

from podtide.allocator.store import InlineExecutor, open_allocator
from podtide.allocator.subnets import SubnetSpec
from podtide.cluster.embedded import EmbeddedCluster
from podtide.core.errors import InvalidInput
from podtide.runtime.clock import LoopClock
from podtide.runtime.logging import make_logger
from podtide.simulation.demo.plain import PlainTeller
from podtide.simulation.demo.playing import DemoOutcome, play
from podtide.simulation.demo.real_world import defaults_for, rules_for
from podtide.simulation.demo.scene import DemoScene, NodeScene, SubnetScene
from podtide.simulation.demo.screen import ScreenTeller, drawing_of, subnet_bar
from podtide.simulation.demo.stage import DemoStage, ship_released_lease
from podtide.simulation.demo.stories import STORIES, Story, check_subnet, default_subnet
from podtide.simulation.demo.teller import Chapter
from podtide.simulation.world.embedded_world import NETWORK, SUBNET, options_for
from podtide.simulation.world.world import World

NODES = 4


class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.chapters: list[str] = []
        self.said: list[str] = []
        self.decisions: list[str] = []
        self.scenes: list[DemoScene] = []

    def begin(self, chapter: Chapter) -> None:
        self.chapters.append(chapter.title)

    def say(self, words: str) -> None:
        self.said.append(words)

    def decided(self, words: str, who: str = "") -> None:
        self.decisions.append(f"{who} {words}".strip())

    def show(self, scene: DemoScene) -> None:
        self.scenes.append(scene)


@asynccontextmanager
async def a_stage(story: Story, listener: Listener) -> AsyncIterator[DemoStage]:
    """A world on virtual time, in memory, and the calls of the plugin straight to the agents."""
    clock, cidr = LoopClock(), default_subnet(story, NODES)
    cluster = EmbeddedCluster(clock=clock)
    log = make_logger(io.StringIO(), clock, level="error")
    async with await open_allocator(
        "sqlite:///:memory:", clock=clock, rules=rules_for(1.0), executor=InlineExecutor(), migrate=True
    ) as allocator:
        await allocator.add_subnet(SubnetSpec(network=NETWORK, name=SUBNET, cidrs=(cidr,)))
        options, defaults = options_for((cidr,)), defaults_for(1.0)
        async with World(
            cluster,
            allocator,
            options,
            defaults=defaults,
            networks=story.networks(NODES),
            clock=clock,
            seed=1,
            log=log,
        ) as world:
            await ship_released_lease(world)
            controller = world.start_controller(elected=True)
            yield DemoStage(world, controller, listener, nodes=NODES, speed=1.0, seed=1)
    cluster.close()


async def played(name: str) -> tuple[DemoOutcome, Listener]:
    listener = Listener()
    async with a_stage(STORIES[name], listener) as stage:
        return await play(STORIES[name], stage, asyncio.Event().wait()), listener


async def test_the_tide_rises_is_given_back_and_goes_out() -> None:
    outcome, listener = await played("tide")
    assert outcome.is_clean, outcome.failure
    assert listener.chapters == [
        "Quiet water",
        "A burst",
        "The tide rises",
        "Give-back",
        "Recovery",
        "A node leaves",
    ]
    assert "1 request: 47." in listener.said[2]
    assert listener.said[-1].endswith("none of them lost.")
    assert any("Exhausted: R = " in words or "Starved: " in words for words in listener.decisions)
    summary = outcome.summary
    assert summary.exhausted_seconds + summary.starved_seconds > 0
    assert summary.failed_adds == 0
    assert summary.peak_reserved > summary.capacity * 9 // 10


async def test_pods_that_come_faster_than_the_controller_looks_still_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine, or told at high speed: more pods than addresses would wait for ever."""
    monkeypatch.setattr("podtide.simulation.demo.tide._POD_EVERY_SECONDS", 0.0001)
    outcome, _ = await played("tide")
    assert outcome.is_clean, outcome.failure


async def test_a_burst_is_one_request_and_its_ebb_another() -> None:
    outcome, listener = await played("burst")
    assert outcome.is_clean, outcome.failure
    assert listener.chapters == ["Quiet water", "A burst", "Ebb"]
    of_the_node = [words for words in listener.decisions if words.startswith("node-1 asks for")]
    assert [words.split(":")[0] for words in of_the_node[:2]] == [
        "node-1 asks for 15 after 0",
        "node-1 asks for 47 after 15",
    ]
    assert "node-1 asks for 15 after 47, gives back 32" in of_the_node[2]


async def test_every_node_gets_a_slice_and_a_node_that_replaces_another_gets_the_next() -> None:
    outcome, listener = await played("slices")
    assert outcome.is_clean, outcome.failure
    assert listener.chapters == ["The cut", "A burst", "A node is replaced"]
    assert listener.said[0] == "4 of 16 slices have an owner, and 8 pods an address in each network."
    assert listener.said[1].startswith("35 pods have their addresses by ")
    assert listener.said[1].endswith(" writes of node-1's list, and no slice changed hands.")
    assert outcome.summary.served == 8 + 35 + 2
    assert listener.said[2].startswith("node-4-new has 10.250.1.0/26, and 10.250.0.192/26 rests: ")
    assert outcome.summary.failed_adds == 0


async def test_an_exact_fit_leaves_none_and_one_more_waits_its_turn() -> None:
    outcome, listener = await played("exact-fit")
    assert outcome.is_clean, outcome.failure
    assert listener.chapters == ["Full to the brim", "One more", "One goes"]
    assert listener.said[0].endswith("none is left.")
    assert listener.said[1] == "No requests in the next 3 seconds."
    assert "1 address is owed" in listener.said[2]
    summary = outcome.summary
    assert summary.peak_reserved == summary.capacity
    assert (summary.served, summary.removed) == (summary.capacity - NODES + 1, 1)


async def test_an_address_that_is_taken_from_under_a_pod_is_not_clean() -> None:
    async def sabotage(stage: DemoStage) -> None:
        await stage.world.add_node(stage.names[0])
        await stage.add_pods(stage.names[0], 3)
        await stage.until(stage.all_served)
        machine = stage.world.machines[stage.names[0]]
        held = await stage.world.allocator.get_container(machine.uid, cluster=stage.world.options.cluster)
        await stage.world.allocator.delete_container(
            machine.uid, cluster=stage.world.options.cluster, cluster_uid=held.cluster_uid
        )

    story = Story(
        name="sabotage",
        sentence="",
        tell=sabotage,
        least_capacity=lambda _nodes: 60,
        most_capacity=lambda _nodes: 60,
    )
    async with a_stage(story, Listener()) as stage:
        outcome = await play(story, stage, asyncio.Event().wait())
    assert not outcome.is_clean
    assert "no container grants it there" in outcome.failure


async def test_what_never_comes_to_pass_is_not_clean() -> None:
    async def wait_in_vain(stage: DemoStage) -> None:
        await stage.until(lambda: stage.pod_count > 0)

    story = Story(
        name="vain",
        sentence="",
        tell=wait_in_vain,
        least_capacity=lambda _nodes: 60,
        most_capacity=lambda _nodes: 60,
    )
    async with a_stage(story, Listener()) as stage:
        outcome = await play(story, stage, asyncio.Event().wait())
    assert not outcome.is_clean
    assert "not within" in outcome.failure


async def test_a_story_that_is_stopped_is_summed_up_and_audited_all_the_same() -> None:
    async def stopped() -> None:
        await asyncio.sleep(3)

    story = STORIES["tide"]
    async with a_stage(story, Listener()) as stage:
        outcome = await play(story, stage, stopped())
    assert outcome.was_stopped
    assert outcome.is_clean, outcome.failure
    assert outcome.summary.served == 2 * NODES
    assert outcome.summary.seconds == pytest.approx(3, abs=0.5)


@pytest.mark.parametrize("story", STORIES.values(), ids=lambda story: story.name)
@pytest.mark.parametrize("nodes", [2, 20, 200])
def test_the_default_subnet_is_one_the_story_accepts(story: Story, nodes: int) -> None:
    check_subnet(story, nodes, default_subnet(story, nodes))


def test_twenty_nodes_have_a_subnet_of_five_hundred() -> None:
    assert default_subnet(STORIES["tide"], 20) == "10.240.0.0/23"


@pytest.mark.parametrize(
    ("cidr", "words"),
    [("10.0.0.0/28", "needs 140: give a larger one"), ("10.0.0.0/8", "give a smaller one, such as")],
)
def test_a_subnet_the_story_cannot_happen_in_is_refused(cidr: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check_subnet(STORIES["tide"], NODES, cidr)


def a_scene(*, exhausted: bool = False, starved: bool = False) -> DemoScene:
    subnet = SubnetScene(
        name="pods",
        capacity=100,
        reserved=50,
        assigned=30,
        owed=0,
        batch=16,
        buffer=Fraction(1, 2),
        exhausted=exhausted,
        starved=starved,
        lower=Fraction(8, 10),
        upper=Fraction(9, 10),
    )
    node = NodeScene(name="node-1", assigned=4, free=6, releasing=2, waiting=3, requested=15)
    return DemoScene(subnet, (node,))


def test_the_bar_is_as_long_as_what_it_stands_for() -> None:
    bar = subnet_bar(a_scene().subnet, 50).plain
    assert (bar.count("█"), bar.count("▒"), bar.count("·")) == (15, 10, 25 - 2)
    assert (bar[40], bar[45]) == ("│", "│")


def test_the_drawing_shows_subnet_nodes_and_decisions() -> None:
    console = Console(width=100, file=io.StringIO(), record=True)
    console.print(drawing_of(a_scene(exhausted=True), ["node-1 asks for 15"], 96, 30))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[0] == ("subnet 50 of 100 reserved, 30 on pods, 0 owed; batch 16, buffer 0.5; exhausted")
    assert lines[3] == "node-1   4 of  15 ██▒▒▒░ 3 wait"
    assert lines[5] == "node-1 asks for 15"
    console.print(drawing_of(a_scene(starved=True), [], 96, 30))
    assert "; starved" in console.export_text()


async def test_the_screen_keeps_what_was_said_and_redraws_the_rest() -> None:
    file = io.StringIO()
    console = Console(width=100, file=file, force_terminal=True, color_system=None)
    with ScreenTeller(console, LoopClock()) as teller:
        teller.begin(Chapter("Quiet", "Nothing happens."))
        teller.decided("node-1 asks for 15")
        teller.show(a_scene())
        teller.say("Nothing happened.")
    shown = file.getvalue()
    assert "1. Quiet. Nothing happens." in shown
    assert "node-1 asks for 15" in shown
    assert "Nothing happened." in shown


async def test_lines_carry_their_time() -> None:
    lines: list[str] = []
    teller = PlainTeller(lines.append, LoopClock())
    teller.begin(Chapter("Quiet", "Nothing happens."))
    await asyncio.sleep(1.25)
    teller.decided("node-1 asks for 15")
    teller.show(a_scene())
    teller.say("Nothing happened.")
    assert lines == [
        "",
        "   0.0 s  1. Quiet. Nothing happens.",
        "   1.2 s     node-1 asks for 15",
        "   1.2 s  => Nothing happened.",
    ]
