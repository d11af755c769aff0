"""The story on a terminal: the subnet as a bar, the nodes' pools, and the decisions as they are made."""

from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from podtide.core.exact import text
from podtide.runtime.clock import Clock
from podtide.simulation.demo.scene import NodeScene, Scene, SubnetScene
from podtide.simulation.demo.teller import Chapter

_ON_PODS, _SPARE, _LEAVING, _FREE = "█", "▒", "░", "·"
_NODES_ABREAST = 2
_ADDRESSES_PER_MARK = 2
_LATEST_DECISIONS = 8
_NARROWEST_BAR = 20


class ScreenTeller:
    """Redraws with every scene; what was said stays above. Use it in `with`."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._began = clock.monotonic()
        self._chapters = 0
        self._chapter = Chapter("", "")
        self._decisions: deque[str] = deque(maxlen=_LATEST_DECISIONS)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, chapter: Chapter) -> None:
        """See `Teller`."""
        self._chapters += 1
        self._chapter = chapter
        self._console.print(Text(f"{self._chapters}. {chapter.title}. {chapter.words}", style="bold"))

    def say(self, words: str) -> None:
        """See `Teller`."""
        self._console.print(Text(f"   {words}", style="green"))

    def decided(self, words: str) -> None:
        """See `Teller`."""
        self._decisions.append(words)

    def show(self, scene: Scene) -> None:
        """See `Teller`."""
        title = f"{self._chapter.title}, {self._clock.monotonic() - self._began:.0f} s"
        self._live.update(
            Panel(
                drawing_of(scene, self._decisions, self._console.width - 4), title=title, title_align="left"
            ),
            refresh=True,
        )


def drawing_of(scene: Scene, decisions: Sequence[str], width: int) -> RenderableType:
    """Everything there is to see, this many characters wide."""
    lines = [Text(words, style="dim", no_wrap=True, overflow="ellipsis") for words in decisions]
    lines += [Text()] * (_LATEST_DECISIONS - len(lines))
    return Group(
        subnet_line(scene.subnet),
        subnet_bar(scene.subnet, width),
        Text(),
        _nodes(scene.nodes),
        Text(),
        *lines,
    )


def subnet_line(subnet: SubnetScene) -> Text:
    """The subnet's numbers, in words."""
    state, style = "not exhausted", "green"
    if subnet.starved:
        state, style = "starved", "bold red"
    elif subnet.exhausted:
        state, style = "exhausted", "bold yellow"
    return Text.assemble(
        ("subnet ", "bold"),
        f"{subnet.reserved} of {subnet.capacity} reserved, {subnet.assigned} on pods, {subnet.owed} owed; ",
        f"batch {subnet.batch}, buffer {text(subnet.buffer)}; ",
        (state, style),
    )


def subnet_bar(subnet: SubnetScene, width: int) -> Text:
    """What is on pods, what is reserved beside that, what is free; with marks where the thresholds are."""
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


def _nodes(nodes: Sequence[NodeScene]) -> Table:
    grid = Table.grid(padding=(0, 2), expand=True)
    for _ in range(_NODES_ABREAST):
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    rows = -(-len(nodes) // _NODES_ABREAST)
    for row in range(rows):
        grid.add_row(*(node_line(node) for node in nodes[row::rows]))
    return grid


def node_line(node: NodeScene) -> Text:
    """A node's pool: a mark for every two addresses."""
    line = Text.assemble((node.name, "bold"), f" {node.assigned:3} of {node.requested:3} ")
    for count, mark, style in _shelves(node):
        line.append(mark * -(-count // _ADDRESSES_PER_MARK), style=style)
    if node.waiting:
        line.append(f" {node.waiting} wait", style="bold red")
    return line


def _shelves(node: NodeScene) -> Iterator[tuple[int, str, str]]:
    yield node.assigned, _ON_PODS, "cyan"
    yield node.free, _SPARE, "blue"
    yield node.releasing, _LEAVING, "yellow"
