"""The story on a terminal: the subnet as a bar, the nodes' pools, and the decisions as they are made."""

from collections.abc import Iterator, Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from podtide.core.exact import text
from podtide.runtime.clock import Clock
from podtide.simulation.demo.folding import FoldedDecisions
from podtide.simulation.demo.scene import DemoScene, NodeScene, SubnetScene
from podtide.simulation.demo.teller import Chapter

_ON_PODS, _SPARE, _LEAVING, _FREE = "█", "▒", "░", "·"
_NODES_ABREAST = 2
_ADDRESSES_PER_MARK = 2
_MOST_DECISIONS, _FEWEST_DECISIONS = 8, 3
_NARROWEST_BAR = 20
_NARROWEST_NODE = 34
"""Room for a node's name and counts, a short bar, and how many pods wait."""
_BETWEEN = 2
_AROUND = 4
"""Lines of the drawing beside nodes and decisions: the subnet, its bar, two blank ones."""
_MOST_PER_MARK = 64
_ABOVE = 4
"""Lines of the screen that are left to the story."""
_FRAME = 2


class ScreenTeller:
    """Redraws with every scene, below the printed chapters and results. Use it in `with`."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._began = clock.monotonic()
        self._chapters = 0
        self._chapter = Chapter("", "")
        self._decisions = FoldedDecisions(_MOST_DECISIONS)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def begin(self, chapter: Chapter) -> None:
        """Print a chapter's number, title and text above the drawing."""
        self._chapters += 1
        self._chapter = chapter
        self._console.print(Text(f"{self._chapters}. {chapter.title}. {chapter.words}", style="bold"))
        if chapter.command:
            # Left to the terminal, which copies what it breaks as one line again.
            self._console.print(Text(f"    {chapter.command}"), soft_wrap=True)

    def say(self, words: str) -> None:
        """Print a result above the drawing."""
        self._console.print(Text(f"   {words}", style="green"))

    def decided(self, words: str, who: str = "") -> None:
        """Add a decision to the drawing's last lines."""
        self._decisions.add(words, who, self._clock.monotonic())

    def show(self, scene: DemoScene) -> None:
        """Redraw."""
        title = f"{self._chapter.title}, {self._clock.monotonic() - self._began:.0f} s"
        width, height = self._console.width - 2 * _FRAME, self._console.height - _FRAME - _ABOVE
        drawing = drawing_of(scene, self._decisions.lines(), width, height)
        self._live.update(Panel(drawing, title=title, title_align="left"), refresh=True)


def drawing_of(scene: DemoScene, decisions: Sequence[str], width: int, height: int) -> RenderableType:
    """The drawing, so many characters wide and lines high: nodes first, then as many decisions as fit."""
    room = max(1, height - _AROUND - _FEWEST_DECISIONS)
    nodes, rows = _nodes(scene.nodes, width, room)
    most = max(_FEWEST_DECISIONS, min(_MOST_DECISIONS, height - _AROUND - rows))
    lines = [Text(words, style="dim", no_wrap=True, overflow="ellipsis") for words in decisions[-most:]]
    lines += [Text()] * (most - len(lines))
    return Group(
        subnet_line(scene.subnet, width),
        subnet_bar(scene.subnet, width),
        Text(),
        nodes,
        Text(),
        *lines,
    )


def subnet_line(subnet: SubnetScene, width: int) -> Text:
    """The subnet's counts and state in one line, shortened where the line is narrow."""
    state, style = "not exhausted", "green"
    if subnet.starved:
        state, style = "starved", "bold red"
    elif subnet.exhausted:
        state, style = "exhausted", "bold yellow"
    counts = (
        f"{subnet.reserved} of {subnet.capacity} reserved, {subnet.assigned} on pods, {subnet.owed} owed; "
    )
    in_full = Text.assemble(
        ("subnet ", "bold"), counts, f"batch {subnet.batch}, buffer {text(subnet.buffer)}; ", (state, style)
    )
    if len(in_full) <= width:
        return in_full
    return Text.assemble(counts, f"batch {subnet.batch}; ", (state, style), no_wrap=True, overflow="ellipsis")


def subnet_bar(subnet: SubnetScene, width: int) -> Text:
    """The subnet as a bar: addresses on pods, other reserved ones, free ones, with marks at the thresholds."""
    width = max(width, _NARROWEST_BAR)
    on_pods = subnet.assigned * width // subnet.capacity
    reserved = subnet.reserved * width // subnet.capacity
    bar = Text(_ON_PODS * on_pods, style="cyan")
    bar.append(_SPARE * (reserved - on_pods), style="blue")
    bar.append(_FREE * (width - reserved), style="dim")
    for threshold in (subnet.lower, subnet.upper):
        place = min(width - 1, int(threshold * width))
        bar = Text.assemble(bar[:place], ("│", "bold yellow"), bar[place + 1 :])
    return bar


def _nodes(nodes: Sequence[NodeScene], width: int, room: int) -> tuple[Table, int]:
    """The nodes in at most `room` lines, and how many lines these are. Where not all fit, those with waiting pods and the fullest are shown."""
    abreast = min(max(1, width // _NARROWEST_NODE), max(_NODES_ABREAST, -(-len(nodes) // room)))
    left_out = max(0, len(nodes) - abreast * room)
    if left_out:
        ranked = sorted(nodes, key=lambda node: (node.waiting, node.assigned), reverse=True)
        shown = set(ranked[: abreast * room - 1])
        nodes = [node for node in nodes if node in shown]
        left_out += 1
    per_mark = _addresses_per_mark(nodes, width // abreast - _BETWEEN)
    lines = [node_line(node, per_mark) for node in nodes]
    if left_out:
        lines.append(Text(f"and {left_out} nodes more", style="dim"))
    grid = Table.grid(padding=(0, _BETWEEN, 0, 0), expand=True)
    for _ in range(abreast):
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    rows = -(-len(lines) // abreast)
    for row in range(rows):
        grid.add_row(*lines[row::rows])
    return grid, rows


def _addresses_per_mark(nodes: Sequence[NodeScene], cell: int) -> int:
    """How many addresses a mark stands for, the same on all nodes, so that the longest line fits its cell."""
    per_mark = _ADDRESSES_PER_MARK
    while (
        max((len(node_line(node, per_mark)) for node in nodes), default=0) > cell
        and per_mark < _MOST_PER_MARK
    ):
        per_mark += 1
    return per_mark


def node_line(node: NodeScene, per_mark: int = _ADDRESSES_PER_MARK) -> Text:
    """A node's pool: a mark for every two addresses, or more where the screen is narrow."""
    line = Text.assemble((node.name, "bold"), f" {node.assigned:3} of {node.requested:3} ")
    for count, mark, style in _shelves(node):
        line.append(mark * -(-count // per_mark), style=style)
    if node.waiting:
        line.append(f" {node.waiting} wait", style="bold red")
    return line


def _shelves(node: NodeScene) -> Iterator[tuple[int, str, str]]:
    yield node.assigned, _ON_PODS, "cyan"
    yield node.free, _SPARE, "blue"
    yield node.releasing, _LEAVING, "yellow"
