"""The demonstration on a small screen: all of it is seen at 80 by 24, and what is equal is told once."""

import io
from fractions import Fraction

import pytest
from rich.console import Console

from podtide.runtime.clock import LoopClock
from podtide.simulation.demo.folding import FoldedDecisions
from podtide.simulation.demo.plain import PlainTeller
from podtide.simulation.demo.scene import DemoScene, NodeScene, SubnetScene
from podtide.simulation.demo.screen import ScreenTeller, drawing_of
from podtide.simulation.demo.teller import Chapter

WIDTH, HEIGHT = 80, 24
STORY_LINES = 4
LONG = "asks for 31 after 15: request 31 = 16·⌈0.5 + 9/16⌉ - 1; demand 9, 22 free"


def a_scene(nodes: int, *, capacity: int = 509) -> DemoScene:
    """A subnet in trouble: node-02 has by far the most pods, and the last node has pods that wait."""
    subnet = SubnetScene(
        name="pods",
        capacity=capacity,
        reserved=capacity,
        assigned=capacity // 2,
        owed=35,
        batch=8,
        buffer=Fraction(1, 2),
        exhausted=True,
        starved=False,
        lower=Fraction(8, 10),
        upper=Fraction(9, 10),
    )
    digits = len(str(nodes))
    scenes = [
        NodeScene(
            name=f"node-{number:0{digits}d}",
            assigned=208 if number == 2 else 9,
            free=30,
            releasing=3,
            waiting=12 if number == nodes else 0,
            requested=241 if number == 2 else 31,
        )
        for number in range(1, nodes + 1)
    ]
    return DemoScene(subnet, tuple(scenes))


def shown(scene: DemoScene, decisions: list[str], width: int = WIDTH, height: int = HEIGHT) -> list[str]:
    console = Console(width=width - 4, height=height, file=io.StringIO(), record=True)
    console.print(drawing_of(scene, decisions, width - 4, height - 2 - STORY_LINES))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_at_80_by_24_every_one_of_twenty_nodes_is_seen_whole_and_the_latest_decisions_are() -> None:
    decisions = [f"{number} {LONG}" for number in range(8)]
    lines = shown(a_scene(20), decisions)
    assert len(lines) <= HEIGHT - 2 - STORY_LINES
    assert lines[0] == "509 of 509 reserved, 254 on pods, 35 owed; batch 8; exhausted"
    text = "\n".join(lines)
    for number in range(1, 21):
        assert f"node-{number:02d} " in text
    nodes = lines[3:13]
    assert not any("…" in line for line in nodes)
    assert "12 wait" in nodes[-1]
    assert f"7 {LONG}" in lines
    assert f"0 {LONG}" not in lines


@pytest.mark.parametrize("nodes", [2, 3, 20, 50, 200])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20), (120, 40), (200, 60)])
def test_at_any_size_it_fits_and_the_node_whose_pods_wait_is_seen(
    nodes: int, width: int, height: int
) -> None:
    lines = shown(a_scene(nodes, capacity=4093), [LONG] * 3, width, height)
    assert len(lines) <= height - 2 - STORY_LINES
    assert max(map(len, lines)) <= width - 4
    assert [line for line in lines if "12 wait" in line]
    assert lines[-1] in {LONG, ""} or lines[-1].endswith("…")


def test_where_not_all_nodes_fit_the_others_are_counted() -> None:
    lines = shown(a_scene(200), [])
    (rest,) = [line for line in lines if "nodes more" in line]
    seen = sum(line.count("node-") for line in lines)
    assert f"and {200 - seen} nodes more" in rest
    assert any("node-002 208 of 241" in line for line in lines)


async def test_the_whole_screen_is_no_higher_than_the_terminal() -> None:
    file = io.StringIO()
    console = Console(width=WIDTH, height=HEIGHT, file=file, force_terminal=True, color_system=None)
    with ScreenTeller(console, LoopClock()) as teller:
        teller.begin(Chapter("Give-back", "Nodes give back."))
        for number in range(30):
            teller.decided(f"{number} {LONG}", "node-01")
        before = len(file.getvalue())
        teller.show(a_scene(20))
        frame = file.getvalue()[before:]
    lines = [line for line in frame.splitlines() if line]
    assert len(lines) <= HEIGHT - STORY_LINES
    assert "╰" in lines[-1]  # its lower edge is there: nothing was cut off


async def test_a_command_to_copy_is_on_a_line_of_its_own_however_narrow_the_terminal_is() -> None:
    command = f"podtide why --kubeconfig /tmp/{'long/' * 20}kubeconfig pod-10"
    file = io.StringIO()
    lines: list[str] = []
    console = Console(width=WIDTH, height=HEIGHT, file=file, force_terminal=True, color_system=None)
    chapter = Chapter(
        "One more", "pod-10 comes to node-1, and there is no address for it. This says so:", command
    )
    with ScreenTeller(console, LoopClock()) as teller:
        teller.begin(chapter)
    PlainTeller(lines.append, LoopClock()).begin(chapter)
    assert f"    {command}\n" in file.getvalue()
    assert f"    {command}" in lines


def test_twenty_nodes_that_decide_the_same_are_one_line_with_a_count() -> None:
    told = FoldedDecisions(8)
    for number in range(1, 21):
        told.add("asks for 15 after 0", f"node-{number:02d}", at=float(number))
    told.add("asks for 47 after 15", "node-01", at=30.0)
    for _ in range(3):
        told.add("the plugin failed", "", at=31.0)
    assert told.lines() == [
        "each of 20 nodes (node-01, node-02, …) asks for 15 after 0",
        "node-01 asks for 47 after 15",
        "3 times: the plugin failed",
    ]


def test_a_few_nodes_that_decide_the_same_are_named() -> None:
    told = FoldedDecisions(8)
    for number in (3, 1):
        told.add("asks for 15 after 0", f"node-{number}", at=0.0)
    assert told.lines() == ["each of node-1 and node-3 asks for 15 after 0"]
    told.add("asks for 15 after 0", "node-7", at=0.0)
    assert told.lines() == ["each of node-1, node-3 and node-7 asks for 15 after 0"]


def test_on_a_terminal_lines_break_between_words() -> None:
    lines: list[str] = []
    teller = PlainTeller(lines.append, Ticking(), WIDTH)
    words = (
        "Pods arrive on all nodes until the subnet is exhausted: more than 0.9 of its addresses are reserved."
    )
    teller.begin(Chapter("The tide rises", words))
    teller.say(words)
    teller.decided(LONG, "node-01")
    teller.flush()
    assert max(map(len, lines)) <= WIDTH
    told = " ".join(" ".join(lines).split())
    assert told == (f"0.0 s 1. The tide rises. {words} 0.0 s => {words} 0.0 s node-01 {LONG}"), (
        "no word is broken, and none is lost"
    )


def test_only_the_latest_are_kept_and_what_is_said_again_is_late() -> None:
    told = FoldedDecisions(2)
    for words in ("a", "b", "a", "c"):
        told.add(words, "", at=0.0)
    assert told.lines() == ["2 times: a", "c"]


async def test_on_lines_too_twenty_equal_decisions_are_one_and_none_is_lost_at_the_end() -> None:
    lines: list[str] = []
    clock = Ticking()
    teller = PlainTeller(lines.append, clock)
    for number in range(1, 21):
        teller.decided("asks for 15 after 0", f"node-{number:02d}")
        clock.now += 0.02
        teller.show(a_scene(2))
    assert lines == []
    clock.now += 1.0
    teller.show(a_scene(2))
    assert lines == ["   0.0 s     each of 20 nodes (node-01, node-02, …) asks for 15 after 0"]
    teller.decided("asks for 47 after 15", "node-01")
    teller.flush()
    assert lines[1:] == ["   1.4 s     node-01 asks for 47 after 15"]


class Ticking:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now
